// SPDX-License-Identifier: GPL-2.0-or-later

//! `-G NAME=VALUE`: initial values from the command line.

use spile_source::diagnostic::{Code, Diagnostic, suggest};
use spile_source::{Origin, SourceMap, Span};
use spile_syntax::ast::{AssignOp, Expr, ExprKind, Function, FunctionBody, Global, Item, Literal, Script, StmtKind};
use spile_syntax::visit;

const CODE: Code = Code("W0109");

/// Sets the globals; returns a warning for each that does not exist or is no scalar: its value is not used, as in SystemTap.
///
/// A value that can be parsed as a number is one, unless the script's own initial value is a string.
pub fn assign(sources: &mut SourceMap, scripts: &mut [Script], values: &[(String, String)]) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    for (name, value) in values {
        let table = find(scripts, name).map(|global| global.clone());
        let table = table.and_then(|global| table_use(sources, scripts, &global));
        let file = sources.add(format!("<-G {name}>"), value.clone().into_bytes(), Origin::User);
        let span = Span::new(file, 0, value.len());
        match find(scripts, name) {
            None => problems.push(unknown(scripts, name)),
            Some(global) if global.size.is_some() || global.wrap || table.is_some() => {
                problems.push(unused(global, table));
            }
            Some(global) => {
                let string = matches!(global.initial, Some((Literal::String(_), _)));
                let literal = number(value)
                    .filter(|_| !string)
                    .map_or_else(|| Literal::String(value.clone().into_bytes()), Literal::Number);
                global.initial = Some((literal, span));
            }
        }
    }
    problems
}

/// The user's global of that name, or the library's.
fn find<'a>(scripts: &'a mut [Script], name: &str) -> Option<&'a mut Global> {
    let items = scripts.iter_mut().flat_map(|script| &mut script.items);
    let mut globals = items.filter_map(|item| match item {
        Item::Global(global) => Some(global),
        _ => None,
    });
    globals.find(|global| global.name.text == name)
}

/// Whether the name is this global in that file: not if the file has a private one of the name, nor in the compiler's own library if
/// it is a script's.
fn means(sources: &SourceMap, script: &Script, global: &Global) -> bool {
    let of = global.name.span.file;
    let is_own = |file| sources.file(file).origin == Origin::Tapset;
    let hidden = script
        .items
        .iter()
        .any(|item| matches!(item, Item::Global(other) if other.private && other.name.text == global.name.text));
    script.file == of || !global.private && !hidden && (is_own(of) || !is_own(script.file))
}

/// Where a script first uses the global as an array or an aggregate.
fn table_use(sources: &SourceMap, scripts: &[Script], global: &Global) -> Option<Span> {
    let name = &global.name.text;
    let mut found = None;
    let is_it = |expr: &Expr| matches!(&expr.kind, ExprKind::Ident(ident) if *ident == *name);
    let mut look = |expr: &Expr| {
        let table = match &expr.kind {
            ExprKind::Index(base, _) | ExprKind::In(_, base) => Some(base),
            ExprKind::Assign(AssignOp::Aggregate, base, _) => Some(base),
            ExprKind::Extract { aggregate, .. } | ExprKind::Histogram { aggregate, .. } => Some(aggregate),
            _ => None,
        };
        found = found.or(table.filter(|table| is_it(table)).map(|table| table.span));
    };
    let mut loops = None;
    let is_hidden = |function: &Function| function.parameters.iter().any(|own| own.name.text == *name);
    let scripts = scripts.iter().filter(|script| means(sources, script, global));
    for (script, item) in scripts.flat_map(|script| script.items.iter().map(move |item| (script, item))) {
        let blocks = match item {
            // In its own file it is the global that `name[...]` means.
            Item::Function(function) if is_hidden(function) && script.file != global.name.span.file => Vec::new(),
            Item::Probe(probe) => vec![&probe.body],
            Item::Alias(alias) => alias.prologue.iter().chain(&alias.epilogue).collect(),
            Item::Function(function) => match &function.body {
                FunctionBody::Script(block) => vec![block],
                FunctionBody::EmbeddedC(_) => Vec::new(),
            },
            Item::Global(_) | Item::EmbeddedC(_) => Vec::new(),
        };
        for block in blocks {
            visit::expressions(block, &mut look);
            visit::statements(block, &mut |statement| {
                if let StmtKind::Foreach(foreach) = &statement.kind
                    && is_it(&foreach.array)
                {
                    loops = loops.or(Some(foreach.array.span));
                }
            });
        }
    }
    found.or(loops)
}

