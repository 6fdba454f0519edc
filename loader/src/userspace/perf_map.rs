// SPDX-License-Identifier: GPL-2.0-or-later

//! Names of code made at run time: `/tmp/perf-PID.map`, a line `START SIZE NAME` for each function, in hex, as `perf` reads it. The file
//! grows while the program runs.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::host::clock;
use crate::userspace::locate;

/// Larger files are read up to here, in bytes.
const MAX_BYTES: u64 = 256 << 20;
/// Nanoseconds between two looks at a file that did not have a name.
const AGAIN: u64 = 1_000_000_000;
/// Processes whose names are kept.
const MOST: usize = 64;

#[derive(Debug, Default)]
struct Map {
    /// Start, size, name; by start.
    functions: Vec<(u64, u64, Vec<u8>)>,
    read: u64,
}

/// The maps of all processes.
#[derive(Debug, Default)]
pub struct PerfMaps {
    maps: HashMap<u32, Map>,
}

impl PerfMaps {
    /// Name of the function of the process at the address, offset in it and its size.
    pub fn find(&mut self, process: u32, address: u64) -> Option<(&[u8], u64, u64)> {
        if self.maps.len() >= MOST && !self.maps.contains_key(&process) {
            self.maps.clear();
        }
        let map = self.maps.entry(process).or_default();
        let now = clock::now();
        if map.find(address).is_none() && (map.read == 0 || now.saturating_sub(map.read) > AGAIN) {
            map.functions = open(process).map(read).unwrap_or_default();
            map.read = now;
        }
        map.find(address)
    }
}

impl Map {
    fn find(&self, address: u64) -> Option<(&[u8], u64, u64)> {
        let behind = self.functions.partition_point(|(start, ..)| *start <= address);
        let (start, bytes, name) = self.functions.get(behind.checked_sub(1)?)?;
        let offset = address - start;
        (offset < *bytes).then_some((name.as_slice(), offset, *bytes))
    }
}

/// Opens the file in the namespaces of the process or, if that has ended, in ours. It must belong to that user or root,
/// because any user may write to /tmp. Links are not followed: they could lead to a file of root's, or to a file system
/// that does not answer.
fn open(process: u32) -> Option<File> {
    let own = fs::metadata(format!("/proc/{process}")).ok().map(|found| found.uid());
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let inside = status.lines().find_map(|line| line.strip_prefix("NSpid:")?.split_whitespace().last());
    let inside = inside.map(|number| PathBuf::from(format!("/proc/{process}/root/tmp/perf-{number}.map")));
    // Here /tmp itself is root's, and may be a link.
    let tmp = fs::canonicalize("/tmp").unwrap_or_default();
    let paths = inside.into_iter().chain([tmp.join(format!("perf-{process}.map"))]);
    paths.filter_map(|path| locate::open_foreign(&path)).find(|file| {
        let owner = file.metadata().map(|found| found.uid());
        owner.is_ok_and(|owner| owner == 0 || own.is_none_or(|own| own == owner))
    })
}

fn read(file: File) -> Vec<(u64, u64, Vec<u8>)> {
    let mut text = Vec::new();
    let _ = file.take(MAX_BYTES).read_to_end(&mut text);
    parse(&text)
}

fn parse(text: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
    let number = |field: &[u8]| {
        let text = std::str::from_utf8(field).ok()?;
        u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
    };
    let lines = text.split(|byte| *byte == b'\n').filter_map(|line| {
        let mut fields = line.splitn(3, |byte| *byte == b' ');
        Some((number(fields.next()?)?, number(fields.next()?)?, fields.next()?.to_vec()))
    });
    let mut functions: Vec<_> = lines.collect();
    // If code has replaced other code, the last entry is valid.
    functions.reverse();
    functions.sort_by_key(|(start, ..)| *start);
    functions.dedup_by_key(|(start, ..)| *start);
    functions
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
        let plain = open(std::process::id()).map(read);
        fs::remove_file(&path).unwrap();
        assert_eq!((linked, plain), (false, Some(vec![(0x1000, 0x10, b"f".to_vec())])));
    }

    #[test]
    fn the_last_function_at_a_place_counts() {
        let functions = parse(b"2000 10 old\n1000 20 py::f:/a b.py\nbad\n2000 30 new\n");
        let map = Map { functions, read: 1 };
        assert_eq!(map.find(0x1008), Some((&b"py::f:/a b.py"[..], 8, 0x20)));
        assert_eq!(map.find(0x2020), Some((&b"new"[..], 0x20, 0x30)));
        assert_eq!(map.find(0x1020), None);
        assert_eq!(map.find(0xfff), None);
    }
}
