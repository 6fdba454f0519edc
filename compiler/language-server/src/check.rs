// SPDX-License-Identifier: GPL-2.0-or-later

//! Checks a script by passes 1 and 2: its diagnostics, and the types of its globals.

use spile_core::elaborate::{self, Inferred};
use spile_core::library::LibraryRequest;
use spile_source::diagnostic::{Code, Diagnostic, Severity};
use spile_source::{FileId, Origin, SourceMap, Span};
use spile_syntax::ast::{self, Expr, ExprKind, FunctionBody, Item};
use spile_syntax::words::{WordKind, words};
use spile_syntax::{self as syntax, Macros, visit};

use crate::workspace::Workspace;

/// Scripts larger than this many bytes are not checked.
pub const MAX_CHECKED: usize = 1 << 20;

/// Codes of errors that depend on the kernel alone, not on declarations: they are valid even if some items of the
/// script do not parse.
const OF_THE_KERNEL: [&str; 10] =
    ["E0120", "E0121", "E0122", "E0123", "E0124", "E0125", "E0126", "E0127", "E0132", "E0157"];

/// A script that was checked.
pub struct Checked {
    /// The source text of the script and of the library.
    pub sources: SourceMap,
    /// The script's file.
    pub file: FileId,
    /// Its errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// Types of its globals.
    pub globals: Vec<Inferred>,
    /// The script parses.
    pub parses: bool,
}

/// Checks a script; `name` is its name in messages, which for a file of macros ends in `.stpm`.
pub fn check(workspace: &Workspace, name: &str, text: &str) -> Checked {
    let mut sources = SourceMap::new();
    if text.len() > MAX_CHECKED {
        let file = sources.add(name, Vec::new(), Origin::User);
        let message = format!("this text has more than {} KiB and is not checked as it is typed", MAX_CHECKED >> 10);
        let diagnostics = vec![Diagnostic::warning(Code("E0002"), message).at(Span::new(file, 0, 0), "")];
        return Checked { sources, file, diagnostics, globals: Vec::new(), parses: false };
    }
    let file = sources.add(name, text.as_bytes().to_vec(), Origin::User);
    let guru = workspace.settings.guru || asks_for_guru(text);
    let mut checked = Checked { sources, file, diagnostics: Vec::new(), globals: Vec::new(), parses: false };
    checked.run(workspace, guru, name.ends_with(".stpm"));
    checked.diagnostics.sort_by_key(|diagnostic| diagnostic.labels.first().map(|label| label.span.start));
    checked
}

/// `#! /usr/bin/stap -g`: the script is run in guru mode.
fn asks_for_guru(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    first.starts_with("#!")
        && first
            .split_whitespace()
            .skip(1)
            .any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('g'))
}

impl Checked {
    fn run(&mut self, workspace: &Workspace, guru: bool, is_macros: bool) {
        let arguments = workspace.settings.args.clone().unwrap_or_default();
        let mut environment = workspace.environment(arguments, guru);
        let mut of_library = Vec::new();
        let macros = workspace.library().macros(&mut self.sources, &environment, &mut of_library).unwrap_or_default();
        if is_macros {
            self.diagnostics =
                syntax::collect_macros(&mut self.sources, self.file, &environment, &mut Macros::default());
            // The file may be part of the library, which then defines each macro a second time.
            self.parses = !any_error(&self.diagnostics);
            return;
        }
        let (mut script, mut wrong) = syntax::parse(&mut self.sources, self.file, &environment, &macros);
        if workspace.settings.args.is_none() && wrong.iter().any(|wrong| wrong.code.0 == "E0003") {
            // The script's arguments are not known. Code that depends on them cannot be checked; all other code can.
            environment.arguments =
                vec!["1".into(); last_argument(&self.sources.file(self.file).bytes).min(MAX_ARGUMENTS)];
            (script, wrong) = syntax::parse(&mut self.sources, self.file, &environment, &macros);
        }
        self.parses = !any_error(&wrong);
        wrong.extend(elaborate::check_text(&script, guru));
        self.diagnostics = wrong;
        let scripts = vec![script];
        let request = LibraryRequest { scripts: &scripts, points: &[], all: false };
        let mut problems = Vec::new();
        let selected = workspace.library().select(&mut self.sources, &environment, &macros, request, &mut problems);
        self.diagnostics.append(&mut problems);
        let mut scripts = scripts;
        scripts.extend(selected.unwrap_or_default());
        if workspace.settings.args.is_some() {
            self.diagnostics.extend(syntax::unused_arguments(&scripts, &environment));
        }
        let options = elaborate::Options {
            guru,
            display_globals: true,
            offered: workspace.offered().clone(),
            ..elaborate::Options::default()
        };
        let mut resolver = workspace.resolver(guru);
        let (globals, found) = elaborate::check(&self.sources, &scripts, &options, &mut resolver);
        self.globals = globals;
        let of_headers = scripts.first().map(casts_of_headers).unwrap_or_default();
        self.diagnostics.extend(found.into_iter().filter(|diagnostic| {
            let of_the_kernel = diagnostic.code.0.starts_with("E02") || OF_THE_KERNEL.contains(&diagnostic.code.0);
            // Format strings were checked above.
            let reported = diagnostic.code.0 == "E0133";
            (self.parses || of_the_kernel) && !reported && !is_within(diagnostic, &of_headers)
        }));
    }
}

