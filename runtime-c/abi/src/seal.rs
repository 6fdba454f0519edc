// SPDX-License-Identifier: GPL-2.0-or-later

//! A module's seal: checksums over its file, by which the loader detects corruption before the kernel runs it.
//!
//! It is not a signature: it detects damage, not tampering. The section [`SECTION`] contains [`MAGIC`] and three
//! numbers, little endian: the length of the file, the sum over its loaded parts ([`content`]), which is also valid for
//! a stripped file, and the sum over all of it. Fields written later count as zeros; a signature appended to the file,
//! which is made last, is not included.

mod content;

use std::ops::Range;

use content::Elf;

/// ELF section of the `.ko`.
pub const SECTION: &str = ".spile.seal";
/// First bytes of the section; the numbers follow.
pub const MAGIC: &[u8; 8] = b"SPILSEAL";
/// Size of a number.
const NUMBER_BYTES: usize = 8;
/// Size of the section.
pub const BYTES: usize = MAGIC.len() + 3 * NUMBER_BYTES;

/// The end of a signed module, after the signature and 12 bytes with its length, big endian in the last four
/// (kernel/module_signature.c, include/linux/module_signature.h).
pub const SIGNATURE_MARK: &[u8] = b"~Module signature appended~\n";

/// The file without its signature; all of it if it has none, or an invalid one.
pub fn unsigned(image: &[u8]) -> &[u8] {
    let without = || {
        let rest = image.strip_suffix(SIGNATURE_MARK)?;
        let length = u32::from_be_bytes(*rest.last_chunk::<4>()?) as usize;
        rest.get(..rest.len().checked_sub(length.checked_add(12)?)?)
    };
    without().unwrap_or(image)
}

/// The contents of the section after the magic, and its offset in the file.
struct Numbers {
    length: u64,
    content: u64,
    whole: u64,
    place: Range<usize>,
}

impl Numbers {
    fn read(image: &[u8], elf: &Elf) -> Option<Numbers> {
        let place = elf.place(SECTION).filter(|place| place.len() == BYTES)?;
        let numbers = image.get(place.clone())?.strip_prefix(MAGIC)?;
        let number = |index: usize| Some(u64::from_le_bytes(*numbers.get(index * NUMBER_BYTES..)?.first_chunk()?));
        Some(Numbers {
            length: number(0)?,
            content: number(1)?,
            whole: number(2)?,
            place: place.start + MAGIC.len()..place.end,
        })
    }

    /// Offset of the last number, which the sum over the whole file excludes.
    fn last(&self) -> Range<usize> {
        self.place.end - NUMBER_BYTES..self.place.end
    }
}

/// Whether the file is unchanged since it was sealed; or, if it has become shorter, all its loaded parts.
pub fn holds(image: &[u8]) -> bool {
    let image = unsigned(image);
    let numbers = || {
        let elf = Elf::read(image)?;
        let numbers = Numbers::read(image, &elf)?;
        Some(match image.len() as u64 {
            length if length == numbers.length => numbers.whole == whole(image, &numbers.last()),
            length if length < numbers.length => Some(numbers.content) == content(&elf, &numbers.place, numbers.length),
            _ => false,
        })
    };
    numbers().unwrap_or(false)
}

/// Seals a file that is otherwise final; one without the section is unchanged.
pub fn write(image: &mut [u8]) {
    let length = image.len() as u64;
    let first = || {
        let elf = Elf::read(image)?;
        let numbers = Numbers::read(image, &elf)?;
        let content = content(&elf, &numbers.place, length)?;
        Some((numbers, content))
    };
    let Some((numbers, content)) = first() else { return };
    let last = numbers.last();
    put(image, numbers.place.start..last.start, &[length, content]);
    let whole = whole(image, &last);
    put(image, last, &[whole]);
}

fn put(image: &mut [u8], place: Range<usize>, numbers: &[u64]) {
    if let Some(bytes) = image.get_mut(place) {
        bytes.iter_mut().zip(numbers.iter().flat_map(|number| number.to_le_bytes())).for_each(|(to, from)| *to = from);
    }
}

fn whole(image: &[u8], hole: &Range<usize>) -> u64 {
    Sum::new().and_but(image, hole).0
}

/// Includes the length, so that a wrong bit there does not turn a complete file into a shortened one.
fn content(elf: &Elf, hole: &Range<usize>, length: u64) -> Option<u64> {
    Some(Sum::new().number(elf.sum(hole)?).number(length).0)
}

/// FNV-1a over words of 8 bytes; each bit matters.
#[derive(Clone, Copy)]
struct Sum(u64);

impl Sum {
    fn new() -> Sum {
        Sum(0xcbf2_9ce4_8422_2325)
    }

    fn number(self, number: u64) -> Sum {
        Sum((self.0 ^ number).wrapping_mul(0x0100_0000_01b3).rotate_left(23))
    }

    /// Adds these bytes and their number.
    fn and(self, bytes: &[u8]) -> Sum {
        self.and_but(bytes, &(0..0))
    }

    /// The same with zeros in `hole`.
    fn and_but(self, bytes: &[u8], hole: &Range<usize>) -> Sum {
        let sum = self.number(bytes.len() as u64);
        // Words that the hole does not touch are most of a file of megabytes.
        let before = (hole.start / 8 * 8).min(bytes.len() / 8 * 8);
        let behind = hole.end.div_ceil(8).saturating_mul(8).clamp(before, bytes.len().max(before));
        let (before, rest) = bytes.split_at(before);
        let (touched, behind) = rest.split_at(behind - before.len());
        let touched: Vec<u8> =
            touched.iter().zip(before.len()..).map(|(byte, at)| if hole.contains(&at) { 0 } else { *byte }).collect();
        sum.words(before).words(&touched).words(behind)
    }

