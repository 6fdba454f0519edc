// SPDX-License-Identifier: GPL-2.0-or-later

//! Compares the results of a test with its header.

use std::sync::LazyLock;

use regex::Regex;

use super::header::{Header, Skipped};

/// The results of a test.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Standard output.
    pub stdout: String,
    /// Standard error output.
    pub stderr: String,
    /// The kernel log during the test; empty for tests on the host.
    pub dmesg: String,
    /// Exit status.
    pub exit: i32,
    /// What the test left: modules that its header does not name, directories of procfs probes, running loaders.
    pub left: Vec<String>,
    /// It was killed at its time limit.
    pub timed_out: bool,
}

/// Messages that a healthy kernel never logs.
static TROUBLE: LazyLock<Regex> = LazyLock::new(|| {
    let words = [
        "WARNING:",
        "BUG:",
        "Oops",
        "general protection",
        "Call Trace:",
        "INFO: rcu",
        r"rcu.*(stall|starved)",
        "INFO: task .* blocked",
        "soft lockup",
        "hard LOCKUP",
        "locking (dependency|detected)",
        "recursive locking",
        "inconsistent lock state",
        "suspicious RCU",
        "scheduling while atomic",
        "sleeping function called",
        "list_(add|del) corruption",
        "refcount_t:",
        "unreferenced object",
        "KASAN",
        "possible .* (deadlock|recursion)",
        "double fault",
        "stack segment",
        "Kernel panic",
        "unable to handle",
    ];
    // SANITY: a fixed text that the tests below compile.
    Regex::new(&words.join("|")).expect("a regular expression")
});

/// What KCSAN says before the names of the functions, those of modules with `[MODULE]`.
pub const DATA_RACE: &str = "BUG: KCSAN: ";

/// Whether a line of a kernel log reports a data race of the kernel's own code, which is no concern of a script.
pub fn is_race_of_kernel(line: &str) -> bool {
    line.split_once(DATA_RACE).is_some_and(|(_, functions)| !functions.contains('['))
}

/// The first line of a kernel log that reports a fault.
pub fn find_fault(log: &str) -> Option<&str> {
    log.lines().find(|line| TROUBLE.is_match(line) && !is_race_of_kernel(line))
}

/// All mismatches, a line or more each; empty: passed.
pub fn judge(header: &Header, observed: &Observed) -> Vec<String> {
    let mut faults = Vec::new();
    if observed.timed_out {
        faults.push(format!("did not end within {} s", header.limit));
    } else if observed.exit != header.exit {
        faults.push(format!("exit status {}, expected {}", observed.exit, header.exit));
    }
    for (what, text, patterns) in [
        ("stdout", &observed.stdout, &header.stdout),
        ("stderr", &observed.stderr, &header.stderr),
        ("dmesg", &observed.dmesg, &header.dmesg),
    ] {
        if let Some(pattern) = first_missing(text, patterns) {
            faults.push(format!("{what} has no line (after the ones before it) that matches: {pattern}"));
        }
        let lines = text.lines().filter(|line| header.absent.iter().any(|pattern| pattern.is_match(line)));
        faults.extend(lines.map(|line| format!("{what} has a line that must not be: {line}")));
    }
    if let Some(lines) = &header.prints {
        let whole: String = lines.iter().map(|line| format!("{line}\n")).collect();
        if whole != observed.stdout {
            faults.push(format!("stdout is not exactly:\n{whole}"));
        }
    }
    faults.extend(
        observed.dmesg.lines().filter(|line| TROUBLE.is_match(line)).take(5).map(|line| format!("kernel log: {line}")),
    );
    faults.extend(observed.left.iter().map(|what| format!("left behind: {what}")));
    if let Some(code) = &header.fails
        && !observed.stderr.contains(&format!("[{code}]"))
    {
        faults.push(format!("stderr has no error [{code}]"));
    }
    if let Some(Skipped::Number(skipped)) = header.skipped {
        let counted = skipped_probes(&observed.stderr);
        if counted != skipped {
            faults.push(format!("{counted} skipped probes, expected {skipped}"));
        }
    }
    let warned = observed.stderr.lines().find(|line| is_warning(line) && !line.contains(SLOW_KPROBES));
    if let (Some(line), true) =
        (warned, header.stderr.is_empty() && matches!(header.skipped, None | Some(Skipped::Number(0))))
    {
        faults.push(format!("stderr: {line}"));
    }
    faults
}

