// SPDX-License-Identifier: GPL-2.0-or-later

//! Arrays, aggregates and `foreach`.

use super::{Writer, memory};
use crate::plan::code::{Key, LocationId, Loop, MapOp, MapRef};
use crate::plan::{Map, Storage};
use crate::program::{Extractor, Order, SortBy};

impl Writer<'_> {
    /// Writes an operation on an array or aggregate; `keys` are as many as it has, or none.
    pub(super) fn map(&mut self, map: &MapRef, keys: &[Key], op: &MapOp) {
        if let [Key::Held(held)] = keys {
            return self.held(map, *held, op);
        }
        let any = any_bits(keys);
        let what = format!("c, &{}, {}", map.symbol, self.keys(keys));
        let line = match op {
            MapOp::Long(to) => format!("{} = spile_map_long({what});", self.long(*to)),
            MapOp::Text(buffer, to) => {
                let call = format!("spile_string_copy({}, spile_map_text({what}))", memory(*buffer));
                return self.set_text(*to, *buffer, &call);
            }
            MapOp::Has(to) => format!("{} = spile_map_has({what}, {any});", self.long(*to)),
            MapOp::SetLong(value) => format!("spile_map_set_long({what}, {});", self.value(value)),
            MapOp::SetText(text) => format!("spile_map_set_text({what}, {});", self.text(text)),
            MapOp::Add(to, value) => {
                let (to, value) = (self.long(*to), self.value(value));
                match keys {
                    [Key::Long(key)] if !map.counted => {
                        format!("{to} = spile_map_add_one(c, &{}, {}, {value});", map.symbol, self.value(key))
                    }
                    _ => format!("{to} = spile_map_add({what}, {value});"),
                }
            }
            MapOp::Count(value) => {
                let (map, value) = (&map.symbol, self.value(value));
                match keys {
                    [Key::Long(key)] => format!("spile_map_count_long(c, &{map}, {}, {value});", self.value(key)),
                    [Key::TaskName] => format!("spile_map_count_execname(c, &{map}, {value});"),
                    [Key::Text(key)] => format!("spile_map_count_text(c, &{map}, {}, {value});", self.text(key)),
                    _ => format!("spile_map_count({what}, {value});"),
                }
            }
            MapOp::Delete => format!("spile_map_delete({what}, {any});"),
            MapOp::Clear => format!("spile_map_clear(c, &{});", map.symbol),
            MapOp::Feed(value) => {
                let (map, value) = (&map.symbol, self.value(value));
                match keys {
                    [] if self.is_fed_in_place(map) => {
                        let function = if self.stores_results(map) { "spile_feed" } else { "spile_feed_sum" };
                        format!("{function}(c, place_{map}, {value});")
                    }
                    [] => format!("spile_stats_feed(c, &{map}, {value});"),
                    [Key::Long(key)] => format!("spile_stats_add_long(c, &{map}, {}, {value});", self.value(key)),
                    [Key::TaskName] => format!("spile_stats_add_execname(c, &{map}, {value});"),
                    [Key::Text(key)] => format!("spile_stats_add_text(c, &{map}, {}, {value});", self.text(key)),
                    _ => format!("spile_stats_add({what}, {value});"),
                }
            }
            MapOp::Extract(to, extractor) => {
                format!("{} = spile_stats_get({what}, {});", self.long(*to), extractor_name(*extractor))
            }
            MapOp::Bucket(to, index) => {
                format!("{} = spile_histogram_bucket({what}, {});", self.long(*to), self.value(index))
            }
            MapOp::HasBucket(to, index) => {
                format!("{} = spile_histogram_has({what}, {});", self.long(*to), self.value(index))
            }
        };
        self.line(&line);
    }

    /// An operation on a held element. Only arrays of numbers and strings are held.
    fn held(&mut self, map: &MapRef, held: u32, op: &MapOp) {
        let element = format!("&c->held[{held}]");
        let what = format!("c, &{}, {element}", map.symbol);
        let line = match op {
            MapOp::Long(to) => format!("{} = spile_held_long({element});", self.long(*to)),
            MapOp::Text(buffer, to) => {
                let call = format!("spile_string_copy({}, spile_held_text({element}))", memory(*buffer));
                return self.set_text(*to, *buffer, &call);
            }
            MapOp::Has(to) => format!("{} = spile_held_has({element});", self.long(*to)),
            MapOp::SetLong(value) => format!("spile_held_set_long({what}, {});", self.value(value)),
            MapOp::SetText(text) => format!("spile_held_set_text({what}, {});", self.text(text)),
            MapOp::Add(to, value) => {
                format!("{} = spile_held_add({what}, {});", self.long(*to), self.value(value))
            }
            MapOp::Delete => format!("spile_held_delete(&{}, {element});", map.symbol),
            MapOp::Clear
            | MapOp::Count(_)
            | MapOp::Feed(_)
            | MapOp::Extract(..)
            | MapOp::Bucket(..)
            | MapOp::HasBucket(..) => {
                // The plan has none (InternalError); if one occurred here the C would not compile.
                "_Static_assert(0, \"internal error: not for a held element\");".into()
            }
        };
        self.line(&line);
    }

    /// Leaves the routine if the stripe cannot be taken.
    pub(super) fn hold(&self, held: u32, map: &MapRef, keys: &[Key], drops: bool) -> String {
        let what = format!("c, &{}, &c->held[{held}]", map.symbol);
        match keys {
            _ if drops => format!("spile_map_hold_wrapping({what}, {})", self.keys(keys)),
            [Key::Long(key)] => format!("spile_map_hold_long({what}, {})", self.value(key)),
            _ => format!("spile_map_hold({what}, {})", self.keys(keys)),
        }
    }

    /// Takes stripes by this call. late: as in [`Instr::Hold`](crate::plan::code::Instr).
    pub(super) fn take(&mut self, call: &str, late: Option<LocationId>) {
        let Some(location) = late else {
            self.line(&format!("if (spile_unlikely(!{call})) goto out;"));
            return;
        };
        self.locate(location);
        self.line("c->late = 1;");
        self.line(&format!("if (spile_unlikely(!{call})) {{ c->late = 0; goto out; }}"));
        self.line("c->late = 0;");
    }

    fn is_fed_in_place(&self, symbol: &str) -> bool {
        self.stored(symbol).is_some_and(Map::is_fed_in_place)
    }

    fn stores_results(&self, symbol: &str) -> bool {
        self.stored(symbol).is_some_and(|map| map.ends)
    }

    fn stored(&self, symbol: &str) -> Option<&Map> {
        let mut globals = self.plan.globals.iter();
        globals.find_map(|global| match &global.storage {
            Storage::Map(map) if *global.symbol == *symbol => Some(map),
            _ => None,
        })
    }

    /// Writes a `foreach` loop with its body.
    pub(super) fn foreach(&mut self, foreach: &Loop) {
        let number = foreach.iterator.0;
        let (sort, descending) = match foreach.sort {
            None => ("SPILE_SORT_NONE".to_string(), 0),
            Some((by, order)) => {
                let by = match by {
                    SortBy::Key(key) => key.to_string(),
                    SortBy::Value => "SPILE_SORT_VALUE".into(),
                    SortBy::Extractor(extractor) => format!("SPILE_SORT_EXTRACTOR + {}", extractor_name(extractor)),
                };
                (by, i32::from(order == Order::Descending))
            }
        };
        let limit = foreach.limit.as_ref().map_or("-1".into(), |limit| format!("spile_limit({})", self.value(limit)));
        let iterator = self.routine.iterators[foreach.iterator.index()];
        let order = if iterator.order > 0 { format!("f->o{number}") } else { "SPILE_NONE".into() };
        self.locate(foreach.location);
        let what = format!("c, &i{number}, &{}, {}", foreach.map.symbol, self.keys(&foreach.keys));
        if foreach.histogram {
            self.line(&format!(
                "spile_iterate_histogram({what}, {sort}, {descending}, {limit}, {order}, f->n{number});"
            ));
        } else {
            let any = any_bits(&foreach.keys);
            self.line(&format!("spile_iterate({what}, {any}, {sort}, {descending}, {limit}, {order});"));
        }
        self.line(&format!("while (spile_next(&i{number})) {{"));
        self.nested(&foreach.body);
        self.line("}");
    }

    /// Call for key `key` of the iterator's element, or for its value: `spile_iterator_OF_KEY` or `_OF_VALUE`.
    pub(super) fn iterated(iterator: u32, key: Option<u32>, of_key: &str, of_value: &str) -> String {
        match key {
            Some(key) => format!("spile_iterator_{of_key}(&i{iterator}, {key})"),
            None => format!("spile_iterator_{of_value}(&i{iterator})"),
        }
    }
}

/// Bit I: key I is `*`.
fn any_bits(keys: &[Key]) -> u32 {
    keys.iter().enumerate().fold(0, |bits, (index, key)| bits | u32::from(*key == Key::Any) << index)
}

fn extractor_name(extractor: Extractor) -> &'static str {
    match extractor {
        Extractor::Count => "SPILE_COUNT",
        Extractor::Sum => "SPILE_SUM",
        Extractor::Min => "SPILE_MIN",
        Extractor::Max => "SPILE_MAX",
        Extractor::Average => "SPILE_AVERAGE",
        Extractor::Variance => "SPILE_VARIANCE",
    }
}
