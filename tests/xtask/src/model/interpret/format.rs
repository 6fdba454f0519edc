// SPDX-License-Identifier: GPL-2.0-or-later

//! The text of one printf directive.

use crate::model::tree::{Directive, Value};

/// `width` and `precision` are settled. Nothing is done for a number with a directive for strings: the generator has none.
pub fn directive(directive: &Directive, width: usize, precision: Option<usize>, value: &Value) -> Vec<u8> {
    let (sign, digits) = match value {
        Value::Text(text) => (Vec::new(), text[..precision.unwrap_or(usize::MAX).min(text.len())].to_vec()),
        Value::Long(number) if directive.conversion == b'c' => (Vec::new(), vec![*number as u8]),
        Value::Long(number) => {
            let (sign, digits) = number_parts(directive, *number);
            let zeros = precision.unwrap_or(1).saturating_sub(digits.len());
            (sign.into_bytes(), ["0".repeat(zeros), digits].concat().into_bytes())
        }
    };
    let missing = width.saturating_sub(sign.len() + digits.len());
    let fill = |byte: u8| vec![byte; missing];
    match directive.flag {
        Some(b'-') => [sign, digits, fill(b' ')].concat(),
        Some(b'0') => [sign, fill(b'0'), digits].concat(),
        _ => [fill(b' '), sign, digits].concat(),
    }
}

/// The sign or prefix, and the digits.
fn number_parts(directive: &Directive, number: i64) -> (String, String) {
    let flag = directive.flag;
    // Before 0 too, whatever the reference's table says of it: SystemTap shows 0x0.
    let sharp = flag == Some(b'#');
    match directive.conversion {
        b'd' | b'i' => {
            let sign = match flag {
                _ if number < 0 => "-",
                Some(b'+') => "+",
                Some(b' ') => " ",
                _ => "",
            };
            (sign.to_string(), number.unsigned_abs().to_string())
        }
        b'u' => (String::new(), (number as u64).to_string()),
        b'o' => (if sharp { "0" } else { "" }.to_string(), format!("{number:o}")),
        b'x' => (if sharp { "0x" } else { "" }.to_string(), format!("{number:x}")),
        b'X' => (if sharp { "0X" } else { "" }.to_string(), format!("{number:X}")),
        // A pointer.
        _ => ("0x".to_string(), format!("{number:x}")),
    }
}
