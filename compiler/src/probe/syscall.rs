//! System calls by name: what the aliases `syscall.*` stand on ([`crate::syscalls`]).
//!
//! The numbers are the kernel's ABI and never change: `runtime-c/syscalls_*.h`, which the runtime takes names from.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::OnceLock;

use super::{Context, Form, Point, PointError, ProbeFamily, Resolver, Site};
use crate::diagnostic::suggest;
use crate::program::Attachment;

pub(super) static FAMILY: ProbeFamily = ProbeFamily {
    forms: &[
        Form { spelling: "__syscall", doc: "every system call; arguments by longlong_arg()" },
        Form { spelling: "__syscall.return", doc: "the return of every system call; the result by returnval()" },
        Form { spelling: "__syscall(string)", doc: "the system call of that name, as the kernel's ABI calls it; after `native:` or `compat:` only of 64-bit or 32-bit programs" },
        Form { spelling: "__syscall(string).return", doc: "its return" },
    ],
    resolve,
};

/// Numbers by name, of 64-bit and of 32-bit programs.
fn numbers() -> &'static HashMap<&'static str, (Option<u32>, Option<u32>)> {
    static NUMBERS: OnceLock<HashMap<&'static str, (Option<u32>, Option<u32>)>> = OnceLock::new();
    NUMBERS.get_or_init(|| {
        let mut numbers: HashMap<_, (Option<u32>, Option<u32>)> = HashMap::new();
        for (number, name) in entries(include_str!("../../../runtime-c/syscalls_x86_64.h")) {
            numbers.entry(name).or_default().0 = Some(number);
        }
        for (number, name) in entries(include_str!("../../../runtime-c/syscalls_i386.h")) {
            numbers.entry(name).or_default().1 = Some(number);
        }
        numbers
    })
}

/// Lines `SPILE_SYSCALL(NUMBER, NAME)`.
fn entries(text: &'static str) -> impl Iterator<Item = (u32, &'static str)> {
    text.lines().filter_map(|line| {
        let (number, name) = line.strip_prefix("SPILE_SYSCALL(")?.strip_suffix(')')?.split_once(", ")?;
        Some((number.parse().ok()?, name))
    })
}

/// Numbers of a name, which may say whose programs are meant; both None if these have no such call.
fn of(name: &str) -> Option<(Option<u32>, Option<u32>)> {
    match name.split_once(':') {
        Some(("native", name)) => numbers().get(name).map(|numbers| (numbers.0, None)),
        Some(("compat", name)) => numbers().get(name).map(|numbers| (None, numbers.1)),
        Some(_) => None,
        None => numbers().get(name).copied(),
    }
}

fn resolve(point: &Point, _: &mut Resolver) -> Result<Vec<Site>, PointError> {
    let returning = point.has("return");
    let numbers = match point.string("__syscall") {
        None => None,
        Some((name, component)) => match of(&name) {
            Some(numbers) => Some(numbers),
            None => {
                let near = suggest::suggest(&name, numbers().keys().copied()).into_iter().map(str::to_string).collect();
                return Err(PointError::NoFunction { component, name, object: "the table of system calls".into(), near });
            }
        },
    };
    Ok(vec![Site {
        point: point.spelling(),
        function: String::new(),
        module: "kernel".into(),
        attachment: Attachment::Syscall { numbers, returning },
        context: Rc::new(CallContext { returning }),
    }])
}

struct CallContext {
    returning: bool,
}

impl Context for CallContext {
    fn is_return(&self) -> bool {
        self.returning
    }

    fn place(&self) -> String {
        "a system call, whose arguments are had by long_arg(N)".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_abi() {
        assert_eq!(numbers().get("read"), Some(&(Some(0), Some(3))));
        assert_eq!(numbers().get("execve"), Some(&(Some(59), Some(11))));
        assert_eq!(numbers().get("waitpid"), Some(&(None, Some(7))));
        assert_eq!(of("compat:execve"), Some((None, Some(11))));
        assert_eq!(of("native:chown"), Some((Some(92), None)));
        assert_eq!((of("native:none"), of("other:read")), (None, None));
        assert_eq!(numbers().get("openat2"), Some(&(Some(437), Some(437))));
    }
}
