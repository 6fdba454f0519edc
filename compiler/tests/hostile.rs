// SPDX-License-Identifier: GPL-2.0-or-later

//! Malicious input: scripts through passes 1 to 3 and object files through the readers. Every input gets an answer or an
//! error, no panic and no hang. Random from fixed seeds.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails may say so in any way"
)]

use std::process::Command;
use std::sync::Arc;

use spile_debuginfo::{DebugInfo, Elf, FunctionPattern, Type, TypeId};

#[allow(dead_code, reason = "not every user of the targets calls all of it")]
#[path = "../fuzz/targets/mod.rs"]
mod targets;

use targets::die::{Tree, Value, at, tag};
use targets::scripts::compile;

/// A generator of Knuth's MMIX kind.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below.max(1)
    }
}

const SEEDS: [&str; 5] = [
    "global a = 1, s = \"x\"\nprobe begin { a += 2; s .= sprintf(\"%d %s\", a, execname()); if (a > 3 && s != \"y\") print(s) else exit() }",
    "function f:long (x:long, t) { for (i = 0; i < x; i++) { if (i == 3) continue; try { x = x / i } catch (m) { t = m . t } } return strlen(t) }\nprobe timer.s(1) { printf(\"%5d %-3s|%c\\n\", f(4, \"ab\"), \"q\", 65) }",
    "probe begin(-1), end, timer.ms(10).randomize(3) { x = y++ ? --z : ~w; while (x--) { next } delete x; println(x, 1) }",
    "private global g\nfunction h(a) %{ STAP_RETVALUE = STAP_ARG_a; %}\nprobe never { g = h(1) << 3 >>> 2 ^ 7 | 1 & ~2; g--; print(g % 0) }",
    "probe a = begin { v = 1 }\nprobe a, b ?, c.d(\"x\") ! { print(v) warn(\"w\") error(\"e\") log(substr(\"abc\", 0, 1)) }",
];

/// Each alias names the one before twice: 2^40 points.
#[test]
fn aliases_that_double_end_at_the_limit() {
    let mut text = String::from("probe a0 = begin, end { }\n");
    for number in 1..40 {
        text.push_str(&format!("probe a{number} = a{before}, a{before} {{ x = 1 }}\n", before = number - 1));
    }
    text.push_str("probe a39 { println(x) }\n");
    assert!(!compile(text.as_bytes()));
}

#[test]
fn ten_thousand_scripts() {
    let mut random = Random(5642);
    let mut good = 0;
    for seed in SEEDS {
        assert!(compile(seed.as_bytes()), "{seed}");
    }
    for round in 0..10_000 {
        let mut text = SEEDS[random.next(SEEDS.len())].as_bytes().to_vec();
        let other = SEEDS[random.next(SEEDS.len())].as_bytes();
        for _ in 0..1 + random.next(4) {
            let at = random.next(text.len());
            match random.next(6) {
                0 => text[at] = random.next(256) as u8,
                1 => drop(text.remove(at)),
                2 => text.insert(at, b"(){}[];,.$@%\"+-*/=<>!&|?:"[random.next(25)]),
                3 => text.truncate(at.max(1)),
                // A piece of another script: names and types that do not fit.
                4 => {
                    let from = random.next(other.len());
                    let length = random.next(30).min(other.len() - from);
                    text.splice(at..at, other[from..from + length].iter().copied());
                }
                _ => {
                    let to = at + random.next(text.len() - at).min(20);
                    let piece = text[at..to].to_vec();
                    let place = random.next(text.len());
                    text.splice(place..place, piece);
                }
            }
            if text.is_empty() {
                text.push(b' ');
            }
        }
        good += usize::from(compile(&text));
        assert!(text.len() < 10_000, "round {round}");
    }
    // Enough of them must get past the parser for the later passes to be tried at all.
    assert!(good > 500, "only {good} of the scripts came through");
}

const C: &str = "
struct inner { int a : 3; unsigned b : 9; long long c : 40; signed char d; };
union both { struct inner in; unsigned short s[4]; };
enum kind { low = -2, high = 7 };
struct outer { union both u; struct { int x, y; }; enum kind k; struct outer *next; char name[16]; double f; int m[2][3]; _Bool ok; };
typedef struct outer outer_t;
static __attribute__((noinline)) int first(outer_t *o, int i) { return o->m[1][i] + (int)o->u.in.b; }
int second(outer_t *o, const char *t) { return first(o, t[0]) + o->x; }
static inline __attribute__((always_inline)) long third(long v) { __asm__ volatile (\"nop\" : \"+r\"(v)); return v * 3; }
long fourth(long v) { return third(v) + third(v + 1); }
";

/// The sample as an object file.
fn object() -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let (source, object) = (directory.path().join("x.c"), directory.path().join("x.o"));
    std::fs::write(&source, C).unwrap();
    let status = Command::new("gcc").args(["-g", "-O2", "-c", "-o"]).arg(&object).arg(&source).status().unwrap();
    assert!(status.success());
    std::fs::read(&object).unwrap()
}

fn open(bytes: Vec<u8>) -> Result<DebugInfo, spile_debuginfo::Error> {
    let file = tempfile::Builder::new().suffix(".o").tempfile().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    DebugInfo::open(Arc::new(Elf::open(file.path())?), None, None)
}

/// Small modules of an installed kernel with their debug information, at most `count`.
fn real_modules(count: usize) -> Vec<Vec<u8>> {
    let (mut found, mut open) = (Vec::new(), vec![std::path::PathBuf::from("/usr/lib/debug/lib/modules")]);
    while let Some(directory) = open.pop() {
        for path in std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()) {
            let size = std::fs::symlink_metadata(&path).map_or(0, |metadata| metadata.len());
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|end| end == "ko") {
                found.push((size, path));
            }
        }
    }
    found.sort();
    found.into_iter().take(count).filter_map(|(_, path)| std::fs::read(path).ok()).collect()
}

