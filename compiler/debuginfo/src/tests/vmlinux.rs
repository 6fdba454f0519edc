// SPDX-License-Identifier: GPL-2.0-or-later

//! Over the installed kernel with debug information, whichever release it is; skipped with a message if there is none.

use super::*;
use crate::dwarf::Dwarf;
use crate::source::Source;
use spile_base::cache::Cache;
use std::sync::LazyLock;

/// The newest installed vmlinux with debug information; prints a note and gives `None` if there is none.
pub(crate) fn installed() -> Option<PathBuf> {
    let entries = std::fs::read_dir("/usr/lib/debug/boot").ok()?;
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    found.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinux-")));
    found.sort();
    if found.is_empty() {
        println!("skipped: no vmlinux in /usr/lib/debug/boot");
    }
    found.pop()
}

/// Its debug information, read once for all tests.
fn kernel() -> Option<&'static DebugInfo> {
    static KERNEL: LazyLock<Option<DebugInfo>> = LazyLock::new(|| Some(open(&installed()?)));
    KERNEL.as_ref()
}

#[test]
fn vfs_read() {
    let Some(debug) = kernel() else { return };
    let id = only(debug, "vfs_read");
    let function = debug.function(id).expect("is whole");
    assert_eq!(
        (function.name.as_str(), function.file.as_str(), function.external),
        ("vfs_read", "fs/read_write.c", true)
    );
    assert_eq!(function.bodies.len(), 1);
    let body = &function.bodies[0];
    assert_eq!(body.symbol.as_deref(), Some("vfs_read"));
    assert_eq!(debug.elf().symbol_address("vfs_read").expect("symbols"), Some(body.entry));
    let returned = function.return_type.expect("not void");
    assert_eq!(debug.type_name(returned), "ssize_t");
    match debug.resolve(returned).expect("a type").1 {
        Type::Base { size: 8, encoding: BaseEncoding::Signed, .. } => {}
        other => panic!("{other:?}"),
    }
    let parameters = debug.parameters(id).expect("parameters");
    let names: Vec<(String, String)> =
        parameters.iter().map(|parameter| (parameter.name.clone(), debug.type_name(parameter.type_id))).collect();
    let expected = [("file", "struct file*"), ("buf", "char*"), ("count", "size_t"), ("pos", "loff_t*")];
    assert_eq!(names, expected.map(|(name, of)| (name.to_string(), of.to_string())));
    for (index, parameter) in parameters.iter().enumerate() {
        let found = debug.variable(id, body.entry, &parameter.name).expect("is whole").expect("is there");
        assert_eq!(Some(found.location), parameter_register(index).map(Location::Register), "{}", parameter.name);
        assert_eq!(found.type_id, parameter.type_id);
    }
    assert_eq!(debug.variable(id, body.entry, "nothing").expect("is whole"), Err(Unavailable::Unknown));
    let locals: Vec<String> =
        debug.locals(id, body.entry).expect("locals").into_iter().map(|local| local.name).collect();
    assert_eq!(locals, ["ret"]);
}

#[test]
fn struct_file() {
    let Some(debug) = kernel() else { return };
    let file = debug.find_type("struct file").expect("an index").expect("is there");
    let Type::Struct { name, union: false, size, members } = debug.get(file).expect("a type") else { panic!() };
    assert_eq!((name.as_deref(), debug.size_of(file).expect("a size")), (Some("file"), Some(size)));
    assert!(members.iter().any(|member| member.name.is_none()), "struct file has an anonymous union");
    let path = debug.member(file, "f_path").expect("a member");
    let dentry = debug.member(path.type_id, "dentry").expect("a member");
    assert_eq!(debug.type_name(dentry.type_id), "struct dentry*");
    assert_eq!(dentry.offset, 8);
    match debug.member(file, "f_modee") {
        Err(MemberError::NoMember { candidates }) => {
            assert!(candidates.iter().any(|name| name == "f_mode"));
        }
        other => panic!("{other:?}"),
    }
    assert!(debug.find_type("struct no_such_thing").expect("an index").is_none());
    let size_t = debug.find_type("size_t").expect("an index").expect("is there");
    assert_eq!(debug.size_of(size_t).expect("a size"), Some(8));
}

#[test]
fn every_function_near_the_system_calls() {
    let Some(debug) = kernel() else { return };
    let pattern = FunctionPattern { name: "*".into(), file: Some("fs/read_write.c".into()) };
    let found = debug.find_functions(&pattern).expect("an index");
    assert!(found.len() > 50, "{}", found.len());
    for id in found {
        let function = debug.function(id).expect("is whole");
        let parameters = debug.parameters(id).expect("parameters");
        let entries = function.bodies.iter().map(|body| body.entry);
        for at in entries.chain(function.inlined.iter().map(|instance| instance.address)) {
            for variable in parameters.iter().chain(&debug.locals(id, at).expect("locals")) {
                let _ = debug.variable(id, at, &variable.name).expect("is whole");
                assert!(!debug.type_name(variable.type_id).is_empty());
            }
        }
    }
}

/// What is read of all functions is complete, and few parameters have no location at the entry. A part that gcc has split
/// off comes after the rest.
#[test]
fn the_whole_kernel() {
    let Some(debug) = kernel() else { return };
    let found = debug.find_functions(&FunctionPattern { name: "*".into(), file: None }).expect("an index");
    let (mut bodies, mut located, mut missing, mut parts) = (0, 0, 0, 0);
    for id in found {
        let function = debug.function(id).unwrap_or_else(|error| panic!("{id:?}: {error}"));
        bodies += function.bodies.len();
        let Some(body) = function.bodies.first() else { continue };
        assert!(function.bodies.is_sorted_by_key(crate::Body::is_part), "{}", function.name);
        parts += usize::from(!body.is_part() && function.bodies.iter().any(crate::Body::is_part));
        assert!(body.symbol.is_some(), "{}", function.name);
        for variable in debug.parameters(id).expect("parameters") {
            match debug.variable(id, body.entry, &variable.name).expect("is whole") {
                Ok(_) => located += 1,
                Err(_) => missing += 1,
            }
        }
    }
    assert!(bodies > 10_000 && located > 20_000 && parts > 50, "{bodies} {located} {parts}");
    assert!(missing * 50 < located, "{missing} of {located}");
}

