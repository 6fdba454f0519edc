// SPDX-License-Identifier: GPL-2.0-or-later

//! Results of earlier runs. What has passed is not run again while all that decides its result is the same: a guest test
//! while its modules, the loader, the guest's files and its kernel are (an edit of the compiler that changes no module of
//! its scripts leaves it alone), everything else while no file of the tree has changed. Scripts are always compiled, and
//! what failed, or passed only when run again, is run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use super::batch;
use super::build::BuildContext;
use super::find::Test;
use crate::tree::output_of;

/// Results that no run has used for so long are forgotten.
const DAYS: u64 = 14;
/// What runs guest tests and judges them, below the root.
const RUNNER: [&str; 2] = ["tests/xtask/src/test", "compiler/guest/src"];

/// Written at the end of a run, and read by no test.
const PAGE: &str = "docs/test-timings.md";

/// What decides a result, as 64 hexadecimal digits.
pub(super) type Key = String;

/// One that passed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Passed {
    name: String,
    /// How many tests it consists of.
    passed: usize,
    /// The last day of a run that used it, since 1970.
    day: u64,
}

/// The results that are there, and those of this run.
pub(super) struct Kept {
    root: PathBuf,
    file: PathBuf,
    /// Digest of all files of the tree when the run began; None: nothing is kept.
    tree: Option<String>,
    /// Of what all guest tests have in common.
    guests: OnceLock<Option<String>>,
    earlier: BTreeMap<Key, Passed>,
    new: Mutex<BTreeMap<Key, Passed>>,
    used: AtomicUsize,
}

impl Kept {
    /// Keeps nothing, and knows nothing.
    pub(super) fn nothing() -> Kept {
        Kept {
            root: PathBuf::new(),
            file: PathBuf::new(),
            tree: None,
            guests: OnceLock::new(),
            earlier: BTreeMap::new(),
            new: Mutex::default(),
            used: AtomicUsize::new(0),
        }
    }

    /// Keeps the results of this run in `file`. `fresh`: without those that are there. A tree whose files git cannot list, and
    /// results that cannot be read, only cost time.
    pub(super) fn open(root: &Path, file: &Path, fresh: bool) -> Kept {
        let earlier = if fresh { BTreeMap::new() } else { read(file).unwrap_or_default() };
        Kept { root: root.into(), file: file.into(), tree: tree(root).ok(), earlier, ..Kept::nothing() }
    }

    /// The key of what may depend on every file of the tree, by its name. None: it is not kept.
    pub(super) fn of_tree(&self, name: &str, kernel: &str) -> Option<Key> {
        Some(digest([self.tree.as_ref()?, kernel, name]))
    }

    /// The key of a guest test whose scripts are compiled. None: it is not kept.
    pub(super) fn of_guest_test(&self, context: &BuildContext, test: &Test) -> Option<Key> {
        self.tree.as_ref()?;
        let common = self.guests.get_or_init(|| common(&self.root, context).ok()).as_ref()?;
        let own = batch::digest(context, test).ok()?;
        let text = fs::read_to_string(&test.path).ok()?;
        Some(digest([common, &own, &test.name, &text]))
    }

    /// How many tests passed with this key in an earlier run.
    pub(super) fn passed(&self, key: &Key) -> Option<usize> {
        let result = self.earlier.get(key)?;
        self.used.fetch_add(result.passed, Ordering::Relaxed);
        self.note(key, &result.name, result.passed);
        Some(result.passed)
    }

    /// Keeps a result, once [`Kept::write`] is called.
    pub(super) fn note(&self, key: &Key, name: &str, passed: usize) {
        let result = Passed { name: name.to_string(), passed, day: today() };
        self.new.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), result);
    }

    /// Number of tests that were not run, as they had passed.
    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Writes the results, unless the tree has changed since the run began: which of the two a test has seen is not known.
    pub(super) fn write(&self) -> Result<()> {
        let Some(before) = &self.tree else { return Ok(()) };
        ensure!(tree(&self.root)? == *before, "files have changed during the run");
        let mut all = read(&self.file).unwrap_or_default();
        all.append(&mut self.new.lock().unwrap_or_else(PoisonError::into_inner).clone());
        all.retain(|_, result| result.day + DAYS >= today());
        let object =
            all.into_iter().map(|(key, result)| (key, serde_json::json!([result.name, result.passed, result.day])));
        let text = serde_json::Value::Object(object.collect()).to_string();
        let directory = self.file.parent().context("a file without a directory")?;
        let file = tempfile::NamedTempFile::new_in(directory)?;
        fs::write(file.path(), text)?;
        file.persist(&self.file).with_context(|| format!("writing {}", self.file.display()))?;
        Ok(())
    }
}

fn read(file: &Path) -> Option<BTreeMap<Key, Passed>> {
    let value: serde_json::Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    let entries = value.as_object()?.iter().filter_map(|(key, value)| {
        let name = value.get(0)?.as_str()?.to_string();
        let passed = usize::try_from(value.get(1)?.as_u64()?).ok()?;
        Some((key.clone(), Passed { name, passed, day: value.get(2)?.as_u64()? }))
    });
    Some(entries.collect())
}

