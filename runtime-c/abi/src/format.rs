// SPDX-License-Identifier: GPL-2.0-or-later

//! Bytecode of formats and object descriptions (abi.h, SPILE_FORMAT_* and SPILE_PRETTY_*), which describe a record's
//! payload. The compiler encodes, the loader decodes; runtime-c interprets the same bytes for sprintf.

use std::sync::Arc;

/// A piece of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// At most 65535 bytes; a longer one is split by [`encode`].
    Literal(Vec<u8>),
    /// A value, printed as printf does.
    Directive(Directive),
    /// An object, printed by its description.
    Pretty(Arc<Pretty>),
    /// A histogram. Payload: the counts of its buckets, u64 each, as one memory part.
    Histogram(Histogram, Chart),
}

/// The buckets of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Histogram {
    /// 128 buckets: the 64th for 0, after it 1, 2-3, 4-7, ..., before it -1, -3 to -2, ...
    Log,
    /// One below `low`, one for each `width` values from `low` to `high`, one above. `low <= high`, `width > 0`.
    Linear {
        /// Lower bound of the regular buckets.
        low: i64,
        /// Upper bound.
        high: i64,
        /// Values of one bucket.
        width: i64,
    },
}

/// How a histogram is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chart {
    /// Columns of the longest bar, at least 1.
    pub columns: u8,
    /// Empty rows that are kept next to a non-empty one; None: all.
    pub kept: Option<u8>,
}

impl Chart {
    /// In bytecode: all empty rows are kept.
    const ALL: u8 = u8::MAX;
    /// Most rows that a script may ask for; a histogram has fewer.
    pub const MOST: u8 = Chart::ALL - 1;
}

impl Default for Chart {
    fn default() -> Chart {
        Chart { columns: 50, kept: Some(2) }
    }
}

/// Maximum number of buckets.
pub const MAX_BUCKETS: u32 = 128;

impl Histogram {
    /// Number of buckets; at most [`MAX_BUCKETS`].
    pub fn buckets(self) -> u32 {
        match self {
            Histogram::Log => MAX_BUCKETS,
            Histogram::Linear { low, high, width } => {
                let inner = high.checked_sub(low).and_then(|range| range.checked_div(width)).unwrap_or(i64::MAX);
                inner.saturating_add(3).clamp(3, i64::from(MAX_BUCKETS)) as u32
            }
        }
    }
}

/// One directive of a printf format. Payload: a long for each [`Size::Star`], then the value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Directive {
    /// One of `d i u o x X p s c b m M`, or of [`Named`].
    pub conversion: u8,
    /// The characters between `%` and the width.
    pub flags: Flags,
    /// Minimum number of characters.
    pub width: Size,
    /// After the `.`; for `m` and `M` the number of bytes of memory.
    pub precision: Size,
}

/// Conversions of addresses to text, only in the loader. Padded and truncated as `s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Named {
    /// Long: `NAME`.
    Symbol = b'N',
    /// Long: `NAME+OFFSET/SIZE [MODULE]`.
    Data = b'D',
    /// Long: `MODULE`, `kernel` or `<unknown>`.
    Module = b'O',
    /// Memory, 8 bytes for each address: printed in hex, separated by blanks.
    Addresses = b'A',
    /// The same: a line for each, as for [`Named::Data`].
    Stack = b'K',
    /// Memory, 16 bytes for each address, it and a time as with [`crate::record::STACK_STORED`]: a line for each.
    StoredStack = b'S',
    /// Of user space. Memory, 16 bytes for each frame, the address and its [`crate::record::Place`]: a line for each.
    UserStack = b'U',
    /// String, `0xADDRESS@FILE+OFFSET ...`: the same.
    UserText = b'T',
    /// The same string: `OUTERMOST;...;INNERMOST`, as programs that draw flame graphs read it.
    UserFolded = b'V',
    /// A memory part with one frame: `NAME`.
    UserSymbol = b'Y',
    /// The same: `NAME+OFFSET/SIZE [PATH]`.
    UserData = b'Z',
    /// The same: source file.
    UserFile = b'F',
    /// The same: its line.
    UserLine = b'L',
    /// The same: `FILE:LINE`.
    UserFileLine = b'G',
    /// The same: build-id in hex.
    UserBuildId = b'B',
}

