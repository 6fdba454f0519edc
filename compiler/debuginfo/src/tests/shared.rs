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

const SCOPES: &str = "
    namespace lib { struct Box { int first_value; static int number_made; int peek_inside(int by) { return first_value + by; }
        int poke_inside(int by); struct Hidden; Hidden *hidden_in_box; }; }
    namespace other { struct Box { long another_value; char name_of_it[32]; }; }
    inline __attribute__((always_inline)) int peeking(lib::Box *box) { return box->peek_inside(3); }";

/// The same of C++: units that are shared have no language in DWARF 4.
#[test]
fn partial_units_with_scopes() {
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let directory = tempfile::tempdir().expect("a directory");
        let run = |program: &str, arguments: &[&str]| {
            Command::new(program).current_dir(directory.path()).args(arguments).output()
        };
        std::fs::write(directory.path().join("shared.h"), SCOPES).expect("written");
        let members = "int lib::Box::number_made = 4; int lib::Box::poke_inside(int by) { return first_value -= by + number_made; }";
        let hidden = "struct lib::Box::Hidden { char pad[8]; int deep; }; lib::Box::Hidden hidden;";
        for (name, more) in [("one", members), ("two", ""), ("three", hidden)] {
            let objects = format!("lib::Box {name}_object; other::Box {name}_other;");
            let text = format!(
                "#include \"shared.h\"\n{objects} int {name}() {{ return peeking(&{name}_object); }}\n{more}\n"
            );
            std::fs::write(directory.path().join(format!("{name}.cc")), text).expect("written");
        }
        let linking = ["-std=c++17", "-g", "-O1", "-nostdlib", "-static", "-Wl,-e,_Z3onev,--build-id", "-o", "all"];
        let gcc = run("g++", &[&linking[..], &[version, "one.cc", "two.cc", "three.cc"]].concat()).expect("g++ runs");
        assert!(gcc.status.success(), "{}", String::from_utf8_lossy(&gcc.stderr));
        let Ok(dwz) = run("dwz", &["all"]) else { return println!("skipped: no dwz") };
        assert!(dwz.status.success(), "{}", String::from_utf8_lossy(&dwz.stderr));
        let debug = open(&directory.path().join("all"));
        let found = |name: &str| {
            let pattern = FunctionPattern { name: name.into(), file: None };
            debug.find_functions(&pattern).expect("an index")
        };
        let copies = |id: &FunctionId| debug.function(*id).expect("a function").inlined.len();
        assert_eq!(found("lib::Box::peek_inside").iter().map(copies).sum::<usize>(), 3, "{version}");
        assert_eq!(found("lib::Box::poke_inside").len(), 1, "{version}");
        assert!(debug.global("lib::Box::number_made", None).expect("an index").is_ok(), "{version}");
        let own = type_named(&debug, "lib::Box");
        assert_eq!(debug.size_of(own).expect("a size"), Some(16));
        assert_eq!(debug.size_of(type_named(&debug, "other::Box")).expect("a size"), Some(40));
        let hidden = debug.member(own, "hidden_in_box").expect("a member").type_id;
        let Type::Pointer(Some(hidden)) = debug.resolve(hidden).expect("is whole").1 else { panic!("no pointer") };
        assert_eq!(debug.member(hidden, "deep").expect("is defined").offset, 8, "{version}");
    }
}
