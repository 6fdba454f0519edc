// SPDX-License-Identifier: GPL-2.0-or-later

//! Configuration files of lines `KEY=VALUE`, with empty lines and comments (`#`).

/// One line.
pub struct Assignment<'t> {
    /// The text before the `=`, trimmed.
    pub key: &'t str,
    /// The text after it, trimmed.
    pub value: &'t str,
    line: &'t str,
    number: usize,
}

impl Assignment<'_> {
    /// The message about a mistake in the line.
    pub fn wrong(&self, why: &str) -> String {
        format!("line {}: {why}: {}", self.number, self.line)
    }
}

/// The assignments in order. Error: the message about an invalid line.
pub fn assignments(text: &str) -> impl Iterator<Item = Result<Assignment<'_>, String>> {
    let lines = text.lines().map(str::trim).enumerate();
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).map(|(index, line)| {
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let assignment = Assignment { key: key.trim(), value: value.trim(), line, number: index + 1 };
        if line.contains('=') { Ok(assignment) } else { Err(assignment.wrong("expected KEY=VALUE")) }
    })
}
