// SPDX-License-Identifier: GPL-2.0-or-later

//! Functions and their parameters from BTF only: by symbols and by the calling convention.

use std::sync::Arc;

use super::Btf;
use crate::error::Error;
use crate::facts::{
    Body, Extent, FoundVariable, Function, FunctionId, FunctionPattern, Location, Type, TypeId, TypeTag, Unavailable,
    Variable, registers,
};
use crate::object::{Address, Elf};
use crate::source::{Form, Source, VariableResult};
use spile_base::glob;

/// An object whose BTF gives types and prototypes, and whose symbol table gives the code.
pub(crate) struct Prototypes {
    elf: Arc<Elf>,
    btf: Btf,
}

impl Prototypes {
    /// None: the object has no BTF. `base`: the kernel, whose BTF a module's BTF extends.
    pub fn open(elf: &Arc<Elf>, base: Option<&Elf>) -> Result<Option<Prototypes>, Error> {
        let base = base.map_or(Ok(None), |base| Btf::of(base, None))?.map(Arc::new);
        Ok(Btf::of(elf, base)?.map(|btf| Prototypes { elf: elf.clone(), btf }))
    }

    fn all_parameters(&self, id: FunctionId) -> Vec<(String, TypeId)> {
        self.btf.prototype(id.0).unwrap_or_default().1
    }

    /// Whether an argument of the type takes one word, as base types, pointers and enumerations do.
    fn is_word(&self, id: TypeId) -> bool {
        let source: &dyn Source = self;
        matches!(source.resolve(id), Ok((_, Type::Base { .. } | Type::Pointer(_) | Type::Enum { .. })))
    }
}

impl Source for Prototypes {
    fn form(&self) -> Form {
        Form::Btf
    }

    fn elf(&self) -> &Arc<Elf> {
        &self.elf
    }

    fn find_functions(&self, pattern: &FunctionPattern) -> Result<Vec<FunctionId>, Error> {
        // BTF does not say in which file a function is.
        if pattern.file.is_some() {
            return Ok(Vec::new());
        }
        if glob::is_pattern(&pattern.name) {
            let fits = self.btf.functions().filter(|(_, name)| glob::matches(&pattern.name, name));
            return Ok(fits.map(|(number, _)| FunctionId(number)).collect());
        }
        Ok(self.btf.functions_named(&pattern.name).map(FunctionId).collect())
    }

    fn function_names(&self) -> Result<Vec<String>, Error> {
        Ok(self.btf.functions().map(|(_, name)| name).collect())
    }

    fn function(&self, id: FunctionId) -> Result<Function, Error> {
        let name = self.btf.name(id.0).unwrap_or_default();
        let return_type = self.btf.prototype(id.0).and_then(|(returns, _)| returns);
        let mut bodies = Vec::new();
        if self.elf.has_symbols() {
            for symbol in self.elf.symbols_named(&name)?.filter(|symbol| symbol.function && self.elf.is_code(symbol.at))
            {
                let Some(entry) = self.elf.address(symbol.at) else { continue };
                bodies.push(Body { entry, size: symbol.size, symbol: Some(name.clone()), other_parts: Vec::new() });
            }
        }
        Ok(Function { name, file: String::new(), line: 0, external: true, return_type, bodies, inlined: Vec::new() })
    }

    fn parameters(&self, id: FunctionId) -> Result<Vec<Variable>, Error> {
        let named = self.all_parameters(id).into_iter().filter(|(name, _)| !name.is_empty());
        Ok(named.map(|(name, type_id)| Variable { name, type_id }).collect())
    }

    /// A parameter at the function's first instruction.
    fn variable(&self, id: FunctionId, _: Address, name: &str) -> Result<VariableResult, Error> {
        let parameters = self.all_parameters(id);
        let known = parameters.iter().enumerate().find(|(_, (known, _))| known == name);
        let Some((index, &(_, type_id))) = known else {
            return Ok(Err(Unavailable::Unknown));
        };
        // System V ABI, AMD64 supplement, 3.2.3: one word each, as long as none is a struct.
        if !parameters.iter().take(index + 1).all(|(_, id)| self.is_word(*id)) {
            return Ok(Err(Unavailable::Unsupported(
                "it is passed as a struct, or after one: only DWARF says where it is".into(),
            )));
        }
        let location = match registers::parameter_register(index) {
            Some(register) => Location::Register(register),
            None => Location::Memory(registers::stack_parameter(index).to_vec()),
        };
        Ok(Ok(FoundVariable { type_id, location }))
    }

    fn read_type(&self, id: TypeId, extent: Extent) -> Result<Type, Error> {
        self.btf.get(id, extent).ok_or_else(|| self.damaged(None, format!("no type {}", id.number)))
    }

    fn find_type(&self, tag: TypeTag, name: &str) -> Result<Option<TypeId>, Error> {
        Ok(self.btf.find_type(tag, name))
    }

    fn enumerator(&self, name: &str) -> Result<Option<i64>, Error> {
        Ok(self.btf.enumerator(name))
    }
}
