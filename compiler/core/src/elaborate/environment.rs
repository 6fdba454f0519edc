// SPDX-License-Identifier: GPL-2.0-or-later

//! What every phase uses and none owns: the sources, the options, the target, and the list of problems.

use std::collections::{BTreeSet, HashMap};

use super::Options;
use super::error::Error;
use crate::probe::Resolver;
use spile_source::diagnostic::{Code, Diagnostic, Severity};
use spile_source::{FileId, SourceMap, Span};

/// Codes of errors about things that a kernel's BTF lacks and its DWARF may have.
const ABSENT: &[&str] = &["E0121", "E0122", "E0204", "E0205", "E0207"];

/// State shared by all steps of elaboration: the session's input, and the problems found so far.
pub(super) struct Environment<'a> {
    /// Text of all files.
    pub sources: &'a SourceMap,
    /// Options of the session.
    pub options: Options,
    /// Answers questions about probe points and targets.
    pub resolver: &'a mut Resolver<'a>,
    /// How many aliases have been expanded.
    pub expansions: u32,
    /// The kinds of arguments of system calls that handlers show, by number. None before they are known.
    pub shown: Option<BTreeSet<u8>>,
    problems: Vec<Diagnostic>,
    /// Where in the list those of a code and a place were put; some may have been forgotten since.
    known: HashMap<(Code, Option<Span>), Vec<usize>>,
    failed: bool,
}

/// A saved state of the list of problems: see [`Environment::forget`].
#[derive(Clone, Copy)]
pub(super) struct Mark {
    problems: usize,
    failed: bool,
}

impl<'a> Environment<'a> {
    /// With an empty list of problems.
    pub fn new(sources: &'a SourceMap, options: &Options, resolver: &'a mut Resolver<'a>) -> Environment<'a> {
        Environment {
            sources,
            options: options.clone(),
            resolver,
            expansions: 0,
            shown: None,
            problems: Vec::new(),
            known: HashMap::new(),
            failed: false,
        }
    }

    /// Whether an error was reported.
    pub fn failed(&self) -> bool {
        self.failed
    }

    /// Whether the file is one of the library.
    pub fn is_library(&self, file: FileId) -> bool {
        is_library(self.sources, file)
    }

    /// Adds the diagnostic of an error, as [`Environment::add`] does.
    pub fn report(&mut self, error: impl Into<Error>) {
        self.add(error.into().diagnostic());
    }

    /// Adds a diagnostic, unless it is in the list already: a handler is elaborated once for each of its sites.
    pub fn add(&mut self, diagnostic: Diagnostic) {
        let absent = ABSENT.contains(&diagnostic.code.0);
        let diagnostic = match self.resolver.without_dwarf().filter(|_| absent) {
            Some(note) => diagnostic.note(note),
            None => diagnostic,
        };
        self.failed |= diagnostic.severity == Severity::Error;
        let place = diagnostic.labels.first().map(|label| label.span);
        let known = self.known.entry((diagnostic.code, place)).or_default();
        if known.iter().all(|at| self.problems.get(*at) != Some(&diagnostic)) {
            known.push(self.problems.len());
            self.problems.push(diagnostic);
        }
    }

    /// Adds a warning, unless the list has one of its code at its place.
    pub fn add_first(&mut self, diagnostic: Diagnostic) {
        let place = diagnostic.labels.first().map(|label| label.span);
        let is_there = |at: &usize| {
            self.problems.get(*at).is_some_and(|known| {
                known.code == diagnostic.code && known.labels.first().map(|label| label.span) == place
            })
        };
        if !self.known.get(&(diagnostic.code, place)).is_some_and(|known| known.iter().any(is_there)) {
            self.add(diagnostic);
        }
    }

    /// The present state of the list.
    pub fn mark(&self) -> Mark {
        Mark { problems: self.problems.len(), failed: self.failed }
    }

    /// Discards problems that were reported since.
    pub fn forget(&mut self, since: Mark) {
        self.problems.truncate(since.problems);
        self.failed = since.failed;
    }

    /// The last problem reported since then.
    pub fn last_problem(&mut self, since: Mark) -> Option<&mut Diagnostic> {
        self.problems.get_mut(since.problems..)?.last_mut()
    }

    /// Removes the problems reported since then from the list, and returns them.
    pub fn take_problems(&mut self, since: Mark) -> Vec<Diagnostic> {
        self.problems.split_off(since.problems.min(self.problems.len()))
    }

    /// All diagnostics, in the order in which they were reported.
    pub fn into_problems(self) -> Vec<Diagnostic> {
        self.problems
    }
}

/// Whether the file is one of the library.
pub(super) fn is_library(sources: &SourceMap, file: FileId) -> bool {
    sources.file(file).origin.is_library()
}
