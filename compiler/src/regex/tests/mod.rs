//! Automata against what they should match: by hand, and against a crate's over random patterns.

mod posix;

use std::collections::HashMap;

use super::*;

/// What runtime-c/regex.c does with a plain automaton.
fn matches(plain: &Plain, text: &[u8]) -> bool {
    let mut state = plain.start;
    for &byte in text {
        if state <= MATCHED {
            break;
        }
        state = plain.next[usize::from(state) * plain.classes.count() + usize::from(plain.classes.of[usize::from(byte)])];
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
    // Dead, matched, start, and one for each byte that has matched of `abc`.
    assert_eq!(compile(b"abc").unwrap().at_end.len(), 5);
    assert_eq!(compile(b"(a|b)(a|b)(c|d)").unwrap().at_end.len(), 5);
    let anchored = compile(b"^a").unwrap();
    assert_eq!(anchored.at_end.len(), 3);
    assert_eq!(compile(b"").unwrap().start, MATCHED);
}

pub(super) struct Random(pub(super) u64);

impl Random {
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

pub(super) fn random_text(random: &mut Random) -> String {
    (0..random.next(9)).map(|_| ['a', 'a', 'b', 'b', 'c'][random.next(5)]).collect()
}

#[test]
fn agrees_with_the_crate() {
    let mut random = Random(0x5eed);
    for _ in 0..3_000 {
        let pattern = random_pattern(&mut random, 4);
        let plain = compile(pattern.as_bytes()).unwrap();
        let other = regex::bytes::RegexBuilder::new(&pattern).unicode(false).dot_matches_new_line(true).build().unwrap();
        for _ in 0..20 {
            let text = random_text(&mut random);
            assert_eq!(matches(&plain, text.as_bytes()), other.is_match(text.as_bytes()), "{pattern:?} on {text:?}");
        }
    }
}

/// Processor time of this thread.
fn processor_ms() -> i64 {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike;
    getrusage(UsageWho::RUSAGE_THREAD).unwrap().user_time().num_milliseconds()
}

/// The processor time of work that has nothing to do with patterns, in parts of what an idle machine takes for it (150 ms), not
/// less than 1: more where other programs have the caches, or run on the same core.
fn slowness() -> f64 {
    let began = processor_ms();
    let mut seen: HashMap<Vec<u32>, u32> = HashMap::new();
    for number in 0..50_000u32 {
        *seen.entry((0..16).map(|place| number.wrapping_mul(2 * place + 1)).collect()).or_default() += 1;
    }
    assert_eq!(seen.len(), 50_000);
    ((processor_ms() - began) as f64 / 150.0).max(1.0)
}

/// What comes out, and whether that took less than a second of an idle machine's processor time, at the best of five times.
fn timed<T>(run: impl Fn() -> T) -> (T, bool) {
    let once = || {
        let began = processor_ms();
        (run(), processor_ms() - began)
    };
    let (value, first) = once();
    let is_soon = |took: i64| took < 1_000 || (took as f64) < 1_000.0 * slowness();
    (value, is_soon(first) || (0..4).any(|_| is_soon(once().1)))
}

/// Neither takes long, whatever comes out.
fn soon(pattern: &str) -> (Result<Plain, Error>, Result<Tagged, Error>) {
    let (plain, plain_is_soon) = timed(|| compile(pattern.as_bytes()));
    let (tagged, tagged_is_soon) = timed(|| compile_groups(pattern.as_bytes()));
    assert!(plain_is_soon && tagged_is_soon, "{pattern}: soon {plain_is_soon}, with groups {tagged_is_soon}");
    (plain, tagged)
}

#[test]
fn hostile_patterns_end_soon() {
    let large = [
        ".*a.{100}b".to_string(),
        "(a|b)*a(a|b){20}".to_string(),
        "a{12344}{12344}".to_string(),
        "((a{100}){100}){100}".to_string(),
        format!("{}a{}", "(".repeat(150), "{9})".repeat(150)),
        "x.{3000}y".to_string(),
        "(a{0,30}){0,30}.{0,900}x".to_string(),
    ];
    for pattern in large {
        let (plain, tagged) = soon(&pattern);
        for error in [plain.unwrap_err(), tagged.unwrap_err()] {
            assert!(matches!(error.kind, ErrorKind::TooLarge | ErrorKind::TooDeep), "{pattern}: {error:?}");
        }
    }
    for pattern in ["(a*)*b", "(a|a)*b", "((a*)*)*", "^a{1000}$", "(.*)(.*)(.*)(.*)x", "((((((((a*)*)*)*)*)*)*)*)*b", "(x+x+)+y"] {
        let (plain, tagged) = soon(pattern);
        assert!(plain.is_ok() && tagged.is_ok(), "{pattern}");
    }
    for pattern in ["(a?){50}a{50}", "a{12344}", "(a{100}){100}", "(a{0,30}){0,30}", "(a|b)*a(a|b){12}", "(.*)(.{1,60})(.{1,60})x"] {
        let _ = soon(pattern);
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
