// SPDX-License-Identifier: GPL-2.0-or-later

//! Resolves the ambiguities that the grammar cannot: tokens in, terminals of the grammar out.
//!
//! SystemTap's statements need no semicolons, so after a complete expression `( [ - + & ++ --` could continue it or
//! start the next statement. SystemTap's parser is greedy: `x = 1 -1` is a subtraction, `a[1] (b)` two statements. The
//! previous token decides, so it is decided here, and the grammar sees different terminals:
//!
//! - `(` is a call's directly after an identifier (even on the next line), else it groups;
//! - `[` indexes after any operand, else it starts a list of keys;
//! - `+ - &` are binary after an operand, else signs; `++ --` belong to the operand before them if it has none yet:
//!   `--a` followed by `++b` on the next line is two statements;
//! - `;` ends an expression or a jump, else it is the empty statement. One is inserted in `return }`.
//!
//! The same pass separates probe points from expressions: in the head of a probe, adjacent words and stars are one
//! component, keywords are names, and a brace after a dot, comma or brace lists alternatives.

use super::ast::{AssignOp, BinaryOp};
use super::token::{AtOperator, Keyword, Kind, Op, Token};
use spile_source::SourceMap;

/// The grammar's input. The grammar's names for the terminals are in `grammar.lalrpop`.
#[derive(Clone, Debug, PartialEq)]
pub enum Terminal {
    Keyword(Keyword),
    /// A component of a probe point, possibly with stars.
    Component(String),
    AlternativesOpen,
    AlternativesClose,
    Ident(String),
    Target(String),
    Member(String),
    Dollars(u8),
    Number(i64),
    Text(Vec<u8>),
    EmbeddedC(String),
    At(AtOperator),
    GroupOpen,
    CallOpen,
    ParenClose,
    IndexOpen,
    ListOpen,
    BracketClose,
    BraceOpen,
    BraceClose,
    Comma,
    /// `;` after an expression or jump.
    Terminator,
    /// `;` as the empty statement.
    Empty,
    Colon,
    Question,
    Not,
    Complement,
    Assign,
    AddAssign,
    /// Any other assignment.
    AssignOp(AssignOp),
    OrOr,
    AndAnd,
    Or,
    Xor,
    And,
    AddressOf,
    Compare(BinaryOp),
    /// `=~`, or `!~` if true.
    Match(bool),
    Shift(BinaryOp),
    Dot,
    Plus,
    PlusSign,
    Minus,
    MinusSign,
    Star,
    Slash,
    Percent,
    /// `++` or `--` before its operand.
    StepBefore(i64),
    StepAfter(i64),
    Arrow,
}

/// A terminal and the tokens that it was made from, as indexes into the input.
pub type Located = (usize, Terminal, usize);

/// The terminals of the top-level item `tokens[range]`, which contains no [`Kind::Poison`].
pub fn resolve(sources: &SourceMap, tokens: &[Token], range: std::ops::Range<usize>) -> Vec<Located> {
    let (start, end) = (range.start, range.end.min(tokens.len()));
    let part = match tokens.get(start).map(|token| &token.kind) {
        Some(Kind::Keyword(Keyword::Probe)) => Part::Points,
        Some(Kind::Keyword(Keyword::Function)) => Part::Signature,
        Some(Kind::Keyword(Keyword::Private)) => match tokens.get(start + 1).map(|token| &token.kind) {
            Some(Kind::Keyword(Keyword::Function)) => Part::Signature,
            _ => Part::Code,
        },
        _ => Part::Code,
    };
    resolve_from(sources, tokens, start, end, part)
}

/// The terminals of a list of probe points, as `-l` takes it.
pub fn resolve_points(sources: &SourceMap, tokens: &[Token]) -> Vec<Located> {
    resolve_from(sources, tokens, 0, tokens.len(), Part::Points)
}

fn resolve_from(sources: &SourceMap, tokens: &[Token], start: usize, end: usize, part: Part) -> Vec<Located> {
    let mut settler = OperandResolver {
        sources,
        tokens,
        end,
        at: start,
        part,
        before: Before::Nothing,
        stepped: None,
        open: Vec::new(),
        out: Vec::new(),
    };
    while settler.at < end {
        settler.step();
    }
    settler.out
}

