//! The files of one kernel release.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::{Object, TargetError};
use crate::debuginfo::Elf;

/// Where to look beside the usual places.
#[derive(Clone, Debug, Default)]
pub struct SearchOptions {
    /// A directory that holds the target's files as `/` does.
    pub sysroot: Option<PathBuf>,
}

pub struct Kernel {
    release: String,
    build_dir: PathBuf,
    root: PathBuf,
    vmlinux: OnceCell<Rc<Object>>,
    modules: RefCell<HashMap<String, Rc<Object>>>,
    /// Files below /lib/modules/RELEASE, by module name with `_` for `-`.
    files: OnceCell<HashMap<String, PathBuf>>,
}

/// Debug files below this directory have the paths of what they belong to.
const DEBUG_ROOT: &str = "usr/lib/debug";

impl Kernel {
    /// A release by its name, or by the path of its build tree. Nothing large is read yet.
    pub fn open(release: &str, options: SearchOptions) -> Result<Kernel, TargetError> {
        let root = options.sysroot.unwrap_or_else(|| PathBuf::from("/"));
        let (release, build_dir) = if release.contains('/') {
            let file = Path::new(release).join("include/config/kernel.release");
            let text = std::fs::read_to_string(&file);
            let text = text.map_err(|_| TargetError::NoSuchKernel { release: release.to_string(), looked: vec![file] })?;
            (text.trim().to_string(), PathBuf::from(release))
        } else {
            (release.to_string(), root.join("lib/modules").join(release).join("build"))
        };
        let looked = vec![root.join("lib/modules").join(&release), root.join("boot").join(format!("vmlinuz-{release}"))];
        if !build_dir.is_dir() && !looked.iter().any(|path| path.exists()) {
            return Err(TargetError::NoSuchKernel { release, looked });
        }
        Ok(Kernel {
            release,
            build_dir,
            root,
            vmlinux: OnceCell::new(),
            modules: RefCell::default(),
            files: OnceCell::new(),
        })
    }

    /// As `uname -r` prints it there.
    pub fn release(&self) -> &str {
        &self.release
    }

    /// Headers and Makefiles; may not exist.
    pub fn build_dir(&self) -> PathBuf {
        self.build_dir.clone()
    }

    /// `CONFIG_X` to its value, strings without quotes; empty if no configuration is found.
    pub fn config(&self) -> HashMap<String, String> {
        let places = [self.build_dir.join(".config"), self.root.join("boot").join(format!("config-{}", self.release))];
        let text = places.iter().find_map(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
        let line = |line: &str| -> Option<(String, String)> {
            let (name, value) = line.split_once('=')?;
            name.starts_with("CONFIG_").then(|| (name.to_string(), value.trim_matches('"').to_string()))
        };
        text.lines().filter_map(line).collect()
    }

    /// The kernel itself.
    pub fn vmlinux(&self) -> Result<Rc<Object>, TargetError> {
        if let Some(object) = self.vmlinux.get() {
            return Ok(object.clone());
        }
        let release = &self.release;
        let debug = self.root.join(DEBUG_ROOT);
        let looked = vec![
            debug.join("boot").join(format!("vmlinux-{release}")),
            debug.join("lib/modules").join(release).join("vmlinux"),
            debug.join("lib/modules").join(release).join("vmlinux.debug"),
            self.build_dir.join("vmlinux"),
            self.root.join("lib/modules").join(release).join("vmlinux"),
            self.root.join("boot").join(format!("vmlinux-{release}")),
        ];
        for path in looked.iter().filter(|path| path.is_file()) {
            let elf = Rc::new(Elf::open(path)?);
            if elf.has_debug_info() {
                let object = Rc::new(Object::new("kernel", true, elf.clone(), elf));
                return Ok(self.vmlinux.get_or_init(|| object).clone());
            }
        }
        Err(TargetError::NoDebugInfo { object: "the kernel".into(), release: release.clone(), looked })
    }

    /// A module by name (`-` and `_` are the same) or by the path of its file.
    pub fn module(&self, name: &str) -> Result<Rc<Object>, TargetError> {
        if let Some(object) = self.modules.borrow().get(name) {
            return Ok(object.clone());
        }
        let path = if name.contains('/') { PathBuf::from(name) } else { self.module_file(name)? };
        let binary = Rc::new(Elf::open(&path)?);
        let plain = module_name(&path);
        let debug = if binary.has_debug_info() { binary.clone() } else { self.module_debug(&plain, &path, &binary)? };
        let object = Rc::new(Object::new(&plain, false, binary, debug));
        self.modules.borrow_mut().insert(name.to_string(), object.clone());
        Ok(object)
    }

    fn files(&self) -> &HashMap<String, PathBuf> {
        self.files.get_or_init(|| {
            let top = self.root.join("lib/modules").join(&self.release);
            let mut files = HashMap::new();
            let mut open = vec![top.clone()];
            while let Some(directory) = open.pop() {
                for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
                    let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
                    // `build` and `source` are links: not followed.
                    if kind.is_dir() {
                        open.push(path);
                    } else if is_module(&path) {
                        let name = module_name(&path);
                        // What a site installed itself stands before the kernel's own, as depmod(8) has it.
                        let own = !path.starts_with(top.join("kernel"));
                        if own || !files.contains_key(&name) {
                            files.insert(name, path);
                        }
                    }
                }
            }
            files
        })
    }

