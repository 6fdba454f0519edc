// SPDX-License-Identifier: GPL-2.0-or-later

//! What is asked of one kernel without compiling: where a script's probe points and variables are ([`resolve`]), which
//! lines of a function can be probed ([`lines`]), and what there is to name in a probe point ([`names`]).

pub mod lines;
mod location;
pub mod names;
pub mod resolve;

use crate::probe::{Site, TypedLocation};
use crate::program::Registers;

/// Where a context variable is at a site, in words: `%rdi`, `[%rdi+0x18]`.
pub fn place(site: &Site, found: &TypedLocation) -> String {
    location::text(&found.location, site.attachment.mechanism.registers == Registers::Arguments)
}
