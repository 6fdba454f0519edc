// SPDX-License-Identifier: GPL-2.0-or-later

//! The parts of an ELF file that are needed. The file is read in pieces, never mapped: if it is truncated meanwhile,
//! that is an error, not a SIGBUS.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;

use nix::libc;
use object::read::elf::{ElfFile, ElfFile32, ElfFile64, FileHeader, ProgramHeader};
use object::read::{ReadCache, ReadRef};
use object::{
    LittleEndian, Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, RelocationTarget, SectionKind, elf,
};
use spile_abi::libraries::Asked;
use spile_abi::sections::{self, Added};
use spile_abi::stubs;

/// Executable segments that count; programs have one to three. Each address and each row of a table looks for its own.
const MOST_SEGMENTS: usize = 16;
/// Maximum size of a section in bytes, also after decompression; larger ones are not read.
const MAX_SECTION: u64 = 256 << 20;
/// Maximum number of bytes read from a file: a file with holes can have any size.
const MAX_READ: u64 = 384 << 20;
/// Maximum number of symbols of a table, and of bytes of their names, which may overlap: each can be the end of
/// another.
const MAX_SYMBOLS: usize = 4 << 20;
const MAX_NAMES: usize = 96 << 20;
/// Bytes of a build-id: each name of an address has a copy. Linkers write 8 to 20, and what `--build-id=0x...` says.
const MAX_BUILD_ID: usize = 64;
/// Maximum number of entries of a dynamic section with the same tag, and of sections with code; and of bytes of each text. Symbols
/// with longer names are left out.
const MAX_DYNAMIC: usize = 1024;
const MAX_TEXT: usize = 4096;
/// What a text that ends with zero counts at least, in bytes: looking for it takes time too.
const MIN_TEXT: u64 = 16;

/// A file, or the memory of the vDSO.
#[derive(Debug)]
pub enum Image {
    /// Reads are cached until it is dropped. What it lacks where it has no section headers.
    File(ReadCache<File>, Option<Added>),
    /// The vDSO of this process: all 64-bit processes have the same.
    Vdso(&'static [u8]),
}

/// An executable part of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// First address, as in the file.
    pub address: u64,
    /// Where it is in the file.
    pub offset: u64,
    /// Length.
    pub bytes: u64,
}

impl Segment {
    /// The offset in the file of an address as in the file, if it is in this segment.
    pub fn offset_of(&self, address: u64) -> Option<u64> {
        let at = address.checked_sub(self.address).filter(|at| *at < self.bytes)?;
        self.offset.checked_add(at)
    }

    /// The contrary.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        let at = offset.checked_sub(self.offset).filter(|at| *at < self.bytes)?;
        self.address.checked_add(at)
    }
}

/// A section with its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// As in the file.
    pub address: u64,
    /// Its bytes.
    pub data: Vec<u8>,
}

/// A symbol of a function or an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// As in the file.
    pub address: u64,
    /// 0: not known.
    pub bytes: u64,
    /// Visible outside of the file.
    pub is_global: bool,
    /// As in the file.
    pub name: Vec<u8>,
}

/// A file that could be parsed.
pub trait Elf {
    /// The parts that are executed.
    fn segments(&self) -> Vec<Segment>;
    /// `None`: there is none of that name with bytes in the file.
    fn section(&self, name: &str) -> Option<Section>;
    /// The table by which the dynamic linker finds `.eh_frame` (PT_GNU_EH_FRAME).
    fn frame_header(&self) -> Option<Section>;
    /// Bytes from an address on, at most so many: up to the end of the segment that has them.
    fn bytes(&self, address: u64, most: usize) -> Vec<u8>;
    /// Of `.symtab`, or of `.dynsym`.
    fn symbols(&self, dynamic: bool) -> Vec<Symbol>;
    /// The stubs by which it calls functions of other files, as `NAME@plt`: those of 64-bit code.
    fn stubs(&self) -> Vec<Symbol>;
    /// Where sections with code begin and end, as in the file.
    fn code_sections(&self) -> Vec<(u64, u64)>;
    /// Empty: it has none.
    fn build_id(&self) -> Vec<u8>;
    /// What it tells the dynamic linker.
    fn asked(&self) -> Asked;
    /// Whether its code is of 32 bits (i386).
    fn is_narrow(&self) -> bool;
}

