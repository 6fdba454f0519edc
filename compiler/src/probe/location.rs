//! DWARF locations as expressions of a handler: registers are words of struct pt_regs, memory is read fault-safe.

use super::{ContextError, Location, registers};
use crate::debuginfo::{self, Op, Unavailable};
use crate::program::{Expr, ExprKind, Type};
use crate::source::{FileId, Span};
use crate::syntax::ast::BinaryOp;
use crate::target::Object;

/// Why a variable has no value, for the user.
pub(super) fn unavailable(reason: Unavailable) -> ContextError {
    match reason {
        Unavailable::Unknown => ContextError::Unknown,
        reason => ContextError::NoValue(why_unavailable(reason)),
    }
}

/// The same in lines.
pub fn why_unavailable(reason: Unavailable) -> Vec<String> {
    match reason {
        Unavailable::Unknown => Vec::new(),
        Unavailable::OptimizedOut { available } if available.is_empty() => vec!["the compiler has optimised it out".into()],
        Unavailable::OptimizedOut { available } => vec![format!("optimised out here; available at {}", available.join(", "))],
        Unavailable::Unsupported(what) => vec![what],
    }
}

/// Expressions made of debug information have no place in a script; their reads are given one where they are used.
fn nowhere() -> Span {
    Span::new(FileId(0), 0, 0)
}

fn expr(kind: ExprKind) -> Expr {
    Expr { kind, ty: Type::Long, span: nowhere() }
}

fn long(value: i64) -> Expr {
    expr(ExprKind::Long(value))
}

/// The location as an expression; the message says what cannot be had.
pub fn locate(location: &debuginfo::Location, object: &Object) -> Result<Location, String> {
    match location {
        debuginfo::Location::Register(number) => match registers::pt_regs_offset(*number) {
            Some(offset) => Ok(Location::Register { offset }),
            None => Err(format!("it is in register {number}, which a probe does not see")),
        },
        debuginfo::Location::Memory(ops) => Ok(Location::Memory { address: evaluate(ops, object)?, bits: None }),
        debuginfo::Location::Value(ops) => Ok(Location::Value(evaluate(ops, object)?)),
        debuginfo::Location::Bytes(bytes) if bytes.len() <= 8 => {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            Ok(Location::Value(long(i64::from_le_bytes(word))))
        }
        debuginfo::Location::Bytes(_) => Err("it is a constant of more than 8 bytes".into()),
        debuginfo::Location::Pieces(_) => Err("it is in several pieces".into()),
    }
}

/// Runs the operations on a stack of expressions.
fn evaluate(ops: &[Op], object: &Object) -> Result<Expr, String> {
    let mut stack: Vec<Expr> = Vec::new();
    for op in ops {
        step(op, &mut stack, object)?;
    }
    stack.pop().ok_or_else(|| "its location has no value".to_string())
}

fn step(op: &Op, stack: &mut Vec<Expr>, object: &Object) -> Result<(), String> {
    let underflow = || "its location uses more values than there are".to_string();
    let mut pop = || stack.pop().ok_or_else(underflow);
    let value = match op {
        Op::Const(value) => long(*value),
        Op::Register(number) => match registers::pt_regs_offset(*number) {
            Some(offset) => expr(ExprKind::Register { offset }),
            None => return Err(format!("its address is in register {number}, which a probe does not see")),
        },
        Op::Address(address) if object.is_kernel() => {
            expr(ExprKind::KernelAddress { address: address.offset, per_cpu: object.is_per_cpu(*address) })
        }
        Op::Address(address) => match object.data_anchor(*address) {
            Some(anchor) => expr(ExprKind::ModuleAddress {
                module: object.name().to_string(),
                symbol: anchor.symbol,
                offset: anchor.offset,
                per_cpu: object.is_per_cpu(*address),
            }),
            None => return Err("it is a variable of a module without a symbol near it, or one of its initialisation".into()),
        },
        Op::Deref(size) => {
            let address = Box::new(pop()?);
            expr(ExprKind::Read { address, size: *size, user: false })
        }
        Op::Neg => expr(ExprKind::Negate(Box::new(pop()?))),
        Op::Not => expr(ExprKind::Complement(Box::new(pop()?))),
        Op::Dup => {
            let top = pop()?;
            stack.push(top.clone());
            top
        }
        Op::Drop => {
            pop()?;
            return Ok(());
        }
        Op::Swap => {
            let (top, below) = (pop()?, pop()?);
            stack.push(top);
            below
        }
        Op::Over => stack.len().checked_sub(2).and_then(|at| stack.get(at)).cloned().ok_or_else(underflow)?,
        Op::Pick(depth) => {
            let at = stack.len().checked_sub(1 + usize::from(*depth));
            at.and_then(|at| stack.get(at)).cloned().ok_or_else(underflow)?
        }
        Op::Rot => {
            let (top, second, third) = (pop()?, pop()?, pop()?);
            stack.push(top);
            stack.push(third);
            second
        }
        _ => {
            let (right, left) = (pop()?, pop()?);
            let op = operator(op).ok_or("its location has an operation that is not known")?;
            expr(ExprKind::Binary(op, Box::new(left), Box::new(right)))
        }
    };
    stack.push(value);
    Ok(())
}

fn operator(op: &Op) -> Option<BinaryOp> {
    Some(match op {
        Op::Add => BinaryOp::Add,
        Op::Sub => BinaryOp::Subtract,
        Op::Mul => BinaryOp::Multiply,
        Op::Div => BinaryOp::Divide,
        Op::Mod => BinaryOp::Modulo,
        Op::And => BinaryOp::BitAnd,
        Op::Or => BinaryOp::BitOr,
        Op::Xor => BinaryOp::BitXor,
        Op::Shl => BinaryOp::ShiftLeft,
        Op::Shr => BinaryOp::ShiftRightLogical,
        Op::Shra => BinaryOp::ShiftRight,
        Op::Eq => BinaryOp::Equal,
        Op::Ne => BinaryOp::NotEqual,
        Op::Lt => BinaryOp::Less,
        Op::Gt => BinaryOp::Greater,
        Op::Le => BinaryOp::LessEqual,
        Op::Ge => BinaryOp::GreaterEqual,
        _ => return None,
    })
}
