// SPDX-License-Identifier: GPL-2.0-or-later

//! What follows from single types: types without typedefs, sizes, members; and types by name.

use std::collections::{HashSet, VecDeque};

use spile_abi::budget::{Budget, Exceeded, Limits, USUAL};

use super::Source;
use crate::error::Error;
use crate::facts::{
    Extent, FoundMember, FunctionId, MAX_CHAIN, Member, MemberError, Type, TypeId, TypeTag, VirtualBase,
};
use crate::object::demangle::split_scope;

/// Limit for one search for a member. Anonymous structs that nest deeper are a cycle of damaged entries.
const MEMBERS: Limits = Limits { depth: 32, ..USUAL };

/// A class that a search for a member has still to look at.
struct Inherited {
    id: TypeId,
    /// The virtual bases that lead to it.
    bases: Vec<VirtualBase>,
    /// Its offset from the last of them.
    offset: u64,
}

impl dyn Source {
    /// What it is without typedefs and qualifiers.
    pub fn resolve(&self, id: TypeId) -> Result<(TypeId, Type), Error> {
        self.resolve_as(id, Extent::Whole)
    }

    /// The same, without a struct's members and an enumeration's constants.
    pub fn resolve_outline(&self, id: TypeId) -> Result<Type, Error> {
        self.resolve_as(id, Extent::Outline).map(|(_, found)| found)
    }

    fn resolve_as(&self, id: TypeId, extent: Extent) -> Result<(TypeId, Type), Error> {
        let mut at = id;
        for _ in 0..MAX_CHAIN {
            let next = match self.read_type(at, extent)? {
                Type::Typedef { target, .. } | Type::Const(target) | Type::Volatile(target) => target,
                found => return Ok((at, found)),
            };
            match next {
                Some(next) => at = next,
                None => {
                    return Ok((at, Type::Incomplete { name: "void".into() }));
                }
            }
        }
        Err(self.damaged(Some(id.number), "typedefs without an end".into()))
    }

    /// Bytes of an object of the type; None for functions, incomplete types and arrays without a count.
    pub fn size_of(&self, id: TypeId) -> Result<Option<u64>, Error> {
        let mut factor = Some(1u64);
        let mut at = id;
        for _ in 0..MAX_CHAIN {
            let size = match self.resolve_as(at, Extent::Outline)?.1 {
                Type::Base { size, .. } | Type::Struct { size, .. } | Type::Enum { size, .. } => size,
                Type::Pointer(_) => self.word().into(),
                Type::Array { element, counts } => {
                    for count in counts {
                        factor = factor.and_then(|factor| factor.checked_mul(count?));
                    }
                    at = element;
                    continue;
                }
                _ => return Ok(None),
            };
            return Ok(factor.and_then(|factor| factor.checked_mul(size)));
        }
        Err(self.damaged(Some(id.number), "arrays of arrays without an end".into()))
    }

    /// The type that indexing an array with [`Type::Array`] `element` and `counts` once gives: the element, or for an array
    /// of several dimensions the array of the remaining ones.
    pub fn array_element(&self, array: TypeId, element: TypeId, counts: &[Option<u64>]) -> Result<TypeId, Error> {
        if counts.len() < 2 {
            return Ok(element);
        }
        let (array, _) = self.resolve(array)?;
        Ok(TypeId { number: array.number, dimensions: array.dimensions.saturating_add(1) })
    }

    /// The member of a struct or union, looking through typedefs and qualifiers, and into anonymous structs.
    pub fn member(&self, id: TypeId, name: &str) -> Result<FoundMember, MemberError> {
        match self.resolve_as(id, Extent::Outline).map_err(MemberError::Debug)?.1 {
            Type::Struct { .. } => {}
            Type::Incomplete { name } => return Err(MemberError::Incomplete { name }),
            _ => return Err(MemberError::NotAStruct),
        }
        let mut search = Search {
            name,
            budget: Budget::new("anonymous members", MEMBERS),
            seen: HashSet::new(),
            candidates: Vec::new(),
        };
        let found = self.find_member(id, &mut search).map_err(MemberError::Debug)?;
        found.ok_or(MemberError::NoMember { candidates: search.candidates })
    }

