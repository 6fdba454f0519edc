// SPDX-License-Identifier: GPL-2.0-or-later

//! Classifies failures by the compiler's messages: spile's codes, or SystemTap's words.

/// Why a case failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    Crash,
    Timeout,
    /// A script that must be rejected.
    Accepted,
    Parse,
    Option,
    Unresolved,
    ProbePoint,
    /// A probe in a program or library.
    UserSpace,
    Semantic,
    DebugInformation,
    Guru,
    CompileC,
    Limit,
    NotThere,
    Other,
}

const ALL: [Class; 15] = [
    Class::Crash,
    Class::Timeout,
    Class::Accepted,
    Class::Parse,
    Class::Option,
    Class::Unresolved,
    Class::ProbePoint,
    Class::UserSpace,
    Class::Semantic,
    Class::DebugInformation,
    Class::Guru,
    Class::CompileC,
    Class::Limit,
    Class::NotThere,
    Class::Other,
];

/// A class by the name that reports show.
pub fn parse(name: &str) -> Result<Class, String> {
    let names = || ALL.map(Class::name).join(", ");
    ALL.into_iter().find(|class| class.name() == name).ok_or_else(|| format!("there is: {}", names()))
}

impl Class {
    /// The name that reports show.
    pub fn name(self) -> &'static str {
        match self {
            Class::Crash => "crash",
            Class::Timeout => "timeout",
            Class::Accepted => "accepted",
            Class::Parse => "parse error",
            Class::Option => "unsupported option",
            Class::Unresolved => "unresolved name",
            Class::ProbePoint => "probe point",
            Class::UserSpace => "user space",
            Class::Semantic => "semantic error",
            Class::DebugInformation => "debug information",
            Class::Guru => "guru mode",
            Class::CompileC => "C compile error",
            Class::Limit => "limit",
            Class::NotThere => "not in this version",
            Class::Other => "other",
        }
    }

    /// For a run that ended with an error: the last pass reported as failed, then the first error.
    pub fn of(output: &str) -> Class {
        if output.contains("Pass 4: compilation failed") {
            return Class::CompileC;
        }
        // Nothing to probe there, or the program or its debug information is missing.
        let first = output.lines().find_map(code);
        if first.is_some_and(|code| (200..400).contains(&code)) && shows_a_process(output) {
            return Class::UserSpace;
        }
        output.lines().find_map(|line| code(line).map(by_code).or_else(|| by_words(line))).unwrap_or(Class::Other)
    }
}

/// Whether the source that the first error shows is a probe point `process`.
fn shows_a_process(output: &str) -> bool {
    let error = |line: &&str| code(line).is_some();
    let shown = output.lines().skip_while(|line| !error(line)).skip(1).take_while(|line| !error(line));
    let shown = shown.filter_map(|line| line.split_once('│'));
    shown.filter(|(number, _)| number.trim().parse::<u32>().is_ok()).any(|(_, source)| {
        source.match_indices("process").any(|(at, word)| {
            let before =
                source[..at].chars().next_back().is_none_or(|char| !(char.is_alphanumeric() || ".\"_".contains(char)));
            let after = source[at + word.len()..].trim_start().chars().next();
            before && after.is_none_or(|char| "(.,{".contains(char))
        })
    })
}

/// `error[E0103]: ...`
fn code(line: &str) -> Option<u32> {
    line.trim_start().strip_prefix("error[E")?.split_once(']')?.0.parse().ok()
}

fn by_code(code: u32) -> Class {
    match code {
        1..=99 => Class::Parse,
        // Functions, context variables, members, types, variables of programs, enumerators.
        103 | 121 | 125 | 132 | 157 | 161 => Class::Unresolved,
        190 => Class::NotThere,
        100..=199 => Class::Semantic,
        // Functions and tracepoints.
        204 | 205 | 209 | 210 => Class::Unresolved,
        200..=299 => Class::ProbePoint,
        300..=399 | 501 => Class::DebugInformation,
        401 | 402 => Class::Guru,
        502 => Class::Option,
        504 => Class::Limit,
        _ => Class::Other,
    }
}

