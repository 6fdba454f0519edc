// SPDX-License-Identifier: GPL-2.0-or-later

//! An object file as debug information needs it: sections with one address space, symbols, the build-id, and the debug
//! sections' contents with relocations applied.
//!
//! In an executable (vmlinux) addresses are those of the link. In a relocatable file (a module) every section begins at
//! zero; here each that is loaded gets a range of its own, so that one number names one place, and [`Elf::address`]
//! gives the pair of section and offset back. vmlinux keeps its relocations (`--emit-relocs`), but its contents are
//! final: relocations are applied to relocatable files alone.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use object::elf::{SHF_ALLOC, SHF_EXECINSTR, SHT_NOTE};
use object::read::elf::{ElfFile64, ElfSymbol64, FileHeader as _, SectionHeader};
use object::{
    LittleEndian, Object as _, ObjectKind, ObjectSection, ObjectSegment as _, ObjectSymbol, RelocationKind,
    RelocationTarget, SectionFlags, SectionIndex, SymbolKind,
};

use spile_abi::budget::{Budget, Limits, USUAL};
use spile_abi::sections;

use super::demangle::{demangled, fits, split_parameters, takes};
use super::file::{self, Bytes};
use super::narrow;
use super::symbol_table::{Row, SymbolTable, is_indirect};
use crate::error::Error;
use crate::tables::TableBytes;

/// The machine that objects are for. A port to another one changes this and [`crate::facts::registers`].
const MACHINE: object::Architecture = object::Architecture::X86_64;

/// First bytes of BTF (include/uapi/linux/btf.h, BTF_MAGIC).
const BTF_MAGIC: u16 = 0xeb9f;

/// Whether the bytes are BTF as in `/sys/kernel/btf`.
pub(crate) fn is_raw_btf(bytes: &[u8]) -> bool {
    bytes.starts_with(&BTF_MAGIC.to_le_bytes())
}

/// The first address that a section of a relocatable file gets, so that no small number is a valid address by accident.
const LAYOUT_START: u64 = 0x10_0000;

/// Sections that unpack to more than this are refused.
const MAX_SECTIONS: u64 = 2 << 30;

/// The only kind of ELF file that is read: 64 bits, little-endian.
pub(crate) type File<'data> = ElfFile64<'data, LittleEndian>;

/// Index of a section in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SectionId(pub u32);

/// A place in the object's code or data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// None in an executable (vmlinux).
    pub section: Option<SectionId>,
    /// From the section's start, or the link-time address.
    pub offset: u64,
}

/// A section that is loaded when the object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its index in the file.
    pub id: SectionId,
    /// As in the file: `.text`.
    pub name: String,
    /// Its range in the object's one address space.
    start: u64,
    size: u64,
    /// It has code (SHF_EXECINSTR).
    pub executable: bool,
}

impl Section {
    /// Start and size in the object's one address space.
    pub(crate) fn range(&self) -> (u64, u64) {
        (self.start, self.size)
    }
}

/// A loaded section as [`super::skeleton`] writes it.
pub(crate) struct LoadedSection {
    /// Its name, such as `.text`.
    pub name: String,
    /// Link-time address.
    pub address: u64,
    /// Size in bytes.
    pub size: u64,
    /// It contains code.
    pub executable: bool,
    /// Contents of a note; empty for all other sections.
    pub note: Vec<u8>,
}

/// A symbol of code or data from `.symtab`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'e> {
    /// As in the file; empty where it is not UTF-8.
    pub name: &'e str,
    /// In the object's one address space.
    pub(crate) at: u64,
    /// Bytes; 0 where it is not known.
    pub size: u64,
    /// Bound STB_GLOBAL.
    pub global: bool,
    /// Of code (STT_FUNC, STT_GNU_IFUNC).
    pub function: bool,
    /// The code says where the function is (STT_GNU_IFUNC).
    pub indirect: bool,
}

/// A function in a program's symbol table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CodeSymbol {
    /// Its name, demangled where it was asked for so.
    pub name: String,
    /// Where it begins.
    pub at: Address,
    /// Other files can refer to it (not STB_LOCAL).
    pub global: bool,
    /// What is there says where the function is (STT_GNU_IFUNC).
    pub indirect: bool,
}

/// A variable in a program's symbol table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataSymbol {
    /// Link-time address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
}

/// Larger files without section headers stay as they are: what is added needs a copy.
const MOST_COPIED: usize = 512 << 20;

/// A program that has no section headers, with those that follow from its segments.
fn with_sections(bytes: Bytes) -> Bytes {
    if bytes.len() > MOST_COPIED {
        return bytes;
    }
    let read = |at: u64, length: usize| {
        let at = usize::try_from(at).ok()?;
        bytes.get(at..at.checked_add(length)?).map(<[u8]>::to_vec)
    };
    let Some(added) = sections::added(bytes.len() as u64, &mut { read }) else { return bytes };
    let rest = bytes.get(added.header.len()..).unwrap_or_default();
    Bytes::Unpacked([&added.header, rest, &added.tail].concat())
}

fn is_variable<'d>(symbol: &impl object::ObjectSymbol<'d>) -> bool {
    symbol.kind() == object::SymbolKind::Data && !symbol.is_undefined()
}

/// One object file: ELF, or only BTF as in `/sys/kernel/btf`.
#[derive(Debug)]
pub struct Elf {
    path: PathBuf,
    bytes: Bytes,
    relocatable: bool,
    /// Sorted by start.
    sections: Vec<Section>,
    build_id: Vec<u8>,
    build_id_at: Option<u64>,
    symbols: OnceLock<Result<SymbolTable, Error>>,
    has_symbols: OnceLock<bool>,
    /// Bytes of sections that have been unpacked or copied.
    unpacked: AtomicUsize,
}

