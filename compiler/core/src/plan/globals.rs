// SPDX-License-Identifier: GPL-2.0-or-later

//! Which globals need a lock, and how a handler takes it.
//!
//! A global that no armed probe writes needs none: begin probes run before anything is armed, end probes after everything
//! is disarmed. Nor does an aggregate, or an array of them, that armed probes only feed: each CPU has its own values, and
//! creating an element is safe without a lock. The same holds for a number that they only add to, a *counter*, and for an
//! array of numbers that they only add to, a *counted* array. Nor does a number that each run accesses at most once
//! (*single access*): typically a flag that one probe sets and another reads.

use std::collections::BTreeSet;

use super::Limits;
use super::holds::{self, Hold, Holds};
use super::locking::{self, Locking, Reason};
use crate::program::element_uses::WholeArray;
use crate::program::uses::{Access, AccessCounts, CodeSummary, Uses};
use crate::program::{Attachment, Contents, Global, GlobalId, Program, Runs, Type};
use spile_source::Span;

/// How a handler takes a lock (script.h, enum spile_lock_mode).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockMode {
    /// Shared with other readers.
    Read,
    /// Exclusively.
    Write,
    /// For an aggregate that the handler only feeds: on its own CPU.
    Local,
    /// For one that it reads or deletes: on all CPUs.
    All,
}

/// Whether each CPU has its own share of a global that is not an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PerCpu {
    /// It has no share.
    None,
    /// Of a number: the index of the counter.
    Counter(u32),
    /// Of each number of an array.
    Array,
}

/// Most elements of a counted array: each takes 16 bytes on each possible CPU, which makes 64 MiB on 256 CPUs.
const MOST_COUNTED: u32 = 16_384;

/// Whether a global that armed probes only add to needs no exclusion.
fn is_per_cpu(global: &Global, shares: PerCpu) -> bool {
    shares != PerCpu::None || matches!(global.contents, Contents::Stats(_))
}

/// How a handler with this access to a global takes its lock.
pub(super) fn mode(global: &Global, shares: PerCpu, access: Access) -> LockMode {
    match (is_per_cpu(global, shares), access) {
        (true, Access::Feed) => LockMode::Local,
        (true, _) => LockMode::All,
        (false, Access::Read) => LockMode::Read,
        (false, _) => LockMode::Write,
    }
}

/// Whether the probe runs alone: before any is armed, or after all are disarmed.
fn is_serial(attachment: &Attachment) -> bool {
    attachment.mechanism.runs == Runs::Alone
}

/// By global: whether each CPU has its own share of it. Reading it visits all CPUs then, so besides the probes that add to
/// it only timers and files in /proc may use it, no embedded C of the script, and no condition: each probe that adds to it
/// would evaluate that. `watched`: what conditions read. `limits`: of the module.
pub(super) fn shares(
    program: &Program,
    handlers: &[Uses],
    watched: &BTreeSet<GlobalId>,
    limits: &Limits,
) -> Vec<PerCpu> {
    let mut counted = vec![false; program.globals.len()];
    let mut other = vec![false; program.globals.len()];
    for (probe, uses) in program.probes.iter().zip(handlers) {
        for (global, &access) in uses {
            match access {
                _ if is_serial(&probe.attachment) => {}
                Access::Feed => counted[global.index()] = true,
                _ if probe.attachment.mechanism.runs == Runs::Rarely => {}
                _ => other[global.index()] = true,
            }
        }
    }
    for global in embedded_globals(program).chain(watched.iter().copied()) {
        other[global.index()] = true;
    }
    let mut next = 0..;
    let of = |(index, global): (usize, &Global)| {
        if !counted[index] || other[index] || global.contents != Contents::Value(Type::Long) {
            PerCpu::None
        } else if !global.is_array() {
            next.next().map_or(PerCpu::None, PerCpu::Counter)
        } else if !limits.whole_locks && global.size.unwrap_or(limits.map_entries) <= MOST_COUNTED {
            PerCpu::Array
        } else {
            PerCpu::None
        }
    };
    program.globals.iter().enumerate().map(of).collect()
}

