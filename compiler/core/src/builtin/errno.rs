// SPDX-License-Identifier: GPL-2.0-or-later

//! Error numbers.

use super::{Builtin, builtin};

/// The builtins of this subject.
pub(super) const BUILTINS: &[Builtin] = &[
    builtin!("errno_str" "errno_str" ("number": Long) -> String [pure] "name of an error number: ENOENT for 2 and -2; the number itself if it has no name"),
];
