// SPDX-License-Identifier: GPL-2.0-or-later

//! Limits for sessions of users other than root: `/etc/spile/limits`, lines `KEY=VALUE`.
//!
//! A session's own limit is set when its module is loaded, and enforced by the module. With an error in the file users'
//! sessions are refused, but never root's.

use spile_abi::device::{Info, Owner, RANK_ROOT, State};

use crate::error::Error;
use crate::host::assignments::assignments;
use crate::module::device::Device;
use crate::module::load;
use crate::safety::rank::Rank;

/// Loaders that each user may have at least.
pub const LEAST_LOADERS: u16 = 64;

/// The limits of [`crate::host::places::LIMITS`], sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Memory of all sessions of one user.
    user_bytes: u64,
    /// Memory of the sessions of all users.
    all_bytes: u64,
    /// Number of sessions of one user.
    user_sessions: usize,
    /// Sessions of this rank and above may outlive the presence of their users; `None`: none may.
    keep: Option<Rank>,
}

/// Another session, as seen by the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionUsage {
    /// UID of its owner.
    pub uid: u32,
    /// Memory that it uses, or its maximum until its buffers are allocated.
    pub bytes: u64,
    /// Its buffers are not yet allocated.
    pub is_growing: bool,
}

impl SessionUsage {
    /// `None`: a session of root or of a user without limits. Until a session's buffers are allocated it counts with
    /// its maximum.
    pub fn by(owner: &Owner, info: &Info) -> Option<SessionUsage> {
        if owner.rank == RANK_ROOT && owner.uid == 0 {
            return None;
        }
        let is_growing = State::from_number(info.state) == Some(State::Loaded);
        let bytes = if is_growing { owner.most_bytes.max(info.memory_bytes) } else { info.memory_bytes };
        Some(SessionUsage { uid: owner.uid, bytes, is_growing })
    }
}

impl Limits {
    /// Parses the file; `memory`: of the machine, in bytes. The error says where the text is wrong.
    pub fn parse(text: &str, memory: u64) -> Result<Limits, String> {
        let mut limits = Limits { user_bytes: memory / 16, all_bytes: memory / 4, user_sessions: 16, keep: None };
        for assignment in assignments(text) {
            let assignment = assignment?;
            let value = assignment.value;
            let wrong = |why: &str| assignment.wrong(why);
            let bytes = || {
                amount(value, memory)
                    .ok_or_else(|| wrong("expected a fraction of the memory (1/16) or a number of megabytes (512M)"))
            };
            match assignment.key {
                "USER_MEMORY" => limits.user_bytes = bytes()?,
                "ALL_MEMORY" => limits.all_bytes = bytes()?,
                "USER_SESSIONS" => limits.user_sessions = value.parse().map_err(|_| wrong("expected a number"))?,
                "KEEP" => {
                    limits.keep = match value {
                        "" | "none" => None,
                        "spilesys" => Some(Rank::Sys),
                        "spileusr" => Some(Rank::Usr),
                        _ => return Err(wrong("it is none, spilesys or spileusr")),
                    }
                }
                _ => return Err(wrong("no such key")),
            }
        }
        Ok(limits)
    }

    /// Memory in bytes that one more session of this user may use in addition to these.
    pub fn room(&self, uid: u32, others: &[SessionUsage]) -> Result<u64, Error> {
        let own = || others.iter().filter(|other| other.uid == uid);
        let (count, bytes) = (own().count(), sum(own()));
        let refused = |what: String| Err(Error::Limit { what });
        if count >= self.user_sessions {
            return refused(format!(
                "{count} sessions of yours are loaded, and a user may have {} (USER_SESSIONS)",
                self.user_sessions
            ));
        }
        let (user, all) = (self.user_bytes.saturating_sub(bytes), self.all_bytes.saturating_sub(sum(others.iter())));
        if user == 0 {
            return refused(format!(
                "your sessions take {} MB of memory, and a user's may take {} MB (USER_MEMORY)",
                bytes >> 20,
                self.user_bytes >> 20
            ));
        }
        if all == 0 {
            return refused(format!(
                "the sessions of all users take the {} MB of memory that they may (ALL_MEMORY)",
                self.all_bytes >> 20
            ));
        }
        Ok(user.min(all))
    }

    /// Whether the answer of [`Limits::room`] would not be better for this user if the buffers were allocated.
    pub fn is_settled(&self, uid: u32, others: &[SessionUsage]) -> bool {
        let growing = || others.iter().filter(|other| other.is_growing);
        growing().all(|other| other.uid != uid) && (growing().count() == 0 || self.room(uid, others).is_ok())
    }

    /// Memory of all sessions of one user, in bytes.
    pub fn user_bytes(&self) -> u64 {
        self.user_bytes
    }

    /// Loaders that one user may have at once, those that ask for a status included.
    pub fn loaders(&self) -> u16 {
        u16::try_from(self.user_sessions.saturating_mul(4)).unwrap_or(u16::MAX).max(LEAST_LOADERS)
    }

    /// Whether a session of this rank continues when its user is gone.
    pub fn keeps(&self, rank: Rank) -> bool {
        self.keep.is_some_and(|least| rank >= least)
    }
}

