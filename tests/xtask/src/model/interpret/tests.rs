// SPDX-License-Identifier: GPL-2.0-or-later

//! Single cases of the specification.

use super::aggregate::{extract, variance};
use super::*;
use super::{format, pattern, text};

fn shown(directive_text: (Option<u8>, u8), width: usize, precision: Option<usize>, value: i64) -> String {
    let (flag, conversion) = directive_text;
    let directive = Directive { flag, width: None, precision: None, conversion };
    String::from_utf8(format::directive(&directive, width, precision, &Value::Long(value))).expect("text")
}

#[test]
fn directives() {
    assert_eq!(shown((None, b'd'), 5, None, -42), "  -42");
    assert_eq!(shown((Some(b'0'), b'd'), 5, None, -42), "-0042");
    assert_eq!(shown((Some(b'-'), b'd'), 5, Some(3), 7), "007  ");
    assert_eq!(shown((Some(b'#'), b'x'), 6, None, 42), "  0x2a");
    assert_eq!(shown((None, b'u'), 0, None, -1), "18446744073709551615");
}

#[test]
fn texts() {
    assert_eq!(text::substr(b"abcdef", 4, 99), b"ef");
    assert_eq!(text::substr(b"abcdef", -1, 3), b"");
    assert_eq!(text::replace(b"aaaa", b"aa", b"a"), b"aa");
    assert_eq!(text::token(b",,one,two", b","), (b"one".to_vec(), Some(b"two".to_vec())));
    assert_eq!(
        [text::strtol(b"0x1f", 0), text::strtol(b"-12ab", 10), text::strtol(b"18446744073709551615", 10)],
        [31, -12, -1]
    );
}

#[test]
fn patterns() {
    let once = Repeat { least: 1, most: Some(1) };
    let any = Repeat { least: 0, most: None };
    let sequence =
        vec![(Atom::Byte(b'a'), once), (Atom::Class(vec![(b'0', b'9')], false), any), (Atom::Byte(b'b'), once)];
    let pattern = Pattern { from_start: true, to_end: true, alternatives: vec![sequence] };
    assert!(pattern::is_found(&pattern, b"a0123b"));
    assert!(!pattern::is_found(&pattern, b"a0123bc"));
}

#[test]
fn aggregates() {
    let extracted = |extractor, samples: &[i64]| extract(extractor, samples).ok();
    assert_eq!(extracted(Extractor::Avg, &[-1, -2]), Some(-1));
    assert_eq!(extracted(Extractor::Min, &[]), None);
    assert_eq!(variance(&[1, 3, 5, 7, 9]).ok(), Some(Some(10)));
}

#[test]
fn charts_have_two_empty_rows_at_each_end() {
    let chart = Histogram::Linear { low: 0, high: 30, width: 5 }.chart(&[-3, 7, 99]).ok().expect("a chart");
    let rows: Vec<&str> = chart.lines().map(|line| line.split('|').next().unwrap_or_default().trim()).collect();
    assert_eq!(rows, ["value", "<0", "0", "5", "10", "15", "~", "25", "30", ">30", ""]);
    let chart = Histogram::Log.chart(&[4, 5]).ok().expect("a chart");
    let bar = "@@".to_string() + &" ".repeat(48) + " 2";
    assert_eq!(chart.lines().nth(3), Some(format!("    4 |{bar}").as_str()));
}
