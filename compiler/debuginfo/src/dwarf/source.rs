// SPDX-License-Identifier: GPL-2.0-or-later

//! DWARF as a [`Source`].

use std::sync::Arc;

use super::Dwarf;
use super::store::EntryError;
use crate::error::Error;
use crate::facts::{
    Call, Convention, Extent, Function, FunctionId, FunctionPattern, InlinedCode, Label, Op, OtherLines, Passed,
    Prologue, Statement, Type, TypeId, TypePassing, TypeTag, Unavailable, Variable, VirtualBase,
};
use crate::object::{Address, Elf, Reserved};
use crate::source::{Form, GlobalPattern, Source, VariableResult};

impl Dwarf {
    /// What is read, with the file's name where that is damaged.
    fn read<T>(&self, result: Result<T, EntryError>) -> Result<T, Error> {
        result.map_err(|damage| self.failed(damage))
    }
}

impl Source for Dwarf {
    fn form(&self) -> Form {
        Form::Dwarf
    }

    fn elf(&self) -> &Arc<Elf> {
        &self.elf
    }

    fn word(&self) -> u8 {
        self.store.machine.word()
    }

    fn missing_part(&self) -> Option<String> {
        self.store.missing().map(str::to_string)
    }

    fn find_functions(&self, pattern: &FunctionPattern) -> Result<Vec<FunctionId>, Error> {
        self.functions_like(pattern)
    }

    fn scope(&self, id: FunctionId, name: &str) -> Result<String, Error> {
        let own = self.index()?.functions_named(name.as_bytes()).find(|function| function.die == id.die());
        Ok(own.map(|own| String::from_utf8_lossy(own.scope).into_owned()).unwrap_or_default())
    }

    fn scopes(&self, name: &str) -> Result<Vec<(FunctionId, String)>, Error> {
        let all = self.index()?.functions_named(name.as_bytes());
        Ok(all.map(|own| (FunctionId::of(own.die), String::from_utf8_lossy(own.scope).into_owned())).collect())
    }

    fn function_names(&self) -> Result<Vec<String>, Error> {
        let functions = self.index()?.functions();
        let mut names: Vec<String> =
            functions.map(|function| String::from_utf8_lossy(function.name).into_owned()).collect();
        names.dedup();
        Ok(names)
    }

    fn function(&self, id: FunctionId) -> Result<Function, Error> {
        self.describe(id)
    }

    fn function_with(&self, address: Address) -> Result<Option<FunctionId>, Error> {
        self.read(self.elf.flat(address).map_or(Ok(None), |at| self.function_around(at)))
    }

    fn innermost(&self, id: FunctionId, at: Address) -> Result<FunctionId, Error> {
        self.read(self.elf.flat(at).map_or(Ok(id), |at| Dwarf::innermost(self, id, at)))
    }

    fn parameters(&self, id: FunctionId) -> Result<Vec<Variable>, Error> {
        self.read(self.read_parameters(id))
    }

    fn variable(&self, id: FunctionId, at: Address, name: &str) -> Result<VariableResult, Error> {
        self.read(self.find_variable(id, at, name))
    }

    fn variable_around(&self, id: FunctionId, at: Address, name: &str) -> Result<VariableResult, Error> {
        self.read(self.find_variable_around(id, at, name))
    }

    fn variables(&self, id: FunctionId, at: Address) -> Result<Vec<(String, VariableResult)>, Error> {
        self.read(self.read_variables(id, at))
    }

    fn read_type(&self, id: TypeId, extent: Extent) -> Result<Type, Error> {
        self.read(self.read_as(id, extent))
    }

    fn find_type(&self, tag: TypeTag, name: &str) -> Result<Option<TypeId>, Error> {
        Ok(self.index()?.type_named(tag, name.as_bytes()).map(TypeId::of))
    }

    fn type_of_unit(&self, id: FunctionId, tag: TypeTag, name: &str) -> Result<Option<TypeId>, Error> {
        Ok(self.read(self.find_type_of_unit(id, tag, name))?.map(TypeId::of))
    }

    fn enumerator(&self, name: &str) -> Result<Option<i64>, Error> {
        self.read(self.find_enumerator(name))
    }

    fn virtual_bases(&self, id: TypeId) -> Result<Vec<VirtualBase>, Error> {
        self.read(self.read_virtual_bases(id))
    }

