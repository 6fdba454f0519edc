// SPDX-License-Identifier: GPL-2.0-or-later

//! Scripts for users who may only see their own processes (`--privilege=stapusr`): what they may probe and read, and the test
//! that limits each handler to processes of the session's owner.
//!
//! Everything that is not listed here is refused, so that a new probe family, builtin or expression is, until somebody has
//! thought about it. The resolved program is checked, in which nothing is hidden by aliases, macros or library functions.

use super::environment::Environment;
use super::error::StatementError;
use crate::builtin;
use crate::program::condition;
use crate::program::parts::{self, Visitor};
use crate::program::{
    Expr, FunctionBody, FunctionId, LongExpr, LongKind, LongPlace, Print, PrintPiece, Privilege, Probe, Program, Stmt,
    StmtKind, StringExpr, StringKind,
};
use spile_source::Span;

/// What a handler can see, least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sight {
    /// The session itself: it may run in any process.
    Session,
    /// The current process, which is the owner's.
    Process,
    /// And its registers of user space.
    Registers,
}

/// Whether scripts for users who may only see their own processes can call the builtin.
pub fn is_unprivileged(name: &str) -> bool {
    [OF_SESSION, OF_PROCESS, OF_REGISTERS].iter().any(|names| names.contains(&name))
}

/// Builtins that only compute, ask for the time, or say something of the session.
const OF_SESSION: &[&str] = &[
    "HZ",
    "abort",
    "big_endian2",
    "big_endian4",
    "big_endian8",
    "cpu",
    "cpu_clock_ms",
    "cpu_clock_ns",
    "cpu_clock_s",
    "cpu_clock_us",
    "ctime",
    "errno_str",
    "error",
    "exit",
    "fp32_to_fp64",
    "fp_add",
    "fp_div",
    "fp_eq",
    "fp_le",
    "fp_lt",
    "fp_mul",
    "fp_rem",
    "fp_sqrt",
    "fp_sub",
    "fp_to_long",
    "fp_to_string",
    "get_cycles",
    "gettimeofday_ms",
    "gettimeofday_ns",
    "gettimeofday_s",
    "gettimeofday_us",
    "is_return",
    "isdigit",
    "isinstr",
    "jiffies",
    "ktime_get_ns",
    "little_endian2",
    "little_endian4",
    "little_endian8",
    "local_clock_ms",
    "local_clock_ns",
    "local_clock_s",
    "local_clock_us",
    "log",
    "long_to_fp",
    "matched",
    "matched_str",
    "module_name",
    "module_size",
    "ngroups",
    "pn",
    "pp",
    "ppfunc",
    "probe_type",
    "probefunc",
    "probemod",
    "randint",
    "str_replace",
    "string_quoted",
    "string_to_fp",
    "stringat",
    "strlen",
    "strpos",
    "strtol",
    "substr",
    "syscall_name",
    "syscall_num",
    "system",
    "target",
    "text_str",
    "text_strn",
    "tokenize",
    "tz_gmtoff",
    "tz_name",
    "warn",
    "__maxstringlen",
    "__own_process",
    "__syscall_named",
];

/// Builtins that read the current process, or say something of it. Those of user space's memory accept no address of the
/// kernel (access_ok()).
const OF_PROCESS: &[&str] = &[
    "cmdline_args",
    "cmdline_str",
    "egid",
    "env_var",
    "euid",
    "execname",
    "fold_ustack",
    "gid",
    "ns_egid",
    "ns_euid",
    "ns_gid",
    "ns_uid",
    "pgrp",
    "pid",
    "ppid",
    "probing_32bit_app",
    "sid",
    "tid",
    "uaddr",
    "uid",
    "umodaddr",
    "umodbuildid",
    "umodname",
    "user_buffer_quoted",
    "user_buffer_quoted_error",
    "user_char",
    "user_char_error",
    "user_char_warn",
    "user_int",
    "user_int_error",
    "user_int_warn",
    "user_int64",
    "user_int64_error",
    "user_int64_warn",
    "user_long",
    "user_long_error",
    "user_long_warn",
    "user_short",
    "user_short_error",
    "user_short_warn",
    "user_string",
    "user_string_n",
    "user_string_n_quoted",
    "user_string_n_warn",
    "user_string_quoted",
    "user_uint",
    "user_uint8",
    "user_uint8_error",
    "user_uint8_warn",
    "user_uint_error",
    "user_uint_warn",
    "user_ulong",
    "user_ulong_error",
    "user_ulong_warn",
    "user_ushort",
    "user_ushort_error",
    "user_ushort_warn",
    "usymdata",
    "usymfile",
    "usymfileline",
    "usymline",
    "usymname",
    "__in_compat_task",
    "__loaded_address",
    "__original_return",
    "__print_user_addresses",
    "__print_user_stack",
    "__process_event",
    "__program_address",
    "__sprint_user_addresses",
    "__sprint_user_stack",
    "__syscall_narrow",
    "__syscall_number",
    "__thread_pointer",
    "__user_stack_addresses",
    "__user_stack_at",
    "__user_words",
    "__value_unknown_at_caller",
];

