// SPDX-License-Identifier: GPL-2.0-or-later

//! Services: modules in /lib/modules/RELEASE/spile, `/etc/spile/NAME.conf`, and the unit `spile@NAME`.
//!
//! There may be modules for several kernels; the one to run is chosen when the service starts. `check` (when a kernel
//! is installed), `status` and a failing start report kernels without a module.

pub mod conf;
pub mod reserved;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};

use crate::error::{Error, Exit};
use crate::host::accounts;
use crate::host::beneath::Tree;
use crate::host::kernel::{is_module_name, running_release};
use crate::host::stderr;
use crate::host::{notify, search};
use crate::module::file::File;
use crate::module::load;
use crate::options::{Options, Task};
use crate::service::conf::{Conf, MissingAction};
use spile_abi::escape;

const UNIT: &str = include_str!("../../system/spile@.service");
const UNIT_PLACE: &str = "etc/systemd/system/spile@.service";
const PACKAGED_PROGRAM: &str = "/usr/sbin/spilerun";
const PACKAGED_UNIT: &str = "usr/lib/systemd/system/spile@.service";

/// The compiler's cache when a service runs it.
const CACHE: &str = "/var/cache/spile";
/// Interval of messages to the service manager while the compiler runs.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(50);

/// Drop-in of the unit for a service that has to start after some units and before others; `None`: none.
pub fn order(after: &[String], before: &[String]) -> Result<Option<String>, String> {
    let is_name = |name: &str| {
        name.contains('.') && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":-_.\\@".contains(&byte))
    };
    if let Some(wrong) = after.iter().chain(before).find(|name| !is_name(name)) {
        return Err(format!("{wrong:?} is no unit's name (mnt-data.mount, lustre.service)"));
    }
    if after.is_empty() && before.is_empty() {
        return Ok(None);
    }
    let mut text = String::from("[Unit]\n");
    for (key, units) in [("After", after), ("Before", before)] {
        units.iter().for_each(|unit| text.push_str(&format!("{key}={unit}\n")));
    }
    Ok(Some(text))
}

/// `spilerun service ...`
#[derive(Clone, Debug, PartialEq, Eq, Parser)]
#[command(name = "spilerun service", bin_name = "spilerun service", about = "Prebuilt modules as services")]
pub struct Service {
    /// Root directory of another system
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
    /// The action
    #[command(subcommand)]
    action: Action,
}

/// The actions on services.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
enum Action {
    /// Install modules (one for each kernel), a configuration and the unit
    Install {
        /// Name of the service
        name: String,
        /// Module files, one for each kernel
        #[arg(required = true)]
        modules: Vec<PathBuf>,
        /// Start it only after this unit
        #[arg(long, value_name = "UNIT")]
        after: Vec<String>,
        /// Start it before this unit, such as mnt-data.mount
        #[arg(long, value_name = "UNIT")]
        before: Vec<String>,
    },
    /// Start the service now and at each boot
    Enable { name: String },
    /// Stop the service, and do not start it at boot
    Disable { name: String },
    /// Show its state, and the kernels that it has a module for
    Status { name: String },
    /// Show the service's messages
    Logs { name: String },
    /// Stop the service and remove its files
    Remove { name: String },
    /// List all services and their kernels
    List,
    /// Check that each service has a module for this kernel; called by package triggers
    Check { release: Option<String> },
    /// List the files of services for the initramfs of this kernel; called by its hooks
    Early { release: Option<String> },
    /// Start the session in the initramfs, as configured; it continues without a loader until the unit attaches
    StartEarly { name: String },
    /// Run the service; called by the unit
    Run { name: String },
}

impl Service {
    /// From the arguments after `spilerun`, the first of which is `service`.
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Service, clap::Error> {
        Service::try_parse_from(arguments)
    }

    /// Executes the action, or returns the command line of the module to run.
    pub fn perform(&self) -> Result<Step, Error> {
        if !self.root.is_dir() {
            return Err(Error::Setting {
                given: format!("--root {}", self.root.display()),
                why: "there is no such directory".to_string(),
            });
        }
        match &self.action {
            Action::Install { name, modules, after, before } => self.install(name, modules, after, before),
            Action::Enable { name } => self.enable(name),
            Action::Disable { name } => self.disable(name),
            Action::Status { name } => self.status(name),
            Action::Logs { name } => {
                self.has_configuration(name)?;
                system("journalctl", &["--root", &self.root.to_string_lossy(), "-u", &unit(name)])
            }
            Action::Remove { name } => self.remove(name),
            Action::List => self.list(),
            Action::Check { release } => self.check(&release.clone().unwrap_or_else(running_release)),
            Action::Early { release } => self.early(&release.clone().unwrap_or_else(running_release)),
            Action::StartEarly { name } => self.start_early(name),
            Action::Run { name } => self.run(name),
        }
    }

