// SPDX-License-Identifier: GPL-2.0-or-later

//! Recordings made by an adversary: any bytes in frames with right checksums, and names with the metacharacters of every format.

use std::sync::Arc;

use spile_abi::format::{self, Chart, Directive, Flags, Histogram, Piece, Pretty, PrettyOp, PrettyStyle, Size};
use spile_abi::meta::{Meta, Probe};
use spile_abi::record::{FORMAT_STACK, FORMAT_TEXT, Kind, Record, STACK_FULL};
use spilerun::records::recording::names::Kept;
use spilerun::records::recording::write::Recorder;

use crate::command::{Chosen, Format, write};
use crate::report;

const NAME: &str = "</pre><script>alert(1)</script>\"'\\,;\n\x1b[2J\u{202e}=1+1";

fn directive(conversion: u8) -> Piece {
    let (flags, width, precision) = (Flags::default(), Size::None, Size::None);
    Piece::Directive(Directive { conversion, flags, width, precision })
}

fn part(bytes: &[u8]) -> Vec<u8> {
    let mut part = (bytes.len() as u32).to_le_bytes().to_vec();
    part.extend(bytes);
    part.resize(part.len().next_multiple_of(8), 0);
    part
}

/// A recording with every kind of value.
fn recording() -> Vec<u8> {
    let integer = PrettyOp::Integer { offset: 0, size: 4, first_bit: 0, bits: 0, style: PrettyStyle::Signed };
    let ops = vec![
        PrettyOp::Literal(b"{.a=".to_vec()),
        integer.clone(),
        PrettyOp::Literal(b", .b={".to_vec()),
        PrettyOp::Repeat { offset: 0, count: 2, stride: 4, body: vec![integer] },
        PrettyOp::Literal(b"}}".to_vec()),
    ];
    let pretty = Arc::new(Pretty { size: 8, ops, ..Pretty::default() });
    let formats = [
        vec![directive(b'd'), Piece::Literal(NAME.as_bytes().to_vec()), directive(b's')],
        vec![directive(b'm'), directive(b'u'), directive(b'c')],
        vec![Piece::Pretty(Arc::clone(&pretty)), Piece::Histogram(Histogram::Log, Chart::default())],
        vec![directive(b'K'), directive(b'U'), directive(b'd')],
        vec![Piece::Histogram(
            Histogram::Linear { low: i64::MIN + 1, high: i64::MAX - 1, width: i64::MAX },
            Chart { columns: 1, kept: None },
        )],
    ];
    let meta = Meta {
        name: "script".into(),
        title: NAME.into(),
        kernel_release: "6.1.0".into(),
        probes: vec![
            Probe { point: NAME.into(), ..Probe::default() },
            Probe { point: "timer.ms(1)".into(), ..Probe::default() },
        ],
        formats: formats.iter().map(|pieces| format::encode(pieces, |_| 0)).collect(),
        descriptions: vec![pretty.encode()],
        value_names: vec![vec![NAME.into(), NAME.into()]; 5],
        ..Meta::default()
    };
    let kept = Kept::default();
    let about = [("host", NAME.to_string()), (NAME, NAME.to_string()), ("realtime", i128::MAX.to_string())];
    let mut recorder = Recorder::new(&kept, &about, &meta.encode());
    let mut record = |time: u64, kind: Kind, id: u32, payload: &[u8]| {
        let record = Record { bytes: 0, kind: kind as u16, cpu: 1, id, probe: (time % 3) as u32, time };
        recorder.push(&record, payload);
    };
    let long = |value: i64| value.to_le_bytes().to_vec();
    let name = part(NAME.as_bytes());
    let mut counts = vec![0u8; 128 * 8];
    counts[70 * 8..71 * 8].fill(0xff);
    record(0, Kind::Task, 0, &[long(7 << 32 | 8), name.clone()].concat());
    for time in [1, 2, 3, 4, u64::MAX] {
        record(time, Kind::Print, 0, &[long(i64::MIN), name.clone()].concat());
        record(time, Kind::Print, 1, &[part(&[0x45; 40]), long(-1), long(27)].concat());
        record(time, Kind::Print, 2, &[part(&[1, 0, 0, 0, 2, 0, 0, 0]), part(&counts)].concat());
        record(time, Kind::Print, 3, &[part(&[9; 16]), part(&[1; 32]), long(5)].concat());
        record(time, Kind::Print, 4, &part(&[0xff; 24]));
        record(time, Kind::Print, FORMAT_TEXT, &part(b"a;<b>;c 7\n"));
        record(time, Kind::Print, FORMAT_STACK, &[long(STACK_FULL), part(&[3; 24])].concat());
        for kind in [Kind::Warn, Kind::Error, Kind::System, Kind::Rewrite, Kind::Notice, Kind::Livepatch] {
            record(time, kind, 0, &[name.clone(), part(&[0; 8])].concat());
        }
    }
    recorder.lost(&[(0, u64::MAX, u64::MAX), (1, u64::MAX, 1)]);
    let stats = format!(
        "{{\"probes\":[{{\"point\":{},\"hits\":18446744073709551615,\"cycles\":{{\"avg\":18446744073709551615}}}}]}}",
        crate::quote::quoted(NAME.as_bytes())
    );
    recorder.counts(&stats);
    recorder.end(3, &[("stats", stats.clone()), (NAME, "[1, 2".to_string())]);
    let mut file = Vec::new();
    recorder.flush(|frames| file.extend_from_slice(frames));
    file
}

