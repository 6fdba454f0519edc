// SPDX-License-Identifier: GPL-2.0-or-later

//! Dependencies of external modules, from `depends=` in their section .modinfo (written by modpost).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSection};

use super::kernel::Kernel;
use super::module_table::{ModuleTable, module_name};

/// The dependencies of a set of external modules.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ModuleDependencies {
    /// Modules of the kernel itself.
    pub(super) own: Vec<String>,
    /// Modules that are neither of the kernel itself nor in the set.
    pub(super) missing: Vec<String>,
}

impl ModuleDependencies {
    /// The dependencies of `files`.
    pub(super) fn of(kernel: &Kernel, files: &[PathBuf]) -> ModuleDependencies {
        let names: BTreeSet<String> = files.iter().map(|file| module_name(&file.to_string_lossy())).collect();
        let needed: BTreeSet<String> = files.iter().flat_map(|file| direct(file)).collect();
        let others = needed.into_iter().filter(|name| !names.contains(name));
        let modules = kernel.module_table().ok();
        let is_own = |name: &String| modules.as_ref().is_some_and(|all| all.files(std::slice::from_ref(name)).is_ok());
        let (own, missing) = others.partition(is_own);
        ModuleDependencies { own, missing }
    }
}

/// Lines of modules.dep for these modules, which are in the directory `extra`: each module with all its dependencies,
/// the last to be loaded first. Missing modules are omitted.
pub(super) fn table(kernel: &Kernel, files: &[PathBuf]) -> String {
    let place = |name: &str| format!("extra/{name}.ko");
    let modules = if files.is_empty() { None } else { kernel.module_table().ok() };
    let needs: BTreeMap<String, Vec<String>> =
        files.iter().map(|file| (module_name(&file.to_string_lossy()), direct(file))).collect();
    let mut text = String::new();
    for name in needs.keys() {
        // Dependencies first.
        let mut order: Vec<String> = Vec::new();
        visit(modules.as_ref(), &needs, &place, name, &mut BTreeSet::new(), &mut order);
        let before: Vec<String> = order.into_iter().filter(|file| *file != place(name)).rev().collect();
        let blank = if before.is_empty() { "" } else { " " };
        text.push_str(&format!("{}:{blank}{}\n", place(name), before.join(" ")));
    }
    text
}

fn visit(
    modules: Option<&ModuleTable>,
    needs: &BTreeMap<String, Vec<String>>,
    place: &dyn Fn(&str) -> String,
    name: &str,
    seen: &mut BTreeSet<String>,
    order: &mut Vec<String>,
) {
    if !seen.insert(name.to_string()) {
        return;
    }
    match needs.get(name) {
        Some(needed) => {
            needed.iter().for_each(|needed| visit(modules, needs, place, needed, seen, order));
            order.push(place(name));
        }
        None => {
            for file in modules.and_then(|all| all.files(&[name.to_string()]).ok()).unwrap_or_default() {
                let file = file.display().to_string();
                if !order.contains(&file) {
                    order.push(file);
                }
            }
        }
    }
}

/// Names of the direct dependencies of a module. Empty if the file cannot be read: loading it reports the error.
fn direct(file: &Path) -> Vec<String> {
    let image = fs::read(file).unwrap_or_default();
    let info = object::File::parse(&*image).ok().and_then(|object| {
        let section = object.section_by_name(".modinfo")?;
        section.data().ok().map(<[u8]>::to_vec)
    });
    of_modinfo(&info.unwrap_or_default())
}

/// The names in `depends=a,b` of a section of strings.
fn of_modinfo(info: &[u8]) -> Vec<String> {
    let entries = info.split(|byte| *byte == 0).filter_map(|entry| entry.strip_prefix(b"depends="));
    let names = entries.flat_map(|names| names.split(|byte| *byte == b','));
    names.filter(|name| !name.is_empty()).map(|name| module_name(&String::from_utf8_lossy(name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_modinfo() {
        assert_eq!(of_modinfo(b"license=GPL\0depends=ptlrpc,obd-class\0name=lustre\0"), ["ptlrpc", "obd_class"]);
        assert_eq!(of_modinfo(b"depends=\0"), [""; 0]);
    }

    /// A kernel with one module, and three external modules: c needs b and a missing one, b needs a and the kernel's.
    #[test]
    fn modules_of_a_set_are_loaded_in_their_order() {
        let place = tempfile::tempdir().unwrap();
        let modules = place.path().join("modules");
        fs::create_dir(&modules).unwrap();
        fs::write(modules.join("modules.dep"), "kernel/k.ko:\n").unwrap();
        let kernel = Kernel { release: "6.1.0".into(), image: PathBuf::new(), modules };
        let file = |name: &str, depends: &str| {
            let path = place.path().join(format!("{name}.ko"));
            let mut object = object::write::Object::new(
                object::BinaryFormat::Elf,
                object::Architecture::X86_64,
                object::Endianness::Little,
            );
            let section = object.add_section(Vec::new(), b".modinfo".to_vec(), object::SectionKind::ReadOnlyData);
            object.append_section_data(section, format!("depends={depends}\0").as_bytes(), 1);
            fs::write(&path, object.write().unwrap()).unwrap();
            path
        };
        let files = [file("c", "b,gone"), file("b", "a,k"), file("a", "")];
        let extra = ModuleDependencies::of(&kernel, &files);
        assert_eq!(extra, ModuleDependencies { own: vec!["k".into()], missing: vec!["gone".into()] });
        assert_eq!(
            table(&kernel, &files),
            "extra/a.ko:\nextra/b.ko: kernel/k.ko extra/a.ko\nextra/c.ko: extra/b.ko kernel/k.ko extra/a.ko\n"
        );
    }
}