    /// All these paths are opened through it.
    fn tree(&self) -> Tree<'_> {
        Tree::new(&self.root)
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn conf_path(&self, name: &str) -> PathBuf {
        self.path("etc/spile").join(format!("{name}.conf"))
    }

    fn module_path(&self, release: &str, name: &str) -> PathBuf {
        self.path("lib/modules").join(release).join("spile").join(format!("{name}.ko"))
    }

    fn order_path(&self, name: &str) -> PathBuf {
        self.path("etc/systemd/system").join(format!("{}.d/order.conf", unit(name)))
    }

    fn write_new(&self, path: &Path, bytes: &[u8]) -> Result<(), Error> {
        self.tree().write(path, bytes).map_err(|error| Error::OpenOutput { path: path.to_path_buf(), error })
    }

    fn has_configuration(&self, name: &str) -> Result<(), Error> {
        match is_module_name(name) && self.tree().exists(&self.conf_path(name)) {
            true => Ok(()),
            false => Err(Error::NoService { name: name.to_string() }),
        }
    }

    fn conf(&self, name: &str) -> Result<Conf, Error> {
        self.has_configuration(name)?;
        let path = self.conf_path(name);
        let text = self.tree().read_text(&path).map_err(|error| Error::Unreadable { path: path.clone(), error })?;
        conf::parse(&text).map_err(|why| Error::Setting { given: path.display().to_string(), why })
    }

    /// Names with a configuration.
    fn names(&self) -> Vec<String> {
        let entries = self.tree().names(&self.path("etc/spile")).into_iter();
        let names = entries.filter_map(|entry| Some(entry.to_str()?.strip_suffix(".conf")?.to_string()));
        let mut names: Vec<String> = names.filter(|name| is_module_name(name)).collect();
        names.sort();
        names
    }

    /// Installed kernels.
    fn releases(&self) -> Vec<String> {
        let modules = self.path("lib/modules");
        let entries = self.tree().names(&modules).into_iter();
        let kernels = entries
            .filter(|entry| ["kernel", "spile"].iter().any(|part| self.tree().is_dir(&modules.join(entry).join(part))));
        let mut releases: Vec<String> = kernels.filter_map(|entry| entry.into_string().ok()).collect();
        releases.sort();
        releases
    }

    fn install(&self, name: &str, modules: &[PathBuf], after: &[String], before: &[String]) -> Result<Step, Error> {
        let order =
            order(after, before).map_err(|why| Error::Setting { given: "--after, --before".to_string(), why })?;
        // Check all of them before anything is written.
        let modules = modules.iter().map(|module| File::find(module)).collect::<Result<Vec<File>, Error>>()?;
        if let Some(other) = modules.iter().find(|module| module.description.meta.name != name || !is_module_name(name))
        {
            let why = format!(
                "{} is called {}: build it with spile -m {name}",
                other.path.display(),
                other.description.meta.name
            );
            return Err(Error::Setting { given: name.to_string(), why });
        }
        if let Some(twice) = modules.iter().enumerate().find_map(|(index, module)| {
            let release = |module: &File| module.description.meta.kernel_release.clone();
            modules.iter().take(index).any(|before| release(before) == release(module)).then_some(module)
        }) {
            let why = format!("another one of these is for kernel {} too", twice.description.meta.kernel_release);
            return Err(Error::Setting { given: twice.path.display().to_string(), why });
        }
        if self.tree().exists(&self.conf_path(name)) {
            let conf = self.conf(name)?;
            for module in &modules {
                conf.suits(&module.description.meta)
                    .map_err(|why| Error::Setting { given: self.conf_path(name).display().to_string(), why })?;
            }
        }
        // Its configuration first: without it the name is not reserved for the service, and users may start the module.
        let conf = self.conf_path(name);
        let is_new = !self.tree().exists(&conf);
        if is_new {
            self.write_new(&conf, conf::default(name).as_bytes())?;
            say(&format!("{}: look at it, then spilerun service enable {name}", conf.display()));
        }
        for module in &modules {
            let place = self.module_path(&module.description.meta.kernel_release, name);
            self.write_new(&place, &module.image).inspect_err(|_| {
                // Ignore errors of a service without a module; report the first of the others.
                if is_new {
                    let _ = self.tree().remove_file(&conf);
                }
            })?;
            say(&format!("{} for kernel {}", place.display(), module.description.meta.kernel_release));
        }
        if !self.tree().exists(&self.path(PACKAGED_UNIT)) {
            let text = self.unit_text()?;
            if self.tree().read(&self.path(UNIT_PLACE)).ok().as_deref() != Some(text.as_bytes()) {
                self.write_new(&self.path(UNIT_PLACE), text.as_bytes())?;
            }
        }
        if let Some(text) = &order {
            self.write_new(&self.order_path(name), text.as_bytes())?;
        }
        self.reload()?;
        if self.has_no_manager() {
            say(&format!(
                "systemd does not run here, so nothing starts {name}: configure this host's init system to run `spilerun service run {name}`; where systemd runs: systemctl daemon-reload, then spilerun service enable {name}"
            ));
        }
        let kernels = if self.is_image() { self.releases() } else { vec![running_release()] };
        kernels.iter().for_each(|release| {
            self.check_name(name, release);
        });
        Ok(Step::Done(Exit::Success))
    }

