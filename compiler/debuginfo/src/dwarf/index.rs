// SPDX-License-Identifier: GPL-2.0-or-later

//! Names of an object's functions, types and variables: what [`super::scan`] finds, as tables in the cache.

use super::scan::{NamedFunction, Names};
use super::store::{Damage, Die, Store};
use crate::facts::TypeTag;
use crate::object::Elf;
use crate::tables::{TableBytes, Tables, Writer, cached};
use spile_base::cache::Cache;

/// Name, entry, DW_AT_decl_file; by name, then entry.
const FUNCTIONS: usize = 0;
/// Origin, copy.
const COPIES: usize = 1;
/// Tag, name, entry; by tag, then name.
const TYPES: usize = 2;
/// Name, entry; by name, then entry.
const VARIABLES: usize = 3;
/// One row: whether copies cross units.
const FACTS: usize = 4;
const COLUMNS: [usize; 5] = [3, 2, 3, 2, 1];

const WHAT: &str = "names";

/// The names of functions, types and variables, from the cache or from a scan of all units.
pub(super) struct Index {
    tables: Tables,
    /// A function's copies may be in other units than itself (link-time optimisation).
    pub crosses_units: bool,
}

impl Index {
    /// From the cache, or else made and stored there.
    pub fn open(store: &Store, elf: &Elf, cache: Option<&Cache>) -> Result<Index, Damage> {
        if let Some(index) = cached::find(elf, cache, WHAT).and_then(Index::of) {
            return Ok(index);
        }
        let bytes = written(&Names::read(store)?);
        cached::keep(elf, cache, WHAT, &bytes);
        Index::of(TableBytes::Made(bytes))
            .ok_or_else(|| Damage { die: None, message: "more names than an index can have".into() })
    }

    fn of(bytes: TableBytes) -> Option<Index> {
        let tables = Tables::open(bytes, &COLUMNS)?;
        let crosses_units = tables.get(FACTS, 0, 0) != 0;
        Some(Index { tables, crosses_units })
    }

    /// Sorted by name, then by entry.
    pub fn functions(&self) -> impl Iterator<Item = NamedFunction<'_>> {
        (0..self.tables.rows(FUNCTIONS)).map(|row| self.function(row))
    }

    fn function(&self, row: usize) -> NamedFunction<'_> {
        let cell = |column| self.tables.get(FUNCTIONS, row, column);
        NamedFunction { name: self.tables.text(cell(0)), die: Die(cell(1)), file: cell(2) }
    }

    /// The functions with that name.
    pub fn functions_named(&self, name: &[u8]) -> impl Iterator<Item = NamedFunction<'_>> {
        let start = self.tables.first(FUNCTIONS, |row| self.function(row).name < name);
        let same = (start..self.tables.rows(FUNCTIONS)).map(|row| self.function(row));
        same.take_while(move |function| function.name == name)
    }

    /// The first full definition of the type.
    pub fn type_named(&self, tag: TypeTag, name: &[u8]) -> Option<Die> {
        let key = |row| (self.tables.get(TYPES, row, 0), self.tables.text(self.tables.get(TYPES, row, 1)));
        let wanted = (tag as u32, name);
        let row = self.tables.first(TYPES, |row| key(row) < wanted);
        (row < self.tables.rows(TYPES) && key(row) == wanted).then(|| Die(self.tables.get(TYPES, row, 2)))
    }

    /// Definitions, by tag and then name.
    pub fn types(&self) -> impl Iterator<Item = (TypeTag, &[u8], Die)> {
        (0..self.tables.rows(TYPES)).filter_map(|row| {
            let cell = |column| self.tables.get(TYPES, row, column);
            let tag = [TypeTag::Struct, TypeTag::Union, TypeTag::Enum, TypeTag::Plain]
                .into_iter()
                .find(|tag| *tag as u32 == cell(0))?;
            Some((tag, self.tables.text(cell(1)), Die(cell(2))))
        })
    }

    /// Definitions of variables outside functions, by name.
    pub fn variables(&self) -> impl Iterator<Item = (&[u8], Die)> {
        (0..self.tables.rows(VARIABLES))
            .map(|row| (self.tables.text(self.tables.get(VARIABLES, row, 0)), Die(self.tables.get(VARIABLES, row, 1))))
    }

    /// Out-of-line copies of the function.
    pub fn copies_of(&self, origin: Die) -> impl Iterator<Item = Die> {
        let start = self.tables.first(COPIES, |row| self.tables.get(COPIES, row, 0) < origin.0);
        let same =
            (start..self.tables.rows(COPIES)).take_while(move |row| self.tables.get(COPIES, *row, 0) == origin.0);
        same.map(|row| Die(self.tables.get(COPIES, row, 1)))
    }

    /// Definitions of variables outside functions.
    pub fn variables_named(&self, name: &[u8]) -> impl Iterator<Item = Die> {
        let text = |row| self.tables.text(self.tables.get(VARIABLES, row, 0));
        let start = self.tables.first(VARIABLES, |row| text(row) < name);
        let same = (start..self.tables.rows(VARIABLES)).take_while(move |row| text(*row) == name);
        same.map(|row| Die(self.tables.get(VARIABLES, row, 1)))
    }
}

fn written(names: &Names) -> Vec<u8> {
    let mut writer = Writer::new(&COLUMNS);
    for function in &names.functions {
        let name = writer.text(function.name);
        writer.row(FUNCTIONS, &[name, function.die.0, function.file]);
    }
    for (origin, copy) in &names.copies {
        writer.row(COPIES, &[origin.0, copy.0]);
    }
    for (tag, name, die) in &names.types {
        let name = writer.text(name);
        writer.row(TYPES, &[*tag as u32, name, die.0]);
    }
    for (name, die) in &names.variables {
        let name = writer.text(name);
        writer.row(VARIABLES, &[name, die.0]);
    }
    writer.row(FACTS, &[u32::from(names.crosses_units)]);
    writer.finish()
}
