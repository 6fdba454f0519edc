//! Statements that nobody would miss: assignments to local variables that nothing reads, expressions that do nothing but
//! have a value, conditions between such. Like SystemTap, elaboration leaves them out before it looks at what they ask
//! for: a variable of a script's alias that another kernel does not have hurts only the probes that use it, a read
//! that nobody needs cannot fail. `-u` keeps them, and so does `try`.

use std::collections::HashSet;
use std::rc::Rc;

use super::Elaborator;
use super::effect::Effects;
use super::unused::Names;
use crate::source::{Origin, Span};
use crate::syntax::ast::{Block, Expr, ExprKind, Stmt, StmtKind};
use crate::syntax::visit;

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
        let mut elision = Elision { elaborator: self, unread: HashSet::new(), dead: HashSet::new() };
        while !all_used {
            let before = elision.dead.len();
            elision.unread = elision.find_unread(statements);
            for statement in statements {
                elision.mark(statement);
            }
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
    elaborator: &'e Elaborator<'a>,
    /// Local variables that are given values and read by nothing that stays.
    unread: HashSet<&'a str>,
    dead: HashSet<*const Stmt>,
}

impl<'a> Elision<'_, 'a> {
    fn is_dead(&self, statement: &Stmt) -> bool {
        self.dead.contains(&std::ptr::from_ref(statement))
    }

    fn find_unread(&self, statements: &[&'a Stmt]) -> HashSet<&'a str> {
        let mut names = Names::default();
        for statement in statements {
            names.statement(statement, &|statement| self.is_dead(statement));
        }
        // As in SystemTap, what is only counted up stays.
        let unread = |(name, span): &&(&'a str, Span)| {
            !names.read.contains(name) && !names.updated.contains(name) && self.elaborator.find_global(span.file, name).is_none()
        };
        names.written.iter().filter(unread).map(|(name, _)| *name).collect()
    }

    fn mark(&mut self, statement: &'a Stmt) {
        if self.is_dead(statement) {
            return;
        }
        let dead = match &statement.kind {
            StmtKind::Expr(expr) => !self.changes(expr),
            StmtKind::Block(block) => {
                self.mark_all(&block.statements);
                !block.statements.is_empty() && block.statements.iter().all(|statement| self.is_nothing(statement))
            }
            StmtKind::If { condition, then, otherwise } => {
                self.mark(then);
                otherwise.iter().for_each(|otherwise| self.mark(otherwise));
                let nothing = self.is_nothing(then) && otherwise.as_ref().is_none_or(|otherwise| self.is_nothing(otherwise));
                nothing && !self.changes(condition)
            }
            // A loop takes its time, and ends a handler that takes too much.
            StmtKind::While { body, .. } | StmtKind::For { body, .. } => {
                self.mark(body);
                false
            }
            StmtKind::Foreach(foreach) => {
                self.mark(&foreach.body);
                false
            }
            // Its body may be there to fail.
            StmtKind::Try { handler, .. } => {
                self.mark_all(&handler.statements);
                false
            }
            StmtKind::Empty | StmtKind::Break | StmtKind::Continue | StmtKind::Next | StmtKind::Return(_) | StmtKind::Delete(_) => false,
        };
        if dead {
            self.dead.insert(statement);
        }
    }

    fn mark_all(&mut self, statements: &'a [Stmt]) {
        statements.iter().for_each(|statement| self.mark(statement));
    }

    fn is_nothing(&self, statement: &Stmt) -> bool {
        matches!(statement.kind, StmtKind::Empty) || self.is_dead(statement)
    }

    fn changes(&self, expr: &'a Expr) -> bool {
        Effects { elaborator: self.elaborator, unread: self.unread.clone(), within: Vec::new() }.changes(expr)
    }
}
