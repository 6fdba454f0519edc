// SPDX-License-Identifier: GPL-2.0-or-later

//! Control flow of functions, from their machine code: at which of several places an execution of a source line begins.
//!
//! A line table repeats a line wherever the compiler came back to it: for the rest of an expression after a call, in a
//! loop, in a copy of the line on another path. Only the control flow distinguishes these.
//!
//! Besides what instructions show, jump labels jump to the targets in `__jump_table` (include/linux/jump_label.h), and faults
//! continue at those in `__ex_table` (arch/x86/include/asm/extable.h: three distances from themselves, the last is a type).
//!
//! And where a jump of five bytes must not replace code, which the kernel decides by the instructions of one symbol alone
//! (arch/x86/kernel/kprobes/opt.c, can_optimize()).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic, OpKind};
use object::{Object as _, ObjectSection};

use super::elf::{Elf, Symbol};
use super::patched::Reader;

/// Bytes of code that are analysed for one line.
const MAX_BYTES: u64 = 1 << 20;
/// Size of a piece of code without a symbol, such as a test in `.altinstr_aux`.
const MAX_PIECE: u64 = 64;
/// Bytes of an entry of `__jump_table` and `__ex_table`.
const TABLES: [(&str, u64); 2] = [("__jump_table", 16), ("__ex_table", 12)];
/// Offset in an entry of the distance to the target.
const TARGET: u64 = 4;

/// Jumps that instructions do not show, from and to, sorted; for a module also the targets of relocated ones, by their
/// fields.
pub(crate) struct Edges {
    hidden: Vec<(u64, u64)>,
    /// The targets of the hidden ones, sorted.
    hidden_targets: Vec<u64>,
    relocated: HashMap<u64, Option<u64>>,
}

impl Edges {
    /// The jumps of the object; None where the file cannot be read.
    pub(crate) fn of(elf: &Elf) -> Option<Edges> {
        let file = elf.parse().ok()?;
        let reader = Reader { elf, file: &file };
        let mut hidden = Vec::new();
        for (name, stride) in TABLES {
            let Some(contents) = reader.contents(name) else { continue };
            let entries = (0..contents.length() / stride).map(|number| number * stride);
            hidden.extend(
                entries.filter_map(|at| Some((contents.place(at, false)?, contents.place(at + TARGET, false)?))),
            );
        }
        hidden.sort_unstable();
        let mut relocated = HashMap::new();
        for section in elf.sections().iter().filter(|section| section.executable && elf.is_relocatable()) {
            let (start, _) = section.range();
            let found = file.section_by_index(object::SectionIndex(section.id.0 as usize)).ok()?;
            for (offset, relocation) in found.relocations() {
                // A jump is relative to the end of its field of four bytes.
                let target = reader.target(&relocation).map(|target| target.wrapping_add(4));
                relocated.insert(start + offset, target);
            }
        }
        let mut hidden_targets: Vec<u64> = hidden.iter().map(|(_, target)| *target).collect();
        hidden_targets.sort_unstable();
        Some(Edges { hidden, hidden_targets, relocated })
    }
}

/// Instructions of the functions that contain some places, with their cold parts, and the possible predecessors of each.
pub(crate) struct Flow {
    /// Sorted.
    at: Vec<u64>,
    /// For each instruction, those that may run directly before it.
    before: Vec<Vec<u32>>,
    /// Reached from elsewhere: by a call, or in an unknown way.
    entered: Vec<bool>,
    /// Direct calls that are not of the usual five bytes, sorted.
    prefixed_calls: Vec<u64>,
}

/// Where the code of one symbol is entered, other than by its own jumps.
pub(crate) struct EntryPoints {
    /// The symbol's code.
    code: std::ops::Range<u64>,
    /// Sorted.
    at: Vec<u64>,
    prefixed_calls: Vec<u64>,
}

impl EntryPoints {
    /// Of the symbol that has the place; None where it is in none, or the code cannot be read.
    pub(crate) fn of(elf: &Elf, edges: &Edges, place: u64) -> Option<EntryPoints> {
        let symbol = function_at(elf, place)?;
        let code = symbol.at..symbol.at.checked_add(symbol.size)?;
        let flow = Flow::of(elf, edges, &[place])?;
        let is_elsewhere = |from: &u32| flow.at.get(*from as usize).is_none_or(|from| !code.contains(from));
        let steps = flow.at.iter().zip(&flow.before).zip(&flow.entered).filter(|((at, _), _)| code.contains(at));
        let entered = steps.filter(|((_, before), entered)| **entered || before.iter().any(is_elsewhere));
        let mut at: Vec<u64> = entered.map(|((at, _), _)| *at).collect();
        let first = edges.hidden_targets.partition_point(|target| *target < code.start);
        at.extend(edges.hidden_targets.iter().skip(first).take_while(|target| code.contains(target)));
        at.sort_unstable();
        Some(EntryPoints { code, at, prefixed_calls: flow.prefixed_calls })
    }

