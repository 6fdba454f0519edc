// SPDX-License-Identifier: GPL-2.0-or-later

//! Diagnostics of a script as the protocol has them, with their fixes.

use std::collections::HashMap;

use lsp_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, DiagnosticRelatedInformation, DiagnosticSeverity, Location,
    NumberOrString, Range, TextEdit, Uri, WorkspaceEdit,
};
use spile_source::diagnostic::{Diagnostic, Severity};
use spile_source::{SourceMap, Span};

use crate::check::Checked;
use crate::place;
use crate::text::{Encoding, Text};

/// Maximum number of nested macro calls.
const MAX_CALLS: usize = 64;

/// A script with its checks.
pub struct CheckedScript<'s> {
    /// The script's name for the client.
    pub uri: &'s Uri,
    /// Its text.
    pub text: &'s Text,
    /// What was found.
    pub checked: &'s Checked,
    /// How positions in library files are counted.
    pub encoding: Encoding,
}

impl CheckedScript<'_> {
    /// The bytes of the script for a span: its own, or those of the macro call that its text comes from.
    fn own(&self, span: Span) -> Option<std::ops::Range<usize>> {
        let sources = &self.checked.sources;
        let mut span = span;
        for _ in 0..MAX_CALLS {
            // For text of a macro the call is shown, because that is where the script can be changed.
            match sources.expansion(span.via) {
                Some(expansion) => span = expansion.call,
                None => break,
            }
        }
        (span.file == self.checked.file).then_some(span.start as usize..span.end as usize)
    }

    fn place(&self, span: Span) -> Option<Location> {
        if let Some(range) = self.own(span) {
            return Some(Location::new(self.uri.clone(), self.text.range(&range)));
        }
        library_place(&self.checked.sources, span, self.encoding)
    }

    /// All diagnostics.
    pub fn all(&self) -> Vec<lsp_types::Diagnostic> {
        self.checked.diagnostics.iter().map(|diagnostic| self.one(diagnostic)).collect()
    }

    fn range_of(&self, diagnostic: &Diagnostic) -> Range {
        let primary = diagnostic.labels.iter().filter(|label| label.primary);
        let others = diagnostic.labels.iter().filter(|label| !label.primary);
        let range = primary.chain(others).find_map(|label| self.own(label.span));
        self.text.range(&range.unwrap_or(0..0))
    }

    fn one(&self, diagnostic: &Diagnostic) -> lsp_types::Diagnostic {
        let range = self.range_of(diagnostic);
        let mut message = diagnostic.message.clone();
        let mut related = Vec::new();
        for label in &diagnostic.labels {
            let location = self.place(label.span);
            let is_here = location.as_ref().is_some_and(|place| place.uri == *self.uri && place.range == range);
            match (is_here, label.message.is_empty(), location) {
                (_, true, _) | (_, _, None) => {}
                (true, false, _) => message.push_str(&format!(": {}", label.message)),
                (false, false, Some(location)) => {
                    related.push(DiagnosticRelatedInformation { location, message: label.message.clone() });
                }
            }
        }
        for note in &diagnostic.notes {
            message.push_str(&format!("\n{note}"));
        }
        lsp_types::Diagnostic {
            range,
            severity: Some(match diagnostic.severity {
                Severity::Error => DiagnosticSeverity::ERROR,
                Severity::Warning => DiagnosticSeverity::WARNING,
            }),
            code: Some(NumberOrString::String(diagnostic.code.0.to_string())),
            source: Some("spile".to_string()),
            message,
            related_information: Some(related).filter(|related| !related.is_empty()),
            ..lsp_types::Diagnostic::default()
        }
    }

    /// The fixes of diagnostics within the range.
    pub fn fixes(&self, wanted: Range) -> Vec<CodeActionOrCommand> {
        let mut actions = Vec::new();
        for diagnostic in &self.checked.diagnostics {
            let range = self.range_of(diagnostic);
            let touches = range.start <= wanted.end && wanted.start <= range.end;
            let Some(suggestion) = diagnostic.suggestion.as_ref().filter(|_| touches) else { continue };
            // Only for text of the script itself: replacing a macro call would lose the call.
            let is_own = suggestion.span.file == self.checked.file
                && self.checked.sources.expansion(suggestion.span.via).is_none();
            if !is_own {
                continue;
            }
            let bytes = suggestion.span.start as usize..suggestion.span.end as usize;
            let edit = TextEdit { range: self.text.range(&bytes), new_text: suggestion.replacement.clone() };
            let old = self.text.slice(bytes);
            let title = match (old.is_empty(), suggestion.replacement.is_empty()) {
                (true, _) => format!("insert `{}`", suggestion.replacement),
                (_, true) => format!("remove `{old}`"),
                _ => format!("replace `{old}` by `{}`", suggestion.replacement),
            };
            actions.push(CodeActionOrCommand::CodeAction(CodeAction {
                title,
                kind: Some(CodeActionKind::QUICKFIX),
                diagnostics: Some(vec![self.one(diagnostic)]),
                edit: Some(WorkspaceEdit {
                    changes: Some(HashMap::from([(self.uri.clone(), vec![edit])])),
                    ..WorkspaceEdit::default()
                }),
                is_preferred: Some(true),
                ..CodeAction::default()
            }));
        }
        actions
    }
}

