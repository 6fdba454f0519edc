// SPDX-License-Identifier: GPL-2.0-or-later

//! Syntax of other languages that the grammar recognises: the probable intention, and the equivalent in a script.

use super::token::{Keyword, Kind, Op, Token};
use spile_source::diagnostic::foreign::{NO_DECLARATIONS, declares};
use spile_source::diagnostic::suggest;

/// A note on something at the top level that begins no item; `tokens` begin there.
pub(super) fn at_top_level(tokens: &[Token]) -> Option<String> {
    let word = match &tokens.first()?.kind {
        Kind::Op(Op::Decrement) => return Some("a comment begins with `//` or `#`".into()),
        Kind::Ident(word) => word.as_str(),
        // `long` and `string` are this language's, and begin a function in C's manner.
        Kind::Keyword(word) => word.text(),
        _ => return None,
    };
    let colon = matches!(tokens.get(1).map(|token| &token.kind), Some(Kind::Op(Op::Colon)));
    if colon && let Some(point) = of_other_tracers(word, &after_colons(tokens)) {
        return Some(format!("this is written: probe {point} {{ ... }}"));
    }
    match word {
        "BEGIN" => Some("this is written: probe begin { ... }".into()),
        "END" => Some("this is written: probe end { ... }".into()),
        "def" | "fn" | "func" | "fun" | "sub" | "proc" | "define" => {
            Some("a function is written: function name(a, b) { ... }".into())
        }
        _ if declares(word) => {
            Some("a function is written: function name(a, b) { ... }, and a global variable: global name".into())
        }
        _ => {
            let near = suggest::suggest(word, ["probe", "function", "global", "private"]);
            near.first().map(|near| format!("did you mean {near}?"))
        }
    }
}

/// The names and numbers that follow a word, each after one or more colons: `sched`, `sched_switch`.
fn after_colons(tokens: &[Token]) -> Vec<String> {
    let mut words = vec![String::new()];
    for token in tokens.iter().skip(2) {
        match &token.kind {
            Kind::Op(Op::Colon) => words.push(String::new()),
            Kind::Ident(text) => words.last_mut().into_iter().for_each(|word| word.push_str(text)),
            Kind::Keyword(keyword) => words.last_mut().into_iter().for_each(|word| word.push_str(keyword.text())),
            Kind::Number(number) => words.last_mut().into_iter().for_each(|word| word.push_str(&number.to_string())),
            _ => break,
        }
    }
    words
}

/// The probe point of one written `provider:a:b`, as in bpftrace and D.
fn of_other_tracers(provider: &str, parts: &[String]) -> Option<String> {
    let part = |at: usize| parts.get(at).filter(|part| !part.is_empty()).map_or("...", String::as_str);
    let last = parts.last().map_or("...", String::as_str);
    // provider:module:function:name; the module is often left out.
    let function = || parts.iter().rev().nth(1).filter(|part| !part.is_empty()).map_or("...", String::as_str);
    let suffix = if last == "return" { ".return" } else { "" };
    Some(match provider {
        "kprobe" | "kfunc" | "fentry" => format!("kernel.function(\"{last}\")"),
        "kretprobe" | "kretfunc" | "fexit" => format!("kernel.function(\"{last}\").return"),
        "tracepoint" | "rawtracepoint" => match parts {
            [group, name, ..] => format!("kernel.trace(\"{group}:{name}\")"),
            _ => format!("kernel.trace(\"{last}\")"),
        },
        "interval" => format!("timer.{}({})", part(0), part(1)),
        "profile" => "timer.profile".into(),
        "software" | "hardware" => "perf.sw.cpu_clock".into(),
        "uprobe" => format!("process(\"{}\").function(\"{last}\")", part(0)),
        "uretprobe" => format!("process(\"{}\").function(\"{last}\").return", part(0)),
        "usdt" => format!("process(\"{}\").mark(\"{last}\")", part(0)),
        "watchpoint" => "kernel.data(\"name\").write".into(),
        "fbt" => format!("kernel.function(\"{}\"){suffix}", function()),
        "syscall" => format!("syscall.{}{suffix}", function()),
        _ => return None,
    })
}

/// A note on `word` as an expression of its own, or as the function of a call that is not known.
pub fn statement(word: &str) -> Option<&'static str> {
    Some(match word {
        "do" => "there is no do loop: while (condition) { ... }",
        "elif" | "elsif" | "elseif" => "this is written: else if (condition)",
        "fi" | "done" | "endif" | "end" => "a block stands in braces: { ... }",
        "goto" => "there is no goto: use functions, loops, break and continue",
        "pass" => "an empty block is { }",
        "switch" | "case" | "match" => "there is no switch: if (...) { ... } else if (...) { ... } else { ... }",
        "then" => "there is no `then`: if (condition) statement else statement",
        "unless" => "this is written: if (!(condition))",
        "until" => "this is written: while (!(condition))",
        _ if declares(word) => NO_DECLARATIONS,
        _ => return None,
    })
}

