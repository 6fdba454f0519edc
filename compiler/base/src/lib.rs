// SPDX-License-Identifier: GPL-2.0-or-later

//! Services for several layers of the compiler: the cache, the scratch directory of a run, bounded reading of files and of none but
//! regular ones, progress lines, wildcards, programs that do not outlive the run or run in its place, the program of a command, and
//! what a signal that ends it removes. Independent of scripts.

pub mod cache;
pub mod command;
pub mod glob;
pub mod passed_on;
pub mod programs;
pub mod progress;
pub mod read;
pub mod regular;
pub mod scratch;
pub mod unfinished;
