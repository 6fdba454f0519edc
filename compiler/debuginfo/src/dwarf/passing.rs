// SPDX-License-Identifier: GPL-2.0-or-later

//! What calling conventions ask: what a body of a function is passed, which classes of C++ are passed by address, and where a
//! function that was compiled without optimisation has stored its parameters.

use gimli::AttributeValue;

use super::store::{Die, Entry, EntryError, Unit, die_at, flag, number};
use super::{Dwarf, scan};
use crate::facts::{Convention, FunctionId, MAX_CHAIN, Passed, Prologue, TypeId, TypePassing, TypeTag};
use crate::object::{Address, Transfer, transfers};

/// Classes within classes, and members and functions of all of them, that are looked at.
const MOST_LEVELS: usize = 16;
const MOST_MEMBERS: usize = 4096;
const MOST_PARAMETERS: usize = 256;

/// Bytes of code that a function may take to store its parameters.
const MOST_PROLOGUE: u64 = 4096;

/// Bytes of a function's code in which jumps back to the end of its prologue are looked for.
const MOST_BODY: u64 = 1 << 20;

/// What gcc adds to the names of copies whose parameters are not those of the function.
const CHANGED: [&str; 3] = [".isra.", ".constprop.", ".part."];

/// That of copies of which gcc has removed parameters, or the result, which callers do not use.
const WITHOUT_SOME: &str = ".isra.";

/// As clang and rustc mark functions of which they have removed parameters or the result.
fn is_nonstandard(function: &Entry) -> bool {
    function.attr_value(gimli::DW_AT_calling_convention) == Some(AttributeValue::CallingConvention(gimli::DW_CC_nocall))
}

impl Dwarf {
    /// What is passed to the body that begins at the address, in order; None: that is not known.
    pub(super) fn read_passed(&self, id: FunctionId, at: u64) -> Result<Option<Vec<Passed>>, EntryError> {
        let Some(copy) = self.body_at(id, at)? else { return Ok(None) };
        let chain = self.store.origins(copy)?;
        let symbol = self.body(copy, "")?.and_then(|body| body.symbol).unwrap_or_default();
        if chain.iter().any(|(.., entry)| is_nonstandard(entry)) || CHANGED.iter().any(|suffix| symbol.contains(suffix))
        {
            return Ok(None);
        }
        // Compilers pass what they like in registers to local functions of 32-bit programs.
        let external = chain.iter().any(|(.., entry)| flag(entry, gimli::DW_AT_external));
        if self.store.machine.word() == 4 && !external && self.is_optimised(copy)? {
            return Ok(None);
        }
        let own = self.formal_parameters(copy, 0)?;
        if own.len() > MOST_PARAMETERS {
            return Ok(None);
        }
        let written = |parameters: &[Formal]| parameters.iter().filter(|parameter| !parameter.artificial).count();
        if copy != id.die() && written(&own) != written(&self.formal_parameters(id.die(), 0)?) {
            return Ok(None);
        }
        Ok(own.into_iter().map(|parameter| parameter.passed).collect())
    }

    /// See [`crate::source::Source::may_return_nothing`].
    pub(super) fn read_may_return_nothing(&self, id: FunctionId, at: Address) -> Result<Option<String>, EntryError> {
        let Some(at) = self.elf.flat(at) else { return Ok(None) };
        let Some(copy) = self.body_at(id, at)? else { return Ok(None) };
        let symbol = self.body(copy, "")?.and_then(|body| body.symbol).unwrap_or_default();
        if symbol.contains(WITHOUT_SOME) {
            return Ok(Some(format!("it is `{symbol}`, a copy without parameters or a result that nobody uses")));
        }
        let chain = self.store.origins(copy)?;
        let is_marked = chain.iter().any(|(.., entry)| is_nonstandard(entry));
        let why = "the compiler has marked it as one that is not called as usual (DW_CC_nocall)";
        Ok(is_marked.then(|| why.to_string()))
    }

    fn formal_parameters(&self, function: Die, depth: usize) -> Result<Vec<Formal>, EntryError> {
        let (unit, children) = self.children(function)?;
        let mut found = Vec::new();
        for entry in children.iter() {
            match entry.tag() {
                gimli::DW_TAG_formal_parameter => {
                    let origins = self.store.origins_of(die_at(unit, entry.offset())?, unit, entry.clone())?;
                    let artificial = origins.iter().any(|(.., entry)| flag(entry, gimli::DW_AT_artificial));
                    let mut type_id = None;
                    for (_, unit, entry) in &origins {
                        type_id = type_id.or(self.type_of(unit, entry)?);
                    }
                    let name = origins.iter().find_map(|(_, unit, entry)| self.store.name(unit, entry));
                    found.push(Formal { artificial, passed: type_id.map(|type_id| Passed { name, type_id }) });
                }
                gimli::DW_TAG_GNU_formal_parameter_pack if depth == 0 => {
                    found.extend(self.formal_parameters(die_at(unit, entry.offset())?, 1)?);
                }
                _ => {}
            }
        }
        Ok(found)
    }

