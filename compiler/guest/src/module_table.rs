// SPDX-License-Identifier: GPL-2.0-or-later

//! The files of a kernel's modules, and which of them have to be loaded before others: what depmod(8) has written beside them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::error::Error;

/// The modules of a release.
pub(super) struct ModuleTable {
    release: String,
    /// Files that a file needs, direct and indirect, the last to be loaded first (modules.dep).
    dependencies: BTreeMap<String, Vec<String>>,
    /// Files by the module's name.
    by_name: BTreeMap<String, String>,
    /// Names of modules that are part of the image (modules.builtin).
    built_in: BTreeSet<String>,
    wanted_before: SoftDependencies,
}

impl ModuleTable {
    /// Reads the tables in this directory.
    pub(super) fn read(modules: &Path, release: &str) -> Result<ModuleTable, Error> {
        let path = modules.join("modules.dep");
        let table = fs::read_to_string(&path).map_err(Error::file("reading", &path))?;
        let built_in = fs::read_to_string(modules.join("modules.builtin")).unwrap_or_default();
        let dependencies = parse_dependencies(&table);
        Ok(ModuleTable {
            release: release.to_string(),
            by_name: dependencies.keys().map(|file| (module_name(file), file.clone())).collect(),
            dependencies,
            built_in: built_in.lines().map(module_name).collect(),
            wanted_before: SoftDependencies::of(modules),
        })
    }

    /// Files of the modules `names` and of all that they need, in loading order. Each occurs once. Built-in modules have no
    /// file and are omitted.
    pub(super) fn files(&self, names: &[String]) -> Result<Vec<PathBuf>, Error> {
        let mut order = Vec::new();
        for name in names {
            let name = name.replace('-', "_");
            if self.built_in.contains(&name) {
                continue;
            }
            let file = self
                .by_name
                .get(&name)
                .ok_or_else(|| Error::NoModule { name: name.clone(), release: self.release.clone() })?;
            self.visit(file, &mut BTreeSet::new(), &mut order);
        }
        Ok(order)
    }

    /// Appends a module's file to `order`, after those that it needs; `seen`: the files on the way.
    fn visit(&self, file: &str, seen: &mut BTreeSet<String>, order: &mut Vec<PathBuf>) {
        if order.contains(&PathBuf::from(file)) || !seen.insert(file.to_string()) {
            return;
        }
        let wanted = self.wanted_before.of_module(&module_name(file));
        let wanted = wanted.iter().filter_map(|name| self.by_name.get(name));
        // modules.dep lists all dependencies, direct and indirect, the last to be loaded first.
        let needed = self.dependencies.get(file).into_iter().flatten().rev();
        for other in wanted.chain(needed) {
            self.visit(other, seen, order);
        }
        order.push(PathBuf::from(file));
    }
}

/// What modules request while they are loaded, such as an algorithm, from modules.softdep (modprobe.d(5), `softdep`). The
/// guest's modprobe does not read it.
struct SoftDependencies {
    /// Names or aliases of modules, by the module's name.
    before: BTreeMap<String, Vec<String>>,
    /// Names of modules, by alias (modules.alias), without those that are patterns.
    aliases: BTreeMap<String, Vec<String>>,
}

impl SoftDependencies {
    /// Of the modules in this directory; empty if the files are not there.
    fn of(modules: &Path) -> SoftDependencies {
        let text = fs::read_to_string(modules.join("modules.softdep")).unwrap_or_default();
        let mut before: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let (Some("softdep"), Some(name)) = (words.next(), words.next()) else { continue };
            let mut is_before = false;
            for word in words {
                match word {
                    "pre:" => is_before = true,
                    "post:" => is_before = false,
                    _ if is_before => before.entry(module_name(name)).or_default().push(word.to_string()),
                    _ => {}
                }
            }
        }
        let mut aliases: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let wanted: BTreeSet<&String> = before.values().flatten().collect();
        let text = if wanted.is_empty() {
            String::new()
        } else {
            fs::read_to_string(modules.join("modules.alias")).unwrap_or_default()
        };
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let ["alias", alias, name] = words[..]
                && wanted.contains(&alias.to_string())
            {
                aliases.entry(alias.to_string()).or_default().push(module_name(name));
            }
        }
        SoftDependencies { before, aliases }
    }

    /// Names of modules that this one wants loaded before it. Of several implementations of an algorithm the one for any
    /// processor: others may refuse to be loaded.
    fn of_module(&self, name: &str) -> Vec<String> {
        let wanted = self.before.get(name).into_iter().flatten();
        let modules = wanted.flat_map(|wanted| match self.aliases.get(wanted) {
            Some(modules) => match modules.iter().find(|module| module.ends_with("_generic")) {
                Some(generic) => vec![generic.clone()],
                None => modules.clone(),
            },
            None => vec![module_name(wanted)],
        });
        modules.collect()
    }
}

/// Splits `kernel/fs/ext4/ext4.ko: kernel/fs/jbd2/jbd2.ko ...` into file and dependencies.
fn parse_dependencies(table: &str) -> BTreeMap<String, Vec<String>> {
    table
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(file, needed)| (file.trim().to_string(), needed.split_whitespace().map(String::from).collect()))
        .collect()
}

/// The name of a module in the kernel: its file name without directory and suffixes, `-` as `_`.
pub fn module_name(file: &str) -> String {
    let base = file.rsplit('/').next().unwrap_or(file);
    let stem = base.split(".ko").next().unwrap_or(base);
    stem.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_module_requests_while_it_is_loaded_comes_first() {
        let place = tempfile::tempdir().expect("a directory");
        let modules = place.path();
        let table = "a/sum.ko.xz:\na/fs.ko.xz: a/sum.ko.xz\na/fast.ko.xz:\na/sum_generic.ko.xz:\na/late.ko.xz:\n";
        fs::write(modules.join("modules.dep"), table).expect("a file");
        let soft = "# comment\nsoftdep sum pre: algorithm gone post: late\nsoftdep sum_generic pre: sum\n";
        fs::write(modules.join("modules.softdep"), soft).expect("a file");
        fs::write(modules.join("modules.alias"), "alias algorithm fast\nalias algorithm sum_generic\nalias pci:v* x\n")
            .expect("a file");
        let table = ModuleTable::read(modules, "6.1.0").expect("tables");
        let files = table.files(&["fs".to_string()]).expect("all there");
        assert_eq!(files, ["a/sum_generic.ko.xz", "a/sum.ko.xz", "a/fs.ko.xz"].map(PathBuf::from));
        let files = table.files(&["late".to_string()]).expect("all there");
        assert_eq!(files, [PathBuf::from("a/late.ko.xz")]);
    }

    #[test]
    fn dependencies_come_first_and_once() {
        let place = tempfile::tempdir().expect("a directory");
        let modules = place.path();
        let table = "a/x.ko: a/y-z.ko a/w.ko\na/y-z.ko: a/w.ko\na/w.ko:\n";
        fs::write(modules.join("modules.dep"), table).expect("a file");
        fs::write(modules.join("modules.builtin"), "kernel/fs/ext2.ko\n").expect("a file");
        let table = ModuleTable::read(modules, "6.1.0").expect("tables");
        let names = ["y_z".to_string(), "x".to_string(), "ext2".to_string()];
        let files = table.files(&names).expect("all there");
        assert_eq!(files, ["a/w.ko", "a/y-z.ko", "a/x.ko"].map(PathBuf::from));
        assert!(matches!(table.files(&["q".to_string()]), Err(Error::NoModule { .. })));
    }
}
