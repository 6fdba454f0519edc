// SPDX-License-Identifier: GPL-2.0-or-later

//! The parameters that describe a session to its module, and the errors of loading one.

use std::path::Path;

use nix::errno::Errno;

use crate::error::Error;
use crate::module::load::name_taken;

/// The session's parameters, set when the module is loaded (abi.h, SPILE_OWNER).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ownership {
    /// Rank of the owner, one of `RANK_`.
    pub rank: u32,
    /// Maximum memory of the session in bytes; 0: no limit.
    pub most_bytes: u64,
    /// Started by a service.
    pub service: bool,
    /// UID of the owner, and GID of the owner's group; 0: root.
    pub uid: u32,
    /// See `uid`.
    pub gid: u32,
}

impl Ownership {
    /// The message for an error if the module has a memory limit.
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

    /// As module parameters.
    pub fn parameters(&self) -> String {
        let Ownership { rank, most_bytes, service, uid, gid } = self;
        match *self == Ownership::default() {
            true => String::new(),
            false => format!(
                "spile_uid={uid} spile_gid={gid} spile_rank={rank} spile_most={most_bytes} spile_service={}",
                u32::from(*service)
            ),
        }
    }
}

/// The error for a result of finit_module(2).
pub fn refusal(path: &Path, signed: bool, name: String, errno: Errno) -> Error {
    match errno {
        Errno::EEXIST => name_taken(&name),
        // The kernel's signature check returns these; the module's check of build-ids returns EKEYREJECTED.
        Errno::EKEYREJECTED | Errno::ENOKEY | Errno::EBADMSG | Errno::ENOPKG if signed => {
            Error::SignatureRejected { path: path.to_path_buf() }
        }
        Errno::ENOKEY => Error::Unsigned { path: path.to_path_buf(), because: "this kernel loads signed modules only" },
        Errno::EKEYREJECTED | Errno::ENOEXEC => Error::RefusedToFit { name, errno },
        // The process has the capability (check::may_load_modules), so lockdown or a security module refused it.
        Errno::EPERM if !signed => Error::Unsigned {
            path: path.to_path_buf(),
            because: "the kernel does not permit it (lockdown, or a security module)",
        },
        _ => Error::Load { name, errno },
    }
}
