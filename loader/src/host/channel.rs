// SPDX-License-Identifier: GPL-2.0-or-later

//! A connection between two processes, or two parts of one, of the loader that no other process can open.
//!
//! Not a pipe: `/proc/self/fd/N` reopens a pipe for anybody who can name it, and the caller of a set-uid spilerun
//! chooses names (`-o`). Opening a socket by name fails with ENXIO.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

/// The two ends, each for reading and writing; closed on exec. One reads end of file when the other is closed.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (one, other) = UnixStream::pair()?;
    Ok((one.into(), other.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn no_name_opens_an_end() {
        let (one, other) = pair().unwrap();
        for end in [&one, &other] {
            let name = format!("/proc/self/fd/{}", end.as_raw_fd());
            assert_eq!(
                std::fs::OpenOptions::new().write(true).open(name).unwrap_err().raw_os_error(),
                Some(nix::libc::ENXIO)
            );
        }
        nix::unistd::write(&one, b"x").unwrap();
        drop(one);
        let mut bytes = [0; 2];
        assert_eq!((nix::unistd::read(&other, &mut bytes), nix::unistd::read(&other, &mut bytes)), (Ok(1), Ok(0)));
    }
}
