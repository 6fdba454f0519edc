// SPDX-License-Identifier: GPL-2.0-or-later

//! Whole files with their structure damaged: modules as compilers write them, kernels with DWARF or BTF, exported indexes, and files
//! of real kernels; as they are, packed, or in a boot image. The bytes choose the file and what happens to its headers, tables and contents.

use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;

use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use spile_debuginfo::{self as debuginfo, Elf};

use super::die::Tree;
use super::{Choices, btf, elf, objects, real};

/// bases/module.c
const MODULE: &[u8] = include_bytes!("../bases/module.bin");
const HEADER: usize = 64;
/// First bytes from this one on choose a real file: they take longer.
const REAL: u8 = 240;
/// Changes of one file, at most.
const CHANGES: usize = 12;
/// Where the fields of a section's header are, and their bytes (gABI 4.1, Elf64_Shdr): name, type, flags, address, offset, size,
/// link, info, alignment, size of an entry.
const FIELDS: [(usize, usize); 10] =
    [(0, 4), (4, 4), (8, 8), (16, 8), (24, 8), (32, 8), (40, 4), (44, 4), (48, 8), (56, 8)];
/// The same of the file: type, machine, version, place of the sections' headers, their size and number, the section of names.
const OF_FILE: [(usize, usize); 7] = [(16, 2), (18, 2), (20, 4), (40, 8), (58, 2), (60, 2), (62, 2)];
/// The same of a boot image (boot.rst): sectors, the mark, the version, where the packed kernel begins and how long it is.
const OF_IMAGE: [(usize, usize); 5] = [(0x1f1, 1), (0x202, 4), (0x206, 2), (0x248, 4), (0x24c, 4)];
const OFFSET: usize = 24;
const SIZE: usize = 32;
const FLAGS: usize = 8;
const COMPRESSED: u64 = 1 << 11;

fn bases() -> &'static [Vec<u8>] {
    static MADE: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    MADE.get_or_init(|| {
        let mut choices = Choices::new(&[7, 1, 2, 3, 9, 200, 4, 5, 6, 1, 0, 8, 17, 2, 40, 5, 3, 3, 1, 90, 6, 6]);
        let typed = elf::executable(vec![elf::Section::plain(".BTF", btf::made(&mut choices))]);
        let mut tree = Tree::new();
        let int = objects::int(&mut tree);
        tree.add_function(int, vec![0x91, 0x10]);
        let index = Elf::of_bytes(Path::new("base.index"), elf::executable(Vec::new()))
            .ok()
            .and_then(|elf| debuginfo::raw::index(&elf, &[3; 13], &[5, 1, 9, 2, 0, 7, 31, 4].repeat(12)).ok());
        [MODULE.to_vec(), tree.object(), typed].into_iter().chain(index).collect()
    })
}

fn real_ones() -> &'static [Vec<u8>] {
    static READ: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    READ.get_or_init(real::files)
}

/// A file to begin with.
struct Base {
    file: Vec<u8>,
    /// By zstd and by xz. Packing takes longer than all that is tried afterwards, so it is done once.
    packed: [OnceLock<Vec<u8>>; 2],
}

fn base(choices: &mut Choices) -> &'static Base {
    static ALL: OnceLock<(Vec<Base>, Vec<Base>)> = OnceLock::new();
    let kept = |files: &[Vec<u8>]| {
        files.iter().map(|file| Base { file: file.clone(), packed: Default::default() }).collect::<Vec<Base>>()
    };
    let (made, real) = ALL.get_or_init(|| (kept(bases()), kept(real_ones())));
    let first = choices.byte();
    let chosen = real.get(usize::from(first.wrapping_sub(REAL))).filter(|_| first >= REAL);
    chosen.unwrap_or(&made[usize::from(first) % made.len()])
}

struct Damaged<'c, 'b> {
    file: Vec<u8>,
    choices: &'c mut Choices<'b>,
}

