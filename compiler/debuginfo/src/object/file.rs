// SPDX-License-Identifier: GPL-2.0-or-later

//! The bytes of an object file: mapped, or unpacked when the file is compressed as modules may be.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::ops::Deref;
use std::path::Path;

use spile_abi::budget::Budget;

use super::boot_image;
use crate::error::Error;
use spile_base::{cache, regular};

/// Files that unpack to more than this are damaged: the largest modules with debug information have some 300 MB.
const MAX_UNPACKED: u64 = 400 << 20;

/// KiB that an xz or lzma decoder may use: boot images have dictionaries of up to 128 MiB.
const MAX_DICTIONARY: u32 = 160 << 10;

/// Members of a gzip file: one of 20 bytes, with nothing in it, takes as long as many bytes of a larger one.
const MAX_MEMBERS: usize = 1000;

/// Bytes that do not move while this value lives.
#[derive(Debug)]
pub enum Bytes {
    Mapped(memmap2::Mmap),
    /// Within an entry of the cache.
    Cached(cache::Mapped),
    Unpacked(Vec<u8>),
}

impl Bytes {
    /// Gives the pages of a mapped file back to the system.
    pub(super) fn give_back(&self) {
        if let Bytes::Mapped(map) = self {
            // SAFETY: the map is of a file, and nothing is written to it: the same bytes are read again from that.
            let _ = unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
        }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Cached(mapped) => mapped,
            Bytes::Unpacked(bytes) => bytes,
        }
    }
}

/// The file's contents; `.xz`, `.gz` and `.zst` are known by their first bytes, whatever the name says.
pub fn open(path: &Path) -> Result<Bytes, Error> {
    // A program can name anything as its debug file (.gnu_debuglink).
    let file = regular::open(path).map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => no_file(path),
        _ => Error::read(path)(error),
    })?;
    of_file(path, &file)
}

fn no_file(path: &Path) -> Error {
    Error::Elf { path: path.into(), message: "not a regular file".into() }
}

/// The same of a file that is open; `path`: where it was found.
pub fn of_file(path: &Path, file: &File) -> Result<Bytes, Error> {
    let metadata = file.metadata().map_err(Error::read(path))?;
    if !metadata.is_file() {
        return Err(no_file(path));
    }
    if metadata.len() == 0 {
        return Ok(Bytes::Unpacked(Vec::new()));
    }
    // SAFETY: the map is only read. A package manager replaces debug files by rename, which leaves the mapped inode as
    // it is; a file that somebody truncates while it is read would raise SIGBUS, as in every tool that maps it.
    let Ok(map) = (unsafe { memmap2::Mmap::map(file) }) else {
        // sysfs lets its files be read, not mapped (`/sys/kernel/btf` before 6.16). The path may be another file's by now.
        let budget = Budget::unpacking("a file that cannot be mapped", metadata.len(), MAX_UNPACKED);
        return budget.read_all(&mut &*file).map(Bytes::Unpacked).map_err(Error::read(path));
    };
    if map.starts_with(b"spile-cache") {
        let nothing = || Error::Unpack { path: path.into(), message: "an entry of the cache that is no file".into() };
        return cache::file_in(file).map(Bytes::Cached).ok_or_else(nothing);
    }
    unpack(&map).map_or(Ok(Bytes::Mapped(map)), |unpacked| {
        unpacked.map(Bytes::Unpacked).map_err(|message| Error::Unpack { path: path.into(), message })
    })
}

/// None if the bytes are not compressed.
pub(crate) fn unpack(packed: &[u8]) -> Option<Result<Vec<u8>, String>> {
    let budget = Budget::unpacking("unpacked contents", packed.len() as u64, MAX_UNPACKED);
    unpack_within(packed, &budget)
}