/// Globals that embedded C of the script declares as used.
fn embedded_globals(program: &Program) -> impl Iterator<Item = GlobalId> {
    let mut found = Vec::new();
    let summaries = CodeSummary::of_functions(program)
        .into_iter()
        .chain(program.probes.iter().map(|probe| CodeSummary::of(&probe.body)));
    summaries.for_each(|summary| found.extend(summary.embedded));
    found.into_iter()
}

/// By global: whether armed probes use it in ways that need exclusion. `sorted`: arrays of aggregates that are changed by
/// reading them.
pub(super) fn contended(
    program: &Program,
    handlers: &[Uses],
    shares: &[PerCpu],
    sorted: &BTreeSet<GlobalId>,
) -> Vec<bool> {
    let mut strongest: Vec<Option<Access>> = vec![None; program.globals.len()];
    for (probe, uses) in program.probes.iter().zip(handlers) {
        if is_serial(&probe.attachment) {
            continue;
        }
        for (global, &access) in uses {
            let before = &mut strongest[global.index()];
            *before = Some(match *before {
                // Some read and some feed: that needs exclusion.
                Some(before) if before != access => Access::Write,
                _ => access,
            });
        }
    }
    strongest
        .into_iter()
        .zip(program.globals.iter().zip(shares).zip(0..))
        .map(|(access, ((global, &shares), index))| match access {
            None => false,
            Some(Access::Read) => sorted.contains(&GlobalId(index)),
            Some(Access::Feed) => !is_per_cpu(global, shares),
            Some(Access::Write) => true,
        })
        .collect()
}

/// By global: whether single accesses suffice for it, without a lock. That is a contended number that is read or written by
/// one load or store, such that no run of an armed probe accesses more than one of them, and that one once. Each such run
/// has a moment at which it does, within the time for which it holds its locks; so the result is as if runs came one after
/// the other, in the order of these moments. `runs`: what each run accesses, with its probe. `watched`: what conditions
/// read, which take their locks when they look.
pub(super) fn single_access(
    program: &Program,
    runs: &[(&Attachment, AccessCounts)],
    contended: &[bool],
    watched: &BTreeSet<GlobalId>,
) -> Vec<bool> {
    let mut single: Vec<bool> = program.globals.iter().map(|global| global.scalar() == Some(Type::Long)).collect();
    single.iter_mut().zip(contended).for_each(|(single, &contended)| *single &= contended);
    watched.iter().for_each(|global| single[global.index()] = false);
    let armed = || runs.iter().filter(|(attachment, _)| !is_serial(attachment)).map(|(_, accesses)| accesses);
    for (global, _) in armed().flatten().filter(|(_, times)| **times > 1) {
        single[global.index()] = false;
    }
    // Of two in one run the first keeps single access.
    for accesses in armed() {
        let more: Vec<GlobalId> = accesses.keys().copied().filter(|global| single[global.index()]).skip(1).collect();
        more.iter().for_each(|global| single[global.index()] = false);
    }
    single
}

/// Input for the decision which arrays are striped.
pub(super) struct Striping<'a> {
    /// By probe: what runs at its function's entry.
    pub entry_uses: &'a [Uses],
    /// By global.
    pub contended: &'a [bool],
    /// By global.
    pub shares: &'a [PerCpu],
    /// What conditions read, which are evaluated without a handler.
    pub watched: &'a BTreeSet<GlobalId>,
    /// `-D WHOLE_LOCKS`.
    pub whole_locks: bool,
}

/// Which arrays are striped.
pub(super) struct Striped {
    /// By global: whether it is an array with a lock for each stripe; if it needs a lock and is not striped, why.
    pub arrays: Vec<Result<(), Reason>>,
    /// Those arrays, in the order in which handlers take them.
    pub order: Vec<GlobalId>,
}

/// Most elements whose stripes a handler holds (SPILE_MOST_HELD of script.h).
const MOST_HELD: usize = 16;

/// Most arrays that a handler takes as a whole (bits of a word).
const MOST_WHOLE: usize = 64;

