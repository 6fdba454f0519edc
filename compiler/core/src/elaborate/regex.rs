// SPDX-License-Identifier: GPL-2.0-or-later

//! `=~` and `!~`: their patterns, compiled once each.

use std::collections::HashMap;

use super::error::Error;
use super::literal::span_inside;
use super::{Elaborator, Unit};
use crate::program::{Automaton, Expr, ExprKind, Regex, RegexId, Type};
use spile_source::Span;
use spile_syntax::ast;

/// The patterns met so far.
#[derive(Default)]
pub(super) struct Regexes {
    /// Something in the program asks what matched.
    pub(super) groups_asked: bool,
    /// By pattern, and whether it tells where it matches.
    ids: HashMap<(Vec<u8>, bool), RegexId>,
    pub(super) compiled: Vec<Regex>,
}

impl<'a> Elaborator<'a> {
    /// Checks the pattern where it is written; what is matched must be a string.
    pub(super) fn infer_matches(&mut self, unit: &mut Unit, text: &'a ast::Expr, pattern: &[u8], pattern_span: Span) {
        self.want(unit, text, Type::String);
        // Whether groups are asked is known when everything is inferred.
        if let Err(error) = spile_regex::check(pattern) {
            self.report(self.regex_error(error, pattern, pattern_span));
        }
    }

    pub(super) fn lower_matches(
        &mut self,
        unit: &mut Unit,
        text: &ast::Expr,
        (pattern, pattern_span): (&[u8], Span),
        negated: bool,
        span: Span,
    ) -> Result<Expr, Error> {
        let text = Box::new(self.lower(unit, text)?);
        // `!~` has no groups, and leaves those of the last `=~`.
        let regex = self.regex(pattern, pattern_span, self.regexes.groups_asked && !negated)?;
        let long = |kind| Expr { kind, ty: Type::Long, span };
        let matches = long(ExprKind::Matches { regex, text });
        Ok(if negated { long(ExprKind::Not(Box::new(matches))) } else { matches })
    }

    fn regex(&mut self, pattern: &[u8], span: Span, groups: bool) -> Result<RegexId, Error> {
        let key = (pattern.to_vec(), groups);
        if let Some(&id) = self.regexes.ids.get(&key) {
            return Ok(id);
        }
        let automaton = match groups {
            true => spile_regex::compile_groups(pattern).map(Automaton::Tagged),
            false => spile_regex::compile(pattern).map(Automaton::Plain),
        };
        let automaton = automaton.map_err(|error| self.regex_error(error, pattern, span))?;
        let id = RegexId(self.regexes.compiled.len() as u32);
        self.regexes.compiled.push(Regex { pattern: pattern.to_vec(), automaton });
        self.regexes.ids.insert(key, id);
        Ok(id)
    }

    fn regex_error(&self, error: spile_regex::Error, pattern: &[u8], span: Span) -> Error {
        let span = span_inside(self.sources, span, pattern, error.start, error.end);
        Error::Regex { kind: error.kind, position: error.start, span }
    }
}
