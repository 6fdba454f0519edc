// SPDX-License-Identifier: GPL-2.0-or-later

//! Where a variable is: DWARF's expressions as owned values that the caller can evaluate.
//!
//! An expression is translated for one address: the frame base and the canonical frame address become operations on
//! registers, and typed operations (`DW_OP_convert` and its family) become plain ones on 64-bit words, in which a value
//! of a narrower type is kept sign- or zero-extended. What a register held at the function's entry (`DW_OP_entry_value`) is
//! computed for each caller ([`super::callers`]). What cannot be computed is a [`Fault::Missing`] with its reason.

use gimli::{Encoding, Expression, Operation, UnitOffset};
use spile_abi::budget::{Budget, Exceeded, Limits, USUAL};

use super::Dwarf;
use super::frame::FrameAddress;
use super::scope::Scopes;
use super::store::{Bytes, Die, Entry, EntryError, Unit, die_at, number};
use crate::facts::registers::{FRAME_POINTER, STACK_POINTER};
use crate::facts::{Location, Op, Piece};

/// Why there is no location.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// The expression is empty.
    OptimizedOut,
    /// There is one that a probe cannot use; a clause that says why.
    Missing(String),
    /// It needs the value of a register at the function's entry, which only the callers know.
    OfCaller,
    EntryError(EntryError),
}

impl From<EntryError> for Fault {
    fn from(damage: EntryError) -> Fault {
        Fault::EntryError(damage)
    }
}

impl From<Exceeded> for Fault {
    fn from(error: Exceeded) -> Fault {
        Fault::EntryError(error.into())
    }
}

impl From<gimli::Error> for Fault {
    fn from(error: gimli::Error) -> Fault {
        Fault::EntryError(error.into())
    }
}

fn missing(what: impl Into<String>) -> Fault {
    Fault::Missing(what.into())
}

/// Operations and pieces of one expression; more is damage.
const MAX_OPS: usize = 1000;

/// Why there is no location: an operation jumps.
const CONDITIONAL: &str = "its location depends on a condition";

/// The limit for one variable at one address with all that its location leads to: pieces that point to objects in pieces,
/// frames found by expressions, values passed by each caller.
const LIMITS: Limits = Limits { depth: 8, work: 1 << 15, ..USUAL };

/// The limit for one query for a location.
pub(super) fn budget() -> Budget {
    Budget::new("operations of a location", LIMITS)
}

/// Where expressions are translated for.
#[derive(Clone, Copy)]
pub(super) struct Place<'s> {
    /// The debug information that they belong to.
    pub debug: &'s Dwarf,
    /// The scopes of its functions.
    pub scopes: &'s Scopes,
    /// The unit that the address is in.
    pub unit: &'s Unit,
    /// In the object's one address space.
    pub at: u64,
    /// The address is the first of a function's body: registers still hold the caller's values.
    pub is_entry: bool,
    /// DW_AT_frame_base of the body that the address is in.
    pub frame_base: Option<Expression<Bytes>>,
    /// Values of registers at the entry of the function, if one of its callers is assumed.
    pub entry_values: Option<&'s EntryValues>,
    /// What remains of the limit.
    pub budget: &'s Budget,
}

/// Where a call site says that a value goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Passed {
    /// Into this register, by x86_64's number.
    In(u16),
    /// Nowhere: it is the value of a parameter that the compiler has removed.
    As(Die),
}

/// What was passed to a function by one call site, in terms of the registers at an address in the function.
pub(super) struct EntryValues(pub Vec<(Passed, Vec<Op>)>);

impl EntryValues {
    /// The value; None: the call site does not say.
    fn of(&self, wanted: Passed) -> Option<Vec<Op>> {
        self.0.iter().find(|(passed, _)| *passed == wanted).map(|(_, ops)| ops.clone())
    }
}

/// How a stack word is interpreted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// An address, or an integer of that size.
    Generic,
    Integer {
        bytes: u8,
        signed: bool,
    },
}

impl Place<'_> {
    /// The location that the expression computes at this place; the fault if it cannot be computed in a handler.
    pub fn translate(&self, expression: Expression<Bytes>) -> Result<Location, Fault> {
        let _level = self.budget.deeper()?;
        let mut translator =
            Translator { place: self, encoding: self.unit.encoding(), ops: Vec::new(), kinds: Vec::new() };
        translator.run(expression)
    }
}

