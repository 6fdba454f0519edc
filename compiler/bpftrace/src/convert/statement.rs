// SPDX-License-Identifier: GPL-2.0-or-later

//! Statements.

use spile_source::Span;

use super::super::ast::{Expr, ExprKind, Statement};
use super::call::NOW;
use super::expression::local_name;
use super::maps::{Map, MapFunction};
use super::value::{Kind, Value};
use super::{Handler, Local, format};

impl Handler<'_> {
    /// The statements as lines.
    pub fn block(&mut self, statements: &[Statement]) -> Vec<String> {
        let mut lines = Vec::new();
        for (index, statement) in statements.iter().enumerate() {
            let mut own = self.statement(statement);
            lines.append(&mut self.before);
            lines.append(&mut own);
            // exit() ends the handler in bpftrace; in a script the handler continues.
            let exits =
                matches!(statement, Statement::Expr(Expr { kind: ExprKind::Call { name, .. }, .. }) if name == "exit");
            if exits && (index + 1 < statements.len() || self.blocks > 0) {
                lines.push("next".to_string());
                break;
            }
        }
        lines
    }

    fn nested(&mut self, head: String, body: &[Statement]) -> Vec<String> {
        let outer = std::mem::take(&mut self.before);
        self.blocks += 1;
        let inner = self.block(body);
        self.blocks -= 1;
        self.before = outer;
        let mut lines = vec![format!("{head} {{")];
        lines.extend(inner.into_iter().map(|line| format!("\t{line}")));
        lines.push("}".to_string());
        lines
    }

    fn loop_of(&mut self, head: String, body: &[Statement]) -> Vec<String> {
        self.loops += 1;
        let lines = self.nested(head, body);
        self.loops -= 1;
        lines
    }

    fn statement(&mut self, statement: &Statement) -> Vec<String> {
        match statement {
            Statement::Assign { target, op, value } => self.assign(target, op, value),
            Statement::Expr(Expr { kind: ExprKind::Call { name, arguments }, span, .. }) => {
                self.call_statement(name, arguments, *span)
            }
            Statement::Expr(expr) => vec![self.value(expr).text],
            Statement::If { condition, then, otherwise, negated } => {
                let condition = self.value(condition);
                let condition = if *negated { format!("!{}", condition.operand()) } else { condition.text };
                let mut lines = self.nested(format!("if ({condition})"), then);
                match otherwise.as_deref() {
                    Some([Statement::If { .. }]) => {
                        let rest =
                            otherwise.iter().flatten().flat_map(|other| self.statement(other)).collect::<Vec<_>>();
                        let rest = rest.into_iter().enumerate();
                        lines.extend(rest.map(|(at, line)| if at == 0 { format!("else {line}") } else { line }));
                    }
                    Some(otherwise) => lines.extend(self.nested("else".to_string(), otherwise)),
                    None => {}
                }
                lines
            }
            Statement::While { condition, body } => {
                self.loops += 1;
                let condition = self.value(condition).text;
                self.loops -= 1;
                self.loop_of(format!("while ({condition})"), body)
            }
            Statement::Range { variable, from, to, body } => {
                let (from, to) = (self.value(from).text, self.value(to).operand());
                let local = Local { kind: Some(Kind::Number), ..Local::default() };
                self.locals.insert(variable.clone(), local);
                let name = local_name(&self.script.maps, variable);
                self.loop_of(format!("for ({name} = {from}; {name} < {to}; {name}++)"), body)
            }
            Statement::Each { variable, map, body } => self.each(variable, map, body),
            Statement::Unroll { times, body } => {
                let times = self.value(times).operand();
                let index = format!("turn{}", self.loops);
                self.loop_of(format!("for ({index} = 0; {index} < {times}; {index}++)"), body)
            }
            Statement::Break => vec!["break".to_string()],
            Statement::Continue => vec!["continue".to_string()],
            Statement::Return => vec!["next".to_string()],
            Statement::Declare => Vec::new(),
        }
    }

    fn each(&mut self, variable: &str, map: &Expr, body: &[Statement]) -> Vec<String> {
        let span = map.span;
        let ExprKind::Map { name, keys } = &map.kind else {
            self.wrong("a loop goes over a map, @name, or over numbers, 0..10", map.span);
            return Vec::new();
        };
        if !keys.is_empty() {
            self.wrong("a loop goes over a whole map", map.span);
        }
        let changes = body.iter().any(|statement| statement.changes(name));
        let map = self.script.map(name).clone();
        let names = map.key_names(self.loops);
        if map.keys.is_empty() {
            self.no_counterpart("a loop over a map without keys", span, "use its value");
        }
        let (before, head, value) = match changes {
            true => self.copy(&map, &names),
            false => (Vec::new(), map.foreach(&names, "", None), map.value(&map.element(&names))),
        };
        let value = Value::of(map.kind(), value);
        let kinds = map.keys.iter().copied();
        let entry = Some((names.into_iter().zip(kinds).map(|(name, kind)| Value::of(kind, name)).collect(), value));
        self.locals.insert(variable.to_string(), Local { entry, ..Local::default() });
        let lines = self.loop_of(head, body);
        before.into_iter().chain(lines).collect()
    }

    /// For a loop over a map that changes in it, which no script can do: the statements that copy the map, the head of a loop over
    /// the copy, and the value of an entry.
    fn copy(&mut self, map: &Map, names: &[String]) -> (Vec<String>, String, String) {
        let mut copy = format!("entries_of_{}", map.global);
        // A loop inside one over the same map needs another.
        copy.extend((self.loops > 0).then(|| format!("_{}", self.loops)));
        while self.script.maps.iter().any(|map| map.global == copy) {
            copy.push('_');
        }
        self.script.copies.insert(copy.clone());
        let copied = Map { global: copy.clone(), collects: None, ..map.clone() };
        let element = copied.element(names);
        let lines = vec![
            format!("delete {copy}"),
            format!("{} {element} = {}", map.foreach(names, "", None), map.value(&map.element(names))),
        ];
        (lines, copied.foreach(names, "", None), element)
    }

    fn assign(&mut self, target: &Expr, op: &str, value: &Expr) -> Vec<String> {
        match &target.kind {
            ExprKind::Variable(name) => {
                let value = self.value(value);
                let local = self.locals.entry(name.clone()).or_default();
                if op == "=" {
                    local.kind = Some(value.kind);
                    local.pointee.clone_from(&value.pointee);
                    local.typed = value.typed;
                }
                let name = local_name(&self.script.maps, name);
                vec![self.assignment(&name, op, &value)]
            }
            ExprKind::Map { name, keys } => match &value.kind {
                ExprKind::Call { name: function, arguments } if op == "=" => {
                    match self.collect(name, keys, function, arguments) {
                        Some(lines) => lines,
                        None => self.set(name, keys, op, value),
                    }
                }
                _ => self.set(name, keys, op, value),
            },
            _ => {
                self.no_counterpart(
                    "an assignment to this",
                    target.span,
                    "in guru mode a script assigns to $variables",
                );
                Vec::new()
            }
        }
    }

    /// A plain value in a map.
    fn set(&mut self, name: &str, keys: &[Expr], op: &str, value: &Expr) -> Vec<String> {
        let value = self.value(value);
        let keys = self.keys(name, keys);
        let is_end = self.is_end();
        let map = self.script.map(name);
        map.is_cleared &= !is_end;
        // A number if it is one anywhere.
        match &mut map.collects {
            Some(MapFunction::Values(kind)) if *kind == Kind::Unknown => *kind = value.kind,
            Some(_) => {}
            None => map.collects = Some(MapFunction::Values(value.kind)),
        }
        let element = map.element(&keys);
        vec![self.assignment(&element, op, &value)]
    }

    /// `target op value`, where `target` can be read too.
    fn assignment(&mut self, target: &str, op: &str, value: &Value) -> String {
        match op {
            "/=" | "%=" if !value.is_fixed() => {
                let changed = self.divided(target, op.trim_end_matches('='), value);
                format!("{target} = {}", changed.text)
            }
            _ => format!("{target} {op} {}", value.text),
        }
    }

    /// `@name[keys] = function(arguments)`, where the function collects values.
    fn collect(&mut self, name: &str, keys: &[Expr], function: &str, arguments: &[Expr]) -> Option<Vec<String>> {
        let mut argument = |at: usize| arguments.get(at).map(|argument| self.value(argument).text).unwrap_or_default();
        let (collects, change) = match (function, arguments.len()) {
            ("count", 0) => (MapFunction::Values(Kind::Number), "++".to_string()),
            ("sum", 1) => (MapFunction::Values(Kind::Number), format!(" += {}", argument(0))),
            ("avg", 1) => (MapFunction::Average, format!(" <<< {}", argument(0))),
            ("min", 1) => (MapFunction::Least, format!(" <<< {}", argument(0))),
            ("max", 1) => (MapFunction::Greatest, format!(" <<< {}", argument(0))),
            ("stats", 1) => (MapFunction::Statistics, format!(" <<< {}", argument(0))),
            ("hist", 1) => (MapFunction::Histogram, format!(" <<< {}", argument(0))),
            ("lhist", 4) => {
                let value = argument(0);
                (MapFunction::Linear(argument(1), argument(2), argument(3)), format!(" <<< {value}"))
            }
            _ => return None,
        };
        let keys = self.keys(name, keys);
        let is_end = self.is_end();
        let map = self.script.map(name);
        map.collects = Some(collects);
        map.is_cleared &= !is_end;
        map.may_be_absent |= function == "count";
        Some(vec![format!("{}{change}", map.element(&keys))])
    }

    /// A call as a statement.
    fn call_statement(&mut self, name: &str, arguments: &[Expr], span: Span) -> Vec<String> {
        match (name, arguments) {
            ("printf", [Expr { kind: ExprKind::Text(text), .. }, rest @ ..]) => vec![self.printf("printf", text, rest)],
            ("errorf" | "warnf", [Expr { kind: ExprKind::Text(text), .. }, rest @ ..]) => {
                let text = self.printf("sprintf", text, rest);
                vec![format!("warn({text})")]
            }
            ("system", [Expr { kind: ExprKind::Text(text), .. }, rest @ ..]) => {
                let text = self.printf("sprintf", text, rest);
                vec![format!("system({text})")]
            }
            ("cat", [Expr { kind: ExprKind::Text(text), .. }, rest @ ..]) => {
                let text = self.printf("sprintf", text, rest);
                vec![format!("system(\"cat \" . {text})")]
            }
            ("exit", _) => vec!["exit()".to_string()],
            ("time", []) => self.time_statement("\"%H:%M:%S\\n\"", span),
            ("time", [Expr { kind: ExprKind::Text(text), .. }]) => self.time_statement(text, span),
            ("join", _) => {
                let text = self.call(name, arguments, span).text;
                vec![format!("println({text})")]
            }
            ("print", [Expr { kind: ExprKind::Map { name, keys }, .. }, rest @ ..]) => {
                self.print_map(name, keys, rest, span)
            }
            ("print", [value]) => self.print(value),
            ("clear", [Expr { kind: ExprKind::Map { name, .. }, .. }]) => {
                self.cleared(name);
                vec![format!("delete {}", self.script.map(name).global)]
            }
            ("zero", [Expr { kind: ExprKind::Map { name, .. }, .. }]) => self.zero(name),
            ("delete", [Expr { kind: ExprKind::Map { name, keys }, .. }, rest @ ..]) => {
                self.cleared(name);
                let keys = match rest {
                    [key] => self.keys(name, &key.clone().into_keys()),
                    _ => self.keys(name, keys),
                };
                vec![format!("delete {}", self.script.map(name).element(&keys))]
            }
            _ => vec![self.call(name, arguments, span).text],
        }
    }

    /// `function("format", values)`
    fn printf(&mut self, function: &str, text: &str, values: &[Expr]) -> String {
        let mut parts = vec![format::printf(text)];
        let conversions = format::conversions(text);
        for (index, value) in values.iter().enumerate() {
            let mut value = self.value(value);
            // What bpftrace prints as text without str() is an array of char.
            if value.typed && value.kind == Kind::Unknown && conversions.get(index) == Some(&'s') {
                value = self.characters(&value);
            }
            parts.push(value.shown());
        }
        format!("{function}({})", parts.join(", "))
    }

    fn time_statement(&mut self, text: &str, span: Span) -> Vec<String> {
        let value = self.time(text, NOW, span);
        vec![format!("print({})", value.text)]
    }

    fn print(&mut self, value: &Expr) -> Vec<String> {
        let value = self.value(value);
        vec![match value.kind {
            Kind::KernelStack => format!("print_stack({})", value.text),
            Kind::UserStack => format!("print_ustack({})", value.text),
            Kind::Number | Kind::Text | Kind::Unknown => format!("println({})", value.text),
        }]
    }

    fn is_end(&self) -> bool {
        self.points.iter().all(|point| point == "end")
    }

    /// Notes that a map is removed here; if this is the end, in any case.
    fn cleared(&mut self, name: &str) {
        let is_end = self.blocks == 0 && !self.filtered && self.is_end();
        let map = self.script.map(name);
        map.is_cleared |= is_end;
        map.may_be_absent = true;
    }

    fn print_map(&mut self, name: &str, keys: &[Expr], rest: &[Expr], span: Span) -> Vec<String> {
        let rest: Vec<Value> = rest.iter().map(|value| self.value(value)).collect();
        // The keys as expressions are evaluated once for the text and once for the element: none has effects.
        let keys = self.keys(name, keys);
        let loops = self.loops;
        let map = self.script.map(name);
        if !keys.is_empty() {
            return map.print_one(&keys, None);
        }
        let limit = rest.first().map(|limit| limit.text.clone()).filter(|limit| limit != "0");
        let divisor = rest.get(1).map(Value::operand);
        if divisor.is_some() && matches!(map.collects, Some(MapFunction::Histogram | MapFunction::Linear(..))) {
            self.no_counterpart("a divisor of a histogram", span, "divide the values: hist(value / 1000)");
            return Vec::new();
        }
        map.print(limit.as_deref(), divisor.as_deref(), loops)
    }

    fn zero(&mut self, name: &str) -> Vec<String> {
        let map = self.script.map(name).clone();
        if map.is_aggregate() {
            return vec![format!("delete {}", map.global)];
        }
        if map.keys.is_empty() {
            return vec![format!("{} = 0", map.global)];
        }
        let keys = map.key_names(self.loops);
        let (mut lines, head, _) = self.copy(&map, &keys);
        lines.push(format!("{head} {} = 0", map.element(&keys)));
        lines
    }
}
