// SPDX-License-Identifier: GPL-2.0-or-later

//! Records for the loader, and text that is formatted in the module.

use super::{Writer, memory};
use crate::plan::code::{BufferId, FormatId, ItemsId, LocationId, Part, TableId, TextId, Value};
use spile_abi::format::string_part;

/// No ring has room for a record of this size: the runtime, which adds lengths in 32 bits, will not find any.
const MOST_RECORD: u64 = 1 << 30;

impl Writer<'_> {
    /// Bytes that parts take: constants added up, strings by their length.
    fn room(&self, parts: &[Part], objects: &Value) -> String {
        let mut fixed: u64 = 0;
        let mut terms = Vec::new();
        match objects {
            Value::Const(bytes) => fixed += bytes.unsigned_abs(),
            own => terms.push(format!("(unsigned int){}", self.value(own))),
        }
        for part in parts {
            match part {
                Part::Long(_) => fixed += 8,
                Part::Text(text) => terms.push(format!("SPILE_STRING_PART({})", self.length(text))),
                Part::StoredStack(text) => terms.push(format!("spile_stored_part(c, {})", self.text(text))),
                Part::Memory { most, .. } => fixed += u64::from(string_part(*most)),
                Part::Pretty { .. } => {}
                Part::Items { longs, .. } => fixed += u64::from(*longs) * 8,
                Part::UserStack => fixed += u64::from(string_part(spile_abi::format::STACK_FRAMES * 16)),
                Part::UserFrame(_) => fixed += u64::from(string_part(16)),
                Part::Stack { .. } => fixed += u64::from(string_part(spile_abi::format::STACK_FRAMES * 8)),
                Part::Histogram { buckets, .. } => fixed += u64::from(string_part(buckets * 8)),
            }
        }
        if fixed > 0 || terms.is_empty() {
            terms.push(fixed.min(MOST_RECORD).to_string());
        }
        terms.join(" + ")
    }

    fn put(&mut self, parts: &[Part]) {
        for part in parts {
            let call = match part {
                Part::Long(value) => format!("spile_put_long(at, {})", self.value(value)),
                Part::Text(text) => format!("spile_put_string(at, {})", self.text(text)),
                Part::Memory { address, bytes, user, .. } => {
                    let user = u8::from(*user);
                    format!("spile_put_memory(c, at, {}, {}, {user})", self.value(address), self.value(bytes))
                }
                Part::Stack { user, first, most } => {
                    let user = u8::from(*user);
                    format!("spile_put_stack(c, at, {user}, {}, {})", self.value(first), self.value(most))
                }
                Part::StoredStack(text) => format!("spile_put_stored_stack(at, {})", self.text(text)),
                Part::UserStack => "spile_put_user_stack(c, at)".to_string(),
                Part::UserFrame(address) => format!("spile_put_user_frame(c, at, {})", self.value(address)),
                Part::Histogram { map, keys, .. } => {
                    format!("spile_put_histogram(c, at, &{}, {})", map.symbol, self.keys(keys))
                }
                Part::Pretty { table, address } => {
                    format!("spile_put_pretty(c, at, {}, {})", bytecode(*table), self.value(address))
                }
                Part::Items { items, objects, longs } => {
                    format!("spile_put_items(c, at, {}, {})", table_of(*items), objects + longs)
                }
            };
            self.line(&format!("at = {call};"));
        }
    }

    /// A record of numbers only, whose size is known.
    fn record_of_longs(&mut self, format: FormatId, values: &[&Value]) {
        let format = number_of(format);
        let bytes = values.len() * 8;
        self.line("{");
        self.indent += 1;
        self.line(&format!("spile_long *to = spile_print_begin(c, SPILE_PRINT, {format}, {bytes});"));
        self.lines.push('\n');
        self.line("if (spile_likely(to)) {");
        for (index, value) in values.iter().enumerate() {
            let value = self.value(value);
            self.line(&format!("\tto[{index}] = {value};"));
        }
        self.line(&format!("\tspile_print_commit(c, {bytes});"));
        self.line("}");
        self.indent -= 1;
        self.line("}");
    }

    /// Writes a print record; `may_fail_at` is the location of errors while its parts are evaluated.
    pub(super) fn record(
        &mut self,
        format: FormatId,
        parts: &[Part],
        objects: &Value,
        may_fail_at: Option<LocationId>,
    ) {
        if let Some(values) = longs(parts) {
            return self.record_of_longs(format, &values);
        }
        self.line("{");
        self.indent += 1;
        let (format, room) = (number_of(format), self.room(parts, objects));
        self.line(&format!("char *at = spile_record_begin(c, SPILE_PRINT, {format}, {room});"));
        self.lines.push('\n');
        may_fail_at.into_iter().for_each(|location| self.locate(location));
        self.put(parts);
        self.line(match may_fail_at {
            Some(_) => "spile_record_commit(c, c->error ? SPILE_NONE : at);",
            None => "spile_record_commit(c, at);",
        });
        self.indent -= 1;
        self.line("}");
    }

    /// Formats the parts by a table of the module into a buffer: `sprintf`.
    pub(super) fn format(
        &mut self,
        table: TableId,
        parts: &[Part],
        buffer: BufferId,
        to: TextId,
        location: LocationId,
    ) {
        self.line("{");
        self.indent += 1;
        self.line("char *at = spile_scratch(c);");
        self.lines.push('\n');
        self.locate(location);
        self.put(parts);
        let call = format!("spile_format(c, {}, at, {})", bytecode(table), memory(buffer));
        self.set_text(to, buffer, &call);
        self.indent -= 1;
        self.line("}");
    }
}

/// The number of a format.
fn number_of(format: FormatId) -> String {
    match format.as_own() {
        Some(constant) => format!("SPILE_OWN({constant}).number"),
        None => format.0.to_string(),
    }
}

/// A table of parts.
fn table_of(items: ItemsId) -> String {
    match items.as_own() {
        Some(constant) => format!("SPILE_OWN({constant}).items"),
        None => format!("items_{}", items.0),
    }
}

/// Bytecode, as two arguments: where it is and how many bytes it has.
fn bytecode(table: TableId) -> String {
    match table.as_own() {
        Some(constant) => {
            format!("(const unsigned char *)SPILE_OWN({constant}).text.text, SPILE_OWN({constant}).text.length")
        }
        None => format!("table_{0}, sizeof(table_{0})", table.0),
    }
}

/// The numbers of a payload, if it consists of nothing else.
fn longs(parts: &[Part]) -> Option<Vec<&Value>> {
    let mut values = Vec::new();
    for part in parts {
        match part {
            Part::Long(value) => values.push(value),
            _ => return None,
        }
    }
    Some(values)
}
