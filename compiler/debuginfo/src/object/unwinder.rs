// SPDX-License-Identifier: GPL-2.0-or-later

//! Functions of the run-time libraries of programs that look for who catches an exception, and those that run where they have found
//! it. They go from caller to caller by return addresses (Itanium C++ ABI, Exception Handling, 1.6), in place of which the kernel
//! puts one of its own where a return is probed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::code_sum::{CodeSum, code_sum};
use super::elf::Elf;

/// Functions that begin to go from caller to caller, and go on behind the cleanup of one of them (libgcc's and LLVM's).
const SEARCHES: [&str; 4] =
    ["_Unwind_RaiseException", "_Unwind_Resume", "_Unwind_Resume_or_Rethrow", "_Unwind_ForcedUnwind"];

/// Functions that code which catches an exception calls first: of C++, Rust, Ada, D, Objective-C.
const CATCHES: [&str; 6] = [
    "__cxa_begin_catch",
    "__rust_panic_cleanup",
    "__gnat_begin_handler",
    "__gnat_begin_handler_v1",
    "__gdc_begin_catch",
    "objc_begin_catch",
];

/// The second, with a name as newer compilers of Rust make them (RFC 2603).
const MANGLED_CATCH: &str = "___rust_panic_cleanup";

/// Functions that look at return addresses from their own on.
const READERS: [&str; 2] = ["_Unwind_Backtrace", "uw_init_context_1"];

/// Whether a function with this name reads its own return address to find its caller.
pub fn reads_callers(name: &str) -> bool {
    SEARCHES.contains(&name) || READERS.contains(&name)
}

/// A file with such functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwinder {
    /// Of the file, where it is read.
    pub path: PathBuf,
    /// GNU build-id; empty if the file has none.
    pub build_id: Vec<u8>,
    /// Of a file without one.
    pub code: Option<CodeSum>,
    /// Places in the file of functions that search.
    pub searches: Vec<u64>,
    /// Places in the file of functions that are called first where an exception is caught.
    pub catches: Vec<u64>,
    /// The program, or one of the libraries that it is started with, has or needs it.
    pub is_needed: bool,
}

impl Unwinder {
    /// That in a file; `described`: the one that has its symbols.
    pub(crate) fn of(path: &Path, mapped: &Elf, described: &Elf) -> Option<Unwinder> {
        let places = |is_one: fn(&str) -> bool| -> Vec<u64> {
            let found = [described, mapped].into_iter().flat_map(|elf| elf.functions_where(is_one));
            let steppable = found.filter(|at| !mapped.is_unsteppable(*at));
            let places: BTreeSet<u64> = steppable.filter_map(|at| mapped.file_offset(at.offset)).collect();
            places.into_iter().collect()
        };
        let searches = places(|name| SEARCHES.contains(&name));
        let catches = places(|name| CATCHES.contains(&name) || name.ends_with(MANGLED_CATCH));
        if searches.is_empty() && catches.is_empty() {
            return None;
        }
        let build_id = mapped.build_id().to_vec();
        let code = if build_id.is_empty() { code_sum(path).ok().flatten() } else { None };
        Some(Unwinder { path: path.to_path_buf(), build_id, code, searches, catches, is_needed: true })
    }
}
