// SPDX-License-Identifier: GPL-2.0-or-later

//! Wording that several errors share.

use spile_source::diagnostic::{Code, Diagnostic};

/// An error's diagnostic, still without labels.
pub fn error(code: &'static str, message: String) -> Diagnostic {
    Diagnostic::error(Code(code), message)
}

/// The names as a list, or `none` if there are none.
pub fn and(names: &[String], none: &str) -> String {
    if names.is_empty() { none.to_string() } else { names.join(", ") }
}

/// `1 key`, `2 keys`.
pub fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// A note for the name of a function written without its parentheses; None if there is no such builtin.
pub fn called(name: &str) -> Option<String> {
    let function = crate::builtin::offered().any(|builtin| builtin.name == name);
    function.then(|| format!("the function of this name is called with parentheses: {name}()"))
}
