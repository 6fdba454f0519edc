// SPDX-License-Identifier: GPL-2.0-or-later

//! The command line: stap's options, and what is printed around the passes.

mod accepted;
pub mod cache;
pub mod clock;
pub mod describe;
pub mod example;
pub mod globals;
pub mod limits;
pub mod options;
pub mod places;
pub mod rc;
mod refused;
pub mod relevant;
pub mod report;
pub mod version;
