// SPDX-License-Identifier: GPL-2.0-or-later

//! Locks of single bytes of a file (fcntl(2), open file description locks). The file need not be so long.

use std::fs::File;
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::libc;

/// Locks a byte for this open file, which children that close it do not keep, until it is closed. EAGAIN or EACCES:
/// another one has it.
pub fn lock(file: &File, byte: i64) -> Result<(), Errno> {
    let range = one(byte);
    // SAFETY: reads one structure.
    Errno::result(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const range) }).map(drop)
}

/// Whether another open file has locked the byte.
pub fn is_locked(file: &File, byte: i64) -> bool {
    let mut range = one(byte);
    // SAFETY: reads and writes one structure.
    let asked = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut range) };
    asked == 0 && range.l_type != libc::F_UNLCK as libc::c_short
}

fn one(byte: i64) -> libc::flock {
    // SAFETY: a structure of numbers, for which zeros are valid; `l_pid` has to be 0.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = libc::F_WRLCK as libc::c_short;
    range.l_whence = libc::SEEK_SET as libc::c_short;
    range.l_start = byte;
    range.l_len = 1;
    range
}

/// Whether the error means that another one has the byte.
pub fn is_taken(errno: Errno) -> bool {
    matches!(errno, Errno::EAGAIN | Errno::EACCES)
}
