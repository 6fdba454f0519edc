// SPDX-License-Identifier: GPL-2.0-or-later

//! A pipe that nobody writes or reads, a socket, a device, or a loop of links, where a file or a directory is
//! meant, ends in a message and a status, and nothing waits for it or replaces it.

#![allow(clippy::unwrap_used, reason = "a test that fails may say so in any way")]

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Such things, by the name of the file in a directory of the test.
const SPECIAL: [&str; 5] = ["pipe", "socket", "loop", "device", "file/below"];

fn special(directory: &Path) -> UnixListener {
    nix::unistd::mkfifo(&directory.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    symlink("other", directory.join("loop")).unwrap();
    symlink("loop", directory.join("other")).unwrap();
    symlink("/dev/full", directory.join("device")).unwrap();
    fs::write(directory.join("file"), "").unwrap();
    fs::write(directory.join("script.stp"), "probe begin { exit() }\n").unwrap();
    UnixListener::bind(directory.join("socket")).unwrap()
}

/// The status of `spile WORDS` and its messages. It is killed after ten seconds.
fn ended(directory: &Path, environment: &[(&str, &str)], words: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "10", env!("CARGO_BIN_EXE_spile")]).args(words).current_dir(directory);
    command.env("SPILE_CACHE_DIR", directory.join("cache")).stdin(Stdio::null()).envs(environment.iter().copied());
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// A module that cannot be read, and stays unread: a warning with its name.
fn warned(place: &str, (status, messages): (Option<i32>, String)) {
    let warning = format!("WARNING: missing unwind/symbol data for module '{place}': ");
    let is_directory = messages.contains(&format!("WARNING: -d {place} is left out: a directory"));
    let is_warned = messages.contains(&warning) || is_directory;
    assert!(status == Some(0) && is_warned, "{place}: {status:?} {messages}");
}

