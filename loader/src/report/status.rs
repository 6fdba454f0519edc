// SPDX-License-Identifier: GPL-2.0-or-later

//! `spilerun status NAME`: what a loaded module has done, as a table, JSON or Prometheus text. Runs while its loader
//! runs.

use std::fmt::Write;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use spile_abi::device::{Arming, Counters, GateState, Info, OBSERVE, State};
use spile_abi::meta::{Meta, MetaError};

use crate::error::Error;
use crate::module::device::Device;
use crate::module::file;
use crate::module::gate;
use crate::report::account::{self, quoted};
use crate::report::targets;
use spile_abi::escape;

const NS_PER_S: u64 = 1_000_000_000;

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Table,
    /// One object in one line.
    Json,
    /// Prometheus and OpenMetrics text format.
    Prometheus,
}

/// The status of a module.
pub struct ModuleStatus<'k> {
    /// Name of the module.
    pub name: &'k str,
    /// Description of the module.
    pub meta: &'k Meta,
    /// State and sizes.
    pub info: Info,
    /// Whether the script's writes are done, and until when.
    pub gate: GateState,
    /// Counters of each probe, in the order of the description; of none while `arming` is known.
    pub counters: &'k [Counters],
    /// The probes are being armed or disarmed now: how far that is.
    pub arming: Option<Arming>,
    /// Why probes of modules are not armed, a sentence for each module.
    pub absent: Vec<String>,
}

/// Bytes of a description that contain its head, unless the script has hundreds of targets.
const HEAD_BYTES: usize = 1 << 16;

/// Reads the current status of a module, and as much of its description as that shows.
pub fn ask_loaded(name: &str, device: &Device, form: Form) -> Result<String, Error> {
    let info = device.info()?;
    let path = Path::new(name);
    if shows_progress(&info, form) {
        let mut bytes = device.meta_up_to(HEAD_BYTES, || false)?;
        let head = match file::decode_head(path, &bytes) {
            Err(Error::Meta { error: MetaError::Truncated, .. }) => {
                bytes.extend(device.meta(|| false)?);
                file::decode_head(path, &bytes)
            }
            decoded => decoded,
        };
        return text(name, &head?, info, device, form);
    }
    text(name, &file::decode_probes(path, &device.meta(|| false)?)?, info, device, form)
}

/// Reads the module's current status.
pub fn ask(name: &str, meta: &Meta, device: &Device, form: Form) -> Result<String, Error> {
    text(name, meta, device.info()?, device, form)
}

/// Whether the status is that of probes that are being armed or disarmed. Thousands have no hits before all are armed; who
/// asks then is waiting, and needs an answer at once.
fn shows_progress(info: &Info, form: Form) -> bool {
    let changes = match State::from_number(info.state) {
        Some(State::Starting) => true,
        Some(State::Stopped) => info.armed > 0,
        _ => false,
    };
    changes && form == Form::Table
}

fn text(name: &str, meta: &Meta, info: Info, device: &Device, form: Form) -> Result<String, Error> {
    let arming = shows_progress(&info, form).then(|| device.arming());
    let asked = if arming.is_some() { 0 } else { info.probes };
    let counters = device.counters(asked)?;
    let absent = targets::absent(&meta.targets, Path::new("/sys/module"));
    Ok(ModuleStatus { name, meta, info, gate: device.gate()?, counters: &counters, arming, absent }.text(form))
}

/// Writes Prometheus text to a file atomically, by replacing it.
pub fn write_metrics(name: &str, meta: &Meta, device: &Device, path: &Path) -> Result<(), Error> {
    let text = ask(name, meta, device, Form::Prometheus)?;
    replace(path, &text).map_err(|error| Error::OpenOutput { path: path.to_path_buf(), error })
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    // Do not replace a device.
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    // Another user may own the directory and could have placed a link there: only create a new file.
    let _ = fs::remove_file(&new);
    let file = fs::OpenOptions::new().write(true).create_new(true).open(&new);
    // Whatever the umask: those who collect it are other users.
    let readable = |file: fs::File| file.set_permissions(fs::Permissions::from_mode(0o644)).map(|()| file);
    let written = file
        .and_then(readable)
        .and_then(|mut file| io::Write::write_all(&mut file, text.as_bytes()))
        .and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // Remove an incomplete file.
        let _ = fs::remove_file(&new);
    }
    written
}

