// SPDX-License-Identifier: GPL-2.0-or-later

//! What one run of the compiler has: its options, the texts read so far, the reporter, and the directory that it works in.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use spile_abi::say::say;
use spile_base::cache::{self, Cache};
use spile_base::scratch::Scratch;
use spile_core::library::Offered;
use spile_source::SourceMap;

use crate::cli::options::Options;
use crate::cli::places;
use crate::cli::report::Report;
use crate::reporter::{Failed, Reporter};

/// The state of one run. Commands and passes get it, and add to `sources` and `times`.
pub struct Session {
    /// The command line.
    pub options: Options,
    /// All texts that were read.
    pub sources: SourceMap,
    /// What the library has to offer, since pass 1.
    pub offered: Rc<Offered>,
    /// Where messages go.
    pub reporter: Reporter,
    /// How long each stage took, for `--time-report`.
    pub times: Report,
    /// Files that pass 2 has read besides the kernel's: headers of casts, which a module in the cache depends on.
    pub inputs: Vec<PathBuf>,
    /// Has what pass 4 made; removed when this is dropped.
    pub directory: Option<Scratch>,
}

impl Session {
    /// A run with these options that has done nothing yet.
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

    /// The cache of this user, as the options and the environment have it.
    pub fn cache(&self) -> Cache {
        Cache::open(&self.options.build.cache_settings())
    }

    /// A new directory for temporary files.
    pub fn scratch(&self) -> Result<Scratch, Failed> {
        let place = places::temporary(&self.options).map_err(|error| self.reporter.error(error))?.place;
        let fit = std::fs::create_dir_all(&place)
            .and_then(|()| cache::fit_for_scratch(&place).map_err(std::io::Error::other));
        let made = fit.and_then(|()| Scratch::below(&place));
        made.map_err(|error| {
            self.reporter.error(format!("making a temporary directory in {}: {error}", place.display()))
        })
    }

    /// The directory of pass 4, to be removed at the end. With `-k` and `--tmpdir` it stays: its name is printed, and the
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
