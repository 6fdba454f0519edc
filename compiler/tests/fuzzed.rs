// SPDX-License-Identifier: GPL-2.0-or-later

//! Every reader of untrusted input, with inputs that once crashed it (`fuzz/seeds`), and with some thousand random inputs
//! from a fixed seed. `cargo xtask fuzz` tries more.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test that fails may say so in any way")]

#[path = "../fuzz/targets/mod.rs"]
#[allow(dead_code, reason = "not every user of the targets calls all of it")]
mod targets;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use spile_debuginfo::{DebugInfo, Elf, FunctionPattern};
use targets::{Random, TARGETS, Target};

/// The number of a reader's inputs in a test run, and the time that they may take.
const INPUTS: usize = 3000;
const TIME: Duration = Duration::from_secs(4);
/// Time limit for one input, on a busy machine.
const ONE: Duration = Duration::from_secs(20);

fn seeds(target: &Target) -> Vec<Vec<u8>> {
    let directory = format!("{}/fuzz/seeds/{}", env!("CARGO_MANIFEST_DIR"), target.name);
    let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
    files.map(|entry| std::fs::read(entry.path()).expect("a seed can be read")).collect()
}

fn try_target(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target");
    let one = |bytes: &[u8]| {
        let begun = Instant::now();
        (target.run)(bytes);
        assert!(begun.elapsed() < ONE, "{name}: {:?} for {bytes:02x?}", begun.elapsed());
    };
    let mut all = (target.seeds)();
    all.extend(seeds(target));
    all.iter().for_each(|seed| one(seed));
    let (mut random, begun) = (Random(5642), Instant::now());
    for done in 0..INPUTS {
        if begun.elapsed() > TIME {
            assert!(done > 20, "{name}: only {done} inputs");
            break;
        }
        one(&targets::input(&mut random, &all, target.longest));
    }
}

/// The part of a kernel that is a base of `file` is read like a whole one, and so is the boot image: otherwise changes of them would
/// show nothing.
#[test]
fn kernels_are_bases() {
    let Some(kernel) = targets::real::whole_kernel() else {
        return println!("skipped: no kernel with debug information is installed");
    };
    let open = |bytes: Vec<u8>| {
        let elf = Elf::of_bytes(Path::new("vmlinux"), bytes).expect("an object file");
        assert!(elf.is_whole() && elf.has_section(".rela.debug_info"));
        DebugInfo::open(Arc::new(elf), None, None).expect("debug information")
    };
    let all = FunctionPattern { name: "*".into(), file: None };
    let count = |debug: &DebugInfo| debug.find_functions(&all).expect("functions").len();
    let functions = count(&open(kernel.clone()));
    assert!(functions > 20, "{functions}");
    let Some(image) = targets::real::boot_image(&kernel) else {
        return println!("skipped: no boot image is installed");
    };
    let unpacked = spile_debuginfo::raw::unpacked(&image).expect("a packed file").expect("a kernel");
    assert_eq!(count(&open(unpacked)), functions);
}

macro_rules! each {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            try_target(stringify!($name));
        })*

        #[test]
        fn all_are_here() {
            assert_eq!([$(stringify!($name)),*].to_vec(), TARGETS.map(|target| target.name).to_vec());
        }
    };
}

each! { script tapset rc elf dwarf btf index file packed meta record conf line signature }

/// The entries that a tree is made of come out as they went in.
#[test]
fn a_made_tree_is_read() {
    use spile_debuginfo::{DebugInfo, Elf, FunctionPattern, Type};
    use targets::die::{Tree, Value, at, tag};
    let mut tree = Tree::new();
    let int = tree.add(
        0,
        tag::BASE,
        vec![(at::NAME, Value::Text("int")), (at::BYTE_SIZE, Value::Number(4)), (at::ENCODING, Value::Number(5))],
    );
    let list = tree.add(0, tag::STRUCT, vec![(at::NAME, Value::Text("list")), (at::BYTE_SIZE, Value::Number(8))]);
    tree.add(
        list,
        tag::MEMBER,
        vec![(at::NAME, Value::Text("field")), (at::TYPE, Value::Entry(int)), (at::MEMBER_PLACE, Value::Number(4))],
    );
    tree.add_function(list, vec![0x75, 0]);
    let elf = Elf::of_bytes(std::path::Path::new("x"), tree.object()).unwrap();
    let debug = DebugInfo::open(elf.into(), None, None).unwrap();
    let id = debug.find_functions(&FunctionPattern { name: "f".into(), file: None }).unwrap()[0];
    let entry = debug.function(id).unwrap().bodies[0].entry;
    let x = debug.variable(id, entry, "x").unwrap().unwrap();
    assert!(matches!(debug.resolve(x.type_id).unwrap().1, Type::Struct { size: 8, .. }));
    assert_eq!(
        (debug.member(x.type_id, "field").unwrap().offset, debug.type_name(x.type_id)),
        (4, "struct list".into())
    );
}
