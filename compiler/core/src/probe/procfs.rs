// SPDX-License-Identifier: GPL-2.0-or-later

//! `procfs("PATH").read` and `.write`: files below /proc/systemtap/MODULE whose contents handlers supply or receive.

use std::rc::Rc;

use super::{Context, Form, Point, PointError, ProbeFamily, Resolver, Site, TextVariable};
use crate::program::{Attachment, Label, Mechanism, Runs, Value};
use spile_source::Span;
use spile_source::diagnostic::{Code, Diagnostic};

/// The family of `procfs`.
pub(super) static FAMILY: ProbeFamily = ProbeFamily {
    check,
    ..ProbeFamily::new(
        &[
            Form {
                spelling: "procfs.read",
                doc: "/proc/systemtap/MODULE/command is read: $value is what the reader gets",
            },
            Form { spelling: "procfs.read.maxsize(number)", doc: "the same, of at most N bytes" },
            Form { spelling: "procfs.umask(number).read", doc: "the same, without those rights" },
            Form { spelling: "procfs.umask(number).read.maxsize(number)", doc: "the same, both" },
            Form { spelling: "procfs.write", doc: "/proc/systemtap/MODULE/command is written: $value is the text" },
            Form { spelling: "procfs.umask(number).write", doc: "the same, without those rights" },
            Form {
                spelling: "procfs(string).read",
                doc: "/proc/systemtap/MODULE/PATH is read: $value is what the reader gets",
            },
            Form { spelling: "procfs(string).read.maxsize(number)", doc: "the same, of at most N bytes" },
            Form { spelling: "procfs(string).umask(number).read", doc: "the same, without those rights" },
            Form { spelling: "procfs(string).umask(number).read.maxsize(number)", doc: "the same, both" },
            Form {
                spelling: "procfs(string).write",
                doc: "/proc/systemtap/MODULE/PATH is written: $value is the text",
            },
            Form { spelling: "procfs(string).umask(number).write", doc: "the same, without those rights" },
        ],
        resolve,
    )
};

static MECHANISM: Mechanism =
    Mechanism { runs: Runs::Rarely, ..Mechanism::new("SPILE_PROBE_PROCFS", Label::Word("procfs")) };

/// A file below /proc/systemtap/MODULE; `most`: maximum size in bytes, 0 for MAXSTRINGLEN.
fn attachment(path: String, rights: u32, writes: bool, most: u32) -> Attachment {
    let file = Value::Text(path.clone());
    let value = Value::List(vec![file, Value::Octal(rights), writes.into(), Value::Number(most)]);
    Attachment::new(&MECHANISM).of(path).with("procfs", value)
}

/// Without `.umask()` only the owner may access the file: 0400 and 0200.
const DEFAULT_UMASK: i64 = 0o077;

/// Most bytes that one read of a file returns.
const MAX_BYTES: i64 = 1 << 20;

fn resolve(point: &Point, _: &mut Resolver) -> Result<Vec<Site>, PointError> {
    let first = point.span();
    let (path, component) = point.string("procfs").unwrap_or(("command".into(), first));
    let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    if path.len() > 200 || !path.split('/').all(plain) {
        let expected = "a path of names between single slashes, without `..`".to_string();
        return Err(PointError::Argument { component, expected });
    }
    let in_range = |name: &str, low: i64, high: i64| match point.number(name) {
        Some((value, component)) if !(low..=high).contains(&value) => Err(PointError::Range { component, low, high }),
        found => Ok(found.map(|(value, _)| value)),
    };
    // As umask(2) does, which knows no other bits.
    let umask = point.number("umask").map_or(DEFAULT_UMASK, |(umask, _)| umask) & 0o777;
    let writes = point.has("write");
    let most = in_range("maxsize", 1, MAX_BYTES)?.unwrap_or(0);
    let rights = if writes { 0o222 } else { 0o444 } & !umask;
    Ok(vec![Site {
        point: point.spelling(),
        function: String::new(),
        module: String::new(),
        attachment: attachment(path, rights as u32, writes, most as u32),
        context: Rc::new(ProcfsContext { writes }),
    }])
}

/// The file of one probe cannot be a directory of another's.
fn check(sites: &[(&Attachment, Span)]) -> Vec<Diagnostic> {
    let of_family = |(attachment, _): &&(&Attachment, Span)| attachment.mechanism == &MECHANISM;
    let files: Vec<(&str, Span)> =
        sites.iter().filter(of_family).map(|(attachment, span)| (attachment.subject.as_str(), *span)).collect();
    let mut wrong = Vec::new();
    for (path, span) in &files {
        let is_below = |other: &str| path.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'));
        if let Some((other, other_span)) = files.iter().find(|(other, _)| is_below(other)) {
            let message = format!("`{path}` cannot be below `{other}`, which is a file");
            let diagnostic = Diagnostic::error(Code("E0202"), message).at(*span, "give one of them another name");
            wrong.push(diagnostic.also(*other_span, "this probe makes it a file"));
        }
    }
    wrong
}

struct ProcfsContext {
    writes: bool,
}

impl Context for ProcfsContext {
    fn text_variable(&self, name: &str) -> Option<TextVariable> {
        let variable = match self.writes {
            true => TextVariable { read: Some("__procfs_value"), set: None, append: None },
            false => TextVariable { read: None, set: Some("__procfs_set"), append: Some("__procfs_append") },
        };
        (name == "value").then_some(variable)
    }

    fn has_variables(&self) -> bool {
        true
    }

    fn has_lists(&self) -> bool {
        false
    }

    fn place(&self) -> String {
        "a procfs probe, which has $value".into()
    }
}
