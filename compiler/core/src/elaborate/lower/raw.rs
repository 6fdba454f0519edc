// SPDX-License-Identifier: GPL-2.0-or-later

//! Operators on raw memory, registers and C constants: `@kderef`, `@uderef`, `@kregister`, `@uregister`, `@const`.

use super::Lowering;
use crate::builtin;
use crate::elaborate::error::{Error, TypeError, VariableError};
use crate::elaborate::unit::Unit;
use crate::probe::registers;
use crate::program::{BinaryOp, EmbeddedC, Expr, LongExpr, LongKind, Type};
use spile_source::Span;
use spile_syntax::ast;

impl Lowering<'_, '_> {
    /// `@kderef(size, address)`: that many bytes, zero-extended.
    pub(super) fn lower_deref(
        &mut self,
        unit: &Unit,
        user: bool,
        size: &ast::Expr,
        address: &ast::Expr,
        span: Span,
    ) -> Result<Expr, Error> {
        let size = match self.lookup().fold(unit, size) {
            Some(size @ (1 | 2 | 4 | 8)) => size as u8,
            given => return Err(TypeError::DerefSize { given, span: size.span }.into()),
        };
        let at_no_hit = ["begin", "end", "error", "never"].iter().any(|point| {
            unit.at.point.strip_prefix(point).is_some_and(|rest| rest.is_empty() || rest.starts_with('('))
        });
        if at_no_hit && !self.env.is_library(span.file) {
            let what = if user { "@uderef" } else { "@kderef" };
            return Err(VariableError::NoHit { what, point: unit.at.point.clone(), span }.into());
        }
        let address = Box::new(self.lower_long(unit, address)?);
        Ok(LongExpr { kind: LongKind::Read { address, size, user }, span }.into())
    }

    /// `@kregister(number)`, `@uregister(number)`: a register of the probed code, or of the current task's program, by its DWARF
    /// number.
    pub(super) fn lower_register(
        &mut self,
        unit: &Unit,
        user: bool,
        number: &ast::Expr,
        span: Span,
    ) -> Result<Expr, Error> {
        if !user && !unit.at.has_registers() {
            return Err(VariableError::NoRegisters { what: "@kregister", point: unit.at.point.clone(), span }.into());
        }
        let offset = self
            .lookup()
            .fold(unit, number)
            .and_then(|number| u16::try_from(number).ok())
            .and_then(registers::pt_regs_offset);
        let offset = offset.ok_or(VariableError::RegisterNumber { span: number.span })?;
        let in_program = unit.at.context.as_ref().and_then(|context| context.object());
        if !user || in_program.is_some_and(|object| object.is_program()) {
            return Ok(LongExpr::register(offset, span).into());
        }
        let registers = builtin::find("__get_uregs", 0).ok_or(VariableError::RegisterNumber { span: number.span })?;
        let registers = LongExpr { kind: LongKind::Builtin(registers, Vec::new()), span };
        let address = LongExpr::binary(BinaryOp::Add, registers, LongExpr::constant(offset.into(), span), span);
        Ok(LongExpr::read(address, 8, span).into())
    }

    /// `@const("C text")`: evaluated with the kernel's headers, in the embedded unit.
    pub(super) fn lower_const(text: &[u8], span: Span) -> Expr {
        let text = format!("({})", String::from_utf8_lossy(text));
        let code = EmbeddedC { text, span, globals: Vec::new(), arguments: Vec::new(), unmangled: false };
        Expr::embedded(code, Type::Long, span)
    }
}
