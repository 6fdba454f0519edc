// SPDX-License-Identifier: GPL-2.0-or-later

//! Names of an object's functions, types and variables, from the top-level entries of all units.
//!
//! One pass, in parallel over the units, that skips everything nested (`DW_AT_sibling`), except that in languages with
//! namespaces those and types are searched too, and in programs functions for those in them: lambdas, functions of local
//! classes, gcc's nested functions. Strings are not copied.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use gimli::{AttributeValue, DwTag, UnitOffset};
use rayon::prelude::*;

use super::entry::{Entries, Entry, skip_children};
use super::store::{Bytes, Die, EntryError, Slot, Store, Unit, die_at, flag, number};
use super::unit_places::{Nesting, number_of};
use crate::facts::TypeTag;
use crate::object::demangle::{demangled, fits, split_scope, without_outer_parameters};
use spile_base::glob;

/// A name in a section, without its NUL.
pub(super) type Text = &'static [u8];

/// A function's entry that has a name and is no declaration: an ordinary function, or the abstract instance of one that
/// is inlined somewhere.
#[derive(Clone, Copy)]
pub(super) struct NamedFunction<'n> {
    /// DW_AT_name.
    pub name: &'n [u8],
    /// The function's entry.
    pub die: Die,
    /// DW_AT_decl_file, 0 if there is none.
    pub file: u32,
    /// DW_AT_external.
    pub external: bool,
    /// Namespaces, types and functions around it: `ns::Class`; empty while [`Names`] are collected, which have them by entry.
    pub scope: &'n [u8],
}

impl NamedFunction<'_> {
    /// Whether a shell pattern fits its name; one with `::` the qualified name or its end. The instances of a template fit without
    /// their arguments.
    pub fn fits(&self, pattern: &str) -> bool {
        self.fits_in(pattern, std::str::from_utf8(self.scope).unwrap_or_default())
    }

    /// The same, with another scope.
    pub fn fits_in(&self, pattern: &str, scope: &str) -> bool {
        let Ok(name) = std::str::from_utf8(self.name) else { return false };
        let plain = name.split_once('<').map(|(plain, _)| plain).filter(|plain| !plain.starts_with("operator"));
        let names = std::iter::once(name).chain(plain);
        match (pattern.contains("::"), scope) {
            (false, _) => glob::matches(pattern, name) || names.skip(1).any(|name| name == pattern),
            (true, "") => names.into_iter().any(|name| fits(pattern, name)),
            (true, scope) => names.into_iter().any(|name| fits(pattern, &format!("{scope}::{name}"))),
        }
    }
}

/// All that was found.
pub(super) struct Names {
    /// Sorted by name, then by entry.
    pub functions: Vec<NamedFunction<'static>>,
    /// Out-of-line copies (origin, copy), sorted.
    pub copies: Vec<(Die, Die)>,
    /// The first full definition of each, sorted.
    pub types: Vec<(TypeTag, Text, Die)>,
    /// Definitions of variables outside functions, sorted.
    pub variables: Vec<(Text, Die)>,
    /// Namespaces and types around those that have any.
    pub scopes: HashMap<Die, Arc<str>>,
    /// A function's copies may be in other units than itself (link-time optimisation).
    pub crosses_units: bool,
    /// Namespaces whose names need not be written (`inline namespace`), sorted.
    pub inline: Vec<Arc<str>>,
}

/// Kind of a type, place of its name's string, and scope.
type TypePlace = (TypeTag, usize, Option<Arc<str>>);

/// What one thread has seen. Types are distinguished by the places of their names' strings, which is cheap and nearly exact,
/// since the linker merges equal strings.
#[derive(Default)]
struct Partial {
    functions: Vec<NamedFunction<'static>>,
    copies: Vec<(Die, Die)>,
    types: HashMap<TypePlace, (Text, Die)>,
    variables: Vec<(Text, Die)>,
    scopes: HashMap<Die, Arc<str>>,
    crosses_units: bool,
    inline: HashSet<Arc<str>>,
    /// Definitions of what another unit declares: (definition, declaration).
    elsewhere: Vec<(Die, Die)>,
}

impl Names {
    /// Namespaces and types around an entry; empty if there are none.
    pub fn scope(&self, die: Die) -> &[u8] {
        self.scopes.get(&die).map_or(&[], |scope| scope.as_bytes())
    }

