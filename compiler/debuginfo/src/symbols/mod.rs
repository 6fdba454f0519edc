// SPDX-License-Identifier: GPL-2.0-or-later

//! Functions of a program of which only the symbol table is there: where they begin, and nothing else.

use std::sync::Arc;

use crate::error::Error;
use crate::facts::{Body, Extent, Function, FunctionId, FunctionPattern, Type, TypeId, TypeTag, Unavailable, Variable};
use crate::object::{Address, Elf, Symbol};
use crate::source::{Form, Source, VariableResult};
use spile_base::glob;

/// The symbol table of one file: `.symtab`, or `.dynsym` where that has been stripped.
pub(crate) struct Symbols {
    elf: Arc<Elf>,
}

impl Symbols {
    /// The facts that the symbol table of this file gives.
    pub fn new(elf: Arc<Elf>) -> Symbols {
        Symbols { elf }
    }

    /// Symbols of functions in code, each with its number among all symbols; not indirect ones, which are elsewhere.
    fn functions(&self) -> Result<impl Iterator<Item = (u32, Symbol<'_>)>, Error> {
        let all = (0..).zip(self.elf.all_symbols()?);
        Ok(all.filter(|(_, symbol)| {
            symbol.function && !symbol.indirect && !symbol.name.is_empty() && self.elf.is_code(symbol.at)
        }))
    }
}

impl Source for Symbols {
    fn form(&self) -> Form {
        Form::Symbols
    }

    fn elf(&self) -> &Arc<Elf> {
        &self.elf
    }

    /// A symbol table does not say in which file a function is.
    fn find_functions(&self, pattern: &FunctionPattern) -> Result<Vec<FunctionId>, Error> {
        if pattern.file.is_some() {
            return Ok(Vec::new());
        }
        let mut found: Vec<(&str, u64, FunctionId)> = self
            .functions()?
            .filter(|(_, symbol)| glob::matches(&pattern.name, symbol.name))
            .map(|(number, symbol)| (symbol.name, symbol.at, FunctionId(number)))
            .collect();
        found.sort_unstable();
        // A library may have two versions of a symbol at one address.
        found.dedup_by_key(|(name, at, _)| (*name, *at));
        Ok(found.into_iter().map(|(_, _, id)| id).collect())
    }

    fn function_names(&self) -> Result<Vec<String>, Error> {
        let mut names: Vec<String> = self.functions()?.map(|(_, symbol)| symbol.name.to_string()).collect();
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    fn function(&self, id: FunctionId) -> Result<Function, Error> {
        let missing = || self.damaged(None, format!("no symbol {}", id.0));
        let symbol = self.elf.symbol_numbered(id.0)?.ok_or_else(missing)?;
        let entry = self.elf.address(symbol.at).ok_or_else(missing)?;
        let name = symbol.name.to_string();
        let body = Body { entry, size: symbol.size, symbol: Some(name.clone()), other_parts: Vec::new() };
        Ok(Function {
            name,
            file: String::new(),
            line: 0,
            external: symbol.global,
            return_type: None,
            bodies: vec![body],
            inlined: Vec::new(),
        })
    }

    fn parameters(&self, _: FunctionId) -> Result<Vec<Variable>, Error> {
        Ok(Vec::new())
    }

    fn variable(&self, _: FunctionId, _: Address, _: &str) -> Result<VariableResult, Error> {
        Ok(Err(Unavailable::Unknown))
    }

    fn read_type(&self, id: TypeId, _: Extent) -> Result<Type, Error> {
        Err(self.damaged(None, format!("no type {}", id.number)))
    }

    fn find_type(&self, _: TypeTag, _: &str) -> Result<Option<TypeId>, Error> {
        Ok(None)
    }

    fn enumerator(&self, _: &str) -> Result<Option<i64>, Error> {
        Ok(None)
    }
}
