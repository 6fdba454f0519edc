// SPDX-License-Identifier: GPL-2.0-or-later

use std::time::Instant;

use super::*;
use spile_base::cache::Settings;
use spile_source::diagnostic::render;

fn write(directory: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

/// Names of the files that a script needs from a directory, and the diagnostics.
fn needed(directory: &Path, script: &str, cache: &Cache) -> (Vec<String>, String) {
    let places = Places {
        instead: Some(directory.to_path_buf()),
        release: "6.1.0-5".into(),
        arch: "x86_64".into(),
        ..Places::default()
    };
    let library = Library::open(&places, cache).unwrap();
    let mut sources = SourceMap::new();
    let environment = Environment {
        kernel_release: "6.1.0-5".into(),
        arch: "x86_64".into(),
        runtime: "kernel".into(),
        ..Environment::default()
    };
    let mut problems = Vec::new();
    let macros = library.macros(&mut sources, &environment, &mut problems).unwrap();
    let file = sources.add("<input>", script.into(), Origin::User);
    let (script, wrong) = syntax::parse(&mut sources, file, &environment, &macros);
    assert_eq!(wrong, []);
    let scripts = [script];
    let request = LibraryRequest { scripts: &scripts, ..LibraryRequest::default() };
    let selected = library.select(&mut sources, &environment, &macros, request, &mut problems).unwrap();
    let names = selected.iter().map(|script| {
        let name = Path::new(&sources.file(script.file).name);
        name.strip_prefix(directory).unwrap().to_string_lossy().into_owned()
    });
    (names.collect(), problems.iter().map(|problem| render::render(&sources, problem, false)).collect())
}

const FILES: &[(&str, &str)] = &[
    ("f.stp", "function f() { return g() }"),
    ("g.stp", "global count\nfunction g() { return count }"),
    ("open.stp", "probe sys.open = kernel.function(\"o\") { name = f() }"),
    ("close.stp", "probe sys.close = kernel.function(\"c\") { }"),
    ("old.stp", "%( kernel_v < \"5\" %? function h() { } %)"),
    ("new.stp", "%( kernel_v >= \"5\" %? function h() { } %)"),
    ("made.stp", "@make(m)"),
    ("make.stpm", "@define make(x) %( function made() { } %)"),
    ("broken.stp", "function b() { return"),
    ("broken.stpm", "function nothing() { }"),
];

#[test]
fn files_are_taken_by_need() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), FILES);
    let taken = |script: &str| needed(directory.path(), script, &Cache::none()).0.join(" ");
    assert_eq!(taken("probe begin { }"), "");
    assert_eq!(taken("probe begin { f() }"), "f.stp g.stp");
    assert_eq!(taken("function f() { } probe begin { f() }"), "");
    assert_eq!(taken("function f() { next } probe begin { f() }"), "f.stp g.stp");
    assert_eq!(taken("probe sys.open.return { }"), "f.stp g.stp open.stp");
    assert_eq!(taken("probe sys.* { }"), "close.stp f.stp g.stp open.stp");
    assert_eq!(taken("probe s*.cl* { }"), "close.stp");
    assert_eq!(taken("probe sys { }"), "");
    assert_eq!(taken("probe sys.mine = sys.close { } probe sys.mine { }"), "close.stp");
    assert_eq!(taken("probe begin { h() }"), "new.stp");
    assert_eq!(taken("probe begin { made() }"), "made.stp");
    assert_eq!(taken("probe begin if (count) { }"), "g.stp");
}

#[test]
fn broken_files() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), FILES);
    let (_, messages) = needed(directory.path(), "probe begin { f() }", &Cache::none());
    assert!(
        messages.contains("warning[E0016]") && messages.contains("broken.stpm") && !messages.contains("broken.stp:"),
        "{messages}"
    );
    let (_, messages) = needed(directory.path(), "probe begin { b() }", &Cache::none());
    assert!(messages.contains("error[E00") && messages.contains("broken.stp:"), "{messages}");
}

