// SPDX-License-Identifier: GPL-2.0-or-later

//! Finds names near a wrong one, for probe points, functions, variables, members and options.

/// Up to five of `candidates` that are near `name`, nearest first; empty if none is near.
///
/// Near is an edit distance (with transpositions) of at most a third of the name's length, or a name that contains it.
pub fn suggest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let limit = (name.chars().count() / 3).max(1);
    let mut near: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter(|candidate| *candidate != name && candidate.len().abs_diff(name.len()) <= limit.max(8))
        .filter_map(|candidate| {
            let distance = strsim::damerau_levenshtein(name, candidate);
            let contains = name.len() >= 4 && candidate.contains(name);
            (distance <= limit || contains).then_some((distance, candidate))
        })
        .collect();
    near.sort();
    near.dedup();
    near.into_iter().take(5).map(|(_, candidate)| candidate).collect()
}

/// `did you mean A, B?` for a note, or the first `shown` candidates if none is near; None without candidates.
pub fn hint(name: &str, candidates: &[&str], shown: usize) -> Option<String> {
    let near = suggest(name, candidates.iter().copied());
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
    }

    #[test]
    fn all_names_when_none_is_near() {
        assert_eq!(hint("zzz", &["a1", "b1", "c1"], 2).as_deref(), Some("there is: a1, b1, ..."));
        assert_eq!(hint("zzz", &[], 2), None);
    }
}
