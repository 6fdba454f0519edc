// SPDX-License-Identifier: GPL-2.0-or-later

//! `--time-report`: where the time of a run went.

use std::time::Duration;

use clap::ValueEnum;

/// How `--time-report` prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// A table
    Table,
    /// One object on one line
    Json,
}

/// Stages in their order; a stage with a `/` in its name is a part of the one before that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    stages: Vec<(String, Duration)>,
}

impl Report {
    /// Adds a stage, with the time that it took.
    pub fn add(&mut self, stage: impl Into<String>, took: Duration) {
        self.stages.push((stage.into(), took));
    }

    /// Text of the report: `total` is the elapsed time, `processor` the CPU time with that of the programs that were run,
    /// `peak` the most memory in KiB, without theirs.
    pub fn text(&self, form: Form, total: Duration, processor: Duration, peak: u64) -> String {
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        match form {
            Form::Table => {
                let line = |(name, took): &(String, Duration)| {
                    let indented = name.rsplit_once('/').map_or_else(|| name.clone(), |(_, part)| format!("  {part}"));
                    format!("{indented:24} {:>9.1} ms\n", ms(*took))
                };
                let lines: String = self.stages.iter().map(line).collect();
                format!(
                    "{lines}{:24} {:>9.1} ms, {:.0} ms on CPUs, {} MiB\n",
                    "total",
                    ms(total),
                    ms(processor),
                    peak / 1024
                )
            }
            Form::Json => {
                let stage = |(name, took): &(String, Duration)| {
                    format!("{{\"name\":{},\"ms\":{:.3}}}", quoted(name), ms(*took))
                };
                let stages: Vec<String> = self.stages.iter().map(stage).collect();
                format!(
                    "{{\"stages\":[{}],\"total_ms\":{:.3},\"cpu_ms\":{:.0},\"peak_kib\":{peak}}}\n",
                    stages.join(","),
                    ms(total),
                    ms(processor)
                )
            }
        }
    }
}

fn quoted(text: &str) -> String {
    let escaped: String = text
        .chars()
        .flat_map(|c| if matches!(c, '"' | '\\') { vec!['\\', c] } else { vec![c] })
        .filter(|c| !c.is_control())
        .collect();
    format!("\"{escaped}\"")
}

/// Largest resident memory of this process so far, in KiB (proc_pid_status(5)). Not getrusage(2), which also counts
/// what the process had before it became this program: the memory of the one that started it. 0: not known.
pub fn peak_memory() -> u64 {
    std::fs::read_to_string("/proc/self/status").ok().as_deref().and_then(peak_in).unwrap_or(0)
}

fn peak_in(status: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix(" kB")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms() {
        let mut report = Report::default();
        report.add("parse", Duration::from_micros(1250));
        report.add("build", Duration::from_millis(50));
        report.add("build/gcc-12", Duration::from_millis(22));
        let (total, processor, peak) = (Duration::from_millis(60), Duration::from_millis(52), 20 << 10);
        let table = "parse                          1.2 ms\nbuild                         50.0 ms\n  gcc-12                      22.0 ms\ntotal                         60.0 ms, 52 ms on CPUs, 20 MiB\n";
        assert_eq!(report.text(Form::Table, total, processor, peak), table);
        let json = "{\"stages\":[{\"name\":\"parse\",\"ms\":1.250},{\"name\":\"build\",\"ms\":50.000},{\"name\":\"build/gcc-12\",\"ms\":22.000}],\"total_ms\":60.000,\"cpu_ms\":52,\"peak_kib\":20480}\n";
        assert_eq!(report.text(Form::Json, total, processor, peak), json);
        assert_eq!(quoted("a\"\\\n"), "\"a\\\"\\\\\"");
    }
}
