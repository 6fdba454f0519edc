// SPDX-License-Identifier: GPL-2.0-or-later

//! Order of versions: of kernels and of the language.

use std::cmp::Ordering;

/// Compares runs of digits by value, everything else byte by byte: `6.9` before `6.10`, `6.1` before `6.1.0`.
pub fn compare_versions(left: &str, right: &str) -> Ordering {
    let (mut left, mut right) = (left.as_bytes(), right.as_bytes());
    loop {
        let (a, b) = (digits(left), digits(right));
        if a > 0 && b > 0 {
            let ordering = compare_digits(&left[..a], &right[..b]);
            if ordering.is_ne() {
                return ordering;
            }
            (left, right) = (&left[a..], &right[b..]);
            continue;
        }
        match (left.split_first(), right.split_first()) {
            (Some((a, left_rest)), Some((b, right_rest))) if a == b => (left, right) = (left_rest, right_rest),
            (a, b) => return a.map(|(byte, _)| byte).cmp(&b.map(|(byte, _)| byte)),
        }
    }
}

fn digits(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

fn compare_digits(left: &[u8], right: &[u8]) -> Ordering {
    fn significant(digits: &[u8]) -> &[u8] {
        let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
        &digits[zeros..]
    }
    let (a, b) = (significant(left), significant(right));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        let ascending = ["", "2.6", "2.6.9", "2.6.18", "5.10.0-rc1", "6.1", "6.1.0", "6.1.10", "10"];
        for (at, left) in ascending.iter().enumerate() {
            for (other, right) in ascending.iter().enumerate() {
                assert_eq!(compare_versions(left, right), at.cmp(&other), "{left} {right}");
            }
        }
        assert_eq!(compare_versions("6.01", "6.1"), Ordering::Equal);
    }
}
