// SPDX-License-Identifier: GPL-2.0-or-later

//! gcc's DWARF of small C files, compared with their source.

use super::interpreter::Machine;
use super::*;
use crate::dwarf::Dwarf;

const TYPES: &str = r#"
struct declared;
enum color { RED, GREEN = 5, BLUE = -2 };
typedef unsigned long word_t;
typedef word_t again_t;
struct inner { char c; int i; };
struct outer {
    int first;
    unsigned low:3, middle:10, high:19;
    signed int negative:4;
    unsigned long wide:40;
    struct { short a; union { int b; char bytes[4]; }; };
    struct inner named;
    const volatile word_t qualified;
    int matrix[3][5];
    char *const text;
    int (*callback)(struct inner *, const char *, ...);
    int (*table[2])(void);
    struct declared *opaque;
    enum color color;
    _Bool flag; signed char small; double real;
    void *tail[];
};
union number { int i; long l; };
typedef char as_outer[sizeof(struct outer)]; as_outer *sized;
struct outer object; union number number; again_t word;
static int counter = 7;
int count(struct outer *p) { counter += p->first; return counter; }
"#;

fn member(debug: &DebugInfo, name: &str) -> FoundMember {
    debug.member(type_named(debug, "struct outer"), name).expect(name)
}

fn types(options: &[&str]) {
    let compiled = Compiled::new(TYPES, options);
    let debug = compiled.open();
    let place = |name| (member(&debug, name).offset, member(&debug, name).bits);
    let bits = |first, bits| Some(MemberBits { first, bits });
    assert_eq!(place("first"), (0, None));
    assert_eq!(place("low"), (4, bits(0, 3)));
    assert_eq!(place("middle"), (4, bits(3, 10)));
    assert_eq!(place("high"), (5, bits(5, 19)));
    assert_eq!(place("negative"), (8, bits(0, 4)));
    assert_eq!(place("wide"), (8, bits(4, 40)));
    assert_eq!(place("a"), (16, None));
    assert_eq!(place("b"), (20, None));
    assert_eq!(place("bytes"), (20, None));
    let names = [
        ("qualified", "const volatile word_t"),
        ("named", "struct inner"),
        ("matrix", "int[3][5]"),
        ("text", "char* const"),
        ("callback", "int (*)(struct inner*, const char*, ...)"),
        ("table", "int (*[2])(void)"),
        ("opaque", "struct declared*"),
        ("color", "enum color"),
        ("flag", "_Bool"),
        ("tail", "void*[]"),
    ];
    for (name, expected) in names {
        // gcc writes the two qualifiers in either order.
        let found = debug.type_name(member(&debug, name).type_id).replace("volatile const", "const volatile");
        assert_eq!(found, expected, "{name}");
    }
    let outer = type_named(&debug, "struct outer");
    let size = debug.size_of(type_named(&debug, "as_outer")).expect("a size");
    assert!(
        matches!(debug.get(outer).expect("a type"), Type::Struct { union: false, size: own, .. } if Some(own) == size)
    );
    let matrix = member(&debug, "matrix").type_id;
    let (_, Type::Array { element, counts }) = debug.resolve(matrix).expect("a type") else { panic!() };
    assert_eq!((counts.as_slice(), debug.size_of(matrix).expect("a size")), (&[Some(3), Some(5)][..], Some(60)));
    let row = debug.array_element(matrix, element, &counts).expect("a row");
    assert_eq!((debug.type_name(row).as_str(), debug.size_of(row).expect("a size")), ("int[5]", Some(20)));
    let (_, Type::Array { element, counts }) = debug.resolve(row).expect("a type") else { panic!() };
    assert_eq!(debug.array_element(row, element, &counts).expect("an element"), element);
    assert_eq!(debug.size_of(member(&debug, "tail").type_id).expect("a size"), None);
    let values = vec![("RED".to_string(), 0), ("GREEN".to_string(), 5), ("BLUE".to_string(), -2)];
    let expected = Type::Enum { name: Some("color".into()), size: 4, signed: true, values };
    assert_eq!(debug.get(member(&debug, "color").type_id).expect("a type"), expected);
    let encodings = [
        ("small", BaseEncoding::SignedChar),
        ("flag", BaseEncoding::Bool),
        ("real", BaseEncoding::Float),
        ("qualified", BaseEncoding::Unsigned),
        ("first", BaseEncoding::Signed),
    ];
    for (name, expected) in encodings {
        let found = debug.resolve(member(&debug, name).type_id).expect("a type").1;
        assert!(matches!(found, Type::Base { encoding, .. } if encoding == expected), "{name}: {found:?}");
    }
    let (_, Type::Pointer(Some(declared))) = debug.resolve(member(&debug, "opaque").type_id).expect("a type") else {
        panic!()
    };
    assert_eq!(debug.get(declared).expect("a type"), Type::Incomplete { name: "struct declared".into() });
    assert!(matches!(debug.member(declared, "x"), Err(MemberError::Incomplete { .. })));
    assert!(matches!(debug.member(type_named(&debug, "word_t"), "x"), Err(MemberError::NotAStruct)));
    assert_eq!(debug.size_of(type_named(&debug, "again_t")).expect("a size"), Some(8));
    assert!(debug.find_type("union number").expect("an index").is_some());
    assert!(debug.find_type("struct number").expect("an index").is_none());
}

#[test]
fn types_of_dwarf_5() {
    types(&["-gdwarf-5"]);
}

#[test]
fn types_of_dwarf_4() {
    types(&["-gdwarf-4", "-gno-strict-dwarf"]);
}

#[test]
fn bit_fields_of_dwarf_2() {
    // DW_AT_bit_offset, counted from the most significant bit.
    types(&["-gdwarf-2", "-gstrict-dwarf"]);
}

#[test]
fn compressed_sections() {
    types(&["-gz=zlib"]);
}

const PLACES: &str = r#"
extern void sink(const void *, long);
extern int shared_elsewhere;
int shared = 3;
static long hidden = 4;
__attribute__((noinline)) static int clone_me(int unused, int used) { sink(&used, used); return used * hidden; }
static inline __attribute__((always_inline)) long inlined(long value) { long twice = value * 2; sink(&value, twice); return twice; }
long entry(long a, int b, char c, void *d, long e, long f, long g, struct { long x, y; } pair)
{
    long local = a + b;
    int constant = 42;
    sink(d, constant);
    { char block[16]; sink(block, local); }
    return inlined(local) + clone_me(1, b) + clone_me(1, c) + e + f + g + pair.y + hidden + shared_elsewhere;
}
long second(long a) { hidden += a; return inlined(a + 1) + shared; }
__attribute__((section(".init.text"))) int starting(void) { sink(0, 0); return 1; }
"#;

