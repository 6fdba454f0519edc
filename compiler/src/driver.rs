// SPDX-License-Identifier: GPL-2.0-or-later

//! The passes in order, and where `-p1` to `-p5` stop. The one place that reads scripts, prints and takes the time.

mod ask;
mod headers;
mod remote;

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Instant;

use sha2::{Digest, Sha256};
use spile_abi::escape;

use crate::cli::options::{Form, Options, Script, module_name};
use crate::cli::passes::{Clock, memory, processor_time};
use crate::cli::progress::{Progress, Speaker};
use crate::cli::relevant::relevant;
use crate::cli::report::{self, Report};
use crate::{cli, peer};
use spile_base::cache::{Cache, Key};
use spile_base::scratch::Scratch;
use spile_core::elaborate;
use spile_core::emit::{self, Units};
use spile_core::library::{self, Library};
use spile_core::plan::{self, Limits, Naming, Plan};
use spile_core::probe::{self, Resolver};
use spile_core::program::Program;
use spile_core::syscalls::Style;
use spile_debuginfo::target::{Kernel, SearchOptions, Servers};
use spile_kbuild as kbuild;
use spile_kbuild::finished::{self, Finished};
use spile_source::diagnostic::{Code, Diagnostic, Severity, explain, json, render};
use spile_source::{FileId, Origin, SourceMap};
use spile_syntax::{self as syntax, Environment, ast};

/// What is left to do when the passes are through.
pub enum Outcome {
    Done(ExitCode),
    /// Call the loader with these arguments; the directory holds the module and goes afterwards.
    /// `apart`: in a process of its own, as `stap` has it.
    Run {
        arguments: Vec<OsString>,
        directory: Option<Scratch>,
        apart: Option<peer::Apart>,
    },
}

/// The session is over: what was wrong has been said.
struct Failed(u8);

const WRONG: Failed = Failed(1);

/// Compiles, and says what to run. `arguments` as the process got them.
pub fn main(arguments: Vec<OsString>) -> Outcome {
    let has_words_of_rc = arguments.get(1).is_some_and(|word| word == remote::MODULE_DIRECTORY);
    let arguments = match if has_words_of_rc { Ok(arguments) } else { cli::rc::with_words(arguments) } {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("spile: {}", escape::line(&message));
            return Outcome::Done(ExitCode::FAILURE);
        }
    };
    let given = arguments.clone();
    let options = match Options::parse_words(arguments) {
        Ok(options) => options,
        Err(error) => {
            // Help and version are no errors and go to standard output.
            let _ = error.print();
            return Outcome::Done(ExitCode::from(u8::from(error.use_stderr())));
        }
    };
    let started = Instant::now();
    let mut session = Session::new(options);
    let outcome = match session.options.remote.is_empty() || session.options.only_asks() || session.options.version {
        true => session.run(),
        false => session.run_remotely(&given),
    };
    if let Some(form) = session.options.time_report {
        eprint!("{}", session.report.text(form, started.elapsed(), processor_time(), report::peak_memory()));
    }
    match outcome {
        Ok(outcome) => outcome,
        Err(Failed(status)) => {
            // What did not compile is what one wants to look at.
            drop(session.kept_directory());
            Outcome::Done(ExitCode::from(status))
        }
    }
}

struct Session {
    options: Options,
    sources: SourceMap,
    color: bool,
    directory: Option<Scratch>,
    /// What was said since pass 1, to be said again when the module is taken from the cache.
    warnings: String,
    report: Report,
    /// Of the work that is going on.
    speaker: Rc<RefCell<Option<Speaker>>>,
}

impl Session {
    fn new(options: Options) -> Session {
        let color = options.colored(std::io::stderr().is_terminal());
        Session {
            options,
            sources: SourceMap::new(),
            color,
            directory: None,
            warnings: String::new(),
            report: Report::default(),
            speaker: Rc::default(),
        }
    }

