// SPDX-License-Identifier: GPL-2.0-or-later

//! From the text of a bpftrace program to that of a script which does the same.
//!
//!     text -> items (probes, each with points, filter and body) -> tokens -> syntax tree -> script text
//!
//! The common part of the language is translated, as in bpftrace 0.17 to 0.23 (bpftrace(8)). What has no counterpart
//! is an error that says so. No kernel is asked: names of functions and members are copied, and checked when the script
//! is compiled.

mod ast;
mod convert;
mod error;
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
mod items;
mod lexer;
mod points;
mod unexpected;

use spile_source::FileId;
use spile_source::diagnostic::Diagnostic;

/// The script that does what `program` does; `file` is where spans of messages point to; `library` has the path of a shared
/// library that is named without one, `libc`.
///
/// # Errors
///
/// Diagnostics in the order of the text: syntax errors, or else parts without a counterpart in a script.
pub fn translate(
    file: FileId,
    program: &str,
    library: &dyn Fn(&str) -> Option<String>,
) -> Result<String, Vec<Diagnostic>> {
    let parsed =
        items::split(file, program).and_then(|parts| Ok((parse(file, program, &parts.items)?, parts.constants)));
    let (probes, constants) = parsed.map_err(|problem| vec![problem.diagnostic()])?;
    let script = convert::script(&probes, constants, library);
    script.map_err(|problems| problems.iter().map(error::Problem::diagnostic).collect())
}

fn parse(file: FileId, program: &str, items: &[items::Item]) -> Result<Vec<ast::Probe>, error::Problem> {
    items.iter().map(|item| parse_probe(file, program, item)).collect()
}

fn parse_probe(file: FileId, program: &str, item: &items::Item) -> Result<ast::Probe, error::Problem> {
    let filter = match &item.filter {
        Some(range) => {
            let tokens = lexer::lex(file, program, range.clone())?;
            Some(
                grammar::FilterParser::new()
                    .parse(file, tokens)
                    .map_err(|error| unexpected::problem(file, range.end, error))?,
            )
        }
        None => None,
    };
    let tokens = lexer::lex(file, program, item.body.clone())?;
    let body = grammar::BlockParser::new().parse(file, tokens);
    let body = body.map_err(|error| unexpected::problem(file, item.body.end, error))?;
    Ok(ast::Probe { points: item.points.clone(), filter, body })
}

#[cfg(test)]
mod tests;
