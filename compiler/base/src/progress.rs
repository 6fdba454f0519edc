// SPDX-License-Identifier: GPL-2.0-or-later

//! A progress line for interactive users: on standard error, only if that is a terminal, and only after half a second.
//! It disappears when the work is done. Drawn by indicatif.

use std::io::{self, IsTerminal, Read, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work that takes less time shows no progress.
const QUIET: Duration = Duration::from_millis(500);
const STEP: Duration = Duration::from_millis(250);

/// What is shown at present, if anything is.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Prints a line on standard error, above the progress that is shown. It has no control characters.
pub fn line(text: &str) {
    let shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    match &*shown {
        Some(bar) if !bar.is_hidden() => bar.println(text),
        // Nobody can be told of an error.
        _ => drop(writeln!(io::stderr(), "{text}")),
    }
}

/// Work in progress; it ends when this is dropped.
pub struct Progress {
    bar: ProgressBar,
    /// Shows the bar when the time has come, unless the sender is dropped before. `None`: nothing is shown.
    showing: Option<(Sender<()>, JoinHandle<()>)>,
}

/// Updates the progress text, for code that has no [`Progress`]; no effect when the work is done.
#[derive(Clone)]
pub struct ProgressHandle(ProgressBar);

impl ProgressHandle {
    /// Replaces the text that is shown; it has no control characters.
    pub fn say(&self, text: &str) {
        self.0.set_message(text.to_string());
    }
}

impl Progress {
    /// `wanted`: false where other lines would be printed in between.
    pub fn start(text: &str, wanted: bool) -> Progress {
        Progress::on(text, None, wanted && io::stderr().is_terminal(), ProgressDrawTarget::stderr)
    }

    /// Of work with so many bytes ([`Progress::read`]).
    pub fn of_bytes(text: &str, bytes: u64) -> Progress {
        Progress::on(text, Some(bytes), io::stderr().is_terminal(), ProgressDrawTarget::stderr)
    }

    fn on(
        text: &str,
        bytes: Option<u64>,
        shown: bool,
        target: impl FnOnce() -> ProgressDrawTarget + Send + 'static,
    ) -> Progress {
        let bar = ProgressBar::with_draw_target(bytes, ProgressDrawTarget::hidden()).with_message(text.to_string());
        let form = if bytes.is_some() { "{msg} ... {percent} %, {elapsed}" } else { "{msg} ... {elapsed}" };
        if let Ok(style) = ProgressStyle::with_template(form) {
            bar.set_style(style);
        }
        let (sender, ended) = channel::<()>();
        let later = bar.clone();
        let show = move || {
            if ended.recv_timeout(QUIET) == Err(RecvTimeoutError::Timeout) {
                later.set_draw_target(target());
                later.enable_steady_tick(STEP);
                *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(later);
            }
        };
        let thread = || std::thread::Builder::new().spawn(show).ok();
        Progress { bar, showing: shown.then(thread).flatten().map(|thread| (sender, thread)) }
    }

    /// The present text.
    pub fn say(&self, text: &str) {
        self.bar.set_message(text.to_string());
    }

    /// None: nothing is shown.
    pub fn handle(&self) -> Option<ProgressHandle> {
        self.showing.as_ref().map(|_| ProgressHandle(self.bar.clone()))
    }

    /// What is read from it is counted.
    pub fn read<R: Read>(&self, from: R) -> impl Read + use<R> {
        self.bar.wrap_read(from)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.showing.take() {
            drop(sender);
            let _ = thread.join();
            self.bar.finish_and_clear();
            SHOWN.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Instant;

    use indicatif::TermLike;

    use super::*;

    /// A terminal that remembers its text, and how often a line was cleared.
    #[derive(Clone, Debug, Default)]
    struct Screen(Arc<Mutex<(String, usize)>>);

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            80
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().0.push_str(text);
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            self.0.lock().unwrap().1 += 1;
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What was drawn until `is_enough` of it, and whether a line has been cleared at the end.
    fn shown(shown: bool, bytes: Option<u64>, is_enough: impl Fn(&str, Duration) -> bool) -> (String, bool) {
        let screen = Screen::default();
        let other = screen.clone();
        let began = Instant::now();
        let target = move || ProgressDrawTarget::term_like(Box::new(other));
        let progress = Progress::on("first", bytes, shown, target);
        progress.say("second");
        let mut half = [0; 50];
        progress.read(&[1; 100][..]).read_exact(&mut half).unwrap();
        while !is_enough(&screen.0.lock().unwrap().0, began.elapsed()) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let cleared = screen.0.lock().unwrap().1;
        drop(progress);
        let screen = screen.0.lock().unwrap();
        (screen.0.clone(), screen.1 > cleared)
    }

    #[test]
    fn only_what_takes_long_and_only_on_a_terminal() {
        // On a busy machine even this takes long now and then.
        let short = (0..20).map(|_| shown(true, None, |_, _| true).0).find(String::is_empty);
        assert_eq!(short.as_deref(), Some(""));
        assert_eq!(shown(false, None, |_, time| time > QUIET + STEP).0, "");
        let is_drawn = |text: &str, time: Duration| text.contains("second") || time > Duration::from_secs(60);
        let (long, cleared) = shown(true, None, is_drawn);
        assert!(long.contains("second ... ") && cleared, "{long:?} {cleared}");
        let (part, _) = shown(true, Some(100), is_drawn);
        assert!(part.contains("second ... 50 %, "), "{part:?}");
    }
}
