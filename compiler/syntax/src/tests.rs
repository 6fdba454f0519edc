// SPDX-License-Identifier: GPL-2.0-or-later

//! The language, construct by construct.

mod diagnostics;
mod examples;
mod language;
mod robustness;

use super::*;
use spile_source::Origin;
use spile_source::diagnostic::render::render;

/// The environment of the tests.
fn environment() -> Environment {
    Environment {
        kernel_release: "6.1.0-56-cloud-amd64".into(),
        arch: "x86_64".into(),
        config: Configuration::read_by(|| {
            [("CONFIG_SMP", "y"), ("CONFIG_HZ", "250")].map(|(name, value)| (name.into(), value.into())).into()
        }),
        guru: true,
        compatible: "5.6".into(),
        arguments: vec!["10".into(), "two words".into()],
        privilege: "stapdev".into(),
        runtime: "kernel".into(),
    }
}

/// Parses one script: the tree and all messages as shown to the user.
fn try_parse(text: &str) -> (ast::Script, String) {
    let mut sources = SourceMap::new();
    let file = sources.add("test.stp", text.as_bytes().to_vec(), Origin::User);
    let (script, diagnostics) = parse(&mut sources, file, &environment(), &Macros::default());
    let shown: Vec<String> = diagnostics.iter().map(|diagnostic| render(&sources, diagnostic, false)).collect();
    (script, shown.join("\n"))
}

#[test]
fn a_broken_item_leaves_the_others() {
    let (script, shown) =
        try_parse("global a\nprobe begin { a = }\nfunction f(x) { return x }\nprobe end { f( }\nglobal b");
    assert_eq!(script.items.len(), 3);
    assert_eq!(shown.matches("error[E0033]").count(), 2, "{shown}");
}

#[test]
fn an_older_language_is_for_the_script_alone() {
    let errors = |origin| {
        let mut sources = SourceMap::new();
        let text = "private global a\nprobe begin { a = @enum(\"A\") }";
        let file = sources.add("test.stp", text.as_bytes().to_vec(), origin);
        let old = Environment { compatible: "1.2".into(), ..environment() };
        let (_, diagnostics) = parse(&mut sources, file, &old, &Macros::default());
        diagnostics.iter().map(|diagnostic| render(&sources, diagnostic, false)).collect::<Vec<_>>()
    };
    assert_eq!(errors(Origin::User).len(), 2);
    assert_eq!(errors(Origin::Tapset), Vec::<String>::new());
}
