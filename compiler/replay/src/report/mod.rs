// SPDX-License-Identifier: GPL-2.0-or-later

//! `spile report`: what a recording holds as pictures and tables, on a page for browsers ([`page`]) or in a terminal
//! ([`terminal`]).

mod chart;
mod collect;
mod command;
mod flame;
mod markup;
mod page;
mod terminal;

pub(crate) use chart::short;
pub(crate) use collect::{Cell, Collected, cell};
pub use command::main;
#[cfg(test)]
pub(crate) use command::of_bytes;
pub(crate) use page::page;