/// Which arrays have a lock for each stripe. A handler holds the stripes of the few elements that it uses, or all stripes, to its
/// end, and needs no other lock of the array. Timers and files in /proc take all stripes of all arrays that they use. That is
/// two-phase locking, so the result is as if runs came one after the other.
///
/// Taking all stripes is more expensive than one lock, so an array is striped if there are handlers that use a few elements, and
/// no more that need all of it whenever they run. `holds`: by probe, how it would take stripes; changed where what a key depends
/// on is taken later.
pub(super) fn striped(program: &Program, of: &Striping, holds: &mut [Holds]) -> Striped {
    let embedded: BTreeSet<GlobalId> = embedded_globals(program).collect();
    let frequent: Vec<usize> =
        (0..program.probes.len()).filter(|&probe| is_frequent(&program.probes[probe].attachment)).collect();
    let fits = |(index, global): (usize, &Global)| {
        let id = GlobalId(index as u32);
        let is_array = global.is_array() && matches!(global.contents, Contents::Value(_));
        let enters = |probe: &usize| of.entry_uses[*probe].contains_key(&id);
        if !is_array || !of.contended[index] || of.shares[index] != PerCpu::None {
            Err(Reason::Rare)
        } else if of.whole_locks {
            Err(Reason::Asked)
        } else if of.watched.contains(&id) {
            Err(Reason::Condition)
        } else if embedded.contains(&id) {
            Err(Reason::Embedded)
        } else if let Some(&probe) = frequent.iter().find(|probe| enters(probe)) {
            Err(Reason::Entry(probe))
        } else {
            Ok(())
        }
    };
    let mut striped: Vec<Result<(), Reason>> = program.globals.iter().enumerate().map(fits).collect();
    loop {
        let mut changed = false;
        for (index, striped) in striped.iter_mut().enumerate().filter(|(_, striped)| striped.is_ok()) {
            *striped = worth_striping(GlobalId(index as u32), &frequent, holds);
            changed |= striped.is_err();
        }
        for &probe in &frequent {
            changed |= take_whole_before_needed(&mut holds[probe], &striped);
            changed |= limit_held(probe, &holds[probe], &mut striped);
        }
        let arrays = (0..striped.len()).filter(|&index| striped[index].is_ok()).map(|index| GlobalId(index as u32));
        match holds::order(holds, &arrays.collect()) {
            Ok(order) if !changed => return Striped { arrays: striped, order },
            Ok(_) => {}
            Err((array, probe)) => striped[array.index()] = Err(Reason::Order(probe)),
        }
    }
}

/// Whether handlers gain by stripes of the array.
fn worth_striping(array: GlobalId, frequent: &[usize], holds: &[Holds]) -> Result<(), Reason> {
    let of = |&probe: &usize| holds[probe].get(&array).map(|hold| (probe, hold));
    let (mut single, mut always, mut reason) = (0, 0, None);
    for (probe, hold) in frequent.iter().filter_map(of) {
        match hold.what {
            Ok(_) => single += 1,
            Err(why) => {
                always += i32::from(!hold.conditional);
                reason = reason.or(Some(Reason::Handler(probe, why)));
            }
        }
    }
    match reason {
        None if single == 0 => Err(Reason::Rare),
        Some(reason) if single == 0 || always > single => Err(reason),
        _ => Ok(()),
    }
}

/// Where the keys of an array depend on one that the handler takes later, it takes all of the former. Whether there is any.
fn take_whole_before_needed(holds: &mut Holds, striped: &[Result<(), Reason>]) -> bool {
    let is_later = |(array, hold): (&GlobalId, &Hold)| {
        let mut others = holds::needed(hold).into_iter().filter(|other| striped[other.index()].is_ok());
        let later = others.any(|other| holds.get(&other).is_none_or(|before| before.position > hold.position));
        (striped[array.index()].is_ok() && later).then_some(*array)
    };
    let later: Vec<GlobalId> = holds.iter().filter_map(is_later).collect();
    for array in &later {
        if let Some(hold) = holds.get_mut(array) {
            hold.what = Err(WholeArray::Computed(hold.before.map_or(Span::none(), |statement| statement.span)));
        }
    }
    !later.is_empty()
}

