// SPDX-License-Identifier: GPL-2.0-or-later

//! Places in an object's code that cannot be probed: those that the kernel's own check refuses
//! (`check_kprobe_address_safe()`, kernel/kprobes.c), read from the file, so that it is an error when the script is
//! compiled. At a function's entry this is the only check: a probe there is called by ftrace, which does not look at
//! the kernel's list.
//!
//! The lists come from, since 5.10: `NOKPROBE_SYMBOL()`, which leaves the function's address in `_kprobe_blacklist`
//! (vmlinux: between `__start_kprobe_blacklist` and `__stop_kprobe_blacklist`); `.kprobes.text`, `.noinstr.text` and the
//! entry code, which are excluded as a whole (vmlinux has symbols around them); a part of a function with a suffix is
//! refused with the function; jump labels, static calls and `BUG()`s have tables, see patched.rs.

use super::bring_up;
use super::elf::{Address, Elf};
use super::flow::ObjectFlow;
use super::patched::{Extent, Reader, absolute, relative};

/// Why no probe may be placed at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Kprobes run through the function: it is in the kernel's blacklist.
    Blacklisted,
    /// The instruction is a jump that the kernel turns on and off as it runs.
    JumpLabel,
    /// The instruction is a call whose target the kernel changes as it runs.
    StaticCall,
    /// The instruction stands for a BUG() or WARN(), which is found by its address.
    Bug,
}

/// The numbers of the reasons in an exported index.
const REASONS: [Reason; 4] = [Reason::Blacklisted, Reason::JumpLabel, Reason::StaticCall, Reason::Bug];
/// Further numbers there, for the parts of [`ObjectFlow`].
const ENTERED: u32 = REASONS.len() as u32;
const PREFIXED_CALL: u32 = ENTERED + 1;
const UNKNOWN: u32 = PREFIXED_CALL + 1;

/// Places of an object, in its one address space: start, length and reason; sorted by start.
#[derive(Debug, Default)]
pub struct Reserved {
    /// Whole functions and areas; they do not overlap.
    areas: Vec<(u64, u64)>,
    places: Vec<(u64, u32, Reason)>,
    /// Of an exported index, and for one: what [`super::flow`] finds in the code, which it lacks.
    flow: Option<ObjectFlow>,
}

/// Areas that vmlinux has symbols around (vmlinux.lds.h): `__NAME_text_start` and `__NAME_text_end`.
const AREAS: [&str; 3] = ["kprobes", "noinstr", "entry"];
/// The same areas of a module: sections.
const SECTIONS: [&str; 2] = [".kprobes.text", ".noinstr.text"];
/// Functions in which no probe may be, although the kernel's list lacks them. For files without code, too: bring_up.rs finds some of
/// these, and others, in the code.
const UNLISTED: [&str; 19] = [
    // Handlers run through these parts of preempt_count_add() and preempt_count_sub(), which are in the list, where the
    // compiler has made them functions of their own (kernel/sched/core.c).
    "preempt_latency_start",
    "preempt_latency_stop",
    // The end of the preempt_disable_notrace() under which ftrace calls handlers; its twin preempt_schedule() is in the list.
    "preempt_schedule_notrace",
    // ftrace copies them for each user that it calls directly (create_trampoline(), arch/x86/kernel/ftrace.c): a breakpoint
    // would be copied too, or a jump, which leads elsewhere from there.
    "ftrace_caller",
    "ftrace_regs_caller",
    // A CPU runs them before it has its own memory and its table of exceptions.
    "early_setup_idt",
    "startup_64_load_idt",
    "set_bringup_idt_handler",
    "start_secondary",
    "load_percpu_segment",
    "cr4_init",
    "cpu_init_exception_handling",
    "cpu_init_fred_exceptions",
    "setup_getcpu",
    "tss_setup_ist",
    "load_current_idt",
    // What the calls that kcov inserts run through (kernel/kcov.c).
    "check_kcov_mode",
    "write_comp_data",
    "canonicalize_ip",
];

/// How the names begin of functions of which the compiler puts calls into all others, also into those through which
/// a breakpoint is handled (`kprobe_int3_handler()`) before it is known to be in a handler: checks of memory accesses (KASAN, KCSAN,
/// KMSAN), coverage (kcov), and jumps instead of indirect calls (`-mindirect-branch=thunk-extern`).
const INSERTED: [&str; 12] = [
    "__asan_",
    "__hwasan_",
    "__kasan_",
    "kasan_",
    "__tsan_",
    "__kcsan_",
    "kcsan_",
    "__msan_",
    "kmsan_",
    "__sanitizer_cov_",
    "__x86_indirect_",
    "__x86_return_thunk",
];
/// How the names of those end to which the kernel changes each `ret` when it starts on a CPU that needs it (arch/x86/lib/retpoline.S).
const RETURNS: [&str; 4] = ["_return_thunk", "_untrain_ret", "_safe_ret", "warn_thunk_thunk"];

