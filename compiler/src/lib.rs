// SPDX-License-Identifier: GPL-2.0-or-later

//! spile: from a SystemTap script to a loadable kernel module. See ARCHITECTURE.md for the passes, and for the crates that
//! they are in.
//!
//! `driver` reads the command line (`cli`) and executes it (`command`), by the passes (`passes`) on a kernel (`target`);
//! `session` is the state of a run, and `reporter` prints.

// They panic if nobody reads: spile_abi::say.
#![warn(clippy::print_stderr, clippy::print_stdout)]

pub mod cli;
mod command;
pub mod driver;
mod file_size;
mod mapped_files;
mod outcome;
mod own_process;
mod passes;
pub mod peer;
mod reporter;
mod session;
/// A stack that is large enough.
pub mod stack;
mod target;

/// What signals mean for all commands: one that ends the run removes what it has not finished; a limit for files and a file that
/// becomes shorter are errors.
pub fn catch_signals() {
    spile_base::unfinished::remove_at_signals();
    file_size::be_error();
    mapped_files::may_shrink();
}
