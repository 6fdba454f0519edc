// SPDX-License-Identifier: GPL-2.0-or-later

//! Packages for Red Hat's distributions and derivatives: rpm's file format, version 3 (docs/manual/format.md of rpm:
//! lead, signature, header, payload), with the digests that rpm 4.14 and later verify.
//!
//! The crate `rpm` is not used: with gzip compression only it adds 51 crates (0.30.2), among them older versions of
//! sha2 and syn beside ours, to write two tables of tagged values.
//!
//! A header is a list of tagged values in network order: an index of 16 bytes for each, then their bytes. A "region"
//! tag encloses all of them: its value is 16 bytes that point back to the index's start.

use std::io::Write;

use cpio::newc;
use sha2::{Digest, Sha256};

use super::content::{Entry, Kind, Package, gzip, with_own_directories};

/// Types of values.
const INT16: u32 = 3;
const INT32: u32 = 4;
const STRING: u32 = 6;
const BIN: u32 = 7;
const STRING_ARRAY: u32 = 8;
/// One text for each locale of the header; there is only C.
const I18N_STRING: u32 = 9;

const REGION_SIGNATURE: u32 = 62;
const REGION_HEADER: u32 = 63;
const SHA256: u32 = 8;
/// File flags: configuration, kept if it was changed.
const CONFIG_NOREPLACE: u32 = 1 | 1 << 4;
/// Flags of requirements: less or equal, of rpm itself; equal.
const OF_RPM: u32 = 2 | 8 | 1 << 24;
const EQUAL: u32 = 8;

/// `NAME-VERSION-1.x86_64.rpm`
pub fn file_name(package: &Package) -> String {
    format!("{}-{}-1.x86_64.rpm", package.name, package.version)
}

/// The whole file.
pub fn write(package: &Package) -> Result<Vec<u8>, String> {
    let package = &Package { entries: with_own_directories(&package.entries), ..package.clone() };
    let archive = payload(package)?;
    let payload = gzip(&archive)?;
    let header = header(package, &payload).finish(REGION_HEADER);
    let mut signature = Header::default();
    let size = header.len() + payload.len();
    signature.numbers(1000, INT32, &[size as u32]);
    signature.numbers(1007, INT32, &[archive.len() as u32]);
    signature.text(273, STRING, &[&sha256(&header)]);
    let mut signature = signature.finish(REGION_SIGNATURE);
    signature.resize(signature.len().next_multiple_of(8), 0);
    Ok([lead(package), signature, header, payload].concat())
}

/// Read by file(1); rpm checks only its magic.
fn lead(package: &Package) -> Vec<u8> {
    let mut bytes = vec![0xed, 0xab, 0xee, 0xdb, 3, 0, 0, 0, 0, 1];
    let name = format!("{}-{}-1", package.name, package.version);
    bytes.extend(name.bytes().take(65));
    bytes.resize(10 + 66, 0);
    // Linux, header-style signature, padding.
    bytes.extend([0, 1, 0, 5]);
    bytes.resize(96, 0);
    bytes
}

#[derive(Default)]
struct Header {
    values: Vec<Value>,
}

struct Value {
    tag: u32,
    kind: u32,
    count: usize,
    bytes: Vec<u8>,
}

impl Header {
    fn add(&mut self, tag: u32, kind: u32, count: usize, bytes: &[u8]) {
        self.values.push(Value { tag, kind, count, bytes: bytes.to_vec() });
    }

    fn numbers(&mut self, tag: u32, kind: u32, numbers: &[u32]) {
        let bytes: Vec<u8> = match kind {
            INT16 => numbers.iter().flat_map(|number| (*number as u16).to_be_bytes()).collect(),
            _ => numbers.iter().flat_map(|number| number.to_be_bytes()).collect(),
        };
        self.add(tag, kind, numbers.len(), &bytes);
    }

