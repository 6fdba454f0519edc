// SPDX-License-Identifier: GPL-2.0-or-later

//! The unit `spile@NAME` of a service, and systemd, if it runs here.

use std::path::Path;
use std::process::Command;

use super::{Service, Step};
use crate::error::{Error, Exit};
use crate::host::kernel::is_module_name;
use crate::host::stderr;
use crate::module::load;

const UNIT: &str = include_str!("../../system/spile@.service");
pub(super) const UNIT_PLACE: &str = "etc/systemd/system/spile@.service";
const PACKAGED_PROGRAM: &str = "/usr/sbin/spilerun";
pub(super) const PACKAGED_UNIT: &str = "usr/lib/systemd/system/spile@.service";

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

impl Service {
    /// The unit, with the path of this program. An image has its own, installed by the packages.
    pub(super) fn unit_text(&self) -> Result<String, Error> {
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
    pub(super) fn is_image(&self) -> bool {
        self.root != Path::new("/")
    }

    /// True in a container, an initramfs or with another init system, where nothing starts units; as sd_booted(3).
    pub(super) fn has_no_manager(&self) -> bool {
        !self.is_image() && !Path::new("/run/systemd/system").is_dir()
    }

    pub(super) fn reload(&self) -> Result<Step, Error> {
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

    pub(super) fn enable(&self, name: &str) -> Result<Step, Error> {
        self.conf(name)?;
        if self.has_no_manager() {
            let why = format!(
                "systemd does not run here: configure this host's init system to run `spilerun service run {name}`"
            );
            return Err(Error::Setting { given: format!("service enable {name}"), why });
        }
        self.warn_of_initramfs(name);
        self.systemctl("enable", name)
    }

    /// After the unit has ended: systemd has killed a loader that did not end in time when it was stopped, and its session
    /// ends too. After a crash the session stays for the next start.
    pub(super) fn stopped(name: &str) -> Result<Step, Error> {
        let is_killed = std::env::var_os("SERVICE_RESULT").is_some_and(|result| result == "timeout");
        match is_killed && is_module_name(name) {
            true => match load::remove_leftover(name, None) {
                Ok(_) | Err(Error::NotLoaded { .. }) => Ok(Step::Done(Exit::Success)),
                Err(error) => Err(error),
            },
            false => Ok(Step::Done(Exit::Success)),
        }
    }

    pub(super) fn disable(&self, name: &str) -> Result<Step, Error> {
        self.has_configuration(name)?;
        self.warn_of_initramfs(name);
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
}

/// The unit with another program path than the packages'. None for a path that is not valid in a unit.
fn unit_for(program: &Path) -> Option<String> {
    let path = program.to_str().filter(|path| {
        path.starts_with('/') && !path.chars().any(|letter| letter.is_control() || "\"'\\".contains(letter))
    })?;
    // The only special character in a unit's path.
    let path = path.replace('%', "%%");
    // One file can be both programs, selected by argv[0]. "@" makes systemd pass it.
    let is_both = program.file_name().is_none_or(|name| name != "spilerun");
    // What stands before the path is part of the quoted word.
    let start = |before: &str| {
        let quote = if path.contains(' ') { "\"" } else { "" };
        match is_both {
            false => format!("{quote}{before}{path}{quote} "),
            true => format!("{quote}{before}@{path}{quote} spilerun "),
        }
    };
    let text = UNIT.replace(&format!("ExecStart={PACKAGED_PROGRAM} "), &format!("ExecStart={}", start("")));
    Some(text.replace(&format!("ExecStopPost=-{PACKAGED_PROGRAM} "), &format!("ExecStopPost={}", start("-"))))
}

pub(super) fn unit(name: &str) -> String {
    format!("spile@{name}.service")
}

/// Runs a system program; it inherits our output.
pub(super) fn system(program: &str, arguments: &[&str]) -> Result<Step, Error> {
    let status = Command::new(program).args(arguments).status();
    let status = status.map_err(|error| Error::Command { command: program.to_string(), error })?;
    Ok(Step::Done(if status.success() { Exit::Success } else { Exit::Failed }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_starts_the_program_that_wrote_it() {
        let lines = |program: &str| {
            let text = unit_for(Path::new(program)).unwrap();
            assert_eq!(text.lines().count(), UNIT.lines().count());
            assert!(program == PACKAGED_PROGRAM || !text.contains(PACKAGED_PROGRAM));
            ["ExecStart=", "ExecStopPost="]
                .map(|key| text.lines().find_map(|line| line.strip_prefix(key)).unwrap().to_string())
        };
        assert_eq!(
            lines("/usr/sbin/spilerun"),
            ["/usr/sbin/spilerun service run %i", "-/usr/sbin/spilerun service stopped %i"]
        );
        assert_eq!(
            lines("/opt/spile/spilerun"),
            ["/opt/spile/spilerun service run %i", "-/opt/spile/spilerun service stopped %i"]
        );
        assert_eq!(
            lines("/opt/spile/spile"),
            ["@/opt/spile/spile spilerun service run %i", "-@/opt/spile/spile spilerun service stopped %i"]
        );
        assert_eq!(
            lines("/opt/50% of it/spilerun"),
            ["\"/opt/50%% of it/spilerun\" service run %i", "\"-/opt/50%% of it/spilerun\" service stopped %i"]
        );
        assert!(unit_for(Path::new("/opt/a\nb/spilerun")).is_none() && unit_for(Path::new("spilerun")).is_none());
    }
}
