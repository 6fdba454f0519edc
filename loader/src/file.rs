//! The module's file: where it is, and what its section `.spile.meta` says.

use std::fs;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use spile_abi::format::Piece;
use spile_abi::meta::{self, Meta};

use crate::elf;
use crate::error::Error;

/// An open `.ko`.
#[derive(Debug)]
pub struct File {
    pub path: PathBuf,
    /// What was read is what will be loaded.
    open: fs::File,
    pub meta: Meta,
    /// Decoded [`Meta::formats`].
    pub formats: Vec<Vec<Piece>>,
    /// Whether a signature is appended.
    pub signed: bool,
}

/// The end of a signed module (kernel/module_signature.c).
const SIGNATURE_MARK: &[u8] = b"~Module signature appended~\n";
/// The kernel's limit for names (MODULE_NAME_LEN, the NUL included).
const MAX_NAME: usize = 56;

impl File {
    /// The file of that path; a bare name is looked up among the running kernel's prebuilt modules.
    pub fn find(module: &Path) -> Result<File, Error> {
        if module.exists() || module.components().count() > 1 || module.extension().is_some() {
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
        let unreadable = |error| Error::Unreadable { path: path.to_path_buf(), error };
        let mut open = fs::File::open(path).map_err(unreadable)?;
        let mut bytes = Vec::new();
        open.read_to_end(&mut bytes).map_err(unreadable)?;
        let (meta, formats) = parse(path, &bytes)?;
        let signed = bytes.ends_with(SIGNATURE_MARK);
        Ok(File { path: path.to_path_buf(), open, meta, formats, signed })
    }

    pub fn descriptor(&self) -> impl AsFd + '_ {
        self.open.as_fd()
    }
}

fn parse(path: &Path, bytes: &[u8]) -> Result<(Meta, Vec<Vec<Piece>>), Error> {
    let path = || path.to_path_buf();
    let section = elf::section(bytes, meta::SECTION).map_err(|error| Error::Elf { path: path(), error })?;
    let section = section.ok_or_else(|| Error::NotOurs { path: path() })?;
    let meta = Meta::decode(section).map_err(|error| Error::Meta { path: path(), error })?;
    // The name becomes part of paths.
    if !is_module_name(&meta.name) || meta.targets.iter().any(|target| !target.name.is_empty() && !is_module_name(&target.name)) {
        return Err(Error::BadName { path: path(), name: meta.name });
    }
    let decoded = meta.formats.iter().enumerate().map(|(index, format)| {
        spile_abi::format::decode(format).map_err(|error| Error::Format { path: path(), index, error })
    });
    let formats = decoded.collect::<Result<_, _>>()?;
    Ok((meta, formats))
}

/// Whether it can be the name of a module as the kernel shows it.
pub fn is_module_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.len() < MAX_NAME && name.bytes().all(allowed)
}

/// UTS release; empty if the kernel does not say.
pub fn running_release() -> String {
    nix::sys::utsname::uname().map(|names| names.release().to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::tests::with_sections;

    fn parse_meta(meta: &Meta) -> Result<(Meta, Vec<Vec<Piece>>), Error> {
        parse(Path::new("a.ko"), &with_sections(&[(meta::SECTION, &meta.encode())]))
    }

    #[test]
    fn a_module_says_what_it_is() {
        let format = spile_abi::format::encode(&[Piece::Literal(b"x".to_vec())]);
        let meta = Meta { name: "script_1".into(), formats: vec![format], ..Meta::default() };
        let (read, formats) = parse_meta(&meta).unwrap();
        assert_eq!(read, meta);
        assert_eq!(formats, [[Piece::Literal(b"x".to_vec())]]);
    }

    #[test]
    fn other_files_are_refused_each_in_its_way() {
        assert!(matches!(parse(Path::new("a"), b"text"), Err(Error::Elf { .. })));
        let other = with_sections(&[(".text", b"")]);
        assert!(matches!(parse(Path::new("a"), &other), Err(Error::NotOurs { .. })));
        let name = Meta { name: "../x".into(), ..Meta::default() };
        assert!(matches!(parse_meta(&name), Err(Error::BadName { .. })));
        let format = Meta { name: "x".into(), formats: vec![vec![0], vec![9]], ..Meta::default() };
        assert!(matches!(parse_meta(&format), Err(Error::Format { index: 1, .. })));
    }

    #[test]
    fn a_missing_name_tells_where_it_was_looked_for() {
        let error = File::find(Path::new("no_such_script")).unwrap_err();
        assert!(error.to_string().contains("/spile/no_such_script.ko, /lib/modules/"), "{error}");
        assert!(matches!(File::find(Path::new("./no_such_script.ko")), Err(Error::Unreadable { .. })));
    }
}
