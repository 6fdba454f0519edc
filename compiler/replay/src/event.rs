// SPDX-License-Identifier: GPL-2.0-or-later

//! What happened in a session, as formats see it.

use std::collections::HashSet;

use spilerun::records::values::{Part, Value};

/// The task that was running when a record was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// Process (tgid).
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Name of the thread.
    pub comm: Vec<u8>,
}

/// A session, known before its first event.
#[derive(Debug)]
pub struct Session {
    /// Facts by name, among them those of the module's description.
    pub about: Vec<(String, String)>,
    /// Nanoseconds since 1970 when the clock of the records was 0; 0: not known.
    pub realtime: i128,
    /// The names of all values that its prints may have, in the order of the script.
    pub names: Vec<String>,
}

impl Session {
    /// A fact.
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.about.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Nanoseconds since 1970.
    pub fn real(&self, time: u64) -> u64 {
        u64::try_from(self.realtime.saturating_add(time.into())).unwrap_or(time)
    }
}

/// Something that happened.
#[derive(Debug)]
pub struct Event<'e> {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub time: u64,
    /// Where it was written.
    pub cpu: u16,
    /// `None`: not recorded.
    pub task: Option<&'e Task>,
    /// The probe point; `None`: the session itself.
    pub probe: Option<&'e str>,
    /// What it is.
    pub what: What<'e>,
}

/// What happened.
#[derive(Debug)]
pub enum What<'e> {
    /// The script printed.
    Print(Print<'e>),
    /// A message: `warning`, `error`, `notice`, `rewrite`, `system`.
    Message(&'static str, String),
    /// Records were lost for lack of space: how many so far, and their bytes, of a CPU.
    Lost {
        /// Records.
        records: u64,
        /// Their bytes.
        bytes: u64,
    },
    /// The session has ended.
    End {
        /// Exit status of the loader.
        status: i32,
        /// Facts by name: `stats`, `skipped`, `errors`.
        about: &'e [(String, String)],
    },
}

impl What<'_> {
    /// The name of its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            What::Print(_) => "print",
            What::Message(kind, _) => kind,
            What::Lost { .. } => "lost",
            What::End { .. } => "end",
        }
    }
}

/// A print.
#[derive(Debug)]
pub struct Print<'e> {
    /// Number of its format in the script; `u32::MAX`: a text or a stack.
    pub format: u32,
    /// Values, and the text between them.
    pub parts: &'e [Part],
    /// Names of the values, all different.
    pub names: Vec<String>,
    /// The text that the script printed.
    pub text: &'e [u8],
}

impl<'e> Print<'e> {
    /// The values with their names.
    pub fn values(&self) -> impl Iterator<Item = (&str, &'e Value)> {
        let values = self.parts.iter().filter_map(|part| match part {
            Part::Value(value) => Some(value),
            Part::Literal(_) => None,
        });
        self.names.iter().map(String::as_str).zip(values)
    }
}

/// The names of a print's values: those of the script (`given`; empty ones are not known), else the word in front of the
/// value (`reads=`), else `arg` and a number. Equal ones get a number.
pub fn names(parts: &[Part], given: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut taken = HashSet::new();
    let mut before: &[u8] = b"";
    for part in parts {
        let value = match part {
            Part::Literal(text) => {
                before = text;
                continue;
            }
            Part::Value(value) => value,
        };
        let index = names.len();
        let given = given.get(index).filter(|name| !name.is_empty()).cloned();
        let name = given.or_else(|| word_before(before)).unwrap_or_else(|| match value {
            Value::Stack(_) => "stack".to_string(),
            _ => format!("arg{}", index + 1),
        });
        names.push(unused(name, &mut taken));
        before = b"";
    }
    names
}

/// The name, with a number if it is taken.
pub fn unused(name: String, taken: &mut HashSet<String>) -> String {
    let mut candidate = name.clone();
    let mut number = 2;
    while !taken.insert(candidate.clone()) {
        candidate = format!("{name}_{number}");
        number += 1;
    }
    candidate
}

/// `word` of `... word=`, `... word: ` and `... @word=`.
fn word_before(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?.trim_end_matches([' ', '"', '(', '[', '\'']);
    let text = text.strip_suffix(['=', ':'])?.trim_end();
    let start = text.rfind(|c: char| !(c.is_alphanumeric() || "_@".contains(c))).map_or(0, |at| at + 1);
    let word = text.get(start..)?.trim_start_matches('@');
    (!word.is_empty() && word.len() <= 64 && !word.starts_with(|c: char| c.is_ascii_digit())).then(|| word.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_a_name_of_its_own() {
        let value = || Part::Value(Value::Signed(1));
        let literal = |text: &str| Part::Literal(text.into());
        let parts = [
            value(),
            literal(" reads="),
            value(),
            value(),
            literal(", @count="),
            value(),
            literal(" n: \""),
            value(),
            literal("12="),
            value(),
            Part::Value(Value::Stack(Vec::new())),
        ];
        let given = ["pid".to_string(), String::new(), "pid".to_string()];
        assert_eq!(names(&parts, &given), ["pid", "reads", "pid_2", "count", "n", "arg6", "stack"]);
    }
}
