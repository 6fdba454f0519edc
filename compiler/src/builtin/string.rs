//! Strings.

use super::{Builtin, builtin};

pub(super) const BUILTINS: &[Builtin] = &[
    builtin!("strlen" "strlen" ("text": String) -> Long [pure] "bytes in the string"),
    builtin!("substr" "substr" ("text": String, "start": Long, "length": Long) -> String [pure] "part of a string, from a byte counted from 0"),
    builtin!("isinstr" "isinstr" ("text": String, "part": String) -> Long [pure] "1 if the second string occurs in the first"),
    builtin!("strpos" "strpos" ("text": String, "part": String) -> Long [pure] "where the second string first occurs in the first, from 0; -1 if it does not"),
    builtin!("stringat" "stringat" ("text": String, "position": Long) -> Long [fails pure] "the byte at a position, counted from 0"),
    builtin!("strtol" "strtol" ("text": String, "base": Long) -> Long [pure] "the number at the string's start; base 0: as C writes it"),
    builtin!("str_replace" "str_replace" ("text": String, "part": String, "by": String) -> String [pure] "each occurrence of the second string replaced by the third"),
    builtin!("string_quoted" "string_quoted" ("text": String) -> String [pure] "the string in quotes, with C's escapes"),
];
