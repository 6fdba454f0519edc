// SPDX-License-Identifier: GPL-2.0-or-later

//! BTF: the types and function prototypes that a kernel carries itself (Documentation/bpf/btf.rst), for objects without DWARF.
//!
//! A type is known by its number. The numbers and strings of a module continue those of the kernel ("split BTF"). BTF does
//! not say where code or variables are: functions are found by their symbols, parameters by the calling convention.

mod prototypes;

use std::sync::Arc;

use crate::error::Error;
use crate::facts::{BaseEncoding, Extent, MAX_CHAIN, Member, MemberBits, Type, TypeId, TypeTag};
use crate::object::{Elf, is_raw_btf};

/// Kinds (include/uapi/linux/btf.h).
const INT: u32 = 1;
const PTR: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const FWD: u32 = 7;
const TYPEDEF: u32 = 8;
const VOLATILE: u32 = 9;
const CONST: u32 = 10;
const RESTRICT: u32 = 11;
const FUNC: u32 = 12;
const FUNC_PROTO: u32 = 13;
const VAR: u32 = 14;
const DATASEC: u32 = 15;
const FLOAT: u32 = 16;
const DECL_TAG: u32 = 17;
const TYPE_TAG: u32 = 18;
const ENUM64: u32 = 19;

/// The type of a function's result, and its parameters with their names.
type Prototype = (Option<TypeId>, Vec<(String, TypeId)>);

/// Longer strings are ignored: thousands of types may refer to one string of a megabyte.
const MAX_TEXT: usize = 4096;

pub(crate) use prototypes::Prototypes;

/// The types of one object.
pub(crate) struct Btf {
    /// The kernel's BTF, for a module.
    base: Option<Arc<Btf>>,
    bytes: Vec<u8>,
    /// Number of the first type here: 1, or one more than the base's last.
    first: u32,
    /// Where each type begins, as an offset.
    types: Vec<u32>,
    /// Where the strings begin in the bytes, and the offset of the first one.
    texts: usize,
    texts_from: u32,
    texts_length: u32,
    /// Functions, sorted by name.
    functions: Vec<u32>,
}

/// The fixed part of a type.
#[derive(Clone, Copy)]
struct Head {
    name: u32,
    kind: u32,
    count: u32,
    flag: bool,
    /// Size or type.
    value: u32,
    /// Offset of what follows the type's fixed part.
    rest: usize,
}

impl Btf {
    /// The BTF of an object; None if it has none. `base`: the kernel's.
    pub fn of(elf: &Elf, base: Option<Arc<Btf>>) -> Result<Option<Btf>, Error> {
        let Some(bytes) = elf.btf()? else { return Ok(None) };
        let btf = Btf::parse(bytes, base);
        btf.map(Some).ok_or_else(|| Error::Dwarf {
            path: elf.path().into(),
            offset: None,
            message: "its .BTF is damaged".into(),
        })
    }

    fn parse(bytes: Vec<u8>, base: Option<Arc<Btf>>) -> Option<Btf> {
        if !is_raw_btf(&bytes) {
            return None;
        }
        let field = |index: usize| word(&bytes, 4 + index * 4).map(|word| word as usize);
        let header = field(0)?;
        let types_start = header.checked_add(field(1)?)?;
        let types_end = types_start.checked_add(field(2)?)?;
        let texts = header.checked_add(field(3)?)?;
        let texts_length = u32::try_from(field(4)?).ok()?;
        bytes.get(types_start..types_end)?;
        bytes.get(texts..texts.checked_add(texts_length as usize)?)?;
        let (first, texts_from) = match &base {
            None => (1, 0),
            Some(base) => {
                (base.first.checked_add(base.types.len() as u32)?, base.texts_from.checked_add(base.texts_length)?)
            }
        };
        let mut btf =
            Btf { base, bytes, first, types: Vec::new(), texts, texts_from, texts_length, functions: Vec::new() };
        let mut at = types_start;
        while at < types_end {
            let head = btf.head_at(at)?;
            let length = match head.kind {
                INT | VAR | DECL_TAG => 4,
                ARRAY => 12,
                STRUCT | UNION | DATASEC | ENUM64 => head.count as usize * 12,
                ENUM | FUNC_PROTO => head.count as usize * 8,
                PTR | FWD | TYPEDEF | VOLATILE | CONST | RESTRICT | FUNC | FLOAT | TYPE_TAG => 0,
                // The length of an unknown kind is unknown too.
                _ => return None,
            };
            if head.kind == FUNC {
                btf.functions.push(first.checked_add(btf.types.len() as u32)?);
            }
            btf.types.push(at as u32);
            at = head.rest.checked_add(length)?;
        }
        if at != types_end {
            return None;
        }
        let mut functions = std::mem::take(&mut btf.functions);
        functions.sort_by_cached_key(|id| btf.name(*id));
        btf.functions = functions;
        Some(btf)
    }

    /// BTF without a base, for tests; None: it is damaged.
    #[cfg(test)]
    pub fn of_bytes(bytes: Vec<u8>) -> Option<Btf> {
        Btf::parse(bytes, None)
    }

