// SPDX-License-Identifier: GPL-2.0-or-later

//! Writes the archive that a kernel unpacks as its initial file system: cpio in the "newc" format.
//!
//! Takes names relative to the root, without a leading slash; returns bytes. The format is described in the kernel's
//! Documentation/driver-api/early-userspace/buffer-format.rst. Parent directories must come before their contents.

use std::io::{self, Write};

use cpio::newc;

/// An archive being written.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    inode: u32,
}

const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const CHARACTER: u32 = 0o020_000;

impl Archive {
    /// Adds a directory. `mode`: permission bits only, in all these functions. Errors: the entry is larger than 4 GiB,
    /// in all these functions.
    pub fn directory(&mut self, name: &str, mode: u32) -> io::Result<()> {
        self.entry(name, DIRECTORY | mode, (0, 0), &[])
    }

    /// Adds a regular file.
    pub fn file(&mut self, name: &str, mode: u32, contents: &[u8]) -> io::Result<()> {
        self.entry(name, REGULAR | mode, (0, 0), contents)
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, name: &str, to: &str) -> io::Result<()> {
        self.entry(name, LINK | 0o777, (0, 0), to.as_bytes())
    }

    /// Adds a character device by its major and minor number.
    pub fn device(&mut self, name: &str, mode: u32, number: (u32, u32)) -> io::Result<()> {
        self.entry(name, CHARACTER | mode, number, &[])
    }

    /// The whole archive.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        newc::trailer(self.bytes)
    }

    fn entry(&mut self, name: &str, mode: u32, (major, minor): (u32, u32), contents: &[u8]) -> io::Result<()> {
        self.inode += 1;
        let size = u32::try_from(contents.len()).map_err(io::Error::other)?;
        let links = if mode & DIRECTORY == DIRECTORY { 2 } else { 1 };
        let entry = newc::Builder::new(name).ino(self.inode).mode(mode).nlink(links);
        let mut writer = entry.rdev_major(major).rdev_minor(minor).write(&mut self.bytes, size);
        writer.write_all(contents)?;
        writer.finish()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_starts_on_four_bytes() {
        let mut archive = Archive::default();
        archive.directory("a", 0o755).unwrap();
        archive.file("a/b", 0o644, b"12345").unwrap();
        archive.device("a/null", 0o666, (1, 3)).unwrap();
        let bytes = archive.finish().unwrap();
        assert_eq!(bytes.len() % 4, 0);
        let starts: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"070701")).collect();
        assert_eq!(starts.len(), 4);
        assert!(starts.iter().all(|at| at % 4 == 0));
    }
}
