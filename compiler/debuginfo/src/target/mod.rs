// SPDX-License-Identifier: GPL-2.0-or-later

//! What probes are for: one kernel release, its files and modules, and each one's build-id.
//!
//! [`Kernel::open`] only looks which files there are. An [`Object`] is opened when first asked for, and its debug information
//! is read when that is first asked for.

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
