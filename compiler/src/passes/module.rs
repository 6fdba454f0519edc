// SPDX-License-Identifier: GPL-2.0-or-later

//! The finished module: its name, its key in the cache, and its file.

use std::io::Write;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use spile_base::cache::Key;
use spile_base::scratch::Scratch;
use spile_base::unfinished::NewFile;
use spile_core::plan::Limits;
use spile_core::program::Program;
use spile_debuginfo::target::Looked;
use spile_kbuild as kbuild;
use spile_kbuild::finished::{self, CachedModule};

use crate::cli::options::Script;
use crate::cli::places;
use crate::cli::relevant::relevant;
use crate::reporter::Failed;
use crate::session::Session;
use crate::target::Target;

/// How a module is called.
pub struct Name {
    /// The module's name as it is compiled.
    pub compiled: String,
    /// It ends in a number, which is the process's when it is run, so that the same script can run twice.
    pub numbered: bool,
}

impl Name {
    /// `spile_` and a hash of the module's inputs.
    pub fn from_contents(session: &Session, release: &str, limits: &Limits, numbered: bool) -> Name {
        let mut hash = Sha256::new();
        hash.update(format!("{release} {limits:?} {:?}", relevant(&session.options, &session.sources)));
        for file in session.sources.files() {
            hash.update(&file.bytes);
        }
        let mut digest = hex::encode(hash.finalize());
        digest.truncate(12);
        // Tools that look for SystemTap's modules know them by this prefix.
        let stem = format!("{}_{digest}", if session.options.as_stap { "stap" } else { "spile" });
        Name { compiled: if numbered { finished::numbered(&stem, 0) } else { stem }, numbered }
    }

    /// The name under which this process runs it.
    fn own(&self) -> String {
        let stem = self.compiled.strip_suffix(&finished::numbered("", 0)).filter(|_| self.numbered);
        stem.map_or_else(|| self.compiled.clone(), |stem| finished::numbered(stem, std::process::id()))
    }
}

/// The script as its module names it.
pub fn title(script: &Script) -> String {
    match script {
        Script::File(path) => {
            path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
        }
        Script::Stdin | Script::Text(_) => "<input>".into(),
    }
}

/// The module's key in the cache. None: it cannot be built, which pass 4 will report.
pub fn key(session: &Session, target: &Target, title: &str, numbered: bool) -> Option<Key> {
    let build = kbuild::identity(&target.build_dir(), places::runtime(&session.options).as_deref()).ok()?;
    let options = format!("{:?}", relevant(&session.options, &session.sources));
    Some(finished::key(&finished::Facts {
        options: &options,
        sources: &session.sources,
        release: &target.release,
        build: &build,
        title,
        numbered,
    }))
}

/// What of this run a module may depend on.
pub fn situation(session: &Session) -> finished::Situation {
    let run = &session.options.run.session;
    let directory = std::env::current_dir().map(|directory| directory.display().to_string());
    // Neither is empty: that would be "does not depend on it".
    finished::Situation {
        directory: directory.unwrap_or_else(|error| error.to_string()),
        process: format!("{:?} {:?}", run.command, run.pid),
    }
}

/// The part of it on which the module does depend, by where pass 2 looked for programs.
pub fn depended(run: finished::Situation, looked: &Looked) -> finished::Situation {
    finished::Situation {
        directory: if looked.relative { run.directory } else { String::new() },
        process: if looked.own_process { run.process } else { String::new() },
    }
}

/// The result of pass 4, with the warnings so far; `counts`: of what pass 2 found.
pub fn finished(
    session: &Session,
    built: &kbuild::Built,
    counts: String,
    program: &Program,
) -> Result<CachedModule, Failed> {
    let module = session.read_file(&built.module)?;
    let modules = program.targets.iter().map(|target| target.name.clone()).filter(|name| !name.is_empty()).collect();
    Ok(CachedModule { module, warnings: session.reporter.recorded().to_string(), counts, modules })
}

/// Writes the module, new or from the cache, into the session's directory, sealed and (where asked for) signed. Gives its
/// path; the file has the name that the module has.
pub fn write(
    session: &mut Session,
    finished: &mut CachedModule,
    name: &Name,
    build_dir: &Path,
) -> Result<PathBuf, Failed> {
    if session.directory.is_none() {
        session.directory = Some(session.scratch()?);
        session.reporter.repeat(&finished.warnings);
    }
    let own = name.own();
    finished::rename(&mut finished.module, &name.compiled, &own);
    spile_abi::seal::write(&mut finished.module);
    let directory = session.directory.as_ref().map_or(Path::new("."), Scratch::path);
    let module = directory.join(format!("{own}.ko"));
    std::fs::write(&module, &finished.module)
        .map_err(|error| session.reporter.error(format!("writing {}: {error}", module.display())))?;
    let failed = |error: kbuild::BuildError| session.reporter.fail(&error, &error.notes());
    if let Some(keys) = session.options.build.signing_keys().map_err(failed)? {
        kbuild::sign(build_dir, &keys, &module).map_err(failed)?;
    }
    Ok(module)
}

/// Copies the module to the destination of `-p4`, completely or not at all.
pub fn deliver(session: &Session, module: &Path) -> Result<PathBuf, Failed> {
    let place = session.options.build.module_directory.as_deref().unwrap_or(Path::new(""));
    let target = place.join(module.file_name().unwrap_or_default());
    let written = (|| {
        let mut file = NewFile::in_directory(&Path::new(".").join(place), ".spile")?;
        file.file().write_all(&std::fs::read(module)?)?;
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        file.file().set_permissions(permissions)?;
        file.persist(&target)
    })();
    written.map_err(|error| session.reporter.error(format!("writing {}: {error}", target.display())))?;
    Ok(target)
}
