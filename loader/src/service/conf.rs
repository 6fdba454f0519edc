// SPDX-License-Identifier: GPL-2.0-or-later

//! A service's configuration, `/etc/spile/NAME.conf`: lines `KEY=VALUE`.

use std::ffi::OsString;
use std::path::PathBuf;

use spile_abi::meta::Meta;

use crate::host::assignments::assignments;
use crate::module::setting;
use crate::options::{Options, Task};
use crate::safety::rank::Rank;

const CONF: &str = "\
# Service spile@NAME. Lines KEY=VALUE; # begins a comment. After a change: systemctl restart spile@NAME

# Options of spilerun, separated by blanks: --dry-run, --harmless-c, --rewrites N, --only uid=USER, -s MB, -v, and
# --expires 2027-01-31T18:00 (a time like 72h begins anew at each start)
OPTIONS=
# Values for the script's globals: NAME=VALUE NAME=VALUE
GLOBALS=
# The script's output goes to the journal, or to this file (-o), which rotates (-S)
OUTPUT=
ROTATE=
# Metrics in Prometheus' text format: a file NAME.prom in the directory of node_exporter's textfile collector, or
# unix:PATH, a socket, or both, separated by a blank
METRICS=
# Without a module for the running kernel: fail, fetch (DIRECTORY/RELEASE/NAME.ko) or rebuild (SCRIPT with BUILD_OPTIONS)
MISSING=fail
DIRECTORY=
SCRIPT=
BUILD_OPTIONS=-g
# yes: the module and this file go into the initramfs too. After a change: update-initramfs -u -k all, or dracut --force
# --regenerate-all
EARLY=no
# Who may start the module beside the service, as with a set-uid spilerun: root, spilesys (its members), spileusr (both)
START=root
";

/// A configuration, parsed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conf {
    /// Options of the loader (`OPTIONS`).
    pub options: Vec<String>,
    /// `GLOBAL=VALUE` (`GLOBALS`).
    pub globals: Vec<String>,
    output: Option<String>,
    rotate: Option<String>,
    metrics: Vec<String>,
    /// What to do if the running kernel has no module (`MISSING`).
    pub missing: MissingAction,
    /// Directory from which modules are copied (`DIRECTORY`).
    pub directory: PathBuf,
    /// Script from which modules are built (`SCRIPT`).
    pub script: PathBuf,
    /// Options of the compiler (`BUILD_OPTIONS`).
    pub build_options: Vec<String>,
    /// Start in the initial RAM disk (`EARLY`).
    pub early: bool,
    /// Minimum rank of users who may start the module; `None`: only root.
    pub start: Option<Rank>,
}

/// What to do without a module for the running kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingAction {
    /// Fail.
    #[default]
    Fail,
    /// Copy it from a directory.
    Fetch,
    /// Build it on this host.
    Rebuild,
}

/// A default configuration, with a comment for each key.
pub fn default(name: &str) -> String {
    CONF.replace("@NAME", &format!("@{name}"))
}

/// Parses a configuration. The error names the wrong line.
pub fn parse(text: &str) -> Result<Conf, String> {
    let mut conf = Conf::default();
    for assignment in assignments(text) {
        let assignment = assignment?;
        let value = assignment.value;
        let wrong = |why: &str| assignment.wrong(why);
        let words = || value.split_whitespace().map(String::from).collect();
        let text = || Some(value.to_string()).filter(|value| !value.is_empty());
        let path = || match value.is_empty() || value.starts_with('/') {
            true => Ok(PathBuf::from(value)),
            false => Err(wrong("expected an absolute path")),
        };
        match assignment.key {
            "OPTIONS" => conf.options = words(),
            "GLOBALS" => conf.globals = words(),
            "OUTPUT" => conf.output = text(),
            "ROTATE" => conf.rotate = text(),
            "METRICS" => conf.metrics = words(),
            "DIRECTORY" => conf.directory = path()?,
            "SCRIPT" => conf.script = path()?,
            "BUILD_OPTIONS" => conf.build_options = words(),
            "EARLY" => {
                conf.early = match value {
                    "yes" => true,
                    "" | "no" => false,
                    _ => return Err(wrong("it is yes or no")),
                }
            }
            "START" => {
                conf.start = match value {
                    "" | "root" => None,
                    "spilesys" => Some(Rank::Sys),
                    "spileusr" => Some(Rank::Usr),
                    _ => return Err(wrong("it is root, spilesys or spileusr")),
                }
            }
            "MISSING" => {
                conf.missing = match value {
                    "" | "fail" => MissingAction::Fail,
                    "fetch" => MissingAction::Fetch,
                    "rebuild" => MissingAction::Rebuild,
                    _ => return Err(wrong("it is fail, fetch or rebuild")),
                }
            }
            _ => return Err(wrong("no such key")),
        }
    }
    match conf.missing {
        MissingAction::Fetch if conf.directory.as_os_str().is_empty() => {
            Err("MISSING=fetch needs a DIRECTORY".to_string())
        }
        MissingAction::Rebuild if conf.script.as_os_str().is_empty() => {
            Err("MISSING=rebuild needs a SCRIPT".to_string())
        }
        _ => Ok(conf),
    }
}