    fn body_at(&self, id: FunctionId, at: u64) -> Result<Option<Die>, EntryError> {
        for copy in self.copies(id)? {
            if self.body_entry(copy)? == Some(at) {
                return Ok(Some(copy));
            }
        }
        Ok(None)
    }

    pub(super) fn read_convention(&self, id: FunctionId) -> Result<Convention, EntryError> {
        let chain = self.store.origins(id.die())?;
        // A unit shared by several others has no language.
        let mut dies: Vec<Die> = chain.iter().map(|(die, ..)| *die).collect();
        dies.extend(self.copies(id)?);
        let (mut is_rust, mut is_known) = (false, true);
        for die in dies {
            let language = self.language(self.store.unit_of(die)?)?;
            is_rust |= language == Some(gimli::DW_LANG_Rust);
            is_known &= language.is_none_or(calls_as_c);
        }
        let linked = self.linkage_name(&chain).unwrap_or_default();
        let begins = |with: &[u8]| linked.starts_with(with);
        Ok(match () {
            () if is_rust && (begins(b"_ZN") || begins(b"_R")) => Convention::Rust,
            () if is_rust => Convention::Either,
            () if is_known => Convention::C,
            () => Convention::Unknown,
        })
    }

    fn language(&self, unit: &Unit) -> Result<Option<gimli::DwLang>, EntryError> {
        let (_, root) = self.store.entry(die_at(unit, gimli::UnitOffset(unit.header.header_size()))?)?;
        Ok(match root.attr_value(gimli::DW_AT_language) {
            Some(AttributeValue::Language(language)) => Some(language),
            _ => None,
        })
    }

    pub(super) fn read_type_passing(&self, id: TypeId) -> Result<TypePassing, EntryError> {
        let Some(die) = self.defined(id.die())? else { return Ok(TypePassing::default()) };
        let (_, entry) = self.store.entry(die)?;
        let vector = flag(&entry, gimli::DW_AT_GNU_vector);
        let mut alignment = number(&entry, gimli::DW_AT_alignment).unwrap_or(0);
        let by_address = match is_class(&entry) {
            false => Some(false),
            true => {
                for member in self.children(die)?.1.iter().filter(|entry| entry.tag() == gimli::DW_TAG_member) {
                    alignment = alignment.max(number(member, gimli::DW_AT_alignment).unwrap_or(0));
                }
                self.is_by_address(die, MOST_LEVELS, &mut { MOST_MEMBERS })?
            }
        };
        Ok(TypePassing { by_address, vector, alignment })
    }

    /// See [`TypePassing::by_address`].
    fn is_by_address(&self, class: Die, levels: usize, left: &mut usize) -> Result<Option<bool>, EntryError> {
        let Some((levels, rest)) = levels.checked_sub(1).zip(left.checked_sub(1)) else { return Ok(None) };
        *left = rest;
        let (unit, entry) = self.store.entry(class)?;
        match entry.attr_value(gimli::DW_AT_calling_convention) {
            Some(AttributeValue::CallingConvention(gimli::DW_CC_pass_by_reference)) => return Ok(Some(true)),
            Some(AttributeValue::CallingConvention(gimli::DW_CC_pass_by_value)) => return Ok(Some(false)),
            _ => {}
        }
        // Only of C++ has a class functions that make and end its objects. A unit shared by several others has no language.
        let language = self.language(unit)?;
        if language.is_some_and(|language| language == gimli::DW_LANG_Rust || !scan::is_nesting(language)) {
            return Ok(Some(false));
        }
        let (_, children) = self.children(class)?;
        let (mut is_known, mut kept, mut deleted) = (true, 0, 0);
        for entry in children.iter() {
            let Some(rest) = left.checked_sub(1) else { return Ok(None) };
            *left = rest;
            let is_virtual = number(entry, gimli::DW_AT_virtuality).unwrap_or(0) != 0
                || matches!(entry.attr_value(gimli::DW_AT_virtuality), Some(AttributeValue::Virtuality(it)) if it.0 != 0);
            match entry.tag() {
                gimli::DW_TAG_inheritance | gimli::DW_TAG_subprogram if is_virtual => return Ok(Some(true)),
                gimli::DW_TAG_subprogram => match self.special(class, unit, entry)? {
                    Special::None => {}
                    Special::Other => return Ok(Some(true)),
                    Special::DeletedCopy => deleted += 1,
                    Special::DefaultCopy => kept += 1,
                },
                gimli::DW_TAG_inheritance | gimli::DW_TAG_member => {
                    let name = self.store.name(unit, entry).unwrap_or_default();
                    if name.starts_with("_vptr") {
                        return Ok(Some(true));
                    }
                    if flag(entry, gimli::DW_AT_declaration) || flag(entry, gimli::DW_AT_external) {
                        continue;
                    }
                    let Some(of) = self.store.reference_attr(unit, entry, gimli::DW_AT_type)? else { continue };
                    let of = self.plain(of, true)?;
                    if !is_class(&self.store.entry(of)?.1) {
                        continue;
                    }
                    match self.defined(of)? {
                        Some(of) if of != class => match self.is_by_address(of, levels, left)? {
                            Some(true) => return Ok(Some(true)),
                            Some(false) => {}
                            None => is_known = false,
                        },
                        _ => is_known = false,
                    }
                }
                _ => {}
            }
        }
        Ok(if deleted > 0 && kept == 0 { Some(true) } else { is_known.then_some(false) })
    }

