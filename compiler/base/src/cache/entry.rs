// SPDX-License-Identifier: GPL-2.0-or-later

//! The format of an entry.
//!
//!     spile-cache 1\n  SHA-256 of the rest (32 bytes)
//!     about: u32 length, UTF-8
//!     count of parts: u32; each: u32 length of the name, name, u64 length, bytes        (numbers are little-endian)

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::unfinished::NewFile;

const MAGIC: &[u8; 14] = b"spile-cache 1\n";
const DIGEST: usize = 32;
/// The part of an entry that consists of a single file.
pub const FILE_PART: &str = "file";
/// Maximum length of `about`, so that listings need not read whole entries.
const ABOUT: usize = 400;
/// Bytes that are written at once. The system caches a file in pieces as large as those that were written (large folios), and since
/// Linux 6.18 maps a whole one where a byte of it is read: of what is mapped few places are.
const PIECE: usize = 1 << 16;

/// Named parts and a description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    about: String,
    parts: BTreeMap<String, Vec<u8>>,
}

impl Entry {
    /// `about` is one line for `--cache show`; truncated if too long.
    pub fn new(about: &str) -> Entry {
        let line: String = about.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let end = (0..=ABOUT.min(line.len())).rev().find(|end| line.is_char_boundary(*end)).unwrap_or(0);
        Entry { about: line[..end].to_string(), parts: BTreeMap::new() }
    }

    /// Adds a part, for [`Entry::part`].
    #[must_use]
    pub fn with(mut self, name: &str, bytes: impl Into<Vec<u8>>) -> Entry {
        self.parts.insert(name.to_string(), bytes.into());
        self
    }

    /// The description, for people.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// The bytes of a part; None if there is no part of this name.
    pub fn part(&self, name: &str) -> Option<&[u8]> {
        self.parts.get(name).map(Vec::as_slice)
    }

    /// The bytes of a part, which it then has no more.
    pub fn take(&mut self, name: &str) -> Option<Vec<u8>> {
        self.parts.remove(name)
    }

    /// A part as text.
    pub fn text(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.part(name)?).ok()
    }

    /// The names of parts that have this prefix, without it.
    pub fn names_below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        self.parts.keys().filter_map(move |name| name.strip_prefix(prefix))
    }

    /// Takes the parts whose name has this prefix, with the prefix removed.
    pub fn take_below(&mut self, prefix: &str) -> Vec<(String, Vec<u8>)> {
        let names: Vec<String> = self.parts.keys().filter(|name| name.starts_with(prefix)).cloned().collect();
        let taken = names.into_iter().filter_map(|name| self.parts.remove_entry(&name));
        taken.filter_map(|(name, bytes)| Some((name.strip_prefix(prefix)?.to_string(), bytes))).collect()
    }

    /// Writes it atomically to a file outside any cache. Returns its size. Errors: those of the system; there is something of this
    /// name that is no regular file.
    pub fn save(&self, path: &Path) -> std::io::Result<u64> {
        crate::read::can_be_replaced(path)?;
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = NewFile::in_directory(directory, ".spile")?;
        self.write(file.file())?;
        let size = file.file().metadata()?.len();
        file.file().set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
        file.persist(path)?;
        Ok(size)
    }

    /// Reads a saved entry; None: not an entry, or damaged.
    pub fn load(path: &Path) -> std::io::Result<Option<Entry>> {
        let file = crate::read::open(path)?;
        Ok(if file.metadata()?.is_file() { read(file) } else { None })
    }

    /// Writes the entry as [`Entry::load`] reads it: magic, checksum, description, parts.
    pub(super) fn write(&self, file: &mut File) -> std::io::Result<()> {
        let mut body = Vec::with_capacity(self.parts.values().map(|bytes| bytes.len() + 64).sum::<usize>() + ABOUT);
        put_text(&mut body, &self.about);
        body.extend((self.parts.len() as u32).to_le_bytes());
        for (name, bytes) in &self.parts {
            put_text(&mut body, name);
            body.extend((bytes.len() as u64).to_le_bytes());
            body.extend(bytes);
        }
        file.write_all(MAGIC)?;
        file.write_all(Sha256::digest(&body).as_slice())?;
        body.chunks(PIECE).try_for_each(|piece| file.write_all(piece))
    }
}

fn put_text(body: &mut Vec<u8>, text: &str) {
    body.extend((text.len() as u32).to_le_bytes());
    body.extend(text.as_bytes());
}

