// SPDX-License-Identifier: GPL-2.0-or-later

//! The name by which messages tell people to start the loader.

use std::sync::atomic::{AtomicBool, Ordering};

/// Called as staprun, or by `stap`.
static STAPRUN: AtomicBool = AtomicBool::new(false);

/// From now on it is staprun.
pub fn be_staprun() {
    STAPRUN.store(true, Ordering::Relaxed);
}

/// `spilerun`, or `staprun`.
pub fn name() -> &'static str {
    if STAPRUN.load(Ordering::Relaxed) { "staprun" } else { "spilerun" }
}
