// SPDX-License-Identifier: GPL-2.0-or-later

//! What values point to, and whether two types are one. Each unit of a program has its own description of a type, and programs
//! may have different types of one name.

use std::collections::HashMap;
use std::rc::Rc;

use spile_debuginfo::target::Object;
use spile_debuginfo::{Member, Type as CType, TypeId};

/// What a value points to, as far as known.
#[derive(Clone)]
pub(in crate::elaborate) enum Pointed {
    Unknown,
    To(Pointee),
    /// To one type here and to another one there.
    Several,
}

/// A type that a value points to.
#[derive(Clone)]
pub(in crate::elaborate) struct Pointee {
    /// Whose debug information has the type.
    pub object: Rc<Object>,
    /// The type, in that object.
    pub type_id: TypeId,
    /// As the object's debug information spells it, without typedefs and qualifiers.
    pub name: String,
}

/// Levels of types within types that are compared; beyond them names decide.
const LEVELS: usize = 3;

/// Object (by address) and type.
type Key = (*const Object, TypeId);

/// The results of comparisons: a function may get pointers to a type of hundreds of units.
#[derive(Default)]
pub(super) struct Compared {
    known: HashMap<(Key, Key), bool>,
    /// Those whose addresses are in the keys, so that they are not reused.
    objects: Vec<Rc<Object>>,
}

impl Compared {
    pub(super) fn is_same(&mut self, one: &Pointee, other: &Pointee) -> bool {
        if one.name != other.name || one.object.reads_user() != other.object.reads_user() {
            return false;
        }
        let key = |pointee: &Pointee| (Rc::as_ptr(&pointee.object), pointee.type_id);
        let (of_one, of_other) = (key(one), key(other));
        if of_one == of_other {
            return true;
        }
        if let Some(known) = self.known.get(&(of_one, of_other)) {
            return *known;
        }
        let same = is_laid_out_as((&one.object, one.type_id), (&other.object, other.type_id), LEVELS);
        for object in [&one.object, &other.object] {
            if !self.objects.iter().any(|kept| Rc::ptr_eq(kept, object)) {
                self.objects.push(Rc::clone(object));
            }
        }
        self.known.insert((of_one, of_other), same);
        same
    }
}

/// Whether members of the two are at the same places. Of what pointers in structs point to only the names are compared.
fn is_laid_out_as(one: (&Object, TypeId), other: (&Object, TypeId), levels: usize) -> bool {
    if std::ptr::eq(one.0, other.0) && one.1 == other.1 {
        return true;
    }
    let (Ok(of_one), Ok(of_other)) = (one.0.debug(), other.0.debug()) else { return false };
    let (Ok((_, first)), Ok((_, second))) = (of_one.resolve(one.1), of_other.resolve(other.1)) else { return false };
    let deeper = |left, right| levels == 0 || is_laid_out_as((one.0, left), (other.0, right), levels - 1);
    match (first, second) {
        (
            CType::Struct { union, size, members, .. },
            CType::Struct { union: other_union, size: other_size, members: other_members, .. },
        ) => {
            let is_equal = |(left, right): (&Member, &Member)| {
                (&left.name, left.offset, left.bits) == (&right.name, right.offset, right.bits)
                    && of_one.type_name(left.type_id) == of_other.type_name(right.type_id)
                    && (is_pointer(of_one, left.type_id) || deeper(left.type_id, right.type_id))
            };
            (union, size, members.len()) == (other_union, other_size, other_members.len())
                && members.iter().zip(&other_members).all(is_equal)
        }
        (CType::Pointer(Some(left)), CType::Pointer(Some(right))) => {
            of_one.type_name(left) == of_other.type_name(right) && deeper(left, right)
        }
        (CType::Array { element, counts }, CType::Array { element: other_element, counts: other_counts }) => {
            counts == other_counts && deeper(element, other_element)
        }
        (CType::Base { size, encoding, .. }, CType::Base { size: other_size, encoding: other_encoding, .. }) => {
            (size, encoding) == (other_size, other_encoding)
        }
        (CType::Enum { size, signed, .. }, CType::Enum { size: other_size, signed: other_signed, .. }) => {
            (size, signed) == (other_size, other_signed)
        }
        // The kernel and its modules mean one type by a name; a program may mean another.
        (CType::Incomplete { .. }, _) | (_, CType::Incomplete { .. }) => {
            !one.0.is_program() || std::ptr::eq(one.0, other.0)
        }
        (first, second) => std::mem::discriminant(&first) == std::mem::discriminant(&second),
    }
}

fn is_pointer(debug: &spile_debuginfo::DebugInfo, id: TypeId) -> bool {
    matches!(debug.resolve_outline(id), Ok(CType::Pointer(_)))
}
