// SPDX-License-Identifier: GPL-2.0-or-later

//! Builtins: functions of the language that are one call into runtime-c.
//!
//! A builtin is a [`Builtin`] record in the file of its subject. Its C half has the name `spile_fn_` and the record's
//! `symbol`, takes the context and the arguments in order (`spile_long`, `struct spile_string`), and returns a
//! `spile_long`; one that gives a string takes a last `char *out` and returns the length.

mod context;
mod errno;
mod floating;
mod log;
mod memory;
mod regex;
mod registers;
mod stack;
mod string;
mod time;
mod user_stack;

use crate::types::Type;

#[derive(Debug)]
/// One builtin: its place in the language, and what elaboration, plan and emit need to know.
pub struct Builtin {
    /// Its name in scripts.
    pub name: &'static str,
    /// Part of the C function's name after `spile_fn_`; differs from `name` for a second arity.
    pub symbol: &'static str,
    /// Names and types, in order.
    pub parameters: &'static [(&'static str, Type)],
    /// The type of the result; None: no result.
    pub returns: Option<Type>,
    /// May set the context's error: the caller checks.
    pub fails: bool,
    /// Has no effect besides its result: may be left out when the result is not used.
    pub pure: bool,
    /// Only in guru mode.
    pub guru: bool,
    /// Only the compiler calls it, with arguments that it has checked; scripts and the library cannot.
    pub internal: bool,
    /// Reads the groups of the last `=~`: patterns of the program then record where they match.
    pub groups: bool,
    /// Needs source lines: the module contains their table.
    pub lines: bool,
    /// Needs the list of target()'s descendants.
    pub followed: bool,
    /// Prints addresses that the loader has named.
    pub names: bool,
    /// Takes stacks of user space or looks at its mappings.
    pub user_stacks: bool,
    /// Looks at the probed registers.
    pub registers: bool,
    /// Calls no kernel function and needs nothing of the context: may run where a probe only counts.
    pub plain: bool,
    /// The same wherever a handler asks with the same arguments. What is plain is so too.
    pub fixed: bool,
    /// That is so but for the moment at which another CPU changes what the kernel keeps of the task.
    pub shared: bool,
    /// One line for listings and the manual.
    pub doc: &'static str,
}

impl Builtin {
    /// Whether it has the same value, and no effect, wherever a handler asks with the same arguments.
    pub fn is_fixed(&self) -> bool {
        self.pure && !self.fails && (self.plain || self.fixed)
    }

    /// `substr:string (text:string, start:long, length:long)`, as listings show it.
    pub fn signature(&self) -> String {
        let typed = |(name, ty): &(&str, Type)| format!("{name}:{}", ty.name());
        let parameters: Vec<String> = self.parameters.iter().map(typed).collect();
        let returns = self.returns.map_or("unknown", Type::name);
        format!("{}:{returns} ({})", self.name, parameters.join(", "))
    }
}

/// A record of the table: `name symbol (parameters) -> type [flags] doc`.
macro_rules! builtin {
    ($name:literal $symbol:literal ($($parameter:literal: $ty:ident),*) $(-> $returns:ident)? [$($flag:ident)*] $doc:literal) => {
        $crate::builtin::Builtin {
            $($flag: true,)*
            ..$crate::builtin::Builtin {
                name: $name,
                symbol: $symbol,
                parameters: &[$(($parameter, $crate::types::Type::$ty)),*],
                returns: $crate::builtin::builtin!(@returns $($returns)?),
                fails: false,
                pure: false,
                guru: false,
                internal: false,
                groups: false,
                lines: false,
                followed: false,
                names: false,
                user_stacks: false,
                registers: false,
                plain: false,
                fixed: false,
                shared: false,
                doc: $doc,
            }
        }
    };
    (@returns) => { None };
    (@returns $returns:ident) => { Some($crate::types::Type::$returns) };
}
pub(crate) use builtin;

fn subjects() -> [&'static [Builtin]; 11] {
    [
        context::BUILTINS,
        time::BUILTINS,
        memory::BUILTINS,
        string::BUILTINS,
        floating::BUILTINS,
        log::BUILTINS,
        errno::BUILTINS,
        regex::BUILTINS,
        registers::BUILTINS,
        stack::BUILTINS,
        user_stack::BUILTINS,
    ]
}

/// Whether a builtin of that name reads or writes registers, or words of the stack, as they are at a function's entry.
pub fn is_of_entry(name: &str) -> bool {
    registers::OF_ENTRY.contains(&name)
}

/// All builtins, subject by subject.
pub fn all() -> impl Iterator<Item = &'static Builtin> {
    subjects().into_iter().flatten()
}

/// The builtin that a call in a script refers to, by its name and number of arguments.
pub fn find(name: &str, arity: usize) -> Option<&'static Builtin> {
    offered().find(|builtin| builtin.name == name && builtin.parameters.len() == arity)
}

/// The builtin of that name that only the compiler calls.
pub fn internal(name: &str) -> Option<&'static Builtin> {
    all().find(|builtin| builtin.internal && builtin.name == name)
}

/// Numbers of arguments that builtins of that name accept in scripts; empty if there is none.
pub fn arities(name: &str) -> Vec<usize> {
    offered().filter(|builtin| builtin.name == name).map(|builtin| builtin.parameters.len()).collect()
}

/// Those that scripts and the library may call.
pub fn offered() -> impl Iterator<Item = &'static Builtin> {
    all().filter(|builtin| !builtin.internal)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    #[test]
    fn a_name_and_arity_is_there_once() {
        let mut seen = HashSet::new();
        let mut symbols = HashSet::new();
        for builtin in super::all() {
            assert!(seen.insert((builtin.name, builtin.parameters.len())), "{}", builtin.name);
            assert!(symbols.insert(builtin.symbol), "{}", builtin.symbol);
            assert!(!builtin.doc.is_empty(), "{}", builtin.name);
            // By this the compiler finds it; and a script of a user's may have any other.
            assert!(!builtin.internal || builtin.name.starts_with("__"), "{}", builtin.name);
        }
    }
}
