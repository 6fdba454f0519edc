// SPDX-License-Identifier: GPL-2.0-or-later

//! Finds a function that a point looked for in another object: users write `kernel.function` for functions of modules,
//! and the other way round.

use super::error::OtherOwners;
use super::{Resolver, form};
use spile_debuginfo::target::Owners;
use spile_syntax::ast::{Component, Literal};

/// The point with the object changed to each that has the function; empty if there is none, or if the point is not one of the
/// kernel or one module.
pub fn other_owners(components: &[Component], name: &str, resolver: &Resolver) -> OtherOwners {
    let Ok(kernel) = resolver.kernel() else { return OtherOwners::default() };
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
        return OtherOwners::default();
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
    OtherOwners { points, unsearched }
}
