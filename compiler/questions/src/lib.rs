// SPDX-License-Identifier: GPL-2.0-or-later

//! `spile ask`: the scripts of examples/ as questions with checked options.
//!
//! examples/questions.toml describes them; it and the scripts are part of the program. [`line::read`] turns a command line
//! into text to print, or into the words of an ordinary command line that runs the script.

/// The command line of a question.
pub mod line;
/// Which questions are meant by words.
pub mod search;
/// What is printed: the list, the help of a question, tables for the documentation.
pub mod text;
/// Values of options.
pub mod value;

#[cfg(test)]
mod tests;

use include_dir::{Dir, include_dir};
use serde::Deserialize;

use value::Kind;

static EXAMPLES: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../examples");

/// All questions, in the order of examples/questions.toml: by topic.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Questions {
    /// One for each script.
    #[serde(rename = "question")]
    pub all: Vec<Question>,
}

/// A script with its documentation for users.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Its name behind `spile ask`: the script's, with `-` for `_`.
    pub name: String,
    /// The script's path below examples/.
    pub script: String,
    /// Its heading.
    pub topic: String,
    /// The question, with its question mark.
    pub question: String,
    /// What it prints, in a few words.
    pub prints: String,
    /// Where more is written about it: a path below examples/.
    pub page: Option<String>,
    /// Its own options.
    #[serde(default)]
    pub options: Vec<QuestionOption>,
    /// Options of spile that the script needs.
    #[serde(default)]
    pub with: Vec<String>,
    /// What `-x` and `-c` are for it.
    #[serde(default)]
    pub target: Target,
    /// Tools that answer the same, as `bcc opensnoop`.
    #[serde(default)]
    pub like: Vec<String>,
    /// An example of its output.
    pub output: String,
    /// Which columns to look at, and what to ask then.
    pub next: String,
}

/// What `-x PID` and `-c COMMAND` mean to a script.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// It looks at the whole system; `-c` only says how long it runs.
    #[default]
    System,
    /// It looks at one process, if one is given.
    Process,
    /// It needs one.
    Needed,
}

/// An option of a question.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionOption {
    /// Without the dashes.
    pub name: String,
    /// What it takes.
    pub kind: Kind,
    /// What it is for.
    pub text: String,
    /// The global that it sets; otherwise it is an argument of the script.
    pub global: Option<String>,
    /// The value without the option, as a user would write it. None: an argument has to be given; a global is as in the script.
    pub default: Option<String>,
}

impl Questions {
    /// Reads them. An error is a mistake in examples/questions.toml; the tests find those.
    pub fn read() -> Result<Questions, String> {
        let text = EXAMPLES.get_file("questions.toml").and_then(|file| file.contents_utf8()).unwrap_or_default();
        toml::from_str(text).map_err(|error| format!("examples/questions.toml: {error}"))
    }

    /// The question of that name; `_` is as good as `-`, and the script's file name is a name too.
    pub fn named(&self, name: &str) -> Option<&Question> {
        let name = name.strip_suffix(".stp").unwrap_or(name).replace('_', "-");
        self.all.iter().find(|question| question.name == name)
    }
}

impl Question {
    /// The script's text.
    pub fn text(&self) -> &'static str {
        EXAMPLES.get_file(&self.script).and_then(|file| file.contents_utf8()).unwrap_or_default()
    }

    /// The option of that name.
    pub fn option(&self, name: &str) -> Option<&QuestionOption> {
        self.options.iter().find(|option| option.name == name)
    }
}
