// SPDX-License-Identifier: GPL-2.0-or-later

//! A module that is loaded for a session, and what is stated of the session to it.

use std::path::Path;

use nix::errno::Errno;

use crate::error::Error;
use crate::host::stderr::say;
use crate::module::load::name_taken;
use crate::safety::rights::Rights;

/// What a loader states of a session when it loads the module (abi.h, SPILE_OWNER).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stated {
    /// One of `RANK_`.
    pub rank: u32,
    /// What the session may take; 0: no limit.
    pub most_bytes: u64,
    /// A service begins it.
    pub service: bool,
    /// Whose it is, and the group of that user; 0: root's.
    pub uid: u32,
    /// See `uid`.
    pub gid: u32,
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
    pub fn parameters(&self) -> String {
        let Stated { rank, most_bytes, service, uid, gid } = self;
        match *self == Stated::default() {
            true => String::new(),
            false => format!(
                "spile_uid={uid} spile_gid={gid} spile_rank={rank} spile_most={most_bytes} spile_service={}",
                u32::from(*service)
            ),
        }
    }
}

/// A module that is loaded. Dropping it removes it; [`Loaded::remove`] also tells how that went.
#[derive(Debug)]
pub struct Loaded<'r> {
    name: String,
    rights: &'r Rights,
    removed: bool,
}

impl Loaded<'_> {
    /// One whose session is to end with this process.
    pub fn new<'r>(name: &str, rights: &'r Rights) -> Loaded<'r> {
        Loaded { name: name.to_string(), rights, removed: false }
    }

    /// A session goes on in it.
    pub fn leave(mut self) {
        self.removed = true;
        self.rights.leave();
    }

    /// Takes it out of the kernel. Its device is closed.
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

/// What the kernel's answer to finit_module(2) means.
pub fn refusal(path: &Path, signed: bool, name: String, errno: Errno) -> Error {
    match errno {
        Errno::EEXIST => name_taken(&name),
        // The kernel's own check of signatures says these, and the module's of builds EKEYREJECTED.
        Errno::EKEYREJECTED | Errno::ENOKEY | Errno::EBADMSG | Errno::ENOPKG if signed => {
            Error::SignatureRejected { path: path.to_path_buf() }
        }
        Errno::ENOKEY => Error::Unsigned { path: path.to_path_buf(), because: "this kernel loads signed modules only" },
        Errno::EKEYREJECTED | Errno::ENOEXEC => Error::RefusedToFit { name, errno },
        // The capability is there (check::may_load_modules), so it is lockdown or a security module.
        Errno::EPERM if !signed => Error::Unsigned {
            path: path.to_path_buf(),
            because: "the kernel does not permit it (lockdown, or a security module)",
        },
        _ => Error::Load { name, errno },
    }
}
