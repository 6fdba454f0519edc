// SPDX-License-Identifier: GPL-2.0-or-later

//! Random statements, and those that print the globals' final values.

use super::expression::has_histogram;
use super::print::plain_directive;
use super::{GeneratedIn, Generator, SHIFT, Scope};
use crate::model::tree::*;

/// How deep statements stand in each other.
const DEEPEST: usize = 3;

impl Generator {
    /// A statement, nested at most as deep as the scope allows.
    pub(super) fn statement(&mut self, scope: &mut Scope) -> Statement {
        let inner = scope.depth < DEEPEST;
        match self.random.below(28) {
            0..=6 => {
                let kind = self.kind();
                match self.change(scope, kind, 3) {
                    // There was nothing to write to.
                    Expression::Read(_) | Expression::Number(..) | Expression::Text(_) => self.print_line(scope),
                    change => Statement::Do(change),
                }
            }
            7..=10 => self.print_line(scope),
            11 | 12 if inner => self.branch(scope),
            13 | 14 if inner => self.counted(scope),
            15 if inner => self.counted_down(scope),
            16..=18 if inner => self.foreach(scope),
            19 if inner => self.attempt(scope),
            20 => self.delete(scope),
            21..=23 => self.feed(scope, 2).map_or_else(|| self.print_line(scope), Statement::Do),
            24 => self.leave(scope),
            25 => {
                let message = self.text_of_error(scope);
                self.rarely(scope, Statement::Do(Expression::Builtin(Builtin::Error, vec![message])))
            }
            26 => self.chart(scope),
            _ if inner => {
                let statements = self.inner(scope, 2);
                Statement::Block(statements)
            }
            _ => self.print_line(scope),
        }
    }

    fn inner(&mut self, scope: &mut Scope, most: usize) -> Vec<Statement> {
        scope.depth += 1;
        let statements = (0..1 + self.random.below(most)).map(|_| self.statement(scope)).collect();
        scope.depth -= 1;
        statements
    }

    /// Loops call no recursive function, because that would take long.
    fn repeated(&mut self, scope: &mut Scope, most: usize) -> Vec<Statement> {
        scope.loops += 1;
        let statements = self.inner(scope, most);
        scope.loops -= 1;
        statements
    }

    fn print_line(&mut self, scope: &mut Scope) -> Statement {
        if self.silent {
            let kind = self.kind();
            return Statement::Do(self.change(scope, kind, 2));
        }
        let mut print = self.print(scope, 3);
        match &mut print.form {
            Form::Formatted(pieces) if !self.random.one_in(6) => pieces.push(Piece::Text(b"\n".to_vec())),
            form @ Form::Plain if !self.random.one_in(3) => *form = Form::Line,
            _ => {}
        }
        // The same by way of string conversion.
        if self.random.one_in(4) {
            return Statement::Print(Print { form: Form::Plain, arguments: vec![Expression::Sprint(Box::new(print))] });
        }
        Statement::Print(print)
    }

    fn text_of_error(&mut self, scope: &mut Scope) -> Expression {
        self.expression(scope, Type::Text, 2)
    }

    fn rarely(&mut self, scope: &mut Scope, statement: Statement) -> Statement {
        let condition = self.expression(scope, Type::Long, 2);
        Statement::If(condition, vec![statement], Vec::new())
    }

    fn branch(&mut self, scope: &mut Scope) -> Statement {
        let condition = self.expression(scope, Type::Long, 3);
        let then = self.inner(scope, 3);
        let otherwise = if self.random.one_in(2) { self.inner(scope, 2) } else { Vec::new() };
        Statement::If(condition, then, otherwise)
    }

    fn counted(&mut self, scope: &mut Scope) -> Statement {
        let local = scope.new_local(Type::Long);
        scope.fixed.insert(local);
        let read = || Box::new(Expression::Read(Variable::Local(local)));
        let first = Expression::Assign(Variable::Local(local), Box::new(Expression::Number(0, false)));
        let most = Expression::Number(self.random.between(1, 5), false);
        let condition = Expression::Binary(Binary::Less, read(), Box::new(most));
        let step = self.random.pick([Step::PreIncrement, Step::PostIncrement]);
        let body = self.repeated(scope, 3);
        Statement::For(Some(first), Some(condition), Some(Expression::Step(step, Variable::Local(local))), body)
    }