struct Translator<'p, 's> {
    place: &'p Place<'s>,
    encoding: Encoding,
    ops: Vec<Op>,
    kinds: Vec<Kind>,
}

/// What is known of a location before its end is reached.
enum Partial {
    /// Only operations so far.
    Open,
    Done(Location),
}

impl Translator<'_, '_> {
    fn run(&mut self, expression: Expression<Bytes>) -> Result<Location, Fault> {
        let mut partial = Partial::Open;
        let mut pieces: Vec<Piece> = Vec::new();
        let mut operations = expression.operations(self.encoding);
        let mut count = 0;
        while let Some(operation) = operations.next()? {
            count += 1;
            if count > MAX_OPS || self.ops.len() > MAX_OPS {
                return Err(missing("its location is too long"));
            }
            if let Operation::Piece { size_in_bits, bit_offset } = operation {
                let location = self.finish(std::mem::replace(&mut partial, Partial::Open));
                let location = match location {
                    Ok(location) => Some(location),
                    Err(Fault::OptimizedOut) => None,
                    Err(fault) => return Err(fault),
                };
                pieces.push(Piece { location, bits: size_in_bits, first_bit: bit_offset.unwrap_or(0) });
                continue;
            }
            if let Partial::Done(_) = partial {
                return Err(missing("its location goes on after its end"));
            }
            let before = self.ops.len();
            partial = match operation {
                Operation::Bra { target } => {
                    operations = self.choice(target, operations)?;
                    Partial::Open
                }
                operation => self.step(operation)?,
            };
            self.place.budget.work(1 + self.ops.len().saturating_sub(before))?;
        }
        if pieces.is_empty() {
            return self.finish(partial);
        }
        if pieces.iter().all(|piece| piece.location.is_none()) {
            return Err(Fault::OptimizedOut);
        }
        Ok(Location::Pieces(pieces))
    }

    /// The location that ends here; the next one begins with an empty stack.
    fn finish(&mut self, partial: Partial) -> Result<Location, Fault> {
        let ops = std::mem::take(&mut self.ops);
        let depth = std::mem::take(&mut self.kinds).len();
        match partial {
            Partial::Done(Location::Value(_)) if depth > 0 => Ok(Location::Value(ops)),
            Partial::Done(Location::Value(_)) => Err(missing("its location has no value")),
            Partial::Done(location) => Ok(location),
            Partial::Open if ops.is_empty() => Err(Fault::OptimizedOut),
            Partial::Open if depth == 0 => Err(missing("its location has no value")),
            Partial::Open => Ok(Location::Memory(ops)),
        }
    }

    fn push(&mut self, op: Op, kind: Kind) {
        self.ops.push(op);
        self.kinds.push(kind);
    }

    fn pop(&mut self) -> Result<Kind, Fault> {
        self.kinds.pop().ok_or_else(|| missing("its location takes more values than there are"))
    }

    fn peek(&self, below: usize) -> Result<Kind, Fault> {
        let index = self.kinds.len().checked_sub(1 + below);
        let kind = index.and_then(|index| self.kinds.get(index)).copied();
        kind.ok_or_else(|| missing("its location takes more values than there are"))
    }

