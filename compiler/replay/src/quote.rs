// SPDX-License-Identifier: GPL-2.0-or-later

//! Strings of JSON.

/// A JSON string. Bytes that are no UTF-8 become U+FFFD.
pub fn quoted(bytes: &[u8]) -> String {
    let mut json = String::with_capacity(bytes.len() + 2);
    write_quoted(bytes, &mut json);
    json
}

/// Appends a JSON string.
pub fn write_quoted(bytes: &[u8], json: &mut String) {
    json.push('"');
    for c in String::from_utf8_lossy(bytes).chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            // Terminals, and scripts of web pages, give the others a meaning.
            '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{2028}' | '\u{2029}' => {
                json.push_str(&format!("\\u{:04x}", c as u32));
            }
            other => json.push(other),
        }
    }
    json.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_json_whatever_they_hold() {
        for bytes in [&b"a\"b\\c\n\x1b[31m\0"[..], b"\xff\xfe", "\u{202e}é\u{2028}😀".as_bytes(), b"</script>"] {
            let json = quoted(bytes);
            let back: String = serde_json::from_str(&json).unwrap();
            assert_eq!(back, String::from_utf8_lossy(bytes));
            assert!(!json.bytes().any(|byte| byte < 0x20), "{json}");
        }
    }
}
