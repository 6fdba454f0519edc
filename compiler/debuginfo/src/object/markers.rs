// SPDX-License-Identifier: GPL-2.0-or-later

//! Markers of programs: notes that `<sys/sdt.h>` leaves in `.note.stapsdt`, and their arguments as the assembler spells them.
//!
//! A note has three addresses (of the marker's instruction, of `.stapsdt.base` when it was linked, of its semaphore or 0), and
//! three strings: provider, name, arguments. An argument is `SIZE@OPERAND`; a negative size is a signed type's, and `f` after it
//! a floating-point type's.

use super::elf::{Address, Elf};
use super::narrow;
use super::notes::next_note;

/// One marker: a place in the code. Several may have one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Who it belongs to.
    pub provider: String,
    /// Its own name.
    pub name: String,
    /// The instruction.
    pub address: Address,
    /// A 16-bit count of its tracers.
    pub semaphore: Option<Address>,
    /// In order; None for one whose operand is not understood, with its text.
    pub arguments: Vec<Result<MarkerArgument, String>>,
}

/// Where an argument is, and how it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkerArgument {
    /// Bytes: 1, 2, 4 or 8.
    pub size: u8,
    /// Its type is a signed integer.
    pub signed: bool,
    /// The operand.
    pub operand: Operand,
}

/// An operand of an instruction. Registers have DWARF's numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// `$5`
    Constant(i64),
    /// `%edi`, `%xmm0`; of `%ah` the bits from 8 on.
    Register {
        /// The whole register.
        number: u16,
        /// Where the argument begins in it.
        first_bit: u8,
    },
    /// `-8(%rbp)`, `8(%rax,%rbx,4)`, `counter+4(%rip)`, `counter@GOTOFF(%ebx)`
    Memory {
        /// Added to the address.
        base: Option<u16>,
        /// The same, times this many.
        index: Option<(u16, u8)>,
        /// The same.
        displacement: i64,
        /// The same: a link-time address.
        symbol: Option<Address>,
    },
}

/// After a symbol: its distance from the global offset table.
const RELATIVE: &str = "@GOTOFF";

/// The kind of note (`_SDT_NOTE_TYPE`).
const KIND: u32 = 3;

/// Notes of one file that are looked at.
const MOST: usize = 1 << 16;

/// Arguments of one marker.
const MOST_ARGUMENTS: usize = 12;

impl Elf {
    /// All markers, in the order of the file.
    pub fn markers(&self) -> Vec<Marker> {
        let Some(mut notes) = self.section_bytes(".note.stapsdt") else { return Vec::new() };
        let base = self.section_start(".stapsdt.base");
        let mut markers = Vec::new();
        while let (Some(note), true) = (next_note(notes), markers.len() < MOST) {
            notes = note.rest;
            if note.kind == KIND && note.owner == b"stapsdt\0" {
                markers.extend(self.marker(note.contents, base));
            }
        }
        markers
    }

    fn marker(&self, contents: &[u8], base: Option<u64>) -> Option<Marker> {
        let word = |at: usize| Some(u64::from_le_bytes(contents.get(at..at + 8)?.try_into().ok()?));
        let (place, linked, semaphore) = (word(0)?, word(8)?, word(16)?);
        let mut texts = contents.get(24..)?.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        let (provider, name, arguments) = (texts.next()?.into_owned(), texts.next()?.into_owned(), texts.next()?);
        // The file may have been moved since (prelink).
        let moved = base.filter(|_| linked != 0).map_or(0, |base| base.wrapping_sub(linked));
        let semaphore = (semaphore != 0).then(|| self.address(semaphore.wrapping_add(moved))).flatten();
        let arguments = split(&arguments).map(|text| self.argument(text).ok_or_else(|| text.to_string()));
        let arguments = arguments.take(MOST_ARGUMENTS).collect();
        Some(Marker { provider, name, address: self.address(place.wrapping_add(moved))?, semaphore, arguments })
    }

    fn argument(&self, text: &str) -> Option<MarkerArgument> {
        // Before version 3 there was no size.
        let (size, operand) = text.split_once('@').unwrap_or(("-8", text));
        let integer = size.trim_end_matches('f');
        let (is_float, size) = (integer != size, integer.parse::<i8>().ok()?);
        let bytes = size.unsigned_abs();
        let operand = self.operand(operand)?;
        matches!(bytes, 1 | 2 | 4 | 8).then_some(MarkerArgument { size: bytes, signed: size < 0 && !is_float, operand })
    }