    fn text(&mut self, tag: u32, kind: u32, texts: &[&str]) {
        let bytes: Vec<u8> = texts.iter().flat_map(|text| text.bytes().filter(|byte| *byte != 0).chain([0])).collect();
        self.add(tag, kind, texts.len(), &bytes);
    }

    /// Index and values in the order of their tags: readers expect a sorted index, and check that the values are in the
    /// same order.
    fn finish(mut self, region: u32) -> Vec<u8> {
        self.values.sort_by_key(|value| value.tag);
        let entries = self.values.len() as u32 + 1;
        let (mut index, mut data): (Vec<[u32; 4]>, Vec<u8>) = Default::default();
        for value in &self.values {
            let align = match value.kind {
                INT16 => 2,
                INT32 => 4,
                _ => 1,
            };
            data.resize(data.len().next_multiple_of(align), 0);
            index.push([value.tag, value.kind, data.len() as u32, value.count as u32]);
            data.extend_from_slice(&value.bytes);
        }
        index.insert(0, [region, BIN, data.len() as u32, 16]);
        let trailer = [region, BIN, (entries * 16).wrapping_neg(), 16];
        data.extend(trailer.iter().flat_map(|number| number.to_be_bytes()));
        let mut bytes = vec![0x8e, 0xad, 0xe8, 1, 0, 0, 0, 0];
        bytes.extend([entries, data.len() as u32].iter().flat_map(|number| number.to_be_bytes()));
        bytes.extend(index.iter().flatten().flat_map(|number| number.to_be_bytes()));
        bytes.extend(data);
        bytes
    }
}

fn header(package: &Package, payload: &[u8]) -> Header {
    let mut header = Header::default();
    let full = format!("{}-1", package.version);
    header.text(100, STRING_ARRAY, &["C"]);
    for (tag, text) in [(1000, package.name.as_str()), (1001, &package.version), (1002, "1")] {
        header.text(tag, STRING, &[text]);
    }
    header.text(1004, I18N_STRING, &[&package.summary]);
    header.text(1005, I18N_STRING, &[&package.description]);
    header.numbers(1006, INT32, &[package.time as u32]);
    header.text(1007, STRING, &["localhost"]);
    header.numbers(1009, INT32, &[package.entries.iter().map(Entry::bytes).sum::<usize>() as u32]);
    header.text(1014, STRING, &["GPL-2.0-or-later"]);
    header.text(1015, STRING, &[&package.maintainer]);
    header.text(1016, I18N_STRING, &["System Environment/Kernel"]);
    header.text(1021, STRING, &["linux"]);
    header.text(1022, STRING, &["x86_64"]);
    header.text(1044, STRING, &[&format!("{}-{full}.src.rpm", package.name)]);
    header.text(1064, STRING, &["4.14.0"]);
    header.text(1124, STRING, &["cpio"]);
    header.text(1125, STRING, &["gzip"]);
    header.text(1126, STRING, &["9"]);
    header.text(5062, STRING, &["utf-8"]);
    header.text(5092, STRING_ARRAY, &[&sha256(payload)]);
    header.numbers(5093, INT32, &[SHA256]);
    scripts(&mut header, package);
    relations(&mut header, package, &full);
    files(&mut header, package);
    header
}

/// `$1` of a removal is the number of versions that stay: 0 unless it is an upgrade.
fn scripts(header: &mut Header, package: &Package) {
    let removing = format!("[ \"$1\" = 0 ] || exit 0\n{}", package.scripts.removing);
    let all = [
        (1024, 1086, &package.scripts.installed, package.scripts.installed.as_str()),
        (1025, 1087, &package.scripts.removing, removing.as_str()),
        (1026, 1088, &package.scripts.removed, package.scripts.removed.as_str()),
    ];
    for (script, program, commands, text) in all {
        if !commands.is_empty() {
            header.text(script, STRING, &[text]);
            header.text(program, STRING, &["/bin/sh"]);
        }
    }
}

