//! `spilerun status NAME`: what a loaded module has done, as a table, JSON or Prometheus text. Read beside its loader.

use std::fmt::Write;

use spile_abi::device::{Counters, GateState, Info, OBSERVE, State, Verdict};
use spile_abi::meta::Meta;

use crate::gate;
use crate::report;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Table,
    Json,
    Prometheus,
}

/// All that is known of a module.
pub struct Known<'k> {
    pub name: &'k str,
    pub meta: &'k Meta,
    pub info: Info,
    pub gate: GateState,
    /// By probe.
    pub counters: &'k [Counters],
}

const VERDICTS: [(&str, Verdict); 5] = [
    ("rewritten", Verdict::Rewritten),
    ("observed", Verdict::Observed),
    ("expired", Verdict::Expired),
    ("out_of_scope", Verdict::OutOfScope),
    ("limited", Verdict::Limited),
];

impl Known<'_> {
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
            Some(State::Stopped) => "stopped",
            None => "unknown",
        }
    }

    fn mode(&self) -> &'static str {
        let expires = self.gate.gate.expires;
        match self.gate.gate.mode {
            _ if expires > 0 && gate::now() >= expires => "expired",
            OBSERVE => "observe",
            _ => "enforce",
        }
    }

    fn verdicts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        VERDICTS.iter().map(|(name, verdict)| (*name, self.gate.counts.get(*verdict as usize).copied().unwrap_or(0)))
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
            let counts: Vec<String> = self.verdicts().map(|(name, count)| format!("{} {count}", name.replace('_', " "))).collect();
            let _ = writeln!(text, "rewrites: mode {}, {}", self.mode(), counts.join(", "));
        }
        for (probe, counters) in self.meta.probes.iter().zip(self.counters) {
            let armed = if counters.armed > 0 { "armed " } else { "" };
            let _ = writeln!(text, "  {armed}{}", report::account(probe, counters));
        }
        text
    }

    fn json(&self) -> String {
        let probes = self.meta.probes.iter().zip(self.counters).map(|(probe, counters)| {
            format!(
                "{{\"point\":{},\"place\":{},\"armed\":{},\"hits\":{},\"handled\":{},\"nested\":{},\"lock_skipped\":{},\"low_stack\":{},\"errors\":{},\"return_misses\":{}}}",
                quoted(&probe.point), quoted(&probe.place), counters.armed, counters.hits, counters.handled, counters.nested,
                counters.lock_skipped, counters.low_stack, counters.errors, counters.return_misses
            )
        });
        let probes: Vec<String> = probes.collect();
        let verdicts: Vec<String> = self.verdicts().map(|(name, count)| format!("\"{name}\":{count}")).collect();
        format!(
            "{{\"name\":{},\"script\":{},\"kernel\":{},\"state\":\"{}\",\"guru\":{},\"mode\":\"{}\",\"expires_ns\":{},\"errors\":{},\"skipped\":{},\"memory_bytes\":{},\"rewrites\":{{{}}},\"probes\":[{}]}}\n",
            quoted(self.name), quoted(&self.meta.title), quoted(&self.meta.kernel_release), self.state(), self.meta.guru,
            self.mode(), self.gate.gate.expires, self.info.errors, self.info.skipped, self.info.memory_bytes,
            verdicts.join(","), probes.join(",")
        )
    }

    /// Text format 0.0.4, for node_exporter's textfile collector.
    fn prometheus(&self) -> String {
        let module = quoted(self.name);
        let mut text = String::new();
        let mut family = |name: &str, kind: &str, help: &str, values: &mut dyn Iterator<Item = (String, u64)>| {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            values.for_each(|(labels, value)| {
                let _ = writeln!(text, "{name}{{module={module}{labels}}} {value}");
            });
        };
        let one = |value: u64| std::iter::once((String::new(), value));
        let running = State::from_number(self.info.state) == Some(State::Running);
        family("spile_running", "gauge", "Whether the script's probes are armed.", &mut one(running.into()));
        family("spile_errors_total", "counter", "Run-time errors.", &mut one(self.info.errors.into()));
        family("spile_skipped_total", "counter", "Handler runs skipped.", &mut one(self.info.skipped.into()));
        family("spile_memory_bytes", "gauge", "Memory of the module.", &mut one(self.info.memory_bytes));
        let rewrites = self.verdicts().map(|(name, count)| (format!(",verdict=\"{name}\""), count));
        family("spile_rewrites_total", "counter", "Writes of a guru script by what became of them.", &mut { rewrites });
        let probes = || self.meta.probes.iter().zip(self.counters).enumerate();
        let labels = |index: usize, point: &str| format!(",probe=\"{index}\",point={}", quoted(point));
        let hits = probes().map(|(index, (probe, counters))| (labels(index, &probe.point), counters.hits));
        family("spile_probe_hits_total", "counter", "Hits of a probe.", &mut { hits });
        let handled = probes().map(|(index, (probe, counters))| (labels(index, &probe.point), counters.handled));
        family("spile_probe_handled_total", "counter", "Hits whose handler ran.", &mut { handled });
        text
    }
}

/// In quotes, as JSON and Prometheus have it.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            // Neither has a meaning for the others in names of probes.
            control if control.is_control() => out.push('?'),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use spile_abi::meta::Probe;

    fn texts() -> [String; 3] {
        let probe = Probe { point: "kernel.function(\"a\").return".into(), place: "a.stp:1:1".into(), ..Probe::default() };
        let meta = Meta { title: "a.stp".into(), kernel_release: "6.1".into(), guru: true, probes: vec![probe], ..Meta::default() };
        let counters = [Counters { armed: 1, hits: 5, handled: 5, ..Counters::default() }];
        let gate = GateState { counts: [3, 2, 0, 0, 0], ..GateState::default() };
        let info = Info { state: State::Running as u32, memory_bytes: 4096, ..Info::default() };
        let known = Known { name: "a", meta: &meta, info, gate, counters: &counters };
        [Form::Table, Form::Json, Form::Prometheus].map(|form| known.text(form))
    }

    #[test]
    fn the_table_has_every_probe_and_what_became_of_writes() {
        let [table, ..] = texts();
        assert_eq!(
            table,
            "a (a.stp) for 6.1: running, 0 errors, 0 skipped, 4 KB\n\
             rewrites: mode enforce, rewritten 3, observed 2, expired 0, out of scope 0, limited 0\n  \
             armed kernel.function(\"a\").return (a.stp:1:1): hits 5 = handled 5\n"
        );
    }

    #[test]
    fn machines_read_the_same() {
        let [_, json, prometheus] = texts();
        assert!(json.contains("\"rewrites\":{\"rewritten\":3,\"observed\":2,"), "{json}");
        assert!(json.contains("\"point\":\"kernel.function(\\\"a\\\").return\""), "{json}");
        assert!(prometheus.contains("spile_rewrites_total{module=\"a\",verdict=\"observed\"} 2\n"), "{prometheus}");
        assert!(prometheus.contains("spile_probe_hits_total{module=\"a\",probe=\"0\",point=\"kernel.function(\\\"a\\\").return\"} 5\n"));
    }
}
