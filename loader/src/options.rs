// SPDX-License-Identifier: GPL-2.0-or-later

//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, RangedI64ValueParser, TypedValueParser};
use clap::{Args, CommandFactory, Parser};

use spile_abi::device::{ENFORCE, OBSERVE};

use crate::error::EXIT_HELP;
use crate::module::gate::{self, GateOptions, Scope};
use crate::module::setting::Remote;
use crate::report::account::Form;
use crate::report::budget::Budget;
use crate::report::exporter;
use crate::report::status::Form as StatusForm;

/// The requested action.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// Load this module (a file, or a name) and run it.
    Run(PathBuf),
    /// Attach to the detached session of this module.
    Attach(String),
    /// Show the module's status.
    Status(String, StatusForm),
    /// Change whether the script of a loaded module may write.
    Gate {
        /// Name of the module.
        name: String,
        /// [`ENFORCE`]: writes are done; [`OBSERVE`]: they are only counted and reported.
        mode: u32,
        /// End of enforcing: CLOCK_REALTIME, nanoseconds; `None`: unchanged.
        expires: Option<u64>,
        /// Allow [`OBSERVE`] despite embedded C in the script.
        harmless_c: bool,
    },
    /// Switch probes of a running session off or on.
    Switch {
        /// Name of the module.
        name: String,
        /// The number or the point of a probe, as the status shows it.
        probe: String,
        /// Off.
        off: bool,
    },
    /// Remove an unused module; `*`: all leftovers of killed loaders.
    Remove(String),
}

/// `-S SIZE[,N]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// Size of one file in bytes, 0 on the command line for any; the line that reaches it is completed.
    pub bytes: u64,
    /// Number of files to preserve, the newest; `None` (0 on the command line): all.
    pub files: Option<usize>,
}

/// `--escape`: whether control characters in the script's output are escaped, except newlines and tabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// No output is escaped.
    Never,
    /// All output is escaped.
    Always,
    /// Output to a terminal is escaped.
    Auto,
}

/// A command line of `spilerun`, parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The requested action.
    pub task: Task,
    /// `-o`: file for the script's output, with % as in strftime(3); `None`: standard output.
    pub output: Option<PathBuf>,
    /// Which output has its control characters escaped.
    pub escape: Escape,
    /// When to switch to the next output file; `None`: only on SIGUSR2.
    pub rotation: Option<Rotation>,
    /// The output is a recording ([`crate::records::recording`]), not text.
    pub record: bool,
    /// Nothing but the output may go to standard output: that of commands goes to standard error.
    pub keeps_stdout: bool,
    /// Append to existing output files.
    pub append: bool,
    /// Write each CPU's output to its own file, unmerged.
    pub bulk: bool,
    /// `-c`: the command to run; the session ends with it.
    pub command: Option<String>,
    /// `-x`: the process whose exit ends the session.
    pub pid: Option<i32>,
    /// Show notices, repeated warnings, and the hits of each probe at the end.
    pub verbose: bool,
    /// File for metrics in Prometheus' text format, written every 10 seconds.
    pub metrics: Option<PathBuf>,
    /// Socket that serves the same.
    pub metrics_socket: Option<PathBuf>,
    /// Format of the table of all probes at the end; `None`: no table.
    pub stats: Option<Form>,
    /// Nanoseconds between two status tables.
    pub monitor: Option<u64>,
    /// Limit on the script's cost; `None`: no limit.
    pub budget: Option<Budget>,
    /// Show no warnings.
    pub no_warnings: bool,
    /// Bytes of each CPU's ring; `None`: depends on the number of CPUs.
    pub ring_bytes: Option<u32>,
    /// Nanoseconds after which the session ends.
    pub timeout: Option<u64>,
    /// Detach once the probes are armed.
    pub detach: bool,
    /// The session outlives its loader, however that exits.
    pub keep: bool,
    /// Without a loader, full rings drop the oldest records.
    pub overwrite: bool,
    /// `-D`: run in the background.
    pub daemon: bool,
    /// Give the module a unique name.
    pub rename: bool,
    /// `NAME=VALUE`, for globals.
    pub settings: Vec<String>,
    /// `-r`: values of `remote_id()` and `remote_uri()`.
    pub remote: Option<Remote>,
    /// Colours in messages.
    pub color: bool,
    /// Restrictions on the script's writes.
    pub gate: GateOptions,
    /// Run by a service.
    pub service: bool,
}

