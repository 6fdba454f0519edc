// SPDX-License-Identifier: GPL-2.0-or-later

//! The metadata for the loader in a module's section [`SECTION`]: the target it was compiled for and the format of its
//! records.
//!
//! The compiler writes it ([`Meta::encode`]), the loader reads it ([`Meta::decode`]); the module only carries it.
//! Encoding: magic `SPILEMET`, u32 version, then the fields in order; numbers little endian, strings and lists preceded
//! by a u32 count, `guru` one byte. A reader rejects any other version and any mismatch.

use std::fmt;

/// ELF section of the `.ko` (allocated, so that it can also be read back from a loaded module's memory).
pub const SECTION: &str = ".spile.meta";

/// The contents of the section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Module name.
    pub name: String,
    /// The script's file name, or `<input>`.
    pub title: String,
    /// Version of spile that built the module.
    pub version: String,
    /// UTS release compiled for.
    pub kernel_release: String,
    /// Compiled with `-g`: the module may write memory or contain embedded C.
    pub guru: bool,
    /// All probed objects, including the kernel (with an empty name) if it is probed.
    pub targets: Vec<Target>,
    /// Files of user space that probes are in: names are their paths.
    pub programs: Vec<Target>,
    /// By probe site index.
    pub probes: Vec<Probe>,
    /// By format id: bytecode as in abi.h (SPILE_FORMAT_*).
    pub formats: Vec<Vec<u8>>,
    /// Descriptions of objects, which formats refer to by number (SPILE_FORMAT_DESCRIBED): bytecode as in abi.h
    /// (SPILE_PRETTY_*). Thousands of probes print the same few types.
    pub descriptions: Vec<Vec<u8>>,
    /// By location id: `operator '/' at FILE:LINE:COLUMN`; an error reads "MESSAGE near LOCATION in probe POINT".
    pub locations: Vec<String>,
    /// Globals that can be set before the script starts, by the index of SPILE_SET.
    pub settings: Vec<Setting>,
    /// Embedded C that may write past the gate: names of functions, and `C at FILE:LINE:COLUMN` of blocks in handlers;
    /// all that are not marked `/* pure */`.
    pub ungated: Vec<String>,
    /// By format id: the names of its values, as the script spells them, in order; empty ones have none. A list may be
    /// shorter than the format.
    pub value_names: Vec<Vec<String>>,
}

/// A global that is neither an array nor an aggregate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// Its name in the script.
    pub name: String,
    /// Maximum length of the string in bytes; 0: it is a number.
    pub string_bytes: u32,
}

/// A probed object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Module name with `_` for `-`; empty for the kernel.
    pub name: String,
    /// Bytes of the GNU build-id note; empty if the object has none.
    pub build_id: Vec<u8>,
    /// The file it was compiled against, for messages.
    pub path: String,
}

/// A probe site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// Canonical spelling.
    pub point: String,
    /// As written in the script.
    pub script_point: String,
    /// FILE:LINE:COLUMN of the probe.
    pub place: String,
}

impl Setting {
    /// Whether it holds a string.
    pub fn is_string(&self) -> bool {
        self.string_bytes > 0
    }
}

/// Parses a number given by a user for a global: decimal, `0x` hexadecimal or `0` octal, with a sign; a value that
/// needs all 64 bits (`0xffffffffffffffff`) is taken as its bits. `None`: not a number, or more than 64 bits.
pub fn parse_number(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => (16, digits),
        None if digits.len() > 1 && digits.starts_with('0') => (8, digits),
        None => (10, digits),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let value = u64::from_str_radix(digits, radix).ok()?;
    match negative {
        true if value <= 1 << 63 => Some((value as i64).wrapping_neg()),
        true => None,
        false if radix == 10 => i64::try_from(value).ok(),
        false => Some(value as i64),
    }
}

const MAGIC: &[u8; 8] = b"SPILEMET";

/// Version of the encoding.
pub const VERSION: u32 = 6;

/// Elements of all lists together: one of four bytes takes up to 72 in memory.
pub const MAX_ELEMENTS: usize = 4 << 20;

/// Why bytes are not a valid [`Meta`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaError {
    /// They do not begin with the magic.
    NotMeta,
    /// Written in another version of the encoding.
    Version(u32),
    /// They end before the last field.
    Truncated,
    /// This many bytes follow the last field.
    Trailing(usize),
    /// A string is not UTF-8, or a flag neither 0 nor 1.
    Damaged,
    /// Its lists have more than [`MAX_ELEMENTS`].
    TooMany,
}