    fn counted_down(&mut self, scope: &mut Scope) -> Statement {
        let local = scope.new_local(Type::Long);
        scope.fixed.insert(local);
        let first =
            Expression::Assign(Variable::Local(local), Box::new(Expression::Number(self.random.between(1, 4), false)));
        let down = Expression::Binary(
            Binary::Greater,
            Box::new(Expression::Step(Step::PostDecrement, Variable::Local(local))),
            Box::new(Expression::Number(0, false)),
        );
        let body = self.repeated(scope, 3);
        Statement::Block(vec![Statement::Do(first), Statement::While(down, body)])
    }

    fn foreach(&mut self, scope: &mut Scope) -> Statement {
        let arrays = self.arrays(|_, _| true);
        let Some(array) = self.random.choose(&arrays).copied() else {
            return self.print_line(scope);
        };
        let global = self.program.globals[array].clone();
        let keys: Vec<usize> = global.keys().iter().map(|kind| scope.new_local(*kind)).collect();
        let value = match global.kind {
            GlobalKind::Array { kind, .. } if self.random.one_in(2) => Some(scope.new_local(kind)),
            _ => None,
        };
        let sort = match self.silent {
            true => Some(Sort { by: SortBy::Key(0), descending: self.random.one_in(2) }),
            false => self.sort(&global, value.is_some()),
        };
        let slice = (keys.len() > 1 && self.random.one_in(3)).then(|| self.pure_slice(scope, array));
        let limit = self.random.one_in(3).then(|| Expression::Number(self.random.between(0, 4), false));
        let newly = scope.frozen.insert(array);
        let mut body = self.repeated(scope, 3);
        if newly {
            scope.frozen.remove(&array);
        }
        if !self.silent {
            body.insert(0, show_visited(array, &keys, value, scope));
        }
        Statement::Foreach(Box::new(Foreach { array, keys, value, sort, slice, limit, body }))
    }

    fn sort(&mut self, global: &Global, has_value: bool) -> Option<Sort> {
        let descending = self.random.one_in(2);
        let keys = global.keys().len();
        let by = if global.is_aggregate() {
            let extractor = self.random.pick(Extractor::ALL);
            let by = if self.events { 0 } else { self.random.below(4) };
            self.random_sort(by, keys, SortBy::Extracted(extractor))?
        } else {
            let by = self.random.below(4);
            let at_value = if has_value && self.random.one_in(2) { SortBy::Value } else { SortBy::Array };
            self.random_sort(by, keys, at_value)?
        };
        Some(Sort { by, descending })
    }

    fn random_sort(&mut self, by: usize, keys: usize, other: SortBy) -> Option<SortBy> {
        match by {
            0 => Some(SortBy::Key(self.random.below(keys))),
            1 => Some(SortBy::Array),
            2 => Some(other),
            _ => None,
        }
    }

    fn pure_slice(&mut self, scope: &mut Scope, array: usize) -> Vec<Option<Expression>> {
        let kinds = self.program.globals[array].keys().to_vec();
        let mut slice: Vec<Option<Expression>> = kinds
            .into_iter()
            .map(|kind| if self.random.one_in(2) { Some(self.key(scope, kind, 0)) } else { None })
            .collect();
        if slice.iter().all(Option::is_some) {
            slice[0] = None;
        }
        slice
    }

    fn attempt(&mut self, scope: &mut Scope) -> Statement {
        let body = self.inner(scope, 3);
        let caught = self.random.one_in(2).then(|| scope.new_local(Type::Text));
        let mut handling = self.inner(scope, 1);
        if let Some(caught) = caught
            && !self.silent
        {
            handling.insert(0, show_error(caught));
        }
        Statement::Try(body, caught, handling)
    }

    fn delete(&mut self, scope: &mut Scope) -> Statement {
        let writable: Vec<usize> = (0..self.program.globals.len())
            .filter(|index| !self.constants.contains(index) && !self.hidden.contains(index))
            .filter(|index| !scope.frozen.contains(index))
            .collect();
        let Some(index) = self.random.choose(&writable).copied() else {
            return self.print_line(scope);
        };
        scope.writes.insert(index);
        if self.program.globals[index].keys().is_empty() || self.random.one_in(6) {
            return Statement::Delete(Variable::Global(index));
        }
        let slice = self.slice(scope, index, 1);
        if slice.iter().any(Option::is_none) {
            return Statement::DeleteSlice(index, slice);
        }
        Statement::Delete(Variable::Element(index, slice.into_iter().flatten().collect()))
    }

