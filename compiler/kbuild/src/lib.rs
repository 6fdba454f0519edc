// SPDX-License-Identifier: GPL-2.0-or-later

//! Pass 4: C text to a loadable `.ko`.
//!
//! The runtime is compiled once for each kernel, compiler and version of spile, by the kernel's own Kbuild through
//! Makefile.kbuild. The same build shows how Kbuild makes a module ([`record`]); modules of scripts are made by
//! repeating its commands ([`replay`]) in a twentieth of the time. If that is not possible they are built by Kbuild, as
//! with `--kbuild`; [`Built::notes`] gives the reason.

#![warn(clippy::print_stderr, clippy::print_stdout)]

mod built;
mod commands;
mod compare;
mod compiler;
mod debug_file;
mod declarations;
mod embed;
mod embedded;
mod error;
pub mod finished;
mod make;
mod modpost;
mod prune;
mod recipe;
mod record;
mod replay;
mod request;
mod shell;
mod shorter;
mod sign;
mod sites;
mod stack_table;
mod symvers;
mod without_headers;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub use built::Built;
pub use compare::differences;
pub use debug_file::debug_file;
pub use error::BuildError;
pub use request::{ReportProgress, Request, Sources, StackTable, Stage, WholeScript};
pub use sign::{Keys, sign};

use commands::{Failure, ObjectCache};
use compiler::Compiler;
use embed::Runtime;
use recipe::Recipe;

use spile_base::cache::{Cache, Key, Kind};

/// Builds in `work`, which must exist and be private.
pub fn build(
    request: &Request,
    stacks: StackTable,
    whole: WholeScript,
    work: &Path,
    cache: &Cache,
    say: ReportProgress,
) -> Result<Built, BuildError> {
    let looked = request.build_dir.join("Makefile");
    if !looked.exists() {
        let without = without_headers::build(request, stacks, work, cache, say);
        return without.unwrap_or_else(|| Err(BuildError::NoHeaders { release: request.release.clone(), looked }));
    }
    let compiler = compiler::choose(&request.build_dir)?;
    let runtime = Runtime::read(request.runtime.as_deref())?;
    let mut built = Built {
        module: PathBuf::new(),
        notes: Vec::new(),
        warnings: compiler.warning.iter().cloned().collect(),
        inputs: Vec::new(),
        stack: None,
        stacks_set: false,
        stages: Vec::new(),
    };
    let key = key(request, &runtime, &compiler);
    let started = Instant::now();
    let recipe = recipe(request, &runtime, &compiler, &key, work, cache, &mut built.notes, say)?;
    built.stages.push(("runtime".into(), started.elapsed()));
    say("compiling the script");
    let Some(recipe) = recipe else {
        built.notes.push("without a cache, the runtime is compiled with each script".into());
        let started = Instant::now();
        built.module = by_kbuild(request, whole, &runtime, &compiler, None, work, &mut built.notes)?;
        built.stages.push(("kbuild".into(), started.elapsed()));
        built.stack = built::stack_usage(&work.join(APART));
        return Ok(built);
    };
    if !request.kbuild
        && by_replay(request, stacks, &runtime, &recipe, &ObjectCache { cache, key: &key }, work, &mut built)?
    {
        return Ok(built);
    }
    let started = Instant::now();
    built.module = by_kbuild(request, whole, &runtime, &compiler, Some(&recipe.plain), work, &mut built.notes)?;
    built.stages.push(("kbuild".into(), started.elapsed()));
    built.stack = built::stack_usage(&work.join(APART));
    Ok(built)
}

/// Compiles the runtime for the request's kernel, as the first script would, unless the cache has it already. True: it was
/// compiled. Only what the request says of the kernel counts.
pub fn prepare(request: &Request, work: &Path, cache: &Cache, say: ReportProgress) -> Result<bool, BuildError> {
    let looked = request.build_dir.join("Makefile");
    if !looked.exists() {
        return Err(BuildError::NoHeaders { release: request.release.clone(), looked });
    }
    let compiler = compiler::choose(&request.build_dir)?;
    let runtime = Runtime::read(request.runtime.as_deref())?;
    let key = key(request, &runtime, &compiler);
    if cache.get(Kind::Runtime, &key).is_some_and(|entry| Recipe::from_entry(entry).is_some()) {
        return Ok(false);
    }
    Ok(recipe(request, &runtime, &compiler, &key, work, cache, &mut Vec::new(), say)?.is_some())
}

