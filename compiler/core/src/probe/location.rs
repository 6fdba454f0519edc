// SPDX-License-Identifier: GPL-2.0-or-later

//! DWARF locations as expressions of a handler: registers are words of struct pt_regs, memory is read fault-safe.

use spile_abi::budget::{Budget, Limits, USUAL};

use super::{ContextError, Location, Part, beyond, registers};
use crate::builtin;
use crate::program::{BinaryOp, Comparison, LongExpr, LongKind, ProgramId};
use spile_debuginfo::target::Object;
use spile_debuginfo::{self as debuginfo, Address, FARTHEST, Op, ThreadBlock, Unavailable};
use spile_source::Span;

/// Why a variable has no value, for the user.
pub(super) fn unavailable(reason: Unavailable) -> ContextError {
    match reason {
        Unavailable::Unknown => ContextError::Unknown,
        Unavailable::OptimizedOut => ContextError::OptimizedOut,
        reason @ Unavailable::Unsupported(_) => ContextError::NoValue(why_unavailable(reason)),
    }
}

/// The same, one line each.
pub fn why_unavailable(reason: Unavailable) -> Vec<String> {
    match reason {
        Unavailable::Unknown => Vec::new(),
        Unavailable::OptimizedOut => vec!["the compiler has optimised it out".into()],
        Unavailable::Unsupported(what) => vec![what],
    }
}

/// Most lines that are named.
const MAX_LINES: usize = 6;

/// Where a variable has no value and where it has one: `line 451; available at lines 455-460`. `own`: the lines that belong
/// to the function itself.
pub(super) fn other_lines(other: &debuginfo::OtherLines, own: std::ops::Range<u32>) -> String {
    // A line of inlined code there is not a line of the function.
    let line = other.line.filter(|line| own.contains(line));
    let out = line.map_or_else(|| "this place".to_string(), |line| format!("line {line}"));
    let mut available: Vec<(u32, u32)> = Vec::new();
    let mut joins = false;
    for &(line, there) in other.lines.iter().filter(|(line, _)| own.contains(line)) {
        match available.last_mut() {
            // The lines between the two have no code.
            Some((_, last)) if there && joins => *last = line,
            _ if there => available.push((line, line)),
            _ => {}
        }
        joins = there;
    }
    if available.is_empty() {
        return format!("{out}; no line has it at its beginning");
    }
    let named = available.iter().take(MAX_LINES);
    let spans: Vec<String> =
        named.map(|(low, high)| if low == high { low.to_string() } else { format!("{low}-{high}") }).collect();
    let several = available.len() > 1 || available.iter().any(|(low, high)| low != high);
    let more = if available.len() > MAX_LINES { " and others" } else { "" };
    format!("{out}; available at line{} {}{more}", if several { "s" } else { "" }, spans.join(", "))
}

fn expr(kind: LongKind) -> LongExpr {
    LongExpr { kind, span: Span::none() }
}

fn long(value: i64) -> LongExpr {
    LongExpr::constant(value, Span::none())
}

/// The location as an expression, or a message that says what cannot be read.
pub fn locate(location: &debuginfo::Location, object: &Object) -> Result<Location, String> {
    match location {
        debuginfo::Location::Register(number) => match registers::pt_regs_offset(*number) {
            Some(offset) => Ok(Location::Register { offset }),
            None => vector(*number)
                .filter(|_| object.is_program())
                .ok_or_else(|| format!("it is in {}, which a probe does not see", registers::unseen(*number))),
        },
        debuginfo::Location::Memory(ops) => Ok(Location::Memory { address: evaluate(ops, object)?, bits: None }),
        debuginfo::Location::Value(ops) => Ok(Location::Value(evaluate(ops, object)?)),
        debuginfo::Location::Bytes(bytes) if bytes.len() <= 8 => {
            let mut word = [0; 8];
            word.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
            Ok(Location::Value(long(i64::from_le_bytes(word))))
        }
        debuginfo::Location::Bytes(bytes) => {
            let word = |bytes: &[u8]| {
                let value = bytes.iter().rev().fold(0, |value, byte| value << 8 | i64::from(*byte));
                Part { location: Some(Location::Value(long(value))), bits: bytes.len() as u64 * 8 }
            };
            Ok(Location::Parts(bytes.chunks(8).map(word).collect()))
        }
        debuginfo::Location::Pieces(pieces) => {
            let part = |piece: &debuginfo::Piece| {
                let location = piece.location.as_ref().and_then(|location| locate(location, object).ok());
                let location = location.and_then(|location| beyond(&location, piece.first_bit));
                Part { location, bits: piece.bits }
            };
            Ok(Location::Parts(pieces.iter().map(part).collect()))
        }
        debuginfo::Location::Pointer { to, offset } => {
            let inside = u64::try_from(*offset)
                .ok()
                .and_then(|offset| beyond(&locate(to, object).ok()?, offset.checked_mul(8)?));
            let nowhere = "it is a pointer to something that the compiler has optimised out";
            inside.map(|to| Location::Pointer(Box::new(to))).ok_or_else(|| nowhere.to_string())
        }
        debuginfo::Location::ByCaller { return_address, cases } => by_caller(return_address, cases, object),
    }
}