    /// Whether the instruction at the place is a direct call with a prefix (`cs call __x86_indirect_thunk_rax`).
    pub(crate) fn has_prefixed_call_at(&self, place: u64) -> bool {
        self.prefixed_calls.binary_search(&place).is_ok()
    }

    /// Where the symbol's code begins.
    pub(crate) fn start(&self) -> u64 {
        self.code.start
    }

    /// Whether the place is in the symbol's code.
    pub(crate) fn has(&self, place: u64) -> bool {
        self.code.contains(&place)
    }

    /// Whether there is one within what a jump of five bytes at the place would replace, behind its first byte.
    pub(crate) fn are_under_jump_at(&self, place: u64) -> bool {
        are_under_jump(&self.at, place)
    }
}

/// The same of a sorted list of such places.
fn are_under_jump(entrances: &[u64], place: u64) -> bool {
    const JUMP: u64 = 5;
    let first = entrances.partition_point(|at| *at <= place);
    entrances.get(first).is_some_and(|at| *at < place.saturating_add(JUMP))
}

/// The same as [`EntryPoints`] of each function of an object, for an index, which has no code. All sorted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectFlow {
    /// Where code is entered other than at the beginning of a function.
    pub(crate) entered: Vec<u64>,
    pub(crate) prefixed_calls: Vec<u64>,
    /// Start and length of code of which nothing is known: it has no symbol (a weak function that another one replaces), or
    /// could not be read.
    pub(crate) unknown: Vec<(u64, u64)>,
}

impl ObjectFlow {
    /// Of the object; None where the file cannot be read.
    pub(crate) fn of(elf: &Elf) -> Option<ObjectFlow> {
        let edges = Edges::of(elf)?;
        let file = elf.parse().ok()?;
        let mut code = Code {
            elf,
            edges: &edges,
            reader: Reader { elf, file: &file },
            steps: BTreeMap::new(),
            prefixed_calls: Vec::new(),
            done: BTreeSet::new(),
            bytes: 0,
        };
        let mut found = ObjectFlow { entered: edges.hidden_targets.clone(), ..ObjectFlow::default() };
        let mut known = Vec::new();
        for (start, size) in functions(elf)? {
            code.bytes = 0;
            code.done.clear();
            code.steps.clear();
            let Some(mut open) = code.read(start, size) else { continue };
            // Pieces without a symbol, as in `.altinstr_aux`, jump back into the function.
            while let Some((piece, size)) = open.pop() {
                if function_at(elf, piece).is_none() {
                    open.extend(code.read(piece, size).unwrap_or_default());
                }
            }
            found.prefixed_calls.append(&mut code.prefixed_calls);
            let own = start..start.saturating_add(size);
            found.entered.extend(code.entered(&own));
            known.push(own);
        }
        found.unknown = code.others(known);
        // A jump to the first instruction of a function is none into its middle.
        found.entered.retain(|at| function_at(elf, *at).is_none_or(|symbol| symbol.at != *at));
        found.sort();
        Some(found)
    }

    pub(crate) fn sort(&mut self) {
        for places in [&mut self.entered, &mut self.prefixed_calls] {
            places.sort_unstable();
            places.dedup();
        }
        self.unknown.sort_unstable();
    }

    fn knows(&self, at: u64) -> bool {
        let next = self.unknown.partition_point(|(start, _)| *start <= at);
        let before = next.checked_sub(1).and_then(|index| self.unknown.get(index));
        before.is_none_or(|(start, length)| at - start >= *length)
    }

    /// See [`EntryPoints::are_under_jump_at`]; None where it is not known.
    pub(crate) fn is_entered_under_jump(&self, at: u64) -> Option<bool> {
        self.knows(at).then(|| are_under_jump(&self.entered, at))
    }

    /// See [`EntryPoints::has_prefixed_call_at`]; None where it is not known.
    pub(crate) fn is_prefixed_call(&self, at: u64) -> Option<bool> {
        self.knows(at).then(|| self.prefixed_calls.binary_search(&at).is_ok())
    }
}