    /// Reads the names of all units of the store.
    pub fn read(store: &Store) -> Result<Names, EntryError> {
        let one = |mut partial: Partial, slot: usize| -> Result<Partial, EntryError> {
            scan(store, slot, &mut partial)?;
            Ok(partial)
        };
        let slots = (0..store.slots.len()).into_par_iter();
        let all = slots.try_fold(Partial::default, one).try_reduce(Partial::default, |a, b| Ok(a.merge(b)))?;
        let Partial { mut functions, mut copies, types, mut variables, mut scopes, crosses_units, inline, elsewhere } =
            all;
        let mut inline: Vec<Arc<str>> = inline.into_iter().collect();
        inline.sort_unstable();
        declared_elsewhere(store, elsewhere, &mut scopes)?;
        functions.par_sort_unstable_by(|a, b| (a.name, a.die).cmp(&(b.name, b.die)));
        copies.par_sort_unstable();
        variables.par_sort_unstable();
        let mut types: Vec<(TypeTag, Text, Die)> =
            types.into_iter().map(|((tag, ..), (name, die))| (tag, name, die)).collect();
        types.par_sort_unstable();
        types.dedup_by_key(|(tag, name, die)| (*tag, *name, scopes.get(&*die)));
        Ok(Names { functions, copies, types, variables, scopes, crosses_units, inline })
    }
}

impl Partial {
    fn merge(mut self, mut other: Partial) -> Partial {
        if self.types.len() < other.types.len() {
            std::mem::swap(&mut self, &mut other);
        }
        self.functions.append(&mut other.functions);
        self.copies.append(&mut other.copies);
        self.variables.append(&mut other.variables);
        self.scopes.extend(other.scopes);
        self.inline.extend(other.inline);
        self.elsewhere.append(&mut other.elsewhere);
        self.crosses_units |= other.crosses_units;
        for (key, (name, die)) in other.types {
            let (_, first) = self.types.entry(key).or_insert((name, die));
            *first = die.min(*first);
        }
        self
    }
}

/// The attributes that are read of a top-level entry.
#[derive(Default)]
struct EntryAttributes {
    name: Option<AttributeValue<Bytes>>,
    origin: Option<AttributeValue<Bytes>>,
    specification: Option<AttributeValue<Bytes>>,
    sibling: Option<usize>,
    declaration: bool,
    external: bool,
    located: bool,
    exports: bool,
    /// It has only the signature of a type in a unit of its own.
    signed: bool,
    file: u32,
}

/// Nesting of namespaces and types that is followed.
pub(super) const MOST_SCOPES: usize = 32;

const MOST_SCOPE_BYTES: usize = 4096;

/// What is known of a unit while it is read.
struct Reading<'s> {
    store: &'s Store,
    slot: &'s Slot,
    index: usize,
    /// Its language has namespaces or methods.
    nests: bool,
    /// Its functions may have others in them.
    nests_functions: bool,
    /// How many of the scopes are around the outermost function that is being read, if one is.
    around_function: Option<usize>,
    /// Lambdas of the unit, in the order of their entries.
    lambdas: Vec<Lambda>,
    /// What is in lambdas of which only the places are known; they are numbered when the unit has been read.
    unnumbered: Vec<(Die, Arc<str>)>,
    /// Those that are being read, innermost last, each with those around it.
    scopes: Vec<Arc<str>>,
    /// The functions that are being read, each with its depth in `scopes`.
    functions: Vec<(usize, Die)>,
    /// DW_AT_decl_file of each of them.
    files: Vec<u32>,
    /// Scopes of declarations, which definitions refer to.
    declared: HashMap<Die, Arc<str>>,
    /// Definitions before what declares them, as clang writes variables, or in another unit: (definition, declaration).
    early: Vec<(Die, Die)>,
}

/// Finds the scopes of what is declared in other units, as dwz and link-time optimisation write it: each unit is read once more.
fn declared_elsewhere(
    store: &Store,
    mut elsewhere: Vec<(Die, Die)>,
    scopes: &mut HashMap<Die, Arc<str>>,
) -> Result<(), EntryError> {
    elsewhere.sort_unstable_by_key(|(_, declaration)| *declaration);
    let mut read: Option<(usize, HashMap<Die, Arc<str>>)> = None;
    for (definition, declaration) in elsewhere {
        let slot = store.slot_of(declaration)?;
        let declared = match &read {
            Some((of, declared)) if *of == slot => declared,
            _ => &read.insert((slot, scan(store, slot, &mut Partial::default())?)).1,
        };
        scopes.extend(declared.get(&declaration).map(|scope| (definition, scope.clone())));
    }
    Ok(())
}

