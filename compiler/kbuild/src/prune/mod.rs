// SPDX-License-Identifier: GPL-2.0-or-later

//! Removes unused parts from the runtime's object of a module: less memory in the kernel, less attack surface, faster
//! links.
//!
//! The runtime is compiled with a section for each function and each variable. The linker's own collection of unused
//! sections (`ld --gc-sections`) is of no use to a kernel module: the kernel's tables (unwind data, alternatives,
//! exceptions, places of retpolines and returns, ...) have one section for the whole object, refer to every function and
//! would hold all of them. Here an entry of such a table belongs to the function that it is about, and goes with it.
//!
//! The walk begins with the sections that the kernel's loader reads (init and exit code, parameters, information) and
//! with the symbols that the script's own objects refer to. What is not understood is kept, with all that it refers to.

mod strings;
mod tables;

use std::collections::HashSet;

use object::build::Id;
use object::build::elf::{Builder, Relocation, Section, SectionData, SectionId, SymbolId};
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSymbol, elf};

use tables::Table;

/// The object without what neither the kernel nor an object of `users` needs. Err: why it has to stay as it is.
pub(super) fn prune(object: &[u8], users: &[Vec<u8>]) -> Result<Vec<u8>, String> {
    Whole::read(object)?.prune(users)
}

/// An object that was read: that takes longer than to leave parts of it out, and can be done before those who use it are
/// compiled.
pub(super) struct Whole<'o> {
    builder: Builder<'o>,
    graph: Graph,
}