    fn step(&mut self, operation: Operation<Bytes>) -> Result<Partial, Fault> {
        let generic = Kind::Generic;
        match operation {
            Operation::Nop => {}
            Operation::UnsignedConstant { value } => self.push(Op::Const(value as i64), generic),
            Operation::SignedConstant { value } => self.push(Op::Const(value), generic),
            Operation::Address { address } => self.push_address(address)?,
            Operation::AddressIndex { index } => {
                let address = self.place.debug.store.sections_of(self.place.unit).address(self.place.unit, index)?;
                self.push_address(address)?;
            }
            Operation::ConstantIndex { index } => {
                let value = self.place.debug.store.sections_of(self.place.unit).address(self.place.unit, index)?;
                self.push(Op::Const(value as i64), generic);
            }
            Operation::Register { register } => {
                return Ok(Partial::Done(Location::Register(self.number(register))));
            }
            // In a function that aligns its frame itself, gcc gives a local variable one location for all of the function.
            Operation::RegisterOffset { register, .. }
                if self.place.is_entry && matches!(self.number(register), FRAME_POINTER | STACK_POINTER) =>
            {
                return Err(missing("it is in a frame that the function has not made at its first instruction"));
            }
            Operation::RegisterOffset { register, offset, base_type } => {
                self.push(Op::Register(self.number(register)), generic);
                self.add(offset);
                if base_type.0 != 0 {
                    self.convert(base_type)?;
                }
            }
            Operation::FrameOffset { offset } => {
                self.push_frame_base()?;
                self.add(offset);
            }
            Operation::CallFrameCFA => self.push_frame_address()?,
            Operation::Deref { base_type, size, space: false } => {
                self.pop()?;
                if !matches!(size, 1 | 2 | 4 | 8) {
                    return Err(missing(format!("its location reads {size} bytes at once")));
                }
                self.push(Op::Deref(size), generic);
                if base_type.0 != 0 {
                    self.convert(base_type)?;
                }
            }
            Operation::Drop => {
                self.pop()?;
                self.ops.push(Op::Drop);
            }
            Operation::Pick { index } => {
                let kind = self.peek(usize::from(index))?;
                let op = match index {
                    0 => Op::Dup,
                    1 => Op::Over,
                    _ => Op::Pick(index),
                };
                self.push(op, kind);
            }
            Operation::Swap => {
                let (top, below) = (self.pop()?, self.pop()?);
                self.kinds.extend([top, below]);
                self.ops.push(Op::Swap);
            }
            Operation::Rot => {
                let (top, second, third) = (self.pop()?, self.pop()?, self.pop()?);
                self.kinds.extend([top, third, second]);
                self.ops.push(Op::Rot);
            }
            Operation::Abs => {
                let kind = self.peek(0)?;
                self.extend_word(kind, true);
                // With m = x >> 63: (x ^ m) - m.
                self.ops.extend([Op::Dup, Op::Const(63), Op::Shra, Op::Swap, Op::Over, Op::Xor, Op::Swap, Op::Sub]);
                self.normalize(kind);
            }
            Operation::Neg => self.unary(Op::Neg)?,
            Operation::Not => self.unary(Op::Not)?,
            Operation::PlusConstant { value } => {
                let kind = self.peek(0)?;
                self.add(value as i64);
                self.normalize(kind);
            }
            Operation::Plus => self.binary(Op::Add)?,
            Operation::Minus => self.binary(Op::Sub)?,
            Operation::Mul => self.binary(Op::Mul)?,
            Operation::Div => self.binary(Op::Div)?,
            Operation::Mod => self.binary(Op::Mod)?,
            Operation::And => self.binary(Op::And)?,
            Operation::Or => self.binary(Op::Or)?,
            Operation::Xor => self.binary(Op::Xor)?,
            Operation::Shl => self.binary(Op::Shl)?,
            Operation::Shr => self.binary(Op::Shr)?,
            Operation::Shra => self.binary(Op::Shra)?,
            Operation::Eq => self.compare(Op::Eq)?,
            Operation::Ne => self.compare(Op::Ne)?,
            Operation::Lt => self.compare(Op::Lt)?,
            Operation::Gt => self.compare(Op::Gt)?,
            Operation::Le => self.compare(Op::Le)?,
            Operation::Ge => self.compare(Op::Ge)?,
            Operation::ImplicitValue { data } => {
                return Ok(Partial::Done(Location::Bytes(data.slice().to_vec())));
            }
            Operation::StackValue => return Ok(Partial::Done(Location::Value(Vec::new()))),
            Operation::EntryValue { expression } => self.push_entry_value(Expression(expression))?,
            Operation::TypedLiteral { base_type, value } => {
                let mut word = [0; 8];
                let bytes = value.slice();
                let low = word
                    .get_mut(..bytes.len())
                    .ok_or_else(|| missing("its location has a constant of more than 8 bytes"))?;
                low.copy_from_slice(bytes);
                self.push(Op::Const(i64::from_le_bytes(word)), generic);
                self.convert(base_type)?;
            }
            // Between integers of one size both give the same bits.
            Operation::Convert { base_type } | Operation::Reinterpret { base_type } => self.convert(base_type)?,
            Operation::ParameterRef { offset } => self.push_passed(Passed::As(die_at(self.place.unit, offset)?))?,
            Operation::Uninitialized => {}
            Operation::ImplicitPointer { value, byte_offset } => {
                let value = gimli::AttributeValue::DebugInfoRef(value);
                return Ok(Partial::Done(self.implicit_pointer(value, byte_offset)?));
            }
            Operation::TLS => self.unary(Op::InThread)?,
            Operation::Bra { .. } | Operation::Skip { .. } => {
                return Err(missing(CONDITIONAL));
            }
            other => {
                return Err(missing(format!("its location has an operation that is not known: {other:?}")));
            }
        }
        Ok(Partial::Open)
    }

