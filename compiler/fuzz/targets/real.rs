// SPDX-License-Identifier: GPL-2.0-or-later

//! Files of real kernels to begin with, as far as they are installed: modules with BTF, modules with DWARF, a kernel's BTF and
//! symbols, a kernel with DWARF, and a boot image. Of the kernels only a part is kept, because a whole one takes seconds, which would
//! leave no time for different inputs.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use spile_debuginfo as debuginfo;

use super::elf;

/// Modules of each kind.
const MODULES: usize = 4;
/// Largest file that is one of them, in bytes.
const LARGEST: u64 = 256 << 10;
/// Types that are kept of a kernel's, and bytes of their names.
const TYPES: usize = 400;
const NAMES: usize = 1 << 20;
/// Bytes that are kept of its symbols, of 24 each.
const SYMBOLS: usize = 24 * 300;

/// Bytes that are kept of a section with DWARF, and of another one.
const DWARF: usize = 96 << 10;
const OTHER: usize = 4 << 10;
/// The symbol by which a kernel is known.
const KNOWN_BY: &[u8] = b"register_kprobe\0";

/// All that are installed.
pub fn files() -> Vec<Vec<u8>> {
    let mut found: Vec<Vec<u8>> =
        ["/lib/modules", "/usr/lib/debug/lib/modules"].map(Path::new).into_iter().flat_map(modules).collect();
    found.extend(kernel());
    // The last is a kernel, or else a module.
    let image = found.last().and_then(|packed| boot_image(packed));
    found.extend(whole_kernel());
    found.extend(image);
    found
}

/// The first file of that directory whose name begins so.
fn first(directory: &str, name: &str) -> Option<PathBuf> {
    names(Path::new(directory))
        .into_iter()
        .find(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(|text| text.starts_with(name)))
}

fn names(directory: &Path) -> Vec<PathBuf> {
    let mut names: Vec<PathBuf> =
        fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    names.sort();
    names
}

/// The smallest of each kernel's `lib`, unpacked.
fn modules(top: &Path) -> Vec<Vec<u8>> {
    let mut found: Vec<(u64, PathBuf)> = names(top)
        .into_iter()
        .flat_map(|release| names(&release.join("kernel/lib")))
        .filter(|path| path.to_str().is_some_and(|path| path.contains(".ko")))
        .filter_map(|path| Some((fs::metadata(&path).ok()?.len(), path)))
        .filter(|(length, _)| *length <= LARGEST)
        .collect();
    found.sort();
    let unpacked = |(_, path): (u64, PathBuf)| {
        let bytes = fs::read(path).ok()?;
        match debuginfo::raw::unpacked(&bytes) {
            Some(unpacked) => unpacked.ok(),
            None => Some(bytes),
        }
    };
    found.into_iter().take(MODULES).filter_map(unpacked).collect()
}

/// From a package of headers, whose `vmlinux` has no code.
fn kernel() -> Option<Vec<u8>> {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().find(|path| path.join("target/headers").is_dir())?;
    let sources = names(&tree.join("target/headers")).into_iter().flat_map(|package| names(&package.join("usr/src")));
    let file = fs::read(sources.map(|source| source.join("vmlinux")).find(|path| path.is_file())?).ok()?;
    let section = |name| spilerun::elf::section(&file, name).ok().flatten();
    let symbols = section(".symtab")?;
    let made = vec![elf::Section::plain(".BTF", cut(section(".BTF")?)?)];
    let symbols = symbols.get(..SYMBOLS).unwrap_or(symbols).to_vec();
    Some(elf::executable_with(symbols, section(".strtab")?.to_vec(), made))
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let word = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(word)).ok()
}

/// A kernel with DWARF: its headers and all its sections, of which the first bytes are kept (gABI 4.1: e_phoff at 32, e_shoff at 40,
/// e_phnum at 56, e_shnum at 60; headers of 56 and of 64 bytes).
pub fn whole_kernel() -> Option<Vec<u8>> {
    let file = fs::File::open(first("/usr/lib/debug/boot", "vmlinux-")?).ok()?;
    let read = |at: u64, length: usize| {
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, at).ok().map(|()| bytes)
    };
    let head = read(0, 64)?;
    let (segments, sections) = (half(&head, 56)?, half(&head, 60)?);
    let mut segments = read(long(&head, 32)?, segments * 56)?;
    let mut table = read(long(&head, 40)?, sections * 64)?;
    let whole = |header: &[u8]| read(long(header, 24)?, usize::try_from(long(header, 32)?).ok()?);
    let named = whole(table.chunks_exact(64).nth(half(&head, 62)?)?)?;
    let name_of = |header: &[u8]| {
        let name = named.get(word(header, 0)?..)?.split(|byte| *byte == 0).next()?;
        Some(name.to_vec())
    };
    let strings = table.chunks_exact(64).find(|header| name_of(header).is_some_and(|name| name == b".strtab"));
    let strings = whole(strings?)?;
    let mut made = [&head[..], &segments[..]].concat();
    let mut moved = Vec::new();
    for header in table.chunks_exact_mut(64) {
        let (kind, start) = (word(header, 4)?, made.len().next_multiple_of(16));
        let name = name_of(header)?;
        let contents = match name.as_slice() {
            // No contents: SHT_NULL, SHT_NOBITS.
            _ if kind == 0 || kind == 8 => Vec::new(),
            b".BTF" => cut(&whole(header)?)?,
            b".symtab" => some_symbols(&whole(header)?, &strings),
            // Most names of DWARF are anywhere in them.
            b".strtab" => strings.clone(),
            b".shstrtab" | b".notes" | b".debug_str" | b".debug_line_str" => whole(header)?,
            _ => {
                let most = if name.starts_with(b".debug_") { DWARF } else { OTHER };
                read(long(header, 24)?, most.min(usize::try_from(long(header, 32)?).ok()?))?
            }
        };
        let contents = if name == b".debug_info" { units(contents) } else { contents };
        if kind != 0 && kind != 8 {
            header[32..40].copy_from_slice(&(contents.len() as u64).to_le_bytes());
        }
        moved.push((long(header, 16)?, start, contents.len()));
        header[24..32].copy_from_slice(&(start as u64).to_le_bytes());
        made.resize(start, 0);
        made.extend(contents);
    }
    // A segment begins where its first section is now (p_offset at 8, p_vaddr at 16, p_filesz at 32).
    for segment in segments.chunks_exact_mut(56) {
        let address = long(segment, 16)?;
        let (_, start, length) =
            moved.iter().find(|(place, ..)| *place != 0 && *place == address).copied().unwrap_or_default();
        segment[8..16].copy_from_slice(&(start as u64).to_le_bytes());
        segment[32..40].copy_from_slice(&(length as u64).to_le_bytes());
    }
    let end = made.len().next_multiple_of(16);
    made.resize(end, 0);
    made[40..48].copy_from_slice(&(end as u64).to_le_bytes());
    made[64..64 + segments.len()].copy_from_slice(&segments);
    made.extend(table);
    Some(made)
}

