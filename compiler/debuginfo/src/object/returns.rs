// SPDX-License-Identifier: GPL-2.0-or-later

//! Whether the code of a function of a program returns as others do, so that its return address may be replaced while it runs: code
//! that is written by hand may keep it (`setjmp()`), take it from the stack (`vfork()`), or be entered without one (what a signal
//! handler returns to, the first instruction of a program).

use std::collections::HashSet;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

use super::elf::{Address, Elf};

/// Bytes of a function that are looked at.
const MOST: usize = 1 << 20;

/// Functions that a function goes on in, one behind the other.
const MOST_JUMPS: usize = 8;

/// What a function does with its return address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returning {
    /// Nothing but return to it.
    Usual,
    /// It uses it otherwise.
    Uses,
    /// No instruction of it returns, but it jumps to where a register or memory says, or to another function, as a compiler does for a
    /// call in the last place.
    Jumps,
    /// No instruction of it returns, or its code is not known.
    Unknown,
}

impl Elf {
    /// What the function of a program that begins there does with its return address. `code`: the file that has its code.
    pub fn returning(&self, code: &Elf, function: Address) -> Returning {
        match self.size_of_function(function) {
            Some(size) => self.returning_from(code, function, size, &mut HashSet::new()),
            None => Returning::Unknown,
        }
    }

    /// `seen`: functions that have been looked at.
    fn returning_from(&self, code: &Elf, function: Address, size: u64, seen: &mut HashSet<u64>) -> Returning {
        if !seen.insert(function.offset) || seen.len() > MOST_JUMPS {
            return Returning::Unknown;
        }
        let Some((bytes, bits)) = bytes_of_function(code, function, size) else { return Returning::Unknown };
        let seen_here = look(bytes, function.offset, bits);
        if seen_here.uses {
            return Returning::Uses;
        }
        let (mut returns, mut jumps) = (seen_here.returns, seen_here.jumps);
        for to in seen_here.leaves_for {
            let Some(to) = self.address(to) else { continue };
            // A static function of a stripped library has no symbol.
            let size = self.size_of_function(to).unwrap_or_else(|| self.size_to_next(to));
            match self.returning_from(code, to, size, seen) {
                Returning::Uses => return Returning::Uses,
                Returning::Usual => returns = true,
                Returning::Jumps => jumps = true,
                Returning::Unknown => {}
            }
        }
        match (returns, jumps) {
            (true, _) => Returning::Usual,
            (false, true) => Returning::Jumps,
            (false, false) => Returning::Unknown,
        }
    }

    /// Bytes of the function that begins there, by its symbol.
    fn size_of_function(&self, function: Address) -> Option<u64> {
        let here = self.symbols_before(function.offset).ok()?.take_while(|symbol| symbol.at == function.offset);
        here.filter(|symbol| symbol.function).map(|symbol| symbol.size).max().filter(|size| *size > 0)
    }

    /// Bytes up to the next symbol.
    fn size_to_next(&self, from: Address) -> u64 {
        let next = self.symbol_behind(from.offset).unwrap_or(u64::MAX);
        next.saturating_sub(from.offset)
    }
}

/// The bytes of the code there, and of how many bits it is.
fn bytes_of_function(code: &Elf, function: Address, size: u64) -> Option<(&[u8], u32)> {
    let has = |start: &u64, bytes: &[u8]| {
        function.offset.checked_sub(*start).is_some_and(|inside| inside < bytes.len() as u64)
    };
    let (start, bytes) = code.code_of_any_program().into_iter().find(|(start, bytes)| has(start, bytes))?;
    let rest = bytes.get(usize::try_from(function.offset - start).ok()?..)?;
    let length = usize::try_from(size).unwrap_or(MOST).min(MOST);
    Some((rest.get(..length).unwrap_or(rest), if code.is_narrow() { 32 } else { 64 }))
}

/// What is seen in the instructions of one function.
#[derive(Default)]
struct Seen {
    uses: bool,
    returns: bool,
    jumps: bool,
    /// Where it jumps to from its end, with its return address at the top of the stack.
    leaves_for: Vec<u64>,
}

