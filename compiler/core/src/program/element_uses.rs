// SPDX-License-Identifier: GPL-2.0-or-later

//! Whether a handler uses only one element of an array, or a few, whose keys are known when the handler takes its stripes:
//! after its lead-in (lead_in.rs).

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::{
    BinaryOp, Comparison, Element, Expr, FunctionId, GlobalId, LocalId, LongExpr, LongKind, SavedId, StringExpr,
    StringKind, Variable,
};
use crate::builtin::Builtin;
use spile_source::Span;

/// A key that is the same for the rest of a run when its stripes are taken; evaluated there, it has no effect, and fails only
/// where the run would fail without one.
#[derive(Clone, Debug, PartialEq, Eq)]
enum FixedKey {
    Long(i64),
    Text(Vec<u8>),
    Local(LocalId),
    Register(u32),
    /// Of a variable: as in [`LongKind::KernelAddress`].
    Address(u64, bool),
    /// Of this many bytes, and whether in the address space of a process.
    Read(Box<FixedKey>, u8, bool),
    Saved(SavedId),
    /// Builtins that describe the task, the CPU or the probe, or work on numbers and strings that are fixed.
    Builtin(&'static str, Vec<FixedKey>),
    Concatenate(Box<FixedKey>, Box<FixedKey>),
    SignExtend(Box<FixedKey>, u8),
    Bits(Box<FixedKey>, u8, u8),
    Negate(Box<FixedKey>),
    Not(Box<FixedKey>),
    Complement(Box<FixedKey>),
    Binary(BinaryOp, Box<FixedKey>, Box<FixedKey>),
    Compare(Comparison, Box<FixedKey>, Box<FixedKey>),
    Call(FunctionId, Vec<FixedKey>),
    /// A global that the run does not change from there on, and whose lock it has.
    Global(GlobalId),
    /// The same of an element.
    Element(GlobalId, Vec<FixedKey>),
    /// The run computes it early (early.rs).
    Early(Box<FixedKey>),
    /// Something else may change it during the run: it is the same only as long as it is computed once.
    Once(Box<FixedKey>),
}

/// Values that are known when a run takes its stripes, besides those that are constant throughout it.
#[derive(Clone, Debug, Default)]
pub struct KnownValues {
    /// Locals that nothing writes from there on.
    settled: BTreeSet<LocalId>,
    /// Globals that the run may change from there on. None: the run may not have their locks.
    changed: Option<Rc<BTreeSet<GlobalId>>>,
    /// What the run reads from memory next, whatever happens, before it does anything else. A run that uses such a value as
    /// a key uses the value that was read first.
    read: Vec<FixedKey>,
    /// By function: whether it may be called early. None: nothing is computed early.
    early: Option<Rc<[bool]>>,
}

/// A value that a run computes early, as it is recognised where the script computes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlyValue(FixedKey);

impl EarlyValue {
    /// The expression, if it may be computed early.
    pub fn of(expr: &LongExpr, known: &KnownValues) -> Option<EarlyValue> {
        match FixedKey::of_long(expr, known)? {
            FixedKey::Early(value) => Some(EarlyValue(*value)),
            value @ (FixedKey::Read(..) | FixedKey::Address(..)) => Some(EarlyValue(value)),
            _ => None,
        }
    }
}

impl KnownValues {
    /// Where these locals are not written any more.
    pub fn with(settled: BTreeSet<LocalId>) -> KnownValues {
        KnownValues { settled, ..KnownValues::default() }
    }

    /// Globals other than these have their values to the end of the run, which has their locks.
    pub fn with_globals(self, changed: Rc<BTreeSet<GlobalId>>) -> KnownValues {
        KnownValues { changed: Some(changed), ..self }
    }

    /// Whether a global has its value to the end of the run, which has its lock.
    fn is_steady(&self, global: GlobalId) -> bool {
        self.changed.as_ref().is_some_and(|changed| !changed.contains(&global))
    }

    /// Values may be computed early, also by these functions.
    pub fn with_early(self, functions: Rc<[bool]>) -> KnownValues {
        KnownValues { early: Some(functions), ..self }
    }

    /// Whether a local that is assigned this stands for it: it is computed early, which the assignment is not.
    pub fn stands_for(&self, local: LocalId, expr: &Expr) -> bool {
        self.early.is_some() && !self.settled.contains(&local) && self.has(expr)
    }

    fn early(&self, fixed: FixedKey) -> Option<FixedKey> {
        self.early.is_some().then(|| FixedKey::Early(Box::new(fixed)))
    }

