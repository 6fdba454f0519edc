// SPDX-License-Identifier: GPL-2.0-or-later

//! From syntax trees to C text: elaboration (pass 2), the plan, and its spelling in C (pass 3), with the tables that a
//! feature is a record in (probe families, builtins, system calls) and the library of tapset files.

#![warn(missing_docs)]

pub mod builtin;
pub mod check;
pub mod elaborate;
pub mod emit;
pub mod inspect;
pub mod library;
pub mod plan;
pub mod probe;
pub mod program;
pub mod syscalls;
pub mod types;