/// Adds what is in the unit; the scopes of what it declares.
fn scan(store: &Store, index: usize, partial: &mut Partial) -> Result<HashMap<Die, Arc<str>>, EntryError> {
    let slot = store.slot(index)?;
    let header = store.header(slot)?;
    let abbreviations = store.abbreviations_of(slot, header)?;
    let failed = |error: gimli::Error| EntryError::at(Die(slot.start), error.to_string());
    let mut raw = header.entries_raw(&abbreviations, None).map_err(failed)?;
    let Some(root) = raw.read_abbreviation().map_err(failed)? else {
        return Ok(HashMap::new());
    };
    // Of units that others share dwz does not always write the language.
    let mut nests = root.tag() == gimli::DW_TAG_partial_unit;
    let mut nests_functions = store.is_program;
    for spec in root.attributes() {
        let value = raw.read_attribute(*spec).map_err(failed)?.value();
        if let AttributeValue::Language(language) = value {
            nests = is_nesting(language);
            // Rust's compiler writes namespaces in place of functions that have others in them; Go's numbers those.
            nests_functions &= !matches!(language, gimli::DW_LANG_Rust | gimli::DW_LANG_Go);
        }
    }
    let mut reading = Reading {
        store,
        slot,
        index,
        nests,
        nests_functions,
        around_function: None,
        lambdas: Vec::new(),
        unnumbered: Vec::new(),
        scopes: Vec::new(),
        functions: Vec::new(),
        files: Vec::new(),
        declared: HashMap::new(),
        early: Vec::new(),
    };
    // A unit shared by several others: functions from it may be inlined anywhere.
    partial.crosses_units |= root.tag() == gimli::DW_TAG_partial_unit;
    if !root.has_children() {
        return Ok(HashMap::new());
    }
    match !nests && !nests_functions {
        true => read_entries::<true>(header, &abbreviations, raw, &mut reading, partial)?,
        false => read_entries::<false>(header, &abbreviations, raw, &mut reading, partial)?,
    }
    reading.number_lambdas(partial);
    for (definition, declaration) in &reading.early {
        if (slot.start..slot.end).contains(&declaration.0) {
            partial.scopes.extend(reading.declared.get(declaration).map(|scope| (*definition, scope.clone())));
        } else {
            partial.elsewhere.push((*definition, *declaration));
        }
    }
    Ok(reading.declared)
}

/// The entries of a unit behind its first. `FLAT`: none of them is searched for what is in it, as in the kernel, of which most of
/// the time goes here.
fn read_entries<'a, const FLAT: bool>(
    header: &gimli::UnitHeader<Bytes>,
    abbreviations: &'a gimli::Abbreviations,
    mut raw: gimli::EntriesRaw<'a, Bytes>,
    reading: &mut Reading,
    partial: &mut Partial,
) -> Result<(), EntryError> {
    let start = reading.slot.start;
    let failed = |error: gimli::Error| EntryError::at(Die(start), error.to_string());
    // Units of other kinds (skeletons, type units) have their entries elsewhere or are not needed.
    while !raw.is_empty() {
        let offset = raw.next_offset();
        let Some(abbreviation) = raw.read_abbreviation().map_err(failed)? else {
            match !FLAT && reading.leave() {
                true => continue,
                false => break,
            }
        };
        let tag = abbreviation.tag();
        let enters = !FLAT && abbreviation.has_children() && reading.enters(tag);
        let is_named = if FLAT { is_wanted(tag) } else { reading.is_wanted(tag) };
        let wanted = is_named || enters && tag != gimli::DW_TAG_lexical_block;
        let seen = read_attributes(&mut raw, abbreviation, wanted).map_err(failed)?;
        if is_named {
            reading.add(tag, offset, &seen, partial)?;
        }
        // What is declared has only parameters in it.
        if enters && !(seen.declaration && tag == gimli::DW_TAG_subprogram) {
            reading.enter(tag, offset, &seen)?;
            if seen.exports && tag == gimli::DW_TAG_namespace {
                partial.inline.extend(reading.scopes.last().cloned());
            }
        } else if abbreviation.has_children() {
            match seen.sibling {
                // Only forward: a backward reference would never end.
                Some(sibling) if sibling > raw.next_offset().0 => {
                    raw = header.entries_raw(abbreviations, Some(UnitOffset(sibling))).map_err(failed)?;
                }
                _ => skip_children(&mut raw).map_err(failed)?,
            }
        }
    }
    Ok(())
}

