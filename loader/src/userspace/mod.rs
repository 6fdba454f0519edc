// SPDX-License-Identifier: GPL-2.0-or-later

//! Stacks of user space: the tables by which the module unwinds them, and the names of their frames.
//!
//! The module knows files by their inodes ([`spile_abi::device::File`]). [`locate`] opens them, with the rights of this
//! process: in a set-uid loader those of the caller. What it asks about processes of others is bounded (`look`).
//! [`unwind`] makes a table of a file's `.eh_frame`, [`tables`] hands tables to the module: before the session for files
//! that its target will run, later for files that were found in stacks ([`spile_abi::device::WANTED`]). [`programs`]
//! names frames, from symbol tables ([`symbols`]) and the maps that compilers at run time write ([`perf_map`]).

pub mod files;
pub mod image;
pub mod libraries;
pub mod lines;
pub mod locate;
mod look;
pub mod mounts;
pub mod perf_map;
pub mod programs;
pub mod symbols;
pub mod tables;
pub mod unwind;
