//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Parser;

use crate::error::EXIT_HELP;

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// Load this module (a file, or a name) and run it.
    Run(PathBuf),
    /// Remove a module that a killed loader has left; `*`: all of them.
    Remove(String),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub task: Task,
    pub output: Option<PathBuf>,
    pub command: Option<String>,
    pub pid: Option<i32>,
    pub verbose: bool,
    pub no_warnings: bool,
    /// Bytes of each CPU's ring.
    pub ring_bytes: Option<u32>,
    /// Nanoseconds after which the session is ended.
    pub timeout: Option<u64>,
}

/// Loads a module that spile built, prints what it prints, and removes it when it ends
#[derive(Parser)]
#[command(name = "spilerun", version, after_help = EXIT_HELP)]
struct Arguments {
    /// The module: a file, or a name to be found in /lib/modules/RELEASE/spile or .../systemtap
    #[arg(value_name = "MODULE", required_unless_present = "remove")]
    module: Option<PathBuf>,

    /// Write what the script prints to FILE (messages still go to standard error)
    #[arg(short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,

    /// Run CMD when all probes are armed, with its process as target(), and end with it
    #[arg(short = 'c', value_name = "CMD", conflicts_with = "pid")]
    command: Option<String>,

    /// Make process PID the target(), and end with it
    #[arg(short = 'x', value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,

    /// Tell more: what is armed and disarmed, and an account of every probe at the end
    #[arg(short = 'v', action = clap::ArgAction::Count)]
    verbose: u8,

    /// Print no warnings
    #[arg(short = 'w')]
    no_warnings: bool,

    /// Buffer of each CPU, in MB (1 to 4095; the module takes what the machine can afford) [default: 4, less with more than 16 CPUs]
    #[arg(short = 's', value_name = "MB", value_parser = clap::value_parser!(u32).range(1..=4095))]
    megabytes: Option<u32>,

    /// End after SECONDS (0.001 or more)
    #[arg(short = 'T', value_name = "SECONDS", value_parser = parse_seconds)]
    timeout: Option<u64>,

    /// Remove module NAME that a killed loader has left; '*' for all of them
    #[arg(short = 'd', value_name = "NAME", conflicts_with_all = ["module", "output", "command", "pid", "megabytes", "timeout"])]
    remove: Option<String>,
}

fn parse_seconds(text: &str) -> Result<u64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_string())?;
    if !(0.001..=1e9).contains(&seconds) {
        return Err("not between 0.001 and 1000000000".to_string());
    }
    Ok((seconds * 1e9) as u64)
}

impl Options {
    /// `arguments` begin with the program's name. The error prints itself: it is a mistake, or what -h and -V tell.
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Options, clap::Error> {
        let arguments = Arguments::try_parse_from(arguments)?;
        let task = match (arguments.remove, arguments.module) {
            (Some(name), _) => Task::Remove(name),
            (None, Some(module)) => Task::Run(module),
            // SANITY: clap has refused this already.
            (None, None) => return Err(clap::Error::new(clap::error::ErrorKind::MissingRequiredArgument)),
        };
        Ok(Options {
            task,
            output: arguments.output,
            command: arguments.command,
            pid: arguments.pid,
            verbose: arguments.verbose > 0,
            no_warnings: arguments.no_warnings,
            ring_bytes: arguments.megabytes.map(|megabytes| megabytes << 20),
            timeout: arguments.timeout,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> Result<Options, clap::Error> {
        Options::parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn options_stand_before_or_behind_the_module() {
        let options = parse("spilerun -o out a.ko -s 4095 -T 0.5 -v").unwrap();
        assert_eq!(options.task, Task::Run("a.ko".into()));
        assert_eq!(options.output, Some("out".into()));
        assert_eq!((options.ring_bytes, options.timeout, options.verbose), (Some(4095 << 20), Some(500_000_000), true));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "spilerun", "spilerun a.ko b.ko", "spilerun a.ko -c true -x 1", "spilerun -d x a.ko", "spilerun a.ko -s 0",
            "spilerun a.ko -s 4096", "spilerun a.ko -T 0", "spilerun a.ko -T nan", "spilerun a.ko -T inf",
            "spilerun a.ko -x 0", "spilerun a.ko -x -4",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
        assert_eq!(parse("spilerun -d x").unwrap().task, Task::Remove("x".into()));
    }

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }
}
