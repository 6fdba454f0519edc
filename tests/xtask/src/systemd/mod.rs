// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask systemd`: the life cycle of a service in a real Debian with systemd, from installing its packages to
//! their removal.
//!
//! The system is made once by mmdebstrap and cached as a file in target/roots. A copy gets the kernel under test, the
//! packages `spile-loader` and `spile-lu-5642` (by its own dpkg), and initramfs images made by its own tools,
//! initramfs-tools and dracut. It is booted from a disk, several times: twice with another kernel, for which the
//! package has no module, but a directory of modules has one, and the compiler can build one. The checks of each boot
//! are in story.sh, which prints a line for each. No `spile` is in the path until the script puts it there.
//!
//! Part of `cargo xtask test --all`. `--first` runs only the first boot.
//! `--suite trixie`, run by hand, uses Debian 13 as the system and 6.12 as the other kernel. So far the whole first
//! boot of 6.1 has passed there, and on 6.12 everything up to the fetched and running module; then that guest died in
//! the emulator (QEMU 7.2, impossible flags after a cmpxchg16b in the kernel's allocator).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::fixtures::LUSTRE;
use crate::place::Place;

const STORY: &str = include_str!("story.sh");
/// Packages that the first boot needs.
const INCLUDED: &str = "systemd,systemd-sysv,udev,kmod,attr,initramfs-tools";
/// Packages that the boots of another kernel need: that kernel, and the compiler's tools and the headers, for a service
/// that builds its module itself.
const INCLUDED_FOR_OTHER: &str = "dracut-core,linux-image-cloud-amd64,linux-headers-cloud-amd64,gcc,make";
/// From the point release, and with it the other kernel: the one under test has had security updates since, or is
/// another line.
const ARCHIVE: &str = "http://deb.debian.org/debian";
const BOOT: Duration = Duration::from_secs(900);
const DISK_BYTES: &str = "2500M";
/// Not needed to boot, and would only be copied.
const LEFT_OUT: [&str; 4] = ["usr/share/doc", "usr/share/locale", "usr/share/man", "var/cache/apt"];

/// The arguments of `cargo xtask systemd`.
#[derive(clap::Args)]
pub struct Options {
    /// Kernel release or line, as for `test`
    #[arg(long, value_name = "RELEASE")]
    kernel: Option<String>,
    /// The Debian that is booted, and whose kernel is the other one: with trixie 6.12
    #[arg(long, value_name = "SUITE", default_value = SUITE)]
    suite: String,
    /// Runs the part of the first boot only
    #[arg(long)]
    first: bool,
}

/// Called by the suite of all tests.
const SUITE: &str = "bookworm";

/// One boot: the kernel's release, the part of the script, and the prefix of its initramfs.
struct Boot<'a> {
    release: &'a str,
    stage: &'a str,
    initramfs: &'a str,
}

/// Made by each of the two tools.
const INITRAMFS_TOOLS: &str = "initrd.img";
const DRACUT: &str = "dracut.img";