#[test]
fn parameters_at_the_entry() {
    let compiled = Compiled::new(PLACES, &["-Wno-all"]);
    let debug = compiled.open();
    let id = only(&debug, "entry");
    let function = debug.function(id).expect("is whole");
    assert_eq!((function.file.as_str(), function.line, function.external), ("test.c", 8, true));
    let [body] = function.bodies.as_slice() else { panic!("{function:?}") };
    assert_eq!(body.symbol.as_deref(), Some("entry"));
    assert_eq!(debug.elf().section(body.entry.section.expect("relocatable")).expect("a section").name, ".text");
    let mut machine = Machine::default();
    for (index, register) in [5, 4, 1, 2, 8, 9].into_iter().enumerate() {
        machine.registers.insert(register, 0x1111_1111_1111_1100 + index as u64);
    }
    machine.registers.insert(7, 0x8000);
    for (index, slot) in [0x8008u64, 0x8010, 0x8018].into_iter().enumerate() {
        machine.store(slot, 100 + index as u64);
    }
    let value = |name: &str, size: u8| {
        let found = debug.variable(id, body.entry, name).expect("is whole").expect(name);
        machine.read(&found.location, size)
    };
    assert_eq!(value("a", 8), 0x1111_1111_1111_1100);
    assert_eq!(value("b", 4), 0x1111_1101);
    assert_eq!(value("c", 1), 0x02);
    assert_eq!(value("f", 8), 0x1111_1111_1111_1105);
    // On the stack, above the return address.
    assert_eq!(value("g", 8), 100);
    assert_eq!(value("pair", 8), 101);
    let names: Vec<String> =
        debug.parameters(id).expect("parameters").into_iter().map(|variable| variable.name).collect();
    assert_eq!(names, ["a", "b", "c", "d", "e", "f", "g", "pair"]);
    assert_eq!(debug.variable(id, body.entry, "nothing").expect("is whole"), Err(Unavailable::Unknown));
    let locals: Vec<String> =
        debug.locals(id, body.entry).expect("locals").into_iter().map(|variable| variable.name).collect();
    assert_eq!(locals, ["local", "constant"]);
    let constant = debug.variable(id, body.entry, "constant").expect("is whole").expect("a constant");
    assert_eq!(machine.read(&constant.location, 4), 42);
}

#[test]
fn variables_of_the_unit() {
    let compiled = Compiled::new(PLACES, &["-Wno-all"]);
    let debug = compiled.open();
    let id = only(&debug, "entry");
    let entry = debug.function(id).expect("is whole").bodies[0].entry;
    let found = debug.variable(id, entry, "hidden").expect("is whole").expect("is there");
    let Location::Memory(ops) = &found.location else { panic!("{found:?}") };
    let [Op::Address(address)] = ops.as_slice() else { panic!("{ops:?}") };
    assert_eq!(debug.elf().symbol_address("hidden").expect("symbols"), Some(*address));
    assert!(debug.variable(id, entry, "shared").expect("is whole").is_ok());
    // Only declared here: it has no place in this object.
    assert!(debug.variable(id, entry, "shared_elsewhere").expect("is whole").is_err());
}

