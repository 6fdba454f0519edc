// SPDX-License-Identifier: GPL-2.0-or-later

//! For whom a script is compiled.

/// What the user who will run a script may see (stap(1), `--privilege`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Privilege {
    /// Everything.
    #[default]
    Dev,
    /// Everything, without guru mode.
    Sys,
    /// Processes of the session's owner.
    Usr,
}

impl Privilege {
    /// Whether probes are only for processes of the session's owner.
    pub fn is_limited_to_own_processes(self) -> bool {
        self == Privilege::Usr
    }

    /// As on the command line and in `%( systemtap_privilege == "stapusr" %)`.
    pub fn name(self) -> &'static str {
        match self {
            Privilege::Dev => "stapdev",
            Privilege::Sys => "stapsys",
            Privilege::Usr => "stapusr",
        }
    }
}
