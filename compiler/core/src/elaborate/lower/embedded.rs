// SPDX-License-Identifier: GPL-2.0-or-later

//! Embedded C, with the globals and arguments that it uses.

use super::Lowering;
use crate::elaborate::mark::{has_mark, names_argument, pragmas};
use crate::elaborate::unit::Unit;
use crate::program::EmbeddedC;
use spile_syntax::ast;

impl Lowering<'_, '_> {
    pub(super) fn lower_embedded(&mut self, code: &ast::EmbeddedC) -> EmbeddedC {
        let globals = pragmas(code);
        let globals = globals.filter_map(|(name, access)| Some((self.names.find_global(code.span, name)?, access)));
        EmbeddedC {
            text: code.text.clone(),
            span: code.span,
            globals: globals.collect(),
            arguments: Vec::new(),
            unmangled: has_mark(&code.text, "unmangled"),
        }
    }

    /// Embedded C among statements: it may refer to the arguments of the enclosing function.
    pub(super) fn lower_embedded_in(&mut self, unit: &Unit, code: &ast::EmbeddedC) -> EmbeddedC {
        let mut lowered = self.lower_embedded(code);
        if let Some(index) = unit.function {
            let parameters =
                self.typed.functions[index.index()].ast.parameters.iter().map(|parameter| parameter.name.text.as_str());
            let named = parameters.filter(|name| names_argument(&code.text, name));
            lowered.arguments = named.filter_map(|name| Some((name.to_string(), *unit.names.get(name)?))).collect();
        }
        lowered
    }
}
