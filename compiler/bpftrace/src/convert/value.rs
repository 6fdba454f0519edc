// SPDX-License-Identifier: GPL-2.0-or-later

//! What a translated expression is.

/// What kind of value an expression has, as far as it matters for printing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Number,
    Text,
    /// Addresses of a stack of the kernel.
    KernelStack,
    /// Addresses of a stack of the current program.
    UserStack,
    /// A member, or a variable that was never assigned: the compiler knows its type.
    Unknown,
}

/// An expression of a script.
#[derive(Clone, Debug)]
pub struct Value {
    /// The expression's text.
    pub text: String,
    /// The type of its value.
    pub kind: Kind,
    /// It needs parentheses as an operand.
    pub compound: bool,
    /// The type that it points to, if the program casts it.
    pub pointee: Option<Pointee>,
    /// `->` can follow it: a context variable, a cast, or a member of one.
    pub typed: bool,
}

/// A type that a pointer was cast to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pointee {
    Struct(String),
    Number(String),
}

impl Value {
    fn new(text: impl Into<String>, kind: Kind) -> Value {
        Value { text: text.into(), kind, compound: false, pointee: None, typed: false }
    }

    /// A number.
    pub fn number(text: impl Into<String>) -> Value {
        Value::new(text, Kind::Number)
    }

    /// A string.
    pub fn string(text: impl Into<String>) -> Value {
        Value::new(text, Kind::Text)
    }

    /// A value of this kind.
    pub fn of(kind: Kind, text: impl Into<String>) -> Value {
        Value::new(text, kind)
    }

    /// A context variable, or something reached from one.
    pub fn typed(text: impl Into<String>) -> Value {
        Value { typed: true, ..Value::new(text, Kind::Unknown) }
    }

    /// A number made by an operator.
    pub fn compound(text: impl Into<String>) -> Value {
        Value { compound: true, ..Value::new(text, Kind::Number) }
    }

    /// Whether it is a number other than 0, as written in the program.
    pub fn is_fixed(&self) -> bool {
        let digits = self.text.trim_start_matches("0x").trim_matches('0');
        self.text.starts_with(|letter: char| letter.is_ascii_digit())
            && !digits.is_empty()
            && digits.chars().all(|letter| letter.is_ascii_alphanumeric())
    }

    /// As an operand of an operator.
    pub fn operand(&self) -> String {
        if self.compound { format!("({})", self.text) } else { self.text.clone() }
    }

    /// As text to print: stacks with their symbols.
    pub fn shown(&self) -> String {
        match self.kind {
            Kind::KernelStack => format!("sprint_stack({})", self.text),
            Kind::UserStack => format!("sprint_ustack({})", self.text),
            Kind::Number | Kind::Text | Kind::Unknown => self.text.clone(),
        }
    }
}
