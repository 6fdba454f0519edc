// SPDX-License-Identifier: GPL-2.0-or-later

//! An exported index, as `--export-index` makes it: functions, their variables and lines, and all types, in one section of a
//! file without code ([`crate::object::skeleton`]).
//!
//! It serves listings, comparisons of probe points and compilations. The locations of variables are known where functions
//! and their inlined copies begin and at labels. Of lines it is only known which have code, so nothing can be compiled for
//! a line.

pub(crate) mod format;
pub(crate) mod place;
mod source;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::facts::{
    BaseEncoding, Body, CALL_LENGTH, Call, Extent, FoundVariable, Function, FunctionId, FunctionPattern, InlinedCode,
    InlinedInstance, Label, Member, MemberBits, Op, Statement, Type, TypeId, TypeTag, Unavailable, Variable, path_fits,
};
use crate::object::{Address, Elf, Reserved, skeleton};
use crate::source::GlobalPattern;
use crate::tables::{self, TableBytes, Tables};
use spile_base::glob;

use format::{
    BODIES, CALLS, CHILDREN, COLUMNS, ENCODINGS, FUNCTIONS, GLOBALS, INLINED, KINDS, Kind, LABELS, NAMED, PARAMETERS,
    RESERVED, SETS, TYPES, VARIABLES, read_number,
};

/// Members, values or parameters of one type; more is damage.
const MAX_CHILDREN: u32 = 1 << 16;

/// The index of one object.
pub(crate) struct Portable {
    elf: Arc<Elf>,
    tables: Tables,
    /// The function of each address for which a set of variables is known.
    sets: BTreeMap<u64, Vec<(usize, usize)>>,
    /// Rows of the calls at each address: built when first needed.
    calls: OnceLock<BTreeMap<u64, usize>>,
}

impl Portable {
    /// Whether there is an index, undamaged and of this version.
    pub fn is_in(elf: &Elf) -> bool {
        Portable::tables(elf).is_some()
    }

    fn tables(elf: &Elf) -> Option<Tables> {
        let range = elf.plain_section(skeleton::SECTION)?;
        let bytes = tables::transposed(elf.bytes().get(range)?, true);
        tables::is_whole(&bytes).then(|| Tables::open(TableBytes::Made(bytes), &COLUMNS)).flatten()
    }

    /// None: the object has no index, or one of another version.
    pub fn open(elf: &Arc<Elf>) -> Option<Portable> {
        let tables = Portable::tables(elf)?;
        let mut portable = Portable { elf: elf.clone(), tables, sets: BTreeMap::new(), calls: OnceLock::new() };
        // In a valid file each row belongs to one function.
        let mut left = [BODIES, INLINED, LABELS].iter().map(|table| portable.tables.rows(*table)).sum::<usize>();
        for function in 0..portable.count() {
            let own = [5, 6, 9].iter().map(|column| portable.ends(function, *column).len()).sum();
            left = left.checked_sub(own)?;
            for row in portable.ends(function, 5) {
                portable.note(portable.tables.get_wide(BODIES, row, 0), function, portable.cell(BODIES, row, 5));
            }
            for row in portable.ends(function, 6) {
                portable.note(portable.tables.get_wide(INLINED, row, 0), function, portable.cell(INLINED, row, 2));
            }
            for row in portable.ends(function, 9) {
                portable.note(portable.tables.get_wide(LABELS, row, 2), function, portable.cell(LABELS, row, 4));
            }
        }
        Some(portable)
    }

    fn note(&mut self, at: u64, function: usize, set: usize) {
        self.sets.entry(at).or_default().push((function, set));
    }

    fn cell(&self, table: usize, row: usize, column: usize) -> usize {
        self.tables.get(table, row, column) as usize
    }

    fn text(&self, at: u32) -> String {
        String::from_utf8_lossy(self.tables.text(at)).into_owned()
    }

    /// Rows of functions, without the last row.
    fn count(&self) -> usize {
        self.tables.rows(FUNCTIONS).saturating_sub(1)
    }

    /// The rows that a function owns, from the first one, which the column names, to the next function's.
    fn ends(&self, function: usize, column: usize) -> std::ops::Range<usize> {
        let table = match column {
            5 => BODIES,
            6 => INLINED,
            7 => PARAMETERS,
            9 => LABELS,
            _ => CALLS,
        };
        self.between(table, self.cell(FUNCTIONS, function, column), self.cell(FUNCTIONS, function + 1, column))
    }

