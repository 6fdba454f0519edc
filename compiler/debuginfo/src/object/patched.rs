// SPDX-License-Identifier: GPL-2.0-or-later

//! The code of a function as in the file, and which of its bytes may differ in memory.
//!
//! A running kernel patches its own code: alternatives for its CPU, jump labels, static calls, calls of ftrace, thunks,
//! lock prefixes on one CPU, and in modules all relocated fields. The object's tables, which are read here, list the
//! places; all other code is the same in memory, except for words that move with the kernel's slide
//! (runtime-c/fingerprint.c handles these).
//!
//! In vmlinux an entry of a table holds the distance from itself to the place (or the link-time address); in a module the
//! same fields are still relocations, which name the place. Sources: include/linux/jump_label.h, static_call_types.h,
//! arch/x86/include/asm/alternative.h, paravirt_types.h, runtime-const.h, and vmlinux.lds.S, each from 5.10 on.

use std::collections::HashMap;

use object::{Object as _, ObjectSection, ObjectSymbol, RelocationTarget};

use super::elf::{Address, Elf, File, Section, SectionId, Symbol};

/// A function's code as in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCode {
    /// Name of the function's symbol.
    pub function: String,
    /// From the function's first byte to the given address.
    pub offset: u64,
    /// The code of the whole function.
    pub bytes: Vec<u8>,
    /// Ranges that the kernel may change: first byte and length, ascending, not overlapping.
    pub patched: Vec<(u32, u32)>,
}

/// Where the kernel may change the code of some functions, in the object's one address space: start and length, sorted by
/// start. There are hundreds of thousands of places in a kernel, and finding them all takes longer than a small script.
#[derive(Debug, Default)]
pub struct Patched(Vec<(u64, u32)>);

/// The longest place that begins before a function may overlap it.
const LONGEST: u64 = 64;

/// The functions that are asked about: start and end, sorted, not overlapping.
struct Functions(Vec<(u64, u64)>);

impl Functions {
    fn new(mut functions: Vec<(u64, u64)>) -> Functions {
        functions.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::with_capacity(functions.len());
        for (start, end) in functions {
            match merged.last_mut() {
                Some((_, last)) if *last >= start => *last = end.max(*last),
                _ => merged.push((start, end)),
            }
        }
        Functions(merged)
    }

    /// Whether code that begins there may be in one.
    fn has(&self, place: u64) -> bool {
        let next = self.0.partition_point(|(_, end)| *end <= place.saturating_sub(LONGEST));
        self.0.get(next).is_some_and(|(start, _)| start.saturating_sub(LONGEST) <= place)
    }
}

/// Maximum size of a function; a larger symbol is damage.
const MAX_FUNCTION: u64 = 1 << 20;

/// The size of a patched place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Bytes(u32),
    /// A call or jump with its prefix.
    Branch,
    /// A jump of two or five bytes, or its replacement.
    Jump,
    /// The size is in the entry, at this offset.
    Field(u64),
    /// This many bytes on both sides of the place.
    BothSides(u32),
}

/// A table of places.
pub(crate) struct Table {
    pub(crate) section: &'static str,
    stride: u64,
    /// Entries hold link-time addresses, not distances.
    absolute: bool,
    extent: Extent,
}

/// A table of 32-bit offsets, each relative to itself.
pub(crate) const fn relative(section: &'static str, stride: u64, extent: Extent) -> Table {
    Table { section, stride, absolute: false, extent }
}

/// A table of 64-bit addresses.
pub(crate) const fn absolute(section: &'static str, stride: u64, extent: Extent) -> Table {
    Table { section, stride, absolute: true, extent }
}

/// A call of ftrace, or its replacement.
const CALL: Extent = Extent::Bytes(5);

const TABLES: [Table; 11] = [
    absolute("__mcount_loc", 8, CALL),
    absolute(".parainstructions", 16, Extent::Field(9)),
    relative("__jump_table", 16, Extent::Jump),
    relative(".static_call_sites", 8, Extent::Branch),
    relative(".retpoline_sites", 4, Extent::Branch),
    relative(".return_sites", 4, Extent::Branch),
    relative(".call_sites", 4, Extent::Branch),
    relative(".smp_locks", 4, Extent::Bytes(1)),
    relative(".ibt_endbr_seal", 4, Extent::Bytes(4)),
    // apply_fineibt() rewrites the code before it and the following call.
    relative(".cfi_sites", 4, Extent::BothSides(16)),
    absolute("__patchable_function_entries", 8, Extent::Bytes(16)),
];