/// Whether no probe may be in the kernel's function of this name, as far as a name tells: for where there is no code to look at.
pub fn is_unlisted(function: &str) -> bool {
    UNLISTED.contains(&function)
        || INSERTED.iter().any(|beginning| function.starts_with(beginning))
        || RETURNS.iter().any(|end| function.ends_with(end))
}

/// Layouts of `struct bug_entry`: with file and line or without, and with a format since 6.18.
const BUG_STRIDES: [u64; 3] = [12, 16, 8];
const BUG_TABLE: &str = "__bug_table";
/// `ud2`.
const BUG: [u8; 2] = [0x0f, 0x0b];
/// `endbr64`.
const ENDBR: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
/// The longest place.
const LONGEST: u64 = 5;

impl Reserved {
    /// Reads the places from the object's tables; None where these cannot be read.
    pub fn of(elf: &Elf) -> Option<Reserved> {
        let file = elf.parse().ok()?;
        let reader = Reader { elf, file: &file };
        let mut places = Vec::new();
        let tables = [
            (relative("__jump_table", 16, Extent::Jump), Reason::JumpLabel),
            (relative(".static_call_sites", 8, Extent::Bytes(5)), Reason::StaticCall),
        ];
        for (table, reason) in tables {
            let found =
                reader.contents(table.section).map(|contents| reader.places(&contents, &table)).unwrap_or_default();
            places.extend(found.into_iter().map(|(at, length)| (at, length, reason)));
        }
        places.extend(bugs(&reader).into_iter().map(|at| (at, 1, Reason::Bug)));
        let moved: Vec<_> = places.iter().filter_map(|place| entry_before(elf, &reader, *place)).collect();
        places.extend(moved);
        places.sort_unstable();
        Some(Reserved { areas: areas(elf, &reader), places, flow: None })
    }

    /// Start, length and number of the reason of all places: the input of [`Reserved::from_rows`].
    pub(crate) fn rows(&self) -> impl Iterator<Item = (u64, u32, u32)> {
        let areas = self.areas.iter().map(|(at, length)| (*at, u32::try_from(*length).unwrap_or(u32::MAX), 0));
        let number = |reason| REASONS.iter().position(|known| *known == reason).unwrap_or(0) as u32;
        let places = self.places.iter().map(move |(at, length, reason)| (*at, *length, number(*reason)));
        let flow = self.flow.iter().flat_map(|flow| {
            let places = flow.entered.iter().map(|at| (*at, 1, ENTERED));
            let places = places.chain(flow.prefixed_calls.iter().map(|at| (*at, 1, PREFIXED_CALL)));
            let length = |length: u64| u32::try_from(length).unwrap_or(u32::MAX);
            places.chain(flow.unknown.iter().map(move |(at, bytes)| (*at, length(*bytes), UNKNOWN)))
        });
        areas.chain(places).chain(flow)
    }

    /// Unknown numbers of reasons are left out.
    pub(crate) fn from_rows(rows: impl Iterator<Item = (u64, u32, u32)>) -> Reserved {
        let mut found = Reserved::default();
        for (at, length, number) in rows {
            match REASONS.get(number as usize) {
                Some(Reason::Blacklisted) => found.areas.push((at, length.into())),
                Some(reason) => found.places.push((at, length, *reason)),
                None if number == ENTERED => found.flow.get_or_insert_default().entered.push(at),
                None if number == PREFIXED_CALL => found.flow.get_or_insert_default().prefixed_calls.push(at),
                None if number == UNKNOWN => found.flow.get_or_insert_default().unknown.push((at, length.into())),
                None => {}
            }
        }
        found.sort();
        found
    }