/// Languages whose functions and types may be inside namespaces and types.
pub(super) fn is_nesting(language: gimli::DwLang) -> bool {
    !matches!(
        language,
        gimli::DW_LANG_C | gimli::DW_LANG_C89 | gimli::DW_LANG_C99 | gimli::DW_LANG_C11 | gimli::DW_LANG_C17
    ) && language != gimli::DW_LANG_Mips_Assembler
}

/// How the name of a lambda begins, where debug information does not say what linkers call it: `{lambda#2}` is the second one
/// of its function, by their places in the source.
const LAMBDA: &str = "{lambda#";

/// The same while the unit is read, before the number among all of the unit's.
const UNNUMBERED: &str = "{lambda#@";

/// What the scope of a function without a name is called while the unit is read: clang's, in place of one that is inlined
/// everywhere.
const NAMELESS: &str = "{function}";

fn without_nameless(scope: Arc<str>) -> Arc<str> {
    match scope.contains(NAMELESS) {
        true => scope.replace("{function}::", "").replace(NAMELESS, "").into(),
        false => scope,
    }
}

/// What a lambda is numbered by.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Lambda {
    /// The innermost function around it, if it is in one.
    function: Option<Die>,
    /// Namespaces, types and functions around it.
    scope: Arc<str>,
    /// File, line and column.
    place: [u64; 3],
}

/// The scope with the numbers that the lambdas have in their functions.
fn numbered(scope: &str, numbers: &[usize]) -> Arc<str> {
    let (mut whole, mut rest) = (String::new(), scope);
    while let Some((before, from)) = rest.split_once(UNNUMBERED) {
        whole.push_str(before);
        let end = from.find('}').unwrap_or(from.len());
        let number = from.get(..end).and_then(|index| numbers.get(index.parse::<usize>().ok()?));
        whole.push_str(LAMBDA);
        whole.push_str(&number.copied().unwrap_or(0).to_string());
        rest = from.get(end..).unwrap_or_default();
    }
    whole.push_str(rest);
    whole.into()
}

/// What a scope without a name is called.
pub(super) const UNNAMED: &str = "(anonymous namespace)";

/// The scope of that name in another one, which may be none.
fn within(around: &str, name: Option<&[u8]>) -> String {
    let name = name.map_or(UNNAMED.into(), String::from_utf8_lossy);
    match around {
        "" => name.into_owned(),
        // No name that people write is so long.
        around if around.len() > MOST_SCOPE_BYTES => around.to_string(),
        around => format!("{around}::{name}"),
    }
}

/// Whether there are names in such an entry.
pub(super) fn has_names(tag: DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_namespace
            | gimli::DW_TAG_structure_type
            | gimli::DW_TAG_class_type
            | gimli::DW_TAG_union_type
            | gimli::DW_TAG_interface_type
    )
}

/// Namespaces and types around an entry, as the index has them: `ns::Class`, or nothing. None: it is in a function, or too deep.
pub(super) fn scope_around(store: &Store, die: Die) -> Result<Option<String>, EntryError> {
    let mut die = die;
    // Where it is declared: in a unit of its own gcc writes a type outside its namespace.
    for _ in 0..MOST_SCOPES {
        let (unit, entry) = store.entry(die)?;
        let declared = store.reference_attr(unit, &entry, gimli::DW_AT_specification)?;
        match declared.filter(|declared| store.slot_of(*declared).ok() == store.slot_of(die).ok()) {
            Some(declared) => die = declared,
            None => break,
        }
    }
    let slot = store.slot_of(die)?;
    let unit = store.unit(slot)?;
    let Some(root) = Entries::of(unit)?.next()? else { return Ok(None) };
    if !nests(&root) {
        return Ok(Some(String::new()));
    }
    let nesting = store.slot(slot)?.nesting.get_or_init(|| nesting(unit)).as_ref().map_err(Clone::clone)?;
    let Ok(place) = nesting.inside.binary_search_by_key(&die, |(inside, _)| *inside) else { return Ok(None) };
    let mut around = Vec::new();
    let mut next = nesting.inside.get(place).map_or(0, |(_, scope)| *scope);
    while next != 0 {
        let Some((scope, outer)) = nesting.scopes.get(next as usize) else { break };
        around.push(*scope);
        next = *outer;
    }
    let mut scope = String::new();
    for entry in around.into_iter().rev() {
        let (unit, entry) = store.entry(entry)?;
        let name = match entry.attr_value(gimli::DW_AT_name) {
            Some(name) => store.string(unit, name),
            None => signed_name(store, unit, &entry)?,
        };
        scope = within(&scope, name);
    }
    Ok(Some(scope))
}