/// Inputs that the fuzzer has found to reach new code (fuzz/Cargo.toml), each file once, within a time limit.
#[test]
fn the_fuzzers_corpus() {
    const TIME: std::time::Duration = std::time::Duration::from_secs(15);
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/debuginfo");
    let files: Vec<_> =
        std::fs::read_dir(corpus).expect("it is part of the sources").flatten().map(|entry| entry.path()).collect();
    assert!(files.len() > 20, "{} files", files.len());
    let begun = std::time::Instant::now();
    let mut opened = 0;
    for file in files.iter().take_while(|_| begun.elapsed() < TIME) {
        let bytes = std::fs::read(file).expect("can be read");
        opened += usize::from(open(bytes.clone()).is_ok());
        walk(bytes);
    }
    assert!(opened > 0, "none was an object file any more");
}

/// Mutations of real kernels' files, within a time limit.
#[test]
fn damaged_modules() {
    const TIME: std::time::Duration = std::time::Duration::from_secs(15);
    let modules = real_modules(12);
    if modules.is_empty() {
        return println!("skipped: no debug information of modules");
    }
    let (started, mut random, mut runs) = (std::time::Instant::now(), Random(7), 0);
    while started.elapsed() < TIME {
        let mut damaged = modules[random.next(modules.len())].clone();
        for _ in 0..1 + random.next(20) {
            let at = random.next(damaged.len());
            match random.next(3) {
                0 => damaged[at] ^= 1 << random.next(8),
                1 => damaged[at] = [0, 0xff, 0x7f, 0x80][random.next(4)],
                // A piece of it somewhere else.
                _ => {
                    let (from, length) = (random.next(damaged.len()), 1 + random.next(64));
                    let piece: Vec<u8> = damaged.iter().skip(from).take(length).copied().collect();
                    damaged.iter_mut().skip(at).zip(piece).for_each(|(place, byte)| *place = byte);
                }
            }
        }
        walk(damaged);
        runs += 1;
    }
    println!("{runs} damaged modules");
    assert!(runs > 10);
}

/// Calls every query; true if all were answered.
fn walk(bytes: Vec<u8>) -> bool {
    let Ok(debug) = open(bytes) else { return false };
    let mut whole = true;
    let functions = debug.find_functions(&FunctionPattern { name: "*".into(), file: None });
    whole &= functions.is_ok();
    for id in functions.unwrap_or_default() {
        let Ok(function) = debug.function(id) else {
            whole = false;
            continue;
        };
        let _ = (debug.statements(id), debug.calls(id), debug.labels(id));
        for entry in
            function.bodies.iter().map(|body| body.entry).chain(function.inlined.iter().map(|copy| copy.address))
        {
            let mut variables = debug.parameters(id).unwrap_or_default();
            variables.extend(debug.locals(id, entry).unwrap_or_default());
            for variable in variables {
                whole &= debug.variable(id, entry, &variable.name).is_ok();
                walk_type(&debug, variable.type_id, 0);
            }
        }
    }
    for name in ["struct outer", "union both", "enum kind", "outer_t", "int"] {
        match debug.find_type(name) {
            Ok(Some(id)) => walk_type(&debug, id, 0),
            _ => whole = false,
        }
    }
    let _ = debug.export(None);
    whole
}

fn walk_type(debug: &DebugInfo, id: TypeId, depth: usize) {
    let _ = (debug.size_of(id), debug.type_name(id), debug.member(id, "x"));
    if depth > 6 {
        return;
    }
    match debug.resolve(id) {
        Ok((_, Type::Struct { members, .. })) => {
            members.iter().take(50).for_each(|member| walk_type(debug, member.type_id, depth + 1));
        }
        Ok((_, Type::Array { element, .. } | Type::Pointer(Some(element)))) => walk_type(debug, element, depth + 1),
        _ => {}
    }
}

