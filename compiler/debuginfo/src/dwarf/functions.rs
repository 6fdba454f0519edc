// SPDX-License-Identifier: GPL-2.0-or-later

//! Functions: by name, file and line; where their code is, out of line and inlined.

use std::ops::Range;
use std::sync::OnceLock;

use gimli::AttributeValue;
use rayon::prelude::*;
use smallvec::SmallVec;

use super::Dwarf;
use super::function_table::FunctionTable;
use super::index::Index;
use super::scan::{NamedFunction, Text, is_nesting};
use super::store::{Bytes, Die, Entry, EntryError, Origins, Store, Unit, flag, number};
use crate::error::Error;
use crate::facts::{Body, Function, FunctionId, FunctionPattern, InlinedInstance, path_fits};
use crate::object::demangle::{
    demangled, implemented, operator_key, plain_operator, scope_fits, split_operator, split_parameters, split_scope,
    takes, without_outer_parameters,
};
use crate::object::{Address, Symbol};
use crate::stored;
use spile_base::glob;

/// What rustc writes as the scope of the functions of an `impl`, with a number.
const IMPLEMENTATION: &str = "{impl#";

/// From this many functions in one query on, all are read and the table is stored.
const MANY: usize = 1000;

/// What one pass over a whole unit finds.
#[derive(Default)]
struct UnitInstances {
    /// Inlined instances: (origin, instance), sorted.
    inlined: Vec<(Die, Die)>,
    /// Functions that are not nested in another one, sorted.
    subprograms: Vec<Die>,
    /// Those that are, sorted. None in C, but for nested functions of gcc's.
    nested: Vec<Die>,
    /// Where the entries of one of these begin or end, and the innermost function that those from there on are in; sorted.
    innermost: Vec<(Die, Die)>,
    /// Functions and inlined instances with labels in them that have addresses; sorted.
    labelled: Vec<Die>,
}

/// The inlined instances of each unit, read when first asked for.
pub(super) struct Instances {
    units: Vec<OnceLock<Result<UnitInstances, EntryError>>>,
    /// The instances of all units, sorted: with link-time optimisation an instance may be in another unit than its
    /// function.
    all: OnceLock<Result<Vec<(Die, Die)>, EntryError>>,
}

impl Instances {
    /// Nothing read yet, for this many units.
    pub fn new(units: usize) -> Instances {
        Instances { units: (0..units).map(|_| OnceLock::new()).collect(), all: OnceLock::new() }
    }

    fn unit(&self, store: &Store, slot: usize) -> Result<&UnitInstances, EntryError> {
        let cell = self.units.get(slot).ok_or_else(|| EntryError { die: None, message: "no such unit".into() })?;
        cell.get_or_init(|| scan_instances(store, slot)).as_ref().map_err(Clone::clone)
    }

    fn all(&self, store: &Store) -> Result<&Vec<(Die, Die)>, EntryError> {
        let collect = || -> Result<Vec<(Die, Die)>, EntryError> {
            let units = (0..self.units.len()).into_par_iter().map(|slot| Ok(self.unit(store, slot)?.inlined.clone()));
            let mut all: Vec<(Die, Die)> =
                units.collect::<Result<Vec<_>, EntryError>>()?.into_iter().flatten().collect();
            all.par_sort_unstable();
            Ok(all)
        };
        // Not while it is filled: a thread that waits for others takes a piece of another loop, which may ask for this.
        if self.all.get().is_none() {
            let _ = self.all.set(collect());
        }
        self.all.get_or_init(|| Ok(Vec::new())).as_ref().map_err(Clone::clone)
    }

    /// The functions of a unit: outermost ones, then those in them.
    pub fn subprograms(&self, store: &Store, slot: usize) -> Result<impl Iterator<Item = Die>, EntryError> {
        let unit = self.unit(store, slot)?;
        Ok(unit.subprograms.iter().copied().chain(unit.nested.iter().copied()))
    }

    /// The innermost function of a unit that an entry is in.
    pub fn subprogram_around(&self, store: &Store, inner: Die) -> Result<Option<Die>, EntryError> {
        let unit = self.unit(store, store.slot_of(inner)?)?;
        let before = unit.subprograms.partition_point(|die| *die < inner);
        let outermost = before.checked_sub(1).and_then(|at| unit.subprograms.get(at)).copied();
        let before = unit.innermost.partition_point(|(from, _)| *from <= inner);
        let nested = before.checked_sub(1).and_then(|at| unit.innermost.get(at));
        // What begins or ends before the outermost function is not in it.
        let nested = nested.filter(|(from, _)| outermost.is_some_and(|outermost| outermost < *from));
        Ok(nested.map(|(_, function)| *function).or(outermost))
    }

