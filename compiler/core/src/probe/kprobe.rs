// SPDX-License-Identifier: GPL-2.0-or-later

//! `kprobe.function("f")`, `kprobe.module("m").function("f")` and `kprobe.statement(N).absolute`: kernel code by its symbol
//! or address, without debug information; arguments are available through `int_arg(N)` and the like.
//!
//! If the kernel's symbols are available, a name is looked up in them, so that `?` and `!` work.

use std::rc::Rc;

use super::code;
use super::function::{NEVER_RETURNS, TO_ANOTHER_TASK};
use super::{Context, Form, OtherOwners, Point, PointError, ProbeFamily, Resolver, Similar, Site};
use crate::program::{Attachment, Registers};
use spile_base::glob;
use spile_debuginfo::target::Object;
use spile_source::Span;

/// The family of `kprobe.function` and the like.
pub(super) static FAMILY: ProbeFamily = ProbeFamily::new(
    &[
        Form { spelling: "kprobe.function(string)", doc: "entry of a kernel function, by its symbol" },
        Form { spelling: "kprobe.function(string).call", doc: "the same" },
        Form { spelling: "kprobe.function(string).return", doc: "return of a kernel function, by its symbol" },
        Form {
            spelling: "kprobe.function(string).return.maxactive(number)",
            doc: "the same, for at most N calls at once",
        },
        Form { spelling: "kprobe.module(string).function(string)", doc: "entry of a function of a loaded module" },
        Form { spelling: "kprobe.module(string).function(string).call", doc: "the same" },
        Form {
            spelling: "kprobe.module(string).function(string).return",
            doc: "return of a function of a loaded module",
        },
        Form {
            spelling: "kprobe.module(string).function(string).return.maxactive(number)",
            doc: "the same, for at most N calls at once",
        },
        Form {
            spelling: "kprobe.statement(number).absolute",
            doc: "the instruction at an address of the running kernel",
        },
    ],
    resolve,
);

fn resolve(point: &Point, resolver: &mut Resolver) -> Result<Vec<Site>, PointError> {
    let maxactive = match point.number("maxactive") {
        None => 0,
        Some((value, _)) if (0..=65535).contains(&value) => value as u32,
        Some((_, component)) => return Err(PointError::Range { component, low: 0, high: 65535 }),
    };
    let returning = point.has("return");
    if let Some((address, component)) = point.number("statement") {
        // As for kernel.statement(N).absolute: whether an instruction begins there is not known.
        if !resolver.is_guru() {
            return Err(PointError::Guru { component, what: "a probe at an absolute address" });
        }
        let attachment = code::at_address(address as u64);
        return Ok(vec![site(point.spelling(), "", "kernel", attachment)]);
    }
    let (pattern, component) = point.string("function").unwrap_or((String::new(), point.span()));
    let module = point.string("module").map(|(name, _)| name.replace('-', "_"));
    let object = match &module {
        Some(name) => resolver.module(name).ok(),
        None => resolver.kernel().ok().and_then(|kernel| kernel.vmlinux().ok()),
    };
    let owner = module.as_ref().map_or("kprobe".to_string(), |module| format!("kprobe.module(\"{module}\")"));
    let suffix = if returning { ".return" } else { "" };
    let mut names = names(&pattern, object.as_ref(), component)?;
    let refused = |name: &str| refusal(object.as_deref(), name, module.is_some(), returning);
    let first = names.first().and_then(|name| Some((name.clone(), refused(name)?)));
    names.retain(|name| refused(name).is_none());
    if let Some((name, why)) = first.filter(|_| names.is_empty()) {
        return Err(PointError::NotProbeable { component, name, why: why.into() });
    }
    let sites = names.into_iter().map(|name| {
        let symbol = module.as_ref().map_or(name.clone(), |module| format!("{module}:{name}"));
        let attachment = code::at_symbol(symbol, returning, maxactive);
        site(format!("{owner}.function(\"{name}\"){suffix}"), &name, module.as_deref().unwrap_or("kernel"), attachment)
    });
    Ok(sites.collect())
}

/// Why a function cannot be probed, though it has a symbol.
fn refusal(object: Option<&Object>, name: &str, in_module: bool, returning: bool) -> Option<&'static str> {
    if returning && name == NEVER_RETURNS {
        return Some(TO_ANOTHER_TASK);
    }
    if !in_module && spile_debuginfo::is_unlisted(name) {
        return Some(code::why(spile_debuginfo::Reason::Blacklisted));
    }
    code::refusal_of_symbol(object?, object?.symbol_place(name)?)
}

fn site(point: String, function: &str, module: &str, attachment: Attachment) -> Site {
    let returning = attachment.mechanism.registers == Registers::Return;
    let context = Rc::new(SymbolContext { returning });
    Site { point, function: function.into(), module: module.into(), attachment, context }
}

struct SymbolContext {
    returning: bool,
}

impl Context for SymbolContext {
    fn is_return(&self) -> bool {
        self.returning
    }

    fn has_registers(&self) -> bool {
        true
    }

    fn place(&self) -> String {
        "a kprobe without debug information, whose arguments are had by long_arg(N)".into()
    }
}

/// The functions that a name or pattern matches; without an object the name itself.
fn names(pattern: &str, object: Option<&Rc<Object>>, component: Span) -> Result<Vec<String>, PointError> {
    let Some(object) = object else {
        if glob::is_pattern(pattern) {
            let what = "a pattern of functions, where neither debug information nor symbols are available".to_string();
            return Err(PointError::Unsupported { component, what });
        }
        return Ok(vec![pattern.to_string()]);
    };
    // Where there are no symbols, only BTF, which does not describe all functions, a name is looked up when the module is loaded.
    let has_symbol = |name: &str| object.symbol_address(name).is_some() || !object.has_symbols();
    if !glob::is_pattern(pattern) && has_symbol(pattern) {
        return Ok(vec![pattern.to_string()]);
    }
    let described = if object.is_kernel() { "the kernel".to_string() } else { format!("module {}", object.name()) };
    if !glob::is_pattern(pattern) {
        return Err(PointError::NoFunction {
            component,
            name: pattern.to_string(),
            object: described,
            near: Similar::InObject(object.clone()),
            other_owners: OtherOwners::default(),
        });
    }
    let known = object.debug().ok().and_then(|debug| debug.function_names().ok()).unwrap_or_default();
    // A function that is inlined everywhere has no symbol.
    let there = |name: &String| !name.starts_with("__pfx_") && glob::matches(pattern, name) && has_symbol(name);
    let names: Vec<String> = known.into_iter().filter(there).collect();
    if names.is_empty() {
        return Err(PointError::NoMatch { component, pattern: pattern.to_string(), object: described });
    }
    Ok(names)
}