/// Where a variable of a program or library is in the current process, whatever it was that hit the probe. `program`: the object's.
pub fn locate_in_process(
    location: &debuginfo::Location,
    object: &Object,
    program: ProgramId,
) -> Result<Location, String> {
    const NOWHERE: &str = "only probes in a program know where it is";
    let moved = builtin::internal("__loaded_address").ok_or(NOWHERE)?;
    let base = object.mapped().base_address().ok_or(NOWHERE)?;
    let loaded = |address: Address| {
        let arguments = [program.0.into(), base as i64, address.offset as i64];
        Some(expr(LongKind::Builtin(moved, arguments.map(|value| long(value).into()).to_vec())))
    };
    match location {
        debuginfo::Location::Memory(ops) => {
            Ok(Location::Memory { address: evaluate_in(ops, object, &loaded)?, bits: None })
        }
        debuginfo::Location::Value(ops) => Ok(Location::Value(evaluate_in(ops, object, &loaded)?)),
        _ => Err(NOWHERE.into()),
    }
}

/// The low eight bytes of a vector register of a program, by DWARF's number.
pub(super) fn vector_register(register: u16) -> Option<LongExpr> {
    let number = register.checked_sub(registers::FIRST_VECTOR).filter(|number| *number < registers::VECTORS)?;
    let read = builtin::internal("__vector_register")?;
    Some(expr(LongKind::Builtin(read, vec![long(number.into()).into()])))
}

/// The same as a location.
pub(super) fn vector(register: u16) -> Option<Location> {
    vector_register(register).map(Location::Value)
}

/// The return address at that place of the stack; of a program the one that was there before a probe of the return replaced it.
fn return_address_in(at: LongExpr, object: &Object) -> LongExpr {
    let word = read(at.clone(), object.word(), object);
    match builtin::internal("__original_return").filter(|_| object.is_program()) {
        Some(original) => expr(LongKind::Builtin(original, vec![at.into(), word.into()])),
        None => word,
    }
}

/// The location for the caller that the return address shows; a run-time error for an unknown caller.
fn by_caller(
    return_address: &[Op],
    cases: &[(Vec<Address>, debuginfo::Location)],
    object: &Object,
) -> Result<Location, String> {
    let at = evaluate(return_address, object)?;
    let word = return_address_in(at, object);
    let in_memory = cases.iter().all(|(_, location)| matches!(location, debuginfo::Location::Memory(_)));
    let unknown =
        builtin::internal("__value_unknown_at_caller").ok_or("its value is only known at the function's entry")?;
    let mut value = expr(LongKind::Builtin(unknown, Vec::new()));
    let mut known: Option<LongExpr> = None;
    for (places, location) in cases.iter().rev() {
        let (debuginfo::Location::Memory(ops) | debuginfo::Location::Value(ops)) = location else { continue };
        let places = places.iter().filter_map(|place| code(*place, object)).collect();
        let (Some(here), Ok(there)) = (one_of(&word, places), evaluate(ops, object)) else { continue };
        value = expr(LongKind::Conditional(Box::new(here.clone()), Box::new(there), Box::new(value)));
        known = Some(match known {
            Some(others) => binary(BinaryOp::Or, here, others),
            None => here,
        });
    }
    let known = known.ok_or("its value is only known at the function's entry")?;
    let location = match in_memory {
        true => Location::Memory { address: value, bits: None },
        false => Location::Value(value),
    };
    Ok(Location::KnownCallers { known, location: Box::new(location) })
}

/// DWARF's number of the stack pointer.
const STACK_POINTER: u16 = 7;

/// A location at a function's first instruction, as seen at the call instruction before it runs: the return address, of `word`
/// bytes, is not on the stack yet.
pub(super) fn before_call(location: &debuginfo::Location, word: u8) -> debuginfo::Location {
    let moved = |ops: &[Op]| -> Vec<Op> {
        let each = |op: &Op| match op {
            Op::Register(STACK_POINTER) => vec![*op, Op::Const(word.into()), Op::Sub],
            _ => vec![*op],
        };
        ops.iter().flat_map(each).collect()
    };
    match location {
        debuginfo::Location::Memory(ops) => debuginfo::Location::Memory(moved(ops)),
        debuginfo::Location::Value(ops) => debuginfo::Location::Value(moved(ops)),
        other => other.clone(),
    }
}

