// SPDX-License-Identifier: GPL-2.0-or-later

//! Installing and removing the files of a service.

use std::path::PathBuf;

use super::unit::{PACKAGED_UNIT, UNIT_PLACE, order};
use super::{Service, Step, conf, say};
use crate::error::{Error, Exit};
use crate::host::kernel::{is_module_name, running_release};
use crate::host::stderr;
use crate::module::file::File;

impl Service {
    pub(super) fn install(
        &self,
        name: &str,
        modules: &[PathBuf],
        after: &[String],
        before: &[String],
    ) -> Result<Step, Error> {
        let order =
            order(after, before).map_err(|why| Error::Setting { given: "--after, --before".to_string(), why })?;
        // Check all of them before anything is written.
        let modules = self.checked(name, modules)?;
        let unit = match self.tree().exists(&self.path(PACKAGED_UNIT)) {
            true => None,
            false => Some(self.unit_text()?),
        };
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
                // Ignore errors of a service without a module; report the first of the others. With a module the name
                // stays reserved.
                if is_new && !self.has_any_module(name) {
                    let _ = self.tree().remove_file(&conf);
                }
            })?;
            say(&format!("{} for kernel {}", place.display(), module.description.meta.kernel_release));
        }
        if let Some(text) = unit
            && self.tree().read(&self.path(UNIT_PLACE)).ok().as_deref() != Some(text.as_bytes())
        {
            self.write_new(&self.path(UNIT_PLACE), text.as_bytes())?;
        }
        if let Some(text) = &order {
            self.write_new(&self.order_path(name), text.as_bytes())?;
        }
        let reloaded = self.reload()?;
        if self.has_no_manager() {
            say(&format!(
                "systemd does not run here, so nothing starts {name}: configure this host's init system to run `spilerun service run {name}`; where systemd runs: systemctl daemon-reload, then spilerun service enable {name}"
            ));
        }
        let kernels = if self.is_image() { self.releases() } else { vec![running_release()] };
        kernels.iter().for_each(|release| {
            self.check_name(name, release);
        });
        self.warn_of_initramfs(name);
        Ok(reloaded)
    }

    /// Of any kernel, those of which only the directory is there included.
    fn has_any_module(&self, name: &str) -> bool {
        let releases = self.tree().names(&self.path("lib/modules"));
        releases
            .iter()
            .filter_map(|release| release.to_str())
            .any(|release| self.tree().exists(&self.module_path(release, name)))
    }

    /// With EARLY the initramfs has copies of the service's files, which only its own tools renew.
    pub(super) fn warn_of_initramfs(&self, name: &str) {
        if self.conf(name).is_ok_and(|conf| conf.early) {
            stderr::say(&format!(
                "WARNING: {name} is started in the initramfs (EARLY=yes), from the copies of its files there: make it again (update-initramfs -u -k all, or dracut --force --regenerate-all), or the next boot starts what is in it now"
            ));
        }
    }

    /// The modules, which must be those of the service, for different kernels, and suit its configuration.
    fn checked(&self, name: &str, modules: &[PathBuf]) -> Result<Vec<File>, Error> {
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
        Ok(modules)
    }

    pub(super) fn remove(&self, name: &str) -> Result<Step, Error> {
        // It warns of the initramfs, too.
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
}
