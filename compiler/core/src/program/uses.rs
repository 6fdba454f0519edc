// SPDX-License-Identifier: GPL-2.0-or-later

//! What statements do with globals, and which functions they call: for locks, and for checking that an array does not
//! change under a `foreach`.

use std::collections::{BTreeMap, BTreeSet};

use super::command_text::Text;
use super::known_locals::{KnownLocals, Values};
use super::same_key::{ElementUses, KnownValues, WholeArray};
use super::{
    BinaryOp, Element, EmbeddedC, Expr, Function, FunctionBody, FunctionId, GlobalId, Iterated, LocalId, LongExpr,
    LongKind, LongPlace, PrintPiece, Program, Slice, Stmt, StmtKind, StringExpr, StringKind, StringPlace, Variable,
};
use crate::builtin::Builtin;
use spile_source::Span;

/// The strongest access to a global.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Read, not changed.
    Read,
    /// An aggregate is only fed, a number only added to.
    Feed,
    /// Written, or an aggregate both fed and read.
    Write,
}

impl Access {
    /// Of both together.
    fn and(self, other: Access) -> Access {
        match (self, other) {
            (Access::Read, Access::Feed) | (Access::Feed, Access::Read) => Access::Write,
            _ => self.max(other),
        }
    }
}

/// Globals that some code uses, and how.
pub type Uses = BTreeMap<GlobalId, Access>;

/// Globals that a run of some code accesses, and how often at most: once or, [`OFTEN`], more than that.
pub type AccessCounts = BTreeMap<GlobalId, u8>;

/// More than once.
pub const OFTEN: u8 = 2;

fn touched<K: Ord>(times: &mut BTreeMap<K, u8>, key: K, more: u8) {
    let times = times.entry(key).or_insert(0);
    *times = times.saturating_add(more).min(OFTEN);
}

/// What two pieces of code use together.
pub fn both(one: &Uses, other: &Uses) -> Uses {
    let mut uses = one.clone();
    merge(&mut uses, other);
    uses
}

/// The larger of both for each key.
fn at_least<K: Ord>(times: &mut BTreeMap<K, u8>, other: BTreeMap<K, u8>) {
    for (key, other) in other {
        let times = times.entry(key).or_insert(0);
        *times = other.max(*times);
    }
}

/// The direct uses of code, without those of functions that it calls.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    /// Globals that it uses, and how.
    pub uses: Uses,
    /// Globals that a run of it accesses, and how often.
    pub touches: AccessCounts,
    /// How often a run calls each function at most, as in [`AccessCounts`].
    called: BTreeMap<FunctionId, u8>,
    /// Whether the code that is being walked may run more than once.
    in_loop: bool,
    /// Sorted, each once.
    pub calls: Vec<FunctionId>,
    /// The first place that changes a global, other than by emptying it.
    pub changes: BTreeMap<GlobalId, Span>,
    /// Words of the probed registers that may be read: bit N for word N.
    pub registers: u64,
    /// Globals that embedded C declares as used.
    pub embedded: Vec<GlobalId>,
    /// Arrays of which it uses a single element.
    same_keys: ElementUses,
    /// Locals that stand for keys.
    locals: KnownLocals,
    /// What makes keys of arrays known.
    known: KnownValues,
    /// What makes locals known: parameters that are not changed.
    parameters: KnownValues,
    /// Its calls, with their arguments.
    sites: Vec<Site>,
    /// It prints, or uses a builtin for its effect.
    pub has_effects: bool,
    /// Whether it may change the probed registers.
    sets_registers: bool,
    /// The commands that it makes the loader run.
    pub commands: Vec<Text>,
    /// It may store values elsewhere than in variables: in embedded C, or in memory that it writes.
    pub hides: bool,
}

/// A call of a function.
#[derive(Clone, Debug)]
struct Site {
    function: FunctionId,
    arguments: Vec<Expr>,
    span: Span,
}

/// Most calls that are followed from one call for the element that a function uses.
const MOST_FOLLOWED: u32 = 256;

/// [`Walk::registers`] for all registers, and whatever else the kernel has of them.
const ALL_REGISTERS: u64 = u64::MAX;

impl Walk {
    /// Walks over statements; calls are recorded, not followed.
    pub fn of(statements: &[Stmt]) -> Walk {
        Walk::knowing(statements, KnownValues::default(), KnownValues::default())
    }

