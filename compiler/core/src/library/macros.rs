// SPDX-License-Identifier: GPL-2.0-or-later

//! The library's macros, read when a text is met that may use one: to read them takes a third of pass 1 of a short script.

use std::borrow::Cow;

use super::{Library, ReadError, Text};
use spile_source::SourceMap;
use spile_source::diagnostic::Diagnostic;
use spile_syntax::macros::mentions_macro;
use spile_syntax::{Environment, Macros};

/// The library's macros, if they have been read.
#[derive(Default)]
pub struct LibraryMacros<'m> {
    read: Option<Cow<'m, Macros>>,
    none: Macros,
}

impl<'m> From<&'m Macros> for LibraryMacros<'m> {
    fn from(macros: &'m Macros) -> Self {
        LibraryMacros { read: Some(Cow::Borrowed(macros)), none: Macros::default() }
    }
}

impl LibraryMacros<'_> {
    /// Those with which a text is to be parsed: none where it uses none. Files of `-I` are read in any case, as their errors are
    /// reported; `problems`: see [`Library::macros`].
    pub fn for_text(
        &mut self,
        library: &Library,
        text: &[u8],
        sources: &mut SourceMap,
        environment: &Environment,
        problems: &mut Vec<Diagnostic>,
    ) -> Result<&Macros, ReadError> {
        if self.read.is_none() {
            // A script's argument stands in its text as if it were written there.
            let arguments = environment.arguments.iter().map(String::as_bytes);
            let used = arguments.chain([text]).any(mentions_macro);
            if used || library.macros.iter().any(|file| matches!(file.text, Text::Path(_))) {
                self.read = Some(Cow::Owned(library.macros(sources, environment, problems)?));
            }
        }
        Ok(self.read.as_deref().unwrap_or(&self.none))
    }
}
