// SPDX-License-Identifier: GPL-2.0-or-later

//! Completion: what can be typed at a place.

mod names;
pub mod points;

use std::ops::Range;

use lsp_types::{
    CompletionItem, CompletionItemKind, CompletionList, CompletionTextEdit, Documentation, InsertTextFormat,
    MarkupContent, MarkupKind, TextEdit,
};

use crate::context::{self, Context};
use crate::scan::{Item, Scan};
use crate::text::Text;
use crate::workspace::Workspace;

/// Maximum number of items; if there are more, the client asks again when more has been typed.
const MAX_ITEMS: usize = 400;

/// A candidate.
#[derive(Clone, Debug, Default)]
pub(super) struct Candidate {
    /// The text that is shown and, without `insert`, inserted.
    pub label: String,
    /// The text that is inserted instead; `$0` marks the place of the cursor, for clients that know snippets.
    pub insert: Option<String>,
    /// Its kind.
    pub kind: Option<CompletionItemKind>,
    /// Shown beside the label: a type, a signature.
    pub detail: String,
    /// Markdown.
    pub doc: String,
}

impl Candidate {
    /// A candidate of this kind.
    pub fn new(label: impl Into<String>, kind: CompletionItemKind) -> Candidate {
        Candidate { label: label.into(), kind: Some(kind), ..Candidate::default() }
    }

    /// With the detail shown beside it.
    #[must_use]
    pub fn detail(self, detail: impl Into<String>) -> Candidate {
        Candidate { detail: detail.into(), ..self }
    }

    /// With its documentation.
    #[must_use]
    pub fn doc(self, doc: impl Into<String>) -> Candidate {
        Candidate { doc: doc.into(), ..self }
    }

    /// With the text that is inserted.
    #[must_use]
    pub fn insert(self, text: impl Into<String>) -> Candidate {
        Candidate { insert: Some(text.into()), ..self }
    }
}

/// A request for completion.
pub struct Request<'r> {
    /// The kernel and the library.
    pub workspace: &'r Workspace,
    /// The script.
    pub scan: &'r Scan,
    /// The script's text, with positions.
    pub text: &'r Text,
    /// The client knows snippets.
    pub snippets: bool,
}

/// What can be typed at the offset.
pub fn complete(request: &Request, offset: usize) -> CompletionList {
    let scan = request.scan;
    let item = scan.item_at(offset).and_then(|owner| scan.items.get(owner));
    let (offers, replace) = match context::at(scan, offset) {
        Context::Nothing => (Vec::new(), offset..offset),
        Context::Top { replace } => (names::top(), replace),
        Context::Component { before, replace } => (points::components(request, &before), replace),
        Context::Argument { components, replace, .. } => points::argument(request, &components, replace),
        Context::At { replace } => (names::at_words(request, item), replace),
        Context::Target { replace } => (item.map(|item| names::targets(request, item)).unwrap_or_default(), replace),
        Context::Member { chain, replace } => {
            (item.map(|item| names::members(request, item, &chain)).unwrap_or_default(), replace)
        }
        Context::Name { replace } => (names::in_body(request, offset), replace),
    };
    list(request, offers, &replace)
}

/// Candidates that match the typed text: those that begin with it first, then those that contain it.
fn list(request: &Request, offers: Vec<Candidate>, replace: &Range<usize>) -> CompletionList {
    let typed = request.text.slice(replace.clone()).to_ascii_lowercase();
    let rank = |label: &str| {
        let label = label.to_ascii_lowercase();
        if label.starts_with(&typed) {
            Some(0u8)
        } else if typed.len() > 1 && label.contains(&typed) {
            Some(1)
        } else {
            None
        }
    };
    let mut fitting: Vec<(u8, Candidate)> = Vec::new();
    let mut left_out = false;
    for wanted in [0, 1] {
        for offer in &offers {
            if rank(&offer.label) != Some(wanted) {
                continue;
            }
            if fitting.len() >= MAX_ITEMS {
                left_out = true;
                break;
            }
            fitting.push((wanted, offer.clone()));
        }
    }
    let range = request.text.range(replace);
    let items = fitting.into_iter().map(|(rank, offer)| shown(request, offer, rank, range)).collect();
    CompletionList { is_incomplete: left_out, items }
}

