// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask package`: packages of spile itself, a .deb and an .rpm of each. `spile-loader` is for hosts that run
//! prebuilt modules: one static program, its unit, its hooks. `spile` is the compiler, and depends on `spile-loader`.
//! `spile-staprun` and `spile-stap` install these two under the names of SystemTap's programs, replacing SystemTap's
//! packages.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use spile_package::{Entry, Kind, LOADER, Package, Scripts, copyright, deb, rpm};
use spile_syntax::LANGUAGE_VERSION;
use spilerun::staprun::STAPIO;

/// Files of the loader's package, from loader/system/: name there, destination, permissions.
const SYSTEM: [(&str, &str, u32); 8] = [
    ("spile@.service", "usr/lib/systemd/system/spile@.service", 0o644),
    ("spilerun.8", "usr/share/man/man8/spilerun.8", 0o644),
    ("kernel-install.sh", "usr/lib/kernel/install.d/95-spile.install", 0o755),
    ("postinst.d.sh", "etc/kernel/postinst.d/zz-spile", 0o755),
    ("initramfs-tools/hook", "usr/share/initramfs-tools/hooks/spile", 0o755),
    ("initramfs-tools/init-premount", "usr/share/initramfs-tools/scripts/init-premount/spile", 0o755),
    ("dracut/99spile/module-setup.sh", "usr/lib/dracut/modules.d/99spile/module-setup.sh", 0o755),
    ("dracut/99spile/start.sh", "usr/lib/dracut/modules.d/99spile/start.sh", 0o755),
];

const RELOAD: &str = "[ ! -d /run/systemd/system ] || systemctl daemon-reload || :\n";

/// The arguments of `cargo xtask package`.
#[derive(clap::Args)]
pub struct Options {
    /// Only the loader's
    #[arg(long)]
    loader: bool,
    /// Only those with SystemTap's names, into this directory
    #[arg(long, value_name = "DIR", conflicts_with = "loader")]
    names: Option<PathBuf>,
}

