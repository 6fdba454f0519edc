// SPDX-License-Identifier: GPL-2.0-or-later

use std::ffi::{OsStr, OsString};

use spile_source::diagnostic::suggest;

use crate::text::{self, is_needed, spelling};
use crate::{Question, QuestionOption, Questions, Target, search};

/// What a command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    /// To print this.
    Text(String),
    /// To execute this command line, without the program's name.
    Run(Vec<OsString>),
}

/// The options of spile.
pub trait OptionsOfSpile {
    /// Whether an option, `-x` or `--example`, takes the next word as its value; None if there is no such option.
    fn takes_value(&self, option: &str) -> Option<bool>;
    /// All long ones, with their dashes.
    fn names(&self) -> Vec<String>;
}

/// Reads the words after `spile ask`. The error says what is wrong and what is accepted.
pub fn read(words: &[OsString], spile: &dyn OptionsOfSpile) -> Result<Action, String> {
    let questions = Questions::read()?;
    let shown: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let Some(first) = shown.first().filter(|word| !is_help(word)) else {
        return Ok(Action::Text(text::list(&questions.all)));
    };
    if first.starts_with('-') {
        return Err("ask: the question comes first: spile ask NAME OPTIONS; spile ask lists the names".into());
    }
    let rest = words.get(1..).unwrap_or_default();
    match questions.named(first) {
        Some(question) => Reading { question, spile }.read(rest),
        None if shown.iter().any(|word| word.starts_with('-')) => Err(unknown(&questions, first)),
        None => match search::matching(&questions, &shown) {
            found if found.is_empty() => Err(unknown(&questions, &shown.join(" "))),
            found => Ok(Action::Text(text::list(found))),
        },
    }
}

fn is_help(word: &str) -> bool {
    word == "-h" || word == "--help"
}

fn unknown(questions: &Questions, name: &str) -> String {
    let hint = search::hint(questions, name).unwrap_or_else(|| "spile ask lists all".into());
    format!("ask {name}: no question has this name or these words: {hint}")
}

/// One question's command line.
struct Reading<'a> {
    question: &'a Question,
    spile: &'a dyn OptionsOfSpile,
}

