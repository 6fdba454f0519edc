// SPDX-License-Identifier: GPL-2.0-or-later

//! Exports an object's debug information in the form that [`crate::portable`] reads: tables in a file without code.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::Dwarf;
use super::quick::Quick;
use super::store::{Die, EntryError, die_at, flag, number};
use super::variables::{Parameter, PlacedVariable};
use crate::error::Error;
use crate::facts::{
    CALL_LENGTH, Call, Function, FunctionId, InlinedInstance, Label, Location, Member, Op, Type, TypeId, TypeTag,
};
use crate::object::{Address, Reserved, skeleton};
use crate::portable::format::{self, COLUMNS, Kind};
use crate::portable::place;
use crate::tables::{self, Writer, halves};

/// Nesting of unnamed types; deeper is damage.
const MAX_DEPTH: usize = 48;

/// Units that are read at once: the pages of the file are given back after them.
const UNITS_AT_ONCE: usize = 32;

/// A variable in a set: number of its name, row of its type, number of its location + 1, whether it is a parameter.
type VariableKey = [u32; 4];

/// Sets of variables, each with its row.
type Sets = HashMap<Vec<VariableKey>, u32, foldhash::fast::RandomState>;

/// A variable outside functions: name, unit, type, location, whether it is external.
type Global = (String, String, u32, Option<Vec<u8>>, bool);

/// Strings, each once, by number.
#[derive(Default)]
struct Strings {
    known: HashMap<Arc<[u8]>, u32, foldhash::fast::RandomState>,
    all: Vec<Arc<[u8]>>,
}

impl Strings {
    fn number(&mut self, text: &[u8]) -> u32 {
        if let Some(number) = self.known.get(text) {
            return *number;
        }
        let (text, number): (Arc<[u8]>, u32) = (text.into(), self.all.len() as u32);
        self.all.push(text.clone());
        self.known.insert(text, number);
        number
    }

    /// The number + 1; 0: there is none.
    fn number_or_none(&mut self, text: Option<&[u8]>) -> u32 {
        text.map_or(0, |text| self.number(text) + 1)
    }

    fn call_rows(&mut self, calls: Vec<Called>) -> Box<[CallRow]> {
        let row = |Called { callee, address, inside, returns }: Called| {
            let inside = inside.map(|inside| self.call_rows(inside));
            CallRow { callee, returns: self.number_or_none(returns.as_deref()), address, inside }
        };
        calls.into_iter().map(row).collect()
    }

    fn get(&self, number: u32) -> &[u8] {
        self.all.get(number as usize).map(|text| &**text).unwrap_or_default()
    }
}

/// Strings that are being written: where each is that has been.
struct Texts<'s> {
    strings: &'s Strings,
    /// By number; [`Texts::UNWRITTEN`]: it has not been.
    written: Vec<u32>,
}

impl<'s> Texts<'s> {
    const UNWRITTEN: u32 = u32::MAX;

    fn of(strings: &'s Strings) -> Self {
        Texts { strings, written: vec![Self::UNWRITTEN; strings.all.len()] }
    }

    /// Where the string of that number is in the tables.
    fn text(&mut self, writer: &mut Writer<'s>, number: u32) -> u32 {
        let Some(at) = self.written.get_mut(number as usize) else { return writer.text(&[]) };
        if *at == Self::UNWRITTEN {
            *at = writer.text(self.strings.get(number));
        }
        *at
    }

    /// The same + 1, for that of [`Strings::number_or_none`]; 0: there is none.
    fn text_or_none(&mut self, writer: &mut Writer<'s>, number: u32) -> u32 {
        number.checked_sub(1).map_or(0, |number| self.text(writer, number) + 1)
    }
}

/// What has been made of the units read so far.
#[derive(Default)]
struct Made {
    types: Interner,
    strings: Strings,
    /// Sets of variables, each with its row.
    sets: Sets,
    rows: Vec<FunctionRow>,
    /// Numbers of types with names among those of the names' index, and their rows.
    named: Vec<(usize, u32)>,
    /// Variables outside functions, by their number there.
    globals: Vec<(usize, Global)>,
}

/// What the index of names has of one unit; types and variables with their numbers in it.
struct UnitParts<'i> {
    slot: usize,
    functions: Vec<FunctionId>,
    types: Vec<(usize, Die)>,
    variables: Vec<(usize, &'i [u8], Die)>,
}

