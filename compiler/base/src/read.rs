// SPDX-License-Identifier: GPL-2.0-or-later

//! Reads files whose contents come from outside without following them forever: a device or pipe in a directory of
//! scripts, a file that never ends.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Most bytes of a script or of another text that a person wrote: 8 MiB. Each may be a statement, which takes 400 bytes of memory.
pub const MAX_TEXT: u64 = 8 << 20;

/// Milliseconds after which it is said that a named pipe has no writer yet.
const WRITER: u16 = 1000;

/// The bytes of a regular file of at most `most` bytes. Errors: those of the system; the file is a pipe, device or
/// directory; it is larger.
pub fn regular(path: &Path, most: u64) -> Result<Vec<u8>> {
    regular_of(path, most, |_| true).map(Option::unwrap_or_default)
}

/// The same, of a file whose owner and mode are accepted; `None`: they are not. It is the opened file that is asked, not
/// its name, which may meanwhile be that of another one. Errors: as of [`regular`].
pub fn regular_of(path: &Path, most: u64, accepted: impl FnOnce(&Metadata) -> bool) -> Result<Option<Vec<u8>>> {
    let (file, metadata) = open_regular(path)?;
    if !accepted(&metadata) {
        return Ok(None);
    }
    read_bounded(file, most).map(Some)
}

/// Opens a regular file, for what reads a part of it or reads it twice. Errors: those of the system; it is a pipe, device or
/// directory.
pub fn open_regular(path: &Path) -> Result<(File, Metadata)> {
    let file = open(path)?;
    let metadata = file.metadata()?;
    match metadata.is_file() {
        true => Ok((file, metadata)),
        false => Err(Error::new(ErrorKind::InvalidInput, "not a regular file")),
    }
}

/// The bytes of a file, which may be a pipe as `<(command)` gives, of at most `most` bytes. `waits` is called before a named pipe
/// waits longer than a second for its first writer, as cat(1) does. Errors: those of the system; it has more bytes.
pub fn bounded(path: &Path, most: u64, waits: impl FnOnce()) -> Result<Vec<u8>> {
    let mut file = open(path)?;
    let mut first = Vec::new();
    if file.metadata()?.file_type().is_fifo() && !has_come(&file, PollTimeout::from(WRITER))? {
        // The end, although no writer has closed it: there was none.
        let mut byte = [0];
        match file.read(&mut byte) {
            Ok(0) => {
                waits();
                has_come(&file, PollTimeout::NONE)?;
            }
            Ok(_) => first.extend(byte),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    fcntl(&file, FcntlArg::F_SETFL(OFlag::O_RDONLY))?;
    read_bounded(first.as_slice().chain(file), most)
}

/// Whether there is something to read in a named pipe, or a writer has closed it, within that time.
fn has_come(pipe: &File, timeout: PollTimeout) -> Result<bool> {
    loop {
        match poll(&mut [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)], timeout) {
            Err(Errno::EINTR) => {}
            ready => return Ok(ready? > 0),
        }
    }
}

/// Creates the file, or empties it, as `File::create` does, without waiting for the reader of a pipe. Errors: those of the
/// system; the file is a pipe that nobody reads, or a socket.
pub fn create(path: &Path) -> Result<File> {
    open_output(path, true)
}

/// The same, but what the file holds stays until it is overwritten: for output that may not come.
pub fn create_for_later(path: &Path) -> Result<File> {
    open_output(path, false)
}

fn open_output(path: &Path, empty: bool) -> Result<File> {
    let options = OpenOptions::new().write(true).create(true).truncate(empty).custom_flags(libc::O_NONBLOCK).open(path);
    let file = options.map_err(|error| match error.raw_os_error() {
        Some(libc::ENXIO) => Error::other("a pipe that nobody reads, or a socket"),
        _ => error,
    })?;
    fcntl(&file, FcntlArg::F_SETFL(OFlag::O_WRONLY))?;
    Ok(file)
}

/// An error if there is something of this name that is no regular file, and that a rename would therefore remove: a device, a
/// pipe, a socket, a directory, a link that leads to such a thing.
pub fn can_be_replaced(path: &Path) -> Result<()> {
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(Error::new(ErrorKind::InvalidInput, "not a regular file")),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Opening a pipe would wait for its writer.
pub(crate) fn open(path: &Path) -> Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)
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
        assert_eq!(bounded(zero, 10, || ()).unwrap_err().to_string(), "more than 10 bytes");
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe.stp");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(regular(&pipe, 10).unwrap_err().to_string(), "not a regular file");
        let file = directory.path().join("a.stp");
        std::fs::write(&file, "0123456789").unwrap();
        assert_eq!(regular(&file, 10).unwrap(), b"0123456789");
        assert!(regular(&file, 9).is_err());
        assert_eq!(regular_of(&file, 10, |metadata| metadata.len() == 9).unwrap(), None);
    }
}
