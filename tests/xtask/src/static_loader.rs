// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask static-loader`: spilerun as shipped, one static program without dependencies.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

const TARGET: &str = "x86_64-unknown-linux-gnu";
/// It is copied to hosts by hand over slow lines.
const MOST_BYTES: u64 = 3 << 20;

/// Relative relocations are packed (DT_RELR: glibc 2.36, which applies them itself), 70 KB less. Cargo 1.95 makes of the profile's
/// `strip = true` no more than `-C strip=debuginfo`: the symbols are 530 KB.
const FLAGS: &str = "-C target-feature=+crt-static -C link-arg=-Wl,-z,pack-relative-relocs -C link-arg=-Wl,--strip-all";

/// Builds it and prints its path.
pub fn run() -> Result<ExitCode> {
    println!("{}", build(&crate::root())?.display());
    Ok(ExitCode::SUCCESS)
}

/// Builds it, unless it is up to date. Checks that it is static and small.
pub fn build(root: &Path) -> Result<PathBuf> {
    let status = Command::new(crate::programs::cargo())
        // With --target, the flags do not apply to build scripts and macros; a separate directory avoids rebuilds.
        .args(["build", "--quiet", "--package", "spilerun", "--profile", "ship", "--target", TARGET])
        .args(["--target-dir", "target/static"])
        .env("RUSTFLAGS", FLAGS)
        .current_dir(root)
        .status()
        .context("running cargo build")?;
    ensure!(status.success(), "a static spilerun does not build");
    let path = root.join("target/static").join(TARGET).join("ship/spilerun");
    check(&path)?;
    Ok(path)
}

fn check(path: &Path) -> Result<()> {
    let image = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    ensure!(image.len() as u64 <= MOST_BYTES, "{} has {} bytes, more than {MOST_BYTES}", path.display(), image.len());
    ensure!(!wants_interpreter(&image)?, "{} is not static", path.display());
    Ok(())
}

/// Whether a 64-bit ELF file has a program header PT_INTERP (elf(5)): the dynamic loader.
fn wants_interpreter(image: &[u8]) -> Result<bool> {
    const PT_INTERP: u32 = 3;
    let number = |at: usize, bytes: usize| -> Option<u64> {
        let field = image.get(at..at.checked_add(bytes)?)?;
        Some(field.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    };
    let headers = (number(0x20, 8), number(0x36, 2), number(0x38, 2));
    let (Some(at), Some(size), Some(count)) = headers else { anyhow::bail!("no ELF file") };
    ensure!(image.starts_with(b"\x7fELF\x02") && size > 0, "no ELF file of 64 bits");
    let types = (0..count).map(|index| number((at + index * size) as usize, 4));
    Ok(types.into_iter().any(|kind| kind == Some(u64::from(PT_INTERP))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dynamic_programs_are_recognised() {
        let own = std::fs::read("/proc/self/exe").expect("this test's own program");
        assert!(wants_interpreter(&own).expect("ELF"));
        let busybox = std::fs::read("/bin/busybox").expect("busybox-static");
        assert!(!wants_interpreter(&busybox).expect("ELF"));
        assert!(wants_interpreter(b"text").is_err());
    }
}
