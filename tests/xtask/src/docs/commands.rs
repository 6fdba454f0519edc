// SPDX-License-Identifier: GPL-2.0-or-later

//! The commands of the pages: every line of a block fenced with ```` ```sh ````, and every indented line that begins with
//! one of the project's programs, is a single command that its program accepts.
//!
//! The unit tests parse them as the programs do, so a line in which two commands were joined is found, and an option, task,
//! question or file that does not exist. `tests/docs/scripts.host.sh` runs those that only list.

/// Programs whose command lines are parsed.
const OWN: [&str; 3] = ["spile", "spilerun", "cargo"];

/// The commands of a page, each with the number of its line.
pub fn commands(page: &str) -> Vec<(usize, String)> {
    let mut fence: Option<&str> = None;
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut is_continued = false;
    for (index, line) in page.lines().enumerate() {
        if let Some(language) = line.strip_prefix("```") {
            fence = if fence.is_some() { None } else { Some(language) };
            continue;
        }
        let is_indented = || {
            let own = line.strip_prefix("    ").filter(|rest| OWN.contains(&first_word(rest)));
            own.is_some_and(|rest| !is_synopsis(rest))
        };
        if !(fence == Some("sh") || (fence.is_none() && is_indented())) || line.trim().is_empty() {
            continue;
        }
        let text = line.trim();
        match found.last_mut().filter(|_| is_continued) {
            Some((_, begun)) => begun.push_str(text.trim_end_matches('\\')),
            None => found.push((index + 1, text.trim_end_matches('\\').to_string())),
        }
        is_continued = text.ends_with('\\');
    }
    found
}

/// Whether an indented line is no command: a synopsis with its brackets, or an arrow of the graph of crates.
fn is_synopsis(line: &str) -> bool {
    let (command, _) = split_comment(line);
    ["[", " | ", "...", "->"].iter().any(|mark| command.contains(mark))
}

