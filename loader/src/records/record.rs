// SPDX-License-Identifier: GPL-2.0-or-later

//! Decodes records: script output, messages for standard error, commands.

use spile_abi::format::Piece;
use spile_abi::meta::Meta;
use spile_abi::record::{FORMAT_STACK, FORMAT_TEXT, Kind, NO_LOCATION, NO_PROBE, Record};

use crate::records::format;
use crate::records::livepatch::{self, NewPatch};
use crate::records::payload::{Payload, ShortPayload};
use crate::records::quick::{CompiledFormats, SLACK};
use crate::records::ring::Ring;
use crate::records::symbol::{Kernel, Symbols};
use crate::records::text::{MAX_TEXT, Text};
use crate::records::user::Users;
use crate::records::values::{self, Part, Value};
use spile_abi::escape;

/// Text is passed on in pieces of this size.
const BATCH: usize = 64 << 10;

/// A record, decoded with the module's tables.
#[derive(Debug, PartialEq, Eq)]
pub enum Decoded<'t> {
    /// Script output. `cut`: longer than [`MAX_TEXT`].
    Print {
        /// Text for standard output.
        text: &'t [u8],
        /// It was longer than [`MAX_TEXT`].
        cut: bool,
    },
    /// A warning of the script or of the module.
    Warning(String),
    /// The whole line after "ERROR: ".
    Error(String),
    /// Printed only with `-v`.
    Notice(String),
    /// What a guru script has written, or would have.
    Rewrite(String),
    /// A command for the shell.
    System(Vec<u8>),
    /// The session is stopping.
    Exit,
    /// Which task wrote the records after it.
    Task,
    /// The record is invalid; `text` is the part that could be decoded.
    Damaged {
        /// Text for standard output.
        text: &'t [u8],
        /// The reason.
        why: String,
    },
}

/// Reads records with the module's tables.
#[derive(Debug)]
pub struct Reader<'m> {
    meta: &'m Meta,
    formats: &'m [Vec<Piece>],
    /// Fast path, by format; `None`: not supported by it.
    quick: Vec<CompiledFormats>,
    symbols: Symbols<'m>,
    text: Text,
    /// Starts with the text of plain prints since the last call of [`Reader::printed`].
    batch: Box<[u8]>,
    /// Its used bytes.
    batched: usize,
}

