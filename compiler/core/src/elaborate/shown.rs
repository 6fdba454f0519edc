// SPDX-License-Identifier: GPL-2.0-or-later

//! The kinds of arguments that the handlers of system calls show. The library's function that shows an argument has a branch
//! for each of some 200 kinds, and their functions; a script that has a few calls gets a few of them.

use std::collections::BTreeSet;

use super::environment::Environment;
use super::unit::Handler;
use crate::syscalls;
use spile_source::Origin;
use spile_syntax::ast::{self, Expr, ExprKind, FunctionBody, Item};
use spile_syntax::visit;

/// The numbers of the kinds; None if they are not known, because a kind is computed, or a function that is not in the
/// compiler's own library shows one.
pub(super) fn find(env: &Environment, handlers: &[Handler], scripts: &[ast::Script]) -> Option<BTreeSet<u8>> {
    let mut shown = BTreeSet::new();
    let mut known = true;
    let is_own = |file| env.sources.file(file).origin == Origin::Tapset;
    for item in scripts.iter().flat_map(|script| &script.items) {
        let Item::Function(function) = item else { continue };
        let FunctionBody::Script(block) = &function.body else { continue };
        if !is_own(function.name.span.file) {
            visit::expressions(block, &mut |expr| {
                known &= !matches!(&expr.kind, ExprKind::Call(name, _) if name.text.starts_with(syscalls::FUNCTIONS));
            });
        }
    }
    for statement in handlers.iter().flat_map(|handler| &handler.body) {
        visit::in_statement(statement, &mut |expr| match &expr.kind {
            ExprKind::Call(name, arguments) if name.text == syscalls::ARGSTR => match arguments.as_slice() {
                [Expr { kind: ExprKind::Number(kinds), .. }] => shown.extend(syscalls::kinds(*kinds)),
                _ => known = false,
            },
            _ => {}
        });
    }
    known.then_some(shown)
}

/// The value of `__syscall_shown(FROM, TO)`: whether one of these kinds is shown. None for another expression.
pub(super) fn value(shown: Option<&BTreeSet<u8>>, expr: &Expr) -> Option<i64> {
    let ExprKind::Call(name, arguments) = &expr.kind else { return None };
    match arguments.as_slice() {
        [Expr { kind: ExprKind::Number(from), .. }, Expr { kind: ExprKind::Number(to), .. }]
            if name.text == syscalls::SHOWN =>
        {
            let within = |kind: &u8| (*from..=*to).contains(&i64::from(*kind));
            Some(i64::from(shown.is_none_or(|shown| shown.iter().any(within))))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spile_source::{FileId, Span};
    use spile_syntax::ast::Name;

    fn shown(from: i64, to: i64, all: Option<&[u8]>) -> Option<i64> {
        let span = Span::new(FileId(0), 0, 0);
        let number = |value| Expr { kind: ExprKind::Number(value), span };
        let call = ExprKind::Call(Name { text: syscalls::SHOWN.into(), span }, vec![number(from), number(to)]);
        let all = all.map(|all| all.iter().copied().collect());
        value(all.as_ref(), &Expr { kind: call, span })
    }

    #[test]
    fn branches_of_kinds_that_are_not_shown() {
        assert_eq!(shown(3, 5, Some(&[2, 6])), Some(0));
        assert_eq!(shown(3, 5, Some(&[5])), Some(1));
        assert_eq!(shown(3, 3, Some(&[3])), Some(1));
        assert_eq!(shown(3, 5, None), Some(1));
    }
}
