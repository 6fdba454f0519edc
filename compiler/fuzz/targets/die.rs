// SPDX-License-Identifier: GPL-2.0-or-later

//! DWARF 4 made entry by entry, with whatever references and expressions are wanted: good ones, circles, and nonsense.

use super::elf::{self, Section};

/// The value of an attribute.
#[derive(Clone, Debug)]
pub enum Value {
    Number(u64),
    Text(&'static str),
    /// One in `.debug_str`, by its place there.
    Place(u32),
    /// A list in `.debug_loc` or `.debug_ranges`, by its place there.
    List(u32),
    /// The entry of that number; one that there is not leads anywhere.
    Entry(usize),
    Expression(Vec<u8>),
    Flag,
    Address(u64),
}

/// An entry: its tag, its attributes, and the numbers of those in it.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    pub tag: u16,
    pub attributes: Vec<(u16, Value)>,
    pub children: Vec<usize>,
}

/// Entries by number; the first is the unit.
#[derive(Clone, Debug)]
pub struct Tree(pub Vec<Entry>);

pub mod tag {
    pub const ARRAY: u16 = 0x01;
    pub const ENUMERATION: u16 = 0x04;
    pub const PARAMETER: u16 = 0x05;
    pub const BLOCK: u16 = 0x0b;
    pub const MEMBER: u16 = 0x0d;
    pub const POINTER: u16 = 0x0f;
    pub const UNIT: u16 = 0x11;
    pub const STRUCT: u16 = 0x13;
    pub const FUNCTION_TYPE: u16 = 0x15;
    pub const TYPEDEF: u16 = 0x16;
    pub const UNION: u16 = 0x17;
    pub const INLINED: u16 = 0x1d;
    pub const SUBRANGE: u16 = 0x21;
    pub const BASE: u16 = 0x24;
    pub const CONST: u16 = 0x26;
    pub const ENUMERATOR: u16 = 0x28;
    pub const FUNCTION: u16 = 0x2e;
    pub const VARIABLE: u16 = 0x34;
    pub const VOLATILE: u16 = 0x35;
    pub const RESTRICT: u16 = 0x37;
    pub const CALL_SITE: u16 = 0x4109;
}

pub mod at {
    pub const LOCATION: u16 = 0x02;
    pub const NAME: u16 = 0x03;
    pub const BYTE_SIZE: u16 = 0x0b;
    pub const BIT_OFFSET: u16 = 0x0c;
    pub const BIT_SIZE: u16 = 0x0d;
    pub const LOW_PC: u16 = 0x11;
    pub const HIGH_PC: u16 = 0x12;
    pub const CONST_VALUE: u16 = 0x1c;
    pub const UPPER_BOUND: u16 = 0x2f;
    pub const ABSTRACT_ORIGIN: u16 = 0x31;
    pub const MEMBER_PLACE: u16 = 0x38;
    pub const DECLARATION: u16 = 0x3c;
    pub const ENCODING: u16 = 0x3e;
    pub const EXTERNAL: u16 = 0x3f;
    pub const FRAME_BASE: u16 = 0x40;
    pub const SPECIFICATION: u16 = 0x47;
    pub const TYPE: u16 = 0x49;
}

