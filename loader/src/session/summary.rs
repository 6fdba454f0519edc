// SPDX-License-Identifier: GPL-2.0-or-later

//! Messages about a whole session: the module and its buffers at the start, event counts at the end.

use spile_abi::device::{Gate, Info, SUPPRESSED};

use crate::error::{Error, Exit};
use crate::host::name;
use crate::module::gate;
use crate::options::Options;
use crate::report;
use crate::report::account::{self, Form};
use crate::session::Subject;
use crate::session::dispatch::Dispatcher;
use crate::session::ending::Ending;

/// The module and its buffers (`-v`). `rings`: their number.
pub fn beginning(subject: &Subject<'_>, info: &Info, rings: usize, output: &mut Dispatcher) {
    let meta = &subject.description.meta;
    let guru = if meta.guru { ", guru mode" } else { "" };
    let (sites, size) = (meta.probes.len(), info.ring_bytes >> 10);
    let line = format!(
        "NOTICE: {} ({}{guru}) loaded: {sites} probes, {rings} buffers of {size} KB, {} KB in all",
        meta.name,
        meta.title,
        info.memory_bytes >> 10
    );
    output.sinks.message(&line);
}

/// Run-time errors and skipped probes. An error makes the session fail, unless it was suppressed.
pub fn errors(subject: &Subject<'_>, output: &mut Dispatcher, ending: &mut Ending) {
    match subject.device.info() {
        Ok(info) if info.errors > 0 || skipped(subject, &info) > 0 => {
            let skipped = skipped(subject, &info);
            output.warn(&format!("Number of errors: {}, skipped probes: {skipped}", info.errors));
            // An error that was not suppressed was reported, and has failed the session.
            let failed = info.errors > 0 && info.flags & SUPPRESSED == 0;
            if failed && ending.exit == Exit::Success {
                ending.exit = Exit::Failed;
            }
        }
        Ok(_) => {}
        Err(error) => ending.fail(error),
    }
}

/// As staprun counts them, returns that could not be probed are among them. Ours have a line of their own.
fn skipped(subject: &Subject<'_>, info: &Info) -> u64 {
    let probes = subject.description.meta.probes.len() as u32;
    let returns = match name::is_staprun() {
        true => subject.device.counters(probes).unwrap_or_default().iter().map(|counters| counters.return_misses).sum(),
        false => 0,
    };
    u64::from(info.skipped).saturating_add(returns)
}

/// The script's writes, done or not, if they were restricted, or with `-v`.
pub fn rewrites(subject: &Subject<'_>, options: &Options, output: &mut Dispatcher) {
    let Ok(state) = subject.device.gate() else { return };
    if state.counts.iter().any(|count| *count > 0) && (state.gate != Gate::default() || options.verbose) {
        output.sinks.message(&format!("REWRITE: {} in all: {}", subject.name, gate::counts(&state)));
    }
}

/// The hits of the probes: missed ones, all of each probe (`-v`), and the table of `--stats`.
pub fn probes(subject: &Subject<'_>, options: &Options, output: &mut Dispatcher) -> Result<(), Error> {
    let probes = &subject.description.meta.probes;
    let counters = subject.device.counters(probes.len() as u32)?;
    if options.verbose {
        for (probe, counters) in probes.iter().zip(&counters) {
            output.sinks.message(&format!("NOTICE: {}", report::account(probe, counters)));
        }
    }
    // staprun has only the number of all, above.
    if let Some(line) = account::missed(&counters).filter(|_| !name::is_staprun()) {
        output.warn(&line);
    }
    match options.stats {
        None => {}
        Some(Form::Json) => output.sinks.message(&account::json(probes, &counters)),
        Some(Form::Table) => output.sinks.table(&account::table(probes, &counters)),
        Some(Form::Report) => output.sinks.print(account::report(probes, &counters).as_bytes()),
    }
    Ok(())
}
