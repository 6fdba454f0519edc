// SPDX-License-Identifier: GPL-2.0-or-later

//! Tests of what editors/ has for highlighting: the TextMate grammar of the VS Code extension colours every example as the
//! language's own words say, and no editor lacks a word. Vim's syntax and the tree-sitter grammar are tested by Neovim
//! (tests/language_server).

use std::fs;
use std::path::PathBuf;

use fancy_regex::Regex;
use serde_json::Value;
use spile_syntax::words::{WordKind, at_operators, keywords, words};

/// The examples, and the examples of the manual.
fn examples() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for directory in ["examples", "examples/lu_5642", "docs/reference/examples"] {
        for entry in fs::read_dir(crate::root().join(directory)).expect("a directory").flatten() {
            if entry.path().extension().is_some_and(|extension| extension == "stp") {
                found.push((entry.path(), fs::read_to_string(entry.path()).expect("a text")));
            }
        }
    }
    assert!(found.len() > 40);
    found
}

/// A rule of a TextMate grammar.
struct Rule {
    name: String,
    pattern: Pattern,
}

enum Pattern {
    Match {
        regex: Regex,
        captures: Vec<(usize, String)>,
    },
    Range {
        begin: Regex,
        begin_names: Vec<(usize, String)>,
        end: Regex,
        end_names: Vec<(usize, String)>,
        inner: Vec<Value>,
    },
}

/// An open rule: its name, its end, the end's names, and the rules inside.
type Open = (String, Regex, Vec<(usize, String)>, Vec<Rule>);

struct Grammar {
    repository: Value,
    top: Vec<Value>,
}

fn captures(rule: &Value, name: &str) -> Vec<(usize, String)> {
    let entries = rule[name].as_object().into_iter().flatten();
    entries
        .map(|(at, capture)| (at.parse().expect("a number"), capture["name"].as_str().unwrap_or("").into()))
        .collect()
}

fn regex(rule: &Value, name: &str) -> Option<Regex> {
    let text = rule[name].as_str()?;
    Some(Regex::new(text).unwrap_or_else(|error| panic!("{text}: {error}")))
}

impl Grammar {
    fn read() -> Grammar {
        let path = crate::root().join("editors/vscode/syntaxes/systemtap.tmLanguage.json");
        let grammar: Value = serde_json::from_str(&fs::read_to_string(path).expect("a file")).expect("JSON");
        let top = grammar["patterns"].as_array().expect("patterns").clone();
        Grammar { repository: grammar["repository"].clone(), top }
    }

    /// The rules of a list, with the included ones.
    fn rules(&self, patterns: &[Value]) -> Vec<Rule> {
        let mut rules = Vec::new();
        for rule in patterns {
            if let Some(include) = rule["include"].as_str() {
                let Some(name) = include.strip_prefix('#') else { continue };
                let included = &self.repository[name];
                assert!(included.is_object(), "{name} is not in the repository");
                rules.extend(self.rules(std::slice::from_ref(included)));
                continue;
            }
            let name = rule["name"].as_str().unwrap_or("").to_string();
            let inner = rule["patterns"].as_array().cloned().unwrap_or_default();
            if let Some(regex) = regex(rule, "match") {
                rules.push(Rule { name, pattern: Pattern::Match { regex, captures: captures(rule, "captures") } });
            } else if let (Some(begin), Some(end)) = (regex(rule, "begin"), regex(rule, "end")) {
                let (begin_names, end_names) = (captures(rule, "beginCaptures"), captures(rule, "endCaptures"));
                rules.push(Rule { name, pattern: Pattern::Range { begin, begin_names, end, end_names, inner } });
            } else {
                rules.extend(self.rules(&inner));
            }
        }
        rules
    }

