// SPDX-License-Identifier: GPL-2.0-or-later

//! The passes, one file each: 1 parse, 2 elaborate, 3 translate, 4 compile; `module`, which stores the result of pass 4 in the
//! cache and names it; and `debug_info`, which writes what debuggers need of it. Each prints its own diagnostics and fails after an
//! error.

pub mod compile;
pub mod debug_info;
pub mod elaborate;
mod headers;
pub mod module;
pub mod parse;
pub mod translate;
