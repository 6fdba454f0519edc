// SPDX-License-Identifier: GPL-2.0-or-later

//! `spile package NAME FILE.ko...`: a prebuilt workaround, for one or more kernels, as packages for Debian's and Red Hat's
//! distributions; and what such a package is made of, for spile's own ([`Package`], [`deb`], [`rpm`]).
//!
//! A package holds `/usr/lib/modules/RELEASE/spile/NAME.ko` for each kernel and `/etc/spile/NAME.conf`, and wants the
//! package `spile-loader`, which has spilerun and the unit `spile@.service`. Installed, it enables `spile@NAME.service` and
//! starts it; removed, it stops it and the behaviour of before is back. Equal input gives equal bytes.

#![warn(missing_docs)]

pub mod deb;
pub mod rpm;
mod tar;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::UNIX_EPOCH;

use clap::Parser;
use flate2::{Compression, GzBuilder};
use spilerun::file::File;

/// The package that has the loader.
pub const LOADER: &str = "spile-loader";

/// What one package is.
#[derive(Clone, Debug)]
pub struct Package {
    /// The package's name.
    pub name: String,
    /// Its version, without a revision of the package.
    pub version: String,
    /// One line, no full stop.
    pub summary: String,
    /// What it is, in several lines.
    pub description: String,
    /// `NAME <ADDRESS>` of whoever made it.
    pub maintainer: String,
    /// Names of packages.
    pub depends: Vec<String>,
    /// Other packages that it takes the place of, with their version: it has files of the same names.
    pub stands_for: Vec<(String, String)>,
    /// Sorted by path.
    pub entries: Vec<Entry>,
    /// What the package manager runs.
    pub scripts: Scripts,
    /// Of its files; seconds since 1970.
    pub time: u64,
}

/// Shell commands that the package manager runs as root; empty: none.
#[derive(Clone, Debug, Default)]
pub struct Scripts {
    /// After it was installed, or another version of it.
    pub installed: String,
    /// Before it goes; not when another version comes.
    pub removing: String,
    /// After its files have gone, or another version has come.
    pub removed: String,
}

/// A file of root's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Without a leading slash.
    pub path: String,
    /// What it is.
    pub kind: Kind,
}

/// What an entry of a package can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File {
        /// Its bytes.
        contents: Vec<u8>,
        /// Permission bits.
        mode: u32,
        /// A file whose changes by the administrator are kept.
        configuration: bool,
    },
    /// To this path.
    Link(String),
    /// One of the package's own: it goes with it, if nothing else is in it. Archives of tar have all of them anyway.
    Directory,
}

impl Entry {
    /// A file with these permission bits.
    pub fn file(path: &str, mode: u32, contents: Vec<u8>) -> Entry {
        Entry { path: path.to_string(), kind: Kind::File { contents, mode, configuration: false } }
    }

    /// A configuration file.
    pub fn configuration(path: &str, contents: Vec<u8>) -> Entry {
        Entry { path: path.to_string(), kind: Kind::File { contents, mode: 0o644, configuration: true } }
    }

    fn bytes(&self) -> usize {
        match &self.kind {
            Kind::File { contents, .. } => contents.len(),
            Kind::Link(target) => target.len(),
            Kind::Directory => 0,
        }
    }

    fn link(&self) -> Option<&str> {
        match &self.kind {
            Kind::File { .. } | Kind::Directory => None,
            Kind::Link(target) => Some(target),
        }
    }
}

/// All directories above the entries, those above first.
fn directories(entries: &[Entry]) -> BTreeSet<String> {
    let above = |path: &str| path.match_indices('/').map(|(at, _)| path.split_at(at).0.to_string()).collect::<Vec<_>>();
    entries.iter().flat_map(|entry| above(&entry.path)).collect()
}

/// The entries with those directories that are there for spile alone, sorted. (rpm removes no others with a package; dpkg
/// removes what has become empty.)
fn with_own_directories(entries: &[Entry]) -> Vec<Entry> {
    let is_own = |path: &String| path.rsplit('/').next().is_some_and(|name| name.contains("spile"));
    let own = directories(entries).into_iter().filter(is_own).map(|path| Entry { path, kind: Kind::Directory });
    let mut all: Vec<Entry> = entries.iter().cloned().chain(own).collect();
    all.sort_by(|one, other| one.path.cmp(&other.path));
    all
}

/// Without name and time, so that equal contents give equal bytes.
fn gzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(|error| format!("compressing: {error}"))
}

