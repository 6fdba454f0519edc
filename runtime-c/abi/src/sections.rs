// SPDX-License-Identifier: GPL-2.0-or-later

//! Section headers for programs and libraries that have none (`strip --strip-section-headers`, packers). The kernel and the dynamic
//! linker need only the segments (elf(5), Elf64_Phdr) and the dynamic section (System V ABI, chapter 5): from these
//! comes a table as a linker would have written it, for readers that look for sections.
//!
//! Files of any user are read: every number is checked, and what is read is limited.

/// Segments that are looked at, and entries of the dynamic section.
const MOST_SEGMENTS: usize = 64;
const MOST_ENTRIES: usize = 4096;
/// Symbols; a table of them has some 25 MB then.
const MOST_SYMBOLS: usize = 1 << 20;
/// Bytes that are read at once.
const PIECE: usize = 4096;

/// What is to be read instead of the file's first bytes, and behind its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// The file's header, with the place of the section headers.
    pub header: Vec<u8>,
    /// Length of the file.
    pub length: u64,
    /// What follows it: section headers, their names, and the dynamic symbols with the numbers of these sections.
    pub tail: Vec<u8>,
}

impl Added {
    /// Bytes of the file with what is added.
    pub fn whole(&self) -> u64 {
        self.length.saturating_add(self.tail.len() as u64)
    }

    /// The bytes there, if they are added ones.
    pub fn at(&self, offset: u64, bytes: u64) -> Option<&[u8]> {
        let (from, within) = match offset.checked_sub(self.length) {
            Some(inside) => (inside, &self.tail),
            None => (offset, &self.header),
        };
        let from = usize::try_from(from).ok()?;
        within.get(from..from.checked_add(usize::try_from(bytes).ok()?)?)
    }
}

/// Constants of elf(5).
mod elf {
    pub const EXEC: u64 = 2;
    pub const DYN: u64 = 3;

    pub const LOAD: u64 = 1;
    pub const DYNAMIC: u64 = 2;
    pub const INTERP: u64 = 3;
    pub const NOTE: u64 = 4;
    pub const TLS: u64 = 7;
    pub const EH_FRAME: u64 = 0x6474_e550;

    pub const PROGBITS: u32 = 1;
    pub const STRTAB: u32 = 3;
    pub const RELA: u32 = 4;
    pub const SECTION_DYNAMIC: u32 = 6;
    pub const SECTION_NOTE: u32 = 7;
    pub const NOBITS: u32 = 8;
    pub const REL: u32 = 9;
    pub const DYNSYM: u32 = 11;
    pub const VERDEF: u32 = 0x6fff_fffd;
    pub const VERNEED: u32 = 0x6fff_fffe;
    pub const VERSYM: u32 = 0x6fff_ffff;

    pub const WRITE: u64 = 1;
    pub const ALLOC: u64 = 2;
    pub const EXECINSTR: u64 = 4;

    /// First of the numbers that are of no section.
    pub const RESERVED: u16 = 0xff00;
}

/// Tags of the dynamic section.
mod tag {
    pub const NULL: u64 = 0;
    pub const PLTRELSZ: u64 = 2;
    pub const HASH: u64 = 4;
    pub const STRTAB: u64 = 5;
    pub const SYMTAB: u64 = 6;
    pub const RELA: u64 = 7;
    pub const RELASZ: u64 = 8;
    pub const STRSZ: u64 = 10;
    pub const REL: u64 = 17;
    pub const RELSZ: u64 = 18;
    pub const JMPREL: u64 = 23;
    pub const GNU_HASH: u64 = 0x6fff_fef5;
    pub const VERSYM: u64 = 0x6fff_fff0;
    pub const VERDEF: u64 = 0x6fff_fffc;
    pub const VERDEFNUM: u64 = 0x6fff_fffd;
    pub const VERNEED: u64 = 0x6fff_fffe;
    pub const VERNEEDNUM: u64 = 0x6fff_ffff;
}

