// SPDX-License-Identifier: GPL-2.0-or-later

//! The loader and the module's runtime make the same text of the same format and payload: thousands of random ones go
//! through both. The C side is runtime-c/format.c, histogram.c, pretty.c and text.c, compiled here with sanitizers.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test that fails may say so in any way")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use spile_abi::format::{
    Chart, Directive, Flags, Histogram, MAX_PARTS, Piece, Pretty, PrettyOp, PrettyStyle, Size, decode, encode,
};
use spilerun::records::format::render;
use spilerun::records::payload::Payload;
use spilerun::records::symbol::Symbols;
use spilerun::records::text::Text;
use spilerun::records::user::Users;

const CASES: usize = 20_000;

/// Deterministic numbers (xorshift64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    fn bytes(&mut self, most: u64) -> Vec<u8> {
        let printable = self.below(2) == 0;
        (0..self.below(most)).map(|_| if printable { 32 + self.below(95) as u8 } else { self.next() as u8 }).collect()
    }

    fn long(&mut self) -> i64 {
        match self.below(4) {
            0 => self.one_of(&[0, 1, -1, i64::MIN, i64::MAX, 255, 10, 92, 39]),
            1 => self.below(300) as i64 - 150,
            _ => self.next() as i64 >> self.below(64),
        }
    }

    fn size(&mut self) -> Size {
        match self.below(4) {
            0 | 1 => Size::None,
            2 => Size::Fixed(self.one_of(&[0, 1, 2, 3, 4, 8, 20, 300])),
            _ => Size::Star,
        }
    }

    fn directive(&mut self) -> Directive {
        let mut flag = || self.below(4) == 0;
        let flags = Flags { zero: flag(), plus: flag(), minus: flag(), space: flag(), sharp: flag() };
        let conversion = self.one_of(b"diuoxXpscbmM");
        Directive { conversion, flags, width: self.size(), precision: self.size() }
    }

    fn op(&mut self, size: u32, depth: u32) -> PrettyOp {
        let offset = self.below(u64::from(size) + 4) as u32;
        match self.below(if depth < 10 { 10 } else { 7 }) {
            0 => PrettyOp::Literal(self.bytes(6)),
            1 | 2 => {
                let bytes = self.one_of(&[1u8, 2, 4, 8]);
                if self.below(8) == 0 {
                    return PrettyOp::Integer { offset, size: 16, first_bit: 0, bits: 0, style: PrettyStyle::Hex };
                }
                if bytes >= 4 && self.below(4) == 0 {
                    return PrettyOp::Integer { offset, size: bytes, first_bit: 0, bits: 0, style: PrettyStyle::Float };
                }
                let first_bit = self.below(u64::from(bytes) * 8) as u8;
                let bits = self.below(u64::from(bytes * 8 - first_bit) + 1) as u8;
                let style = self.one_of(&[
                    PrettyStyle::Signed,
                    PrettyStyle::Unsigned,
                    PrettyStyle::Hex,
                    PrettyStyle::Char,
                    PrettyStyle::Function,
                ]);
                PrettyOp::Integer { offset, size: bytes, first_bit, bits, style }
            }
            3 if self.below(2) == 0 => {
                let names = (0..self.below(4)).map(|_| (self.below(6) as i64 - 3, self.bytes(6))).collect();
                PrettyOp::Enum {
                    offset,
                    size: 1,
                    first_bit: 0,
                    bits: self.below(4) as u8,
                    signed: self.below(2) == 0,
                    names,
                }
            }
            3 => PrettyOp::Chars { offset, length: self.below(12) as u32 },
            4 => PrettyOp::StringPointer { offset },
            5 => PrettyOp::Unknown,
            6 => PrettyOp::Text { offset, length: self.below(u64::from(size) + 4) as u32 },
            7 => PrettyOp::When {
                offset,
                size: self.one_of(&[1, 2, 4, 8]),
                values: (0..self.below(4)).map(|_| self.below(4)).collect(),
                other: self.below(2) == 0,
                body: self.ops(size, depth + 1),
            },
            _ => {
                let (count, stride) = (self.one_of(&[0, 1, 2, 3]), self.one_of(&[0, 1, 4, 8]));
                PrettyOp::Repeat { offset, count, stride, body: self.ops(size, depth + 1) }
            }
        }
    }

    fn ops(&mut self, size: u32, depth: u32) -> Vec<PrettyOp> {
        (0..self.below(4)).map(|_| self.op(size, depth)).collect()
    }

    fn piece(&mut self) -> Piece {
        match self.below(7) {
            5 => Piece::Histogram(self.histogram(), self.chart()),
            0 => Piece::Literal(self.bytes(10)),
            1 => {
                let size = self.below(40) as u32;
                Piece::Pretty(Arc::new(Pretty { size, ops: self.ops(size, 0), ..Pretty::default() }))
            }
            _ => Piece::Directive(self.directive()),
        }
    }

    fn histogram(&mut self) -> Histogram {
        if self.below(2) == 0 {
            return Histogram::Log;
        }
        let low = self.one_of(&[0, -100, 1000, i64::MIN]);
        Histogram::Linear { low, high: low + self.below(1000) as i64, width: 1 + self.below(300) as i64 }
    }

    fn chart(&mut self) -> Chart {
        let columns = self.one_of(&[50, 50, 1, 20, 255]);
        Chart { columns, kept: self.one_of(&[Some(2), Some(2), Some(0), Some(1), Some(200), None]) }
    }

    /// Counts of a histogram's buckets, most of them 0.
    fn counts(&mut self, histogram: Histogram) -> Vec<u8> {
        let most = self.one_of(&[2, 60, 5_000, u64::MAX]);
        let few = self.one_of(&[1, 3, 20]);
        let count = |random: &mut Random| if random.below(few) == 0 { random.below(most) } else { 0 };
        (0..histogram.buckets()).flat_map(|_| count(self).to_le_bytes()).collect()
    }

    fn part(&mut self, most: u64, payload: &mut Vec<u8>) {
        let bytes = self.bytes(most);
        self.part_of(bytes, payload);
    }

    fn part_of(&mut self, bytes: Vec<u8>, payload: &mut Vec<u8>) {
        if self.below(8) == 0 {
            payload.extend([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
            return;
        }
        payload.extend((bytes.len() as u32).to_le_bytes());
        payload.extend(bytes);
        payload.resize(payload.len().next_multiple_of(8), 0);
    }

    /// What fits the pieces, mostly.
    fn payload(&mut self, pieces: &[Piece]) -> Vec<u8> {
        let mut payload = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Literal(_) => {}
                Piece::Directive(directive) => {
                    for size in [directive.width, directive.precision] {
                        if size == Size::Star {
                            let value = if self.below(4) == 0 { self.long() } else { self.below(40) as i64 - 10 };
                            payload.extend(value.to_le_bytes());
                        }
                    }
                    match directive.conversion {
                        b's' | b'm' | b'M' => self.part(30, &mut payload),
                        _ => payload.extend(self.long().to_le_bytes()),
                    }
                }
                Piece::Histogram(histogram, _) => {
                    let counts = self.counts(*histogram);
                    self.part_of(counts, &mut payload);
                }
                Piece::Pretty(pretty) => {
                    let zeros = self.below(2) == 0;
                    let raw = (0..pretty.size).map(|_| if zeros { 0 } else { self.next() as u8 }).collect();
                    self.part_of(raw, &mut payload);
                    for _ in 0..self.below(12) {
                        self.part(12, &mut payload);
                    }
                }
            }
        }
        match self.below(8) {
            0 => payload.truncate(self.below(payload.len() as u64 + 1) as usize),
            1 => (0..3).for_each(|_| {
                let at = self.below(payload.len() as u64 + 1) as usize;
                let byte = self.next() as u8;
                if let Some(place) = payload.get_mut(at) {
                    *place = byte;
                }
            }),
            _ => {}
        }
        payload
    }
}

