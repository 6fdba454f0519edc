// SPDX-License-Identifier: GPL-2.0-or-later

//! C types: their kind, size and members.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use gimli::AttributeValue;
use spile_abi::budget::{Budget, USUAL};

use super::Dwarf;
use super::entry::Entries;
use super::quick::Quick;
use super::scan;
use super::store::{Bytes, Die, Entry, EntryError, Unit, constant, die_at, flag, number};
use crate::facts::{BaseEncoding, Extent, MAX_CHAIN, Member, MemberBits, Type, TypeId, TypeTag, VirtualBase, When};

type ByEntry = HashMap<Die, Arc<[Entry]>, Quick>;

/// Children of entries of the units that are read as a whole, where each is asked for several times.
pub(super) struct ChildrenRead(Vec<Mutex<Option<ByEntry>>>);

impl ChildrenRead {
    /// Entries of a unit whose children are kept.
    const MOST: usize = 4096;

    /// Of none of this many units.
    pub fn new(units: usize) -> ChildrenRead {
        ChildrenRead((0..units).map(|_| Mutex::default()).collect())
    }

    /// Begins to keep the children of a unit's entries.
    pub fn begin(&self, slot: usize) {
        self.with(slot, |known| *known = Some(HashMap::default()));
    }

    /// Ends that, and frees them.
    pub fn end(&self, slot: usize) {
        self.with(slot, |known| *known = None);
    }

    fn find(&self, slot: usize, die: Die) -> Option<Arc<[Entry]>> {
        self.with(slot, |known| known.as_ref()?.get(&die).cloned())?
    }

    fn keep(&self, slot: usize, die: Die, children: &Arc<[Entry]>) {
        self.with(slot, |known| {
            if let Some(known) = known {
                if known.len() >= Self::MOST {
                    known.clear();
                }
                known.insert(die, children.clone());
            }
        });
    }