fn look(bytes: &[u8], start: u64, bits: u32) -> Seen {
    let inside = start..start.saturating_add(bytes.len() as u64);
    let mut seen = Seen::default();
    // How far above the stack pointer the return address is, while that is known: up to where the code ends for the first time.
    let mut above: Option<i64> = Some(0);
    // Registers that have a copy of the stack pointer, and how far above that the return address is.
    let mut copies: Vec<(Register, i64)> = Vec::new();
    let mut goes_on = false;
    for instruction in &mut Decoder::with_ip(bits, bytes, start, DecoderOptions::NONE) {
        goes_on = matches!(instruction.flow_control(), FlowControl::Next | FlowControl::ConditionalBranch);
        if instruction.is_invalid() {
            above = None;
            continue;
        }
        match instruction.flow_control() {
            FlowControl::Return => {
                seen.returns |= instruction.mnemonic() == Mnemonic::Ret;
                above = None;
                continue;
            }
            FlowControl::UnconditionalBranch => {
                let is_near = matches!(
                    instruction.op0_kind(),
                    OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
                );
                let to = instruction.near_branch_target();
                let leaves = is_near && !inside.contains(&to);
                if leaves && above == Some(0) {
                    seen.leaves_for.push(to);
                }
                // Behind the first end of the code it is not known what is at the top of the stack.
                seen.jumps |= leaves && above.is_none();
                above = None;
                continue;
            }
            FlowControl::IndirectBranch => {
                seen.jumps |= above == Some(0);
                above = None;
            }
            FlowControl::Interrupt | FlowControl::Exception => above = None,
            _ => {}
        }
        if copies.iter().any(|(register, distance)| is_word_at(&instruction, *register, *distance)) {
            seen.uses = true;
            return seen;
        }
        let is_call = matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
        copies.retain(|(register, _)| (!is_call || is_kept(*register)) && !is_changed(&instruction, *register));
        if let Some(distance) = above {
            if uses_word(&instruction, distance) {
                seen.uses = true;
                return seen;
            }
            copies.extend(copy_of_stack_pointer(&instruction).map(|register| (register, distance)));
            above = moved(&instruction, distance);
        }
    }
    // It goes on in the function behind it; not behind a call or system call that does not return.
    if above == Some(0) && goes_on {
        seen.leaves_for.push(inside.end);
    }
    seen
}

/// Whether an instruction reads or writes the word so far above the stack pointer.
fn uses_word(instruction: &Instruction, above: i64) -> bool {
    if instruction.mnemonic() == Mnemonic::Pop && above <= 0 {
        return true;
    }
    is_word_at(instruction, Register::RSP, above)
}

/// Whether an instruction reads or writes the word so far above what a register of 64 bits, or its lower half in code of 32, has.
fn is_word_at(instruction: &Instruction, register: Register, above: i64) -> bool {
    let is_memory = (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
    let base = instruction.memory_base();
    let displacement = match base.size() {
        4 => i64::from(instruction.memory_displacement32() as i32),
        _ => instruction.memory_displacement64() as i64,
    };
    is_memory
        && base.full_register() == register
        && instruction.mnemonic() != Mnemonic::Lea
        && instruction.mnemonic() != Mnemonic::Nop
        && instruction.memory_index() == Register::None
        && displacement == above
}

/// The register into which the instruction copies the stack pointer. Not rbp: a compiler's code reads its return address by that
/// (`__builtin_return_address()`), and returns all the same.
fn copy_of_stack_pointer(instruction: &Instruction) -> Option<Register> {
    let is_copy = instruction.mnemonic() == Mnemonic::Mov
        && instruction.op0_kind() == OpKind::Register
        && instruction.op1_kind() == OpKind::Register
        && matches!(instruction.op1_register(), Register::RSP | Register::ESP);
    let to = is_copy.then(|| instruction.op0_register().full_register());
    to.filter(|register| !matches!(register, Register::RSP | Register::RBP))
}

/// Whether calls keep the register (System V ABI, Register Usage).
fn is_kept(register: Register) -> bool {
    const KEPT: [Register; 5] = [Register::RBX, Register::R12, Register::R13, Register::R14, Register::R15];
    KEPT.contains(&register)
}

/// Whether the instruction writes a register: its first operand is one that it does not only read.
fn is_changed(instruction: &Instruction, register: Register) -> bool {
    let is_written = !matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push);
    let first = instruction.op_count() > 0 && instruction.op0_kind() == OpKind::Register;
    is_written && first && instruction.op0_register().full_register() == register
}