/// Makes packages of a workaround: its modules, its configuration, and commands that make it a service
#[derive(Parser)]
#[command(name = "spile package", bin_name = "spile package")]
struct Arguments {
    /// The module's name (spile -m NAME)
    name: String,
    /// Its modules, one for each kernel
    #[arg(required = true, value_name = "FILE.ko")]
    modules: Vec<PathBuf>,
    /// Of the package
    #[arg(long, value_name = "VERSION", default_value = "1.0")]
    set_version: String,
    /// Which packages to make
    #[arg(long, value_name = "FORMAT", value_delimiter = ',', value_parser = ["deb", "rpm"], default_value = "deb,rpm")]
    format: Vec<String>,
    /// Where to put them
    #[arg(long, value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// /etc/spile/NAME.conf; without it one that changes nothing
    #[arg(long, value_name = "FILE")]
    conf: Option<PathBuf>,
    /// Start it only after this unit
    #[arg(long, value_name = "UNIT")]
    after: Vec<String>,
    /// Start it before this unit: what it works around, mnt-data.mount for instance
    #[arg(long, value_name = "UNIT")]
    before: Vec<String>,
    /// What it is, in a line
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
    #[arg(long, value_name = "NAME <ADDRESS>", default_value = "root <root@localhost>")]
    maintainer: String,
    /// Only put the files there: spilerun service enable NAME is for whoever installs it
    #[arg(long)]
    no_enable: bool,
}

/// The whole of `spile package`; `arguments` begin with a name of the program.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(told) => {
            // A closed terminal is nobody's concern.
            let _ = told.print();
            return ExitCode::from(u8::from(told.use_stderr()));
        }
    };
    match make(&arguments) {
        Ok(paths) => {
            let lines: String = paths.iter().map(|path| format!("{}\n", path.display())).collect();
            let _ = std::io::stdout().write_all(lines.as_bytes());
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("ERROR: {}", spile_abi::escape::lines(&why));
            ExitCode::FAILURE
        }
    }
}

fn make(arguments: &Arguments) -> Result<Vec<PathBuf>, String> {
    if !deb::is_version(&arguments.set_version) {
        return Err(format!(
            "--set-version {}: a version is digits, letters and .+~, a digit first",
            arguments.set_version
        ));
    }
    let files = arguments.modules.iter().map(|path| File::find(path).map_err(|error| error.to_string()));
    let files = files.collect::<Result<Vec<File>, String>>()?;
    let conf = match &arguments.conf {
        // A device or a pipe may have no end.
        Some(path) if path.exists() && !path.is_file() => {
            return Err(format!("reading {}: it is no regular file", path.display()));
        }
        Some(path) => fs::read_to_string(path).map_err(|error| format!("reading {}: {error}", path.display()))?,
        None => spilerun::conf::default(&arguments.name),
    };
    check_configuration(&conf, &files).map_err(|why| match &arguments.conf {
        Some(path) => format!("{}: {why}", path.display()),
        None => why,
    })?;
    for (option, text) in
        [("--summary", arguments.summary.as_deref()), ("--maintainer", Some(arguments.maintainer.as_str()))]
    {
        if text.is_some_and(|text| text.trim().is_empty() || text.chars().any(char::is_control)) {
            return Err(format!("{option}: one line of text is wanted"));
        }
    }
    if !arguments.directory.is_dir() {
        return Err(format!("--directory {}: there is no such directory", arguments.directory.display()));
    }
    let package = workaround(arguments, &files, conf)?;
    let mut paths = Vec::new();
    for format in &arguments.format {
        let (name, bytes) = match format.as_str() {
            "rpm" => (rpm::file_name(&package), rpm::write(&package)?),
            _ => (deb::file_name(&package), deb::write(&package)?),
        };
        let path = arguments.directory.join(name);
        write_whole(&path, &bytes).map_err(|error| format!("writing {}: {error}", path.display()))?;
        paths.push(path);
    }
    Ok(paths)
}

/// Nothing is left of a package for which there is no room.
fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o644)).tempfile_in(directory)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

fn check_configuration(text: &str, files: &[File]) -> Result<(), String> {
    let conf = spilerun::conf::parse(text)?;
    files.iter().try_for_each(|file| conf.suits(&file.description.meta))
}

