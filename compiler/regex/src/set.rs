// SPDX-License-Identifier: GPL-2.0-or-later

//! Sets of bytes, including the named ones.

/// A set of bytes: bit B of word B / 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ByteSet([u64; 4]);

impl ByteSet {
    /// No byte.
    pub const EMPTY: ByteSet = ByteSet([0; 4]);
    /// Every byte.
    pub const ALL: ByteSet = ByteSet([u64::MAX; 4]);

    /// The bytes for which the test holds.
    pub fn of(test: impl Fn(u8) -> bool) -> ByteSet {
        let mut set = ByteSet::EMPTY;
        (0..=255).filter(|&byte| test(byte)).for_each(|byte| set.insert(byte));
        set
    }

    /// Adds a byte.
    pub fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte / 64)] |= 1 << (byte % 64);
    }

    /// Adds the bytes from `first` to `last`, both included.
    pub fn insert_range(&mut self, first: u8, last: u8) {
        (first..=last).for_each(|byte| self.insert(byte));
    }

    /// Whether the byte is in the set.
    pub fn contains(self, byte: u8) -> bool {
        self.0[usize::from(byte / 64)] >> (byte % 64) & 1 != 0
    }

    /// The bytes of either set.
    pub fn union(self, other: ByteSet) -> ByteSet {
        ByteSet(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// The bytes that are not in the set.
    pub fn complement(self) -> ByteSet {
        ByteSet(self.0.map(|word| !word))
    }
}

impl From<u8> for ByteSet {
    fn from(byte: u8) -> ByteSet {
        let mut set = ByteSet::EMPTY;
        set.insert(byte);
        set
    }
}

/// `[:name:]` in the C locale; the one-letter names are short forms.
pub fn named(name: &[u8]) -> Option<ByteSet> {
    let space = |byte: u8| matches!(byte, b' ' | 9..=13);
    Some(match name {
        b"alnum" => ByteSet::of(|byte| byte.is_ascii_alphanumeric()),
        b"alpha" => ByteSet::of(|byte| byte.is_ascii_alphabetic()),
        b"blank" => ByteSet::of(|byte| matches!(byte, b' ' | b'\t')),
        b"cntrl" => ByteSet::of(|byte| byte.is_ascii_control()),
        b"digit" | b"d" => ByteSet::of(|byte| byte.is_ascii_digit()),
        b"graph" => ByteSet::of(|byte| byte.is_ascii_graphic()),
        b"lower" | b"l" => ByteSet::of(|byte| byte.is_ascii_lowercase()),
        b"print" => ByteSet::of(|byte| byte.is_ascii_graphic() || byte == b' '),
        b"punct" => ByteSet::of(|byte| byte.is_ascii_punctuation()),
        b"space" | b"s" => ByteSet::of(space),
        b"upper" | b"u" => ByteSet::of(|byte| byte.is_ascii_uppercase()),
        b"xdigit" => ByteSet::of(|byte| byte.is_ascii_hexdigit()),
        _ => return None,
    })
}

/// Letters, digits and `_`: `\w`.
pub fn word() -> ByteSet {
    ByteSet::of(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Equivalence classes of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    /// Byte to class.
    pub of: [u8; 256],
    /// One byte of each class.
    pub samples: Vec<u8>,
}

impl Classes {
    /// The classes of bytes that none of these sets distinguishes.
    pub fn new<'s>(sets: impl IntoIterator<Item = &'s ByteSet>) -> Classes {
        let mut of = [0u16; 256];
        let mut count = 1;
        for set in sets {
            // Split each class that the set divides.
            let mut halves = std::collections::HashMap::new();
            let mut next = 0;
            for byte in 0..=255u8 {
                let class = &mut of[usize::from(byte)];
                *class = *halves.entry((*class, set.contains(byte))).or_insert_with(|| {
                    next += 1;
                    next - 1
                });
            }
            count = next;
        }
        let sample = |class| (0..=255u8).find(|&byte| of[usize::from(byte)] == class);
        let samples = (0..count).filter_map(sample).collect();
        // There are at most 256 classes, numbered from 0.
        Classes { of: of.map(|class| class as u8), samples }
    }

    /// The number of classes.
    pub fn count(&self) -> usize {
        self.samples.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_tell_apart_what_sets_do() {
        let digits = named(b"digit").unwrap();
        let mut vowels = ByteSet::EMPTY;
        b"aeiou".iter().for_each(|&byte| vowels.insert(byte));
        let classes = Classes::new([&digits, &vowels, &ByteSet::from(b'a'), &ByteSet::ALL]);
        assert_eq!(classes.count(), 4);
        let of = |byte: u8| classes.of[usize::from(byte)];
        assert!(of(b'1') == of(b'9') && of(b'e') == of(b'u') && of(b'x') == of(0xff));
        assert!(of(b'a') != of(b'e') && of(b'a') != of(b'x') && of(b'1') != of(b'x'));
        let each: Vec<ByteSet> = (0..=255).map(ByteSet::from).collect();
        assert_eq!(Classes::new(&each).count(), 256);
        assert_eq!(Classes::new([]).count(), 1);
    }

    #[test]
    fn named_sets() {
        let count = |name: &[u8]| (0..=255).filter(|&byte| named(name).unwrap().contains(byte)).count();
        let counts =
            [("alnum", 62), ("blank", 2), ("cntrl", 33), ("graph", 94), ("print", 95), ("punct", 32), ("space", 6)];
        for (name, wanted) in counts {
            assert_eq!(count(name.as_bytes()), wanted, "{name}");
        }
        assert_eq!(named(b"d"), named(b"digit"));
        assert_eq!(named(b"word"), None);
    }
}
