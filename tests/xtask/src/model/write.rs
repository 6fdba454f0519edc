// SPDX-License-Identifier: GPL-2.0-or-later

//! Prints programs as script text. Programs of one module are distinguished by their numbers, which are part of every
//! global name.

use std::fmt::Write;
use std::sync::OnceLock;

use super::tree::*;

/// Prefix of the output of a guarded handler, followed by the program's number.
pub const MARK: &str = "=== ";
/// The event: this function is called when a process changes its name.
pub const EVENT: &str = "kernel.function(\"comm_write\")";
/// Its function.
pub const FUNCTION: &str = "comm_write";
/// The event in user space.
pub const CONCURRENT_EVENT: &str = "timer.profile";

static RESOLVED_EVENT: OnceLock<String> = OnceLock::new();

/// What pp() is in an event: [`EVENT`] until it is known.
pub fn resolved_event() -> &'static str {
    RESOLVED_EVENT.get().map_or(EVENT, String::as_str)
}

/// Sets what pp() is in an event, before any program is made.
pub fn set_resolved_event(point: String) {
    RESOLVED_EVENT.get_or_init(|| point);
}

/// The probe point of a program's handler.
pub fn point(when: HandlerKind, number: usize, index: usize, event: &str) -> String {
    let order = number * 10 + index;
    match when {
        HandlerKind::Begin => format!("begin({order})"),
        HandlerKind::Event => event.to_string(),
        HandlerKind::Timer => "timer.s(1)".to_string(),
        HandlerKind::End => format!("end({order})"),
    }
}

/// A module's script of programs with their numbers.
pub fn script(programs: &[(usize, &Program)]) -> String {
    let mut text = String::new();
    for (number, program) in programs {
        text.push_str(&one(*number, program));
    }
    let events =
        programs.iter().flat_map(|(_, program)| &program.handlers).any(|handler| handler.when == HandlerKind::Event);
    if !events {
        text.push_str("probe begin(999999999) { exit() }\n");
    }
    text
}

fn one(number: usize, program: &Program) -> String {
    written(number, program, EVENT).text
}

fn written<'a>(number: usize, program: &'a Program, event: &'a str) -> Writer<'a> {
    let mut writer = Writer { number, program, event, locals: &[], text: String::new(), depth: 0 };
    writer.globals();
    for (index, function) in program.functions.iter().enumerate() {
        writer.function(index, function);
    }
    for (index, handler) in program.handlers.iter().enumerate() {
        writer.handler(index, handler);
    }
    writer
}

/// A script of handlers that are hit in user space (`cargo xtask threads`). A begin probe, which may run again and
/// again, gives the globals their first values; an end probe prints their final values with log(), as
/// [`super::interpret::interleaved`] does.
pub fn concurrent_script(program: &Program) -> String {
    let mut writer = written(0, program, CONCURRENT_EVENT);
    writer.line("probe begin {");
    for (index, global) in program.globals.iter().enumerate() {
        let name = writer.global(index);
        writer.line(&match &global.kind {
            GlobalKind::Scalar { kind, initial, .. } => {
                let first = initial.clone().unwrap_or(Value::unset(*kind));
                format!("  {name} = {};", literal(&first))
            }
            _ => format!("  delete {name};"),
        });
    }
    writer.line("}");
    writer.line("probe end {");
    for (index, global) in program.globals.iter().enumerate() {
        let line = writer.state(index, global);
        writer.line(&line);
    }
    writer.line("}");
    writer.text
}

/// The name of a global in its module's script.
pub fn global_name(number: usize, index: usize) -> String {
    format!("g{number}_{index}")
}

struct Writer<'a> {
    number: usize,
    program: &'a Program,
    /// The probe point of events.
    event: &'a str,
    locals: &'a [Type],
    text: String,
    depth: usize,
}

/// Precedence of operators; looser expressions are parenthesised.
mod level {
    pub const ASSIGN: u8 = 1;
    pub const TERNARY: u8 = 2;
    pub const IN: u8 = 8;
    pub const COMPARE: u8 = 9;
    pub const UNARY: u8 = 14;
    pub const STEP: u8 = 15;
    pub const PRIMARY: u8 = 17;
}

