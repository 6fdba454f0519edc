// SPDX-License-Identifier: GPL-2.0-or-later

//! Compiles the scripts of the tests, several at a time, on the host.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use spile_base::cache;

use super::find::{Kind, Test, script_path};
use super::header::Script;
use super::judge::Observed;
use super::timings::{Part, Timings};
use crate::family::Family;
use crate::fixtures::{EDGE, FAULT, Fixture, LUSTRE, MAPPED, PTLRPC};
use crate::measure;
use crate::place::Place;

/// Data that all compilations share.
pub struct BuildContext {
    /// The top of the tree.
    pub root: PathBuf,
    /// The kernel that tests are built for.
    pub place: Place,
    /// The compiler.
    pub spile: PathBuf,
    /// The test modules, as scripts name them.
    pub modules: Vec<PathBuf>,
    /// Where the compiled scripts of a test go: a directory each, by its number.
    pub work: PathBuf,
    /// Modules are made by Kbuild itself.
    pub kbuild: bool,
    /// Tests that have many cases of a kind try all of them: SPILE_TEST_ALL is 1 for them, otherwise empty.
    pub all: bool,
    /// The generated modules, or why there are none; built for the first test that needs them.
    family: OnceLock<Result<Family, String>>,
    /// See [`BuildContext::cache_seed`].
    cache_seed: OnceLock<Result<PathBuf, String>>,
    /// See [`BuildContext::compile_once`].
    compile_once: OnceLock<Result<PathBuf, String>>,
    /// See [`BuildContext::kernel_index`].
    kernel_index: OnceLock<Result<PathBuf, String>>,
}

/// A C compiler that compiles the runtime once; its comment describes it.
const COMPILE_ONCE: &str = include_str!("compile_once.sh");

impl BuildContext {
    /// Builds what the tests of the kernel share: fixture modules and the compiler. Fails if one does not build.
    pub fn open(root: &Path, place: Place, kbuild: bool, all: bool) -> Result<BuildContext> {
        let modules: Result<Vec<_>> =
            [LUSTRE, PTLRPC, EDGE].map(|fixture: Fixture| fixture.build(root, &place)).into_iter().collect();
        crate::user_programs::build(root)?;
        let work = root.join("target/tests");
        if work.is_dir() {
            fs::remove_dir_all(&work).with_context(|| format!("emptying {}", work.display()))?;
        }
        fs::create_dir_all(&work)?;
        Ok(BuildContext {
            root: root.to_path_buf(),
            spile: place.spile()?,
            place,
            modules: modules?,
            work,
            kbuild,
            all,
            family: OnceLock::new(),
            cache_seed: OnceLock::new(),
            compile_once: OnceLock::new(),
            kernel_index: OnceLock::new(),
        })
    }

    /// The generated modules.
    pub fn family(&self) -> Result<&Family> {
        let built =
            self.family.get_or_init(|| Family::build(&self.root, &self.place).map_err(|error| format!("{error:#}")));
        built.as_ref().map_err(|error| anyhow::anyhow!("{error}"))
    }

    /// A directory with what costs seconds and is the same for all tests: the compiled runtime and the tables of debug
    /// information, as far as they were there when the first test on the host asked. For tests with a cache of their own that
    /// are about something else.
    fn cache_seed(&self) -> Result<&Path> {
        let made =
            self.cache_seed.get_or_init(|| seed(&self.work.join("cache-seed")).map_err(|error| format!("{error:#}")));
        made.as_deref().map_err(|error| anyhow::anyhow!("{error}"))
    }

    /// A directory for PATH with the C compilers that are installed, which compile the runtime once in this run of the
    /// tests. For tests that are about building it in caches of their own.
    fn compile_once(&self) -> Result<&Path> {
        let made = self
            .compile_once
            .get_or_init(|| compilers_that_keep(&self.work.join("compile-once")).map_err(|error| format!("{error:#}")));
        made.as_deref().map_err(|error| anyhow::anyhow!("{error}"))
    }