/// What each of `words` and `environment` with `@` for the special file must end with: status 1, a message with its name, in time.
fn refused(environment: &[(&str, &str)], words: &[&str], kinds: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let _listener = special(directory.path());
    for kind in kinds {
        let place = directory.path().join(kind).display().to_string();
        let filled = |text: &str| text.replace('@', &place);
        let words: Vec<String> = words.iter().map(|word| filled(word)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let environment: Vec<(&str, String)> = environment.iter().map(|(name, value)| (*name, filled(value))).collect();
        let environment: Vec<(&str, &str)> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let begun = Instant::now();
        let (status, messages) = ended(directory.path(), &environment, &words);
        assert_eq!(status, Some(1), "{words:?} {environment:?}: {messages}");
        assert!(messages.contains(&place), "{words:?} {environment:?}: {messages}");
        assert!(begun.elapsed() < Duration::from_secs(8), "{words:?} {environment:?}");
        let pipe = fs::symlink_metadata(directory.path().join("pipe")).unwrap();
        assert!(pipe.file_type().is_fifo() && fs::symlink_metadata("/dev/full").unwrap().file_type().is_char_device());
    }
}

#[test]
fn directories_of_the_environment() {
    for variable in ["SPILE_CACHE_DIR", "TMPDIR", "SYSTEMTAP_TAPSET", "SYSTEMTAP_DIR"] {
        refused(&[(variable, "@")], &["-p1", "script.stp"], &SPECIAL[..4]);
    }
    refused(&[("SPILE_CACHE_DIR", ""), ("XDG_CACHE_HOME", "@")], &["-p1", "script.stp"], &SPECIAL);
}

#[test]
fn a_home_that_is_no_directory_costs_time_only() {
    let directory = tempfile::tempdir().unwrap();
    let _listener = special(directory.path());
    let home = directory.path().join("pipe").display().to_string();
    let without = [("SPILE_CACHE_DIR", ""), ("XDG_CACHE_HOME", ""), ("HOME", &home)];
    let (status, messages) = ended(directory.path(), &without, &["-p1", "script.stp"]);
    assert_eq!(status, Some(0), "{messages}");
    assert!(messages.contains(&format!("WARNING: HOME={home}: not a directory")), "{messages}");
}

#[test]
fn files_and_directories_of_options() {
    let script = ["-p4", "script.stp"];
    let all: &[&[&str]] = &[
        &["-I", "@"],
        &["--tapset", "@"],
        &["--sysroot", "@"],
        &["--index", "@"],
        &["--tmpdir", "@"],
        &["--export-index", "@"],
    ];
    for words in all {
        refused(&[], &[words, &script[..]].concat(), &SPECIAL);
    }
    let directory = tempfile::tempdir().unwrap();
    let _listener = special(directory.path());
    for kind in SPECIAL {
        let place = directory.path().join(kind).display().to_string();
        warned(&place, ended(directory.path(), &[], &["-d", &place, "-p2", "script.stp"]));
    }
    for option in ["--sign-key", "--sign-cert"] {
        let keys = ["--sign-key", "script.stp", "--sign-cert", "script.stp", option, "@"];
        refused(&[], &[&keys[..], &script[..]].concat(), &["pipe", "socket", "device"]);
    }
}

/// Directories that the user may not read, or not look into.
#[test]
fn closed_directories() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("script.stp"), "probe begin { exit() }\n").unwrap();
    fs::create_dir(at("cache")).unwrap();
    fs::create_dir(at("closed")).unwrap();
    // Where other users find it.
    let program = at("spile");
    fs::hard_link(env!("CARGO_BIN_EXE_spile"), &program)
        .or_else(|_| fs::copy(env!("CARGO_BIN_EXE_spile"), &program).map(drop))
        .unwrap();
    let allow = |name: &str, mode: u32| fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    allow("", 0o755);
    allow("cache", 0o755);
    allow("closed", 0o000);
    // Root may read everything: it becomes another user.
    let is_root = nix::unistd::geteuid().is_root();
    if is_root {
        std::os::unix::fs::chown(at("cache"), Some(65534), Some(65534)).unwrap();
    }
    let closed = at("closed").display().to_string();
    let below = at("closed/below").display().to_string();
    let run = |variable: (&str, &str), words: &[&str]| {
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", "10"]);
        if is_root {
            command.args(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]);
        }
        command.arg(&program).args(words).current_dir(directory.path()).stdin(Stdio::null());
        command.env("HOME", at("cache")).env("SPILE_CACHE_DIR", at("cache"));
        let output = command.env(variable.0, variable.1).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let works = run(("LANG", "C"), &["-p1", "script.stp"]);
    assert_eq!(works.0, Some(0), "{}", works.1);
    for place in [&closed, &below] {
        let (status, messages) = run(("SPILE_CACHE_DIR", place), &["-p1", "script.stp"]);
        assert_eq!(status, Some(0), "{messages}");
        assert!(messages.contains(&format!("WARNING: SPILE_CACHE_DIR={place}: Permission denied")), "{messages}");
        for (variable, pass) in [("TMPDIR", "-p4"), ("SYSTEMTAP_TAPSET", "-p1"), ("SYSTEMTAP_DIR", "-p1")] {
            let (status, messages) = run((variable, place), &[pass, "script.stp"]);
            assert!(status == Some(1) && messages.contains(&closed), "{variable}={place}: {status:?} {messages}");
        }
        warned(place, run(("LANG", "C"), &["-d", place, "-p2", "script.stp"]));
        let (status, messages) = run(("LANG", "C"), &["-d", place, "--export-index", "index", "kernel"]);
        assert!(status == Some(1) && messages.contains(place.as_str()), "{place}: {status:?} {messages}");
        for option in ["-I", "--tapset", "--sysroot", "--index", "--tmpdir", "--export-index"] {
            let (status, messages) = run(("LANG", "C"), &[option, place, "-p4", "script.stp"]);
            assert!(status == Some(1) && messages.contains(&closed), "{option} {place}: {status:?} {messages}");
            let is_directory = place == &closed && ["--index", "--export-index"].contains(&option);
            assert!(is_directory || messages.contains("ermission denied"), "{option} {place}: {messages}");
        }
    }
    let (status, messages) = run(("LANG", "C"), &["-p1", &below]);
    assert!(status == Some(1) && messages.contains(&below), "{status:?} {messages}");
}

