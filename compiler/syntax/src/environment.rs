// SPDX-License-Identifier: GPL-2.0-or-later

//! Facts that a script can query by `%( %)` conditionals and `$1`, gathered by the driver.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

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
    pub config: Configuration,
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

/// A kernel's configuration, which is read when a condition asks for an option: few scripts do.
#[derive(Clone, Default)]
pub struct Configuration(Option<Arc<Unread>>);

struct Unread {
    read: Box<dyn Fn() -> HashMap<String, String> + Send + Sync>,
    options: OnceLock<HashMap<String, String>>,
}

impl Configuration {
    /// What `read` returns, which is called at most once.
    pub fn read_by(read: impl Fn() -> HashMap<String, String> + Send + Sync + 'static) -> Configuration {
        Configuration(Some(Arc::new(Unread { read: Box::new(read), options: OnceLock::new() })))
    }

    /// The value of an option that is set.
    pub fn get(&self, name: &str) -> Option<&String> {
        self.0.as_ref().and_then(|unread| unread.options.get_or_init(&unread.read).get(name))
    }
}

impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Configuration")
    }
}

impl Environment {
    /// The release up to the first `-`.
    pub fn kernel_version(&self) -> &str {
        self.kernel_release.split('-').next().unwrap_or("")
    }
}
