// SPDX-License-Identifier: GPL-2.0-or-later

//! Installs the Debian packages that are missing: what a guest is made of, and a kernel with headers and debug
//! information. Does nothing, offline too, when all is there.
//!
//! The kernel is the cloud flavour's current one, resolved from its meta-packages; debug information is taken in exactly
//! the image's version. A complete kernel that is installed already serves as well.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use spile_guest::Kernel;

/// A file that tells whether its package is there, however it got there.
const TOOLS: [(&str, &str); 20] = [
    ("/usr/bin/qemu-system-x86_64", "qemu-system-x86"),
    ("/bin/busybox", "busybox-static"),
    ("/usr/bin/getfattr", "attr"),
    ("/usr/bin/strace", "strace"),
    ("/usr/bin/kmod", "kmod"),
    ("/usr/bin/gcc", "gcc"),
    ("/usr/bin/make", "make"),
    // Looks at the C that is made, in a test.
    ("/usr/bin/sparse", "sparse"),
    // A server of debug information, and what makes files that share some of it.
    ("/usr/bin/debuginfod", "debuginfod"),
    ("/usr/bin/dwz", "dwz"),
    // For a server that speaks https, and who asks it.
    ("/usr/bin/openssl", "openssl"),
    ("/usr/bin/curl", "curl"),
    // Another reader of it, to compare with.
    ("/usr/bin/gdb", "gdb"),
    // For kernels that are built with it.
    ("/usr/bin/clang", "clang"),
    ("/usr/bin/ld.lld", "lld"),
    ("/usr/bin/llvm-nm", "llvm"),
    ("/usr/bin/cpio", "cpio"),
    // Reads the packages that a test makes.
    ("/usr/bin/rpm", "rpm"),
    // Its example scripts are parsed by a test.
    ("/usr/share/doc/systemtap-doc/copyright", "systemtap-doc"),
    // So is its library.
    ("/usr/share/doc/systemtap-common/copyright", "systemtap-common"),
];
const IMAGE: &str = "linux-image-cloud-amd64";
const HEADERS: &str = "linux-headers-cloud-amd64";

/// Brings the machine to where guests run and modules build. `release`: the kernel that is wanted, if a certain one.
pub fn run(release: Option<&str>) -> Result<()> {
    let missing: Vec<&str> =
        TOOLS.into_iter().filter(|(file, package)| !is_there(file, package)).map(|(_, package)| package).collect();
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
        apt.install(&missing.iter().map(|package| package.to_string()).collect::<Vec<_>>())?;
    }
    if kernel_missing {
        install_kernel(&apt, release)?;
    }
    Ok(())
}

/// A package that only some tasks need, known by a file of it.
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

fn is_there(file: &str, package: &str) -> bool {
    // busybox alone would do for its name, but not for a guest: it must be the static one.
    Path::new(file).is_file() && (package != "busybox-static" || installed_field(package, "Version").is_ok())
}

fn installed_field(package: &str, field: &str) -> Result<String> {
    let format = format!("${{db:Status-Status}} ${{{field}}}");
    let output = Command::new("dpkg-query").args(["-W", "-f", &format, package]).stderr(Stdio::null()).output();
    let text = String::from_utf8(output.context("running dpkg-query")?.stdout)?;
    let value = text.strip_prefix("installed ").with_context(|| format!("package {package} is not installed"))?;
    Ok(value.to_string())
}

/// apt-get, by sudo where that is needed.
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
        // Others may be installing at this moment: unattended upgrades do, on new machines.
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

    /// One progress line: what, then how long it took. What apt-get says goes to a file, and is shown if it fails.
    fn step(&self, what: &str, arguments: &[&str]) -> Result<()> {
        use std::io::Write;
        print!("setup: {what} ... ");
        std::io::stdout().flush()?;
        let start = Instant::now();
        let mut words = self.command.iter().chain(arguments);
        let program = words.next().context("no program")?;
        let output = Command::new(program).args(words).stdin(Stdio::null()).output().context("running apt-get")?;
        self.keep(&output);
        if output.status.success() {
            println!("done in {:.0} s", start.elapsed().as_secs_f64());
            return Ok(());
        }
        println!("failed");
        let said = String::from_utf8_lossy(&output.stderr);
        bail!(
            "{what} failed (is the machine online, and is its Debian suite in /etc/apt/sources.list?):\n{}\nall of it is in {}",
            said.trim(),
            self.log.display()
        );
    }

    fn keep(&self, output: &Output) {
        use std::io::Write;
        // The log is a help; the step's own outcome counts.
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
    fn the_release_is_in_what_the_meta_package_depends_on() {
        assert_eq!(image_release("linux-image-6.1.0-56-cloud-amd64 (= 6.1.192-2)"), Some("6.1.0-56-cloud-amd64"));
        assert_eq!(image_release("base, linux-image-7.3.4+deb13-cloud-amd64"), Some("7.3.4+deb13-cloud-amd64"));
        assert_eq!(image_release("kmod"), None);
    }
}
