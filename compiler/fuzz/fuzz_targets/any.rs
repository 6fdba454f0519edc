// SPDX-License-Identifier: GPL-2.0-or-later

//! Any of the targets under libFuzzer: `$SPILE_FUZZ_TARGET` names it.

#![no_main]

#[path = "../targets/mod.rs"]
#[allow(dead_code, reason = "not every user of the targets calls all of it")]
mod targets;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let name = std::env::var("SPILE_FUZZ_TARGET").unwrap_or_else(|_| "dwarf".into());
    let target = targets::TARGETS.iter().find(|target| target.name == name);
    (target.expect("SPILE_FUZZ_TARGET names no target").run)(bytes);
});
