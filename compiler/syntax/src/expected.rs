// SPDX-License-Identifier: GPL-2.0-or-later

//! Turns the terminals that the generated parser expected, some forty, into words of the language.

use lalrpop_util::ParseError;

use super::construct::GrammarError;
use super::error::{SyntaxError, Unexpected};
use super::habit;
use super::operand::Terminal;
use super::token::{Keyword, Kind, Op, Token};
use spile_source::Span;

/// Describes a failed parse of `tokens[..end]`, the end of the last item.
pub fn explain(fail: GrammarError, tokens: &[Token], end: usize) -> SyntaxError {
    let (at, terminal, expected) = match fail {
        ParseError::User { error } => return error,
        ParseError::UnrecognizedToken { token: (at, terminal, _), expected } => (at, Some(terminal), expected),
        ParseError::ExtraToken { token: (at, terminal, _) } => (at, Some(terminal), Vec::new()),
        ParseError::UnrecognizedEof { expected, .. } => (end, None, expected),
        ParseError::InvalidToken { location } => (location, None, Vec::new()),
    };
    let before = at.checked_sub(1).and_then(|before| tokens.get(before));
    let found = tokens.get(at);
    let span = match (found, before) {
        (Some(token), _) => token.span,
        (None, Some(token)) => Span { start: token.span.end, ..token.span },
        (None, None) => Span::none(),
    };
    let terminals: Vec<&str> = expected.iter().map(|name| name.trim_matches('"')).collect();
    SyntaxError::Unexpected(Unexpected {
        span,
        found: found.map(|token| token.kind.describe()),
        after: before.map(|token| (token.kind.describe(), token.span)),
        expected: words(&terminals),
        hint: habit::unexpected(tokens, at)
            .or_else(|| brace_hint(tokens, at))
            .or_else(|| hint(terminal.as_ref(), found, before, &terminals)),
    })
}

/// Terminals that can only start an expression or a statement.
const OPERANDS: &[&str] = &[
    "number",
    "text",
    "identifier",
    "target",
    "at",
    "embedded",
    "(group",
    "[list",
    "+sign",
    "-sign",
    "!",
    "~",
    "step-before",
    "&address",
];

/// Terminals that can follow an operand.
const OPERATORS: &[&str] = &[
    "||",
    "&&",
    "|",
    "^",
    "&",
    "compare",
    "match",
    "shift",
    ".",
    "+",
    "-",
    "*",
    "/",
    "%",
    "?",
    "=",
    "+=",
    "assign",
    "in",
    "step-after",
    "->",
    "[index",
    "(call",
    "dollars",
];

/// Terminals that start a statement but not an expression.
const STATEMENTS: &[&str] =
    &["if", "for", "foreach", "while", "break", "continue", "next", "return", "delete", "try", "{", ";empty"];

