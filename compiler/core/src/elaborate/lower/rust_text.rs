// SPDX-License-Identifier: GPL-2.0-or-later

//! Text of Rust, which is as long as a number beside its pointer says and has no NUL at its end: `&str`, `Box<str>` and `String`;
//! bytes in `&[u8]` and `Vec<u8>`, as programs read and write them, are text, too.

use spile_debuginfo::{DebugInfo, Error, Member, Type as CType, TypeId};

/// Where a struct has them, in bytes from its beginning.
pub(super) struct RustText {
    /// The pointer to the text.
    pub pointer: u64,
    /// Its length in bytes.
    pub length: u64,
}

/// Structs around a pointer (`RawVec`, `Unique`, `NonNull` and others): there are five.
const MOST_AROUND: usize = 8;

/// None: a struct of that name and with these members is no text.
pub(super) fn of(debug: &DebugInfo, name: Option<&str>, members: &[Member]) -> Result<Option<RustText>, Error> {
    let Some(name) = name else { return Ok(None) };
    let find = |members: &[Member], wanted: &str| {
        members
            .iter()
            .find(|member| member.name.as_deref() == Some(wanted))
            .map(|member| (member.type_id, member.offset))
    };
    if let (Some((pointer, at)), Some((_, length))) = (find(members, "data_ptr"), find(members, "length")) {
        let is_wide = members.len() == 2 && (name.starts_with(['&', '*']) || name.contains('<'));
        return Ok((is_wide && is_to_bytes(debug, pointer)?).then_some(RustText { pointer: at, length }));
    }
    if name == "String" && members.len() == 1 {
        let Some((vector, start)) = find(members, "vec") else { return Ok(None) };
        let CType::Struct { name: Some(inner), members, .. } = debug.resolve(vector)?.1 else { return Ok(None) };
        let text = match inner.starts_with("Vec<") {
            true => of(debug, Some(&inner), &members)?,
            false => None,
        };
        return Ok(text.map(|text| RustText { pointer: start + text.pointer, length: start + text.length }));
    }
    if name.starts_with("Vec<u8") {
        let (Some((buffer, start)), Some((_, length))) = (find(members, "buf"), find(members, "len")) else {
            return Ok(None);
        };
        let pointer = inner_pointer(debug, buffer, MOST_AROUND)?;
        return Ok(pointer.map(|at| RustText { pointer: start + at, length }));
    }
    Ok(None)
}

/// The offset of the pointer to bytes in a struct that has only one.
fn inner_pointer(debug: &DebugInfo, id: TypeId, left: usize) -> Result<Option<u64>, Error> {
    match debug.resolve(id)?.1 {
        CType::Pointer(_) => Ok(is_to_bytes(debug, id)?.then_some(0)),
        CType::Struct { members, .. } if left > 0 => {
            for member in &members {
                if let Some(inside) = inner_pointer(debug, member.type_id, left - 1)? {
                    return Ok(Some(member.offset + inside));
                }
            }
            Ok(None)
        }
        _ => Ok(None),
    }
}

fn is_to_bytes(debug: &DebugInfo, id: TypeId) -> Result<bool, Error> {
    let CType::Pointer(Some(target)) = debug.resolve(id)?.1 else { return Ok(false) };
    Ok(matches!(debug.resolve_outline(target)?, CType::Base { name, size: 1, .. } if name == "u8"))
}
