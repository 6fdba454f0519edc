// SPDX-License-Identifier: GPL-2.0-or-later

//! Shell patterns: `*`, `?`, `[a-z]`, `[!a-z]`, `[^a-z]`; a backslash quotes the next character.

/// Whether `text` has special characters of a pattern.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// What all that matches the pattern begins with.
pub fn literal_beginning(pattern: &str) -> &str {
    pattern.split(['*', '?', '[', '\\']).next().unwrap_or_default()
}

/// Whether the whole of `text` matches `pattern`. At worst linear in their product: only the last star is retried.
pub fn matches(pattern: &str, text: &str) -> bool {
    // What most names differ in; a pattern is compared with all those of a kernel.
    let (literal, pattern) = pattern.split_at(literal_beginning(pattern).len());
    let Some(text) = text.strip_prefix(literal) else { return false };
    if pattern.is_empty() || pattern == "*" {
        return pattern == "*" || text.is_empty();
    }
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    let mut retry = None;
    loop {
        if pattern.get(p) == Some(&'*') {
            retry = Some((p + 1, t));
            p += 1;
            continue;
        }
        let Some(&character) = text.get(t) else {
            return p == pattern.len();
        };
        if let Some(next) = match_one(&pattern, p, character) {
            p = next;
            t += 1;
        } else if let Some((star, from)) = retry {
            p = star;
            t = from + 1;
            retry = Some((star, t));
        } else {
            return false;
        }
    }
}

/// The index after the pattern's element at `p` if that matches `character`.
fn match_one(pattern: &[char], p: usize, character: char) -> Option<usize> {
    match *pattern.get(p)? {
        '?' => Some(p + 1),
        '\\' => match pattern.get(p + 1) {
            Some(&escaped) => (escaped == character).then_some(p + 2),
            None => (character == '\\').then_some(p + 1),
        },
        '[' => match match_set(pattern, p, character) {
            Some((next, found)) => found.then_some(next),
            // Without a closing bracket it is an ordinary character.
            None => (character == '[').then_some(p + 1),
        },
        literal => (literal == character).then_some(p + 1),
    }
}

/// For the set that starts at `p`: the index after it and whether `character` is in it; `None` if it is not closed.
fn match_set(pattern: &[char], p: usize, character: char) -> Option<(usize, bool)> {
    let negated = matches!(pattern.get(p + 1), Some('!' | '^'));
    let first = p + 1 + usize::from(negated);
    let mut at = first;
    let mut found = false;
    loop {
        let low = *pattern.get(at)?;
        if low == ']' && at > first {
            return Some((at + 1, found != negated));
        }
        match (pattern.get(at + 1), pattern.get(at + 2)) {
            (Some('-'), Some(&high)) if high != ']' => {
                found |= (low..=high).contains(&character);
                at += 3;
            }
            _ => {
                found |= low == character;
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_that_matches_begins_with() {
        let beginnings = ["vfs_*", "vfs_read", "a[bc]d", "a?b", "x\\*", "*"].map(literal_beginning);
        assert_eq!(beginnings, ["vfs_", "vfs_read", "a", "a", "x", ""]);
    }

    #[test]
    fn patterns() {
        for (pattern, text) in [
            ("*", ""),
            ("a*c", "abbc"),
            ("?[b-d]*", "acxx"),
            ("[!a]", "b"),
            ("[]]", "]"),
            ("a[", "a["),
            ("\\*", "*"),
            ("*a*b", "aab"),
            ("ab", "ab"),
            ("ab*", "ab"),
            ("ab?", "abc"),
            ("\u{e4}b*c", "\u{e4}bxc"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("", "a"),
            ("a", ""),
            ("a*c", "abcd"),
            ("[!a]", "a"),
            ("?", ""),
            ("\\*", "a"),
            ("a?", "a"),
            ("ab", "abc"),
            ("ab", "a"),
            ("ab*", "b"),
            ("ab*", "aab"),
        ] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
