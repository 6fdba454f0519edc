// SPDX-License-Identifier: GPL-2.0-or-later

//! The debug information of one object, in whichever form it has it.

use std::path::Path;
use std::sync::Arc;

use spile_base::cache::Cache;

use crate::btf::Prototypes;
use crate::dwarf::Dwarf;
use crate::error::Error;
use crate::facts::{
    Call, Convention, Extent, FoundMember, FoundVariable, Function, FunctionId, FunctionPattern, InlinedCode, Label,
    MemberError, Op, OtherLines, Passed, Prologue, Statement, Type, TypeId, TypePassing, Unavailable, Variable,
    VirtualBase,
};
use crate::object::{Address, Elf, Reserved};
use crate::portable::Portable;
use crate::source::{Form, GlobalPattern, Source, VariableResult};
use crate::symbols::Symbols;

/// Debug information of one object: its DWARF, otherwise its BTF; or an exported index.
pub struct DebugInfo(Box<dyn Source>);

impl DebugInfo {
    /// Fails with [`Error::NoDwarf`] where the object has neither DWARF nor BTF. `cache`: where an index is stored between
    /// runs; `base`: the kernel, whose BTF a module's BTF extends.
    pub fn open(elf: Arc<Elf>, cache: Option<Arc<Cache>>, base: Option<&Elf>) -> Result<DebugInfo, Error> {
        if let Some(portable) = Portable::open(&elf) {
            return Ok(DebugInfo(Box::new(portable)));
        }
        match Dwarf::open(elf.clone(), cache) {
            Ok(dwarf) => Ok(DebugInfo(Box::new(dwarf))),
            Err(Error::NoDwarf { path }) => {
                let prototypes = Prototypes::open(&elf, base)?.ok_or(Error::NoDwarf { path })?;
                Ok(DebugInfo(Box::new(prototypes)))
            }
            Err(error) => Err(error),
        }
    }

    /// The same of a program or library: its DWARF or index, else the functions of its symbol table. `code`: the file that processes
    /// map, if `elf` is another one.
    pub fn of_program(elf: Arc<Elf>, code: Option<Arc<Elf>>, cache: Option<Arc<Cache>>) -> Result<DebugInfo, Error> {
        if let Some(portable) = Portable::open(&elf) {
            return Ok(DebugInfo(Box::new(portable)));
        }
        match Dwarf::with_code(elf.clone(), code, cache) {
            Ok(dwarf) => Ok(DebugInfo(Box::new(dwarf))),
            Err(Error::NoDwarf { .. }) => Ok(DebugInfo(Box::new(Symbols::new(elf)))),
            Err(error) => Err(error),
        }
    }

    /// Whether there is only a symbol table: nothing but the entries of functions.
    pub fn is_symbols(&self) -> bool {
        self.0.form() == Form::Symbols
    }

    /// Of a program of which functions, variables and types are in files of their own (`-gsplit-dwarf`), the name of one that was not
    /// found.
    pub fn missing_part(&self) -> Option<String> {
        self.0.missing_part()
    }

    /// Bytes of a pointer: 8, or 4 in a 32-bit program.
    pub fn word(&self) -> u8 {
        self.0.word()
    }

    /// Whether there is only BTF: types and prototypes are known, but no inlined functions, lines and locals.
    pub fn is_btf(&self) -> bool {
        self.0.form() == Form::Btf
    }

    /// Whether the locations of variables are known at that place of the code. An exported index knows them only where
    /// functions and inlined copies begin, at labels and at calls.
    pub fn has_place(&self, at: Address) -> bool {
        self.0.has_place(at)
    }

    /// Where no probe may be placed, if this is an exported index; otherwise None.
    pub fn reserved(&self) -> Option<Reserved> {
        self.0.reserved()
    }

    /// The file with the debug information.
    pub fn path(&self) -> &Path {
        self.0.elf().path()
    }

    /// Functions that match, sorted by name and then by unit.
    pub fn find_functions(&self, pattern: &FunctionPattern) -> Result<Vec<FunctionId>, Error> {
        self.0.find_functions(pattern)
    }

