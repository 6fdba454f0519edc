// SPDX-License-Identifier: GPL-2.0-or-later

//! Which parts of the runtime a module needs that not every module has (runtime-c/optional.c).

use super::{Plan, Storage};
use crate::program::Runs;

impl Plan {
    fn counts_programs(&self) -> bool {
        self.probes.iter().any(|probe| probe.attachment.mechanism.kind == "SPILE_PROBE_PROGRAM_COUNTER")
    }

    /// The names of the parts. A script with C of its own, which may use any of them, needs all.
    pub fn parts(&self) -> Vec<&'static str> {
        let is_armed = |probe: &super::Probe| probe.attachment.mechanism.runs != Runs::Alone;
        let is_map = |global: &super::Global| matches!(global.storage, Storage::Map(_));
        let needed = [
            ("sites", self.probes.iter().any(is_armed)),
            ("symbols", self.defers_names || self.user_stacks),
            ("arrays", self.globals.iter().any(is_map)),
            ("followed", self.follows),
            ("programs", self.begins || !self.programs.is_empty()),
            ("user_files", self.user_stacks),
            ("program_counters", self.counts_programs()),
            ("exceptions", !self.unwinders.is_empty()),
            ("settings", self.settings().next().is_some()),
        ];
        let parts = needed.iter().filter(|(_, is_needed)| *is_needed || !self.embedded.is_empty());
        parts.map(|(part, _)| *part).collect()
    }
}