/// A note on an unexpected token at `at` of `tokens`.
pub(super) fn unexpected(tokens: &[Token], at: usize) -> Option<&'static str> {
    let kind = |at: Option<usize>| at.and_then(|at| tokens.get(at)).map(|token| &token.kind);
    let (before, found, after) = (kind(at.checked_sub(1)), kind(Some(at)), kind(Some(at + 1)));
    if let Some(hint) = in_for(tokens, at) {
        return Some(hint);
    }
    match (before, found?) {
        (Some(Kind::Ident(word)), _) if word == "not" => Some("`!` negates: !(condition)"),
        (Some(Kind::Ident(word)), Kind::Ident(_)) if declares(word) => Some(declaration(tokens, at)),
        (Some(Kind::Ident(word)), _) if statement(word).is_some() => statement(word),
        (Some(Kind::Keyword(word)), Kind::Ident(_)) if declares(word.text()) => Some(declaration(tokens, at)),
        (_, Kind::Ident(word)) => match word.as_str() {
            "and" => Some("`&&` joins conditions"),
            "or" => Some("`||` joins conditions"),
            "then" => statement("then"),
            _ => None,
        },
        (_, Kind::Keyword(word)) if declares(word.text()) && matches!(after, Some(Kind::Ident(_))) => {
            Some(declaration(tokens, at))
        }
        (_, Kind::Op(Op::Colon)) if is_word(kind(at.checked_sub(2)), "case") => statement("case"),
        (Some(Kind::Number(_)), Kind::Op(Op::Dot)) if before_body(tokens, at, Keyword::Probe) => {
            Some("numbers are integers: half a second is timer.ms(500)")
        }
        (Some(Kind::Op(Op::Assign)), Kind::Op(Op::Greater)) => Some("a handler follows its point: probe begin { ... }"),
        (Some(Kind::At(_)), Kind::Op(Op::BracketOpen)) => {
            Some("a global variable has no `@`: global a at the top of the script, then a[...]")
        }
        (Some(Kind::Op(Op::Less)), Kind::Op(Op::Greater)) => Some("`!=` compares whether values differ"),
        (Some(Kind::Op(Op::Equal)), Kind::Op(Op::Assign)) => Some("`==` compares"),
        (_, Kind::Op(Op::Colon)) if matches!(after, Some(Kind::Op(Op::Assign))) => Some("`=` assigns"),
        (Some(Kind::Op(Op::ParenClose)), Kind::Op(Op::Arrow)) => {
            Some("the type of a result stands behind the name: function f:long (x)")
        }
        (_, Kind::Op(Op::Slash)) if before_body(tokens, at, Keyword::Probe) => {
            Some("a condition stands behind `if`: probe POINT if (a_global > 0), or in the handler: if (!(...)) next")
        }
        _ => None,
    }
}

fn is_word(kind: Option<&Kind>, word: &str) -> bool {
    matches!(kind, Some(Kind::Ident(found)) if found == word)
}

/// A note on a type before a name.
fn declaration(tokens: &[Token], at: usize) -> &'static str {
    match before_body(tokens, at, Keyword::Function) {
        true => "types are long and string, behind the name: function f:long (x:long, s:string)",
        false => NO_DECLARATIONS,
    }
}

/// `for (i in a)`, `for (k : a)`: what goes over an array is foreach.
fn in_for(tokens: &[Token], at: usize) -> Option<&'static str> {
    let open = tokens[..at.min(tokens.len())].iter().rposition(|token| {
        matches!(token.kind, Kind::Op(Op::ParenOpen | Op::Semicolon | Op::BraceOpen | Op::BraceClose))
    });
    let heads = |open: usize| {
        let keyword = open.checked_sub(1).map(|before| &tokens[before].kind);
        matches!(keyword, Some(Kind::Keyword(Keyword::For))) && matches!(tokens[open].kind, Kind::Op(Op::ParenOpen))
    };
    // The parenthesis of `range(3)` is closed before.
    let open = open.filter(|&open| heads(open)).or_else(|| {
        let found = tokens[..at.min(tokens.len())]
            .iter()
            .rposition(|token| matches!(token.kind, Kind::Keyword(Keyword::For)))?;
        Some(found + 1).filter(|&open| open < at && heads(open))
    })?;
    let inside = &tokens[open + 1..at.min(tokens.len())];
    if inside.iter().any(|token| matches!(token.kind, Kind::Op(Op::Semicolon))) {
        return None;
    }
    let over = |token: &Token| matches!(token.kind, Kind::Keyword(Keyword::In));
    let colon = tokens.get(at).is_some_and(|token| matches!(token.kind, Kind::Op(Op::Colon)));
    if colon || inside.iter().any(over) {
        return Some("foreach (key in array) goes over an array; for has three parts: for (i = 0; i < n; i++)");
    }
    let declared = inside.iter().any(|token| match &token.kind {
        Kind::Ident(word) => declares(word),
        Kind::Keyword(word) => declares(word.text()),
        _ => false,
    });
    declared.then_some(NO_DECLARATIONS)
}

/// Whether a token stands between the keyword that begins its item and the body.
fn before_body(tokens: &[Token], at: usize, keyword: Keyword) -> bool {
    let before = &tokens[..at.min(tokens.len())];
    let item = before.iter().rposition(|token| token.kind == Kind::Keyword(keyword));
    item.is_some_and(|item| !before[item..].iter().any(|token| matches!(token.kind, Kind::Op(Op::BraceOpen))))
}

/// Whether what follows `@name` shows that a global variable of bpftrace or D is meant: `@name[`, `@name =`.
pub(super) fn is_map(after: Option<&Token>) -> bool {
    let operators =
        [Op::BracketOpen, Op::Assign, Op::AddAssign, Op::SubtractAssign, Op::Increment, Op::Decrement, Op::Aggregate];
    matches!(after.map(|token| &token.kind), Some(Kind::Op(op)) if operators.contains(op))
}