/// Sizes of 64-bit files and of 32-bit ones.
#[derive(Clone, Copy)]
struct Class {
    wide: bool,
}

impl Class {
    fn word(self) -> usize {
        if self.wide { 8 } else { 4 }
    }
    fn header(self) -> usize {
        if self.wide { 64 } else { 52 }
    }
    fn segment(self) -> usize {
        if self.wide { 56 } else { 32 }
    }
    fn section(self) -> usize {
        if self.wide { 64 } else { 40 }
    }
    fn symbol(self) -> usize {
        if self.wide { 24 } else { 16 }
    }
    /// Of a symbol the places of its value and of the number of its section.
    fn value_and_section(self) -> (usize, usize) {
        if self.wide { (8, 6) } else { (4, 14) }
    }
    /// Bytes of a relocation, with an addend or without.
    fn relocation(self, addend: bool) -> u64 {
        let words = if addend { 3 } else { 2 };
        (words * self.word()) as u64
    }
}

/// A number of so many bytes; 0 where there are none.
fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    let found = at.checked_add(length).and_then(|end| bytes.get(at..end)).unwrap_or_default();
    found.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

struct Segment {
    kind: u64,
    flags: u64,
    offset: u64,
    address: u64,
    in_file: u64,
    in_memory: u64,
    align: u64,
}

#[derive(Default)]
struct Section {
    name: &'static str,
    kind: u32,
    flags: u64,
    address: u64,
    offset: u64,
    size: u64,
    link: u32,
    info: u32,
    entry: u64,
    /// 0: 1.
    align: u64,
}

/// What a file of `length` bytes lacks; `read`: so many bytes from a place on. None: it has section headers, or is no program or
/// library for x86.
pub fn added(length: u64, read: &mut dyn FnMut(u64, usize) -> Option<Vec<u8>>) -> Option<Added> {
    let header = read(0, 64).or_else(|| read(0, 52))?;
    let class = match header.get(..6)? {
        b"\x7fELF\x02\x01" => Class { wide: true },
        b"\x7fELF\x01\x01" => Class { wide: false },
        _ => return None,
    };
    let header = header.get(..class.header())?.to_vec();
    let word = class.word();
    // e_type; e_shoff, behind e_entry and e_phoff; e_phentsize and e_phnum, behind e_shoff, e_flags and e_ehsize.
    let (segments_at, sections_at) = (number(&header, 24 + word, word), number(&header, 24 + 2 * word, word));
    let half = |index: usize| number(&header, 24 + 3 * word + 4 + 2 * index, 2);
    let is_linked = matches!(number(&header, 16, 2), elf::EXEC | elf::DYN);
    if sections_at != 0 || !is_linked || half(1) != class.segment() as u64 || half(2) == 0 {
        return None;
    }
    let count = usize::try_from(half(2)).ok()?.min(MOST_SEGMENTS);
    let table = read(segments_at, count * class.segment())?;
    let segments: Vec<Segment> = table.chunks_exact(class.segment()).map(|row| segment(row, class)).collect();
    let mut maker = Maker { class, length, segments, read, sections: vec![Section::default()], copied: Vec::new() };
    maker.of_segments();
    maker.of_dynamic();
    maker.finish(header)
}

fn segment(row: &[u8], class: Class) -> Segment {
    let word = |index: usize| number(row, index * class.word(), class.word());
    let flags = if class.wide { number(row, 4, 4) } else { word(6) };
    let (kind, offset, address) = (number(row, 0, 4), word(1), word(2));
    let (in_file, in_memory) = (word(4), word(5));
    Segment { kind, flags, offset, address, in_file, in_memory, align: word(if class.wide { 6 } else { 7 }) }
}

struct Maker<'r> {
    class: Class,
    length: u64,
    segments: Vec<Segment>,
    read: &'r mut dyn FnMut(u64, usize) -> Option<Vec<u8>>,
    sections: Vec<Section>,
    /// The symbols, which follow the file.
    copied: Vec<u8>,
}