    /// The part of the range that the table has.
    fn between(&self, table: usize, first: usize, end: usize) -> std::ops::Range<usize> {
        let rows = self.tables.rows(table);
        first.min(rows)..end.min(rows)
    }

    fn name(&self, function: usize) -> &[u8] {
        self.tables.text(self.tables.get(FUNCTIONS, function, 0))
    }

    /// Names of all functions.
    pub fn names(&self) -> impl Iterator<Item = String> {
        (0..self.count()).map(|function| String::from_utf8_lossy(self.name(function)).into_owned())
    }

    /// The functions that match.
    pub fn find(&self, pattern: &FunctionPattern) -> Vec<FunctionId> {
        let wild = glob::is_pattern(&pattern.name);
        let first = match wild {
            true => 0,
            false => self.tables.first(FUNCTIONS, |row| row < self.count() && self.name(row) < pattern.name.as_bytes()),
        };
        let rows = (first..self.count()).take_while(|row| wild || self.name(*row) == pattern.name.as_bytes());
        let named = rows.filter(|row| {
            !wild || std::str::from_utf8(self.name(*row)).is_ok_and(|name| glob::matches(&pattern.name, name))
        });
        let filed = named.filter(|row| match &pattern.file {
            Some(file) => path_fits(file, &self.text(self.tables.get(FUNCTIONS, *row, 1))),
            None => true,
        });
        filed.map(|row| FunctionId(row as u32)).collect()
    }

    /// The function; None: no such id, or the tables are damaged.
    pub fn describe(&self, id: FunctionId) -> Option<Function> {
        let row = id.0 as usize;
        if row >= self.count() {
            return None;
        }
        let cell = |column| self.tables.get(FUNCTIONS, row, column);
        let body = |row| {
            Some(Body {
                entry: self.elf.address(self.tables.get_wide(BODIES, row, 0))?,
                size: self.tables.get_wide(BODIES, row, 2),
                symbol: self.tables.get(BODIES, row, 4).checked_sub(1).map(|at| self.text(at)),
                other_parts: Vec::new(),
            })
        };
        let inlined = |row| Some(InlinedInstance { address: self.elf.address(self.tables.get_wide(INLINED, row, 0))? });
        Some(Function {
            name: self.text(cell(0)),
            file: self.text(cell(1)),
            line: cell(2),
            external: cell(3) != 0,
            return_type: cell(4).checked_sub(1).map(TypeId::new),
            bodies: self.ends(row, 5).filter_map(body).collect(),
            inlined: self.ends(row, 6).filter_map(inlined).collect(),
        })
    }

    /// The labels of a function.
    pub fn labels_of(&self, id: FunctionId) -> Vec<Label> {
        let label = |row| {
            let address = self.elf.address(self.tables.get_wide(LABELS, row, 2))?;
            Some(Label {
                name: self.text(self.tables.get(LABELS, row, 0)),
                line: self.tables.get(LABELS, row, 1),
                address,
            })
        };
        self.ends(id.0 as usize, 9).filter_map(label).collect()
    }

    /// The calls in the function's bodies and inlined copies, sorted by address.
    pub fn all_calls(&self, id: FunctionId) -> Vec<Call> {
        let mut calls = self.calls_in_bodies(id);
        let copies = (0..self.tables.rows(CALLS))
            .filter(|row| self.tables.get(CALLS, *row, 0) == id.0 && self.tables.get(CALLS, *row, 3) > 0);
        calls.extend(copies.flat_map(|row| self.calls_at(self.inside(row))));
        calls.sort_by_key(|call| (call.address, call.callee, call.inlined));
        calls.dedup();
        calls
    }

    /// Calls in the function itself, without those in inlined copies.
    pub fn calls_in_bodies(&self, id: FunctionId) -> Vec<Call> {
        self.calls_at(self.ends(id.0 as usize, 10))
    }

    /// Calls in an inlined copy.
    pub fn calls_in_copy(&self, copy: InlinedCode) -> Vec<Call> {
        self.calls_at(self.inside(copy.0 as usize))
    }

    /// The rows of the calls in an inlined copy. They come after it, so damage cannot make a cycle.
    fn inside(&self, row: usize) -> std::ops::Range<usize> {
        let first = self.cell(CALLS, row, 3).saturating_sub(1).max(row + 1);
        first..first.saturating_add(self.cell(CALLS, row, 4)).min(self.tables.rows(CALLS))
    }

