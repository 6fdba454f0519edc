// SPDX-License-Identifier: GPL-2.0-or-later

//! What the generated parser did not expect, as a problem.

use lalrpop_util::ParseError;
use spile_source::{FileId, Span};

use super::error::Problem;
use super::lexer::Token;

/// The problem that the parser found in program text that ends at `end`.
pub fn problem(file: FileId, end: usize, error: ParseError<usize, Token, Problem>) -> Problem {
    let (start, end, found, expected) = match error {
        ParseError::User { error } => return error,
        ParseError::InvalidToken { location } => (location, location, None, Vec::new()),
        ParseError::UnrecognizedEof { expected, .. } => (end, end, None, expected),
        ParseError::UnrecognizedToken { token: (start, token, end), expected } => (start, end, Some(token), expected),
        ParseError::ExtraToken { token: (start, token, end) } => (start, end, Some(token), Vec::new()),
    };
    let found = found.map_or("the end".to_string(), |token| token.to_string());
    let message = match expected.as_slice() {
        [only] => format!("found {found}, expected {}", only.replace('"', "`")),
        _ => format!("found {found}, which does not belong here"),
    };
    Problem::Syntax { message, span: Span::new(file, start, end) }
}
