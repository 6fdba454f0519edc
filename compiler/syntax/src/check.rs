// SPDX-License-Identifier: GPL-2.0-or-later

//! Checks of a file's items that need neither types nor other files.

use std::collections::HashMap;

use crate::ast::{Alias, Block, Item, Name, Script, Stmt, StmtKind};
use crate::error::SyntaxError;
use crate::visit;

/// Reports names that are declared twice, and `return` outside functions.
pub(super) fn check(script: &Script) -> Vec<SyntaxError> {
    let mut problems = Vec::new();
    let mut globals = HashMap::new();
    for item in &script.items {
        match item {
            Item::Global(global) => declare(&mut globals, "global", &global.name, &mut problems),
            Item::Function(function) => {
                let mut names = HashMap::new();
                for parameter in &function.parameters {
                    declare(&mut names, "parameter", &parameter.name, &mut problems);
                }
            }
            Item::Probe(probe) => returns(&probe.body, &mut problems),
            Item::Alias(Alias { prologue, epilogue, .. }) => {
                [prologue, epilogue].into_iter().flatten().for_each(|block| returns(block, &mut problems));
            }
            Item::EmbeddedC(_) => {}
        }
    }
    problems
}

fn declare<'a>(
    names: &mut HashMap<&'a str, &'a Name>,
    what: &'static str,
    name: &'a Name,
    problems: &mut Vec<SyntaxError>,
) {
    match names.get(name.text.as_str()) {
        Some(first) => {
            problems.push(SyntaxError::Redeclared {
                what,
                name: name.text.clone(),
                span: name.span,
                first: first.span,
            });
        }
        None => {
            names.insert(&name.text, name);
        }
    }
}

fn returns(block: &Block, problems: &mut Vec<SyntaxError>) {
    visit::statements(block, &mut |statement: &Stmt| {
        if let StmtKind::Return(_) = statement.kind {
            problems.push(SyntaxError::ReturnInProbe { span: statement.span });
        }
    });
}
