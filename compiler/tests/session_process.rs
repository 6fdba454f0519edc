// SPDX-License-Identifier: GPL-2.0-or-later

//! Called as `stap`, the session is a separate process. This program plays all three parts: the test, `stap`, and the
//! session.

#![allow(clippy::expect_used, reason = "a test that fails may say so in any way")]

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};

use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const TEST: &str = "SPILE_TEST_PART";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    if words.first().is_some_and(|name| name == spilerun::staprun::STAPIO) {
        return session(&words);
    }
    match std::env::var(TEST) {
        Ok(status) => {
            spile::peer::SessionProcess { verbose: true }.run(["spilerun", "-v", &status].map(Into::into).to_vec())
        }
        Err(_) => {
            the_status_is_0_or_1();
            signals_reach_the_session();
            ExitCode::SUCCESS
        }
    }
}

/// Says how it was started, and ends with the status that is its last word, or with the number of the signal that it gets.
fn session(words: &[String]) -> ExitCode {
    let signals = spilerun::signals::Signals::catch().expect("handlers");
    println!("{}", words.join(" "));
    match words.last().and_then(|word| word.parse::<u8>().ok()) {
        Some(status) => ExitCode::from(status),
        None => loop {
            let came = signals.read();
            if came.stops > 0 || came.rotate {
                println!("stops {} rotate {}", came.stops, came.rotate);
            }
            if came.stops > 0 {
                return ExitCode::SUCCESS;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        },
    }
}

fn stap(part: &str) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = Command::new("/proc/self/exe")
        .arg0("stap")
        .env(TEST, part)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("stap");
    let lines = BufReader::new(child.stdout.take().expect("a pipe"));
    (child, lines)
}

fn line(lines: &mut BufReader<std::process::ChildStdout>) -> String {
    let mut line = String::new();
    lines.read_line(&mut line).expect("a line");
    line.trim_end().to_string()
}

fn the_status_is_0_or_1() {
    const FAILED: &str = "WARNING: /usr/bin/staprun exited with status: 1\nPass 5: run failed.\n";
    for (part, status, message) in [("0", 0, ""), ("7", 1, FAILED)] {
        let (child, mut lines) = stap(part);
        assert_eq!(line(&mut lines), format!("/usr/lib/systemtap/stapio --session -v {part}"));
        let output = child.wait_with_output().expect("its end");
        assert_eq!(output.status.code(), Some(status));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let (first, rest) = said.split_once('\n').expect("a line");
        assert!(first.starts_with("Pass 5: run completed in ") && first.ends_with("real ms."), "{first}");
        assert_eq!(rest, message);
    }
}

fn signals_reach_the_session() {
    let (child, mut lines) = stap("wait");
    assert!(line(&mut lines).ends_with("-v wait"));
    let pid = Pid::from_raw(child.id() as libc::pid_t);
    kill(pid, Signal::SIGUSR2).expect("a process");
    assert_eq!(line(&mut lines), "stops 0 rotate true");
    kill(pid, Signal::SIGTERM).expect("a process");
    assert_eq!(line(&mut lines), "stops 1 rotate false");
    assert_eq!(child.wait_with_output().expect("its end").status.code(), Some(0));
}
