// SPDX-License-Identifier: GPL-2.0-or-later

//! Which globals the text of the commands of `system()` may depend on.
//!
//! In a user's session the loader runs no command that may depend on the value that the user has given to a global: root
//! has approved the script's text, not that value. The result may be too large, but never too small: within a run of a
//! probe everything written may depend on everything read, even through a condition.

use std::collections::BTreeSet;

use super::command_text::Text;
use super::uses::{Access, CodeSummary, Uses, both};
use super::{GlobalId, Program};

/// What a probe runs, as far as commands are concerned.
struct Run {
    uses: Uses,
    texts: Vec<Text>,
    stores_elsewhere: bool,
}

/// By global: whether a command's text may depend on its initial value. `functions` and `handlers`: their summaries;
/// `function_uses`: the result of [`super::uses::function_uses`].
pub fn reached(
    program: &Program,
    functions: &[CodeSummary],
    function_uses: &[Uses],
    handlers: &[CodeSummary],
) -> Vec<bool> {
    let runs: Vec<Run> = program
        .probes
        .iter()
        .zip(handlers)
        .map(|(probe, handler)| {
            let entry = CodeSummary::of_values(&probe.saved);
            let uses = both(&handler.with_calls(function_uses), &entry.with_calls(function_uses));
            let callees = handler.all_calls(functions).into_iter().chain(entry.all_calls(functions));
            let summaries = callees.map(|callee| &functions[callee.index()]).chain([handler, &entry]);
            let texts = summaries.flat_map(|summary| summary.commands.clone()).collect();
            Run { uses, texts, stores_elsewhere: handler.stores_elsewhere || entry.stores_elsewhere }
        })
        .collect();
    if runs.iter().all(|run| run.texts.is_empty()) {
        return vec![false; program.globals.len()];
    }
    // The script's embedded C, and memory that it writes, store values where this analysis does not see them.
    let stores_elsewhere = |run: &Run| run.stores_elsewhere;
    if !program.embedded.is_empty()
        || functions.iter().any(|summary| summary.stores_elsewhere)
        || runs.iter().any(stores_elsewhere)
    {
        return vec![true; program.globals.len()];
    }
    let mut found: BTreeSet<GlobalId> = BTreeSet::new();
    for run in &runs {
        for text in &run.texts {
            match text {
                Text::Of(globals) => found.extend(globals),
                Text::Anything => found.extend(run.uses.keys()),
            }
        }
    }
    // What is written to one of them may depend on everything that the same run uses.
    loop {
        let before = found.len();
        let writes =
            |run: &Run| run.uses.iter().any(|(global, access)| *access != Access::Read && found.contains(global));
        let more: Vec<GlobalId> =
            runs.iter().filter(|run| writes(run)).flat_map(|run| run.uses.keys().copied()).collect();
        found.extend(more);
        if found.len() == before {
            return (0..program.globals.len()).map(|index| found.contains(&GlobalId(index as u32))).collect();
        }
    }
}