    /// The same in the address space of another file of the object; `from` is the file that it was read from. Linked code
    /// has the same addresses in both.
    pub fn moved(mut self, from: &Elf, to: &Elf) -> Reserved {
        if !from.is_relocatable() {
            return self;
        }
        let other = |at: u64| {
            let address = from.address(at)?;
            to.flat(to.code_in(&from.section_of(address)?.name, address.offset)?)
        };
        self.areas = self.areas.into_iter().filter_map(|(at, length)| Some((other(at)?, length))).collect();
        self.places =
            self.places.into_iter().filter_map(|(at, length, reason)| Some((other(at)?, length, reason))).collect();
        self.flow = self.flow.map(|flow| {
            let moved = |places: Vec<u64>| places.into_iter().filter_map(other).collect();
            let unknown = flow.unknown.into_iter().filter_map(|(at, length)| Some((other(at)?, length))).collect();
            ObjectFlow { entered: moved(flow.entered), prefixed_calls: moved(flow.prefixed_calls), unknown }
        });
        self.sort();
        self
    }

    /// Only the places found in the code; None if the file lacks it.
    pub fn flow_of(elf: &Elf) -> Option<Reserved> {
        Some(Reserved { flow: Some(ObjectFlow::of(elf)?), ..Reserved::default() })
    }

    /// The places with those found in the code, for an index.
    pub fn with_flow(self, flow: Option<Reserved>) -> Reserved {
        Reserved { flow: flow.and_then(|flow| flow.flow), ..self }
    }

    /// Whether code is entered in the middle of what a jump of five bytes at the place would replace; None where that is not known.
    pub(crate) fn is_entered_under_jump(&self, at: u64) -> Option<bool> {
        self.flow.as_ref()?.is_entered_under_jump(at)
    }

    /// Whether a direct call with a prefix is at the place; None where that is not known.
    pub(crate) fn is_prefixed_call(&self, at: u64) -> Option<bool> {
        self.flow.as_ref()?.is_prefixed_call(at)
    }

    fn sort(&mut self) {
        self.areas.sort_unstable();
        self.places.sort_unstable();
        if let Some(flow) = &mut self.flow {
            flow.sort();
        }
    }

    /// Why no probe may be placed at the address; None if one may.
    pub fn at(&self, elf: &Elf, address: Address) -> Option<Reason> {
        let at = elf.flat(address)?;
        if self.is_blacklisted(at) || self.is_part_of_blacklisted(elf, at) {
            return Some(Reason::Blacklisted);
        }
        let first = self.places.partition_point(|(place, ..)| *place < at.saturating_sub(LONGEST));
        let near = self.places.iter().skip(first).take_while(|(place, ..)| *place <= at);
        near.filter(|(place, length, _)| at - place < u64::from(*length)).map(|(.., reason)| *reason).next()
    }

    fn is_blacklisted(&self, at: u64) -> bool {
        let after = self.areas.partition_point(|(start, _)| *start <= at);
        after
            .checked_sub(1)
            .and_then(|before| self.areas.get(before))
            .is_some_and(|(start, length)| at - start < *length)
    }

    /// As `within_kprobe_blacklist()`: `f.cold` and `f.isra.0` are with `f`.
    fn is_part_of_blacklisted(&self, elf: &Elf, at: u64) -> bool {
        let Some(symbol) = elf.symbols_before(at).ok().and_then(|mut symbols| symbols.find(|symbol| symbol.function))
        else {
            return false;
        };
        let Some((whole, _)) = symbol.name.split_once('.') else { return false };
        !whole.is_empty()
            && elf
                .symbols_named(whole)
                .is_ok_and(|mut symbols| symbols.next().is_some_and(|symbol| self.is_blacklisted(symbol.at)))
    }
}

/// The ranges excluded as a whole: functions of the list, areas; joined where they touch.
fn areas(elf: &Elf, reader: &Reader<'_, '_>) -> Vec<(u64, u64)> {
    let symbol = |name: String| Some(elf.symbols_named(&name).ok()?.next()?.at);
    let mut all: Vec<(u64, u64)> = Vec::new();
    for name in AREAS {
        if let (Some(start), Some(end)) = (symbol(format!("__{name}_text_start")), symbol(format!("__{name}_text_end")))
        {
            all.push((start, end.saturating_sub(start)));
        }
    }
    all.extend(
        elf.sections()
            .iter()
            .filter(|section| SECTIONS.contains(&section.name.as_str()))
            .map(super::elf::Section::range),
    );
    // Modules have functions of such names for themselves.
    let mut listed = if elf.is_relocatable() { Vec::new() } else { elf.code_named(is_unlisted) };
    listed.extend(bring_up::functions(elf, reader));
    for name in ["_kprobe_blacklist", "kprobe_blacklist"] {
        let Some(contents) = reader.contents(name) else { continue };
        listed.extend(reader.places(&contents, &absolute(name, 8, Extent::Bytes(0))).into_iter().map(|(at, _)| at));
    }
    for at in listed {
        let sizes =
            elf.symbols_before(at).into_iter().flatten().take_while(|symbol| symbol.at == at).map(|symbol| symbol.size);
        all.push((at, sizes.max().unwrap_or(0).max(1)));
    }
    all.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (start, length) in all.into_iter().filter(|(_, length)| *length > 0) {
        let end = start.saturating_add(length);
        match joined.last_mut() {
            Some((first, length)) if first.saturating_add(*length) >= start => *length = (*length).max(end - *first),
            _ => joined.push((start, length)),
        }
    }
    joined
}

