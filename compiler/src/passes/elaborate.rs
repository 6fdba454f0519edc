// SPDX-License-Identifier: GPL-2.0-or-later

//! Pass 2: the meaning of the scripts' names and probe points on one kernel.

use std::collections::BTreeSet;
use std::path::Path;

use spile_core::builtin::Builtin;
use spile_core::elaborate;
use spile_core::probe::{self, Resolver};
use spile_core::program::uses::CodeSummary;
use spile_core::program::{Contents, Function, Global, GlobalId, Local, Probe, Program, Type};
use spile_debuginfo::target::{Kernel, Programs};
use spile_syntax::ast;

use super::headers;
use crate::cli::options::Options;
use crate::own_process::own_process;
use crate::reporter::{Failed, count};
use crate::session::Session;

/// Options for pass 2.
pub fn options(session: &Session) -> elaborate::Options {
    let options = &session.options;
    // SANITY: errors in them have been reported before.
    let limits = options.script.limits().map(|(limits, _)| limits).unwrap_or_default();
    elaborate::Options {
        guru: options.script.guru,
        privilege: options.build.privilege(),
        display_globals: !options.script.no_global_var_display,
        unoptimised: options.script.unoptimised,
        skip_bad_variables: options.script.skip_badvars,
        struct_depth: limits.struct_depth,
        counts_only: limits.counts_only,
        offered: session.offered.clone(),
    }
}

/// Answers for probe points about `kernel`, the files of `-d`, and programs.
pub fn resolver<'k>(
    options: &Options,
    kernel: Option<&'k Kernel>,
    release: &str,
    programs: &'k Programs,
) -> Resolver<'k> {
    let any_caller =
        options.script.defines.iter().any(|define| define.split('=').next() == Some("STAP_CALLEE_MATCHALL"));
    let own = own_process(options, programs);
    Resolver::new(kernel, release).with_any_caller(any_caller).with_programs(programs, own)
}

/// Fails if probes are in the middle of code: an index does not know the locations of variables there.
pub fn refuse_unknown_places(
    session: &Session,
    program: &Program,
    kernel: &Kernel,
    index: &Path,
) -> Result<(), Failed> {
    let points = probe::fingerprint::unknown_places(program, kernel);
    let Some(first) = points.first() else { return Ok(()) };
    let more = if points.len() > 1 { format!(" and {} more", points.len() - 1) } else { String::new() };
    let message = format!(
        "{first}{more}: {} does not have where this line's code is, and where variables are there",
        index.display()
    );
    let help =
        "compile it where the debug information is; an index has functions, inlined copies, returns, labels and calls";
    Err(session.reporter.fail(message, &[help.to_string()]))
}

/// The resolved program. Warnings are recorded, for a later run that takes the module from the cache.
pub fn elaborate(
    session: &mut Session,
    scripts: &[ast::Script],
    kernel: Option<&Kernel>,
    release: &str,
    programs: &Programs,
) -> Result<Program, Failed> {
    let options = options(session);
    let headers = headers::wanted(scripts);
    // The compiled headers are read until the end of this pass.
    let place = if headers.is_empty() { None } else { Some(session.scratch()?) };
    let headers = place.as_ref().map(|place| headers::compile(&headers, place.path())).unwrap_or_default();
    session.inputs.extend(headers.inputs);
    let mut resolver =
        resolver(&session.options, kernel, release, programs).with_guru(options.guru).with_headers(headers.objects);
    let (mut program, problems) = elaborate::elaborate(&session.sources, scripts, &options, &mut resolver);
    session.reporter.record(&session.sources, &problems);
    session.reporter.diagnose(&session.sources, "Pass 2: analysis", &problems)?;
    session.reporter.left_out(&program.left_out);
    if program.probes.is_empty() {
        let failed = session.reporter.fail_as("E0165", "no probes found", &["the script has none".to_string()]);
        session.reporter.remark("Pass 2: analysis failed.");
        return Err(failed);
    }
    if let Some(kernel) = kernel.filter(|_| options.guru) {
        let fingerprints = probe::fingerprint::fingerprints(&program, kernel);
        program.fingerprints = fingerprints.taken;
        if fingerprints.left_out > 0 {
            session.reporter.warn(&format!(
                "before the script is armed the code of its functions is compared with what it was compiled for, but not that of {} of them: together they have more than {} bytes",
                fingerprints.left_out,
                probe::fingerprint::MOST
            ));
        }
    }
    Ok(program)
}