/// A function may declare a variable that is outside it.
#[test]
fn variables_declared_in_functions() {
    let text = "static inline __attribute__((always_inline)) int seen(void) { extern int counter; return counter + 1; }
        int f(int own) { int other = own; { extern int counter; { int counter = own + 2; asm volatile(\"\" :: \"r\"(counter)); }
            return counter + seen() + other; } }
        int counter = 7;";
    let compiled = Compiled::new(text, &["-O1"]);
    let debug = compiled.open();
    let counter = debug.elf().symbol_address("counter").expect("symbols").expect("is there");
    let place = Location::Memory(vec![Op::Address(counter)]);
    let (seen, id) = (only(&debug, "seen"), only(&debug, "f"));
    let (inlined, body) = (debug.function(seen).expect("is whole"), debug.function(id).expect("is whole"));
    let found = debug.variable(seen, inlined.inlined[0].address, "counter").expect("is whole").expect("is there");
    assert_eq!(found.location, place);
    let mut own = 0;
    let body = &body.bodies[0];
    for offset in 0..body.size {
        let at = Address { offset: body.entry.offset + offset, ..body.entry };
        match debug.variable(id, at, "counter").expect("is whole") {
            Ok(found) if found.location == place => {}
            Ok(_) | Err(Unavailable::OptimizedOut) => own += 1,
            other => panic!("{other:?}"),
        }
        let locals = debug.locals(id, at).expect("locals");
        assert!(locals.iter().filter(|local| local.name == "counter").count() <= 1);
    }
    assert!(own < body.size, "{own}");
}

#[test]
fn inlined_instances_and_clones() {
    let compiled = Compiled::new(PLACES, &["-Wno-all"]);
    let debug = compiled.open();
    let inlined = only(&debug, "inlined");
    let function = debug.function(inlined).expect("is whole");
    assert!(function.bodies.is_empty());
    assert_eq!(function.inlined.len(), 2, "one in each caller");
    for instance in &function.inlined {
        let found = debug.variable(inlined, instance.address, "value").expect("is whole");
        assert!(found.is_ok(), "{found:?}");
    }
    let cloned = only(&debug, "clone_me");
    let function = debug.function(cloned).expect("is whole");
    let [body] = function.bodies.as_slice() else { panic!("{function:?}") };
    let symbol = body.symbol.clone().expect("a symbol");
    assert!(symbol.starts_with("clone_me."), "{symbol}");
    let unused = debug.variable(cloned, body.entry, "unused").expect("is whole");
    // Propagated as a constant, or gone.
    if let Ok(found) = unused {
        assert_eq!(Machine::default().read(&found.location, 4), 1);
    }
    assert!(debug.variable(cloned, body.entry, "used").expect("is whole").is_ok());
}

/// At every instruction, every variable has a location that can be computed, or a reason.
#[test]
fn every_instruction() {
    for options in [&["-gdwarf-5"][..], &["-gdwarf-4"], &["-O0"], &["-fno-omit-frame-pointer"]] {
        let compiled = Compiled::new(PLACES, &[options, &["-Wno-all"]].concat());
        let debug = compiled.open();
        let mut machine = Machine::default();
        machine.registers.extend((0..=16).map(|register| (register, 0x9000u64)));
        let mut found_on_stack = 0;
        for name in ["entry", "second"] {
            let id = only(&debug, name);
            let body = debug.function(id).expect("is whole").bodies.remove(0);
            for offset in 0..body.size {
                let at = Address { offset: body.entry.offset + offset, ..body.entry };
                for variable in
                    debug.parameters(id).expect("some").into_iter().chain(debug.locals(id, at).expect("some"))
                {
                    let found = debug.variable(id, at, &variable.name).expect("is whole");
                    if let Ok(Location::Memory(ops)) = found.map(|found| found.location) {
                        assert!(machine.run(&ops).abs_diff(0x9000) < 0x200);
                        found_on_stack += 1;
                    }
                }
            }
        }
        assert!(found_on_stack > 10, "{options:?}: {found_on_stack}");
    }
}

#[test]
fn anchors() {
    let compiled = Compiled::new(PLACES, &["-Wno-all"]);
    let debug = compiled.open();
    let id = only(&debug, "second");
    let entry = debug.function(id).expect("is whole").bodies[0].entry;
    let anchor = |address| debug.elf().anchor(address).expect("symbols");
    assert_eq!(anchor(entry), Some(SymbolOffset { symbol: "second".into(), offset: 0 }));
    let inside = Address { offset: entry.offset + 5, ..entry };
    assert_eq!(anchor(inside), Some(SymbolOffset { symbol: "second".into(), offset: 5 }));
    let starting = only(&debug, "starting");
    let entry = debug.function(starting).expect("is whole").bodies[0].entry;
    assert_eq!(debug.elf().section(entry.section.expect("relocatable")).expect("a section").name, ".init.text");
    assert_eq!(anchor(entry), None);
}

/// gcc computes with types of its own (DW_OP_convert) where a narrow variable was widened.
#[test]
fn typed_operations() {
    let text = "extern void sink(long); extern int source(void);
        long widened(int narrow, unsigned char byte) { int sum = narrow + byte; unsigned short cut = sum * 3; long wide = sum;
            sink(1); sink(wide); asm volatile(\"nop\"); return cut; }";
    let compiled = Compiled::new(text, &[]);
    let debug = compiled.open();
    let id = only(&debug, "widened");
    let body = debug.function(id).expect("is whole").bodies.remove(0);
    let mut machine = Machine::default();
    machine.registers.extend((0..=16).map(|register| (register, 0x1_ffff_fff0u64)));
    machine.registers.insert(7, 0x9000);
    for address in 0x8f00..0x9100 {
        machine.memory.insert(address, 0);
    }
    for offset in 0..body.size {
        let at = Address { offset: body.entry.offset + offset, ..body.entry };
        for name in ["narrow", "byte", "sum", "cut", "wide"] {
            if let Ok(found) = debug.variable(id, at, name).expect("is whole") {
                machine.read(&found.location, 4);
            }
        }
    }
}

#[test]
fn lines() {
    let text =
        "extern void sink(int);\nint three(int a)\n{\n    sink(a);\n    sink(2);\n    sink(3);\n    return 7;\n}\n";
    let compiled = Compiled::new(text, &[]);
    let debug = compiled.open();
    let id = only(&debug, "three");
    let statements = debug.statements(id).expect("lines");
    assert!(statements.iter().all(|statement| statement.file == "test.c"));
    let entry = debug.function(id).expect("is whole").bodies[0].entry;
    assert_eq!((statements[0].address, statements[0].line), (entry, 3));
    for line in 3..=7 {
        assert!(statements.iter().any(|statement| statement.line == line), "line {line}: {statements:?}");
    }
    // After the first call the parameter is gone, and never needed again.
    let last = statements.iter().rfind(|statement| statement.line == 6).expect("a line");
    match debug.variable(id, last.address, "a").expect("is whole") {
        Err(Unavailable::OptimizedOut) => {}
        // Or DWARF only knows its value at the entry.
        Err(Unavailable::Unsupported(why)) => assert!(why.contains("entry"), "{why}"),
        other => panic!("{other:?}"),
    }
    let other = debug.other_lines(id, last.address, "a").expect("is whole");
    assert_eq!((other.line, other.lines[0]), (Some(6), (3, true)));
    assert!(other.lines.contains(&(7, false)), "{other:?}");
}

/// A parameter that is no longer stored anywhere is what the caller has passed, as the return address shows.
#[test]
fn what_callers_passed() {
    let text = "extern void sink(long);\n\
        static __attribute__((noinline, noclone, noipa)) long dead(long first, long second)\n{\n\
        sink(first);\nsink(1);\nsink(second);\nreturn second;\n}\n\
        long caller(long a, long b) { long one = dead(77, b); return one + dead(a, 5); }\n";
    for version in ["-gdwarf-5", "-gdwarf-4"] {
        let compiled = Compiled::new(text, &[version]);
        let debug = compiled.open();
        let id = only(&debug, "dead");
        let statements = debug.statements(id).expect("lines");
        let last = statements.iter().rfind(|statement| statement.line == 6).expect("a line");
        let found = debug.variable(id, last.address, "first").expect("is whole").expect("is known");
        let Location::ByCaller { return_address, cases } = &found.location else { panic!("{version}: {found:?}") };
        let mut machine = Machine::default();
        machine.registers.extend((0..=16).map(|register| (register, 0x1_ffff_fff0u64)));
        machine.registers.insert(7, 0x9000);
        (0x8f00..0x9100).for_each(|address| machine.store(address, 0));
        let slot = machine.run(return_address);
        assert!(slot > 0x9000 && slot < 0x9100, "{slot:#x}");
        let mut values = Vec::new();
        for (places, _) in cases {
            machine.store(slot, places[0].offset);
            values.push(machine.read(&found.location, 8));
        }
        assert!(values.contains(&77), "{version}: {values:?}");
        // Otherwise only its callers would know, and they are not all known.
        let caller = only(&debug, "caller");
        let at = debug.statements(caller).expect("lines").last().expect("one").address;
        assert!(!matches!(
            debug.variable(caller, at, "b").expect("is whole"),
            Ok(FoundVariable { location: Location::ByCaller { .. }, .. })
        ));
    }
}

/// The same in a program, for functions that other units can call: by those calls whose instructions call them. Not where jumps
/// may lead from the function to itself, which would leave the return address as it is.
#[test]
fn what_callers_in_a_program_passed() {
    let text = "#define KEPT __attribute__((noinline, noclone, noipa))\n\
        KEPT void sink(long value) { __asm__ volatile(\"\" :: \"r\"(value) : \"memory\"); }\n\
        void (*anywhere)(long) = sink;\n\
        KEPT long plain(long first) {\nsink(first);\nsink(1);\nreturn 2;\n}\n\
        KEPT long again(long first);\n\
        KEPT long turn(long first) { return first > 9 ? 0 : again(first + 1); }\n\
        KEPT long again(long first) {\nsink(first);\nsink(1);\nreturn turn(5);\n}\n\
        KEPT void away(long first) {\nsink(first);\nsink(1);\nanywhere(3);\n}\n\
        static KEPT void own(long first) {\nsink(first);\nsink(1);\nanywhere(4);\n}\n\
        KEPT long ends(long first) {\nsink(first);\nsink(1);\nreturn plain(6);\n}\n\
        int main(void) { away(77); own(77); return plain(77) + plain(78) + again(77) + ends(77) + 1; }\n";
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("test.c"), text).expect("written");
    for (version, link) in [("-gdwarf-5", "-pie"), ("-gdwarf-4", "-no-pie")] {
        let options = ["-O2", version, "-fPIE", link, "-o", "test", "test.c"];
        let gcc = std::process::Command::new("gcc").current_dir(directory.path()).args(options).output();
        let gcc = gcc.expect("gcc runs");
        assert!(gcc.status.success(), "{}", String::from_utf8_lossy(&gcc.stderr));
        let debug = open(&directory.path().join("test"));
        let first_at_end = |name: &str| {
            let id = only(&debug, name);
            let line = debug.function(id).expect("is whole").line + 3;
            let statements = debug.statements(id).expect("lines");
            let last = statements.iter().rfind(|statement| statement.line == line).expect("a line");
            debug.variable(id, last.address, "first").expect("is whole")
        };
        let values = |name: &str| match first_at_end(name).map(|found| found.location) {
            Ok(Location::ByCaller { cases, .. }) => {
                let mut values: Vec<String> = cases.iter().map(|(_, location)| format!("{location:?}")).collect();
                values.sort();
                values
            }
            other => panic!("{version}: {name}: {other:?}"),
        };
        // `ends` jumps to it: that is another call, of another function.
        assert_eq!(values("plain"), [77, 78].map(|value| format!("{:?}", Location::Value(vec![Op::Const(value)]))));
        assert_eq!(values("ends"), [format!("{:?}", Location::Value(vec![Op::Const(77)]))]);
        for name in ["again", "away", "own"] {
            match first_at_end(name) {
                Err(Unavailable::Unsupported(why)) => assert!(why.contains("not all of its callers"), "{name}: {why}"),
                other => panic!("{version}: {name}: {other:?}"),
            }
        }
    }
}

/// A parameter that gcc has removed has the value that the call site says it had (DW_OP_GNU_parameter_ref).
#[test]
fn what_callers_would_have_passed() {
    let text = "extern void sink(long);\n\
        static __attribute__((noinline)) long unused(long first, long second)\n{\n\
        sink(first);\nsink(1);\nreturn first;\n}\n\
        long caller(long a, long b) { long one = unused(a, 77); return one + unused(b, 78); }\n";
    for version in ["-gdwarf-5", "-gdwarf-4"] {
        let compiled = Compiled::new(text, &[version]);
        let debug = compiled.open();
        let id = only(&debug, "unused");
        let statements = debug.statements(id).expect("lines");
        let last = statements.iter().rfind(|statement| statement.line == 5).expect("a line");
        let found = debug.variable(id, last.address, "second").expect("is whole").expect("is known");
        let Location::ByCaller { cases, .. } = &found.location else { panic!("{version}: {found:?}") };
        let mut values: Vec<&Location> = cases.iter().map(|(_, location)| location).collect();
        values.sort_by_key(|location| format!("{location:?}"));
        let wanted = [77, 78].map(|value| Location::Value(vec![Op::Const(value)]));
        assert_eq!(values, wanted.iter().collect::<Vec<_>>(), "{version}");
    }
}

/// Code inlined at the very start of a unit: gcc writes ranges there whose first pair ends a list in DWARF 4.
#[test]
fn inlined_at_the_start_of_a_unit() {
    let text = "extern int sink(int);\nextern volatile int v;\n\
        static inline __attribute__((always_inline)) int inner(int x)\n{\nint y = x * 3;\nv = y;\ny += sink(y);\nv += y;\nreturn y;\n}\n\
        int outer(int x) { int z = inner(x); v = z; return z + x; }\n";
    for version in ["-gdwarf-5", "-gdwarf-4"] {
        let compiled = Compiled::new(text, &[version]);
        let debug = compiled.open();
        let id = only(&debug, "inner");
        let lines: Vec<u32> = debug.statements(id).expect("lines").iter().map(|statement| statement.line).collect();
        assert!([6, 7, 8].iter().all(|line| lines.contains(line)), "{version}: {lines:?}");
        let at =
            debug.statements(id).expect("lines").iter().find(|statement| statement.line == 8).expect("a line").address;
        assert!(debug.variable(id, at, "y").expect("is whole").is_ok(), "{version}");
    }
}

/// gcc splits a function at its early returns, and inlines the split-off part where it was: that is no call.
#[test]
fn a_part_of_a_function_in_itself() {
    let text = "struct s { long type, flags, n; void *insn; struct s *next; };\nvolatile int v;\n\
        __attribute__((noipa)) int sink(void *a, int b) { return v + b; }\n__attribute__((noipa)) void *allocate(void *a, int b) { v = b; return a; }\n\
        static int attach(struct s *dev, unsigned long unused)\n{\nint ret;\nstruct s *one;\nif (!dev->next)\nreturn -5;\n\
        ret = sink(dev, 4);\nif (ret)\nreturn ret;\none = dev->next;\none->type = 1;\none->flags = 2;\none->n = dev->n;\nv = 7;\n\
        one = one->next;\none->insn = allocate(one, 3);\nsink(one, v);\nreturn 0;\n}\n\
        int (*const table[])(struct s *, unsigned long) = { attach };\n";
    for version in ["-gdwarf-5", "-gdwarf-4"] {
        let compiled = Compiled::new(text, &[version, "-Wno-all"]);
        let debug = compiled.open();
        let id = only(&debug, "attach");
        let dwarf = Dwarf::open(Arc::new(Elf::open(&compiled.path()).expect("an ELF file")), None).expect("has DWARF");
        assert_eq!(dwarf.parts_of_body(id), 1, "{version}: nothing was split off");
        let function = debug.function(id).expect("is whole");
        assert_eq!((function.bodies.len(), function.inlined.len()), (1, 0), "{version}");
        let at =
            debug.statements(id).expect("lines").iter().find(|statement| statement.line == 18).expect("a line").address;
        assert!(debug.variable(id, at, "one").expect("is whole").is_ok(), "{version}");
        let locals: Vec<String> = debug.locals(id, at).expect("some").into_iter().map(|local| local.name).collect();
        assert_eq!(locals, ["ret", "one"], "{version}");
        let calls = debug.calls(id).expect("is whole");
        let called = calls.iter().map(|call| debug.function(call.callee).expect("is whole").name);
        assert_eq!(called.collect::<Vec<_>>(), ["sink", "allocate", "sink"], "{version}");
    }
}

/// A jump keeps the return address of the jumping function's caller, so it does not identify the jump.
#[test]
fn what_is_called_by_a_jump_has_callers_that_are_not_known() {
    let text = "extern void sink(long);\n\
        static __attribute__((noinline, noclone, noipa)) long dead(long first, long second)\n{\n\
        sink(first);\nsink(1);\nsink(second);\nreturn second;\n}\n\
        long calls(long a) { return 1 + dead(77, a); }\nlong jumps(long a) { return dead(a, 6); }\n";
    let compiled = Compiled::new(text, &[]);
    let debug = compiled.open();
    let id = only(&debug, "dead");
    let statements = debug.statements(id).expect("lines");
    let last = statements.iter().rfind(|statement| statement.line == 6).expect("a line");
    match debug.variable(id, last.address, "first").expect("is whole") {
        Err(Unavailable::Unsupported(why)) => assert!(why.contains("callers"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn calls_and_labels() {
    let text = "extern int far(int); static inline int near(int a) { return a * 3; }\n\
        __attribute__((noinline)) int own(int a) { return far(a) + 1; }\n\
        int caller(int a) {\n\
          if (a < 0) goto out;\n\
          a = own(a) + near(a);\n\
        out:\n\
          return far(a) + 1; }";
    let compiled = Compiled::new(text, &[]);
    let debug = compiled.open();
    let id = only(&debug, "caller");
    let calls = debug.calls(id).expect("are whole");
    // `far` belongs to another object.
    let names: Vec<(String, bool)> = calls
        .iter()
        .map(|call| (debug.function(call.callee).expect("is whole").name, call.inlined.is_some()))
        .collect();
    assert!(names.contains(&("own".into(), false)) && names.contains(&("near".into(), true)), "{names:?}");
    assert!(names.iter().all(|(name, _)| name != "far"), "{names:?}");
    let own = calls.iter().find(|call| call.inlined.is_none()).expect("is called");
    let bytes = std::fs::read(compiled.path()).expect("is there");
    let elf = ::object::File::parse(&*bytes).expect("an object");
    let section = own.address.section.expect("of a relocatable file").0 as usize;
    let code = ::object::ObjectSection::data(
        &::object::Object::section_by_index(&elf, ::object::SectionIndex(section)).expect("is there"),
    )
    .expect("is there");
    assert_eq!(code[own.address.offset as usize], 0xe8);
    let labels = debug.labels(id).expect("are whole");
    assert_eq!(labels.iter().map(|label| (label.name.as_str(), label.line)).collect::<Vec<_>>(), [("out", 6)]);
    let body = &debug.function(id).expect("is whole").bodies[0];
    let middle = Address { offset: body.entry.offset + body.size / 2, ..body.entry };
    assert_eq!(debug.function_at(middle).expect("symbols"), Some(id));
}

/// In programs calls are not all of five bytes: a probe in the middle of one would break the program.
#[test]
fn calls_of_a_library_without_a_procedure_linkage_table() {
    let text = "__attribute__((noinline)) int foo(int a) { __asm__ volatile(\"\" ::: \"memory\"); return a + 1; }\n\
        int two(int x)\n{\nint r = foo(x);\n__asm__ volatile(\"\" ::: \"memory\");\nr += foo(x + 3);\n\
        __asm__ volatile(\"\" ::: \"memory\");\nreturn foo(r) * 2;\n}\n";
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("test.c"), text).expect("written");
    for machine in ["-m64", "-m32"] {
        let options = [machine, "-g", "-O2", "-fPIC", "-fno-plt", "-shared", "-nostdlib", "-o", "test", "test.c"];
        let gcc = std::process::Command::new("gcc").current_dir(directory.path()).args(options).output();
        let gcc = gcc.expect("gcc runs");
        assert!(gcc.status.success(), "{}", String::from_utf8_lossy(&gcc.stderr));
        let elf = Arc::new(Elf::open_program(&directory.path().join("test")).expect("an ELF file"));
        let debug = DebugInfo::of_program(elf.clone(), None, None).expect("has DWARF");
        let calls = debug.calls(only(&debug, "two")).expect("are whole");
        assert_eq!(calls.len(), 3, "{machine}: {calls:?}");
        let file = std::fs::read(directory.path().join("test")).expect("is there");
        for found in calls {
            let at = elf.file_offset(found.address.offset).expect("is in the file") as usize;
            // `call *foo@GOTPCREL(%rip)`, or `call *foo@GOT(%ebx)` by one of the registers.
            assert!(file[at] == 0xff && matches!(file[at + 1], 0x15 | 0x90..=0x97), "{machine}: {found:?}");
            assert_eq!(found.returns_to.offset, found.address.offset + 6, "{machine}");
        }
    }
}

/// gcc writes numbers that are not negative in as few bytes as they need, whose highest bit is no sign.
#[test]
fn constants_of_one_byte_are_not_negative() {
    let text = r#"
enum negative { MINUS = -3, PLUS = 200, MORE = 40000 };
enum positive { HIGH = 200, HIGHEST = 0xfffffff0 };
enum negative n; enum positive p;
void outer(void)
{
    int minus = -112; unsigned long size = 144; long far = 3000000000L;
    __asm__ volatile("nop");
}
"#;
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let compiled = Compiled::new(text, &[version]);
        let debug = compiled.open();
        let values = |name: &str| match debug.get(type_named(&debug, name)).expect("a type") {
            Type::Enum { signed, values, .. } => {
                (signed, values.into_iter().map(|(_, value)| value).collect::<Vec<_>>())
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(values("enum negative"), (true, vec![-3, 200, 40000]));
        assert_eq!(values("enum positive"), (false, vec![200, 0xffff_fff0]));
        assert_eq!(debug.enumerator("PLUS").expect("is whole"), Some(200));
        let outer = only(&debug, "outer");
        let entry = debug.function(outer).expect("a function").bodies[0].entry;
        for (name, expected) in [("minus", -112), ("size", 144), ("far", 3_000_000_000)] {
            let found = debug.variable(outer, entry, name).expect("is whole").expect("has a value");
            assert_eq!(found.location, Location::Value(vec![Op::Const(expected)]), "{name}");
        }
    }
}

/// In C++ symbols have other names than functions.
#[test]
fn functions_of_cpp_at_addresses() {
    let text = r#"
namespace shop {
struct item { int price; __attribute__((noinline)) int cost(int n) const; };
int item::cost(int n) const { return price * n + 3; }
template <typename F> __attribute__((noinline)) int apply(F f, int n) { int s = 0; while (n--) s += f(n); return s; }
}
int outer(const shop::item &a, int n) { return shop::apply([&](int i) { return a.cost(i) + n; }, n); }
"#;
    let compiled = Compiled::new(text, &["-xc++", "-ffunction-sections"]);
    let debug = compiled.open();
    for name in ["shop::item::cost", "apply", "outer"] {
        let id = only(&debug, name);
        let body = &debug.function(id).expect("is whole").bodies[0];
        let middle = Address { offset: body.entry.offset + body.size / 2, ..body.entry };
        assert_eq!(debug.function_at(middle).expect("is whole"), Some(id), "{name}");
    }
}

/// The value of a variable that is only computed, at an address of the function `f`.
fn computed(debug: &DebugInfo, machine: &Machine, at: Address, name: &str, size: u8) -> u64 {
    let id = only(debug, "f");
    let found = debug.variable(id, at, name).expect("is whole").expect(name);
    assert!(matches!(found.location, Location::Value(_)), "{name}: {found:?}");
    machine.read(&found.location, size)
}

/// Remainders of numbers with the top bit, which gcc computes without a sign.
#[test]
fn unsigned_remainders() {
    let text = "typedef unsigned long u64; extern void sink(u64);
        u64 f(u64 a, u64 b) { u64 fixed = a % 17; u64 by = a % b; sink(a); sink(b); return b; }";
    let compiled = Compiled::new(text, &[]);
    let debug = compiled.open();
    let mut body = debug.function(only(&debug, "f")).expect("is whole").bodies.remove(0).entry;
    body.offset += 4;
    let numbers =
        [0, 1, 16, 17, 18, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, u64::MAX - 16, u64::MAX - 1, u64::MAX];
    for a in numbers {
        for b in numbers.into_iter().filter(|b| *b > 0) {
            let mut machine = Machine::default();
            machine.registers.extend([(5, a), (4, b)]);
            assert_eq!(computed(&debug, &machine, body, "fixed", 8), a % 17, "{a}");
            assert_eq!(computed(&debug, &machine, body, "by", 8), a % b, "{a} {b}");
        }
    }
}

/// A program without libraries, in which the function `f` is the first one.
fn linked(compiler: &str, options: &[&str], text: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("test.c"), text).expect("written");
    let usual =
        ["-O2", "-g", "-fno-pic", "-no-pie", "-ffreestanding", "-nostdlib", "-static", "-Wl,-e,f", "-o", "test"];
    let language = if compiler == "g++" { &["-x", "c++"][..] } else { &[] };
    let arguments = [language, &usual, options, &["test.c"]].concat();
    let output = Command::new(compiler).current_dir(directory.path()).args(arguments).output();
    let output = output.expect("the compiler runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    directory
}

fn program_in(directory: &tempfile::TempDir) -> Result<DebugInfo, Error> {
    let elf = Elf::open_program(&directory.path().join("test")).expect("is read");
    DebugInfo::of_program(Arc::new(elf), None, None)
}

/// Words of 32-bit programs are extended by their sign, or without, before what depends on their upper bits.
#[test]
fn words_of_32_bits() {
    let text = "__attribute__((noipa)) void sink(int a) { asm volatile(\"\" :: \"r\"(a)); }
        long f(int a, int b) { int h = a >> 1; int q = a / 3; unsigned m = (unsigned)a % 7; int less = a < b;
            unsigned s = (unsigned)a >> 3; int sum = a * 5 + 1; int same = sum == b; sink(a); sink(b); return b; }";
    let debug = program_in(&linked("gcc", &["-m32"], text)).expect("has DWARF");
    let id = only(&debug, "f");
    let mut at = debug.function(id).expect("is whole").bodies.remove(0).entry;
    at.offset += 8;
    for a in [-8i32, -1, 7, i32::MIN, i32::MAX] {
        let mut machine = Machine::default();
        machine.registers.extend((0..=16).map(|register| (register, 0x9000)));
        let found = debug.variable(id, at, "a").expect("is whole").expect("a");
        let Location::Memory(ops) = &found.location else { panic!("{found:?}") };
        let place = machine.run(ops);
        // What is behind it is not part of it.
        machine.store(place, 0xffff_ffff_0000_0000 | u64::from(a as u32));
        let b = a.wrapping_mul(5).wrapping_add(1);
        machine.registers.insert(3, u64::from(b as u32));
        let value = |name| computed(&debug, &machine, at, name, 4) as i32;
        assert_eq!((value("h"), value("q"), value("m")), (a >> 1, a / 3, (a as u32 % 7) as i32), "{a}");
        assert_eq!((value("less"), value("s"), value("sum")), (i32::from(a < b), ((a as u32) >> 3) as i32, b), "{a}");
        assert_eq!(value("same"), 1, "{a}");
    }
}

/// The parts of complex numbers, which have no entry of their own.
#[test]
fn complex_numbers() {
    let compiled = Compiled::new("_Complex float single; _Complex double pairs[3]; float real;", &["-O0"]);
    let debug = compiled.open();
    let variable = |name: &str| debug.global(name, None).expect("an index").expect("is there").type_id;
    let place = |id, name: &str| {
        let found = debug.member(id, name).expect("a part");
        (found.offset, debug.get(found.type_id).expect("a type"))
    };
    let base = |name: &str, size| Type::Base { name: name.into(), size, encoding: BaseEncoding::Float };
    let single = variable("single");
    assert_eq!(debug.size_of(single).expect("a size"), Some(8));
    assert_eq!((place(single, "real"), place(single, "imag")), ((0, base("float", 4)), (4, base("float", 4))));
    let Type::Array { element, .. } = debug.get(variable("pairs")).expect("a type") else { panic!("no array") };
    assert_eq!(debug.size_of(variable("pairs")).expect("a size"), Some(48));
    assert_eq!(place(element, "imag"), (8, base("double", 8)));
    assert_eq!(debug.get(variable("real")).expect("a type"), base("float", 4));
}

/// Pointers to members are as large as the program's words.
#[test]
fn pointers_to_members() {
    for (bits, word) in [("-m32", 4), ("-m64", 8)] {
        let text = "struct A { int x; int f(); }; int A::*field; int (A::*method)(); extern \"C\" int f() { return field && method; }";
        let debug = program_in(&linked("g++", &[bits], text)).expect("has DWARF");
        let size = |name: &str| {
            let found = debug.global(name, None).expect("an index").expect("is there");
            debug.size_of(found.type_id).expect("a size")
        };
        assert_eq!((size("field"), size("method")), (Some(word), Some(2 * word)));
    }
}

/// Types in units of their own are found by their signatures.
#[test]
fn types_in_units_of_their_own() {
    let text = "struct inner { int a; long b; }; enum color { RED, BLUE = 7 };
        struct outer { struct inner first; struct inner *next; enum color color; union { int x; char y; }; };
        int f(struct outer *p) { return p->next->a + p->color + p->x; }
        struct outer object; struct inner another;";
    // Those of DWARF 4 are in a section of their own.
    let versions = ["-gdwarf-5", "-gdwarf-4"];
    let compilers =
        ["gcc", "g++", "clang"].into_iter().flat_map(|compiler| versions.map(|version| (compiler, [version])));
    for (compiler, options) in compilers {
        let debug = program_in(&linked(compiler, &[&["-fdebug-types-section"], &options[..]].concat(), text));
        let debug = debug.expect("has DWARF");
        let id = only(&debug, "f");
        let entry = debug.function(id).expect("is whole").bodies[0].entry;
        let pointer = debug.variable(id, entry, "p").expect("is whole").expect("is there").type_id;
        let Type::Pointer(Some(outer)) = debug.resolve(pointer).expect("is whole").1 else { panic!("no pointer") };
        let place = |name: &str| debug.member(outer, name).expect(name).offset;
        assert_eq!((place("first"), place("next"), place("color"), place("x")), (0, 16, 24, 28), "{compiler}");
        assert_eq!(debug.size_of(outer).expect("a size"), Some(32), "{compiler}");
        let color = debug.resolve(debug.member(outer, "color").expect("color").type_id).expect("is whole").1;
        assert!(matches!(color, Type::Enum { values, .. } if values.len() == 2), "{compiler}");
        let found = debug.global("another", None).expect("an index").expect("is there").type_id;
        assert_eq!(debug.member(found, "b").expect("b").offset, 8, "{compiler}");
    }
}

/// Units in files of their own are read there, or in a package; what is missing is named.
#[test]
fn debug_information_in_files_of_its_own() {
    let text = "struct pair { int a; long b; };
        static inline int twice(struct pair *p) { return p->a * 2; }
        __attribute__((noinline)) int f(struct pair *p, int n) { int sum = n + 1; return twice(p) + sum; }
        struct pair object; int main(int n, char **v) { return f(&object, n); }";
    let kinds = [
        ("gcc", &["-gdwarf-5"][..]),
        ("gcc", &["-gdwarf-4"]),
        ("gcc", &["-gdwarf-5", "-fdebug-types-section"]),
        ("gcc", &["-gdwarf-4", "-fdebug-types-section"]),
        ("gcc", &["-gdwarf-5", "-gz"]),
        ("clang", &["-gdwarf-5"]),
        ("clang", &["-gdwarf-4"]),
    ];
    for (compiler, options) in kinds {
        let whole_options = [&["-O2"], options].concat();
        let whole = program_in(&linked(compiler, &whole_options, text)).expect("has DWARF");
        let directory = linked(compiler, &[&["-gsplit-dwarf"], &whole_options[..]].concat(), text);
        let debug = program_in(&directory).expect("has skeletons");
        assert_eq!((debug.missing_part(), whole.missing_part()), (None, None), "{compiler} {options:?}");
        let read = |debug: &DebugInfo| {
            let id = only(debug, "f");
            let function = debug.function(id).expect("is whole");
            let entry = function.bodies[0].entry;
            let variable = |name: &str| debug.variable(id, entry, name).expect("is whole").expect("is there");
            let Type::Pointer(Some(pair)) = debug.resolve(variable("p").type_id).expect("is whole").1 else {
                panic!("no pointer")
            };
            let lines: Vec<u32> =
                debug.statements(id).expect("are whole").iter().map(|statement| statement.line).collect();
            let global = debug.global("object", None).expect("an index").expect("is there");
            (
                (function.line, lines, debug.member(pair, "b").expect("b").offset),
                (variable("n").location, debug.size_of(global.type_id).expect("a size")),
            )
        };
        assert_eq!(read(&debug), read(&whole), "{compiler} {options:?}");
    }
    // A damaged one takes away no other.
    for version in ["-gdwarf-5", "-gdwarf-4"] {
        let directory = linked("gcc", &["-gsplit-dwarf", version], text);
        let files = std::fs::read_dir(directory.path()).expect("a directory").flatten().map(|entry| entry.path());
        let unit = files.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "dwo"));
        let unit = unit.expect("a unit");
        let mut bytes = std::fs::read(&unit).expect("is read");
        let object = ::object::File::parse(&*bytes).expect("an object");
        let section = ::object::Object::section_by_name(&object, ".debug_info.dwo").expect("has units");
        let (start, length) = ::object::ObjectSection::file_range(&section).expect("in the file");
        // Behind the length of the unit and its version.
        let range = start as usize + 6..(start + length) as usize;
        bytes[range].fill(0xff);
        std::fs::write(&unit, bytes).expect("is written");
        let debug = program_in(&directory).expect("has skeletons");
        assert!(debug.missing_part().is_some_and(|file| file.ends_with(".dwo")), "{version}");
    }
    // That of binutils 2.40 leaves out units of DWARF 5.
    for (version, packer) in [("-gdwarf-5", "llvm-dwp"), ("-gdwarf-4", "dwp"), ("-gdwarf-4", "llvm-dwp")] {
        let directory = linked("gcc", &["-gsplit-dwarf", version, "-fdebug-types-section"], text);
        let files = std::fs::read_dir(directory.path()).expect("a directory").flatten().map(|entry| entry.path());
        let units: Vec<_> = files.filter(|path| path.extension().is_some_and(|extension| extension == "dwo")).collect();
        let package = Command::new(packer).current_dir(directory.path()).args(["-o", "test.dwp"]).args(&units).status();
        units.iter().for_each(|unit| std::fs::remove_file(unit).expect("removed"));
        if package.is_ok_and(|status| status.success()) {
            let debug = program_in(&directory).expect("has skeletons");
            assert_eq!(debug.missing_part(), None, "{packer} {version}");
            let id = only(&debug, "f");
            let entry = debug.function(id).expect("is whole").bodies[0].entry;
            let pointer = debug.variable(id, entry, "p").expect("is whole").expect("is there").type_id;
            let Type::Pointer(Some(pair)) = debug.resolve(pointer).expect("is whole").1 else { panic!("no pointer") };
            assert_eq!(debug.member(pair, "b").expect("b").offset, 8, "{packer} {version}");
            std::fs::remove_file(directory.path().join("test.dwp")).expect("removed");
        }
        let debug = program_in(&directory).expect("has skeletons");
        assert!(debug.missing_part().is_some_and(|file| file.ends_with(".dwo")), "{version}");
    }
}

/// A unit of 20 bytes may have a table of any length, which is that of all others too.
#[test]
fn units_of_a_split_file_with_one_long_table() {
    let split = ".section .debug_abbrev.dwo,\"e\",@progbits
        .uleb128 1, 0x11; .byte 0; .uleb128 0x2131, 7; .byte 0, 0
        .set n, 2
        .rept 100000
        .uleb128 n, 0x2e; .byte 0, 0, 0; .set n, n + 1
        .endr
        .byte 0
        .section .debug_info.dwo,\"e\",@progbits
        .set n, 1
        .rept 2000
        .long 16; .short 4; .long 0; .byte 8, 1; .quad n; .set n, n + 1
        .endr";
    let skeleton = ".section .debug_abbrev,\"\",@progbits
        .uleb128 1, 0x11; .byte 0; .uleb128 0x2130, 8, 0x2131, 7; .byte 0, 0, 0
        .section .debug_info,\"\",@progbits
        .long end - start
        start: .short 4; .long 0; .byte 8, 1; .asciz \"x.dwo\"; .quad 2000
        end: .section .debug_addr,\"\",@progbits
        .quad 0
        .section .note.GNU-stack,\"\",@progbits";
    let directory = linked("gcc", &["-g0"], "void f(void) {}");
    for (name, text, output) in [("split.s", split, "x.dwo"), ("skeleton.s", skeleton, "skeleton.o")] {
        std::fs::write(directory.path().join(name), format!("{text}\n")).expect("written");
        let built = Command::new("gcc").current_dir(directory.path()).args(["-c", "-o", output, name]).status();
        assert!(built.expect("runs").success());
    }
    let options = ["-nostdlib", "-static", "-Wl,-e,f", "-g0", "-o", "test", "test.c", "skeleton.o"];
    assert!(Command::new("gcc").current_dir(directory.path()).args(options).status().expect("runs").success());
    assert_eq!(program_in(&directory).expect("is whole").missing_part(), None);
}

/// Arrays begin at 1 in Fortran, where their entry does not say anything else.
#[test]
fn arrays_that_do_not_begin_at_0() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("test.c"), "int ten[10];").expect("written");
    let gcc = |options: &[&str]| Command::new("gcc").current_dir(directory.path()).args(options).status();
    assert!(gcc(&["-g", "-dA", "-S", "test.c"]).is_ok_and(|status| status.success()));
    let text = std::fs::read_to_string(directory.path().join("test.s")).expect("written");
    let lines = text.lines().map(|line| match line.contains(".byte") && line.contains("DW_AT_language") {
        true => "\t.byte 0x8\n".to_string(),
        false => format!("{line}\n"),
    });
    std::fs::write(directory.path().join("test.s"), lines.collect::<String>()).expect("written");
    assert!(gcc(&["-c", "test.s"]).is_ok_and(|status| status.success()));
    let debug = open(&directory.path().join("test.o"));
    let found = debug.global("ten", None).expect("an index").expect("is there").type_id;
    // From 1 to 9.
    assert!(matches!(debug.get(found).expect("a type"), Type::Array { counts, .. } if counts == [Some(9)]));
}

/// Arguments of a call that are pushed are no part of the frame that clang's variables are found by.
#[test]
fn frames_in_which_arguments_are_pushed() {
    let text = "void sink(char *, int, int, int, int, int, int, int, int);
        int f(int n) { char buf[64]; __builtin_memset(buf, n, 64); sink(buf, n, 2, 3, 4, 5, 6, 7, 8); return buf[n]; }";
    let options = ["-O2", "-fomit-frame-pointer", "-c", "-o", "test"];
    let debug = program_in(&linked("clang", &options, text)).expect("has DWARF");
    let id = only(&debug, "f");
    let entry = debug.function(id).expect("is whole").bodies[0].entry;
    let found = debug.variable(id, entry, "buf").expect("is whole").expect("is there");
    // Once rbx is pushed, and 64 bytes are taken, until the arguments are pushed; at the entry rsp is 72 bytes above.
    assert_eq!(found.location, Location::Memory(vec![Op::Register(7), Op::Const(-72), Op::Add]));
}

/// How functions are called that are not of C, C++ or Rust is known of some languages only.
#[test]
fn conventions_of_languages() {
    let directory = tempfile::tempdir().expect("a directory");
    let compile = |arguments: &[&str]| {
        let gcc = Command::new("gcc").current_dir(directory.path()).args(arguments).output().expect("gcc runs");
        assert!(gcc.status.success(), "{}", String::from_utf8_lossy(&gcc.stderr));
    };
    std::fs::write(directory.path().join("test.c"), "int f(int a) { return a + 1; }").expect("written");
    compile(&["-S", "-dA", "-g", "-gdwarf-5", "-O2", "-o", "test.s", "test.c"]);
    let assembly = std::fs::read_to_string(directory.path().join("test.s")).expect("read");
    let conventions = [
        (gimli::DW_LANG_C11, Convention::C),
        (gimli::DW_LANG_Fortran95, Convention::C),
        (gimli::DW_LANG_Rust, Convention::Either),
        (gimli::DW_LANG_Go, Convention::Unknown),
        (gimli::DW_LANG_D, Convention::Unknown),
    ];
    for (language, convention) in conventions {
        let is_language = |line: &str| line.contains("DW_AT_language") && line.contains(".byte");
        assert!(assembly.lines().any(is_language), "{assembly}");
        let lines = assembly.lines().map(|line| match is_language(line) {
            true => format!("\t.byte {}\n", language.0),
            false => format!("{line}\n"),
        });
        std::fs::write(directory.path().join("other.s"), lines.collect::<String>()).expect("written");
        compile(&["-c", "-o", "other.o", "other.s"]);
        let debug = open(&directory.path().join("other.o"));
        assert_eq!(debug.convention(only(&debug, "f")).expect("is whole"), convention, "{language}");
    }
}

/// The function that an address is in, by symbols alone.
#[test]
fn functions_around_addresses() {
    let text = r#"
        .text
        .globl f
        .type f, @function
f:      nop
inside: ret
        .size f, . - f
behind: ret
        .type open, @function
open:   nop
opened: ret
        .type last, @function
last:   nop
        .type label, @function
label:  nop
nested: ret
        .size last, . - last
untold: ret
        .section .other, "ax"
other:  ret
    "#;
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("f.s"), text).expect("written");
    let linking = ["-nostdlib", "-static", "-Wl,-e,f", "f.s", "-o", "program"];
    let output = Command::new("gcc").current_dir(directory.path()).args(linking).output().expect("gcc runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let elf = Elf::open(&directory.path().join("program")).expect("an object");
    let around = |name: &str| {
        let at = elf.symbol_address(name).expect("symbols").expect("is there");
        elf.containing(at).map(|found| (found.symbol, found.offset))
    };
    let is = |symbol: &str, offset| Some((symbol.to_string(), offset));
    assert_eq!((around("f"), around("inside"), around("behind")), (is("f", 0), is("f", 1), None));
    assert_eq!((around("open"), around("opened")), (is("open", 0), is("open", 1)));
    assert_eq!((around("last"), around("label"), around("nested")), (is("last", 0), is("label", 0), is("last", 2)));
    assert_eq!((around("untold"), around("other")), (None, None));
}
