// SPDX-License-Identifier: GPL-2.0-or-later

//! Tables for unwinding: `.eh_frame` (and `.debug_frame`, for what is not in it) as a sorted list of offsets in the
//! file, each with one of few rules (abi.h, `struct spile_unwind_rule`). A handler then only searches and adds.
//!
//! On x86-64 compilers describe a frame by rsp or rbp plus a number, with rbp saved below the CFA and the return
//! address at its place; the rest is the linker's stubs, signal frames, realigned stacks, and hand-written code. Code
//! without a rule is [`UNWIND_UNKNOWN`]: there the module tries frame pointers. Code of 32 bits has the same rules, with words of
//! 4 bytes and other numbers of registers ([`Words`]).

use std::collections::{HashMap, HashSet};
use std::path::Path;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, DebugFrame, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, Operation, Register,
    RegisterRule, UnwindContext, UnwindExpression, UnwindSection, UnwindTableRow, X86, X86_64,
};
use spile_abi::device::{
    UNWIND_ADD_WORD, UNWIND_BY_CALLEE, UNWIND_DEREFERENCE, UNWIND_END, UNWIND_FRAME_BASED, UNWIND_IN_REGISTER,
    UNWIND_NARROW, UNWIND_SIGNAL, UNWIND_STORED, UNWIND_STUB, UNWIND_UNKNOWN, UnwindRule,
};

use crate::userspace::image::{Elf, Image, Section, Segment};
use crate::userspace::symbols;

type Slice<'s> = EndianSlice<'s, LittleEndian>;

/// Operations of the longest expression that becomes a rule.
const MOST_OPERATIONS: usize = 9;
/// The module's maximum.
const MAX_PLACES: usize = 8 << 20;
/// An entry for a function (FDE) begins with the instructions of a common one (CIE), which are carried out for each again.
/// These common entries may have so many times the section's bytes in all, and some more: a usual one has 24 bytes,
/// no more than the entry that uses it.
const COMMON_PER_BYTE: usize = 2;
const COMMON_BASE: usize = 1 << 20;
/// Longer entries are passed over: nothing can stop one meanwhile, and two bytes of instructions may copy all rules. The longest of
/// large programs have some KB.
const MAX_ENTRY: usize = 64 << 10;
/// Bytes of entries between two looks at whether the table is still wanted, and what each counts besides.
const LOOK_EVERY: usize = 64 << 10;
const ENTRY_COST: usize = 16;
/// Frames whose base is a register that functions save, of a file: those of ld.so are some ten. And bytes of code of each.
const MOST_BASED: usize = 64;
const MOST_CODE: usize = 4096;

/// The table of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Fewer than [`UNWIND_UNKNOWN`].
    pub rules: Vec<UnwindRule>,
    /// Offsets in the file, ascending.
    pub places: Vec<u32>,
    /// Which rule is valid from the place on, or [`UNWIND_UNKNOWN`].
    pub indices: Vec<u16>,
}

impl Table {
    /// Of the file at this path; empty if it has no frame information. Not complete if `is_over` has become true meanwhile.
    pub fn of(elf: &dyn Elf, path: &Path, is_over: &dyn Fn() -> bool) -> Table {
        let words = if elf.is_narrow() { &NARROW } else { &WIDE };
        let mut rows = Rows { words, segments: elf.segments(), rules: Rules::default(), rows: Vec::new(), is_over };
        if let Some(section) = elf.section(".eh_frame").or_else(|| without_section(elf, words)) {
            let mut frames = EhFrame::new(&section.data, LittleEndian);
            frames.set_address_size(words.bytes);
            let address = |name| elf.section(name).map_or(0, |section| section.address);
            let bases = bases(&section, address(".text"), address(".got"));
            let based = rows.read(&frames, &section.data, &bases);
            rows.take_from_callees(elf, &based, &frames, &section.data, &bases);
        }
        let own = elf.section(".debug_frame");
        let apart = || Image::of(symbols::debug_file(elf, path)?).with(|elf| elf.section(".debug_frame")).flatten();
        if let Some(section) = own.or_else(apart) {
            let mut frames = DebugFrame::new(&section.data, LittleEndian);
            frames.set_address_size(words.bytes);
            let known = rows.rows.len();
            rows.read(&frames, &section.data, &BaseAddresses::default());
            rows.drop_known(known);
        }
        rows.finish()
    }

