// SPDX-License-Identifier: GPL-2.0-or-later

//! Maps: which global variable each is, and how it is printed.

use super::value::Kind;

/// The function that a map collects values with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapFunction {
    /// Plain values, counts and sums.
    Values(Kind),
    Average,
    Least,
    Greatest,
    /// Count, average and sum.
    Statistics,
    Histogram,
    /// With its lower bound, upper bound and step.
    Linear(String, String, String),
}

/// What is known of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// In the program, without `@`.
    pub name: String,
    /// The global variable.
    pub global: String,
    /// One of each key; none for a single value.
    pub keys: Vec<Kind>,
    /// `None` if nothing assigns to it.
    pub collects: Option<MapFunction>,
    /// It is cleared at the end: without keys it would be printed as 0.
    pub is_cleared: bool,
    /// Without keys, 0 or an empty text means that it has no value: it counts, or is deleted somewhere.
    pub may_be_absent: bool,
}

impl Map {
    /// Whether its values are collected by `<<<`.
    pub fn is_aggregate(&self) -> bool {
        !matches!(self.collects, None | Some(MapFunction::Values(_)))
    }

    /// What its values are where they are read.
    pub fn kind(&self) -> Kind {
        match &self.collects {
            Some(MapFunction::Values(kind)) => *kind,
            None => Kind::Unknown,
            Some(_) => Kind::Number,
        }
    }

    /// The names of keys in a loop inside `loops` others: a handler may have loops over several maps, with keys of different types, and
    /// over one map inside each other.
    pub fn key_names(&self, loops: usize) -> Vec<String> {
        let of_loop = if loops > 0 { format!("_{loops}") } else { String::new() };
        match self.keys.len() {
            1 => vec![format!("{}_key{of_loop}", self.global)],
            count => (1..=count).map(|number| format!("{}_key{number}{of_loop}", self.global)).collect(),
        }
    }

    /// The element with these keys.
    pub fn element(&self, keys: &[String]) -> String {
        if keys.is_empty() { self.global.clone() } else { format!("{}[{}]", self.global, keys.join(", ")) }
    }

    /// The head of a loop over it; `order`: of the values, or of the first key where the values are text.
    pub fn foreach(&self, keys: &[String], order: &str, limit: Option<&str>) -> String {
        let mut keys = keys.to_vec();
        if let (Some(MapFunction::Values(Kind::Text)), Some(first)) = (&self.collects, keys.first_mut()) {
            first.push_str(order);
        }
        let keys = match keys.as_slice() {
            [only] => only.clone(),
            _ => format!("[{}]", keys.join(", ")),
        };
        let order = match &self.collects {
            _ if order.is_empty() => String::new(),
            None | Some(MapFunction::Values(Kind::KernelStack | Kind::UserStack | Kind::Text)) => String::new(),
            Some(MapFunction::Values(_)) => order.to_string(),
            Some(MapFunction::Average) => format!(" @avg{order}"),
            Some(MapFunction::Least) => format!(" @min{order}"),
            Some(MapFunction::Greatest) => format!(" @max{order}"),
            Some(MapFunction::Statistics | MapFunction::Histogram | MapFunction::Linear(..)) => {
                format!(" @count{order}")
            }
        };
        let limit = limit.map(|limit| format!(" limit {limit}")).unwrap_or_default();
        format!("foreach ({keys} in {}{order}{limit})", self.global)
    }

    /// The value of an element as a number or text; `element` is from [`Map::element`]. 0 without any collected value: the operators
    /// that need one are errors then.
    pub fn value(&self, element: &str) -> String {
        let value = self.value_of_any(element);
        match &self.collects {
            Some(MapFunction::Average | MapFunction::Least | MapFunction::Greatest) => {
                format!("(@count({element}) ? {value} : 0)")
            }
            _ => value,
        }
    }

    /// The same of an element that has collected values.
    fn value_of_any(&self, element: &str) -> String {
        match &self.collects {
            None | Some(MapFunction::Values(_)) => element.to_string(),
            Some(MapFunction::Average) => format!("@avg({element})"),
            Some(MapFunction::Least) => format!("@min({element})"),
            Some(MapFunction::Greatest) => format!("@max({element})"),
            Some(MapFunction::Statistics | MapFunction::Histogram | MapFunction::Linear(..)) => {
                format!("@count({element})")
            }
        }
    }

    /// Statements that print the whole map as bpftrace does: in the order of values, or (with `limit`) the greatest first;
    /// `loops`: around them.
    pub fn print(&self, limit: Option<&str>, divisor: Option<&str>, loops: usize) -> Vec<String> {
        if self.keys.is_empty() {
            return self.print_one(&[], divisor);
        }
        let keys = self.key_names(loops);
        let head = self.foreach(&keys, if limit.is_some() { "-" } else { "+" }, limit);
        guarded(&head, self.print_element(&keys, divisor))
    }

