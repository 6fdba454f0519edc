// SPDX-License-Identifier: GPL-2.0-or-later

//! Programs whose handlers run on several threads at once. Each global is used in a way for which the compiler has a lock of
//! its own: by anything, or by events only in that way and by timers in any.

use std::collections::{BTreeMap, BTreeSet};

use super::{Generator, Scope};
use crate::model::tree::*;
use crate::random::Random;

/// A program, and the threads that run its handlers.
pub struct Concurrent {
    /// Its handlers: those of the first thread, those of the second, and so on.
    pub program: Program,
    /// Number of threads.
    pub threads: usize,
    /// Handlers of each.
    pub hits: usize,
}

/// How events use a global.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Any,
    /// Numbers that are only added to.
    Added,
    /// A few elements in each handler, with keys known when it begins.
    FewKeys,
    /// A number that a handler reads or writes once, and no other one of them.
    Once,
    /// An aggregate that is only fed.
    Fed,
}

/// The program for a seed.
pub fn program(seed: u64) -> Concurrent {
    let mut random = Random::new(seed ^ 0x5ca1e);
    let (threads, hits) = random.pick([(2, 2), (2, 3), (2, 4), (3, 2), (4, 1)]);
    let generator = Generator {
        random,
        program: Program::default(),
        facts: Vec::new(),
        constants: BTreeSet::new(),
        spread: BTreeSet::new(),
        events: true,
        silent: true,
        hidden: BTreeSet::new(),
    };
    let mut builder = Builder { generator, uses: Vec::new() };
    builder.globals();
    builder.functions();
    for index in 0..threads * hits {
        builder.handler(index);
    }
    builder.reciprocal();
    builder.adders();
    Concurrent { program: builder.generator.program, threads, hits }
}

struct Builder {
    generator: Generator,
    /// By global.
    uses: Vec<Use>,
}

/// A handler that is being made.
struct HandlerDraft {
    scope: Scope,
    /// The keys that it uses, of arrays of which it uses a few elements.
    keys: BTreeMap<usize, Vec<Expression>>,
    once: bool,
}

impl Builder {
    fn global(&mut self, kind: GlobalKind, size: Size, by: Use) {
        self.generator.global(kind, size);
        self.uses.push(by);
    }

    fn globals(&mut self) {
        let scalar = |kind, initial| GlobalKind::Scalar { kind, initial, given: InitialValue::InText };
        self.global(scalar(Type::Long, None), Size::default(), Use::Any);
        self.global(scalar(Type::Text, Some(Value::Text(b"x".to_vec()))), Size::default(), Use::Any);
        for _ in 0..1 + self.generator.random.below(3) {
            let (first, by) =
                (self.generator.random.between(0, 3), self.generator.random.pick([Use::Any, Use::Added, Use::Once]));
            self.global(scalar(Type::Long, Some(Value::Long(first))), Size::default(), by);
        }
        let mut wrapping = false;
        for _ in 0..2 + self.generator.random.below(3) {
            let by = self.generator.random.pick([Use::Any, Use::Added, Use::FewKeys, Use::FewKeys, Use::FewKeys]);
            let kind = if by == Use::Added { Type::Long } else { self.generator.kind() };
            // A full array that does not wrap, from which other threads delete, is only determined under one lock. Of two
            // arrays with stripes the orders of creation may be those of different sequences.
            let size = match by {
                Use::Any if self.generator.random.one_in(2) => {
                    Size { entries: Some(2 + self.generator.random.below(3)), wraps: self.generator.random.one_in(2) }
                }
                Use::FewKeys if !wrapping && self.generator.random.one_in(4) => {
                    wrapping = true;
                    Size { entries: Some(1 + self.generator.random.below(2)), wraps: true }
                }
                _ => Size::default(),
            };
            let keys = vec![self.generator.kind()];
            self.global(GlobalKind::Array { keys, kind }, size, by);
        }
        for _ in 0..self.generator.random.below(3) {
            let keys = if self.generator.random.one_in(3) { Vec::new() } else { vec![self.generator.kind()] };
            let by = self.generator.random.pick([Use::Any, Use::Fed]);
            self.global(GlobalKind::Aggregate { keys, histogram: None }, Size::default(), by);
        }
    }

    fn of(&self, by: Use) -> Vec<usize> {
        (0..self.uses.len()).filter(|index| self.uses[*index] == by).collect()
    }

    /// Globals that the statements of no event use.
    fn special(&self) -> BTreeSet<usize> {
        (0..self.uses.len()).filter(|index| self.uses[*index] != Use::Any).collect()
    }

    fn functions(&mut self) {
        self.generator.hidden = self.special();
        for _ in 0..self.generator.random.below(3) {
            self.generator.function();
        }
    }

