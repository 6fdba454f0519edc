// SPDX-License-Identifier: GPL-2.0-or-later

//! A module that is loaded for a session.

use crate::error::Error;
use crate::host::stderr::say;
use crate::safety::rights::Rights;

/// A loaded module. Dropping it removes the module; [`Loaded::remove`] also returns the result.
#[derive(Debug)]
pub struct Loaded<'r> {
    name: String,
    rights: &'r Rights,
    removed: bool,
}

impl Loaded<'_> {
    /// A module whose session ends with this process.
    pub fn new<'r>(name: &str, rights: &'r Rights) -> Loaded<'r> {
        Loaded { name: name.to_string(), rights, removed: false }
    }

    /// Its session continues.
    pub fn leave(mut self) {
        self.removed = true;
        self.rights.leave();
    }

    /// How many of its probes are still to be disarmed; `None`: all are. Its device must be closed.
    pub fn left_to_disarm(&self) -> Option<u32> {
        self.rights.left_to_disarm(&self.name)
    }

    /// Removes the module in the background, when all probes are disarmed. Err: it cannot be done there.
    pub fn remove_later(mut self) -> Result<(), Self> {
        if !self.rights.unload_later(&self.name) {
            return Err(self);
        }
        self.removed = true;
        Ok(())
    }

    /// The module's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Removes the module. Its device must be closed.
    pub fn remove(mut self) -> Result<(), Error> {
        self.removed = true;
        self.rights.unload(&self.name)
    }
}

impl Drop for Loaded<'_> {
    fn drop(&mut self) {
        if !self.removed
            && let Err(error) = self.rights.unload(&self.name)
        {
            say(&format!("ERROR: {error}"));
        }
    }
}
