// SPDX-License-Identifier: GPL-2.0-or-later

//! Compiles a script, up to the pass of `-p`, and says how to run it.

use std::ffi::OsString;
use std::path::PathBuf;

use spile_abi::escape;
use spile_base::cache::Cache;
use spile_core::emit::{Form, Units};
use spile_core::plan::{ModuleInfo, Plan};
use spile_core::program::Program;
use spile_debuginfo::target::Kernel;
use spile_kbuild::Built;
use spile_kbuild::finished::{self, CachedModule};
use spile_syntax::{self as syntax, ast};

use super::{Job, guest};
use crate::cli::clock::{Clock, memory};
use crate::cli::limits;
use crate::cli::options::{INPUT, Options};
use crate::outcome::{Outcome, Run};
use crate::passes::module::{self, Name};
use crate::passes::{compile, debug_info, elaborate, translate};
use crate::reporter::{Failed, count, print_lines, print_text};
use crate::session::Session;
use crate::target::Target;

/// Passes 2 to 4 for `scripts`, the result of pass 1, or the module from the cache; then what remains of pass 5.
pub(super) fn compile(session: &mut Session, job: Job, scripts: &[ast::Script]) -> Result<Outcome, Failed> {
    refuse_empty(session, &job, scripts)?;
    if job.last_pass == 1 {
        let names = [job.script.name()].into_iter().chain(session.options.script.more.iter().map(|_| INPUT.into()));
        let texts = scripts
            .iter()
            .zip(names)
            .map(|(script, name)| format!("# file {}\n{}", escape::line(&name), syntax::print::script(script)));
        return print_text(["# parse tree dump".to_string()].into_iter().chain(texts));
    }
    let Job { limits, defines, name, last_pass, target, script, .. } = job;
    if session.options.build.debug_info.is_some() && last_pass < 4 {
        return Err(session.reporter.usage(&format!("--debug-info is for a module, and -p{last_pass} makes none")));
    }
    let (kernel, release) = (target.kernel.as_ref(), target.release.as_str());
    let cache = session.cache();
    let title = module::title(&script);
    let numbered = name.is_none() && last_pass == 5;
    let key = (last_pass > 3).then(|| module::key(session, &target, &title, numbered)).flatten();
    let name = match name {
        Some(compiled) => Name { compiled, numbered },
        None => Name::from_contents(session, release, &limits, numbered),
    };
    let info = ModuleInfo {
        module: name.compiled.clone(),
        title,
        kernel_release: release.to_string(),
        guru: session.options.script.guru,
        privilege: session.options.build.privilege(),
        limits,
        modinfo: session.options.build.modinfo.clone(),
        defines,
    };

    let clock = Clock::start();
    let situation = module::situation(session);
    let found = key.as_ref().filter(|_| !session.options.build.keep);
    let found = found.and_then(|key| finished::find(&cache, key, &situation));
    if let Some(finished) = found {
        session.times.add("cached module", clock.elapsed());
        say_cached(session, &finished, &name, &clock);
        if let Some(directory) = session.options.build.debug_info.clone() {
            let program = pass_2(session, scripts, &target)?;
            let (mut plan, _) = pass_3(session, &program, info, compile::form(&session.options.build, last_pass))?;
            debug_info::write(session, &mut plan, &finished.module, &directory, &target, &cache)?;
        }
        return finish(session, finished, &name, last_pass, &target);
    }

    let program = pass_2(session, scripts, &target)?;
    if last_pass == 2 {
        return print_lines(elaborate::described(&program, session.options.script.unoptimised));
    }
    if let (Some(kernel), Some(index)) = (kernel, &session.options.kernel.index) {
        elaborate::refuse_unknown_places(session, &program, kernel, index)?;
    }

    let form = compile::form(&session.options.build, last_pass);
    let (mut plan, units) = pass_3(session, &program, info, form)?;
    if last_pass == 3 {
        return print_text([units.script].into_iter().chain(units.embedded));
    }
    warn_of_unused_defines(session, &plan);

    let built = pass_4(session, &mut plan, &units, &target, &cache, &name)?;
    let clock = Clock::start();
    let finished = module::finished(session, &built, counts(session, &program), &program)?;
    let looked = target.programs.looked();
    if let Some(key) = key.filter(|_| !looked.open) {
        let inputs = inputs(session, built, &program, &target);
        let on = finished::Dependencies { inputs, situation: module::depended(situation, &looked) };
        finished::keep(&cache, &key, &finished, on, &format!("{} for {release}", plan.info.title));
        session.reporter.cache_notices(&cache);
        session.times.add("keep", clock.elapsed());
    }
    if let Some(directory) = session.options.build.debug_info.clone() {
        debug_info::write(session, &mut plan, &finished.module, &directory, &target, &cache)?;
    }
    finish(session, finished, &name, last_pass, &target)
}

/// A script without probes, functions, globals and C is a mistake already in pass 1.
fn refuse_empty(session: &Session, job: &Job, scripts: &[ast::Script]) -> Result<(), Failed> {
    let given = 1 + session.options.script.more.len();
    if scripts.iter().take(given).any(|script| !script.items.is_empty()) {
        return Ok(());
    }
    let failed = session.reporter.error(format!("input file '{}' is empty", job.script.name()));
    session.reporter.remark("Pass 1: parse failed.");
    Err(failed)
}

/// Says that passes 2 to 4 were left out; called as `stap`, as it says so of each.
fn say_cached(session: &Session, finished: &CachedModule, name: &Name, clock: &Clock) {
    if !session.options.as_stap {
        let line = || format!("Pass 2-4: using cached module \"{}.ko\" in {}.", name.compiled, clock.times());
        return session.reporter.pass(line);
    }
    session
        .reporter
        .pass(|| format!("Pass 2: analyzed script: {} using {}, in {}.", finished.counts, memory(), clock.times()));
    for (pass, suffix) in [(3, "_src.c"), (4, ".ko")] {
        session.reporter.pass(|| format!("Pass {pass}: using cached {}{suffix}", name.compiled));
    }
}

