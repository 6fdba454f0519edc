// SPDX-License-Identifier: GPL-2.0-or-later

//! `kernel.trace("syscalls:sys_enter_NAME")` and `sys_exit_NAME`: the events of system calls by name that perf and bpftrace
//! list. The kernel makes them of two tracepoints for all calls (kernel/trace/trace_syscalls.c), and so does this: they
//! are attached as [`super::syscall`] is.
//!
//! The fields are those of the kernel's events: `$__syscall_nr` and the arguments by the names of SYSCALL_DEFINE, or
//! `$ret`; `$id` beside them, as in raw_syscalls. Only calls of 64-bit programs are meant, as there.

use std::rc::Rc;

use super::context::event_text;
use super::syscall::{ARGUMENTS, attachment, native_number, word};
use super::{Context, ContextError, Location, PointError, Resolver, Site, TypedLocation};
use crate::program::LongExpr;
use spile_base::glob;
use spile_debuginfo::target::Object;
use spile_debuginfo::{DebugInfo, FunctionPattern, TypeId, Variable};
use spile_source::Span;

/// The trace system of the events.
const SYSTEM: &str = "syscalls";
/// What their names begin with, and whether they are at the return.
const KINDS: [(&str, bool); 2] = [("sys_enter_", false), ("sys_exit_", true)];
/// What precedes a call's name in that of the function that has its parameters (SYSCALL_DEFINE since 4.17).
const PREFIX: &str = "__do_sys_";

/// The sites of events that fit; none for what names no events of system calls. Patterns mean them only if the system
/// does: `kernel.trace("*")` has every call by raw_syscalls already.
pub(super) fn resolve(
    system: Option<&str>,
    name: &str,
    object: &Rc<Object>,
    component: Span,
    resolver: &mut Resolver,
) -> Result<Vec<Site>, PointError> {
    let named = match system {
        Some(system) => system != "*" && glob::matches(system, SYSTEM),
        None => !glob::is_pattern(name),
    };
    if !named || !object.is_kernel() {
        return Ok(Vec::new());
    }
    let failed = |error: spile_debuginfo::Error| PointError::DebugInfo { component, message: error.to_string() };
    let debug = object.debug().map_err(failed)?;
    let mut sites = Vec::new();
    for (prefix, returning) in KINDS {
        let functions = match name.strip_prefix(prefix) {
            Some(call) => format!("{PREFIX}{call}"),
            None if glob::is_pattern(name) => format!("{PREFIX}*"),
            None => continue,
        };
        let mut seen = Vec::new();
        for id in debug.find_functions(&FunctionPattern { name: functions, file: None }).map_err(failed)? {
            let function = debug.function(id).map_err(failed)?;
            let Some(call) = function.name.strip_prefix(PREFIX) else { continue };
            let event = format!("{prefix}{call}");
            let Some(number) = number_of(call).filter(|_| glob::matches(name, &event)) else { continue };
            if seen.contains(&number) {
                continue;
            }
            seen.push(number);
            let mut arguments = debug.parameters(id).map_err(failed)?;
            // What calls without arguments are given.
            arguments.retain(|argument| argument.name != "__unused");
            arguments.truncate(if returning { 0 } else { ARGUMENTS });
            let context = EventContext { object: object.clone(), event: event.clone(), number, returning, arguments };
            sites.push(Site {
                point: format!("kernel.trace(\"{SYSTEM}:{event}\")"),
                function: String::new(),
                module: "kernel".into(),
                attachment: attachment(Some((Some(number), None)), returning),
                context: Rc::new(context),
            });
        }
    }
    if !sites.is_empty() {
        resolver.target(object)?;
    }
    Ok(sites)
}

/// The number of a call by the name in the kernel's source, of 64-bit programs.
fn number_of(call: &str) -> Option<u32> {
    let name = match call {
        "newstat" => "stat",
        "newlstat" => "lstat",
        "newfstat" => "fstat",
        "newuname" => "uname",
        "umount" => "umount2",
        "sendfile64" => "sendfile",
        // Predecessors, which only 32-bit programs have.
        "stat" | "lstat" | "fstat" | "uname" => return None,
        _ => call,
    };
    native_number(name)
}

struct EventContext {
    object: Rc<Object>,
    event: String,
    number: u32,
    returning: bool,
    arguments: Vec<Variable>,
}

impl EventContext {
    fn type_named(debug: &DebugInfo, name: &str) -> Result<TypeId, ContextError> {
        let found = debug.find_type(name).map_err(|error| ContextError::DebugInfo(error.to_string()))?;
        found.ok_or(ContextError::Unknown)
    }
}

impl Context for EventContext {
    fn variable(&self, name: &str) -> Result<TypedLocation, ContextError> {
        let debug = self.object.debug().map_err(|error| ContextError::DebugInfo(error.to_string()))?;
        match name {
            "__syscall_nr" | "nr" | "id" => {
                let value = LongExpr::constant(self.number.into(), Span::none());
                let type_id = Self::type_named(debug, "int")?;
                Ok(TypedLocation { object: self.object.clone(), type_id, location: Location::Value(value) })
            }
            "ret" if self.returning => Ok(word(&self.object, ARGUMENTS, Self::type_named(debug, "long int")?)),
            "return" => Err(ContextError::NotReturn),
            _ => {
                let index = self.arguments.iter().position(|argument| argument.name == name);
                let index = index.ok_or(ContextError::Unknown)?;
                let argument = self.arguments.get(index).ok_or(ContextError::Unknown)?;
                Ok(word(&self.object, index, argument.type_id))
            }
        }
    }

    fn parameters(&self) -> Vec<String> {
        let fields = self.arguments.iter().map(|argument| argument.name.clone());
        let result = self.returning.then(|| "ret".to_string());
        std::iter::once("__syscall_nr".to_string()).chain(fields).chain(result).collect()
    }

    fn text(&self, name: &str) -> Option<String> {
        event_text(name, SYSTEM, &self.event)
    }

    fn has_variables(&self) -> bool {
        true
    }

    fn object(&self) -> Option<Rc<Object>> {
        Some(self.object.clone())
    }

    fn place(&self) -> String {
        format!("tracepoint {SYSTEM}:{}", self.event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_called_as_in_the_source() {
        assert_eq!(number_of("openat"), Some(257));
        assert_eq!(number_of("newfstat"), Some(5));
        assert_eq!((number_of("fstat"), number_of("umount")), (None, Some(166)));
        assert_eq!((number_of("waitpid"), number_of("none")), (None, None));
    }
}
