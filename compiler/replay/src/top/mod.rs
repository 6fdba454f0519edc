// SPDX-License-Identifier: GPL-2.0-or-later

//! `spile top`: a session in the terminal while it runs. Another process runs it and writes a recording into a pipe; [`globals`]
//! makes it print its globals; [`state`] is what is known of it, [`view`] draws that.

mod command;
mod globals;
mod state;
mod view;

pub use command::{COMMANDS, main};
