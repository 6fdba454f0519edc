// SPDX-License-Identifier: GPL-2.0-or-later

//! The interface between a module built by spile and the loader: the Rust half of `abi.h`, and the metadata in a `.ko`.
//!
//! Also the handling of untrusted input shared by loader and compiler: [`budget`], [`bounded`], [`escape`], [`go`], [`libraries`], [`sections`], [`stubs`]; and what one crate
//! of the compiler leaves out of a module's C for another to write: [`sites`].
//!
//! `tests/twins.rs` compiles `abi.h` and compares every size, offset, value and ioctl number with these.

pub mod bounded;
pub mod budget;
pub mod device;
pub mod escape;
pub mod format;
pub mod go;
pub mod libraries;
pub mod meta;
pub mod record;
pub mod say;
pub mod seal;
pub mod sections;
pub mod sites;
pub mod stubs;
