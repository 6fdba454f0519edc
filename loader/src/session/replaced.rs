// SPDX-License-Identifier: GPL-2.0-or-later

//! Files of programs that are replaced while probes are in them, as an upgrade of a package does. Probes belong to a file: those
//! in running processes stay, and processes that begin later run another file, without probes.

use std::fs;
use std::os::unix::fs::MetadataExt;

use spile_abi::meta::Meta;

/// Nanoseconds between two looks.
const INTERVAL: u64 = 5_000_000_000;

/// Device and inode.
type Identity = (u64, u64);

/// The files, as they were when the session began.
pub struct ReplacedPrograms {
    files: Vec<(String, Identity)>,
    next: u64,
}

impl ReplacedPrograms {
    /// The programs and libraries that the script has probes in; those that are not there are left out. `now`: nanoseconds, as
    /// everywhere here.
    pub fn of(meta: &Meta, now: u64) -> ReplacedPrograms {
        let known = meta.programs.iter().filter_map(|program| Some((program.name.clone(), identity(&program.name)?)));
        ReplacedPrograms { files: known.collect(), next: now.saturating_add(INTERVAL) }
    }

    /// The paths where another file is now, each once. One that is being replaced may be absent for a moment.
    pub fn look(&mut self, now: u64) -> Vec<String> {
        if now < self.next {
            return Vec::new();
        }
        self.next = now.saturating_add(INTERVAL);
        let is_another = |(path, known): &(String, Identity)| identity(path).is_some_and(|found| found != *known);
        let (replaced, rest) = std::mem::take(&mut self.files).into_iter().partition(is_another);
        self.files = rest;
        let replaced: Vec<(String, Identity)> = replaced;
        replaced.into_iter().map(|(path, _)| path).collect()
    }

    /// Nanoseconds until [`ReplacedPrograms::look`] is to be called; `None`: never.
    pub fn until_next(&self, now: u64) -> Option<u64> {
        (!self.files.is_empty()).then(|| self.next.saturating_sub(now))
    }
}

fn identity(path: &str) -> Option<Identity> {
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use spile_abi::meta::Target;

    #[test]
    fn a_file_that_takes_the_place_of_another_is_told_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        let targets = ["replaced", "kept", "absent"]
            .map(|name| Target { name: at(name).display().to_string(), ..Target::default() });
        for name in ["replaced", "kept", "new"] {
            fs::write(at(name), name).expect("written");
        }
        let meta = Meta { programs: targets.to_vec(), ..Meta::default() };
        let mut files = ReplacedPrograms::of(&meta, 0);
        fs::rename(at("new"), at("replaced")).expect("renamed");
        assert_eq!((files.until_next(1), files.look(INTERVAL - 1)), (Some(INTERVAL - 1), Vec::new()));
        assert_eq!(files.look(INTERVAL), [at("replaced").display().to_string()]);
        assert_eq!(files.look(2 * INTERVAL), Vec::<String>::new());
        assert_eq!(files.until_next(2 * INTERVAL), Some(INTERVAL));
        assert_eq!(ReplacedPrograms::of(&Meta::default(), 0).until_next(0), None);
    }
}
