// SPDX-License-Identifier: GPL-2.0-or-later

//! Options, as `stap` has them, with a few of our own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{ArgAction, CommandFactory, FromArgMatches, Parser};

use spile_base::cache::Settings;
use spile_core::plan::Limits;
use spile_kbuild::{BuildError, Keys};
use spile_syntax::LANGUAGE_VERSION;

use super::{accepted, refused};

/// Compiles SystemTap scripts to kernel modules and runs them.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "spile",
    disable_version_flag = true,
    override_usage = "spile [OPTIONS] FILE [ARGUMENT]...\n       spile [OPTIONS] -e SCRIPT [ARGUMENT]...\n       spile [OPTIONS] -l PROBE | -L PROBE",
    after_help = "Options may also stand in the file rc of $SYSTEMTAP_DIR or ~/.systemtap, a line for each set of them.\n\
SYSTEMTAP_TAPSET names a library as --tapset does, SYSTEMTAP_RUNTIME a runtime as -R does (SystemTap's own is not used), TMPDIR the \
place for temporary files.\n\
Exit status: 0 the script ran and ended well; 1 the command line is wrong, the script has an error, could not be compiled, or \
ended by a run-time error; others are spilerun's, see spilerun --help.\n\
What the script prints goes to standard output (or -o); all else goes to standard error."
)]
pub struct Options {
    /// The script: a file, or - for standard input; then its arguments ($1, @1, ...), behind -- where they begin with -
    #[arg(value_name = "FILE", allow_negative_numbers = true)]
    pub words: Vec<OsString>,

    /// The script's text; of several, all together
    #[arg(short = 'e', value_name = "SCRIPT", allow_hyphen_values = true)]
    pub text: Vec<String>,

    /// Further script text, beside the script
    #[arg(short = 'E', value_name = "SCRIPT", allow_hyphen_values = true)]
    pub more: Vec<String>,

    /// Stop after pass 1 (parse), 2 (elaborate), 3 (translate), 4 (compile) or 5 (run)
    #[arg(short = 'p', value_name = "PASS", value_parser = clap::value_parser!(u8).range(1..=5))]
    pub last_pass: Option<u8>,

    /// Say more; again for more
    #[arg(short = 'v', action = ArgAction::Count)]
    pub verbose: u8,

    /// Say more in single passes: a digit for each of the five
    #[arg(long = "vp", value_name = "DIGITS", value_parser = pass_digits)]
    pub verbose_passes: Option<String>,

    /// Guru mode: the script may write memory and hold C
    #[arg(short = 'g')]
    pub guru: bool,

    /// Name of the module; with -p4 the file NAME.ko is left in the current directory
    #[arg(short = 'm', value_name = "NAME")]
    pub module: Option<String>,

    /// Kernel release to compile for, or the path of its build tree
    #[arg(short = 'r', value_name = "RELEASE")]
    pub release: Option<String>,

    /// Write the script's output there
    #[arg(short = 'o', value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// With -o: go to the next file (FILE.0, FILE.1, ...) after SIZE MB, and keep the last N
    #[arg(short = 'S', value_name = "SIZE[,N]", conflicts_with = "guest")]
    pub rotate: Option<String>,

    /// Write each CPU's output to a file of its own, FILE_cpuN (without -o: stpd_cpuN)
    #[arg(short = 'b', conflicts_with = "guest")]
    pub bulk: bool,

    /// Load the module, start, and leave it running: spilerun -A NAME reads what it prints, -d NAME ends it; with -o, go on in the background and print the process's number
    #[arg(short = 'F', conflicts_with = "guest")]
    pub detach: bool,

    /// Leave the module in the current directory, as NAME.ko, when it is run too
    #[arg(long)]
    pub save_module: bool,

    /// Run the command, target() is its process, and end with it
    #[arg(short = 'c', value_name = "CMD", conflicts_with = "pid")]
    pub command: Option<String>,