/// Functions whose addresses the kernel writes over a return address to hook the return, by all names that they have had
/// (arch/x86/kernel/kprobes/core.c, rethook.c, ftrace_64.S).
const TRAMPOLINES: [&str; 4] =
    ["kretprobe_trampoline", "__kretprobe_trampoline", "arch_rethook_trampoline", "return_to_handler"];

/// Whether each of the stack's frames, innermost first, returns to one of its given places. `at`: the address of the
/// innermost return address; the others are found by the kernel's unwinder, as is one that the kernel has hooked, and those of a program
/// by the tables that it has for that. None: a place cannot be expressed at run time.
pub(super) fn called_from(at: &[Op], frames: &[std::rc::Rc<Vec<Address>>], object: &Object) -> Option<LongExpr> {
    let address = evaluate(at, object).ok()?;
    let word = return_address_in(address, object);
    let unwind = builtin::find(if object.is_program() { "__user_stack_at" } else { "__stack_at" }, 1)?;
    let mut whole: Option<LongExpr> = None;
    for (frame, places) in (1i64..).zip(frames) {
        let places: Option<Vec<LongExpr>> = places.iter().map(|place| code(*place, object)).collect();
        let unwound = expr(LongKind::Builtin(unwind, vec![long(frame).into()]));
        let fits = match frame {
            1 if object.is_program() => one_of(&word, places?)?,
            1 => {
                let mut hooked = one_of(&unwound, places.clone()?)?;
                let hooks = TRAMPOLINES.iter().filter_map(|name| object.symbol_address(name));
                let hooks = hooks.map(|address| expr(LongKind::KernelAddress { address, per_cpu: false }));
                if let Some(hook) = object.is_kernel().then(|| one_of(&word, hooks.collect())).flatten() {
                    hooked = binary(BinaryOp::And, hook, hooked);
                }
                binary(BinaryOp::Or, one_of(&word, places?)?, hooked)
            }
            _ => one_of(&unwound, places?)?,
        };
        whole = Some(match whole {
            Some(before) => binary(BinaryOp::And, before, fits),
            None => fits,
        });
    }
    whole
}

fn binary(op: BinaryOp, left: LongExpr, right: LongExpr) -> LongExpr {
    LongExpr::binary(op, left, right, Span::none())
}

fn one_of(value: &LongExpr, candidates: Vec<LongExpr>) -> Option<LongExpr> {
    let equal =
        candidates.into_iter().map(|candidate| binary(BinaryOp::Compare(Comparison::Equal), value.clone(), candidate));
    equal.reduce(|left, right| binary(BinaryOp::Or, left, right))
}

/// An address of code, relocated at run time.
fn code(address: Address, object: &Object) -> Option<LongExpr> {
    if object.is_kernel() {
        return Some(expr(LongKind::KernelAddress { address: address.offset, per_cpu: false }));
    }
    if object.is_program() {
        return program_address(address);
    }
    let anchor = object.anchor(address)?;
    let module = object.name().to_string();
    Some(expr(LongKind::ModuleAddress { module, symbol: anchor.symbol, offset: anchor.offset, per_cpu: false }))
}

/// Where a link-time address of the probed program is in the process that runs it.
pub(super) fn program_address(address: Address) -> Option<LongExpr> {
    let moved = builtin::internal("__program_address")?;
    Some(expr(LongKind::Builtin(moved, vec![long(address.offset as i64).into()])))
}

/// A read of the kernel's memory or, for an object of user space, of the process's.
fn read(address: LongExpr, size: u8, object: &Object) -> LongExpr {
    expr(LongKind::Read { address: Box::new(address), size, user: object.is_program() })
}

/// Of one location as an expression. A value that is taken twice is there twice, so that thirty operations can make a billion
/// nodes; later passes go down an expression by recursion.
const LIMITS: Limits = Limits { depth: 256, work: 1 << 14, ..USUAL };

/// Evaluates the operations symbolically, on a stack of expressions.
fn evaluate(ops: &[Op], object: &Object) -> Result<LongExpr, String> {
    evaluate_in(ops, object, &program_address)
}

/// Where a link-time address of a program is at run time.
type Loaded<'l> = &'l dyn Fn(Address) -> Option<LongExpr>;

