// SPDX-License-Identifier: GPL-2.0-or-later

//! Which modules a release has, and where.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::error::TargetError;
use crate::Elf;

/// Files of modules, by name; the directories are searched when first needed.
pub(super) struct Modules {
    /// `/lib/modules/RELEASE`.
    pub dir: PathBuf,
    /// A build directory, which has modules beside their sources.
    build: Option<PathBuf>,
    /// Directories with debug files of modules, for those that are not installed themselves.
    debug: Vec<PathBuf>,
    /// Files that take precedence over installed ones of the same name, and those that only replace missing ones.
    given: [Vec<PathBuf>; 2],
    files: OnceCell<BTreeMap<String, PathBuf>>,
}

/// Levels of directories that are searched; a cycle of mounts must not be followed forever.
const MAX_DEPTH: usize = 24;

impl Modules {
    /// The modules below `dir` of a release; `build`: its build tree, `debug`: directories of debug files.
    pub fn new(dir: PathBuf, build: Option<PathBuf>, debug: Vec<PathBuf>) -> Modules {
        Modules { dir, build, debug, given: Default::default(), files: OnceCell::new() }
    }

    /// The same with files of modules that are not installed. Of several with one name the one for this release is taken.
    /// `of_others`: whether one for another release takes precedence over what is installed.
    #[must_use]
    pub fn with_files(mut self, files: &[PathBuf], release: &str, of_others: bool) -> Modules {
        let is_own = |path: &&PathBuf| is_of(path, release);
        let (own, others): (Vec<&PathBuf>, Vec<&PathBuf>) = files.iter().partition(is_own);
        let (first, last): (Vec<&PathBuf>, Vec<&PathBuf>) =
            if of_others { (own.into_iter().chain(others).collect(), Vec::new()) } else { (own, others) };
        self.given = [first, last].map(|files| files.into_iter().cloned().collect());
        self
    }

    /// The file of that name that takes precedence over installed ones.
    pub fn find_given(&self, name: &str) -> Option<PathBuf> {
        let wanted = name.replace('-', "_");
        self.given.iter().flatten().find(|path| name_of(path) == wanted).cloned()
    }

