// SPDX-License-Identifier: GPL-2.0-or-later

//! Who may do what, what is refused before any harm, and what runs with which rights.

pub mod approved;
pub mod certificate;
pub mod check;
pub mod detached;
pub mod filter;
pub mod guard;
pub mod image;
pub mod landlock;
pub mod limits;
pub mod loaded;
pub mod message;
pub mod privilege;
pub mod rights;
pub mod server;
pub mod trust;