#[test]
fn a_whole_object_is_read() {
    let debug = open(object()).unwrap();
    let outer = debug.find_type("struct outer").unwrap().unwrap();
    let offset = |name: &str| {
        debug.member(outer, name).ok().map(|member| (member.offset, member.bits.map(|bits| (bits.first, bits.bits))))
    };
    // As gcc lays it out on x86-64; `x` and `y` are members of an anonymous struct.
    assert_eq!(offset("x"), Some((8, None)));
    assert_eq!(offset("y"), Some((12, None)));
    assert_eq!(offset("k"), Some((16, None)));
    assert_eq!(offset("name"), Some((32, None)));
    let inner = debug.find_type("struct inner").unwrap().unwrap();
    let bits = |name: &str| {
        debug
            .member(inner, name)
            .ok()
            .map(|member| (member.offset * 8 + member.bits.unwrap().first, member.bits.unwrap().bits))
            .unwrap()
    };
    assert_eq!((bits("a"), bits("b")), ((0, 3), (3, 9)));
    assert_eq!(bits("c").1, 40);
    let kind = debug.find_type("enum kind").unwrap().unwrap();
    assert!(matches!(debug.resolve(kind), Ok((_, Type::Enum { signed: true, size: 4, .. }))));
    let functions = debug.find_functions(&FunctionPattern { name: "third".into(), file: None }).unwrap();
    let third = debug.function(functions[0]).unwrap();
    assert!(third.bodies.is_empty() && !third.inlined.is_empty(), "{third:?}");
    assert!(walk(object()));
}

#[test]
fn damaged_objects() {
    let bytes = object();
    for end in (0..bytes.len()).step_by(23) {
        walk(bytes[..end].to_vec());
    }
    let mut random = Random(1);
    let mut refused = 0;
    for _ in 0..3_000 {
        let mut damaged = bytes.clone();
        for _ in 0..1 + random.next(8) {
            let at = random.next(damaged.len());
            damaged[at] ^= 1 << random.next(8);
        }
        refused += usize::from(!walk(damaged));
    }
    assert!(refused > 100, "only {refused} of 3000 were noticed");
}

/// Of a kernel that is nothing but this DWARF: what `spile` with these arguments says, with less memory than a browser's tab.
/// Its exit status, standard output and standard error. A signal or a timeout is a failure.
fn run_on(object: Vec<u8>, arguments: &[&str]) -> (i32, String, String) {
    let root = tempfile::tempdir().unwrap();
    for directory in ["usr/lib/debug/boot", "lib/modules/9.9.9", "tmp", "cache"] {
        std::fs::create_dir_all(root.path().join(directory)).unwrap();
    }
    std::fs::write(root.path().join("usr/lib/debug/boot/vmlinux-9.9.9"), object).unwrap();
    let mut command = Command::new("sh");
    command
        .args([
            "-c",
            "ulimit -v 1500000; exec timeout 100 \"$@\"",
            "sh",
            env!("CARGO_BIN_EXE_spile"),
            "-g",
            "-r",
            "9.9.9",
            "--sysroot",
        ])
        .arg(root.path());
    command
        .args(arguments)
        .env("SPILE_CACHE_DIR", root.path().join("cache"))
        .env("HOME", root.path())
        .env("MALLOC_ARENA_MAX", "2")
        .env("RAYON_NUM_THREADS", "2");
    let output = command.env_remove("DEBUGINFOD_URLS").output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    let status = output.status.code().unwrap_or_else(|| panic!("{arguments:?}: {}\n{error}", output.status));
    assert!(matches!(status, 0 | 1) && !error.contains("panicked"), "{arguments:?}: {status}\n{error}");
    (status, out, error)
}

/// An error that names the file and the limit.
fn refused(object: Vec<u8>, script: &str, limit: &str) {
    let (status, _, error) = run_on(object, &["-p2", "-e", script]);
    assert!(status == 1 && error.contains(limit) && error.contains("vmlinux-9.9.9"), "{script}: {status}\n{error}");
}

fn listed(object: Vec<u8>) -> String {
    let (status, out, error) = run_on(object, &["-L", "kernel.function(\"f\")"]);
    assert!(status == 0 && out.contains("kernel.function(\"f"), "{status} {out}\n{error}");
    out
}

fn int(tree: &mut Tree) -> usize {
    tree.add(
        0,
        tag::BASE,
        vec![(at::NAME, Value::Text("int")), (at::BYTE_SIZE, Value::Number(8)), (at::ENCODING, Value::Number(5))],
    )
}

/// `x` is in the register rdi.
const IN_RDI: [u8; 1] = [0x55];
/// `x` is where rdi points to.
const AT_RDI: [u8; 2] = [0x75, 0];

/// DW_OP_breg5 0, then DW_OP_dup and DW_OP_plus 26 times: 67 million nodes, were it a tree.
#[test]
fn an_expression_that_doubles() {
    let expression = [&[0x75, 0][..], &[0x12, 0x22].repeat(26)].concat();
    let mut tree = Tree::new();
    let of = int(&mut tree);
    tree.add_function(of, expression);
    refused(
        tree.object(),
        "probe kernel.function(\"f\") { println($x) }",
        "its location as an expression: more than the 16384 steps",
    );
    // A compiler writes fewer.
    let mut tree = Tree::new();
    let of = int(&mut tree);
    tree.add_function(of, [&[0x75, 0][..], &[0x12, 0x22].repeat(5)].concat());
    assert_eq!(run_on(tree.object(), &["-p2", "-e", "probe kernel.function(\"f\") { println($x) }"]).0, 0);
}

