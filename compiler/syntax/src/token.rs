// SPDX-License-Identifier: GPL-2.0-or-later

//! The tokens of a script, emitted by the lexer and passed on by the preprocessor.
//!
//! A token has its kind and span, but not yet its role: `-` is one operator here; [`super::operand`] decides later
//! whether it is a sign or a subtraction.

use super::ast::Extractor;
use super::error::LexicalError;
use spile_source::Span;

/// A token and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    /// Its kind, with its value.
    pub kind: Kind,
    /// Its place in the source.
    pub span: Span,
}

/// What a token is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    Ident(String),
    /// `$name` or `$$name`, with its leading dollars; a pretty-printing suffix is a separate token.
    Target(String),
    /// `$` or `$$` after something: pretty-printing.
    Dollars(u8),
    /// 0..2^64-1 as written, wrapped to the signed value.
    Number(i64),
    /// Bytes, with escapes resolved.
    String(Vec<u8>),
    /// The text between `%{` and `%}`.
    EmbeddedC(String),
    Keyword(Keyword),
    /// `@word`: macro, macro parameter or operator; the preprocessor decides which.
    AtWord(String),
    /// An `@word` that the language defines and no macro shadows.
    At(AtOperator),
    /// `$1`, `@1`, `$#`, `@#`.
    Argument(Argument),
    Op(Op),
    /// Not a token; an error only if no conditional skips it.
    Junk(LexicalError),
    /// Marks an error that has been reported.
    Poison,
}

/// A reference to a script argument on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// `@1`: the text as a string literal; else the text itself, as if written there.
    pub quoted: bool,
    /// One-based; `None` for the count (`$#`).
    pub number: Option<u32>,
    /// Letters directly after `$1`, which belong to the same word.
    pub tail: String,
}

macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($variant:ident $text:literal)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($variant),* }

        impl $name {
            /// All of them.
            pub const ALL: &[$name] = &[$($name::$variant),*];

            /// As a script spells it.
            pub fn text(self) -> &'static str {
                match self { $($name::$variant => $text),* }
            }

            /// The word with that spelling.
            pub fn from_text(text: &str) -> Option<$name> {
                match text { $($text => Some($name::$variant),)* _ => None }
            }
        }
    };
}

words! {
    /// Reserved words; legal as member names and components of probe points.
    Keyword {
        Probe "probe" Global "global" Private "private" Function "function"
        If "if" Else "else" For "for" Foreach "foreach" In "in" Limit "limit" Return "return" Delete "delete"
        While "while" Break "break" Continue "continue" Next "next" String "string" Long "long" Try "try" Catch "catch"
    }
}

words! {
    /// Operators and punctuation. `%{ ... %}` is one token, [`Kind::EmbeddedC`].
    Op {
        Aggregate "<<<" ShiftRightLogical ">>>" ShiftLeftAssign "<<=" ShiftRightAssign ">>="
        Equal "==" NotEqual "!=" LessEqual "<=" GreaterEqual ">=" Match "=~" NoMatch "!~"
        AddAssign "+=" SubtractAssign "-=" MultiplyAssign "*=" DivideAssign "/=" ModuloAssign "%=" AndAssign "&="
        XorAssign "^=" OrAssign "|=" ConcatenateAssign ".="
        AndAnd "&&" OrOr "||" Increment "++" Decrement "--" Arrow "->" ShiftLeft "<<" ShiftRight ">>"
        IfOpen "%(" IfThen "%?" IfElse "%:" IfClose "%)"
        ParenOpen "(" ParenClose ")" BracketOpen "[" BracketClose "]" BraceOpen "{" BraceClose "}"
        Comma "," Semicolon ";" Colon ":" Question "?" Not "!" Complement "~" Assign "=" Less "<" Greater ">"
        Plus "+" Minus "-" Star "*" Slash "/" Percent "%" And "&" Or "|" Xor "^" Dot "."
    }
}

/// The `@` operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtOperator {
    Cast,
    Defined,
    Entry,
    Var,
    Perf,
    Const,
    Enum,
    EnumName,
    ProbeWrite,
    KernelRegister,
    UserRegister,
    KernelDeref,
    UserDeref,
    HistLog,
    HistLinear,
    Extract(Extractor),
}

impl AtOperator {
    /// All of them.
    pub const ALL: &[(&str, AtOperator)] = &[
        ("cast", AtOperator::Cast),
        ("defined", AtOperator::Defined),
        ("entry", AtOperator::Entry),
        ("var", AtOperator::Var),
        ("perf", AtOperator::Perf),
        ("const", AtOperator::Const),
        ("enum", AtOperator::Enum),
        ("enumname", AtOperator::EnumName),
        ("probewrite", AtOperator::ProbeWrite),
        ("kregister", AtOperator::KernelRegister),
        ("uregister", AtOperator::UserRegister),
        ("kderef", AtOperator::KernelDeref),
        ("uderef", AtOperator::UserDeref),
        ("hist_log", AtOperator::HistLog),
        ("hist_linear", AtOperator::HistLinear),
        ("count", AtOperator::Extract(Extractor::Count)),
        ("sum", AtOperator::Extract(Extractor::Sum)),
        ("min", AtOperator::Extract(Extractor::Min)),
        ("max", AtOperator::Extract(Extractor::Max)),
        ("avg", AtOperator::Extract(Extractor::Average)),
        ("variance", AtOperator::Extract(Extractor::Variance)),
    ];

    /// By the word after the `@`.
    pub fn from_text(text: &str) -> Option<AtOperator> {
        AtOperator::ALL.iter().find(|(name, _)| *name == text).map(|(_, operator)| *operator)
    }

    /// The first SystemTap version that has it; empty: all supported ones.
    pub fn since(self) -> &'static str {
        match self {
            AtOperator::KernelRegister | AtOperator::UserRegister | AtOperator::KernelDeref | AtOperator::UserDeref => {
                "4.0"
            }
            AtOperator::Enum => "5.5",
            AtOperator::EnumName => "5.6",
            _ => "",
        }
    }

    /// The word after the `@`.
    pub fn text(self) -> &'static str {
        AtOperator::ALL.iter().find(|(_, operator)| *operator == self).map_or("", |(name, _)| name)
    }
}

impl Kind {
    /// As messages name it: `` `+` ``, "the number 5", "a string".
    pub fn describe(&self) -> String {
        match self {
            Kind::Ident(name) | Kind::Target(name) => format!("`{name}`"),
            Kind::Dollars(count) => format!("`{}`", "$".repeat(usize::from(*count))),
            Kind::Number(number) => format!("the number {number}"),
            Kind::String(_) => "a string".to_string(),
            Kind::EmbeddedC(_) => "embedded C".to_string(),
            Kind::Keyword(keyword) => format!("the keyword `{}`", keyword.text()),
            Kind::AtWord(name) => format!("`@{name}`"),
            Kind::At(operator) => format!("`@{}`", operator.text()),
            Kind::Argument(_) => "a script argument".to_string(),
            Kind::Op(op) => format!("`{}`", op.text()),
            Kind::Junk(_) | Kind::Poison => "what is no token".to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found_by_its_text() {
        for op in Op::ALL {
            assert_eq!(Op::from_text(op.text()), Some(*op));
        }
        for keyword in Keyword::ALL {
            assert_eq!(Keyword::from_text(keyword.text()), Some(*keyword));
        }
        for (name, operator) in AtOperator::ALL {
            assert_eq!(operator.text(), *name);
        }
    }
}