/// Writes the packages to the directory of the options.
pub fn run(options: &Options) -> Result<ExitCode> {
    let root = crate::root();
    let directory = options.names.clone().unwrap_or_else(|| root.join("target/packages"));
    std::fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
    let mut packages = Vec::new();
    if options.names.is_none() {
        packages.push(loader(&root)?);
    }
    if options.names.is_none() && !options.loader {
        packages.push(compiler(&root)?);
    }
    if !options.loader {
        packages.extend([staprun()?, stap(&root)?]);
    }
    for package in &packages {
        write(package, &directory)?.iter().for_each(|path| println!("{}", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Both formats; their paths, the .deb first.
pub fn write(package: &Package, directory: &Path) -> Result<Vec<PathBuf>> {
    let forms = [(deb::file_name(package), deb::write(package)), (rpm::file_name(package), rpm::write(package))];
    let mut paths = Vec::new();
    for (name, bytes) in forms {
        let path = directory.join(name);
        std::fs::write(&path, bytes.map_err(anyhow::Error::msg)?)
            .with_context(|| format!("writing {}", path.display()))?;
        paths.push(path);
    }
    Ok(paths)
}

/// The package of the loader.
pub fn loader(root: &Path) -> Result<Package> {
    let program = crate::static_loader::build(root)?;
    let mut entries = vec![program_entry(&program, "usr/sbin/spilerun")?];
    for (name, place, mode) in SYSTEM {
        let path = root.join("loader/system").join(name);
        let contents = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        entries.push(Entry::file(place, mode, contents));
    }
    let mut package = package(LOADER, "loads kernel modules that spile built", entries)?;
    package.description =
        "spilerun and the unit spile@.service: what a host needs to run prebuilt SystemTap scripts and\n\
                           workarounds. No compiler, no headers, no debug information."
            .to_string();
    package.scripts = Scripts { installed: RELOAD.to_string(), removing: String::new(), removed: RELOAD.to_string() };
    Ok(package)
}

fn compiler(root: &Path) -> Result<Package> {
    let status = Command::new(crate::programs::cargo())
        .args(["build", "--quiet", "--release", "--package", "spile"])
        .current_dir(root)
        .status()
        .context("running cargo build")?;
    ensure!(status.success(), "spile does not build");
    let program = root.join("target/release/spile");
    let manual = Command::new(&program).arg("--man-page").output().context("running spile --man-page")?;
    let completion =
        Command::new(&program).args(["--completion", "bash"]).output().context("running spile --completion")?;
    let mut entries = vec![
        program_entry(&program, "usr/bin/spile")?,
        Entry::file("usr/share/bash-completion/completions/spile", 0o644, completion.stdout),
        Entry::file("usr/share/man/man1/spile.1", 0o644, manual.stdout),
    ];
    entries.extend(editors(root)?);
    entries.extend(hooks(root)?);
    let mut package = package("spile", "compiles SystemTap scripts into kernel modules", entries)?;
    package.depends = vec![LOADER.to_string(), "gcc".to_string(), "make".to_string()];
    package.description = "Wants the headers of each kernel that scripts are compiled for, and its debug information for most\n\
                           of them: linux-headers-RELEASE and linux-image-RELEASE-dbg, or kernel-devel and kernel-debuginfo."
        .to_string();
    Ok(package)
}

/// Where Debian's packages of kernels and of their headers run what other packages have left there.
const HOOKS: [&str; 2] = ["etc/kernel/postinst.d/zz-spile-prepare", "etc/kernel/header_postinst.d/zz-spile-prepare"];

/// The hook that prepares new kernels (`spile --prepare`).
fn hooks(root: &Path) -> Result<[Entry; 2]> {
    let path = root.join("compiler/system/kernel-postinst.sh");
    let contents = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    Ok(HOOKS.map(|place| Entry::file(place, 0o755, contents.clone())))
}

/// Files for editors, below /usr/share/spile/editors; VS Code's extension as it is installed.
fn editors(root: &Path) -> Result<Vec<Entry>> {
    let place = |name: &str| format!("usr/share/spile/editors/{name}");
    let mut entries = Vec::new();
    for editor in ["vim", "emacs", "tree-sitter-systemtap"] {
        let top = root.join("editors");
        for path in files_below(&top.join(editor))? {
            let contents = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
            let name = path.strip_prefix(&top).unwrap_or(&path).to_string_lossy().into_owned();
            entries.push(Entry::file(&place(&name), 0o644, contents));
        }
    }
    let directory = tempfile::tempdir()?;
    let extension = crate::vsix::write(root, directory.path())?;
    let contents = std::fs::read(&extension).with_context(|| format!("reading {}", extension.display()))?;
    let name = extension.file_name().unwrap_or_default().to_string_lossy().into_owned();
    entries.push(Entry::file(&place(&name), 0o644, contents));
    Ok(entries)
}

/// All files below a directory, sorted.
fn files_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(directory).with_context(|| format!("reading {}", directory.display()))?;
    for entry in entries {
        let path = entry?.path();
        match path.is_dir() {
            true => found.extend(files_below(&path)?),
            false => found.push(path),
        }
    }
    found.sort();
    Ok(found)
}

/// `staprun`, for scripts and programs that start it, and the path of the process that they expect.
fn staprun() -> Result<Package> {
    let entries =
        vec![link("usr/bin/staprun", "../sbin/spilerun"), link(STAPIO.trim_start_matches('/'), "../../sbin/spilerun")];
    let mut package = package("spile-staprun", "spilerun under the name staprun", entries)?;
    package.depends = vec![LOADER.to_string()];
    package.stands_for = substitutions(&["systemtap-runtime"]);
    package.description =
        "For scripts and programs that start staprun. It runs modules that spile built, not SystemTap's.".to_string();
    Ok(package)
}

/// `stap` and its two helpers, for `#!/usr/bin/stap` and programs that drive it.
fn stap(root: &Path) -> Result<Package> {
    let script = |name: &str| program_entry(&root.join("compiler/system").join(name), &format!("usr/bin/{name}"));
    let entries = vec![link("usr/bin/stap", "spile"), script("stap-prep")?, script("stap-report")?];
    let mut package = package("spile-stap", "spile under the name stap", entries)?;
    package.depends = vec!["spile".to_string(), "spile-staprun".to_string()];
    // Debian has stap in the first, others in the last.
    package.stands_for = substitutions(&["systemtap", "systemtap-client", "systemtap-devel"]);
    package.description = "For scripts that begin with #!/usr/bin/stap, and for programs that drive stap.".to_string();
    Ok(package)
}

fn substitutions(names: &[&str]) -> Vec<(String, String)> {
    names.iter().map(|name| (name.to_string(), LANGUAGE_VERSION.to_string())).collect()
}

fn link(path: &str, target: &str) -> Entry {
    Entry { path: path.to_string(), kind: Kind::Link(target.to_string()) }
}

fn program_entry(path: &Path, place: &str) -> Result<Entry> {
    let contents = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    Ok(Entry::file(place, 0o755, contents))
}

fn package(name: &str, summary: &str, mut entries: Vec<Entry>) -> Result<Package> {
    entries.push(copyright(name, "spile compiles SystemTap scripts into kernel modules."));
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    let time = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse().ok());
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Ok(Package {
        name: name.to_string(),
        version: env!("CARGO_PKG_VERSION").to_string(),
        summary: summary.to_string(),
        description: String::new(),
        maintainer: "The spile project <root@localhost>".to_string(),
        depends: Vec::new(),
        stands_for: Vec::new(),
        entries,
        scripts: Scripts::default(),
        time: time.unwrap_or_else(now),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn editors_are_packaged() {
        let entries = editors(&crate::root()).expect("entries");
        let has = |name: &str| entries.iter().any(|entry| entry.path == format!("usr/share/spile/editors/{name}"));
        for name in [
            "vim/lua/spile.lua",
            "vim/syntax/systemtap.vim",
            "emacs/systemtap-mode.el",
            "tree-sitter-systemtap/src/parser.c",
        ] {
            assert!(has(name), "{name}");
        }
        assert!(has(concat!("spile-systemtap-", env!("CARGO_PKG_VERSION"), ".vsix")));
    }

    #[test]
    fn every_file_of_the_system_is_packaged() {
        fn files(directory: &Path, found: &mut Vec<PathBuf>) {
            for entry in std::fs::read_dir(directory).expect("a directory").flatten() {
                match entry.path().is_dir() {
                    true => files(&entry.path(), found),
                    false => found.push(entry.path()),
                }
            }
        }
        let top = crate::root().join("loader/system");
        let mut found = Vec::new();
        files(&top, &mut found);
        assert_eq!(found.len(), SYSTEM.len());
        assert!(SYSTEM.iter().all(|(name, ..)| found.contains(&top.join(name))));
    }
}
