// SPDX-License-Identifier: GPL-2.0-or-later

//! What happens to whole processes: `.begin`, `.end`, `.thread.begin`, `.thread.end`, `.syscall`, `.syscall.return`.
//!
//! They are attached by mechanisms that exist: a process begins where exec has succeeded, and, like a thread, where the system
//! call that made it returns in it; it ends where the kernel gives up its memory; its system calls are those of all processes.
//! Which process it is for is the guard of the handler.

use std::rc::Rc;

use super::named_values::NamedValues;
use super::paths;
use crate::builtin;
use crate::probe::code::{self, Scope};
use crate::probe::{Form, Point, PointError, ProbeFamily, Resolver, Site, syscall, tracepoint};
use crate::program::{Attachment, LongExpr, LongKind};
use spile_source::Span;

macro_rules! events {
    ($($owner:literal),*) => {
        [$(
            Form { spelling: concat!($owner, ".begin"), doc: "a process begins to run: after exec, or as a copy of another one" },
            Form { spelling: concat!($owner, ".end"), doc: "a process ends" },
            Form { spelling: concat!($owner, ".thread.begin"), doc: "a thread begins to run, other than the first of its process" },
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
    /// And it has no other threads any more.
    Last = 3,
    /// And the current thread is not its first.
    OtherThread = 4,
}

/// The system calls that make processes and threads: numbers for 64-bit and 32-bit programs.
const CLONE: (u32, u32) = (56, 120);
const FORK: (u32, u32) = (57, 2);
const VFORK: (u32, u32) = (58, 190);
const CLONE3: (u32, u32) = (435, 435);

/// Where the kernel gives up the memory of a thread that ends (kernel/fork.c).
const EXIT: &str = "exit_mm_release";

/// Words of a system call's handler behind its six arguments.
const RESULT: u32 = 6;
const NUMBER: u32 = 7;

fn resolve(point: &Point, resolver: &mut Resolver) -> Result<Vec<Site>, PointError> {
    let scope = Scope::of(point);
    let mut programs: Vec<i64> = Vec::new();
    if scope == Scope::Session {
        for path in paths(point, resolver)? {
            programs.push(resolver.program_at(&path).0.into());
        }
    } else {
        programs.push(-1);
    }
    if scope.is_of_session() {
        resolver.follows();
    }
    let mut sites = Vec::new();
    for program in programs {
        for (attachment, asked) in attachments(point) {
            let mut context = context(point);
            context.guard = guard(asked, program, scope);
            sites.push(Site {
                point: point.spelling(),
                function: String::new(),
                module: String::new(),
                attachment,
                context: Rc::new(context),
            });
        }
    }
    Ok(sites)
}

fn attachments(point: &Point) -> Vec<(Attachment, EventQuery)> {
    let returns = |numbers: &[(u32, u32)], asked: EventQuery| -> Vec<(Attachment, EventQuery)> {
        numbers.iter().map(|&(native, compat)| (syscall::of_numbers(Some((native, compat)), true), asked)).collect()
    };
    match (point.has("thread"), point.has("begin"), point.has("end")) {
        (false, true, _) => {
            let mut all = vec![(tracepoint::of_kernel("sched_process_exec", 3), EventQuery::Process)];
            all.extend(returns(&[CLONE, FORK, VFORK, CLONE3], EventQuery::Forked));
            all
        }
        (true, true, _) => returns(&[CLONE, CLONE3], EventQuery::Thread),
        (false, _, true) => vec![(code::at_symbol(EXIT.into(), false, 0), EventQuery::Last)],
        (true, _, true) => vec![(code::at_symbol(EXIT.into(), false, 0), EventQuery::OtherThread)],
        _ => vec![(syscall::of_numbers(None, point.has("return")), EventQuery::Process)],
    }
}

fn guard(asked: EventQuery, program: i64, scope: Scope) -> Option<LongExpr> {
    let builtin = builtin::find("__process_event", 3)?;
    let arguments = [asked as i64, program, scope.number()].map(|value| LongExpr::constant(value, Span::none()).into());
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