    /// target() is this process; end when it ends
    #[arg(short = 'x', value_name = "PID")]
    pub pid: Option<i32>,

    /// End after so many seconds
    #[arg(short = 'T', value_name = "SECONDS")]
    pub seconds: Option<f64>,

    /// Size of the buffers, in MB for each CPU
    #[arg(short = 's', value_name = "MB", value_parser = clap::value_parser!(u32).range(1..=4095))]
    pub buffer: Option<u32>,

    /// Keep the temporary directory, and say where it is
    #[arg(short = 'k')]
    pub keep: bool,

    /// Set a limit: MAXACTION, MAXERRORS, MAXMAPENTRIES, MAXNESTING, MAXSKIPPED, MAXSTRINGLEN, MAXTRYLOCK and more; or define NAME for embedded C
    #[arg(short = 'D', value_name = "NAME=VALUE")]
    pub defines: Vec<String>,

    /// A further directory of library scripts
    #[arg(short = 'I', value_name = "DIR")]
    pub library: Vec<PathBuf>,

    /// A module's file, beside the kernel's own modules: module("NAME") finds it
    #[arg(short = 'd', value_name = "FILE")]
    pub objects: Vec<PathBuf>,

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

    /// Write what -l, -L and --check need of the kernel's debug information to a file, and of the modules that are named
    #[arg(long, value_name = "FILE", conflicts_with_all = ["text", "list", "variables", "list_lines", "resolve", "check", "index"])]
    pub export_index: Option<PathBuf>,

    /// Know the kernel by such a file alone: for -l, -L, --list-lines, --resolve and -p2; --kernel takes one too
    #[arg(long, value_name = "FILE", conflicts_with_all = ["release", "sysroot", "check"])]
    pub index: Option<PathBuf>,

    /// A kernel to compare with the first: a release, the path of a build tree, of a directory that holds a system's files, or of an index
    #[arg(long = "kernel", value_name = "KERNEL", requires = "check")]
    pub kernels: Vec<String>,

    /// Unoptimised: what nothing uses is checked and compiled too
    #[arg(short = 'u')]
    pub unoptimised: bool,

    /// An account of every probe when the script ends
    #[arg(short = 't')]
    pub timing: bool,

    /// The same, as a table or as json
    #[arg(long, value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "table", value_parser = ["table", "json"])]
    pub stats: Option<String>,

    /// Count the hits of all probes for a second, say what the script would cost, and do not run it if that is more than PERCENT
    /// of the CPUs' time; with ",sample" handle one in so many hits then
    #[arg(long, value_name = "PERCENT[,sample]")]
    pub budget: Option<String>,

    /// Initial value of a global variable
    #[arg(short = 'G', value_name = "NAME=VALUE", value_parser = assignment)]
    pub globals: Vec<(String, String)>,

    /// A directive for the kernel's build, or an option of make's: CONFIG_DEBUG_INFO=y, CROSS_COMPILE=prefix-
    #[arg(short = 'B', value_name = "NAME=VALUE", value_parser = make_word, allow_hyphen_values = true)]
    pub make: Vec<String>,

    /// An entry of the module's own information, as modinfo(8) shows it
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub modinfo: Vec<(String, String)>,

    /// Architecture to compile for: this machine's
    #[arg(short = 'a', value_name = "ARCH")]
    pub architecture: Option<String>,

    /// Use the kernel half of spile from this directory
    #[arg(short = 'R', value_name = "DIR")]
    pub runtime: Option<PathBuf>,

    /// Where the script runs: in the kernel
    #[arg(long = "runtime", value_name = "MODE", value_parser = ["kernel", "dyninst", "bpf"])]
    pub mode: Option<String>,

    /// Speak the language as SystemTap VERSION did
    #[arg(long, value_name = "VERSION", value_parser = language_version)]
    pub compatible: Option<String>,

    /// Whose form argstr of syscall.* has: SystemTap's library or strace
    #[arg(long, value_name = "FORM", value_parser = ["systemtap", "strace"], default_value = "systemtap")]
    pub syscall_style: String,