    /// The same for a handler that takes its stripes where that is known (lead_in.rs).
    pub fn of_handler(statements: &[Stmt], known: KnownValues) -> Walk {
        Walk::knowing(statements, known, KnownValues::default())
    }

    fn of_function(function: &Function, statements: &[Stmt]) -> Walk {
        let written: BTreeSet<LocalId> = Walk::of(statements).written_locals().collect();
        let parameters = (0..function.parameters as u32).map(LocalId);
        let known = KnownValues::with(parameters.filter(|parameter| !written.contains(parameter)).collect());
        Walk::knowing(statements, known.clone(), known)
    }

    fn knowing(statements: &[Stmt], known: KnownValues, parameters: KnownValues) -> Walk {
        let mut walk = Walk { known, parameters, ..Walk::default() };
        statements.iter().for_each(|statement| walk.statement(statement));
        // Once more, with the locals that are known now.
        if walk.same_keys.has_computed() || !walk.sites.is_empty() {
            let Walk { known, parameters, locals, .. } = walk;
            walk = Walk { locals: locals.again(), known, parameters, ..Walk::default() };
            statements.iter().for_each(|statement| walk.statement(statement));
        }
        walk.calls.sort_unstable();
        walk.calls.dedup();
        walk
    }

    /// The same for values that are evaluated before, such as those that a return probe saves at its function's entry.
    pub fn of_values(values: &[Expr]) -> Walk {
        let mut walk = Walk::default();
        values.iter().for_each(|value| walk.expr(value));
        walk.calls.sort_unstable();
        walk.calls.dedup();
        walk
    }

    /// The direct uses of each function of a program; for embedded C, those that it declares.
    pub fn of_functions(program: &Program) -> Vec<Walk> {
        let of = |function: &Function| match &function.body {
            FunctionBody::Script(statements) => Walk::of_function(function, statements),
            FunctionBody::EmbeddedC(code) => {
                let mut walk = Walk::default();
                walk.embedded(code);
                walk
            }
        };
        program.functions.iter().map(of).collect()
    }

    /// What this does, including everything that it calls; `functions`: the result of [`function_uses`].
    pub fn with_calls(&self, functions: &[Uses]) -> Uses {
        let mut uses = self.uses.clone();
        for callee in &self.calls {
            merge(&mut uses, &functions[callee.index()]);
        }
        uses
    }

    /// The same for what a run accesses; `functions`: the result of [`function_touches`].
    pub fn touches_with_calls(&self, functions: &[AccessCounts]) -> AccessCounts {
        let mut touches = self.touches.clone();
        for (callee, &calls) in &self.called {
            for (&global, &times) in &functions[callee.index()] {
                touched(&mut touches, global, calls.saturating_mul(times));
            }
        }
        touches
    }

    /// Locals that it writes.
    pub fn written_locals(&self) -> impl Iterator<Item = LocalId> {
        self.locals.all_written()
    }

    /// Arrays of which a run uses a single element, including what it calls; `functions`: what each does directly;
    /// `uses`: the result of [`function_uses`].
    pub fn same_keys_with_calls(&self, functions: &[Walk], uses: &[Uses]) -> ElementUses {
        let mut same_keys = self.same_keys.clone();
        for site in &self.sites {
            for &array in uses[site.function.index()].keys() {
                let mut following = CallFollower { functions, uses, array, open: Vec::new(), left: MOST_FOLLOWED };
                let mut elements = Vec::new();
                match following.call(site, None, &mut elements) {
                    Some(()) => {
                        elements.into_iter().for_each(|keys| same_keys.called(array, keys, &self.known, site.span));
                    }
                    None => same_keys.uses_whole(array, WholeArray::Called(site.span)),
                }
            }
        }
        let sets_registers = |callee: &FunctionId| functions[callee.index()].sets_registers;
        if self.sets_registers || self.all_calls(functions).iter().any(sets_registers) {
            same_keys.registers_change();
        }
        same_keys
    }

    /// The registers that this reads, including everything that it calls.
    pub fn registers_with_calls(&self, functions: &[Walk]) -> u64 {
        let callees = self.all_calls(functions);
        callees.iter().fold(self.registers, |registers, callee| registers | functions[callee.index()].registers)
    }