/// Units, what was read of each, and by what.
type Read<'u, 'i> = (Dwarf, &'u [UnitParts<'i>], Vec<Vec<Facts>>);

impl UnitParts<'_> {
    fn of(slot: usize) -> Self {
        UnitParts { slot, functions: Vec::new(), types: Vec::new(), variables: Vec::new() }
    }
}

/// What the index stores for one function.
struct Facts {
    id: FunctionId,
    function: Function,
    parameters: Vec<Parameter>,
    /// The variables of each body, then of each inlined instance, then of each label.
    placed: Vec<Vec<StoredVariable>>,
    lines: Vec<u8>,
    labels: Vec<Label>,
    /// The calls in its bodies.
    calls: Vec<Called>,
    /// Location of the return address at the beginning of each body.
    returns: Vec<Option<Arc<[u8]>>>,
    /// Return addresses of calls of unknown callees.
    unknown: Vec<u8>,
}

/// A variable and its location as it is stored; None: it has none.
struct StoredVariable {
    name: Cow<'static, str>,
    type_id: TypeId,
    parameter: bool,
    location: Option<Vec<u8>>,
}

/// A function whose strings, types and sets of variables have numbers: all are kept until they can be written in order.
struct FunctionRow {
    id: FunctionId,
    name: u32,
    file: u32,
    line: u32,
    external: bool,
    /// Row of the type that it returns + 1; 0: it returns none.
    returns: u32,
    bodies: Box<[BodyRow]>,
    /// Address and set of variables of each inlined instance.
    inlined: Box<[(u64, u32)]>,
    /// Name and type of each.
    parameters: Box<[[u32; 2]]>,
    labels: Box<[LabelRow]>,
    /// Numbers of [`Facts::lines`] and [`Facts::unknown`] + 1; 0: empty.
    lines: u32,
    unknown: u32,
    calls: Box<[CallRow]>,
}

/// One body; symbol and location of the return address as in [`CallRow::returns`].
struct BodyRow {
    address: u64,
    size: u64,
    symbol: u32,
    set: u32,
    returns: u32,
}

struct LabelRow {
    name: u32,
    line: u32,
    address: u64,
    set: u32,
}

/// A call of [`Called`]: there are a million.
struct CallRow {
    callee: FunctionId,
    /// Number of the location of the return address + 1; 0: none.
    returns: u32,
    address: u64,
    inside: Option<Box<[CallRow]>>,
}

/// A call and, if it is inlined, the calls in it.
struct Called {
    callee: FunctionId,
    /// In the object's one address space.
    address: u64,
    inside: Option<Vec<Called>>,
    /// Location of the return address at the call.
    returns: Option<Arc<[u8]>>,
}

/// Location of the return address, and the addresses for which that was read: calls next to each other mostly have the same.
#[derive(Default)]
struct ReturnPlace {
    around: Range<u64>,
    bytes: Option<Arc<[u8]>>,
}

impl Dwarf {
    /// The bytes of an ELF file that, opened as this object's, gives the same answers, except for what [`crate::portable`]
    /// leaves out. `reserved`: where no probe may be placed.
    pub(super) fn export_index(&self, reserved: Option<&Reserved>) -> Result<Vec<u8>, Error> {
        let tables = self.exported(reserved).map_err(|damage| self.failed(damage))?;
        skeleton::write(&self.elf, tables::transposed(&tables, false))
    }

    fn exported(&self, reserved: Option<&Reserved>) -> Result<Vec<u8>, EntryError> {
        let order: HashMap<FunctionId, usize, Quick> =
            self.try_index()?.functions().map(|function| FunctionId::of(function.die)).zip(0..).collect();
        let Made { types, strings, sets, mut rows, mut named, mut globals } = self.made()?;
        rows.sort_by_cached_key(|row| order.get(&row.id).copied());
        named.sort_by_key(|(number, _)| *number);
        globals.sort_by_key(|(number, _)| *number);
        let mut writer = Writer::new(&COLUMNS);
        let mut texts = Texts::of(&strings);
        write_functions(&mut writer, &rows, &mut texts);
        // Nothing refers to them any more, and there are millions to free.
        rayon::join(
            || drop(rows),
            || {
                write_sets(&mut writer, &sets, &mut texts);
                types.write(&mut writer);
            },
        );
        let index = self.try_index()?;
        let names: Vec<(TypeTag, &[u8])> = index.types().map(|(tag, name, _)| (tag, name)).collect();
        for (number, row) in &named {
            let Some((tag, name)) = names.get(*number) else { continue };
            let name = writer.text(name);
            writer.row(format::NAMED, &[*tag as u32, name, *row]);
        }
        write_globals(&mut writer, globals.iter().map(|(_, global)| global));
        for (at, length, reason) in reserved.into_iter().flat_map(Reserved::rows) {
            let [at, high] = halves(at);
            writer.row(format::RESERVED, &[at, high, length, reason]);
        }
        let filled = writer.filled();
        // Else all of it would be there twice.
        rayon::join(|| drop((sets, globals)), || drop((strings, types)));
        Ok(filled.finish())
    }