impl Conf {
    /// The destination of the output, for a new session and for an attached one.
    pub fn output_options(&self) -> Vec<String> {
        let pairs =
            [("-o", self.output.as_slice()), ("-S", self.rotate.as_slice()), ("--metrics", self.metrics.as_slice())];
        pairs
            .into_iter()
            .flat_map(|(option, values)| values.iter().flat_map(move |value| [option.to_string(), value.clone()]))
            .collect()
    }

    /// Whether the configuration could run the module; what depends on the host is checked at start.
    pub fn suits(&self, meta: &Meta) -> Result<(), String> {
        const MODULE: &str = "MODULE";
        let words = ["spilerun", "--keep", "--append"].map(String::from).into_iter().chain(self.output_options());
        let words = words.chain(self.options.iter().cloned()).chain([MODULE.to_string()]);
        let options = Options::parse(words.map(OsString::from)).map_err(|error| first_line(&error))?;
        if options.task != Task::Run(MODULE.into()) || options.detach || options.daemon {
            return Err(format!(
                "OPTIONS={}: the service manager runs it, and says which module",
                self.options.join(" ")
            ));
        }
        crate::safety::check::gate_fits(&options.gate, meta).map_err(|error| error.to_string())?;
        setting::parse(&self.globals, &meta.settings).map(drop).map_err(|error| error.to_string())
    }
}

/// The message about a wrong command line, on one line and without the help text.
pub fn first_line(error: &clap::Error) -> String {
    if !error.use_stderr() {
        return "-h and -V only tell something".to_string();
    }
    let text = error.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let line = lines.join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_in_configurations_name_the_line() {
        assert_eq!(parse(CONF).unwrap().build_options, ["-g"]);
        assert_eq!(parse("\nX=1\n"), Err("line 2: no such key: X=1".to_string()));
        assert!(parse("MISSING=maybe").is_err() && parse("MISSING").is_err() && parse("EARLY=1").is_err());
        assert_eq!(
            (parse("START=root").unwrap().start, parse("START=spileusr").unwrap().start),
            (None, Some(Rank::Usr))
        );
        assert!(parse("START=anybody").is_err());
        assert!(parse("MISSING=fetch").is_err() && parse("MISSING=rebuild\nSCRIPT=fix.stp").is_err());
        assert!(parse("MISSING=fetch\nDIRECTORY=/srv/modules").is_ok());
    }

    #[test]
    fn unsuitable_options_are_found_before_the_start() {
        let suits = |text: &str| parse(text).unwrap().suits(&Meta::default());
        assert!(suits("OPTIONS=-s 3 -v\nOUTPUT=/var/log/x\nROTATE=3").is_ok());
        assert!(suits("OPTIONS=--nonsense").unwrap_err().contains("--nonsense"));
        for options in ["-L", "-h", "-A x", "-d x", "status", "other.ko", "--dry-run", "-D"] {
            let error = suits(&format!("OPTIONS={options}")).unwrap_err();
            assert!(!error.is_empty() && !error.contains('\n'), "{options}: {error}");
        }
        let guru = Meta { guru: true, ungated: vec!["syslog".into()], ..Meta::default() };
        let suits_guru = |text: &str| parse(text).unwrap().suits(&guru);
        assert!(suits_guru("OPTIONS=--dry-run").is_err() && suits_guru("OPTIONS=--dry-run --harmless-c").is_ok());
        assert!(suits("ROTATE=3").is_err() && suits("GLOBALS=x=1").is_err());
    }
}
