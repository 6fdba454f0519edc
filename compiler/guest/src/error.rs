// SPDX-License-Identifier: GPL-2.0-or-later

//! Errors of starting and running a guest.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a guest did not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program or file that a guest needs is not installed.
    #[error("no {what} for the guest; looked at {}; try: apt-get install {package}", listed(looked))]
    Missing {
        /// The program or file.
        what: &'static str,
        /// The paths that were searched.
        looked: Vec<PathBuf>,
        /// The package that contains it.
        package: String,
    },
    /// No kernel of this release, or no kernel at all, is completely installed.
    #[error("{}", no_kernel(wanted.as_deref(), lacking))]
    NoKernel {
        /// The release; None: any.
        wanted: Option<String>,
        /// Installed releases, and what each lacks.
        lacking: Vec<(String, &'static str)>,
    },
    /// A requested kernel module, or a dependency of one, is not in the release's directory.
    #[error("there is no module {name} in /lib/modules/{release}")]
    NoModule {
        /// The module.
        name: String,
        /// The kernel's release.
        release: String,
    },
    /// A shared library that a program needs is in none of the directories of ld.so.
    #[error("{} needs the shared library {name}, which is in none of the directories of ld.so", program.display())]
    NoLibrary {
        /// The library.
        name: String,
        /// The program.
        program: PathBuf,
    },
    /// A file could not be read or written.
    #[error("{doing} {}: {error}", path.display())]
    File {
        /// `reading`, for instance.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        error: io::Error,
    },
    /// qemu exited before the guest could be reached.
    #[error("qemu did not start: {}", messages.trim())]
    Start {
        /// Its messages.
        messages: String,
    },
    /// The guest did not start its script within this time.
    #[error("the guest did not boot within {} s{}", limit.as_secs(), end_of(console))]
    Boot {
        /// The time limit.
        limit: Duration,
        /// The end of its console.
        console: String,
    },
}

impl Error {
    /// For `map_err`: the error of an operation on a file.
    pub(super) fn file(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |error| Error::File { doing, path, error }
    }
}

fn listed(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| Path::display(path).to_string()).collect::<Vec<_>>().join(", ")
}

fn no_kernel(wanted: Option<&str>, lacking: &[(String, &'static str)]) -> String {
    let lacking: String = lacking.iter().map(|(release, what)| format!("; {release} lacks its {what}")).collect();
    match wanted {
        Some(release) => format!(
            "kernel {release} is not installed completely{lacking}; try: apt-get install linux-image-{release} linux-headers-{release} linux-image-{release}-dbg"
        ),
        None => format!(
            "no kernel with image, headers and debug information is installed for the guest{lacking}; try: apt-get install linux-image-cloud-amd64 linux-headers-cloud-amd64 linux-image-cloud-amd64-dbg"
        ),
    }
}

/// The last lines of a console, each on its own line, after a newline.
fn end_of(console: &str) -> String {
    let lines: Vec<&str> = console.lines().rev().take(15).collect();
    lines.iter().rev().map(|line| format!("\n  {line}")).collect()
}
