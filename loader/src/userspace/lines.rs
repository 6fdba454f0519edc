// SPDX-License-Identifier: GPL-2.0-or-later

//! Source lines of a file, from its DWARF or that of its separate debug file. All of it is read when the first line of a file is asked for.
//!
//! Only with the feature `source`, which `spile` has; the static `spilerun` has none.

#[cfg(feature = "source")]
pub use dwarf::Lines;
#[cfg(not(feature = "source"))]
pub use none::Lines;

#[cfg(not(feature = "source"))]
mod none {
    use std::path::Path;

    use crate::userspace::image::Image;

    /// None of any file.
    #[derive(Debug, Default)]
    pub struct Lines;

    impl Lines {
        /// Of any file.
        pub fn of(_: &Image, _: &Path) -> Lines {
            Lines
        }

        /// Bytes of memory.
        #[allow(clippy::unused_self, reason = "as the other")]
        pub fn bytes(&self) -> usize {
            0
        }

        /// Not known.
        #[allow(clippy::unused_self, reason = "as the other")]
        pub fn find(&self, _: u64) -> Option<(Vec<u8>, u32)> {
            None
        }
    }
}

#[cfg(feature = "source")]
mod dwarf {
    use std::path::Path;

    use addr2line::Context;
    use gimli::{Dwarf, EndianArcSlice, LittleEndian, SectionId};

    use crate::userspace::image::{Elf, Image};
    use crate::userspace::symbols;

    type Slice = EndianArcSlice<LittleEndian>;

    /// Line information of more bytes than this in a file is not read.
    const MAX_DWARF: usize = 512 << 20;
    /// Nor that of a file with more ranges of addresses: all units may have the same list, and each range is kept.
    const MAX_RANGES: usize = 4 << 20;

    /// Source lines of a file; none if it has no debug information.
    #[derive(Default)]
    pub struct Lines {
        context: Option<Context<Slice>>,
        bytes: usize,
    }

    impl std::fmt::Debug for Lines {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.debug_struct("Lines").field("known", &self.context.is_some()).finish()
        }
    }

    impl Lines {
        /// Of the file at this path, or of its debug file.
        pub fn of(image: &Image, path: &Path) -> Lines {
            let own = image.with(context).flatten();
            let context = own.or_else(|| {
                let file = image.with(|elf| symbols::debug_file(elf, path)).flatten()?;
                Image::of(file).with(context).flatten()
            });
            let (context, bytes) = context.unzip();
            Lines { context, bytes: bytes.unwrap_or_default() }
        }

        /// Bytes of the debug information, which stays in memory.
        pub fn bytes(&self) -> usize {
            self.bytes
        }

        /// File and line of the code at the address, as in the file.
        pub fn find(&self, address: u64) -> Option<(Vec<u8>, u32)> {
            let location = self.context.as_ref()?.find_location(address).ok().flatten()?;
            Some((location.file?.as_bytes().to_vec(), location.line?))
        }
    }

    /// Whether all units together have at most so many ranges.
    fn is_bounded(dwarf: &Dwarf<Slice>, most: usize) -> gimli::Result<bool> {
        let (mut left, mut units) = (most, dwarf.units());
        while let Some(header) = units.next()? {
            // Those that cannot be read are passed over, as by addr2line.
            let Ok(unit) = dwarf.unit(header) else { continue };
            let Ok(mut ranges) = dwarf.unit_ranges(&unit) else { continue };
            while let Ok(Some(_)) = ranges.next() {
                let Some(rest) = left.checked_sub(1) else { return Ok(false) };
                left = rest;
            }
        }
        Ok(true)
    }

    /// With the bytes that it keeps.
    fn context(elf: &dyn Elf) -> Option<(Context<Slice>, usize)> {
        elf.section(".debug_info")?;
        let mut left = MAX_DWARF;
        let load = |id: SectionId| -> Result<Slice, gimli::Error> {
            let data = elf
                .section(id.name())
                .map(|section| section.data)
                .filter(|data| data.len() <= left)
                .unwrap_or_default();
            left -= data.len();
            Ok(EndianArcSlice::new(data.into(), LittleEndian))
        };
        let dwarf = Dwarf::load(load).ok()?;
        if !is_bounded(&dwarf, MAX_RANGES).ok()? {
            return None;
        }
        Some((Context::from_dwarf(dwarf).ok()?, MAX_DWARF - left))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        /// So many units of DWARF 4 that share one list of so many ranges.
        fn units_with_one_list(units: usize, ranges: u64) -> Dwarf<Slice> {
            // DW_TAG_compile_unit without children, DW_AT_ranges as DW_FORM_sec_offset.
            let abbreviations = [1, 0x11, 0, 0x55, 0x17, 0, 0, 0].to_vec();
            let unit = [&12_u32.to_le_bytes()[..], &4_u16.to_le_bytes(), &[0; 4], &[8, 1], &[0; 4]].concat();
            let list = (1..=ranges).flat_map(|at| [at << 4, (at << 4) + 8]).chain([0, 0]);
            let list: Vec<u8> = list.flat_map(u64::to_le_bytes).collect();
            let load = |id: SectionId| -> Result<Slice, gimli::Error> {
                let data = match id {
                    SectionId::DebugAbbrev => abbreviations.clone(),
                    SectionId::DebugInfo => unit.repeat(units),
                    SectionId::DebugRanges => list.clone(),
                    _ => Vec::new(),
                };
                Ok(EndianArcSlice::new(data.into(), LittleEndian))
            };
            Dwarf::load(load).unwrap()
        }

        #[test]
        fn ranges_that_units_share_count_for_each() {
            assert!(is_bounded(&units_with_one_list(3, 5), 15).unwrap());
            assert!(!is_bounded(&units_with_one_list(3, 5), 14).unwrap());
        }
    }
}

#[cfg(all(test, feature = "source"))]
mod tests {
    use super::*;
    use crate::userspace::image::Image;
    use std::fs::File;
    use std::path::Path;

    #[test]
    fn a_function_has_a_line() {
        let image = Image::of(File::open("/proc/self/exe").unwrap());
        let lines = Lines::of(&image, Path::new("/proc/self/exe"));
        // Of a crate that has line tables in every profile (Cargo.toml); its mangled name.
        assert_eq!(spile_abi::escape::json("\n"), "\\u000a");
        let name = b"6escape4json";
        let symbols = image.with(|elf| elf.symbols(false)).unwrap();
        let found = symbols.iter().find(|symbol| symbol.name.windows(name.len()).any(|part| part == name)).unwrap();
        let (file, line) = lines.find(found.address).unwrap();
        assert!(file.ends_with(b"escape.rs") && line > 0, "{}:{line}", file.escape_ascii());
    }
}