/// Found once for each unit: a program may ask for the scopes of all its types.
fn nesting(unit: &Unit) -> Result<Nesting, EntryError> {
    let mut nesting = Nesting { scopes: vec![(die_at(unit, UnitOffset(0))?, 0)], inside: Vec::new() };
    let mut around = vec![0];
    Entries::below(unit, |entry, depth| -> Result<bool, EntryError> {
        around.truncate(depth);
        let die = die_at(unit, entry.offset())?;
        let scope = around.last().copied().unwrap_or(0);
        nesting.inside.push((die, scope));
        let is_scope = has_names(entry.tag()) && depth <= MOST_SCOPES;
        if is_scope {
            around.push(number_of(nesting.scopes.len())?);
            nesting.scopes.push((die, scope));
        }
        Ok(is_scope)
    })?;
    Ok(nesting)
}

/// The name of the type of which an entry has only the signature.
fn signed_name(store: &Store, unit: &Unit, entry: &Entry) -> Result<Option<Text>, EntryError> {
    let Some(value) = entry.attr_value(gimli::DW_AT_signature) else { return Ok(None) };
    // The unit may be in a file that was not found.
    let Ok(Some(die)) = store.reference(unit, value) else { return Ok(None) };
    let (unit, entry) = store.entry(die)?;
    Ok(entry.attr_value(gimli::DW_AT_name).and_then(|name| store.string(unit, name)))
}

/// Whether functions and types of the unit with that root may be inside namespaces and types.
pub(super) fn nests(root: &Entry) -> bool {
    match root.attr_value(gimli::DW_AT_language) {
        Some(AttributeValue::Language(language)) => is_nesting(language),
        _ => root.tag() == gimli::DW_TAG_partial_unit,
    }
}

fn is_wanted(tag: DwTag) -> bool {
    tag == gimli::DW_TAG_subprogram || tag == gimli::DW_TAG_variable || type_tag(tag).is_some()
}

pub(super) fn type_tag(tag: DwTag) -> Option<TypeTag> {
    Some(match tag {
        gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type => TypeTag::Struct,
        gimli::DW_TAG_union_type => TypeTag::Union,
        gimli::DW_TAG_enumeration_type => TypeTag::Enum,
        gimli::DW_TAG_typedef | gimli::DW_TAG_base_type => TypeTag::Plain,
        _ => return None,
    })
}

fn is_read(name: gimli::DwAt) -> bool {
    matches!(
        name,
        gimli::DW_AT_name
            | gimli::DW_AT_abstract_origin
            | gimli::DW_AT_specification
            | gimli::DW_AT_declaration
            | gimli::DW_AT_external
            | gimli::DW_AT_location
            | gimli::DW_AT_const_value
            | gimli::DW_AT_decl_file
            | gimli::DW_AT_export_symbols
            | gimli::DW_AT_signature
    )
}

impl EntryAttributes {
    fn take(&mut self, name: gimli::DwAt, value: AttributeValue<Bytes>) {
        match name {
            gimli::DW_AT_name => self.name = Some(value),
            gimli::DW_AT_abstract_origin => self.origin = Some(value),
            gimli::DW_AT_specification => self.specification = Some(value),
            gimli::DW_AT_declaration => self.declaration = matches!(value, AttributeValue::Flag(true)),
            gimli::DW_AT_external => self.external = matches!(value, AttributeValue::Flag(true)),
            gimli::DW_AT_location | gimli::DW_AT_const_value => self.located = true,
            gimli::DW_AT_signature => self.signed = true,
            gimli::DW_AT_export_symbols => self.exports = matches!(value, AttributeValue::Flag(true)),
            gimli::DW_AT_decl_file => {
                if let AttributeValue::FileIndex(file) = value {
                    self.file = file as u32;
                }
            }
            gimli::DW_AT_sibling => {
                if let AttributeValue::UnitRef(offset) = value {
                    self.sibling = Some(offset.0);
                }
            }
            _ => {}
        }
    }
}

