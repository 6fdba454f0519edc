// SPDX-License-Identifier: GPL-2.0-or-later

//! The kernel's tables in an object: entries of one size, each about the place in the code that its first relocation
//! names. How large an entry is differs between kernels, and follows from the pattern of the relocations.

use std::ops::RangeInclusive;

use object::build::elf::{Builder, Relocation, Section, SectionData, SectionId};

/// Sections that are such tables, and how many bytes an entry may have: where all fields are relocated, the pattern is that
/// of single fields too, and a few relocations without any pattern could be one large entry. In other sections, entries
/// could be counted by something else, or found by their place.
const NAMES: [(&str, RangeInclusive<usize>); 15] = [
    (".orc_unwind_ip", 4..=4),
    (".altinstructions", 12..=16),
    (".parainstructions", 12..=16),
    (".smp_locks", 4..=4),
    ("__ex_table", 12..=12),
    ("__bug_table", 8..=16),
    ("__jump_table", 16..=16),
    ("_kprobe_blacklist", 8..=8),
    (".retpoline_sites", 4..=4),
    (".return_sites", 4..=4),
    (".call_sites", 4..=4),
    (".ibt_endbr_seal", 4..=4),
    (".static_call_sites", 8..=8),
    (".cfi_sites", 4..=4),
    ("__patchable_function_entries", 8..=8),
];
/// Places in the code that objtool reads about, and what else it reads of each.
const DISCARDED: (&str, RangeInclusive<usize>) = (".discard.", 4..=8);

/// Whether a section of that name is such a table, of whatever form.
pub(super) fn is_named(name: &str) -> bool {
    NAMES.iter().any(|(known, _)| *known == name) || name.starts_with(DISCARDED.0)
}

/// Entries of this table have no relocations; each goes with the one of the same number in the other
/// (arch/x86/include/asm/orc_types.h).
const UNWIND_PLACES: &str = ".orc_unwind_ip";
const UNWIND_DATA: &str = ".orc_unwind";

/// Relocations that one entry may have.
const MOST: usize = 4;

/// A table.
#[derive(Debug)]
pub(super) struct Table {
    /// Its section.
    pub section: SectionId,
    /// The relocations of its entries, one entry after the other, with offsets from the entry's start.
    relocations: Vec<Relocation>,
    /// How many relocations each entry has.
    each: usize,
    /// The table without relocations beside it.
    beside: Option<SectionId>,
}

/// An entry: its number, and its relocations with offsets in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'t> {
    number: usize,
    /// The relocations in it, with offsets from its start.
    pub relocations: &'t [Relocation],
}

impl Table {
    /// None: it is none, or of an unknown form. `relocations` by their offsets.
    pub fn of(section: &Section, relocations: &[Relocation], builder: &Builder) -> Option<Table> {
        let name = std::str::from_utf8(&section.name).ok()?;
        if name == UNWIND_DATA {
            // With the table beside it.
            let places = builder.sections.iter().find(|other| *other.name == *UNWIND_PLACES.as_bytes())?;
            return is_divided(section, places).then(|| Table {
                section: section.id(),
                relocations: Vec::new(),
                each: 1,
                beside: None,
            });
        }
        let known = NAMES.iter().find(|(known, _)| *known == name);
        let sizes = known.map(|(_, sizes)| sizes.clone()).or(name.starts_with(DISCARDED.0).then_some(DISCARDED.1))?;
        let SectionData::Data(bytes) = &section.data else { return None };
        let (size, each) = form(bytes.len(), relocations, &sizes)?;
        let beside = match name == UNWIND_PLACES {
            true => {
                let data = builder.sections.iter().find(|other| *other.name == *UNWIND_DATA.as_bytes())?;
                (size == 4 && is_divided(data, section)).then_some(Some(data.id()))?
            }
            false => None,
        };
        let mut relocations = relocations.to_vec();
        for (number, entry) in relocations.chunks_mut(each).enumerate() {
            entry.iter_mut().for_each(|relocation| relocation.r_offset -= (number * size) as u64);
        }
        Some(Table { section: section.id(), relocations, each, beside })
    }

