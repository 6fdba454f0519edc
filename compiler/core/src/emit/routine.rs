// SPDX-License-Identifier: GPL-2.0-or-later

//! Routines as C functions.

use super::text;
use crate::plan::Plan;
use crate::plan::code::{
    Argument, BufferId, Callee, Frame, Instr, Key, LabelId, MapOp, MapRef, NumberAccess, NumberRef, OUT, Outcome,
    Parameter, Part, Routine, Text, TextRef, Value,
};
use spile_abi::format::string_part;

use crate::program::{BinaryOp, Extractor, Type};

/// Spells routines with the names of a plan.
pub(super) struct Speller<'p> {
    plan: &'p Plan,
    routine: &'p Routine,
    lines: String,
    indent: usize,
}

/// `static spile_long function_f(struct spile_context *c, ...)`, without semicolon or body.
pub(super) fn prototype(routine: &Routine) -> String {
    let mut parameters = vec!["struct spile_context *c SPILE_LOCAL".to_string()];
    for parameter in &routine.parameters {
        parameters.push(match parameter {
            Parameter::Long(id) => format!("spile_long {} SPILE_LOCAL", routine.longs[id.index()].name),
            Parameter::Text(id) => format!("struct spile_string {} SPILE_LOCAL", routine.texts[id.index()].name),
        });
    }
    let returns = match routine.returns {
        None => "void",
        Some(Type::Long) => "spile_long",
        Some(Type::String) => {
            parameters.push("char *out".into());
            "unsigned int"
        }
    };
    format!("static {returns} {}({})", routine.symbol, parameters.join(", "))
}

pub(super) fn emit(plan: &Plan, routine: &Routine) -> String {
    let mut speller = Speller { plan, routine, lines: String::new(), indent: 1 };
    speller.routine();
    speller.lines
}

/// What an array of a map's keys begins with.
const KEYS: &str = "(const union spile_key[])";

/// MAXSTRINGLEN up to which the bytes of a string are not charged: it takes no longer than other things that a statement does.
const SHORT: u32 = 4096;

/// No ring has room for a record of so many bytes: the runtime, which adds lengths in 32 bits, finds none for it.
const MOST_RECORD: u64 = 1 << 30;

/// C precedence levels, as far as they matter here: what binds looser is put in parentheses.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Level {
    Any,
    Unary,
}