/// `1 probe, 1 function, 0 embeds, 0 globals`.
fn counts(session: &Session, program: &Program) -> String {
    let probes = count(elaborate::listed_probes(program).count(), "probe");
    let used = elaborate::Used::of(program, session.options.script.unoptimised);
    format!("{probes}, {}", used.counts(program))
}

/// Pass 2: the scripts as a resolved program.
fn pass_2(session: &mut Session, scripts: &[ast::Script], target: &Target) -> Result<Program, Failed> {
    let kernel = target.kernel.as_ref();
    let clock = Clock::start();
    let progress = session.reporter.progress("reading debug information");
    let program = elaborate::elaborate(session, scripts, kernel, &target.release, &target.programs)?;
    drop(progress);
    session.times.add("elaborate", clock.elapsed());
    session.reporter.pass(|| {
        format!("Pass 2: analyzed script: {} using {}, in {}.", counts(session, &program), memory(), clock.times())
    });
    for remark in kernel.iter().flat_map(|kernel| kernel.remarks()) {
        session.reporter.detail(|| format!("NOTE: {remark}"));
    }
    Ok(program)
}

/// Pass 3: the program's plan and its C text.
fn pass_3(session: &mut Session, program: &Program, info: ModuleInfo, form: Form) -> Result<(Plan, Units), Failed> {
    let clock = Clock::start();
    let module = info.module.clone();
    let plan = translate::plan(session, program, info)?;
    let units = translate::emit(&session.reporter, &plan, form)?;
    session.times.add("translate", clock.elapsed());
    session.reporter.pass(|| {
        let what = match session.options.as_stap {
            true => format!("into \"{module}_src.c\""),
            false => format!("({} bytes)", units.script.len()),
        };
        format!("Pass 3: translated to C {what} using {}, in {}.", memory(), clock.times())
    });
    translate::report_memory(&session.reporter, &plan);
    translate::report_locks(&session.reporter, &session.sources, &plan);
    Ok((plan, units))
}

/// Pass 4: the C text as an object of the kernel.
fn pass_4(
    session: &mut Session,
    plan: &mut Plan,
    units: &Units,
    target: &Target,
    cache: &Cache,
    name: &Name,
) -> Result<Built, Failed> {
    let clock = Clock::start();
    let built = compile::compile(session, plan, units, target, cache)?;
    let notes = built.notes.join("; ");
    let apart = session.options.as_stap || notes.is_empty();
    session.reporter.pass(|| {
        let notes = if apart { String::new() } else { format!(" ({notes})") };
        format!("Pass 4: compiled C into \"{}.ko\" in {}{notes}.", name.compiled, clock.times())
    });
    if apart && !notes.is_empty() {
        session.reporter.detail(|| format!("Pass 4: {notes}."));
    }
    session.times.add("compile", clock.elapsed());
    for (stage, took) in &built.stages {
        session.times.add(format!("compile/{stage}"), *took);
    }
    Ok(built)
}

/// The files that the module depends on: the cache compares them.
fn inputs(session: &mut Session, built: Built, program: &Program, target: &Target) -> Vec<PathBuf> {
    let mut inputs = target.kernel.as_ref().map(Kernel::consulted).unwrap_or_default();
    inputs.append(&mut session.inputs);
    inputs.extend(built.inputs);
    inputs.extend(session.options.kernel.files());
    inputs.extend(program.targets.iter().map(|target| PathBuf::from(&target.path)));
    inputs.extend(target.programs.consulted());
    inputs
}

/// Names given by -D that are no limits, where no embedded C can use them.
fn warn_of_unused_defines(session: &Session, plan: &Plan) {
    if plan.embedded.is_empty() {
        for (name, _) in plan.info.defines.iter().filter(|(name, _)| !limits::is_of_systemtap(name)) {
            session.reporter.remark(&format!(
                "WARNING: -D {name}: no such limit, and the script has no C that could use it; there is {}",
                limits::NAMES
            ));
        }
    }
}

/// What remains to be done with a module, new or from the cache.
fn finish(
    session: &mut Session,
    mut finished: CachedModule,
    name: &Name,
    last_pass: u8,
    target: &Target,
) -> Result<Outcome, Failed> {
    let module = module::write(session, &mut finished, name, &target.build_dir())?;
    if last_pass == 4 {
        let path = module::deliver(session, &module)?;
        session.take_directory();
        return print_lines([path.display().to_string()]);
    }
    if session.options.build.save_module {
        module::deliver(session, &module)?;
    }
    session.reporter.pass(|| "Pass 5: starting run.".to_string());
    if session.options.run.guest {
        return guest::run(session, &module, &finished.modules, &target.release, Vec::new());
    }
    let live = guest::live(session, session.options.run.session.output.as_deref())?;
    let options = &session.options;
    let run = match options.as_stap && live.is_none() {
        true => Run::SessionProcess { words: loader_words(options, module), verbose: options.message.verbosity(5) > 0 },
        false => {
            let mut options = options.loader(module);
            if let Some(live) = &live {
                options.record = true;
                options.keeps_stdout = options.output.is_none();
                options.output = Some(live.path());
            }
            Run::Here { options: Box::new(options), live }
        }
    };
    Ok(Outcome::Run { run, directory: session.take_directory() })
}

/// The whole command line of a loader.
fn loader_words(options: &Options, module: PathBuf) -> Vec<OsString> {
    let name = std::iter::once("spilerun".into());
    name.chain(options.loader_words()).chain(std::iter::once(module.into())).collect()
}