/// Builds as the reference module was built; false, with a note, where only Kbuild can.
fn by_replay(
    request: &Request,
    stacks: StackTable,
    runtime: &Runtime,
    recipe: &Recipe,
    objects: &ObjectCache,
    work: &Path,
    built: &mut Built,
) -> Result<bool, BuildError> {
    let steps = match &recipe.steps {
        Ok(steps) => steps,
        Err(why) => {
            built.notes.push(format!("modules for this kernel are left to Kbuild: {}", first_lines(why)));
            return Ok(false);
        }
    };
    let source = replay::Source {
        name: &request.module,
        script: request.sources.script.as_bytes(),
        embedded: request.sources.embedded.as_ref().map(String::as_bytes),
        tables: request.sources.tables.as_ref(),
        stacks,
    };
    match replay::follow_with(steps, Some(&recipe.plain), &source, runtime, request, work, Some(objects)) {
        Ok(made) => {
            if made.embedded_cached {
                built.notes.push("embedded C: cached".into());
            }
            built.notes.extend(made.whole.map(|reason| format!("{WHOLE}: {reason}")));
            built.notes.extend(made.compiled_twice.then(|| TWICE.to_string()));
            built.inputs = made.headers;
            built.module = made.module;
            built.stages.extend(made.stages);
            built.stack = built::stack_usage(work);
            built.stacks_set = made.stacks_set;
            Ok(true)
        }
        Err(Failure::Refused(error)) => Err(error),
        Err(Failure::Unable(reason)) => {
            built.notes.push(format!("left to Kbuild: {}", first_lines(&reason)));
            Ok(false)
        }
    }
}

const WHOLE: &str = "the module has the whole runtime";
const TWICE: &str = "compiled twice: the script needs more of the runtime's headers than was found";
/// Where Kbuild works, below the work directory.
const APART: &str = "kbuild";

/// Everything known before building that the runtime's object and the recipe depend on.
pub fn identity(build_dir: &Path, runtime: Option<&Path>) -> Result<String, BuildError> {
    let compiler = compiler::choose(build_dir)?;
    let digest = hex::encode(sha2::Digest::finalize(Runtime::digest_of(runtime)?));
    Ok(format!("{}\n{:?}\n{digest}\n{}", compiler.identity, compiler.make, tree(build_dir)))
}

/// Identifies a build tree among those of the same release, by size and time, as for the compiler. Not by inode: a
/// copied system, an image or a container, can still use what was built for its kernels.
fn tree(build_dir: &Path) -> String {
    let files = [
        ".config",
        "Module.symvers",
        "Makefile",
        "include/generated/utsrelease.h",
        "scripts/mod/modpost",
        "tools/objtool/objtool",
    ];
    let states = files.map(|file| {
        let path = build_dir.join(file);
        let state = std::fs::metadata(&path)
            .map(|metadata| format!("{} {}.{:09}", metadata.size(), metadata.mtime(), metadata.mtime_nsec()));
        format!("{} {}\n", path.display(), state.unwrap_or_default())
    });
    states.concat()
}

fn key(request: &Request, runtime: &Runtime, compiler: &Compiler) -> Key {
    let mut hash = runtime.digest();
    let facts = format!(
        "{}\n{}\n{}\n{:?}\n{:?}\n{:?}\n",
        recipe::FORMAT,
        request.release,
        compiler.identity,
        compiler.make,
        request.make,
        recipe::environment()
    );
    sha2::Digest::update(&mut hash, facts);
    sha2::Digest::update(&mut hash, tree(&request.build_dir));
    Key::new(hash)
}

