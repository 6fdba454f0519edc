// SPDX-License-Identifier: GPL-2.0-or-later

//! The members of `struct spile_probe` (runtime-c/script.h) that an attachment has.

use serde::Serialize;

use super::text;
use crate::program::{Attachment, Value};

/// A member of a struct and its initialiser in C.
#[derive(Serialize)]
pub(super) struct Field {
    name: &'static str,
    value: String,
}

/// The members, in the order of the attachment.
pub(super) fn fields(attachment: &Attachment) -> Vec<Field> {
    attachment.members.iter().map(|(name, value)| Field { name, value: initialiser(value) }).collect()
}

fn initialiser(value: &Value) -> String {
    match value {
        Value::Signed(value) => text::long(*value),
        Value::Unsigned(value) => format!("{value}ULL"),
        Value::Number(value) => value.to_string(),
        Value::Octal(value) => format!("0{value:o}"),
        Value::Address(value) => format!("{value:#x}UL"),
        Value::Text(value) => text::literal(value.as_bytes()),
        Value::Constant(name) => name.to_string(),
        Value::List(values) => format!("{{ {} }}", values.iter().map(initialiser).collect::<Vec<_>>().join(", ")),
    }
}