/// At most a handful of words for a set of terminals.
fn words(terminals: &[&str]) -> Vec<String> {
    let has = |name: &str| terminals.contains(&name);
    let expression = has("number") && has("target");
    let statement = has("while") && has("break");
    let operator = has("||") && has("&&");
    if has("?") && has("if") && has("{") && !statement {
        // After a complete probe point.
        return ["`{`", "`,`", "more of the probe point"].map(str::to_string).to_vec();
    }
    if has("identifier") && has("at") && !expression {
        return vec!["an array or a histogram".to_string()];
    }
    let mut words = Vec::new();
    if statement {
        words.push("a statement".to_string());
    } else if expression {
        words.push("an expression".to_string());
    }
    if operator {
        words.push("an operator".to_string());
    }
    for terminal in terminals {
        let covered = expression && OPERANDS.contains(terminal)
            || statement && STATEMENTS.contains(terminal)
            || operator && OPERATORS.contains(terminal);
        if covered {
            continue;
        }
        let word = match *terminal {
            "component" => "a probe point".to_string(),
            "{alternatives" => continue,
            "identifier" => "a name".to_string(),
            "target" => "a `$variable`".to_string(),
            "member" => "the name of a member".to_string(),
            "dollars" => continue,
            "-sign" if has("number") => continue,
            "number" => "a number".to_string(),
            "text" => "a string".to_string(),
            "embedded" => "`%{`".to_string(),
            "at" => "an `@` operator".to_string(),
            "compare" => "a comparison".to_string(),
            "match" => "`=~`".to_string(),
            "shift" => "a shift".to_string(),
            "assign" => "an assignment".to_string(),
            "step-before" | "step-after" => "`++`".to_string(),
            "}alternatives" => "`}`".to_string(),
            // `(group` and `(call`, `[index` and `[list`, `;end` and `;empty`, signs: the terminal starts with its
            // text.
            _ => match terminal.chars().next() {
                Some(first) if !first.is_ascii_alphabetic() && terminal.len() > 3 => format!("`{first}`"),
                _ => format!("`{terminal}`"),
            },
        };
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

/// For a mistake inside a brace that lists alternative probe points: it may have been meant as a handler's.
fn brace_hint(tokens: &[Token], at: usize) -> Option<&'static str> {
    let mut depth = 0usize;
    for (place, token) in tokens[..at.min(tokens.len())].iter().enumerate().rev() {
        match token.kind {
            Kind::Op(Op::BraceClose) => depth += 1,
            Kind::Op(Op::BraceOpen) if depth > 0 => depth -= 1,
            Kind::Op(Op::BraceOpen) => {
                let before = place.checked_sub(1).map(|before| &tokens[before].kind);
                let lists = matches!(before, Some(Kind::Keyword(Keyword::Probe) | Kind::Op(Op::Comma | Op::Dot)));
                return lists.then_some(
                    "a brace after `probe`, `,` or `.` lists alternative probe points; a handler's follows a complete one",
                );
            }
            Kind::Keyword(Keyword::Probe) => return None,
            _ => {}
        }
    }
    None
}

/// What the user probably meant.
fn hint(
    terminal: Option<&Terminal>,
    found: Option<&Token>,
    before: Option<&Token>,
    expected: &[&str],
) -> Option<&'static str> {
    let keyword_for_name =
        matches!(found, Some(Token { kind: Kind::Keyword(_), .. })) && expected.contains(&"identifier");
    match (terminal?, before.map(|token| &token.kind)) {
        (Terminal::Percent, _) if expected.contains(&",") && !expected.contains(&"*") => {
            Some("`%` stands directly behind the name of an array: global name%[size]")
        }
        (Terminal::Comma, Some(Kind::Ident(_))) if expected.contains(&"in") && !expected.contains(&"||") => {
            Some("several keys stand in brackets: foreach ([a, b] in array)")
        }
        (Terminal::Ident(_), Some(Kind::Op(Op::ParenOpen)))
            if expected.contains(&"text") && !expected.contains(&"target") =>
        {
            Some("the argument of a component is a number or a string: kernel.function(\"name\")")
        }
        (Terminal::Assign, Some(Kind::Keyword(_))) => Some("keywords cannot be names of variables or functions"),
        (Terminal::Keyword(Keyword::Else), _) => Some("`else` follows one statement or a block after `if`"),
        (Terminal::Assign, Some(Kind::Number(_) | Kind::String(_))) => Some("the variable stands on the left of `=`"),
        (Terminal::Star, _) if expected.contains(&"target") => {
            Some("there is no `*` dereference: write $p[0], @cast(p, \"type\")->member or kernel_long(p)")
        }
        (Terminal::Match(_) | Terminal::Compare(_), Some(Kind::String(_))) if !expected.contains(&"compare") => {
            Some("`=~` and `!~` do not chain: use parentheses, or join the comparisons with &&")
        }
        _ if keyword_for_name => Some("keywords cannot be names of variables or functions"),
        (Terminal::ListOpen, _) if expected.contains(&"identifier") => {
            Some("a list of keys in brackets stands only before `in`: if ([a, b] in array)")
        }
        _ => None,
    }
}