    /// Adds words of 8 bytes; zeros follow the last bytes.
    fn words(self, bytes: &[u8]) -> Sum {
        let (words, last) = bytes.as_chunks::<8>();
        let sum = words.iter().fold(self, |sum, word| sum.number(u64::from_le_bytes(*word)));
        if last.is_empty() {
            return sum;
        }
        let mut filled = [0u8; 8];
        filled.iter_mut().zip(last).for_each(|(to, from)| *to = *from);
        sum.number(u64::from_le_bytes(filled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_outside_of_the_hole_counts() {
        let image: Vec<u8> = (0..100u8).collect();
        let hole = 40..48;
        let right = whole(&image, &hole);
        for bit in 0..image.len() * 8 {
            let mut other = image.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(whole(&other, &hole) == right, hole.contains(&(bit / 8)), "{bit}");
        }
        assert_ne!(whole(&image[..99], &hole), right);
    }

    /// The definition: modules carry sums that earlier versions have computed.
    fn by_definition(bytes: &[u8], hole: &Range<usize>) -> u64 {
        let shown = bytes.iter().enumerate().map(|(at, byte)| if hole.contains(&at) { 0 } else { *byte });
        let shown: Vec<u8> = shown.collect();
        shown
            .chunks(8)
            .fold(Sum::new().number(bytes.len() as u64), |sum, word| {
                let mut filled = [0; 8];
                filled[..word.len()].copy_from_slice(word);
                sum.number(u64::from_le_bytes(filled))
            })
            .0
    }

    #[test]
    fn holes_are_zeros_wherever_they_are() {
        let bytes: Vec<u8> = (1..=30u8).collect();
        for length in 0..=bytes.len() {
            for (start, end) in (0..35).flat_map(|start| (0..35).map(move |end| (start, end))) {
                let (bytes, hole) = (&bytes[..length], start..end);
                assert_eq!(whole(bytes, &hole), by_definition(bytes, &hole), "{length} {hole:?}");
            }
        }
    }

    #[test]
    fn a_signature_is_not_part_of_it() {
        let mut signed = b"module".to_vec();
        signed.extend([7; 5]);
        signed.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5]);
        signed.extend(SIGNATURE_MARK);
        assert_eq!(unsigned(&signed), b"module");
        assert_eq!(unsigned(b"module"), b"module");
        let cut = &signed[9..];
        assert_eq!(unsigned(cut), cut, "it would begin before the file");
        assert_eq!(unsigned(SIGNATURE_MARK), SIGNATURE_MARK);
    }

    /// An object file with debug information and all kinds of relocations, compiled here; `None` without a compiler.
    fn compiled(directory: &std::path::Path) -> Option<Vec<u8>> {
        let source = "\
            extern int other(int, const char *);\n\
            static const unsigned char seal[32] __attribute__((section(\".spile.seal\"), used, aligned(8))) = \"SPILSEAL\";\n\
            static int counter, table[50];\n\
            static int (*const calls[])(int, const char *) = { other };\n\
            static int inner(int x) { return calls[x & 0](x, \"text\") + table[x & 15]++; }\n\
            int entry(int x) { counter += inner(x); return counter; }\n";
        std::fs::write(directory.join("a.c"), source).ok()?;
        let gcc = std::process::Command::new("gcc")
            .args(["-g", "-O1", "-c", "a.c", "-o", "a.o"])
            .current_dir(directory)
            .status();
        gcc.is_ok_and(|status| status.success()).then(|| std::fs::read(directory.join("a.o")).ok())?
    }

    #[test]
    fn a_stripped_file_holds_and_a_wrong_bit_in_what_is_loaded_of_it_is_seen() {
        let directory = std::env::temp_dir().join(format!("spile-seal-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory for the test");
        let stripped = compiled(&directory).and_then(|mut image| {
            write(&mut image);
            assert!(holds(&image));
            for end in 0..image.len() {
                assert!(!holds(&image[..end]), "{end}");
            }
            let longer = [&image[..], b"\n"].concat();
            assert!(!holds(&longer));
            for at in 0..image.len() {
                let mut damaged = image.clone();
                damaged[at] ^= 1 << (at % 8);
                assert!(!holds(&damaged), "{at}");
            }
            std::fs::write(directory.join("b.o"), &image).ok()?;
            let strip = std::process::Command::new("strip").args(["-g", "b.o"]).current_dir(&directory).status();
            strip.is_ok_and(|status| status.success()).then(|| std::fs::read(directory.join("b.o")).ok())?
        });
        let _ = std::fs::remove_dir_all(&directory);
        let Some(stripped) = stripped else { return };
        assert!(holds(&stripped));
        let elf = Elf::read(&stripped).expect("a file that strip wrote");
        for name in [".text", ".rela.text", ".spile.seal", ".rodata.str1.1", ".rela.data.rel.ro.local", ".symtab"] {
            let Some(place) = elf.place(name) else { continue };
            let seen = place.clone().filter(|at| {
                let mut damaged = stripped.clone();
                damaged[*at] ^= 4;
                !holds(&damaged)
            });
            // Only symbols used by relocations; not the sum over the whole file, which differs.
            let least = match name {
                ".symtab" => 1,
                SECTION => place.len() - NUMBER_BYTES,
                _ => place.len(),
            };
            assert!(seen.count() >= least, "{name}");
        }
    }
}