    fn run(&mut self) -> Result<Outcome, Failed> {
        if let Some(outcome) = self.describe()? {
            return Ok(outcome);
        }
        if self.options.dump_probe_types {
            return self.print_lines(
                probe::forms()
                    .filter(|form| !form.spelling.starts_with('_'))
                    .map(|form| format!("{} /* {} */", form.spelling, form.doc)),
            );
        }
        if let Some(action) = self.options.cache.or(self.options.clean_cache.then_some(cli::cache::Action::Prune)) {
            let cache = Cache::open(&self.options.cache_settings());
            let lines = cli::cache::run(action, &cache).map_err(|why| self.fail(&why, &[]))?;
            return self.print_lines(lines.into_iter());
        }
        if let Some((module, settings)) = self.prebuilt() {
            return self.rehearse(&module, settings);
        }
        self.limit_resources()?;
        self.check_places()?;
        if let Some(form) = self.options.check {
            return self.check(form);
        }
        let (limits, defines) = self.options.limits().map_err(|message| self.usage(&message))?;
        let named = self.options.module.as_deref().map(module_name).transpose();
        let named = named.map_err(|message| self.usage(&message))?;
        let last_pass = self.last_pass()?;
        let release = self.release()?;
        let kernel = self.open_kernel(&release)?;
        // `-r` may have named a build tree.
        let release = kernel.as_ref().map_or(release, |kernel| kernel.release().to_string());
        let taken = named
            .as_ref()
            .filter(|name| last_pass > 3 && kernel.as_ref().is_some_and(|kernel| kernel.has_module(name)));
        if let Some(name) = taken.filter(|_| !self.options.no_warnings) {
            self.remark(&format!("WARNING: -m {name}: kernel {release} has a module or a part of this name, and cannot load another one beside it"));
        }
        let listing = self.options.listing();
        let (script, arguments) = match (&listing, self.options.script()) {
            (Some(_), _) => (Script::Text(String::new()), Vec::new()),
            (None, Some(script)) => script,
            (None, None) if self.options.only_asks() && self.options.resolve.is_none() => {
                (Script::Text(String::new()), Vec::new())
            }
            (None, None) => return Err(self.usage("a script is missing: give a file, - or -e SCRIPT")),
        };
        if let Some(file) = self.options.export_index.clone() {
            return self.export_index(&file, kernel.as_ref(), &release);
        }
        let environment = self.environment(&release, kernel.as_ref(), arguments);
        let clock = Clock::start();
        let (scripts, files) = self.parse(&script, &environment)?;
        self.report.add("parse", clock.elapsed());
        self.pass(|| {
            format!("Pass 1: parsed user script and {files} library scripts using {}, in {}.", memory(), clock.times())
        });
        if let Some(pattern) = listing {
            return self.list(&pattern, &scripts, kernel.as_ref(), &release);
        }
        if !self.options.list_lines.is_empty() {
            return self.list_lines(kernel.as_ref(), &release);
        }
        if let Some(form) = self.options.resolve {
            return self.resolve(form, &scripts, kernel.as_ref(), &release);
        }
        if self.options.dump_probe_aliases {
            return self.print_lines(library::aliases(&scripts, &self.sources).into_iter());
        }
        if self.options.dump_functions {
            return self.print_lines(library::functions(&scripts, &self.sources).into_iter());
        }
        if last_pass == 1 {
            let text: Vec<String> =
                scripts.iter().take(1 + self.options.more.len()).map(syntax::print::script).collect();
            return self.print_text(text.into_iter());
        }
        let cache = Cache::open(&self.options.cache_settings());
        let title = title(&script);
        let numbered = named.is_none() && last_pass == 5;
        let key = (last_pass > 3).then(|| self.module_key(&release, kernel.as_ref(), &title, numbered)).flatten();
        let module = named.unwrap_or_else(|| self.default_name(&release, &limits, &scripts, numbered));
        let naming = Naming {
            module,
            title,
            kernel_release: release.clone(),
            guru: self.options.guru,
            limits,
            modinfo: self.options.modinfo.clone(),
            defines,
        };
        let clock = Clock::start();
        if let Some(finished) = key.as_ref().filter(|_| !self.options.keep).and_then(|key| finished::find(&cache, key))
        {
            self.report.add("cached module", clock.elapsed());
            self.pass(|| format!("Pass 2-4: using cached module \"{}.ko\" in {}.", naming.module, clock.times()));
            return self.finish(
                finished,
                &naming.module,
                numbered,
                last_pass,
                &release,
                &build_dir(kernel.as_ref(), &release),
            );
        }
        let clock = Clock::start();
        let progress = self.progress("reading debug information");
        let program = self.elaborate(&scripts, kernel.as_ref(), &release)?;
        drop(progress);
        self.report.add("elaborate", clock.elapsed());
        self.pass(|| {
            let counts = format!(
                "{}, {}, {}",
                count(program.probes.len(), "probe"),
                count(program.functions.len(), "function"),
                count(program.globals.len(), "global")
            );
            format!("Pass 2: analyzed script: {counts} using {}, in {}.", memory(), clock.times())
        });
        for remark in kernel.iter().flat_map(Kernel::remarks) {
            self.pass(|| format!("NOTE: {remark}"));
        }
        if last_pass == 2 {
            return self.print_lines(described(&program).into_iter());
        }
        let clock = Clock::start();
        let mut plan = self.planned(&program, naming);
        self.refuse_too_large(&plan)?;
        let mut units =
            emit::emit(&plan).map_err(|error| self.fail(&format!("translating the script: {error}"), &[]))?;
        self.report.add("translate", clock.elapsed());
        self.pass(|| {
            format!("Pass 3: translated to C ({} bytes) using {}, in {}.", units.script.len(), memory(), clock.times())
        });
        if last_pass == 3 {
            return self.print_text([units.script].into_iter().chain(units.embedded));
        }
        if plan.embedded.is_empty() {
            for (name, _) in &plan.naming.defines {
                self.remark(&format!(
                    "WARNING: -D {name}: no such limit, and the script has no C that could use it; there is {}",
                    cli::limits::NAMES
                ));
            }
        }
        let clock = Clock::start();
        let mut built = self.compile(&plan, &units, kernel.as_ref(), &release, &cache)?;
        if self.spill(&mut plan, built.stack.as_deref())? {
            units = emit::emit(&plan).map_err(|error| self.fail(&format!("translating the script: {error}"), &[]))?;
            built = self.compile(&plan, &units, kernel.as_ref(), &release, &cache)?;
        }
        if self.raise_stack(&mut plan, built.stack.as_deref())? {
            units = emit::emit(&plan).map_err(|error| self.fail(&format!("translating the script: {error}"), &[]))?;
            built = self.compile(&plan, &units, kernel.as_ref(), &release, &cache)?;
        }
        self.pass(|| {
            let notes = if built.notes.is_empty() { String::new() } else { format!(" ({})", built.notes.join("; ")) };
            format!("Pass 4: compiled C into \"{}.ko\" in {}{notes}.", plan.naming.module, clock.times())
        });
        self.report.add("compile", clock.elapsed());
        for (stage, took) in &built.stages {
            self.report.add(format!("compile/{stage}"), *took);
        }
        let clock = Clock::start();
        let finished = self.finished(&built, &program)?;
        if let Some(key) =
            key.filter(|_| finished::is_decided(program.probes.iter().map(|probe| probe.script_point.as_str())))
        {
            let inputs = kernel.as_ref().map(Kernel::consulted).unwrap_or_default().into_iter();
            let inputs = inputs.chain(built.inputs).chain(self.options.files());
            let inputs = inputs.chain(program.targets.iter().map(|target| PathBuf::from(&target.path)));
            finished::keep(&cache, &key, &finished, inputs, &format!("{} for {release}", plan.naming.title));
            self.tell_notices(&cache);
            self.report.add("keep", clock.elapsed());
        }
        self.finish(finished, &plan.naming.module, numbered, last_pass, &release, &build_dir(kernel.as_ref(), &release))
    }

    /// The module that pass 4 made, with what was said about it.
    fn finished(&self, built: &kbuild::Built, program: &Program) -> Result<Finished, Failed> {
        let module = std::fs::read(&built.module);
        let module = module.map_err(|error| self.fail(&format!("reading {}: {error}", built.module.display()), &[]))?;
        let modules =
            program.targets.iter().map(|target| target.name.clone()).filter(|name| !name.is_empty()).collect();
        Ok(Finished { module, warnings: self.warnings.clone(), modules })
    }