    /// The functions that this calls, directly and indirectly, each once.
    pub fn all_calls(&self, functions: &[Walk]) -> Vec<FunctionId> {
        let mut found = Vec::new();
        let mut seen = vec![false; functions.len()];
        let mut open = self.calls.clone();
        while let Some(callee) = open.pop() {
            if !std::mem::replace(&mut seen[callee.index()], true) {
                found.push(callee);
                open.extend(&functions[callee.index()].calls);
            }
        }
        found
    }

    /// Sets how often the code that is walked runs at most.
    fn times(&self) -> u8 {
        if self.in_loop { OFTEN } else { 1 }
    }

    /// Both branches of a condition, of which a run takes one. Functions called in both count together if they differ.
    fn branches(&mut self, then: impl FnOnce(&mut Walk), otherwise: impl FnOnce(&mut Walk)) {
        let before = (self.touches.clone(), self.called.clone());
        self.conditionally(then);
        let taken = (std::mem::replace(&mut self.touches, before.0), std::mem::replace(&mut self.called, before.1));
        self.conditionally(otherwise);
        at_least(&mut self.touches, taken.0);
        at_least(&mut self.called, taken.1);
    }

    /// Code that may run repeatedly.
    fn repeated(&mut self, walk: impl FnOnce(&mut Walk)) {
        let outer = std::mem::replace(&mut self.in_loop, true);
        self.conditionally(walk);
        self.in_loop = outer;
    }

    /// Code that may not run, or not to its end, before the code after it.
    fn conditionally(&mut self, walk: impl FnOnce(&mut Walk)) {
        let known = self.locals.here();
        walk(self);
        self.locals.restore(known);
    }

    fn global(&mut self, id: GlobalId, access: Access, span: Span) {
        self.same_keys.uses_whole(id, WholeArray::Whole(span));
        self.touch(id, access, span);
    }

    fn one_of(&mut self, id: GlobalId, keys: &[&Expr], access: Access, span: Span) {
        let keys: Vec<Expr> = keys.iter().map(|key| self.locals.resolved(key)).collect();
        self.same_keys.element(id, keys, &self.known, span);
        self.touch(id, access, span);
    }

    /// A lookup with such keys, some of which may match any.
    fn found(&mut self, id: GlobalId, keys: &Slice, access: Access, span: Span) {
        match keys.iter().map(Option::as_ref).collect::<Option<Vec<&Expr>>>() {
            Some(keys) if !keys.is_empty() => self.one_of(id, &keys, access, span),
            _ => self.global(id, access, span),
        }
    }

    fn touch(&mut self, id: GlobalId, access: Access, span: Span) {
        // Adding to it is reading and writing.
        let times = if access == Access::Feed { OFTEN } else { self.times() };
        touched(&mut self.touches, id, times);
        self.uses.entry(id).and_modify(|before| *before = before.and(access)).or_insert(access);
        if access != Access::Read {
            self.changes.entry(id).or_insert(span);
        }
    }

    fn variable(&mut self, variable: Variable, access: Access, span: Span) {
        match variable {
            Variable::Global(id) => self.global(id, access, span),
            Variable::Local(local) if access != Access::Read => self.locals.written(local),
            Variable::Local(_) => {}
        }
    }

    fn element(&mut self, element: &Element, access: Access, span: Span) {
        element.keys.iter().for_each(|key| self.expr(key));
        self.one_of(element.global, &element.keys.iter().collect::<Vec<_>>(), access, span);
    }

    /// An expression whose value is not used.
    fn effect(&mut self, expr: &Expr) {
        match counted(expr) {
            Some(CounterUpdate { global, keys, value, .. }) => {
                keys.iter().for_each(|key| self.expr(key));
                self.long(value);
                self.one_of(global, &keys.iter().collect::<Vec<_>>(), Access::Feed, expr.span());
            }
            None => self.expr(expr),
        }
    }

    fn embedded(&mut self, code: &EmbeddedC) {
        self.hides = true;
        self.registers = ALL_REGISTERS;
        self.sets_registers = true;
        self.embedded.extend(code.globals.iter().map(|&(global, _)| global));
        for &(global, access) in &code.globals {
            self.global(global, access, code.span);
            touched(&mut self.touches, global, OFTEN);
        }
    }

    fn slice(&mut self, slice: &Slice) {
        slice.iter().flatten().for_each(|key| self.expr(key));
    }