    /// The kernel's debug information as `--export-index` writes it, with that of nfs, of the test modules and of the
    /// program `user`: exporting reads all of it. The CPU time is that of this call.
    fn kernel_index(&self) -> Result<(&Path, Duration)> {
        let mut spent = Duration::ZERO;
        let mut export = || -> Result<PathBuf> {
            let file = self.work.join("kernel.index");
            let mut command = measure::low_priority(&self.spile);
            command.args(["-r", &self.place.kernel.release]);
            for module in &self.modules {
                command.arg("-d").arg(module);
            }
            let program = crate::user_programs::directory(&self.root).join("user");
            let made = measure::output(command.arg("--export-index").arg(&file).arg("nfs").arg(program))?;
            spent = made.processor;
            anyhow::ensure!(made.status.success(), "exporting the kernel's index: {}", made.stderr);
            Ok(file)
        };
        let made = self.kernel_index.get_or_init(|| export().map_err(|error| format!("{error:#}")));
        let file = made.as_deref().map_err(|error| anyhow::anyhow!("{error}"))?;
        Ok((file, spent))
    }

    /// The modules that are not the kernel's and that the test's scripts may name.
    fn modules_of(&self, test: &Test) -> Result<Vec<PathBuf>> {
        let family = if test.header.family { self.family()?.modules() } else { Vec::new() };
        let named =
            [FAULT, MAPPED].into_iter().filter(|fixture| test.header.modules.iter().any(|name| name == fixture.name));
        let named: Result<Vec<PathBuf>> = named.map(|fixture| fixture.build(&self.root, &self.place)).collect();
        Ok([self.modules.clone(), family, named?].concat())
    }

    /// Files of one test.
    pub fn directory(&self, test: &Test) -> PathBuf {
        self.work.join(&test.name)
    }

    /// The compiler for this kernel, knowing the test modules, run in a directory.
    fn command(&self, test: &Test, directory: &Path) -> Result<Command> {
        let mut command = self.place.command(&self.spile, directory);
        command.args(["-r", &self.place.kernel.release]);
        if let Some(system) = self.place.system() {
            command.arg("--sysroot").arg(system);
        }
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", crate::user_programs::directory(&self.root).display()));
        for module in self.modules_of(test)? {
            command.arg("-d").arg(module);
        }
        if self.kbuild {
            command.arg("--kbuild");
        }
        Ok(command)
    }

    /// Runs spile on a script up to `pass`; the module, if one comes out, is NAME.ko in the test's directory.
    fn compile(&self, test: &Test, script: &Script, pass: u32) -> Result<(Observed, Duration)> {
        let directory = self.directory(test);
        fs::create_dir_all(&directory)?;
        let mut command = self.command(test, &directory)?;
        command.arg(format!("-p{pass}"));
        let root = self.root.display().to_string();
        command.args(["-m", &script.name]).args(script.options.iter().map(|option| option.replace("$ROOT", &root)));
        command.arg(script_path(&self.root, test, script)).args(&script.args);
        observe(&mut command)
    }

    /// Everything of a test that is done on the host: for a test in the guest its modules, as an error if that fails;
    /// for another the whole of it. With the CPU time that it took.
    fn run(&self, test: &Test) -> Result<(Observed, Duration)> {
        match test.kind {
            Kind::Script => {
                let script = script_of(test);
                self.compile(test, &script, test.header.pass.min(4))
            }
            Kind::GuestShell => {
                let mut all = Observed::default();
                let mut spent = Duration::ZERO;
                for script in &test.header.scripts {
                    let (one, processor) = self.compile(test, script, 4)?;
                    all.stderr.push_str(&one.stderr);
                    all.exit = all.exit.max(one.exit);
                    spent += processor;
                }
                Ok((all, spent))
            }
            Kind::HostShell => {
                let directory = self.directory(test);
                fs::create_dir_all(&directory)?;
                let mut command = measure::low_priority("sh");
                // The test ends at its first command that fails.
                command.arg("-e").arg(&test.path).current_dir(&directory).stdin(Stdio::null());
                command.env("XTASK", std::env::current_exe().unwrap_or_default());
                command.env("SPILE", &self.spile).env("RELEASE", &self.place.kernel.release).env("ROOT", &self.root);
                command.env(crate::guest::RELEASE_OF_TEST, &self.place.kernel.release);
                if let Some(directory) = crate::guest::saved_states(&self.root).directory {
                    command.env("SPILE_GUEST_CACHE_DIR", directory);
                }
                command.env("CACHE", self.cache_seed()?).env("COMPILE_ONCE", self.compile_once()?);
                let modules = self.modules_of(test)?;
                let modules: Vec<String> = modules.iter().map(|module| format!("-d {}", module.display())).collect();
                if test.header.family {
                    command.env("FAMILY", &self.family()?.directory);
                }
                command.env("MODULES", modules.join(" "));
                if self.all {
                    command.env("SPILE_TEST_ALL", "1");
                }
                let mut prepared = Duration::ZERO;
                if fs::read_to_string(&test.path).is_ok_and(|text| text.contains("$KERNEL_INDEX")) {
                    let (file, spent) = self.kernel_index()?;
                    command.env("KERNEL_INDEX", file);
                    prepared = spent;
                }
                observe(&mut command).map(|(observed, spent)| (observed, prepared + spent))
            }
        }
    }