    /// `function f(x) { return 2 / x }`, whose value may be computed early for a key, and which fails for 0. Nothing else
    /// calls it, so it comes last, when all else is made.
    fn reciprocal(&mut self) {
        let read = Expression::Read(Variable::Local(0));
        let value = Expression::Binary(Binary::Divide, Box::new(Expression::Number(2, false)), Box::new(read));
        let body = Body { locals: vec![Type::Long], statements: vec![Statement::Return(value)] };
        self.generator.program.functions.push(Function { parameters: 1, returns: Type::Long, typed: true, body });
    }

    /// Arrays with stripes by a number.
    fn by_number(&self) -> Vec<usize> {
        let fits = |index: &usize| matches!(&self.generator.program.globals[*index].kind, GlobalKind::Array { keys, .. } if keys[0] == Type::Long);
        self.of(Use::FewKeys).into_iter().filter(fits).collect()
    }

    /// `function f(x) { array[x] = ...; return x }` for each such array, behind the one of [`Builder::reciprocal`].
    fn adders(&mut self) {
        for array in self.by_number() {
            let key = Expression::Read(Variable::Local(0));
            let body =
                Body { locals: vec![Type::Long], statements: vec![self.growing(array, &key), Statement::Return(key)] };
            self.generator.program.functions.push(Function { parameters: 1, returns: Type::Long, typed: true, body });
        }
    }

    /// Adds to the element.
    fn growing(&self, array: usize, key: &Expression) -> Statement {
        let place = Variable::Element(array, vec![key.clone()]);
        let read = Box::new(Expression::Read(place.clone()));
        let more = match &self.generator.program.globals[array].kind {
            GlobalKind::Array { kind: Type::Text, .. } => {
                Expression::Binary(Binary::Concat, read, Box::new(Expression::Text(b"+".to_vec())))
            }
            _ => Expression::Binary(Binary::Add, read, Box::new(Expression::Number(3, false))),
        };
        Statement::Do(Expression::Assign(place, Box::new(more)))
    }

    /// The end of a handler that uses an array with stripes by keys that depend on what it has done with other globals. Such a
    /// handler takes those stripes late, so the order in which it creates elements is not that of an array that wraps.
    fn late(&mut self, draft: &mut HandlerDraft, first: &mut Vec<Statement>) -> Vec<Statement> {
        let few = self.of(Use::FewKeys);
        let unused: Vec<usize> = few.iter().copied().filter(|array| !draft.keys.contains_key(array)).collect();
        let wraps = few.iter().any(|array| self.generator.program.globals[*array].size.wraps);
        let Some(&array) = self.generator.random.choose(&unused).filter(|_| !wraps) else { return Vec::new() };
        let GlobalKind::Array { keys, .. } = self.generator.program.globals[array].kind.clone() else {
            return Vec::new();
        };
        let kind = keys[0];
        let mut statements = Vec::new();
        let mut key = self.late_key(draft, array, kind);
        let functions = self.generator.program.functions.len();
        let adder = self.by_number().iter().position(|it| *it == array).map(|position| functions + 1 + position);
        if self.generator.random.one_in(2) {
            // A local that is assigned twice.
            let local = draft.scope.new_local(kind);
            let place = || Variable::Local(local);
            first.push(Statement::Do(Expression::Assign(place(), Box::new(literal_key(kind, 0)))));
            statements.push(Statement::Do(Expression::Assign(place(), Box::new(key))));
            key = Expression::Read(place());
        }
        for _ in 0..1 + self.generator.random.below(3) {
            let place = Variable::Element(array, vec![key.clone()]);
            let found = Expression::In(vec![Some(key.clone())], array);
            statements.push(match (self.generator.random.below(5), adder) {
                (0, Some(adder)) => Statement::Do(Expression::Call(adder, vec![key.clone()])),
                (1, _) => Statement::If(found, vec![Statement::Delete(place)], vec![self.growing(array, &key)]),
                // Changes what other keys of the handler may be made of.
                (2, _) => {
                    let next = Expression::Binary(
                        Binary::Add,
                        Box::new(Expression::Read(Variable::Global(0))),
                        Box::new(found),
                    );
                    Statement::Do(Expression::Assign(Variable::Global(0), Box::new(next)))
                }
                _ => self.growing(array, &key),
            });
        }
        match self.generator.random.below(3) {
            0 => {
                let odd = Expression::Binary(
                    Binary::BitAnd,
                    Box::new(Expression::Read(Variable::Global(0))),
                    Box::new(Expression::Number(1, false)),
                );
                vec![Statement::If(odd, statements, Vec::new())]
            }
            _ => statements,
        }
    }

