// SPDX-License-Identifier: GPL-2.0-or-later

//! Names of an object's functions, types and variables: what [`super::scan`] finds, as tables in the cache.

use super::scan::{NamedFunction, Names, UNNAMED};
use super::store::{Die, EntryError, Store};
use crate::facts::TypeTag;
use crate::object::Elf;
use crate::object::demangle::{scope_fits, shortened, split_scope, template_key};
use crate::stored;
use crate::tables::{TableBytes, Tables, Writer};
use spile_base::cache::Cache;
use std::collections::HashSet;

/// Name, entry, DW_AT_decl_file, scope, whether it is external; by name, then entry.
const FUNCTIONS: usize = 0;
/// Origin, copy.
const COPIES: usize = 1;
/// Tag, name, entry, scope; by tag, then name, then entry.
const TYPES: usize = 2;
/// Name, entry, scope; by name, then entry.
const VARIABLES: usize = 3;
/// One row: whether copies cross units.
const FACTS: usize = 4;
/// Name of a namespace that need not be written.
const INLINE: usize = 5;
const COLUMNS: [usize; 6] = [5, 2, 4, 3, 1, 1];

const WHAT: &str = "names";

/// The names of functions, types and variables, from the cache or from a scan of all units.
pub(super) struct Index {
    tables: Tables,
    inline: HashSet<String>,
    /// A function's copies may be in other units than itself (link-time optimisation).
    pub crosses_units: bool,
}

impl Index {
    /// From the cache, or else made and stored there.
    pub fn open(store: &Store, elf: &Elf, cache: Option<&Cache>) -> Result<Index, EntryError> {
        if let Some(index) = stored::find(elf, cache, WHAT).and_then(Index::of) {
            return Ok(index);
        }
        let bytes = written(&Names::read(store)?);
        stored::keep(elf, cache, WHAT, &bytes);
        Index::of(TableBytes::Made(bytes))
            .ok_or_else(|| EntryError { die: None, message: "more names than an index can have".into() })
    }

    fn of(bytes: TableBytes) -> Option<Index> {
        let tables = Tables::open(bytes, &COLUMNS)?;
        let crosses_units = tables.get(FACTS, 0, 0) != 0;
        let inline = (0..tables.rows(INLINE)).map(|row| tables.text(tables.get(INLINE, row, 0)));
        let inline = inline.map(|scope| String::from_utf8_lossy(scope).into_owned()).collect();
        Some(Index { tables, inline, crosses_units })
    }

    /// A scope without what people need not write of it: inline and unnamed namespaces, template arguments.
    pub fn short(&self, scope: &[u8]) -> String {
        let scope = String::from_utf8_lossy(scope);
        shortened(&scope, |whole| whole.ends_with(UNNAMED) || self.inline.contains(whole))
    }

    /// Whether a scope is the wanted one, or ends in it, with no more in it than need not be written.
    fn is_short_for(&self, wanted: Option<&str>, scope: &[u8]) -> bool {
        let Some(wanted) = wanted else { return true };
        match wanted.contains('<') {
            true => scope_fits(&template_key(wanted), &template_key(&String::from_utf8_lossy(scope))),
            false => scope_fits(wanted, &self.short(scope)),
        }
    }