/// Options of a session, shared with `spile`.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct SessionOptions {
    /// Write the script's output to FILE, whose name is expanded by strftime(3) (messages still go to standard error)
    #[arg(short = 'o', value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Write a recording to FILE instead of text (- for standard output): the values of all prints with time, CPU, process
    /// and probe. spile replay FILE prints it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["output", "bulk"])]
    pub record: Option<PathBuf>,

    /// With -o: start a new file (FILE.0, FILE.1, ...) after SIZE MB, and keep the last N. SIGUSR2 starts a new file at once
    #[arg(short = 'S', value_name = "SIZE[,N]", value_parser = parse_rotation)]
    pub rotation: Option<Rotation>,

    /// Write the output of each CPU to a separate file, FILE_cpuN (without -o: stpd_cpuN)
    #[arg(long)]
    pub bulk: bool,

    /// Run CMD when all probes are armed, with its process as target(), and end with it
    #[arg(short = 'c', value_name = "CMD", value_parser = clap::builder::NonEmptyStringValueParser::new(), conflicts_with = "pid")]
    pub command: Option<String>,

    /// Make process PID the target(), and end with it
    // A number that no process can have is told when the session starts; 0 is none.
    #[arg(short = 'x', value_name = "PID", value_parser = parse_pid, allow_negative_numbers = true)]
    pub pid: Option<i32>,

    /// End after SECONDS (0.001 or more)
    // In nanoseconds.
    #[arg(short = 'T', value_name = "SECONDS", value_parser = parse_seconds)]
    pub timeout: Option<u64>,

    /// Size of each CPU's buffer, in MB (1 to 4095; reduced if memory is short) [default: 4, less with more than 16 CPUs]
    #[arg(short = 's', value_name = "MB", value_parser = megabytes())]
    pub megabytes: Option<u32>,

    /// At the end, print for each probe how its hits were handled, and its cycles: as a table, as JSON, or as stap -t does
    #[arg(long, value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "table", value_parser = form_parser())]
    pub stats: Option<Form>,

    /// Count the hits of all probes for a second and estimate the cost of the script; do not run it if that exceeds PERCENT of
    /// the CPUs' time, or with ",sample" handle only one in N hits
    #[arg(long, value_name = "PERCENT[,sample]", value_parser = Budget::parse)]
    pub budget: Option<Budget>,

    /// Print no warnings
    #[arg(short = 'w')]
    pub no_warnings: bool,
}

impl SessionOptions {
    /// Equivalent arguments, for a loader in another process.
    pub fn words(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        let mut pair = |name: &str, value: Option<OsString>| {
            if let Some(value) = value {
                words.extend([name.into(), value]);
            }
        };
        let rotation = self.rotation.map(|rotation| {
            let files = rotation.files.map_or_else(String::new, |files| format!(",{files}"));
            format!("{}{files}", rotation.bytes >> 20)
        });
        let budget =
            self.budget.map(|budget| format!("{}{}", budget.percent, if budget.sample { ",sample" } else { "" }));
        pair("-o", self.output.clone().map(Into::into));
        pair("--record", self.record.clone().map(Into::into));
        pair("-S", rotation.map(Into::into));
        pair("-c", self.command.clone().map(Into::into));
        pair("-x", self.pid.map(|pid| pid.to_string().into()));
        pair("-T", self.timeout.map(|nanoseconds| (nanoseconds as f64 / 1e9).to_string().into()));
        pair("-s", self.megabytes.map(|megabytes| megabytes.to_string().into()));
        pair("--budget", budget.map(Into::into));
        match self.stats {
            Some(Form::Table) => words.push("--stats=table".into()),
            Some(Form::Json) => words.push("--stats=json".into()),
            Some(Form::Report) => words.push("--stats=stap".into()),
            None => {}
        }
        for (given, option) in [(self.bulk, "--bulk"), (self.no_warnings, "-w")] {
            words.extend(given.then(|| option.into()));
        }
        words
    }
}