/// Start and size of the code of all functions, sorted.
fn functions(elf: &Elf) -> Option<Vec<(u64, u64)>> {
    let is_code = |at: u64| elf.section_at(at).is_some_and(|section| section.executable);
    let symbols = elf.all_symbols().ok()?.filter(|symbol| symbol.function && symbol.size > 0 && is_code(symbol.at));
    let mut functions: Vec<(u64, u64)> = symbols.map(|symbol| (symbol.at, symbol.size)).collect();
    functions.sort_unstable();
    functions.dedup();
    Some(functions)
}

/// What an instruction does.
struct Step {
    next: Option<u64>,
    target: Option<u64>,
    /// It may be in a place that never runs, before a loop or after a jump.
    fills: bool,
}

impl Flow {
    /// Of the functions that contain the places (in the object's one address space); None where a place is in no function,
    /// the file lacks its code, or the code is too large.
    pub(crate) fn of(elf: &Elf, edges: &Edges, places: &[u64]) -> Option<Flow> {
        let file = elf.parse().ok()?;
        let mut code = Code {
            elf,
            edges,
            reader: Reader { elf, file: &file },
            steps: BTreeMap::new(),
            prefixed_calls: Vec::new(),
            done: BTreeSet::new(),
            bytes: 0,
        };
        let mut open = Vec::new();
        for place in places {
            let symbol = function_at(elf, *place)?;
            open.push((symbol.at, symbol.size));
            // Jumps into a cold part.
            if let Some((whole, _)) = symbol.name.split_once(".cold") {
                open.extend(elf.symbols_named(whole).ok()?.filter(|of| of.function).map(|of| (of.at, of.size)));
            }
        }
        while let Some((start, size)) = open.pop() {
            open.extend(code.read(start, size)?);
        }
        Some(code.finish())
    }

    /// The places among those of one line at which an execution of it begins. Each of the others is reached only through
    /// one of these.
    pub(crate) fn first_reached(&self, places: &[u64]) -> Vec<u64> {
        let mut kept: BTreeSet<u64> = places.iter().copied().collect();
        for place in places.iter().rev() {
            if kept.len() > 1 && self.is_after_others(*place, &kept) {
                kept.remove(place);
            }
        }
        kept.into_iter().collect()
    }

    /// Whether every path to the place comes from another of those kept, and passes it again before it returns to the
    /// place.
    fn is_after_others(&self, place: u64, kept: &BTreeSet<u64>) -> bool {
        let Ok(from) = self.at.binary_search(&place) else { return false };
        let mut seen = vec![false; self.at.len()];
        let mut open = vec![from];
        while let Some(index) = open.pop() {
            let Some((false, all_before)) = self.entered.get(index).copied().zip(self.before.get(index)) else {
                return false;
            };
            for before in all_before.iter().map(|before| *before as usize) {
                if before == from {
                    return false;
                }
                let (Some(seen), Some(place)) = (seen.get_mut(before), self.at.get(before)) else { return false };
                if !std::mem::replace(seen, true) && !kept.contains(place) {
                    open.push(before);
                }
            }
        }
        true
    }
}

/// Code while it is read.
struct Code<'e, 'f> {
    elf: &'e Elf,
    edges: &'e Edges,
    reader: Reader<'e, 'f>,
    steps: BTreeMap<u64, Step>,
    prefixed_calls: Vec<u64>,
    done: BTreeSet<u64>,
    bytes: u64,
}

