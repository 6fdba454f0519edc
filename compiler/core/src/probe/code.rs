// SPDX-License-Identifier: GPL-2.0-or-later

//! Attachments to code, which several families share: kprobes and kretprobes, at a place or by a symbol; uprobes in programs.

use std::rc::Rc;

use super::{Point, PointError, Resolver};
use crate::program::{Attachment, Label, Mechanism, Place, ProgramId, Registers, TargetId, Value};
use spile_debuginfo::target::Object;
use spile_debuginfo::{Address, Reason, reads_callers};
use spile_syntax::ast::Literal;

/// How probes are attached to the code of one object.
#[derive(Clone, Copy)]
pub(super) enum Code {
    Kernel(TargetId),
    Program(ProgramId, Scope),
}

/// Which processes a probe in a program is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Those that map its file: of a session with a process of its own, that one and those that descend from it.
    Session,
    /// The same, of a point that names no file: there must be such a process.
    Target,
    /// The one with this number.
    Process(i64),
}

impl Scope {
    /// As the point's first component says.
    pub fn of(point: &Point) -> Scope {
        match point.component("process").map(|component| &component.argument) {
            Some(None) => Scope::Target,
            Some(Some(Literal::Number(pid))) => Scope::Process(*pid),
            _ => Scope::Session,
        }
    }

    /// As in `struct spile_uprobe`: a process, or 0 for those of the session.
    pub fn number(self) -> i64 {
        match self {
            Scope::Session | Scope::Target => 0,
            Scope::Process(pid) => pid,
        }
    }

    /// Whether the session's processes are asked for, and not one by its number.
    pub fn is_of_session(self) -> bool {
        matches!(self, Scope::Session | Scope::Target)
    }
}

impl Code {
    /// For a point whose code is in the object.
    pub fn of(point: &Point, object: &Rc<Object>, resolver: &mut Resolver) -> Result<Code, PointError> {
        match object.is_program() {
            true => {
                let scope = Scope::of(point);
                if scope.is_of_session() {
                    resolver.follows();
                }
                Ok(Code::Program(resolver.program(object), scope))
            }
            false => Ok(Code::Kernel(resolver.target(object)?)),
        }
    }

    /// At an instruction; or why no probe can be there.
    pub fn at(self, object: &Object, address: Address) -> Result<Attachment, &'static str> {
        match self {
            Code::Kernel(target) => {
                const PREFIXED: &str = "the instruction there is a call with a prefix, after which the kernel would go on in its middle: a breakpoint there crashes it";
                if object.is_prefixed_call(address) == Some(true) {
                    return Err(PREFIXED);
                }
                let attachment = kprobe(place_in(object, target, address)?);
                Ok(match object.is_entered_under_jump(address) {
                    Some(false) => attachment,
                    // Also if the code is not available.
                    Some(true) | None => attachment.with("stays_breakpoint", Value::Number(1)),
                })
            }
            Code::Program(program, scope) => in_program(&UPROBE, object, program, scope, address, 0),
        }
    }

    /// At the return of the function that begins there; or why it cannot be probed. `maxactive`: see [`kretprobe`].
    pub fn at_return(self, object: &Object, address: Address, maxactive: u32) -> Result<Attachment, &'static str> {
        match self {
            Code::Kernel(target) => Ok(kretprobe(place_in(object, target, address)?, maxactive)),
            Code::Program(program, scope) => in_program(&URETPROBE, object, program, scope, address, 0),
        }
    }

    /// [`Code::at_return`] if `returning`, else [`Code::at`].
    pub fn attach(self, object: &Object, address: Address, returning: bool) -> Result<Attachment, &'static str> {
        if returning { self.at_return(object, address, 0) } else { self.at(object, address) }
    }

    /// At a statement. An exported index has no addresses of them: of the kernel's its probes are refused together, when the
    /// script is compiled (`fingerprint.rs`).
    pub fn at_statement(self, object: &Object, address: Address) -> Result<Attachment, &'static str> {
        if object.is_program() && !object.has_place(address) {
            return Err(
                "the index does not have the addresses of lines: compile it where the program's debug information is",
            );
        }
        self.at(object, address)
    }

    /// At the place of a marker whose semaphore, a word that says how many look, is at a link-time address.
    pub fn at_marker(
        self,
        object: &Object,
        address: Address,
        semaphore: Option<Address>,
    ) -> Result<Attachment, &'static str> {
        let Code::Program(program, scope) = self else { return Err("only programs have markers") };
        let counted = match semaphore {
            Some(at) => object.file_offset(at).ok_or("its semaphore is not in the file")?,
            None => 0,
        };
        in_program(&UPROBE, object, program, scope, address, counted)
    }
}

static UPROBE: Mechanism =
    Mechanism { registers: Registers::Code, pages_in: true, ..Mechanism::new("SPILE_PROBE_UPROBE", Label::Function) };

static URETPROBE: Mechanism = Mechanism {
    registers: Registers::Return,
    pages_in: true,
    ..Mechanism::new("SPILE_PROBE_URETPROBE", Label::Function)
};