    /// Run-time errors end the handler in silence, not the script
    #[arg(long)]
    pub suppress_handler_errors: bool,

    /// No limit to the time that handlers take, and 2147483647 statements in one run of a handler (guru mode)
    #[arg(long, requires = "guru")]
    pub suppress_time_limits: bool,

    /// A context variable that is not there is 0
    #[arg(long)]
    pub skip_badvars: bool,

    /// Symbols of all modules, for backtraces: the kernel's own table has them, so this is always so
    #[arg(long)]
    pub all_modules: bool,

    /// The rights that the script needs on the host: stapdev
    #[arg(long, value_name = "LEVEL", value_parser = ["stapdev", "stapsys", "stapusr"], num_args = 0..=1, require_equals = true, default_missing_value = "stapdev")]
    pub privilege: Option<String>,

    /// Look for parameters behind a function's prologue: never; auto and always are the same here
    #[arg(long, value_name = "WHEN", value_parser = ["never", "auto", "always"], num_args = 0..=1, require_equals = true, default_missing_value = "always")]
    pub prologue_searching: Option<String>,

    /// Fetch debug information from the servers in $DEBUGINFOD_URLS: yes, if there are any, or no
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "yes")]
    pub download_debuginfo: Option<String>,

    /// The directory to work in, kept
    #[arg(long, value_name = "DIR")]
    pub tmpdir: Option<PathBuf>,

    /// Bytes of memory that compiling may take
    #[arg(long, value_name = "BYTES")]
    pub rlimit_as: Option<u64>,

    /// Seconds of processor time that compiling may take
    #[arg(long, value_name = "SECONDS")]
    pub rlimit_cpu: Option<u64>,

    /// Processes of this user while compiling
    #[arg(long, value_name = "NUMBER")]
    pub rlimit_nproc: Option<u64>,

    /// Bytes of stack while compiling
    #[arg(long, value_name = "BYTES")]
    pub rlimit_stack: Option<u64>,

    /// Bytes of the largest file that compiling may write
    #[arg(long, value_name = "BYTES")]
    pub rlimit_fsize: Option<u64>,

    /// No warnings
    #[arg(short = 'w')]
    pub no_warnings: bool,

    /// Warnings are errors
    #[arg(short = 'W')]
    pub strict: bool,

    /// Do not show globals at the end that are written and never read
    #[arg(long)]
    pub no_global_var_display: bool,

    /// Colours in messages
    #[arg(long, alias = "colour", value_name = "WHEN", value_parser = ["auto", "always", "never"], default_value = "auto", default_missing_value = "auto", num_args = 0..=1, require_equals = true)]
    pub color: String,

    /// Messages as text, or as one JSON object a line
    #[arg(long, value_name = "FORM", value_enum, default_value = "text")]
    pub diagnostics: Form,

    /// What the code of a message means
    #[arg(long, value_name = "CODE")]
    pub explain: Option<String>,

    /// Print the script with its lines indented and its blanks put right
    #[arg(long)]
    pub fmt: bool,

    /// Print what a shell needs to complete these options
    #[arg(long, value_name = "SHELL", value_enum)]
    pub completion: Option<clap_complete::Shell>,

    /// Print the manual page: man -l <(spile --man-page)
    #[arg(long)]
    pub man_page: bool,

    /// Run in a throw-away guest of an installed kernel; a FILE.ko for a script says whether it loads, arms and leaves cleanly
    #[arg(long)]
    pub guest: bool,

    /// Say at the end where the time went
    #[arg(long, value_name = "FORM", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "table")]
    pub time_report: Option<super::report::Form>,

    /// Sign the module with the keys in a directory; without one, with the machine owner's key (MOK)
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, conflicts_with = "sign_key")]
    pub sign_module: Option<Option<PathBuf>>,

    /// Sign the module with this private key (PEM); its passphrase is in $KBUILD_SIGN_PIN
    #[arg(long, value_name = "FILE", requires = "sign_cert")]
    pub sign_key: Option<PathBuf>,

    /// The certificate of the key (X.509)
    #[arg(long, value_name = "FILE", requires = "sign_key")]
    pub sign_cert: Option<PathBuf>,

    /// Make the module by the kernel's own build alone, without the faster way learnt from it
    #[arg(long)]
    pub kbuild: bool,

    /// Look at what is kept from earlier runs, or remove it
    #[arg(long, value_name = "ACTION", value_enum)]
    pub cache: Option<super::cache::Action>,

    /// The same as --cache prune
    #[arg(long)]
    pub clean_cache: bool,

    /// Neither read nor write the cache
    #[arg(long)]
    pub disable_cache: bool,

    /// Write the cache, but do not read what is there
    #[arg(long)]
    pub poison_cache: bool,

    /// Use the library scripts from this directory
    #[arg(long, value_name = "DIR")]
    pub tapset: Option<PathBuf>,

    /// A directory that holds the target's files as / does
    #[arg(long, value_name = "DIR")]
    pub sysroot: Option<PathBuf>,

    /// Tell every SECONDS what became of every hit of every probe
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "1", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "detach")]
    pub monitor: Option<u32>,

    /// FILE is the name of an example that is installed: below $XDG_DATA_DIRS (/usr/share), systemtap/examples and spile/examples
    #[arg(long, conflicts_with_all = ["text", "list", "variables", "list_lines"])]
    pub example: bool,

    /// Compile for the kernel of that host and run the script there, by ssh(1) and its spilerun: [USER@]HOST or ssh://[USER@]HOST[:PORT]; may be given more than once
    #[arg(long, value_name = "HOST", conflicts_with_all = ["last_pass", "release", "guest", "rotate", "bulk", "detach", "index"])]
    pub remote: Vec<String>,

    /// With --remote: the host's number before each line
    #[arg(long, requires = "remote")]
    pub remote_prefix: bool,

    /// Where -p4 leaves the module.
    #[arg(long, value_name = "DIR", hide = true)]
    pub module_directory: Option<PathBuf>,

    /// List the kinds of probe points
    #[arg(long)]
    pub dump_probe_types: bool,

    /// List the names that the library gives to probe points
    #[arg(long)]
    pub dump_probe_aliases: bool,

    /// List the functions that scripts may call
    #[arg(long)]
    pub dump_functions: bool,

    /// Version
    #[arg(short = 'V', long)]
    pub version: bool,

    /// Called as `stap`: the program that others start and look for by that name.
    #[arg(skip)]
    pub as_stap: bool,

    /// What is told of options that are accepted and change nothing.
    #[arg(skip)]
    pub notes: Vec<String>,
}

