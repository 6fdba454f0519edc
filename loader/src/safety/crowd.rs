// SPDX-License-Identifier: GPL-2.0-or-later

//! How many loaders of one user may run at once. Each has two processes with root's rights, its root part and the guard of
//! that. They count neither for the user's own limits nor in the user's cgroup, and the kernel does not kill them when
//! memory is out: without a bound of their own a user could take memory that nobody limits, by loaders that are stopped as
//! soon as they are started.
//!
//! The root part takes a place: a byte of the loaders' lock file, which root alone can open, locked until it ends. Other bytes
//! stand for the memory of modules that it has read and not yet loaded.

use std::fs::File;

use crate::host::byte_lock::{is_taken, lock};

/// A place, until it is dropped.
#[derive(Debug)]
pub struct Place {
    _file: Option<File>,
}

impl Place {
    /// One of a user without a bound.
    pub fn unlimited() -> Place {
        Place { _file: None }
    }

    /// Takes one of the `most` places of user `uid` in the file. `None`: all are taken. Where the file cannot be locked there
    /// is no bound.
    pub fn take(file: Option<File>, uid: u32, most: u16) -> Option<Place> {
        let Some(file) = file else { return Some(Place::unlimited()) };
        // Each user has as many bytes as there can be places.
        let first = i64::from(uid) << u16::BITS;
        for place in 0..i64::from(most) {
            match lock(&file, first + place) {
                Err(errno) if is_taken(errno) => {}
                Ok(()) | Err(_) => return Some(Place { _file: Some(file) }),
            }
        }
        None
    }
}

/// Memory for the bytes of a module, from when it is found until it is loaded: a user part can be stopped in between, and the
/// root part, which has read an approved file, is not in its cgroup.
#[derive(Debug)]
pub struct Share {
    _file: Option<File>,
}

/// Places of shares begin behind all those of loaders; those of names (`lock::NameLock`) behind these.
const SHARES: i64 = 1 << 48;
/// One place of a share, in bytes.
const UNIT: u64 = 1 << 20;

impl Share {
    /// One of a user without a bound.
    pub fn unlimited() -> Share {
        Share { _file: None }
    }

    /// Takes `bytes` of the `most` bytes of user `uid`, or more than these if nothing is taken. `None`: there are not so many
    /// left. Where the file cannot be locked there is no bound.
    pub fn take(file: Option<File>, uid: u32, bytes: u64, most: u64) -> Option<Share> {
        let Some(file) = file else { return Some(Share::unlimited()) };
        let first = SHARES + (i64::from(uid) << u16::BITS);
        let wanted = bytes.div_ceil(UNIT);
        let mut taken = 0;
        for place in 0..(most / UNIT).max(wanted).min(u16::MAX.into()) {
            match lock(&file, first + place.cast_signed()) {
                Err(errno) if is_taken(errno) => continue,
                Ok(()) => taken += 1,
                Err(_) => return Some(Share { _file: Some(file) }),
            }
            if taken == wanted {
                return Some(Share { _file: Some(file) });
            }
        }
        (wanted == 0).then(Share::unlimited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_has_places_until_they_are_given_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let take = |uid, most| Place::take(Some(File::create(&path).unwrap()), uid, most);
        let mut places: Vec<_> = (0..3).map(|_| take(5, 3)).collect();
        assert!(places.iter().all(Option::is_some) && take(5, 3).is_none());
        assert!(take(6, 1).is_some() && take(u32::MAX, 1).is_some());
        places.pop();
        assert!(take(5, 3).is_some());
        assert!(Place::take(None, 5, 0).is_some());
    }

    #[test]
    fn modules_of_a_user_have_so_much_memory_before_they_are_loaded() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let take = |uid, megabytes: u64, most: u64| {
            Share::take(Some(File::create(&path).unwrap()), uid, megabytes << 20, most << 20)
        };
        let first = take(5, 40, 100);
        assert!(first.is_some());
        let second = take(5, 50, 100);
        // What was refused has taken nothing.
        assert!(second.is_some() && take(5, 20, 100).is_none() && take(5, 10, 100).is_some());
        assert!(take(6, 100, 100).is_some() && take(u32::MAX, 1, 1).is_some());
        drop(first);
        assert!(take(5, 50, 100).is_some());
        // A module that needs more than all is loaded if it is alone.
        assert!(take(5, 200, 100).is_none());
        drop(second);
        assert!(take(5, 200, 100).is_some() && Share::take(None, 5, 1, 0).is_some() && take(5, 0, 0).is_some());
        // Loaders have other places.
        let place = Place::take(Some(File::create(&path).unwrap()), 5, 1);
        assert!(place.is_some() && take(5, 1, 1).is_some());
    }
}