    /// Names of the given files.
    pub fn names_of_files(&self) -> Vec<String> {
        let mut names: Vec<String> = self.given.iter().flatten().map(|path| name_of(path)).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Names of the installed modules.
    pub fn names(&self) -> Vec<String> {
        self.files().keys().cloned().collect()
    }

    /// The same, each with its file.
    pub fn paths(&self) -> Vec<(String, PathBuf)> {
        self.files().iter().map(|(name, path)| (name.clone(), path.clone())).collect()
    }

    /// Whether a module, or a built-in part of the kernel, has this name: no other can be loaded beside it.
    pub fn has(&self, name: &str) -> bool {
        let wanted = name.replace('-', "_");
        let read = |file: &str| fs::read(self.dir.join(file)).unwrap_or_default();
        let parts = read("modules.builtin.modinfo");
        // NAME.KEY=VALUE
        let mut names = parts.split(|byte| *byte == 0).filter_map(|entry| entry.split(|byte| *byte == b'.').next());
        let is_module = match self.dependencies() {
            Some(text) => self.find_given(&wanted).is_some() || listed(&text, &wanted).is_some(),
            None => self.files().contains_key(&wanted),
        };
        is_module || self.is_builtin(&wanted) || names.any(|part| part == wanted.as_bytes())
    }

    /// The list of installed modules that depmod writes (modules.dep(5)). Reading it takes a hundredth of the time of a
    /// search in the directories.
    fn dependencies(&self) -> Option<String> {
        fs::read_to_string(self.dir.join("modules.dep")).ok()
    }

    /// The installed file that modprobe would load.
    fn find_installed(&self, wanted: &str) -> Option<PathBuf> {
        let path = self.dir.join(listed(&self.dependencies()?, wanted)?);
        path.is_file().then_some(path)
    }

    fn is_builtin(&self, wanted: &str) -> bool {
        let builtin = fs::read_to_string(self.dir.join("modules.builtin")).unwrap_or_default();
        builtin.lines().any(|line| name_of(Path::new(line)) == wanted)
    }

    /// The file of the module with that name, or of that path.
    pub fn find(&self, name: &str) -> Result<PathBuf, TargetError> {
        if name.contains('/') || is_module_file(name) && Path::new(name).is_file() {
            let path = PathBuf::from(name);
            let missing =
                || TargetError::NoSuchModule { name: name.into(), near: Vec::new(), looked: vec![path.clone()] };
            return if path.is_file() { Ok(path) } else { Err(missing()) };
        }
        let wanted = name.replace('-', "_");
        let [first, _] = &self.given;
        let found = first.iter().find(|path| name_of(path) == wanted).cloned();
        if let Some(path) =
            found.or_else(|| self.find_installed(&wanted)).or_else(|| self.files().get(&wanted).cloned())
        {
            return Ok(path);
        }
        if self.is_builtin(&wanted) {
            return Err(TargetError::BuiltIn { name: name.into() });
        }
        let given = self.given.iter().flatten().cloned();
        let looked = std::iter::once(self.dir.clone()).chain(self.build.clone()).chain(given).collect();
        Err(TargetError::NoSuchModule { name: name.into(), near: self.near(&wanted), looked })
    }

    fn near(&self, wanted: &str) -> Vec<String> {
        let limit = (wanted.chars().count() / 3).max(1);
        let distances = self.files().keys().map(|name| (strsim::damerau_levenshtein(wanted, name), name));
        let mut near: Vec<(usize, &String)> = distances.filter(|(distance, _)| *distance <= limit).collect();
        near.sort();
        near.into_iter().take(5).map(|(_, name)| name.clone()).collect()
    }

    fn files(&self) -> &BTreeMap<String, PathBuf> {
        self.files.get_or_init(|| {
            let mut files = BTreeMap::new();
            let add = |files: &mut BTreeMap<String, PathBuf>, given: &[PathBuf]| {
                for path in given {
                    files.entry(name_of(path)).or_insert_with(|| path.clone());
                }
            };
            add(&mut files, &self.given[0]);
            // In depmod's order of preference: updates before extra before the kernel's own; then all others.
            let preferred = ["updates", "extra", "weak-updates", "kernel"];
            for directory in preferred {
                collect(&self.dir.join(directory), 0, &mut files);
            }
            collect_except(&self.dir, &preferred, 0, &mut files);
            if let Some(build) = &self.build {
                collect(build, 0, &mut files);
            }
            for debug in &self.debug {
                collect(debug, 0, &mut files);
            }
            add(&mut files, &self.given[1]);
            files
        })
    }
}

/// The path of a module in modules.dep (modules.dep(5)): lines `PATH: PATHS`, relative to its directory.
fn listed<'t>(dependencies: &'t str, wanted: &str) -> Option<&'t str> {
    dependencies.lines().filter_map(|line| line.split(':').next()).find(|path| {
        let file = path.rsplit('/').next().unwrap_or(path);
        let stem = file.find(".ko").and_then(|at| file.get(..at)).unwrap_or(file);
        stem.len() == wanted.len() && name_of(Path::new(path)) == wanted
    })
}

fn collect(directory: &Path, depth: usize, files: &mut BTreeMap<String, PathBuf>) {
    collect_except(directory, &[], depth, files);
}

/// The same without the directories of these names in it.
fn collect_except(directory: &Path, except: &[&str], depth: usize, files: &mut BTreeMap<String, PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    let mut entries: Vec<fs::DirEntry> = entries.flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        // Without following links: `build` and `source` lead out of the directory.
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        let path = entry.path();
        if kind.is_dir() && except.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        if kind.is_dir() && depth < MAX_DEPTH {
            collect(&path, depth + 1, files);
        } else if !kind.is_dir() && is_module_file(&entry.file_name().to_string_lossy()) {
            files.entry(name_of(&path)).or_insert(path);
        }
    }
}