    fn statement(&mut self, statement: &Stmt) {
        let span = statement.span;
        match &statement.kind {
            StmtKind::Block(statements) => statements.iter().for_each(|statement| self.statement(statement)),
            StmtKind::Expr(expr) => {
                self.effect(expr);
                let Walk { locals, parameters, .. } = self;
                locals.statement(expr, |expr| parameters.has(expr));
            }
            StmtKind::If { condition, then, otherwise } => {
                self.long(condition);
                self.branches(
                    |walk| walk.statement(then),
                    |walk| otherwise.iter().for_each(|otherwise| walk.statement(otherwise)),
                );
            }
            StmtKind::Loop { condition, step, body } => self.repeated(|walk| {
                condition.iter().for_each(|expr| walk.long(expr));
                step.iter().for_each(|expr| walk.effect(expr));
                walk.statement(body);
            }),
            StmtKind::Return(value) => value.iter().for_each(|value| self.expr(value)),
            StmtKind::Try { body, message, handler } => {
                self.conditionally(|walk| body.iter().for_each(|statement| walk.statement(statement)));
                self.conditionally(|walk| handler.iter().for_each(|statement| walk.statement(statement)));
                message.iter().for_each(|&variable| self.variable(variable, Access::Write, span));
            }
            StmtKind::Delete(variable) => self.variable(*variable, Access::Write, span),
            StmtKind::DeleteElements { global, keys } => {
                self.slice(keys);
                self.found(*global, keys, Access::Write, span);
            }
            StmtKind::Clear(global) => {
                self.uses.insert(*global, Access::Write);
                self.same_keys.uses_whole(*global, WholeArray::Whole(span));
            }
            StmtKind::Foreach(foreach) => {
                match &foreach.over {
                    Iterated::Array(global) => self.global(*global, Access::Read, span),
                    Iterated::Histogram(element) => self.element(element, Access::Read, span),
                }
                self.slice(&foreach.slice);
                foreach.limit.iter().for_each(|limit| self.long(limit));
                self.repeated(|walk| {
                    foreach
                        .keys
                        .iter()
                        .chain(&foreach.value)
                        .for_each(|&variable| walk.variable(variable, Access::Write, span));
                    walk.statement(&foreach.body);
                });
            }
            StmtKind::Break | StmtKind::Continue | StmtKind::Next | StmtKind::Filter => {}
        }
    }

    fn long_place(&mut self, place: &LongPlace, span: Span) {
        match place {
            LongPlace::Variable(variable) => self.variable(*variable, Access::Write, span),
            LongPlace::Element(element) => self.element(element, Access::Write, span),
            LongPlace::Memory { address, .. } => {
                self.hides = true;
                self.long(address);
            }
            // Writing needs the address from which they are restored.
            LongPlace::Register { .. } => {
                self.hides = true;
                self.registers = ALL_REGISTERS;
                self.sets_registers = true;
            }
        }
    }

    fn string_place(&mut self, place: &StringPlace, span: Span) {
        match place {
            StringPlace::Variable(variable) => self.variable(*variable, Access::Write, span),
            StringPlace::Element(element) => self.element(element, Access::Write, span),
        }
    }

    fn print(&mut self, pieces: &[PrintPiece]) {
        for piece in pieces {
            if let PrintPiece::Directive { width, precision, argument, .. } = piece {
                width.iter().chain(precision).for_each(|expr| self.long(expr));
                self.expr(argument);
            }
        }
    }

    fn call(&mut self, function: FunctionId, arguments: &[Expr], span: Span) {
        self.calls.push(function);
        let known = arguments.iter().map(|argument| self.locals.resolved(argument)).collect();
        self.sites.push(Site { function, arguments: known, span });
        let times = self.times();
        touched(&mut self.called, function, times);
        arguments.iter().for_each(|argument| self.expr(argument));
    }

