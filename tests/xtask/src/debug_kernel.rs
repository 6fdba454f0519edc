// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask debug-kernel`: the guest tests on a debug kernel: KASAN, lockdep, atomic sleep, RCU and kmemleak
//! checks. Debian has no such kernel, so a small one is built here once from Debian's source; that takes half an hour
//! or more and 3 GB, and is cached in target/debug-kernel. Not meant for every change.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

use crate::place::Place;
use crate::setup;

/// The options in addition to tinyconfig.
const FRAGMENT: &str = include_str!("debug_kernel/fragment.config");
const SOURCE: &str = "linux-source-6.1";
/// Files of the packages needed to build it.
const TOOLS: [(&str, &str); 6] = [
    ("/usr/src/linux-source-6.1.tar.xz", SOURCE),
    ("/usr/bin/flex", "flex"),
    ("/usr/bin/bison", "bison"),
    ("/usr/bin/bc", "bc"),
    ("/usr/include/libelf.h", "libelf-dev"),
    ("/usr/bin/xz", "xz-utils"),
];

/// The arguments of `cargo xtask debug-kernel`.
#[derive(clap::Args)]
pub struct Options {
    /// Only the tests whose name contains one of these
    names: Vec<String>,
    /// Processes that build at once
    #[arg(long, default_value = "2", value_name = "N")]
    jobs: u32,
    /// Keeps the tests' files and output in target/tests/
    #[arg(long)]
    keep: bool,
}

/// Builds the debug kernel if it is missing, and runs the tests on it.
pub fn run(options: &Options) -> Result<ExitCode> {
    let place = place(options.jobs)?;
    let tests = crate::test::Options {
        names: options.names.clone(),
        kernel: None,
        keep: options.keep,
        kbuild: false,
        timings: false,
        quick: false,
        all: false,
    };
    crate::test::run_in(&tests, place)
}

/// The debug kernel, built with this many processes if it is missing.
pub fn place(jobs: u32) -> Result<Place> {
    let kernel = Build { directory: crate::root().join("target/debug-kernel"), jobs };
    let root = kernel.installed()?;
    Place::of_own_kernel(&root, &kernel.release()?)
}

struct Build {
    directory: PathBuf,
    jobs: u32,
}

impl Build {
    /// The kernel as installed below `/`. Builds it first if it is missing or the fragment has changed.
    fn installed(&self) -> Result<PathBuf> {
        let root = self.directory.join("root");
        let stamp = self.directory.join("stamp");
        if fs::read_to_string(&stamp).is_ok_and(|built| built == FRAGMENT) {
            return Ok(root);
        }
        TOOLS.iter().try_for_each(|(file, package)| setup::install_tool(file, package))?;
        fs::create_dir_all(&self.directory)?;
        let source = self.directory.join(SOURCE);
        if !source.join("Makefile").is_file() {
            println!("debug-kernel: unpacking {SOURCE}");
            let archive = format!("/usr/src/{SOURCE}.tar.xz");
            self.run_logged(Command::new("tar").args(["xf", &archive]).current_dir(&self.directory))?;
        }
        println!("debug-kernel: building; the output goes to {}", self.log().display());
        let fragment = self.directory.join("fragment.config");
        fs::write(&fragment, FRAGMENT)?;
        self.make(&source, &["tinyconfig"])?;
        let merge = source.join("scripts/kconfig/merge_config.sh");
        self.run_logged(Command::new(merge).args(["-m", ".config"]).arg(&fragment).current_dir(&source))?;
        self.make(&source, &["olddefconfig"])?;
        check_config(&fs::read_to_string(source.join(".config"))?)?;
        self.make(&source, &[&format!("-j{}", self.jobs), "bzImage", "modules"])?;
        self.install(&source, &root)?;
        fs::write(&stamp, FRAGMENT).with_context(|| format!("writing {}", stamp.display()))?;
        Ok(root)
    }

    fn install(&self, source: &Path, root: &Path) -> Result<()> {
        if root.exists() {
            fs::remove_dir_all(root)?;
        }
        self.make(source, &["modules_install", &format!("INSTALL_MOD_PATH={}", root.display())])?;
        let release = self.release()?;
        let modules = root.join("lib/modules").join(&release);
        // The debug information is in the build directory's vmlinux.
        let build = modules.join("build");
        if !build.exists() {
            std::os::unix::fs::symlink(source, build)?;
        }
        fs::create_dir_all(root.join("boot"))?;
        fs::copy(source.join("arch/x86/boot/bzImage"), root.join("boot").join(format!("vmlinuz-{release}")))?;
        Ok(())
    }

    fn release(&self) -> Result<String> {
        let file = self.directory.join(SOURCE).join("include/config/kernel.release");
        let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        Ok(text.trim().to_string())
    }

    fn make(&self, source: &Path, arguments: &[&str]) -> Result<()> {
        self.run_logged(Command::new("make").args(arguments).current_dir(source))
    }

    fn log(&self) -> PathBuf {
        self.directory.join("build.log")
    }

    /// Runs a command whose output goes to the log.
    fn run_logged(&self, command: &mut Command) -> Result<()> {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.log())?;
        command.stdin(Stdio::null()).stderr(log.try_clone()?).stdout(log);
        let status = command.status().with_context(|| format!("running {command:?}"))?;
        ensure!(status.success(), "{command:?} failed: see {}", self.log().display());
        Ok(())
    }
}

/// Options of the fragment that are not in the configuration: a dependency is missing.
fn check_config(config: &str) -> Result<()> {
    let set: std::collections::HashSet<&str> = config.lines().collect();
    let missing: Vec<&str> =
        FRAGMENT.lines().filter(|line| line.starts_with("CONFIG_") && !set.contains(line)).collect();
    ensure!(missing.is_empty(), "the kernel's configuration lacks {}", missing.join(", "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::DEBUG_SUFFIX;

    #[test]
    fn the_fragment_has_the_suffix() {
        assert!(FRAGMENT.contains(&format!("CONFIG_LOCALVERSION=\"{DEBUG_SUFFIX}\"\n")));
    }

    #[test]
    fn ignored_options_are_reported() {
        assert!(check_config(FRAGMENT).is_ok());
        let error = check_config(&FRAGMENT.replace("CONFIG_KASAN=y", "# CONFIG_KASAN is not set"))
            .expect_err("an option is missing");
        assert_eq!(error.to_string(), "the kernel's configuration lacks CONFIG_KASAN=y");
    }
}