impl Named {
    /// `None`: another conversion.
    pub fn of(conversion: u8) -> Option<Named> {
        use Named::{
            Addresses, Data, Module, Stack, StoredStack, Symbol, UserBuildId, UserData, UserFile, UserFileLine,
            UserFolded, UserLine, UserStack, UserSymbol, UserText,
        };
        let in_kernel = [Symbol, Data, Module, Addresses, Stack, StoredStack];
        let in_user =
            [UserStack, UserText, UserFolded, UserSymbol, UserData, UserFile, UserLine, UserFileLine, UserBuildId];
        in_kernel.into_iter().chain(in_user).find(|named| *named as u8 == conversion)
    }
}

/// Maximum addresses of one stack.
pub const STACK_FRAMES: u32 = 128;

/// Flags of a directive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    /// `0`: padded with zeros.
    pub zero: bool,
    /// `+`: numbers always have a sign.
    pub plus: bool,
    /// `-`: padded on the right.
    pub minus: bool,
    /// A blank in place of a plus sign.
    pub space: bool,
    /// `#`: the base in front of the number.
    pub sharp: bool,
}

/// A width or precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Size {
    /// Not given.
    None,
    /// A number in the format.
    Fixed(u32),
    /// `*`: a long in the payload.
    Star,
}

/// The description of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pretty {
    /// Bytes of the object.
    pub size: u32,
    /// It is in the memory of the process that hits the probe, as is what it points to.
    pub user: bool,
    /// Its pointers have 4 bytes: it is of a 32-bit program.
    pub narrow: bool,
    /// The ops, in order.
    pub ops: Vec<PrettyOp>,
}

/// Offsets are in bytes from the object's start, or from the element's within a repeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrettyOp {
    /// Literal text.
    Literal(Vec<u8>),
    /// A number in memory, or a bit-field of it.
    Integer {
        /// Of its first byte.
        offset: u32,
        /// Bytes: 1, 2, 4 or 8; or 16, of which all bits are printed as [`PrettyStyle::Hex`].
        size: u8,
        /// The lowest bit, from the least significant.
        first_bit: u8,
        /// Number of bits; 0: all of them.
        bits: u8,
        /// How it is printed.
        style: PrettyStyle,
    },
    /// A number in memory, or a bit-field of it, by the name that it has; without a name as a number.
    Enum {
        /// Of its first byte.
        offset: u32,
        /// Bytes: 1, 2, 4 or 8.
        size: u8,
        /// The lowest bit, from the least significant.
        first_bit: u8,
        /// Number of bits; 0: all of them.
        bits: u8,
        /// Whether the number has a sign.
        signed: bool,
        /// Numbers and their names; of several with one number the first counts. Those that are too long to be encoded, and
        /// all behind 64 KB of them, are left out.
        names: Vec<(i64, Vec<u8>)>,
    },
    /// A char array: quoted up to its first NUL.
    Chars {
        /// Of the array.
        offset: u32,
        /// Bytes of the array.
        length: u32,
    },
    /// A `char *`: the text it points to, quoted.
    StringPointer {
        /// Of the pointer.
        offset: u32,
    },
    /// Text with a length, as Rust's `&str` and `String` are: all of it, quoted.
    Text {
        /// Of the pointer to it.
        offset: u32,
        /// Of its length in bytes, which is as large as a pointer.
        length: u32,
    },
    /// The elements of an array.
    Repeat {
        /// Of the first element.
        offset: u32,
        /// Number of elements printed.
        count: u32,
        /// Bytes from one element to the next.
        stride: u32,
        /// The ops for each.
        body: Vec<PrettyOp>,
    },
    /// `?`
    Unknown,
    /// What is printed only if a number has one of the values, or none of them. Its strings are in the record in any case.
    When {
        /// Of the number.
        offset: u32,
        /// Its bytes: 1, 2, 4 or 8.
        size: u8,
        /// Ascending order is not needed.
        values: Vec<u64>,
        /// It has none of them.
        other: bool,
        /// The ops.
        body: Vec<PrettyOp>,
    },
}

/// How a number of an object is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrettyStyle {
    /// Decimal, with its sign.
    Signed,
    /// Decimal.
    Unsigned,
    /// `0x...`
    Hex,
    /// `'c'`
    Char,
    /// `<function>:0x...`
    Function,
    /// IEEE 754, of 4 or 8 bytes and all bits: six digits after the point, `inf` or `nan`.
    Float,
}

