// SPDX-License-Identifier: GPL-2.0-or-later

//! Pass 3: the plan of a program, and its C text. A plan that needs more memory than a CPU can have is refused.

use spile_core::emit::{self, Form, Units};
use spile_core::plan::locking::{Locking, Reason};
use spile_core::plan::{self, ModuleInfo, Plan};
use spile_core::program::Program;
use spile_core::program::element_uses::WholeArray;
use spile_source::SourceMap;

use crate::reporter::{Failed, Reporter, count};
use crate::session::Session;

/// The plan. If stacks are used as values, strings are as long as they require.
pub fn plan(session: &mut Session, program: &Program, info: ModuleInfo) -> Result<Plan, Failed> {
    let plan = planned(session, program, info)?;
    refuse_too_large(&session.reporter, &plan)?;
    Ok(plan)
}

fn planned(session: &mut Session, program: &Program, mut info: ModuleInfo) -> Result<Plan, Failed> {
    let plan = plan_once(session, program, info.clone())?;
    let fixed = session.options.script.defines.iter().any(|define| define.split('=').next() == Some("MAXSTRINGLEN"));
    let Some(sizes) = plan::stored_stacks::sizes(&plan, fixed) else { return Ok(plan) };
    if sizes.cuts() {
        session.reporter.warn(&format!(
            "a stack that is a key or a value has room for {} frames, deeper ones lose the outermost: -DMAXSTRINGLEN={} holds all",
            sizes.frames, sizes.whole
        ));
    }
    if sizes.string_bytes == info.limits.string_bytes {
        return Ok(plan);
    }
    info.limits.string_bytes = sizes.string_bytes;
    if let Some((slot_bytes, kept_bytes)) = sizes.kept {
        info.limits.slot_bytes = Some(slot_bytes);
        info.limits.kept_bytes = Some(kept_bytes);
    }
    plan_once(session, program, info)
}

fn plan_once(session: &Session, program: &Program, info: ModuleInfo) -> Result<Plan, Failed> {
    plan::plan(program, &session.sources, info).map_err(|error| {
        let note = "this is a bug in spile, not in the script: please report it with the script";
        let message = format!("{error} at {}", session.sources.place(error.span));
        session.reporter.fail(message, &[note.to_string()])
    })
}

/// The C text of a plan.
pub fn emit(reporter: &Reporter, plan: &Plan, form: Form) -> Result<Units, Failed> {
    emit::emit(plan, form).map_err(|error| reporter.error(format!("translating the script: {error}")))
}

/// Fails if the memory that handlers need on each CPU is more than a CPU can have.
pub fn refuse_too_large(reporter: &Reporter, plan: &Plan) -> Result<(), Failed> {
    if plan.frame_bytes > plan::frame::MOST {
        let size = |routine: &&plan::code::Routine| plan::frame::size(routine, plan.info.limits.string_bytes);
        let largest = plan.routines.iter().max_by_key(size);
        let most = largest.map_or(0, |routine| size(&routine));
        let what = largest.and_then(|routine| routine.comment.lines().next()).unwrap_or("a handler");
        let message = format!(
            "the script needs {} MiB of memory on each CPU for its strings and for what foreach sorts, and may use {}: {what} needs {}",
            plan.frame_bytes >> 20,
            plan::frame::MOST >> 20,
            mebibytes(most)
        );
        let help = "a foreach that sorts, or takes a slice, has 4 bytes for each element that its array can hold: smaller arrays or fewer loops take less";
        let limits = "so does a smaller MAXMAPENTRIES, MAXSTRINGLEN or MAXNESTING (-D)";
        return Err(reporter.fail_as("E0504", message, &[help.to_string(), limits.to_string()]));
    }
    if u64::from(plan.scratch_bytes) > plan::frame::MOST {
        let message = format!(
            "what sprintf() prints can take {} of memory on each CPU, and may take {} MiB",
            mebibytes(plan.scratch_bytes.into()),
            plan::frame::MOST >> 20
        );
        let help = "print less of an object at once (-D STRUCT_DEPTH), or have a smaller MAXSTRINGLEN (-D)";
        return Err(reporter.fail_as("E0504", message, &[help.to_string()]));
    }
    let saved = plan.probes.iter().max_by_key(|probe| probe.entry_bytes);
    if let Some(probe) = saved.filter(|probe| u64::from(probe.entry_bytes) > plan::frame::MOST_SAVED) {
        let message = format!(
            "{} saves {} bytes at each entry, and may save {}",
            probe.point,
            probe.entry_bytes,
            plan::frame::MOST_SAVED
        );
        let help = "fewer @entry() of strings, or a smaller MAXSTRINGLEN (-D), take less";
        return Err(reporter.fail_as("E0504", message, &[help.to_string()]));
    }
    Ok(())
}