/// Loads a module built by spile, prints its output, and removes it at the end
#[derive(Parser)]
#[command(name = "spilerun", version, after_help = EXIT_HELP)]
struct Arguments {
    /// The module: a file, or a name to be found in /lib/modules/RELEASE/spile or .../systemtap
    #[arg(value_name = "MODULE", required_unless_present_any = ["remove", "attach"], conflicts_with_all = ["remove", "attach"])]
    module: Option<PathBuf>,

    /// Initial values for globals of the script
    #[arg(value_name = "GLOBAL=VALUE")]
    settings: Vec<String>,

    /// Options that spile has as well
    #[command(flatten)]
    session: SessionOptions,

    /// staprun's name of -s, as an option of its own: a message names what was given
    #[arg(short = 'b', value_name = "MB", hide = true, value_parser = megabytes(), conflicts_with_all = ["megabytes", "attach", "remove"])]
    staprun_megabytes: Option<u32>,

    /// Escape control characters (\x1b, \r, \u{202e}) in the output of the script; without WHEN: if it is a terminal
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "auto", value_parser = ["auto", "always", "never"], conflicts_with_all = ["remove", "record"])]
    escape: Option<String>,

    /// With -o: append to an existing file (with -S: continue with the next number)
    #[arg(long)]
    append: bool,

    /// Load, start and detach: the session continues, spilerun -A NAME reads its output. SIGQUIT detaches later
    #[arg(short = 'L', conflicts_with_all = ["timeout", "daemon", "record"])]
    detach: bool,

    /// Attach to the detached session of module NAME
    #[arg(short = 'A', value_name = "NAME", conflicts_with_all = ["detach", "megabytes", "command", "pid", "budget", "remove", "rename"])]
    attach: Option<String>,

    /// Keep the session running if this process ends for any other reason than INT, TERM, HUP or -T
    #[arg(long, conflicts_with = "remove")]
    keep: bool,

    /// While no loader is attached, a full buffer drops its oldest records instead of new ones
    #[arg(long, conflicts_with_all = ["remove", "record"])]
    overwrite: bool,

    /// Run in the background, and print the PID when the probes are armed; messages go to the file of -o too
    #[arg(short = 'D', requires = "output", conflicts_with = "command")]
    daemon: bool,

    /// Give the module a unique name (NAME_PID), so that several can run
    #[arg(short = 'R')]
    rename: bool,

    /// Observe: count and report what the script would rewrite, without rewriting (spilerun enforce NAME enables it)
    #[arg(long, conflicts_with_all = ["attach", "remove"])]
    dry_run: bool,

    /// With --dry-run: allow embedded C that is not marked /* pure */, because you know that it does no harm
    #[arg(long, conflicts_with_all = ["attach", "remove"])]
    harmless_c: bool,

    /// Stop rewriting at this time: after 90s, 30m, 72h, 7d, or at a date (2027-01-31T18:00)
    #[arg(long, value_name = "WHEN", value_parser = gate::parse_expiry, conflicts_with_all = ["attach", "remove"])]
    expires: Option<u64>,

    /// Rewrite at most N times per second
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["attach", "remove"])]
    rewrites: Option<u32>,

    /// Rewrite only for these: uid=USER, gid=GROUP, pid=PID, cgroup=PATH (below /sys/fs/cgroup); one value of each given kind has to match
    #[arg(long, value_name = "KIND=VALUE", value_parser = gate::parse_scope, conflicts_with_all = ["attach", "remove"])]
    only: Vec<Scope>,

    /// Colours in messages
    #[arg(short = 'C', value_name = "WHEN", value_parser = ["auto", "always", "never"], default_value = "auto")]
    color: String,

    /// Number and URI that remote_id() and remote_uri() return to the script
    #[arg(short = 'r', value_name = "N:URI", value_parser = parse_remote, conflicts_with_all = ["attach", "remove"])]
    remote: Option<Remote>,

    /// Ignored, for compatibility with staprun: kernels have had user-space probes built in since 3.5
    #[arg(short = 'u', hide = true)]
    _uprobes: bool,

    /// Verbose: print when probes are armed and disarmed, and a table of all probes at the end
    #[arg(short = 'v', action = clap::ArgAction::Count)]
    verbose: u8,

    /// Write metrics to FILE every 10 seconds, for node_exporter's textfile collector (NAME.prom); unix:PATH serves them on a
    /// socket
    #[arg(long, value_name = "FILE", conflicts_with_all = ["detach", "remove"])]
    metrics: Vec<PathBuf>,

    /// Print the hits of every probe every SECONDS (as spilerun status does); clears the terminal
    #[arg(short = 'M', value_name = "SECONDS", value_parser = parse_seconds, conflicts_with_all = ["detach", "remove"])]
    monitor: Option<u64>,

    /// Refused, with a message
    #[arg(short = 'N', hide = true, value_parser = refuse_namespaces)]
    _namespaces: Option<u64>,

    /// End the detached session NAME and remove its module; '*': remove all modules left by killed loaders
    #[arg(short = 'd', value_name = "NAME", conflicts_with_all = ["output", "record", "command", "pid", "megabytes", "timeout", "detach", "daemon", "bulk", "budget", "rename"])]
    remove: Option<String>,
}

