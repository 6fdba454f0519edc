// SPDX-License-Identifier: GPL-2.0-or-later

//! `--where`: which events are wanted.
//!
//!     fd == 3 && comm =~ "^cat" || !(size < 0x1000)
//!
//! Names are `time`, `cpu`, `pid`, `tid`, `comm`, `probe`, `kind`, `text`, and those of values; others are put into
//! backquotes. A comparison with a value that an event does not have is false.

use regex::bytes::Regex;
use spilerun::records::values::Value;

use crate::event::{Event, Session, What};
use crate::json;

/// A condition.
#[derive(Debug)]
pub enum Condition {
    /// Any of them.
    Any(Vec<Condition>),
    /// All of them.
    All(Vec<Condition>),
    /// The opposite.
    Not(Box<Condition>),
    /// Two operands.
    Compare(Operand, Order, Operand),
    /// A text and a pattern.
    Matches(Operand, Regex),
    /// It is there, and neither 0 nor empty.
    Set(Operand),
}

/// How operands are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// `==`
    Equal,
    /// `!=`
    Different,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `>=`
    AtLeast,
}

/// What is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A number.
    Number(i128),
    /// In quotes.
    Text(Vec<u8>),
    /// Of the event.
    Name(String),
}

/// What an event has.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    Number(i128),
    Text(Vec<u8>),
}

const FIXED: [&str; 9] = ["time", "cpu", "pid", "tid", "comm", "execname", "probe", "kind", "text"];
const MOST_DEPTH: usize = 100;

/// Parses a condition; the error says what is wrong where.
pub fn parse(text: &str) -> Result<Condition, String> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    let condition = parser.any()?;
    match parser.rest().chars().next() {
        None => Ok(condition),
        Some('(' | '[' | '-' | '+' | '*' | '/' | '%') => {
            Err(format!("{}; a name that is not a word is put into backquotes: `by[n]`", parser.wrong("an operator")))
        }
        Some(_) => Err(parser.wrong("an operator")),
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn rest(&mut self) -> &'t str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    fn wrong(&mut self, wanted: &str) -> String {
        let rest = self.rest();
        let found = if rest.is_empty() { "the end".to_string() } else { format!("`{rest}`") };
        format!("{wanted} is missing before {found}")
    }

    fn accept(&mut self, word: &str) -> bool {
        let is_there = self.rest().starts_with(word);
        self.at += if is_there { word.len() } else { 0 };
        is_there
    }

    fn any(&mut self) -> Result<Condition, String> {
        let mut parts = vec![self.all()?];
        while self.accept("||") {
            parts.push(self.all()?);
        }
        Ok(Condition::Any(parts))
    }

    fn all(&mut self) -> Result<Condition, String> {
        let mut parts = vec![self.not()?];
        while self.accept("&&") {
            parts.push(self.not()?);
        }
        Ok(Condition::All(parts))
    }

    fn not(&mut self) -> Result<Condition, String> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err("it is nested too deeply".to_string());
        }
        let condition = if self.accept("(") {
            let inner = self.any()?;
            if !self.accept(")") {
                return Err(self.wrong("`)`"));
            }
            inner
        } else if !self.rest().starts_with("!=") && self.accept("!") {
            Condition::Not(Box::new(self.not()?))
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(condition)
    }

    fn comparison(&mut self) -> Result<Condition, String> {
        let left = self.operand()?;
        if self.accept("=~") {
            return match self.operand()? {
                Operand::Text(pattern) => {
                    let pattern = String::from_utf8_lossy(&pattern).into_owned();
                    let compiled = regex::bytes::RegexBuilder::new(&pattern).size_limit(1 << 20).build();
                    compiled.map(|regex| Condition::Matches(left, regex)).map_err(|error| error.to_string())
                }
                _ => Err("after =~ comes a pattern in quotes".to_string()),
            };
        }
        let orders = [
            ("==", Order::Equal),
            ("!=", Order::Different),
            ("<=", Order::AtMost),
            (">=", Order::AtLeast),
            ("<", Order::Less),
            (">", Order::More),
        ];
        for (word, order) in orders {
            if self.accept(word) {
                return Ok(Condition::Compare(left, order, self.operand()?));
            }
        }
        if self.rest().starts_with('=') {
            return Err("`=` is no comparison: write ==".to_string());
        }
        Ok(Condition::Set(left))
    }

    fn operand(&mut self) -> Result<Operand, String> {
        let rest = self.rest();
        match rest.chars().next() {
            Some(quote @ ('"' | '\'' | '`')) => {
                let inner = rest.get(1..).unwrap_or_default();
                let end = inner.find(quote).ok_or_else(|| format!("{quote} is missing at the end of {rest}"))?;
                self.at += end + 2;
                let text = inner.get(..end).unwrap_or_default();
                Ok(match quote {
                    '`' => Operand::Name(text.to_string()),
                    _ => Operand::Text(text.as_bytes().to_vec()),
                })
            }
            Some(first) if first.is_ascii_digit() || first == '-' => {
                let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).unwrap_or(rest.len());
                let word = rest.get(..end).unwrap_or_default();
                let (sign, digits) = word.strip_prefix('-').map_or((1, word), |digits| (-1, digits));
                let number = match digits.strip_prefix("0x") {
                    Some(hex) => u64::from_str_radix(hex, 16),
                    None => digits.parse::<u64>(),
                };
                let number = number.map_err(|_| format!("{word} is no number of 64 bits"))?;
                self.at += end;
                Ok(Operand::Number(sign * i128::from(number)))
            }
            Some(first) if first.is_alphabetic() || "_$@".contains(first) => {
                let end = rest.find(|c: char| !(c.is_alphanumeric() || "_$@.".contains(c))).unwrap_or(rest.len());
                self.at += end;
                let name = rest.get(..end).unwrap_or_default().trim_matches('$');
                // As in the script.
                self.accept("()");
                Ok(Operand::Name(name.to_string()))
            }
            _ => Err(self.wrong("a name, a number or a text in quotes")),
        }
    }
}