impl Elf {
    /// Reads the file, unpacked if it is compressed. Fails if it is not an object file for this architecture.
    pub fn open(path: &Path) -> Result<Elf, Error> {
        Elf::new(path, file::open(path)?)
    }

    /// The same of a program or library, which may be one of 32 bits: see [`narrow`].
    pub fn open_program(path: &Path) -> Result<Elf, Error> {
        Elf::new_program(path, file::open(path)?)
    }

    /// The program or library in a file that is open; `path`: where it was found.
    pub fn of_program_file(path: &Path, file: &std::fs::File) -> Result<Elf, Error> {
        Elf::new_program(path, file::of_file(path, file)?)
    }

    /// The program or library that these bytes are; `path` is that of the file around it, for messages.
    pub fn of_program_bytes(path: &Path, bytes: Vec<u8>) -> Result<Elf, Error> {
        Elf::new_program(path, Bytes::Unpacked(bytes))
    }

    fn new_program(path: &Path, bytes: Bytes) -> Result<Elf, Error> {
        let bytes = with_sections(bytes);
        if !narrow::is_narrow(&bytes) {
            return Elf::new(path, bytes);
        }
        let widened =
            narrow::widened(&bytes, MAX_SECTIONS).map_err(|message| Error::Elf { path: path.into(), message })?;
        Elf::new(path, Bytes::Unpacked(widened))
    }

    /// The object file that these bytes are; `path` is that of the file around it, for messages.
    pub fn of_bytes(path: &Path, bytes: Vec<u8>) -> Result<Elf, Error> {
        Elf::new(path, Bytes::Unpacked(bytes))
    }

    /// Parses the bytes: an ELF file, or BTF as in /sys/kernel/btf. `path` is for messages.
    pub(crate) fn new(path: &Path, bytes: Bytes) -> Result<Elf, Error> {
        let wrong = |message: String| Error::Elf { path: path.into(), message };
        if is_raw_btf(&bytes) {
            let (sections, build_id, symbols) = (Vec::new(), Vec::new(), OnceLock::new());
            return Ok(Elf {
                path: path.into(),
                bytes,
                relocatable: false,
                sections,
                build_id,
                build_id_at: None,
                symbols,
                has_symbols: OnceLock::new(),
                unpacked: AtomicUsize::new(0),
            });
        }
        if !bytes.starts_with(b"\x7fELF") {
            return Err(wrong("not an ELF file".into()));
        }
        let elf = File::parse(&*bytes).map_err(|error| wrong(error.to_string()))?;
        if elf.architecture() != MACHINE {
            return Err(wrong(format!("an object for {:?}, not {:?}", elf.architecture(), MACHINE)));
        }
        named(&elf, &bytes).map_err(&wrong)?;
        let relocatable = elf.kind() == ObjectKind::Relocatable;
        let sections = lay_out(&elf, relocatable);
        let note = elf.sections().find_map(|section| find_build_id(&section));
        let (build_id, build_id_at) = match note {
            Some((id, at)) => (id, (!relocatable).then_some(at)),
            None => (Vec::new(), None),
        };
        Ok(Elf {
            path: path.into(),
            relocatable,
            sections,
            build_id,
            build_id_at,
            symbols: OnceLock::new(),
            has_symbols: OnceLock::new(),
            unpacked: AtomicUsize::new(0),
            bytes,
        })
    }

    /// The path by which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The contents of the note NT_GNU_BUILD_ID; empty if there is none.
    pub fn build_id(&self) -> &[u8] {
        &self.build_id
    }

    /// Link-time address of the build-id's bytes in the loaded kernel; None in a relocatable file.
    pub fn build_id_address(&self) -> Option<u64> {
        self.build_id_at
    }

    /// Whether there is a section of this name that is not empty.
    pub fn has_section(&self, name: &str) -> bool {
        self.parse().is_ok_and(|elf| elf.section_by_name(name).is_some_and(|section| section.size() > 0))
    }

    /// The contents of `.BTF`, if there is one; the file itself may be only BTF.
    pub(crate) fn btf(&self) -> Result<Option<Vec<u8>>, Error> {
        if is_raw_btf(&self.bytes) {
            return Ok(Some(self.bytes.to_vec()));
        }
        if !self.has_section(".BTF") {
            return Ok(None);
        }
        match self.debug_section(".BTF")? {
            Contents::InFile(range) => Ok(self.bytes.get(range).map(<[u8]>::to_vec)),
            Contents::Owned(contents) => Ok(Some(contents)),
        }
    }

    /// Whether it has types and prototypes in BTF.
    pub fn has_btf(&self) -> bool {
        is_raw_btf(&self.bytes) || self.has_section(".BTF")
    }

    /// Link-time address at which a program begins to run; 0 of a library.
    pub fn entry_point(&self) -> u64 {
        self.parse().map_or(0, |elf| elf.entry())
    }

    /// Whether it stands for a 32-bit program ([`narrow`]).
    pub fn is_narrow(&self) -> bool {
        self.has_section(narrow::SEGMENTS)
    }

