// SPDX-License-Identifier: GPL-2.0-or-later

//! Object files and their contents: ELF, DWARF, BTF, indexes, and packed files.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use spile_debuginfo::{self as debuginfo, DebugInfo, Elf, FunctionPattern, Type, TypeId};

use super::die::{Tree, Value, at, tag};
use super::{Choices, btf, elf};

/// Functions looked at of one file: inputs are small.
const FUNCTIONS: usize = 50;
/// Variables of each whose values on other lines are asked for, at one place, which takes as long as all else.
const ON_OTHER_LINES: usize = 2;

fn open(bytes: Vec<u8>) -> Option<DebugInfo> {
    let elf = Elf::of_bytes(Path::new("fuzzed.ko"), bytes).ok()?;
    let _ = (
        elf.is_whole(),
        elf.code_sizes().len(),
        elf.debug_link(),
        elf.symbol_address("f"),
        elf.first_code().map(|at| elf.near(at)),
    );
    DebugInfo::open(Arc::new(elf), None, None).ok()
}

/// Asks everything there is to ask, and exports an index.
pub fn ask(debug: &DebugInfo) {
    ask_without_index(debug);
    let _ = debug.export(None);
}

/// Asks everything there is to ask.
fn ask_without_index(debug: &DebugInfo) {
    let mut walked = HashMap::new();
    let mut walk = |debug: &DebugInfo, id| walk(debug, id, 0, &mut walked);
    let all = FunctionPattern { name: "*".into(), file: None };
    for id in debug.find_functions(&all).unwrap_or_default().into_iter().take(FUNCTIONS) {
        let Ok(function) = debug.function(id) else { continue };
        let _ = (debug.statements(id), debug.calls(id), debug.labels(id));
        function.return_type.into_iter().for_each(|id| walk(debug, id));
        for (place, at) in function
            .bodies
            .iter()
            .map(|body| body.entry)
            .chain(function.inlined.iter().map(|copy| copy.address))
            .take(FUNCTIONS)
            .enumerate()
        {
            let mut variables = debug.parameters(id).unwrap_or_default();
            variables.extend(debug.locals(id, at).unwrap_or_default());
            for (number, variable) in variables.into_iter().take(FUNCTIONS).enumerate() {
                let _ = debug.variable(id, at, &variable.name);
                if place == 0 && number < ON_OTHER_LINES {
                    let _ = debug.other_lines(id, at, &variable.name);
                }
                walk(debug, variable.type_id);
            }
        }
    }
    for name in ["struct list", "union list", "enum list", "list", "int"] {
        debug.find_type(name).ok().flatten().into_iter().for_each(|id| walk(debug, id));
    }
}

/// `walked`: at which depth each type has been before.
fn walk(debug: &DebugInfo, id: TypeId, depth: usize, walked: &mut HashMap<TypeId, usize>) {
    if walked.get(&id).is_some_and(|before| *before <= depth) {
        return;
    }
    walked.insert(id, depth);
    let _ = (debug.size_of(id), debug.type_name(id), debug.member(id, "field"));
    if depth > 3 {
        return;
    }
    match debug.resolve(id) {
        Ok((_, Type::Struct { members, .. })) => {
            members.iter().take(8).for_each(|member| walk(debug, member.type_id, depth + 1, walked));
        }
        Ok((_, Type::Array { element, .. } | Type::Pointer(Some(element)))) => walk(debug, element, depth + 1, walked),
        _ => {}
    }
}

/// Any bytes as a file.
pub fn elf(bytes: &[u8]) {
    open(bytes.to_vec()).iter().for_each(ask);
}

/// A file; one in four is exported as an index too, which reads all of it once more.
pub fn file(bytes: Vec<u8>, exports: bool) {
    open(bytes).iter().for_each(if exports { ask } else { ask_without_index });
}

pub fn int(tree: &mut Tree) -> usize {
    let attributes =
        vec![(at::NAME, Value::Text("int")), (at::BYTE_SIZE, Value::Number(4)), (at::ENCODING, Value::Number(5))];
    tree.add(0, tag::BASE, attributes)
}

