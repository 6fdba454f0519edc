// SPDX-License-Identifier: GPL-2.0-or-later

//! Strings.

use super::{Builtin, builtin};

/// The builtins of this subject.
pub(super) const BUILTINS: &[Builtin] = &[
    builtin!("strlen" "strlen" ("text": String) -> Long [pure fixed] "bytes in the string"),
    builtin!("substr" "substr" ("text": String, "start": Long, "length": Long) -> String [pure fixed] "part of a string, from a byte counted from 0"),
    builtin!("isinstr" "isinstr" ("text": String, "part": String) -> Long [fails pure] "1 if the second string occurs in the first"),
    builtin!("strpos" "strpos" ("text": String, "part": String) -> Long [fails pure] "where the second string first occurs in the first, from 0; -1 if it does not"),
    builtin!("stringat" "stringat" ("text": String, "position": Long) -> Long [fails pure] "the byte at a position, counted from 0"),
    builtin!("strtol" "strtol" ("text": String, "base": Long) -> Long [pure fixed] "the number at the string's start; base 0: as C writes it"),
    builtin!("str_replace" "str_replace" ("text": String, "part": String, "by": String) -> String [fails pure] "each occurrence of the second string replaced by the third"),
    builtin!("isdigit" "isdigit" ("text": String) -> Long [pure fixed] "1 if the string begins with a decimal digit"),
    builtin!("text_str" "text_str" ("text": String) -> String [pure fixed] "the string with what cannot be printed as C's escapes"),
    builtin!("text_strn" "text_strn" ("text": String, "length": Long, "quoted": Long) -> String [pure fixed] "the same, at most this many bytes (0: any number), in quotes if asked; ... after them if it was cut"),
    builtin!("tokenize" "tokenize" ("text": String, "delimiters": String) -> String [fails] "the first part of the string between delimiters; of an empty string: the next part of the one before"),
    builtin!("tokenize" "tokenize_next" ("delimiters": String) -> String [fails] "the next part of the string that tokenize began with in this handler run; empty when there is none"),
    builtin!("big_endian2" "big_endian2" ("number": Long) -> Long [pure fixed] "two bytes to or from big-endian order"),
    builtin!("big_endian4" "big_endian4" ("number": Long) -> Long [pure fixed] "four bytes to or from big-endian order"),
    builtin!("big_endian8" "big_endian8" ("number": Long) -> Long [pure fixed] "eight bytes to or from big-endian order"),
    builtin!("little_endian2" "little_endian2" ("number": Long) -> Long [pure fixed] "two bytes to or from little-endian order"),
    builtin!("little_endian4" "little_endian4" ("number": Long) -> Long [pure fixed] "four bytes to or from little-endian order"),
    builtin!("little_endian8" "little_endian8" ("number": Long) -> Long [pure fixed] "eight bytes to or from little-endian order"),
    builtin!("string_quoted" "string_quoted" ("text": String) -> String [pure fixed] "the string in quotes, with C's escapes"),
];
