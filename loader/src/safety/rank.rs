// SPDX-License-Identifier: GPL-2.0-or-later

//! Ranks: what the callers of a set-uid spilerun may do, by their groups.
//!
//! | group | may |
//! |---|---|
//! | spiledev | everything that root may |
//! | spilesys | run approved modules, and signed ones from elsewhere; look at and switch any session, end any that has no loader |
//! | spileusr | run approved modules, and signed ones from elsewhere that see the caller's own processes only (`--privilege=stapusr`); look at any session; end one's own |

/// Permissions of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// In none of the groups.
    None,
    /// In spileusr.
    Usr,
    /// In spilesys.
    Sys,
    /// In spiledev.
    Dev,
}

/// Groups with their ranks, highest first.
pub const GROUPS: [(&str, Rank); 3] = [("spiledev", Rank::Dev), ("spilesys", Rank::Sys), ("spileusr", Rank::Usr)];

impl Rank {
    /// The group whose members have this rank.
    pub fn group(self) -> &'static str {
        GROUPS.iter().rev().find(|(_, known)| *known >= self).map_or("spiledev", |(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_have_their_groups() {
        assert_eq!([Rank::Usr, Rank::Sys, Rank::Dev].map(Rank::group), ["spileusr", "spilesys", "spiledev"]);
    }
}