    /// All that the index has, some units after the other: what is read of them is freed before the next ones are read. While units
    /// are read, those before get their rows.
    fn made(&self) -> Result<Made, EntryError> {
        let index = self.try_index()?;
        let mut units: Vec<UnitParts> = (0..self.store.slots.len()).map(UnitParts::of).collect();
        for function in index.functions() {
            let unit = units.get_mut(self.store.slot_of(function.die)?);
            unit.into_iter().for_each(|unit| unit.functions.push(FunctionId::of(function.die)));
        }
        for (number, (_, _, die)) in index.types().enumerate() {
            let unit = units.get_mut(self.store.slot_of(die)?);
            unit.into_iter().for_each(|unit| unit.types.push((number, die)));
        }
        for (number, (name, die)) in index.variables().enumerate() {
            let unit = units.get_mut(self.store.slot_of(die)?);
            unit.into_iter().for_each(|unit| unit.variables.push((number, name, die)));
        }
        // With link-time optimisation a function's copies may be in any unit.
        let at_once = if index.crosses_units { units.len().max(1) } else { UNITS_AT_ONCE };
        self.again().prepare_callers();
        let mut made = Made::default();
        let mut before: Option<Read> = None;
        for some in units.chunks(at_once) {
            let part = self.again();
            let read = || some.par_iter().map(|unit| part.facts_of(unit)).collect();
            let take = || match before.take() {
                Some((part, units, facts)) => made.take(&part, units, facts),
                None => Ok(()),
            };
            let (taken, facts): (_, Result<Vec<Vec<Facts>>, EntryError>) = rayon::join(take, read);
            taken?;
            before = Some((part, some, facts?));
            self.elf.give_back();
        }
        if let Some((part, units, facts)) = before {
            made.take(&part, units, facts)?;
        }
        self.elf.give_back();
        Ok(made)
    }

    /// Those of a unit that have code.
    fn facts_of(&self, unit: &UnitParts) -> Result<Vec<Facts>, EntryError> {
        self.children_read.begin(unit.slot);
        let facts = unit.functions.iter().map(|id| self.facts(*id)).collect::<Result<Vec<Facts>, EntryError>>();
        self.children_read.end(unit.slot);
        let mut facts = facts?;
        facts.retain(|one| !one.function.bodies.is_empty() || !one.function.inlined.is_empty());
        Ok(facts)
    }

    fn facts(&self, id: FunctionId) -> Result<Facts, EntryError> {
        let starts = self.instance_starts(id)?;
        let addresses = starts.keys().filter_map(|at| self.elf.address(*at));
        let inlined = addresses.map(|address| InlinedInstance { address }).collect();
        let mut function = self.read_function_with(id, inlined)?;
        // A probe needs an address in a section.
        function.bodies.retain(|body| self.elf.flat(body.entry).is_some());
        function.inlined.retain(|instance| self.elf.flat(instance.address).is_some());
        let declared = self.variables_in(id.die())?;
        let mut parameters = Vec::new();
        for variable in declared.iter().filter(|variable| variable.parameter) {
            parameters.extend(self.declared_type(variable)?.map(|type_id| (variable.name.clone(), type_id)));
        }
        let mut labels = self.read_labels(id)?;
        labels.retain(|label| self.elf.flat(label.address).is_some());
        let bodies = function.bodies.iter().map(|body| body.entry);
        let instances = function.inlined.iter().map(|instance| instance.address);
        let sites = bodies.chain(instances).chain(labels.iter().map(|label| label.address));
        let stored = |at: Address| -> Result<Vec<StoredVariable>, EntryError> {
            let found = self.variables_at(id, &parameters, at)?.into_iter();
            Ok(found.map(|variable| self.stored_variable(variable)).collect())
        };
        let placed = sites.map(stored).collect::<Result<Vec<_>, EntryError>>()?;
        let mut lines = Vec::new();
        let mut before = 0;
        for line in self.lines_within(id, &function.file)? {
            format::write_number(u64::from(line - before), &mut lines);
            before = line;
        }
        let mut place = ReturnPlace::default();
        let calls = self.called(self.calls_within(self.copies(id)?)?, 0, &mut place)?;
        let returns = function.bodies.iter().map(|body| self.return_bytes(body.entry, &mut place));
        let returns = returns.collect::<Result<_, EntryError>>()?;
        let unknown = place::address_bytes(&self.read_returns_of_unknown_calls(id)?, &self.elf);
        Ok(Facts { id, function, parameters, placed, lines, labels, calls, returns, unknown })
    }