impl Condition {
    /// Whether the event is wanted.
    pub fn holds(&self, event: &Event<'_>) -> bool {
        match self {
            Condition::Any(parts) => parts.iter().any(|part| part.holds(event)),
            Condition::All(parts) => parts.iter().all(|part| part.holds(event)),
            Condition::Not(inner) => !inner.holds(event),
            Condition::Compare(left, order, right) => {
                let (Some(left), Some(right)) = (left.of(event), right.of(event)) else { return false };
                compare(&left, *order, &right)
            }
            Condition::Matches(operand, regex) => match operand.of(event) {
                Some(Found::Text(text)) => regex.is_match(&text),
                Some(Found::Number(number)) => regex.is_match(number.to_string().as_bytes()),
                None => false,
            },
            Condition::Set(operand) => match operand.of(event) {
                Some(Found::Text(text)) => !text.is_empty(),
                Some(Found::Number(number)) => number != 0,
                None => false,
            },
        }
    }

    /// A name that no event of the session has.
    pub fn unknown<'c>(&'c self, session: &Session) -> Option<&'c str> {
        let operands: Vec<&Operand> = match self {
            Condition::Any(parts) | Condition::All(parts) => {
                return parts.iter().find_map(|part| part.unknown(session));
            }
            Condition::Not(inner) => return inner.unknown(session),
            Condition::Compare(left, _, right) => vec![left, right],
            Condition::Matches(operand, _) | Condition::Set(operand) => vec![operand],
        };
        operands.into_iter().find_map(|operand| match operand {
            Operand::Name(name)
                if !FIXED.contains(&name.as_str()) && !session.names.iter().any(|known| is_named(known, name)) =>
            {
                Some(name.as_str())
            }
            _ => None,
        })
    }
}

/// `known`, or with a number after it.
fn is_named(known: &str, name: &str) -> bool {
    name == known || name.strip_prefix(known).is_some_and(|rest| rest.starts_with('_'))
}

fn compare(left: &Found, order: Order, right: &Found) -> bool {
    let ordering = match (left, right) {
        (Found::Number(left), Found::Number(right)) => left.cmp(right),
        (Found::Text(left), Found::Text(right)) => left.cmp(right),
        // A number and a text are different.
        _ => return order == Order::Different,
    };
    match order {
        Order::Equal => ordering.is_eq(),
        Order::Different => ordering.is_ne(),
        Order::Less => ordering.is_lt(),
        Order::AtMost => ordering.is_le(),
        Order::More => ordering.is_gt(),
        Order::AtLeast => ordering.is_ge(),
    }
}

