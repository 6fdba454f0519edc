//! Refusals before any harm: what can be known to fail is said before a module is loaded.
//!
//! The module itself checks its kernel and targets again; here the same is told with more words, and before anything
//! is touched.

use std::fs;
use std::path::Path;

use spile_abi::meta::{Meta, Target};

use crate::elf;
use crate::error::Error;
use crate::file::{File, running_release};
use crate::gate::Wish;

/// Bit of CAP_SYS_MODULE in the masks of `/proc/PID/status` (linux/capability.h).
const CAP_SYS_MODULE: u32 = 16;
/// Type of a note with a build-id, owner `GNU`.
const NT_GNU_BUILD_ID: u32 = 3;

/// Whether this process may load modules in this kernel at all.
pub fn may_load_modules() -> Result<(), Error> {
    if read("/proc/sys/kernel/modules_disabled").is_some_and(|text| text.trim() == "1") {
        return Err(Error::ModulesDisabled);
    }
    match read("/proc/self/status").and_then(|status| effective_capabilities(&status)) {
        Some(mask) if mask >> CAP_SYS_MODULE & 1 == 0 => Err(Error::NoCapability),
        // Unknown: the kernel will say.
        _ => Ok(()),
    }
}

fn effective_capabilities(status: &str) -> Option<u64> {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

/// Whether the module was compiled for this kernel, and for those builds of its targets that are loaded now.
pub fn belongs_here(file: &File) -> Result<(), Error> {
    let running = running_release();
    if file.description.meta.kernel_release != running {
        let built_for = file.description.meta.kernel_release.clone();
        return Err(Error::OtherRelease { path: file.path.clone(), built_for, running });
    }
    file.description.meta.targets.iter().try_for_each(|target| {
        let notes = match target.name.as_str() {
            "" => "/sys/kernel/notes".to_string(),
            name => format!("/sys/module/{name}/notes/.note.gnu.build-id"),
        };
        match fs::read(notes) {
            Ok(notes) => is_build(target, &notes),
            // Not loaded, or a kernel that does not show it: then the module looks for itself.
            Err(_) => Ok(()),
        }
    })
}

fn is_build(target: &Target, notes: &[u8]) -> Result<(), Error> {
    let Some(found) = elf::note(notes, b"GNU", NT_GNU_BUILD_ID) else { return Ok(()) };
    if target.build_id.is_empty() || found == target.build_id {
        return Ok(());
    }
    Err(Error::OtherBuild {
        target: target.name.clone(),
        compiled_against: target.path.clone(),
        expected: target.build_id.clone(),
        found: found.to_vec(),
    })
}

/// Where the kernel shows its live patches: PATCH/OBJECT/FUNCTION,NUMBER.
const LIVEPATCHES: &str = "/sys/kernel/livepatch";

/// Whether a script that changes something means functions that a live patch has replaced.
pub fn is_not_livepatched(file: &File) -> Result<(), Error> {
    let meta = &file.description.meta;
    match meta.guru {
        true => meta.probes.iter().try_for_each(|probe| match_livepatch(Path::new(LIVEPATCHES), &probe.point)),
        false => Ok(()),
    }
}

fn match_livepatch(patches: &Path, point: &str) -> Result<(), Error> {
    let Some((object, function)) = probed_function(point) else { return Ok(()) };
    // The kernel spells its own name so.
    let directory = if object.is_empty() { "vmlinux".to_string() } else { object.replace('-', "_") };
    let entries = fs::read_dir(patches).into_iter().flatten().flatten();
    let mut patched = entries.filter(|patch| {
        let functions = fs::read_dir(patch.path().join(&directory)).into_iter().flatten().flatten();
        let mut names = functions.filter_map(|entry| entry.file_name().into_string().ok());
        names.any(|name| name.rsplit_once(',').is_some_and(|(name, _)| name == function))
    });
    match patched.next() {
        None => Ok(()),
        Some(patch) => Err(Error::Livepatched {
            function: function.to_string(),
            target: if object.is_empty() { "the kernel".to_string() } else { format!("module {object}") },
            patch: patch.file_name().to_string_lossy().into_owned(),
        }),
    }
}

/// Module (empty: the kernel) and function of a canonical probe point: `module("m").function("f@file:line").return`.
fn probed_function(point: &str) -> Option<(&str, &str)> {
    let object = match point.strip_prefix("module(\"") {
        Some(rest) => rest.split('"').next()?,
        None => point.starts_with("kernel.").then_some("")?,
    };
    let rest = [".function(\"", ".statement(\""].iter().find_map(|word| point.split_once(word))?.1;
    rest.split(['@', '"']).next().map(|function| (object, function))
}

/// Whether the kernel would take it as far as signatures go.
pub fn signature_will_do(file: &File) -> Result<(), Error> {
    if file.signed {
        return Ok(());
    }
    enforcement().map_or(Ok(()), |because| Err(Error::Unsigned { path: file.path.clone(), because }))
}

/// Why the kernel loads signed modules only, if it does.
fn enforcement() -> Option<&'static str> {
    let enforced = read("/sys/module/module/parameters/sig_enforce").is_some_and(|text| text.trim() == "Y");
    let locked = read("/sys/kernel/security/lockdown").is_some_and(|text| is_locked_down(&text));
    match (locked, enforced) {
        (true, _) => Some("the kernel is locked down (Secure Boot) and loads signed modules only"),
        (_, true) => Some("this kernel loads signed modules only (module.sig_enforce)"),
        _ => None,
    }
}