/// How messages are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    Text,
    Json,
}

/// How an answer is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Answer {
    Table,
    Json,
}

/// Where the script's text comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Script {
    File(PathBuf),
    Stdin,
    Text(String),
}

/// The command as it is told and completed, with the options that are refused.
fn command() -> clap::Command {
    // The last of an option counts: the command line's, not that of the rc file.
    Options::command().args_override_self(true).args(refused::arguments()).args(accepted::arguments())
}

impl Options {
    /// From the words of a command line, the program's name first. The error prints itself: it is a mistake, or what is
    /// asked for by -h and -V.
    pub fn parse_words(words: Vec<OsString>) -> Result<Options, clap::Error> {
        let mut command = command();
        let as_stap = words.first().map(Path::new).and_then(Path::file_name).is_some_and(|name| name == "stap");
        let matches = command.try_get_matches_from_mut(words)?;
        if let Some(reason) = refused::reason(&matches) {
            return Err(command.error(clap::error::ErrorKind::ArgumentConflict, reason));
        }
        let mut options = Options::from_arg_matches(&matches)?;
        options.as_stap = as_stap;
        options.notes = accepted::notes(&matches);
        if options.prologue_searching.as_ref().is_some_and(|when| when == "always") {
            options.notes.push(format!("--prologue-searching=always: {}", accepted::PROLOGUE));
        }
        match options.unserved() {
            Some(reason) => Err(command.error(clap::error::ErrorKind::InvalidValue, reason)),
            None => Ok(options),
        }
    }

