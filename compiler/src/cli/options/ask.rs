// SPDX-License-Identifier: GPL-2.0-or-later

//! Questions about probe points.

use std::path::PathBuf;

use clap::Args;

/// Questions about probe points.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Queries (nothing is compiled)")]
pub struct AskOptions {
    /// List the probe points that match PROBE; may be repeated
    #[arg(short = 'l', value_name = "PROBE", conflicts_with_all = ["text", "more", "variables"])]
    pub list: Vec<String>,

    /// List the probe points that match PROBE, with their variables; may be repeated
    #[arg(short = 'L', value_name = "PROBE", conflicts_with_all = ["text", "more"])]
    pub variables: Vec<String>,

    /// List the source lines of functions that match PROBE; marks lines that can be probed, and shows the variables there
    #[arg(long, value_name = "PROBE", conflicts_with_all = ["text", "more", "list", "variables", "last_pass"])]
    pub list_lines: Vec<String>,

    /// With --list-lines: directory of the source text of the kernel or of a module; may be repeated
    #[arg(long, value_name = "DIR", requires = "list_lines")]
    pub source: Vec<PathBuf>,

    /// Show the location of each probe point of the script and of its variables
    #[arg(long, value_name = "FORM", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "table", conflicts_with_all = ["list", "variables", "list_lines"])]
    pub resolve: Option<OutputFormat>,

    /// Compare the script's probe points and variables on the kernels of --kernel; exit status 1: there are differences that matter
    #[arg(long, value_name = "FORM", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "table", requires = "kernels", conflicts_with_all = ["list", "variables", "list_lines", "resolve"])]
    pub check: Option<OutputFormat>,

    /// Kernel for --check, compared with the first: a release, or the path of a build tree, of a system's root directory or of an index; may be repeated
    #[arg(long = "kernel", value_name = "KERNEL", requires = "check")]
    pub kernels: Vec<String>,

    /// Write the debug information that -l, -L and --check need, of the kernel, of the modules named, and of the programs and libraries whose paths are given, to FILE
    #[arg(long, value_name = "FILE", conflicts_with_all = ["text", "list", "variables", "list_lines", "resolve", "check", "index"])]
    pub export_index: Option<PathBuf>,

    /// Compile the runtime and make the tables of debug information ahead, which the first script for a kernel otherwise waits for:
    /// for the releases named, that of -r, or the running kernel. What is ready already is left as it is
    #[arg(long, conflicts_with_all = ["text", "list", "variables", "list_lines", "resolve", "check", "index", "export_index", "last_pass"])]
    pub prepare: bool,

    /// List the kinds of probe points
    #[arg(long, conflicts_with = "text")]
    pub dump_probe_types: bool,

    /// List the probe aliases of the library
    #[arg(long, conflicts_with = "text")]
    pub dump_probe_aliases: bool,

    /// List the compile servers: there are none
    #[arg(long, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "", hide = true)]
    pub list_servers: Option<String>,

    /// List the functions that scripts may call
    #[arg(long, conflicts_with = "text")]
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
            || self.prepare
            || self.dumps_library()
    }

    /// The options given that list what there is, of which stap takes one, without a script.
    pub fn questions(&self) -> Vec<&'static str> {
        let given = [
            ("-l", !self.list.is_empty()),
            ("-L", !self.variables.is_empty()),
            ("--dump-probe-types", self.dump_probe_types),
            ("--dump-probe-aliases", self.dump_probe_aliases),
            ("--dump-functions", self.dump_functions),
        ];
        given.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect()
    }

    /// What the library offers is asked for, not a script.
    pub fn dumps_library(&self) -> bool {
        self.dump_probe_aliases || self.dump_functions
    }
}

/// How an answer is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputFormat {
    /// A table
    Table,
    /// JSON
    Json,
}
