// SPDX-License-Identifier: GPL-2.0-or-later

//! Macros, script arguments and conditionals: tokens in, tokens of the language out.
//!
//! Two lazy layers. [`Expander`] replaces macro calls and script arguments; it has a stack of token lists, each with
//! the parameters in scope, so a macro's argument is expanded where it is used, in the scope where it was written.
//! [`Conditionals`] reads that stream, evaluates `%( condition %? ... %: ... %)` and passes on the chosen branch, with
//! adjacent string literals concatenated. A branch not chosen is skipped unexpanded: its definitions and errors are
//! ignored.

mod condition;
mod expand;

use std::collections::BTreeSet;

use super::environment::Environment;
use super::error::SyntaxError;
use super::macros::{Macro, Macros};
use super::token::{Kind, Op, Token};
use expand::Expander;
use spile_source::{SourceMap, Span};

/// The result of [`preprocess`].
pub struct Preprocessed {
    /// Contains no [`Kind::AtWord`], [`Kind::Argument`], [`Kind::Junk`] or conditional operators.
    pub tokens: Vec<Token>,
    /// Errors, in the order of the text.
    pub problems: Vec<SyntaxError>,
    /// Numbers of the script arguments used; 0 for their count.
    pub arguments: BTreeSet<u32>,
    /// The file's own macros, in the order of their definitions.
    pub definitions: Vec<Macro>,
}

/// Preprocesses `tokens`, all those of one file.
pub fn preprocess(
    sources: &mut SourceMap,
    tokens: Vec<Token>,
    environment: &Environment,
    macros: &Macros,
) -> Preprocessed {
    let expander = Expander::new(sources, tokens, environment, macros);
    let mut conditionals = Conditionals { expander, open: Vec::new(), tokens: Vec::new(), broken: false };
    conditionals.run();
    let mut expander = conditionals.expander;
    Preprocessed {
        tokens: conditionals.tokens,
        problems: std::mem::take(&mut expander.problems),
        arguments: std::mem::take(&mut expander.arguments),
        definitions: expander.into_definitions(),
    }
}

struct Conditionals<'a> {
    expander: Expander<'a>,
    /// Enclosing conditionals, outermost first.
    open: Vec<Branch>,
    tokens: Vec<Token>,
    /// A condition could not be read: what follows is read without it, including stray `%)`.
    broken: bool,
}

struct Branch {
    span: Span,
    in_else: bool,
}

/// Where skipping stopped.
#[derive(PartialEq)]
enum Skipped {
    Else,
    Close,
    End,
}

impl Conditionals<'_> {
    fn run(&mut self) {
        while let Some(token) = self.expander.next() {
            match token.kind {
                Kind::Op(Op::IfOpen) => self.open_branch(token.span),
                Kind::Op(Op::IfElse) => self.else_branch(token.span),
                Kind::Op(Op::IfClose) => {
                    if self.open.pop().is_none() {
                        self.stray(token.span, Op::IfClose);
                    }
                }
                Kind::Op(Op::IfThen) => self.stray(token.span, Op::IfThen),
                Kind::Junk(error) => {
                    self.expander.problems.push(SyntaxError::Lexical { error, span: token.span });
                    self.push(Token { kind: Kind::Poison, span: token.span });
                }
                _ => self.push(token),
            }
        }
        if let Some(branch) = self.open.first() {
            self.expander.problems.push(SyntaxError::ConditionalUnclosed { span: branch.span });
        }
    }

    /// Emits a token; a string literal directly after another is appended to it.
    fn push(&mut self, token: Token) {
        if let Kind::String(text) = &token.kind
            && let Some(Token { kind: Kind::String(before), span }) = self.tokens.last_mut()
        {
            before.extend_from_slice(text);
            *span = span.to(token.span);
            return;
        }
        self.tokens.push(token);
    }

    fn open_branch(&mut self, span: Span) {
        // `x %(y)`: the previous token decides whether a failed condition was meant as a remainder.
        let after_operand = self.tokens.last().is_some_and(|token| ends_operand(&token.kind));
        let Ok(chosen) = condition::evaluate(&mut self.expander, span, after_operand) else {
            self.push(Token { kind: Kind::Poison, span });
            if self.expander.conditional_follows() {
                self.skip(span, false, false);
            } else {
                self.broken = true;
            }
            return;
        };
        if chosen {
            self.open.push(Branch { span, in_else: false });
        } else if self.skip(span, true, true) == Skipped::Else {
            self.open.push(Branch { span, in_else: true });
        }
    }

    fn else_branch(&mut self, span: Span) {
        match self.open.pop() {
            None => self.stray(span, Op::IfElse),
            Some(branch) => {
                if branch.in_else {
                    self.stray(span, Op::IfElse);
                }
                if self.skip(branch.span, true, true) == Skipped::Else {
                    self.stray(span, Op::IfElse);
                    self.skip(branch.span, false, true);
                }
            }
        }
    }

    /// Skips the rest of a branch with all that is nested in it. `begun`: the conditional's `%?` has been read.
    fn skip(&mut self, open: Span, stop_at_else: bool, begun: bool) -> Skipped {
        let mut depth = 0usize;
        while let Some(token) = self.expander.next_raw() {
            match token.kind {
                Kind::Op(Op::IfOpen) => depth += 1,
                Kind::Op(Op::IfThen) if depth == 0 && begun => self.stray(token.span, Op::IfThen),
                Kind::Op(Op::IfClose) if depth == 0 => return Skipped::Close,
                Kind::Op(Op::IfClose) => depth -= 1,
                Kind::Op(Op::IfElse) if depth == 0 && stop_at_else => return Skipped::Else,
                _ => {}
            }
        }
        self.expander.problems.push(SyntaxError::ConditionalUnclosed { span: open });
        Skipped::End
    }

    fn stray(&mut self, span: Span, op: Op) {
        if !self.broken {
            self.expander.problems.push(SyntaxError::ConditionalStray { span, op: op.text() });
        }
        self.push(Token { kind: Kind::Poison, span });
    }
}

fn ends_operand(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::Ident(_)
            | Kind::Target(_)
            | Kind::Number(_)
            | Kind::Op(Op::ParenClose | Op::BracketClose | Op::Increment | Op::Decrement)
    )
}
