// SPDX-License-Identifier: GPL-2.0-or-later

//! Why a probe point has no site, as facts, and the diagnostic of each.

use std::fmt;
use std::rc::Rc;

use spile_debuginfo::target::{Object, TargetError};
use spile_source::Span;
use spile_source::diagnostic::{Code, Diagnostic, suggest};
use spile_syntax::ast::Component;

/// What a search for a function in other objects has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherOwners {
    /// Points, as they are to be written.
    pub points: Vec<String>,
    /// Number of modules that were not searched.
    pub unsearched: usize,
}

/// Names like the one of a function that was not found.
#[derive(Clone)]
pub enum Similar {
    /// These.
    Names(Vec<String>),
    /// Those of the object's functions. They are searched for when a message has them: in the kernel that takes longer than all
    /// else of a point, and of an optional point there is no message.
    InObject(Rc<Object>),
}

impl Similar {
    /// Those like `name`, nearest first.
    fn names(&self, name: &str) -> Vec<String> {
        match self {
            Similar::Names(names) => names.clone(),
            Similar::InObject(object) => {
                // Names are without their scopes and parameters.
                let last = name.rsplit("::").next().unwrap_or_default();
                let wanted = last.split('(').next().filter(|wanted| !wanted.is_empty()).unwrap_or(name);
                let known = object.debug().ok().and_then(|debug| debug.function_names().ok()).unwrap_or_default();
                let near = suggest::suggest(wanted, known.iter().map(String::as_str));
                near.into_iter().map(str::to_string).collect()
            }
        }
    }
}

impl fmt::Debug for Similar {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Similar::Names(names) => formatter.debug_tuple("Names").field(names).finish(),
            Similar::InObject(object) => formatter.debug_tuple("InObject").field(&object.name()).finish(),
        }
    }
}

/// Why a probe point has no site.
#[derive(Clone, Debug)]
pub enum PointError {
    /// No family has such a point; the components that may follow the known ones.
    Unknown {
        /// The component with the error.
        component: Span,
        /// How many components before it are known.
        known: usize,
        /// Components that may follow: `function(string)`; of aliases the whole name, `syscall.openat`.
        follow: Vec<String>,
        /// The name asked for.
        name: String,
    },
    /// An argument is missing, superfluous or of the wrong kind.
    Argument {
        /// The component with the error.
        component: Span,
        /// What should be there.
        expected: String,
    },
    /// A number outside its range.
    Range {
        /// The component with the error.
        component: Span,
        /// Least value.
        low: i64,
        /// Greatest value.
        high: i64,
    },
    /// There is no target kernel.
    NoKernel {
        /// The requested release.
        release: String,
    },
    /// vmlinux has no symbol register_kprobe: spile cannot use it.
    NoAnchor,
    /// No function of that name.
    NoFunction {
        /// The component with the error.
        component: Span,
        /// The name asked for.
        name: String,
        /// `kernel` or the module, as messages name it.
        object: String,
        /// Names like it.
        near: Similar,
        /// The same point in the objects that have the function.
        other_owners: OtherOwners,
    },
    /// No tracepoint of that name.
    NoTracepoint {
        /// The component with the error.
        component: Span,
        /// The name asked for.
        name: String,
        /// `kernel` or the module, as messages name it.
        object: String,
        /// Names like it.
        near: Vec<String>,
    },
    /// No statement begins on the line.
    NoLine {
        /// The component with the error.
        component: Span,
        /// The pattern as written.
        pattern: String,
        /// Lines that have code.
        near: Vec<u32>,
    },
    /// The pattern matched nothing.
    NoMatch {
        /// The component with the error.
        component: Span,
        /// The pattern as written.
        pattern: String,
        /// `kernel` or the module, as messages name it.
        object: String,
    },
    /// There are only inlined copies, which do not return.
    OnlyInlined {
        /// The component with the error.
        component: Span,
        /// The name asked for.
        name: String,
        /// Number of inlined copies.
        copies: usize,
    },
    /// The address cannot be expressed at run time.
    NotProbeable {
        /// The component with the error.
        component: Span,
        /// The name asked for.
        name: String,
        /// The reason, for a label.
        why: String,
    },
    /// Only allowed in guru mode.
    Guru {
        /// The component with the error.
        component: Span,
        /// What needs it, for a message.
        what: &'static str,
    },
    /// `process` alone, and the session has no process of its own.
    NoCommand {
        /// The component that it is about.
        component: Span,
    },
    /// The object could not be found or read.
    Target {
        /// The component with the error.
        component: Span,
        /// What failed.
        error: Rc<TargetError>,
    },
    /// Debug information could not be read.
    DebugInfo {
        /// The component with the error.
        component: Span,
        /// What failed, for a message.
        message: String,
    },
    /// Known from SystemTap, but not supported.
    Unsupported {
        /// The component with the error.
        component: Span,
        /// What is not supported.
        what: String,
    },
}