    /// Names that exactly one struct has.
    #[cfg(test)]
    pub fn structs(&self) -> Vec<String> {
        let heads = self.types.iter().filter_map(|at| self.head_at(*at as usize));
        let mut names: Vec<String> =
            heads.filter(|head| head.kind == STRUCT).filter_map(|head| self.text(head.name)).collect();
        names.sort();
        let mut counted = std::collections::BTreeMap::<String, usize>::new();
        names.into_iter().for_each(|name| *counted.entry(name).or_default() += 1);
        counted.into_iter().filter(|(_, count)| *count == 1).map(|(name, _)| name).collect()
    }

    fn head_at(&self, at: usize) -> Option<Head> {
        let (name, info, value) = (word(&self.bytes, at)?, word(&self.bytes, at + 4)?, word(&self.bytes, at + 8)?);
        Some(Head { name, kind: info >> 24 & 0x1f, count: info & 0xffff, flag: info >> 31 != 0, value, rest: at + 12 })
    }

    /// The object that has the type: this one or its base.
    fn part(&self, id: u32) -> Option<(&Btf, Head)> {
        if id < self.first {
            return self.base.as_ref()?.part(id);
        }
        let at = *self.types.get((id - self.first) as usize)?;
        Some((self, self.head_at(at as usize)?))
    }

    fn text(&self, at: u32) -> Option<String> {
        let bytes = self.text_on(at)?;
        let end = bytes.iter().take(MAX_TEXT).position(|byte| *byte == 0).filter(|end| *end > 0)?;
        Some(String::from_utf8_lossy(bytes.get(..end)?).into_owned())
    }

    /// The strings from the one at this offset on.
    fn text_on(&self, at: u32) -> Option<&[u8]> {
        if at < self.texts_from {
            return self.base.as_ref()?.text_on(at);
        }
        let start = self.texts.checked_add((at - self.texts_from) as usize)?;
        self.bytes.get(start..self.texts + self.texts_length as usize)
    }

    /// The name of a type or function; None: it has none, or there is no such id.
    pub fn name(&self, id: u32) -> Option<String> {
        let (part, head) = self.part(id)?;
        part.text(head.name)
    }

    /// Functions of this object, sorted by name: number and name.
    pub fn functions(&self) -> impl Iterator<Item = (u32, String)> {
        self.functions.iter().filter_map(|id| Some((*id, self.name(*id)?)))
    }

    /// Ids of the functions with that name.
    pub fn functions_named(&self, name: &str) -> impl Iterator<Item = u32> {
        let start = self.functions.partition_point(|id| self.name(*id).as_deref() < Some(name));
        self.functions.iter().skip(start).take_while(move |id| self.name(**id).as_deref() == Some(name)).copied()
    }

    /// A function's result, and its parameters with their names.
    pub fn prototype(&self, function: u32) -> Option<Prototype> {
        let (_, head) = self.part(function)?;
        let (part, prototype) = self.part(head.value).filter(|(_, prototype)| prototype.kind == FUNC_PROTO)?;
        let mut parameters = Vec::new();
        for index in 0..prototype.count as usize {
            let at = prototype.rest + index * 8;
            let (name, id) = (word(&part.bytes, at)?, word(&part.bytes, at + 4)?);
            if let Some(id) = type_id(id) {
                parameters.push((part.text(name).unwrap_or_default(), id));
            }
        }
        Some((type_id(prototype.value), parameters))
    }

    /// None: no such type.
    pub fn get(&self, id: TypeId, extent: Extent) -> Option<Type> {
        let mut number = id.number;
        // Kinds that only qualify a type and that no caller distinguishes; for a function, its prototype.
        for _ in 0..MAX_CHAIN {
            let (_, head) = self.part(number)?;
            if !matches!(head.kind, RESTRICT | TYPE_TAG | FUNC) {
                break;
            }
            number = head.value;
        }
        if number == 0 {
            return Some(Type::Incomplete { name: "void".into() });
        }
        let (part, head) = self.part(number)?;
        let name = part.text(head.name);
        let target = type_id(head.value);
        Some(match head.kind {
            INT => {
                let encoding = part.encoding(head)?;
                Type::Base { name: name.unwrap_or_default(), size: head.value.into(), encoding }
            }
            FLOAT => {
                Type::Base { name: name.unwrap_or_default(), size: head.value.into(), encoding: BaseEncoding::Float }
            }
            PTR => Type::Pointer(target),
            ARRAY => {
                // 0 also stands for `[]`, which is nearly always what it means.
                let count = Some(word(&part.bytes, head.rest + 8)?.into()).filter(|count| *count > 0);
                Type::Array { element: type_id(word(&part.bytes, head.rest)?)?, counts: vec![count] }
            }
            STRUCT | UNION => Type::Struct {
                name,
                union: head.kind == UNION,
                size: head.value.into(),
                members: if extent == Extent::Whole { part.members(head)? } else { Vec::new() },
            },
            ENUM | ENUM64 => Type::Enum {
                name,
                size: head.value.into(),
                signed: head.flag,
                values: if extent == Extent::Whole { part.values(head)? } else { Vec::new() },
            },
            FWD => {
                let (kind, keyword) = if head.flag { (UNION, "union") } else { (STRUCT, "struct") };
                let name = name.unwrap_or_default();
                match self.find(&[kind], &name) {
                    Some(id) => return self.get(TypeId::new(id), extent),
                    None => Type::Incomplete { name: format!("{keyword} {name}") },
                }
            }
            TYPEDEF => Type::Typedef { name: name.unwrap_or_default(), target },
            VOLATILE => Type::Volatile(target),
            CONST => Type::Const(target),
            FUNC_PROTO => part.function_type(head)?,
            _ => return None,
        })
    }