impl ModuleStatus<'_> {
    /// Complete lines only.
    pub fn text(&self, form: Form) -> String {
        match form {
            Form::Table => self.table(),
            Form::Json => self.json(),
            Form::Prometheus => self.prometheus(),
        }
    }

    fn state(&self) -> &'static str {
        match State::from_number(self.info.state) {
            Some(State::Loaded) => "loaded",
            Some(State::Ready) => "ready",
            Some(State::Starting) => "starting",
            Some(State::Running) => "running",
            Some(State::Stopping) => "stopping",
            Some(State::Stopped) if self.info.armed > 0 => "disarming",
            Some(State::Stopped) => "stopped",
            None => "unknown",
        }
    }

    fn mode(&self) -> &'static str {
        match self.gate.gate.mode {
            _ if gate::has_expired(&self.gate.gate) => "expired",
            OBSERVE => "observe",
            _ => "enforce",
        }
    }

    /// Outcome of the script's writes, in one line.
    fn rewrites(&self) -> String {
        format!("rewrites: mode {}{}, {}", self.mode(), self.end(), gate::counts(&self.gate))
    }

    /// How long rewriting will last.
    fn end(&self) -> String {
        match self.gate.gate.expires.saturating_sub(gate::now()) / NS_PER_S {
            0 => String::new(),
            left => format!(" (expires in {} h {:02} min {:02} s)", left / 3600, left / 60 % 60, left % 60),
        }
    }

    /// How far arming or disarming is, in one line.
    fn progress(&self, arming: &Arming) -> String {
        let Info { armed, probes, .. } = self.info;
        if self.state() == "disarming" {
            return format!("{armed} of {probes} probes are still to be disarmed");
        }
        let enabled = match arming.to_enable {
            0 => String::new(),
            all => format!(", {} of {all} kprobes are enabled", arming.enabled),
        };
        let left = match arming.left.div_ceil(1000) {
            0 => String::new(),
            left => format!(", the rest may take {left} s more"),
        };
        format!("{armed} of {probes} probes are prepared{enabled}{left}")
    }

    fn table(&self) -> String {
        let mut text = format!(
            "{} ({}) for {}: {}, {} errors, {} skipped, {} KB\n",
            self.name,
            self.meta.title,
            self.meta.kernel_release,
            self.state(),
            self.info.errors,
            self.info.skipped,
            self.info.memory_bytes >> 10
        );
        if self.meta.guru {
            let _ = writeln!(text, "{}", self.rewrites());
        }
        if let Some(arming) = &self.arming {
            let _ = writeln!(text, "{}", self.progress(arming));
            return text;
        }
        let sites = self.meta.probes.iter().zip(self.counters);
        let armable: Vec<&Counters> =
            sites.filter(|(probe, _)| is_armable(&probe.point)).map(|(_, counters)| counters).collect();
        let armed = armable.iter().filter(|counters| counters.armed > 0).count();
        let _ = writeln!(text, "{armed} of {} probes armed", armable.len());
        if armed < armable.len() {
            self.absent.iter().for_each(|why| {
                let _ = writeln!(text, "  {}", escape::line(why));
            });
        }
        text.push_str(&account::table(&self.meta.probes, self.counters));
        text
    }

    fn json(&self) -> String {
        let verdicts: Vec<String> =
            gate::verdicts(&self.gate).map(|(name, count)| format!("\"{name}\":{count}")).collect();
        format!(
            "{{\"name\":{},\"script\":{},\"kernel\":{},\"state\":\"{}\",\"guru\":{},\"mode\":\"{}\",\"expires_ns\":{},\"errors\":{},\"skipped\":{},\"memory_bytes\":{},\"rewrites\":{{{}}},\"not_armed\":[{}],\"probes\":{}}}\n",
            quoted(self.name),
            quoted(&self.meta.title),
            quoted(&self.meta.kernel_release),
            self.state(),
            self.meta.guru,
            self.mode(),
            self.gate.gate.expires,
            self.info.errors,
            self.info.skipped,
            self.info.memory_bytes,
            verdicts.join(","),
            self.absent.iter().map(|why| quoted(why)).collect::<Vec<_>>().join(","),
            account::json_list(&self.meta.probes, self.counters)
        )
    }

    /// Text format 0.0.4, for the textfile collector of node_exporter.
    fn prometheus(&self) -> String {
        let module = label(self.name);
        let mut text = String::new();
        let mut family = |name: &str, kind: &str, help: &str, values: &mut dyn Iterator<Item = (String, u64)>| {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            values.for_each(|(labels, value)| {
                let _ = writeln!(text, "{name}{{module={module}{labels}}} {value}");
            });
        };
        let one = |value: u64| std::iter::once((String::new(), value));
        let running = State::from_number(self.info.state) == Some(State::Running);
        family("spile_running", "gauge", "Whether the session runs.", &mut one(running.into()));
        family("spile_errors_total", "counter", "Run-time errors.", &mut one(self.info.errors.into()));
        family("spile_skipped_total", "counter", "Handler runs skipped.", &mut one(self.info.skipped.into()));
        family("spile_memory_bytes", "gauge", "Memory of the module.", &mut one(self.info.memory_bytes));
        if self.meta.guru {
            let enforcing = self.mode() == "enforce";
            family(
                "spile_enforcing",
                "gauge",
                "Whether the script's writes are let through.",
                &mut one(enforcing.into()),
            );
            let expires = self.gate.gate.expires / NS_PER_S;
            family("spile_expires_timestamp_seconds", "gauge", "When writing ends; 0: never.", &mut one(expires));
            let rewrites = gate::verdicts(&self.gate).map(|(name, count)| (format!(",verdict=\"{name}\""), count));
            family("spile_rewrites_total", "counter", "Writes of a guru script by what became of them.", &mut {
                rewrites
            });
        }
        let sites = || self.meta.probes.iter().zip(self.counters).enumerate();
        let labels = |index: usize, point: &str| format!(",probe=\"{index}\",point={}", label(point));
        let armed = sites().map(|(index, (probe, counters))| (labels(index, &probe.point), counters.armed.into()));
        family("spile_probe_armed", "gauge", "Whether a probe is armed.", &mut { armed });
        // The same names as in the table of --stats.
        for (column, (name, _)) in account::columns(&Counters::default()).iter().enumerate() {
            let values = sites().map(|(index, (probe, counters))| {
                let count = account::columns(counters).get(column).map_or(0, |(_, count)| *count);
                (labels(index, &probe.point), count)
            });
            let family_name = format!("spile_probe_{}_total", name.replace(' ', "_"));
            family(&family_name, "counter", &format!("Of a probe: {name}."), &mut { values });
        }
        let cycles = sites().map(|(index, (probe, counters))| (labels(index, &probe.point), counters.cycles));
        family("spile_probe_cycles_total", "counter", "CPU cycles of the handler's runs that were timed.", &mut {
            cycles
        });
        let timed = sites().map(|(index, (probe, counters))| (labels(index, &probe.point), counters.timed));
        family("spile_probe_timed_total", "counter", "Runs of the handler that were timed.", &mut { timed });
        text
    }
}

