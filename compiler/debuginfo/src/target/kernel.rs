// SPDX-License-Identifier: GPL-2.0-or-later

//! One kernel release, and where its files are.
//!
//! The places are those of Debian, Fedora and of a kernel's build directory. `sysroot` is prepended to all of them, and to
//! the targets of symbolic links such as `/lib/modules/R/build`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use super::debuginfod::{ServerErrors, Servers};
use super::error::TargetError;
use super::index_file::IndexFile;
use super::module::{self, Modules};
use super::object::{Kind, Object};
use super::owner::{self, Owners};
use super::places;
use crate::Elf;
use spile_base::cache::Cache;

/// Additional places to search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchOptions {
    /// Directory in which the kernel's system is installed; None: `/`.
    pub sysroot: Option<PathBuf>,
    /// Directories that are searched like `/usr/lib/debug`, before it.
    pub debug_dirs: Vec<PathBuf>,
    /// Directory with the kernel's build (`.config`, `Makefile`); None: `/lib/modules/R/build`.
    pub build_dir: Option<PathBuf>,
    /// Module files that take precedence over installed ones of the same name. Of several with one name the one for the
    /// kernel's release is taken.
    pub modules: Vec<PathBuf>,
    /// Several kernels are examined: a file for another release only replaces a module that is not installed.
    pub own_modules_first: bool,
}

/// One release.
pub struct Kernel {
    release: String,
    options: SearchOptions,
    build_dir: PathBuf,
    /// `-r` gave the build directory: its own files come first.
    own_build: bool,
    modules: Modules,
    opened: RefCell<HashMap<PathBuf, Rc<Object>>>,
    /// Where tables of debug information are stored.
    cache: Option<Arc<Cache>>,
    /// The exported index, if everything comes from that file.
    index: Option<IndexFile>,
    /// debuginfod servers, for debug information that is not installed.
    servers: Option<Servers>,
    /// Their answers, by build-id.
    fetched: RefCell<HashMap<Vec<u8>, Result<PathBuf, ServerErrors>>>,
}

impl Kernel {
    /// `release` is what `uname -r` prints, or the path of a kernel's build directory.
    pub fn open(release: &str, options: SearchOptions) -> Result<Kernel, TargetError> {
        let own_build = release.contains('/');
        let (release, build_dir) = if own_build { built(Path::new(release))? } else { (release.to_string(), None) };
        let root = Root(options.sysroot.clone());
        let modules_dir = root.at(&format!("/lib/modules/{release}"));
        let build_dir =
            build_dir.or_else(|| options.build_dir.clone()).unwrap_or_else(|| root.resolve(&modules_dir.join("build")));
        // Where only the debug package is installed, its files are used for the modules.
        let debug_dirs = options.debug_dirs.iter().cloned().chain([root.at("/usr/lib/debug")]);
        let debug_dirs =
            debug_dirs.flat_map(|dir| ["lib", "usr/lib"].map(|lib| dir.join(lib).join("modules").join(&release)));
        let modules = Modules::new(modules_dir.clone(), own_build.then(|| build_dir.clone()), debug_dirs.collect())
            .with_files(&options.modules, &release, !options.own_modules_first);
        let kernel = Kernel {
            release,
            options,
            build_dir,
            own_build,
            modules,
            opened: RefCell::default(),
            cache: None,
            index: None,
            servers: None,
            fetched: RefCell::default(),
        };
        let there = modules_dir.is_dir() || kernel.build_dir.is_dir() || kernel.vmlinux_path().is_ok();
        if there {
            return Ok(kernel);
        }
        let mut looked = vec![modules_dir, kernel.build_dir.clone()];
        looked.extend(kernel.vmlinux_places());
        Err(TargetError::NoSuchKernel { release: kernel.release, looked })
    }

    /// The exported index that everything comes from, if it does.
    pub fn index_path(&self) -> Option<&Path> {
        self.index.as_ref().map(|index| index.path.as_path())
    }

