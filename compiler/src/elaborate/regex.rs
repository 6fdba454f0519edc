//! `=~` and `!~`: their patterns, compiled once each.

use std::collections::HashMap;

use super::error::Error;
use super::literal::span_inside;
use super::{Elaborator, Unit};
use crate::program::{Expr, ExprKind, Regex, RegexId, Type};
use crate::source::Span;
use crate::syntax::ast;

/// The patterns met so far.
#[derive(Default)]
pub(super) struct Regexes {
    ids: HashMap<Vec<u8>, RegexId>,
    pub(super) compiled: Vec<Regex>,
}

impl<'a> Elaborator<'a> {
    /// Checks the pattern where it is written; what is matched must be a string.
    pub(super) fn infer_matches(&mut self, unit: &mut Unit, text: &'a ast::Expr, pattern: &[u8], pattern_span: Span) {
        self.want(unit, text, Type::String);
        if let Err(error) = self.regex(pattern, pattern_span) {
            self.report(error);
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
        let regex = self.regex(pattern, pattern_span)?;
        let long = |kind| Expr { kind, ty: Type::Long, span };
        let matches = long(ExprKind::Matches { regex, text });
        Ok(if negated { long(ExprKind::Not(Box::new(matches))) } else { matches })
    }

    fn regex(&mut self, pattern: &[u8], span: Span) -> Result<RegexId, Error> {
        if let Some(&id) = self.regexes.ids.get(pattern) {
            return Ok(id);
        }
        let automaton = crate::regex::compile(pattern).map_err(|error| Error::Regex {
            kind: error.kind,
            position: error.start,
            span: span_inside(self.sources, span, pattern, error.start, error.end),
        })?;
        let id = RegexId(self.regexes.compiled.len() as u32);
        self.regexes.compiled.push(Regex { pattern: pattern.to_vec(), automaton });
        self.regexes.ids.insert(pattern.to_vec(), id);
        Ok(id)
    }
}