/// Those of [`IDENTITY`] of which 0 is somebody: root. They are -1 instead.
const USERS: &[&str] = &["egid", "euid", "gid", "ns_egid", "ns_euid", "ns_gid", "ns_uid", "uid"];

/// Those of [`OF_PROCESS`] that say who the current process is. Where it may be anybody's, they are called only if it is the owner's
/// ([`if_own`]), and are 0 or "" otherwise.
const IDENTITY: &[&str] = &[
    "egid", "euid", "execname", "gid", "ns_egid", "ns_euid", "ns_gid", "ns_uid", "pgrp", "pid", "ppid", "sid", "tid",
    "uid",
];

/// Builtins that read the registers of the hit: in a program's code those of user space, elsewhere the kernel's.
const OF_REGISTERS: &[&str] = &[
    "addr",
    "longlong_arg",
    "long_arg",
    "print_regs",
    "register",
    "registers_valid",
    "returnval",
    "u_register",
    "ulong_arg",
    "user_mode",
    "__vector_register",
];

/// Whether the current process is the session owner's (runtime-c/owner.c).
const OWN_PROCESS: &str = "__own_process";

/// The call of a builtin; of those that say who the current process is: only if that is the owner's.
pub(super) fn if_own(
    privilege: Privilege,
    builtin: &'static builtin::Builtin,
    arguments: Vec<Expr>,
    span: Span,
) -> Expr {
    let call = Expr::builtin(builtin, arguments, span);
    if privilege != Privilege::Usr || !IDENTITY.contains(&builtin.name) {
        return call;
    }
    let own = Box::new(LongExpr { kind: LongKind::Builtin(own_process(), Vec::new()), span });
    match call {
        Expr::Long(value) => {
            let nobody = if USERS.contains(&builtin.name) { -1 } else { 0 };
            let otherwise = Box::new(LongExpr::constant(nobody, span));
            LongExpr { kind: LongKind::Conditional(own, Box::new(value), otherwise), span }.into()
        }
        Expr::String(value) => {
            let otherwise = Box::new(StringExpr::literal(Vec::new(), span));
            StringExpr { kind: StringKind::Conditional(own, Box::new(value), otherwise), span }.into()
        }
    }
}

/// Whether a condition and the value behind it are those of [`if_own`].
fn is_limited(condition: &LongExpr, builtin: &builtin::Builtin) -> bool {
    matches!(&condition.kind, LongKind::Builtin(asked, _) if asked.name == OWN_PROCESS)
        && IDENTITY.contains(&builtin.name)
}

/// Refuses what the script must not do, and limits its handlers to processes of the session's owner.
pub(super) fn restrict(env: &mut Environment, program: &mut Program) {
    if env.options.privilege != Privilege::Usr {
        return;
    }
    let functions: Vec<Found> = program
        .functions
        .iter()
        .map(|function| match &function.body {
            FunctionBody::Script(statements) => Found::of(statements, &[]),
            FunctionBody::EmbeddedC(_) => Found { denied: vec![("embedded C", function.span)], ..Found::default() },
        })
        .collect();
    let mut problems: Vec<StatementError> = program
        .embedded
        .iter()
        .map(|code| StatementError::Unprivileged { what: "embedded C", span: code.span })
        .collect();
    for probe in &mut program.probes {
        let Some(sight) = sight(probe) else {
            problems.push(StatementError::UnprivilegedPoint { point: probe.point.clone(), span: probe.span });
            continue;
        };
        let own = Found::of(&probe.body, &probe.saved);
        for found in parts::reached(&own, &functions, |found| &found.calls) {
            problems.extend(found.denied.iter().map(|&(what, span)| StatementError::Unprivileged { what, span }));
            let too_far = found.needs.iter().filter(|(needed, ..)| *needed > sight);
            problems.extend(too_far.map(|&(needed, what, span)| StatementError::UnprivilegedHere {
                what,
                registers: needed == Sight::Registers,
                span,
            }));
        }
        if sight > Sight::Session {
            limit(probe);
        }
    }
    problems.into_iter().for_each(|problem| env.report(problem));
}

/// Whether scripts for such users can have points of that form.
pub fn is_unprivileged_point(spelling: &str) -> bool {
    let first = |text: &'static str| {
        spelling.strip_prefix(text).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '(']))
    };
    match () {
        () if first("timer.profile") => false,
        // Watchpoints.
        () if first("process") => !spelling.contains(".data("),
        () => ["begin", "end", "error", "never", "timer"].into_iter().any(first),
    }
}

