// SPDX-License-Identifier: GPL-2.0-or-later

//! What inference finds: types of globals and functions, shapes of globals, and what variables point to. Lookup and
//! lowering read it.

mod functions;
mod pointee;

use super::names::{DeclaredId, Names};
use super::types::{TypeVar, Types};
use super::unit::{InstanceId, Unit, UnitContext};
use crate::program::{Contents, GlobalId, Stats, Type};
pub(super) use functions::{Callee, Function, ProgramFunction};
use pointee::Compared;
pub(super) use pointee::{Pointed, Pointee};
use spile_source::Span;
use spile_syntax::ast;
use std::collections::HashMap;

/// Results of inference, besides the local variables of each [`Unit`].
pub(super) struct Typed<'a> {
    /// Types of all variables and results.
    pub types: Types,
    /// By [`GlobalId`].
    pub globals: Vec<Global>,
    /// Those of [`Names::functions`] in their order, and copies for probe sites.
    pub functions: Vec<Function<'a>>,
    /// By declared function and site; true: for what is evaluated at the probed function's entry.
    copies: HashMap<(DeclaredId, u32, bool), InstanceId>,
    /// Functions reached, in order; those not yet inferred come last.
    pub reached: Vec<ProgramFunction>,
    /// What variables point to.
    pub pointees: HashMap<TypeVar, Pointed>,
    compared: Compared,
    /// Whether what such a variable points to has a member, as answered while types were inferred.
    pub answers: HashMap<Question, bool>,
    /// The program uses the groups of a match.
    pub groups_asked: bool,
    /// Source lines are needed.
    pub lines_asked: bool,
    /// What is inferred or lowered now is evaluated at the probed function's entry.
    pub at_entry: bool,
    /// The list of the session's processes is needed.
    pub followed_asked: bool,
}

/// `@defined` of a member of what a variable points to: the operand, the function that it is in, its site, and whether it
/// is the copy for the entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Question(*const ast::Expr, Option<*const ast::Function>, Option<u32>, bool);

/// What is known of a global.
pub(super) struct Global {
    /// Type of the value or, for an array, of its elements.
    pub ty: TypeVar,
    /// Scalar, array or aggregate, and the keys.
    pub shape: Shape,
    /// Its value is used somewhere.
    pub read: bool,
    /// It is assigned to somewhere.
    pub written: bool,
}

impl<'a> Typed<'a> {
    /// With the declared types only.
    pub fn new(names: &Names<'a>) -> Typed<'a> {
        let mut typed = Typed {
            types: Types::default(),
            globals: Vec::new(),
            functions: Vec::new(),
            copies: HashMap::new(),
            reached: Vec::new(),
            pointees: HashMap::new(),
            answers: HashMap::new(),
            compared: Compared::default(),
            groups_asked: false,
            lines_asked: false,
            at_entry: false,
            followed_asked: false,
        };
        for global in &names.globals {
            let ty = match &global.initial {
                None => typed.types.fresh(),
                Some((ast::Literal::Number(_), span)) => typed.types.known(Type::Long, *span),
                Some((ast::Literal::String(_), span)) => typed.types.known(Type::String, *span),
            };
            typed.globals.push(Global { ty, shape: Shape::default(), read: false, written: false });
        }
        for function in &names.functions {
            typed.copy_function(function, Unit::default());
        }
        typed
    }

    /// The question whether the operand exists in the unit.
    pub fn question(&self, unit: &Unit, operand: &ast::Expr) -> Question {
        let function = unit.function.map(|index| std::ptr::from_ref(self.functions[index.index()].ast));
        Question(operand, function, unit.at.site, unit.at.at_entry)
    }

    /// Whether code of the unit that is inferred or lowered now runs at the probed function's entry, of a return probe.
    pub fn is_at_entry(&self, at: &UnitContext) -> bool {
        at.at_entry || self.at_entry && at.is_return()
    }

    /// In a return probe: whether the root of the target expression is a variable of the function's entry.
    pub fn is_captured(&self, at: &UnitContext, expr: &ast::Expr) -> bool {
        let mut root = expr;
        loop {
            root = match &root.kind {
                ast::ExprKind::Member(base, _)
                | ast::ExprKind::Index(base, _)
                | ast::ExprKind::Pretty(base, _)
                | ast::ExprKind::AddressOf(base) => base,
                ast::ExprKind::Target(name) => {
                    return at.is_return() && !self.is_at_entry(at) && name != "$return" && name != "$$return";
                }
                _ => return false,
            };
        }
    }

    /// The type of a variable or result; `long` where no use determines it.
    pub fn type_of(&mut self, var: TypeVar) -> Type {
        self.types.get(var).unwrap_or(Type::Long)
    }

    /// Whether two types are one.
    pub fn is_same(&mut self, one: &Pointee, other: &Pointee) -> bool {
        self.compared.is_same(one, other)
    }

    /// The shape of a global, once all uses are known.
    pub fn contents(&mut self, id: GlobalId) -> Contents {
        let global = &self.globals[id.index()];
        match global.shape.stats {
            Some((stats, _)) => {
                Contents::Stats(Stats { variance: stats.variance || global.shape.sorted_by_variance, ..stats })
            }
            // One that is never used has no type and takes no memory.
            None => Contents::Value(self.type_of(global.ty)),
        }
    }

    /// The types of an array's keys; empty for anything else.
    pub fn key_types(&mut self, id: GlobalId) -> Vec<Type> {
        let keys = self.globals[id.index()].shape.keys.as_ref();
        let vars = keys.map(|(vars, _)| vars.clone()).unwrap_or_default();
        vars.into_iter().map(|var| self.type_of(var)).collect()
    }
}

/// What the uses of a global show about its shape, each with the first place that shows it.
#[derive(Default)]
pub(super) struct Shape {
    /// Used as a plain value.
    pub scalar: Option<Span>,
    /// Used with keys.
    pub keys: Option<(Vec<TypeVar>, Span)>,
    /// Used with `<<<` or an extractor.
    pub stats: Option<(Stats, Span)>,
    /// `foreach (... in array @variance-)`.
    pub sorted_by_variance: bool,
    /// A loop variable that is to take the value of an element.
    pub looped: Option<Span>,
    /// Printed as a histogram.
    pub histogram: Option<Span>,
    /// The first `@...(x, N)`.
    pub shift: Option<(u8, Span)>,
}
