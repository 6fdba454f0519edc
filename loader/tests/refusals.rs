// SPDX-License-Identifier: GPL-2.0-or-later

//! The program itself, as far as it goes without loading a module: refusals, each with its status and its one line.

#![allow(clippy::expect_used, reason = "a test that fails may say so in any way")]

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use spile_abi::meta::{Meta, SECTION};
use spile_abi::seal;
use tempfile::TempDir;

fn spilerun(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_spilerun")).args(arguments).output().expect("running spilerun")
}

/// A sealed object file with this in the section for metadata.
fn object(directory: &TempDir, contents: &[u8]) -> PathBuf {
    let [bytes, source, object] = ["bytes", "source.s", "script.ko"].map(|name| directory.path().join(name));
    fs::write(&bytes, contents).expect("writing bytes");
    let mut empty = seal::MAGIC.to_vec();
    empty.resize(seal::BYTES, 0);
    let numbers: Vec<String> = empty.iter().map(u8::to_string).collect();
    let text = format!(
        ".section .gnu.linkonce.this_module,\"aw\"\n.zero 24\n.asciz \"script\"\n.zero 100\n.section {SECTION},\"a\"\n.incbin \"{}\"\n.section {},\"a\"\n.byte {}\n",
        bytes.display(),
        seal::SECTION,
        numbers.join(",")
    );
    fs::write(&source, text).expect("writing source");
    let status = Command::new("cc").arg("-c").arg(&source).arg("-o").arg(&object).status().expect("running cc");
    assert!(status.success());
    let mut image = fs::read(&object).expect("reading the object");
    seal::write(&mut image);
    fs::write(&object, image).expect("writing the object");
    object
}

#[track_caller]
fn refused(output: &Output, status: i32, part: &str) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{text}");
    assert!(text.starts_with("ERROR: ") && text.lines().count() == 1 && text.contains(part), "{text}");
    assert!(output.stdout.is_empty());
}

#[test]
fn a_module_for_another_kernel() {
    let directory = tempfile::tempdir().expect("a directory");
    let meta = Meta { name: "script".into(), kernel_release: "1.2.3-test".into(), ..Meta::default() };
    let module = object(&directory, &meta.encode());
    let output = spilerun(&[module.to_str().expect("a path")]);
    refused(&output, 5, "script.ko is for kernel 1.2.3-test, this is ");
}

#[test]
fn a_damaged_module_and_one_that_is_not_ours() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut bytes = Meta::default().encode();
    bytes.truncate(20);
    let module = object(&directory, &bytes);
    refused(&spilerun(&[module.to_str().expect("a path")]), 3, "ends too early");
    refused(&spilerun(&["/bin/sh"]), 3, "not built by spile");
    refused(&spilerun(&["no_such_module"]), 3, "/spile/no_such_module.ko");
}

#[test]
fn a_wrong_command_line_and_help() {
    assert_eq!(spilerun(&[]).status.code(), Some(2));
    assert_eq!(spilerun(&["--no-such-option"]).status.code(), Some(2));
    let help = spilerun(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&help.stdout).contains("Exit status:"));
    assert_eq!(spilerun(&["-V"]).status.code(), Some(0));
}

/// Shells make their background commands ignore SIGINT.
#[test]
fn an_early_interrupt_is_not_lost() {
    // Nobody reads its help, so it waits, long before a session would.
    let (_reader, writer) = std::io::pipe().expect("a pipe");
    fill(&writer);
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' INT; exec \"$0\" --help", env!("CARGO_BIN_EXE_spilerun")]).stdout(writer);
    let mut child = command.spawn().expect("running spilerun");
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("its status") {
            break status;
        }
        if began.elapsed() > Duration::from_secs(30) {
            child.kill().expect("killing it");
            child.wait().expect("its status");
            panic!("SIGINT is ignored");
        }
        let process = Pid::from_raw(i32::try_from(child.id()).expect("a number"));
        kill(process, Signal::SIGINT).expect("sending a signal");
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(status.signal(), Some(2));
}

/// Writes until the pipe takes no more.
fn fill(writer: &std::io::PipeWriter) {
    let set = |flags| fcntl(writer, FcntlArg::F_SETFL(flags)).expect("setting flags");
    set(OFlag::O_NONBLOCK);
    while nix::unistd::write(writer, &[0; 4096]).is_ok() {}
    set(OFlag::empty());
}
