// SPDX-License-Identifier: GPL-2.0-or-later

//! Progress messages while arming or disarming takes long: the number of probes and the estimated remaining time.

use spile_abi::device::Arming as State;

const NS_PER_S: u64 = 1_000_000_000;
/// Delay of the first message.
const FIRST: u64 = 3 * NS_PER_S;
/// Interval of messages.
const INTERVAL: u64 = 10 * NS_PER_S;

/// The progress of arming or disarming, and when to report it.
#[derive(Debug)]
pub struct Arming {
    /// Times in ns, by [`crate::host::clock::now`].
    begun: u64,
    due: u64,
    /// Armed when the first message was due; the baseline for disarming.
    at_first: Option<(u64, u32)>,
    cancelled: bool,
}

impl Arming {
    /// A call that starts at `now`, in nanoseconds of [`crate::host::clock::now`].
    pub fn new(now: u64) -> Arming {
        Arming { begun: now, due: now.saturating_add(FIRST), at_first: None, cancelled: false }
    }

    /// Whether to cancel the call: true only once.
    pub fn is_to_be_cancelled(&mut self) -> bool {
        !std::mem::replace(&mut self.cancelled, true)
    }

    /// Whether a message is due.
    pub fn is_due(&self, now: u64) -> bool {
        now >= self.due
    }

    /// Nanoseconds until a message is due.
    pub fn until_next(&self, now: u64) -> u64 {
        self.due.saturating_sub(now)
    }

    /// The message that is due. `armed` of `probes` are armed now; `left`: the module's estimate of the rest, if they
    /// are being armed, not disarmed. Without one there is none here: sites that are cheap to arm come first, and their
    /// pace says nothing about the rest. `None` if none is armed: begin or end probes are running.
    pub fn text(&mut self, now: u64, armed: u32, probes: u32, left: Option<State>) -> Option<String> {
        self.due = now.saturating_add(INTERVAL);
        let elapsed = now.saturating_sub(self.begun);
        if armed == 0 {
            return None;
        }
        let seconds = elapsed / NS_PER_S;
        if let Some(state) = left {
            let rest = match state.left {
                0 => String::new(),
                left => format!(", the rest may take {} s more", left.div_ceil(1000)),
            };
            let enabled = match state.to_enable {
                0 => String::new(),
                all => format!(", {} of {all} kprobes are enabled", state.enabled),
            };
            return Some(format!(
                "{armed} of {probes} probes are prepared{enabled} after {seconds} s{rest}; interrupt (^C) to end it"
            ));
        }
        let (since, before) = *self.at_first.get_or_insert((now, armed));
        let gone = before.saturating_sub(armed);
        let rest = match gone {
            0 => String::new(),
            gone => {
                let left =
                    u128::from(now.saturating_sub(since)) * u128::from(armed) / u128::from(gone) / u128::from(NS_PER_S);
                format!(", which may take {left} s more")
            }
        };
        Some(format!("{armed} probes are still to be disarmed after {seconds} s{rest}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_at_intervals() {
        let mut arming = Arming::new(NS_PER_S);
        assert!(!arming.is_due(3 * NS_PER_S));
        assert!(arming.is_due(4 * NS_PER_S));
        let line = arming.text(6 * NS_PER_S, 1000, 4000, Some(State::default())).unwrap();
        assert_eq!(line, "1000 of 4000 probes are prepared after 5 s; interrupt (^C) to end it");
        assert!(!arming.is_due(15 * NS_PER_S));
        assert!(arming.is_due(16 * NS_PER_S));
    }

    #[test]
    fn a_message_has_the_module_s_estimate() {
        let mut arming = Arming::new(0);
        let left = State { to_enable: 0, enabled: 0, left: 61_500 };
        let line = arming.text(5 * NS_PER_S, 1000, 1100, Some(left)).unwrap();
        assert!(line.starts_with("1000 of 1100 probes are prepared after 5 s, the rest may take 62 s more;"), "{line}");
        let left = State { to_enable: 900, enabled: 300, left: 2000 };
        let line = arming.text(15 * NS_PER_S, 1100, 1100, Some(left)).unwrap();
        assert!(
            line.starts_with(
                "1100 of 1100 probes are prepared, 300 of 900 kprobes are enabled after 15 s, the rest may take 2 s more;"
            ),
            "{line}"
        );
    }

    #[test]
    fn slow_begin_probes_are_not_reported_as_arming() {
        assert_eq!(Arming::new(0).text(9 * NS_PER_S, 0, 4, Some(State::default())), None);
    }

    #[test]
    fn the_progress_of_disarming_is_reported() {
        let mut arming = Arming::new(0);
        assert_eq!(
            arming.text(3 * NS_PER_S, 900, 1000, None).unwrap(),
            "900 probes are still to be disarmed after 3 s"
        );
        let line = arming.text(13 * NS_PER_S, 400, 1000, None).unwrap();
        assert_eq!(line, "400 probes are still to be disarmed after 13 s, which may take 8 s more");
    }

    #[test]
    fn it_is_cancelled_once() {
        let mut arming = Arming::new(0);
        assert!(arming.is_to_be_cancelled());
        assert!(!arming.is_to_be_cancelled());
    }
}
