// SPDX-License-Identifier: GPL-2.0-or-later

//! Installs missing Debian packages: what guests need, and a kernel with headers and debug information. Does nothing,
//! and needs no network, if everything is installed.
//!
//! The kernel is the current one of the cloud flavour, resolved from its meta-packages; debug information is installed
//! in exactly the image's version. A complete kernel that is already installed will do.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use spile_guest::Kernel;

/// A file whose presence means that its package is installed.
const TOOLS: &[(&str, &str)] = &[
    ("/usr/bin/qemu-system-x86_64", "qemu-system-x86"),
    ("/bin/busybox", "busybox-static"),
    ("/usr/bin/getfattr", "attr"),
    ("/usr/bin/strace", "strace"),
    ("/usr/bin/kmod", "kmod"),
    ("/usr/bin/gcc", "gcc"),
    // For a C++ library whose stacks are looked at.
    ("/usr/bin/g++", "g++"),
    ("/usr/bin/make", "make"),
    // Checks the generated C, in a test.
    ("/usr/bin/sparse", "sparse"),
    // A debuginfod server, and a tool that makes files with shared debug information.
    ("/usr/bin/debuginfod", "debuginfod"),
    ("/usr/bin/dwz", "dwz"),
    // Rates the restrictions of a unit.
    ("/usr/bin/systemd-analyze", "systemd"),
    // For an https server, and its client.
    ("/usr/bin/openssl", "openssl"),
    ("/usr/bin/curl", "curl"),
    // Programs that examples look into, with their libraries; the guests that need them have them.
    ("/usr/bin/perl", "perl-base"),
    ("/usr/bin/python3.11", "python3.11-minimal"),
    // In Go, stripped: 1.2 MB to download.
    ("/usr/bin/fzf", "fzf"),
    // Another DWARF reader, to compare with.
    ("/usr/bin/gdb", "gdb"),
    // Debug information of a library that every program has.
    ("/usr/share/doc/libc6-dbg/copyright", "libc6-dbg"),
    // For kernels built with it.
    ("/usr/bin/clang", "clang"),
    ("/usr/bin/ld.lld", "lld"),
    ("/usr/bin/llvm-nm", "llvm"),
    ("/usr/bin/cpio", "cpio"),
    // Reads the packages that a test makes.
    ("/usr/bin/rpm", "rpm"),
    // An editor for the language server, with the library that runs tree-sitter grammars: 7 MB to download, 27 MB installed.
    ("/usr/bin/nvim", "neovim"),
    ("/usr/bin/tmux", "tmux"),
    // Tests parse, build and run its example scripts.
    ("/usr/share/doc/systemtap-doc/copyright", "systemtap-doc"),
    // SystemTap's tapset, which tests parse.
    ("/usr/share/doc/systemtap-common/copyright", "systemtap-common"),
];
const IMAGE: &str = "linux-image-cloud-amd64";
const HEADERS: &str = "linux-headers-cloud-amd64";