    /// The encoding of an INT.
    fn encoding(&self, head: Head) -> Option<BaseEncoding> {
        let facts = word(&self.bytes, head.rest)?;
        let (encoding, bits) = (facts >> 24 & 0xf, facts & 0xff);
        Some(match (encoding, bits) {
            (4, _) => BaseEncoding::Bool,
            (1 | 3, 8) => BaseEncoding::SignedChar,
            (1 | 3, _) => BaseEncoding::Signed,
            (_, 8) => BaseEncoding::UnsignedChar,
            _ => BaseEncoding::Unsigned,
        })
    }

    /// The type of a FUNC_PROTO.
    fn function_type(&self, head: Head) -> Option<Type> {
        let mut parameters = Vec::new();
        let mut variadic = false;
        for index in 0..head.count as usize {
            let parameter = type_id(word(&self.bytes, head.rest + index * 8 + 4)?);
            variadic |= parameter.is_none();
            parameters.extend(parameter);
        }
        Some(Type::Function { returns: type_id(head.value), parameters, variadic })
    }

    fn members(&self, head: Head) -> Option<Vec<Member>> {
        let mut members = Vec::new();
        for index in 0..head.count as usize {
            let at = head.rest + index * 12;
            let (name, id, place) = (word(&self.bytes, at)?, word(&self.bytes, at + 4)?, word(&self.bytes, at + 8)?);
            // With the flag set, the upper byte is the size of a bit-field.
            let (first, bits) = if head.flag { (place & 0xff_ffff, place >> 24) } else { (place, 0) };
            let bits = (1..=64).contains(&bits).then_some(MemberBits { first: u64::from(first % 8), bits: bits as u8 });
            let (name, offset) = (self.text(name), u64::from(first / 8));
            members.push(Member { name, type_id: type_id(id)?, offset, bits, when: None });
        }
        Some(members)
    }

    fn values(&self, head: Head) -> Option<Vec<(String, i64)>> {
        let mut values = Vec::new();
        for index in 0..head.count as usize {
            let width = if head.kind == ENUM64 { 12 } else { 8 };
            let at = head.rest + index * width;
            let low = word(&self.bytes, at + 4)?;
            let value = match head.kind {
                ENUM64 => (u64::from(word(&self.bytes, at + 8)?) << 32 | u64::from(low)) as i64,
                // Before 6.0 the flag for signed values did not exist, and all values were taken to be signed.
                _ => i64::from(low as i32),
            };
            values.push((self.text(word(&self.bytes, at)?).unwrap_or_default(), value));
        }
        Some(values)
    }

    /// The first type of one of the kinds with the name.
    fn find(&self, kinds: &[u32], name: &str) -> Option<u32> {
        // Neither is one of a type: that would be no name at all, or two strings.
        if name.is_empty() || name.contains('\0') {
            return None;
        }
        let is_name = |at: u32| {
            let rest = self.text_on(at).and_then(|texts| texts.strip_prefix(name.as_bytes()));
            rest.is_some_and(|rest| rest.first() == Some(&0))
        };
        let own = self.types.iter().enumerate().find_map(|(index, at)| {
            let head = self.head_at(*at as usize).filter(|head| kinds.contains(&head.kind))?;
            is_name(head.name).then_some(self.first + index as u32)
        });
        own.or_else(|| self.base.as_ref()?.find(kinds, name))
    }

    /// The first type with the tag and the name.
    pub fn find_type(&self, tag: TypeTag, name: &str) -> Option<TypeId> {
        let kinds: &[u32] = match tag {
            TypeTag::Struct => &[STRUCT],
            TypeTag::Union => &[UNION],
            TypeTag::Enum => &[ENUM, ENUM64],
            TypeTag::Plain => &[INT, FLOAT, TYPEDEF],
        };
        self.find(kinds, name).map(TypeId::new)
    }

    /// The value of an enumerator, of this object or of its base.
    pub fn enumerator(&self, name: &str) -> Option<i64> {
        let own = self.types.iter().find_map(|at| {
            let head = self.head_at(*at as usize).filter(|head| matches!(head.kind, ENUM | ENUM64))?;
            self.values(head)?.into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
        });
        own.or_else(|| self.base.as_ref()?.enumerator(name))
    }
}

/// None: void.
fn type_id(number: u32) -> Option<TypeId> {
    (number != 0).then(|| TypeId::new(number))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}
