// SPDX-License-Identifier: GPL-2.0-or-later

//! Which library scripts a user's scripts need: those that define a missing name, and what these need in turn.
//!
//! A file is taken as a whole, with its probes; unused files are left out, and not even parsed: an [`index`] knows what
//! each may define. A broken file is an error only if it is needed.

mod directory;
mod embedded;
mod index;
mod listing;
mod macros;
mod uses;

pub use embedded::{TAPSET_NAMES, embedded_tapset};

pub use listing::{PublicNames, alias_definitions, aliases, comment, functions, signature};
pub use macros::LibraryMacros;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::syscalls;
use spile_base::cache::Cache;
use spile_base::read;
use spile_source::diagnostic::{Diagnostic, Severity};
use spile_source::{Origin, SourceMap};
use spile_syntax::ast::{Item, ProbePoint, Script};
use spile_syntax::outline::Outline;
use spile_syntax::{self as syntax, Environment, Macros, visit};

use index::Index;
use uses::Uses;

/// Reading the library failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The file.
    pub path: PathBuf,
    /// Why it could not be read.
    pub error: String,
}

/// Library scripts in search order: the library's own, then those of each `-I`.
#[derive(Debug, Default)]
pub struct Library {
    scripts: Vec<File>,
    macros: Vec<File>,
    /// The aliases of system calls are generated when needed, with arguments in this style.
    makes_syscalls: Option<syscalls::Style>,
}

#[derive(Debug)]
struct File {
    name: String,
    text: Text,
    offers: Outline,
}

#[derive(Debug)]
enum Text {
    /// Part of this program.
    Embedded(&'static [u8]),
    Path(PathBuf),
}

impl File {
    fn origin(&self) -> Origin {
        match &self.text {
            Text::Embedded(_) => Origin::Tapset,
            Text::Path(_) => Origin::Directory,
        }
    }

    fn read(&self) -> Result<Vec<u8>, ReadError> {
        match &self.text {
            Text::Embedded(bytes) => Ok(bytes.to_vec()),
            Text::Path(path) => read::regular(path, read::MAX_TEXT).map_err(|error| unreadable(path, &error)),
        }
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> ReadError {
    ReadError { path: path.to_path_buf(), error: error.to_string() }
}

/// Where library scripts are searched.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Instead of the scripts embedded in this program.
    pub instead: Option<PathBuf>,
    /// `-I`.
    pub further: Vec<PathBuf>,
    /// Kernel release that selects directories: `6.1.0-56-amd64`.
    pub release: String,
    /// The kernel's name for it: x86_64.
    pub arch: String,
    /// Which values `argstr` of system calls shows, and how.
    pub syscall_style: syscalls::Style,
}

impl Library {
    /// Finds the files and the names that they may define; those of unchanged files are in the cache.
    pub fn open(places: &Places, cache: &Cache) -> Result<Library, ReadError> {
        let mut library = Library::default();
        if places.instead.is_none() {
            library.makes_syscalls = Some(places.syscall_style);
            let files = embedded_tapset();
            let outlines = index::of_embedded(cache, &files);
            for ((name, bytes), offers) in files.into_iter().zip(outlines) {
                library.push(File { name, text: Text::Embedded(bytes), offers });
            }
        }
        let mut paths = Vec::new();
        for directory in places.instead.iter().chain(&places.further) {
            paths.extend(directory::files(directory, &places.release, &places.arch)?);
        }
        let mut index = Index::open(cache, &paths);
        let outlines = index.outlines(&paths)?;
        for (path, offers) in paths.into_iter().zip(outlines) {
            let file = File { name: path.display().to_string(), text: Text::Path(path), offers };
            library.push(file);
        }
        index.keep(cache);
        Ok(library)
    }

    fn push(&mut self, file: File) {
        let files = if is_macros(&file.name) { &mut self.macros } else { &mut self.scripts };
        files.push(file);
    }

    /// The number of library scripts.
    pub fn count(&self) -> usize {
        self.scripts.len()
    }

    /// The public names of the library, for suggestions.
    pub fn offered(&self) -> PublicNames {
        let outlines = self.scripts.iter().map(|file| file.offers.clone());
        self.with_syscalls(PublicNames::of(outlines))
    }

    /// The same, where nothing else is needed of the library any more.
    pub fn into_offered(mut self) -> PublicNames {
        let scripts = std::mem::take(&mut self.scripts);
        self.with_syscalls(PublicNames::of(scripts.into_iter().map(|file| file.offers)))
    }

    fn with_syscalls(&self, mut offered: PublicNames) -> PublicNames {
        if self.makes_syscalls.is_some() {
            for name in syscalls::names() {
                offered.aliases.push(vec!["syscall".into(), name.into()]);
                offered.aliases.push(vec!["syscall".into(), name.into(), "return".into()]);
            }
        }
        offered
    }

    /// The macros of the library. A file with errors is left out, with a warning.
    pub fn macros(
        &self,
        sources: &mut SourceMap,
        environment: &Environment,
        problems: &mut Vec<Diagnostic>,
    ) -> Result<Macros, ReadError> {
        let mut macros = Macros::default();
        for file in &self.macros {
            let id = sources.add(file.name.clone(), file.read()?, file.origin());
            let wrong = syntax::collect_macros(sources, id, environment, &mut macros);
            problems.extend(wrong.into_iter().map(|problem| Diagnostic { severity: Severity::Warning, ..problem }));
        }
        Ok(macros)
    }

