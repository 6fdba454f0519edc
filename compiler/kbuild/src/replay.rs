// SPDX-License-Identifier: GPL-2.0-or-later

//! Makes a module by following a [`Recipe`](super::recipe::Recipe), without make and almost without kernel headers.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use sha2::{Digest, Sha256};

use super::embed::Runtime;
use super::embedded;
use super::recipe::{self, Steps, Words};
use super::{BuildError, Request, Stage, make, modpost};
use spile_base::cache::{Cache, Key};

/// The C of one module, and its name.
pub(super) struct Source<'a> {
    pub(super) name: &'a str,
    pub(super) script: &'a [u8],
    pub(super) embedded: Option<&'a [u8]>,
}

/// Why there is no module.
pub(super) enum Failure {
    /// The user's: Kbuild would refuse it too.
    Refused(BuildError),
    /// Only Kbuild can do it, or say what is wrong.
    Unable(String),
}

impl Failure {
    pub(super) fn reason(&self) -> String {
        match self {
            Failure::Refused(error) => {
                std::iter::once(error.to_string()).chain(error.notes()).collect::<Vec<_>>().join(": ")
            }
            Failure::Unable(reason) => reason.clone(),
        }
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Failure {
        Failure::Refused(error)
    }
}

/// Where and how commands run.
pub(super) struct Workplace<'a> {
    pub(super) work: &'a Path,
    pub(super) directory: &'a Path,
    /// `NAME=VALUE`
    pub(super) environment: Vec<String>,
    pub(super) verbosity: u8,
    /// What ran here.
    pub(super) stages: Mutex<Vec<Stage>>,
}

impl Workplace<'_> {
    fn took(&self, what: &str, started: Instant) {
        let mut stages = self.stages.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        stages.push((what.to_string(), started.elapsed()));
    }
}

/// What a program said when it failed.
pub(super) struct Complaint {
    pub(super) program: String,
    pub(super) text: String,
}

/// Where an embedded unit's object may be kept.
pub(super) struct ObjectCache<'a> {
    pub(super) cache: &'a Cache,
    /// Key of the recipe.
    pub(super) key: &'a Key,
}

/// The module in `work`, which exists. Nothing is kept.
pub(super) fn follow(
    steps: &Steps,
    plain: &[u8],
    source: &Source,
    runtime: &Runtime,
    request: &Request,
    work: &Path,
) -> Result<PathBuf, Failure> {
    follow_with(steps, plain, source, runtime, request, work, None).map(|made| made.module)
}

/// What came out.
pub(super) struct Made {
    pub(super) module: PathBuf,
    /// The embedded unit's object was there already.
    pub(super) embedded_cached: bool,
    /// Headers that the embedded unit includes.
    pub(super) headers: Vec<PathBuf>,
    pub(super) stages: Vec<Stage>,
}

/// As [`follow`]; the embedded unit's object is taken from the objects_cache, or put there.
pub(super) fn follow_with(
    steps: &Steps,
    plain: &[u8],
    source: &Source,
    runtime: &Runtime,
    request: &Request,
    work: &Path,
    objects_cache: Option<&ObjectCache>,
) -> Result<Made, Failure> {
    runtime.unpack_headers(work)?;
    for (file, bytes) in &steps.files {
        make::write(&work.join(file), bytes)?;
    }
    make::write(&work.join("spile_plain.o"), plain)?;
    make::write(&work.join("script.c"), source.script)?;
    let directory = if steps.in_work { work } else { &request.build_dir };
    let workplace = Workplace {
        work,
        directory,
        environment: recipe::specialize(&steps.environment, work, source.name, &[]),
        verbosity: request.verbosity,
        stages: Mutex::default(),
    };
    let (script, embedded) = std::thread::scope(|scope| {
        let embedded = source
            .embedded
            .map(|text| scope.spawn(|| embedded::make(steps, text, source.name, &workplace, objects_cache)));
        let script = run_all(&steps.script, source.name, &[], &workplace);
        // SANITY: a panic there is a bug, and goes on here.
        (script, embedded.map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))))
    });
    let embedded = embedded.transpose()?;
    script.map_err(|complaint| {
        Failure::Unable(format!("{} failed on the script's C: {}", complaint.program, complaint.text))
    })?;
    let object = |name: &str| work.join(name).display().to_string();
    let mut objects = vec![object("script.o")];
    objects.extend(embedded.is_some().then(|| object("embedded.o")));
    objects.push(object("spile_plain.o"));
    let list: String = objects.iter().map(|object| format!("{object}\n")).collect();
    make::write(&work.join(format!("{}.mod", source.name)), list.as_bytes())?;
    let unable = |complaint: Complaint| Failure::Unable(format!("{}: {}", complaint.program, complaint.text));
    run_all(&steps.module, source.name, &objects, &workplace).map_err(unable)?;
    let linked = make::read(&work.join(format!("{}.o", source.name)))?;
    let source_version = source_version(source);
    let module = modpost::Module { name: source.name, object: &linked, source_version: &source_version };
    let started = Instant::now();
    let info = modpost::describe(&steps.info, recipe::REFERENCE, &module, &request.build_dir.join("Module.symvers"))
        .map_err(Failure::Unable)?;
    make::write(&work.join(format!("{}.mod.o", source.name)), &info)?;
    workplace.took("versions and information", started);
    run_all(&steps.last, source.name, &[], &workplace).map_err(unable)?;
    let module = work.join(format!("{}.ko", source.name));
    if !module.is_file() {
        return Err(Failure::Unable("the last link made no module".into()));
    }
    let (embedded_cached, headers) = embedded.map_or((false, Vec::new()), |made| (made.cached, made.headers));
    let stages = workplace.stages.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(Made { module, embedded_cached, headers, stages })
}

/// Runs commands, one after the other, until one fails.
pub(super) fn run_all(
    commands: &[Words],
    name: &str,
    objects: &[String],
    workplace: &Workplace,
) -> Result<(), Complaint> {
    commands.iter().try_for_each(|words| run(&recipe::specialize(words, workplace.work, name, objects), workplace))
}

fn run(words: &[String], workplace: &Workplace) -> Result<(), Complaint> {
    let Some((program, arguments)) = words.split_first() else { return Ok(()) };
    let path = if program.contains('/') { workplace.directory.join(program) } else { PathBuf::from(program) };
    let mut command = Command::new(path);
    make::environment(&mut command, workplace.work);
    command.envs(workplace.environment.iter().filter_map(|variable| variable.split_once('=')));
    command.args(arguments).current_dir(workplace.directory).stdin(Stdio::null());
    let complaint = |text: String| Complaint { program: program.clone(), text };
    let started = Instant::now();
    let output = command.output().map_err(|error| complaint(error.to_string()))?;
    let made = words.iter().skip_while(|word| *word != "-o").nth(1).or(words.last());
    let made = made.and_then(|path| Path::new(path).file_name()).unwrap_or_default().to_string_lossy();
    workplace
        .took(&format!("{} for {made}", Path::new(program).file_name().unwrap_or_default().to_string_lossy()), started);
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if workplace.verbosity >= 3 {
        eprintln!("  {}", spile_abi::escape::line(&words.join(" ")));
        eprint!("{}", spile_abi::escape::lines(&text));
    }
    if output.status.success() { Ok(()) } else { Err(complaint(text)) }
}

/// As long as modpost's own.
fn source_version(source: &Source) -> String {
    let mut hash = Sha256::new();
    hash.update(source.script);
    hash.update(source.embedded.unwrap_or_default());
    let digits: String = hash.finalize().iter().map(|byte| format!("{byte:02X}")).collect();
    digits[..23].to_string()
}