    fn stored_variable(&self, variable: PlacedVariable) -> StoredVariable {
        let PlacedVariable { name, type_id, parameter, location } = variable;
        StoredVariable { name, type_id, parameter, location: self.location_bytes(location.as_ref()) }
    }

    /// `place`: the last one that was read.
    fn return_bytes(&self, at: Address, place: &mut ReturnPlace) -> Result<Option<Arc<[u8]>>, EntryError> {
        let Some(at) = self.elf.flat(at) else { return Ok(None) };
        if !place.around.contains(&at) {
            let (ops, around) = self.return_slot_around(at)?;
            let bytes = ops.and_then(|ops| place::op_bytes(&ops, &self.elf)).map(Arc::from);
            *place = ReturnPlace { around, bytes };
        }
        Ok(place.bytes.clone())
    }

    fn called(&self, calls: Vec<Call>, depth: usize, place: &mut ReturnPlace) -> Result<Vec<Called>, EntryError> {
        let mut called = Vec::new();
        // An index has no lengths of calls.
        let is_told = |call: &Call| {
            let length = call.returns_to.offset.wrapping_sub(call.address.offset);
            !call.tail && (call.inlined.is_some() || length == CALL_LENGTH)
        };
        for Call { callee, address, inlined, .. } in calls.into_iter().filter(is_told) {
            let inside = match inlined {
                Some(copy) if depth < MAX_DEPTH => {
                    Some(self.called(self.calls_within([copy.die()])?, depth + 1, place)?)
                }
                Some(_) => Some(Vec::new()),
                None => None,
            };
            if let Some(flat) = self.elf.flat(address) {
                called.push(Called { callee, address: flat, inside, returns: self.return_bytes(address, place)? });
            }
        }
        Ok(called)
    }

    /// None: it has none that code can be compiled for.
    fn location_bytes(&self, location: Option<&Location>) -> Option<Vec<u8>> {
        // A module's data is found by a symbol near it.
        let lost = |op: &Op| matches!(op, Op::Address(at) if !matches!(self.elf.data_anchor(*at), Ok(Some(_))));
        let placed = |ops: &[Op]| !self.elf.is_relocatable() || !ops.iter().any(lost);
        match location? {
            Location::Memory(ops) | Location::Value(ops) if !placed(ops) => None,
            location => place::location_bytes(location, &self.elf),
        }
    }

    /// A variable outside functions; None: it has no type.
    fn global_facts(&self, name: &[u8], die: Die, types: &mut Interner) -> Result<Option<Global>, EntryError> {
        let chain = self.store.origins(die)?;
        let mut found = None;
        for (_, unit, entry) in &chain {
            found = found.or(self.type_of(unit, entry)?);
        }
        let Some(type_id) = found else { return Ok(None) };
        let external = chain.iter().any(|(_, _, entry)| flag(entry, gimli::DW_AT_external));
        let location = self.global_location(name, die)?;
        let location = self.location_bytes(location.as_ref());
        let unit = chain.first().and_then(|(_, unit, _)| unit.name.as_ref());
        let unit = unit.map(|name| String::from_utf8_lossy(name.slice()).into_owned()).unwrap_or_default();
        let row = types.intern(self, type_id, 0)?;
        Ok(Some((String::from_utf8_lossy(name).into_owned(), unit, row, location, external)))
    }
}

