// SPDX-License-Identifier: GPL-2.0-or-later

//! Facts that a script can query by `%( %)` conditionals and `$1`, gathered by the driver.

use std::collections::HashMap;

/// The words allowed on the left side of a condition, besides `CONFIG_X`.
pub(crate) const CONDITION_WORDS: [&str; 7] =
    ["kernel_v", "kernel_vr", "arch", "systemtap_v", "systemtap_privilege", "guru_mode", "runtime"];

/// Facts about the target and the command line, known before a script is parsed.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// The target's `uname -r`. `kernel_vr` is all of it, `kernel_v` the part before the first `-`.
    pub kernel_release: String,
    /// The kernel's name for it: x86_64, i386, arm64, powerpc, s390, ...
    pub arch: String,
    /// Build configuration of the kernel: `CONFIG_X` to `y`, `m`, a number or a string without quotes.
    pub config: HashMap<String, String>,
    /// `-g`.
    pub guru: bool,
    /// `--compatible`: the SystemTap version whose language is accepted, `5.2`. Also `systemtap_v`.
    pub compatible: String,
    /// The script's arguments on the command line.
    pub arguments: Vec<String>,
    /// `stapdev`, `stapsys` or `stapusr`.
    pub privilege: String,
    /// `kernel`.
    pub runtime: String,
}

impl Environment {
    /// The release up to the first `-`.
    pub fn kernel_version(&self) -> &str {
        self.kernel_release.split('-').next().unwrap_or("")
    }
}
