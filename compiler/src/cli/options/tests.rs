// SPDX-License-Identifier: GPL-2.0-or-later

//! Command lines and their interpretation.

use std::path::PathBuf;

use spilerun::options as loader;

use super::*;

fn parse(words: &[&str]) -> Options {
    try_parse(words).unwrap()
}

fn try_parse(words: &[&str]) -> Result<Options, clap::Error> {
    Options::parse_words(std::iter::once(&"spile").chain(words).map(OsString::from).collect())
}

fn refusal(words: &[&str]) -> String {
    try_parse(words).unwrap_err().to_string()
}

#[test]
fn the_definition_is_sound() {
    command().debug_assert();
}

#[test]
fn words_after_the_script_are_its_arguments() {
    let options = parse(&["-g", "x.stp", "1", "--", "-v", "2"]);
    let (script, arguments) = options.script.source().unwrap();
    assert_eq!(script, Script::File("x.stp".into()));
    assert_eq!(arguments, ["1", "-v", "2"]);
    assert_eq!(options.message.verbose, 0);
    // Options may follow the script, as with stap; so may negative numbers.
    let options = parse(&["x.stp", "-1", "-x", "7", "-v"]);
    assert_eq!(options.script.source().unwrap().1, ["-1"]);
    assert_eq!((options.run.session.pid, options.message.verbose), (Some(7), 1));
    let (script, arguments) = parse(&["-e", "probe begin {}", "7"]).script.source().unwrap();
    assert_eq!(script, Script::Text("probe begin {}".into()));
    assert_eq!(arguments, ["7"]);
}

#[test]
fn stap_spellings() {
    let options = parse(&["-vvp4", "-mfoo", "-DMAXERRORS=3", "-D", "MAXSTRINGLEN=1024", "x.stp"]);
    assert_eq!((options.message.verbose, options.build.last_pass), (2, Some(4)));
    let (limits, _) = options.script.limits().unwrap();
    assert_eq!((limits.max_errors, limits.string_bytes), (3, 1024));
    assert!(parse(&["-D", "MAXSTRINGLEN=1", "x"]).script.limits().is_err());
    assert_eq!(
        parse(&["-D", "MAXFOO=1", "-DBAR", "x"]).script.limits().unwrap().1,
        [("MAXFOO".into(), "1".into()), ("BAR".into(), "1".into())]
    );
}

#[test]
fn short_options_stand_together() {
    let options = parse(&["-gp4", "-kuwtvv", "x.stp"]);
    assert!(
        options.script.guru
            && options.build.keep
            && options.script.unoptimised
            && options.run.session.no_warnings
            && options.run.timing
    );
    assert_eq!((options.build.last_pass, options.message.verbose), (Some(4), 2));
    assert_eq!(parse(&["-vp2", "--vp", "03", "x.stp"]).message.verbosity(2), 4);
    assert_eq!(parse(&["--vp=10203", "x.stp"]).message.verbosity(5), 3);
    assert_eq!(parse(&["-l", "a", "-l", "b"]).ask.listing().as_deref(), Some("a, b"));
}

#[test]
fn one_script() {
    let (script, arguments) = parse(&["-e", "probe begin {}", "word"]).script.source().unwrap();
    assert!(matches!(script, Script::Text(text) if text == "probe begin {}"));
    assert_eq!(arguments, ["word"]);
    assert!(refusal(&["-e", "probe begin {}", "-e", "probe end {}"]).contains("-E adds"));
    assert_eq!(parse(&["-e", "probe begin {}", "-E", "probe end {}"]).script.more, ["probe end {}"]);
}

#[test]
fn the_last_of_an_option_counts() {
    let options = parse(&["-p1", "-s", "4", "-m", "a", "-p4", "-s8", "-mb", "x.stp"]);
    assert_eq!(
        (options.build.last_pass, options.run.session.megabytes, options.build.module.as_deref()),
        (Some(4), Some(8), Some("b"))
    );
    assert_eq!(parse(&["-DMAXERRORS=3", "-DMAXERRORS=5", "x"]).script.limits().unwrap().0.max_errors, 5);
}

