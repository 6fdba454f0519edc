// SPDX-License-Identifier: GPL-2.0-or-later

//! Objects as `$x$$` prints them, as JSON.
//!
//!     {.pid=7, .comm="cat", .list={1, 2}, .mode='c', .call=<function>:0xff, ...}

use crate::quote::{quoted, write_quoted};

/// Maximum nesting.
const MOST_DEPTH: usize = 64;

/// The JSON of an object's text; text that is none becomes a string.
pub fn json(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut parser = Parser { rest: &text, json: String::new() };
    match parser.value(0) {
        Some(()) if parser.rest.is_empty() => parser.json,
        _ => quoted(text.as_bytes()),
    }
}

struct Parser<'t> {
    rest: &'t str,
    json: String,
}

impl<'t> Parser<'t> {
    fn accept(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn until(&mut self, is_end: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(is_end).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        if depth > MOST_DEPTH {
            return None;
        }
        if self.accept("{") || self.accept("[") {
            return self.members(depth);
        }
        if self.accept("\"") {
            let text = self.quoted('"')?;
            write_quoted(&text, &mut self.json);
            return Some(());
        }
        if self.accept("'") {
            let text = self.quoted('\'')?;
            write_quoted(&text, &mut self.json);
            return Some(());
        }
        let word = self.until(|c| ",}]".contains(c)).trim();
        match () {
            () if word.is_empty() => return None,
            () if is_number(word) => self.json.push_str(word),
            () => match word.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok()) {
                Some(number) => self.json.push_str(&number.to_string()),
                None if matches!(word, "ERROR" | "?") => self.json.push_str("null"),
                None => write_quoted(word.as_bytes(), &mut self.json),
            },
        }
        Some(())
    }

    /// After the opening brace.
    fn members(&mut self, depth: usize) -> Option<()> {
        let is_object = self.rest.starts_with('.') && !self.rest.starts_with("...");
        self.json.push(if is_object { '{' } else { '[' });
        let mut is_first = true;
        while !(self.accept("}") || self.accept("]")) {
            if !(is_first || self.accept(", ") || self.accept(",")) {
                return None;
            }
            // The rest is left out.
            if self.accept("...") {
                continue;
            }
            if !is_first {
                self.json.push(',');
            }
            is_first = false;
            if is_object {
                if !self.accept(".") {
                    return None;
                }
                let name = self.until(|c| c == '=');
                if name.is_empty() || name.contains([',', '}', '{']) || !self.accept("=") {
                    return None;
                }
                write_quoted(name.as_bytes(), &mut self.json);
                self.json.push(':');
            }
            self.value(depth + 1)?;
        }
        self.json.push(if is_object { '}' } else { ']' });
        Some(())
    }

    /// After the opening quote.
    fn quoted(&mut self, quote: char) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut chars = self.rest.char_indices();
        while let Some((at, c)) = chars.next() {
            if c == quote {
                self.rest = self.rest.get(at + 1..)?;
                return Some(bytes);
            }
            if c != '\\' {
                bytes.extend(c.encode_utf8(&mut [0; 4]).bytes());
                continue;
            }
            let (_, escaped) = chars.next()?;
            match escaped {
                '0'..='7' => {
                    let mut digits = escaped.to_string();
                    digits.extend([chars.next()?.1, chars.next()?.1]);
                    bytes.push(u8::from_str_radix(&digits, 8).ok()?);
                }
                'a' => bytes.push(7),
                'b' => bytes.push(8),
                't' => bytes.push(b'\t'),
                'n' => bytes.push(b'\n'),
                'v' => bytes.push(11),
                'f' => bytes.push(12),
                'r' => bytes.push(b'\r'),
                other => bytes.extend(other.encode_utf8(&mut [0; 4]).bytes()),
            }
        }
        None
    }
}

fn is_number(word: &str) -> bool {
    let digits = word.strip_prefix('-').unwrap_or(word);
    let is_plain = digits == "0" || !digits.starts_with('0');
    is_plain && !digits.is_empty() && digits.len() <= 20 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_arrays_and_all_values() {
        for (text, expected) in [
            (r#"{.a=1, .b=-2, .c="x\"y\n", .d='\000', .e=0x10}"#, r#"{"a":1,"b":-2,"c":"x\"y\n","d":"\u0000","e":16}"#),
            ("{.list={1, 2}, .s={.x=0}}", r#"{"list":[1,2],"s":{"x":0}}"#),
            ("{.a={...}, .f=<function>:0xff, .n=NAME, .u=?}", r#"{"a":[],"f":"<function>:0xff","n":"NAME","u":null}"#),
            ("{}", "[]"),
            ("ERROR", "null"),
            ("{.a=1", r#""{.a=1""#),
            ("text", r#""text""#),
            ("{.a=007}", r#"{"a":"007"}"#),
        ] {
            assert_eq!(json(text.as_bytes()), expected, "{text}");
            assert!(serde_json::from_str::<serde_json::Value>(&json(text.as_bytes())).is_ok(), "{text}");
        }
        let deep = format!("{}1{}", "{".repeat(100_000), "}".repeat(100_000));
        assert!(json(deep.as_bytes()).starts_with('"'));
    }
}
