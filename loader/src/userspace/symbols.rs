// SPDX-License-Identifier: GPL-2.0-or-later

//! The symbols of a file, sorted: of its own `.symtab`, of a separate debug file, of `.gnu_debugdata`, of the table of a program in
//! Go, of `.dynsym`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use spile_abi::go;

use crate::error::Hex;
use crate::userspace::image::{self, Elf, Image, Symbol};
use crate::userspace::locate;

/// Where distributions put separate debug files.
const DEBUG: &str = "/usr/lib/debug";
/// Largest `.gnu_debugdata` that is unpacked, in bytes.
const MAX_DEBUGDATA: u64 = 64 << 20;
/// Debug files without a build-id of which all bytes are read for their sum: in each, and in all together of this process.
/// Any user may have such a file beside a program, with few bytes on disk, while the rings wait for their reader.
const MAX_SUMMED: u64 = 384 << 20;
static LEFT_TO_SUM: AtomicU64 = AtomicU64::new(1 << 30);
/// KiB that its decoder may use.
const MAX_DICTIONARY: u32 = 64 << 10;

/// A symbol that an address is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At<'s> {
    /// As in the file.
    pub name: &'s [u8],
    /// Offset of the address in it.
    pub offset: u64,
    /// 0: not known.
    pub bytes: u64,
}

/// Sorted by address.
#[derive(Debug, Default)]
pub struct Table {
    symbols: Vec<Symbol>,
    /// Where each section with code begins and ends.
    sections: Vec<(u64, u64)>,
}

impl Table {
    /// All that is known about the file at this path.
    pub fn of(elf: &dyn Elf, path: &Path) -> Table {
        let mut symbols = elf.symbols(false);
        if symbols.is_empty() {
            symbols = debug_file(elf, path)
                .and_then(|file| Image::of(file).with(|elf| elf.symbols(false)))
                .unwrap_or_default();
        }
        if symbols.is_empty()
            && let Some(section) = elf.section(".gnu_debugdata")
            && let Some(bytes) = unpacked(&section.data)
        {
            symbols = image::parse(bytes.as_slice(), |elf| elf.symbols(false)).unwrap_or_default();
        }
        if symbols.is_empty() {
            symbols = go::TABLES.iter().find_map(|name| go_symbols(&elf.section(name)?.data)).unwrap_or_default();
        }
        symbols.extend(elf.symbols(true));
        symbols.extend(elf.stubs());
        let sections = elf.code_sections();
        Table { sections, ..Table::sorted(symbols) }
    }

    fn sorted(mut symbols: Vec<Symbol>) -> Table {
        // Of several symbols at one address, the one that a user would write comes first: visible, with a size, without
        // underscores, short.
        symbols.sort_by(|one, other| {
            let rank = |symbol: &Symbol| {
                let underscores = symbol.name.iter().take_while(|byte| **byte == b'_').count();
                (!symbol.is_global, symbol.bytes == 0, underscores, symbol.name.len())
            };
            one.address
                .cmp(&other.address)
                .then_with(|| rank(one).cmp(&rank(other)))
                .then_with(|| one.name.cmp(&other.name))
        });
        symbols.dedup_by_key(|symbol| symbol.address);
        symbols.shrink_to_fit();
        Table { symbols, sections: Vec::new() }
    }

    /// What it takes of the memory.
    pub fn bytes(&self) -> usize {
        /// Of each allocation.
        const OVERHEAD: usize = 16;
        let names: usize = self.symbols.iter().map(|symbol| symbol.name.capacity() + OVERHEAD).sum();
        self.symbols.capacity() * size_of::<Symbol>() + names
    }

    /// The symbol that contains the address, which is as in the file.
    pub fn find(&self, address: u64) -> Option<At<'_>> {
        /// Symbols that lie in others, as labels in code written by hand.
        const NESTED: usize = 16;
        let behind = self.symbols.partition_point(|symbol| symbol.address <= address);
        let before = self.symbols.get(..behind)?;
        let at = |symbol: &'_ Symbol| address - symbol.address;
        let holds = |symbol: &&Symbol| at(symbol) < symbol.bytes;
        let found = before.iter().rev().take(NESTED).find(holds);
        // Without a size a symbol extends to the next one, or to the end of its section.
        let (last, outer) = before.split_last()?;
        let is_inside = |symbol: &Symbol| last.address - symbol.address < symbol.bytes;
        let section = |address: u64| self.sections.iter().find(|(start, end)| (*start..*end).contains(&address));
        let is_open = || {
            last.bytes == 0
                && !outer.iter().rev().take(NESTED).any(is_inside)
                && section(last.address) == section(address)
        };
        let found = found.or_else(|| is_open().then_some(last))?;
        Some(At { name: &found.name, offset: at(found), bytes: found.bytes })
    }
}

