// SPDX-License-Identifier: GPL-2.0-or-later

//! C spelling of types, as listings of probe points show it: `struct file*`, `char*`, `int (*)(void*)`.

use spile_abi::budget::{Budget, Exceeded, Limits, USUAL};

use super::Source;
use crate::facts::{Extent, Type, TypeId};

/// Nesting in one name: pointers to functions that take pointers to functions ...
const LIMITS: Limits = Limits { bytes: 1 << 14, depth: 17, work: 256, ..USUAL };

/// Parameters of one function that are spelled out.
const MAX_PARAMETERS: usize = 128;

impl dyn Source {
    /// `...` replaces parts that are damaged or nested too deeply.
    pub fn type_name(&self, id: TypeId) -> String {
        let budget = Budget::new("a type's name", LIMITS);
        self.declare(Some(id), String::new(), &budget)
    }

    /// The name of the type of `declarator`, which is what of the type goes behind its name: `*`, `[4]`, `(*)(int)`.
    fn declare(&self, id: Option<TypeId>, declarator: String, budget: &Budget) -> String {
        let Some(id) = id else {
            return join("void", &declarator);
        };
        let Ok(_level) = budget.deeper() else {
            return join("...", &declarator);
        };
        // A string longer than the limit is not extended further.
        if let Err(Exceeded { .. }) = budget.work(1).and_then(|()| budget.bytes(declarator.len())) {
            return "...".into();
        }
        if let Ok(Some((class, to))) = self.pointer_to_member(id) {
            return self.declare(to, format!(" {class}{MEMBER}{declarator}"), budget);
        }
        let Ok(found) = self.read_type(id, Extent::Outline) else {
            return join("...", &declarator);
        };
        let tagged = |keyword: &str, name: Option<String>| match name {
            Some(name) => join(&format!("{keyword} {name}"), &declarator),
            None => join(&format!("{keyword} {{...}}"), &declarator),
        };
        match found {
            Type::Base { name, .. } | Type::Typedef { name, .. } | Type::Incomplete { name } => {
                join(&name, &declarator)
            }
            Type::Struct { name, union, .. } => tagged(if union { "union" } else { "struct" }, name),
            Type::Enum { name, .. } => tagged("enum", name),
            Type::Pointer(target) => self.declare(target, format!("*{declarator}"), budget),
            Type::Const(target) => self.qualify("const", target, declarator, budget),
            Type::Volatile(target) => self.qualify("volatile", target, declarator, budget),
            Type::Array { element, counts } => {
                let mut declarator = parenthesize(declarator);
                for count in counts {
                    match count {
                        Some(count) => declarator.push_str(&format!("[{count}]")),
                        None => declarator.push_str("[]"),
                    }
                }
                self.declare(Some(element), declarator, budget)
            }
            Type::Function { returns, parameters, variadic } => {
                let mut names: Vec<String> = parameters
                    .iter()
                    .take(MAX_PARAMETERS)
                    .map(|parameter| self.declare(Some(*parameter), String::new(), budget))
                    .collect();
                if parameters.len() > MAX_PARAMETERS {
                    names.push("...".into());
                }
                if variadic {
                    names.push("...".into());
                }
                let names = if names.is_empty() { "void".to_string() } else { names.join(", ") };
                self.declare(returns, format!(" {}({names})", parenthesize(declarator).trim_start()), budget)
            }
        }
    }

    /// Whether the type itself is qualified in this way, possibly next to other qualifiers.
    fn is_qualified(&self, word: &str, mut target: Option<TypeId>, budget: &Budget) -> bool {
        while let Some(found) = target.and_then(|id| self.read_type(id, Extent::Outline).ok()) {
            target = match found {
                Type::Const(_) if word == "const" => return true,
                Type::Volatile(_) if word == "volatile" => return true,
                Type::Const(inner) | Type::Volatile(inner) if budget.work(1).is_ok() => inner,
                // Qualifiers of an array are those of its elements; gcc writes both.
                Type::Array { element, .. } if budget.work(1).is_ok() => Some(element),
                _ => return false,
            };
        }
        false
    }

    /// Before the name of what is qualified, or after the star of a qualified pointer.
    fn qualify(&self, word: &str, target: Option<TypeId>, declarator: String, budget: &Budget) -> String {
        // `const` of a type that is const already, such as an array of a const typedef, is written once.
        if self.is_qualified(word, target, budget) {
            return self.declare(target, declarator, budget);
        }
        let pointer = target
            .and_then(|target| self.read_type(target, Extent::Outline).ok())
            .is_some_and(|found| matches!(found, Type::Pointer(_)));
        if pointer {
            self.declare(target, format!(" {word}{declarator}"), budget)
        } else {
            format!("{word} {}", self.declare(target, declarator, budget))
        }
    }
}

fn join(name: &str, declarator: &str) -> String {
    format!("{name}{declarator}")
}

/// What is behind the class in the type of a pointer to a member.
const MEMBER: &str = "::*";

/// A pointer to an array or function binds in parentheses.
fn parenthesize(declarator: String) -> String {
    let own = declarator.split(['(', '[']).next().unwrap_or_default();
    match declarator.starts_with('*') || own.contains(MEMBER) {
        true => format!(" ({})", declarator.trim_start()),
        false => declarator,
    }
}