    /// Whether there is a label in the code of a function's copy or inlined instance: most have none.
    pub fn has_labels(&self, store: &Store, copy: Die) -> Result<bool, EntryError> {
        Ok(self.unit(store, store.slot_of(copy)?)?.labelled.binary_search(&copy).is_ok())
    }
}

impl Dwarf {
    /// Functions that match, sorted by name and then by unit. A name may be qualified, or be the end of a qualified one, and may
    /// have the types of the parameters behind it: `Class::method(int)`.
    pub(super) fn functions_like(&self, pattern: &FunctionPattern) -> Result<Vec<FunctionId>, Error> {
        let name = without_outer_parameters(&pattern.name).into_owned();
        let pattern = &FunctionPattern { name, file: pattern.file.clone() };
        let found = self.functions_named_like(pattern)?;
        let (_, Some(parameters)) = split_parameters(&pattern.name) else { return Ok(found) };
        let taking = |id: &FunctionId| -> Result<bool, EntryError> {
            let chain = self.store.origins(id.die())?;
            let linked = self.linkage_name(&chain).and_then(|name| std::str::from_utf8(name).ok());
            Ok(linked.is_some_and(|linked| takes(parameters, linked)))
        };
        let mut fit = Vec::new();
        for id in found {
            if taking(&id).map_err(|damage| self.failed(damage))? {
                fit.push(id);
            }
        }
        Ok(fit)
    }

    /// As linkers know the function of these entries; None in C.
    pub(super) fn linkage_name(&self, chain: &Origins) -> Option<Text> {
        chain.iter().find_map(|(_, unit, entry)| {
            let value = entry.attr_value(gimli::DW_AT_linkage_name);
            self.store.string(unit, value.or_else(|| entry.attr_value(gimli::DW_AT_MIPS_linkage_name))?)
        })
    }

    fn functions_named_like(&self, pattern: &FunctionPattern) -> Result<Vec<FunctionId>, Error> {
        if let (Some(file), "*", Some(table)) = (&pattern.file, pattern.name.as_str(), self.function_table()) {
            let found = table.in_files(|path| path_fits(file, path));
            if !found.is_empty() || !file.contains('/') {
                return Ok(found.into_iter().map(FunctionId::of).collect());
            }
        }
        let index = self.index()?;
        let (wanted, _) = split_parameters(&pattern.name);
        let fits = |function: &NamedFunction| function.fits(wanted);
        let operators = operators_like(index, wanted);
        let named: Vec<NamedFunction> = if !operators.is_empty() {
            operators
        } else if glob::is_pattern(wanted) {
            // Of a qualified name the beginning is not that of the function's name.
            let beginning = if wanted.contains("::") { "" } else { glob::literal_beginning(wanted) };
            index.functions_beginning(beginning.as_bytes()).filter(fits).collect()
        } else {
            let last = split_scope(wanted).map_or(wanted, |(_, last)| last);
            let exact: Vec<NamedFunction> = index.functions_named(last.as_bytes()).filter(fits).collect();
            match exact.is_empty() && !last.contains('<') {
                // The instances of a template.
                true => index.functions_beginning(format!("{last}<").as_bytes()).filter(fits).collect(),
                false => exact,
            }
        };
        let named = if named.is_empty() && wanted.contains("::") { self.named_in_short(index, wanted) } else { named };
        if named.len() >= MANY {
            self.read_all()?;
        }
        let Some(file) = &pattern.file else {
            return Ok(named.into_iter().map(|function| FunctionId::of(function.die)).collect());
        };
        let (store, table) = (&self.store, self.function_table());
        let fits = |function: &NamedFunction| -> bool {
            let unit = || store.unit_of(function.die).ok();
            let path = match table.and_then(|table| table.file(function.die)) {
                Some(path) => Some(path.to_string()),
                None => unit().and_then(|unit| store.file_name(unit, function.file.into())),
            };
            let Some(path) = path else { return false };
            // A path that people write may begin with the directory of the compilation, or above it.
            let whole = || {
                let built_in = unit()?.comp_dir?;
                let built_in = String::from_utf8_lossy(built_in.slice()).into_owned();
                Some(format!("{}/{path}", built_in.trim_end_matches('/')))
            };
            let below = file.strip_prefix("./").unwrap_or(file);
            path_fits(below, &path)
                || file.contains('/') && !path.starts_with('/') && whole().is_some_and(|whole| path_fits(below, &whole))
        };
        Ok(named.into_par_iter().filter(fits).map(|function| FunctionId::of(function.die)).collect())
    }