fn shown(request: &Request, offer: Candidate, rank: u8, range: lsp_types::Range) -> CompletionItem {
    let insert = offer.insert.unwrap_or_else(|| offer.label.clone());
    let is_snippet = insert.contains("$0") && request.snippets;
    let plain = || insert.split("$0").next().unwrap_or_default().trim_end_matches(['(', '"']).to_string();
    let new_text = if is_snippet || !insert.contains("$0") { insert.clone() } else { plain() };
    let documentation = (!offer.doc.is_empty())
        .then_some(Documentation::MarkupContent(MarkupContent { kind: MarkupKind::Markdown, value: offer.doc }));
    CompletionItem {
        sort_text: Some(format!("{rank}{}", offer.label)),
        filter_text: Some(offer.label.clone()),
        label: offer.label,
        kind: offer.kind,
        detail: Some(offer.detail).filter(|detail| !detail.is_empty()),
        documentation,
        insert_text_format: is_snippet.then_some(InsertTextFormat::SNIPPET),
        text_edit: Some(CompletionTextEdit::Edit(TextEdit { range, new_text })),
        ..CompletionItem::default()
    }
}

/// The points of a probe or alias as they are written.
pub(super) fn header<'s>(scan: &'s Scan, item: &Item) -> &'s str {
    crate::members::header(scan, item).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::for_tests;
    use crate::text::Encoding;

    fn labels(text: &str) -> Vec<String> {
        let offset = text.find('|').unwrap();
        let script = text.replacen('|', "", 1);
        let (workspace, scan) = (Workspace::open(for_tests()), Scan::new(&script));
        let text = Text::new(script, Encoding::Utf16);
        let request = Request { workspace: &workspace, scan: &scan, text: &text, snippets: true };
        complete(&request, offset).items.into_iter().map(|item| item.label).collect()
    }

    #[test]
    fn points_without_a_kernel() {
        let found = labels("probe ti|");
        assert!(found.contains(&"timer".to_string()), "{found:?}");
        let found = labels("probe timer.|");
        assert!(found.contains(&"ms".to_string()) && found.contains(&"profile".to_string()), "{found:?}");
        let found = labels("probe kernel.function(\"x\").|");
        assert!(
            ["call", "inline", "return", "callee"].iter().all(|name| found.contains(&name.to_string())),
            "{found:?}"
        );
        assert!(labels("probe syscall.opena|").contains(&"openat".to_string()));
        assert!(labels("probe mine.x = begin { }\nprobe mi|").contains(&"mine".to_string()));
        assert!(labels("probe mine.x = begin { }\nprobe mine.|").contains(&"x".to_string()));
        assert!(!labels("probe _|").contains(&"__nfs".to_string()));
    }

    #[test]
    fn many_variables_cost_in_proportion() {
        let variables: String = (0..30_000).map(|at| format!("variable_{at} = {at};")).collect();
        let began = std::time::Instant::now();
        assert!(labels(&format!("probe begin {{ {variables} va|")).len() >= MAX_ITEMS);
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }

    #[test]
    fn words_of_a_body() {
        let found = labels("global reads\nfunction mine(a) { }\nprobe begin { left = 1; re|");
        assert!(found.contains(&"reads".to_string()) && found.contains(&"return".to_string()), "{found:?}");
        assert!(labels("global reads\nfunction mine(a) { }\nprobe begin { mi|").contains(&"mine".to_string()));
        assert!(labels("probe begin { left = 1; le|").contains(&"left".to_string()));
        assert!(labels("probe begin { execn|").contains(&"execname".to_string()));
        assert!(labels("probe begin { pri|").contains(&"printf".to_string()));
        assert!(labels("@define mine(x) %( @x %)\nprobe begin { @mi|").contains(&"@mine".to_string()));
        assert!(labels("@define mine(xyz) %( @x|").contains(&"@xyz".to_string()));
        assert!(labels("probe begin { @hist|").contains(&"@hist_log".to_string()));
        assert!(labels("probe mine = begin { who = 1 }\nprobe mine { wh|").contains(&"who".to_string()));
        assert_eq!(labels("probe begin { # x|"), [""; 0]);
    }
}
