// SPDX-License-Identifier: GPL-2.0-or-later

//! Names in C: of functions, of handlers, of the script's variables.

use std::collections::HashSet;

use crate::program::{FunctionBody, Label, Probe, Program, Registers};

/// What a function is called in C.
pub(super) struct FunctionName {
    /// Name in C.
    pub symbol: String,
    /// It is embedded C, in the other unit.
    pub embedded: bool,
}

/// Makes names of the script unique in C: the first one stays, others get a number that makes none of the names before.
#[derive(Default)]
pub(super) struct UniqueNames(HashSet<String>);

impl UniqueNames {
    /// A name in C for this name of the script, unlike those before.
    pub fn unique(&mut self, name: &str) -> String {
        let name = c_name(name);
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| !self.0.contains(name));
        let free = free.unwrap_or(name);
        self.0.insert(free.clone());
        free
    }
}

/// By function of the program. Overloads and private functions of different files can share a name.
pub(super) fn functions(program: &Program) -> Vec<FunctionName> {
    let mut names = UniqueNames::default();
    program
        .functions
        .iter()
        .map(|function| {
            let embedded = matches!(function.body, FunctionBody::EmbeddedC(_));
            // Not spile_...: those are the runtime's.
            let prefix = if embedded { "embedded_function" } else { "function" };
            let symbol = format!("{prefix}_{}", names.unique(&function.name));
            FunctionName { symbol, embedded }
        })
        .collect()
}

/// The symbol of a probe's handler: `probe_7_vfs_read_return`.
pub(super) fn handler(index: usize, probe: &Probe) -> String {
    let mechanism = probe.attachment.mechanism;
    let what = match mechanism.label {
        Label::Word(word) => word.to_string(),
        Label::Subject => c_name(&probe.attachment.subject),
        Label::Function if mechanism.registers == Registers::Return => format!("{}_return", c_name(&probe.function)),
        Label::Function => c_name(&probe.function),
    };
    format!("probe_{index}_{what}")
}

/// A name of the script in C: letters, digits and `_`.
pub(super) fn c_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}
