// SPDX-License-Identifier: GPL-2.0-or-later

//! `probefunc()` and `probemod()` where hits are anywhere in code, as those of a profile and of a watchpoint: the symbol and
//! the module of the address that was hit.

use super::Lowering;
use crate::builtin::{self, Builtin};
use crate::elaborate::unit::Handler;
use crate::program::{Expr, Privilege};
use spile_source::Span;

/// The builtin that tells of the address of a hit what `builtin` tells of the probe point. Called by a function, it does the latter
/// where the point names a function.
fn of_hit(builtin: &Builtin) -> Option<&'static str> {
    match builtin.name {
        "probefunc" => Some("__hit_function"),
        "probemod" => Some("__hit_module"),
        _ => None,
    }
}

/// The point names no function, and its hits are anywhere.
pub(super) fn is_nameless(handler: &Handler) -> bool {
    handler.site.function.is_empty() && handler.site.attachment.mechanism.anywhere
}

impl Lowering<'_, '_> {
    /// The call of a builtin by which the place of the hit is found where `builtin`, without arguments, knows none.
    /// None: it is called as it is.
    pub(super) fn symbol_of_hit(&self, builtin: &'static Builtin, span: Span) -> Option<Expr> {
        // A handler knows its probe; a function may be called by all.
        if !self.nameless.unwrap_or(self.some_nameless) || self.env.options.privilege == Privilege::Usr {
            return None;
        }
        Some(Expr::builtin(builtin::internal(of_hit(builtin)?)?, Vec::new(), span))
    }
}
