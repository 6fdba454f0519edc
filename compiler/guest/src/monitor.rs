// SPDX-License-Identifier: GPL-2.0-or-later

//! qemu's monitor, as a person would use it at a terminal: a command, and the answer up to the next prompt.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::qemu::Ports;

/// The monitor's prompt.
const PROMPT: &[u8] = b"(qemu) ";
/// Time limit of an answer.
const ANSWER: Duration = Duration::from_secs(5);

/// A connection to qemu's monitor.
pub struct Monitor(UnixStream);

impl Monitor {
    pub(super) fn new(ports: &Ports) -> io::Result<Monitor> {
        Ok(Monitor(ports.monitor.try_clone()?))
    }

    /// The answer to a command.
    pub fn ask(&self, command: &str) -> io::Result<String> {
        converse(&self.0, command)
    }
}

/// The monitor of a qemu that has just started, until others use it: nothing but answers comes from it.
pub(super) struct FreshMonitor<'a>(&'a UnixStream);

impl<'a> FreshMonitor<'a> {
    /// Waits for the first prompt, which only comes after the banner. Errors: it does not come within `limit`.
    pub(super) fn new(monitor: &'a UnixStream, limit: Duration) -> io::Result<FreshMonitor<'a>> {
        read_until(monitor, 4096, limit, |output| output.ends_with(PROMPT))?;
        Ok(FreshMonitor(monitor))
    }

    /// The answer to a command; without one, empty. Errors: it does not come within `limit`.
    pub(super) fn ask(&self, command: &str, limit: Duration) -> io::Result<String> {
        self.tell(command)?;
        let output =
            read_until(self.0, 4096, limit, |output| answer_of(output).is_some_and(|answer| answer.ends_with(PROMPT)))?;
        Ok(text_of(&output))
    }

    /// Sends a command that succeeds without an answer. Errors: also the monitor's own.
    pub(super) fn order(&self, command: &str, limit: Duration) -> io::Result<()> {
        let answer = self.ask(command, limit)?;
        if answer.is_empty() { Ok(()) } else { Err(io::Error::other(format!("{command}: {answer}"))) }
    }

    /// Sends a command and waits for nothing.
    pub(super) fn tell(&self, command: &str) -> io::Result<()> {
        (&mut &*self.0).write_all(format!("{command}\n").as_bytes())
    }
}

/// What comes until it is `complete`, read in pieces of `piece` bytes: with 1 the rest is left to the next reader. Errors: it is not
/// within `limit`, or the other side is gone.
pub(super) fn read_until(
    mut stream: &UnixStream,
    piece: usize,
    limit: Duration,
    complete: impl Fn(&[u8]) -> bool,
) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + limit;
    let mut output = Vec::new();
    let mut buffer = vec![0; piece];
    while !complete(&output) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(size) => output.extend_from_slice(buffer.get(..size).unwrap_or(&buffer)),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
    stream.set_read_timeout(None)?;
    Ok(output)
}

/// The answer to a command.
fn converse(mut monitor: &UnixStream, command: &str) -> io::Result<String> {
    let deadline = Instant::now() + ANSWER;
    monitor.set_read_timeout(Some(Duration::from_millis(100)))?;
    let mut output = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    // The banner and the prompt, or the output of a command that took too long.
    let _ = monitor.read(&mut buffer);
    monitor.write_all(format!("{command}\n").as_bytes())?;
    while !answer_of(&output).is_some_and(|answer| answer.ends_with(PROMPT)) {
        match monitor.read(&mut buffer) {
            Ok(0) => break,
            Ok(size) => output.extend_from_slice(buffer.get(..size).unwrap_or(&buffer)),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
        if Instant::now() > deadline {
            break;
        }
    }
    Ok(text_of(&output))
}

/// The answer in what follows a command.
fn text_of(output: &[u8]) -> String {
    let answer = answer_of(output).unwrap_or_default();
    let answer = answer.strip_suffix(PROMPT).unwrap_or(answer);
    String::from_utf8_lossy(answer).replace('\r', "").trim_end().to_string()
}

/// The text after the first line, which repeats the command as a terminal would show it.
fn answer_of(output: &[u8]) -> Option<&[u8]> {
    output.get(output.iter().position(|byte| *byte == b'\n')? + 1..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_the_monitor() {
        let (host, mut qemu) = UnixStream::pair().expect("a pair of sockets");
        let answering = std::thread::spawn(move || {
            qemu.write_all(b"QEMU monitor\r\n(qemu) ").expect("room for it");
            let mut command = [0; 10];
            qemu.read_exact(&mut command).expect("a command");
            qemu.write_all(b"i\x1b[Kinfo cpus\r\n* CPU #0\r\n  CPU #1\r\n(qemu) ").expect("room for it");
            (command, qemu)
        });
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(converse(&host, "info cpus").expect("an answer"), "* CPU #0\n  CPU #1");
        let (command, qemu) = answering.join().expect("no panic");
        assert_eq!(&command, b"info cpus\n");
        drop(qemu);
        assert!(converse(&host, "info cpus").is_err());
    }
}
