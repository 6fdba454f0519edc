// SPDX-License-Identifier: GPL-2.0-or-later

//! Probe families: what a probe point's components mean.
//!
//! A family is a [`ProbeFamily`] record: the forms of its points, and a function that resolves one to [`Site`]s, each
//! with the way it is attached and the context variables that its handler may use. `elaborate` knows none of them.

mod address;
mod callees;
mod function;
pub mod imprint;
mod inside;
mod kprobe;
mod lines;
mod location;
pub use location::{locate, why_unavailable};
pub use parts::{beyond, joined};
mod netfilter;
mod parts;
mod perf;
mod procfs;
pub mod registers;
mod session;
mod statement;
mod syscall;
mod timer;
mod tracepoint;
mod watch;

use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

use crate::program::{Attachment, Expr, Target, TargetId};
use spile_base::glob;
use spile_debuginfo::target::{Kernel, Object, TargetError};
use spile_debuginfo::{Address, FunctionId, TypeId};
use spile_source::Span;
use spile_source::diagnostic::{Code, Diagnostic, suggest};
use spile_syntax::ast::{Component, Literal};

/// One address, event or moment where a probe point landed.
#[derive(Clone)]
pub struct Site {
    /// Canonical spelling, as `-l` lists it.
    pub point: String,
    /// Probed function and module (`kernel`), or empty.
    pub function: String,
    pub module: String,
    pub attachment: Attachment,
    pub context: Rc<dyn Context>,
}

/// A value or an object in the probed program, with its C type.
#[derive(Clone)]
pub struct Found {
    pub object: Rc<Object>,
    pub type_id: TypeId,
    pub location: Location,
}

/// Where a context variable is, as an expression of the handler.
#[derive(Clone, Debug)]
pub enum Location {
    /// In memory at this address; of a bit-field, these bits of the storage that begins there.
    Memory { address: Expr, bits: Option<BitRange> },
    /// In the low bytes of the word of struct pt_regs at this offset.
    Register { offset: u32 },
    /// Computed: it cannot be written.
    Value(Expr),
    /// In parts, the first at the least significant end.
    Parts(Vec<Part>),
    /// A pointer that has no value itself, and where what it points to is.
    Pointer(Box<Location>),
    /// There if one of the callers that are known has called; reading it fails if another one has.
    Told(Box<Location>),
}

/// A part of an object; None: the compiler has optimised it out.
#[derive(Clone, Debug)]
pub struct Part {
    pub location: Option<Location>,
    pub bits: u64,
}

/// Bits from the least significant bit of the byte at the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitRange {
    pub first: u64,
    pub bits: u8,
}

/// Why a context variable is not to be had.
#[derive(Clone, Debug)]
pub enum ContextError {
    /// The probe has no context variables at all.
    None,
    /// No variable of that name is in scope there.
    Unknown,
    /// It is in scope and has no value at that address; a line for each thing known about why.
    NoValue(Vec<String>),
    /// The same, because the compiler has optimised it out: see [`Context::elsewhere`].
    OptimizedOut,
    NotReturn,
    Void,
    DebugInfo(String),
}

/// A context variable that holds text: names of the builtins that read it, set it, and append to it, where it may.
#[derive(Clone, Copy, Debug)]
pub struct TextVariable {
    pub read: &'static str,
    pub set: Option<&'static str>,
    pub append: Option<&'static str>,
}

/// What a site offers to its handler.
pub trait Context {
    /// The variable `name` (without `$`), `return` among them.
    fn variable(&self, _name: &str) -> Result<Found, ContextError> {
        Err(ContextError::None)
    }

    /// Where a variable that has no value here has one: `line 451; available at lines 455-460`.
    fn elsewhere(&self, _name: &str) -> Option<String> {
        None
    }

    /// Parameters, in order, that have a place in `$$parms`.
    fn parameters(&self) -> Vec<String> {
        Vec::new()
    }