/// Locks arrays as a whole of which the handler would use too many elements. Whether there is any.
fn limit_held(probe: usize, holds: &Holds, striped: &mut [Result<(), Reason>]) -> bool {
    let (mut held, mut whole, mut changed) = (0, 0, false);
    for (array, hold) in holds {
        if striped[array.index()].is_err() {
            continue;
        }
        match &hold.what {
            Ok(elements) => held += elements.len(),
            Err(_) => whole += 1,
        }
        if held > MOST_HELD || whole > MOST_WHOLE {
            striped[array.index()] = Err(Reason::TooMany(probe));
            changed = true;
            held -= hold.what.as_ref().map_or(0, Vec::len);
        }
    }
    changed
}

/// How handlers exclude each other from an array; `striped`: the result of [`striped`]; `whole`: the first probe whose handler
/// then takes all of it, and why.
pub(super) fn locking(
    global: &Global,
    shares: PerCpu,
    contended: bool,
    striped: &Result<(), Reason>,
    whole: Option<(usize, WholeArray)>,
) -> Locking {
    match striped {
        _ if is_per_cpu(global, shares) => Locking::EachCpu,
        _ if !contended => Locking::None,
        Ok(()) => Locking::Striped(locking::stripes(global.wrap), whole),
        Err(reason) => Locking::Whole(reason.clone()),
    }
}

/// Whether the probe may be hit often, and concurrently with others.
pub(super) fn is_frequent(attachment: &Attachment) -> bool {
    !is_serial(attachment) && attachment.mechanism.runs != Runs::Rarely
}

