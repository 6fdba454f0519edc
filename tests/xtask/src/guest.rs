// SPDX-License-Identifier: GPL-2.0-or-later

//! A guest as the tests use it: with the fixture modules, `getfattr`, strace and spilerun inside. As a task of its own, to try
//! things by hand: `cargo xtask guest 'modprobe lustre && mount -t lustre none /mnt && ls /mnt'`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use spile_base::cache::{DEFAULT_LIMIT, Settings};
use spile_guest::{Acceleration, End, Guest, Kernel, Running, Streams};

use crate::family::Family;
use crate::fixtures::{EDGE, FAULT, HOSTILE, LIVEPATCH, LUSTRE, LUSTRE_VARIANT, MAPPED, PTLRPC};
use crate::measure;
use crate::place::Place;
use crate::trusting;

/// In the environment of a test on the host: the kernel release that it is run for.
pub const RELEASE_OF_TEST: &str = "SPILE_TEST_RELEASE";

/// The arguments of `cargo xtask guest`.
#[derive(clap::Args)]
pub struct Options {
    /// Shell commands
    script: String,
    /// Kernel release or line, as for `test`
    #[arg(long, value_name = "RELEASE")]
    kernel: Option<String>,
    /// Root directory of another system, or of unpacked packages, whose kernel is booted; without the test modules
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kernel", "family", "trust"])]
    system: Option<PathBuf>,
    /// Files to copy into /root, with the libraries they need if they are programs
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// The same, at their own paths
    #[arg(long, value_name = "FILE")]
    program: Vec<PathBuf>,
    /// The kernel's own modules that it may load, with those that they need
    #[arg(long, value_name = "NAME")]
    module: Vec<String>,
    /// With the generated modules (`cargo xtask family`)
    #[arg(long)]
    family: bool,
    /// Its memory
    #[arg(long, value_name = "MB")]
    memory: Option<u32>,
    /// Parameters of the kernel's command line
    #[arg(long, value_name = "WORD")]
    parameter: Vec<String>,
    /// Boots a kernel whose only built-in certificate is this one (DER)
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// One CPU whose clock counts instructions, one a nanosecond: times do not depend on the machine
    #[arg(long)]
    counting: bool,
}