/// What the program uses, for lists and counts.
pub struct Used {
    /// Of the program's globals: those that a probe or function uses.
    globals: BTreeSet<GlobalId>,
    /// The signatures of the builtins that scripts can call.
    builtins: BTreeSet<String>,
}

impl Used {
    /// With `unoptimised` (`-u`) all globals are in use.
    pub fn of(program: &Program, unoptimised: bool) -> Used {
        let handlers = program
            .probes
            .iter()
            .flat_map(|probe| [CodeSummary::of(&probe.body), CodeSummary::of_values(&probe.saved)]);
        let mut used = Used { globals: BTreeSet::new(), builtins: BTreeSet::new() };
        for summary in handlers.chain(CodeSummary::of_functions(program)) {
            used.globals.extend(summary.uses.keys().copied().chain(summary.embedded));
            let public = summary.builtins.into_values().filter(|builtin| !builtin.name.starts_with('_'));
            used.builtins.extend(public.map(Builtin::signature));
        }
        // C between the functions names what it uses nowhere.
        if unoptimised || !program.embedded.is_empty() {
            used.globals = (0..program.globals.len() as u32).map(GlobalId).collect();
        }
        used
    }

    /// `1 function, 0 embeds, 2 globals`: as in stap, with the library's functions.
    pub fn counts(&self, program: &Program) -> String {
        [
            count(program.functions.len() + self.builtins.len(), "function"),
            count(program.embedded.len(), "embed"),
            count(self.globals.len(), "global"),
        ]
        .join(", ")
    }
}

/// The lines of `-p2`: globals, functions and probes with their types.
pub fn described(program: &Program, unoptimised: bool) -> Vec<String> {
    let used = Used::of(program, unoptimised);
    let mut lines = Vec::new();
    let mut section = |title: &str, items: Vec<String>| {
        if !items.is_empty() {
            lines.push(format!("# {title}"));
            lines.extend(items);
        }
    };
    let is_used = |index: &usize| used.globals.contains(&GlobalId(*index as u32));
    let globals = program.globals.iter().enumerate().filter(|(index, _)| is_used(index));
    section("globals", globals.map(|(_, global)| described_global(global)).collect());
    let functions = used.builtins.into_iter().chain(program.functions.iter().flat_map(described_function));
    section("functions", functions.collect());
    section("probes", listed_probes(program).flat_map(described_probe).collect());
    lines
}

/// The probes that were written. Where a process or a thread begins, one has several places, which follow each other.
pub fn listed_probes(program: &Program) -> impl Iterator<Item = &Probe> {
    let before = std::iter::once(None).chain(program.probes.iter().map(Some));
    let is_same = |probe: &Probe, before: Option<&Probe>| {
        probe.point.ends_with(".begin")
            && before.is_some_and(|before| before.point == probe.point && before.span == probe.span)
    };
    program.probes.iter().zip(before).filter(move |(probe, before)| !is_same(probe, *before)).map(|(probe, _)| probe)
}

fn described_global(global: &Global) -> String {
    let holds = match global.contents {
        Contents::Value(ty) => ty.name(),
        Contents::Stats(_) => "stats",
    };
    let keys: Vec<&str> = global.keys.iter().map(|key| key.name()).collect();
    let keys = if keys.is_empty() { String::new() } else { format!(" [{}]", keys.join(", ")) };
    let wrap = if global.wrap { "%" } else { "" };
    let size = global.size.map_or(String::new(), |size| format!("[{size}]"));
    format!("{}{wrap}{size}:{holds}{keys}", global.name)
}

fn described_function(function: &Function) -> Vec<String> {
    let (parameters, locals) = function.locals.split_at(function.parameters.min(function.locals.len()));
    let parameters: Vec<String> = parameters.iter().map(typed).collect();
    let returns = function.returns.map_or("unknown", Type::name);
    with_locals(format!("{}:{returns} ({})", function.name, parameters.join(", ")), locals)
}

fn described_probe(probe: &Probe) -> Vec<String> {
    with_locals(format!("{} /* <- {} */", probe.point, probe.script_point), &probe.locals)
}

fn typed(local: &Local) -> String {
    format!("{}:{}", local.name, local.ty.name())
}

/// The line, and those of the local variables.
fn with_locals(line: String, locals: &[Local]) -> Vec<String> {
    let title = if locals.is_empty() { None } else { Some("  # locals".to_string()) };
    let locals = locals.iter().map(|local| format!("  {}", typed(local)));
    std::iter::once(line).chain(title).chain(locals).collect()
}
