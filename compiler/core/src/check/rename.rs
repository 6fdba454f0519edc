// SPDX-License-Identifier: GPL-2.0-or-later

//! Guesses the new name of something that is gone.

use std::collections::HashSet;

use super::types::{Typed, is_same};
use spile_debuginfo::{DebugInfo, Function, FunctionId, FunctionPattern, MemberError, TypeId};

/// Among the functions that only the second kernel has, the one most similar to the function: with the same prototype, and
/// either in the same file or with a very similar name.
pub(super) fn function(first: &DebugInfo, id: FunctionId, second: &DebugInfo) -> Option<Function> {
    let gone = first.function(id).ok()?;
    let old: HashSet<String> = first.function_names().ok()?.into_iter().collect();
    let mut best: Option<(f64, Function)> = None;
    let fresh = second.function_names().ok()?.into_iter().filter(|name| !old.contains(name));
    for name in fresh.filter(|name| !name.starts_with("__pfx_")) {
        let likeness = similarity(&gone.name, &name);
        if likeness < FAR {
            continue;
        }
        let pattern = FunctionPattern { name, file: None };
        for candidate in second.find_functions(&pattern).unwrap_or_default() {
            let Ok(function) = second.function(candidate) else { continue };
            let same_file = !gone.file.is_empty() && gone.file == function.file;
            let near = likeness >= NEAR || same_file;
            if !near || !same_prototype((first, id, &gone), (second, candidate, &function)) {
                continue;
            }
            let score = likeness + if same_file { 0.3 } else { 0.0 };
            if best.as_ref().is_none_or(|(before, _)| score > *before) {
                best = Some((score, function));
            }
        }
    }
    best.map(|(_, function)| function)
}

/// Names less similar than this have nothing in common.
const FAR: f64 = 0.5;
/// Names at least this similar count as renamed, wherever the function is.
const NEAR: f64 = 0.8;

/// 0 to 1. A name with a prefix or suffix added (`__f`, `f_noprof`) is similar.
fn similarity(one: &str, other: &str) -> f64 {
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    let affixed =
        short.len() > 3 && (long.starts_with(short) || long.ends_with(short)) && long.len() - short.len() <= 12;
    let plain = strsim::normalized_damerau_levenshtein(one, other);
    // Of several, the one with the shortest addition.
    if affixed { plain.max(NEAR + 0.2 * plain) } else { plain }
}

type Declared<'d> = (&'d DebugInfo, FunctionId, &'d Function);

fn same_prototype((first, id, one): Declared, (second, other_id, other): Declared) -> bool {
    let returns = match (one.return_type, other.return_type) {
        (None, None) => true,
        (Some(a), Some(b)) => is_same(Typed { debug: first, id: a }, Typed { debug: second, id: b }),
        _ => false,
    };
    let (Ok(a), Ok(b)) = (first.parameters(id), second.parameters(other_id)) else { return false };
    let same = |(a, b): (&spile_debuginfo::Variable, &spile_debuginfo::Variable)| {
        is_same(Typed { debug: first, id: a.type_id }, Typed { debug: second, id: b.type_id })
    };
    returns && a.len() == b.len() && a.iter().zip(&b).all(same)
}

/// The parameter in the same position and with the same type, whose name the first kernel does not have.
pub(super) fn parameter(
    first: (&DebugInfo, FunctionId),
    name: &str,
    second: (&DebugInfo, FunctionId),
) -> Option<String> {
    let (old, new) = (first.0.parameters(first.1).ok()?, second.0.parameters(second.1).ok()?);
    let (at, gone) = old.iter().enumerate().find(|(_, variable)| variable.name == name)?;
    let found = new.get(at).filter(|variable| old.iter().all(|known| known.name != variable.name))?;
    let same = is_same(Typed { debug: first.0, id: gone.type_id }, Typed { debug: second.0, id: found.type_id });
    same.then(|| found.name.clone())
}

/// The member of the second struct, absent in the first, that is most similar to the missing one: of the same type, and
/// with a similar name or in the same position.
pub(super) fn member(first: Typed, name: &str, second: Typed) -> Option<String> {
    let gone = first.debug.member(first.id, name).ok()?;
    let old: HashSet<String> = names(first.debug, first.id).into_iter().collect();
    let mut best: Option<(f64, String)> = None;
    for candidate in names(second.debug, second.id) {
        if old.contains(&candidate) {
            continue;
        }
        let Ok(found) = second.debug.member(second.id, &candidate) else { continue };
        let same =
            is_same(Typed { debug: first.debug, id: gone.type_id }, Typed { debug: second.debug, id: found.type_id });
        let likeness = similarity(name, &candidate);
        if !same || likeness < FAR {
            continue;
        }
        let score = likeness + if found.offset == gone.offset { 0.3 } else { 0.0 };
        if best.as_ref().is_none_or(|(before, _)| score > *before) {
            best = Some((score, candidate));
        }
    }
    best.map(|(_, name)| name)
}

/// Names of a struct's members, including those in anonymous structs and unions.
fn names(debug: &DebugInfo, id: TypeId) -> Vec<String> {
    // No member has this name.
    match debug.member(id, "") {
        Err(MemberError::NoMember { candidates }) => candidates,
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_near() {
        assert!(similarity("__kmalloc", "__kmalloc_noprof") >= NEAR);
        assert!(similarity("vmalloc", "vmalloc_noprof") > similarity("vmalloc", "vmalloc_32_noprof"));
        assert!(similarity("f_count", "f_ref") < NEAR);
        assert!(similarity("i_ctime", "__i_ctime") >= NEAR);
        assert!(similarity("vfs_read", "tcp_sendmsg") < FAR);
    }
}
