// SPDX-License-Identifier: GPL-2.0-or-later

//! Memory of the arrays and aggregates of a module: `spile_map_layout()` in runtime-c/map.c lays them out, and
//! all of it is taken when the module is loaded, but what CPUs take for themselves as they use elements.

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

/// Elements of which a CPU's parts are one piece of memory (`SPILE_GROUP`, runtime-c/parts.h).
const GROUP: u64 = 8;
/// `BLOCK_BYTES`, `BLOCK_SHARE`, `RESERVE_SHARE` and `RESERVE_OF_CPU` of runtime-c/parts_fill.c.
const BLOCK: u64 = 64 << 10;
const BLOCK_SHARE: u64 = 4;
const RESERVE_SHARE: u64 = 8;
const RESERVE_OF_CPU: u64 = 2;

/// Groups of elements for which each CPU has parts, as it uses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Groups {
    count: u64,
    bytes: u64,
}

impl Groups {
    /// Those that are ready at the start, with their places in the ring, as `spile_reserve_bytes()` (runtime-c/parts_fill.c).
    fn reserve(self, cpus: u64) -> u64 {
        let block = (BLOCK / self.bytes.max(1)).clamp(1, (self.count / BLOCK_SHARE).max(1));
        let wanted = (self.count / RESERVE_SHARE).max(RESERVE_OF_CPU.saturating_mul(cpus)).max(2 * block);
        wanted.next_power_of_two().saturating_mul(self.bytes + 8)
    }
}

/// Memory of arrays, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// For all CPUs together.
    shared: u64,
    /// For each possible CPU.
    each_cpu: u64,
    /// What CPUs take as they use it.
    groups: Vec<Groups>,
}

impl Bytes {
    /// At the start, on a machine with that many possible CPUs.
    pub fn on(&self, cpus: u64) -> u64 {
        let start = self.shared.saturating_add(self.each_cpu.saturating_mul(cpus));
        self.groups.iter().map(|groups| groups.reserve(cpus)).fold(start, u64::saturating_add)
    }

    /// What a CPU takes more if it uses all elements.
    pub fn more_for_a_cpu(&self) -> u64 {
        self.groups.iter().map(|groups| groups.count.saturating_mul(groups.bytes)).fold(0, u64::saturating_add)
    }

    fn and(mut self, more: Bytes) -> Bytes {
        self.shared = self.shared.saturating_add(more.shared);
        self.each_cpu = self.each_cpu.saturating_add(more.each_cpu);
        self.groups.extend(more.groups);
        self
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
    maps.fold(Bytes { shared: kept, ..Bytes::default() }, Bytes::and)
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
        return Bytes { each_cpu: own, ..Bytes::default() };
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
    let groups = Some(Groups { count: entries / GROUP + 1, bytes: GROUP * own }).filter(|groups| groups.bytes > 0);
    // Aggregates have a part that all CPUs have in common.
    let common = groups.filter(|_| !map.counted).map_or(0, |groups| groups.count * groups.bytes);
    // Element 0 is unused.
    Bytes {
        shared: 64 * stripes + element * (entries + 1) + 4 * entries.next_power_of_two().max(buckets) + common,
        each_cpu: groups.map_or(0, |groups| 8 * groups.count),
        groups: groups.into_iter().collect(),
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
        let shared = |shared| Bytes { shared, ..Bytes::default() };
        let numbers = map(&[Type::Long], Contents::Value(Type::Long), 2048, false);
        assert_eq!(of_map(&numbers, 512), shared(48 * 2049 + 4 * 2048));
        // 64 stripes, each with a line of buckets.
        let striped = Map { striped: Some(0), ..map(&[Type::Long], Contents::Value(Type::Long), 100, false) };
        assert_eq!(of_map(&striped, 512), shared(64 * 64 + 48 * 101 + 64 * 64));
        let counted = of_map(&map(&[Type::String], Contents::Value(Type::Long), 3, true), 512);
        let groups = vec![Groups { count: 1, bytes: 8 * 16 }];
        assert_eq!(counted, Bytes { shared: (32 + 520 + 8) * 4 + 16, each_cpu: 8, groups });
        assert_eq!(counted.on(256), 560 * 4 + 16 + 8 * 256 + 512 * (128 + 8));
        assert_eq!(counted.more_for_a_cpu(), 128);
    }

    #[test]
    fn large_aggregates_take_little_for_each_cpu() {
        let log = Contents::Stats(Stats { variance: false, shift: 0, histogram: Some(Histogram::Log) });
        let bytes = of_map(&map(&[Type::Long], log, 2048, false), 512);
        let all = 257 * 8 * (48 + 1024);
        assert_eq!(bytes.more_for_a_cpu(), all);
        let start = 48 * 2049 + 4 * 2048 + all;
        assert_eq!(bytes.on(2), start + 2 * 257 * 8 + 32 * (8 * 1072 + 8));
        assert_eq!(bytes.on(256), start + 256 * 257 * 8 + 512 * (8 * 1072 + 8));
    }

    #[test]
    fn texts_outside_of_elements() {
        assert_eq!(of_kept(4096, 100), 4 * 4 + 4096 + 120);
        assert_eq!(of_kept(4097, 100), 8 * 4 + 4097 + 120);
    }

    #[test]
    fn aggregates() {
        let log = Contents::Stats(Stats { variance: true, shift: 0, histogram: Some(Histogram::Log) });
        assert_eq!(of_map(&map(&[], log, 1, false), 512), Bytes { each_cpu: 48 + 24 + 1024, ..Bytes::default() });
        let linear = Some(Histogram::Linear { low: 0, high: 100, width: 10 });
        let linear = Contents::Stats(Stats { variance: false, shift: 0, histogram: linear });
        assert_eq!(of_map(&map(&[Type::Long], linear, 1, false), 512).more_for_a_cpu(), (48 + 8 * 13) * 8);
    }
}
