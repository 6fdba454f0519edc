// SPDX-License-Identifier: GPL-2.0-or-later

//! The globals of the script, whether or not it prints them: probes that are added to it print them every half second.
//!
//! They are ordinary script code, compiled with the script's own: the locks, the limits and the types are the compiler's.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use spilerun::records::values::Part;

use crate::report::{Cell, cell};

/// The probe point of the added probes. A script's own timer has hardly this period.
pub const POINT: &str = "timer.us(499999)";
/// The first bytes of what they print.
const MARK: &str = "\x1d__top ";
/// The same in the text of a script.
const WRITTEN_MARK: &str = r"\035__top ";
/// Globals that are shown.
const MOST_GLOBALS: usize = 30;
/// Elements of an array that are shown.
const MOST_ELEMENTS: usize = 8;
/// Arrays declared larger are not sorted, which would keep interrupts off for milliseconds.
const LARGEST_SORTED: u64 = 16_384;

/// A printed element of a global, or the start of a new round of them.
#[derive(Debug, PartialEq)]
pub struct Printed {
    /// The global, with the extractor of an aggregate behind it.
    pub name: String,
    /// The key and the value; `None`: a new round begins.
    pub element: Option<(String, Cell)>,
}

/// What one of the added probes has printed.
pub fn printed(parts: &[Part]) -> Option<Printed> {
    let (Part::Literal(first), rest) = parts.split_first()? else { return None };
    let name = first.strip_prefix(MARK.as_bytes())?;
    let name = String::from_utf8_lossy(name).trim_end().to_string();
    let mut cells: Vec<Cell> = rest
        .iter()
        .filter_map(|part| match part {
            Part::Value(value) => Some(cell(value)),
            Part::Literal(_) => None,
        })
        .collect();
    let Some(value) = cells.pop() else { return Some(Printed { name, element: None }) };
    let key = cells.iter().map(|key| match key {
        Cell::Number(number) => number.to_string(),
        Cell::Text(text) => text.clone(),
    });
    Some(Printed { name, element: Some((key.collect::<Vec<_>>().join(" "), value)) })
}

/// The script with the added probes, for `-E`; `None`: there is nothing to be shown. `words`: the command line.
pub fn script(program: &Path, words: &[OsString]) -> Option<String> {
    let run = |pass: &str| {
        let mut command = Command::new(program);
        // The same script with its options, as far as this pass; what is wrong with it is said when it is run.
        let command = command.arg(pass).args(words).stdin(Stdio::null()).stderr(Stdio::null());
        // Nothing is asked on the terminal.
        let command = command.env(super::COMMANDS, "1");
        let output = command.output().ok().filter(|output| output.status.success())?;
        String::from_utf8(output.stdout).ok()
    };
    let (parsed, typed) = (run("-p1")?, run("-p2")?);
    let text = probes(&declared(&parsed), &typed);
    (!text.is_empty()).then_some(text)
}

/// The globals that the script itself declares, with the greatest number of elements, from the listing of pass 1.
fn declared(listing: &str) -> BTreeMap<&str, Option<u64>> {
    let declarations = listing.lines().filter_map(|line| {
        let rest = line.strip_prefix("global ")?;
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        let size = rest.trim_start_matches('%').strip_prefix('[').and_then(|rest| rest.split(']').next());
        (!name.is_empty()).then(|| (name, size.and_then(|size| size.parse().ok())))
    });
    declarations.collect()
}

/// A probe for each of them, by their types in the listing of pass 2.
fn probes(own: &BTreeMap<&str, Option<u64>>, listing: &str) -> String {
    let globals =
        listing.lines().skip_while(|line| *line != "# globals").skip(1).take_while(|line| !line.starts_with('#'));
    let mut text = String::new();
    for global in globals.filter_map(|line| parse(own, line)).take(MOST_GLOBALS) {
        text.push_str(&format!("probe {POINT} {{ try {{ {} }} catch (__top_error) {{ }} }}\n", global.prints()));
    }
    text
}