struct Case {
    pieces: Vec<Piece>,
    /// Bytecode of the pieces, and of the objects in them.
    format: Vec<u8>,
    descriptions: Vec<Vec<u8>>,
    payload: Vec<u8>,
    /// Bytes, the C side's NUL included.
    room: u32,
}

fn compiled() -> PathBuf {
    let loader = Path::new(env!("CARGO_MANIFEST_DIR"));
    let runtime = loader.join("../runtime-c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("parity");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-fsanitize=address,undefined"]);
    cc.arg("-iquote").arg(&runtime).arg(loader.join("tests/parity.c"));
    cc.args(["format.c", "histogram.c", "pretty.c", "float_text.c", "text.c"].map(|file| runtime.join(file)))
        .arg("-o")
        .arg(&program);
    let output = cc.output().expect("running cc");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// What the runtime makes of the cases.
fn rendered_in_c(cases: &[Case]) -> Vec<Vec<u8>> {
    let mut input = Vec::new();
    for case in cases {
        input.extend(case.room.to_le_bytes());
        input.extend((case.descriptions.len() as u32).to_le_bytes());
        for bytes in case.descriptions.iter().chain([&case.format, &case.payload]) {
            input.extend((bytes.len() as u32).to_le_bytes());
            input.extend(bytes);
        }
    }
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("parity.in");
    fs::write(&file, input).expect("writing the cases");
    let input = fs::File::open(&file).expect("opening the cases");
    let output = Command::new(compiled()).stdin(Stdio::from(input)).env("ASAN_OPTIONS", "detect_leaks=0").output();
    let output = output.expect("running the runtime's side");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut rest = output.stdout.as_slice();
    let mut texts = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk::<4>() {
        let (text, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
        texts.push(text.to_vec());
        rest = behind;
    }
    texts
}

#[test]
fn loader_and_runtime_write_the_same() {
    let mut random = Random(0x5eed);
    let cases: Vec<Case> = (0..CASES)
        .map(|_| {
            let pieces: Vec<Piece> = (0..1 + random.below(4)).map(|_| random.piece()).collect();
            let payload = random.payload(&pieces);
            let mut descriptions = Vec::new();
            let format = encode(&pieces, |object| {
                descriptions.push(object.encode());
                descriptions.len() as u32 - 1
            });
            // As the loader has them: empty literals are not encoded.
            let objects: Vec<Arc<Pretty>> = descriptions
                .iter()
                .map(|description| {
                    Arc::new(Pretty::decode(description, &mut MAX_PARTS.clone()).expect("what was encoded"))
                })
                .collect();
            let pieces = decode(&format, &objects, &mut MAX_PARTS.clone()).expect("what was encoded");
            Case { pieces, format, descriptions, payload, room: random.one_of(&[1, 2, 9, 64, 512, 4096]) }
        })
        .collect();
    let in_c = rendered_in_c(&cases);
    assert_eq!(in_c.len(), cases.len());
    let mut shorts = 0;
    for (case, in_c) in cases.iter().zip(in_c) {
        let mut text = Text::new(case.room as usize - 1);
        let ended = render(
            &case.pieces,
            &mut Payload::new(&case.payload),
            &mut Symbols::new(None, Users::default()),
            &mut text,
        );
        shorts += usize::from(ended.is_err());
        let (ours, theirs) = (String::from_utf8_lossy(text.as_bytes()), String::from_utf8_lossy(&in_c));
        assert!(text.as_bytes() == in_c, "{:?}\n{:?}\nloader:  {ours}\nruntime: {theirs}", case.pieces, case.payload);
    }
    // The generator must not have become one of nothing but broken payloads, or of none.
    assert!((CASES / 50..CASES / 2).contains(&shorts), "{shorts}");
}
