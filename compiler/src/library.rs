//! Which library scripts a user's scripts need: those that define a name they lack, and what these need in turn.
//!
//! A file is taken whole, its probes included; files of which nothing is used are left out.

use std::collections::HashSet;

use crate::syntax::ast::{self, Expr, ExprKind, FunctionBody, Index, Item, PrintForm, ProbePoint, Script, Stmt, StmtKind};

/// Of `library`, the files that `scripts` need, in the order of the library.
pub fn select(scripts: &[Script], library: Vec<Script>) -> Vec<Script> {
    let mut defined = HashSet::new();
    let mut wanted = HashSet::new();
    for script in scripts {
        defined.extend(definitions(script));
        wanted.extend(uses(script));
    }
    let offers: Vec<HashSet<String>> = library.iter().map(|script| definitions(script).collect()).collect();
    let mut taken = vec![false; library.len()];
    loop {
        let mut grown = false;
        for (index, script) in library.iter().enumerate() {
            let needed = |name: &String| wanted.contains(name) && !defined.contains(name);
            if !taken[index] && offers[index].iter().any(needed) {
                taken[index] = true;
                grown = true;
                wanted.extend(uses(script));
            }
        }
        if !grown {
            break;
        }
    }
    library.into_iter().zip(taken).filter_map(|(script, taken)| taken.then_some(script)).collect()
}

/// Names that a file gives to others: functions, globals, first components of aliases.
fn definitions(script: &Script) -> impl Iterator<Item = String> {
    script.items.iter().flat_map(|item| match item {
        Item::Function(function) if !function.private => vec![function.name.text.clone()],
        Item::Global(global) if !global.private => vec![global.name.text.clone()],
        Item::Alias(alias) => alias.names.iter().filter_map(|name| name.first()).map(|first| first.name.clone()).collect(),
        _ => Vec::new(),
    })
}

/// Names that a file mentions.
fn uses(script: &Script) -> HashSet<String> {
    let mut names = Names::default();
    for item in &script.items {
        match item {
            Item::Probe(probe) => {
                names.points(&probe.points);
                names.statements(&probe.body.statements);
            }
            Item::Alias(alias) => {
                names.points(&alias.points);
                for block in alias.prologue.iter().chain(&alias.epilogue) {
                    names.statements(&block.statements);
                }
            }
            Item::Function(ast::Function { body: FunctionBody::Script(block), .. }) => names.statements(&block.statements),
            Item::Function(_) | Item::Global(_) | Item::EmbeddedC(_) => {}
        }
    }
    names.names
}

#[derive(Default)]
struct Names {
    names: HashSet<String>,
}

impl Names {
    fn points(&mut self, points: &[ProbePoint]) {
        for point in points {
            self.names.extend(point.components.first().map(|first| first.name.clone()));
            point.condition.iter().for_each(|condition| self.expr(condition));
        }
    }

    fn statements(&mut self, statements: &[Stmt]) {
        statements.iter().for_each(|statement| self.statement(statement));
    }

    fn statement(&mut self, statement: &Stmt) {
        match &statement.kind {
            StmtKind::Empty | StmtKind::Break | StmtKind::Continue | StmtKind::Next => {}
            StmtKind::Block(block) => self.statements(&block.statements),
            StmtKind::Expr(expr) | StmtKind::Delete(expr) => self.expr(expr),
            StmtKind::If { condition, then, otherwise } => {
                self.expr(condition);
                self.statement(then);
                otherwise.iter().for_each(|otherwise| self.statement(otherwise));
            }
            StmtKind::While { condition, body } => {
                self.expr(condition);
                self.statement(body);
            }
            StmtKind::For { init, condition, step, body } => {
                init.iter().chain(condition).chain(step).for_each(|expr| self.expr(expr));
                self.statement(body);
            }
            StmtKind::Foreach(foreach) => {
                self.expr(&foreach.array);
                foreach.slice.iter().flatten().for_each(|index| self.index(index));
                foreach.limit.iter().for_each(|limit| self.expr(limit));
                self.statement(&foreach.body);
            }
            StmtKind::Return(value) => value.iter().for_each(|value| self.expr(value)),
            StmtKind::Try { body, handler, .. } => {
                self.statements(&body.statements);
                self.statements(&handler.statements);
            }
        }
    }

    fn index(&mut self, index: &Index) {
        if let Index::Expr(expr) = index {
            self.expr(expr);
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Ident(name) => {
                self.names.insert(name.clone());
            }
            ExprKind::Call(name, arguments) => {
                self.names.insert(name.text.clone());
                arguments.iter().for_each(|argument| self.expr(argument));
            }
            ExprKind::Member(base, _)
            | ExprKind::Pretty(base, _)
            | ExprKind::AddressOf(base)
            | ExprKind::Unary(_, base)
            | ExprKind::Step { target: base, .. }
            | ExprKind::Cast { value: base, .. }
            | ExprKind::Defined(base)
            | ExprKind::Entry(base)
            | ExprKind::EnumName { value: base, .. }
            | ExprKind::Register { number: base, .. }
            | ExprKind::Matches { left: base, .. }
            | ExprKind::Extract { aggregate: base, .. }
            | ExprKind::Histogram { aggregate: base, .. } => self.expr(base),
            ExprKind::Index(base, indices) | ExprKind::In(indices, base) => {
                self.expr(base);
                indices.iter().for_each(|index| self.index(index));
            }
            ExprKind::Binary(_, left, right)
            | ExprKind::Assign(_, left, right)
            | ExprKind::Deref { size: left, address: right, .. } => {
                self.expr(left);
                self.expr(right);
            }
            ExprKind::Conditional(condition, then, otherwise) => {
                [condition, then, otherwise].into_iter().for_each(|expr| self.expr(expr));
            }
            ExprKind::Print(print) => {
                let (PrintForm::Plain | PrintForm::Delimited(_) | PrintForm::Format(..) | PrintForm::Char) = &print.form;
                print.arguments.iter().for_each(|argument| self.expr(argument));
            }
            ExprKind::Number(_)
            | ExprKind::String(_)
            | ExprKind::Target(_)
            | ExprKind::Var { .. }
            | ExprKind::Perf(_)
            | ExprKind::Const(_)
            | ExprKind::Enum(_)
            | ExprKind::ProbeWrite(_)
            | ExprKind::EmbeddedC(_) => {}
        }
    }
}