    /// A `<<<` to an aggregate; `None` if there is none that may be written here.
    pub(super) fn feed(&mut self, scope: &mut Scope, depth: usize) -> Option<Expression> {
        let frozen = scope.frozen.clone();
        let place = self.aggregate(scope, depth.min(1), |index, _| !frozen.contains(&index))?;
        let index = index_of(&place);
        scope.writes.insert(index);
        let value = self.boxed(scope, Type::Long, depth);
        let small = Box::new(Expression::Number(self.random.pick([7, 63, 255]), false));
        let value = if self.spread.contains(&index) || !self.random.one_in(4) {
            Box::new(Expression::Binary(Binary::BitAnd, value, small))
        } else {
            value
        };
        Some(Expression::Feed(place, value))
    }

    fn leave(&mut self, scope: &mut Scope) -> Statement {
        let leaving = match scope.place {
            _ if scope.loops > 0 && !self.random.one_in(3) => self.random.pick([0, 1]),
            GeneratedIn::Function(..) => 2,
            GeneratedIn::Handler => 3,
        };
        let statement = match (leaving, scope.place) {
            (0, _) => Statement::Break,
            (1, _) => Statement::Continue,
            (_, GeneratedIn::Function(returns, _)) => Statement::Return(self.expression(scope, returns, 2)),
            _ => Statement::Next,
        };
        self.rarely(scope, statement)
    }

    fn chart(&mut self, scope: &mut Scope) -> Statement {
        if self.silent {
            return self.print_line(scope);
        }
        let spread = self.spread.clone();
        if self.random.one_in(2)
            && let Some(place) = self.aggregate(scope, 1, |index, _| spread.contains(&index))
        {
            return Statement::Variance(place, SHIFT);
        }
        match self.aggregate(scope, 1, has_histogram) {
            Some(place) => Statement::Chart(place),
            None => self.print_line(scope),
        }
    }

    /// Statements for a handler of events that may run in any order with others, and print nothing.
    pub(super) fn commutative(&mut self) -> Option<Statement> {
        let scope = &mut Scope::default();
        let number = self.random.between(0, 9);
        let by = |number| Box::new(Expression::Number(number, false));
        let change = match self.random.below(4) {
            0 => Expression::Step(self.random.pick([Step::PreIncrement, Step::PostDecrement]), Variable::Global(0)),
            1 => Expression::Update(Binary::Add, Variable::Global(0), by(number)),
            2 => self.feed(scope, 0)?,
            _ => {
                let arrays = self.arrays(|_, global| matches!(global.kind, GlobalKind::Array { kind: Type::Long, .. }));
                let array = self.random.choose(&arrays).copied()?;
                let kinds = self.program.globals[array].keys().to_vec();
                let keys = kinds.into_iter().map(|kind| match kind {
                    Type::Long => Expression::Number(self.random.between(0, 3), false),
                    Type::Text => Expression::Text(self.random.pick(["a", "b"]).as_bytes().to_vec()),
                });
                let place = Variable::Element(array, keys.collect());
                Expression::Update(Binary::Add, place, by(number))
            }
        };
        let statement = Statement::Do(change);
        if self.random.one_in(4) {
            let kind = self.kind();
            let constants: Vec<Variable> = self.constants.iter().map(|index| Variable::Global(*index)).collect();
            if let Some(Variable::Global(index)) = self.random.choose(&constants).cloned()
                && matches!(self.program.globals[index].kind, GlobalKind::Scalar { kind: own, .. } if own == kind)
            {
                let other = Box::new(self.literal(kind));
                let operator = self.random.pick(Binary::COMPARISONS);
                let condition =
                    Expression::Binary(operator, Box::new(Expression::Read(Variable::Global(index))), other);
                return Some(Statement::If(condition, vec![statement], Vec::new()));
            }
        }
        Some(statement)
    }

    /// The same statement, except for the added value.
    pub(super) fn with_other_numbers(&mut self, statement: &Statement) -> Statement {
        match statement {
            Statement::Do(Expression::Update(operator, place, _)) => {
                let number = Box::new(Expression::Number(self.random.between(0, 99), false));
                Statement::Do(Expression::Update(*operator, place.clone(), number))
            }
            Statement::Do(Expression::Feed(place, _)) => {
                let number = Box::new(Expression::Number(self.random.between(0, 99), false));
                Statement::Do(Expression::Feed(place.clone(), number))
            }
            Statement::If(condition, then, otherwise) => {
                let then = then.iter().map(|statement| self.with_other_numbers(statement)).collect();
                Statement::If(condition.clone(), then, otherwise.clone())
            }
            other => other.clone(),
        }
    }

