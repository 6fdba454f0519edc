// SPDX-License-Identifier: GPL-2.0-or-later

//! The shared libraries that a program is started with: those that it and they need (DT_NEEDED), in the places and in the order in
//! which glibc's dynamic linker looks for them (ld.so(8); `_dl_map_object()` in elf/dl-load.c).
//!
//! Files of any user are read, so a program may need any number of libraries with names of any length, in any number of
//! directories: what is kept and tried is limited.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Longest path (PATH_MAX): nothing longer can be opened.
const MOST_PATH: usize = 4096;
/// Bytes of a file's DT_RPATH or DT_RUNPATH: packages that have each library in a directory of its own need some thousand.
const MOST_DIRECTORIES: usize = 64 << 10;
/// Libraries that a file needs itself, and bytes of their names.
const MOST_NEEDED: usize = 1024;
const MOST_NAMES: usize = 64 << 10;

/// What `$LIB` may stand for, which is compiled into the dynamic linker: as Debian has it, and as others do.
const LIB: [&str; 3] = ["lib/x86_64-linux-gnu", "lib64", "lib"];
const NARROW_LIB: [&str; 3] = ["lib/i386-linux-gnu", "lib", "lib32"];
/// And `$PLATFORM`; glibc before 2.37 knows the first.
const PLATFORM: [&str; 2] = ["haswell", "x86_64"];
const NARROW_PLATFORM: [&str; 2] = ["i686", "i586"];

/// Directories that are searched whatever the configuration says.
const USUAL: [&str; 6] =
    ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"];
const NARROW_USUAL: [&str; 6] =
    ["/lib/i386-linux-gnu", "/usr/lib/i386-linux-gnu", "/lib32", "/usr/lib32", "/lib", "/usr/lib"];

/// What a file tells the dynamic linker (System V ABI, chapter 5). Of tags that come several times the last one counts, but of
/// DT_NEEDED.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// DT_NEEDED, in order.
    pub needed: Vec<Vec<u8>>,
    /// DT_SONAME: what needs a library of that name gets this one.
    pub name: Option<Vec<u8>>,
    /// DT_RPATH, also for what its libraries need.
    pub load_path: Option<Vec<u8>>,
    /// DT_RUNPATH, for what it needs itself; DT_RPATH does not count then.
    pub run_path: Option<Vec<u8>>,
    /// PT_INTERP: path of the dynamic linker.
    pub interpreter: Option<Vec<u8>>,
    /// DF_1_NODEFLIB: not in the directories of the system.
    pub without_system: bool,
}

/// Tags of the dynamic section's entries.
pub mod tag {
    /// Marks the end.
    pub const NULL: i64 = 0;
    /// Of [`super::Asked::needed`].
    pub const NEEDED: i64 = 1;
    /// Of [`super::Asked::name`].
    pub const SONAME: i64 = 14;
    /// Of [`super::Asked::load_path`].
    pub const RPATH: i64 = 15;
    /// Of [`super::Asked::run_path`].
    pub const RUNPATH: i64 = 29;
    /// Its value has the next one's bits.
    pub const FLAGS_1: i64 = 0x6fff_fffb;
    /// Of [`super::Asked::without_system`].
    pub const NODEFLIB: u64 = 0x800;
}

impl Asked {
    /// From the dynamic section's entries, tag and value, as far as its end, and its strings.
    pub fn read(entries: impl Iterator<Item = (i64, u64)>, strings: &[u8], interpreter: Option<Vec<u8>>) -> Asked {
        // Only as far as it counts: all entries of a hostile file can have one string of the size of the file.
        let text = |at: u64, most: usize| -> Option<Vec<u8>> {
            let rest = strings.get(usize::try_from(at).ok()?..)?;
            Some(rest.iter().take(most).copied().take_while(|byte| *byte != 0).collect())
        };
        let name_at = |at: u64| text(at, MOST_PATH).filter(|name| name.len() < MOST_PATH);
        let mut asked =
            Asked { interpreter: interpreter.filter(|path| (1..MOST_PATH).contains(&path.len())), ..Asked::default() };
        let (mut name, mut load_path, mut run_path, mut bytes) = (None, None, None, 0);
        for (tag, value) in entries.take_while(|(tag, _)| *tag != tag::NULL) {
            match tag {
                tag::NEEDED if asked.needed.len() < MOST_NEEDED && bytes < MOST_NAMES => {
                    let name = name_at(value);
                    bytes += name.as_ref().map_or(0, Vec::len);
                    asked.needed.extend(name);
                }
                tag::SONAME => name = Some(value),
                tag::RPATH => load_path = Some(value),
                tag::RUNPATH => run_path = Some(value),
                tag::FLAGS_1 => asked.without_system = value & tag::NODEFLIB != 0,
                _ => {}
            }
        }
        asked.name = name.and_then(name_at);
        // One that cannot be read is there nevertheless.
        let directories = |at: u64| text(at, MOST_DIRECTORIES).unwrap_or_default();
        asked.run_path = run_path.map(directories);
        asked.load_path = load_path.filter(|_| asked.run_path.is_none()).map(directories);
        asked
    }
}

