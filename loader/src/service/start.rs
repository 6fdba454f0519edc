// SPDX-License-Identifier: GPL-2.0-or-later

//! Starting a service: its module, which may have to be fetched or built, and the command line of the loader.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use nix::sys::stat::{Mode, umask};

use super::conf::{Conf, MissingAction};
use super::{Service, Step, say};
use crate::error::{Error, Exit};
use crate::host::kernel::running_release;
use crate::host::{accounts, notify, stderr};
use crate::module::file::File;
use crate::module::{load, lock};

/// The compiler's cache when a service runs it.
const CACHE: &str = "/var/cache/spile";
/// Interval of messages to the service manager while the compiler runs.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(50);
/// Of modules that are fetched or built.
const MODULE_UMASK: Mode = Mode::S_IWGRP.union(Mode::S_IWOTH);
/// How long what an ended session has left may be written before the next one starts.
const FINISH: Duration = Duration::from_secs(10);

impl Service {
    pub(super) fn early(&self, release: &str) -> Result<Step, Error> {
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

    pub(super) fn start_early(&self, name: &str) -> Result<Step, Error> {
        let conf = self.conf(name)?;
        let mut arguments: Vec<OsString> = vec!["spilerun".into(), "-L".into(), "--keep".into()];
        arguments.extend(conf.options.iter().map(OsString::from));
        arguments.push(self.module_for(name, &conf, &running_release())?.into());
        arguments.extend(conf.globals.iter().map(OsString::from));
        Ok(Step::Run(arguments))
    }

    /// Attaches to the session left by a killed loader or the initramfs, or starts one. If that session has ended, only its
    /// output was not read: that is done, and another one starts.
    pub(super) fn run(&self, name: &str) -> Result<Step, Error> {
        let conf = self.conf(name)?;
        let mut arguments: Vec<OsString> = vec!["spilerun".into(), "--keep".into(), "--append".into()];
        arguments.extend(conf.output_options().into_iter().map(OsString::from));
        // Users that may start its module (START) would take the name again and again.
        lock::claim(name);
        let holder = load::holder(name);
        match holder {
            load::Holder::Service { detached: true, ended: false } => {
                arguments.extend(["-A".into(), name.into()]);
                return Ok(Step::Run(arguments));
            }
            load::Holder::Service { detached: true, ended: true } => finish(name, &arguments)?,
            _ => {}
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

    /// What is fetched or built is for all users that may start it, whatever the unit's UMask is.
    fn module_for(&self, name: &str, conf: &Conf, release: &str) -> Result<PathBuf, Error> {
        let before = umask(MODULE_UMASK);
        let found = self.find_or_make(name, conf, release);
        umask(before);
        found
    }

    fn find_or_make(&self, name: &str, conf: &Conf, release: &str) -> Result<PathBuf, Error> {
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

/// Has another process write what an ended session has left, with these options, and removes the session. If the output
/// does not accept it in time, it is lost.
fn finish(name: &str, options: &[OsString]) -> Result<(), Error> {
    let lost = |why: &str| {
        stderr::say(&format!("WARNING: the output of the session of {name} that has ended is lost: {why}"));
    };
    let mut command = Command::new("/proc/self/exe");
    // One file can be spile and spilerun. It is not the service that is ready then.
    command.arg0("spilerun").args(options.iter().skip(1)).args(["-A", name]).env_remove("NOTIFY_SOCKET");
    let begun = Instant::now();
    match command.spawn() {
        Ok(mut child) => {
            loop {
                match child.try_wait() {
                    Ok(None) if begun.elapsed() > FINISH => {
                        lost(&format!("it could not be written in {} s", FINISH.as_secs()));
                        let _ = child.kill();
                        let _ = child.wait();
                        break;
                    }
                    Ok(None) => std::thread::sleep(Duration::from_millis(20)),
                    // An error of the script loses nothing. Of others it has printed the reason.
                    Ok(Some(status)) => {
                        if ![Some(Exit::Success as i32), Some(Exit::Failed as i32)].contains(&status.code()) {
                            lost(&format!("its loader ended with {status}"));
                        }
                        break;
                    }
                    Err(error) => {
                        lost(&error.to_string());
                        break;
                    }
                }
            }
        }
        Err(error) => lost(&error.to_string()),
    }
    load::take_over(name)
}

/// `MISSING=fetch`
pub(super) fn fetched_from(conf: &Conf, name: &str, release: &str) -> PathBuf {
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