    /// What is left to do with a module named `name`, kept or new.
    fn finish(
        &mut self,
        mut finished: Finished,
        name: &str,
        numbered: bool,
        last_pass: u8,
        release: &str,
        build_dir: &Path,
    ) -> Result<Outcome, Failed> {
        if self.directory.is_none() {
            self.directory = Some(self.scratch()?);
            if !self.options.no_warnings {
                eprint!("{}", finished.warnings);
            }
        }
        let stem = name.strip_suffix(&finished::numbered("", 0)).filter(|_| numbered);
        let own = stem.map_or_else(|| name.to_string(), |stem| finished::numbered(stem, std::process::id()));
        finished::rename(&mut finished.module, name, &own);
        spile_abi::seal::write(&mut finished.module);
        let directory = self.directory.as_ref().map(Scratch::path).unwrap_or(Path::new("."));
        let module = directory.join(format!("{own}.ko"));
        std::fs::write(&module, &finished.module)
            .map_err(|error| self.fail(&format!("writing {}: {error}", module.display()), &[]))?;
        if let Some(keys) =
            self.options.signing_keys().map_err(|error| self.fail(&error.to_string(), &error.notes()))?
        {
            kbuild::sign(build_dir, &keys, &module).map_err(|error| self.fail(&error.to_string(), &error.notes()))?;
        }
        if last_pass == 4 {
            let path = self.deliver(&module, &own)?;
            self.kept_directory();
            return self.print_lines([path.display().to_string()].into_iter());
        }
        if self.options.save_module {
            self.deliver(&module, &own)?;
        }
        self.pass(|| "Pass 5: starting run.".to_string());
        if self.options.guest {
            return self.run_in_guest(&module, &finished.modules, release, Vec::new());
        }
        let apart = self.options.as_stap.then(|| peer::Apart { verbose: self.options.verbosity(5) > 0 });
        Ok(Outcome::Run { arguments: self.loader_arguments(&module), directory: self.kept_directory(), apart })
    }

    /// What finds the module in the cache; None if it cannot be built, which pass 4 will say.
    fn module_key(&self, release: &str, kernel: Option<&Kernel>, title: &str, numbered: bool) -> Option<Key> {
        let build =
            kbuild::identity(&build_dir(kernel, release), cli::places::runtime(&self.options).as_deref()).ok()?;
        let options = format!("{:?}", relevant(&self.options, &self.sources));
        Some(finished::key(&finished::Facts {
            options: &options,
            sources: &self.sources,
            release,
            build: &build,
            title,
            numbered,
        }))
    }

    fn scratch(&self) -> Result<Scratch, Failed> {
        let place = cli::places::temporary(&self.options).map_err(|error| self.fail(&error, &[]))?.place;
        let fit = std::fs::create_dir_all(&place)
            .and_then(|()| spile_base::cache::fit_for_scratch(&place).map_err(std::io::Error::other));
        let made = fit.and_then(|()| Scratch::below(&place));
        made.map_err(|error| self.fail(&format!("making a temporary directory in {}: {error}", place.display()), &[]))
    }

    /// What needs no script to be compiled: explanations, the manual, a script put in order.
    fn describe(&mut self) -> Result<Option<Outcome>, Failed> {
        if self.options.version {
            return self.print_lines(cli::version::lines().into_iter()).map(Some);
        }
        for note in &self.options.notes {
            if !self.options.no_warnings {
                self.remark(&format!("NOTE: {note}"));
            }
        }
        if self.options.example {
            let name = self.options.words.first().ok_or_else(|| self.usage("--example: its name is missing"))?;
            let path = cli::example::find(Path::new(name)).map_err(|message| self.usage(&message))?;
            self.options.words[0] = path.into();
        }
        let text = if let Some(code) = &self.options.explain {
            let page = explain::page(code)
                .ok_or_else(|| self.usage(&format!("--explain {code}: there is no message with this code")))?;
            page.as_bytes().to_vec()
        } else if let Some(shell) = self.options.completion {
            cli::describe::completion(shell)
        } else if self.options.man_page {
            cli::describe::man_page().map_err(|error| self.fail(&format!("writing the manual page: {error}"), &[]))?
        } else if self.options.fmt {
            self.formatted()?
        } else {
            return Ok(None);
        };
        match std::io::stdout().lock().write_all(&text) {
            Ok(()) => Ok(Some(Outcome::Done(ExitCode::SUCCESS))),
            Err(_) => Err(WRONG),
        }
    }

    /// `--fmt`: the script with its lines indented; nothing is printed of one that does not parse.
    fn formatted(&mut self) -> Result<Vec<u8>, Failed> {
        let Some((script, arguments)) = self.options.script() else {
            return Err(self.usage("a script is missing: give a file, - or -e SCRIPT"));
        };
        let file = self.read(&script)?;
        let release = running_release();
        let environment = self.environment(&release, None, arguments);
        let library = self.open_library(&environment)?;
        let mut problems = Vec::new();
        let macros =
            library.macros(&mut self.sources, &environment, &mut problems).map_err(|error| self.unreadable(&error))?;
        let (_, wrong) = syntax::parse(&mut self.sources, file, &environment, &macros);
        problems.extend(wrong);
        self.tell("Pass 1: parse", &problems)?;
        Ok(syntax::layout::layout(&self.sources.file(file).bytes))
    }

    /// What the environment says of directories is looked at before any pass.
    fn check_places(&self) -> Result<(), Failed> {
        let temporary = cli::places::temporary(&self.options).map_err(|error| self.fail(&error, &[]))?;
        for warning in temporary.warning.into_iter().chain(cli::places::runtime_warning(&self.options)) {
            if !self.options.no_warnings {
                self.remark(&format!("WARNING: {}", escape::lines(&warning)));
            }
        }
        Ok(())
    }

    /// `--rlimit-*`: for this process and the programs that it runs.
    fn limit_resources(&self) -> Result<(), Failed> {
        for (name, resource, value) in self.options.resources() {
            let set = nix::sys::resource::setrlimit(resource, value, value);
            set.map_err(|error| self.usage(&format!("{name}={value}: {error}")))?;
        }
        Ok(())
    }

