// SPDX-License-Identifier: GPL-2.0-or-later

//! The reference manual: docs/reference/, a page each for probe points, aliases, functions and macros, generated from
//! the records that the program itself uses, and one with the examples of docs/reference/examples.
//!
//! `cargo xtask reference` writes it, and the tables of examples/README.md and docs/comparison.md that are made from
//! examples/questions.toml; a test fails if one is stale.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use spile_base::cache::Cache;
use spile_core::library::{self, Library, LibraryRequest, Places};
use spile_questions::{Questions, text};
use spile_source::SourceMap;
use spile_syntax::{Environment, Macros};

const DIRECTORY: &str = "docs/reference";

/// Writes the pages of docs/reference.
pub fn run(root: &Path) -> Result<ExitCode> {
    let directory = root.join(DIRECTORY);
    fs::create_dir_all(&directory)?;
    for (name, text) in pages(root)? {
        fs::write(directory.join(name), text).with_context(|| format!("writing {name}"))?;
    }
    for (name, text) in with_tables(root)? {
        fs::write(root.join(name), text).with_context(|| format!("writing {name}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The pages by their file names.
fn pages(root: &Path) -> Result<BTreeMap<&'static str, String>> {
    let environment = Environment { kernel_release: "6.1.0".into(), arch: "x86_64".into(), ..Environment::default() };
    let places =
        Places { release: environment.kernel_release.clone(), arch: environment.arch.clone(), ..Places::default() };
    let none = Cache::none();
    let open = Library::open(&places, &none).map_err(|error| anyhow::anyhow!("the library: {error:?}"))?;
    let (mut sources, mut problems) = (SourceMap::new(), Vec::new());
    let macros: Macros =
        open.macros(&mut sources, &environment, &mut problems).map_err(|error| anyhow::anyhow!("{error:?}"))?;
    let request = LibraryRequest { all: true, ..LibraryRequest::default() };
    let scripts = open
        .select(&mut sources, &environment, &macros, request, &mut problems)
        .map_err(|error| anyhow::anyhow!("{error:?}"))?;
    ensure!(problems.is_empty(), "the library has problems: {problems:?}");

    let points = spile_core::probe::forms().filter(|form| !form.spelling.starts_with('_'));
    let points = points.map(|form| format!("{} /* {} */", form.spelling, form.doc)).collect();
    Ok(BTreeMap::from([
        (
            "README.md",
            page(
                "Reference",
                "All names that scripts can use, written by `cargo xtask reference` from the tables of the compiler and the comments of the library.",
                CONTENTS.into(),
            ),
        ),
        ("probes.md", page("Probe points", "The output of `spile --dump-probe-types`.", by_family(points))),
        (
            "aliases.md",
            page(
                "Probe aliases",
                "What `spile --dump-probe-aliases` lists, without the points that they stand for. `[.return]` marks aliases that also exist with `.return`.",
                by_family(with_returns(library::aliases(&scripts, &sources))),
            ),
        ),
        (
            "functions.md",
            page(
                "Functions",
                "The output of `spile --dump-functions`. Scripts with `--privilege=stapusr` may call those that are unprivileged, and functions of the library that call no others.",
                group_by_letter(library::functions(&scripts, &sources, spile_core::elaborate::is_unprivileged)),
            ),
        ),
        ("macros.md", page("Macros", "Macros of the library, used as `@NAME(...)`.", list(macros_of(root)?))),
        ("examples.md", page("Examples", "A test compiles each example.", examples(root)?)),
    ]))
}

/// The pages of which a table is made from examples/questions.toml, by their paths.
fn with_tables(root: &Path) -> Result<Vec<(&'static str, String)>> {
    let questions = Questions::read().map_err(|error| anyhow::anyhow!(error))?;
    let tables =
        [("examples/README.md", text::table(&questions)), ("docs/comparison.md", text::counterparts(&questions))];
    let pages = tables.into_iter().map(|(name, table)| {
        let page = fs::read_to_string(root.join(name)).with_context(|| format!("reading {name}"))?;
        Ok((name, replaced(&page, &table).with_context(|| format!("{name} has no table with this head"))?))
    });
    pages.collect()
}

/// A page whose table with the head of `table` is replaced by it.
fn replaced(page: &str, table: &str) -> Option<String> {
    let head = table.lines().next()?;
    let start = page.find(&format!("{head}\n"))?;
    let (before, from) = page.split_at(start);
    let rows: usize = from.split_inclusive('\n').take_while(|line| line.starts_with('|')).map(str::len).sum();
    Some(format!("{before}{table}{}", from.get(rows..)?))
}

const CONTENTS: &str = "- [Probe points](probes.md)\n- [Probe aliases](aliases.md)\n- [Functions](functions.md)\n- [Macros](macros.md)\n- [Examples](examples.md)\n";

fn page(title: &str, about: &str, body: String) -> String {
    format!("# {title}\n\n{about}\n\n{body}")
}

/// `NAME /* TEXT */` as an item of a list.
fn item(line: &str) -> String {
    const MARK: &str = " /* unprivileged */";
    let mark = if line.contains(MARK) { " (unprivileged)" } else { "" };
    let line = line.replacen(MARK, "", 1);
    match line.split_once(" /* ") {
        Some((name, text)) => format!("- `{name}`: {}{mark}\n", text.trim_end_matches(" */")),
        None => format!("- `{line}`{mark}\n"),
    }
}

fn list(lines: Vec<String>) -> String {
    lines.iter().map(|line| item(line)).collect()
}

/// A section for each first component, in order of appearance.
fn by_family(lines: Vec<String>) -> String {
    sections(lines, |line| line.split([' ', '.', '(']).next().unwrap_or_default().to_string())
}

fn group_by_letter(lines: Vec<String>) -> String {
    sections(lines, |line| {
        line.trim_start_matches('_')
            .chars()
            .next()
            .map(|first| first.to_ascii_uppercase().to_string())
            .unwrap_or_default()
    })
}

fn sections(lines: Vec<String>, title: impl Fn(&str) -> String) -> String {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in lines {
        let title = title(&line);
        match found.iter_mut().find(|(known, _)| *known == title) {
            Some((_, text)) => text.push_str(&item(&line)),
            None => found.push((title, item(&line))),
        }
    }
    found.iter().map(|(title, text)| format!("## {title}\n\n{text}\n")).collect()
}

/// An alias and its `.return` on one line, if the latter has no separate description.
fn with_returns(lines: Vec<String>) -> Vec<String> {
    let name = |line: &str| line.split(" /* ").next().unwrap_or_default().to_string();
    let returns: Vec<String> =
        lines.iter().filter(|line| line.contains(".return /* The return of ")).map(|line| name(line)).collect();
    let mut kept = Vec::new();
    for line in &lines {
        let name = name(line);
        if name
            .strip_suffix(".return")
            .is_some_and(|entry| returns.contains(&name) && lines.iter().any(|line| self::is_alias(line, entry)))
        {
            continue;
        }
        let with = returns.contains(&format!("{name}.return"));
        kept.push(if with { line.replacen(&name, &format!("{name}[.return]"), 1) } else { line.clone() });
    }
    kept
}

fn is_alias(line: &str, name: &str) -> bool {
    line.split(" /* ").next() == Some(name)
}

/// `@NAME(PARAMETERS) /* TEXT */` of the macro files; a comment above a macro applies to the macros up to the next
/// comment.
fn macros_of(root: &Path) -> Result<Vec<String>> {
    let mut files: Vec<_> = fs::read_dir(root.join("tapset"))?.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let mut found = Vec::new();
    for file in files.into_iter().filter(|file| file.extension().is_some_and(|extension| extension == "stpm")) {
        let text = fs::read_to_string(&file)?;
        let mut about = String::new();
        for line in text.lines() {
            if let Some(comment) = line.strip_prefix("/** ") {
                about = comment.trim_end_matches("*/").trim().trim_end_matches('.').to_string();
            } else if let Some(rest) = line.strip_prefix("@define ") {
                let end = rest.find(" %(").or_else(|| rest.find("%(")).unwrap_or(rest.len());
                let name = rest.get(..end).unwrap_or(rest);
                if !name.starts_with('_') {
                    found.push(if about.is_empty() { format!("@{name}") } else { format!("@{name} /* {about} */") });
                }
            }
        }
    }
    found.sort();
    Ok(found)
}

fn examples(root: &Path) -> Result<String> {
    let mut files: Vec<_> =
        fs::read_dir(root.join(DIRECTORY).join("examples"))?.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let mut text = String::new();
    for file in files {
        let script = fs::read_to_string(&file)?;
        let (about, body) = script.split_once('\n').with_context(|| format!("{} is empty", file.display()))?;
        let indented: String = body.trim_end().lines().map(|line| format!("    {line}\n")).collect();
        text.push_str(&format!("{}\n\n{indented}\n", about.trim_start_matches(['/', ' '])));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_is_current() {
        let root = crate::root();
        for (name, text) in pages(&root).expect("pages") {
            let written = fs::read_to_string(root.join(DIRECTORY).join(name)).unwrap_or_default();
            assert!(written == text, "docs/reference/{name} is stale: run `cargo xtask reference`");
        }
        for (name, text) in with_tables(&root).expect("tables") {
            let written = fs::read_to_string(root.join(name)).unwrap_or_default();
            assert!(written == text, "{name} is stale: run `cargo xtask reference`");
        }
    }

    #[test]
    fn a_table_is_replaced() {
        let page = "# A\n\n| a | b |\n|---|---|\n| old | 1 |\n| old | 2 |\n\nText\n";
        let table = "| a | b |\n|---|---|\n| new | 3 |\n";
        assert_eq!(replaced(page, table).unwrap(), "# A\n\n| a | b |\n|---|---|\n| new | 3 |\n\nText\n");
        assert_eq!(replaced("Text\n", table), None);
    }

    #[test]
    fn functions_of_unprivileged_scripts_are_marked() {
        assert_eq!(item("f:long () /* unprivileged */ /* Reads */"), "- `f:long ()`: Reads (unprivileged)\n");
        assert_eq!(item("f:long () /* Reads */"), "- `f:long ()`: Reads\n");
    }

    #[test]
    fn an_alias_and_its_return() {
        let lines = ["a.b /* Reads */", "a.b.return /* The return of a.b */", "a.c.return /* Ends */"]
            .map(String::from)
            .to_vec();
        assert_eq!(with_returns(lines), ["a.b[.return] /* Reads */", "a.c.return /* Ends */"]);
    }
}
