//! Where the cache is, and whether it may be used.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

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

/// The directory, made if it was not there; or why it is not used.
pub(super) fn usable(settings: &Settings) -> (Option<PathBuf>, Option<String>) {
    let Some(directory) = &settings.directory else { return (None, None) };
    let unusable = |why: String| (None, Some(format!("the cache {} is not used: {why}", directory.display())));
    if let Err(error) = super::make_directory(directory) {
        return unusable(error.to_string());
    }
    match check(directory) {
        Ok(()) => (Some(directory.clone()), None),
        Err(why) => unusable(why),
    }
}

/// Modules from it are loaded into kernels, so nobody else may be able to write there.
fn check(directory: &Path) -> Result<(), String> {
    let metadata = std::fs::metadata(directory).map_err(|error| error.to_string())?;
    if metadata.uid() != nix::unistd::geteuid().as_raw() {
        return Err(format!("it belongs to user {}", metadata.uid()));
    }
    if metadata.mode() & 0o022 != 0 {
        return Err(format!("others can write there (mode {:o})", metadata.mode() & 0o7777));
    }
    Ok(())
}