impl Reading<'_> {
    /// Whether the children of such an entry are read.
    fn enters(&self, tag: DwTag) -> bool {
        let within = match tag {
            gimli::DW_TAG_subprogram => self.nests_functions,
            gimli::DW_TAG_lexical_block => self.around_function.is_some(),
            _ => self.nests && has_names(tag),
        };
        within && self.scopes.len() < MOST_SCOPES
    }

    /// Whether such an entry is added. Types and variables in functions are not.
    fn is_wanted(&self, tag: DwTag) -> bool {
        match self.around_function {
            Some(_) => tag == gimli::DW_TAG_subprogram,
            None => is_wanted(tag) || self.nests && tag == gimli::DW_TAG_member,
        }
    }

    fn enter(&mut self, tag: DwTag, offset: UnitOffset, seen: &EntryAttributes) -> Result<(), EntryError> {
        let around = self.scopes.last().cloned().unwrap_or_else(|| "".into());
        if tag != gimli::DW_TAG_lexical_block {
            // The scope has a copy of it.
            self.store.list(around.as_bytes())?;
        }
        let scope = match tag {
            gimli::DW_TAG_lexical_block => around,
            gimli::DW_TAG_subprogram => {
                self.around_function.get_or_insert(self.scopes.len());
                self.functions.push((self.scopes.len(), self.die(offset)));
                self.scope_of_function(offset, seen, around)?
            }
            _ => match self.name_of_scope(offset, seen)? {
                None if tag != gimli::DW_TAG_namespace => match self.place_of_lambda(offset)? {
                    Some(place) => {
                        let function = self.functions.last().map(|(_, function)| *function);
                        let name = format!("{UNNUMBERED}{}}}", self.lambdas.len());
                        self.lambdas.push(Lambda { function, scope: around.clone(), place });
                        within(&around, Some(name.as_bytes())).into()
                    }
                    None => within(&around, None).into(),
                },
                name => within(&around, name).into(),
            },
        };
        self.scopes.push(scope);
        self.files.push(seen.file);
        Ok(())
    }

    /// clang writes no name beside the signature of a type.
    fn name_of_scope(&self, offset: UnitOffset, seen: &EntryAttributes) -> Result<Option<Text>, EntryError> {
        match text(self.store, self.index, seen)? {
            None if seen.signed => {
                let (unit, entry) = self.store.entry(self.die(offset))?;
                let name = signed_name(self.store, unit, &entry)?;
                name.map_or(Ok(()), |name| self.store.list(name))?;
                Ok(name)
            }
            name => Ok(name),
        }
    }

    fn die(&self, offset: UnitOffset) -> Die {
        Die(self.slot.start.saturating_add(offset.0 as u32))
    }

    /// File, line and column of a type without a name that is one of a lambda: it can be called.
    fn place_of_lambda(&self, offset: UnitOffset) -> Result<Option<[u64; 3]>, EntryError> {
        let (unit, entry) = self.store.entry(self.die(offset))?;
        let mut found = false;
        entry.each_child(unit, |child| -> Result<(), EntryError> {
            if child.tag() == gimli::DW_TAG_subprogram {
                let name = child.attr_value(gimli::DW_AT_name).and_then(|value| self.store.string(unit, value));
                found |= name.is_some_and(|name| name.starts_with(b"operator()"));
            }
            Ok(())
        })?;
        let file = match entry.attr_value(gimli::DW_AT_decl_file) {
            Some(AttributeValue::FileIndex(file)) => file,
            _ => 0,
        };
        let [line, column] =
            [gimli::DW_AT_decl_line, gimli::DW_AT_decl_column].map(|name| number(&entry, name).unwrap_or(0));
        Ok(found.then_some([file, line, column]))
    }

    /// Numbers the lambdas by their places: compilers write those of inner blocks behind others.
    fn number_lambdas(&mut self, partial: &mut Partial) {
        if self.lambdas.is_empty() {
            return;
        }
        let mut sorted: Vec<(&Lambda, usize)> = self.lambdas.iter().zip(0..).collect();
        sorted.sort_unstable();
        let mut numbers = vec![0; sorted.len()];
        for of_one in sorted.chunk_by(|(a, _), (b, _)| (a.function, &a.scope) == (b.function, &b.scope)) {
            for ((_, index), number) in of_one.iter().zip(1..) {
                numbers.get_mut(*index).into_iter().for_each(|own| *own = number);
            }
        }
        // Many entries share a scope, which may be long.
        let mut known: HashMap<usize, (Arc<str>, Arc<str>)> = HashMap::new();
        let mut renamed = |scope: &Arc<str>| {
            let key = scope.as_ptr() as usize;
            known.entry(key).or_insert_with(|| (scope.clone(), numbered(scope, &numbers))).1.clone()
        };
        partial.scopes.extend(self.unnumbered.iter().map(|(die, scope)| (*die, renamed(scope))));
        for scope in self.declared.values_mut().filter(|scope| scope.contains(UNNUMBERED)) {
            *scope = renamed(scope);
        }
    }

    /// The scope of what is in a function.
    fn scope_of_function(
        &self,
        offset: UnitOffset,
        seen: &EntryAttributes,
        around: Arc<str>,
    ) -> Result<Arc<str>, EntryError> {
        let start = Die(self.slot.start);
        // What is in a copy has origins of its own.
        if seen.origin.is_some() {
            return Ok(around);
        }
        let declaration = seen.specification.and_then(|at| self.store.target(start, at));
        let around = declaration.and_then(|(die, _)| self.declared.get(&die).cloned()).unwrap_or(around);
        let die = self.die(offset);
        let name = self.named(die, seen)?.map(|named| named.name);
        if seen.specification.is_some() {
            // Neither its name nor what is around its declaration has been charged here.
            self.store.list(around.as_bytes())?;
            self.store.list(name.unwrap_or_default())?;
        }
        Ok(within(&around, name.or(Some(NAMELESS.as_bytes()))).into())
    }

    /// Ends the innermost scope; there may be none.
    fn leave(&mut self) -> bool {
        let left = self.scopes.pop().is_some();
        self.files.pop();
        self.functions.pop_if(|(depth, _)| *depth >= self.scopes.len());
        self.around_function = self.around_function.filter(|around| *around < self.scopes.len());
        left
    }

    /// The scope of an entry that is read: its own, or that of the one that declares it.
    fn scope_of(&mut self, tag: DwTag, die: Die, seen: &EntryAttributes) -> Option<Arc<str>> {
        // Link-time optimisation writes the places of variables into units of its own.
        let declaration = seen.specification.or(seen.origin.filter(|_| tag == gimli::DW_TAG_variable));
        let declared = declaration.and_then(|at| self.store.target(Die(self.slot.start), at));
        let Some((declaration, _)) = declared else { return self.scopes.last().cloned() };
        let scope = self.declared.get(&declaration).cloned();
        if scope.is_none() {
            self.early.push((die, declaration));
        }
        scope
    }

    fn add(
        &mut self,
        tag: DwTag,
        offset: UnitOffset,
        seen: &EntryAttributes,
        partial: &mut Partial,
    ) -> Result<(), EntryError> {
        let die = self.die(offset);
        let scope = match self.nests || self.around_function.is_some() {
            true => self.scope_of(tag, die, seen),
            false => None,
        };
        if let Some(scope) = &scope
            && (seen.declaration || tag == gimli::DW_TAG_member || tag == gimli::DW_TAG_variable && !seen.located)
        {
            self.declared.insert(die, scope.clone());
        }
        if !is_wanted(tag) {
            return Ok(());
        }
        if let Some(origin) = seen.origin.filter(|_| tag == gimli::DW_TAG_subprogram) {
            let target = self.store.target(Die(self.slot.start), origin);
            partial.crosses_units |= target.is_some_and(|(_, leaves)| leaves);
            partial.copies.extend(target.map(|(origin, _)| (origin, die)));
            return Ok(());
        }
        if seen.declaration || tag == gimli::DW_TAG_variable && !seen.located {
            return Ok(());
        }
        let Some(Named { name, mut file, external }) = self.named(die, seen)? else { return Ok(()) };
        let scope = match scope {
            Some(scope) if scope.contains(LAMBDA) => {
                // gcc says where the lambda's type is, and not where its function is.
                file = if file == 0 { self.files.last().copied().unwrap_or(0) } else { file };
                Some(self.linked_scope(die)?.unwrap_or_else(|| without_nameless(scope)))
            }
            Some(scope) if scope.contains(NAMELESS) => {
                Some(self.linked_scope(die)?.unwrap_or_else(|| without_nameless(scope)))
            }
            scope => scope,
        };
        let scopes = scope.iter().map(|scope| (die, scope.clone()));
        match scope.as_ref().is_some_and(|scope| scope.contains(UNNUMBERED)) {
            true => self.unnumbered.extend(scopes),
            false => partial.scopes.extend(scopes),
        }
        match type_tag(tag) {
            Some(tag) => {
                partial.types.entry((tag, name.as_ptr() as usize, scope)).or_insert((name, die));
            }
            None if tag == gimli::DW_TAG_subprogram => {
                partial.functions.push(NamedFunction { name, die, file, external, scope: &[] });
            }
            None => partial.variables.push((name, die)),
        }
        Ok(())
    }

    /// The scope of a lambda's function as linkers know it: they number those of one function with the same parameters.
    fn linked_scope(&self, die: Die) -> Result<Option<Arc<str>>, EntryError> {
        let chain = self.store.origins(die)?;
        let linked = chain.iter().find_map(|(_, unit, entry)| {
            let linked = entry.attr_value(gimli::DW_AT_linkage_name);
            self.store.string(unit, linked.or_else(|| entry.attr_value(gimli::DW_AT_MIPS_linkage_name))?)
        });
        let whole = linked.and_then(|linked| demangled(std::str::from_utf8(linked).ok()?));
        self.store.list(whole.as_deref().unwrap_or_default().as_bytes())?;
        let plain = whole.as_deref().map(without_outer_parameters);
        Ok(plain.and_then(|plain| split_scope(&plain).map(|(scope, _)| scope.into())))
    }

    /// Name and file of an entry; they may be those of the one that declares it.
    fn named(&self, die: Die, seen: &EntryAttributes) -> Result<Option<Named>, EntryError> {
        let EntryAttributes { file, external, .. } = *seen;
        if seen.name.is_some() || seen.specification.is_none() && seen.origin.is_none() {
            return Ok(text(self.store, self.index, seen)?.map(|name| Named { name, file, external }));
        }
        let chain = self.store.origins(die)?;
        let mut name =
            chain.iter().filter_map(|(_, unit, entry)| self.store.string(unit, entry.attr_value(gimli::DW_AT_name)?));
        let here = self.store.slot_of(die)?;
        let mut files = chain
            .iter()
            .filter(|(die, ..)| self.store.slot_of(*die).is_ok_and(|slot| slot == here))
            .filter_map(|(.., entry)| match entry.attr_value(gimli::DW_AT_decl_file) {
                Some(AttributeValue::FileIndex(file)) => Some(file as u32),
                _ => None,
            });
        let external = chain.iter().any(|(.., entry)| flag(entry, gimli::DW_AT_external));
        let file = files.next().unwrap_or(0);
        Ok(name.next().map(|name| Named { name, file, external }))
    }
}

