// SPDX-License-Identifier: GPL-2.0-or-later

//! Variables: those a function has, those in scope at an address, and where one of them is there.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::HashSet;

use gimli::{AttributeValue, Expression};
use spile_abi::budget::Budget;

use super::Dwarf;
use super::entry::Entries;
use super::location::{self, Fault, Place};
use super::quick::Quick;
use super::scan;
use super::scope::{Declared, Scopes};
use super::store::{Bytes, Die, Entry, EntryError, Unit, constant, die_at};
use crate::facts::{FoundVariable, FunctionId, Location, Op, TypeId, Unavailable, Variable};
use crate::object::Address;
use crate::source::VariableResult;

/// Name and type of a parameter.
pub(super) type Parameter = (Cow<'static, str>, TypeId);

/// A variable at one address.
pub(super) struct PlacedVariable {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Its type.
    pub type_id: TypeId,
    /// It is a parameter, not a local variable.
    pub parameter: bool,
    /// None: it has no value there, or none that a probe can read.
    pub location: Option<Location>,
}

/// A variable's location as an entry describes it.
enum Stored {
    Nowhere,
    Expression(Expression<Bytes>),
    Bytes(Vec<u8>),
    Constant(i64),
}

/// The variables of a function in scopes of it, outermost first, each once: a part of it that was split off declares them again.
fn locals_of<'d, 's>(declared: &'d [Vec<Declared<'s>>]) -> Vec<&'d Declared<'s>> {
    let mut seen: HashSet<Option<Die>, Quick> = HashSet::default();
    let root = |variable: &Declared| variable.origins.last().map(|(die, ..)| *die);
    let is_local = |variable: &&Declared| !variable.parameter && !variable.is_elsewhere();
    declared.iter().flatten().filter(|variable| is_local(variable) && seen.insert(root(variable))).collect()
}

/// The variable of that name in the innermost of the scopes that has one: code after the declaration refers to the last.
fn last_named<'d, 's>(declared: &'d [Vec<Declared<'s>>], name: &str) -> Option<&'d Declared<'s>> {
    declared.iter().rev().find_map(|scope| scope.iter().rev().find(|variable| variable.name == name))
}

impl Dwarf {
    /// Parameters, in order; those without a name are left out.
    pub(super) fn read_parameters(&self, id: FunctionId) -> Result<Vec<Variable>, EntryError> {
        let declared = self.variables_in(id.die())?;
        self.described(declared.iter().filter(|variable| variable.parameter))
    }

    /// Local variables in scope at the address, outermost first.
    pub(super) fn read_locals(&self, id: FunctionId, at: Address) -> Result<Vec<Variable>, EntryError> {
        let Some(scopes) = self.scopes_at(id, at)? else {
            return Ok(Vec::new());
        };
        self.described(locals_of(&self.declared_in(&scopes.own)?).into_iter())
    }

