// SPDX-License-Identifier: GPL-2.0-or-later

//! Script text to [`ast`].
//!
//!     bytes -lexer-> tokens -preprocess-> tokens of the language -items-> items -operand-> terminals -grammar-> tree
//!
//! Takes text already read and an [`Environment`] with the facts that the text may query; opens no file. Returns as
//! much of the tree as could be built, and all errors: each top-level item fails by itself.
//!
//! Terms: a *token* is a word of the text; a *terminal* is a token whose role in the grammar is settled; an *item* is a
//! top-level declaration (probe, alias, function, global, embedded C).

#![allow(clippy::indexing_slicing, reason = "positions come from the same text or list; fuzzing runs them all")]
#![allow(clippy::unused_self, reason = "the grammar calls all of them on one object")]

pub mod ast;
mod check;
mod construct;
pub mod environment;
pub mod error;
mod expected;
pub mod habit;
mod items;
pub mod layout;
mod lexer;
pub mod macros;
mod operand;
pub mod outline;
mod preprocess;
pub mod print;
mod token;
mod version;
pub mod visit;
pub mod words;

#[cfg(test)]
mod tests;

#[allow(
    clippy::all,
    clippy::pedantic,
    clippy::restriction,
    missing_docs,
    unused_imports,
    unused_parens,
    reason = "generated"
)]
mod grammar {
    include!(concat!(env!("OUT_DIR"), "/grammar.rs"));
}

use std::collections::BTreeSet;

pub use construct::{MAX_DEPTH, print_words};
pub use environment::{Configuration, Environment};
pub use macros::{Macro, Macros};
pub use version::compare_versions;

use construct::Builder;
use error::{MAX_PROBLEMS, SyntaxError};
use spile_source::diagnostic::Diagnostic;
use spile_source::{FileId, SourceMap, Span};
use token::{Kind, Op, Token};

/// The SystemTap version whose language is accepted, unless `--compatible` gives an older one.
pub const LANGUAGE_VERSION: &str = "5.6";

/// Maximum size of a script in bytes; spans are 32 bits.
const MAX_LENGTH: usize = 1 << 28;

/// Parses one file. Returns what could be parsed and all errors, in source order.
pub fn parse(
    sources: &mut SourceMap,
    file: FileId,
    environment: &Environment,
    macros: &Macros,
) -> (ast::Script, Vec<Diagnostic>) {
    let (script, problems) = parse_script(sources, file, environment, macros);
    (script, diagnostics(problems))
}

/// [`parse`], with its errors as facts.
pub fn parse_script(
    sources: &mut SourceMap,
    file: FileId,
    environment: &Environment,
    macros: &Macros,
) -> (ast::Script, Vec<SyntaxError>) {
    let mut script = ast::Script { file, items: Vec::new(), arguments: BTreeSet::new() };
    let Some(tokens) = read_tokens(sources, file) else {
        return (script, vec![SyntaxError::TooLong { span: Span::new(file, 0, 0) }]);
    };
    let preprocessed = preprocess::preprocess(sources, tokens, environment, macros);
    let tokens = preprocessed.tokens;
    let mut problems = preprocessed.problems;
    script.arguments = preprocessed.arguments;
    let is_poison = |token: &Token| token.kind == Kind::Poison;
    // After a preprocessor error, braces need not match.
    let reliable = tokens.iter().position(is_poison).unwrap_or(usize::MAX);
    let parser = grammar::TopItemParser::new();
    let mut failed = None;
    for piece in items::split(&tokens) {
        if problems.len() >= MAX_PROBLEMS {
            break;
        }
        let range = match piece {
            items::Piece::Item(range) => range,
            items::Piece::Problem { error, found } => {
                // What directly follows a broken item is probably part of it.
                if found < reliable && failed != Some(found) {
                    problems.push(error);
                }
                continue;
            }
        };
        let end = range.end;
        // Its error has been reported.
        if tokens[range.clone()].iter().any(is_poison) {
            failed = Some(end);
            continue;
        }
        let terminals = operand::resolve(sources, &tokens, range);
        let builder = Builder::new(sources, &tokens);
        match parser.parse(&builder, terminals) {
            Ok(items) => script.items.extend(items),
            Err(fail) => {
                problems.push(expected::explain(fail, &tokens, end));
                failed = Some(end);
            }
        }
        problems.extend(builder.into_problems());
    }
    problems.extend(check::check(&script));
    (script, problems)
}