    /// As the module takes it: rules, places, indices.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.rules.len() * 8 + self.places.len() * 6);
        for rule in &self.rules {
            bytes.extend(rule.cfa.to_le_bytes());
            bytes.extend(rule.frame.to_le_bytes());
            bytes.extend([rule.base, rule.next]);
        }
        bytes.extend(self.places.iter().flat_map(|place| place.to_le_bytes()));
        bytes.extend(self.indices.iter().flat_map(|index| index.to_le_bytes()));
        bytes
    }

    /// Adds no more than this to the module's memory, in bytes.
    pub fn size(&self) -> usize {
        self.rules.len() * 8 + self.places.len() * 6
    }
}

/// `.eh_frame` of a file that has no table of sections; its end is not known, but it ends with an empty entry.
fn without_section(elf: &dyn Elf, words: &Words) -> Option<Section> {
    let header = elf.frame_header()?;
    let bases = BaseAddresses::default().set_eh_frame_hdr(header.address);
    let parsed = EhFrameHdr::new(&header.data, LittleEndian).parse(&bases, words.bytes).ok()?;
    let gimli::Pointer::Direct(address) = parsed.eh_frame_ptr() else { return None };
    let data = elf.bytes(address, usize::MAX);
    (!data.is_empty()).then_some(Section { address, data })
}

fn bases(section: &Section, text: u64, got: u64) -> BaseAddresses {
    BaseAddresses::default().set_eh_frame(section.address).set_text(text).set_got(got)
}

/// Of the entry at this offset: without its first word; all of them if it is damaged.
fn length_at(bytes: &[u8], at: usize) -> usize {
    const LONG: u32 = u32::MAX;
    let rest = bytes.get(at..).unwrap_or_default();
    let length = rest.first_chunk().map(|word| u32::from_le_bytes(*word)).filter(|length| *length != LONG);
    length.and_then(|length| usize::try_from(length).ok()).unwrap_or(rest.len()).min(rest.len())
}

#[derive(Debug, Default)]
struct Rules {
    rules: Vec<UnwindRule>,
    known: HashMap<UnwindRule, u16>,
}

impl Rules {
    /// Its index; of too many different ones the last are unknown.
    fn index(&mut self, rule: Option<UnwindRule>) -> u16 {
        let Some(rule) = rule else { return UNWIND_UNKNOWN };
        if let Some(index) = self.known.get(&rule) {
            return *index;
        }
        let Ok(index) = u16::try_from(self.rules.len()) else { return UNWIND_UNKNOWN };
        // Indices have to be below the number of rules, which has to be below UNKNOWN.
        if index >= UNWIND_UNKNOWN - 1 {
            return UNWIND_UNKNOWN;
        }
        self.rules.push(rule);
        self.known.insert(rule, index);
        index
    }
}

/// A range of the file with its rule.
#[derive(Clone, Copy, Debug)]
struct Row {
    start: u64,
    end: u64,
    index: u16,
}

/// A row whose CFA is relative to a register that functions save for their callers.
#[derive(Clone, Copy, Debug)]
struct Based {
    /// Of [`Rows::rows`].
    row: usize,
    /// Where the row begins, as an address.
    address: u64,
    rule: UnwindRule,
    register: Register,
}

/// What differs between code of 64 and of 32 bits.
#[derive(Debug)]
struct Words {
    /// Of an address.
    bytes: u8,
    stack: Register,
    frame: Register,
    returns: Register,
    /// The module's number, which is that of DWARF on x86-64, of each general register.
    general: &'static [u8],
    /// [`UnwindRule::base`] of all rules.
    base: u8,
    /// Registers that functions save for their callers, without `frame`.
    saved: &'static [Register],
}

