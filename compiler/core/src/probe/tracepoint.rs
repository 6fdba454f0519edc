// SPDX-License-Identifier: GPL-2.0-or-later

//! `kernel.trace("SYSTEM:NAME")`, `kernel.tracepoint("NAME")` and the same for modules: tracepoints in the kernel's
//! sources.
//!
//! The prototype is that of `__traceiter_NAME`, which the kernel defines beside each tracepoint since 5.10 (d25e37d89dd2
//! "tracepoint: Optimize using static_call()"): a first parameter `__data`, then the tracepoint's arguments by the names
//! of their TP_PROTO. Its declaring file is the trace header, by which the system is known.

use std::rc::Rc;

use super::context::event_text;
use super::syscall_event;
use super::{Context, ContextError, Form, Location, Point, PointError, ProbeFamily, Resolver, Site, TypedLocation};
use crate::program::{Attachment, Label, LongExpr, Mechanism, Place, Registers, TargetId, Value};
use spile_base::glob;
use spile_debuginfo::target::Object;
use spile_debuginfo::{DebugInfo, FunctionPattern, Type as CType, TypeId, Variable};
use spile_source::Span;
use spile_source::diagnostic::suggest;

/// The family of `kernel.trace`.
pub(super) static FAMILY: ProbeFamily = ProbeFamily::new(
    &[
        Form {
            spelling: "kernel.trace(string)",
            doc: "a tracepoint, NAME or SYSTEM:NAME; its arguments by name; of syscalls:sys_enter_NAME and sys_exit_NAME the fields that perf lists",
        },
        Form { spelling: "module(string).trace(string)", doc: "a tracepoint of a module; its arguments by name" },
        Form { spelling: "kernel.tracepoint(string)", doc: "a tracepoint; its arguments are $arg1, $arg2, ..." },
        Form {
            spelling: "module(string).tracepoint(string)",
            doc: "a tracepoint of a module; its arguments are $arg1, ...",
        },
    ],
    resolve,
);

/// Prefix of the name of a tracepoint's function.
const PREFIX: &str = "__traceiter_";

/// Most arguments that the runtime passes on (`runtime-c/tracepoint.c`); no tracepoint of the kernel has more than 12,
/// because BPF takes no more.
const MAX_ARGUMENTS: usize = 12;

fn resolve(point: &Point, resolver: &mut Resolver) -> Result<Vec<Site>, PointError> {
    let numbered = point.has("tracepoint");
    let (text, component) =
        point.string(if numbered { "tracepoint" } else { "trace" }).unwrap_or((String::new(), point.span()));
    let wanted = EventPattern::parse(&text);
    let kernel = resolver.kernel()?;
    let failed = |error| PointError::Target { component, error: Rc::new(error) };
    let mut objects = Vec::new();
    match point.string("module") {
        Some((name, _)) if glob::is_pattern(&name) => {
            let matching = kernel.module_names().into_iter().filter(|module| glob::matches(&name, module));
            objects.extend(matching.filter_map(|module| kernel.module(&module).ok()));
        }
        Some((name, span)) => {
            let module = resolver
                .module(&name)
                .map_err(|error| PointError::Target { component: span, error: Rc::new(error) })?;
            objects.push(module);
        }
        None => objects.push(kernel.vmlinux().map_err(failed)?),
    }
    let mut sites = Vec::new();
    for object in &objects {
        sites.extend(resolve_in(&wanted, numbered, object, component, resolver)?);
    }
    // A module's tracepoints belong to the kernel's too.
    if sites.is_empty() && !point.has("module") {
        for module in wanted.candidate_modules() {
            let Ok(module) = resolver.module(module) else { continue };
            sites = resolve_in(&wanted, numbered, &module, component, resolver)?;
            objects.push(module);
            if !sites.is_empty() {
                break;
            }
        }
    }
    if !numbered && let [kernel, ..] = objects.as_slice() {
        sites.extend(syscall_event::resolve(wanted.system, wanted.name, kernel, component, resolver)?);
    }
    if sites.is_empty() {
        return Err(nothing(&wanted, &text, &objects, component));
    }
    Ok(sites)
}

