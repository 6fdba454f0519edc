// SPDX-License-Identifier: GPL-2.0-or-later

//! Files whose common entries dwz(1) has moved to a third one.

use super::*;

const HEADER: &str = r#"
enum color { RED, GREEN = 5, BLUE = -2 };
struct inner { char first_of_them; int second_of_them; long third_of_them; enum color color_of_it; };
struct outer { struct inner *pointer_to_inner; int number_of_things; unsigned low_bits:3; char name_of_it[16]; struct inner whole; };
union number { int as_an_int; long as_a_long; char as_bytes[8]; };
static volatile int sink;
static inline __attribute__((always_inline)) int shared_inline(struct outer *given, int count) { sink = count; return given->number_of_things + count; }
"#;

/// `dwz -m` of two programs; None without dwz.
fn programs(options: &[&str]) -> Option<tempfile::TempDir> {
    let directory = tempfile::tempdir().expect("a directory");
    let run = |program: &str, arguments: &[&str]| {
        Command::new(program).current_dir(directory.path()).args(arguments).output()
    };
    for name in ["one", "two"] {
        let text = format!(
            "{HEADER}struct outer object; union number number; int {name}(struct outer *p) {{ return shared_inline(p, 3) + p->whole.second_of_them; }}\n\
             int main(void) {{ return {name}(&object) + number.as_an_int; }}\n"
        );
        std::fs::write(directory.path().join(format!("{name}.c")), text).expect("written");
        let source = format!("{name}.c");
        let linking = [
            "-g",
            "-O1",
            "-fno-inline-functions",
            "-nostdlib",
            "-static",
            "-Wl,-e,main,--build-id",
            "-o",
            name,
            source.as_str(),
        ];
        let gcc = run("gcc", &[options, &linking].concat()).expect("gcc runs");
        assert!(gcc.status.success(), "{}", String::from_utf8_lossy(&gcc.stderr));
    }
    let dwz = run("dwz", &["-m", "common.debug", "one", "two"]).ok()?;
    assert!(dwz.status.success(), "{}", String::from_utf8_lossy(&dwz.stderr));
    Some(directory)
}

fn what_is_shared_is_found(options: &[&str]) {
    let Some(directory) = programs(options) else { return println!("skipped: no dwz") };
    let path = directory.path().join("one");
    let elf = Elf::open(&path).expect("an ELF file");
    assert!(elf.has_section(".gnu_debugaltlink"), "nothing was found to share");
    let debug = open(&path);
    let outer = type_named(&debug, "struct outer");
    let member = debug.member(outer, "name_of_it").expect("a member");
    assert_eq!(debug.type_name(member.type_id), "char[16]");
    let pointer = debug.member(outer, "pointer_to_inner").expect("a member");
    assert_eq!((debug.type_name(pointer.type_id).as_str(), pointer.offset), ("struct inner*", 0));
    assert!(debug.find_type("union number").expect("an index").is_some());
    assert_eq!(debug.enumerator("GREEN").expect("is whole"), Some(5));
    // The function has its origin there, and is inlined here.
    let inlined = debug.function(only(&debug, "shared_inline")).expect("a function");
    assert_eq!((inlined.file.as_str(), inlined.inlined.len()), ("one.c", 1));
    let one = only(&debug, "one");
    assert_eq!(debug.parameters(one).expect("parameters").len(), 1);
    let at = inlined.inlined[0].address;
    let found = debug.variable(only(&debug, "shared_inline"), at, "count").expect("is whole").expect("is there");
    assert_eq!(debug.type_name(found.type_id), "int");
    std::fs::remove_file(directory.path().join("common.debug")).expect("removed");
    let error =
        DebugInfo::open(Arc::new(Elf::open(&path).expect("an ELF file")), None, None).err().expect("a part is missing");
    assert!(error.to_string().contains("common.debug"), "{error}");
}

#[test]
fn of_dwarf_5() {
    what_is_shared_is_found(&["-gdwarf-5"]);
}

#[test]
fn of_dwarf_4() {
    what_is_shared_is_found(&["-gdwarf-4"]);
}

/// Within one file: units that others import.
#[test]
fn partial_units() {
    let directory = tempfile::tempdir().expect("a directory");
    let run = |program: &str, arguments: &[&str]| {
        Command::new(program).current_dir(directory.path()).args(arguments).output()
    };
    for name in ["one", "two"] {
        let text = format!(
            "{HEADER}struct outer {name}_object; int {name}(struct outer *p) {{ return shared_inline(p, 3); }}\n"
        );
        std::fs::write(directory.path().join(format!("{name}.c")), text).expect("written");
    }
    let linking = ["-g", "-O1", "-nostdlib", "-static", "-Wl,-e,one,--build-id", "-o", "both", "one.c", "two.c"];
    let gcc = run("gcc", &linking).expect("gcc runs");
    assert!(gcc.status.success(), "{}", String::from_utf8_lossy(&gcc.stderr));
    let Ok(dwz) = run("dwz", &["both"]) else { return println!("skipped: no dwz") };
    assert!(dwz.status.success(), "{}", String::from_utf8_lossy(&dwz.stderr));
    let debug = open(&directory.path().join("both"));
    let inner = type_named(&debug, "struct inner");
    assert_eq!(debug.size_of(inner).expect("a size"), Some(24));
    let inlined =
        debug.find_functions(&FunctionPattern { name: "shared_inline".into(), file: None }).expect("an index");
    let copies: usize = inlined.iter().map(|id| debug.function(*id).expect("a function").inlined.len()).sum();
    assert_eq!(copies, 2);
}