/// The name of the last component, without its argument: `function` of `function(string)`, `openat` of `syscall.openat`.
fn last_name(spelling: &str) -> &str {
    let name = spelling.split('(').next().unwrap_or(spelling);
    name.rsplit('.').next().unwrap_or(name)
}

/// Errors, before it is known which component is to blame.
pub(super) enum UnplacedError {
    Debug(spile_debuginfo::Error),
    Point(PointError),
}

impl UnplacedError {
    pub(super) fn at(self, component: Span) -> PointError {
        match self {
            UnplacedError::Debug(error) => PointError::DebugInfo { component, message: error.to_string() },
            UnplacedError::Point(error) => error,
        }
    }
}

impl From<spile_debuginfo::Error> for UnplacedError {
    fn from(error: spile_debuginfo::Error) -> UnplacedError {
        UnplacedError::Debug(error)
    }
}

impl PointError {
    /// Adds what `aliases`, each given by the names of its components, offer after the known part of `components`.
    pub fn with_aliases(self, components: &[Component], aliases: impl Iterator<Item = Vec<String>>) -> PointError {
        let PointError::Unknown { mut component, mut known, mut follow, mut name } = self else { return self };
        for alias in aliases {
            let fits =
                |(component, part): &(&Component, &String)| component.argument.is_none() && component.name == **part;
            let same = components.iter().zip(&alias).take_while(fits).count();
            if same > known {
                (known, follow) = (same, Vec::new());
                name = components.get(same).map_or_else(String::new, |component| component.name.clone());
                component = components.get(same).map_or(component, |component| component.span);
            }
            if same == known && same < alias.len() {
                follow.extend(alias.get(..=same).map(|name| name.join(".")));
            }
        }
        follow.sort();
        follow.dedup();
        PointError::Unknown { component, known, follow, name }
    }

    /// Adds the same point in other objects, if it is a function that was not found; `find` gets its name.
    pub fn with_owners(self, find: impl FnOnce(&str) -> OtherOwners) -> PointError {
        let PointError::NoFunction { component, name, object, near, .. } = self else { return self };
        let other_owners = find(&name);
        PointError::NoFunction { component, name, object, near, other_owners }
    }

    /// The diagnostic; `point` is the place of the whole point.
    pub fn diagnostic(&self, point: Span) -> Diagnostic {
        match self {
            PointError::Unknown { component, follow, name, .. } => unknown(*component, follow, name),
            PointError::Argument { component, expected } => {
                error("E0202", "wrong argument in a probe point".into()).at(*component, format!("write {expected}"))
            }
            PointError::Range { component, low, high } => {
                error("E0203", format!("interval value out of range ({low}, {high})")).at(*component, "")
            }
            PointError::NoKernel { release } => error("E0501", format!("kernel {release} is not installed here"))
                .at(point, "this probe needs to know the kernel")
                .note("name an installed release with -r RELEASE"),
            PointError::NoAnchor => error("E0301", "the kernel's symbol table has no register_kprobe".into())
                .at(point, "")
                .note("a kernel without CONFIG_KPROBES cannot be probed"),
            PointError::NoFunction { component, name, object, near, other_owners } => {
                no_function(*component, name, object, &near.names(name), other_owners)
            }
            PointError::NoTracepoint { component, name, object, near } => no_tracepoint(*component, name, object, near),
            PointError::NoLine { component, pattern, near } => {
                let diagnostic = error("E0212", format!("no statement begins at `{pattern}`")).at(*component, "");
                let near: Vec<String> = near.iter().take(6).map(u32::to_string).collect();
                match near.as_slice() {
                    [] => diagnostic,
                    near => diagnostic
                        .note(format!("lines that have code: {}; .nearest selects the nearest", near.join(", "))),
                }
            }
            PointError::NoMatch { component, pattern, object } => {
                error("E0205", format!("no function in {object} matches `{pattern}`"))
                    .as_stap("no match")
                    .at(*component, "")
            }
            PointError::OnlyInlined { component, name, copies } => error(
                "E0206",
                format!("cannot probe the return of `{name}`: all {copies} copies of it are inlined"),
            )
            .at(*component, "")
            .note(
                "probe the entry of the copies with .function(...).inline, or the return of a function that calls it",
            ),
            PointError::NotProbeable { component, name, why } => {
                error("E0207", format!("`{name}` cannot be probed")).as_stap("no match").at(*component, why.clone())
            }
            PointError::Guru { component, what } => error("E0401", format!("{what} needs guru mode"))
                .at(*component, "")
                .note("run with -g if you know that an instruction begins there"),
            PointError::NoCommand { component } => {
                error("E0213", "`process` alone is the session's own process, and it has none".into())
                    .as_stap("unspecified process probe is invalid without a -c COMMAND or -x PID [man stapprobes]")
                    .at(*component, "")
                    .note("name a command with -c CMD, a process with -x PID, or a program: process(\"PATH\")")
            }
            PointError::Target { component, error: cause } => target_diagnostic(cause).at(*component, ""),
            PointError::DebugInfo { component, message } => error("E0302", message.clone()).at(*component, ""),
            PointError::Unsupported { component, what } => {
                error("E0190", format!("not in this version: {what}")).at(*component, "")
            }
        }
    }
}