impl Made {
    /// Adds what was read of units by `debug`: types and sets of variables get rows.
    fn take(&mut self, debug: &Dwarf, units: &[UnitParts], facts: Vec<Vec<Facts>>) -> Result<(), EntryError> {
        for facts in facts.into_iter().flatten() {
            let row = self.row(debug, facts)?;
            self.rows.push(row);
        }
        for unit in units {
            for (number, die) in &unit.types {
                self.named.push((*number, self.types.intern(debug, TypeId::of(*die), 0)?));
            }
            for (number, name, die) in &unit.variables {
                let global = debug.global_facts(name, *die, &mut self.types)?;
                self.globals.extend(global.map(|global| (*number, global)));
            }
        }
        self.types.finish(debug)?;
        // Few units refer to types of others; these are found again by name or contents.
        self.types.by_id.clear();
        Ok(())
    }

    fn row(&mut self, debug: &Dwarf, facts: Facts) -> Result<FunctionRow, EntryError> {
        let Facts { id, function, parameters, placed, lines, labels, calls, returns: places, unknown } = facts;
        let returns = match function.return_type {
            Some(id) => self.types.intern(debug, id, 0)?.saturating_add(1),
            None => 0,
        };
        let types = parameters.iter().map(|(_, type_id)| self.types.intern(debug, *type_id, 0));
        let types = types.collect::<Result<Vec<u32>, EntryError>>()?;
        let mut sets = Vec::new();
        for placed in placed {
            let keys = placed.iter().map(|variable| self.key(debug, variable));
            let keys = keys.collect::<Result<Vec<VariableKey>, EntryError>>()?;
            let next = self.sets.len() as u32;
            sets.push(*self.sets.entry(keys).or_insert(next));
        }
        let strings = &mut self.strings;
        let flat = |address| debug.elf.flat(address).unwrap_or_default();
        let (of_bodies, sets) = sets.split_at_checked(function.bodies.len()).unwrap_or_default();
        let (of_inlined, of_labels) = sets.split_at_checked(function.inlined.len()).unwrap_or_default();
        let bodies = function.bodies.iter().zip(of_bodies).zip(&places).map(|((body, set), returns)| BodyRow {
            address: flat(body.entry),
            size: body.size,
            symbol: strings.number_or_none(body.symbol.as_ref().map(std::string::String::as_bytes)),
            set: *set,
            returns: strings.number_or_none(returns.as_deref()),
        });
        let bodies = bodies.collect();
        let inlined = function.inlined.iter().zip(of_inlined).map(|(instance, set)| (flat(instance.address), *set));
        let labels = labels.iter().zip(of_labels).map(|(label, set)| LabelRow {
            name: strings.number(label.name.as_bytes()),
            line: label.line,
            address: flat(label.address),
            set: *set,
        });
        let labels = labels.collect();
        let names = parameters.iter().map(|(name, _)| strings.number(name.as_bytes()));
        let parameters = names.zip(types).map(|(name, type_row)| [name, type_row]).collect();
        let [lines, unknown] = [lines, unknown].map(|bytes| (!bytes.is_empty()).then_some(bytes));
        Ok(FunctionRow {
            id,
            name: strings.number(function.name.as_bytes()),
            file: strings.number(function.file.as_bytes()),
            line: function.line,
            external: function.external,
            returns,
            bodies,
            inlined: inlined.collect(),
            parameters,
            labels,
            lines: strings.number_or_none(lines.as_deref()),
            unknown: strings.number_or_none(unknown.as_deref()),
            calls: strings.call_rows(calls),
        })
    }

    fn key(&mut self, debug: &Dwarf, variable: &StoredVariable) -> Result<VariableKey, EntryError> {
        let name = self.strings.number(variable.name.as_bytes());
        let row = self.types.intern(debug, variable.type_id, 0)?;
        let location = variable.location.as_ref().map_or(0, |location| self.strings.number(location) + 1);
        Ok([name, row, location, u32::from(variable.parameter)])
    }
}

