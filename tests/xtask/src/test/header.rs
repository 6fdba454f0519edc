// SPDX-License-Identifier: GPL-2.0-or-later

//! What a test expects: the comment lines on top of it, `# KEY: VALUE`.
//!
//! | key | meaning | default |
//! |---|---|---|
//! | `pass` | 1 to 4: spile on the host with `-pN`; 5: run in the guest | 5 |
//! | `options`, `args` | for spile, and after the script; `$ROOT` in an option is the top of the repository | none |
//! | `run` | command to run while the script is active (`-c`); more lines make a longer command | none: the script ends itself |
//! | `setup` | shell commands in the guest before it starts | none |
//! | `modules` | test modules, or the kernel's own, to load first; scripts can name the test modules in any case | none |
//! | `programs` | files of the machine that compiles, which the guest has at the same paths: programs with their libraries | none |
//! | `family` | `yes`: the generated modules (`family.rs`) are there: scripts can name them, modprobe finds them, tests on the host have their directory in `$FAMILY` | no |
//! | `script` | in a `.guest.sh`: NAME [OPTIONS] FILE [ARGS], compiled to NAME.ko in its directory; FILE from the test's directory, or from the top when there is none | none |
//! | `stdout`, `stderr`, `dmesg` | regular expressions, each to be found in a line after the one before it | none |
//! | `absent` | regular expression that no line of stdout, stderr or the kernel log may match | none |
//! | `prints` | a line; all of them together are the whole standard output | any |
//! | `exit` | exit status | 0; 1 with `fails` |
//! | `skipped` | skipped probes that the loader reports; `any`: as many as come | no warning |
//! | `fails` | code of the error that compiling ends with; makes `pass` 2 if it is not given | none |
//! | `guest` | kernel lines it is for, as `5.10 6.1`; `debian`: only Debian's kernels, not our own (`cargo xtask
//! debug-kernel`) | all |
//! | `limit` | seconds; on the host an estimate, by which tests are ordered | 30 |
//! | `alone` | `yes`: it measures time or load, and runs when nothing else does | no |
//! | `memory_cgroups` | `yes`: the guest's kernel accounts memory to cgroups; without that each process takes a tenth less time | no |
//! | `all` | `yes`: only `--all` runs it, or its name | no |
//!
//! A `.host.sh` is run by `sh -e` in a directory of its own, with `$SPILE`, `$RELEASE`, `$ROOT` (of the repository),
//! `$XTASK`, `$MODULES` (options for the test modules) and `$CACHE`: a copy of what takes long to make, for tests that
//! need a cache of their own and are about something else (`cp -r "$CACHE" cache`). For tests that are about building the
//! runtime, or use Kbuild, `PATH=$COMPILE_ONCE:$PATH` has a C compiler that compiles it once, also for later runs of the tests,
//! and answers what Kbuild asks once in a run (`compile_once.sh`).
//! `$SPILE_GUEST_CACHE_DIR` is the same for all tests and runs: virtual machines go on from the states that are saved there.
//! `$KERNEL_INDEX`, for tests that have it in their text, is what `--export-index` has written of the kernel, nfs, the
//! test modules and the program `user`.
//!
//! Values lose the blanks around them. Comment lines without a known key are for people; the first line that is neither
//! a comment nor empty ends the header, an unknown key that looks like one (`# stdot: x`) is an error.

use anyhow::{Context, Result, bail};
use regex::Regex;

/// How many skipped probes a test may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skipped {
    /// So many.
    Number(u64),
    /// As many as come.
    Any,
}

