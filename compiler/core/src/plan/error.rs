// SPDX-License-Identifier: GPL-2.0-or-later

//! Internal errors of planning. There is one kind, shown as one line: not worth thiserror in this crate.

use std::fmt;

use spile_source::Span;

/// The program violates a rule of [`crate::program`]: a mistake of the compiler, whatever the script contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InternalError {
    /// What was found, and what should be there.
    pub what: &'static str,
    /// The statement or expression of the script.
    pub span: Span,
}

/// The result of a step of planning.
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
    use crate::builtin;
    use crate::plan::{Limits, ModuleInfo, plan};
    use crate::program::{
        Attachment, Contents, Element, Expr, Global, GlobalId, Label, LongExpr, LongKind, LongPlace, Mechanism, Print,
        PrintPiece, Probe, Program, SavedId, Stmt, StmtKind, StringExpr, StringKind, StringPlace, Type, Variable,
    };
    use spile_abi::format::{Directive, Flags, Size};
    use spile_source::{Origin, SourceMap, Span};

    const NUMBER: Variable = Variable::Global(GlobalId(0));
    const ARRAY: Variable = Variable::Global(GlobalId(1));

    /// The error of planning a handler that evaluates the expression. Global 0 is a number, 1 an array of strings by numbers;
    /// saved value 0 is a number.
    fn planned(build: impl FnOnce(Span) -> Expr) -> Result<(), &'static str> {
        static NEVER: Mechanism = Mechanism::new("SPILE_PROBE_NEVER", Label::Word("never"));
        let mut sources = SourceMap::new();
        let span = Span::new(sources.add("t.stp", b"probe never { x }".to_vec(), Origin::User), 14, 15);
        let global = |name: &str, ty, keys| Global {
            name: name.into(),
            contents: Contents::Value(ty),
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
            saved: vec![LongExpr::constant(0, span).into()],
            body: vec![Stmt { kind: StmtKind::Expr(build(span)), span }],
            span,
        };
        let program = Program {
            globals: vec![global("n", Type::Long, Vec::new()), global("a", Type::String, vec![Type::Long])],
            probes: vec![probe],
            ..Program::default()
        };
        let info = ModuleInfo {
            module: "t".into(),
            title: "t.stp".into(),
            kernel_release: "6.1.0".into(),
            guru: false,
            privilege: Default::default(),
            limits: Limits::default(),
            modinfo: Vec::new(),
            defines: Vec::new(),
        };
        plan(&program, &sources, info).map(|_| ()).map_err(|error| error.what)
    }

    fn long(span: Span) -> Expr {
        LongExpr::constant(1, span).into()
    }

    fn text(span: Span) -> StringExpr {
        StringExpr::literal(b"x".to_vec(), span)
    }

    #[test]
    fn what_has_a_declaration_agrees_with_it() {
        let element = |key, span| Element { global: GlobalId(1), keys: vec![key], span };
        assert_eq!(planned(|span| Expr::variable(NUMBER, Type::Long, span)), Ok(()));
        assert_eq!(planned(|span| Expr::variable(NUMBER, Type::String, span)), Err("a number where a string belongs"));
        assert_eq!(planned(|span| Expr::variable(ARRAY, Type::String, span)), Err("an array where a variable belongs"));
        assert_eq!(planned(|span| Expr::element(element(long(span), span), Type::String, span)), Ok(()));
        assert_eq!(
            planned(|span| Expr::element(element(text(span).into(), span), Type::String, span)),
            Err("keys of other types than the array has")
        );
        assert_eq!(
            planned(|span| Expr::element(element(long(span), span), Type::Long, span)),
            Err("an operation on values of another type than the array has")
        );
        assert_eq!(planned(|span| Expr::saved(SavedId(0), Type::Long, span)), Ok(()));
        assert_eq!(
            planned(|span| Expr::saved(SavedId(0), Type::String, span)),
            Err("a value of another type than was saved")
        );
    }

    #[test]
    fn places_hold_what_is_assigned() {
        let number = |place, span| {
            let kind = LongKind::Assign(Box::new(place), Box::new(LongExpr::constant(1, span)));
            LongExpr { kind, span }.into()
        };
        let string =
            |place, span| StringExpr { kind: StringKind::Assign(Box::new(place), Box::new(text(span))), span }.into();
        let element = |span| Element { global: GlobalId(1), keys: vec![long(span)], span };
        assert_eq!(planned(|span| number(LongPlace::Variable(NUMBER), span)), Ok(()));
        assert_eq!(planned(|span| string(StringPlace::Variable(NUMBER), span)), Err("a string stored to a number"));
        assert_eq!(planned(|span| string(StringPlace::Element(element(span)), span)), Ok(()));
        assert_eq!(
            planned(|span| number(LongPlace::Element(element(span)), span)),
            Err("an operation on values of another type than the array has")
        );
    }

    #[test]
    fn directives_have_arguments_of_their_type() {
        let print = |conversion, argument, span| {
            let (flags, width, precision) = (Flags::default(), Size::None, Size::None);
            let directive = Directive { conversion, flags, width, precision };
            let pieces =
                vec![PrintPiece::Directive { directive, width: None, precision: None, argument, name: String::new() }];
            LongExpr { kind: LongKind::Print(Box::new(Print { pieces })), span }.into()
        };
        assert_eq!(planned(|span| print(b'd', long(span), span)), Ok(()));
        assert_eq!(planned(|span| print(b's', long(span), span)), Err("a number where a string belongs"));
        assert_eq!(planned(|span| print(b'd', text(span).into(), span)), Err("a string where a number belongs"));
    }

    #[test]
    fn calls_give_what_they_return() {
        let builtin = builtin::find("pid", 0).expect("is there");
        let call = |span| LongExpr { kind: LongKind::Builtin(builtin, Vec::new()), span }.into();
        assert_eq!(planned(call), Ok(()));
        let string = |span| StringExpr { kind: StringKind::Builtin(builtin, Vec::new()), span }.into();
        assert_eq!(planned(string), Err("a number where a string belongs"));
    }

    #[test]
    fn arguments_have_the_types_of_parameters() {
        let strlen = |arguments, span| Expr::builtin(builtin::find("strlen", 1).expect("is there"), arguments, span);
        assert_eq!(planned(|span| strlen(vec![text(span).into()], span)), Ok(()));
        let wrong = Err("arguments of other types than the function takes");
        assert_eq!(planned(|span| strlen(vec![long(span)], span)), wrong);
        assert_eq!(planned(|span| strlen(Vec::new(), span)), wrong);
    }
}