impl Damaged<'_, '_> {
    fn number(&self, at: usize, bytes: usize) -> u64 {
        let found = self.file.get(at..at.saturating_add(bytes)).unwrap_or_default();
        found.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    fn put(&mut self, at: usize, bytes: usize, number: u64) {
        let to = self.file.get_mut(at..at.saturating_add(bytes)).unwrap_or_default();
        to.iter_mut().zip(number.to_le_bytes()).for_each(|(to, byte)| *to = byte);
    }

    /// Where the header of one of the sections is.
    fn section(&mut self) -> usize {
        let count = self.number(60, 2) as usize;
        let table = self.number(40, 8) % (self.file.len() as u64 + 1);
        (table as usize).saturating_add(self.choices.of(count.clamp(1, 255)) * HEADER)
    }

    fn value(&mut self, before: u64) -> u64 {
        let length = self.file.len() as u64;
        match self.choices.of(16) {
            0 => 0,
            1 => 1,
            2 => before.wrapping_add(1),
            3 => before.wrapping_sub(1),
            4 => u64::MAX,
            5 => 1 << 63,
            6 => length,
            7 => length - 1,
            8 => before.wrapping_neg(),
            9 => u64::from(u32::MAX),
            10 => before << 8,
            11 => before >> 1,
            12 => 1 << 31,
            _ => u64::from(self.choices.byte()),
        }
    }

    /// A place in a section's contents.
    fn place(&mut self) -> usize {
        let section = self.section();
        let (start, size) = (self.number(section + OFFSET, 8), self.number(section + SIZE, 8));
        let within = (u64::from(self.choices.byte()) << 8 | u64::from(self.choices.byte())) % size.max(1);
        usize::try_from(start.wrapping_add(within)).unwrap_or(usize::MAX) % self.file.len().max(1)
    }

    fn change(&mut self) {
        let is_image = self.file.get(0x202..0x206) == Some(b"HdrS");
        match self.choices.of(12) {
            // There are no sections in an image.
            change @ 0..=6 if change == 0 || is_image => {
                let fields: &[(usize, usize)] = if is_image { &OF_IMAGE } else { &OF_FILE };
                let (at, bytes) = fields[self.choices.of(fields.len())];
                let value = self.value(self.number(at, bytes));
                self.put(at, bytes, value);
            }
            1..=3 => {
                let (at, bytes) = FIELDS[self.choices.of(FIELDS.len())];
                let at = self.section() + at;
                let value = self.value(self.number(at, bytes));
                self.put(at, bytes, value);
            }
            4 => {
                let (at, bytes) = FIELDS[self.choices.of(FIELDS.len())];
                let (from, to) = (self.section() + at, self.section() + at);
                let value = self.number(from, bytes);
                self.put(to, bytes, value);
            }
            // The contents of two sections exchanged.
            5 => {
                let (one, other) = (self.section(), self.section());
                for at in [OFFSET, SIZE] {
                    let (first, second) = (self.number(one + at, 8), self.number(other + at, 8));
                    self.put(one + at, 8, second);
                    self.put(other + at, 8, first);
                }
            }
            // A section that says it is compressed (Elf64_Chdr: type, size, alignment).
            6 => {
                let section = self.section();
                let flags = self.number(section + FLAGS, 8);
                self.put(section + FLAGS, 8, flags ^ COMPRESSED);
                let start = usize::try_from(self.number(section + OFFSET, 8)).unwrap_or(usize::MAX);
                let (kind, size) = (1 + self.choices.of(2) as u64, self.value(100));
                self.put(start, 8, kind);
                self.put(start.saturating_add(8), 8, size);
            }
            7 => {
                let keep = self.file.len() * self.choices.of(256) / 256;
                self.file.truncate(keep.max(HEADER));
            }
            // Numbers of variable length that do not end, and large ones of four bytes.
            8 => {
                let (at, byte) = (self.place(), [0x80, 0xff][self.choices.of(2)]);
                let count = 1 + self.choices.of(12);
                (at..at.saturating_add(count)).for_each(|at| self.put(at, 1, byte));
            }
            9 => {
                let at = self.place();
                let value = self.value(self.number(at, 4));
                self.put(at, 4, value);
            }
            _ => {
                let (at, value) = (self.place(), u64::from(self.choices.byte()));
                self.put(at, 1, value);
            }
        }
    }
}

/// Packed by gzip, zstd or xz: the changed file by gzip, or in zstd's blocks that are not compressed; the file before the changes by
/// what takes long to pack. What unpacks it does not depend on its contents, which are read without packing as well.
fn packed_as(how: u8, base: &Base, file: &[u8]) -> Vec<u8> {
    let [zstd, xz] = &base.packed;
    match how {
        0 => gzip(file),
        1 => zstd.get_or_init(|| compress_to_vec(&base.file[..], CompressionLevel::Fastest)).clone(),
        2 => compress_to_vec(file, CompressionLevel::Uncompressed),
        _ => xz
            .get_or_init(|| {
                let xz = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(0));
                xz.and_then(|mut xz| xz.write_all(&base.file).and_then(|()| xz.finish())).unwrap_or_default()
            })
            .clone(),
    }
}