    fn calls_at(&self, rows: std::ops::Range<usize>) -> Vec<Call> {
        let call = |row: usize| {
            let callee = self.tables.get(CALLS, row, 0);
            let address = self.elf.address(self.tables.get_wide(CALLS, row, 1))?;
            let inlined = (self.tables.get(CALLS, row, 3) > 0).then_some(InlinedCode(row as u32));
            let length = if inlined.is_some() { 0 } else { CALL_LENGTH };
            ((callee as usize) < self.count()).then_some(Call {
                callee: FunctionId(callee),
                address,
                returns_to: Address { offset: address.offset.saturating_add(length), ..address },
                inlined,
                tail: false,
            })
        };
        rows.filter_map(call).collect()
    }

    /// Places where no probe may be.
    pub fn reserved_places(&self) -> Reserved {
        let row = |row| {
            (
                self.tables.get_wide(RESERVED, row, 0),
                self.tables.get(RESERVED, row, 2),
                self.tables.get(RESERVED, row, 3),
            )
        };
        Reserved::from_rows((0..self.tables.rows(RESERVED)).map(row))
    }

    /// The parameters of a function, in order.
    pub fn parameters_of(&self, id: FunctionId) -> Vec<Variable> {
        let rows = self.ends(id.0 as usize, 7);
        rows.map(|row| Variable {
            name: self.text(self.tables.get(PARAMETERS, row, 0)),
            type_id: self.type_at(PARAMETERS, row, 1),
        })
        .collect()
    }

    fn type_at(&self, table: usize, row: usize, column: usize) -> TypeId {
        TypeId::new(self.tables.get(table, row, column))
    }

    /// The variables in scope at the address; those of the function's first copy where the address is within it.
    fn set(&self, id: FunctionId, at: Address) -> std::ops::Range<usize> {
        let function = id.0 as usize;
        let here = self.elf.flat(at).and_then(|at| self.sets.get(&at)).into_iter().flatten();
        let own = here.filter(|(of, _)| *of == function).map(|(_, set)| *set).next();
        let first = || {
            let body = self.ends(function, 5).next().map(|row| self.cell(BODIES, row, 5));
            body.or_else(|| self.ends(function, 6).next().map(|row| self.cell(INLINED, row, 2)))
        };
        match own.or_else(first) {
            Some(set) => self.between(VARIABLES, self.cell(SETS, set, 0), self.cell(SETS, set + 1, 0)),
            None => 0..0,
        }
    }

    /// The local variables that are visible at the address.
    pub fn locals_at(&self, id: FunctionId, at: Address) -> Vec<Variable> {
        let rows = self.set(id, at).filter(|row| self.tables.get(VARIABLES, *row, 3) == 0);
        rows.map(|row| Variable {
            name: self.text(self.tables.get(VARIABLES, row, 0)),
            type_id: self.type_at(VARIABLES, row, 1),
        })
        .collect()
    }

    /// A variable by its name, as visible at the address; otherwise an external one.
    pub fn variable_at(&self, id: FunctionId, at: Address, name: &str) -> Result<FoundVariable, Unavailable> {
        let named = |row: &usize| self.tables.text(self.tables.get(VARIABLES, *row, 0)) == name.as_bytes();
        match self.set(id, at).rev().find(named) {
            Some(row) => self.located(self.type_at(VARIABLES, row, 1), self.tables.get(VARIABLES, row, 2)),
            None => self.find_global(GlobalPattern { name, file: None, external: true }),
        }
    }

    /// A variable of the whole object.
    pub fn find_global(
        &self,
        GlobalPattern { name, file, external }: GlobalPattern,
    ) -> Result<FoundVariable, Unavailable> {
        let filed = self
            .globals_named(name)
            .filter(|row| file.is_none_or(|file| path_fits(file, &self.text(self.tables.get(GLOBALS, *row, 1)))));
        // The first of several, as in the debug information.
        let best = filed
            .min_by_key(|row| self.tables.get(GLOBALS, *row, 4) == 0)
            .filter(|row| !external || self.tables.get(GLOBALS, *row, 4) != 0);
        let row = best.ok_or(Unavailable::Unknown)?;
        self.located(self.type_at(GLOBALS, row, 2), self.tables.get(GLOBALS, row, 3))
    }

    fn globals_named<'n>(&'n self, name: &'n str) -> impl Iterator<Item = usize> + 'n {
        let text = |row| self.tables.text(self.tables.get(GLOBALS, row, 0));
        let first = self.tables.first(GLOBALS, |row| text(row) < name.as_bytes());
        (first..self.tables.rows(GLOBALS)).take_while(move |row| text(*row) == name.as_bytes())
    }

