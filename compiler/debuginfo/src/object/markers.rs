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
    /// `$counter+4`: the address itself, of a program that is not moved when it is loaded.
    Address {
        /// The link-time address of the symbol.
        symbol: Address,
        /// Added to it.
        displacement: i64,
    },
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
    /// All markers, in the order of the file. `symbols`: the file with its symbols, this one or its debug information.
    pub fn markers(&self, symbols: &Elf) -> Vec<Marker> {
        let Some(mut notes) = self.section_bytes(".note.stapsdt") else { return Vec::new() };
        let base = self.section_start(".stapsdt.base");
        let mut markers = Vec::new();
        while let (Some(note), true) = (next_note(notes), markers.len() < MOST) {
            notes = note.rest;
            if note.kind == KIND && note.owner == b"stapsdt\0" {
                markers.extend(self.marker(note.contents, base, symbols));
            }
        }
        markers
    }

    fn marker(&self, contents: &[u8], base: Option<u64>, symbols: &Elf) -> Option<Marker> {
        let word = |at: usize| Some(u64::from_le_bytes(contents.get(at..at + 8)?.try_into().ok()?));
        let (place, linked, semaphore) = (word(0)?, word(8)?, word(16)?);
        let mut texts = contents.get(24..)?.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        let (provider, name, arguments) = (texts.next()?.into_owned(), texts.next()?.into_owned(), texts.next()?);
        // The file may have been moved since (prelink).
        let moved = base.filter(|_| linked != 0).map_or(0, |base| base.wrapping_sub(linked));
        let semaphore = (semaphore != 0).then(|| self.address(semaphore.wrapping_add(moved))).flatten();
        let arguments = split(&arguments).map(|text| self.argument(text, symbols).ok_or_else(|| text.to_string()));
        let arguments = arguments.take(MOST_ARGUMENTS).collect();
        Some(Marker { provider, name, address: self.address(place.wrapping_add(moved))?, semaphore, arguments })
    }

    fn argument(&self, text: &str, symbols: &Elf) -> Option<MarkerArgument> {
        // Before version 3 there was no size.
        let (size, operand) = text.split_once('@').unwrap_or(("-8", text));
        let integer = size.trim_end_matches('f');
        let (is_float, size) = (integer != size, integer.parse::<i8>().ok()?);
        let bytes = size.unsigned_abs();
        let operand = self.operand(operand, symbols)?;
        matches!(bytes, 1 | 2 | 4 | 8).then_some(MarkerArgument { size: bytes, signed: size < 0 && !is_float, operand })
    }

    fn operand(&self, text: &str, symbols: &Elf) -> Option<Operand> {
        if let Some(value) = text.strip_prefix('$') {
            let value = Some(value).filter(|value| !value.is_empty())?;
            return Some(match self.displacement(value, symbols)? {
                (Some(symbol), displacement) => Operand::Address { symbol, displacement },
                (None, value) => Operand::Constant(value),
            });
        }
        if let Some(name) = text.strip_prefix('%') {
            let (number, first_bit) = register(name)?;
            return Some(Operand::Register { number, first_bit });
        }
        let (before, inner) = match text.strip_suffix(')') {
            Some(text) => text.split_once('(')?,
            // Nothing is no address.
            None => (Some(text.trim()).filter(|text| !text.is_empty())?, ""),
        };
        let (symbol, displacement) = self.displacement(before, symbols)?;
        let mut parts = inner.split(',').map(str::trim);
        // `(%eax)` in code of 64 bits has half of the register.
        let first = if self.section_bytes(narrow::SEGMENTS).is_some() { 'e' } else { 'r' };
        let whole = |text: &str| {
            let name = text.strip_prefix('%').filter(|name| name.starts_with(first))?;
            register(name).map(|(number, _)| number)
        };
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
    fn displacement(&self, text: &str, symbols: &Elf) -> Option<(Option<Address>, i64)> {
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
                    let distance = self.distance_from_table(term.trim_end_matches(RELATIVE), symbols)?;
                    sum = sum.wrapping_add(distance);
                }
                None if symbol.is_none() && !negative && !term.is_empty() => {
                    symbol = Some(self.address(symbols.only_place(term)?)?);
                }
                None => return None,
            }
            rest = next;
        }
        Some((symbol, sum))
    }

    /// Of a symbol of a 32-bit program.
    fn distance_from_table(&self, name: &str, symbols: &Elf) -> Option<i64> {
        // A program without libraries has none that the dynamic linker needs.
        let needed =
            self.section_bytes(narrow::TABLE).and_then(|bytes| Some(u64::from_le_bytes(bytes.try_into().ok()?)));
        let table = needed.or_else(|| symbols.only_place("_GLOBAL_OFFSET_TABLE_"))?;
        Some(symbols.only_place(name)?.wrapping_sub(table).cast_signed())
    }

    /// Where the symbol of that name is. None: there is none, or several, of which the operand does not say which one it means:
    /// static variables of different files.
    fn only_place(&self, name: &str) -> Option<u64> {
        let mut all = self.symbols_named(name).ok()?.map(|symbol| symbol.at);
        let first = all.next()?;
        all.all(|at| at == first).then_some(first)
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
    /// A program of two files.
    fn linked(directory: &std::path::Path) -> Elf {
        let each = "static volatile int twice; volatile int OWN; int f_OWN(void) { return twice + OWN; }";
        for own in ["first", "second"] {
            std::fs::write(directory.join(format!("{own}.c")), each.replace("OWN", own)).expect("written");
        }
        let options = ["-nostdlib", "-static", "-no-pie", "-Wl,-e,f_first", "-o", "test", "first.c", "second.c"];
        let gcc = std::process::Command::new("gcc").current_dir(directory).args(options).output().expect("gcc runs");
        assert!(gcc.status.success(), "{}", String::from_utf8_lossy(&gcc.stderr));
        Elf::open_program(&directory.join("test")).expect("is read")
    }

    #[test]
    fn symbols_of_operands() {
        let directory = tempfile::tempdir().expect("a directory");
        let elf = linked(directory.path());
        let first = elf.symbol_address("first").expect("symbols").expect("is there");
        let operand = |text: &str| elf.argument(text, &elf).map(|argument| argument.operand);
        let memory = |displacement| Operand::Memory { base: None, index: None, displacement, symbol: Some(first) };
        assert_eq!(operand("4@first(%rip)"), Some(memory(0)));
        assert_eq!(operand("4@first+8(%rip)"), Some(memory(8)));
        assert_eq!(operand("8@$first"), Some(Operand::Address { symbol: first, displacement: 0 }));
        assert_eq!(operand("8@$first-4"), Some(Operand::Address { symbol: first, displacement: -4 }));
        assert_eq!((operand("-4@$-5"), operand("4@$0x10")), (Some(Operand::Constant(-5)), Some(Operand::Constant(16))));
        let at_rax = Operand::Memory { base: Some(0), index: None, displacement: 0, symbol: None };
        assert_eq!((operand("4@(%rax)"), operand("4@(%eax)")), (Some(at_rax), None));
        assert_eq!((operand("-4@"), operand("4@ "), operand("")), (None, None, None));
        // Which of the two variables it is the operand does not say.
        assert_eq!((operand("4@twice(%rip)"), operand("8@$twice"), operand("8@$")), (None, None, None));
        // The symbols may be in another file.
        let strip =
            std::process::Command::new("strip").current_dir(directory.path()).args(["-o", "stripped", "test"]).status();
        assert!(strip.is_ok_and(|status| status.success()));
        let stripped = Elf::open_program(&directory.path().join("stripped")).expect("is read");
        assert!(stripped.argument("4@first(%rip)", &stripped).is_none());
        assert_eq!(stripped.argument("4@first(%rip)", &elf).map(|argument| argument.operand), Some(memory(0)));
    }
}
