// SPDX-License-Identifier: GPL-2.0-or-later

//! The expected output of programs, by the specification of the language: everything is computed in the simplest way,
//! and no code is shared with the compiler, the runtime or the loader.
//!
//! Operands and arguments are evaluated from left to right. Strings are truncated when stored, joined, passed or
//! returned.

mod aggregate;
mod array;
mod expression;
mod format;
pub mod interleaved;
mod pattern;
mod statement;
mod text;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::tree::*;
use super::write::{self, MARK};
use array::Array;

/// Settings of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// MAXSTRINGLEN: the maximum length of a string plus one.
    pub string_bytes: usize,
    /// MAXMAPENTRIES
    pub map_entries: usize,
    /// Number of events.
    pub events: usize,
}

/// Maximum nesting of calls.
pub const MAX_NESTING: usize = 6;

/// Limits beyond which a program takes too long, or comes near the limits of a handler.
const STEPS: usize = 30_000;
const DEPTH: usize = MAX_NESTING;
const PRINTED: usize = 60_000;

/// The output of all handlers of a program. None: not suitable for this test, because it runs too long or has an error
/// that cannot be caught.
pub fn output(number: usize, program: &Program, limits: Limits) -> Option<Vec<u8>> {
    let mut machine = Machine::new(program, limits);
    let place = |index: usize, handler: &Handler| Hit {
        user: 0,
        point: match handler.when {
            HandlerKind::Event => write::resolved_event().to_string(),
            other => write::point(other, number, index, write::EVENT),
        },
        function: if handler.when == HandlerKind::Event { write::FUNCTION } else { "" },
    };
    for when in [HandlerKind::Begin, HandlerKind::Event, HandlerKind::End] {
        let times = if when == HandlerKind::Event { limits.events } else { 1 };
        for _ in 0..times {
            for (index, handler) in program.handlers.iter().enumerate().filter(|(_, handler)| handler.when == when) {
                machine.hit = place(index, handler);
                machine.run(number, handler)?;
            }
        }
    }
    Some(machine.printed)
}

/// Why execution does not continue with the next statement.
enum Stop {
    Error(Vec<u8>),
    Next,
    Break,
    Continue,
    Return(Value),
    /// The program is not suitable for this test.
    Unfit,
}

type Evaluated<T> = Result<T, Stop>;

enum Cell {
    Scalar(Value),
    Array(Array<Value>),
    /// All samples of each element; a scalar aggregate is the element without keys.
    Aggregate(Array<Vec<i64>>),
}

/// What a handler may ask about the hit for which it runs.
#[derive(Default)]
struct Hit {
    user: i64,
    /// The probe point, resolved.
    point: String,
    /// The probed function, if there is one.
    function: &'static str,
}

struct Machine<'a> {
    program: &'a Program,
    limits: Limits,
    hit: Hit,
    globals: Vec<Cell>,
    printed: Vec<u8>,
    steps: usize,
    depth: usize,
    /// The rest of tokenize()'s string.
    untokenized: Option<Vec<u8>>,
}

/// The variables of one run of a handler or function.
struct Frame {
    locals: Vec<Value>,
}

impl Frame {
    fn new(body: &Body) -> Frame {
        Frame { locals: body.locals.iter().map(|kind| Value::unset(*kind)).collect() }
    }
}

impl<'a> Machine<'a> {
    fn new(program: &'a Program, limits: Limits) -> Machine<'a> {
        let cell = |global: &Global| {
            let entries = global.size.entries.unwrap_or(limits.map_entries);
            match &global.kind {
                GlobalKind::Scalar { kind, initial, .. } => {
                    Cell::Scalar(initial.clone().unwrap_or(Value::unset(*kind)))
                }
                GlobalKind::Array { .. } => Cell::Array(Array::new(entries, global.size)),
                GlobalKind::Aggregate { keys, .. } if keys.is_empty() => {
                    Cell::Aggregate(Array::new(1, Size::default()))
                }
                GlobalKind::Aggregate { .. } => Cell::Aggregate(Array::new(entries, global.size)),
            }
        };
        let globals = program.globals.iter().map(cell).collect();
        Machine {
            program,
            limits,
            hit: Hit::default(),
            globals,
            printed: Vec::new(),
            steps: 0,
            depth: 0,
            untokenized: None,
        }
    }

    fn run(&mut self, number: usize, handler: &Handler) -> Option<()> {
        self.untokenized = None;
        self.steps = 0;
        if handler.guarded {
            self.printed.extend_from_slice(format!("\n{MARK}{number}\n").as_bytes());
        }
        let mut frame = Frame::new(&handler.body);
        match self.all(&mut frame, &handler.body.statements) {
            Ok(()) | Err(Stop::Next) => Some(()),
            Err(Stop::Error(message)) if handler.guarded => {
                let message = self.cut(message);
                self.printed.extend_from_slice(&[b"caught ", message.as_slice(), b"\n"].concat());
                Some(())
            }
            Err(_) => None,
        }
    }

    fn step(&mut self) -> Evaluated<()> {
        self.steps += 1;
        if self.steps > STEPS || self.printed.len() > PRINTED { Err(Stop::Unfit) } else { Ok(()) }
    }

    /// A string as stored.
    fn cut(&self, mut text: Vec<u8>) -> Vec<u8> {
        text.truncate(self.limits.string_bytes - 1);
        text
    }
}

fn error<T>(message: &str) -> Evaluated<T> {
    Err(Stop::Error(message.as_bytes().to_vec()))
}

/// Splits a module's output by program: a mark names the program of the following lines.
pub fn apart(printed: &[u8]) -> BTreeMap<usize, Vec<u8>> {
    let mut parts: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
    let mut of = usize::MAX;
    for line in printed.split_inclusive(|byte| *byte == b'\n') {
        let number =
            line.strip_prefix(MARK.as_bytes()).and_then(|rest| std::str::from_utf8(rest).ok()?.trim_end().parse().ok());
        of = number.unwrap_or(of);
        parts.entry(of).or_default().extend_from_slice(line);
    }
    parts
}
