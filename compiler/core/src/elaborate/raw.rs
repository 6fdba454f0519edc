// SPDX-License-Identifier: GPL-2.0-or-later

//! Operators on raw memory, registers and C constants: `@kderef`, `@uderef`, `@kregister`, `@uregister`, `@const`.

use super::error::Error;
use super::{Elaborator, Unit};
use crate::probe::registers;
use crate::program::{EmbeddedC, Expr, ExprKind, Type};
use spile_source::{Origin, Span};
use spile_syntax::{ast, visit};

/// The operator, where it is one of those.
fn raw_operator(expr: &ast::Expr) -> Option<(&'static str, Span)> {
    let what = match &expr.kind {
        ast::ExprKind::Const(_) => "@const",
        ast::ExprKind::Register { user: true, .. } => "@uregister",
        ast::ExprKind::Register { user: false, .. } => "@kregister",
        ast::ExprKind::Deref { user: true, .. } => "@uderef",
        ast::ExprKind::Deref { user: false, .. } => "@kderef",
        _ => return None,
    };
    Some((what, expr.span))
}

impl<'a> Elaborator<'a> {
    /// What reads the kernel's memory or holds C is for guru mode and library files, wherever it stands: also where it
    /// never runs, or nothing uses its value.
    pub(super) fn check_guru(&mut self, block: &ast::Block) {
        let mut found = Vec::new();
        visit::expressions(block, &mut |expr| found.extend(raw_operator(expr)));
        self.refuse_raw(found, block.span);
    }

    /// The same of a probe point's condition, which is in no block.
    pub(super) fn check_guru_condition(&mut self, condition: &ast::Expr) {
        let mut found = Vec::new();
        visit::in_expression(condition, &mut |expr| found.extend(raw_operator(expr)));
        self.refuse_raw(found, condition.span);
    }

    fn refuse_raw(&mut self, found: Vec<(&'static str, Span)>, whole: Span) {
        let library = self.sources.file(whole.file).origin == Origin::Tapset;
        if !self.options.guru && !library {
            found.into_iter().for_each(|(what, span)| self.report(Error::Guru { what, span }));
        }
    }

    /// `@kderef(size, address)`: that many bytes, zero-extended.
    pub(super) fn lower_deref(
        &mut self,
        unit: &mut Unit,
        user: bool,
        size: &ast::Expr,
        address: &ast::Expr,
        span: Span,
    ) -> Result<Expr, Error> {
        let size = match self.fold(unit, size) {
            Some(size @ (1 | 2 | 4 | 8)) => size as u8,
            given => return Err(Error::DerefSize { given, span: size.span }),
        };
        let address = Box::new(self.lower(unit, address)?);
        Ok(Expr { kind: ExprKind::Read { address, size, user }, ty: Type::Long, span })
    }

    /// `@kregister(number)`: a register of the probed kernel code by its DWARF number.
    pub(super) fn lower_register(
        &mut self,
        unit: &Unit,
        user: bool,
        number: &ast::Expr,
        span: Span,
    ) -> Result<Expr, Error> {
        let what = if user { "@uregister" } else { "@kregister" };
        if user || !unit.context.as_ref().is_some_and(|context| context.has_registers()) {
            return Err(Error::NoRegisters { what, point: unit.point.clone(), span });
        }
        let offset =
            self.fold(unit, number).and_then(|number| u16::try_from(number).ok()).and_then(registers::pt_regs_offset);
        match offset {
            Some(offset) => Ok(Expr { kind: ExprKind::Register { offset }, ty: Type::Long, span }),
            None => Err(Error::RegisterNumber { span: number.span }),
        }
    }

    /// `@const("C text")`: evaluated with the kernel's headers, in the embedded unit.
    pub(super) fn lower_const(&self, text: &[u8], span: Span) -> Expr {
        let text = format!("({})", String::from_utf8_lossy(text));
        let code = EmbeddedC { text, span, globals: Vec::new(), arguments: Vec::new(), unmangled: false };
        Expr { kind: ExprKind::EmbeddedC(code), ty: Type::Long, span }
    }
}