/// Where libraries are looked for.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Files of 32 bits are looked for.
    pub narrow: bool,
    /// The directories of `LD_LIBRARY_PATH`.
    pub named: Vec<PathBuf>,
    /// The libraries of `LD_PRELOAD`.
    pub preloaded: Vec<Vec<u8>>,
    /// The directories of the system ([`system`]).
    pub system: Vec<PathBuf>,
    /// Most libraries that are found.
    pub most: usize,
    /// Most files that are looked for.
    pub tries: usize,
}

impl Places {
    /// The directories of `LD_LIBRARY_PATH`, whose entries end with a colon or semicolon; an empty one is the current directory.
    pub fn named_in(variable: &OsStr) -> Vec<PathBuf> {
        let entries = variable.as_bytes().split(|byte| matches!(byte, b':' | b';'));
        let entries = entries.filter(|_| !variable.is_empty());
        entries.map(|entry| if entry.is_empty() { PathBuf::from(".") } else { path(entry) }).collect()
    }

    /// The libraries of `LD_PRELOAD`, with blanks or colons between them.
    pub fn preloaded_in(variable: &OsStr) -> Vec<Vec<u8>> {
        let names = variable.as_bytes().split(|byte| matches!(byte, b':' | b' '));
        names.filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect()
    }
}

/// The directories of the system, by its files `ld.so.conf` and `ld.so.conf.d/*.conf` in `etc`, for files of 32 bits or of 64.
pub fn system(etc: &Path, narrow: bool) -> Vec<PathBuf> {
    let below = std::fs::read_dir(etc.join("ld.so.conf.d")).into_iter().flatten().flatten();
    let mut below: Vec<PathBuf> = below.map(|entry| entry.path()).collect();
    below.retain(|path| path.extension().is_some_and(|end| end == "conf"));
    below.sort();
    let mut directories = Vec::new();
    for file in [etc.join("ld.so.conf")].into_iter().chain(below) {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        directories.extend(lines.filter(|line| line.starts_with('/')).map(PathBuf::from));
    }
    directories.extend(if narrow { NARROW_USUAL } else { USUAL }.map(PathBuf::from));
    directories
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Paths in the order in which they are loaded; the dynamic linker comes first.
    pub files: Vec<PathBuf>,
    /// Names of those that are not there.
    pub missing: Vec<Vec<u8>>,
}

/// A file that is loaded.
struct Loaded {
    asked: Asked,
    /// Its directory, for `$ORIGIN`.
    origin: PathBuf,
    /// For which it was loaded.
    by: Option<usize>,
}

/// The libraries of `program`, which asks for `asked`. `open`: what the file at a path asks for; None: there is none of that
/// kind. What has been found when `is_over` becomes true is all.
pub fn find(
    program: &Path,
    asked: Asked,
    places: &Places,
    open: &mut dyn FnMut(&Path) -> Option<Asked>,
    is_over: &dyn Fn() -> bool,
) -> Found {
    let interpreter = asked.interpreter.clone();
    let mut search = Search { places, open, tries: places.tries, loaded: Vec::new(), names: BTreeSet::new() };
    let mut found = Found::default();
    search.loaded.push(Loaded { asked, origin: parent(program), by: None });
    // It is there before the libraries, which name it, too.
    if let Some(name) = interpreter {
        match search.open(&path(&name)) {
            Some(asked) => {
                search.names.extend(asked.name);
                found.files.push(path(&name));
            }
            None => found.missing.push(name),
        }
    }
    let mut waiting: VecDeque<(usize, Vec<u8>)> =
        places.preloaded.iter().take(MOST_NEEDED).map(|name| (0, name.clone())).collect();
    let mut next = 0;
    // Breadth first, as they are loaded: of several that fit a name, the one that is loaded first serves all.
    while !is_over() {
        let Some((by, name)) = waiting.pop_front() else {
            let Some(loaded) = search.loaded.get(next) else { break };
            waiting.extend(loaded.asked.needed.iter().map(|name| (next, name.clone())));
            next += 1;
            continue;
        };
        if found.files.len() >= places.most || search.names.contains(&name) {
            continue;
        }
        match search.library(by, &name) {
            Some((place, asked)) => {
                search.names.extend(asked.name.clone());
                search.names.insert(name);
                let origin = parent(&place);
                search.loaded.push(Loaded { asked, origin, by: Some(by) });
                if !found.files.contains(&place) {
                    found.files.push(place);
                }
            }
            // One of LD_PRELOAD is left out then, and may be found for another file.
            None if found.missing.contains(&name) => {}
            None => found.missing.push(name),
        }
    }
    found
}

