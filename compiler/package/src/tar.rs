// SPDX-License-Identifier: GPL-2.0-or-later

//! Writes archives in the form of tar (POSIX.1-2008, pax, "ustar Interchange Format") and ar (deb(5)).

use super::{Entry, Kind};

const BLOCK: usize = 512;

/// Entries with all the directories above them, owned by root, named `./PATH`. `time`: of every entry, seconds since 1970.
/// A path that is too long for the format is told.
pub fn tar(entries: &[Entry], time: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for directory in super::directories(entries) {
        header(&mut bytes, &format!("./{directory}/"), b'5', 0o755, 0, "", time)?;
    }
    for entry in entries {
        let name = format!("./{}", entry.path);
        match &entry.kind {
            Kind::File { contents, mode, .. } => {
                header(&mut bytes, &name, b'0', *mode, contents.len(), "", time)?;
                bytes.extend_from_slice(contents);
                bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
            }
            Kind::Link(target) => header(&mut bytes, &name, b'2', 0o777, 0, target, time)?,
            // It has come above.
            Kind::Directory => {}
        }
    }
    bytes.resize(bytes.len() + 2 * BLOCK, 0);
    Ok(bytes)
}

fn header(
    bytes: &mut Vec<u8>,
    name: &str,
    kind: u8,
    mode: u32,
    size: usize,
    link: &str,
    time: u64,
) -> Result<(), String> {
    let mut block = [0u8; BLOCK];
    let mut put = |at: usize, room: usize, text: &str| match text.len() <= room {
        true => {
            block.iter_mut().skip(at).zip(text.bytes()).for_each(|(to, from)| *to = from);
            Ok(())
        }
        false => Err(format!("{name}: too long for a package")),
    };
    put(0, 100, name)?;
    put(100, 7, &format!("{mode:07o}"))?;
    put(108, 7, "0000000")?;
    put(116, 7, "0000000")?;
    put(124, 11, &format!("{size:011o}"))?;
    put(136, 11, &format!("{time:011o}"))?;
    // The checksum counts itself as blanks.
    put(148, 8, "        ")?;
    put(157, 100, link)?;
    put(257, 8, "ustar\x0000")?;
    put(265, 32, "root")?;
    put(297, 32, "root")?;
    block[156] = kind;
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    let digits = format!("{sum:06o}\0 ");
    block.iter_mut().skip(148).zip(digits.bytes()).for_each(|(to, from)| *to = from);
    bytes.extend_from_slice(&block);
    Ok(())
}

/// Members by name; names have at most 16 bytes.
pub fn ar(members: &[(&str, &[u8])], time: u64) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, contents) in members {
        bytes.extend(format!("{name:<16}{time:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 100644, contents.len()).bytes());
        bytes.extend_from_slice(contents);
        // Each begins at an even place.
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
        assert_eq!(bytes.len() % BLOCK, 0);
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
        assert!(tar(&[Entry::file(&"x".repeat(101), 0o644, Vec::new())], 0).is_err());
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