/// The rest of a function calls the part that gcc has split off: that is no call of itself.
#[test]
fn a_part_is_not_called() {
    let Some(debug) = kernel() else { return };
    let mut parts = 0;
    for name in ["put_pid", "synchronize_rcu", "getname_flags", "dqput", "vfs_kern_mount", "tcp_xmit_retransmit_queue"]
    {
        for id in debug.find_functions(&FunctionPattern { name: name.into(), file: None }).expect("an index") {
            let function = debug.function(id).expect("is whole");
            parts += function.bodies.iter().filter(|body| body.is_part()).count();
            let calls = debug.calls(id).expect("is whole");
            assert!(calls.iter().all(|call| call.callee != id), "{name} calls itself");
        }
    }
    assert!(parts > 0);
}

/// The cached tables agree with the entries; a truncated or zeroed table is built again.
#[test]
fn tables_in_the_cache() {
    let Some(path) = installed() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("set");
    let settings =
        spile_base::cache::Settings { directory: Some(directory.path().into()), limit: 1 << 30, poisoned: false };
    let open = || {
        let cache = Arc::new(Cache::open(&settings));
        Dwarf::open(Arc::new(Elf::open(&path).expect("an ELF file")), Some(cache)).expect("has DWARF")
    };
    let all = FunctionPattern { name: "*".into(), file: None };
    // All names have a letter: their files are looked up one by one.
    let one_by_one = FunctionPattern { name: "?*".into(), file: Some("fs/read_write.c".into()) };
    let of_file = open().find_functions(&one_by_one).expect("an index");
    assert!(of_file.len() > 50);
    let first = open().find_functions(&all).expect("an index");
    let stored = || -> Vec<PathBuf> {
        let entries = std::fs::read_dir(directory.path().join("index")).expect("is there");
        entries.map(|entry| entry.expect("an entry").path()).collect()
    };
    assert_eq!(stored().len(), 4, "names, functions, units, symbols");
    let read = Elf::open(&path).expect("an ELF file");
    let check = |debug: &Dwarf| {
        let symbols = |elf: &Elf| -> Vec<(String, u64, u64)> {
            let some = elf.all_symbols().expect("symbols").step_by(97);
            some.map(|symbol| (symbol.name.to_string(), symbol.at, symbol.size)).collect()
        };
        assert_eq!(symbols(debug.elf()), symbols(&read));
        let named = |elf: &Elf, name| elf.symbol_address(name).expect("symbols");
        assert_eq!(named(debug.elf(), "vfs_read"), named(&read, "vfs_read"));
        assert_eq!(debug.find_functions(&all).expect("an index"), first);
        assert!(debug.has_function_table());
        for id in first.iter().step_by(211) {
            assert_eq!(debug.function(*id).expect("is in the table"), debug.read_entry(*id));
        }
        let filed = FunctionPattern { name: "vfs_*".into(), file: Some("read_write.c".into()) };
        let filed = debug.find_functions(&filed).expect("an index");
        let names: Vec<Function> = filed.iter().map(|id| debug.read_entry(*id)).collect();
        assert!(names.len() > 10 && names.iter().all(|function| function.file == "fs/read_write.c"), "{names:?}");
        let every = FunctionPattern { name: "*".into(), file: Some("fs/read_write.c".into()) };
        let every = debug.find_functions(&every).expect("an index");
        assert_eq!(every, of_file, "by name, then entry, as without the table");
    };
    check(&open());
    for path in stored() {
        let length = std::fs::metadata(&path).expect("is there").len();
        let file = std::fs::OpenOptions::new().write(true).open(&path).expect("opens");
        file.set_len(length / 2).expect("cut");
    }
    check(&open());
    for path in stored() {
        let length = std::fs::metadata(&path).expect("is there").len();
        std::fs::write(&path, vec![0; length as usize]).expect("written");
    }
    check(&open());
}

/// All variables of a place at once are what each is by itself.
#[test]
fn variables_at_once() {
    let Some(debug) = kernel() else { return };
    let all = FunctionPattern { name: "*".into(), file: Some("fs/read_write.c".into()) };
    let (mut places, mut found) = (0, 0);
    for id in debug.find_functions(&all).expect("an index") {
        let function = debug.function(id).expect("is whole");
        let bodies = function.bodies.iter().map(|body| body.entry);
        for at in bodies.chain(function.inlined.iter().map(|instance| instance.address)).take(4) {
            let parameters = debug.parameters(id).expect("are whole");
            let named = parameters.into_iter().chain(debug.locals(id, at).expect("are whole")).map(|it| it.name);
            let each: Vec<_> =
                named.map(|name| (name.clone(), debug.variable(id, at, &name).expect("is whole"))).collect();
            found += each.iter().filter(|(_, variable)| variable.is_ok()).count();
            let of = |all: &[(String, Result<FoundVariable, Unavailable>)]| format!("{all:?}");
            assert_eq!(of(&debug.variables(id, at).expect("are whole")), of(&each), "{}", function.name);
            places += 1;
        }
    }
    assert!(places > 100 && found > 100, "{places} {found}");
}