#[test]
fn the_index_follows_changes() {
    let (directory, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let settings = Settings { directory: Some(place.path().join("cache")), limit: 1 << 24, poisoned: false };
    let cache = Cache::open(&settings);
    write(directory.path(), FILES);
    let script = "probe begin { f() }";
    for _ in 0..2 {
        assert_eq!(needed(directory.path(), script, &cache).0, ["f.stp", "g.stp"]);
    }
    write(directory.path(), &[("f.stp", "function other() { return g() }"), ("z.stp", "function f() { }")]);
    assert_eq!(needed(directory.path(), script, &cache).0, ["z.stp"]);
    std::fs::remove_file(directory.path().join("z.stp")).unwrap();
    assert_eq!(needed(directory.path(), script, &cache).0, [""; 0]);
}

/// SystemTap's own library, where it is installed: a script needs few of its files, and they all parse.
#[test]
fn a_large_library() {
    let directory = Path::new("/usr/share/systemtap/tapset");
    if !directory.is_dir() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let settings = Settings { directory: Some(place.path().join("cache")), limit: 1 << 24, poisoned: false };
    let cache = Cache::open(&settings);
    let script = "probe syscall.open, vfs.read { printf(\"%s %s\\n\", execname(), kernel_string(0)) }";
    let cold = needed(directory, script, &cache);
    let started = Instant::now();
    let warm = needed(directory, script, &cache);
    println!("{} files, {:?}", warm.0.len(), started.elapsed());
    assert_eq!(cold, warm);
    assert_eq!(warm.1, "");
    assert!(warm.0.iter().any(|name| name == "linux/sysc_open.stp") && warm.0.len() < 60, "{:?}", warm.0);
}

#[test]
fn outlines_of_the_embedded_files_come_from_the_cache() {
    let place = tempfile::tempdir().unwrap();
    let settings = Settings { directory: Some(place.path().join("cache")), limit: 1 << 24, poisoned: false };
    let cache = Cache::open(&settings);
    let files = embedded_tapset();
    let read = index::of_embedded(&cache, &files);
    assert_eq!(cache.list().len(), 1);
    assert_eq!(index::of_embedded(&cache, &files), read);
    assert_eq!(index::of_embedded(&Cache::none(), &files), read);
    assert!(
        read.iter().any(|outline| !outline.names.is_empty()) && read.iter().any(|outline| !outline.aliases.is_empty())
    );
    // Entries of other files are of no use.
    assert_eq!(index::of_embedded(&cache, &files[1..]), read[1..]);
}

/// The files of the own library that are read for a script.
fn read_for(script: &str, arguments: &[&str]) -> Vec<String> {
    let library = Library::open(&Places::default(), &Cache::none()).unwrap();
    let arguments = arguments.iter().map(|argument| (*argument).to_string()).collect();
    let environment = Environment { arguments, ..Environment::default() };
    let (mut sources, mut problems, mut macros) = (SourceMap::new(), Vec::new(), LibraryMacros::default());
    let known = macros.for_text(&library, script.as_bytes(), &mut sources, &environment, &mut problems).unwrap();
    let file = sources.add("<input>", script.into(), Origin::User);
    let (script, wrong) = syntax::parse(&mut sources, file, &environment, known);
    assert_eq!(wrong, []);
    let scripts = [script];
    let request = LibraryRequest { scripts: &scripts, ..LibraryRequest::default() };
    library.select(&mut sources, &environment, macros, request, &mut problems).unwrap();
    assert_eq!(problems, []);
    let names = sources.files().map(|file| file.name.clone());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(TAPSET_NAMES)).collect();
    names.sort();
    names
}

#[test]
fn nothing_is_read_that_a_script_does_not_need() {
    assert_eq!(read_for("probe begin { println(@count(a)) } global a", &[]), [""; 0]);
    let macros = ["json", "macros", "prometheus", "walk"].map(|name| format!("{TAPSET_NAMES}{name}.stpm"));
    assert_eq!(read_for("probe begin { println(@uint_cast(1)) }", &[]), macros);
    assert_eq!(read_for("probe begin { println($1) }", &["@uint_cast(1)"]), macros, "by an argument");
    let scheduler = format!("{TAPSET_NAMES}ioscheduler.stp");
    let read = read_for("probe begin { println(disk_major_from_request(1)) }", &[]);
    assert!(read.contains(&scheduler) && read.contains(&macros[1]), "a file that uses one: {read:?}");
    assert!(!read_for("probe begin { println(1) }", &[]).contains(&scheduler));
}