/// Each level is one more node around the last.
#[test]
fn an_expression_that_nests() {
    let mut tree = Tree::new();
    let of = int(&mut tree);
    tree.add_function(of, [&[0x75, 0][..], &[0x1f].repeat(900)].concat());
    refused(tree.object(), "probe kernel.function(\"f\") { println($x) }", "nested deeper than the 256 levels");
}

/// Its result is of the same type, and so is each of its parameters: thirteen times as much a level.
#[test]
fn a_function_type_of_itself() {
    let mut tree = Tree::new();
    let pointer = tree.add(0, tag::POINTER, vec![(at::TYPE, Value::Entry(2)), (at::BYTE_SIZE, Value::Number(8))]);
    let function = tree.add(0, tag::FUNCTION_TYPE, vec![(at::TYPE, Value::Entry(2))]);
    assert_eq!((pointer, function), (1, 2));
    for _ in 0..12 {
        tree.add(function, tag::PARAMETER, vec![(at::TYPE, Value::Entry(2))]);
    }
    tree.add_function(pointer, IN_RDI.to_vec());
    let line = listed(tree.object());
    assert!(line.contains("...") && line.len() < 100_000, "{}", line.len());
}

#[test]
fn a_struct_that_is_a_member_of_itself() {
    let mut tree = Tree::new();
    let own = tree.add(0, tag::STRUCT, vec![(at::NAME, Value::Text("list")), (at::BYTE_SIZE, Value::Number(8))]);
    tree.add(own, tag::MEMBER, vec![(at::TYPE, Value::Entry(own)), (at::MEMBER_PLACE, Value::Number(0))]);
    tree.add_function(own, AT_RDI.to_vec());
    refused(
        tree.object(),
        "probe kernel.function(\"f\") { println($x$$) }",
        "members of a value that is printed: nested deeper than the 64 levels",
    );
    let (status, _, error) =
        run_on(tree.object(), &["-p2", "-e", "probe kernel.function(\"f\") { println($x->field) }"]);
    assert!(status == 1 && error.contains("field"), "{error}");
    assert!(listed(tree.object()).contains("$x:struct list"));
    // A bit-field whose storage is the struct that it is in (DWARF 2).
    tree.add(
        own,
        tag::MEMBER,
        vec![
            (at::NAME, Value::Text("field")),
            (at::TYPE, Value::Entry(own)),
            (at::BIT_SIZE, Value::Number(3)),
            (at::BIT_OFFSET, Value::Number(1)),
        ],
    );
    run_on(tree.object(), &["-p2", "-e", "probe kernel.function(\"f\") { println($x->field) }"]);
}

#[test]
fn an_enumeration_of_itself() {
    let mut tree = Tree::new();
    let own = tree.add(0, tag::ENUMERATION, vec![(at::NAME, Value::Text("list")), (at::TYPE, Value::Entry(1))]);
    tree.add(own, tag::ENUMERATOR, vec![(at::NAME, Value::Text("A")), (at::CONST_VALUE, Value::Number(1))]);
    tree.add_function(own, IN_RDI.to_vec());
    refused(tree.object(), "probe kernel.function(\"f\") { println($x) }", "an integer type without an end");
}

/// Twelve levels of a struct with twelve anonymous members of the next one: nine million million of them.
#[test]
fn anonymous_members_that_fan_out() {
    let mut tree = Tree::new();
    let mut inner = tree.add(0, tag::STRUCT, vec![(at::BYTE_SIZE, Value::Number(8))]);
    let of = int(&mut tree);
    tree.add(
        inner,
        tag::MEMBER,
        vec![(at::NAME, Value::Text("list")), (at::TYPE, Value::Entry(of)), (at::MEMBER_PLACE, Value::Number(0))],
    );
    for _ in 0..12 {
        let outer = tree.add(0, tag::UNION, vec![(at::BYTE_SIZE, Value::Number(8))]);
        for _ in 0..12 {
            tree.add(outer, tag::MEMBER, vec![(at::TYPE, Value::Entry(inner)), (at::MEMBER_PLACE, Value::Number(0))]);
        }
        inner = outer;
    }
    tree.add_function(inner, AT_RDI.to_vec());
    assert_eq!(run_on(tree.object(), &["-p2", "-e", "probe kernel.function(\"f\") { println($x->list) }"]).0, 0);
    let (status, _, error) =
        run_on(tree.object(), &["-p2", "-e", "probe kernel.function(\"f\") { println($x->field) }"]);
    assert!(status == 1 && error.contains("field") && error.contains("list"), "{error}");
    refused(
        tree.object(),
        "probe kernel.function(\"f\") { println($x$$) }",
        "members of a value that is printed: more than the 65536 steps",
    );
    listed(tree.object());
}

