// SPDX-License-Identifier: GPL-2.0-or-later

//! What a script may ask in `%( %)` conditionals and by `$1`: the answers, gathered by the driver.

use std::collections::HashMap;

/// The words that may stand on the left side of a condition, `CONFIG_X` apart.
pub(crate) const CONDITION_WORDS: [&str; 7] =
    ["kernel_v", "kernel_vr", "arch", "systemtap_v", "systemtap_privilege", "guru_mode", "runtime"];

/// The facts about target and command line that are known before a script is parsed.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// As `uname -r` prints it there. `kernel_vr` is all of it, `kernel_v` what stands before the first `-`.
    pub kernel_release: String,
    /// The kernel's word: x86_64, i386, arm64, powerpc, s390, ...
    pub arch: String,
    /// Build configuration of the kernel: `CONFIG_X` to `y`, `m`, a number or a string without quotes.
    pub config: HashMap<String, String>,
    /// `-g`.
    pub guru: bool,
    /// `--compatible`: the version of SystemTap whose language is spoken, `5.2`. Also `systemtap_v`.
    pub compatible: String,
    /// What stands behind the script on the command line.
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