fn is_module_file(name: &str) -> bool {
    [".ko", ".ko.xz", ".ko.gz", ".ko.zst"].iter().any(|end| name.ends_with(end))
}

/// Those of `files` that were built for another release than `release`, with that release, unless another file of the same
/// name was built for it.
pub fn of_other_releases(files: &[PathBuf], release: &str) -> Vec<(PathBuf, String)> {
    let is_replaced = |path: &Path| files.iter().any(|other| name_of(other) == name_of(path) && is_of(other, release));
    let others = files.iter().filter(|path| !is_replaced(path));
    others.filter_map(|path| built_for(path).map(|built| (path.clone(), built))).collect()
}

/// Whether a module was built for that release, or does not name one.
fn is_of(path: &Path, release: &str) -> bool {
    built_for(path).is_none_or(|built| built == release)
}

/// The release that a module was built for; None if the file does not name one.
fn built_for(path: &Path) -> Option<String> {
    let text = Elf::open(path).ok()?.module_info("vermagic")?;
    text.split(' ').next().map(str::to_string)
}

/// The module's name as the kernel spells it.
pub(super) fn name_of(path: &Path) -> String {
    let file = path.file_name().map(|file| file.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = file.find(".ko").and_then(|at| file.get(..at)).unwrap_or(&file);
    stem.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_by_name_and_path() {
        let dir = tempfile::tempdir().expect("a directory");
        for file in ["kernel/fs/ext4/ext4.ko.xz", "kernel/net/nf-tables.ko", "updates/ext4.ko"] {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, "").expect("written");
        }
        fs::write(dir.path().join("modules.builtin"), "kernel/fs/proc/proc-fs.ko\n").expect("written");
        let modules = Modules::new(dir.path().into(), None, Vec::new());
        assert_eq!(modules.names(), ["ext4", "nf_tables"]);
        assert_eq!(modules.find("ext4").expect("found"), dir.path().join("updates/ext4.ko"));
        assert_eq!(modules.find("nf_tables").expect("found"), modules.find("nf-tables").expect("found"));
        let path = dir.path().join("kernel/fs/ext4/ext4.ko.xz");
        assert_eq!(modules.find(&path.to_string_lossy()).expect("found"), path);
        assert!(matches!(modules.find("proc_fs"), Err(TargetError::BuiltIn { .. })));
        fs::write(dir.path().join("modules.builtin.modinfo"), b"printk.parmtype=time:bool\0printk.parm=time\0")
            .expect("written");
        let has = |name: &str| modules.has(name);
        assert!(has("ext4") && has("proc_fs") && has("printk") && !has("print") && !has("ext3"));
        assert!(matches!(modules.find("/no/such.ko"), Err(TargetError::NoSuchModule { .. })));
        // What depmod has listed is found without a search; a list that is older than the files does not hide any.
        let list = "kernel/fs/ext4/ext4.ko.xz: kernel/lib/crc16.ko\nkernel/gone.ko:\nextra/ov-er.ko:\n";
        fs::write(dir.path().join("modules.dep"), list).expect("written");
        let modules = Modules::new(dir.path().into(), None, Vec::new());
        assert_eq!(modules.find("ext4").expect("found"), path);
        assert_eq!(modules.find("nf_tables").expect("found"), dir.path().join("kernel/net/nf-tables.ko"));
        assert!(matches!(modules.find("gone"), Err(TargetError::NoSuchModule { .. })));
        assert!(modules.has("ov_er") && modules.has("printk") && !modules.has("nf_tables"));
        match modules.find("ext3") {
            Err(TargetError::NoSuchModule { near, .. }) => assert_eq!(near, ["ext4"]),
            other => panic!("{other:?}"),
        }
    }
}
