// SPDX-License-Identifier: GPL-2.0-or-later

//! Exports an object's debug information in the form that [`crate::portable`] reads: tables in a file without code.

use std::collections::HashMap;

use rayon::prelude::*;

use super::Dwarf;
use super::store::{Die, EntryError, die_at, flag, number};
use super::variables::PlacedVariable;
use crate::error::Error;
use crate::facts::{Call, Function, FunctionId, Label, Location, Member, Op, Type, TypeId, TypeTag, Variable};
use crate::object::{Address, Reserved, skeleton};
use crate::portable::format::{self, COLUMNS, Kind};
use crate::portable::place;
use crate::tables::{self, Writer, halves};

/// Nesting of unnamed types; deeper is damage.
const MAX_DEPTH: usize = 48;

/// A variable in a set: name, type, location, whether it is a parameter.
type VariableKey = (String, u32, Option<Vec<u8>>, bool);

/// A variable outside functions: name, unit, type, location, whether it is external.
type Global = (String, String, u32, Option<Vec<u8>>, bool);

/// Sets of variables, each with its row.
type VariableSets = HashMap<Vec<VariableKey>, u32>;

/// What the index stores for one function.
struct Facts {
    id: FunctionId,
    function: Function,
    parameters: Vec<Variable>,
    /// The variables of each body, then of each inlined instance.
    placed: Vec<Vec<PlacedVariable>>,
    lines: Vec<u8>,
    /// Each with its variables.
    labels: Vec<(Label, Vec<PlacedVariable>)>,
    /// The calls in its bodies.
    calls: Vec<Called>,
    /// Location of the return address at the beginning of each body.
    returns: Vec<Option<Vec<u8>>>,
    /// Return addresses of calls of unknown callees.
    unknown: Vec<u8>,
}

/// A function whose types and sets of variables have rows.
struct FunctionRow<'f> {
    facts: &'f Facts,
    /// Row of the type that it returns + 1; 0: it returns none.
    returns: u32,
    /// Name and row of the type.
    parameters: Vec<(&'f str, u32)>,
    /// Rows of the sets of [`Facts::placed`], then of the labels.
    sets: Vec<u32>,
}

/// A call and, if it is inlined, the calls in it.
struct Called {
    callee: FunctionId,
    address: Address,
    inside: Option<Vec<Called>>,
    /// Location of the return address at the call.
    returns: Option<Vec<u8>>,
}

impl Dwarf {
    /// The bytes of an ELF file that, opened as this object's, gives the same answers, except for what [`crate::portable`]
    /// leaves out. `reserved`: where no probe may be placed.
    pub(super) fn export_index(&self, reserved: Option<&Reserved>) -> Result<Vec<u8>, Error> {
        let tables = self.exported(reserved).map_err(|damage| self.failed(damage))?;
        skeleton::write(&self.elf, tables::transposed(&tables, false))
    }

    fn exported(&self, reserved: Option<&Reserved>) -> Result<Vec<u8>, EntryError> {
        let index = self.try_index()?;
        let ids: Vec<FunctionId> = index.functions().map(|function| FunctionId::of(function.die)).collect();
        let facts: Result<Vec<Facts>, EntryError> = ids.par_iter().map(|id| self.facts(*id)).collect();
        let mut facts = facts?;
        facts.retain(|one| !one.function.bodies.is_empty() || !one.function.inlined.is_empty());
        let mut types = Interner::new(self);
        let mut sets = HashMap::new();
        let mut rows = Vec::new();
        for one in &facts {
            rows.push(self.function_row(one, &mut types, &mut sets)?);
        }
        let named: Vec<(TypeTag, Vec<u8>, Die)> =
            index.types().map(|(tag, name, die)| (tag, name.to_vec(), die)).collect();
        let mut named_rows = Vec::new();
        for (tag, name, die) in &named {
            named_rows.push((*tag as u32, name.as_slice(), types.intern(TypeId::of(*die), 0)?));
        }
        let globals = self.global_facts(&mut types)?;
        types.finish()?;
        let mut writer = Writer::new(&COLUMNS);
        self.write_functions(&mut writer, &rows);
        write_sets(&mut writer, &sets);
        types.write(&mut writer);
        for (tag, name, row) in &named_rows {
            let name = writer.text(name);
            writer.row(format::NAMED, &[*tag, name, *row]);
        }
        write_globals(&mut writer, &globals);
        for (at, length, reason) in reserved.into_iter().flat_map(Reserved::rows) {
            let [at, high] = halves(at);
            writer.row(format::RESERVED, &[at, high, length, reason]);
        }
        Ok(writer.finish())
    }