    /// The unit, with the path of this program. An image has its own, installed by the packages.
    fn unit_text(&self) -> Result<String, Error> {
        if self.is_image() {
            if !self.tree().exists(&self.path(PACKAGED_PROGRAM.trim_start_matches('/'))) {
                stderr::say(&format!(
                    "WARNING: there is no {PACKAGED_PROGRAM} below {}, which the service needs",
                    self.root.display()
                ));
            }
            return Ok(UNIT.to_string());
        }
        let failed = |error| Error::System { doing: "finding this program's file", error };
        let program = std::env::current_exe().map_err(failed)?;
        let text = unit_for(&program).ok_or_else(|| {
            let why = "systemd takes no such path: install the program elsewhere".to_string();
            Error::Setting { given: program.display().to_string(), why }
        })?;
        let at_hand =
            ["/home/", "/root/", "/tmp/", "/var/tmp/", "/run/"].iter().any(|place| program.starts_with(place));
        if at_hand {
            stderr::say(&format!(
                "WARNING: the service starts {}: it has to stay there, writable only by root",
                program.display()
            ));
        }
        Ok(text)
    }

    /// An image of a system is not the running system.
    fn is_image(&self) -> bool {
        self.root != Path::new("/")
    }

    /// True in a container, an initramfs or with another init system, where nothing starts units; as sd_booted(3).
    fn has_no_manager(&self) -> bool {
        !self.is_image() && !Path::new("/run/systemd/system").is_dir()
    }

    fn reload(&self) -> Result<Step, Error> {
        match self.is_image() || self.has_no_manager() {
            false => system("systemctl", &["daemon-reload"]),
            true => Ok(Step::Done(Exit::Success)),
        }
    }

    /// In an image: for its next boot, independent of this system.
    fn systemctl(&self, action: &str, name: &str) -> Result<Step, Error> {
        match self.is_image() {
            false => system("systemctl", &[action, "--now", &unit(name)]),
            true => system("systemctl", &["--root", &self.root.to_string_lossy(), action, &unit(name)]),
        }
    }

    fn enable(&self, name: &str) -> Result<Step, Error> {
        self.conf(name)?;
        if self.has_no_manager() {
            let why = format!(
                "systemd does not run here: configure this host's init system to run `spilerun service run {name}`"
            );
            return Err(Error::Setting { given: format!("service enable {name}"), why });
        }
        self.systemctl("enable", name)
    }

    fn disable(&self, name: &str) -> Result<Step, Error> {
        self.has_configuration(name)?;
        let step = match self.has_no_manager() {
            true => Step::Done(Exit::Success),
            false => self.systemctl("disable", name)?,
        };
        if self.is_image() {
            return Ok(step);
        }
        // A session whose loader has just been killed.
        if matches!(load::holder(name), load::Holder::Other(_)) {
            return Ok(step);
        }
        match load::remove_leftover(name, None) {
            Ok(_) | Err(Error::NotLoaded { .. }) => Ok(step),
            Err(error) => Err(error),
        }
    }