    /// The variable of that name in the function's file, or an external one: the units of functions are not in the index.
    pub fn global_of_file(&self, id: FunctionId, name: &str) -> Result<FoundVariable, Unavailable> {
        let file = self.text(self.tables.get(FUNCTIONS, id.0 as usize, 1));
        match self.find_global(GlobalPattern { name, file: Some(&file), external: false }) {
            Err(Unavailable::Unknown) => self.find_global(GlobalPattern { name, file: None, external: true }),
            found => found,
        }
    }

    /// The units with a static variable of that name, that of [`Portable::find_global`] first; none where one is external.
    pub fn static_units(&self, name: &str) -> Vec<String> {
        let rows: Vec<usize> = self.globals_named(name).filter(|row| self.tables.get(GLOBALS, *row, 3) != 0).collect();
        if rows.iter().any(|row| self.tables.get(GLOBALS, *row, 4) != 0) {
            return Vec::new();
        }
        rows.iter().map(|row| self.text(self.tables.get(GLOBALS, *row, 1))).collect()
    }

    /// `at`: the location + 1.
    fn located(&self, type_id: TypeId, at: u32) -> Result<FoundVariable, Unavailable> {
        let at = at.checked_sub(1).ok_or(Unavailable::OptimizedOut)?;
        let location = place::read_location(self.tables.text(at), &self.elf);
        let damaged = || Unavailable::Unsupported("the index is damaged at its place".into());
        Ok(FoundVariable { type_id, location: location.ok_or_else(damaged)? })
    }

    fn calls_by_address(&self) -> &BTreeMap<u64, usize> {
        let rows = || (0..self.tables.rows(CALLS)).map(|row| (self.tables.get_wide(CALLS, row, 1), row)).collect();
        self.calls.get_or_init(rows)
    }

    /// Where the return address of a frame is, at the beginning of a function or at a call.
    pub fn return_place(&self, at: Address) -> Option<Vec<Op>> {
        let flat = self.elf.flat(at)?;
        let of_body = self.sets.get(&flat).into_iter().flatten().find_map(|(function, _)| {
            let mut rows = self.ends(*function, 5);
            let row = rows.find(|row| self.tables.get_wide(BODIES, *row, 0) == flat)?;
            self.tables.get(BODIES, row, 6).checked_sub(1)
        });
        let of_call = || self.tables.get(CALLS, *self.calls_by_address().get(&flat)?, 5).checked_sub(1);
        place::read_ops(self.tables.text(of_body.or_else(of_call)?), &self.elf)
    }

    /// Where calls of unknown callees return to in the function.
    pub fn returns_of_unknown(&self, id: FunctionId) -> Vec<Address> {
        let at = self.tables.get(FUNCTIONS, id.0 as usize, 11).checked_sub(1);
        at.map(|at| place::read_addresses(self.tables.text(at), &self.elf)).unwrap_or_default()
    }

    /// Whether the variables there are known, or a function without debug information begins there.
    pub fn has_place(&self, at: Address) -> bool {
        let Some(flat) = self.elf.flat(at) else { return false };
        let begins = || {
            let mut symbols = self.elf.symbols_before(flat).into_iter().flatten();
            symbols.next().is_some_and(|symbol| symbol.function && symbol.at == flat)
        };
        self.sets.contains_key(&flat) || self.calls_by_address().contains_key(&flat) || begins()
    }

    /// The definition of a type.
    pub fn type_named(&self, tag: TypeTag, name: &[u8]) -> Option<TypeId> {
        let key = |row| (self.tables.get(NAMED, row, 0), self.tables.text(self.tables.get(NAMED, row, 1)));
        let wanted = (tag as u32, name);
        let row = self.tables.first(NAMED, |row| key(row) < wanted);
        (row < self.tables.rows(NAMED) && key(row) == wanted).then(|| self.type_at(NAMED, row, 2))
    }

    /// The value of an enumerator of any enumeration.
    pub fn enumerator_value(&self, name: &str) -> Option<i64> {
        (0..self.tables.rows(TYPES))
            .filter(|row| matches!(self.kind(*row), Some(Kind::Enum | Kind::SignedEnum)))
            .find_map(|row| {
                let child = self.children(row).find(|child| {
                    self.tables
                        .get(CHILDREN, *child, 0)
                        .checked_sub(1)
                        .is_some_and(|at| self.tables.text(at) == name.as_bytes())
                })?;
                Some(self.tables.get_wide(CHILDREN, child, 1) as i64)
            })
    }

