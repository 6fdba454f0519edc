// SPDX-License-Identifier: GPL-2.0-or-later

//! Where modules are built for a kernel: this machine, or the system of another Debian release below target/roots/,
//! with the compiler and libraries that its kernels need; or this machine with a custom kernel (`cargo xtask
//! debug-kernel`), whose modules are overlaid on /lib/modules.
//!
//! Such a system is made by mmdebstrap (as root) when its kernel line is asked for: `cargo xtask test --kernel 6.12`.
//! Commands run in it by chroot, with the workspace at the path it has here. The tests' virtual machines have this machine's programs
//! and libraries, of every line: commands find them below a directory, together with the kernel.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use spile_guest::Kernel;

/// Suffix of releases built by `cargo xtask debug-kernel` (CONFIG_LOCALVERSION).
pub const DEBUG_SUFFIX: &str = "-spile-debug";
/// The same of `cargo xtask debug-kernel --kcsan`.
pub const KCSAN_SUFFIX: &str = "-spile-kcsan";

/// A kernel line of another Debian release, or of another flavour.
struct Line {
    name: &'static str,
    suite: &'static str,
    /// As in the names of Debian's packages: linux-image-FLAVOUR.
    flavour: &'static str,
    /// Lines for its sources.list, for mmdebstrap.
    sources: &'static [&'static str],
}

const LINES: [Line; 4] = [
    // Its security updates are no longer on the mirrors; the last point release is.
    Line {
        name: "5.10",
        suite: "bullseye",
        flavour: "cloud-amd64",
        sources: &["deb http://deb.debian.org/debian bullseye main"],
    },
    Line {
        name: "6.12",
        suite: "trixie",
        flavour: "cloud-amd64",
        sources: &[
            "deb http://deb.debian.org/debian trixie main",
            "deb http://deb.debian.org/debian trixie-updates main",
            "deb http://deb.debian.org/debian-security trixie-security main",
        ],
    },
    // PREEMPT_RT: spinlocks sleep, interrupts are threads.
    Line {
        name: "6.12-rt",
        suite: "trixie",
        flavour: "rt-amd64",
        sources: &[
            "deb http://deb.debian.org/debian trixie main",
            "deb http://deb.debian.org/debian trixie-updates main",
            "deb http://deb.debian.org/debian-security trixie-security main",
        ],
    },
    Line {
        name: "backports",
        suite: "trixie",
        flavour: "cloud-amd64",
        sources: &[
            "deb http://deb.debian.org/debian trixie main",
            "deb http://deb.debian.org/debian trixie-backports main",
        ],
    },
];

/// A kernel and the system in which its modules are built.
pub struct Place {
    /// The kernel.
    pub kernel: Kernel,
    system: System,
}

enum System {
    Here,
    /// The other system's root.
    Root(PathBuf),
    /// Mounted on /lib/modules.
    Modules(PathBuf),
}

/// Names of the lines that can be fetched.
pub fn lines() -> impl Iterator<Item = &'static str> {
    LINES.iter().map(|line| line.name)
}

impl Place {
    /// For an installed release, or the start of one (`6.1`), or a line of another Debian release; without any, the
    /// newest kernel here. Installs what is missing.
    pub fn find(wanted: Option<&str>) -> Result<Place> {
        let line = wanted.and_then(|wanted| LINES.iter().find(|line| line.name == wanted));
        if let Some(line) = line {
            crate::setup::run(None)?;
            return Place::of_line(line);
        }
        let newest = Kernel::newest().ok();
        let release = match (wanted, newest) {
            (Some(wanted), Some(kernel)) if kernel.release.starts_with(&format!("{wanted}.")) => Some(kernel.release),
            (Some(wanted), _) if wanted.contains('-') => Some(wanted.to_string()),
            (Some(wanted), _) => {
                let names = LINES.map(|line| line.name).join(", ");
                bail!("kernel {wanted} is not installed, and is none of the lines that can be fetched: {names}")
            }
            (None, _) => None,
        };
        crate::setup::run(release.as_deref())?;
        let kernel = match &release {
            Some(release) => Kernel::complete(release)?,
            None => Kernel::newest()?,
        };
        Ok(Place { kernel, system: System::Here })
    }

    fn of_line(line: &Line) -> Result<Place> {
        let root = crate::root().join("target/roots").join(line.name);
        if std::fs::read_to_string(root.join(FETCHED)).ok() != Some(line.packages()) {
            fetch(line, &root)?;
        }
        let kernel = Kernel::newest_in(&root).with_context(|| format!("the system in {}", root.display()))?;
        Ok(Place { kernel, system: System::Root(root) })
    }

    /// For the kernel `release` installed below `root` and built on this machine.
    pub fn of_own_kernel(root: &Path, release: &str) -> Result<Place> {
        crate::setup::run(None)?;
        let modules = root.join("lib/modules");
        let image = root.join("boot").join(format!("vmlinuz-{release}"));
        let kernel = Kernel { release: release.to_string(), image, modules: modules.join(release) };
        Ok(Place { kernel, system: System::Modules(modules) })
    }

    /// Whether the kernel and its headers are installed on this machine.
    pub fn is_here(&self) -> bool {
        matches!(self.system, System::Here)
    }

    /// Whether the kernel was built here from source (`cargo xtask debug-kernel`).
    pub fn is_own_build(&self) -> bool {
        matches!(self.system, System::Modules(_))
    }

