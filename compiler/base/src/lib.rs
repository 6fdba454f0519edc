// SPDX-License-Identifier: GPL-2.0-or-later

//! What several layers of the compiler need of the machine: what is kept from run to run, the directory of one run, and
//! wildcards. Knows nothing of scripts.

#![warn(missing_docs)]

pub mod cache;
pub mod glob;
pub mod scratch;
