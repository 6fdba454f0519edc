// SPDX-License-Identifier: GPL-2.0-or-later

//! System calls by name: the basis of the aliases `syscall.*` ([`crate::syscalls`]).
//!
//! The numbers are the kernel's ABI and never change: `runtime-c/syscalls_*.h`, from which the runtime takes names. For a
//! 32-bit program, the runtime gives the arguments in their 64-bit form (`runtime-c/syscall_compat.c`).

use std::cell::OnceCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::OnceLock;

use super::{
    Context, ContextError, Form, Location, OtherOwners, Point, PointError, ProbeFamily, Resolver, Similar, Site,
    TypedLocation,
};
use crate::program::{Attachment, Label, LongExpr, Mechanism, Value};
use spile_debuginfo::target::Object;
use spile_debuginfo::{FunctionPattern, TypeId, Variable};
use spile_source::Span;
use spile_source::diagnostic::suggest;

/// The family of system calls.
pub(super) static FAMILY: ProbeFamily = ProbeFamily::new(
    &[
        Form { spelling: "__syscall", doc: "every system call; arguments by longlong_arg()" },
        Form { spelling: "__syscall.return", doc: "the return of every system call; the result by returnval()" },
        Form {
            spelling: "__syscall.return.maxactive(number)",
            doc: "the same: every call that returns is seen, however many there are at once",
        },
        Form {
            spelling: "__syscall(string)",
            doc: "the system call of that name, as the kernel's ABI calls it; after `native:` or `compat:` only of 64-bit or 32-bit programs",
        },
        Form { spelling: "__syscall(string).return", doc: "its return" },
        Form {
            spelling: "__syscall(string).return.maxactive(number)",
            doc: "the same: every call that returns is seen",
        },
    ],
    resolve,
);

/// Numbers by name, of 64-bit and of 32-bit programs.
type Numbers = HashMap<&'static str, (Option<u32>, Option<u32>)>;

fn numbers() -> &'static Numbers {
    static NUMBERS: OnceLock<Numbers> = OnceLock::new();
    NUMBERS.get_or_init(|| {
        let mut numbers = Numbers::new();
        for (number, name) in entries(include_str!("../../../../runtime-c/syscalls_x86_64.h")) {
            numbers.entry(name).or_default().0 = Some(number);
        }
        let compat = [
            include_str!("../../../../runtime-c/syscalls_i386.h"),
            include_str!("../../../../runtime-c/syscalls_wrapped.h"),
        ];
        for (number, name) in compat.into_iter().flat_map(entries) {
            numbers.entry(name).or_default().1 = Some(number);
        }
        numbers
    })
}

/// The number of a call in 64-bit programs; None if these have no such call.
pub(super) fn native_number(name: &str) -> Option<u32> {
    numbers().get(name)?.0
}

/// Lines `SPILE_SYSCALL(NUMBER, NAME)`.
fn entries(text: &'static str) -> impl Iterator<Item = (u32, &'static str)> {
    text.lines().filter_map(|line| {
        let (number, name) = line.strip_prefix("SPILE_SYSCALL(")?.strip_suffix(')')?.split_once(", ")?;
        Some((number.parse().ok()?, name))
    })
}

/// The numbers for a name, which may be restricted to 32-bit or 64-bit programs; both None if there is no such call.
fn of(name: &str) -> Option<(Option<u32>, Option<u32>)> {
    match name.split_once(':') {
        Some(("native", name)) => numbers().get(name).map(|numbers| (numbers.0, None)),
        Some(("compat", name)) => numbers().get(name).map(|numbers| (None, numbers.1)),
        Some(_) => None,
        None => numbers().get(name).copied(),
    }
}

fn resolve(point: &Point, resolver: &mut Resolver) -> Result<Vec<Site>, PointError> {
    let returning = point.has("return");
    let numbers = match point.string("__syscall") {
        None => None,
        Some((name, component)) => match of(&name) {
            Some(numbers) => Some(numbers),
            None => {
                let near = suggest::suggest(&name, numbers().keys().copied()).into_iter().map(str::to_string).collect();
                return Err(PointError::NoFunction {
                    component,
                    name,
                    object: "the table of system calls".into(),
                    near: Similar::Names(near),
                    other_owners: OtherOwners::default(),
                });
            }
        },
    };
    // Without a kernel's debug information calls can be probed too, but have no variables.
    let kernel = resolver.open_kernel();
    let name = point.string("__syscall").map(|(name, _)| name.rsplit(':').next().unwrap_or_default().to_string());
    Ok(vec![Site {
        point: point.spelling(),
        function: String::new(),
        module: "kernel".into(),
        attachment: attachment(numbers, returning),
        context: Rc::new(CallContext { returning, kernel, name, prototype: OnceCell::new() }),
    }])
}

static MECHANISM: Mechanism = Mechanism::new("SPILE_PROBE_SYSCALL", Label::Word("syscall"));

/// A system call by its numbers in 64-bit and 32-bit programs; all of them without.
pub(super) fn of_numbers(numbers: Option<(u32, u32)>, returning: bool) -> Attachment {
    attachment(numbers.map(|(native, compat)| (Some(native), Some(compat))), returning)
}

