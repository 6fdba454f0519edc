// SPDX-License-Identifier: GPL-2.0-or-later

//! A small ELF file of given sections (gABI 4.1, chapter 4).

/// Name, type (SHT_*), flags (SHF_*), address, contents.
pub struct Section {
    pub name: &'static str,
    pub kind: u32,
    pub flags: u64,
    pub address: u64,
    pub contents: Vec<u8>,
    pub link: u32,
}

impl Section {
    pub fn plain(name: &'static str, contents: Vec<u8>) -> Section {
        Section { name, kind: 1, flags: 0, address: 0, contents, link: 0 }
    }
}

/// Where the code of [`executable`] is, and its length.
pub const CODE: (u64, u64) = (0xffff_ffff_8100_0000, 0x1000);

/// An executable for x86-64 with a section of code, a function `f` at its start, `register_kprobe` (by which a
/// kernel is known) behind it, and these sections.
pub fn executable(more: Vec<Section>) -> Vec<u8> {
    let mut symbols = vec![0u8; 24];
    for (name, offset) in [(1u32, 0), (3, 0x100u64)] {
        // st_name, st_info (a global function), st_other, st_shndx, st_value, st_size.
        symbols.extend(name.to_le_bytes());
        symbols.extend([0x12, 0, 1, 0]);
        symbols.extend((CODE.0 + offset).to_le_bytes());
        symbols.extend(0x100u64.to_le_bytes());
    }
    executable_with(symbols, b"\0f\0register_kprobe\0".to_vec(), more)
}

/// The same with other symbols, and the strings with their names.
pub fn executable_with(symbols: Vec<u8>, strings: Vec<u8>, more: Vec<Section>) -> Vec<u8> {
    let mut sections = vec![
        Section { name: "", kind: 0, flags: 0, address: 0, contents: Vec::new(), link: 0 },
        Section { name: ".text", kind: 1, flags: 6, address: CODE.0, contents: vec![0x90; CODE.1 as usize], link: 0 },
        Section { name: ".strtab", kind: 3, flags: 0, address: 0, contents: strings, link: 0 },
        Section { name: ".symtab", kind: 2, flags: 0, address: 0, contents: symbols, link: 2 },
    ];
    sections.extend(more);
    sections.push(Section { name: ".shstrtab", kind: 3, flags: 0, address: 0, contents: Vec::new(), link: 0 });
    let mut names = Vec::new();
    let places: Vec<u32> = sections
        .iter()
        .map(|section| {
            let at = names.len() as u32;
            names.extend(section.name.bytes().chain([0]));
            at
        })
        .collect();
    if let Some(last) = sections.last_mut() {
        last.contents = names;
    }
    let (mut body, mut headers) = (vec![0u8; 64], Vec::new());
    for (section, name) in sections.iter().zip(places) {
        body.resize(body.len().next_multiple_of(8), 0);
        let entry: u64 = if section.kind == 2 { 24 } else { 0 };
        headers.extend(name.to_le_bytes());
        headers.extend(section.kind.to_le_bytes());
        for word in [section.flags, section.address, body.len() as u64, section.contents.len() as u64] {
            headers.extend(word.to_le_bytes());
        }
        headers.extend(section.link.to_le_bytes());
        headers.extend(u32::from(section.kind == 2).to_le_bytes());
        headers.extend(8u64.to_le_bytes());
        headers.extend(entry.to_le_bytes());
        body.extend(&section.contents);
    }
    body.resize(body.len().next_multiple_of(8), 0);
    let table = body.len() as u64;
    body.extend(headers);
    // e_ident, e_type (executable), e_machine (x86-64), e_version; sizes of the headers.
    body[..20].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0");
    body[20] = 1;
    body[40..48].copy_from_slice(&table.to_le_bytes());
    body[52] = 64;
    body[58] = 64;
    body[60..62].copy_from_slice(&(sections.len() as u16).to_le_bytes());
    body[62..64].copy_from_slice(&(sections.len() as u16 - 1).to_le_bytes());
    body
}
