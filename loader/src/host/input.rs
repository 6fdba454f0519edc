// SPDX-License-Identifier: GPL-2.0-or-later

//! Keyboard input for scripts that probe it (`input.char`): each byte of standard input is written to the module's file
//! `__stdin`. A terminal is put into a mode without line buffering and echo meanwhile.

use std::fs::OpenOptions;
use std::io::{Read, Write};

use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};

/// The probe point of the library's alias.
const POINT: &str = "procfs(\"__stdin\")";

/// Restores the terminal's settings when it is dropped.
pub struct Input {
    terminal: Option<Termios>,
}

impl Input {
    /// Starts forwarding input if one of the module's probe points needs it. The module's files must exist.
    pub fn begin<'p>(module: &str, mut points: impl Iterator<Item = &'p str>) -> Option<Input> {
        if !points.any(|point| point.starts_with(POINT)) {
            return None;
        }
        if in_background() {
            return None;
        }
        let path = format!("/proc/systemtap/{module}/__stdin");
        let file = OpenOptions::new().write(true).open(path).ok()?;
        let input = Input { terminal: keys_at_once() };
        // Blocks in read(2), possibly forever: it ends with the process. Without the thread there is no input.
        std::thread::Builder::new().spawn(move || hand_over(std::io::stdin().lock(), file)).ok()?;
        Some(input)
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        if let Some(before) = &self.terminal {
            // Nothing to restore if the terminal is gone.
            let _ = tcsetattr(std::io::stdin(), SetArg::TCSANOW, before);
        }
    }
}

/// Whether this process is in the background of a terminal: the kernel stops such a process when it reads.
fn in_background() -> bool {
    nix::unistd::tcgetpgrp(std::io::stdin()).is_ok_and(|group| group != nix::unistd::getpgrp())
}

/// None: standard input is not a terminal. Keys still send signals.
fn keys_at_once() -> Option<Termios> {
    let before = tcgetattr(std::io::stdin()).ok()?;
    let mut ways = before.clone();
    ways.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
    tcsetattr(std::io::stdin(), SetArg::TCSANOW, &ways).ok()?;
    Some(before)
}

/// Until end of input, or until the module accepts no more.
fn hand_over(mut from: impl Read, mut to: impl Write) {
    let mut bytes = [0; 256];
    while let Ok(count) = from.read(&mut bytes) {
        let got = bytes.get(..count).unwrap_or_default();
        if got.is_empty() || got.iter().any(|byte| to.write_all(&[*byte]).is_err()) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_is_one_write() {
        struct Writes(Vec<Vec<u8>>);
        impl Write for &mut Writes {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0.push(bytes.to_vec());
                Ok(bytes.len())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let mut writes = Writes(Vec::new());
        hand_over(&b"ab\n"[..], &mut writes);
        assert_eq!(writes.0, [b"a", b"b", b"\n"]);
    }

    #[test]
    fn only_for_scripts_that_ask() {
        assert!(Input::begin("no_such_module", ["begin", "procfs(\"x\").write"].into_iter()).is_none());
    }
}
