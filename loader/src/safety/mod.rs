// SPDX-License-Identifier: GPL-2.0-or-later

//! Who may do what, what is refused before any harm, and what runs with which rights.

pub mod certificate;
pub mod check;
pub mod detached;
pub mod limits;
pub mod loaded;
pub mod privilege;
pub mod trust;