fn evaluate_in(ops: &[Op], object: &Object, loaded: Loaded) -> Result<LongExpr, String> {
    let mut stack = Stack { entries: Vec::new(), budget: Budget::new("its location as an expression", LIMITS) };
    let run = ops.iter().try_for_each(|op| step(op, &mut stack, object, loaded));
    run.map_err(|why| format!("{why} (debug information of {})", object.debug_path().display()))?;
    stack.entries.pop().map(|entry| entry.expr).ok_or_else(|| "its location has no value".to_string())
}

/// An expression with its size: nodes and depth.
#[derive(Clone)]
struct SizedExpr {
    expr: LongExpr,
    nodes: usize,
    levels: usize,
}

struct Stack {
    entries: Vec<SizedExpr>,
    budget: Budget,
}

impl Stack {
    fn pop(&mut self) -> Result<SizedExpr, String> {
        self.entries.pop().ok_or_else(underflow)
    }

    /// Copies the entry at that depth.
    fn copy(&mut self, below: usize) -> Result<(), String> {
        let at = self.entries.len().checked_sub(1 + below);
        let entry = at.and_then(|at| self.entries.get(at)).ok_or_else(underflow)?;
        self.budget.work(entry.nodes).map_err(|error| error.to_string())?;
        self.entries.push(entry.clone());
        Ok(())
    }

    /// A new node over those that have been popped.
    fn push(&mut self, kind: LongKind, over: [(usize, usize); 2]) -> Result<(), String> {
        let [(first, deep), (second, deeper)] = over;
        let (nodes, levels) = (1 + first + second, 1 + deep.max(deeper));
        self.budget.work(1).and_then(|()| self.budget.reaches(levels)).map_err(|error| error.to_string())?;
        self.entries.push(SizedExpr { expr: expr(kind), nodes, levels });
        Ok(())
    }

    /// Pops one, and pushes the result.
    fn unary(&mut self, make: impl FnOnce(Box<LongExpr>) -> LongKind) -> Result<(), String> {
        let SizedExpr { expr, nodes, levels } = self.pop()?;
        self.push(make(Box::new(expr)), [(nodes, levels), (0, 0)])
    }
}

fn underflow() -> String {
    "its location uses more values than there are".to_string()
}

fn step(op: &Op, stack: &mut Stack, object: &Object, loaded: Loaded) -> Result<(), String> {
    let leaf = match op {
        Op::Const(value) => LongKind::Const(*value),
        Op::Register(number) => match registers::pt_regs_offset(*number) {
            Some(offset) => LongKind::Register { offset },
            None => {
                return Err(format!("its address is in {}, which a probe does not see", registers::unseen(*number)));
            }
        },
        Op::Address(address) if object.is_kernel() => {
            LongKind::KernelAddress { address: address.offset, per_cpu: object.is_per_cpu(*address) }
        }
        Op::Address(address) if object.is_program() => {
            loaded(*address).ok_or("the load address of the program is not known there")?.kind
        }
        Op::Address(address) => match object.data_anchor(*address) {
            Some(anchor) => LongKind::ModuleAddress {
                module: object.name().to_string(),
                symbol: anchor.symbol,
                offset: anchor.offset,
                per_cpu: object.is_per_cpu(*address),
            },
            None => {
                return Err(
                    "it is a variable of a module without a symbol near it, or one of its initialisation".into()
                );
            }
        },
        Op::Deref(size) => {
            let user = object.is_program();
            return stack.unary(|address| LongKind::Read { address, size: *size, user });
        }
        Op::InThread => return in_thread(stack, object, loaded),
        Op::Neg => return stack.unary(LongKind::Negate),
        Op::Not => return stack.unary(LongKind::Complement),
        Op::Dup => return stack.copy(0),
        Op::Over => return stack.copy(1),
        Op::Pick(depth) => return stack.copy(usize::from(*depth)),
        Op::Drop => return stack.pop().map(drop),
        Op::Swap => {
            let (top, below) = (stack.pop()?, stack.pop()?);
            stack.entries.extend([top, below]);
            return Ok(());
        }
        Op::Rot => {
            let (top, second, third) = (stack.pop()?, stack.pop()?, stack.pop()?);
            stack.entries.extend([top, third, second]);
            return Ok(());
        }
        _ => {
            let (right, left) = (stack.pop()?, stack.pop()?);
            let op = operator(op).ok_or("its location has an operation that is not known")?;
            let over = [(left.nodes, left.levels), (right.nodes, right.levels)];
            return stack.push(LongKind::Binary(op, Box::new(left.expr), Box::new(right.expr)), over);
        }
    };
    stack.push(leaf, [(0, 0); 2])
}

