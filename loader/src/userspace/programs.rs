// SPDX-License-Identifier: GPL-2.0-or-later

//! Names of frames of user space.

use std::collections::HashMap;
use std::fmt::Write as _;

use spile_abi::bounded;

use crate::records::user::{Frame, FrameName, MAX_TEXT, Names};
use crate::userspace::files::Files;
use crate::userspace::image::Segment;
use crate::userspace::lines::Lines;
use crate::userspace::perf_map::PerfMaps;
use crate::userspace::symbols::Table;

/// Maximum number of bytes of cached symbols and lines; beyond it the cache is emptied. A program as large as a browser takes
/// some hundred MB.
const MOST_KEPT: usize = 1 << 30;

#[derive(Debug)]
struct Program {
    shown: Vec<u8>,
    segments: Vec<Segment>,
    symbols: Table,
    build_id: Vec<u8>,
    /// Read when they are asked for.
    lines: Option<Lines>,
}

impl Program {
    /// The address that the file itself has for an offset in it.
    fn address(&self, offset: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| segment.address_of(offset))
    }
}

/// The programs of a session.
#[derive(Debug)]
pub struct Programs<'f> {
    files: &'f Files<'f>,
    /// `None`: the file cannot be parsed.
    programs: HashMap<u32, Option<Program>>,
    /// Bytes of them.
    kept: usize,
    maps: PerfMaps,
}

impl<'f> Programs<'f> {
    /// `files`: of the session.
    pub fn new(files: &'f Files<'f>) -> Programs<'f> {
        Programs { files, programs: HashMap::new(), kept: 0, maps: PerfMaps::default() }
    }

    fn program(&mut self, id: u32, may_read: bool) -> Option<&mut Program> {
        if self.kept > MOST_KEPT {
            self.programs.clear();
            self.kept = 0;
        }
        if !self.programs.contains_key(&id) {
            let program = may_read.then(|| self.read(id))??;
            self.kept += program.as_ref().map_or(0, |program| program.symbols.bytes());
            self.programs.insert(id, program);
        }
        self.programs.get_mut(&id)?.as_mut()
    }

    /// `None`: it cannot be opened now.
    fn read(&self, id: u32) -> Option<Option<Program>> {
        use std::os::unix::ffi::OsStrExt;
        let known = self.files.get(id)?;
        Some(known.image()?.with(|elf| Program {
            shown: known.shown.as_os_str().as_bytes().to_vec(),
            segments: elf.segments(),
            symbols: Table::of(elf, &known.shown),
            build_id: elf.build_id(),
            lines: None,
        }))
    }

    fn of_file(&mut self, id: u32, offset: u64, frame: Frame, may_read: bool) -> FrameName {
        let files = self.files;
        let Some(program) = self.program(id, may_read) else {
            return FrameName {
                file: files.device().file(id).map(|file| match (file.inode, file.device) {
                    (0, 0) => b"[vdso]".to_vec(),
                    _ => shown(&file),
                }),
                offset,
                ..FrameName::default()
            };
        };
        let mut found = FrameName {
            file: Some(program.shown.clone()),
            build_id: program.build_id.clone(),
            offset,
            is_certain: may_read || !frame.lines,
            ..FrameName::default()
        };
        // The call is before the return address, and may be the last instruction of its function.
        let Some(code) = offset.checked_sub(frame.returns.into()).and_then(|offset| program.address(offset)) else {
            return found;
        };
        if let Some(at) = program.symbols.find(code) {
            found.name = Some(demangled(at.name));
            found.offset = at.offset.saturating_add(frame.returns.into());
            found.bytes = at.bytes;
        }
        let mut kept = 0;
        if frame.lines && may_read {
            if program.lines.is_none() {
                let image = files.get(id).and_then(|known| Some((known.image()?, known)));
                let lines = image.map(|(image, known)| Lines::of(&image, &known.shown)).unwrap_or_default();
                kept = lines.bytes();
                program.lines = Some(lines);
            }
            if let Some(lines) = &mut program.lines {
                let before = lines.bytes();
                found.line = lines.find(code);
                kept += lines.bytes().saturating_sub(before);
            }
        }
        self.kept += kept;
        found
    }
}

/// Of a file that cannot be read.
fn shown(file: &spile_abi::device::File) -> Vec<u8> {
    file.path.split(|byte| *byte == 0).next().unwrap_or_default().to_vec()
}

impl Names for Programs<'_> {
    fn find(&mut self, frame: Frame, may_read: bool) -> FrameName {
        self.uncut(frame, may_read).cut()
    }
}

impl Programs<'_> {
    fn uncut(&mut self, frame: Frame, may_read: bool) -> FrameName {
        if let Some((id, offset)) = frame.place.file() {
            return self.of_file(id, offset, frame, may_read);
        }
        let code = frame.address.saturating_sub(frame.returns.into());
        let function = frame.place.process().and_then(|process| self.maps.find(process, code));
        function.map_or_else(FrameName::default, |(name, offset, bytes)| FrameName {
            name: Some(name.to_vec()),
            offset: offset.saturating_add(frame.returns.into()),
            bytes,
            ..FrameName::default()
        })
    }
}

/// As in the source; names that are not mangled, or too long, as they are. C++ only with the feature `source`.
fn demangled(name: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(name).ok().filter(|text| text.len() <= MAX_TEXT);
    let found = text.and_then(|text| match rustc_demangle::try_demangle(text) {
        Ok(rust) => bounded::text(MAX_TEXT, |out| write!(out, "{rust:#}")),
        Err(_) => cxx(text),
    });
    found.map_or_else(|| name.to_vec(), String::into_bytes)
}

#[cfg(feature = "source")]
fn cxx(name: &str) -> Option<String> {
    let symbol = name.starts_with("_Z").then(|| cpp_demangle::Symbol::new(name).ok()).flatten()?;
    bounded::text(MAX_TEXT, |out| symbol.structured_demangle(out, &cpp_demangle::DemangleOptions::new()))
}

#[cfg(not(feature = "source"))]
fn cxx(_: &str) -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_source() {
        let shown = |name: &str| String::from_utf8(demangled(name.as_bytes())).unwrap();
        if cfg!(feature = "source") {
            assert_eq!(shown("_ZN6Widget4spinEi"), "Widget::spin(int)");
        }
        assert_eq!(shown("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE"), "core::fmt::Formatter::pad");
        assert_eq!(shown("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(shown("_Zx!"), "_Zx!");
        assert_eq!(shown("write"), "write");
        let doubled = |most| (0..most).map(|at: u8| format!("S{}_S{}_", char::from(b'0' + at), char::from(b'0' + at)));
        let long = format!("_Z1f1pIiiE{}", doubled(10).map(|twice| format!("S_I{twice}E")).collect::<String>());
        assert!(shown(&long).len() <= MAX_TEXT);
    }
}