const WIDE: Words = Words {
    bytes: 8,
    stack: X86_64::RSP,
    frame: X86_64::RBP,
    returns: X86_64::RA,
    general: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    base: 0,
    saved: &[X86_64::RBX, X86_64::R12, X86_64::R13, X86_64::R14, X86_64::R15],
};

/// In the order eax, ecx, edx, ebx, esp, ebp, esi, edi.
const NARROW: Words = Words {
    bytes: 4,
    stack: X86::ESP,
    frame: X86::EBP,
    returns: X86::RA,
    general: &[0, 2, 1, 3, 7, 6, 4, 5],
    base: UNWIND_NARROW,
    saved: &[X86::EBX, X86::ESI, X86::EDI],
};

impl Words {
    /// The module's number of a register that it has in the innermost frame: the general ones.
    fn general(&self, register: Register) -> Option<u8> {
        self.general.get(usize::from(register.0)).copied()
    }

    fn encoding(&self) -> gimli::Encoding {
        gimli::Encoding { address_size: self.bytes, format: gimli::Format::Dwarf32, version: 4 }
    }
}

struct Rows<'o> {
    words: &'static Words,
    segments: Vec<Segment>,
    rules: Rules,
    rows: Vec<Row>,
    is_over: &'o dyn Fn() -> bool,
}

