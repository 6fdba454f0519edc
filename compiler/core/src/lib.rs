// SPDX-License-Identifier: GPL-2.0-or-later

//! From syntax trees to C text: elaboration (pass 2), the plan and the C text (pass 3), with the tables of features (probe
//! families, builtins, system calls) and the library of tapset files.

pub mod builtin;
pub mod check;
#[allow(
    clippy::indexing_slicing,
    reason = "by ids that the tables have issued, and by positions in a string that the code has just searched"
)]
pub mod elaborate;
#[allow(clippy::indexing_slicing, reason = "by ids that the plan has issued")]
pub mod emit;
pub mod inspect;
pub mod library;
#[allow(clippy::indexing_slicing, reason = "by ids that the program and the plan have issued")]
pub mod plan;
pub mod probe;
#[allow(clippy::indexing_slicing, reason = "by ids that the program has issued")]
pub mod program;
pub mod syscalls;
pub mod types;
