// SPDX-License-Identifier: GPL-2.0-or-later

//! Services for several layers of the compiler: the cache, the scratch directory of a run, bounded reading of files and of none but regular ones,
//! progress lines, and wildcards. Independent of scripts.

pub mod cache;
pub mod glob;
pub mod progress;
pub mod read;
pub mod regular;
pub mod scratch;
