// SPDX-License-Identifier: GPL-2.0-or-later

//! `probefunc()` and `probemod()` where the probe point names no function: the symbol and the module of the address that was
//! hit. That is all that a profile has.

use super::Lowering;
use crate::builtin::{self, Builtin};
use crate::elaborate::unit::Handler;
use crate::program::{Comparison, Expr, LongExpr, LongKind, Privilege, Registers, Runs, StringExpr, StringKind};
use spile_source::Span;

/// The builtin that tells of an address of the kernel what `builtin` tells of the probed function. Of other addresses both give
/// the address or that they do not know it.
fn of_address(builtin: &Builtin) -> Option<&'static str> {
    match builtin.name {
        "probefunc" => Some("symname"),
        "probemod" => Some("modname"),
        _ => None,
    }
}

/// The point names no function, and its hits are somewhere in code.
pub(super) fn is_nameless(handler: &Handler) -> bool {
    let mechanism = handler.site.attachment.mechanism;
    handler.site.function.is_empty() && mechanism.registers != Registers::Arguments && mechanism.runs != Runs::Alone
}

fn call(name: &str, arguments: Vec<Expr>, span: Span) -> Option<Expr> {
    Some(Expr::builtin(builtin::find(name, arguments.len())?, arguments, span))
}

fn choose(condition: LongExpr, then: StringExpr, otherwise: StringExpr, span: Span) -> StringExpr {
    let kind = StringKind::Conditional(Box::new(condition), Box::new(then), Box::new(otherwise));
    StringExpr { kind, span }
}

impl Lowering<'_, '_> {
    /// The call of a builtin by which the place of the hit is found where `builtin`, without arguments, knows none.
    /// None: it is called as it is.
    pub(super) fn symbol_of_hit(&self, builtin: &'static Builtin, span: Span) -> Option<Expr> {
        let of_address = of_address(builtin)?;
        // A handler knows its probe; a function may be called by all.
        if !self.nameless.unwrap_or(self.some_nameless) || self.env.options.privilege == Privilege::Usr {
            return None;
        }
        let long = |name| call(name, Vec::new(), span)?.long();
        let symbol = call(of_address, vec![long("addr")?.into()], span)?.string()?;
        if self.nameless.is_some() {
            return Some(symbol.into());
        }
        let nothing = || StringExpr::literal(Vec::new(), span);
        let known = || call(builtin.name, Vec::new(), span)?.string();
        let kind = LongKind::Compare(Comparison::NotEqual, Box::new(known()?), Box::new(nothing()));
        let symbol = choose(long("addr")?, symbol, nothing(), span);
        Some(choose(LongExpr { kind, span }, known()?, symbol, span).into())
    }
}