    /// The functions that a qualified name is short for: without inline and unnamed namespaces, and template arguments of the types
    /// around it. Of Rust's traits by the type that implements them.
    fn named_in_short<'i>(&self, index: &'i Index, wanted: &str) -> Vec<NamedFunction<'i>> {
        let Some((scope, last)) = split_scope(wanted) else { return Vec::new() };
        let fits = |function: &NamedFunction| function.fits_in(wanted, &index.short(function.scope));
        if glob::is_pattern(wanted) {
            return index.functions().filter(fits).collect();
        }
        let instances = format!("{last}<");
        let all = || index.functions_named(last.as_bytes()).chain(index.functions_beginning(instances.as_bytes()));
        let found: Vec<NamedFunction> = all().filter(fits).collect();
        if !found.is_empty() {
            return found;
        }
        let implements = |function: &NamedFunction| -> Option<bool> {
            if !String::from_utf8_lossy(function.scope).contains(IMPLEMENTATION) {
                return None;
            }
            let linked = self.linkage_name(&self.store.origins(function.die).ok()?)?;
            let whole = demangled(std::str::from_utf8(linked).ok()?)?;
            let (own, of) = implemented(&whole)?;
            Some(scope_fits(scope, own) || scope_fits(scope, of))
        };
        all().filter(|function| implements(function).unwrap_or(false)).collect()
    }

    /// The function, from the cache if it is there, otherwise from DWARF.
    pub(super) fn describe(&self, id: FunctionId) -> Result<Function, Error> {
        match self.function_table().and_then(|table| table.function(&self.elf, id)) {
            Some(function) => Ok(function),
            None => self.read_function(id).map_err(|damage| self.failed(damage)),
        }
    }

    /// The table of all functions, if an earlier run has stored it or this one has made it.
    pub(super) fn function_table(&self) -> Option<&FunctionTable> {
        let cached = self.cached_functions.get_or_init(|| FunctionTable::find(&self.elf, self.cache.as_deref()));
        cached.as_ref().or_else(|| self.all_functions.get())
    }

    /// Reads all functions where that pays off; they are stored for the next run.
    pub(super) fn read_all(&self) -> Result<(), Error> {
        if self.function_table().is_some() || !stored::is_large(&self.elf) {
            return Ok(());
        }
        let mut ids: Vec<FunctionId> = self.index()?.functions().map(|function| FunctionId::of(function.die)).collect();
        ids.par_sort_unstable();
        let functions: Result<Vec<Function>, EntryError> = ids.par_iter().map(|id| self.read_function(*id)).collect();
        let functions = functions.map_err(|damage| self.failed(damage))?;
        if let Some(table) = FunctionTable::make(&self.elf, self.cache.as_deref(), &ids, &functions) {
            let _ = self.all_functions.set(table);
        }
        Ok(())
    }

    /// The function, read from its DIE and the DIEs that it refers to.
    pub(super) fn read_function(&self, id: FunctionId) -> Result<Function, EntryError> {
        let mut inlined = Vec::new();
        for die in self.instances_of(id)? {
            let address = self.instance_address(die)?;
            inlined.extend(address.map(|address| InlinedInstance { address }));
        }
        self.read_function_with(id, inlined)
    }

    /// The same, where each of its inlined instances begins is known.
    pub(super) fn read_function_with(
        &self,
        id: FunctionId,
        mut inlined: Vec<InlinedInstance>,
    ) -> Result<Function, EntryError> {
        let chain = self.store.origins(id.die())?;
        let text = chain.iter().find_map(|(_, unit, entry)| {
            entry.attr_value(gimli::DW_AT_name).and_then(|value| self.store.string(unit, value))
        });
        let name = text.map(|text| String::from_utf8_lossy(text).into_owned()).unwrap_or_default();
        let mut file =
            chain.iter().find_map(|(_, unit, entry)| decl_file(&self.store, unit, entry)).unwrap_or_default();
        let mut line = chain.iter().find_map(|(_, _, entry)| number(entry, gimli::DW_AT_decl_line)).unwrap_or(0);
        if file.is_empty() && name.starts_with("operator()") {
            (file, line) = self.place_of_lambda(id)?;
        }
        let external = chain.iter().any(|(_, _, entry)| flag(entry, gimli::DW_AT_external));
        let mut return_type = None;
        for (_, unit, entry) in &chain {
            return_type = return_type.or(self.type_of(unit, entry)?);
        }
        let mut bodies = Vec::new();
        for die in self.copies(id)? {
            bodies.extend(self.body(die, &name)?);
        }
        bodies.sort_by_key(|body| (body.is_part(), body.entry));
        bodies.dedup_by_key(|body| body.entry);
        // A weak function that another one replaces: its code has been linked, but has lost its name and is never run.
        // A static one has nothing to do with what other units call so.
        bodies.retain(|body| body.symbol.is_some() || !external || !self.has_symbol(&name));
        inlined.sort();
        inlined.dedup();
        if bodies.is_empty() && inlined.is_empty() {
            let text = text.unwrap_or_default();
            if let Some(body) = self.by_name.bodies.of(text, || self.body_by_symbol(&name))?
                && !self.is_of_another_unit(id, &name, &body)?
            {
                bodies.push(body);
            }
        }
        Ok(Function { name, file, line: line as u32, external, return_type, bodies, inlined })
    }

    /// File and line of the type of a lambda, of whose function gcc does not say where it is.
    fn place_of_lambda(&self, id: FunctionId) -> Result<(String, u64), EntryError> {
        let nowhere = (String::new(), 0);
        let (unit, children) = self.children(id.die())?;
        let closure = children.iter().find(|entry| entry.tag() == gimli::DW_TAG_formal_parameter);
        let Some(closure) = closure.filter(|entry| flag(entry, gimli::DW_AT_artificial)) else { return Ok(nowhere) };
        let mut at = self.store.reference_attr(unit, closure, gimli::DW_AT_type)?;
        // A constant pointer to a constant object.
        for _ in 0..4 {
            let Some(die) = at else { break };
            let (unit, entry) = self.store.entry(die)?;
            if let Some(file) = decl_file(&self.store, unit, &entry) {
                return Ok((file, number(&entry, gimli::DW_AT_decl_line).unwrap_or(0)));
            }
            at = self.store.reference_attr(unit, &entry, gimli::DW_AT_type)?;
        }
        Ok(nowhere)
    }

    /// The entries that may have the function's out-of-line code: its own, and those whose origin it is.
    pub(super) fn copies(&self, id: FunctionId) -> Result<Vec<Die>, EntryError> {
        let index = self.try_index()?;
        Ok(std::iter::once(id.die()).chain(index.copies_of(id.die())).collect())
    }

    /// The function of whose code the address is.
    pub(super) fn function_around(&self, at: u64) -> Result<Option<FunctionId>, EntryError> {
        for slot in 0..self.store.slots.len() {
            // A damaged one has functions that are not found.
            let Ok((unit, root)) = self.store.root(slot) else { continue };
            if !read_some_ranges(&self.store, unit, &root, MAX_UNIT_RANGES)?.iter().any(|range| range.contains(&at)) {
                continue;
            }
            for die in self.instances.subprograms(&self.store, slot)? {
                let (unit, entry) = self.store.entry(die)?;
                if self.code_ranges(unit, &entry)?.iter().any(|range| range.contains(&at)) {
                    let origin = self.store.reference_attr(unit, &entry, gimli::DW_AT_abstract_origin)?;
                    let named = self
                        .store
                        .origins(die)?
                        .iter()
                        .any(|(.., entry)| entry.attr_value(gimli::DW_AT_name).is_some());
                    return Ok(named.then(|| FunctionId::of(origin.unwrap_or(die))));
                }
            }
        }
        Ok(None)
    }

    /// Whether an entry directly in the function's code stands for a part of it that gcc has split off
    /// (`-fpartial-inlining`) and inlined back: no call is made for that, and its variables are the function's.
    pub(super) fn is_part(&self, function: FunctionId, unit: &Unit, entry: &Entry) -> Result<bool, EntryError> {
        if entry.tag() != gimli::DW_TAG_inlined_subroutine {
            return Ok(false);
        }
        let origin = self.store.reference_attr(unit, entry, gimli::DW_AT_abstract_origin)?;
        Ok(origin == Some(function.die()) && is_called_at_its_declaration(&self.store, entry, function.die())?)
    }

    /// The entries of the function's inlined instances, without parts of the function inlined into itself.
    pub(super) fn instances_of(&self, id: FunctionId) -> Result<Vec<Die>, EntryError> {
        let own = self.store.slot_of(id.die())?;
        if !self.try_index()?.crosses_units {
            return Ok(self.instances.unit(&self.store, own)?.inlined.of(id.die()));
        }
        Ok(self.instances.all(&self.store)?.of(id.die()))
    }

    /// The code of one copy of the function; `None` if it has no address.
    pub(super) fn body(&self, die: Die, function: &str) -> Result<Option<Body>, EntryError> {
        let (unit, entry) = self.store.entry(die)?;
        let ranges = self.code_ranges(unit, &entry)?;
        let Some(first) = ranges.first() else {
            return Ok(None);
        };
        let named = entry_address(&self.store, unit, &entry)?;
        // Without DW_AT_entry_pc: the part with the unlikely code may come first.
        let start = match named.filter(|at| ranges.iter().any(|range| range.start == *at)) {
            Some(at) => at,
            None => ranges.iter().find(|range| !self.is_cold(range.start)).unwrap_or(first).start,
        };
        let Some(address) = self.elf.address(start) else {
            return Ok(None);
        };
        let size = ranges.iter().find(|range| range.start == start).map_or(0, |range| range.end - range.start);
        let others = ranges.iter().filter(|range| range.start != start);
        let other_parts =
            others.filter_map(|range| Some((self.elf.address(range.start)?, range.end - range.start))).collect();
        Ok(Some(Body { entry: address, size, symbol: self.symbol_at(start, function), other_parts }))
    }

    fn has_symbol(&self, name: &str) -> bool {
        self.elf.symbols_named(name).is_ok_and(|mut symbols| symbols.next().is_some())
    }

    /// gcc merges functions of equal code (`-fipa-icf`) and leaves the callers of the merged one without ranges: their code
    /// is known by the symbol alone, if no other function of the name has it.
    fn body_by_symbol(&self, name: &str) -> Result<Option<Body>, EntryError> {
        let Ok(symbols) = self.elf.symbols_named(name) else { return Ok(None) };
        let symbols: Vec<Symbol> = symbols.filter(|symbol| symbol.function && self.elf.is_code(symbol.at)).collect();
        let [symbol] = symbols.as_slice() else { return Ok(None) };
        for other in self.try_index()?.functions_named(name.as_bytes()) {
            for die in self.copies(FunctionId::of(other.die))? {
                let (unit, entry) = self.store.entry(die)?;
                if self.code_ranges(unit, &entry)?.iter().any(|range| range.contains(&symbol.at)) {
                    return Ok(None);
                }
            }
        }
        let Some(entry) = self.elf.address(symbol.at) else { return Ok(None) };
        Ok(Some(Body { entry, size: symbol.size, symbol: Some(name.to_string()), other_parts: Vec::new() }))
    }

    /// Whether the code that the symbol of a function is at belongs to another function of that name: a weak one has been
    /// replaced by it.
    fn is_of_another_unit(&self, id: FunctionId, name: &str, body: &Body) -> Result<bool, EntryError> {
        let Some(at) = self.elf.flat(body.entry) else { return Ok(false) };
        let others = self.try_index()?.functions_named(name.as_bytes()).filter(|other| other.die != id.die());
        let others: Vec<Die> = others.map(|other| other.die).collect();
        if others.is_empty() || self.is_in_unit_of(id.die(), at)? {
            return Ok(false);
        }
        for other in others {
            if self.is_in_unit_of(other, at)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the address is in the code of the entry's unit.
    fn is_in_unit_of(&self, die: Die, at: u64) -> Result<bool, EntryError> {
        let (unit, root) = self.store.root(self.store.slot_of(die)?)?;
        Ok(read_some_ranges(&self.store, unit, &root, MAX_UNIT_RANGES)?.iter().any(|range| range.contains(&at)))
    }

    fn is_cold(&self, at: u64) -> bool {
        let here = |symbol: &Symbol| symbol.at == at;
        self.elf
            .symbols_before(at)
            .is_ok_and(|mut symbols| symbols.next().filter(here).is_some_and(|symbol| symbol.name.contains(".cold")))
    }

    /// Of the symbols at the address: the function's own name, a clone's, a global one, or any.
    fn symbol_at(&self, at: u64, function: &str) -> Option<String> {
        let rank = |symbol: &Symbol| {
            let own = symbol.name == function;
            let clone = symbol.name.strip_prefix(function).is_some_and(|rest| rest.starts_with('.'));
            (own, clone, symbol.function, symbol.global)
        };
        let here = self.elf.symbols_before(at).ok()?.take_while(|symbol| symbol.at == at);
        here.max_by_key(rank).map(|symbol| symbol.name.to_string())
    }

    /// The ranges of code of an entry that are in sections with code, in the order given.
    pub(super) fn code_ranges(&self, unit: &Unit, entry: &Entry) -> Result<Ranges, EntryError> {
        let mut ranges = read_ranges(&self.store, unit, entry)?;
        ranges.retain(|range| self.elf.is_code(range.start));
        Ok(ranges)
    }

    /// First instruction of an inlined instance; `None` if it has no code.
    pub(super) fn instance_address(&self, die: Die) -> Result<Option<Address>, EntryError> {
        let (unit, entry) = self.store.entry(die)?;
        self.address_of_instance(unit, &entry)
    }

    /// The same, of an entry that has been read.
    pub(super) fn address_of_instance(&self, unit: &Unit, entry: &Entry) -> Result<Option<Address>, EntryError> {
        let ranges = self.code_ranges(unit, entry)?;
        let lowest = ranges.iter().map(|range| range.start).min();
        let named = entry_address(&self.store, unit, entry)?.filter(|at| self.elf.is_code(*at));
        Ok(named.or(lowest).and_then(|at| self.elf.address(at)))
    }
}

/// The operators of C++ that a name, which may be qualified, is of, with their templates' instances: it may be spelled in
/// other ways than compilers do, and is no shell pattern.
fn operators_like<'i>(index: &'i Index, wanted: &str) -> Vec<NamedFunction<'i>> {
    let Some((scope, operator)) = split_operator(wanted) else { return Vec::new() };
    let key = operator_key(operator);
    let fits = |function: &NamedFunction| {
        let Ok(name) = std::str::from_utf8(function.name) else { return false };
        let own_scope = std::str::from_utf8(function.scope).unwrap_or_default();
        (operator_key(name) == key || operator_key(plain_operator(name)) == key)
            && scope.is_none_or(|scope| scope_fits(scope, own_scope))
    };
    index.functions_beginning(b"operator").filter(fits).collect()
}