/// A label's value. The format has only three escapes: other control characters are spelled out.
fn label(text: &str) -> String {
    let text = text.split('\n').map(|line| escape::line(line).replace('\\', "\\\\").replace('"', "\\\""));
    format!("\"{}\"", text.collect::<Vec<_>>().join("\\n"))
}

/// begin, end, error and never are not attached.
fn is_armable(point: &str) -> bool {
    let word: String = point.chars().take_while(char::is_ascii_alphabetic).collect();
    !["begin", "end", "error", "never"].contains(&word.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use spile_abi::meta::Probe;

    fn texts() -> [String; 3] {
        let probe =
            Probe { point: "kernel.function(\"a\").return".into(), place: "a.stp:1:1".into(), ..Probe::default() };
        let meta = Meta {
            title: "a.stp".into(),
            kernel_release: "6.1".into(),
            guru: true,
            probes: vec![probe],
            ..Meta::default()
        };
        let counters = [Counters { armed: 1, hits: 5, handled: 5, mechanism: 5, ..Counters::default() }];
        let gate = GateState { counts: [3, 2, 0, 0, 0], ..GateState::default() };
        let info = Info { state: State::Running as u32, memory_bytes: 4096, ..Info::default() };
        let known =
            ModuleStatus { name: "a", meta: &meta, info, gate, counters: &counters, arming: None, absent: Vec::new() };
        [Form::Table, Form::Json, Form::Prometheus].map(|form| known.text(form))
    }

    #[test]
    fn metrics_replace_files_only() {
        let directory = tempfile::tempdir().unwrap();
        let [path, other] = ["fix.prom", "other"].map(|name| directory.path().join(name));
        fs::write(&other, "theirs").unwrap();
        std::os::unix::fs::symlink(&other, directory.path().join("fix.prom.new")).unwrap();
        replace(&path, "one").unwrap();
        replace(&path, "two").unwrap();
        assert_eq!(
            (fs::read_to_string(&path).unwrap(), fs::read_to_string(&other).unwrap()),
            ("two".to_string(), "theirs".to_string())
        );
        assert!(!directory.path().join("fix.prom.new").exists());
        assert!(replace(directory.path(), "x").is_err() && replace(Path::new("/dev/null"), "x").is_err());
        assert!(!Path::new("/dev/null.new").exists());
    }

    #[test]
    fn the_table_has_every_probe_and_the_outcome_of_writes() {
        let [table, ..] = texts();
        assert_eq!(
            table,
            "a (a.stp) for 6.1: running, 0 errors, 0 skipped, 4 KB\n\
             rewrites: mode enforce, rewritten 3, observed 2, expired 0, out of scope 0, limited 0\n\
             1 of 1 probes armed\n\
             hits  handled  cycles min/avg/max  by         probe\n   \
             5        5                   -  kretprobe  kernel.function(\"a\").return (a.stp:1:1)\n"
        );
    }

    #[test]
    fn while_probes_are_armed_or_disarmed_their_number_is_shown() {
        let meta = Meta { title: "a.stp".into(), kernel_release: "6.1".into(), ..Meta::default() };
        let text = |state: State, arming: Arming| {
            let info = Info { state: state as u32, armed: 300, probes: 900, ..Info::default() };
            let gate = GateState::default();
            let known = ModuleStatus {
                name: "a",
                meta: &meta,
                info,
                gate,
                counters: &[],
                arming: Some(arming),
                absent: Vec::new(),
            };
            known.text(Form::Table)
        };
        let arming = Arming { to_enable: 0, enabled: 0, left: 6500 };
        assert_eq!(
            text(State::Starting, arming),
            "a (a.stp) for 6.1: starting, 0 errors, 0 skipped, 0 KB\n\
             300 of 900 probes are prepared, the rest may take 7 s more\n"
        );
        let arming = Arming { to_enable: 200, enabled: 50, left: 0 };
        assert!(text(State::Starting, arming).ends_with("prepared, 50 of 200 kprobes are enabled\n"));
        assert_eq!(
            text(State::Stopped, Arming { to_enable: 0, enabled: 0, left: 0 }),
            "a (a.stp) for 6.1: disarming, 0 errors, 0 skipped, 0 KB\n\
             300 of 900 probes are still to be disarmed\n"
        );
    }

    #[test]
    fn promtool_accepts_the_text() {
        use std::io::Write;
        use std::process::{Command, Stdio};
        let [_, _, text] = texts();
        let text = text.replace("\\\"a\\\"", "\\\"a b\\\\c\\\"");
        let checker = Command::new("promtool")
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        // Part of Debian's package prometheus.
        let Ok(mut checker) = checker else { return println!("skipped: no promtool") };
        checker.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = checker.wait_with_output().unwrap();
        let output_text = [output.stdout, output.stderr].concat();
        assert!(output.status.success() && output_text.is_empty(), "{}\n{text}", String::from_utf8_lossy(&output_text));
    }

    #[test]
    fn labels_have_only_the_escapes_of_the_format() {
        assert_eq!(label("a\"b\\c\nd\u{1}"), "\"a\\\"b\\\\c\\nd\\\\x01\"");
    }

    #[test]
    fn json_and_metrics_agree() {
        let [_, json, prometheus] = texts();
        assert!(json.contains("\"rewrites\":{\"rewritten\":3,\"observed\":2,"), "{json}");
        assert!(json.contains("\"point\":\"kernel.function(\\\"a\\\").return\""), "{json}");
        assert!(prometheus.contains("spile_rewrites_total{module=\"a\",verdict=\"observed\"} 2\n"), "{prometheus}");
        assert!(prometheus.contains(
            "spile_probe_hits_total{module=\"a\",probe=\"0\",point=\"kernel.function(\\\"a\\\").return\"} 5\n"
        ));
    }
}