fn go_symbols(table: &[u8]) -> Option<Vec<Symbol>> {
    let of = |function: go::Function| Symbol {
        address: function.at,
        bytes: function.size,
        name: function.name.into(),
        is_global: true,
    };
    Some(go::functions(table)?.into_iter().map(of).collect())
}

/// The separate debug file, by the build-id or by the name in `.gnu_debuglink`.
pub fn debug_file(elf: &dyn Elf, path: &Path) -> Option<std::fs::File> {
    let hex = Hex(&elf.build_id()).to_string();
    let by_id = hex
        .split_at_checked(2)
        .map(|(first, rest)| PathBuf::from(DEBUG).join(".build-id").join(first).join(format!("{rest}.debug")));
    let section = elf.section(".gnu_debuglink");
    let link = section.as_ref().and_then(|section| {
        let name = section.data.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8(name.to_vec()).ok().filter(|name| !name.is_empty() && !name.contains('/'))
    });
    let expected = section.as_ref().and_then(|section| section.data.last_chunk()).map(|sum| u32::from_le_bytes(*sum));
    let directory = path.parent().unwrap_or(Path::new("/"));
    let below = directory.strip_prefix("/").unwrap_or(directory);
    let beside = link.as_ref().map(|name| directory.join(".debug").join(name));
    let there = link.as_ref().map(|name| PathBuf::from(DEBUG).join(below).join(name));
    let same = |file: &std::fs::File| {
        let id = file.try_clone().ok().and_then(|file| Image::of(file).with(|elf| elf.build_id()));
        match id {
            // Neither has one: by the checksum of the whole file.
            Some(id) if id.is_empty() && elf.build_id().is_empty() => {
                expected.is_some() && sum_of(file, &LEFT_TO_SUM) == expected
            }
            id => id.is_some_and(|id| id == elf.build_id()),
        }
    };
    // The directory belongs to the program's owner. The others are root's, and consist of links.
    let beside = beside.into_iter().filter_map(|path| locate::open_foreign(&path));
    let by_id = by_id.into_iter().filter_map(|path| locate::open(&path));
    by_id.chain(beside).chain(there.into_iter().filter_map(|path| locate::open(&path))).find(same)
}

/// CRC-32 of a file, as `.gnu_debuglink` has it; `None` if it cannot be read, is very large, or has more bytes than are left.
fn sum_of(file: &std::fs::File, left: &AtomicU64) -> Option<u32> {
    use std::os::unix::fs::FileExt;
    let bytes = file.metadata().ok().map(|file| file.len()).filter(|bytes| *bytes <= MAX_SUMMED)?;
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).ok()?;
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0; 64 << 10];
    let mut at = 0;
    while at < bytes {
        let got = file.read_at(&mut buffer, at).ok().filter(|got| *got > 0)?;
        hasher.update(buffer.get(..got)?);
        at += got as u64;
    }
    Some(hasher.finalize())
}