    /// Sorted by name, then by entry.
    pub fn functions(&self) -> impl Iterator<Item = NamedFunction<'_>> {
        (0..self.tables.rows(FUNCTIONS)).map(|row| self.function(row))
    }

    fn function(&self, row: usize) -> NamedFunction<'_> {
        let cell = |column| self.tables.get(FUNCTIONS, row, column);
        let [name, scope] = [cell(0), cell(3)].map(|at| self.tables.text(at));
        NamedFunction { name, die: Die(cell(1)), file: cell(2), external: cell(4) != 0, scope }
    }

    /// Functions whose name begins so.
    pub fn functions_beginning(&self, beginning: &[u8]) -> impl Iterator<Item = NamedFunction<'_>> {
        let start = self.tables.first(FUNCTIONS, |row| self.function(row).name < beginning);
        let rest = (start..self.tables.rows(FUNCTIONS)).map(|row| self.function(row));
        rest.take_while(move |function| function.name.starts_with(beginning))
    }

    /// The functions with that name.
    pub fn functions_named(&self, name: &[u8]) -> impl Iterator<Item = NamedFunction<'_>> {
        let start = self.tables.first(FUNCTIONS, |row| self.function(row).name < name);
        let same = (start..self.tables.rows(FUNCTIONS)).map(|row| self.function(row));
        same.take_while(move |function| function.name == name)
    }

    /// The first full definition of the type; of a qualified name, `ns::Type`, or its end.
    pub fn type_named(&self, tag: TypeTag, name: &[u8]) -> Option<Die> {
        let (scope, last) = split(name);
        let exact = self.types_called(tag, last).find(|(_, own)| is_in(scope, own));
        let short = || self.types_called(tag, last).find(|(_, own)| self.is_short_for(scope, own));
        exact.or_else(short).or_else(|| self.template_named(tag, scope, last)).map(|(die, _)| die)
    }

    /// An instance of a template whose arguments are spelled in another way.
    fn template_named(&self, tag: TypeTag, scope: Option<&str>, last: &[u8]) -> Option<(Die, &[u8])> {
        let last = std::str::from_utf8(last).ok()?;
        let (plain, _) = last.split_once('<')?;
        let key = template_key(last);
        let beginning = format!("{plain}<");
        let all = self.types_from(tag, beginning.as_bytes());
        let mut all = all.take_while(|(name, ..)| name.starts_with(beginning.as_bytes()));
        let is_wanted = |name: &[u8], own: &[u8]| {
            std::str::from_utf8(name).is_ok_and(|name| template_key(name) == key)
                && (is_in(scope, own) || self.is_short_for(scope, own))
        };
        all.find(|(name, _, own)| is_wanted(name, own)).map(|(_, die, own)| (die, own))
    }

    /// Enumerations, each with its qualified name.
    pub fn enumerations(&self) -> impl Iterator<Item = (String, Die)> {
        self.types_from(TypeTag::Enum, b"").map(|(name, die, scope)| {
            let (name, scope) = (String::from_utf8_lossy(name), self.short(scope));
            (if scope.is_empty() { name.into_owned() } else { format!("{scope}::{name}") }, die)
        })
    }

    /// The first full definition of the type in exactly that scope.
    pub fn type_within(&self, tag: TypeTag, name: &[u8], scope: &str) -> Option<Die> {
        self.types_called(tag, name).find(|(_, own)| *own == scope.as_bytes()).map(|(die, _)| die)
    }

    /// Definitions of that last name, and their scopes.
    fn types_called<'n>(&'n self, tag: TypeTag, name: &'n [u8]) -> impl Iterator<Item = (Die, &'n [u8])> + 'n {
        let same = self.types_from(tag, name).take_while(move |(own, ..)| *own == name);
        same.map(|(_, die, scope)| (die, scope))
    }

    /// Last name, definition and scope of the types of a kind, from a name on.
    fn types_from<'n>(&'n self, tag: TypeTag, name: &[u8]) -> impl Iterator<Item = (&'n [u8], Die, &'n [u8])> + 'n {
        let cell = |row, column| self.tables.get(TYPES, row, column);
        let key = move |row| (cell(row, 0), self.tables.text(cell(row, 1)));
        let start = self.tables.first(TYPES, |row| key(row) < (tag as u32, name));
        let same = (start..self.tables.rows(TYPES)).take_while(move |row| key(*row).0 == tag as u32);
        same.map(move |row| (key(row).1, Die(cell(row, 2)), self.tables.text(cell(row, 3))))
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

    /// Definitions of variables outside functions; of a qualified name, `ns::Class::variable`, or its end.
    pub fn variables_named<'n>(&'n self, name: &'n [u8]) -> impl Iterator<Item = Die> + 'n {
        self.scoped_variables_named(name).map(|(die, _)| die)
    }

    /// The same, each with the namespaces and types around it.
    pub fn scoped_variables_named<'n>(&'n self, name: &'n [u8]) -> impl Iterator<Item = (Die, &'n [u8])> + 'n {
        let (scope, last) = split(name);
        let is_exact = self.variables_called(last).any(|(_, own)| is_in(scope, own));
        let fits = move |own: &[u8]| if is_exact { is_in(scope, own) } else { self.is_short_for(scope, own) };
        self.variables_called(last).filter(move |(_, own)| fits(own))
    }

    /// Variables of that last name, and their scopes.
    fn variables_called<'n>(&'n self, last: &'n [u8]) -> impl Iterator<Item = (Die, &'n [u8])> + 'n {
        let text = |row, column| self.tables.text(self.tables.get(VARIABLES, row, column));
        let start = self.tables.first(VARIABLES, |row| text(row, 0) < last);
        let same = (start..self.tables.rows(VARIABLES)).take_while(move |row| text(*row, 0) == last);
        same.map(move |row| (Die(self.tables.get(VARIABLES, row, 1)), text(row, 2)))
    }
}

/// The scope and the last part of a name.
pub(super) fn split(name: &[u8]) -> (Option<&str>, &[u8]) {
    match std::str::from_utf8(name).ok().and_then(split_scope) {
        Some((scope, last)) => (Some(scope), last.as_bytes()),
        None => (None, name),
    }
}

pub(super) fn is_in(wanted: Option<&str>, scope: &[u8]) -> bool {
    wanted.is_none_or(|wanted| std::str::from_utf8(scope).is_ok_and(|scope| scope_fits(wanted, scope)))
}

fn written(names: &Names) -> Vec<u8> {
    let mut writer = Writer::new(&COLUMNS);
    for function in &names.functions {
        let (name, scope) = (writer.text(function.name), writer.text(names.scope(function.die)));
        writer.row(FUNCTIONS, &[name, function.die.0, function.file, scope, u32::from(function.external)]);
    }
    for (origin, copy) in &names.copies {
        writer.row(COPIES, &[origin.0, copy.0]);
    }
    for (tag, name, die) in &names.types {
        let (name, scope) = (writer.text(name), writer.text(names.scope(*die)));
        writer.row(TYPES, &[*tag as u32, name, die.0, scope]);
    }
    for (name, die) in &names.variables {
        let (name, scope) = (writer.text(name), writer.text(names.scope(*die)));
        writer.row(VARIABLES, &[name, die.0, scope]);
    }
    writer.row(FACTS, &[u32::from(names.crosses_units)]);
    for scope in &names.inline {
        let scope = writer.text(scope.as_bytes());
        writer.row(INLINE, &[scope]);
    }
    writer.finish()
}