/// All tracepoints of an object, as `SYSTEM:NAME`, or `NAME` where only BTF is there; sorted.
pub fn names(object: &Object) -> Vec<String> {
    let Ok(debug) = object.debug() else { return Vec::new() };
    let pattern = FunctionPattern { name: format!("{PREFIX}*"), file: None };
    let found = debug.find_functions(&pattern).unwrap_or_default();
    let functions = found.into_iter().filter_map(|id| debug.function(id).ok());
    let mut names: Vec<String> = functions
        .filter_map(|function| {
            let name = function.name.strip_prefix(PREFIX)?;
            let system = system_of(&function.file);
            Some(if system.is_empty() { name.to_string() } else { format!("{system}:{name}") })
        })
        .collect();
    names.sort();
    names.dedup();
    names
}

/// `SYSTEM:NAME` or `NAME`, both shell patterns.
struct EventPattern<'t> {
    system: Option<&'t str>,
    name: &'t str,
}

impl EventPattern<'_> {
    fn parse(text: &str) -> EventPattern<'_> {
        match text.split_once(':') {
            Some((system, name)) => EventPattern { system: Some(system), name },
            None => EventPattern { system: None, name: text },
        }
    }

    /// Modules that may have it: usually one has the system's name, which is a prefix of the tracepoint's.
    fn candidate_modules(&self) -> Vec<&str> {
        let heads = self.name.match_indices('_').map(|(at, _)| &self.name[..at]).filter(|head| !head.is_empty());
        let heads: Vec<&str> = if glob::is_pattern(self.name) { Vec::new() } else { heads.collect() };
        self.system.into_iter().chain(heads.into_iter().rev()).collect()
    }

    /// A name that is not a pattern exists only once: its header is not compared.
    fn takes(&self, system: &str) -> bool {
        !glob::is_pattern(self.name) || self.system.is_none_or(|pattern| glob::matches(pattern, system))
    }
}

/// The tracepoint that each console line passes.
const CONSOLE: &str = "console";

/// Whether the kernel calls the tracepoint in its variant for code that RCU does not watch. That one warns in an NMI
/// (`WARN_ON_ONCE(rcuidle && in_nmi())`, include/linux/tracepoint.h before 6.13), where backtraces of other CPUs are printed
/// (sysrq-l, watchdogs). BTF knows no inlined function: then it is taken to be so.
fn console_warns(debug: &DebugInfo, resolver: &Resolver) -> bool {
    let variant = FunctionPattern { name: format!("trace_{CONSOLE}_rcuidle"), file: None };
    resolver.without_dwarf().is_some() || debug.find_functions(&variant).is_ok_and(|found| !found.is_empty())
}

fn resolve_in(
    wanted: &EventPattern,
    numbered: bool,
    object: &Rc<Object>,
    component: Span,
    resolver: &mut Resolver,
) -> Result<Vec<Site>, PointError> {
    let failed = |error: spile_debuginfo::Error| PointError::DebugInfo { component, message: error.to_string() };
    let debug = object.debug().map_err(failed)?;
    let pattern = FunctionPattern { name: format!("{PREFIX}{}", wanted.name), file: None };
    let mut sites: Vec<Site> = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    for id in debug.find_functions(&pattern).map_err(failed)? {
        let function = debug.function(id).map_err(failed)?;
        let Some(name) = function.name.strip_prefix(PREFIX) else { continue };
        let system = system_of(&function.file);
        if !wanted.takes(&system) || seen.iter().any(|seen| seen == name) {
            continue;
        }
        if name == CONSOLE && object.is_kernel() && !resolver.is_guru() && console_warns(debug, resolver) {
            match glob::is_pattern(wanted.name) {
                true => continue,
                false => {
                    let why =
                        "this kernel warns, or panics, when it prints in an NMI while this is probed; -g probes it"
                            .into();
                    return Err(PointError::NotProbeable { component, name: name.into(), why });
                }
            }
        }
        seen.push(name.to_string());
        let mut arguments = debug.parameters(id).map_err(failed)?;
        arguments.retain(|argument| argument.name != "__data");
        let target = resolver.target(object)?;
        sites.push(site(object, target, name, &system, arguments, numbered));
    }
    Ok(sites)
}

