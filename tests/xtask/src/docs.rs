// SPDX-License-Identifier: GPL-2.0-or-later

//! The book: docs/ as built by mdBook (`cargo xtask docs`, into target/book).
//!
//! The unit tests check facts that a build does not: that every page is in SUMMARY.md, that links lead to a file and a
//! heading, and that programs accept the commands of the pages. `tests/docs/scripts.host.sh` compiles every script of
//! the pages; `cargo xtask docs --extract DIR` extracts them. Scripts are blocks fenced with ```` ```stp ```` (````
//! ```stp,guru ```` for those that need `-g`) and the text of `spile ... -e '...'` commands anywhere.

mod commands;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail, ensure};
use regex::Regex;

/// The directory of the book's pages and of book.toml.
const BOOK: &str = "docs";
/// Pages outside of the book whose links and scripts are checked as well.
const OTHER_PAGES: [&str; 6] =
    ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md"];

/// The arguments of `cargo xtask docs`.
#[derive(clap::Args)]
pub struct Options {
    /// Write the scripts of all pages to this directory instead, PAGE-LINE.stp and PAGE-LINE.options, and all commands to the file `commands`, for the test that runs them
    #[arg(long, value_name = "DIR")]
    extract: Option<PathBuf>,
}

/// Builds the book, or with `--extract` writes its scripts out.
pub fn run(options: &Options) -> Result<ExitCode> {
    let root = crate::root();
    match &options.extract {
        Some(directory) => extract(&root, directory),
        None => build(&root),
    }
}

fn build(root: &Path) -> Result<ExitCode> {
    let mut command = Command::new("mdbook");
    command.arg("build").arg(root.join(BOOK)).stdin(Stdio::null());
    let status = match command.status() {
        Ok(status) => status,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            bail!("mdbook is not installed: cargo install mdbook --version '^0.4' --locked")
        }
        Err(error) => return Err(error).context("running mdbook"),
    };
    ensure!(status.success(), "mdbook failed");
    println!("{}", root.join("target/book/index.html").display());
    Ok(ExitCode::SUCCESS)
}

