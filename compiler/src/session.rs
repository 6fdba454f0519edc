// SPDX-License-Identifier: GPL-2.0-or-later

//! The state of one run of the compiler: its options, the source files read so far, the reporter, and its directory.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use spile_abi::say::say;
use spile_base::cache::{self, Cache};
use spile_base::scratch::Scratch;
use spile_core::library::PublicNames;
use spile_source::SourceMap;

use crate::cli::options::Options;
use crate::cli::places;
use crate::cli::report::Report;
use crate::reporter::{Failed, Reporter};

/// The state of one run. Commands and passes get it, and add to `sources` and `times`.
pub struct Session {
    /// The command line.
    pub options: Options,
    /// All source files that were read.
    pub sources: SourceMap,
    /// Public names of the library, since pass 1.
    pub offered: Rc<PublicNames>,
    /// Where messages go.
    pub reporter: Reporter,
    /// How long each stage took, for `--time-report`.
    pub times: Report,
    /// Files that pass 2 has read besides the kernel's: headers of casts, on which a module in the cache depends.
    pub inputs: Vec<PathBuf>,
    /// Contains the result of pass 4; removed when this is dropped.
    pub directory: Option<Scratch>,
}

impl Session {
    /// A new run with these options.
    pub fn new(options: Options) -> Session {
        let reporter = Reporter::new(&options);
        Session {
            options,
            sources: SourceMap::new(),
            offered: Rc::default(),
            reporter,
            times: Report::default(),
            inputs: Vec::new(),
            directory: None,
        }
    }

    /// The cache of this user, as set by the options and the environment.
    pub fn cache(&self) -> Cache {
        Cache::open(&self.options.build.cache_settings()).saying(self.reporter.line_at_once())
    }

    /// A new directory for temporary files.
    pub fn scratch(&self) -> Result<Scratch, Failed> {
        let place = places::temporary(&self.options).map_err(|error| self.reporter.error(error))?.place;
        let fit = std::fs::create_dir_all(&place)
            .and_then(|()| cache::check_scratch_parent(&place).map_err(std::io::Error::other));
        let made = fit.and_then(|()| Scratch::below(&place));
        made.map_err(|error| {
            self.reporter.error(format!("making a temporary directory in {}: {error}", place.display()))
        })
    }

    /// The directory of pass 4, to be removed at the end. With `-k` and `--tmpdir` it is kept: its name is printed, and the
    /// result is None.
    pub fn take_directory(&mut self) -> Option<Scratch> {
        let directory = self.directory.take()?;
        if !self.options.build.keep && self.options.build.tmpdir.is_none() {
            return Some(directory);
        }
        say(&format!("Keeping temporary directory \"{}\"\n", directory.keep().display()));
        None
    }

    /// The bytes of a file; an error says that it could not be read.
    pub fn read_file(&self, path: &Path) -> Result<Vec<u8>, Failed> {
        std::fs::read(path).map_err(|error| self.reporter.error(format!("reading {}: {error}", path.display())))
    }
}
