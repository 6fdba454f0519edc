//! Options, as `stap` has them, with a few of our own.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Parser};

use crate::cache::Settings;
use crate::kbuild::{BuildError, Keys};
use crate::plan::Limits;

/// Compiles SystemTap scripts to kernel modules and runs them.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "spile",
    version,
    disable_version_flag = true,
    override_usage = "spile [OPTIONS] FILE [ARGUMENT]...\n       spile [OPTIONS] -e SCRIPT [ARGUMENT]...\n       spile [OPTIONS] -l PROBE | -L PROBE",
    after_help = "Exit status: 0 the script ran and ended well; 1 the script has an error, could not be compiled, or ended \
by a run-time error; 2 the command line is wrong; others are spilerun's, see spilerun --help.\n\
What the script prints goes to standard output (or -o); all else goes to standard error."
)]
pub struct Options {
    /// The script: a file, or - for standard input; then its arguments ($1, @1, ...)
    #[arg(value_name = "FILE", trailing_var_arg = true)]
    pub words: Vec<OsString>,

    /// The script's text
    #[arg(short = 'e', value_name = "SCRIPT", allow_hyphen_values = true)]
    pub text: Option<String>,

    /// Further script text, beside the script
    #[arg(short = 'E', value_name = "SCRIPT", allow_hyphen_values = true)]
    pub more: Vec<String>,

    /// Stop after pass 1 (parse), 2 (elaborate), 3 (translate), 4 (compile) or 5 (run)
    #[arg(short = 'p', value_name = "PASS", value_parser = clap::value_parser!(u8).range(1..=5))]
    pub last_pass: Option<u8>,

    /// Say more; again for more
    #[arg(short = 'v', action = ArgAction::Count)]
    pub verbose: u8,

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

    /// Set a limit: MAXACTION, MAXERRORS, MAXMAPENTRIES, MAXNESTING, MAXSKIPPED, MAXSTRINGLEN
    #[arg(short = 'D', value_name = "NAME=VALUE")]
    pub defines: Vec<String>,

    /// A further directory of library scripts
    #[arg(short = 'I', value_name = "DIR")]
    pub library: Vec<PathBuf>,

    /// A module's file, beside the kernel's own modules: module("NAME") finds it
    #[arg(short = 'd', value_name = "FILE")]
    pub objects: Vec<PathBuf>,

    /// List probe points that match
    #[arg(short = 'l', value_name = "PROBE", conflicts_with_all = ["text", "more", "variables"])]
    pub list: Option<String>,

    /// List probe points that match, with their variables
    #[arg(short = 'L', value_name = "PROBE", conflicts_with_all = ["text", "more"])]
    pub variables: Option<String>,

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
    #[arg(long, value_name = "WHEN", value_parser = ["auto", "always", "never"], default_value = "auto", default_missing_value = "auto", num_args = 0..=1, require_equals = true)]
    pub color: String,

    /// Run in a throw-away guest of an installed kernel
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

    /// Neither read nor write the cache
    #[arg(long)]
    pub disable_cache: bool,

    /// Write the cache, but do not read what is there
    #[arg(long)]
    pub poison_cache: bool,

    /// Use the kernel half of spile from this directory
    #[arg(long, value_name = "DIR")]
    pub runtime: Option<PathBuf>,

    /// Use the library scripts from this directory
    #[arg(long, value_name = "DIR")]
    pub tapset: Option<PathBuf>,

    /// A directory that holds the target's files as / does
    #[arg(long, value_name = "DIR")]
    pub sysroot: Option<PathBuf>,

    /// List the kinds of probe points
    #[arg(long)]
    pub dump_probe_types: bool,

    /// List the functions that scripts may call
    #[arg(long)]
    pub dump_functions: bool,

    /// Version
    #[arg(short = 'V', long, action = ArgAction::Version)]
    version: Option<bool>,
}

