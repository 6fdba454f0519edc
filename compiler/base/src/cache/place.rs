// SPDX-License-Identifier: GPL-2.0-or-later

//! Finds the cache directory and decides whether it may be used.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::Kind;

/// 2 GiB: some two thousand modules with their debug information, beside the indexes of a dozen kernels.
pub const DEFAULT_LIMIT: u64 = 2 << 30;

/// Settings of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// None: no directory, or disabled.
    pub directory: Option<PathBuf>,
    /// Bytes.
    pub limit: u64,
    /// Existing entries are not trusted: entries are written but not read.
    pub poisoned: bool,
}

impl Settings {
    /// `$SPILE_CACHE_DIR`, else `$XDG_CACHE_HOME/spile`, else `~/.cache/spile`; `$SPILE_CACHE_LIMIT` is the bound in MiB.
    pub fn from_environment() -> Settings {
        let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let directory = var("SPILE_CACHE_DIR")
            .map(PathBuf::from)
            .or_else(|| Some(PathBuf::from(var("XDG_CACHE_HOME")?).join("spile")))
            .or_else(|| Some(PathBuf::from(var("HOME")?).join(".cache/spile")));
        let limit = var("SPILE_CACHE_LIMIT").and_then(|text| text.to_str()?.parse::<u64>().ok());
        let limit = limit.map_or(DEFAULT_LIMIT, |mib| mib.saturating_mul(1 << 20));
        Settings { directory, limit, poisoned: false }
    }

    /// The same for the saved states of guests: if there is a cache, they are in `$SPILE_GUEST_CACHE_DIR` where that is set. Many
    /// caches can share them then.
    #[must_use]
    pub fn of_guests(self) -> Settings {
        let other = std::env::var_os("SPILE_GUEST_CACHE_DIR").filter(|value| !value.is_empty()).map(PathBuf::from);
        Settings { directory: self.directory.map(|directory| other.unwrap_or(directory)), ..self }
    }
}

/// The usable part of a cache.
#[derive(Default)]
pub(super) struct UsableCache {
    /// Without symbolic links, so that nothing can redirect it later. None: unusable.
    pub directory: Option<PathBuf>,
    /// Kinds whose directory may not be used.
    pub refused: Vec<Kind>,
    /// The reasons, a sentence each.
    pub notices: Vec<String>,
}

/// Creates the directory if needed, and checks which of it may be used.
pub(super) fn usable(settings: &Settings) -> UsableCache {
    let Some(directory) = &settings.directory else { return UsableCache::default() };
    // Before anything is made: a link in a directory of another user leads where that user likes.
    let given = directory.ancestors().skip(1).filter(|parent| parent.exists()).try_for_each(check_writers);
    let made = given.and_then(|()| {
        super::make_directory(directory).and_then(|()| directory.canonicalize()).map_err(|error| error.to_string())
    });
    let checked = made.and_then(|real| {
        is_ours(&std::fs::symlink_metadata(&real).map_err(|error| error.to_string())?)?;
        check_parents(&real)?;
        Ok(real)
    });
    let real = match checked {
        Ok(real) => real,
        Err(why) => {
            let notices = vec![format!("the cache {} is not used: {why}", directory.display())];
            return UsableCache { notices, ..UsableCache::default() };
        }
    };
    let mut usable = UsableCache::default();
    for kind in Kind::ALL {
        let below = real.join(kind.name());
        // Missing directories are created with the right mode.
        let Ok(metadata) = std::fs::symlink_metadata(&below) else { continue };
        let sound = if metadata.is_dir() { is_ours(&metadata) } else { Err("it is not a directory".to_string()) };
        if let Err(why) = sound {
            usable.notices.push(format!("{} is not used: {why}; remove it, and it is made again", below.display()));
            usable.refused.push(kind);
        }
    }
    usable.directory = Some(real);
    usable
}

/// Modules from it are loaded into kernels, so no other user may be able to write there.
pub(super) fn is_ours(metadata: &std::fs::Metadata) -> Result<(), String> {
    if metadata.uid() != nix::unistd::geteuid().as_raw() {
        return Err(format!("it belongs to user {}", metadata.uid()));
    }
    if metadata.mode() & 0o022 != 0 {
        return Err(format!("others can write there (mode {:o})", metadata.mode() & 0o7777));
    }
    Ok(())
}

/// Checks the parents: a user who can write to one can replace what is below, except in sticky directories like /tmp.
/// `path` has no symbolic links. For users other than root, the group may write too, as is common for homes.
fn check_parents(path: &Path) -> Result<(), String> {
    path.ancestors().skip(1).try_for_each(check_writers)
}

fn check_writers(directory: &Path) -> Result<(), String> {
    const STICKY: u32 = 0o1000;
    let user = nix::unistd::geteuid().as_raw();
    let metadata = std::fs::metadata(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    if metadata.uid() != 0 && metadata.uid() != user {
        return Err(format!("{}, which it is in, belongs to user {}", directory.display(), metadata.uid()));
    }
    let others = if user == 0 { 0o022 } else { 0o002 };
    if metadata.mode() & others != 0 && metadata.mode() & STICKY == 0 {
        return Err(format!(
            "others can write in {}, which it is in (mode {:o})",
            directory.display(),
            metadata.mode() & 0o7777
        ));
    }
    Ok(())
}

/// Whether files that root creates in the directory are safe: objects that become modules are made in it. Not checked
/// for other users, who cannot load what they build.
pub fn check_scratch_parent(directory: &Path) -> Result<(), String> {
    if !nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    let real = directory.canonicalize().map_err(|error| format!("{}: {error}", directory.display()))?;
    real.ancestors().try_for_each(check_writers)
}