/// Why bytecode is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatError {
    /// It ends inside an op.
    Truncated,
    /// Unknown op, conversion, size kind or style.
    Unknown(u8),
    /// Repeats nest deeper than [`MAX_NESTING`].
    TooDeep,
    /// There is no description of that number.
    NoDescription(u32),
    /// More than [`MAX_PARTS`].
    TooMany,
}

impl std::fmt::Display for FormatError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FormatError::Truncated => write!(f, "a format ends inside an operation"),
            FormatError::Unknown(byte) => write!(f, "a format has an unknown operation or value {byte}"),
            FormatError::TooDeep => write!(f, "a format's repeats nest deeper than {MAX_NESTING}"),
            FormatError::NoDescription(number) => write!(f, "a format's object has no description {number}"),
            FormatError::TooMany => write!(f, "formats have more than {MAX_PARTS} parts"),
        }
    }
}

impl std::error::Error for FormatError {}

/// Maximum parts of all formats and descriptions of a script together: pieces, operations, names of numbers. One of a byte in
/// the bytecode takes 64 in memory.
pub const MAX_PARTS: usize = 4 << 20;

/// Maximum nesting of repeats.
pub const MAX_NESTING: usize = 16;

/// A payload part of `bytes` bytes after its u32 length, padded to 8.
pub fn string_part(bytes: u32) -> u32 {
    bytes.saturating_add(4).checked_next_multiple_of(8).unwrap_or(u32::MAX)
}

/// Maximum bytes of memory in one `%m` or `%M`: a page.
pub const MAX_MEMORY: u32 = 4096;

/// Maximum payload of a format, with strings of up to `string_bytes` (MAXSTRINGLEN, NUL included).
pub fn max_payload(pieces: &[Piece], string_bytes: u32) -> u32 {
    let mut bytes: u32 = 0;
    for piece in pieces {
        let part = match piece {
            Piece::Literal(_) => 0,
            Piece::Pretty(pretty) => pretty.max_payload(string_bytes),
            Piece::Histogram(histogram, _) => string_part(histogram.buckets() * 8),
            Piece::Directive(directive) => {
                let stars = [directive.width, directive.precision].iter().filter(|size| **size == Size::Star).count();
                let value = match directive.conversion {
                    b's' => string_part(string_bytes.saturating_sub(1)),
                    b'm' | b'M' => match directive.precision {
                        Size::Star => string_part(MAX_MEMORY),
                        Size::Fixed(bytes) => string_part(bytes.min(MAX_MEMORY)),
                        Size::None => string_part(1),
                    },
                    _ => 8,
                };
                (stars as u32 * 8).saturating_add(value)
            }
        };
        bytes = bytes.saturating_add(part);
    }
    bytes
}

/// Set in the size of an object of user space (SPILE_PRETTY_USER in abi.h).
const PRETTY_USER: u32 = 1 << 30;
/// The same of one with pointers of 4 bytes (SPILE_PRETTY_NARROW).
const PRETTY_NARROW: u32 = 1 << 29;

impl Pretty {
    /// Maximum payload of one object.
    pub fn max_payload(&self, string_bytes: u32) -> u32 {
        let strings = strings(&self.ops);
        string_part(self.size).saturating_add(strings.saturating_mul(string_part(string_bytes.saturating_sub(1))))
    }

    /// What copies the object into a record: the same with nothing but its strings, so that it costs no more than they do. All
    /// of it where the walk over the whole ends early, which is to end at the same string.
    pub fn copied(&self) -> Pretty {
        let (elements, nesting) = extent(&self.ops);
        let whole = elements > MAX_ELEMENTS || nesting > MAX_WALKED_NESTING;
        Pretty { ops: if whole { self.ops.clone() } else { only_strings(&self.ops) }, ..*self }
    }

    /// Bytecode of the description.
    pub fn encode(&self) -> Vec<u8> {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let flags = flag(self.user, PRETTY_USER) | flag(self.narrow, PRETTY_NARROW);
        let mut bytes = (self.size | flags).to_le_bytes().to_vec();
        encode_ops(&self.ops, &mut bytes);
        bytes
    }

    /// Decodes the bytecode of [`Pretty::encode`].
    pub fn decode(bytes: &[u8], left: &mut usize) -> Result<Pretty, FormatError> {
        let mut reader = Reader { bytes, left };
        let size = reader.u32()?;
        let (user, narrow) = (size & PRETTY_USER != 0, size & PRETTY_NARROW != 0);
        Ok(Pretty { size: size & !(PRETTY_USER | PRETTY_NARROW), user, narrow, ops: reader.ops(0, false)? })
    }
}

