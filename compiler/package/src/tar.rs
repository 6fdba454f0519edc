// SPDX-License-Identifier: GPL-2.0-or-later

//! Writes archives: tar (POSIX.1-2008, pax, "ustar Interchange Format") and ar (deb(5)).
//!
//! `ar` is written here, in 10 lines, instead of by the crate of that name: a package has three members with
//! fixed names, and the format is a line of text before each.

use tar::{Builder, EntryType, Header};

use super::content::{Entry, Kind, directories};

/// Writes entries with all their parent directories, owned by root, named `./PATH`. `time` is that of every entry, in
/// seconds since 1970. The archive contains nothing else of this host, so the same entries give the same bytes. The
/// error names a path that is too long for the format.
pub fn tar(entries: &[Entry], time: u64) -> Result<Vec<u8>, String> {
    let mut archive = Builder::new(Vec::new());
    let mut add = |name: String, kind: EntryType, mode: u32, contents: &[u8], target: Option<&str>| {
        let failed = |error| format!("{name}: {error}");
        let mut header = Header::new_ustar();
        set_path(&mut header, &name)?;
        if let Some(target) = target {
            header.set_link_name_literal(target).map_err(failed)?;
        }
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_username("root").and_then(|()| header.set_groupname("root")).map_err(failed)?;
        header.set_size(contents.len() as u64);
        header.set_mtime(time);
        header.set_cksum();
        archive.append(&header, contents).map_err(failed)
    };
    for directory in directories(entries) {
        add(format!("./{directory}/"), EntryType::Directory, 0o755, &[], None)?;
    }
    for entry in entries {
        let name = format!("./{}", entry.path);
        match &entry.kind {
            Kind::File { contents, mode, .. } => add(name, EntryType::Regular, *mode, contents, None)?,
            Kind::Link(target) => add(name, EntryType::Symlink, 0o777, &[], Some(target))?,
            // Already written above.
            Kind::Directory => {}
        }
    }
    archive.into_inner().map_err(|error| format!("writing an archive: {error}"))
}

/// Puts the name into the header unchanged: `Header::set_path` drops the `./` that dpkg's own archives have.
fn set_path(header: &mut Header, name: &str) -> Result<(), String> {
    let too_long = || format!("{name}: too long for a package");
    let header = header.as_ustar_mut().ok_or_else(too_long)?;
    // A longer name is divided at a slash, which neither part has.
    let (prefix, rest) = match name.len() <= header.name.len() {
        true => ("", name),
        false => {
            let mut slashes = name.match_indices('/').map(|(at, _)| at);
            let at = slashes.find(|at| name.len() - at - 1 <= header.name.len()).ok_or_else(too_long)?;
            (
                name.get(..at).ok_or_else(too_long)?,
                name.get(at + 1..).filter(|rest| !rest.is_empty()).ok_or_else(too_long)?,
            )
        }
    };
    header.name.get_mut(..rest.len()).ok_or_else(too_long)?.copy_from_slice(rest.as_bytes());
    header.prefix.get_mut(..prefix.len()).ok_or_else(too_long)?.copy_from_slice(prefix.as_bytes());
    Ok(())
}

/// Members by name; names are at most 16 bytes.
pub fn ar(members: &[(&str, &[u8])], time: u64) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, contents) in members {
        bytes.extend(format!("{name:<16}{time:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 100_644, contents.len()).bytes());
        bytes.extend_from_slice(contents);
        // Each member starts at an even offset.
        if contents.len() % 2 == 1 {
            bytes.push(b'\n');
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tar_itself_reads_it() {
        let file = Entry::file("usr/lib/x", 0o640, b"text\n".to_vec());
        let link = Entry { path: "usr/y".into(), kind: Kind::Link("lib/x".into()) };
        let bytes = tar(&[file, link], 86_400).unwrap();
        assert_eq!(bytes.len() % 512, 0);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.tar");
        std::fs::write(&path, bytes).unwrap();
        let output = std::process::Command::new("tar").args(["--utc", "-tvf"]).arg(&path).output().unwrap();
        let listing = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let lines: Vec<&str> = listing.lines().collect();
        assert_eq!(lines.len(), 4, "{listing}");
        assert!(
            lines[2].starts_with("-rw-r----- root/root") && lines[2].ends_with("5 1970-01-02 00:00 ./usr/lib/x"),
            "{listing}"
        );
        assert!(lines[3].ends_with("./usr/y -> lib/x"), "{listing}");
        let name = format!("usr/{}/{}", "long/".repeat(20), "x".repeat(90));
        std::fs::write(&path, tar(&[Entry::file(&name.replace("//", "/"), 0o644, Vec::new())], 0).unwrap()).unwrap();
        let output = std::process::Command::new("tar").arg("-tf").arg(&path).output().unwrap();
        let listing = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(listing.ends_with(&format!("./{}\n", name.replace("//", "/"))), "{listing}");
        let long = tar(&[Entry::file(&"x".repeat(101), 0o644, Vec::new())], 0);
        assert!(long.unwrap_err().ends_with("too long for a package"));
    }

    #[test]
    fn members_of_ar_begin_at_even_places() {
        let bytes = ar(&[("a", b"1"), ("b", b"22")], 0);
        let text = String::from_utf8(bytes).unwrap();
        assert!(
            text.starts_with("!<arch>\na               0           0     0     100644  1         `\n1\nb   "),
            "{text}"
        );
    }
}
