// SPDX-License-Identifier: GPL-2.0-or-later

//! Names of output files: `%` expanded as by strftime(3), `_cpuN` in bulk mode, `.N` with rotation; and removal of
//! older files.

use std::collections::VecDeque;
use std::ffi::{CString, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::libc;

use crate::options::Rotation;

/// Maximum length of an expanded name.
const MAX_EXPANDED: usize = 4096;

/// The sequence of files of one stream.
#[derive(Debug)]
pub struct Files {
    /// As given with `-o`.
    name: PathBuf,
    cpu: Option<u32>,
    rotation: Option<Rotation>,
    /// Number of the next file.
    next: u64,
    /// Existing contents are preserved.
    append: bool,
    /// Written earlier, oldest first.
    written: VecDeque<PathBuf>,
    before: Option<PathBuf>,
}

impl Files {
    /// `append`: files of an earlier session are preserved; numbering continues after them.
    pub fn new(name: &Path, cpu: Option<u32>, rotation: Option<Rotation>, append: bool) -> Files {
        let mut files =
            Files { name: name.to_path_buf(), cpu, rotation, next: 0, append, written: VecDeque::new(), before: None };
        if append && rotation.is_some() {
            let found = files.found();
            files.before = found.last().map(|(_, path)| path.clone());
            files.next = found.last().map_or(0, |(number, _)| number + 1);
            files.written = found.into_iter().map(|(_, path)| path).collect();
        }
        files
    }

    /// Files of an earlier session with their numbers, in order.
    fn found(&self) -> Vec<(u64, PathBuf)> {
        let first = self.path();
        let Some(stem) =
            first.file_name().and_then(|name| name.to_str()?.strip_suffix(&self.next.to_string()).map(String::from))
        else {
            return Vec::new();
        };
        let directory = first.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        // Only names that the program itself gives; one with the highest number would let the next begin at 0.
        let number = |name: &str| {
            let number: u64 = name.strip_prefix(&stem)?.parse().ok()?;
            (number < u64::MAX && name == format!("{stem}{number}")).then_some(number)
        };
        let numbered = entries.filter_map(|entry| Some((number(entry.file_name().to_str()?)?, entry.path())));
        let mut found: Vec<(u64, PathBuf)> = numbered.collect();
        found.sort();
        found
    }

    /// The last file of an earlier session, if there are several.
    pub fn before(&self) -> Option<&Path> {
        self.before.as_deref()
    }

    /// Size in bytes at which to switch to the next file.
    pub fn limit(&self) -> u64 {
        self.rotation.map_or(u64::MAX, |rotation| rotation.bytes)
    }

    /// Creates the next file, empty, and removes those in excess. Without rotation it has the same name again, for a
    /// file that was moved away; if it still exists, it is appended to, so that nothing is lost.
    pub fn open_next(&mut self) -> Result<fs::File, (PathBuf, io::Error)> {
        let path = self.path();
        let again = (self.append || self.next > 0) && self.rotation.is_none();
        self.next += 1;
        let mut options = fs::OpenOptions::new();
        // A pipe without a reader would block here and delay signals.
        options.create(true).custom_flags(libc::O_NONBLOCK);
        match again {
            true => options.append(true),
            false => options.write(true).truncate(true),
        };
        let file = options.open(&path).map_err(|error| (path.clone(), unread(error)))?;
        if let Some(most) = self.rotation.and_then(|rotation| rotation.files) {
            self.written.push_back(path);
            while self.written.len() > most {
                // It may have been removed already.
                self.written.pop_front().map(fs::remove_file);
            }
        }
        Ok(file)
    }

    fn path(&self) -> PathBuf {
        let mut name = expand(self.name.as_os_str().as_bytes());
        if let Some(cpu) = self.cpu {
            name.push(format!("_cpu{cpu}"));
        }
        if self.rotation.is_some() {
            name.push(format!(".{}", self.next));
        }
        PathBuf::from(name)
    }
}

/// strftime(3) with the local time; a name that it cannot expand is used as is.
fn expand(name: &[u8]) -> OsString {
    let as_it_is = || OsString::from_vec(name.to_vec());
    if !name.contains(&b'%') {
        return as_it_is();
    }
    let Ok(format) = CString::new(name) else { return as_it_is() };
    let mut buffer = vec![0u8; MAX_EXPANDED];
    // SAFETY: time(2) accepts a null pointer.
    let now = unsafe { libc::time(std::ptr::null_mut()) };
    // SAFETY: an all-zero `tm` is valid.
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both arguments live over the call.
    unsafe { libc::localtime_r(&now, &mut parts) };
    // SAFETY: writes at most as many bytes as the buffer has; the format ends with a NUL.
    let length = unsafe { libc::strftime(buffer.as_mut_ptr().cast(), buffer.len(), format.as_ptr(), &parts) };
    match length {
        0 => as_it_is(),
        length => {
            buffer.truncate(length);
            OsString::from_vec(buffer)
        }
    }
}

/// The error of opening a pipe without a reader, or a socket.
fn unread(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::ENXIO) => io::Error::other("it is a pipe that nobody reads, or a socket"),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_without_a_reader_is_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let open = || Files::new(&path, None, None, false).open_next();
        assert!(open().is_err_and(|(_, error)| error.to_string().contains("nobody reads")));
        let reader = fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path).unwrap();
        assert!(open().is_ok());
        drop(reader);
    }

    #[test]
    fn names_are_expanded_and_numbered() {
        let year = expand(b"a%Yb%%");
        let text = year.to_str().unwrap();
        assert!(text.len() == 7 && text.starts_with("a2") && text.ends_with("b%"), "{text}");
        assert_eq!(expand(b"plain"), "plain");
        let rotation = Some(Rotation { bytes: 1, files: None });
        assert_eq!(Files::new(Path::new("x"), Some(3), rotation, false).path(), Path::new("x_cpu3.0"));
        assert_eq!(Files::new(Path::new("x"), None, None, false).path(), Path::new("x"));
    }

    #[test]
    fn only_the_newest_files_stay() {
        let directory = tempfile::tempdir().unwrap();
        let name = directory.path().join("log");
        let mut files = Files::new(&name, None, Some(Rotation { bytes: 1, files: Some(2) }), false);
        for _ in 0..4 {
            files.open_next().unwrap();
        }
        let mut left: Vec<_> =
            fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["log.2", "log.3"]);
    }

    #[test]
    fn a_later_session_continues_the_numbering() {
        let directory = tempfile::tempdir().unwrap();
        let name = directory.path().join("log");
        for number in [9, 10, 11] {
            fs::write(directory.path().join(format!("log.{number}")), "old").unwrap();
        }
        let mut files = Files::new(&name, None, Some(Rotation { bytes: 1, files: Some(3) }), true);
        files.open_next().unwrap();
        let mut left: Vec<_> =
            fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["log.10", "log.11", "log.12"]);
        // Not names that the program gives.
        for strange in ["18446744073709551615", "+99", "099"] {
            fs::write(directory.path().join(format!("log.{strange}")), "strange").unwrap();
        }
        let next = Files::new(&name, None, Some(Rotation { bytes: 1, files: Some(3) }), true);
        assert_eq!(next.path(), directory.path().join("log.13"));
        fs::write(&name, "old\n").unwrap();
        Files::new(&name, None, None, true).open_next().unwrap();
        assert_eq!(fs::read(&name).unwrap(), b"old\n");
    }

    #[test]
    fn reopening_a_file_keeps_its_contents() {
        use std::io::Write;
        let directory = tempfile::tempdir().unwrap();
        let name = directory.path().join("log");
        let mut files = Files::new(&name, None, None, false);
        files.open_next().unwrap().write_all(b"one\n").unwrap();
        files.open_next().unwrap().write_all(b"two\n").unwrap();
        assert_eq!(fs::read(&name).unwrap(), b"one\ntwo\n");
        let missing = Files::new(Path::new("/no/such/place"), None, None, false).open_next();
        assert!(missing.is_err_and(|(path, _)| path == Path::new("/no/such/place")));
    }
}
