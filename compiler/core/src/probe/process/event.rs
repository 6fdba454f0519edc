// SPDX-License-Identifier: GPL-2.0-or-later

//! What happens to whole processes: `.begin`, `.end`, `.thread.begin`, `.thread.end`, `.syscall`, `.syscall.return`.
//!
//! They are attached by mechanisms that exist: a process begins where exec has succeeded, and, like a thread, where the system
//! call that made it returns in it, or, if it runs already, where it next leaves a CPU; it ends where the kernel gives up its
//! memory; its system calls are those of all processes. Which process it is for is the guard of the handler.

use std::path::PathBuf;
use std::rc::Rc;

use super::named_values::NamedValues;
use super::paths;
use crate::builtin;
use crate::probe::code::{self, Scope};
use crate::probe::{Context, Form, Point, PointError, ProbeFamily, Resolver, Site, spelling, syscall, tracepoint};
use crate::program::{Attachment, BinaryOp, LongExpr, LongKind, ProgramId};
use spile_base::glob;
use spile_debuginfo::FunctionPattern;
use spile_debuginfo::target::Object;
use spile_source::Span;
use spile_syntax::ast::Literal;

macro_rules! events {
    ($($owner:literal),*) => {
        [$(
            Form {
                spelling: concat!($owner, ".begin"),
                doc: "a process begins to run: after exec, or as a copy of another one; of one that runs already, when it is next seen to run",
            },
            Form { spelling: concat!($owner, ".end"), doc: "a process ends" },
            Form { spelling: concat!($owner, ".thread.begin"), doc: "a thread begins to run, other than the first of its process; one that runs already, when it is next seen to run" },
            Form { spelling: concat!($owner, ".thread.end"), doc: "a thread ends, other than the first of its process" },
            Form { spelling: concat!($owner, ".syscall"), doc: "a system call of the process begins" },
            Form { spelling: concat!($owner, ".syscall.return"), doc: "a system call of the process returns" },
        )*]
    };
}

static FORMS: [Form; 18] = events!("process(string)", "process(number)", "process");

/// The family of what happens to processes.
pub(in crate::probe) static FAMILY: ProbeFamily = ProbeFamily::new(&FORMS, resolve);

/// What `__process_event` asks (runtime-c/program.c).
#[derive(Clone, Copy)]
enum EventQuery {
    /// Whether the current process is meant.
    Process = 0,
    /// And the call that returns has made it.
    Forked = 1,
    /// And the call that returns has made the current thread, which is not its first.
    Thread = 2,
    /// And it has no other threads any more. Of threads that end at the same time, several may find that so.
    Last = 3,
    /// And the current thread is not its first.
    OtherThread = 4,
    /// Whether it is meant, is older than the session, and is asked about for the first time.
    Begun = 5,
    /// The same of the current thread, which is not its first.
    ThreadBegun = 6,
}

/// The system calls that make processes and threads: numbers for 64-bit and 32-bit programs.
const CLONE: (u32, u32) = (56, 120);
const FORK: (u32, u32) = (57, 2);
const VFORK: (u32, u32) = (58, 190);
const CLONE3: (u32, u32) = (435, 435);

/// A place in do_exit() (kernel/exit.c) where a thread that ends still has its memory.
struct ExitPlace {
    attachment: Attachment,
    /// Byte offset, in the handler's registers, of a flag: the thread is the last one of its process.
    last: Option<u32>,
}

impl ExitPlace {
    /// The tracepoint has the flag, and comes before the memory is given up, since "exit: move and extend
    /// sched_process_exit() tracepoint" (6.16). Older kernels pass the flag to taskstats_exit(), unless CONFIG_TASKSTATS is
    /// off; exit_mm_release() is inlined in some newer ones.
    fn of(kernel: Option<&Object>) -> ExitPlace {
        const TRACEPOINT: &str = "sched_process_exit";
        const WITH_FLAG: &str = "taskstats_exit";
        // The second argument: its word, and the offset of `si` in struct pt_regs.
        const ARGUMENT: u32 = 8;
        const SI: u32 = 104;
        if kernel.and_then(|kernel| tracepoint::argument_count(kernel, TRACEPOINT)) == Some(2) {
            return ExitPlace { attachment: tracepoint::of_kernel(TRACEPOINT, 2), last: Some(ARGUMENT) };
        }
        if kernel.is_some_and(|kernel| has_function(kernel, WITH_FLAG)) {
            return ExitPlace { attachment: code::at_symbol(WITH_FLAG.into(), false, 0), last: Some(SI) };
        }
        ExitPlace { attachment: code::at_symbol("exit_mm_release".into(), false, 0), last: None }
    }
}

