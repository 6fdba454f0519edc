// SPDX-License-Identifier: GPL-2.0-or-later

//! Configuration files of lines `KEY=VALUE`, with empty lines and comments (`#`).

/// One line.
pub struct Assignment<'t> {
    /// Before the `=`, without blanks around it.
    pub key: &'t str,
    /// Behind it, without blanks around it.
    pub value: &'t str,
    line: &'t str,
    number: usize,
}

impl Assignment<'_> {
    /// The message that something is wrong with the line.
    pub fn wrong(&self, why: &str) -> String {
        format!("line {}: {why}: {}", self.number, self.line)
    }
}

/// The assignments in order. Error: the message about a line that is none.
pub fn assignments(text: &str) -> impl Iterator<Item = Result<Assignment<'_>, String>> {
    let lines = text.lines().map(str::trim).enumerate();
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).map(|(index, line)| {
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let assignment = Assignment { key: key.trim(), value: value.trim(), line, number: index + 1 };
        if line.contains('=') { Ok(assignment) } else { Err(assignment.wrong("expected KEY=VALUE")) }
    })
}
