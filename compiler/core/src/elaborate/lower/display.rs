// SPDX-License-Identifier: GPL-2.0-or-later

//! What a session prints at its end without being asked: globals of the script that are written and never read.

use super::Lowering;
use super::print::plain;
use crate::probe;
use crate::program::{
    Contents, Element, Expr, Extractor, Foreach, Global, GlobalId, Iterated, Local, LocalId, LongExpr, LongKind, Order,
    Print, PrintPiece, Probe, SortBy, Stmt, StmtKind, Type, Variable,
};
use spile_source::{Origin, Span};

impl Lowering<'_, '_> {
    /// An end probe, after all others, that prints them; None if there are none.
    pub(super) fn display_globals(&mut self) -> Option<Probe> {
        let mut locals = Vec::new();
        let mut body = Vec::new();
        let mut first = None;
        for index in 0..self.typed.globals.len() {
            let (declared, known) = (self.names.globals[index], &self.typed.globals[index]);
            let is_own = self.env.sources.file(declared.span.file).origin == Origin::User;
            if !is_own || !known.written || known.read {
                continue;
            }
            let global = self.lower_global(GlobalId(index as u32));
            first.get_or_insert(global.span);
            body.push(display(GlobalId(index as u32), &global, &mut locals));
        }
        first.map(|span| Probe {
            point: "end".into(),
            script_point: "end".into(),
            function: String::new(),
            module: String::new(),
            attachment: probe::end(i64::MAX),
            locals,
            saved: Vec::new(),
            body,
            span,
        })
    }
}

fn display(id: GlobalId, global: &Global, locals: &mut Vec<Local>) -> Stmt {
    let span = global.span;
    let name = &global.name;
    if !global.is_array() {
        return match global.contents {
            Contents::Value(ty) => {
                let value = Expr::variable(Variable::Global(id), ty, span);
                print([text(format!("{name}=")), quoted(value), text("\n".into())].concat(), span)
            }
            Contents::Stats(_) => {
                stats(&Element { global: id, keys: Vec::new(), span }, [text(name.clone())].concat(), span)
            }
        };
    }
    let mut fresh = |ty| {
        locals.push(Local { name: format!("key{}", locals.len()), ty });
        LocalId(locals.len() as u32 - 1)
    };
    let keys: Vec<(LocalId, Type)> = global.keys.iter().map(|&ty| (fresh(ty), ty)).collect();
    let read = |&(local, ty): &(LocalId, Type)| Expr::variable(Variable::Local(local), ty, span);
    let mut head = text(format!("{name}["));
    for (number, key) in keys.iter().enumerate() {
        if number > 0 {
            head.extend(text(",".into()));
        }
        head.extend(quoted(read(key)));
    }
    head.extend(text("]".into()));
    let (value, by, body) = match global.contents {
        Contents::Value(ty) => {
            let value = (fresh(ty), ty);
            head.extend(text("=".into()));
            head.extend(quoted(read(&value)));
            head.extend(text("\n".into()));
            (Some(Variable::Local(value.0)), SortBy::Value, print(head, span))
        }
        Contents::Stats(_) => {
            let element = Element { global: id, keys: keys.iter().map(read).collect(), span };
            (None, SortBy::Extractor(Extractor::Count), stats(&element, head, span))
        }
    };
    let foreach = Foreach {
        over: Iterated::Array(id),
        keys: keys.iter().map(|&(local, _)| Variable::Local(local)).collect(),
        value,
        slice: Vec::new(),
        sort: Some((by, Order::Descending)),
        limit: None,
        body,
    };
    Stmt { kind: StmtKind::Foreach(Box::new(foreach)), span }
}

fn text(text: String) -> Vec<PrintPiece> {
    vec![PrintPiece::Literal(text.into_bytes())]
}

/// A value, strings in quotes.
fn quoted(value: Expr) -> Vec<PrintPiece> {
    match value.ty() {
        Type::Long => vec![plain(value)],
        Type::String => vec![PrintPiece::Literal(b"\"".to_vec()), plain(value), PrintPiece::Literal(b"\"".to_vec())],
    }
}

fn print(pieces: Vec<PrintPiece>, span: Span) -> Stmt {
    let kind = LongKind::Print(Box::new(Print { pieces }));
    Stmt { kind: StmtKind::Expr(LongExpr { kind, span }.into()), span }
}

/// `head @count=2 @min=4 @max=8 @sum=12 @avg=6`; without values `head @count=0x0`.
fn stats(element: &Element, head: Vec<PrintPiece>, span: Span) -> Stmt {
    let extract = |extractor| LongExpr { kind: LongKind::Extract { aggregate: element.clone(), extractor }, span };
    let mut pieces = head.clone();
    let extractors = [
        (Extractor::Count, "count"),
        (Extractor::Min, "min"),
        (Extractor::Max, "max"),
        (Extractor::Sum, "sum"),
        (Extractor::Average, "avg"),
    ];
    for (extractor, word) in extractors {
        pieces.extend(text(format!(" @{word}=")));
        pieces.push(plain(extract(extractor).into()));
    }
    pieces.extend(text("\n".into()));
    let none = [head, text(" @count=0x0\n".into())].concat();
    let kind = StmtKind::If {
        condition: extract(Extractor::Count),
        then: Box::new(print(pieces, span)),
        otherwise: Some(Box::new(print(none, span))),
    };
    Stmt { kind, span }
}
