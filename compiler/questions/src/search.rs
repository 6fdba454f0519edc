// SPDX-License-Identifier: GPL-2.0-or-later

//! Finds questions by words, and the nearest one to an unknown name.

use spile_source::diagnostic::suggest;

use crate::{Question, Questions};

/// The questions that contain all the words, in their names, wording or corresponding tools: as the beginnings of words,
/// or if there are none, anywhere (`snoop`). The case of letters does not count. Those of which one is a tool of that
/// very name come first.
pub fn matching<'a>(questions: &'a Questions, words: &[String]) -> Vec<&'a Question> {
    let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let having = |has: fn(&str, &str) -> bool| -> Vec<&Question> {
        let all = questions.all.iter();
        all.filter(|question| words.iter().all(|word| has(&texts(question), word))).collect()
    };
    let mut found = having(begins_a_word);
    if found.is_empty() {
        found = having(|text, word| text.contains(word));
    }
    let whole = words.join(" ");
    found.sort_by_key(|question| !question.like.iter().any(|tool| tool_name(tool) == whole));
    found
}

fn begins_a_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        before.is_none_or(|letter| !letter.is_alphanumeric())
    })
}

/// Where words are looked for.
fn texts(question: &Question) -> String {
    let Question { name, topic, question, prints, like, .. } = question;
    format!("{name}\n{topic}\n{question}\n{prints}\n{}", like.join("\n")).to_lowercase()
}

/// `opensnoop` of `bcc opensnoop`.
pub(crate) fn tool_name(tool: &str) -> &str {
    tool.split_once(' ').map_or(tool, |(_, name)| name)
}

/// `did you mean A, B?` for an unknown name; None if nothing is near.
pub fn hint(questions: &Questions, name: &str) -> Option<String> {
    let names = questions.all.iter().map(|question| question.name.as_str());
    let mut near = suggest::suggest(name, names);
    // The name of a tool leads to its question.
    let tools: Vec<(&str, &str)> = questions
        .all
        .iter()
        .flat_map(|question| question.like.iter().map(|tool| (tool_name(tool), question.name.as_str())))
        .collect();
    let near_tools = suggest::suggest(name, tools.iter().map(|(tool, _)| *tool));
    for (tool, question) in &tools {
        if (near_tools.contains(tool) || *tool == name) && !near.contains(question) {
            near.push(question);
        }
    }
    near.truncate(5);
    (!near.is_empty()).then(|| format!("did you mean {}?", near.join(", ")))
}
