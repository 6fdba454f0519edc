//! DWARF location expressions as owned operations (DWARF 5, 2.5 and 2.6).

use gimli::Operation;

use super::{Address, DebugInfo, Error, Reader, Unit};

/// Where a variable is. Registers have DWARF's numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    Register(u16),
    /// At the address that the operations compute.
    Memory(Vec<Op>),
    /// It is nowhere; its value is what the operations compute.
    Value(Vec<Op>),
    /// It is nowhere; its value is these bytes.
    Bytes(Vec<u8>),
}

/// An operation on a stack of 64-bit words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    Const(i64),
    /// Pushes the register's value.
    Register(u16),
    /// Pushes the run-time address of this place.
    Address(Address),
    /// Replaces an address by the 1, 2, 4 or 8 bytes there, zero-extended.
    Deref(u8),
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Neg,
    Not,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Shra,
    Dup,
    Drop,
    Over,
    Swap,
    Rot,
    Pick(u8),
    Eq,
    Ne,
    Lt,
    Gt,
    Le,
    Ge,
}

/// The stack pointer's DWARF number (x86-64 psABI, figure 3.36).
const STACK_POINTER: u16 = 7;

/// Longest expression that is taken over.
const MAX_OPERATIONS: usize = 256;

/// A location, or what about the expression is not supported.
pub(super) type Found = Result<Location, String>;

/// Where an expression is evaluated.
pub(super) struct Place<'u> {
    pub unit: &'u Unit,
    /// Linear address.
    pub pc: u64,
    /// `pc` is the first instruction of the function.
    pub at_entry: bool,
    /// DW_AT_frame_base of the function.
    pub frame_base: Option<gimli::Expression<Reader>>,
}

impl DebugInfo {
    pub(super) fn locate(&self, expression: gimli::Expression<Reader>, place: &Place) -> Result<Found, Error> {
        let mut ops = Vec::new();
        let mut location = None;
        let mut operations = expression.operations(place.unit.encoding());
        while let Some(operation) = operations.next()? {
            if ops.len() > MAX_OPERATIONS {
                return Err(Error::Damaged("a location expression is too long"));
            }
            if location.is_some() {
                return Ok(Err("it is in several pieces".into()));
            }
            match operation {
                Operation::Register { register } if ops.is_empty() => location = Some(Location::Register(register.0)),
                Operation::StackValue => location = Some(Location::Value(std::mem::take(&mut ops))),
                Operation::ImplicitValue { data } => location = Some(Location::Bytes(data.slice().to_vec())),
                // A variable that is one piece as a whole.
                Operation::Piece { .. } => return Ok(Err("it is in several pieces".into())),
                other => match self.operation(other, place, &mut ops)? {
                    Ok(()) => {}
                    Err(what) => return Ok(Err(what)),
                },
            }
        }
        Ok(match location {
            Some(location) => Ok(location),
            None if ops.is_empty() => Err("the compiler has optimised it out".into()),
            None => Ok(Location::Memory(ops)),
        })
    }

