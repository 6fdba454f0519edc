// SPDX-License-Identifier: GPL-2.0-or-later

//! Strings that nothing refers to any more: those of all initialisers are in one section.

use object::build::Id;
use object::build::elf::{Builder, Relocation, Section, SectionData, SectionId};
use object::elf;

/// A run of bytes that stays together, and where it moves.
struct Run {
    old: std::ops::Range<usize>,
    new: usize,
}

/// A reference relative to its own place has an addend that is off by what lies between that and the end of the
/// instruction, or the beginning of the table's entry: this many bytes at most.
const SLACK: i64 = 16;

/// Leaves out strings of sections of strings. `target`: the section that a relocation leads to.
pub(super) fn shorten(builder: &mut Builder, target: impl Fn(&Relocation) -> Option<SectionId>) -> Result<(), String> {
    let sections: Vec<SectionId> =
        builder.sections.iter().filter(|section| is_strings(section)).map(Section::id).collect();
    for id in sections {
        // A symbol in the middle would have to move too.
        let named = builder.symbols.iter().any(|symbol| symbol.section == Some(id) && symbol.st_value != 0);
        if named {
            continue;
        }
        let section = builder.sections.get(id);
        let SectionData::Data(bytes) = &section.data else { continue };
        let loaded = loaded_references(builder);
        let mut wanted = Vec::new();
        for relocation in references(builder, id, &loaded, &target) {
            let slack = if is_absolute(relocation) { 0 } else { SLACK };
            wanted.push(around(bytes, relocation.r_addend - slack, relocation.r_addend + slack));
        }
        let align = usize::try_from(section.sh_addralign).unwrap_or(1).max(1);
        let runs = placed(wanted, align);
        let mut shorter = Vec::new();
        for run in &runs {
            shorter.resize(run.new, 0);
            shorter.extend(bytes.get(run.old.clone()).unwrap_or_default());
        }
        if let SectionData::Data(bytes) = &mut builder.sections.get_mut(id).data {
            *bytes.to_mut() = shorter;
        }
        let moved = |addend: i64, slack: i64| {
            let run = runs.iter().rev().find(|run| run.old.start as i64 <= addend + slack)?;
            Some(addend - run.old.start as i64 + run.new as i64)
        };
        for section in &mut builder.sections {
            let is_loaded = is_marked(&loaded, section);
            let SectionData::Relocation(relocations) = &mut section.data else { continue };
            for relocation in relocations.iter_mut().filter(|relocation| target(relocation) == Some(id)) {
                let is_left =
                    || runs.iter().any(|run| (run.old.start as i64..run.old.end as i64).contains(&relocation.r_addend));
                if !is_loaded && !is_left() {
                    *relocation = Relocation { symbol: None, r_type: elf::R_X86_64_NONE, r_addend: 0, ..*relocation };
                    continue;
                }
                let slack = if is_absolute(relocation) { 0 } else { SLACK };
                relocation.r_addend = moved(relocation.r_addend, slack).ok_or("a string is not where it was")?;
            }
        }
    }
    Ok(())
}

fn is_strings(section: &Section) -> bool {
    let flags = section.sh_flags;
    flags.contains(elf::SHF_ALLOC)
        && flags.contains(elf::SHF_MERGE)
        && flags.contains(elf::SHF_STRINGS)
        && section.sh_entsize == 1
}

fn is_absolute(relocation: &Relocation) -> bool {
    [elf::R_X86_64_64, elf::R_X86_64_32, elf::R_X86_64_32S].contains(&relocation.r_type)
}

/// By numbers of sections: whether it has the references of what is loaded. Debug information keeps no string: with it and without, a
/// module has the same ones.
fn loaded_references(builder: &Builder) -> Vec<bool> {
    let mut loaded = Vec::new();
    for section in &builder.sections {
        let of = section.sh_info_section.filter(|_| matches!(section.data, SectionData::Relocation(_)));
        loaded.resize(section.id().index(), false);
        loaded.push(of.is_some_and(|of| builder.sections.get(of).sh_flags.contains(elf::SHF_ALLOC)));
    }
    loaded
}

fn is_marked(marks: &[bool], section: &Section) -> bool {
    marks.get(section.id().index()).copied().unwrap_or(false)
}

/// Relocations of loaded sections that refer to the section.
fn references<'b>(
    builder: &'b Builder,
    id: SectionId,
    loaded: &'b [bool],
    target: &'b impl Fn(&Relocation) -> Option<SectionId>,
) -> impl Iterator<Item = &'b Relocation> {
    let sections = builder.sections.iter().filter(|section| is_marked(loaded, section));
    let relocations = sections.filter_map(|section| match &section.data {
        SectionData::Relocation(relocations) => Some(relocations),
        _ => None,
    });
    relocations.flatten().filter(move |relocation| target(relocation).is_some_and(|at| at.index() == id.index()))
}

/// Whole strings from the one at `from` to the one at `to`.
fn around(bytes: &[u8], from: i64, to: i64) -> std::ops::Range<usize> {
    let clamp = |at: i64| usize::try_from(at.max(0)).unwrap_or(0).min(bytes.len());
    let (from, to) = (clamp(from), clamp(to));
    let before = bytes.get(..from).unwrap_or_default();
    let start = before.iter().rposition(|byte| *byte == 0).map_or(0, |at| at + 1);
    let after = bytes.get(to..).unwrap_or_default();
    let end = after.iter().position(|byte| *byte == 0).map_or(bytes.len(), |at| to + at + 1);
    start..end
}

/// The runs in their order, those that touch as one, each as aligned as it was.
fn placed(mut wanted: Vec<std::ops::Range<usize>>, align: usize) -> Vec<Run> {
    wanted.sort_by_key(|range| (range.start, range.end));
    let mut runs: Vec<Run> = Vec::new();
    for range in wanted {
        match runs.last_mut() {
            Some(last) if range.start <= last.old.end => last.old.end = last.old.end.max(range.end),
            _ => runs.push(Run { old: range, new: 0 }),
        }
    }
    let mut end = 0usize;
    for run in &mut runs {
        let (is, wants) = (end % align, run.old.start % align);
        run.new = end + (wants + align - is) % align;
        end = run.new + run.old.len();
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_strings() {
        let bytes = b"one\0two\0three\0";
        assert_eq!(around(bytes, 4, 4), 4..8);
        assert_eq!(around(bytes, 6, 6), 4..8);
        assert_eq!(around(bytes, 0, 0), 0..4);
        assert_eq!(around(bytes, 3, 3), 0..4);
        assert_eq!(around(bytes, -20, 5), 0..8);
        assert_eq!(around(bytes, 9, 40), 8..14);
    }

    #[test]
    fn runs_keep_their_alignment() {
        let runs = placed(vec![40..45, 8..13, 41..45, 19..24, 24..30], 8);
        let found: Vec<_> = runs.iter().map(|run| (run.old.clone(), run.new)).collect();
        assert_eq!(found, [(8..13, 0), (19..30, 11), (40..45, 24)]);
        assert!(placed(Vec::new(), 8).is_empty());
    }
}
