// SPDX-License-Identifier: GPL-2.0-or-later

//! The script's embedded C: a separate translation unit.

use super::tables::EmbeddedExpression;
use crate::program::{EmbeddedC, FunctionBody, GlobalId, Program, Type};
use spile_source::{Origin, SourceMap};

/// The translation unit with the script's embedded C.
#[derive(Debug)]
pub struct Embedded {
    /// Top-level `%{ %}`, in order.
    pub declarations: Vec<SourceText>,
    /// Script functions with a body in C, in the order of the program.
    pub functions: Vec<EmbeddedFunction>,
    /// Expressions in C, in the order of their planning.
    pub expressions: Vec<EmbeddedExpression>,
    /// Globals that it uses: visible to both units.
    pub globals: Vec<GlobalId>,
}

impl Embedded {
    /// `functions` and `expressions`: as planned.
    pub(super) fn of(
        program: &Program,
        sources: &SourceMap,
        functions: Vec<EmbeddedFunction>,
        expressions: Vec<EmbeddedExpression>,
    ) -> Embedded {
        Embedded {
            declarations: program.embedded.iter().map(|code| located(code, sources)).collect(),
            functions,
            globals: shared_globals(program, &expressions),
            expressions,
        }
    }

    /// Whether the module has no such unit.
    pub fn is_empty(&self) -> bool {
        self.declarations.is_empty() && self.functions.is_empty() && self.expressions.is_empty()
    }
}

/// C text with its origin, for `#line`.
#[derive(Debug)]
pub struct SourceText {
    /// The C, as written.
    pub text: String,
    /// Name of the script or tapset file.
    pub file: String,
    /// Line of the file that the C begins in, from 1 on.
    pub line: usize,
}

/// A script function with a body in C.
#[derive(Debug)]
pub struct EmbeddedFunction {
    /// Name in C.
    pub symbol: String,
    /// As the script spells it.
    pub name: String,
    /// Name and type of each parameter, in order.
    pub parameters: Vec<(String, Type)>,
    /// Type of the result; None: it returns nothing.
    pub returns: Option<Type>,
    /// The body.
    pub code: SourceText,
    /// Arguments and result are the members of `THIS`.
    pub unmangled: bool,
}

/// The text of embedded C with its place.
pub(super) fn located(code: &EmbeddedC, sources: &SourceMap) -> SourceText {
    SourceText {
        text: code.text.clone(),
        file: sources.file(code.span.file).name.clone(),
        line: sources.line_column(code.span).0,
    }
}

/// The embedded C of functions and expressions, in order.
fn all<'p>(program: &'p Program, expressions: &'p [EmbeddedExpression]) -> impl Iterator<Item = &'p EmbeddedC> {
    let functions = program.functions.iter().filter_map(|function| match &function.body {
        FunctionBody::EmbeddedC(code) => Some(code),
        FunctionBody::Script(_) => None,
    });
    functions.chain(expressions.iter().map(|expression| &expression.code))
}

/// The globals that embedded C declares as used, ascending.
fn shared_globals(program: &Program, expressions: &[EmbeddedExpression]) -> Vec<GlobalId> {
    let mut globals: Vec<GlobalId> =
        all(program, expressions).flat_map(|code| code.globals.iter().map(|&(global, _)| global)).collect();
    globals.sort_unstable();
    globals.dedup();
    globals
}

/// C of the script, not of the library, without `/* pure */`: it may write to the kernel.
pub(super) fn ungated(program: &Program, sources: &SourceMap, expressions: &[EmbeddedExpression]) -> Vec<String> {
    let writes = |code: &EmbeddedC| {
        let is_own = sources.file(code.span.file).origin == Origin::User;
        is_own && !code.text.contains("/* pure */")
    };
    let functions = program.functions.iter().filter_map(|function| match &function.body {
        FunctionBody::EmbeddedC(code) if writes(code) => Some(function.name.clone()),
        _ => None,
    });
    let others = expressions.iter().filter(|expression| writes(&expression.code));
    functions.chain(others.map(|expression| format!("C at {}", sources.place(expression.code.span)))).collect()
}
