// SPDX-License-Identifier: GPL-2.0-or-later

//! Diagnostics for programs: one JSON object a line.
//!
//!     {"code":"E0103","severity":"error","message":"unresolved function `foo`",
//!      "spans":[{"file":"a.stp","start":{"line":1,"column":15,"offset":14},"end":{...},"primary":true,"label":""}],
//!      "calls":[],"notes":["did you mean fop?"],"suggestion":{"span":{...},"replacement":"fop"}}
//!
//! Lines and columns count from 1, columns in bytes; offsets count bytes from 0; `end` is exclusive. `calls` are the
//! macros and script arguments through which the primary span is reached, innermost first. `suggestion` is null, or a
//! replacement for a span.

use serde_json::{Value, json};

use super::{Diagnostic, Severity};
use crate::{SourceMap, Span};

/// The object with a trailing newline.
pub fn render(sources: &SourceMap, diagnostic: &Diagnostic) -> String {
    let primary = diagnostic.labels.iter().find(|label| label.primary).or(diagnostic.labels.first());
    let calls = primary.map(|label| calls(sources, label.span)).unwrap_or_default();
    let spans: Vec<Value> = diagnostic
        .labels
        .iter()
        .map(|label| {
            let mut span = place(sources, label.span);
            #[expect(clippy::indexing_slicing, reason = "assigning to a member of an object adds it")]
            {
                span["primary"] = label.primary.into();
                span["label"] = label.message.as_str().into();
            }
            span
        })
        .collect();
    let severity = match diagnostic.severity {
        Severity::Warning => "warning",
        Severity::Error => "error",
    };
    let suggestion = diagnostic
        .suggestion
        .as_ref()
        .map(|suggestion| json!({ "span": place(sources, suggestion.span), "replacement": suggestion.replacement }));
    let object = json!({
        "code": diagnostic.code.0,
        "severity": severity,
        "message": diagnostic.message,
        "spans": spans,
        "calls": calls,
        "notes": diagnostic.notes,
        "suggestion": suggestion,
    });
    format!("{}\n", spile_abi::escape::json(&object.to_string()))
}

fn place(sources: &SourceMap, span: Span) -> Value {
    let point = |offset: u32| {
        let (line, column) = sources.line_column(Span { start: offset, ..span });
        json!({ "line": line, "column": column, "offset": offset })
    };
    json!({ "file": sources.file(span.file).name, "start": point(span.start), "end": point(span.end) })
}

fn calls(sources: &SourceMap, span: Span) -> Vec<Value> {
    let expansions = std::iter::successors(sources.expansion(span.via), |inner| sources.expansion(inner.call.via));
    let call = |expansion: &crate::Expansion| json!({ "name": expansion.name, "span": place(sources, expansion.call) });
    expansions.take(super::render::MAX_CALLS).map(call).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Origin;
    use crate::diagnostic::Code;

    #[test]
    fn an_object_a_line() {
        let mut sources = SourceMap::new();
        let file = sources.add("a.stp", b"@define m %( x %)\nprobe \"\xe4\" { @m }\n".to_vec(), Origin::User);
        let via = sources.add_expansion("@m", Span::new(file, 30, 32));
        let diagnostic = Diagnostic::error(Code("E0100"), "a \"message\"\nof two lines")
            .at(Span { via, ..Span::new(file, 13, 14) }, "this")
            .also(Span::new(file, 18, 23), "")
            .note("a note")
            .replace(Span::new(file, 18, 23), "function");
        let text = render(&sources, &diagnostic);
        assert_eq!(text.lines().count(), 1);
        let object: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(object["code"], "E0100");
        assert_eq!(object["spans"][0]["start"], json!({ "line": 1, "column": 14, "offset": 13 }));
        assert_eq!(object["spans"][1]["end"], json!({ "line": 2, "column": 6, "offset": 23 }));
        assert_eq!(object["spans"][1]["primary"], false);
        assert_eq!(object["calls"][0]["name"], "@m");
        assert_eq!(object["suggestion"]["replacement"], "function");
        let bare: Value = serde_json::from_str(&render(&sources, &Diagnostic::warning(Code("W0100"), "m"))).unwrap();
        assert_eq!(
            (&bare["severity"], &bare["suggestion"], &bare["spans"]),
            (&json!("warning"), &Value::Null, &json!([]))
        );
    }
}