    /// Prints one diagnostic in the form that is asked for.
    fn show(&self, diagnostic: &Diagnostic) {
        eprint!("{}", self.shown(diagnostic, self.color));
    }

    fn shown(&self, diagnostic: &Diagnostic, color: bool) -> String {
        match self.options.diagnostics {
            Form::Text => render::render(&self.sources, diagnostic, color),
            Form::Json => json::render(&self.sources, diagnostic),
        }
    }

    /// A line for people: where programs read, there is nothing but diagnostics.
    fn remark(&self, line: &str) {
        if self.options.diagnostics == Form::Text {
            eprintln!("{}", escape::lines(line));
        }
    }

    /// Tells it once, and keeps it for those who take the finished module from the cache.
    fn warn(&mut self, warning: &str) {
        let line = format!("WARNING: {}\n", escape::lines(warning));
        if self.warnings.contains(&line) {
            return;
        }
        if !self.options.no_warnings {
            eprint!("{line}");
        }
        self.warnings.push_str(&line);
    }

    fn usage(&self, message: &str) -> Failed {
        match self.options.diagnostics {
            Form::Text => eprintln!("spile: {}\nTry 'spile --help' for more information.", escape::lines(message)),
            Form::Json => self.show(&Diagnostic::error(Code("E0502"), message)),
        }
        WRONG
    }

    fn fail(&self, message: &str, notes: &[String]) -> Failed {
        let mut diagnostic = Diagnostic::error(Code("E0500"), message);
        diagnostic.notes = notes.to_vec();
        self.show(&diagnostic);
        WRONG
    }

    /// Prints a pass line with `-v`.
    fn pass(&self, line: impl FnOnce() -> String) {
        if (1..=5).any(|pass| self.options.verbosity(pass) > 0) {
            self.remark(&line());
        }
    }

    /// Shown until it is dropped, if it takes long.
    fn progress(&self, text: &str) -> Progress {
        let progress = Progress::start(text, self.options.verbose < 3);
        *self.speaker.borrow_mut() = progress.speaker();
        progress
    }

    /// What is told of a kernel and of files: no terminal obeys anything in it.
    fn print_lines(&self, lines: impl Iterator<Item = String>) -> Result<Outcome, Failed> {
        self.print_text(lines.map(|line| escape::lines(line.trim_end_matches('\n'))))
    }

    /// Source text, as it is.
    fn print_text(&self, texts: impl Iterator<Item = String>) -> Result<Outcome, Failed> {
        let mut out = std::io::stdout().lock();
        for text in texts {
            if writeln!(out, "{}", text.trim_end_matches('\n')).is_err() {
                return Err(WRONG);
            }
        }
        Ok(Outcome::Done(ExitCode::SUCCESS))
    }

    /// Prints diagnostics; an error among them ends the pass.
    fn tell(&self, pass: &str, diagnostics: &[Diagnostic]) -> Result<(), Failed> {
        let mut failed = false;
        for diagnostic in diagnostics {
            let warning = diagnostic.severity == Severity::Warning;
            failed |= !warning || self.options.strict;
            if !warning || !self.options.no_warnings {
                self.show(diagnostic);
            }
        }
        if failed {
            self.remark(&format!("{pass} failed."));
            return Err(WRONG);
        }
        Ok(())
    }

    /// The pass to stop after; a kernel that is not the running one can only be compiled for.
    fn last_pass(&self) -> Result<u8, Failed> {
        let asked = self.options.last_pass.unwrap_or(5);
        if self.options.only_asks() {
            return Ok(asked);
        }
        if self.options.index.is_some() && asked > 2 {
            let message = "--index: an index says which functions and variables there are, not where: nothing can be compiled from it; -p2 shows what the script has become";
            return Err(self.usage(message));
        }
        let foreign = self.options.release.as_ref().is_some_and(|release| *release != running_release());
        if asked == 5 && foreign && !self.options.guest {
            if self.options.last_pass.is_some() {
                let message = "-p5 with -r: the module can only run on the kernel it is compiled for; --guest runs it in a guest of that kernel";
                return Err(self.usage(message));
            }
            self.remark("WARNING: kernel release is not the running one: stopping after pass 4; --guest runs the script in a guest of it");
            return Ok(4);
        }
        if asked == 5 && !self.options.guest {
            self.check_host()?;
        }
        Ok(asked)
    }

    /// Says before compiling that the module could not be run here.
    fn check_host(&self) -> Result<(), Failed> {
        let guest = "spile --guest ... runs the same script in a throw-away guest of an installed kernel".to_string();
        if !Path::new("/proc/modules").exists() {
            return Err(self.fail("this kernel cannot load modules (CONFIG_MODULES is not set)", &[guest]));
        }
        if !nix::unistd::geteuid().is_root() {
            let sudo = "run it as root, or compile it with -p4 and let root run spilerun".to_string();
            return Err(self.fail("loading a module takes root", &[sudo, guest]));
        }
        Ok(())
    }

    /// The release to compile for.
    fn release(&self) -> Result<String, Failed> {
        if let Some(release) = &self.options.release {
            return Ok(release.clone());
        }
        if self.options.guest {
            let kernel = spile_guest::Kernel::newest();
            return kernel.map(|kernel| kernel.release.clone()).map_err(|error| self.fail(&error.to_string(), &[]));
        }
        let running = running_release();
        // A host whose own kernel has no packages (a container, a micro-VM) can still compile for one that is installed.
        if !Path::new("/lib/modules").join(&running).is_dir() && self.options.last_pass.is_some_and(|pass| pass < 5) {
            if let Ok(kernel) = spile_guest::Kernel::newest() {
                self.remark(&format!(
                    "NOTE: kernel {running} is not installed here: compiling for {}; -r RELEASE chooses",
                    kernel.release
                ));
                return Ok(kernel.release.clone());
            }
        }
        Ok(running)
    }