    fn with<T>(&self, slot: usize, see: impl FnOnce(&mut Option<ByEntry>) -> T) -> Option<T> {
        self.0.get(slot).map(|known| see(&mut known.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

thread_local! {
    /// Where children are collected: most entries have few, and some hundreds.
    static CHILDREN: Cell<Vec<Entry>> = const { Cell::new(Vec::new()) };
}

impl Dwarf {
    /// Target of DW_AT_type; `None` is `void`.
    pub(super) fn type_of(&self, unit: &Unit, entry: &Entry) -> Result<Option<TypeId>, EntryError> {
        Ok(self.store.reference_attr(unit, entry, gimli::DW_AT_type)?.map(TypeId::of))
    }

    /// The type, with all its members.
    pub(super) fn read_type(&self, id: TypeId) -> Result<Type, EntryError> {
        self.read_as(id, Extent::Whole)
    }

    /// The type, with as many of its members as `extent` asks for.
    pub(super) fn read_as(&self, id: TypeId, extent: Extent) -> Result<Type, EntryError> {
        let (unit, entry) = self.unrestricted(id.die())?;
        let die = die_at(unit, entry.offset())?;
        let name = self.store.name(unit, &entry);
        let target = || self.type_of(unit, &entry);
        Ok(match entry.tag() {
            gimli::DW_TAG_base_type if is_complex(&entry) => self.complex(id, name, &entry, extent),
            gimli::DW_TAG_base_type => base(name, &entry),
            gimli::DW_TAG_pointer_type | gimli::DW_TAG_reference_type | gimli::DW_TAG_rvalue_reference_type => {
                Type::Pointer(target()?)
            }
            gimli::DW_TAG_ptr_to_member_type => self.member_pointer(id, unit, &entry, extent)?,
            gimli::DW_TAG_typedef => Type::Typedef { name: name.unwrap_or_default(), target: target()? },
            gimli::DW_TAG_const_type => Type::Const(target()?),
            gimli::DW_TAG_volatile_type => Type::Volatile(target()?),
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                let union = entry.tag() == gimli::DW_TAG_union_type;
                if flag(&entry, gimli::DW_AT_declaration) {
                    let tag = if union { TypeTag::Union } else { TypeTag::Struct };
                    return self.definition(unit, &entry, tag, if union { "union" } else { "struct" }, extent);
                }
                let size = number(&entry, gimli::DW_AT_byte_size).unwrap_or(0);
                let members = if extent == Extent::Whole { self.members(die)? } else { Vec::new() };
                Type::Struct { name, union, size, members }
            }
            gimli::DW_TAG_enumeration_type => {
                if flag(&entry, gimli::DW_AT_declaration) {
                    return self.definition(unit, &entry, TypeTag::Enum, "enum", extent);
                }
                self.enumeration(die, name, extent)?
            }
            gimli::DW_TAG_array_type => {
                let element = target()?.ok_or_else(|| EntryError::at(die, "an array of nothing"))?;
                let mut counts = self.counts(die)?;
                counts.drain(..usize::from(id.dimensions).min(counts.len()));
                Type::Array { element, counts }
            }
            gimli::DW_TAG_subroutine_type | gimli::DW_TAG_subprogram => self.function_type(die)?,
            // The type of functions written in assembly.
            gimli::DW_TAG_unspecified_type => {
                Type::Incomplete { name: name.filter(|name| !name.is_empty()).unwrap_or_else(|| "void".into()) }
            }
            tag => return Err(EntryError::at(die, format!("{tag} as a type"))),
        })
    }

    /// The entry, or what it qualifies with `restrict` or `_Atomic`, which no caller distinguishes, or the type of which it has only
    /// the signature.
    pub(super) fn unrestricted(&self, die: Die) -> Result<(&Unit, Entry), EntryError> {
        let (mut unit, mut entry) = self.store.entry(die)?;
        for _ in 0..MAX_CHAIN {
            let signed = match entry.tag() {
                gimli::DW_TAG_restrict_type | gimli::DW_TAG_atomic_type => false,
                _ if entry.attr_value(gimli::DW_AT_signature).is_some() => true,
                _ => return Ok((unit, entry)),
            };
            let name = if signed { gimli::DW_AT_signature } else { gimli::DW_AT_type };
            let target = self.store.reference_attr(unit, &entry, name)?;
            (unit, entry) = self.store.entry(target.ok_or_else(|| EntryError::at(die, "a qualifier of nothing"))?)?;
        }
        Err(EntryError::at(die, "qualifiers without an end"))
    }

    /// The definition of a struct that the entry only declares.
    fn definition(
        &self,
        unit: &Unit,
        entry: &Entry,
        tag: TypeTag,
        keyword: &str,
        extent: Extent,
    ) -> Result<Type, EntryError> {
        Ok(match self.type_definition(unit, entry, tag)? {
            // The index has no declarations, so this does not recurse. What refers to a type elsewhere may lead back here.
            Some(die) if self.store.entry(die)?.1.attr_value(gimli::DW_AT_signature).is_none() => {
                self.read_as(TypeId::of(die), extent)?
            }
            _ => {
                let name = self.store.name(unit, entry).unwrap_or_default();
                Type::Incomplete { name: format!("{keyword} {name}") }
            }
        })
    }

    /// Where the type is defined that the entry only declares: in the same namespace or type, for others may have one of that
    /// name. Unnamed namespaces are of one unit.
    pub(super) fn type_definition(&self, unit: &Unit, entry: &Entry, tag: TypeTag) -> Result<Option<Die>, EntryError> {
        let Some(name) = entry.attr_value(gimli::DW_AT_name).and_then(|value| self.store.string(unit, value)) else {
            return Ok(None);
        };
        let die = die_at(unit, entry.offset())?;
        let Some(scope) = scan::scope_around(&self.store, die)? else { return Ok(None) };
        let Some(found) = self.try_index()?.type_within(tag, name, &scope) else { return Ok(None) };
        let here = || -> Result<bool, EntryError> { Ok(self.store.slot_of(found)? == self.store.slot_of(die)?) };
        Ok(if !scope.contains(scan::UNNAMED) || here()? { Some(found) } else { None })
    }

    /// The children of an entry, as many as the budget allows.
    pub(super) fn children(&self, die: Die) -> Result<(&Unit, Arc<[Entry]>), EntryError> {
        let slot = self.store.slot_of(die)?;
        let unit = self.store.unit(slot)?;
        if let Some(children) = self.children_read.find(slot, die) {
            return Ok((unit, children));
        }
        let offset = gimli::UnitOffset((die.0 - self.store.slot(slot)?.start) as usize);
        let mut children = CHILDREN.take();
        let budget = Budget::new("members, values or parameters of one type, or variables of one scope", USUAL);
        let mut read = || -> Result<(), EntryError> {
            let Some(parent) = Entry::read(unit, offset)? else { return Ok(()) };
            parent.each_child(unit, |child| {
                children.push(child);
                Ok(budget.width(children.len())?)
            })
        };
        read().map_err(|error| EntryError::at(die, error.message))?;
        let read = if children.is_empty() { Arc::default() } else { Arc::from_iter(children.drain(..)) };
        CHILDREN.set(children);
        let children = read;
        self.children_read.keep(slot, die, &children);
        Ok((unit, children))
    }

    fn members(&self, die: Die) -> Result<Vec<Member>, EntryError> {
        self.members_below(die, 0)
    }

    /// `depth`: of variant parts around it.
    fn members_below(&self, die: Die, depth: usize) -> Result<Vec<Member>, EntryError> {
        if depth > MAX_CHAIN {
            return Err(EntryError::at(die, "variants within variants without an end"));
        }
        let (unit, children) = self.children(die)?;
        let mut members = Vec::new();
        for entry in children.iter() {
            if entry.tag() == gimli::DW_TAG_variant_part {
                self.variants(unit, entry, depth, &mut members)?;
                continue;
            }
            let base = entry.tag() == gimli::DW_TAG_inheritance;
            let is_member = entry.tag() == gimli::DW_TAG_member && !is_static(entry);
            // Where a virtual base is only the object says.
            if !(is_member || base && member_location(unit, entry).is_ok()) {
                continue;
            }
            let Some(type_id) = self.type_of(unit, entry)? else {
                continue;
            };
            let name = self.store.name(unit, entry).filter(|name| !name.is_empty());
            let (offset, bits) = self.member_place(unit, entry, type_id)?;
            members.push(Member { name, type_id, offset, bits, when: None });
        }
        Ok(members)
    }

    /// The members of all variants (DWARF 5, 5.7.10). The one without a value is there where no other one is. None, where it
    /// takes more than one number to tell which one is there.
    fn variants(&self, unit: &Unit, part: &Entry, depth: usize, members: &mut Vec<Member>) -> Result<(), EntryError> {
        let (offset, size, signed) = match self.store.reference_attr(unit, part, gimli::DW_AT_discr)? {
            Some(number) => match self.number_at(number)? {
                Some(found) => found,
                None => return Ok(()),
            },
            None => (0, 0, false),
        };
        let mask = u64::MAX >> (64 - 8 * u32::from(size.clamp(1, 8)));
        let (_, children) = self.children(die_at(unit, part.offset())?)?;
        let mut all = Vec::new();
        let first = members.len();
        let (mut variants, mut others) = (0, 0);
        for variant in children.iter().filter(|entry| entry.tag() == gimli::DW_TAG_variant) {
            let value = variant.attr_value(gimli::DW_AT_discr_value);
            // A signed one is written in as few bytes as it needs.
            let number = |value: &AttributeValue<Bytes>| match signed {
                true => value.sdata_value().or_else(|| constant(value)),
                false => constant(value),
            };
            let values: Vec<u64> = value.iter().filter_map(number).map(|value| value as u64 & mask).collect();
            all.extend(&values);
            variants += 1;
            others += usize::from(value.is_none());
            let is_list = variant.attr_value(gimli::DW_AT_discr_list).is_some();
            let when = When { offset, size, values, other: value.is_none() };
            let own = self.members_below(die_at(unit, variant.offset())?, depth + 1)?;
            // Rust's have one each. Others, as of Ada, would not be shown right.
            if is_list || own.len() != 1 || own.iter().any(|member| member.when.is_some()) {
                members.truncate(first);
                return Ok(());
            }
            members.extend(own.into_iter().map(|member| Member { when: Some(Box::new(when.clone())), ..member }));
        }
        if others > 1 || size == 0 && variants > 1 {
            members.truncate(first);
        }
        all.sort_unstable();
        all.dedup();
        let rest = members.iter_mut().skip(first).filter_map(|member| member.when.as_mut());
        rest.filter(|when| when.other).for_each(|when| when.values.clone_from(&all));
        Ok(())
    }

    /// Offset and size of the number by which variants are distinguished, and whether it is signed; None: one of 16 bytes.
    fn number_at(&self, member: Die) -> Result<Option<(u64, u8, bool)>, EntryError> {
        let (unit, entry) = self.store.entry(member)?;
        let (size, signed) = match self.type_of(unit, &entry)? {
            Some(id) => self.integer_type(id.die())?.unwrap_or_default(),
            None => (0, false),
        };
        let size = u8::try_from(size).ok().filter(|size| matches!(size, 1 | 2 | 4 | 8));
        size.map(|size| Ok((member_location(unit, &entry)?, size, signed))).transpose()
    }

    /// A pointer to a member (Itanium C++ ABI, 2.3): an offset, -1 for none; for a function its address, or one more than its
    /// offset in the table of virtual functions, and what is added to the object's address. Those have no entries of their own, and
    /// are its elements.
    fn member_pointer(&self, id: TypeId, unit: &Unit, entry: &Entry, extent: Extent) -> Result<Type, EntryError> {
        let size = u64::from(self.store.machine.word());
        let to = self.type_of(unit, entry)?;
        let of_function = match to {
            Some(of) => self.store.entry(of.die())?.1.tag() == gimli::DW_TAG_subroutine_type,
            None => false,
        };
        let number = || Type::Base { name: "long int".into(), size, encoding: BaseEncoding::Signed };
        let part = |name: &str, dimensions, offset| {
            let type_id = TypeId { dimensions, ..id };
            Member { name: Some(name.into()), type_id, offset, bits: None, when: None }
        };
        Ok(match (of_function, id.dimensions) {
            (true, 0) => {
                let members = match extent {
                    Extent::Whole => vec![part("__pfn", 1, 0), part("__delta", 2, size)],
                    Extent::Outline => Vec::new(),
                };
                let name = self.class_of_member(unit, entry)?.map(|class| format!("{class}::*"));
                Type::Struct { name, union: false, size: 2 * size, members }
            }
            (true, 1) => Type::Pointer(to),
            _ => number(),
        })
    }

    /// The name of the class that a pointer to a member is for.
    fn class_of_member(&self, unit: &Unit, entry: &Entry) -> Result<Option<String>, EntryError> {
        let class = self.store.reference_attr(unit, entry, gimli::DW_AT_containing_type)?;
        let Some(class) = class else { return Ok(None) };
        let (unit, entry) = self.unrestricted(class)?;
        Ok(self.store.name(unit, &entry))
    }

    /// Of a pointer to a member: the name of the class, and the type of what it points to.
    pub(super) fn read_pointer_to_member(&self, id: TypeId) -> Result<Option<(String, Option<TypeId>)>, EntryError> {
        let (unit, entry) = self.unrestricted(id.die())?;
        if entry.tag() != gimli::DW_TAG_ptr_to_member_type || id.dimensions > 0 {
            return Ok(None);
        }
        Ok(Some((self.class_of_member(unit, &entry)?.unwrap_or_default(), self.type_of(unit, &entry)?)))
    }

    pub(super) fn read_is_reference(&self, id: TypeId) -> Result<bool, EntryError> {
        let (_, entry) = self.unrestricted(id.die())?;
        let is_reference = matches!(entry.tag(), gimli::DW_TAG_reference_type | gimli::DW_TAG_rvalue_reference_type);
        Ok(is_reference && id.dimensions == 0)
    }

    /// The virtual bases of a class whose places its objects say as compilers for this ABI describe it.
    pub(super) fn read_virtual_bases(&self, id: TypeId) -> Result<Vec<VirtualBase>, EntryError> {
        let (unit, entry) = self.unrestricted(id.die())?;
        if !matches!(entry.tag(), gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type) {
            return Ok(Vec::new());
        }
        let die = match flag(&entry, gimli::DW_AT_declaration) {
            true => self.type_definition(unit, &entry, TypeTag::Struct)?,
            false => Some(die_at(unit, entry.offset())?),
        };
        let Some(die) = die else { return Ok(Vec::new()) };
        let (unit, children) = self.children(die)?;
        let mut bases = Vec::new();
        for entry in children.iter().filter(|entry| entry.tag() == gimli::DW_TAG_inheritance) {
            let below = place_in_table(unit, entry)?;
            if let (Some(below), Some(type_id)) = (below, self.type_of(unit, entry)?) {
                bases.push(VirtualBase { type_id, offset: 0, below });
            }
        }
        Ok(bases)
    }

    fn member_place(
        &self,
        unit: &Unit,
        entry: &Entry,
        type_id: TypeId,
    ) -> Result<(u64, Option<MemberBits>), EntryError> {
        let offset = member_location(unit, entry)?;
        let Some(bits) = number(entry, gimli::DW_AT_bit_size).filter(|bits| (1..=64).contains(bits)) else {
            return Ok((offset, None));
        };
        let first = if let Some(first) = number(entry, gimli::DW_AT_data_bit_offset) {
            first
        } else if let Some(old) = entry.attr_value(gimli::DW_AT_bit_offset) {
            // DWARF 2 and 3 count from the most significant bit of the storage (DWARF 4, 5.5.6). Negative, and as 64 bits without
            // a sign (clang), where the bits lie in what is behind the storage.
            let old = old.sdata_value().or_else(|| old.udata_value().map(|old| old as i64));
            let storage = match number(entry, gimli::DW_AT_byte_size) {
                Some(storage) => storage,
                None => self.integer_type(type_id.die())?.map_or(0, |(size, _)| size),
            };
            let from_top = old.and_then(|old| old.checked_add(bits as i64));
            let first = from_top.and_then(|top| i64::try_from(storage).ok()?.checked_mul(8)?.checked_sub(top));
            first.and_then(|first| u64::try_from(first).ok()).unwrap_or(0)
        } else {
            0
        };
        let bits = MemberBits { first: first % 8, bits: bits as u8 };
        Ok((offset.saturating_add(first / 8), Some(bits)))
    }

    /// Size and sign of the integer that a bit-field or an enumeration is stored as; None: it is not an integer. Only the
    /// chain of names and qualifiers is followed, which may be a cycle.
    fn integer_type(&self, die: Die) -> Result<Option<(u64, bool)>, EntryError> {
        let mut at = die;
        for _ in 0..MAX_CHAIN {
            let (unit, entry) = self.store.entry(at)?;
            match entry.tag() {
                gimli::DW_TAG_base_type => {
                    let Type::Base { size, encoding, .. } = base(None, &entry) else { return Ok(None) };
                    return Ok(Some((size, matches!(encoding, BaseEncoding::Signed | BaseEncoding::SignedChar))));
                }
                gimli::DW_TAG_enumeration_type if number(&entry, gimli::DW_AT_byte_size).is_some() => {
                    return Ok(number(&entry, gimli::DW_AT_byte_size).map(|size| (size, false)));
                }
                gimli::DW_TAG_enumeration_type
                | gimli::DW_TAG_typedef
                | gimli::DW_TAG_const_type
                | gimli::DW_TAG_volatile_type
                | gimli::DW_TAG_restrict_type
                | gimli::DW_TAG_atomic_type => {}
                _ => return Ok(None),
            }
            match self.store.reference_attr(unit, &entry, gimli::DW_AT_type)? {
                Some(next) => at = next,
                None => return Ok(None),
            }
        }
        Err(EntryError::at(die, "an integer type without an end"))
    }

    fn enumeration(&self, die: Die, name: Option<String>, extent: Extent) -> Result<Type, EntryError> {
        let (unit, entry) = self.store.entry(die)?;
        let children = if extent == Extent::Whole { self.children(die)?.1 } else { Arc::default() };
        let mut values = Vec::new();
        for entry in children.iter().filter(|entry| entry.tag() == gimli::DW_TAG_enumerator) {
            let value = entry.attr_value(gimli::DW_AT_const_value).and_then(|value| constant(&value));
            values.push((self.store.name(unit, entry).unwrap_or_default(), value.unwrap_or(0)));
        }
        let underlying = match self.type_of(unit, &entry)? {
            Some(underlying) => self.integer_type(underlying.die())?,
            None => None,
        };
        let (size, signed) = underlying.unwrap_or((4, values.iter().any(|(_, value)| *value < 0)));
        let size = number(&entry, gimli::DW_AT_byte_size).unwrap_or(size);
        Ok(Type::Enum { name, size, signed, values })
    }

    /// A complex number, as a struct of its two parts; they have no entry of their own, and are its elements.
    fn complex(&self, id: TypeId, name: Option<String>, entry: &Entry, extent: Extent) -> Type {
        let size = number(entry, gimli::DW_AT_byte_size).unwrap_or(0);
        let name = name.unwrap_or_default();
        if id.dimensions > 0 {
            let part = name.trim_start_matches("_Complex ").trim_start_matches("complex ");
            return Type::Base { name: part.into(), size: size / 2, encoding: BaseEncoding::Float };
        }
        // Others are not passed and returned like a struct.
        if size > 16 || self.store.machine.word() < 8 {
            return Type::Incomplete { name };
        }
        let part = |name: &str, offset| {
            let type_id = TypeId { dimensions: 1, ..id };
            Member { name: Some(name.into()), type_id, offset, bits: None, when: None }
        };
        let members = if extent == Extent::Whole { vec![part("real", 0), part("imag", size / 2)] } else { Vec::new() };
        Type::Struct { name: Some(name), union: false, size, members }
    }

    fn counts(&self, die: Die) -> Result<Vec<Option<u64>>, EntryError> {
        let (unit, children) = self.children(die)?;
        // DWARF 5, 5.13: of Fortran 1.
        let usual = Entries::of(unit)?.next()?.and_then(|root| root.attr_value(gimli::DW_AT_language));
        let usual = match usual {
            Some(AttributeValue::Language(language)) => language.default_lower_bound().unwrap_or(0) as i64,
            _ => 0,
        };
        let ranges = children.iter().filter(|entry| entry.tag() == gimli::DW_TAG_subrange_type);
        let counts: Vec<Option<u64>> = ranges
            .map(|entry| {
                number(entry, gimli::DW_AT_count).or_else(|| {
                    match entry.attr_value(gimli::DW_AT_upper_bound)? {
                        // gcc writes the upper bound of `int a[0]` as -1 where it writes one at all.
                        AttributeValue::Sdata(-1) => Some(0),
                        value => {
                            let lower = entry.attr_value(gimli::DW_AT_lower_bound);
                            match lower.map_or(Some(usual), |lower| constant(&lower))? {
                                0 => value.udata_value()?.checked_add(1),
                                lower => constant(&value)?.checked_sub(lower)?.checked_add(1)?.try_into().ok(),
                            }
                        }
                    }
                })
            })
            .collect();
        Ok(if counts.is_empty() { vec![None] } else { counts })
    }

    fn function_type(&self, die: Die) -> Result<Type, EntryError> {
        let (unit, children) = self.children(die)?;
        let (_, entry) = self.store.entry(die)?;
        let mut parameters = Vec::new();
        for parameter in children.iter().filter(|entry| entry.tag() == gimli::DW_TAG_formal_parameter) {
            parameters.extend(self.type_of(unit, parameter)?);
        }
        let variadic = children.iter().any(|entry| entry.tag() == gimli::DW_TAG_unspecified_parameters);
        Ok(Type::Function { returns: self.type_of(unit, &entry)?, parameters, variadic })
    }
}

/// A static member, as in DWARF 4 (5.5.6): a declaration of a variable.
fn is_static(entry: &Entry) -> bool {
    flag(entry, gimli::DW_AT_declaration) || flag(entry, gimli::DW_AT_external)
}

/// DW_AT_data_member_location: a number, or in DWARF 2 an expression that adds one. 0 if absent, as in unions.
fn member_location(unit: &Unit, entry: &Entry) -> Result<u64, EntryError> {
    let expression = match entry.attr_value(gimli::DW_AT_data_member_location) {
        Some(AttributeValue::Exprloc(expression)) => expression,
        Some(AttributeValue::Block(block)) => gimli::Expression(block),
        Some(value) => return Ok(value.udata_value().unwrap_or(0)),
        None => return Ok(0),
    };
    match expression.operations(unit.encoding()).next()? {
        Some(gimli::Operation::PlusConstant { value } | gimli::Operation::UnsignedConstant { value }) => Ok(value),
        _ => Err(EntryError { die: None, message: "a member at an offset that is computed at run time".into() }),
    }
}

/// How many bytes below the address in an object's first word the distance of a virtual base is; None: it is none, or described in
/// another way.
fn place_in_table(unit: &Unit, entry: &Entry) -> Result<Option<u64>, EntryError> {
    use gimli::Operation as Does;
    let expression = match entry.attr_value(gimli::DW_AT_data_member_location) {
        Some(AttributeValue::Exprloc(expression)) => expression,
        Some(AttributeValue::Block(block)) => gimli::Expression(block),
        _ => return Ok(None),
    };
    let mut operations = expression.operations(unit.encoding());
    let mut next = || operations.next();
    let (Some(Does::Pick { index: 0 }), Some(Does::Deref { space: false, .. })) = (next()?, next()?) else {
        return Ok(None);
    };
    let below = match next()? {
        Some(Does::UnsignedConstant { value }) => value,
        Some(Does::SignedConstant { value }) => value as u64,
        _ => return Ok(None),
    };
    let ends = (next()?, next()?, next()?, next()?);
    Ok(match ends {
        (Some(Does::Minus), Some(Does::Deref { space: false, .. }), Some(Does::Plus), None) => Some(below),
        _ => None,
    })
}

fn is_complex(entry: &Entry) -> bool {
    entry.attr_value(gimli::DW_AT_encoding) == Some(AttributeValue::Encoding(gimli::DW_ATE_complex_float))
}

fn base(name: Option<String>, entry: &Entry) -> Type {
    let size = number(entry, gimli::DW_AT_byte_size).unwrap_or(0);
    let encoding = match entry.attr_value(gimli::DW_AT_encoding) {
        Some(AttributeValue::Encoding(encoding)) => encoding,
        _ => gimli::DW_ATE_unsigned,
    };
    let encoding = match encoding {
        gimli::DW_ATE_signed | gimli::DW_ATE_signed_fixed => BaseEncoding::Signed,
        gimli::DW_ATE_signed_char => BaseEncoding::SignedChar,
        gimli::DW_ATE_unsigned_char | gimli::DW_ATE_UTF | gimli::DW_ATE_ASCII => BaseEncoding::UnsignedChar,
        gimli::DW_ATE_boolean => BaseEncoding::Bool,
        gimli::DW_ATE_float | gimli::DW_ATE_imaginary_float | gimli::DW_ATE_decimal_float => BaseEncoding::Float,
        _ => BaseEncoding::Unsigned,
    };
    Type::Base { name: name.unwrap_or_default(), size, encoding }
}