fn unpacked(packed: &[u8]) -> Option<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    lzma_rust2::XzReader::new_mem_limit(packed, false, MAX_DICTIONARY)
        .take(MAX_DEBUGDATA)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with only a build-id, and the name of its debug file.
    struct Stripped {
        build_id: Vec<u8>,
        link: Vec<u8>,
    }

    impl Elf for Stripped {
        fn segments(&self) -> Vec<image::Segment> {
            Vec::new()
        }
        fn section(&self, name: &str) -> Option<image::Section> {
            (name == ".gnu_debuglink").then(|| image::Section { address: 0, data: self.link.clone() })
        }
        fn frame_header(&self) -> Option<image::Section> {
            None
        }
        fn bytes(&self, _: u64, _: usize) -> Vec<u8> {
            Vec::new()
        }
        fn symbols(&self, _: bool) -> Vec<Symbol> {
            Vec::new()
        }
        fn stubs(&self) -> Vec<Symbol> {
            Vec::new()
        }
        fn code_sections(&self) -> Vec<(u64, u64)> {
            Vec::new()
        }
        fn build_id(&self) -> Vec<u8> {
            self.build_id.clone()
        }
        fn asked(&self) -> spile_abi::libraries::Asked {
            spile_abi::libraries::Asked::default()
        }
        fn is_narrow(&self) -> bool {
            false
        }
    }

    #[test]
    fn links_to_debug_files_beside_a_program_are_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let (real, debug) = (directory.path().join("real"), directory.path().join(".debug"));
        std::fs::create_dir(&real).unwrap();
        let own = std::env::current_exe().unwrap();
        std::fs::copy(&own, real.join("x.debug")).unwrap();
        let build_id = Image::of(std::fs::File::open(own).unwrap()).with(|elf| elf.build_id()).unwrap();
        let elf = Stripped { build_id, link: b"x.debug\0\0\0\0\0".to_vec() };
        let found = || debug_file(&elf, &directory.path().join("program")).is_some();
        std::os::unix::fs::symlink(&real, &debug).unwrap();
        assert!(!found(), "by way of a link");
        std::fs::remove_file(&debug).unwrap();
        std::fs::rename(&real, &debug).unwrap();
        assert!(found());
    }

    #[test]
    fn a_debug_file_without_a_build_id_has_the_checksum_of_the_link() {
        let directory = tempfile::tempdir().unwrap();
        let debug = directory.path().join(".debug/x.debug");
        std::fs::create_dir(directory.path().join(".debug")).unwrap();
        // The ELF header of a file without sections and segments.
        let mut bytes = vec![0; 64];
        bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        bytes[16..24].copy_from_slice(&[2, 0, 62, 0, 1, 0, 0, 0]);
        bytes[52] = 64;
        std::fs::write(&debug, &bytes).unwrap();
        let linked = |sum: u32| {
            let link = [b"x.debug\0".as_slice(), &sum.to_le_bytes()].concat();
            debug_file(&Stripped { build_id: Vec::new(), link }, &directory.path().join("program")).is_some()
        };
        assert!(linked(crc32fast::hash(&bytes)));
        assert!(!linked(crc32fast::hash(&bytes) ^ 1), "an older build's");
    }

    #[test]
    fn a_stripped_program_in_go_has_names() {
        // Go 1.20: the header, `main.main`, one function at 0x401000 of 32 bytes, and what describes it.
        let mut table = 0xffff_fff1_u32.to_le_bytes().to_vec();
        table.extend([0, 0, 1, 8]);
        for word in [1_u64, 0, 0x40_1000, 72, 0, 0, 0, 82] {
            table.extend(word.to_le_bytes());
        }
        table.extend(b"main.main\0");
        for word in [0_u32, 12, 32, 0, 0] {
            table.extend(word.to_le_bytes());
        }
        let found = go_symbols(&table).unwrap();
        assert_eq!(
            (found[0].address, found[0].bytes, found[0].name.as_slice()),
            (0x40_1000, 32, b"main.main".as_slice())
        );
    }

    #[test]
    fn code_in_stubs_has_the_name_of_the_function_that_they_call() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("x.c"), "int puts(const char *); int main(void) { return puts(\"\"); }")
            .unwrap();
        let mut gcc = std::process::Command::new("gcc");
        let made = gcc.current_dir(directory.path()).args(["-O1", "-Wl,-z,lazy", "-o", "x", "x.c"]).output();
        if !made.is_ok_and(|made| made.status.success()) {
            return println!("skipped: no gcc");
        }
        let path = directory.path().join("x");
        let image = Image::of(std::fs::File::open(&path).unwrap());
        let (table, plt) = image.with(|elf| (Table::of(elf, &path), elf.section(".plt").unwrap())).unwrap();
        let name = |address| table.find(address).map(|at| String::from_utf8_lossy(at.name).into_owned());
        assert_eq!(name(plt.address + 16 + 6).as_deref(), Some("puts@plt"));
        // What calls the dynamic linker is in no function.
        assert_eq!(name(plt.address + 6), None);
    }

    #[test]
    fn files_are_summed_within_limits() {
        let file = tempfile::tempfile().unwrap();
        let left = AtomicU64::new(1 << 20);
        file.set_len(MAX_SUMMED + 1).unwrap();
        assert_eq!(sum_of(&file, &left), None);
        file.set_len(600 << 10).unwrap();
        assert!(sum_of(&file, &left).is_some());
        assert_eq!(sum_of(&file, &left), None, "with the first more than are left");
        assert_eq!(left.into_inner(), 424 << 10);
    }

    fn symbol(address: u64, bytes: u64, name: &str, is_global: bool) -> Symbol {
        Symbol { address, bytes, is_global, name: name.into() }
    }

    #[test]
    fn names_count_with_their_length() {
        let of = |length: usize| Table::sorted((0..100).map(|at| symbol(at, 1, &"a".repeat(length), true)).collect());
        let (short, long) = (of(8).bytes(), of(4000).bytes());
        assert!((100 * 64..100 * 128).contains(&short), "{short}");
        assert!(long >= 100 * 4000, "{long}");
    }

    #[test]
    fn the_name_that_a_user_would_write() {
        let table = Table::sorted(vec![
            symbol(0x100, 0x20, "__libc_write", false),
            symbol(0x100, 0x20, "__write", true),
            symbol(0x100, 0x20, "write", true),
            symbol(0x110, 0, "label", false),
            symbol(0x200, 0, "_start", true),
        ]);
        let name = |address| table.find(address).map(|at| (String::from_utf8_lossy(at.name).into_owned(), at.offset));
        assert_eq!(name(0x108), Some(("write".into(), 8)));
        assert_eq!(name(0x118), Some(("write".into(), 0x18)), "a label in a function does not hide it");
        assert_eq!(name(0x130), None);
        assert_eq!(name(0x204), Some(("_start".into(), 4)), "without a size");
        assert_eq!(name(0x10), None);
    }
}
