// SPDX-License-Identifier: GPL-2.0-or-later

//! Compares automata with expected matches: by hand, and with the crate `regex` for random patterns.

mod posix;

use super::*;

/// Interprets a plain automaton as runtime-c/regex.c does.
fn matches(plain: &Plain, text: &[u8]) -> bool {
    let mut state = plain.start;
    for &byte in text {
        if state <= MATCHED {
            break;
        }
        state =
            plain.next[usize::from(state) * plain.classes.count() + usize::from(plain.classes.of[usize::from(byte)])];
    }
    plain.at_end[usize::from(state)]
}

fn test(pattern: &str, text: &str) -> bool {
    matches(&compile(pattern.as_bytes()).unwrap(), text.as_bytes())
}

#[test]
fn matches_anywhere() {
    assert!(test("b+c", "aabbcc"));
    assert!(!test("b+d", "aabbcc"));
    assert!(test("", ""));
    assert!(test("AF_INET*", "AF_INE"));
    assert!(test("^a[[:alpha:]]c$", "abc"));
    assert!(!test("^a[[:alpha:]]c$", "abcd"));
    assert!(!test("^a[[:alpha:]]c$", "xabc"));
    assert!(test("x$|^y", "yz") && test("x$|^y", "zx") && !test("x$|^y", "xzy"));
    assert!(test("a{2,3}b", "aaaab") && !test("^a{2,3}b", "aaaab"));
    assert!(test("^$", "") && !test("^$", "a"));
    assert!(test("$^", "") && test("a|$^", "ba") && !test("b$^", "b"));
    assert!(test(".", "\n") && test("[^a]", "\n"));
}

#[test]
fn states_that_do_the_same_are_one() {
    // Dead, matched, initial, and one for each matched byte of `abc`.
    assert_eq!(compile(b"abc").unwrap().at_end.len(), 5);
    assert_eq!(compile(b"(a|b)(a|b)(c|d)").unwrap().at_end.len(), 5);
    let anchored = compile(b"^a").unwrap();
    assert_eq!(anchored.at_end.len(), 3);
    assert_eq!(compile(b"").unwrap().start, MATCHED);
}

/// A xorshift generator with this state.
pub(super) struct Random(pub(super) u64);

impl Random {
    /// A number from 0 to `below` - 1.
    pub(super) fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % below
    }
}

/// A pattern over `a`, `b` and `c`.
pub(super) fn random_pattern(random: &mut Random, depth: usize) -> String {
    let again = |random: &mut Random| random_pattern(random, depth.saturating_sub(1));
    match random.next(if depth == 0 { 4 } else { 14 }) {
        0 => "a".into(),
        1 => "b".into(),
        2 => "[ab]".into(),
        3 => ["c", ".", "[^a]", ""][random.next(4)].into(),
        4..=6 => again(random) + &again(random),
        7 | 8 => format!("(?:{}|{})", again(random), again(random)),
        9 | 10 => format!("({})", again(random)),
        11 => format!("({}){}", again(random), ["*", "+", "?", "{2}", "{1,2}", "{0,2}", "{2,}"][random.next(7)]),
        12 => format!("(?:{}){}", again(random), ["*", "+", "?", "{2}", "{1,2}", "{0,2}", "{2,}"][random.next(7)]),
        _ => ["^", "$", "a*", "b*"][random.next(4)].into(),
    }
}

/// Up to eight characters of `a`, `b` and `c`.
pub(super) fn random_text(random: &mut Random) -> String {
    (0..random.next(9)).map(|_| ['a', 'a', 'b', 'b', 'c'][random.next(5)]).collect()
}

#[test]
fn agrees_with_the_crate() {
    let mut random = Random(0x5eed);
    for _ in 0..3_000 {
        let pattern = random_pattern(&mut random, 4);
        let plain = compile(pattern.as_bytes()).unwrap();
        let other =
            regex::bytes::RegexBuilder::new(&pattern).unicode(false).dot_matches_new_line(true).build().unwrap();
        for _ in 0..20 {
            let text = random_text(&mut random);
            assert_eq!(matches(&plain, text.as_bytes()), other.is_match(text.as_bytes()), "{pattern:?} on {text:?}");
        }
    }
}

/// CPU time of this thread, in seconds.
fn processor_seconds() -> i64 {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike;
    getrusage(UsageWho::RUSAGE_THREAD).unwrap().user_time().num_seconds()
}

/// Builds both and checks that it ends soon: unbounded work would take hours.
fn both(pattern: &str) -> (Result<Plain, Error>, Result<Tagged, Error>) {
    let began = processor_seconds();
    let both = (compile(pattern.as_bytes()), compile_groups(pattern.as_bytes()));
    let took = processor_seconds() - began;
    assert!(took < 60, "{pattern:.60}: {took} s");
    both
}

#[test]
fn hostile_patterns_end() {
    let large = [
        ".*a.{100}b".to_string(),
        "(a|b)*a(a|b){20}".to_string(),
        "a{12344}".to_string(),
        "a{12344}{12344}".to_string(),
        "(a{100}){100}".to_string(),
        "((a{100}){100}){100}".to_string(),
        format!("{}a{}", "(".repeat(150), "{9})".repeat(150)),
        "x.{3000}y".to_string(),
        "(a{0,30}){0,30}.{0,900}x".to_string(),
        "^a?{6000}(b)".to_string(),
        "(a?b){3000}".to_string(),
    ];
    let is_large = |error: Error| matches!(error.kind, ErrorKind::TooLarge | ErrorKind::TooDeep);
    for pattern in &large {
        let (plain, tagged) = both(pattern);
        assert!(plain.is_err_and(is_large) && tagged.is_err_and(is_large), "{pattern:.60}");
    }
    for pattern in [
        "(a*)*b",
        "(a|a)*b",
        "((a*)*)*",
        "^a{12344}$",
        "(.*)(.*)(.*)(.*)x",
        "(.*)(.{1,60})(.{1,60})x",
        "((((((((a*)*)*)*)*)*)*)*)*b",
        "(x+x+)+y",
    ] {
        let (plain, tagged) = both(pattern);
        assert!(plain.is_ok() && tagged.is_ok(), "{pattern}");
    }
    // Cheap for a plain match; too expensive for groups.
    for pattern in ["(a?){50}a{50}", "(a{0,30}){0,30}", "(a|b)*a(a|b){12}"] {
        let (plain, tagged) = both(pattern);
        assert!(plain.is_ok() && tagged.is_err_and(is_large), "{pattern}");
    }
}

#[test]
fn random_bytes_are_no_danger() {
    let mut random = Random(7);
    let alphabet = b"ab()[]{}*+?|^$.\\-:,0123x\xff";
    for _ in 0..20_000 {
        let pattern: Vec<u8> = (0..random.next(12)).map(|_| alphabet[random.next(alphabet.len())]).collect();
        for error in [compile(&pattern).err(), compile_groups(&pattern).err()].into_iter().flatten() {
            assert!(error.start <= error.end && error.end <= pattern.len(), "{pattern:?} {error:?}");
        }
    }
}
