// SPDX-License-Identifier: GPL-2.0-or-later

//! Permissions, checks before a module is loaded, and the processes with root's rights.

pub mod approved;
pub mod certificate;
pub mod check;
pub mod crowd;
pub mod detached;
pub mod filter;
pub mod guard;
pub mod image;
pub mod landlock;
pub mod limits;
pub mod loaded;
pub mod message;
pub mod ownership;
pub mod privilege;
pub mod rank;
pub mod rights;
pub mod server;
pub mod trust;