fn binary_level(operator: Binary) -> u8 {
    match operator {
        Binary::Or => 3,
        Binary::And => 4,
        Binary::BitOr => 5,
        Binary::BitXor => 6,
        Binary::BitAnd => 7,
        Binary::Less | Binary::Greater | Binary::LessEqual | Binary::GreaterEqual | Binary::Equal | Binary::Unequal => {
            level::COMPARE
        }
        Binary::ShiftLeft | Binary::ShiftRight | Binary::ShiftRightLogical => 10,
        Binary::Concat => 11,
        Binary::Add | Binary::Subtract => 12,
        Binary::Multiply | Binary::Divide | Binary::Modulo => 13,
    }
}

fn level_of(expression: &Expression) -> u8 {
    match expression {
        Expression::Number(number, false) if *number < 0 => level::UNARY,
        Expression::Unary(..) => level::UNARY,
        Expression::Binary(operator, ..) => binary_level(*operator),
        Expression::Ternary(..) => level::TERNARY,
        // Comparisons chain to the right, except with a pattern.
        Expression::In(..) | Expression::Match(..) => level::IN,
        Expression::Assign(..) | Expression::Update(..) | Expression::Feed(..) => level::ASSIGN,
        Expression::Step(..) => level::STEP,
        _ => level::PRIMARY,
    }
}