    /// Why a value that stap takes is refused here.
    fn unserved(&self) -> Option<String> {
        let machine = std::env::consts::ARCH;
        if let Some(given) = self.architecture.as_ref().filter(|given| *given != machine) {
            return Some(format!(
                "-a {given}: only {machine}, what this machine is, can be compiled for; compile on a {given} machine"
            ));
        }
        if let Some(mode) = self.mode.as_ref().filter(|mode| *mode != "kernel") {
            return Some(format!("--runtime={mode}: {}", refused::ONE_RUNTIME));
        }
        if self.privilege.as_ref().is_some_and(|level| level != "stapdev") {
            return Some(format!("--privilege: {}", refused::PRIVILEGE));
        }
        let asked = self.download_debuginfo.as_ref().is_some_and(|when| when != "no");
        if asked && std::env::var_os("DEBUGINFOD_URLS").is_none_or(|urls| urls.is_empty()) {
            return Some("--download-debuginfo: nobody to ask: set DEBUGINFOD_URLS to debuginfod servers, or install the kernel's debug information (linux-image-RELEASE-dbg, or kernel-debuginfo)".into());
        }
        None
    }

    /// How much pass `number` (1 to 5) says.
    pub fn verbosity(&self, number: usize) -> u8 {
        let digit =
            self.verbose_passes.as_ref().and_then(|digits| digits.as_bytes().get(number.checked_sub(1)?).copied());
        self.verbose.saturating_add(digit.map_or(0, |digit| digit.saturating_sub(b'0')))
    }

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

    /// The files of `-d`. A name without a file is a module of the kernel, or it: their symbols are always known.
    pub fn files(&self) -> Vec<PathBuf> {
        let named = |path: &&PathBuf| path.components().count() == 1 && !path.exists();
        self.objects.iter().filter(|path| !named(path)).cloned().collect()
    }

    /// The limits of `--rlimit-*`, with the option's name.
    pub fn resources(&self) -> Vec<(&'static str, nix::sys::resource::Resource, u64)> {
        use nix::sys::resource::Resource;
        [
            ("--rlimit-as", Resource::RLIMIT_AS, self.rlimit_as),
            ("--rlimit-cpu", Resource::RLIMIT_CPU, self.rlimit_cpu),
            ("--rlimit-nproc", Resource::RLIMIT_NPROC, self.rlimit_nproc),
            ("--rlimit-stack", Resource::RLIMIT_STACK, self.rlimit_stack),
            ("--rlimit-fsize", Resource::RLIMIT_FSIZE, self.rlimit_fsize),
        ]
        .into_iter()
        .filter_map(|(name, resource, value)| Some((name, resource, value?)))
        .collect()
    }

    /// The script and its arguments; None if there is none.
    pub fn script(&self) -> Option<(Script, Vec<String>)> {
        let mut words = self.words.iter();
        let script = match self.text.is_empty() {
            false => Script::Text(self.text.join("\n")),
            true => match words.next()? {
                word if word == "-" => Script::Stdin,
                word => Script::File(PathBuf::from(word)),
            },
        };
        Some((script, words.map(|word| word.to_string_lossy().into_owned()).collect()))
    }

