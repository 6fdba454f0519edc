//! The C compiler: the one that the kernel was built with.

use std::path::Path;
use std::process::Command;

use super::BuildError;

/// A compiler and its version, which objects made by it depend on.
pub(super) struct Compiler {
    /// As make's CC.
    pub(super) command: String,
    /// First line of `--version`.
    pub(super) version: String,
}

/// Chooses by the kernel's configuration (CONFIG_CC_IS_GCC, CONFIG_GCC_VERSION, CONFIG_CLANG_VERSION: `120200` is 12.2).
pub(super) fn choose(build_dir: &Path) -> Result<Compiler, BuildError> {
    let config = std::fs::read_to_string(build_dir.join(".config")).unwrap_or_default();
    let number = |name: &str| -> Option<u32> {
        config.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?.parse().ok()
    };
    let (name, major) = match (number("CONFIG_CLANG_VERSION"), number("CONFIG_GCC_VERSION")) {
        (Some(version), _) if version > 0 => ("clang", version / 10_000),
        (_, Some(version)) if version > 0 => ("gcc", version / 10_000),
        _ => ("gcc", 0),
    };
    let exact = format!("{name}-{major}");
    for command in [exact.clone(), name.to_string()] {
        if major == 0 && command == exact {
            continue;
        }
        let Some(version) = version_of(&command) else { continue };
        let here = version_number(&version);
        if major != 0 && here != Some(major) {
            eprintln!("WARNING: the kernel was built with {exact}, {command} is version {}: install {exact} if the build fails", here.unwrap_or(0));
        }
        return Ok(Compiler { command, version });
    }
    Err(BuildError::NoCompiler { wanted: if major == 0 { name.to_string() } else { exact } })
}

fn version_of(command: &str) -> Option<String> {
    let output = Command::new(command).arg("--version").output().ok().filter(|output| output.status.success())?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_string)
}

/// Major version: the last word that looks like one (`gcc (Debian 12.2.0-14) 12.2.0`, `clang version 16.0.6`).
fn version_number(line: &str) -> Option<u32> {
    let words = line.split([' ', ')', '(']).rev();
    words.filter_map(|word| word.split_once('.')?.0.parse().ok()).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn major_versions() {
        assert_eq!(version_number("gcc (Debian 12.2.0-14+deb12u1) 12.2.0"), Some(12));
        assert_eq!(version_number("Debian clang version 16.0.6 (27+b1)"), Some(16));
        assert_eq!(version_number("gcc"), None);
    }
}
