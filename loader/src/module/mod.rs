// SPDX-License-Identifier: GPL-2.0-or-later

//! A module: its file, its device, loading and removing it.

pub mod device;
pub mod file;
pub mod gate;
pub mod load;
pub mod lock;
pub mod setting;