/// `table`, `json` or `stap`.
fn form_parser() -> impl TypedValueParser<Value = Form> {
    PossibleValuesParser::new(["table", "json", "stap"]).map(|form| match form.as_str() {
        "json" => Form::Json,
        "stap" => Form::Report,
        _ => Form::Table,
    })
}

/// Of -s.
fn megabytes() -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=4095)
}

fn parse_seconds(text: &str) -> Result<u64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_string())?;
    if !(0.001..=1e9).contains(&seconds) {
        return Err("not between 0.001 and 1000000000".to_string());
    }
    Ok((seconds * 1e9) as u64)
}

/// staprun's `-N PID`.
fn refuse_namespaces(_: &str) -> Result<u64, String> {
    Err("PIDs are those of the loader's PID namespace: run it in the other one, nsenter -t PID -p spilerun MODULE"
        .to_string())
}

/// `SIZE[,N]`, SIZE in MB.
fn parse_rotation(text: &str) -> Result<Rotation, String> {
    let (size, files) = match text.split_once(',') {
        Some((size, files)) => (size, Some(files)),
        None => (text, None),
    };
    let megabytes: u64 = size.parse().map_err(|_| "SIZE is a number of MB".to_string())?;
    let files = files.map(|files| files.parse::<usize>().map_err(|_| "N is a number of files"));
    match megabytes {
        0..=1_048_576 => Ok(Rotation { bytes: megabytes << 20, files: files.transpose()?.filter(|files| *files > 0) }),
        _ => Err("SIZE is at most 1048576 MB".to_string()),
    }
}

/// A number of any size.
fn parse_pid(text: &str) -> Result<i32, String> {
    let number: i128 = text.parse().map_err(|_| "not a number".to_string())?;
    Ok(number.clamp(i32::MIN.into(), i32::MAX.into()) as i32)
}

/// `N:URI`
fn parse_remote(text: &str) -> Result<Remote, String> {
    let (number, uri) = text.split_once(':').ok_or("expected N:URI")?;
    let number = number.parse().map_err(|_| "N is a number".to_string())?;
    Ok(Remote { number, uri: uri.to_string() })
}

