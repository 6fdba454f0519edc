// SPDX-License-Identifier: GPL-2.0-or-later

//! Functions and their parameters where only BTF is there: by symbols, and by the calling convention.

use super::btf::Btf;
use super::functions::{Body, Function, FunctionId, FunctionPattern};
use super::location::Location;
use super::registers;
use super::store::Die;
use super::types::Type;
use super::variables::{FoundVariable, Unavailable, Variable};
use super::{DebugInfo, Error};
use spile_base::glob;

impl DebugInfo {
    pub(super) fn find_prototypes(&self, btf: &Btf, pattern: &FunctionPattern) -> Vec<FunctionId> {
        // Nothing says in which file a function is.
        if pattern.file.is_some() {
            return Vec::new();
        }
        let id = |number| FunctionId(Die(number));
        if glob::is_pattern(&pattern.name) {
            return btf
                .functions()
                .filter(|(_, name)| glob::matches(&pattern.name, name))
                .map(|(number, _)| id(number))
                .collect();
        }
        btf.functions_named(&pattern.name).map(id).collect()
    }

    pub(super) fn prototype(&self, btf: &Btf, id: FunctionId) -> Result<Function, Error> {
        let name = btf.name(id.0.0).unwrap_or_default();
        let return_type = btf.prototype(id.0.0).and_then(|(returns, _)| returns);
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

    pub(super) fn prototype_parameters(&self, btf: &Btf, id: FunctionId) -> Vec<Variable> {
        let (_, parameters) = btf.prototype(id.0.0).unwrap_or_default();
        let named = parameters.into_iter().filter(|(name, _)| !name.is_empty());
        named.map(|(name, type_id)| Variable { name, type_id }).collect()
    }

    /// A parameter at the function's first instruction.
    pub(super) fn prototype_variable(
        &self,
        btf: &Btf,
        id: FunctionId,
        name: &str,
    ) -> Result<FoundVariable, Unavailable> {
        let (_, parameters) = btf.prototype(id.0.0).unwrap_or_default();
        let Some(index) = parameters.iter().position(|(known, _)| known == name) else {
            return Err(Unavailable::Unknown);
        };
        // System V ABI, AMD64 supplement, 3.2.3: one word each, as long as none is a struct.
        let word = |id| matches!(self.resolve(id), Ok((_, Type::Base { .. } | Type::Pointer(_) | Type::Enum { .. })));
        if !parameters.iter().take(index + 1).all(|(_, id)| word(*id)) {
            return Err(Unavailable::Unsupported(
                "it is passed as a struct, or after one: where it is takes DWARF to know".into(),
            ));
        }
        let location = match registers::parameter_register(index) {
            Some(register) => Location::Register(register),
            None => Location::Memory(registers::stack_parameter(index).to_vec()),
        };
        let (_, type_id) = parameters[index];
        Ok(FoundVariable { type_id, location })
    }
}