impl Operand {
    fn of(&self, event: &Event<'_>) -> Option<Found> {
        let name = match self {
            Operand::Number(number) => return Some(Found::Number(*number)),
            Operand::Text(text) => return Some(Found::Text(text.clone())),
            Operand::Name(name) => name.as_str(),
        };
        // The script's own value of that name comes first.
        if let What::Print(print) = &event.what
            && let Some((_, value)) = print.values().find(|(known, _)| *known == name)
        {
            return of_value(value);
        }
        let number = |number: Option<u64>| number.map(|number| Found::Number(number.into()));
        match name {
            "time" => number(Some(event.time)),
            "cpu" => number(Some(event.cpu.into())),
            "pid" => number(event.task.map(|task| task.pid.into())),
            "tid" => number(event.task.map(|task| task.tid.into())),
            "comm" | "execname" => event.task.map(|task| Found::Text(task.comm.clone())),
            "probe" => event.probe.map(|probe| Found::Text(probe.into())),
            "kind" => Some(Found::Text(event.what.kind().into())),
            "text" => match &event.what {
                What::Print(print) => Some(Found::Text(print.text.to_vec())),
                What::Message(_, text) => Some(Found::Text(text.clone().into_bytes())),
                _ => None,
            },
            _ => None,
        }
    }
}

fn of_value(value: &Value) -> Option<Found> {
    match value {
        Value::Signed(number) => Some(Found::Number((*number).into())),
        Value::Unsigned(number) => Some(Found::Number((*number).into())),
        Value::Text(text) => Some(Found::Text(text.clone())),
        Value::Unreadable => None,
        other => {
            let mut json = String::new();
            json::write_value(other, &mut json);
            Some(Found::Text(json.into_bytes()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Print, Task};
    use spilerun::records::values::Part;

    #[test]
    fn conditions_on_values_tasks_and_texts() {
        let parts = [Part::Value(Value::Signed(-3)), Part::Value(Value::Text(b"/etc/passwd".to_vec()))];
        let names = vec!["fd".to_string(), "user_string(filename)".to_string()];
        let print = Print { format: 0, parts: &parts, names, text: b"-3 /etc/passwd\n" };
        let task = Task { pid: 7, tid: 8, comm: b"cat".to_vec() };
        let event = Event { time: 5, cpu: 1, task: Some(&task), probe: Some("syscall.open"), what: What::Print(print) };
        for (text, expected) in [
            ("fd == -3", true),
            ("$fd < 0 && pid == 7", true),
            ("fd >= 0 || comm == \"cat\"", true),
            ("!(fd < 0)", false),
            ("`user_string(filename)` =~ \"^/etc/\"", true),
            ("comm =~ 'dog|cat'", true),
            ("pid() == 0x7 && tid != 7", true),
            ("missing == 1", false),
            ("!missing", true),
            ("fd == \"-3\"", false),
            ("text =~ 'passwd' && kind == 'print' && probe =~ 'open'", true),
            ("fd", true),
        ] {
            assert_eq!(parse(text).unwrap().holds(&event), expected, "{text}");
        }
        let session = Session { about: Vec::new(), realtime: 0, names: vec!["fd".to_string()] };
        assert_eq!(parse("fd_2 == 1 && (pid == 1 || fdd == 2)").unwrap().unknown(&session), Some("fdd"));
        assert_eq!(parse("fd == 1 && comm == 'x'").unwrap().unknown(&session), None);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("fd = 3", "write =="),
            ("fd ==", "a name, a number or a text in quotes is missing before the end"),
            ("(fd == 3", "`)` is missing"),
            ("fd == 3 comm", "an operator is missing before `comm`"),
            ("by[n] > 3", "before `[n] > 3`; a name that is not a word is put into backquotes"),
            ("comm =~ cat", "a pattern in quotes"),
            ("comm =~ '('", "unclosed group"),
            ("fd == 3x", "3x is no number"),
            ("fd == --3", "--3 is no number"),
            ("fd == --170141183460469231731687303715884105728", "is no number"),
            ("fd == 0xfffffffffffffffffffff", "is no number"),
            ("comm == \"cat", "is missing at the end"),
            ("", "a name"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!(parse(&"!".repeat(100_000)).is_err() && parse(&"(".repeat(100_000)).is_err());
    }
}
