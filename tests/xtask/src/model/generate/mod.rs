// SPDX-License-Identifier: GPL-2.0-or-later

//! Generates random programs: valid, terminating, and with output fully specified by the language.

pub mod concurrent;
mod expression;
mod print;
mod statement;

use std::collections::BTreeSet;

use super::tree::*;
use crate::random::Random;

/// The program for a seed.
pub fn program(seed: u64) -> Program {
    let mut random = Random::new(seed);
    let events = random.one_in(4);
    let mut generator = Generator {
        random,
        program: Program::default(),
        facts: Vec::new(),
        constants: BTreeSet::new(),
        spread: BTreeSet::new(),
        events,
        silent: false,
        hidden: BTreeSet::new(),
    };
    generator.globals();
    for _ in 0..generator.random.below(4) {
        generator.function();
    }
    generator.handlers();
    generator.program
}

/// Of the variance that is asked for.
pub(super) const SHIFT: u32 = 8;

struct Generator {
    random: Random,
    program: Program,
    /// Of the functions that are complete.
    facts: Vec<Facts>,
    /// Globals that nothing writes.
    constants: BTreeSet<usize>,
    /// Aggregates whose variance is asked for; their samples are small.
    spread: BTreeSet<usize>,
    /// Handlers of events are among the handlers.
    events: bool,
    /// Nothing prints, and arrays are iterated over in the order of a key.
    silent: bool,
    /// Globals that statements do not use, but those that are made for them.
    hidden: BTreeSet<usize>,
}

struct Facts {
    /// Globals that it, or a function that it calls, may change.
    writes: BTreeSet<usize>,
    /// Its first argument says how often it may call itself.
    recursive: bool,
}

/// Where statements are generated.
#[derive(Default)]
struct Scope {
    locals: Vec<Type>,
    /// Locals that hold a loop together.
    fixed: BTreeSet<usize>,
    /// Arrays that a foreach iterates over: nothing may change them.
    frozen: BTreeSet<usize>,
    writes: BTreeSet<usize>,
    loops: usize,
    /// How many of the locals are those of a function's call.
    parameters: usize,
    place: GeneratedIn,
    /// How deep statements stand in each other.
    depth: usize,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum GeneratedIn {
    #[default]
    Handler,
    /// With its return type, and whether it may call itself.
    Function(Type, bool),
}

impl Scope {
    fn new_local(&mut self, kind: Type) -> usize {
        self.locals.push(kind);
        self.locals.len() - 1
    }

    fn locals_of(&self, kind: Type) -> Vec<usize> {
        (0..self.locals.len()).filter(|local| self.locals[*local] == kind).collect()
    }
}

/// Whether a number has a value that it hardly ever has.
fn rare() -> Expression {
    Expression::Binary(
        Binary::Equal,
        Box::new(Expression::Read(Variable::Global(0))),
        Box::new(Expression::Number(987_654, false)),
    )
}

/// Reads a function's locals, in a branch that is hardly ever taken: an assignment that nothing reads is left out even if its
/// value is an error (W0102).
fn reads(scope: &Scope) -> Option<Statement> {
    let locals = 0..scope.locals.len();
    let arguments: Vec<Expression> = locals.map(|local| Expression::Read(Variable::Local(local))).collect();
    let is_any = !arguments.is_empty();
    let text = Expression::Sprint(Box::new(Print { form: Form::Plain, arguments }));
    let fail = Statement::Do(Expression::Builtin(Builtin::Error, vec![text]));
    is_any.then(|| Statement::If(rare(), vec![fail], Vec::new()))
}

impl Generator {
    fn kind(&mut self) -> Type {
        if self.random.one_in(3) { Type::Text } else { Type::Long }
    }