    /// The library scripts that `scripts` and `points` need, in library order; `all`: every one.
    pub fn select<'m>(
        &self,
        sources: &mut SourceMap,
        environment: &Environment,
        macros: impl Into<LibraryMacros<'m>>,
        request: LibraryRequest<'_>,
        problems: &mut Vec<Diagnostic>,
    ) -> Result<Vec<Script>, ReadError> {
        let mut macros = macros.into();
        let mut uses = Uses::default();
        let mut defined = HashSet::new();
        for script in request.scripts {
            defined.extend(names(script).map(str::to_string));
            uses.script(script);
        }
        // A function with `next` continues with the library's of its name; one of a higher number comes after it.
        for item in request.scripts.iter().flat_map(|script| &script.items) {
            if let Item::Function(function) = item
                && (visit::executes_next(function) || function.priority.is_some_and(|priority| priority > 1))
            {
                defined.remove(&function.name.text);
            }
        }
        uses.points(request.points);
        let mut files: Vec<State> = self.scripts.iter().map(|_| State::Unread).collect();
        let mut made = None;
        loop {
            let mut grown = false;
            for (file, state) in self.scripts.iter().zip(&mut files) {
                if matches!(state, State::Unread) && (request.all || uses.may_define_needed(&file.offers, &defined)) {
                    let bytes = file.read()?;
                    let macros = macros.for_text(self, &bytes, sources, environment, problems)?;
                    let id = sources.add(file.name.clone(), bytes, file.origin());
                    let (script, wrong) = syntax::parse(sources, id, environment, macros);
                    *state = State::Read(script, wrong);
                }
                grown |= state.take(&mut uses, &defined, request.all, problems);
            }
            if !grown {
                // Last of all: which of its parts are generated depends on the scripts that mention them.
                let text = self.made(sources, request.all || uses.begins(syscalls::FUNCTIONS));
                if text.is_none() || made.as_ref().map(|(text, _)| text) == text.as_ref() {
                    break;
                }
                let text = text.unwrap_or_default();
                let macros = macros.for_text(self, text.as_bytes(), sources, environment, problems)?;
                let id = sources.add(SYSCALLS, text.clone().into_bytes(), Origin::Tapset);
                let (script, wrong) = syntax::parse(sources, id, environment, macros);
                let mut state = State::Read(script, wrong);
                state.take(&mut uses, &defined, request.all, problems);
                made = Some((text, state));
            }
        }
        files.extend(made.map(|(_, state)| state));
        let taken = files.into_iter().filter_map(|state| match state {
            State::Taken(script) => Some(script),
            State::Unread | State::Read(..) => None,
        });
        Ok(taken.collect())
    }

    /// The script with the aliases of system calls, if the scripts so far mention them; `all`: always.
    fn made(&self, sources: &SourceMap, all: bool) -> Option<String> {
        let texts =
            sources.files().filter(|file| !file.name.starts_with(TAPSET_NAMES)).map(|file| file.bytes.as_slice());
        let any: &[u8] = if all { b"syscall" } else { b"" };
        let texts: Vec<&[u8]> = texts.chain([any]).collect();
        self.makes_syscalls.and_then(|style| syscalls::script(&texts, style))
    }
}

fn is_macros(name: &str) -> bool {
    name.ends_with(".stpm")
}

/// Its file, as named in messages.
const SYSCALLS: &str = "tapset/syscalls.stp";

/// What a run needs from the library.
#[derive(Clone, Copy, Default)]
pub struct LibraryRequest<'a> {
    /// The user's scripts.
    pub scripts: &'a [Script],
    /// The points of `-l` and `-L`.
    pub points: &'a [ProbePoint],
    /// All files, used or not.
    pub all: bool,
}

enum State {
    Unread,
    /// It may be needed, but so far is not.
    Read(Script, Vec<Diagnostic>),
    Taken(Script),
}

impl State {
    /// Takes the file if it is needed; what it uses is then needed too.
    fn take(&mut self, uses: &mut Uses, defined: &HashSet<String>, all: bool, problems: &mut Vec<Diagnostic>) -> bool {
        let State::Read(script, wrong) = self else { return false };
        // It is not known what else a broken file would have defined.
        let broken = wrong.iter().any(|problem| problem.severity == Severity::Error);
        if !broken && !all && !uses.needs(script, defined) {
            return false;
        }
        uses.script(script);
        problems.append(wrong);
        let empty = Script { items: Vec::new(), arguments: Default::default(), ..*script };
        *self = State::Taken(std::mem::replace(script, empty));
        true
    }
}

/// Functions and globals that a file exports.
fn names(script: &Script) -> impl Iterator<Item = &str> {
    script.items.iter().filter_map(|item| match item {
        Item::Function(function) if !function.private => Some(function.name.text.as_str()),
        Item::Global(global) if !global.private => Some(global.name.text.as_str()),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
