// SPDX-License-Identifier: GPL-2.0-or-later

use super::*;

/// Assembles; None where there is no assembler.
fn assembled(text: &str) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("unit.s");
    let object = directory.path().join("unit.o");
    std::fs::write(&source, text).unwrap();
    let status = std::process::Command::new("as").arg("--64").arg("-o").arg(&object).arg(&source).status().unwrap();
    assert!(status.success());
    std::fs::read(object).unwrap()
}

/// Three functions; `used` calls `below`. Each has an entry in the tables of returns and of faults, and a string.
const RUNTIME: &str = r#"
.macro function name, callee
	.section .text.\name,"ax",@progbits
	.globl \name
	.type \name, @function
\name:
1:	call \callee
	movq $.Ltext_\name, %rdi
2:	ret
	.size \name, . - \name
	.section .return_sites,"a",@progbits
	.long 2b - .
	.section __ex_table,"a",@progbits
	.long 1b - ., 2b - ., 3
	.section .static_call_sites,"a",@progbits
	.long 1b - ., key_\name - .
	.section __patchable_function_entries,"awo",@progbits,.text.used
	.quad .text.\name
	.section .orc_unwind_ip,"a",@progbits
	.long 1b - .
	.section .orc_unwind,"a",@progbits
	.byte 0, 1, 2, 3, 4
	.ascii "\name"
	.org (. - .orc_unwind + 15) / 16 * 16
	.section .rodata.str1.1,"aMS",@progbits,1
.Ltext_\name:
	.string "text of \name"
.endm

	function used, below
	function unused, other_export
	function below, export
	.section .rodata.spile_families,"a"
	.globl spile_families
spile_families:
	.quad unused, used
	.section .text.loop,"ax"
	.globl walk
walk:	movq $spile_families, %rax
	.section _kprobe_blacklist,"aw"
blacklisted_unused:	.quad unused
blacklisted_used:	.quad used
	.section .init.text,"ax"
	.globl init_module
init_module:	jmp walk
"#;

/// Name, bytes and the names of the relocations' targets, of each section with contents.
fn contents(object: &[u8]) -> Vec<(String, Vec<u8>, Vec<String>)> {
    use object::ObjectSection;
    let file = ElfFile64::<Endianness>::parse(object).unwrap();
    let name_of = |target| {
        let object::RelocationTarget::Symbol(index) = target else { return "none".to_string() };
        let symbol = file.symbol_by_index(index).unwrap();
        match symbol.name().unwrap() {
            "" => file.section_by_index(symbol.section_index().unwrap()).unwrap().name().unwrap().to_string(),
            name => name.to_string(),
        }
    };
    let sections = file.sections().filter(|section| !section.data().unwrap_or_default().is_empty());
    let described = sections.map(|section| {
        let targets = section.relocations().map(|(at, relocation)| format!("{at} {}", name_of(relocation.target())));
        (section.name().unwrap().to_string(), section.data().unwrap().to_vec(), targets.collect())
    });
    described.collect()
}

fn pruned(user: &str) -> Vec<(String, Vec<u8>, Vec<String>)> {
    contents(&prune(&assembled(RUNTIME), &[assembled(user)]).unwrap())
}

fn find<'c>(contents: &'c [(String, Vec<u8>, Vec<String>)], name: &str) -> Option<&'c (String, Vec<u8>, Vec<String>)> {
    contents.iter().find(|section| section.0 == name)
}

#[test]
fn what_a_script_calls_is_there_and_nothing_else() {
    let left = pruned(".globl used\n call used\n");
    for name in [".text.used", ".text.below", ".text.loop", ".init.text"] {
        assert!(find(&left, name).is_some(), "{name}");
    }
    assert!(find(&left, ".text.unused").is_none());
    let returns = find(&left, ".return_sites").unwrap();
    assert_eq!(returns.1.len(), 8);
    assert_eq!(returns.2, ["0 .text.used", "4 .text.below"]);
    let faults = find(&left, "__ex_table").unwrap();
    assert_eq!(faults.1.len(), 24);
    assert_eq!(faults.1.get(20..), Some(&[3, 0, 0, 0][..]));
    assert_eq!(
        find(&left, ".static_call_sites").unwrap().2,
        ["0 .text.used", "4 key_used", "8 .text.below", "12 key_below"]
    );
    assert_eq!(find(&left, "_kprobe_blacklist").unwrap().2, ["0 used"]);
}

#[test]
fn unwind_data_goes_with_its_places() {
    let left = pruned("call used\n");
    assert_eq!(find(&left, ".orc_unwind_ip").unwrap().2, ["0 .text.used", "4 .text.below"]);
    let data = &find(&left, ".orc_unwind").unwrap().1;
    assert_eq!(data.len(), 32);
    assert!(data.starts_with(b"\0\x01\x02\x03\x04used") && data[16..].starts_with(b"\0\x01\x02\x03\x04below"));
}

#[test]
fn a_table_is_linked_to_a_function_that_is_there() {
    let left = prune(&assembled(RUNTIME), &[assembled("call below\n")]).unwrap();
    assert_eq!(find(&contents(&left), "__patchable_function_entries").unwrap().2, ["0 .text.below"]);
    let built = Builder::read64(&*left).unwrap();
    let table = built.sections.iter().find(|section| *section.name == *b"__patchable_function_entries").unwrap();
    assert_eq!(*built.sections.get(table.sh_link_section.unwrap()).name, *b".text.below");
}

