// SPDX-License-Identifier: GPL-2.0-or-later

//! Whether and why a session ends, and its exit status.

use crate::error::{Error, Exit};

/// Delay of the line that answers an interrupt, unless the session has ended by then, in nanoseconds.
pub const ANSWER: u64 = 400_000_000;

/// Requests to end or leave the session, and its result.
pub struct Ending {
    /// The session is to be stopped.
    pub stop: bool,
    /// This process is to leave the running session.
    pub leave: bool,
    /// The exit status, if nothing fails.
    pub exit: Exit,
    /// The first failed call.
    failure: Option<Error>,
    /// Number of signals received that end the session.
    signals: usize,
    /// When the first of them is answered by a line; `None`: none came, or it is answered.
    answer: Option<u64>,
    /// Time of `-T`, in nanoseconds of [`crate::host::clock`].
    deadline: Option<u64>,
}

impl Ending {
    /// For a session that has started.
    pub fn new(stop: bool, leave: bool) -> Ending {
        Ending { stop, leave, exit: Exit::Success, failure: None, signals: 0, answer: None, deadline: None }
    }

    /// A call failed: stops the session; the first such error is its result.
    pub fn fail(&mut self, error: Error) {
        self.failure.get_or_insert(error);
        self.stop = true;
    }

    /// Whether a call failed.
    pub fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Records this many stop signals that came by `now`; true from the second one on.
    pub fn count_signals(&mut self, count: usize, now: u64) -> bool {
        if self.signals == 0 && count > 0 {
            self.answer = Some(now.saturating_add(ANSWER));
        }
        self.signals += count;
        self.stop |= self.signals > 0;
        self.signals > 1
    }

    /// Whether the first signal is to be answered by a line now: true only once.
    pub fn takes_answer(&mut self, now: u64) -> bool {
        self.answer.take_if(|due| now >= *due).is_some()
    }

    /// Nanoseconds until the first signal is to be answered; `None` if it is, or there was none.
    pub fn until_answer(&self, now: u64) -> Option<u64> {
        self.answer.map(|due| due.saturating_sub(now))
    }

    /// Whether signals ended the session.
    pub fn is_interrupted(&self) -> bool {
        self.signals > 0
    }

    /// Sets the latest end of the session, in nanoseconds; `None`: no limit.
    pub fn set_deadline(&mut self, deadline: Option<u64>) {
        self.deadline = deadline;
    }

    /// Stops the session if the deadline has passed.
    pub fn check_deadline(&mut self, now: u64) {
        self.stop |= self.deadline.is_some_and(|deadline| now >= deadline);
    }

    /// Nanoseconds until the deadline; `None` without one, and if the session is stopping anyway.
    pub fn until_deadline(&self, now: u64) -> Option<u64> {
        self.deadline.filter(|_| !self.stop).map(|deadline| deadline.saturating_sub(now))
    }

    /// The exit status, or the first error.
    pub fn result(&mut self) -> Result<Exit, Error> {
        self.failure.take().map_or(Ok(self.exit), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_is_the_result() {
        let mut ending = Ending::new(false, false);
        ending.fail(Error::Locked);
        ending.fail(Error::NoCapability);
        assert!(ending.stop && ending.has_failed());
        assert!(matches!(ending.result(), Err(Error::Locked)));
    }

    #[test]
    fn a_second_signal_interrupts() {
        let mut ending = Ending::new(false, false);
        assert!(!ending.count_signals(0, 5) && !ending.stop);
        assert!(!ending.count_signals(1, 5) && ending.stop);
        assert!(ending.count_signals(1, 5));
    }

    #[test]
    fn the_first_signal_is_answered_once() {
        let mut ending = Ending::new(false, false);
        assert!(!ending.count_signals(0, 0) && ending.until_answer(0).is_none());
        assert!(!ending.count_signals(1, 10));
        assert_eq!(ending.until_answer(20), Some(ANSWER - 10));
        assert!(ending.count_signals(1, 30));
        assert!(!ending.takes_answer(20) && ending.takes_answer(ANSWER + 10));
        assert!(!ending.takes_answer(ANSWER + 10) && ending.until_answer(0).is_none());
    }

    #[test]
    fn a_deadline_stops_the_session() {
        let mut ending = Ending::new(false, false);
        assert_eq!(ending.until_deadline(3), None);
        ending.set_deadline(Some(10));
        assert_eq!(ending.until_deadline(3), Some(7));
        ending.check_deadline(9);
        assert!(!ending.stop);
        ending.check_deadline(10);
        assert!(ending.stop && ending.until_deadline(10).is_none());
    }
}
