// SPDX-License-Identifier: GPL-2.0-or-later

//! The guest's file system: the requested files, busybox, and a minimal Linux system.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use spile_base::cache::Inputs;
use spile_base::read;

use super::cpio::Archive;
use super::dependencies;
use super::error::Error;
use super::kernel::Kernel;
use super::libraries::needed_files;
use super::module_table::module_name;

/// Init of the guest; the comment at its top describes the protocol on the serial ports.
const INIT: &str = include_str!("init.sh");

/// A larger file is not copied into it: the guest has it in memory, and so has this process.
const MOST_BYTES: u64 = 1 << 30;

/// Sends a file to the host while the guest runs: for files that must survive a later crash of the kernel.
const GIVE: &str = "#!/bin/sh\n\
                    # give FILE [NAME]: sends a file to the host, as NAME.\n\
                    { echo \"file ${2:-$1} $(stat -c %s \"$1\")\"; cat \"$1\"; } >/dev/ttyS3\n";

/// Accounts: scripts filter by user id, so there is one user above 1000, and one below.
const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\n\
                      service:x:990:990:service:/root:/bin/sh\n\
                      user:x:4242:4242:user:/tmp:/bin/sh\n";
const GROUP: &str = "root:x:0:\nservice:x:990:\nuser:x:4242:\n";

/// The content of a file in the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Bytes(Vec<u8>),
    /// A file of the host.
    Copy(PathBuf),
    /// A symbolic link to that path.
    Link(PathBuf),
}

/// All files of one guest, by absolute path.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    files: BTreeMap<PathBuf, (Content, u32)>,
}

impl Tree {
    /// Adds a file with its permissions; replaces one of the same path.
    pub(super) fn put(&mut self, path: impl Into<PathBuf>, content: Content, mode: u32) {
        self.files.insert(path.into(), (content, mode));
    }

    /// Adds a program, with its interpreter and libraries if the host has them. A library that the host reaches by
    /// symbolic links, as with /usr merged into /, is one file in the guest too, because probes are attached to files.
    pub(super) fn put_program(&mut self, host: &Path, path: &Path) -> Result<(), Error> {
        for file in needed_files(host)? {
            let real = fs::canonicalize(&file).unwrap_or_else(|_| file.clone());
            if real != file {
                self.put(file, Content::Link(real.clone()), 0o777);
            }
            self.put(real.clone(), Content::Copy(real), 0o755);
        }
        self.put(path, Content::Copy(host.to_path_buf()), 0o755);
        Ok(())
    }

    /// Adds the release's own modules `names` and `offered` with their dependencies, and the external modules `extra`,
    /// as depmod would have installed them: the guest's modprobe finds all. Returns the files of `names` in loading
    /// order.
    pub(super) fn put_modules(
        &mut self,
        kernel: &Kernel,
        names: &[String],
        offered: &[String],
        extra: &[PathBuf],
    ) -> Result<Vec<PathBuf>, Error> {
        let directory = Path::new("/lib/modules").join(&kernel.release);
        let mut table = String::new();
        let mut files = Vec::new();
        if !names.is_empty() || !offered.is_empty() {
            let modules = kernel.module_table()?;
            files = modules.files(names)?;
            for file in modules.files(&[names, offered].concat())? {
                self.put(directory.join(&file), Content::Copy(kernel.modules.join(&file)), 0o644);
                let needed = modules.files(&[module_name(&file.to_string_lossy())])?;
                let others = needed.iter().rev().filter(|other| **other != file);
                let others: Vec<String> = others.map(|file| file.display().to_string()).collect();
                table.push_str(&format!("{}: {}\n", file.display(), others.join(" ")));
            }
        }
        for file in extra {
            let name = format!("extra/{}.ko", module_name(&file.to_string_lossy()));
            self.put(directory.join(&name), Content::Copy(file.clone()), 0o644);
        }
        table.push_str(&dependencies::table(kernel, extra));
        self.put(directory.join("modules.dep"), Content::Bytes(table.into_bytes()), 0o644);
        Ok(files)
    }

    /// The archive: all files, their directories, and the base system around `script` and `modules`, which are loaded
    /// in this order before the script starts.
    pub(super) fn archive(&self, script: &str, modules: &[PathBuf]) -> Result<Vec<u8>, Error> {
        let mut tree = Tree::system()?;
        tree.put_orders(script, modules);
        tree.files.extend(self.files.clone());
        tree.write(true)
    }

