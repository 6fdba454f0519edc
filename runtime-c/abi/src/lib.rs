// SPDX-License-Identifier: GPL-2.0-or-later

//! What a module built by spile and the loader agree on: the Rust twin of `abi.h`, and the metadata in a `.ko`.
//!
//! Beside it what loader and compiler do alike with what comes from outside: [`budget`], [`escape`].
//!
//! `tests/twins.rs` compiles `abi.h` and compares every size, offset, value and ioctl number with what stands here.

#![warn(missing_docs)]

pub mod budget;
pub mod device;
pub mod escape;
pub mod format;
pub mod meta;
pub mod record;
pub mod seal;