struct Search<'s> {
    places: &'s Places,
    open: &'s mut dyn FnMut(&Path) -> Option<Asked>,
    /// Files that may still be looked for.
    tries: usize,
    loaded: Vec<Loaded>,
    /// By which the loaded files are known.
    names: BTreeSet<Vec<u8>>,
}

impl Search<'_> {
    fn open(&mut self, path: &Path) -> Option<Asked> {
        self.tries = self.tries.checked_sub(1)?;
        (self.open)(path)
    }

    /// The library of that name that is loaded for a file.
    fn library(&mut self, by: usize, name: &[u8]) -> Option<(PathBuf, Asked)> {
        let narrow = self.places.narrow;
        if name.contains(&b'/') {
            let origin = &self.loaded.get(by)?.origin;
            let places = expanded(name, origin, narrow);
            return places.into_iter().find_map(|place| self.open(&place).map(|asked| (place, asked)));
        }
        let (own, without_system) = {
            let asked = &self.loaded.get(by)?.asked;
            (asked.run_path.clone(), asked.without_system)
        };
        // DT_RPATH of the file, of that for which it was loaded, and so on.
        let mut around = if own.is_none() { Some(by) } else { None };
        while let Some(file) = around.and_then(|at| self.loaded.get(at)) {
            let (paths, origin) = (file.asked.load_path.clone(), file.origin.clone());
            around = file.by;
            if let Some(found) = paths.and_then(|paths| self.in_list(&paths, &origin, name)) {
                return Some(found);
            }
        }
        let places = self.places;
        if let Some(found) = places.named.iter().find_map(|directory| self.in_directory(directory, name)) {
            return Some(found);
        }
        let origin = self.loaded.get(by)?.origin.clone();
        if let Some(found) = own.and_then(|paths| self.in_list(&paths, &origin, name)) {
            return Some(found);
        }
        let system = places.system.iter().filter(|_| !without_system);
        system.into_iter().find_map(|directory| self.in_directory(directory, name))
    }

    fn in_list(&mut self, paths: &[u8], origin: &Path, name: &[u8]) -> Option<(PathBuf, Asked)> {
        // An empty list is none; an empty entry is the current directory.
        let entries = paths.split(|byte| *byte == b':').filter(|_| !paths.is_empty());
        for entry in entries {
            if self.tries == 0 {
                return None;
            }
            let directories =
                if entry.is_empty() { vec![PathBuf::from(".")] } else { expanded(entry, origin, self.places.narrow) };
            if let Some(found) = directories.iter().find_map(|directory| self.in_directory(directory, name)) {
                return Some(found);
            }
        }
        None
    }

    /// In the directory, or in one below it for processors like this one.
    fn in_directory(&mut self, directory: &Path, name: &[u8]) -> Option<(PathBuf, Asked)> {
        let below = directory.join("glibc-hwcaps");
        let levels: &[&str] = if self.places.narrow { &[] } else { levels() };
        let all = levels.iter().map(|level| below.join(level)).chain([directory.to_path_buf()]);
        let name = OsStr::from_bytes(name);
        all.map(|directory| directory.join(name)).find_map(|place| self.open(&place).map(|asked| (place, asked)))
    }
}

