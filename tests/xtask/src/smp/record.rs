// SPDX-License-Identifier: GPL-2.0-or-later

//! docs/smp-runs.md: the last long run.

use super::shapes::{self, Shape};

/// Below the tree.
pub const PATH: &str = "docs/smp-runs.md";

/// The page. `calls`: of each script; `standstills`: guests that hung.
pub fn page(kernel: &str, commit: &str, date: &str, seconds: u64, calls: &[u64], standstills: usize) -> String {
    let row =
        |(shape, calls): (Shape, &u64)| format!("| `{}` | {} | {calls} |\n", shape.script.name, shape.script.tries);
    let rows: String = shapes::all().zip(calls).map(row).collect();
    format!(
        "# Hits on CPUs that run at the same time

Written by `cargo xtask smp --record`: the last run in which all totals were exact, nothing was skipped or lost and the kernel reported
nothing. Kernel {kernel} with two CPUs in a qemu that runs them in parallel, commit {commit}, {date}; {seconds} s of load for each
script, {} s together. The load calls one system call from a process on each CPU; each call is a hit, or two where
the return is probed as well. Guests that hung with all CPUs halted, after which the script ran again: {standstills}.

| script (`tests/xtask/src/smp/scripts.rs`, `shapes.rs`) | globals | calls |
|---|---|---|
{rows}",
        seconds * shapes::all().count() as u64
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_script_has_a_row() {
        let calls = vec![7; super::shapes::all().count()];
        let page = super::page("6.1", "abc", "2026-01-02", 10, &calls, 0);
        assert_eq!(page.matches(" | 7 |\n").count(), calls.len());
        assert!(page.contains(&format!("10 s of load for each\nscript, {} s together", 10 * calls.len())));
    }
}