/// All functions and, after them, the calls in each.
fn write_functions<'t>(writer: &mut Writer<'t>, rows: &[FunctionRow], texts: &mut Texts<'t>) {
    let numbers: HashMap<FunctionId, u32, Quick> = rows.iter().map(|row| row.id).zip(0..).collect();
    let mut calls = Vec::new();
    for row in rows {
        write_function(writer, row, calls.len() as u32, texts);
        calls.extend(row.calls.iter().filter(|call| numbers.contains_key(&call.callee)));
    }
    let ends = [format::BODIES, format::INLINED, format::PARAMETERS, format::LABELS].map(|table| writer.rows(table));
    writer.row(format::FUNCTIONS, &[0, 0, 0, 0, 0, ends[0], ends[1], ends[2], 0, ends[3], calls.len() as u32, 0]);
    write_calls(writer, calls, &numbers, texts);
}

fn write_function<'f>(writer: &mut Writer<'f>, row: &FunctionRow, first_call: u32, texts: &mut Texts<'f>) {
    let (name, file) = (texts.text(writer, row.name), texts.text(writer, row.file));
    let tables = [format::BODIES, format::INLINED, format::PARAMETERS, format::LABELS];
    let [bodies, inlined, first, labels] = tables.map(|table| writer.rows(table));
    let [lines, unknown] = [row.lines, row.unknown].map(|number| texts.text_or_none(writer, number));
    let external = u32::from(row.external);
    let cells =
        [name, file, row.line, external, row.returns, bodies, inlined, first, lines, labels, first_call, unknown];
    writer.row(format::FUNCTIONS, &cells);
    for LabelRow { name, line, address, set } in &row.labels {
        let [at, high] = halves(*address);
        let name = texts.text(writer, *name);
        writer.row(format::LABELS, &[name, *line, at, high, *set]);
    }
    for BodyRow { address, size, symbol, set, returns } in &row.bodies {
        let ([at, high], [size, large]) = (halves(*address), halves(*size));
        let symbol = texts.text_or_none(writer, *symbol);
        let returns = texts.text_or_none(writer, *returns);
        writer.row(format::BODIES, &[at, high, size, large, symbol, *set, returns]);
    }
    for (address, set) in &row.inlined {
        let [at, high] = halves(*address);
        writer.row(format::INLINED, &[at, high, *set]);
    }
    for [name, type_row] in &row.parameters {
        let name = texts.text(writer, *name);
        writer.row(format::PARAMETERS, &[name, *type_row]);
    }
}

/// The given calls, then the calls inside each.
fn write_calls<'t>(
    writer: &mut Writer<'t>,
    mut calls: Vec<&CallRow>,
    numbers: &HashMap<FunctionId, u32, Quick>,
    texts: &mut Texts<'t>,
) {
    let mut next = 0;
    while let Some(call) = calls.get(next).copied() {
        let first = calls.len() as u32;
        let inside = call.inside.iter().flat_map(|inside| inside.iter());
        calls.extend(inside.filter(|call| numbers.contains_key(&call.callee)));
        let count = calls.len() as u32 - first;
        let [at, high] = halves(call.address);
        let callee = numbers.get(&call.callee).copied().unwrap_or(u32::MAX);
        let inside = if call.inside.is_some() { first + 1 } else { 0 };
        let returns = texts.text_or_none(writer, call.returns);
        writer.row(format::CALLS, &[callee, at, high, inside, count, returns]);
        next += 1;
    }
}

/// The sets of variables, in the order of their rows.
fn write_sets<'w>(writer: &mut Writer<'w>, sets: &Sets, texts: &mut Texts<'w>) {
    let mut ordered: Vec<(&Vec<VariableKey>, u32)> = sets.iter().map(|(set, number)| (set, *number)).collect();
    ordered.sort_by_key(|(_, number)| *number);
    for (set, _) in ordered {
        writer.row(format::SETS, &[writer.rows(format::VARIABLES)]);
        for [name, type_row, location, parameter] in set {
            let (name, location) = (texts.text(writer, *name), texts.text_or_none(writer, *location));
            writer.row(format::VARIABLES, &[name, *type_row, location, *parameter]);
        }
    }
    writer.row(format::SETS, &[writer.rows(format::VARIABLES)]);
}

fn write_globals<'w>(writer: &mut Writer<'w>, globals: impl Iterator<Item = &'w Global>) {
    for (name, unit, row, location, external) in globals {
        let (name, unit) = (writer.text(name.as_bytes()), writer.text(unit.as_bytes()));
        let location = text_or_none(writer, location.as_deref());
        writer.row(format::GLOBALS, &[name, unit, *row, location, u32::from(*external)]);
    }
}