    /// Statements that print the element with these keys, unless it has no value.
    pub fn print_one(&self, keys: &[String], divisor: Option<&str>) -> Vec<String> {
        let print = self.print_element(keys, divisor);
        let element = self.element(keys);
        match &self.collects {
            _ if self.is_aggregate() => guarded(&format!("if (@count({element}))"), print),
            Some(MapFunction::Values(kind)) if keys.is_empty() && self.may_be_absent => match kind {
                Kind::Number => guarded(&format!("if ({element})"), print),
                Kind::Text | Kind::KernelStack | Kind::UserStack => guarded(&format!("if ({element} != \"\")"), print),
                // Its type is not known here.
                Kind::Unknown => print,
            },
            _ => print,
        }
    }

    /// Statements that print one element, which has values.
    fn print_element(&self, keys: &[String], divisor: Option<&str>) -> Vec<String> {
        let element = self.element(keys);
        let divided = |value: &str| divisor.map_or(value.to_string(), |divisor| format!("{value} / {divisor}"));
        let mut line = Line::default();
        line.text(&format!("@{}", self.name));
        for (index, key) in keys.iter().enumerate() {
            line.text(if index == 0 { "[" } else { ", " });
            line.value(key, self.keys.get(index).copied().unwrap_or(Kind::Unknown));
        }
        line.text(if keys.is_empty() { ": " } else { "]: " });
        match &self.collects {
            None => line.value(&element, Kind::Unknown),
            Some(MapFunction::Values(kind @ (Kind::KernelStack | Kind::UserStack))) => line.value(&element, *kind),
            Some(MapFunction::Values(kind)) => line.value(&divided(&element), *kind),
            Some(MapFunction::Average | MapFunction::Least | MapFunction::Greatest) => {
                line.value(&divided(&self.value_of_any(&element)), Kind::Number);
            }
            Some(MapFunction::Statistics) => {
                for (word, operator) in [("count ", "@count"), (", average ", "@avg"), (", total ", "@sum")] {
                    line.text(word);
                    line.value(&format!("{operator}({element})"), Kind::Number);
                }
            }
            Some(MapFunction::Histogram) => line.block(&format!("print(@hist_log({element}))")),
            Some(MapFunction::Linear(low, high, step)) => {
                line.block(&format!("print(@hist_linear({element}, {low}, {high}, {step}))"));
            }
        }
        line.statements()
    }
}

/// A statement, or several as a block, after `head`.
fn guarded(head: &str, body: Vec<String>) -> Vec<String> {
    match body.as_slice() {
        [only] => vec![head.to_string(), format!("\t{only}")],
        _ => {
            let body = body.iter().map(|line| format!("\t{line}"));
            std::iter::once(format!("{head} {{")).chain(body).chain(std::iter::once("}".to_string())).collect()
        }
    }
}

/// A line of output under construction: fixed text and values are printed by one call as far as possible.
#[derive(Default)]
struct Line {
    done: Vec<String>,
    pieces: Vec<String>,
    /// At the end of `pieces`.
    text: String,
    /// The line ended with a block that ends its own lines.
    closed: bool,
}

impl Line {
    fn text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn value(&mut self, text: &str, kind: Kind) {
        match kind {
            Kind::KernelStack => self.stack(&format!("print_stack({text})")),
            Kind::UserStack => self.stack(&format!("print_ustack({text})")),
            Kind::Number | Kind::Text | Kind::Unknown => {
                self.end_text();
                self.pieces.push(text.to_string());
            }
        }
    }

    /// A stack begins on a line of its own.
    fn stack(&mut self, statement: &str) {
        let kept = self.text.trim_end_matches(' ').len();
        self.text.truncate(kept);
        self.text("\\n");
        self.flush();
        self.done.push(statement.to_string());
    }

    fn block(&mut self, statement: &str) {
        self.stack(statement);
        self.closed = true;
    }

    fn end_text(&mut self) {
        if !self.text.is_empty() {
            self.pieces.push(format!("\"{}\"", std::mem::take(&mut self.text)));
        }
    }

    fn flush(&mut self) {
        self.end_text();
        if !self.pieces.is_empty() {
            self.done.push(format!("print({})", self.pieces.join(", ")));
            self.pieces.clear();
        }
    }

    fn statements(mut self) -> Vec<String> {
        if !self.closed {
            self.text("\\n");
        }
        self.flush();
        self.done
    }
}