impl Rows<'_> {
    /// `bytes`: of the section.
    fn read<'s, S: UnwindSection<Slice<'s>>>(&mut self, section: &S, bytes: &[u8], bases: &BaseAddresses) -> Vec<Based>
    where
        S::Offset: gimli::UnwindOffset<usize>,
    {
        let mut based = Vec::new();
        let mut entries = section.entries(bases);
        let mut context = UnwindContext::new();
        let mut left = bytes.len().saturating_mul(COMMON_PER_BYTE).saturating_add(COMMON_BASE);
        let mut unlooked = 0;
        // Damaged parts are skipped: the rest of a section, or a single entry.
        while let Ok(Some(entry)) = entries.next() {
            let lengths = match &entry {
                CieOrFde::Cie(_) => None,
                CieOrFde::Fde(partial) => {
                    let common = length_at(bytes, gimli::UnwindOffset::into(partial.cie_offset()));
                    Some((common, length_at(bytes, partial.offset())))
                }
            };
            let lengths = lengths.filter(|(common, own)| *common.max(own) <= MAX_ENTRY);
            unlooked += ENTRY_COST + lengths.map_or(0, |(common, own)| common + own);
            if unlooked >= LOOK_EVERY {
                unlooked = 0;
                if (self.is_over)() {
                    return based;
                }
            }
            let (CieOrFde::Fde(partial), Some((common, _))) = (entry, lengths) else { continue };
            let Some(rest) = left.checked_sub(common) else { return based };
            left = rest;
            let Ok(entry) = partial.parse(S::cie_from_offset) else { continue };
            let returns = entry.cie().return_address_register();
            let is_signal = entry.is_signal_trampoline();
            let Ok(mut table) = entry.rows(section, bases, &mut context) else { continue };
            while let Ok(Some(row)) = table.next_row() {
                let rule = match is_signal {
                    true => Some(UnwindRule { base: self.words.base, next: UNWIND_SIGNAL, ..UnwindRule::default() }),
                    false => self.words.rule_of(row, returns, section),
                };
                let is_added = self.add(row.start_address(), row.end_address(), rule);
                if let (Some(rule), CfaRule::RegisterAndOffset { register, .. }) = (rule, row.cfa())
                    && self.words.saved.contains(register)
                    && (rule.next, rule.frame) == (UNWIND_STORED, 0)
                    && is_added
                    && based.len() < MOST_BASED
                {
                    let (row, address) = (self.rows.len() - 1, row.start_address());
                    based.push(Based { row, address, rule, register: *register });
                }
                if self.rows.len() >= MAX_PLACES / 2 {
                    return based;
                }
            }
        }
        based
    }

    fn add(&mut self, start: u64, end: u64, rule: Option<UnwindRule>) -> bool {
        let Some(at) = self.segments.iter().find_map(|segment| segment.offset_of(start)) else { return false };
        if end <= start {
            return false;
        }
        let index = self.rules.index(rule);
        self.rows.push(Row { start: at, end: at.saturating_add(end - start), index });
        true
    }

    /// Beyond the innermost frame such a register's value is only in memory, where the called function has saved it. That one is
    /// known where the code calls it by its address.
    fn take_from_callees<'s, S: UnwindSection<Slice<'s>>>(
        &mut self,
        elf: &dyn Elf,
        based: &[Based],
        section: &S,
        bytes: &[u8],
        bases: &BaseAddresses,
    ) where
        S::Offset: gimli::UnwindOffset<usize>,
    {
        let mut calls: Vec<(&Based, Call)> = Vec::new();
        for frame in based {
            let Some(row) = self.rows.get(frame.row) else { continue };
            let bytes = usize::try_from(row.end - row.start).unwrap_or(MOST_CODE).min(MOST_CODE);
            let code = elf.bytes(frame.address, bytes);
            calls.extend(calls_in(&code, frame.address).into_iter().map(|call| (frame, call)));
        }
        let called: HashSet<u64> = calls.iter().map(|(_, call)| call.to).collect();
        if called.is_empty() {
            return;
        }
        let mut saved: HashMap<(u64, Register), i16> = HashMap::new();
        let mut entries = section.entries(bases);
        let mut context = UnwindContext::new();
        let mut left = bytes.len().saturating_mul(COMMON_PER_BYTE).saturating_add(COMMON_BASE);
        let mut count = 0_usize;
        while let Ok(Some(entry)) = entries.next() {
            count += 1;
            if count.is_multiple_of(LOOK_EVERY) && (self.is_over)() {
                return;
            }
            let CieOrFde::Fde(partial) = entry else { continue };
            let common = length_at(bytes, gimli::UnwindOffset::into(partial.cie_offset()));
            let Ok(entry) = partial.parse(S::cie_from_offset) else { continue };
            let start = entry.initial_address();
            if !called.contains(&start) {
                continue;
            }
            let Some(rest) = left.checked_sub(common) else { return };
            left = rest;
            let Ok(mut table) = entry.rows(section, bases, &mut context) else { continue };
            while let Ok(Some(row)) = table.next_row() {
                for register in self.words.saved {
                    if let Some(RegisterRule::Offset(at)) = row.register(*register) {
                        saved.extend(i16::try_from(at).ok().map(|at| ((start, *register), at)));
                    }
                }
            }
        }
        // From the last one on: each splits what is before those behind it.
        for (frame, call) in calls.iter().rev() {
            let Some(at) = saved.get(&(call.to, frame.register)) else { continue };
            let rule = UnwindRule { frame: *at, next: UNWIND_BY_CALLEE, ..frame.rule };
            let index = self.rules.index(Some(rule));
            let Some(row) = self.rows.get_mut(frame.row) else { continue };
            let (start, end) = (row.start + call.at, row.start + call.at + CALL);
            // Bytes of another instruction look like a call.
            if end > row.end {
                continue;
            }
            let behind = Row { start: end, end: row.end, index: row.index };
            row.end = start;
            self.rows.extend([Row { start, end, index }, behind]);
        }
    }

    /// Drops those from `first` on that begin in one of the others.
    fn drop_known(&mut self, first: usize) {
        let added = self.rows.split_off(first);
        self.rows.sort_unstable_by_key(|row| row.start);
        let is_new = |row: &Row| {
            let behind = self.rows.partition_point(|known| known.start <= row.start);
            behind.checked_sub(1).and_then(|at| self.rows.get(at)).is_none_or(|known| known.end <= row.start)
        };
        let added: Vec<Row> = added.into_iter().filter(is_new).collect();
        self.rows.extend(added);
    }

    fn finish(mut self) -> Table {
        self.rows.sort_by_key(|row| row.start);
        let mut table = Table { rules: self.rules.rules, ..Table::default() };
        let mut end = 0;
        for row in &self.rows {
            if end != 0 && row.start > end {
                table.push(end, UNWIND_UNKNOWN);
            }
            table.push(row.start, row.index);
            end = end.max(row.end);
        }
        if end != 0 {
            table.push(end, UNWIND_UNKNOWN);
        }
        if table.rules.is_empty() {
            return Table::default();
        }
        table
    }
}