/// Names of directories below glibc-hwcaps that are searched on this processor (the psABI's levels).
fn levels() -> &'static [&'static str] {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        let second = has!("cmpxchg16b") && has!("popcnt") && has!("sse3") && has!("sse4.2") && has!("ssse3");
        let third = second
            && (has!("avx2") && has!("bmi1") && has!("bmi2") && has!("f16c") && has!("fma"))
            && (has!("lzcnt") && has!("movbe"));
        let fourth =
            third && (has!("avx512f") && has!("avx512bw") && has!("avx512cd") && has!("avx512dq") && has!("avx512vl"));
        match (fourth, third, second) {
            (true, ..) => &["x86-64-v4", "x86-64-v3", "x86-64-v2"],
            (_, true, _) => &["x86-64-v3", "x86-64-v2"],
            (.., true) => &["x86-64-v2"],
            _ => &[],
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    &[]
}

/// The paths that a text may mean: without `$ORIGIN`, `$LIB` and `$PLATFORM`.
fn expanded(text: &[u8], origin: &Path, narrow: bool) -> Vec<PathBuf> {
    let (libs, platforms) = if narrow { (NARROW_LIB, NARROW_PLATFORM) } else { (LIB, PLATFORM) };
    let names = |token: &[u8]| tokens(text).any(|(_, found, _)| found == token);
    let libs = libs.get(..if names(b"LIB") { libs.len() } else { 1 }).unwrap_or_default();
    let platforms = platforms.get(..if names(b"PLATFORM") { platforms.len() } else { 1 }).unwrap_or_default();
    let mut paths = Vec::new();
    for (lib, platform) in libs.iter().flat_map(|lib| platforms.iter().map(move |platform| (lib, platform))) {
        let mut whole = Vec::new();
        for (before, token, written) in tokens(text) {
            whole.extend_from_slice(before);
            whole.extend_from_slice(match token {
                b"ORIGIN" => origin.as_os_str().as_bytes(),
                b"LIB" => lib.as_bytes(),
                b"PLATFORM" => platform.as_bytes(),
                _ => written,
            });
            if whole.len() >= MOST_PATH {
                break;
            }
        }
        if whole.len() < MOST_PATH {
            paths.push(path(&whole));
        }
    }
    paths
}

/// Of each word after a `$`: the text before it, the word, and all of it as it is written; the rest at last.
fn tokens(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8], &[u8])> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let left = rest.take()?;
        let Some(at) = left.iter().position(|byte| *byte == b'$') else { return Some((left, &b""[..], &b""[..])) };
        let (before, from) = left.split_at(at);
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let behind = from.get(1..).unwrap_or_default();
        let (word, length) = match behind.strip_prefix(b"{") {
            Some(inner) => {
                let end = inner.iter().position(|byte| *byte == b'}');
                (end.and_then(|end| inner.get(..end)).unwrap_or_default(), end.map_or(1, |end| end + 3))
            }
            None => {
                let end = behind.iter().position(|byte| !is_part(byte)).unwrap_or(behind.len());
                (behind.get(..end).unwrap_or_default(), end + 1)
            }
        };
        let (written, after) = from.split_at_checked(length)?;
        rest = Some(after);
        Some((before, word, written))
    })
}

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

