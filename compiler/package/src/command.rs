// SPDX-License-Identifier: GPL-2.0-or-later

//! `spile package`: its options, and the content of a package for a workaround's modules.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::UNIX_EPOCH;

use clap::{Parser, ValueEnum};
use spile_base::unfinished::NewFile;
use spilerun::file::File;

use super::content::{Entry, LOADER, Package, Scripts, copyright};
use super::{deb, rpm};

/// Package formats.
#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Deb,
    Rpm,
}

/// Makes packages of a workaround: its modules, its configuration and a service
#[derive(Parser)]
#[command(name = "spile package", bin_name = "spile package")]
struct Arguments {
    /// The module's name (spile -m NAME)
    name: String,
    /// Its modules, one for each kernel
    #[arg(required = true, value_name = "FILE.ko")]
    modules: Vec<PathBuf>,
    /// Version of the package
    #[arg(long, value_name = "VERSION", default_value = "1.0")]
    set_version: String,
    /// Formats of the packages
    #[arg(long, value_name = "FORMAT", value_delimiter = ',', default_value = "deb,rpm")]
    format: Vec<Format>,
    /// Output directory
    #[arg(long, value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// Installed as /etc/spile/NAME.conf; default: one that changes nothing
    #[arg(long, value_name = "FILE")]
    conf: Option<PathBuf>,
    /// Start it only after this unit
    #[arg(long, value_name = "UNIT")]
    after: Vec<String>,
    /// Start it before this unit, such as mnt-data.mount
    #[arg(long, value_name = "UNIT")]
    before: Vec<String>,
    /// One-line description
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
    /// Maintainer field of the packages
    #[arg(long, value_name = "NAME <ADDRESS>", default_value = "root <root@localhost>")]
    maintainer: String,
    /// Install the files only; enable the service later with spilerun service enable NAME
    #[arg(long)]
    no_enable: bool,
}

/// Runs `spile package`; `arguments` start with the program's name.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let words: Vec<OsString> = arguments.into_iter().collect();
    let arguments = match Arguments::try_parse_from(&words) {
        Ok(arguments) => arguments,
        Err(message) => {
            let status = ExitCode::from(u8::from(message.use_stderr()));
            // It quotes the escaped words: a line end in one would begin a line of its own.
            let shown = words.iter().map(|word| spile_abi::escape::bytes(word.as_bytes()));
            // A closed terminal is ignored.
            match Arguments::try_parse_from(shown).err().filter(|shown| shown.kind() == message.kind()) {
                Some(shown) => drop(shown.print()),
                None if message.use_stderr() => {
                    spile_abi::say::say(&format!("{}\n", spile_abi::escape::line(&message.to_string())));
                }
                None => drop(message.print()),
            }
            return status;
        }
    };
    match make(&arguments) {
        Ok(paths) => {
            let lines: String = paths.iter().map(|path| format!("{}\n", path.display())).collect();
            let _ = std::io::stdout().write_all(lines.as_bytes());
            ExitCode::SUCCESS
        }
        Err(why) => {
            spile_abi::say::say(&format!("ERROR: {}\n", spile_abi::escape::line(&why)));
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
        // A device or a pipe may be endless.
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
            return Err(format!("{option}: expected one line of text"));
        }
    }
    if !arguments.directory.is_dir() {
        return Err(format!("--directory {}: there is no such directory", arguments.directory.display()));
    }
    let package = workaround(arguments, &files, conf)?;
    let mut paths = Vec::new();
    for format in &arguments.format {
        let (name, bytes) = match format {
            Format::Deb => (deb::file_name(&package), deb::write(&package)?),
            Format::Rpm => (rpm::file_name(&package), rpm::write(&package)?),
        };
        let path = arguments.directory.join(name);
        write_whole(&path, &bytes).map_err(|error| format!("writing {}: {error}", path.display()))?;
        paths.push(path);
    }
    Ok(paths)
}

/// Removes a package that could not be written completely.
fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = NewFile::in_directory(directory, ".spile")?;
    file.file().write_all(bytes)?;
    file.file().set_permissions(fs::Permissions::from_mode(0o644))?;
    file.persist(path)
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
        // Neither format allows `_` in package names.
        name: package,
        version: arguments.set_version.clone(),
        summary: arguments.summary.clone().unwrap_or_else(|| format!("Kernel workaround {name}")),
        description: format!("{title}{guru}.\nService spile@{name}, for the kernels\n{kernels}"),
        maintainer: arguments.maintainer.clone(),
        depends: vec![LOADER.to_string()],
        stands_for: Vec::new(),
        entries,
        scripts: scripts(name, !arguments.no_enable),
        time: time(&arguments.modules)?,
    })
}