    /// Local variables in scope.
    fn locals(&self) -> Vec<String> {
        Vec::new()
    }

    /// The variable `name` (without `$`), if it is one that holds text.
    fn text_variable(&self, _name: &str) -> Option<TextVariable> {
        None
    }

    /// A `$$` word of this kind of probe alone (with its dollars) whose value is known while compiling: `$$name`.
    fn text(&self, _name: &str) -> Option<String> {
        None
    }

    /// What has to hold at a hit (of a return probe: at the entry), or it counts as filtered.
    fn guard(&self) -> Option<Expr> {
        None
    }

    /// A return probe: variables other than `$return` are captured at the function's entry.
    fn is_return(&self) -> bool {
        false
    }

    /// False: no `$` variable can be there.
    fn has_variables(&self) -> bool {
        false
    }

    /// The handler sees the registers of the code it is at.
    fn has_registers(&self) -> bool {
        false
    }

    /// The object whose types casts mean when they name no module.
    fn object(&self) -> Option<Rc<Object>> {
        None
    }

    /// For messages: `vfs_read (fs/read_write.c:450)`.
    fn place(&self) -> String {
        String::new()
    }

    /// The code that the handler stands at, where debug information knows it.
    fn code(&self) -> Option<CodePlace> {
        None
    }
}

/// A place in a function's code.
#[derive(Clone)]
pub struct CodePlace {
    pub object: Rc<Object>,
    pub function: FunctionId,
    pub address: Address,
}

/// The context of a probe without context variables.
pub struct NoContext;

impl Context for NoContext {}

/// Answers questions about the target kernel, and collects the objects that probes are in.
pub struct Resolver<'k> {
    kernel: Option<&'k Kernel>,
    release: String,
    /// Files of modules beside the kernel's own.
    objects: Vec<PathBuf>,
    targets: Vec<Target>,
    anchor_address: Option<u64>,
    /// Places that nothing is known of may be probed.
    guru: bool,
    /// Files with the types of headers that casts name, by the names as they are written: `<sys/time.h>`.
    headers: HashMap<String, PathBuf>,
    /// `.callee` counts whoever calls it.
    any_caller: bool,
    left_out: Vec<String>,
    /// The kernel's debug information, if it is at hand.
    at_hand: OnceCell<Option<Rc<Object>>>,
}

impl<'k> Resolver<'k> {
    /// Without a kernel, only probes that need none resolve; `release` is for messages.
    /// `objects` are files of modules that `module("NAME")` finds first.
    pub fn new(kernel: Option<&'k Kernel>, release: &str, objects: &[PathBuf]) -> Resolver<'k> {
        let (release, objects) = (release.to_string(), objects.to_vec());
        Resolver {
            kernel,
            release,
            objects,
            targets: Vec::new(),
            anchor_address: None,
            guru: true,
            headers: HashMap::new(),
            any_caller: false,
            left_out: Vec::new(),
            at_hand: OnceCell::new(),
        }
    }

    /// The same for a script that is to run: in guru mode or not.
    #[must_use]
    pub fn with_guru(mut self, guru: bool) -> Resolver<'k> {
        self.guru = guru;
        self
    }

