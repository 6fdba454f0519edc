// SPDX-License-Identifier: GPL-2.0-or-later

//! Macros: `@define name(parameters) %( body %)`.
//!
//! A macro is a list of tokens. A script's macros are valid while its file is read; those of library files (`.stpm`)
//! are collected once and apply to all scripts.

use std::collections::HashMap;
use std::sync::Arc;

use super::token::Token;
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
