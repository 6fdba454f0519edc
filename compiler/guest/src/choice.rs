// SPDX-License-Identifier: GPL-2.0-or-later

//! Chooses KVM or translation (TCG) for guests.
//!
//! A present /dev/kvm does not mean that a guest makes progress with it (nested virtualisation may hang), so an empty
//! guest is booted with it once, within [`TRIAL`]; only a guest that ended by itself counts. The result is cached in
//! the user's cache directory and is valid for this boot of the machine and this qemu.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::acceleration::Acceleration;
use super::qemu;

/// Time limit of the trial; a guest under KVM is up in less than two seconds.
pub(super) const TRIAL: Duration = Duration::from_secs(10);

/// The accelerator that works on this machine: from the cache, or from `try_kvm`, which boots a guest with KVM within
/// [`TRIAL`] and returns whether it ended by itself. `notice` is called before the trial.
pub(super) fn choose(notice: &mut dyn FnMut(&str), try_kvm: impl FnOnce() -> bool) -> Acceleration {
    let usable = fs::OpenOptions::new().read(true).write(true).open("/dev/kvm").is_ok();
    if !usable {
        return Acceleration::Tcg;
    }
    let version = qemu::find().map(|qemu| qemu::version(&qemu)).unwrap_or_default();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let key = format!("{} {version}", boot.trim());
    let file = cache_directory().map(|directory| directory.join("guest-acceleration"));
    if let Some(answer) = file.as_deref().and_then(|file| remembered(file, &key)) {
        return answer;
    }
    notice("trying whether KVM works here (once, up to 10 s)");
    let answer = if try_kvm() { Acceleration::Kvm } else { Acceleration::Tcg };
    if let Some(file) = &file {
        remember(file, &key, answer);
    }
    answer
}

/// `$XDG_CACHE_HOME/spile` or `~/.cache/spile`; None without a home, or with that of another user: root would follow that user's links.
fn cache_directory() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))?;
    is_own(&base).then(|| base.join("spile"))
}

/// Whether the directory, or if there is none the one in which it would be made, belongs to this user; not where a link leads.
fn is_own(directory: &Path) -> bool {
    let there = directory.ancestors().find_map(|path| fs::symlink_metadata(path).ok());
    there.is_some_and(|metadata| metadata.uid() == nix::unistd::geteuid().as_raw())
}

/// The file is one line: the key, a tab, the result.
fn remembered(file: &Path, key: &str) -> Option<Acceleration> {
    // A pipe would be waited for.
    if !fs::metadata(file).ok()?.is_file() {
        return None;
    }
    let text = fs::read_to_string(file).ok()?;
    let (kept, answer) = text.trim_end().split_once('\t')?;
    let known = [Acceleration::Kvm, Acceleration::Tcg].into_iter().find(|known| known.word() == answer);
    known.filter(|_| kept == key)
}

/// If the cache cannot be written, the trial is repeated next time.
fn remember(file: &Path, key: &str, answer: Acceleration) {
    if let Some(directory) = file.parent() {
        let _ = fs::create_dir_all(directory);
    }
    // A link is replaced and not followed: root may run this with the home of a user.
    let new = file.with_extension("new");
    let _ = fs::remove_file(&new);
    let made = fs::OpenOptions::new().write(true).create_new(true).open(&new);
    let written = made.and_then(|mut made| writeln!(made, "{key}\t{}", answer.word()));
    let _ = written.and_then(|()| fs::rename(&new, file));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_holds_for_its_boot_and_qemu() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("cache/answer");
        remember(&file, "boot-1 qemu 7", Acceleration::Kvm);
        assert_eq!(remembered(&file, "boot-1 qemu 7"), Some(Acceleration::Kvm));
        assert_eq!(remembered(&file, "boot-2 qemu 7"), None);
        fs::write(&file, "nonsense").expect("writable");
        assert_eq!(remembered(&file, "boot-1 qemu 7"), None);
    }

    #[test]
    fn a_directory_of_another_user_is_not_used() {
        use std::os::unix::fs::{lchown, symlink};
        let home = tempfile::tempdir().expect("a temporary directory");
        let base = home.path().join(".cache");
        assert!(is_own(&base) && is_own(home.path()));
        symlink("/etc", &base).expect("a link");
        // Only root can change an owner.
        if lchown(&base, Some(4711), None).is_ok() {
            assert!(!is_own(&base));
        }
        if std::os::unix::fs::chown(home.path(), Some(4711), None).is_ok() {
            assert!(!is_own(home.path()) && !is_own(&home.path().join("none")));
        }
    }

    #[test]
    fn no_file_elsewhere_is_written() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let [file, other] = ["answer", "other"].map(|name| directory.path().join(name));
        fs::write(&other, "theirs").expect("writable");
        for link in [&file, &file.with_extension("new")] {
            std::os::unix::fs::symlink(&other, link).expect("a link");
        }
        remember(&file, "boot qemu", Acceleration::Kvm);
        assert_eq!(fs::read_to_string(&other).expect("readable"), "theirs");
        assert_eq!(remembered(&file, "boot qemu"), Some(Acceleration::Kvm));
        fs::remove_file(&file).expect("a file");
        nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        assert_eq!(remembered(&file, "boot qemu"), None);
    }
}
