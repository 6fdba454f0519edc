// SPDX-License-Identifier: GPL-2.0-or-later

//! Truncated files and flipped bits give errors or incomplete results: no panic, no endless loop, no memory out of
//! proportion to the file.

use super::*;

const TEXT: &str = r#"
struct list { struct list *next, *previous; int bits:3; };
union value { long number; char text[8]; struct { int low, high; }; };
typedef struct list list_t;
extern void sink(void *);
static inline int inlined(list_t *list, union value value) { int sum = list->bits + value.low; sink(&sum); return sum; }
int first(list_t *list, union value value, int (*call)(int)) { char local[32]; sink(local); return inlined(list, value) + call(local[0]); }
int second(list_t *list, union value value) { return inlined(list->next, value); }
int global = 1;
"#;

/// Calls every query; the results do not matter.
fn walk(bytes: Vec<u8>) {
    let Ok(elf) = Elf::of_program_bytes(Path::new("damaged.o"), bytes) else { return };
    let _ = (elf.markers(&elf), elf.needed(), elf.file_offset(0x1010), elf.base_address());
    let elf = Arc::new(elf);
    let _ = elf.symbol_address("first");
    let Ok(debug) = DebugInfo::open(elf, None, None) else { return };
    let _ = debug.function_names();
    for name in ["struct list", "union value", "list_t", "int"] {
        if let Ok(Some(id)) = debug.find_type(name) {
            walk_type(&debug, id, 0);
            let _ = debug.member(id, "high");
        }
    }
    let Ok(found) = debug.find_functions(&FunctionPattern { name: "*".into(), file: Some("*.c".into()) }) else {
        return;
    };
    for id in found.into_iter().take(8) {
        let Ok(function) = debug.function(id) else { continue };
        let _ = debug.statements(id);
        let mut variables = debug.parameters(id).unwrap_or_default();
        let bodies = function.bodies.iter().take(4).flat_map(|body| [0, 1, 20].map(|offset| (body.entry, offset)));
        for (entry, offset) in bodies.chain(function.inlined.iter().take(4).map(|instance| (instance.address, 0))) {
            let at = Address { offset: entry.offset.wrapping_add(offset), ..entry };
            let _ = debug.elf().anchor(at);
            variables.extend(debug.locals(id, at).unwrap_or_default());
            for variable in variables.iter().take(16) {
                let _ = debug.variable(id, at, &variable.name);
            }
            let _ = debug.variable(id, at, "global");
        }
        for variable in variables.iter().take(16) {
            walk_type(&debug, variable.type_id, 0);
        }
        function.return_type.into_iter().for_each(|id| walk_type(&debug, id, 0));
    }
}

fn walk_type(debug: &DebugInfo, id: TypeId, depth: usize) {
    let _ = debug.type_name(id);
    let _ = debug.size_of(id);
    let Ok((at, found)) = debug.resolve(id) else { return };
    if depth > 3 {
        return;
    }
    match found {
        Type::Pointer(Some(target)) => walk_type(debug, target, depth + 1),
        Type::Struct { members, .. } => {
            members.iter().take(8).for_each(|member| walk_type(debug, member.type_id, depth + 1));
        }
        Type::Array { element, counts } => {
            if let Ok(rest) = debug.array_element(at, element, &counts) {
                walk_type(debug, rest, depth + 1);
            }
        }
        _ => {}
    }
}

/// xorshift64: the same damage on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// Walks copies of the file in which a few bits are flipped.
fn flip_bits(whole: &[u8], seed: u64) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ seed);
    for _ in 0..700 {
        let mut damaged = whole.to_vec();
        for _ in 0..=random.below(4) {
            let at = random.below(damaged.len());
            damaged[at] ^= 1 << random.below(8);
        }
        walk(damaged);
    }
}

#[test]
fn truncated_files() {
    let whole = std::fs::read(Compiled::new(TEXT, &[]).path()).expect("an object");
    walk(whole.clone());
    for length in (0..whole.len()).step_by(whole.len() / 300 + 1) {
        walk(whole[..length].to_vec());
    }
}

#[test]
fn flipped_bits() {
    for (seed, options) in
        [(1, &["-gdwarf-5", "-fasynchronous-unwind-tables"][..]), (2, &["-gdwarf-4"]), (3, &["-gz=zlib"])]
    {
        let whole = std::fs::read(Compiled::new(TEXT, options).path()).expect("an object");
        flip_bits(&whole, seed);
    }
}

/// All bytes of the debug sections in turn, which random positions would not reach.
#[test]
fn every_byte_of_the_entries() {
    let compiled = Compiled::new(TEXT, &[]);
    let whole = std::fs::read(compiled.path()).expect("an object");
    let elf = ::object::File::parse(&*whole).expect("an object");
    use ::object::{Object as _, ObjectSection as _};
    for name in [".debug_abbrev", ".debug_info", ".debug_loclists", ".debug_rnglists", ".debug_line"] {
        let (start, length) = elf.section_by_name(name).and_then(|section| section.file_range()).expect("a section");
        for at in start as usize..(start + length) as usize {
            let mut damaged = whole.clone();
            damaged[at] = [0xff, 0, 0x7f, 0x80][at % 4];
            walk(damaged);
        }
    }
}

/// A program of 32 bits, of which another file is made before it is read; its dynamic section and markers are read too.
#[test]
fn flipped_bits_in_32_bit_programs() {
    let directory = tempfile::tempdir().expect("a directory");
    let (source, made) = (directory.path().join("x.c"), directory.path().join("x.so"));
    std::fs::write(&source, TEXT).expect("written");
    let options = ["-m32", "-g", "-O2", "-shared", "-fpic", "-nostdlib", "-Wl,--hash-style=gnu", "-o"];
    let gcc = std::process::Command::new("gcc").args(options).arg(&made).arg(&source).output();
    assert!(gcc.is_ok_and(|gcc| gcc.status.success()));
    let whole = std::fs::read(&made).expect("a library");
    let debug = DebugInfo::of_program(Arc::new(Elf::of_program_bytes(&made, whole.clone()).expect("one")), None, None);
    assert_eq!(debug.expect("DWARF").word(), 4);
    flip_bits(&whole, 0);
    for length in (0..whole.len()).step_by(whole.len() / 200 + 1) {
        walk(whole[..length].to_vec());
    }
}