fn gzip(file: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(file).and_then(|()| gzip.finish()).unwrap_or_default()
}

/// A boot image: setup sectors, the mark, where the packed kernel begins and how long it is (boot.rst).
fn boot_image(kernel: &[u8]) -> Vec<u8> {
    let mut image = vec![0u8; 1024];
    image[0x1f1] = 1;
    image[0x202..0x206].copy_from_slice(b"HdrS");
    image[0x248..0x24c].copy_from_slice(&0u32.to_le_bytes());
    image[0x24c..0x250].copy_from_slice(&(kernel.len() as u32).to_le_bytes());
    image.extend(kernel);
    image
}

/// Packed like real files, some damaged afterwards.
fn packed(base: &Base, file: Vec<u8>, choices: &mut Choices) -> Vec<u8> {
    let how = choices.byte();
    if how < 240 {
        return file;
    }
    let mut made = match how {
        // A boot image of each packing, and one within another.
        243 => boot_image(&gzip(&file)),
        247 => boot_image(&packed_as(1, base, &file)),
        251 => boot_image(&packed_as(3, base, &file)),
        255 => boot_image(&gzip(&boot_image(&gzip(&file)))),
        _ => packed_as(how % 4, base, &file),
    };
    for _ in 0..choices.of(3) {
        let at = (choices.of(256) << 8 | choices.of(256)) % made.len().max(1);
        if let Some(byte) = made.get_mut(at) {
            *byte = choices.byte();
        }
    }
    made
}

/// The file that the bytes choose.
pub fn made(bytes: &[u8]) -> Vec<u8> {
    let mut choices = Choices::new(bytes);
    let base = base(&mut choices);
    let how = choices.byte();
    let mut damaged = Damaged { file: base.file.clone(), choices: &mut choices };
    for _ in 0..usize::from(how) % CHANGES {
        damaged.change();
    }
    let file = damaged.file;
    packed(base, file, &mut choices)
}

/// As a file for the compiler, and as a module for the loader and its root part.
pub fn file(bytes: &[u8]) {
    let made = made(bytes);
    let unpacked = match debuginfo::raw::unpacked(&made) {
        Some(Ok(unpacked)) => unpacked,
        Some(Err(_)) => return,
        None => made,
    };
    let _ = (spilerun::file::kernel_name(&unpacked), spilerun::file::information(&unpacked, "spile_guru"));
    let _ = (spilerun::elf::section(&unpacked, ".modinfo"), spile_abi::seal::holds(&unpacked));
    let _ = spilerun::file::rename(&mut unpacked.clone(), 4711);
    objects::file(unpacked, bytes.len().is_multiple_of(4));
}

pub fn seeds() -> Vec<Vec<u8>> {
    // Each file whole, each packing, and changes of all kinds. Real files take several times as long as the others, with DWARF most of
    // all: the first one and the last two, a kernel and a boot image, and those that the bytes choose, are enough.
    let last = REAL + real_ones().len().saturating_sub(1) as u8;
    let whole = (0..4).chain([REAL, last.saturating_sub(1).max(REAL), last]).map(|base| vec![base, 0]);
    let packings = [240, 241, 242, 243, 247, 251, 255].map(|how| vec![0, 0, how]);
    let changed = (0..16u8).map(|seed| (0..60u8).map(|at| at.wrapping_mul(seed * 2 + 37).wrapping_add(seed)).collect());
    whole.chain(packings).chain(changed).collect()
}
