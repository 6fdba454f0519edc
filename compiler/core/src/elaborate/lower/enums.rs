// SPDX-License-Identifier: GPL-2.0-or-later

//! Names and numbers of enumerations: `@enum("NAME")`, `@enumname(value, "type", "module")`.

use super::Lowering;
use super::print::plain;
use crate::elaborate::error::Error;
use crate::elaborate::lookup::value::{debug_error, long};
use crate::elaborate::unit::Unit;
use crate::program::{
    self, BinaryOp, Expr, ExprKind, FunctionBody, FunctionId, LocalId, Print, PrintPiece, Stmt, StmtKind, Type,
    Variable,
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
            if let Some(value) = debug.enumerator(&text).map_err(|error| debug_error(error, span))? {
                return Ok(long(value, span));
            }
        }
        Err(Error::UnknownEnumerator { name: text, span })
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
        Ok(Expr { kind: ExprKind::Call(id, vec![argument]), ty: Type::String, span })
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
                _ => Err(Error::NotAnEnum { type_name: debug.type_name(found.type_id), span: value.span }),
            };
        };
        let type_name = String::from_utf8_lossy(type_name).into_owned();
        for object in self.lookup().objects(unit, module, span)? {
            let debug = object.debug().map_err(failed)?;
            for name in [type_name.clone(), format!("enum {type_name}")] {
                let Some(id) = debug.find_type(&name).map_err(failed)? else { continue };
                if let CType::Enum { values, .. } = debug.resolve(id).map_err(failed)?.1 {
                    return Ok(values);
                }
            }
        }
        Err(Error::NotAnEnum { type_name, span })
    }

    /// A function of the program, beside those of the script, that names values.
    fn naming_function(&mut self, values: Vec<(String, i64)>, span: Span) -> FunctionId {
        let id = FunctionId((self.typed.reached.len() + self.made.len()) as u32);
        let value = Expr { kind: ExprKind::Variable(Variable::Local(LocalId(0))), ty: Type::Long, span };
        let give = |text: Expr| Stmt { kind: StmtKind::Return(Some(text)), span };
        let mut seen = std::collections::HashSet::new();
        let mut statements: Vec<Stmt> = values
            .into_iter()
            .filter(|(_, number)| seen.insert(*number))
            .map(|(name, number)| {
                let number = long(number, span);
                let same = ExprKind::Binary(BinaryOp::Equal, Box::new(value.clone()), Box::new(number));
                let name = Expr { kind: ExprKind::String(name.into_bytes()), ty: Type::String, span };
                let condition = Expr { kind: same, ty: Type::Long, span };
                Stmt { kind: StmtKind::If { condition, then: Box::new(give(name)), otherwise: None }, span }
            })
            .collect();
        let pieces: Vec<PrintPiece> = vec![plain(value)];
        let decimal = Expr { kind: ExprKind::Format(Box::new(Print { pieces })), ty: Type::String, span };
        statements.push(give(decimal));
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