fn parent(file: &Path) -> PathBuf {
    file.parent().unwrap_or(Path::new("/")).to_path_buf()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Files by their paths.
    type Files = BTreeMap<&'static str, Asked>;

    fn asks(needed: &[&str]) -> Asked {
        Asked { needed: needed.iter().map(|name| name.as_bytes().to_vec()).collect(), ..Asked::default() }
    }

    fn places() -> Places {
        Places { system: vec!["/lib".into()], most: 100, tries: 1000, ..Places::default() }
    }

    fn found(files: &Files, places: &Places) -> Vec<String> {
        let mut open = |path: &Path| files.get(path.to_str()?).cloned();
        let asked = open(Path::new("/bin/p")).unwrap();
        let found = find(Path::new("/bin/p"), asked, places, &mut open, &|| false);
        found.files.iter().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn words_after_a_dollar() {
        let paths = |text: &str| -> Vec<String> {
            let paths = expanded(text.as_bytes(), Path::new("/o"), false);
            paths.iter().map(|path| path.display().to_string()).collect()
        };
        assert_eq!(paths("$ORIGIN/../${ORIGIN}x$"), ["/o/..//ox$"]);
        assert_eq!(paths("$ORIGINS/$ORIGIN_/${ORIGIN"), ["$ORIGINS/$ORIGIN_/${ORIGIN"]);
        assert_eq!(paths("/a/$LIB"), ["/a/lib/x86_64-linux-gnu", "/a/lib64", "/a/lib"]);
        assert_eq!(paths("/${LIB}/$PLATFORM").len(), 6);
        assert_eq!(paths(&"$ORIGIN".repeat(2000)).len(), 1);
        assert!(paths(&"$ORIGIN".repeat(2048)).is_empty());
    }

    #[test]
    fn the_library_that_is_loaded_first_serves_all() {
        let with = |path: &str, needed: &[&str]| Asked { run_path: Some(path.into()), ..asks(needed) };
        let files = Files::from([
            ("/bin/p", asks(&["a", "b"])),
            ("/lib/a", with("/of-a", &["x"])),
            ("/lib/b", with("/of-b", &["x"])),
            ("/of-a/x", asks(&[])),
            ("/of-b/x", asks(&[])),
        ]);
        assert_eq!(found(&files, &places()), ["/lib/a", "/lib/b", "/of-a/x"]);
    }

    #[test]
    fn a_name_in_a_library_counts_as_its_file_s() {
        let files = Files::from([
            ("/bin/p", Asked { interpreter: Some(b"/lib/ld".into()), ..asks(&["/opt/own", "libc"]) }),
            ("/lib/ld", Asked { name: Some(b"ld.so".into()), ..asks(&[]) }),
            ("/opt/own", Asked { name: Some(b"libc".into()), ..asks(&["ld.so"]) }),
            ("/lib/libc", asks(&[])),
            ("/lib/ld.so", asks(&[])),
        ]);
        assert_eq!(found(&files, &places()), ["/lib/ld", "/opt/own"]);
    }

    #[test]
    fn lists_of_directories_in_their_order() {
        let all = || {
            Files::from([
                ("/lib/a", asks(&[])),
                ("/run/a", asks(&[])),
                ("/load/a", asks(&[])),
                ("/named/a", asks(&[])),
                ("./a", asks(&[])),
            ])
        };
        let first = |asked: Asked, named: &[&str]| {
            let mut files = all();
            files.insert("/bin/p", Asked { needed: vec![b"a".into()], ..asked });
            let named = named.iter().map(PathBuf::from).collect();
            found(&files, &Places { named, ..places() }).first().cloned().unwrap_or_default()
        };
        let path = |path: &str| Some(path.as_bytes().to_vec());
        let both = || Asked { run_path: path("/run"), ..Asked::default() };
        assert_eq!(first(both(), &["/named"]), "/named/a");
        assert_eq!(first(both(), &[]), "/run/a");
        assert_eq!(first(Asked { load_path: path("/none:/load"), ..Asked::default() }, &["/named"]), "/load/a");
        assert_eq!(first(Asked { load_path: path("/none:"), ..Asked::default() }, &["/named"]), "./a");
        assert_eq!(first(Asked { run_path: path(""), ..Asked::default() }, &[]), "/lib/a");
        assert_eq!(first(Asked { without_system: true, ..Asked::default() }, &[]), "");
    }

    #[test]
    fn entries_of_the_dynamic_section() {
        let strings = b"\0one\0two\0";
        let entries = [(tag::RUNPATH, 1), (tag::RPATH, 1), (tag::RUNPATH, 5), (tag::NEEDED, 5), (tag::NULL, 0)];
        let behind = [(tag::NEEDED, 1)];
        let asked = Asked::read(entries.into_iter().chain(behind), strings, None);
        assert_eq!(asked, Asked { run_path: Some(b"two".into()), ..asks(&["two"]) });
        // To look at all of it each time, or to have a copy for each, would take minutes and gigabytes.
        let endless = vec![b'a'; 64 << 20];
        let entries = (0..1 << 20).map(|at| (if at % 2 == 0 { tag::NEEDED } else { tag::RPATH }, at));
        let asked = Asked::read(entries, &endless, None);
        assert_eq!((asked.needed.len(), asked.load_path.map(|path| path.len())), (0, Some(MOST_DIRECTORIES)));
    }

    #[test]
    fn hostile_programs_cost_little() {
        let endless = Asked { load_path: Some("/x:".repeat(20_000).into()), ..asks(&["a", "b", "c"]) };
        let (mut opened, places) = (0, places());
        let mut open = |_: &Path| {
            opened += 1;
            None
        };
        let found = find(Path::new("/bin/p"), endless, &places, &mut open, &|| false);
        assert_eq!((found.files.len(), found.missing.len(), opened), (0, 3, places.tries));
        let mut number = 0;
        let mut open = |_: &Path| {
            number += 1;
            Some(asks(&[&number.to_string()]))
        };
        let found = find(Path::new("/bin/p"), asks(&["0"]), &places, &mut open, &|| false);
        assert_eq!(found.files.len(), places.most);
    }
}
