// SPDX-License-Identifier: GPL-2.0-or-later

//! The shape of a script: its items as a list of symbols, what can be folded, and the types of its globals beside their names.

use std::collections::HashMap;
use std::ops::Range;

use lsp_types::{DocumentSymbol, FoldingRange, FoldingRangeKind, InlayHint, InlayHintKind, InlayHintLabel, SymbolKind};
use spile_core::elaborate::Inferred;
use spile_syntax::words::WordKind;

use crate::check::Checked;
use crate::hover::type_of;
use crate::scan::{Item, ItemKind, Scan};
use crate::text::Text;

/// Longest name of a probe in the list.
const MAX_NAME: usize = 120;

/// Probes, aliases, functions, globals and macros, in order.
pub fn symbols(scan: &Scan, text: &Text) -> Vec<DocumentSymbol> {
    let mut symbols = Vec::new();
    for item in &scan.items {
        let whole = scan.bytes(&item.words);
        match item.kind {
            ItemKind::Probe | ItemKind::Alias => {
                let header = scan.bytes(&item.header);
                let words: Vec<&str> = text.slice(header.clone()).split_whitespace().collect();
                let name: String = words.join(" ").chars().take(MAX_NAME).collect();
                let name = if name.is_empty() { "probe".to_string() } else { name };
                let kind = if item.kind == ItemKind::Probe { SymbolKind::EVENT } else { SymbolKind::INTERFACE };
                let header = if header.is_empty() { whole.clone() } else { header };
                symbols.push(symbol(text, name, kind, whole, header));
            }
            ItemKind::Function | ItemKind::Macro => {
                let Some(at) = item.names.first() else { continue };
                let name = scan.word(*at).to_string();
                let (name, kind) = match item.kind {
                    ItemKind::Function => (name, SymbolKind::FUNCTION),
                    _ => (format!("@{name}"), SymbolKind::CONSTANT),
                };
                symbols.push(symbol(text, name, kind, whole, scan.bytes(&(*at..*at + 1))));
            }
            ItemKind::Global => {
                for at in &item.names {
                    let range = scan.bytes(&(*at..*at + 1));
                    symbols.push(symbol(text, scan.word(*at).to_string(), SymbolKind::VARIABLE, range.clone(), range));
                }
            }
            ItemKind::EmbeddedC => {
                symbols.push(symbol(text, "%{ %}".into(), SymbolKind::NAMESPACE, whole.clone(), whole));
            }
        }
    }
    symbols
}

fn symbol(text: &Text, name: String, kind: SymbolKind, whole: Range<usize>, selection: Range<usize>) -> DocumentSymbol {
    #[expect(deprecated, reason = "the type has a field that is")]
    DocumentSymbol {
        name,
        detail: None,
        kind,
        tags: None,
        deprecated: None,
        range: text.range(&whole),
        selection_range: text.range(&selection),
        children: None,
    }
}

/// Blocks in braces, conditionals, embedded C and comments that have more than a line.
pub fn folding(scan: &Scan, text: &Text) -> Vec<FoldingRange> {
    let mut found = Vec::new();
    let mut add = |range: Range<usize>, kind: Option<FoldingRangeKind>, keeps_last: bool| {
        let (start, end) = (text.position(range.start).line, text.position(range.end).line);
        // The line of the closing bracket is not folded.
        let end = if keeps_last { end.saturating_sub(1) } else { end };
        if start < end {
            found.push(FoldingRange { start_line: start, end_line: end, kind, ..FoldingRange::default() });
        }
    };
    // Offsets of the brackets that are open, of each kind.
    let (mut braces, mut conditionals): (Vec<usize>, Vec<usize>) = Default::default();
    for (at, word) in scan.words.iter().enumerate() {
        match (word.kind, scan.word(at)) {
            (WordKind::Operator, "{") => braces.push(word.range.start),
            (WordKind::Operator, "%(") => conditionals.push(word.range.start),
            (WordKind::Operator, closing @ ("}" | "%)")) => {
                let (own, inner) =
                    if closing == "}" { (&mut braces, &mut conditionals) } else { (&mut conditionals, &mut braces) };
                if let Some(start) = own.pop() {
                    // Unclosed brackets inside are ignored.
                    while inner.pop_if(|open| *open > start).is_some() {}
                    add(start..word.range.end, None, true);
                }
            }
            (WordKind::EmbeddedC, _) => add(word.range.clone(), None, true),
            _ => {}
        }
    }
    for comment in comments(scan, text) {
        add(comment, Some(FoldingRangeKind::Comment), false);
    }
    found.sort_by_key(|range| (range.start_line, range.end_line));
    found.dedup_by_key(|range| range.start_line);
    found
}

/// Comments; those that follow each other line by line are one.
fn comments(scan: &Scan, text: &Text) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for comment in &scan.comments {
        match found.last_mut() {
            Some(last) if text.slice(last.end..comment.start).trim_matches([' ', '\t', '\r']) == "\n" => {
                last.end = comment.end;
            }
            _ => found.push(comment.clone()),
        }
    }
    found
}

