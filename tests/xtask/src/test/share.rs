// SPDX-License-Identifier: GPL-2.0-or-later

//! Divides the tests among guests. The same tests are together in each run, as long as none is added or removed, so
//! that side effects of a test are reproducible.

use super::find::Test;

/// More than there are CPUs, so that none waits long for the last.
pub const GUESTS: usize = 6;
/// Fewer tests do not justify another guest's boot.
const LEAST: u64 = 120;

/// Shares of about the same work, at most `count`; the one with the most first.
pub fn shares(tests: Vec<(usize, &Test)>, count: usize) -> Vec<Vec<(usize, &Test)>> {
    let all: u64 = tests.iter().map(|(_, test)| weight(test)).sum();
    let count = usize::try_from(all / LEAST).unwrap_or(count).clamp(1, count);
    let mut shares: Vec<(u64, Vec<(usize, &Test)>)> = vec![(0, Vec::new()); count];
    let mut tests = tests;
    tests.sort_by_key(|(_, test)| std::cmp::Reverse(weight(test)));
    for numbered in tests {
        // SANITY: there is at least one.
        let least = shares.iter_mut().min_by_key(|(work, _)| *work).expect("a share");
        least.0 += weight(numbered.1);
        least.1.push(numbered);
    }
    shares.retain(|(_, tests)| !tests.is_empty());
    shares.sort_by_key(|(work, _)| std::cmp::Reverse(*work));
    for (_, tests) in &mut shares {
        tests.sort_by_key(|(number, _)| *number);
    }
    shares.into_iter().map(|(_, tests)| tests).collect()
}

/// Estimated seconds: a long test sets a long limit.
fn weight(test: &Test) -> u64 {
    2 + test.header.limit.saturating_sub(30) / 6
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::find::Kind;
    use super::super::header;
    use super::*;

    fn test(limit: u64) -> Test {
        let header = header::parse(&format!("# limit: {limit}\n")).expect("a header");
        Test { name: format!("t{limit}"), kind: Kind::Script, path: PathBuf::new(), header }
    }

    #[test]
    fn every_test_is_in_one_share() {
        let tests: Vec<Test> = (0..300).map(|number| test(30 + number % 7 * 30)).collect();
        let shares = shares(tests.iter().enumerate().collect(), 4);
        assert_eq!(shares.len(), 4);
        let mut numbers: Vec<usize> = shares.iter().flatten().map(|(number, _)| *number).collect();
        numbers.sort();
        assert_eq!(numbers, (0..300).collect::<Vec<_>>());
        let work = |share: &Vec<(usize, &Test)>| share.iter().map(|(_, test)| weight(test)).sum::<u64>();
        assert!(work(&shares[0]) - work(&shares[3]) <= 40);
    }

    #[test]
    fn a_few_tests_share_one_guest() {
        let tests = [test(30), test(60)];
        assert_eq!(shares(tests.iter().enumerate().collect(), 4).len(), 1);
        assert!(shares(Vec::new(), 4).is_empty());
    }
}
