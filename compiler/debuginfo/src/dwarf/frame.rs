// SPDX-License-Identifier: GPL-2.0-or-later

//! The canonical frame address at an address of the program, from `.debug_frame` or `.eh_frame`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;

use gimli::{BaseAddresses, CfaRule, CieOrFde, Expression, RegisterRule, UnwindContext, UnwindSection};

use super::store::{Bytes, EntryError, Store};
use crate::facts::Op;
use crate::facts::registers::{self, Machine};

/// The frame descriptions' ranges, read when first needed.
#[derive(Default)]
pub(super) struct Frames {
    table: OnceLock<Table>,
}

#[derive(Default)]
struct Table {
    debug_frame: Vec<Described>,
    eh_frame: Vec<Described>,
}

/// Sorted by start; `offset` is the offset of the description in its section.
struct Described {
    start: u64,
    end: u64,
    offset: usize,
}

/// How the canonical frame address is computed at one place.
pub(super) enum FrameAddress {
    Ops(Vec<Op>),
    Expression(Expression<Bytes>),
    Unknown,
}

impl Frames {
    /// `is_entry`: the address is the function's first.
    pub fn address(&self, store: &Store, at: u64, is_entry: bool) -> Result<FrameAddress, EntryError> {
        if is_entry {
            return Ok(FrameAddress::Ops(store.machine.frame_address_at_entry()));
        }
        Ok(self.address_around(store, at)?.0)
    }

    /// The same in a function's body, and the addresses for which it is.
    pub fn address_around(&self, store: &Store, at: u64) -> Result<(FrameAddress, Range<u64>), EntryError> {
        let bases = bases(store);
        let table = self.table(store);
        if let Some(range) = find(&table.debug_frame, at) {
            return rule(&store.debug_frame, store.machine, &bases, range.offset.into(), at);
        }
        match find(&table.eh_frame, at) {
            Some(range) => rule(&store.eh_frame, store.machine, &bases, range.offset.into(), at),
            None => Ok((FrameAddress::Unknown, at..at)),
        }
    }
}

/// What is known of a caller's registers while its callee runs.
pub(super) struct CallerRegisters {
    /// The canonical frame address: the caller's stack pointer after the return.
    pub frame_address: Vec<Op>,
    /// Values of registers that calls preserve, by x86_64's number.
    preserved: Vec<(u16, Vec<Op>)>,
}

impl CallerRegisters {
    /// The value of a register after the function has returned; None: it is lost.
    pub fn register(&self, number: u16) -> Option<&[Op]> {
        if number == registers::STACK_POINTER {
            return Some(&self.frame_address);
        }
        self.preserved.iter().find(|(register, _)| *register == number).map(|(_, ops)| ops.as_slice())
    }
}

impl Frames {
    /// None where no frame description covers the address, or only with expressions.
    pub fn unwound(&self, store: &Store, at: u64) -> Result<Option<CallerRegisters>, EntryError> {
        let bases = bases(store);
        let table = self.table(store);
        if let Some(range) = find(&table.debug_frame, at) {
            return unwound(&store.debug_frame, store.machine, &bases, range.offset.into(), at);
        }
        match find(&table.eh_frame, at) {
            Some(range) => unwound(&store.eh_frame, store.machine, &bases, range.offset.into(), at),
            None => Ok(None),
        }
    }

    /// The value that the stack or frame pointer has in a function's body, at an address where it may not have it yet: by
    /// its distance from the canonical frame address later on. None: nothing is known, or it is another register.
    pub fn base_in_body(&self, store: &Store, at: u64, register: u16) -> Result<Option<Vec<Op>>, EntryError> {
        let bases = bases(store);
        let table = self.table(store);
        if let Some(range) = find(&table.debug_frame, at) {
            return base_in_body(&store.debug_frame, store.machine, &bases, range.offset.into(), (at, register));
        }
        match find(&table.eh_frame, at) {
            Some(range) => base_in_body(&store.eh_frame, store.machine, &bases, range.offset.into(), (at, register)),
            None => Ok(None),
        }
    }

    fn table(&self, store: &Store) -> &Table {
        let bases = bases(store);
        self.table.get_or_init(|| Table {
            debug_frame: ranges(&store.debug_frame, &bases),
            eh_frame: ranges(&store.eh_frame, &bases),
        })
    }
}