/// Parses only probe points, as `-l` and `-L` take them: `vfs.{read,write}.return, timer.s(1)`; for `x = begin, end`,
/// the points that the alias expands to.
pub fn parse_probe_points(sources: &mut SourceMap, file: FileId) -> (Vec<ast::ProbePoint>, Vec<Diagnostic>) {
    let Some(tokens) = read_tokens(sources, file) else {
        return (Vec::new(), diagnostics(vec![SyntaxError::TooLong { span: Span::new(file, 0, 0) }]));
    };
    let preprocessed = preprocess::preprocess(sources, tokens, &Environment::default(), &Macros::default());
    if !preprocessed.problems.is_empty() {
        return (Vec::new(), diagnostics(preprocessed.problems));
    }
    let mut tokens = preprocessed.tokens;
    let names = |token: &Token| matches!(token.kind, Kind::Ident(_) | Kind::Keyword(_) | Kind::Op(Op::Dot));
    let named = tokens.iter().take_while(|token| names(token)).count();
    if named > 0 && matches!(tokens.get(named).map(|token| &token.kind), Some(Kind::Op(Op::Assign | Op::AddAssign))) {
        tokens.drain(..=named);
    }
    let builder = Builder::new(sources, &tokens);
    let terminals = operand::resolve_points(sources, &tokens);
    let parsed = grammar::PointsParser::new().parse(&builder, terminals);
    let mut problems = builder.into_problems();
    let points = parsed.unwrap_or_else(|fail| {
        problems.push(expected::explain(fail, &tokens, tokens.len()));
        Vec::new()
    });
    (points, diagnostics(problems))
}

/// Adds the macros of a library file (`.stpm`) to `macros`; returns its errors. A file with errors adds none.
pub fn collect_macros(
    sources: &mut SourceMap,
    file: FileId,
    environment: &Environment,
    macros: &mut Macros,
) -> Vec<Diagnostic> {
    let Some(tokens) = read_tokens(sources, file) else {
        return diagnostics(vec![SyntaxError::TooLong { span: Span::new(file, 0, 0) }]);
    };
    let preprocessed = preprocess::preprocess(sources, tokens, environment, macros);
    let mut problems = preprocessed.problems;
    if let Some(token) = preprocessed.tokens.iter().find(|token| token.kind != Kind::Poison) {
        problems.push(SyntaxError::NotAMacro { span: token.span, found: token.kind.describe() });
    }
    let broken =
        problems.iter().any(|problem| problem.diagnostic().severity == spile_source::diagnostic::Severity::Error);
    if !broken {
        for definition in preprocessed.definitions {
            let (name, span) = (definition.name.clone(), definition.span);
            if let Err(first) = macros.add(definition) {
                problems.push(SyntaxError::MacroRedefined { name, span, first });
            }
        }
    }
    diagnostics(problems)
}

/// A warning for each script argument that no script of this run uses.
pub fn unused_arguments<'a>(
    scripts: impl IntoIterator<Item = &'a ast::Script>,
    environment: &Environment,
) -> Vec<Diagnostic> {
    let used: BTreeSet<u32> = scripts.into_iter().flat_map(|script| script.arguments.iter().copied()).collect();
    let unused = |(at, text): (usize, &String)| {
        let number = at + 1;
        let used = u32::try_from(number).is_ok_and(|number| used.contains(&number));
        (!used).then(|| SyntaxError::UnusedArgument { number, text: text.clone() }.diagnostic())
    };
    environment.arguments.iter().enumerate().filter_map(unused).collect()
}

/// The tokens of a file; an error if it is too long for 32-bit spans.
fn read_tokens(sources: &SourceMap, file: FileId) -> Option<Vec<Token>> {
    let bytes = &sources.file(file).bytes;
    (bytes.len() <= MAX_LENGTH).then(|| lexer::lex(file, bytes))
}

/// Sorts by position within each file.
fn diagnostics(problems: Vec<SyntaxError>) -> Vec<Diagnostic> {
    let mut diagnostics: Vec<Diagnostic> = problems.iter().map(SyntaxError::diagnostic).collect();
    diagnostics.sort_by_key(|diagnostic| diagnostic.labels.first().map(|label| label.span));
    diagnostics
}
