// SPDX-License-Identifier: GPL-2.0-or-later

//! Names and numbers of enumerations: `@enum("NAME")`, `@enumname(value, "type", "module")`.

use super::Lowering;
use super::print::plain;
use crate::elaborate::error::{Error, TypeError};
use crate::elaborate::lookup::type_named;
use crate::elaborate::lookup::value::debug_error;
use crate::elaborate::unit::Unit;
use crate::program::{
    self, BinaryOp, Comparison, Expr, FunctionBody, FunctionId, LocalId, LongExpr, LongKind, Print, PrintPiece, Stmt,
    StmtKind, StringExpr, Type, Variable,
};
use spile_debuginfo::Type as CType;
use spile_source::Span;
use spile_syntax::ast;

impl Lowering<'_, '_> {
    /// The value of the enumerator of that name.
    pub(super) fn lower_enum(&mut self, unit: &Unit, name: &[u8], span: Span) -> Result<Expr, Error> {
        let text = String::from_utf8_lossy(name).into_owned();
        for object in self.lookup().objects(unit, None, span)? {
            let debug = object.debug().map_err(|error| debug_error(error, span))?;
            let code = unit.at.context.as_ref().and_then(|context| context.code());
            let found = match code.filter(|code| code.object.path() == object.path()) {
                Some(code) => debug.enumerator_for(code.function, &text),
                None => debug.enumerator(&text),
            };
            if let Some(value) = found.map_err(|error| debug_error(error, span))? {
                return Ok(LongExpr::constant(value, span).into());
            }
        }
        Err(TypeError::UnknownEnumerator { name: text, span }.into())
    }

    /// The name that an enumeration has for a value; its decimal number where there is none.
    pub(super) fn lower_enum_name(
        &mut self,
        unit: &Unit,
        value: &ast::Expr,
        type_name: Option<&[u8]>,
        module: Option<&[u8]>,
        span: Span,
    ) -> Result<Expr, Error> {
        let values = self.enumerators(unit, value, type_name, module, span)?;
        let argument = self.lower(unit, value)?;
        let id = self.naming_function(values, span);
        Ok(Expr::call(id, vec![argument], Type::String, span))
    }

    fn enumerators(
        &mut self,
        unit: &Unit,
        value: &ast::Expr,
        type_name: Option<&[u8]>,
        module: Option<&[u8]>,
        span: Span,
    ) -> Result<Vec<(String, i64)>, Error> {
        let failed = |error| debug_error(error, span);
        let Some(type_name) = type_name else {
            let found = self.find_here(unit, value)?;
            let debug = found.object.debug().map_err(failed)?;
            return match debug.resolve(found.type_id).map_err(failed)?.1 {
                CType::Enum { values, .. } => Ok(values),
                _ => Err(TypeError::NotAnEnum { type_name: debug.type_name(found.type_id), span: value.span }.into()),
            };
        };
        let type_name = String::from_utf8_lossy(type_name).into_owned();
        for object in self.lookup().objects(unit, module, span)? {
            let debug = object.debug().map_err(failed)?;
            for name in [type_name.clone(), format!("enum {type_name}")] {
                let Some(id) = type_named(unit, &object, &name).map_err(failed)? else { continue };
                if let CType::Enum { values, .. } = debug.resolve(id).map_err(failed)?.1 {
                    return Ok(values);
                }
            }
        }
        Err(TypeError::NotAnEnum { type_name, span }.into())
    }

    /// A function of the program, in addition to the script's, that gives the names of values; one for each enumeration.
    pub(super) fn naming_function(&mut self, values: Vec<(String, i64)>, span: Span) -> FunctionId {
        if let Some(&id) = self.namers.get(&values) {
            return id;
        }
        let id = FunctionId((self.typed.reached.len() + self.made.len()) as u32);
        let value = LongExpr { kind: LongKind::Variable(Variable::Local(LocalId(0))), span };
        let give = |text: StringExpr| Stmt { kind: StmtKind::Return(Some(text.into())), span };
        self.namers.insert(values.clone(), id);
        let mut seen = std::collections::HashSet::new();
        let mut statements: Vec<Stmt> = values
            .into_iter()
            .filter(|(_, number)| seen.insert(*number))
            .map(|(name, number)| {
                let number = LongExpr::constant(number, span);
                let equal = BinaryOp::Compare(Comparison::Equal);
                let condition = LongExpr::binary(equal, value.clone(), number, span);
                let then = Box::new(give(StringExpr::literal(name.into_bytes(), span)));
                Stmt { kind: StmtKind::If { condition, then, otherwise: None }, span }
            })
            .collect();
        let pieces: Vec<PrintPiece> = vec![plain(value.into())];
        statements.push(give(StringExpr::format(Print { pieces }, span)));
        self.made.push(program::Function {
            name: "@enumname".into(),
            parameters: 1,
            locals: vec![program::Local { name: "value".into(), ty: Type::Long }],
            returns: Some(Type::String),
            site: None,
            body: FunctionBody::Script(statements),
            span,
        });
        id
    }
}
