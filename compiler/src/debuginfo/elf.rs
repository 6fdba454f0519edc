//! One ELF file: its sections (decompressed, relocated where it is a module), symbols and build-id.
//!
//! A module is ET_REL: its sections have no addresses yet, and its debug sections hold relocations. Each allocated
//! section is given a range of made-up linear addresses, so that a number in the debug information says which section it
//! means; [`Address`] turns that back. The vmlinux is ET_EXEC: its values are final, although Debian's still has
//! `.rela.debug_*` sections, which must not be applied again.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionIndex, SymbolKind};

use super::Error;

/// A place in code or data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    /// ET_REL: index of the section that `offset` counts in. None: `offset` is a link-time address.
    pub section: Option<u32>,
    pub offset: u64,
}

/// A function's symbol (.symtab).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    pub name: String,
    pub address: Address,
    pub size: u64,
}

/// A section's range of linear addresses.
struct Range {
    section: u32,
    name: String,
    base: u64,
    size: u64,
}

pub struct Elf {
    path: PathBuf,
    file: ElfFile64<'static, Endianness>,
    relocatable: bool,
    ranges: Vec<Range>,
    build_id: Vec<u8>,
    build_id_address: Option<u64>,
}

/// Largest file, and largest section after decompression, that is read.
const MAX_BYTES: u64 = 4 << 30;

impl Elf {
    /// Opens an ELF64 little-endian file; `.xz`, `.zst` and `.gz` files are decompressed.
    pub fn open(path: &Path) -> Result<Elf, Error> {
        Elf::parse(path, read(path)?)
    }

    /// Takes the bytes of a file; `path` is for messages.
    pub fn parse(path: &Path, bytes: &'static [u8]) -> Result<Elf, Error> {
        let damaged = |error: object::Error| Error::Elf { path: path.to_path_buf(), error: error.to_string() };
        let file: ElfFile64<'static, Endianness> = ElfFile64::parse(bytes).map_err(damaged)?;
        if file.endian() != Endianness::Little {
            let error = "it is big-endian".to_string();
            return Err(Error::Elf { path: path.to_path_buf(), error });
        }
        let relocatable = file.elf_header().e_type(file.endian()) == object::elf::ET_REL;
        let ranges = if relocatable { lay_out(&file) } else { Vec::new() };
        let (build_id, build_id_address) = build_id(&file, bytes);
        Ok(Elf { path: path.to_path_buf(), file, relocatable, ranges, build_id, build_id_address })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the GNU build-id; empty if there is none.
    pub fn build_id(&self) -> &[u8] {
        &self.build_id
    }

    /// Link-time address of the build-id's bytes, in a file that has addresses.
    pub fn build_id_address(&self) -> Option<u64> {
        self.build_id_address
    }

    /// Name of the file that has the debug information instead (`.gnu_debuglink`).
    pub fn debug_link(&self) -> Option<String> {
        let (name, _) = self.file.gnu_debuglink().ok()??;
        Some(String::from_utf8_lossy(name).into_owned())
    }

    pub fn has_debug_info(&self) -> bool {
        self.file.section_by_name(".debug_info").or_else(|| self.file.section_by_name(".zdebug_info")).is_some_and(|section| section.size() > 0)
    }

    /// A section's contents, empty if there is none; relocated in an ET_REL file.
    pub(super) fn section(&self, name: &str) -> Result<&'static [u8], Error> {
        let damaged = |error: object::Error| Error::Elf { path: self.path.clone(), error: format!("section {name}: {error}") };
        let Some(section) = self.file.section_by_name(name) else { return Ok(&[]) };
        let compressed = section.compressed_data().map_err(damaged)?;
        if compressed.uncompressed_size > MAX_BYTES {
            return Err(Error::Elf { path: self.path.clone(), error: format!("section {name} says it has {} bytes", compressed.uncompressed_size) });
        }
        let data = compressed.decompress().map_err(damaged)?;
        if !self.relocatable {
            return Ok(match data {
                std::borrow::Cow::Borrowed(bytes) => bytes,
                std::borrow::Cow::Owned(bytes) => bytes.leak(),
            });
        }
        let mut bytes = data.into_owned();
        for (offset, relocation) in section.relocations() {
            let Some(value) = self.target(relocation.target()) else { continue };
            let value = value.wrapping_add(relocation.addend() as u64);
            let at = offset as usize;
            match relocation.size() {
                64 => put(&mut bytes, at, &value.to_le_bytes()),
                32 => put(&mut bytes, at, &(value as u32).to_le_bytes()),
                _ => {}
            }
        }
        Ok(bytes.leak())
    }

    /// Linear address that a relocation points to, before the addend.
    fn target(&self, target: RelocationTarget) -> Option<u64> {
        match target {
            RelocationTarget::Symbol(index) => {
                let symbol = self.file.symbol_by_index(index).ok()?;
                let base = symbol.section_index().map_or(0, |section| self.base(section));
                Some(base.wrapping_add(symbol.address()))
            }
            RelocationTarget::Section(section) => Some(self.base(section)),
            _ => None,
        }
    }

    /// Linear address of a section's start: 0 for those that are not loaded, whose offsets stand for themselves.
    fn base(&self, section: SectionIndex) -> u64 {
        self.ranges.iter().find(|range| range.section as usize == section.0).map_or(0, |range| range.base)
    }