    /// The kernel, or None if nothing of it is installed here: scripts that need none can still be looked at.
    fn open_kernel(&self, release: &str) -> Result<Option<Kernel>, Failed> {
        if let Some(index) = &self.options.index {
            return Kernel::from_index(index).map(Some).map_err(|error| self.fail(&error.to_string(), &error.notes()));
        }
        let search = SearchOptions { sysroot: self.options.sysroot.clone(), ..SearchOptions::default() };
        match Kernel::open(release, search) {
            Ok(kernel) => Ok(Some(self.equipped(kernel))),
            Err(error) if self.options.release.is_some() => Err(self.fail(&error.to_string(), &error.notes())),
            Err(_) => Ok(None),
        }
    }

    /// With the cache, and the servers that may be asked.
    fn equipped(&self, kernel: Kernel) -> Kernel {
        let speaker = self.speaker.clone();
        let say = move |text: &str| {
            if let Some(speaker) = &*speaker.borrow() {
                speaker.say(text);
            }
        };
        let wanted = self.options.download_debuginfo.as_deref() != Some("no");
        let servers = if wanted { Servers::from_environment(Box::new(say)) } else { None };
        kernel.with_cache(Cache::open(&self.options.cache_settings())).with_servers(servers)
    }

    fn environment(&self, release: &str, kernel: Option<&Kernel>, arguments: Vec<String>) -> Environment {
        Environment {
            kernel_release: kernel.map_or(release, Kernel::release).to_string(),
            arch: std::env::consts::ARCH.to_string(),
            config: kernel.map_or_else(HashMap::new, Kernel::config),
            guru: self.options.guru,
            compatible: self.options.compatible.clone().unwrap_or_else(|| syntax::LANGUAGE_VERSION.into()),
            arguments,
            privilege: "stapdev".into(),
            runtime: "kernel".into(),
        }
    }

    /// The user's scripts first, then the library scripts that they need; and how many library scripts there are.
    fn parse(&mut self, script: &Script, environment: &Environment) -> Result<(Vec<ast::Script>, usize), Failed> {
        let mut files = vec![self.read(script)?];
        for text in self.options.more.clone() {
            files.push(self.sources.add("<input>", text.into_bytes(), Origin::User));
        }
        let library = self.open_library(environment)?;
        let mut problems = Vec::new();
        let macros =
            library.macros(&mut self.sources, environment, &mut problems).map_err(|error| self.unreadable(&error))?;
        let mut scripts = Vec::new();
        for file in files {
            let (script, wrong) = syntax::parse(&mut self.sources, file, environment, &macros);
            problems.extend(wrong);
            scripts.push(script);
        }
        let points = self.options.listing().map_or_else(Vec::new, |listing| {
            // What is wrong with it is said when it is listed.
            let file = self.sources.add("<input>", listing.into_bytes(), Origin::User);
            syntax::parse_probe_points(&mut self.sources, file).0
        });
        let wanted = library::Wanted { scripts: &scripts, points: &points, all: self.options.dumps_library() };
        let selected = library.select(&mut self.sources, environment, &macros, wanted, &mut problems);
        scripts.extend(selected.map_err(|error| self.unreadable(&error))?);
        // A library script can read them for the user's: argv.
        problems.extend(syntax::unused_arguments(&scripts, environment));
        problems.extend(cli::globals::assign(&mut self.sources, &mut scripts, &self.options.globals));
        self.tell("Pass 1: parse", &problems)?;
        Ok((scripts, library.count()))
    }

    fn open_library(&self, environment: &Environment) -> Result<Library, Failed> {
        let places = library::Places {
            instead: cli::places::tapset(&self.options),
            further: self.options.library.clone(),
            release: environment.kernel_release.clone(),
            arch: environment.arch.clone(),
            syscall_style: if self.options.syscall_style == "strace" { Style::Strace } else { Style::SystemTap },
        };
        let cache = Cache::open(&self.options.cache_settings());
        Library::open(&places, &cache).map_err(|error| self.unreadable(&error))
    }

    fn unreadable(&self, error: &library::Unreadable) -> Failed {
        self.fail(&format!("reading library scripts in {}: {}", error.path.display(), error.error), &[])
    }

    fn read(&mut self, script: &Script) -> Result<FileId, Failed> {
        let (name, bytes) = match script {
            Script::Text(text) => ("<input>".to_string(), text.clone().into_bytes()),
            Script::Stdin => {
                let mut bytes = Vec::new();
                let read = std::io::stdin().lock().read_to_end(&mut bytes);
                read.map_err(|error| self.fail(&format!("reading the script from standard input: {error}"), &[]))?;
                ("<input>".to_string(), bytes)
            }
            Script::File(path) => {
                let bytes = std::fs::read(path);
                let failed = |error| self.fail(&format!("reading the script {}: {error}", path.display()), &[]);
                (path.display().to_string(), bytes.map_err(failed)?)
            }
        };
        Ok(self.sources.add(name, bytes, Origin::User))
    }

    fn elaborate_options(&self) -> elaborate::Options {
        // SANITY: what is wrong with them has been told before.
        let limits = self.options.limits().map(|(limits, _)| limits).unwrap_or_default();
        elaborate::Options {
            guru: self.options.guru,
            display_globals: !self.options.no_global_var_display,
            unoptimised: self.options.unoptimised,
            skip_bad_variables: self.options.skip_badvars,
            struct_depth: limits.struct_depth,
            counts_only: limits.counts_only,
        }
    }

    fn elaborate(
        &mut self,
        scripts: &[ast::Script],
        kernel: Option<&Kernel>,
        release: &str,
    ) -> Result<Program, Failed> {
        let options = self.elaborate_options();
        let headers = headers::wanted(scripts);
        // What is compiled there is read until the end of this pass.
        let place = if headers.is_empty() { None } else { Some(self.scratch()?) };
        let headers = place.as_ref().map(|place| headers::compile(&headers, place.path())).unwrap_or_default();
        let mut resolver = self.resolver(kernel, release).with_guru(self.options.guru).with_headers(headers);
        let (mut program, problems) = elaborate::elaborate(&self.sources, scripts, &options, &mut resolver);
        self.warnings = problems.iter().map(|problem| self.shown(problem, false)).collect();
        self.tell("Pass 2: analysis", &problems)?;
        self.tell_left_out(&program.left_out);
        if program.probes.is_empty() {
            return Err(self.fail("the script has no probes", &["Pass 2: analysis failed.".to_string()]));
        }
        if let Some(kernel) = kernel.filter(|_| options.guru) {
            let imprints = probe::imprint::imprints(&program, kernel);
            program.imprints = imprints.taken;
            if imprints.left_out > 0 {
                self.warn(&format!(
                    "before the script is armed the code of its functions is compared with what it was compiled for, but not that of {} of them: together they have more than {} bytes",
                    imprints.left_out,
                    probe::imprint::MOST
                ));
            }
        }
        Ok(program)
    }

