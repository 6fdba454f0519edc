// SPDX-License-Identifier: GPL-2.0-or-later

//! Random expressions.

use super::{GeneratedIn, Generator, Scope};
use crate::model::tree::*;

/// Numbers for which mistakes are likely.
const EDGES: [i64; 18] =
    [0, 1, -1, 2, -2, 3, 7, 10, 31, 63, 64, 65, 255, 0x7fff_ffff, 0xffff_ffff, i64::MAX, i64::MIN, i64::MIN + 1];

impl Generator {
    /// A number, often one at the edge of a range.
    pub(super) fn number(&mut self) -> i64 {
        match self.random.below(8) {
            0..=2 => self.random.pick(EDGES),
            3 => self.random.bits() as i64,
            4 => self.random.between(-1000, 1000),
            _ => self.random.between(0, 9),
        }
    }

    /// A short text, one of a fixed list with the usual edge cases.
    pub(super) fn words(&mut self) -> Vec<u8> {
        const WORDS: [&str; 20] = [
            "", "a", "b", "ab", "abc", "ba", " ", "x,y;z", ",a,,b,", "0", "12", "-7", "0x1f", "017", "Hello", "aaaa",
            "\t|\"\\", "zz top", "%d%%", "\u{e9}",
        ];
        self.random.pick(WORDS).as_bytes().to_vec()
    }

    /// An expression of that type, at most `depth` levels deep.
    pub(super) fn expression(&mut self, scope: &mut Scope, kind: Type, depth: usize) -> Expression {
        match kind {
            Type::Long => self.long(scope, depth),
            Type::Text => self.text(scope, depth),
        }
    }

    /// [`Self::expression`] in a box.
    pub(super) fn boxed(&mut self, scope: &mut Scope, kind: Type, depth: usize) -> Box<Expression> {
        Box::new(self.expression(scope, kind, depth))
    }

    /// Has no effect and no error.
    pub(super) fn pure(&mut self, scope: &mut Scope, kind: Type) -> Expression {
        let places = self.scalars(scope, kind, false);
        match self.random.choose(&places) {
            Some(place) if self.random.bits() & 1 == 0 => Expression::Read(place.clone()),
            _ => self.literal(kind),
        }
    }

    /// A literal of that type.
    pub(super) fn literal(&mut self, kind: Type) -> Expression {
        match kind {
            Type::Long => {
                let number = self.number();
                Expression::Number(number, self.random.one_in(6))
            }
            Type::Text => Expression::Text(self.words()),
        }
    }

    fn long(&mut self, scope: &mut Scope, depth: usize) -> Expression {
        if depth == 0 || self.random.one_in(4) {
            return self.leaf(scope, Type::Long);
        }
        let less = depth - 1;
        match self.random.below(30) {
            0..=8 => {
                let operator = self.random.pick(Binary::ARITHMETIC);
                Expression::Binary(operator, self.boxed(scope, Type::Long, less), self.boxed(scope, Type::Long, less))
            }
            9..=11 => {
                let operator = self.random.pick(Binary::COMPARISONS);
                let kind = self.kind();
                Expression::Binary(operator, self.boxed(scope, kind, less), self.boxed(scope, kind, less))
            }
            12 | 13 => {
                let operator = self.random.pick([Binary::And, Binary::Or]);
                Expression::Binary(operator, self.boxed(scope, Type::Long, less), self.boxed(scope, Type::Long, less))
            }
            14 | 15 => {
                let operator = self.random.pick([Unary::Minus, Unary::Not, Unary::Complement, Unary::Plus]);
                Expression::Unary(operator, self.boxed(scope, Type::Long, less))
            }
            16 | 17 => self.ternary(scope, Type::Long, less),
            18 => self.membership(scope, less),
            19..=21 => self.change(scope, Type::Long, less),
            22 | 23 => self.call(scope, Type::Long, less),
            24 | 25 => {
                let of = [
                    Builtin::Strlen,
                    Builtin::Isinstr,
                    Builtin::Strpos,
                    Builtin::Stringat,
                    Builtin::Strtol,
                    Builtin::Isdigit,
                ];
                let builtin = self.random.pick(of);
                self.builtin(scope, builtin, less)
            }
            26 | 27 => self.extraction(scope, less),
            28 => {
                Expression::Match(self.boxed(scope, Type::Text, less), Box::new(self.pattern()), !self.random.one_in(4))
            }
            _ => self.element(scope, Type::Long, less),
        }
    }

