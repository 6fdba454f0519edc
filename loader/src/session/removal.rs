// SPDX-License-Identifier: GPL-2.0-or-later

//! Removes the module of an ended session once the kernel has disarmed its probes. With thousands of kprobes that takes
//! seconds: a user who has interrupted the session does not wait for it. The next start of the same module does.

use std::time::Duration;

use crate::error::Error;
use crate::host::clock;
use crate::host::stderr::say;
use crate::module::load;
use crate::safety::loaded::Loaded;
use crate::safety::rights::Rights;
use crate::session::arming::Arming;
use crate::session::signals::Signals;

const PAUSE: Duration = Duration::from_millis(20);
/// Probes that are disarmed within this time are waited for, also after an interrupt.
const MOMENT: u64 = 100_000_000;

/// Removes the module, whose device is closed. While its probes are being disarmed: waits, and reports the progress; or if
/// the session is `interrupted`, or a signal comes, leaves it to a process in the background.
pub fn remove(loaded: Loaded<'_>, interrupted: bool, signals: &Signals) -> Result<(), Error> {
    let begun = clock::now();
    let mut progress = Arming::new(begun);
    while let Some(left) = loaded.left_to_disarm() {
        let now = clock::now();
        if signals.is_stopping() || (interrupted && now.saturating_sub(begun) > MOMENT) {
            let name = loaded.name().to_string();
            match loaded.remove_later() {
                Ok(()) => {}
                // The kernel waits in the call that removes it.
                Err(same) => return same.remove(),
            }
            say(&format!(
                "NOTICE: the kernel is still disarming {left} probes in the background; module {name} is removed when that is done (spilerun status {name}, or spilerun -d {name} to wait for it)"
            ));
            return Ok(());
        }
        if progress.is_due(now)
            && let Some(text) = progress.text(now, left, left, None)
        {
            say(&format!("NOTICE: {text}; interrupt (^C) to leave it to the background"));
        }
        std::thread::sleep(PAUSE);
    }
    loaded.remove()
}

/// Waits until the probes of an ended session of a module with that name are disarmed, which is removed then; or until a
/// signal comes.
pub fn wait_for_previous(name: &str, rights: &Rights, signals: &Signals) {
    // Spares the usual start the request to the root part.
    if !load::is_loaded(name) {
        return;
    }
    let mut reported = false;
    while rights.left_to_disarm(name).is_some() && !signals.is_stopping() {
        if !reported {
            say(&format!(
                "NOTICE: waiting until the kernel has disarmed the probes of the previous session of module {name}; interrupt (^C) to end this"
            ));
            reported = true;
        }
        std::thread::sleep(PAUSE);
    }
}