    fn status(&self, name: &str) -> Result<Step, Error> {
        self.conf(name)?;
        if self.is_image() {
            say(&self.line(name));
            return Ok(Step::Done(Exit::Success));
        }
        if !self.has_no_manager() {
            let _ = system("systemctl", &["--no-pager", "--lines=3", "status", &unit(name)]);
        }
        say(&self.line(name));
        let holder = load::holder(name);
        if let load::Holder::Other(owner) = &holder {
            stderr::say(&format!(
                "WARNING: the name {name} is taken by a session that {} has started, not the service: systemctl restart {} ends it and starts the service's own",
                accounts::user_name(owner.uid),
                unit(name)
            ));
        }
        if matches!(holder, load::Holder::Service { detached: true }) {
            stderr::say(&format!(
                "WARNING: the session of {name} continues in its module, and no loader reads it: systemctl start {} attaches to it, spilerun service disable {name} ends it",
                unit(name)
            ));
        }
        if Path::new("/sys/module").join(name).exists() {
            return Ok(Step::Run(vec!["spilerun".into(), "status".into(), name.into()]));
        }
        Ok(Step::Done(if self.check_name(name, &running_release()) { Exit::Success } else { Exit::Mismatch }))
    }

    fn remove(&self, name: &str) -> Result<Step, Error> {
        self.disable(name)?;
        for release in self.releases() {
            let path = self.module_path(&release, name);
            if self.tree().exists(&path) {
                self.tree().remove_file(&path).map_err(|error| Error::OpenOutput { path, error })?;
            }
        }
        let order = self.order_path(name);
        // Without it, or with other files beside it, there is nothing to do.
        let _ = self
            .tree()
            .remove_file(&order)
            .and_then(|()| order.parent().map_or(Ok(()), |parent| self.tree().remove_dir(parent)));
        let path = self.conf_path(name);
        self.tree().remove_file(&path).map_err(|error| Error::OpenOutput { path, error })?;
        if self.has_no_manager() {
            say(&format!(
                "systemd does not run here: remove `spilerun service run {name}` from the configuration of this host's init system"
            ));
        }
        Ok(Step::Done(Exit::Success))
    }

    /// `NAME: RELEASE yes, RELEASE NO MODULE`
    fn line(&self, name: &str) -> String {
        let kernels = self.releases().into_iter().map(|release| match self.has_module(name, &release) {
            true => format!("{release} yes"),
            false => format!("{release} NO MODULE"),
        });
        format!("{name}: {}", kernels.collect::<Vec<_>>().join(", "))
    }

    fn list(&self) -> Result<Step, Error> {
        self.names().iter().for_each(|name| say(&self.line(name)));
        Ok(Step::Done(Exit::Success))
    }

    fn module(&self, release: &str, name: &str) -> Result<File, Error> {
        let path = self.module_path(release, name);
        let image = self.tree().read(&path).map_err(|error| Error::Unreadable { path: path.clone(), error })?;
        File::of(path, image)
    }

    /// Whether the module declares that it is for that kernel.
    fn has_module(&self, name: &str, release: &str) -> bool {
        self.module(release, name).is_ok_and(|file| file.description.meta.kernel_release == release)
    }

    fn check_name(&self, name: &str, release: &str) -> bool {
        let conf = match self.conf(name) {
            Ok(conf) => conf,
            Err(error) => {
                stderr::say(&format!("WARNING: service {name} will not be active: {error}"));
                return false;
            }
        };
        let is_there = self.has_module(name, release)
            || conf.missing == MissingAction::Rebuild
                && self.path("").join(&conf.script).is_file()
                && search::in_path("spile").is_some()
            || conf.missing == MissingAction::Fetch && fetched_from(&conf, name, release).exists();
        if !is_there {
            stderr::say(&format!(
                "WARNING: service {name} has no module for kernel {release}: with it {name} will not be active; build it (spile -p4 -m {name} -r {release}) and install it (spilerun service install {name} FILE)"
            ));
        }
        is_there
    }

    fn check(&self, release: &str) -> Result<Step, Error> {
        let missing = self.names().iter().filter(|name| !self.check_name(name, release)).count();
        Ok(Step::Done(if missing == 0 { Exit::Success } else { Exit::Mismatch }))
    }

