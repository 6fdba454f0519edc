// SPDX-License-Identifier: GPL-2.0-or-later

//! What is needed of an ELF file. It is read piece by piece, never mapped: a file that somebody shortens meanwhile gives an error, not
//! a SIGBUS.

use std::fs::File;
use std::path::PathBuf;

use nix::libc;
use object::read::elf::{ElfFile64, ProgramHeader};
use object::read::{ReadCache, ReadRef};
use object::{LittleEndian, Object, ObjectSection, elf};

/// Larger sections are not read, in bytes.
const MAX_SECTION: u64 = 512 << 20;

/// A file, or the memory of the vDSO.
#[derive(Debug)]
pub enum Image {
    /// Reads are cached until it is dropped.
    File(ReadCache<File>),
    /// The vDSO of this process: all 64-bit processes have the same.
    Vdso(&'static [u8]),
}

/// An executable part of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// First address, as the file has it.
    pub address: u64,
    /// Where it is in the file.
    pub offset: u64,
    /// Length.
    pub bytes: u64,
}

/// A section with its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// As the file has it.
    pub address: u64,
    /// Its bytes.
    pub data: Vec<u8>,
}

/// A symbol of a function or an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// As the file has it.
    pub address: u64,
    /// 0: not known.
    pub bytes: u64,
    /// Visible outside of the file.
    pub is_global: bool,
    /// As in the file.
    pub name: Vec<u8>,
}

/// What is read of a file that can be read at all.
pub trait Elf {
    /// The parts that are executed.
    fn segments(&self) -> Vec<Segment>;
    /// `None`: there is none of that name with bytes in the file.
    fn section(&self, name: &str) -> Option<Section>;
    /// Of `.symtab`, or of `.dynsym`.
    fn symbols(&self, dynamic: bool) -> Vec<Symbol>;
    /// Empty: it has none.
    fn build_id(&self) -> Vec<u8>;
    /// Strings of the dynamic section with this tag.
    fn dynamic(&self, tag: i64) -> Vec<Vec<u8>>;
    /// The program that loads it.
    fn interpreter(&self) -> Option<PathBuf>;
}

impl Image {
    /// Of an open file.
    pub fn of(file: File) -> Image {
        Image::File(ReadCache::new(file))
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

    /// Calls with the file, if it is one for this processor.
    pub fn with<T>(&self, run: impl FnOnce(&dyn Elf) -> T) -> Option<T> {
        match self {
            Image::File(cache) => Some(run(&parse(cache)?)),
            Image::Vdso(bytes) => Some(run(&parse(*bytes)?)),
        }
    }
}

/// Where the vDSO is in this process.
pub fn vdso_address() -> Option<u64> {
    // SAFETY: takes a number.
    let address = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
    (address != 0).then_some(address)
}

/// The file in these bytes.
pub fn parse<'d, R: ReadRef<'d>>(data: R) -> Option<ElfFile64<'d, LittleEndian, R>> {
    let file = ElfFile64::<LittleEndian, R>::parse(data).ok()?;
    (file.elf_header().e_machine.get(LittleEndian) == elf::EM_X86_64).then_some(file)
}

impl<'d, R: ReadRef<'d>> Elf for ElfFile64<'d, LittleEndian, R> {
    fn segments(&self) -> Vec<Segment> {
        let endian = LittleEndian;
        let executed = self
            .elf_program_headers()
            .iter()
            .filter(|header| header.p_type(endian) == elf::PT_LOAD && header.p_flags(endian).0 & elf::PF_X.0 != 0);
        let segment = |header: &elf::ProgramHeader64<LittleEndian>| Segment {
            address: header.p_vaddr(endian),
            offset: header.p_offset(endian),
            bytes: header.p_filesz(endian),
        };
        executed.map(segment).collect()
    }

    fn section(&self, name: &str) -> Option<Section> {
        let section = self.section_by_name(name).filter(|section| section.size() <= MAX_SECTION)?;
        let data = section.uncompressed_data().ok().filter(|data| !data.is_empty())?;
        Some(Section { address: section.address(), data: data.into_owned() })
    }

    fn symbols(&self, dynamic: bool) -> Vec<Symbol> {
        use object::read::elf::Sym;
        let table = if dynamic { self.elf_dynamic_symbol_table() } else { self.elf_symbol_table() };
        let endian = LittleEndian;
        let named = table.iter().filter_map(|symbol| {
            let kind = symbol.st_type();
            let is_code = matches!(kind, elf::STT_FUNC | elf::STT_NOTYPE | elf::STT_OBJECT | elf::STT_GNU_IFUNC);
            let is_here = symbol.st_shndx(endian) != elf::SHN_UNDEF && symbol.st_value(endian) != 0;
            let name = symbol.name(endian, table.strings()).ok()?;
            (is_code && is_here && !name.is_empty()).then(|| Symbol {
                address: symbol.st_value(endian),
                bytes: symbol.st_size(endian),
                is_global: symbol.st_bind() != elf::STB_LOCAL,
                name: name.to_vec(),
            })
        });
        named.collect()
    }

    fn build_id(&self) -> Vec<u8> {
        Object::build_id(self).ok().flatten().unwrap_or_default().to_vec()
    }

    fn dynamic(&self, tag: i64) -> Vec<Vec<u8>> {
        let Some(table) = Elf::section(self, ".dynamic") else { return Vec::new() };
        let Some(strings) = Elf::section(self, ".dynstr") else { return Vec::new() };
        let entries = table.data.as_chunks::<16>().0.iter().filter_map(|entry| {
            let (found, value) = entry.split_first_chunk::<8>()?;
            let at = u64::from_le_bytes(*value.first_chunk()?);
            (i64::from_le_bytes(*found) == tag).then(|| {
                let text = usize::try_from(at).ok().and_then(|at| strings.data.get(at..));
                text.and_then(|text| text.split(|byte| *byte == 0).next()).unwrap_or_default().to_vec()
            })
        });
        entries.collect()
    }

    fn interpreter(&self) -> Option<PathBuf> {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        let section = Elf::section(self, ".interp")?;
        let name = section.data.split(|byte| *byte == 0).next().filter(|name| !name.is_empty())?;
        Some(PathBuf::from(OsStr::from_bytes(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_and_its_vdso_are_read() {
        let image = Image::of(File::open("/proc/self/exe").unwrap());
        image
            .with(|elf| {
                assert!(!elf.segments().is_empty() && elf.section(".eh_frame").is_some());
                assert!(elf.symbols(false).iter().any(|symbol| symbol.name == b"main"));
                assert!(elf.interpreter().is_none_or(|path| path.exists()));
            })
            .unwrap();
        if let Some(vdso) = Image::vdso() {
            let names = vdso.with(|elf| elf.symbols(true)).unwrap();
            assert!(names.iter().any(|symbol| symbol.name == b"__vdso_clock_gettime"), "{names:?}");
        }
    }

    #[test]
    fn what_is_no_program_is_none() {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, b"\x7fELF\x02\x01 and no more").unwrap();
        assert!(Image::of(file).with(|_| ()).is_none());
    }
}
