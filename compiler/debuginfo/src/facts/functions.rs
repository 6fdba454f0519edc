// SPDX-License-Identifier: GPL-2.0-or-later

//! Functions and the contents of their code.

use spile_base::glob;

use super::types::TypeId;
use crate::object::Address;

/// A function of one object: an entry that has its name. Several functions may share a name (`static` ones, and inline
/// functions of headers in each unit that uses them).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub(crate) u32);

/// Which functions are looked for; all given conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionPattern {
    /// A shell pattern.
    pub name: String,
    /// A shell pattern for the declaring file's path or a tail of it: `read_write.c`, `fs/*.c`.
    pub file: Option<String>,
}

/// A function and where its code is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// As in the source, without the suffixes of clones.
    pub name: String,
    /// Path of the declaring file (DW_AT_decl_file), relative to the top of the sources: `fs/read_write.c`.
    pub file: String,
    /// Line of the declaration (DW_AT_decl_line); 0 where it is not known.
    pub line: u32,
    /// It is visible to other units.
    pub external: bool,
    /// None: it returns void.
    pub return_type: Option<TypeId>,
    /// Out-of-line code, sorted by entry, parts last. Several where the compiler has cloned it (`.isra`, `.constprop`, `.part`).
    pub bodies: Vec<Body>,
    /// Inlined copies, sorted by address.
    pub inlined: Vec<InlinedInstance>,
}

impl Function {
    /// Whether the address is in a body, or in a part of it elsewhere.
    pub(crate) fn has_code_at(&self, address: Address) -> bool {
        let has = |start: Address, size: u64| {
            start.section == address.section
                && (start.offset..start.offset.saturating_add(size)).contains(&address.offset)
        };
        self.bodies
            .iter()
            .any(|body| has(body.entry, body.size) || body.other_parts.iter().any(|(start, size)| has(*start, *size)))
    }
}

/// An out-of-line copy of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// First instruction.
    pub entry: Address,
    /// Bytes of the part that has the entry.
    pub size: u64,
    /// Name in the symbol table, `foo` or `foo.isra.0`.
    pub symbol: Option<String>,
    /// The parts elsewhere, such as `foo.cold`: start and size.
    pub other_parts: Vec<(Address, u64)>,
}

impl Body {
    /// Whether gcc has split it off (`-fpartial-inlining`): it is reached only from the function's own code, or from an
    /// inlined copy of the rest of the function.
    pub fn is_part(&self) -> bool {
        self.symbol.as_ref().is_some_and(|symbol| symbol.contains(".part."))
    }
}

/// A copy within another function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InlinedInstance {
    /// Its first instruction: DW_AT_entry_pc, or where its code begins.
    pub address: Address,
}

/// A call of a function that the debug information names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The function that is called.
    pub callee: FunctionId,
    /// For an inlined call its first instruction, otherwise the instruction that calls.
    pub address: Address,
    /// The instruction behind that, to which a callee that is not inlined returns; of an inlined one the same as `address`.
    pub returns_to: Address,
    /// The copy of the callee that is there instead of a call.
    pub inlined: Option<InlinedCode>,
    /// A tail call: a jump at the caller's end, which leaves no return address.
    pub tail: bool,
}

/// The code of one inlined call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InlinedCode(pub(crate) u32);

/// A label of C.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// As in the source.
    pub name: String,
    /// Of its declaration.
    pub line: u32,
    /// Where its code begins.
    pub address: Address,
}

/// The first instruction of a statement, or of a line on which no statement begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The instruction.
    pub address: Address,
    /// As in [`Function::file`]; differs from the function's where a call has been inlined.
    pub file: String,
    /// Counted from 1.
    pub line: u32,
    /// Which body or inlined copy of the function contains it: bodies are counted first, from 0.
    pub copy: u32,
}

/// Size of a direct call (Intel SDM, CALL rel32: E8 and four bytes), which is how the kernel calls a function that the entry
/// of the call site names.
pub(crate) const CALL_LENGTH: u64 = 5;

/// Whether the shell pattern matches the path, or a tail of it that begins after a `/`.
pub fn path_fits(pattern: &str, path: &str) -> bool {
    let tails = path.match_indices('/').filter_map(|(at, _)| path.get(at + 1..));
    std::iter::once(path).chain(tails).any(|tail| glob::matches(pattern, tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_pattern_fits_the_tail_of_a_path() {
        assert!(path_fits("read_write.c", "fs/read_write.c"));
        assert!(path_fits("fs/*.c", "fs/read_write.c"));
        assert!(!path_fits("write.c", "fs/read_write.c"));
    }
}
