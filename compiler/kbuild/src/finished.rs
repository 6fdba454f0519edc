// SPDX-License-Identifier: GPL-2.0-or-later

//! Caches finished modules across runs, by their inputs.
//!
//! The key is known after pass 1: the source text of the script and its library, the options, the kernel's build tree, the
//! compiler, the environment, this program itself. Other inputs of pass 2 (debug information, modules, headers of
//! embedded C, programs and where they were looked for) are known only when the module is finished: they are recorded in the
//! entry, which is valid as long as none of them changed.
//!
//! A module that is run at once has a number in its name, so that the same script can run twice. It is cached with the
//! number 0 and renamed when it is used; both names have the same length ([`numbered`]).

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use spile_base::cache::{Cache, Entry, Inputs, Key, Kind};
use spile_source::SourceMap;

/// A module and the messages of its build.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CachedModule {
    /// The `.ko`.
    pub module: Vec<u8>,
    /// Warnings of pass 2 and of the compiler, as they were printed.
    pub warnings: String,
    /// How many probes, functions and globals pass 2 found, in words.
    pub counts: String,
    /// Names of the modules that it probes.
    pub modules: Vec<String>,
}

/// The inputs known before pass 2.
pub struct Facts<'a> {
    /// The options that affect it, as text.
    pub options: &'a str,
    /// All files that pass 1 read.
    pub sources: &'a SourceMap,
    /// Release of the target kernel.
    pub release: &'a str,
    /// From [`crate::identity`].
    pub build: &'a str,
    /// The script's name as recorded in the module.
    pub title: &'a str,
    /// The name gets a number.
    pub numbered: bool,
}

/// Environment variables that passes 2 to 4, or the programs that they run, read.
const ENVIRONMENT: [&str; 10] = [
    "PATH",
    "ARCH",
    "CROSS_COMPILE",
    "CPATH",
    "C_INCLUDE_PATH",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "SYSTEMTAP_DEBUGINFO_PATH",
    "DEBUGINFOD_URLS",
    "SYSROOT",
];

/// Of the run, what a module depends on only if pass 2 asks for it; empty: it did not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Situation {
    /// The working directory, for paths that are not absolute.
    pub directory: String,
    /// The session's own process: what `-c` or `-x` name.
    pub process: String,
}

impl Situation {
    /// Whether what depends on this is the same in that run, of which all is known.
    fn is_that_of(&self, run: &Situation) -> bool {
        let is_same = |own: &str, its: &str| own.is_empty() || own == its;
        is_same(&self.directory, &run.directory) && is_same(&self.process, &run.process)
    }
}

/// The key of the module with these inputs.
pub fn key(facts: &Facts) -> Key {
    let mut hash = Sha256::new();
    let mut add = |text: &[u8]| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    add(itself().as_bytes());
    add(facts.options.as_bytes());
    for text in [facts.release, facts.build, facts.title, if facts.numbered { "numbered" } else { "" }] {
        add(text.as_bytes());
    }
    for name in ENVIRONMENT {
        add(std::env::var_os(name).unwrap_or_default().as_encoded_bytes());
    }
    for file in facts.sources.files() {
        add(file.name.as_bytes());
        add(&file.bytes);
    }
    Key::new(hash)
}

/// This program: its version, and an identification of this build.
fn itself() -> String {
    let state = std::fs::metadata("/proc/self/exe")
        .map(|file| format!("{} {}.{} {}", file.size(), file.mtime(), file.mtime_nsec(), file.ino()));
    format!("{} {}", env!("CARGO_PKG_VERSION"), state.unwrap_or_default())
}

/// The cached module, if none of its inputs changed; `run`: the situation of this run.
pub fn find(cache: &Cache, key: &Key, run: &Situation) -> Option<CachedModule> {
    let mut entry = cache.get(Kind::Module, key)?;
    let [directory, process] = [entry.text("directory")?, entry.text("process")?].map(str::to_string);
    let is_same = Situation { directory, process }.is_that_of(run);
    if !is_same || !Inputs::from_text(entry.text("inputs")?).is_unchanged() {
        return None;
    }
    let modules = entry.text("modules")?.lines().map(str::to_string).collect();
    let [warnings, counts] = [entry.text("warnings")?, entry.text("counts")?].map(str::to_string);
    Some(CachedModule { module: entry.take("ko")?, warnings, counts, modules })
}

