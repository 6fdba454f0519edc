// SPDX-License-Identifier: GPL-2.0-or-later

//! Parses patterns to trees.
//!
//! POSIX extended regular expressions as in SystemTap: bytes, `.`, `[ ]`, `|`, `( )`, `(?: )`, `* + ? {n} {n,} {n,m}`,
//! anchors anywhere, C's escapes, octal and `\xHH`. Parses the value of the script's string, so its escapes are already
//! resolved.

use super::error::{Error, ErrorKind};
use super::set::{ByteSet, named, word};

/// Largest count in `{ }`, as in SystemTap.
pub const MAX_COUNT: u32 = 12_344;

/// Maximum nesting of groups and repetitions: bounds the recursion over the tree.
const MAX_DEPTH: usize = 200;

/// A node of a pattern's tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    Empty,
    Bytes(ByteSet),
    /// `^`: at the string's first byte.
    Start,
    /// `$`: after the last byte.
    End,
    /// Numbered from 1 in the order of their `(`.
    Group(u32, Box<Node>),
    Concatenation(Vec<Node>),
    Alternation(Vec<Node>),
    /// `most` None: unlimited.
    Repeat {
        node: Box<Node>,
        least: u32,
        most: Option<u32>,
    },
}

/// A pattern's tree and its number of capture groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The root of the tree.
    pub node: Node,
    /// Number of capture groups.
    pub groups: u32,
}

/// Parses a pattern in POSIX extended syntax. Error: what is wrong, and where.
pub fn parse(pattern: &[u8]) -> Result<Pattern, Error> {
    let mut parser = Parser { pattern, at: 0, groups: 0, depth: 0 };
    let node = parser.alternation()?;
    match parser.peek() {
        None => Ok(Pattern { node, groups: parser.groups }),
        // An alternation ends at the end or before a `)`.
        Some(_) => Err(parser.error(ErrorKind::StrayClose, parser.at)),
    }
}

