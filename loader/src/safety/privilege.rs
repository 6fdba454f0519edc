// SPDX-License-Identifier: GPL-2.0-or-later

//! The caller of a set-uid spilerun, and the caller's permissions ([`Rank`]).
//!
//! Users attach to their own sessions only; root attaches to any. A module of a service is root's, unless its
//! configuration allows others (`service/reserved.rs`). All sessions of users have limits ([`crate::safety::limits`]).
//!
//! A module is approved if it lies in /lib/modules/RELEASE/spile or .../systemtap, and the file and all directories
//! above it belong to root and nobody else can write to them ([`crate::safety::approved`]).

use std::path::Path;

use nix::errno::Errno;
use nix::sys::prctl::{set_dumpable, set_keepcaps};
use nix::unistd::{Gid, Uid, getegid, geteuid, getgid, getgroups, getuid, seteuid, setgroups, setresgid, setresuid};

use spile_abi::device::{RANK_DEV, RANK_SYS, RANK_USR};

use crate::error::Error;
use crate::host::accounts;
use crate::host::capability::{self, BLOCK_SUSPEND, Sets};
use crate::host::places;
use crate::module::lock;
use crate::safety::approved;
use crate::safety::certificate::Key;
use crate::safety::crowd::{Place, Share};
use crate::safety::limits::{self, Limits};
use crate::safety::ownership::Ownership;
use crate::safety::rank::{GROUPS, Rank};

/// A caller who runs this program with rights that the caller does not have.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    uid: Uid,
    gid: Gid,
    /// Rank of the highest of the caller's groups.
    pub rank: Rank,
}

/// Whether this program has rights that its caller does not have: it is set-uid or set-gid, or has file capabilities.
pub fn has_foreign_rights() -> bool {
    is_set_id() || Sets::own().is_ok_and(|own| has_file_capabilities(&own))
}

fn is_set_id() -> bool {
    getuid() != geteuid() || getgid() != getegid()
}

/// Ambient capabilities are different: a service manager, say, has given them to this user on purpose.
fn has_file_capabilities(own: &Sets) -> bool {
    !getuid().is_root() && capability::is_elevated() && own.permitted != 0
}

impl Caller {
    /// A caller with this rank, whatever his groups are.
    pub fn new(uid: u32, gid: u32, rank: Rank) -> Caller {
        Caller { uid: Uid::from_raw(uid), gid: Gid::from_raw(gid), rank }
    }

    /// Must be called first. None: the program runs with its caller's own rights. An error: it has file capabilities;
    /// all its processes would belong to the caller, who could kill or stop them.
    pub fn find() -> Result<Option<Caller>, Error> {
        let own = Sets::own().map_err(|error| Error::System { doing: "asking for capabilities", error })?;
        if !is_set_id() {
            return if has_file_capabilities(&own) { Err(Error::FileCapabilities) } else { Ok(None) };
        }
        let mut groups = getgroups().unwrap_or_default();
        groups.push(getgid());
        let rank = GROUPS
            .iter()
            .find(|(name, _)| accounts::group_id(name).is_some_and(|id| groups.contains(&Gid::from_raw(id))));
        Ok(Some(Caller { uid: getuid(), gid: getgid(), rank: rank.map_or(Rank::None, |(_, rank)| *rank) }))
    }

    /// UID of the caller.
    pub fn uid(&self) -> u32 {
        self.uid.as_raw()
    }

    /// An error if the caller's groups do not allow it.
    pub fn require(&self, rank: Rank, what: &'static str) -> Result<(), Error> {
        match self.rank >= rank {
            true => Ok(()),
            false => Err(Error::NotAllowed { what, group: rank.group() }),
        }
    }

    /// Drops root's rights permanently, also for all children. What stays is one capability, permitted but not effective, without any
    /// power over others.
    pub fn become_caller(&self) -> Result<(), Error> {
        // A process with the caller's ids and more capabilities cannot be debugged by the caller. This one keeps them until it is not
        // dumpable, which setresuid(2) decides by fs.suid_dumpable, and one of them to its end: when it has given up its memory, older
        // kernels no longer ask whether it is dumpable, but its descriptors can still be taken (__ptrace_may_access(); pidfd_getfd(2)).
        set_keepcaps(true)
            .and_then(|()| setresgid(self.gid, self.gid, self.gid))
            .and_then(|()| setresuid(self.uid, self.uid, self.uid))
            // The process holds the connection to the root part and the module's device: keep debuggers and
            // /proc/PID/fd of the caller out, whatever fs.suid_dumpable is.
            .and_then(|()| set_dumpable(false))
            .and_then(|()| set_keepcaps(false))
            .map_err(failed)?;
        let asking = |error| Error::System { doing: "asking for capabilities", error };
        if !self.uid.is_root() {
            let own = Sets::own().map_err(asking)?;
            let kept = Sets { effective: 0, permitted: own.permitted & BLOCK_SUSPEND, ..own };
            kept.become_current().map_err(|error| Error::System { doing: "giving up privileges", error })?;
        }
        let own = Sets::own().map_err(asking)?;
        let is_dropped =
            seteuid(Uid::from_raw(0)).is_err() && own.permitted & !BLOCK_SUSPEND == 0 && own.effective == 0;
        // If root started a set-gid program, only the group is dropped.
        match is_dropped || self.uid.is_root() {
            true => Ok(()),
            false => {
                Err(Error::System { doing: "giving up privileges", error: std::io::ErrorKind::PermissionDenied.into() })
            }
        }
    }