    /// The same for `-DSTAP_CALLEE_MATCHALL`: callees count whoever calls them.
    pub fn with_any_caller(mut self, any_caller: bool) -> Resolver<'k> {
        self.any_caller = any_caller;
        self
    }

    /// The same with files that hold the types of headers.
    pub fn with_headers(mut self, headers: HashMap<String, PathBuf>) -> Resolver<'k> {
        self.headers = headers;
        self
    }

    /// The types of the headers that are named so; None where there are no other than the kernel's.
    pub fn header(&self, name: &str) -> Option<Rc<Object>> {
        let path = self.headers.get(name)?;
        self.kernel?.module(&path.to_string_lossy()).ok()
    }

    pub(in crate::probe) fn any_caller(&self) -> bool {
        self.any_caller
    }

    pub(in crate::probe) fn is_guru(&self) -> bool {
        self.guru
    }

    /// The module of that name or path.
    pub fn module(&self, name: &str) -> Result<Rc<Object>, TargetError> {
        let same = |path: &&PathBuf| {
            let file = path.file_name().map(|file| file.to_string_lossy().replace('-', "_"));
            file.is_some_and(|file| file.split('.').next() == Some(&name.replace('-', "_")))
        };
        let path = self.objects.iter().find(same).map(|path| path.to_string_lossy().into_owned());
        match self.kernel {
            Some(kernel) => kernel.module(path.as_deref().unwrap_or(name)),
            None => Err(TargetError::no_kernel(&self.release)),
        }
    }

    /// The kernel if its debug information is at hand: for families whose probes do without it.
    pub(in crate::probe) fn kernel_at_hand(&self) -> Option<Rc<Object>> {
        self.at_hand.get_or_init(|| self.kernel?.vmlinux_here()).clone()
    }

    /// Where answers came from BTF alone: what is not known then, and which package has it.
    pub fn without_dwarf(&self) -> Option<String> {
        let kernel = self.kernel?;
        let objects = kernel.without_dwarf();
        let package =
            kernel.debug_package().map_or_else(String::new, |package| format!(": try apt-get install {package}"));
        (!objects.is_empty()).then(|| {
            let objects = objects.join(", ");
            format!("there is no debug information of {objects}, and BTF tells neither of inlined functions, .isra parts and lines nor of local variables{package}")
        })
    }

    pub fn kernel(&self) -> Result<&'k Kernel, PointError> {
        self.kernel.ok_or_else(|| PointError::NoKernel { release: self.release.clone() })
    }

    /// The target's number; it is added when first used.
    pub fn target(&mut self, object: &Object) -> Result<TargetId, PointError> {
        let name = if object.is_kernel() { String::new() } else { object.name().replace('-', "_") };
        if let Some(index) = self.targets.iter().position(|target| target.name == name) {
            return Ok(TargetId(index as u32));
        }
        // A boot image has no symbols: nothing in it is attached by address.
        if object.is_kernel() && object.has_symbols() {
            let address = object.symbol_address("register_kprobe");
            self.anchor_address = Some(address.ok_or(PointError::NoAnchor)?);
        }
        self.targets.push(Target {
            name,
            build_id: object.build_id().to_vec(),
            build_id_address: object.build_id_address(),
            path: object.path().display().to_string(),
        });
        Ok(TargetId(self.targets.len() as u32 - 1))
    }

    /// Source lines of the kernel and of the modules that are targets, by the targets' names. What has none is left out:
    /// its addresses are told as numbers.
    pub fn line_tables(&mut self) -> Vec<(String, Vec<u8>)> {
        let Some(kernel) = self.kernel else { return Vec::new() };
        let mut tables = Vec::new();
        if let Ok(vmlinux) = kernel.vmlinux()
            && let Some(table) = line_table(&vmlinux)
            && self.target(&vmlinux).is_ok()
        {
            tables.push((String::new(), table));
        }
        for name in self.targets.iter().map(|target| target.name.clone()).filter(|name| !name.is_empty()) {
            let table = self.module(&name).ok().and_then(|module| line_table(&module));
            tables.extend(table.map(|table| (name, table)));
        }
        tables
    }

    /// No probe can be at `what`; told with -v.
    pub(in crate::probe) fn leave_out(&mut self, what: &str, why: &str) {
        self.left_out.push(format!("{what}: {why}"));
    }

    /// What a wildcard matched and no probe can be at, each with the reason, since it was last asked.
    pub fn take_left_out(&mut self) -> Vec<String> {
        std::mem::take(&mut self.left_out)
    }

    /// The objects that sites are in, and the link-time address of `register_kprobe` if the kernel is one of them.
    pub fn take_targets(&mut self) -> (Vec<Target>, Option<u64>) {
        (std::mem::take(&mut self.targets), self.anchor_address)
    }
}

