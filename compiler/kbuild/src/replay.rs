// SPDX-License-Identifier: GPL-2.0-or-later

//! Makes a module by running the commands of a [`Recipe`](super::recipe::Recipe), without make and almost without
//! kernel headers.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread::ScopedJoinHandle;
use std::time::Instant;

use sha2::{Digest, Sha256};

use super::commands::{FailedCommand, Failure, ObjectCache, Runner, run_all};
use super::embed::Runtime;
use super::embedded;
use super::recipe::{self, Argv, Steps};
use spile_abi::sites::Tables;

use super::{Request, StackTable, Stage, built, make, modpost, prune, sites, stack_table};

/// The runtime's object in a work directory.
pub(super) const PLAIN: &str = "spile_plain.o";

/// The C of one module, and its name.
pub(super) struct Source<'a> {
    pub(super) name: &'a str,
    pub(super) script: &'a [u8],
    pub(super) embedded: Option<&'a [u8]>,
    pub(super) tables: Option<&'a Tables>,
    pub(super) stacks: StackTable<'a>,
}

/// Makes the module in `work`, which must exist, with the whole runtime. Nothing is cached.
pub(super) fn follow(
    steps: &Steps,
    plain: &[u8],
    source: &Source,
    runtime: &Runtime,
    request: &Request,
    work: &Path,
) -> Result<PathBuf, Failure> {
    make::write(&work.join(PLAIN), plain)?;
    follow_with(steps, None, source, runtime, request, work, None).map(|made| made.module)
}

/// The result.
pub(super) struct ReplayedModule {
    pub(super) module: PathBuf,
    /// The embedded unit's object came from the cache.
    pub(super) embedded_cached: bool,
    /// Headers that the embedded unit includes.
    pub(super) headers: Vec<PathBuf>,
    /// See [`Built::stacks_set`](super::Built::stacks_set).
    pub(super) stacks_set: bool,
    /// Why it has the whole runtime, if it has.
    pub(super) whole: Option<String>,
    /// Declarations that `declarations.rs` leaves out were needed, so it was compiled again with all.
    pub(super) compiled_twice: bool,
    pub(super) stages: Vec<Stage>,
}