impl Reading<'_> {
    fn read(&self, words: &[OsString]) -> Result<Action, String> {
        let mut line = Line::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let shown = word.to_string_lossy();
            match shown.strip_prefix("--") {
                Some("help") => return Ok(Action::Text(text::help(self.question))),
                Some("print") => return Ok(Action::Text(self.question.text().to_string())),
                Some("") => return Err(self.stray(words.next().unwrap_or(word))),
                Some(name) => self.long(word, name, &mut words, &mut line)?,
                None if shown == "-h" => return Ok(Action::Text(text::help(self.question))),
                None if shown.starts_with('-') && shown.len() > 1 => self.short(word, &shown, &mut words, &mut line)?,
                None => return Err(self.stray(word)),
            }
        }
        self.check_target(&line)?;
        let mut whole: Vec<OsString> = self.question.with.iter().map(OsString::from).collect();
        whole.append(&mut line.passed);
        let arguments = self.settings(&line.values, &mut whole)?;
        whole.extend(["-e".into(), self.question.text().into()]);
        if !arguments.is_empty() {
            whole.push("--".into());
            whole.extend(arguments.into_iter().map(OsString::from));
        }
        Ok(Action::Run(whole))
    }

    /// `--NAME`, `--NAME=VALUE` or `--NAME VALUE`: the question's own, or spile's.
    fn long<'w>(
        &self,
        word: &OsStr,
        text: &str,
        words: &mut impl Iterator<Item = &'w OsString>,
        line: &mut Line,
    ) -> Result<(), String> {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value.to_string())));
        if let Some(option) = self.question.option(name) {
            let mut given = value;
            if given.is_none() && option.kind.placeholder() != "" {
                given = words.next().map(|word| word.to_string_lossy().into_owned());
            }
            line.values.push((option.name.clone(), self.converted(option, given)?));
            return Ok(());
        }
        let takes = self.spile.takes_value(&format!("--{name}")).ok_or_else(|| self.unknown_option(name))?;
        line.passed.push(word.to_os_string());
        if takes && value.is_none() {
            line.passed.extend(words.next().cloned());
        }
        Ok(())
    }

    /// `-x`, `-vx PID`, `-xPID`: letters up to the first that takes a value.
    fn short<'w>(
        &self,
        word: &OsStr,
        text: &str,
        words: &mut impl Iterator<Item = &'w OsString>,
        line: &mut Line,
    ) -> Result<(), String> {
        let mut letters = text.chars().skip(1);
        line.passed.push(word.to_os_string());
        while let Some(letter) = letters.next() {
            let takes = self.spile.takes_value(&format!("-{letter}")).ok_or_else(|| self.unknown_option(text))?;
            match letter {
                'e' => return Err(format!("ask {}: -e: the script is that of the question", self.question.name)),
                'x' => line.has_process = true,
                'c' => line.has_command = true,
                _ => {}
            }
            if takes {
                if letters.next().is_none() {
                    line.passed.extend(words.next().cloned());
                }
                break;
            }
        }
        Ok(())
    }

    fn converted(&self, option: &QuestionOption, given: Option<String>) -> Result<String, String> {
        let wrong = |given: &str| {
            format!("ask {}: --{}{given}: it takes {}", self.question.name, option.name, option.kind.takes())
        };
        if option.kind.placeholder() == "" {
            return given.map_or_else(|| Ok("1".to_string()), |given| Err(wrong(&format!("={given}"))));
        }
        let given = given.ok_or_else(|| wrong(""))?;
        option.kind.convert(&given).ok_or_else(|| wrong(&format!(" {given}")))
    }

    /// Adds `-G` for the globals, and returns the script's arguments.
    fn settings(&self, values: &[(String, String)], words: &mut Vec<OsString>) -> Result<Vec<String>, String> {
        let mut arguments = Vec::new();
        for option in &self.question.options {
            // The last one counts, as of all options.
            let given = values.iter().rev().find(|(name, _)| *name == option.name).map(|(_, value)| value.clone());
            match (&option.global, given) {
                (Some(global), Some(value)) => words.extend(["-G".into(), format!("{global}={value}").into()]),
                (Some(_), None) => {}
                (None, Some(value)) => arguments.push(value),
                (None, None) if is_needed(option) => {
                    return Err(format!(
                        "ask {}: {} is missing: {}",
                        self.question.name,
                        spelling(option),
                        option.text
                    ));
                }
                (None, None) => arguments.push(self.converted(option, option.default.clone())?),
            }
        }
        Ok(arguments)
    }

    fn check_target(&self, line: &Line) -> Result<(), String> {
        let name = &self.question.name;
        match self.question.target {
            Target::System if line.has_process => {
                Err(format!("ask {name}: -x: it looks at the whole system, not at one process"))
            }
            Target::Needed if !line.has_process && !line.has_command => {
                Err(format!("ask {name}: it looks at one process: give -x PID, or -c COMMAND"))
            }
            _ => Ok(()),
        }
    }

    fn takes(&self) -> String {
        match self.question.options.as_slice() {
            [] => "it has no options but those of spile".into(),
            options => format!("it takes {}", options.iter().map(spelling).collect::<Vec<_>>().join(", ")),
        }
    }

    fn stray(&self, word: &OsStr) -> String {
        format!("ask {}: `{}` is no option: {}", self.question.name, word.to_string_lossy(), self.takes())
    }

    fn unknown_option(&self, given: &str) -> String {
        let given = given.trim_start_matches('-');
        let dashes = if given.chars().count() > 1 { "--" } else { "-" };
        let own = self.question.options.iter().map(|option| format!("--{}", option.name));
        let known: Vec<String> = own.chain(self.spile.names()).collect();
        let near = suggest::suggest(&format!("--{given}"), known.iter().map(String::as_str));
        let hint = match near.first() {
            Some(near) if given.len() > 1 => format!("did you mean {near}? "),
            _ => String::new(),
        };
        format!(
            "ask {}: there is no option {dashes}{given}: {hint}{}; spile ask {} --help",
            self.question.name,
            self.takes(),
            self.question.name
        )
    }
}

/// What was found on the command line.
#[derive(Default)]
struct Line {
    /// Options of spile, with their values.
    passed: Vec<OsString>,
    /// Options of the question, converted.
    values: Vec<(String, String)>,
    has_process: bool,
    has_command: bool,
}