    fn kind(&self, row: usize) -> Option<Kind> {
        KINDS.get(self.cell(TYPES, row, 0)).copied().filter(|_| row < self.tables.rows(TYPES))
    }

    fn children(&self, row: usize) -> std::ops::Range<usize> {
        let (first, count) = (self.cell(TYPES, row, 3), self.tables.get(TYPES, row, 4).min(MAX_CHILDREN) as usize);
        first..first.saturating_add(count).min(self.tables.rows(CHILDREN))
    }

    /// None: there is no such type.
    pub fn get(&self, id: TypeId, extent: Extent) -> Option<Type> {
        let row = id.number as usize;
        let kind = self.kind(row)?;
        let name = self.tables.get(TYPES, row, 1).checked_sub(1).map(|at| self.text(at));
        let number = self.tables.get(TYPES, row, 2);
        let size = u64::from(number);
        let target = || number.checked_sub(1).map(TypeId::new);
        let listed = |row| if extent == Extent::Whole { self.children(row) } else { 0..0 };
        let child = |column: usize| move |row: usize| self.tables.get(CHILDREN, row, column);
        Some(match kind {
            Kind::Base => {
                let encoding = ENCODINGS.get(self.cell(TYPES, row, 4)).copied().unwrap_or(BaseEncoding::Unsigned);
                Type::Base { name: name.unwrap_or_default(), size, encoding }
            }
            Kind::Pointer => Type::Pointer(target()),
            Kind::Struct | Kind::Union => {
                let members = listed(row).map(|row| {
                    let bits = child(3)(row);
                    Member {
                        name: child(0)(row).checked_sub(1).map(|at| self.text(at)),
                        type_id: self.type_at(CHILDREN, row, 1),
                        offset: u64::from(child(2)(row)),
                        bits: (bits > 0).then(|| MemberBits { first: u64::from(bits >> 8), bits: bits as u8 }),
                        when: None,
                    }
                });
                Type::Struct { name, union: kind == Kind::Union, size, members: members.collect() }
            }
            Kind::Array => {
                let counts = self.children(row).skip(id.dimensions.into());
                let counts = counts.map(|row| (child(1)(row) > 0).then(|| self.tables.get_wide(CHILDREN, row, 2)));
                Type::Array { element: target()?, counts: counts.collect() }
            }
            Kind::Enum | Kind::SignedEnum => {
                let value = |row| {
                    (
                        child(0)(row).checked_sub(1).map(|at| self.text(at)).unwrap_or_default(),
                        self.tables.get_wide(CHILDREN, row, 1) as i64,
                    )
                };
                Type::Enum { name, size, signed: kind == Kind::SignedEnum, values: listed(row).map(value).collect() }
            }
            Kind::Typedef => Type::Typedef { name: name.unwrap_or_default(), target: target() },
            Kind::Const => Type::Const(target()),
            Kind::Volatile => Type::Volatile(target()),
            Kind::Function | Kind::Variadic => {
                let parameters = self.children(row).map(|row| self.type_at(CHILDREN, row, 1)).collect();
                Type::Function { returns: target(), parameters, variadic: kind == Kind::Variadic }
            }
            Kind::Incomplete => Type::Incomplete { name: name.unwrap_or_default() },
        })
    }

    /// The function's own lines that have code. The addresses are not known: an address after the function's first one
    /// stands for each, for which no variables are known ([`Portable::has_place`]).
    pub fn statements_of(&self, id: FunctionId) -> Vec<Statement> {
        let (Some(at), Some(function)) =
            (self.tables.get(FUNCTIONS, id.0 as usize, 8).checked_sub(1), self.describe(id))
        else {
            return Vec::new();
        };
        let entries = function
            .bodies
            .first()
            .map(|body| body.entry)
            .or(function.inlined.first().map(|instance| instance.address));
        let Some(address) = entries else { return Vec::new() };
        let mut bytes = self.tables.text(at).iter();
        let mut line = 0u64;
        let mut statements = Vec::new();
        while let Some(further) = read_number(&mut bytes) {
            line = line.saturating_add(further);
            statements.push(Statement {
                address: Address { offset: address.offset + 1, ..address },
                file: function.file.clone(),
                line: line.min(u64::from(u32::MAX)) as u32,
                copy: 0,
            });
        }
        statements
    }
}