/// `struct alt_instr`: its size and the offset of `instrlen`. 5.17 (d1efafaa4b1c) removed `padlen`, 6.3 (5d1dd961e743) made
/// `cpuid` and flags one word. The first layout that fits every entry is used.
const ALTERNATIVES: [(u64, u64); 3] = [(14, 12), (12, 10), (13, 10)];
const ALTERNATIVE_SECTION: &str = ".altinstructions";
/// `runtime_const`, since 6.11: an immediate of 1, 4 or 8 bytes.
const CONSTANTS: &str = "runtime_";

impl Elf {
    /// Whether the file contains the bytes at the address: debug files have sections without contents (SHT_NOBITS).
    pub fn has_contents(&self, address: Address) -> bool {
        let at = self.flat(address);
        at.zip(self.parse().ok()).is_some_and(|(at, file)| Reader { elf: self, file: &file }.bytes(at, 1).is_some())
    }

    /// The address of code by the name of its section.
    pub fn code_in(&self, section: &str, offset: u64) -> Option<Address> {
        let section = self.sections().iter().find(|known| known.executable && known.name == section)?;
        self.address(section.range().0.checked_add(offset)?)
    }
}

impl Patched {
    /// In the functions that have the addresses; None where the object's tables cannot be read, or it has no code (a file with
    /// only debug information).
    pub fn of(elf: &Elf, addresses: impl Iterator<Item = Address>) -> Option<Patched> {
        let file = elf.parse().ok()?;
        let reader = Reader { elf, file: &file };
        let ranges = addresses.filter_map(|address| {
            let symbol = function_at(elf, elf.flat(address)?)?;
            Some((symbol.at, symbol.at.saturating_add(symbol.size)))
        });
        let functions = Functions::new(ranges.collect());
        let wanted = |place| functions.has(place);
        let mut all = Vec::new();
        for table in &TABLES {
            if let Some(contents) = reader.contents(table.section) {
                all.extend(reader.places_of(&contents, table, &wanted));
            }
        }
        if let Some(contents) = reader.contents(ALTERNATIVE_SECTION) {
            all.extend(reader.alternatives(&contents)?.into_iter().filter(|(place, _)| functions.has(*place)));
        }
        for section in elf.sections().iter().filter(|section| section.name.starts_with(CONSTANTS)) {
            let contents = reader.section(section)?;
            all.extend(reader.places_of(&contents, &relative(CONSTANTS, 4, Extent::Bytes(8)), &wanted));
        }
        if elf.is_relocatable() {
            for section in elf.sections().iter().filter(|section| section.executable) {
                all.extend(reader.relocated(section)?.into_iter().filter(|(place, _)| functions.has(*place)));
            }
        }
        all.sort_unstable();
        Some(Patched(all))
    }

    /// The code of the function that has the address, one of those that were given; None where no symbol gives its size, or
    /// its code is not in the file.
    pub fn function_code(&self, elf: &Elf, address: Address) -> Option<FunctionCode> {
        let at = elf.flat(address)?;
        let symbol = function_at(elf, at)?;
        // Init code is gone, and exit code may never have been loaded.
        let is_kept = elf
            .section_at(at)
            .is_some_and(|section| ![".init", ".exit"].iter().any(|start| section.name.starts_with(start)));
        if symbol.size > MAX_FUNCTION || !is_kept {
            return None;
        }
        let file = elf.parse().ok()?;
        let bytes = Reader { elf, file: &file }.bytes(symbol.at, symbol.size)?.to_vec();
        let (start, end) = (symbol.at, symbol.at + symbol.size);
        let first = self.0.partition_point(|(place, _)| *place < start.saturating_sub(LONGEST));
        let mut patched: Vec<(u32, u32)> = Vec::new();
        for &(place, length) in self.0.iter().skip(first).take_while(|(place, _)| *place < end) {
            let (from, to) = (place.max(start), place.saturating_add(length.into()).min(end));
            if from >= to {
                continue;
            }
            let (from, to) = ((from - start) as u32, (to - start) as u32);
            match patched.last_mut() {
                Some((last, length)) if *last + *length >= from => *length = (*length).max(to - *last),
                _ => patched.push((from, to - from)),
            }
        }
        Some(FunctionCode { function: symbol.name.to_string(), offset: at - start, bytes, patched })
    }
}

/// The symbol of the function that has the place.
fn function_at(elf: &Elf, at: u64) -> Option<Symbol<'_>> {
    let mut near = elf.symbols_before(at).ok()?.take(64);
    near.find(|symbol| symbol.function && symbol.size > 0 && at - symbol.at < symbol.size)
}

/// The bytes of a table, and their relocated values.
pub(crate) struct Contents<'f> {
    /// Where it is in the object's one address space.
    start: u64,
    bytes: &'f [u8],
    /// In a module: the target of the relocation at this offset. None in vmlinux.
    relocations: Option<HashMap<u64, u64>>,
}