impl Image {
    /// Of an open file.
    pub fn of(file: File) -> Image {
        let cache = ReadCache::new(file);
        let added = cache.len().ok().and_then(|length| {
            sections::added(length, &mut |at, bytes| {
                let limited = Limited { cache: &cache, added: None, left: &Cell::new(MAX_READ) };
                limited.read_bytes_at(at, bytes as u64).ok().map(<[u8]>::to_vec)
            })
        });
        Image::File(cache, added)
    }

    /// The vDSO; `None`: the kernel gives this process none.
    pub fn vdso() -> Option<Image> {
        let address = vdso_address()?;
        let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
        let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
        let (start, end) = line.split_whitespace().next()?.split_once('-')?;
        let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
        let bytes = usize::try_from(end.checked_sub(start)?).ok()?;
        if start != address {
            return None;
        }
        // SAFETY: the kernel maps it there, readable, for as long as the process lives.
        Some(Image::Vdso(unsafe { std::slice::from_raw_parts(address as usize as *const u8, bytes) }))
    }

    /// Calls with the file, if it is one for this architecture.
    pub fn with<T>(&self, run: impl FnOnce(&dyn Elf) -> T) -> Option<T> {
        match self {
            Image::File(cache, added) => {
                parse(Limited { cache, added: added.as_ref(), left: &Cell::new(MAX_READ) }, run)
            }
            Image::Vdso(bytes) => parse(*bytes, run),
        }
    }
}

/// Maximum number of bytes that are read of a file.
#[derive(Clone, Copy)]
struct Limited<'f> {
    cache: &'f ReadCache<File>,
    added: Option<&'f Added>,
    left: &'f Cell<u64>,
}

impl Limited<'_> {
    fn charge(self, bytes: u64) -> Result<(), ()> {
        self.left.set(self.left.get().checked_sub(bytes).ok_or(())?);
        Ok(())
    }
}

impl<'f> ReadRef<'f> for Limited<'f> {
    fn len(self) -> Result<u64, ()> {
        self.added.map_or_else(|| self.cache.len(), |added| Ok(added.whole()))
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'f [u8], ()> {
        self.charge(size)?;
        match self.added.and_then(|added| added.at(offset, size)) {
            Some(bytes) => Ok(bytes),
            None => self.cache.read_bytes_at(offset, size),
        }
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'f [u8], ()> {
        // The cache reads up to so many bytes, and does not remember that there was no end.
        let unended = range.end.saturating_sub(range.start).min(MAX_TEXT as u64);
        let added = self.added.and_then(|added| added.at(range.start, range.end.checked_sub(range.start)?));
        let text = match added {
            Some(bytes) => bytes.read_bytes_at_until(0..bytes.len() as u64, delimiter),
            None => self.cache.read_bytes_at_until(range, delimiter),
        };
        self.charge(text.map_or(unended, |text| text.len() as u64).max(MIN_TEXT))?;
        text
    }
}

/// Where the vDSO is in this process.
pub fn vdso_address() -> Option<u64> {
    // SAFETY: takes a number.
    let address = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
    (address != 0).then_some(address)
}

/// Calls with the file in these bytes, if it has code that this kernel runs: of 64 bits, or of 32.
pub fn parse<'d, R: ReadRef<'d>, T>(data: R, run: impl FnOnce(&dyn Elf) -> T) -> Option<T> {
    if let Ok(file) = ElfFile64::<LittleEndian, R>::parse(data) {
        return (file.elf_header().e_machine.get(LittleEndian) == elf::EM_X86_64).then(|| run(&file));
    }
    let file = ElfFile32::<LittleEndian, R>::parse(data).ok()?;
    (file.elf_header().e_machine.get(LittleEndian) == elf::EM_386).then(|| run(&file))
}