    /// The expression is evaluated next, and nothing that it depends on is memory that the run may write. Addresses and
    /// what they lead to are to be added from the inside to the outside.
    pub fn reads(&mut self, expr: &LongExpr) {
        let fixed = match &expr.kind {
            LongKind::Read { address, size, user } => FixedKey::read(address, *size, *user, self),
            LongKind::KernelAddress { address, per_cpu } => Some(FixedKey::Address(*address, *per_cpu)),
            _ => None,
        };
        self.read.extend(fixed);
    }

    /// The same without values that are read from memory.
    fn without_memory(&self) -> KnownValues {
        KnownValues { settled: self.settled.clone(), changed: self.changed.clone(), ..KnownValues::default() }
    }

    /// What was read next, or may be read early; not anything else that may fail.
    fn if_read(&self, fixed: FixedKey) -> Option<FixedKey> {
        if self.read.contains(&fixed) { Some(fixed) } else { self.early(fixed) }
    }

    /// Whether the expression has the same value for the rest of a run, and has no effect.
    pub fn has(&self, expr: &Expr) -> bool {
        FixedKey::of(expr, self).is_some()
    }
}

impl FixedKey {
    fn of(expr: &Expr, known: &KnownValues) -> Option<FixedKey> {
        match expr {
            Expr::Long(expr) => FixedKey::of_long(expr, known),
            Expr::String(expr) => FixedKey::of_text(expr, known),
        }
    }

    fn read(address: &LongExpr, size: u8, user: bool, known: &KnownValues) -> Option<FixedKey> {
        Some(FixedKey::Read(Box::new(FixedKey::of_long(address, known)?), size, user))
    }

    fn of_variable(variable: Variable, known: &KnownValues) -> Option<FixedKey> {
        match variable {
            Variable::Local(local) if known.settled.contains(&local) => Some(FixedKey::Local(local)),
            Variable::Global(global) if known.is_steady(global) => Some(FixedKey::Global(global)),
            _ => None,
        }
    }

    fn of_element(element: &Element, known: &KnownValues) -> Option<FixedKey> {
        let keys = || FixedKey::all(&element.keys, &known.without_memory());
        if known.is_steady(element.global) { Some(FixedKey::Element(element.global, keys()?)) } else { None }
    }

    /// Adds the globals on whose values it depends.
    fn globals(&self, found: &mut BTreeSet<GlobalId>) {
        match self {
            FixedKey::Global(global) => _ = found.insert(*global),
            FixedKey::Element(global, keys) => {
                found.insert(*global);
                keys.iter().for_each(|key| key.globals(found));
            }
            FixedKey::Builtin(_, operands) | FixedKey::Call(_, operands) => {
                operands.iter().for_each(|operand| operand.globals(found));
            }
            FixedKey::Read(inner, ..)
            | FixedKey::SignExtend(inner, _)
            | FixedKey::Bits(inner, ..)
            | FixedKey::Negate(inner)
            | FixedKey::Not(inner)
            | FixedKey::Complement(inner)
            | FixedKey::Early(inner)
            | FixedKey::Once(inner) => inner.globals(found),
            FixedKey::Concatenate(left, right)
            | FixedKey::Binary(_, left, right)
            | FixedKey::Compare(_, left, right) => {
                left.globals(found);
                right.globals(found);
            }
            FixedKey::Long(_)
            | FixedKey::Text(_)
            | FixedKey::Local(_)
            | FixedKey::Register(_)
            | FixedKey::Address(..)
            | FixedKey::Saved(_) => {}
        }
    }

    fn of_text(expr: &StringExpr, known: &KnownValues) -> Option<FixedKey> {
        match &expr.kind {
            StringKind::Literal(bytes) => Some(FixedKey::Text(bytes.clone())),
            StringKind::Variable(variable) => FixedKey::of_variable(*variable, known),
            StringKind::Builtin(builtin, arguments) => FixedKey::of_builtin(builtin, arguments, known),
            StringKind::Element(element) => FixedKey::of_element(element, known),
            StringKind::Concatenate(left, right) => {
                let known = known.without_memory();
                let (left, right) = (FixedKey::of_text(left, &known)?, FixedKey::of_text(right, &known)?);
                Some(FixedKey::Concatenate(Box::new(left), Box::new(right)))
            }
            _ => None,
        }
    }

