// SPDX-License-Identifier: GPL-2.0-or-later

//! A stream of the script's output: standard output, or a sequence of files.

use super::rotate::Files;
use super::sink::Sink;
use crate::error::Error;
use crate::records::ring::OutFile;

/// A stream of the script's output.
#[derive(Debug)]
pub(super) struct OutputStream {
    pub(super) sink: Sink,
    /// Names the next file; `None`: standard output.
    pub(super) files: Option<Files>,
}

impl OutputStream {
    /// Opens the first of these files.
    pub(super) fn open(mut files: Files) -> Result<OutputStream, Error> {
        let file = files.open_next().map_err(|(path, error)| Error::OpenOutput { path, error })?;
        Ok(OutputStream { sink: Sink::new(file.into()), files: Some(files) })
    }

    /// Queues text, in the next file if this one has reached its limit.
    pub(super) fn print(&mut self, text: &[u8]) {
        let is_due = self.files.as_ref().is_some_and(|files| self.sink.bytes >= files.limit());
        // Lines are not split: a line ends in the file where it started.
        if is_due && self.sink.is_between_lines() {
            self.next_file();
        }
        self.sink.push(text);
    }

    /// Truncates this file or the previous one to its earlier length; false if it is another file, or one that others
    /// may write to, such as standard output.
    pub(super) fn truncate(&self, wanted: OutFile) -> bool {
        if self.files.is_none() {
            return false;
        }
        let same = |found: OutFile| {
            (found.device, found.inode) == (wanted.device, wanted.inode) && found.bytes >= wanted.bytes
        };
        if self.sink.file().is_some_and(same) {
            return nix::unistd::ftruncate(&self.sink.descriptor, wanted.bytes as i64).is_ok();
        }
        let path = self.files.as_ref().and_then(Files::before);
        let before = path.and_then(|path| std::fs::OpenOptions::new().append(true).open(path).ok());
        before.map(|file| Sink::new(file.into())).is_some_and(|sink| {
            sink.file().is_some_and(same) && nix::unistd::ftruncate(&sink.descriptor, wanted.bytes as i64).is_ok()
        })
    }

    /// Switches to the next file.
    pub(super) fn next_file(&mut self) {
        let Some(files) = &mut self.files else { return };
        // A file accepts everything, or the stream has ended.
        self.sink.write();
        if self.sink.ended.is_some() || !self.sink.is_empty() {
            return;
        }
        match files.open_next() {
            Ok(file) => self.sink = self.sink.followed_by(file.into()),
            Err((_, error)) => self.sink.fail(error),
        }
    }
}