    /// What a function of a class is for its objects' passing.
    fn special(&self, class: Die, unit: &Unit, function: &Entry) -> Result<Special, EntryError> {
        let name = self.store.name(unit, function).unwrap_or_default();
        let (own_unit, own) = self.store.entry(class)?;
        let class_name = self.store.name(own_unit, &own).unwrap_or_default();
        let class_name = class_name.split('<').next().unwrap_or_default();
        let ends = name.starts_with('~');
        if !ends && (name != class_name || !self.takes_one_of(class, unit, function)?) {
            return Ok(Special::None);
        }
        // One that the compiler has declared does what the members' own do.
        let is_default = number(function, gimli::DW_AT_defaulted) == Some(u64::from(gimli::DW_DEFAULTED_in_class.0))
            || flag(function, gimli::DW_AT_artificial);
        let is_deleted = flag(function, gimli::DW_AT_deleted);
        Ok(match () {
            () if ends && (is_default || is_deleted) => Special::None,
            () if is_deleted => Special::DeletedCopy,
            () if is_default => Special::DefaultCopy,
            () => Special::Other,
        })
    }

    /// Whether a constructor takes another object of the class by reference, and nothing else.
    fn takes_one_of(&self, class: Die, unit: &Unit, function: &Entry) -> Result<bool, EntryError> {
        let (_, children) = self.children(die_at(unit, function.offset())?)?;
        let parameters = children.iter().filter(|entry| entry.tag() == gimli::DW_TAG_formal_parameter);
        let mut own = parameters.filter(|entry| !flag(entry, gimli::DW_AT_artificial));
        let (Some(only), None) = (own.next(), own.next()) else { return Ok(false) };
        let Some(reference) = self.store.reference_attr(unit, only, gimli::DW_AT_type)? else { return Ok(false) };
        let (unit, reference) = self.store.entry(self.plain(reference, false)?)?;
        if !matches!(reference.tag(), gimli::DW_TAG_reference_type | gimli::DW_TAG_rvalue_reference_type) {
            return Ok(false);
        }
        let Some(target) = self.store.reference_attr(unit, &reference, gimli::DW_AT_type)? else { return Ok(false) };
        let target = self.plain(target, false)?;
        Ok(target == class || self.defined(target)? == Some(class))
    }

    /// What a type is without other names and qualifiers and, if asked for, what an array has.
    fn plain(&self, die: Die, elements: bool) -> Result<Die, EntryError> {
        let mut at = die;
        for _ in 0..MAX_CHAIN {
            let (unit, entry) = self.store.entry(at)?;
            match entry.tag() {
                gimli::DW_TAG_typedef
                | gimli::DW_TAG_const_type
                | gimli::DW_TAG_volatile_type
                | gimli::DW_TAG_restrict_type
                | gimli::DW_TAG_atomic_type => {}
                gimli::DW_TAG_array_type if elements => {}
                _ => return Ok(at),
            }
            match self.store.reference_attr(unit, &entry, gimli::DW_AT_type)? {
                Some(next) => at = next,
                None => return Ok(at),
            }
        }
        Err(EntryError::at(die, "names of a type without an end"))
    }

    /// The entry itself or, of a class that it only declares, the definition.
    fn defined(&self, die: Die) -> Result<Option<Die>, EntryError> {
        let (unit, entry) = self.unrestricted(die)?;
        if !flag(&entry, gimli::DW_AT_declaration) {
            return Ok(Some(die_at(unit, entry.offset())?));
        }
        let tag = if entry.tag() == gimli::DW_TAG_union_type { TypeTag::Union } else { TypeTag::Struct };
        self.type_definition(unit, &entry, tag)
    }