impl fmt::Display for MetaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MetaError::NotMeta => write!(f, "the section {SECTION} does not hold what spile writes there"),
            MetaError::Version(version) => {
                write!(f, "the section {SECTION} is of version {version}, this program reads version {VERSION}")
            }
            MetaError::Truncated => write!(f, "the section {SECTION} ends too early"),
            MetaError::Trailing(bytes) => write!(f, "the section {SECTION} is {bytes} bytes too long"),
            MetaError::TooMany => {
                write!(f, "the lists of the section {SECTION} have more than {MAX_ELEMENTS} elements")
            }
            MetaError::Damaged => write!(f, "the section {SECTION} is damaged"),
        }
    }
}

impl std::error::Error for MetaError {}

impl Meta {
    /// Bytes for the section [`SECTION`]. Strings and lists have fewer than 2^32 elements each.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        put_count(&mut bytes, VERSION as usize);
        for text in [&self.name, &self.title, &self.version, &self.kernel_release] {
            put_bytes(&mut bytes, text.as_bytes());
        }
        bytes.push(u8::from(self.guru));
        for targets in [&self.targets, &self.programs] {
            put_count(&mut bytes, targets.len());
            for target in targets {
                put_bytes(&mut bytes, target.name.as_bytes());
                put_bytes(&mut bytes, &target.build_id);
                put_bytes(&mut bytes, target.path.as_bytes());
            }
        }
        put_count(&mut bytes, self.probes.len());
        for probe in &self.probes {
            for text in [&probe.point, &probe.script_point, &probe.place] {
                put_bytes(&mut bytes, text.as_bytes());
            }
        }
        for codes in [&self.formats, &self.descriptions] {
            put_count(&mut bytes, codes.len());
            codes.iter().for_each(|code| put_bytes(&mut bytes, code));
        }
        put_count(&mut bytes, self.locations.len());
        self.locations.iter().for_each(|location| put_bytes(&mut bytes, location.as_bytes()));
        put_count(&mut bytes, self.settings.len());
        for setting in &self.settings {
            put_bytes(&mut bytes, setting.name.as_bytes());
            put_count(&mut bytes, setting.string_bytes as usize);
        }
        put_count(&mut bytes, self.ungated.len());
        self.ungated.iter().for_each(|name| put_bytes(&mut bytes, name.as_bytes()));
        put_count(&mut bytes, self.value_names.len());
        for names in &self.value_names {
            put_count(&mut bytes, names.len());
            names.iter().for_each(|name| put_bytes(&mut bytes, name.as_bytes()));
        }
        bytes
    }

    /// Reads the fields before the list of probes, which is long; the others are empty. `bytes` are the first ones of
    /// the section: all of it, or at least these fields.
    pub fn decode_head(bytes: &[u8]) -> Result<Meta, MetaError> {
        Reader::after_magic(bytes)?.head()
    }

    /// Reads the fields up to the list of probes; the others are empty, and not checked. `bytes` are the first ones of the
    /// section, at least these fields.
    pub fn decode_probes(bytes: &[u8]) -> Result<Meta, MetaError> {
        let mut reader = Reader::after_magic(bytes)?;
        let head = reader.head()?;
        Ok(Meta { probes: reader.list(Reader::probe)?, ..head })
    }

    /// Reads what [`Meta::encode`] wrote. Memory use is proportional to `bytes`, whatever counts it contains.
    pub fn decode(bytes: &[u8]) -> Result<Meta, MetaError> {
        let mut reader = Reader::after_magic(bytes)?;
        let head = reader.head()?;
        let meta = Meta {
            probes: reader.list(Reader::probe)?,
            formats: reader.list(|reader| Ok(reader.counted()?.to_vec()))?,
            descriptions: reader.list(|reader| Ok(reader.counted()?.to_vec()))?,
            locations: reader.list(Reader::text)?,
            settings: reader.list(Reader::setting)?,
            ungated: reader.list(Reader::text)?,
            value_names: reader.list(|reader| reader.list(Reader::text))?,
            ..head
        };
        match reader.bytes.len() {
            0 => Ok(meta),
            trailing => Err(MetaError::Trailing(trailing)),
        }
    }
}

