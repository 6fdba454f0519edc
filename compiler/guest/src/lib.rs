// SPDX-License-Identifier: GPL-2.0-or-later

//! A throw-away guest of an installed kernel: files go in, a script runs, its output is streamed out.
//!
//! For `spile --guest`, on hosts that cannot load modules or should not, and for the project's own tests. A guest is
//! one qemu with an initramfs made for it ([`initramfs`]); nothing of the host is shared with it and nothing of it
//! stays. Its script is a shell script (busybox) run as root; there is a user `user` (4242) and one `service` (990).
//! Files that the script leaves in `/spile/out` are handed back, with the kernel log as `dmesg`.
//!
//!     let mut guest = Guest::new(Kernel::newest()?);
//!     guest.script("uname -r; insmod /root/x.ko").copy("target/x.ko", "/root/x.ko")?;
//!     let outcome = guest.start(Streams::inherit())?.wait()?;
//!     assert_eq!(outcome.end, End::Exited(0));

#![warn(missing_docs)]

mod acceleration;
mod choice;
mod cpio;
mod dependencies;
mod error;
mod initramfs;
mod kernel;
mod libraries;
mod machine;
mod qemu;
mod session;
mod streams;

pub use acceleration::Acceleration;
pub use error::Error;
pub use kernel::{Kernel, compare_releases, module_name};
pub use machine::{BOOT, End, Guest, Interrupter, Outcome, Running};
pub use session::{Ended, Session, TARGET_NOT_LOADED};
pub use streams::Streams;
