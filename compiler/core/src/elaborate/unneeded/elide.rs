// SPDX-License-Identifier: GPL-2.0-or-later

//! Statements without effect: assignments to local variables that nothing reads, expressions that only have a value,
//! conditions around such statements. Like SystemTap, elaboration removes them before it resolves their variables: a
//! variable of a script's alias that a kernel lacks is an error only in the probes that use it, and an unneeded read
//! cannot fail. With `-u`, and in the body of `try`, they stay.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::access::Accesses;
use super::effect::Effects;
use crate::elaborate::environment::Environment;
use crate::elaborate::names::Names;
use spile_syntax::ast::{Block, Expr, ExprKind, Stmt, StmtKind};
use spile_syntax::visit;

/// The statements that are left out, each with all inside it, and the local variables that no other statement reads.
#[derive(Clone, Default)]
pub(in crate::elaborate) struct Elided(Rc<(HashSet<*const Stmt>, HashSet<String>)>);

impl Elided {
    /// Whether the statement itself is left out.
    pub fn has(&self, statement: &Stmt) -> bool {
        self.0.0.contains(&std::ptr::from_ref(statement))
    }

    /// Whether the name is that of a local variable which is only assigned to.
    pub fn is_unread(&self, name: &str) -> bool {
        self.0.1.contains(name)
    }
}

/// The statements that may be left out of a handler, or of a function in the user's scripts.
pub(in crate::elaborate) fn elided<'a>(env: &Environment<'a>, names: &Names<'a>, statements: &[&'a Stmt]) -> Elided {
    let mut all_used = env.options.unoptimised;
    for statement in statements {
        // Embedded C may use any variable.
        visit::in_statement(statement, &mut |expr| all_used |= matches!(expr.kind, ExprKind::EmbeddedC(_)));
    }
    if all_used {
        return Elided::default();
    }
    let mut elision = Elision::new(names, statements);
    elision.run();
    let unread = elision.effects.unread.iter().map(|name| (*name).to_string()).collect();
    Elided(Rc::new((elision.dead, unread)))
}

/// The same for the body of a function; empty for functions of the library.
pub(in crate::elaborate) fn elided_of_function<'a>(
    env: &Environment<'a>,
    names: &Names<'a>,
    block: &'a Block,
) -> Elided {
    let library = block.statements.first().is_none_or(|first| names.is_library(first.span));
    if library { Elided::default() } else { elided(env, names, &block.statements.iter().collect::<Vec<_>>()) }
}

struct Elision<'e, 'a> {
    /// With the local variables that are assigned to but read by no remaining statement.
    effects: Effects<'e, 'a>,
    /// Local variables that are assigned to, and the number of remaining statements that read them. Not those that are
    /// incremented: as in SystemTap, they stay.
    reads: HashMap<&'a str, usize>,
    /// Statements that assign to a variable.
    writers: HashMap<&'a str, Vec<&'a Stmt>>,
    /// The enclosing statement.
    enclosing: HashMap<*const Stmt, &'a Stmt>,
    dead: HashSet<*const Stmt>,
    /// Statements to examine, the last one first.
    open: Vec<&'a Stmt>,
}

impl<'e, 'a> Elision<'e, 'a> {
    fn new(names: &'e Names<'a>, statements: &[&'a Stmt]) -> Elision<'e, 'a> {
        let mut all = Accesses::default();
        statements.iter().for_each(|statement| all.statement(statement, &|_| false));
        let local = all
            .written
            .iter()
            .filter(|(name, span)| !all.updated.contains(name) && names.find_global(*span, name).is_none());
        let reads = local.map(|(name, _)| (*name, 0)).collect();
        let effects = Effects { names, unread: HashSet::new(), within: Vec::new() };
        let (writers, enclosing) = (HashMap::new(), HashMap::new());
        let mut elision = Elision { effects, reads, writers, enclosing, dead: HashSet::new(), open: Vec::new() };
        statements.iter().for_each(|statement| elision.add(statement, true));
        elision.effects.unread =
            elision.reads.iter().filter(|(_, count)| **count == 0).map(|(name, _)| *name).collect();
        elision
    }

    /// `may_go`: it is not in the body of a `try`, which may be there to fail.
    fn add(&mut self, statement: &'a Stmt, may_go: bool) {
        let names = own(statement);
        for name in names.read {
            self.reads.entry(name).and_modify(|count| *count += 1);
        }
        if may_go {
            self.open.push(statement);
            names.written.iter().for_each(|(name, _)| self.writers.entry(name).or_default().push(statement));
        }
        let tried = match &statement.kind {
            StmtKind::Try { body, .. } => body.statements.len(),
            _ => 0,
        };
        for (index, inside) in inner(statement).into_iter().enumerate() {
            self.enclosing.insert(inside, statement);
            self.add(inside, may_go && index >= tried);
        }
    }

    fn run(&mut self) {
        while let Some(statement) = self.open.pop() {
            if !self.is_dead(statement) && self.is_unneeded(statement) {
                self.mark_dead(statement);
            }
        }
    }

    fn is_dead(&self, statement: &Stmt) -> bool {
        self.dead.contains(&std::ptr::from_ref(statement))
    }

    fn is_unneeded(&mut self, statement: &'a Stmt) -> bool {
        let nothing = |elision: &Self, inside: &Stmt| matches!(inside.kind, StmtKind::Empty) || elision.is_dead(inside);
        match &statement.kind {
            StmtKind::Expr(expr) => !self.changes(expr),
            StmtKind::Block(block) => {
                !block.statements.is_empty() && block.statements.iter().all(|inside| nothing(self, inside))
            }
            StmtKind::If { condition, .. } => {
                inner(statement).into_iter().all(|inside| nothing(self, inside)) && !self.changes(condition)
            }
            // Nothing to catch.
            StmtKind::Try { body, .. } => body.statements.iter().all(|inside| matches!(inside.kind, StmtKind::Empty)),
            // A loop takes time, and ends a handler that takes too much.
            _ => false,
        }
    }

    /// Discounts the reads of the statement and of the remaining statements in it.
    fn mark_dead(&mut self, statement: &'a Stmt) {
        self.dead.insert(statement);
        self.open.extend(self.enclosing.get(&std::ptr::from_ref(statement)));
        for inside in inner(statement) {
            if !self.is_dead(inside) {
                self.mark_dead(inside);
            }
        }
        for name in own(statement).read {
            let Some(count) = self.reads.get_mut(name) else { continue };
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.effects.unread.insert(name);
                self.open.extend(self.writers.get(name).into_iter().flatten());
            }
        }
    }

    fn changes(&mut self, expr: &'a Expr) -> bool {
        self.effects.within.clear();
        self.effects.changes(expr)
    }
}

/// Names in the statement's own expressions, without those of nested statements.
fn own(statement: &Stmt) -> Accesses<'_> {
    let mut accesses = Accesses::default();
    accesses.statement(statement, &|other| !std::ptr::eq(other, statement));
    accesses
}

/// The directly nested statements.
fn inner(statement: &Stmt) -> Vec<&Stmt> {
    match &statement.kind {
        StmtKind::Block(block) => block.statements.iter().collect(),
        StmtKind::If { then, otherwise, .. } => std::iter::once(&**then).chain(otherwise.as_deref()).collect(),
        StmtKind::While { body, .. } | StmtKind::For { body, .. } => vec![&**body],
        StmtKind::Foreach(foreach) => vec![&foreach.body],
        StmtKind::Try { body, handler, .. } => body.statements.iter().chain(&handler.statements).collect(),
        _ => Vec::new(),
    }
}
