// SPDX-License-Identifier: GPL-2.0-or-later

//! The phases of a session, in order, each with its own data.

use crate::host::clock;
use crate::session::arming::Arming;
use crate::session::daemon::Waiting;

/// What the module is doing.
pub enum Phase {
    /// SPILE_START is running. A session that runs already leaves this phase at once.
    Starting {
        /// The progress of arming.
        arming: Arming,
        /// `-D`: the process that waits for the probes to be armed.
        waiting: Option<Waiting>,
    },
    /// The probes are armed.
    Running {
        /// Earliest start of the command; `None`: it has started.
        command_due: Option<u64>,
    },
    /// SPILE_QUIET is running.
    Quieting {
        /// The progress of disarming.
        disarming: Arming,
    },
    /// Disarmed: the rings are read and written out, to make room for the output of end probes.
    Emptying,
    /// SPILE_STOP is running.
    Stopping,
    /// No more records come: the rings are read and written out.
    Draining,
}

/// A call whose progress is reported.
pub struct Progress<'p> {
    /// How far it is.
    pub call: &'p mut Arming,
    /// It arms the probes; else it disarms them.
    pub arms: bool,
}

impl Phase {
    /// The first phase, from now on. `waiting`: with `-D`, the process that waits for the probes to be armed.
    pub fn starting(waiting: Option<Waiting>) -> Phase {
        Phase::Starting { arming: Arming::new(clock::now()), waiting }
    }

    /// Whether SPILE_START has not returned.
    pub fn is_starting(&self) -> bool {
        matches!(self, Phase::Starting { .. })
    }

    /// Whether the probes are armed.
    pub fn is_running(&self) -> bool {
        matches!(self, Phase::Running { .. })
    }

    /// Whether no running handler can write an older record, and a ring read to its end stays empty.
    pub fn is_disarmed(&self) -> bool {
        matches!(self, Phase::Emptying | Phase::Draining)
    }

    /// The call whose progress is reported; `stops`: the session is to be stopped, so arming is being cancelled.
    pub fn progress(&mut self, stops: bool) -> Option<Progress<'_>> {
        match self {
            Phase::Starting { arming, .. } if !stops => Some(Progress { call: arming, arms: true }),
            Phase::Quieting { disarming } => Some(Progress { call: disarming, arms: false }),
            _ => None,
        }
    }

    /// When the command of `-c` is to be started, if it has not been.
    pub fn command_due(&self) -> Option<u64> {
        match self {
            Phase::Running { command_due } => *command_due,
            _ => None,
        }
    }
}
