// SPDX-License-Identifier: GPL-2.0-or-later

//! Programs and libraries in user space: by path, by name in `$PATH`, by build-id, by process.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Display;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use super::debuginfod::Servers;
use super::error::TargetError;
use super::index_file::IndexFile;
use super::kernel::{Root, SearchOptions};
use super::libraries::{self, resolved};
use super::object::Object;
use super::places::debug_places;
use crate::Elf;
use crate::object::file::unpack;
use crate::object::{Unwinder, go};
use spile_abi::bounded;
use spile_base::cache::Cache;
use spile_base::{glob, regular};

/// The programs and libraries of one system.
pub struct Programs {
    options: SearchOptions,
    cache: Option<Arc<Cache>>,
    servers: Option<Servers>,
    /// A file of `--export-index`; it is opened for the first program without other debug information.
    index: Option<PathBuf>,
    opened_index: OnceCell<Result<IndexFile, TargetError>>,
    opened: RefCell<HashMap<PathBuf, Rc<Object>>>,
    /// Of what processes run: the root directory of the process, and the path in it.
    seen_by_process: RefCell<HashMap<PathBuf, (PathBuf, PathBuf)>>,
    looked: RefCell<Looked>,
    /// What unwinds stacks in libraries, by path, for files of 32 bits or of 64.
    pub(super) unwinders: RefCell<HashMap<(PathBuf, bool), Option<Unwinder>>>,
}

/// Where programs, libraries and their debug information were looked for: what a stored result depends on besides the files that
/// were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// The paths, with symbolic links as they were given, whether or not something is there. Of a library also what says where
    /// the dynamic linker finds it.
    pub places: BTreeSet<PathBuf>,
    /// One of them was given from the working directory on.
    pub relative: bool,
    /// Which files there are was asked, or what a process has mapped: no list of files says whether the answer is still the same.
    pub open: bool,
    /// The session's own process was asked for (`-c`, `-x`).
    pub own_process: bool,
}

impl Looked {
    fn at<'p>(&mut self, places: impl IntoIterator<Item = &'p PathBuf>) {
        for place in places {
            self.relative |= place.is_relative();
            self.places.insert(std::path::absolute(place).unwrap_or_else(|_| place.clone()));
        }
    }

    fn add(&mut self, other: &Looked) {
        self.places.extend(other.places.iter().cloned());
        self.relative |= other.relative;
        self.open |= other.open;
        self.own_process |= other.own_process;
    }
}

/// Digits of a build-id (an SHA-1), by which `process("...")` may name a program.
const BUILD_ID_DIGITS: usize = 40;

/// Interpreters of interpreters that are followed.
const MOST_INTERPRETERS: usize = 4;

impl Programs {
    /// Those of the system that `options` describe; nothing is read yet.
    pub fn new(options: SearchOptions) -> Programs {
        Programs {
            options,
            cache: None,
            servers: None,
            index: None,
            opened_index: OnceCell::new(),
            opened: RefCell::default(),
            seen_by_process: RefCell::default(),
            looked: RefCell::default(),
            unwinders: RefCell::default(),
        }
    }

    /// Where something was looked for so far.
    pub fn looked(&self) -> Looked {
        self.looked.borrow().clone()
    }

    /// What `find` finds, and where it looked: that counts when it is given to [`Programs::depends_on`].
    pub fn apart<T>(&self, find: impl FnOnce(&Programs) -> T) -> (T, Looked) {
        let before = self.looked.take();
        let found = find(self);
        (found, self.looked.replace(before))
    }

    /// What was found by [`Programs::apart`] is used.
    pub fn depends_on(&self, looked: &Looked) {
        self.looked.borrow_mut().add(looked);
    }

    /// The same, with tables of debug information stored in `cache` from run to run.
    #[must_use]
    pub fn with_cache(mut self, cache: Cache) -> Programs {
        self.cache = Some(Arc::new(cache));
        self
    }

    /// The same, with debug information that is not installed fetched from these servers.
    #[must_use]
    pub fn with_servers(mut self, servers: Option<Servers>) -> Programs {
        self.servers = servers;
        self
    }