impl Speller<'_> {
    fn line(&mut self, text: &str) {
        for _ in 0..self.indent {
            self.lines.push('\t');
        }
        // An array of keys lives as long as the block that it is in: of one of its own, others can have the same place on the stack.
        match text.contains(KEYS) && text.ends_with(';') {
            true => self.lines.push_str(&format!("{{ {text} }}")),
            false => self.lines.push_str(text),
        }
        self.lines.push('\n');
    }

    fn outer(&mut self, text: &str) {
        self.lines.push_str(text);
        self.lines.push('\n');
    }

    fn routine(&mut self) {
        let routine = self.routine;
        for line in routine.comment.lines() {
            self.outer(&format!("/* {} */", text::comment(line)));
        }
        self.outer(&prototype(routine));
        self.outer("{");
        self.declarations();
        self.enter();
        if routine.spilled {
            self.spill();
        }
        self.instructions(&routine.code);
        self.outer("out: __attribute__((unused));");
        self.leave();
        self.outer("}");
        if routine.spilled {
            self.spilled_names().for_each(|name| self.outer(&format!("#undef {name}")));
        }
    }

    fn declarations(&mut self) {
        let routine = self.routine;
        if routine.has_frame() {
            self.line("struct {");
            for (index, iterator) in routine.iterators.iter().enumerate() {
                if iterator.buckets {
                    self.line(&format!("\tspile_ulong n{index}[{}];", crate::program::MAX_BUCKETS));
                }
                if iterator.order > 0 {
                    let count = iterator.order.next_multiple_of(2);
                    self.line(&format!("\tunsigned int o{index}[{count}];"));
                }
            }
            for (index, name) in routine.buffers.iter().enumerate() {
                self.line(&format!("\tchar b{index}[SPILE_STRING_BYTES];\t/* {} */", text::comment(name)));
            }
            if routine.spilled {
                self.spilled_members();
            }
            self.line("} *f;");
        }
        if routine.frame != Frame::None && (routine.has_frame() || routine.frame == Frame::Checked) {
            self.line("char *frame;");
        }
        if !routine.spilled {
            for long in routine.longs.iter().filter(|long| !long.parameter) {
                self.line(&format!("spile_long {} SPILE_LOCAL = 0;", long.name));
            }
            for index in 0..routine.iterators.len() {
                self.line(&format!("struct spile_iterator i{index};"));
            }
            for text in routine.texts.iter().filter(|text| !text.parameter) {
                self.line(&format!("struct spile_string {} SPILE_LOCAL = SPILE_LITERAL(\"\");", text.name));
            }
        }
        match routine.returns {
            Some(Type::Long) => self.line("spile_long result = 0;"),
            Some(Type::String) => {
                self.line("unsigned int result = 0;");
                self.lines.push('\n');
                self.line("out[0] = 0;");
            }
            None => {}
        }
        self.lines.push('\n');
    }

    /// Variables that are in frame memory: of the struct whose address is `f`.
    fn spilled_members(&mut self) {
        let routine = self.routine;
        self.line("\tspile_long spilled;");
        for long in &routine.longs {
            self.line(&format!("\tspile_long {};", long.name));
        }
        for text in &routine.texts {
            self.line(&format!("\tstruct spile_string {};", text.name));
        }
        for index in 0..routine.iterators.len() {
            self.line(&format!("\tstruct spile_iterator i{index};"));
        }
    }

    /// Sets them, and has their names mean those from here on.
    fn spill(&mut self) {
        let routine = self.routine;
        self.line("f->spilled = 0;");
        for long in &routine.longs {
            let value = if long.parameter { &long.name } else { "0" };
            self.line(&format!("f->{} = {value};", long.name));
        }
        for text in &routine.texts {
            let value = if text.parameter { &text.name } else { "SPILE_LITERAL(\"\")" };
            self.line(&format!("f->{} = {value};", text.name));
        }
        self.spilled_names().for_each(|name| self.outer(&format!("#define {name} (f->{name})")));
    }

    fn spilled_names(&self) -> impl Iterator<Item = String> + use<> {
        let variables = self.routine.longs.iter().chain(&self.routine.texts).map(|variable| variable.name.clone());
        let names: Vec<String> =
            variables.chain((0..self.routine.iterators.len()).map(|index| format!("i{index}"))).collect();
        names.into_iter()
    }

    /// What a failed entry returns.
    fn failure(&self) -> &'static str {
        match self.routine.returns {
            None => "return;",
            Some(_) => "return 0;",
        }
    }

    fn enter(&mut self) {
        let bytes = if !self.routine.has_frame() { "0" } else { "sizeof(*f)" };
        match self.routine.frame {
            Frame::None => {}
            Frame::Handler if !self.routine.has_frame() => {}
            Frame::Handler => {
                self.line(
                    "_Static_assert(sizeof(*f) <= SPILE_FRAME_BYTES, \"the frame has no room for this handler\");",
                );
                self.line("frame = c->frame;");
                self.line("f = (void *)frame;");
                self.line("if (spile_unlikely(frame + sizeof(*f) > c->frame_end)) {");
                self.line("\tspile_fail(c, SPILE_E_NESTING, 0);");
                self.line("\treturn;");
                self.line("}");
                self.line("c->frame = frame + sizeof(*f);");
            }
            Frame::Checked => {
                self.line(&format!("frame = spile_frame_enter(c, {bytes});"));
                self.line("if (spile_unlikely(!frame))");
                self.line(&format!("\t{}", self.failure()));
                if self.routine.has_frame() {
                    self.line("f = (void *)frame;");
                }
            }
        }
    }

    fn leave(&mut self) {
        match self.routine.frame {
            Frame::Checked => self.line("spile_frame_leave(c, frame);"),
            Frame::Handler if self.routine.has_frame() => self.line("c->frame = frame;"),
            _ => {}
        }
        if self.routine.returns.is_some() {
            self.line("return result;");
        } else {
            self.line("return;");
        }
    }

    fn instructions(&mut self, code: &[Instr]) {
        code.iter().for_each(|instr| self.instruction(instr));
    }

    fn long(&self, id: crate::plan::code::LongId) -> &str {
        &self.routine.longs[id.index()].name
    }

    fn text_name(&self, id: crate::plan::code::TextId) -> &str {
        &self.routine.texts[id.index()].name
    }

    fn label(&self, label: LabelId) -> String {
        if label == OUT { "out".into() } else { format!("label_{}", label.0) }
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
                    NumberAccess::Single => format!("spile_lone({name}) = {value};"),
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
                self.line(&format!("SPILE_SAVED_LONG({offset}) = {};", self.value(value)))
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
                // A byte takes less where nothing is remembered.
                self.line(&format!("spile_debit(c, {}{});", self.length(text), if *tagged { "" } else { " / 8" }));
                self.line(&format!("{} = {call};", self.long(*to)));
            }
            Instr::Write { address, size, value, location } => {
                self.locate(*location);
                self.line(&format!("spile_write(c, {}, {size}, {});", self.value(address), self.value(value)));
            }
            Instr::SetRegister(offset, value) => {
                self.line(&format!("spile_set_register(c, {offset}, {});", self.value(value)))
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
            Instr::Foreach(foreach) => self.foreach(foreach),
            Instr::IteratorLong(to, iterator, key) => {
                let call = self.iterated(iterator.0, *key, "long", "value");
                self.line(&format!("{} = {call};", self.long(*to)));
            }
            Instr::IteratorText(buffer, to, iterator, key) => {
                let call = self.iterated(iterator.0, *key, "text", "value_text");
                self.set_text(*to, *buffer, &format!("spile_string_copy({}, {call})", memory(*buffer)));
            }
            Instr::Record { format, parts, location } => self.record(*format, parts, *location),
            Instr::Format { table, parts, buffer, to, location } => {
                self.format(table.0, parts, *buffer, *to, *location)
            }
            Instr::If { condition, then, otherwise } => self.branch(condition, then, otherwise),
            Instr::Loop(body) => {
                self.line("for (;;) {");
                self.nested(body);
                self.line("}");
            }
            Instr::Label(label) => {
                let label = self.label(*label);
                self.outer(&format!("{label}: __attribute__((unused));"));
            }
            Instr::Filter => self.line("c->filtered = 1;"),
            Instr::Rearm => self.line("c->stale |= SPILE_STALE_CONDITIONS;"),
            Instr::Goto(label) => self.line(&format!("goto {};", self.label(*label))),
            Instr::CheckCall { location, failed } => {
                self.line("if (spile_unlikely(c->error)) {");
                self.line(&format!("\tspile_called_from(c, {});{}", place(*location), self.named(*location)));
                self.line(&format!("\tgoto {};", self.label(*failed)));
                self.line("}");
            }
            Instr::Check(label) => {
                self.line("if (spile_unlikely(c->error))");
                self.line(&format!("\tgoto {};", self.label(*label)));
            }
            Instr::Charge { statements, location } => {
                self.line(&format!("SPILE_CHARGE(c, {statements}, {});{}", place(*location), self.named(*location)))
            }
            Instr::Catch { buffer, to, uncaught } => {
                let name = self.text_name(*to).to_string();
                self.line(&format!("if (!spile_catch(c, {}, &{name}.length))", memory(*buffer)));
                self.line(&format!("\tgoto {};", self.label(*uncaught)));
                self.line(&format!("{name}.text = {};", memory(*buffer)));
            }
            Instr::TakeNext(to) => self.line(&format!("{} = spile_took_next(c);", self.long(*to))),
            Instr::ReturnLong(value) => self.line(&format!("result = {};", self.value(value))),
            Instr::ReturnWritten(text) => self.line(&format!("result = {}.length;", self.text_name(*text))),
            Instr::ReturnText(text) => self.line(&format!("result = spile_string_copy(out, {});", self.text(text))),
        }
    }

    fn nested(&mut self, code: &[Instr]) {
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

    /// The keys as an array, 0 if there are none.
    fn keys(&self, keys: &[Key]) -> String {
        if keys.is_empty() {
            return "SPILE_NONE".into();
        }
        let spelled: Vec<String> = keys
            .iter()
            .map(|key| match key {
                Key::Long(value) => format!("{{ .number = {} }}", self.value(value)),
                Key::Text(text) => format!("{{ .text = {} }}", self.text(text)),
                Key::Any => "{ .number = 0 }".into(),
            })
            .collect();
        format!("{KEYS}{{ {} }}", spelled.join(", "))
    }

    fn map(&mut self, map: &MapRef, keys: &[Key], op: &MapOp) {
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
                    [Key::Long(key)] => {
                        format!("{to} = spile_map_add_one(c, &{}, {}, {value});", map.symbol, self.value(key))
                    }
                    _ => format!("{to} = spile_map_add({what}, {value});"),
                }
            }
            MapOp::Delete => format!("spile_map_delete({what}, {any});"),
            MapOp::Clear => format!("spile_map_clear(c, &{});", map.symbol),
            MapOp::Feed(value) => {
                let (map, value) = (&map.symbol, self.value(value));
                match keys {
                    [] => format!("spile_stats_feed(c, &{map}, {value});"),
                    [Key::Long(key)] => format!("spile_stats_add_long(c, &{map}, {}, {value});", self.value(key)),
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

    fn foreach(&mut self, foreach: &crate::plan::code::Loop) {
        use crate::program::{Order, SortBy};
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

    fn iterated(&self, iterator: u32, key: Option<u32>, of_key: &str, of_value: &str) -> String {
        match key {
            Some(key) => format!("spile_iterator_{of_key}(&i{iterator}, {key})"),
            None => format!("spile_iterator_{of_value}(&i{iterator})"),
        }
    }

    fn locate(&mut self, location: crate::plan::code::LocationId) {
        self.line(&format!("c->location = {};{}", place(location), self.named(location)));
    }

    /// A comment with what the loader prints for the location; none where each probe has its own.
    fn named(&self, location: crate::plan::code::LocationId) -> String {
        match self.plan.meta.locations.get(location.index()) {
            Some(text) if location.as_own().is_none() => format!("\t/* {} */", text::comment(text)),
            _ => String::new(),
        }
    }

    /// `call` writes the buffer and gives the length.
    fn set_text(&mut self, to: crate::plan::code::TextId, buffer: BufferId, call: &str) {
        let name = self.text_name(to).to_string();
        self.line(&format!("{name}.length = {call};"));
        self.line(&format!("{name}.text = {};", memory(buffer)));
        if self.plan.naming.limits.string_bytes > SHORT {
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

    /// The bytes that parts can take: constants added up, strings by their length.
    fn room(&self, parts: &[Part]) -> String {
        let mut fixed: u64 = 0;
        let mut terms = Vec::new();
        for part in parts {
            match part {
                Part::Long(_) => fixed += 8,
                Part::Text(text) => terms.push(format!("SPILE_STRING_PART({})", self.length(text))),
                Part::Memory { most, .. } => fixed += u64::from(string_part(*most)),
                Part::Pretty { most, .. } => fixed += u64::from(*most),
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
                Part::Histogram { map, keys, .. } => {
                    format!("spile_put_histogram(c, at, &{}, {})", map.symbol, self.keys(keys))
                }
                Part::Pretty { table, address, .. } => {
                    let table = table.0;
                    format!("spile_put_pretty(c, at, table_{table}, sizeof(table_{table}), {})", self.value(address))
                }
            };
            self.line(&format!("at = {call};"));
        }
    }

    fn record(&mut self, format: u32, parts: &[Part], may_fail_at: Option<crate::plan::code::LocationId>) {
        self.line("{");
        self.indent += 1;
        let room = self.room(parts);
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

    fn format(
        &mut self,
        table: u32,
        parts: &[Part],
        buffer: BufferId,
        to: crate::plan::code::TextId,
        location: crate::plan::code::LocationId,
    ) {
        self.line("{");
        self.indent += 1;
        self.line("char *at = spile_scratch(c);");
        self.lines.push('\n');
        self.locate(location);
        self.put(parts);
        let call = format!("spile_format(c, table_{table}, sizeof(table_{table}), at, {})", memory(buffer));
        self.set_text(to, buffer, &call);
        self.indent -= 1;
        self.line("}");
    }

    fn length(&self, text: &Text) -> String {
        match text {
            Text::Literal(bytes) => bytes.len().to_string(),
            Text::Own(constant) => format!("SPILE_OWN({constant}).text.length"),
            Text::Variable(id) => format!("{}.length", self.text_name(*id)),
            Text::Global(global) => format!("{}.length", global.symbol),
            Text::Saved(offset) => format!("SPILE_SAVED_LENGTH({offset})"),
        }
    }

    fn text(&self, text: &Text) -> String {
        match text {
            Text::Literal(bytes) => format!("SPILE_LITERAL({})", text::literal(bytes)),
            Text::Own(constant) => format!("SPILE_OWN({constant}).text"),
            Text::Variable(id) => self.text_name(*id).to_string(),
            Text::Global(TextRef { symbol: name, .. }) => {
                format!("(struct spile_string){{ {name}.text, {name}.length }}")
            }
            Text::Saved(offset) => {
                format!("(struct spile_string){{ SPILE_SAVED_TEXT({offset}), SPILE_SAVED_LENGTH({offset}) }}")
            }
        }
    }

    fn value(&self, value: &Value) -> String {
        self.value_at(value, Level::Any)
    }

    fn value_at(&self, value: &Value, level: Level) -> String {
        let unary = |sign: &str, operand: &Value| format!("{sign}{}", self.value_at(operand, Level::Unary));
        let spelled = match value {
            Value::Const(value) => return number(*value),
            Value::Own(constant) => return format!("SPILE_OWN({constant}).number"),
            Value::Long(id) => return self.long(*id).to_string(),
            Value::Global(NumberRef { symbol: name, access, .. }) => {
                return match access {
                    NumberAccess::Counter(counter) => format!("spile_counter({counter}, {name})"),
                    NumberAccess::Single => format!("spile_lone({name})"),
                    NumberAccess::Plain => name.to_string(),
                };
            }
            Value::Negate(operand) => return format!("spile_negate({})", self.value(operand)),
            Value::Not(operand) => return unary("!", operand),
            Value::Complement(operand) => return unary("~", operand),
            Value::Binary(op, left, right) => match function(*op) {
                Some(name) => return format!("{name}({}, {})", self.value(left), self.value(right)),
                None => {
                    // A number is no condition to a compiler that looks for slips.
                    let side = |side: &Value| match (op, side) {
                        (BinaryOp::And | BinaryOp::Or, Value::Const(value)) => i32::from(*value != 0).to_string(),
                        _ => self.value_at(side, Level::Unary),
                    };
                    format!("{} {} {}", side(left), operator(*op), side(right))
                }
            },
            Value::Compare(op, left, right) => {
                format!("spile_string_compare({}, {}) {} 0", self.text(left), self.text(right), operator(*op))
            }
            Value::Conditional(condition, then, otherwise) => {
                let at = |value| self.value_at(value, Level::Unary);
                format!("{} ? {} : {}", at(condition), at(then), at(otherwise))
            }
            Value::KernelAddress { address, per_cpu: false } => return format!("SPILE_KERNEL_ADDRESS({address:#x})"),
            Value::KernelAddress { address, per_cpu: true } => return format!("SPILE_PER_CPU_ADDRESS({address:#x})"),
            Value::ModuleAddress { symbol, offset, per_cpu } => {
                let name = if *per_cpu { "SPILE_MODULE_PER_CPU_ADDRESS" } else { "SPILE_MODULE_ADDRESS" };
                return format!("{name}({symbol}, {offset:#x})");
            }
            Value::Register(offset) => return format!("(spile_long)SPILE_REGISTER({offset})"),
            Value::Saved(offset) => return format!("SPILE_SAVED_LONG({offset})"),
            Value::SignExtend(operand, bits) => return format!("spile_sign_extend({}, {bits})", self.value(operand)),
            Value::Bits(operand, field) => {
                return format!("(spile_long)spile_bits({}, {}, {})", self.value(operand), field.first, field.bits);
            }
            Value::Length(text) => format!("(spile_long){}", self.length(text)),
        };
        if level == Level::Unary { format!("({spelled})") } else { spelled }
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

/// Where a string is written.
fn memory(buffer: BufferId) -> String {
    if buffer == BufferId::RESULT { "out".into() } else { format!("f->b{}", buffer.0) }
}

/// Number of a place that an error names.
fn place(location: crate::plan::code::LocationId) -> String {
    match location.as_own() {
        Some(constant) => format!("SPILE_OWN({constant}).number"),
        None => location.0.to_string(),
    }
}

pub(super) fn number(value: i64) -> String {
    match value {
        i64::MIN => "(-9223372036854775807LL - 1)".into(),
        _ if value < 0 => format!("({value}LL)"),
        0..=0x7fff_ffff => value.to_string(),
        _ => format!("{value}LL"),
    }
}

/// Operators whose overflow C leaves open are functions of `script.h`.
fn function(op: BinaryOp) -> Option<&'static str> {
    Some(match op {
        BinaryOp::Add => "spile_add",
        BinaryOp::Subtract => "spile_subtract",
        BinaryOp::Multiply => "spile_multiply",
        BinaryOp::ShiftLeft => "spile_shift_left",
        BinaryOp::ShiftRight => "spile_shift_right",
        BinaryOp::ShiftRightLogical => "spile_shift_right_logical",
        _ => return None,
    })
}

fn operator(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Or => "||",
        BinaryOp::And => "&&",
        BinaryOp::BitOr => "|",
        BinaryOp::BitXor => "^",
        BinaryOp::BitAnd => "&",
        BinaryOp::Less => "<",
        BinaryOp::Greater => ">",
        BinaryOp::LessEqual => "<=",
        BinaryOp::GreaterEqual => ">=",
        BinaryOp::Equal => "==",
        BinaryOp::NotEqual => "!=",
        // Have functions or instructions of their own.
        BinaryOp::ShiftLeft => "<<",
        BinaryOp::ShiftRight | BinaryOp::ShiftRightLogical => ">>",
        BinaryOp::Concatenate | BinaryOp::Add => "+",
        BinaryOp::Subtract => "-",
        BinaryOp::Multiply => "*",
        BinaryOp::Divide => "/",
        BinaryOp::Modulo => "%",
    }
}