/// The header of a test; the keys are described above.
#[derive(Clone, Debug)]
pub struct Header {
    /// 1 to 5: the last pass that is run.
    pub pass: u32,
    /// Options of the compiler.
    pub options: Vec<String>,
    /// Arguments of the script.
    pub args: Vec<String>,
    /// Command of `-c`.
    pub run: Option<String>,
    /// Shell commands before the script is loaded.
    pub setup: String,
    /// Fixture modules to load.
    pub modules: Vec<String>,
    /// Files of the host that the guest has too.
    pub programs: Vec<String>,
    /// Scripts to compile for a shell test.
    pub scripts: Vec<Script>,
    /// Each must match in the standard output.
    pub stdout: Vec<Regex>,
    /// Each must match in the standard error output.
    pub stderr: Vec<Regex>,
    /// Each must match in the kernel log.
    pub dmesg: Vec<Regex>,
    /// None may match in any output.
    pub absent: Vec<Regex>,
    /// The whole standard output.
    pub prints: Option<Vec<String>>,
    /// Expected exit status.
    pub exit: i32,
    /// Expected number of skipped probes.
    pub skipped: Option<Skipped>,
    /// Code of the diagnostic with which compiling must fail.
    pub fails: Option<String>,
    /// Kernel lines that it is for; empty: all.
    pub guest: Vec<String>,
    /// Seconds.
    pub limit: u64,
    /// Nothing else of the suite runs beside it.
    pub alone: bool,
    /// The generated modules are there.
    pub family: bool,
    /// The kernel accounts memory to cgroups.
    pub memory_cgroups: bool,
    /// Part of the runs with `--all` only.
    pub all: bool,
}

/// A script that a shell test has compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Name of its module.
    pub name: String,
    /// Options of the compiler.
    pub options: Vec<String>,
    /// Its file, relative to the test's.
    pub file: String,
    /// Arguments of the script.
    pub args: Vec<String>,
}

const KEYS: [&str; 22] = [
    "pass",
    "options",
    "args",
    "run",
    "setup",
    "modules",
    "script",
    "stdout",
    "stderr",
    "dmesg",
    "absent",
    "prints",
    "exit",
    "skipped",
    "fails",
    "guest",
    "limit",
    "alone",
    "family",
    "programs",
    "memory_cgroups",
    "all",
];

/// Reads the header of a test's text.
pub fn parse(text: &str) -> Result<Header> {
    let lines: Vec<(&str, &str)> = key_lines(text)?;
    let all =
        |key: &str| -> Vec<&str> { lines.iter().filter(|(known, _)| *known == key).map(|(_, value)| *value).collect() };
    let last = |key: &str| all(key).last().copied();
    let words = |key: &str| -> Result<Vec<String>> {
        let split: Result<Vec<_>> = all(key).into_iter().map(split_words).collect();
        Ok(split?.concat())
    };
    let patterns = |key: &str| -> Result<Vec<Regex>> {
        all(key).into_iter().map(|value| Regex::new(value).with_context(|| format!("{key}: {value}"))).collect()
    };
    let joined = |key: &str| all(key).join("\n");
    let fails = last("fails").map(String::from);
    let yes = |key: &str| match last(key) {
        None => Ok(false),
        Some("yes") => Ok(true),
        Some(other) => bail!("{key}: {other}: it can only be yes"),
    };
    let number =
        |key: &str, default: u64| last(key).map_or(Ok(default), |value| value.parse().context(key.to_string()));
    Ok(Header {
        pass: u32::try_from(number("pass", if fails.is_some() { 2 } else { 5 })?)?,
        options: words("options")?,
        args: words("args")?,
        run: Some(joined("run")).filter(|run| !run.is_empty()),
        setup: joined("setup"),
        modules: words("modules")?,
        programs: words("programs")?,
        scripts: all("script").into_iter().map(parse_script).collect::<Result<_>>()?,
        stdout: patterns("stdout")?,
        stderr: patterns("stderr")?,
        dmesg: patterns("dmesg")?,
        absent: patterns("absent")?,
        prints: Some(all("prints"))
            .filter(|all| !all.is_empty())
            .map(|all| all.into_iter().map(String::from).collect()),
        exit: i32::try_from(number("exit", u64::from(fails.is_some()))?)?,
        skipped: match last("skipped") {
            None => None,
            Some("any") => Some(Skipped::Any),
            Some(value) => Some(Skipped::Number(value.parse().context("skipped")?)),
        },
        fails,
        guest: words("guest")?,
        limit: number("limit", 30)?,
        alone: yes("alone")?,
        family: yes("family")?,
        memory_cgroups: yes("memory_cgroups")?,
        all: yes("all")?,
    })
}

