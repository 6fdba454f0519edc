//! C spelling of types, as listings of probe points show it: `struct file*`, `char*`, `int (*)(void*)`.

use super::DebugInfo;
use super::types::{Type, TypeId};

/// Nesting of types in one name (pointers to functions that take pointers to functions ...).
const MAX_DEPTH: usize = 16;

impl DebugInfo {
    /// `...` stands for what damage or too much nesting hides.
    pub fn type_name(&self, id: TypeId) -> String {
        self.declare(Some(id), String::new(), 0)
    }

    /// The name of the type of `declarator`, which is what of the type goes behind its name: `*`, `[4]`, `(*)(int)`.
    fn declare(&self, id: Option<TypeId>, declarator: String, depth: usize) -> String {
        let Some(id) = id else {
            return join("void", &declarator);
        };
        if depth > MAX_DEPTH {
            return join("...", &declarator);
        }
        let Ok(found) = self.get(id) else {
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
            Type::Pointer(target) => self.declare(target, format!("*{declarator}"), depth + 1),
            Type::Const(target) => self.qualify("const", target, declarator, depth),
            Type::Volatile(target) => self.qualify("volatile", target, declarator, depth),
            Type::Array { element, counts } => {
                let mut declarator = parenthesize(declarator);
                for count in counts {
                    match count {
                        Some(count) => declarator.push_str(&format!("[{count}]")),
                        None => declarator.push_str("[]"),
                    }
                }
                self.declare(Some(element), declarator, depth + 1)
            }
            Type::Function { returns, parameters, variadic } => {
                let mut names: Vec<String> = parameters
                    .iter()
                    .map(|parameter| self.declare(Some(*parameter), String::new(), depth + 1))
                    .collect();
                if variadic {
                    names.push("...".into());
                }
                let names = if names.is_empty() { "void".to_string() } else { names.join(", ") };
                self.declare(returns, format!(" {}({names})", parenthesize(declarator).trim_start()), depth + 1)
            }
        }
    }

    /// Before the name of what is qualified, or behind the star of a qualified pointer.
    fn qualify(&self, word: &str, target: Option<TypeId>, declarator: String, depth: usize) -> String {
        let pointer =
            target.and_then(|target| self.get(target).ok()).is_some_and(|found| matches!(found, Type::Pointer(_)));
        if pointer {
            self.declare(target, format!(" {word}{declarator}"), depth + 1)
        } else {
            format!("{word} {}", self.declare(target, declarator, depth + 1))
        }
    }
}

fn join(name: &str, declarator: &str) -> String {
    format!("{name}{declarator}")
}

/// A pointer to an array or function binds in parentheses.
fn parenthesize(declarator: String) -> String {
    if declarator.starts_with('*') { format!(" ({declarator})") } else { declarator }
}
