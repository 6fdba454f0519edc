// SPDX-License-Identifier: GPL-2.0-or-later

//! Variables of functions, and why one is not available.

use super::location::Location;
use super::types::TypeId;

/// A parameter or a local variable as declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// As in the source.
    pub name: String,
    /// Its type.
    pub type_id: TypeId,
}

/// A variable that has a value at the given address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundVariable {
    /// Its type.
    pub type_id: TypeId,
    /// Where it is at that address.
    pub location: Location,
}

/// Why a variable is not available at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// No variable of that name is in scope there.
    Unknown,
    /// It is in scope but has no value there: see [`DebugInfo::other_lines`](crate::DebugInfo::other_lines).
    OptimizedOut,
    /// It has a value that a probe cannot read; the text is a clause that says why.
    Unsupported(String),
}

/// Where else a variable has a value that has none at the given address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherLines {
    /// The line of that address in the function's own file; None where no statement begins there.
    pub line: Option<u32>,
    /// The lines of that file with code in the same body or inlined copy, including calls inlined there, ascending; and
    /// whether the variable has a value where the line begins.
    pub lines: Vec<(u32, bool)>,
}
