// SPDX-License-Identifier: GPL-2.0-or-later

//! What must not happen.

use std::fmt;

use spile_source::Span;

/// The program breaks a rule of [`crate::program`]: a mistake of the compiler, whatever the script contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InternalError {
    /// What was found where something else must be.
    pub what: &'static str,
    /// The statement or expression of the script.
    pub span: Span,
}

/// What a step of planning gives.
pub(super) type Planned<T> = Result<T, InternalError>;

impl InternalError {
    pub(super) fn new(what: &'static str, span: Span) -> InternalError {
        InternalError { what, span }
    }
}

impl fmt::Display for InternalError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "internal error: {}", self.what)
    }
}

impl std::error::Error for InternalError {}

#[cfg(test)]
mod tests {
    use crate::plan::{Limits, Naming, plan};
    use crate::program::{
        Attachment, BinaryOp, Element, Expr, ExprKind, Global, GlobalId, Holds, Label, Mechanism, Probe, Program, Stmt,
        StmtKind, Type, Variable,
    };
    use spile_source::{Origin, SourceMap, Span};

    fn of(kind: ExprKind, ty: Type, span: Span) -> Expr {
        Expr { kind, ty, span }
    }

    /// The error of planning a handler that evaluates the expression. Global 0 is a number, 1 an array of strings by numbers.
    fn planned(build: impl FnOnce(Span) -> Expr) -> Result<(), &'static str> {
        static NEVER: Mechanism = Mechanism::new("SPILE_PROBE_NEVER", Label::Word("never"));
        let mut sources = SourceMap::new();
        let span = Span::new(sources.add("t.stp", b"probe never { x }".to_vec(), Origin::User), 14, 15);
        let global = |name: &str, ty, keys| Global {
            name: name.into(),
            holds: Holds::Value(ty),
            keys,
            size: None,
            wrap: false,
            initial: None,
            span,
        };
        let probe = Probe {
            point: "never".into(),
            script_point: "never".into(),
            function: String::new(),
            module: String::new(),
            attachment: Attachment::new(&NEVER),
            locals: Vec::new(),
            saved: Vec::new(),
            body: vec![Stmt { kind: StmtKind::Expr(build(span)), span }],
            span,
        };
        let program = Program {
            globals: vec![global("n", Type::Long, Vec::new()), global("a", Type::String, vec![Type::Long])],
            probes: vec![probe],
            ..Program::default()
        };
        let naming = Naming {
            module: "t".into(),
            title: "t.stp".into(),
            kernel_release: "6.1.0".into(),
            guru: false,
            limits: Limits::default(),
            modinfo: Vec::new(),
            defines: Vec::new(),
        };
        plan(&program, &sources, naming).map(|_| ()).map_err(|error| error.what)
    }

    #[test]
    fn numbers_and_strings_are_never_taken_for_each_other() {
        let text = |span| of(ExprKind::String(b"x".to_vec()), Type::String, span);
        let long = |span| of(ExprKind::Long(1), Type::Long, span);
        let both = |op, left, right, span| of(ExprKind::Binary(op, Box::new(left), Box::new(right)), Type::Long, span);
        let element = |key, span| Element { global: GlobalId(1), keys: vec![key], span };
        assert_eq!(planned(long), Ok(()));
        assert_eq!(
            planned(|span| of(ExprKind::Negate(Box::new(text(span))), Type::Long, span)),
            Err("a string where a number belongs")
        );
        assert_eq!(
            planned(|span| both(BinaryOp::Concatenate, text(span), long(span), span)),
            Err("a number where a string belongs")
        );
        assert_eq!(planned(|span| both(BinaryOp::Add, text(span), text(span), span)), Err("arithmetic with strings"));
        assert_eq!(
            planned(|span| of(ExprKind::Variable(Variable::Global(GlobalId(1))), Type::String, span)),
            Err("an array where a variable belongs")
        );
        assert_eq!(
            planned(|span| of(ExprKind::Element(element(text(span), span)), Type::String, span)),
            Err("keys of other types than the array has")
        );
        assert_eq!(
            planned(|span| of(ExprKind::Element(element(long(span), span)), Type::Long, span)),
            Err("an operation on values of another type than the array has")
        );
        assert_eq!(planned(|span| of(ExprKind::Element(element(long(span), span)), Type::String, span)), Ok(()));
    }
}
