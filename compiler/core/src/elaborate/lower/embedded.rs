// SPDX-License-Identifier: GPL-2.0-or-later

//! Embedded C and the declarations in its comments: `/* string */`, `/* guru */`, `/* unmangled */`, `/* pragma:read:v */`.

use super::Lowering;
use crate::elaborate::unit::Unit;
use crate::program::uses::Access;
use crate::program::{EmbeddedC, Type};
use spile_syntax::ast;

/// The contents of all comments `/* ... */` of a C text, without surrounding blanks.
fn marks(text: &str) -> impl Iterator<Item = &str> {
    text.split("/*").skip(1).filter_map(|rest| rest.split_once("*/")).map(|(comment, _)| comment.trim())
}

/// Whether a comment of the C is that word.
pub(in crate::elaborate) fn has_mark(text: &str, mark: &str) -> bool {
    marks(text).any(|found| found == mark)
}

/// The type of the value of `%{ expression %}`.
pub(in crate::elaborate) fn value_type(code: &ast::EmbeddedC) -> Type {
    if has_mark(&code.text, "string") { Type::String } else { Type::Long }
}

impl Lowering<'_, '_> {
    pub(super) fn lower_embedded(&mut self, code: &ast::EmbeddedC) -> EmbeddedC {
        let globals = pragmas(code);
        let globals =
            globals.filter_map(|(name, access)| Some((self.names.find_global(code.span.file, name)?, access)));
        EmbeddedC {
            text: code.text.clone(),
            span: code.span,
            globals: globals.collect(),
            arguments: Vec::new(),
            unmangled: has_mark(&code.text, "unmangled"),
        }
    }

    /// Embedded C among statements: it may refer to the arguments of the enclosing function.
    pub(super) fn lower_embedded_in(&mut self, unit: &Unit, code: &ast::EmbeddedC) -> EmbeddedC {
        let mut lowered = self.lower_embedded(code);
        if let Some(index) = unit.function {
            let parameters =
                self.typed.functions[index.index()].ast.parameters.iter().map(|parameter| parameter.name.text.as_str());
            let named = parameters.filter(|name| names_argument(&code.text, name));
            lowered.arguments = named.filter_map(|name| Some((name.to_string(), *unit.names.get(name)?))).collect();
        }
        lowered
    }
}

/// Whether `STAP_ARG_NAME` occurs in the C as a word.
pub(in crate::elaborate) fn names_argument(text: &str, name: &str) -> bool {
    let word = format!("STAP_ARG_{name}");
    let continues = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    text.match_indices(&word).any(|(at, _)| {
        !continues(text.as_bytes().get(at + word.len()))
            && !continues(at.checked_sub(1).and_then(|before| text.as_bytes().get(before)))
    })
}

/// Globals that comments in the C declare as read or written: `/* pragma:read:v */`, `/* pragma:write:v */`.
pub(in crate::elaborate) fn pragmas(code: &ast::EmbeddedC) -> impl Iterator<Item = (&str, Access)> {
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
    use spile_source::{FileId, Span};

    #[test]
    fn arguments_are_words() {
        assert!(names_argument("S_ISLNK(STAP_ARG_mode)", "mode") && names_argument("STAP_ARG_a", "a"));
        assert!(!names_argument("STAP_ARG_mode2 + XSTAP_ARG_mode", "mode"));
    }

    #[test]
    fn comments_that_mean_something() {
        let code = |text: &str| ast::EmbeddedC { text: text.into(), span: Span::new(FileId(0), 0, 0) };
        assert_eq!(value_type(&code("/*string*/ \"x\"")), Type::String);
        assert_eq!(value_type(&code("/* a string */ 1 /* open")), Type::Long);
        let code = code("/* pragma:read:a */ /*pragma:write:b*/ /* pragma:vma */ /* pure */");
        assert_eq!(pragmas(&code).collect::<Vec<_>>(), [("a", Access::Read), ("b", Access::Write)]);
    }
}