    /// The kernel of an exported index; fails if the file is not one, or has another version. Only the modules among the
    /// options are used.
    pub fn from_index(path: &Path, options: SearchOptions) -> Result<Kernel, TargetError> {
        let index = IndexFile::open(path)?;
        let release = index.release().to_string();
        let modules = Modules::new(PathBuf::new(), None, Vec::new()).with_files(
            &options.modules,
            &release,
            !options.own_modules_first,
        );
        let root = Root(options.sysroot.clone());
        let headers = || root.resolve(&root.at(&format!("/lib/modules/{release}")).join("build"));
        let (build_dir, opened) = (options.build_dir.clone().unwrap_or_else(headers), RefCell::default());
        Ok(Kernel {
            release,
            options,
            build_dir,
            own_build: false,
            modules,
            opened,
            cache: None,
            index: Some(index),
            servers: None,
            fetched: RefCell::default(),
        })
    }

    /// The target of `--kernel`: a release, or the path of a build tree, of a directory with one kernel's system (used like
    /// `/`), or of an index.
    pub fn named(name: &str, options: SearchOptions) -> Result<Kernel, TargetError> {
        let directory = Path::new(name);
        if directory.is_file() {
            return Kernel::from_index(directory, options);
        }
        if !name.contains('/') || directory.join("include/config/kernel.release").is_file() || !directory.is_dir() {
            return Kernel::open(name, options);
        }
        match releases_below(directory).as_slice() {
            [release] => Kernel::open(release, SearchOptions { sysroot: Some(directory.into()), ..options }),
            releases => Err(TargetError::NotOneKernel { directory: directory.into(), releases: releases.to_vec() }),
        }
    }

    /// The same, with tables of debug information stored in `cache` from run to run.
    #[must_use]
    pub fn with_cache(mut self, cache: Cache) -> Kernel {
        self.cache = Some(Arc::new(cache));
        self
    }

    /// The same, with debug information that is not installed fetched from these servers, and stored in the cache.
    #[must_use]
    pub fn with_servers(mut self, servers: Option<Servers>) -> Kernel {
        self.servers = servers;
        self
    }

    fn fetch(&self, build_id: &[u8], name: &str, own: Option<&Elf>) -> Result<PathBuf, ServerErrors> {
        let Some(servers) = self.servers.as_ref().filter(|_| !build_id.is_empty()) else { return Err(Vec::new()) };
        if let Some(known) = self.fetched.borrow().get(build_id) {
            return known.clone();
        }
        let found = servers.find(build_id, name, own, self.cache.as_ref());
        self.fetched.borrow_mut().insert(build_id.to_vec(), found.clone());
        found
    }

    /// The build-id of the kernel, from a file without DWARF.
    fn build_id(&self) -> Vec<u8> {
        let places = self.btf_places().into_iter().filter_map(|path| Elf::open(&path).ok());
        places.map(|elf| elf.build_id().to_vec()).find(|id| !id.is_empty()).unwrap_or_default()
    }

    /// As `uname -r` prints it.
    pub fn release(&self) -> &str {
        &self.release
    }

