// SPDX-License-Identifier: GPL-2.0-or-later

//! What can keep a guest from running.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug)]
pub enum Error {
    /// A program or file that a guest is made of is not installed.
    Missing {
        what: &'static str,
        looked: Vec<PathBuf>,
        package: String,
    },
    /// No kernel of this release, or none at all, is installed as a whole; with what is there.
    NoKernel {
        wanted: Option<String>,
        lacking: Vec<(String, &'static str)>,
    },
    /// A kernel module that was asked for, or that it depends on, is not in the release's directory.
    NoModule {
        name: String,
        release: String,
    },
    /// A shared library that a program needs was found in none of the loader's directories.
    NoLibrary {
        name: String,
        program: PathBuf,
    },
    File {
        doing: &'static str,
        path: PathBuf,
        error: io::Error,
    },
    /// qemu ended before the guest could be spoken to; with what it said.
    Start {
        said: String,
    },
    /// The guest did not reach its script within this time; with the end of its console.
    Boot {
        limit: Duration,
        console: String,
    },
}

impl Error {
    pub(super) fn file(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |error| Error::File { doing, path, error }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Error::Missing { what, looked, package } => {
                write!(f, "no {what} for the guest; looked at ")?;
                for (index, path) in looked.iter().enumerate() {
                    write!(f, "{}{}", if index > 0 { ", " } else { "" }, path.display())?;
                }
                write!(f, "; try: apt-get install {package}")
            }
            Error::NoKernel { wanted: Some(release), lacking } => {
                write!(f, "kernel {release} is not installed completely")?;
                lacks(f, lacking)?;
                write!(
                    f,
                    "; try: apt-get install linux-image-{release} linux-headers-{release} linux-image-{release}-dbg"
                )
            }
            Error::NoKernel { wanted: None, lacking } => {
                write!(f, "no kernel with image, headers and debug information is installed for the guest")?;
                lacks(f, lacking)?;
                write!(
                    f,
                    "; try: apt-get install linux-image-cloud-amd64 linux-headers-cloud-amd64 linux-image-cloud-amd64-dbg"
                )
            }
            Error::NoModule { name, release } => {
                write!(f, "there is no module {name} in /lib/modules/{release}")
            }
            Error::NoLibrary { name, program } => {
                write!(
                    f,
                    "{} needs the shared library {name}, which is in none of the directories of ld.so",
                    program.display()
                )
            }
            Error::File { doing, path, error } => write!(f, "{doing} {}: {error}", path.display()),
            Error::Start { said } => write!(f, "qemu did not start: {}", said.trim()),
            Error::Boot { limit, console } => {
                let shown: Vec<&str> = console.lines().rev().take(15).collect();
                write!(f, "the guest did not come up within {} s", limit.as_secs())?;
                shown.iter().rev().try_for_each(|line| write!(f, "\n  {line}"))
            }
        }
    }
}

fn lacks(f: &mut fmt::Formatter, lacking: &[(String, &'static str)]) -> fmt::Result {
    lacking.iter().try_for_each(|(release, what)| write!(f, "; {release} lacks its {what}"))
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::File { error, .. } => Some(error),
            _ => None,
        }
    }
}