    /// The function with its types and sets of variables, which are added to `types` and `sets`.
    fn function_row<'f>(
        &self,
        facts: &'f Facts,
        types: &mut Interner,
        sets: &mut VariableSets,
    ) -> Result<FunctionRow<'f>, EntryError> {
        let returns = match facts.function.return_type {
            Some(id) => types.intern(id, 0)?.saturating_add(1),
            None => 0,
        };
        let mut parameters = Vec::new();
        for parameter in &facts.parameters {
            parameters.push((parameter.name.as_str(), types.intern(parameter.type_id, 0)?));
        }
        let mut own = Vec::new();
        for placed in facts.placed.iter().chain(facts.labels.iter().map(|(_, placed)| placed)) {
            let mut set = Vec::new();
            for variable in placed {
                set.push((
                    variable.name.clone(),
                    types.intern(variable.type_id, 0)?,
                    self.location_bytes(variable.location.as_ref()),
                    variable.parameter,
                ));
            }
            let next = sets.len() as u32;
            own.push(*sets.entry(set).or_insert(next));
        }
        Ok(FunctionRow { facts, returns, parameters, sets: own })
    }

    fn facts(&self, id: FunctionId) -> Result<Facts, EntryError> {
        let mut function = self.read_function(id)?;
        // A probe needs an address in a section.
        function.bodies.retain(|body| self.elf.flat(body.entry).is_some());
        function.inlined.retain(|instance| self.elf.flat(instance.address).is_some());
        let declared = self.variables_in(id.die())?;
        let parameters = self.described(declared.iter().filter(|variable| variable.parameter))?;
        let sites = function
            .bodies
            .iter()
            .map(|body| body.entry)
            .chain(function.inlined.iter().map(|instance| instance.address));
        let placed = sites.map(|at| self.variables_at(id, at)).collect::<Result<Vec<_>, EntryError>>()?;
        let mut lines = Vec::new();
        let mut before = 0;
        for line in self.lines_within(id, &function.file)? {
            format::write_number(u64::from(line - before), &mut lines);
            before = line;
        }
        let labels = self.read_labels(id)?.into_iter().filter(|label| self.elf.flat(label.address).is_some());
        let labels = labels
            .map(|label| Ok((self.variables_at(id, label.address)?, label)))
            .map(|pair| pair.map(|(placed, label)| (label, placed)));
        let labels = labels.collect::<Result<Vec<_>, EntryError>>()?;
        let calls = self.called(self.calls_within(self.copies(id)?)?, 0)?;
        let returns =
            function.bodies.iter().map(|body| self.return_bytes(body.entry)).collect::<Result<_, EntryError>>()?;
        let unknown = place::address_bytes(&self.read_returns_of_unknown_calls(id)?, &self.elf);
        Ok(Facts { id, function, parameters, placed, lines, labels, calls, returns, unknown })
    }

    fn return_bytes(&self, at: Address) -> Result<Option<Vec<u8>>, EntryError> {
        let Some(at) = self.elf.flat(at) else { return Ok(None) };
        Ok(self.return_slot(at)?.and_then(|ops| place::op_bytes(&ops, &self.elf)))
    }

    fn called(&self, calls: Vec<Call>, depth: usize) -> Result<Vec<Called>, EntryError> {
        let mut called = Vec::new();
        for Call { callee, address, inlined, .. } in calls.into_iter().filter(|call| !call.tail) {
            let inside = match inlined {
                Some(copy) if depth < MAX_DEPTH => Some(self.called(self.calls_within([copy.die()])?, depth + 1)?),
                Some(_) => Some(Vec::new()),
                None => None,
            };
            if self.elf.flat(address).is_some() {
                called.push(Called { callee, address, inside, returns: self.return_bytes(address)? });
            }
        }
        Ok(called)
    }

    /// The given calls, then the calls inside each.
    fn write_calls<'f>(&self, writer: &mut Writer<'f>, mut calls: Vec<&'f Called>, numbers: &HashMap<FunctionId, u32>) {
        let mut next = 0;
        while let Some(call) = calls.get(next).copied() {
            let first = calls.len() as u32;
            let inside = call.inside.iter().flatten().filter(|call| numbers.contains_key(&call.callee));
            calls.extend(inside);
            let count = calls.len() as u32 - first;
            let [at, high] = halves(self.elf.flat(call.address).unwrap_or_default());
            let callee = numbers.get(&call.callee).copied().unwrap_or(u32::MAX);
            let inside = if call.inside.is_some() { first + 1 } else { 0 };
            let returns = text_or_none(writer, call.returns.as_deref());
            writer.row(format::CALLS, &[callee, at, high, inside, count, returns]);
            next += 1;
        }
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

    /// All functions and, after them, the calls in each.
    fn write_functions<'f>(&self, writer: &mut Writer<'f>, rows: &[FunctionRow<'f>]) {
        let numbers: HashMap<FunctionId, u32> = rows.iter().map(|row| row.facts.id).zip(0..).collect();
        let mut calls = Vec::new();
        for row in rows {
            self.write_function(writer, row, calls.len() as u32);
            calls.extend(row.facts.calls.iter().filter(|call| numbers.contains_key(&call.callee)));
        }
        let ends =
            [format::BODIES, format::INLINED, format::PARAMETERS, format::LABELS].map(|table| writer.rows(table));
        writer.row(format::FUNCTIONS, &[0, 0, 0, 0, 0, ends[0], ends[1], ends[2], 0, ends[3], calls.len() as u32, 0]);
        self.write_calls(writer, calls, &numbers);
    }

    fn write_function<'f>(&self, writer: &mut Writer<'f>, row: &FunctionRow<'f>, first_call: u32) {
        let FunctionRow { facts, returns, parameters, sets } = row;
        let function = &facts.function;
        let (name, file) = (writer.text(function.name.as_bytes()), writer.text(function.file.as_bytes()));
        let tables = [format::BODIES, format::INLINED, format::PARAMETERS, format::LABELS];
        let [bodies, inlined, first, labels] = tables.map(|table| writer.rows(table));
        let [lines, unknown] =
            [&facts.lines, &facts.unknown].map(|bytes| if bytes.is_empty() { 0 } else { writer.text(bytes) + 1 });
        let external = u32::from(function.external);
        writer.row(
            format::FUNCTIONS,
            &[
                name,
                file,
                function.line,
                external,
                *returns,
                bodies,
                inlined,
                first,
                lines,
                labels,
                first_call,
                unknown,
            ],
        );
        let (of_bodies, sets) = sets.split_at_checked(function.bodies.len()).unwrap_or_default();
        let (of_inlined, of_labels) = sets.split_at_checked(function.inlined.len()).unwrap_or_default();
        for ((label, _), set) in facts.labels.iter().zip(of_labels) {
            let [at, high] = halves(self.elf.flat(label.address).unwrap_or_default());
            let name = writer.text(label.name.as_bytes());
            writer.row(format::LABELS, &[name, label.line, at, high, *set]);
        }
        for ((body, set), returns) in function.bodies.iter().zip(of_bodies).zip(&facts.returns) {
            let ([at, high], [size, large]) =
                (halves(self.elf.flat(body.entry).unwrap_or_default()), halves(body.size));
            let symbol = body.symbol.as_ref().map_or(0, |symbol| writer.text(symbol.as_bytes()) + 1);
            let returns = text_or_none(writer, returns.as_deref());
            writer.row(format::BODIES, &[at, high, size, large, symbol, *set, returns]);
        }
        for (instance, set) in function.inlined.iter().zip(of_inlined) {
            let [at, high] = halves(self.elf.flat(instance.address).unwrap_or_default());
            writer.row(format::INLINED, &[at, high, *set]);
        }
        for (name, row) in parameters {
            let name = writer.text(name.as_bytes());
            writer.row(format::PARAMETERS, &[name, *row]);
        }
    }

    /// All variables outside functions, by name.
    fn global_facts(&self, types: &mut Interner) -> Result<Vec<Global>, EntryError> {
        let mut globals = Vec::new();
        for (name, die) in self.try_index()?.variables() {
            let chain = self.store.origins(die)?;
            let mut found = None;
            for (_, unit, entry) in &chain {
                found = found.or(self.type_of(unit, entry)?);
            }
            let Some(type_id) = found else { continue };
            let external = chain.iter().any(|(_, _, entry)| flag(entry, gimli::DW_AT_external));
            let location = self.global_location(name, die)?;
            let location = self.location_bytes(location.as_ref());
            let unit = chain.first().and_then(|(_, unit, _)| unit.name.as_ref());
            let unit = unit.map(|name| String::from_utf8_lossy(name.slice()).into_owned()).unwrap_or_default();
            globals.push((
                String::from_utf8_lossy(name).into_owned(),
                unit,
                types.intern(type_id, 0)?,
                location,
                external,
            ));
        }
        Ok(globals)
    }
}

