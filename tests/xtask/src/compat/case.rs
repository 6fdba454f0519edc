// SPDX-License-Identifier: GPL-2.0-or-later

//! The cases of a suite.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Directories of scripts, the pass to stop after, and whether their scripts are valid.
const GROUPS: [(&str, u8, bool); 8] = [
    ("parseok", 1, true),
    ("parseko", 1, false),
    ("semok", 2, true),
    ("semko", 2, false),
    ("transok", 3, true),
    ("transko", 3, false),
    ("buildok", 4, true),
    ("buildko", 4, false),
];
const EXAMPLES: &str = "systemtap.examples";
/// Nested directories of examples.
const DEEPEST: usize = 6;

/// One case of a suite.
#[derive(Debug)]
pub struct Case {
    /// Its file, relative to the suite's directory.
    pub name: String,
    /// The directory of the file and of the files that it needs.
    pub directory: PathBuf,
    /// How it is tried.
    pub what: Trial,
}

/// How a case is tried.
#[derive(Debug)]
pub enum Trial {
    /// Arguments of the compiler.
    Script { words: Vec<String>, good: bool },
    /// Shell commands: if all of `support` succeed, all of `checks` are run.
    Commands { support: Vec<String>, checks: Vec<String> },
}

impl Case {
    /// The directory of its suite.
    pub fn group(&self) -> &str {
        self.name.split('/').next().unwrap_or(&self.name)
    }
}

/// All cases of a suite, by name within their group.
pub fn find(suite: &Path) -> Result<Vec<Case>> {
    let below = suite.join("testsuite");
    let top = if below.is_dir() { below } else { suite.to_path_buf() };
    let mut cases = Vec::new();
    for (group, pass, good) in GROUPS {
        let directory = top.join(group);
        for path in sorted(&directory).into_iter().filter(|path| has_extension(path, "stp") && path.is_file()) {
            let text = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
            let what = script(&file_name(&path), &String::from_utf8_lossy(&text), pass, good);
            cases.push(Case { name: format!("{group}/{}", file_name(&path)), directory: directory.clone(), what });
        }
    }
    examples(&top.join(EXAMPLES), EXAMPLES, DEEPEST, &mut cases)?;
    Ok(cases)
}

/// The options in the first line: `#! stap -p2 -g`, perhaps after `env`; a different program is run as is.
fn script(file: &str, text: &str, pass: u8, good: bool) -> Trial {
    let first = text.lines().next().and_then(|line| line.strip_prefix("#!")).unwrap_or_default();
    let words: Vec<String> = spile::cli::rc::split(first, &|_| String::new()).unwrap_or_default();
    let mut words =
        words.into_iter().skip_while(|word| word.ends_with("/env") || word == "env" || word == "-S").peekable();
    let program = words.next().unwrap_or_default();
    let path = format!("./{file}");
    if program.ends_with("sh") {
        return match good {
            true => Trial::Commands { support: Vec::new(), checks: vec![format!("{program} {path}")] },
            // A crash is still a failure.
            false => Trial::Commands {
                support: Vec::new(),
                checks: vec![format!("{program} {path}; s=$?; [ $s -lt 101 ] || exit $s; [ $s != 0 ]")],
            },
        };
    }
    let mut words: Vec<String> = if program.rsplit('/').next() == Some("stap") { words.collect() } else { Vec::new() };
    // The last one counts: a script without a pass, or with pass 5, stops at its group's.
    let stops = words.iter().any(|word| stops_early(word))
        || words.windows(2).any(|two| stops_early(&two.concat()) && two[0].ends_with('p'));
    if !stops {
        words.push(format!("-p{pass}"));
    }
    words.push(path);
    Trial::Script { words, good }
}

/// `-p2`, alone or after other letters: `-gp2`.
fn stops_early(word: &str) -> bool {
    let parts = word.strip_prefix('-').and_then(|letters| letters.split_once('p'));
    parts.is_some_and(|(before, pass)| {
        before.chars().all(|letter| "gkvuwtW".contains(letter)) && matches!(pass, "1" | "2" | "3" | "4")
    })
}

fn examples(directory: &Path, name: &str, depth: usize, cases: &mut Vec<Case>) -> Result<()> {
    for path in sorted(directory) {
        let name = format!("{name}/{}", file_name(&path));
        if path.is_dir() && !path.is_symlink() && depth > 0 {
            examples(&path, &name, depth - 1, cases)?;
        } else if has_extension(&path, "meta") && path.is_file() {
            let text = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
            let text = String::from_utf8_lossy(&text);
            let lines = |key: &str| -> Vec<String> {
                let all = text.lines().filter_map(|line| line.split_once(':')).filter(|(found, _)| found.trim() == key);
                all.map(|(_, line)| line.trim().to_string()).collect()
            };
            let (support, checks) = (lines("test_support"), lines("test_check"));
            if !checks.is_empty() {
                cases.push(Case {
                    name,
                    directory: directory.to_path_buf(),
                    what: Trial::Commands { support, checks },
                });
            }
        }
    }
    Ok(())
}

fn sorted(directory: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_has_the_options() {
        let words = |text: &str| match script("x.stp", text, 2, true) {
            Trial::Script { words, .. } => words.join(" "),
            Trial::Commands { checks, .. } => checks.join(";"),
        };
        assert_eq!(words("#! stap -p4 -g -DX='a b'\n"), "-p4 -g -DX=a b ./x.stp");
        assert_eq!(words("#!/usr/bin/env stap -gp3\n"), "-gp3 ./x.stp");
        assert_eq!(words("#! stap -vp 4\n"), "-vp 4 ./x.stp");
        assert_eq!(words("#! stap -Dxp1\n"), "-Dxp1 -p2 ./x.stp");
        assert_eq!(words("#! stap -g\n"), "-g -p2 ./x.stp");
        assert_eq!(words("#! stap -p5\n"), "-p5 -p2 ./x.stp");
        assert_eq!(words("#! stap --skip-badvars\n"), "--skip-badvars -p2 ./x.stp");
        assert_eq!(words("probe begin {}\n"), "-p2 ./x.stp");
        assert_eq!(words("#! /bin/sh\nexec stap\n"), "/bin/sh ./x.stp");
    }
}