impl<'o> Whole<'o> {
    /// Err: it cannot be read.
    pub(super) fn read(object: &'o [u8]) -> Result<Whole<'o>, String> {
        let builder = Builder::read64(object).map_err(|error| format!("reading the runtime's object: {error}"))?;
        let graph = Graph::of(&builder);
        Ok(Whole { builder, graph })
    }

    /// See [`prune`].
    pub(super) fn prune(self, users: &[Vec<u8>]) -> Result<Vec<u8>, String> {
        let Whole { mut builder, graph } = self;
        let mut wanted = HashSet::new();
        for user in users {
            wanted.extend(undefined(user)?);
        }
        let wanted = defining(&builder, &wanted);
        let held = graph.held();
        let kept = graph.reached(&wanted, &held, |_| true);
        // What such code alone returns to is not there for its own sake: half of an optional part would be taken for the part.
        let meant = graph.reached(&wanted, &held, |id| !is_apart(builder.sections.get(id)));
        graph.leave_out(&mut builder, &kept, &meant)?;
        let mut out = Vec::new();
        builder.write(&mut out).map_err(|error| format!("writing the runtime's object: {error}"))?;
        Ok(out)
    }
}

/// Whether it is code that the compiler has put apart from its functions, to which it returns, or a table of places in functions
/// whose form is not known.
fn is_apart(section: &Section) -> bool {
    let name = String::from_utf8_lossy(&section.name);
    matches!(&*name, ".fixup" | ".altinstr_replacement" | ".altinstr_aux") || tables::is_named(&name)
}

/// Symbols that the object expects in another one.
fn undefined(object: &[u8]) -> Result<Vec<String>, String> {
    let file =
        ElfFile64::<Endianness>::parse(object).map_err(|error| format!("reading an object of the script: {error}"))?;
    let names = file.symbols().filter(object::ObjectSymbol::is_undefined).filter_map(|symbol| symbol.name().ok());
    Ok(names.map(str::to_string).collect())
}

/// The sections of the symbols of these names that other objects can use.
fn defining(builder: &Builder, wanted: &HashSet<String>) -> Vec<usize> {
    let named = builder.symbols.iter().filter(|symbol| symbol.st_bind() != elf::STB_LOCAL);
    let sections = named.filter_map(|symbol| {
        let is_wanted = || std::str::from_utf8(&symbol.name).is_ok_and(|name| wanted.contains(name));
        symbol.section.filter(|_| is_wanted())
    });
    sections.map(|section| section.index()).collect()
}

/// What a section is to the walk.
#[derive(Debug)]
enum Role {
    /// A function or variable: kept if something that is kept refers to it.
    Unit,
    /// Its references keep nothing: they become null if their target is left out (family.c, optional.h).
    Weak,
    /// Each entry is removed with the code or data that it describes.
    Table(Table),
    /// Kept, with all that it refers to: the kernel reads it, or its readers are not known.
    Root(SectionId),
    /// Not loaded.
    Aside,
}

/// Sections by their numbers, and how they refer to each other.
struct Graph {
    roles: Vec<Role>,
    /// Relocations of each section.
    relocations: Vec<Vec<Relocation>>,
    /// The section with them.
    relocated_by: Vec<Option<SectionId>>,
    /// Where each symbol is.
    places: Vec<Option<SectionId>>,
}

/// Sections with a part for each function or variable (gcc, -ffunction-sections and -fdata-sections).
fn is_unit(name: &str) -> bool {
    [".text", ".rodata", ".data", ".bss"]
        .iter()
        .any(|kind| name.strip_prefix(kind).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

/// Says which entries of tables are which, for tools that make live patches (objtool's klp, 6.19): of no use here, and
/// wrong once entries have moved.
const ANNOTATIONS: &str = ".discard.annotate_data";
/// The table of families in runtime-c/family.c, and references to optional functions (runtime-c/optional.h).
const WEAK: [&str; 2] = [".rodata.spile_families", ".rodata.spile_optional"];

impl Graph {
    fn of(builder: &Builder) -> Graph {
        let places: Vec<Option<SectionId>> =
            all(builder.symbols.iter(), |symbol| symbol.id().index(), |symbol| symbol.section);
        let count = builder.sections.iter().map(|section| section.id().index() + 1).max().unwrap_or(0);
        let mut graph =
            Graph { roles: Vec::new(), relocations: vec![Vec::new(); count], relocated_by: vec![None; count], places };
        for section in &builder.sections {
            let SectionData::Relocation(relocations) = &section.data else { continue };
            let Some(target) = section.sh_info_section.map(|id| id.index()) else { continue };
            if let Some(place) = graph.relocations.get_mut(target) {
                place.clone_from(relocations);
                place.sort_by_key(|relocation| relocation.r_offset);
            }
            if let Some(place) = graph.relocated_by.get_mut(target) {
                *place = Some(section.id());
            }
        }
        let mut roles = Vec::with_capacity(count);
        for section in &builder.sections {
            let id = section.id().index();
            roles.resize_with(id, || Role::Aside);
            roles.push(graph.role(section, builder));
        }
        graph.roles = roles;
        graph.without_tables_that_are_referred_to(builder);
        graph
    }

    fn role(&self, section: &Section, builder: &Builder) -> Role {
        let name = String::from_utf8_lossy(&section.name);
        let loaded = section.sh_flags.contains(elf::SHF_ALLOC);
        match &*name {
            name if WEAK.contains(&name) => Role::Weak,
            // Nothing refers to it.
            ANNOTATIONS => Role::Unit,
            name if loaded && is_unit(name) => Role::Unit,
            name if loaded || name.starts_with(".discard.") => {
                Table::of(section, self.relocations_of(section.id()), builder)
                    .map_or(Role::Root(section.id()), Role::Table)
            }
            _ => Role::Aside,
        }
    }

    fn relocations_of(&self, id: SectionId) -> &[Relocation] {
        self.relocations.get(id.index()).map_or(&[], Vec::as_slice)
    }

    fn target(&self, relocation: &Relocation) -> Option<SectionId> {
        self.places.get(relocation.symbol?.index()).copied().flatten()
    }

    /// The entries of a table move, which nobody who points to one would notice. Debug information may describe one where it was.
    fn without_tables_that_are_referred_to(&mut self, builder: &Builder) {
        let annotations = builder.sections.iter().find(|section| *section.name == *ANNOTATIONS.as_bytes());
        let annotations = annotations.map(|section| section.id().index());
        let targets: Vec<usize> = self
            .relocations
            .iter()
            .enumerate()
            .filter(|(id, _)| annotations != Some(*id) && !matches!(self.roles.get(*id), Some(Role::Aside)))
            .flat_map(|(_, relocations)| relocations)
            .filter_map(|relocation| self.target(relocation))
            .map(|id| id.index())
            .collect();
        for target in targets {
            if let Some(role) = self.roles.get_mut(target)
                && let Role::Table(table) = role
            {
                *role = Role::Root(table.section);
            }
        }
    }

    /// What entries of tables refer to: with the section that each entry is about, if it is about one.
    fn held(&self) -> Held {
        let mut held = Held { by: vec![Vec::new(); self.roles.len()], anyway: Vec::new() };
        for role in &self.roles {
            let Role::Table(table) = role else { continue };
            for entry in table.entries() {
                let targets = entry.relocations.iter().filter_map(|relocation| self.target(relocation));
                let targets = targets.map(|id| id.index());
                match self.owner(entry) {
                    // It needs no entry to keep itself.
                    Some(owner) => {
                        held.by
                            .get_mut(owner)
                            .into_iter()
                            .for_each(|held| held.extend(targets.clone().filter(|target| *target != owner)));
                    }
                    None => held.anyway.extend(targets),
                }
            }
        }
        held
    }

    /// Which sections are kept, where the walk begins with these of the sections that are kept in any case, and with `wanted`.
    fn reached(&self, wanted: &[usize], held: &Held, begins: impl Fn(SectionId) -> bool) -> Vec<bool> {
        let mut walk = Reachable { kept: vec![false; self.roles.len()], waiting: Vec::new() };
        for (id, role) in self.roles.iter().enumerate() {
            if let Role::Root(section) = role
                && begins(*section)
            {
                walk.reach(id);
            }
        }
        held.anyway.iter().chain(wanted).for_each(|id| walk.reach(*id));
        while let Some(id) = walk.waiting.pop() {
            let weak = matches!(self.roles.get(id), Some(Role::Weak));
            let own = self.relocations.get(id).into_iter().flatten().filter(|_| !weak);
            own.filter_map(|relocation| self.target(relocation)).for_each(|target| walk.reach(target.index()));
            held.by.get(id).into_iter().flatten().for_each(|target| walk.reach(*target));
        }
        // A table has the remaining entries; sections that are not loaded take no memory.
        for (kept, role) in walk.kept.iter_mut().zip(&self.roles) {
            *kept |= matches!(role, Role::Table(_) | Role::Aside);
        }
        walk.kept
    }

    /// The function or variable that an entry of a table is about.
    fn owner(&self, entry: tables::Entry) -> Option<usize> {
        self.target(entry.relocations.first()?).map(|id| id.index())
    }

    /// Deletes the sections that are not kept. Weak references are only to what is meant to be there.
    fn leave_out(&self, builder: &mut Builder, kept: &[bool], meant: &[bool]) -> Result<(), String> {
        let is_meant = |id: Option<SectionId>| id.is_none_or(|id| meant.get(id.index()).copied().unwrap_or(true));
        let is_kept = |id: Option<SectionId>| id.is_none_or(|id| kept.get(id.index()).copied().unwrap_or(true));
        for section in &mut builder.sections {
            let relocated =
                matches!(section.data, SectionData::Relocation(_)).then_some(section.sh_info_section).flatten();
            section.delete = !is_kept(Some(section.id())) || !is_kept(relocated);
        }
        for role in &self.roles {
            let Role::Table(table) = role else { continue };
            let is_left =
                |entry: &tables::Entry| self.owner(*entry).is_none_or(|owner| kept.get(owner).copied().unwrap_or(true));
            let left: Vec<tables::Entry> = table.entries().filter(is_left).collect();
            let by = self.relocated_by.get(table.section.index()).copied().flatten();
            table.rewrite(builder, by, &left);
            // Compilers link a table to the first function of the object (SHF_LINK_ORDER).
            let first = left.first().and_then(|entry| self.target(entry.relocations.first()?));
            if let Some(link) = &mut builder.sections.get_mut(table.section).sh_link_section {
                *link = first.unwrap_or(*link);
            }
        }
        for (id, by) in self.relocated_by.iter().enumerate() {
            let lenient = matches!(self.roles.get(id), Some(Role::Weak | Role::Aside));
            let Some(by) = by.filter(|by| !builder.sections.get(*by).delete) else { continue };
            let SectionData::Relocation(relocations) = &mut builder.sections.get_mut(by).data else { continue };
            let before = relocations.len();
            let weak = matches!(self.roles.get(id), Some(Role::Weak));
            relocations.retain(|relocation| {
                let target = self.target(relocation);
                is_kept(target) && (!weak || is_meant(target))
            });
            if relocations.len() != before && !lenient {
                return Err("a kept section refers to a removed one".into());
            }
        }
        strings::shorten(builder, |relocation| self.target(relocation))?;
        let is_in_table = |id: SectionId| matches!(self.roles.get(id.index()), Some(Role::Table(_)));
        delete_symbols(builder, |id| !is_kept(Some(id)), is_in_table);
        Ok(())
    }
}

/// Deletes the symbols in removed sections, those of entries of tables, which nothing refers to, those of the kernel that nothing
/// refers to any more, and names of constants.
fn delete_symbols(
    builder: &mut Builder,
    is_left_out: impl Fn(SectionId) -> bool,
    is_in_table: impl Fn(SectionId) -> bool,
) {
    let relocations = builder.sections.iter().filter_map(|section| match &section.data {
        SectionData::Relocation(relocations) => Some(relocations),
        _ => None,
    });
    // They are found by their sections and offsets.
    let constants: Vec<SectionId> = builder
        .sections
        .iter()
        .filter(|section| section.name.starts_with(b".rodata") || *section.name == *b".modinfo")
        .map(Section::id)
        .collect();
    let used: Vec<SymbolId> = relocations.flatten().filter_map(|relocation| relocation.symbol).collect();
    let count = used.iter().map(|id| id.index() + 1).max().unwrap_or(0);
    let mut is_used = vec![false; count];
    for id in used {
        if let Some(used) = is_used.get_mut(id.index()) {
            *used = true;
        }
    }
    for symbol in &mut builder.symbols {
        let used = is_used.get(symbol.id().index()).copied().unwrap_or(false);
        symbol.delete = match symbol.section {
            Some(section) => {
                let unnamed = !used && symbol.st_bind() == elf::STB_LOCAL && constants.contains(&section);
                is_left_out(section) || symbol.st_type() != elf::STT_SECTION && (is_in_table(section) || unnamed)
            }
            None => symbol.st_shndx == elf::SHN_UNDEF && !used,
        };
    }
}

/// What is kept for entries of tables, by numbers of sections.
struct Held {
    /// If this section is kept.
    by: Vec<Vec<usize>>,
    /// In any case: nothing says what the entries are about.
    anyway: Vec<usize>,
}

/// Sections that are kept, and those whose references were not looked at yet.
struct Reachable {
    kept: Vec<bool>,
    waiting: Vec<usize>,
}

impl Reachable {
    fn reach(&mut self, id: usize) {
        if let Some(kept @ false) = self.kept.get_mut(id) {
            *kept = true;
            self.waiting.push(id);
        }
    }
}

/// A vector by numbers of the items.
fn all<T, V: Clone>(
    items: impl Iterator<Item = T>,
    number: impl Fn(&T) -> usize,
    value: impl Fn(&T) -> Option<V>,
) -> Vec<Option<V>> {
    let mut values = Vec::new();
    for item in items {
        let at = number(&item);
        if values.len() <= at {
            values.resize(at + 1, None);
        }
        if let Some(place) = values.get_mut(at) {
            *place = value(&item);
        }
    }
    values
}

#[cfg(test)]
mod tests;