#[test]
fn strings_are_those_that_are_used() {
    let left = pruned("call below\n");
    assert_eq!(find(&left, ".rodata.str1.1").unwrap().1, b"text of below\0");
}

#[test]
fn the_table_of_families_holds_nothing() {
    let left = pruned("call used\n");
    assert_eq!(find(&left, ".rodata.spile_families").unwrap().2, ["8 used"]);
    let nothing = pruned("nop\n");
    assert_eq!(find(&nothing, ".rodata.spile_families").unwrap().2, [] as [String; 0]);
    for name in [".text.used", ".return_sites", "__ex_table", ".orc_unwind", ".rodata.str1.1"] {
        assert!(find(&nothing, name).is_none(), "{name}");
    }
}

#[test]
fn symbols_of_the_kernel_that_are_not_used_are_not_asked_for() {
    let left = prune(&assembled(RUNTIME), &[assembled("call used\n")]).unwrap();
    let names = undefined(&left).unwrap();
    assert!(names.contains(&"export".to_string()) && !names.contains(&"other_export".to_string()), "{names:?}");
}

#[test]
fn a_table_of_unknown_form_is_kept_with_all_it_refers_to() {
    let irregular = format!("{RUNTIME}\n\t.section .return_sites,\"a\"\n\t.long 0\n");
    let left = contents(&prune(&assembled(&irregular), &[assembled("nop\n")]).unwrap());
    assert!(find(&left, ".text.unused").is_some());
    assert_eq!(find(&left, ".return_sites").unwrap().1.len(), 16);
}

#[test]
fn annotations_of_entries_hold_nothing() {
    let annotated = format!("{RUNTIME}\n\t.section .discard.annotate_data,\"a\"\n\t.long __ex_table - ., 1\n");
    let left = contents(&prune(&assembled(&annotated), &[assembled("call below\n")]).unwrap());
    assert!(find(&left, ".discard.annotate_data").is_none());
    assert!(find(&left, ".text.unused").is_none());
    assert_eq!(find(&left, "__ex_table").unwrap().1.len(), 12);
}

#[test]
fn names_of_constants_are_left_out() {
    use object::ObjectSymbol;
    let named = format!(
        "{RUNTIME}\n\t.section .rodata.kept,\"a\"\nconstant: .quad 1\n\t.globl shared\nshared: .quad 2\n\
         \t.section .data.kept,\"aw\"\nvariable: .quad 3\n\
         \t.section .text.reader,\"ax\"\n\t.globl reader\nreader: movq constant, %rax\n movq variable, %rax\n"
    );
    let pruned = prune(&assembled(&named), &[assembled("call reader\nmovq shared, %rax\n")]).unwrap();
    let file = ElfFile64::<Endianness>::parse(&*pruned).unwrap();
    let names: Vec<&str> = file.symbols().map(|symbol| symbol.name().unwrap()).collect();
    assert_eq!(["constant", "shared", "variable"].map(|name| names.contains(&name)), [false, true, true]);
    assert_eq!(find(&contents(&pruned), ".rodata.kept").unwrap().1.len(), 16);
}

#[test]
fn what_is_no_object_is_an_error() {
    assert!(prune(b"junk", &[]).is_err());
    assert!(prune(&assembled(RUNTIME), &[b"junk".to_vec()]).is_err());
}

#[test]
fn optional_references_hold_nothing() {
    let optional = format!(
        "{RUNTIME}\n\t.section .rodata.spile_optional,\"a\"\n\
         at_unused: .quad unused\nat_used: .quad used\n\
         \t.section .text.caller,\"ax\"\n\t.globl caller\ncaller: movq at_unused, %rax\n movq at_used, %rax\n"
    );
    let left = contents(&prune(&assembled(&optional), &[assembled("call caller\ncall used\n")]).unwrap());
    let references = find(&left, ".rodata.spile_optional").unwrap();
    assert_eq!((references.1.as_slice(), references.2.as_slice()), (&[0; 16][..], &["8 used".to_string()][..]));
    assert!(find(&left, ".text.unused").is_none());
}

/// Else a part would begin that then does not end, where only its beginning is code to which something returns.
#[test]
fn what_is_only_returned_to_is_not_there_for_optional_references() {
    let apart = [".fixup,\"ax\"\n\tjmp unused\n", ".return_sites,\"a\"\n\t.long 0\n"];
    for section in apart {
        let text = format!(
            "{RUNTIME}\n\t.section .rodata.spile_optional,\"a\"\nat_unused: .quad unused\n\
             \t.section .text.caller,\"ax\"\n\t.globl caller\ncaller: movq at_unused, %rax\n\t.section {section}"
        );
        let left = contents(&prune(&assembled(&text), &[assembled("call caller\n")]).unwrap());
        assert!(find(&left, ".text.unused").is_some(), "{section}");
        assert_eq!(find(&left, ".rodata.spile_optional").unwrap().2, [] as [String; 0], "{section}");
        assert_eq!(find(&left, ".rodata.spile_families").unwrap().2, [] as [String; 0], "{section}");
    }
}