    pub fn module_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.files().keys().cloned().collect();
        names.sort();
        names
    }

    fn module_file(&self, name: &str) -> Result<PathBuf, TargetError> {
        let plain = name.replace('-', "_");
        if let Some(path) = self.files().get(&plain) {
            return Ok(path.clone());
        }
        let names = self.module_names();
        let mut near: Vec<(usize, &String)> = names.iter().map(|other| (strsim::damerau_levenshtein(&plain, other), other)).collect();
        near.retain(|(distance, _)| *distance <= plain.len() / 3 + 1);
        near.sort();
        let near = near.into_iter().take(5).map(|(_, name)| name.clone()).collect();
        let looked = vec![self.root.join("lib/modules").join(&self.release)];
        Err(TargetError::NoSuchModule { name: name.to_string(), release: self.release.clone(), near, looked })
    }

    /// The file with a stripped module's debug information: by path, by build-id, by .gnu_debuglink.
    fn module_debug(&self, name: &str, path: &Path, binary: &Elf) -> Result<Rc<Elf>, TargetError> {
        let debug = self.root.join(DEBUG_ROOT);
        let inner = path.strip_prefix(&self.root).unwrap_or(path);
        let plain = inner.to_string_lossy();
        let plain = ["xz", "zst", "gz"].iter().find_map(|end| plain.strip_suffix(&format!(".{end}"))).unwrap_or(&plain).to_string();
        let mut looked = vec![debug.join(&plain), debug.join(format!("{plain}.debug"))];
        // /lib is a link to /usr/lib on some systems, and packages use either.
        if let Some(rest) = plain.strip_prefix("usr/") {
            looked.extend([debug.join(rest), debug.join(format!("{rest}.debug"))]);
        } else {
            looked.extend([debug.join("usr").join(&plain), debug.join("usr").join(format!("{plain}.debug"))]);
        }
        if let [first, rest @ ..] = binary.build_id() {
            let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
            looked.push(debug.join(format!(".build-id/{first:02x}/{rest}.debug")));
        }
        if let (Some(link), Some(directory)) = (binary.debug_link(), path.parent()) {
            looked.extend([directory.join(&link), directory.join(".debug").join(&link)]);
        }
        let mut mismatch = None;
        for file in looked.iter().filter(|file| file.is_file()) {
            let elf = Elf::open(file)?;
            if elf.build_id() == binary.build_id() && elf.has_debug_info() {
                return Ok(Rc::new(elf));
            }
            if elf.build_id() != binary.build_id() {
                let (expected, found) = (hex(binary.build_id()), hex(elf.build_id()));
                mismatch = Some(TargetError::BuildIdMismatch { object: path.to_path_buf(), expected, debug: file.clone(), found });
            }
        }
        Err(mismatch.unwrap_or(TargetError::NoDebugInfo { object: format!("module {name}"), release: self.release.clone(), looked }))
    }
}

fn hex(bytes: &[u8]) -> String {
    if bytes.is_empty() { "none".into() } else { bytes.iter().map(|byte| format!("{byte:02x}")).collect() }
}

fn is_module(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    [".ko", ".ko.xz", ".ko.zst", ".ko.gz"].iter().any(|end| name.ends_with(end))
}

/// The name that the kernel gives a module's file.
fn module_name(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.split(".ko").next().unwrap_or("").replace('-', "_")
}