/// Runs the life cycle of a service in guests with systemd.
pub fn run(options: &Options) -> Result<ExitCode> {
    let place = Place::find(options.kernel.as_deref())?;
    crate::programs::build_programs(&crate::root())?;
    let (passed, faults) = test_service(&place, options)?;
    println!("{passed} passed, {faults} failed");
    Ok(if faults == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the script and prints its facts; returns how many hold, and how many do not. spile must be built.
fn test_service(place: &Place, options: &Options) -> Result<(usize, usize)> {
    let root = crate::root();
    crate::setup::install_tool("/usr/bin/mmdebstrap", "mmdebstrap")?;
    crate::setup::install_tool("/usr/sbin/mke2fs", "e2fsprogs")?;
    let archive = base(&root, options)?;
    let work = tempfile::Builder::new().prefix("systemd-").tempdir_in(root.join("target"))?;
    let system = work.path().join("root");
    fs::create_dir(&system)?;
    let left_out = LEFT_OUT.map(|path| format!("--exclude=./{path}/*"));
    let flags: Vec<&str> = left_out.iter().map(String::as_str).chain(["-xf"]).collect();
    command("tar", &flags, &[&archive, Path::new("-C"), &system])?;
    let release = place.kernel.release.as_str();
    let other = match options.first {
        true => {
            name_other_kernel(&system)?;
            None
        }
        false => Some(other_kernel(&system, release)?),
    };
    install(&root, place, &system, work.path())?;
    if let Some(other) = &other {
        install_other_kernel(&root, &system, other)?;
    }
    let disk = work.path().join("disk");
    command("mke2fs", &["-q", "-t", "ext4", "-d"], &[&system, &disk, Path::new(DISK_BYTES)])?;
    let mut boots = vec![Boot { release, stage: "first", initramfs: INITRAMFS_TOOLS }];
    if let Some(other) = &other {
        boots.push(Boot { release: other, stage: "other", initramfs: INITRAMFS_TOOLS });
        boots.push(Boot { release: other, stage: "both", initramfs: DRACUT });
        boots.push(Boot { release, stage: "last", initramfs: INITRAMFS_TOOLS });
    }
    let (mut passed, mut faults) = (0, 0);
    for boot in &boots {
        println!("booting {} with {}", boot.stage, boot.release);
        let facts = start(boot, &system, &disk, work.path())?;
        facts.lines().for_each(|line| println!("{line}"));
        passed += facts.lines().filter(|line| line.starts_with("ok ")).count();
        faults += facts.lines().filter(|line| line.starts_with("FAILED")).count();
        faults += usize::from(!facts.lines().any(|line| line == "end"));
    }
    Ok((passed, faults))
}

/// The kernel that came with the system.
fn other_kernel(system: &Path, release: &str) -> Result<String> {
    let entries = fs::read_dir(system.join("usr/lib/modules"))?.flatten();
    let others = entries
        .filter(|entry| entry.path().join("kernel").is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok());
    others.into_iter().find(|other| other != release).with_context(|| format!("the system has no kernel but {release}"))
}

/// A kernel that is installed as far as kernel-install(8) looks: the first boot does not boot it.
fn name_other_kernel(system: &Path) -> Result<()> {
    const RELEASE: &str = "9.9.8-other";
    fs::create_dir_all(system.join("usr/lib/modules").join(RELEASE).join("kernel"))?;
    fs::create_dir_all(system.join("boot"))?;
    Ok(fs::write(system.join("boot").join(format!("vmlinuz-{RELEASE}")), "")?)
}

/// The system without spile.
fn base(root: &Path, options: &Options) -> Result<PathBuf> {
    let suite = options.suite.as_str();
    let included = if options.first { INCLUDED.to_string() } else { format!("{INCLUDED},{INCLUDED_FOR_OTHER}") };
    // Its name encodes its contents: a system with other packages is made again.
    let key = crate::fixtures::fingerprint(&[included.as_bytes().to_vec()]);
    let kind = if suite == SUITE { String::new() } else { format!("{suite}-") };
    let archive = root.join(format!("target/roots/systemd-{kind}{key:016x}.tar"));
    if archive.is_file() {
        return Ok(archive);
    }
    println!("setup: fetching a Debian with systemd (some {} MB) ...", if options.first { 60 } else { 250 });
    fs::create_dir_all(root.join("target/roots"))?;
    // Atomically.
    let new = archive.with_extension("new.tar");
    command(
        "mmdebstrap",
        &["--variant=essential", &format!("--include={included}"), suite],
        &[&new, Path::new(&format!("deb {ARCHIVE} {suite} main"))],
    )?;
    fs::rename(&new, &archive)?;
    Ok(archive)
}

/// The kernel under test, the packages, the units of the script, and the initramfs images with the workaround.
fn install(root: &Path, place: &Place, system: &Path, work: &Path) -> Result<()> {
    let release = &place.kernel.release;
    let lustre = LUSTRE.build(root, place)?;
    fs::create_dir_all(system.join("usr/lib/modules"))?;
    command(
        "cp",
        &["-a", "--no-target-directory"],
        &[&Path::new("/lib/modules").join(release), &system.join("usr/lib/modules").join(release)],
    )?;
    command("cp", &[], &[&place.kernel.image, &system.join("boot").join(format!("vmlinuz-{release}"))])?;
    // mkinitramfs checks what the kernel can unpack.
    let config = place.kernel.image.with_file_name(format!("config-{release}"));
    command("cp", &[], &[&config, &system.join("boot")])?;
    fs::write(system.join("etc/initramfs-tools/conf.d/small"), "MODULES=list\nCOMPRESS=gzip\n")?;
    fs::write(system.join("etc/initramfs-tools/modules"), "virtio_pci\nvirtio_blk\n")?;
    fs::create_dir(system.join("root").join(release))?;
    fs::copy(&lustre, system.join("root").join(release).join("lustre.ko"))?;
    let built = Command::new(root.join("target/debug/spile"))
        .args(["-g", "-p4", "-m", "lu_5642", "-r", release, "-d"])
        .args([&lustre, &root.join("examples/lu_5642/lu_5642.stp")])
        .current_dir(work)
        .output()
        .context("running spile")?;
    ensure!(built.status.success(), "the workaround does not compile:\n{}", String::from_utf8_lossy(&built.stderr));
    fs::write(work.join("lu_5642.conf"), "EARLY=yes\n")?;
    for version in ["1.0", "1.1"] {
        let packed = Command::new(root.join("target/debug/spile"))
            .args([
                "package",
                "lu_5642",
                "lu_5642.ko",
                "--conf",
                "lu_5642.conf",
                "--before",
                "mnt.service",
                "--format",
                "deb",
                "--set-version",
                version,
            ])
            .current_dir(work)
            .output()
            .context("running spile package")?;
        ensure!(packed.status.success(), "no package:\n{}", String::from_utf8_lossy(&packed.stderr));
    }
    let first = PathBuf::from("spile-lu-5642_1.0-1_amd64.deb");
    let loader = crate::package::write(&crate::package::loader(root)?, work)?.swap_remove(0);
    for package in [loader, work.join(&first)] {
        let name = package.file_name().context("a package without a name")?;
        fs::copy(&package, system.join("root").join(name))?;
        inside(system, &format!("dpkg -i '/root/{}'", name.to_string_lossy()))?;
    }
    // Upgraded by the script.
    fs::copy(work.join("spile-lu-5642_1.1-1_amd64.deb"), system.join("root/upgrade.deb"))?;
    for (name, text) in UNITS {
        fs::write(system.join("etc/systemd/system").join(name), text)?;
    }
    for (name, text) in [("use.sh", USE), ("failure.sh", FAILURE), ("story.sh", STORY)] {
        fs::write(system.join("root").join(name), text)?;
    }
    fs::write(system.join("etc/hostname"), "guest\n")?;
    inside(system, "systemctl enable mnt.service story.service")?;
    inside(system, &format!("depmod {release} && mkinitramfs -o /boot/{INITRAMFS_TOOLS}-{release} {release}"))
}

/// The compiler, and for the other kernel: the probed module, the workaround in a directory of such modules, and an
/// initramfs with it. The compiler's cache for that kernel is preserved: the guest is slow.
fn install_other_kernel(root: &Path, system: &Path, other: &str) -> Result<()> {
    fs::copy(root.join("target/debug/spile"), system.join("root/spile"))?;
    fs::copy(root.join("examples/lu_5642/lu_5642.stp"), system.join("root/lu_5642.stp"))?;
    command("cp", &["-r"], &[&root.join("tests/fixtures/lustre"), &system.join("root").join(other)])?;
    inside(system, &format!("make -C /lib/modules/{other}/build M=/root/{other} modules"))?;
    let place = format!("/lib/modules/{other}/spile");
    let build = format!(
        "SPILE_CACHE_DIR=/var/cache/spile /root/spile -g -p4 -m lu_5642 -r {other} -d /root/{other}/lustre.ko /root/lu_5642.stp"
    );
    inside(
        system,
        &format!("mkdir -p {place} /var/cache/spile && chmod 700 /var/cache/spile && cd {place} && {build}"),
    )?;
    inside(
        system,
        &format!(
            "dracut --quiet --no-hostonly --gzip --drivers 'virtio_pci virtio_blk ext4' --kver {other} /boot/{DRACUT}-{other}"
        ),
    )?;
    inside(system, &format!("mkdir -p /srv/modules/{other} && mv {place}/lu_5642.ko /srv/modules/{other}/"))
}

const UNITS: [(&str, &str); 2] = [
    (
        "mnt.service",
        "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh /root/use.sh\n[Install]\nWantedBy=multi-user.target\n",
    ),
    (
        "story.service",
        "[Unit]\nAfter=mnt.service spile@lu_5642.service\n[Service]\nType=idle\nExecStart=/bin/bash /root/story.sh\n[Install]\nWantedBy=multi-user.target\n",
    ),
];

/// The first use of the code that is worked around.
const USE: &str = "\
[ -e /sys/module/lustre ] || insmod /root/$(uname -r)/lustre.ko || exit 0
mount -t lustre none /mnt
. /root/failure.sh
failure >/root/first-use
";

const FAILURE: &str = "\
failure() {
	echo 5 >/sys/module/lustre/parameters/fail_errno
	setpriv --reuid=4242 --regid=4242 --clear-groups getfattr -n user.job /mnt/file 2>&1 | sed 's/.*: //'
}
";

/// A shell command in the system, with the file systems that its tools need.
fn inside(system: &Path, line: &str) -> Result<()> {
    const ENTER: &str = "mount -t proc proc \"$1/proc\" && mount -t devtmpfs dev \"$1/dev\" && exec chroot \"$1\" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -c \"$2\"";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", ENTER, "sh"])
        .arg(system)
        .arg(line)
        .stdin(Stdio::null())
        .output();
    let output = output.context("running unshare")?;
    ensure!(
        output.status.success(),
        "{line}:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// The output of the script at one boot.
fn start(boot: &Boot, system: &Path, disk: &Path, work: &Path) -> Result<String> {
    let [facts, console] = ["facts", "console"].map(|name| work.join(format!("{}-{name}", boot.stage)));
    let append = format!(
        "root=/dev/vda rw console=ttyS0 no_timer_check norandmaps panic=-1 quiet systemd.show_status=0 systemd.mask=e2scrub_reap.service systemd.mask=getty@tty1.service systemd.mask=serial-getty@ttyS0.service story={}",
        boot.stage
    );
    let boot_file = |name: &str| system.join("boot").join(format!("{name}-{}", boot.release));
    let mut qemu = Command::new("qemu-system-x86_64");
    qemu.args([
        "-accel",
        "tcg,thread=single",
        "-cpu",
        "qemu64",
        "-smp",
        "2",
        "-m",
        "1G",
        "-display",
        "none",
        "-monitor",
        "none",
    ]);
    qemu.args(["-nodefaults", "-no-user-config", "-no-reboot", "-append", &append]);
    qemu.arg("-kernel").arg(boot_file("vmlinuz")).arg("-initrd").arg(boot_file(boot.initramfs));
    qemu.arg("-drive").arg(format!("file={},if=virtio,format=raw,cache=unsafe", disk.display()));
    for port in [&console, &facts] {
        qemu.arg("-serial").arg(format!("file:{}", port.display()));
    }
    let mut child = qemu.stdin(Stdio::null()).spawn().context("starting qemu")?;
    let started = Instant::now();
    while child.try_wait()?.is_none() {
        if started.elapsed() > BOOT {
            child.kill()?;
            child.wait()?;
            let report = fs::read_to_string(&facts).unwrap_or_default();
            bail!("the boot '{}' did not end in {} s:\n{report}\n{}", boot.stage, BOOT.as_secs(), tail(&console));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let report = fs::read_to_string(&facts).with_context(|| format!("reading {}", facts.display()))?.replace('\r', "");
    if !report.lines().any(|line| line == "end") {
        println!("{}", tail(&console));
    }
    Ok(report)
}

fn tail(console: &Path) -> String {
    let text = fs::read(console).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}

fn command(program: &str, options: &[&str], paths: &[&Path]) -> Result<()> {
    let output = Command::new(program).args(options).args(paths).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("running {program}"))?;
    ensure!(output.status.success(), "{program} failed:\n{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