/// The location of a span of a library file.
pub fn library_place(sources: &SourceMap, span: Span, encoding: Encoding) -> Option<Location> {
    let file = sources.file(span.file);
    let text = Text::new(file.text.clone(), encoding);
    let range = text.range(&(span.start as usize..span.end as usize));
    Some(Location::new(place::uri_of_library(&file.name)?, range))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::check;
    use crate::settings::for_tests;
    use crate::workspace::Workspace;

    fn with<T>(text: &str, ask: impl Fn(&CheckedScript) -> T) -> T {
        let workspace = Workspace::open(for_tests());
        let checked = check(&workspace, "/a.stp", text);
        let uri: Uri = "file:///a.stp".parse().unwrap();
        let text = Text::new(text.to_string(), Encoding::Utf16);
        ask(&CheckedScript { uri: &uri, text: &text, checked: &checked, encoding: Encoding::Utf16 })
    }

    #[expect(clippy::redundant_closure, reason = "the method is for one lifetime of what is shown")]
    fn all_of(text: &str) -> Vec<lsp_types::Diagnostic> {
        with(text, |shown| CheckedScript::all(shown))
    }

    #[test]
    fn a_diagnostic_with_its_fix() {
        let text = "probe begin {\n  prntf(\"𝄞\") exit()\n}\n";
        let all = all_of(text);
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!((all[0].range.start.line, all[0].range.start.character, all[0].range.end.character), (1, 2, 7));
        assert!(all[0].message.contains("did you mean"), "{}", all[0].message);
        let fixes = with(text, |shown| shown.fixes(shown.text.range(&(18..18))));
        let CodeActionOrCommand::CodeAction(action) = &fixes[0] else { panic!() };
        assert_eq!(action.title, "replace `prntf` by `printf`");
        assert!(with(text, |shown| shown.fixes(shown.text.range(&(0..3)))).is_empty());
    }

    #[test]
    fn errors_in_a_macro_are_shown_at_the_call() {
        let text = "@define m %( prntf(1) %)\nprobe begin { @m exit() }\n";
        let all = all_of(text);
        assert_eq!((all[0].range.start.line, all[0].range.start.character), (1, 14), "{all:?}");
        assert!(with(text, |shown| shown.fixes(shown.text.range(&(0..text.len())))).is_empty());
    }

    #[test]
    fn other_places_are_named() {
        let all = all_of("global a, a\nprobe begin { a = 1; println(a) exit() }");
        let related = all[0].related_information.as_ref().unwrap();
        assert_eq!(related[0].location.range.start.character, 7);
    }
}
