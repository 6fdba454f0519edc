// SPDX-License-Identifier: GPL-2.0-or-later

//! What tells two builds of a program apart where its file has no build-id: the sum of its code, which the runtime computes of
//! the file that it finds (`runtime-c/program.c`).

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use object::elf::{FileHeader32, FileHeader64, PF_X, PT_LOAD};
use object::endian::Endianness;
use object::read::ReadCache;
use object::read::elf::{FileHeader, ProgramHeader};
use spile_base::regular;

/// The ELF header in a segment with code is left out: it says where the sections are, which differs in a stripped file.
const HEADER: u64 = 64;
/// Code of more bytes has no sum: the runtime would read all of it while a session begins.
const MOST_BYTES: u64 = 1 << 30;
/// Program headers that are looked at: `MOST_SEGMENTS` of the runtime.
const MOST_SEGMENTS: usize = 64;
const BEGIN: u64 = 0xcbf2_9ce4_8422_2325;
const FACTOR: u64 = 0x0000_0100_0000_01b3;

/// The code of a program or library: of its segments (PT_LOAD) that can be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeSum {
    /// Their bytes in the file.
    pub bytes: u64,
    /// FNV-1a over their 64-bit words; the last word of a segment is filled up with zeros.
    pub sum: u64,
}

/// That of an ELF file of 32 or 64 bits; `None`: it is none, has no code, or more than a gigabyte of it.
pub fn code_sum(path: &Path) -> io::Result<Option<CodeSum>> {
    let file = regular::open(path)?;
    let cache = ReadCache::new(&file);
    let segments =
        segments::<FileHeader64<Endianness>>(&cache).or_else(|| segments::<FileHeader32<Endianness>>(&cache));
    let segments = segments.unwrap_or_default();
    let bytes = segments.iter().fold(0_u64, |all, (_, bytes)| all.saturating_add(*bytes));
    // Segments may share bytes of the file, and then have more than it.
    if bytes == 0 || bytes > MOST_BYTES || bytes > file.metadata()?.len() {
        return Ok(None);
    }
    let mut sum = BEGIN;
    for (start, bytes) in segments {
        sum = add_segment(&file, start, bytes, sum)?;
    }
    Ok(Some(CodeSum { bytes, sum }))
}

/// Place in the file and bytes of each segment of code.
fn segments<H: FileHeader>(file: &ReadCache<&File>) -> Option<Vec<(u64, u64)>> {
    let header = H::parse(file).ok()?;
    let endian = header.endian().ok()?;
    let all = header.program_headers(endian, file).ok()?.iter().take(MOST_SEGMENTS);
    let code = all.filter(|segment| segment.p_type(endian) == PT_LOAD && segment.p_flags(endian).contains(PF_X));
    let places = code.map(|segment| {
        let (start, bytes): (u64, u64) = (segment.p_offset(endian).into(), segment.p_filesz(endian).into());
        let passed = HEADER.saturating_sub(start);
        (start.saturating_add(passed), bytes.saturating_sub(passed))
    });
    Some(places.filter(|(_, bytes)| *bytes > 0).collect())
}

fn add_segment(mut file: &File, start: u64, bytes: u64, mut sum: u64) -> io::Result<u64> {
    const AT_ONCE: u64 = 64 << 10;
    let mut buffer = Vec::with_capacity(AT_ONCE as usize);
    let mut left = bytes;
    file.seek(SeekFrom::Start(start))?;
    while left > 0 {
        buffer.clear();
        let some = left.min(AT_ONCE);
        if file.take(some).read_to_end(&mut buffer)? as u64 != some {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for word in buffer.chunks(8) {
            let word = word.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            sum = (sum ^ word).wrapping_mul(FACTOR);
        }
        left -= some;
    }
    Ok(sum)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that fails may say so in any way")]
mod tests {
    use super::*;
    use std::process::Command;

    /// A program of this C without a build-id.
    fn compiled(directory: &Path, name: &str, text: &str, options: &[&str]) -> std::path::PathBuf {
        let (source, out) = (directory.join(format!("{name}.c")), directory.join(name));
        std::fs::write(&source, text).unwrap();
        let gcc = Command::new("gcc")
            .args(["-O1", "-nostdlib", "-static", "-Wl,--build-id=none", "-Wl,-e,f"])
            .args(options)
            .arg("-o")
            .args([&out, &source])
            .status();
        assert!(gcc.unwrap().success());
        out
    }

    #[test]
    fn is_of_the_code_alone() {
        let directory = tempfile::tempdir().unwrap();
        let compiled = |name: &str, text: &str, options: &[&str]| {
            code_sum(&compiled(directory.path(), name, text, options)).unwrap().unwrap()
        };
        let one = compiled("one", "int n = 1; int f(int a) { return a * 3 + n; }", &[]);
        assert_eq!(compiled("debug", "int n = 1; int f(int a) { return a * 3 + n; }", &["-g"]), one);
        assert_eq!(compiled("data", "int n = 2; int f(int a) { return a * 3 + n; }", &[]), one);
        assert_ne!(compiled("other", "int n = 1; int f(int a) { return a * 7 + n; }", &[]).sum, one.sum);
        let narrow = compiled("narrow", "int n = 1; int f(int a) { return a * 3 + n; }", &["-m32"]);
        assert!(narrow.bytes > 0 && narrow.sum != one.sum);
    }

    #[test]
    fn stripped_programs_have_the_same_where_the_header_is_in_the_code() {
        let directory = tempfile::tempdir().unwrap();
        let program =
            compiled(directory.path(), "one", "int f(int a) { return a * 3; }", &["-g", "-Wl,-z,noseparate-code"]);
        let before = code_sum(&program).unwrap().unwrap();
        assert!(Command::new("strip").arg(&program).status().unwrap().success());
        assert_eq!(code_sum(&program).unwrap(), Some(before));
    }

    #[test]
    fn code_that_would_be_read_for_hours_has_none() {
        let directory = tempfile::tempdir().unwrap();
        let program = compiled(directory.path(), "one", "int f(int a) { return a * 3; }", &[]);
        let mut bytes = std::fs::read(&program).unwrap();
        // Of ELFCLASS64: e_phoff, e_phnum; of each header p_type, p_flags and p_filesz.
        let place = u64::from_le_bytes(bytes[32..40].try_into().unwrap()) as usize;
        for header in bytes[place..].chunks_exact_mut(56).take(2) {
            header[..4].copy_from_slice(&1_u32.to_le_bytes());
            header[4..8].copy_from_slice(&5_u32.to_le_bytes());
            header[32..40].copy_from_slice(&(1_u64 << 41).to_le_bytes());
        }
        std::fs::write(&program, bytes).unwrap();
        File::options().write(true).open(&program).unwrap().set_len(1 << 42).unwrap();
        assert_eq!(code_sum(&program).unwrap(), None);
    }

    #[test]
    fn of_no_program() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(code_sum(file.path()).unwrap(), None);
        std::fs::write(file.path(), [b"\x7fELF\x02\x01\x01".as_slice(), &[0xff; 100]].concat()).unwrap();
        assert_eq!(code_sum(file.path()).unwrap(), None);
    }
}
