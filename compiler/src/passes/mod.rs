// SPDX-License-Identifier: GPL-2.0-or-later

//! The passes, a file each: 1 parse, 2 elaborate, 3 translate, 4 compile; and `module`, which keeps what pass 4 made in the
//! cache and gives it a name. Each prints its own diagnostics and fails after an error.

pub mod compile;
pub mod elaborate;
mod headers;
pub mod module;
pub mod parse;
pub mod translate;
