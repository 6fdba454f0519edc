// SPDX-License-Identifier: GPL-2.0-or-later

//! What a print leaves to the loader: formatting, and names of addresses, which cost the kernel thousands of instructions
//! each. Functions that only return such a value are seen through, like those of the library.

use spile_abi::format::Named;

use super::tables;
use crate::builtin::Builtin;
use crate::program::{
    Expr, Function, FunctionBody, LongExpr, LongKind, PrintPiece, Program, Stmt, StmtKind, StringExpr, StringKind,
    Variable,
};

/// Depth of functions that only call another one: the limit ends recursion.
const MOST_DEPTH: u32 = 4;

/// The argument of a `%s` that is derived from addresses.
pub(super) struct Names<'e> {
    /// How the loader names the addresses.
    pub conversion: Named,
    /// Expressions to evaluate for it, in order.
    pub exprs: Vec<&'e Expr>,
    /// The addresses to name.
    pub of: NamedAddress,
}

/// The addresses to name.
#[derive(Clone, Copy)]
pub(super) enum NamedAddress {
    /// The first expression's value.
    Address,
    /// The same of user space.
    UserAddress,
    /// Of the current stack; if not of the whole, from the first expression's value on, the second's at the most.
    Stack { user: bool, whole: bool },
    /// Frames of the user stack.
    UserStack,
    /// Those in the text that the first expression is.
    Text,
    /// The same, of the kernel.
    KernelText,
}

impl Names<'_> {
    /// Whether the address is a number that the script has stored: other code may be at the address now.
    pub(super) fn is_stored(&self) -> bool {
        matches!((self.of, self.exprs.as_slice()), (NamedAddress::Address, [Expr::Long(address)]) if is_stored(address))
    }
}

fn is_stored(expr: &LongExpr) -> bool {
    match &expr.kind {
        LongKind::Variable(_) | LongKind::Element(..) => true,
        LongKind::Binary(_, left, right) => is_stored(left) || is_stored(right),
        LongKind::Conditional(_, then, otherwise) => is_stored(then) || is_stored(otherwise),
        LongKind::Assign(_, value) => is_stored(value),
        _ => false,
    }
}

/// A plain `%s`: its argument's text replaces it in the format.
pub(crate) fn is_plain(piece: &PrintPiece) -> bool {
    matches!(piece, PrintPiece::Directive { directive, .. } if *directive == tables::plain_string())
}

/// The pieces, with formats that are the argument of a plain `%s` expanded in place.
pub(crate) fn flatten<'e>(program: &'e Program, pieces: &'e [PrintPiece], flat: &mut Vec<&'e PrintPiece>) {
    flatten_in(program, pieces, flat, 0);
}

fn flatten_in<'e>(program: &'e Program, pieces: &'e [PrintPiece], flat: &mut Vec<&'e PrintPiece>, depth: u32) {
    for piece in pieces {
        let inner = match piece {
            PrintPiece::Directive { argument, .. } if is_plain(piece) => format_of(program, argument, depth),
            _ => None,
        };
        match inner {
            Some((inner, depth)) => flatten_in(program, inner, flat, depth),
            None => flat.push(piece),
        }
    }
}

/// The format that the expression is, with the depth of functions where it was found.
pub(crate) fn format_of<'e>(program: &'e Program, expr: &'e Expr, depth: u32) -> Option<(&'e [PrintPiece], u32)> {
    let Expr::String(StringExpr { kind, .. }) = expr else { return None };
    match kind {
        StringKind::Format(inner) if !inner.pieces.iter().any(may_be_nul) => Some((&inner.pieces, depth)),
        StringKind::Call(function, _) if depth < MOST_DEPTH => {
            let called = program.functions.get(function.index())?;
            format_of(program, returned(called).filter(|_| is_open(called))?, depth + 1)
        }
        _ => None,
    }
}

/// Whether its text may have a NUL, where a string ends: the text of a format that is printed directly does not.
fn may_be_nul(piece: &PrintPiece) -> bool {
    let PrintPiece::Directive { directive, argument, .. } = piece else { return false };
    match directive.conversion {
        b'c' => !matches!(argument, Expr::Long(LongExpr { kind: LongKind::Const(code), .. }) if code & 0xff != 0),
        conversion => matches!(conversion, b'b' | b'm'),
    }
}

