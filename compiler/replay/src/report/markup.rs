// SPDX-License-Identifier: GPL-2.0-or-later

//! Text in HTML.

use std::fmt::Write;

/// HTML of a text, also for attributes in double quotes. Control characters, and those that change the direction of text,
/// are shown as escapes.
pub fn escape(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            '\n' | '\t' => html.push(c),
            '\0'..='\x1f'
            | '\x7f'..='\u{9f}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => {
                let _ = write!(html, "\\u{{{:x}}}", c as u32);
            }
            _ => html.push(c),
        }
    }
    html
}
