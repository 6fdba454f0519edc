// SPDX-License-Identifier: GPL-2.0-or-later

//! Writes the archive that a kernel unpacks as its first file system: cpio in the "newc" form.
//!
//! Takes names relative to the root, without a leading slash; gives bytes. The form is described in the kernel's
//! Documentation/driver-api/early-userspace/buffer-format.rst. Parent directories must come before what is in them.

/// An archive being written.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    inode: u32,
}

const DIRECTORY: u32 = 0o040000;
const REGULAR: u32 = 0o100000;
const CHARACTER: u32 = 0o020000;
/// The name that ends an archive.
const TRAILER: &str = "TRAILER!!!";

impl Archive {
    /// `mode`: permission bits only, here and below.
    pub fn directory(&mut self, name: &str, mode: u32) {
        self.entry(name, DIRECTORY | mode, (0, 0), &[]);
    }

    pub fn file(&mut self, name: &str, mode: u32, contents: &[u8]) {
        self.entry(name, REGULAR | mode, (0, 0), contents);
    }

    /// A character device by its major and minor number.
    pub fn device(&mut self, name: &str, mode: u32, number: (u32, u32)) {
        self.entry(name, CHARACTER | mode, number, &[]);
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.entry(TRAILER, 0, (0, 0), &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, (major, minor): (u32, u32), contents: &[u8]) {
        self.inode += 1;
        let links = if mode & DIRECTORY == DIRECTORY { 2 } else { 1 };
        let size = u32::try_from(contents.len()).unwrap_or(u32::MAX);
        let name_size = name.len() as u32 + 1;
        let fields = [self.inode, mode, 0, 0, links, 0, size, 0, 0, major, minor, name_size, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08X}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(&contents[..size as usize]);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_starts_on_four_bytes() {
        let mut archive = Archive::default();
        archive.directory("a", 0o755);
        archive.file("a/b", 0o644, b"12345");
        archive.device("a/null", 0o666, (1, 3));
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 4, 0);
        let starts: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"070701")).collect();
        assert_eq!(starts.len(), 4);
        assert!(starts.iter().all(|at| at % 4 == 0));
    }

    #[test]
    fn header_of_a_file() {
        let mut archive = Archive::default();
        archive.file("b", 0o644, b"12345");
        let text = String::from_utf8_lossy(&archive.bytes).into_owned();
        assert!(
            text.starts_with(
                "07070100000001000081A400000000000000000000000100000000000000050000000000000000\
             000000000000000000000002"
            ),
            "{text}"
        );
        assert!(text.contains("b\0"));
        assert!(text.ends_with("12345\0\0\0"));
    }
}