/// A sorted list of pairs that is searched by the first of them.
trait InstancesOf {
    fn of(&self, origin: Die) -> Vec<Die>;
}

impl InstancesOf for Vec<(Die, Die)> {
    fn of(&self, origin: Die) -> Vec<Die> {
        let start = self.partition_point(|(of, _)| *of < origin);
        self.iter().skip(start).take_while(|(of, _)| *of == origin).map(|(_, instance)| *instance).collect()
    }
}

/// A function or inlined instance that an entry is in.
struct Within {
    depth: isize,
    die: Die,
    /// The function whose code it is.
    function: Die,
    /// A label in it has been seen.
    labelled: bool,
}

/// All inlined instances of a unit.
fn scan_instances(store: &Store, slot: usize) -> Result<UnitInstances, EntryError> {
    let slot = store.slot(slot)?;
    let header = store.header(slot)?;
    let abbreviations = store.abbreviations_of(slot, header)?;
    let failed = |error: gimli::Error| EntryError::at(Die(slot.start), error.to_string());
    let mut raw = header.entries_raw(&abbreviations, None).map_err(failed)?;
    let mut found = UnitInstances::default();
    let is_c = is_c(&mut raw).map_err(failed)?;
    // Depth of the entry that `raw` began with.
    let mut base = 0;
    // Of the subprogram that the entries are in, if they are in one.
    let mut around: Option<isize> = None;
    // The functions in that one that the entry is in, the innermost last.
    let mut open: Vec<(isize, Die)> = Vec::new();
    // The functions and inlined instances that the entry is in, the innermost last.
    let mut inside: Vec<Within> = Vec::new();
    while !raw.is_empty() {
        let (depth, die) = (raw.next_depth() + base, Die(slot.start.saturating_add(raw.next_offset().0 as u32)));
        let Some(abbreviation) = raw.read_abbreviation().map_err(failed)? else {
            continue;
        };
        let tag = abbreviation.tag();
        if is_c && is_type_of_c(tag) && abbreviation.has_children() {
            // Most entries of a unit are members and enumerators.
            let end = header.length_including_self();
            if let Some(sibling) = sibling(&mut raw, abbreviation, end).map_err(failed)? {
                raw = header.entries_raw(&abbreviations, Some(sibling)).map_err(failed)?;
                base = depth;
            }
            continue;
        }
        // In C only functions have functions in them.
        if !is_c || tag == gimli::DW_TAG_subprogram || !open.is_empty() {
            while open.pop_if(|(outer, _)| depth <= *outer).is_some() {
                let function = open.last().map(|(_, function)| *function).or(found.subprograms.last().copied());
                found.innermost.extend(function.map(|function| (die, function)));
            }
            around = around.filter(|outer| depth > *outer);
            match around {
                _ if tag != gimli::DW_TAG_subprogram => {}
                None => {
                    found.subprograms.push(die);
                    around = Some(depth);
                }
                Some(_) => {
                    open.push((depth, die));
                    found.nested.push(die);
                    found.innermost.push((Die(die.0.saturating_add(1)), die));
                }
            }
        }
        let placed = || abbreviation.attributes().iter().any(|spec| spec.name() == gimli::DW_AT_low_pc);
        if tag == gimli::DW_TAG_label && placed() {
            inside.truncate(inside.partition_point(|within| within.depth < depth));
            // What one is in that has a label has one too.
            for within in inside.iter_mut().rev().take_while(|within| !within.labelled) {
                within.labelled = true;
                found.labelled.push(within.die);
            }
        }
        if tag != gimli::DW_TAG_inlined_subroutine && tag != gimli::DW_TAG_subprogram {
            raw.skip_attributes(abbreviation.attributes()).map_err(failed)?;
            continue;
        }
        let mut origin = None;
        for spec in abbreviation.attributes() {
            let value = raw.read_attribute(*spec).map_err(failed)?.value();
            if spec.name() == gimli::DW_AT_abstract_origin {
                origin = store.target(Die(slot.start), value).map(|(origin, _)| origin);
            }
        }
        inside.truncate(inside.partition_point(|within| within.depth < depth));
        if let Some(origin) = origin.filter(|_| tag == gimli::DW_TAG_inlined_subroutine) {
            let is_own = inside.last().is_some_and(|within| within.function == origin);
            if !is_own || !is_called_at_its_declaration(store, &store.entry(die)?.1, origin)? {
                found.inlined.push((origin, die));
            }
        }
        inside.push(Within { depth, die, function: origin.unwrap_or(die), labelled: false });
    }
    found.inlined.sort_unstable();
    found.labelled.sort_unstable();
    Ok(found)
}