/// DW_OP_lit1, DW_OP_lit0, then DW_OP_div or DW_OP_mod.
const DIVISIONS: [[u8; 3]; 2] = [[0x31, 0x30, 0x1b], [0x31, 0x30, 0x1d]];

/// What C is made of a probe of `f` that prints `$x`.
fn emitted(object: Vec<u8>) -> String {
    emitted_at(object, "kernel.function(\"f\")")
}

/// What C is made of a probe of this point that prints `$x`.
fn emitted_at(object: Vec<u8>, point: &str) -> String {
    let (status, out, error) = run_on(object, &["-p3", "-e", &format!("probe {point} {{ println($x) }}")]);
    assert!(status == 0, "{error}");
    out
}

/// The class of CVE-2011-1769: a variable's location divides by zero. The module divides by what checks its divisor.
#[test]
fn a_location_that_divides_by_zero() {
    for (division, checked) in DIVISIONS.into_iter().zip(["spile_divide(c, ", "spile_modulo(c, "]) {
        for end in [&[0x9f][..], &[]] {
            // By a constant, and by what is in a register. DW_OP_stack_value: the value is x, and not where it is.
            for expression in [division.to_vec(), [&[0x31, 0x75, 0][..], &division[2..]].concat()] {
                let mut tree = Tree::new();
                let of = int(&mut tree);
                tree.add_function(of, [&expression, end].concat());
                let out = emitted(tree.object());
                assert!(out.contains(checked), "{expression:x?}: {out}");
            }
        }
    }
    // The smallest number by -1 traps as well: DW_OP_const8s, DW_OP_const1s, DW_OP_div, DW_OP_stack_value.
    let mut tree = Tree::new();
    let of = int(&mut tree);
    tree.add_function(of, [&[0x0f][..], &i64::MIN.to_le_bytes(), &[0x09, 0xff, 0x1b, 0x9f]].concat());
    emitted(tree.object());
}

/// DW_TAG_label
const LABEL: u16 = 0x0a;

/// A `.debug_frame` of the code whose frame address is that expression.
fn frame_that_is(expression: &[u8]) -> targets::elf::Section {
    let (start, length) = targets::elf::CODE;
    // CIE: id, version, augmentation, alignments, return address; DW_CFA_def_cfa_expression. FDE: CIE, range.
    let rule = [0xff, 0xff, 0xff, 0xff, 1, 0, 1, 0x78, 16, 0x0f, expression.len() as u8];
    let cie = [&rule[..], expression].concat();
    let fde = [&[0; 4][..], &start.to_le_bytes(), &length.to_le_bytes()].concat();
    let entries = [cie, fde];
    let frame = entries.iter().flat_map(|entry| [&(entry.len() as u32).to_le_bytes()[..], entry].concat()).collect();
    targets::elf::Section::plain(".debug_frame", frame)
}

/// The class of CVE-2011-1781: the rule for a frame's address divides by zero (DW_CFA_def_cfa_expression). The module divides by
/// what checks its divisor.
#[test]
fn a_frame_that_divides_by_zero() {
    for (division, checked) in DIVISIONS.into_iter().zip(["spile_divide(c, ", "spile_modulo(c, "]) {
        for expression in [division.to_vec(), [&[0x31, 0x75, 0][..], &division[2..]].concat()] {
            let mut tree = Tree::new();
            let of = int(&mut tree);
            // DW_OP_call_frame_cfa
            let function = tree.add_function(of, vec![0x9c]);
            // At the function's beginning its frame's address is known without the table.
            let behind = Value::Address(targets::elf::CODE.0 + 8);
            tree.add(function, LABEL, vec![(at::NAME, Value::Text("behind")), (at::LOW_PC, behind)]);
            let object = tree.object_with(vec![frame_that_is(&expression)]);
            let out = emitted_at(object, "kernel.function(\"f\").label(\"behind\")");
            assert!(out.contains(checked), "{expression:x?}: {out}");
        }
    }
}

/// A frame whose address is computed from the frame's address.
#[test]
fn a_frame_that_is_found_by_itself() {
    let mut tree = Tree::new();
    let of = int(&mut tree);
    tree.add_function(of, vec![0x9c]);
    let object = tree.object_with(vec![frame_that_is(&[0x9c])]);
    let debug = open(object).unwrap();
    let id = debug.find_functions(&FunctionPattern { name: "f".into(), file: None }).unwrap()[0];
    // Where the function begins it is known where its frame is.
    let mut at = debug.function(id).unwrap().bodies[0].entry;
    assert!(debug.variable(id, at, "x").unwrap().is_ok());
    at.offset += 8;
    let error = debug.variable(id, at, "x").expect_err("a circle").to_string();
    assert!(
        error.contains("operations of a location: nested deeper than the 8 levels") && error.contains(".o: "),
        "{error}"
    );
}