/// The number of a string + 1; 0: there is none.
fn text_or_none<'w>(writer: &mut Writer<'w>, bytes: Option<&'w [u8]>) -> u32 {
    bytes.map_or(0, |bytes| writer.text(bytes) + 1)
}

/// A member or parameter: its name, row of its type, offset in bytes, and first bit and size of a bit-field (24 and 8 bits).
type Child = (Option<String>, [u32; 3]);

/// A type as a row: kind, name, target or size, children, and the last number of a base type.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Row {
    kind: Kind,
    name: Option<String>,
    number: u32,
    children: Vec<Child>,
    encoding: u32,
}

/// Types of all units, each once: a named type is identified by tag, name and size, all others by their contents.
#[derive(Default)]
struct Interner {
    by_id: HashMap<TypeId, u32, Quick>,
    by_name: HashMap<(bool, String, u64), u32, foldhash::fast::RandomState>,
    by_row: HashMap<Row, u32, foldhash::fast::RandomState>,
    rows: Vec<Row>,
    /// Structs whose members have not been read yet.
    open: Vec<(u32, TypeId)>,
    /// Sizes of definitions that were looked up by name: each may be in a unit that is not read otherwise.
    sizes: HashMap<Die, Option<u64>, Quick>,
}

/// A struct or union with a name.
struct Named {
    union: bool,
    name: String,
    size: u64,
    definition: TypeId,
}

impl Interner {
    fn intern(&mut self, debug: &Dwarf, id: TypeId, depth: usize) -> Result<u32, EntryError> {
        if let Some(row) = self.by_id.get(&id) {
            return Ok(*row);
        }
        if depth > MAX_DEPTH {
            return Err(EntryError::at(id.die(), "types within types without an end"));
        }
        let row = match named_struct(debug, id, &mut self.sizes)? {
            Some(Named { union, name, size, definition }) => {
                let key = (union, name.clone(), size);
                match self.by_name.get(&key) {
                    Some(row) => *row,
                    None => {
                        let kind = if union { Kind::Union } else { Kind::Struct };
                        let row = self.push(Row {
                            kind,
                            name: Some(name),
                            number: u32::try_from(size).unwrap_or(u32::MAX),
                            children: Vec::new(),
                            encoding: 0,
                        });
                        self.by_name.insert(key, row);
                        self.open.push((row, definition));
                        row
                    }
                }
            }
            None => {
                let row = self.made(debug, id, depth)?;
                match self.by_row.get(&row) {
                    Some(known) => *known,
                    None => {
                        let number = self.push(row.clone());
                        self.by_row.insert(row, number);
                        number
                    }
                }
            }
        };
        self.by_id.insert(id, row);
        Ok(row)
    }

    fn push(&mut self, row: Row) -> u32 {
        self.rows.push(row);
        self.rows.len() as u32 - 1
    }

    fn target(&mut self, debug: &Dwarf, target: Option<TypeId>, depth: usize) -> Result<u32, EntryError> {
        target.map_or(Ok(0), |id| Ok(self.intern(debug, id, depth + 1)?.saturating_add(1)))
    }

    fn made(&mut self, debug: &Dwarf, id: TypeId, depth: usize) -> Result<Row, EntryError> {
        let plain = |kind, name, number| Row { kind, name, number, children: Vec::new(), encoding: 0 };
        Ok(match debug.read_type(id)? {
            Type::Base { name, size, encoding } => {
                let encoding = format::ENCODINGS.iter().position(|known| *known == encoding).unwrap_or(1) as u32;
                Row { encoding, ..plain(Kind::Base, Some(name), size as u32) }
            }
            Type::Pointer(target) => plain(Kind::Pointer, None, self.target(debug, target, depth)?),
            Type::Const(target) => plain(Kind::Const, None, self.target(debug, target, depth)?),
            Type::Volatile(target) => plain(Kind::Volatile, None, self.target(debug, target, depth)?),
            Type::Typedef { name, target } => plain(Kind::Typedef, Some(name), self.target(debug, target, depth)?),
            Type::Incomplete { name } => plain(Kind::Incomplete, Some(name), 0),
            // One with a name is a row of its own, or only declared.
            Type::Struct { name: Some(name), union, .. } => {
                plain(Kind::Incomplete, Some(format!("{} {name}", if union { "union" } else { "struct" })), 0)
            }
            Type::Struct { name: None, union, size, members } => {
                let children = self.members(debug, members, depth)?;
                Row { children, ..plain(if union { Kind::Union } else { Kind::Struct }, None, size as u32) }
            }
            Type::Array { element, counts } => {
                let count = |count: Option<u64>| {
                    let [low, high] = halves(count.unwrap_or(0));
                    (None, [u32::from(count.is_some()), low, high])
                };
                let children = counts.into_iter().map(count).collect();
                Row { children, ..plain(Kind::Array, None, self.target(debug, Some(element), depth)?) }
            }
            Type::Enum { name, size, signed, values } => {
                let value = |(name, value): (String, i64)| {
                    let [low, high] = halves(value as u64);
                    (Some(name), [low, high, 0])
                };
                Row {
                    children: values.into_iter().map(value).collect(),
                    ..plain(if signed { Kind::SignedEnum } else { Kind::Enum }, name, size as u32)
                }
            }
            Type::Function { returns, parameters, variadic } => {
                let mut children = Vec::new();
                for parameter in parameters {
                    children.push((None, [self.intern(debug, parameter, depth + 1)?, 0, 0]));
                }
                Row {
                    children,
                    ..plain(
                        if variadic { Kind::Variadic } else { Kind::Function },
                        None,
                        self.target(debug, returns, depth)?,
                    )
                }
            }
        })
    }