struct Parser<'p> {
    pattern: &'p [u8],
    at: usize,
    groups: u32,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.pattern.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    /// From `start` to the current byte, inclusive.
    fn error(&self, kind: ErrorKind, start: usize) -> Error {
        Error { kind, start, end: (self.at + 1).min(self.pattern.len()) }
    }

    fn alternation(&mut self) -> Result<Node, Error> {
        let mut branches = vec![self.concatenation()?];
        while self.take(b'|') {
            branches.push(self.concatenation()?);
        }
        Ok(single(branches, Node::Alternation))
    }

    fn concatenation(&mut self) -> Result<Node, Error> {
        let mut nodes = Vec::new();
        while let Some(byte) = self.peek().filter(|byte| !b"|)".contains(byte)) {
            let depth = self.depth;
            let start = self.at;
            let atom = self.atom(byte)?;
            nodes.push(self.repetitions(atom, start)?);
            self.depth = depth;
        }
        Ok(match nodes.len() {
            0 => Node::Empty,
            _ => single(nodes, Node::Concatenation),
        })
    }

    fn atom(&mut self, byte: u8) -> Result<Node, Error> {
        let start = self.at;
        Ok(match byte {
            b'(' => return self.group(),
            b'[' => return self.class(),
            b'*' | b'+' | b'?' | b'{' => return Err(self.error(ErrorKind::NothingToRepeat, start)),
            b'\\' => Node::Bytes(self.escape()?),
            _ => {
                self.at += 1;
                match byte {
                    b'^' => Node::Start,
                    b'$' => Node::End,
                    b'.' => Node::Bytes(ByteSet::ALL),
                    _ => Node::Bytes(byte.into()),
                }
            }
        })
    }

    fn group(&mut self) -> Result<Node, Error> {
        let start = self.at;
        self.at += 1;
        let capturing = !self.take(b'?');
        if !capturing && !self.take(b':') {
            return Err(self.error(ErrorKind::UnknownExtension, start));
        }
        self.deeper(start)?;
        self.groups += u32::from(capturing);
        let number = self.groups;
        let inner = self.alternation()?;
        if !self.take(b')') {
            return Err(Error { kind: ErrorKind::UnclosedGroup, start, end: start + 1 });
        }
        Ok(if capturing { Node::Group(number, Box::new(inner)) } else { inner })
    }

    fn deeper(&mut self, start: usize) -> Result<(), Error> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(self.error(ErrorKind::TooDeep, start)) } else { Ok(()) }
    }

    /// Applies `*`, `+`, `?` and `{ }` after an atom; several apply one after the other.
    fn repetitions(&mut self, mut node: Node, atom: usize) -> Result<Node, Error> {
        while let Some(byte) = self.peek() {
            let start = self.at;
            let (least, most) = match byte {
                b'*' => (0, None),
                b'+' => (1, None),
                b'?' => (0, Some(1)),
                b'{' => self.counts()?,
                _ => break,
            };
            if byte != b'{' {
                self.at += 1;
            }
            // Allowed in a group: the repeated group then matches the empty string.
            if matches!(self.pattern.get(atom), Some(b'^' | b'$')) && matches!(node, Node::Start | Node::End) {
                return Err(Error { kind: ErrorKind::RepeatedAnchor, start: atom, end: self.at });
            }
            self.deeper(start)?;
            node = Node::Repeat { node: Box::new(node), least, most };
        }
        Ok(node)
    }

    /// `{n}`, `{n,}`, `{n,m}`.
    fn counts(&mut self) -> Result<(u32, Option<u32>), Error> {
        let start = self.at;
        self.at += 1;
        let least = self.count(start)?.ok_or_else(|| self.error(ErrorKind::BadCount, start))?;
        let most = if self.take(b',') { self.count(start)? } else { Some(least) };
        if !self.take(b'}') {
            return Err(self.error(ErrorKind::BadCount, start));
        }
        match most {
            Some(most) if most < least => Err(Error { kind: ErrorKind::BackwardCount, start, end: self.at }),
            _ => Ok((least, most)),
        }
    }

    fn count(&mut self, start: usize) -> Result<Option<u32>, Error> {
        let mut count = None;
        while let Some(digit) = self.peek().filter(u8::is_ascii_digit) {
            let value = count.unwrap_or(0) * 10 + u32::from(digit - b'0');
            if value > MAX_COUNT {
                return Err(self.error(ErrorKind::CountTooLarge, start));
            }
            count = Some(value);
            self.at += 1;
        }
        Ok(count)
    }

    /// `\` and the following character.
    fn escape(&mut self) -> Result<ByteSet, Error> {
        let start = self.at;
        self.at += 1;
        let Some(byte) = self.peek() else {
            return Err(Error { kind: ErrorKind::UnfinishedEscape, start, end: start + 1 });
        };
        let set = match byte {
            b'0'..=b'7' => return self.octal(start),
            b'8' | b'9' => return Err(self.error(ErrorKind::BackReference, start)),
            b'x' => return self.hexadecimal(start),
            b'b' | b'B' | b'<' | b'>' => return Err(self.error(ErrorKind::WordBoundary, start)),
            b'a' => 7.into(),
            b't' => b'\t'.into(),
            b'n' => b'\n'.into(),
            b'v' => 11.into(),
            b'f' => 12.into(),
            b'r' => b'\r'.into(),
            b'd' => ByteSet::of(|byte| byte.is_ascii_digit()),
            b'D' => ByteSet::of(|byte| !byte.is_ascii_digit()),
            b's' => named(b"space").unwrap_or_default(),
            b'S' => named(b"space").unwrap_or_default().complement(),
            b'w' => word(),
            b'W' => word().complement(),
            _ => byte.into(),
        };
        self.at += 1;
        Ok(set)
    }

    /// A single digit other than 0 would be a back reference.
    fn octal(&mut self, start: usize) -> Result<ByteSet, Error> {
        let mut value = 0u32;
        let first = self.at;
        while let Some(digit) = self.peek().filter(|digit| (b'0'..=b'7').contains(digit) && self.at < first + 3) {
            value = value * 8 + u32::from(digit - b'0');
            self.at += 1;
        }
        match u8::try_from(value) {
            Ok(value) if value == 0 || self.at > first + 1 => Ok(value.into()),
            _ => Err(Error { kind: ErrorKind::BackReference, start, end: self.at }),
        }
    }

    fn hexadecimal(&mut self, start: usize) -> Result<ByteSet, Error> {
        self.at += 1;
        let digits = &self.pattern[self.at..(self.at + 2).min(self.pattern.len())];
        let count = digits.iter().take_while(|digit| digit.is_ascii_hexdigit()).count();
        let value = digits[..count]
            .iter()
            .filter_map(|&digit| char::from(digit).to_digit(16))
            .fold(0, |value, digit| value * 16 + digit);
        if count == 0 {
            return Err(Error { kind: ErrorKind::BadHexadecimal, start, end: self.at });
        }
        self.at += count;
        // Two digits fit.
        Ok((value as u8).into())
    }

    /// `[ ]`. A leading `]` and a leading or trailing `-` are literal; backslashes work as outside.
    fn class(&mut self) -> Result<Node, Error> {
        let start = self.at;
        self.at += 1;
        let negated = self.take(b'^');
        let mut set = ByteSet::EMPTY;
        let first = self.at;
        loop {
            let begin = self.at;
            match self.peek() {
                None => return Err(Error { kind: ErrorKind::UnclosedClass, start, end: start + 1 }),
                Some(b']') if begin > first => break,
                _ => {}
            }
            let item = self.class_item(start)?;
            let range = self.peek() == Some(b'-') && !matches!(self.pattern.get(self.at + 1), None | Some(b']'));
            set = match item {
                Item::Byte(low) if range => {
                    self.at += 1;
                    match self.class_item(start)? {
                        Item::Byte(high) if high >= low => {
                            let mut set = set;
                            set.insert_range(low, high);
                            set
                        }
                        _ => return Err(Error { kind: ErrorKind::BackwardRange, start: begin, end: self.at }),
                    }
                }
                Item::Byte(byte) => set.union(byte.into()),
                Item::Set(item) => set.union(item),
            };
        }
        self.at += 1;
        Ok(Node::Bytes(if negated { set.complement() } else { set }))
    }

    /// A byte or a set in `[ ]`; `start` is the offset of its `[`.
    fn class_item(&mut self, start: usize) -> Result<Item, Error> {
        let begin = self.at;
        match (self.peek(), self.pattern.get(begin + 1)) {
            (None, _) => Err(Error { kind: ErrorKind::UnclosedClass, start, end: start + 1 }),
            (Some(b'['), Some(&mark @ (b':' | b'.' | b'='))) => self.bracketed(mark, start),
            (Some(b'\\'), _) => {
                let set = self.escape()?;
                let bytes: Vec<u8> = (0..=255).filter(|&byte| set.contains(byte)).collect();
                Ok(if let [byte] = bytes.as_slice() { Item::Byte(*byte) } else { Item::Set(set) })
            }
            (Some(byte), _) => {
                self.at += 1;
                Ok(Item::Byte(byte))
            }
        }
    }

    /// `[:name:]`, `[.x.]`, `[=x=]`.
    fn bracketed(&mut self, mark: u8, start: usize) -> Result<Item, Error> {
        let begin = self.at;
        let rest = &self.pattern[begin + 2..];
        let Some(length) = rest.windows(2).position(|end| end == [mark, b']']) else {
            return Err(Error { kind: ErrorKind::UnclosedClass, start, end: start + 1 });
        };
        self.at = begin + 2 + length + 2;
        let wrong = |kind| Err(Error { kind, start: begin, end: self.at });
        match (mark, &rest[..length]) {
            (b':', name) => match named(name) {
                Some(set) => Ok(Item::Set(set)),
                None => wrong(ErrorKind::UnknownClass),
            },
            (_, &[byte]) => Ok(Item::Byte(byte)),
            _ => wrong(ErrorKind::Collation),
        }
    }
}

