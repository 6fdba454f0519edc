// SPDX-License-Identifier: GPL-2.0-or-later

//! Finds names near a wrong one, for probe points, functions, variables, members and options.

/// Up to five of `candidates` that are near `name`, nearest first; empty if none is near.
///
/// Near is an edit distance (with transpositions) of at most a third of the name's length, or a name that contains it.
pub fn suggest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    suggest_by(name, candidates, |candidate| candidate)
}

/// As [`suggest`], where `key` is the part of a candidate that is compared. The case of letters does not count.
fn suggest_by<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    key: impl Fn(&'a str) -> &'a str,
) -> Vec<&'a str> {
    let limit = (name.chars().count() / 3).max(1);
    let lower = name.to_ascii_lowercase();
    let mut near: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter(|candidate| *candidate != name && key(candidate).len().abs_diff(name.len()) <= limit.max(8))
        .filter_map(|candidate| {
            let compared = key(candidate);
            let contains = name.len() >= 4 && compared.contains(name);
            // The distance of every name of a kernel would take longer than everything else.
            if !contains && least_distance(&lower, compared) > limit {
                return None;
            }
            let distance = strsim::damerau_levenshtein(&lower, &compared.to_ascii_lowercase());
            (distance <= limit || contains).then_some((distance, candidate))
        })
        .collect();
    // At the same distance, names that contain all letters of the misspelt one come first: `println` for `printn`.
    near.sort_by_key(|&(distance, candidate)| (distance, !has_letters(&lower, key(candidate)), candidate));
    near.dedup();
    near.into_iter().take(5).map(|(_, candidate)| candidate).collect()
}

/// The edit distance of two names is at least this: how many letters of the one are not in the other, in any order and
/// case. Some letters count as the same.
fn least_distance(one: &str, other: &str) -> usize {
    let mut more = [0i32; 32];
    // ASCII letters differ in the low five bits whatever their case; a letter of several bytes counts once.
    let mut count = |text: &str, sign: i32| {
        for byte in text.bytes().filter(|byte| byte & 0xc0 != 0x80) {
            if let Some(count) = more.get_mut(usize::from(byte & 0x1f)) {
                *count += sign;
            }
        }
    };
    count(one, 1);
    count(other, -1);
    let sum = |sign: i32| more.iter().map(|count| usize::try_from(sign * count).unwrap_or(0)).sum::<usize>();
    sum(1).max(sum(-1))
}

/// Whether the letters of a name are all in a candidate, in their order: some were left out.
fn has_letters(name: &str, candidate: &str) -> bool {
    let mut letters = candidate.chars().map(|letter| letter.to_ascii_lowercase());
    name.chars().all(|wanted| letters.any(|letter| letter == wanted))
}

/// `did you mean A, B?` for a note, or the first `shown` candidates if none is near; None without candidates.
pub fn hint(name: &str, candidates: &[&str], shown: usize) -> Option<String> {
    hint_by(name, candidates, |candidate| candidate, shown)
}

/// As [`hint`], where `key` is the part of a candidate that is compared.
pub fn hint_by<'a>(
    name: &str,
    candidates: &[&'a str],
    key: impl Fn(&'a str) -> &'a str,
    shown: usize,
) -> Option<String> {
    let near = suggest_by(name, candidates.iter().copied(), key);
    if !near.is_empty() {
        return Some(format!("did you mean {}?", near.join(", ")));
    }
    if candidates.is_empty() {
        return None;
    }
    let more = if candidates.len() > shown { ", ..." } else { "" };
    let shown: Vec<&str> = candidates.iter().take(shown).map(AsRef::as_ref).collect();
    Some(format!("there is: {}{more}", shown.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_first() {
        let names = ["vfs_write", "vfs_read", "vcs_read", "do_exit"];
        assert_eq!(suggest("vfs_raed", names), ["vfs_read", "vcs_read"]);
        assert_eq!(suggest("zzz", names), [""; 0]);
        assert_eq!(suggest("printn", ["print", "printd", "println"]), ["println", "print", "printd"]);
        assert_eq!(suggest("VFS_read", names), ["vfs_read", "vcs_read"]);
    }

    #[test]
    fn the_least_distance_is_not_more_than_the_distance() {
        let names = [
            "vfs_read",
            "VFS_Raed",
            "read",
            "",
            "vfs_readv",
            "ksys_write",
            "\u{e4}\u{f6}_read",
            "x86_64",
            "aa",
            "aaaa",
        ];
        for one in names {
            for other in names {
                let lower = one.to_ascii_lowercase();
                let distance = strsim::damerau_levenshtein(&lower, &other.to_ascii_lowercase());
                assert!(least_distance(&lower, other) <= distance, "{one} {other}");
            }
        }
        assert_eq!(least_distance("vfs_read", "vfs_raed"), 0);
        assert_eq!(least_distance("vfs_read", "do_exit"), 5);
    }

    #[test]
    fn all_names_when_none_is_near() {
        assert_eq!(hint("zzz", &["a1", "b1", "c1"], 2).as_deref(), Some("there is: a1, b1, ..."));
        assert_eq!(hint("zzz", &[], 2), None);
    }
}
