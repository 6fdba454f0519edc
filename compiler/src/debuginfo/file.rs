//! The bytes of an object file: mapped, or unpacked when the file is compressed as modules may be.

use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Deref;
use std::path::Path;

use super::error::Error;
use super::{image, xz};
use crate::cache;

/// Unpacked sizes beyond this are taken for damage: the largest modules with debug information have some 300 MB.
const MAX_UNPACKED: u64 = 2 << 30;

/// Bytes that stay where they are for as long as this value lives.
#[derive(Debug)]
pub enum Bytes {
    Mapped(memmap2::Mmap),
    /// Within an entry of the cache.
    Kept(cache::Mapped),
    Unpacked(Vec<u8>),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Kept(kept) => kept,
            Bytes::Unpacked(bytes) => bytes,
        }
    }
}

/// The file's contents; `.xz`, `.gz` and `.zst` are known by their first bytes, whatever the name says.
pub fn open(path: &Path) -> Result<Bytes, Error> {
    let file = File::open(path).map_err(Error::read(path))?;
    let metadata = file.metadata().map_err(Error::read(path))?;
    if !metadata.is_file() {
        return Err(Error::Elf { path: path.into(), message: "not a regular file".into() });
    }
    if metadata.len() == 0 {
        return Ok(Bytes::Unpacked(Vec::new()));
    }
    // SAFETY: the map is only read. A package manager replaces debug files by rename, which leaves the mapped inode as
    // it is; a file that somebody truncates while it is read would raise SIGBUS, as in every tool that maps it.
    let Ok(map) = (unsafe { memmap2::Mmap::map(&file) }) else {
        // sysfs lets its files be read, not mapped (`/sys/kernel/btf` before 6.16).
        return std::fs::read(path).map(Bytes::Unpacked).map_err(Error::read(path));
    };
    if map.starts_with(b"spile-cache") {
        let nothing = || Error::Unpack { path: path.into(), message: "an entry of the cache that is no file".into() };
        return cache::file_in(&file).map(Bytes::Kept).ok_or_else(nothing);
    }
    unpack(&map).map_or(Ok(Bytes::Mapped(map)), |unpacked| {
        unpacked.map(Bytes::Unpacked).map_err(|message| Error::Unpack { path: path.into(), message })
    })
}

/// None if the bytes are not compressed.
fn unpack(packed: &[u8]) -> Option<Result<Vec<u8>, String>> {
    let unpacked = match packed {
        [0x1f, 0x8b, ..] => read_all(flate2::read::MultiGzDecoder::new(packed)),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] if xz::is_filtered(packed) => xz::unpack(packed, || Limited(Vec::new()), |out| out.0),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => unpack_xz(packed),
        // The header of the older format: properties, and the dictionary's size, a power of two.
        [0x5d, 0, 0, ..] => unpack_lzma(packed),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            ruzstd::decoding::StreamingDecoder::new(packed).map_err(|error| error.to_string()).and_then(read_all)
        }
        [first, second, third, fourth, ..] if [*first, *second, *third, *fourth] == image::LZ4_MAGIC => image::unpack_lz4(packed, MAX_UNPACKED),
        _ if image::is_image(packed) => {
            let payload = image::payload(packed).ok_or_else(|| "a boot image without a kernel".to_string());
            payload.and_then(|payload| unpack(payload).unwrap_or_else(|| Err("a kernel compressed in a way that is not known".into())))
        }
        _ => return None,
    };
    Some(unpacked)
}

fn read_all(reader: impl Read) -> Result<Vec<u8>, String> {
    let mut unpacked = Vec::new();
    let length = reader.take(MAX_UNPACKED + 1).read_to_end(&mut unpacked).map_err(|error| error.to_string())?;
    if length as u64 > MAX_UNPACKED { Err(too_large().to_string()) } else { Ok(unpacked) }
}

fn unpack_xz(mut packed: &[u8]) -> Result<Vec<u8>, String> {
    let mut unpacked = Limited(Vec::new());
    lzma_rs::xz_decompress(&mut packed, &mut unpacked).map_err(|error| format!("{error:?}"))?;
    Ok(unpacked.0)
}

fn unpack_lzma(mut packed: &[u8]) -> Result<Vec<u8>, String> {
    let mut unpacked = Limited(Vec::new());
    lzma_rs::lzma_decompress(&mut packed, &mut unpacked).map_err(|error| format!("{error:?}"))?;
    Ok(unpacked.0)
}

fn too_large() -> io::Error {
    io::Error::other(format!("more than {MAX_UNPACKED} bytes unpacked"))
}

/// Takes no more than [`MAX_UNPACKED`] bytes.
struct Limited(Vec<u8>);

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() as u64 + bytes.len() as u64 > MAX_UNPACKED {
            return Err(too_large());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(bytes: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), bytes).expect("written");
        file
    }

    fn packed() -> Vec<Vec<u8>> {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(&b"contents ".repeat(100)).expect("packed");
        let mut xz = Vec::new();
        lzma_rs::xz_compress(&mut &b"contents ".repeat(100)[..], &mut xz).expect("packed");
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        let zstd = ruzstd::encoding::compress_to_vec(&b"contents ".repeat(100)[..], level);
        let mut lzma = Vec::new();
        lzma_rs::lzma_compress(&mut &b"contents ".repeat(100)[..], &mut lzma).expect("packed");
        vec![gzip.finish().expect("packed"), xz, zstd, lzma]
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
                // Not each format has a checksum that every flipped bit disturbs; none may end in a panic.
                let _ = unpack(&flipped);
            }
        }
    }
}
