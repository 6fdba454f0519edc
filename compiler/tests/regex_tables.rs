// SPDX-License-Identifier: GPL-2.0-or-later

//! The tables of patterns, as they stand in a module's C, run by the runtime's own interpreter (runtime-c/regex.c).

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that fails may say so in any way")]

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use spile_core::elaborate::{self, Options};
use spile_core::plan::{self, Limits, ModuleInfo};
use spile_core::probe::Resolver;
use spile_source::{Origin, SourceMap};
use spile_syntax::{self as syntax, Environment, Macros};

/// Pattern, text, and begin and end of each group: `-` for a group that did not match, nothing for no match at all.
const CASES: &[(&str, &str, &str)] = &[
    ("str(ing|ong)", "an example string", "11-17 14-17"),
    ("(a|ab)(c|bcd)(d*)", "abcd", "0-4 0-2 2-3 3-4"),
    ("(?:(a)|(b)|(c))*", "abc", "0-3 - - 2-3"),
    ("(.*)=(.*)", "a=b=c", "0-5 0-3 4-5"),
    ("x*$", "abxx", "2-4"),
    ("^(a+)(b?)$", "aaa", "0-3 0-3 3-3"),
    ("^(a+)(b?)$", "aaac", ""),
    ("", "a", "0-0"),
    ("\\xff(.)", "\u{7f}", ""),
    ("([[:digit:]]+)[.]([[:digit:]]+)", "v10.25-rc", "1-6 1-3 4-6"),
    ("(a*)*", "b", "0-0 0-0"),
    ("([^,]*),([^,]*),", "one,two,three", "0-8 0-3 4-7"),
];

/// The tables that a script with these patterns has.
fn tables(groups: bool) -> String {
    let mut script = String::from("probe begin { s = execname()\n");
    for (pattern, _, _) in CASES {
        let _ = writeln!(script, "if (s =~ \"{}\") println(1)", pattern.replace('\\', "\\\\"));
    }
    script.push_str(if groups { "println(ngroups()) }" } else { "}" });
    let mut sources = SourceMap::new();
    let file = sources.add("patterns.stp", script.into_bytes(), Origin::User);
    let environment = Environment::default();
    let (script, problems) = syntax::parse(&mut sources, file, &environment, &Macros::default());
    assert_eq!(problems, []);
    let mut resolver = Resolver::new(None, "6.1.0");
    let scripts = [script];
    let options = Options { guru: false, display_globals: true, ..Options::default() };
    let (program, problems) = elaborate::elaborate(&sources, &scripts, &options, &mut resolver);
    assert_eq!(problems, []);
    let info = ModuleInfo {
        module: "patterns".into(),
        title: "patterns.stp".into(),
        kernel_release: "6.1.0".into(),
        guru: false,
        privilege: Default::default(),
        limits: Limits::default(),
        modinfo: Vec::new(),
        defines: Vec::new(),
    };
    let script = spile_core::emit::emit(&plan::plan(&program, &sources, info).unwrap(), spile_core::emit::Form::Whole)
        .unwrap()
        .script;
    let begin = script.find("/* =~").unwrap();
    script[begin..].split("static void probe_").next().unwrap().to_string()
}

/// Numbers of patterns as the script has them: each once.
fn numbers() -> Vec<usize> {
    let mut seen: Vec<&str> = Vec::new();
    let number = |(pattern, _, _): &(&'static str, _, _)| {
        seen.iter().position(|known| known == pattern).unwrap_or_else(|| {
            seen.push(pattern);
            seen.len() - 1
        })
    };
    CASES.iter().map(number).collect()
}

fn run(name: &str, cases: &str, tables: &str) -> String {
    let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime-c");
    let base = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let source = base.with_extension("c");
    let program =
        format!("#include <stdio.h>\n#include \"regex.h\"\n{tables}\nint main(void)\n{{\n{cases}\treturn 0;\n}}\n");
    std::fs::write(&source, program).unwrap();
    let compiled = Command::new("cc")
        .args(["-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", "-iquote"])
        .arg(&runtime)
        .arg("-o")
        .args([&base, &source, &runtime.join("regex.c")])
        .output()
        .expect("running cc");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let ran = Command::new(&base).output().expect("running the cases");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn whether_patterns_match() {
    let mut cases = String::new();
    for ((_, text, _), number) in CASES.iter().zip(numbers()) {
        let _ = writeln!(cases, "\tprintf(\"%d\\n\", spile_regex_test(&regex_{number}, SPILE_LITERAL(\"{text}\")));");
    }
    let wanted: String = CASES.iter().map(|(_, _, groups)| if groups.is_empty() { "0\n" } else { "1\n" }).collect();
    assert_eq!(run("regex-plain", &cases, &tables(false)), wanted);
}

#[test]
fn where_groups_match() {
    let mut cases = String::from("\tint registers[64], ends[16], i;\n");
    for ((_, text, _), number) in CASES.iter().zip(numbers()) {
        let _ = writeln!(
            cases,
            "\tif (spile_regex_find(&regex_{number}, SPILE_LITERAL(\"{text}\"), registers, ends))\n\
             \t\tfor (i = 0; i < (int)regex_{number}.groups; i++)\n\
             \t\t\tprintf(ends[2 * i] < 0 ? \"%s-\" : \"%s%d-%d\", i ? \" \" : \"\", ends[2 * i], ends[2 * i + 1]);\n\
             \tprintf(\"\\n\");"
        );
    }
    let wanted: String = CASES.iter().map(|(_, _, groups)| format!("{groups}\n")).collect();
    assert_eq!(run("regex-tagged", &cases, &tables(true)), wanted);
}
