// SPDX-License-Identifier: GPL-2.0-or-later

//! The module's file: its path, and its section `.spile.meta`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use spile_abi::budget;
use spile_abi::format::{MAX_PARTS, Piece, Pretty};
use spile_abi::meta::{self, Meta, MetaError};
use spile_abi::seal;

use crate::elf;
use crate::error::Error;
use crate::host::kernel::{MAX_NAME, is_module_name, is_release, running_release};
use spile_abi::escape;

/// The description that a module carries.
#[derive(Debug, PartialEq)]
pub struct Description {
    /// Everything except the formats of prints.
    pub meta: Meta,
    /// Decoded [`Meta::formats`], with the descriptions of their objects.
    pub formats: Vec<Vec<Piece>>,
}

/// A module's `.ko`.
#[derive(Debug)]
pub struct File {
    /// Its path, for messages.
    pub path: PathBuf,
    /// The checked bytes are the loaded ones, even if the file changes meanwhile.
    pub image: Vec<u8>,
    /// Decoded section `.spile.meta`.
    pub description: Description,
    /// Whether a signature is appended.
    pub signed: bool,
}

/// Modules that spile builds have up to some MB; with debug information in embedded C, some ten.
const MAX_IMAGE: u64 = 256 << 20;

/// The description: up to some MB, with tens of thousands of probes.
const MAX_META: usize = 64 << 20;

impl File {
    /// Opens the file; a bare name is looked up among the running kernel's prebuilt modules alone: another user may have put a file
    /// of that name into the working directory.
    pub fn find(module: &Path) -> Result<File, Error> {
        if module.components().count() > 1 || module.extension().is_some() {
            return File::read(module);
        }
        let mut name = module.as_os_str().to_owned();
        name.push(".ko");
        let modules = Path::new("/lib/modules").join(running_release());
        let looked = ["spile", "systemtap"].map(|directory| modules.join(directory).join(&name));
        match looked.iter().find(|path| path.exists()) {
            Some(path) => File::read(path),
            None => Err(Error::NotFound { name: module.to_path_buf(), looked: looked.to_vec() }),
        }
    }

    fn read(path: &Path) -> Result<File, Error> {
        let image = budget::read_file(path, "a module", MAX_IMAGE);
        let image = image.map_err(|error| Error::Unreadable { path: path.to_path_buf(), error })?;
        let file = File::of(path.to_path_buf(), image)?;
        // The session would be that of another module.
        match file.has_its_name() {
            true => Ok(file),
            false => Err(Error::BadName { path: file.path, name: file.description.meta.name }),
        }
    }

    /// From bytes already read.
    pub fn of(path: PathBuf, image: Vec<u8>) -> Result<File, Error> {
        let description = parse(&path, &image)?;
        if !seal::holds(&image) {
            return Err(Error::Changed { path });
        }
        let signed = image.ends_with(seal::SIGNATURE_MARK);
        Ok(File { path, image, description, signed })
    }

    /// Checks that the kernel's name for it is the one in its description.
    pub fn has_its_name(&self) -> bool {
        kernel_name(&self.image).is_some_and(|name| name == self.description.meta.name)
    }

    /// `-R`: renames the module to NAME_PID. The kernel reads the name from the section that holds `struct module`.
    pub fn rename(&mut self, pid: u32) -> Result<(), Error> {
        if self.signed {
            return Err(Error::RenameSigned { path: self.path.clone() });
        }
        let new = rename(&mut self.image, pid);
        let name = || self.description.meta.name.clone();
        let new = new.ok_or_else(|| Error::BadName { path: self.path.clone(), name: name() })?;
        self.description.meta.name = new;
        Ok(())
    }
}

/// The name that the kernel will use for the module of these bytes; `None`: it would reject them.
pub fn kernel_name(image: &[u8]) -> Option<String> {
    name_field(image).map(|(_, name)| name)
}

/// The value of an entry of `.modinfo`; `None`: there is none, or more than one.
pub fn information<'i>(image: &'i [u8], key: &str) -> Option<&'i [u8]> {
    let section = elf::loaded_section(image, ".modinfo").ok()??;
    let entries = section.split(|byte| *byte == 0);
    let mut values = entries.filter_map(|entry| entry.strip_prefix(key.as_bytes())?.strip_prefix(b"="));
    values.next().filter(|_| values.next().is_none())
}

/// Whether it was compiled with --privilege=stapusr: its handlers do nothing in processes that the session's owner may
/// not debug. Only true of a module whose signer is trusted.
pub fn sees_own_processes_only(image: &[u8]) -> bool {
    information(image, "spile_privilege") == Some(b"stapusr")
}