    /// The base system, without a script.
    pub(super) fn system() -> Result<Tree, Error> {
        let mut tree = Tree::default();
        for (path, text, mode) in [
            ("/init", INIT, 0o755),
            ("/bin/give", GIVE, 0o755),
            ("/etc/passwd", PASSWD, 0o644),
            ("/etc/group", GROUP, 0o644),
            ("/etc/hostname", "guest\n", 0o644),
        ] {
            tree.put(path, Content::Bytes(text.as_bytes().to_vec()), mode);
        }
        tree.put("/bin/busybox", Content::Copy(busybox()?), 0o755);
        Ok(tree)
    }

    /// Adds the script and the list of modules.
    pub(super) fn put_orders(&mut self, script: &str, modules: &[PathBuf]) {
        let list: String = modules.iter().map(|file| format!("{}\n", file.display())).collect();
        self.put("/spile/script", Content::Bytes(script.as_bytes().to_vec()), 0o644);
        self.put("/spile/modules", Content::Bytes(list.into_bytes()), 0o644);
    }

    /// The files that `other` lacks, or has with another content or other permissions.
    pub(super) fn without(&self, other: &Tree) -> Tree {
        let own = self.files.iter().filter(|(path, file)| other.files.get(*path) != Some(*file));
        Tree { files: own.map(|(path, file)| (path.clone(), file.clone())).collect() }
    }

    /// What decides the bytes of its archive; of files of the host, that they are the same and unchanged.
    pub(super) fn identity(&self) -> Vec<u8> {
        let mut text = Vec::new();
        let mut copied = Vec::new();
        for (path, (content, mode)) in &self.files {
            text.extend(format!("{mode:o} {path:?} ").into_bytes());
            match content {
                Content::Bytes(bytes) => {
                    text.extend(format!("{} ", bytes.len()).into_bytes());
                    text.extend(bytes);
                }
                Content::Link(to) => text.extend(format!("to {to:?}").into_bytes()),
                Content::Copy(host) => {
                    text.extend(format!("of {host:?}").into_bytes());
                    copied.push(host.clone());
                }
            }
            text.push(b'\n');
        }
        text.extend(Inputs::of(copied).to_text().into_bytes());
        text
    }

    /// Adds the paths, permissions and bytes of all files.
    pub(super) fn digest(&self, hash: &mut Sha256) -> Result<(), Error> {
        for (path, (content, mode)) in &self.files {
            let read;
            let bytes: &[u8] = match content {
                Content::Bytes(bytes) => bytes,
                Content::Link(to) => to.as_os_str().as_encoded_bytes(),
                Content::Copy(host) => {
                    read = read::regular(host, MOST_BYTES).map_err(Error::file("reading", host))?;
                    &read
                }
            };
            hash.update(format!("{path:?} {mode:o} {} {}\n", matches!(content, Content::Link(_)), bytes.len()));
            hash.update(bytes);
        }
        Ok(())
    }

    /// The archive, to be unpacked by the kernel when it boots: with the directories of the base system.
    pub(super) fn initial(&self) -> Result<Vec<u8>, Error> {
        self.write(true)
    }

    /// The archive, to be unpacked in a guest that has booted: it changes nothing of the base system's directories, and what would
    /// be hidden by a mount after a boot is left out.
    pub(super) fn later(&self) -> Result<Vec<u8>, Error> {
        let is_hidden = |path: &Path| ["/proc", "/sys", "/dev"].iter().any(|mount| path.starts_with(mount));
        let seen = self.files.iter().filter(|(path, _)| !is_hidden(path));
        Tree { files: seen.map(|(path, file)| (path.clone(), file.clone())).collect() }.write(false)
    }

    /// `base`: with the directories and devices of the base system.
    fn write(&self, base: bool) -> Result<Vec<u8>, Error> {
        let existing: BTreeSet<PathBuf> =
            ["/proc", "/sys", "/dev", "/root", "/run", "/mnt", "/spile/out", "/var/tmp"].map(PathBuf::from).into();
        let mut directories = existing.clone();
        let parents = self.files.keys().filter_map(|path| path.parent());
        directories.extend(parents.map(Path::to_path_buf));
        for directory in directories.clone() {
            directories.extend(directory.ancestors().map(Path::to_path_buf));
        }
        if !base {
            directories.retain(|directory| {
                directory != Path::new("/tmp") && !existing.iter().any(|there| there.starts_with(directory))
            });
        }
        let mut archive = Archive::default();
        let mut add = || {
            for directory in directories.iter().filter(|directory| directory.parent().is_some()) {
                archive.directory(&name_in(directory), 0o755)?;
            }
            if !base {
                return Ok(());
            }
            archive.directory("tmp", 0o1777)?;
            // The kernel opens the console for init before anything is mounted on /dev.
            archive.device("dev/console", 0o600, (5, 1))?;
            archive.device("dev/null", 0o666, (1, 3))
        };
        let failed = || Error::file("writing", "the guest's file system");
        add().map_err(failed())?;
        for (path, (content, mode)) in &self.files {
            let added = match content {
                Content::Bytes(bytes) => archive.file(&name_in(path), *mode, bytes),
                Content::Link(to) => archive.link(&name_in(path), &to.to_string_lossy()),
                Content::Copy(host) => {
                    let bytes = read::regular(host, MOST_BYTES).map_err(Error::file("reading", host))?;
                    archive.file(&name_in(path), *mode, &bytes)
                }
            };
            added.map_err(failed())?;
        }
        archive.finish().map_err(failed())
    }
}