    fn resolver<'k>(&self, kernel: Option<&'k Kernel>, release: &str) -> Resolver<'k> {
        let any_caller =
            self.options.defines.iter().any(|define| define.split('=').next() == Some("STAP_CALLEE_MATCHALL"));
        Resolver::new(kernel, release, &self.options.files()).with_any_caller(any_caller)
    }

    /// With `-v`: what wildcards matched and cannot be probed; with `-vv` all of it.
    fn tell_left_out(&self, left_out: &[String]) {
        const SOME: usize = 20;
        let shown = match self.options.verbosity(2) {
            0 => return,
            1 => SOME,
            _ => left_out.len(),
        };
        for line in left_out.iter().take(shown) {
            self.remark(&format!("not probed: {line}"));
        }
        if left_out.len() > shown {
            self.remark(&format!("not probed: {} more; -vv tells all", left_out.len() - shown));
        }
    }

    /// `-l` and `-L`: the points that match, sorted; status 1 if there are none.
    fn list(
        &mut self,
        pattern: &str,
        library: &[ast::Script],
        kernel: Option<&Kernel>,
        release: &str,
    ) -> Result<Outcome, Failed> {
        let file = self.sources.add("<input>", pattern.as_bytes().to_vec(), Origin::User);
        let (points, problems) = syntax::parse_probe_points(&mut self.sources, file);
        self.tell("Pass 1: parse", &problems)?;
        let progress = self.progress("reading debug information");
        let mut resolver = self.resolver(kernel, release);
        let (mut found, problems) =
            elaborate::list(&self.sources, &points, library, !self.options.variables.is_empty(), &mut resolver);
        drop(progress);
        found.sort();
        found.dedup();
        if found.is_empty() {
            self.tell("Pass 2: analysis", &problems)?;
            return Err(WRONG);
        }
        self.print_lines(found.into_iter())
    }

    /// `spile_` and a hash of what the module is made of; one that is run at once also has a number in its name, the
    /// process's when it is run (`finish`), so that the same script can run twice.
    fn default_name(&self, release: &str, limits: &Limits, scripts: &[ast::Script], numbered: bool) -> String {
        let mut hash = Sha256::new();
        hash.update(format!("{release} {limits:?} {}", self.options.guru));
        for script in scripts {
            hash.update(&self.sources.file(script.file).bytes);
        }
        let digest: String = hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        // Tools that look for stap's modules know them by this.
        let stem = format!("{}_{digest}", if self.options.as_stap { "stap" } else { "spile" });
        if numbered { finished::numbered(&stem, 0) } else { stem }
    }

    fn compile(
        &mut self,
        plan: &Plan,
        units: &Units,
        kernel: Option<&Kernel>,
        release: &str,
        cache: &Cache,
    ) -> Result<kbuild::Built, Failed> {
        let directory = self.scratch()?;
        let work = directory.path().to_path_buf();
        let request = kbuild::Request {
            release: release.to_string(),
            build_dir: build_dir(kernel, release),
            module: plan.naming.module.clone(),
            sources: kbuild::Sources { script: units.script.clone(), embedded: units.embedded.clone() },
            runtime: cli::places::runtime(&self.options),
            kbuild: self.options.kbuild,
            make: self.options.make.clone(),
            verbosity: self.options.verbosity(4),
        };
        directory.share_with_programs(true);
        let progress = self.progress("compiling");
        let built = kbuild::build(&request, &work, cache, &|text| progress.say(text));
        drop(progress);
        directory.share_with_programs(false);
        self.directory = Some(directory);
        self.tell_notices(cache);
        let built = built.map_err(|error| {
            let failed = self.fail(&error.to_string(), &error.notes());
            self.remark("Pass 4: compilation failed.");
            failed
        })?;
        built.warnings.iter().for_each(|warning| self.warn(warning));
        Ok(built)
    }

    /// The plan; where stacks are values, with strings that hold them whole.
    fn planned(&mut self, program: &Program, mut naming: Naming) -> Plan {
        let plan = plan::plan(program, &self.sources, naming.clone());
        let fixed = self.options.defines.iter().any(|define| define.split('=').next() == Some("MAXSTRINGLEN"));
        let Some(room) = plan::stacks::room(&plan, fixed) else { return plan };
        if room.cuts() {
            self.warn(&format!(
                "a stack that is a key or a value has room for {} frames, deeper ones lose the outermost: -DMAXSTRINGLEN={} holds all, smaller arrays take less memory for it",
                room.frames,
                plan::stacks::WHOLE
            ));
        }
        if room.string_bytes == naming.limits.string_bytes {
            return plan;
        }
        naming.limits.string_bytes = room.string_bytes;
        plan::plan(program, &self.sources, naming)
    }

    /// What handlers need of each CPU's memory must be some size that a CPU can have.
    fn refuse_too_large(&self, plan: &Plan) -> Result<(), Failed> {
        let refused = |message: String, notes: &[String]| {
            let mut diagnostic = Diagnostic::error(Code("E0504"), message);
            diagnostic.notes = notes.to_vec();
            self.show(&diagnostic);
            Err(WRONG)
        };
        if plan.frame_bytes > plan::frame::MOST {
            let size = |routine: &&plan::code::Routine| plan::frame::size(routine, plan.naming.limits.string_bytes);
            let largest = plan.routines.iter().max_by_key(size);
            let most = largest.map_or(0, |routine| size(&routine));
            let what = largest.and_then(|routine| routine.comment.lines().next()).unwrap_or("a handler");
            let message = format!(
                "the script needs {} MiB of memory on each CPU for its strings and for what foreach sorts, and may use {}: {what} needs {}",
                plan.frame_bytes >> 20,
                plan::frame::MOST >> 20,
                mebibytes(most)
            );
            let help = "a foreach that sorts, or takes a slice, has 4 bytes for each element that its array can hold: smaller arrays or fewer loops take less";
            return refused(
                message,
                &[help.to_string(), "so does a smaller MAXMAPENTRIES, MAXSTRINGLEN or MAXNESTING (-D)".to_string()],
            );
        }
        if u64::from(plan.scratch_bytes) > plan::frame::MOST {
            let message = format!(
                "what sprintf() prints can take {} of memory on each CPU, and may take {} MiB",
                mebibytes(plan.scratch_bytes.into()),
                plan::frame::MOST >> 20
            );
            return refused(
                message,
                &["print less of an object at once (-D STRUCT_DEPTH), or have a smaller MAXSTRINGLEN (-D)".to_string()],
            );
        }
        let saved = plan.probes.iter().max_by_key(|probe| probe.entry_bytes);
        match saved.filter(|probe| u64::from(probe.entry_bytes) > plan::frame::MOST_SAVED) {
            Some(probe) => refused(
                format!(
                    "{} saves {} bytes at each entry, and may save {}",
                    probe.point,
                    probe.entry_bytes,
                    plan::frame::MOST_SAVED
                ),
                &["fewer @entry() of strings, or a smaller MAXSTRINGLEN (-D), take less".to_string()],
            ),
            None => Ok(()),
        }
    }

    /// Where the stack has no room for what was compiled, takes variables off it; true: there are such variables.
    fn spill(&self, plan: &mut Plan, usage: Option<&str>) -> Result<bool, Failed> {
        let usage = usage.unwrap_or_default();
        let fits = plan::stack::need(&plan.routines, plan.max_nesting, usage).most() <= plan::stack::MOST;
        if fits || !plan::stack::spill(plan, usage) {
            return Ok(false);
        }
        self.refuse_too_large(plan)?;
        Ok(true)
    }

    /// Notes what each probe's handlers need of the stack, as compiled; false: MINSTACKSPACE suffices for all.
    fn raise_stack(&self, plan: &mut Plan, usage: Option<&str>) -> Result<bool, Failed> {
        let need = plan::stack::need(&plan.routines, plan.max_nesting, usage.unwrap_or_default());
        let most = need.most();
        if most > plan::stack::MOST {
            let (symbol, bytes) = need.largest;
            let routine = plan.routines.iter().find(|routine| routine.symbol == symbol);
            let what = routine.and_then(|routine| routine.comment.lines().next()).unwrap_or(&symbol);
            let message = format!(
                "the script needs up to {most} bytes of kernel stack, and may use {}: {what} takes {bytes} each time it is called, and calls nest {} deep",
                plan::stack::MOST,
                plan.max_nesting
            );
            return Err(self.fail(
                &message,
                &["a smaller MAXNESTING (-D), or fewer local variables and arguments, take less".to_string()],
            ));
        }
        if most <= plan.naming.limits.least_stack {
            return Ok(false);
        }
        // Of 256 bytes each, so that scripts that differ little have the same.
        let needed = need.by_probe(plan);
        for (probe, needed) in plan.probes.iter_mut().zip(needed) {
            probe.stack = if needed > plan.naming.limits.least_stack { needed.next_multiple_of(256) } else { 0 };
        }
        Ok(true)
    }

    /// With `-v`: what kept the cache from being used.
    fn tell_notices(&self, cache: &Cache) {
        for notice in cache.take_notices() {
            self.pass(|| format!("NOTE: {notice}"));
        }
    }

    /// `-p4`: the module in the current directory, there at once or not at all.
    fn deliver(&self, module: &Path, name: &str) -> Result<PathBuf, Failed> {
        let place = self.options.module_directory.as_deref().unwrap_or(Path::new(""));
        let target = place.join(format!("{name}.ko"));
        let written = (|| {
            let mut file = tempfile::Builder::new().prefix(".spile").tempfile_in(Path::new(".").join(place))?;
            file.write_all(&std::fs::read(module)?)?;
            let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o644);
            file.as_file().set_permissions(permissions)?;
            file.persist(&target).map_err(|error| error.error)
        })();
        written.map_err(|error| self.fail(&format!("writing {}: {error}", target.display()), &[]))?;
        Ok(target)
    }

    /// The directory to remove at the end; with `-k` it stays, and is named.
    fn kept_directory(&mut self) -> Option<Scratch> {
        let directory = self.directory.take()?;
        if !self.options.keep && self.options.tmpdir.is_none() {
            return Some(directory);
        }
        eprintln!("Keeping temporary directory \"{}\"", directory.keep().display());
        None
    }

    fn loader_arguments(&self, module: &Path) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["spilerun".into()];
        arguments.extend(self.session_arguments());
        arguments.push(module.into());
        arguments
    }

    /// Options that are the loader's too.
    fn session_arguments(&self) -> Vec<OsString> {
        let options = &self.options;
        let mut arguments: Vec<OsString> = Vec::new();
        let mut pair = |name: &str, value: Option<OsString>| {
            if let Some(value) = value {
                arguments.push(name.into());
                arguments.push(value);
            }
        };
        pair("-o", options.output.clone().map(Into::into));
        pair("-S", options.rotate.clone().map(Into::into));
        pair("-c", options.command.clone().map(Into::into));
        pair("-x", options.pid.map(|pid| pid.to_string().into()));
        pair("-M", options.monitor.map(|seconds| seconds.to_string().into()));
        pair("-T", options.seconds.map(|seconds| seconds.to_string().into()));
        pair("--budget", options.budget.clone().map(Into::into));
        pair("-s", options.buffer.map(|buffer| buffer.to_string().into()));
        let account = options.verbosity(5).saturating_sub(1);
        arguments.extend(std::iter::repeat_n("-v".into(), usize::from(account)));
        let counts_only = options.limits().is_ok_and(|(limits, _)| limits.counts_only);
        if let Some(form) = options.stats.as_deref().or((options.timing || counts_only).then_some("table")) {
            arguments.push(format!("--stats={form}").into());
        }
        for (given, option) in [
            (options.no_warnings, "-w"),
            (options.bulk, "--bulk"),
            (options.detach && options.output.is_none(), "-L"),
            (options.detach && options.output.is_some(), "-D"),
        ] {
            arguments.extend(given.then(|| option.into()));
        }
        arguments
    }

    /// `--guest FILE.ko`: the module, and its GLOBAL=VALUE.
    fn prebuilt(&self) -> Option<(PathBuf, Vec<String>)> {
        match self.options.script()? {
            (Script::File(path), settings) if self.options.guest && path.extension().is_some_and(|end| end == "ko") => {
                Some((path, settings))
            }
            _ => None,
        }
    }

    /// Says of a module that was built before whether it loads, is armed and leaves, on the kernel it was built for.
    fn rehearse(&mut self, module: &Path, settings: Vec<String>) -> Result<Outcome, Failed> {
        let file = spilerun::file::File::find(module).map_err(|error| self.fail(&error.to_string(), &[]))?;
        let meta = &file.description.meta;
        let targets: Vec<String> =
            meta.targets.iter().map(|target| target.name.clone()).filter(|name| !name.is_empty()).collect();
        // The loader and the kernel call it by this name, whatever its file is called.
        let directory = self.scratch()?;
        let named = directory.path().join(format!("{}.ko", meta.name));
        std::fs::write(&named, &file.image)
            .map_err(|error| self.fail(&format!("writing {}: {error}", named.display()), &[]))?;
        self.directory = Some(directory);
        self.run_in_guest(&named, &targets, &meta.kernel_release, settings)
    }

    /// `--guest`: what the loader prints there is printed here; `-o` names a file here.
    /// `settings`: GLOBAL=VALUE, for a module that was built before, which is a rehearsal.
    fn run_in_guest(
        &mut self,
        module: &Path,
        targets: &[String],
        release: &str,
        settings: Vec<String>,
    ) -> Result<Outcome, Failed> {
        let failed = |session: &Session, error: &dyn std::fmt::Display| session.fail(&error.to_string(), &[]);
        let kernel = spile_guest::Kernel::find(release).map_err(|error| failed(self, &error))?;
        let loader = std::env::current_exe().map_err(|error| failed(self, &error))?;
        let mut streams = spile_guest::Streams::inherit();
        if let Some(path) = self.options.output.take() {
            let file = std::fs::File::create(&path);
            let file = file.map_err(|error| self.fail(&format!("writing {}: {error}", path.display()), &[]))?;
            streams.stdout = Box::new(file);
        }
        let objects: Vec<PathBuf> = self.options.files();
        let in_object =
            |name: &str| objects.iter().any(|path| spile_guest::module_name(&path.to_string_lossy()) == name);
        let session = spile_guest::Session {
            kernel,
            module: module.to_path_buf(),
            loader,
            arguments: self
                .session_arguments()
                .into_iter()
                .map(|word| word.to_string_lossy().into_owned())
                .chain(settings)
                .collect(),
            rehearsal: self.prebuilt().is_some(),
            command: self.options.command.clone(),
            modules: targets.iter().filter(|name| !in_object(name)).cloned().collect(),
            extra_modules: objects.clone(),
        };
        match session.run(streams).map_err(|error| failed(self, &error))? {
            spile_guest::Ended::Exited(status) => {
                drop(self.kept_directory());
                Ok(Outcome::Done(ExitCode::from(status.clamp(0, 255) as u8)))
            }
            spile_guest::Ended::Died { console } => Err(self.fail("the guest's kernel died", &[console])),
        }
    }
}