fn line_table(object: &Object) -> Option<Vec<u8>> {
    object.debug().ok()?.line_table().ok()?
}

/// Why a probe point has no site.
#[derive(Clone, Debug)]
pub enum PointError {
    /// No family has such a point; what the components known so far may be followed by.
    Unknown {
        component: Span,
        follow: Vec<String>,
        name: String,
    },
    /// An argument is missing, superfluous or of the wrong kind.
    Argument {
        component: Span,
        expected: String,
    },
    /// A number outside its range.
    Range {
        component: Span,
        low: i64,
        high: i64,
    },
    NoKernel {
        release: String,
    },
    /// vmlinux has no symbol register_kprobe: not a kernel that spile can use.
    NoAnchor,
    NoFunction {
        component: Span,
        name: String,
        object: String,
        near: Vec<String>,
    },
    NoTracepoint {
        component: Span,
        name: String,
        object: String,
        near: Vec<String>,
    },
    /// No statement begins on the line; `near`: lines that have one.
    NoLine {
        component: Span,
        pattern: String,
        near: Vec<u32>,
    },
    /// The pattern matched nothing.
    NoMatch {
        component: Span,
        pattern: String,
        object: String,
    },
    /// Only inlined copies are there, which do not return.
    OnlyInlined {
        component: Span,
        name: String,
        copies: usize,
    },
    /// The address cannot be named at run time.
    NotProbeable {
        component: Span,
        name: String,
        why: String,
    },
    /// Only guru mode may.
    Guru {
        component: Span,
        what: &'static str,
    },
    Target {
        component: Span,
        error: Rc<TargetError>,
    },
    DebugInfo {
        component: Span,
        message: String,
    },
    Unsupported {
        component: Span,
        what: String,
    },
}

impl PointError {
    pub fn diagnostic(&self, point: Span) -> Diagnostic {
        let error = |code, message: String| Diagnostic::error(Code(code), message);
        match self {
            PointError::Unknown { component, follow, name } => {
                // Names in two underscores are the library's own.
                let follow: Vec<&str> =
                    follow.iter().map(String::as_str).filter(|name| !name.starts_with("__")).collect();
                let diagnostic = error("E0201", "probe point mismatch".into()).at(*component, "not known here");
                match suggest::hint(name, &follow, 30) {
                    Some(hint) => diagnostic.note(hint),
                    None => diagnostic.note("nothing may follow here"),
                }
            }
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
            PointError::NoFunction { component, name, object, near } => {
                let diagnostic = error("E0204", format!("no function `{name}` in {object}")).at(*component, "");
                let diagnostic = if near.is_empty() {
                    diagnostic
                } else {
                    diagnostic.note(format!("did you mean {}?", near.join(", ")))
                };
                if name.contains('{') {
                    diagnostic.note("braces mean nothing inside of a string: `kernel.{function(\"a\"), function(\"b\")}` is two points")
                } else {
                    diagnostic
                }
            }
            PointError::NoTracepoint { component, name, object, near } => {
                let diagnostic = error("E0210", format!("no tracepoint `{name}` in {object}")).at(*component, "");
                // perf and bpftrace list events of these names, which the kernel makes of two tracepoints.
                let event = name.rsplit(':').next().unwrap_or(name);
                let call = [("sys_enter_", ""), ("sys_exit_", ".return")]
                    .into_iter()
                    .find_map(|(prefix, suffix)| Some((event.strip_prefix(prefix)?, suffix)));
                match call {
                    Some((call, suffix)) => diagnostic.note(format!(
                        "probe syscall.{call}{suffix}: the event is made of the tracepoint raw_syscalls:{}",
                        &event[..event.len() - call.len() - 1]
                    )),
                    None if near.is_empty() => diagnostic,
                    None => diagnostic.note(format!("did you mean {}?", near.join(", "))),
                }
            }
            PointError::NoLine { component, pattern, near } => {
                let diagnostic = error("E0212", format!("no statement begins at `{pattern}`")).at(*component, "");
                let near: Vec<String> = near.iter().take(6).map(u32::to_string).collect();
                match near.as_slice() {
                    [] => diagnostic,
                    near => diagnostic
                        .note(format!("lines that have code: {}; .nearest takes the nearest", near.join(", "))),
                }
            }
            PointError::NoMatch { component, pattern, object } => {
                error("E0205", format!("no function in {object} matches `{pattern}`")).at(*component, "")
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
                error("E0207", format!("`{name}` cannot be probed")).at(*component, why.clone())
            }
            PointError::Guru { component, what } => error("E0401", format!("{what} needs guru mode"))
                .at(*component, "")
                .note("run with -g if you know what is there"),
            PointError::Target { component, error: cause } => target_diagnostic(cause).at(*component, ""),
            PointError::DebugInfo { component, message } => error("E0302", message.clone()).at(*component, ""),
            PointError::Unsupported { component, what } => {
                error("E0190", format!("not in this version: {what}")).at(*component, "")
            }
        }
    }
}