/// Decimal, hexadecimal or octal, as in a script.
fn number(text: &str) -> Option<i64> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let value = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None if digits.len() > 1 && digits.starts_with('0') => u64::from_str_radix(digits, 8).ok()?,
        None => digits.parse::<u64>().ok()?,
    };
    Some(if negative { (value as i64).wrapping_neg() } else { value as i64 })
}

fn unknown(scripts: &[Script], name: &str) -> Diagnostic {
    let names: Vec<&str> = scripts
        .iter()
        .flat_map(|script| &script.items)
        .filter_map(|item| match item {
            Item::Global(global) => Some(global.name.text.as_str()),
            _ => None,
        })
        .collect();
    let diagnostic = Diagnostic::warning(CODE, format!("-G {name}: there is no global of this name"));
    match suggest::hint(name, &names, 20) {
        Some(hint) => diagnostic.note(hint),
        None => diagnostic.note("the script has no globals"),
    }
}

fn unused(global: &Global, table: Option<Span>) -> Diagnostic {
    let name = &global.name.text;
    let message = format!("-G {name}: an array or an aggregate has no initial value");
    let diagnostic = Diagnostic::warning(CODE, message).at(global.name.span, "declared here");
    match table {
        Some(span) => diagnostic.also(span, "used as one here"),
        None => diagnostic,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spile_source::diagnostic::Severity;
    use spile_syntax::{self as syntax, Environment, Macros};

    fn assigned(script: &str, name: &str, value: &str) -> (Option<Literal>, Vec<Diagnostic>) {
        let mut sources = SourceMap::new();
        let file = sources.add("a.stp", script.into(), Origin::User);
        let (script, problems) = syntax::parse(&mut sources, file, &Environment::default(), &Macros::default());
        assert_eq!(problems, []);
        let mut scripts = [script];
        let problems = assign(&mut sources, &mut scripts, &[(name.into(), value.into())]);
        (find(&mut scripts, name).and_then(|global| global.initial.clone()).map(|(literal, _)| literal), problems)
    }

    #[test]
    fn numbers_and_strings() {
        for (script, value, wanted) in [
            ("global a", "12", Literal::Number(12)),
            ("global a = 1", "-0x10", Literal::Number(-16)),
            ("global a", "x y", Literal::String(b"x y".to_vec())),
            ("global a = \"s\"", "12", Literal::String(b"12".to_vec())),
            ("global a", "-9223372036854775808", Literal::Number(i64::MIN)),
        ] {
            assert_eq!(assigned(script, "a", value), (Some(wanted), vec![]), "{script} {value}");
        }
    }

    #[test]
    fn arrays_of_other_files_have_the_name_too() {
        for (origin, library) in [
            (Origin::Directory, "private global a function f() { a[1] = 2 }"),
            (Origin::Tapset, "global a function f() { a[1] = 2 }"),
            (Origin::Directory, "function f(a) { println(a[1]) }"),
        ] {
            let mut sources = SourceMap::new();
            let texts = [("global a = 1", Origin::User), (library, origin)];
            let mut scripts = texts.map(|(text, origin)| {
                let file = sources.add("a.stp", text.into(), origin);
                syntax::parse(&mut sources, file, &Environment::default(), &Macros::default()).0
            });
            assert_eq!(assign(&mut sources, &mut scripts, &[("a".into(), "5".into())]), [], "{library}");
        }
    }

    #[test]
    fn what_has_no_value() {
        assert_eq!(assigned("global abc", "abd", "1").1[0].notes, ["did you mean abc?"]);
        for script in [
            "global a[3]",
            "global a% probe begin { a[1] = 2 }",
            "global a probe begin { a[1] = 2 }",
            "global a probe end { if ([1, 2] in a) exit() }",
            "global a probe end { foreach (k in a) println(k) }",
            "global a function f() { a <<< 1 }",
            "global a probe x = begin { println(@count(a)) }",
            "global a function f(a) { a[1] = 2 }",
        ] {
            let (initial, problems) = assigned(script, "a", "1");
            assert_eq!((initial, problems.len()), (None, 1), "{script}");
            assert_eq!((problems[0].code, problems[0].severity), (CODE, Severity::Warning), "{script}");
        }
    }
}