/// The command without its comment, and the comment. A `#` within quotes, as in no command of the pages, would count too.
fn split_comment(line: &str) -> (&str, &str) {
    if line.starts_with('#') { ("", line) } else { line.split_once(" #").unwrap_or((line, "")) }
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::fs;
    use std::path::Path;

    use clap::Parser;
    use spile_questions::line::{self, OptionsOfSpile};

    use super::super::pages;
    use super::*;

    /// Other programs that pages use.
    const OTHERS: [&str; 4] = ["apt-get", "code", "find", "git"];
    /// Directories of the repository: words that begin with one are paths that exist.
    const DIRECTORIES: [&str; 6] = ["compiler/", "docs/", "examples/", "loader/", "runtime-c/", "tests/"];

    /// Why a line is not a single valid command.
    fn mistake(line: &str, root: &Path) -> Option<String> {
        let (command, comment) = split_comment(line);
        if comment.contains(" # ") {
            return Some("it has two comments".into());
        }
        // What a shell would put in.
        let words = match shell_words::split(&command.replace("$(uname -r)", "6.1.0-56-cloud-amd64")) {
            Ok(words) => words,
            Err(error) => return Some(error.to_string()),
        };
        // A redirection is the shell's.
        let words: Vec<String> = words.into_iter().filter(|word| !word.starts_with('>')).collect();
        let (program, arguments) = words.split_first()?;
        let is_program = |word: &&String| OWN.contains(&word.as_str()) || OTHERS.contains(&word.as_str());
        if !is_program(&program) {
            return Some(format!("the program {program} is not one of those that pages use"));
        }
        let is_value = |index: usize| index > 0 && matches!(arguments[index - 1].as_str(), "-p" | "--package");
        if let Some((_, other)) =
            arguments.iter().enumerate().find(|(index, word)| is_program(word) && !is_value(*index))
        {
            return Some(format!("a second command, {other}, begins in it"));
        }
        let is_missing = |word: &&String| {
            DIRECTORIES.iter().any(|directory| word.starts_with(directory)) && !root.join(word.as_str()).exists()
        };
        if let Some(path) = arguments.iter().find(|word| program != "cargo" && is_missing(word)) {
            return Some(format!("there is no {path}"));
        }
        match program.as_str() {
            "spile" => spile(&words),
            "spilerun" => spilerun(&words),
            "cargo" => cargo(arguments, root),
            _ => None,
        }
    }

    fn words_of_system(words: &[String]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    fn spile(words: &[String]) -> Option<String> {
        let words = words_of_system(words);
        match words.get(1).and_then(|word| word.to_str()) {
            // Its arguments are files that do not exist here.
            Some("package") => None,
            Some("replay") => spile_replay::mistake(words.into_iter().skip(2)),
            // With options of their own before a script or a recording.
            Some("report" | "top") => {
                let mut rest: Vec<OsString> =
                    words.into_iter().filter(|word| word != "report" && word != "top").collect();
                if let Some(own) = rest.iter().position(|word| word == "--compare") {
                    rest.drain(own..=own + 1);
                }
                spile::cli::options::Options::parse_words(rest).err().map(|error| error.to_string())
            }
            Some("ask") => line::read(&words[2..], &Known(spile::cli::options::command())).err(),
            _ => spile::cli::options::Options::parse_words(words).err().map(|error| error.to_string()),
        }
    }

    /// The definitions of spile's options, for `spile ask`.
    struct Known(clap::Command);

    impl OptionsOfSpile for Known {
        fn takes_value(&self, option: &str) -> Option<bool> {
            let name = option.trim_start_matches('-');
            let is_it = |argument: &&clap::Arg| {
                argument.get_long() == Some(name)
                    || argument.get_short().is_some_and(|short| *name == *short.to_string())
            };
            self.0.get_arguments().find(is_it).map(|argument| argument.get_action().takes_values())
        }

        fn names(&self) -> Vec<String> {
            self.0.get_arguments().filter_map(|argument| argument.get_long()).map(|name| format!("--{name}")).collect()
        }
    }

    fn spilerun(words: &[String]) -> Option<String> {
        let words = words_of_system(words);
        let error = match words.get(1).is_some_and(|word| word == "service") {
            true => spilerun::service::Service::parse(words.into_iter().skip(1)).err(),
            false => spilerun::options::Options::parse(words).err(),
        };
        error.map(|error| error.to_string())
    }

    fn cargo(arguments: &[String], root: &Path) -> Option<String> {
        let value = |option: &str| arguments.iter().skip_while(|word| *word != option).nth(1);
        match arguments.first().map(String::as_str) {
            Some("xtask") => crate::Arguments::try_parse_from(arguments).err().map(|error| error.to_string()),
            Some("install") => {
                let path = value("--path")?;
                (!root.join(path).join("Cargo.toml").exists()).then(|| format!("there is no crate in {path}"))
            }
            Some("build" | "check" | "fmt" | "test") => None,
            other => Some(format!("cargo {} is not one that pages use", other.unwrap_or_default())),
        }
    }

    #[test]
    fn commands_are_single_and_valid() {
        let root = crate::root();
        let mut mistakes = Vec::new();
        let mut count = 0;
        for page in pages(&root).expect("pages") {
            let text = fs::read_to_string(&page).expect("a page");
            for (number, line) in commands(&text) {
                count += 1;
                let shown = page.strip_prefix(&root).unwrap_or(&page).display();
                mistakes.extend(mistake(&line, &root).map(|why| format!("{shown}:{number}: {line}\n    {why}")));
            }
        }
        assert!(mistakes.is_empty(), "commands that cannot be run:\n{}", mistakes.join("\n"));
        assert!(count > 60, "only {count} commands were found");
    }

    #[test]
    fn commands_are_found() {
        let page = "```sh\nspile a.stp    # this\n\nspilerun b.ko \\\n  --stats\n```\n    cargo xtask test\n    probe begin\n    spilerun NAME [--stats]\n```stp\nspile\n```\n";
        let expected = [(2, "spile a.stp    # this"), (4, "spilerun b.ko --stats"), (7, "cargo xtask test")];
        assert_eq!(commands(page), expected.map(|(line, text)| (line, text.to_string())));
    }

    #[test]
    fn joined_and_outdated_commands_are_mistakes() {
        let root = crate::root();
        let why = |line: &str| mistake(line, &root).unwrap_or_default();
        assert_eq!(why("spile -l 'vfs.*'    # points"), "");
        assert_eq!(why("cargo build --release -p spile"), "");
        assert!(why("spile -l 'vfs.*' spile -L 'vfs.*'").contains("a second command"));
        assert!(
            why("cargo install --path compiler  # spile cargo install --path loader  # spilerun")
                .contains("two comments")
        );
        assert!(why("spile --no-such-option a.stp").contains("--no-such-option"));
        assert!(why("spile ask no-such-question").contains("no-such-question"));
        assert!(why("spilerun service forget x").contains("forget"));
        assert!(why("cargo xtask no-such-task").contains("no-such-task"));
        assert!(why("cargo install --path nowhere").contains("no crate"));
        assert!(why("spile examples/no_such_example.stp").contains("there is no examples/"));
        assert!(why("make all").contains("the program make"));
    }
}