    fn early(&self, release: &str) -> Result<Step, Error> {
        for name in self.names() {
            // A broken service must not hide the others.
            let is_early = match self.conf(&name) {
                Ok(conf) => conf.early,
                Err(error) => {
                    stderr::say(&format!("WARNING: {error}"));
                    false
                }
            };
            if is_early && self.has_module(&name, release) {
                say(&self.module_path(release, &name).display().to_string());
                say(&self.conf_path(&name).display().to_string());
            }
        }
        Ok(Step::Done(Exit::Success))
    }

    fn start_early(&self, name: &str) -> Result<Step, Error> {
        let conf = self.conf(name)?;
        let mut arguments: Vec<OsString> = vec!["spilerun".into(), "-L".into(), "--keep".into()];
        arguments.extend(conf.options.iter().map(OsString::from));
        arguments.push(self.module_for(name, &conf, &running_release())?.into());
        arguments.extend(conf.globals.iter().map(OsString::from));
        Ok(Step::Run(arguments))
    }

    /// Attaches to the session left by a killed loader or the initramfs, or starts one.
    fn run(&self, name: &str) -> Result<Step, Error> {
        let conf = self.conf(name)?;
        let mut arguments: Vec<OsString> = vec!["spilerun".into(), "--keep".into(), "--append".into()];
        arguments.extend(conf.output_options().into_iter().map(OsString::from));
        let holder = load::holder(name);
        if matches!(holder, load::Holder::Service { detached: true }) {
            arguments.extend(["-A".into(), name.into()]);
            return Ok(Step::Run(arguments));
        }
        let module = self.module_for(name, &conf, &running_release())?;
        if let load::Holder::Other(owner) = holder {
            stderr::say(&format!(
                "WARNING: the name {name} is taken by a session that {} has started: it is ended, and the service's own begins",
                accounts::user_name(owner.uid)
            ));
            load::take_over(name)?;
        }
        arguments.extend(conf.options.iter().map(OsString::from));
        arguments.push(module.into());
        arguments.extend(conf.globals.iter().map(OsString::from));
        Ok(Step::Run(arguments))
    }

    fn module_for(&self, name: &str, conf: &Conf, release: &str) -> Result<PathBuf, Error> {
        let place = self.module_path(release, name);
        if self.tree().exists(&place) {
            return Ok(self.tree().outer(&place));
        }
        match conf.missing {
            MissingAction::Fail => {}
            MissingAction::Fetch => {
                let source = fetched_from(conf, name, release);
                if !source.exists() {
                    return Err(Error::NoModule {
                        name: name.to_string(),
                        release: release.to_string(),
                        places: vec![place, source],
                    });
                }
                let file = File::find(&source)?;
                let meta = &file.description.meta;
                // A module that does not fit would be taken for this kernel's.
                if meta.kernel_release != release {
                    let built_for = meta.kernel_release.clone();
                    return Err(Error::OtherRelease { path: file.path, built_for, running: release.to_string() });
                }
                if meta.name != name {
                    let why = format!("{} is called {}", file.path.display(), meta.name);
                    return Err(Error::Setting { given: name.to_string(), why });
                }
                self.write_new(&place, &file.image)?;
                return Ok(self.tree().outer(&place));
            }
            MissingAction::Rebuild => {
                let directory = place.parent().unwrap_or(Path::new("/"));
                self.tree()
                    .create_dir_all(directory)
                    .map_err(|error| Error::OpenOutput { path: directory.to_path_buf(), error })?;
                let mut command = Command::new("spile");
                command
                    .args(&conf.build_options)
                    .args(["-p4", "-m", name, "-r", release])
                    .arg(&conf.script)
                    .current_dir(self.tree().outer(directory));
                // A service has no home directory.
                if std::env::var_os("SPILE_CACHE_DIR").is_none() {
                    command.env("SPILE_CACHE_DIR", CACHE);
                }
                match built(command) {
                    Ok(status) if status.success() && self.tree().exists(&place) => {
                        return Ok(self.tree().outer(&place));
                    }
                    // It has printed the reason.
                    Ok(_) => {}
                    Err(error) => stderr::say(&format!("WARNING: spile cannot be started to build it: {error}")),
                }
            }
        }
        Err(Error::NoModule { name: name.to_string(), release: release.to_string(), places: vec![place] })
    }
}