impl<'a> Writer<'a> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "{:1$}{text}", "", 2 * self.depth);
    }

    fn globals(&mut self) {
        for (index, global) in self.program.globals.iter().enumerate() {
            let mut text = format!("global {}", self.global(index));
            if global.size.wraps {
                text.push('%');
            }
            if let Some(entries) = global.size.entries {
                let _ = write!(text, "[{entries}]");
            }
            if let GlobalKind::Scalar { initial: Some(initial), given, .. } = &global.kind {
                // The declared value does not count then.
                let declared = match (initial, given) {
                    (value, InitialValue::InText) => value.clone(),
                    (Value::Long(_), _) => Value::Long(77),
                    (Value::Text(_), _) => Value::Text(b"not given".to_vec()),
                };
                let _ = write!(text, " = {}", literal(&declared));
            }
            self.line(&text);
        }
    }

    fn function(&mut self, index: usize, function: &'a Function) {
        self.locals = &function.body.locals;
        let parameters: Vec<String> = (0..function.parameters)
            .map(|local| {
                if function.typed {
                    format!("{}:{}", self.local(local), type_name(self.locals[local]))
                } else {
                    self.local(local)
                }
            })
            .collect();
        let returns = if function.typed { format!(":{}", type_name(function.returns)) } else { String::new() };
        self.line(&format!("function {}{returns} ({}) {{", self.function_name(index), parameters.join(", ")));
        self.inner(&function.body.statements);
        self.line("}");
    }

    fn handler(&mut self, index: usize, handler: &'a Handler) {
        self.locals = &handler.body.locals;
        let point = point(handler.when, self.number, index, self.event);
        self.line(&format!("probe {point} {{"));
        if handler.guarded {
            self.depth += 1;
            self.line(&format!("print(\"\\n{MARK}{}\\n\")", self.number));
            self.line("try {");
            self.inner(&handler.body.statements);
            self.line("} catch (caught) { println(\"caught \", caught) }");
            self.depth -= 1;
        } else {
            self.inner(&handler.body.statements);
        }
        self.line("}");
    }

    /// A statement that logs a global: lines of its number, its keys in brackets and its value.
    fn state(&self, index: usize, global: &Global) -> String {
        let name = self.global(index);
        let directive = |kind: &Type| if *kind == Type::Long { "%d" } else { "%s" };
        let keys: Vec<String> = (0..global.keys().len()).map(|key| format!("key{index}_{key}")).collect();
        let directives: Vec<&str> = global.keys().iter().map(directive).collect();
        let (head, list) = (directives.join(","), keys.join(", "));
        let element = format!("{name}[{list}]");
        let summary = |of: &str, at: &str, arguments: &str| {
            format!(
                "log(sprintf(\"{index}{at} %d %d %d %d\"{arguments}, @count({of}), @sum({of}), @min({of}), @max({of})));"
            )
        };
        match (&global.kind, keys.is_empty()) {
            (GlobalKind::Scalar { kind, .. }, _) => {
                format!("  log(sprintf(\"{index} {}\", {name}));", directive(kind))
            }
            (GlobalKind::Aggregate { .. }, true) => {
                format!("  if (@count({name})) {{ {} }}", summary(&name, "", ""))
            }
            (GlobalKind::Aggregate { .. }, false) => {
                let line = summary(&element, &format!("[{head}]"), &format!(", {list}"));
                format!("  foreach ([{list}] in {name}) {{ {line} }}")
            }
            (GlobalKind::Array { kind, .. }, _) => {
                let text = format!("{index}[{head}] {}", directive(kind));
                format!("  foreach ([{list}] in {name}) {{ log(sprintf(\"{text}\", {list}, {element})); }}")
            }
        }
    }

    fn inner(&mut self, statements: &[Statement]) {
        self.depth += 1;
        for statement in statements {
            self.statement(statement);
        }
        self.depth -= 1;
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Do(expression) => {
                let text = self.expression(expression);
                self.line(&format!("{text};"));
            }
            Statement::If(condition, then, otherwise) => {
                let condition = self.expression(condition);
                self.line(&format!("if ({condition}) {{"));
                self.inner(then);
                if !otherwise.is_empty() {
                    self.line("} else {");
                    self.inner(otherwise);
                }
                self.line("}");
            }
            Statement::While(condition, body) => {
                let condition = self.expression(condition);
                self.line(&format!("while ({condition}) {{"));
                self.inner(body);
                self.line("}");
            }
            Statement::For(first, condition, step, body) => {
                let part =
                    |part: &Option<Expression>| part.as_ref().map(|part| self.expression(part)).unwrap_or_default();
                let head = format!("for ({}; {}; {}) {{", part(first), part(condition), part(step));
                self.line(&head);
                self.inner(body);
                self.line("}");
            }
            Statement::Foreach(foreach) => {
                let head = self.foreach_head(foreach);
                self.line(&format!("foreach ({head}) {{"));
                self.inner(&foreach.body);
                self.line("}");
            }
            Statement::Break => self.line("break;"),
            Statement::Continue => self.line("continue;"),
            Statement::Next => self.line("next;"),
            Statement::Return(value) => {
                let value = self.expression(value);
                self.line(&format!("return {value};"));
            }
            Statement::Delete(place) => {
                let place = self.place(place);
                self.line(&format!("delete {place};"));
            }
            Statement::DeleteSlice(array, keys) => {
                let text = format!("delete {}[{}];", self.global(*array), self.slice(keys));
                self.line(&text);
            }
            Statement::Try(body, caught, handling) => {
                self.line("try {");
                self.inner(body);
                let name = caught.map(|local| format!(" ({})", self.local(local))).unwrap_or_default();
                self.line(&format!("}} catch{name} {{"));
                self.inner(handling);
                self.line("}");
            }
            Statement::Print(print) => {
                let text = self.print(print, "");
                self.line(&format!("{text};"));
            }
            Statement::Chart(place) => {
                let text = self.histogram(place);
                self.line(&format!("print({text});"));
            }
            Statement::Variance(place, shift) => {
                let place = self.place(place);
                self.line(&format!("printf(\"~%d~\\n\", @variance({place}, {shift}));"));
            }
            Statement::Block(statements) => {
                self.line("{");
                self.inner(statements);
                self.line("}");
            }
        }
    }

    fn foreach_head(&self, foreach: &Foreach) -> String {
        let mark = |wanted: SortBy| match foreach.sort {
            Some(sort) if sort.by == wanted => {
                if sort.descending {
                    "-"
                } else {
                    "+"
                }
            }
            _ => "",
        };
        let keys: Vec<String> = foreach
            .keys
            .iter()
            .enumerate()
            .map(|(index, key)| format!("{}{}", self.local(*key), mark(SortBy::Key(index))))
            .collect();
        let keys = if keys.len() == 1 { keys.concat() } else { format!("[{}]", keys.join(", ")) };
        let value =
            foreach.value.map(|value| format!("{}{} = ", self.local(value), mark(SortBy::Value))).unwrap_or_default();
        let slice = foreach.slice.as_ref().map(|slice| format!("[{}]", self.slice(slice))).unwrap_or_default();
        let extractor = match foreach.sort {
            Some(Sort { by: by @ SortBy::Extracted(extractor), .. }) => format!(" {}{}", extractor.name(), mark(by)),
            _ => mark(SortBy::Array).to_string(),
        };
        let limit =
            foreach.limit.as_ref().map(|limit| format!(" limit {}", self.expression(limit))).unwrap_or_default();
        format!("{value}{keys} in {}{slice}{extractor}{limit}", self.global(foreach.array))
    }

    fn slice(&self, keys: &[Option<Expression>]) -> String {
        let keys: Vec<String> =
            keys.iter().map(|key| key.as_ref().map_or("*".to_string(), |key| self.expression(key))).collect();
        keys.join(", ")
    }

    fn local(&self, index: usize) -> String {
        match self.locals[index] {
            Type::Long => format!("l{index}"),
            Type::Text => format!("t{index}"),
        }
    }

    fn global(&self, index: usize) -> String {
        global_name(self.number, index)
    }

    fn function_name(&self, index: usize) -> String {
        format!("f{}_{index}", self.number)
    }

    fn place(&self, place: &Variable) -> String {
        match place {
            Variable::Local(index) => self.local(*index),
            Variable::Global(index) => self.global(*index),
            Variable::Element(index, keys) => {
                format!("{}[{}]", self.global(*index), self.list(keys))
            }
        }
    }

    fn list(&self, expressions: &[Expression]) -> String {
        let texts: Vec<String> = expressions.iter().map(|expression| self.expression(expression)).collect();
        texts.join(", ")
    }

    fn histogram(&self, place: &Variable) -> String {
        let (Variable::Local(index) | Variable::Global(index) | Variable::Element(index, _)) = place;
        let name = self.place(place);
        match &self.program.globals[*index].kind {
            GlobalKind::Aggregate { histogram: Some(Histogram::Linear { low, high, width }), .. } => {
                format!("@hist_linear({name}, {low}, {high}, {width})")
            }
            _ => format!("@hist_log({name})"),
        }
    }

    /// In parentheses if its precedence is below `least`.
    fn at(&self, expression: &Expression, least: u8) -> String {
        let text = self.expression(expression);
        if level_of(expression) < least { format!("({text})") } else { text }
    }

    fn expression(&self, expression: &Expression) -> String {
        match expression {
            Expression::Number(number, true) => format!("{number:#x}"),
            Expression::Number(number, false) => number.to_string(),
            Expression::Text(text) => quoted(text),
            Expression::Read(place) => self.place(place),
            Expression::Unary(operator, operand) => {
                let symbol = match operator {
                    Unary::Plus => "+",
                    Unary::Minus => "-",
                    Unary::Not => "!",
                    Unary::Complement => "~",
                };
                // With a space: - and -1 would be --.
                format!("{symbol} {}", self.at(operand, level::UNARY))
            }
            Expression::Binary(operator, left, right) => {
                let own = binary_level(*operator);
                format!("{} {} {}", self.at(left, own), operator.symbol(), self.at(right, own + 1))
            }
            Expression::Ternary(condition, yes, no) => {
                format!(
                    "{} ? {} : {}",
                    self.at(condition, level::TERNARY + 1),
                    self.at(yes, level::TERNARY),
                    self.at(no, level::TERNARY)
                )
            }
            Expression::In(keys, array) => match keys.as_slice() {
                [Some(key)] => {
                    format!("{} in {}", self.at(key, level::IN + 1), self.global(*array))
                }
                keys => format!("[{}] in {}", self.slice(keys), self.global(*array)),
            },
            Expression::Assign(place, value) => {
                format!("{} = {}", self.place(place), self.at(value, level::ASSIGN))
            }
            Expression::Update(operator, place, value) => {
                format!("{} {}= {}", self.place(place), operator.symbol(), self.at(value, level::ASSIGN))
            }
            Expression::Feed(place, value) => format!("{} <<< {}", self.place(place), self.at(value, level::ASSIGN)),
            Expression::Step(step, place) => {
                let place = self.place(place);
                match step {
                    Step::PreIncrement => format!("++{place}"),
                    Step::PreDecrement => format!("--{place}"),
                    Step::PostIncrement => format!("{place}++"),
                    Step::PostDecrement => format!("{place}--"),
                }
            }
            Expression::Call(function, arguments) => {
                format!("{}({})", self.function_name(*function), self.list(arguments))
            }
            Expression::Builtin(builtin, arguments) => {
                format!("{}({})", builtin.signature().0, self.list(arguments))
            }
            Expression::Sprint(print) => self.print(print, "s"),
            Expression::Extract(extractor, place) => {
                format!("{}({})", extractor.name(), self.place(place))
            }
            Expression::Bucket(place, index) => {
                format!("{}[{}]", self.histogram(place), self.expression(index))
            }
            Expression::Match(text, pattern, positive) => {
                let operator = if *positive { "=~" } else { "!~" };
                format!("{} {operator} {}", self.at(text, level::COMPARE + 1), quoted(pattern_text(pattern).as_bytes()))
            }
        }
    }

    /// `before`: "s" for the functions that return a string.
    fn print(&self, print: &Print, before: &str) -> String {
        let arguments = self.list(&print.arguments);
        let join = |first: String| {
            if print.arguments.is_empty() { first } else { format!("{first}, {arguments}") }
        };
        match &print.form {
            Form::Plain => format!("{before}print({arguments})"),
            Form::Line => format!("{before}println({arguments})"),
            Form::Delimited(delimiter) => format!("{before}printd({})", join(quoted(delimiter))),
            Form::DelimitedLine(delimiter) => {
                format!("{before}printdln({})", join(quoted(delimiter)))
            }
            Form::Formatted(pieces) => {
                format!("{before}printf({})", join(quoted(&format_text(pieces))))
            }
        }
    }
}

