// SPDX-License-Identifier: GPL-2.0-or-later

//! The targets of probes: one kernel release, its files and modules, and their build-ids.
//!
//! [`Kernel::open`] only checks which files exist. An [`Object`] is opened when first needed, and its debug information is
//! read when that is first needed.

mod debuginfod;
mod error;
mod kernel;
mod module;
mod object;
mod packed;

pub use debuginfod::Servers;
pub use error::TargetError;
pub use kernel::{Kernel, SearchOptions};
pub use object::Object;
pub use packed::export;