    /// [`BuildContext::run`], with its time. Whether it went well.
    pub fn run_timed(&self, test: &Test, timings: &Timings, done: &dyn Fn(&Result<Observed>)) -> bool {
        let began = Instant::now();
        let (result, processor) = match self.run(test) {
            Ok((observed, processor)) => (Ok(observed), processor),
            Err(error) => (Err(error), Duration::ZERO),
        };
        let part = if test.kind == Kind::HostShell { Part::HostTest } else { Part::Scripts };
        timings.add(part, &test.name, began, processor);
        done(&result);
        result.is_ok_and(|observed| observed.exit == 0)
    }
}

/// Copies the entries that take long to make from the cache of this run into `directory`, as the cache's own user.
fn seed(directory: &Path) -> Result<PathBuf> {
    let settings = cache::Settings::from_environment();
    for kind in [cache::Kind::Runtime, cache::Kind::Index] {
        let to = directory.join(kind.name());
        fs::create_dir_all(&to).with_context(|| format!("making {}", to.display()))?;
        let Some(from) = settings.directory.as_ref().map(|root| root.join(kind.name())) else { continue };
        for entry in fs::read_dir(from).into_iter().flatten().flatten() {
            // An entry appears complete; one that has just been removed is made again.
            let _ = fs::copy(entry.path(), to.join(entry.file_name()));
        }
    }
    Ok(directory.to_path_buf())
}

/// Writes COMPILE_ONCE into `directory`, under the name of each gcc in PATH.
fn compilers_that_keep(directory: &Path) -> Result<PathBuf> {
    fs::create_dir_all(directory).with_context(|| format!("making {}", directory.display()))?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let files = std::env::split_paths(&path).flat_map(|place| fs::read_dir(place).into_iter().flatten().flatten());
    for name in files.map(|file| file.file_name()) {
        let version = name.to_str().and_then(|name| name.strip_prefix("gcc-"));
        let is_gcc = name == "gcc" || version.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit()));
        let own = directory.join(&name);
        if is_gcc && !own.exists() {
            fs::write(&own, COMPILE_ONCE)
                .and_then(|()| fs::set_permissions(&own, fs::Permissions::from_mode(0o755)))
                .with_context(|| format!("writing {}", own.display()))?;
        }
    }
    Ok(directory.to_path_buf())
}

/// A test that is a script, as if a shell test had named it.
pub fn script_of(test: &Test) -> Script {
    Script {
        name: module_name(test),
        options: test.header.options.clone(),
        file: test.path.display().to_string(),
        args: test.header.args.clone(),
    }
}

/// A valid module name that is easy to recognise: the end of the test's name.
fn module_name(test: &Test) -> String {
    let name: String =
        test.name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    let tail = &name[name.len().saturating_sub(50)..];
    format!("t_{tail}")
}

fn observe(command: &mut Command) -> Result<(Observed, Duration)> {
    let measured = measure::output(command)?;
    let observed = Observed {
        stdout: measured.stdout,
        stderr: measured.stderr,
        exit: measured.status.code().unwrap_or(255),
        ..Observed::default()
    };
    Ok((observed, measured.processor))
}