    fn operation(&self, operation: Operation<Reader>, place: &Place, ops: &mut Vec<Op>) -> Result<Result<(), String>, Error> {
        let op = match operation {
            Operation::UnsignedConstant { value } => Op::Const(value as i64),
            Operation::SignedConstant { value } => Op::Const(value),
            Operation::RegisterOffset { register, offset, .. } => {
                ops.push(Op::Register(register.0));
                plus(ops, offset);
                return Ok(Ok(()));
            }
            Operation::FrameOffset { offset } => {
                let base = match place.frame_base {
                    Some(base) => base,
                    None => return Ok(Err("its function has no frame base".into())),
                };
                match self.frame_base(base, place, ops)? {
                    Ok(()) => plus(ops, offset),
                    Err(what) => return Ok(Err(what)),
                }
                return Ok(Ok(()));
            }
            Operation::CallFrameCFA => return self.cfa(place, ops),
            Operation::PlusConstant { value } => {
                plus(ops, value as i64);
                return Ok(Ok(()));
            }
            Operation::Address { address } => match self.elf.address(address) {
                Some(address) => Op::Address(address),
                None => return Err(Error::Damaged("an address lies in no section")),
            },
            Operation::AddressIndex { index } => match self.elf.address(self.dwarf.address(place.unit, index)?) {
                Some(address) => Op::Address(address),
                None => return Err(Error::Damaged("an address lies in no section")),
            },
            Operation::ConstantIndex { index } => Op::Const(self.dwarf.address(place.unit, index)? as i64),
            Operation::Deref { size, space: false, .. } if matches!(size, 1 | 2 | 4 | 8) => Op::Deref(size),
            Operation::EntryValue { expression } if place.at_entry => {
                let mut inner = gimli::Expression(expression).operations(place.unit.encoding());
                match (inner.next()?, inner.next()?) {
                    (Some(Operation::Register { register }), None) => Op::Register(register.0),
                    _ => return Ok(Err("it is made of a value at the function's entry".into())),
                }
            }
            Operation::EntryValue { .. } => return Ok(Err("it is only known by its value at the function's entry".into())),
            Operation::ImplicitPointer { .. } => return Ok(Err("it points to something that the compiler has optimised out".into())),
            Operation::TLS => return Ok(Err("it is thread-local".into())),
            Operation::Drop => Op::Drop,
            Operation::Pick { index: 0 } => Op::Dup,
            Operation::Pick { index: 1 } => Op::Over,
            Operation::Pick { index } => Op::Pick(index),
            Operation::Swap => Op::Swap,
            Operation::Rot => Op::Rot,
            Operation::And => Op::And,
            Operation::Or => Op::Or,
            Operation::Xor => Op::Xor,
            Operation::Plus => Op::Add,
            Operation::Minus => Op::Sub,
            Operation::Mul => Op::Mul,
            Operation::Div => Op::Div,
            Operation::Mod => Op::Mod,
            Operation::Neg => Op::Neg,
            Operation::Not => Op::Not,
            Operation::Shl => Op::Shl,
            Operation::Shr => Op::Shr,
            Operation::Shra => Op::Shra,
            Operation::Eq => Op::Eq,
            Operation::Ne => Op::Ne,
            Operation::Lt => Op::Lt,
            Operation::Gt => Op::Gt,
            Operation::Le => Op::Le,
            Operation::Ge => Op::Ge,
            Operation::Nop => return Ok(Ok(())),
            _ => return Ok(Err("its location has an operation that is not supported".into())),
        };
        ops.push(op);
        Ok(Ok(()))
    }

    /// Pushes the value of DW_AT_frame_base.
    fn frame_base(&self, base: gimli::Expression<Reader>, place: &Place, ops: &mut Vec<Op>) -> Result<Result<(), String>, Error> {
        let mut operations = base.operations(place.unit.encoding());
        match (operations.next()?, operations.next()?) {
            (Some(Operation::CallFrameCFA), None) => self.cfa(place, ops),
            (Some(Operation::Register { register }), None) => {
                ops.push(Op::Register(register.0));
                Ok(Ok(()))
            }
            _ => Ok(Err("its function's frame base is not supported".into())),
        }
    }

    /// Pushes the canonical frame address: the stack pointer before the call.
    fn cfa(&self, place: &Place, ops: &mut Vec<Op>) -> Result<Result<(), String>, Error> {
        if place.at_entry {
            // The return address alone has been pushed.
            ops.push(Op::Register(STACK_POINTER));
            plus(ops, 8);
            return Ok(Ok(()));
        }
        use gimli::UnwindSection;
        let bases = gimli::BaseAddresses::default();
        let mut context = gimli::UnwindContext::new();
        let row = self.frames.unwind_info_for_address(&bases, &mut context, place.pc, gimli::DebugFrame::cie_from_offset);
        match row.map(|row| row.cfa().clone()) {
            Ok(gimli::CfaRule::RegisterAndOffset { register, offset }) => {
                ops.push(Op::Register(register.0));
                plus(ops, offset);
                Ok(Ok(()))
            }
            _ => Ok(Err("the stack frame there is not described (.debug_frame)".into())),
        }
    }
}

fn plus(ops: &mut Vec<Op>, offset: i64) {
    if offset != 0 {
        ops.push(Op::Const(offset));
        ops.push(Op::Add);
    }
}