    /// See [`crate::source::Source::prologue`].
    pub(super) fn read_prologue(&self, id: FunctionId, entry: Address) -> Result<Option<Prologue>, EntryError> {
        let Some(at) = self.elf.flat(entry) else { return Ok(None) };
        let Some(copy) = self.body_at(id, at)? else { return Ok(None) };
        if self.is_optimised(copy)? {
            return Ok(None);
        }
        let statements = self.read_statements(id)?.into_iter().map(|statement| statement.address);
        let Some(end) = statements.filter(|at| at.section == entry.section && *at > entry).min() else {
            return Ok(None);
        };
        let Some(end_at) = self.elf.flat(end).filter(|end| end.saturating_sub(at) <= MOST_PROLOGUE) else {
            return Ok(None);
        };
        let bits = 8 * u32::from(self.store.machine.word());
        let size = self.body(copy, "")?.map_or(0, |body| body.size).min(MOST_BODY);
        let code = self.store.code.as_ref().unwrap_or(&self.elf);
        let sections = code.code_of_any_program();
        if !self.store.may_decode(size.saturating_add(sections.len() as u64), code) {
            return Ok(None);
        }
        // A loop may begin there: the place would be hit each time around.
        let jumps = sections.iter().any(|(start, bytes)| {
            let inside = |at: u64| at.checked_sub(*start).and_then(|inside| usize::try_from(inside).ok());
            let code = inside(at).zip(inside(at.saturating_add(size).max(end_at)));
            let found = code.and_then(|(first, end)| bytes.get(first..end)).map(|code| transfers(code, at, bits));
            let is_on_the_way =
                |transfer: &Transfer| !transfer.call && (transfer.at < end_at || transfer.to == Some(end_at));
            found.is_some_and(|found| found.iter().any(is_on_the_way))
        });
        Ok(Some(Prologue { end, is_passed_once: !jumps }))
    }

    /// Whether a body was compiled with optimisation, as far as that can be seen.
    fn is_optimised(&self, copy: Die) -> Result<bool, EntryError> {
        let (unit, entry) = self.store.entry(copy)?;
        let (_, root) = self.store.entry(die_at(unit, gimli::UnitOffset(unit.header.header_size()))?)?;
        let producer = root.attr_value(gimli::DW_AT_producer).and_then(|value| self.store.string(unit, value));
        let producer = String::from_utf8_lossy(producer.unwrap_or_default());
        // gcc writes its options there. Of optimised code both gcc and clang say that all calls are described.
        let level = producer.split(' ').filter_map(|word| word.strip_prefix("-O")).next_back();
        let describes_calls = [gimli::DW_AT_call_all_calls, gimli::DW_AT_GNU_all_call_sites];
        Ok(level.map_or_else(|| describes_calls.iter().any(|name| flag(&entry, *name)), |level| level != "0"))
    }
}

/// Languages whose compilers call functions as those of C: values that they pass by their addresses have types that say so.
fn calls_as_c(language: gimli::DwLang) -> bool {
    !scan::is_nesting(language)
        || matches!(
            language,
            gimli::DW_LANG_C_plus_plus
                | gimli::DW_LANG_C_plus_plus_03
                | gimli::DW_LANG_C_plus_plus_11
                | gimli::DW_LANG_C_plus_plus_14
                | gimli::DW_LANG_C_plus_plus_17
                | gimli::DW_LANG_C_plus_plus_20
                | gimli::DW_LANG_ObjC
                | gimli::DW_LANG_ObjC_plus_plus
                | gimli::DW_LANG_UPC
                | gimli::DW_LANG_Ada83
                | gimli::DW_LANG_Ada95
                | gimli::DW_LANG_Fortran77
                | gimli::DW_LANG_Fortran90
                | gimli::DW_LANG_Fortran95
                | gimli::DW_LANG_Fortran03
                | gimli::DW_LANG_Fortran08
                | gimli::DW_LANG_Fortran18
                | gimli::DW_LANG_Ada2005
                | gimli::DW_LANG_Ada2012
                | gimli::DW_LANG_Rust
        )
}

/// A parameter; without a type, if its entry has none.
struct Formal {
    artificial: bool,
    passed: Option<Passed>,
}

/// What a function of a class does.
enum Special {
    /// It neither copies nor ends objects, or only as the compiler would.
    None,
    /// A copy that the class says is not to be made.
    DeletedCopy,
    /// A copy byte by byte, unless members have another one.
    DefaultCopy,
    /// Something of its own.
    Other,
}

fn is_class(entry: &Entry) -> bool {
    matches!(entry.tag(), gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type)
}