impl<'d, F: FileHeader<Endian = LittleEndian>, R: ReadRef<'d>> Elf for ElfFile<'d, F, R> {
    fn segments(&self) -> Vec<Segment> {
        let endian = LittleEndian;
        let executed = self
            .elf_program_headers()
            .iter()
            .filter(|header| header.p_type(endian) == elf::PT_LOAD && header.p_flags(endian).0 & elf::PF_X.0 != 0);
        let segment = |header: &F::ProgramHeader| Segment {
            address: header.p_vaddr(endian).into(),
            offset: header.p_offset(endian).into(),
            bytes: header.p_filesz(endian).into(),
        };
        executed.take(MOST_SEGMENTS).map(segment).collect()
    }

    fn section(&self, name: &str) -> Option<Section> {
        let section = self.section_by_name(name).filter(|section| section.size() <= MAX_SECTION)?;
        let data = section.compressed_data().ok().filter(|data| data.uncompressed_size <= MAX_SECTION)?;
        let data = data.decompress().ok().filter(|data| !data.is_empty())?;
        Some(Section { address: section.address(), data: data.into_owned() })
    }

    fn frame_header(&self) -> Option<Section> {
        let endian = LittleEndian;
        let headers = self.elf_program_headers();
        let header = headers.iter().find(|header| header.p_type(endian) == elf::PT_GNU_EH_FRAME)?;
        let bytes = header.p_filesz(endian).into();
        let data =
            (bytes <= MAX_SECTION).then(|| self.data().read_bytes_at(header.p_offset(endian).into(), bytes).ok());
        Some(Section { address: header.p_vaddr(endian).into(), data: data.flatten()?.to_vec() })
    }

    fn bytes(&self, address: u64, most: usize) -> Vec<u8> {
        let endian = LittleEndian;
        let loaded = self.elf_program_headers().iter().filter(|header| header.p_type(endian) == elf::PT_LOAD);
        let place = loaded.filter_map(|header| {
            let inside = address.checked_sub(header.p_vaddr(endian).into())?;
            let left = header.p_filesz(endian).into().checked_sub(inside).filter(|left| *left > 0)?;
            Some((header.p_offset(endian).into().checked_add(inside)?, left.min(most as u64).min(MAX_SECTION)))
        });
        let place = { place }.next();
        place.and_then(|(at, bytes)| self.data().read_bytes_at(at, bytes).ok()).unwrap_or_default().to_vec()
    }

    fn symbols(&self, dynamic: bool) -> Vec<Symbol> {
        use object::read::elf::Sym;
        let table = if dynamic { self.elf_dynamic_symbol_table() } else { self.elf_symbol_table() };
        let endian = LittleEndian;
        let mut left = MAX_NAMES;
        let named = table.iter().take(MAX_SYMBOLS).map_while(|symbol| {
            let kind = symbol.st_type();
            let is_code = matches!(kind, elf::STT_FUNC | elf::STT_NOTYPE | elf::STT_OBJECT | elf::STT_GNU_IFUNC);
            let is_here = symbol.st_shndx(endian) != elf::SHN_UNDEF && symbol.st_value(endian).into() != 0;
            if !is_code || !is_here {
                return Some(None);
            }
            let Ok(name) = symbol.name(endian, table.strings()) else { return Some(None) };
            left = left.checked_sub(name.len())?;
            Some((1..=MAX_TEXT).contains(&name.len()).then(|| Symbol {
                address: symbol.st_value(endian).into(),
                bytes: symbol.st_size(endian).into(),
                is_global: symbol.st_bind() != elf::STB_LOCAL,
                name: name.to_vec(),
            }))
        });
        named.flatten().collect()
    }

    fn stubs(&self) -> Vec<Symbol> {
        if self.is_narrow() {
            return Vec::new();
        }
        let table = self.dynamic_symbol_table();
        let mut left = MAX_NAMES;
        let mut slots: HashMap<u64, Vec<u8>> = HashMap::new();
        for (at, relocation) in self.dynamic_relocations().into_iter().flatten().take(MAX_SYMBOLS) {
            let RelocationTarget::Symbol(index) = relocation.target() else { continue };
            let symbol = table.as_ref().and_then(|table| table.symbol_by_index(index).ok());
            let Some(name) = symbol.and_then(|symbol| symbol.name_bytes().ok().map(<[u8]>::to_vec)) else { continue };
            let Some(rest) = left.checked_sub(name.len()) else { break };
            left = rest;
            slots.insert(at, name);
        }
        let mut found = Vec::new();
        for name in stubs::SECTIONS {
            let Some(section) = Elf::section(self, name) else { continue };
            for (at, function) in stubs_in(name, &section, &slots) {
                // Many may jump through the same word.
                let Some(rest) = left.checked_sub(function.len()) else { return found };
                left = rest;
                let name = [function, b"@plt"].concat();
                found.push(Symbol { address: at.0, bytes: at.1, is_global: false, name });
            }
        }
        found
    }

    fn code_sections(&self) -> Vec<(u64, u64)> {
        let code = self.sections().filter(|section| section.kind() == SectionKind::Text).take(MAX_DYNAMIC);
        code.map(|section| (section.address(), section.address().saturating_add(section.size()))).collect()
    }

    fn build_id(&self) -> Vec<u8> {
        let found = Object::build_id(self).ok().flatten().unwrap_or_default();
        if found.len() <= MAX_BUILD_ID { found.to_vec() } else { Vec::new() }
    }

    fn asked(&self) -> Asked {
        let section = |name| Elf::section(self, name).map(|section| section.data).unwrap_or_default();
        let (table, strings, interpreter) = (section(".dynamic"), section(".dynstr"), section(".interp"));
        // Two words each; tags of 32 bits are signed as well.
        let word = if self.is_narrow() { 4 } else { 8 };
        let entries = table.chunks_exact(2 * word).take(MAX_DYNAMIC).filter_map(|entry| {
            let (tag, value) = entry.split_at_checked(word)?;
            Some((signed(tag), signed(value).cast_unsigned()))
        });
        Asked::read(entries, &strings, interpreter.split(|byte| *byte == 0).next().map(<[u8]>::to_vec))
    }

    fn is_narrow(&self) -> bool {
        !self.is_64()
    }
}