/// Runs shell commands in a guest.
pub fn run(options: &Options) -> Result<ExitCode> {
    let directory = tempfile::tempdir()?;
    let mut guest = match &options.system {
        Some(system) => {
            let mut guest = Guest::new(only_kernel(system)?);
            with_programs(&mut guest, &crate::root())?;
            guest.common();
            guest
        }
        None => {
            // A test on the host is about the kernel that it was started for.
            let of_test = std::env::var(RELEASE_OF_TEST).ok();
            let mut place = Place::find(options.kernel.as_deref().or(of_test.as_deref()))?;
            if let Some(certificate) = &options.trust {
                place.kernel = trusting::kernel(&place.kernel, certificate, &directory.path().join("vmlinux"))?;
            }
            let mut guest = equipped(&crate::root(), &place)?;
            guest.common();
            if options.family {
                with_family(&mut guest, &Family::build(&crate::root(), &place)?)?;
            }
            guest
        }
    };
    // That kernel is made for this guest alone.
    if options.trust.is_none() {
        guest.saved_states(saved_states(&crate::root()));
    }
    for file in &options.file {
        let name = file.file_name().with_context(|| format!("{} is no file", file.display()))?;
        guest.program(file, Path::new("/root").join(name))?;
    }
    for file in &options.program {
        guest.program(file, file)?;
    }
    for module in &options.module {
        guest.offer_module(module);
    }
    if let Some(memory) = options.memory {
        guest.memory_mib(memory);
    }
    for parameter in &options.parameter {
        guest.parameter(parameter);
    }
    if options.counting {
        guest.acceleration(Acceleration::Counting).cpus(1);
    }
    guest.script(&options.script).time_limit(Duration::from_secs(600) * measure::busy());
    let mut running = guest.start(Streams::inherit())?;
    woken(&mut running);
    let outcome = running.wait()?;
    match outcome.end {
        End::Exited(status) => Ok(ExitCode::from(u8::try_from(status).unwrap_or(1))),
        End::Died | End::Killed => {
            eprintln!("{}\nxtask: the guest ended early: {:?}", outcome.console, outcome.end);
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Wakes the guest each time it sleeps for seconds. On a busy machine the alarm that a test sets before may be over when
/// the guest has fallen asleep, and the next one that its clock gives is a day later.
pub fn woken(running: &mut Running) {
    const SLEEP: Duration = Duration::from_secs(5);
    let Some(monitor) = running.take_monitor() else { return };
    std::thread::spawn(move || {
        let mut slept = false;
        // Until qemu has ended.
        while let Ok(status) = monitor.ask("info status") {
            let sleeps = status.contains("suspended");
            if sleeps && slept && monitor.ask("system_wakeup").is_err() {
                break;
            }
            slept = sleeps;
            std::thread::sleep(SLEEP);
        }
    });
}

/// The cache of saved states of all guests, also those of `spile --guest` in tests that have caches of their own: in SPILE_GUEST_CACHE_DIR,
/// else in target/.
pub fn saved_states(root: &Path) -> Settings {
    // The tests of one kernel use about eight.
    Settings { directory: Some(root.join("target/guests")), limit: 2 * DEFAULT_LIMIT, poisoned: false }.of_guests()
}

/// The kernel of the system below `root`, which has one.
fn only_kernel(root: &Path) -> Result<Kernel> {
    let modules = root.join("lib/modules");
    let releases = std::fs::read_dir(&modules).with_context(|| format!("reading {}", modules.display()))?;
    let releases: Vec<_> = releases.collect::<Result<_, _>>()?;
    let [release] = &releases[..] else { bail!("{} has {} kernels, not one", modules.display(), releases.len()) };
    let release = release.file_name().into_string().ok().context("a release that is no UTF-8")?;
    Ok(Kernel::find_in(root, &release)?)
}

/// A guest with the files that all tests may use. The variant of the module lustre is at /root/variant/lustre.ko, so
/// that modprobe does not take it for the other. Programs have the same addresses each time: QEMU keeps translated code
/// by its address, and would translate each program again at each start, which takes half of a guest's time. New memory
/// is not cleared by the kernel, as Debian's would: that takes time, and what the runtime
/// forgets to initialize shows.
pub fn equipped(root: &Path, place: &Place) -> Result<Guest> {
    let lustre = LUSTRE.build(root, place)?;
    let variant = LUSTRE_VARIANT.build(root, place)?;
    let ptlrpc = PTLRPC.build(root, place)?;
    let mut guest = Guest::new(place.kernel.clone());
    guest.boot_limit(spile_guest::BOOT * place.slowness() * measure::busy());
    guest
        .parameter("norandmaps init_on_alloc=0")
        .extra_module(lustre)
        .extra_module(ptlrpc)
        .extra_module(EDGE.build(root, place)?)
        .extra_module(FAULT.build(root, place)?)
        .extra_module(LIVEPATCH.build(root, place)?)
        .extra_module(HOSTILE.build(root, place)?)
        .extra_module(MAPPED.build(root, place)?);
    guest.copy(variant, "/root/variant/lustre.ko")?;
    with_programs(&mut guest, root)?;
    Ok(guest)
}

fn with_programs(guest: &mut Guest, root: &Path) -> Result<()> {
    for name in ["getfattr", "setfattr"] {
        let path = Path::new("/usr/bin").join(name);
        guest.program(&path, &path).with_context(|| format!("{name} is in the package attr"))?;
    }
    let strace = Path::new("/usr/bin/strace");
    guest.program(strace, strace).context("strace is in the package strace")?;
    let programs = [
        "attacker", "caller", "calls", "calls32", "debugger", "device", "forge", "hold", "ioctls", "line", "load",
        "measure", "measures", "numbered", "restless", "rpcd", "served", "shown", "starved", "without",
    ];
    for name in programs {
        guest.program(crate::fixtures::program(root, name)?, format!("/usr/bin/{name}"))?;
    }
    let bash = Path::new("/usr/bin/bash");
    guest.program(bash, bash).context("bash is in the package bash")?;
    // At the same path as on the host, where the compiler has found them.
    let directory = crate::user_programs::build(root)?;
    for name in crate::user_programs::names() {
        let path = directory.join(name);
        guest.program(&path, &path)?.link(format!("/usr/bin/{name}"), path);
    }
    for name in crate::user_programs::libraries() {
        let path = directory.join(name);
        guest.program(&path, &path)?;
    }
    let stacks = crate::fixtures::stacks(root)?;
    for name in ["stacks", "stacks_stripped"] {
        guest.program(stacks.join(name), format!("/usr/bin/{name}"))?;
    }
    for name in ["libstacks.so", "libstackscxx.so"] {
        guest.program(stacks.join(name), format!("/usr/lib/stacks/{name}"))?;
    }
    let spilerun = root.join("target/debug/spilerun");
    if spilerun.is_file() {
        guest.program(spilerun, "/usr/bin/spilerun")?;
    }
    Ok(())
}

/// Modprobe finds the generated modules then. The other build of the last one is below /root/variant.
pub fn with_family(guest: &mut Guest, family: &Family) -> Result<()> {
    for module in family.modules() {
        guest.extra_module(module);
    }
    let changed = family.changed();
    let name = changed.file_name().context("a file without a name")?;
    guest.copy(&changed, Path::new("/root/variant").join(name))?;
    Ok(())
}
