//! What the script's `system()` asks for: shell commands in the background.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Running at a time; a script that asks for more asks too often.
const MAX_RUNNING: usize = 64;
/// How long the end of a session waits for them.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(5);

#[derive(Debug, Default)]
pub struct Commands {
    running: Vec<Child>,
}

impl Commands {
    /// Runs it; a text says why not.
    pub fn run(&mut self, command: &[u8]) -> Result<(), String> {
        use std::os::unix::ffi::OsStrExt;
        self.reap();
        let shown = || String::from_utf8_lossy(command).into_owned();
        if self.running.len() >= MAX_RUNNING {
            return Err(format!("system(): {MAX_RUNNING} commands are still running, not run: {}", shown()));
        }
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(std::ffi::OsStr::from_bytes(command)).stdin(Stdio::null());
        match shell.spawn() {
            Ok(child) => self.running.push(child),
            Err(error) => return Err(format!("system(): not run: {}: {error}", shown())),
        }
        Ok(())
    }

    /// Forgets those that have ended.
    pub fn reap(&mut self) {
        self.running.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }

    /// Gives those that still run a moment to end, so that their output comes before the end of ours.
    pub fn finish(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        self.reap();
        while !self.running.is_empty() && Instant::now() < deadline {
            std::thread::sleep(PAUSE);
            self.reap();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_run_in_the_background() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ran");
        let mut commands = Commands::default();
        commands.run(format!("echo x >{}", file.display()).as_bytes()).unwrap();
        commands.finish();
        assert_eq!(std::fs::read_to_string(file).unwrap(), "x\n");
    }

    #[test]
    fn too_many_are_refused() {
        let mut commands = Commands::default();
        for _ in 0..MAX_RUNNING {
            commands.run(b"read x; sleep 0.3").unwrap();
        }
        let refused = commands.run(b"true");
        commands.finish();
        assert!(refused.is_err_and(|text| text.ends_with("not run: true")) || commands.running.is_empty());
        assert!(commands.run(b"a\0b").is_err());
    }
}