    /// The one form of a condition that gcc writes without a loop, for minima and maxima: a jump over DW_OP_swap, and then
    /// DW_OP_drop, so that the second of two values stays where the condition holds, else the top. Takes the operations behind the
    /// jump and returns those behind the form.
    fn choice(
        &mut self,
        target: i16,
        mut behind: gimli::OperationIter<Bytes>,
    ) -> Result<gimli::OperationIter<Bytes>, Fault> {
        if (target, behind.next()?, behind.next()?) != (1, Some(Operation::Swap), Some(Operation::Drop)) {
            return Err(missing(CONDITIONAL));
        }
        let (_, top, second) = (self.pop()?, self.pop()?, self.pop()?);
        if top != second {
            return Err(missing(CONDITIONAL));
        }
        self.kinds.push(top);
        // With m = -(condition != 0): top ^ ((second ^ top) & m).
        self.ops.extend([Op::Const(0), Op::Ne, Op::Neg, Op::Rot]);
        self.ops.extend([Op::Swap, Op::Over, Op::Xor, Op::Rot, Op::Rot, Op::And, Op::Xor]);
        Ok(behind)
    }

    fn implicit_pointer(&self, to: gimli::AttributeValue<Bytes>, offset: i64) -> Result<Location, Fault> {
        let place = self.place;
        let nowhere = || missing("it is a pointer to something that the compiler has optimised out");
        let die = place.debug.store.reference(place.unit, to)?.ok_or_else(nowhere)?;
        match place.debug.located_entry(die, place) {
            Ok(to) => Ok(Location::Pointer { to: Box::new(to), offset }),
            Err(Fault::OptimizedOut) => Err(nowhere()),
            Err(fault) => Err(fault),
        }
    }

    fn push_address(&mut self, address: u64) -> Result<(), Fault> {
        let address = self.place.debug.elf.address(address);
        let address = address.ok_or_else(|| missing("it is in a section that is not loaded, or in another object"))?;
        self.push(Op::Address(address), Kind::Generic);
        Ok(())
    }

    fn add(&mut self, offset: i64) {
        if offset != 0 {
            self.ops.extend([Op::Const(offset), Op::Add]);
        }
    }

    /// x86_64's number of the object's register.
    fn number(&self, register: gimli::Register) -> u16 {
        self.place.debug.store.machine.register(register.0)
    }

    fn push_frame_base(&mut self) -> Result<(), Fault> {
        let Some(base) = self.place.frame_base else {
            return Err(missing("its function has no frame base"));
        };
        let inner = Place { frame_base: None, ..*self.place };
        match inner.translate(base)? {
            // A register as frame base means its value, as clang writes it: once the prologue has run.
            Location::Register(register) => {
                let place = self.place;
                let ops = place.debug.frames.base_in_body(&place.debug.store, place.at, register)?;
                self.ops.extend(ops.unwrap_or_else(|| vec![Op::Register(register)]));
                self.kinds.push(Kind::Generic);
            }
            // DWARF 5, 3.3.5: the address itself is the base.
            Location::Memory(ops) | Location::Value(ops) => {
                self.ops.extend(ops);
                self.kinds.push(Kind::Generic);
            }
            _ => return Err(missing("its function's frame base is in pieces")),
        }
        Ok(())
    }