    /// The place of a linear address as the debug information has it; None if it lies in no section.
    pub fn address(&self, linear: u64) -> Option<Address> {
        if !self.relocatable {
            return Some(Address { section: None, offset: linear });
        }
        let range = self.ranges.iter().find(|range| (range.base..=range.base + range.size).contains(&linear))?;
        Some(Address { section: Some(range.section), offset: linear - range.base })
    }

    /// The other way.
    pub fn linear(&self, address: Address) -> u64 {
        match address.section {
            None => address.offset,
            Some(section) => self.base(SectionIndex(section as usize)).wrapping_add(address.offset),
        }
    }

    /// Name of an address's section; empty in a file that has addresses.
    pub fn section_name(&self, address: Address) -> &str {
        let section = address.section.and_then(|index| self.ranges.iter().find(|range| range.section == index));
        section.map_or("", |range| &range.name)
    }

    /// Link-time address of a symbol.
    pub fn symbol_address(&self, name: &str) -> Option<u64> {
        self.file.symbols().find(|symbol| symbol.name() == Ok(name)).map(|symbol| symbol.address())
    }

    /// All symbols of functions, in the order of the table.
    pub fn functions(&self) -> Vec<Symbol> {
        let text = self.file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition());
        text.filter_map(|symbol| {
            let section = if self.relocatable { Some(symbol.section_index()?.0 as u32) } else { None };
            let address = Address { section, offset: symbol.address() };
            Some(Symbol { name: symbol.name().ok()?.to_string(), address, size: symbol.size() })
        })
        .collect()
    }

    /// Names of all symbols that have a place: what the kernel's kallsyms will know of a module.
    pub fn symbol_names(&self) -> Vec<String> {
        let placed = self.file.symbols().filter(|symbol| symbol.section_index().is_some());
        placed.filter_map(|symbol| Some(symbol.name().ok()?.to_string())).filter(|name| !name.is_empty()).collect()
    }
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(slot) = at.checked_add(value.len()).and_then(|end| bytes.get_mut(at..end)) {
        slot.copy_from_slice(value);
    }
}

/// Gives each allocated section a range, with a gap before it so that no two touch.
fn lay_out(file: &ElfFile64<'static, Endianness>) -> Vec<Range> {
    let mut ranges = Vec::new();
    let mut next: u64 = 0x1_0000;
    for section in file.sections() {
        let object::SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
        if sh_flags & object::elf::SHF_ALLOC == object::elf::SectionFlags(0) {
            continue;
        }
        let name = String::from_utf8_lossy(section.name_bytes().unwrap_or(b"")).into_owned();
        // A damaged file may claim any size; ranges need not hold more than DWARF can point to.
        let size = section.size().min(1 << 32);
        ranges.push(Range { section: section.index().0 as u32, name, base: next, size });
        next = (next + size + 0x1_0000).next_multiple_of(0x1_0000);
    }
    ranges
}

/// The build-id and, where sections have addresses, that of its bytes.
fn build_id(file: &ElfFile64<'static, Endianness>, bytes: &'static [u8]) -> (Vec<u8>, Option<u64>) {
    let id = file.build_id().ok().flatten().map(<[u8]>::to_vec).unwrap_or_default();
    if id.is_empty() {
        return (id, None);
    }
    let endian = file.endian();
    let in_section = file.sections().find_map(|section| {
        let data = section.data().ok()?;
        let name = section.name().ok()?;
        if section.address() == 0 || !name.contains("note") {
            return None;
        }
        let at = data.windows(id.len()).position(|window| window == id)?;
        Some(section.address() + at as u64)
    });
    let in_segment = || {
        file.elf_program_headers().iter().find_map(|segment| {
            if segment.p_type(endian) != object::elf::PT_NOTE {
                return None;
            }
            let data = segment.data(endian, bytes).ok()?;
            let at = data.windows(id.len()).position(|window| window == id)?;
            Some(segment.p_vaddr(endian) + at as u64)
        })
    };
    let address = in_section.or_else(in_segment);
    (id, address)
}

/// The bytes of a file, mapped or decompressed, for the rest of the process.
fn read(path: &Path) -> Result<&'static [u8], Error> {
    let failed = |error: String| Error::File { path: path.to_path_buf(), error };
    let file = File::open(path).map_err(|error| failed(error.to_string()))?;
    let length = file.metadata().map_err(|error| failed(error.to_string()))?.len();
    if length > MAX_BYTES {
        return Err(failed(format!("{length} bytes are too many")));
    }
    let mut bytes = Vec::new();
    let limit = MAX_BYTES;
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("gz") => flate2::read::GzDecoder::new(file).take(limit).read_to_end(&mut bytes).map_err(|error| failed(error.to_string()))?,
        Some("zst") => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(file).map_err(|error| failed(error.to_string()))?;
            decoder.take(limit).read_to_end(&mut bytes).map_err(|error| failed(error.to_string()))?
        }
        Some("xz") => {
            lzma_rs::xz_decompress(&mut std::io::BufReader::new(file), &mut bytes).map_err(|error| failed(format!("{error:?}")))?;
            bytes.len()
        }
        _ => {
            if length == 0 {
                return Ok(&[]);
            }
            // SAFETY: kernel images and modules are replaced by renaming, not rewritten in place; a file truncated
            // under us would end the process with SIGBUS, which harms nothing else.
            let map = unsafe { memmap2::Mmap::map(&file) }.map_err(|error| failed(error.to_string()))?;
            return Ok(&**Box::leak(Box::new(map)));
        }
    };
    Ok(bytes.leak())
}
