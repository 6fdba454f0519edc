// SPDX-License-Identifier: GPL-2.0-or-later

//! Queries of one kernel without compilation: where a script's probe points and variables are ([`resolve`]), and which
//! lines of a function can be probed ([`lines`]).

pub mod lines;
mod location;
pub mod resolve;