/// Whether the kernel has code of its own for the function. BTF has only functions that have.
fn has_function(kernel: &Object, name: &str) -> bool {
    let Ok(debug) = kernel.debug() else { return false };
    let found = debug.find_functions(&FunctionPattern { name: name.into(), file: None }).unwrap_or_default();
    let functions = found.into_iter().filter_map(|id| debug.function(id).ok());
    functions.into_iter().any(|function| kernel.is_btf() || !function.bodies.is_empty())
}

/// Words of a system call's handler behind its six arguments.
const RESULT: u32 = 6;
const NUMBER: u32 = 7;

fn resolve(point: &Point, resolver: &mut Resolver) -> Result<Vec<Site>, PointError> {
    let (ranges, scope) = programs(point, resolver)?;
    if point.has("begin") {
        resolver.begins();
    }
    let kernel = resolver.open_kernel();
    let spelled = spelled(point, resolver);
    let mut sites = Vec::new();
    for programs in ranges {
        for Event { attachment, asked, flag } in events(point, kernel.as_deref()) {
            let mut context = context(point);
            context.guard = guard(asked, programs, scope).map(|guard| with_flag(flag, guard));
            sites.push(Site {
                point: spelled.clone(),
                function: String::new(),
                module: String::new(),
                attachment,
                context: Rc::new(context),
            });
        }
    }
    Ok(sites)
}

/// Numbers of programs: the first and the last of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Programs(i64, i64);

impl Programs {
    const ANY: Programs = Programs(-1, -1);

    /// Only this one.
    pub fn one(program: ProgramId) -> Programs {
        Programs(program.0.into(), program.0.into())
    }

    /// All of these, each range as long as it can be: an event looks for its program once for each of them.
    fn ranges(mut numbers: Vec<i64>) -> Vec<Programs> {
        numbers.sort_unstable();
        let mut ranges: Vec<Programs> = Vec::new();
        for number in numbers {
            match ranges.last_mut() {
                Some(Programs(_, last)) if number <= *last + 1 => *last = number,
                _ => ranges.push(Programs(number, number)),
            }
        }
        ranges
    }
}

/// The programs that a point names by path, else any, and the processes that it is for.
fn programs(point: &Point, resolver: &mut Resolver) -> Result<(Vec<Programs>, Scope), PointError> {
    let scope = Scope::of(point);
    if let Some((pid, component)) = point.number("process")
        && pid < 1
    {
        let expected = "the id of a process, 1 or more".to_string();
        return Err(PointError::Argument { component, expected });
    }
    let mut programs = vec![Programs::ANY];
    if scope == Scope::Session {
        let found = match (paths(point, resolver), absent(point)) {
            (Err(PointError::Target { .. }), Some(path)) => vec![path],
            (found, _) => found?,
        };
        programs = Programs::ranges(found.iter().map(|path| resolver.program_at(path).0.into()).collect());
    }
    if scope.is_of_session() {
        resolver.follows();
    }
    Ok((programs, scope))
}

/// The point with the path that its program's name stands for, as points in the program's code have it. A pattern stays: it may
/// stand for many.
fn spelled(point: &Point, resolver: &Resolver) -> String {
    let is_name = point.string("process").is_some_and(|(name, _)| !glob::is_pattern(&name));
    let paths = if is_name { paths(point, resolver).unwrap_or_default() } else { Vec::new() };
    let [path] = paths.as_slice() else { return point.spelling() };
    let mut components = point.components.to_vec();
    for component in components.iter_mut().filter(|component| component.name == "process") {
        component.argument = Some(Literal::String(path.as_os_str().as_encoded_bytes().to_vec()));
    }
    spelling(&components)
}

/// The point's absolute path, where there is no such file: it may be there when the session starts, as in SystemTap. The module says
/// then if it is not.
fn absent(point: &Point) -> Option<PathBuf> {
    let (name, _) = point.string("process")?;
    let path = PathBuf::from(&name);
    (path.is_absolute() && !glob::is_pattern(&name) && !path.exists() && !point.has("perf")).then_some(path)
}