/// What a module depends on besides its key.
pub struct Dependencies<I> {
    /// Files and directories, whether or not they exist.
    pub inputs: I,
    /// Of the run.
    pub situation: Situation,
}

/// Caches a module; `about` is for `--cache show`.
pub fn keep<I: IntoIterator<Item = PathBuf>>(
    cache: &Cache,
    key: &Key,
    finished: &CachedModule,
    on: Dependencies<I>,
    about: &str,
) {
    let entry = Entry::new(about)
        .with("ko", finished.module.as_slice())
        .with("warnings", finished.warnings.as_bytes())
        .with("counts", finished.counts.as_bytes())
        .with("modules", finished.modules.join("\n"))
        .with("inputs", Inputs::of(on.inputs).to_text())
        .with("directory", on.situation.directory)
        .with("process", on.situation.process);
    cache.put(Kind::Module, key, &entry);
}

/// The largest process number is 4194304 (PID_MAX_LIMIT, include/linux/threads.h).
const DIGITS: usize = 7;

/// The name of the module with that number.
pub fn numbered(stem: &str, number: u32) -> String {
    format!("{stem}_{number:0DIGITS$}")
}

/// Renames the module in all its sections, to a name of the same length.
pub fn rename(module: &mut [u8], from: &str, to: &str) {
    if from.len() != to.len() || from.is_empty() {
        return;
    }
    let mut at = 0;
    while let Some(rest) = module.get(at..) {
        let Some(found) = find_bytes(rest, from.as_bytes()) else { return };
        let place = module.iter_mut().skip(at + found);
        place.zip(to.bytes()).for_each(|(byte, new)| *byte = new);
        at += found + to.len();
    }
}

/// Searches by the first byte, which is rare in machine code and debug information whenever the whole is.
fn find_bytes(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    let (first, rest) = wanted.split_first()?;
    let mut at = 0;
    loop {
        at += bytes.get(at..)?.iter().position(|byte| byte == first)?;
        if bytes.get(at + 1..)?.starts_with(rest) {
            return Some(at);
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_until_an_input_changes() {
        let directory = tempfile::tempdir().unwrap();
        let settings = spile_base::cache::Settings {
            directory: Some(directory.path().join("cache")),
            limit: 1 << 20,
            poisoned: false,
        };
        let cache = Cache::open(&settings);
        let input = directory.path().join("vmlinux");
        std::fs::write(&input, "1").unwrap();
        let key = key(&Facts {
            options: "",
            sources: &SourceMap::new(),
            release: "6.1",
            build: "b",
            title: "x.stp",
            numbered: true,
        });
        let finished = CachedModule {
            module: vec![1, 2],
            warnings: "w\n".into(),
            counts: "1 probe".into(),
            modules: vec!["lustre".into(), "ptlrpc".into()],
        };
        let situation =
            |directory: &str, process: &str| Situation { directory: directory.into(), process: process.into() };
        let (here, there) = (situation("/a", "-c ls"), situation("/b", "-c w"));
        let keep = |situation: &Situation| {
            let on = Dependencies { inputs: [input.clone()], situation: situation.clone() };
            keep(&cache, &key, &finished, on, "about");
        };
        keep(&Situation::default());
        assert_eq!(
            [&here, &there].map(|run| find(&cache, &key, run)),
            [Some(finished.clone()), Some(finished.clone())]
        );
        for own in [situation("/a", ""), situation("", "-c ls"), here.clone()] {
            keep(&own);
            assert_eq!([&here, &there].map(|run| find(&cache, &key, run)), [Some(finished.clone()), None]);
        }
        std::fs::write(&input, "12").unwrap();
        assert_eq!(find(&cache, &key, &here), None);
    }

    #[test]
    fn names_of_as_many_bytes() {
        let (kept, own) = (numbered("spile_ab", 0), numbered("spile_ab", 4_194_304));
        assert_eq!((kept.as_str(), own.as_str()), ("spile_ab_0000000", "spile_ab_4194304"));
        let mut module = b"s spile_ab_0000000\0name=spile_ab_0000000".to_vec();
        rename(&mut module, &kept, &own);
        assert_eq!(module, b"s spile_ab_4194304\0name=spile_ab_4194304");
        rename(&mut module, "spile_ab_4194304", "x");
        assert_eq!(module, b"s spile_ab_4194304\0name=spile_ab_4194304");
    }
}
