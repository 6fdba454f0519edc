// SPDX-License-Identifier: GPL-2.0-or-later

//! Instructions and their operands.

use super::{
    BufferId, FormatId, ItemsId, IteratorId, LabelId, LocationId, LongId, MapRef, NumberRef, TableId, Text, TextId,
    TextRef, Value,
};
use crate::program::{Extractor, Order, RegexId, SortBy};

/// An argument of a call.
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
    /// There is none, or it is not used.
    None,
    /// A number.
    Long(LongId),
    /// The bytes are stored in the buffer, the reference in the variable.
    Text(BufferId, TextId),
}

/// The callee: it determines how results are passed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Callee {
    /// `spile_fn_NAME` of the runtime; a string is written to a last argument and its length returned.
    Builtin(&'static str),
    /// A routine of the script, with the same convention.
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
    /// The current task's name, as the only key of an array that is fed.
    TaskName,
    /// `*`.
    Any,
    /// Instead of all keys: the element that the handler holds, by the [`Instr::Hold`] of that number.
    Held(u32),
}

/// An operation on an array or an aggregate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MapOp {
    /// The number of the element, 0 if there is none.
    Long(LongId),
    /// Its string, "" if there is none. Copied: it stays when the element changes.
    Text(BufferId, TextId),
    /// Whether there is an element.
    Has(LongId),
    /// Sets the number of the element.
    SetLong(Value),
    /// Sets its string.
    SetText(Text),
    /// Adds to a long; result: the new value.
    Add(LongId, Value),
    /// Adds to this CPU's share of a long, of an array with [`MapRef::counted`].
    Count(Value),
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
    /// Whether it can end in a run-time error. Operations that walk over elements are charged, and may exceed the limit.
    pub fn fails(&self, keys: &[Key]) -> bool {
        match self {
            MapOp::SetLong(_)
            | MapOp::SetText(_)
            | MapOp::Add(..)
            | MapOp::Count(_)
            | MapOp::Extract(..)
            | MapOp::Bucket(..)
            | MapOp::Clear => true,
            MapOp::Feed(_) => !keys.is_empty(),
            MapOp::Has(_) | MapOp::Delete => keys.is_empty() || keys.contains(&Key::Any),
            MapOp::Long(_) | MapOp::Text(..) | MapOp::HasBucket(..) => false,
        }
    }

    fn set(&self) -> Option<Set> {
        match self {
            MapOp::Long(to) | MapOp::Has(to) | MapOp::Add(to, _) | MapOp::Extract(to, _) => Some(Set::Long(*to)),
            MapOp::Bucket(to, _) | MapOp::HasBucket(to, _) => Some(Set::Long(*to)),
            MapOp::Text(_, to) => Some(Set::Text(*to)),
            MapOp::SetLong(_) | MapOp::SetText(_) | MapOp::Count(_) | MapOp::Delete | MapOp::Clear | MapOp::Feed(_) => {
                None
            }
        }
    }
}

/// A `foreach`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Loop {
    /// Unique to this loop.
    pub iterator: IteratorId,
    /// What it iterates over.
    pub map: MapRef,
    /// The buckets of the histogram of the aggregate with [`Loop::keys`].
    pub histogram: bool,
    /// The slice, or the keys of the aggregate with the histogram.
    pub keys: Vec<Key>,
    /// None: in table order.
    pub sort: Option<(SortBy, Order)>,
    /// Most elements.
    pub limit: Option<Value>,
    /// For the loop: listing and sorting may exceed the limit.
    pub location: LocationId,
    /// One iteration.
    pub body: Vec<Instr>,
}

/// A number or object of a record, as tables describe it: some bits of a register plus a number, or of a number alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Item {
    /// Of the object at that address; None: the number itself.
    pub description: Option<TableId>,
    /// Offset of the register, if there is one.
    pub register: Option<u32>,
    /// What is added to it.
    pub add: i64,
    /// First bit of a field.
    pub first: u8,
    /// Number of bits; 64: all.
    pub bits: u8,
    /// Sign-extended from that number of bits.
    pub signed: bool,
}

/// A part of a record's payload.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// A number.
    Long(Value),
    /// A string.
    Text(Text),
    /// Bytes of memory, as `%m` prints them.
    Memory {
        /// Address at run time.
        address: Value,
        /// Number of bytes; a run-time error if it is below 0 or above a page.
        bytes: Value,
        /// Bytes reserved in the record.
        most: u32,
        /// In the address space of the current process, not the kernel's.
        user: bool,
    },
    /// The object at an address, printed by its description.
    Pretty {
        /// Description of the object.
        table: TableId,
        /// Address of the object at run time.
        address: Value,
    },
    /// Several numbers and objects, by a table.
    Items {
        /// The table.
        items: ItemsId,
        /// How many of them are objects.
        objects: u32,
        /// How many are numbers.
        longs: u32,
    },
    /// Return addresses of a stack.
    Stack {
        /// The stack of the current process, not the kernel's.
        user: bool,
        /// Number of the first frame, 0 for the innermost.
        first: Value,
        /// Most frames; below 0: all.
        most: Value,
    },
    /// The addresses in a string of them, each with its time.
    StoredStack(Text),
    /// Frames of the current process's stack.
    UserStack,
    /// An address of the current process, as a frame.
    UserFrame(Value),
    /// The counts of a histogram's buckets.
    Histogram {
        /// The aggregate or the array of aggregates.
        map: MapRef,
        /// Keys of the element; none for an aggregate that is no array.
        keys: Vec<Key>,
        /// How many buckets the histogram has.
        buckets: u32,
    },
}