/// Without the page of code, which would be most of them.
pub fn elf_seeds() -> Vec<Vec<u8>> {
    let mut tree = Tree::new();
    let of = int(&mut tree);
    tree.add_function(of, vec![0x91, 0x10]);
    let whole = tree.object();
    let text = whole.windows(64).position(|bytes| bytes == [0x90; 64]).unwrap_or(0);
    let mut small = whole.clone();
    small.drain(text..text + elf::CODE.1 as usize - 64);
    // Later parts have moved: the sections, and the table.
    let moved = elf::CODE.1 - 64;
    let mut shift = |at: usize| {
        let Some(word) = small.get(at..at + 8).and_then(|word| word.try_into().ok()).map(u64::from_le_bytes) else {
            return;
        };
        if word > text as u64 {
            small[at..at + 8].copy_from_slice(&(word - moved).to_le_bytes());
        }
    };
    shift(40);
    let table = u64::from_le_bytes(whole[40..48].try_into().unwrap_or_default()).saturating_sub(moved) as usize;
    (0..7).for_each(|section| shift(table + section * 64 + 24));
    vec![small, whole]
}

/// The bytes choose entries, what they refer to, and expressions.
pub fn dwarf(bytes: &[u8]) {
    open(tree(&mut Choices::new(bytes)).object()).iter().for_each(ask);
}

fn tree(choices: &mut Choices) -> Tree {
    const TAGS: [u16; 20] = [
        tag::BASE,
        tag::STRUCT,
        tag::UNION,
        tag::MEMBER,
        tag::POINTER,
        tag::TYPEDEF,
        tag::CONST,
        tag::ARRAY,
        tag::SUBRANGE,
        tag::ENUMERATION,
        tag::ENUMERATOR,
        tag::FUNCTION_TYPE,
        tag::PARAMETER,
        tag::FUNCTION,
        tag::VARIABLE,
        tag::BLOCK,
        tag::INLINED,
        tag::CALL_SITE,
        tag::VOLATILE,
        tag::RESTRICT,
    ];
    const NAMES: [u16; 17] = [
        at::NAME,
        at::TYPE,
        at::BYTE_SIZE,
        at::LOCATION,
        at::LOW_PC,
        at::HIGH_PC,
        at::MEMBER_PLACE,
        at::BIT_SIZE,
        at::BIT_OFFSET,
        at::ENCODING,
        at::ABSTRACT_ORIGIN,
        at::SPECIFICATION,
        at::DECLARATION,
        at::CONST_VALUE,
        at::UPPER_BOUND,
        at::FRAME_BASE,
        at::EXTERNAL,
    ];
    const TEXTS: [&str; 4] = ["f", "list", "x", "field"];
    let mut tree = Tree::new();
    let mut count = 1;
    while !choices.is_over() && count < 60 {
        let parent = match choices.of(4) {
            0 => 0,
            _ => count - 1 - choices.of(count.min(4)),
        };
        let mut attributes: Vec<(u16, Value)> = Vec::new();
        let tag = TAGS[choices.of(TAGS.len())];
        for _ in 0..choices.of(6) {
            let name = NAMES[choices.of(NAMES.len())];
            let value = match name {
                at::NAME => Value::Text(TEXTS[choices.of(TEXTS.len())]),
                at::TYPE | at::ABSTRACT_ORIGIN | at::SPECIFICATION => Value::Entry(choices.of(count + 4)),
                at::LOCATION | at::FRAME_BASE => Value::Expression(expression(choices)),
                at::LOW_PC => Value::Address(elf::CODE.0 + choices.of(16) as u64 * 16),
                at::DECLARATION | at::EXTERNAL => Value::Flag,
                _ => match choices.byte() {
                    byte @ 0..0xf0 => Value::Number(u64::from(byte)),
                    byte @ 0xf0..0xf8 => Value::Number(u64::MAX >> (byte & 7)),
                    _ => Value::Expression(expression(choices)),
                },
            };
            if attributes.iter().all(|(known, _)| *known != name) {
                attributes.push((name, value));
            }
        }
        tree.add(parent, tag, attributes);
        count += 1;
    }
    tree
}