fn unpack_within(packed: &[u8], budget: &Budget) -> Option<Result<Vec<u8>, String>> {
    let read_all = |reader: &mut dyn Read| budget.read_all(reader).map_err(|error| error.to_string());
    Some(match packed {
        [0x1f, 0x8b, ..] => unpack_gzip(packed, budget),
        // A boot image has other data after the end of the stream.
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            read_all(&mut lzma_rust2::XzReader::new_mem_limit(packed, false, MAX_DICTIONARY))
        }
        // The header of the older format: properties, and the dictionary's size, a power of two.
        [0x5d, 0, 0, ..] => match lzma_rust2::LzmaReader::new_mem_limit(packed, MAX_DICTIONARY, None) {
            Ok(mut reader) => read_all(&mut reader),
            Err(error) => Err(error.to_string()),
        },
        [0x28, 0xb5, 0x2f, 0xfd, ..] => match ruzstd::decoding::StreamingDecoder::new(packed) {
            Ok(mut reader) => read_all(&mut reader),
            Err(error) => Err(error.to_string()),
        },
        [first, second, third, fourth, ..] if [*first, *second, *third, *fourth] == boot_image::LZ4_MAGIC => {
            boot_image::unpack_lz4(packed, budget.bytes_left())
        }
        _ if boot_image::is_image(packed) => unpack_image(packed, budget),
        _ => return None,
    })
}

/// All members of the file, of which gzip(1) writes one.
fn unpack_gzip(packed: &[u8], budget: &Budget) -> Result<Vec<u8>, String> {
    let (mut unpacked, mut rest) = (Vec::new(), packed);
    for _ in 0..MAX_MEMBERS {
        let mut member = flate2::bufread::GzDecoder::new(rest);
        unpacked.append(&mut budget.read_all(&mut member).map_err(|error| error.to_string())?);
        rest = member.into_inner();
        if rest.is_empty() {
            return Ok(unpacked);
        }
    }
    Err(format!("more than the {MAX_MEMBERS} members that are allowed"))
}