/// Pieces that are pointers to objects in pieces.
#[test]
fn pointers_that_fan_out() {
    let mut tree = Tree::new();
    let of = int(&mut tree);
    // DW_OP_implicit_pointer to the entry itself, DW_OP_piece 1: sixty times.
    let place = tree.place_of_next_parameter(of);
    let piece = [&[0xa0][..], &place.to_le_bytes(), &[0, 0x93, 1]].concat();
    tree.add_function(of, piece.repeat(60));
    refused(tree.object(), "probe kernel.function(\"f\") { println($x) }", "operations of a location");
}

/// Functions of a BTF that are of their own type.
#[test]
fn btf_of_itself() {
    let mut bytes = vec![0x9f, 0xeb, 1, 0];
    // A function `f` and a name `list` for it.
    for number in [24u32, 0, 24, 24, 8, 1, 12 << 24, 1, 3, 8 << 24, 1] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(b"\0f\0list\0");
    let debug =
        DebugInfo::open(Arc::new(Elf::of_bytes(std::path::Path::new("x"), bytes).unwrap()), None, None).unwrap();
    let id = debug.find_functions(&FunctionPattern { name: "f".into(), file: None }).unwrap()[0];
    assert!(debug.parameters(id).unwrap().is_empty());
    let list = debug.find_type("list").unwrap().expect("is there");
    assert!(debug.resolve(list).is_err() && debug.size_of(list).is_err());
    assert_eq!(debug.type_name(list), "list");
}

/// A dozen sections that unpack to 30 MB each, from some KB.
#[test]
fn sections_of_nothing_much() {
    use std::io::Write;
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    zlib.write_all(&vec![0; 30 << 20]).unwrap();
    // Elf64_Chdr: ELFCOMPRESS_ZLIB, size, alignment.
    let mut contents = [1u32.to_le_bytes(), [0; 4]].concat();
    contents.extend((30u64 << 20).to_le_bytes());
    contents.extend(1u64.to_le_bytes());
    contents.extend(zlib.finish().unwrap());
    let names =
        [".debug_str", ".debug_line", ".debug_ranges", ".debug_loc", ".debug_addr", ".debug_types", ".debug_aranges"];
    let section =
        |name| targets::elf::Section { name, kind: 1, flags: 0x800, address: 0, contents: contents.clone(), link: 0 };
    let object = Tree::new().object_with(names.map(section).into());
    assert!(object.len() < 1 << 20);
    let error = open(object).err().expect("too much").to_string();
    assert!(
        error.contains("unpacked sections: more than the 67108864 bytes") && error.contains(".o: section .debug_"),
        "{error}"
    );
}

/// Seconds of this thread's CPU time that the script takes.
fn cost(script: &str) -> f64 {
    use nix::sys::resource::{UsageWho, getrusage};
    let now = || {
        let usage = getrusage(UsageWho::RUSAGE_THREAD).unwrap();
        [usage.user_time(), usage.system_time()]
            .map(|time| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6)
            .iter()
            .sum::<f64>()
    };
    let before = now();
    assert!(compile(script.as_bytes()), "refused");
    now() - before
}

/// Each was compared with all others: 60,000 warnings of variables that are not read, and 10,000 aliases.
#[test]
fn many_warnings_and_many_aliases_cost_in_proportion() {
    let all = |count: usize, one: &dyn Fn(usize) -> String| (0..count).map(one).collect::<String>();
    let locals = cost(&format!("probe begin {{ {} println(l7) }}", all(60_000, &|at| format!("l{at} = {at}\n"))));
    let alias = |at: usize| format!("probe a{at} = begin {{ v = {at} }} probe a{at} {{ println(v) }}\n");
    let aliases = cost(&all(10_000, &alias));
    assert!(locals < 8.0 && aliases < 8.0, "locals {locals} s, aliases {aliases} s");
}

/// A symbol for each byte of a name of a megabyte: the names are 32 GB.
#[test]
fn symbols_whose_names_are_ends_of_one_another() {
    let strings = [&[0][..], &[b'a'; 1 << 20], &[0]].concat();
    // st_name, st_info (a global function), st_other, st_shndx (.text), st_value, st_size.
    let symbol = |at: u32| {
        let code = targets::elf::CODE.0 + u64::from(at % 4096);
        [&(1 + at).to_le_bytes()[..], &[0x12, 0, 1, 0], &code.to_le_bytes(), &1u64.to_le_bytes()].concat()
    };
    let symbols: Vec<u8> = (0..1 << 16).flat_map(symbol).collect();
    let object = targets::elf::executable_with(symbols, strings, Vec::new());
    let elf = Elf::of_bytes(std::path::Path::new("x.ko"), object).unwrap();
    for error in [elf.symbol_address("f").err(), elf.symbols_named("f").err()] {
        let error = error.expect("too much").to_string();
        assert!(error.contains("names of symbols: more than") && error.contains("x.ko"), "{error}");
    }
}