    /// Those that are the loader's too, as its command line has them.
    pub fn loader_options(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        let mut pair = |name: &str, value: Option<OsString>| {
            if let Some(value) = value {
                arguments.push(name.into());
                arguments.push(value);
            }
        };
        pair("-o", self.output.clone().map(Into::into));
        pair("-S", self.rotate.clone().map(Into::into));
        pair("-c", self.command.clone().map(Into::into));
        pair("-x", self.pid.map(|pid| pid.to_string().into()));
        pair("-M", self.monitor.map(|seconds| seconds.to_string().into()));
        pair("-T", self.seconds.map(|seconds| seconds.to_string().into()));
        pair("--budget", self.budget.clone().map(Into::into));
        pair("-s", self.buffer.map(|buffer| buffer.to_string().into()));
        let account = self.verbosity(5).saturating_sub(1);
        arguments.extend(std::iter::repeat_n("-v".into(), usize::from(account)));
        let counts_only = self.limits().is_ok_and(|(limits, _)| limits.counts_only);
        if let Some(form) = self.stats.as_deref().or((self.timing || counts_only).then_some("table")) {
            arguments.push(format!("--stats={form}").into());
        }
        for (given, option) in [
            (self.no_warnings, "-w"),
            (self.bulk, "--bulk"),
            (self.detach && self.output.is_none(), "-L"),
            (self.detach && self.output.is_some(), "-D"),
        ] {
            arguments.extend(given.then(|| option.into()));
        }
        arguments
    }

    /// Limits after all `-D`, and what is defined for embedded C; the message says which one is wrong.
    pub fn limits(&self) -> Result<(Limits, Vec<(String, String)>), String> {
        let mut limits = Limits::default();
        if self.suppress_handler_errors {
            (limits.suppress_errors, limits.max_skipped) = (true, i32::MAX as u32);
        }
        if self.suppress_time_limits {
            (limits.no_overload, limits.max_actions) = (true, i32::MAX as u32);
        }
        let others = super::limits::read(&self.defines, &mut limits)?;
        Ok((limits, others))
    }

    /// How the cache is to be used.
    pub fn cache_settings(&self) -> Settings {
        let settings = Settings::from_environment();
        let directory = settings.directory.filter(|_| !self.disable_cache);
        Settings { directory, poisoned: self.poison_cache, ..settings }
    }

    /// What to sign the module with; None: it is not signed.
    pub fn signing_keys(&self) -> Result<Option<Keys>, BuildError> {
        match (&self.sign_module, &self.sign_key, &self.sign_cert) {
            (Some(directory), _, _) => Keys::find(directory.as_deref()).map(Some),
            (None, Some(key), Some(certificate)) => {
                Ok(Some(Keys { key: key.clone(), certificate: certificate.clone() }))
            }
            _ => Ok(None),
        }
    }

    /// Whether messages have colours, for a standard error that is a terminal or not.
    pub fn colored(&self, terminal: bool) -> bool {
        match self.color.as_str() {
            "always" => true,
            "never" => false,
            _ => terminal && std::env::var_os("NO_COLOR").is_none(),
        }
    }
}

/// `NAME=VALUE`, where the name is an identifier.
fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a `=` and a value are missing")?;
    let starts = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    if !starts || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Err(format!("{name:?} is no name: letters, digits and _, and no digit first"));
    }
    Ok((name.to_string(), value.to_string()))
}

/// What make takes on its command line, but for targets: they are the build's own.
fn make_word(text: &str) -> Result<String, String> {
    match text.starts_with('-') {
        true => Ok(text.to_string()),
        false => assignment(text).map(|_| text.to_string()),
    }
}

/// Five digits at the most.
fn pass_digits(text: &str) -> Result<String, String> {
    let fits = !text.is_empty() && text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    fits.then(|| text.to_string()).ok_or("a digit for each pass, five at the most: --vp 02".to_string())
}

/// A version up to the one that is spoken here.
fn language_version(text: &str) -> Result<String, String> {
    let parts = |text: &str| text.split('.').map(|part| part.parse::<u32>().ok()).collect::<Option<Vec<u32>>>();
    match (parts(text), parts(LANGUAGE_VERSION)) {
        (None, _) => Err("numbers with dots between them: --compatible=4.8".into()),
        (Some(asked), Some(spoken)) if asked > spoken => {
            Err(format!("the language spoken here is that of SystemTap {LANGUAGE_VERSION}"))
        }
        _ => Ok(text.to_string()),
    }
}