    /// A key of the array: made of a number or string that handlers lock, or of an element of another array with stripes.
    fn late_key(&mut self, draft: &HandlerDraft, array: usize, kind: Type) -> Expression {
        let source = |variable| Box::new(Expression::Read(variable));
        let others: Vec<usize> = draft.keys.keys().copied().filter(|other| *other != array).collect();
        let of_kind = |other: &&usize| matches!(&self.generator.program.globals[**other].kind, GlobalKind::Array { kind: of, .. } if *of == kind);
        let other =
            others.iter().find(of_kind).and_then(|other| Some((*other, draft.keys.get(other)?.first()?.clone())));
        // A call may fail, which ends a handler.
        let other = other.filter(|(_, key)| !matches!(key, Expression::Call(..)));
        let element = other.filter(|_| self.generator.random.one_in(2));
        let scalar = Variable::Global(if kind == Type::Long { 0 } else { 1 });
        let read = source(element.map_or(scalar, |(other, key)| Variable::Element(other, vec![key])));
        match kind {
            Type::Long => Expression::Binary(Binary::BitAnd, read, Box::new(Expression::Number(3, false))),
            Type::Text => {
                let numbers = [0, 1].map(|number| Expression::Number(number, false));
                let letter = Expression::Builtin(Builtin::Substr, std::iter::once(*read).chain(numbers).collect());
                Expression::Binary(Binary::Concat, Box::new(Expression::Text(b"k".to_vec())), Box::new(letter))
            }
        }
    }

    /// An error in it ends it; its effects up to then remain.
    fn handler(&mut self, index: usize) {
        let timer = self.generator.random.one_in(5);
        // Timers may not use those of which a run uses one either.
        self.generator.hidden = if timer { self.of(Use::Once).into_iter().collect() } else { self.special() };
        let mut draft = HandlerDraft { scope: Scope::default(), keys: BTreeMap::new(), once: false };
        let mut first = Vec::new();
        for kind in [Type::Long, Type::Long, Type::Text] {
            let local = Variable::Local(draft.scope.new_local(kind));
            let literal = Box::new(self.generator.literal(kind));
            first.push(Statement::Do(Expression::Assign(local, literal)));
        }
        let mut statements = Vec::new();
        if index == 0 {
            statements.extend(self.second_elements());
        }
        for _ in 0..1 + self.generator.random.below(4) {
            let special = match self.generator.random.one_in(3) {
                true => None,
                false => self.special_statement(&mut draft, timer),
            };
            statements.push(match special {
                Some(special) => special,
                None => self.generator.statement(&mut draft.scope),
            });
        }
        first.extend(draft.keys.values().flatten().filter_map(|key| self.local_key(key)));
        let late = match timer {
            true => Vec::new(),
            false => self.late(&mut draft, &mut first),
        };
        first.push(Statement::Try(statements, None, Vec::new()));
        first.extend(late);
        let body = Body { locals: draft.scope.locals, statements: first };
        let when = if timer { HandlerKind::Timer } else { HandlerKind::Event };
        self.generator.program.handlers.push(Handler { when, guarded: false, body });
    }

    /// Two elements of each array with a size that events use in any way, by a key that is not known before, so that it has
    /// one lock.
    fn second_elements(&mut self) -> Vec<Statement> {
        let globals = self.generator.program.globals.clone();
        let any = |index: usize| self.uses[index] == Use::Any;
        let sized = globals.iter().enumerate().filter(|(index, global)| any(*index) && global.size.entries.is_some());
        let sized: Vec<(usize, &Global)> = sized.collect();
        let mut statements = Vec::new();
        for (index, global) in sized {
            let GlobalKind::Array { keys, kind } = &global.kind else { continue };
            let literal = Variable::Element(index, vec![literal_key(keys[0], 0)]);
            let scalar = Variable::Global(if keys[0] == Type::Long { 0 } else { 1 });
            let computed = Variable::Element(index, vec![Expression::Read(scalar)]);
            let value = self.generator.literal(*kind);
            statements.push(Statement::Do(Expression::Assign(literal.clone(), Box::new(value))));
            statements.push(Statement::Do(Expression::Assign(computed, Box::new(Expression::Read(literal)))));
        }
        statements
    }

    /// The assignment to a local, if the key is one.
    fn local_key(&mut self, key: &Expression) -> Option<Statement> {
        match key {
            Expression::Read(Variable::Local(local)) => {
                let number = Expression::Number(self.generator.random.between(0, 2), false);
                Some(Statement::Do(Expression::Assign(Variable::Local(*local), Box::new(number))))
            }
            _ => None,
        }
    }

