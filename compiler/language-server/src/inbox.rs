// SPDX-License-Identifier: GPL-2.0-or-later

//! The messages that wait for their turn. Those of a client that sends faster than it is answered take limited memory: the thread
//! that reads them waits meanwhile, and so does the client.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use lsp_server::{Message, RequestId};

use crate::transport::{Incoming, MAX_MESSAGE};

/// Messages that wait, and their bytes, at most. One always fits.
const MOST_MESSAGES: usize = 1 << 16;
const MOST_BYTES: u64 = MAX_MESSAGE;

/// A queue between the thread that reads and the one that answers.
#[derive(Default)]
pub struct Inbox {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    /// Each with its bytes.
    messages: VecDeque<(Incoming, u64)>,
    bytes: u64,
    /// How many of them cancel the request.
    cancelled: HashMap<RequestId, usize>,
    /// Nothing comes any more, or nobody takes it.
    is_closed: bool,
}

impl Inbox {
    /// Adds a message when there is room; false: nobody takes it.
    pub fn put(&self, message: Incoming, bytes: u64) -> bool {
        let mut waiting = self.lock();
        while !waiting.is_closed && !waiting.has_room(bytes) {
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        if waiting.is_closed {
            return false;
        }
        if let Some(id) = cancelled_by(&message) {
            *waiting.cancelled.entry(id).or_default() += 1;
        }
        waiting.bytes += bytes;
        waiting.messages.push_back((message, bytes));
        self.changed.notify_all();
        true
    }

    /// The next message, if there is one.
    pub fn take(&self) -> Option<Incoming> {
        self.lock().next(&self.changed)
    }

    /// The same when there is one; None: the input has ended.
    pub fn wait(&self) -> Option<Incoming> {
        let mut waiting = self.lock();
        loop {
            if let Some(message) = waiting.next(&self.changed) {
                return Some(message);
            }
            if waiting.is_closed {
                return None;
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether a message that waits cancels the request.
    pub fn is_cancelled(&self, id: &RequestId) -> bool {
        self.lock().cancelled.contains_key(id)
    }

    /// No message comes any more, or no message is taken any more.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn has_room(&self, bytes: u64) -> bool {
        self.messages.is_empty()
            || self.messages.len() < MOST_MESSAGES && self.bytes.saturating_add(bytes) <= MOST_BYTES
    }

    fn next(&mut self, changed: &Condvar) -> Option<Incoming> {
        let (message, bytes) = self.messages.pop_front()?;
        self.bytes -= bytes;
        if let Some(id) = cancelled_by(&message)
            && let Some(count) = self.cancelled.get_mut(&id)
        {
            *count -= 1;
            if *count == 0 {
                self.cancelled.remove(&id);
            }
        }
        changed.notify_all();
        Some(message)
    }
}

/// The request that the message cancels.
fn cancelled_by(message: &Incoming) -> Option<RequestId> {
    let Incoming::Message(Message::Notification(notification)) = message else { return None };
    let id = notification.params.get("id").filter(|_| notification.method == "$/cancelRequest")?;
    serde_json::from_value(id.clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;

    fn cancels(id: i32) -> Incoming {
        let params = serde_json::json!({ "id": id });
        Incoming::Message(Message::Notification(lsp_server::Notification { method: "$/cancelRequest".into(), params }))
    }

    #[test]
    fn cancelled_requests_are_known_while_the_message_waits() {
        let inbox = Inbox::default();
        for id in [7, 7, 8] {
            assert!(inbox.put(cancels(id), 1));
        }
        let known = || [7, 8, 9].map(|id| inbox.is_cancelled(&id.into()));
        assert_eq!(known(), [true, true, false]);
        inbox.take().unwrap();
        assert_eq!(known(), [true, true, false]);
        inbox.take().unwrap();
        assert_eq!(known(), [false, true, false]);
        inbox.close();
        assert!(!inbox.put(cancels(9), 1) && inbox.wait().is_some() && inbox.wait().is_none());
    }

    #[test]
    fn who_sends_faster_than_is_answered_waits() {
        let inbox = Arc::new(Inbox::default());
        let sender = Arc::clone(&inbox);
        let thread =
            std::thread::spawn(move || (0..100).take_while(|id| sender.put(cancels(*id), MOST_BYTES / 4)).count());
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(inbox.lock().messages.len(), 4);
        inbox.take().unwrap();
        while inbox.lock().messages.len() < 4 {
            std::thread::yield_now();
        }
        inbox.close();
        assert_eq!(thread.join().unwrap(), 5);
    }
}