/// Memory used by the loaded modules of users.
pub fn taken() -> Vec<SessionUsage> {
    let ask = |name: &String| {
        let device = Device::look(name).ok()?;
        SessionUsage::by(&device.owner().ok()?, &device.info().ok()?)
    };
    load::candidates().iter().filter_map(ask).collect()
}

fn sum<'t>(taken: impl Iterator<Item = &'t SessionUsage>) -> u64 {
    taken.fold(0, |sum, taken| sum.saturating_add(taken.bytes))
}

/// `N/M` of the memory, or `NM`, in bytes.
fn amount(text: &str, memory: u64) -> Option<u64> {
    if let Some((part, whole)) = text.split_once('/') {
        let (part, whole): (u64, u64) = (part.trim().parse().ok()?, whole.trim().parse().ok()?);
        return (part > 0 && part <= whole).then(|| (u128::from(memory) * u128::from(part) / u128::from(whole)) as u64);
    }
    let megabytes: u64 = text.strip_suffix('M')?.trim().parse().ok()?;
    megabytes.checked_mul(1 << 20).filter(|bytes| *bytes > 0)
}

/// `MemTotal` of `/proc/meminfo`, in bytes.
pub fn memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1 << 30;

    #[test]
    fn limits_have_defaults_and_errors_name_the_line() {
        let limits = Limits::parse("# nothing\n", 16 * GB).unwrap();
        assert_eq!(limits, Limits { user_bytes: GB, all_bytes: 4 * GB, user_sessions: 16, keep: None });
        let limits =
            Limits::parse("USER_MEMORY=512M\nALL_MEMORY = 3/8\nUSER_SESSIONS=2\nKEEP=spilesys", 16 * GB).unwrap();
        assert_eq!(limits, Limits { user_bytes: GB / 2, all_bytes: 6 * GB, user_sessions: 2, keep: Some(Rank::Sys) });
        assert!(limits.keeps(Rank::Sys) && !limits.keeps(Rank::Usr));
        assert_eq!(limits.loaders(), 64);
        assert_eq!(Limits::parse("USER_SESSIONS=100", GB).unwrap().loaders(), 400);
        for text in [
            "USER_MEMORY=0",
            "USER_MEMORY=2/1",
            "USER_MEMORY=1/0",
            "ALL_MEMORY=0M",
            "USER_SESSIONS=-1",
            "KEEP=all",
            "X=1",
            "KEEP",
        ] {
            assert!(Limits::parse(text, GB).unwrap_err().starts_with("line 1: "), "{text}");
        }
    }

    #[test]
    fn sums_are_of_one_user_and_of_all() {
        let limits = Limits::parse("USER_MEMORY=100M\nALL_MEMORY=150M\nUSER_SESSIONS=3", GB).unwrap();
        let taken = |uid, megabytes: u64| SessionUsage { uid, bytes: megabytes << 20, is_growing: false };
        let room = |others: &[SessionUsage]| {
            limits.room(5, others).map(|bytes| bytes >> 20).map_err(|error| error.to_string())
        };
        assert_eq!(room(&[]), Ok(100));
        assert_eq!(room(&[taken(5, 40), taken(6, 30)]), Ok(60));
        assert_eq!(room(&[taken(5, 10), taken(6, 90)]), Ok(50));
        assert!(room(&[taken(5, 100)]).is_err_and(|error| error.contains("USER_MEMORY")));
        assert!(room(&[taken(6, 100), taken(7, 50)]).is_err_and(|error| error.contains("ALL_MEMORY")));
        assert!(room(&[taken(5, 1), taken(5, 1), taken(5, 1)]).is_err_and(|error| error.contains("USER_SESSIONS")));
    }

    #[test]
    fn waits_for_other_sessions_only_if_that_may_help() {
        let limits = Limits::parse("USER_MEMORY=100M\nALL_MEMORY=150M\nUSER_SESSIONS=3", GB).unwrap();
        let is_settled = |others: &[(u32, u64, bool)]| {
            let others = others.iter().map(|&(uid, megabytes, is_growing)| SessionUsage {
                uid,
                bytes: megabytes << 20,
                is_growing,
            });
            limits.is_settled(5, &others.collect::<Vec<_>>())
        };
        assert!(is_settled(&[]) && is_settled(&[(5, 100, false), (6, 100, false)]));
        assert!(is_settled(&[(6, 100, true)]));
        assert!(!is_settled(&[(6, 100, true), (7, 50, false)]));
        assert!(!is_settled(&[(5, 1, true)]));
    }

    #[test]
    fn buffers_that_are_not_allocated_yet_count() {
        let owner = Owner { uid: 5, rank: 1, most_bytes: 100, ..Owner::default() };
        let info = |state| Info { state: state as u32, memory_bytes: 7, ..Info::default() };
        assert_eq!(
            SessionUsage::by(&owner, &info(State::Loaded)),
            Some(SessionUsage { uid: 5, bytes: 100, is_growing: true })
        );
        assert_eq!(
            SessionUsage::by(&owner, &info(State::Running)),
            Some(SessionUsage { uid: 5, bytes: 7, is_growing: false })
        );
        assert_eq!(SessionUsage::by(&Owner::default(), &info(State::Running)), None);
    }

    #[test]
    fn the_machine_s_memory() {
        assert_eq!(memory("MemFree: 3 kB\nMemTotal:       2048 kB\n"), Some(2 << 20));
        assert_eq!(memory("MemTotal: much\n"), None);
    }
}
