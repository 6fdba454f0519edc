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

    /// A directory for PATH with the C compilers that are installed, which compile the runtime once, also for later runs
    /// of the tests. For tests that are about building it in caches of their own.
    fn compile_once(&self) -> Result<&Path> {
        let objects = self.root.join("target/compiled");
        let make = || compilers_that_keep(&self.work.join("compile-once"), &objects);
        let made = self.compile_once.get_or_init(|| make().map_err(|error| format!("{error:#}")));
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
                command.env("XTASK", crate::tree::own_program());
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

/// Writes COMPILE_ONCE into `directory`, under the name of each gcc in PATH. What they compile is kept in `objects`.
fn compilers_that_keep(directory: &Path, objects: &Path) -> Result<PathBuf> {
    for made in [directory, objects] {
        fs::create_dir_all(made).with_context(|| format!("making {}", made.display()))?;
    }
    remove_unused(objects)?;
    let link = directory.join("objects");
    std::os::unix::fs::symlink(objects, &link).with_context(|| format!("making {}", link.display()))?;
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

/// Removes the files that have not been used for a week: each version of the runtime's sources leaves some 10 MB.
fn remove_unused(objects: &Path) -> Result<()> {
    const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);
    for file in fs::read_dir(objects).with_context(|| format!("reading {}", objects.display()))? {
        let path = file?.path();
        let age = fs::metadata(&path)?.modified()?.elapsed().unwrap_or_default();
        if age > LONGEST {
            fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    /// A compiler that counts, one that compiles once before it in PATH, and the units of two modules.
    struct Once {
        place: tempfile::TempDir,
        run: u32,
    }

    impl Once {
        fn new() -> Once {
            let place = tempfile::tempdir().unwrap();
            let counting = place.path().join("counting");
            fs::create_dir(&counting).unwrap();
            let count = place.path().join("count");
            let real = which::which("gcc").unwrap();
            let text = format!(
                "#!/bin/sh\ncase \"$*\" in *' -E') ;; *) echo >>{} ;; esac\nexec {} \"$@\"\n",
                count.display(),
                real.display()
            );
            fs::write(counting.join("gcc"), text).unwrap();
            fs::set_permissions(counting.join("gcc"), fs::Permissions::from_mode(0o755)).unwrap();
            let once = Once { place, run: 0 };
            once.begin_run();
            once
        }

        fn begin_run(&self) {
            compilers_that_keep(&self.run_directory(), &self.place.path().join("objects")).unwrap();
        }

        fn run_directory(&self) -> PathBuf {
            self.place.path().join(self.run.to_string())
        }

        /// Compiles `text` as the unit of a module. The digest of its object, its list of dependencies and the compiler's messages.
        fn compile(&self, module: &str, text: &str, options: &[&str]) -> (Vec<u8>, String, String) {
            let directory = self.place.path().join(module);
            fs::create_dir_all(directory.join("runtime-c")).unwrap();
            let source = directory.join("runtime-c/unit_one.c");
            fs::write(&source, text).unwrap();
            let (object, list) = (directory.join("one.o"), directory.join("one.d"));
            let path = std::env::var("PATH").unwrap();
            let output = Command::new(self.run_directory().join("gcc"))
                .env("PATH", format!("{}:{path}", self.place.path().join("counting").display()))
                .current_dir("/")
                .arg(format!("-Wp,-MMD,{}", list.display()))
                .arg(format!("-ffile-prefix-map={}=spile", directory.display()))
                .arg(format!("-DKBUILD_MODNAME={module}"))
                .args(options)
                .args(["-g", "-Wundef", "-c", "-o"])
                .args([&object, &source])
                .output()
                .unwrap();
            let messages = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.success(), "{messages}");
            let object = Sha256::digest(fs::read(object).unwrap()).to_vec();
            (object, fs::read_to_string(list).unwrap(), messages)
        }

        fn compiled(&self) -> usize {
            fs::read_to_string(self.place.path().join("count")).unwrap().lines().count()
        }
    }

    #[test]
    fn equal_units_are_compiled_once() {
        let mut once = Once::new();
        let text = "const char *file = __FILE__; int one(void) { return NUMBER; }\n";
        let (object, list, _) = once.compile("first", text, &["-DNUMBER=1"]);
        let (again, of_other, _) = once.compile("other", text, &["-DNUMBER=1"]);
        assert_eq!((object, list.replace("/first/", "/other/")), (again.clone(), of_other.clone()));
        assert_eq!(once.compile("other", text, &["-DNUMBER=1"]), (again.clone(), of_other.clone(), String::new()));
        once.run += 1;
        once.begin_run();
        assert_eq!(once.compile("other", text, &["-DNUMBER=1"]), (again.clone(), of_other, String::new()));
        assert_eq!(once.compiled(), 1);

        assert_ne!(once.compile("other", text, &["-DNUMBER=2"]).0, again);
        assert_eq!(once.compiled(), 2, "another macro");
        once.compile("other", text, &["-DNUMBER=1", "-O2"]);
        assert_eq!(once.compiled(), 3, "another option");
        once.compile("other", &text.replace("one(", "two("), &["-DNUMBER=1"]);
        assert_eq!(once.compiled(), 4, "another text");
    }

    #[test]
    fn warnings_are_repeated() {
        let once = Once::new();
        // The preprocessed text of both is the same.
        let (with, without) = ("#if MISSING\n#endif\nint one;\n", "#ifdef MISSING\n#endif\nint one;\n");
        assert_eq!(once.compile("first", without, &[]).2, "");
        let (_, _, said) = once.compile("first", with, &[]);
        assert!(said.contains("/first/runtime-c/unit_one.c:1:5: warning: \"MISSING\" is not defined"), "{said}");
        assert_eq!(once.compile("other", with, &[]).2, said.replace("/first/", "/other/"));
        assert_eq!(once.compile("other", without, &[]).2, "");
        assert_eq!(once.compiled(), 2);
    }
}
