// SPDX-License-Identifier: GPL-2.0-or-later

//! Finds a function that a point looked for in another object: users write `kernel.function` for functions of modules,
//! and the other way round.

use super::{Resolver, form};
use spile_debuginfo::target::Owners;
use spile_syntax::ast::{Component, Literal};

/// What a search for a function in other objects has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Elsewhere {
    /// Points, as they are to be written.
    pub points: Vec<String>,
    /// Number of modules that were not searched.
    pub unsearched: usize,
}

/// The point with the object changed to each that has the function; empty if there is none, or if the point is not one of the
/// kernel or one module.
pub fn elsewhere(components: &[Component], name: &str, resolver: &Resolver) -> Elsewhere {
    let Ok(kernel) = resolver.kernel() else { return Elsewhere::default() };
    let is_owner = |component: &Component| {
        let argument = component.argument.is_some();
        (component.name == "kernel" && !argument) || (component.name == "module" && argument)
    };
    let kprobe = components.first().is_some_and(|first| first.name == "kprobe");
    let at = usize::from(kprobe);
    let owner = components.get(at).filter(|component| is_owner(component));
    // `kprobe.function("f")` is one of the kernel.
    let rest = components.get(at + usize::from(owner.is_some())..).unwrap_or_default();
    let is_function = |component: &Component| ["function", "statement"].contains(&component.name.as_str());
    if owner.is_none() && !kprobe || !rest.first().is_some_and(is_function) {
        return Elsewhere::default();
    }
    let module = owner.and_then(|owner| match &owner.argument {
        Some(Literal::String(name)) => Some(String::from_utf8_lossy(name).replace('-', "_")),
        _ => None,
    });
    let mut owners: Vec<String> = Vec::new();
    if module.is_some() && kernel.vmlinux_here().is_some_and(|vmlinux| vmlinux.symbol_address(name).is_some()) {
        owners.push(if kprobe { String::new() } else { "kernel.".into() });
    }
    let Owners { found, unsearched } = kernel.modules_with_function(name);
    let modules = found.into_iter().filter(|other| module.as_ref() != Some(other));
    owners.extend(modules.map(|module| format!("module(\"{module}\").")));
    let (first, rest) = (if kprobe { "kprobe." } else { "" }, form::spelling(rest));
    let points = owners.into_iter().map(|owner| format!("{first}{owner}{rest}")).collect();
    Elsewhere { points, unsearched }
}
