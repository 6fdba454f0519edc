// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask compat --suite DIR`: how many cases of a third-party suite a compiler passes, and the classes of its
//! failures. The suite is a checked-out copy, laid out as SystemTap's own; it is neither copied nor modified: each case
//! runs in a separate directory with links to the files beside it.
//!
//! Two kinds of cases: scripts in `parseok`, `parseko`, `semok`, `semko`, `transok`, `transko`, `buildok`, `buildko`,
//! whose directory says whether they should compile, and up to which pass; and the commands of `test_check` in the
//! `.meta` files below `systemtap.examples`. No case reaches pass 5: nothing is loaded.

mod case;
mod class;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use case::{Case, Trial};
use class::Class;

use crate::parallel;

/// The arguments of `cargo xtask compat`.
#[derive(clap::Args, Clone)]
pub struct Options {
    /// The suite: a directory that holds parseok, semko, systemtap.examples and the like, or has a testsuite that does
    #[arg(long, value_name = "DIR")]
    suite: PathBuf,
    /// The compiler to measure: a program, and options that it gets each time
    #[arg(long, value_name = "COMMAND", default_value = "spile")]
    command: String,
    /// Only cases whose name (semok/one.stp) contains this; may be given more than once
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Time limit of one case
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
    /// Name only failures of this class (parse error, accepted, ...); may be given more than once
    #[arg(long, value_name = "CLASS", value_parser = class::parse)]
    class: Vec<Class>,
    /// Name the cases that pass, too
    #[arg(long)]
    all: bool,
    /// Print an object with all cases instead of the report
    #[arg(long)]
    json: bool,
}

/// The outcome of a case.
#[derive(Debug, PartialEq)]
enum Verdict {
    Pass,
    /// A requirement is missing.
    Untested,
    /// And its first message.
    Fail(Class, String),
}

impl Verdict {
    fn name(&self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Untested => "untested",
            Verdict::Fail(..) => "fail",
        }
    }
}

/// Compiles the scripts of other projects, and reports which fail.
pub fn run(options: &Options) -> Result<ExitCode> {
    let (report, failed) = measure(options)?;
    print!("{report}");
    Ok(ExitCode::from(u8::from(failed > 0)))
}

/// The whole report as text or JSON, and the number of failed cases.
fn measure(options: &Options) -> Result<(String, usize)> {
    let words = spile::cli::rc::split(&options.command, &|name| std::env::var(name).unwrap_or_default());
    let words = words.map_err(|why| anyhow::anyhow!("--command: {why}"))?;
    let program = words.first().context("--command is empty")?;
    let suite = options.suite.canonicalize().with_context(|| format!("looking at {}", options.suite.display()))?;
    let mut cases = case::find(&suite)?;
    ensure!(
        !cases.is_empty(),
        "there are no cases in {}: no directory like semok with scripts, no systemtap.examples",
        suite.display()
    );
    cases.retain(|case| options.only.is_empty() || options.only.iter().any(|text| case.name.contains(text.as_str())));
    ensure!(!cases.is_empty(), "there is no case with {} in its name", options.only.join(" or "));
    // Each case's directory has links to this directory and its files.
    let place = tempfile::tempdir().context("making a temporary directory")?;
    let bin = place.path().join("bin");
    fs::create_dir(&bin)?;
    let wrapper = bin.join("stap");
    fs::write(&wrapper, wrapper_text(&find_program(program)?, &words))?;
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))?;
    let limit = Duration::from_secs(options.timeout);
    let results =
        parallel::map(cases.len(), |number| one(&cases[number], &place.path().join(number.to_string()), &bin, limit));
    let results = results.into_iter().collect::<Result<Vec<_>>>()?;
    let failed = results.iter().filter(|result| matches!(result, Verdict::Fail(..))).count();
    let report = if options.json { json(&cases, &results) } else { summary(&cases, &results, options) };
    Ok((report, failed))
}

/// Searches PATH like a shell; absolute, because cases run in other directories.
fn find_program(name: &str) -> Result<PathBuf> {
    which::which(name)
        .with_context(|| format!("there is no program {name}: give its path, as --command target/release/spile"))
}

/// Cases call it `stap`.
fn wrapper_text(program: &Path, words: &[String]) -> String {
    let program = program.display().to_string();
    let command = std::iter::once(&program).chain(words.iter().skip(1));
    format!("#!/bin/sh\nexec {} \"$@\"\n", shell_words::join(command))
}

