// SPDX-License-Identifier: GPL-2.0-or-later

//! Finds where top-level items begin and end, from keywords and braces, before the grammar runs.
//!
//! A broken item thus does not affect the others: each is parsed separately and has its own messages.

use std::ops::Range;

use super::error::SyntaxError;
use super::habit;
use super::token::{Keyword, Kind, Op, Token};

/// A range of a script's tokens.
pub enum Piece {
    Item(Range<usize>),
    /// Tokens between items, or an item whose end was not found. `found` is the token where that was noticed.
    Problem {
        error: SyntaxError,
        found: usize,
    },
}

/// The items of a script in order, and the errors between them.
pub fn split(tokens: &[Token]) -> Vec<Piece> {
    let mut splitter = Splitter { tokens, pieces: Vec::new() };
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let end = match &token.kind {
            Kind::Op(Op::Semicolon) => {
                at += 1;
                continue;
            }
            Kind::Keyword(Keyword::Probe) => splitter.probe(at),
            Kind::Keyword(Keyword::Function) => splitter.function(at),
            Kind::Keyword(Keyword::Private) if splitter.is_keyword(at + 1, Keyword::Function) => {
                splitter.function(at + 1)
            }
            Kind::Keyword(Keyword::Private) if splitter.is_keyword(at + 1, Keyword::Global) => splitter.global(at + 2),
            Kind::Keyword(Keyword::Global | Keyword::Private) => splitter.global(at + 1),
            Kind::EmbeddedC(_) => Some(at + 1),
            _ => {
                at = splitter.junk(at);
                continue;
            }
        };
        let next = match end {
            Some(end) => {
                splitter.pieces.push(Piece::Item(at..end));
                end
            }
            // An unclosed body: reported, and not parsed.
            None => splitter.next_item(at + 1),
        };
        at = next.max(at + 1);
    }
    splitter.pieces
}

struct Splitter<'a> {
    tokens: &'a [Token],
    pieces: Vec<Piece>,
}

impl Splitter<'_> {
    fn problem(&mut self, error: SyntaxError, found: usize) {
        self.pieces.push(Piece::Problem { error, found });
    }

    fn is_keyword(&self, at: usize, keyword: Keyword) -> bool {
        self.tokens.get(at).is_some_and(|token| token.kind == Kind::Keyword(keyword))
    }

    fn op(&self, at: usize) -> Option<Op> {
        match self.tokens.get(at)?.kind {
            Kind::Op(op) => Some(op),
            _ => None,
        }
    }

    /// Whether there is a top-level keyword here that is not the name of a member or component.
    fn begins_item(&self, at: usize) -> bool {
        let keyword = matches!(
            self.tokens.get(at).map(|token| &token.kind),
            Some(Kind::Keyword(Keyword::Probe | Keyword::Function | Keyword::Global | Keyword::Private))
        );
        keyword && !at.checked_sub(1).is_some_and(|before| matches!(self.op(before), Some(Op::Dot | Op::Arrow)))
    }

    /// The start of the next item, or the end.
    fn next_item(&self, from: usize) -> usize {
        (from..self.tokens.len()).find(|&at| self.begins_item(at)).unwrap_or(self.tokens.len())
    }

    /// Skips tokens that belong to no item, with one message for all.
    fn junk(&mut self, at: usize) -> usize {
        let token = &self.tokens[at];
        match token.kind {
            Kind::Poison => {}
            Kind::Op(Op::BraceClose) => self.problem(SyntaxError::StrayBrace { span: token.span }, at),
            _ => {
                let hint = habit::at_top_level(&self.tokens[at..]);
                self.problem(SyntaxError::ExpectedItem { span: token.span, found: token.kind.describe(), hint }, at);
            }
        }
        self.next_item(at + 1)
    }

    /// The index after the brace that closes the one at `open`; `None` after a message.
    fn body(&mut self, open: usize) -> Option<usize> {
        let mut depth = 0usize;
        let mut at = open;
        while let Some(token) = self.tokens.get(at) {
            match self.op(at) {
                Some(Op::BraceOpen) => depth += 1,
                Some(Op::BraceClose) => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ if self.begins_item(at) => {
                    let stopped = Some((token.span, token.kind.describe()));
                    self.problem(SyntaxError::UnclosedBody { open: self.tokens[open].span, stopped }, at);
                    return None;
                }
                _ => {}
            }
            at += 1;
        }
        self.problem(SyntaxError::UnclosedBody { open: self.tokens[open].span, stopped: None }, at);
        None
    }

    /// Skips from `probe` at `start` over its points and its handlers.
    fn probe(&mut self, start: usize) -> Option<usize> {
        let mut parens = 0usize;
        let mut alternatives = 0usize;
        let mut at = start + 1;
        while at < self.tokens.len() {
            let before = self.op(at - 1);
            let open_ended = at == start + 1
                || matches!(before, Some(Op::Dot | Op::Comma | Op::BraceOpen | Op::Assign | Op::AddAssign));
            match self.op(at) {
                Some(Op::ParenOpen) => parens += 1,
                Some(Op::ParenClose) => parens = parens.saturating_sub(1),
                Some(Op::BraceOpen) if parens == 0 && open_ended => alternatives += 1,
                Some(Op::BraceOpen) => {
                    let end = self.body(at)?;
                    if self.op(end) == Some(Op::Comma) && self.op(end + 1) == Some(Op::BraceOpen) {
                        return self.body(end + 1);
                    }
                    return Some(end);
                }
                Some(Op::BraceClose) if parens == 0 && alternatives == 0 => return Some(at),
                Some(Op::BraceClose) if parens == 0 => alternatives -= 1,
                Some(Op::Semicolon) => return Some(at),
                _ if self.begins_item(at) && !(open_ended && parens == 0 && at > start + 1) => return Some(at),
                _ => {}
            }
            at += 1;
        }
        Some(at)
    }

    /// Skips from `function` at `start` over its body.
    fn function(&mut self, start: usize) -> Option<usize> {
        for at in start + 1..self.tokens.len() {
            match &self.tokens[at].kind {
                Kind::Op(Op::BraceOpen) => return self.body(at),
                Kind::EmbeddedC(_) => return Some(at + 1),
                Kind::Op(Op::Semicolon) => return Some(at),
                _ if self.begins_item(at) => return Some(at),
                _ => {}
            }
        }
        Some(self.tokens.len())
    }

    /// Skips the variables of a declaration, from the first name.
    fn global(&mut self, from: usize) -> Option<usize> {
        let ends = |at: &usize| {
            matches!(self.tokens[*at].kind, Kind::Op(Op::Semicolon) | Kind::EmbeddedC(_)) || self.begins_item(*at)
        };
        Some((from..self.tokens.len()).find(ends).unwrap_or(self.tokens.len()))
    }
}