/// Whether messages are coloured: `always`, `never`, or (`auto`) if standard error is a terminal and NO_COLOR is not
/// set.
pub fn wants_color(when: &str) -> bool {
    use std::io::IsTerminal;
    match when {
        "always" => true,
        "never" => false,
        _ => std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
    }
}

/// An action on a loaded module: `spilerun ACTION NAME`.
#[derive(Parser)]
#[command(name = "spilerun", about = "Shows or controls a loaded module")]
enum Action {
    /// Show the status of the session: errors, skipped hits, rewrites, probes
    Status {
        /// Name of the module
        name: String,
        /// As JSON
        #[arg(long, conflicts_with = "prometheus")]
        json: bool,
        /// In Prometheus' text format, for node_exporter's textfile collector
        #[arg(long)]
        prometheus: bool,
    },
    /// Stop rewriting: only count and report what the script would rewrite
    Observe {
        /// Name of the module
        name: String,
        /// Allow embedded C that is not marked /* pure */, because you know that it does no harm
        #[arg(long)]
        harmless_c: bool,
    },
    /// Start rewriting
    Enforce {
        /// Name of the module
        name: String,
        /// Stop rewriting at this time: after 90s, 30m, 72h, 7d, or at a date (2027-01-31T18:00)
        #[arg(long, value_name = "WHEN", value_parser = gate::parse_expiry)]
        expires: Option<u64>,
    },
    /// Switch a probe off while the session runs: its handler is not run any more
    Disable(ProbeOf),
    /// Switch it on again
    Enable(ProbeOf),
}

/// A probe of a session.
#[derive(clap::Args)]
struct ProbeOf {
    /// Name of the module
    name: String,
    /// The probe point as the status shows it, or its number there, from 0
    probe: String,
}

/// The names of all.
const ACTIONS: [&str; 5] = ["status", "observe", "enforce", "disable", "enable"];

/// The action given as the first argument, if any. A module of such a name can be given as a path.
fn parse_action(arguments: &[OsString]) -> Result<Option<Task>, clap::Error> {
    let is_action = arguments.get(1).is_some_and(|word| ACTIONS.iter().any(|action| word == action));
    if !is_action {
        return Ok(None);
    }
    Ok(Some(match Action::try_parse_from(arguments)? {
        Action::Status { name, json: true, .. } => Task::Status(name, StatusForm::Json),
        Action::Status { name, prometheus: true, .. } => Task::Status(name, StatusForm::Prometheus),
        Action::Status { name, .. } => Task::Status(name, StatusForm::Table),
        Action::Observe { name, harmless_c } => Task::Gate { name, mode: OBSERVE, expires: None, harmless_c },
        Action::Disable(ProbeOf { name, probe }) => Task::Switch { name, probe, off: true },
        Action::Enable(ProbeOf { name, probe }) => Task::Switch { name, probe, off: false },
        Action::Enforce { name, expires } => Task::Gate { name, mode: ENFORCE, expires, harmless_c: true },
    }))
}

/// The path of `unix:PATH`.
fn socket(place: &std::path::Path) -> Option<PathBuf> {
    place.to_str()?.strip_prefix(exporter::PREFIX).map(PathBuf::from)
}

impl Options {
    /// Defaults without any option.
    fn for_task(task: Task) -> Options {
        Options {
            task,
            output: None,
            escape: Escape::Never,
            rotation: None,
            record: false,
            keeps_stdout: false,
            append: false,
            bulk: false,
            command: None,
            pid: None,
            verbose: false,
            metrics: None,
            metrics_socket: None,
            stats: None,
            monitor: None,
            budget: None,
            no_warnings: false,
            ring_bytes: None,
            timeout: None,
            detach: false,
            keep: false,
            overwrite: false,
            daemon: false,
            rename: false,
            settings: Vec::new(),
            remote: None,
            color: false,
            gate: GateOptions::default(),
            service: false,
        }
    }