/// Whether the unit is of a language in which types have no functions; from its first entry, which is read.
fn is_c(raw: &mut gimli::EntriesRaw<Bytes>) -> gimli::Result<bool> {
    let mut is_c = false;
    for spec in raw.read_abbreviation()?.map_or(&[][..], |root| root.attributes()) {
        if let AttributeValue::Language(language) = raw.read_attribute(*spec)?.value() {
            is_c = !is_nesting(language);
        }
    }
    Ok(is_c)
}

fn is_type_of_c(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_structure_type
            | gimli::DW_TAG_union_type
            | gimli::DW_TAG_enumeration_type
            | gimli::DW_TAG_subroutine_type
            | gimli::DW_TAG_array_type
    )
}

/// Reads the attributes of an entry. Where its next sibling is, if that is behind them and before the unit's `end`: a backward
/// reference would never end.
fn sibling(
    raw: &mut gimli::EntriesRaw<Bytes>,
    abbreviation: &gimli::Abbreviation,
    end: usize,
) -> gimli::Result<Option<gimli::UnitOffset>> {
    let specs = abbreviation.attributes();
    let at = specs.iter().position(|spec| spec.name() == gimli::DW_AT_sibling).unwrap_or(specs.len());
    let (before, from) = specs.split_at_checked(at).unwrap_or_default();
    raw.skip_attributes(before)?;
    let Some((spec, others)) = from.split_first() else { return Ok(None) };
    let value = raw.read_attribute(*spec)?.value();
    raw.skip_attributes(others)?;
    Ok(match value {
        AttributeValue::UnitRef(sibling) if sibling.0 > raw.next_offset().0 && sibling.0 < end => Some(sibling),
        _ => None,
    })
}