fn crc32(parts: &[&[u8]]) -> u32 {
    !parts.iter().copied().flatten().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 })
    })
}

/// Kinds and contents of all frames.
fn frames(mut file: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut frames = Vec::new();
    while !file.is_empty() {
        let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
        let (stored, length) = (word(8), word(12));
        let bytes = &file[20..20 + stored];
        let contents =
            if stored == length { bytes.to_vec() } else { miniz_oxide::inflate::decompress_to_vec(bytes).unwrap() };
        frames.push((file[4], contents));
        file = &file[20 + stored..];
    }
    frames
}

fn file_of(frames: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut file = Vec::new();
    for (kind, contents) in frames {
        let length = (contents.len() as u32).to_le_bytes();
        let head = [&b"SPLR"[..], &[*kind, 0, 0, 0], &length, &length].concat();
        file.extend(&head);
        file.extend(crc32(&[&head, contents]).to_le_bytes());
        file.extend(contents);
    }
    file
}

/// Writes it in all formats, and checks what must hold for any contents.
fn all(file: &[u8]) {
    for format in
        [Format::Text, Format::Json, Format::Ndjson, Format::Csv, Format::Folded, Format::Perfetto, Format::Pcapng]
    {
        let mut out = Vec::new();
        let read = write(format, file, &mut out, true, Chosen::default());
        assert!(out.len() < 64 << 20);
        let text = String::from_utf8_lossy(&out);
        match format {
            Format::Json if read.is_ok() => drop(serde_json::from_str::<serde_json::Value>(&text).unwrap()),
            Format::Ndjson => {
                text.lines().for_each(|line| drop(serde_json::from_str::<serde_json::Value>(line).unwrap()));
            }
            _ => {}
        }
        if matches!(format, Format::Text | Format::Json | Format::Ndjson) {
            assert!(!out.contains(&0x1b), "an escape sequence comes through as {format:?}");
        }
    }
    let (page, text) = report::of_bytes(file);
    assert!(page.len() < 1_000_000, "{}", page.len());
    assert_eq!(page.matches("<script>").count(), 1);
    assert!(!page.contains("alert(1)</script>") && !page.contains('\u{202e}') && !page.contains('\x1b'));
    assert!(!text.contains('\x1b') && !text.contains('\u{202e}'));
}

#[test]
fn metacharacters_stay_text_in_every_format() {
    all(&recording());
}

#[test]
fn any_contents_are_survived() {
    let original = frames(&recording());
    assert_eq!(
        file_of(&original).len(),
        20 * original.len() + original.iter().map(|(_, contents)| contents.len()).sum::<usize>()
    );
    let mut seed = 1u64;
    let mut below = |limit: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % limit.max(1)
    };
    for _ in 0..150 {
        let mut changed = original.clone();
        for _ in 0..1 + below(4) {
            let count = changed.len();
            let (kind, contents) = &mut changed[below(count)];
            let at = below(contents.len());
            match below(8) {
                0 => contents.truncate(at),
                1 => contents.extend((0..below(64)).map(|_| 0xff)),
                2 => *kind = 1 + below(6) as u8,
                3 => (at..contents.len().min(at + 4)).for_each(|at| contents[at] = 0xff),
                _ => (0..1 + below(6)).for_each(|_| {
                    let at = below(contents.len());
                    if let Some(byte) = contents.get_mut(at) {
                        *byte = below(256) as u8;
                    }
                }),
            }
        }
        if below(5) == 0 {
            let frame = changed[below(changed.len())].clone();
            changed.push(frame);
        }
        all(&file_of(&changed));
    }
}