    /// The same, with debug information that is not installed taken from an index.
    #[must_use]
    pub fn with_index(mut self, index: Option<PathBuf>) -> Programs {
        self.index = index;
        self
    }

    fn indexed(&self, build_id: &[u8]) -> Result<Option<Elf>, TargetError> {
        let Some(path) = self.index.as_ref().filter(|_| !build_id.is_empty()) else { return Ok(None) };
        let index = self.opened_index.get_or_init(|| IndexFile::open(path)).as_ref().map_err(Clone::clone)?;
        index.program(build_id).transpose()
    }

    pub(super) fn root(&self) -> Root {
        Root(self.options.sysroot.clone())
    }

    fn debug_dirs(&self) -> Vec<PathBuf> {
        self.options.debug_dirs.iter().cloned().chain([self.root().at("/usr/lib/debug")]).collect()
    }

    /// The path of the program, as processes that run it map it, without symbolic links; of a script that of its interpreter.
    pub fn find(&self, name: &str) -> Result<PathBuf, TargetError> {
        if name.len() == BUILD_ID_DIGITS && name.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return self.of_build_id(name);
        }
        let looked = match name.contains('/') {
            true => vec![self.root().at(name)],
            false => self.path_directories().iter().map(|directory| directory.join(name)).collect(),
        };
        self.looked.borrow_mut().at(&looked);
        match looked.iter().map(|path| self.canonical(path)).find(|path| path.is_file()) {
            Some(path) => Ok(self.interpreted(&path, 0)),
            None if !name.contains('/') && name.contains(".so") => self.library(name),
            None if name.contains('/') && looked.iter().any(|path| path.is_dir()) => {
                Err(TargetError::Directory { name: name.into() })
            }
            None => Err(TargetError::NoSuchProgram { name: name.into(), near: self.near(name), looked }),
        }
    }

    /// The paths that a shell pattern fits, one for each file, sorted; a pattern without `/` is one of names in `$PATH`.
    pub fn find_all(&self, pattern: &str) -> Vec<PathBuf> {
        self.looked.borrow_mut().open = true;
        let mut found = Vec::new();
        if pattern.contains('/') {
            let parts: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
            expand(&self.root().at("/"), &parts, &mut found);
        } else {
            self.path_directories().iter().for_each(|directory| expand(directory, &[pattern], &mut found));
        }
        let mut found: Vec<PathBuf> =
            found.iter().filter(|path| is_elf(path)).map(|path| self.canonical(path)).collect();
        found.sort();
        found.dedup();
        // Of a file with several links the first: a probe is in the file, and would be there once for each.
        let mut files = HashSet::new();
        found.retain(|path| fs::metadata(path).is_ok_and(|file| files.insert((file.dev(), file.ino()))));
        found
    }

    /// The path of a file of this system where that runs: without the directory that stands for its `/`.
    pub fn installed(&self, path: &Path) -> PathBuf {
        let roots = self.options.sysroot.iter().flat_map(|root| [fs::canonicalize(root).ok(), Some(root.clone())]);
        let below = roots.flatten().find_map(|root| Some(path.strip_prefix(root).ok()?.to_path_buf()));
        below.map_or_else(|| path.to_path_buf(), |below| Path::new("/").join(below))
    }

    /// Without symbolic links, as far as they lead somewhere; those of another system lead below its root directory.
    fn canonical(&self, path: &Path) -> PathBuf {
        let below = self.options.sysroot.as_ref().and_then(|root| Some((root, path.strip_prefix(root).ok()?)));
        match below {
            Some((root, inside)) => resolved(&fs::canonicalize(root).unwrap_or_else(|_| root.clone()), inside),
            None => canonical(path),
        }
    }

    /// What a running process runs: its path; where that is not the file for us (it has been deleted or replaced, has no name,
    /// or is in another mount namespace), the link by which the kernel leads to it.
    pub fn of_process(&self, pid: i64) -> Result<PathBuf, TargetError> {
        let link = PathBuf::from(format!("/proc/{pid}/exe"));
        self.looked.borrow_mut().at([&link]);
        let failed = |error| TargetError::NoSuchProcess { pid, message: format!("{}: {error}", link.display()) };
        let path = fs::read_link(&link).map_err(failed)?;
        let found = if is_same_file(&path, &link) { path.clone() } else { link };
        let seen = (PathBuf::from(format!("/proc/{pid}/root")), path);
        self.seen_by_process.borrow_mut().insert(found.clone(), seen);
        Ok(found)
    }

    /// Files that may have the debug information of a program where a process runs it that has a root directory of its own, as
    /// in a container.
    fn places_in_root(&self, path: &Path, own: &Elf) -> Vec<PathBuf> {
        let seen = in_root_of_process(path).or_else(|| self.seen_by_process.borrow().get(path).cloned());
        let Some((root, inside)) = seen else { return Vec::new() };
        let inside = root.join(inside.strip_prefix("/").unwrap_or(&inside));
        let places = debug_places(&inside, own, &[root.join("usr/lib/debug")], Some(&root));
        // Links of a container lead to its own files.
        places.iter().map(|place| canonical(place)).collect()
    }

    /// The debug files of a program, those of this system first.
    fn debug_files<'p>(&'p self, path: &'p Path, own: &'p Elf) -> impl Iterator<Item = Elf> + 'p {
        let places = debug_places(path, own, &self.debug_dirs(), self.options.sysroot.as_deref());
        self.looked.borrow_mut().at(&places);
        let of_system = places.into_iter().filter_map(|place| Elf::open_program(&place).ok());
        let of_process = self.places_in_root(path, own).into_iter().filter_map(|place| open_beside(&place, path));
        of_system.chain(of_process).filter(|debug| own.is_described_by(debug))
    }

    /// The libraries of a program that fit `name`, a path or a shell pattern for a file name or path; of a running process those
    /// that it has mapped.
    pub fn libraries(&self, program: &Object, pid: Option<i64>, name: &str) -> Result<Vec<PathBuf>, TargetError> {
        let all = match pid {
            Some(pid) => {
                self.looked.borrow_mut().open = true;
                mapped_by(pid)?
            }
            None => {
                let inside = in_root_of_process(program.path()).map(|(root, _)| Root(Some(root)));
                // Of this environment: the command of -c has it, and who starts a program here usually too.
                let elsewhere = inside.is_some() || self.options.sysroot.is_some();
                let value = |name: &str| std::env::var_os(name).filter(|_| !elsewhere);
                let root = inside.unwrap_or_else(|| self.root());
                libraries::of_program(program.path(), program.mapped(), &root, value)
            }
        };
        let fits = |path: &&PathBuf| {
            let file = path.file_name().map(|file| file.to_string_lossy().into_owned()).unwrap_or_default();
            let tail =
                || self.canonical(path).file_name().is_some_and(|file| glob::matches(name, &file.to_string_lossy()));
            glob::matches(name, &file) || glob::matches(name, &path.to_string_lossy()) || tail()
        };
        self.looked.borrow_mut().at(all.iter().chain([&self.root().at("/etc/ld.so.cache")]));
        let mut found: Vec<PathBuf> = all.iter().filter(fits).map(|path| self.canonical(path)).collect();
        found.sort();
        found.dedup();
        if !found.is_empty() {
            return Ok(found);
        }
        // One that it opens itself (dlopen) is none of those that it needs.
        if name.contains('/') && !glob::is_pattern(name) {
            self.looked.borrow_mut().at([&PathBuf::from(name)]);
        }
        if name.contains('/') && !glob::is_pattern(name) && Path::new(name).is_file() {
            return Ok(vec![self.canonical(Path::new(name))]);
        }
        let named = |path: &PathBuf| path.file_name().map(|file| file.to_string_lossy().into_owned());
        let mut there: Vec<String> = all.iter().filter_map(named).collect();
        there.sort();
        there.dedup();
        Err(TargetError::NoSuchLibrary { name: name.into(), program: program.name().into(), there })
    }

    /// The path of the library of that file name (`libc.so.6`) in the system's directories, without symbolic links.
    pub fn library(&self, name: &str) -> Result<PathBuf, TargetError> {
        let directories = libraries::system_directories(&self.root());
        let looked: Vec<PathBuf> = directories.iter().map(|directory| directory.join(name)).collect();
        self.looked.borrow_mut().at(&looked);
        match looked.iter().find(|path| is_elf(path)) {
            Some(path) => Ok(canonical(path)),
            None => Err(TargetError::NoSuchProgram { name: name.into(), near: Vec::new(), looked }),
        }
    }

    /// The same of any system, for files of 32 bits (`narrow`) or of 64; `None`: there is none.
    pub(super) fn library_in(&self, root: &Root, name: &str, narrow: bool) -> Option<PathBuf> {
        let directories = libraries::directories(root, narrow);
        let looked: Vec<PathBuf> = directories.iter().map(|directory| directory.join(name)).collect();
        self.looked.borrow_mut().at(&looked);
        looked.iter().find(|path| libraries::is_for(path, narrow)).map(|path| self.canonical(path))
    }

    /// The path of the library that is named without its version, as `libssl` or `libssl.so.3`; `None`: there is none. Of several
    /// it is the one with the shortest name, which programs are linked with.
    pub fn library_of_any_version(&self, name: &str) -> Option<PathBuf> {
        let beginning = if name.contains(".so") { name.to_string() } else { format!("{name}.so.") };
        libraries::system_directories(&self.root()).iter().find_map(|directory| {
            let names = std::fs::read_dir(directory).ok()?.flatten().map(|entry| entry.file_name());
            let fits = names.filter(|file| file.to_string_lossy().starts_with(&beginning));
            Some(directory.join(fits.min_by_key(|file| file.len())?))
        })
    }

    /// The program or library at a path.
    pub fn open(&self, path: &Path) -> Result<Rc<Object>, TargetError> {
        if let Some(object) = self.opened.borrow().get(path) {
            return Ok(object.clone());
        }
        let object = Rc::new(self.read(path)?);
        self.opened.borrow_mut().insert(path.into(), object.clone());
        Ok(object)
    }

    fn read(&self, path: &Path) -> Result<Object, TargetError> {
        let own = Elf::open_program(path)?;
        let name = self.installed(path).display().to_string();
        let object = |own, debug| Object::program(name.clone(), path.into(), own, debug, self.cache.clone());
        if own.has_section(".debug_info") {
            return Ok(object(own, None));
        }
        let mut symbols = None;
        let mut described = None;
        for debug in self.debug_files(path, &own) {
            if debug.has_section(".debug_info") {
                described = Some(debug);
                break;
            }
            symbols = symbols.or(debug.has_symbols().then_some(debug));
        }
        if described.is_some() {
            return Ok(object(own, described));
        }
        if let Some(debug) = self.indexed(own.build_id())? {
            return Ok(object(own, Some(debug)));
        }
        if let Some(servers) = self.servers.as_ref().filter(|_| !own.build_id().is_empty()) {
            let found = servers.find(own.build_id(), &name, Some(&own), self.cache.as_ref());
            if let Some(debug) = found.ok().and_then(|path| Elf::open_program(&path).ok()) {
                return Ok(object(own, Some(debug)));
            }
        }
        if !own.has_symbols() {
            symbols = symbols.or_else(|| packed_symbols(path, &own)).or_else(|| go_symbols(path, &own));
        }
        Ok(object(own, symbols))
    }

    /// Paths of those that were read and have only a symbol table, sorted.
    pub fn without_debug_info(&self) -> Vec<String> {
        let opened = self.opened.borrow();
        let without = opened.values().filter(|object| object.is_symbols());
        let mut names: Vec<String> = without.map(|object| object.name().to_string()).collect();
        names.sort();
        names
    }

    /// Paths of those whose debug information is in part in files of its own that were not found, sorted, each with the name of one.
    pub fn missing_parts(&self) -> Vec<(String, String)> {
        let opened = self.opened.borrow();
        let split = opened.values().filter_map(|object| Some((object, object.missing_part()?)));
        let mut names: Vec<_> = split.map(|(object, file)| (object.name().to_string(), file)).collect();
        names.sort();
        names
    }

    /// The files that were read so far, and places where something was looked for: what a stored result depends on.
    pub fn consulted(&self) -> Vec<PathBuf> {
        let opened = self.opened.borrow();
        let read = opened.iter().flat_map(|(path, object)| [path.clone(), object.debug_path().to_path_buf()]);
        read.chain(self.looked.borrow().places.iter().cloned()).collect()
    }

    /// Those of PATH below the system's root. Not the crate `which`, which searches the running system, and only for what this
    /// user may execute.
    fn path_directories(&self) -> Vec<PathBuf> {
        let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/sbin:/usr/bin:/sbin:/bin".into());
        path.split(':')
            .filter(|directory| directory.starts_with('/'))
            .map(|directory| self.root().at(directory))
            .collect()
    }

    /// What runs a script, by its first line (execve(2)): of `#!/usr/bin/env NAME` the program of that name.
    fn interpreted(&self, path: &Path, depth: usize) -> PathBuf {
        let mut head = Vec::new();
        let read = regular::open(path).and_then(|file| file.take(256).read_to_end(&mut head));
        let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line).into_owned();
        let Some(line) = line.strip_prefix("#!").filter(|_| read.is_ok() && depth < MOST_INTERPRETERS) else {
            return path.into();
        };
        let mut words = line.split_whitespace();
        let Some(program) = words.next() else { return path.into() };
        let named = words.find(|word| !word.starts_with('-')).filter(|_| program.ends_with("/env"));
        let Ok(found) = self.find_plain(named.unwrap_or(program)) else { return path.into() };
        self.interpreted(&found, depth + 1)
    }

    fn find_plain(&self, name: &str) -> Result<PathBuf, TargetError> {
        let missing = || TargetError::NoSuchProgram { name: name.into(), near: Vec::new(), looked: Vec::new() };
        let places = match name.contains('/') {
            true => vec![self.root().at(name)],
            false => self.path_directories().iter().map(|directory| directory.join(name)).collect(),
        };
        self.looked.borrow_mut().at(&places);
        places.iter().map(|path| self.canonical(path)).find(|path| path.is_file()).ok_or_else(missing)
    }

    /// Names in the directory that is meant, or in `$PATH`, that look like this one.
    fn near(&self, name: &str) -> Vec<String> {
        let path = Path::new(name);
        let wanted = path.file_name().map(|file| file.to_string_lossy().into_owned()).unwrap_or_default();
        let directories = match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            Some(parent) => vec![self.root().at(&parent.to_string_lossy())],
            None => self.path_directories(),
        };
        let limit = (wanted.chars().count() / 3).max(1);
        let entries = directories.iter().flat_map(|directory| fs::read_dir(directory).into_iter().flatten().flatten());
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut near: Vec<(usize, String)> = names
            .map(|name| (strsim::damerau_levenshtein(&wanted, &name), name))
            .filter(|(distance, _)| *distance <= limit)
            .collect();
        near.sort();
        near.dedup();
        near.into_iter().take(5).map(|(_, name)| name).collect()
    }

    /// By the links that distributions keep, else whatever `$PATH` and the directories of libraries have.
    fn of_build_id(&self, hex: &str) -> Result<PathBuf, TargetError> {
        let (first, rest) = hex.split_at(2);
        let dirs = self.debug_dirs().into_iter().chain([self.root().at("/usr/lib")]);
        let mut looked: Vec<PathBuf> = dirs.map(|dir| dir.join(".build-id").join(first).join(rest)).collect();
        if let Some(path) = looked.iter().find(|path| path.is_file()) {
            return Ok(self.canonical(path));
        }
        let root = self.root();
        let directories = self.path_directories().into_iter().chain(libraries::system_directories(&root));
        for directory in directories {
            let entries = fs::read_dir(&directory).into_iter().flatten().flatten().map(|entry| entry.path());
            for path in entries.filter(|path| is_elf(path)) {
                if Elf::open_program(&path).is_ok_and(|elf| hex::encode(elf.build_id()) == hex.to_ascii_lowercase()) {
                    return Ok(self.canonical(&path));
                }
            }
            looked.push(directory);
        }
        Err(TargetError::NoSuchProgram { name: hex.into(), near: Vec::new(), looked })
    }
}