/// Where the script's text comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Script {
    File(PathBuf),
    Stdin,
    Text(String),
}

impl Options {
    /// The script and its arguments; None if there is none.
    pub fn script(&self) -> Option<(Script, Vec<String>)> {
        let mut words = self.words.iter();
        let script = match &self.text {
            Some(text) => Script::Text(text.clone()),
            None => match words.next()? {
                word if word == "-" => Script::Stdin,
                word => Script::File(PathBuf::from(word)),
            },
        };
        Some((script, words.map(|word| word.to_string_lossy().into_owned()).collect()))
    }

    /// Limits after all `-D`; the message says which one is wrong.
    pub fn limits(&self) -> Result<Limits, String> {
        let mut limits = Limits::default();
        for define in &self.defines {
            let (name, value) = define.split_once('=').unwrap_or((define, "1"));
            let number = |low: u32, high: u32| match value.parse::<u32>() {
                Ok(number) if (low..=high).contains(&number) => Ok(number),
                _ => Err(format!("-D {define}: {name} is a number from {low} to {high}")),
            };
            match name {
                "MAXSTRINGLEN" => limits.string_bytes = number(16, 65_536)?,
                "MAXACTION" | "MAXACTION_INTERRUPTIBLE" => limits.max_actions = number(1, i32::MAX as u32)?,
                "MAXNESTING" => limits.max_nesting = Some(number(1, 200)?),
                "MAXERRORS" => limits.max_errors = number(0, i32::MAX as u32)?,
                "MAXMAPENTRIES" => limits.map_entries = number(1, 1 << 24)?,
                "MAXSKIPPED" => limits.max_skipped = number(0, i32::MAX as u32)?,
                _ => {
                    let known = "MAXACTION, MAXERRORS, MAXMAPENTRIES, MAXNESTING, MAXSKIPPED, MAXSTRINGLEN";
                    return Err(format!("-D {define}: no such limit; there is {known}"));
                }
            }
        }
        Ok(limits)
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
            (None, Some(key), Some(certificate)) => Ok(Some(Keys { key: key.clone(), certificate: certificate.clone() })),
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

/// Checks a module's name: letters, digits and `_`, not too long for the kernel.
pub fn module_name(name: &str) -> Result<String, String> {
    let name = name.strip_suffix(".ko").unwrap_or(name);
    let fits = !name.is_empty() && name.len() <= 55 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
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
        Options::try_parse_from(std::iter::once(&"spile").chain(words)).unwrap()
    }

    #[test]
    fn words_after_the_script_are_its_arguments() {
        let options = parse(&["-g", "x.stp", "-v", "1"]);
        let (script, arguments) = options.script().unwrap();
        assert_eq!(script, Script::File("x.stp".into()));
        assert_eq!(arguments, ["-v", "1"]);
        assert_eq!(options.verbose, 0);
        let (script, arguments) = parse(&["-e", "probe begin {}", "7"]).script().unwrap();
        assert_eq!(script, Script::Text("probe begin {}".into()));
        assert_eq!(arguments, ["7"]);
    }

    #[test]
    fn stap_spellings() {
        let options = parse(&["-vvp4", "-mfoo", "-DMAXERRORS=3", "-D", "MAXSTRINGLEN=1024", "x.stp"]);
        assert_eq!((options.verbose, options.last_pass), (2, Some(4)));
        let limits = options.limits().unwrap();
        assert_eq!((limits.max_errors, limits.string_bytes), (3, 1024));
        assert!(parse(&["-D", "MAXSTRINGLEN=1", "x"]).limits().is_err());
        assert!(parse(&["-D", "MAXFOO=1", "x"]).limits().is_err());
    }

    #[test]
    fn module_names() {
        assert_eq!(module_name("lu_5642.ko"), Ok("lu_5642".into()));
        assert!(module_name("a-b").is_err() && module_name("1a").is_err() && module_name("").is_err());
    }
}