    /// Whether the kernel looks for data races, of its own code too.
    pub fn reports_races(&self) -> bool {
        self.kernel.release.ends_with(KCSAN_SUFFIX)
    }

    /// Factor for time limits: a debug kernel is slower.
    pub fn slowness(&self) -> u32 {
        if self.is_own_build() { 6 } else { 1 }
    }

    /// A command that runs there, in `directory`, which must be below the workspace.
    pub fn command(&self, program: impl AsRef<Path>, directory: &Path) -> Command {
        let program = program.as_ref();
        // Mounts in a private namespace, so that nothing stays mounted.
        let root = match &self.system {
            System::Here => {
                let mut command = Command::new(program);
                command.current_dir(directory).stdin(Stdio::null());
                return command;
            }
            System::Modules(modules) => {
                const OVER: &str = r#"mount --bind "$1" /lib/modules && shift && exec "$@""#;
                let mut command = Command::new("unshare");
                command.args(["--mount", "sh", "-c", OVER, "sh"]).arg(modules).arg(program);
                command.current_dir(directory).stdin(Stdio::null());
                return command;
            }
            System::Root(root) => root,
        };
        // A directory for temporary files that this machine has (test/memory.rs) is not there.
        const ENTER: &str = r#"
            workspace=$1 root=$2 directory=$3
            shift 3
            mkdir -p "$root$workspace" || exit
            mount --bind "$workspace" "$root$workspace" && mount -t proc proc "$root/proc" || exit
            own=$root/mnt
            mount --bind / "$own" && mount --bind "$workspace" "$own$workspace" || exit
            mount -t overlay -o "ro,lowerdir=/usr:$root/usr" overlay "$own/usr" || exit
            # Older systems have a /lib of their own.
            [ -L "$root/lib" ] ||
                mount -t overlay -o "ro,lowerdir=/usr/lib:$root/lib:$root/usr/lib" overlay "$own/usr/lib" || exit
            mount --bind "$root/boot" "$own/boot" || exit
            exec chroot "$root" /usr/bin/env -u TMPDIR -C "$directory" HOME=/root "$@""#;
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", ENTER, "sh"]).arg(crate::root()).arg(root).arg(directory).arg(program);
        command.stdin(Stdio::null());
        command
    }

    /// Where a command there finds the system that the tests' virtual machines get: with the kernel of the place, and the programs
    /// and libraries of this machine. None: it is the one that the command runs in.
    pub fn system(&self) -> Option<&'static Path> {
        matches!(self.system, System::Root(_)).then(|| Path::new("/mnt"))
    }

    /// The kernel's build directory, as seen by commands there.
    pub fn build_directory(&self) -> PathBuf {
        Path::new("/lib/modules").join(&self.kernel.release).join("build")
    }

    /// The compiler, built so that it runs there: this machine's build needs its C library.
    pub fn spile(&self) -> Result<PathBuf> {
        let root = crate::root();
        let own = root.join("target/debug/spile");
        let runs = || self.command(&own, &root).arg("--version").output().is_ok_and(|output| output.status.success());
        if !matches!(self.system, System::Root(_)) || runs() {
            return Ok(own);
        }
        println!("building a static spile for {}", self.kernel.release);
        const TARGET: &str = "x86_64-unknown-linux-gnu";
        let status = Command::new(crate::programs::cargo())
            .args(["build", "--quiet", "--package", "spile", "--target", TARGET, "--target-dir", "target/static"])
            .env("RUSTFLAGS", "-C target-feature=+crt-static")
            .current_dir(&root)
            .status()
            .context("running cargo build")?;
        ensure!(status.success(), "a static spile does not build");
        Ok(root.join("target/static").join(TARGET).join("debug/spile"))
    }
}

/// Of a line's root: the packages it was made of. Absent where that was interrupted.
const FETCHED: &str = "fetched-packages";

impl Line {
    /// The Debian packages of the line's root, with commas.
    fn packages(&self) -> String {
        let suite = if self.name == "backports" { "/trixie-backports" } else { "" };
        let flavour = self.flavour;
        let kernel = [
            format!("linux-image-{flavour}{suite}"),
            format!("linux-headers-{flavour}{suite}"),
            format!("linux-image-{flavour}-dbg{suite}"),
        ];
        format!("ca-certificates,gcc,make,libc6-dev,{}", kernel.join(","))
    }
}

fn fetch(line: &Line, root: &Path) -> Result<()> {
    crate::setup::install_tool("/usr/bin/mmdebstrap", "mmdebstrap")?;
    println!("setup: fetching Debian {} for its kernel {} (some 500 MB) ...", line.suite, line.name);
    if root.exists() {
        std::fs::remove_dir_all(root).with_context(|| format!("removing {}", root.display()))?;
    }
    std::fs::create_dir_all(root)?;
    let output = Command::new("mmdebstrap")
        .args(["--variant=apt", &format!("--include={}", line.packages()), line.suite])
        .arg(root)
        .args(line.sources)
        .stdin(Stdio::null())
        .output()
        .context("running mmdebstrap")?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    let end: Vec<&str> = stderr.lines().rev().take(15).collect();
    ensure!(output.status.success(), "mmdebstrap failed:\n{}", end.into_iter().rev().collect::<Vec<_>>().join("\n"));
    let fetched = root.join(FETCHED);
    std::fs::write(&fetched, line.packages()).with_context(|| format!("writing {}", fetched.display()))
}