/// Without symbolic links, as far as they lead somewhere; below the root directory of a process as that sees them.
fn canonical(path: &Path) -> PathBuf {
    match in_root_of_process(path) {
        Some((root, inside)) => resolved(&root, &inside),
        None => fs::canonicalize(path).unwrap_or_else(|_| path.into()),
    }
}

/// `/proc/PID/root` and the rest, of a path that begins with that.
pub(super) fn in_root_of_process(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut parts = path.components();
    let begins = parts.next() == Some(Component::RootDir) && parts.next()? == Component::Normal("proc".as_ref());
    let Component::Normal(process) = parts.next()? else { return None };
    let is_process = process.to_str().is_some_and(|name| name == "self" || name.parse::<u32>().is_ok());
    let is_root = parts.next()? == Component::Normal("root".as_ref());
    let root = Path::new("/proc").join(process).join("root");
    (begins && is_process && is_root).then(|| (root, parts.as_path().to_path_buf()))
}

/// A debug file of a root directory that the user of some process may have made: only one that is on the program's own file
/// system and belongs to the program's owner, or to root. What it says decides where breakpoints go in all processes that run
/// the program.
fn open_beside(place: &Path, program: &Path) -> Option<Elf> {
    let program = fs::metadata(program).ok()?;
    let file = regular::open(place).ok()?;
    let found = file.metadata().ok()?;
    let is_trusted = found.dev() == program.dev() && (found.uid() == 0 || found.uid() == program.uid());
    if is_trusted { Elf::of_program_file(place, &file).ok() } else { None }
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let (Ok(one), Ok(other)) = (fs::metadata(one), fs::metadata(other)) else { return false };
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

fn is_elf(path: &Path) -> bool {
    let mut head = [0; 4];
    let file = regular::open(path).ok();
    file.is_some_and(|mut file| file.read_exact(&mut head).is_ok()) && head == *b"\x7fELF"
}

/// Adds the files below `directory` that the rest of a pattern fits, component by component.
fn expand(directory: &Path, parts: &[&str], found: &mut Vec<PathBuf>) {
    let Some((part, rest)) = parts.split_first() else { return };
    if !glob::is_pattern(part) {
        let path = directory.join(part);
        if rest.is_empty() {
            found.extend(path.is_file().then_some(path));
        } else {
            expand(&path, rest, found);
        }
        return;
    }
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let hidden = name.starts_with('.') && !part.starts_with('.');
        if hidden || !glob::matches(part, &name) {
            continue;
        }
        if rest.is_empty() {
            found.extend(entry.path().is_file().then(|| entry.path()));
        } else {
            expand(&entry.path(), rest, found);
        }
    }
}

