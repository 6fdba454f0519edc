// SPDX-License-Identifier: GPL-2.0-or-later

//! What a handler or function does, step by step: all that is left is to spell it in C.
//!
//! A [`Value`] or [`Text`] has no effect and cannot fail; whatever has or can is an [`Instr`] with its result in a
//! variable. The order of instructions is the order of the language: left to right.

use std::collections::{HashMap, HashSet};

use crate::program::{BinaryOp, BitField, Extractor, GlobalId, Order, RegexId, SortBy, Type, id};

id!(/** A long of the routine: index into [`Routine::longs`]. */ LongId);
id!(/** A string reference of the routine: index into [`Routine::texts`]. */ TextId);
id!(/** MAXSTRINGLEN bytes of the routine's frame: index into [`Routine::buffers`]; or [`BufferId::RESULT`]. */ BufferId);
id!(/** A `foreach` of the routine: its iterator, and what that needs of the frame: index into [`Routine::iterators`]. */ IteratorId);
id!(/** A jump target of the routine. */ LabelId);
id!(/** A place that a run-time error names: index into the metadata's locations. */ LocationId);
id!(/** Bytecode that the module itself interprets: index into [`super::Plan::tables`]. */ TableId);

impl BufferId {
    /// The caller's memory for the string that the routine returns.
    pub const RESULT: BufferId = BufferId(u32::MAX);
}

impl LocationId {
    const OWN: u32 = 1 << 31;

    /// A place that each probe has of its own: the number of that constant of the probe.
    pub fn own(constant: u32) -> LocationId {
        LocationId(constant | LocationId::OWN)
    }

    pub fn as_own(self) -> Option<u32> {
        (self.0 & LocationId::OWN != 0).then_some(self.0 & !LocationId::OWN)
    }
}

/// Leaves the routine: releases its frame and returns.
pub const OUT: LabelId = LabelId(0);

/// One C function.
#[derive(Debug)]
pub struct Routine {
    pub symbol: String,
    /// What it is, for the reader of the C text; may have several lines.
    pub comment: String,
    pub parameters: Vec<Parameter>,
    pub returns: Option<Type>,
    /// Names of longs; parameters are not among them.
    pub longs: Vec<Variable>,
    pub texts: Vec<Variable>,
    pub buffers: Vec<String>,
    pub iterators: Vec<IteratorMemory>,
    pub frame: Frame,
    /// Its variables are in frame memory too, because the stack has no room for them.
    pub spilled: bool,
    pub code: Vec<Instr>,
}