/// An instruction: one step of a routine that has an effect or can fail.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Instr {
    /// A line of the script, for the reader of the C text.
    Comment(String),
    /// Sets a variable.
    SetLong(LongId, Value),
    /// A reference to bytes that stay: no copy.
    SetText(TextId, Text),
    /// Copies the bytes to the buffer, and refers to them there.
    Copy {
        /// The string.
        from: Text,
        /// Takes its bytes.
        buffer: BufferId,
        /// Refers to the copy.
        to: TextId,
    },
    /// Joins two strings.
    Concatenate {
        /// The first part.
        left: Text,
        /// The second part.
        right: Text,
        /// Takes the bytes of both, cut off at MAXSTRINGLEN - 1.
        buffer: BufferId,
        /// Refers to the result.
        to: TextId,
    },
    /// Sets a global.
    SetGlobalLong(NumberRef, Value),
    /// Sets a global: the bytes are copied.
    SetGlobalText(TextRef, Text),
    /// Adds to this CPU's share of a counter.
    Count {
        /// Number of the counter, below [`super::super::Plan::counter_count`].
        counter: u32,
        /// The global whose counter it is.
        global: NumberRef,
        /// The number added; wraps around.
        value: Value,
    },
    /// Saves that many bytes into the instance's data at the probed function's entry.
    SaveLong(u32, Value),
    /// The same for a string.
    SaveText(u32, Text),
    /// `/` or `%`; a run-time error if the divisor is 0.
    Divide {
        /// Takes the result.
        to: LongId,
        /// `%`, not `/`.
        modulo: bool,
        /// The dividend.
        left: Value,
        /// The divisor.
        right: Value,
        /// What a run-time error names.
        location: LocationId,
    },
    /// Fault-safe read of 1, 2, 4 or 8 bytes, zero-extended.
    Read {
        /// Takes the number.
        to: LongId,
        /// Address at run time.
        address: Value,
        /// Bytes: 1, 2, 4 or 8.
        size: u8,
        /// In the address space of the current process, not the kernel's.
        user: bool,
        /// What a run-time error names.
        location: LocationId,
    },
    /// Whether the pattern matches.
    Match {
        /// Takes 1 or 0.
        to: LongId,
        /// The pattern.
        regex: RegexId,
        /// The groups of the match are recorded too.
        tagged: bool,
        /// The string that is searched.
        text: Text,
    },
    /// Guru mode: writes the low bytes of the value.
    Write {
        /// In the address space of the current process, not the kernel's.
        user: bool,
        /// Address at run time.
        address: Value,
        /// Bytes: 1, 2, 4 or 8.
        size: u8,
        /// Its low `size` bytes are written.
        value: Value,
        /// What a run-time error names.
        location: LocationId,
    },
    /// Guru mode: sets the word of struct pt_regs at this byte offset.
    SetRegister(u32, Value),
    /// Calls a function.
    Call {
        /// What is called.
        callee: Callee,
        /// In the order of its parameters.
        arguments: Vec<Argument>,
        /// Where the result goes.
        outcome: Outcome,
        /// What a run-time error names; None: it cannot fail.
        location: Option<LocationId>,
    },
    /// A record for the loader to format. If a part fails, no record is written.
    Record {
        /// How it is printed.
        format: FormatId,
        /// The payload, in order.
        parts: Vec<Part>,
        /// Bytes that the objects among the parts take at most.
        objects: Value,
        /// What a run-time error names; None: no part can fail.
        location: Option<LocationId>,
    },
    /// Formats in the kernel, to a string.
    Format {
        /// The format.
        table: TableId,
        /// The payload, in order.
        parts: Vec<Part>,
        /// Takes the text, cut off at MAXSTRINGLEN - 1.
        buffer: BufferId,
        /// Refers to the text.
        to: TextId,
        /// What a run-time error names.
        location: LocationId,
    },
    /// One of two branches.
    If {
        /// A number; other than 0: true.
        condition: Value,
        /// Runs if it is true.
        then: Vec<Instr>,
        /// Runs if it is not.
        otherwise: Vec<Instr>,
    },
    /// One operation on an array or aggregate.
    Map {
        /// The array or aggregate.
        map: MapRef,
        /// Keys of the element; none for an aggregate that is no array.
        keys: Vec<Key>,
        /// The operation with its operands.
        op: MapOp,
        /// What a run-time error names; None: it cannot fail.
        location: Option<LocationId>,
    },
    /// Holds the stripe of the element to the end of the handler, and finds the element; if the stripe cannot be taken, the
    /// hit is skipped.
    Hold {
        /// Numbered from 0 in the handler.
        held: u32,
        /// An array with [`MapRef::striped`].
        map: MapRef,
        /// Keys of the element.
        keys: Vec<Key>,
        /// The handler may create the element, for which an array that wraps then drops its oldest one.
        drops: bool,
        /// None: it is taken at once. Some(0): it is one of several elements of the array, whose stripes are taken with the
        /// last of them. Some(N): it is the last one of N.
        several: Option<u32>,
        /// The run has had effects: it is not skipped, but fails here, if the stripe cannot be taken for a long time.
        late: Option<LocationId>,
    },
    /// Takes all stripes of an array to the end of the handler.
    HoldWhole {
        /// Numbered from 0 in the handler.
        number: u32,
        /// An array with [`MapRef::striped`].
        map: MapRef,
        /// As in [`Instr::Hold`].
        late: Option<LocationId>,
    },
    /// Iterates over elements.
    Foreach(Box<Loop>),
    /// Key of the iterator's element; the value where there is no number.
    IteratorLong(LongId, IteratorId, Option<u32>),
    /// The same for a string, copied to the buffer.
    IteratorText(BufferId, TextId, IteratorId, Option<u32>),
    /// Endless, until [`Instr::Goto`] leaves it.
    Loop(Vec<Instr>),
    /// A jump target.
    Label(LabelId),
    /// A jump.
    Goto(LabelId),
    /// The probe point's own condition rejected the hit.
    Filter,
    /// This run may change what conditions of probe points read.
    Rearm,
    /// Jumps to the label if an error is set.
    Check(LabelId),
    /// The same after a call of a script's function: adds the call's place to the error's trace.
    CheckCall {
        /// The call.
        location: LocationId,
        /// Target if an error is set.
        failed: LabelId,
    },
    /// Charges statements against MAXACTION; a run-time error if the limit is exceeded.
    Charge {
        /// How many.
        statements: u32,
        /// What the run-time error names.
        location: LocationId,
    },
    /// Clears the error and stores its message.
    Catch {
        /// Takes the message.
        buffer: BufferId,
        /// Refers to the message.
        to: TextId,
        /// Target if the error cannot be caught.
        uncaught: LabelId,
    },
    /// Whether the function called last executed STAP_NEXT or [`Instr::SayNext`]; resets that.
    TakeNext(LongId),
    /// Says to the caller that the function is left by `next`.
    SayNext,
    /// Sets the result.
    ReturnLong(Value),
    /// Copies the result to the caller's memory.
    ReturnText(Text),
    /// What has been written to [`BufferId::RESULT`].
    ReturnWritten(TextId),
}