/// Permission bits of a file of the host.
pub(super) fn mode_of(path: &Path) -> Result<u32, Error> {
    let metadata = fs::metadata(path).map_err(Error::file("reading", path))?;
    Ok(metadata.permissions().mode() & 0o777)
}

fn name_in(path: &Path) -> String {
    path.to_string_lossy().trim_start_matches('/').to_string()
}

/// A statically linked busybox; the guest has no libraries of its own.
fn busybox() -> Result<PathBuf, Error> {
    let looked: Vec<PathBuf> = ["/bin/busybox", "/usr/bin/busybox", "/sbin/busybox"].map(PathBuf::from).into();
    let missing =
        |looked| Error::Missing { what: "statically linked busybox", looked, package: "busybox-static".to_string() };
    match looked.iter().find(|path| path.is_file()) {
        Some(path) if needed_files(path)?.is_empty() => Ok(path.clone()),
        _ => Err(missing(looked)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extra_modules_are_where_modprobe_looks() {
        let kernel = Kernel {
            release: "6.1.0".to_string(),
            image: PathBuf::from("/boot/vmlinuz-6.1.0"),
            modules: PathBuf::from("/nowhere"),
        };
        let mut tree = Tree::default();
        tree.put_modules(&kernel, &[], &[], &[PathBuf::from("/build/lu-1.ko")]).expect("nothing is read yet");
        let (content, _) = &tree.files[Path::new("/lib/modules/6.1.0/modules.dep")];
        assert!(matches!(content, Content::Bytes(bytes) if bytes == b"extra/lu_1.ko:\n"), "{content:?}");
        assert!(tree.files.contains_key(Path::new("/lib/modules/6.1.0/extra/lu_1.ko")));
    }

    #[test]
    fn parents_come_before_their_files() {
        let mut tree = Tree::default();
        tree.put("/a/b/c", Content::Bytes(b"x".to_vec()), 0o644);
        let bytes = tree.write(true).expect("written");
        let at = |name: &[u8]| bytes.windows(name.len()).position(|window| window == name).expect("in the archive");
        assert!(at(b"a\0") < at(b"a/b\0") && at(b"a/b\0") < at(b"a/b/c\0"));
    }

    #[test]
    fn an_archive_for_a_booted_guest_leaves_its_system_alone() {
        let mut tree = Tree::default();
        for path in ["/dev/shm/hidden", "/tmp/seen", "/root/deep/seen", "/usr/bin/seen"] {
            tree.put(path, Content::Bytes(b"x".to_vec()), 0o644);
        }
        let bytes = tree.later().expect("written");
        let has = |name: &[u8]| bytes.windows(name.len()).any(|window| window == name);
        assert!(has(b"0tmp/seen\0") && has(b"0root/deep\0") && has(b"0usr\0") && has(b"0usr/bin/seen\0"));
        assert!(!has(b"hidden") && !has(b"dev/null") && !has(b"0tmp\0") && !has(b"0root\0"));
    }

    #[test]
    fn what_changes_an_archive_changes_its_identity() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("file");
        fs::write(&file, "1").expect("writable");
        let mut tree = Tree::default();
        tree.put("/a", Content::Copy(file.clone()), 0o644);
        let before = tree.identity();
        assert_eq!(tree.clone().identity(), before);
        fs::write(&file, "12").expect("writable");
        let changed = tree.identity();
        assert_ne!(changed, before);
        let mut other = tree.clone();
        other.put("/a", Content::Copy(file.clone()), 0o755);
        assert_ne!(other.identity(), changed);
        other.put("/b", Content::Link(file), 0o777);
        let rest = other.without(&tree);
        assert_eq!(rest.files.keys().collect::<Vec<_>>(), [Path::new("/a"), Path::new("/b")]);
        assert!(tree.without(&other).files.len() == 1 && tree.without(&tree).files.is_empty());
    }
}
