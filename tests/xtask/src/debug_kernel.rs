// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask debug-kernel`: the guest tests on a debug kernel: KASAN, lockdep, atomic sleep, RCU and kmemleak
//! checks. Debian has no such kernel, so a small one is built here once from Debian's source; that takes half an hour
//! or more and 3 GB, and is cached in target/debug-kernel. Not meant for every change.
//!
//! With `--kcsan`: the scripts of `cargo xtask smp` on a kernel that looks for data races, which excludes KASAN; it is in
//! target/kcsan-kernel.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

use crate::place::Place;
use crate::setup;

/// The options in addition to tinyconfig: of all kernels, what single tests need, and the checks of each.
const BASE: &str = include_str!("debug_kernel/base.config");
const TESTS: &str = include_str!("debug_kernel/tests.config");
const KASAN: &str = include_str!("debug_kernel/kasan.config");
const KCSAN: &str = include_str!("debug_kernel/kcsan.config");
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
    /// Only the tests whose name contains one of these; with --kcsan, only these scripts
    names: Vec<String>,
    /// Looks for data races (KCSAN) in the scripts of `cargo xtask smp`, on CPUs that run at the same time
    #[arg(long)]
    kcsan: bool,
    /// With --kcsan: how long each script has load
    #[arg(long, default_value_t = 20, requires = "kcsan")]
    seconds: u64,
    /// Processes that build at once
    #[arg(long, default_value = "2", value_name = "N")]
    jobs: u32,
    /// Keeps the tests' files and output in target/tests/
    #[arg(long, conflicts_with = "kcsan")]
    keep: bool,
}

/// Builds the debug kernel if it is missing, and runs the tests on it.
pub fn run(options: &Options) -> Result<ExitCode> {
    if options.kcsan {
        let place = place_with_races(options.jobs)?;
        return crate::smp::run_in(&crate::smp::Options::on_kcsan(options.seconds, &options.names), place);
    }
    let place = place(options.jobs)?;
    let tests = crate::test::Options {
        names: options.names.clone(),
        kernel: None,
        keep: options.keep,
        kbuild: false,
        timings: false,
        quick: false,
        fresh: true,
        guests: false,
        all: false,
    };
    crate::test::run_in(&tests, place)
}

/// The kernel that looks for data races, built with this many processes if it is missing.
pub fn place_with_races(jobs: u32) -> Result<Place> {
    Build::kcsan(jobs).place()
}

/// The debug kernel, built with this many processes if it is missing.
pub fn place(jobs: u32) -> Result<Place> {
    Build::kasan(jobs).place()
}

struct Build {
    directory: PathBuf,
    /// Options in addition to tinyconfig.
    fragment: String,
    jobs: u32,
}

impl Build {
    fn kasan(jobs: u32) -> Build {
        let directory = crate::root().join("target/debug-kernel");
        Build { directory, fragment: [BASE, TESTS, KASAN].concat(), jobs }
    }

    fn kcsan(jobs: u32) -> Build {
        let directory = crate::root().join("target/kcsan-kernel");
        Build { directory, fragment: [BASE, KCSAN].concat(), jobs }
    }

    fn place(&self) -> Result<Place> {
        let root = self.installed()?;
        Place::of_own_kernel(&root, &self.release()?)
    }

    /// The kernel as installed below `/`. Builds it first if it is missing or the fragment has changed.
    fn installed(&self) -> Result<PathBuf> {
        let root = self.directory.join("root");
        let stamp = self.directory.join("stamp");
        if fs::read_to_string(&stamp).is_ok_and(|built| built == self.fragment) {
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
        fs::write(&fragment, &self.fragment)?;
        self.make(&source, &["tinyconfig"])?;
        let merge = source.join("scripts/kconfig/merge_config.sh");
        self.run_logged(Command::new(merge).args(["-m", ".config"]).arg(&fragment).current_dir(&source))?;
        self.make(&source, &["olddefconfig"])?;
        check_config(&self.fragment, &fs::read_to_string(source.join(".config"))?)?;
        self.make(&source, &[&format!("-j{}", self.jobs), "bzImage", "modules"])?;
        self.install(&source, &root)?;
        fs::write(&stamp, &self.fragment).with_context(|| format!("writing {}", stamp.display()))?;
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
fn check_config(fragment: &str, config: &str) -> Result<()> {
    let set: std::collections::HashSet<&str> = config.lines().collect();
    let missing: Vec<&str> =
        fragment.lines().filter(|line| line.starts_with("CONFIG_") && !set.contains(line)).collect();
    ensure!(missing.is_empty(), "the kernel's configuration lacks {}", missing.join(", "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::{DEBUG_SUFFIX, KCSAN_SUFFIX};

    #[test]
    fn each_fragment_has_its_suffix() {
        for (build, suffix) in [(Build::kasan(1), DEBUG_SUFFIX), (Build::kcsan(1), KCSAN_SUFFIX)] {
            let lines: Vec<&str> =
                build.fragment.lines().filter(|line| line.starts_with("CONFIG_LOCALVERSION=")).collect();
            assert_eq!(lines, [format!("CONFIG_LOCALVERSION=\"{suffix}\"")]);
        }
    }

    #[test]
    fn kcsan_excludes_kasan() {
        for (build, there, absent) in [
            (Build::kasan(1), "CONFIG_KASAN=y", "CONFIG_KCSAN=y"),
            (Build::kcsan(1), "CONFIG_KCSAN=y", "CONFIG_KASAN=y"),
        ] {
            assert!(build.fragment.lines().any(|line| line == there));
            assert!(!build.fragment.lines().any(|line| line == absent));
        }
    }

    #[test]
    fn ignored_options_are_reported() {
        let fragment = Build::kasan(1).fragment;
        assert!(check_config(&fragment, &fragment).is_ok());
        let error = check_config(&fragment, &fragment.replace("CONFIG_KASAN=y", "# CONFIG_KASAN is not set"))
            .expect_err("an option is missing");
        assert_eq!(error.to_string(), "the kernel's configuration lacks CONFIG_KASAN=y");
    }
}