/// The sets of variables, in the order of their rows.
fn write_sets<'w>(writer: &mut Writer<'w>, sets: &'w VariableSets) {
    let mut ordered: Vec<(&Vec<VariableKey>, u32)> = sets.iter().map(|(set, number)| (set, *number)).collect();
    ordered.sort_by_key(|(_, number)| *number);
    for (set, _) in ordered {
        writer.row(format::SETS, &[writer.rows(format::VARIABLES)]);
        for (name, type_row, location, parameter) in set {
            let (name, location) = (writer.text(name.as_bytes()), text_or_none(writer, location.as_deref()));
            writer.row(format::VARIABLES, &[name, *type_row, location, u32::from(*parameter)]);
        }
    }
    writer.row(format::SETS, &[writer.rows(format::VARIABLES)]);
}

fn write_globals<'w>(writer: &mut Writer<'w>, globals: &'w [Global]) {
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
struct Interner<'d> {
    debug: &'d Dwarf,
    by_id: HashMap<TypeId, u32>,
    by_name: HashMap<(bool, String, u64), u32>,
    by_row: HashMap<Row, u32>,
    rows: Vec<Row>,
    /// Structs whose members have not been read yet.
    open: Vec<(u32, TypeId)>,
}

/// A struct or union with a name.
struct Named {
    union: bool,
    name: String,
    size: u64,
    definition: TypeId,
}

