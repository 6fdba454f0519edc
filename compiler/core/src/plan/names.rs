// SPDX-License-Identifier: GPL-2.0-or-later

//! Names in C: of functions, of handlers, of the script's variables.

use std::collections::HashMap;

use crate::program::{FunctionBody, Label, Probe, Program, Registers};

/// What a function is called in C.
pub(super) struct FunctionName {
    /// Name in C.
    pub symbol: String,
    /// It is embedded C, in the other unit.
    pub embedded: bool,
}

/// Makes names unique: the first one stays, others get a number.
#[derive(Default)]
pub(super) struct UniqueNames<'n>(HashMap<&'n str, u32>);

impl<'n> UniqueNames<'n> {
    /// The suffix for this name.
    pub fn suffix(&mut self, name: &'n str) -> String {
        let count = self.0.entry(name).or_default();
        *count += 1;
        if *count > 1 { format!("_{count}") } else { String::new() }
    }
}

/// By function of the program. Overloads and private functions of different files can share a name.
pub(super) fn functions(program: &Program) -> Vec<FunctionName> {
    let mut numbered = UniqueNames::default();
    program
        .functions
        .iter()
        .map(|function| {
            let embedded = matches!(function.body, FunctionBody::EmbeddedC(_));
            let prefix = if embedded { "spile_embedded" } else { "function" };
            let symbol = format!("{prefix}_{}{}", c_name(&function.name), numbered.suffix(&function.name));
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