impl Maker<'_> {
    /// Where in the file an address is, and how many bytes of its segment follow there.
    fn place(&self, address: u64) -> Option<(u64, u64)> {
        self.segments.iter().filter(|segment| segment.kind == elf::LOAD).find_map(|segment| {
            let inside = address.checked_sub(segment.address)?;
            let left = segment.in_file.checked_sub(inside).filter(|left| *left > 0)?;
            Some((segment.offset.checked_add(inside)?, left))
        })
    }

    fn push(&mut self, section: Section) -> u32 {
        self.sections.push(section);
        (self.sections.len() - 1) as u32
    }

    /// What is at an address, at most `size` bytes; not loaded, as the segment around it is.
    fn at(&mut self, name: &'static str, kind: u32, address: u64, size: u64) -> Option<u32> {
        let (offset, left) = self.place(address)?;
        Some(self.push(Section { name, kind, address, offset, size: size.min(left), ..Section::default() }))
    }

    fn of_segments(&mut self) {
        let mut made = Vec::new();
        for segment in &self.segments {
            let Segment { kind, flags, offset, address, in_file, in_memory, align } = *segment;
            let whole = Section { address, offset, size: in_file, ..Section::default() };
            match kind {
                elf::LOAD => {
                    let (name, access) = match flags {
                        flags if flags & 1 != 0 => (".text", elf::EXECINSTR),
                        flags if flags & 2 != 0 => (".data", elf::WRITE),
                        _ => (".rodata", 0),
                    };
                    if in_file > 0 {
                        made.push(Section { name, kind: elf::PROGBITS, flags: elf::ALLOC | access, ..whole });
                    }
                    if let (Some(size @ 1..), Some(address)) =
                        (in_memory.checked_sub(in_file), address.checked_add(in_file))
                    {
                        let flags = elf::ALLOC | elf::WRITE;
                        made.push(Section {
                            name: ".bss",
                            kind: elf::NOBITS,
                            flags,
                            address,
                            size,
                            ..Section::default()
                        });
                    }
                }
                elf::NOTE => made.push(Section { name: ".note", kind: elf::SECTION_NOTE, ..whole }),
                // What is in the file is in another segment, too.
                elf::TLS => {
                    let (kind, size) = (elf::NOBITS, in_memory);
                    made.push(Section { name: ".tbss", kind, size, align, ..whole });
                }
                elf::INTERP => made.push(Section { name: ".interp", kind: elf::PROGBITS, ..whole }),
                elf::EH_FRAME => made.push(Section { name: ".eh_frame_hdr", kind: elf::PROGBITS, ..whole }),
                _ => {}
            }
        }
        self.sections.append(&mut made);
        self.frames();
    }

    /// `.eh_frame`, where its header says (LSB, .eh_frame_hdr), up to the end of its segment: it ends with a zero.
    fn frames(&mut self) {
        const RELATIVE_TO_ITSELF: u8 = 0x1b;
        let Some(header) = self.segments.iter().find(|segment| segment.kind == elf::EH_FRAME) else { return };
        let address = header.address;
        let Some(start) = (self.read)(header.offset, 8) else { return };
        if let [1, RELATIVE_TO_ITSELF, _, _, distance @ ..] = start.as_slice()
            && let Ok(distance) = distance.try_into().map(i32::from_le_bytes)
        {
            let at = address.wrapping_add(4).wrapping_add_signed(distance.into());
            self.at(".eh_frame", elf::PROGBITS, at, u64::MAX);
        }
    }

    fn of_dynamic(&mut self) -> Option<()> {
        let dynamic = self.segments.iter().find(|segment| segment.kind == elf::DYNAMIC)?;
        let (address, offset, size, word) = (dynamic.address, dynamic.offset, dynamic.in_file, self.class.word());
        let most = usize::try_from(size).ok()?.min(MOST_ENTRIES * 2 * word);
        let table = (self.read)(offset, most)?;
        let entries = table.chunks_exact(2 * word).map(|entry| (number(entry, 0, word), number(entry, word, word)));
        let entries: Vec<(u64, u64)> = entries.take_while(|(tag, _)| *tag != tag::NULL).collect();
        let value = |wanted: u64| entries.iter().rev().find(|(tag, _)| *tag == wanted).map(|(_, value)| *value);
        let strings = match (value(tag::STRTAB), value(tag::STRSZ)) {
            (Some(at), Some(size)) => self.at(".dynstr", elf::STRTAB, at, size).unwrap_or(0),
            _ => 0,
        };
        let entry = 2 * word as u64;
        let kind = elf::SECTION_DYNAMIC;
        self.push(Section {
            name: ".dynamic",
            kind,
            address,
            offset,
            size,
            link: strings,
            entry,
            ..Section::default()
        });
        let symbols_at = value(tag::SYMTAB)?;
        let count = match (value(tag::HASH), value(tag::GNU_HASH)) {
            (Some(hash), _) => self.count_of_hash(hash),
            (None, Some(hash)) => self.count_of_gnu_hash(hash),
            // Linkers write the names behind the symbols.
            (None, None) => {
                let names = value(tag::STRTAB).and_then(|names| names.checked_sub(symbols_at));
                names.and_then(|bytes| usize::try_from(bytes / self.class.symbol() as u64).ok())
            }
        }?;
        let count = count.min(MOST_SYMBOLS);
        let symbols = self.symbols(symbols_at, count, strings)?;
        // Those of the stubs have addends or none as all others of the machine.
        let wide = self.class.wide;
        for (name, at, size, addend) in [
            (".rela.dyn", tag::RELA, tag::RELASZ, true),
            (".rel.dyn", tag::REL, tag::RELSZ, false),
            (if wide { ".rela.plt" } else { ".rel.plt" }, tag::JMPREL, tag::PLTRELSZ, wide),
        ] {
            let (Some(at), Some(size)) = (value(at), value(size)) else { continue };
            let number = self.at(name, if addend { elf::RELA } else { elf::REL }, at, size);
            let entry = self.class.relocation(addend);
            if let Some(section) = number.and_then(|number| self.sections.get_mut(number as usize)) {
                (section.link, section.entry) = (symbols, entry);
            }
        }
        let mut versions = |name, kind, at: Option<u64>, size: u64, link: u32, info: Option<u64>| {
            let number = self.at(name, kind, at?, size)?;
            let section = self.sections.get_mut(number as usize)?;
            (section.link, section.info) = (link, info.and_then(|info| u32::try_from(info).ok()).unwrap_or(0));
            Some(())
        };
        versions(".gnu.version", elf::VERSYM, value(tag::VERSYM), 2 * count as u64, symbols, None);
        versions(".gnu.version_d", elf::VERDEF, value(tag::VERDEF), u64::MAX, strings, value(tag::VERDEFNUM));
        versions(".gnu.version_r", elf::VERNEED, value(tag::VERNEED), u64::MAX, strings, value(tag::VERNEEDNUM));
        Some(())
    }

    /// A 32-bit number at an address.
    fn word_at(&mut self, address: u64) -> Option<u32> {
        let (at, left) = self.place(address)?;
        let bytes = (left >= 4).then(|| (self.read)(at, 4)).flatten()?;
        bytes.try_into().ok().map(u32::from_le_bytes)
    }

    /// DT_HASH has a chain for each symbol.
    fn count_of_hash(&mut self, hash: u64) -> Option<usize> {
        usize::try_from(self.word_at(hash.checked_add(4)?)?).ok()
    }

    /// DT_GNU_HASH has chains for the symbols that are defined, which come last: the last of the last chain is the last one.
    fn count_of_gnu_hash(&mut self, hash: u64) -> Option<usize> {
        let (buckets, first) = (self.word_at(hash)?, self.word_at(hash.checked_add(4)?)?);
        let bloom = u64::from(self.word_at(hash.checked_add(8)?)?).checked_mul(self.class.word() as u64)?;
        let buckets_at = hash.checked_add(16)?.checked_add(bloom)?;
        let length = u64::from(buckets).checked_mul(4)?;
        let mut last = 0;
        let mut done = 0;
        while done < length && done < 4 * MOST_SYMBOLS as u64 {
            let (at, left) = self.place(buckets_at.checked_add(done)?)?;
            let piece = usize::try_from((length - done).min(left)).ok()?.min(PIECE) & !3;
            let words = (self.read)(at, piece).filter(|words| !words.is_empty())?;
            last = words.chunks_exact(4).map(|word| number(word, 0, 4)).max().unwrap_or(0).max(last);
            done += piece as u64;
        }
        if last < u64::from(first) {
            return usize::try_from(first).ok();
        }
        let chains = buckets_at.checked_add(length)?;
        while last < MOST_SYMBOLS as u64 {
            let at = chains.checked_add((last - u64::from(first)).checked_mul(4)?)?;
            let (at, left) = self.place(at)?;
            let words =
                (self.read)(at, usize::try_from(left).ok()?.min(PIECE) & !3).filter(|words| !words.is_empty())?;
            let inside = words.chunks_exact(4).position(|word| number(word, 0, 4) & 1 == 1);
            match inside {
                Some(inside) => return usize::try_from(last).ok()?.checked_add(inside + 1),
                None => last += words.len() as u64 / 4,
            }
        }
        Some(MOST_SYMBOLS)
    }

    /// The symbols as in the file, but with the numbers of the sections that are made here.
    fn symbols(&mut self, address: u64, count: usize, strings: u32) -> Option<u32> {
        let (at, left) = self.place(address)?;
        let size = usize::try_from(left).ok()?.min(count * self.class.symbol());
        let mut symbols = (self.read)(at, size)?;
        let (value, section) = self.class.value_and_section();
        for symbol in symbols.chunks_exact_mut(self.class.symbol()) {
            let own = number(symbol, section, 2) as u16;
            if own == 0 || own >= elf::RESERVED {
                continue;
            }
            let at = number(symbol, value, self.class.word());
            let has = |section: &Section| {
                section.flags & elf::ALLOC != 0
                    && at.checked_sub(section.address).is_some_and(|inside| inside < section.size)
            };
            // Variables of threads are at no address.
            let around = self.sections.iter().position(has).unwrap_or(1) as u16;
            if let Some(place) = symbol.get_mut(section..section + 2) {
                place.copy_from_slice(&around.to_le_bytes());
            }
        }
        self.copied = vec![0; (self.length.next_multiple_of(8) - self.length) as usize];
        let offset = self.length.checked_add(self.copied.len() as u64)?;
        let entry = self.class.symbol() as u64;
        let (kind, size) = (elf::DYNSYM, symbols.len() as u64);
        self.copied.append(&mut symbols);
        let section = Section {
            name: ".dynsym",
            kind,
            address,
            offset,
            size,
            link: strings,
            info: 1,
            entry,
            ..Section::default()
        };
        Some(self.push(section))
    }

    /// The names, the headers and the file's header.
    fn finish(mut self, mut header: Vec<u8>) -> Option<Added> {
        let mut tail = std::mem::take(&mut self.copied);
        let offset = self.length.checked_add(tail.len() as u64)?;
        self.push(Section { name: ".shstrtab", kind: elf::STRTAB, offset, ..Section::default() });
        let mut names = vec![0];
        let mut starts = Vec::new();
        for section in &self.sections {
            starts.push(if section.name.is_empty() { 0 } else { names.len() as u32 });
            names.extend(section.name.bytes().chain((!section.name.is_empty()).then_some(0)));
        }
        if let Some(last) = self.sections.last_mut() {
            last.size = names.len() as u64;
        }
        tail.append(&mut names);
        let end = self.length.checked_add(tail.len() as u64)?;
        let at = end.checked_next_multiple_of(8)?;
        tail.resize(tail.len() + (at - end) as usize, 0);
        let word = self.class.word();
        let narrow = |number: u64| number.to_le_bytes().into_iter().take(word);
        for (section, name) in self.sections.iter().zip(starts) {
            tail.extend(name.to_le_bytes());
            tail.extend(section.kind.to_le_bytes());
            for number in [section.flags, section.address, section.offset, section.size] {
                tail.extend(narrow(number));
            }
            tail.extend(section.link.to_le_bytes());
            tail.extend(section.info.to_le_bytes());
            tail.extend(narrow(section.align.max(1)));
            tail.extend(narrow(section.entry));
        }
        let place = header.get_mut(24 + 2 * word..24 + 3 * word)?;
        place.copy_from_slice(&narrow(at).collect::<Vec<u8>>());
        // e_shentsize, e_shnum and e_shstrndx end the header.
        let count = self.sections.len() as u16;
        let last = header.len().checked_sub(6)?;
        let halves = [self.class.section() as u16, count, count - 1];
        header.get_mut(last..)?.copy_from_slice(&halves.map(u16::to_le_bytes).concat());
        Some(Added { header, length: self.length, tail })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test's own program, without the place of its section headers.
    fn program() -> Vec<u8> {
        let mut bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        bytes[40..48].fill(0);
        bytes[60..64].fill(0);
        bytes
    }

    fn of(bytes: &[u8]) -> Option<Added> {
        added(bytes.len() as u64, &mut |at, length| {
            let at = usize::try_from(at).ok()?;
            bytes.get(at..at.checked_add(length)?).map(<[u8]>::to_vec)
        })
    }

    #[test]
    fn sections_from_segments() {
        assert_eq!(of(&std::fs::read(std::env::current_exe().unwrap()).unwrap()), None);
        let bytes = program();
        let added = of(&bytes).unwrap();
        assert_eq!((added.length, added.whole()), (bytes.len() as u64, (bytes.len() + added.tail.len()) as u64));
        let headers = number(&added.header, 40, 8) - added.length;
        let names_of =
            |name: &str| added.tail.windows(name.len() + 2).any(|text| text == format!("\0{name}\0").as_bytes());
        for name in [".text", ".dynsym", ".dynstr", ".dynamic", ".interp", ".rela.dyn", ".gnu.version_r", ".eh_frame"] {
            assert!(names_of(name), "{name}");
        }
        let count = number(&added.header, 60, 2);
        assert_eq!(headers + count * 64, added.tail.len() as u64);
        assert_eq!(added.at(0, 64), Some(added.header.as_slice()));
        assert_eq!((added.at(0, 65), added.at(64, 1), added.at(added.whole(), 1)), (None, None, None));
        assert_eq!(added.at(added.length, 3), added.tail.get(..3));
    }

    #[test]
    fn damaged_programs_are_none_or_have_less() {
        let bytes = program();
        let dynamic = (0..number(&bytes, 56, 2)).map(|index| 64 + 56 * index as usize);
        let dynamic = dynamic.clone().find(|at| number(&bytes, *at, 4) == elf::DYNAMIC).unwrap();
        let table = number(&bytes, dynamic + 8, 8) as usize;
        let head: Vec<usize> = (16..64 + 56 * 12).collect();
        let entries: Vec<usize> = (table..table + 16 * 30).collect();
        let mut damaged = bytes.clone();
        for at in head.into_iter().chain(entries) {
            let own = damaged[at];
            for value in [0, 1, 0x7f, 0xff] {
                damaged[at] = value;
                if let Some(added) = of(&damaged) {
                    assert!(added.tail.len() < 64 << 20);
                }
            }
            damaged[at] = own;
        }
        for length in [0, 16, 52, 64, 200, table] {
            let _ = of(&bytes[..length]);
        }
    }
}