    /// A body that prints all globals.
    pub(super) fn show_globals(&mut self) -> Body {
        let mut scope = Scope::default();
        let mut statements = Vec::new();
        for index in 0..self.program.globals.len() {
            let global = self.program.globals[index].clone();
            match (&global.kind, global.keys()) {
                (GlobalKind::Scalar { kind, .. }, _) => {
                    let pieces = vec![
                        Piece::Text(format!("global {index} ").into_bytes()),
                        plain_directive(*kind),
                        Piece::Text(b"\n".to_vec()),
                    ];
                    let arguments = vec![Expression::Read(Variable::Global(index))];
                    statements.push(Statement::Print(Print { form: Form::Formatted(pieces), arguments }));
                }
                (GlobalKind::Aggregate { histogram, .. }, []) => {
                    statements.extend(self.show_aggregate(&Variable::Global(index), *histogram));
                }
                (_, kinds) => {
                    let keys: Vec<usize> = kinds.iter().map(|kind| scope.new_local(*kind)).collect();
                    let value = match global.kind {
                        GlobalKind::Array { kind, .. } => Some(scope.new_local(kind)),
                        _ => None,
                    };
                    let mut body = vec![show_visited(index, &keys, value, &scope)];
                    if let GlobalKind::Aggregate { histogram, .. } = global.kind {
                        let element = Variable::Element(
                            index,
                            keys.iter().map(|key| Expression::Read(Variable::Local(*key))).collect(),
                        );
                        body.extend(self.show_aggregate(&element, histogram));
                    }
                    let sort = (self.events && global.is_aggregate())
                        .then_some(Sort { by: SortBy::Key(0), descending: false });
                    let foreach = Foreach { array: index, keys, value, sort, slice: None, limit: None, body };
                    statements.push(Statement::Foreach(Box::new(foreach)));
                }
            }
        }
        Body { locals: scope.locals, statements }
    }

    fn show_aggregate(&mut self, place: &Variable, histogram: Option<Histogram>) -> Vec<Statement> {
        let extract = |extractor| Expression::Extract(extractor, place.clone());
        let line = |extractors: &[Extractor]| {
            let mut pieces = vec![Piece::Text(b"aggregate".to_vec())];
            for _ in extractors {
                pieces.extend([Piece::Text(b" ".to_vec()), plain_directive(Type::Long)]);
            }
            pieces.push(Piece::Text(b"\n".to_vec()));
            Statement::Print(Print {
                form: Form::Formatted(pieces),
                arguments: extractors.iter().map(|extractor| extract(*extractor)).collect(),
            })
        };
        let mut more = vec![line(&[Extractor::Min, Extractor::Max, Extractor::Avg])];
        if histogram.is_some() {
            more.push(Statement::Chart(place.clone()));
        }
        if self.spread.contains(&index_of(place)) {
            more.push(Statement::Variance(place.clone(), SHIFT));
        }
        vec![line(&[Extractor::Count, Extractor::Sum]), Statement::If(extract(Extractor::Count), more, Vec::new())]
    }
}

/// Prints the message that `catch` stored in this local.
pub(super) fn show_error(caught: usize) -> Statement {
    let pieces = vec![Piece::Text(b"error ".to_vec()), plain_directive(Type::Text), Piece::Text(b"\n".to_vec())];
    let arguments = vec![Expression::Read(Variable::Local(caught))];
    Statement::Print(Print { form: Form::Formatted(pieces), arguments })
}

fn index_of(place: &Variable) -> usize {
    let (Variable::Local(index) | Variable::Global(index) | Variable::Element(index, _)) = place;
    *index
}

/// Prints the element that a foreach is at.
fn show_visited(array: usize, keys: &[usize], value: Option<usize>, scope: &Scope) -> Statement {
    let mut pieces = vec![Piece::Text(format!("in {array}:").into_bytes())];
    let locals: Vec<usize> = keys.iter().copied().chain(value).collect();
    for local in &locals {
        pieces.extend([Piece::Text(b" ".to_vec()), plain_directive(scope.locals[*local])]);
    }
    pieces.push(Piece::Text(b"\n".to_vec()));
    let arguments = locals.into_iter().map(|local| Expression::Read(Variable::Local(local))).collect();
    Statement::Print(Print { form: Form::Formatted(pieces), arguments })
}