    fn builtin(&mut self, builtin: &Builtin, arguments: &[Expr]) {
        if builtin.registers {
            self.registers = ALL_REGISTERS;
        }
        if builtin.name == "system" {
            self.commands.extend(arguments.iter().map(Text::of));
        }
        self.hides |= builtin.guru;
        self.has_effects |= !builtin.pure;
        arguments.iter().for_each(|argument| self.expr(argument));
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Long(expr) => self.long(expr),
            Expr::String(expr) => self.string(expr),
        }
    }

    fn long(&mut self, expr: &LongExpr) {
        let span = expr.span;
        match &expr.kind {
            LongKind::Variable(variable) => self.variable(*variable, Access::Read, span),
            LongKind::Binary(_, left, right) => {
                self.long(left);
                self.long(right);
            }
            LongKind::Compare(_, left, right) => {
                self.string(left);
                self.string(right);
            }
            LongKind::Negate(operand)
            | LongKind::Not(operand)
            | LongKind::Complement(operand)
            | LongKind::SignExtend(operand, _)
            | LongKind::Bits { value: operand, .. }
            | LongKind::Read { address: operand, .. } => self.long(operand),
            LongKind::Matches { text, .. } => self.string(text),
            LongKind::Conditional(condition, then, otherwise) => {
                self.long(condition);
                self.branches(|walk| walk.long(then), |walk| walk.long(otherwise));
            }
            LongKind::Call(function, arguments) => self.call(*function, arguments, span),
            LongKind::Builtin(builtin, arguments) => self.builtin(builtin, arguments),
            LongKind::Assign(left, value) => {
                self.long(value);
                self.long_place(left, span);
            }
            LongKind::Update { left, value, .. } => {
                self.long(value);
                if let LongPlace::Variable(variable) = **left {
                    self.variable(variable, Access::Read, span);
                }
                self.long_place(left, span);
            }
            LongKind::Print(print) => {
                self.has_effects = true;
                self.print(&print.pieces);
            }
            LongKind::Element(element) | LongKind::Extract { aggregate: element, .. } => {
                self.element(element, Access::Read, span);
            }
            LongKind::Contains { global, keys } => {
                self.slice(keys);
                self.found(*global, keys, Access::Read, span);
            }
            LongKind::Feed { aggregate, value } => {
                self.long(value);
                self.element(aggregate, Access::Feed, span);
            }
            LongKind::Bucket { aggregate, index } | LongKind::HasBucket { aggregate, index } => {
                self.long(index);
                self.element(aggregate, Access::Read, span);
            }
            LongKind::Const(_) | LongKind::Saved(_) | LongKind::TookNext => {}
            LongKind::KernelAddress { .. } | LongKind::ModuleAddress { .. } => {}
            LongKind::Register { offset } => self.registers |= 1u64.checked_shl(offset / 8).unwrap_or(ALL_REGISTERS),
            LongKind::EmbeddedC(code) => self.embedded(code),
        }
    }

    fn string(&mut self, expr: &StringExpr) {
        let span = expr.span;
        match &expr.kind {
            StringKind::Variable(variable) => self.variable(*variable, Access::Read, span),
            StringKind::Concatenate(left, right) => {
                self.string(left);
                self.string(right);
            }
            StringKind::Conditional(condition, then, otherwise) => {
                self.long(condition);
                self.branches(|walk| walk.string(then), |walk| walk.string(otherwise));
            }
            StringKind::Call(function, arguments) => self.call(*function, arguments, span),
            StringKind::Builtin(builtin, arguments) => self.builtin(builtin, arguments),
            StringKind::Assign(left, value) => {
                self.string(value);
                self.string_place(left, span);
            }
            StringKind::Append(left, value) => {
                self.string(value);
                if let StringPlace::Variable(variable) = **left {
                    self.variable(variable, Access::Read, span);
                }
                self.string_place(left, span);
            }
            StringKind::Format(print) => self.print(&print.pieces),
            StringKind::Element(element) | StringKind::Chart(element) => self.element(element, Access::Read, span),
            StringKind::Pretty { address, .. } => self.long(address),
            StringKind::Literal(_) | StringKind::Saved(_) => {}
            StringKind::EmbeddedC(code) => self.embedded(code),
        }
    }
}

/// Follows calls to what functions do with an array.
struct CallFollower<'w> {
    functions: &'w [Walk],
    uses: &'w [Uses],
    array: GlobalId,
    /// The functions that the calls lead through.
    open: Vec<FunctionId>,
    /// So many more calls are followed.
    left: u32,
}

