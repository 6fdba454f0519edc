// SPDX-License-Identifier: GPL-2.0-or-later

//! A module that this process has loaded, and what it states of the session to it.

use nix::errno::Errno;
use nix::kmod::init_module;

use crate::error::Error;
use crate::host::stderr::say;
use crate::module::file::File;
use crate::module::load::{name_taken, remove};
use crate::safety::privilege::Remover;

/// What a loader states of a session when it loads the module (abi.h, SPILE_OWNER).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stated {
    /// One of `RANK_`.
    pub rank: u32,
    /// What the session may take; 0: no limit.
    pub most_bytes: u64,
    pub service: bool,
}

impl Stated {
    /// What an error means where the module may take only so much.
    pub fn limited(&self, error: Error) -> Error {
        match error {
            Error::Load { errno: Errno::ENOMEM, .. } | Error::Device { errno: Errno::EDQUOT | Errno::ENOMEM, .. }
                if self.most_bytes > 0 =>
            {
                let left = self.most_bytes >> 20;
                Error::Limit {
                    what: format!(
                        "the session takes more memory than there is, or than the {left} MB that are left for it (USER_MEMORY, ALL_MEMORY)"
                    ),
                }
            }
            error => error,
        }
    }

    /// As parameters of the module.
    fn parameters(&self) -> String {
        let Stated { rank, most_bytes, service } = self;
        match *self == Stated::default() {
            true => String::new(),
            false => format!("spile_rank={rank} spile_most={most_bytes} spile_service={}", u32::from(*service)),
        }
    }
}

/// A module that this process has loaded. Dropping it removes it; [`Loaded::remove`] also tells how that went.
#[derive(Debug)]
pub struct Loaded {
    pub name: String,
    /// Removes it when this process has no right to.
    remover: Option<Remover>,
    removed: bool,
}

impl Loaded {
    pub fn load(file: &File, stated: &Stated, remover: Option<Remover>) -> Result<Loaded, Error> {
        let name = file.description.meta.name.clone();
        // The bytes that were checked: nobody can exchange the file in between.
        // SANITY: numbers have no NUL.
        let parameters = std::ffi::CString::new(stated.parameters()).unwrap_or_default();
        remover.as_ref().map_or(Ok(()), Remover::loading)?;
        match init_module(&file.image, &parameters) {
            Ok(()) => Ok(Loaded { name, remover, removed: false }),
            Err(errno) => Err(refusal(file, name, errno)),
        }
    }

    /// A session goes on in it.
    pub fn leave(mut self) {
        self.removed = true;
        if let Some(remover) = &self.remover {
            remover.leave();
        }
    }

    /// A module that is loaded already: its session is to end with this process.
    pub fn attached(name: &str, remover: Option<Remover>) -> Loaded {
        Loaded { name: name.to_string(), remover, removed: false }
    }

    pub fn remove(mut self) -> Result<(), Error> {
        self.removed = true;
        self.take_out()
    }

    fn take_out(&self) -> Result<(), Error> {
        match &self.remover {
            Some(remover) => remover.remove(&self.name),
            None => remove(&self.name),
        }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if !self.removed
            && let Err(error) = self.take_out()
        {
            say(&format!("ERROR: {error}"));
        }
    }
}

/// What the kernel's answer to init_module(2) means.
fn refusal(file: &File, name: String, errno: Errno) -> Error {
    match errno {
        Errno::EEXIST => name_taken(&name),
        // The kernel's own check of signatures says these, and the module's of builds EKEYREJECTED.
        Errno::EKEYREJECTED | Errno::ENOKEY | Errno::EBADMSG | Errno::ENOPKG if file.signed => {
            Error::SignatureRejected { path: file.path.clone() }
        }
        Errno::ENOKEY => Error::Unsigned { path: file.path.clone(), because: "this kernel loads signed modules only" },
        Errno::EKEYREJECTED | Errno::ENOEXEC => Error::RefusedToFit { name, errno },
        // The capability is there (check::may_load_modules), so it is lockdown or a security module.
        Errno::EPERM if !file.signed => Error::Unsigned {
            path: file.path.clone(),
            because: "the kernel does not permit it (lockdown, or a security module)",
        },
        _ => Error::Load { name, errno },
    }
}
