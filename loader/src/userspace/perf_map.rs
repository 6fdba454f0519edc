// SPDX-License-Identifier: GPL-2.0-or-later

//! Names of code made at run time: `/tmp/perf-PID.map`, a line `START SIZE NAME` for each function, in hex, as `perf` reads it. The file
//! grows while the program runs. Any user can write one: what is read and kept is bounded, and the time for it.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::host::clock;
use crate::userspace::{locate, mounts};

/// Larger files are read up to here, in bytes, and lines.
const MAX_BYTES: u64 = 64 << 20;
const MAX_LINES: usize = 1 << 20;
/// Bytes of all maps together; beyond it all are forgotten.
const MAX_KEPT: usize = 256 << 20;
/// Nanoseconds between two looks at a file that did not have a name.
const AGAIN: u64 = 1_000_000_000;
/// Nanoseconds for reading files: at most so many at once, and a part of the time that passes.
const MOST_CREDIT: u64 = 2_000_000_000;
const CREDIT_PART: u64 = 4;
/// Processes whose names are kept.
const MOST: usize = 64;

/// A function; its name is in the text of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Function {
    start: u64,
    bytes: u64,
    name: (u32, u32),
}

/// The functions of a process, by start.
#[derive(Debug, Default)]
struct Map {
    text: Vec<u8>,
    functions: Vec<Function>,
    /// When it was read; 0: never.
    read: u64,
}

/// The maps of all processes.
#[derive(Debug)]
pub struct PerfMaps {
    maps: HashMap<u32, Map>,
    /// Bytes of them.
    kept: usize,
    /// Nanoseconds left at that time for reading files; without any none is read.
    credit: u64,
    at: u64,
}

impl Default for PerfMaps {
    fn default() -> PerfMaps {
        PerfMaps { maps: HashMap::new(), kept: 0, credit: MOST_CREDIT, at: 0 }
    }
}

impl PerfMaps {
    /// Name of the function of the process at the address, offset in it and its size.
    pub fn find(&mut self, process: u32, address: u64) -> Option<(&[u8], u64, u64)> {
        if self.maps.len() >= MOST && !self.maps.contains_key(&process) || self.kept > MAX_KEPT {
            self.maps.clear();
            self.kept = 0;
        }
        let map = self.maps.entry(process).or_default();
        let now = clock::now();
        let is_due = map.read == 0 || now.saturating_sub(map.read) > AGAIN;
        if is_due && map.find(address).is_none() {
            let gained = now.saturating_sub(self.at) / CREDIT_PART;
            (self.credit, self.at) = (self.credit.saturating_add(gained).min(MOST_CREDIT), now);
            if self.credit == 0 {
                return None;
            }
            self.kept = self.kept.saturating_sub(map.bytes());
            // Not both in memory at the same time.
            *map = Map::default();
            *map = open(process).map(read).unwrap_or_default();
            self.kept += map.bytes();
            map.read = clock::now();
            self.credit = self.credit.saturating_sub(map.read.saturating_sub(now));
            self.at = map.read;
        }
        map.find(address)
    }
}

impl Map {
    fn parse(text: Vec<u8>) -> Map {
        let number = |field: &[u8]| {
            let text = std::str::from_utf8(field).ok()?;
            u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
        };
        let mut at = 0;
        let lines = text.split(|byte| *byte == b'\n').take(MAX_LINES).filter_map(|line| {
            let end = at + line.len();
            at = end + 1;
            let mut fields = line.splitn(3, |byte| *byte == b' ');
            let (start, bytes) = (number(fields.next()?)?, number(fields.next()?)?);
            let length = fields.next()?.len();
            Some(Function { start, bytes, name: (u32::try_from(end - length).ok()?, u32::try_from(length).ok()?) })
        });
        let mut functions: Vec<_> = lines.collect();
        // If code has replaced other code, the last entry is valid.
        functions.reverse();
        functions.sort_by_key(|function| function.start);
        functions.dedup_by_key(|function| function.start);
        functions.shrink_to_fit();
        Map { text, functions, read: 0 }
    }

    /// What it takes of the memory.
    fn bytes(&self) -> usize {
        self.text.capacity() + self.functions.capacity() * size_of::<Function>()
    }