    /// Names of all functions, sorted, each once.
    pub fn function_names(&self) -> Result<Vec<String>, Error> {
        self.0.function_names()
    }

    /// The function and where its code is.
    pub fn function(&self, id: FunctionId) -> Result<Function, Error> {
        self.0.function(id)
    }

    /// The function whose code contains the address, if any.
    pub fn function_at(&self, address: Address) -> Result<Option<FunctionId>, Error> {
        let elf = self.0.elf();
        let Some(at) = elf.flat(address) else { return Ok(None) };
        if let Some(symbol) = elf.symbols_before(at)?.find(|symbol| symbol.function) {
            // Clones and split-off parts belong to the function: `f.isra.0`, `f.cold`.
            let name = symbol.name.split('.').next().unwrap_or(symbol.name);
            for id in self.find_functions(&FunctionPattern { name: name.to_string(), file: None })? {
                if self.function(id)?.has_code_at(address) {
                    return Ok(Some(id));
                }
            }
        }
        // In C++ and Rust a symbol has another name than its function. Others are not looked for: all units would be read.
        let is_mangled = |name: &str| name.starts_with("_Z") || name.starts_with("_R");
        match elf.symbols_before(at)?.find(|symbol| symbol.function) {
            Some(symbol) if is_mangled(symbol.name) => self.0.function_with(address),
            _ => Ok(None),
        }
    }

    /// The function whose call is inlined innermost at an address of another one, which is that of
    /// [`DebugInfo::function_at`]; that one where no call is inlined, or where the index of another machine's debug information is used.
    pub fn innermost(&self, id: FunctionId, at: Address) -> Result<FunctionId, Error> {
        self.0.innermost(id, at)
    }

    /// Parameters, in order; those without a name are left out.
    pub fn parameters(&self, id: FunctionId) -> Result<Vec<Variable>, Error> {
        self.0.parameters(id)
    }

    /// Local variables in scope at the address, outermost first.
    pub fn locals(&self, id: FunctionId, at: Address) -> Result<Vec<Variable>, Error> {
        self.0.locals(id, at)
    }

    /// The variable `name` at an address of the function: the innermost that is in scope, else one of the unit.
    pub fn variable(
        &self,
        id: FunctionId,
        at: Address,
        name: &str,
    ) -> Result<Result<FoundVariable, Unavailable>, Error> {
        self.0.variable(id, at, name)
    }

    /// The same of the innermost scope at the address that has one, calls inlined there included.
    pub fn variable_around(&self, id: FunctionId, at: Address, name: &str) -> Result<VariableResult, Error> {
        self.0.variable_around(id, at, name)
    }

    /// The parameters and then the locals in scope at an address of the function, each as [`DebugInfo::variable`] finds it: all of a
    /// place at once, which takes little longer than one.
    pub fn variables(&self, id: FunctionId, at: Address) -> Result<Vec<(String, VariableResult)>, Error> {
        self.0.variables(id, at)
    }

    /// Where the variable `name` has a value in the body or inlined copy that the address is in.
    pub fn other_lines(&self, id: FunctionId, at: Address, name: &str) -> Result<OtherLines, Error> {
        self.0.other_lines(id, at, name)
    }

    /// The variable of that name outside functions. `file`, a shell pattern for the end of its unit's path, selects among
    /// several of one name. An external one comes before a static one.
    pub fn global(&self, name: &str, file: Option<&str>) -> Result<Result<FoundVariable, Unavailable>, Error> {
        self.0.global(GlobalPattern { name, file, external: false })
    }

    /// The variable outside functions that code of the function means by that name: a static one of its unit, or an external one.
    pub fn global_for(&self, id: FunctionId, name: &str) -> Result<VariableResult, Error> {
        self.0.global_for(id, name)
    }

    /// Paths of the units that have a static variable of that name, the one that [`DebugInfo::global`] finds first; none where
    /// an external variable has the name.
    pub fn units_of_static(&self, name: &str) -> Result<Vec<String>, Error> {
        self.0.units_of_static(name)
    }

