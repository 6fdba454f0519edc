// SPDX-License-Identifier: GPL-2.0-or-later

//! C types, as every source of debug information describes them.

use crate::error::Error;

/// A type of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId {
    pub(crate) number: u32,
    /// Leading dimensions of an array type that are left out: the type is the array of the others.
    pub(crate) dimensions: u8,
}

impl TypeId {
    /// The type of that number: the offset of its DIE, or its number in BTF or an index.
    pub(crate) fn new(number: u32) -> TypeId {
        TypeId { number, dimensions: 0 }
    }
}

/// What a type is. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// A base type (DW_TAG_base_type).
    Base {
        /// As the compiler spells it: `long unsigned int`.
        name: String,
        /// Bytes.
        size: u64,
        /// How its bits are interpreted.
        encoding: BaseEncoding,
    },
    /// What it points to; None: void.
    Pointer(Option<TypeId>),
    /// A struct or a union.
    Struct {
        /// None if it is anonymous.
        name: Option<String>,
        /// It is a union.
        union: bool,
        /// Bytes.
        size: u64,
        /// In declaration order.
        members: Vec<Member>,
    },
    /// An array, of one or more dimensions.
    Array {
        /// Type of the innermost elements.
        element: TypeId,
        /// For each dimension, outermost first; None where the declaration gives none.
        counts: Vec<Option<u64>>,
    },
    /// An enumeration.
    Enum {
        /// None if it is anonymous.
        name: Option<String>,
        /// Bytes.
        size: u64,
        /// Its values are to be sign-extended.
        signed: bool,
        /// Names and values, in declaration order.
        values: Vec<(String, i64)>,
    },
    /// Another name of a type.
    Typedef {
        /// The new name.
        name: String,
        /// None: void.
        target: Option<TypeId>,
    },
    /// The type qualified with `const`; None: void.
    Const(Option<TypeId>),
    /// The type qualified with `volatile`; None: void.
    Volatile(Option<TypeId>),
    /// A function's type, as used by pointers to functions.
    Function {
        /// None: void.
        returns: Option<TypeId>,
        /// In order.
        parameters: Vec<TypeId>,
        /// The list of parameters ends in `...`.
        variadic: bool,
    },
    /// Only declared, not defined in this object: `struct NAME`, `union NAME` or `enum NAME`; or `void`.
    Incomplete {
        /// With its keyword.
        name: String,
    },
}

/// How the bits of a base type are interpreted (DW_AT_encoding; DWARF 5, 5.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseEncoding {
    /// A signed integer.
    Signed,
    /// An unsigned integer.
    Unsigned,
    /// `_Bool`.
    Bool,
    /// A signed character, or a signed integer of 8 bits.
    SignedChar,
    /// An unsigned character, or an unsigned integer of 8 bits.
    UnsignedChar,
    /// A floating-point number, which handlers cannot use.
    Float,
}

/// A member of a struct or union.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// None for an anonymous struct or union.
    pub name: Option<String>,
    /// Its type.
    pub type_id: TypeId,
    /// Bytes from the start of the struct; for a bit-field, to the byte that has its first bit. From
    /// DW_AT_data_member_location or DW_AT_data_bit_offset (DWARF 5, 5.7.6).
    pub offset: u64,
    /// None: it is not a bit-field.
    pub bits: Option<MemberBits>,
    /// None: each object has it.
    pub when: Option<Box<When>>,
}

/// Which objects have a member that is a variant, as those of Rust's enumerations with data (DWARF 5, 5.7.10): it depends on
/// another number of the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct When {
    /// Of that number, from the start of the struct.
    pub offset: u64,
    /// Its bytes: 1, 2, 4 or 8; 0: there is none, and each object has the member.
    pub size: u8,
    /// The objects in which it has one of these values.
    pub values: Vec<u64>,
    /// Instead, those in which it has another one.
    pub other: bool,
}

/// A bit-field's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberBits {
    /// From the least significant bit of the byte at the member's offset: 0 to 7.
    pub first: u64,
    /// 1 to 64.
    pub bits: u8,
}

/// A virtual base class of C++. Where it is only the object says, by its table of virtual functions, of which its first word is the
/// address (Itanium C++ ABI, 2.5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtualBase {
    /// The base class.
    pub type_id: TypeId,
    /// Bytes from the start of the outermost struct, or of the virtual base before, to the object that has it.
    pub offset: u64,
    /// How many bytes below the table's address the distance of the base from that object is, a signed word.
    pub below: u64,
}

/// A member, possibly inside anonymous structs and unions, and base classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundMember {
    /// Its type.
    pub type_id: TypeId,
    /// The virtual bases that lead to it, each found from the one before.
    pub bases: Vec<VirtualBase>,
    /// Bytes from the start of the outermost struct, or of the last virtual base.
    pub offset: u64,
    /// None: it is not a bit-field.
    pub bits: Option<MemberBits>,
}

/// Why a member cannot be found.
#[derive(Clone, Debug)]
pub enum MemberError {
    /// The struct has no member of that name.
    NoMember {
        /// The names of the members, including those of anonymous structs and unions.
        candidates: Vec<String>,
    },
    /// The type is neither a struct nor a union.
    NotAStruct,
    /// The struct is only declared in this object.
    Incomplete {
        /// With its keyword: `struct NAME`.
        name: String,
    },
    /// The debug information cannot be read.
    Debug(Error),
}

/// How much of a type is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All of it.
    Whole,
    /// Without a struct's members and an enumeration's values: enough for names and sizes.
    Outline,
}

/// The keyword before a type's name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum TypeTag {
    Struct,
    Union,
    Enum,
    /// A typedef or a base type: names without a keyword.
    Plain,
}
