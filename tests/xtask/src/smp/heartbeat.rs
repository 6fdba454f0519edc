// SPDX-License-Identifier: GPL-2.0-or-later

//! Detects whether a guest is alive: it prints a line each second, which begins with the name of what it runs.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use spile_guest::Interrupter;

/// The guest's last line, and its time. Clones are of the same guest.
#[derive(Clone, Debug)]
pub struct Heartbeat(Arc<Mutex<LastOutput>>);

#[derive(Debug)]
struct LastOutput {
    when: Instant,
    /// The last whole line.
    last: String,
    /// The line that has not ended: a guest's console gives few bytes at a time.
    begun: String,
    announces: bool,
}

/// What a line of the guest is about.
fn subject(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}

impl Heartbeat {
    /// Of a guest that starts now. `announces`: says on stderr what it runs, when that changes.
    pub fn new(announces: bool) -> Heartbeat {
        Heartbeat(Arc::new(Mutex::new(LastOutput {
            when: Instant::now(),
            last: String::new(),
            begun: String::new(),
            announces,
        })))
    }

    /// The last line.
    pub fn last(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).last.clone()
    }

    fn silence(&self) -> Duration {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).when.elapsed()
    }

    /// Waits for the guest; kills it after a silence of that length, or longer if this machine is busy.
    pub fn watch<T>(&self, guest: &Interrupter, longest: Duration, wait: impl FnOnce() -> T) -> T {
        let over = AtomicBool::new(false);
        // Booting is not silence.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).when = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(200));
                    if self.silence() > longest * crate::measure::busy() {
                        return guest.kill();
                    }
                }
            });
            let result = wait();
            over.store(true, Ordering::Relaxed);
            result
        })
    }
}

impl Write for Heartbeat {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        heard.when = Instant::now();
        heard.begun += &String::from_utf8_lossy(bytes);
        while let Some((line, rest)) = heard.begun.split_once('\n') {
            let (line, rest) = (line.trim_end().to_string(), rest.to_string());
            if heard.announces && subject(&line) != subject(&heard.last) {
                eprintln!("runs    {}", subject(&line));
            }
            heard.last = line;
            heard.begun = rest;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_kept() {
        let heartbeat = Heartbeat::new(false);
        for bytes in [&b"laten"[..], b"cy 1\nla", b"tency 2\r\nlat"] {
            heartbeat.clone().write_all(bytes).expect("it never fails");
        }
        assert_eq!(heartbeat.last(), "latency 2");
        assert_eq!(subject(&heartbeat.last()), "latency");
        assert!(heartbeat.silence() < Duration::from_secs(30));
    }
}