/// The same by entries of DWARF, which refer to one string of a megabyte.
#[test]
fn entries_whose_names_are_ends_of_one_another() {
    let strings = [&[b'a'; 1 << 20][..], &[0]].concat();
    let mut tree = Tree::new();
    for number in 0..40_000u64 {
        let code = targets::elf::CODE.0 + number % 4096;
        let attributes = vec![
            (at::NAME, Value::Place(number as u32)),
            (at::LOW_PC, Value::Address(code)),
            (at::HIGH_PC, Value::Number(1)),
        ];
        tree.add(0, tag::FUNCTION, attributes);
    }
    let debug = open(tree.object_with(vec![targets::elf::Section::plain(".debug_str", strings)])).unwrap();
    let error = debug.find_functions(&FunctionPattern { name: "f".into(), file: None }).unwrap_err().to_string();
    assert!(error.contains("names of more than"), "{error}");
}

/// Units of 30 bytes that take 6 KB each when they are parsed.
#[test]
fn units_of_nothing() {
    let tree = Tree::new();
    let object = tree.object();
    let unit = |bytes: &[u8]| {
        let at = bytes.windows(4).position(|word| word == b"x.c\0").unwrap();
        // The header of 11 bytes, and the code of the abbreviation, are before the name.
        bytes[at - 12..at + 4].to_vec()
    };
    let units = unit(&object).repeat(70_000);
    let abbreviations = [1, tag::UNIT as u8, 0, at::NAME as u8, 8, 0, 0, 0].to_vec();
    let section = targets::elf::Section::plain;
    let object = targets::elf::executable(vec![section(".debug_info", units), section(".debug_abbrev", abbreviations)]);
    let error = open(object).err().expect("too many").to_string();
    assert!(error.contains("more than the 65536 units"), "{error}");
}

/// 60,000 units with one table of 60,000 abbreviations: it is parsed once.
#[test]
fn units_with_one_table_of_abbreviations() {
    // A unit with a name, in a DWARF 4 of 8-byte addresses.
    let unit = [&13u32.to_le_bytes()[..], &[4, 0, 0, 0, 0, 0, 8, 1, b'x', 0, 0, 0, 0]].concat();
    let mut abbreviations = vec![1, tag::UNIT as u8, 1, at::NAME as u8, 8, 0, 0];
    for code in 1000u32..61_000 {
        abbreviations.extend([code as u8 | 0x80, (code >> 7) as u8 | 0x80, (code >> 14) as u8, tag::BASE as u8, 0]);
        abbreviations.extend([at::NAME as u8, 8].repeat(8));
        abbreviations.extend([0, 0]);
    }
    abbreviations.push(0);
    let section = targets::elf::Section::plain;
    let sections = vec![section(".debug_info", unit.repeat(60_000)), section(".debug_abbrev", abbreviations)];
    let (status, _, error) = run_on(targets::elf::executable(sections), &["-L", "kernel.function(\"f\")"]);
    assert!(status == 1 && error.contains("no function"), "{status} {error}");
}

/// 20,000 abbreviations, and a unit for every tenth of them whose table begins there: each has all that come after it.
#[test]
fn units_with_ends_of_one_table_of_abbreviations() {
    const ABBREVIATION: usize = 9;
    let code = |number: u32| [number as u8 | 0x80, (number >> 7) as u8 | 0x80, (number >> 14) as u8];
    let unit = |number: u32| {
        let table = (number as usize * ABBREVIATION) as u32;
        let length = (2 + 4 + 1 + 3 + 2u32).to_le_bytes();
        [&length[..], &[4, 0], &table.to_le_bytes(), &[8], &code(1000 + number), b"x\0"].concat()
    };
    let abbreviation =
        |number: u32| [&code(1000 + number)[..], &[tag::UNIT as u8, 0, at::NAME as u8, 8, 0, 0]].concat();
    let abbreviations = (0..20_000).flat_map(abbreviation).chain([0]).collect();
    let section = targets::elf::Section::plain;
    let units = (0..20_000).step_by(10).flat_map(unit).collect();
    let sections = vec![section(".debug_info", units), section(".debug_abbrev", abbreviations)];
    let (status, _, error) = run_on(targets::elf::executable(sections), &["-L", "kernel.function(\"f\")"]);
    assert_eq!(status, 1, "{error}");
}

/// 2,000 units with one table of 100,000 lines.
#[test]
fn units_with_one_table_of_lines() {
    let start = targets::elf::CODE.0;
    let body = [
        &[4, 0, 0, 0, 0, 0, 8, 1][..],
        b"x.c\0",
        &[0, 0, 0, 0, 2],
        b"f\0",
        &start.to_le_bytes(),
        &4u64.to_le_bytes(),
        &[1, 0],
    ]
    .concat();
    let unit = [&(body.len() as u32).to_le_bytes()[..], &body].concat();
    // A unit with a name and its lines; a function with a name, its code and file.
    let abbreviations =
        vec![1, 0x11, 1, 3, 8, 0x10, 0x17, 0, 0, 2, 0x2e, 0, 3, 8, 0x11, 1, 0x12, 7, 0x3a, 0xb, 0, 0, 0];
    let header =
        [&[1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0][..], b"x.c\0", &[0, 0, 0, 0]].concat();
    let rows = [&[0, 9, 2][..], &start.to_le_bytes(), &[33; 100_000], &[0, 1, 1]].concat();
    let table = [&4u16.to_le_bytes()[..], &(header.len() as u32).to_le_bytes(), &header, &rows].concat();
    let table = [&(table.len() as u32).to_le_bytes()[..], &table].concat();
    let section = targets::elf::Section::plain;
    let object = targets::elf::executable(vec![
        section(".debug_info", unit.repeat(2000)),
        section(".debug_abbrev", abbreviations),
        section(".debug_line", table),
    ]);
    let (status, found, error) = run_on(object, &["-l", "kernel.statement(\"f@x.c:*\")"]);
    assert!(status == 0 && found.contains("x.c:2"), "{status} {error}");
}