    /// Including the options shared with `spile`.
    pub fn for_session(task: Task, session: SessionOptions) -> Options {
        Options {
            record: session.record.is_some(),
            keeps_stdout: session.record.as_deref().is_some_and(|file| file.as_os_str() == "-"),
            output: session.output.or(session.record.filter(|file| file.as_os_str() != "-")),
            rotation: session.rotation.filter(|rotation| rotation.bytes > 0),
            bulk: session.bulk,
            command: session.command,
            pid: session.pid.filter(|pid| *pid != 0),
            timeout: session.timeout,
            ring_bytes: session.megabytes.map(|megabytes| megabytes << 20),
            stats: session.stats,
            budget: session.budget,
            no_warnings: session.no_warnings,
            ..Options::for_task(task)
        }
    }

    /// `arguments` start with the program's name. The error prints itself: a usage error, or the text of -h and -V.
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Options, clap::Error> {
        let arguments: Vec<OsString> = arguments.into_iter().collect();
        if let Some(task) = parse_action(&arguments)? {
            return Ok(Options::for_task(task));
        }
        let arguments = Arguments::try_parse_from(arguments)?;
        if arguments.session.rotation.is_some() && arguments.session.output.is_none() {
            let reason = "-S: name the file with -o";
            return Err(Arguments::command().error(clap::error::ErrorKind::MissingRequiredArgument, reason));
        }
        let task = match (arguments.remove, arguments.attach, arguments.module) {
            (Some(name), ..) => Task::Remove(name),
            (None, Some(name), _) => Task::Attach(name),
            (None, None, Some(module)) => Task::Run(module),
            // SANITY: clap has rejected this already.
            (None, None, None) => return Err(clap::Error::new(clap::error::ErrorKind::MissingRequiredArgument)),
        };
        Ok(Options {
            escape: match arguments.escape.as_deref() {
                None | Some("never") => Escape::Never,
                Some("always") => Escape::Always,
                Some(_) => Escape::Auto,
            },
            append: arguments.append,
            verbose: arguments.verbose > 0,
            metrics: arguments.metrics.iter().find(|place| socket(place).is_none()).cloned(),
            metrics_socket: arguments.metrics.iter().find_map(|place| socket(place)),
            monitor: arguments.monitor,
            detach: arguments.detach,
            keep: arguments.keep,
            overwrite: arguments.overwrite,
            daemon: arguments.daemon,
            rename: arguments.rename,
            settings: arguments.settings,
            remote: arguments.remote,
            color: wants_color(&arguments.color),
            gate: GateOptions {
                dry_run: arguments.dry_run,
                harmless_c: arguments.harmless_c,
                expires: arguments.expires,
                per_second: arguments.rewrites,
                only: arguments.only,
            },
            ..Options::for_session(
                task,
                SessionOptions {
                    megabytes: arguments.session.megabytes.or(arguments.staprun_megabytes),
                    ..arguments.session
                },
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, clap::Error> {
        Options::parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn options_before_or_after_the_module() {
        let options = parse("spilerun -o out a.ko -s 4095 -T 0.5 -v").unwrap();
        assert_eq!(options.task, Task::Run("a.ko".into()));
        assert_eq!(options.output, Some("out".into()));
        assert_eq!((options.ring_bytes, options.timeout, options.verbose), (Some(4095 << 20), Some(500_000_000), true));
    }

    #[test]
    fn invalid_combinations_are_refused() {
        for line in [
            "spilerun",
            "spilerun a.ko -c true -x 1",
            "spilerun -d x a.ko",
            "spilerun a.ko -s 0",
            "spilerun a.ko -s 4096",
            "spilerun a.ko -T 0",
            "spilerun a.ko -T nan",
            "spilerun a.ko -T inf",
            "spilerun a.ko -x a",
            "spilerun -A x a.ko",
            "spilerun -A x -L",
            "spilerun -A x -c true",
            "spilerun a.ko -S 1",
            "spilerun a.ko -o x -S 1,x",
            "spilerun a.ko -D",
            "spilerun -d x -A y",
            "spilerun a.ko -L -T 1",
            "spilerun a.ko -C sometimes",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
        assert!(Options::parse(["spilerun", "a.ko", "-c", ""].map(OsString::from)).is_err());
        assert_eq!(parse("spilerun -d x").unwrap().task, Task::Remove("x".into()));
    }

    #[test]
    fn staprun_s_spellings() {
        let options = parse("spilerun -u -R -b 2 -o log -S 10,3 -D a.ko limit=3 who=me").unwrap();
        assert_eq!(options.rotation, Some(Rotation { bytes: 10 << 20, files: Some(3) }));
        assert_eq!(options.settings, ["limit=3", "who=me"]);
        assert_eq!((options.ring_bytes, options.daemon, options.rename), (Some(2 << 20), true, true));
        assert_eq!(parse("spilerun -A x").unwrap().task, Task::Attach("x".into()));
        assert!(parse("spilerun -L a.ko").unwrap().detach);
        for left in ["-x 7", "-c true", "-b 5", "-o log", "-x 0", "-x -4"] {
            assert!(parse(&format!("spilerun -L a.ko {left}")).unwrap().detach, "{left}");
        }
        assert_eq!(parse("spilerun a.ko -o x -S 0").unwrap().rotation, None);
        let all = Some(Rotation { bytes: 1 << 20, files: None });
        assert_eq!(parse("spilerun a.ko -o x -S 1,0").unwrap().rotation, all);
        for wrong in [
            "spilerun -b 0 a.ko",
            "spilerun -b x a.ko",
            "spilerun -b 2 -A x",
            "spilerun -b 2 -d x",
            "spilerun -b 2 -s 2 a.ko",
        ] {
            let message = parse(wrong).unwrap_err().to_string();
            assert!(message.contains("'-b <MB>'"), "{message}");
        }
        let remote = Remote { number: 3, uri: "ssh://host".to_string() };
        assert_eq!(parse("spilerun a.ko -r 3:ssh://host").unwrap().remote, Some(remote));
        assert!(parse("spilerun a.ko -r x").is_err());
        assert_eq!(parse("spilerun a.ko -M 2").unwrap().monitor, Some(2_000_000_000));
        let refused = parse("spilerun a.ko -N 17").unwrap_err().to_string();
        assert!(refused.contains("nsenter -t PID -p spilerun"), "{refused}");
    }

    #[test]
    fn actions_come_first() {
        assert_eq!(parse("spilerun status x --json").unwrap().task, Task::Status("x".into(), StatusForm::Json));
        assert_eq!(
            parse("spilerun observe x").unwrap().task,
            Task::Gate { name: "x".into(), mode: OBSERVE, expires: None, harmless_c: false }
        );
        assert!(parse("spilerun enforce").is_err() && parse("spilerun observe x --expires 1h").is_err());
        assert_eq!(parse("spilerun ./status").unwrap().task, Task::Run("./status".into()));
        assert!(!parse("spilerun a.ko --dry-run --only uid=0 --rewrites 3").unwrap().gate.is_none());
        assert!(parse("spilerun a.ko --expires never").is_err() && parse("spilerun -A x --dry-run").is_err());
    }

    #[test]
    fn the_definition_passes_clap_s_checks() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn manual_and_documentation_have_every_option() {
        let manual = include_str!("../system/spilerun.8").replace('\\', "");
        let page = include_str!("../../docs/spilerun.md");
        for argument in Arguments::command().get_arguments().filter(|argument| !argument.is_positional()) {
            let short = argument.get_short().map(|short| format!("-{short}"));
            let name = short.or(argument.get_long().map(|long| format!("--{long}"))).unwrap_or_default();
            assert!(manual.contains(&name) && page.contains(&name), "{name}");
        }
    }
}
