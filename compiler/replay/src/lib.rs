// SPDX-License-Identifier: GPL-2.0-or-later

//! `spile replay` and `spile report`: recordings (`spile --record FILE`) as text, as data of other programs, as pictures.
//!
//! [`read`] turns a recording into a sequence of [`event::Event`]s, [`filter`] chooses among them, and a file per format
//! writes them: [`text`], [`json`], [`csv`], [`folded`], [`perfetto`], [`pcapng`]. A recording may come from anyone:
//! nothing in it is trusted.

#![warn(clippy::print_stderr, clippy::print_stdout)]

mod command;
mod counters;
mod csv;
mod event;
mod filter;
mod folded;
#[cfg(test)]
mod hostile;
mod json;
mod live;
mod object;
mod pcapng;
mod perfetto;
mod quote;
mod read;
pub mod report;
mod text;
pub mod top;

pub use command::{Format, main, mistake};
pub use live::Live;

/// The first bytes of a recording.
pub fn is_recording(bytes: &[u8]) -> bool {
    bytes.starts_with(spilerun::records::recording::MAGIC)
}
