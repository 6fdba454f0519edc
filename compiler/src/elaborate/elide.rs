//! Statements that nobody would miss: assignments to local variables that nothing reads, expressions that do nothing but
//! have a value, conditions between such. Like SystemTap, elaboration leaves them out before it looks at what they ask
//! for: a variable of a script's alias that another kernel does not have hurts only the probes that use it, a read
//! that nobody needs cannot fail. `-u` keeps them, and so does `try`.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::Elaborator;
use super::effect::Effects;
use super::unused::Names;
use crate::source::Origin;
use crate::syntax::ast::{Block, Expr, ExprKind, Stmt, StmtKind};
use crate::syntax::visit;

/// Each round leaves out whatever the one before has made needless, against the order of the program at the most one step
/// of a chain: more rounds would cost more than they leave out.
const MOST_ROUNDS: usize = 64;

/// The statements that are left out, each with all inside it.
#[derive(Clone, Default)]
pub(super) struct Elided(Rc<HashSet<*const Stmt>>);

impl Elided {
    pub fn has(&self, statement: &Stmt) -> bool {
        self.0.contains(&std::ptr::from_ref(statement))
    }
}

impl<'a> Elaborator<'a> {
    /// What may be left out of the statements of a handler, or of a function of the user's.
    pub(super) fn elided(&self, statements: &[&'a Stmt]) -> Elided {
        let mut all_used = self.options.unoptimised;
        for statement in statements {
            // Embedded C may use any variable.
            visit::in_statement(statement, &mut |expr| all_used |= matches!(expr.kind, ExprKind::EmbeddedC(_)));
        }
        if all_used {
            return Elided::default();
        }
        let mut elision = Elision::new(self, statements);
        for _ in 0..MOST_ROUNDS {
            let before = elision.dead.len();
            statements.iter().rev().for_each(|statement| elision.mark(statement));
            if elision.dead.len() == before {
                break;
            }
        }
        Elided(Rc::new(elision.dead))
    }

    pub(super) fn elided_of_function(&self, block: &'a Block) -> Elided {
        let library = block.statements.first().is_none_or(|first| self.sources.file(first.span.file).origin == Origin::Tapset);
        if library { Elided::default() } else { self.elided(&block.statements.iter().collect::<Vec<_>>()) }
    }
}

struct Elision<'e, 'a> {
    /// With the local variables that are given values and read by nothing that stays.
    effects: Effects<'e, 'a>,
    /// Local variables that are given values, and how many statements that stay read them. Not those that are counted up:
    /// as in SystemTap, they stay.
    reads: HashMap<&'a str, usize>,
    dead: HashSet<*const Stmt>,
}

impl<'e, 'a> Elision<'e, 'a> {
    fn new(elaborator: &'e Elaborator<'a>, statements: &[&'a Stmt]) -> Elision<'e, 'a> {
        let mut all = Names::default();
        statements.iter().for_each(|statement| all.statement(statement, &|_| false));
        let local = all.written.iter().filter(|(name, span)| !all.updated.contains(name) && elaborator.find_global(span.file, name).is_none());
        let mut reads: HashMap<&'a str, usize> = local.map(|(name, _)| (*name, 0)).collect();
        let mut open = statements.to_vec();
        while let Some(statement) = open.pop() {
            for name in own(statement).read {
                reads.entry(name).and_modify(|count| *count += 1);
            }
            open.extend(inner(statement));
        }
        let unread = reads.iter().filter(|(_, count)| **count == 0).map(|(name, _)| *name).collect();
        Elision { effects: Effects { elaborator, unread, within: Vec::new() }, reads, dead: HashSet::new() }
    }

    fn mark(&mut self, statement: &'a Stmt) {
        if self.dead.contains(&std::ptr::from_ref(statement)) {
            return;
        }
        let inner = match &statement.kind {
            // Its body may be there to fail.
            StmtKind::Try { handler, .. } => handler.statements.iter().collect(),
            _ => inner(statement),
        };
        inner.iter().rev().for_each(|statement| self.mark(statement));
        let is_nothing = |statement: &&Stmt| matches!(statement.kind, StmtKind::Empty) || self.dead.contains(&std::ptr::from_ref(*statement));
        let all_nothing = inner.iter().all(is_nothing);
        let dead = match &statement.kind {
            StmtKind::Expr(expr) => !self.changes(expr),
            StmtKind::Block(block) => !block.statements.is_empty() && all_nothing,
            StmtKind::If { condition, .. } => all_nothing && !self.changes(condition),
            // A loop takes its time, and ends a handler that takes too much.
            _ => false,
        };
        if dead {
            self.bury(statement);
        }
    }

    /// What the statement has read is read by one less; what is inside it is left out already.
    fn bury(&mut self, statement: &'a Stmt) {
        self.dead.insert(statement);
        for name in own(statement).read {
            let Some(count) = self.reads.get_mut(name) else { continue };
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.effects.unread.insert(name);
            }
        }
    }

    fn changes(&mut self, expr: &'a Expr) -> bool {
        self.effects.within.clear();
        self.effects.changes(expr)
    }
}

/// Names in the statement's own expressions, without those of statements inside it.
fn own(statement: &Stmt) -> Names<'_> {
    let mut names = Names::default();
    names.statement(statement, &|other| !std::ptr::eq(other, statement));
    names
}

/// The statements directly inside.
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
