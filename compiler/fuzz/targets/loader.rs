// SPDX-License-Identifier: GPL-2.0-or-later

//! What the loader reads: a module's description, records, and a service's configuration.

use std::path::Path;
use std::sync::Arc;

use spile_abi::format::{self, Directive, Flags, Piece, Pretty, PrettyOp, PrettyStyle, Size};
use spile_abi::meta::{Meta, Probe, Setting, Target};
use spile_abi::record::{FORMAT_STACK, FORMAT_TEXT, Record};
use spilerun::records::record::Reader;
use spilerun::records::user::Users;

use super::Choices;

fn directive(conversion: u8, width: Size, precision: Size) -> Piece {
    Piece::Directive(Directive { conversion, flags: Flags::default(), width, precision })
}

/// One of each kind of piece.
fn formats() -> Vec<Vec<Piece>> {
    let integer = PrettyOp::Integer { offset: 0, size: 4, first_bit: 3, bits: 9, style: PrettyStyle::Signed };
    let repeat = PrettyOp::Repeat { offset: 4, count: 3, stride: 2, body: vec![integer.clone(), PrettyOp::Unknown] };
    let ops = vec![
        PrettyOp::Literal(b"{.a=".to_vec()),
        integer,
        repeat,
        PrettyOp::Chars { offset: 0, length: 8 },
        PrettyOp::StringPointer { offset: 8 },
        PrettyOp::Text { offset: 8, length: 16 },
    ];
    vec![
        vec![Piece::Literal(b"n=".to_vec()), directive(b'd', Size::None, Size::None)],
        vec![
            directive(b's', Size::Star, Size::Star),
            directive(b'x', Size::Fixed(9), Size::None),
            directive(b'M', Size::None, Size::Fixed(4)),
        ],
        vec![
            directive(b'c', Size::None, Size::None),
            directive(b'b', Size::Fixed(4), Size::None),
            directive(b'p', Size::Star, Size::None),
        ],
        vec![Piece::Pretty(Arc::new(Pretty { size: 16, ops, ..Pretty::default() }))],
    ]
}

fn description() -> Meta {
    Meta {
        name: "m".into(),
        title: "<input>".into(),
        kernel_release: "6.1.0".into(),
        targets: vec![Target { name: "ext4".into(), build_id: vec![1; 20], path: "/x".into() }],
        probes: vec![Probe { point: "begin".into(), ..Probe::default() }],
        formats: formats().iter().map(|pieces| format::encode(pieces, |_| 0)).collect(),
        descriptions: vec![Pretty::default().encode()],
        locations: vec!["operator '/' at <input>:1:53".into()],
        settings: vec![Setting { name: "g".into(), string_bytes: 0 }],
        ..Meta::default()
    }
}

/// The section `.spile.meta`, and the whole file around it.
pub fn meta(bytes: &[u8]) {
    let path = Path::new("fuzzed.ko");
    let _ = spilerun::file::Description::decode(path, bytes);
    let file = super::elf::executable(vec![super::elf::Section::plain(spile_abi::meta::SECTION, bytes.to_vec())]);
    let _ = (spilerun::file::File::of(path.into(), file), spilerun::file::File::of(path.into(), bytes.to_vec()));
    let _ = (
        spilerun::elf::section(bytes, ".spile.meta"),
        spilerun::elf::note(bytes, b"GNU", 3),
        format::decode(bytes, &[Arc::new(Pretty::default())], &mut format::MAX_PARTS.clone()),
        Pretty::decode(bytes, &mut format::MAX_PARTS.clone()),
    );
}

pub fn meta_seeds() -> Vec<Vec<u8>> {
    let meta = description();
    meta.formats.iter().cloned().chain([meta.encode()]).collect()
}

/// Records of a module whose tables are sound: the first bytes are kind, format and probe, the others the payload.
pub fn record(bytes: &[u8]) {
    let (meta, formats) = (description(), formats());
    let mut reader = Reader::new(&meta, &formats, None, Users::default());
    let mut choices = Choices::new(bytes);
    while !choices.is_over() {
        let kind = u16::from(choices.byte() % 12);
        let id = match choices.byte() {
            0xff => FORMAT_TEXT,
            0xfe => FORMAT_STACK,
            id => u32::from(id % 6),
        };
        let (probe, length) = (u32::from(choices.byte() % 3), usize::from(choices.byte()));
        let record = Record { kind, id, probe, ..Record::default() };
        let _ = reader.read(&record, choices.take(length));
    }
}

pub fn record_seeds() -> Vec<Vec<u8>> {
    let part = |bytes: &[u8]| [&(bytes.len() as u32).to_le_bytes()[..], bytes].concat();
    let payloads = [
        7i64.to_le_bytes().to_vec(),
        part(b"hello\0\0\0\0\0\0\0"),
        vec![0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0],
        [part(&[9; 20]), part(&[b'a'; 4])].concat(),
    ];
    let record = |kind: u8, id: u8, payload: &Vec<u8>| [&[kind, id, 0, payload.len() as u8][..], payload].concat();
    payloads.iter().flat_map(|payload| (0..9).map(move |kind| record(kind, kind % 4, payload))).collect()
}

pub fn conf_seeds() -> Vec<Vec<u8>> {
    vec![
        spilerun::conf::default("x").into_bytes(),
        b"OPTIONS=--dry-run -s 3\nGLOBALS=g=1\nOUTPUT=/x\nMISSING=fetch\nDIRECTORY=/y\nEARLY=yes".to_vec(),
    ]
}

/// A service's configuration, and whether a module could be run with it.
pub fn conf(bytes: &[u8]) {
    if let Ok(conf) = spilerun::conf::parse(&String::from_utf8_lossy(bytes)) {
        let _ = conf.suits(&description());
    }
}
