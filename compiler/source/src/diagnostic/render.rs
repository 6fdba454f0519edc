// SPDX-License-Identifier: GPL-2.0-or-later

//! Renders diagnostics with codespan-reporting.
//!
//! Takes a [`Diagnostic`] and the source files that its spans refer to; returns text for a terminal:
//!
//!     error[E0033]: expected an expression after `+`
//!       ┌─ trace.stp:1:20
//!
//! A label in text from a macro or script argument gets further labels at the calls.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use codespan_reporting::diagnostic as codespan;
use codespan_reporting::files::{Error, Files, column_index};
use codespan_reporting::term;
use spile_abi::escape;

use super::cut::Cut;
use super::{Diagnostic, Label, Severity};
use crate::{FileId, SourceMap, Span};

/// Maximum number of calls shown for one label, innermost first.
pub(super) const MAX_CALLS: usize = 8;

/// The text of a diagnostic, with a trailing newline; with terminal colours if `color`.
pub fn render(sources: &SourceMap, diagnostic: &Diagnostic, color: bool) -> String {
    let mut shown = convert(sources, diagnostic);
    let files = Texts::of(sources, &mut shown);
    let config = term::Config { tab_width: 8, ..term::Config::default() };
    let text = if color {
        let mut buffer = term::termcolor::Buffer::ansi();
        term::emit_to_write_style(&mut buffer, &config, &files, &shown)
            .map(|()| String::from_utf8_lossy(buffer.as_slice()).into_owned())
    } else {
        term::emit_into_string(&config, &files, &shown)
    };
    match text {
        Ok(text) => format!("{}\n", text.trim_end()),
        // Only a span of another source map gets here.
        Err(_) => {
            format!("{}[{}]: {}\n", word(diagnostic.severity), diagnostic.code.0, escape::line(&diagnostic.message))
        }
    }
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

fn convert(sources: &SourceMap, diagnostic: &Diagnostic) -> codespan::Diagnostic<FileId> {
    let severity = match diagnostic.severity {
        Severity::Warning => codespan::Severity::Warning,
        Severity::Error => codespan::Severity::Error,
    };
    let mut labels: Vec<codespan::Label<FileId>> = Vec::new();
    let mut calls = Vec::new();
    for label in &diagnostic.labels {
        labels.push(convert_label(label));
        calls.extend(calls_to(sources, label.span));
    }
    for call in calls {
        if !labels.iter().any(|label| label.file_id == call.file_id && label.range == call.range) {
            labels.push(call);
        }
    }
    codespan::Diagnostic::new(severity)
        .with_code(diagnostic.code.0)
        .with_message(escape::line(&diagnostic.message))
        .with_labels(labels)
        .with_notes(diagnostic.notes.iter().map(|note| printable(note).into_owned()).collect())
}

/// Replaces terminal control characters: a file that is not a script must not clear the screen or change text
/// direction. Each is replaced by as many bytes as it has, so offsets are unchanged.
fn printable(text: &str) -> Cow<'_, str> {
    let obeyed = |character: char| !matches!(character, '\n' | '\t') && escape::is_obeyed(character);
    if !text.contains(obeyed) {
        return Cow::Borrowed(text);
    }
    let replace = |character: char| match character {
        // Harmless as part of another system's line ending; elsewhere it would move the cursor to the start of the
        // line.
        '\r' => " ".to_string(),
        other if obeyed(other) => "?".repeat(other.len_utf8()),
        other => other.to_string(),
    };
    Cow::Owned(text.chars().map(replace).collect())
}

fn convert_label(label: &Label) -> codespan::Label<FileId> {
    let Span { file, start, end, .. } = label.span;
    let range = start as usize..end as usize;
    let converted = match label.primary {
        true => codespan::Label::primary(file, range),
        false => codespan::Label::secondary(file, range),
    };
    converted.with_message(printable(&label.message))
}

