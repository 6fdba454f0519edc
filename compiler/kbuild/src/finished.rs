// SPDX-License-Identifier: GPL-2.0-or-later

//! Caches finished modules across runs, by their inputs.
//!
//! The key is known after pass 1: the source text of the script and its library, the options, the kernel's build tree, the
//! compiler, the environment, this program itself. Other inputs of pass 2 (debug information, modules, headers of
//! embedded C) are known only when the module is finished: they are recorded in the entry, which is valid as long as
//! none of them changed.
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
const ENVIRONMENT: [&str; 8] = [
    "PATH",
    "ARCH",
    "CROSS_COMPILE",
    "CPATH",
    "C_INCLUDE_PATH",
    "SYSTEMTAP_DEBUGINFO_PATH",
    "DEBUGINFOD_URLS",
    "SYSROOT",
];

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

/// The cached module, if none of its inputs changed.
pub fn find(cache: &Cache, key: &Key) -> Option<CachedModule> {
    let mut entry = cache.get(Kind::Module, key)?;
    if !Inputs::from_text(entry.text("inputs")?).is_unchanged() {
        return None;
    }
    let modules = entry.text("modules")?.lines().map(str::to_string).collect();
    let [warnings, counts] = [entry.text("warnings")?, entry.text("counts")?].map(str::to_string);
    Some(CachedModule { module: entry.take("ko")?, warnings, counts, modules })
}

/// Caches a module; `about` is for `--cache show`.
pub fn keep(cache: &Cache, key: &Key, finished: &CachedModule, inputs: impl IntoIterator<Item = PathBuf>, about: &str) {
    let entry = Entry::new(about)
        .with("ko", finished.module.as_slice())
        .with("warnings", finished.warnings.as_bytes())
        .with("counts", finished.counts.as_bytes())
        .with("modules", finished.modules.join("\n"))
        .with("inputs", Inputs::of(inputs).to_text());
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

/// Whether only `inputs` determine how these points are resolved: not if files are found by a pattern.
pub fn is_decided<'a>(points: impl IntoIterator<Item = &'a str>) -> bool {
    let by_pattern = |point: &str| {
        let path = point.strip_prefix("process(\"").and_then(|rest| rest.split('"').next());
        path.is_some_and(|path| path.contains(['*', '?', '[']))
    };
    !points.into_iter().any(by_pattern)
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
        keep(&cache, &key, &finished, [input.clone()], "about");
        assert_eq!(find(&cache, &key), Some(finished));
        std::fs::write(&input, "12").unwrap();
        assert_eq!(find(&cache, &key), None);
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

    #[test]
    fn patterns_of_files_are_not_kept() {
        assert!(is_decided(["begin", "process(\"/bin/ls\").function(\"*\")", "kernel.function(\"vfs_*\")"]));
        assert!(!is_decided(["begin", "process(\"/usr/bin/*\").begin"]));
    }
}