/// What tells functions of one name apart, too.
struct Named {
    name: Text,
    file: u32,
    external: bool,
}

/// The name; the unit need not be parsed as a whole where the form is an offset of a string.
fn text(store: &Store, index: usize, seen: &EntryAttributes) -> Result<Option<Text>, EntryError> {
    let name = match seen.name {
        Some(AttributeValue::DebugStrRef(offset)) => {
            store.sections(Die(store.slot(index)?.start)).string(offset).ok().map(|text| text.slice())
        }
        Some(AttributeValue::String(text)) => Some(text.slice()),
        Some(value) => {
            let unit: &Unit = store.unit(index)?;
            store.string(unit, value)
        }
        None => None,
    };
    name.map_or(Ok(()), |name| store.list(name))?;
    Ok(name)
}

/// Reads the attributes of an entry; of one that is not wanted, only where its next sibling is.
fn read_attributes(
    raw: &mut gimli::EntriesRaw<Bytes>,
    abbreviation: &gimli::Abbreviation,
    wanted: bool,
) -> gimli::Result<EntryAttributes> {
    let mut seen = EntryAttributes::default();
    let specs = abbreviation.attributes();
    let mut skipped = 0;
    for (at, spec) in specs.iter().enumerate() {
        let name = spec.name();
        let sibling = name == gimli::DW_AT_sibling && abbreviation.has_children();
        if !(sibling || wanted && is_read(name)) {
            continue;
        }
        raw.skip_attributes(specs.get(skipped..at).unwrap_or_default())?;
        let value = raw.read_attribute(*spec)?.value();
        skipped = at + 1;
        seen.take(name, value);
    }
    raw.skip_attributes(specs.get(skipped..).unwrap_or_default())?;
    Ok(seen)
}
