// SPDX-License-Identifier: GPL-2.0-or-later

//! What the arguments of a probe point can name in one object: functions, files, lines, callees, labels; for completion.
//!
//! Damaged debug information gives fewer names, or none.

use std::collections::BTreeSet;

use spile_debuginfo::{DebugInfo, Function, FunctionId, FunctionPattern};

/// Functions of one name.
fn named(debug: &DebugInfo, name: &str) -> Vec<(FunctionId, Function)> {
    let found = debug.find_functions(&FunctionPattern { name: name.to_string(), file: None }).unwrap_or_default();
    found.into_iter().filter_map(|id| Some((id, debug.function(id).ok()?))).collect()
}

/// Names of all functions, sorted; those that the compiler has put before others are left out.
pub fn functions(debug: &DebugInfo) -> Vec<String> {
    let mut names = debug.function_names().unwrap_or_default();
    names.retain(|name| !name.starts_with("__pfx_"));
    names
}

/// Paths of the files that declare a function that fits the shell pattern; sorted.
pub fn files(debug: &DebugInfo, name: &str) -> Vec<String> {
    let files: BTreeSet<String> = named(debug, name).into_iter().map(|(_, function)| function.file).collect();
    files.into_iter().filter(|file| !file.is_empty()).collect()
}

/// Lines of a function at which code of its own file begins; `file`: the end of the path of the declaring file.
pub fn lines(debug: &DebugInfo, name: &str, file: &str) -> Vec<u32> {
    let mut lines = BTreeSet::new();
    for (id, function) in named(debug, name).into_iter().filter(|(_, function)| function.file.ends_with(file)) {
        let statements = debug.statements(id).unwrap_or_default();
        let own = statements.into_iter().filter(|statement| statement.file == function.file);
        lines.extend(own.map(|statement| statement.line).filter(|line| *line >= function.line));
    }
    lines.into_iter().collect()
}

/// Names of the functions that a function calls, inlined ones included; sorted.
pub fn callees(debug: &DebugInfo, name: &str) -> Vec<String> {
    let mut names = BTreeSet::new();
    for (id, _) in named(debug, name) {
        let calls = debug.calls(id).unwrap_or_default();
        names.extend(calls.iter().filter_map(|call| Some(debug.function(call.callee).ok()?.name)));
    }
    names.into_iter().collect()
}

/// Names of the labels of a function; sorted.
pub fn labels(debug: &DebugInfo, name: &str) -> Vec<String> {
    let labels = named(debug, name).into_iter().flat_map(|(id, _)| debug.labels(id).unwrap_or_default());
    let names: BTreeSet<String> = labels.map(|label| label.name).collect();
    names.into_iter().collect()
}

/// The C prototypes of the functions of a name, each with the place of its declaration: `ssize_t vfs_read(struct file*
/// file, ...)`, `fs/read_write.c:450`. Each once.
pub fn prototypes(debug: &DebugInfo, name: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (id, function) in named(debug, name) {
        let parameters = debug.parameters(id).unwrap_or_default();
        let parameters: Vec<String> = parameters
            .iter()
            .map(|parameter| format!("{} {}", debug.type_name(parameter.type_id), parameter.name))
            .collect();
        let returns = function.return_type.map_or_else(|| "void".to_string(), |id| debug.type_name(id));
        let place = match function.file.is_empty() {
            true => String::new(),
            false => format!("{}:{}", function.file, function.line),
        };
        let all = if parameters.is_empty() { "void".to_string() } else { parameters.join(", ") };
        let one = (format!("{returns} {}({all})", function.name), place);
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}
