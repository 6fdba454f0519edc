// SPDX-License-Identifier: GPL-2.0-or-later

//! Files of real kernels to begin with, as far as they are installed: modules with BTF, modules with DWARF, and a kernel's BTF and
//! symbols, cut down. A whole kernel takes seconds, which would leave no time for different inputs.

use std::fs;
use std::path::{Path, PathBuf};

use spile_debuginfo as debuginfo;

use super::elf;

/// Modules of each kind.
const MODULES: usize = 4;
/// Largest file that is one of them, in bytes.
const LARGEST: u64 = 256 << 10;
/// Types that are kept of a kernel's, and bytes of their names.
const TYPES: usize = 400;
const NAMES: usize = 1 << 20;
/// Bytes that are kept of its symbols, of 24 each.
const SYMBOLS: usize = 24 * 300;

/// All that are installed.
pub fn files() -> Vec<Vec<u8>> {
    let modules = ["/lib/modules", "/usr/lib/debug/lib/modules"].map(Path::new).map(modules);
    modules.into_iter().flatten().chain(kernel()).collect()
}

fn names(directory: &Path) -> Vec<PathBuf> {
    let mut names: Vec<PathBuf> =
        fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    names.sort();
    names
}

/// The smallest of each kernel's `lib`, unpacked.
fn modules(top: &Path) -> Vec<Vec<u8>> {
    let mut found: Vec<(u64, PathBuf)> = names(top)
        .into_iter()
        .flat_map(|release| names(&release.join("kernel/lib")))
        .filter(|path| path.to_str().is_some_and(|path| path.contains(".ko")))
        .filter_map(|path| Some((fs::metadata(&path).ok()?.len(), path)))
        .filter(|(length, _)| *length <= LARGEST)
        .collect();
    found.sort();
    let unpacked = |(_, path): (u64, PathBuf)| {
        let bytes = fs::read(path).ok()?;
        match debuginfo::raw::unpacked(&bytes) {
            Some(unpacked) => unpacked.ok(),
            None => Some(bytes),
        }
    };
    found.into_iter().take(MODULES).filter_map(unpacked).collect()
}

/// From a package of headers, whose `vmlinux` has no code.
fn kernel() -> Option<Vec<u8>> {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().find(|path| path.join("target/headers").is_dir())?;
    let sources = names(&tree.join("target/headers")).into_iter().flat_map(|package| names(&package.join("usr/src")));
    let file = fs::read(sources.map(|source| source.join("vmlinux")).find(|path| path.is_file())?).ok()?;
    let section = |name| spilerun::elf::section(&file, name).ok().flatten();
    let symbols = section(".symtab")?;
    let made = vec![elf::Section::plain(".BTF", cut(section(".BTF")?)?)];
    let symbols = symbols.get(..SYMBOLS).unwrap_or(symbols).to_vec();
    Some(elf::executable_with(symbols, section(".strtab")?.to_vec(), made))
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let word = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(word)).ok()
}

/// The first types and names (btf.rst: the header is of 24 bytes, with the places and lengths of both behind it).
fn cut(btf: &[u8]) -> Option<Vec<u8>> {
    const HEADER: usize = 24;
    let [types, strings, names] = [8, 16, 20].map(|at| word(btf, at));
    let types = btf.get(HEADER + types?..)?;
    let mut length = 0;
    for _ in 0..TYPES {
        length += bytes_of(types.get(length..)?)?;
    }
    let strings = btf.get(HEADER + strings?..)?.get(..NAMES.min(names?))?;
    let mut made = btf.get(..8)?.to_vec();
    for number in [0, length, length, strings.len()] {
        made.extend(u32::try_from(number).ok()?.to_le_bytes());
    }
    made.extend(types.get(..length)?);
    made.extend(strings);
    Some(made)
}

/// Of a type with what follows it, by its kind and number of members.
fn bytes_of(of: &[u8]) -> Option<usize> {
    let info = word(of, 4)?;
    let members = info & 0xffff;
    Some(
        12 + match info >> 24 & 0x1f {
            // Integers, variables, declaration tags; arrays; structures, unions, 64-bit enumerations and sections; enumerations and
            // prototypes.
            1 | 14 | 17 => 4,
            3 => 12,
            4 | 5 | 15 | 19 => 12 * members,
            6 | 13 => 8 * members,
            _ => 0,
        },
    )
}