impl Routine {
    /// It needs frame memory.
    pub fn has_frame(&self) -> bool {
        self.spilled || !self.buffers.is_empty() || self.iterators.iter().any(|iterator| iterator.bytes() > 0)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Variable {
    pub name: String,
    /// Declared as a parameter.
    pub parameter: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Parameter {
    Long(LongId),
    Text(TextId),
}

/// Memory that one `foreach` needs beside the iterator itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct IteratorMemory {
    /// Element numbers that are sorted or picked out; 0: none.
    pub order: u32,
    /// A histogram's buckets are copied.
    pub buckets: bool,
}

impl IteratorMemory {
    /// Bytes of frame memory.
    pub fn bytes(self) -> u64 {
        let buckets = if self.buckets { u64::from(crate::program::MAX_BUCKETS) * 8 } else { 0 };
        (u64::from(self.order) * 4).next_multiple_of(8) + buckets
    }
}

/// How the routine gets memory for its buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Frame {
    /// A handler: the first of the CPU's frame memory, always enough.
    Handler,
    /// A function: checked, and the nesting counted.
    Checked,
    /// A function without buffers that cannot be nested too deep.
    None,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    Const(i64),
    /// A constant of the running probe's own.
    Own(u32),
    Long(LongId),
    Global(GlobalId),
    Negate(Box<Value>),
    Not(Box<Value>),
    Complement(Box<Value>),
    /// No division, no concatenation.
    Binary(BinaryOp, Box<Value>, Box<Value>),
    /// Comparison of strings, bytewise.
    Compare(BinaryOp, Box<Text>, Box<Text>),
    Conditional(Box<Value>, Box<Value>, Box<Value>),
    /// A link-time address of the kernel, moved to where it runs or to this CPU's copy.
    KernelAddress {
        address: u64,
        per_cpu: bool,
    },
    /// So many bytes behind a symbol of a module: index into [`super::Plan::module_symbols`].
    ModuleAddress {
        symbol: u32,
        offset: u64,
        per_cpu: bool,
    },
    /// Word of struct pt_regs at this byte offset.
    Register(u32),
    /// Saved at the probed function's entry, this many bytes into the instance's data.
    Saved(u32),
    SignExtend(Box<Value>, u8),
    Bits(Box<Value>, BitField),
    Length(Box<Text>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Text {
    Literal(Vec<u8>),
    /// A constant of the running probe's own.
    Own(u32),
    Variable(TextId),
    Global(GlobalId),
    /// As [`Value::Saved`]: an unsigned length, then the bytes.
    Saved(u32),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Argument {
    Long(Value),
    Text(Text),
    /// A copy that embedded C may change: `char *`.
    Bytes(BufferId),
}

/// Where a call's result goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    None,
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
    Long(Value),
    Text(Text),
    /// `*`.
    Any,
}

/// What is done with an array or an aggregate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MapOp {
    Long(LongId),
    /// Copied: it stays when the element changes.
    Text(BufferId, TextId),
    Has(LongId),
    SetLong(Value),
    SetText(Text),
    /// Adds to a long; the new value.
    Add(LongId, Value),
    Delete,
    Clear,
    Feed(Value),
    Extract(LongId, Extractor),
    Bucket(LongId, Value),
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
    pub iterator: IteratorId,
    pub map: GlobalId,
    /// The buckets of the histogram of the aggregate with [`Loop::keys`].
    pub histogram: bool,
    /// The slice, or the keys of the aggregate with the histogram.
    pub keys: Vec<Key>,
    pub sort: Option<(SortBy, Order)>,
    pub limit: Option<Value>,
    /// Of the loop: what it takes to list and sort may be too much.
    pub location: LocationId,
    pub body: Vec<Instr>,
}

/// A part of a record's payload.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    Long(Value),
    Text(Text),
    /// `bytes` of memory, `most` at the most.
    Memory {
        address: Value,
        bytes: Value,
        most: u32,
        user: bool,
    },
    Pretty {
        table: TableId,
        address: Value,
        most: u32,
    },
    /// Addresses of a stack from `first` on, at most `most` (below 0: all).
    Stack {
        user: bool,
        first: Value,
        most: Value,
    },
    /// The buckets of an aggregate's histogram, that many.
    Histogram {
        map: GlobalId,
        keys: Vec<Key>,
        buckets: u32,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Instr {
    Comment(String),
    SetLong(LongId, Value),
    /// A reference to bytes that stay: no copy.
    SetText(TextId, Text),
    Copy {
        from: Text,
        buffer: BufferId,
        to: TextId,
    },
    Concatenate {
        left: Text,
        right: Text,
        buffer: BufferId,
        to: TextId,
    },
    SetGlobalLong(GlobalId, Value),
    SetGlobalText(GlobalId, Text),
    /// Adds to a counter.
    Count(GlobalId, Value),
    SaveLong(u32, Value),
    SaveText(u32, Text),
    Divide {
        to: LongId,
        modulo: bool,
        left: Value,
        right: Value,
        location: LocationId,
    },
    Read {
        to: LongId,
        address: Value,
        size: u8,
        user: bool,
        location: LocationId,
    },
    /// Whether the pattern matches.
    Match {
        to: LongId,
        regex: RegexId,
        text: Text,
    },
    Write {
        address: Value,
        size: u8,
        value: Value,
        location: LocationId,
    },
    SetRegister(u32, Value),
    /// `location`: for those that may fail.
    Call {
        callee: Callee,
        arguments: Vec<Argument>,
        outcome: Outcome,
        location: Option<LocationId>,
    },
    /// A record for the loader to format. `location`: where parts may fail; then there is none.
    Record {
        format: u32,
        parts: Vec<Part>,
        location: Option<LocationId>,
    },
    /// The same in the kernel, to a string.
    Format {
        table: TableId,
        parts: Vec<Part>,
        buffer: BufferId,
        to: TextId,
        location: LocationId,
    },
    If {
        condition: Value,
        then: Vec<Instr>,
        otherwise: Vec<Instr>,
    },
    /// With `location` where it may fail.
    Map {
        map: GlobalId,
        keys: Vec<Key>,
        op: MapOp,
        location: Option<LocationId>,
    },
    Foreach(Box<Loop>),
    /// Key of the iterator's element; the value where there is no number.
    IteratorLong(LongId, IteratorId, Option<u32>),
    IteratorText(BufferId, TextId, IteratorId, Option<u32>),
    /// For ever, until [`Instr::Goto`] leads out.
    Loop(Vec<Instr>),
    Label(LabelId),
    Goto(LabelId),
    /// The probe point's own condition turned the hit away.
    Filter,
    /// What conditions of probe points read may be changed by this run.
    Rearm,
    /// An error that is set has come out of the call here.
    CalledFrom(LocationId),
    /// To the label if an error is set.
    Check(LabelId),
    Charge {
        statements: u32,
        location: LocationId,
    },
    /// Takes the error out, its message to the variable; to the label if it cannot be caught.
    Catch {
        buffer: BufferId,
        to: TextId,
        uncaught: LabelId,
    },
    /// Whether embedded C said STAP_NEXT; that is forgotten then.
    TakeNext(LongId),
    ReturnLong(Value),
    ReturnText(Text),
    /// What has been written to [`BufferId::RESULT`].
    ReturnWritten(TextId),
}

/// Whether running `code` can change what `value` reads.
pub fn changes_value(code: &[Instr], value: &Value) -> bool {
    match value {
        Value::Const(_)
        | Value::Own(_)
        | Value::Saved(_)
        | Value::KernelAddress { .. }
        | Value::ModuleAddress { .. } => false,
        Value::Long(id) => code.iter().any(|instr| sets_long(instr, *id)),
        Value::Global(id) => code.iter().any(|instr| sets_global(instr, *id)),
        Value::Register(offset) => any(code, &|instr| matches!(instr, Instr::SetRegister(to, _) if to == offset)),
        Value::Negate(inner)
        | Value::Not(inner)
        | Value::Complement(inner)
        | Value::SignExtend(inner, _)
        | Value::Bits(inner, _) => changes_value(code, inner),
        Value::Binary(_, left, right) => changes_value(code, left) || changes_value(code, right),
        Value::Compare(_, left, right) => changes_text(code, left) || changes_text(code, right),
        Value::Conditional(a, b, c) => [a, b, c].iter().any(|value| changes_value(code, value)),
        Value::Length(text) => changes_text(code, text),
    }
}

/// Whether running `code` can change the bytes of `text`, or which ones it refers to.
pub fn changes_text(code: &[Instr], text: &Text) -> bool {
    match text {
        Text::Literal(_) | Text::Own(_) | Text::Saved(_) => false,
        Text::Variable(id) => code.iter().any(|instr| sets_text(instr, *id)),
        Text::Global(id) => code.iter().any(|instr| sets_global(instr, *id)),
    }
}

/// Whether `test` holds for an instruction, nested ones included.
fn any(code: &[Instr], test: &dyn Fn(&Instr) -> bool) -> bool {
    code.iter().any(|instr| {
        test(instr)
            || match instr {
                Instr::If { then, otherwise, .. } => any(then, test) || any(otherwise, test),
                Instr::Loop(body) => any(body, test),
                Instr::Foreach(foreach) => any(&foreach.body, test),
                _ => false,
            }
    })
}

fn sets_long(instr: &Instr, id: LongId) -> bool {
    any(std::slice::from_ref(instr), &|instr| match instr {
        Instr::SetLong(to, _)
        | Instr::Divide { to, .. }
        | Instr::Read { to, .. }
        | Instr::Match { to, .. }
        | Instr::IteratorLong(to, ..)
        | Instr::TakeNext(to) => *to == id,
        Instr::Map { op, .. } => match op {
            MapOp::Long(to) | MapOp::Has(to) | MapOp::Add(to, _) | MapOp::Extract(to, _) => *to == id,
            MapOp::Bucket(to, _) | MapOp::HasBucket(to, _) => *to == id,
            _ => false,
        },
        Instr::Call { outcome: Outcome::Long(to), .. } => *to == id,
        _ => false,
    })
}

fn sets_text(instr: &Instr, id: TextId) -> bool {
    any(std::slice::from_ref(instr), &|instr| match instr {
        Instr::SetText(to, _)
        | Instr::Copy { to, .. }
        | Instr::Concatenate { to, .. }
        | Instr::Format { to, .. }
        | Instr::Catch { to, .. }
        | Instr::IteratorText(_, to, ..)
        | Instr::Map { op: MapOp::Text(_, to), .. }
        | Instr::Call { outcome: Outcome::Text(_, to), .. } => *to == id,
        _ => false,
    })
}

fn sets_global(instr: &Instr, id: GlobalId) -> bool {
    any(std::slice::from_ref(instr), &|instr| match instr {
        Instr::SetGlobalLong(to, _) | Instr::SetGlobalText(to, _) | Instr::Count(to, _) => *to == id,
        Instr::Call { callee: Callee::Routine(_) | Callee::Embedded(_), .. } => true,
        _ => false,
    })
}

/// Whether a handler does nothing but add to counters, depending on numbers alone: it cannot fail, ends soon, and needs
/// nothing of the context but the registers.
pub fn only_counts(code: &[Instr]) -> bool {
    code.iter().all(|instr| match instr {
        Instr::Comment(_) | Instr::Label(_) | Instr::Goto(_) => true,
        Instr::SetLong(_, value) | Instr::Count(_, value) => is_plain(value),
        Instr::If { condition, then, otherwise } => is_plain(condition) && only_counts(then) && only_counts(otherwise),
        Instr::Call { callee: Callee::Builtin(symbol), arguments, .. } => {
            arguments.is_empty() && crate::builtin::all().any(|builtin| builtin.symbol == *symbol && builtin.plain)
        }
        _ => false,
    })
}

fn is_plain(value: &Value) -> bool {
    match value {
        Value::Const(_)
        | Value::Long(_)
        | Value::Global(_)
        | Value::Register(_)
        | Value::KernelAddress { per_cpu: false, .. } => true,
        Value::Negate(inner)
        | Value::Not(inner)
        | Value::Complement(inner)
        | Value::SignExtend(inner, _)
        | Value::Bits(inner, _) => is_plain(inner),
        Value::Binary(_, left, right) => is_plain(left) && is_plain(right),
        Value::Conditional(a, b, c) => is_plain(a) && is_plain(b) && is_plain(c),
        Value::Own(_)
        | Value::KernelAddress { per_cpu: true, .. }
        | Value::ModuleAddress { .. }
        | Value::Compare(..)
        | Value::Saved(_)
        | Value::Length(_) => false,
    }
}

/// The same code without [`Instr::Comment`], at any depth.
pub fn without_comments(code: &[Instr]) -> Vec<Instr> {
    let kept = code.iter().filter(|instr| !matches!(instr, Instr::Comment(_)));
    kept.map(|instr| match instr {
        Instr::If { condition, then, otherwise } => Instr::If {
            condition: condition.clone(),
            then: without_comments(then),
            otherwise: without_comments(otherwise),
        },
        Instr::Loop(body) => Instr::Loop(without_comments(body)),
        Instr::Foreach(foreach) => {
            Instr::Foreach(Box::new(Loop { body: without_comments(&foreach.body), ..(**foreach).clone() }))
        }
        _ => instr.clone(),
    })
    .collect()
}

/// Shows each instruction, also those inside others.
pub fn each<'c>(code: &'c [Instr], see: &mut dyn FnMut(&'c Instr)) {
    for instr in code {
        see(instr);
        match instr {
            Instr::If { then, otherwise, .. } => {
                each(then, see);
                each(otherwise, see);
            }
            Instr::Loop(body) => each(body, see),
            Instr::Foreach(inner) => each(&inner.body, see),
            _ => {}
        }
    }
}

/// Tells of the routines that the code calls, as often as it does.
pub fn calls<'c>(code: &'c [Instr], see: &mut dyn FnMut(&'c str)) {
    each(code, &mut |instr| {
        if let Instr::Call { callee: Callee::Routine(symbol), .. } = instr {
            see(symbol);
        }
    });
}

/// The bytecode that the routines have interpreted.
pub(super) fn interpreted(routines: &[Routine]) -> HashSet<TableId> {
    let mut found = HashSet::new();
    for routine in routines {
        each(&routine.code, &mut |instr| {
            let (Instr::Record { parts, .. } | Instr::Format { parts, .. }) = instr else { return };
            found.extend(
                parts.iter().filter_map(|part| if let Part::Pretty { table, .. } = part { Some(*table) } else { None }),
            );
            if let Instr::Format { table, .. } = instr {
                found.insert(*table);
            }
        });
    }
    found
}

/// Drops routines that none of the roots calls, itself or by others: those whose calls all became something else.
pub(super) fn keep_called(routines: &mut Vec<Routine>, roots: HashSet<String>) {
    let by_symbol: HashMap<&str, &Routine> =
        routines.iter().map(|routine| (routine.symbol.as_str(), routine)).collect();
    let mut open: Vec<String> = roots.iter().cloned().collect();
    let mut called = roots;
    while let Some(symbol) = open.pop() {
        let code = by_symbol.get(symbol.as_str()).map_or(&[][..], |routine| &routine.code);
        calls(code, &mut |symbol| {
            if called.insert(symbol.to_string()) {
                open.push(symbol.to_string());
            }
        });
    }
    routines.retain(|routine| called.contains(&routine.symbol));
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A routine of which only its calls matter.
    pub fn routine(symbol: &str, code: Vec<Instr>) -> Routine {
        Routine {
            symbol: symbol.into(),
            comment: String::new(),
            parameters: Vec::new(),
            returns: None,
            longs: Vec::new(),
            texts: Vec::new(),
            buffers: Vec::new(),
            iterators: Vec::new(),
            frame: Frame::None,
            spilled: false,
            code,
        }
    }
}