/// As [`follow`], with what the module uses of the runtime `plain` alone (None: it is in the work directory), and the
/// embedded unit's object taken from or stored in the objects_cache.
pub(super) fn follow_with(
    steps: &Steps,
    plain: Option<&[u8]>,
    source: &Source,
    runtime: &Runtime,
    request: &Request,
    work: &Path,
    objects_cache: Option<&ObjectCache>,
) -> Result<ReplayedModule, Failure> {
    let units = [Some(source.script), source.embedded].map(Option::unwrap_or_default);
    let is_debug = request.make.iter().any(|variable| variable == "SPILE_DEBUG=1");
    let alone = std::str::from_utf8(source.script).ok();
    // The whole headers for embedded C, and for debuggers, which show where a type is declared.
    let alone = alone.filter(|_| plain.is_some() && source.embedded.is_none() && !is_debug);
    match alone {
        Some(script) => runtime.unpack_used(script, work)?,
        None => runtime.unpack_for(&units, work)?,
    }
    for (file, bytes) in &steps.files {
        make::write(&work.join(file), bytes)?;
    }
    make::write(&work.join("script.c"), source.script)?;
    let directory = if steps.in_work { work } else { &request.build_dir };
    let runner = Runner {
        work,
        directory,
        environment: recipe::specialize(&steps.environment, work, source.name, &[]),
        verbosity: request.verbosity,
        stages: Mutex::default(),
    };
    let name = source.name;
    let is_check = |words: &Argv| words.first().is_some_and(|program| program.ends_with("/objtool"));
    let (compile, check) = steps.script.split_at(steps.script.iter().position(is_check).unwrap_or(steps.script.len()));
    let mut compiled_twice = false;
    let (script, embedded, used) = std::thread::scope(|scope| {
        let embedded =
            source.embedded.map(|text| scope.spawn(|| embedded::make(steps, text, name, &runner, objects_cache)));
        let whole = plain.map(|plain| scope.spawn(|| prune::Whole::read(plain)));
        let mut compiled = run_all(compile, name, &[], &runner);
        if compiled.is_err() && alone.is_some() && runtime.unpack_for(&units, work).is_ok() {
            compiled = run_all(compile, name, &[], &runner);
            compiled_twice = compiled.is_ok();
        }
        // Read before objtool changes it, which does not change what it uses.
        let object = make::read(&work.join("script.o"));
        let checked = compiled.is_ok().then(|| scope.spawn(|| run_all(check, name, &[], &runner)));
        let embedded = embedded.map(joined);
        let used = whole.map(|whole| {
            let started = Instant::now();
            let object = object.map_err(|error| error.to_string());
            let mut units = vec![object?];
            if embedded.is_some() {
                units.push(make::read(&work.join("embedded.o")).map_err(|error| error.to_string())?);
            }
            let used = joined(whole)?.prune(&units);
            runner.took("used parts of the runtime", started);
            used
        });
        (compiled.and_then(|()| checked.map_or(Ok(()), joined)), embedded, used)
    });
    let embedded = embedded.transpose()?;
    script.map_err(|complaint| {
        Failure::Unable(format!("{} failed on the script's C: {}", complaint.program, complaint.text))
    })?;
    let stacks = built::stack_usage(work).and_then(|usage| (source.stacks)(&usage));
    if let Some(stacks) = &stacks {
        set_stacks(&work.join("script.o"), stacks)?;
    }
    if let Some(tables) = source.tables {
        let started = Instant::now();
        write_tables(&work.join("script.o"), tables)?;
        runner.took("tables of the probes", started);
    }
    let object = |name: &str| work.join(name).display().to_string();
    let mut objects = vec![object("script.o")];
    objects.extend(embedded.is_some().then(|| object("embedded.o")));
    let mut whole = None;
    match &used {
        Some(Ok(used)) => make::write(&work.join(PLAIN), used)?,
        Some(Err(why)) => {
            make::write(&work.join(PLAIN), plain.unwrap_or_default())?;
            whole = Some(why.clone());
        }
        None => (),
    }
    objects.push(object(PLAIN));
    let list: String = objects.iter().map(|object| format!("{object}\n")).collect();
    make::write(&work.join(format!("{}.mod", source.name)), list.as_bytes())?;
    let unable = |complaint: FailedCommand| Failure::Unable(format!("{}: {}", complaint.program, complaint.text));
    let linked = if steps.together.is_empty() {
        run_all(&steps.module, source.name, &objects, &runner).map_err(unable)?;
        vec![make::read(&work.join(format!("{}.o", source.name)))?]
    } else {
        objects.iter().map(|object| make::read(Path::new(object))).collect::<Result<_, _>>()?
    };
    let started = Instant::now();
    let source_version = source_version(source);
    let module = modpost::Module { name: source.name, objects: &linked, source_version: &source_version };
    let info = modpost::describe(&steps.info, recipe::REFERENCE, &module, &request.build_dir.join("Module.symvers"))
        .map_err(Failure::Unable)?;
    make::write(&work.join(format!("{}.mod.o", source.name)), &info)?;
    runner.took("versions and information", started);
    let links = if steps.together.is_empty() { &steps.last } else { &steps.together };
    run_all(links, source.name, &objects, &runner).map_err(unable)?;
    let module = work.join(format!("{}.ko", source.name));
    if !module.is_file() {
        return Err(Failure::Unable("the last link made no module".into()));
    }
    let (embedded_cached, headers) = embedded.map_or((false, Vec::new()), |made| (made.cached, made.headers));
    let stages = runner.stages.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(ReplayedModule { module, embedded_cached, headers, stacks_set: stacks.is_some(), whole, compiled_twice, stages })
}

/// The result of a thread.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    // SANITY: a panic there is a bug; resume it here.
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Writes the values into the script's object.
fn set_stacks(object: &Path, stacks: &[u32]) -> Result<(), Failure> {
    let mut bytes = make::read(object)?;
    stack_table::set(&mut bytes, stacks).map_err(|why| Failure::Unable(format!("{}: {why}", object.display())))?;
    Ok(make::write(object, &bytes)?)
}

/// Writes the tables that the script's C lacks into its object.
fn write_tables(object: &Path, tables: &Tables) -> Result<(), Failure> {
    let bytes = make::read(object)?;
    let filled = sites::fill(&bytes, tables).map_err(|why| Failure::Unable(format!("{}: {why}", object.display())))?;
    Ok(make::write(object, &filled)?)
}

/// Writes the parts of the runtime's object that the objects in `work` use.
pub(super) fn write_used(plain: &[u8], work: &Path, embedded: bool) -> Result<(), String> {
    let objects = ["script.o", "embedded.o"].into_iter().take(if embedded { 2 } else { 1 });
    let read = |object: &str| make::read(&work.join(object)).map_err(|error| error.to_string());
    let objects = objects.map(read).collect::<Result<Vec<_>, _>>()?;
    let used = prune::prune(plain, &objects)?;
    make::write(&work.join(PLAIN), &used).map_err(|error| error.to_string())
}

/// The same length as modpost's own.
fn source_version(source: &Source) -> String {
    let mut hash = Sha256::new();
    hash.update(source.script);
    hash.update(source.embedded.unwrap_or_default());
    for site in source.tables.iter().flat_map(|tables| &tables.sites) {
        hash.update(format!("{site:?}\n"));
    }
    for code in source.tables.iter().flat_map(|tables| &tables.fingerprints) {
        hash.update(format!(
            "{} {:?} {} {} {:?}\n",
            code.target, code.symbol, code.address, code.function, code.patched
        ));
        hash.update(&code.bytes);
    }
    let digits: String = hash.finalize().iter().map(|byte| format!("{byte:02X}")).collect();
    digits[..23].to_string()
}