fn extract(root: &Path, directory: &Path) -> Result<ExitCode> {
    fs::create_dir_all(directory).with_context(|| format!("making {}", directory.display()))?;
    let mut commands = String::new();
    for page in pages(root)? {
        let text = fs::read_to_string(&page).with_context(|| format!("reading {}", page.display()))?;
        let shown = page.strip_prefix(root).unwrap_or(&page).with_extension("").display().to_string().replace('/', "_");
        for script in scripts(&text) {
            let file = directory.join(format!("{shown}-{}.stp", script.line));
            fs::write(&file, &script.text)
                .and_then(|()| fs::write(file.with_extension("options"), if script.guru { "-g\n" } else { "" }))
                .with_context(|| format!("writing {}", file.display()))?;
        }
        commands.extend(commands::commands(&text).into_iter().map(|(_, command)| command + "\n"));
    }
    let list = directory.join("commands");
    fs::write(&list, commands).with_context(|| format!("writing {}", list.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// The full paths of all checked pages.
fn pages(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = OTHER_PAGES.iter().map(|page| root.join(page)).collect();
    pages_below(&root.join(BOOK), &mut found)?;
    found.sort();
    Ok(found)
}

fn pages_below(directory: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(directory).with_context(|| format!("reading {}", directory.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            pages_below(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    Ok(())
}

/// A script in a page.
#[derive(Debug, PartialEq, Eq)]
struct Script {
    /// Its first line, from 1.
    line: usize,
    text: String,
    guru: bool,
}

fn scripts(page: &str) -> Vec<Script> {
    let mut found = blocks(page);
    found.extend(commands(page));
    found
}

/// Blocks fenced with ```` ```stp ````.
fn blocks(page: &str) -> Vec<Script> {
    let mut found = Vec::new();
    let mut open: Option<Script> = None;
    for (index, line) in page.lines().enumerate() {
        let fence = line.trim().strip_prefix("```");
        match (&mut open, fence) {
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(script), None) => script.text.push_str(&format!("{line}\n")),
            (None, Some("stp")) => open = Some(Script { line: index + 1, text: String::new(), guru: false }),
            (None, Some("stp,guru")) => open = Some(Script { line: index + 1, text: String::new(), guru: true }),
            (None, _) => {}
        }
    }
    found
}

/// The text of `spile ... -e '...'`; in a table `\|` is `|`.
fn commands(page: &str) -> Vec<Script> {
    let pattern = Regex::new(r"\bspile\b([^'`\n]*) -e '([^']+)'").expect("the pattern is well formed");
    let found = pattern.captures_iter(page).filter_map(|captures| {
        let (whole, options, text) = (captures.get(0)?, captures.get(1)?.as_str(), captures.get(2)?.as_str());
        let line = page.get(..whole.start())?.matches('\n').count() + 1;
        let guru = options.split_whitespace().any(|word| word == "-g");
        Some(Script { line, text: format!("{}\n", text.replace("\\|", "|")), guru })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A page without fenced blocks, indented blocks and code spans.
    fn prose(page: &str) -> String {
        let mut fenced = false;
        let mut text = String::new();
        for line in page.lines() {
            let fence = line.trim_start().starts_with("```");
            if !fence && !fenced && !line.starts_with("    ") {
                text.push_str(line);
                text.push('\n');
            }
            fenced ^= fence;
        }
        Regex::new("`[^`\n]*`").expect("a pattern").replace_all(&text, "").into_owned()
    }

    /// Targets of the page's links and images, except URLs.
    fn links(page: &str) -> Vec<String> {
        let pattern = Regex::new(r"\]\(([^)\s]+)\)").expect("a pattern");
        let prose = prose(page);
        let all = pattern.captures_iter(&prose).map(|captures| captures[1].to_string());
        all.filter(|target| !target.starts_with("http")).collect()
    }

    /// The anchors of a page's headings, as generated by mdBook and forges.
    fn anchors(page: &str) -> Vec<String> {
        let headings = page.lines().filter(|line| line.starts_with('#'));
        let anchor = |line: &str| -> String {
            let kept = |c: char| match c {
                ' ' => Some('-'),
                '-' | '_' => Some(c),
                _ => c.is_alphanumeric().then(|| c.to_ascii_lowercase()),
            };
            line.trim_start_matches('#').trim().chars().filter_map(kept).collect()
        };
        headings.map(anchor).collect()
    }

    #[test]
    fn links_lead_somewhere() {
        let root = crate::root();
        let book = root.join(BOOK);
        let mut wrong = Vec::new();
        for page in pages(&root).expect("pages") {
            let text = fs::read_to_string(&page).expect("a page");
            for link in links(&text) {
                let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
                let directory = page.parent().expect("a directory");
                let target = if file.is_empty() { page.clone() } else { directory.join(file) };
                let leaves_book =
                    page.starts_with(&book) && !target.canonicalize().is_ok_and(|target| target.starts_with(&book));
                let has_anchor =
                    || fs::read_to_string(&target).is_ok_and(|text| anchors(&text).contains(&anchor.into()));
                if !target.exists() || leaves_book || (!anchor.is_empty() && !has_anchor()) {
                    wrong.push(format!("{}: {link}", page.display()));
                }
            }
        }
        assert!(wrong.is_empty(), "links that lead nowhere, or out of the book:\n{}", wrong.join("\n"));
    }

    #[test]
    fn the_summary_has_every_page_once() {
        let book = crate::root().join(BOOK);
        let mut found = Vec::new();
        pages_below(&book, &mut found).expect("pages");
        let summary = fs::read_to_string(book.join("SUMMARY.md")).expect("SUMMARY.md");
        let listed = links(&summary);
        let named: BTreeSet<PathBuf> = listed.iter().map(|link| book.join(link)).collect();
        assert_eq!(named.len(), listed.len(), "a page is listed twice");
        let all: BTreeSet<PathBuf> = found.into_iter().filter(|page| !page.ends_with("SUMMARY.md")).collect();
        let missing: Vec<_> = all.symmetric_difference(&named).collect();
        assert!(missing.is_empty(), "not in SUMMARY.md, or not there: {missing:?}");
    }

    #[test]
    fn the_book_is_where_the_message_says() {
        let config = fs::read_to_string(crate::root().join("docs/book.toml")).expect("book.toml");
        assert!(config.contains("build-dir = \"../target/book\"\n"), "{config}");
    }

    #[test]
    fn scripts_are_found() {
        let page = "```stp\nprobe a { x }\n```\n```sh\nspile -g -e 'probe b'\n```\n| `spile -e 'c \\|\\| d'` |\n```stp,guru\ne\n```\n";
        let script = |line, text: &str, guru| Script { line, text: text.to_string(), guru };
        let expected = [
            script(1, "probe a { x }\n", false),
            script(8, "e\n", true),
            script(5, "probe b\n", true),
            script(7, "c || d\n", false),
        ];
        assert_eq!(scripts(page), expected);
    }

    #[test]
    fn links_in_code_do_not_count() {
        assert_eq!(
            links("[a](b.md) `[c](d.md)`\n```\n[e](f.md)\n```\n    [g](h.md)\n![i](j.svg)\n"),
            ["b.md", "j.svg"]
        );
        assert_eq!(anchors("# A title: `x`\n## With - dash\n"), ["a-title-x", "with---dash"]);
    }
}
