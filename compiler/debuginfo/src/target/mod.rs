// SPDX-License-Identifier: GPL-2.0-or-later

//! What probes are for: one kernel release, its files and modules, and each one's build-id; and programs and libraries in user
//! space ([`Programs`]).
//!
//! [`Kernel::open`] only checks which files exist. An [`Object`] is opened when first needed, and its debug information is
//! read when that is first needed.

mod debuginfod;
mod error;
mod export;
mod index_file;
mod kernel;
mod libraries;
mod module;
mod number;
mod object;
mod owner;
mod places;
mod program;
mod reserved;
mod unwinders;

pub use debuginfod::Servers;
pub use error::TargetError;
pub use export::export;
pub use kernel::{Kernel, SearchOptions, releases_below};
pub use module::of_other_releases;
pub use number::number;
pub use object::Object;
pub use owner::Owners;
pub use program::{Looked, Programs};
