// SPDX-License-Identifier: GPL-2.0-or-later

//! Runs the commands of the script's `system()` by a shell, in the background, or refuses them.

use std::sync::Arc;

use spile_abi::device::{HAS_SET, Owner, RANK_SYS, RANK_USR};

use crate::session::background::Running;
use crate::session::starter::Starter;

/// Runs or refuses the commands of a session.
#[derive(Debug, Default)]
pub struct Commands {
    /// Why commands are refused; `None`: they are run.
    refusal: Option<String>,
    /// The process that runs them; `None`: this one.
    starter: Option<Arc<Starter>>,
    running: Running,
}

impl Commands {
    /// For the session of this owner. Commands run with the rights of this process, so its user must be the owner. In a
    /// session of a user who is not root, no command is run after the user has set a global that commands may depend
    /// on: root has approved the text of the script, not the user's values. The module knows these globals.
    pub fn of(owner: &Owner, is_ours: bool, starter: Option<Arc<Starter>>) -> Commands {
        let refusal = match owner.rank {
            _ if !is_ours => Some("the session belongs to another user: only that user runs its commands".to_string()),
            RANK_USR | RANK_SYS if owner.flags & HAS_SET != 0 => Some(
                "globals were given other values, and root has not approved commands that may be built from them"
                    .to_string(),
            ),
            _ => None,
        };
        Commands { refusal, starter, running: Running::default() }
    }

    /// Runs a command. The error is the message why it does not run.
    pub fn run(&mut self, command: &[u8]) -> Result<(), String> {
        if let Some(why) = &self.refusal {
            return Err(format!("system(): {why}, not run: {}", spile_abi::escape::bytes(command)));
        }
        match &self.starter {
            Some(starter) => starter.run(command),
            None => self.running.run(command),
        }
    }

    /// Reaps those that have exited.
    pub fn reap(&mut self) {
        self.running.reap();
    }

    /// Gives running commands a moment to exit, so that their output comes before the end of ours.
    pub fn finish(&mut self) {
        match &self.starter {
            Some(starter) => starter.finish(),
            None => self.running.finish(),
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
    fn commands_of_others_and_of_unapproved_text_are_not_run() {
        let run =
            |rank, flags, is_ours| Commands::of(&Owner { rank, flags, ..Owner::default() }, is_ours, None).run(b"true");
        assert!(
            run(0, 0, false)
                .is_err_and(|text| text.contains("belongs to another user") && text.ends_with("not run: true"))
        );
        assert!(run(RANK_USR, HAS_SET, true).is_err_and(|text| text.contains("globals were given")));
        assert!(
            run(RANK_SYS, HAS_SET, true).is_err() && run(RANK_USR, 0, true).is_ok() && run(0, HAS_SET, true).is_ok()
        );
    }
}
