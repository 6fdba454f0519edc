// SPDX-License-Identifier: GPL-2.0-or-later

//! Which kernel a script is for, and how far the passes can go for it.

use std::path::{Path, PathBuf};

use spile_base::cache::Cache;
use spile_debuginfo::target::{Kernel, Programs, SearchOptions, Servers, of_other_releases, releases_below};

use crate::cli::options::Options;
use crate::reporter::{Failed, Reporter};

/// The kernel that a script is compiled for.
pub struct Target {
    /// As `uname -r` prints it.
    pub release: String,
    /// None: nothing of it is installed here. Scripts that need no kernel can still be examined.
    pub kernel: Option<Kernel>,
    /// Programs and libraries that scripts name.
    pub programs: Programs,
}

impl Target {
    /// The kernel of `-r`, `--index` or `--guest`; otherwise the running one.
    pub fn choose(options: &Options, reporter: &Reporter) -> Result<Target, Failed> {
        let release = release(options, reporter)?;
        let kernel = open(options, reporter, &release)?;
        // `-r` may have given a build tree.
        let release = kernel.as_ref().map_or(release, |kernel| kernel.release().to_string());
        warn_of_other_releases(&options.kernel.files(), reporter, &release);
        Ok(Target { release, kernel, programs: programs(options, reporter) })
    }

    /// The directory of the kernel's build, with its configuration and headers.
    pub fn build_dir(&self) -> PathBuf {
        let standard = || Path::new("/lib/modules").join(&self.release).join("build");
        self.kernel.as_ref().map_or_else(standard, Kernel::build_dir)
    }
}

/// Says which files of `-d` are modules of another kernel than `release`. They are used: kernels with symbol versions may take
/// such a module.
pub fn warn_of_other_releases(files: &[PathBuf], reporter: &Reporter, release: &str) {
    for (path, built) in of_other_releases(files, release) {
        reporter.notice(&format!(
            "WARNING: -d {} was built for kernel {built}, not for {release}: its functions and types are used, but {release} may refuse to load it; -r RELEASE chooses the kernel",
            path.display()
        ));
    }
}

/// The release of the running kernel; empty if uname(2) fails.
pub fn running_release() -> String {
    nix::sys::utsname::uname().map_or_else(|_| String::new(), |name| name.release().to_string_lossy().into_owned())
}

/// Where to look for a kernel's files.
pub fn search(options: &Options) -> SearchOptions {
    SearchOptions {
        sysroot: options.kernel.sysroot.clone(),
        modules: options.kernel.files(),
        own_modules_first: options.ask.kernels.len() > 1,
        ..SearchOptions::default()
    }
}

/// Programs and libraries in user space, of this system or that of `--sysroot`.
pub fn programs(options: &Options, reporter: &Reporter) -> Programs {
    let cache = Cache::open(&options.build.cache_settings());
    Programs::new(search(options))
        .with_cache(cache)
        .with_servers(servers(options, reporter))
        .with_index(options.kernel.index.clone())
}

/// Gives `kernel` the cache, and the debuginfod servers that may be asked.
pub fn equipped(kernel: Kernel, options: &Options, reporter: &Reporter) -> Kernel {
    kernel.with_cache(Cache::open(&options.build.cache_settings())).with_servers(servers(options, reporter))
}

fn servers(options: &Options, reporter: &Reporter) -> Option<Servers> {
    let wanted = options.kernel.download_debuginfo.as_deref() != Some("no");
    if wanted { Servers::from_environment(reporter.progress_text()) } else { None }
}