/// Maximum number of placeholder arguments for a script.
const MAX_ARGUMENTS: usize = 64;

/// The number of the last argument that the text names.
fn last_argument(text: &[u8]) -> usize {
    let arguments = words(text).into_iter().filter(|word| word.kind == WordKind::Argument);
    let numbers = arguments.filter_map(|word| {
        let digits = std::str::from_utf8(text.get(word.range)?).ok()?.trim_start_matches(['$', '@']);
        let end = digits.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(digits.len());
        digits.get(..end)?.parse().ok()
    });
    numbers.max().unwrap_or_default()
}

fn any_error(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
}

/// Casts to types of headers, which the C compiler would have to read: they are not reported.
fn casts_of_headers(script: &ast::Script) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut see = |expr: &Expr| {
        if let ExprKind::Cast { module: Some(module), .. } = &expr.kind
            && module.iter().any(|byte| matches!(byte, b'<' | b'"'))
        {
            spans.push(expr.span);
        }
    };
    for item in &script.items {
        match item {
            Item::Probe(probe) => visit::expressions(&probe.body, &mut see),
            Item::Alias(alias) => {
                alias.prologue.iter().chain(&alias.epilogue).for_each(|block| visit::expressions(block, &mut see));
            }
            Item::Function(function) => {
                if let FunctionBody::Script(block) = &function.body {
                    visit::expressions(block, &mut see);
                }
            }
            Item::Global(_) | Item::EmbeddedC(_) => {}
        }
    }
    spans
}

fn is_within(diagnostic: &Diagnostic, spans: &[Span]) -> bool {
    diagnostic.labels.first().is_some_and(|label| {
        let touches = |span: &Span| {
            span.file == label.span.file && span.start <= label.span.start && label.span.start <= span.end
        };
        spans.iter().any(touches)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Settings, for_tests};

    fn codes_with(settings: Settings, text: &str) -> Vec<&'static str> {
        let workspace = Workspace::open(settings);
        check(&workspace, "a.stp", text).diagnostics.iter().map(|diagnostic| diagnostic.code.0).collect()
    }

    fn codes(text: &str) -> Vec<&'static str> {
        codes_with(for_tests(), text)
    }

    #[test]
    fn errors_of_both_passes_are_found() {
        assert_eq!(codes("probe begin { exit() }"), [""; 0]);
        assert_eq!(codes("probe begin { prnt(1) } probe timer.mss(5) { exit() }"), ["E0103", "E0201"]);
        let broken = codes("function f() { return 1 }} probe begin { f( } probe timer.mss(5) { g() }");
        assert!(broken.contains(&"E0201") && !broken.contains(&"E0103"), "{broken:?}");
    }

    #[test]
    fn scripts_with_unknown_arguments() {
        let text = "probe begin { printf(\"%d %s\\n\", $1, @2) exit() }";
        assert_eq!(codes(text), [""; 0]);
        assert_eq!(codes_with(Settings { args: Some(vec![]), ..for_tests() }, text), ["E0003", "E0003"]);
    }

    #[test]
    fn guru_mode_by_setting_or_first_line() {
        let text = "%{ int x; %}\nprobe begin { exit() }";
        assert!(!codes(text).is_empty());
        assert_eq!(codes_with(Settings { guru: true, ..for_tests() }, text), [""; 0]);
        assert_eq!(codes(&format!("#!/usr/bin/stap -vg\n{text}")), [""; 0]);
    }

    #[test]
    fn types_of_globals() {
        let text = "global a, b, c, d\nprobe begin { a[\"x\", 1] <<< 2; b = \"t\"; c[1]++; exit() }\nprobe end { println(@count(a[\"x\", 1])) println(b, c[1]) }";
        let workspace = Workspace::open(for_tests());
        let checked = check(&workspace, "a.stp", text);
        let keys: Vec<usize> = checked.globals.iter().map(|global| global.keys.len()).collect();
        assert_eq!(keys.get(..4), Some(&[2, 0, 1, 0][..]));
        assert!(!checked.globals[3].is_decided);
    }

    #[test]
    fn macros_and_large_texts() {
        let workspace = Workspace::open(for_tests());
        assert!(check(&workspace, "a.stpm", "@define m(x) %( @x %)").diagnostics.is_empty());
        assert_eq!(check(&workspace, "a.stpm", "probe begin { }").diagnostics.len(), 1);
        assert_eq!(check(&workspace, "a.stp", &" ".repeat(MAX_CHECKED + 1)).diagnostics.len(), 1);
    }
}