impl CallFollower<'_> {
    /// Adds the keys of each element that the called function names, for the caller of the first call. `within`: the function that
    /// has the call, and its arguments; None: the first caller. None: it uses more than elements with known keys.
    fn call(
        &mut self,
        site: &Site,
        within: Option<(&Walk, &KnownLocals)>,
        elements: &mut Vec<Vec<Expr>>,
    ) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        if self.open.contains(&site.function) {
            return None;
        }
        let values = site.arguments.iter().enumerate();
        let values: Values =
            values.map(|(index, argument)| (LocalId(index as u32), passed(argument, within))).collect();
        let arguments = KnownLocals::of(values);
        let walk = &self.functions[site.function.index()];
        if walk.same_keys.has(self.array) {
            let (keys, _) = walk.same_keys.of(self.array)?;
            elements.push(keys.iter().map(|key| arguments.resolved(key)).collect());
        }
        self.open.push(site.function);
        for inner in &walk.sites {
            if self.uses[inner.function.index()].contains_key(&self.array) {
                self.call(inner, Some((walk, &arguments)), elements)?;
            }
        }
        self.open.pop();
        Some(())
    }
}

/// An argument in terms of the first caller; if that is not known, an expression that no key can be.
fn passed(argument: &Expr, within: Option<(&Walk, &KnownLocals)>) -> Expr {
    let is_known = within.is_none_or(|(caller, _)| caller.parameters.has(argument));
    let span = argument.span();
    match (argument, within) {
        (Expr::Long(_), _) if !is_known => Expr::Long(LongExpr { kind: LongKind::TookNext, span }),
        // A string that is not a variable may be longer than the parameter.
        (Expr::String(text), _) if !is_known || !matches!(text.kind, StringKind::Variable(_)) => {
            let unknown = || Box::new(text.clone());
            Expr::String(StringExpr { kind: StringKind::Concatenate(unknown(), unknown()), span })
        }
        (_, Some((_, arguments))) => arguments.resolved(argument),
        (_, None) => argument.clone(),
    }
}

/// A number that is added to without being read.
#[derive(Clone, Copy, Debug)]
pub struct CounterUpdate<'e> {
    /// The global, or the array.
    pub global: GlobalId,
    /// Keys of the array's element.
    pub keys: &'e [Expr],
    /// The amount added or subtracted.
    pub value: &'e LongExpr,
    /// It is subtracted.
    pub subtract: bool,
    /// The global with its keys.
    pub span: Span,
}

/// `global += value`, `array[keys]++` and the like, as an expression whose value is not used.
pub fn counted(expr: &Expr) -> Option<CounterUpdate<'_>> {
    let Expr::Long(LongExpr { kind: LongKind::Update { left, op, value, .. }, span }) = expr else { return None };
    let subtract = match op {
        BinaryOp::Add => false,
        BinaryOp::Subtract => true,
        _ => return None,
    };
    match &**left {
        &LongPlace::Variable(Variable::Global(global)) => {
            Some(CounterUpdate { global, keys: &[], value, subtract, span: *span })
        }
        LongPlace::Element(Element { global, keys, span, .. }) => {
            Some(CounterUpdate { global: *global, keys, value, subtract, span: *span })
        }
        _ => None,
    }
}

/// What each function does, including everything that it calls.
pub fn function_uses(walks: &[Walk]) -> Vec<Uses> {
    let mut all: Vec<Uses> = walks.iter().map(|walk| walk.uses.clone()).collect();
    // Until nothing changes: functions may call each other recursively.
    loop {
        let mut grown = false;
        for (index, walk) in walks.iter().enumerate() {
            for callee in &walk.calls {
                let callee = all[callee.index()].clone();
                grown |= merge(&mut all[index], &callee);
            }
        }
        if !grown {
            return all;
        }
    }
}

/// What a run of each function accesses, including everything that it calls.
pub fn function_touches(walks: &[Walk]) -> Vec<AccessCounts> {
    let mut all: Vec<AccessCounts> = walks.iter().map(|walk| walk.touches.clone()).collect();
    // As above; a recursive function does everything often.
    loop {
        let more: Vec<AccessCounts> = walks.iter().map(|walk| walk.touches_with_calls(&all)).collect();
        if more == all {
            return all;
        }
        all = more;
    }
}

/// Adds the contents of `more`; returns whether anything changed.
fn merge(uses: &mut Uses, more: &Uses) -> bool {
    let mut grown = false;
    for (&global, &access) in more {
        let before = uses.get(&global).copied();
        let after = before.map_or(access, |before| before.and(access));
        grown |= before != Some(after);
        uses.insert(global, after);
    }
    grown
}