/// The top, an offset in the program's block of variables of each thread, becomes the address of the current one's.
fn in_thread(stack: &mut Stack, object: &Object, loaded: Loaded) -> Result<(), String> {
    const NOWHERE: &str = "it is a variable of each thread, and nothing tells where a thread has it";
    let bytes = object.word();
    let block = object.thread_block().filter(|_| object.is_program()).ok_or(NOWHERE)?;
    let pointer = builtin::internal("__thread_pointer").ok_or(NOWHERE)?;
    let pointer = || expr(LongKind::Builtin(pointer, Vec::new()));
    let word = |at| loaded(at).map(|at| read(at, bytes, object)).ok_or(NOWHERE);
    let start = match block {
        ThreadBlock::Below(size) => binary(BinaryOp::Subtract, pointer(), long(size as i64)),
        ThreadBlock::Linked { word: at, variable } => {
            let there = binary(BinaryOp::Add, pointer(), word(at)?);
            binary(BinaryOp::Subtract, there, long(variable as i64))
        }
        ThreadBlock::Numbered { word: at, entry } => block_of(pointer(), word(at)?, entry, object),
        ThreadBlock::Described { word: at, variable, entry } => {
            let linked = binary(BinaryOp::Add, pointer(), word(at)?);
            let linked = binary(BinaryOp::Subtract, linked, long(variable as i64));
            let numbered = block_of(pointer(), read(word(at)?, bytes, object), entry, object);
            let is_linked = if bytes == 8 {
                binary(BinaryOp::Compare(Comparison::Less), word(at)?, long(0))
            } else {
                let last = i64::from(u32::MAX) - FARTHEST as i64;
                binary(BinaryOp::Compare(Comparison::Less), long(last), word(at)?)
            };
            expr(LongKind::Conditional(Box::new(is_linked), Box::new(linked), Box::new(numbered)))
        }
    };
    // Distances are negative: sums of words of four bytes are too large by as much as these can hold.
    let start = if bytes == 8 { start } else { binary(BinaryOp::BitAnd, start, long(u32::MAX.into())) };
    let SizedExpr { expr: offset, nodes, levels } = stack.pop()?;
    stack.push(LongKind::Binary(BinaryOp::Add, Box::new(start), Box::new(offset)), [(nodes, levels), (40, 10)])
}

/// Where a thread has the block of the object of that number; 0, where nothing can be read, if its vector has no entry for it yet.
/// `words`: of an entry of the vector.
fn block_of(pointer: LongExpr, number: LongExpr, words: u8, object: &Object) -> LongExpr {
    let bytes = object.word();
    let vector = || read(binary(BinaryOp::Add, pointer.clone(), long(bytes.into())), bytes, object);
    let size = i64::from(bytes) * i64::from(words);
    let entry = binary(BinaryOp::Multiply, number.clone(), long(size));
    let block = read(binary(BinaryOp::Add, vector(), entry), bytes, object);
    // The number of entries is in the first word, of glibc's in the entry before the first.
    let before = if words == 1 { 0 } else { size };
    let entries = read(binary(BinaryOp::Subtract, vector(), long(before)), bytes, object);
    let has_it = binary(BinaryOp::Compare(Comparison::LessEqual), number, entries);
    expr(LongKind::Conditional(Box::new(has_it), Box::new(block), Box::new(long(0))))
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
        Op::Eq => BinaryOp::Compare(Comparison::Equal),
        Op::Ne => BinaryOp::Compare(Comparison::NotEqual),
        Op::Lt => BinaryOp::Compare(Comparison::Less),
        Op::Gt => BinaryOp::Compare(Comparison::Greater),
        Op::Le => BinaryOp::Compare(Comparison::LessEqual),
        Op::Ge => BinaryOp::Compare(Comparison::GreaterEqual),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_a_value_in_words() {
        let lines = vec![
            (379, true),
            (451, false),
            (455, true),
            (457, true),
            (460, true),
            (462, false),
            (470, true),
            (512, true),
        ];
        let text = |line| other_lines(&debuginfo::OtherLines { line, lines: lines.clone() }, 450..500);
        assert_eq!(text(Some(451)), "line 451; available at lines 455-460, 470");
        assert_eq!(text(None), "this place; available at lines 455-460, 470");
        assert_eq!(text(Some(379)), "this place; available at lines 455-460, 470");
        let none = debuginfo::OtherLines { line: Some(451), lines: vec![(451, false)] };
        assert_eq!(other_lines(&none, 450..500), "line 451; no line has it at its beginning");
    }
}