    /// The class's own members come before those of its bases, and those before what is in the bases' bases.
    fn find_member(&self, id: TypeId, search: &mut Search) -> Result<Option<FoundMember>, Error> {
        let mut waiting = VecDeque::from([Inherited { id, bases: Vec::new(), offset: 0 }]);
        while let Some(next) = waiting.pop_front() {
            let found = self.find_own_member(&next, search, &mut waiting)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The same of a struct and the anonymous ones in it; its bases are added to those that wait.
    fn find_own_member(
        &self,
        of: &Inherited,
        search: &mut Search,
        waiting: &mut VecDeque<Inherited>,
    ) -> Result<Option<FoundMember>, Error> {
        let (id, found) = self.resolve(of.id)?;
        let Type::Struct { members, .. } = found else { return Ok(None) };
        // Several members may have the same anonymous type; it need not be searched twice.
        if !search.seen.insert(id) {
            return Ok(None);
        }
        self.within(search.budget.work(members.len()))?;
        // A struct's own member hides one of that name in a base, and gcc writes bases first.
        let is_it = |member: &&Member| member.name.as_deref() == Some(search.name);
        if let Some(own) = members.iter().find(is_it) {
            let offset = of.offset.saturating_add(own.offset);
            let (type_id, bits) = (own.type_id, own.bits);
            return Ok(Some(FoundMember { type_id, bases: of.bases.clone(), offset, bits }));
        }
        for member in members {
            let offset = of.offset.saturating_add(member.offset);
            let part = Inherited { id: member.type_id, bases: of.bases.clone(), offset };
            match member.name {
                Some(own) => search.candidates.push(own),
                None if self.is_base(member.type_id)? => waiting.push_back(part),
                None => {
                    self.within(search.budget.enter())?;
                    let found = self.find_own_member(&part, search, waiting)?;
                    search.budget.leave();
                    if found.is_some() {
                        return Ok(found);
                    }
                }
            }
        }
        for base in self.virtual_bases(id)? {
            let (id, offset) = (base.type_id, of.offset);
            waiting.push_back(Inherited {
                id,
                bases: [&of.bases[..], &[VirtualBase { offset, ..base }]].concat(),
                offset: 0,
            });
        }
        Ok(None)
    }

    /// Whether an unnamed member is a base class, whose type has a name. What is in an anonymous union is the struct's own.
    fn is_base(&self, of_member: TypeId) -> Result<bool, Error> {
        Ok(matches!(self.resolve_outline(of_member)?, Type::Struct { name: Some(_), .. }))
    }

    /// The result, or the error that the file exceeds a limit.
    fn within<T>(&self, result: Result<T, Exceeded>) -> Result<T, Error> {
        result.map_err(|error| self.damaged(None, error.to_string()))
    }

    /// The type of this name: `struct x`, `union x`, `enum x`, a typedef's or base type's name, or `x` for any of the
    /// first three; a definition. One that is in no class or namespace comes before others.
    pub fn find_type_named(&self, name: &str) -> Result<Option<TypeId>, Error> {
        let outermost = match is_qualified(name) {
            true => None,
            false => find_tagged(name, |tag, name| self.find_type(tag, &format!("::{name}")))?,
        };
        match outermost {
            Some(found) => Ok(Some(found)),
            None => find_tagged(name, |tag, name| self.find_type(tag, name)),
        }
    }

    /// The same, as the function's code means it: of its unit first, and there of the classes and namespaces around the function
    /// first.
    pub fn find_type_named_for(&self, id: FunctionId, name: &str) -> Result<Option<TypeId>, Error> {
        let of_unit = |tag, name: &str| self.type_of_unit(id, tag, name);
        if is_qualified(name) {
            return match find_tagged(name, of_unit)? {
                Some(found) => Ok(Some(found)),
                None => self.find_type_named(name),
            };
        }
        let mut scope = self.scope(id, &self.function(id)?.name)?;
        loop {
            let around = if scope.is_empty() { String::new() } else { format!("::{scope}") };
            if let Some(found) = find_tagged(name, |tag, name| of_unit(tag, &format!("{around}::{name}")))? {
                return Ok(Some(found));
            }
            if scope.is_empty() {
                break;
            }
            scope = split_scope(&scope).map(|(outer, _)| outer.to_string()).unwrap_or_default();
        }
        if let Some(found) = find_tagged(name, |tag, name| self.find_type(tag, &format!("::{name}")))? {
            return Ok(Some(found));
        }
        // In a class or namespace that the function is not in.
        match find_tagged(name, of_unit)? {
            Some(found) => Ok(Some(found)),
            None => self.find_type_named(name),
        }
    }
}

fn is_qualified(name: &str) -> bool {
    split_scope(name).is_some()
}

fn find_tagged(
    name: &str,
    find: impl Fn(TypeTag, &str) -> Result<Option<TypeId>, Error>,
) -> Result<Option<TypeId>, Error> {
    let words: Vec<&str> = name.split_whitespace().collect();
    // A name without a keyword means the typedef or base type, or if there is none the struct.
    let any = [TypeTag::Plain, TypeTag::Struct, TypeTag::Union, TypeTag::Enum];
    let (tags, rest) = match words.as_slice() {
        ["struct" | "class", rest @ ..] => (&[TypeTag::Struct][..], rest),
        ["union", rest @ ..] => (&[TypeTag::Union][..], rest),
        ["enum", rest @ ..] => (&[TypeTag::Enum][..], rest),
        rest => (&any[..], rest),
    };
    let name = rest.join(" ");
    for tag in tags {
        if let Some(id) = find(*tag, &name)? {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

/// A search for a member.
struct Search<'n> {
    name: &'n str,
    budget: Budget,
    /// Structs that have been searched.
    seen: HashSet<TypeId>,
    /// Names of the other members.
    candidates: Vec<String>,
}
