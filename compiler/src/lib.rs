// SPDX-License-Identifier: GPL-2.0-or-later

//! spile: from a SystemTap script to a loadable kernel module. See ARCHITECTURE.md for the passes, and for the crates that
//! they are in.

pub mod cli;
pub mod driver;
pub mod peer;
