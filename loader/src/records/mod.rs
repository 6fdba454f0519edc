// SPDX-License-Identifier: GPL-2.0-or-later

//! Decodes what a module writes into its rings, from bytes to text.

pub mod format;
pub mod histogram;
pub mod livepatch;
pub mod merge;
pub mod payload;
pub mod pretty;
pub mod quick;
pub mod record;
pub mod recording;
pub mod ring;
pub mod symbol;
pub mod text;
pub mod user;
pub mod values;
