// SPDX-License-Identifier: GPL-2.0-or-later

//! `spile package NAME FILE.ko...`: a prebuilt workaround, for one or more kernels, as packages for Debian's and Red
//! Hat's distributions; and the content of packages, also for spile's own ([`Package`], [`deb`], [`rpm`]).
//!
//! A package contains `/usr/lib/modules/RELEASE/spile/NAME.ko` for each kernel and `/etc/spile/NAME.conf`, and depends
//! on the package `spile-loader`, which has spilerun and the unit `spile@.service`. Installing it enables and starts
//! `spile@NAME.service`; removing it stops the service and restores the original behaviour. Equal input gives equal
//! bytes.

#![warn(clippy::print_stderr, clippy::print_stdout)]

mod command;
mod content;
pub mod deb;
pub mod rpm;
mod tar;

pub use command::main;
pub use content::{Entry, Kind, LOADER, Package, Scripts, copyright};

#[cfg(test)]
pub(crate) mod tests {
    use crate::command::scripts;
    use crate::content::{Entry, LOADER, Package, directories};
    use crate::{deb, rpm};

    /// A package with an entry of each kind.
    pub(crate) fn package() -> Package {
        Package {
            name: "spile-fix".into(),
            version: "1.2".into(),
            summary: "Keeps things going".into(),
            description: "Two\n\nlines".into(),
            maintainer: "A <a@b>".into(),
            depends: vec![LOADER.into()],
            stands_for: vec![("other-fix".into(), "2.0".into())],
            entries: vec![
                Entry::configuration("etc/spile/fix.conf", b"OPTIONS=\n".to_vec()),
                Entry::file("usr/lib/modules/6.1.0/spile/fix.ko", 0o644, b"module".to_vec()),
            ],
            scripts: scripts("fix", true),
            time: 1_700_000_000,
        }
    }

    #[test]
    fn directories_come_once_and_from_above() {
        let all: Vec<String> = directories(&package().entries).into_iter().collect();
        assert_eq!(
            all,
            [
                "etc",
                "etc/spile",
                "usr",
                "usr/lib",
                "usr/lib/modules",
                "usr/lib/modules/6.1.0",
                "usr/lib/modules/6.1.0/spile"
            ]
        );
    }

    #[test]
    fn equal_input_gives_equal_bytes() {
        assert_eq!(deb::write(&package()).unwrap(), deb::write(&package()).unwrap());
        assert_eq!(rpm::write(&package()).unwrap(), rpm::write(&package()).unwrap());
    }
}