/// With `-v`: the memory that arrays take, on a small and on a large machine.
pub fn report_memory(reporter: &Reporter, plan: &Plan) {
    let bytes = plan::memory::of(plan);
    if bytes == plan::memory::Bytes::default() {
        return;
    }
    reporter.detail(|| {
        let [small, large, more] =
            [bytes.on(2), bytes.on(256), bytes.more_for_a_cpu()].map(|bytes| bytes.div_ceil(1024));
        let start = format!("Arrays take {small} KiB on 2 CPUs, {large} KiB on 256");
        match more {
            0 => format!("{start}."),
            more => format!("{start}; each CPU takes up to {more} KiB more as it uses them."),
        }
    });
}

/// With `-v`: how arrays are locked, and why some are as a whole.
pub fn report_locks(reporter: &Reporter, sources: &SourceMap, plan: &Plan) {
    for (array, locking) in &plan.locking {
        reporter.detail(|| {
            let how = match locking {
                Locking::None => "no lock: nothing changes it while probes are armed".into(),
                Locking::EachCpu => "values on each CPU".into(),
                Locking::Striped(stripes, None) => format!("a lock for each of {stripes} stripes"),
                Locking::Striped(stripes, Some((probe, more))) => {
                    format!(
                        "a lock for each of {stripes} stripes; all of them where {}",
                        uses(sources, plan, *probe, more)
                    )
                }
                Locking::Whole(reason) => format!("one lock for all of it: {}", why(sources, plan, reason)),
            };
            format!("Array {array}: {how}.")
        });
    }
}

/// Why an array has one lock.
fn why(sources: &SourceMap, plan: &Plan, reason: &Reason) -> String {
    let probe = |index: usize| plan.probes.get(index).map_or("", |probe| probe.point.as_str());
    match reason {
        Reason::Asked => "-D WHOLE_LOCKS".into(),
        Reason::Condition => "the condition of a probe point reads it".into(),
        Reason::Embedded => "C of the script uses it".into(),
        Reason::Rare => "only timers and files in /proc use it".into(),
        Reason::Entry(index) => format!("{} uses it at its function's entry (@entry)", probe(*index)),
        Reason::TooMany(index) => format!("{} uses more than 16 elements of arrays with stripes", probe(*index)),
        Reason::Order(index) => {
            format!("{} takes it after an array that other handlers take before it", probe(*index))
        }
        Reason::Handler(index, more) => uses(sources, plan, *index, more),
    }
}

/// What the handler of the probe does with an array besides using single elements.
fn uses(sources: &SourceMap, plan: &Plan, probe: usize, more: &WholeArray) -> String {
    let (what, span) = match more {
        WholeArray::Whole(span) => ("uses more than single elements", Some(*span)),
        WholeArray::Computed(span) => ("uses a key that is not known before it does something else", Some(*span)),
        WholeArray::Another(span) => ("uses a fifth element", Some(*span)),
        WholeArray::Called(span) => {
            ("calls a function that uses more of it than an element with keys known then", Some(*span))
        }
        WholeArray::Registers => ("may change registers, of which its keys are made", None),
    };
    let place = span.map(|span| format!(" at {}", sources.place(span))).unwrap_or_default();
    format!("{} {what}{place}", plan.probes.get(probe).map_or("", |probe| probe.point.as_str()))
}

/// `3 MiB`, `700 bytes`.
fn mebibytes(bytes: u64) -> String {
    if bytes < 1 << 20 { count(bytes as usize, "byte") } else { format!("{} MiB", bytes >> 20) }
}