/// Runs one case in the temporary directory `work`.
fn one(case: &Case, work: &Path, bin: &Path, limit: Duration) -> Result<Verdict> {
    fs::create_dir(work).with_context(|| format!("making {}", work.display()))?;
    for entry in fs::read_dir(&case.directory)?.flatten() {
        symlink(entry.path(), work.join(entry.file_name()))?;
    }
    let result = judged(case, work, bin, limit);
    fs::remove_dir_all(work).with_context(|| format!("removing {}", work.display()))?;
    result
}

fn judged(case: &Case, work: &Path, bin: &Path, limit: Duration) -> Result<Verdict> {
    match &case.what {
        Trial::Script { words, good } => {
            let mut command = Command::new(bin.join("stap"));
            command.args(words);
            let ran = ran(command, work, bin, limit)?;
            Ok(match (&ran.ended, good) {
                // An unknown option is not the script's fault.
                (Ended::Badly, false) if Class::of(&ran.output) == Class::Option => ran.failed(),
                (Ended::Well, true) | (Ended::Badly, false) => Verdict::Pass,
                (Ended::Well, false) => Verdict::Fail(Class::Accepted, String::new()),
                _ => ran.failed(),
            })
        }
        Trial::Commands { support, checks } => {
            let shell = |line: &str| {
                let mut command = Command::new("/bin/sh");
                command.arg("-c").arg(line);
                ran(command, work, bin, limit)
            };
            for line in support {
                if shell(line)?.ended != Ended::Well {
                    return Ok(Verdict::Untested);
                }
            }
            for line in checks {
                let ran = shell(line)?;
                if ran.ended != Ended::Well {
                    return Ok(ran.failed());
                }
            }
            Ok(Verdict::Pass)
        }
    }
}

#[derive(Debug, PartialEq)]
enum Ended {
    Well,
    /// With the exit status of a script error.
    Badly,
    Crashed,
    TooLate,
}

struct Finished {
    ended: Ended,
    /// All its output.
    output: String,
}

impl Finished {
    fn failed(&self) -> Verdict {
        let class = match self.ended {
            Ended::Crashed => Class::Crash,
            Ended::TooLate => Class::Timeout,
            _ => Class::of(&self.output),
        };
        Verdict::Fail(class, class::first_message(&self.output))
    }
}

