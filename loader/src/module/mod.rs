// SPDX-License-Identifier: GPL-2.0-or-later

//! A module: its file, its device, its way into the kernel and out of it.

pub mod device;
pub mod file;
pub mod gate;
pub mod load;
pub mod setting;