/// The boot image of a kernel with this one in it, as it is: LZ4's legacy frame, whose bytes all stand for themselves
/// (boot.rst: setup_sects at 0x1f1, payload_offset and payload_length at 0x248).
pub fn boot_image(kernel: &[u8]) -> Option<Vec<u8>> {
    let whole = fs::read(first("/boot", "vmlinuz-")?).ok()?;
    let sectors = usize::from(*whole.get(0x1f1)?);
    let start = (sectors + 1) * 512 + word(&whole, 0x248)?;
    let mut payload = vec![0x02, 0x21, 0x4c, 0x18];
    // A block of this format has at most 8 MB (lz4_Frame_format.md, legacy frame); these are all literals.
    for block in kernel.chunks(8 << 20) {
        let rest = block.len().checked_sub(15)?;
        payload.extend(u32::try_from(1 + rest / 255 + 1 + block.len()).ok()?.to_le_bytes());
        payload.push(0xf0);
        payload.extend(std::iter::repeat_n(255, rest / 255));
        payload.push((rest % 255) as u8);
        payload.extend(block);
    }
    // The length of what is unpacked follows.
    payload.extend(u32::try_from(kernel.len()).ok()?.to_le_bytes());
    let mut made = whole.get(..start)?.to_vec();
    made[0x24c..0x250].copy_from_slice(&u32::try_from(payload.len()).ok()?.to_le_bytes());
    made.extend(payload);
    Some(made)
}

/// The units that are whole in the first bytes of `.debug_info` (DWARF 5, 7.5.1: four bytes say how long the rest is).
fn units(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut end = 0;
    while let Some(next) = word(&bytes, end).map(|length| end + 4 + length).filter(|next| *next <= bytes.len()) {
        end = next;
    }
    bytes.truncate(end);
    bytes
}

/// The first symbols, and the one by which a kernel is known.
fn some_symbols(symbols: &[u8], strings: &[u8]) -> Vec<u8> {
    let known = |symbol: &&[u8]| {
        word(symbol, 0).and_then(|at| strings.get(at..)).is_some_and(|name| name.starts_with(KNOWN_BY))
    };
    let mut some = symbols.get(..SYMBOLS).unwrap_or(symbols).to_vec();
    some.extend(symbols.chunks_exact(24).find(known).into_iter().flatten());
    some
}

fn half(of: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_le_bytes(of.get(at..at.checked_add(2)?)?.try_into().ok()?)))
}

fn long(of: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(of.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// The first types and names (btf.rst: the header is of 24 bytes, with the places and lengths of both behind it).
fn cut(btf: &[u8]) -> Option<Vec<u8>> {
    const HEADER: usize = 24;
    let [types, strings, names] = [8, 16, 20].map(|at| word(btf, at));
    let types = btf.get(HEADER + types?..)?;
    let mut length = 0;
    for _ in 0..TYPES {
        length += bytes_of(types.get(length..)?)?;
    }
    let strings = btf.get(HEADER + strings?..)?.get(..NAMES.min(names?))?;
    let mut made = btf.get(..8)?.to_vec();
    for number in [0, length, length, strings.len()] {
        made.extend(u32::try_from(number).ok()?.to_le_bytes());
    }
    made.extend(types.get(..length)?);
    made.extend(strings);
    Some(made)
}

/// Of a type with what follows it, by its kind and number of members.
fn bytes_of(of: &[u8]) -> Option<usize> {
    let info = word(of, 4)?;
    let members = info & 0xffff;
    Some(
        12 + match info >> 24 & 0x1f {
            // Integers, variables, declaration tags; arrays; structures, unions, 64-bit enumerations and sections; enumerations and
            // prototypes.
            1 | 14 | 17 => 4,
            3 => 12,
            4 | 5 | 15 | 19 => 12 * members,
            6 | 13 => 8 * members,
            _ => 0,
        },
    )
}