    fn of_long(expr: &LongExpr, known: &KnownValues) -> Option<FixedKey> {
        match &expr.kind {
            LongKind::Const(value) => Some(FixedKey::Long(*value)),
            LongKind::Variable(variable) => FixedKey::of_variable(*variable, known),
            LongKind::Read { address, size, user } => known.if_read(FixedKey::read(address, *size, *user, known)?),
            LongKind::KernelAddress { address, per_cpu } => known.if_read(FixedKey::Address(*address, *per_cpu)),
            LongKind::Register { offset } => Some(FixedKey::Register(*offset)),
            LongKind::Element(element) => FixedKey::of_element(element, known),
            LongKind::Saved(id) => Some(FixedKey::Saved(*id)),
            LongKind::Builtin(builtin, arguments) => FixedKey::of_builtin(builtin, arguments, known),
            LongKind::Call(function, arguments) if known.early.as_ref()?.get(function.index())? == &true => {
                known.early(FixedKey::Call(*function, FixedKey::all(arguments, known)?))
            }
            LongKind::SignExtend(inner, bits) => {
                Some(FixedKey::SignExtend(Box::new(FixedKey::of_long(inner, known)?), *bits))
            }
            LongKind::Bits { value, first, bits } => {
                Some(FixedKey::Bits(Box::new(FixedKey::of_long(value, known)?), *first, *bits))
            }
            LongKind::Negate(inner) => Some(FixedKey::Negate(Box::new(FixedKey::of_long(inner, known)?))),
            LongKind::Not(inner) => Some(FixedKey::Not(Box::new(FixedKey::of_long(inner, known)?))),
            LongKind::Complement(inner) => Some(FixedKey::Complement(Box::new(FixedKey::of_long(inner, known)?))),
            // By anything else it might fail.
            LongKind::Binary(BinaryOp::Divide | BinaryOp::Modulo, _, right)
                if !matches!(right.kind, LongKind::Const(1..)) =>
            {
                None
            }
            LongKind::Binary(op, left, right) => Some(FixedKey::Binary(
                *op,
                Box::new(FixedKey::of_long(left, known)?),
                Box::new(FixedKey::of_long(right, known)?),
            )),
            LongKind::Compare(op, left, right) => Some(FixedKey::Compare(
                *op,
                Box::new(FixedKey::of_text(left, known)?),
                Box::new(FixedKey::of_text(right, known)?),
            )),
            _ => None,
        }
    }

    fn of_builtin(builtin: &Builtin, arguments: &[Expr], known: &KnownValues) -> Option<FixedKey> {
        if !builtin.is_fixed() {
            return None;
        }
        let key = FixedKey::Builtin(builtin.symbol, FixedKey::all(arguments, &known.without_memory())?);
        Some(if builtin.shared { FixedKey::Once(Box::new(key)) } else { key })
    }

    /// Whether it must not be computed a second time.
    fn is_once(&self) -> bool {
        match self {
            FixedKey::Once(_) => true,
            FixedKey::Element(_, operands) | FixedKey::Builtin(_, operands) => operands.iter().any(FixedKey::is_once),
            FixedKey::SignExtend(inner, _)
            | FixedKey::Bits(inner, ..)
            | FixedKey::Negate(inner)
            | FixedKey::Not(inner)
            | FixedKey::Complement(inner) => inner.is_once(),
            FixedKey::Concatenate(left, right)
            | FixedKey::Binary(_, left, right)
            | FixedKey::Compare(_, left, right) => left.is_once() || right.is_once(),
            // What is read or computed early is kept.
            FixedKey::Early(_)
            | FixedKey::Read(..)
            | FixedKey::Address(..)
            | FixedKey::Call(..)
            | FixedKey::Long(_)
            | FixedKey::Text(_)
            | FixedKey::Local(_)
            | FixedKey::Register(_)
            | FixedKey::Saved(_)
            | FixedKey::Global(_) => false,
        }
    }

    fn all(keys: &[Expr], known: &KnownValues) -> Option<Vec<FixedKey>> {
        keys.iter().map(|key| FixedKey::of(key, known)).collect()
    }

    /// Adds the outermost parts of the expression that are computed early; it is the expression of this key.
    /// `again`: the run computes the key again where it uses the element, so what is read from memory is one of them.
    fn early_parts<'e>(&self, expr: &'e Expr, again: bool, found: &mut Vec<&'e LongExpr>) {
        if let Expr::Long(expr) = expr {
            self.early_parts_of(expr, again, found);
        }
    }

    fn early_parts_of<'e>(&self, expr: &'e LongExpr, again: bool, found: &mut Vec<&'e LongExpr>) {
        match (self, &expr.kind) {
            (FixedKey::Early(_), _) => found.push(expr),
            (FixedKey::Read(..) | FixedKey::Address(..), _) if again => found.push(expr),
            (FixedKey::SignExtend(key, _), LongKind::SignExtend(inner, _))
            | (FixedKey::Bits(key, ..), LongKind::Bits { value: inner, .. })
            | (FixedKey::Negate(key), LongKind::Negate(inner))
            | (FixedKey::Not(key), LongKind::Not(inner))
            | (FixedKey::Complement(key), LongKind::Complement(inner))
            | (FixedKey::Read(key, ..), LongKind::Read { address: inner, .. }) => {
                key.early_parts_of(inner, again, found);
            }
            (FixedKey::Binary(_, left_key, right_key), LongKind::Binary(_, left, right)) => {
                left_key.early_parts_of(left, again, found);
                right_key.early_parts_of(right, again, found);
            }
            _ => {}
        }
    }
}

