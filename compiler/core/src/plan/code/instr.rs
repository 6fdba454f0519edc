// SPDX-License-Identifier: GPL-2.0-or-later

//! Instructions and what they are made of.

use super::{
    BufferId, IteratorId, LabelId, LocationId, LongId, MapRef, NumberRef, TableId, Text, TextId, TextRef, Value,
};
use crate::program::{Extractor, Order, RegexId, SortBy};

/// What a call is given.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Argument {
    /// A number.
    Long(Value),
    /// A string that the callee does not change.
    Text(Text),
    /// A copy that embedded C may change: `char *`.
    Bytes(BufferId),
}

/// Where a call's result goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// There is none, or nobody uses it.
    None,
    /// A number.
    Long(LongId),
    /// The bytes into the buffer, the reference into the variable.
    Text(BufferId, TextId),
}

/// Who is called: decides how results are passed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Callee {
    /// `spile_fn_NAME` of the runtime; a string is written to a last argument and its length returned.
    Builtin(&'static str),
    /// A routine of the script, the same way.
    Routine(String),
    /// A function of the embedded unit: results are written through a last argument.
    Embedded(String),
}

/// One key of an array's element.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// A number.
    Long(Value),
    /// A string.
    Text(Text),
    /// `*`.
    Any,
}

/// What is done with an array or an aggregate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MapOp {
    /// The number of the element, 0 where there is none.
    Long(LongId),
    /// Its string, "" where there is none. Copied: it stays when the element changes.
    Text(BufferId, TextId),
    /// Whether there is an element.
    Has(LongId),
    /// Sets the number of the element.
    SetLong(Value),
    /// Sets its string.
    SetText(Text),
    /// Adds to a long; the new value.
    Add(LongId, Value),
    /// Deletes the elements with these keys.
    Delete,
    /// Deletes all elements, or forgets all values of an aggregate.
    Clear,
    /// `<<<`.
    Feed(Value),
    /// `@count` and the others.
    Extract(LongId, Extractor),
    /// Count of the histogram's bucket with that number.
    Bucket(LongId, Value),
    /// Whether the histogram has a bucket with that number.
    HasBucket(LongId, Value),
}

impl MapOp {
    /// Whether it can end in a run-time error. What walks over elements is charged, and may be one too many.
    pub fn fails(&self, keys: &[Key]) -> bool {
        match self {
            MapOp::SetLong(_)
            | MapOp::SetText(_)
            | MapOp::Add(..)
            | MapOp::Feed(_)
            | MapOp::Extract(..)
            | MapOp::Bucket(..)
            | MapOp::Clear => true,
            MapOp::Has(_) | MapOp::Delete => keys.is_empty() || keys.contains(&Key::Any),
            MapOp::Long(_) | MapOp::Text(..) | MapOp::HasBucket(..) => false,
        }
    }
}

/// A `foreach`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Loop {
    /// Of this loop alone.
    pub iterator: IteratorId,
    /// What it goes over.
    pub map: MapRef,
    /// The buckets of the histogram of the aggregate with [`Loop::keys`].
    pub histogram: bool,
    /// The slice, or the keys of the aggregate with the histogram.
    pub keys: Vec<Key>,
    /// None: in the order of the table.
    pub sort: Option<(SortBy, Order)>,
    /// Elements at the most.
    pub limit: Option<Value>,
    /// Of the loop: what it takes to list and sort may be too much.
    pub location: LocationId,
    /// One turn.
    pub body: Vec<Instr>,
}

