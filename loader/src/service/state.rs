// SPDX-License-Identifier: GPL-2.0-or-later

//! The state of services: which kernels they have a module for, and what uses their names.

use std::path::Path;

use super::conf::MissingAction;
use super::start::fetched_from;
use super::unit::{system, unit};
use super::{Service, Step, say};
use crate::error::{Error, Exit};
use crate::host::kernel::running_release;
use crate::host::{accounts, search, stderr};
use crate::module::file::File;
use crate::module::load;

impl Service {
    pub(super) fn status(&self, name: &str) -> Result<Step, Error> {
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
        if matches!(holder, load::Holder::Service { detached: true, .. }) {
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

    /// `NAME: RELEASE yes, RELEASE NO MODULE`
    fn line(&self, name: &str) -> String {
        let kernels = self.releases().into_iter().map(|release| match self.has_module(name, &release) {
            true => format!("{release} yes"),
            false => format!("{release} NO MODULE"),
        });
        format!("{name}: {}", kernels.collect::<Vec<_>>().join(", "))
    }

    pub(super) fn list(&self) -> Result<Step, Error> {
        self.names().iter().for_each(|name| say(&self.line(name)));
        Ok(Step::Done(Exit::Success))
    }

    fn module(&self, release: &str, name: &str) -> Result<File, Error> {
        let path = self.module_path(release, name);
        let image = self.tree().read(&path).map_err(|error| Error::Unreadable { path: path.clone(), error })?;
        File::of(path, image)
    }

    /// Whether the module declares that it is for that kernel.
    pub(super) fn has_module(&self, name: &str, release: &str) -> bool {
        self.module(release, name).is_ok_and(|file| file.description.meta.kernel_release == release)
    }

    pub(super) fn check_name(&self, name: &str, release: &str) -> bool {
        let conf = match self.conf(name) {
            Ok(conf) => conf,
            Err(error) => {
                stderr::say(&format!("WARNING: service {name} will not be active: {error}"));
                return false;
            }
        };
        let is_there = self.has_module(name, release)
            || conf.missing == MissingAction::Rebuild
                && self.is_there(&conf.script)
                && search::in_path("spile").is_some()
            || conf.missing == MissingAction::Fetch && self.is_there(&fetched_from(&conf, name, release));
        if !is_there {
            stderr::say(&format!(
                "WARNING: service {name} has no module for kernel {release}: with it {name} will not be active; build it (spile -p4 -m {name} -r {release}) and install it (spilerun service install {name} FILE)"
            ));
        }
        is_there
    }

    /// An absolute path is one below the root directory.
    fn is_there(&self, path: &Path) -> bool {
        self.tree().exists(&self.root.join(path.strip_prefix("/").unwrap_or(path)))
    }

    pub(super) fn check(&self, release: &str) -> Result<Step, Error> {
        let missing = self.names().iter().filter(|name| !self.check_name(name, release)).count();
        Ok(Step::Done(if missing == 0 { Exit::Success } else { Exit::Mismatch }))
    }
}