/// Renames the module in its bytes to NAME_PID, and returns that name. `None`: there is no name that can be changed.
pub fn rename(image: &mut [u8], pid: u32) -> Option<String> {
    let (place, old) = name_field(image)?;
    let suffix = format!("_{pid}");
    let stem: String = old.chars().take(MAX_NAME - 1 - suffix.len()).collect();
    let new = stem + &suffix;
    let field = image.get_mut(place..place + MAX_NAME)?;
    field.fill(0);
    field.iter_mut().zip(new.bytes()).for_each(|(to, from)| *to = from);
    Some(new)
}

/// Offset and contents of the module's name. It is the first non-zero field of `struct module` in a file: before it are
/// the state (MODULE_STATE_LIVE, 0) and the links of a list.
fn name_field(image: &[u8]) -> Option<(usize, String)> {
    let section = elf::loaded_section(image, ".gnu.linkonce.this_module").ok()??;
    let start = (section.as_ptr() as usize).checked_sub(image.as_ptr() as usize)?;
    let first = section.iter().position(|byte| *byte != 0)?;
    let field = section.get(first..first.checked_add(MAX_NAME)?)?;
    let name = std::str::from_utf8(field.split(|byte| *byte == 0).next()?).ok()?;
    is_module_name(name).then(|| (start + first, name.to_string()))
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Description, Error> {
    let section = elf::section(bytes, meta::SECTION).map_err(|error| Error::Elf { path: path.to_path_buf(), error })?;
    let section = section.ok_or_else(|| Error::NotOurs { path: path.to_path_buf() })?;
    Description::decode(path, section)
}

impl Description {
    /// From the bytes of `.spile.meta`; `path` is for messages.
    pub fn decode(path: &Path, section: &[u8]) -> Result<Description, Error> {
        let meta = decode_meta(path, section)?;
        let path = || path.to_path_buf();
        let mut left = MAX_PARTS;
        let described = meta.descriptions.iter().enumerate().map(|(index, description)| {
            let decoded = Pretty::decode(description, &mut left).map(Arc::new);
            decoded.map_err(|error| Error::Description { path: path(), index, error })
        });
        let descriptions = described.collect::<Result<Vec<_>, _>>()?;
        let decoded = meta.formats.iter().enumerate().map(|(index, format)| {
            let decoded = spile_abi::format::decode(format, &descriptions, &mut left);
            decoded.map_err(|error| Error::Format { path: path(), index, error })
        });
        let formats = decoded.collect::<Result<_, _>>()?;
        Ok(Description { meta, formats })
    }
}

/// A description without the decoded formats of its prints; arguments as of [`Description::decode`].
pub fn decode_meta(path: &Path, section: &[u8]) -> Result<Meta, Error> {
    // Decoded, it takes several times as much.
    if section.len() > MAX_META {
        let error = std::io::Error::new(std::io::ErrorKind::FileTooLarge, "its description is larger than 64 MB");
        return Err(Error::Unreadable { path: path.to_path_buf(), error });
    }
    check_meta(path, Meta::decode(section))
}

/// What a description tells of the whole script; its lists from the probes on are empty. `section`: the first bytes of
/// `.spile.meta`.
pub fn decode_head(path: &Path, section: &[u8]) -> Result<Meta, Error> {
    check_meta(path, Meta::decode_head(section))
}

/// What a description tells of the whole script and of each probe; its other lists are empty.
pub fn decode_probes(path: &Path, section: &[u8]) -> Result<Meta, Error> {
    check_meta(path, Meta::decode_probes(section))
}

fn check_meta(path: &Path, decoded: Result<Meta, MetaError>) -> Result<Meta, Error> {
    let path = || path.to_path_buf();
    let mut meta = decoded.map_err(|error| Error::Meta { path: path(), error })?;
    escape_shown(&mut meta);
    // The names become parts of paths.
    if !is_release(&meta.kernel_release) {
        return Err(Error::BadName { path: path(), name: meta.kernel_release });
    }
    if !is_module_name(&meta.name)
        || meta.targets.iter().any(|target| !target.name.is_empty() && !is_module_name(&target.name))
    {
        return Err(Error::BadName { path: path(), name: meta.name });
    }
    Ok(meta)
}

/// Escapes text that is printed in tables, messages and labels. Names that become parts of paths are checked instead.
fn escape_shown(meta: &mut Meta) {
    let Meta { title, version, targets, probes, locations, settings, ungated, value_names, .. } = meta;
    let probes = probes.iter_mut().flat_map(|probe| [&mut probe.point, &mut probe.script_point, &mut probe.place]);
    let others =
        targets.iter_mut().map(|target| &mut target.path).chain(settings.iter_mut().map(|setting| &mut setting.name));
    for text in [title, version]
        .into_iter()
        .chain(probes)
        .chain(others)
        .chain(locations)
        .chain(ungated)
        .chain(value_names.iter_mut().flatten())
    {
        if let std::borrow::Cow::Owned(escaped) = escape::line(text) {
            *text = escaped;
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::elf::tests::with_sections;

    /// The section with the module's name for the kernel, which follows its state and the links of a list.
    pub fn this_module(name: &str) -> Vec<u8> {
        let mut section = vec![0; 24];
        section.extend(name.bytes());
        section.resize(24 + MAX_NAME, 0);
        section
    }

    /// A file with these sections and a correct checksum.
    pub fn sealed(sections: &[(&str, &[u8])]) -> Vec<u8> {
        let mut empty = seal::MAGIC.to_vec();
        empty.resize(seal::BYTES, 0);
        let mut image = with_sections(&[sections, &[(seal::SECTION, &empty)]].concat());
        seal::write(&mut image);
        image
    }

    #[test]
    fn modules_that_see_own_processes_only_say_so_once() {
        let sees = |information: &[u8]| sees_own_processes_only(&with_sections(&[(".modinfo", information)]));
        assert!(sees(b"license=GPL\0spile_privilege=stapusr\0name=x\0"));
        for other in [
            &b"license=GPL\0"[..],
            b"spile_privilege=stapdev\0",
            b"spile_privilege=stapusr and more\0",
            b"spile_privilege=stapusr\0spile_privilege=stapdev\0",
            b"xspile_privilege=stapusr\0",
        ] {
            assert!(!sees(other), "{}", String::from_utf8_lossy(other));
        }
    }

    #[test]
    fn a_flipped_bit_anywhere_is_refused() {
        let meta = Meta { name: "script_1".into(), ..Meta::default() };
        let image = sealed(&[(meta::SECTION, &meta.encode()), (".text", &[7; 50])]);
        assert!(File::of("a.ko".into(), image.clone()).is_ok());
        let mut signed = [&image[..], &[9; 20], &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20]].concat();
        signed.extend(seal::SIGNATURE_MARK);
        assert!(File::of("a.ko".into(), signed).unwrap().signed);
        for bit in 0..image.len() * 8 {
            let mut damaged = image.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(File::of("a.ko".into(), damaged).is_err(), "{bit}");
        }
        for end in 0..image.len() {
            assert!(File::of("a.ko".into(), image[..end].to_vec()).is_err(), "{end}");
        }
        let without = with_sections(&[(meta::SECTION, &meta.encode())]);
        assert!(matches!(File::of("a.ko".into(), without), Err(Error::Changed { .. })));
    }

    fn parse_meta(meta: &Meta) -> Result<Description, Error> {
        parse(Path::new("a.ko"), &with_sections(&[(meta::SECTION, &meta.encode())]))
    }

    #[test]
    fn a_module_has_a_description() {
        let format = spile_abi::format::encode(&[Piece::Literal(b"x".to_vec())], |_| 0);
        let meta = Meta { name: "script_1".into(), formats: vec![format], ..Meta::default() };
        let formats = vec![vec![Piece::Literal(b"x".to_vec())]];
        assert_eq!(parse_meta(&meta).unwrap(), Description { meta, formats });
    }

    #[test]
    fn texts_of_the_description_are_escaped() {
        let probe = spile_abi::meta::Probe {
            point: "a\nERROR: b".into(),
            place: "\x1b[2J.stp:1:1".into(),
            ..Default::default()
        };
        let meta = Meta {
            name: "x".into(),
            title: "\u{202e}\r".into(),
            probes: vec![probe],
            locations: vec!["\x07".into()],
            ..Meta::default()
        };
        let meta = parse_meta(&meta).unwrap().meta;
        assert_eq!((meta.title.as_str(), meta.locations[0].as_str()), (r"\u{202e}\r", r"\x07"));
        assert_eq!(
            (meta.probes[0].point.as_str(), meta.probes[0].place.as_str()),
            (r"a\nERROR: b", r"\x1b[2J.stp:1:1")
        );
    }

    #[test]
    fn a_module_gets_a_name_of_its_own() {
        let meta = Meta { name: "script_1".into(), ..Meta::default() };
        let mut module = this_module("script_1");
        module.extend([7; 100]);
        let image = with_sections(&[(meta::SECTION, &meta.encode()), (".gnu.linkonce.this_module", &module)]);
        let description = parse(Path::new("a"), &image).unwrap();
        let mut file = File { path: "a".into(), image, description, signed: false };
        assert!(file.has_its_name());
        file.rename(4711).unwrap();
        assert_eq!(file.description.meta.name, "script_1_4711");
        let renamed = elf::section(&file.image, ".gnu.linkonce.this_module").unwrap().unwrap();
        assert_eq!(&renamed[24..24 + 14], b"script_1_4711\0");
        assert_eq!((renamed[23], renamed[24 + MAX_NAME]), (0, 7));
        assert!(file.has_its_name());
        file.description.meta.name = "script_1".into();
        assert!(!file.has_its_name());
        file.signed = true;
        assert!(matches!(file.rename(1), Err(Error::RenameSigned { .. })));
    }

    #[test]
    fn other_files_are_refused_with_different_errors() {
        assert!(matches!(parse(Path::new("a"), b"text"), Err(Error::Elf { .. })));
        let other = with_sections(&[(".text", b"")]);
        assert!(matches!(parse(Path::new("a"), &other), Err(Error::NotOurs { .. })));
        let name = Meta { name: "../x".into(), ..Meta::default() };
        assert!(matches!(parse_meta(&name), Err(Error::BadName { .. })));
        for release in ["../../etc", "a/b", "a b", "a\n"] {
            let meta = Meta { name: "x".into(), kernel_release: release.into(), ..Meta::default() };
            assert!(matches!(parse_meta(&meta), Err(Error::BadName { .. })), "{release}");
        }
        let format = Meta { name: "x".into(), formats: vec![vec![0], vec![9]], ..Meta::default() };
        assert!(matches!(parse_meta(&format), Err(Error::Format { index: 1, .. })));
        let description = Meta { name: "x".into(), descriptions: vec![vec![0; 4]], ..Meta::default() };
        assert!(matches!(parse_meta(&description), Err(Error::Description { index: 0, .. })));
    }

    #[test]
    fn a_file_that_is_another_module_for_the_kernel_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.ko");
        let meta = Meta { name: "script_1".into(), ..Meta::default() }.encode();
        for (name, fits) in [("script_1", true), ("other", false), ("", false)] {
            let sections = [(meta::SECTION, &meta[..]), (".gnu.linkonce.this_module", &this_module(name))];
            std::fs::write(&path, sealed(&sections)).unwrap();
            assert_eq!(File::find(&path).is_ok(), fits, "{name}");
        }
    }

    #[test]
    fn a_name_in_a_section_that_the_kernel_skips_does_not_count() {
        const NAME: &str = ".gnu.linkonce.this_module";
        let (decoy, real) = (this_module("script_1"), this_module("other"));
        let not_loaded = |mut image: Vec<u8>| {
            let headers = u64::from_le_bytes(image[40..48].try_into().unwrap()) as usize;
            // The flags of the first section.
            image[headers + 64 + 8] = 0;
            image
        };
        assert_eq!(kernel_name(&with_sections(&[(NAME, &real)])).as_deref(), Some("other"));
        assert_eq!(kernel_name(&not_loaded(with_sections(&[(NAME, &real)]))), None);
        assert_eq!(kernel_name(&not_loaded(with_sections(&[(NAME, &decoy), (NAME, &real)]))), None);
        assert_eq!(kernel_name(&with_sections(&[(NAME, &decoy), (NAME, &real)])), None);
        let own = b"spile_privilege=stapusr\0";
        assert!(sees_own_processes_only(&with_sections(&[(".modinfo", own)])));
        assert!(!sees_own_processes_only(&not_loaded(with_sections(&[(".modinfo", own), (".modinfo", b"a=b\0")]))));
    }

    #[test]
    fn no_description_is_too_large_for_the_memory() {
        let meta = Meta { name: "x".into(), ..Meta::default() };
        let mut section = meta.encode();
        section.resize(MAX_META + 1, 0);
        let error = Description::decode(Path::new("a"), &section).unwrap_err();
        assert!(error.to_string().contains("larger than 64 MB"), "{error}");
    }

    #[test]
    fn the_error_for_a_missing_module_lists_the_searched_paths() {
        let error = File::find(Path::new("no_such_script")).unwrap_err();
        assert!(error.to_string().contains("/spile/no_such_script.ko, /lib/modules/"), "{error}");
        assert!(matches!(File::find(Path::new("./no_such_script.ko")), Err(Error::Unreadable { .. })));
    }
}