    fn text(&mut self, scope: &mut Scope, depth: usize) -> Expression {
        if depth == 0 || self.random.one_in(4) {
            return self.leaf(scope, Type::Text);
        }
        let less = depth - 1;
        match self.random.below(16) {
            0..=3 => Expression::Binary(
                Binary::Concat,
                self.boxed(scope, Type::Text, less),
                self.boxed(scope, Type::Text, less),
            ),
            4 => self.ternary(scope, Type::Text, less),
            5 | 6 => self.change(scope, Type::Text, less),
            7 => self.call(scope, Type::Text, less),
            8..=10 => {
                let of =
                    [Builtin::Substr, Builtin::Substr, Builtin::StrReplace, Builtin::Tokenize, Builtin::TokenizeNext];
                let builtin = self.random.pick(of);
                self.builtin(scope, builtin, less)
            }
            11..=13 => {
                let print = self.print(scope, less);
                Expression::Sprint(Box::new(print))
            }
            _ => self.element(scope, Type::Text, less),
        }
    }

    fn leaf(&mut self, scope: &mut Scope, kind: Type) -> Expression {
        if self.random.one_in(3) {
            return self.literal(kind);
        }
        if self.random.one_in(10) {
            return self.of_hit(kind);
        }
        let places = self.scalars(scope, kind, false);
        match self.random.choose(&places) {
            Some(place) => Expression::Read(place.clone()),
            None => self.literal(kind),
        }
    }

    /// What the kernel says about a hit.
    pub(super) fn of_hit(&mut self, kind: Type) -> Expression {
        let builtin = match kind {
            Type::Long => Builtin::Uid,
            Type::Text => self.random.pick([Builtin::Pp, Builtin::Probefunc]),
        };
        Expression::Builtin(builtin, Vec::new())
    }

    fn ternary(&mut self, scope: &mut Scope, kind: Type, depth: usize) -> Expression {
        Expression::Ternary(
            self.boxed(scope, Type::Long, depth),
            self.boxed(scope, kind, depth),
            self.boxed(scope, kind, depth),
        )
    }

    /// Locals and scalar globals of a type; `writable`: those that may be assigned to.
    pub(super) fn scalars(&mut self, scope: &Scope, kind: Type, writable: bool) -> Vec<Variable> {
        let locals = scope
            .locals_of(kind)
            .into_iter()
            .filter(|local| !writable || !scope.fixed.contains(local))
            .map(Variable::Local);
        let is_one = |index: &usize| {
            matches!(self.program.globals[*index].kind, GlobalKind::Scalar { kind: own, .. } if own == kind)
                && !(writable && self.constants.contains(index))
                && !self.hidden.contains(index)
        };
        locals.chain((0..self.program.globals.len()).filter(is_one).map(Variable::Global)).collect()
    }

    /// Indices of the arrays and aggregates that suit.
    pub(super) fn arrays(&self, suits: impl Fn(usize, &Global) -> bool) -> Vec<usize> {
        let globals = self.program.globals.iter().enumerate();
        globals
            .filter(|(index, global)| !global.keys().is_empty() && suits(*index, global))
            .filter(|(index, _)| !self.hidden.contains(index))
            .map(|(index, _)| index)
            .collect()
    }

    /// An expression for each key of the array.
    pub(super) fn keys(&mut self, scope: &mut Scope, array: usize, depth: usize) -> Vec<Expression> {
        let kinds = self.program.globals[array].keys().to_vec();
        kinds.into_iter().map(|kind| self.key(scope, kind, depth)).collect()
    }

    /// Mostly one of a few, so that it is found again.
    pub(super) fn key(&mut self, scope: &mut Scope, kind: Type, depth: usize) -> Expression {
        match (kind, self.random.below(4)) {
            (Type::Long, 0 | 1) => Expression::Number(self.random.between(0, 4), false),
            (Type::Text, 0 | 1) => Expression::Text(self.random.pick(["a", "b", "c", ""]).as_bytes().to_vec()),
            (Type::Long, 2) => Expression::Binary(
                Binary::BitAnd,
                self.boxed(scope, Type::Long, depth),
                Box::new(Expression::Number(3, false)),
            ),
            (_, 3) if self.random.one_in(4) => self.of_hit(kind),
            _ => self.expression(scope, kind, depth),
        }
    }

    fn element(&mut self, scope: &mut Scope, kind: Type, depth: usize) -> Expression {
        let arrays = self.arrays(|_, global| matches!(global.kind, GlobalKind::Array { kind: own, .. } if own == kind));
        match self.random.choose(&arrays).copied() {
            Some(array) => Expression::Read(Variable::Element(array, self.keys(scope, array, depth))),
            None => self.leaf(scope, kind),
        }
    }

