// SPDX-License-Identifier: GPL-2.0-or-later

//! Which C type the values of variables point to: `x = $file` makes `x->f_path` mean something.
//!
//! Inference notes every place where a value goes into a variable, parameter, result or element; once all is seen, the
//! values' types are found and spread until nothing changes. Two places that disagree take the type away.

use std::collections::HashMap;
use std::rc::Rc;

use super::error::Error;
use super::types::TypeVar;
use super::{Elaborator, Handler, Unit};
use crate::probe::{Found, Location};
use crate::program::Expr;
use spile_debuginfo::target::Object;
use spile_debuginfo::{Type as CType, TypeId};
use spile_source::Span;
use spile_syntax::ast::{self, ExprKind, Index};

/// What a value points to.
#[derive(Clone)]
pub(super) struct Pointee {
    object: Rc<Object>,
    type_id: TypeId,
    /// As the object's debug information spells it: types of several objects are the same by their name.
    name: String,
}

/// The unit that a place is in.
#[derive(Clone, Copy)]
enum Owner {
    Handler(u32),
    Function(usize),
}

/// A value that goes somewhere.
pub(super) struct Flow<'a> {
    value: &'a ast::Expr,
    owner: Owner,
    to: TypeVar,
}

/// What is known of variables; None: they disagree.
pub(super) type Pointees = HashMap<TypeVar, Option<Pointee>>;

impl<'a> Elaborator<'a> {
    /// Notes that the value goes to what `to` is the type of.
    pub(super) fn note_flow(&mut self, unit: &Unit, value: &'a ast::Expr, to: TypeVar) {
        let owner = match (unit.function, unit.site) {
            (Some(function), _) => Owner::Function(function),
            (None, Some(site)) => Owner::Handler(site),
            (None, None) => return,
        };
        if unit.dead == 0 && carries(value) {
            self.flows.push(Flow { value, owner, to });
        }
    }

    /// Finds what variables point to.
    pub(super) fn find_pointees(&mut self, handlers: &[Handler<'a>]) {
        let flows = std::mem::take(&mut self.flows);
        // Each round settles one more step of a chain of assignments.
        for _ in 0..MAX_ROUNDS {
            let mut changed = false;
            for flow in &flows {
                let found = match flow.owner {
                    Owner::Handler(site) => match handlers.get(site as usize) {
                        Some(handler) => self.pointee(&handler.unit, flow.value),
                        None => None,
                    },
                    Owner::Function(index) => {
                        let unit = std::mem::take(&mut self.functions[index].unit);
                        let found = self.pointee(&unit, flow.value);
                        self.functions[index].unit = unit;
                        found
                    }
                };
                let Some(found) = found else { continue };
                let root = self.types.root(flow.to);
                match self.pointees.get(&root) {
                    None => {
                        self.pointees.insert(root, Some(found));
                        changed = true;
                    }
                    Some(Some(before)) if before.name != found.name => {
                        self.pointees.insert(root, None);
                        changed = true;
                    }
                    Some(_) => {}
                }
            }
            if !changed {
                break;
            }
        }
    }

    /// What the value of an expression points to, as far as is known now.
    fn pointee(&mut self, unit: &Unit, expr: &ast::Expr) -> Option<Pointee> {
        match &expr.kind {
            ExprKind::Conditional(_, then, otherwise) => {
                self.pointee(unit, then).or_else(|| self.pointee(unit, otherwise))
            }
            ExprKind::Assign(ast::AssignOp::Set, _, value) | ExprKind::Entry(value) => self.pointee(unit, value),
            ExprKind::AddressOf(base) => {
                let found = self.found(unit, base)?;
                Some(self.named(found.object, found.type_id))
            }
            ExprKind::Cast { .. } => {
                let found = self.found(unit, expr)?;
                Some(self.named(found.object, found.type_id))
            }
            ExprKind::Target(_) | ExprKind::Member(..) | ExprKind::Var { .. } => self.points_to(unit, expr),
            ExprKind::Call(name, arguments) if self.builtin_pointee(name, arguments.len()).is_some() => {
                let type_name = self.builtin_pointee(name, arguments.len())?.as_bytes().to_vec();
                let kind =
                    ExprKind::Cast { value: Box::new(expr.clone()), type_name, module: Some(b"kernel".to_vec()) };
                let found = self.found(unit, &ast::Expr { kind, span: expr.span })?;
                Some(self.named(found.object, found.type_id))
            }
            ExprKind::Index(..) if !self.is_element(expr) => self.points_to(unit, expr),
            _ => {
                let var = self.variable_type(unit, expr)?;
                let root = self.types.root(var);
                self.pointees.get(&root).cloned().flatten()
            }
        }
    }

    /// The kernel's type that a builtin's result points to.
    fn builtin_pointee(&self, name: &ast::Name, arity: usize) -> Option<&'static str> {
        let own = !self.overloads(name.span.file, &name.text, arity).is_empty();
        (!own && name.text == "task_current" && arity == 0).then_some("task_struct")
    }

