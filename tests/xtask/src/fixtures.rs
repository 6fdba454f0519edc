// SPDX-License-Identifier: GPL-2.0-or-later

//! Builds the kernel modules under tests/fixtures for a release, by its own Kbuild.
//!
//! Built modules are cached in `target/fixtures/KEY/`, where KEY is a hash of the sources, the release and the variant.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::place::Place;

/// A module to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixture {
    /// Name of the directory and of the module.
    pub name: &'static str,
    /// The same with another build-id.
    pub variant: bool,
}

/// A file system whose functions the tests probe and rewrite.
pub const LUSTRE: Fixture = Fixture { name: "lustre", variant: false };
/// The same, built again: for tests with a build-id that differs.
pub const LUSTRE_VARIANT: Fixture = Fixture { name: "lustre", variant: true };
/// Makes a call of a module fail.
pub const FAULT: Fixture = Fixture { name: "fault", variant: false };
/// Bare probe handlers, for the bench.
pub const BARE: Fixture = Fixture { name: "bare", variant: false };
/// Replaces a function of lustre.
pub const LIVEPATCH: Fixture = Fixture { name: "livepatch", variant: false };
/// A module that lustre depends on.
pub const PTLRPC: Fixture = Fixture { name: "ptlrpc", variant: false };
/// Has the device of a spile module and lies on it.
pub const HOSTILE: Fixture = Fixture { name: "hostile", variant: false };
/// A module whose code ends at an odd address.
pub const EDGE: Fixture = Fixture { name: "edge", variant: false };
/// Has memory that is mapped in several ways.
pub const MAPPED: Fixture = Fixture { name: "mapped", variant: false };

/// Whether a name in a test is a fixture, not a kernel module.
pub fn is_one(name: &str) -> bool {
    [LUSTRE, FAULT, BARE, PTLRPC, LIVEPATCH, HOSTILE, EDGE, MAPPED].iter().any(|fixture| fixture.name == name)
}

/// For 32 bits, without libraries: the compiler has only those for 64.
const FREESTANDING: [&str; 6] = ["-m32", "-nostdlib", "-ffreestanding", "-fno-stack-protector", "-fno-pic", "-no-pie"];

/// The program NAME of tests/fixtures/NAME/NAME.c, linked statically; compiled again when its text has changed, or what modules
/// and loaders agree on, which some include. For 32 bits if the name ends in 32.
pub fn program(root: &Path, name: &str) -> Result<PathBuf> {
    let source = root.join("tests/fixtures").join(name).join(format!("{name}.c"));
    let program = root.join("target/fixtures").join(name);
    let changed = |path: &Path| fs::metadata(path).and_then(|data| data.modified());
    let texts = [source.clone(), root.join("runtime-c/abi/abi.h")];
    let is_newer = |made| texts.iter().all(|text| changed(text).is_ok_and(|written| written < made));
    if changed(&program).is_ok_and(is_newer) {
        return Ok(program);
    }
    fs::create_dir_all(root.join("target/fixtures"))?;
    let made = tempfile::NamedTempFile::new_in(root.join("target/fixtures"))?;
    let options = if name.ends_with("32") { FREESTANDING.as_slice() } else { &["-pthread"] };
    let mut gcc = std::process::Command::new("gcc");
    let output = gcc
        .args(["-static", "-O1"])
        .args(options)
        .arg("-o")
        .arg(made.path())
        .arg(&source)
        .output()
        .context("running gcc")?;
    if !output.status.success() {
        bail!("compiling {}:\n{}", source.display(), String::from_utf8_lossy(&output.stderr));
    }
    made.into_temp_path().persist(&program)?;
    Ok(program)
}