    /// The architecture as the kernel calls it in `uname -m`.
    pub fn arch(&self) -> &'static str {
        "x86_64"
    }

    /// Where modules are built; need not exist.
    pub fn build_dir(&self) -> PathBuf {
        self.build_dir.clone()
    }

    /// Kernel configuration: `CONFIG_X` to `y`, `m`, a number or a string without its quotes; empty if there is none here.
    pub fn config(&self) -> HashMap<String, String> {
        self.config_reader()()
    }

    /// What reads the [`config`](Kernel::config), when it is needed.
    pub fn config_reader(&self) -> impl Fn() -> HashMap<String, String> + Send + Sync + use<> {
        let known = self.index.as_ref().map(|index| index.config().to_string());
        let places = [
            self.build_dir.join(".config"),
            self.root().at(&format!("/boot/config-{}", self.release)),
            self.modules.dir.join("config"),
        ];
        move || match &known {
            Some(text) => parse_config(text),
            None => {
                let text = places.iter().find_map(|path| fs::read_to_string(path).ok()).unwrap_or_default();
                parse_config(&text)
            }
        }
    }

    /// The kernel itself.
    pub fn vmlinux(&self) -> Result<Rc<Object>, TargetError> {
        if let Some(index) = &self.index {
            let missing = || TargetError::NoIndex { path: index.path.clone(), message: "it has no kernel".into() };
            return self.opened(Path::new(""), || {
                Ok(Object::new(
                    "kernel".into(),
                    index.path.clone(),
                    Kind::Kernel,
                    index.object(None).ok_or_else(missing)??,
                    None,
                    None,
                ))
            });
        }
        let path = self.vmlinux_path()?;
        self.opened(&path, || {
            Ok(Object::new("kernel".into(), path.clone(), Kind::Kernel, Elf::open(&path)?, self.cache.clone(), None))
        })
    }

    /// The same without asking servers, for uses that can do without it; None where it is not installed.
    pub fn vmlinux_here(&self) -> Option<Rc<Object>> {
        if self.index.is_some() {
            return self.vmlinux().ok();
        }
        let path = self.installed().or_else(|| self.with_btf())?;
        self.opened(&path, || {
            Ok(Object::new("kernel".into(), path.clone(), Kind::Kernel, Elf::open(&path)?, self.cache.clone(), None))
        })
        .ok()
    }

    /// A module by its name, in which `-` and `_` are the same, or by the path of its file.
    pub fn module(&self, name: &str) -> Result<Rc<Object>, TargetError> {
        let given = self.modules.find_given(name).filter(|_| self.index.is_some());
        if let Some(index) = self.index.as_ref().filter(|_| given.is_none()) {
            let name = name.replace('-', "_");
            let missing = || TargetError::NoSuchModule {
                name: name.clone(),
                near: self.module_names(),
                looked: vec![index.path.clone()],
            };
            return self.opened(Path::new(&name), || {
                Ok(Object::new(
                    name.clone(),
                    index.path.clone(),
                    Kind::Module,
                    index.object(Some(&name)).ok_or_else(missing)??,
                    None,
                    None,
                ))
            });
        }
        let path = given.map_or_else(|| self.modules.find(name), Ok)?;
        self.opened(&path, || self.open_module(&path))
    }

    /// The types of headers of user space, from the file that has been compiled of them.
    pub fn header(&self, path: &Path) -> Result<Rc<Object>, TargetError> {
        self.opened(path, || {
            let elf = Elf::open(path)?;
            Ok(Object::new(module::name_of(path), path.into(), Kind::Header, elf, self.cache.clone(), None))
        })
    }

    /// Directories that may have the kernel's sources, as paths in its debug information begin below them.
    pub fn source_dirs(&self) -> Vec<PathBuf> {
        let version = self.release.split(['-', '+']).next().unwrap_or(&self.release);
        let series: Vec<&str> = version.split('.').take(2).collect();
        let root = self.root();
        let mut places = vec![self.build_dir.clone(), root.resolve(&self.modules.dir.join("source"))];
        for name in [self.release.as_str(), version, &series.join(".")] {
            places.extend(
                [format!("/usr/src/linux-source-{name}"), format!("/usr/src/linux-{name}")].map(|path| root.at(&path)),
            );
            places.push(root.at(&format!("/usr/src/debug/kernel-{version}/linux-{name}")));
        }
        places
    }

    /// Names of all modules of the release, sorted; as the kernel spells them, with `_`.
    pub fn module_names(&self) -> Vec<String> {
        let Some(index) = &self.index else { return self.modules.names() };
        let mut names = [index.modules(), self.modules_of_options()].concat();
        names.sort();
        names.dedup();
        names
    }

    /// The modules that have a function of this name; not all are searched where modules are many and compressed.
    pub fn modules_with_function(&self, name: &str) -> Owners {
        let Some(index) = &self.index else { return owner::with_function(self.modules.paths(), name) };
        let has = |module: &String| self.module(module).is_ok_and(|object| object.symbol_address(name).is_some());
        Owners { found: index.modules().into_iter().filter(has).collect(), unsearched: 0 }
    }

    /// Names of the modules given as files, sorted.
    pub fn modules_of_options(&self) -> Vec<String> {
        self.modules.names_of_files()
    }

    /// Whether this kernel has a module, or a built-in part, of this name: no other module can have it then.
    pub fn has_module(&self, name: &str) -> bool {
        self.modules.has(name)
    }

    /// The files read so far, and those that would have been preferred had they existed: what a stored result depends on.
    pub fn consulted(&self) -> Vec<PathBuf> {
        let opened = self.opened.borrow();
        let mut files: Vec<PathBuf> = opened.keys().cloned().collect();
        files.extend(opened.values().map(|object| object.debug_path().to_path_buf()));
        if let Some(index) = &self.index {
            files.push(index.path.clone());
        } else if opened.values().any(|object| object.is_kernel()) {
            files.extend(self.vmlinux_places());
        }
        // A value that changes when a module is installed or removed.
        let listing = ["", "modules.dep", "extra", "updates", "updates/dkms", "weak-updates", "kernel"];
        files.extend(listing.map(|name| self.modules.dir.join(name)));
        files
    }

    fn opened(
        &self,
        path: &Path,
        open: impl FnOnce() -> Result<Object, TargetError>,
    ) -> Result<Rc<Object>, TargetError> {
        if let Some(object) = self.opened.borrow().get(path) {
            return Ok(object.clone());
        }
        let object = Rc::new(open()?);
        self.opened.borrow_mut().insert(path.into(), object.clone());
        Ok(object)
    }

    fn root(&self) -> Root {
        Root(self.options.sysroot.clone())
    }

    fn debug_dirs(&self) -> Vec<PathBuf> {
        self.options.debug_dirs.iter().cloned().chain([self.root().at("/usr/lib/debug")]).collect()
    }

    /// Debian's package with the debug information, if the release looks like one of Debian's.
    pub fn debug_package(&self) -> Option<String> {
        self.release.ends_with("64").then(|| format!("linux-image-{}-dbg", self.release))
    }

    fn vmlinux_places(&self) -> Vec<PathBuf> {
        let release = &self.release;
        let mut places = Vec::new();
        if self.own_build {
            places.push(self.build_dir.join("vmlinux"));
        }
        for dir in self.debug_dirs() {
            places.push(dir.join(format!("boot/vmlinux-{release}")));
            places.push(dir.join(format!("lib/modules/{release}/vmlinux")));
            places.push(dir.join(format!("vmlinux-{release}")));
        }
        places.push(self.modules.dir.join("build/vmlinux"));
        places.push(self.modules.dir.join("vmlinux"));
        places.push(self.root().at(&format!("/boot/vmlinux-{release}")));
        places
    }

    /// Where the kernel's BTF may be: in memory if it is the running kernel, in a vmlinux, in the boot image.
    fn btf_places(&self) -> Vec<PathBuf> {
        let mut places = Vec::new();
        let running =
            nix::sys::utsname::uname().is_ok_and(|name| name.release().to_str() == Some(self.release.as_str()));
        if running && self.options.sysroot.is_none() {
            places.push(PathBuf::from("/sys/kernel/btf/vmlinux"));
        }
        places.extend(self.vmlinux_places());
        places.push(self.root().at(&format!("/boot/vmlinuz-{}", self.release)));
        places.push(self.modules.dir.join("vmlinuz"));
        places
    }

    /// The objects opened so far that have no DWARF, as named in sentences.
    pub fn without_dwarf(&self) -> Vec<String> {
        let opened = self.opened.borrow();
        let name = |object: &Rc<Object>| {
            if object.is_kernel() { "the kernel".to_string() } else { format!("module {}", object.name()) }
        };
        let mut names: Vec<String> = opened.values().filter(|object| object.is_btf()).map(name).collect();
        names.sort();
        names
    }

    /// How to get DWARF for the objects opened so far that have none, one sentence each.
    pub fn dwarf_hints(&self) -> Vec<String> {
        let opened = self.opened.borrow();
        let mut hints = Vec::new();
        for object in opened.values().filter(|object| object.is_btf()) {
            let own = Elf::open(object.path()).ok().filter(|own| !object.is_kernel() && !own.is_in_tree());
            match own {
                Some(own) => hints.extend(self.own_build_hints(object.path(), &own)),
                None => hints.extend(self.debug_package().map(|package| format!("try apt-get install {package}"))),
            }
        }
        hints.sort();
        hints.dedup();
        hints
    }

    /// One sentence for each object opened so far that has no DWARF, and for an exported index.
    pub fn remarks(&self) -> Vec<String> {
        let opened = self.opened.borrow();
        let without = opened.values().filter(|object| object.is_btf());
        let mut remarks: Vec<String> = without
            .map(|object| {
                format!(
                    "{}: no DWARF; functions and types are those of its BTF, in {}",
                    object.name(),
                    object.debug_path().display()
                )
            })
            .collect();
        remarks.extend(
            self.index
                .iter()
                .map(|index| format!("{}: known by the index {} alone", index.release(), index.path.display())),
        );
        remarks.sort();
        remarks
    }

    /// The first place with debug information.
    fn vmlinux_path(&self) -> Result<PathBuf, TargetError> {
        if let Some(path) = self.installed() {
            return Ok(path);
        }
        let fetched = match &self.servers {
            Some(_) => self.fetch(&self.build_id(), &format!("the kernel {}", self.release), None),
            None => Err(Vec::new()),
        };
        let asked = match fetched {
            Ok(path) => return Ok(path),
            Err(asked) => asked,
        };
        self.with_btf().ok_or_else(|| TargetError::NoDebugInfo {
            object: format!("the kernel {}", self.release),
            looked: self.vmlinux_places(),
            asked,
            package: self.debug_package(),
            hints: Vec::new(),
        })
    }

    /// The installed file with DWARF.
    fn installed(&self) -> Option<PathBuf> {
        self.vmlinux_places().into_iter().find(|path| Elf::open(path).is_ok_and(|elf| elf.has_section(".debug_info")))
    }

    /// The running kernel's own BTF, a kernel, or as a last resort a file that has nothing else: Debian's headers contain
    /// one from 6.12 on, which does not show its kernel and has no symbols.
    fn with_btf(&self) -> Option<PathBuf> {
        let mut bare = None;
        for path in self.btf_places() {
            let Some(elf) = Elf::open(&path).ok().filter(Elf::has_btf) else { continue };
            if elf.is_raw_btf() || elf.has_symbols() || !elf.build_id().is_empty() {
                return Some(path);
            }
            bare.get_or_insert(path);
        }
        bare
    }

    fn open_module(&self, path: &Path) -> Result<Object, TargetError> {
        let own = Elf::open(path)?;
        let name = module::name_of(path);
        if own.has_section(".debug_info") {
            return Ok(Object::new(name, path.into(), Kind::Module, own, self.cache.clone(), None));
        }
        let looked = self.debug_places(path, &own);
        for debug in looked.iter().filter(|debug| debug.is_file()) {
            let elf = Elf::open(debug)?;
            if !elf.has_section(".debug_info") {
                continue;
            }
            if elf.build_id() != own.build_id() {
                return Err(TargetError::BuildIdMismatch {
                    object: path.into(),
                    build_id: own.build_id().to_vec(),
                    debug: debug.clone(),
                    debug_build_id: elf.build_id().to_vec(),
                });
            }
            return Ok(Object::new(name, path.into(), Kind::Module, elf, self.cache.clone(), None));
        }
        let asked = match self.fetch(own.build_id(), &format!("module {name}"), Some(&own)) {
            Ok(debug) => {
                return Ok(Object::new(name, path.into(), Kind::Module, Elf::open(&debug)?, self.cache.clone(), None));
            }
            Err(asked) => asked,
        };
        if let Some(kernel) = self.vmlinux().ok().filter(|_| own.has_btf()) {
            return Ok(Object::new(name, path.into(), Kind::Module, own, self.cache.clone(), Some(kernel)));
        }
        let (package, hints) = match own.is_in_tree() {
            true => (self.debug_package(), Vec::new()),
            false => (None, self.own_build_hints(path, &own)),
        };
        Err(TargetError::NoDebugInfo { object: format!("module {name}"), looked, asked, package, hints })
    }

    /// How a module that was not built with the kernel gets debug information.
    fn own_build_hints(&self, path: &Path, own: &Elf) -> Vec<String> {
        let is_dkms = path.components().any(|part| part.as_os_str() == "dkms");
        let mut hints = vec![if is_dkms {
            "it was built by DKMS, which strips modules: write STRIP=no into its dkms.conf and -g into its flags (MAKE=\"... KCFLAGS=-g\"), then dkms build and dkms install --force".to_string()
        } else {
            format!(
                "it was not built with the kernel: build it with -g (make -C {} M=DIRECTORY KCFLAGS=-g modules) and do not strip it, or install the debug package of whoever built it (NAME-debuginfo, NAME-dbgsym; Lustre: lustre-debuginfo)",
                self.build_dir.display()
            )
        }];
        let place = match own.build_id() {
            [first, rest @ ..] => {
                let dirs = self.debug_dirs();
                let dir = dirs.first().map(|dir| dir.display().to_string()).unwrap_or_default();
                format!("{dir}/.build-id/{first:02x}/{}.debug", hex::encode(rest))
            }
            [] => format!("{} (it has no build-id)", path.with_extension("ko.debug").display()),
        };
        hints.push(format!(
            "a separate file with its debug information (objcopy --only-keep-debug) is found as {place}"
        ));
        hints
    }

    /// Files that may contain the debug information of the module at `path`.
    fn debug_places(&self, path: &Path, own: &Elf) -> Vec<PathBuf> {
        places::debug_places(path, own, &self.debug_dirs(), self.options.sysroot.as_deref())
    }
}

