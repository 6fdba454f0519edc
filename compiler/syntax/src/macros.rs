// SPDX-License-Identifier: GPL-2.0-or-later

//! Macros: `@define name(parameters) %( body %)`.
//!
//! A macro is a list of tokens. A script's macros are valid while its file is read; those of library files (`.stpm`)
//! are collected once and apply to all scripts.

use std::collections::HashMap;
use std::sync::Arc;

use super::token::{AtOperator, Token};
use spile_source::Span;

/// A macro: `@define name(parameters) %( body %)`.
#[derive(Clone, Debug)]
pub struct Macro {
    /// The name.
    pub name: String,
    /// The span of the name in the definition.
    pub span: Span,
    /// `None` without parentheses: a `(` after the call is then not the macro's.
    pub parameters: Option<Vec<String>>,
    /// Its body.
    pub body: Arc<[Token]>,
}

/// The library's macros by name, as [`super::collect_macros`] finds them.
#[derive(Clone, Debug, Default)]
pub struct Macros {
    by_name: HashMap<String, Arc<Macro>>,
}

impl Macros {
    /// The macro of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Macro>> {
        self.by_name.get(name)
    }

    /// Adds a macro. If the name is taken, the older one stays and its span is returned.
    pub fn add(&mut self, definition: Macro) -> Result<(), Span> {
        if let Some(older) = self.by_name.get(&definition.name) {
            return Err(older.span);
        }
        self.by_name.insert(definition.name.clone(), Arc::new(definition));
        Ok(())
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// The number of macros.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}

/// Whether a text may use a macro: it has an `@word` that is no operator. It may be in a comment, or the text's own macro.
pub fn mentions_macro(text: &[u8]) -> bool {
    let words = text.split(|byte| *byte == b'@').skip(1).map(|rest| {
        let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        std::str::from_utf8(rest.get(..length).unwrap_or_default()).unwrap_or_default()
    });
    let mut macros = words.filter(|word| word.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_'));
    macros.any(|word| word != "define" && AtOperator::from_text(word).is_none())
}

#[cfg(test)]
mod tests {
    use super::mentions_macro;

    #[test]
    fn operators_and_arguments_are_no_macros() {
        for text in ["", "a", "@", "@1 $1", "@count(a) + @cast(b, \"c\")", "a @ b", "@define", "user@", "x@@"] {
            assert!(!mentions_macro(text.as_bytes()), "{text}");
        }
        for text in ["@task(x)", "@@task", "@counts(a)", "@_m", "@count(a) @m", "# @m"] {
            assert!(mentions_macro(text.as_bytes()), "{text}");
        }
    }
}