/// Of a section of stubs the address and length of each that jumps through a word which is filled for a function, and the function.
fn stubs_in<'s>(name: &str, section: &Section, slots: &'s HashMap<u64, Vec<u8>>) -> Vec<((u64, u64), &'s [u8])> {
    let bytes = stubs::step(name, &section.data);
    let function = |(number, code): (usize, &[u8])| {
        let start = section.address.wrapping_add((number * bytes) as u64);
        let slot = stubs::slot(code, start, stubs::Code::Wide)?;
        Some(((start, bytes as u64), slots.get(&slot)?.as_slice()))
    };
    section.data.chunks(bytes).enumerate().filter_map(function).collect()
}

/// A word of 4 or 8 bytes.
fn signed(word: &[u8]) -> i64 {
    match word.try_into() {
        Ok(bytes) => i64::from_le_bytes(bytes),
        Err(_) => word.try_into().map(i32::from_le_bytes).unwrap_or_default().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    #[test]
    fn this_program_and_its_vdso_are_read() {
        let image = Image::of(File::open("/proc/self/exe").unwrap());
        image
            .with(|elf| {
                assert!(!elf.segments().is_empty() && elf.section(".eh_frame").is_some());
                assert!(elf.symbols(false).iter().any(|symbol| symbol.name == b"main"));
                assert!(elf.asked().interpreter.is_none_or(|path| Path::new(OsStr::from_bytes(&path)).exists()));
            })
            .unwrap();
        if let Some(vdso) = Image::vdso() {
            let names = vdso.with(|elf| elf.symbols(true)).unwrap();
            assert!(names.iter().any(|symbol| symbol.name == b"__vdso_clock_gettime"), "{names:?}");
        }
    }

    #[test]
    fn a_library_without_section_headers_is_read_alike() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.so");
        std::fs::write(
            directory.path().join("x.c"),
            "int one(void) { return 1; } int puts(const char *); int two(void) { return puts(\"\"); }",
        )
        .unwrap();
        let mut gcc = std::process::Command::new("gcc");
        let options = ["-O1", "-shared", "-fPIC", "-Wl,-soname,x.so.1", "-s", "-o", "x.so", "x.c"];
        let made = gcc.current_dir(directory.path()).args(options).output();
        if !made.is_ok_and(|made| made.status.success()) {
            return println!("skipped: no gcc");
        }
        let facts = || {
            let image = Image::of(File::open(&path).unwrap());
            let facts = |elf: &dyn Elf| {
                let mut names: Vec<(u64, Vec<u8>)> =
                    elf.symbols(true).into_iter().map(|symbol| (symbol.address, symbol.name)).collect();
                names.sort();
                let frames = elf.section(".eh_frame").map(|frames| frames.address);
                (names, elf.build_id(), elf.asked(), elf.segments(), frames)
            };
            let code = image.with(|elf| elf.code_sections()).unwrap();
            (image.with(facts).unwrap(), code)
        };
        let (with, code) = facts();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[40..48].fill(0);
        bytes[60..64].fill(0);
        std::fs::write(&path, &bytes).unwrap();
        let (without, segments) = facts();
        assert!(with.0.iter().any(|(_, name)| name == b"two") && with.2.needed == [b"libc.so.6".to_vec()]);
        assert_eq!(with, without);
        assert!(code.iter().all(|(start, end)| segments.iter().any(|(from, to)| from <= start && end <= to)));
    }

    #[test]
    fn segments_may_have_any_addresses() {
        let plain = Segment { address: 0x40_1000, offset: 0x1000, bytes: 0x100 };
        assert_eq!((plain.offset_of(0x40_1010), plain.address_of(0x1010)), (Some(0x1010), Some(0x40_1010)));
        assert_eq!((plain.offset_of(0x40_1100), plain.address_of(0xfff)), (None, None));
        let last = Segment { address: u64::MAX - 15, offset: u64::MAX - 3, bytes: 0x1000 };
        assert_eq!((last.offset_of(u64::MAX), last.address_of(u64::MAX)), (None, Some(u64::MAX - 12)));
        assert_eq!(Segment { offset: 0, ..last }.address_of(0x10), None);
    }

    #[test]
    fn files_that_are_not_programs_are_refused() {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, b"\x7fELF\x02\x01 and no more").unwrap();
        assert!(Image::of(file).with(|_| ()).is_none());
    }

    #[test]
    fn a_build_id_has_a_length_that_linkers_write() {
        for (length, kept) in [(20, 20), (64, 64), (65, 0), (4000, 0)] {
            let id = vec![7; length as usize];
            let note = [&[4, 0, 0, 0][..], &u32::to_le_bytes(length), &[3, 0, 0, 0], b"GNU\0", &id].concat();
            let file = file_of(16384, &[(elf::SHT_NOTE.0, 8192, note.len() as u64, 0)], &[(8192, &note)]);
            assert_eq!(Image::of(file).with(|elf| elf.build_id().len()), Some(kept), "{length}");
        }
    }

    /// ELF of this many bytes whose section headers are these: type, offset, size, link.
    fn file_of(length: u64, sections: &[(u32, u64, u64, u32)], parts: &[(u64, &[u8])]) -> File {
        use std::os::unix::fs::FileExt;
        let mut header = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
        header.resize(64, 0);
        header[40] = 64;
        header[52] = 64;
        header[58] = 64;
        // The last section has the names, which are all empty: the first byte of the header's padding.
        (header[60], header[62]) = (sections.len() as u8 + 2, sections.len() as u8 + 1);
        header.extend([0; 64]);
        for (kind, offset, size, link) in sections.iter().chain([&(elf::SHT_STRTAB.0, 15, 1, 0)]) {
            let mut section = [0; 64];
            section[4..8].copy_from_slice(&kind.to_le_bytes());
            section[24..32].copy_from_slice(&offset.to_le_bytes());
            section[32..40].copy_from_slice(&size.to_le_bytes());
            section[40..44].copy_from_slice(&link.to_le_bytes());
            section[56] = 24;
            header.extend(section);
        }
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&header, 0).unwrap();
        parts.iter().for_each(|(at, bytes)| file.write_all_at(bytes, *at).unwrap());
        file.set_len(length).unwrap();
        file
    }

    #[test]
    fn a_file_with_holes_is_not_read_as_a_whole() {
        // A table of symbols, nearly all of it a hole: more than may be read, and more than the memory.
        for bytes in [512 << 20, 60 << 30] {
            let file = file_of(bytes + 4096, &[(elf::SHT_SYMTAB.0, 4096, bytes / 24 * 24, 2)], &[]);
            assert!(Image::of(file).with(|elf| elf.symbols(false).len()).is_none(), "{bytes}");
        }
        let small = file_of(8192, &[(elf::SHT_SYMTAB.0, 4096, 24, 2)], &[]);
        assert_eq!(Image::of(small).with(|elf| elf.symbols(false).len()), Some(0));
    }

    #[test]
    fn overlapping_names_are_bounded() {
        // st_name, st_info (a global function), st_other, st_shndx, st_value, st_size.
        let symbol = |at: u32| [&(1 + at % 4000).to_le_bytes()[..], &[0x12, 0, 1, 0], &[1; 16]].concat();
        let symbols: Vec<u8> = (0..100_000).flat_map(symbol).collect();
        let strings = [&[0][..], &[b'a'; 4090], &[0]].concat();
        let places = [(elf::SHT_SYMTAB.0, 8192, symbols.len() as u64, 2), (elf::SHT_STRTAB.0, 4096, 4092, 0)];
        let file = file_of(8 << 20, &places, &[(4096, &strings), (8192, &symbols)]);
        let read = Image::of(file).with(|elf| elf.symbols(false)).unwrap();
        let bytes: usize = read.iter().map(|symbol| symbol.name.len()).sum();
        assert!(bytes <= MAX_NAMES && read.len() > 1000, "{} symbols, {bytes} bytes", read.len());
    }

    #[test]
    fn few_segments_count() {
        let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
        bytes.resize(64, 0);
        (bytes[32], bytes[52], bytes[54], bytes[56]) = (64, 64, 56, 200);
        for _ in 0..200 {
            let mut header = [0; 56];
            (header[0], header[4]) = (elf::PT_LOAD.0 as u8, elf::PF_X.0 as u8);
            bytes.extend(header);
        }
        assert_eq!(parse(bytes.as_slice(), |elf| elf.segments().len()), Some(MOST_SEGMENTS));
    }

    #[test]
    fn symbols_with_very_long_names_are_left_out() {
        use std::io::Read;
        let symbol = |at: u32| [&at.to_le_bytes()[..], &[0x12, 0, 1, 0], &[1; 16]].concat();
        let strings = [&[0][..], &[b'a'; 5000], b"\0b\0"].concat();
        let symbols = [symbol(1), symbol(5002)].concat();
        let places = [(elf::SHT_SYMTAB.0, 16384, 48, 2), (elf::SHT_STRTAB.0, 4096, strings.len() as u64, 0)];
        let mut file = file_of(32768, &places, &[(4096, &strings), (16384, &symbols)]);
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        // Bytes in memory, as those of `.gnu_debugdata`, have no cache that cuts names.
        let read = parse(bytes.as_slice(), |elf| elf.symbols(false)).unwrap();
        assert_eq!(read.iter().map(|symbol| symbol.name.as_slice()).collect::<Vec<_>>(), [b"b"]);
    }

    #[test]
    fn names_count_however_they_end() {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, &[&[b'a'; 8192][..], b"\0ab\0"].concat()).unwrap();
        let (cache, left) = (ReadCache::new(file), Cell::new(10_000));
        let limited = Limited { cache: &cache, added: None, left: &left };
        assert_eq!(limited.read_bytes_at_until(0..8196, 0), Err(()));
        assert_eq!(left.get(), 10_000 - MAX_TEXT as u64);
        assert_eq!(limited.read_bytes_at_until(8193..8196, 0), Ok(&b"ab"[..]));
        assert_eq!(left.get(), 10_000 - MAX_TEXT as u64 - MIN_TEXT);
    }
}