/// `counted`: where in the file the word is that the kernel increments while a probe is there, or 0.
fn in_program(
    mechanism: &'static Mechanism,
    object: &Object,
    program: ProgramId,
    scope: Scope,
    address: Address,
    counted: u64,
) -> Result<Attachment, &'static str> {
    const MOVED: &str = "it is of a program in Go, which moves its stacks and is killed by the address that a return probe puts there: probe entries, or the lines where it returns";
    if std::ptr::eq(mechanism, &URETPROBE) && object.is_go() {
        return Err(MOVED);
    }
    const READER: &str = "it finds its caller by its return address, and an exception would end the program with another one there: probe its entry";
    if std::ptr::eq(mechanism, &URETPROBE) && object.functions_at(address).iter().any(|name| reads_callers(name)) {
        return Err(READER);
    }
    const UNSTEPPABLE: &str = "the kernel refuses a probe at the instruction there, of which it cannot execute a copy: many vector instructions, those with a lock or segment prefix, breakpoints, and instructions of the kernel";
    let offset = object.file_offset(address).ok_or("its code is not in the file")?;
    if object.is_unsteppable(address) {
        return Err(UNSTEPPABLE);
    }
    Ok(Attachment::new(mechanism)
        .with("uprobe.program", Value::Number(program.0))
        .with("uprobe.offset", Value::Unsigned(offset))
        .with("uprobe.address", Value::Unsigned(address.offset))
        .with("uprobe.counted", Value::Unsigned(counted))
        .with("uprobe.pid", Value::Signed(scope.number()))
        .with("uprobe.at_entry", (!object.functions_at(address).is_empty()).into()))
}

static KPROBE: Mechanism =
    Mechanism { registers: Registers::Code, ..Mechanism::new("SPILE_PROBE_KPROBE", Label::Function) };

static KRETPROBE: Mechanism =
    Mechanism { registers: Registers::Return, ..Mechanism::new("SPILE_PROBE_KRETPROBE", Label::Function) };

/// At an instruction.
pub(super) fn kprobe(place: Place) -> Attachment {
    Attachment::new(&KPROBE).at(place)
}

/// At the return of the function that begins there. `maxactive`: concurrent calls, 0 for the runtime's default.
pub(super) fn kretprobe(place: Place, maxactive: u32) -> Attachment {
    Attachment::new(&KRETPROBE).at(place).with("maxactive", Value::Number(maxactive))
}

/// The same by a symbol of the running kernel, `NAME` or `MODULE:NAME`, whose code may be another than the one that was
/// compiled for: see [`at_address`].
pub(super) fn at_symbol(symbol: String, returning: bool, maxactive: u32) -> Attachment {
    let attachment = Attachment::new(if returning { &KRETPROBE } else { &KPROBE }).with("symbol", Value::Text(symbol));
    let attachment = attachment.with("address", Value::Address(0));
    // The two share a place.
    match returning {
        true => attachment.with("maxactive", Value::Number(maxactive)),
        false => attachment.with("stays_breakpoint", Value::Number(1)),
    }
}

/// At an address of the running kernel. It is not known whether code jumps into the bytes that a jump there would
/// replace.
pub(super) fn at_address(address: u64) -> Attachment {
    Attachment::new(&KPROBE).with("address", Value::Address(address)).with("stays_breakpoint", Value::Number(1))
}

const NOWHERE: &str = "it is in code that is discarded after initialisation, or has no symbol near it";

/// Whether the kernel frees the code there after boot.
fn is_freed(object: &Object, address: Address) -> bool {
    object.section_name(address).is_some_and(|name| name.starts_with(".init") || name.starts_with(".exit"))
}

/// Why no probe may be at a symbol of the kernel or a module; None if one may.
pub(super) fn refusal_of_symbol(object: &Object, address: Address) -> Option<&'static str> {
    if object.is_kernel() && is_freed(object, address) { Some(NOWHERE) } else { refusal(object, address) }
}

/// How the running kernel finds an address; or why no probe is possible there: in a module's code without a symbol near it,
/// in kernel code that is freed after boot (vmlinux.lds.h, INIT_TEXT and EXIT_TEXT), in code that kprobes themselves use,
/// and at an instruction that the kernel rewrites.
fn place_in(object: &Object, target: TargetId, address: Address) -> Result<Place, &'static str> {
    let symbol = if object.is_kernel() {
        if is_freed(object, address) { Err(NOWHERE) } else { Ok((None, address.offset)) }
    } else {
        object.anchor(address).map(|anchor| (Some(anchor.symbol), anchor.offset)).ok_or(NOWHERE)
    };
    let (symbol, offset) = symbol?;
    match refusal(object, address) {
        None => Ok(Place { target, symbol, address: offset }),
        Some(why) => Err(why),
    }
}

/// Why no probe may be at an address of the kernel's code or a module's; None if one may.
pub(super) fn refusal(object: &Object, address: Address) -> Option<&'static str> {
    object.reserved(address).map(why)
}

/// The reason as text.
pub(super) fn why(reason: Reason) -> &'static str {
    match reason {
        Reason::Blacklisted => {
            "kprobes themselves run through it, or the kernel copies it: it is in the kernel's blacklist (NOKPROBE_SYMBOL, noinstr, entry code), or ought to be"
        }
        Reason::JumpLabel => "the kernel rewrites the instruction there as it runs (a jump label)",
        Reason::StaticCall => "the kernel rewrites the instruction there as it runs (a static call)",
        Reason::Bug => "the instruction there belongs to a BUG() or WARN(), which the kernel finds by its address",
    }
}