/// Files that a process has mapped as code: their paths, for one that has another path for us those below the process's root
/// directory, for one that has been deleted the link of the mapping.
fn mapped_by(pid: i64) -> Result<Vec<PathBuf>, TargetError> {
    /// The process may have a million mappings of files with paths of megabytes.
    const MOST_BYTES: u64 = 64 << 20;
    const MOST_LINE: usize = 8 << 10;
    let maps = format!("/proc/{pid}/maps");
    let failed = |error: &dyn Display| TargetError::NoSuchProcess { pid, message: format!("{maps}: {error}") };
    let file = File::open(&maps).map_err(|error| failed(&error))?;
    // 7f0-7f1 r-xp 00001000 08:01 1234   /path
    let mut lines = Vec::new();
    let is_whole = bounded::lines(file, MOST_BYTES, MOST_LINE, |line| {
        let line = String::from_utf8_lossy(line).into_owned();
        if line.split(' ').nth(1).is_some_and(|rights| rights.contains('x')) {
            lines.push(line);
        }
        true
    });
    if !is_whole {
        return Err(failed(&"it cannot be read to its end, or is longer than 64 MB"));
    }
    let mut paths: Vec<PathBuf> = lines
        .iter()
        .filter_map(|line| {
            let path = line.find('/').and_then(|at| line.get(at..))?;
            let mapping = PathBuf::from(format!("/proc/{pid}/map_files/{}", line.split(' ').next()?));
            let below = Path::new(&format!("/proc/{pid}/root")).join(path.trim_start_matches('/'));
            let places = [PathBuf::from(path), below];
            // Without the right to look at mappings, the path has to do.
            let is_visible = fs::metadata(&mapping).is_ok();
            let found = places.iter().find(|place| !is_visible || is_same_file(place, &mapping)).cloned();
            Some(found.unwrap_or(mapping))
        })
        .collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// The symbols that Fedora leaves in stripped files: an ELF file in a section of its own, packed by xz.
fn packed_symbols(path: &Path, own: &Elf) -> Option<Elf> {
    let unpacked = unpack(own.section_bytes(".gnu_debugdata")?)?.ok()?;
    Elf::of_program_bytes(path, unpacked).ok().filter(Elf::has_symbols)
}

/// The functions of a program in Go that has been stripped.
fn go_symbols(path: &Path, own: &Elf) -> Option<Elf> {
    Elf::of_bytes(path, go::symbols(own)?).ok().filter(Elf::has_symbols)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FunctionPattern;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_program_by_its_path() {
        let programs = Programs::new(SearchOptions::default());
        let own = std::env::current_exe().expect("has a path");
        let path = programs.find(&own.to_string_lossy()).expect("is there");
        let object = programs.open(&path).expect("is an ELF file");
        assert!(object.is_program() && !object.is_kernel());
        let debug = object.debug().expect("is whole");
        // Of a crate that has debug information in every profile (Cargo.toml).
        let pattern = FunctionPattern { name: "matches".into(), file: None };
        assert!(spile_base::glob::matches("c*l", "canonical"));
        let functions = debug.find_functions(&pattern).expect("is whole");
        let entries = functions.iter().flat_map(|id| debug.function(*id).expect("is whole").bodies);
        let entry = entries.map(|body| body.entry).next().expect("has code");
        let at = object.file_offset(entry).expect("is in the file") as usize;
        let file = fs::read(&path).expect("is there");
        let text = object.mapped().section_of(entry).expect("is in a section").clone();
        let (start, _) = text.range();
        let bytes = object.mapped().section_bytes(&text.name).expect("has contents");
        let inside = (entry.offset - start) as usize;
        assert_eq!(file[at..at + 16], bytes[inside..inside + 16]);
        assert!(object.mapped().needed().iter().any(|name| name.starts_with("libc.so")));
    }

    #[test]
    fn what_is_not_there_is_named_with_what_is_similar() {
        let root = tempfile::tempdir().expect("a directory");
        let bin = root.path().join("usr/bin");
        fs::create_dir_all(&bin).expect("made");
        fs::write(bin.join("daemon"), "x").expect("written");
        std::os::unix::fs::symlink("/usr/bin/daemon", bin.join("linked")).expect("made");
        let options = SearchOptions { sysroot: Some(root.path().into()), ..SearchOptions::default() };
        let programs = Programs::new(options);
        match programs.find("/usr/bin/deamon") {
            Err(TargetError::NoSuchProgram { near, .. }) => assert_eq!(near, ["daemon"]),
            other => panic!("{other:?}"),
        }
        assert!(matches!(programs.find("/usr/bin"), Err(TargetError::Directory { .. })));
        let found = programs.find("/usr/bin/daemon").expect("is there");
        assert_eq!(programs.installed(&found), Path::new("/usr/bin/daemon"));
        // The link is one of that system, where `/` is another directory.
        assert_eq!(programs.find("/usr/bin/linked").expect("is there"), found);
        assert!(matches!(programs.of_process(i64::MAX), Err(TargetError::NoSuchProcess { .. })));
    }

    #[test]
    fn the_program_of_a_process_that_has_been_deleted() {
        let root = tempfile::tempdir().expect("a directory");
        let copy = root.path().join("sleeper");
        fs::copy("/bin/sleep", &copy).expect("copied");
        let mut child = std::process::Command::new(&copy).arg("100").spawn().expect("runs");
        let (programs, pid) = (Programs::new(SearchOptions::default()), i64::from(child.id()));
        let before = programs.of_process(pid).expect("is there");
        fs::remove_file(&copy).expect("removed");
        let after = programs.of_process(pid).expect("is there");
        let opened = programs.open(&after).map(|object| object.build_id().to_vec());
        child.kill().expect("ends");
        child.wait().expect("ends");
        assert_eq!((before, after), (copy, PathBuf::from(format!("/proc/{pid}/exe"))));
        assert_eq!(opened.expect("is an ELF file"), Elf::open(Path::new("/bin/sleep")).expect("one").build_id());
    }

    #[test]
    fn debug_files_in_the_root_of_a_process_belong_to_the_program_s_owner() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        let debug = at("root/usr/lib/debug/bin/prog.debug");
        fs::create_dir_all(debug.parent().expect("one")).expect("made");
        fs::write(at("prog.c"), "int f(int n) { return n; }").expect("written");
        let run = |program: &str, arguments: &[&std::ffi::OsStr]| {
            assert!(std::process::Command::new(program).args(arguments).status().expect(program).success());
        };
        let (source, program) = (at("prog.c"), at("prog"));
        let words = ["-g", "-shared", "-nostdlib", "-Wl,--build-id=sha1", "-o"].map(std::ffi::OsStr::new);
        run("gcc", &[&words[..], &[program.as_os_str(), source.as_os_str()]].concat());
        fs::copy(&program, &debug).expect("copied");
        run("strip", &[program.as_os_str()]);
        let described_by = || {
            let programs = Programs::new(SearchOptions::default());
            let seen = (at("root"), PathBuf::from("/bin/prog"));
            programs.seen_by_process.borrow_mut().insert(program.clone(), seen);
            programs.open(&program).expect("an ELF file").debug_path().to_path_buf()
        };
        assert_eq!(described_by(), debug);
        if std::os::unix::fs::chown(&debug, Some(12345), None).is_ok() {
            assert_eq!(described_by(), program);
        }
    }

    #[test]
    fn links_below_the_root_of_a_process_lead_below_it() {
        let root = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(root.path().join("usr/lib")).expect("made");
        std::os::unix::fs::symlink("/usr/lib", root.path().join("lib")).expect("made");
        std::os::unix::fs::symlink("../lib/y", root.path().join("usr/x")).expect("made");
        let found = |path: &str| resolved(root.path(), Path::new(path));
        assert_eq!(found("lib/z"), root.path().join("usr/lib/z"));
        assert_eq!(found("usr/x"), root.path().join("usr/lib/y"));
        let split = in_root_of_process(Path::new("/proc/12/root/usr/bin/x"));
        assert_eq!(split, Some((PathBuf::from("/proc/12/root"), PathBuf::from("usr/bin/x"))));
        assert_eq!(in_root_of_process(Path::new("/proc/cpuinfo")), None);
    }

    #[test]
    fn a_script_is_its_interpreter() {
        let root = tempfile::tempdir().expect("a directory");
        let script = root.path().join("script");
        fs::write(&script, "#!/usr/bin/env sh\n").expect("written");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("made executable");
        let programs = Programs::new(SearchOptions::default());
        let found = programs.find(&script.to_string_lossy()).expect("is there");
        assert_eq!(found, programs.find("sh").expect("is there"));
    }

    /// Two probes in one file would both be hit.
    #[test]
    fn links_to_one_file_are_one() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        fs::copy("/bin/true", at("b")).expect("copied");
        fs::copy("/bin/true", at("d")).expect("copied");
        fs::hard_link(at("b"), at("a")).expect("made");
        std::os::unix::fs::symlink("b", at("c")).expect("made");
        let found = Programs::new(SearchOptions::default()).find_all(&at("?").to_string_lossy());
        assert_eq!(found, [canonical(&at("a")), canonical(&at("d"))]);
    }

    #[test]
    fn wildcards_and_libraries() {
        let programs = Programs::new(SearchOptions::default());
        assert!(programs.find_all("/bin/s?").contains(&canonical(Path::new("/bin/sh"))));
        let own = programs.open(&std::env::current_exe().expect("has a path")).expect("is an ELF file");
        let found = programs.libraries(&own, None, "libc.so*").expect("is there");
        assert!(found.len() == 1 && found[0].is_file(), "{found:?}");
        assert!(programs.libraries(&own, None, "libnone.so").is_err());
    }
}
