// SPDX-License-Identifier: GPL-2.0-or-later

//! What the last `=~` or `!~` of a handler run matched.

use super::{Builtin, builtin};

/// The builtins of this subject.
pub(super) const BUILTINS: &[Builtin] = &[
    builtin!("matched" "matched" ("n": Long) -> String [fails pure groups] "the text of group N of the last =~ or !~, 0 for the whole match; an error if it did not match"),
    builtin!("matched_str" "matched_str" () -> String [fails pure groups] "the text that the last =~ or !~ matched; an error if it did not match"),
    builtin!("ngroups" "ngroups" () -> Long [fails pure groups] "groups in the pattern of the last =~ or !~, all of it included; an error if it did not match"),
];
