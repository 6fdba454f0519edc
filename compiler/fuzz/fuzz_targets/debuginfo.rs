// SPDX-License-Identifier: GPL-2.0-or-later

//! Any bytes as an object file, on which every query is called. Each gives an answer or an error.

#![no_main]

use std::path::Path;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use spile_debuginfo::{DebugInfo, Elf, FunctionPattern, Type, TypeId};

/// Functions looked at of one file: a fuzzer's inputs are small.
const FUNCTIONS: usize = 200;

fuzz_target!(|bytes: &[u8]| {
    let Ok(elf) = Elf::of_bytes(Path::new("fuzzed.ko"), bytes.to_vec()) else { return };
    let Ok(debug) = DebugInfo::open(Arc::new(elf), None, None) else { return };
    let all = FunctionPattern { name: "*".into(), file: None };
    for id in debug.find_functions(&all).unwrap_or_default().into_iter().take(FUNCTIONS) {
        let Ok(function) = debug.function(id) else { continue };
        let _ = (debug.statements(id), debug.calls(id), debug.labels(id));
        for at in function.bodies.iter().map(|body| body.entry).chain(function.inlined.iter().map(|copy| copy.address))
        {
            let mut variables = debug.parameters(id).unwrap_or_default();
            variables.extend(debug.locals(id, at).unwrap_or_default());
            for variable in variables {
                let _ = debug.variable(id, at, &variable.name);
                walk(&debug, variable.type_id, 0);
            }
        }
    }
    let _ = debug.export(None);
});

fn walk(debug: &DebugInfo, id: TypeId, depth: usize) {
    let _ = (debug.size_of(id), debug.type_name(id), debug.member(id, "x"));
    if depth > 6 {
        return;
    }
    match debug.resolve(id) {
        Ok((_, Type::Struct { members, .. })) => {
            members.iter().take(50).for_each(|member| walk(debug, member.type_id, depth + 1))
        }
        Ok((_, Type::Array { element, .. } | Type::Pointer(Some(element)))) => walk(debug, element, depth + 1),
        _ => {}
    }
}
