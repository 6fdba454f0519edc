// SPDX-License-Identifier: GPL-2.0-or-later

//! The program that probes are for: one kernel release, its files and modules, and each one's build-id.
//!
//! [`Kernel::open`] only looks at which files there are. Objects are opened when asked for, kept, and their debug
//! information is read when somebody asks an [`Object`] for it.

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
