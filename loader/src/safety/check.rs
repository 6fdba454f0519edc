// SPDX-License-Identifier: GPL-2.0-or-later

//! Checks before a module is loaded: everything that can be known to fail is refused here.
//!
//! The module itself checks its kernel and targets again; the messages here have more detail, and nothing has been
//! changed yet.

use std::fs;
use std::path::Path;

use spile_abi::meta::{Meta, Target};
use spile_abi::seal;

use crate::elf;
use crate::error::{Error, NoSigner};
use crate::host::kernel::running_release;
use crate::module::file::File;
use crate::module::gate::GateOptions;
use crate::safety::certificate::Key;
use crate::safety::trust;

/// Bit of CAP_SYS_MODULE in the masks of `/proc/PID/status` (linux/capability.h).
const CAP_SYS_MODULE: u32 = 16;
/// Type of a note with a build-id, owner `GNU`.
const NT_GNU_BUILD_ID: u32 = 3;

/// Whether this process may load modules into this kernel.
pub fn may_load_modules() -> Result<(), Error> {
    if read("/proc/sys/kernel/modules_disabled").is_some_and(|text| text.trim() == "1") {
        return Err(Error::ModulesDisabled);
    }
    match read("/proc/self/status").and_then(|status| effective_capabilities(&status)) {
        Some(mask) if mask >> CAP_SYS_MODULE & 1 == 0 => Err(Error::NoCapability),
        // Unknown: the kernel will report it.
        _ => Ok(()),
    }
}

fn effective_capabilities(status: &str) -> Option<u64> {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

/// Whether the module was compiled for this kernel, and for the loaded builds of its targets.
pub fn check_namespace(file: &File) -> Result<(), Error> {
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
            // Not loaded, or the kernel does not show its build-id: the module checks it itself.
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

/// Whether the kernel would accept the module's signature, or its absence.
pub fn check_signature(file: &File) -> Result<(), Error> {
    if file.signed {
        return Ok(());
    }
    enforcement().map_or(Ok(()), |because| Err(Error::Unsigned { path: file.path.clone(), because }))
}

/// Why the kernel only loads signed modules; `None` if it loads others too.
pub fn enforcement() -> Option<&'static str> {
    let enforced = read("/sys/module/module/parameters/sig_enforce").is_some_and(|text| text.trim() == "Y");
    let locked = read("/sys/kernel/security/lockdown").is_some_and(|text| is_locked_down(&text));
    match (locked, enforced) {
        (true, _) => Some("the kernel is locked down (Secure Boot) and loads signed modules only"),
        (_, true) => Some("this kernel loads signed modules only (module.sig_enforce)"),
        _ => None,
    }
}

/// Whether the module is signed by a signer whom the kernel or root trusts: required for modules that members of
/// spilesys run from elsewhere. `enforced`: the kernel checks signatures itself ([`enforcement`]), and enforcement
/// cannot be switched off before a reboot. Otherwise the signature is checked against these keys.
pub fn is_vouched_for(
    path: &Path,
    image: &[u8],
    enforced: Option<&'static str>,
    trusted: impl FnOnce() -> Vec<Key>,
) -> Result<(), Error> {
    let path = || path.to_path_buf();
    if !image.ends_with(seal::SIGNATURE_MARK) {
        return Err(match enforced {
            Some(because) => Error::Unsigned { path: path(), because },
            None => Error::NoSigner { path: path(), why: NoSigner::Unsigned },
        });
    }
    if enforced.is_some() {
        return Ok(());
    }
    let keys = trusted();
    match trust::is_signed_by(image, &keys) {
        true => Ok(()),
        false if keys.is_empty() => Err(Error::NoSigner { path: path(), why: NoSigner::NoKeys }),
        false => Err(Error::NoSigner { path: path(), why: NoSigner::Stranger }),
    }
}

/// `[none] integrity confidentiality`: the level in brackets is active.
fn is_locked_down(levels: &str) -> bool {
    levels.split_whitespace().any(|level| level.starts_with('[') && level != "[none]")
}

/// The module's parameter that restricts a script's writes.
pub const GATE_OPTIONS: &str = "--dry-run, --harmless-c, --expires, --rewrites, --only";

/// Whether the script's writes can be intercepted as the options ask.
pub fn gate_fits(options: &GateOptions, meta: &Meta) -> Result<(), Error> {
    if options.is_none() {
        return Ok(());
    }
    if !meta.guru {
        let why = "the script writes nothing: it was compiled without -g".to_string();
        return Err(Error::Setting { given: GATE_OPTIONS.to_string(), why });
    }
    if options.dry_run && !options.harmless_c { check_observes(meta) } else { Ok(()) }
}

/// The gate does not see writes by embedded C: observe mode is only possible if no embedded C may write.
pub fn check_observes(meta: &Meta) -> Result<(), Error> {
    match meta.ungated.is_empty() {
        true => Ok(()),
        false => Err(Error::Ungated { name: meta.name.clone(), code: meta.ungated.join(", ") }),
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
    fn modules_from_elsewhere_need_a_trusted_signer() {
        let signed = include_bytes!("../../tests/trust/sha256.signed");
        let key = || Key::of_certificate(include_bytes!("../../tests/trust/certificate.der")).unwrap();
        let ask = |image: &[u8], enforced, keys: Vec<Key>| is_vouched_for(Path::new("a.ko"), image, enforced, || keys);
        assert!(ask(signed, None, vec![key()]).is_ok());
        assert!(ask(signed, Some("the kernel does"), vec![]).is_ok());
        for (error, means) in [
            (ask(signed, None, vec![]), "no certificate in /etc/spile/keys"),
            (ask(&[signed, &signed[..]].concat(), None, vec![key()]), "not signed with a key in /etc/spile/keys"),
            (ask(b"", None, vec![key()]), "not signed: sign it"),
            (ask(b"", Some("this kernel loads signed modules only"), vec![key()]), "signed modules only"),
        ] {
            let error = error.unwrap_err();
            assert!(error.to_string().contains(means) && error.exit() == crate::error::Exit::Permission, "{error}");
        }
    }

    #[test]
    fn the_lockdown_level_is_in_brackets() {
        assert!(!is_locked_down("[none] integrity confidentiality\n"));
        assert!(is_locked_down("none [integrity] confidentiality\n"));
        assert!(!is_locked_down(""));
    }

    #[test]
    fn build_ids_are_compared_if_both_exist() {
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
