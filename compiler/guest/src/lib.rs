// SPDX-License-Identifier: GPL-2.0-or-later

//! A throw-away guest with an installed kernel: copies files in, runs a script, and streams its output.
//!
//! For `spile --guest`, on hosts that cannot or should not load modules, and for the project's own tests. A guest is
//! one qemu with its own initramfs ([`initramfs`]); it shares nothing with the host and leaves nothing behind. Its
//! script is a shell script (busybox) run as root; there are the users `user` (4242) and `service` (990). Files that
//! the script leaves in `/spile/out` are returned.
//!
//! A boot takes seconds where guests are emulated: with [`Guest::saved_states`] a guest goes on from the saved state of one that
//! had booted ([`template`]).
//!
//!     let mut guest = Guest::new(Kernel::newest()?);
//!     guest.script("uname -r; insmod /root/x.ko").copy("target/x.ko", "/root/x.ko")?;
//!     let outcome = guest.start(Streams::inherit())?.wait()?;
//!     assert_eq!(outcome.end, End::Exited(0));

#![warn(clippy::print_stderr, clippy::print_stdout)]

mod acceleration;
mod choice;
mod cpio;
mod dependencies;
mod error;
mod examination;
mod initramfs;
mod kernel;
mod libraries;
mod machine;
mod module_table;
mod monitor;
mod qemu;
mod receiver;
mod session;
mod streams;
mod template;

pub use acceleration::Acceleration;
pub use error::Error;
pub use kernel::{Kernel, compare_releases};
pub use machine::{BOOT, End, Guest, Interrupter, Outcome, Running};
pub use module_table::module_name;
pub use monitor::Monitor;
pub use session::{Session, SessionEnd, TARGET_NOT_LOADED};
pub use streams::Streams;
