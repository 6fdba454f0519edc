// SPDX-License-Identifier: GPL-2.0-or-later

//! A row for each print and message (RFC 4180). The columns of values are known from the script; values without a column, as
//! those of `$$vars`, are in the text of their row. Quoting is two lines; the csv crate would not defuse formulas.

use std::io::Write;

use spilerun::records::values::Value;

use crate::event::{Event, Session, What};
use crate::json;
use crate::read::{ReadError, Receiver};

const FIXED: [&str; 7] = ["kind", "time", "cpu", "pid", "tid", "comm", "probe"];

/// Writes rows.
#[derive(Debug)]
pub struct Csv<W> {
    to: W,
    columns: Vec<String>,
    /// The head was written.
    begun: bool,
}

impl<W: Write> Csv<W> {
    /// The head comes with the first session.
    pub fn new(to: W) -> Csv<W> {
        Csv { to, columns: Vec::new(), begun: false }
    }

    /// After the last event.
    pub fn finish(mut self) -> Result<(), ReadError> {
        Ok(self.to.flush()?)
    }

    fn row<'f>(&mut self, fields: impl Iterator<Item = &'f str>) -> Result<(), ReadError> {
        let fields: Vec<String> = fields.map(field).collect();
        Ok(write!(self.to, "{}\r\n", fields.join(","))?)
    }
}

impl<W: Write> Receiver for Csv<W> {
    fn session(&mut self, session: &Session) -> Result<(), ReadError> {
        // A second recording in the same file has the columns of the first.
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        // A value that is called as a column before it gets parentheses.
        let named = |name: &String| {
            if FIXED.contains(&name.as_str()) || name == "text" { format!("{name}()") } else { name.clone() }
        };
        self.columns = session.names.clone();
        let names: Vec<String> = self.columns.iter().map(named).collect();
        let head: Vec<&str> = FIXED.into_iter().chain(["text"]).chain(names.iter().map(String::as_str)).collect();
        self.row(head.into_iter())
    }

    fn event(&mut self, _: &Session, event: &Event<'_>) -> Result<(), ReadError> {
        let (text, values) = match &event.what {
            What::Print(print) => {
                let values: Vec<(&str, String)> = print.values().map(|(name, value)| (name, plain(value))).collect();
                let all_known = !values.is_empty()
                    && values.iter().all(|(name, _)| self.columns.iter().any(|column| column == name));
                let text = if all_known { String::new() } else { String::from_utf8_lossy(print.text).into_owned() };
                (text, values)
            }
            What::Message(_, text) => (text.clone(), Vec::new()),
            What::Lost { records, .. } => (records.to_string(), Vec::new()),
            What::End { status, .. } => (status.to_string(), Vec::new()),
        };
        let task =
            event.task.map(|task| (task.pid.to_string(), task.tid.to_string(), String::from_utf8_lossy(&task.comm)));
        let (pid, tid, comm) = task.unwrap_or_default();
        let (time, cpu) = (event.time.to_string(), event.cpu.to_string());
        let fixed = [event.what.kind(), &time, &cpu, &pid, &tid, &comm, event.probe.unwrap_or_default(), &text];
        let of =
            |column: &String| values.iter().find(|(name, _)| name == column).map_or("", |(_, value)| value.as_str());
        let fields: Vec<String> = fixed.into_iter().chain(self.columns.iter().map(of)).map(str::to_string).collect();
        self.row(fields.iter().map(String::as_str))
    }

    fn pause(&mut self) -> Result<(), ReadError> {
        Ok(self.to.flush()?)
    }
}

/// Texts as they are, others as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
        Value::Unreadable => String::new(),
        other => {
            let mut json = String::new();
            json::write_value(other, &mut json);
            match other {
                Value::Memory(_) => json.trim_matches('"').to_string(),
                _ => json,
            }
        }
    }
}

/// Quoted where it has to be. A field that spreadsheets would take for a formula has an apostrophe in front.
fn field(text: &str) -> String {
    let is_number = text.parse::<f64>().is_ok();
    let shown = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) && !is_number {
        format!("'{text}")
    } else {
        text.to_string()
    };
    match shown.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", shown.replace('"', "\"\"")),
        false => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_it_is_needed() {
        for (text, expected) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"x\"\n", "\"say \"\"x\"\"\n\""),
            ("-5", "-5"),
            ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
            ("-x,", "\"'-x,\""),
        ] {
            assert_eq!(field(text), expected);
        }
    }
}
