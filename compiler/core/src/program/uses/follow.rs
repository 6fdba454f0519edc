// SPDX-License-Identifier: GPL-2.0-or-later

//! Follows calls to the elements of an array that the called functions use.

use super::{CallSite, CodeSummary, Uses};
use crate::program::known_locals::{KnownLocals, Values};
use crate::program::{Expr, FunctionId, GlobalId, LocalId, LongExpr, LongKind, StringExpr, StringKind};

/// Follows calls to what functions do with an array.
pub(super) struct CallFollower<'w> {
    pub(super) functions: &'w [CodeSummary],
    pub(super) uses: &'w [Uses],
    pub(super) array: GlobalId,
    /// The functions that the calls lead through.
    pub(super) open: Vec<FunctionId>,
    /// So many more calls are followed.
    pub(super) left: u32,
}

impl CallFollower<'_> {
    /// Adds the keys of each element that the called function names, for the caller of the first call. `within`: the function that
    /// has the call, and its arguments; None: the first caller. None: it uses more than elements with known keys.
    pub(super) fn call(
        &mut self,
        site: &CallSite,
        within: Option<(&CodeSummary, &KnownLocals)>,
        elements: &mut Vec<Vec<Expr>>,
    ) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        if self.open.contains(&site.function) {
            return None;
        }
        let values = site.arguments.iter().enumerate();
        let values: Values =
            values.map(|(index, argument)| (LocalId(index as u32), passed(argument, within))).collect();
        let arguments = KnownLocals::of(values);
        let summary = &self.functions[site.function.index()];
        if summary.element_uses.has(self.array) {
            let used = summary.element_uses.of(self.array)?;
            elements
                .extend(used.iter().map(|element| element.keys.iter().map(|key| arguments.resolved(key)).collect()));
        }
        self.open.push(site.function);
        for inner in &summary.sites {
            if self.uses[inner.function.index()].contains_key(&self.array) {
                self.call(inner, Some((summary, &arguments)), elements)?;
            }
        }
        self.open.pop();
        Some(())
    }
}

/// An argument in terms of the first caller; if that is not known, an expression that no key can be.
fn passed(argument: &Expr, within: Option<(&CodeSummary, &KnownLocals)>) -> Expr {
    let is_known = within.is_none_or(|(caller, _)| caller.parameters.has(argument));
    let span = argument.span();
    match (argument, within) {
        (Expr::Long(_), _) if !is_known => Expr::Long(LongExpr { kind: LongKind::TookNext, span }),
        // A string that is no variable may be longer than what the parameter takes.
        (Expr::String(text), _) if !is_known || !matches!(text.kind, StringKind::Variable(_)) => {
            let unknown = || Box::new(text.clone());
            Expr::String(StringExpr { kind: StringKind::Concatenate(unknown(), unknown()), span })
        }
        (_, Some((_, arguments))) => arguments.resolved(argument),
        (_, None) => argument.clone(),
    }
}
