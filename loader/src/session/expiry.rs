// SPDX-License-Identifier: GPL-2.0-or-later

//! The time from which on the script rewrites nothing any more (`--expires`).

use crate::module::device::Device;
use crate::module::gate;

/// Nanoseconds between two looks at the clock, which somebody may set.
const INTERVAL: u64 = 10_000_000_000;

/// When the script's rewriting ends.
pub struct Expiry {
    /// In nanoseconds of [`gate::now`]; `None`: there is no such time, or it was reported.
    at: Option<u64>,
}

impl Expiry {
    /// As the module's gate has it now.
    pub fn of(device: &Device) -> Expiry {
        Expiry { at: pending(device) }
    }

    /// The gate may have changed: a new time, still to come, replaces the one before.
    pub fn update(&mut self, device: &Device) {
        self.at = pending(device).or(self.at);
    }

    /// Whether rewriting has ended; true once.
    pub fn check(&mut self, device: &Device) -> bool {
        if self.at.is_none_or(|at| gate::now() < at) {
            return false;
        }
        // It may have been given more time meanwhile.
        let now = device.gate().map_or(0, |state| state.gate.expires);
        self.at = Some(now).filter(|expires| *expires > gate::now());
        now > 0 && self.at.is_none()
    }

    /// Nanoseconds until [`Expiry::check`] is to be called; `None`: it need not be.
    pub fn until_check(&self) -> Option<u64> {
        self.at.map(|at| at.saturating_sub(gate::now()).min(INTERVAL))
    }
}

/// When rewriting ends, if that is still to come.
fn pending(device: &Device) -> Option<u64> {
    device.gate().ok().map(|state| state.gate.expires).filter(|expires| *expires > gate::now())
}