    fn push_frame_address(&mut self) -> Result<(), Fault> {
        let place = self.place;
        let ops = match place.debug.frames.address(&place.debug.store, place.at, place.is_entry)? {
            FrameAddress::Ops(ops) => ops,
            FrameAddress::Expression(expression) => {
                let inner = Place { frame_base: None, ..*place };
                match inner.translate(expression)? {
                    Location::Memory(ops) => ops,
                    _ => return Err(missing("its frame has no address")),
                }
            }
            FrameAddress::Unknown => {
                return Err(missing("no frame description (.debug_frame) covers this address"));
            }
        };
        self.ops.extend(ops);
        self.kinds.push(Kind::Generic);
        Ok(())
    }

    fn push_entry_value(&mut self, expression: Expression<Bytes>) -> Result<(), Fault> {
        let mut operations = expression.operations(self.encoding);
        let first = operations.next()?;
        match (first, operations.next()?) {
            (Some(Operation::Register { register }), None) if self.place.is_entry => {
                self.push(Op::Register(self.number(register)), Kind::Generic);
                Ok(())
            }
            (Some(Operation::Register { register }), None) => self.push_passed(Passed::In(self.number(register))),
            _ => Err(missing("its value is only known at the function's entry")),
        }
    }

    fn push_passed(&mut self, passed: Passed) -> Result<(), Fault> {
        let values = self.place.entry_values.ok_or(Fault::OfCaller)?;
        let unknown = || missing("its value is only known at the function's entry, and what a caller passed no more");
        self.ops.extend(values.of(passed).ok_or_else(unknown)?);
        self.kinds.push(Kind::Generic);
        Ok(())
    }

    /// The integer type of a base type entry of the unit.
    fn kind_of(&self, base_type: UnitOffset) -> Result<Kind, Fault> {
        if base_type.0 == 0 {
            return Ok(Kind::Generic);
        }
        let damaged = || missing("an operand's type is no entry");
        let entry = Entry::read(self.place.unit, base_type)?.ok_or_else(damaged)?;
        let bytes = number(&entry, gimli::DW_AT_byte_size).unwrap_or(0);
        let encoding = match entry.attr_value(gimli::DW_AT_encoding) {
            Some(gimli::AttributeValue::Encoding(encoding)) => encoding,
            _ => gimli::DwAte(0),
        };
        match (encoding, bytes) {
            (gimli::DW_ATE_signed | gimli::DW_ATE_signed_char, 1..=8) => {
                Ok(Kind::Integer { bytes: bytes as u8, signed: true })
            }
            (
                gimli::DW_ATE_unsigned
                | gimli::DW_ATE_unsigned_char
                | gimli::DW_ATE_boolean
                | gimli::DW_ATE_UTF
                | gimli::DW_ATE_address,
                1..=8,
            ) => Ok(Kind::Integer { bytes: bytes as u8, signed: false }),
            _ => Err(missing(format!(
                "its location is computed with numbers of {bytes} bytes that are no integers ({encoding})"
            ))),
        }
    }

    fn convert(&mut self, base_type: UnitOffset) -> Result<(), Fault> {
        let kind = self.kind_of(base_type)?;
        self.pop()?;
        self.kinds.push(kind);
        self.normalize(kind);
        Ok(())
    }

    /// Extends the top of the stack from its type's size to the word's.
    fn normalize(&mut self, kind: Kind) {
        match kind {
            Kind::Integer { bytes, signed: true } if bytes < 8 => {
                let shift = 64 - 8 * i64::from(bytes);
                self.ops.extend([Op::Const(shift), Op::Shl, Op::Const(shift), Op::Shra]);
            }
            Kind::Integer { bytes, signed: false } if bytes < 8 => {
                self.ops.extend([Op::Const((1i64 << (8 * bytes)) - 1), Op::And]);
            }
            _ => {}
        }
    }

    /// Extends the top of the stack, if it is a generic value, from the object's word to the machine's. In 64-bit objects they
    /// are one.
    fn extend_word(&mut self, kind: Kind, signed: bool) {
        let bytes = self.place.debug.store.machine.word();
        if kind == Kind::Generic && bytes < 8 {
            self.normalize(Kind::Integer { bytes, signed });
        }
    }