    /// The external variable of that name, which code anywhere in the object can mean.
    pub fn external_global(&self, name: &str) -> Result<Result<FoundVariable, Unavailable>, Error> {
        self.0.global(GlobalPattern { name, file: None, external: true })
    }

    /// The value of the enumerator of that name, in whichever enumeration it is; None if there is none.
    pub fn enumerator(&self, name: &str) -> Result<Option<i64>, Error> {
        self.0.enumerator(name)
    }

    /// The same as code of the function means it: that of the function's unit, if there is one.
    pub fn enumerator_for(&self, id: FunctionId, name: &str) -> Result<Option<i64>, Error> {
        self.0.enumerator_for(id, name)
    }

    /// Whether a type, which has neither typedefs nor qualifiers, is a reference of C++, which otherwise is a [`Type::Pointer`].
    pub fn is_reference(&self, id: TypeId) -> Result<bool, Error> {
        self.0.is_reference(id)
    }

    /// The virtual bases of a class of C++, which has neither typedefs nor qualifiers.
    pub fn virtual_bases(&self, id: TypeId) -> Result<Vec<VirtualBase>, Error> {
        self.0.virtual_bases(id)
    }

    /// The static member of that name of a class of C++, which has neither typedefs nor qualifiers.
    pub fn static_member(&self, id: TypeId, name: &str) -> Result<VariableResult, Error> {
        self.0.static_member(id, name)
    }

    /// The calls in the function's bodies and inlined copies, sorted by address, without those in code inlined into it.
    /// Indirect calls are not among them: no entry names their callee.
    pub fn calls(&self, id: FunctionId) -> Result<Vec<Call>, Error> {
        self.0.calls(id)
    }

    /// The same for only the function's bodies: calls made after the function itself has been called.
    pub fn calls_of_bodies(&self, id: FunctionId) -> Result<Vec<Call>, Error> {
        self.0.calls_of_bodies(id)
    }

    /// The same for one inlined copy.
    pub fn calls_of_copy(&self, copy: InlinedCode) -> Result<Vec<Call>, Error> {
        self.0.calls_of_copy(copy)
    }

    /// Return addresses of calls whose callee the compiler does not know, mostly through pointers, in the function's bodies
    /// and in what is inlined into them; sorted.
    pub fn returns_of_unknown_calls(&self, id: FunctionId) -> Result<Vec<Address>, Error> {
        self.0.returns_of_unknown_calls(id)
    }

    /// The address of the stack word that holds the return address of the frame that `at` is in: 8 bytes below the
    /// canonical frame address (System V ABI, AMD64 supplement, 3.2.2). None where no frame description covers the address,
    /// or only one with an expression (as for PLTs).
    pub fn return_address(&self, at: Address) -> Result<Option<Vec<Op>>, Error> {
        self.0.return_address(at)
    }

    /// The scopes of all functions of that name: namespaces, types and functions around each.
    pub fn scopes(&self, name: &str) -> Result<Vec<(FunctionId, String)>, Error> {
        self.0.scopes(name)
    }

    /// The directory in which the function's file was compiled: the path of its file may begin there.
    pub fn compiled_in(&self, id: FunctionId) -> Option<String> {
        self.0.compiled_in(id)
    }

    /// The labels in the function's bodies and inlined copies, sorted by address.
    pub fn labels(&self, id: FunctionId) -> Result<Vec<Label>, Error> {
        self.0.labels(id)
    }

    /// The beginnings of statements in the function's bodies, sorted by address; those of inlined calls included.
    pub fn statements(&self, id: FunctionId) -> Result<Vec<Statement>, Error> {
        self.0.statements(id)
    }

    /// What is passed to the body of the function that begins at the address, in order, parameters without a name included.
    /// None: that is not known, or the body has been given other parameters.
    pub fn passed(&self, id: FunctionId, at: Address) -> Result<Option<Vec<Passed>>, Error> {
        self.0.passed(id, at)
    }

