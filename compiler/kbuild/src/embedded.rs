// SPDX-License-Identifier: GPL-2.0-or-later

//! The object of a script's embedded C. It needs kernel headers and takes ten times as long as everything else; it is
//! cached.
//!
//! The key is the text without the module's name, which differs for each script: it is compiled as part of a module
//! with a placeholder name. If that name ends up in the object (by `pr_fmt`, a `static_key` of dynamic debug, ...), it
//! is compiled again with the real name and not cached.

use std::path::{Path, PathBuf};

use object::{Object, ObjectSection};
use sha2::Digest;

use super::commands::{FailedCommand, Failure, ObjectCache, Runner, run_all};
use super::recipe::Steps;
use super::{BuildError, make};
use spile_base::cache::{Entry, Inputs, Key, Kind};

/// The placeholder name of the module that a cached object was compiled for.
const ANY_MODULE: &str = "spile_any_module";
/// Where the compiler lists the headers.
const HEADERS: &str = ".embedded.d";

/// The result: `embedded.o` in the work directory.
pub(super) struct EmbeddedObject {
    pub(super) cached: bool,
    /// Headers outside the work directory.
    pub(super) headers: Vec<PathBuf>,
}

/// Makes `embedded.o` in the runner's work directory, from the cache if it is there and no header has changed.
pub(super) fn make(
    steps: &Steps,
    text: &[u8],
    name: &str,
    runner: &Runner,
    objects_cache: Option<&ObjectCache>,
) -> Result<EmbeddedObject, Failure> {
    let source = runner.work.join("embedded.c");
    let object = runner.work.join("embedded.o");
    make::write(&source, text)?;
    let key = objects_cache.map(|objects_cache| key(objects_cache, text));
    let cached =
        objects_cache.zip(key.as_ref()).and_then(|(objects_cache, key)| objects_cache.cache.get(Kind::Embedded, key));
    let cached =
        cached.and_then(|entry| Some((Inputs::from_text(entry.text("headers")?), entry.part("o").map(<[u8]>::to_vec))));
    let cached = cached.filter(|(headers, _)| headers.is_unchanged());
    if let Some((headers, Some(bytes))) = &cached {
        make::write(&object, bytes)?;
        return Ok(EmbeddedObject { cached: true, headers: headers.paths().map(Path::to_path_buf).collect() });
    }
    let mut commands = steps.embedded.clone();
    if let Some(compile) = commands.first_mut() {
        compile.push(format!("-Wp,-MMD,\u{1}/{HEADERS}"));
    }
    // An entry without an object records that the name gets into it.
    let named = cached.is_some() || objects_cache.is_none();
    run_all(&commands, if named { name } else { ANY_MODULE }, &[], runner).map_err(refused)?;
    let headers = read_headers(runner);
    let mut bytes = make::read(&object)?;
    let anonymous = !named && !has_name(&bytes);
    if let (Some(objects_cache), Some(key), false) = (objects_cache, &key, named) {
        let first = String::from_utf8_lossy(text).lines().next().unwrap_or_default().to_string();
        let entry = Entry::new(&first).with("headers", Inputs::of(headers.clone()).to_text());
        let entry = if anonymous { entry.with("o", std::mem::take(&mut bytes)) } else { entry };
        objects_cache.cache.put(Kind::Embedded, key, &entry);
    }
    if !named && !anonymous {
        run_all(&commands, name, &[], runner).map_err(refused)?;
    }
    Ok(EmbeddedObject { cached: false, headers })
}

fn key(objects_cache: &ObjectCache, text: &[u8]) -> Key {
    let mut hash = sha2::Sha256::new();
    hash.update(objects_cache.key.text());
    // Where headers are looked for besides the recipe's directories: a new one may come before one that was found.
    for name in ["CPATH", "C_INCLUDE_PATH"] {
        hash.update(std::env::var_os(name).unwrap_or_default().as_encoded_bytes());
        hash.update([0]);
    }
    hash.update(text);
    Key::new(hash)
}

fn refused(complaint: FailedCommand) -> Failure {
    match make::errors_in(&complaint.text) {
        lines if lines.is_empty() => Failure::Unable(format!("{}: {}", complaint.program, complaint.text)),
        lines => Failure::Refused(BuildError::Compile { lines }),
    }
}

/// Whether the placeholder name is in a loaded section or in a symbol.
fn has_name(bytes: &[u8]) -> bool {
    let holds = |data: &[u8]| data.windows(ANY_MODULE.len()).any(|window| window == ANY_MODULE.as_bytes());
    match object::File::parse(bytes) {
        Ok(file) => file.sections().any(|section| {
            let debug = section.name().is_ok_and(|name| name.starts_with(".debug_"));
            !debug && section.data().map_or(true, holds)
        }),
        Err(_) => true,
    }
}

/// Parses a make rule: `embedded.o: a.h \` and so on. A path with a space is never found again, so the object is
/// compiled again each time.
fn read_headers(runner: &Runner) -> Vec<PathBuf> {
    let text = std::fs::read_to_string(runner.work.join(HEADERS)).unwrap_or_default();
    let words = text.split_whitespace().filter(|word| *word != "\\" && !word.ends_with(':'));
    words.map(|word| runner.directory.join(word)).filter(|path| !path.starts_with(runner.work)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_a_rule() {
        let directory = tempfile::tempdir().unwrap();
        let work = directory.path();
        let runner = Runner {
            work,
            directory: Path::new("/k"),
            environment: Vec::new(),
            verbosity: 0,
            stages: Default::default(),
        };
        let text = format!(
            "{0}/embedded.o: {0}/embedded.c \\\n /usr/h.h ./include/a.h \\\n {0}/runtime-c/script.h\n",
            work.display()
        );
        std::fs::write(work.join(HEADERS), text).unwrap();
        assert_eq!(read_headers(&runner), [Path::new("/usr/h.h"), Path::new("/k/./include/a.h")]);
    }

    #[test]
    fn the_name_in_an_object() {
        let object = |section: &[u8], data: &[u8]| {
            let mut object = object::write::Object::new(
                object::BinaryFormat::Elf,
                object::Architecture::X86_64,
                object::Endianness::Little,
            );
            let id = object.add_section(Vec::new(), section.to_vec(), object::SectionKind::ReadOnlyData);
            object.append_section_data(id, data, 1);
            object.write().unwrap()
        };
        assert!(has_name(&object(b".rodata", b"x spile_any_module: y")));
        assert!(!has_name(&object(b".debug_str", b"spile_any_module")));
        assert!(!has_name(&object(b".rodata", b"spile_any")));
        assert!(has_name(b"junk"));
    }
}