/// The pass to stop after. For a kernel that is not the running one only compiling is possible; a host that cannot load
/// modules is detected before compiling.
pub fn last_pass(options: &Options, reporter: &Reporter) -> Result<u8, Failed> {
    let asked = options.build.last_pass.unwrap_or(5);
    if options.ask.only_asks() {
        return Ok(asked);
    }
    let indexed = options.kernel.index.as_ref().filter(|_| asked == 5);
    let indexed = indexed.and_then(|index| Kernel::from_index(index, search(options)).ok());
    let named = indexed.as_ref().map(Kernel::release).or(options.kernel.release.as_deref());
    let foreign = named.is_some_and(|release| release != running_release());
    if asked == 5 && foreign && !options.run.guest {
        if options.build.last_pass.is_some() {
            let message = "-p5 with -r or --index: the module can only run on the kernel it is compiled for; --guest runs it in a guest of that kernel";
            return Err(reporter.usage(message));
        }
        reporter.remark("WARNING: kernel release is not the running one: stopping after pass 4; --guest runs the script in a guest of it");
        return Ok(4);
    }
    if asked == 5 && !options.run.guest {
        check_host(reporter)?;
    }
    Ok(asked)
}

/// Fails where the module could not be loaded by this user into this kernel.
fn check_host(reporter: &Reporter) -> Result<(), Failed> {
    let guest = "spile --guest ... runs the same script in a throw-away guest of an installed kernel".to_string();
    if !Path::new("/proc/modules").exists() {
        return Err(reporter.fail("this kernel cannot load modules (CONFIG_MODULES is not set)", &[guest]));
    }
    if !nix::unistd::geteuid().is_root() {
        let sudo = "run it as root, or compile it with -p4 and let root run spilerun".to_string();
        return Err(reporter.fail("loading a module takes root", &[sudo, guest]));
    }
    Ok(())
}

/// The argument of `-r`, or the release of the kernel that is used without it.
fn release(options: &Options, reporter: &Reporter) -> Result<String, Failed> {
    if let Some(release) = &options.kernel.release {
        return Ok(release.clone());
    }
    if options.run.guest {
        let kernel = spile_guest::Kernel::newest();
        return kernel.map(|kernel| kernel.release.clone()).map_err(|error| reporter.error(error));
    }
    let running = running_release();
    // The index contains the release.
    if options.kernel.index.is_some() {
        return Ok(running);
    }
    // A host whose own kernel has no packages (a container, a micro-VM) can still compile for one that is installed.
    if !Path::new("/lib/modules").join(&running).is_dir()
        && (options.ask.only_asks() || options.build.last_pass.is_some_and(|pass| pass < 5))
        && let Ok(kernel) = spile_guest::Kernel::newest()
        && options.kernel.sysroot.as_ref().is_none_or(|root| releases_below(root).contains(&kernel.release))
    {
        reporter.remark(&format!(
            "NOTE: kernel {running} is not installed here: {} {}; -r RELEASE chooses",
            if options.ask.only_asks() { "looking at" } else { "compiling for" },
            kernel.release
        ));
        return Ok(kernel.release.clone());
    }
    Ok(running)
}

/// None: nothing of the kernel is installed, and it was not named.
fn open(options: &Options, reporter: &Reporter, release: &str) -> Result<Option<Kernel>, Failed> {
    if let Some(index) = &options.kernel.index {
        return Kernel::from_index(index, search(options))
            .map(Some)
            .map_err(|error| reporter.fail(&error, &error.notes()));
    }
    match Kernel::open(release, search(options)) {
        Ok(kernel) => Ok(Some(equipped(kernel, options, reporter))),
        Err(error) if options.kernel.release.is_some() => Err(reporter.fail(&error, &error.notes())),
        Err(_) => {
            options.kernel.sysroot.as_ref().map_or(Ok(None), |root| no_kernel_below(root, release, options, reporter))
        }
    }
}

/// For listings, and passes that build nothing, a `--sysroot` may have programs only. Nothing is built for a kernel that is
/// not in it: it would be this system's.
fn no_kernel_below(
    root: &Path,
    release: &str,
    options: &Options,
    reporter: &Reporter,
) -> Result<Option<Kernel>, Failed> {
    if options.ask.only_asks() || options.build.last_pass.is_some_and(|pass| pass < 3) {
        return Ok(None);
    }
    let note = match releases_below(root).as_slice() {
        [] => "neither lib/modules nor usr/lib/debug/lib/modules below it has a kernel".to_string(),
        releases => format!("it has {}: name one with -r", releases.join(", ")),
    };
    Err(reporter.fail(format!("--sysroot {}: kernel {release} is not in it", root.display()), &[note]))
}