/// String parts that the ops visit.
fn strings(ops: &[PrettyOp]) -> u32 {
    ops.iter().fold(0, |sum: u32, op| {
        sum.saturating_add(match op {
            PrettyOp::StringPointer { .. } | PrettyOp::Text { .. } => 1,
            PrettyOp::Repeat { count, body, .. } => count.saturating_mul(strings(body)),
            PrettyOp::When { body, .. } => strings(body),
            _ => 0,
        })
    })
}

/// Of a walk in the module and in the loader: elements of all repeats (SPILE_PRETTY_ELEMENTS), and their nesting
/// (SPILE_PRETTY_DEPTH).
const MAX_ELEMENTS: u64 = 65_536;
const MAX_WALKED_NESTING: usize = 8;

/// Elements of all repeats together, and the nesting of repeats.
fn extent(ops: &[PrettyOp]) -> (u64, usize) {
    ops.iter().fold((0, 0), |(elements, nesting), op| match op {
        PrettyOp::Repeat { count, body, .. } => {
            let (inner, depth) = extent(body);
            let all = u64::from(*count).saturating_mul(inner.saturating_add(1));
            (elements.saturating_add(all), nesting.max(depth + 1))
        }
        PrettyOp::When { body, .. } => {
            let (inner, depth) = extent(body);
            (elements.saturating_add(inner), nesting.max(depth))
        }
        _ => (elements, nesting),
    })
}

fn only_strings(ops: &[PrettyOp]) -> Vec<PrettyOp> {
    let kept = ops.iter().flat_map(|op| match op {
        PrettyOp::StringPointer { .. } | PrettyOp::Text { .. } => vec![op.clone()],
        PrettyOp::Repeat { offset, count, stride, body } if *count > 0 && strings(body) > 0 => {
            vec![PrettyOp::Repeat { offset: *offset, count: *count, stride: *stride, body: only_strings(body) }]
        }
        PrettyOp::When { body, .. } => only_strings(body),
        _ => Vec::new(),
    });
    kept.collect()
}

fn literals(op: u8, text: &[u8], bytes: &mut Vec<u8>) {
    for chunk in text.chunks(usize::from(u16::MAX)) {
        bytes.push(op);
        bytes.extend((chunk.len() as u16).to_le_bytes());
        bytes.extend(chunk);
    }
}

/// Bytecode of a format. Its objects have the numbers of their descriptions, which `number` gives: in
/// [`crate::meta::Meta::descriptions`] if the loader interprets it, in the script's list if the module does.
pub fn encode(pieces: &[Piece], mut number: impl FnMut(&Arc<Pretty>) -> u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Literal(text) => literals(1, text, &mut bytes),
            Piece::Directive(directive) => {
                let flags = directive.flags;
                let bits = [flags.zero, flags.plus, flags.minus, flags.space, flags.sharp];
                let flags = bits.iter().enumerate().fold(0u8, |sum, (bit, &set)| sum | u8::from(set) << bit);
                let (width_kind, width) = directive.width.encode();
                let (precision_kind, precision) = directive.precision.encode();
                bytes.extend([2, directive.conversion, flags, width_kind, precision_kind]);
                bytes.extend(width.to_le_bytes());
                bytes.extend(precision.to_le_bytes());
            }
            Piece::Pretty(pretty) => {
                bytes.push(5);
                bytes.extend(number(pretty).to_le_bytes());
            }
            Piece::Histogram(histogram, chart) => {
                let (kind, numbers) = match *histogram {
                    Histogram::Linear { low, high, width } => (1, [low, high, width]),
                    Histogram::Log => (2, [0; 3]),
                };
                let kept = chart.kept.unwrap_or(Chart::ALL);
                match *chart == Chart::default() {
                    true => bytes.extend([4, kind]),
                    false => bytes.extend([6, chart.columns, kept, kind]),
                }
                numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
            }
        }
    }
    bytes.push(0);
    bytes
}

impl Size {
    fn encode(self) -> (u8, u32) {
        match self {
            Size::None => (0, 0),
            Size::Fixed(size) => (1, size),
            Size::Star => (2, 0),
        }
    }

    fn decode(kind: u8, size: u32) -> Result<Size, FormatError> {
        match kind {
            0 => Ok(Size::None),
            1 => Ok(Size::Fixed(size)),
            2 => Ok(Size::Star),
            other => Err(FormatError::Unknown(other)),
        }
    }
}