fn workaround(arguments: &Arguments, files: &[File], conf: String) -> Result<Package, String> {
    let name = &arguments.name;
    let mut entries = vec![Entry::configuration(&format!("etc/spile/{name}.conf"), conf.into_bytes())];
    let mut releases = BTreeSet::new();
    for file in files {
        let meta = &file.description.meta;
        if &meta.name != name {
            return Err(format!("{} is called {}: build it with spile -m {name}", file.path.display(), meta.name));
        }
        let release = &meta.kernel_release;
        if release.is_empty() || !releases.insert(release.clone()) {
            return Err(format!("{}: another one of these is for kernel {release} too", file.path.display()));
        }
        entries.push(Entry::file(&format!("usr/lib/modules/{release}/spile/{name}.ko"), 0o644, file.image.clone()));
    }
    if let Some(text) = spilerun::service::order(&arguments.after, &arguments.before)? {
        entries.push(Entry::file(
            &format!("usr/lib/systemd/system/spile@{name}.service.d/order.conf"),
            0o644,
            text.into_bytes(),
        ));
    }
    let package = format!("spile-{}", name.replace('_', "-").to_lowercase());
    entries.push(copyright(
        &package,
        &format!("The module holds the runtime of spile, and the script {name} of whoever made this package."),
    ));
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    let guru = if files.iter().any(|file| file.description.meta.guru) { ", which may write kernel memory" } else { "" };
    let title = files.first().map_or("", |file| &file.description.meta.title);
    let title: String = title.chars().filter(|letter| !letter.is_control()).collect();
    let kernels: String = releases.iter().map(|release| format!("  {release}\n")).collect();
    Ok(Package {
        // Neither kind of package has room for `_` in names.
        name: package,
        version: arguments.set_version.clone(),
        summary: arguments.summary.clone().unwrap_or_else(|| format!("Kernel workaround {name}")),
        description: format!("{title}{guru}.\nService spile@{name}, for the kernels\n{kernels}"),
        maintainer: arguments.maintainer.clone(),
        depends: vec![LOADER.to_string()],
        stands_for: Vec::new(),
        entries,
        scripts: scripts(name, !arguments.no_enable),
        time: time(&arguments.modules),
    })
}

/// What Debian Policy 12.5 wants; Red Hat's tools take it for documentation.
pub fn copyright(package: &str, what: &str) -> Entry {
    let text = format!(
        "{what}\n\nspile is free software under the terms of the GNU General Public License, version 2\nor (at your option) any later version (GPL-2.0-or-later). On Debian systems its text\nis in /usr/share/common-licenses/GPL-2.\n"
    );
    Entry::file(&format!("usr/share/doc/{package}/copyright"), 0o644, text.into_bytes())
}

/// A service that does not start is told and is no failure of the package manager, who would leave more than this undone.
fn scripts(name: &str, enable: bool) -> Scripts {
    let unit = format!("spile@{name}.service");
    let reload = "[ ! -d /run/systemd/system ] || systemctl daemon-reload || :\n";
    // In an image of a system another kernel runs, and perhaps there is no service manager.
    let mut installed = format!("{reload}[ ! -d /run/systemd/system ] || spilerun service check || :\n");
    if enable {
        installed.push_str(&format!(
            "! command -v systemctl >/dev/null || systemctl enable {unit} || :\n\
             [ ! -d /run/systemd/system ] || systemctl restart {unit} ||\n\
             \techo \"{unit} does not run: spilerun service status {name}\" >&2\n"
        ));
    }
    Scripts {
        installed,
        removing: format!(
            "! command -v systemctl >/dev/null || systemctl disable {unit} || :\n[ ! -d /run/systemd/system ] || systemctl stop {unit} || :\nspilerun -d {name} 2>/dev/null || :\n"
        ),
        // What the service itself has fetched or had built; an upgrade leaves it. dpkg says the words, rpm the number.
        removed: format!(
            "{reload}case \"$1\" in remove | purge | 0)\n\trm -f /usr/lib/modules/*/spile/{name}.ko\n\t\
             rmdir --ignore-fail-on-non-empty /usr/lib/modules/*/spile 2>/dev/null || :\nesac\n"
        ),
    }
}

/// SOURCE_DATE_EPOCH, or when the newest of the modules was made.
fn time(modules: &[PathBuf]) -> u64 {
    let given = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse().ok());
    let made = |path: &Path| Some(path.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_secs());
    given.unwrap_or_else(|| modules.iter().filter_map(|path| made(path)).max().unwrap_or(0))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

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

    #[test]
    fn wrong_command_lines_are_told() {
        let line = |line: &str| Arguments::try_parse_from(line.split(' ')).map(|arguments| make(&arguments));
        assert!(line("package fix").is_err() && line("package fix a.ko --format tar").is_err());
        assert!(line("package fix a.ko --set-version v1").unwrap().unwrap_err().contains("--set-version"));
        assert!(line("package fix ./none.ko").unwrap().is_err());
    }
}
