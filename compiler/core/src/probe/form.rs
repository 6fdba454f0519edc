// SPDX-License-Identifier: GPL-2.0-or-later

//! The forms of probe points, and matching a point's components with them.

use spile_source::Span;
use spile_syntax::ast::{Component, Literal};

/// One form of probe point: `kernel.function(string).return`.
pub struct Form {
    /// Components with `(string)` or `(number)` where they take an argument.
    pub spelling: &'static str,
    /// One line for listings and the manual.
    pub doc: &'static str,
}

/// A probe point that matches a form.
pub struct Point<'p> {
    /// The form that the point fits.
    pub form: &'static Form,
    /// The point's components, as many as in the form.
    pub components: &'p [Component],
}

impl Point<'_> {
    /// Place of the first component.
    pub(super) fn span(&self) -> Span {
        self.components.first().map_or(Span::none(), |component| component.span)
    }

    /// The first component of that name.
    pub(super) fn component(&self, name: &str) -> Option<&Component> {
        self.components.iter().find(|component| component.name == name)
    }

    /// Whether the point has a component of that name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.component(name).is_some()
    }

    /// Argument and place of the component of that name; `None` if there is none, or its argument is not a number.
    pub(super) fn number(&self, name: &str) -> Option<(i64, Span)> {
        match self.component(name) {
            Some(Component { argument: Some(Literal::Number(value)), span, .. }) => Some((*value, *span)),
            _ => None,
        }
    }

    /// Argument and place of the component of that name; `None` if there is none, or its argument is not a string.
    pub(super) fn string(&self, name: &str) -> Option<(String, Span)> {
        match self.component(name) {
            Some(Component { argument: Some(Literal::String(bytes)), span, .. }) => {
                Some((String::from_utf8_lossy(bytes).into_owned(), *span))
            }
            _ => None,
        }
    }

    /// As written: `module("x").function("f").return`.
    pub fn spelling(&self) -> String {
        spelling(self.components)
    }
}

/// Components as written in a script.
pub fn spelling(components: &[Component]) -> String {
    let parts: Vec<String> = components
        .iter()
        .map(|component| match &component.argument {
            None => component.name.clone(),
            Some(Literal::Number(value)) => format!("{}({value})", component.name),
            Some(Literal::String(bytes)) => {
                format!("{}(\"{}\")", component.name, String::from_utf8_lossy(bytes).escape_debug())
            }
        })
        .collect();
    parts.join(".")
}

/// How far components match a form.
#[derive(PartialEq)]
pub(super) enum FormMatch {
    Whole,
    /// The first components match; the next one does not.
    Until(usize),
    /// Names match, but not the argument of this component.
    Argument(usize),
}

/// Compares the components of a point with the form, from the first one.
pub(super) fn fit(form: &Form, components: &[Component]) -> FormMatch {
    let parts: Vec<&str> = form.spelling.split('.').collect();
    for (index, component) in components.iter().enumerate() {
        let Some(part) = parts.get(index) else { return FormMatch::Until(index) };
        let (name, kind) = part.split_once('(').unwrap_or((part, ""));
        if name != component.name {
            return FormMatch::Until(index);
        }
        let fits = matches!(
            (&component.argument, kind),
            (None, "") | (Some(Literal::Number(_)), "number)") | (Some(Literal::String(_)), "string)")
        );
        if !fits {
            return FormMatch::Argument(index);
        }
    }
    if components.len() == parts.len() { FormMatch::Whole } else { FormMatch::Until(components.len()) }
}