/// Bytes of a call by address.
const CALL: u64 = 5;

/// A call in code.
struct Call {
    /// Where it is in the code.
    at: u64,
    /// The function's address.
    to: u64,
}

/// What may be calls by address; those to no function are not.
fn calls_in(code: &[u8], address: u64) -> Vec<Call> {
    const OPCODE: u8 = 0xe8;
    let call = |(at, bytes): (usize, &[u8])| {
        let [OPCODE, distance @ ..] = bytes else { return None };
        let distance = i32::from_le_bytes(distance.try_into().ok()?);
        let at = at as u64;
        Some(Call { at, to: address.wrapping_add(at + CALL).wrapping_add_signed(distance.into()) })
    };
    code.windows(CALL as usize).enumerate().filter_map(call).collect()
}

impl Table {
    fn push(&mut self, place: u64, index: u16) {
        let Ok(place) = u32::try_from(place) else { return };
        if self.indices.last() == Some(&index) {
            return;
        }
        match self.places.last() {
            Some(last) if *last == place => {
                if let Some(last) = self.indices.last_mut() {
                    *last = index;
                }
            }
            _ => {
                self.places.push(place);
                self.indices.push(index);
            }
        }
    }
}

impl Words {
    fn rule_of<'s, S: UnwindSection<Slice<'s>>>(
        &self,
        row: &UnwindTableRow<usize>,
        returns: Register,
        section: &S,
    ) -> Option<UnwindRule> {
        let mut rule = UnwindRule { base: self.base, ..UnwindRule::default() };
        rule.next = match row.register(returns) {
            None | Some(RegisterRule::Undefined) => return Some(UnwindRule { next: UNWIND_END, ..rule }),
            Some(RegisterRule::Offset(at)) if at == -i64::from(self.bytes) => UNWIND_STORED,
            Some(RegisterRule::Register(register)) => UNWIND_IN_REGISTER + self.general(register)?,
            Some(_) => return None,
        };
        match row.register(self.frame) {
            None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => {}
            Some(RegisterRule::Offset(at)) => rule.frame = i16::try_from(at).ok().filter(|at| *at != 0)?,
            Some(RegisterRule::Expression(expression)) => {
                let [Operation::RegisterOffset { register, offset, .. }] = self.operations(expression, section)?[..]
                else {
                    return None;
                };
                if register != self.frame {
                    return None;
                }
                rule.base |= UNWIND_FRAME_BASED;
                rule.frame = i16::try_from(offset).ok()?;
            }
            Some(_) => return None,
        }
        match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                rule.base |= self.general(*register)?;
                rule.cfa = i32::try_from(*offset).ok()?;
            }
            CfaRule::Expression(expression) => {
                self.by_expression(&mut rule, &self.operations(*expression, section)?)?;
            }
        }
        Some(rule)
    }

    /// At most as many as the forms below have.
    fn operations<'s, S: UnwindSection<Slice<'s>>>(
        &self,
        expression: UnwindExpression<usize>,
        section: &S,
    ) -> Option<Vec<Operation<Slice<'s>>>> {
        let mut operations = expression.get(section).ok()?.operations(self.encoding());
        let mut found = Vec::new();
        while let Some(operation) = operations.next().ok()? {
            found.push(operation);
            if found.len() > MOST_OPERATIONS {
                return None;
            }
        }
        Some(found)
    }

    fn by_expression(&self, rule: &mut UnwindRule, operations: &[Operation<Slice<'_>>]) -> Option<()> {
        use Operation::{And, Deref, Ge, Plus, PlusConstant, RegisterOffset, Shl, UnsignedConstant};
        let word = u64::from(self.bytes);
        let (register, offset) = match operations {
            // What linkers write for .plt: CFA = rsp + 8 + ((rip & 15) >= N) * 8.
            [
                RegisterOffset { register: stack, offset: below, .. },
                RegisterOffset { register: code, offset: 0, .. },
                UnsignedConstant { value: 15 },
                And,
                UnsignedConstant { value: from @ ..16 },
                Ge,
                UnsignedConstant { value: shift },
                Shl,
                Plus,
            ] if *stack == self.stack
                && *code == self.returns
                && *below == i64::from(self.bytes)
                && *shift == u64::from(self.bytes.trailing_zeros()) =>
            {
                rule.next = UNWIND_STUB;
                rule.base |= self.general(self.stack)?;
                rule.cfa = i32::try_from(*from).ok()?;
                return Some(());
            }
            [RegisterOffset { register, offset, .. }, Deref { .. }] => (register, offset),
            [RegisterOffset { register, offset, .. }, Deref { .. }, PlusConstant { value }]
            | [RegisterOffset { register, offset, .. }, Deref { .. }, UnsignedConstant { value }, Plus]
                if *value == word =>
            {
                rule.base |= UNWIND_ADD_WORD;
                (register, offset)
            }
            _ => return None,
        };
        rule.base |= UNWIND_DEREFERENCE | self.general(*register)?;
        rule.cfa = i32::try_from(*offset).ok()?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::userspace::image::Image;
    use std::fs::File;

    fn table(path: &str) -> Option<Table> {
        Image::of(File::open(path).ok()?).with(|elf| Table::of(elf, Path::new(path), &|| false))
    }

    /// The share of a table's code for which there are rules, in percent.
    fn known(table: &Table) -> u64 {
        let ends = table.places.iter().skip(1);
        let mut parts = [0u64; 2];
        for ((place, end), index) in table.places.iter().zip(ends).zip(&table.indices) {
            parts[usize::from(*index == UNWIND_UNKNOWN)] += u64::from(end - place);
        }
        parts[0] * 100 / (parts[0] + parts[1]).max(1)
    }

    #[test]
    fn the_programs_of_this_machine_have_tables() {
        for path in ["/proc/self/exe", "/lib/x86_64-linux-gnu/libc.so.6", "/bin/bash"] {
            let Some(table) = table(path) else { continue };
            assert!(table.places.is_sorted() && table.places.len() == table.indices.len());
            assert!(table.places.len() > 100 && known(&table) > 90, "{path}: {} %", known(&table));
            assert_eq!(table.bytes().len(), table.size());
            println!("{path}: {} places, {} rules, {} %", table.places.len(), table.rules.len(), known(&table));
        }
    }

    #[test]
    fn signal_frames_stubs_and_the_outermost_frame_have_rules() {
        let Some(table) = table("/lib/x86_64-linux-gnu/libc.so.6") else { return };
        for next in [UNWIND_SIGNAL, UNWIND_STUB, UNWIND_END] {
            assert!(table.rules.iter().any(|rule| rule.next == next), "{next}");
        }
    }

    /// ld.so's code for lazy bindings finds its frame by rbx, which what it calls saves.
    #[test]
    fn frames_by_a_saved_register_are_found_where_the_called_function_saves_it() {
        let Some(table) = table("/lib64/ld-linux-x86-64.so.2") else { return };
        let by_rbx = |next| table.rules.iter().filter(move |rule| rule.next == next && rule.base == 3);
        assert!(by_rbx(UNWIND_STORED).count() > 0, "{:?}", table.rules);
        assert!(by_rbx(UNWIND_BY_CALLEE).count() > 0, "{:?}", table.rules);
        assert!(by_rbx(UNWIND_BY_CALLEE).all(|rule| rule.frame < -8 && rule.frame % 8 == 0), "{:?}", table.rules);
    }

    /// Whether gcc has compiled a small program with these options, and then strip has run with those.
    fn compiled(directory: &Path, options: &[&str], strip: &[&str]) -> bool {
        std::fs::write(
            directory.join("x.c"),
            "int f(int n) { return n * 2; } int main(int c, char **v) { return f(c); }",
        )
        .unwrap();
        let run = |program: &str, words: &[&str]| {
            let ran = std::process::Command::new(program).current_dir(directory).args(words).status();
            ran.is_ok_and(|status| status.success())
        };
        run("gcc", &[options, &["-o", "x", "x.c"]].concat()) && (strip.is_empty() || run("strip", strip))
    }

    #[test]
    fn a_file_without_a_table_of_sections_has_its_frames() {
        let directory = tempfile::tempdir().unwrap();
        if !compiled(directory.path(), &[], &[]) {
            return println!("skipped: no gcc");
        }
        let path = directory.path().join("x");
        let path = path.to_str().unwrap();
        let whole = table(path).unwrap();
        let mut bytes = std::fs::read(path).unwrap();
        // e_shoff, e_shnum and e_shstrndx.
        bytes[40..48].fill(0);
        bytes[60..64].fill(0);
        std::fs::write(path, bytes).unwrap();
        assert!(!whole.rules.is_empty());
        assert_eq!(table(path).unwrap(), whole);
    }

    #[test]
    fn frames_of_a_separate_debug_file() {
        let directory = tempfile::tempdir().unwrap();
        let options = ["-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-Wl,--build-id"];
        if !compiled(directory.path(), &options, &["--only-keep-debug", "-o", "x.debug", "x"]) {
            return println!("skipped: no gcc or strip");
        }
        std::fs::create_dir(directory.path().join(".debug")).unwrap();
        std::fs::rename(directory.path().join("x.debug"), directory.path().join(".debug/x.debug")).unwrap();
        let path = directory.path().join("x");
        let path = path.to_str().unwrap();
        let whole = table(path).unwrap();
        let link = ["--strip-all", "--add-gnu-debuglink=.debug/x.debug", "x"];
        let linked = std::process::Command::new("objcopy").current_dir(directory.path()).args(link).status();
        assert!(linked.is_ok_and(|status| status.success()));
        assert_eq!(table(path).unwrap(), whole);
    }

    /// As `gcc -m32` makes it without libraries, which this machine need not have.
    #[test]
    fn programs_of_32_bits_have_tables() {
        let directory = tempfile::tempdir().unwrap();
        let text = "int f(int *n) { int a[9]; for (int i = 0; i < *n; i++) a[i % 9] += n[i]; return a[*n % 9]; }
            int g(int *n) { return f(n) + 1; } void _start(void) { int n[3] = { 1 }; for (;;) g(n); }";
        std::fs::write(directory.path().join("x.c"), text).unwrap();
        let options = ["-m32", "-O1", "-nostdlib", "-ffreestanding", "-fno-stack-protector", "-fomit-frame-pointer"];
        let mut gcc = std::process::Command::new("gcc");
        let made = gcc.current_dir(directory.path()).args(options).args(["-o", "x", "x.c"]).output();
        if !made.is_ok_and(|made| made.status.success()) {
            return println!("skipped: gcc makes no 32-bit programs");
        }
        let table = table(directory.path().join("x").to_str().unwrap()).unwrap();
        let by_stack = UnwindRule { cfa: 4, base: UNWIND_NARROW | 7, next: UNWIND_STORED, ..UnwindRule::default() };
        assert!(table.rules.contains(&by_stack), "{:?}", table.rules);
        assert!(table.rules.iter().all(|rule| rule.base & UNWIND_NARROW != 0), "{:?}", table.rules);
        assert!(known(&table) > 90, "{table:?}");
    }

    #[test]
    fn the_vdso_has_one() {
        let Some(image) = Image::vdso() else { return };
        assert!(!image.with(|elf| Table::of(elf, Path::new(""), &|| false)).unwrap().rules.is_empty());
    }

    const CODE: Segment = Segment { address: 0x1000, offset: 0x1000, bytes: 1 << 30 };

    /// `.debug_frame`: a common entry with so many instructions that do nothing, and for each range of 16 bytes an entry with one.
    fn frames(nothing: usize, entries: u64) -> Vec<u8> {
        let entry = |id: u32, rest: &[u8]| {
            let length = 4 + rest.len() as u32;
            [&length.to_le_bytes()[..], &id.to_le_bytes(), rest].concat()
        };
        // Version 1, no augmentation, factors 1 and -8, return address in 16; CFA = rsp + 8, return address at CFA - 8.
        let common = [&[1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1][..], &vec![0; nothing]].concat();
        let mut bytes = entry(u32::MAX, &common);
        for at in 0..entries {
            let range = [(0x1000 + 16 * at).to_le_bytes(), 16_u64.to_le_bytes()].concat();
            bytes.extend(entry(0, &range));
        }
        bytes
    }

    fn rows_of(segment: Segment, bytes: &[u8], is_over: &dyn Fn() -> bool) -> Vec<Row> {
        let mut rows =
            Rows { words: &WIDE, segments: vec![segment], rules: Rules::default(), rows: Vec::new(), is_over };
        let mut frames = DebugFrame::new(bytes, LittleEndian);
        frames.set_address_size(8);
        rows.read(&frames, bytes, &BaseAddresses::default());
        rows.rows
    }

    #[test]
    fn a_long_common_entry_is_not_repeated_for_ever() {
        assert_eq!(rows_of(CODE, &frames(6, 50_000), &|| false).len(), 50_000);
        let bytes = frames(60_000, 4000);
        let read = rows_of(CODE, &bytes, &|| false).len();
        assert!(read > 10 && read * 60_000 <= bytes.len() * COMMON_PER_BYTE + COMMON_BASE, "{read}");
        assert_eq!(length_at(&[0xff; 40], 8), 32, "a length of 64 bits");
        assert_eq!((length_at(&[8, 0, 0, 0, 1], 0), length_at(&[1], 7)), (5, 0), "cut off");
    }

    #[test]
    fn a_table_that_is_no_longer_wanted_is_not_completed() {
        let asked = std::cell::Cell::new(0);
        let is_over = || asked.replace(asked.get() + 1) == 3;
        let read = rows_of(CODE, &frames(6, 50_000), &is_over).len();
        assert!(asked.get() == 4 && read < 5 * LOOK_EVERY / ENTRY_COST, "{read}");
        // A few entries may take long, too.
        asked.set(0);
        let read = rows_of(CODE, &frames(60_000, 4000), &is_over).len();
        assert!(asked.get() == 4 && read < 10, "{read}");
    }

    #[test]
    fn very_long_entries_are_passed_over() {
        assert_eq!(rows_of(CODE, &frames(MAX_ENTRY - 14, 3), &|| false).len(), 3);
        assert_eq!(rows_of(CODE, &frames(MAX_ENTRY - 13, 3), &|| false).len(), 0);
        let mut bytes = frames(6, 3);
        let fde = bytes.len() - 24;
        let length = 20 + MAX_ENTRY as u32;
        bytes.splice(fde..fde + 4, length.to_le_bytes());
        // DW_CFA_remember_state, DW_CFA_restore_state.
        bytes.extend([0x0a, 0x0b].repeat(MAX_ENTRY / 2));
        assert_eq!(rows_of(CODE, &bytes, &|| false).len(), 2);
    }

    #[test]
    fn segments_beyond_the_end_of_addresses_have_no_rows() {
        let beyond = Segment { offset: u64::MAX - 3, ..CODE };
        assert_eq!(rows_of(beyond, &frames(0, 3), &|| false).len(), 1);
    }
}