    /// How the function is called.
    pub fn convention(&self, id: FunctionId) -> Result<Convention, Error> {
        self.0.convention(id)
    }

    /// How objects of a type, which has neither typedefs nor qualifiers, are passed.
    pub fn type_passing(&self, id: TypeId) -> Result<TypePassing, Error> {
        self.0.type_passing(id)
    }

    /// Why the body that begins at the address may return nothing, though its function returns something.
    pub fn may_return_nothing(&self, id: FunctionId, entry: Address) -> Result<Option<String>, Error> {
        self.0.may_return_nothing(id, entry)
    }

    /// Where the body that begins at the address has stored its parameters, if it was compiled without optimisation.
    pub fn prologue(&self, id: FunctionId, entry: Address) -> Result<Option<Prologue>, Error> {
        self.0.prologue(id, entry)
    }

    /// File and line of every address, packed for the runtime (`dwarf/line_table.rs`, `runtime-c/lines.c`). None: no lines
    /// are known.
    pub fn line_table(&self) -> Result<Option<Vec<u8>>, Error> {
        self.0.line_table()
    }

    /// The type's description. A declaration gives the definition from another unit, if there is one.
    pub fn get(&self, id: TypeId) -> Result<Type, Error> {
        self.0.read_type(id, Extent::Whole)
    }

    /// The type without typedefs and qualifiers.
    pub fn resolve(&self, id: TypeId) -> Result<(TypeId, Type), Error> {
        self.0.resolve(id)
    }

    /// [`DebugInfo::resolve`] without a struct's members and an enumeration's constants, for what kind of type it is: of a
    /// large struct that is a small part of the work.
    pub fn resolve_outline(&self, id: TypeId) -> Result<Type, Error> {
        self.0.resolve_outline(id)
    }

    /// Size of the type in bytes; None for functions, incomplete types and arrays without a count.
    pub fn size_of(&self, id: TypeId) -> Result<Option<u64>, Error> {
        self.0.size_of(id)
    }

    /// The type that indexing an array with [`Type::Array`] `element` and `counts` once gives: the element, or for an array
    /// of several dimensions the array of the remaining ones.
    pub fn array_element(&self, array: TypeId, element: TypeId, counts: &[Option<u64>]) -> Result<TypeId, Error> {
        self.0.array_element(array, element, counts)
    }

    /// The member of a struct or union, looking through typedefs and qualifiers, and into anonymous structs.
    pub fn member(&self, id: TypeId, name: &str) -> Result<FoundMember, MemberError> {
        self.0.member(id, name)
    }

    /// The type of this name: `struct x`, `union x`, `enum x`, a typedef's or base type's name, or `x` for any of the
    /// first three; a definition.
    pub fn find_type(&self, name: &str) -> Result<Option<TypeId>, Error> {
        self.0.find_type_named(name)
    }

    /// The same as code of the function means it: that of the function's unit, if there is one.
    pub fn find_type_for(&self, id: FunctionId, name: &str) -> Result<Option<TypeId>, Error> {
        self.0.find_type_named_for(id, name)
    }

    /// C spelling of the type. `...` replaces parts that are damaged or nested too deeply.
    pub fn type_name(&self, id: TypeId) -> String {
        self.0.type_name(id)
    }

    /// Makes what the first questions would make, and stores it in the cache. True: something was made.
    pub(crate) fn prepare(&self) -> Result<bool, Error> {
        self.0.prepare()
    }

    /// The bytes of an ELF file that, opened as this object's, gives the same answers, except for places in the middle of
    /// code. `reserved`: where no probe may be placed. Fails with [`Error::NoDwarf`] where there is no DWARF.
    pub fn export(&self, reserved: Option<&Reserved>) -> Result<Vec<u8>, Error> {
        self.0.export(reserved)
    }

    /// The file that the debug information describes.
    #[cfg(test)]
    pub(crate) fn elf(&self) -> &Elf {
        self.0.elf()
    }
}

/// Whether the object is an exported index in the format that this version reads.
pub(crate) fn is_exported_index(elf: &Elf) -> bool {
    Portable::is_in(elf)
}