/// A missing kernel, module or debug file, with where was looked and which package has it.
pub fn target_diagnostic(error: &TargetError) -> Diagnostic {
    let mut diagnostic = Diagnostic::error(Code("E0303"), error.to_string());
    for note in error.notes() {
        diagnostic = diagnostic.note(note);
    }
    diagnostic
}

/// One shape of probe point: `kernel.function(string).return`.
pub struct Form {
    /// Components with `(string)` or `(number)` where they take an argument.
    pub spelling: &'static str,
    pub doc: &'static str,
}

pub struct ProbeFamily {
    pub forms: &'static [Form],
    /// Sites of a point that matched the form of that index.
    pub resolve: fn(&Point, &mut Resolver) -> Result<Vec<Site>, PointError>,
}

static FAMILIES: &[&ProbeFamily] = &[
    &session::FAMILY,
    &timer::FAMILY,
    &perf::FAMILY,
    &function::FAMILY,
    &statement::FAMILY,
    &inside::FAMILY,
    &address::FAMILY,
    &tracepoint::FAMILY,
    &syscall::FAMILY,
    &kprobe::FAMILY,
    &procfs::FAMILY,
    &netfilter::FAMILY,
    &watch::FAMILY,
];

/// All forms of all families.
pub fn forms() -> impl Iterator<Item = &'static Form> {
    FAMILIES.iter().flat_map(|family| family.forms)
}

/// A probe point that fits a form.
pub struct Point<'p> {
    pub form: &'static Form,
    pub components: &'p [Component],
}

impl Point<'_> {
    fn component(&self, name: &str) -> Option<&Component> {
        self.components.iter().find(|component| component.name == name)
    }

    fn has(&self, name: &str) -> bool {
        self.component(name).is_some()
    }

    fn number(&self, name: &str) -> Option<(i64, Span)> {
        match self.component(name) {
            Some(Component { argument: Some(Literal::Number(value)), span, .. }) => Some((*value, *span)),
            _ => None,
        }
    }

    fn string(&self, name: &str) -> Option<(String, Span)> {
        match self.component(name) {
            Some(Component { argument: Some(Literal::String(bytes)), span, .. }) => {
                Some((String::from_utf8_lossy(bytes).into_owned(), *span))
            }
            _ => None,
        }
    }

    /// As written: `module("x").function("f").return`.
    pub fn spelling(&self) -> String {
        spelling(self.components)
    }
}