/// The programs of tests/fixtures/stacks, in their directory below target/fixtures: `stacks`, the same stripped, and
/// two libraries.
pub fn stacks(root: &Path) -> Result<PathBuf> {
    /// Without frame pointers, as distributions compile.
    const OPTIONS: [&str; 4] = ["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread"];
    let sources = root.join("tests/fixtures/stacks");
    let made: [(&str, &str, &str, &[&str]); 4] = [
        ("gcc", "stacks.c", "stacks", &["-g"]),
        ("gcc", "stacks.c", "stacks_stripped", &["-s"]),
        ("gcc", "libstacks.c", "libstacks.so", &["-shared", "-fPIC", "-s"]),
        ("g++", "libstackscxx.cc", "libstackscxx.so", &["-shared", "-fPIC"]),
    ];
    let texts: Result<Vec<Vec<u8>>> = made.iter().map(|(_, source, ..)| Ok(fs::read(sources.join(source))?)).collect();
    let directory = root.join(format!("target/fixtures/stacks-{:016x}", fingerprint(&texts?)));
    if directory.is_dir() {
        return Ok(directory);
    }
    fs::create_dir_all(root.join("target/fixtures"))?;
    let scratch = tempfile::tempdir_in(root.join("target/fixtures"))?;
    for (compiler, source, name, options) in made {
        let mut command = std::process::Command::new(compiler);
        command.args(OPTIONS).args(options).arg("-o").arg(scratch.path().join(name)).arg(sources.join(source));
        let output = command.output().with_context(|| format!("running {compiler}"))?;
        if !output.status.success() {
            bail!("compiling {source}:\n{}", String::from_utf8_lossy(&output.stderr));
        }
    }
    // Another run may have been faster.
    match fs::rename(scratch.path(), &directory) {
        Err(_) if directory.is_dir() => {}
        renamed => renamed?,
    }
    Ok(directory)
}

impl Fixture {
    /// The `.ko`, built if missing.
    pub fn build(self, root: &Path, place: &Place) -> Result<PathBuf> {
        let source = root.join("tests/fixtures").join(self.name);
        let directory = root.join("target/fixtures").join(self.key(&source, place)?);
        let module = directory.join(format!("{}.ko", self.name));
        if module.is_file() {
            return Ok(module);
        }
        // Built elsewhere and linked, so that an interrupted build leaves no partial module.
        let target = root.join("target");
        fs::create_dir_all(&target)?;
        let build = tempfile::Builder::new().prefix("fixture-").tempdir_in(&target)?;
        for file in source_files(&source)? {
            let name = file.file_name().context("a file without a name")?;
            fs::copy(&file, build.path().join(name)).with_context(|| format!("copying {}", file.display()))?;
        }
        self.make(build.path(), place)?;
        fs::create_dir_all(&directory)?;
        // Another build may have been faster, and another build-id: scripts have been compiled against the first.
        match fs::hard_link(build.path().join(format!("{}.ko", self.name)), &module) {
            Err(_) if module.is_file() => {}
            linked => linked?,
        }
        Ok(module)
    }

    fn make(self, directory: &Path, place: &Place) -> Result<()> {
        let mut make = place.command("make", directory);
        make.arg("-C").arg(place.build_directory());
        make.arg(format!("M={}", directory.display()));
        if self.variant {
            make.arg("VARIANT=1");
        }
        let output = make.arg("modules").output().context("running make")?;
        if !output.status.success() {
            let messages = [output.stdout, output.stderr].concat();
            bail!(
                "building the module {} for {}:\n{}",
                self.name,
                place.kernel.release,
                String::from_utf8_lossy(&messages)
            );
        }
        Ok(())
    }

    fn key(self, source: &Path, place: &Place) -> Result<String> {
        let mut parts = vec![kernel_part(place), vec![u8::from(self.variant)]];
        // Some include it.
        let agreed = source.join("../../../runtime-c/abi/abi.h");
        for file in source_files(source)?.into_iter().chain([agreed]) {
            parts.push(fs::read(&file).with_context(|| format!("reading {}", file.display()))?);
        }
        Ok(format!("{}-{:016x}", self.name, fingerprint(&parts)))
    }
}

/// Sources in a fixed order.
fn source_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory).with_context(|| format!("reading {}", directory.display()))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    Ok(files)
}

/// What a key of modules has of the kernel: its release and, as another build of the same release may have other headers, a
/// checksum of its image, which has 14 MB: byte by byte, without optimisation, it would take half a second for each module.
pub fn kernel_part(place: &Place) -> Vec<u8> {
    let image = fs::read(&place.kernel.image).unwrap_or_default();
    format!("{} {} {:08x}", place.kernel.release, image.len(), crc32fast::hash(&image)).into_bytes()
}

/// FNV-1a over the parts and their lengths: the cache need not resist attacks.
pub fn fingerprint(parts: &[Vec<u8>]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        for byte in (part.len() as u64).to_le_bytes().iter().chain(part) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_knows_where_parts_end() {
        let of = |parts: &[&str]| fingerprint(&parts.iter().map(|part| part.as_bytes().to_vec()).collect::<Vec<_>>());
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_eq!(of(&["ab", "c"]), of(&["ab", "c"]));
    }
}