/// The note about a string with braces as the name of a function, a module or the like.
pub const BRACES_IN_STRING: &str =
    "braces have no meaning inside a string: `kernel.{function(\"a\"), function(\"b\")}` is two points";

fn error(code: &'static str, message: String) -> Diagnostic {
    Diagnostic::error(Code(code), message)
}

/// A component that no family has, with those that can stand in its place.
fn unknown(component: Span, follow: &[String], name: &str) -> Diagnostic {
    // Names that begin with two underscores are internal to the library.
    let follow: Vec<&str> = follow.iter().map(String::as_str).filter(|name| !name.starts_with("__")).collect();
    let diagnostic = error("E0201", "probe point mismatch".into()).at(component, "not known here");
    let diagnostic = match follow.as_slice() {
        [] => diagnostic.as_stap("invalid suffix for probe"),
        follow => {
            let mut similar: Vec<&str> = suggest::suggest(name, follow.iter().map(|name| last_name(name)));
            similar.dedup();
            diagnostic.as_stap_with("probe point mismatch", "similar", &similar)
        }
    };
    match suggest::hint_by(name, &follow, last_name, 30) {
        Some(hint) => diagnostic.note(hint),
        None => diagnostic.note("nothing can follow here"),
    }
}

/// A function that does not exist there, with the objects that have it, or else with similar names.
fn no_function(component: Span, name: &str, object: &str, near: &[String], other_owners: &OtherOwners) -> Diagnostic {
    let OtherOwners { points, unsearched } = other_owners;
    let mut diagnostic = error("E0204", format!("no function `{name}` in {object}"))
        .as_stap_with("no match", "similar functions", near)
        .at(component, "");
    if !points.is_empty() {
        diagnostic = diagnostic.note(format!("it is in another object: write {}", points.join(" or ")));
    } else if !near.is_empty() {
        diagnostic = diagnostic.note(format!("did you mean {}?", near.join(", ")));
    }
    if points.is_empty() && *unsearched > 0 {
        diagnostic = diagnostic.note(format!(
            "{unsearched} compressed modules were not searched, because unpacking them takes long: name the module, as in module(\"NAME\").function(\"{name}\")"
        ));
    }
    diagnostic
}

/// A tracepoint that does not exist, with the probe points to use instead, or with similar names.
fn no_tracepoint(component: Span, name: &str, object: &str, near: &[String]) -> Diagnostic {
    let diagnostic =
        error("E0210", format!("no tracepoint `{name}` in {object}")).as_stap("no match").at(component, "");
    // perf and bpftrace list events of these names, which the kernel derives from two tracepoints.
    let event = name.rsplit(':').next().unwrap_or(name);
    let call = [("sys_enter_", ""), ("sys_exit_", ".return")]
        .into_iter()
        .find_map(|(prefix, suffix)| Some((event.strip_prefix(prefix)?, suffix)));
    match call {
        Some((call, suffix)) => diagnostic.note(format!(
            "probe syscall.{call}{suffix}: the event is derived from the tracepoint raw_syscalls:{}",
            &event[..event.len() - call.len() - 1]
        )),
        None if near.is_empty() => diagnostic,
        None => diagnostic.note(format!("did you mean {}?", near.join(", "))),
    }
}

/// A missing kernel, module or debug file, with the places searched and the package to install.
pub fn target_diagnostic(error: &TargetError) -> Diagnostic {
    let mut diagnostic = Diagnostic::error(Code("E0303"), error.to_string());
    for note in error.notes() {
        diagnostic = diagnostic.note(note);
    }
    diagnostic
}