    fn pointer_to_member(&self, id: TypeId) -> Result<Option<(String, Option<TypeId>)>, Error> {
        self.read(self.read_pointer_to_member(id))
    }

    fn is_reference(&self, id: TypeId) -> Result<bool, Error> {
        self.read(self.read_is_reference(id))
    }

    fn static_member(&self, id: TypeId, name: &str) -> Result<VariableResult, Error> {
        self.read(self.find_static_member(id.die(), name))
    }

    fn enumerator_for(&self, id: FunctionId, name: &str) -> Result<Option<i64>, Error> {
        let of_unit = || self.find_enumerator_in(self.store.slot_of(id.die())?, name);
        match self.read(of_unit())? {
            Some(found) => Ok(Some(found)),
            None => self.enumerator(name),
        }
    }

    fn locals(&self, id: FunctionId, at: Address) -> Result<Vec<Variable>, Error> {
        self.read(self.read_locals(id, at))
    }

    fn other_lines(&self, id: FunctionId, at: Address, name: &str) -> Result<OtherLines, Error> {
        self.read(self.find_other_lines(id, at, name))
    }

    fn global(&self, pattern: GlobalPattern) -> Result<VariableResult, Error> {
        self.find_global(pattern)
    }

    fn global_for(&self, id: FunctionId, name: &str) -> Result<VariableResult, Error> {
        match self.read(self.find_global_of_unit(id, name))? {
            Err(Unavailable::Unknown) => self.read(self.find_static_local_of(id, name)),
            found => Ok(found),
        }
    }

    fn units_of_static(&self, name: &str) -> Result<Vec<String>, Error> {
        self.read(self.find_units_of_static(name))
    }

    /// Tail calls are left out: nothing gives the length of their instruction.
    fn calls(&self, id: FunctionId) -> Result<Vec<Call>, Error> {
        let read = || self.calls_within(self.copies(id)?.into_iter().chain(self.instances_of(id)?));
        self.read(read())
    }

    fn calls_of_bodies(&self, id: FunctionId) -> Result<Vec<Call>, Error> {
        let read = || self.calls_within(self.copies(id)?);
        self.read(read())
    }

    fn calls_of_copy(&self, copy: InlinedCode) -> Result<Vec<Call>, Error> {
        self.read(self.calls_within([copy.die()]))
    }

    fn returns_of_unknown_calls(&self, id: FunctionId) -> Result<Vec<Address>, Error> {
        self.read(self.read_returns_of_unknown_calls(id))
    }

    fn return_address(&self, at: Address) -> Result<Option<Vec<Op>>, Error> {
        self.read(self.elf.flat(at).map_or(Ok(None), |at| self.return_slot(at)))
    }

    fn compiled_in(&self, id: FunctionId) -> Option<String> {
        let directory = self.store.unit_of(id.die()).ok()?.comp_dir?;
        Some(String::from_utf8_lossy(directory.slice()).into_owned())
    }

    fn labels(&self, id: FunctionId) -> Result<Vec<Label>, Error> {
        self.read(self.read_labels(id))
    }

    fn statements(&self, id: FunctionId) -> Result<Vec<Statement>, Error> {
        self.read(self.read_statements(id))
    }

    fn passed(&self, id: FunctionId, at: Address) -> Result<Option<Vec<Passed>>, Error> {
        self.read(self.elf.flat(at).map_or(Ok(None), |at| self.read_passed(id, at)))
    }

    fn convention(&self, id: FunctionId) -> Result<Convention, Error> {
        self.read(self.read_convention(id))
    }

    fn type_passing(&self, id: TypeId) -> Result<TypePassing, Error> {
        self.read(self.read_type_passing(id))
    }

    fn may_return_nothing(&self, id: FunctionId, entry: Address) -> Result<Option<String>, Error> {
        self.read(self.read_may_return_nothing(id, entry))
    }

    fn prologue(&self, id: FunctionId, entry: Address) -> Result<Option<Prologue>, Error> {
        self.read(self.read_prologue(id, entry))
    }

    fn line_table(&self) -> Result<Option<Vec<u8>>, Error> {
        self.packed_lines().map(Some)
    }

    fn prepare(&self) -> Result<bool, Error> {
        let known = self.function_table().is_some();
        self.index()?;
        self.read_all()?;
        Ok(!known && self.function_table().is_some())
    }

    fn export(&self, reserved: Option<&Reserved>) -> Result<Vec<u8>, Error> {
        self.export_index(reserved)
    }
}