/// Whether the kernel itself will see to it that somebody whom it trusts has signed the module: what members of spilesys may
/// run from elsewhere. That it checks signatures cannot be taken back before a reboot, so that nothing can change after this.
pub fn is_vouched_for(file: &File) -> Result<(), Error> {
    let path = || file.path.clone();
    match enforcement() {
        None => Err(Error::NotEnforced { path: path() }),
        Some(because) if !file.signed => Err(Error::Unsigned { path: path(), because }),
        Some(_) if file.description.meta.guru => Err(Error::GuruElsewhere { path: path() }),
        Some(_) => Ok(()),
    }
}

/// `[none] integrity confidentiality`: the level in brackets holds.
fn is_locked_down(levels: &str) -> bool {
    levels.split_whitespace().any(|level| level.starts_with('[') && level != "[none]")
}

/// What says how a script's writes are held back.
pub const GATE_OPTIONS: &str = "--dry-run, --harmless-c, --expires, --rewrites, --only";

/// Whether what the script writes can be held back as it is wished.
pub fn gate_fits(wish: &Wish, meta: &Meta) -> Result<(), Error> {
    if wish.is_none() {
        return Ok(());
    }
    if !meta.guru {
        let why = "the script writes nothing: it was compiled without -g".to_string();
        return Err(Error::Setting { given: GATE_OPTIONS.to_string(), why });
    }
    if wish.dry_run && !wish.harmless_c { can_only_observe(meta) } else { Ok(()) }
}

/// The gate does not see what C does through pointers of its own: what only observes must have none that may write.
pub fn can_only_observe(meta: &Meta) -> Result<(), Error> {
    match meta.ungated.is_empty() {
        true => Ok(()),
        false => Err(Error::Ungated { name: meta.name.clone(), code: meta.ungated.join(", ") }),
    }
}

/// Whether a module can get this name. Leftovers have been removed before.
pub fn name_is_free(name: &str) -> Result<(), Error> {
    match Path::new("/sys/module").join(name).exists() {
        true => Err(Error::NameTaken { name: name.to_string() }),
        false => Ok(()),
    }
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read() {
        assert_eq!(effective_capabilities("CapPrm:\t00\nCapEff:\t000001ffffffffff\n"), Some(0x1ff_ffff_ffff));
        assert_eq!(effective_capabilities("Name:\tx\n"), None);
    }

    #[test]
    fn functions_that_live_patches_have_replaced_are_found() {
        let directory = tempfile::tempdir().unwrap();
        for path in ["fix/lustre/ll_xattr_cache_refill,1", "other/vmlinux/vfs_read,0"] {
            fs::create_dir_all(directory.path().join(path)).unwrap();
        }
        let look = |point: &str| match_livepatch(directory.path(), point);
        let error = look("module(\"lustre\").function(\"ll_xattr_cache_refill@a.c:1\").return").unwrap_err();
        assert!(matches!(&error, Error::Livepatched { patch, .. } if patch == "fix"), "{error}");
        assert!(look("kernel.function(\"vfs_read@fs/read_write.c:450\").call").is_err());
        assert!(look("kernel.statement(\"vfs_read@fs/read_write.c:452\")").is_err());
        for other in ["kernel.function(\"vfs_write@fs/read_write.c:1\")", "module(\"ext4\").function(\"ll_xattr_cache_refill\")", "begin", "timer.s(1)"] {
            assert!(look(other).is_ok(), "{other}");
        }
    }

    #[test]
    fn lockdown_is_what_stands_in_brackets() {
        assert!(!is_locked_down("[none] integrity confidentiality\n"));
        assert!(is_locked_down("none [integrity] confidentiality\n"));
        assert!(!is_locked_down(""));
    }

    #[test]
    fn builds_are_compared_where_both_sides_have_an_id() {
        let mut notes = vec![4, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0];
        notes.extend(b"GNU\0\xaa\xbb\0\0");
        let target = |id: &[u8]| Target { name: "m".into(), build_id: id.to_vec(), path: String::new() };
        assert!(is_build(&target(b"\xaa\xbb"), &notes).is_ok());
        assert!(is_build(&target(b""), &notes).is_ok());
        assert!(is_build(&target(b"\xaa\xbc"), b"").is_ok());
        let error = is_build(&target(b"\xaa\xbc"), &notes).unwrap_err();
        assert!(matches!(error, Error::OtherBuild { found, .. } if found == [0xaa, 0xbb]));
    }
}
