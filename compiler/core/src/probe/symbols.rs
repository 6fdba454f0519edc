// SPDX-License-Identifier: GPL-2.0-or-later

//! What symbols and code alone say of a program's function: whether it is one, and returns as others do.

use spile_debuginfo::target::Object;
use spile_debuginfo::{Address, Returning};

/// Why a pattern for returns leaves out a function that debug information does not have.
pub(super) fn refusal_of_return(object: &Object, at: Address) -> Option<&'static str> {
    match object.returning(at)? {
        Returning::Usual => None,
        Returning::Uses => Some(USES),
        // That a C compiler has made it is known only of what debug information describes.
        Returning::Jumps => object.is_symbols().then_some(UNKNOWN),
        Returning::Unknown => Some(UNKNOWN),
    }
}

/// Why a function that keeps its return address, as `setjmp()` does, is left out.
const USES: &str = "its code uses its return address otherwise than to return to it, so it would break with another one there: name it";

const UNKNOWN: &str = "nothing in its code shows that it returns: name it";

/// Why a part of a function is not probed as if it were one.
pub(super) fn refusal_of_part(symbol: &str) -> Option<&'static str> {
    const PART: &str = "it is a part of a function, which that jumps to";
    symbol.contains(".cold").then_some(PART)
}