/// A part of a record's payload.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// A number.
    Long(Value),
    /// A string.
    Text(Text),
    /// `bytes` of memory, `most` at the most.
    Memory { address: Value, bytes: Value, most: u32, user: bool },
    /// The object at the address, as its description says; `most` bytes at the most.
    Pretty { table: TableId, address: Value, most: u32 },
    /// Addresses of a stack from `first` on, at most `most` (below 0: all).
    Stack { user: bool, first: Value, most: Value },
    /// The buckets of an aggregate's histogram, that many.
    Histogram { map: MapRef, keys: Vec<Key>, buckets: u32 },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Instr {
    /// A line of the script, for the reader of the C text.
    Comment(String),
    /// Sets a variable.
    SetLong(LongId, Value),
    /// A reference to bytes that stay: no copy.
    SetText(TextId, Text),
    /// Copies the bytes to the buffer, and refers to them there.
    Copy { from: Text, buffer: BufferId, to: TextId },
    /// The same with both strings behind each other.
    Concatenate { left: Text, right: Text, buffer: BufferId, to: TextId },
    /// Sets a global.
    SetGlobalLong(NumberRef, Value),
    /// Sets a global: the bytes are copied.
    SetGlobalText(TextRef, Text),
    /// Adds to the counter with that number.
    Count { counter: u32, global: NumberRef, value: Value },
    /// Saves at the probed function's entry, that many bytes into the instance's data.
    SaveLong(u32, Value),
    /// The same of a string.
    SaveText(u32, Text),
    /// `/` or `%`: by 0 is an error.
    Divide { to: LongId, modulo: bool, left: Value, right: Value, location: LocationId },
    /// Fault-safe read of 1, 2, 4 or 8 bytes, zero-extended.
    Read { to: LongId, address: Value, size: u8, user: bool, location: LocationId },
    /// Whether the pattern matches.
    Match {
        to: LongId,
        regex: RegexId,
        /// The pattern tells where its groups match.
        tagged: bool,
        text: Text,
    },
    /// Guru mode: writes the low bytes of the value.
    Write { address: Value, size: u8, value: Value, location: LocationId },
    /// Guru mode: sets the word of struct pt_regs at this byte offset.
    SetRegister(u32, Value),
    /// Calls a function. `location`: for those that may fail.
    Call { callee: Callee, arguments: Vec<Argument>, outcome: Outcome, location: Option<LocationId> },
    /// A record for the loader to format. `location`: where parts may fail; then there is none.
    Record { format: u32, parts: Vec<Part>, location: Option<LocationId> },
    /// The same in the kernel, to a string.
    Format { table: TableId, parts: Vec<Part>, buffer: BufferId, to: TextId, location: LocationId },
    /// One of two branches.
    If { condition: Value, then: Vec<Instr>, otherwise: Vec<Instr> },
    /// One operation on an array or aggregate. With `location` where it may fail.
    Map { map: MapRef, keys: Vec<Key>, op: MapOp, location: Option<LocationId> },
    /// Turns over elements.
    Foreach(Box<Loop>),
    /// Key of the iterator's element; the value where there is no number.
    IteratorLong(LongId, IteratorId, Option<u32>),
    /// The same of a string, copied to the buffer.
    IteratorText(BufferId, TextId, IteratorId, Option<u32>),
    /// For ever, until [`Instr::Goto`] leads out.
    Loop(Vec<Instr>),
    /// A jump target.
    Label(LabelId),
    /// A jump.
    Goto(LabelId),
    /// The probe point's own condition turned the hit away.
    Filter,
    /// What conditions of probe points read may be changed by this run.
    Rearm,
    /// To the label if an error is set.
    Check(LabelId),
    /// The same after a call of a script's function: the error's trace gets this place, too.
    CheckCall { location: LocationId, failed: LabelId },
    /// Statements that count against MAXACTION.
    Charge { statements: u32, location: LocationId },
    /// Takes the error out, its message to the variable; to the label if it cannot be caught.
    Catch { buffer: BufferId, to: TextId, uncaught: LabelId },
    /// Whether embedded C said STAP_NEXT; that is forgotten then.
    TakeNext(LongId),
    /// Sets the result.
    ReturnLong(Value),
    /// Copies the result to the caller's memory.
    ReturnText(Text),
    /// What has been written to [`BufferId::RESULT`].
    ReturnWritten(TextId),
}