#[test]
fn values_are_checked() {
    assert_eq!(parse(&["-G", "a=1=2", "x"]).script.globals, [("a".to_string(), "1=2".to_string())]);
    assert_eq!(parse(&["-BCONFIG_X=y", "-B", "-g", "x"]).build.make, ["CONFIG_X=y", "-g"]);
    assert!(try_parse(&["-B", "clean", "x"]).is_err());
    for wrong in [
        &["-G", "a"][..],
        &["-G", "1=2"],
        &["--vp", "x"],
        &["--vp", "123456"],
        &["--compatible", "99.1"],
        &["--compatible=x"],
        &["-s", "0"],
        &["-p6"],
        &["--suppress-time-limits"],
    ] {
        assert!(try_parse(&[wrong, &["x.stp"]].concat()).is_err(), "{wrong:?}");
    }
    assert_eq!(parse(&["--compatible=4.8", "x"]).script.compatible.as_deref(), Some("4.8"));
    assert!(parse(&["-g", "--suppress-time-limits", "x"]).script.suppress_time_limits);
}

/// Each message says what to do instead.
#[test]
fn what_is_refused() {
    for (words, reason) in [
        (&["-a", "arm64", "x"][..], "compile on a arm64 machine"),
        (&["--bpf", "x"], "only in the kernel"),
        (&["--runtime=dyninst", "x"], "only in the kernel"),
        (&["--unprivileged", "-g", "x"], "guru mode is for stapdev"),
        (&["--privilege=stapsys", "-g", "x"], "guru mode is for stapdev"),
        (&["--use-server", "x"], "-p4"),
    ] {
        let text = refusal(words);
        assert!(text.contains(reason), "{words:?}: {text}");
    }
    assert!(
        try_parse(&[
            "--download-debuginfo=no",
            "--prologue-searching=never",
            "--runtime=kernel",
            "--privilege=stapdev",
            "x"
        ])
        .is_ok()
    );
}

/// None of them stops a program that drives stap; options without effect get a note.
#[test]
fn what_is_accepted_with_a_note() {
    for (words, note) in [
        (&["--ldd", "x"][..], "--ldd: "),
        (&["--sysroot=/", "--sysenv=PATH=/bin", "x"], "full path"),
        (&["--check-version", "x"], "--compatible="),
        (&["-P", "x"], ".statement("),
        (&["--prologue-searching=always", "x"], ".statement("),
        (&["--prologue-searching", "x"], ".statement("),
        (&["-q", "x"], "-q: "),
        (&["--target-namespaces=7", "x"], "nsenter"),
        (&["-i", "x"], "no prompt"),
    ] {
        let options = parse(words);
        assert!(options.notes.len() == 1 && options.notes.concat().contains(note), "{words:?}: {:?}", options.notes);
    }
    let quiet = parse(&[
        "--semantic-keep-going",
        "--save-uprobes",
        "--prologue-searching=auto",
        "--monitor=2",
        "--example",
        "x.stp",
    ]);
    assert!(quiet.notes.is_empty() && quiet.script.example);
    assert_eq!((quiet.run.monitor, parse(&["--monitor", "x"]).run.monitor), (Some(2), Some(1)));
    assert!(refusal(&["--sysenv=PATH", "x"]).contains("--sysenv"));
}

#[test]
fn the_name_it_is_called_by() {
    let called =
        |name: &str| Options::parse_words([name, "-e", "probe begin {}"].map(OsString::from).into()).unwrap().as_stap;
    assert!(called("stap") && called("/usr/bin/stap") && !called("spile") && !called("/opt/stap/spile"));
    assert!(parse(&["-V"]).message.version && parse(&["--version"]).message.version);
}

#[test]
fn module_names() {
    assert_eq!(module_name("lu_5642.ko"), Ok("lu_5642".into()));
    assert!(module_name("a-b").is_err() && module_name("1a").is_err() && module_name("").is_err());
}

/// Both ways of starting the loader mean the same.
#[test]
fn the_loader_s_words_mean_what_its_options_do() {
    for words in [
        &["x.stp"][..],
        &["-o", "out", "-S", "2,3", "-b", "-w", "-t", "-vv", "x.stp"],
        &["-c", "ls -l", "-T", "0.25", "-s", "7", "--stats=json", "--monitor=3", "x.stp"],
        &["-x", "12", "--budget", "0.5,sample", "x.stp"],
        &["-F", "x.stp"],
        &["-F", "-o", "out", "-T", "3600", "-DSTP_ALIBI", "x.stp"],
    ] {
        let options = parse(words);
        let module = PathBuf::from("x.ko");
        let line = std::iter::once("spilerun".into()).chain(options.loader_words()).chain([module.clone().into()]);
        assert_eq!(loader::Options::parse(line).unwrap(), options.loader(module), "{words:?}");
    }
}