/// Whether what the function returns can be evaluated at the call: its own variables, including parameters, do not exist there.
pub(crate) fn is_open(function: &Function) -> bool {
    function.locals.is_empty() && function.site.is_none()
}

/// The piece that replaces it if it only names addresses.
pub(super) fn names<'e>(program: &'e Program, piece: &'e PrintPiece) -> Option<Names<'e>> {
    let PrintPiece::Directive { directive, argument, .. } = piece else { return None };
    if directive.conversion != b's' {
        return None;
    }
    let (symbol, arguments) = call(program, argument)?;
    let part = |user| NamedAddress::Stack { user, whole: false };
    let (conversion, of) = match symbol {
        "symname" => (Named::Symbol, NamedAddress::Address),
        "symdata" => (Named::Data, NamedAddress::Address),
        "modname" => (Named::Module, NamedAddress::Address),
        "__stack_addresses" => (Named::Addresses, part(false)),
        "__sprint_stack" => (Named::Stack, NamedAddress::Stack { user: false, whole: true }),
        "__sprint_addresses" => (Named::StoredStack, NamedAddress::KernelText),
        "usymname" => (Named::UserSymbol, NamedAddress::UserAddress),
        "usymdata" => (Named::UserData, NamedAddress::UserAddress),
        "usymfile" => (Named::UserFile, NamedAddress::UserAddress),
        "usymline" => (Named::UserLine, NamedAddress::UserAddress),
        "usymfileline" => (Named::UserFileLine, NamedAddress::UserAddress),
        "umodbuildid" => (Named::UserBuildId, NamedAddress::UserAddress),
        "__user_stack_addresses" => (Named::Addresses, part(true)),
        "__sprint_user_stack" => (Named::UserStack, NamedAddress::UserStack),
        "__sprint_user_addresses" => (Named::UserText, NamedAddress::Text),
        "fold_ustack" => (Named::UserFolded, NamedAddress::Text),
        _ => return None,
    };
    Some(Names { conversion, exprs: arguments, of })
}

/// The builtin that the expression calls, directly or through a function that does nothing else, with its arguments.
fn call<'e>(program: &'e Program, expr: &'e Expr) -> Option<(&'static str, Vec<&'e Expr>)> {
    // A name is a string.
    let Expr::String(StringExpr { kind, .. }) = expr else { return None };
    match kind {
        StringKind::Builtin(builtin, arguments) => Some((builtin.symbol, arguments.iter().collect())),
        StringKind::Call(function, given) => {
            let (builtin, arguments) = handed_to(program.functions.get(function.index())?)?;
            let mut rest = given.iter();
            let handed = arguments.iter().map(|argument| match own_local(argument) {
                None => Some(argument),
                Some(_) => rest.next(),
            });
            let handed = handed.collect::<Option<Vec<_>>>()?;
            rest.next().is_none().then_some((builtin.symbol, handed))
        }
        _ => None,
    }
}

/// The builtin that the function only hands its parameters to, each once and in order, so that they are evaluated as in the call,
/// and numbers.
pub(crate) fn handed_to(function: &Function) -> Option<(&'static Builtin, &[Expr])> {
    let Expr::String(StringExpr { kind: StringKind::Builtin(builtin, arguments), .. }) = returned(function)? else {
        return None;
    };
    let is_number = |argument: &Expr| matches!(argument, Expr::Long(LongExpr { kind: LongKind::Const(_), .. }));
    let mut parameters = 0..function.parameters;
    let fits = arguments.iter().all(|argument| match own_local(argument) {
        Some(local) => parameters.next() == Some(local),
        None => is_number(argument),
    });
    (fits && parameters.next().is_none()).then_some((builtin, arguments))
}

/// The local variable that the expression is.
fn own_local(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Long(LongExpr { kind: LongKind::Variable(Variable::Local(local)), .. })
        | Expr::String(StringExpr { kind: StringKind::Variable(Variable::Local(local)), .. }) => Some(local.index()),
        _ => None,
    }
}

/// The value of a function that only returns it.
pub(crate) fn returned(function: &Function) -> Option<&Expr> {
    match &function.body {
        FunctionBody::Script(statements) => match statements.as_slice() {
            [Stmt { kind: StmtKind::Return(Some(value)), .. }] => Some(value),
            _ => None,
        },
        FunctionBody::EmbeddedC(_) => None,
    }
}