fn type_name(kind: Type) -> &'static str {
    match kind {
        Type::Long => "long",
        Type::Text => "string",
    }
}

fn literal(value: &Value) -> String {
    match value {
        Value::Long(number) => number.to_string(),
        Value::Text(text) => quoted(text),
    }
}

/// A string literal. Octal escapes have three digits, so that following digits are not part of them.
fn quoted(text: &[u8]) -> String {
    let mut quoted = String::from("\"");
    for byte in text {
        match byte {
            b'"' => quoted.push_str("\\\""),
            b'\\' => quoted.push_str("\\\\"),
            b'\n' => quoted.push_str("\\n"),
            b'\t' => quoted.push_str("\\t"),
            b' '..=b'~' => quoted.push(char::from(*byte)),
            _ => {
                let _ = write!(quoted, "\\{byte:03o}");
            }
        }
    }
    quoted.push('"');
    quoted
}

fn format_text(pieces: &[Piece]) -> Vec<u8> {
    let mut text = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text(bytes) => text.extend_from_slice(bytes),
            Piece::Percent => text.extend_from_slice(b"%%"),
            Piece::Directive(directive) => {
                text.push(b'%');
                text.extend(directive.flag);
                match directive.width {
                    Some(Width::Fixed(width)) => text.extend_from_slice(width.to_string().as_bytes()),
                    Some(Width::Argument) => text.push(b'*'),
                    None => {}
                }
                match directive.precision {
                    Some(Width::Fixed(width)) => text.extend_from_slice(format!(".{width}").as_bytes()),
                    Some(Width::Argument) => text.extend_from_slice(b".*"),
                    None => {}
                }
                text.push(directive.conversion);
            }
        }
    }
    text
}