/// Of a warning that arming will take long, which depends on the machine (runtime-c/arming.c).
const SLOW_KPROBES: &str = "are not served by ftrace and become kprobes one by one";

fn is_warning(line: &str) -> bool {
    line.starts_with("WARNING:") || line.starts_with("ERROR:")
}

/// The first pattern without a match after the matches of the patterns before it.
fn first_missing<'a>(text: &str, patterns: &'a [Regex]) -> Option<&'a Regex> {
    let mut lines = text.lines();
    patterns.iter().find(|pattern| !lines.any(|line| pattern.is_match(line)))
}

/// From the last "WARNING: Number of errors: 0, skipped probes: 3".
fn skipped_probes(stderr: &str) -> u64 {
    let found = stderr.lines().rev().find_map(|line| line.split_once("skipped probes: "));
    let digits = found.map(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::header::parse;
    use super::*;

    fn faults(header: &str, observed: Observed) -> Vec<String> {
        judge(&parse(header).expect("a header"), &observed)
    }

    fn printed(stdout: &str) -> Observed {
        Observed { stdout: stdout.to_string(), ..Observed::default() }
    }

    #[test]
    fn lines_have_an_order() {
        let header = "# stdout: ^a\n# stdout: ^b\n";
        assert!(faults(header, printed("x\na1\ny\nb1\n")).is_empty());
        assert_eq!(faults(header, printed("b1\na1\n")).len(), 1);
        assert_eq!(faults("# stdout: a\n# stdout: a\n", printed("a\n")).len(), 1);
    }

    #[test]
    fn whole_output() {
        assert!(faults("# prints: a\n# prints: b\n", printed("a\nb\n")).is_empty());
        assert_eq!(faults("# prints: a\n", printed("a\nb\n")).len(), 1);
    }

    #[test]
    fn a_kernel_in_trouble_fails_any_test() {
        let dmesg = "[    1.0] WARNING: CPU: 0 PID: 1 at kernel/kprobes.c:1\n".to_string();
        assert_eq!(faults("", Observed { dmesg, ..Observed::default() }).len(), 1);
    }

    #[test]
    fn modules_left_and_unexpected_warnings_are_faults() {
        let left = vec!["t1".to_string()];
        let stderr = "WARNING: Number of errors: 0, skipped probes: 3\n".to_string();
        assert_eq!(faults("", Observed { left, stderr: stderr.clone(), ..Observed::default() }).len(), 2);
        assert!(faults("# skipped: 3\n", Observed { stderr: stderr.clone(), ..Observed::default() }).is_empty());
        assert!(!faults("# skipped: 0\n", Observed { stderr: stderr.clone(), ..Observed::default() }).is_empty());
        assert!(faults("# skipped: any\n", Observed { stderr, ..Observed::default() }).is_empty());
        assert!(faults("# skipped: any\n", Observed::default()).is_empty());
    }

    #[test]
    fn slow_arming_is_not_a_fault() {
        let stderr = format!("WARNING: 2900 of 3224 probes {SLOW_KPROBES}: about 15 s for all\n");
        assert!(faults("", Observed { stderr, ..Observed::default() }).is_empty());
        let arming = std::fs::read_to_string(crate::root().join("runtime-c/pace.c")).expect("the file");
        assert!(arming.contains(SLOW_KPROBES));
    }

    #[test]
    fn the_right_error_and_status() {
        let stderr = "error[E0101]: no such thing\n".to_string();
        let observed = Observed { stderr, exit: 1, ..Observed::default() };
        assert!(faults("# fails: E0101\n", observed.clone()).is_empty());
        assert_eq!(faults("# fails: E0102\n", observed.clone()).len(), 1);
        assert_eq!(faults("# fails: E0101\n", Observed { exit: 0, ..observed }).len(), 1);
    }
}
