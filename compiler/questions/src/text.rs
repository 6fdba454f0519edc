// SPDX-License-Identifier: GPL-2.0-or-later

use std::collections::BTreeMap;

use crate::{Question, QuestionOption, Questions, Target};

const USE: &str =
    "\nspile ask NAME runs one, spile ask NAME --help shows its options, spile ask NAME --print prints its script.\n";

/// The questions by topic, a line each, and how to use them.
pub fn list<'a>(questions: impl IntoIterator<Item = &'a Question>) -> String {
    let questions: Vec<&Question> = questions.into_iter().collect();
    let width = questions.iter().map(|question| question.name.len()).max().unwrap_or(0);
    let mut topics: Vec<&str> = Vec::new();
    for question in &questions {
        if !topics.contains(&question.topic.as_str()) {
            topics.push(&question.topic);
        }
    }
    let mut text = String::new();
    for topic in topics {
        text.push_str(&format!("{}{topic}\n", if text.is_empty() { "" } else { "\n" }));
        for Question { name, question, prints, .. } in questions.iter().filter(|question| question.topic == topic) {
            text.push_str(&format!("  {name:width$}  {question} ({prints})\n"));
        }
    }
    text + USE
}

/// What `--help` prints.
pub fn help(question: &Question) -> String {
    let mut rows: Vec<(String, String)> = question.options.iter().map(option_row).collect();
    match question.target {
        Target::System => rows.push(("-c COMMAND".into(), "run as long as this command".into())),
        Target::Process => {
            rows.push(("-x PID".into(), "only this process".into()));
            rows.push(("-c COMMAND".into(), "only this command and its children".into()));
        }
        Target::Needed => {
            rows.push(("-x PID".into(), "this process; it or -c must be given".into()));
            rows.push(("-c COMMAND".into(), "this command and its children".into()));
        }
    }
    rows.push(("-T SECONDS".into(), "end after this time (otherwise with ^C)".into()));
    rows.push(("-o FILE".into(), "write to FILE".into()));
    rows.push(("--print".into(), "print the script, as a start for your own".into()));
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let rows: String = rows.iter().map(|(name, text)| format!("  {name:width$}  {text}\n")).collect();
    let Question { name, question: asked, prints, script, next, .. } = question;
    let needed: String = question
        .options
        .iter()
        .filter(|option| is_needed(option))
        .map(|option| format!(" {}", spelling(option)))
        .collect();
    let with = match question.with.is_empty() {
        true => String::new(),
        false => format!("\nIt is run with {}.\n", question.with.join(" ")),
    };
    let like = match question.like.is_empty() {
        true => String::new(),
        false => format!("\nIn other collections: {}\n", question.like.join(", ")),
    };
    format!(
        "{asked}\n\n    spile ask {name}{needed} [OPTIONS]\n\nPrints {prints}.\n\nOptions, and all those of spile (spile --help):\n{rows}{with}\nOutput, for example:\n\n{}\nThen:\n\n{}{like}\nScript: examples/{script}\n",
        indented(&question.output),
        indented(next)
    )
}

fn indented(text: &str) -> String {
    text.trim_end().lines().map(|line| format!("    {line}").trim_end().to_string() + "\n").collect()
}

/// An argument of the script without a default.
pub(crate) fn is_needed(option: &QuestionOption) -> bool {
    option.global.is_none() && option.default.is_none()
}

/// `--over TIME`
pub(crate) fn spelling(option: &QuestionOption) -> String {
    format!("--{} {}", option.name, option.kind.placeholder()).trim_end().to_string()
}

fn option_row(option: &QuestionOption) -> (String, String) {
    let default = match &option.default {
        Some(default) => format!(" (otherwise {default})"),
        None if is_needed(option) => " (must be given)".to_string(),
        None => String::new(),
    };
    (spelling(option), format!("{}{default}", option.text))
}

/// The table of examples/README.md.
pub fn table(questions: &Questions) -> String {
    let mut text = "| question | script | output |\n|---|---|---|\n".to_string();
    let mut topic = "";
    for Question { topic: under, question, script, prints, page, .. } in &questions.all {
        if topic != under {
            topic = under;
            text.push_str(&format!("| **{topic}** | | |\n"));
        }
        text.push_str(&format!("| {question} | [{script}]({}) | {prints} |\n", page.as_ref().unwrap_or(script)));
    }
    text
}

/// The table of docs/comparison.md: tools of other collections, and what to ask instead.
pub fn counterparts(questions: &Questions) -> String {
    let mut tools: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for question in &questions.all {
        for (collection, tool) in question.like.iter().filter_map(|tool| tool.split_once(' ')) {
            tools.entry(collection).or_default().entry(tool).or_default().push(&question.name);
        }
    }
    let mut text = "| tool | `spile ask` |\n|---|---|\n".to_string();
    for (collection, tools) in tools {
        text.push_str(&format!("| **{collection}** | |\n"));
        for (tool, names) in tools {
            text.push_str(&format!("| {tool} | {} |\n", names.join(", ")));
        }
    }
    text
}