/// `NAME:TYPE [KEY, KEY]`; the name may have a size and `%` behind it.
fn parse<'l>(own: &BTreeMap<&str, Option<u64>>, line: &'l str) -> Option<Global<'l>> {
    let (name, types) = line.split_once(':')?;
    let name = name.split(['[', '%']).next()?;
    let size = own.get(name)?;
    let (value, keys) = match types.split_once(" [") {
        Some((value, keys)) => (value, keys.strip_suffix(']')?.split(", ").collect()),
        None => (types, Vec::new()),
    };
    let is_known = |of: &str| of == "long" || of == "string";
    let fits = (is_known(value) || value == "stats") && keys.iter().all(|key| is_known(key));
    fits.then(|| Global { name, value, keys, is_sorted: size.is_none_or(|size| size <= LARGEST_SORTED) })
}

/// A global with its types.
struct Global<'l> {
    name: &'l str,
    value: &'l str,
    keys: Vec<&'l str>,
    is_sorted: bool,
}

impl Global<'_> {
    /// Statements that print it.
    fn prints(&self) -> String {
        let names: Vec<String> = (1..=self.keys.len()).map(|key| format!("__top_{key}")).collect();
        let keys = names.join(", ");
        let element = if names.is_empty() { self.name.to_string() } else { format!("{}[{keys}]", self.name) };
        let formats: String = self.keys.iter().map(|key| if *key == "long" { "%d " } else { "%s " }).collect();
        let passed: String = names.iter().map(|name| format!("{name}, ")).collect();
        let print = |what: &str, format: &str, value: &str| {
            format!(r#"printf("{WRITTEN_MARK}{}{what} {formats}{format}\n", {passed}{value})"#, self.name)
        };
        let prints = match self.value {
            "stats" => {
                let count = print(" @count", "%d", &format!("@count({element})"));
                let average = print(" @avg", "%d", &format!("@avg({element})"));
                format!("{count}; if (@count({element})) {average}")
            }
            "string" => print("", "%s", &element),
            _ => print("", "%d", &element),
        };
        if names.is_empty() {
            return prints;
        }
        let name = self.name;
        let start = format!(r#"printf("{WRITTEN_MARK}{name}\n")"#);
        let order = if self.is_sorted && self.value != "string" { "-" } else { "" };
        let each = if names.len() == 1 { keys } else { format!("[{keys}]") };
        format!("{start}; foreach ({each} in {name}{order} limit {MOST_ELEMENTS}) {{ {prints} }}")
    }
}

#[cfg(test)]
mod tests {
    use spilerun::records::values::Value;

    use super::*;

    #[test]
    fn every_global_of_the_script_has_a_probe() {
        let own = declared(
            "global n = 5\nglobal reads[100]\nglobal big%[99999]\nprivate global pg\nglobal s\nglobal x\nprobe begin {\n}\n",
        );
        assert_eq!(own.keys().copied().collect::<Vec<_>>(), ["big", "n", "reads", "s", "x"]);
        let listing = "# globals\nreads[100]:long [string, long]\nn:long\nbig%[99999]:stats [long]\ns:string\nx:unknown\nargc:long\n# probes\nend\n";
        let text = probes(&own, listing);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(
            lines[0].contains(
                r#"foreach ([__top_1, __top_2] in reads- limit 8) { printf("\035__top reads %s %d %d\n", __top_1, __top_2, reads[__top_1, __top_2]) }"#
            ),
            "{text}"
        );
        assert!(lines[1].contains(r#"{ printf("\035__top n %d\n", n) }"#), "{text}");
        assert!(
            lines[2].contains("foreach (__top_1 in big limit 8)") && lines[2].contains("@avg(big[__top_1])"),
            "{text}"
        );
        assert!(lines[3].contains(r#"printf("\035__top s %s\n", s)"#), "{text}");
    }

    #[test]
    fn what_they_print_is_read() {
        let literal = |text: &str| Part::Literal(text.into());
        let parts =
            [literal("\x1d__top a @avg "), Part::Value(Value::Signed(3)), literal(" "), Part::Value(Value::Signed(-5))];
        let element = Some(("3".to_string(), Cell::Number(-5)));
        assert_eq!(printed(&parts), Some(Printed { name: "a @avg".to_string(), element }));
        assert_eq!(printed(&[literal("\x1d__top a\n")]), Some(Printed { name: "a".to_string(), element: None }));
        assert_eq!(printed(&[literal("a\n")]), None);
        assert_eq!(printed(&[]), None);
    }
}
