// SPDX-License-Identifier: GPL-2.0-or-later

//! Tables for unwinding: `.eh_frame` (and `.debug_frame`, for what is not in it) as a sorted list of offsets in the
//! file, each with one of few rules (abi.h, `struct spile_unwind_rule`). A handler then only searches and adds.
//!
//! On x86-64 compilers describe a frame by rsp or rbp plus a number, with rbp saved below the CFA and the return
//! address at its place; the rest is the linker's stubs, signal frames, realigned stacks, and hand-written code. Code
//! without a rule is [`UNWIND_UNKNOWN`]: there the module tries frame pointers. Code of 32 bits has the same rules, with words of
//! 4 bytes and other numbers of registers ([`Words`]).

use std::collections::HashMap;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, DebugFrame, EhFrame, EndianSlice, LittleEndian, Operation, Register,
    RegisterRule, UnwindContext, UnwindExpression, UnwindSection, UnwindTableRow, X86, X86_64,
};
use spile_abi::device::{
    UNWIND_ADD_WORD, UNWIND_DEREFERENCE, UNWIND_END, UNWIND_FRAME_BASED, UNWIND_IN_REGISTER, UNWIND_NARROW,
    UNWIND_SIGNAL, UNWIND_STORED, UNWIND_STUB, UNWIND_UNKNOWN, UnwindRule,
};

use crate::userspace::image::{Elf, Section, Segment};

type Slice<'s> = EndianSlice<'s, LittleEndian>;

/// Operations of the longest expression that becomes a rule.
const MOST_OPERATIONS: usize = 9;
/// The module's maximum.
const MAX_PLACES: usize = 8 << 20;

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
    /// Of a file; empty if it has no frame information.
    pub fn of(elf: &dyn Elf) -> Table {
        let words = if elf.is_narrow() { &NARROW } else { &WIDE };
        let mut rows = Rows { words, segments: elf.segments(), rules: Rules::default(), rows: Vec::new() };
        if let Some(section) = elf.section(".eh_frame") {
            let mut frames = EhFrame::new(&section.data, LittleEndian);
            frames.set_address_size(words.bytes);
            let address = |name| elf.section(name).map_or(0, |section| section.address);
            rows.read(&frames, &bases(&section, address(".text"), address(".got")));
        }
        if let Some(section) = elf.section(".debug_frame") {
            let mut frames = DebugFrame::new(&section.data, LittleEndian);
            frames.set_address_size(words.bytes);
            let known = rows.rows.len();
            rows.read(&frames, &BaseAddresses::default());
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

fn bases(section: &Section, text: u64, got: u64) -> BaseAddresses {
    BaseAddresses::default().set_eh_frame(section.address).set_text(text).set_got(got)
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
}

const WIDE: Words = Words {
    bytes: 8,
    stack: X86_64::RSP,
    frame: X86_64::RBP,
    returns: X86_64::RA,
    general: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    base: 0,
};

/// In the order eax, ecx, edx, ebx, esp, ebp, esi, edi.
const NARROW: Words = Words {
    bytes: 4,
    stack: X86::ESP,
    frame: X86::EBP,
    returns: X86::RA,
    general: &[0, 2, 1, 3, 7, 6, 4, 5],
    base: UNWIND_NARROW,
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

struct Rows {
    words: &'static Words,
    segments: Vec<Segment>,
    rules: Rules,
    rows: Vec<Row>,
}

impl Rows {
    fn read<'s, S: UnwindSection<Slice<'s>>>(&mut self, section: &S, bases: &BaseAddresses)
    where
        S::Offset: gimli::UnwindOffset<usize>,
    {
        let mut entries = section.entries(bases);
        let mut context = UnwindContext::new();
        // Damaged parts are skipped: the rest of a section, or a single entry.
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(partial) = entry else { continue };
            let Ok(entry) = partial.parse(S::cie_from_offset) else { continue };
            let returns = entry.cie().return_address_register();
            let is_signal = entry.is_signal_trampoline();
            let Ok(mut table) = entry.rows(section, bases, &mut context) else { continue };
            while let Ok(Some(row)) = table.next_row() {
                let rule = match is_signal {
                    true => Some(UnwindRule { base: self.words.base, next: UNWIND_SIGNAL, ..UnwindRule::default() }),
                    false => self.words.rule_of(row, returns, section),
                };
                self.add(row.start_address(), row.end_address(), rule);
                if self.rows.len() >= MAX_PLACES / 2 {
                    return;
                }
            }
        }
    }

    fn add(&mut self, start: u64, end: u64, rule: Option<UnwindRule>) {
        let inside = |segment: &&Segment| start.checked_sub(segment.address).is_some_and(|at| at < segment.bytes);
        let Some(segment) = self.segments.iter().find(inside) else { return };
        let at = start - segment.address + segment.offset;
        if end > start {
            let index = self.rules.index(rule);
            self.rows.push(Row { start: at, end: at.saturating_add(end - start), index });
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
        Image::of(File::open(path).ok()?).with(Table::of)
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
        assert!(!image.with(Table::of).unwrap().rules.is_empty());
    }
}
