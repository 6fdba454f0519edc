// SPDX-License-Identifier: GPL-2.0-or-later

//! The lines that `-v` prints when a pass is done, as SystemTap prints them.

use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// CPU time so far of this process and of the programs that it has waited for.
pub fn processor_time() -> Duration {
    let (user, system) = processor_ms();
    Duration::from_millis(u64::try_from(user + system).unwrap_or(0))
}

/// A pass in progress.
pub struct Clock {
    started: Instant,
    user: i64,
    system: i64,
}

fn processor_ms() -> (i64, i64) {
    let sum = |who| {
        getrusage(who)
            .map_or((0, 0), |usage| (usage.user_time().num_milliseconds(), usage.system_time().num_milliseconds()))
    };
    let (own, children) = (sum(UsageWho::RUSAGE_SELF), sum(UsageWho::RUSAGE_CHILDREN));
    (own.0 + children.0, own.1 + children.1)
}

impl Clock {
    /// Starts the clock.
    pub fn start() -> Clock {
        let (user, system) = processor_ms();
        Clock { started: Instant::now(), user, system }
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// `12usr/3sys/15real ms`.
    pub fn times(&self) -> String {
        let (user, system) = processor_ms();
        let real = self.started.elapsed().as_millis();
        format!("{}usr/{}sys/{real}real ms", user - self.user, system - self.system)
    }
}

/// `162620virt/98776res/6268shr/108920data kb` of this process (proc(5), /proc/self/statm, in pages).
pub fn memory() -> String {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Vec<u64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let kb = |index: usize| pages.get(index).copied().unwrap_or(0) * 4;
    format!("{}virt/{}res/{}shr/{}data kb", kb(0), kb(1), kb(2), kb(5))
}
