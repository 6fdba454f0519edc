// SPDX-License-Identifier: GPL-2.0-or-later

//! The counters of a probe in a recording: an object as of `--stats=json` (`report/account.rs` of the loader).

use serde_json::Value;

/// A counter by its name; 0 if it is not there.
pub fn number(probe: &Value, name: &str) -> u64 {
    probe.get(name).and_then(Value::as_u64).unwrap_or(0)
}

/// Hits that no handler has seen, and records that were lost.
pub fn missed(probe: &Value) -> u64 {
    let names = ["nested", "locked", "low_stack", "sampled", "returns_missed", "records_lost"];
    names.iter().map(|name| number(probe, name)).fold(0, u64::saturating_add)
}

/// Cycles of a run of the handler, on average; 0: none was timed.
pub fn cycles(probe: &Value) -> u64 {
    probe.get("cycles").map_or(0, |cycles| number(cycles, "avg"))
}

#[cfg(test)]
mod tests {
    use spile_abi::device::Counters;
    use spile_abi::meta::Probe;
    use spilerun::report::account;

    use super::*;

    #[test]
    fn the_names_are_those_that_the_loader_writes() {
        let probe = Probe { point: "end".into(), ..Probe::default() };
        let counters = Counters {
            hits: 1 << 20,
            nested: 1,
            lock_skipped: 2,
            low_stack: 4,
            sampled: 8,
            return_misses: 16,
            lost_records: 32,
            ..Counters::default()
        };
        let json: Value = serde_json::from_str(&account::json_list(&[probe], &[counters])).unwrap();
        assert_eq!((number(&json[0], "hits"), missed(&json[0])), (1 << 20, 63));
    }
}
