// SPDX-License-Identifier: GPL-2.0-or-later

//! An exported index as a [`Source`].

use std::sync::Arc;

use super::Portable;
use crate::error::Error;
use crate::facts::{
    Call, Extent, Function, FunctionId, FunctionPattern, InlinedCode, Label, Op, Statement, Type, TypeId, TypeTag,
    Variable,
};
use crate::object::{Address, Elf, Reserved};
use crate::source::{Form, GlobalPattern, Source, VariableResult};

impl Source for Portable {
    fn form(&self) -> Form {
        Form::Portable
    }

    fn elf(&self) -> &Arc<Elf> {
        &self.elf
    }

    fn find_functions(&self, pattern: &FunctionPattern) -> Result<Vec<FunctionId>, Error> {
        Ok(self.find(pattern))
    }

    fn function_names(&self) -> Result<Vec<String>, Error> {
        let mut names: Vec<String> = self.names().collect();
        names.dedup();
        Ok(names)
    }

    fn function(&self, id: FunctionId) -> Result<Function, Error> {
        self.describe(id).ok_or_else(|| self.damaged(None, format!("no function {}", id.0)))
    }

    fn parameters(&self, id: FunctionId) -> Result<Vec<Variable>, Error> {
        Ok(self.parameters_of(id))
    }

    fn variable(&self, id: FunctionId, at: Address, name: &str) -> Result<VariableResult, Error> {
        Ok(self.variable_at(id, at, name))
    }

    fn read_type(&self, id: TypeId, extent: Extent) -> Result<Type, Error> {
        self.get(id, extent).ok_or_else(|| self.damaged(None, format!("no type {}", id.number)))
    }

    fn find_type(&self, tag: TypeTag, name: &str) -> Result<Option<TypeId>, Error> {
        Ok(self.type_named(tag, name.as_bytes()))
    }

    fn enumerator(&self, name: &str) -> Result<Option<i64>, Error> {
        Ok(self.enumerator_value(name))
    }

    fn locals(&self, id: FunctionId, at: Address) -> Result<Vec<Variable>, Error> {
        Ok(self.locals_at(id, at))
    }

    fn global(&self, pattern: GlobalPattern) -> Result<VariableResult, Error> {
        Ok(self.find_global(pattern))
    }

    fn global_for(&self, id: FunctionId, name: &str) -> Result<VariableResult, Error> {
        Ok(self.global_of_file(id, name))
    }

    fn units_of_static(&self, name: &str) -> Result<Vec<String>, Error> {
        Ok(self.static_units(name))
    }

    fn calls(&self, id: FunctionId) -> Result<Vec<Call>, Error> {
        Ok(self.all_calls(id))
    }

    fn calls_of_bodies(&self, id: FunctionId) -> Result<Vec<Call>, Error> {
        Ok(self.calls_in_bodies(id))
    }

    fn calls_of_copy(&self, copy: InlinedCode) -> Result<Vec<Call>, Error> {
        Ok(self.calls_in_copy(copy))
    }

    fn returns_of_unknown_calls(&self, id: FunctionId) -> Result<Vec<Address>, Error> {
        Ok(self.returns_of_unknown(id))
    }

    fn return_address(&self, at: Address) -> Result<Option<Vec<Op>>, Error> {
        Ok(self.return_place(at))
    }

    fn has_place(&self, at: Address) -> bool {
        Portable::has_place(self, at)
    }

    fn labels(&self, id: FunctionId) -> Result<Vec<Label>, Error> {
        Ok(self.labels_of(id))
    }

    fn statements(&self, id: FunctionId) -> Result<Vec<Statement>, Error> {
        Ok(self.statements_of(id))
    }

    fn reserved(&self) -> Option<Reserved> {
        Some(self.reserved_places())
    }
}
