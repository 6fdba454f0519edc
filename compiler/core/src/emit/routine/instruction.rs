// SPDX-License-Identifier: GPL-2.0-or-later

//! Instructions as C statements.

use super::expression::Level;
use super::{Writer, label_name, memory, place};
use crate::emit::text;
use crate::plan::code::{
    Argument, BufferId, Callee, Instr, LocationId, NumberAccess, NumberRef, Outcome, TextId, TextRef, Value,
};

/// Up to this MAXSTRINGLEN the bytes of a string are not charged: they cost no more than other parts of a statement.
const SHORT: u32 = 4096;

impl Writer<'_> {
    /// Writes the statements of a block, at the present indentation.
    pub(super) fn instructions(&mut self, code: &[Instr]) {
        code.iter().for_each(|instr| self.instruction(instr));
    }

    fn instruction(&mut self, instr: &Instr) {
        match instr {
            Instr::Comment(comment) => self.line(&format!("/* {} */", text::comment(comment))),
            Instr::SetLong(to, value) => self.line(&format!("{} = {};", self.long(*to), self.value(value))),
            Instr::SetText(to, text) => self.line(&format!("{} = {};", self.text_name(*to), self.text(text))),
            Instr::Copy { from, buffer, to } => {
                let call = format!("spile_string_copy({}, {})", memory(*buffer), self.text(from));
                self.set_text(*to, *buffer, &call);
            }
            Instr::Concatenate { left, right, buffer, to } => {
                let (left, right) = (self.text(left), self.text(right));
                self.set_text(*to, *buffer, &format!("spile_string_concatenate({}, {left}, {right})", memory(*buffer)));
            }
            Instr::SetGlobalLong(NumberRef { symbol: name, access, .. }, value) => {
                let value = self.value(value);
                self.line(&match access {
                    NumberAccess::Counter(counter) => format!("spile_counter_set({counter}, &{name}, {value});"),
                    NumberAccess::Single => format!("spile_set_single({name}, {value});"),
                    NumberAccess::Plain => format!("{name} = {value};"),
                });
            }
            Instr::Count { counter, global, value } => {
                let value = self.value(value);
                self.line(&format!("spile_count(c, {counter}, {value});\t/* {} */", global.symbol));
            }
            Instr::SetGlobalText(TextRef { symbol: name, .. }, text) => {
                let text = self.text(text);
                self.line(&format!("{name}.length = spile_string_copy({name}.text, {text});"));
            }
            Instr::SaveLong(offset, value) => {
                self.line(&format!("SPILE_SAVED_LONG({offset}) = {};", self.value(value)));
            }
            Instr::SaveText(offset, text) => {
                let text = self.text(text);
                self.line(&format!(
                    "SPILE_SAVED_LENGTH({offset}) = spile_string_copy(SPILE_SAVED_TEXT({offset}), {text});"
                ));
            }
            Instr::Divide { to, modulo, left, right, location } => {
                self.locate(*location);
                let function = if *modulo { "spile_modulo" } else { "spile_divide" };
                let (left, right) = (self.value(left), self.value(right));
                self.line(&format!("{} = {function}(c, {left}, {right});", self.long(*to)));
            }
            Instr::Read { to, address, size, user, location } => {
                self.locate(*location);
                let function = if *user { "spile_read_user" } else { "spile_read" };
                self.line(&format!("{} = {function}(c, {}, {size});", self.long(*to), self.value(address)));
            }
            Instr::Match { to, regex, tagged, text } => {
                let function = if *tagged { "spile_regex_match(c, " } else { "spile_regex_test(" };
                let call = format!("{function}&regex_{}, {})", regex.0, self.text(text));
                // A byte costs less if no groups are recorded.
                self.line(&format!("spile_debit(c, {}{});", self.length(text), if *tagged { "" } else { " / 8" }));
                self.line(&format!("{} = {call};", self.long(*to)));
            }
            Instr::Write { user, address, size, value, location } => {
                self.locate(*location);
                let name = if *user { "spile_write_user" } else { "spile_write" };
                self.line(&format!("{name}(c, {}, {size}, {});", self.value(address), self.value(value)));
            }
            Instr::SetRegister(offset, value) => {
                self.line(&format!("spile_set_register(c, {offset}, {});", self.value(value)));
            }
            Instr::Call { callee, arguments, outcome, location } => {
                if let Some(location) = location {
                    self.locate(*location);
                }
                self.call(callee, arguments, *outcome);
            }
            Instr::Map { map, keys, op, location } => {
                if let Some(location) = location {
                    self.locate(*location);
                }
                self.map(map, keys, op);
            }
            Instr::Hold { held, map, keys, drops, several: None, late } => {
                let held = self.hold(*held, map, keys, *drops);
                self.take(&held, *late);
            }
            Instr::HoldWhole { number, map, late } => {
                self.take(&format!("spile_map_hold_whole(c, &{})", map.symbol), *late);
                self.line(&format!("whole |= 1ul << {number};"));
            }
            Instr::Hold { held, map, keys, drops, several: Some(count), late } => {
                let want = format!("spile_map_want(&{}, &c->held[{held}], {});", map.symbol, self.keys(keys));
                self.line(&want);
                if let Some(before) = count.checked_sub(1) {
                    let first = held.saturating_sub(before);
                    let what = format!("c, &{}, &c->held[{first}], {count}, {}", map.symbol, u8::from(*drops));
                    self.take(&format!("spile_map_hold_several({what})"), *late);
                }
            }
            Instr::Foreach(foreach) => self.foreach(foreach),
            Instr::IteratorLong(to, iterator, key) => {
                let call = Self::iterated(iterator.0, *key, "long", "value");
                self.line(&format!("{} = {call};", self.long(*to)));
            }
            Instr::IteratorText(buffer, to, iterator, key) => {
                let call = Self::iterated(iterator.0, *key, "text", "value_text");
                self.set_text(*to, *buffer, &format!("spile_string_copy({}, {call})", memory(*buffer)));
            }
            Instr::Record { format, parts, objects, location } => self.record(*format, parts, objects, *location),
            Instr::Format { table, parts, buffer, to, location } => {
                self.format(*table, parts, *buffer, *to, *location);
            }
            Instr::If { condition, then, otherwise } => self.branch(condition, then, otherwise),
            Instr::Loop(body) => {
                self.line("for (;;) {");
                self.nested(body);
                self.line("}");
            }
            Instr::Label(label) => {
                let label = label_name(*label);
                self.outer(&format!("{label}: __attribute__((unused));"));
            }
            Instr::Filter => self.line("c->filtered = 1;"),
            Instr::Rearm => self.line("c->stale |= SPILE_STALE_CONDITIONS;"),
            Instr::Goto(label) => self.line(&format!("goto {};", label_name(*label))),
            Instr::CheckCall { location, failed } => {
                self.line("if (spile_unlikely(c->error)) {");
                self.line(&format!("\tspile_called_from(c, {});{}", place(*location), self.named(*location)));
                self.line(&format!("\tgoto {};", label_name(*failed)));
                self.line("}");
            }
            Instr::Check(label) => {
                self.line("if (spile_unlikely(c->error))");
                self.line(&format!("\tgoto {};", label_name(*label)));
            }
            Instr::Charge { statements, location } => {
                self.line(&format!("SPILE_CHARGE(c, {statements}, {});{}", place(*location), self.named(*location)));
            }
            Instr::Catch { buffer, to, uncaught } => {
                let name = self.text_name(*to).to_string();
                self.line(&format!("if (!spile_catch(c, {}, &{name}.length))", memory(*buffer)));
                self.line(&format!("\tgoto {};", label_name(*uncaught)));
                self.line(&format!("{name}.text = {};", memory(*buffer)));
            }
            Instr::SayNext => self.line("c->next = 1;"),
            Instr::TakeNext(to) => self.line(&format!("{} = spile_took_next(c);", self.long(*to))),
            Instr::ReturnLong(value) => self.line(&format!("result = {};", self.value(value))),
            Instr::ReturnWritten(text) => self.line(&format!("result = {}.length;", self.text_name(*text))),
            Instr::ReturnText(text) => self.line(&format!("result = spile_string_copy(out, {});", self.text(text))),
        }
    }

    /// Writes the statements of a nested block, without its braces.
    pub(super) fn nested(&mut self, code: &[Instr]) {
        self.indent += 1;
        self.instructions(code);
        self.indent -= 1;
    }

    fn branch(&mut self, condition: &Value, then: &[Instr], otherwise: &[Instr]) {
        match (then.is_empty(), otherwise.is_empty()) {
            (true, true) => {}
            (true, false) => {
                self.line(&format!("if (!{}) {{", self.value_at(condition, Level::Unary)));
                self.nested(otherwise);
                self.line("}");
            }
            (false, _) => {
                self.line(&format!("if ({}) {{", self.value(condition)));
                self.nested(then);
                if !otherwise.is_empty() {
                    self.line("} else {");
                    self.nested(otherwise);
                }
                self.line("}");
            }
        }
    }

    /// Sets the location that errors of the following statements are reported with.
    pub(super) fn locate(&mut self, location: LocationId) {
        self.line(&format!("c->location = {};{}", place(location), self.named(location)));
    }

    /// A comment with the location as the loader prints it; none where each probe has its own.
    fn named(&self, location: LocationId) -> String {
        match self.plan.meta.locations.get(location.index()) {
            Some(text) if location.as_own().is_none() => format!("\t/* {} */", text::comment(text)),
            _ => String::new(),
        }
    }

    /// `call` fills the buffer and returns the length.
    pub(super) fn set_text(&mut self, to: TextId, buffer: BufferId, call: &str) {
        let name = self.text_name(to).to_string();
        self.line(&format!("{name}.length = {call};"));
        self.line(&format!("{name}.text = {};", memory(buffer)));
        if self.plan.info.limits.string_bytes > SHORT {
            self.line(&format!("spile_debit(c, {name}.length / 32);"));
        }
    }

    fn call(&mut self, callee: &Callee, arguments: &[Argument], outcome: Outcome) {
        let mut spelled = vec!["c".to_string()];
        for argument in arguments {
            spelled.push(match argument {
                Argument::Long(value) => self.value(value),
                Argument::Text(text) => self.text(text),
                Argument::Bytes(buffer) => memory(*buffer),
            });
        }
        let (name, by_reference) = match callee {
            Callee::Builtin(symbol) => (format!("spile_fn_{symbol}"), false),
            Callee::Routine(symbol) => (symbol.clone(), false),
            Callee::Embedded(symbol) => (symbol.clone(), true),
        };
        match outcome {
            Outcome::None => self.line(&format!("{name}({});", spelled.join(", "))),
            Outcome::Long(to) if by_reference => {
                spelled.push(format!("&{}", self.long(to)));
                self.line(&format!("{} = 0;", self.long(to)));
                self.line(&format!("{name}({});", spelled.join(", ")));
            }
            Outcome::Long(to) => self.line(&format!("{} = {name}({});", self.long(to), spelled.join(", "))),
            Outcome::Text(buffer, to) => {
                spelled.push(memory(buffer));
                if by_reference {
                    self.line(&format!("{}[0] = 0;", memory(buffer)));
                    self.line(&format!("{name}({});", spelled.join(", ")));
                    self.set_text(to, buffer, &format!("spile_string_length({})", memory(buffer)));
                } else {
                    self.set_text(to, buffer, &format!("{name}({})", spelled.join(", ")));
                }
            }
        }
    }
}