    /// The scopes of every byte, joined by blanks.
    fn scopes(&self, text: &str) -> Vec<String> {
        let mut scopes = vec![String::new(); text.len()];
        let mut open: Vec<Open> = Vec::new();
        let top = self.rules(&self.top);
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let plain = line.trim_end_matches('\n');
            let mut at = 0;
            let mut stuck = 0;
            while at <= plain.len() {
                let outer: String = open.iter().map(|(name, ..)| format!("{name} ")).collect();
                let end = open.last().and_then(|(_, end, names, _)| {
                    let found = end.captures_from_pos(plain, at).expect("a match")?;
                    Some((
                        found.get(0)?.range(),
                        names.clone(),
                        found.iter().map(|group| group.map(|group| group.range())).collect::<Vec<_>>(),
                    ))
                });
                let rules = open.last().map_or(&top, |(.., rules)| rules);
                let mut best: Option<(std::ops::Range<usize>, usize)> = None;
                for (index, rule) in rules.iter().enumerate() {
                    let (Pattern::Match { regex, .. } | Pattern::Range { begin: regex, .. }) = &rule.pattern;
                    let found = regex.find_from_pos(plain, at).expect("a match");
                    if let Some(found) = found
                        && best.as_ref().is_none_or(|(best, _)| found.start() < best.start)
                    {
                        best = Some((found.range(), index));
                    }
                }
                let mut paint = |range: std::ops::Range<usize>, name: &str| {
                    for scope in &mut scopes[start + range.start..start + range.end] {
                        scope.push_str(name);
                        scope.push(' ');
                    }
                };
                let ends_first = end
                    .as_ref()
                    .is_some_and(|(range, ..)| best.as_ref().is_none_or(|(best, _)| range.start <= best.start));
                if ends_first && let Some((range, names, groups)) = end {
                    paint(at..range.end, &outer);
                    for (number, name) in names {
                        paint(groups[number].clone().unwrap_or(0..0), &name);
                    }
                    open.pop();
                    stuck = if range.end == at { stuck + 1 } else { 0 };
                    at = range.end;
                    assert!(stuck < 20, "no end at {}", &plain[at..]);
                    continue;
                }
                let Some((range, index)) = best else {
                    paint(at..plain.len(), &outer);
                    break;
                };
                paint(at..range.end, &outer);
                let rule = &rules[index];
                paint(range.clone(), &rule.name);
                match &rule.pattern {
                    Pattern::Match { regex, captures } => {
                        let found = regex.captures_from_pos(plain, at).expect("a match").expect("as before");
                        for (number, name) in captures {
                            paint(found.get(*number).map_or(0..0, |group| group.range()), name);
                        }
                        assert!(!range.is_empty(), "{} matches nothing", regex.as_str());
                    }
                    Pattern::Range { begin_names, end, end_names, inner, .. } => {
                        begin_names.iter().for_each(|(_, name)| paint(range.clone(), name));
                        let (end, names) = (end.clone(), end_names.clone());
                        let entry = (rule.name.clone(), end, names, self.rules(inner));
                        open.push(entry);
                    }
                }
                at = range.end;
            }
            start += line.len();
        }
        scopes
    }
}

#[test]
fn the_textmate_grammar_colours_every_example() {
    let grammar = Grammar::read();
    for (path, text) in examples() {
        let scopes = grammar.scopes(&text);
        for word in words(text.as_bytes()) {
            let scope = &scopes[word.range.start];
            let shown = &text[word.range.clone()];
            let wanted: &[&str] = match word.kind {
                WordKind::Comment => &["comment."],
                WordKind::String => &["string."],
                WordKind::Number => &["constant.numeric", "probe-point"],
                WordKind::Target => &["variable.language"],
                WordKind::Argument => &["variable.parameter"],
                WordKind::At => &["keyword.operator.word", "function.macro", "directive.define"],
                // Names of members and components may be spelt as keywords.
                WordKind::Keyword => &["keyword.", "storage.type", "variable.other.member", "probe-point"],
                WordKind::EmbeddedC => &["meta.embedded"],
                _ => continue,
            };
            let line = text[..word.range.start].matches('\n').count() + 1;
            assert!(
                wanted.iter().any(|wanted| scope.contains(wanted)),
                "{}:{line}: {shown} is {scope:?}, and not {wanted:?}",
                path.display()
            );
            if word.kind != WordKind::Comment && word.kind != WordKind::String {
                assert!(
                    !scope.contains("comment.") && !scope.contains("string."),
                    "{}:{line}: {shown}",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn no_editor_lacks_a_word() {
    let grammar = Grammar::read();
    let all: Vec<String> = keywords()
        .chain(spile_syntax::print_words())
        .map(str::to_string)
        .chain(at_operators().map(|word| format!("@{word}")))
        .collect();
    let read = |path: &str| fs::read_to_string(crate::root().join(path)).expect("a file");
    let (vim, emacs) = (read("editors/vim/syntax/systemtap.vim"), read("editors/emacs/systemtap-mode.el"));
    let bounded = |text: &str, word: &str| {
        let pattern = format!(r"(?<![\w]){}(?![\w])", word.trim_start_matches('@'));
        Regex::new(&pattern).expect("a regular expression").is_match(text).expect("a match")
    };
    for word in &all {
        let scopes = grammar.scopes(&format!("probe x {{ {word}(y) }}"));
        let scope = &scopes[10];
        let known = ["keyword.", "storage.type", "support.function"].iter().any(|known| scope.contains(known));
        assert!(known, "VS Code does not know {word}: {scope:?}");
        assert!(bounded(&vim, word), "vim does not know {word}");
        assert!(bounded(&emacs, word), "Emacs does not know {word}");
    }
}

/// Brackets of Emacs Lisp outside strings, comments and characters.
#[test]
fn the_emacs_mode_is_balanced() {
    let text = fs::read_to_string(crate::root().join("editors/emacs/systemtap-mode.el")).expect("a file");
    let (mut depth, mut in_string, mut in_comment) = (0i64, false, false);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\n' => in_comment = false,
            _ if in_comment => {}
            '\\' => drop(characters.next()),
            '"' => in_string = !in_string,
            _ if in_string => {}
            ';' => in_comment = true,
            // ?x is a character.
            '?' => {
                if characters.peek() == Some(&'\\') {
                    characters.next();
                }
                characters.next();
            }
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => {}
        }
        assert!(depth >= 0, "closed too often");
    }
    assert!(depth == 0 && !in_string, "not closed: {depth}");
}
