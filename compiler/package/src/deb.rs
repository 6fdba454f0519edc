// SPDX-License-Identifier: GPL-2.0-or-later

//! Packages for Debian and derivatives: deb(5), deb-control(5), Debian Policy 5.3 and 6.

use std::fmt::Write as _;

use super::content::{Entry, Kind, Package, gzip};
use super::tar;

/// Whether a version is valid (Policy 5.6.12, without epochs).
pub fn is_version(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".+~".contains(&byte))
}

/// `NAME_VERSION-1_amd64.deb`
pub fn file_name(package: &Package) -> String {
    format!("{}_{}-1_amd64.deb", package.name, package.version)
}

/// The whole file.
pub fn write(package: &Package) -> Result<Vec<u8>, String> {
    let mut control = vec![Entry::file("control", 0o644, control(package).into_bytes())];
    let conffiles = conffiles(package);
    if !conffiles.is_empty() {
        control.push(Entry::file("conffiles", 0o644, conffiles.into_bytes()));
    }
    let scripts =
        [("postinst", "configure", &package.scripts.installed), ("prerm", "remove", &package.scripts.removing)];
    for (name, when, commands) in scripts.iter().filter(|(.., commands)| !commands.is_empty()) {
        let text = format!("#!/bin/sh\nset -e\n[ \"$1\" = {when} ] || exit 0\n{commands}");
        control.push(Entry::file(name, 0o755, text.into_bytes()));
    }
    let after = &package.scripts.removed;
    if !after.is_empty() {
        control.push(Entry::file("postrm", 0o755, format!("#!/bin/sh\nset -e\n{after}").into_bytes()));
    }
    let control = gzip(&tar::tar(&control, package.time)?)?;
    let data = gzip(&tar::tar(&package.entries, package.time)?)?;
    let members = [("debian-binary", &b"2.0\n"[..]), ("control.tar.gz", &control), ("data.tar.gz", &data)];
    Ok(tar::ar(&members, package.time))
}

fn control(package: &Package) -> String {
    let bytes: usize = package.entries.iter().map(Entry::bytes).sum();
    let mut text = format!(
        "Package: {}\nVersion: {}-1\nArchitecture: amd64\nMaintainer: {}\nInstalled-Size: {}\nSection: admin\nPriority: optional\n",
        package.name,
        package.version,
        package.maintainer,
        bytes.div_ceil(1024)
    );
    if !package.depends.is_empty() {
        let _ = writeln!(text, "Depends: {}", package.depends.join(", "));
    }
    if !package.stands_for.is_empty() {
        let provided: Vec<String> =
            package.stands_for.iter().map(|(name, version)| format!("{name} (= {version})")).collect();
        let names: Vec<&str> = package.stands_for.iter().map(|(name, _)| name.as_str()).collect();
        // Policy 7.6.2: all three together make it replace the others.
        let _ = writeln!(
            text,
            "Provides: {}\nConflicts: {names}\nReplaces: {names}",
            provided.join(", "),
            names = names.join(", ")
        );
    }
    let _ = writeln!(text, "Description: {}", package.summary);
    for line in package.description.lines() {
        let _ = writeln!(text, " {}", if line.is_empty() { "." } else { line });
    }
    text
}

fn conffiles(package: &Package) -> String {
    let is_configuration = |entry: &&Entry| matches!(entry.kind, Kind::File { configuration: true, .. });
    package.entries.iter().filter(is_configuration).map(|entry| format!("/{}\n", entry.path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dpkg_itself_reads_it() {
        let package = crate::tests::package();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(file_name(&package));
        assert!(path.ends_with("spile-fix_1.2-1_amd64.deb"));
        std::fs::write(&path, write(&package).unwrap()).unwrap();
        let dpkg = |option: &str| {
            let output = std::process::Command::new("dpkg-deb").arg(option).arg(&path).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let info = dpkg("--info");
        for line in [
            "Package: spile-fix",
            "Depends: spile-loader",
            "Provides: other-fix (= 2.0)",
            "Conflicts: other-fix",
            "Replaces: other-fix",
            "Description: Keeps things going",
            "postinst",
            "conffiles",
        ] {
            assert!(info.contains(line), "{line}: {info}");
        }
        let contents = dpkg("--contents");
        assert!(
            contents.contains("./usr/lib/modules/6.1.0/spile/fix.ko") && contents.contains("root/root"),
            "{contents}"
        );
    }

    #[test]
    fn versions() {
        assert!(
            is_version("1.2~rc1+x") && !is_version("") && !is_version("v1") && !is_version("1-2") && !is_version("1 2")
        );
    }
}