fn site(
    object: &Rc<Object>,
    target: TargetId,
    name: &str,
    system: &str,
    arguments: Vec<Variable>,
    numbered: bool,
) -> Site {
    let owner = if object.is_kernel() { "kernel".to_string() } else { format!("module(\"{}\")", object.name()) };
    let point = match numbered {
        true => format!("{owner}.tracepoint(\"{name}\")"),
        // BTF has no headers.
        false if system.is_empty() => format!("{owner}.trace(\"{name}\")"),
        false => format!("{owner}.trace(\"{system}:{name}\")"),
    };
    let count = arguments.len().min(MAX_ARGUMENTS);
    let place = Place { target, symbol: None, address: 0 };
    let names = arguments.iter().enumerate().map(|(index, argument)| match numbered {
        true => format!("arg{}", index + 1),
        false => argument.name.clone(),
    });
    let context = TraceContext {
        object: object.clone(),
        names: names.collect(),
        types: arguments.iter().map(|argument| argument.type_id).collect(),
        name: name.to_string(),
        system: system.to_string(),
    };
    Site {
        point,
        function: String::new(),
        module: if object.is_kernel() { "kernel".into() } else { object.name().to_string() },
        attachment: attachment(place, name, count as u32),
        context: Rc::new(context),
    }
}

static MECHANISM: Mechanism =
    Mechanism { registers: Registers::Arguments, ..Mechanism::new("SPILE_PROBE_TRACEPOINT", Label::Subject) };

/// The tracepoint `name`; a handler has its first `arguments` arguments as registers. Only the target of the place is used.
/// counts.
fn attachment(place: Place, name: &str, arguments: u32) -> Attachment {
    let value = Value::List(vec![Value::Text(name.to_string()), Value::Number(arguments)]);
    Attachment::new(&MECHANISM).at(place).of(name).with("tracepoint", value)
}

/// How many arguments the tracepoint has; None if that is not known.
pub(super) fn argument_count(object: &Object, name: &str) -> Option<usize> {
    let debug = object.debug().ok()?;
    let pattern = FunctionPattern { name: format!("{PREFIX}{name}"), file: None };
    let function = debug.find_functions(&pattern).ok()?.into_iter().next()?;
    let arguments = debug.parameters(function).ok()?;
    Some(arguments.iter().filter(|argument| argument.name != "__data").count())
}

/// A tracepoint of the kernel with this many arguments, of which no more is known.
pub(super) fn of_kernel(name: &'static str, arguments: u32) -> Attachment {
    let value = Value::List(vec![Value::Text(name.into()), Value::Number(arguments)]);
    Attachment::new(&MECHANISM).of(name).with("tracepoint", value)
}

/// The trace system by the path of its header, which defines TRACE_SYSTEM: most often the file's name, or for a
/// `trace.h` the directory's. The rest are those of Linux 5.10 to 7.3 that are called otherwise.
fn system_of(path: &str) -> String {
    const OTHERWISE: [(&str, &str); 12] = [
        ("events/syscalls.h", "raw_syscalls"),
        ("ras/ras_event.h", "ras"),
        ("trace/fpu.h", "x86_fpu"),
        ("nvme/host/trace.h", "nvme"),
        ("nvme/target/trace.h", "nvmet"),
        ("drivers/base/trace.h", "dev"),
        ("iommu/intel/trace.h", "intel_iommu"),
        ("amd-pstate-trace.h", "amd_cpu"),
        ("kernel/trace/bpf_trace.h", "bpf_trace"),
        ("resctrl/pseudo_lock_event.h", "resctrl"),
        ("fs/nfs/nfs4trace.h", "nfs4"),
        ("fs/nfs/nfstrace.h", "nfs"),
    ];
    let path = path.replace("/./", "/");
    if let Some((_, system)) = OTHERWISE.iter().find(|(tail, _)| path.ends_with(tail)) {
        return (*system).to_string();
    }
    let mut parts = path.rsplit('/');
    let file = parts.next().unwrap_or_default();
    let stem = file.strip_suffix(".h").unwrap_or(file);
    let stem = if stem == "trace" { parts.next().unwrap_or(stem) } else { stem };
    let stem = ["_trace", "-trace", "_tracepoints", "_event"]
        .iter()
        .find_map(|suffix| stem.strip_suffix(suffix))
        .unwrap_or(stem);
    stem.trim_start_matches("trace_").replace('-', "_")
}

/// The successor of a tracepoint of older kernels.
fn renamed(name: &str) -> Option<&'static str> {
    let successor = match name {
        "block_remap" => "block_bio_remap",
        "mm_balancedirty_writeout" | "mm_pdflush_bgwriteout" => "balance_dirty_pages",
        "mm_page_allocation" => "mm_page_alloc",
        "mm_page_free_direct" => "mm_page_free",
        "mm_page_pcpu_free" => "mm_page_pcpu_drain",
        "mm_pagereclaim_pgout" | "mm_vmscan_writepage" => "mm_vmscan_write_folio",
        "mm_pdflush_kupdate" => "writeback_pages_written",
        "mm_pagevec_free" => "mm_page_free_batched",
        "tcp_set_state" => "inet_sock_set_state",
        _ => return None,
    };
    Some(successor)
}

