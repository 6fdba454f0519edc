// SPDX-License-Identifier: GPL-2.0-or-later

//! A progress line for interactive users: on standard error, only if that is a terminal, and only after half a second.
//! It disappears when the work is done.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Work that takes less time shows no progress.
const QUIET: Duration = Duration::from_millis(500);
const STEP: Duration = Duration::from_millis(250);

/// Work in progress; it ends when this is dropped.
pub struct Progress {
    showing: Option<(ProgressHandle, JoinHandle<()>)>,
}

/// Updates the progress text, for code that has no [`Progress`]; no effect when the work is done.
#[derive(Clone)]
pub struct ProgressHandle(Sender<Option<String>>);

impl ProgressHandle {
    /// Replaces the text that is shown.
    pub fn say(&self, text: &str) {
        let _ = self.0.send(Some(text.to_string()));
    }
}

impl Progress {
    /// `wanted`: false where other lines would be printed in between.
    pub fn start(text: &str, wanted: bool) -> Progress {
        Progress::on(text, wanted && std::io::stderr().is_terminal(), std::io::stderr)
    }

    fn on<W: Write>(text: &str, shown: bool, out: impl Fn() -> W + Send + 'static) -> Progress {
        let (sender, receiver) = channel();
        let text = text.to_string();
        let thread = || std::thread::Builder::new().spawn(move || show(text, &receiver, &out)).ok();
        Progress { showing: shown.then(thread).flatten().map(|thread| (ProgressHandle(sender), thread)) }
    }

    /// The present text.
    pub fn say(&self, text: &str) {
        if let Some((handle, _)) = &self.showing {
            handle.say(text);
        }
    }

    /// None: nothing is shown.
    pub fn handle(&self) -> Option<ProgressHandle> {
        self.showing.as_ref().map(|(handle, _)| handle.clone())
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((handle, thread)) = self.showing.take() {
            let _ = handle.0.send(None);
            let _ = thread.join();
        }
    }
}

fn show<W: Write>(mut text: String, updates: &Receiver<Option<String>>, out: &dyn Fn() -> W) {
    let started = Instant::now();
    let mut shown = false;
    loop {
        let wait = if shown { STEP } else { QUIET.saturating_sub(started.elapsed()) };
        match updates.recv_timeout(wait) {
            Ok(Some(now)) => text = now,
            Ok(None) | Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if started.elapsed() >= QUIET {
            shown = true;
            let _ = write!(
                out(),
                "\r\x1b[K{} ... {:.1} s",
                spile_abi::escape::line(&text),
                started.elapsed().as_secs_f64()
            );
            let _ = out().flush();
        }
    }
    if shown {
        let _ = write!(out(), "\r\x1b[K");
        let _ = out().flush();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Screen(Arc<Mutex<Vec<u8>>>);

    impl Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// What is on the screen once `is_enough` of it, and again when the progress has ended.
    fn shown(shown: bool, is_enough: impl Fn(&[u8], Duration) -> bool) -> String {
        let screen = Screen::default();
        let other = screen.clone();
        let began = Instant::now();
        let progress = Progress::on("first", shown, move || other.clone());
        progress.say("second");
        while !is_enough(&screen.0.lock().unwrap(), began.elapsed()) {
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(progress);
        let bytes = screen.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn only_what_takes_long_and_only_on_a_terminal() {
        // On a busy machine even this takes long now and then.
        let short = (0..20).map(|_| shown(true, |_, _| true)).find(String::is_empty);
        assert_eq!(short.as_deref(), Some(""));
        assert_eq!(shown(false, |_, time| time > QUIET + STEP), "");
        let long = shown(true, |bytes, time| !bytes.is_empty() || time > Duration::from_secs(60));
        assert!(long.starts_with("\r\x1b[Ksecond ... ") && long.ends_with(" s\r\x1b[K"), "{long:?}");
    }
}