/// Whether the call is at its callee's declaration. That is how gcc describes the call of a part that it has split off; no
/// call in the source is there.
fn is_called_at_its_declaration(store: &Store, call: &Entry, function: Die) -> Result<bool, EntryError> {
    let chain = store.origins(function)?;
    let declared = |name| chain.iter().find_map(|(_, _, entry)| number(entry, name));
    let same = |called, name| number(call, called) == declared(name);
    Ok(declared(gimli::DW_AT_decl_line).is_some()
        && same(gimli::DW_AT_call_line, gimli::DW_AT_decl_line)
        && same(gimli::DW_AT_call_column, gimli::DW_AT_decl_column))
}

fn decl_file(store: &Store, unit: &Unit, entry: &Entry) -> Option<String> {
    let AttributeValue::FileIndex(index) = entry.attr_value(gimli::DW_AT_decl_file)? else {
        return None;
    };
    store.file_name(unit, index)
}

/// DW_AT_entry_pc, an address or (DWARF 5, 2.18) a distance from the lowest; then DW_AT_low_pc.
fn entry_address(store: &Store, unit: &Unit, entry: &Entry) -> Result<Option<u64>, EntryError> {
    let low = match entry.attr_value(gimli::DW_AT_low_pc) {
        Some(value) => store.sections_of(unit).attr_address(unit, value)?,
        None => None,
    };
    let Some(value) = entry.attr_value(gimli::DW_AT_entry_pc) else {
        return Ok(low);
    };
    if let Some(at) = store.sections_of(unit).attr_address(unit, value)? {
        return Ok(Some(at));
    }
    let base = match low {
        Some(low) => Some(low),
        None => read_some_ranges(store, unit, entry, 1)?.first().map(|range| range.start),
    };
    Ok(base.and_then(|base| base.checked_add(value.udata_value()?)))
}