impl Code<'_, '_> {
    /// Reads a function; gives start and size of other pieces that belong to it: its cold parts, and code without a symbol.
    fn read(&mut self, start: u64, size: u64) -> Option<Vec<(u64, u64)>> {
        if !self.done.insert(start) {
            return Some(Vec::new());
        }
        self.bytes += size;
        let bytes = self.reader.bytes(start, size).filter(|_| self.bytes <= MAX_BYTES)?;
        let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
        let mut targets = Vec::new();
        let is_piece = function_at(self.elf, start).is_none();
        while decoder.can_decode() {
            let instruction = decoder.decode();
            let (at, next) = (instruction.ip(), instruction.next_ip());
            let flow = if instruction.is_invalid() { FlowControl::Next } else { instruction.flow_control() };
            let branches = matches!(flow, FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch)
                && instruction.op0_kind() == OpKind::NearBranch64;
            let target = branches.then(|| self.target(next, instruction.near_branch_target())).flatten();
            // After the `ud2` of a WARN() execution continues; the `int3` after a jump never runs.
            let goes_on = !matches!(
                flow,
                FlowControl::UnconditionalBranch
                    | FlowControl::IndirectBranch
                    | FlowControl::Return
                    | FlowControl::Interrupt
            );
            targets.extend(target);
            if flow == FlowControl::Call && instruction.op0_kind() == OpKind::NearBranch64 && instruction.len() != 5 {
                self.prefixed_calls.push(at);
            }
            let fills = matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3);
            self.steps.insert(at, Step { next: goes_on.then_some(next), target, fills });
            if is_piece && !goes_on {
                break;
            }
        }
        let first = self.edges.hidden.partition_point(|(from, _)| *from < start);
        let hidden = self.edges.hidden.iter().skip(first).take_while(|(from, _)| *from < start + size);
        targets.extend(hidden.map(|(_, target)| *target));
        Some(targets.into_iter().filter_map(|target| self.belongs(target)).collect())
    }

    /// Where the code that was read is entered by jumps that are not the function's own, or in an unknown way; `own`: the
    /// function's code.
    fn entered(&self, own: &std::ops::Range<u64>) -> Vec<u64> {
        let jumps = self.steps.iter().filter_map(|(at, step)| Some((at, step.target?)));
        let foreign = jumps.filter(|(at, target)| !own.contains(at) || !own.contains(target)).map(|(_, target)| target);
        let mut reached: Vec<u64> = self.steps.values().flat_map(|step| [step.target, step.next]).flatten().collect();
        reached.sort_unstable();
        let unknown = self.steps.iter().filter(|(at, step)| !step.fills && reached.binary_search(at).is_err());
        foreign.chain(unknown.map(|(at, _)| *at).filter(|at| *at != own.start)).collect()
    }

    /// Start and length of the code that is not `known` (ascending), without what fills the space between functions.
    fn others(&self, known: Vec<std::ops::Range<u64>>) -> Vec<(u64, u64)> {
        let mut others = Vec::new();
        for section in self.elf.sections().iter().filter(|section| section.executable) {
            let (start, size) = section.range();
            let end = start.saturating_add(size);
            let first = known.partition_point(|range| range.start < start);
            let inside = known.iter().skip(first).take_while(|range| range.start < end);
            let mut at = start;
            for (next, after) in inside.map(|range| (range.start, range.end)).chain([(end, end)]) {
                if next > at && !self.only_fills(at, next - at) {
                    others.push((at, next - at));
                }
                at = at.max(after);
            }
        }
        others
    }

    fn only_fills(&self, start: u64, size: u64) -> bool {
        let Some(bytes) = self.reader.bytes(start, size) else { return false };
        let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
        decoder.iter().all(|instruction| matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3))
    }

    /// The target of a jump whose instruction ends at `next`; None: outside the object.
    fn target(&self, next: u64, written: u64) -> Option<u64> {
        match self.edges.relocated.get(&next.wrapping_sub(4)) {
            Some(relocated) => *relocated,
            None => Some(written),
        }
    }

    /// The code at a jump's target, unless it is another function.
    fn belongs(&self, target: u64) -> Option<(u64, u64)> {
        if let Some(symbol) = function_at(self.elf, target) {
            let is_own = symbol.at == target && !symbol.name.contains(".cold");
            return (!is_own).then_some((symbol.at, symbol.size));
        }
        let (start, size) = self.elf.section_at(target).filter(|section| section.executable)?.range();
        Some((target, MAX_PIECE.min(start + size - target)))
    }

    fn finish(mut self) -> Flow {
        self.prefixed_calls.sort_unstable();
        let at: Vec<u64> = self.steps.keys().copied().collect();
        let mut before = vec![Vec::new(); at.len()];
        let mut edge = |from: u32, to: u64| {
            if let Some(before) = at.binary_search(&to).ok().and_then(|to| before.get_mut(to)) {
                before.push(from);
            }
        };
        for (from, step) in (0..).zip(self.steps.values()) {
            step.next.into_iter().chain(step.target).for_each(|to| edge(from, to));
        }
        for (from, to) in &self.edges.hidden {
            if let Ok(from) = at.binary_search(from) {
                edge(from as u32, *to);
            }
        }
        let is_called = |at: u64| function_at(self.elf, at).is_some_and(|f| f.at == at && !f.name.contains(".cold"));
        let unknown = |before: &Vec<u32>, step: &Step| before.is_empty() && !step.fills;
        let places = at.iter().zip(&before).zip(self.steps.values());
        let entered = places.map(|((at, before), step)| unknown(before, step) || is_called(*at)).collect();
        Flow { at, before, entered, prefixed_calls: self.prefixed_calls }
    }
}