/// A system call by its numbers in 64-bit and 32-bit programs; all of them without `numbers`.
pub(super) fn attachment(numbers: Option<(Option<u32>, Option<u32>)>, returning: bool) -> Attachment {
    let number = |number: Option<u32>| number.map_or(Value::Constant("SPILE_NO_SYSCALL"), Value::Number);
    let any = || Value::Constant("SPILE_ANY_SYSCALL");
    let (native, compat) = match numbers {
        None => (any(), any()),
        Some((native, compat)) => (number(native), number(compat)),
    };
    Attachment::new(&MECHANISM).with("syscall", Value::List(vec![native, compat, returning.into()]))
}

/// Names that the function with a call's parameters may have, the likeliest first (include/linux/syscalls.h and
/// linux/compat.h since 4.17). Calls of 32-bit programs whose numbers were later widened use the function of 64-bit
/// programs; some functions have been called `new` since there was an old one.
fn functions_of(name: &str) -> Vec<String> {
    let otherwise = match name {
        "umount2" => "umount",
        // The functions of the same names are those of the calls `oldstat` and `olduname`.
        "stat" => "newstat",
        "lstat" => "newlstat",
        "fstat" => "newfstat",
        "uname" => "newuname",
        "sendfile" => "sendfile64",
        "_newselect" => "select",
        "_llseek" => "llseek",
        "mmap2" => "mmap_pgoff",
        "readdir" => "old_readdir",
        _ => name,
    };
    let shorter = ["_time64", "64", "32"].into_iter().filter_map(|tail| otherwise.strip_suffix(tail));
    let names = std::iter::once(otherwise).chain(shorter);
    names
        .flat_map(|name| [format!("__do_sys_{name}"), format!("__do_sys_new{name}"), format!("__do_compat_sys_{name}")])
        .collect()
}

/// Words that a handler has for registers (runtime-c/syscall.c): the arguments, then the result.
pub(super) const ARGUMENTS: usize = 6;

/// The word of that number, as a value of a type of the kernel.
pub(super) fn word(kernel: &Rc<Object>, index: usize, type_id: TypeId) -> TypedLocation {
    let value = LongExpr::register(index as u32 * 8, Span::none());
    TypedLocation { object: kernel.clone(), type_id, location: Location::Value(value) }
}

struct CallContext {
    returning: bool,
    kernel: Option<Rc<Object>>,
    /// None: any call.
    name: Option<String>,
    /// Looked up when a variable is first needed: few scripts do.
    prototype: OnceCell<Option<Prototype>>,
}

struct Prototype {
    arguments: Vec<Variable>,
    returns: Option<TypeId>,
}

impl CallContext {
    fn prototype(&self) -> Option<&Prototype> {
        self.prototype.get_or_init(|| self.find_prototype()).as_ref()
    }

    /// The function's result type; for any call, `long`. None: the kernel's debug information has none.
    fn find_prototype(&self) -> Option<Prototype> {
        let debug = self.kernel.as_ref()?.debug().ok()?;
        let Some(name) = &self.name else {
            return Some(Prototype { arguments: Vec::new(), returns: debug.find_type("long int").ok()? });
        };
        let find = |name| debug.find_functions(&FunctionPattern { name, file: None }).ok()?.first().copied();
        let Some(id) = functions_of(name).into_iter().find_map(find) else {
            return Some(Prototype { arguments: Vec::new(), returns: debug.find_type("long int").ok()? });
        };
        let mut arguments = debug.parameters(id).ok()?;
        // The arguments of a call without any.
        arguments.retain(|argument| argument.name != "__unused");
        arguments.truncate(ARGUMENTS);
        Some(Prototype {
            arguments,
            returns: debug.function(id).ok()?.return_type.or(debug.find_type("long int").ok()?),
        })
    }

    /// The word of that number, as an object of the type.
    fn word(&self, index: usize, type_id: TypeId) -> Result<TypedLocation, ContextError> {
        Ok(word(self.kernel.as_ref().ok_or(ContextError::None)?, index, type_id))
    }
}

impl Context for CallContext {
    fn variable(&self, name: &str) -> Result<TypedLocation, ContextError> {
        let prototype = self.prototype().ok_or(ContextError::None)?;
        if name == "return" {
            let returns = if self.returning { prototype.returns } else { None };
            return self.word(ARGUMENTS, returns.ok_or(ContextError::NotReturn)?);
        }
        let index =
            prototype.arguments.iter().position(|argument| argument.name == name).ok_or(ContextError::Unknown)?;
        self.word(index, prototype.arguments.get(index).ok_or(ContextError::Unknown)?.type_id)
    }

    fn parameters(&self) -> Vec<String> {
        let arguments = self.prototype().map(|prototype| prototype.arguments.as_slice()).unwrap_or_default();
        arguments.iter().map(|argument| argument.name.clone()).collect()
    }

    fn has_variables(&self) -> bool {
        self.kernel.is_some()
    }

    fn object(&self) -> Option<Rc<Object>> {
        self.kernel.clone()
    }

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
    fn names_of_functions() {
        assert_eq!(functions_of("read")[0], "__do_sys_read");
        assert_eq!(functions_of("fstat")[0], "__do_sys_newfstat");
        assert!(functions_of("futex_time64").contains(&"__do_sys_futex".to_string()));
        assert!(functions_of("fstatat64").contains(&"__do_sys_newfstatat".to_string()));
    }

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
