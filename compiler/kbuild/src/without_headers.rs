// SPDX-License-Identifier: GPL-2.0-or-later

//! Modules for a kernel whose headers are no longer installed, by a recipe that was stored while they were.
//!
//! A recipe's commands read few files of the kernel's build directory: objtool, the linker's script. When a recipe is
//! recorded, a second one is stored together with these files ([`store`]). Its key has the kernel's release and no build
//! directory, so that an index (`--index`) and the cache suffice to compile a script ([`build`]).

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use spile_base::cache::{Cache, Key, Kind};

use super::built::{Built, stack_usage};
use super::commands::Failure;
use super::embed::Runtime;
use super::recipe::{Argv, FORMAT, Recipe, Steps, environment};
use super::{BuildError, ReportProgress, Request, StackTable, replay};

/// Where the files are, below the work directory.
const DIRECTORY: &str = "build-directory";
/// Part of the entry: the compiler's version text.
const COMPILER: &str = "compiler";

/// Stores a recipe that needs no headers. Nothing is stored for a recipe that leaves modules to Kbuild.
pub(super) fn store(request: &Request, runtime: &Runtime, recipe: &Recipe, cache: &Cache) {
    let Ok(steps) = &recipe.steps else { return };
    let Some(steps) = portable(steps, &request.build_dir) else { return };
    let Some(version) = steps.script.first().and_then(|words| version(words.first()?)) else { return };
    let about = format!("runtime for {}, usable without its headers", request.release);
    let recipe = Recipe { plain: recipe.plain.clone(), steps: Ok(steps) };
    let entry = recipe.to_entry(&about).with(COMPILER, version);
    cache.put(Kind::Runtime, &key(request, runtime), &entry);
}

/// Builds by a stored recipe. None: there is none for this kernel.
///
/// # Errors
///
/// The script has embedded C, which needs the headers; the compiler is another one; a command fails.
pub(super) fn build(
    request: &Request,
    stacks: StackTable,
    work: &Path,
    cache: &Cache,
    say: ReportProgress,
) -> Option<Result<Built, BuildError>> {
    let runtime = match Runtime::read(request.runtime.as_deref()) {
        Ok(runtime) => runtime,
        Err(error) => return Some(Err(error)),
    };
    let entry = cache.get(Kind::Runtime, &key(request, &runtime))?;
    let version = entry.text(COMPILER)?.to_string();
    let recipe = Recipe::from_entry(entry)?;
    let steps = recipe.steps.as_ref().ok()?;
    say("compiling the script");
    Some(by(steps, &recipe.plain, &version, request, stacks, &runtime, work))
}

fn by(
    steps: &Steps,
    plain: &[u8],
    recorded: &str,
    request: &Request,
    stacks: StackTable,
    runtime: &Runtime,
    work: &Path,
) -> Result<Built, BuildError> {
    let release = || request.release.clone();
    if request.sources.embedded.is_some() || request.kbuild {
        return Err(BuildError::NeedsHeaders { release: release() });
    }
    let command = steps.script.first().and_then(|words| words.first()).cloned().unwrap_or_default();
    match version(&command) {
        None => return Err(BuildError::NoCompiler { wanted: command }),
        Some(version) if version != recorded => {
            return Err(BuildError::OtherCompiler { release: release(), recorded: recorded.to_string(), version });
        }
        Some(_) => {}
    }
    unpack(steps, work)?;
    let started = Instant::now();
    let source = replay::Source {
        name: &request.module,
        script: request.sources.script.as_bytes(),
        embedded: None,
        tables: request.sources.tables.as_ref(),
        stacks,
    };
    let made = replay::follow_with(steps, Some(plain), &source, runtime, request, work, None).map_err(|failure| {
        let Failure::Unable(reason) = failure else { return BuildError::Failed { log: failure.reason() } };
        BuildError::Failed { log: format!("without the headers of {}: {reason}", request.release) }
    })?;
    let mut stages = made.stages;
    stages.push(("runtime".into(), started.elapsed()));
    Ok(Built {
        module: made.module,
        notes: vec!["runtime: cached; the kernel's headers are not installed".into()],
        warnings: Vec::new(),
        inputs: Vec::new(),
        stack: stack_usage(work),
        stacks_set: made.stacks_set,
        stages,
    })
}

/// Writes the stored files, which may be programs.
fn unpack(steps: &Steps, work: &Path) -> Result<(), BuildError> {
    for (name, bytes) in steps.files.iter().filter(|(name, _)| is_of_build_directory(name)) {
        let path = work.join(name);
        super::make::write(&path, bytes)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700))
            .map_err(|error| BuildError::File { path, error: error.to_string() })?;
    }
    Ok(())
}

