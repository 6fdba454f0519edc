// SPDX-License-Identifier: GPL-2.0-or-later

//! Questions about probe points.

use std::path::PathBuf;

use clap::Args;

/// Questions about probe points.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Questions, for which nothing is compiled")]
pub struct AskOptions {
    /// List probe points that match; may be given more than once
    #[arg(short = 'l', value_name = "PROBE", conflicts_with_all = ["text", "more", "variables", "last_pass"])]
    pub list: Vec<String>,

    /// List probe points that match, with their variables; may be given more than once
    #[arg(short = 'L', value_name = "PROBE", conflicts_with_all = ["text", "more", "last_pass"])]
    pub variables: Vec<String>,

    /// List the source lines of functions that match, those that can be probed marked, with the variables readable there
    #[arg(long, value_name = "PROBE", conflicts_with_all = ["text", "more", "list", "variables", "last_pass"])]
    pub list_lines: Vec<String>,

    /// With --list-lines: a directory that has the source text, of the kernel or of a module; may be given more than once
    #[arg(long, value_name = "DIR", requires = "list_lines")]
    pub source: Vec<PathBuf>,

    /// Say where each probe point of the script is, and each of its variables
    #[arg(long, value_name = "FORM", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "table", conflicts_with_all = ["list", "variables", "list_lines"])]
    pub resolve: Option<Answer>,

    /// Compare what the script's probe points and variables are on the kernels of --kernel; status 1: not all is well
    #[arg(long, value_name = "FORM", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "table", requires = "kernels", conflicts_with_all = ["list", "variables", "list_lines", "resolve"])]
    pub check: Option<Answer>,

    /// A kernel to compare with the first: a release, the path of a build tree, of a directory that holds a system's files, or of an index
    #[arg(long = "kernel", value_name = "KERNEL", requires = "check")]
    pub kernels: Vec<String>,

    /// Write what -l, -L and --check need of the kernel's debug information to a file, and of the modules that are named
    #[arg(long, value_name = "FILE", conflicts_with_all = ["text", "list", "variables", "list_lines", "resolve", "check", "index"])]
    pub export_index: Option<PathBuf>,

    /// List the kinds of probe points
    #[arg(long)]
    pub dump_probe_types: bool,

    /// List the names that the library gives to probe points
    #[arg(long)]
    pub dump_probe_aliases: bool,

    /// List the functions that scripts may call
    #[arg(long)]
    pub dump_functions: bool,
}

impl AskOptions {
    /// What `-l` or `-L` ask for, as one list of probe points.
    pub fn listing(&self) -> Option<String> {
        let points = if self.list.is_empty() { &self.variables } else { &self.list };
        (!points.is_empty()).then(|| points.join(", "))
    }

    /// Something is asked about probe points; nothing is compiled.
    pub fn only_asks(&self) -> bool {
        self.listing().is_some()
            || !self.list_lines.is_empty()
            || self.resolve.is_some()
            || self.check.is_some()
            || self.export_index.is_some()
            || self.dumps_library()
    }

    /// What the library offers is asked for, not a script.
    pub fn dumps_library(&self) -> bool {
        self.dump_probe_aliases || self.dump_functions
    }
}

/// How an answer is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Answer {
    Table,
    Json,
}