    /// Address, place in the file and bytes there of each segment of a 32-bit program; None: it is not one.
    fn narrow_segments(&self) -> Option<impl Iterator<Item = (u64, u64, u64)>> {
        let words = |bytes: &[u8], at: usize| {
            bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_le_bytes)
        };
        let segments = self.section_bytes(narrow::SEGMENTS)?.chunks_exact(24);
        Some(segments.map(move |segment| (words(segment, 0), words(segment, 8), words(segment, 16))))
    }

    /// Link-time address of the file's first byte; None: it is not mapped.
    pub fn base_address(&self) -> Option<u64> {
        if let Some(segments) = self.narrow_segments() {
            let (address, start, _) = segments.min_by_key(|(_, start, _)| *start)?;
            return (start == 0).then_some(address);
        }
        let elf = self.parse().ok()?;
        let first = elf.segments().min_by_key(|segment| segment.file_range().0)?;
        (first.file_range().0 == 0).then(|| first.address())
    }

    /// The variable of that name; not one that each thread has its own of.
    pub fn data_symbol(&self, name: &str) -> Option<DataSymbol> {
        let elf = self.parse().ok()?;
        let all = || elf.symbols().chain(elf.dynamic_symbols()).filter(is_variable);
        let exact = || all().find(|symbol| symbol.name_bytes() == Ok(name.as_bytes()));
        // As the source has it, of C++ and Rust.
        let is_qualified = |linked: &str| demangled(linked).is_some_and(|qualified| fits(name, &qualified));
        let qualified = || all().find(|symbol| name.contains("::") && symbol.name().is_ok_and(is_qualified));
        let found = exact().or_else(qualified)?;
        Some(DataSymbol { address: found.address(), size: found.size() })
    }

    /// The names of all.
    pub fn data_symbols(&self) -> Vec<String> {
        let Ok(elf) = self.parse() else { return Vec::new() };
        let all = elf.symbols().chain(elf.dynamic_symbols()).filter(is_variable);
        all.filter_map(|symbol| symbol.name().ok().map(str::to_string)).collect()
    }

    /// Whether it has symbols of functions. After objcopy only symbols of sections may be left.
    pub fn has_symbols(&self) -> bool {
        let code = |elf: File| {
            elf.symbols().any(|symbol| symbol.kind() == object::SymbolKind::Text && symbol.section_index().is_some())
        };
        // Asked for each function of a listing.
        *self.has_symbols.get_or_init(|| self.has_section(".symtab") && self.parse().is_ok_and(code))
    }

    /// Gives the file's pages back to the system, which reads again what is used again.
    pub(crate) fn give_back(&self) {
        self.bytes.give_back();
    }

    /// Where in the file the bytes at a link-time address are, by the segments that are loaded (PT_LOAD); None if they are in
    /// none, or not from the file.
    pub fn file_offset(&self, at: u64) -> Option<u64> {
        if let Some(mut segments) = self.narrow_segments() {
            return segments.find_map(|(address, start, length)| {
                let inside = at.checked_sub(address).filter(|inside| *inside < length)?;
                start.checked_add(inside)
            });
        }
        let elf = self.parse().ok()?;
        elf.segments().find_map(|segment| {
            let inside = at.checked_sub(segment.address())?;
            let (start, length) = segment.file_range();
            (inside < length).then(|| start.checked_add(inside)).flatten()
        })
    }

    /// Bytes of a section of the loaded file, as they are there; None if there is none.
    pub fn section_bytes(&self, name: &str) -> Option<&[u8]> {
        self.bytes.get(self.plain_section(name)?)
    }

    /// Whether it is BTF as the kernel shows its own in /sys/kernel/btf.
    pub fn is_raw_btf(&self) -> bool {
        is_raw_btf(&self.bytes)
    }

    /// Bytes of the section of this name in the file; 0 if there is none.
    pub(crate) fn section_size(&self, name: &str) -> u64 {
        let size = |elf: File| Some(elf.section_by_name(name)?.size());
        self.parse().ok().and_then(size).unwrap_or(0)
    }

    /// Whether it is a kernel module: addresses are relative to sections.
    pub(crate) fn is_relocatable(&self) -> bool {
        self.relocatable
    }

    /// The loaded sections, in the order of the file.
    pub(crate) fn loaded(&self) -> Result<Vec<LoadedSection>, Error> {
        let elf = self.parse()?;
        let mut all = Vec::new();
        for section in elf.sections() {
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
            if sh_flags.0 & SHF_ALLOC.0 == 0 {
                continue;
            }
            let note = section.elf_section_header().sh_type(LittleEndian) == SHT_NOTE;
            all.push(LoadedSection {
                name: section.name().unwrap_or_default().to_string(),
                address: section.address(),
                size: section.size(),
                executable: sh_flags.0 & SHF_EXECINSTR.0 != 0,
                note: if note { section.data().unwrap_or_default().to_vec() } else { Vec::new() },
            });
        }
        Ok(all)
    }

    /// Whether every section's bytes are within the file: a truncated file may have its section table in front.
    pub fn is_whole(&self) -> bool {
        let end = self.bytes.len() as u64;
        self.parse().is_ok_and(|elf| {
            let mut ranges = elf.sections().filter_map(|section| section.file_range());
            ranges.all(|(start, length)| start.checked_add(length).is_some_and(|last| last <= end))
        })
    }

    /// Name and size of each section of code, in their order: the same in a stripped file and in its debug information.
    pub fn code_sizes(&self) -> Vec<(&str, u64)> {
        self.sections
            .iter()
            .filter(|section| section.executable)
            .map(|section| (section.name.as_str(), section.size))
            .collect()
    }

    /// The code of a program or library: link-time address and bytes of each section. None of the kernel and of its modules.
    pub(crate) fn code_of_program(&self) -> Vec<(u64, &[u8])> {
        if self.is_of_kernel() {
            return Vec::new();
        }
        let Ok(elf) = self.parse() else { return Vec::new() };
        let sections = self.sections.iter().filter(|section| section.executable);
        let bytes = |section: &Section| {
            let (start, length) = elf.section_by_index(SectionIndex(section.id.0 as usize)).ok()?.file_range()?;
            self.bytes.get(usize::try_from(start).ok()?..usize::try_from(start.checked_add(length)?).ok()?)
        };
        sections.filter_map(|section| Some((section.start, bytes(section)?))).collect()
    }

    /// The same of a 32-bit program too, whose code is not to be taken for that of a 64-bit one.
    pub(crate) fn code_of_any_program(&self) -> Vec<(u64, &[u8])> {
        match self.is_narrow() {
            true => narrow::code(self.section_bytes(narrow::CODE).unwrap_or_default()),
            false => self.code_of_program(),
        }
    }

    /// Whether it is the kernel, a module, or another file that is not linked.
    pub(crate) fn is_of_kernel(&self) -> bool {
        // What the kernel exports to modules.
        self.relocatable || self.has_section("__ksymtab")
    }

    /// Contents of a section that is neither compressed nor relocated; None if there is none.
    pub(crate) fn plain_section(&self, name: &str) -> Option<std::ops::Range<usize>> {
        let elf = self.parse().ok()?;
        let (start, length) = elf.section_by_name(name)?.file_range()?;
        let (start, end) = (usize::try_from(start).ok()?, usize::try_from(start.checked_add(length)?).ok()?);
        (end <= self.bytes.len()).then_some(start..end)
    }

    /// The value of that name in `.modinfo`, as modinfo(8) prints it; None if there is none.
    pub(crate) fn module_info(&self, key: &str) -> Option<String> {
        let range = self.plain_section(".modinfo")?;
        let entries = self.bytes.get(range)?.split(|byte| *byte == 0);
        let mut values =
            entries.filter_map(|entry| std::str::from_utf8(entry).ok()?.strip_prefix(key)?.strip_prefix('='));
        values.next().map(str::to_string)
    }

    /// Whether a module was built with the kernel (scripts/mod/modpost.c writes `intree=Y` into it).
    pub(crate) fn is_in_tree(&self) -> bool {
        self.module_info("intree").is_some()
    }

    /// Names from `.gnu_debuglink`: the file name of the object with the debug information.
    pub fn debug_link(&self) -> Option<PathBuf> {
        let elf = self.parse().ok()?;
        let (name, _) = elf.gnu_debuglink().ok()??;
        let name = std::str::from_utf8(name).ok()?;
        // A name, not a path: it must not lead anywhere else.
        (!name.is_empty() && !name.contains('/')).then(|| PathBuf::from(name))
    }

    /// Whether `debug` is the object with the debug information of this one: by their build-ids or, where neither has one, by the
    /// checksum in `.gnu_debuglink` (CRC-32 of the whole file).
    pub(crate) fn is_described_by(&self, debug: &Elf) -> bool {
        if !self.build_id().is_empty() || !debug.build_id().is_empty() {
            return self.build_id() == debug.build_id();
        }
        let expected = self.parse().ok().and_then(|elf| elf.gnu_debuglink().ok()?).map(|(_, sum)| sum);
        // A 32-bit file's bytes are not those here.
        let sum = || std::fs::read(debug.path()).ok().map(|file| crc32fast::hash(&file));
        expected.is_some_and(|expected| sum() == Some(expected))
    }

    /// Name and build-id from `.gnu_debugaltlink`: the file with the entries that this one shares with others.
    pub(crate) fn shared_link(&self) -> Option<(PathBuf, Vec<u8>)> {
        use std::os::unix::ffi::OsStrExt;
        let elf = self.parse().ok()?;
        let (name, build_id) = elf.gnu_debugaltlink().ok()??;
        (!name.is_empty()).then(|| (PathBuf::from(std::ffi::OsStr::from_bytes(name)), build_id.to_vec()))
    }

    /// The file, parsed again; only its first parse, in [`Elf::new`], can fail.
    pub(crate) fn parse(&self) -> Result<File<'_>, Error> {
        File::parse(&*self.bytes).map_err(|error| self.wrong(error.to_string()))
    }

    fn wrong(&self, message: String) -> Error {
        Error::Elf { path: self.path.clone(), message }
    }

    /// The place of an address of this object; None for one in no loaded section.
    pub fn address(&self, at: u64) -> Option<Address> {
        let section = self.section_at(at)?;
        Some(match self.relocatable {
            true => Address { section: Some(section.id), offset: at - section.start },
            false => Address { section: None, offset: at },
        })
    }

    /// The start of the first section with code.
    pub fn first_code(&self) -> Option<Address> {
        self.address(self.sections.iter().find(|section| section.executable)?.start)
    }

    /// Whether a loaded section with code has the address.
    pub(crate) fn is_code(&self, at: u64) -> bool {
        self.section_at(at).is_some_and(|section| section.executable)
    }

    /// The place of a link-time address or, in a relocatable file, of an offset in `.text`; None if no code is there.
    pub fn code_address(&self, number: u64) -> Option<Address> {
        let start = if self.relocatable { self.section_start(".text")? } else { 0 };
        let at = start.checked_add(number).filter(|at| self.is_code(*at))?;
        self.address(at)
    }

    /// The loaded section that has this address.
    pub(crate) fn section_at(&self, at: u64) -> Option<&Section> {
        let index = self.sections.partition_point(|section| section.start <= at).checked_sub(1)?;
        self.sections.get(index).filter(|section| at - section.start < section.size)
    }

    /// The inverse of [`Elf::address`].
    pub(crate) fn flat(&self, address: Address) -> Option<u64> {
        match address.section {
            None => Some(address.offset),
            Some(id) => self.section(id)?.start.checked_add(address.offset),
        }
    }

    /// The loaded section that an address of this object is in.
    pub fn section_of(&self, address: Address) -> Option<&Section> {
        self.section_at(self.flat(address)?)
    }

    /// All loaded sections, sorted by their place in the object's one address space.
    pub(crate) fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// The loaded section of that index; None if there is none.
    pub fn section(&self, id: SectionId) -> Option<&Section> {
        self.sections.iter().find(|section| section.id == id)
    }

    fn symbols(&self) -> Result<&SymbolTable, Error> {
        self.symbols.get_or_init(|| self.read_symbols()).as_ref().map_err(Clone::clone)
    }

    fn read_symbols(&self) -> Result<SymbolTable, Error> {
        let elf = self.parse()?;
        let mut all = Vec::new();
        let names = self.names_budget();
        // strip leaves only the symbols that the dynamic linker needs.
        let symbols = if self.has_section(".symtab") { elf.symbols() } else { elf.dynamic_symbols() };
        for symbol in symbols {
            let (Ok(name), Some(at)) = (symbol.name_bytes(), self.symbol_start(&symbol)) else { continue };
            let place = (name.as_ptr() as usize)
                .checked_sub(self.bytes.as_ptr() as usize)
                .and_then(|start| u32::try_from(start).ok());
            let Some(start) = place.filter(|_| !name.is_empty()) else { continue };
            names.bytes(name.len()).map_err(|error| self.wrong(error.to_string()))?;
            let (size, global) = (symbol.size(), symbol.is_global());
            let function = symbol.kind() == SymbolKind::Text;
            let indirect = is_indirect(&symbol);
            all.push(Row { at, size, name: (start, name.len() as u32), global, function, indirect });
        }
        SymbolTable::make(all, |row| self.name(row)).ok_or_else(|| self.wrong("too many symbols".into()))
    }

    /// The symbols as they can be stored for [`Elf::adopt_symbols`].
    pub(crate) fn symbol_tables(&self) -> Result<&[u8], Error> {
        self.symbols().map(SymbolTable::bytes)
    }

    /// Takes the symbols of this file from the cache, unless they have been read.
    pub(crate) fn adopt_symbols(&self, bytes: TableBytes) {
        if let Some(table) = SymbolTable::of(bytes) {
            let _ = self.symbols.set(Ok(table));
        }
    }

    fn name(&self, row: &Row) -> &[u8] {
        let (start, length) = (row.name.0 as usize, row.name.1 as usize);
        self.bytes.get(start..start.saturating_add(length)).unwrap_or_default()
    }

    fn text(&self, row: &Row) -> &str {
        std::str::from_utf8(self.name(row)).unwrap_or_default()
    }

    fn symbol(&self, row: &Row) -> Symbol<'_> {
        let Row { at, size, global, function, indirect, .. } = *row;
        Symbol { name: self.text(row), at, size, global, function, indirect }
    }

    /// All symbols of code and data, sorted by address.
    pub(crate) fn all_symbols(&self) -> Result<impl Iterator<Item = Symbol<'_>>, Error> {
        let symbols = self.symbols()?;
        Ok((0..symbols.count()).map(|row| self.symbol(&symbols.row(row))))
    }

    /// The symbol of that number in the order of [`Elf::all_symbols`].
    pub(crate) fn symbol_numbered(&self, number: u32) -> Result<Option<Symbol<'_>>, Error> {
        let (symbols, number) = (self.symbols()?, number as usize);
        Ok((number < symbols.count()).then(|| self.symbol(&symbols.row(number))))
    }

    /// Names of functions whose code begins at the address.
    pub fn functions_at(&self, address: Address) -> Vec<String> {
        let Some(at) = self.flat(address) else { return Vec::new() };
        let before = self.symbols_before(at).into_iter().flatten();
        let here = before.take_while(|symbol| symbol.at == at).filter(|symbol| symbol.function);
        here.map(|symbol| symbol.name.to_string()).collect()
    }

    /// Where the functions begin whose symbols have such names, each place once.
    pub(crate) fn functions_where(&self, is_one: impl Fn(&str) -> bool) -> Vec<Address> {
        let all = self.all_symbols().into_iter().flatten();
        let code = all.filter(|symbol| symbol.function && self.is_code(symbol.at));
        // Linkers write the version of a symbol behind its name.
        let named = code.filter(|symbol| is_one(symbol.name.split_once('@').map_or(symbol.name, |(plain, _)| plain)));
        let mut found: Vec<Address> = named.filter_map(|symbol| self.address(symbol.at)).collect();
        found.dedup();
        found
    }

    /// Where code begins whose symbols have such names, of functions or of assembly that says no kind.
    pub(super) fn code_named(&self, is_one: impl Fn(&str) -> bool) -> Vec<u64> {
        let all = self.all_symbols().into_iter().flatten();
        all.filter(|symbol| self.is_code(symbol.at) && is_one(symbol.name)).map(|symbol| symbol.at).collect()
    }

    /// The functions whose names fit the shell pattern, by the symbol table alone, each name and place once. The name may be one of
    /// C++ or Rust, or the end of one, with the types of the parameters behind it.
    pub fn functions_like(&self, pattern: &str) -> Vec<CodeSymbol> {
        let (pattern, parameters) = split_parameters(pattern);
        let all = self.all_symbols().into_iter().flatten();
        let code = all.filter(|symbol| symbol.function && self.is_code(symbol.at));
        let fits = code.filter_map(|symbol| {
            if parameters.is_some_and(|parameters| !takes(parameters, symbol.name)) {
                return None;
            }
            // Linkers write the version of a symbol behind its name: `f@@V2`, `f@V1`.
            let plain = symbol.name.split_once('@').map_or(symbol.name, |(plain, _)| plain);
            let name = if spile_base::glob::matches(pattern, plain) {
                plain.to_string()
            } else if spile_base::glob::matches(pattern, symbol.name) {
                symbol.name.to_string()
            } else {
                demangled(symbol.name).filter(|qualified| fits(pattern, qualified))?
            };
            let (global, indirect) = (symbol.global, symbol.indirect);
            Some(CodeSymbol { name, at: self.address(symbol.at)?, global, indirect })
        });
        let mut found: Vec<CodeSymbol> = fits.collect();
        if found.is_empty() && pattern.contains('@') {
            found.extend(self.versioned_functions(pattern).unwrap_or_default());
        }
        found.sort_by(|one, other| (&one.name, one.at, other.global).cmp(&(&other.name, other.at, one.global)));
        found.dedup_by(|one, before| one.name == before.name && one.at == before.at);
        found
    }

    /// Functions of the dynamic symbols whose names with their versions fit, as the linker writes them into `.symtab`: `f@@V2` for the
    /// one that programs are linked with, `f@V1` for others.
    fn versioned_functions(&self, pattern: &str) -> Option<Vec<CodeSymbol>> {
        use object::read::elf::Sym as _;
        let elf = self.parse().ok()?;
        let endian = object::LittleEndian;
        let versions = elf.elf_section_table().versions(endian, elf.data()).ok()??;
        let table = elf.elf_dynamic_symbol_table();
        let fits = table.enumerate().filter_map(|(index, symbol)| {
            let at = symbol.st_value(endian);
            if !matches!(symbol.st_type(), object::elf::STT_FUNC | object::elf::STT_GNU_IFUNC) || !self.is_code(at) {
                return None;
            }
            let version = versions.version_index(endian, index);
            let between = if version.is_hidden() { "@" } else { "@@" };
            let version = String::from_utf8_lossy(versions.version(version.into()).ok()??.name()).into_owned();
            let name = String::from_utf8_lossy(symbol.name(endian, table.strings()).ok()?).into_owned();
            let whole = format!("{name}{between}{version}");
            let global = symbol.st_bind() != object::elf::STB_LOCAL;
            let at = self.address(at).filter(|_| spile_base::glob::matches(pattern, &whole))?;
            let indirect = symbol.st_type() == object::elf::STT_GNU_IFUNC;
            Some(CodeSymbol { name: whole, at, global, indirect })
        });
        Some(fits.collect())
    }

    /// The symbols of this name.
    pub fn symbols_named<'e>(&'e self, name: &'e str) -> Result<impl Iterator<Item = Symbol<'e>>, Error> {
        let found = self.symbols()?.candidates_named(name.as_bytes()).map(|row| self.symbol(&row));
        Ok(found.filter(move |symbol| symbol.name == name))
    }

    /// Where the next symbol behind the address is.
    pub(super) fn symbol_behind(&self, at: u64) -> Option<u64> {
        let symbols = self.symbols().ok()?;
        let next = symbols.up_to(at);
        (next < symbols.count()).then(|| symbols.row(next).at)
    }

    /// The symbols at or before the address, nearest first.
    pub(crate) fn symbols_before(&self, at: u64) -> Result<impl Iterator<Item = Symbol<'_>>, Error> {
        let symbols = self.symbols()?;
        Ok((0..symbols.up_to(at)).rev().map(|row| self.symbol(&symbols.row(row))))
    }

    /// The function's symbol at or nearest before the address, and the distance from it.
    pub fn near(&self, address: Address) -> Option<SymbolOffset> {
        let at = self.flat(address)?;
        let symbol =
            self.symbols_before(at).ok()?.find(|symbol| symbol.function && !symbol.name.starts_with("__pfx_"))?;
        Some(SymbolOffset { symbol: symbol.name.to_string(), offset: at - symbol.at })
    }

    /// The function's symbol of whose code the address is, and the distance from it. One without a size goes on to the next symbol
    /// that has one, or to the end of its section.
    pub fn containing(&self, address: Address) -> Option<SymbolOffset> {
        let at = self.flat(address)?;
        let section = self.section_at(at)?.start;
        let before = self.symbols_before(at).ok()?.take_while(|symbol| symbol.at >= section);
        let (mut sized, mut open) = (false, None);
        let mut functions = before.filter(|symbol| symbol.function && !symbol.name.starts_with("__pfx_"));
        let found = functions.find(|symbol| {
            match symbol.size {
                0 if !sized && open.is_none() => open = Some(*symbol),
                0 => {}
                _ => {
                    sized = true;
                    // What is in another function ends with that one.
                    open = open.filter(|open| open.at - symbol.at >= symbol.size);
                }
            }
            at - symbol.at < symbol.size.max(1)
        });
        let symbol = found.or(open)?;
        Some(SymbolOffset { symbol: symbol.name.to_string(), offset: at - symbol.at })
    }

    /// The place of a symbol of this name.
    pub fn symbol_address(&self, name: &str) -> Result<Option<Address>, Error> {
        if self.symbols.get().is_none() {
            // One name is found faster by a search than by sorting all.
            return Ok(self.scan_for(name)?.and_then(|at| self.address(at)));
        }
        let at = self.symbols_named(name)?.next().map(|symbol| symbol.at);
        Ok(at.and_then(|at| self.address(at)))
    }

    /// Where the lowest symbol of that name is, in the object's one address space: the first result of `symbols_named`.
    fn scan_for(&self, name: &str) -> Result<Option<u64>, Error> {
        let elf = self.parse()?;
        let symbols = if self.has_section(".symtab") { elf.symbols() } else { elf.dynamic_symbols() };
        let (names, mut first) = (self.names_budget(), None);
        for symbol in symbols {
            let Ok(found) = symbol.name_bytes() else { continue };
            names.bytes(found.len()).map_err(|error| self.wrong(error.to_string()))?;
            if found == name.as_bytes() {
                first = self.symbol_start(&symbol).into_iter().chain(first).min();
            }
        }
        Ok(first)
    }

    /// For all names of symbols together.
    fn names_budget(&self) -> Budget {
        let bytes = (self.bytes.len() as u64).saturating_mul(NAMES_RATIO).max(1 << 20);
        Budget::new("names of symbols", Limits { bytes, ..USUAL })
    }

    /// The place of a symbol of the kinds considered, in the object's one address space.
    fn symbol_start(&self, symbol: &ElfSymbol64<LittleEndian>) -> Option<u64> {
        if !matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Data | SymbolKind::Unknown) || symbol.is_undefined()
        {
            return None;
        }
        let section = symbol.section_index()?;
        let base = match self.relocatable {
            true => self.section(SectionId(section.0 as u32))?.start,
            false => 0,
        };
        base.checked_add(symbol.address())
    }

    /// A function symbol whose name only one symbol of the object has, at or before the address in the same section,
    /// nearest first; and the distance from it. None in the sections that the kernel frees or may never load
    /// (`.init*`, `.exit*`), and where no symbol comes before.
    pub fn anchor(&self, address: Address) -> Result<Option<SymbolOffset>, Error> {
        let Some((at, section)) = self.flat(address).and_then(|at| Some((at, self.section_at(at)?))) else {
            return Ok(None);
        };
        if !section.executable || section.name.starts_with(".init") || section.name.starts_with(".exit") {
            return Ok(None);
        }
        self.unique_before(at, section, &|symbol| symbol.function)
    }

    /// The same for a variable: a symbol of any kind in its section. The names are those in a module's `.symtab`, which
    /// the kernel keeps with CONFIG_KALLSYMS_ALL (is_core_symbol() in kernel/module/kallsyms.c).
    pub fn data_anchor(&self, address: Address) -> Result<Option<SymbolOffset>, Error> {
        let Some((at, section)) = self.flat(address).and_then(|at| Some((at, self.section_at(at)?))) else {
            return Ok(None);
        };
        if section.name.starts_with(".init") || section.name.starts_with(".exit") {
            return Ok(None);
        }
        self.unique_before(at, section, &|_| true)
    }

    fn unique_before(
        &self,
        at: u64,
        section: &Section,
        fits: &dyn Fn(&Symbol) -> bool,
    ) -> Result<Option<SymbolOffset>, Error> {
        for symbol in self.symbols_before(at)?.take_while(|symbol| symbol.at >= section.start) {
            // Padding before functions (6.2 and later) and the assembler's local labels are not in a module's kallsyms.
            let hidden = symbol.name.starts_with("__pfx_") || symbol.name.starts_with('.');
            if fits(&symbol) && !hidden && self.symbols_named(symbol.name)?.count() == 1 {
                return Ok(Some(SymbolOffset { symbol: symbol.name.to_string(), offset: at - symbol.at }));
            }
        }
        Ok(None)
    }

    /// A debug section's contents as DWARF readers need them: unpacked, relocations applied. Empty if there is none.
    pub(crate) fn debug_section(&self, name: &str) -> Result<Contents, Error> {
        let elf = self.parse()?;
        match elf.section_by_name(name) {
            Some(section) => self.contents_of(&elf, section, name),
            None => Ok(Contents::Owned(Vec::new())),
        }
    }

    /// The same of all sections of that name, one after the other: compilers write each unit of a type into one of its own.
    pub(crate) fn debug_sections(&self, name: &str) -> Result<Contents, Error> {
        let elf = self.parse()?;
        let mut all = Vec::new();
        for section in elf.sections().filter(|section| section.name() == Ok(name)) {
            all.push(self.contents_of(&elf, section, name)?);
        }
        if let (Some(_), 1) = (all.first(), all.len()) {
            return Ok(all.remove(0));
        }
        let mut joined = Vec::new();
        for contents in &all {
            joined.extend_from_slice(match contents {
                Contents::InFile(range) => self.bytes.get(range.clone()).unwrap_or_default(),
                Contents::Owned(contents) => contents,
            });
        }
        Ok(Contents::Owned(joined))
    }

    fn contents_of<'e>(&self, elf: &File<'e>, section: impl ObjectSection<'e>, name: &str) -> Result<Contents, Error> {
        let failed = |error: object::Error| self.wrong(format!("section {name}: {error}"));
        let compressed = section.compressed_data().map_err(failed)?;
        let size = usize::try_from(compressed.uncompressed_size).unwrap_or(usize::MAX);
        let plain = compressed.format == object::CompressionFormat::None;
        if plain && !self.relocatable {
            let range = section.file_range().map(|(start, length)| (start as usize, length as usize));
            let (start, length) = range.unwrap_or((0, 0));
            return Ok(Contents::InFile(start..start + length));
        }
        // Of all sections together: there are a dozen.
        let budget = Budget::unpacking("unpacked sections", self.bytes.len() as u64, MAX_SECTIONS);
        let before = self.unpacked.fetch_add(size, Ordering::Relaxed);
        budget.bytes(before.saturating_add(size)).map_err(|error| self.wrong(format!("section {name}: {error}")))?;
        let mut contents = compressed.decompress().map_err(failed)?.into_owned();
        if self.relocatable {
            self.relocate(elf, section, name, &mut contents)?;
        }
        Ok(Contents::Owned(contents))
    }

    fn relocate<'d>(
        &self,
        elf: &File<'d>,
        section: impl ObjectSection<'d>,
        name: &str,
        contents: &mut [u8],
    ) -> Result<(), Error> {
        for (offset, relocation) in section.relocations() {
            let base = match relocation.target() {
                RelocationTarget::Symbol(index) => {
                    let symbol =
                        elf.symbol_by_index(index).map_err(|error| self.wrong(format!("section {name}: {error}")))?;
                    // A symbol of another object has no address here: the field keeps its value.
                    let Some(section) = symbol.section_index() else {
                        continue;
                    };
                    let start = self.section(SectionId(section.0 as u32)).map_or(0, |section| section.start);
                    start.wrapping_add(symbol.address())
                }
                _ => continue,
            };
            let value = base.wrapping_add_signed(relocation.addend());
            let value = match relocation.kind() {
                RelocationKind::Absolute => value,
                // Only loaded frame descriptions have these; they are relative to the field itself.
                RelocationKind::Relative => {
                    let own = self.section(SectionId(section.index().0 as u32)).map_or(0, |section| section.start);
                    value.wrapping_sub(own.wrapping_add(offset))
                }
                _ => continue,
            };
            let length = usize::from(relocation.size() / 8);
            let place =
                usize::try_from(offset).ok().and_then(|start| contents.get_mut(start..start.checked_add(length)?));
            match (place, length) {
                (Some(place), 1 | 2 | 4 | 8) => {
                    place.iter_mut().zip(value.to_le_bytes()).for_each(|(byte, new)| *byte = new);
                }
                _ => {
                    return Err(self.wrong(format!("section {name}: relocation at {offset:#x} is outside of it")));
                }
            }
        }
        Ok(())
    }

    /// The file as it is on disk, unpacked.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where the section of this name is loaded.
    pub(crate) fn section_start(&self, name: &str) -> Option<u64> {
        self.sections.iter().find(|section| section.name == name).map(|section| section.start)
    }
}