fn put_count(bytes: &mut Vec<u8>, count: usize) {
    bytes.extend((count as u32).to_le_bytes());
}

fn put_bytes(bytes: &mut Vec<u8>, text: &[u8]) {
    put_count(bytes, text.len());
    bytes.extend(text);
}

struct Reader<'b> {
    bytes: &'b [u8],
    /// Elements that may still come.
    left: usize,
}

impl<'b> Reader<'b> {
    /// Of what follows the magic and the version, which are checked.
    fn after_magic(bytes: &'b [u8]) -> Result<Self, MetaError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(MetaError::NotMeta)?;
        let mut reader = Reader { bytes: rest, left: MAX_ELEMENTS };
        match reader.u32()? {
            VERSION => Ok(reader),
            version => Err(MetaError::Version(version)),
        }
    }

    fn head(&mut self) -> Result<Meta, MetaError> {
        Ok(Meta {
            name: self.text()?,
            title: self.text()?,
            version: self.text()?,
            kernel_release: self.text()?,
            guru: self.flag()?,
            targets: self.list(Reader::target)?,
            programs: self.list(Reader::target)?,
            ..Meta::default()
        })
    }

    fn take(&mut self, count: usize) -> Result<&'b [u8], MetaError> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(MetaError::Truncated)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn u32(&mut self) -> Result<u32, MetaError> {
        let (number, rest) = self.bytes.split_first_chunk().ok_or(MetaError::Truncated)?;
        self.bytes = rest;
        Ok(u32::from_le_bytes(*number))
    }

    fn flag(&mut self) -> Result<bool, MetaError> {
        match self.take(1)? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(MetaError::Damaged),
        }
    }

    fn counted(&mut self) -> Result<&'b [u8], MetaError> {
        let count = self.u32()?;
        self.take(count as usize)
    }

    fn text(&mut self) -> Result<String, MetaError> {
        let bytes = self.counted()?;
        Ok(std::str::from_utf8(bytes).map_err(|_| MetaError::Damaged)?.to_string())
    }

    /// Every element takes at least the four bytes of a count, so a list that claims more elements ends early.
    fn list<T>(&mut self, read: impl Fn(&mut Self) -> Result<T, MetaError>) -> Result<Vec<T>, MetaError> {
        let count = self.u32()?;
        let mut one = || {
            self.left = self.left.checked_sub(1).ok_or(MetaError::TooMany)?;
            read(self)
        };
        (0..count).map(|_| one()).collect()
    }

    fn target(&mut self) -> Result<Target, MetaError> {
        Ok(Target { name: self.text()?, build_id: self.counted()?.to_vec(), path: self.text()? })
    }

    fn setting(&mut self) -> Result<Setting, MetaError> {
        Ok(Setting { name: self.text()?, string_bytes: self.u32()? })
    }

    fn probe(&mut self) -> Result<Probe, MetaError> {
        Ok(Probe { point: self.text()?, script_point: self.text()?, place: self.text()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deterministic numbers (xorshift64).
    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % limit as u64) as usize
        }

        fn text(&mut self) -> String {
            (0..self.below(12)).map(|_| ['a', '"', '/', '\u{e9}', '\0', '\n'][self.below(6)]).collect()
        }

        fn bytes(&mut self) -> Vec<u8> {
            (0..self.below(24)).map(|_| self.below(256) as u8).collect()
        }

        fn list<T>(&mut self, mut make: impl FnMut(&mut Random) -> T) -> Vec<T> {
            (0..self.below(4)).map(|_| make(self)).collect()
        }

        fn meta(&mut self) -> Meta {
            Meta {
                name: self.text(),
                title: self.text(),
                version: self.text(),
                kernel_release: self.text(),
                guru: self.below(2) == 1,
                targets: self.list(|r| Target { name: r.text(), build_id: r.bytes(), path: r.text() }),
                programs: self.list(|r| Target { name: r.text(), build_id: r.bytes(), path: r.text() }),
                probes: self.list(|r| Probe { point: r.text(), script_point: r.text(), place: r.text() }),
                formats: self.list(Random::bytes),
                descriptions: self.list(Random::bytes),
                locations: self.list(Random::text),
                settings: self.list(|r| Setting { name: r.text(), string_bytes: r.below(1 << 16) as u32 }),
                ungated: self.list(Random::text),
                value_names: self.list(|r| r.list(Random::text)),
            }
        }
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let mut random = Random(1);
        for _ in 0..1000 {
            let meta = random.meta();
            assert_eq!(Meta::decode(&meta.encode()), Ok(meta));
        }
    }

    #[test]
    fn the_head_is_decoded_from_the_first_bytes() {
        let mut random = Random(4);
        for _ in 0..100 {
            let whole = random.meta();
            let Meta { name, title, version, kernel_release, guru, targets, programs, .. } = whole.clone();
            let head = Meta { name, title, version, kernel_release, guru, targets, programs, ..Meta::default() };
            // Seven empty lists follow it.
            let bytes = head.encode();
            let end = bytes.len() - 28;
            assert_eq!(Meta::decode_head(&whole.encode()), Ok(head.clone()));
            assert_eq!(Meta::decode_head(&bytes[..end]), Ok(head));
            assert_eq!(Meta::decode_head(&bytes[..end - 1]), Err(MetaError::Truncated));
        }
    }

    #[test]
    fn the_probes_are_decoded_without_what_follows() {
        let mut random = Random(5);
        for _ in 0..100 {
            let whole = random.meta();
            let nothing = Meta::default();
            let expected = Meta {
                formats: nothing.formats,
                descriptions: nothing.descriptions,
                locations: nothing.locations,
                settings: nothing.settings,
                ungated: nothing.ungated,
                value_names: nothing.value_names,
                ..whole.clone()
            };
            // Six empty lists follow them.
            let bytes = expected.encode();
            let end = bytes.len() - 24;
            assert_eq!(Meta::decode_probes(&whole.encode()), Ok(expected.clone()));
            assert_eq!(Meta::decode_probes(&bytes[..end]), Ok(expected));
            assert_eq!(Meta::decode_probes(&bytes[..end - 1]), Err(MetaError::Truncated));
        }
    }

    #[test]
    fn every_truncation_is_an_error() {
        let mut random = Random(2);
        for _ in 0..50 {
            let bytes = random.meta().encode();
            for end in 0..bytes.len() {
                assert!(Meta::decode(&bytes[..end]).is_err(), "{end} of {}", bytes.len());
            }
        }
    }

    #[test]
    fn flipped_bits_are_errors_or_another_meta_of_the_same_size() {
        let mut random = Random(3);
        for _ in 0..5000 {
            let mut bytes = random.meta().encode();
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
            if let Ok(meta) = Meta::decode(&bytes) {
                assert_eq!(meta.encode(), bytes);
            }
        }
    }

    #[test]
    fn counts_beyond_the_bytes_take_no_memory() {
        let mut bytes = Meta::default().encode();
        // The last seven lists' counts are the last 28 bytes.
        let lists = bytes.len() - 28;
        for list in (lists..bytes.len()).step_by(4) {
            let before = bytes[list..list + 4].to_vec();
            bytes[list..list + 4].fill(0xff);
            assert_eq!(Meta::decode(&bytes), Err(MetaError::Truncated));
            bytes[list..list + 4].copy_from_slice(&before);
        }
    }

    #[test]
    fn numbers_are_read_with_their_range() {
        let cases = [
            ("42", Some(42)),
            ("-1", Some(-1)),
            ("+7", Some(7)),
            ("0x10", Some(16)),
            ("-0x10", Some(-16)),
            ("010", Some(8)),
            ("0", Some(0)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("-9223372036854775808", Some(i64::MIN)),
            ("-9223372036854775809", None),
            ("0xffffffffffffffff", Some(-1)),
            ("0x10000000000000000", None),
            ("", None),
            ("-", None),
            ("0x", None),
            ("1 ", None),
            ("--1", None),
            ("0x-1", None),
            ("09", None),
            ("ten", None),
        ];
        for (text, value) in cases {
            assert_eq!(parse_number(text), value, "{text}");
        }
    }

    #[test]
    fn other_bytes_are_rejected() {
        assert_eq!(Meta::decode(b""), Err(MetaError::NotMeta));
        assert_eq!(Meta::decode(b"SPILEMET"), Err(MetaError::Truncated));
        assert_eq!(Meta::decode(b"SPILEMET\x01\0\0\0"), Err(MetaError::Version(1)));
        let mut bytes = Meta::default().encode();
        bytes.push(0);
        assert_eq!(Meta::decode(&bytes), Err(MetaError::Trailing(1)));
    }
}