fn pattern_text(pattern: &Pattern) -> String {
    let inner = alternatives_text(&pattern.alternatives);
    // An anchor belongs to its alternative.
    let inner = if pattern.alternatives.len() > 1 && (pattern.from_start || pattern.to_end) {
        format!("({inner})")
    } else {
        inner
    };
    format!("{}{inner}{}", if pattern.from_start { "^" } else { "" }, if pattern.to_end { "$" } else { "" })
}

fn alternatives_text(alternatives: &[Vec<(Atom, Repeat)>]) -> String {
    let texts: Vec<String> = alternatives.iter().map(|sequence| sequence.iter().map(repeated_text).collect()).collect();
    texts.join("|")
}

fn repeated_text((atom, repeat): &(Atom, Repeat)) -> String {
    let atom = match atom {
        Atom::Byte(byte) if byte.is_ascii_alphanumeric() || *byte == b' ' => char::from(*byte).to_string(),
        Atom::Byte(byte) => format!("\\{}", char::from(*byte)),
        Atom::Any => ".".to_string(),
        Atom::Class(ranges, negated) => {
            let ranges: String =
                ranges.iter().map(|(low, high)| format!("{}-{}", char::from(*low), char::from(*high))).collect();
            format!("[{}{ranges}]", if *negated { "^" } else { "" })
        }
        Atom::Group(alternatives) => format!("({})", alternatives_text(alternatives)),
    };
    let repeat = match (repeat.least, repeat.most) {
        (1, Some(1)) => String::new(),
        (0, None) => "*".to_string(),
        (1, None) => "+".to_string(),
        (0, Some(1)) => "?".to_string(),
        (least, None) => format!("{{{least},}}"),
        (least, Some(most)) => format!("{{{least},{most}}}"),
    };
    atom + &repeat
}