/// All names of symbols are at most this many times as long as the file: a linker lets a name be the end of another one, which
/// a symbol for each byte of a long one would be too.
const NAMES_RATIO: u64 = 8;

/// Sections of one file. Names are compared one by one in each search.
const SECTIONS: Limits = Limits { bytes: 4 << 20, width: 1 << 16, ..USUAL };

/// Refuses more sections, or longer names, than any compiler writes.
fn named(elf: &File, bytes: &[u8]) -> Result<(), String> {
    let budget = Budget::new("sections and their names", SECTIONS);
    let headers = elf.elf_section_table();
    budget.width(headers.len()).map_err(|error| error.to_string())?;
    let header = elf.elf_header();
    let names = header.section_strings_index(LittleEndian, bytes).ok().and_then(|index| headers.section(index).ok());
    let names = names.and_then(|section| section.data(LittleEndian, bytes).ok()).unwrap_or_default();
    for section in headers.iter() {
        let rest =
            usize::try_from(section.sh_name(LittleEndian)).ok().and_then(|at| names.get(at..)).unwrap_or_default();
        let most = usize::try_from(budget.bytes_left()).unwrap_or(usize::MAX).saturating_add(1).min(rest.len());
        let length = rest.iter().take(most).position(|byte| *byte == 0).unwrap_or(most);
        budget.bytes(length).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// A debug section's contents.
pub(crate) enum Contents {
    /// As in the file.
    InFile(std::ops::Range<usize>),
    Owned(Vec<u8>),
}

/// A place as a symbol and the distance from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolOffset {
    /// Name of the symbol.
    pub symbol: String,
    /// The bytes after it.
    pub offset: u64,
}

/// The loaded sections, sorted by start; in a relocatable file one after the other.
fn lay_out(elf: &File, relocatable: bool) -> Vec<Section> {
    let mut sections = Vec::new();
    let mut next = LAYOUT_START;
    for section in elf.sections() {
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else {
            continue;
        };
        if sh_flags.0 & SHF_ALLOC.0 == 0 {
            continue;
        }
        let size = section.size();
        let start = if relocatable { next } else { section.address() };
        let Some(end) = start.checked_add(size).and_then(|end| end.checked_add(0x1fff)) else {
            continue;
        };
        // A page between them, so that the end of one section is not in the next.
        next = if relocatable { end & !0xfff } else { next };
        let name = section.name().unwrap_or_default().to_string();
        let executable = sh_flags.0 & SHF_EXECINSTR.0 != 0;
        sections.push(Section { id: SectionId(section.index().0 as u32), name, start, size, executable });
    }
    sections.sort_by_key(|section| section.start);
    sections
}

/// The build-id in a note section, and its link-time address.
fn find_build_id(section: &object::read::elf::ElfSection64<LittleEndian>) -> Option<(Vec<u8>, u64)> {
    if section.elf_section_header().sh_type(LittleEndian) != SHT_NOTE {
        return None;
    }
    let data = section.data().ok()?;
    let word = |at: usize| {
        data.get(at..at.checked_add(4)?).and_then(|word| Some(u32::from_le_bytes(word.try_into().ok()?) as usize))
    };
    let padded = |length: usize| length.checked_add(3).map(|length| length & !3);
    let mut at = 0;
    loop {
        let (name_length, length, kind) = (word(at)?, word(at + 4)?, word(at + 8)?);
        let name = at + 12;
        let contents = name.checked_add(padded(name_length)?)?;
        let owner = data.get(name..name.checked_add(name_length)?)?;
        let id = data.get(contents..contents.checked_add(length)?)?;
        if kind == object::elf::NT_GNU_BUILD_ID.0 as usize && owner == b"GNU\0" {
            return Some((id.to_vec(), section.address().wrapping_add(contents as u64)));
        }
        at = contents.checked_add(padded(length)?)?;
    }
}