    fn operand(&self, text: &str) -> Option<Operand> {
        if let Some(value) = text.strip_prefix('$') {
            return Some(Operand::Constant(number(value)?));
        }
        if let Some(name) = text.strip_prefix('%') {
            let (number, first_bit) = register(name)?;
            return Some(Operand::Register { number, first_bit });
        }
        let (before, inner) = match text.strip_suffix(')') {
            Some(text) => text.split_once('(')?,
            None => (text, ""),
        };
        let (symbol, displacement) = self.displacement(before)?;
        let mut parts = inner.split(',').map(str::trim);
        let whole = |text: &str| register(text.strip_prefix('%')?).map(|(number, _)| number);
        let base = match parts.next().unwrap_or_default() {
            "" => None,
            // Then the symbol says it all.
            "%rip" => symbol.map(|_| None)?,
            name => Some(whole(name)?),
        };
        let index = match parts.next() {
            None => None,
            Some(name) => Some((whole(name)?, parts.next().map_or(Some(1), |scale| scale.parse().ok())?)),
        };
        Some(Operand::Memory { base, index, displacement, symbol })
    }

    /// `8`, `-0x10`, `name`, `name+8`, `8+name`, `name@GOTOFF`.
    fn displacement(&self, text: &str) -> Option<(Option<Address>, i64)> {
        let (mut symbol, mut sum) = (None, 0i64);
        let mut rest = text.trim();
        while !rest.is_empty() {
            let negative = rest.starts_with('-');
            let term = rest.trim_start_matches(['+', '-']);
            let end = term.find(['+', '-']).unwrap_or(term.len());
            let (term, next) = term.split_at(end);
            match number(term) {
                Some(value) if negative => sum = sum.wrapping_sub(value),
                Some(value) => sum = sum.wrapping_add(value),
                // The registers hold the rest of the address: the table's, and perhaps an index.
                None if term.ends_with(RELATIVE) && !negative => {
                    let distance = self.distance_from_table(term.trim_end_matches(RELATIVE))?;
                    sum = sum.wrapping_add(distance);
                }
                None if symbol.is_none() && !negative => symbol = Some(self.symbol_address(term).ok()??),
                None => return None,
            }
            rest = next;
        }
        Some((symbol, sum))
    }

    /// Of a symbol of a 32-bit program.
    fn distance_from_table(&self, name: &str) -> Option<i64> {
        // A program without libraries has none that the dynamic linker needs.
        let needed =
            self.section_bytes(narrow::TABLE).and_then(|bytes| Some(u64::from_le_bytes(bytes.try_into().ok()?)));
        let table = needed.or_else(|| Some(self.symbols_named("_GLOBAL_OFFSET_TABLE_").ok()?.next()?.at))?;
        Some(self.symbols_named(name).ok()?.next()?.at.wrapping_sub(table).cast_signed())
    }
}

/// Arguments are separated by blanks; within the parentheses of an operand there may be some too.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0usize;
    text.split(move |byte: char| {
        match byte {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        byte == ' ' && depth == 0
    })
    .filter(|part| !part.is_empty())
}

fn number(text: &str) -> Option<i64> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    } as i64;
    Some(if negative { value.wrapping_neg() } else { value })
}

/// DWARF's number of xmm0, and how many there are without AVX-512.
const FIRST_VECTOR: u16 = 17;
const VECTORS: u16 = 16;

/// DWARF's number of the register that a name is of, and the bit that the named part begins at.
fn register(name: &str) -> Option<(u16, u8)> {
    const WHOLE: [[&str; 4]; 8] = [
        ["rax", "eax", "ax", "al"],
        ["rdx", "edx", "dx", "dl"],
        ["rcx", "ecx", "cx", "cl"],
        ["rbx", "ebx", "bx", "bl"],
        ["rsi", "esi", "si", "sil"],
        ["rdi", "edi", "di", "dil"],
        ["rbp", "ebp", "bp", "bpl"],
        ["rsp", "esp", "sp", "spl"],
    ];
    if let Some(number) = WHOLE.iter().position(|names| names.contains(&name)) {
        return Some((number as u16, 0));
    }
    if let Some(number) = ["ah", "dh", "ch", "bh"].iter().position(|high| *high == name) {
        return Some((number as u16, 8));
    }
    if let Some(number) = name.strip_prefix("xmm") {
        return number.parse().ok().filter(|number| *number < VECTORS).map(|number: u16| (FIRST_VECTOR + number, 0));
    }
    let number = name.strip_prefix('r')?.trim_end_matches(['d', 'w', 'b']).parse().ok()?;
    (8..=15).contains(&number).then_some((number, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_split_and_registers_known() {
        let parts: Vec<&str> = split("-4@%edi 8@8(%rax, %rbx, 4)  4@$-5").collect();
        assert_eq!(parts, ["-4@%edi", "8@8(%rax, %rbx, 4)", "4@$-5"]);
        assert_eq!([register("r12d"), register("dh"), register("sil")], [Some((12, 0)), Some((1, 8)), Some((4, 0))]);
        assert_eq!([register("xmm0"), register("xmm15")], [Some((17, 0)), Some((32, 0))]);
        assert!(register("xmm16").is_none() && register("r16").is_none());
        assert_eq!([number("-0x10"), number("18446744073709551615")], [Some(-16), Some(-1)]);
    }
}