/// The types of the globals that the lines declare.
pub fn hints(scan: &Scan, text: &Text, checked: &Checked, wanted: lsp_types::Range) -> Vec<InlayHint> {
    let mut hints = Vec::new();
    let globals = scan.items.iter().filter(|item| item.kind == ItemKind::Global);
    let own = checked
        .globals
        .iter()
        .filter(|global| global.span.file == checked.file && (global.is_decided || !global.keys.is_empty()));
    let known: HashMap<usize, &Inferred> = own.map(|global| (global.span.start as usize, global)).collect();
    for at in globals.flat_map(|item: &Item| &item.names) {
        let range = scan.bytes(&(*at..*at + 1));
        let inferred = known.get(&range.start);
        let position = text.position(range.end);
        if let Some(inferred) = inferred
            && wanted.start <= position
            && position <= wanted.end
        {
            hints.push(InlayHint {
                position,
                label: InlayHintLabel::String(type_of(inferred)),
                kind: Some(InlayHintKind::TYPE),
                text_edits: None,
                tooltip: None,
                padding_left: None,
                padding_right: None,
                data: None,
            });
        }
    }
    hints
}

/// The edits that format the text: the lines that differ, as one edit.
pub fn formatting(text: &Text, formatted: &str) -> Vec<lsp_types::TextEdit> {
    let old = text.as_str();
    if old == formatted {
        return Vec::new();
    }
    let same = |one: &mut dyn Iterator<Item = &str>, other: &mut dyn Iterator<Item = &str>| -> usize {
        one.zip(other).take_while(|(one, other)| one == other).map(|(line, _)| line.len()).sum()
    };
    let before = same(&mut old.split_inclusive('\n'), &mut formatted.split_inclusive('\n'));
    let rest = |whole: &'_ str| whole.get(before..).unwrap_or_default().to_string();
    let (old_rest, new_rest) = (rest(old), rest(formatted));
    let after = same(&mut old_rest.split_inclusive('\n').rev(), &mut new_rest.split_inclusive('\n').rev());
    let new_text = new_rest.get(..new_rest.len() - after).unwrap_or_default().to_string();
    let range = text.range(&(before..old.len() - after));
    vec![lsp_types::TextEdit { range, new_text }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::check;
    use crate::settings::for_tests;
    use crate::text::Encoding;
    use crate::workspace::Workspace;

    const SCRIPT: &str = "# one\n# two\nglobal a, b\n@define m %( 1 %)\nfunction f() {\n  if (1) {\n    return 1\n  }\n}\nprobe begin,\n  end {\n  a[\"x\"] <<< f()\n  println(@count(a[\"x\"]))\n}\n";

    fn text() -> Text {
        Text::new(SCRIPT.into(), Encoding::Utf16)
    }

    #[test]
    fn a_list_of_symbols() {
        let found = symbols(&Scan::new(SCRIPT), &text());
        let names: Vec<&str> = found.iter().map(|symbol| symbol.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "@m", "f", "begin, end"]);
        assert_eq!((found[3].range.start.line, found[3].range.end.line), (4, 8));
    }

    #[test]
    fn folds() {
        let found = folding(&Scan::new(SCRIPT), &text());
        let lines: Vec<(u32, u32)> = found.iter().map(|range| (range.start_line, range.end_line)).collect();
        assert_eq!(lines, [(0, 1), (4, 7), (5, 6), (10, 12)]);
        assert!(folding(&Scan::new("probe x { { %( }"), &text()).is_empty());
        let crossed = "{\n%(\n}\n%)\n%(\n{\n%)\n}\n";
        let found = folding(&Scan::new(crossed), &Text::new(crossed.into(), Encoding::Utf16));
        assert_eq!(found.iter().map(|range| range.start_line).collect::<Vec<_>>(), [0, 4]);
    }

    #[test]
    fn types_beside_globals() {
        let workspace = Workspace::open(for_tests());
        let checked = check(&workspace, "a.stp", SCRIPT);
        let found = hints(&Scan::new(SCRIPT), &text(), &checked, text().range(&(0..SCRIPT.len())));
        assert_eq!(found.len(), 1);
        let InlayHintLabel::String(label) = &found[0].label else { panic!() };
        assert_eq!((label.as_str(), found[0].position.character), ("[string]:stats", 8));
    }

    #[test]
    fn only_lines_that_differ_are_replaced() {
        let old = Text::new("a\n b\nc\n".into(), Encoding::Utf16);
        let edits = formatting(&old, "a\nb\nc\n");
        assert_eq!((edits.len(), edits[0].new_text.as_str(), edits[0].range.start.line), (1, "b\n", 1));
        assert!(formatting(&old, "a\n b\nc\n").is_empty());
        let edits = formatting(&Text::new("a".into(), Encoding::Utf16), "a\n");
        assert_eq!(edits[0].new_text, "a\n");
        let edits = formatting(&Text::new("a\na\n".into(), Encoding::Utf16), "a\n");
        assert_eq!((edits[0].new_text.as_str(), edits[0].range.start.line, edits[0].range.end.line), ("", 1, 2));
    }
}