/// The recipe for the request's kernel, from the cache or recorded now. None if there is no cache: recording takes as
/// long as a build by Kbuild.
#[allow(clippy::too_many_arguments, reason = "steps of one build, which share nothing else")]
fn recipe(
    request: &Request,
    runtime: &Runtime,
    compiler: &Compiler,
    key: &Key,
    work: &Path,
    cache: &Cache,
    notes: &mut Vec<String>,
    say: ReportProgress,
) -> Result<Option<Recipe>, BuildError> {
    let recorded = || cache.get(Kind::Runtime, key).and_then(Recipe::from_entry);
    if let Some(recipe) = recorded() {
        notes.push("runtime: cached".into());
        return Ok(Some(recipe));
    }
    if cache.directory().is_none() {
        return Ok(None);
    }
    // Of several processes that need the same recipe, one records it and the others wait.
    let what = format!("the runtime for {}", spile_abi::escape::line(&request.release));
    let _lock = cache.lock(Kind::Runtime, key, &what);
    if let Some(recipe) = recorded() {
        notes.push("runtime: cached".into());
        return Ok(Some(recipe));
    }
    say(&format!("compiling the runtime for {}, once for each kernel", request.release));
    let apart = work.join("runtime");
    std::fs::create_dir(&apart).map_err(|error| BuildError::File { path: apart.clone(), error: error.to_string() })?;
    let recipe = record::record(request, runtime, compiler, &apart)?;
    without_headers::store(request, runtime, &recipe, cache);
    let recipe = shorter::shorten(recipe, request, runtime, compiler, &apart);
    let about = format!("runtime for {} by {}", request.release, compiler.make.join(" "));
    cache.put(Kind::Runtime, key, &recipe.to_entry(&about));
    notes.push("runtime: built".into());
    Ok(Some(recipe))
}

/// Builds by Makefile.kbuild, with the runtime's object or compiling that too.
#[allow(clippy::too_many_arguments, reason = "steps of one build, which share nothing else")]
fn by_kbuild(
    request: &Request,
    whole: WholeScript,
    runtime: &Runtime,
    compiler: &Compiler,
    plain: Option<&[u8]>,
    work: &Path,
    notes: &mut Vec<String>,
) -> Result<PathBuf, BuildError> {
    let apart = work.join(APART);
    runtime.unpack(&apart)?;
    let script = match &request.sources.tables {
        Some(_) => whole().map_err(|log| BuildError::Failed { log })?,
        None => request.sources.script.clone(),
    };
    make::write(&apart.join("script.c"), script.as_bytes())?;
    let mut variables = vec![format!("SPILE_MODULE={}", request.module)];
    let mut units = vec!["script.o"];
    if let Some(embedded) = &request.sources.embedded {
        make::write(&apart.join("embedded.c"), embedded.as_bytes())?;
        variables.push("SPILE_EMBEDDED=1".into());
        units.push("embedded.o");
    }
    let shipped = apart.join("spile_plain.o_shipped");
    let mut left = Err(String::new());
    if let Some(plain) = plain {
        make::write(&shipped, plain)?;
        variables.push("SPILE_PREBUILT=1".into());
        // What these use of the runtime is known when they are compiled; the second run of make leaves them as they are.
        make::run(request, compiler, &apart, &variables, &units)?;
        left = replay::write_used(plain, &apart, units.len() > 1)
            .and_then(|()| std::fs::rename(apart.join(replay::PLAIN), &shipped).map_err(|error| error.to_string()));
        if let Err(reason) = &left {
            notes.push(format!("{WHOLE}: {reason}"));
        }
    }
    match (make::run(request, compiler, &apart, &variables, &["modules"]), plain) {
        // This kernel's tools may look for something in the object that is not known here.
        (Err(BuildError::Failed { log }), Some(plain)) if left.is_ok() => {
            notes.push(format!("{WHOLE}: without the rest it does not build: {}", first_lines(&log)));
            make::write(&shipped, plain)?;
            make::run(request, compiler, &apart, &variables, &["modules"])?;
        }
        (made, _) => {
            made?;
        }
    }
    let made = apart.join(format!("{}.ko", request.module));
    let module = work.join(format!("{}.ko", request.module));
    match std::fs::rename(&made, &module) {
        Ok(()) => Ok(module),
        Err(_) => Err(BuildError::Failed { log: "make ended well but made no module".into() }),
    }
}

/// As much of a compiler's messages as fits a note.
fn first_lines(text: &str) -> String {
    text.lines().filter(|line| !line.trim().is_empty()).take(3).collect::<Vec<_>>().join("; ")
}