    fn membership(&mut self, scope: &mut Scope, depth: usize) -> Expression {
        let arrays = self.arrays(|_, _| true);
        let Some(array) = self.random.choose(&arrays).copied() else {
            return self.leaf(scope, Type::Long);
        };
        let slice = self.slice(scope, array, depth);
        Expression::In(slice, array)
    }

    /// Keys of which some may be any; of a single one that is not so.
    pub(super) fn slice(&mut self, scope: &mut Scope, array: usize, depth: usize) -> Vec<Option<Expression>> {
        let keys = self.keys(scope, array, depth);
        let single = keys.len() == 1;
        keys.into_iter().map(|key| if !single && self.random.one_in(3) { None } else { Some(key) }).collect()
    }

    /// A variable that can be assigned.
    fn writable(&mut self, scope: &mut Scope, kind: Type, depth: usize) -> Option<Variable> {
        let arrays = self.arrays(|index, global| {
            matches!(global.kind, GlobalKind::Array { kind: own, .. } if own == kind) && !scope.frozen.contains(&index)
        });
        let place = match self.random.choose(&arrays).copied() {
            Some(array) if self.random.one_in(3) => Variable::Element(array, self.keys(scope, array, depth)),
            _ => {
                let places = self.scalars(scope, kind, true);
                self.random.choose(&places).cloned()?
            }
        };
        if let Variable::Global(index) | Variable::Element(index, _) = place {
            scope.writes.insert(index);
        }
        Some(place)
    }

    /// An assignment of any kind.
    pub(super) fn change(&mut self, scope: &mut Scope, kind: Type, depth: usize) -> Expression {
        let Some(place) = self.writable(scope, kind, depth.min(1)) else {
            return self.leaf(scope, kind);
        };
        match (kind, self.random.below(3)) {
            (_, 0) => Expression::Assign(place, self.boxed(scope, kind, depth)),
            (Type::Text, _) => Expression::Update(Binary::Concat, place, self.boxed(scope, kind, depth)),
            (Type::Long, 1) => {
                let operator = loop {
                    let operator = self.random.pick(Binary::ARITHMETIC);
                    // There is no >>>=.
                    if operator != Binary::ShiftRightLogical {
                        break operator;
                    }
                };
                Expression::Update(operator, place, self.boxed(scope, kind, depth))
            }
            (Type::Long, _) => {
                let step = self.random.pick([
                    Step::PreIncrement,
                    Step::PreDecrement,
                    Step::PostIncrement,
                    Step::PostDecrement,
                ]);
                Expression::Step(step, place)
            }
        }
    }

    /// A call of a function that returns that type; another expression if none can be called here.
    pub(super) fn call(&mut self, scope: &mut Scope, kind: Type, depth: usize) -> Expression {
        let suits = |index: &usize| {
            self.program.functions[*index].returns == kind && self.facts[*index].writes.is_disjoint(&scope.frozen)
        };
        let functions: Vec<usize> = (0..self.program.functions.len()).filter(suits).collect();
        // Itself, which is about to be the next.
        let own = match scope.place {
            GeneratedIn::Function(returns, true) => returns == kind && scope.frozen.is_empty() && scope.loops == 0,
            _ => false,
        };
        if own && self.random.one_in(2) {
            return self.call_itself(scope, depth);
        }
        let Some(function) = self.random.choose(&functions).copied() else {
            return self.leaf(scope, kind);
        };
        scope.writes.extend(&self.facts[function].writes);
        let mut arguments = self.arguments(scope, function, depth);
        if self.facts[function].recursive {
            arguments[0] = Expression::Number(self.random.between(0, 2), false);
        }
        Expression::Call(function, arguments)
    }

    fn arguments(&mut self, scope: &mut Scope, function: usize, depth: usize) -> Vec<Expression> {
        let function = &self.program.functions[function];
        let kinds = function.body.locals[..function.parameters].to_vec();
        kinds.into_iter().map(|kind| self.expression(scope, kind, depth)).collect()
    }

    /// Its parameters are the first locals; the first of them counts down.
    fn call_itself(&mut self, scope: &mut Scope, depth: usize) -> Expression {
        let down = Expression::Binary(
            Binary::Subtract,
            Box::new(Expression::Read(Variable::Local(0))),
            Box::new(Expression::Number(1, false)),
        );
        let mut arguments = vec![down];
        for local in 1..scope.parameters {
            let kind = scope.locals[local];
            arguments.push(self.expression(scope, kind, depth.min(1)));
        }
        Expression::Call(self.program.functions.len(), arguments)
    }

