// SPDX-License-Identifier: GPL-2.0-or-later

//! How a site is attached and when it runs: the basis of the plan, and the contents of the emitted table.
//!
//! Neither of them knows a probe family. A family describes its [`Mechanism`] once, in its own file, and gives each site an
//! [`Attachment`] of it.

use super::Place;

/// One way of attaching probes: a kind of runtime-c, with the facts that the plan needs.
#[derive(Debug, PartialEq, Eq)]
pub struct Mechanism {
    /// The constant of `enum spile_probe_kind` in runtime-c/script.h.
    pub kind: &'static str,
    /// Part of the names of handlers in C.
    pub label: Label,
    /// The registers of the handler.
    pub registers: Registers,
    /// Which other handlers may run at the same time.
    pub runs: Runs,
    /// Hits are wherever the CPU happens to be: only their address tells which function that is.
    pub anywhere: bool,
    /// Before a handler runs, the task may wait for memory that it is going to read.
    pub pages_in: bool,
    /// The handler never runs: `@perf` reads the attachment by its subject.
    pub counts: bool,
}

impl Mechanism {
    /// A mechanism whose handlers have no registers and may run beside all others.
    pub const fn new(kind: &'static str, label: Label) -> Mechanism {
        let (registers, runs) = (Registers::None, Runs::Anytime);
        Mechanism { kind, label, registers, runs, anywhere: false, pages_in: false, counts: false }
    }
}

/// What the name of a handler in C contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// This word.
    Word(&'static str),
    /// The probed function; of a return probe with `_return`.
    Function,
    /// The attachment's subject.
    Subject,
}

/// The registers of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registers {
    /// None that the plan has to name; those that exist are always available.
    None,
    /// Those of the probed code: the mechanism fetches the ones named.
    Code,
    /// All of them at the function's return, and at its entry the ones named.
    Return,
    /// The arguments of an event, a word each.
    Arguments,
}

/// Which other handlers may run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// None: before any probe is armed, or after all are disarmed.
    Alone,
    /// All; but so rarely that it may read the values of every CPU.
    Rarely,
    /// All.
    Anytime,
}

/// How one site is attached.
#[derive(Clone, Debug, PartialEq)]
pub struct Attachment {
    /// The way it is attached, shared by all sites of its kind.
    pub mechanism: &'static Mechanism,
    /// Where in a target; None: runtime-c finds it through the members, or it has no place.
    pub place: Option<Place>,
    /// Name of the probed tracepoint, file or counter. Empty if it has none.
    pub subject: String,
    /// Members of `struct spile_probe` (runtime-c/script.h) that this kind has, in the order of the table.
    pub members: Vec<(&'static str, Value)>,
}

impl Attachment {
    /// An attachment without a place, a subject or members.
    pub fn new(mechanism: &'static Mechanism) -> Attachment {
        Attachment { mechanism, place: None, subject: String::new(), members: Vec::new() }
    }

    /// The same at a place.
    #[must_use]
    pub fn at(mut self, place: Place) -> Attachment {
        self.place = Some(place);
        self
    }

    /// The same for the object of this name.
    #[must_use]
    pub fn of(mut self, subject: impl Into<String>) -> Attachment {
        self.subject = subject.into();
        self
    }

    /// The same with a member of `struct spile_probe`.
    #[must_use]
    pub fn with(mut self, member: &'static str, value: Value) -> Attachment {
        self.members.push((member, value));
        self
    }

    /// The same with another value of a member.
    pub fn changed(mut self, member: &'static str, value: Value) -> Attachment {
        self.members.iter_mut().filter(|(name, _)| *name == member).for_each(|(_, old)| *old = value.clone());
        self
    }

    /// Where in the code of a target the site is; None if it is not attached to an instruction there.
    pub fn code(&self) -> Option<&Place> {
        let in_code = matches!(self.mechanism.registers, Registers::Code | Registers::Return);
        self.place.as_ref().filter(|_| in_code)
    }
}

/// The value of a member, as written in C.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// `-5LL`.
    Signed(i64),
    /// `5ULL`.
    Unsigned(u64),
    /// `5`.
    Number(u32),
    /// `0400`.
    Octal(u32),
    /// `0xffffffff81000000UL`.
    Address(u64),
    /// A string literal.
    Text(String),
    /// A constant of runtime-c's headers.
    Constant(&'static str),
    /// `{ ..., ... }`: a struct's members in order.
    List(Vec<Value>),
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Number(u32::from(value))
    }
}
