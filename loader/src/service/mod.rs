// SPDX-License-Identifier: GPL-2.0-or-later

//! Services: modules in /lib/modules/RELEASE/spile, `/etc/spile/NAME.conf`, and the unit `spile@NAME`.
//!
//! There may be modules for several kernels; the one to run is chosen when the service starts. `check` (when a kernel
//! is installed), `status` and a failing start report kernels without a module.

pub mod conf;
mod install;
pub mod reserved;
mod start;
mod state;
mod unit;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};

use crate::error::{Error, Exit};
use crate::host::beneath::Tree;
use crate::host::kernel::{is_module_name, running_release};
use crate::options::{Options, Task};
use conf::Conf;
use spile_abi::escape;
use unit::{system, unit};

pub use unit::order;

/// `spilerun service ...`
#[derive(Clone, Debug, PartialEq, Eq, Parser)]
#[command(name = "spilerun service", bin_name = "spilerun service", about = "Prebuilt modules as services")]
pub struct Service {
    /// Root directory of another system
    #[arg(long, value_name = "DIR", default_value = "/", global = true)]
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
    /// End the session of a service that did not stop in time; called by the unit
    Stopped { name: String },
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
            Action::Stopped { name } => Service::stopped(name),
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
}

/// The next step.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Nothing.
    Done(Exit),
    /// Run this command line.
    Run(Vec<OsString>),
}

fn say(line: &str) {
    // Ignore a closed reader.
    let _ = io::Write::write_all(&mut io::stdout(), format!("{}\n", escape::line(line)).as_bytes());
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
    fn the_root_may_follow_the_action() {
        let before = Service::parse(["service", "--root", "/r", "install", "fix", "any.ko"].map(OsString::from));
        let behind = Service::parse(["service", "install", "fix", "any.ko", "--root", "/r"].map(OsString::from));
        assert_eq!(before.unwrap(), behind.unwrap());
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
    fn a_name_stays_reserved_while_a_module_of_it_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir_all(root.join("lib/modules/6.1.0-1/kernel")).unwrap();
        let [one, other] = ["one.ko", "other.ko"].map(|name| root.join(name));
        module(&one, "fix", "6.1.0-1");
        module(&other, "fix", "6.2.0-1");
        // The second cannot be written.
        fs::write(root.join("lib/modules/6.2.0-1"), "").unwrap();
        assert!(service(root, &format!("install fix {} {}", one.display(), other.display())).is_err());
        assert!(root.join("lib/modules/6.1.0-1/spile/fix.ko").exists() && root.join("etc/spile/fix.conf").exists());
        fs::remove_dir_all(root.join("lib/modules/6.1.0-1/spile")).unwrap();
        fs::remove_file(root.join("etc/spile/fix.conf")).unwrap();
        assert!(service(root, &format!("install fix {}", other.display())).is_err());
        assert!(!root.join("etc/spile/fix.conf").exists());
    }

    #[test]
    fn files_of_the_configuration_are_those_of_the_image() {
        let outside = tempfile::tempdir().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let place = outside.path().join("6.1.0-1");
        fs::create_dir_all(&place).unwrap();
        module(&place.join("fix.ko"), "fix", "6.1.0-1");
        fs::create_dir_all(root.join("etc/spile")).unwrap();
        fs::write(root.join("etc/spile/fix.conf"), format!("MISSING=fetch\nDIRECTORY={}\n", outside.path().display()))
            .unwrap();
        assert_eq!(service(root, "check 6.1.0-1").unwrap(), Step::Done(Exit::Mismatch), "the host's");
        let inside = root.join(place.strip_prefix("/").unwrap());
        fs::create_dir_all(&inside).unwrap();
        module(&inside.join("fix.ko"), "fix", "6.1.0-1");
        assert_eq!(service(root, "check 6.1.0-1").unwrap(), Step::Done(Exit::Success));
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