/// How far above the stack pointer the return address is behind an instruction; None: that is not known.
fn moved(instruction: &Instruction, above: i64) -> Option<i64> {
    // What is pushed by a call is gone behind it.
    if matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall) {
        return Some(above);
    }
    let is_stack_pointer = |operand: u32| {
        instruction.op_kind(operand) == OpKind::Register
            && matches!(instruction.op_register(operand), Register::RSP | Register::ESP | Register::SP)
    };
    if instruction.is_stack_instruction() {
        let distance = above.checked_sub(instruction.stack_pointer_increment().into())?;
        return if instruction.mnemonic() == Mnemonic::Leave
            || instruction.op_count() > 0 && instruction.mnemonic() == Mnemonic::Pop && is_stack_pointer(0)
        {
            None
        } else {
            Some(distance)
        };
    }
    if instruction.op_count() == 0 || !is_stack_pointer(0) {
        return Some(above);
    }
    let is_number = instruction.op_count() == 2
        && matches!(
            instruction.op1_kind(),
            OpKind::Immediate8
                | OpKind::Immediate32
                | OpKind::Immediate8to32
                | OpKind::Immediate8to64
                | OpKind::Immediate32to64
        );
    match instruction.mnemonic() {
        Mnemonic::Sub if is_number => above.checked_add(instruction.immediate(1) as i64),
        Mnemonic::Add if is_number => above.checked_sub(instruction.immediate(1) as i64),
        Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push => Some(above),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const HAND_WRITTEN: &str = "
        .text
        .macro function name
        .globl \\name
        .type \\name, @function
        \\name:
        .endm
        .macro ends name
        .size \\name, . - \\name
        .endm
        function plain
        push %rbx
        sub $24, %rsp
        mov %rdi, (%rsp)
        mov (%rsp), %rax
        add $24, %rsp
        pop %rbx
        ret
        ends plain
        function tail
        inc %edi
        jmp plain
        ends tail
        function keeps
        mov %rbx, (%rdi)
        lea 8(%rsp), %rdx
        mov (%rsp), %rax
        mov %rax, 8(%rdi)
        xor %eax, %eax
        ret
        ends keeps
        function keeps_as_other
        xor %esi, %esi
        jmp keeps
        ends keeps_as_other
        function keeps_below
        push %rbp
        sub $16, %rsp
        mov 24(%rsp), %rax
        add $16, %rsp
        pop %rbp
        ret
        ends keeps_below
        function keeps_by_copy
        push %rbx
        mov %rsp, %rbx
        and $-64, %rsp
        sub $128, %rsp
        mov 16(%rbx), %rsi
        mov 8(%rbx), %rdi
        call plain
        mov %rax, %r11
        mov %rbx, %rsp
        mov (%rsp), %rbx
        add $24, %rsp
        jmp *%r11
        ends keeps_by_copy
        function framed
        push %rbp
        mov %rsp, %rbp
        mov 16(%rbp), %rax
        mov %rsp, %rdi
        call plain
        mov 8(%rdi), %rax
        leave
        ret
        ends framed
        function calls_last
        mov (%rdi), %rax
        jmp *%rax
        ends calls_last
        function goes_on
        cmp %rdx, %rcx
        jb plain
        ends goes_on
        function behind
        mov %rdi, %rax
        ret
        ends behind
        function leaves_stack
        mov (%rdi), %rsp
        jmp *%rdx
        ends leaves_stack
        function takes
        pop %rdi
        mov $58, %eax
        syscall
        push %rdi
        ret
        ends takes
        function restores
        mov $15, %eax
        syscall
        ends restores
        function open
        ret
        .section .note.GNU-stack, \"\", @progbits";

    #[test]
    fn what_functions_do_with_their_return_address() {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("f.s"), HAND_WRITTEN).expect("written");
        std::fs::write(
            directory.path().join("g.c"),
            "int sum(int *a, int n) { int s = 0, b[32]; for (int i = 0; i < n; i++) s += b[i & 31] = a[i]; return s + b[n & 31]; }
             void stops(void) { for (;;) asm volatile(\"\"); }
             void *where(void) { return __builtin_return_address(0); }",
        )
        .expect("written");
        let options = ["-O0", "-shared", "-nostdlib", "-Wl,-Bsymbolic", "-o", "f.so", "f.s", "g.c"];
        let gcc = Command::new("gcc").current_dir(directory.path()).args(options).status();
        assert!(gcc.expect("gcc runs").success());
        let elf = Elf::open_program(&directory.path().join("f.so")).expect("an object");
        let of = |name: &str| elf.returning(&elf, elf.symbol_address(name).expect("symbols").expect(name));
        for name in ["plain", "tail", "sum", "where", "framed", "goes_on"] {
            assert_eq!(of(name), Returning::Usual, "{name}");
        }
        for name in ["keeps", "keeps_as_other", "keeps_below", "keeps_by_copy", "takes"] {
            assert_eq!(of(name), Returning::Uses, "{name}");
        }
        assert_eq!(of("calls_last"), Returning::Jumps);
        for name in ["restores", "open", "stops", "leaves_stack"] {
            assert_eq!(of(name), Returning::Unknown, "{name}");
        }
    }

    /// In a library as Debian has it: names of which the code is known to be so.
    #[test]
    fn functions_of_the_c_library() {
        let libc = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6"];
        let Some(path) = libc.iter().map(std::path::Path::new).find(|path| path.exists()) else { return };
        let elf = Elf::open_program(path).expect("an object");
        let of = |name: &str| {
            let at = elf.symbol_address(name).expect("symbols");
            at.map_or(Returning::Uses, |at| elf.returning(&elf, at))
        };
        for name in ["setjmp", "_setjmp", "__sigsetjmp", "getcontext", "swapcontext", "vfork"] {
            assert_ne!(of(name), Returning::Usual, "{name}");
        }
        for name in ["malloc", "free", "getpid", "qsort", "fopen"] {
            assert_eq!(of(name), Returning::Usual, "{name}");
        }
    }
}