/// Nothing is compiled for this system's kernel in place of one below `--sysroot`.
#[test]
fn a_system_without_a_kernel() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["none", "other/lib/modules/9.9.9"] {
        fs::create_dir_all(directory.path().join(name)).unwrap();
    }
    let script = ["-e", "probe begin { exit() }"];
    for (root, note) in [("none", "neither lib/modules nor"), ("other", "it has 9.9.9: name one with -r")] {
        for pass in ["-p3", "-p4"] {
            let words = [&["--sysroot", root, pass, "-m", "made"][..], &script].concat();
            let (status, messages) = ended(directory.path(), &[], &words);
            assert_eq!(status, Some(1), "{words:?}: {messages}");
            let error = format!("--sysroot {root}: kernel ");
            assert!(messages.contains(&error) && messages.contains(note), "{words:?}: {messages}");
            assert!(!messages.contains("compiling for"), "{messages}");
        }
        let (status, messages) = ended(directory.path(), &[], &[&["--sysroot", root, "-p2"][..], &script].concat());
        assert_eq!(status, Some(0), "{messages}");
    }
    let (status, messages) = ended(directory.path(), &[], &[&["--sysroot", "", "-p3"][..], &script].concat());
    assert!(status == Some(1) && messages.contains("--sysroot"), "{status:?} {messages}");
    assert!(!directory.path().join("made.ko").exists());
}

#[test]
fn scripts_and_the_file_of_options() {
    for words in [&["-p1", "@"][..], &["--fmt", "@"], &["--from-bpftrace", "@"]] {
        refused(&[], words, &["socket", "loop", "file/below"]);
    }
    let directory = tempfile::tempdir().unwrap();
    nix::unistd::mkfifo(&directory.path().join("rc"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let at = directory.path().display().to_string();
    let (status, messages) = ended(directory.path(), &[("SYSTEMTAP_DIR", &at)], &["-p1", "-e", "probe begin {}"]);
    assert!(status == Some(1) && messages.contains("rc: not a regular file"), "{messages}");
}

#[test]
fn scripts_from_pipes_that_are_written() {
    // Also by a writer who is late, for whom it says that it waits; an interrupt ends that.
    let line = "mkfifo late never; (sleep 2; echo 'probe begin {}' >late) & \"$0\" -p1 late 2>said && \
        grep -q 'NOTE: late is a pipe that nobody has opened for writing: waiting' said && \
        \"$0\" -p1 <(sleep 1.5; echo 'probe end {}') 2>said && ! grep pipe said && ! \"$0\" -p1 <(echo 'probe end {') || exit; \
        timeout -s INT 2 \"$0\" -p1 never 2>said; [ $? = 124 ] && grep -q 'NOTE: never is a pipe' said";
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new("bash")
        .args(["-c", line, env!("CARGO_BIN_EXE_spile")])
        .current_dir(directory.path())
        .env("SPILE_CACHE_DIR", directory.path().join("cache"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("probe begin") && shown.contains("probe end"), "{shown}");
}

/// A file that is cut off while it is read: a message, and status 1.
#[test]
fn program_that_shrinks() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("program");
    fs::copy(env!("CARGO_BIN_EXE_spile"), &program).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_spile"));
    command.args(["-l", &format!("process({:?}).function(\"*\")", program.display().to_string())]);
    command.env("SPILE_CACHE_DIR", directory.path().join("cache")).env("HOME", directory.path());
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let maps = format!("/proc/{}/maps", child.id());
    let is_mapped = || fs::read_to_string(&maps).is_ok_and(|maps| maps.contains("/program"));
    for _ in 0..10_000 {
        if is_mapped() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(is_mapped());
    fs::File::options().write(true).open(&program).unwrap().set_len(4096).unwrap();
    let output = child.wait_with_output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && messages.contains("became shorter"), "{:?} {messages}", output.status);
}
