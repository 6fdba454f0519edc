// SPDX-License-Identifier: GPL-2.0-or-later

//! Strings of JSON, as the loader writes them: terminals and web pages obey nothing in them.

use spilerun::report::account;

/// A JSON string. Bytes that are no UTF-8 become U+FFFD.
pub fn quoted(bytes: &[u8]) -> String {
    account::quoted(&String::from_utf8_lossy(bytes))
}

/// Appends a JSON string.
pub fn write_quoted(bytes: &[u8], json: &mut String) {
    json.push_str(&quoted(bytes));
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
            assert!(!json.chars().any(spile_abi::escape::is_obeyed), "{json}");
        }
    }
}