/// The calls that produced the text at `span`, innermost first.
fn calls_to(sources: &SourceMap, span: Span) -> Vec<codespan::Label<FileId>> {
    let expansions = std::iter::successors(sources.expansion(span.via), |inner| sources.expansion(inner.call.via));
    let label = |expansion: &crate::Expansion| {
        let Span { file, start, end, .. } = expansion.call;
        let message = match expansion.name.starts_with('$') {
            true => format!("script argument {} stands here", expansion.name),
            false => format!("in expansion of macro {}", expansion.name),
        };
        codespan::Label::secondary(file, start as usize..end as usize).with_message(message)
    };
    expansions.take(MAX_CALLS).map(label).collect()
}

/// The source files in the form that codespan needs, without parts that are too long to be shown.
struct Texts<'a> {
    sources: &'a SourceMap,
    cuts: HashMap<FileId, Cut>,
}

impl<'a> Texts<'a> {
    /// Moves the labels of `shown` to the place of their text in the shown part.
    fn of(sources: &'a SourceMap, shown: &mut codespan::Diagnostic<FileId>) -> Texts<'a> {
        let mut marked: HashMap<FileId, Vec<Range<usize>>> = HashMap::new();
        let is_primary = |label: &&codespan::Label<FileId>| label.style == codespan::LabelStyle::Primary;
        let (primary, others): (Vec<_>, Vec<_>) = shown.labels.iter().partition(is_primary);
        for label in primary.into_iter().chain(others) {
            marked.entry(label.file_id).or_default().push(label.range.clone());
        }
        let cut = |(file, ranges): (FileId, Vec<Range<usize>>)| {
            Some((file, Cut::of(sources.file(file).printable(printable), &ranges)?))
        };
        let cuts: HashMap<FileId, Cut> = marked.into_iter().filter_map(cut).collect();
        for label in &mut shown.labels {
            if let Some(cut) = cuts.get(&label.file_id) {
                label.range = cut.shown(&label.range);
            }
        }
        Texts { sources, cuts }
    }
}

impl<'a> Files<'a> for Texts<'a> {
    type FileId = FileId;
    type Name = Cow<'a, str>;
    type Source = &'a str;

