// SPDX-License-Identifier: GPL-2.0-or-later

//! Pass 4: C text to a module. How much kernel stack handlers take is known only when they are compiled. Where it is more than
//! runs check for, it is set in the compiled object ([`stack_table`]; Kbuild compiles again); where it is too much, the plan
//! is changed and compiled again.

use spile_base::cache::Cache;
use spile_core::emit::{Form, Units};
use spile_core::plan::{self, Plan};
use spile_kbuild as kbuild;

use super::translate;
use crate::cli::options::BuildOptions;
use crate::cli::places;
use crate::reporter::{Failed, Reporter};
use crate::session::Session;
use crate::target::Target;

/// The module of a plan; `units`: the plan's C text. The session then has the directory that the module is in.
pub fn compile(
    session: &mut Session,
    plan: &mut Plan,
    units: &Units,
    target: &Target,
    cache: &Cache,
) -> Result<kbuild::Built, Failed> {
    let form = form(&session.options.build, 4);
    let mut built = build(session, plan, units, target, cache)?;
    if spill(&session.reporter, plan, built.stack.as_deref())? {
        let units = translate::emit(&session.reporter, plan, form)?;
        built = build(session, plan, &units, target, cache)?;
    }
    if raise_stack(&session.reporter, plan, built.stack.as_deref())? && !built.stacks_set {
        let units = translate::emit(&session.reporter, plan, form)?;
        built = build(session, plan, &units, target, cache)?;
    }
    Ok(built)
}

/// The C text that a build takes: what make compiles, and what is printed, is whole.
pub fn form(build: &BuildOptions, last_pass: u8) -> Form {
    if last_pass < 4 || build.kbuild { Form::Whole } else { Form::Short }
}

fn build(
    session: &mut Session,
    plan: &Plan,
    units: &Units,
    target: &Target,
    cache: &Cache,
) -> Result<kbuild::Built, Failed> {
    let directory = session.scratch()?;
    let work = directory.path().to_path_buf();
    let Units { script, embedded, tables } = units.clone();
    let request = request(session, target, &plan.info.module, kbuild::Sources { script, embedded, tables });
    directory.share_with_programs(true);
    let progress = session.reporter.progress("compiling");
    let stacks = |usage: &str| stack_table(plan, usage);
    let whole = || {
        let units = spile_core::emit::emit(plan, Form::Whole).map_err(|error| error.to_string())?;
        Ok(units.script)
    };
    let say = |text: &str| progress.say(&spile_abi::escape::line(text));
    let built = kbuild::build(&request, &stacks, &whole, &work, cache, &say);
    drop(progress);
    directory.share_with_programs(false);
    session.directory = Some(directory);
    session.reporter.cache_notices(cache);
    let built = built.map_err(|error| {
        let failed = session.reporter.fail(&error, &error.notes());
        session.reporter.remark("Pass 4: compilation failed.");
        failed
    })?;
    built.warnings.iter().for_each(|warning| session.reporter.warn(warning));
    Ok(built)
}

/// What to build for the target's kernel.
pub fn request(session: &Session, target: &Target, module: &str, sources: kbuild::Sources) -> kbuild::Request {
    kbuild::Request {
        release: target.release.clone(),
        build_dir: target.build_dir(),
        module: module.to_string(),
        sources,
        runtime: places::runtime(&session.options),
        kbuild: session.options.build.kbuild,
        make: make_variables(&session.options.build),
        verbosity: session.options.message.verbosity(4),
    }
}

/// Variables for make: those of `-B`, and what other options mean for Makefile.kbuild.
fn make_variables(build: &BuildOptions) -> Vec<String> {
    let mut variables = build.make.clone();
    variables.extend(build.debug.then(|| "SPILE_DEBUG=1".to_string()));
    variables
}

/// If the stack has no room for the compiled handlers, moves variables to frame memory. True: the plan has changed.
fn spill(reporter: &Reporter, plan: &mut Plan, usage: Option<&str>) -> Result<bool, Failed> {
    let usage = usage.unwrap_or_default();
    let fits = plan::stack::need(&plan.routines, plan.max_nesting, usage).most() <= plan::stack::MOST;
    if fits || !plan::stack::spill(plan, usage) {
        return Ok(false);
    }
    translate::refuse_too_large(reporter, plan)?;
    Ok(true)
}

/// What each probe's handlers need of the stack, as compiled. None: MINSTACKSPACE suffices for all, or the plan has to
/// change ([`spill`]), or the script is refused ([`raise_stack`]).
fn stack_table(plan: &Plan, usage: &str) -> Option<Vec<u32>> {
    let need = plan::stack::need(&plan.routines, plan.max_nesting, usage);
    let least = plan.info.limits.least_stack;
    (need.most() > least && need.most() <= plan::stack::MOST)
        .then(|| need.by_probe(plan).into_iter().map(|needed| rounded(needed, least)).collect())
}

/// The need as modules state it: 0 if it is at most `least`, else rounded up to 256 bytes, so that scripts that differ
/// little have the same.
fn rounded(needed: u32, least: u32) -> u32 {
    if needed > least { needed.next_multiple_of(256) } else { 0 }
}

/// Notes what each probe's handlers need of the stack, as compiled. False: MINSTACKSPACE suffices for all.
fn raise_stack(reporter: &Reporter, plan: &mut Plan, usage: Option<&str>) -> Result<bool, Failed> {
    let need = plan::stack::need(&plan.routines, plan.max_nesting, usage.unwrap_or_default());
    let most = need.most();
    if most > plan::stack::MOST {
        let (symbol, bytes) = need.largest;
        let routine = plan.routines.iter().find(|routine| routine.symbol == symbol);
        let what = routine.and_then(|routine| routine.comment.lines().next()).unwrap_or(&symbol);
        let message = format!(
            "the script needs up to {most} bytes of kernel stack, and may use {}: {what} takes {bytes} each time it is called, and calls nest {} deep",
            plan::stack::MOST,
            plan.max_nesting
        );
        let help = "a smaller MAXNESTING (-D), or fewer local variables and arguments, take less";
        return Err(reporter.fail(message, &[help.to_string()]));
    }
    if most <= plan.info.limits.least_stack {
        return Ok(false);
    }
    let needed = need.by_probe(plan);
    for (probe, needed) in plan.probes.iter_mut().zip(needed) {
        probe.stack = rounded(needed, plan.info.limits.least_stack);
    }
    Ok(true)
}