enum Item {
    Byte(u8),
    Set(ByteSet),
}

fn single(mut nodes: Vec<Node>, several: fn(Vec<Node>) -> Node) -> Node {
    match nodes.pop() {
        Some(node) if nodes.is_empty() => node,
        last => several(nodes.into_iter().chain(last).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(pattern: &str) -> Node {
        parse(pattern.as_bytes()).unwrap().node
    }

    fn byte(byte: u8) -> Node {
        Node::Bytes(byte.into())
    }

    fn wrong(pattern: &str) -> (ErrorKind, usize, usize) {
        let error = parse(pattern.as_bytes()).unwrap_err();
        assert!(error.start <= error.end && error.end <= pattern.len(), "{error:?}");
        (error.kind, error.start, error.end)
    }

    #[test]
    fn operators_bind_as_in_posix() {
        let star = |node| Node::Repeat { node: Box::new(node), least: 0, most: None };
        assert_eq!(
            tree("ab*|c"),
            Node::Alternation(vec![Node::Concatenation(vec![byte(b'a'), star(byte(b'b'))]), byte(b'c')])
        );
        assert_eq!(tree("(?:a)*"), star(byte(b'a')));
        assert_eq!(tree(""), Node::Empty);
        assert_eq!(tree("a|"), Node::Alternation(vec![byte(b'a'), Node::Empty]));
        assert_eq!(tree("a]}"), Node::Concatenation(vec![byte(b'a'), byte(b']'), byte(b'}')]));
    }

    #[test]
    fn groups_count_from_the_left() {
        let pattern = parse(b"((a)|(?:b))(c)").unwrap();
        assert_eq!(pattern.groups, 3);
        let Node::Concatenation(nodes) = pattern.node else { panic!() };
        assert!(matches!(&nodes[0], Node::Group(1, _)) && matches!(&nodes[1], Node::Group(3, _)));
    }

    #[test]
    fn counts() {
        let count = |pattern| match tree(pattern) {
            Node::Repeat { least, most, .. } => (least, most),
            other => panic!("{other:?}"),
        };
        assert_eq!(count("a{3}"), (3, Some(3)));
        assert_eq!(count("a{3,}"), (3, None));
        assert_eq!(count("a{0,12344}"), (0, Some(12344)));
        assert_eq!(wrong("a{12345}"), (ErrorKind::CountTooLarge, 1, 7));
        assert_eq!(wrong("a{99999999999999999999}").0, ErrorKind::CountTooLarge);
        assert_eq!(wrong("a{3,2}b"), (ErrorKind::BackwardCount, 1, 6));
        assert_eq!(wrong("a{,2}"), (ErrorKind::BadCount, 1, 3));
        assert_eq!(wrong("a{2"), (ErrorKind::BadCount, 1, 3));
    }

    #[test]
    fn classes() {
        let set = |pattern: &str| match tree(pattern) {
            Node::Bytes(set) => (0..128).filter(|&byte| set.contains(byte)).map(char::from).collect::<String>(),
            other => panic!("{other:?}"),
        };
        assert_eq!(set("[]a-c]"), "]abc");
        assert_eq!(set("[a-]"), "-a");
        assert_eq!(set("[-a]"), "-a");
        assert_eq!(set("[\\]\\x41\\n]"), "\nA]");
        assert_eq!(set("[[:d:]x[.-.][=y=]]"), "-0123456789xy");
        assert_eq!(set("[^\\x00-`b-\\x7f]"), "a");
        assert_eq!(set("[$^.*]"), "$*.^");
        assert_eq!(set("\\."), ".");
        assert_eq!(set("[\\d_]"), "0123456789_");
        assert!(matches!(tree("[^]]"), Node::Bytes(set) if !set.contains(b']') && set.contains(b'\n')));
        assert_eq!(wrong("x[ab"), (ErrorKind::UnclosedClass, 1, 2));
        assert_eq!(wrong("[]"), (ErrorKind::UnclosedClass, 0, 1));
        assert_eq!(wrong("[a[:word:]]"), (ErrorKind::UnknownClass, 2, 10));
        assert_eq!(wrong("[z-a]"), (ErrorKind::BackwardRange, 1, 4));
        assert_eq!(wrong("[a-[:digit:]]").0, ErrorKind::BackwardRange);
        assert_eq!(wrong("[[.ab.]]").0, ErrorKind::Collation);
        assert_eq!(wrong("[a-"), (ErrorKind::UnclosedClass, 0, 1));
        assert_eq!(wrong("[[:"), (ErrorKind::UnclosedClass, 0, 1));
    }

    #[test]
    fn escapes() {
        assert_eq!(
            tree("\\x41\\101\\t\\\\\\0"),
            Node::Concatenation(vec![byte(b'A'), byte(b'A'), byte(9), byte(b'\\'), byte(0)])
        );
        assert_eq!(tree("\\x4g"), Node::Concatenation(vec![byte(4), byte(b'g')]));
        assert_eq!(wrong("a\\"), (ErrorKind::UnfinishedEscape, 1, 2));
        assert_eq!(wrong("a\\xg"), (ErrorKind::BadHexadecimal, 1, 3));
        assert_eq!(wrong("(a)\\1"), (ErrorKind::BackReference, 3, 5));
        assert_eq!(wrong("\\777"), (ErrorKind::BackReference, 0, 4));
        assert_eq!(wrong("\\bword"), (ErrorKind::WordBoundary, 0, 2));
    }

    #[test]
    fn mistakes() {
        assert_eq!(wrong("ab(c"), (ErrorKind::UnclosedGroup, 2, 3));
        assert_eq!(wrong("a)b"), (ErrorKind::StrayClose, 1, 2));
        assert_eq!(wrong("*a"), (ErrorKind::NothingToRepeat, 0, 1));
        assert_eq!(wrong("a|+"), (ErrorKind::NothingToRepeat, 2, 3));
        assert_eq!(wrong("a^*"), (ErrorKind::RepeatedAnchor, 1, 3));
        assert_eq!(wrong("(?=a)"), (ErrorKind::UnknownExtension, 0, 3));
        assert_eq!(wrong(&"(".repeat(100_000)).0, ErrorKind::TooDeep);
        assert_eq!(wrong(&format!("a{}", "*".repeat(100_000))).0, ErrorKind::TooDeep);
    }
}