/// Operations with operands as they need them, and some without sense.
fn expression(choices: &mut Choices) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..choices.of(24) {
        match choices.of(12) {
            // DW_OP_lit, breg, fbreg, call_frame_cfa, dup, over, pick.
            0 => bytes.push(0x30 + choices.byte() % 32),
            1 => bytes.extend([0x70 + choices.byte() % 32, choices.byte() & 0x7f]),
            2 => bytes.extend([0x91, choices.byte() & 0x7f]),
            3 => bytes.push(0x9c),
            4 => bytes.push(0x12),
            5 => bytes.push(0x14),
            6 => bytes.extend([0x15, choices.byte() % 4]),
            // Unary and binary operators, deref_size, piece, stack_value, implicit_pointer.
            7 => bytes.push(0x16 + choices.byte() % 24),
            8 => bytes.extend([0x94, 1 << (choices.byte() % 4)]),
            9 => bytes.extend([0x93, choices.byte() % 16]),
            10 => bytes.push(0x9f),
            _ => match choices.of(3) {
                0 => bytes.extend([0xa0, choices.byte(), 0, 0, 0, choices.byte() & 0x7f]),
                1 => bytes.extend([0xa3, 1, 0x50 + choices.byte() % 16]),
                _ => bytes.push(choices.byte()),
            },
        }
    }
    bytes
}

pub fn dwarf_seeds() -> Vec<Vec<u8>> {
    (0..8u8)
        .map(|seed| (0..200u16).map(|at| (at as u8).wrapping_mul(seed * 2 + 7).wrapping_add(seed)).collect())
        .collect()
}

/// The first byte says whether the rest is BTF as it is, or chooses some.
pub fn btf(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let made = match choices.byte() % 4 {
        0 => [&[0x9f, 0xeb][..], choices.rest()].concat(),
        _ => btf::made(&mut choices),
    };
    open(made.clone()).iter().for_each(ask);
    open(elf::executable(vec![elf::Section::plain(".BTF", made)])).iter().for_each(ask);
}

pub fn btf_seeds() -> Vec<Vec<u8>> {
    dwarf_seeds().into_iter().chain([[&[0, 1, 0, 24, 0, 0, 0][..], &[0; 40]].concat()]).collect()
}

/// Numbers of rows, and then the numbers and strings in them.
pub fn index(bytes: &[u8]) {
    let Ok(elf) = Elf::of_bytes(Path::new("fuzzed.index"), elf::executable(Vec::new())) else { return };
    let (rows, contents) = bytes.split_at(bytes.len().min(13));
    let Ok(made) = debuginfo::raw::index(&elf, rows, contents) else { return };
    open(made).iter().for_each(ask);
}

pub fn index_seeds() -> Vec<Vec<u8>> {
    dwarf_seeds()
}

/// A packed file.
pub fn packed(bytes: &[u8]) {
    let _ = debuginfo::raw::unpacked(bytes);
}

pub fn packed_seeds() -> Vec<Vec<u8>> {
    let text = b"contents of it, contents of it ".repeat(12);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let gzip = gzip.write_all(&text).and_then(|()| gzip.finish()).unwrap_or_default();
    let zstd = ruzstd::encoding::compress_to_vec(&text[..], ruzstd::encoding::CompressionLevel::Fastest);
    // LZ4's legacy frame with literals, a copy, and literals; a boot image without anything in it.
    let lz4 = [&[0x02, 0x21, 0x4c, 0x18, 8, 0, 0, 0, 0x24, b'a', b'b', 2, 0, 0x20, b'c', b'd'][..], &[0; 4]].concat();
    let mut image = vec![0; 600];
    image[0x202..0x206].copy_from_slice(b"HdrS");
    let mut all = vec![gzip, zstd, lz4, image];
    for options in [lzma_rust2::XzOptions::with_preset(1), lzma_rust2::XzOptions::with_preset(6)] {
        let xz = lzma_rust2::XzWriter::new(Vec::new(), options)
            .and_then(|mut xz| xz.write_all(&text).and_then(|()| xz.finish()));
        all.extend(xz.ok());
    }
    let lzma = lzma_rust2::LzmaWriter::new_use_header(Vec::new(), &lzma_rust2::LzmaOptions::with_preset(1), None);
    all.extend(lzma.and_then(|mut lzma| lzma.write_all(&text).and_then(|()| lzma.finish())).ok());
    all
}
