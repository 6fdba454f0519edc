// SPDX-License-Identifier: GPL-2.0-or-later

//! Shell commands that run in the background, as children of this process.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Maximum number of commands running at a time.
const MAX_RUNNING: usize = 64;
/// How long the end of a session waits for them.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(5);

/// Running commands that are children of this process.
#[derive(Debug, Default)]
pub struct Running {
    children: Vec<Child>,
}

impl Running {
    /// Runs a command in a shell. The error is the message why it does not run.
    pub fn run(&mut self, command: &[u8]) -> Result<(), String> {
        use std::os::unix::ffi::OsStrExt;
        self.reap();
        let shown = || spile_abi::escape::bytes(command);
        if self.children.len() >= MAX_RUNNING {
            return Err(format!("system(): {MAX_RUNNING} commands are still running, not run: {}", shown()));
        }
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(std::ffi::OsStr::from_bytes(command)).stdin(Stdio::null());
        match shell.spawn() {
            Ok(child) => self.children.push(child),
            Err(error) => return Err(format!("system(): not run: {}: {error}", shown())),
        }
        Ok(())
    }

    /// Reaps those that have exited.
    pub fn reap(&mut self) {
        self.children.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }

    /// Gives running commands a moment to exit.
    pub fn finish(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        self.reap();
        while !self.children.is_empty() && Instant::now() < deadline {
            std::thread::sleep(PAUSE);
            self.reap();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_are_refused() {
        let mut running = Running::default();
        for _ in 0..MAX_RUNNING {
            running.run(b"read x; sleep 0.3").unwrap();
        }
        let refused = running.run(b"true");
        running.finish();
        assert!(refused.is_err_and(|text| text.ends_with("not run: true")) || running.children.is_empty());
        assert!(running.run(b"a\0b").is_err());
    }
}
