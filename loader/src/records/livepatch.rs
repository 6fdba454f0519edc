// SPDX-License-Identifier: GPL-2.0-or-later

//! Live patches: a patched function no longer runs the code that the script was compiled for.
//!
//! The kernel shows the functions of each patch: /sys/kernel/livepatch/PATCH/OBJECT/FUNCTION,NUMBER, with `vmlinux` for
//! the kernel itself. Before a script that changes something is loaded, its functions are looked up there
//! ([`is_not_patched`]). The module reports patches loaded later by a record; they are checked against the script's
//! probes ([`check_new_patch`]).

use std::fs;
use std::path::Path;

use spile_abi::meta::Meta;

use crate::error::Error;
use crate::host::kernel::is_module_name;

const PATCHES: &str = "/sys/kernel/livepatch";

/// Whether a script that changes something probes functions that a live patch has replaced.
pub fn is_not_patched(meta: &Meta) -> Result<(), Error> {
    match meta.guru {
        true => meta.probes.iter().try_for_each(|probe| find_patch(Path::new(PATCHES), &probe.point)),
        false => Ok(()),
    }
}

fn find_patch(patches: &Path, point: &str) -> Result<(), Error> {
    let Some((object, function)) = probed_function(point) else { return Ok(()) };
    let entries = fs::read_dir(patches).into_iter().flatten().flatten();
    match entries.into_iter().find(|patch| replaces(&patch.path(), object, function)) {
        None => Ok(()),
        Some(patch) => Err(Error::Livepatched {
            function: function.to_string(),
            target: in_words(object),
            patch: patch.file_name().to_string_lossy().into_owned(),
        }),
    }
}

/// Whether the patch in that directory replaces the function.
fn replaces(patch: &Path, object: &str, function: &str) -> bool {
    // The kernel's spelling of module names.
    let directory = if object.is_empty() { "vmlinux".to_string() } else { object.replace('-', "_") };
    let functions = fs::read_dir(patch.join(directory)).into_iter().flatten().flatten();
    let mut names = functions.filter_map(|entry| entry.file_name().into_string().ok());
    names.any(|name| name.rsplit_once(',').is_some_and(|(name, _)| name == function))
}

fn in_words(object: &str) -> String {
    if object.is_empty() { "the kernel".to_string() } else { format!("module {object}") }
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

/// The effect of a live patch that was loaded while the script is armed.
#[derive(Debug, PartialEq, Eq)]
pub enum NewPatch {
    /// It replaces probed functions: their old code no longer runs. The text names them and says what to do.
    Relevant(String),
    /// It replaces no probed function.
    Unrelated(String),
}

/// Checks the functions of a live patch that was loaded while the script is armed.
pub fn check_new_patch(meta: &Meta, patch: &str) -> NewPatch {
    compare(Path::new(PATCHES), meta, patch)
}

fn compare(patches: &Path, meta: &Meta, patch: &str) -> NewPatch {
    let loaded = format!("the live patch {patch} has been loaded while the script is armed");
    let directory = patches.join(patch);
    if !is_module_name(patch) || !directory.is_dir() {
        // Already removed, or there is no sysfs.
        return NewPatch::Relevant(format!(
            "{loaded}: of a function that it replaces (see {PATCHES}/{patch}) the script's probes are still where its old code is; take out one of the two"
        ));
    }
    let is_replaced =
        |point: &str| probed_function(point).is_some_and(|(object, function)| replaces(&directory, object, function));
    let probed: Vec<String> = meta
        .probes
        .iter()
        .filter(|probe| is_replaced(&probe.point))
        .filter_map(|probe| {
            let (object, function) = probed_function(&probe.point)?;
            Some(format!("{function} of {} (probe {})", in_words(object), probe.point))
        })
        .collect();
    match probed.is_empty() {
        true => NewPatch::Unrelated(format!("{loaded}: it replaces nothing that the script probes")),
        false => NewPatch::Relevant(format!(
            "{loaded}: it replaces {}; the script's probes are still in the old code, which does not run any more: remove one of the two (echo 0 >{PATCHES}/{patch}/enabled)",
            probed.join(", ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spile_abi::meta::Probe;

    const LUSTRE: &str = "module(\"lustre\").function(\"ll_xattr_cache_refill@a.c:1\").return";
    const READ: &str = "kernel.function(\"vfs_read@fs/read_write.c:450\").call";

    fn patches() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for path in ["fix/lustre/ll_xattr_cache_refill,1", "other/vmlinux/vfs_read,0"] {
            fs::create_dir_all(directory.path().join(path)).unwrap();
        }
        directory
    }

    #[test]
    fn functions_that_live_patches_have_replaced_are_found() {
        let directory = patches();
        let look = |point: &str| find_patch(directory.path(), point);
        let error = look(LUSTRE).unwrap_err();
        assert!(matches!(&error, Error::Livepatched { patch, .. } if patch == "fix"), "{error}");
        assert!(look(READ).is_err());
        assert!(look("kernel.statement(\"vfs_read@fs/read_write.c:452\")").is_err());
        for other in [
            "kernel.function(\"vfs_write@fs/read_write.c:1\")",
            "module(\"ext4\").function(\"ll_xattr_cache_refill\")",
            "begin",
            "timer.s(1)",
        ] {
            assert!(look(other).is_ok(), "{other}");
        }
    }

    #[test]
    fn a_new_patch_names_probed_functions() {
        let directory = patches();
        let probe = |point: &str| Probe { point: point.into(), ..Probe::default() };
        let meta = Meta { probes: vec![probe("begin"), probe(LUSTRE)], ..Meta::default() };
        let look = |patch: &str| compare(directory.path(), &meta, patch);
        let NewPatch::Relevant(text) = look("fix") else { panic!("it replaces it") };
        assert!(text.contains("replaces ll_xattr_cache_refill of module lustre (probe module("), "{text}");
        assert!(text.ends_with("(echo 0 >/sys/kernel/livepatch/fix/enabled)"), "{text}");
        let NewPatch::Unrelated(text) = look("other") else { panic!("vfs_read is not probed") };
        assert!(text.contains("live patch other has been loaded"), "{text}");
        for gone in ["gone", "../fix", ""] {
            assert!(
                matches!(look(gone), NewPatch::Relevant(text) if text.contains("see /sys/kernel/livepatch/")),
                "{gone}"
            );
        }
    }
}