    fn members(&mut self, debug: &Dwarf, members: Vec<Member>, depth: usize) -> Result<Vec<Child>, EntryError> {
        let mut children = Vec::new();
        // An index has no variants.
        for member in members.into_iter().filter(|member| member.when.is_none()) {
            let bits = member.bits.map_or(0, |bits| (bits.first as u32) << 8 | u32::from(bits.bits));
            children.push((member.name, [self.intern(debug, member.type_id, depth + 1)?, member.offset as u32, bits]));
        }
        Ok(children)
    }

    /// Reads the members of all structs and of the structs that they refer to.
    fn finish(&mut self, debug: &Dwarf) -> Result<(), EntryError> {
        while let Some((row, id)) = self.open.pop() {
            let Type::Struct { members, .. } = debug.read_type(id)? else { continue };
            let children = self.members(debug, members, 0)?;
            if let Some(row) = self.rows.get_mut(row as usize) {
                row.children = children;
            }
        }
        Ok(())
    }

    fn write<'w>(&'w self, writer: &mut Writer<'w>) {
        for row in &self.rows {
            let name = row.name.as_ref().map_or(0, |name| writer.text(name.as_bytes()) + 1);
            let count = if row.kind == Kind::Base { row.encoding } else { row.children.len() as u32 };
            let kind = format::KINDS.iter().position(|kind| *kind == row.kind).unwrap_or(0) as u32;
            writer.row(format::TYPES, &[kind, name, row.number, writer.rows(format::CHILDREN), count]);
            for (name, [first, second, third]) in &row.children {
                let name = name.as_ref().map_or(0, |name| writer.text(name.as_bytes()) + 1);
                writer.row(format::CHILDREN, &[name, *first, *second, *third]);
            }
        }
    }
}

/// The definition of a named struct, wherever it is; its members are not read.
fn named_struct(
    debug: &Dwarf,
    id: TypeId,
    sizes: &mut HashMap<Die, Option<u64>, Quick>,
) -> Result<Option<Named>, EntryError> {
    let (unit, entry) = debug.unrestricted(id.die())?;
    let union = entry.tag() == gimli::DW_TAG_union_type;
    if !union && entry.tag() != gimli::DW_TAG_structure_type {
        return Ok(None);
    }
    let Some(name) = debug.store.name(unit, &entry) else { return Ok(None) };
    let (mut die, mut size) = (die_at(unit, entry.offset())?, number(&entry, gimli::DW_AT_byte_size));
    if flag(&entry, gimli::DW_AT_declaration) {
        let tag = if union { TypeTag::Union } else { TypeTag::Struct };
        let Some(definition) = debug.type_definition(unit, &entry, tag)? else { return Ok(None) };
        (die, size) = match sizes.get(&definition) {
            Some(size) => (definition, *size),
            None => (definition, number(&debug.store.entry(definition)?.1, gimli::DW_AT_byte_size)),
        };
        sizes.insert(definition, size);
    }
    Ok(Some(Named { union, name, size: size.unwrap_or(0), definition: TypeId::of(die) }))
}
