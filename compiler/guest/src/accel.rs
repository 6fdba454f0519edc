// SPDX-License-Identifier: GPL-2.0-or-later

//! Whether guests run with KVM or by translation (TCG).
//!
//! That /dev/kvm is there does not say that a guest started with it makes progress (nested virtualisation may hang), so
//! a guest that does nothing is booted with it once, within [`TRIAL`]; only a guest that ended by itself counts. The
//! answer is kept in the user's cache directory and holds for this boot of the machine and this qemu.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{End, Guest, Kernel, Streams, qemu};

/// A guest under KVM is up in less than two seconds.
const TRIAL: Duration = Duration::from_secs(10);

/// Who executes the guest's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceleration {
    /// The CPU, by the host's KVM.
    Kvm,
    /// qemu, by translating them.
    Tcg,
    /// By translation, with a clock that goes on by 1 ns for each instruction executed: costs can be counted. One CPU.
    Counting,
}

impl Acceleration {
    /// For qemu's `-accel`.
    pub(super) fn argument(self) -> &'static str {
        match self {
            Acceleration::Kvm => "kvm",
            // Not thread=multi: until QEMU 8.1 it may go on executing an instruction that another CPU has replaced
            // (measured with 7.2: a bare kprobe on vfs_read, armed and disarmed under load, jumps to address 0).
            Acceleration::Tcg | Acceleration::Counting => "tcg,thread=single",
        }
    }

    /// For qemu's `-icount`.
    pub(super) fn counting(self) -> Option<&'static str> {
        (self == Acceleration::Counting).then_some("shift=0,sleep=off")
    }

    fn word(self) -> &'static str {
        match self {
            Acceleration::Kvm => "kvm",
            Acceleration::Tcg => "tcg",
            Acceleration::Counting => "counting",
        }
    }
}

/// What works on this machine: asked of the cache, else tried. `notice` is told before a trial, which takes seconds.
pub(super) fn choose(kernel: &Kernel, notice: &mut dyn FnMut(&str)) -> Acceleration {
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
    let answer = if works(kernel) { Acceleration::Kvm } else { Acceleration::Tcg };
    if let Some(file) = &file {
        remember(file, &key, answer);
    }
    answer
}

fn works(kernel: &Kernel) -> bool {
    let mut guest = Guest::new(kernel.clone());
    guest.script("true").time_limit(TRIAL).acceleration(Acceleration::Kvm);
    match guest.start(Streams::discard()) {
        Ok(running) => matches!(running.wait(), Ok(outcome) if outcome.end == End::Exited(0)),
        Err(_) => false,
    }
}

/// `$XDG_CACHE_HOME/spile` or `~/.cache/spile`; none without a home.
fn cache_directory() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))?;
    Some(base.join("spile"))
}

/// The file is one line: the key, a tab, the answer.
fn remembered(file: &Path, key: &str) -> Option<Acceleration> {
    let text = fs::read_to_string(file).ok()?;
    let (kept, answer) = text.trim_end().split_once('\t')?;
    let known = [Acceleration::Kvm, Acceleration::Tcg].into_iter().find(|known| known.word() == answer);
    known.filter(|_| kept == key)
}

/// A cache that cannot be written costs another trial, nothing else.
fn remember(file: &Path, key: &str, answer: Acceleration) {
    if let Some(directory) = file.parent() {
        let _ = fs::create_dir_all(directory);
    }
    let _ = fs::write(file, format!("{key}\t{}\n", answer.word()));
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
}