/// For a point with `.process("PATH")` or `.process` that is hit in any process: contexts whose guards leave out other processes,
/// mostly one for all programs.
pub(in crate::probe) fn contexts_in_processes(
    point: &Point,
    resolver: &mut Resolver,
) -> Result<Vec<Rc<dyn Context>>, PointError> {
    let (programs, scope) = programs(point, resolver)?;
    // Where its program is not needed, the command may be one of the shell's own.
    if scope == Scope::Target
        && let Err(error @ PointError::NoCommand { .. }) = resolver.own_program(point.span())
    {
        return Err(error);
    }
    let in_programs = |programs| -> Rc<dyn Context> {
        let mut values = NamedValues::new(point.spelling());
        values.guard = process_guard(programs, scope);
        values.has_registers = true;
        Rc::new(values)
    };
    Ok(programs.into_iter().map(in_programs).collect())
}

/// What a probe is attached to.
struct Event {
    attachment: Attachment,
    asked: EventQuery,
    /// Byte offset of a word of the registers whose lowest byte must not be 0.
    flag: Option<u32>,
}

fn events(point: &Point, kernel: Option<&Object>) -> Vec<Event> {
    let of = |attachment: Attachment, asked: EventQuery| Event { attachment, asked, flag: None };
    let returns = |numbers: &[(u32, u32)], asked: EventQuery| -> Vec<Event> {
        numbers.iter().map(|&(native, compat)| of(syscall::of_numbers(Some((native, compat)), true), asked)).collect()
    };
    match (point.has("thread"), point.has("begin"), point.has("end")) {
        (false, true, _) => {
            let mut all = vec![of(tracepoint::of_kernel("sched_process_exec", 3), EventQuery::Process)];
            all.extend(returns(&[CLONE, FORK, VFORK, CLONE3], EventQuery::Forked));
            all.push(of(tracepoint::of_kernel("sched_switch", 1), EventQuery::Begun));
            all
        }
        (true, true, _) => {
            let mut all = returns(&[CLONE, CLONE3], EventQuery::Thread);
            all.push(of(tracepoint::of_kernel("sched_switch", 1), EventQuery::ThreadBegun));
            all
        }
        (false, _, true) => {
            let ExitPlace { attachment, last } = ExitPlace::of(kernel);
            let asked = if last.is_some() { EventQuery::Process } else { EventQuery::Last };
            vec![Event { attachment, asked, flag: last }]
        }
        (true, _, true) => vec![of(ExitPlace::of(kernel).attachment, EventQuery::OtherThread)],
        _ => vec![of(syscall::of_numbers(None, point.has("return")), EventQuery::Process)],
    }
}

/// The guard, after the test of the flag.
fn with_flag(flag: Option<u32>, guard: LongExpr) -> LongExpr {
    const LOWEST_BYTE: i64 = 0xff;
    let Some(offset) = flag else { return guard };
    let binary =
        |op, left, right| LongExpr { kind: LongKind::Binary(op, Box::new(left), Box::new(right)), span: Span::none() };
    let word = LongExpr::register(offset, Span::none());
    binary(BinaryOp::And, binary(BinaryOp::BitAnd, word, LongExpr::constant(LOWEST_BYTE, Span::none())), guard)
}

/// The current process is meant and runs one of the programs.
pub(super) fn process_guard(programs: Programs, scope: Scope) -> Option<LongExpr> {
    guard(EventQuery::Process, programs, scope)
}

fn guard(asked: EventQuery, Programs(first, last): Programs, scope: Scope) -> Option<LongExpr> {
    let builtin = builtin::internal("__process_event")?;
    let arguments =
        [asked as i64, first, last, scope.number()].map(|value| LongExpr::constant(value, Span::none()).into());
    Some(LongExpr { kind: LongKind::Builtin(builtin, arguments.to_vec()), span: Span::none() })
}

fn context(point: &Point) -> NamedValues {
    let mut values = NamedValues::new(point.spelling());
    if !point.has("syscall") {
        return values;
    }
    let word = |index: u32| Ok(LongExpr::register(index * 8, Span::none()));
    values.values.push(("syscall".into(), word(NUMBER)));
    values.values.extend((1..=6).map(|number| (format!("arg{number}"), word(number - 1))));
    if point.has("return") {
        values.values.push(("return".into(), word(RESULT)));
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_with_consecutive_numbers_are_one_range() {
        assert_eq!(Programs::ranges((0..2000).rev().collect()), [Programs(0, 1999)]);
        assert_eq!(Programs::ranges(vec![7, 3, 4, 4, 5]), [Programs(3, 5), Programs(7, 7)]);
        assert_eq!(Programs::ranges(Vec::new()), []);
    }
}