    fn globals(&mut self) {
        // One of either kind is always there.
        for index in 0..4 + self.random.below(2) {
            let kind = match index {
                0 => Type::Long,
                1 => Type::Text,
                _ => self.kind(),
            };
            let constant = index > 1 && self.random.one_in(2);
            let initial = if constant || self.random.one_in(2) { Some(self.initial(kind)) } else { None };
            let given = match initial {
                Some(_) => self.random.pick([
                    InitialValue::InText,
                    InitialValue::InText,
                    InitialValue::ToCompiler,
                    InitialValue::ToLoader,
                ]),
                None => InitialValue::InText,
            };
            self.global(GlobalKind::Scalar { kind, initial, given }, Size::default());
            if constant {
                self.constants.insert(index);
            }
        }
        for _ in 0..1 + self.random.below(3) {
            let (keys, kind, size) = (self.key_kinds(), self.kind(), self.size());
            self.global(GlobalKind::Array { keys, kind }, size);
        }
        for _ in 0..self.random.below(3) {
            let keys = match self.random.below(3) {
                0 => Vec::new(),
                // The order of elements made on several CPUs is unspecified, except by a unique key.
                _ if self.events => vec![self.kind()],
                _ => self.key_kinds(),
            };
            let histogram = self.histogram();
            let size = if self.events || keys.is_empty() { Size::default() } else { self.size() };
            let index = self.global(GlobalKind::Aggregate { keys, histogram }, size);
            if self.random.one_in(3) {
                self.spread.insert(index);
            }
        }
    }

    fn global(&mut self, kind: GlobalKind, size: Size) -> usize {
        self.program.globals.push(Global { kind, size });
        self.program.globals.len() - 1
    }

    /// Nothing that a shell would look at.
    fn initial(&mut self, kind: Type) -> Value {
        match kind {
            Type::Long => Value::Long(self.number()),
            Type::Text => Value::Text(self.random.pick(["", "a", "b2", "xyz", "012", "abcabc"]).as_bytes().to_vec()),
        }
    }

    fn key_kinds(&mut self) -> Vec<Type> {
        let number = self.random.pick([1, 1, 1, 2, 2, 3, 4]);
        (0..number).map(|_| self.kind()).collect()
    }

    fn size(&mut self) -> Size {
        if self.events {
            return Size::default();
        }
        let entries = if self.random.one_in(2) { Some(1 + self.random.below(5)) } else { None };
        Size { entries, wraps: self.random.one_in(3) }
    }

    fn histogram(&mut self) -> Option<Histogram> {
        match self.random.below(4) {
            0 => Some(Histogram::Log),
            1 => {
                let (low, width) = (self.random.between(-20, 5), self.random.between(1, 12));
                let steps = self.random.between(1, 30);
                Some(Histogram::Linear { low, high: low + steps * width - self.random.between(0, width - 1), width })
            }
            _ => None,
        }
    }

    fn function(&mut self) {
        let recursive = self.random.one_in(6) && self.facts.iter().all(|facts| !facts.recursive);
        let returns = self.kind();
        let mut scope = Scope { place: GeneratedIn::Function(returns, recursive), depth: 1, ..Scope::default() };
        if recursive {
            let depth = scope.new_local(Type::Long);
            scope.fixed.insert(depth);
        }
        for _ in 0..self.random.below(4) {
            let kind = self.kind();
            scope.new_local(kind);
        }
        let parameters = scope.locals.len();
        scope.parameters = parameters;
        let mut statements = Vec::new();
        if recursive {
            let out = Expression::Binary(
                Binary::LessEqual,
                Box::new(Expression::Read(Variable::Local(0))),
                Box::new(Expression::Number(0, false)),
            );
            let value = self.pure(&mut scope, returns);
            statements.push(Statement::If(out, vec![Statement::Return(value)], Vec::new()));
        }
        for _ in 0..self.random.below(3) {
            let kind = self.kind();
            let local = scope.new_local(kind);
            statements.push(self.first_assignment(&scope, local));
        }
        for _ in 0..1 + self.random.below(3) {
            statements.push(self.statement(&mut scope));
        }
        statements.extend(reads(&scope));
        let typed = self.random.one_in(2);
        if !typed || !self.random.one_in(5) {
            let value = self.expression(&mut scope, returns, 2);
            statements.push(Statement::Return(value));
        }
        self.facts.push(Facts { writes: scope.writes, recursive });
        let body = Body { locals: scope.locals, statements };
        self.program.functions.push(Function { parameters, returns, typed, body });
    }

