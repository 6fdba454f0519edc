// SPDX-License-Identifier: GPL-2.0-or-later

//! Floating-point numbers, passed as the bits of a 64-bit number.

use super::{Builtin, builtin};

/// The builtins of this subject.
pub(super) const BUILTINS: &[Builtin] = &[
    builtin!("fp_add" "fp_add" ("add1": Long, "add2": Long) -> Long [pure] "sum of two floating point numbers"),
    builtin!("fp_sub" "fp_sub" ("sub1": Long, "sub2": Long) -> Long [pure] "difference of two floating point numbers"),
    builtin!("fp_mul" "fp_mul" ("mul1": Long, "mul2": Long) -> Long [pure] "product of two floating point numbers"),
    builtin!("fp_div" "fp_div" ("div1": Long, "div2": Long) -> Long [pure] "quotient of two floating point numbers"),
    builtin!("fp_rem" "fp_rem" ("div1": Long, "div2": Long) -> Long [pure] "remainder of the first floating point number to the nearest whole multiple of the second"),
    builtin!("fp_sqrt" "fp_sqrt" ("infp": Long) -> Long [pure] "square root of a floating point number"),
    builtin!("fp_eq" "fp_eq" ("infp1": Long, "infp2": Long) -> Long [pure] "1 if two floating point numbers are equal"),
    builtin!("fp_le" "fp_le" ("infp1": Long, "infp2": Long) -> Long [pure] "1 if the first floating point number is not above the second"),
    builtin!("fp_lt" "fp_lt" ("infp1": Long, "infp2": Long) -> Long [pure] "1 if the first floating point number is below the second"),
    builtin!("long_to_fp" "long_to_fp" ("input": Long) -> Long [pure] "floating point number of a whole number"),
    builtin!("fp32_to_fp64" "fp32_to_fp64" ("input": Long) -> Long [pure] "floating point number of the bits of a C float"),
    builtin!("fp_to_long" "fp_to_long" ("infp": Long, "rounding": Long, "exact": Long) -> Long [pure] "whole number of a floating point number; rounding 0: nearest, 1: towards zero, 2: down, 3: up, 4: nearest, halves away from zero, 6: to odd"),
    builtin!("fp_to_string" "fp_to_string" ("infp": Long, "precision": Long) -> String [pure] "a floating point number in decimal, with this many digits after the point"),
    builtin!("string_to_fp" "string_to_fp" ("input": String) -> Long [pure] "floating point number of its text in decimal"),
];