    /// Its entries, in order.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = Entry<'_>> {
        self.relocations.chunks(self.each).enumerate().map(|(number, relocations)| Entry { number, relocations })
    }

    /// Leaves these entries in the table; deletes it if there are none. `by`: the section with its relocations.
    pub fn rewrite(&self, builder: &mut Builder, by: Option<SectionId>, left: &[Entry]) {
        let count = self.entries().len();
        if count == 0 {
            return;
        }
        let size = pick(builder, self.section, count, left);
        if let Some(beside) = self.beside {
            pick(builder, beside, count, left);
        }
        if let Some(by) = by {
            let section = builder.sections.get_mut(by);
            section.delete = left.is_empty();
            if let SectionData::Relocation(relocations) = &mut section.data {
                *relocations = left
                    .iter()
                    .enumerate()
                    .flat_map(|(number, entry)| {
                        let start = (number * size) as u64;
                        entry
                            .relocations
                            .iter()
                            .map(move |relocation| Relocation { r_offset: relocation.r_offset + start, ..*relocation })
                    })
                    .collect();
            }
        }
    }
}

/// The bytes of only these entries; returns the size of one.
fn pick(builder: &mut Builder, id: SectionId, count: usize, left: &[Entry]) -> usize {
    let section = builder.sections.get_mut(id);
    section.delete = left.is_empty();
    let SectionData::Data(bytes) = &mut section.data else { return 0 };
    let size = bytes.len() / count;
    let picked: Vec<u8> = left
        .iter()
        .filter_map(|entry| bytes.get(entry.number * size..(entry.number + 1) * size))
        .flatten()
        .copied()
        .collect();
    *bytes.to_mut() = picked;
    size
}

/// Whether there is an entry of `data` for each of `places`.
fn is_divided(data: &Section, places: &Section) -> bool {
    let length = |section: &Section| match &section.data {
        SectionData::Data(bytes) => bytes.len(),
        _ => 0,
    };
    let count = length(places) / 4;
    count > 0 && length(data) > 0 && length(data).is_multiple_of(count)
}

/// The bytes of an entry, of which `sizes` are possible, and the number of its relocations, where each entry has the same relocations at
/// the same offsets.
fn form(length: usize, relocations: &[Relocation], sizes: &RangeInclusive<usize>) -> Option<(usize, usize)> {
    (1..=MOST).find_map(|each| {
        let count = relocations.len() / each;
        let whole = count > 0 && relocations.len().is_multiple_of(each) && length.is_multiple_of(count);
        let size = length.checked_div(count).filter(|size| whole && sizes.contains(size))?;
        let first: Vec<u64> = relocations.iter().take(each).map(|relocation| relocation.r_offset).collect();
        let same = relocations.chunks(each).enumerate().all(|(number, entry)| {
            let start = (number * size) as u64;
            entry
                .iter()
                .zip(&first)
                .all(|(relocation, offset)| *offset < size as u64 && relocation.r_offset == start + offset)
        });
        same.then_some((size, each))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offsets: &[u64]) -> Vec<Relocation> {
        let relocation = |offset: &u64| Relocation {
            r_offset: *offset,
            symbol: None,
            r_type: object::elf::R_X86_64_PC32,
            r_addend: 0,
        };
        offsets.iter().map(relocation).collect()
    }

    #[test]
    fn the_form_of_a_table() {
        assert_eq!(form(12, &at(&[0, 4, 8]), &(4..=4)), Some((4, 1)));
        assert_eq!(form(24, &at(&[0, 4, 8, 12, 16, 20]), &(8..=8)), Some((8, 2)));
        assert_eq!(form(24, &at(&[0, 4, 8, 12, 16, 20]), &(12..=12)), Some((12, 3)));
        assert_eq!(form(24, &at(&[0, 4, 12, 16]), &(4..=16)), Some((12, 2)));
        assert_eq!(form(26, &at(&[0, 4, 13, 17]), &(4..=16)), Some((13, 2)));
        assert_eq!(form(24, &at(&[0, 4, 12]), &(4..=16)), None);
        assert_eq!(form(16, &at(&[0, 4, 8]), &(4..=4)), None);
        assert_eq!(form(25, &at(&[0, 4, 12, 16]), &(4..=16)), None);
        assert_eq!(form(8, &[], &(4..=8)), None);
    }
}
