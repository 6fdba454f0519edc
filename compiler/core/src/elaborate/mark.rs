// SPDX-License-Identifier: GPL-2.0-or-later

//! What embedded C declares in comments, `/* string */`, `/* guru */`, `/* unmangled */`, `/* pragma:read:v */`, and the
//! arguments that it names.

use crate::program::Type;
use crate::program::uses::Access;
use spile_syntax::ast;

/// The contents of all comments `/* ... */` of a C text, without surrounding blanks.
fn marks(text: &str) -> impl Iterator<Item = &str> {
    text.split("/*").skip(1).filter_map(|rest| rest.split_once("*/")).map(|(comment, _)| comment.trim())
}

/// Whether a comment of the C is that word.
pub(super) fn has_mark(text: &str, mark: &str) -> bool {
    marks(text).any(|found| found == mark)
}

/// The type of the value of `%{ expression %}`.
pub(super) fn value_type(code: &ast::EmbeddedC) -> Type {
    if has_mark(&code.text, "string") { Type::String } else { Type::Long }
}

/// Whether `STAP_ARG_NAME` occurs in the C as a word.
pub(super) fn names_argument(text: &str, name: &str) -> bool {
    let word = format!("STAP_ARG_{name}");
    let continues = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    text.match_indices(&word).any(|(at, _)| {
        !continues(text.as_bytes().get(at + word.len()))
            && !continues(at.checked_sub(1).and_then(|before| text.as_bytes().get(before)))
    })
}

/// Globals that comments in the C declare as read or written: `/* pragma:read:v */`, `/* pragma:write:v */`.
pub(super) fn pragmas(code: &ast::EmbeddedC) -> impl Iterator<Item = (&str, Access)> {
    marks(&code.text).filter_map(|mark| {
        let pragma = mark.strip_prefix("pragma:")?;
        match pragma.split_once(':')? {
            ("read", name) => Some((name, Access::Read)),
            ("write", name) => Some((name, Access::Write)),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use spile_source::Span;

    #[test]
    fn arguments_are_words() {
        assert!(names_argument("S_ISLNK(STAP_ARG_mode)", "mode") && names_argument("STAP_ARG_a", "a"));
        assert!(!names_argument("STAP_ARG_mode2 + XSTAP_ARG_mode", "mode"));
    }

    #[test]
    fn comments_that_mean_something() {
        let code = |text: &str| ast::EmbeddedC { text: text.into(), span: Span::none() };
        assert_eq!(value_type(&code("/*string*/ \"x\"")), Type::String);
        assert_eq!(value_type(&code("/* a string */ 1 /* open")), Type::Long);
        let code = code("/* pragma:read:a */ /*pragma:write:b*/ /* pragma:vma */ /* pure */");
        assert_eq!(pragmas(&code).collect::<Vec<_>>(), [("a", Access::Read), ("b", Access::Write)]);
    }
}
