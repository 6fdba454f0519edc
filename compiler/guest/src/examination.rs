// SPDX-License-Identifier: GPL-2.0-or-later

//! Shows what a guest that does not end is doing. qemu's monitor shows the CPUs, even if they are idle; the kernel
//! shows its tasks by magic system requests on the console (a break, then a key), if a CPU still takes interrupts.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::qemu::Ports;

/// The monitor's prompt.
const PROMPT: &[u8] = b"(qemu) ";
/// Time limit of an answer.
const ANSWER: Duration = Duration::from_secs(5);
/// The keys: print all messages; backtraces of the CPUs; blocked tasks; timers; all tasks.
const KEYS: [&str; 5] = ["9", "l", "w", "q", "t"];
/// The wait after each key: the report is printed at the speed of a serial port.
const PRINTING: Duration = Duration::from_secs(3);

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

/// The connections to qemu's monitor and to the kernel's console.
pub(super) struct Examiner {
    monitor: Monitor,
    console: UnixStream,
    cpus: u32,
}

impl Examiner {
    /// `cpus`: of the guest.
    pub(super) fn new(ports: &Ports, cpus: u32) -> io::Result<Examiner> {
        Ok(Examiner { monitor: Monitor::new(ports)?, console: ports.console.try_clone()?, cpus })
    }

    /// The monitor's answers, each after its command. Takes about 20 s; failed commands are left out.
    pub(super) fn examine(&self) -> String {
        let mut text = String::new();
        // Twice, to show whether anything changes.
        for _ in 0..2 {
            for command in ["info status", "info cpus", "info registers -a"] {
                text += &self.ask(command);
            }
            for cpu in 0..self.cpus {
                text += &self.ask(&format!("cpu {cpu}"));
                text += &self.ask("info lapic");
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        for key in KEYS {
            self.ask("chardev-send-break console");
            // If the console is gone, so is the guest.
            let _ = (&self.console).write_all(key.as_bytes());
            std::thread::sleep(PRINTING);
        }
        text
    }

    fn ask(&self, command: &str) -> String {
        match self.monitor.ask(command) {
            Ok(answer) => format!("{command}:\n{answer}\n"),
            Err(error) => format!("{command}: {error}\n"),
        }
    }
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
    let answer = answer_of(&output).unwrap_or_default();
    let answer = answer.strip_suffix(PROMPT).unwrap_or(answer);
    Ok(String::from_utf8_lossy(answer).replace('\r', "").trim_end().to_string())
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