/// The directory below which the system lies.
pub(super) struct Root(pub Option<PathBuf>);

impl Root {
    /// A path of the system, below the root.
    pub fn at(&self, path: &str) -> PathBuf {
        match &self.0 {
            Some(root) => root.join(path.trim_start_matches('/')),
            None => PathBuf::from(path),
        }
    }

    /// The target of a symbolic link; an absolute target is taken to be below the root.
    fn resolve(&self, link: &Path) -> PathBuf {
        let Some(root) = &self.0 else {
            return link.into();
        };
        match fs::read_link(link) {
            Ok(target) if target.is_absolute() => {
                let below: PathBuf = target.components().filter(|part| !matches!(part, Component::RootDir)).collect();
                root.join(below)
            }
            _ => link.into(),
        }
    }
}

/// The releases of which a system below that directory has modules or debug information, sorted.
pub fn releases_below(directory: &Path) -> Vec<String> {
    let mut releases = Vec::new();
    for below in ["lib/modules", "usr/lib/modules", "usr/lib/debug/lib/modules", "usr/lib/debug/usr/lib/modules"] {
        let entries = fs::read_dir(directory.join(below)).into_iter().flatten().flatten();
        releases.extend(entries.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    }
    releases.sort();
    releases.dedup();
    releases
}

/// Release and path of a build directory. The header is what modules carry in their vermagic; `kernel.release` of a
/// distribution's headers may say another one (Debian: 6.1.192 for 6.1.0-56-cloud-amd64).
fn built(directory: &Path) -> Result<(String, Option<PathBuf>), TargetError> {
    let header = directory.join("include/generated/utsrelease.h");
    let file = directory.join("include/config/kernel.release");
    let by_header = || release_defined(&fs::read_to_string(&header).ok()?);
    let by_file = || Some(fs::read_to_string(&file).ok()?.trim().to_string()).filter(|release| !release.is_empty());
    match by_header().or_else(by_file) {
        Some(release) => Ok((release, Some(directory.into()))),
        None => Err(TargetError::NoSuchKernel { release: directory.display().to_string(), looked: vec![header, file] }),
    }
}

/// From `#define UTS_RELEASE "6.1.0-56-cloud-amd64"`.
fn release_defined(header: &str) -> Option<String> {
    let value = header.lines().find_map(|line| line.trim().strip_prefix("#define UTS_RELEASE"))?;
    value.split('"').nth(1).filter(|release| !release.is_empty()).map(str::to_string)
}

fn parse_config(text: &str) -> HashMap<String, String> {
    let settings = text.lines().filter(|line| line.starts_with("CONFIG_")).filter_map(|line| line.split_once('='));
    settings.map(|(name, value)| (name.to_string(), value.trim().trim_matches('"').to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_directory_is_of_the_release_in_its_header() {
        let directory = tempfile::tempdir().expect("a directory");
        let below = |name: &str| directory.path().join(name);
        assert!(built(directory.path()).is_err());
        fs::create_dir_all(below("include/config")).expect("made");
        fs::write(below("include/config/kernel.release"), "6.1.192\n").expect("written");
        let release = || built(directory.path()).expect("a release").0;
        assert_eq!(release(), "6.1.192");
        fs::create_dir_all(below("include/generated")).expect("made");
        fs::write(below("include/generated/utsrelease.h"), "#define UTS_RELEASE \"6.1.0-56-cloud\"\n")
            .expect("written");
        assert_eq!(release(), "6.1.0-56-cloud");
    }

    #[test]
    fn configuration() {
        let config =
            parse_config("# comment\nCONFIG_SMP=y\n# CONFIG_X is not set\nCONFIG_HZ=250\nCONFIG_NAME=\"a b\"\n");
        assert_eq!(config.len(), 3);
        assert_eq!((config["CONFIG_SMP"].as_str(), config["CONFIG_NAME"].as_str()), ("y", "a b"));
    }

    #[test]
    fn a_missing_kernel_names_the_places() {
        let root = tempfile::tempdir().expect("a directory");
        let options = SearchOptions { sysroot: Some(root.path().into()), ..SearchOptions::default() };
        let error = Kernel::open("1.2.3", options).err().expect("not there");
        let TargetError::NoSuchKernel { looked, .. } = &error else { panic!("{error:?}") };
        assert!(looked.contains(&root.path().join("lib/modules/1.2.3")));
        assert!(looked.contains(&root.path().join("usr/lib/debug/boot/vmlinux-1.2.3")));
        assert!(error.notes().iter().any(|note| note.contains("linux-image-1.2.3-dbg")));
    }

    #[test]
    fn a_kernel_without_debug_information_can_be_opened() {
        let root = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(root.path().join("lib/modules/1.2-amd64/kernel")).expect("made");
        fs::create_dir_all(root.path().join("usr/src/headers")).expect("made");
        std::os::unix::fs::symlink("/usr/src/headers", root.path().join("lib/modules/1.2-amd64/build")).expect("made");
        fs::write(root.path().join("usr/src/headers/.config"), "CONFIG_SMP=y\n").expect("written");
        let options = SearchOptions { sysroot: Some(root.path().into()), ..SearchOptions::default() };
        let kernel = Kernel::open("1.2-amd64", options).expect("is there");
        assert_eq!(kernel.build_dir(), root.path().join("usr/src/headers"));
        assert_eq!(kernel.config()["CONFIG_SMP"], "y");
        let error = kernel.vmlinux().err().expect("no vmlinux");
        assert!(
            matches!(&error, TargetError::NoDebugInfo { package: Some(package), .. } if package == "linux-image-1.2-amd64-dbg")
        );
    }

    /// Release of the newest boot image on this machine.
    fn newest_image() -> Option<String> {
        let files = fs::read_dir("/boot").ok()?.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        files.filter_map(|name| name.strip_prefix("vmlinuz-").map(str::to_string)).max()
    }

    /// As in Debian's headers for 6.12: /lib/modules/R/build/vmlinux contains only BTF.
    #[test]
    fn a_boot_image_is_better_than_bare_btf() {
        let Some(release) = newest_image() else { return println!("skipped: no boot image") };
        let debug = format!("/usr/lib/debug/boot/vmlinux-{release}");
        let root = tempfile::tempdir().expect("a directory");
        let build = root.path().join(format!("lib/modules/{release}/build"));
        fs::create_dir_all(&build).expect("made");
        let bare = build.join("vmlinux");
        let made = std::process::Command::new("objcopy").arg("--only-section=.BTF").arg(&debug).arg(&bare).output();
        if !made.is_ok_and(|made| made.status.success()) {
            return println!("skipped: no {debug}");
        }
        let options = || SearchOptions { sysroot: Some(root.path().into()), ..SearchOptions::default() };
        let kernel = Kernel::open(&release, options()).expect("is there");
        let alone = kernel.vmlinux().expect("has BTF");
        assert!(alone.path() == bare && !alone.has_symbols());
        fs::create_dir_all(root.path().join("boot")).expect("made");
        let image = format!("boot/vmlinuz-{release}");
        std::os::unix::fs::symlink(Path::new("/").join(&image), root.path().join(&image)).expect("made");
        let kernel = Kernel::open(&release, options()).expect("is there");
        assert_eq!(kernel.vmlinux().expect("has BTF").path(), root.path().join(&image));
    }

    /// Over the installed kernel, without the files of its debug package.
    #[test]
    fn a_boot_image_has_types_and_prototypes() {
        let Some(release) = newest_image() else { return println!("skipped: no boot image") };
        let root = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(root.path().join("lib/modules")).expect("made");
        fs::create_dir_all(root.path().join("boot")).expect("made");
        for path in [format!("lib/modules/{release}"), format!("boot/vmlinuz-{release}")] {
            std::os::unix::fs::symlink(Path::new("/").join(&path), root.path().join(&path)).expect("made");
        }
        let options = SearchOptions { sysroot: Some(root.path().into()), ..SearchOptions::default() };
        let kernel = Kernel::open(&release, options).expect("is there");
        let image = kernel.vmlinux().expect("has BTF");
        let debug = image.debug().expect("is whole");
        assert!(debug.is_btf() && !image.has_symbols() && !image.build_id().is_empty());
        assert!(debug.find_type("struct task_struct").expect("is whole").is_some());
        assert_eq!(kernel.remarks().len(), 1);
        // A module's types continue the kernel's.
        let Some(module) = kernel
            .module_names()
            .into_iter()
            .find_map(|name| kernel.module(&name).ok().filter(|object| object.debug().is_ok()))
        else {
            return println!("skipped: no module with BTF");
        };
        let debug = module.debug().expect("is whole");
        assert!(debug.is_btf() && debug.find_type("struct task_struct").expect("is whole").is_some());
        assert!(!debug.function_names().expect("is whole").is_empty());
    }
}
