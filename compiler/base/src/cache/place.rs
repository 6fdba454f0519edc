// SPDX-License-Identifier: GPL-2.0-or-later

//! Where the cache is, and whether it may be used.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::Kind;

/// 2 GiB: some two thousand modules with their debug information, beside the indexes of a dozen kernels.
pub const DEFAULT_LIMIT: u64 = 2 << 30;

/// How the cache is to be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// None: there is no place for one, or it is not wanted.
    pub directory: Option<PathBuf>,
    /// Bytes.
    pub limit: u64,
    /// What is there is not to be trusted: entries are written and not read.
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
}

/// What of a cache may be used.
#[derive(Default)]
pub(super) struct Usable {
    /// Without symbolic links, so that nobody can lead it elsewhere later. None: nothing.
    pub directory: Option<PathBuf>,
    /// Kinds whose own directory may not be used.
    pub refused: Vec<Kind>,
    /// Why not, a sentence each.
    pub notices: Vec<String>,
}

/// The directory, made if it was not there, with what may not be used of it.
pub(super) fn usable(settings: &Settings) -> Usable {
    let Some(directory) = &settings.directory else { return Usable::default() };
    let made =
        super::make_directory(directory).and_then(|()| directory.canonicalize()).map_err(|error| error.to_string());
    let checked = made.and_then(|real| {
        is_ours(&std::fs::symlink_metadata(&real).map_err(|error| error.to_string())?)?;
        nobody_else_above(&real)?;
        Ok(real)
    });
    let real = match checked {
        Ok(real) => real,
        Err(why) => {
            let notices = vec![format!("the cache {} is not used: {why}", directory.display())];
            return Usable { notices, ..Usable::default() };
        }
    };
    let mut usable = Usable::default();
    for kind in Kind::ALL {
        let below = real.join(kind.name());
        // What is not there is made as it should be.
        let Ok(metadata) = std::fs::symlink_metadata(&below) else { continue };
        let sound = if metadata.is_dir() { is_ours(&metadata) } else { Err("it is no directory".to_string()) };
        if let Err(why) = sound {
            usable.notices.push(format!("{} is not used: {why}; remove it, and it is made again", below.display()));
            usable.refused.push(kind);
        }
    }
    usable.directory = Some(real);
    usable
}

/// Modules from it are loaded into kernels, so nobody else may be able to write there.
pub(super) fn is_ours(metadata: &std::fs::Metadata) -> Result<(), String> {
    if metadata.uid() != nix::unistd::geteuid().as_raw() {
        return Err(format!("it belongs to user {}", metadata.uid()));
    }
    if metadata.mode() & 0o022 != 0 {
        return Err(format!("others can write there (mode {:o})", metadata.mode() & 0o7777));
    }
    Ok(())
}

/// Whoever can write in a directory above can put another one in the place of what is below, but for sticky ones as /tmp.
/// `path`: without symbolic links. A group may write above what is not root's, as is usual in some homes.
fn nobody_else_above(path: &Path) -> Result<(), String> {
    path.ancestors().skip(1).try_for_each(only_trusted_write)
}

fn only_trusted_write(directory: &Path) -> Result<(), String> {
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

/// Whether what root makes in the directory stays what it is: objects that become modules are made in it. Other users are
/// asked nothing: what they build they cannot load.
pub fn fit_for_scratch(directory: &Path) -> Result<(), String> {
    if !nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    let real = directory.canonicalize().map_err(|error| format!("{}: {error}", directory.display()))?;
    real.ancestors().try_for_each(only_trusted_write)
}
