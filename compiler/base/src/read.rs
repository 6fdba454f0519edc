// SPDX-License-Identifier: GPL-2.0-or-later

//! Reads files whose contents come from outside without following them forever: a device or pipe in a directory of
//! scripts, a file that never ends.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// Most bytes of a script or of another text that a person wrote: 8 MiB. Each may be a statement, which takes 400 bytes of memory.
pub const MAX_TEXT: u64 = 8 << 20;

/// The bytes of a regular file of at most `most` bytes. Errors: those of the system; the file is a pipe, device or
/// directory; it is larger.
pub fn regular(path: &Path, most: u64) -> Result<Vec<u8>> {
    // Opening a pipe would wait for its writer.
    if !std::fs::metadata(path)?.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "not a regular file"));
    }
    bounded(path, most)
}

/// The bytes of a file, which may be a pipe as `<(command)` gives, of at most `most` bytes. Errors: those of the system; it has
/// more bytes.
pub fn bounded(path: &Path, most: u64) -> Result<Vec<u8>> {
    read_bounded(File::open(path)?, most)
}

/// All bytes of a reader, at most `most`. Errors: the reader's own; it has more bytes.
pub fn read_bounded(reader: impl Read, most: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(Error::new(ErrorKind::InvalidData, format!("more than {most} bytes"))),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ends_is_refused() {
        let zero = Path::new("/dev/zero");
        assert_eq!(regular(zero, 10).unwrap_err().to_string(), "not a regular file");
        assert_eq!(bounded(zero, 10).unwrap_err().to_string(), "more than 10 bytes");
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe.stp");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(regular(&pipe, 10).unwrap_err().to_string(), "not a regular file");
        let file = directory.path().join("a.stp");
        std::fs::write(&file, "0123456789").unwrap();
        assert_eq!(regular(&file, 10).unwrap(), b"0123456789");
        assert!(regular(&file, 9).is_err());
    }
}
