// SPDX-License-Identifier: GPL-2.0-or-later

//! Recordings that were made to take all memory of who reads them: they may come from anyone. Megabytes that say gigabytes.

#![allow(clippy::unwrap_used, reason = "a test that fails may say so in any way")]

use std::io::Write;
use std::path::Path;
use std::process::Command;

use spile_abi::meta::Meta;

const HEADER: u8 = 1;
const NAMES: u8 = 3;
const LOSSES: u8 = 4;
const END: u8 = 5;
/// The most that a frame may contain.
const LARGE: usize = 60 << 20;

fn frame(kind: u8, contents: &[u8]) -> Vec<u8> {
    let mut deflate = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    deflate.write_all(contents).unwrap();
    let packed = deflate.finish().unwrap();
    let stored = if packed.len() < contents.len() { &packed } else { contents };
    let mut frame = b"SPLR".to_vec();
    frame.extend([kind, 0, 0, 0]);
    frame.extend((stored.len() as u32).to_le_bytes());
    frame.extend((contents.len() as u32).to_le_bytes());
    let mut sum = flate2::Crc::new();
    sum.update(&frame);
    sum.update(stored);
    frame.extend(sum.sum().to_le_bytes());
    frame.extend(stored);
    frame
}

fn text(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_le_bytes(), bytes].concat()
}

/// With what is known about the session, and the description of its module.
fn header(pairs: &[u8], meta: &[u8]) -> Vec<u8> {
    frame(HEADER, &[&1u32.to_le_bytes(), pairs, &text(meta)].concat())
}

fn no_pairs() -> Vec<u8> {
    0u32.to_le_bytes().to_vec()
}

fn plain() -> Vec<u8> {
    let meta = Meta { name: "x".into(), title: "x".into(), kernel_release: "6.1".into(), ..Meta::default() };
    header(&no_pairs(), &meta.encode())
}

fn end() -> Vec<u8> {
    frame(END, &[0i32.to_le_bytes(), 0u32.to_le_bytes()].concat())
}

/// Reads it with so much address space; the program itself and its libraries take 100 MB of it. A message is fine, a
/// program that is out of memory is not.
fn read(name: &str, recording: &[u8]) {
    assert!(recording.len() < 16 << 20, "{name} has {} bytes", recording.len());
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.rec");
    std::fs::write(&file, recording).unwrap();
    let run = |words: &[&str]| {
        let mut command = Command::new("sh");
        let limited = "ulimit -v 700000; exec timeout 100 \"$@\"";
        command.args(["-c", limited, "sh", env!("CARGO_BIN_EXE_spile")]).args(words).arg(&file as &Path);
        let output = command.env("MALLOC_ARENA_MAX", "2").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let status = output.status.code();
        assert!(matches!(status, Some(0 | 1)) && !said.contains("panicked"), "{name}: {words:?}: {status:?} {said}");
    };
    run(&["replay"]);
    run(&["report"]);
}

#[test]
fn names_that_are_long() {
    let mut recording = plain();
    let name = text(&vec![b'A'; LARGE]);
    for number in 0..20u64 {
        let place = [&[2][..], &number.to_le_bytes(), &[0; 8], &[0, 1], &[0; 16], &text(b""), &name].concat();
        recording.extend(frame(NAMES, &place));
    }
    recording.extend(end());
    read("long names", &recording);
}

#[test]
fn pairs_that_are_many() {
    let many = LARGE / 8;
    let pairs = [&(many as u32).to_le_bytes()[..], &vec![0; many * 8]].concat();
    let meta = Meta { name: "x".into(), ..Meta::default() }.encode();
    read("many pairs", &[header(&pairs, &meta), end()].concat());
    read("many pairs at the end", &[plain(), frame(END, &[&0i32.to_le_bytes(), &pairs[..]].concat())].concat());
}

#[test]
fn losses_of_many_processors() {
    let mut recording = plain();
    for first in (0..4_000_000u32).step_by(1_000_000) {
        let one = |cpu: u32| [&cpu.to_le_bytes()[..], &[1; 16]].concat();
        let contents: Vec<u8> = (first..first + 1_000_000).flat_map(one).collect();
        recording.extend(frame(LOSSES, &contents));
    }
    recording.extend(end());
    read("losses", &recording);
}

#[test]
fn parts_of_formats_that_are_many() {
    let literals = [[1, 1, 0, b'x'].repeat(LARGE / 4), vec![0]].concat();
    let unknown = [&0u32.to_le_bytes()[..], &vec![6; LARGE], &[0]].concat();
    let with = |formats: Vec<Vec<u8>>, descriptions: Vec<Vec<u8>>| {
        let meta = Meta { name: "x".into(), kernel_release: "6.1".into(), formats, descriptions, ..Meta::default() };
        [header(&no_pairs(), &meta.encode()), end()].concat()
    };
    read("literals of a byte", &with(vec![literals], Vec::new()));
    read("operations of a byte", &with(Vec::new(), vec![unknown]));
    // Each of them is all of what is left.
    let mut nested = vec![6; LARGE];
    for _ in 0..14 {
        let mut when = vec![8, 0, 0, 0, 0, 1, 0, 0, 0];
        when.extend((nested.len() as u32).to_le_bytes());
        when.extend(nested);
        nested = when;
    }
    let nested = [&0u32.to_le_bytes()[..], &nested, &[0]].concat();
    read("operations in each other", &with(Vec::new(), vec![nested]));
}

#[test]
fn a_description_of_nothing_much() {
    // The numbers of elements of the last lists are its last words.
    let meta = Meta { name: "x".into(), ..Meta::default() }.encode();
    for at in (meta.len() - 28..meta.len()).step_by(4) {
        let mut many = meta.clone();
        many[at..at + 4].copy_from_slice(&0x00ff_ffffu32.to_le_bytes());
        many.resize(LARGE, 0);
        read(&format!("a description with many elements at {at}"), &[header(&no_pairs(), &many), end()].concat());
    }
}
