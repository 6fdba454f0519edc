// SPDX-License-Identifier: GPL-2.0-or-later

//! Progress messages while arming or disarming takes long: the number of probes and the estimated remaining time.

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
    /// When the last line of arming was due, and how many were armed. What is cheap to arm comes first: the beginning says little
    /// of the rest.
    last: (u64, u32),
    /// Nanoseconds that a probe took then, on average; 0: it was the first line.
    each: u64,
    cancelled: bool,
}

impl Arming {
    /// A call that starts at `now`, in nanoseconds of [`crate::host::clock::now`].
    pub fn new(now: u64) -> Arming {
        Arming { begun: now, due: now.saturating_add(FIRST), at_first: None, last: (now, 0), each: 0, cancelled: false }
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

    /// How long the rest takes, if each takes as long as those since the last line. If these took longer than those before, as they
    /// do when the kernel's lists grow, those to come take longer again; of the first line it is not known.
    fn left(&mut self, now: u64, armed: u32, probes: u32) -> String {
        let (since, before) = std::mem::replace(&mut self.last, (now, armed));
        let more = u64::from(armed.saturating_sub(before));
        let Some(each) = now.saturating_sub(since).checked_div(more) else { return String::new() };
        let earlier = std::mem::replace(&mut self.each, each.max(1));
        let all = u128::from(each) * u128::from(probes.saturating_sub(armed)) / u128::from(NS_PER_S);
        match earlier {
            0 => format!(", the rest may take {all} s or more"),
            earlier if earlier < each => {
                let slower = all * u128::from(earlier + each.min(earlier.saturating_mul(8))) / u128::from(2 * earlier);
                format!(", the rest may take {slower} s more")
            }
            _ => format!(", the rest may take {all} s more"),
        }
    }

    /// The message that is due. `armed` of `probes` are armed now; `arms`: they are being armed, not disarmed. `None`
    /// if none is armed: begin or end probes are running.
    pub fn text(&mut self, now: u64, armed: u32, probes: u32, arms: bool) -> Option<String> {
        self.due = now.saturating_add(INTERVAL);
        let elapsed = now.saturating_sub(self.begun);
        if armed == 0 {
            return None;
        }
        let seconds = elapsed / NS_PER_S;
        if arms {
            let left = self.left(now, armed, probes);
            return Some(format!(
                "{armed} of {probes} probes are prepared after {seconds} s{left}; interrupt (^C) to end it"
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
    fn a_line_says_how_long_the_rest_takes() {
        let mut arming = Arming::new(NS_PER_S);
        assert!(!arming.is_due(3 * NS_PER_S));
        assert!(arming.is_due(4 * NS_PER_S));
        let line = arming.text(6 * NS_PER_S, 1000, 4000, true).unwrap();
        assert!(
            line.starts_with("1000 of 4000 probes are prepared after 5 s, the rest may take 15 s or more"),
            "{line}"
        );
        assert!(!arming.is_due(15 * NS_PER_S));
        let line = arming.text(16 * NS_PER_S, 1500, 4000, true).unwrap();
        assert!(
            line.starts_with("1500 of 4000 probes are prepared after 15 s, the rest may take 125 s more"),
            "{line}"
        );
    }

    /// As where arming took 33 s of which 18 s were said: the work for one grows with those that are there.
    #[test]
    fn the_rest_is_not_said_to_be_half_of_what_it_is() {
        const PROBES: u32 = 40_000;
        let whole = 33.0;
        let armed = |seconds: f64| (f64::from(PROBES) * (seconds / whole).sqrt()) as u32;
        let mut arming = Arming::new(0);
        for seconds in [3, 13, 23] {
            let line = arming.text(seconds * NS_PER_S, armed(seconds as f64), PROBES, true).unwrap();
            let said = line.split("may take ").nth(1).unwrap().split(' ').next().unwrap().parse::<f64>().unwrap();
            let really = whole - seconds as f64;
            let is_near = said > really * 0.7 && said < really * 1.5;
            assert!(is_near || (seconds == 3 && line.contains("s or more")), "{line}, {really}");
        }
    }

    #[test]
    fn begin_probes_that_take_long_are_no_arming() {
        assert_eq!(Arming::new(0).text(9 * NS_PER_S, 0, 4, true), None);
    }

    #[test]
    fn what_is_left_to_disarm_is_reported() {
        let mut arming = Arming::new(0);
        assert_eq!(
            arming.text(3 * NS_PER_S, 900, 1000, false).unwrap(),
            "900 probes are still to be disarmed after 3 s"
        );
        let line = arming.text(13 * NS_PER_S, 400, 1000, false).unwrap();
        assert_eq!(line, "400 probes are still to be disarmed after 13 s, which may take 8 s more");
    }

    #[test]
    fn it_is_cancelled_once() {
        let mut arming = Arming::new(0);
        assert!(arming.is_to_be_cancelled());
        assert!(!arming.is_to_be_cancelled());
    }
}