    fn find(&self, address: u64) -> Option<(&[u8], u64, u64)> {
        let behind = self.functions.partition_point(|function| function.start <= address);
        let Function { start, bytes, name: (at, length) } = *self.functions.get(behind.checked_sub(1)?)?;
        let offset = address - start;
        let name = self.text.get(at as usize..)?.get(..length as usize)?;
        (offset < bytes).then_some((name, offset, bytes))
    }
}

/// The user whose files a process makes, by its `status`. Not the owner of its directory: any process can make that root.
fn creator(status: &str) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().nth(3)?.parse().ok())
}

/// Opens the file in the namespaces of the process or, if that has ended, in ours. It must belong to that user or root,
/// because any user may write to /tmp; where users may mount, a file of root's can be any one. Links are not followed: they could lead to a file of root's, or to a file system
/// that does not answer.
fn open(process: u32) -> Option<File> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let own = creator(&status);
    let inside = status.lines().find_map(|line| line.strip_prefix("NSpid:")?.split_whitespace().last());
    let inside = inside.map(|number| PathBuf::from(format!("/proc/{process}/root/tmp/perf-{number}.map")));
    // Here /tmp itself is root's, and may be a link.
    let tmp = fs::canonicalize("/tmp").unwrap_or_default();
    let inside = inside.map(|path| (path, mounts::are_trusted(process)));
    let paths = inside.into_iter().chain([(tmp.join(format!("perf-{process}.map")), true)]);
    let opened = paths.filter_map(|(path, is_trusted)| Some((locate::open_foreign(&path)?, is_trusted)));
    let mut wanted = opened.filter(|(file, is_trusted)| {
        let owner = file.metadata().map(|found| found.uid());
        owner.is_ok_and(|owner| owner == 0 && *is_trusted || own.map_or(*is_trusted, |own| own == owner))
    });
    wanted.next().map(|(file, _)| file)
}

fn read(file: File) -> Map {
    let mut text = Vec::new();
    let _ = file.take(MAX_BYTES).read_to_end(&mut text);
    text.shrink_to_fit();
    Map::parse(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_instead_of_the_file_is_not_followed() {
        let other = tempfile::NamedTempFile::new().unwrap();
        let path = PathBuf::from(format!("/tmp/perf-{}.map", std::process::id()));
        let _ = fs::remove_file(&path);
        std::os::unix::fs::symlink(other.path(), &path).unwrap();
        let linked = open(std::process::id()).is_some();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "1000 10 f\n").unwrap();
        let plain = open(std::process::id()).map(read).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(!linked);
        assert_eq!(plain.find(0x1008), Some((&b"f"[..], 8, 0x10)));
    }

    #[test]
    fn the_last_function_at_a_place_counts() {
        let map = Map::parse(b"2000 10 old\n1000 20 py::f:/a b.py\nbad\n2000 30 new\n".to_vec());
        assert_eq!(map.find(0x1008), Some((&b"py::f:/a b.py"[..], 8, 0x20)));
        assert_eq!(map.find(0x2020), Some((&b"new"[..], 0x20, 0x30)));
        assert_eq!(map.find(0x1020), None);
        assert_eq!(map.find(0xfff), None);
    }

    #[test]
    fn short_lines_take_no_more_memory_than_others() {
        let map = Map::parse(b"0 1 \n".repeat(3 * MAX_LINES));
        assert_eq!(map.functions.capacity(), 1);
        let lines: String = (0..2 * MAX_LINES).map(|at| format!("{at:x} 1 \n")).collect();
        let map = Map::parse(lines.into_bytes());
        assert_eq!(map.functions.len(), MAX_LINES);
    }

    #[test]
    fn no_file_is_read_when_reading_took_too_long() {
        let read = |maps: &mut PerfMaps, process| {
            maps.find(process, 1);
            maps.maps[&process].read != 0
        };
        let mut maps = PerfMaps { credit: 0, at: u64::MAX, ..PerfMaps::default() };
        assert!(!read(&mut maps, 1));
        // Time has passed.
        maps.at = 0;
        assert!(read(&mut maps, 1) && read(&mut maps, 2));
    }
}