/// Its output goes to a file, so that no pipe fills up.
fn ran(mut command: Command, work: &Path, bin: &Path, limit: Duration) -> Result<Finished> {
    let path = work.join(".output");
    let output = File::create(&path)?;
    let mut places = vec![bin.to_path_buf()];
    places.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    command.env("PATH", std::env::join_paths(places)?).env("LC_ALL", "C").env("SYSTEMTAP_TESTMODE", "1");
    command.current_dir(work).stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).process_group(0);
    let mut child = command.spawn().context("starting a case")?;
    let began = Instant::now();
    let ended = loop {
        if let Some(status) = child.try_wait()? {
            break match (status.code(), status.signal()) {
                (Some(0), _) => Ended::Well,
                // Of a panic; of a shell that cannot start a program, and of a signal.
                (Some(101 | 126..) | None, _) => Ended::Crashed,
                (Some(_), _) => Ended::Badly,
            };
        }
        if began.elapsed() > limit {
            // Kills its children too: it leads a process group.
            let group = nix::unistd::Pid::from_raw(-child.id().cast_signed());
            let _ = nix::sys::signal::kill(group, nix::sys::signal::Signal::SIGKILL);
            child.wait()?;
            break Ended::TooLate;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    Ok(Finished { ended, output: String::from_utf8_lossy(&fs::read(&path)?).into_owned() })
}

/// `{"pass": 1, "fail": 1, "untested": 0, "cases": [{"name": ..., "result": "fail", "class": ..., "message": ...}]}`
fn json(cases: &[Case], results: &[Verdict]) -> String {
    let count = |wanted: &str| results.iter().filter(|result| result.name() == wanted).count();
    let list: Vec<serde_json::Value> = cases
        .iter()
        .zip(results)
        .map(|(case, result)| match result {
            Verdict::Fail(class, message) => serde_json::json!({
                "name": case.name, "result": result.name(), "class": class.name(), "message": message,
            }),
            _ => serde_json::json!({ "name": case.name, "result": result.name() }),
        })
        .collect();
    let whole = serde_json::json!({
        "pass": count("pass"), "fail": count("fail"), "untested": count("untested"), "cases": list,
    });
    format!("{whole:#}\n")
}

/// A line for each failure, then two tables: by group, and by class.
fn summary(cases: &[Case], results: &[Verdict], options: &Options) -> String {
    let all = options.all;
    let mut text = String::new();
    let mut groups: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let mut classes: BTreeMap<Class, usize> = BTreeMap::new();
    for (case, result) in cases.iter().zip(results) {
        let counts = groups.entry(case.group()).or_default();
        match result {
            Verdict::Pass => counts[0] += 1,
            Verdict::Fail(class, _) => {
                counts[1] += 1;
                *classes.entry(*class).or_default() += 1;
            }
            Verdict::Untested => counts[2] += 1,
        }
        // Writing to a string does not fail.
        let _ = match result {
            Verdict::Fail(class, _) if !options.class.is_empty() && !options.class.contains(class) => Ok(()),
            Verdict::Fail(class, message) => writeln!(text, "fail      {}  [{}] {message}", case.name, class.name()),
            Verdict::Pass if all => writeln!(text, "pass      {}", case.name),
            Verdict::Untested if all => writeln!(text, "untested  {}", case.name),
            _ => Ok(()),
        };
    }
    let _ = writeln!(text, "\n{:<24} {:>6} {:>6} {:>9}", "group", "pass", "fail", "untested");
    let mut sum = [0; 3];
    for (group, counts) in &groups {
        let _ = writeln!(text, "{group:<24} {:>6} {:>6} {:>9}", counts[0], counts[1], counts[2]);
        sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    let judged = sum[0] + sum[1];
    let percent = if judged == 0 { 0.0 } else { 100.0 * sum[0] as f64 / judged as f64 };
    let _ =
        writeln!(text, "{:<24} {:>6} {:>6} {:>9}  ({percent:.1} % of {judged} pass)", "all", sum[0], sum[1], sum[2]);
    let user = classes.get(&Class::UserSpace).copied().unwrap_or_default();
    if user > 0 {
        let rest = judged - user;
        let percent = if rest == 0 { 0.0 } else { 100.0 * sum[0] as f64 / rest as f64 };
        let _ =
            writeln!(text, "{:<43} {rest:>6}  ({percent:.1} % of them pass)", "without those that probe user space");
    }
    if !classes.is_empty() {
        let _ = writeln!(text, "\n{:<24} {:>6}", "class of failure", "cases");
        let mut classes: Vec<(Class, usize)> = classes.into_iter().collect();
        classes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (class, count) in classes {
            let _ = writeln!(text, "{:<24} {count:>6}", class.name());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(top: &Path, name: &str, text: &str) {
        let path = top.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A one-line compiler: a script's text is its behaviour.
    const COMPILER: &str = r#"#!/bin/sh
case "$*" in *-l*) exit 1 ;; esac
for word; do file=$word; done
[ "$1" = --given ] || { echo "error[E0502]: no --given"; exit 1; }
case "$*" in *-p5*) touch "$RAN" ;; esac
touch made.ko
case $(cat "$file") in
*parse*) echo "error[E0033]: that does not fit"; exit 1 ;;
*user*) echo "error[E0201]: probe point mismatch"; echo "1 │ probe process(1) {}"; exit 1 ;;
*unresolved*) echo "semantic error: unresolved function foo: identifier"; exit 1 ;;
*option*) echo "error: unexpected argument '--foo' found"; exit 1 ;;
*badc*) echo "error[E0500]: x"; echo "Pass 4: compilation failed."; exit 1 ;;
*panic*) exit 101 ;;
*slow*) exec sleep 60 ;;
esac
"#;

    #[test]
    fn a_suite_is_measured_and_its_failures_are_classed() {
        let top = tempfile::tempdir().unwrap();
        let suite = top.path().join("suite");
        put(top.path(), "compiler", COMPILER);
        fs::set_permissions(top.path().join("compiler"), fs::Permissions::from_mode(0o755)).unwrap();
        for (name, text) in [
            ("parseok/good.stp", "#! stap -p1\n"),
            ("parseok/bad.stp", "#! /usr/bin/env stap -p1\n# parse\n"),
            ("parseko/wrong.stp", "#! stap -p1\n# parse\n"),
            ("parseko/taken.stp", "#! stap -p1\n"),
            ("semok/name.stp", "# unresolved\n"),
            ("semok/program.stp", "# user\n"),
            ("semko/crash.stp", "# panic\n"),
            ("semko/option.stp", "# option\n"),
            ("semko/shell.stp", "#! /bin/sh\nexec stap -p2 other.stp # panic\n"),
            ("semko/other.stp", "# panic\n"),
            ("buildok/c.stp", "#! stap -p4 -g\n# badc\n"),
            ("buildok/slow.stp", "# slow\n"),
            ("buildok/shell.stp", "#! /bin/sh\nexec stap -p4 \"$0\"\n"),
            ("transok/option.stp", "# option\n"),
            ("transok/runs.stp", "#! stap\n"),
            ("systemtap.examples/io/one.stp", "probe begin {}\n"),
            (
                "systemtap.examples/io/one.meta",
                "title: One\ntest_check: stap -p4 one.stp\ntest_installcheck: stap -p5 one.stp\n",
            ),
            ("systemtap.examples/io/two.stp", "# unresolved\n"),
            ("systemtap.examples/io/two.meta", "test_check: stap -p4 two.stp && true\n"),
            ("systemtap.examples/io/three.meta", "test_support: stap -l 'x'\ntest_check: stap -p4 two.stp\n"),
            ("notes/README", "no case"),
        ] {
            put(&suite, &format!("testsuite/{name}"), text);
        }
        let command = format!("{} --given", top.path().join("compiler").display());
        let options = Options {
            suite: suite.clone(),
            command,
            only: Vec::new(),
            timeout: 1,
            class: Vec::new(),
            all: true,
            json: false,
        };
        let (report, failed) = measure(&options).unwrap();
        for line in [
            "pass      parseok/good.stp",
            "fail      parseok/bad.stp  [parse error] error[E0033]: that does not fit",
            "pass      parseko/wrong.stp",
            "fail      parseko/taken.stp  [accepted] ",
            "fail      semok/name.stp  [unresolved name] semantic error: unresolved function foo: identifier",
            "fail      semok/program.stp  [user space] error[E0201]: probe point mismatch",
            "fail      semko/crash.stp  [crash] ",
            "fail      semko/option.stp  [unsupported option] error: unexpected argument '--foo' found",
            "fail      semko/shell.stp  [crash] ",
            "fail      buildok/c.stp  [C compile error] error[E0500]: x",
            "fail      buildok/slow.stp  [timeout] ",
            "pass      buildok/shell.stp",
            "fail      transok/option.stp  [unsupported option] error: unexpected argument '--foo' found",
            "pass      transok/runs.stp",
            "pass      systemtap.examples/io/one.meta",
            "fail      systemtap.examples/io/two.meta  [unresolved name] semantic error: unresolved function foo: identifier",
            "untested  systemtap.examples/io/three.meta",
            "parseko                       1      1         0",
            "systemtap.examples            1      1         1",
            "all                           5     12         1  (29.4 % of 17 pass)",
            "without those that probe user space             16  (31.2 % of them pass)",
            "unresolved name               2",
        ] {
            assert!(report.lines().any(|printed| printed == line), "{line}\n{report}");
        }
        assert_eq!(failed, 12);
        assert!(!suite.join("testsuite/buildok/made.ko").exists(), "the suite is left as it was");
        let one_class = Options { class: vec![Class::Accepted], all: false, ..options.clone() };
        let (report, failed) = measure(&one_class).unwrap();
        assert!(failed == 12 && report.starts_with("fail      parseko/taken.stp  [accepted] \n\ngroup"), "{report}");
        let (report, failed) = measure(&Options { json: true, ..options.clone() }).unwrap();
        let value: serde_json::Value = serde_json::from_str(&report).unwrap();
        assert!(failed == 12 && value["pass"] == 5 && value["fail"] == 12 && value["untested"] == 1, "{report}");
        let cases = value["cases"].as_array().unwrap();
        let case = |name: &str| cases.iter().find(|case| case["name"] == name).unwrap();
        assert_eq!(case("parseok/good.stp")["result"], "pass");
        assert_eq!(case("buildok/c.stp")["class"], "C compile error");
        assert_eq!(case("parseok/bad.stp")["message"], "error[E0033]: that does not fit");
        let few = Options { only: vec!["good".into()], all: false, ..options };
        let (report, failed) = measure(&few).unwrap();
        assert!(failed == 0 && report.contains("(100.0 % of 1 pass)") && !report.contains("parseok/good"), "{report}");
        assert!(measure(&Options { only: vec!["nothing".into()], ..few }).is_err());
    }

    #[test]
    fn missing_suites_and_compilers_are_reported() {
        let top = tempfile::tempdir().unwrap();
        let options = |command: &str| Options {
            suite: top.path().to_path_buf(),
            command: command.into(),
            only: Vec::new(),
            timeout: 1,
            class: Vec::new(),
            all: false,
            json: false,
        };
        assert!(measure(&options("sh")).unwrap_err().to_string().contains("no cases"));
        put(top.path(), "semok/a.stp", "");
        assert!(measure(&options("no_such_program_here")).unwrap_err().to_string().contains("--command"));
        assert!(measure(&options("'")).is_err());
    }
}