    fn name(&'a self, id: FileId) -> Result<Cow<'a, str>, Error> {
        Ok(escape::line(&self.sources.file(id).name))
    }

    fn source(&'a self, id: FileId) -> Result<&'a str, Error> {
        let whole = || self.sources.file(id).printable(printable);
        Ok(self.cuts.get(&id).map_or_else(whole, |cut| &cut.text))
    }

    fn line_index(&'a self, id: FileId, byte: usize) -> Result<usize, Error> {
        let whole = || self.sources.file(id).line_index(byte);
        Ok(self.cuts.get(&id).map_or_else(whole, |cut| cut.line_index(byte)))
    }

    fn column_number(&'a self, id: FileId, line: usize, byte: usize) -> Result<usize, Error> {
        let file = self.sources.file(id);
        let range = file.line_range(line).ok_or(Error::LineTooLarge { given: line, max: line })?;
        let byte = self.cuts.get(&id).map_or(byte, |cut| cut.original(byte));
        Ok(column_index(file.printable(printable), range, byte) + 1)
    }

    fn line_range(&'a self, id: FileId, line: usize) -> Result<Range<usize>, Error> {
        let file = self.sources.file(id);
        let missing = || Error::LineTooLarge { given: line, max: file.line_index(file.bytes.len()) };
        let range = self.cuts.get(&id).map_or_else(|| file.line_range(line), |cut| cut.line_range(line));
        range.ok_or_else(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Origin;
    use crate::diagnostic::Code;

    #[test]
    fn no_terminal_obeys_a_script_or_its_name() {
        let mut sources = SourceMap::new();
        let text = "probe \u{9b}2J\u{202e}x\x1b[2J\r\n";
        let script = sources.add("a\x1b[2J\n.stp", text.as_bytes().to_vec(), Origin::User);
        let at = text.find('x').unwrap();
        let diagnostic =
            Diagnostic::error(Code("E0100"), "about \u{9b}2J\r").at(Span::new(script, at, at + 1), "here\x07");
        let shown = render(&sources, &diagnostic, false);
        assert!(!shown.contains(|character| character != '\n' && escape::is_obeyed(character)), "{shown:?}");
        assert!(shown.contains(r"a\x1b[2J\n.stp:1:"), "{shown}");
    }

    #[test]
    fn labels_in_two_files_and_notes() {
        let mut sources = SourceMap::new();
        let script = sources.add("a.stp", b"probe begin {\n\tx = y\n}\n".to_vec(), Origin::User);
        let library = sources.add("lib.stp", b"global y\n".to_vec(), Origin::Tapset);
        let diagnostic = Diagnostic::error(Code("E0100"), "something about y")
            .at(Span::new(script, 19, 20), "used here")
            .also(Span::new(library, 7, 8), "declared here")
            .note("one note")
            .note("another note");
        insta::assert_snapshot!(render(&sources, &diagnostic, false));
        assert!(render(&sources, &diagnostic, true).contains("\u{1b}["));
    }

    #[test]
    fn a_label_in_a_macro_shows_all_calls() {
        let mut sources = SourceMap::new();
        let script = sources.add(
            "a.stp",
            b"@define in %( 1 + %)\n@define out %( @in %)\nprobe x { @out }\n".to_vec(),
            Origin::User,
        );
        let outer = sources.add_expansion("@out", Span::new(script, 53, 57));
        let inner = sources.add_expansion("@in", Span { via: outer, ..Span::new(script, 36, 39) });
        let diagnostic =
            Diagnostic::warning(Code("W0100"), "a sum").at(Span { via: inner, ..Span::new(script, 16, 17) }, "this");
        insta::assert_snapshot!(render(&sources, &diagnostic, false));
    }

    #[test]
    fn control_characters_stay_out_of_the_terminal() {
        let mut sources = SourceMap::new();
        let script = sources.add("a.stp", b"x \x1b[2J y\n".to_vec(), Origin::User);
        let diagnostic = Diagnostic::error(Code("E0001"), "`\x1b`").at(Span::new(script, 7, 8), "\x07").note("\x00");
        let shown = render(&sources, &diagnostic, false);
        assert!(shown.contains("x ?[2J y") && !shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
    }

    #[test]
    fn a_long_line_is_cut_around_the_underline() {
        let mut sources = SourceMap::new();
        let filler = "x = x + 1; ".repeat(500);
        let text = format!("probe begin {{ {filler} y = z {filler} }}\nprobe end {{ }}\n");
        let script = sources.add("a.stp", text.clone().into_bytes(), Origin::User);
        let at = text.find("y = z").unwrap();
        let diagnostic = Diagnostic::error(Code("E0100"), "something about y")
            .at(Span::new(script, at, at + 1), "written here")
            .also(Span::new(script, 6, 11), "in this probe")
            .also(Span::new(script, 0, text.len() - 1), "and all of this");
        let shown = render(&sources, &diagnostic, false);
        assert!(shown.lines().all(|line| line.len() < 400), "{shown}");
        insta::assert_snapshot!(shown);
        let one = Diagnostic::error(Code("E0045"), "too long").at(Span::new(script, 12, text.len() - 17), "this block");
        insta::assert_snapshot!(render(&sources, &one, false));
    }

    #[test]
    fn no_place_and_places_at_the_end() {
        let mut sources = SourceMap::new();
        let script = sources.add("a.stp", b"x\n".to_vec(), Origin::User);
        let bare = Diagnostic::error(Code("E0500"), "gcc failed");
        assert_eq!(render(&sources, &bare, false), "error[E0500]: gcc failed\n");
        let end = Diagnostic::error(Code("E0500"), "the end").at(Span::new(script, 2, 2), "here");
        assert!(render(&sources, &end, false).contains("a.stp:2:1"));
    }
}