/// The next step.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Nothing.
    Done(Exit),
    /// Run this command line.
    Run(Vec<OsString>),
}

/// `MISSING=fetch`
fn fetched_from(conf: &Conf, name: &str, release: &str) -> PathBuf {
    conf.directory.join(release).join(format!("{name}.ko"))
}

/// Runs the compiler. The service manager waits as long as it works.
fn built(mut command: Command) -> io::Result<ExitStatus> {
    let mut child = command.spawn()?;
    loop {
        notify::send(&[&format!("EXTEND_TIMEOUT_USEC={}", PATIENCE.as_micros())]);
        let asked = Instant::now();
        while asked.elapsed() < PATIENCE / 6 {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// The unit with another program path than the packages'. None for a path that is not valid in a unit.
fn unit_for(program: &Path) -> Option<String> {
    let path = program.to_str().filter(|path| {
        path.starts_with('/') && !path.chars().any(|letter| letter.is_control() || "\"'\\".contains(letter))
    })?;
    // The only special character in a unit's path.
    let path = path.replace('%', "%%");
    // One file can be both programs, selected by argv[0]. "@" makes systemd pass it.
    let start = match program.file_name().is_some_and(|name| name == "spilerun") {
        true => format!("\"{path}\""),
        false => format!("\"@{path}\" spilerun"),
    };
    let start = if path.contains(' ') { start } else { start.replace('"', "") };
    Some(UNIT.replace(&format!("ExecStart={PACKAGED_PROGRAM} "), &format!("ExecStart={start} ")))
}

fn unit(name: &str) -> String {
    format!("spile@{name}.service")
}

fn say(line: &str) {
    // Ignore a closed reader.
    let _ = io::Write::write_all(&mut io::stdout(), format!("{}\n", escape::line(line)).as_bytes());
}

/// Runs a system program; it inherits our output.
fn system(program: &str, arguments: &[&str]) -> Result<Step, Error> {
    let status = Command::new(program).args(arguments).status();
    let status = status.map_err(|error| Error::Command { command: program.to_string(), error })?;
    Ok(Step::Done(if status.success() { Exit::Success } else { Exit::Failed }))
}

/// The options for a step.
pub fn options(arguments: Vec<OsString>) -> Result<Options, Error> {
    let line = || arguments.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let wrong = |why: String| Error::Setting { given: line(), why };
    let options = Options::parse(arguments.clone()).map_err(|error| wrong(conf::first_line(&error)))?;
    match options.task {
        Task::Run(_) | Task::Attach(_) | Task::Status(..) => Ok(options),
        _ => Err(wrong("a service only runs a module".to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::module::file::tests::{sealed, this_module};
    use spile_abi::meta::{self, Meta};
    use std::fs;

    fn service(root: &Path, line: &str) -> Result<Step, Error> {
        let words = ["service", "--root"].map(OsString::from).into_iter().chain([root.into()]);
        Service::parse(words.chain(line.split(' ').map(OsString::from))).unwrap().perform()
    }

    fn module(path: &Path, name: &str, release: &str) {
        let meta = Meta { name: name.into(), kernel_release: release.into(), ..Meta::default() };
        fs::write(
            path,
            sealed(&[(meta::SECTION, &meta.encode()), (".gnu.linkonce.this_module", &this_module(&meta.name))]),
        )
        .unwrap();
    }

    #[test]
    fn the_unit_starts_the_program_that_wrote_it() {
        let start = |program: &str| {
            let text = unit_for(Path::new(program)).unwrap();
            let line = text.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap().to_string();
            assert_eq!(text.lines().count(), UNIT.lines().count());
            line
        };
        assert_eq!(start("/usr/sbin/spilerun"), "/usr/sbin/spilerun service run %i");
        assert_eq!(start("/opt/spile/spilerun"), "/opt/spile/spilerun service run %i");
        assert_eq!(start("/opt/spile/spile"), "@/opt/spile/spile spilerun service run %i");
        assert_eq!(start("/opt/50% of it/spilerun"), "\"/opt/50%% of it/spilerun\" service run %i");
        assert!(unit_for(Path::new("/opt/a\nb/spilerun")).is_none() && unit_for(Path::new("spilerun")).is_none());
    }

    #[test]
    fn modules_of_several_kernels_coexist() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for release in ["6.1.0-1", "6.2.0-1"] {
            fs::create_dir_all(root.join("lib/modules").join(release).join("kernel")).unwrap();
        }
        let file = root.join("any.ko");
        module(&file, "fix", "6.1.0-1");
        let install = format!("install fix {}", file.display());
        assert_eq!(service(root, &install).unwrap(), Step::Done(Exit::Success));
        assert!(root.join("etc/systemd/system/spile@.service").exists());
        assert_eq!(service(root, "check 6.1.0-1").unwrap(), Step::Done(Exit::Success));
        assert_eq!(service(root, "check 6.2.0-1").unwrap(), Step::Done(Exit::Mismatch));
        module(&file, "fix", "6.2.0-1");
        // The owner's changes stay.
        fs::write(root.join("etc/spile/fix.conf"), "EARLY=yes\n").unwrap();
        service(root, &install).unwrap();
        assert_eq!(service(root, "check 6.2.0-1").unwrap(), Step::Done(Exit::Success));
        assert_eq!(fs::read_to_string(root.join("etc/spile/fix.conf")).unwrap(), "EARLY=yes\n");
        module(&root.join("lib/modules/6.2.0-1/spile/fix.ko"), "fix", "6.1.0-1");
        assert_eq!(service(root, "check 6.2.0-1").unwrap(), Step::Done(Exit::Mismatch));
        module(&file, "other", "6.2.0-1");
        assert!(matches!(service(root, &install), Err(Error::Setting { .. })));
        assert!(matches!(service(root, "run none"), Err(Error::NoService { .. })));
        assert!(matches!(service(root, "run ../fix"), Err(Error::NoService { .. })));
    }

    #[test]
    fn links_of_an_image_stay_in_it() {
        let outside = tempfile::tempdir().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for (place, link) in
            [("etc", "spile"), ("etc", "systemd"), ("lib/modules/6.1.0-1", "spile"), ("lib/modules/6.1.0-1", "kernel")]
        {
            fs::create_dir_all(root.join(place)).unwrap();
            std::os::unix::fs::symlink(outside.path(), root.join(place).join(link)).unwrap();
        }
        module(&outside.path().join("fix.ko"), "fix", "6.1.0-1");
        fs::write(outside.path().join("fix.conf"), "").unwrap();
        let files = || {
            let mut files: Vec<_> =
                fs::read_dir(outside.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            files.sort();
            files
        };
        let before = files();
        assert_eq!(service(root, "check 6.1.0-1").unwrap(), Step::Done(Exit::Success), "there is no service");
        assert!(matches!(service(root, "run fix"), Err(Error::NoService { .. })));
        assert!(matches!(service(root, "remove fix"), Err(Error::NoService { .. })));
        let _ = service(root, &format!("install fix {}", outside.path().join("fix.ko").display()));
        assert_eq!(files(), before);
        assert!(fs::read(outside.path().join("fix.conf")).unwrap().is_empty());
    }

    #[test]
    fn without_a_module_it_is_fetched_or_reported() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let release = running_release();
        fs::create_dir_all(root.join("etc/spile")).unwrap();
        fs::write(
            root.join("etc/spile/fix.conf"),
            "OPTIONS=--dry-run -s 2\nGLOBALS=a=1 b=x\nOUTPUT=/var/log/fix\nROTATE=5,2\n",
        )
        .unwrap();
        assert!(matches!(service(root, "run fix"), Err(Error::NoModule { .. })));
        let store = root.join("store");
        fs::create_dir_all(store.join(&release)).unwrap();
        module(&store.join(&release).join("fix.ko"), "fix", &release);
        let conf = fs::read_to_string(root.join("etc/spile/fix.conf")).unwrap();
        fs::write(root.join("etc/spile/fix.conf"), format!("{conf}MISSING=fetch\nDIRECTORY={}\n", store.display()))
            .unwrap();
        let Step::Run(arguments) = service(root, "run fix").unwrap() else { panic!("it runs") };
        let options = options(arguments).unwrap();
        assert!(options.keep && options.gate.dry_run && options.rotation.is_some());
        assert_eq!(options.settings, ["a=1", "b=x"]);
        assert_eq!(options.task, Task::Run(root.join("lib/modules").join(&release).join("spile/fix.ko")));
    }
}