fn encode_ops(ops: &[PrettyOp], bytes: &mut Vec<u8>) {
    for op in ops {
        match op {
            PrettyOp::Literal(text) => literals(1, text, bytes),
            PrettyOp::Integer { offset, size, first_bit, bits, style } => {
                bytes.push(2);
                bytes.extend(offset.to_le_bytes());
                bytes.extend([*size, *first_bit, *bits, *style as u8]);
            }
            PrettyOp::Enum { offset, size, first_bit, bits, signed, names } => {
                bytes.push(7);
                bytes.extend(offset.to_le_bytes());
                bytes.extend([*size, *first_bit, *bits, u8::from(!signed)]);
                let mut table = Vec::new();
                for (number, name) in names {
                    let Ok(length) = u8::try_from(name.len()) else { continue };
                    if table.len() + 9 + name.len() > usize::from(u16::MAX) {
                        break;
                    }
                    table.extend(number.to_le_bytes());
                    table.push(length);
                    table.extend(name);
                }
                bytes.extend((table.len() as u16).to_le_bytes());
                bytes.extend(table);
            }
            PrettyOp::Chars { offset, length } => {
                bytes.push(3);
                bytes.extend(offset.to_le_bytes());
                bytes.extend(length.to_le_bytes());
            }
            PrettyOp::StringPointer { offset } => {
                bytes.push(4);
                bytes.extend(offset.to_le_bytes());
            }
            PrettyOp::Text { offset, length } => {
                bytes.push(9);
                bytes.extend(offset.to_le_bytes());
                bytes.extend(length.to_le_bytes());
            }
            PrettyOp::Repeat { offset, count, stride, body } => {
                let mut inner = Vec::new();
                encode_ops(body, &mut inner);
                bytes.push(5);
                for number in [*offset, *count, *stride, inner.len() as u32] {
                    bytes.extend(number.to_le_bytes());
                }
                bytes.extend(inner);
            }
            PrettyOp::Unknown => bytes.push(6),
            PrettyOp::When { offset, size, values, other, body } => {
                let mut inner = Vec::new();
                encode_ops(body, &mut inner);
                // It is walked as a part of the ops around it, which have an end of their own.
                inner.pop();
                let values = values.get(..usize::from(u16::MAX)).unwrap_or(values);
                bytes.push(8);
                bytes.extend(offset.to_le_bytes());
                bytes.extend([*size, u8::from(*other)]);
                bytes.extend((values.len() as u16).to_le_bytes());
                bytes.extend((inner.len() as u32).to_le_bytes());
                values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
                bytes.extend(inner);
            }
        }
    }
    bytes.push(0);
}

/// Decodes a format's bytecode; invalid bytes give an error. `descriptions`: by the numbers that its objects have. `left`: of
/// [`MAX_PARTS`].
pub fn decode(bytes: &[u8], descriptions: &[Arc<Pretty>], left: &mut usize) -> Result<Vec<Piece>, FormatError> {
    let mut reader = Reader { bytes, left };
    let mut pieces = Vec::new();
    loop {
        reader.one_part()?;
        pieces.push(match reader.u8()? {
            0 => return Ok(pieces),
            1 => Piece::Literal(reader.literal()?),
            2 => {
                let conversion = reader.u8()?;
                if !b"diuoxXpscbmM".contains(&conversion) && Named::of(conversion).is_none() {
                    return Err(FormatError::Unknown(conversion));
                }
                let bits = reader.u8()?;
                let (width_kind, precision_kind) = (reader.u8()?, reader.u8()?);
                let (width, precision) = (reader.u32()?, reader.u32()?);
                let flag = |bit: u8| bits & 1 << bit != 0;
                let flags = Flags { zero: flag(0), plus: flag(1), minus: flag(2), space: flag(3), sharp: flag(4) };
                let (width, precision) = (Size::decode(width_kind, width)?, Size::decode(precision_kind, precision)?);
                Piece::Directive(Directive { conversion, flags, width, precision })
            }
            5 => {
                let number = reader.u32()?;
                let description = descriptions.get(number as usize).ok_or(FormatError::NoDescription(number))?;
                Piece::Pretty(Arc::clone(description))
            }
            4 => Piece::Histogram(reader.histogram()?, Chart::default()),
            6 => {
                let (columns, kept) = (reader.u8()?, reader.u8()?);
                let kept = (kept != Chart::ALL).then_some(kept);
                let chart = Chart { columns, kept };
                if columns == 0 || chart == Chart::default() {
                    return Err(FormatError::Unknown(columns));
                }
                Piece::Histogram(reader.histogram()?, chart)
            }
            other => return Err(FormatError::Unknown(other)),
        });
    }
}