impl Contents<'_> {
    /// The target of the field at the offset.
    pub(super) fn place(&self, offset: u64, is_absolute: bool) -> Option<u64> {
        if let Some(relocations) = &self.relocations {
            return relocations.get(&offset).copied();
        }
        let first = usize::try_from(offset).ok()?;
        match is_absolute {
            true => Some(u64::from_le_bytes(self.bytes.get(first..first.checked_add(8)?)?.try_into().ok()?)),
            false => {
                let distance = i32::from_le_bytes(self.bytes.get(first..first.checked_add(4)?)?.try_into().ok()?);
                Some((self.start + offset).wrapping_add_signed(distance.into()))
            }
        }
    }

    /// In bytes.
    pub(crate) fn length(&self) -> u64 {
        self.bytes.len() as u64
    }
}

/// Reads tables of code addresses from an object.
pub(crate) struct Reader<'e, 'f> {
    pub(crate) elf: &'e Elf,
    pub(crate) file: &'f File<'e>,
}

impl<'e> Reader<'e, '_> {
    /// The table of that name: a section, or in vmlinux the range between the symbols `__start_NAME` and `__stop_NAME`.
    pub(crate) fn contents(&self, name: &str) -> Option<Contents<'e>> {
        if let Some(section) = self.elf.sections().iter().find(|section| section.name == name) {
            return self.section(section);
        }
        // vmlinux.lds.h: `__mcount_loc` is between __start_mcount_loc and __stop_mcount_loc, without the two underscores.
        let short = if name == "__mcount_loc" { "mcount_loc" } else { name.trim_start_matches('.') };
        let symbol = |prefix: &str| Some(self.elf.symbols_named(&format!("{prefix}{short}")).ok()?.next()?.at);
        let (start, stop) = (symbol("__start_")?, symbol("__stop_")?);
        Some(Contents { start, bytes: self.bytes(start, stop.checked_sub(start)?)?, relocations: None })
    }

    fn section(&self, section: &Section) -> Option<Contents<'e>> {
        let (start, size) = section.range();
        let relocations = self.elf.is_relocatable().then(|| {
            let found = self.file.section_by_index(object::SectionIndex(section.id.0 as usize)).ok();
            let relocations = found.into_iter().flat_map(|section| section.relocations());
            relocations.filter_map(|(offset, relocation)| Some((offset, self.target(&relocation)?))).collect()
        });
        Some(Contents { start, bytes: self.bytes(start, size)?, relocations })
    }

    /// The target of a relocation, without the adjustment for its own place.
    pub(super) fn target(&self, relocation: &object::Relocation) -> Option<u64> {
        let RelocationTarget::Symbol(index) = relocation.target() else { return None };
        let symbol = self.file.symbol_by_index(index).ok()?;
        let section = self.elf.section(SectionId(symbol.section_index()?.0 as u32))?;
        Some(section.range().0.wrapping_add(symbol.address()).wrapping_add_signed(relocation.addend()))
    }

    /// Bytes of a loaded section, by their place in the object's one address space; None where the file does not contain
    /// them.
    pub(crate) fn bytes(&self, at: u64, length: u64) -> Option<&'e [u8]> {
        let section = self.elf.section_at(at)?;
        let (from, _) = self.file.section_by_index(object::SectionIndex(section.id.0 as usize)).ok()?.file_range()?;
        let (start, size) = section.range();
        let inside = at - start;
        if inside.checked_add(length)? > size {
            return None;
        }
        let first = usize::try_from(from.checked_add(inside)?).ok()?;
        self.elf.bytes().get(first..first.checked_add(usize::try_from(length).ok()?)?)
    }

    /// Address and length of the code that each entry of the table describes; damaged entries are left out.
    pub(crate) fn places(&self, contents: &Contents<'_>, table: &Table) -> Vec<(u64, u32)> {
        self.places_of(contents, table, &|_| true)
    }

    /// The same of the entries for wanted places.
    fn places_of(&self, contents: &Contents<'_>, table: &Table, wanted: &dyn Fn(u64) -> bool) -> Vec<(u64, u32)> {
        let offsets = (0..contents.bytes.len() as u64).step_by(table.stride as usize);
        let found = offsets.filter_map(|offset| {
            let place = contents.place(offset, table.absolute).filter(|place| wanted(*place))?;
            let code = |length: usize| self.bytes(place, length as u64);
            Some(match table.extent {
                Extent::Bytes(length) => (place, length),
                Extent::BothSides(length) => (place.saturating_sub(length.into()), 2 * length),
                Extent::Branch => (place, branch(code(2)?)),
                Extent::Jump => (place, if matches!(code(1)?, [0xeb | 0x66]) { 2 } else { 5 }),
                Extent::Field(at) => (place, u32::from(*contents.bytes.get(usize::try_from(offset + at).ok()?)?)),
            })
        });
        found.collect()
    }

    /// None if the entries have an unknown layout.
    fn alternatives(&self, contents: &Contents<'_>) -> Option<Vec<(u64, u32)>> {
        ALTERNATIVES.iter().find_map(|&(stride, length_at)| {
            if !(contents.bytes.len() as u64).is_multiple_of(stride) {
                return None;
            }
            let count = contents.bytes.len() as u64 / stride;
            let table = relative(ALTERNATIVE_SECTION, stride, Extent::Field(length_at));
            let places = self.places(contents, &table);
            // Offsets of the two lengths: the original's, then the replacement's, which is not larger.
            let fits = |(offset, (place, length)): (u64, &(u64, u32))| {
                let replacement = usize::try_from(offset + length_at + 1).ok().and_then(|at| contents.bytes.get(at));
                self.elf.is_code(*place) && *length > 0 && replacement.is_some_and(|bytes| u32::from(*bytes) <= *length)
            };
            let all = places.len() as u64 == count && (0..).step_by(stride as usize).zip(&places).all(fits);
            all.then_some(places)
        })
    }

    /// What the module loader writes into a section with code.
    fn relocated(&self, section: &Section) -> Option<Vec<(u64, u32)>> {
        let (start, _) = section.range();
        let found = self.file.section_by_index(object::SectionIndex(section.id.0 as usize)).ok()?;
        let places = found.relocations().map(|(offset, relocation)| {
            let bytes = u32::from(relocation.size()) / 8;
            (start + offset, if bytes == 0 { 8 } else { bytes })
        });
        Some(places.collect())
    }
}

