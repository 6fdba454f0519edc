// SPDX-License-Identifier: GPL-2.0-or-later

//! The time at which the script's rewriting ends (`--expires`).

use crate::module::device::Device;
use crate::module::gate;

/// Nanoseconds between two checks of the clock, which may be set.
const INTERVAL: u64 = 10_000_000_000;

/// When the script's rewriting ends.
pub struct Expiry {
    /// In nanoseconds of [`gate::now`]; `None`: no limit, or already reported.
    at: Option<u64>,
}

impl Expiry {
    /// From the module's current gate.
    pub fn of(device: &Device) -> Expiry {
        Expiry { at: pending(device) }
    }

    /// Updates after a change of the gate: a new time in the future replaces the previous one.
    pub fn update(&mut self, device: &Device) {
        self.at = pending(device).or(self.at);
    }

    /// Whether rewriting has ended; true once.
    pub fn check(&mut self, device: &Device) -> bool {
        if self.at.is_none_or(|at| gate::now() < at) {
            return false;
        }
        // The time may have been extended meanwhile.
        let now = device.gate().map_or(0, |state| state.gate.expires);
        self.at = Some(now).filter(|expires| *expires > gate::now());
        now > 0 && self.at.is_none()
    }

    /// Nanoseconds until [`Expiry::check`] is to be called; `None`: never.
    pub fn until_check(&self) -> Option<u64> {
        self.at.map(|at| at.saturating_sub(gate::now()).min(INTERVAL))
    }
}

/// When rewriting ends, if in the future.
fn pending(device: &Device) -> Option<u64> {
    device.gate().ok().map(|state| state.gate.expires).filter(|expires| *expires > gate::now())
}
