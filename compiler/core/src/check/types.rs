// SPDX-License-Identifier: GPL-2.0-or-later

//! Whether a value is read in the same way on two kernels: by layout, not by how its type is spelled.

use spile_debuginfo::{BaseEncoding, DebugInfo, Member, Type, TypeId};

/// Levels of pointers to pointers: no script goes deeper.
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

/// Whether values of the two types mean the same to a script. A type that cannot be read counts as different.
pub(super) fn is_same(first: Typed, second: Typed) -> bool {
    is_same_at(first, second, 0).unwrap_or(false)
}

fn is_same_at(first: Typed, second: Typed, depth: usize) -> Option<bool> {
    if depth > MAX_DEPTH {
        return Some(true);
    }
    let (_, one) = first.debug.resolve(first.id).ok()?;
    let (_, other) = second.debug.resolve(second.id).ok()?;
    let deeper = |a: Option<TypeId>, b: Option<TypeId>| match (a, b) {
        (None, None) => Some(true),
        // A pointer to nothing in particular is a word.
        (None, Some(_)) | (Some(_), None) => Some(false),
        (Some(a), Some(b)) => is_same_at(Typed { id: a, ..first }, Typed { id: b, ..second }, depth + 1),
    };
    Some(match (&one, &other) {
        (Type::Pointer(a), Type::Pointer(b)) => deeper(*a, *b)?,
        (Type::Array { element: a, counts: m }, Type::Array { element: b, counts: n }) => {
            m == n && deeper(Some(*a), Some(*b))?
        }
        (Type::Function { .. }, Type::Function { .. }) => true,
        // Structs are identified by name; the members used are compared one by one.
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

/// The differences in the members of a struct that is read whole, or that a pointer leads to; `deep`: also in nested
/// structs.
pub(super) fn other_layout(first: Typed, second: Typed, deep: bool) -> Option<String> {
    layout_at(pointed(first)?, pointed(second)?, deep, 0)
}

/// What a pointer leads to; any other type itself.
fn pointed(typed: Typed) -> Option<Typed> {
    match typed.debug.resolve(typed.id).ok()? {
        (_, Type::Pointer(target)) => Some(Typed { id: target?, ..typed }),
        (id, _) => Some(Typed { id, ..typed }),
    }
}

fn layout_at(first: Typed, second: Typed, deep: bool, depth: usize) -> Option<String> {
    if depth > MAX_DEPTH {
        return None;
    }
    let (_, one) = first.debug.resolve(first.id).ok()?;
    let (_, other) = second.debug.resolve(second.id).ok()?;
    match (one, other) {
        (Type::Struct { size: m, members: a, .. }, Type::Struct { size: n, members: b, .. }) => {
            let name = if depth > 0 { format!("{}: ", second.name()) } else { String::new() };
            let names = names_that_differ(&a, &b);
            if m != n {
                let inside = if names.is_empty() { members_at(first, second, &a, &b, deep, depth) } else { None };
                let inside = inside.map(|why| format!(" ({why})")).unwrap_or_default();
                return Some(format!("{name}size {m} -> {n}{names}{inside}"));
            }
            if let Some((old, new)) = a.iter().zip(&b).find(|(old, new)| !same_place(old, new) || old.when != new.when)
            {
                let new = new.name.as_deref().unwrap_or("(without a name)");
                return Some(match &old.name {
                    Some(old) if *old != new => format!("{name}size {n}, {new} in place of {old}"),
                    _ => format!("{name}size {n}, {new} is at another place"),
                });
            }
            if a.len() != b.len() {
                return Some(format!("{name}size {n}{names}"));
            }
            members_at(first, second, &a, &b, deep, depth).map(|why| format!("{name}{why}"))
        }
        (Type::Array { element: a, .. }, Type::Array { element: b, .. }) if deep => {
            layout_at(Typed { id: a, ..first }, Typed { id: b, ..second }, deep, depth + 1)
        }
        _ => None,
    }
}

/// The first of the members that are read differently.
fn members_at(first: Typed, second: Typed, old: &[Member], new: &[Member], deep: bool, depth: usize) -> Option<String> {
    old.iter().zip(new).find_map(|(old, new)| {
        let (old_type, new_type) = (Typed { id: old.type_id, ..first }, Typed { id: new.type_id, ..second });
        if !is_same(old_type, new_type) {
            let member = old.name.as_deref().unwrap_or("a member");
            return Some(format!("{member} is {}, was {}", new_type.name(), old_type.name()));
        }
        // The members of an anonymous struct belong to the struct around it.
        (deep || old.name.is_none()).then(|| layout_at(old_type, new_type, deep, depth + 1)).flatten()
    })
}

fn same_place(one: &Member, other: &Member) -> bool {
    (&one.name, one.offset, &one.bits) == (&other.name, other.offset, &other.bits)
}

/// `: +lr_new, -lr_old`
fn names_that_differ(old: &[Member], new: &[Member]) -> String {
    let lacks = |members: &[Member], name: &str| !members.iter().any(|member| member.name.as_deref() == Some(name));
    let of = |members: &[Member], others: &[Member], sign: char| -> Vec<String> {
        let names = members.iter().filter_map(|member| member.name.as_deref());
        names.filter(|name| lacks(others, name)).map(|name| format!("{sign}{name}")).collect()
    };
    let all = [of(new, old, '+'), of(old, new, '-')].concat();
    if all.is_empty() { String::new() } else { format!(": {}", all.join(", ")) }
}

/// Size and signedness; whether it is a float.
fn number(found: &Type) -> Option<(u64, bool, bool)> {
    match found {
        Type::Base { size, encoding, .. } => {
            // Kernels since 6.2 are built with -funsigned-char; a char is text either way.
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