    /// Uses a global in the one way that its kind of use allows. None if there is none, or no more of it may be used.
    fn special_statement(&mut self, draft: &mut HandlerDraft, timer: bool) -> Option<Statement> {
        let special: Vec<usize> = self.special().into_iter().collect();
        let global = *self.generator.random.choose(&special)?;
        match self.uses[global] {
            Use::Added => Some(Statement::Do(self.adding(global))),
            Use::FewKeys => Some(self.few_elements(draft, global)),
            Use::Once if draft.once || timer => None,
            Use::Once => {
                draft.once = true;
                Some(Statement::Do(self.once(global)))
            }
            Use::Fed | Use::Any => {
                let place = self.few_keys(global);
                let number = Box::new(Expression::Number(self.generator.random.between(0, 9), false));
                Some(Statement::Do(Expression::Feed(place, number)))
            }
        }
    }

    /// The global, or one of a few elements of it.
    fn few_keys(&mut self, global: usize) -> Variable {
        match self.generator.program.globals[global].keys() {
            [] => Variable::Global(global),
            &[kind, ..] => Variable::Element(global, vec![literal_key(kind, self.generator.random.between(0, 2))]),
        }
    }

    fn adding(&mut self, global: usize) -> Expression {
        let place = self.few_keys(global);
        let operator = self.generator.random.pick([Binary::Add, Binary::Subtract]);
        match self.generator.random.below(3) {
            0 => Expression::Step(self.generator.random.pick([Step::PreIncrement, Step::PostDecrement]), place),
            _ => {
                let number = self.generator.random.between(0, 9);
                Expression::Update(operator, place, Box::new(Expression::Number(number, false)))
            }
        }
    }

    fn once(&mut self, global: usize) -> Expression {
        let place = Variable::Global(global);
        if self.generator.random.one_in(2) {
            Expression::Assign(Variable::Local(0), Box::new(Expression::Read(place)))
        } else {
            let number = self.generator.random.between(0, 9);
            Expression::Assign(place, Box::new(Expression::Number(number, false)))
        }
    }

    /// One of the keys that the handler uses of the array, or another one.
    fn key_of(&mut self, draft: &mut HandlerDraft, array: usize, kind: Type) -> Expression {
        let of_hit = self.generator.of_hit(kind);
        let random = &mut self.generator.random;
        let keys = draft.keys.entry(array).or_default();
        if keys.is_empty() || keys.len() < 3 && random.one_in(3) {
            let reciprocal = self.generator.program.functions.len();
            keys.push(match kind {
                Type::Long if random.one_in(4) => {
                    Expression::Call(reciprocal, vec![Expression::Number(random.between(0, 2), false)])
                }
                _ if random.one_in(6) => of_hit,
                Type::Long if random.one_in(2) => {
                    let local = draft.scope.new_local(Type::Long);
                    draft.scope.fixed.insert(local);
                    Expression::Read(Variable::Local(local))
                }
                kind => literal_key(kind, random.between(0, 2)),
            });
        }
        keys[random.below(keys.len())].clone()
    }

    fn few_elements(&mut self, draft: &mut HandlerDraft, array: usize) -> Statement {
        let global = self.generator.program.globals[array].clone();
        let GlobalKind::Array { keys, kind } = &global.kind else { return Statement::Block(Vec::new()) };
        let key = self.key_of(draft, array, keys[0]);
        let place = Variable::Element(array, vec![key.clone()]);
        let local = Variable::Local(if *kind == Type::Long { 0 } else { 2 });
        let read = |place: &Variable| Box::new(Expression::Read(place.clone()));
        let scope = &mut draft.scope;
        let value = self.generator.boxed(scope, *kind, 1);
        match self.generator.random.below(7) {
            0 => Statement::Do(Expression::Assign(place, value)),
            1 => {
                let operator = if *kind == Type::Long { Binary::Add } else { Binary::Concat };
                Statement::Do(Expression::Update(operator, place, value))
            }
            2 => Statement::Do(Expression::Assign(local, read(&place))),
            3 => {
                let taken =
                    vec![Statement::Do(Expression::Assign(local, read(&place))), Statement::Delete(place.clone())];
                let made = vec![Statement::Do(Expression::Assign(place, value))];
                Statement::If(Expression::In(vec![Some(key)], array), taken, made)
            }
            4 => Statement::Delete(place),
            5 if *kind == Type::Long => {
                let step =
                    Expression::Step(self.generator.random.pick([Step::PreIncrement, Step::PostDecrement]), place);
                Statement::Do(Expression::Assign(local, Box::new(step)))
            }
            _ => {
                let scalar = Variable::Global(if *kind == Type::Long { 0 } else { 1 });
                Statement::Do(Expression::Assign(scalar, read(&place)))
            }
        }
    }
}

fn literal_key(kind: Type, number: i64) -> Expression {
    match kind {
        Type::Long => Expression::Number(number, false),
        Type::Text => Expression::Text(vec![b'a' + number as u8]),
    }
}
