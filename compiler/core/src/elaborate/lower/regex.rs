// SPDX-License-Identifier: GPL-2.0-or-later

//! `=~` and `!~`: their patterns, each compiled once.

use std::collections::HashMap;

use super::{Lowering, groups};
use crate::elaborate::error::{Error, LiteralError};
use crate::elaborate::literal::span_inside;
use crate::elaborate::unit::Unit;
use crate::program::{Automaton, Expr, LongExpr, LongKind, Program, Regex, RegexId};
use spile_source::{SourceMap, Span};
use spile_syntax::ast;

/// The patterns seen so far.
#[derive(Default)]
pub(super) struct Regexes {
    /// By pattern, and whether it has groups.
    ids: HashMap<(Vec<u8>, bool), RegexId>,
    pub(super) compiled: Vec<Regex>,
    /// Those that are too large to record where their groups match, with the error where that is needed.
    without_groups: Vec<(RegexId, Error)>,
}

impl Lowering<'_, '_> {
    pub(super) fn lower_matches(
        &mut self,
        unit: &Unit,
        text: &ast::Expr,
        (pattern, pattern_span): (&[u8], Span),
        negated: bool,
        span: Span,
    ) -> Result<Expr, Error> {
        let text = Box::new(self.lower_string(unit, text)?);
        // Both operators set the groups, as in SystemTap.
        let regex = self.regex(pattern, pattern_span, self.typed.groups_asked)?;
        let matches = LongExpr { kind: LongKind::Matches { regex, text }, span };
        Ok(if negated { LongExpr::not(matches, span) } else { matches }.into())
    }

    fn regex(&mut self, pattern: &[u8], span: Span, groups: bool) -> Result<RegexId, Error> {
        let key = (pattern.to_vec(), groups);
        if let Some(&id) = self.regexes.ids.get(&key) {
            return Ok(id);
        }
        let failed = |error| regex_error(self.env.sources, error, pattern, span);
        let plain = || spile_regex::compile(pattern).map(Automaton::Plain).map_err(failed);
        let id = RegexId(self.regexes.compiled.len() as u32);
        let automaton = match groups {
            true => match spile_regex::compile_groups(pattern) {
                Ok(tagged) => Automaton::Tagged(tagged),
                // Not every handler of the script asks for groups.
                Err(error) => {
                    let automaton = plain()?;
                    self.regexes.without_groups.push((id, failed(error)));
                    automaton
                }
            },
            false => plain()?,
        };
        self.regexes.compiled.push(Regex { pattern: pattern.to_vec(), automaton });
        self.regexes.ids.insert(key, id);
        Ok(id)
    }
}

impl Regexes {
    /// The errors of patterns whose groups are asked for, though they are too large to record them.
    pub(super) fn take_errors(&mut self, program: &Program) -> Vec<Error> {
        if self.without_groups.is_empty() {
            return Vec::new();
        }
        let asked = groups::asked(program);
        let errors = std::mem::take(&mut self.without_groups).into_iter();
        errors.filter(|(id, _)| asked.contains(id)).map(|(_, error)| error).collect()
    }
}

/// The error of a pattern, and its place in the source.
pub(in crate::elaborate) fn regex_error(
    sources: &SourceMap,
    error: spile_regex::Error,
    pattern: &[u8],
    span: Span,
) -> Error {
    let span = span_inside(sources, span, pattern, error.start, error.end);
    LiteralError::Regex { kind: error.kind, position: error.start, span }.into()
}
