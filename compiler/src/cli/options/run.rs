// SPDX-License-Identifier: GPL-2.0-or-later

//! How the module runs.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use spilerun::options::{self as loader, SessionOptions, Task};
use spilerun::report::account;

use super::Options;

/// How the module runs.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Run", mut_arg("bulk", |arg| arg.short('b')))]
pub struct RunOptions {
    /// What the loader takes too.
    #[command(flatten)]
    pub session: SessionOptions,

    /// Write the output in this format, with time, CPU, process and probe of each print: as spile replay does
    #[arg(long, value_name = "FORMAT", value_enum, conflicts_with_all = ["record", "rotation", "bulk", "detach", "last_pass"])]
    pub format: Option<spile_replay::Format>,

    /// Print statistics of every probe when the script ends
    #[arg(short = 't')]
    pub timing: bool,

    /// Print statistics of every probe every SECONDS
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "1", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "detach")]
    pub monitor: Option<u32>,

    /// Start the script and leave it running: spilerun -A NAME reads its output, spilerun -d NAME ends it. With -o: go to the background, and print the process's id
    #[arg(short = 'F')]
    pub detach: bool,

    /// Run in a disposable virtual machine of an installed kernel; for a FILE.ko: report whether it loads, arms its probes and unloads there
    #[arg(long, conflicts_with_all = ["rotation", "bulk", "detach"])]
    pub guest: bool,

    /// Run the script on HOST, [USER@]HOST or ssh://[USER@]HOST[:PORT], by ssh(1) and spilerun there; may be repeated
    #[arg(long, value_name = "HOST", conflicts_with_all = ["release", "guest", "rotation", "bulk", "detach", "index"])]
    pub remote: Vec<String>,

    /// With --remote: print the host's number before each line
    #[arg(long)]
    pub remote_prefix: bool,
}

impl RunOptions {
    /// Why the loader would refuse these options. A script that is only compiled (`-p1` to `-p4`) may have them.
    pub(crate) fn refused_by_loader(&self) -> Option<String> {
        let session = &self.session;
        // With -o a process stays in the background.
        let (left, behind) = (self.detach && session.output.is_none(), self.detach && session.output.is_some());
        let unattended = [
            (behind && session.command.is_some(), "-c and -o"),
            (left && session.timeout.is_some(), "-T"),
            (self.detach && session.record.is_some(), "--record"),
        ];
        if let Some((_, option)) = unattended.into_iter().find(|(given, _)| *given) {
            return Some(format!("-F with {option}: nobody waits for a session that is left running"));
        }
        let rotates = session.rotation.is_some() && session.output.is_none();
        rotates.then(|| "-S: name the file with -o".into())
    }
}

impl Options {
    /// What the loader does with `module` in this process.
    pub fn loader(&self, module: PathBuf) -> loader::Options {
        let session = self.session();
        loader::Options {
            verbose: self.prints_report(),
            monitor: self.run.monitor.map(|seconds| u64::from(seconds) * 1_000_000_000),
            detach: self.run.detach && session.output.is_none(),
            daemon: self.run.detach && session.output.is_some(),
            color: loader::wants_color("auto"),
            ..loader::Options::for_session(Task::Run(module), session)
        }
    }

    /// The same for a loader in another process, in a guest or on another host: the words of its command line, without its
    /// name and the module.
    pub fn loader_words(&self) -> Vec<OsString> {
        let session = self.session();
        let mut words = session.words();
        if let Some(seconds) = self.run.monitor {
            words.extend(["-M".into(), seconds.to_string().into()]);
        }
        let detach = if session.output.is_some() { "-D" } else { "-L" };
        for (given, option) in [(self.prints_report(), "-v"), (self.run.detach, detach)] {
            words.extend(given.then(|| option.into()));
        }
        words
    }

    /// The options that both programs have. `-t`, and a script that only counts, print statistics too.
    fn session(&self) -> SessionOptions {
        let mut session = self.run.session.clone();
        session.pid = session.pid.filter(|pid| *pid != 0);
        let counts_only = self.script.limits().is_ok_and(|(limits, _)| limits.counts_only);
        if self.run.timing || counts_only {
            let form = if self.as_stap && self.run.timing { account::Form::Report } else { account::Form::Table };
            session.stats = session.stats.or(Some(form));
        }
        session
    }

    /// Whether pass 5 prints more than `-v` has it print.
    fn prints_report(&self) -> bool {
        self.message.verbosity(5) > 1
    }
}