#[test]
fn what_the_loader_would_refuse() {
    for words in [
        &["-F", "-o", "f", "-c", "ls"][..],
        &["-F", "-T", "1"],
        &["-F", "--record", "f"],
        &["-S", "5"],
        &["-b", "-S", "5,2"],
    ] {
        let run = [words, &["x.stp"]].concat();
        assert!(refusal(&run).contains("error: -"), "{words:?}");
        for pass in ["-p1", "-p2", "-p3", "-p4"] {
            assert!(try_parse(&[&[pass], &run[..]].concat()).is_ok(), "{pass} {words:?}");
        }
        assert!(try_parse(&[&["-p5"], &run[..]].concat()).is_err(), "{words:?}");
    }
    for words in
        [&["-F", "-o", "f", "-T", "1"][..], &["-F", "-x", "1"], &["-F", "-c", "ls"], &["-Fb"], &["-S", "0", "-o", "f"]]
    {
        assert!(try_parse(&[words, &["x.stp"]].concat()).is_ok(), "{words:?}");
    }
}

/// As in stap: they are taken as they are, and 0 is no process.
#[test]
fn any_number_is_a_process() {
    for (word, pid) in [("0", None), ("-5", Some(-5)), ("99999999999", Some(i32::MAX)), ("7", Some(7))] {
        assert_eq!(parse(&["-x", word, "x.stp"]).loader("x.ko".into()).pid, pid, "{word}");
    }
    assert!(try_parse(&["-x", "a", "x.stp"]).is_err());
    assert!(try_parse(&["-c", "", "x.stp"]).is_err());
    let rotation = |size| parse(&["-o", "f", "-S", size, "x.stp"]).loader("x.ko".into()).rotation;
    assert_eq!((rotation("0"), rotation("5,0").unwrap().files), (None, None));
}

#[test]
fn questions_take_words_without_use() {
    for question in
        [&["-l", "begin"][..], &["-L", "begin"], &["--dump-probe-types"], &["--dump-functions"], &["--list-servers"]]
    {
        assert!(try_parse(&[question, &["x"]].concat()).is_ok(), "{question:?}");
    }
    assert!(try_parse(&["-l", "begin", "-p5"]).is_ok());
    assert!(try_parse(&["-l", "begin", "-p2"]).is_err() && try_parse(&["-l", "begin", "-e", "probe end {}"]).is_err());
    for question in ["--dump-probe-types", "--dump-probe-aliases", "--dump-functions"] {
        assert!(try_parse(&[question, "-e", "probe end {}"]).is_err(), "{question}");
        assert!(try_parse(&[question, "-E", "probe end {}"]).is_ok(), "{question}");
    }
}

#[test]
fn variables_of_a_system_follow_its_root() {
    assert!(refusal(&["--sysenv=A=b", "x"]).contains("--sysroot has to come before it"));
    assert!(refusal(&["--sysenv=A=b", "--sysroot=/", "x"]).contains("has to come before"));
    assert!(refusal(&["-l", "begin", "-p2"]).contains("-p1 to -p4 with -l"));
    assert!(try_parse(&["--sysroot=/", "--sysenv=A=b", "--sysenv=C=d", "x"]).is_ok());
    assert!(try_parse(&["--sysroot=/", "--sysenv=A", "x"]).is_err());
}

/// An option may work without some of the files; otherwise the message names what is missing.
#[test]
fn nobody_to_download_from_is_a_note() {
    if std::env::var_os("DEBUGINFOD_URLS").is_none() {
        let notes = parse(&["--download-debuginfo", "x"]).notes;
        assert!(notes.iter().any(|note| note.contains("set DEBUGINFOD_URLS")), "{notes:?}");
    }
    assert!(parse(&["--download-debuginfo=no", "x"]).notes.is_empty());
}

#[test]
fn questions_come_alone() {
    assert!(parse(&["-l", "begin", "-l", "end"]).ask.listing().is_some());
    assert!(refusal(&["--dump-functions", "-l", "begin"]).contains("-l and --dump-functions: one question at a time"));
}