    /// The same of the two topmost values.
    fn extend_words(&mut self, kind: Kind, signed: bool) {
        if kind == Kind::Generic && self.place.debug.store.machine.word() < 8 {
            self.extend_word(kind, signed);
            self.ops.push(Op::Swap);
            self.extend_word(kind, signed);
            self.ops.push(Op::Swap);
        }
    }

    fn unary(&mut self, op: Op) -> Result<(), Fault> {
        let kind = self.peek(0)?;
        self.ops.push(op);
        self.normalize(kind);
        self.extend_word(kind, false);
        Ok(())
    }

    fn binary(&mut self, op: Op) -> Result<(), Fault> {
        let right = self.pop()?;
        let left = self.pop()?;
        // Typed and generic operands do not occur together; the typed one says more.
        let kind = if left == Kind::Generic && !matches!(op, Op::Shl | Op::Shr | Op::Shra) { right } else { left };
        match op {
            Op::Div | Op::Shra => self.extend_words(kind, true),
            Op::Mod | Op::Shr => self.extend_words(kind, false),
            _ => {}
        }
        let is_word = self.place.debug.store.machine.word() == 8;
        match (op, kind) {
            (Op::Div, Kind::Integer { bytes: 8, signed: false }) => {
                let why = format!("its location has an operation that is not known: {op:?} of typed numbers");
                return Err(missing(why));
            }
            (Op::Mod, Kind::Integer { bytes: 8, signed: false }) => self.unsigned_remainder(kind),
            (Op::Mod, Kind::Generic) if is_word => self.unsigned_remainder(kind),
            // The bits above the number are copies of its sign, and are not shifted in.
            (Op::Shr, Kind::Integer { bytes: bytes @ 1..=7, signed: true }) => {
                let mask = (1i64 << (8 * bytes)) - 1;
                self.ops.extend([Op::Swap, Op::Const(mask), Op::And, Op::Swap]);
                self.push(op, kind);
            }
            _ => self.push(op, kind),
        }
        self.normalize(kind);
        self.extend_word(kind, false);
        Ok(())
    }

    /// The remainder of two unsigned numbers of 64 bits, by that of signed ones. That of half of `a` is `h`, so that of `a` is
    /// `2 * h + (a & 1)`, or that without `b`.
    fn unsigned_remainder(&mut self, kind: Kind) {
        // a b -- b a a/2
        self.ops.extend([Op::Swap, Op::Dup, Op::Const(1), Op::Shr]);
        // b a a/2 b; a `b` with the top bit is above any half: with only that bit, it is so as a signed number.
        self.ops.extend([
            Op::Pick(2),
            Op::Dup,
            Op::Const(63),
            Op::Shra,
            Op::Const(i64::MAX),
            Op::And,
            Op::Not,
            Op::And,
        ]);
        // b a h -- b r
        self.ops.extend([Op::Mod, Op::Const(1), Op::Shl, Op::Swap, Op::Const(1), Op::And, Op::Add]);
        // b r (r >= b): unsigned order is signed order with the top bits inverted.
        self.ops.extend([
            Op::Over,
            Op::Over,
            Op::Const(i64::MIN),
            Op::Xor,
            Op::Swap,
            Op::Const(i64::MIN),
            Op::Xor,
            Op::Ge,
        ]);
        // r - (r >= b) * b
        self.ops.extend([Op::Rot, Op::Rot, Op::Mul]);
        self.push(Op::Sub, kind);
    }

    fn compare(&mut self, op: Op) -> Result<(), Fault> {
        let right = self.pop()?;
        let left = self.pop()?;
        let kind = if left == Kind::Generic { right } else { left };
        self.extend_words(kind, !matches!(op, Op::Eq | Op::Ne));
        let unsigned = Kind::Integer { bytes: 8, signed: false };
        if (left == unsigned || right == unsigned) && !matches!(op, Op::Eq | Op::Ne) {
            // Unsigned order is signed order with the top bits inverted.
            for _ in 0..2 {
                self.ops.extend([Op::Const(i64::MIN), Op::Xor, Op::Swap]);
            }
        }
        self.push(op, Kind::Generic);
        Ok(())
    }
}
