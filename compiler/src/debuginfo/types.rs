//! C types.

use std::collections::HashMap;

use gimli::AttributeValue;

use super::index::Tag;
use super::units::DieRef;
use super::{DebugInfo, Error};

/// A type of this object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TypeId(u32);

/// DW_AT_encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseEncoding {
    Signed,
    Unsigned,
    Bool,
    SignedChar,
    UnsignedChar,
    Float,
}

/// One type, its parts by id. Sizes are bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    Base { name: String, size: u64, encoding: BaseEncoding },
    /// None: `void *`.
    Pointer(Option<TypeId>),
    Struct { name: Option<String>, union: bool, size: u64, members: Vec<Member> },
    /// One count for each dimension; None for `[]`.
    Array { element: TypeId, counts: Vec<Option<u64>> },
    Enum { name: Option<String>, size: u64, signed: bool },
    Typedef { name: String, target: Option<TypeId> },
    /// const, volatile, restrict, _Atomic.
    Qualified { target: Option<TypeId> },
    Function,
    /// Declared, and defined nowhere in this object.
    Incomplete { name: String },
    Void,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// None: an anonymous struct or union.
    pub name: Option<String>,
    pub type_id: TypeId,
    /// Bytes from the start of the struct; of a bit-field, to its storage.
    pub offset: u64,
    pub bits: Option<MemberBits>,
}

/// A bit-field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberBits {
    /// From the least significant bit of the byte at the member's offset.
    pub first: u64,
    pub bits: u8,
}

/// A member found by name, offsets of anonymous members around it added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundMember {
    pub type_id: TypeId,
    pub offset: u64,
    pub bits: Option<MemberBits>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberError {
    /// With the names that there are.
    NoMember { candidates: Vec<String> },
    NotAStruct,
    Incomplete { name: String },
    Debug(Error),
}