fn base_in_body<S: UnwindSection<Bytes>>(
    section: &S,
    machine: Machine,
    bases: &BaseAddresses,
    offset: S::Offset,
    (at, register): (u64, u16),
) -> Result<Option<Vec<Op>>, EntryError> {
    let description = section.fde_from_offset(bases, offset, S::cie_from_offset)?;
    let mut context = UnwindContext::new();
    let mut rows = description.rows(section, bases, &mut context)?;
    let mut here = None;
    // By distance, bytes of code in which it holds.
    let mut distances: BTreeMap<i64, u64> = BTreeMap::new();
    while let Some(row) = rows.next_row()? {
        let CfaRule::RegisterAndOffset { register: by, offset } = row.cfa() else { return Ok(None) };
        let by = machine.register(by.0);
        if row.contains(at) {
            here = Some((by, *offset));
        }
        if by == register {
            *distances.entry(*offset).or_default() += row.end_address().saturating_sub(row.start_address());
        }
    }
    // Besides the frame's there are those of the prologue, of arguments that are being pushed and, in 32-bit code, of a call
    // that finds its own address; and of all that runs before the frame is made, if a part of the function needs none.
    let word = i64::from(machine.word());
    let framed = distances.iter().filter(|(distance, _)| **distance > word).max_by_key(|(_, bytes)| **bytes);
    let whole = framed.or(distances.first_key_value()).map_or(0, |(distance, _)| *distance);
    // A frame found by the frame pointer has the old frame pointer and the return address above it (AMD64 supplement,
    // 3.2.2).
    let distance = if register == registers::FRAME_POINTER { 2 * word } else { whole };
    Ok(here
        .filter(|(by, _)| matches!(*by, registers::STACK_POINTER | registers::FRAME_POINTER) && distance > 0)
        .map(|(by, offset)| vec![Op::Register(by), Op::Const(offset.wrapping_sub(distance)), Op::Add]))
}

fn unwound<S: UnwindSection<Bytes>>(
    section: &S,
    machine: Machine,
    bases: &BaseAddresses,
    offset: S::Offset,
    at: u64,
) -> Result<Option<CallerRegisters>, EntryError> {
    let description = section.fde_from_offset(bases, offset, S::cie_from_offset)?;
    let mut context = UnwindContext::new();
    let row = description.unwind_info_for_address(section, bases, &mut context, at)?;
    let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else { return Ok(None) };
    let frame_address = vec![Op::Register(machine.register(register.0)), Op::Const(*offset), Op::Add];
    let mut preserved = Vec::new();
    for &number in machine.preserved() {
        let ops = match row.register(gimli::Register(machine.own_number(number))) {
            // A register that calls preserve and that no rule mentions is unchanged.
            None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => vec![Op::Register(number)],
            Some(RegisterRule::Offset(offset)) => {
                [frame_address.as_slice(), &[Op::Const(offset), Op::Add, Op::Deref(machine.word())]].concat()
            }
            Some(RegisterRule::Register(other)) => vec![Op::Register(machine.register(other.0))],
            Some(_) => continue,
        };
        preserved.push((number, ops));
    }
    Ok(Some(CallerRegisters { frame_address, preserved }))
}

fn bases(store: &Store) -> BaseAddresses {
    match store.eh_frame_start {
        Some(start) => BaseAddresses::default().set_eh_frame(start),
        None => BaseAddresses::default(),
    }
}

/// Everything up to the first damaged entry.
fn ranges<S: UnwindSection<Bytes>>(section: &S, bases: &BaseAddresses) -> Vec<Described> {
    let mut ranges = Vec::new();
    let mut entries = section.entries(bases);
    // Thousands of descriptions refer to the one before the first of them.
    let mut common = None;
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else {
            continue;
        };
        let description = partial.parse(|section, bases, offset| match &common {
            Some((at, known)) if *at == offset => Ok(Clone::clone(known)),
            _ => {
                let read = section.cie_from_offset(bases, offset)?;
                common = Some((offset, read.clone()));
                Ok(read)
            }
        });
        let Ok(description) = description else {
            continue;
        };
        let (start, end) = (description.initial_address(), description.end_address());
        ranges.push(Described { start, end, offset: description.offset() });
    }
    ranges.sort_by_key(|range| range.start);
    ranges
}

fn find(ranges: &[Described], at: u64) -> Option<&Described> {
    let index = ranges.partition_point(|range| range.start <= at).checked_sub(1)?;
    ranges.get(index).filter(|range| at < range.end)
}

thread_local! {
    /// Each is some kilobytes, and a million calls are asked for.
    static CONTEXT: RefCell<UnwindContext<usize>> = RefCell::new(UnwindContext::new());
}

fn rule<S: UnwindSection<Bytes>>(
    section: &S,
    machine: Machine,
    bases: &BaseAddresses,
    offset: S::Offset,
    at: u64,
) -> Result<(FrameAddress, Range<u64>), EntryError> {
    let description = section.fde_from_offset(bases, offset, S::cie_from_offset)?;
    CONTEXT.with_borrow_mut(|context| {
        let row = description.unwind_info_for_address(section, bases, context, at)?;
        let address = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                FrameAddress::Ops(vec![Op::Register(machine.register(register.0)), Op::Const(*offset), Op::Add])
            }
            CfaRule::Expression(expression) => FrameAddress::Expression(expression.get(section)?),
        };
        Ok((address, row.start_address()..row.end_address()))
    })
}
