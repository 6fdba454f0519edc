// SPDX-License-Identifier: GPL-2.0-or-later

//! Which C type the values of variables point to: `x = $file` makes `x->f_path` meaningful.
//!
//! The types are found by inference (`infer/flow.rs`).

use std::rc::Rc;

use super::{Lookup, Operands};
use crate::elaborate::error::{Error, TypeError};
use crate::elaborate::typed::{Pointed, Pointee};
use crate::elaborate::types::TypeVar;
use crate::elaborate::unit::Unit;
use crate::probe::{Location, TypedLocation};
use crate::program::Variable;
use spile_debuginfo::target::Object;
use spile_debuginfo::{DebugInfo, Type as CType, TypeId};
use spile_source::Span;
use spile_syntax::ast::{self, ExprKind, Index};

impl Lookup<'_, '_> {
    /// What the value of an expression points to, as far as known.
    pub(in crate::elaborate) fn pointee(&mut self, unit: &Unit, expr: &ast::Expr) -> Pointed {
        match &expr.kind {
            ExprKind::Conditional(_, then, otherwise) => {
                match (self.pointee(unit, then), self.pointee(unit, otherwise)) {
                    (Pointed::Unknown, known) | (known, Pointed::Unknown) => known,
                    (Pointed::To(one), Pointed::To(other)) if self.typed.is_same(&one, &other) => Pointed::To(one),
                    _ => Pointed::Several,
                }
            }
            ExprKind::Assign(ast::AssignOp::Set, _, value) => self.pointee(unit, value),
            ExprKind::Entry(value) => {
                let before = std::mem::replace(&mut self.typed.at_entry, true);
                let found = self.pointee(unit, value);
                self.typed.at_entry = before;
                found
            }
            ExprKind::Ident(_) => self.stored(unit, expr),
            ExprKind::Index(..) if self.names.is_element(expr) => self.stored(unit, expr),
            ExprKind::Call(name, arguments) if self.builtin_pointee(name, arguments.len()).is_none() => {
                self.stored(unit, expr)
            }
            _ => self.object_pointee(unit, expr).map_or(Pointed::Unknown, Pointed::To),
        }
    }

    /// The same of a variable, an array's element or a function's result.
    fn stored(&mut self, unit: &Unit, expr: &ast::Expr) -> Pointed {
        let Some(var) = self.variable_type(unit, expr) else { return Pointed::Unknown };
        let root = self.typed.types.root(var);
        self.typed.pointees.get(&root).cloned().unwrap_or(Pointed::Unknown)
    }

    /// The same of an object of the debug information, an address or a cast.
    fn object_pointee(&mut self, unit: &Unit, expr: &ast::Expr) -> Option<Pointee> {
        match &expr.kind {
            ExprKind::AddressOf(base) => {
                let found = self.find(unit, base).ok()?;
                Some(named(found.object, found.type_id))
            }
            ExprKind::Cast { .. } => {
                let found = self.find(unit, expr).ok()?;
                Some(named(found.object, found.type_id))
            }
            ExprKind::Call(name, arguments) => {
                let type_name = self.builtin_pointee(name, arguments.len())?.as_bytes().to_vec();
                let kind =
                    ExprKind::Cast { value: Box::new(expr.clone()), type_name, module: Some(b"kernel".to_vec()) };
                let found = self.find(unit, &ast::Expr { kind, span: expr.span }).ok()?;
                Some(named(found.object, found.type_id))
            }
            ExprKind::Target(_) | ExprKind::Member(..) | ExprKind::Var { .. } | ExprKind::Index(..) => {
                self.points_to(unit, expr)
            }
            _ => None,
        }
    }

    /// The kernel type that a builtin's result points to.
    fn builtin_pointee(&self, name: &ast::Name, arity: usize) -> Option<&'static str> {
        let own = !self.names.overloads(name.span, &name.text, arity).is_empty();
        (!own && name.text == "task_current" && arity == 0).then_some("task_struct")
    }

    fn points_to(&mut self, unit: &Unit, expr: &ast::Expr) -> Option<Pointee> {
        let found = self.find(unit, expr).ok()?;
        let debug = found.object.debug().ok()?;
        let target = match debug.resolve(found.type_id).ok()?.1 {
            CType::Pointer(target) => target?,
            CType::Array { element, counts } => debug.array_element(found.type_id, element, &counts).ok()?,
            _ => return None,
        };
        Some(named(found.object.clone(), target))
    }

    /// The type of a variable, an array's elements or a function's result.
    fn variable_type(&mut self, unit: &Unit, expr: &ast::Expr) -> Option<TypeVar> {
        match &expr.kind {
            ExprKind::Ident(name) => match unit.find_variable(self.names, name, expr.span)? {
                Variable::Local(id) => Some(unit.locals.get(id.index())?.ty),
                Variable::Global(id) => Some(self.typed.globals[id.index()].ty),
            },
            ExprKind::Index(base, _) => match &base.kind {
                ExprKind::Ident(name) => {
                    self.names.find_global(base.span, name).map(|id| self.typed.globals[id.index()].ty)
                }
                _ => None,
            },
            ExprKind::Call(name, arguments) => self.typed.result_type(self.names, unit, name, arguments.len()),
            _ => None,
        }
    }
}

fn named(object: Rc<Object>, type_id: TypeId) -> Pointee {
    let bare = |debug: &DebugInfo| debug.type_name(debug.resolve(type_id).map_or(type_id, |(bare, _)| bare));
    let name = object.debug().map(bare).unwrap_or_default();
    Pointee { object, type_id, name }
}

/// The object that the value of an expression points to.
pub(super) fn find_pointed(operands: &mut dyn Operands, unit: &Unit, expr: &ast::Expr) -> Result<TypedLocation, Error> {
    let pointee = match operands.lookup().pointee(unit, expr) {
        Pointed::To(pointee) => pointee,
        unclear => {
            let several = matches!(unclear, Pointed::Several);
            return Err(TypeError::NoPointee { text: spile_syntax::print::expr(expr), several, span: expr.span }.into());
        }
    };
    let address = operands.value(expr)?;
    let location = Location::Memory { address, bits: None };
    Ok(TypedLocation { object: pointee.object, type_id: pointee.type_id, location })
}

/// `base->member` or `base[i]` on something that is neither a target nor a cast: a typed pointer.
pub(super) fn is_pointed(expr: &ast::Expr) -> bool {
    matches!(
        expr.kind,
        ExprKind::Ident(_) | ExprKind::Call(..) | ExprKind::Conditional(..) | ExprKind::Assign(..) | ExprKind::Entry(_)
    )
}

/// The only index, if there is exactly one and it is not `*`.
pub(super) fn only_index(indices: &[Index], span: Span) -> Result<&ast::Expr, Error> {
    match indices {
        [Index::Expr(number)] => Ok(number),
        _ => Err(TypeError::NotIndexable { type_name: "more than one index".into(), span }.into()),
    }
}
