// SPDX-License-Identifier: GPL-2.0-or-later

//! A function or handler while it is elaborated: where it runs, and its local variables.

use std::collections::HashMap;
use std::rc::Rc;

use super::names::Names;
use super::types::TypeVar;
use super::unneeded::Elided;
use crate::probe::{Context, Site, TextVariable};
use crate::program::{GlobalId, LocalId, Variable, id};
use spile_source::Span;
use spile_syntax::ast;

id!(/** A declared function, or a copy of one for a probe site: index into the functions of inference. */ InstanceId);

/// Where a handler runs, or the copy of a function for it.
#[derive(Clone, Default)]
pub(super) struct UnitContext {
    /// None in a function that was not copied for a probe.
    pub context: Option<Rc<dyn Context>>,
    /// Spelling of the probe point, for messages.
    pub point: String,
    /// Number of the probe site of a handler, or of the site that a function was copied for.
    pub site: Option<u32>,
    /// The copy of a function for what a return probe evaluates at the probed function's entry.
    pub at_entry: bool,
}

impl UnitContext {
    /// At a return, where variables have the values that they had at the function's entry.
    pub fn is_return(&self) -> bool {
        self.context.as_ref().is_some_and(|context| context.is_return())
    }

    /// The handler has the registers of the probed code.
    pub fn has_registers(&self) -> bool {
        self.context.as_ref().is_some_and(|context| context.has_registers())
    }

    /// Context variables are possible.
    pub fn has_variables(&self) -> bool {
        self.context.as_ref().is_some_and(|context| context.has_variables())
    }

    /// The context variable that an expression is, if that is a string such as `$value` of a procfs probe.
    pub fn text_variable(&self, expr: &ast::Expr) -> Option<TextVariable> {
        match &expr.kind {
            ast::ExprKind::Target(name) => self.context.as_ref()?.text_variable(name.strip_prefix('$')?),
            _ => None,
        }
    }
}

/// One function or handler. Expansion makes it, inference adds the local variables, lowering reads it.
#[derive(Clone, Default)]
pub(super) struct Unit {
    /// The probe site that it runs at, and its context.
    pub at: UnitContext,
    /// Local variables by name.
    pub names: HashMap<String, LocalId>,
    /// By [`LocalId`].
    pub locals: Vec<Local>,
    /// The function that this is.
    pub function: Option<InstanceId>,
    /// Variables that the user's own body of the probe writes, with the globals that they are (`@probewrite`).
    pub user_writes: Vec<(String, Option<GlobalId>)>,
    /// Statements that are left out.
    pub elided: Elided,
}

impl Unit {
    /// A unit without variables.
    pub fn new(at: UnitContext) -> Unit {
        Unit { at, ..Unit::default() }
    }

    /// Adds a variable.
    pub fn add(&mut self, local: Local) -> LocalId {
        let id = LocalId(self.locals.len() as u32);
        self.names.insert(local.name.clone(), id);
        self.locals.push(local);
        id
    }

    /// The local that a name at this place refers to. In a handler a visible global takes precedence: a local of its name
    /// belongs to a library alias. In a function, also in its copy for a probe, that local is a parameter.
    pub fn find_local(&self, names: &Names, span: Span, name: &str) -> Option<LocalId> {
        let id = self.names.get(name).copied();
        id.filter(|_| self.function.is_some() || self.at.site.is_none() || names.find_global(span, name).is_none())
    }

    /// The local or global that a name refers to at this place.
    pub fn find_variable(&self, names: &Names, name: &str, span: Span) -> Option<Variable> {
        let local = self.find_local(names, span, name).map(Variable::Local);
        local.or_else(|| names.find_global(span, name).map(Variable::Global))
    }
}

#[derive(Clone)]
pub(super) struct Local {
    /// As the script spells it.
    pub name: String,
    /// Its type.
    pub ty: TypeVar,
    /// Where it is first named.
    pub span: Span,
    /// It is assigned to somewhere.
    pub assigned: bool,
    /// Its value is used somewhere.
    pub read: bool,
}

/// One site with the statements that run there.
pub(super) struct Handler<'a> {
    /// Where it is attached.
    pub site: Site,
    /// The probe point as written in the script.
    pub script_point: String,
    /// The probe in the script.
    pub span: Span,
    /// Conditions of the point and of aliases; all must hold.
    pub condition: Vec<&'a ast::Expr>,
    /// Statements of aliases and of the probe, in the order of execution.
    pub body: Vec<&'a ast::Stmt>,
    /// Its local variables.
    pub unit: Unit,
}
