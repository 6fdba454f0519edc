// SPDX-License-Identifier: GPL-2.0-or-later

//! `spile top`: a session in the terminal while it runs. Another process runs it and writes a recording into a pipe; [`globals`]
//! makes it print its globals; [`state`] is what is known of it, [`view`] draws that.

mod command;
mod globals;
mod state;
mod view;

pub use command::main;

/// In the environment of the process that runs the session in a guest or on another host: commands for it come by standard
/// input.
pub const COMMANDS: &str = "SPILE_SESSION_COMMANDS";
