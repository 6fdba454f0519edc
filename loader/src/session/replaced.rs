// SPDX-License-Identifier: GPL-2.0-or-later

//! Files of programs that are replaced while probes are in them, as an upgrade of a package does. Probes belong to a
//! file: those in running processes stay, and processes that begin later run another file, without probes.
//!
//! The owner of a directory in the path can at any time redirect it to a file system that never answers. So the files
//! are looked up in the kernel's caches only: files that were executed or renamed a moment ago are there; others are
//! looked up again later.

use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
use nix::libc;
use spile_abi::meta::Meta;

use crate::userspace::mounts::{Identity, Mounts, identity};

/// Nanoseconds between two looks.
const INTERVAL: u64 = 5_000_000_000;

/// The files, as they were when the session began.
pub struct ReplacedPrograms {
    /// `None`: not known so far.
    files: Vec<(String, Option<Identity>)>,
    next: u64,
}

impl ReplacedPrograms {
    /// The programs and libraries with probes of the script; missing files are omitted. `now`: nanoseconds, as
    /// everywhere here.
    pub fn of(meta: &Meta, now: u64) -> ReplacedPrograms {
        let known = meta.programs.iter().filter_map(|program| {
            let identity = match look_at(&program.name) {
                Found::File(identity) => Some(identity),
                Found::Unknown => None,
                Found::Nothing => return None,
            };
            Some((program.name.clone(), identity))
        });
        ReplacedPrograms { files: known.collect(), next: now.saturating_add(INTERVAL) }
    }

    /// The paths where another file is now, each once. One that is being replaced may be absent for a moment. Waits for nothing.
    pub fn look(&mut self, now: u64) -> Vec<String> {
        if now < self.next {
            return Vec::new();
        }
        self.next = now.saturating_add(INTERVAL);
        let mut replaced = Vec::new();
        self.files.retain_mut(|(path, known)| {
            let Found::File(found) = look_at(path) else { return true };
            let is_another = *known.get_or_insert(found) != found;
            if is_another {
                replaced.push(std::mem::take(path));
            }
            !is_another
        });
        replaced
    }

    /// Nanoseconds until [`ReplacedPrograms::look`] is to be called; `None`: never.
    pub fn until_next(&self, now: u64) -> Option<u64> {
        (!self.files.is_empty()).then(|| self.next.saturating_sub(now))
    }
}

/// The file at a path.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    File(Identity),
    Nothing,
    /// It is not in the caches.
    Unknown,
}

/// Looks up a file without waiting for a file system: openat2(2) with RESOLVE_CACHED, from Linux 5.12 on. On older
/// kernels the result is unknown while another user serves a file system, and links of /proc, which could lead to other
/// mounts, are not followed.
fn look_at(path: &str) -> Found {
    let open = |resolve| {
        let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC).resolve(resolve);
        openat2(AT_FDCWD, Path::new(path), how)
    };
    let cached = ResolveFlag::from_bits_retain(libc::RESOLVE_CACHED);
    let opened = match open(cached) {
        Err(Errno::EINVAL) if Mounts::own().all_answer() => open(ResolveFlag::RESOLVE_NO_MAGICLINKS),
        opened => opened,
    };
    match opened {
        Ok(file) => identity(&file).map_or(Found::Unknown, Found::File),
        Err(Errno::ENOENT | Errno::ENOTDIR) => Found::Nothing,
        Err(_) => Found::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use spile_abi::meta::Target;

    use super::*;

    #[test]
    fn a_replaced_file_is_reported_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        let targets = ["replaced", "kept", "absent"]
            .map(|name| Target { name: at(name).display().to_string(), ..Target::default() });
        for name in ["replaced", "kept", "new"] {
            fs::write(at(name), name).expect("written");
            let found = look_at(at(name).to_str().expect("a name"));
            let expected = fs::metadata(at(name)).expect("written").ino();
            assert!(matches!(found, Found::File((_, _, inode)) if inode == expected), "{name}: {found:?}");
        }
        assert!(!matches!(look_at(at("absent").to_str().expect("a name")), Found::File(_)));
        // The kernel does not follow a link of /proc in its caches alone.
        assert_eq!(look_at(&format!("/proc/self/root{}", at("kept").display())), Found::Unknown);
        let meta = Meta { programs: targets.to_vec(), ..Meta::default() };
        let mut files = ReplacedPrograms::of(&meta, 0);
        fs::rename(at("new"), at("replaced")).expect("renamed");
        assert_eq!((files.until_next(1), files.look(INTERVAL - 1)), (Some(INTERVAL - 1), Vec::new()));
        assert_eq!(files.look(INTERVAL), [at("replaced").display().to_string()]);
        assert_eq!(files.look(2 * INTERVAL), Vec::<String>::new());
        assert_eq!(files.until_next(2 * INTERVAL), Some(INTERVAL));
        assert_eq!(ReplacedPrograms::of(&Meta::default(), 0).until_next(0), None);
    }
}
