// SPDX-License-Identifier: GPL-2.0-or-later

//! The name by which messages tell people to start the loader.

use std::sync::atomic::{AtomicBool, Ordering};

/// Called as staprun, or by `stap`.
static STAPRUN: AtomicBool = AtomicBool::new(false);

/// From now on it is staprun.
pub fn be_staprun() {
    STAPRUN.store(true, Ordering::Relaxed);
}

/// Whether it is staprun.
pub fn is_staprun() -> bool {
    STAPRUN.load(Ordering::Relaxed)
}

/// `spilerun`, or `staprun`.
pub fn name() -> &'static str {
    if is_staprun() { "staprun" } else { "spilerun" }
}
