// SPDX-License-Identifier: GPL-2.0-or-later

//! The condition of `%( condition %? ... %)`: comparisons joined by `&&` (tighter) and `||`.

use std::cmp::Ordering;

use super::expand::Expander;
use crate::error::{ConditionProblem, SyntaxError};
use crate::token::{Kind, Op, Token};
use crate::version::compare_versions;
use spile_base::glob;
use spile_source::Span;

/// Reads a condition and its `%?`. `open` is the span of the `%(`; on failure an error has been recorded.
pub(super) fn evaluate(expander: &mut Expander, open: Span, after_operand: bool) -> Result<bool, ()> {
    let mut reader = Reader { expander, open, after_operand };
    let (mut any, mut all) = (false, true);
    loop {
        all &= reader.comparison()?;
        let token = reader.next()?;
        match token.kind {
            Kind::Op(Op::AndAnd) => {}
            Kind::Op(Op::OrOr) => {
                any |= all;
                all = true;
            }
            Kind::Op(Op::IfThen) => return Ok(any || all),
            _ => return reader.fail(&token, ConditionProblem::End),
        }
    }
}

struct Reader<'r, 'a> {
    expander: &'r mut Expander<'a>,
    open: Span,
    after_operand: bool,
}

/// One side of a comparison.
enum Side {
    /// Compared by version.
    Version(String),
    /// Compared by `==` and `!=` only.
    Word(String),
    Config(String),
    /// 0 or 1; compared by `==` and `!=` only.
    Switch(i64),
    Number(i64),
    Text(String),
}

impl Reader<'_, '_> {
    fn next(&mut self) -> Result<Token, ()> {
        match self.expander.next() {
            // The error was reported when the poison was made.
            Some(Token { kind: Kind::Poison, .. }) => Err(()),
            Some(Token { kind: Kind::Junk(error), span }) => {
                self.expander.problems.push(SyntaxError::Lexical { error, span });
                Err(())
            }
            Some(token) => Ok(token),
            None => {
                self.expander.problems.push(SyntaxError::ConditionalUnclosed { span: self.open });
                Err(())
            }
        }
    }

    fn fail<T>(&mut self, token: &Token, problem: ConditionProblem) -> Result<T, ()> {
        self.expander.problems.push(SyntaxError::Condition {
            span: token.span,
            found: token.kind.describe(),
            problem,
            open: self.open,
            after_operand: self.after_operand,
        });
        Err(())
    }

    fn comparison(&mut self) -> Result<bool, ()> {
        let token = self.next()?;
        let Some(left) = self.left(&token) else { return self.fail(&token, ConditionProblem::Left) };
        let token = self.next()?;
        let Kind::Op(op) = token.kind else { return self.fail(&token, ConditionProblem::Operator) };
        if !matches!(op, Op::Less | Op::LessEqual | Op::Greater | Op::GreaterEqual | Op::Equal | Op::NotEqual) {
            return self.fail(&token, ConditionProblem::Operator);
        }
        let equality = matches!(op, Op::Equal | Op::NotEqual);
        if matches!(left, Side::Word(_) | Side::Switch(_)) && !equality {
            return self.fail(&token, ConditionProblem::EqualityOnly);
        }
        let token = self.next()?;
        let right = self.right(&token);
        match (left, right) {
            (Side::Version(left), Some(Side::Text(right))) => {
                if glob::is_pattern(&right) {
                    match equality {
                        true => Ok(glob::matches(&right, &left) == (op == Op::Equal)),
                        false => self.fail(&token, ConditionProblem::PatternOrdered),
                    }
                } else {
                    Ok(holds(op, compare_versions(&left, &right)))
                }
            }
            (Side::Word(left), Some(Side::Text(right))) => Ok(glob::matches(&right, &left) == (op == Op::Equal)),
            (Side::Config(left), Some(Side::Text(right))) if equality => {
                Ok(glob::matches(&right, &left) == (op == Op::Equal))
            }
            (Side::Config(_), Some(Side::Text(_))) => self.fail(&token, ConditionProblem::EqualityOnly),
            (Side::Text(left), Some(Side::Text(right))) => Ok(holds(op, left.cmp(&right))),
            (Side::Config(left), Some(Side::Number(right))) => match parse_number(&left) {
                Some(left) => Ok(holds(op, left.cmp(&right))),
                None => self.fail(&token, ConditionProblem::NoNumber),
            },
            (Side::Config(left), Some(Side::Config(right))) => {
                let ordering = match (parse_number(&left), parse_number(&right)) {
                    (Some(a), Some(b)) if !left.is_empty() && !right.is_empty() => a.cmp(&b),
                    _ => left.cmp(&right),
                };
                Ok(holds(op, ordering))
            }
            (Side::Switch(_), Some(Side::Number(right))) if !(0..=1).contains(&right) => {
                self.fail(&token, ConditionProblem::NotASwitch)
            }
            (Side::Number(left) | Side::Switch(left), Some(Side::Number(right))) => Ok(holds(op, left.cmp(&right))),
            (Side::Number(_) | Side::Switch(_), _) => self.fail(&token, ConditionProblem::RightNumber),
            (Side::Config(_), _) => self.fail(&token, ConditionProblem::RightConfig),
            _ => self.fail(&token, ConditionProblem::RightString),
        }
    }

    fn left(&self, token: &Token) -> Option<Side> {
        let environment = self.expander.environment();
        let Kind::Ident(name) = &token.kind else { return self.right(token) };
        Some(match name.as_str() {
            "kernel_v" => Side::Version(environment.kernel_version().to_string()),
            "kernel_vr" => Side::Version(environment.kernel_release.clone()),
            "systemtap_v" => Side::Version(environment.compatible.clone()),
            "arch" => Side::Word(environment.arch.clone()),
            "runtime" => Side::Word(environment.runtime.clone()),
            "systemtap_privilege" => Side::Word(environment.privilege.clone()),
            "guru_mode" => Side::Switch(i64::from(environment.guru)),
            _ => return self.right(token),
        })
    }

    fn right(&self, token: &Token) -> Option<Side> {
        match &token.kind {
            Kind::Number(number) => Some(Side::Number(*number)),
            Kind::String(text) => Some(Side::Text(String::from_utf8_lossy(text).into_owned())),
            Kind::Ident(name) if name.starts_with("CONFIG_") => {
                Some(Side::Config(self.expander.environment().config.get(name).cloned().unwrap_or_default()))
            }
            _ => None,
        }
    }
}

fn holds(op: Op, ordering: Ordering) -> bool {
    match op {
        Op::Less => ordering.is_lt(),
        Op::LessEqual => ordering.is_le(),
        Op::Greater => ordering.is_gt(),
        Op::GreaterEqual => ordering.is_ge(),
        Op::NotEqual => ordering.is_ne(),
        _ => ordering.is_eq(),
    }
}

/// A configuration option as a number; 0 if it is unset.
fn parse_number(text: &str) -> Option<i64> {
    if text.is_empty() {
        return Some(0);
    }
    match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}