/// The part of an item being read.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    /// Probe points, up to the handler.
    Points,
    /// From `function` to the body.
    Signature,
    /// Statements, expressions, and declarations of globals.
    Code,
}

/// What may follow the previous token.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    /// An operand, or a new statement.
    Nothing,
    /// A jump: `;` ends it, an operand may follow only `return`.
    Jump,
    /// The same for `return`.
    Return,
    /// After an identifier, which `(` would make a call.
    Ident,
    /// After another operand.
    Operand,
    /// After an operand that takes no more suffixes: `x++` and `$x$`.
    Closed,
    /// After `if`, `while` and the like: the next parenthesis belongs to them.
    Control,
    Arrow,
}

#[derive(Clone, Copy, PartialEq)]
enum Bracket {
    Control,
    Paren,
    Square,
    Block,
    Alternatives,
}

struct OperandResolver<'a> {
    sources: &'a SourceMap,
    tokens: &'a [Token],
    end: usize,
    at: usize,
    part: Part,
    before: Before,
    /// The number of open brackets at a `++` or `--` whose operand is being read.
    stepped: Option<usize>,
    open: Vec<Bracket>,
    out: Vec<Located>,
}

impl OperandResolver<'_> {
    fn emit(&mut self, terminal: Terminal, before: Before) {
        let (depth, operand) = (self.open.len(), self.after_operand());
        let goes_on =
            matches!(terminal, Terminal::ParenClose | Terminal::BracketClose | Terminal::Arrow | Terminal::Dollars(_));
        let another = matches!(terminal, Terminal::GroupOpen | Terminal::ListOpen);
        if self
            .stepped
            .is_some_and(|at| depth < at || operand && (depth == at && !goes_on || depth == at + 1 && another))
        {
            self.stepped = None;
        }
        self.out.push((self.at, terminal, self.at + 1));
        self.before = before;
        self.at += 1;
    }

    /// Whether a word is a component of a probe point here.
    fn in_points(&self) -> bool {
        self.part == Part::Points && matches!(self.open.last(), None | Some(Bracket::Alternatives))
    }

    /// Whether the previous token ends an operand.
    fn after_operand(&self) -> bool {
        matches!(self.before, Before::Ident | Before::Operand | Before::Closed)
    }

    fn step(&mut self) {
        let Some(token) = self.tokens.get(self.at) else { return };
        if self.in_points() && self.step_point(&token.kind) {
            return;
        }
        match &token.kind {
            Kind::Ident(name) => match self.before {
                Before::Arrow => self.emit(Terminal::Member(name.clone()), Before::Operand),
                _ => self.emit(Terminal::Ident(name.clone()), Before::Ident),
            },
            Kind::Target(name) => self.emit(Terminal::Target(name.clone()), Before::Operand),
            Kind::Dollars(count) => self.emit(Terminal::Dollars(*count), Before::Closed),
            Kind::Number(number) => self.emit(Terminal::Number(*number), Before::Operand),
            Kind::String(text) => self.emit(Terminal::Text(text.clone()), Before::Operand),
            Kind::EmbeddedC(text) => self.emit(Terminal::EmbeddedC(text.clone()), Before::Operand),
            Kind::At(operator) => self.emit(Terminal::At(*operator), Before::Nothing),
            Kind::Keyword(keyword) => self.step_keyword(*keyword),
            Kind::Op(op) => self.step_op(*op),
            // Items with poison are not parsed, and the preprocessor removed the rest.
            Kind::AtWord(_) | Kind::Argument(_) | Kind::Junk(_) | Kind::Poison => self.at += 1,
        }
    }

    /// Words, stars and braces of probe points; false for tokens that are read as in expressions.
    fn step_point(&mut self, kind: &Kind) -> bool {
        match kind {
            Kind::Keyword(Keyword::Probe) if self.out.is_empty() => {
                self.emit(Terminal::Keyword(Keyword::Probe), Before::Nothing);
            }
            Kind::Keyword(Keyword::If) if self.point_is_complete() => {
                self.emit(Terminal::Keyword(Keyword::If), Before::Control);
            }
            Kind::Ident(_) | Kind::Keyword(_) | Kind::Op(Op::Star) => self.step_component(),
            Kind::Op(Op::BraceOpen) if !self.point_is_complete() => {
                self.open.push(Bracket::Alternatives);
                self.emit(Terminal::AlternativesOpen, Before::Nothing);
            }
            Kind::Op(Op::BraceOpen) => {
                self.part = Part::Code;
                self.step_op(Op::BraceOpen);
            }
            Kind::Op(Op::BraceClose) if self.open.last() == Some(&Bracket::Alternatives) => {
                self.open.pop();
                self.emit(Terminal::AlternativesClose, Before::Operand);
            }
            _ => return false,
        }
        true
    }

    /// Whether the last terminal can end a probe point, so that a brace starts the handler.
    fn point_is_complete(&self) -> bool {
        matches!(
            self.out.last(),
            Some((
                _,
                Terminal::Component(_)
                    | Terminal::ParenClose
                    | Terminal::AlternativesClose
                    | Terminal::Question
                    | Terminal::Not,
                _
            ))
        )
    }

    /// One component: `foo`, `*`, `foo*bar`, also `**`. Its tokens are adjacent in the text.
    fn step_component(&mut self) {
        let first = self.at;
        let mut span = self.tokens[first].span;
        let mut next = first + 1;
        while next < self.end {
            let Some(token) = self.tokens.get(next) else { break };
            let joins = matches!(token.kind, Kind::Ident(_) | Kind::Keyword(_) | Kind::Number(_) | Kind::Op(Op::Star));
            let touches = token.span.file == span.file && token.span.via == span.via && token.span.start == span.end;
            if !joins || !touches {
                break;
            }
            span.end = token.span.end;
            next += 1;
        }
        self.out.push((first, Terminal::Component(self.sources.text(span).to_string()), next));
        self.before = Before::Operand;
        self.at = next;
    }

    fn step_keyword(&mut self, keyword: Keyword) {
        if self.before == Before::Arrow {
            return self.emit(Terminal::Member(keyword.text().to_string()), Before::Operand);
        }
        if matches!(keyword, Keyword::String | Keyword::Long) {
            // Only functions may have such names.
            let defined = matches!(self.out.last(), Some((_, Terminal::Keyword(Keyword::Function), _)));
            let called = self.part == Part::Code
                && self.tokens.get(self.at + 1).is_some_and(|next| next.kind == Kind::Op(Op::ParenOpen));
            return match defined || called {
                true => self.emit(Terminal::Ident(keyword.text().to_string()), Before::Ident),
                false => self.emit(Terminal::Keyword(keyword), Before::Nothing),
            };
        }
        let before = match keyword {
            Keyword::If | Keyword::While | Keyword::For | Keyword::Foreach | Keyword::Catch => Before::Control,
            Keyword::Break | Keyword::Continue | Keyword::Next => Before::Jump,
            Keyword::Return => Before::Return,
            _ => Before::Nothing,
        };
        self.emit(Terminal::Keyword(keyword), before);
    }

    fn step_op(&mut self, op: Op) {
        let operand = self.after_operand();
        let either = |after: Terminal, before: Terminal| if operand { after } else { before };
        let terminal = match op {
            Op::ParenOpen => return self.open_paren(),
            Op::ParenClose => {
                let before = if self.close(&[Bracket::Paren, Bracket::Control]) == Some(Bracket::Control) {
                    Before::Nothing
                } else {
                    Before::Operand
                };
                return self.emit(Terminal::ParenClose, before);
            }
            Op::BracketOpen => {
                let index = matches!(self.before, Before::Ident | Before::Operand);
                self.open.push(Bracket::Square);
                return self.emit(if index { Terminal::IndexOpen } else { Terminal::ListOpen }, Before::Nothing);
            }
            Op::BracketClose => {
                self.close(&[Bracket::Square]);
                return self.emit(Terminal::BracketClose, Before::Operand);
            }
            Op::BraceOpen => {
                self.part = Part::Code;
                self.open.push(Bracket::Block);
                return self.emit(Terminal::BraceOpen, Before::Nothing);
            }
            Op::BraceClose => {
                self.close(&[Bracket::Block]);
                if self.before == Before::Return {
                    self.out.push((self.at, Terminal::Terminator, self.at));
                }
                return self.emit(Terminal::BraceClose, Before::Nothing);
            }
            Op::Semicolon => {
                let ends = operand || matches!(self.before, Before::Jump | Before::Return);
                return self.emit(if ends { Terminal::Terminator } else { Terminal::Empty }, Before::Nothing);
            }
            Op::Increment | Op::Decrement => {
                let delta = if op == Op::Increment { 1 } else { -1 };
                let operand = matches!(self.before, Before::Ident | Before::Operand);
                if operand && self.stepped != Some(self.open.len()) {
                    return self.emit(Terminal::StepAfter(delta), Before::Closed);
                }
                self.emit(Terminal::StepBefore(delta), Before::Nothing);
                self.stepped = Some(self.open.len());
                return;
            }
            Op::Arrow => return self.emit(Terminal::Arrow, Before::Arrow),
            Op::Plus => either(Terminal::Plus, Terminal::PlusSign),
            Op::Minus => either(Terminal::Minus, Terminal::MinusSign),
            Op::And => either(Terminal::And, Terminal::AddressOf),
            Op::Comma => Terminal::Comma,
            Op::Colon => Terminal::Colon,
            Op::Question => Terminal::Question,
            Op::Not => Terminal::Not,
            Op::Complement => Terminal::Complement,
            Op::Star => Terminal::Star,
            Op::Slash => Terminal::Slash,
            Op::Percent => Terminal::Percent,
            Op::Or => Terminal::Or,
            Op::Xor => Terminal::Xor,
            Op::Dot => Terminal::Dot,
            Op::AndAnd => Terminal::AndAnd,
            Op::OrOr => Terminal::OrOr,
            Op::Match => Terminal::Match(false),
            Op::NoMatch => Terminal::Match(true),
            Op::Less => Terminal::Compare(BinaryOp::Less),
            Op::Greater => Terminal::Compare(BinaryOp::Greater),
            Op::LessEqual => Terminal::Compare(BinaryOp::LessEqual),
            Op::GreaterEqual => Terminal::Compare(BinaryOp::GreaterEqual),
            Op::Equal => Terminal::Compare(BinaryOp::Equal),
            Op::NotEqual => Terminal::Compare(BinaryOp::NotEqual),
            Op::ShiftLeft => Terminal::Shift(BinaryOp::ShiftLeft),
            Op::ShiftRight => Terminal::Shift(BinaryOp::ShiftRight),
            Op::ShiftRightLogical => Terminal::Shift(BinaryOp::ShiftRightLogical),
            Op::Assign => Terminal::Assign,
            Op::AddAssign => Terminal::AddAssign,
            Op::Aggregate => Terminal::AssignOp(AssignOp::Aggregate),
            Op::SubtractAssign => compound(BinaryOp::Subtract),
            Op::MultiplyAssign => compound(BinaryOp::Multiply),
            Op::DivideAssign => compound(BinaryOp::Divide),
            Op::ModuloAssign => compound(BinaryOp::Modulo),
            Op::AndAssign => compound(BinaryOp::BitAnd),
            Op::OrAssign => compound(BinaryOp::BitOr),
            Op::XorAssign => compound(BinaryOp::BitXor),
            Op::ConcatenateAssign => compound(BinaryOp::Concatenate),
            Op::ShiftLeftAssign => compound(BinaryOp::ShiftLeft),
            Op::ShiftRightAssign => compound(BinaryOp::ShiftRight),
            // Removed by the preprocessor.
            Op::IfOpen | Op::IfThen | Op::IfElse | Op::IfClose => {
                self.at += 1;
                return;
            }
        };
        self.emit(terminal, Before::Nothing);
    }

    fn open_paren(&mut self) {
        self.open.push(if self.before == Before::Control { Bracket::Control } else { Bracket::Paren });
        let call = self.before == Before::Ident;
        self.emit(if call { Terminal::CallOpen } else { Terminal::GroupOpen }, Before::Nothing);
    }

    /// Closes the innermost bracket if it matches; otherwise the grammar reports the error.
    fn close(&mut self, fitting: &[Bracket]) -> Option<Bracket> {
        self.open.pop_if(|bracket| fitting.contains(bracket))
    }
}

fn compound(op: BinaryOp) -> Terminal {
    Terminal::AssignOp(AssignOp::Compound(op))
}