/// A line with an error message, in SystemTap's words or those of a command line.
fn by_words(line: &str) -> Option<Class> {
    let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
    let is_option =
        has(&["unexpected argument", "unrecognized option", "invalid option", "Try '--help'", "try '--help'"])
            || line.starts_with("error: invalid value")
            || line.starts_with("error: -");
    if is_option || line.starts_with("error: ") {
        return Some(if is_option || has(&["cannot be used with", "-- "]) { Class::Option } else { Class::Other });
    }
    if line.starts_with("parse error:") {
        return Some(Class::Parse);
    }
    if !line.starts_with("semantic error:") {
        return None;
    }
    Some(match () {
        () if has(&["unresolved", "unable to find", "no match", "not found", "undefined"]) => Class::Unresolved,
        () if has(&["probe point mismatch", "while resolving probe point"]) => Class::ProbePoint,
        () if has(&["missing debuginfo", "missing x86_64 kernel", "debuginfo"]) => Class::DebugInformation,
        () if has(&["guru mode", "embedded-C"]) => Class::Guru,
        () => Class::Semantic,
    })
}

/// The first line with an error message.
pub fn first_message(output: &str) -> String {
    let is_message = |line: &&str| {
        code(line).is_some() || by_words(line).is_some() || line.contains("error:") || line.starts_with("ERROR")
    };
    let line = output.lines().find(is_message).or(output.lines().next()).unwrap_or_default().trim();
    spile_abi::escape::line(&line.chars().take(200).collect::<String>()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_codes_have_a_class() {
        for (output, class) in [
            ("NOTE: x\nerror[E0002]: too long\nPass 1: parse failed.", Class::Parse),
            ("error[E0103]: unresolved function `f`", Class::Unresolved),
            ("error[E0101]: type mismatch", Class::Semantic),
            ("error[E0206]: only inlined", Class::ProbePoint),
            ("error[E0201]: x\n  |\n3 │ probe process(\"a\").begin {}\nerror[E0103]: y", Class::UserSpace),
            ("error[E0201]: x\n  |\n3 │ probe process {}\n", Class::UserSpace),
            ("error[E0201]: x\n  |\n3 │ probe kprocess.foo {}\n", Class::ProbePoint),
            ("error[E0201]: x\n  |\n3 │ probe foo.process(1) {}\n", Class::ProbePoint),
            ("error[E0204]: x\n  |\n3 │ probe process(\"a\").function(\"f\") {}\n", Class::UserSpace),
            ("error[E0303]: x\n  |\n3 │ probe process(\"a\").function(\"f\") {}\n", Class::UserSpace),
            ("error[E0103]: x\n  |\n3 │ probe process(\"a\").begin { f() }\n", Class::Unresolved),
            ("error[E0401]: guru", Class::Guru),
            ("error: --use-server: there is no compile server", Class::Option),
            ("error[E0500]: x\nPass 4: compilation failed.", Class::CompileC),
            ("error: unexpected argument '--x' found", Class::Option),
            ("stap: unrecognized option '--x'\nTry '--help' for more information.", Class::Option),
            ("parse error: expected '('", Class::Parse),
            ("semantic error: while resolving probe point: identifier 'kernel'", Class::ProbePoint),
            ("semantic error: missing debuginfo", Class::DebugInformation),
            ("semantic error: type mismatch (long)", Class::Semantic),
            ("", Class::Other),
        ] {
            assert_eq!(Class::of(output), class, "{output}");
        }
        assert_eq!(first_message("NOTE: a\n\x1b[1merror: b"), "\\x1b[1merror: b");
    }

    #[test]
    fn a_class_is_found_by_its_name() {
        assert_eq!(parse("probe point"), Ok(Class::ProbePoint));
        assert!(parse("probe").unwrap_err().contains("there is: crash, timeout, accepted"));
    }

    /// Fails if a new code has no class here. Those of `--from-bpftrace` are not about scripts.
    #[test]
    fn every_kind_of_code_is_known() {
        let pages = crate::root().join("compiler/source/src/diagnostic/pages");
        for entry in std::fs::read_dir(pages).unwrap().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(number) = name.strip_prefix('E').and_then(|name| name.strip_suffix(".md")) else { continue };
            let number: u32 = number.parse().unwrap();
            assert!(by_code(number) != Class::Other || matches!(number, 500 | 503 | 601 | 602), "{name}");
        }
    }
}