impl Header {
    /// Whether the test is for a kernel of this release: none of its words asks for another one, and it has no lines, or one
    /// of them begins the release.
    pub fn is_for(&self, release: &str) -> bool {
        let (debian, lines): (Vec<&String>, Vec<&String>) = self.guest.iter().partition(|word| *word == "debian");
        let begins = |line: &&String| {
            release.strip_prefix(line.as_str()).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        let is_ours =
            [crate::place::DEBUG_SUFFIX, crate::place::KCSAN_SUFFIX].iter().any(|suffix| release.ends_with(suffix));
        (lines.is_empty() || lines.iter().any(begins)) && (debian.is_empty() || !is_ours)
    }
}

fn key_lines(text: &str) -> Result<Vec<(&str, &str)>> {
    let mut found = Vec::new();
    for line in text.lines() {
        let comment = match line.trim_start().strip_prefix('#').or_else(|| line.trim_start().strip_prefix("//")) {
            Some(comment) => comment,
            None if line.trim().is_empty() => continue,
            None => break,
        };
        let Some((key, value)) = comment.split_once(':') else { continue };
        let key = key.trim();
        if KEYS.contains(&key) {
            found.push((key, value.trim()));
        } else if let Some(near) = KEYS.iter().find(|known| one_edit_apart(known, key)) {
            bail!("unknown key {key}: did you mean {near}?");
        }
    }
    Ok(found)
}

/// Whether one letter more, less or other makes the one word the other.
fn one_edit_apart(a: &str, b: &str) -> bool {
    let prefix = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let suffix = a.bytes().rev().zip(b.bytes().rev()).take_while(|(a, b)| a == b).count();
    a.len().abs_diff(b.len()) <= 1 && prefix + suffix + 1 >= a.len().max(b.len())
}

fn parse_script(value: &str) -> Result<Script> {
    let mut words = split_words(value)?.into_iter();
    let name = words.next().with_context(|| format!("script: {value}: no name"))?;
    let mut options = Vec::new();
    for word in words.by_ref() {
        if word.ends_with(".stp") {
            return Ok(Script { name, options, file: word, args: words.collect() });
        }
        options.push(word);
    }
    bail!("script: {value}: no file NAME.stp")
}

/// Words as a shell splits them, without expansion.
fn split_words(text: &str) -> Result<Vec<String>> {
    shell_words::split(text).with_context(|| text.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_script() {
        let header = parse(
            "#!/usr/bin/stap -g\n# Shows: that reads are counted.\n# options: -g -DX='a b'\n# run: cat /etc/hostname\n\
             # stdout: reads=[1-9]\n# stdout: done\n# guest: 6.1\n# programs: /usr/bin/ls\n\nprobe begin {}\n# exit: 7\n",
        )
        .expect("a header");
        assert_eq!(header.options, ["-g", "-DX=a b"]);
        assert_eq!(header.run.as_deref(), Some("cat /etc/hostname"));
        assert_eq!(header.stdout.len(), 2);
        assert_eq!(header.programs, ["/usr/bin/ls"]);
        assert_eq!((header.pass, header.exit), (5, 0));
        assert!(header.is_for("6.1.0-56-cloud-amd64") && !header.is_for("6.12.1") && !header.is_for("5.10"));
    }

    #[test]
    fn an_error_to_come_means_pass_2_and_status_1() {
        let header = parse("# fails: E0101\n").expect("a header");
        assert_eq!((header.pass, header.exit, header.fails.as_deref()), (2, 1, Some("E0101")));
    }

    #[test]
    fn a_test_of_debians_kernels_is_not_for_our_own() {
        let header = parse("# guest: debian 6.1\n").expect("a header");
        assert!(header.is_for("6.1.0-56-cloud-amd64") && !header.is_for("5.10.0-32-cloud-amd64"));
        assert!(!header.is_for("6.1.192-spile-debug"));
        assert!(parse("").expect("a header").is_for("6.1.192-spile-debug"));
    }

    #[test]
    fn a_misspelt_key_is_told() {
        assert!(parse("# stdot: x\n").is_err());
        assert!(parse("# Note: x\n").is_ok());
    }

    #[test]
    fn what_is_not_asked_for_can_only_be_yes() {
        let header = parse("# family: yes\n").expect("a header");
        assert!(header.family && !header.alone);
        assert!(parse("# family: no\n").is_err());
    }

    #[test]
    fn scripts_of_a_shell_test() {
        let script = parse_script("lu -g ../lu.stp 'a b'").expect("a script");
        assert_eq!(script.file, "../lu.stp");
        assert_eq!((script.options, script.args), (vec!["-g".to_string()], vec!["a b".to_string()]));
        assert!(parse_script("lu -g").is_err());
    }
}