impl<'m> Reader<'m> {
    /// `kernel`, `users`: sources of symbol names.
    pub fn new(
        meta: &'m Meta,
        formats: &'m [Vec<Piece>],
        kernel: Option<&'m dyn Kernel>,
        users: Users<'m>,
    ) -> Reader<'m> {
        let quick = formats.iter().map(|pieces| CompiledFormats::of(pieces).unwrap_or_default()).collect();
        let symbols = Symbols::new(kernel, users);
        Reader {
            meta,
            formats,
            quick,
            symbols,
            text: Text::new(MAX_TEXT),
            batch: vec![0; BATCH + SLACK].into(),
            batched: 0,
        }
    }

    /// To be called before reading records that were written before `changes` was read: [`Ring::changes`].
    pub fn changed(&mut self, changes: u64) {
        self.symbols.changed(changes);
    }

    /// Reads records of the ring from before `below`, at most this many, as long as they are supported by the fast path
    /// and their text fits. Returns their number; [`Reader::read`] reads the next one, after the text printed so far.
    pub fn read_quickly(&mut self, ring: &mut Ring, below: u64, most: usize) -> usize {
        let Reader { quick, batch, .. } = self;
        let mut room = batch.get_mut(self.batched..).unwrap_or_default();
        let (whole, mut left, mut count) = (room.len(), room.len(), 0);
        let (nothing, cpu) = (CompiledFormats::default(), ring.cpu);
        let format_of = |record: Record| {
            let is_print = record.kind == Kind::Print as u16 && u32::from(record.cpu) == cpu;
            quick.get(record.id as usize).filter(|_| is_print)
        };
        ring.pass_while(below, most, &nothing, format_of, |format, payload| {
            let Some(rest) = format.write(payload, std::mem::take(&mut room)) else { return false };
            room = rest;
            left = room.len();
            count += 1;
            true
        });
        self.batched += whole - left;
        count
    }

    /// Whether records read since the last call had names that were not known, as [`Users::takes_asked`].
    pub fn takes_asked(&mut self) -> bool {
        self.symbols.takes_asked()
    }

    /// Takes the text read by the fast path.
    pub fn printed(&mut self, print: impl FnOnce(&[u8])) {
        let text = self.batch.get(..self.batched).unwrap_or_default();
        if !text.is_empty() {
            print(text);
        }
        self.batched = 0;
    }

    /// Decodes a record. The text is valid until the next call.
    pub fn read(&mut self, record: &Record, payload: &[u8]) -> Decoded<'_> {
        self.text.clear();
        let Some(kind) = Kind::from_number(record.kind) else { return self.damaged(format!("kind {}", record.kind)) };
        let mut payload = Payload::new(payload);
        match kind {
            Kind::Print => {
                self.symbols.at(record.time);
                self.print(record.id, &mut payload)
            }
            Kind::Exit | Kind::Pad => Decoded::Exit,
            Kind::Task => Decoded::Task,
            _ => match payload.bytes() {
                Ok(Some(bytes)) => {
                    let calls = payload.bytes().ok().flatten().unwrap_or_default();
                    self.message(kind, record, bytes, calls)
                }
                _ => self.damaged(format!("no text in a record of kind {}", record.kind)),
            },
        }
    }

    /// The values of a [`Kind::Print`], with the text between them. A damaged record has those before the damage.
    pub fn parts(&mut self, record: &Record, payload: &[u8]) -> Vec<Part> {
        self.symbols.at(record.time);
        let mut payload = Payload::new(payload);
        let text = match record.id {
            FORMAT_TEXT => return vec![Part::Literal(payload.bytes().ok().flatten().unwrap_or_default().to_vec())],
            FORMAT_STACK => {
                let mut text = Text::new(MAX_TEXT);
                match self.symbols.stack(&mut payload, &mut text) {
                    Ok(()) => text,
                    Err(ShortPayload) => return Vec::new(),
                }
            }
            id => {
                let pieces = self.formats.get(id as usize).map(Vec::as_slice).unwrap_or_default();
                return values::parts(pieces, &mut payload, &mut self.symbols).0;
            }
        };
        let name = |line: &[u8]| {
            let after = line.windows(3).position(|part| part == b" : ").filter(|_| line.starts_with(b" 0x"));
            after.and_then(|at| line.get(at + 3..)).unwrap_or(line).to_vec()
        };
        vec![Part::Value(Value::Stack(values::lines(text.as_bytes()).iter().map(|line| name(line)).collect()))]
    }

    fn print(&mut self, id: u32, payload: &mut Payload<'_>) -> Decoded<'_> {
        let ended = match id {
            FORMAT_TEXT => payload.bytes().map(|bytes| self.text.push(bytes.unwrap_or_default())),
            FORMAT_STACK => self.symbols.stack(payload, &mut self.text),
            _ => match self.formats.get(id as usize) {
                Some(pieces) => format::render(pieces, payload, &mut self.symbols, &mut self.text),
                None => return self.damaged(format!("format {id}")),
            },
        };
        match ended {
            Ok(()) => Decoded::Print { text: self.text.as_bytes(), cut: self.text.is_cut() },
            Err(ShortPayload) => self.damaged(format!("too short for format {id}")),
        }
    }

    fn message(&self, kind: Kind, record: &Record, bytes: &[u8], calls: &[u8]) -> Decoded<'_> {
        // A newline at the end of the script's message is not doubled.
        let text = || escape::bytes(bytes.strip_suffix(b"\n").unwrap_or(bytes));
        match kind {
            Kind::Warn => Decoded::Warning(text()),
            Kind::Notice => Decoded::Notice(text()),
            Kind::Rewrite => Decoded::Rewrite(text()),
            Kind::Livepatch => match livepatch::check_new_patch(self.meta, &text()) {
                NewPatch::Relevant(line) => Decoded::Warning(line),
                NewPatch::Unrelated(line) => Decoded::Notice(line),
            },
            Kind::System => Decoded::System(bytes.to_vec()),
            _ => Decoded::Error(self.with_place(text(), record, calls)),
        }
    }

    /// `MESSAGE near LOCATION (called from LOCATION) in probe POINT`, as far as known. `calls`: as in the record.
    fn with_place(&self, mut message: String, record: &Record, calls: &[u8]) -> String {
        if record.id == NO_LOCATION {
            return message;
        }
        // A message that starts with the name of a limit refers to an option of the user.
        let limit = message
            .strip_suffix(" exceeded")
            .filter(|name| ["MAXACTION", "MAXNESTING"].contains(name))
            .map(str::to_string);
        if let Some(location) = self.meta.locations.get(record.id as usize).filter(|location| !location.is_empty()) {
            message.push_str(" near ");
            message.push_str(location);
        }
        message.push_str(&self.chain(calls));
        let probe = (record.probe != NO_PROBE).then(|| self.meta.probes.get(record.probe as usize)).flatten();
        if let Some(probe) = probe {
            message.push_str(" in probe ");
            message.push_str(&probe.point);
        }
        if let Some(limit) = limit {
            message.push_str(&format!(" (-D{limit}=NUMBER allows more)"));
        }
        message
    }

    /// The call chain of an error; recursive calls from the same place are counted.
    fn chain(&self, calls: &[u8]) -> String {
        let locations = calls.chunks_exact(4).filter_map(|call| {
            let id = u32::from_le_bytes(call.try_into().ok()?);
            self.meta.locations.get(id as usize).filter(|location| !location.is_empty())
        });
        let locations: Vec<&String> = locations.collect();
        let mut chain = String::new();
        for same in locations.chunk_by(|one, next| one == next) {
            let Some(location) = same.first() else { continue };
            chain.push_str(&format!(" (called from {location}"));
            if same.len() > 1 {
                chain.push_str(&format!(", {} times", same.len()));
            }
            chain.push(')');
        }
        chain
    }

    fn damaged(&self, why: String) -> Decoded<'_> {
        Decoded::Damaged { text: self.text.as_bytes(), why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spile_abi::format::{Directive, Flags, Size};
    use spile_abi::meta::Probe;

    use crate::records::ring::tests::Fake;
    use crate::records::symbol::tests::part;

    fn meta() -> Meta {
        Meta {
            locations: vec!["operator '/' at <input>:1:53".into(), String::new()],
            probes: vec![Probe { point: "begin".into(), ..Probe::default() }],
            ..Meta::default()
        }
    }

    fn formats() -> Vec<Vec<Piece>> {
        let plain = Directive { conversion: b'd', flags: Flags::default(), width: Size::None, precision: Size::None };
        vec![vec![Piece::Literal(b"n=".to_vec()), Piece::Directive(plain)]]
    }

    fn record(kind: Kind, id: u32, probe: u32) -> Record {
        Record { kind: kind as u16, id, probe, ..Record::default() }
    }

    const TEXT: &[u8] = b"\x05\0\0\0hello\0\0\0\0\0\0\0";

    #[test]
    fn every_kind_is_read() {
        let (meta, formats) = (meta(), formats());
        let mut reader = Reader::new(&meta, &formats, None, Users::default());
        let print = Decoded::Print { text: b"n=7", cut: false };
        assert_eq!(reader.read(&record(Kind::Print, 0, 0), &7i64.to_le_bytes()), print);
        let print = Decoded::Print { text: b"hello", cut: false };
        assert_eq!(reader.read(&record(Kind::Print, FORMAT_TEXT, 0), TEXT), print);
        assert_eq!(reader.read(&record(Kind::Warn, 0, 0), TEXT), Decoded::Warning("hello".into()));
        assert_eq!(reader.read(&record(Kind::Notice, 0, 0), TEXT), Decoded::Notice("hello".into()));
        assert_eq!(reader.read(&record(Kind::System, 0, 0), TEXT), Decoded::System(b"hello".to_vec()));
        assert_eq!(reader.read(&record(Kind::Exit, 0, 0), b""), Decoded::Exit);
        let print = Decoded::Print { text: b"0x10\n", cut: false };
        assert_eq!(reader.read(&record(Kind::Print, FORMAT_STACK, 0), &[&[0; 8][..], &part(&[0x10])].concat()), print);
    }

    #[test]
    fn quick_prints_come_up_to_the_first_of_another_kind() {
        let (meta, formats) = (meta(), formats());
        let mut reader = Reader::new(&meta, &formats, None, Users::default());
        let mut fake = Fake::new(0, 1024);
        for (time, value) in [7i64, -1, 100, 5].iter().enumerate() {
            fake.write(time as u64, &value.to_le_bytes());
        }
        fake.write(9, b"shortish");
        fake.write(10, b"");
        fake.ring.refresh();
        let mut printed = Vec::new();
        assert_eq!(reader.read_quickly(&mut fake.ring, 3, 3), 2);
        assert_eq!(reader.read_quickly(&mut fake.ring, 3, 9), 1);
        reader.printed(|text| printed.extend_from_slice(text));
        reader.printed(|_| panic!("nothing came meanwhile"));
        assert_eq!(printed, b"n=7n=-1n=100");
        // The last one is too short.
        assert_eq!(reader.read_quickly(&mut fake.ring, 11, 9), 2);
        assert_eq!(fake.ring.front().unwrap().map(|record| record.time), Some(10));
        assert_eq!(reader.read_quickly(&mut fake.ring, 11, 9), 0);
    }

    #[test]
    fn errors_name_the_known_parts_of_their_place() {
        let (meta, formats) = (meta(), formats());
        let mut reader = Reader::new(&meta, &formats, None, Users::default());
        for (id, probe, expected) in [
            (0, 0, "hello near operator '/' at <input>:1:53 in probe begin"),
            (1, 0, "hello in probe begin"),
            (0, NO_PROBE, "hello near operator '/' at <input>:1:53"),
            (7, 7, "hello"),
            (NO_LOCATION, 0, "hello"),
        ] {
            assert_eq!(reader.read(&record(Kind::Error, id, probe), TEXT), Decoded::Error(expected.into()));
        }
    }

    #[test]
    fn an_exceeded_limit_is_named_with_its_option() {
        let (meta, formats) = (meta(), formats());
        let mut reader = Reader::new(&meta, &formats, None, Users::default());
        let text = b"MAXACTION exceeded";
        let payload: Vec<u8> = (text.len() as u32).to_le_bytes().into_iter().chain(*text).chain([0; 2]).collect();
        let expected =
            "MAXACTION exceeded near operator '/' at <input>:1:53 in probe begin (-DMAXACTION=NUMBER allows more)";
        assert_eq!(reader.read(&record(Kind::Error, 0, 0), &payload), Decoded::Error(expected.into()));
    }

    #[test]
    fn errors_list_their_call_chain() {
        let mut meta = meta();
        meta.locations.extend(["identifier 'f' at a:2:1".into(), "identifier 'g' at a:9:1".into()]);
        let formats = formats();
        let mut reader = Reader::new(&meta, &formats, None, Users::default());
        let calls = [20u32, 2, 2, 2, 3, 99].iter().flat_map(|word| word.to_le_bytes());
        let payload: Vec<u8> = TEXT.iter().copied().chain(calls).collect();
        let expected = "hello near operator '/' at <input>:1:53 (called from identifier 'f' at a:2:1, 3 times) \
                        (called from identifier 'g' at a:9:1) in probe begin";
        assert_eq!(reader.read(&record(Kind::Error, 0, 0), &payload), Decoded::Error(expected.into()));
    }

    #[test]
    fn the_readable_part_of_a_damaged_record_is_printed() {
        let (meta, formats) = (meta(), formats());
        let mut reader = Reader::new(&meta, &formats, None, Users::default());
        let decoded = reader.read(&record(Kind::Print, 0, 0), b"1234");
        assert_eq!(decoded, Decoded::Damaged { text: b"n=", why: "too short for format 0".into() });
        assert!(matches!(reader.read(&record(Kind::Print, 1, 0), b""), Decoded::Damaged { .. }));
        assert!(matches!(reader.read(&record(Kind::Warn, 0, 0), b"\xff\0\0\0"), Decoded::Damaged { .. }));
        assert!(matches!(reader.read(&Record { kind: 99, ..Record::default() }, b""), Decoded::Damaged { .. }));
    }

    #[test]
    fn random_records_never_panic() {
        let (meta, formats) = (meta(), formats());
        let mut reader = Reader::new(&meta, &formats, None, Users::default());
        let mut seed = 1u64;
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed >> 33
        };
        for _ in 0..20_000 {
            let payload: Vec<u8> =
                (0..random() % 40).map(|_| if random() % 2 == 0 { 0 } else { random() as u8 }).collect();
            let record = Record {
                kind: random() as u16 % 9,
                id: if random() % 8 == 0 { FORMAT_STACK } else { random() as u32 % 3 },
                probe: random() as u32 % 3,
                ..Record::default()
            };
            let _ = reader.read(&record, &payload);
        }
    }
}