    fn builtin(&mut self, scope: &mut Scope, builtin: Builtin, depth: usize) -> Expression {
        let (_, kinds, _) = builtin.signature();
        let mut arguments: Vec<Expression> = kinds.iter().map(|kind| self.expression(scope, *kind, depth)).collect();
        match builtin {
            Builtin::Strtol => arguments[1] = Expression::Number(self.random.pick([0, 2, 8, 10, 16, 36]), false),
            Builtin::Substr | Builtin::Stringat => {
                for argument in arguments.iter_mut().skip(1) {
                    if !self.random.one_in(4) {
                        *argument = Expression::Number(self.random.between(0, 5), false);
                    }
                }
            }
            Builtin::Tokenize | Builtin::TokenizeNext => {
                let delimiters = self.random.pick([",", ";", ",;", " ", "a", ""]);
                let last = arguments.len() - 1;
                arguments[last] = Expression::Text(delimiters.as_bytes().to_vec());
            }
            _ => {}
        }
        Expression::Builtin(builtin, arguments)
    }

    /// An aggregate, or an element of one.
    pub(super) fn aggregate(
        &mut self,
        scope: &mut Scope,
        depth: usize,
        suits: impl Fn(usize, &Global) -> bool,
    ) -> Option<Variable> {
        let globals = self.program.globals.iter().enumerate();
        let found: Vec<usize> = globals
            .filter(|(index, global)| global.is_aggregate() && suits(*index, global))
            .filter(|(index, _)| !self.hidden.contains(index))
            .map(|(index, _)| index)
            .collect();
        let index = *self.random.choose(&found)?;
        Some(if self.program.globals[index].keys().is_empty() {
            Variable::Global(index)
        } else {
            Variable::Element(index, self.keys(scope, index, depth))
        })
    }

    fn extraction(&mut self, scope: &mut Scope, depth: usize) -> Expression {
        if self.random.one_in(4)
            && let Some(place) = self.aggregate(scope, depth.min(1), has_histogram)
        {
            let index = match self.random.below(3) {
                0 => self.random.between(60, 70),
                1 => self.random.between(-1, 8),
                _ => self.number(),
            };
            return Expression::Bucket(place, Box::new(Expression::Number(index, false)));
        }
        let extractor = self.random.pick([
            Extractor::Count,
            Extractor::Count,
            Extractor::Sum,
            Extractor::Min,
            Extractor::Max,
            Extractor::Avg,
        ]);
        match self.aggregate(scope, depth.min(1), |_, _| true) {
            Some(place) => Expression::Extract(extractor, place),
            None => self.leaf(scope, Type::Long),
        }
    }

    fn pattern(&mut self) -> Pattern {
        let alternatives = (0..1 + self.random.below(2)).map(|_| self.sequence(2)).collect();
        Pattern { from_start: self.random.one_in(3), to_end: self.random.one_in(3), alternatives }
    }

    fn sequence(&mut self, depth: usize) -> Vec<(Atom, Repeat)> {
        (0..1 + self.random.below(3)).map(|_| (self.atom(depth), self.repeat())).collect()
    }

    fn atom(&mut self, depth: usize) -> Atom {
        match self.random.below(8) {
            0 => Atom::Any,
            1 => Atom::Class(vec![self.random.pick([(b'a', b'c'), (b'0', b'9'), (b'b', b'z')])], self.random.one_in(3)),
            2 if depth > 0 => Atom::Group((0..1 + self.random.below(2)).map(|_| self.sequence(depth - 1)).collect()),
            _ => Atom::Byte(self.random.pick(*b"aabbc01 ,.|*")),
        }
    }

    fn repeat(&mut self) -> Repeat {
        let (least, most) = self.random.pick([
            (1, Some(1)),
            (1, Some(1)),
            (1, Some(1)),
            (1, Some(1)),
            (0, None),
            (1, None),
            (0, Some(1)),
            (2, Some(2)),
            (1, Some(3)),
            (2, None),
        ]);
        Repeat { least, most }
    }
}

/// Whether the global is an aggregate with a histogram.
pub(super) fn has_histogram(_: usize, global: &Global) -> bool {
    matches!(global.kind, GlobalKind::Aggregate { histogram: Some(_), .. })
}