/// A name does not begin a line of its own.
#[test]
fn line_ends_in_names() {
    let mut tree = Tree::new();
    let (start, length) = targets::elf::CODE;
    let name = (at::NAME, Value::Text("f\nERROR: forged"));
    tree.add(0, tag::FUNCTION, vec![name, (at::LOW_PC, Value::Address(start)), (at::HIGH_PC, Value::Number(length))]);
    let (_, found, error) = run_on(tree.object(), &["-l", "kernel.function(\"f*\")"]);
    assert!(found.contains("forged") && found.lines().count() == 1, "{found} {error}");
}

/// The probes of 200,000 inlined instances are placed, and each instance is not compared with all others.
#[test]
fn instances_of_one_function() {
    let mut tree = Tree::new();
    let inlined = tree.add(0, tag::FUNCTION, vec![(at::NAME, Value::Text("f"))]);
    let (start, length) = targets::elf::CODE;
    let code = |name, start: u64, length: u64| {
        let range = [(at::LOW_PC, Value::Address(start)), (at::HIGH_PC, Value::Number(length))];
        [vec![name], range.to_vec()].concat()
    };
    let outer = tree.add(0, tag::FUNCTION, code((at::NAME, Value::Text("outer")), start, length));
    for number in 0..200_000 {
        let attributes = code((at::ABSTRACT_ORIGIN, Value::Entry(inlined)), start + number % length, 1);
        tree.add(outer, tag::INLINED, attributes);
    }
    assert!(listed(tree.object()).contains("kernel.function(\"f"));
}

#[test]
fn long_lists_that_many_have() {
    read_long_locations(1);
    read_long_ranges(1);
}

#[test]
fn long_lists_of_locations_without_bytes_that_many_have() {
    read_long_locations(0);
}

#[test]
fn long_lists_of_empty_ranges_that_many_have() {
    read_long_ranges(0);
}

/// Elements of the lists.
const LONG: u64 = 100_000;

fn range_of(number: u64, bytes: u64) -> Vec<u8> {
    [number + 1, number + 1 + bytes].map(u64::to_le_bytes).concat()
}

/// Many variables with one long list of locations, each for so many bytes of code.
fn read_long_locations(bytes: u64) {
    // Each location is 2 bytes of an expression: DW_OP_breg5 0.
    let location = |number| [range_of(number, bytes), vec![2, 0, 0x75, 0]].concat();
    let locations = (0..LONG).flat_map(location).chain([0; 16]).collect();
    let mut tree = Tree::new();
    let of = int(&mut tree);
    let function = tree.add_function(of, AT_RDI.to_vec());
    let y = vec![(at::NAME, Value::Text("y")), (at::TYPE, Value::Entry(of)), (at::LOCATION, Value::List(0))];
    tree.add(function, tag::VARIABLE, y);
    let section = targets::elf::Section::plain;
    let debug = open(tree.object_with(vec![section(".debug_loc", locations)])).unwrap();
    let id = debug.find_functions(&FunctionPattern { name: "f".into(), file: None }).unwrap()[0];
    let at = debug.function(id).unwrap().bodies[0].entry;
    let error = (0..400).find_map(|_| debug.variable(id, at, "y").err()).expect("many steps").to_string();
    assert!(error.contains("lists of ranges and locations: more than the") && error.contains(".o: "), "{error}");
    assert!(debug.variable(id, at, "x").unwrap().is_ok(), "the others are read");
}

/// Many functions with one long list of ranges, each of so many bytes.
fn read_long_ranges(bytes: u64) {
    let ranges = (0..LONG).flat_map(|number| range_of(2 * number, bytes)).chain([0; 16]).collect();
    let mut tree = Tree::new();
    for _ in 0..40_000 {
        // DW_AT_ranges
        tree.add(0, tag::FUNCTION, vec![(at::NAME, Value::Text("f")), (0x55, Value::List(0))]);
    }
    let section = targets::elf::Section::plain(".debug_ranges", ranges);
    let debug = open(tree.object_with(vec![section])).unwrap();
    let all = debug.find_functions(&FunctionPattern { name: "f".into(), file: None }).unwrap();
    let error = all.into_iter().find_map(|id| debug.function(id).err()).expect("many steps").to_string();
    assert!(error.contains("lists of ranges and locations: more than the"), "{error}");
}