/// Ranges of code of one entry: few have more.
pub(super) type Ranges = SmallVec<[Range<u64>; 4]>;

/// Inlined code, or a block of a function: compilers write no such entry with ranges if it has no code.
fn is_inside_function(entry: &Entry) -> bool {
    matches!(entry.tag(), gimli::DW_TAG_inlined_subroutine | gimli::DW_TAG_lexical_block)
}

/// Ranges that are read of a unit.
const MAX_UNIT_RANGES: usize = 1 << 16;

/// Ranges that are read of one entry, a function or a part of it: ten times as many as the longest lists of such entries have.
/// Measured: 98 (Debian's libc 2.36), 61 (Linux 6.1), 40 (spilerun), 15 (xfs.ko). Units have longer lists, which are not read here:
/// 1,436 in spilerun.
const MAX_RANGES: usize = 1 << 10;

/// The entry's ranges that are not empty.
pub(super) fn read_ranges(store: &Store, unit: &Unit, entry: &Entry) -> Result<Ranges, EntryError> {
    read_some_ranges(store, unit, entry, MAX_RANGES)
}

/// The first ones of these. More of the list is not looked at: any number of entries can have the same long one.
fn read_some_ranges(store: &Store, unit: &Unit, entry: &Entry, most: usize) -> Result<Ranges, EntryError> {
    let mut ranges = Ranges::new();
    let address = |value: AttributeValue<Bytes>| store.sections_of(unit).attr_address(unit, value);
    if let Some(value) = entry.attr_value(gimli::DW_AT_ranges) {
        let Some(offset) = store.sections_of(unit).attr_ranges_offset(unit, value)? else {
            return Ok(ranges);
        };
        let mut read = 0;
        // gimli's own iterator passes over empty ranges without an end.
        let mut next = |list: &mut gimli::RngListIter<Bytes>| {
            while let Some(raw) = list.next_raw()? {
                store.step_in_list(read)?;
                read += 1;
                if let Some(range) = list.convert_raw(raw)? {
                    return Ok::<_, EntryError>(Some(range));
                }
            }
            Ok(None)
        };
        let mut list = store.sections_of(unit).ranges(unit, offset)?;
        let mut first = next(&mut list)?;
        if first.is_none() && is_inside_function(entry) && unit.header.version() < 5 {
            // gcc writes empty ranges too. At the start of its unit such a range is a pair of zeros, which ends a list
            // (DWARF 4, 2.17.3).
            let pair = 2 * usize::from(unit.header.address_size());
            list = store.sections_of(unit).ranges(unit, gimli::RangeListsOffset(offset.0.saturating_add(pair)))?;
            first = next(&mut list)?;
        }
        while let Some(range) = first {
            ranges.push(range.begin..range.end);
            first = if ranges.len() < most { next(&mut list)? } else { None };
        }
        return Ok(ranges);
    }
    let (Some(low), Some(high)) = (entry.attr_value(gimli::DW_AT_low_pc), entry.attr_value(gimli::DW_AT_high_pc))
    else {
        return Ok(ranges);
    };
    let Some(low) = address(low)? else {
        return Ok(ranges);
    };
    let high = match address(high)? {
        Some(high) => Some(high),
        None => high.udata_value().and_then(|size| low.checked_add(size)),
    };
    ranges.extend(high.filter(|high| low < *high).map(|high| low..high));
    Ok(ranges)
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::Arc;

    use super::*;
    use crate::object::Elf;

    /// A function with very many declarations in it, and one with functions in functions. Each entry but the unit's is one byte.
    const NESTED: &str = r#"
        .section .debug_abbrev, ""
        .uleb128 1, 0x11
        .byte 1
        .uleb128 0, 0
        .uleb128 2, 0x2e
        .byte 1
        .uleb128 0, 0
        .uleb128 3, 0x2e
        .byte 0
        .uleb128 0, 0
        .uleb128 4, 0x1d
        .byte 0
        .uleb128 0, 0
        .byte 0
        .section .debug_info, ""
        .long 2f - 1f
1:      .value 4
        .long .debug_abbrev
        .byte 8, 1
        .byte 2
        .fill MANY, 1, 3
        .byte 0
        .byte 2, 4, 2, 4, 2, 4, 0, 4, 3, 4, 0, 4
        .fill MANY, 1, 4
        .byte 0
        .byte 2, 4, 0
        .byte 0
2:
    "#;

    #[test]
    fn functions_around_entries() {
        let many = 100_000;
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("f.s"), NESTED.replace("MANY", &many.to_string())).expect("written");
        let output = Command::new("gcc").current_dir(directory.path()).args(["-c", "f.s"]).output();
        let output = output.expect("gcc runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let elf = Elf::open(&directory.path().join("f.o")).expect("an object");
        let dwarf = Dwarf::open(Arc::new(elf), None).expect("has DWARF");
        let around = |entry: u32| dwarf.subprogram_around(Die(entry)).expect("is whole").map(|die| die.0);
        let first = 12;
        assert_eq!((around(first), around(first + 1), around(first + many)), (None, Some(first), Some(first)));
        let second = first + many + 2;
        let found: Vec<Option<u32>> = (1..12).map(|entry| Some(around(second + entry)? - second)).collect();
        let outer = [0, 0, 2, 2, 4, 4, 2, 2, 2, 2, 0];
        assert_eq!(found, outer.map(Some));
        // Those before an entry are not looked at one by one: this would not end in a minute.
        let behind = second + 12;
        assert!((behind..behind + many).all(|entry| around(entry) == Some(second)));
        assert_eq!(around(behind + many + 2), Some(behind + many + 1));
    }
}
