// SPDX-License-Identifier: GPL-2.0-or-later

//! Memory of the arrays and aggregates of a module: `spile_map_layout()` in runtime-c/map.c lays them out, and
//! all of it is taken when the module is loaded.

use super::locking;
use super::{Map, Plan, Storage};
use crate::program::{Contents, Histogram, MAX_BUCKETS, Stats, Type};

/// `struct spile_element` (runtime-c/map.h).
const ELEMENT: u64 = 32;
/// `struct spile_share` (runtime-c/counts.h).
const SHARE: u64 = 16;
/// `struct spile_stats` and `struct spile_squares` (runtime-c/stats.h).
const STATS: u64 = 48;
const SQUARES: u64 = 24;

/// Memory of arrays, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// For all CPUs together.
    pub shared: u64,
    /// For each possible CPU.
    pub each_cpu: u64,
}

impl Bytes {
    /// On a machine with that many possible CPUs.
    pub fn on(self, cpus: u64) -> u64 {
        self.shared.saturating_add(self.each_cpu.saturating_mul(cpus))
    }
}

/// The memory of the arrays and aggregates of a plan.
pub fn of(plan: &Plan) -> Bytes {
    let limits = &plan.info.limits;
    let kept = limits.slot_bytes.and(limits.kept_bytes).map_or(0, |bytes| of_kept(bytes, limits.string_bytes));
    let maps = plan.globals.iter().filter_map(|global| match &global.storage {
        Storage::Map(map) => Some(of_map(map, limits.slot_bytes.unwrap_or(limits.string_bytes))),
        Storage::Variable { .. } => None,
    });
    maps.fold(Bytes { shared: kept, each_cpu: 0 }, |sum, map| Bytes {
        shared: sum.shared.saturating_add(map.shared),
        each_cpu: sum.each_cpu.saturating_add(map.each_cpu),
    })
}

/// As `spile_kept_bytes()` (runtime-c/kept_text.c).
fn of_kept(bytes: u32, string_bytes: u32) -> u64 {
    let buckets = u64::from(bytes.div_ceil(1024)).next_power_of_two().clamp(2, 1 << 20);
    4 * buckets + u64::from(bytes) + 12 + u64::from(string_bytes) + 8
}

/// `slot_bytes`: of a string in an element.
fn of_map(map: &Map, slot_bytes: u32) -> Bytes {
    let slot = |ty: Type| match ty {
        Type::Long => 8,
        Type::String => (8 + u64::from(slot_bytes)).next_multiple_of(8),
    };
    let own = match map.contents {
        Contents::Stats(stats) => stats_bytes(stats),
        Contents::Value(_) if map.counted => SHARE,
        Contents::Value(_) => 0,
    };
    if map.keys.is_empty() {
        return Bytes { shared: 0, each_cpu: own };
    }
    let entries = u64::from(map.entries);
    let value = match map.contents {
        Contents::Value(ty) => slot(ty),
        Contents::Stats(_) => 8,
    };
    let element = ELEMENT + map.keys.iter().map(|&key| slot(key)).sum::<u64>() + value;
    let stripes = map.striped.map_or(0, |_| u64::from(locking::stripes(map.wrap)));
    // A cache line of them for each stripe.
    let buckets = (16 * stripes).max(4);
    // Element 0 is unused.
    Bytes {
        shared: 64 * stripes + element * (entries + 1) + 4 * entries.next_power_of_two().max(buckets),
        each_cpu: own * (entries + 1),
    }
}

fn stats_bytes(stats: Stats) -> u64 {
    let buckets = match stats.histogram {
        None => 0,
        Some(Histogram::Log) => 128,
        Some(Histogram::Linear { low, high, width }) => {
            let range = u64::try_from(high.wrapping_sub(low)).unwrap_or(u64::MAX);
            let inner = u64::try_from(width).ok().and_then(|width| range.checked_div(width)).unwrap_or(u64::MAX);
            inner.saturating_add(3).min(MAX_BUCKETS.into())
        }
    };
    STATS + if stats.variance { SQUARES } else { 0 } + 8 * buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(keys: &[Type], contents: Contents, entries: u32, counted: bool) -> Map {
        Map {
            index: 0,
            name: "a".into(),
            keys: keys.into(),
            contents,
            entries,
            sized: false,
            wrap: false,
            counted,
            striped: None,
            ends: true,
        }
    }

    #[test]
    fn shared_and_on_each_cpu() {
        let numbers = map(&[Type::Long], Contents::Value(Type::Long), 2048, false);
        assert_eq!(of_map(&numbers, 512), Bytes { shared: 48 * 2049 + 4 * 2048, each_cpu: 0 });
        // 64 stripes, each with a line of buckets.
        let striped = Map { striped: Some(0), ..map(&[Type::Long], Contents::Value(Type::Long), 100, false) };
        assert_eq!(of_map(&striped, 512), Bytes { shared: 64 * 64 + 48 * 101 + 64 * 64, each_cpu: 0 });
        let counted = map(&[Type::String], Contents::Value(Type::Long), 3, true);
        assert_eq!(of_map(&counted, 512), Bytes { shared: (32 + 520 + 8) * 4 + 16, each_cpu: 16 * 4 });
        assert_eq!(of_map(&counted, 512).on(256), 560 * 4 + 16 + 64 * 256);
    }

    #[test]
    fn texts_outside_of_elements() {
        assert_eq!(of_kept(4096, 100), 4 * 4 + 4096 + 120);
        assert_eq!(of_kept(4097, 100), 8 * 4 + 4097 + 120);
    }

    #[test]
    fn aggregates() {
        let log = Contents::Stats(Stats { variance: true, shift: 0, histogram: Some(Histogram::Log) });
        assert_eq!(of_map(&map(&[], log, 1, false), 512), Bytes { shared: 0, each_cpu: 48 + 24 + 1024 });
        let linear = Some(Histogram::Linear { low: 0, high: 100, width: 10 });
        let linear = Contents::Stats(Stats { variance: false, shift: 0, histogram: linear });
        assert_eq!(of_map(&map(&[Type::Long], linear, 1, false), 512).each_cpu, (48 + 8 * 13) * 2);
    }
}