/// Components as a script writes them.
pub fn spelling(components: &[Component]) -> String {
    let parts: Vec<String> = components
        .iter()
        .map(|component| match &component.argument {
            None => component.name.clone(),
            Some(Literal::Number(value)) => format!("{}({value})", component.name),
            Some(Literal::String(bytes)) => {
                format!("{}(\"{}\")", component.name, String::from_utf8_lossy(bytes).escape_debug())
            }
        })
        .collect();
    parts.join(".")
}

#[derive(PartialEq)]
enum Fit {
    Whole,
    /// The first components fit; the next one does not.
    Until(usize),
    /// Names fit, the argument of this component does not.
    Argument(usize),
}

fn fit(form: &Form, components: &[Component]) -> Fit {
    let parts: Vec<&str> = form.spelling.split('.').collect();
    for (index, component) in components.iter().enumerate() {
        let Some(part) = parts.get(index) else { return Fit::Until(index) };
        let (name, kind) = part.split_once('(').unwrap_or((part, ""));
        if name != component.name {
            return Fit::Until(index);
        }
        let fits = match (&component.argument, kind) {
            (None, "") | (Some(Literal::Number(_)), "number)") | (Some(Literal::String(_)), "string)") => true,
            _ => false,
        };
        if !fits {
            return Fit::Argument(index);
        }
    }
    if components.len() == parts.len() { Fit::Whole } else { Fit::Until(components.len()) }
}

/// What components with wildcards name among the forms of all families: `b*` is `begin`, `timer.p*` is `timer.profile`.
pub fn matching(components: &[Component]) -> Vec<Vec<Component>> {
    let spelled = |form: &Form| {
        let parts: Vec<&str> = form.spelling.split('.').collect();
        if parts.len() != components.len() {
            return None;
        }
        let pairs = components.iter().zip(parts);
        let named: Vec<Component> = pairs
            .map(|(component, part)| {
                let name = part.split('(').next().unwrap_or(part);
                let hidden = name.starts_with('_') && !component.name.starts_with('_');
                let name = if glob::matches(&component.name, name) && !hidden { name } else { "" };
                Component { name: name.to_string(), ..component.clone() }
            })
            .collect();
        matches!(fit(form, &named), Fit::Whole).then_some(named)
    };
    forms().filter_map(spelled).collect()
}

/// The sites of a probe point that is no alias. `aliases`: further first components, for suggestions.
pub fn resolve(
    components: &[Component],
    span: Span,
    aliases: &[String],
    resolver: &mut Resolver,
) -> Result<Vec<Site>, PointError> {
    let mut longest = 0;
    let mut argument = None;
    for family in FAMILIES {
        for form in family.forms {
            match fit(form, components) {
                Fit::Whole => return (family.resolve)(&Point { form, components }, resolver),
                Fit::Until(index) => longest = longest.max(index),
                Fit::Argument(index) => {
                    argument
                        .get_or_insert_with(|| (index, form.spelling.split('.').nth(index).unwrap_or("").to_string()));
                    longest = longest.max(index);
                }
            }
        }
    }
    if let Some((index, expected)) = argument.filter(|(index, _)| *index >= longest) {
        return Err(PointError::Argument { component: components[index].span, expected });
    }
    let before = &components[..longest.min(components.len())];
    let mut follow: Vec<String> = forms()
        .filter(|form| {
            !matches!(fit(form, before), Fit::Argument(_)) && fit(form, before) != Fit::Until(0) || before.is_empty()
        })
        .filter_map(|form| {
            let parts: Vec<&str> = form.spelling.split('.').collect();
            let same =
                before.iter().zip(&parts).all(|(component, part)| part.split('(').next() == Some(&component.name));
            if same { parts.get(before.len()).map(|part| part.to_string()) } else { None }
        })
        .collect();
    if before.is_empty() {
        follow.extend(aliases.iter().cloned());
    }
    follow.sort();
    follow.dedup();
    let (component, name) = match components.get(longest) {
        Some(component) => (component.span, component.name.clone()),
        None => (span, String::new()),
    };
    Err(PointError::Unknown { component, follow, name })
}
