// SPDX-License-Identifier: GPL-2.0-or-later

//! Compares BTF with DWARF. pahole has made the kernel's BTF from its DWARF, so it is an independent reader of what is read
//! here: where the two agree, both are likely to be right.

use super::*;
use crate::btf;

/// The installed kernel by its DWARF and by its BTF.
fn both() -> Option<(DebugInfo, DebugInfo, tempfile::TempDir)> {
    let path = super::vmlinux::installed()?;
    let elf = Elf::open(&path).expect("an ELF file");
    let Some(bytes) = elf.btf().expect("is whole") else {
        println!("skipped: {} has no .BTF", path.display());
        return None;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let raw = directory.path().join("vmlinux");
    std::fs::write(&raw, bytes).expect("written");
    let btf = open(&raw);
    assert!(btf.is_btf());
    Some((open(&path), btf, directory))
}

/// Names that exactly one struct has.
fn structs(debug: &DebugInfo) -> Vec<String> {
    let bytes = debug.elf().btf().expect("is whole").expect("has BTF");
    btf::Btf::of_bytes(bytes).expect("is whole").structs()
}

/// A type in words: a struct by its members, an enumeration by its values.
fn described(debug: &DebugInfo, id: TypeId) -> String {
    match debug.get(id).expect("is whole") {
        Type::Struct { size, members, .. } => {
            let members: Vec<String> = members
                .iter()
                .map(|member| {
                    let bits = member.bits.map_or(String::new(), |bits| format!(" {}:{}", bits.first, bits.bits));
                    let (name, ty) = (member.name.as_deref().unwrap_or("-"), debug.type_name(member.type_id));
                    // BTF writes `[]` like this.
                    format!("{} {name} {}{bits}", member.offset, ty.replace("[0]", "[]"))
                })
                .collect();
            format!("{size} {}", members.join("; "))
        }
        Type::Enum { size, values, .. } => format!("{size} {values:?}"),
        other => format!("{other:?}"),
    }
}

#[test]
fn structs_agree_with_pahole() {
    let Some((dwarf, btf, _directory)) = both() else { return };
    let names = structs(&btf);
    let step = (names.len() / 500).max(1);
    let (mut agree, mut differ) = (0, Vec::new());
    for name in names.iter().step_by(step) {
        let name = format!("struct {name}");
        let [dwarf, btf] =
            [&dwarf, &btf].map(|debug| debug.find_type(&name).expect("an index").map(|id| described(debug, id)));
        if dwarf == btf {
            agree += 1;
        } else {
            differ.push(format!("{name}\n  DWARF {dwarf:?}\n  BTF   {btf:?}"));
        }
    }
    println!("structs: {agree} of {} as pahole has them", agree + differ.len());
    assert!(agree >= 500 && differ.len() * 200 <= agree, "{agree}, {}", differ.join("\n"));
}

/// All of the kernel's types.
#[test]
fn structs_with_bit_fields_agree_with_pahole() {
    let Some((dwarf, btf, _directory)) = both() else { return };
    let names = structs(&btf);
    let (mut agree, mut differ) = (0, Vec::new());
    for name in &names {
        let name = format!("struct {name}");
        let Some(id) = btf.find_type(&name).expect("an index") else { continue };
        let Type::Struct { members, .. } = btf.get(id).expect("is whole") else { continue };
        if members.iter().all(|member| member.bits.is_none()) {
            continue;
        }
        let of_btf = Some(described(&btf, id));
        let own = dwarf.find_type(&name).expect("an index").map(|id| described(&dwarf, id));
        if own == of_btf {
            agree += 1;
        } else {
            differ.push(format!("{name}\n  DWARF {own:?}\n  BTF   {of_btf:?}"));
        }
    }
    println!("structs with bit-fields: {agree} of {} as pahole has them", agree + differ.len());
    // pahole 1.24 merges the dimensions of an array into one.
    assert!(agree >= 200 && differ.len() * 100 <= agree, "{agree}, {}", differ.join("\n"));
}

/// Types without a name have the empty string, and strings stand one after the other.
#[test]
fn names_that_no_type_has() {
    let Some((_, btf, _directory)) = both() else { return };
    assert!(btf.find_type("struct file").expect("an index").is_some());
    for name in ["struct ", "union ", "enum ", "", "struct fil", "struct file\0"] {
        assert!(btf.find_type(name).expect("an index").is_none(), "{name:?}");
    }
    let bytes = btf.elf().btf().expect("is whole").expect("has BTF");
    let at = bytes.windows(6).position(|some| some == b"\0file\0").expect("a string") + 1;
    let two = bytes[at..].iter().take(100).copied().take_while(u8::is_ascii);
    let two: Vec<u8> = two
        .scan(0, |ends, byte| {
            *ends += u32::from(byte == 0);
            (*ends < 2).then_some(byte)
        })
        .collect();
    let two = format!("struct {}", String::from_utf8(two).expect("ASCII"));
    assert!(two.starts_with("struct file\0") && btf.find_type(&two).expect("an index").is_none(), "{two:?}");
}

#[test]
fn functions_agree_with_pahole() {
    let Some((dwarf, btf, _directory)) = both() else { return };
    let names = btf.function_names().expect("are there");
    let step = (names.len() / 2000).max(1);
    let prototype = |debug: &DebugInfo, id: FunctionId| {
        let function = debug.function(id).expect("is whole");
        let parameters = debug.parameters(id).expect("are whole");
        let parameters: Vec<String> =
            parameters.iter().map(|one| format!("{} {}", debug.type_name(one.type_id), one.name)).collect();
        format!("{} ({})", function.return_type.map_or("void".into(), |id| debug.type_name(id)), parameters.join(", "))
    };
    let (mut agree, mut differ) = (0, Vec::new());
    for name in names.iter().step_by(step) {
        let pattern = FunctionPattern { name: name.clone(), file: None };
        let [dwarfs, btfs] = [&dwarf, &btf].map(|debug| -> Vec<String> {
            debug.find_functions(&pattern).expect("an index").into_iter().map(|id| prototype(debug, id)).collect()
        });
        // Several functions of one name: pahole takes one.
        if btfs.iter().all(|one| dwarfs.contains(one)) {
            agree += 1;
        } else {
            differ.push(format!("{name}\n  DWARF {dwarfs:?}\n  BTF   {btfs:?}"));
        }
    }
    println!("functions: {agree} of {} as pahole has them", agree + differ.len());
    assert!(agree >= 2000 && differ.len() * 100 <= agree, "{agree}, {}", differ.join("\n"));
}

#[test]
fn parameters_lie_where_dwarf_says() {
    let Some((dwarf, btf, _directory)) = both() else { return };
    for (name, parameter) in [("vfs_read", "count"), ("vfs_read", "pos"), ("do_sys_open", "mode")] {
        let [from_dwarf, from_btf] = [&dwarf, &btf].map(|debug| {
            let id = only(debug, name);
            let entry = debug.function(id).expect("is whole").bodies.first().map(|body| body.entry);
            let entry = entry.unwrap_or(Address { section: None, offset: 0 });
            debug.variable(id, entry, parameter).expect("is whole").expect("has a value").location
        });
        assert_eq!(from_dwarf, from_btf, "{name} {parameter}");
    }
    let id = only(&btf, "vfs_read");
    let nowhere = Address { section: None, offset: 0 };
    assert_eq!(btf.variable(id, nowhere, "missing").expect("is whole"), Err(Unavailable::Unknown));
    let (file, in_dwarf) = (type_named(&btf, "struct file"), type_named(&dwarf, "struct file"));
    let [member, same] =
        [btf.member(file, "f_pos").expect("is there"), dwarf.member(in_dwarf, "f_pos").expect("is there")];
    assert_eq!(member.offset, same.offset);
    assert_eq!(btf.enumerator("PIDTYPE_TGID").expect("is whole"), dwarf.enumerator("PIDTYPE_TGID").expect("is whole"));
}

/// Damage gives incomplete results or an error.
#[test]
fn damaged_btf() {
    let Some(path) = super::vmlinux::installed() else { return };
    let Some(whole) = Elf::open(&path).expect("an ELF file").btf().expect("is whole") else { return };
    let header = 24;
    for at in (0..header).chain((header..whole.len()).step_by(whole.len() / 40)) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        let Some(btf) = btf::Btf::of_bytes(bytes) else { continue };
        for id in (0..200_000).step_by(997) {
            let _ = (btf.get(TypeId::new(id), crate::facts::Extent::Whole), btf.name(id), btf.prototype(id));
        }
    }
    for length in (0..header).chain((header..whole.len()).step_by(whole.len() / 20)) {
        assert!(btf::Btf::of_bytes(whole[..length].to_vec()).is_none(), "{length}");
    }
}