fn leb(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

impl Tree {
    /// A unit and nothing else.
    pub fn new() -> Tree {
        Tree(vec![Entry { tag: tag::UNIT, attributes: vec![(at::NAME, Value::Text("x.c"))], children: Vec::new() }])
    }

    /// Adds an entry under another one, and gives its number.
    pub fn add(&mut self, parent: usize, tag: u16, attributes: Vec<(u16, Value)>) -> usize {
        let number = self.0.len();
        self.0.push(Entry { tag, attributes, children: Vec::new() });
        if let Some(parent) = self.0.get_mut(parent) {
            parent.children.push(number);
        }
        number
    }

    /// `f`, over all of the code, with a parameter `x` of that type, at the address that the expression gives.
    pub fn add_function(&mut self, of: usize, expression: Vec<u8>) -> usize {
        let code = vec![
            (at::NAME, Value::Text("f")),
            (at::EXTERNAL, Value::Flag),
            (at::LOW_PC, Value::Address(elf::CODE.0)),
            (at::HIGH_PC, Value::Number(0x100)),
        ];
        let function = self.add(0, tag::FUNCTION, code);
        self.add(
            function,
            tag::PARAMETER,
            vec![
                (at::NAME, Value::Text("x")),
                (at::TYPE, Value::Entry(of)),
                (at::LOCATION, Value::Expression(expression)),
            ],
        );
        function
    }

    /// Where the parameter of [`Tree::add_function`] will be in `.debug_info`.
    pub fn place_of_next_parameter(&self, of: usize) -> u32 {
        let mut copy = self.clone();
        copy.add_function(of, Vec::new());
        let (_, _, places) = copy.sections();
        places.last().copied().flatten().unwrap_or(0)
    }

    /// An object file with it.
    pub fn object(&self) -> Vec<u8> {
        self.object_with(Vec::new())
    }

    /// The same with more sections.
    pub fn object_with(&self, more: Vec<Section>) -> Vec<u8> {
        let (info, abbreviations, _) = self.sections();
        let mut sections = vec![Section::plain(".debug_info", info), Section::plain(".debug_abbrev", abbreviations)];
        sections.extend(more);
        elf::executable(sections)
    }

    /// `.debug_info` and `.debug_abbrev`, and where in the first each entry is.
    fn sections(&self) -> (Vec<u8>, Vec<u8>, Vec<Option<u32>>) {
        let mut writer = Writer {
            tree: self,
            info: Vec::new(),
            abbreviations: Vec::new(),
            places: vec![None; self.0.len()],
            references: Vec::new(),
        };
        // unit_length, version, debug_abbrev_offset, address_size (DWARF 4, 7.5.1.1).
        writer.info.extend([0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8]);
        writer.entry(0, 0);
        let length = writer.info.len() as u32 - 4;
        writer.info[..4].copy_from_slice(&length.to_le_bytes());
        for (place, entry) in std::mem::take(&mut writer.references) {
            let to = writer.places.get(entry).copied().flatten().unwrap_or(entry as u32);
            writer.info[place..place + 4].copy_from_slice(&to.to_le_bytes());
        }
        writer.abbreviations.push(0);
        (writer.info, writer.abbreviations, writer.places)
    }
}

struct Writer<'t> {
    tree: &'t Tree,
    info: Vec<u8>,
    abbreviations: Vec<u8>,
    places: Vec<Option<u32>>,
    references: Vec<(usize, usize)>,
}

impl Writer<'_> {
    fn entry(&mut self, number: usize, depth: usize) {
        let Some(entry) = self.tree.0.get(number).filter(|_| depth < 100) else { return };
        self.places[number] = Some(self.info.len() as u32);
        leb(number as u64 + 1, &mut self.info);
        leb(number as u64 + 1, &mut self.abbreviations);
        leb(u64::from(entry.tag), &mut self.abbreviations);
        self.abbreviations.push(u8::from(!entry.children.is_empty()));
        for (name, value) in &entry.attributes {
            // DW_FORM_udata, string, strp, ref4, exprloc, flag_present, addr.
            let form = match value {
                Value::Number(number) => {
                    leb(*number, &mut self.info);
                    0x0f
                }
                Value::Text(text) => {
                    self.info.extend(text.bytes().chain([0]));
                    0x08
                }
                Value::Place(place) => {
                    self.info.extend(place.to_le_bytes());
                    0x0e
                }
                Value::List(place) => {
                    self.info.extend(place.to_le_bytes());
                    0x17
                }
                Value::Entry(entry) => {
                    self.references.push((self.info.len(), *entry));
                    self.info.extend([0; 4]);
                    0x13
                }
                Value::Expression(bytes) => {
                    leb(bytes.len() as u64, &mut self.info);
                    self.info.extend(bytes);
                    0x18
                }
                Value::Flag => 0x19,
                Value::Address(address) => {
                    self.info.extend(address.to_le_bytes());
                    0x01
                }
            };
            leb(u64::from(*name), &mut self.abbreviations);
            self.abbreviations.push(form);
        }
        self.abbreviations.extend([0, 0]);
        if !entry.children.is_empty() {
            entry.children.iter().for_each(|child| self.entry(*child, depth + 1));
            self.info.push(0);
        }
    }
}