fn relations(header: &mut Header, package: &Package, full: &str) {
    let mut provided = vec![(package.name.as_str(), full)];
    provided.extend(package.stands_for.iter().map(|(name, version)| (name.as_str(), version.as_str())));
    // rpm uses a binary search.
    provided.sort();
    let mut others: Vec<&str> = package.stands_for.iter().map(|(name, _)| name.as_str()).collect();
    others.sort();
    header.text(1047, STRING_ARRAY, &provided.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    header.numbers(1112, INT32, &vec![EQUAL; provided.len()]);
    header.text(1113, STRING_ARRAY, &provided.iter().map(|(_, version)| *version).collect::<Vec<_>>());
    if !others.is_empty() {
        // A package does not conflict with itself.
        header.numbers(1053, INT32, &vec![0; others.len()]);
        header.text(1054, STRING_ARRAY, &others);
        header.text(1055, STRING_ARRAY, &vec![""; others.len()]);
    }
    let of_rpm = [("CompressedFileNames", "3.0.4-1"), ("FileDigests", "4.6.0-1"), ("PayloadFilesHavePrefix", "4.0-1")];
    let mut required: Vec<(String, u32, &str)> = package.depends.iter().map(|name| (name.clone(), 0, "")).collect();
    required.extend(of_rpm.iter().map(|(name, version)| (format!("rpmlib({name})"), OF_RPM, *version)));
    header.text(1049, STRING_ARRAY, &required.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>());
    header.numbers(1048, INT32, &required.iter().map(|(_, flags, _)| *flags).collect::<Vec<_>>());
    header.text(1050, STRING_ARRAY, &required.iter().map(|(.., version)| *version).collect::<Vec<_>>());
}

fn files(header: &mut Header, package: &Package) {
    let entries = &package.entries;
    // `/DIRECTORY/`, each once.
    let parts: Vec<(String, &str)> = entries.iter().map(|entry| split(&entry.path)).collect();
    let mut places: Vec<&str> = parts.iter().map(|(directory, _)| directory.as_str()).collect();
    places.sort();
    places.dedup();
    let index = |directory: &str| places.iter().position(|known| *known == directory).unwrap_or(0) as u32;
    let each = |value: fn(&Entry) -> u32| entries.iter().map(value).collect::<Vec<u32>>();
    let same = |value: u32| vec![value; entries.len()];
    let texts = |text: &'static str| vec![text; entries.len()];
    header.numbers(1028, INT32, &each(|entry| entry.bytes() as u32));
    header.numbers(1030, INT16, &each(|entry| mode(&entry.kind)));
    header.numbers(1033, INT16, &same(0));
    header.numbers(1034, INT32, &same(package.time as u32));
    let digests: Vec<String> = entries.iter().map(|entry| digest(&entry.kind)).collect();
    header.text(1035, STRING_ARRAY, &digests.iter().map(String::as_str).collect::<Vec<_>>());
    header.text(1036, STRING_ARRAY, &entries.iter().map(|entry| entry.link().unwrap_or("")).collect::<Vec<_>>());
    header.numbers(
        1037,
        INT32,
        &each(|entry| match entry.kind {
            Kind::File { configuration: true, .. } => CONFIG_NOREPLACE,
            _ => 0,
        }),
    );
    header.text(1039, STRING_ARRAY, &texts("root"));
    header.text(1040, STRING_ARRAY, &texts("root"));
    // Verify all properties of a file.
    header.numbers(1045, INT32, &same(u32::MAX));
    header.numbers(1095, INT32, &same(1));
    header.numbers(1096, INT32, &(1..=entries.len() as u32).collect::<Vec<_>>());
    header.text(1097, STRING_ARRAY, &texts(""));
    header.numbers(1116, INT32, &parts.iter().map(|(directory, _)| index(directory)).collect::<Vec<_>>());
    header.text(1117, STRING_ARRAY, &parts.iter().map(|(_, name)| *name).collect::<Vec<_>>());
    header.text(1118, STRING_ARRAY, &places);
    header.numbers(5011, INT32, &[SHA256]);
}

fn split(path: &str) -> (String, &str) {
    match path.rsplit_once('/') {
        Some((directory, name)) => (format!("/{directory}/"), name),
        None => ("/".to_string(), path),
    }
}

fn mode(kind: &Kind) -> u32 {
    match kind {
        Kind::File { mode, .. } => 0o100_000 | mode,
        Kind::Link(_) => 0o120_777,
        Kind::Directory => 0o040_755,
    }
}

fn digest(kind: &Kind) -> String {
    match kind {
        Kind::File { contents, .. } => sha256(contents),
        Kind::Link(_) | Kind::Directory => String::new(),
    }
}

/// SHA-256 as text.
fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// cpio in the "newc" format, names with `./`; other directories belong to other packages.
fn payload(package: &Package) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for (index, entry) in package.entries.iter().enumerate() {
        let contents: &[u8] = match &entry.kind {
            Kind::File { contents, .. } => contents,
            Kind::Link(target) => target.as_bytes(),
            Kind::Directory => &[],
        };
        let name = format!("./{}", entry.path);
        let size = u32::try_from(contents.len()).map_err(|_| format!("{name}: too large for a package"))?;
        let builder = newc::Builder::new(&name).ino(index as u32 + 1).mode(mode(&entry.kind));
        let mut writer = builder.mtime(package.time as u32).dev_minor(1).write(&mut bytes, size);
        let written = writer.write_all(contents).and_then(|()| writer.finish());
        written.map_err(|error| format!("{name}: {error}"))?;
    }
    newc::trailer(bytes).map_err(|error| format!("writing an archive: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rpm_itself_reads_and_verifies_it() {
        let package = crate::tests::package();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(file_name(&package));
        assert!(path.ends_with("spile-fix-1.2-1.x86_64.rpm"));
        std::fs::write(&path, write(&package).unwrap()).unwrap();
        let rpm = |arguments: &[&str]| {
            let database = format!("{}", directory.path().join("db").display());
            let output = std::process::Command::new("rpm")
                .args(["--dbpath", &database])
                .args(arguments)
                .arg(&path)
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{text}");
            text
        };
        let checked = rpm(&["-Kv", "--nosignature"]);
        assert!(
            checked.contains("Header SHA256 digest: OK") && checked.contains("Payload SHA256 digest: OK"),
            "{checked}"
        );
        assert_eq!(
            (rpm(&["-qp", "--provides"]).as_str(), rpm(&["-qp", "--conflicts"]).as_str()),
            ("other-fix = 2.0\nspile-fix = 1.2-1\n", "other-fix\n")
        );
        let info = rpm(&["-qp", "--info", "--requires", "--scripts"]);
        for line in [
            "Name        : spile-fix",
            "spile-loader",
            "Two",
            "postinstall scriptlet (using /bin/sh)",
            "systemctl enable spile@fix.service",
        ] {
            assert!(info.contains(line), "{line}: {info}");
        }
        assert_eq!(rpm(&["-qpc"]), "/etc/spile/fix.conf\n");
        let dump = rpm(&["-qp", "--dump"]);
        assert!(dump.contains("0100644 root root 1 0 0 X") && dump.contains(&sha256(b"module")), "{dump}");
        let files = std::process::Command::new("sh")
            .args(["-c", "rpm2cpio \"$1\" | cpio -t 2>&1", "sh"])
            .arg(&path)
            .output()
            .unwrap();
        let files = String::from_utf8_lossy(&files.stdout).into_owned();
        assert!(files.contains("./etc/spile\n./etc/spile/fix.conf\n./usr/lib/modules/6.1.0/spile\n./usr/lib/modules/6.1.0/spile/fix.ko\n"), "{files}");
        assert!(dump.contains("/etc/spile 0 ") && dump.contains(" 040755 root root 0 0 0 X"), "{dump}");
    }
}