    /// Tells a local's type; often in a branch that is hardly ever taken.
    fn first_assignment(&mut self, scope: &Scope, local: usize) -> Statement {
        let value = self.literal(scope.locals[local]);
        let assignment = Statement::Do(Expression::Assign(Variable::Local(local), Box::new(value)));
        if self.random.one_in(2) {
            return assignment;
        }
        Statement::If(rare(), vec![assignment], Vec::new())
    }

    fn handlers(&mut self) {
        let begins = if self.events { self.random.below(2) } else { 1 + self.random.below(2) };
        for _ in 0..begins {
            let number = 3 + self.random.below(7);
            self.guarded(HandlerKind::Begin, number);
        }
        if self.events {
            for _ in 0..1 + self.random.below(3) {
                self.quiet();
            }
            if self.random.one_in(2) {
                let number = 1 + self.random.below(5);
                self.guarded(HandlerKind::Event, number);
            }
        }
        let last = if self.events { HandlerKind::End } else { HandlerKind::Begin };
        let body = self.show_globals();
        self.program.handlers.push(Handler { when: last, guarded: true, body });
    }

    fn guarded(&mut self, when: HandlerKind, number: usize) {
        let mut scope = Scope::default();
        for _ in 0..2 + self.random.below(4) {
            let kind = self.kind();
            scope.new_local(kind);
        }
        let own = scope.locals.len();
        let mut statements: Vec<Statement> = (0..number).map(|_| self.outermost(&mut scope)).collect();
        statements.push(show_locals(&scope.locals[..own]));
        self.program.handlers.push(Handler { when, guarded: true, body: Body { locals: scope.locals, statements } });
    }

    /// An error in it is often not that of the whole handler.
    fn outermost(&mut self, scope: &mut Scope) -> Statement {
        if self.random.one_in(3) {
            return self.statement(scope);
        }
        scope.depth += 1;
        let statement = self.statement(scope);
        scope.depth -= 1;
        let caught = scope.new_local(Type::Text);
        Statement::Try(vec![statement], Some(caught), vec![statement::show_error(caught)])
    }

    /// Handlers whose actions may run in any order: they need no lock, or a shared one. Often there is another one that
    /// differs only in numbers.
    fn quiet(&mut self) {
        let mut statements = Vec::new();
        for _ in 0..1 + self.random.below(4) {
            statements.extend(self.commutative());
        }
        if self.random.one_in(2) {
            let other = statements.iter().map(|statement| self.with_other_numbers(statement)).collect();
            let body = Body { locals: Vec::new(), statements: other };
            self.program.handlers.push(Handler { when: HandlerKind::Event, guarded: false, body });
        }
        let body = Body { locals: Vec::new(), statements };
        self.program.handlers.push(Handler { when: HandlerKind::Event, guarded: false, body });
    }
}

/// Prints the values of all these variables, and fixes their types.
fn show_locals(locals: &[Type]) -> Statement {
    let mut pieces = vec![Piece::Text(b"locals".to_vec())];
    for kind in locals {
        pieces.push(Piece::Text(b" ".to_vec()));
        pieces.push(print::plain_directive(*kind));
    }
    pieces.push(Piece::Text(b"\n".to_vec()));
    let arguments = (0..locals.len()).map(|local| Expression::Read(Variable::Local(local))).collect();
    Statement::Print(Print { form: Form::Formatted(pieces), arguments })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_program() {
        for seed in 0..50 {
            assert_eq!(format!("{:?}", program(seed)), format!("{:?}", program(seed)));
        }
    }
}
