// SPDX-License-Identifier: GPL-2.0-or-later

//! A session whose output another process writes in the format of `--format`, while it runs.

use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use clap::ValueEnum;
use nix::fcntl::OFlag;
use std::fs::File;

use crate::command::Format;

/// The process that writes. It ends when nobody can write to its input any more; dropping this waits for it.
#[derive(Debug)]
pub struct Live {
    child: Child,
    /// `None`: this is being dropped.
    input: Option<File>,
}

impl Live {
    /// Starts it; it writes to standard output or to `output`.
    pub fn start(format: Format, output: Option<&Path>) -> io::Result<Live> {
        let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
        let name = format.to_possible_value().map(|value| value.get_name().to_string()).unwrap_or_default();
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["replay", "--live", "--format", &name]).stdin(Stdio::from(read));
        if let Some(path) = output {
            command.arg("-o").arg(path);
        }
        let child = command.arg("-").spawn()?;
        Ok(Live { child, input: Some(File::from(write)) })
    }

    /// Where the recording is to be written.
    pub fn input(&self) -> io::Result<File> {
        match &self.input {
            Some(input) => input.try_clone(),
            None => Err(io::Error::from(io::ErrorKind::BrokenPipe)),
        }
    }

    /// The path by which this process opens the input.
    pub fn path(&self) -> PathBuf {
        let descriptor = self.input.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        format!("/proc/self/fd/{descriptor}").into()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        drop(self.input.take());
        // Its status says only whether its output could be written; it has said why itself.
        let _ = self.child.wait();
    }
}