/// Where BUG()s are: by the layout with which the most entries are of such an instruction.
fn bugs(reader: &Reader<'_, '_>) -> Vec<u64> {
    let Some(contents) = reader.contents(BUG_TABLE) else { return Vec::new() };
    let is_bug = |at: u64| reader.bytes(at, 2).is_some_and(|code| code == BUG);
    let read = |stride: u64| -> Option<Vec<u64>> {
        let places = reader.places(&contents, &relative(BUG_TABLE, stride, Extent::Bytes(1)));
        let fits = contents.length() % stride == 0 && places.len() as u64 == contents.length() / stride;
        fits.then(|| places.into_iter().map(|(at, _)| at).collect())
    };
    likeliest(BUG_STRIDES.into_iter().filter_map(read), is_bug)
}

/// The entry of a function that begins with an `endbr64` before the place, refused for the same reason: kernels with IBT
/// put a probe of the entry behind it (`arch_adjust_kprobe_addr()`, arch/x86/kernel/kprobes/core.c).
fn entry_before(
    elf: &Elf,
    reader: &Reader<'_, '_>,
    (place, _, reason): (u64, u32, Reason),
) -> Option<(u64, u32, Reason)> {
    let at = place.checked_sub(ENDBR.len() as u64)?;
    let begins = || elf.symbols_before(at).ok()?.take_while(|symbol| symbol.at == at).find(|symbol| symbol.function);
    let entry = reader.bytes(at, ENDBR.len() as u64)? == ENDBR && begins().is_some();
    entry.then_some((at, ENDBR.len() as u32, reason))
}

/// The reading with the most BUG()s; none if less than half of it are. Not all are in newer kernels (7.3): a WARN() that prints
/// is entered with the address of a call, or of code before it. A layout of twice the length finds every second entry.
fn likeliest(readings: impl Iterator<Item = Vec<u64>>, is_bug: impl Fn(u64) -> bool) -> Vec<u64> {
    let counted = readings.map(|places| (places.iter().filter(|at| is_bug(**at)).count(), places));
    let likely = counted.filter(|(known, places)| 2 * known >= places.len());
    likely.max_by_key(|(known, _)| *known).map(|(_, places)| places).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::vmlinux::installed;

    #[test]
    fn the_layout_with_the_most_bugs_is_taken() {
        let of = |readings: &[&[u64]]| likeliest(readings.iter().map(|places| places.to_vec()), |at| at < 10);
        assert_eq!(of(&[&[1, 3], &[1, 2, 3, 4]]), [1, 2, 3, 4], "every second entry");
        assert_eq!(of(&[&[1, 2, 3, 40], &[1, 20, 30, 40, 50]]), [1, 2, 3, 40], "one that is none");
        assert!(of(&[&[1, 20, 30]]).is_empty() && of(&[]).is_empty());
    }

    /// A function without a call of ftrace that begins with a jump label, behind an endbr64 (post_alloc_hook() of 6.12);
    /// one with such a place inside.
    const ENTRIES: &str = r#"
        .text
        .type f, @function
f:      endbr64
g:      .byte 0x66, 0x90
        ret
        .size f, . - f
        .type h, @function
h:      nop
i:      endbr64
k:      .byte 0x66, 0x90
        ret
        .size h, . - h
        .section __jump_table, "aw"
        .long g - ., g - .
        .quad 0
        .long k - ., k - .
        .quad 0
"#;

    #[test]
    fn an_entry_is_refused_if_the_kernel_moves_the_probe_to_a_jump_label() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("f.s"), ENTRIES).unwrap();
        let built =
            std::process::Command::new("as").current_dir(directory.path()).args(["f.s", "-o", "f.o"]).status().unwrap();
        assert!(built.success());
        let elf = Elf::open(&directory.path().join("f.o")).unwrap();
        let reserved = Reserved::of(&elf).expect("tables");
        let refused = |name: &str| {
            let at = elf.symbols_named(name).unwrap().next().expect(name).at;
            reserved.at(&elf, elf.address(at).unwrap())
        };
        assert_eq!(["f", "g", "k"].map(refused), [Some(Reason::JumpLabel); 3]);
        assert_eq!(["h", "i"].map(refused), [None; 2]);
    }

    /// Of an instrumented kernel: what is called from everywhere, one of them in assembly that says no kind.
    const CALLED_EVERYWHERE: &str = r#"
        .text
        .type __asan_load8, @function