/// What a handler at this point sees; None: the point is refused.
fn sight(probe: &Probe) -> Option<Sight> {
    let mut parts = probe.point.split(['.', '(']);
    match (parts.next()?, parts.next().unwrap_or_default()) {
        ("begin" | "end" | "error" | "never", _) => Some(Sight::Session),
        ("timer", "profile") => None,
        ("timer", _) => Some(Sight::Session),
        // They are in the debug registers of other processes as well.
        ("process", _) if probe.attachment.mechanism.kind == "SPILE_PROBE_USER_WATCH" => None,
        ("process", _) if matches!(probe.attachment.mechanism.kind, "SPILE_PROBE_UPROBE" | "SPILE_PROBE_URETPROBE") => {
            Some(Sight::Registers)
        }
        ("process", _) => Some(Sight::Process),
        _ => None,
    }
}

/// Puts the test of the process behind the point's own conditions, which read globals only, and before all else, also before the
/// values that are read at the entry of a function.
fn limit(probe: &mut Probe) {
    let span = probe.span;
    let own = || LongExpr { kind: LongKind::Builtin(own_process(), Vec::new()), span };
    let filter = Box::new(Stmt { kind: StmtKind::Filter, span });
    let condition = LongExpr::not(own(), span);
    let test = Stmt { kind: StmtKind::If { condition, then: filter, otherwise: None }, span };
    // In a block: it is not a condition that can be evaluated without a hit.
    probe.body.insert(condition::filters(&probe.body), Stmt { kind: StmtKind::Block(vec![test]), span });
    for saved in &mut probe.saved {
        let (condition, value) = (Box::new(own()), saved.clone());
        *saved = match value {
            Expr::Long(value) => {
                let otherwise = Box::new(LongExpr::constant(0, span));
                LongExpr { kind: LongKind::Conditional(condition, Box::new(value), otherwise), span }.into()
            }
            Expr::String(value) => {
                let otherwise = Box::new(StringExpr::literal(Vec::new(), span));
                StringExpr { kind: StringKind::Conditional(condition, Box::new(value), otherwise), span }.into()
            }
        };
    }
}

fn own_process() -> &'static builtin::Builtin {
    // SANITY: builtin/context.rs has it, which a unit test checks.
    builtin::find(OWN_PROCESS, 0).unwrap_or_else(|| unreachable!("{OWN_PROCESS}"))
}