/// A variable that an instruction sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// A number.
    Long(LongId),
    /// A string.
    Text(TextId),
}

impl Instr {
    /// The variable that it sets itself; an instruction inside it does not count. No variant is left to a default: one that is
    /// forgotten here would let code use a value from before.
    pub fn set(&self) -> Option<Set> {
        match self {
            Instr::SetLong(to, _)
            | Instr::Divide { to, .. }
            | Instr::Read { to, .. }
            | Instr::Match { to, .. }
            | Instr::IteratorLong(to, ..)
            | Instr::TakeNext(to) => Some(Set::Long(*to)),
            Instr::SetText(to, _)
            | Instr::Copy { to, .. }
            | Instr::Concatenate { to, .. }
            | Instr::Format { to, .. }
            | Instr::Catch { to, .. }
            | Instr::IteratorText(_, to, ..) => Some(Set::Text(*to)),
            Instr::Map { op, .. } => op.set(),
            Instr::Call { outcome, .. } => match outcome {
                Outcome::None => None,
                Outcome::Long(to) => Some(Set::Long(*to)),
                Outcome::Text(_, to) => Some(Set::Text(*to)),
            },
            Instr::Comment(_)
            | Instr::SetGlobalLong(..)
            | Instr::SetGlobalText(..)
            | Instr::Count { .. }
            | Instr::SaveLong(..)
            | Instr::SaveText(..)
            | Instr::Write { .. }
            | Instr::SetRegister(..)
            | Instr::Record { .. }
            | Instr::If { .. }
            | Instr::Hold { .. }
            | Instr::HoldWhole { .. }
            | Instr::Foreach(_)
            | Instr::Loop(_)
            | Instr::Label(_)
            | Instr::Goto(_)
            | Instr::Filter
            | Instr::Rearm
            | Instr::Check(_)
            | Instr::CheckCall { .. }
            | Instr::Charge { .. }
            | Instr::SayNext
            | Instr::ReturnLong(_)
            | Instr::ReturnText(_)
            | Instr::ReturnWritten(_) => None,
        }
    }
}