__asan_load8:
        nop
        ret
        .size __asan_load8, . - __asan_load8
srso_alias_return_thunk:
        nop
        ret
        .size srso_alias_return_thunk, . - srso_alias_return_thunk
        .globl vfs_read
        .type vfs_read, @function
vfs_read:
        nop
        ret
        .size vfs_read, . - vfs_read
"#;

    #[test]
    fn what_is_called_from_everywhere_is_refused_in_the_kernel() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("f.s"), CALLED_EVERYWHERE).unwrap();
        let run = |program: &str, words: &[&str]| {
            let status = std::process::Command::new(program).current_dir(directory.path()).args(words).status();
            assert!(status.unwrap().success(), "{program}");
        };
        run("as", &["f.s", "-o", "f.o"]);
        run("ld", &["-e", "vfs_read", "f.o", "-o", "vmlinux"]);
        let refused = |file: &str| {
            let elf = Elf::open(&directory.path().join(file)).unwrap();
            let reserved = Reserved::of(&elf).expect("tables");
            ["__asan_load8", "srso_alias_return_thunk", "vfs_read"].map(|name| {
                let at = elf.symbols_named(name).unwrap().next().expect(name).at;
                [0, 1].map(|within| reserved.at(&elf, elf.address(at + within).unwrap()).is_some())
            })
        };
        assert_eq!(refused("vmlinux"), [[true; 2], [true; 2], [false; 2]]);
        assert_eq!(refused("f.o"), [[false; 2]; 3], "a module's own");
    }

    #[test]
    fn what_the_kernel_refuses_is_known_from_its_file() {
        let Some(elf) = installed().map(|path| Elf::open(&path).unwrap()) else { return };
        let reserved = Reserved::of(&elf).expect("tables");
        let reason =
            |name: &str| reserved.at(&elf, elf.symbol_address(name).unwrap().unwrap_or_else(|| panic!("no {name}")));
        assert_eq!(reason("vfs_read"), None);
        assert_eq!(reason("kprobe_ftrace_handler"), Some(Reason::Blacklisted), "NOKPROBE_SYMBOL");
        assert_eq!(reason("exc_page_fault"), Some(Reason::Blacklisted), "noinstr");
        assert_eq!(reason("asm_exc_page_fault"), Some(Reason::Blacklisted), "entry code");
        assert_eq!(reason("preempt_schedule_notrace"), Some(Reason::Blacklisted), "what handlers run through");
        let count = |wanted: Reason| reserved.places.iter().filter(|(.., reason)| *reason == wanted).count();
        assert!(count(Reason::JumpLabel) > 1000 && count(Reason::StaticCall) > 100 && count(Reason::Bug) > 1000);
        assert!(reserved.areas.windows(2).all(|pair| pair[0].0 + pair[0].1 < pair[1].0));
        let (at, length, _) =
            reserved.places.iter().find(|(.., reason)| *reason == Reason::JumpLabel).expect("a jump label");
        let again = Reserved::from_rows(reserved.rows()).moved(&elf, &elf);
        assert_eq!((&again.areas, &again.places), (&reserved.areas, &reserved.places));
        let with = Reserved::of(&elf).expect("tables").with_flow(Reserved::flow_of(&elf));
        let flow = with.flow.as_ref().expect("code");
        let lengths = [flow.entered.len(), flow.prefixed_calls.len(), flow.unknown.len()];
        assert!(
            lengths[0] > 1000 && lengths[0] < 1 << 20 && lengths[1] < 1 << 18 && lengths[2] < 1 << 12,
            "{lengths:?}"
        );
        assert_eq!(Reserved::from_rows(with.rows()).moved(&elf, &elf).flow, with.flow);
        let near = |at: u64| elf.address(at).and_then(|address| reserved.at(&elf, address));
        assert_eq!(near(*at), Some(Reason::JumpLabel));
        assert_eq!(near(at + u64::from(*length) - 1), Some(Reason::JumpLabel));
    }
}