/// What code does that is of interest here.
#[derive(Clone, Debug, Default)]
struct Found {
    /// What is always refused.
    denied: Vec<(&'static str, Span)>,
    /// What a handler must be able to see.
    needs: Vec<(Sight, &'static str, Span)>,
    calls: Vec<FunctionId>,
}

impl Found {
    fn of(statements: &[Stmt], values: &[Expr]) -> Found {
        let mut found = Found::default();
        statements.iter().for_each(|statement| found.statement(statement));
        values.iter().for_each(|value| found.part(value.into()));
        found
    }

    fn denied(&mut self, what: &'static str, span: Span) {
        self.denied.push((what, span));
    }

    fn builtin(&mut self, builtin: &'static builtin::Builtin, span: Span) {
        let name = &builtin.name;
        let kinds = [(OF_SESSION, None), (OF_PROCESS, Some(Sight::Process)), (OF_REGISTERS, Some(Sight::Registers))];
        match kinds.iter().find(|(names, _)| names.contains(name)) {
            Some((_, Some(sight))) => self.needs.push((*sight, name, span)),
            Some((_, None)) => {}
            // What scripts call it.
            None if matches!(*name, "__perf_counter" | "__program_counter") => self.denied("@perf", span),
            None => self.denied(name, span),
        }
    }

    fn print(&mut self, print: &Print, span: Span) {
        for piece in &print.pieces {
            if let PrintPiece::Directive { directive, .. } = piece
                && !b"diuoxXpscb".contains(&directive.conversion)
            {
                self.denied("printing memory", span);
            }
        }
    }

    fn memory(&mut self, user: bool, span: Span) {
        match user {
            true => self.needs.push((Sight::Process, "reading memory", span)),
            false => self.denied("reading the kernel's memory", span),
        }
    }
}

impl<'p> Visitor<'p> for Found {
    fn long(&mut self, expr: &'p LongExpr) {
        let span = expr.span;
        if let LongKind::Conditional(condition, then, otherwise) = &expr.kind
            && let LongKind::Builtin(builtin, _) = &then.kind
            && is_limited(condition, builtin)
        {
            return self.long(otherwise);
        }
        parts::of_long(expr, &mut |part| self.part(part));
        match &expr.kind {
            LongKind::Const(_)
            | LongKind::Variable(_)
            | LongKind::Saved(_)
            | LongKind::TookNext
            | LongKind::TakesNext
            | LongKind::Binary(..)
            | LongKind::Compare(..)
            | LongKind::Negate(_)
            | LongKind::Not(_)
            | LongKind::Complement(_)
            | LongKind::SignExtend(..)
            | LongKind::Bits { .. }
            | LongKind::Conditional(..)
            | LongKind::Matches { .. }
            | LongKind::Element(_)
            | LongKind::Extract { .. }
            | LongKind::Contains { .. }
            | LongKind::Feed { .. }
            | LongKind::Bucket { .. }
            | LongKind::HasBucket { .. } => {}
            LongKind::Call(function, _) => self.calls.push(*function),
            LongKind::Builtin(builtin, _) => self.builtin(builtin, span),
            LongKind::Assign(left, _) | LongKind::Update { left, .. } => match &**left {
                LongPlace::Variable(_) | LongPlace::Element(_) => {}
                LongPlace::Memory { .. } => self.denied("writing memory", span),
                LongPlace::Register { .. } => self.denied("writing a register", span),
            },
            LongKind::Print(print) => self.print(print, span),
            // Of a hit in a program, or, elsewhere, the arguments of a system call and what the family's own guard asks for.
            LongKind::Register { .. } => self.needs.push((Sight::Process, "a register", span)),
            LongKind::KernelAddress { .. } | LongKind::ModuleAddress { .. } => {
                self.denied("an address in the kernel", span);
            }
            LongKind::Read { user, .. } => self.memory(*user, span),
            LongKind::EmbeddedC(_) => self.denied("embedded C", span),
        }
    }

    fn string(&mut self, expr: &'p StringExpr) {
        let span = expr.span;
        if let StringKind::Conditional(condition, then, otherwise) = &expr.kind
            && let StringKind::Builtin(builtin, _) = &then.kind
            && is_limited(condition, builtin)
        {
            return self.string(otherwise);
        }
        parts::of_string(expr, &mut |part| self.part(part));
        match &expr.kind {
            StringKind::Literal(_)
            | StringKind::Variable(_)
            | StringKind::Saved(_)
            | StringKind::Concatenate(..)
            | StringKind::Conditional(..)
            | StringKind::Assign(..)
            | StringKind::Append(..)
            | StringKind::Element(_)
            | StringKind::Chart(_) => {}
            StringKind::Call(function, _) => self.calls.push(*function),
            StringKind::Builtin(builtin, _) => self.builtin(builtin, span),
            StringKind::Format(print) => self.print(print, span),
            StringKind::Pretty { description, .. } => self.memory(description.user, span),
            StringKind::EmbeddedC(_) => self.denied("embedded C", span),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_of_ones_own_processes_are_allowed() {
        let allowed = ["begin", "timer.ms(number)", "process.syscall", "process(string).function(string).return"];
        assert!(allowed.into_iter().all(is_unprivileged_point));
        let refused = ["timer.profile", "process(string).data(string).write", "kernel.function(string)", "procfs.read"];
        assert!(!refused.into_iter().any(is_unprivileged_point));
    }

    #[test]
    fn the_builtins_that_are_listed_exist_and_need_no_guru_mode() {
        let lists = [OF_SESSION, OF_PROCESS, OF_REGISTERS];
        for (index, name) in
            lists.iter().enumerate().flat_map(|(index, names)| names.iter().map(move |name| (index, name)))
        {
            let known: Vec<_> = builtin::all().filter(|builtin| builtin.name == *name).collect();
            assert!(!known.is_empty() && known.iter().all(|builtin| !builtin.guru), "{name}");
            let reads_registers = known.iter().any(|builtin| builtin.registers && !builtin.user_stacks);
            assert!(!reads_registers || index == 2, "{name} reads registers");
            let listed = lists.iter().filter(|names| names.contains(name)).count();
            assert_eq!(listed, 1, "{name}");
        }
        // Memory of the process; user_mode() is of the registers.
        let of_memory = |builtin: &&builtin::Builtin| builtin.name.starts_with("user_") && !builtin.guru;
        for builtin in builtin::offered().filter(of_memory) {
            assert!(lists.iter().any(|names| names.contains(&builtin.name)), "{}", builtin.name);
        }
        assert_eq!(own_process().name, OWN_PROCESS);
        for name in IDENTITY {
            assert!(OF_PROCESS.contains(name), "{name}");
            let no_arguments = |builtin: &builtin::Builtin| builtin.name != *name || builtin.parameters.is_empty();
            assert!(builtin::all().all(no_arguments), "{name}");
        }
    }
}