    /// Names and types of the variables; those without a type are left out.
    fn described<'v, 's: 'v>(
        &self,
        declared: impl Iterator<Item = &'v Declared<'s>>,
    ) -> Result<Vec<Variable>, EntryError> {
        let mut variables = Vec::new();
        for variable in declared {
            if let Some(type_id) = self.declared_type(variable)? {
                variables.push(Variable { name: variable.name.to_string(), type_id });
            }
        }
        Ok(variables)
    }

    pub(super) fn declared_type(&self, variable: &Declared) -> Result<Option<TypeId>, EntryError> {
        for (_, unit, entry) in &variable.origins {
            if let Some(type_id) = self.type_of(unit, entry)? {
                return Ok(Some(type_id));
            }
        }
        Ok(None)
    }

    /// What each scope declares.
    fn declared_in(&self, scopes: &[Die]) -> Result<Vec<Vec<Declared<'_>>>, EntryError> {
        scopes.iter().map(|scope| self.variables_in(*scope)).collect()
    }

    fn scopes_at(&self, id: FunctionId, at: Address) -> Result<Option<Scopes>, EntryError> {
        self.elf.flat(at).map_or(Ok(None), |at| self.scopes(id, at))
    }

    /// Parameters and then locals in scope at the address, each with where it is there, if that can be had; where else a
    /// variable is that is optimised out is not looked for.
    /// `parameters`: those of the function.
    pub(super) fn variables_at(
        &self,
        id: FunctionId,
        parameters: &[Parameter],
        at: Address,
    ) -> Result<Vec<PlacedVariable>, EntryError> {
        let Some((scopes, flat)) = self.scopes_at(id, at)?.zip(self.elf.flat(at)) else { return Ok(Vec::new()) };
        let declared = self.declared_in(&scopes.own)?;
        let locals = locals_of(&declared);
        let mut placed = Vec::with_capacity(parameters.len() + locals.len());
        let mut base = None;
        let mut place = |name: Cow<'static, str>, type_id, parameter| -> Result<(), EntryError> {
            let location = match last_named(&declared, &name) {
                Some(variable) => {
                    let base = match base {
                        Some(base) => base,
                        None => *base.insert(self.frame_base(&scopes, flat)?),
                    };
                    self.located_by(variable, &scopes, flat, base)?.ok()
                }
                None => None,
            };
            placed.push(PlacedVariable { name, type_id, parameter, location });
            Ok(())
        };
        for (name, type_id) in parameters {
            place(name.clone(), *type_id, true)?;
        }
        for variable in locals {
            if let Some(type_id) = self.declared_type(variable)? {
                place(variable.name.clone(), type_id, false)?;
            }
        }
        Ok(placed)
    }

    /// The parameters and then the locals in scope at the address, as [`Dwarf::find_variable`] finds each; without those whose
    /// entries are damaged.
    pub(super) fn read_variables(
        &self,
        id: FunctionId,
        at: Address,
    ) -> Result<Vec<(String, VariableResult)>, EntryError> {
        let parameters = self.variables_in(id.die())?;
        let names = |described: Vec<Variable>| described.into_iter().map(|variable| variable.name);
        let first = names(self.described(parameters.iter().filter(|variable| variable.parameter))?);
        let Some((scopes, flat)) = self.scopes_at(id, at)?.zip(self.elf.flat(at)) else {
            return Ok(first.map(|name| (name, Err(Unavailable::Unknown))).collect());
        };
        let own = self.declared_in(&scopes.own)?;
        let all: Vec<String> = first.chain(names(self.described(locals_of(&own).into_iter())?)).collect();
        let inner = OnceCell::new();
        let mut found = Vec::new();
        for name in all {
            let mut variable = last_named(&own, &name);
            if variable.is_none() {
                // Mostly there is no need to read these.
                let inner = inner.get_or_init(|| self.declared_in(&scopes.inner).unwrap_or_default());
                variable = last_named(inner, &name);
            }
            // The compiler may omit a parameter from a copy that it has optimised out there.
            let located = variable.map_or(Ok(Err(Unavailable::OptimizedOut)), |it| self.locate(it, &scopes, flat));
            found.extend(located.ok().map(|located| (name.clone(), located)));
        }
        Ok(found)
    }

    /// The variable `name` at an address of the function: the innermost that is in scope, else one of the unit.
    pub(super) fn find_variable(&self, id: FunctionId, at: Address, name: &str) -> Result<VariableResult, EntryError> {
        match self.find_local(id, at, name)? {
            Some(found) => Ok(found),
            None if self.scopes_at(id, at)?.is_none() => Ok(Err(Unavailable::Unknown)),
            None => self.optimized_out_or_global(id, at, name),
        }
    }

    /// The same for only the function's own variables.
    pub(super) fn find_local(
        &self,
        id: FunctionId,
        at: Address,
        name: &str,
    ) -> Result<Option<VariableResult>, EntryError> {
        let Some((scopes, at)) = self.scopes_at(id, at)?.zip(self.elf.flat(at)) else {
            return Ok(None);
        };
        self.first_named(scopes.own.iter().rev().chain(scopes.inner.iter().rev()), &scopes, at, name)
    }

    /// The variable `name` of the innermost scope at an address of the function that has one, calls inlined there included.
    pub(super) fn find_variable_around(
        &self,
        id: FunctionId,
        at: Address,
        name: &str,
    ) -> Result<VariableResult, EntryError> {
        let Some((scopes, at)) = self.scopes_at(id, at)?.zip(self.elf.flat(at)) else {
            return Ok(Err(Unavailable::Unknown));
        };
        let found = self.first_named(scopes.inner.iter().rev().chain(scopes.own.iter().rev()), &scopes, at, name)?;
        Ok(found.unwrap_or(Err(Unavailable::Unknown)))
    }

    /// The variable `name` in the first of these scopes that has one, unless that is defined outside of functions.
    fn first_named<'d>(
        &self,
        mut order: impl Iterator<Item = &'d Die>,
        scopes: &Scopes,
        at: u64,
        name: &str,
    ) -> Result<Option<VariableResult>, EntryError> {
        let found = order.find_map(|scope| {
            let declared = match self.variables_in(*scope) {
                Ok(declared) => declared,
                Err(damage) => return Some(Err(damage)),
            };
            // Code after the declaration refers to the last variable of a name.
            declared.into_iter().rev().find(|variable| variable.name == name).map(Ok)
        });
        match found.transpose()? {
            Some(variable) if !variable.is_elsewhere() => self.locate(&variable, scopes, at).map(Some),
            _ => Ok(None),
        }
    }

    fn optimized_out_or_global(&self, id: FunctionId, at: Address, name: &str) -> Result<VariableResult, EntryError> {
        // The compiler may omit variables from a copy that it has optimised out there.
        let declared = self.variables_in(id.die())?;
        let is_it = |variable: &&Declared| variable.name == name && !variable.is_elsewhere();
        let Some(variable) = declared.iter().find(is_it) else { return self.find_global_of_unit(id, name) };
        // Where a static one is, gcc says only once for all inlined copies.
        if let Some((scopes, flat)) = self.scopes_at(id, at)?.zip(self.elf.flat(at))
            && let Ok(found) = self.locate(variable, &scopes, flat)?
            && matches!(&found.location, Location::Memory(ops) if matches!(ops[..], [Op::Address(_)]))
        {
            return Ok(Ok(found));
        }
        Ok(Err(Unavailable::OptimizedOut))
    }

    /// Type and location of a variable at an address, or why it has none there.
    pub(super) fn locate(&self, variable: &Declared, scopes: &Scopes, at: u64) -> Result<VariableResult, EntryError> {
        let Some(type_id) = self.declared_type(variable)? else {
            return Ok(Err(Unavailable::Unsupported("it has no type".into())));
        };
        let location = self.located(variable, scopes, at)?;
        Ok(match location {
            Ok(location) => Ok(FoundVariable { type_id, location }),
            Err(Fault::Missing(why)) => Err(Unavailable::Unsupported(why)),
            Err(Fault::OfCaller) => {
                Err(Unavailable::Unsupported("its value is only known at the function's entry".into()))
            }
            Err(Fault::OptimizedOut) => Err(Unavailable::OptimizedOut),
            Err(Fault::EntryError(damage)) => return Err(damage),
        })
    }

    /// Where a variable is.
    fn located(&self, variable: &Declared, scopes: &Scopes, at: u64) -> Result<Result<Location, Fault>, EntryError> {
        self.located_by(variable, scopes, at, self.frame_base(scopes, at)?)
    }

    /// The same, where the frame base is known.
    fn located_by(
        &self,
        variable: &Declared,
        scopes: &Scopes,
        at: u64,
        frame_base: Option<Expression<Bytes>>,
    ) -> Result<Result<Location, Fault>, EntryError> {
        let budget = location::budget();
        for (_, unit, entry) in &variable.origins {
            let location = match self.stored(unit, entry, at)? {
                None => continue,
                Some(Stored::Nowhere) => Err(Fault::OptimizedOut),
                Some(Stored::Expression(expression)) => {
                    let place = self.place_by(unit, scopes, at, frame_base, &budget);
                    self.translated(&place, expression)?
                }
                Some(Stored::Bytes(bytes)) => Ok(Location::Bytes(bytes)),
                Some(Stored::Constant(value)) => Ok(Location::Value(vec![Op::Const(value)])),
            };
            return Ok(location);
        }
        Ok(Err(Fault::OptimizedOut))
    }

    /// The context in which location expressions are evaluated at the address.
    pub(super) fn place<'s>(
        &'s self,
        unit: &'s Unit,
        scopes: &'s Scopes,
        at: u64,
        budget: &'s Budget,
    ) -> Result<Place<'s>, EntryError> {
        Ok(self.place_by(unit, scopes, at, self.frame_base(scopes, at)?, budget))
    }

    fn place_by<'s>(
        &'s self,
        unit: &'s Unit,
        scopes: &'s Scopes,
        at: u64,
        frame_base: Option<Expression<Bytes>>,
        budget: &'s Budget,
    ) -> Place<'s> {
        Place { debug: self, scopes, unit, at, is_entry: scopes.is_entry, frame_base, entry_values: None, budget }
    }

    /// DW_AT_frame_base of the body that the scopes are in.
    fn frame_base(&self, scopes: &Scopes, at: u64) -> Result<Option<Expression<Bytes>>, EntryError> {
        let Some(die) = scopes.subprogram else { return Ok(None) };
        let (unit, entry) = self.store.entry(die)?;
        Ok(match self.stored_as(unit, &entry, gimli::DW_AT_frame_base, at)? {
            Some(Stored::Expression(base)) => Some(base),
            _ => None,
        })
    }

    /// The location that the expression describes; by caller where it depends on that.
    fn translated(&self, place: &Place, expression: Expression<Bytes>) -> Result<Result<Location, Fault>, EntryError> {
        match place.translate(expression) {
            Err(Fault::OfCaller) if place.entry_values.is_none() => self.by_caller(place, expression),
            translated => Ok(translated),
        }
    }

    /// Where the object described by an entry is, at a place of the code.
    pub(super) fn located_entry(&self, die: Die, place: &Place) -> Result<Location, Fault> {
        for (_, unit, entry) in self.store.origins(die)? {
            return match self.stored(unit, &entry, place.at)? {
                None => continue,
                Some(Stored::Nowhere) => Err(Fault::OptimizedOut),
                Some(Stored::Expression(expression)) => Place { unit, ..*place }.translate(expression),
                Some(Stored::Bytes(bytes)) => Ok(Location::Bytes(bytes)),
                Some(Stored::Constant(value)) => Ok(Location::Value(vec![Op::Const(value)])),
            };
        }
        Err(Fault::OptimizedOut)
    }

    /// The location that the entry gives for the address; None if it gives none.
    fn stored(&self, unit: &Unit, entry: &Entry, at: u64) -> Result<Option<Stored>, EntryError> {
        if let Some(stored) = self.stored_as(unit, entry, gimli::DW_AT_location, at)? {
            return Ok(Some(stored));
        }
        Ok(match entry.attr_value(gimli::DW_AT_const_value) {
            None => None,
            Some(AttributeValue::Block(bytes)) => Some(Stored::Bytes(bytes.slice().to_vec())),
            Some(AttributeValue::String(text)) => {
                Some(Stored::Bytes(text.slice().iter().copied().chain([0]).collect()))
            }
            Some(value) => Some(constant(&value).map_or(Stored::Nowhere, Stored::Constant)),
        })
    }

    fn stored_as(&self, unit: &Unit, entry: &Entry, name: gimli::DwAt, at: u64) -> Result<Option<Stored>, EntryError> {
        let Some(value) = entry.attr_value(name) else {
            return Ok(None);
        };
        match value {
            AttributeValue::Exprloc(expression) => return Ok(Some(Stored::Expression(expression))),
            AttributeValue::Block(block) => return Ok(Some(Stored::Expression(Expression(block)))),
            _ => {}
        }
        let Some(mut list) = self.store.sections_of(unit).attr_locations(unit, value)? else {
            return Ok(None);
        };
        let mut number = 0;
        // gimli's own iterator passes over empty ranges without an end.
        while let Some(raw) = list.next_raw()? {
            self.store.step_in_list(number)?;
            number += 1;
            let Some(found) = list.convert_raw(raw)? else { continue };
            if (found.range.begin..found.range.end).contains(&at) {
                return Ok(Some(Stored::Expression(found.data)));
            }
        }
        Ok(Some(Stored::Nowhere))
    }

    /// A variable outside functions: one of the function's unit, or the definition of one it declares. Of several of that name the
    /// one that the function's code means by it.
    pub(super) fn find_global_of_unit(&self, id: FunctionId, name: &str) -> Result<VariableResult, EntryError> {
        let die = match self.global_seen_from(id, name)? {
            Ok(die) => die,
            Err(why) => return Ok(Err(why)),
        };
        let origins = self.store.origins(die)?;
        let scopes = Scopes { own: Vec::new(), inner: Vec::new(), subprogram: None, is_entry: false };
        self.locate(&Declared { name: name.to_string().into(), parameter: false, origins }, &scopes, 0)
    }

    /// Its entry, or why there is none.
    fn global_seen_from(&self, id: FunctionId, name: &str) -> Result<Result<Die, Unavailable>, EntryError> {
        let all: Vec<Global> = self.try_index()?.scoped_variables_named(name.as_bytes()).collect();
        let slot = self.store.slot_of(id.die())?;
        let is_in_unit = |die: Die| self.store.slot_of(die).is_ok_and(|of| of == slot);
        let mut own: Vec<Global> = all.iter().copied().filter(|(die, _)| is_in_unit(*die)).collect();
        if own.is_empty() {
            // Link-time optimisation leaves only the place in another unit.
            let declared_by = |die: Die| self.store.origins(die).ok()?.last().map(|(die, ..)| *die);
            own = all.iter().copied().filter(|(die, _)| declared_by(*die).is_some_and(is_in_unit)).collect();
        }
        let around = self.scope_of_function(id)?;
        let seen = innermost(&own, &around);
        if let Some((die, scope)) = seen
            && without_unnamed(scope) == around
        {
            return Ok(Ok(die));
        }
        let external = || all.iter().copied().filter(|(die, _)| self.is_external(*die));
        if own.is_empty() && around.is_empty() {
            // In C, where the first one is enough.
            if let Some((die, _)) = external().find(|(_, scope)| scope.is_empty()) {
                return Ok(Ok(die));
            }
        }
        let mut others: Vec<Global> = external().collect();
        let closer = |scope: &[u8]| seen.is_none_or(|(_, own)| scope.len() > own.len());
        if !own.is_empty() {
            let mut declared = Vec::new();
            for (die, scope) in others.iter().copied().filter(|(_, scope)| closer(scope)) {
                if self.declares(slot, name, scope)? {
                    declared.push((die, scope));
                }
            }
            if let Some((die, _)) = innermost(&declared, &around).or(seen) {
                return Ok(Ok(die));
            }
            // What the function does not see without more words, but is in its unit.
            others = own;
        } else if let Some((die, _)) = innermost(&others, &around) {
            return Ok(Ok(die));
        }
        let Some((die, scope)) = others.first() else { return Ok(Err(Unavailable::Unknown)) };
        if others.iter().all(|(_, other)| other == scope) {
            return Ok(Ok(*die));
        }
        let why =
            "several variables of that name are in other namespaces or types; @var(\"SCOPE::NAME\") tells them apart";
        Ok(Err(Unavailable::Unsupported(why.into())))
    }

    /// Namespaces and types around a function, without unnamed ones.
    fn scope_of_function(&self, id: FunctionId) -> Result<String, EntryError> {
        let chain = self.store.origins(id.die())?;
        let name =
            chain.iter().find_map(|(_, unit, entry)| self.store.string(unit, entry.attr_value(gimli::DW_AT_name)?));
        let mut named = self.try_index()?.functions_named(name.unwrap_or_default());
        Ok(named.find(|function| function.die == id.die()).map_or(String::new(), |own| without_unnamed(own.scope)))
    }

    /// Whether the unit declares a variable of that name there.
    fn declares(&self, slot: usize, name: &str, scope: &[u8]) -> Result<bool, EntryError> {
        let unit = self.store.unit(slot)?;
        let mut entries = Entries::of(unit)?;
        while let Some(entry) = entries.next()? {
            if !matches!(entry.tag(), gimli::DW_TAG_variable | gimli::DW_TAG_member) {
                continue;
            }
            let own = entry.attr_value(gimli::DW_AT_name).and_then(|value| self.store.string(unit, value));
            if own != Some(name.as_bytes()) {
                continue;
            }
            let around = scan::scope_around(&self.store, die_at(unit, entry.offset())?)?;
            if around.is_some_and(|around| around.as_bytes() == scope) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Where a variable outside functions is.
    pub(super) fn global_location(&self, name: &[u8], die: Die) -> Result<Option<Location>, EntryError> {
        let scopes = Scopes { own: Vec::new(), inner: Vec::new(), subprogram: None, is_entry: false };
        let (name, origins) = (String::from_utf8_lossy(name).into_owned().into(), self.store.origins(die)?);
        Ok(self.located(&Declared { name, parameter: false, origins }, &scopes, 0)?.ok())
    }

    fn is_external(&self, die: Die) -> bool {
        let chain = self.store.origins(die).unwrap_or_default();
        chain.iter().any(|(_, _, entry)| super::store::flag(entry, gimli::DW_AT_external))
    }
}

/// A variable outside functions, and the namespaces and types around it.
type Global<'n> = (Die, &'n [u8]);

/// Of the variables that code in a scope can name without more words, the first one of the innermost scope.
fn innermost<'n>(variables: &[Global<'n>], around: &str) -> Option<Global<'n>> {
    let sees = |scope: &str| {
        scope.is_empty() || around.strip_prefix(scope).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let all = variables.iter().map(|(die, scope)| ((*die, *scope), without_unnamed(scope)));
    all.filter(|(_, scope)| sees(scope)).min_by_key(|(_, scope)| Reverse(scope.len())).map(|(variable, _)| variable)
}

/// A scope without the unnamed namespaces in it, which nobody has to write.
fn without_unnamed(scope: &[u8]) -> String {
    let scope = String::from_utf8_lossy(scope).replace(&format!("{}::", scan::UNNAMED), "");
    let named = scope.strip_suffix(scan::UNNAMED).map(|named| named.trim_end_matches(':'));
    named.unwrap_or(&scope).to_string()
}