fn today() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / 86400
}

/// Of the texts and their lengths.
fn digest<'a>(texts: impl IntoIterator<Item = &'a (impl AsRef<[u8]> + ?Sized + 'a)>) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.as_ref().len() as u64).to_le_bytes());
        hash.update(text);
    }
    hex(&hash.finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Of the files below `root` that git knows or does not ignore, but [`PAGE`], the rights to execute them, and the compiler that builds them.
fn tree(root: &Path) -> Result<String> {
    let mut command = Command::new("git");
    command.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root);
    let output = command.stdin(Stdio::null()).output().context("running git")?;
    ensure!(output.status.success(), "git does not list the files of {}", root.display());
    let listed = String::from_utf8(output.stdout).context("a file's name is not UTF-8")?;
    let paths: Vec<PathBuf> = listed.split_terminator('\0').filter(|path| *path != PAGE).map(PathBuf::from).collect();
    let compiler = output_of("rustc", &["--version"]);
    Ok(digest([&files(root, &paths)?, &compiler]))
}

/// Of these files of `root`; those that are not there are left out.
fn files(root: &Path, paths: &[PathBuf]) -> Result<String> {
    let mut hash = Sha256::new();
    for path in paths {
        let full = root.join(path);
        let Ok(metadata) = fs::symlink_metadata(&full) else { continue };
        let bytes = match metadata.is_symlink() {
            true => fs::read_link(&full)?.to_string_lossy().into_owned().into_bytes(),
            false if metadata.is_file() => fs::read(&full).with_context(|| format!("reading {}", full.display()))?,
            false => continue,
        };
        let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions());
        hash.update(format!("{path:?} {mode:o} {}\n", bytes.len()));
        hash.update(bytes);
    }
    Ok(hex(&hash.finalize()))
}

/// Of what all guest tests have in common: their guests' files, among them the loader; what runs and judges them, and qemu.
fn common(root: &Path, context: &BuildContext) -> Result<String> {
    let mut paths = Vec::new();
    for directory in RUNNER {
        for entry in fs::read_dir(root.join(directory)).with_context(|| format!("reading {directory}"))? {
            paths.push(Path::new(directory).join(entry?.file_name()));
        }
    }
    paths.sort();
    let qemu = output_of("qemu-system-x86_64", &["--version"]);
    Ok(digest([&files(root, &paths)?, &batch::common_guest(context)?.digest()?, &qemu]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_tree(test: impl FnOnce(&Path, &Path)) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let root = directory.path().join("tree");
        fs::create_dir(&root).expect("a tree");
        let git = Command::new("git").args(["init", "-q"]).current_dir(&root).status().expect("git");
        assert!(git.success());
        fs::write(root.join("a"), "1").expect("a file");
        test(&root, &directory.path().join("results.json"));
    }

    #[test]
    fn what_passed_is_kept_while_the_tree_is_the_same() {
        in_tree(|root, file| {
            let first = Kept::open(root, file, false);
            let key = first.of_tree("attack", "6.1").expect("a key");
            assert_eq!(first.passed(&key), None);
            first.note(&key, "attack", 3);
            first.write().expect("written");

            let second = Kept::open(root, file, false);
            assert_eq!(second.of_tree("attack", "6.1"), Some(key.clone()));
            assert_eq!((second.passed(&key), second.used()), (Some(3), 3));
            for (name, kernel) in [("attack", "6.12"), ("smp", "6.1")] {
                assert_ne!(second.of_tree(name, kernel), Some(key.clone()));
            }
            assert_eq!(Kept::open(root, file, true).passed(&key), None, "a fresh run");
            fs::write(root.join("b"), "").expect("a file");
            assert_ne!(Kept::open(root, file, false).of_tree("attack", "6.1"), Some(key));
        });
    }

    #[test]
    fn nothing_is_kept_of_a_tree_that_has_changed_meanwhile() {
        in_tree(|root, file| {
            let kept = Kept::open(root, file, false);
            kept.note(&"key".to_string(), "test", 1);
            fs::write(root.join("a"), "2").expect("a file");
            assert!(kept.write().is_err() && !file.exists());
        });
    }

    #[test]
    fn old_and_damaged_results_are_forgotten() {
        in_tree(|root, file| {
            fs::write(file, format!(r#"{{"old":["x",1,{}],"new":["y",1,{}]}}"#, today() - DAYS - 1, today()))
                .expect("a file");
            Kept::open(root, file, false).write().expect("written");
            assert_eq!(read(file).expect("results").into_keys().collect::<Vec<_>>(), ["new"]);
            fs::write(file, "{").expect("a file");
            let kept = Kept::open(root, file, false);
            assert!(kept.earlier.is_empty());
            kept.write().expect("written");
            assert_eq!(read(file), Some(BTreeMap::new()));
        });
    }

    #[test]
    fn a_tree_without_git_keeps_nothing() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let kept = Kept::open(directory.path(), &directory.path().join("results.json"), false);
        assert_eq!(kept.of_tree("attack", "6.1"), None);
        kept.write().expect("nothing to write");
    }
}
