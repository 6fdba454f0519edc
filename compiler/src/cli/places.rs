// SPDX-License-Identifier: GPL-2.0-or-later

//! Directories that the environment names where the command line does not: SYSTEMTAP_TAPSET, SYSTEMTAP_RUNTIME, TMPDIR, and
//! that of the cache.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::AccessFlags;

use super::options::Options;

/// A run's directory for temporary files, and a warning about the choice.
#[derive(Debug, PartialEq)]
pub struct Temporary {
    /// The directory.
    pub place: PathBuf,
    /// Why it is not the one from the environment.
    pub warning: Option<String>,
}

/// Why there can be no directory for the cache where the environment says.
#[derive(Debug, PartialEq)]
pub enum CacheMistake {
    /// The variable is for such directories alone: an error.
    Given(String),
    /// It takes longer. Services have homes like /dev/null.
    Slow(String),
}

/// What is wrong with SPILE_CACHE_DIR, or else XDG_CACHE_HOME or HOME: something on the path is no directory, or links lead
/// nowhere; or this user may not read the directory. Full and read-only disks are no mistakes: their entries are used.
pub fn cache_mistake() -> Option<CacheMistake> {
    let (variable, path) =
        ["SPILE_CACHE_DIR", "XDG_CACHE_HOME", "HOME"].iter().find_map(|name| Some((*name, named(name)?)))?;
    let closed = |path: &Path| nix::unistd::access(path, AccessFlags::R_OK | AccessFlags::X_OK) == Err(Errno::EACCES);
    let (why, is_closed) = match std::fs::metadata(&path) {
        Ok(found) if !found.is_dir() => ("not a directory".to_string(), false),
        Ok(_) if closed(&path) => (Errno::EACCES.desc().to_string(), true),
        Err(error) if [nix::libc::ENOTDIR, nix::libc::ELOOP].contains(&error.raw_os_error()?) => {
            (error.to_string(), false)
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied => (error.to_string(), true),
        _ => return None,
    };
    let message = format!("{variable}={}: {why}", path.display());
    Some(match variable {
        _ if is_closed => CacheMistake::Slow(format!("{message}: without a cache each compilation takes a minute")),
        "HOME" => CacheMistake::Slow(format!(
            "{message}: without a cache each compilation takes a minute; set SPILE_CACHE_DIR"
        )),
        _ => CacheMistake::Given(format!("{message}: no cache can be made there; --disable-cache does without one")),
    })
}

/// The library to use instead of the built-in one: `--tapset`, or SYSTEMTAP_TAPSET.
pub fn tapset(options: &Options) -> Option<PathBuf> {
    options.script.tapset.clone().or_else(|| named("SYSTEMTAP_TAPSET"))
}

/// The runtime to use instead of the built-in one: `-R`, or SYSTEMTAP_RUNTIME if that is a runtime of spile.
/// SystemTap's is not.
pub fn runtime(options: &Options) -> Option<PathBuf> {
    options.build.runtime.clone().or_else(|| named("SYSTEMTAP_RUNTIME").filter(|directory| is_runtime(directory)))
}

/// A warning if SYSTEMTAP_RUNTIME is set and not used.
pub fn runtime_warning(options: &Options) -> Option<String> {
    let directory =
        named("SYSTEMTAP_RUNTIME").filter(|directory| options.build.runtime.is_none() && !is_runtime(directory))?;
    Some(format!("SYSTEMTAP_RUNTIME={}: not used, it contains no runtime of spile", directory.display()))
}

/// The directory for temporary files: `--tmpdir`, TMPDIR or /tmp. An error says which one is no directory, or that the
/// kernel's make could not work in it.
pub fn temporary(options: &Options) -> Result<Temporary, String> {
    temporary_of(options.build.tmpdir.as_deref(), named("TMPDIR").as_deref())
}

fn temporary_of(given: Option<&Path>, variable: Option<&Path>) -> Result<Temporary, String> {
    if let Some(place) = given {
        // Created if missing.
        if !make_can_use(place) {
            return Err(format!(
                "--tmpdir {}: the kernel's make takes no blanks nor signs like $ in a path",
                place.display()
            ));
        }
        return Ok(Temporary { place: place.to_path_buf(), warning: None });
    }
    let standard = PathBuf::from("/tmp");
    let Some(place) = variable else {
        return Ok(Temporary { place: standard, warning: None });
    };
    match std::fs::metadata(place) {
        Ok(found) if !found.is_dir() => Err(format!("TMPDIR={}: not a directory", place.display())),
        Err(error) => Err(format!("TMPDIR={}: {error}", place.display())),
        Ok(_) if make_can_use(place) => Ok(Temporary { place: place.to_path_buf(), warning: None }),
        Ok(_) => Ok(Temporary {
            warning: Some(format!(
                "TMPDIR={}: the kernel's make does not take this path, {} is used",
                place.display(),
                standard.display()
            )),
            place: standard,
        }),
    }
}

/// Whether make and the shell commands of Kbuild take a path literally as one word.
fn make_can_use(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().iter().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+@~".contains(byte))
}

fn is_runtime(directory: &Path) -> bool {
    directory.join("script.h").is_file() && directory.join("features.h").is_file()
}

fn named(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_make_cannot_work_in() {
        let above = tempfile::tempdir().unwrap();
        let with_blank = above.path().join("a b");
        std::fs::create_dir(&with_blank).unwrap();
        let found = temporary_of(None, Some(&with_blank)).unwrap();
        assert_eq!(found.place, Path::new("/tmp"));
        assert!(found.warning.is_some_and(|text| text.contains("a b")));
        assert!(temporary_of(Some(&with_blank), None).is_err());
    }

    #[test]
    fn variables_that_name_no_directory() {
        let above = tempfile::tempdir().unwrap();
        let file = above.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(temporary_of(None, Some(&file)).is_err_and(|error| error.contains("not a directory")));
        let gone = above.path().join("gone");
        assert!(temporary_of(None, Some(&gone)).is_err_and(|error| error.contains("No such file")));
        assert_eq!(temporary_of(Some(&gone), Some(&file)), Ok(Temporary { place: gone, warning: None }));
    }
}