fn nothing(wanted: &EventPattern, text: &str, objects: &[Rc<Object>], component: Span) -> PointError {
    let object = match objects {
        [object] if object.is_kernel() => "the kernel".to_string(),
        [object] => format!("module {}", object.name()),
        _ => "the kernel and its modules".to_string(),
    };
    let mut names: Vec<String> = Vec::new();
    for debug in objects.iter().filter_map(|object| object.debug().ok()) {
        let functions = debug.function_names().unwrap_or_default();
        names.extend(functions.iter().filter_map(|name| name.strip_prefix(PREFIX)).map(str::to_string));
    }
    let successor = renamed(wanted.name).filter(|name| names.iter().any(|known| known == name));
    let near = match successor {
        Some(name) => vec![name],
        None => suggest::suggest(wanted.name, names.iter().map(String::as_str)),
    };
    let near = near.into_iter().map(str::to_string).collect();
    PointError::NoTracepoint { component, name: text.to_string(), object, near }
}

/// A tracepoint's arguments.
struct TraceContext {
    object: Rc<Object>,
    names: Vec<String>,
    types: Vec<TypeId>,
    name: String,
    system: String,
}

impl TraceContext {
    /// Whether the argument, and all those before it, take one word each.
    fn is_word(&self, debug: &DebugInfo, index: usize) -> bool {
        let word = |id: &TypeId| {
            matches!(debug.resolve(*id), Ok((_, CType::Base { .. } | CType::Pointer(_) | CType::Enum { .. })))
        };
        index < MAX_ARGUMENTS && self.types.iter().take(index + 1).all(word)
    }
}

impl Context for TraceContext {
    fn variable(&self, name: &str) -> Result<TypedLocation, ContextError> {
        let Some(index) = self.names.iter().position(|known| known == name) else {
            return Err(if name == "return" { ContextError::NotReturn } else { ContextError::Unknown });
        };
        let debug = self.object.debug().map_err(|error| ContextError::DebugInfo(error.to_string()))?;
        if !self.is_word(debug, index) {
            return Err(ContextError::NoValue(vec!["it is passed as a struct, or after one".into()]));
        }
        // A tracepoint's handler has its arguments as registers: one word each, in order.
        let value = LongExpr::register(index as u32 * 8, Span::none());
        let type_id = self.types.get(index).copied().ok_or(ContextError::Unknown)?;
        Ok(TypedLocation { object: self.object.clone(), type_id, location: Location::Value(value) })
    }

    fn parameters(&self) -> Vec<String> {
        self.names.clone()
    }

    fn text(&self, name: &str) -> Option<String> {
        event_text(name, &self.system, &self.name)
    }

    fn has_variables(&self) -> bool {
        true
    }

    fn object(&self) -> Option<Rc<Object>> {
        Some(self.object.clone())
    }

    fn place(&self) -> String {
        format!("tracepoint {}:{}", self.system, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_by_header() {
        assert_eq!(system_of("include/trace/events/sched.h"), "sched");
        assert_eq!(system_of("include/trace/events/syscalls.h"), "raw_syscalls");
        assert_eq!(system_of("fs/iomap/./trace.h"), "iomap");
        assert_eq!(system_of("drivers/nvme/host/./trace.h"), "nvme");
        assert_eq!(system_of("fs/xfs/xfs_trace.h"), "xfs");
        assert_eq!(system_of("arch/x86/include/asm/msr-trace.h"), "msr");
        assert_eq!(system_of("include/trace/../../include/ras/ras_event.h"), "ras");
    }

    #[test]
    fn modules_that_may_have_it() {
        assert_eq!(
            EventPattern::parse("kvm_apic_accept_irq").candidate_modules(),
            ["kvm_apic_accept", "kvm_apic", "kvm"]
        );
        assert_eq!(EventPattern::parse("xfs:_file*").candidate_modules(), ["xfs"]);
        assert!(EventPattern::parse("_x").candidate_modules().is_empty());
    }

    #[test]
    fn a_plain_name_is_taken_whatever_its_system() {
        assert!(EventPattern::parse("raw:sys_enter").takes("raw_syscalls"));
        assert!(EventPattern::parse("sched:*").takes("sched"));
        assert!(!EventPattern::parse("sched:*").takes("irq"));
        assert!(EventPattern::parse("*").takes("irq"));
    }
}