/// Whether the file of a recipe is one of the build directory's.
fn is_of_build_directory(name: &str) -> bool {
    name.strip_prefix(DIRECTORY).is_some_and(|rest| rest.starts_with('/'))
}

fn key(request: &Request, runtime: &Runtime) -> Key {
    let mut hash = runtime.digest();
    let facts =
        format!("without kernel headers {FORMAT}\n{}\n{:?}\n{:?}\n", request.release, request.make, environment());
    sha2::Digest::update(&mut hash, facts);
    Key::new(hash)
}

/// First line of the compiler's version text. None: it is not installed.
fn version(command: &str) -> Option<String> {
    let output = Command::new(command).arg("--version").output().ok().filter(|output| output.status.success())?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_string)
}

/// The steps with the files of the build directory that they read. None: they read others than this finds.
fn portable(steps: &Steps, build_dir: &Path) -> Option<Steps> {
    let mut found = BuildFiles { build_dir, in_work: steps.in_work, files: Vec::new() };
    let mut steps = Steps { in_work: true, embedded: Vec::new(), ..steps.clone() };
    for words in [&mut steps.script, &mut steps.module, &mut steps.last].into_iter().flatten() {
        found.words(words)?;
    }
    steps.files.extend(found.files.into_iter().map(|(_, name, bytes)| (name, bytes)));
    Some(steps)
}

/// Files of the build directory that commands read, as far as they have been found.
struct BuildFiles<'b> {
    build_dir: &'b Path,
    /// Relative paths are not of the build directory.
    in_work: bool,
    /// Path, name below the work directory, and bytes.
    files: Vec<(PathBuf, String, Vec<u8>)>,
}

impl BuildFiles<'_> {
    /// Replaces paths of files in the build directory. None: one is inside a longer word, or cannot be read.
    fn words(&mut self, words: &mut Argv) -> Option<()> {
        for word in words {
            if let Some(path) = self.file(word) {
                *word = format!("\u{1}/{}", self.add(&path)?);
            } else if word.split_once('=').is_some_and(|(_, value)| self.file(value).is_some()) {
                return None;
            }
        }
        Some(())
    }

    /// The file that the word names, if it is one that may go with the headers.
    fn file(&self, word: &str) -> Option<PathBuf> {
        if !word.contains('/') || word.starts_with(['-', '@', '\u{1}']) || (self.in_work && !word.starts_with('/')) {
            return None;
        }
        let path = self.build_dir.join(word);
        let installed = std::env::var_os("PATH").is_some_and(|directories| {
            std::env::split_paths(&directories).any(|directory| path.parent() == Some(directory.as_path()))
        });
        (!installed && path.is_file()).then_some(path)
    }

    fn add(&mut self, path: &Path) -> Option<String> {
        if let Some((_, name, _)) = self.files.iter().find(|(known, ..)| known == path) {
            return Some(name.clone());
        }
        let name = format!("{DIRECTORY}/{}-{}", self.files.len(), path.file_name()?.to_string_lossy());
        self.files.push((path.to_path_buf(), name.clone(), std::fs::read(path).ok()?));
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Argv {
        text.split(' ').map(str::to_string).collect()
    }

    #[test]
    fn files_of_the_build_directory_go_with_the_steps() {
        let directory = tempfile::tempdir().unwrap();
        let tree = directory.path();
        std::fs::write(tree.join("objtool"), "program").unwrap();
        std::fs::create_dir(tree.join("scripts")).unwrap();
        std::fs::write(tree.join("scripts/module.lds"), "script").unwrap();
        let steps = Steps {
            script: vec![words("gcc -c \u{1}/script.c"), words("./objtool --orc \u{1}/script.o")],
            embedded: vec![words("gcc -I./include")],
            last: vec![words("ld -T scripts/module.lds -o \u{1}/\u{2}.ko")],
            ..Steps::default()
        };
        let stored = portable(&steps, tree).unwrap();
        assert_eq!(stored.script[0], steps.script[0]);
        assert_eq!(stored.script[1], words("\u{1}/build-directory/0-objtool --orc \u{1}/script.o"));
        assert_eq!(stored.last[0], words("ld -T \u{1}/build-directory/1-module.lds -o \u{1}/\u{2}.ko"));
        assert!(stored.in_work && stored.embedded.is_empty());
        let files = [("build-directory/0-objtool", "program"), ("build-directory/1-module.lds", "script")];
        assert_eq!(stored.files, files.map(|(name, text)| (name.to_string(), text.as_bytes().to_vec())));
        // A path that is only a part of a word cannot be replaced.
        let hidden = Steps { last: vec![words("ld --script=scripts/module.lds")], ..steps };
        assert_eq!(portable(&hidden, tree), None);
    }
}