    fn found(&mut self, unit: &Unit, expr: &ast::Expr) -> Option<Found> {
        let mut zero = |_: &mut Elaborator<'a>, index: &ast::Expr| Ok(super::context::long(0, index.span));
        self.find(unit, expr, &mut zero).ok()
    }

    fn points_to(&mut self, unit: &Unit, expr: &ast::Expr) -> Option<Pointee> {
        let found = self.found(unit, expr)?;
        let debug = found.object.debug().ok()?;
        let target = match debug.resolve(found.type_id).ok()?.1 {
            CType::Pointer(target) => target?,
            CType::Array { element, counts } => debug.array_element(found.type_id, element, &counts).ok()?,
            _ => return None,
        };
        Some(self.named(found.object.clone(), target))
    }

    fn named(&self, object: Rc<Object>, type_id: TypeId) -> Pointee {
        let name = object.debug().map(|debug| debug.type_name(type_id)).unwrap_or_default();
        Pointee { object, type_id, name }
    }

    /// The type of a variable, an array's elements or a function's result.
    fn variable_type(&mut self, unit: &Unit, expr: &ast::Expr) -> Option<TypeVar> {
        match &expr.kind {
            ExprKind::Ident(name) => match unit.names.get(name) {
                Some(id) => Some(unit.locals.get(id.index())?.ty),
                None => self.find_global(expr.span.file, name).map(|id| self.globals[id.index()].ty),
            },
            ExprKind::Index(base, _) => match &base.kind {
                ExprKind::Ident(name) => self.find_global(base.span.file, name).map(|id| self.globals[id.index()].ty),
                _ => None,
            },
            ExprKind::Call(name, arguments) => self.result_type(unit, name, arguments.len()),
            _ => None,
        }
    }

    /// The object that the value of an expression points to; `lower` gives the value.
    pub(super) fn find_pointed(
        &mut self,
        unit: &Unit,
        expr: &ast::Expr,
        lower: &mut dyn FnMut(&mut Elaborator<'a>, &ast::Expr) -> Result<Expr, Error>,
    ) -> Result<Found, Error> {
        let Some(pointee) = self.pointee(unit, expr) else {
            return Err(Error::NoPointee { text: spile_syntax::print::expr(expr), span: expr.span });
        };
        let address = lower(self, expr)?;
        Ok(Found {
            object: pointee.object,
            type_id: pointee.type_id,
            location: Location::Memory { address, bits: None },
        })
    }
}

/// Rounds of spreading types: longer chains of assignments against the order of the script lose theirs.
const MAX_ROUNDS: usize = 16;

/// Whether the value of such an expression can point to something.
fn carries(expr: &ast::Expr) -> bool {
    !matches!(
        expr.kind,
        ExprKind::Number(_)
            | ExprKind::String(_)
            | ExprKind::Binary(..)
            | ExprKind::Unary(..)
            | ExprKind::Print(_)
            | ExprKind::Step { .. }
    )
}

/// `base->member` or `base[i]` on what is neither a target nor a cast: a typed pointer.
pub(super) fn is_pointed(expr: &ast::Expr) -> bool {
    matches!(
        expr.kind,
        ExprKind::Ident(_) | ExprKind::Call(..) | ExprKind::Conditional(..) | ExprKind::Assign(..) | ExprKind::Entry(_)
    )
}

/// The only index, where there is one and it is no `*`.
pub(super) fn only_index(indices: &[Index], span: Span) -> Result<&ast::Expr, Error> {
    match indices {
        [Index::Expr(number)] => Ok(number),
        _ => Err(Error::NotIndexable { type_name: "more than one index".into(), span }),
    }
}