/// The symbol of the function that has the address.
fn function_at(elf: &Elf, at: u64) -> Option<Symbol<'_>> {
    let mut near = elf.symbols_before(at).ok()?.take(64);
    near.find(|symbol| symbol.function && symbol.size > 0 && at - symbol.at < symbol.size)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const TEXT: &str = r#"
        .text
        .globl f
        .type f, @function
f:      nop
a:      cmp $1, %edi
        je d
b:      add %edi, %eax
c:      dec %edi
        jnz c
switch: .byte 0x0f, 0x1f, 0x44, 0, 0
e:      mov %eax, %ecx
g:      ret
        int3
        nopl 0(%rax)
d:      xor %eax, %eax
        call external
        .byte 0x2e
        call external
k:      jne f.cold
h:      mov %eax, %ecx
        jmp external
        .size f, . - f
z:      xor %eax, %eax
        ret
        .section .text.unlikely, "ax"
        .type f.cold, @function
f.cold: ud2
i:      xor %eax, %eax
        jmp h
        .size f.cold, . - f.cold
        .section __jump_table, "aw"
        .long switch - ., g - .
        .quad 0
        "#;

    fn assembled() -> (tempfile::TempDir, Elf) {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("f.s"), TEXT).unwrap();
        let built = Command::new("as").current_dir(directory.path()).args(["f.s", "-o", "f.o"]).status().unwrap();
        assert!(built.success());
        let elf = Elf::open(&directory.path().join("f.o")).unwrap();
        (directory, elf)
    }

    #[test]
    fn places_that_a_jump_must_not_replace() {
        let (_directory, elf) = assembled();
        let edges = Edges::of(&elf).expect("tables");
        let at = |name: &str| elf.symbols_named(name).unwrap().next().expect(name).at;
        let under = |place: u64| EntryPoints::of(&elf, &edges, place).expect("code").are_under_jump_at(place);
        assert!(under(at("e")), "the target of a jump label is behind it");
        assert!(under(at("h") - 4), "the cold part comes back behind it");
        assert!(!under(at("h")), "a jump may begin where it comes back");
        assert!(!under(at("b")), "the kernel sees a function's own jumps");
        assert!(!under(at("f.cold")), "its second instruction is reached from the first alone");
        let all = EntryPoints::of(&elf, &edges, at("e")).expect("code");
        assert!(all.has(at("g")) && !all.has(at("f.cold")));
        assert!(all.has_prefixed_call_at(at("k") - 6) && !all.has_prefixed_call_at(at("k") - 11));
        let whole = ObjectFlow::of(&elf).expect("code");
        assert_eq!(whole.prefixed_calls, [at("k") - 6]);
        assert_eq!((whole.is_entered_under_jump(at("z")), whole.is_prefixed_call(at("z"))), (None, None), "no symbol");
        let places = ["a", "b", "c", "d", "e", "g", "h", "i", "k", "f", "f.cold"].map(at);
        for place in places.into_iter().flat_map(|place| place.saturating_sub(5)..place + 5) {
            let own = function_at(&elf, place).map(|_| under(place));
            assert!(own.is_none_or(|own| whole.is_entered_under_jump(place) == Some(own)), "{place:#x}");
        }
    }

    #[test]
    fn places_by_which_a_line_is_reached() {
        let (_directory, elf) = assembled();
        let edges = Edges::of(&elf).expect("tables");
        let at = |name: &str| elf.symbols_named(name).unwrap().next().expect(name).at;
        let first = |names: &[&str]| -> Vec<String> {
            let mut places: Vec<u64> = names.iter().map(|name| at(name)).collect();
            places.sort_unstable();
            let kept = Flow::of(&elf, &edges, &places).expect("code").first_reached(&places);
            names.iter().filter(|name| kept.contains(&at(name))).map(ToString::to_string).collect()
        };
        assert_eq!(first(&["a", "b"]), ["a"], "one behind the other");
        assert_eq!(first(&["a", "d"]), ["a"], "a branch of it");
        assert_eq!(first(&["b", "d"]), ["b", "d"], "two branches");
        assert_eq!(first(&["a", "b", "d"]), ["a"]);
        assert_eq!(first(&["b", "c"]), ["b", "c"], "a loop that the other is not in");
        assert_eq!(first(&["e", "g"]), ["e", "g"], "a jump label goes past the other");
        assert_eq!(first(&["a", "g"]), ["a"]);
        assert_eq!(first(&["d", "i"]), ["d"], "a cold part");
        assert_eq!(first(&["i", "h"]), ["i", "h"], "a way past the cold part");
        assert_eq!(first(&["a", "h", "i"]), ["a"]);
    }
}