/// By global: the index of its lock, None if it needs none. Those of striped arrays come last, in their order: handlers take
/// stripes after their other locks.
pub(super) fn locks(contended: &[bool], single_access: &[bool], striped: &[GlobalId]) -> Vec<Option<u32>> {
    let mut locks = vec![None; contended.len()];
    let others = (0..contended.len()).map(|index| GlobalId(index as u32)).filter(|id| !striped.contains(id));
    let needing = others.filter(|id| contended[id.index()] && !single_access[id.index()]);
    for (global, lock) in needing.chain(striped.iter().copied()).zip(0..) {
        locks[global.index()] = Some(lock);
    }
    locks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Label, Mechanism, Place, Probe, Target, TargetId};
    use spile_source::Span;

    fn span() -> Span {
        Span::none()
    }

    fn program(attachments: Vec<Attachment>) -> Program {
        let probe = |attachment| Probe {
            point: String::new(),
            script_point: String::new(),
            function: String::new(),
            module: String::new(),
            attachment,
            locals: Vec::new(),
            saved: Vec::new(),
            body: Vec::new(),
            span: span(),
        };
        let global = Global {
            name: "n".into(),
            contents: Contents::Value(Type::Long),
            keys: Vec::new(),
            size: None,
            wrap: false,
            initial: None,
            span: span(),
        };
        let target = Target { name: String::new(), build_id: Vec::new(), build_id_address: None, path: String::new() };
        Program {
            globals: vec![global],
            probes: attachments.into_iter().map(probe).collect(),
            targets: vec![target],
            ..Program::default()
        }
    }

    /// Which globals need no lock if runs of armed probes access them this often.
    fn single(runs: &[&[(u32, u8)]], watched: &[u32]) -> Vec<bool> {
        let mut program = program(Vec::new());
        program.globals = vec![program.globals[0].clone(); 3];
        let entry = entry();
        let runs: Vec<_> =
            runs.iter().map(|run| (&entry, run.iter().map(|&(id, times)| (GlobalId(id), times)).collect())).collect();
        single_access(&program, &runs, &[true; 3], &watched.iter().map(|&id| GlobalId(id)).collect())
    }

    #[test]
    fn each_run_touches_one_of_them_once() {
        assert_eq!(single(&[&[(0, 1)], &[(0, 1)], &[(1, 1)], &[(2, 1)]], &[]), [true, true, true]);
        assert_eq!(single(&[&[(0, 1)], &[(0, 2)], &[(1, 1), (2, 1)]], &[]), [false, true, false]);
        assert_eq!(single(&[&[(0, 1)], &[(1, 1)]], &[1]), [true, false, true]);
    }

    #[test]
    fn only_contended_numbers_are_accessed_singly() {
        let mut program = program(vec![entry()]);
        let run = || vec![(&program.probes[0].attachment, AccessCounts::from([(GlobalId(0), 1)]))];
        assert_eq!(single_access(&program, &run(), &[false], &BTreeSet::new()), [false]);
        assert_eq!(single_access(&program, &run(), &[true], &BTreeSet::new()), [true]);
        program.globals[0].contents = Contents::Value(Type::String);
        let run = vec![(&program.probes[0].attachment, AccessCounts::from([(GlobalId(0), 1)]))];
        assert_eq!(single_access(&program, &run, &[true], &BTreeSet::new()), [false]);
    }

    /// Whether the one global is a counter, and whether it has a lock.
    fn planned(probes: Vec<(Attachment, Access)>) -> (bool, bool) {
        planned_of(probes, &BTreeSet::new(), &BTreeSet::new())
    }

    fn planned_of(
        probes: Vec<(Attachment, Access)>,
        watched: &BTreeSet<GlobalId>,
        sorted: &BTreeSet<GlobalId>,
    ) -> (bool, bool) {
        let (attachments, accesses): (Vec<_>, Vec<_>) = probes.into_iter().unzip();
        let program = program(attachments);
        let uses: Vec<Uses> = accesses.into_iter().map(|access| Uses::from([(GlobalId(0), access)])).collect();
        let shares = shares(&program, &uses, watched, &Limits::default());
        let locks = locks(&contended(&program, &uses, &shares, sorted), &[false], &[]);
        (shares[0] != PerCpu::None, locks[0].is_some())
    }

    static ENTRY: Mechanism = Mechanism::new("SPILE_PROBE_KPROBE", Label::Function);
    static TIMER: Mechanism =
        Mechanism { runs: Runs::Rarely, ..Mechanism::new("SPILE_PROBE_TIMER", Label::Word("timer")) };
    static END: Mechanism = Mechanism { runs: Runs::Alone, ..Mechanism::new("SPILE_PROBE_END", Label::Word("end")) };

    fn entry() -> Attachment {
        Attachment::new(&ENTRY).at(Place { target: TargetId(0), symbol: None, address: 16 })
    }

    fn timer() -> Attachment {
        Attachment::new(&TIMER)
    }

    #[test]
    fn what_is_only_added_to_is_a_counter() {
        assert_eq!(planned(vec![(entry(), Access::Feed), (Attachment::new(&END), Access::Write)]), (true, false));
        // A timer that prints or resets it waits for the probes that add to it.
        assert_eq!(planned(vec![(entry(), Access::Feed), (timer(), Access::Read)]), (true, true));
        assert_eq!(planned(vec![(entry(), Access::Feed), (timer(), Access::Write)]), (true, true));
        // Reading is expensive, so it is not allowed where it may be frequent.
        assert_eq!(planned(vec![(entry(), Access::Feed), (entry(), Access::Read)]), (false, true));
        assert_eq!(planned(vec![(entry(), Access::Write)]), (false, true));
        assert_eq!(planned(vec![(entry(), Access::Read)]), (false, false));
    }

    #[test]
    fn what_a_condition_reads_is_no_counter() {
        let feeds = || vec![(entry(), Access::Feed), (timer(), Access::Read)];
        let watched = BTreeSet::from([GlobalId(0)]);
        assert_eq!(planned_of(feeds(), &watched, &BTreeSet::new()), (false, true));
    }

    #[test]
    fn sorting_by_results_needs_exclusion() {
        let sorted = BTreeSet::from([GlobalId(0)]);
        assert_eq!(planned_of(vec![(entry(), Access::Read)], &BTreeSet::new(), &sorted), (false, true));
        let alone = vec![(Attachment::new(&END), Access::Read)];
        assert_eq!(planned_of(alone, &BTreeSet::new(), &sorted), (false, false));
    }
}