/// Installs what guests and module builds need. `release`: the required kernel, if any.
pub fn run(release: Option<&str>) -> Result<()> {
    let missing: Vec<&str> =
        TOOLS.iter().filter(|(file, package)| !is_installed(file, package)).map(|(_, package)| *package).collect();
    let kernel_missing = match release {
        Some(release) => Kernel::complete(release).is_err(),
        None => Kernel::newest().is_err(),
    };
    if missing.is_empty() && !kernel_missing {
        return Ok(());
    }
    let apt = Apt::find()?;
    apt.step("updating the package lists", &["update"])?;
    if !missing.is_empty() {
        apt.install(&missing.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    }
    if kernel_missing {
        install_kernel(&apt, release)?;
    }
    Ok(())
}

/// A package needed only by some tasks, identified by one of its files.
pub fn install_tool(file: &str, package: &str) -> Result<()> {
    if Path::new(file).is_file() {
        return Ok(());
    }
    Apt::find()?.install(&[package.to_string()])
}

fn install_kernel(apt: &Apt, release: Option<&str>) -> Result<()> {
    let release = match release {
        Some(release) => {
            apt.install(&[format!("linux-image-{release}"), format!("linux-headers-{release}")])?;
            release.to_string()
        }
        None => {
            apt.install(&[IMAGE.to_string(), HEADERS.to_string()])?;
            let depends = installed_field(IMAGE, "Depends")?;
            let release = image_release(&depends);
            release.with_context(|| format!("{IMAGE} depends on no kernel image: {depends}"))?.to_string()
        }
    };
    let version = installed_field(&format!("linux-image-{release}"), "Version")?;
    println!("setup: the kernel is {release}, version {version}; its debug information is some 300 MB to download");
    apt.install(&[format!("linux-image-{release}-dbg={version}")])?;
    Kernel::complete(&release).context("after its packages were installed")?;
    Ok(())
}

/// From "linux-image-6.1.0-56-cloud-amd64 (= 6.1.192-2)".
fn image_release(depends: &str) -> Option<&str> {
    depends.split([',', '|']).find_map(|one| one.trim().strip_prefix("linux-image-")?.split_whitespace().next())
}

fn is_installed(file: &str, package: &str) -> bool {
    // Not the package busybox: a guest needs the static one.
    Path::new(file).is_file() && (package != "busybox-static" || installed_field(package, "Version").is_ok())
}

fn installed_field(package: &str, field: &str) -> Result<String> {
    let format = format!("${{db:Status-Status}} ${{{field}}}");
    let output = Command::new("dpkg-query").args(["-W", "-f", &format, package]).stderr(Stdio::null()).output();
    let text = String::from_utf8(output.context("running dpkg-query")?.stdout)?;
    let value = text.strip_prefix("installed ").with_context(|| format!("package {package} is not installed"))?;
    Ok(value.to_string())
}

/// apt-get, by sudo if needed.
struct Apt {
    command: Vec<&'static str>,
    log: PathBuf,
}

impl Apt {
    fn find() -> Result<Apt> {
        ensure!(
            Path::new("/usr/bin/apt-get").is_file(),
            "packages are missing and there is no apt-get here; a guest needs qemu-system-x86_64, a static busybox, getfattr, gcc, \
             make, and a kernel with headers and debug information"
        );
        // Others may hold the lock: unattended upgrades do, on new machines.
        let wait = ["-o", "DPkg::Lock::Timeout=600"];
        let environment = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y", "--no-install-recommends"];
        let root = effective_user() == Some(0);
        ensure!(
            root || Path::new("/usr/bin/sudo").is_file(),
            "packages are missing: run `cargo xtask setup` once as root"
        );
        let sudo: &[&str] = if root { &[] } else { &["sudo"] };
        let log = crate::root().join("target/setup.log");
        Ok(Apt { command: [sudo, &environment, &wait].concat(), log })
    }

    fn install(&self, packages: &[String]) -> Result<()> {
        let mut arguments = vec!["install"];
        arguments.extend(packages.iter().map(String::as_str));
        self.step(&format!("installing {}", packages.join(" ")), &arguments)
    }

    /// Prints what it does, then how long it took: whole lines, because a build may print others between them. The output
    /// of apt-get goes to a file, and is printed on failure.
    fn step(&self, what: &str, arguments: &[&str]) -> Result<()> {
        println!("setup: {what}");
        let start = Instant::now();
        let mut words = self.command.iter().chain(arguments);
        let program = words.next().context("no program")?;
        let output = Command::new(program).args(words).stdin(Stdio::null()).output().context("running apt-get")?;
        self.keep(&output);
        if output.status.success() {
            println!("setup: done in {:.0} s", start.elapsed().as_secs_f64());
            return Ok(());
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!(
            "{what} failed (is the machine online, and is its Debian suite in /etc/apt/sources.list?):\n{}\nall of it is in {}",
            stderr.trim(),
            self.log.display()
        );
    }

    fn keep(&self, output: &Output) {
        use std::io::Write;
        // The log is optional; the step's own result counts.
        let _ = self.log.parent().map(std::fs::create_dir_all);
        if let Ok(mut file) = std::fs::OpenOptions::new().create(true).append(true).open(&self.log) {
            let _ = file.write_all(&[&output.stdout[..], &output.stderr[..]].concat());
        }
    }
}

/// This process's effective user, from proc(5): "Uid: real effective saved file-system".
fn effective_user() -> Option<u32> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_read_from_the_meta_package() {
        assert_eq!(image_release("linux-image-6.1.0-56-cloud-amd64 (= 6.1.192-2)"), Some("6.1.0-56-cloud-amd64"));
        assert_eq!(image_release("base, linux-image-7.3.4+deb13-cloud-amd64"), Some("7.3.4+deb13-cloud-amd64"));
        assert_eq!(image_release("kmod"), None);
    }
}
