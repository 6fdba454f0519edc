// SPDX-License-Identifier: GPL-2.0-or-later

//! Shows what a guest that does not end is doing. qemu's monitor shows the CPUs, even if they are idle; the kernel
//! shows its tasks by magic system requests on the console (a break, then a key), if a CPU still takes interrupts.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::monitor::Monitor;
use super::qemu::Ports;

/// The keys: print all messages; backtraces of the CPUs; blocked tasks; timers; all tasks.
const KEYS: [&str; 5] = ["9", "l", "w", "q", "t"];
/// The wait after each key: the report is printed at the speed of a serial port.
const PRINTING: Duration = Duration::from_secs(3);

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