/// The kernel in a boot image; that must not be a boot image again.
fn unpack_image(image: &[u8], budget: &Budget) -> Result<Vec<u8>, String> {
    let _level = budget.deeper().map_err(|_| "a boot image within a boot image".to_string())?;
    let payload = boot_image::payload(image).ok_or_else(|| "a boot image without a kernel".to_string())?;
    unpack_within(payload, budget).unwrap_or_else(|| Err("a kernel compressed in a way that is not known".into()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_pipe_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe.debug");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(open(&pipe).expect_err("no file").to_string().contains("not a regular file"));
    }

    #[test]
    fn what_cannot_be_mapped_is_read_from_the_open_file() {
        let file = File::open("/proc/self/status").expect("is there");
        let error = of_file(Path::new("/nowhere"), &file).map(|bytes| bytes.len());
        assert!(matches!(error, Ok(0)), "its length is 0, as all in /proc: {error:?}");
        let Ok(file) = File::open("/sys/kernel/notes") else { return };
        let Ok(read) = of_file(Path::new("/nowhere"), &file) else { panic!("by its path") };
        assert_eq!(&*read, std::fs::read("/sys/kernel/notes").expect("is there"));
    }

    fn written(bytes: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), bytes).expect("written");
        file
    }

    fn packed() -> Vec<Vec<u8>> {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(&b"contents ".repeat(100)).expect("packed");
        let mut xz = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).expect("made");
        xz.write_all(&b"contents ".repeat(100)).expect("packed");
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        let zstd = ruzstd::encoding::compress_to_vec(&b"contents ".repeat(100)[..], level);
        let mut lzma =
            lzma_rust2::LzmaWriter::new_use_header(Vec::new(), &lzma_rust2::LzmaOptions::with_preset(1), None)
                .expect("made");
        lzma.write_all(&b"contents ".repeat(100)).expect("packed");
        vec![gzip.finish().expect("packed"), xz.finish().expect("packed"), zstd, lzma.finish().expect("packed")]
    }

    #[test]
    fn every_compression_is_unpacked() {
        for bytes in packed() {
            assert_eq!(&*open(written(&bytes).path()).expect("unpacks"), b"contents ".repeat(100));
        }
        assert_eq!(&*open(written(b"plain").path()).expect("is there"), b"plain");
        assert!(matches!(open(Path::new("/nowhere/at/all")), Err(Error::Read { .. })));
        assert!(matches!(open(Path::new("/")), Err(Error::Elf { .. })));
    }

    #[test]
    fn damaged_archives_are_errors() {
        for bytes in packed() {
            for length in 6..bytes.len() {
                assert!(unpack(&bytes[..length]).is_some_and(|unpacked| unpacked.is_err()), "{length}");
            }
            for at in 6..bytes.len() {
                let mut flipped = bytes.clone();
                flipped[at] ^= 0x10;
                // Not every format has a checksum that detects each flipped bit; none may cause a panic.
                let _ = unpack(&flipped);
            }
        }
    }
    /// The output of xz with these options; None: it is not installed.
    fn packed_by_xz(options: &[&str], mut write: impl FnMut(&mut dyn Write) + Send) -> Option<Vec<u8>> {
        let mut xz =
            Command::new("xz").args(options).arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        let mut input = xz.stdin.take().expect("piped");
        std::thread::scope(|scope| {
            scope.spawn(move || write(&mut input));
            Some(xz.wait_with_output().expect("runs").stdout)
        })
    }

    /// As the kernel's build packs a boot image: with a filter for x86 code, and the size behind the end.
    #[test]
    fn xz_with_a_filter_for_code() {
        let mut state = 1u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 24
        };
        // Dense with what may be calls.
        let choice = [0xe8, 0xe9, 0, 0xff, 1, 0x48];
        let code: Vec<u8> = (0..300_000)
            .map(|_| if next() < 160 { choice[next() as usize % choice.len()] } else { next() as u8 })
            .collect();
        let options = ["--check=crc32", "--x86", "--lzma2=dict=1MiB"];
        let Some(mut packed) = packed_by_xz(&options, |to| to.write_all(&code).expect("written")) else {
            return println!("skipped: no xz");
        };
        packed.extend((code.len() as u32).to_le_bytes());
        assert!(unpack(&packed).expect("is xz").expect("is whole") == code);
        for at in 0..packed.len().min(400) {
            let mut damaged = packed.clone();
            damaged[at] ^= 0x41;
            let _ = unpack(&damaged);
        }
    }

    #[test]
    fn gzip_files_of_several_members() {
        let member = |contents: &[u8]| {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(contents).expect("packed");
            gzip.finish().expect("packed")
        };
        let two = [member(b"first "), member(b"second")].concat();
        assert_eq!(unpack(&two).expect("is packed").expect("unpacks"), b"first second");
        assert!(unpack(&[two, b"more".to_vec()].concat()).expect("is packed").is_err());
        let error = unpack(&member(b"").repeat(1001)).expect("is packed").expect_err("too many");
        assert!(error.contains("more than the 1000 members"), "{error}");
    }

    /// Each unpacks to far more than is allowed, and is refused in time.
    #[test]
    fn archives_of_nothing_much_are_given_up() {
        static BLOCK: [u8; 1 << 16] = [0; 1 << 16];
        let zeros = |to: &mut dyn Write, bytes: usize| {
            (0..bytes / BLOCK.len()).for_each(|_| to.write_all(&BLOCK).expect("written"));
        };
        let mut bombs = Vec::new();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        zeros(&mut gzip, 100 << 20);
        bombs.push(gzip.finish().expect("packed"));
        for options in [&["-0"][..], &["-0", "--format=lzma"]] {
            bombs.extend(packed_by_xz(options, |to| zeros(to, 300 << 20)));
        }
        for bomb in bombs {
            assert!(bomb.len() < 2 << 20);
            let error = unpack(&bomb).expect("is packed").expect_err("too much");
            assert!(error.contains("more than the 67108864 bytes"), "{error}");
        }
    }

    /// 512 bytes each: a file of 64 MB would have 100,000 levels.
    #[test]
    fn a_boot_image_in_a_boot_image() {
        let mut image = Vec::new();
        for _ in 0..4000 {
            let length = image.len() as u32;
            let mut outer = vec![0; 1024];
            outer[0x1f1] = 1;
            outer[0x202..0x206].copy_from_slice(b"HdrS");
            outer[0x24c..0x250].copy_from_slice(&length.to_le_bytes());
            outer.extend(image);
            image = outer;
        }
        let file = written(&image);
        let error = open(file.path()).expect_err("no kernel").to_string();
        assert!(
            error.contains("a boot image within a boot image") && error.contains(&*file.path().to_string_lossy()),
            "{error}"
        );
    }
}
