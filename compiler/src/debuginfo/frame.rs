//! The canonical frame address at an address of the program, from `.debug_frame` or `.eh_frame`.

use std::sync::OnceLock;

use gimli::{BaseAddresses, CfaRule, CieOrFde, Expression, UnwindContext, UnwindSection};

use super::location::Op;
use super::registers;
use super::store::{Bytes, Damage, Store};

/// The frame descriptions' ranges, read when first needed.
#[derive(Default)]
pub(super) struct Frames {
    table: OnceLock<Table>,
}

#[derive(Default)]
struct Table {
    debug_frame: Vec<Range>,
    eh_frame: Vec<Range>,
}

/// Sorted by start; `offset` is that of the description in its section.
struct Range {
    start: u64,
    end: u64,
    offset: usize,
}

pub(super) enum FrameAddress {
    Ops(Vec<Op>),
    Expression(Expression<Bytes>),
    Unknown,
}

impl Frames {
    /// `is_entry`: the address is a function's first.
    pub fn address(&self, store: &Store, at: u64, is_entry: bool) -> Result<FrameAddress, Damage> {
        if is_entry {
            return Ok(FrameAddress::Ops(registers::frame_address_at_entry()));
        }
        let bases = bases(store);
        let table = self.table.get_or_init(|| Table {
            debug_frame: ranges(&store.debug_frame, &bases),
            eh_frame: ranges(&store.eh_frame, &bases),
        });
        if let Some(range) = find(&table.debug_frame, at) {
            return rule(&store.debug_frame, &bases, range.offset.into(), at);
        }
        match find(&table.eh_frame, at) {
            Some(range) => rule(&store.eh_frame, &bases, range.offset.into(), at),
            None => Ok(FrameAddress::Unknown),
        }
    }
}

fn bases(store: &Store) -> BaseAddresses {
    match store.eh_frame_start {
        Some(start) => BaseAddresses::default().set_eh_frame(start),
        None => BaseAddresses::default(),
    }
}

/// What can be read up to the first damage.
fn ranges<S: UnwindSection<Bytes>>(section: &S, bases: &BaseAddresses) -> Vec<Range> {
    let mut ranges = Vec::new();
    let mut entries = section.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else {
            continue;
        };
        let Ok(description) = partial.parse(S::cie_from_offset) else {
            continue;
        };
        let (start, end) = (description.initial_address(), description.end_address());
        ranges.push(Range { start, end, offset: description.offset() });
    }
    ranges.sort_by_key(|range| range.start);
    ranges
}

fn find(ranges: &[Range], at: u64) -> Option<&Range> {
    let index = ranges.partition_point(|range| range.start <= at).checked_sub(1)?;
    ranges.get(index).filter(|range| at < range.end)
}

fn rule<S: UnwindSection<Bytes>>(
    section: &S,
    bases: &BaseAddresses,
    offset: S::Offset,
    at: u64,
) -> Result<FrameAddress, Damage> {
    let description = section.fde_from_offset(bases, offset, S::cie_from_offset)?;
    let mut context = UnwindContext::new();
    let row = description.unwind_info_for_address(section, bases, &mut context, at)?;
    Ok(match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            FrameAddress::Ops(vec![Op::Register(register.0), Op::Const(*offset), Op::Add])
        }
        CfaRule::Expression(expression) => FrameAddress::Expression(expression.get(section)?),
    })
}