struct Reader<'b, 'l> {
    bytes: &'b [u8],
    /// Parts that may still come.
    left: &'l mut usize,
}

impl<'b> Reader<'b, '_> {
    fn one_part(&mut self) -> Result<(), FormatError> {
        *self.left = self.left.checked_sub(1).ok_or(FormatError::TooMany)?;
        Ok(())
    }

    fn take(&mut self, length: usize) -> Result<&'b [u8], FormatError> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or(FormatError::Truncated)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn chunk<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or(FormatError::Truncated)?;
        self.bytes = rest;
        Ok(*taken)
    }

    fn u8(&mut self) -> Result<u8, FormatError> {
        Ok(u8::from_le_bytes(self.chunk()?))
    }

    fn u32(&mut self) -> Result<u32, FormatError> {
        Ok(u32::from_le_bytes(self.chunk()?))
    }

    fn histogram(&mut self) -> Result<Histogram, FormatError> {
        let kind = self.u8()?;
        let (low, high, width) = (self.i64()?, self.i64()?, self.i64()?);
        match kind {
            1 if low <= high && width > 0 => Ok(Histogram::Linear { low, high, width }),
            2 => Ok(Histogram::Log),
            other => Err(FormatError::Unknown(other)),
        }
    }

    fn i64(&mut self) -> Result<i64, FormatError> {
        Ok(i64::from_le_bytes(self.chunk()?))
    }

    fn literal(&mut self) -> Result<Vec<u8>, FormatError> {
        let length = u16::from_le_bytes(self.chunk()?);
        Ok(self.take(usize::from(length))?.to_vec())
    }

    /// Offset, size, lowest bit and number of bits of a number in memory.
    fn field(&mut self) -> Result<(u32, u8, u8, u8), FormatError> {
        let offset = self.u32()?;
        let (size, first_bit, bits) = (self.u8()?, self.u8()?, self.u8()?);
        if !matches!(size, 1 | 2 | 4 | 8) && (size, first_bit, bits) != (16, 0, 0) {
            return Err(FormatError::Unknown(size));
        }
        if u32::from(first_bit) + u32::from(bits) > u32::from(size) * 8 {
            return Err(FormatError::Unknown(bits));
        }
        Ok((offset, size, first_bit, bits))
    }

    fn names(&mut self) -> Result<Vec<(i64, Vec<u8>)>, FormatError> {
        let table = self.literal()?;
        let mut table = Reader { bytes: &table, left: self.left };
        let mut names = Vec::new();
        while !table.bytes.is_empty() {
            table.one_part()?;
            let (number, length) = (table.i64()?, table.u8()?);
            names.push((number, table.take(usize::from(length))?.to_vec()));
        }
        Ok(names)
    }

    /// `is_part`: of the ops around it, whose end is its own.
    fn ops(&mut self, depth: usize, is_part: bool) -> Result<Vec<PrettyOp>, FormatError> {
        if depth > MAX_NESTING {
            return Err(FormatError::TooDeep);
        }
        let mut ops = Vec::new();
        loop {
            if is_part && self.bytes.is_empty() {
                return Ok(ops);
            }
            self.one_part()?;
            ops.push(match self.u8()? {
                0 => return Ok(ops),
                1 => PrettyOp::Literal(self.literal()?),
                2 => {
                    let (offset, size, first_bit, bits) = self.field()?;
                    let style = match self.u8()? {
                        2 => PrettyStyle::Hex,
                        _ if size == 16 => return Err(FormatError::Unknown(size)),
                        0 => PrettyStyle::Signed,
                        1 => PrettyStyle::Unsigned,
                        3 => PrettyStyle::Char,
                        4 => PrettyStyle::Function,
                        5 if bits == 0 && matches!(size, 4 | 8) => PrettyStyle::Float,
                        other => return Err(FormatError::Unknown(other)),
                    };
                    PrettyOp::Integer { offset, size, first_bit, bits, style }
                }
                3 => PrettyOp::Chars { offset: self.u32()?, length: self.u32()? },
                4 => PrettyOp::StringPointer { offset: self.u32()? },
                5 => {
                    let (offset, count, stride, length) = (self.u32()?, self.u32()?, self.u32()?, self.u32()?);
                    let mut body = Reader { bytes: self.take(length as usize)?, left: self.left };
                    PrettyOp::Repeat { offset, count, stride, body: body.ops(depth + 1, false)? }
                }
                6 => PrettyOp::Unknown,
                9 => PrettyOp::Text { offset: self.u32()?, length: self.u32()? },
                7 => {
                    let (offset, size, first_bit, bits) = self.field()?;
                    let signed = match self.u8()? {
                        0 => true,
                        1 => false,
                        other => return Err(FormatError::Unknown(other)),
                    };
                    PrettyOp::Enum { offset, size, first_bit, bits, signed, names: self.names()? }
                }
                8 => {
                    let (offset, size, other) = (self.u32()?, self.u8()?, self.u8()?);
                    if !matches!(size, 1 | 2 | 4 | 8) || other > 1 {
                        return Err(FormatError::Unknown(size));
                    }
                    let (count, length) = (u16::from_le_bytes(self.chunk()?), self.u32()?);
                    let values = (0..count).map(|_| Ok(u64::from_le_bytes(self.chunk()?))).collect::<Result<_, _>>()?;
                    let mut body = Reader { bytes: self.take(length as usize)?, left: self.left };
                    PrettyOp::When { offset, size, values, other: other == 1, body: body.ops(depth + 1, true)? }
                }
                other => return Err(FormatError::Unknown(other)),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces_of(bytes: &[u8], descriptions: &[Arc<Pretty>]) -> Result<Vec<Piece>, FormatError> {
        decode(bytes, descriptions, &mut MAX_PARTS.clone())
    }

    fn object_of(bytes: &[u8]) -> Result<Pretty, FormatError> {
        Pretty::decode(bytes, &mut MAX_PARTS.clone())
    }

    #[test]
    fn parts_of_a_byte_are_counted() {
        let few = &mut 5;
        let literal = [1, 1, 0, b'x'];
        assert!(decode(&[&literal.repeat(4)[..], &[0]].concat(), &[], few).is_ok());
        assert_eq!(*few, 0);
        assert_eq!(decode(&literal, &[], few), Err(FormatError::TooMany));
        let unknown = [&0u32.to_le_bytes()[..], &[6; 5], &[0]].concat();
        assert_eq!(Pretty::decode(&unknown, &mut 5), Err(FormatError::TooMany));
        assert_eq!(Pretty::decode(&unknown, &mut 6).unwrap().ops.len(), 5);
        let names = PrettyOp::Enum {
            offset: 0,
            size: 4,
            first_bit: 0,
            bits: 0,
            signed: true,
            names: (0..5).map(|number| (number, Vec::new())).collect(),
        };
        let body = PrettyOp::Repeat { offset: 0, count: 1, stride: 0, body: vec![names] };
        let when = PrettyOp::When { offset: 0, size: 1, values: vec![1], other: false, body: vec![body] };
        let bytes = Pretty { ops: vec![when], ..Pretty::default() }.encode();
        // With two ends: that of what is printed only if belongs to the ops around it.
        assert_eq!(Pretty::decode(&bytes, &mut (3 + 5 + 1)), Err(FormatError::TooMany));
        assert!(Pretty::decode(&bytes, &mut (3 + 5 + 2)).is_ok());
    }

    fn sample() -> Vec<Piece> {
        let flags = Flags { zero: true, sharp: true, ..Flags::default() };
        let inner =
            PrettyOp::Repeat { offset: 8, count: 2, stride: 16, body: vec![PrettyOp::StringPointer { offset: 4 }] };
        vec![
            Piece::Literal(b"a=".to_vec()),
            Piece::Directive(Directive { conversion: b'x', flags, width: Size::Fixed(16), precision: Size::Star }),
            Piece::Pretty(Arc::new(Pretty {
                narrow: false,
                size: 40,
                user: true,
                ops: vec![
                    PrettyOp::Integer { offset: 0, size: 4, first_bit: 3, bits: 5, style: PrettyStyle::Signed },
                    inner,
                    PrettyOp::Enum {
                        offset: 4,
                        size: 4,
                        first_bit: 0,
                        bits: 0,
                        signed: true,
                        names: vec![(-1, b"NONE".to_vec()), (i64::MAX, b"ALL".to_vec())],
                    },
                    PrettyOp::Chars { offset: 8, length: 16 },
                    PrettyOp::When {
                        offset: 8,
                        size: 8,
                        values: vec![0, u64::MAX],
                        other: true,
                        body: vec![PrettyOp::Unknown, PrettyOp::Chars { offset: 16, length: 4 }],
                    },
                    PrettyOp::Unknown,
                ],
            })),
            Piece::Histogram(Histogram::Linear { low: -10, high: 100, width: 10 }, Chart::default()),
            Piece::Histogram(Histogram::Log, Chart { columns: 20, kept: None }),
            Piece::Histogram(Histogram::Log, Chart { columns: 50, kept: Some(0) }),
        ]
    }

    /// The description of the sample's object, as the module's file has it.
    fn described() -> [Arc<Pretty>; 1] {
        let object =
            sample().into_iter().find_map(|piece| if let Piece::Pretty(object) = piece { Some(object) } else { None });
        [Arc::new(object_of(&object.unwrap().encode()).unwrap())]
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        assert_eq!(pieces_of(&encode(&sample(), |_| 0), &described()), Ok(sample()));
    }

    #[test]
    fn what_copies_an_object_are_its_strings() {
        let text = PrettyOp::StringPointer { offset: 4 };
        let number = PrettyOp::Integer { offset: 0, size: 8, first_bit: 0, bits: 0, style: PrettyStyle::Hex };
        let repeat = |count, body| PrettyOp::Repeat { offset: 8, count, stride: 16, body };
        let object = |ops| Pretty { size: 40, user: true, narrow: true, ops };
        let whole = object(vec![
            number.clone(),
            repeat(3, vec![number.clone(), text.clone()]),
            repeat(60_000, vec![number.clone()]),
            PrettyOp::When {
                offset: 0,
                size: 1,
                values: vec![1],
                other: false,
                body: vec![number.clone(), text.clone()],
            },
            PrettyOp::Literal(b"}".to_vec()),
            text.clone(),
        ]);
        assert_eq!(whole.copied(), object(vec![repeat(3, vec![text.clone()]), text.clone(), text.clone()]));
        // The walk ends within the first repeat.
        let long = object(vec![repeat(300, vec![repeat(300, vec![number])]), text]);
        assert_eq!(long.copied(), long);
    }

    #[test]
    fn objects_have_the_description_of_their_number() {
        let descriptions = [8, 16].map(|size| Arc::new(Pretty { size, ..Pretty::default() }));
        let pieces = vec![Piece::Pretty(Arc::clone(&descriptions[1])); 2];
        let bytes = encode(&pieces, |pretty| u32::from(pretty.size == 16));
        assert_eq!(bytes.len(), 2 * 5 + 1);
        assert_eq!(pieces_of(&bytes, &descriptions), Ok(pieces));
        assert_eq!(pieces_of(&bytes, &descriptions[..1]), Err(FormatError::NoDescription(1)));
    }

    #[test]
    fn long_literals_are_split() {
        let pieces = pieces_of(&encode(&[Piece::Literal(vec![b'x'; 70_000])], |_| 0), &[]).unwrap();
        let lengths: Vec<usize> =
            pieces.iter().map(|piece| if let Piece::Literal(text) = piece { text.len() } else { 0 }).collect();
        assert_eq!(lengths, [65_535, 4_465]);
    }

    #[test]
    fn room_for_every_part() {
        // A long for the star, a long; 40 bytes after a length; two strings of up to 15 bytes.
        assert_eq!(max_payload(&sample(), 16), 8 + 8 + 48 + 2 * 24 + (4 + 14 * 8 + 4) + 2 * (4 + 128 * 8 + 4));
    }

    #[test]
    fn damaged_bytes_are_errors() {
        let (bytes, description) = (encode(&sample(), |_| 0), described()[0].encode());
        for end in 0..bytes.len() {
            assert!(pieces_of(&bytes[..end], &described()).is_err(), "{end}");
        }
        for end in 0..description.len() {
            assert!(object_of(&description[..end]).is_err(), "{end}");
        }
        let mut seed = 1u64;
        for _ in 0..20_000 {
            let (mut damaged, mut damaged_description) = (bytes.clone(), description.clone());
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (seed >> 33) as usize % damaged.len();
            damaged[at] ^= 1 << (seed >> 60 & 7);
            let _ = pieces_of(&damaged, &described());
            let at = (seed >> 33) as usize % damaged_description.len();
            damaged_description[at] ^= 1 << (seed >> 60 & 7);
            let _ = object_of(&damaged_description);
        }
    }
}