/// The script as its module names it.
fn title(script: &Script) -> String {
    match script {
        Script::File(path) => {
            path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
        }
        Script::Stdin | Script::Text(_) => "<input>".into(),
    }
}

fn build_dir(kernel: Option<&Kernel>, release: &str) -> PathBuf {
    kernel.map_or_else(|| Path::new("/lib/modules").join(release).join("build"), Kernel::build_dir)
}

fn running_release() -> String {
    nix::sys::utsname::uname().map_or_else(|_| String::new(), |name| name.release().to_string_lossy().into_owned())
}

/// `3 MiB`, `700 bytes`.
fn mebibytes(bytes: u64) -> String {
    if bytes < 1 << 20 { count(bytes as usize, "byte") } else { format!("{} MiB", bytes >> 20) }
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// `-p2`: what the script has become.
fn described(program: &Program) -> Vec<String> {
    let mut lines = Vec::new();
    let mut section = |title: &str, items: Vec<String>| {
        if !items.is_empty() {
            lines.push(format!("# {title}"));
            lines.extend(items);
        }
    };
    let global = |global: &spile_core::program::Global| {
        let holds = match global.holds {
            spile_core::program::Holds::Value(ty) => ty.name(),
            spile_core::program::Holds::Stats(_) => "stats",
        };
        let keys: Vec<&str> = global.keys.iter().map(|key| key.name()).collect();
        let keys = if keys.is_empty() { String::new() } else { format!(" [{}]", keys.join(", ")) };
        format!("{}:{holds}{keys}", global.name)
    };
    section("globals", program.globals.iter().map(global).collect());
    let function = |function: &spile_core::program::Function| {
        let typed = |local: &spile_core::program::Local| format!("{}:{}", local.name, local.ty.name());
        let parameters: Vec<String> = function.locals[..function.parameters].iter().map(typed).collect();
        let returns = function.returns.map_or("unknown", spile_core::program::Type::name);
        format!("{}:{returns} ({})", function.name, parameters.join(", "))
    };
    section("functions", program.functions.iter().map(function).collect());
    let probe = |probe: &spile_core::program::Probe| {
        let from =
            if probe.point == probe.script_point { String::new() } else { format!(" /* <- {} */", probe.script_point) };
        let locals: Vec<String> =
            probe.locals.iter().map(|local| format!("\n  # {}:{}", local.name, local.ty.name())).collect();
        format!("{}{from}{}", probe.point, locals.concat())
    };
    section("probes", program.probes.iter().map(probe).collect());
    lines
}
