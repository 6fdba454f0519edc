// SPDX-License-Identifier: GPL-2.0-or-later

//! Finds the probes of a program: their points, filters and bodies.

use std::collections::BTreeMap;
use std::ops::Range;

use spile_source::{FileId, Span};

use super::ast::Point;
use super::error::Problem;
use super::lexer::{Lexer, is_of_name};

/// A probe whose filter and body are not parsed yet.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its probe points.
    pub points: Vec<Point>,
    /// Between its slashes.
    pub filter: Option<Range<usize>>,
    /// With its braces.
    pub body: Range<usize>,
}

/// Probe types whose second part is a path.
const WITH_PATH: [&str; 6] = ["uprobe", "u", "uretprobe", "ur", "usdt", "U"];

/// A program in parts.
pub struct Program {
    /// In order.
    pub items: Vec<Item>,
    /// `#define NAME NUMBER`
    pub constants: BTreeMap<String, String>,
}

/// The parts of the program. Declarations of C types are skipped: scripts take types from debug information.
pub fn split(file: FileId, program: &str) -> Result<Program, Problem> {
    let mut splitter = Splitter(Lexer { file, text: program, at: 0 }, BTreeMap::new());
    let mut items = Vec::new();
    splitter.skip_declarations()?;
    while !splitter.0.rest().is_empty() {
        items.push(splitter.item()?);
        splitter.skip_declarations()?;
    }
    match items.is_empty() {
        true => Err(splitter.0.syntax("a probe is missing: kprobe:vfs_read { @[comm] = count(); }", 0)),
        false => Ok(Program { items, constants: splitter.1 }),
    }
}

/// With the constants so far.
struct Splitter<'a>(Lexer<'a>, BTreeMap<String, String>);

impl Splitter<'_> {
    /// Skips blanks, `#` lines, declarations of types and `config` blocks.
    fn skip_declarations(&mut self) -> Result<(), Problem> {
        loop {
            self.0.skip_blanks()?;
            let start = self.0.at;
            let first =
                self.0.rest().get(..self.0.rest().find(|letter| !is_of_name(letter)).unwrap_or(0)).unwrap_or_default();
            match first {
                _ if self.0.rest().starts_with('#') => {
                    let line = self.0.take_while(|letter| letter != '\n');
                    self.1.extend(constant(line));
                }
                "struct" | "union" | "enum" | "config" | "typedef" => {
                    self.0.take_while(|letter| !matches!(letter, '{' | ';'));
                    if self.0.rest().starts_with('{') {
                        self.block(start)?;
                    }
                    // Names and attributes of what is declared; without a semicolon they are of the next probe.
                    let end = self.0.at;
                    let is_of_declaration = |letter| is_of_name(letter) || "*()[],".contains(letter);
                    self.0.take_while(|letter: char| is_of_declaration(letter) || letter.is_whitespace());
                    self.0.at = if self.0.rest().starts_with(';') { self.0.at + 1 } else { end };
                }
                "fn" | "macro" | "import" | "map" | "subprog" => {
                    self.0.at += first.len();
                    let span = Span::new(self.0.file, start, self.0.at);
                    let instead = "write the script by hand: function name(x) { ... } declares a function".to_string();
                    return Err(Problem::NoCounterpart { what: format!("`{first}`"), span, instead });
                }
                _ => return Ok(()),
            }
        }
    }

    /// Skips a block in braces that begins here; `start`: the beginning of the item that it belongs to.
    fn block(&mut self, start: usize) -> Result<Range<usize>, Problem> {
        let begin = self.0.at;
        let mut depth = 0_usize;
        loop {
            self.0.skip_blanks()?;
            match self.0.rest().chars().next() {
                None => return Err(self.0.syntax("this is not closed: a `}` is missing", start)),
                Some('"') => {
                    self.0.string()?;
                    continue;
                }
                Some('{') => depth += 1,
                Some('}') => depth = depth.saturating_sub(1),
                Some(letter) => {
                    self.0.at += letter.len_utf8();
                    continue;
                }
            }
            self.0.at += 1;
            if depth == 0 {
                return Ok(begin..self.0.at);
            }
        }
    }

    fn item(&mut self) -> Result<Item, Problem> {
        let start = self.0.at;
        let mut points = vec![self.point()?];
        self.0.skip_blanks()?;
        while self.0.rest().starts_with(',') {
            self.0.at += 1;
            self.0.skip_blanks()?;
            points.push(self.point()?);
            self.0.skip_blanks()?;
        }
        let filter = self.0.rest().starts_with('/').then(|| self.filter()).transpose()?;
        self.0.skip_blanks()?;
        if !self.0.rest().starts_with('{') {
            self.0.at += self.0.rest().chars().next().map_or(0, char::len_utf8);
            return Err(self.0.syntax("a `{` is missing after the probe points", start));
        }
        let body = self.block(start)?;
        Ok(Item { points, filter, body })
    }

    /// A point ends at a blank, a comma or a brace; and at a slash if it has no path. Parts in quotes may contain all of them.
    fn point(&mut self) -> Result<Point, Problem> {
        let start = self.0.at;
        let kind = self.0.take_while(is_of_name);
        let slash = WITH_PATH.contains(&kind);
        let ends = |letter: char| letter.is_whitespace() || matches!(letter, ',' | '{') || letter == '/' && !slash;
        loop {
            self.0.take_while(|letter| letter != '"' && !ends(letter));
            if !self.0.rest().starts_with('"') {
                break;
            }
            self.0.string()?;
        }
        if self.0.at == start {
            return Err(self.0.syntax("a probe point is expected here: kprobe:vfs_read", start));
        }
        let text = self.0.text.get(start..self.0.at).unwrap_or_default().replace('"', "");
        Ok(Point { text, span: Span::new(self.0.file, start, self.0.at) })
    }

    /// A filter ends at the first slash before a brace.
    fn filter(&mut self) -> Result<Range<usize>, Problem> {
        let start = self.0.at;
        self.0.at += 1;
        loop {
            self.0.take_while(|letter| !matches!(letter, '/' | '"'));
            let end = self.0.at;
            match self.0.rest().chars().next() {
                Some('"') => {
                    self.0.string()?;
                }
                Some(_) => {
                    self.0.at += 1;
                    let after = self.0.at;
                    self.0.skip_blanks()?;
                    if self.0.rest().starts_with('{') {
                        return Ok(start + 1..end);
                    }
                    self.0.at = after;
                }
                None => return Err(self.0.syntax("this filter is not closed: a `/` is missing before the `{`", start)),
            }
        }
    }
}

/// The name and number of `#define NAME NUMBER`.
fn constant(line: &str) -> Option<(String, String)> {
    let mut words = line.strip_prefix('#')?.trim_start().strip_prefix("define")?.split_whitespace();
    let (name, number) = (words.next()?, words.next()?);
    let number = number.trim_matches(['(', ')']);
    let is_number = number
        .strip_prefix("0x")
        .map_or_else(|| number.parse::<u64>().is_ok(), |digits| u64::from_str_radix(digits, 16).is_ok());
    (is_number && words.next().is_none()).then(|| (name.to_string(), number.to_string()))
}