/// If the service does not start, report it but do not fail: the package manager would undo more than this. It is enabled
/// when the package is installed, and not again by an upgrade: it may have been disabled because it did harm. dpkg does not
/// tell a first installation from one after a removal, so a file does; upgrades from packages without it enable the service.
pub(crate) fn scripts(name: &str, enable: bool) -> Scripts {
    let unit = format!("spile@{name}.service");
    let reload = "[ ! -d /run/systemd/system ] || systemctl daemon-reload || :\n";
    // In an image of a system, another kernel runs, and there may be no service manager.
    let mut installed = format!("{reload}[ ! -d /run/systemd/system ] || spilerun service check || :\n");
    let mark = format!("/var/lib/spile/{name}.enabled");
    if enable {
        installed.push_str(&format!(
            "how=try-restart\n\
             ! systemctl -q is-failed {unit} || ! systemctl -q is-enabled {unit} || how=restart\n\
             if [ ! -e {mark} ]; then\n\
             \thow=restart\n\
             \tmkdir -p /var/lib/spile && : >{mark} || :\n\
             \t! command -v systemctl >/dev/null || systemctl enable {unit} || :\n\
             fi\n\
             [ ! -d /run/systemd/system ] || systemctl $how {unit} ||\n\
             \techo \"{unit} does not run: spilerun service status {name}\" >&2\n"
        ));
    }
    let early = early(name);
    installed.push_str(&format!("! {early} || {{\n{RENEW}}}\n"));
    let noted = format!("/var/lib/spile/{name}.early");
    Scripts {
        installed,
        // In a changed root directory the session is another system's. rpm removes the files before the last script runs: the name is not reserved for the service any more then, and users
        // could start what the service itself fetched or built.
        removing: format!(
            "! command -v systemctl >/dev/null || systemctl disable {unit} || :\n\
             [ ! -d /run/systemd/system ] || systemctl stop {unit} || :\n\
             [ ! / -ef /proc/1/root/. ] || spilerun -d {name} 2>/dev/null || :\n\
             ! {early} || {{ mkdir -p /var/lib/spile && : >{noted}; }} || :\n\
             rm -f {mark} /usr/lib/modules/*/spile/{name}.ko\n"
        ),
        // What the service fetched or built meanwhile; an upgrade leaves it. dpkg passes the words, rpm the number.
        removed: format!(
            "case \"$1\" in remove | purge | 0)\n\trm -f /usr/lib/modules/*/spile/{name}.ko\n\t\
             rmdir --ignore-fail-on-non-empty /usr/lib/modules/*/spile 2>/dev/null || :\n\
             \t[ ! -e {noted} ] || {{\n\trm -f {noted}\n{RENEW}\t}}\n\
             \t[ ! -d /var/lib/spile ] || rmdir --ignore-fail-on-non-empty /var/lib/spile || :\nesac\n{reload}"
        ),
    }
}

/// A command that is true if the service is started in the initramfs, which then has copies of its files.
fn early(name: &str) -> String {
    format!("grep -qs '^[[:space:]]*EARLY[[:space:]]*=[[:space:]]*yes' /etc/spile/{name}.conf")
}

/// Makes the initramfs of all kernels again.
const RENEW: &str = "\tif command -v update-initramfs >/dev/null; then\n\t\tupdate-initramfs -u -k all || :\n\
                     \telif command -v dracut >/dev/null; then\n\t\tdracut --force --regenerate-all || :\n\tfi\n";

/// SOURCE_DATE_EPOCH, or the time of the newest module.
fn time(modules: &[PathBuf]) -> Result<u64, String> {
    if let Some(text) = std::env::var_os("SOURCE_DATE_EPOCH") {
        return given_time(&text.to_string_lossy());
    }
    let made = |path: &Path| Some(path.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_secs());
    Ok(modules.iter().filter_map(|path| made(path)).max().unwrap_or(0))
}

/// The packages have 32 bits (rpm), 11 octal (tar) and 12 decimal digits (ar) for it.
fn given_time(text: &str) -> Result<u64, String> {
    let seconds = text.parse::<u32>().map(u64::from);
    seconds.map_err(|_| format!("SOURCE_DATE_EPOCH={text}: expected seconds since 1970, up to {}", u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_fit_into_packages() {
        assert_eq!(given_time("86400"), Ok(86_400));
        for text in ["", "x", "-1", "4294967296", "9999999999999"] {
            assert!(given_time(text).unwrap_err().contains("SOURCE_DATE_EPOCH"), "{text}");
        }
    }

    #[test]
    fn wrong_command_lines_are_refused() {
        let line = |line: &str| Arguments::try_parse_from(line.split(' ')).map(|arguments| make(&arguments));
        assert!(line("package fix").is_err() && line("package fix a.ko --format tar").is_err());
        assert!(line("package fix a.ko --set-version v1").unwrap().unwrap_err().contains("--set-version"));
        assert!(line("package fix ./none.ko").unwrap().is_err());
    }
}