/// Why code may use more of an array than a few elements that are known when it takes its stripes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WholeArray {
    /// It iterates over the array, deletes it, or looks for any of several elements.
    Whole(Span),
    /// A key is computed from something that may change meanwhile, or that is not known before the code has done
    /// something else.
    Computed(Span),
    /// It uses more than [`MOST_ELEMENTS`].
    Another(Span),
    /// A function that it calls there does one of these, or calls itself.
    Called(Span),
    /// It may change the probed registers, from which keys are computed.
    Registers,
}

/// Most elements of an array of which a handler holds the stripes.
pub const MOST_ELEMENTS: usize = 4;

/// One element of an array. Two of them may turn out to be the same.
#[derive(Clone, Debug)]
pub struct UsedElement {
    /// Its keys.
    pub keys: Vec<Expr>,
    fixed: Vec<FixedKey>,
    /// Functions that the code calls use it.
    pub called: bool,
}

impl UsedElement {
    /// The globals on whose values its keys depend.
    pub fn globals(&self) -> BTreeSet<GlobalId> {
        let mut found = BTreeSet::new();
        self.fixed.iter().for_each(|key| key.globals(&mut found));
        found
    }

    /// Parts of its keys that are computed early. `again`: where the run uses the element it computes the keys again.
    pub fn early(&self, again: bool) -> Vec<&LongExpr> {
        let mut found = Vec::new();
        self.keys.iter().zip(&self.fixed).for_each(|(key, fixed)| fixed.early_parts(key, again, &mut found));
        found
    }
}

/// What code uses of arrays: the elements, if they are few.
#[derive(Clone, Debug, Default)]
pub struct ElementUses(BTreeMap<GlobalId, Result<Vec<UsedElement>, WholeArray>>);

impl ElementUses {
    /// The code uses more of the array than a few elements. The first reason is kept.
    pub fn uses_whole(&mut self, array: GlobalId, why: WholeArray) {
        let elements = self.0.entry(array).or_insert(Err(why));
        if elements.is_ok() {
            *elements = Err(why);
        }
    }

    /// The code uses this element, at that place.
    pub fn element(&mut self, array: GlobalId, keys: Vec<Expr>, known: &KnownValues, span: Span) {
        match FixedKey::all(&keys, known) {
            Some(fixed) => self.add(array, UsedElement { keys, fixed, called: false }, span),
            None => self.uses_whole(array, WholeArray::Computed(span)),
        }
    }

    /// A function that the code calls uses this element. It evaluates the keys itself.
    pub fn called(&mut self, array: GlobalId, keys: Vec<Expr>, known: &KnownValues, span: Span) {
        match FixedKey::all(&keys, &known.without_memory()) {
            Some(fixed) => self.add(array, UsedElement { keys, fixed, called: true }, span),
            None => self.uses_whole(array, WholeArray::Called(span)),
        }
    }

    fn add(&mut self, array: GlobalId, element: UsedElement, span: Span) {
        let Ok(elements) = self.0.entry(array).or_insert_with(|| Ok(Vec::new())) else { return };
        let fits = elements.len() < MOST_ELEMENTS;
        match elements.iter_mut().find(|before| before.fixed == element.fixed) {
            Some(before) => before.called |= element.called,
            None if fits => elements.push(element),
            None => return self.uses_whole(array, WholeArray::Another(span)),
        }
        // The run uses a single element without looking for it again; others by their keys.
        let again = elements.len() > 1 || elements.iter().any(|element| element.called);
        if again && elements.iter().flat_map(|element| &element.fixed).any(FixedKey::is_once) {
            self.uses_whole(array, WholeArray::Computed(span));
        }
    }

    /// Whether some keys are not known.
    pub fn has_computed(&self) -> bool {
        self.0.values().any(|element| matches!(element, Err(WholeArray::Computed(_))))
    }

    /// The probed registers may change.
    pub fn registers_change(&mut self) {
        self.0.values_mut().filter(|element| element.is_ok()).for_each(|element| *element = Err(WholeArray::Registers));
    }

    /// The elements, if the code uses only a few of the array.
    pub fn of(&self, array: GlobalId) -> Option<&[UsedElement]> {
        self.0.get(&array)?.as_ref().ok().map(Vec::as_slice)
    }

    /// Whether the code itself uses any element of the array, without functions that it calls.
    pub fn has(&self, array: GlobalId) -> bool {
        self.0.contains_key(&array)
    }

    /// Why it is more than a few elements, if it is.
    pub fn why_whole(&self, array: GlobalId) -> Option<WholeArray> {
        self.0.get(&array)?.as_ref().err().copied()
    }
}