/// Writes an entry with the single part [`FILE_PART`], which `fill` writes.
pub(super) fn write_streamed(
    file: &mut File,
    about: &str,
    fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    put_text(&mut head, &Entry::new(about).about);
    head.extend(1u32.to_le_bytes());
    put_text(&mut head, FILE_PART);
    let length_at = (MAGIC.len() + DIGEST + head.len()) as u64;
    file.write_all(MAGIC)?;
    file.write_all(&[0; DIGEST])?;
    file.write_all(&head)?;
    file.write_all(&0u64.to_le_bytes())?;
    fill(&mut *file)?;
    let end = file.stream_position()?;
    file.seek(SeekFrom::Start(length_at))?;
    file.write_all(&end.saturating_sub(length_at + 8).to_le_bytes())?;
    file.flush()?;
    // The digest covers everything after it, so it is written last.
    file.seek(SeekFrom::Start((MAGIC.len() + DIGEST) as u64))?;
    let mut digest = Sha256::new();
    let mut block = vec![0; 1 << 17];
    loop {
        match file.read(&mut block)? {
            0 => break,
            read => digest.update(block.get(..read).unwrap_or_default()),
        }
    }
    file.seek(SeekFrom::Start(MAGIC.len() as u64))?;
    file.write_all(digest.finalize().as_slice())
}

/// Opens the file in an entry of the cache, by the entry's path. None: not such an entry.
pub fn file_in(entry: &File) -> Option<Mapped> {
    map(entry, FILE_PART)
}

/// None: not an entry, or damaged.
pub(super) fn read(file: File) -> Option<Entry> {
    let left = file.metadata().ok()?.len().checked_sub((MAGIC.len() + DIGEST) as u64)?;
    let mut file = BufReader::new(file);
    let mut head = [0; MAGIC.len() + DIGEST];
    file.read_exact(&mut head).ok()?;
    let digest = head.strip_prefix(MAGIC)?;
    // Each part is read to where it stays: those of a runtime have a megabyte.
    let mut body = Hashed { file, left, hash: Sha256::new() };
    let mut entry = Entry { about: body.text()?, parts: BTreeMap::new() };
    for _ in 0..body.u32()? {
        let name = body.text()?;
        let length = body.u64()?;
        entry.parts.insert(name, body.take(length)?);
    }
    (body.left == 0 && body.hash.finalize().as_slice() == digest).then_some(entry)
}

/// The rest of an entry while it is read.
struct Hashed {
    file: BufReader<File>,
    /// Bytes that follow.
    left: u64,
    /// Of what was read.
    hash: Sha256,
}

impl Hashed {
    /// None: the file is too short.
    fn take(&mut self, length: u64) -> Option<Vec<u8>> {
        self.left = self.left.checked_sub(length)?;
        let mut bytes = Vec::new();
        // A damaged file may be huge and have no blocks.
        bytes.try_reserve_exact(usize::try_from(length).ok()?).ok()?;
        let read = (&mut self.file).take(length).read_to_end(&mut bytes).ok()?;
        self.hash.update(&bytes);
        (read as u64 == length).then_some(bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<String> {
        let length = self.u32()?.into();
        String::from_utf8(self.take(length)?).ok()
    }
}

/// The bytes of one part, mapped from the file of its entry.
#[derive(Debug)]
pub struct Mapped {
    map: memmap2::Mmap,
    range: std::ops::Range<usize>,
}

impl std::ops::Deref for Mapped {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.map.get(self.range.clone()).unwrap_or_default()
    }
}

impl Mapped {
    /// Calls `see` with the bytes in order, piece by piece. The pages of a piece are given back to the system after it, which
    /// reads them again where they are used: what is looked at once takes no memory afterwards.
    pub fn each_piece(&self, mut see: impl FnMut(&[u8])) {
        const PIECE: usize = 1 << 20;
        let mut at = self.range.start;
        while at < self.range.end {
            // Pieces end where pages do.
            let end = ((at / PIECE + 1) * PIECE).min(self.range.end);
            see(self.map.get(at..end).unwrap_or_default());
            let start = at / PIECE * PIECE;
            // SAFETY: the map is of a file, and nothing is written to it: the same bytes are read again from that.
            let _ = unsafe { self.map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, end - start) };
            at = end;
        }
    }
}

/// None: there is no such part, or the entry is damaged; the digest is not checked.
pub(super) fn map(file: &File, part: &str) -> Option<Mapped> {
    // SAFETY: the map is only read. Entries are never modified, only replaced by rename or removed, and no other user
    // can write to the cache (`place::usable`).
    let map = unsafe { memmap2::Mmap::map(file) }.ok()?;
    let body = map.strip_prefix(MAGIC)?.get(DIGEST..)?;
    let mut reader = Reader(body);
    reader.text()?;
    for _ in 0..reader.u32()? {
        let name = reader.text()?;
        let length = usize::try_from(reader.u64()?).ok()?;
        let start = map.len() - reader.0.len();
        reader.take(length)?;
        if name == part {
            return Some(Mapped { range: start..start + length, map });
        }
    }
    None
}

/// The description of an entry, read from its start only. None: not an entry.
pub(super) fn read_about(file: File) -> Option<String> {
    let mut bytes = Vec::new();
    file.take((MAGIC.len() + DIGEST + 4 + ABOUT) as u64).read_to_end(&mut bytes).ok()?;
    Reader(bytes.strip_prefix(MAGIC)?.get(DIGEST..)?).text()
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<String> {
        let length = self.u32()? as usize;
        String::from_utf8(self.take(length)?.to_vec()).ok()
    }
}