impl<'d> Interner<'d> {
    fn new(debug: &'d Dwarf) -> Interner<'d> {
        let (by_id, by_name, by_row) = (HashMap::new(), HashMap::new(), HashMap::new());
        Interner { debug, by_id, by_name, by_row, rows: Vec::new(), open: Vec::new() }
    }

    fn intern(&mut self, id: TypeId, depth: usize) -> Result<u32, EntryError> {
        if let Some(row) = self.by_id.get(&id) {
            return Ok(*row);
        }
        if depth > MAX_DEPTH {
            return Err(EntryError::at(id.die(), "types within types without an end"));
        }
        let row = match self.named_struct(id)? {
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
                let row = self.made(id, depth)?;
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

    /// The definition of a named struct, wherever it is; its members are not read.
    fn named_struct(&self, id: TypeId) -> Result<Option<Named>, EntryError> {
        let (unit, entry) = self.debug.unrestricted(id.die())?;
        let union = entry.tag() == gimli::DW_TAG_union_type;
        if !union && entry.tag() != gimli::DW_TAG_structure_type {
            return Ok(None);
        }
        let Some(name) = self.debug.store.name(unit, &entry) else { return Ok(None) };
        let (mut die, mut size) = (die_at(unit, entry.offset())?, number(&entry, gimli::DW_AT_byte_size));
        if flag(&entry, gimli::DW_AT_declaration) {
            let tag = if union { TypeTag::Union } else { TypeTag::Struct };
            let Some(definition) = self.debug.try_index()?.type_named(tag, name.as_bytes()) else { return Ok(None) };
            (die, size) = (definition, number(&self.debug.store.entry(definition)?.1, gimli::DW_AT_byte_size));
        }
        Ok(Some(Named { union, name, size: size.unwrap_or(0), definition: TypeId::of(die) }))
    }

    fn target(&mut self, target: Option<TypeId>, depth: usize) -> Result<u32, EntryError> {
        target.map_or(Ok(0), |id| Ok(self.intern(id, depth + 1)?.saturating_add(1)))
    }

    fn made(&mut self, id: TypeId, depth: usize) -> Result<Row, EntryError> {
        let plain = |kind, name, number| Row { kind, name, number, children: Vec::new(), encoding: 0 };
        Ok(match self.debug.read_type(id)? {
            Type::Base { name, size, encoding } => {
                let encoding = format::ENCODINGS.iter().position(|known| *known == encoding).unwrap_or(1) as u32;
                Row { encoding, ..plain(Kind::Base, Some(name), size as u32) }
            }
            Type::Pointer(target) => plain(Kind::Pointer, None, self.target(target, depth)?),
            Type::Const(target) => plain(Kind::Const, None, self.target(target, depth)?),
            Type::Volatile(target) => plain(Kind::Volatile, None, self.target(target, depth)?),
            Type::Typedef { name, target } => plain(Kind::Typedef, Some(name), self.target(target, depth)?),
            Type::Incomplete { name } => plain(Kind::Incomplete, Some(name), 0),
            // One with a name is a row of its own, or only declared.
            Type::Struct { name: Some(name), union, .. } => {
                plain(Kind::Incomplete, Some(format!("{} {name}", if union { "union" } else { "struct" })), 0)
            }
            Type::Struct { name: None, union, size, members } => {
                let children = self.members(members, depth)?;
                Row { children, ..plain(if union { Kind::Union } else { Kind::Struct }, None, size as u32) }
            }
            Type::Array { element, counts } => {
                let count = |count: Option<u64>| {
                    let [low, high] = halves(count.unwrap_or(0));
                    (None, [u32::from(count.is_some()), low, high])
                };
                let children = counts.into_iter().map(count).collect();
                Row { children, ..plain(Kind::Array, None, self.target(Some(element), depth)?) }
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
                    children.push((None, [self.intern(parameter, depth + 1)?, 0, 0]));
                }
                Row {
                    children,
                    ..plain(if variadic { Kind::Variadic } else { Kind::Function }, None, self.target(returns, depth)?)
                }
            }
        })
    }

    fn members(&mut self, members: Vec<Member>, depth: usize) -> Result<Vec<Child>, EntryError> {
        let mut children = Vec::new();
        for member in members {
            let bits = member.bits.map_or(0, |bits| (bits.first as u32) << 8 | u32::from(bits.bits));
            children.push((member.name, [self.intern(member.type_id, depth + 1)?, member.offset as u32, bits]));
        }
        Ok(children)
    }

    /// Reads the members of all structs and of the structs that they refer to.
    fn finish(&mut self) -> Result<(), EntryError> {
        while let Some((row, id)) = self.open.pop() {
            let Type::Struct { members, .. } = self.debug.read_type(id)? else { continue };
            let children = self.members(members, 0)?;
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