impl From<Error> for MemberError {
    fn from(error: Error) -> MemberError {
        MemberError::Debug(error)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum TypeRef {
    Die(DieRef),
    /// What is left of an array's dimensions.
    Rest { element: TypeId, counts: Vec<Option<u64>> },
}

#[derive(Default)]
pub(super) struct Interned {
    refs: Vec<TypeRef>,
    ids: HashMap<TypeRef, TypeId>,
}

/// Longest chain of typedefs and qualifiers, and deepest nesting of anonymous members and array elements.
const MAX_DEPTH: usize = 64;

impl DebugInfo {
    pub(super) fn type_id(&self, die: DieRef) -> TypeId {
        self.intern(TypeRef::Die(die))
    }

    fn intern(&self, type_ref: TypeRef) -> TypeId {
        let mut interned = self.types.borrow_mut();
        let next = TypeId(interned.refs.len() as u32);
        let id = *interned.ids.entry(type_ref.clone()).or_insert(next);
        if id == next {
            interned.refs.push(type_ref);
        }
        id
    }

    /// The type as it stands: typedefs are not followed.
    pub fn get(&self, id: TypeId) -> Result<Type, Error> {
        let type_ref = self.types.borrow().refs.get(id.0 as usize).cloned();
        match type_ref.ok_or(Error::Damaged("no such type"))? {
            TypeRef::Die(die) => self.read_type(die),
            TypeRef::Rest { element, counts } => Ok(Type::Array { element, counts }),
        }
    }

    /// What a type is behind its typedefs and qualifiers. A declaration gives the definition of its name in another
    /// unit of this object, [`Type::Incomplete`] if there is none.
    pub fn resolve(&self, id: TypeId) -> Result<(TypeId, Type), Error> {
        let mut id = id;
        for _ in 0..MAX_DEPTH {
            match self.get(id)? {
                Type::Typedef { target: Some(target), .. } | Type::Qualified { target: Some(target) } => id = target,
                Type::Typedef { target: None, .. } | Type::Qualified { target: None } => return Ok((id, Type::Void)),
                Type::Incomplete { name } => match self.complete(&name)? {
                    Some(definition) if definition != id => id = definition,
                    _ => return Ok((id, Type::Incomplete { name })),
                },
                other => return Ok((id, other)),
            }
        }
        Err(Error::Damaged("typedefs lead in a circle"))
    }

    /// The definition of `struct x`, `union x` or `enum x`.
    fn complete(&self, name: &str) -> Result<Option<TypeId>, Error> {
        self.find_type(name)
    }

    /// A complete type by name: `struct x`, `union x`, `enum x`, or a typedef, base type or (last) tag alone.
    pub fn find_type(&self, name: &str) -> Result<Option<TypeId>, Error> {
        let name = name.trim();
        let index = self.index()?;
        let words = [("struct ", Tag::Struct), ("union ", Tag::Union), ("enum ", Tag::Enum)];
        let tagged = words.iter().find_map(|(word, tag)| Some((*tag, name.strip_prefix(word)?.trim())));
        let die = match tagged {
            Some((tag, name)) => index.types.get(&(tag, name.as_bytes())),
            None => [Tag::Plain, Tag::Struct, Tag::Union, Tag::Enum].iter().find_map(|&tag| index.types.get(&(tag, name.as_bytes()))),
        };
        Ok(die.map(|&die| self.type_id(die)))
    }

    fn read_type(&self, die: DieRef) -> Result<Type, Error> {
        let unit = self.unit(die.unit)?;
        let entry = self.entry(&unit, die.offset)?;
        let size = entry.attr_value(gimli::DW_AT_byte_size).and_then(|value| value.udata_value()).unwrap_or(0);
        let name = self.name(die)?;
        let target = || -> Result<Option<super::TypeId>, Error> { Ok(self.type_of(die)?.map(|die| self.type_id(die))) };
        let declared = entry.attr(gimli::DW_AT_declaration).is_some();
        Ok(match entry.tag() {
            gimli::DW_TAG_base_type => {
                let encoding = match entry.attr_value(gimli::DW_AT_encoding) {
                    Some(AttributeValue::Encoding(encoding)) => base_encoding(encoding),
                    _ => BaseEncoding::Unsigned,
                };
                Type::Base { name: name.unwrap_or_default(), size, encoding }
            }
            gimli::DW_TAG_pointer_type => Type::Pointer(target()?),
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                let union = entry.tag() == gimli::DW_TAG_union_type;
                if declared {
                    let word = if union { "union" } else { "struct" };
                    return Ok(Type::Incomplete { name: format!("{word} {}", name.unwrap_or_default()) });
                }
                Type::Struct { name, union, size, members: self.members(die)? }
            }
            gimli::DW_TAG_array_type => {
                let element = target()?.ok_or(Error::Damaged("an array of nothing"))?;
                Type::Array { element, counts: self.dimensions(die)? }
            }
            gimli::DW_TAG_enumeration_type if declared => Type::Incomplete { name: format!("enum {}", name.unwrap_or_default()) },
            gimli::DW_TAG_enumeration_type => Type::Enum { name, size, signed: self.enum_is_signed(die)? },
            gimli::DW_TAG_typedef => Type::Typedef { name: name.unwrap_or_default(), target: target()? },
            gimli::DW_TAG_const_type | gimli::DW_TAG_volatile_type | gimli::DW_TAG_restrict_type | gimli::DW_TAG_atomic_type => {
                Type::Qualified { target: target()? }
            }
            gimli::DW_TAG_subroutine_type => Type::Function,
            gimli::DW_TAG_unspecified_type => Type::Void,
            _ => return Err(Error::Damaged("a reference to a type leads to something else")),
        })
    }

    /// The underlying type's sign, else whether an enumerator is negative.
    fn enum_is_signed(&self, die: DieRef) -> Result<bool, Error> {
        let unit = self.unit(die.unit)?;
        let entry = self.entry(&unit, die.offset)?;
        if let Some(AttributeValue::Encoding(encoding)) = entry.attr_value(gimli::DW_AT_encoding) {
            return Ok(base_encoding(encoding) == BaseEncoding::Signed);
        }
        if let Some(base) = self.type_of(die)? {
            if let Type::Base { encoding, .. } = self.resolve(self.type_id(base))?.1 {
                return Ok(encoding == BaseEncoding::Signed);
            }
        }
        for (tag, child) in self.children(die)? {
            if tag == gimli::DW_TAG_enumerator {
                let entry = self.entry(&unit, child.offset)?;
                if let Some(AttributeValue::Sdata(value)) = entry.attr_value(gimli::DW_AT_const_value) {
                    if value < 0 {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    fn dimensions(&self, die: DieRef) -> Result<Vec<Option<u64>>, Error> {
        let unit = self.unit(die.unit)?;
        let mut counts = Vec::new();
        for (tag, child) in self.children(die)? {
            if tag != gimli::DW_TAG_subrange_type {
                continue;
            }
            let entry = self.entry(&unit, child.offset)?;
            let number = |name| entry.attr_value(name).and_then(|value| value.udata_value());
            let count = number(gimli::DW_AT_count);
            counts.push(count.or_else(|| number(gimli::DW_AT_upper_bound).and_then(|bound| bound.checked_add(1))));
        }
        if counts.is_empty() {
            counts.push(None);
        }
        Ok(counts)
    }

    fn members(&self, die: DieRef) -> Result<Vec<Member>, Error> {
        let unit = self.unit(die.unit)?;
        let mut members = Vec::new();
        for (tag, child) in self.children(die)? {
            if tag != gimli::DW_TAG_member {
                continue;
            }
            let entry = self.entry(&unit, child.offset)?;
            let number = |name| entry.attr_value(name).and_then(|value| value.udata_value());
            let Some(type_die) = self.type_of(child)? else { continue };
            let type_id = self.type_id(type_die);
            let offset = number(gimli::DW_AT_data_member_location).unwrap_or(0);
            let bits = number(gimli::DW_AT_bit_size).map(|bits| bits.min(255) as u8);
            let (offset, bits) = match (bits, number(gimli::DW_AT_data_bit_offset), number(gimli::DW_AT_bit_offset)) {
                (None, ..) => (offset, None),
                // DWARF 4 and 5: from the start of the struct.
                (Some(bits), Some(first), _) => (offset + first / 8, Some(MemberBits { first: first % 8, bits })),
                // DWARF 2 and 3: from the most significant bit of the storage unit.
                (Some(bits), None, Some(from_top)) => {
                    let storage = match number(gimli::DW_AT_byte_size) {
                        Some(size) => size,
                        None => self.size_of(type_id)?.unwrap_or(4),
                    };
                    let first = (storage * 8).saturating_sub(from_top).saturating_sub(u64::from(bits));
                    (offset + first / 8, Some(MemberBits { first: first % 8, bits }))
                }
                (Some(bits), None, None) => (offset, Some(MemberBits { first: 0, bits })),
            };
            members.push(Member { name: self.name(child)?, type_id, offset, bits });
        }
        Ok(members)
    }

    /// Bytes of an object of the type; None for those that have no size (void, functions, declarations, `[]`).
    pub fn size_of(&self, id: TypeId) -> Result<Option<u64>, Error> {
        self.size_at(id, 0)
    }

    fn size_at(&self, id: TypeId, depth: usize) -> Result<Option<u64>, Error> {
        if depth > MAX_DEPTH {
            return Err(Error::Damaged("an array contains itself"));
        }
        Ok(match self.resolve(id)?.1 {
            Type::Base { size, .. } | Type::Struct { size, .. } | Type::Enum { size, .. } => Some(size),
            Type::Pointer(_) => Some(8),
            Type::Array { element, counts } => {
                let mut size = self.size_at(element, depth + 1)?;
                for count in counts {
                    size = match (size, count) {
                        (Some(size), Some(count)) => size.checked_mul(count),
                        // `int a[]` at a struct's end takes no room.
                        (Some(_), None) => Some(0),
                        (None, _) => None,
                    };
                }
                size
            }
            _ => None,
        })
    }

    /// The type of `a[i]`: the element, or the array of the other dimensions.
    pub fn array_element(&self, _array: TypeId, element: TypeId, counts: &[Option<u64>]) -> Result<TypeId, Error> {
        Ok(match counts {
            [] | [_] => element,
            [_, rest @ ..] => self.intern(TypeRef::Rest { element, counts: rest.to_vec() }),
        })
    }

    /// A member by name, also inside anonymous structs and unions.
    pub fn member(&self, container: TypeId, name: &str) -> Result<FoundMember, MemberError> {
        let mut candidates = Vec::new();
        match self.member_at(container, name, 0, &mut candidates)? {
            Some(found) => Ok(found),
            None => Err(MemberError::NoMember { candidates }),
        }
    }

    fn member_at(&self, container: TypeId, name: &str, depth: usize, candidates: &mut Vec<String>) -> Result<Option<FoundMember>, MemberError> {
        if depth > MAX_DEPTH {
            return Err(Error::Damaged("a struct contains itself").into());
        }
        let members = match self.resolve(container)?.1 {
            Type::Struct { members, .. } => members,
            Type::Incomplete { name } => return Err(MemberError::Incomplete { name }),
            _ => return Err(MemberError::NotAStruct),
        };
        for member in members {
            match &member.name {
                Some(own) if own == name => {
                    let Member { type_id, offset, bits, .. } = member;
                    return Ok(Some(FoundMember { type_id, offset, bits }));
                }
                Some(own) => candidates.push(own.clone()),
                None => {
                    let found = match self.member_at(member.type_id, name, depth + 1, candidates) {
                        // An unnamed bit-field is padding.
                        Err(MemberError::NotAStruct) => None,
                        other => other?,
                    };
                    if let Some(found) = found {
                        return Ok(Some(FoundMember { offset: member.offset + found.offset, ..found }));
                    }
                }
            }
        }
        Ok(None)
    }

    /// C's spelling, as listings show it: `struct file*`, `char*`, `unsigned int`.
    pub fn type_name(&self, id: TypeId) -> String {
        self.name_at(id, 0)
    }

    fn name_at(&self, id: TypeId, depth: usize) -> String {
        if depth > MAX_DEPTH {
            return "?".into();
        }
        let inner = |target: Option<TypeId>| target.map_or_else(|| "void".to_string(), |target| self.name_at(target, depth + 1));
        match self.get(id) {
            Ok(Type::Base { name, .. } | Type::Typedef { name, .. } | Type::Incomplete { name }) => name,
            Ok(Type::Pointer(target)) => {
                let name = inner(target);
                if name.ends_with(')') { name } else { format!("{name}*") }
            }
            Ok(Type::Qualified { target }) => inner(target),
            Ok(Type::Struct { name, union, .. }) => {
                let word = if union { "union" } else { "struct" };
                format!("{word} {}", name.unwrap_or_else(|| "{...}".into()))
            }
            Ok(Type::Enum { name, .. }) => format!("enum {}", name.unwrap_or_else(|| "{...}".into())),
            Ok(Type::Array { element, counts }) => {
                let counts: String = counts.iter().map(|count| format!("[{}]", count.map_or(String::new(), |count| count.to_string()))).collect();
                format!("{}{counts}", self.name_at(element, depth + 1))
            }
            Ok(Type::Function) => "(*)()".into(),
            Ok(Type::Void) => "void".into(),
            Err(_) => "?".into(),
        }
    }
}

fn base_encoding(encoding: gimli::DwAte) -> BaseEncoding {
    match encoding {
        gimli::DW_ATE_signed => BaseEncoding::Signed,
        gimli::DW_ATE_boolean => BaseEncoding::Bool,
        gimli::DW_ATE_signed_char => BaseEncoding::SignedChar,
        gimli::DW_ATE_unsigned_char => BaseEncoding::UnsignedChar,
        gimli::DW_ATE_float | gimli::DW_ATE_complex_float => BaseEncoding::Float,
        _ => BaseEncoding::Unsigned,
    }
}
