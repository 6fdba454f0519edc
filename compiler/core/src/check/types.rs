// SPDX-License-Identifier: GPL-2.0-or-later

//! Whether a value is read alike on two kernels: by what is there, not by how its type is spelled.

use spile_debuginfo::{BaseEncoding, DebugInfo, Type, TypeId};

/// Pointers to pointers: no script goes deeper.
const MAX_DEPTH: usize = 8;

/// A type of an object.
#[derive(Clone, Copy)]
pub(super) struct Typed<'d> {
    /// The debug information that the id is of.
    pub debug: &'d DebugInfo,
    /// Which type.
    pub id: TypeId,
}

impl Typed<'_> {
    /// The name in C, as messages show it.
    pub fn name(&self) -> String {
        self.debug.type_name(self.id)
    }
}

/// Whether values of the two types mean the same to a script. What cannot be read counts as another type.
pub(super) fn alike(first: Typed, second: Typed) -> bool {
    alike_at(first, second, 0).unwrap_or(false)
}

fn alike_at(first: Typed, second: Typed, depth: usize) -> Option<bool> {
    if depth > MAX_DEPTH {
        return Some(true);
    }
    let (_, one) = first.debug.resolve(first.id).ok()?;
    let (_, other) = second.debug.resolve(second.id).ok()?;
    let deeper = |a: Option<TypeId>, b: Option<TypeId>| match (a, b) {
        (None, None) => Some(true),
        // What points to nothing in particular: a word.
        (None, Some(_)) | (Some(_), None) => Some(false),
        (Some(a), Some(b)) => alike_at(Typed { id: a, ..first }, Typed { id: b, ..second }, depth + 1),
    };
    Some(match (&one, &other) {
        (Type::Pointer(a), Type::Pointer(b)) => deeper(*a, *b)?,
        (Type::Array { element: a, counts: m }, Type::Array { element: b, counts: n }) => {
            m == n && deeper(Some(*a), Some(*b))?
        }
        (Type::Function { .. }, Type::Function { .. }) => true,
        // Structs are known by their names; what is asked of them is looked at member by member.
        (Type::Struct { name: a, size: m, .. }, Type::Struct { name: b, size: n, .. }) => {
            a == b && (a.is_some() || m == n)
        }
        _ => match (number(&one), number(&other)) {
            (Some(a), Some(b)) => a == b,
            (None, None) => tag(&one).is_some() && tag(&one) == tag(&other),
            _ => false,
        },
    })
}

/// Size, and whether it has a sign; whether it is a float.
fn number(found: &Type) -> Option<(u64, bool, bool)> {
    match found {
        Type::Base { size, encoding, .. } => {
            // Kernels since 6.2 are built with -funsigned-char: text is text.
            let signed = matches!(encoding, BaseEncoding::Signed);
            Some((*size, signed, matches!(encoding, BaseEncoding::Float)))
        }
        Type::Enum { size, signed, .. } => Some((*size, *signed, false)),
        _ => None,
    }
}

/// `struct x`, defined or only declared.
fn tag(found: &Type) -> Option<String> {
    match found {
        Type::Struct { name: Some(name), union, .. } => {
            Some(format!("{} {name}", if *union { "union" } else { "struct" }))
        }
        Type::Incomplete { name } => Some(name.clone()),
        _ => None,
    }
}