    /// Makes this process root's: from then on only root can send it signals.
    pub fn become_root() -> Result<(), Error> {
        let (user, group) = (Uid::from_raw(0), Gid::from_raw(0));
        setresuid(user, user, user)
            .and_then(|()| setgroups(&[]))
            .and_then(|()| setresgid(group, group, group))
            .and_then(|()| set_dumpable(false))
            .map_err(failed)
    }

    /// The parameters for a session of this caller; its memory limit is what remains of the limits for users' sessions.
    /// `lock` is held until its module is loaded, which then counts with that limit. `None`, with `waits` only: others
    /// are allocating their buffers, and there may be more room then.
    pub fn ownership(&self, lock: &lock::Lock, waits: bool) -> Result<Option<Ownership>, Error> {
        let (uid, gid) = (self.uid.as_raw(), self.gid.as_raw());
        let rank = match self.rank {
            Rank::None | Rank::Usr => RANK_USR,
            Rank::Sys => RANK_SYS,
            Rank::Dev => return Ok(Some(Ownership { rank: RANK_DEV, uid, gid, ..Ownership::default() })),
        };
        if !lock.is_held() {
            let what = "another spilerun has held the lock for ten seconds".to_string();
            return Err(Error::System { doing: "waiting for other loaders", error: std::io::Error::other(what) });
        }
        let (limits, taken) = (limits()?, limits::taken());
        if waits && !limits.is_settled(self.uid(), &taken) {
            return Ok(None);
        }
        let most_bytes = limits.room(self.uid(), &taken)?;
        Ok(Some(Ownership { rank, most_bytes, service: false, uid, gid }))
    }

    /// Takes one of the places for loaders of this user.
    pub fn take_place(&self) -> Result<Place, Error> {
        // Members of spiledev may do what root may.
        if self.rank == Rank::Dev {
            return Ok(Place::unlimited());
        }
        // A wrong file is reported when a session is to start.
        let most = limits().map_or(limits::LEAST_LOADERS, |limits| limits.loaders());
        Place::take(lock::open_lock(), self.uid(), most).ok_or_else(|| Error::Limit {
            what: format!(
                "{most} spilerun of yours are running, four for each session that a user may have (USER_SESSIONS)"
            ),
        })
    }

    /// Takes a part of the memory for modules of this user that are found and not yet loaded.
    pub fn take_share(&self, bytes: u64) -> Result<Share, Error> {
        if self.rank == Rank::Dev {
            return Ok(Share::unlimited());
        }
        let most = limits()?.user_bytes();
        Share::take(lock::open_lock(), self.uid(), bytes, most).ok_or(Error::ModulesHeld { megabytes: most >> 20 })
    }

    /// Whether this caller's sessions may outlive the presence of their user.
    pub fn keeps(&self) -> bool {
        self.rank == Rank::Dev || limits().is_ok_and(|limits| limits.keeps(self.rank))
    }
}

/// The keys that root trusts, from the certificates in [`places::KEYS`]; adds certificates that cannot be used to
/// `notices`.
pub fn trusted_keys(notices: &mut Vec<String>) -> Vec<Key> {
    let mut keys = Vec::new();
    for (path, read) in approved::certificates(Path::new(places::KEYS)) {
        let key =
            read.map_err(|error| error.to_string()).and_then(|der| Key::of_certificate(&der).map_err(str::to_string));
        match key {
            Ok(key) => keys.push(key),
            Err(why) => notices.push(format!("WARNING: {}: {why}", path.display())),
        }
    }
    keys
}

/// The limits that root has set, or the defaults without a file. An error if others may have written it, or it is wrong.
fn limits() -> Result<Limits, Error> {
    let wrong = |why: String| Error::Setting { given: places::LIMITS.to_string(), why };
    let bytes =
        approved::read(Path::new(places::LIMITS)).map_err(|error| wrong(error.to_string()))?.unwrap_or_default();
    let text = String::from_utf8(bytes).map_err(|error| wrong(error.to_string()))?;
    let memory = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| limits::memory(&text));
    Limits::parse(&text, memory.ok_or_else(|| wrong("/proc/meminfo does not show the amount of memory".to_string()))?)
        .map_err(wrong)
}

fn failed(errno: Errno) -> Error {
    Error::System { doing: "changing privileges", error: errno.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_beyond_the_rank_are_refused() {
        let caller = Caller { uid: getuid(), gid: getgid(), rank: Rank::Usr };
        assert!(caller.require(Rank::Usr, "x").is_ok() && caller.require(Rank::Sys, "x").is_err());
    }
}