/// Checks a module's name: letters, digits and `_`, not too long for the kernel.
pub fn module_name(name: &str) -> Result<String, String> {
    let name = name.strip_suffix(".ko").unwrap_or(name);
    let fits =
        !name.is_empty() && name.len() <= 55 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let starts = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    if fits && starts {
        Ok(name.to_string())
    } else {
        Err(format!("-m {name}: a module's name has letters, digits and _, 55 at the most, and no digit first"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Options {
        try_parse(words).unwrap()
    }

    fn try_parse(words: &[&str]) -> Result<Options, clap::Error> {
        Options::parse_words(std::iter::once(&"spile").chain(words).map(OsString::from).collect())
    }

    fn refusal(words: &[&str]) -> String {
        try_parse(words).unwrap_err().to_string()
    }

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn words_after_the_script_are_its_arguments() {
        let options = parse(&["-g", "x.stp", "1", "--", "-v", "2"]);
        let (script, arguments) = options.script().unwrap();
        assert_eq!(script, Script::File("x.stp".into()));
        assert_eq!(arguments, ["1", "-v", "2"]);
        assert_eq!(options.verbose, 0);
        // Options may stand behind it, as with stap; so may numbers below 0.
        let options = parse(&["x.stp", "-1", "-x", "7", "-v"]);
        assert_eq!(options.script().unwrap().1, ["-1"]);
        assert_eq!((options.pid, options.verbose), (Some(7), 1));
        let (script, arguments) = parse(&["-e", "probe begin {}", "7"]).script().unwrap();
        assert_eq!(script, Script::Text("probe begin {}".into()));
        assert_eq!(arguments, ["7"]);
    }

    #[test]
    fn stap_spellings() {
        let options = parse(&["-vvp4", "-mfoo", "-DMAXERRORS=3", "-D", "MAXSTRINGLEN=1024", "x.stp"]);
        assert_eq!((options.verbose, options.last_pass), (2, Some(4)));
        let (limits, _) = options.limits().unwrap();
        assert_eq!((limits.max_errors, limits.string_bytes), (3, 1024));
        assert!(parse(&["-D", "MAXSTRINGLEN=1", "x"]).limits().is_err());
        assert_eq!(
            parse(&["-D", "MAXFOO=1", "-DBAR", "x"]).limits().unwrap().1,
            [("MAXFOO".into(), "1".into()), ("BAR".into(), "1".into())]
        );
    }

    #[test]
    fn short_options_stand_together() {
        let options = parse(&["-gp4", "-kuwtvv", "x.stp"]);
        assert!(options.guru && options.keep && options.unoptimised && options.no_warnings && options.timing);
        assert_eq!((options.last_pass, options.verbose), (Some(4), 2));
        assert_eq!(parse(&["-vp2", "--vp", "03", "x.stp"]).verbosity(2), 4);
        assert_eq!(parse(&["--vp=10203", "x.stp"]).verbosity(5), 3);
        assert_eq!(parse(&["-l", "a", "-l", "b"]).listing().as_deref(), Some("a, b"));
    }

    #[test]
    fn texts_add_up() {
        let (script, arguments) = parse(&["-e", "probe begin {}", "-e", "probe end {}", "word"]).script().unwrap();
        assert!(matches!(script, Script::Text(text) if text == "probe begin {}\nprobe end {}"));
        assert_eq!(arguments, ["word"]);
    }

    #[test]
    fn the_last_of_an_option_counts() {
        let options = parse(&["-p1", "-s", "4", "-m", "a", "-p4", "-s8", "-mb", "x.stp"]);
        assert_eq!((options.last_pass, options.buffer, options.module.as_deref()), (Some(4), Some(8), Some("b")));
        assert_eq!(parse(&["-DMAXERRORS=3", "-DMAXERRORS=5", "x"]).limits().unwrap().0.max_errors, 5);
    }

    #[test]
    fn values_are_checked() {
        assert_eq!(parse(&["-G", "a=1=2", "x"]).globals, [("a".to_string(), "1=2".to_string())]);
        assert_eq!(parse(&["-BCONFIG_X=y", "-B", "-g", "x"]).make, ["CONFIG_X=y", "-g"]);
        assert!(try_parse(&["-B", "clean", "x"]).is_err());
        for wrong in [
            &["-G", "a"][..],
            &["-G", "1=2"],
            &["--vp", "x"],
            &["--vp", "123456"],
            &["--compatible", "99.1"],
            &["--compatible=x"],
            &["-s", "0"],
            &["-p6"],
            &["--suppress-time-limits"],
        ] {
            assert!(try_parse(&[wrong, &["x.stp"]].concat()).is_err(), "{wrong:?}");
        }
        assert_eq!(parse(&["--compatible=4.8", "x"]).compatible.as_deref(), Some("4.8"));
        assert!(parse(&["-g", "--suppress-time-limits", "x"]).suppress_time_limits);
    }

    /// Each says what to do instead.
    #[test]
    fn what_is_refused() {
        for (words, reason) in [
            (&["-a", "arm64", "x"][..], "compile on a arm64 machine"),
            (&["--bpf", "x"], "in the kernel alone"),
            (&["--runtime=dyninst", "x"], "in the kernel alone"),
            (&["--unprivileged", "x"], "root"),
            (&["--use-server", "x"], "-p4"),
            (&["--download-debuginfo", "x"], "install"),
        ] {
            let text = refusal(words);
            assert!(text.contains(reason), "{words:?}: {text}");
        }
        assert!(
            try_parse(&[
                "--download-debuginfo=no",
                "--prologue-searching=never",
                "--runtime=kernel",
                "--privilege=stapdev",
                "x"
            ])
            .is_ok()
        );
    }

    /// None stops a program that drives stap; what changes nothing is told.
    #[test]
    fn what_is_accepted_with_a_note() {
        for (words, note) in [
            (&["--ldd", "x"][..], "--ldd: "),
            (&["--sysenv=PATH=/bin", "x"], "full path"),
            (&["--check-version", "x"], "--compatible="),
            (&["-P", "x"], ".statement("),
            (&["--prologue-searching=always", "x"], ".statement("),
            (&["--prologue-searching", "x"], ".statement("),
            (&["-q", "x"], "-q: "),
            (&["--target-namespaces=7", "x"], "nsenter"),
        ] {
            let options = parse(words);
            assert!(
                options.notes.len() == 1 && options.notes.concat().contains(note),
                "{words:?}: {:?}",
                options.notes
            );
        }
        let quiet = parse(&[
            "--semantic-keep-going",
            "--save-uprobes",
            "--prologue-searching=auto",
            "--monitor=2",
            "--example",
            "x.stp",
        ]);
        assert!(quiet.notes.is_empty() && quiet.example);
        assert_eq!((quiet.monitor, parse(&["--monitor", "x"]).monitor), (Some(2), Some(1)));
        assert!(refusal(&["--sysenv=PATH", "x"]).contains("--sysenv"));
    }

    #[test]
    fn the_name_it_is_called_by() {
        let called = |name: &str| {
            Options::parse_words([name, "-e", "probe begin {}"].map(OsString::from).into()).unwrap().as_stap
        };
        assert!(called("stap") && called("/usr/bin/stap") && !called("spile") && !called("/opt/stap/spile"));
        assert!(parse(&["-V"]).version && parse(&["--version"]).version);
    }

    #[test]
    fn module_names() {
        assert_eq!(module_name("lu_5642.ko"), Ok("lu_5642".into()));
        assert!(module_name("a-b").is_err() && module_name("1a").is_err() && module_name("").is_err());
    }
}