/// Length of a call or jump: `e8`/`e9` and four bytes, `0f 8x` and four, with a `cs` before it where the target is a thunk.
fn branch(code: &[u8]) -> u32 {
    match code {
        [0x2e, 0x0f, ..] => 7,
        [0x2e | 0x0f, ..] => 6,
        _ => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::vmlinux::installed;

    #[test]
    fn a_branch_is_as_long_as_it_is() {
        assert_eq!([&[0xe8, 0][..], &[0x0f, 0x85], &[0x2e, 0xe8], &[0x2e, 0x0f]].map(branch), [5, 6, 6, 7]);
    }

    #[test]
    fn in_a_kernel_entries_and_returns_are_patched_and_the_rest_is_not() {
        let Some(elf) = installed().map(|path| Elf::open(&path).unwrap()) else { return };
        let address = elf.symbol_address("vfs_read").unwrap().expect("vfs_read");
        let init = elf.symbol_address("start_kernel").unwrap().expect("start_kernel");
        let patched = Patched::of(&elf, [address, init].into_iter()).expect("tables");
        let code = patched.function_code(&elf, Address { offset: address.offset + 9, ..address }).expect("code");
        assert_eq!((code.function.as_str(), code.offset), ("vfs_read", 9));
        assert_eq!(code.patched.first(), Some(&(0, 5)), "the call of ftrace");
        let bytes: u32 = code.patched.iter().map(|(_, length)| length).sum();
        assert!(bytes as usize * 2 < code.bytes.len(), "{bytes} of {}", code.bytes.len());
        assert_eq!(patched.function_code(&elf, init), None, "it is gone when a probe could come");
        assert!(code.patched.windows(2).all(|pair| pair[0].0 + pair[0].1 < pair[1].0));
        // Asked about together with others, it is the same.
        let others = ["vfs_write", "do_sys_open", "schedule", "rw_verify_area", "new_sync_read"];
        let others = others.iter().filter_map(|name| elf.symbol_address(name).unwrap()).chain([address]);
        let with_others = Patched::of(&elf, others).expect("tables");
        let alone = Patched::of(&elf, [address].into_iter()).expect("tables");
        assert!(alone.0.len() < with_others.0.len());
        assert_eq!(with_others.function_code(&elf, Address { offset: address.offset + 9, ..address }), Some(code));
    }

    #[test]
    fn places_in_or_near_functions() {
        let functions = Functions::new(vec![(1000, 1100), (2000, 2100), (1050, 1200), (1200, 1300)]);
        assert_eq!(functions.0, [(1000, 1300), (2000, 2100)]);
        let has = [900, 936, 1000, 1299, 1363, 1364, 1935, 1936, 2163, 2164].map(|place| functions.has(place));
        assert_eq!(has, [false, true, true, true, true, false, false, true, true, false]);
    }
}
