// SPDX-License-Identifier: GPL-2.0-or-later

//! Files that others may have put there, or named: only regular ones are opened. To open a device already does something: it
//! starts a watchdog, or rewinds a tape.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::libc::{O_NOCTTY, O_NONBLOCK, O_PATH};

/// Opens the file for reading; links are followed.
///
/// # Errors
///
/// Those of open(2), and `InvalidInput` for what is no regular file.
pub fn open(path: &Path) -> Result<File, Error> {
    let options = |flags| OpenOptions::new().read(true).custom_flags(flags).clone();
    // Such a descriptor only names the file, which nobody can exchange any more (open(2), O_PATH).
    let named = options(O_PATH).open(path)?;
    if !named.metadata()?.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "not a regular file"));
    }
    let again = format!("/proc/self/fd/{}", named.as_raw_fd());
    // A lease on it may keep open(2) waiting otherwise.
    options(O_NOCTTY | O_NONBLOCK).open(again)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_and_pipes_are_not_opened() {
        // Each time that it is opened it makes another terminal.
        let terminals = || std::fs::read_dir("/dev/pts").map_or(0, Iterator::count);
        let before = terminals();
        for path in ["/dev/ptmx", "/dev/null", "/dev", "/proc/self/fd"] {
            let error = open(Path::new(path)).expect_err(path);
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{path}");
        }
        assert_eq!(terminals(), before);

        let directory = tempfile::tempdir().unwrap();
        let [pipe, file, link] = ["pipe", "file", "link"].map(|name| directory.path().join(name));
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(open(&pipe).is_err());
        std::fs::write(&file, "text").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(std::io::read_to_string(open(&link).unwrap()).unwrap(), "text");
    }
}
