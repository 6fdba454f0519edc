// SPDX-License-Identifier: GPL-2.0-or-later

//! The names that a library file may define, from its tokens, without parsing it.
//!
//! Takes the bytes of a file; returns the functions, globals and probe aliases that follow their keywords in any branch
//! of any conditional: never fewer than the file defines, sometimes more. The caller parses the file if it needs one of
//! the names.

use std::collections::HashSet;

use super::lexer;
use super::token::{AtOperator, Keyword, Kind, Op, Token};
use spile_source::FileId;

/// Names that a file may define.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// Functions and globals.
    pub names: Vec<String>,
    /// Names of the components of each alias, without arguments.
    pub aliases: Vec<Vec<String>>,
    /// A macro may make a definition: the file must be parsed to know.
    pub opaque: bool,
}

/// Reads a file's outline.
pub fn outline(bytes: &[u8]) -> Outline {
    outline_of(&lexer::lex(FileId(0), bytes))
}

fn outline_of(tokens: &[Token]) -> Outline {
    let mut found = Outline::default();
    let mut at = 0;
    let mut depth = 0usize;
    let mut conditionals = 0usize;
    // The file's own macros that define nothing, whatever their arguments are: these are read where they are written.
    let mut harmless: HashSet<&str> = HashSet::new();
    while let Some(token) = tokens.get(at) {
        let member = at > 0 && matches!(tokens[at - 1].kind, Kind::Op(Op::Arrow | Op::Dot));
        at += 1;
        match &token.kind {
            Kind::Op(Op::BraceOpen) => depth += 1,
            Kind::Op(Op::BraceClose) => depth = depth.saturating_sub(1),
            Kind::Op(Op::IfOpen) => conditionals += 1,
            Kind::Op(Op::IfClose) => conditionals = conditionals.saturating_sub(1),
            Kind::AtWord(word) if word == "define" => {
                let end = skip_definition(tokens, at);
                if let Some(Kind::Ident(name)) = tokens.get(at).map(|token| &token.kind) {
                    // Of one in a conditional it is not known whether it is this one or the library's that counts.
                    match conditionals == 0 && defines_nothing(&tokens[at..end]) {
                        true => harmless.insert(name),
                        false => harmless.remove(name.as_str()),
                    };
                }
                at = end;
            }
            Kind::AtWord(word) if harmless.contains(word.as_str()) => {}
            Kind::AtWord(word) if depth == 0 && AtOperator::from_text(word).is_none() => found.opaque = true,
            Kind::Keyword(_) if member => {}
            // Braces of branches not taken need not match: a top-level keyword starts over.
            Kind::Keyword(Keyword::Function) => {
                depth = 0;
                match name(tokens.get(at)) {
                    Some(name) => found.names.push(name),
                    None => found.opaque = true,
                }
                at = skip_to_body(tokens, at);
            }
            Kind::Keyword(Keyword::Global | Keyword::Private) => {
                depth = 0;
                at = globals(tokens, at, &mut found);
            }
            Kind::Keyword(Keyword::Probe) => {
                depth = 0;
                aliases(tokens, at, &mut found);
                at = skip_to_body(tokens, at);
            }
            _ => {}
        }
    }
    found
}

/// Whether the body of a macro, given with what is between `@define` and it, has no definition, nor a place for one that an
/// argument or another macro could fill.
fn defines_nothing(definition: &[Token]) -> bool {
    let [before @ .., Token { kind: Kind::Op(Op::IfClose), .. }] = definition else { return false };
    let mut parts = before.splitn(2, |token| token.kind == Kind::Op(Op::IfOpen));
    let (Some(_), Some(body)) = (parts.next(), parts.next()) else { return false };
    if body.iter().any(|token| matches!(&token.kind, Kind::AtWord(word) if word == "define")) {
        return false;
    }
    // What ends in the middle of a definition goes on with the text behind the call.
    let defines = body.iter().any(|token| matches!(token.kind, Kind::Keyword(_)));
    if defines && !body.last().is_some_and(|token| token.kind == Kind::Op(Op::BraceClose)) {
        return false;
    }
    let body = outline_of(body);
    !body.opaque && body.names.is_empty() && body.aliases.is_empty()
}

fn name(token: Option<&Token>) -> Option<String> {
    match &token?.kind {
        Kind::Ident(name) => Some(name.clone()),
        Kind::Keyword(keyword) => Some(keyword.text().to_string()),
        _ => None,
    }
}

fn is(token: Option<&Token>, op: Op) -> bool {
    token.is_some_and(|token| token.kind == Kind::Op(op))
}

/// Skips to after the `%)` of a macro's body.
fn skip_definition(tokens: &[Token], mut at: usize) -> usize {
    let mut depth = 0usize;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token.kind {
            Kind::Op(Op::IfOpen) => depth += 1,
            Kind::Op(Op::IfClose) if depth <= 1 => return at,
            Kind::Op(Op::IfClose) => depth -= 1,
            _ => {}
        }
    }
    at
}

/// Skips to the `{` or the C of a definition's body, or to the next definition.
fn skip_to_body(tokens: &[Token], mut at: usize) -> usize {
    let mut groups = 0usize;
    while let Some(token) = tokens.get(at) {
        let before = at.checked_sub(1).map(|before| &tokens[before].kind);
        let member = matches!(before, Some(Kind::Op(Op::Arrow | Op::Dot)));
        match &token.kind {
            // Braces that group points appear in place of a component or a point.
            Kind::Op(Op::BraceOpen) if groups > 0 || member => groups += 1,
            Kind::Op(Op::BraceOpen)
                if matches!(
                    before,
                    Some(Kind::Op(Op::Comma | Op::Assign | Op::AddAssign) | Kind::Keyword(Keyword::Probe))
                ) =>
            {
                groups += 1;
            }
            Kind::Op(Op::BraceOpen) => return at,
            Kind::Op(Op::BraceClose) => groups = groups.saturating_sub(1),
            Kind::EmbeddedC(_) => return at,
            Kind::Keyword(Keyword::Function | Keyword::Probe | Keyword::Global | Keyword::Private)
                if groups == 0 && !member =>
            {
                return at;
            }
            _ => {}
        }
        at += 1;
    }
    at
}

/// Whether a token may follow a global's name in its definition: `%`, a size, an initial value, a comma.
fn in_global(token: Option<&Token>) -> bool {
    use Op::{Assign, BracketClose, BracketOpen, Comma, Minus, Percent, Plus};
    matches!(
        token.map(|token| &token.kind),
        Some(
            Kind::Op(Percent | BracketOpen | BracketClose | Assign | Minus | Plus | Comma)
                | Kind::Number(_)
                | Kind::String(_)
                | Kind::Argument(_)
        )
    )
}

/// Where the branches of the conditional at `at` begin, and what follows its `%)`.
fn conditional(tokens: &[Token], mut at: usize) -> (Vec<usize>, usize) {
    let (mut branches, mut depth) = (Vec::new(), 0usize);
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token.kind {
            Kind::Op(Op::IfOpen) => depth += 1,
            Kind::Op(Op::IfThen | Op::IfElse) if depth == 1 => branches.push(at),
            Kind::Op(Op::IfClose) if depth <= 1 => break,
            Kind::Op(Op::IfClose) => depth -= 1,
            _ => {}
        }
    }
    (branches, at)
}

/// The names in `global a, b[10] = 1`; private ones are skipped.
fn globals(tokens: &[Token], mut at: usize, found: &mut Outline) -> usize {
    let private = at
        .checked_sub(1)
        .and_then(|before| tokens.get(before))
        .is_some_and(|token| token.kind == Kind::Keyword(Keyword::Private));
    if private {
        if matches!(tokens.get(at).map(|token| &token.kind), Some(Kind::Keyword(Keyword::Function))) {
            return skip_to_body(tokens, at + 1);
        }
        return at
            + usize::from(matches!(tokens.get(at).map(|token| &token.kind), Some(Kind::Keyword(Keyword::Global))));
    }
    loop {
        match name(tokens.get(at)) {
            Some(name) => found.names.push(name),
            None => {
                let next = tokens.get(at).map(|token| &token.kind);
                found.opaque |= matches!(next, Some(Kind::AtWord(_) | Kind::Op(Op::IfOpen)));
                return at;
            }
        }
        at += 1;
        // Up to the comma.
        while in_global(tokens.get(at)) && !is(tokens.get(at), Op::Comma) {
            at += 1;
        }
        if is(tokens.get(at), Op::IfOpen) {
            // Perhaps the definition goes on in a branch, or behind the conditional.
            let (branches, end) = conditional(tokens, at);
            let goes_on = |part: usize| {
                let token = tokens.get(part);
                let is_macro = matches!(token.map(|token| &token.kind), Some(Kind::AtWord(word)) if word != "define");
                in_global(token) || is(token, Op::IfOpen) || is_macro
            };
            found.opaque |= branches.into_iter().chain([end]).any(goes_on);
            return at;
        }
        if !is(tokens.get(at), Op::Comma) {
            // In a size or a value, or in place of the comma: what is behind it is not known.
            let next = tokens.get(at).map(|token| &token.kind);
            found.opaque |= matches!(next, Some(Kind::AtWord(word)) if word != "define");
            return at;
        }
        at += 1;
    }
}

/// The names in `probe a.b = c("x") += points`: chains of components before an `=`.
fn aliases(tokens: &[Token], mut at: usize, found: &mut Outline) {
    loop {
        let mut components = Vec::new();
        while let Some(component) = name(tokens.get(at)) {
            components.push(component);
            at += 1;
            if is(tokens.get(at), Op::ParenOpen) {
                while !is(tokens.get(at), Op::ParenClose) && at < tokens.len() {
                    at += 1;
                }
                at += 1;
            }
            if !is(tokens.get(at), Op::Dot) {
                break;
            }
            at += 1;
        }
        found.opaque |= matches!(tokens.get(at).map(|token| &token.kind), Some(Kind::AtWord(_)));
        if is(tokens.get(at), Op::IfOpen) {
            // A name, or the `=` behind it, in a branch: what is behind the `=` of an alias is usually a point.
            let (_, end) = conditional(tokens, at);
            let assigns = |part: usize| is(tokens.get(part), Op::Assign) || is(tokens.get(part), Op::AddAssign);
            found.opaque |= (at..=end).any(assigns);
        }
        if components.is_empty() || !(is(tokens.get(at), Op::Assign) || is(tokens.get(at), Op::AddAssign)) {
            return;
        }
        found.aliases.push(components);
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_globals_and_aliases() {
        let found = outline(
            b"global a, b%[10], c = -1\nprivate global p\nprivate function q() {}\n%( kernel_v > \"3\" %? function f(x) { global_x = $function } %: function g:long() %{ %} %)\n\
              probe s.open(\"x\") = t.open = kernel.{function(\"a\"), trace(\"b\")} { $x->probe = 1 }\nprobe begin { h.i = 2 }\nprobe e += end {}",
        );
        assert_eq!(found.names, ["a", "b", "c", "f", "g"]);
        assert_eq!(found.aliases, [vec!["s", "open"], vec!["t", "open"], vec!["e"]]);
        assert!(!found.opaque);
    }

    #[test]
    fn what_branches_and_macros_can_hide() {
        let found = outline(b"%( x %? probe a.b = c { %: probe d.e = f { %) } function g() {}");
        assert_eq!(found.names, ["g"]);
        assert_eq!(found.aliases, [["a", "b"], ["d", "e"]]);
        assert!(
            outline(b"@make(a)").opaque && outline(b"function @f() {}").opaque && outline(b"probe @f = x {}").opaque
        );
        assert!(!outline(b"@define m %( probe x = y {} %)\nfunction f() { @m }").opaque);
    }

    #[test]
    fn macros_that_define_nothing() {
        let probes = "@define m(x, y) %( probe procfs(@x).read { $value = @y } probe end { @n(@y) } %)\n";
        let opaque = |text: &str| outline(text.as_bytes()).opaque;
        assert!(!opaque(&format!("{probes}@m(\"a\", a) @m(\"b\", b) global a, b")));
        assert_eq!(outline(format!("{probes}@m(function f() {{}}, a)").as_bytes()).names, ["f"]);
        assert!(opaque("@m(1)"), "of the library");
        assert!(opaque(&format!("@m(1)\n{probes}")), "defined behind it");
        assert!(opaque(&format!("{probes}@define m(x, y) %( @x %)\n@m(1, 2)")), "defined again");
        assert!(opaque(&format!("%( kernel_v > \"3\" %? {probes} %)\n@m(1, 2)")), "perhaps");
        let size = "@define SIZE %( 10 %)\nglobal a";
        for rest in ["[@SIZE], b", " = @SIZE, b", " @SIZE b"] {
            assert!(opaque(&format!("{size}{rest}")), "{rest}");
        }
        assert!(!opaque(&format!("{size}\n@define B %( b %)")));
        assert!(!opaque(&format!("{size}, b[10] probe end {{ println(@SIZE) }}")));
        let chosen = "%( kernel_v > \"3\" %? 10 %: 20 %)";
        for text in [
            "a[CHOSEN], b",
            "a = CHOSEN, b",
            "a %( x %? [10] %: [20] %), b",
            "a %( x %? , b %)",
            "%( x %? a %: b %)",
            "a %( x %? %( y %? , b %) %)",
            "a %( x %? @more %)",
        ] {
            assert!(opaque(&format!("global {}", text.replace("CHOSEN", chosen))), "{text}");
        }
        assert!(!opaque("global a %( x %? probe b = c {} %: function d() {} %)\nprobe e = %( x %? f %: g %) {}"));
        assert!(opaque("probe %( x %? a = b %: c = d %) {}"));
        assert!(opaque("probe %( x %? a %: b %) = c {}") && opaque("probe a %( x %? = b %: = c %) {}"));
        let ends_early = ["global", "probe", "probe kernel.", "probe foo", "private", "function"];
        let defines =
            ["function f() {}", "global g", "@x", "probe a = b {}", "probe @x = b {}", "@other", "@define n %( %)"];
        for body in ends_early.iter().chain(&defines) {
            assert!(opaque(&format!("@define m(x) %( {body} %)\n@m(1)")), "{body}");
        }
    }

    /// Every definition of a file is in its outline; checked with SystemTap's library too where it is installed.
    #[test]
    fn never_fewer_than_parsing_finds() {
        let mut files = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tapset"))];
        files.push("/usr/share/systemtap/tapset/linux".into());
        for directory in files {
            for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
                let Ok(bytes) = std::fs::read(entry.path()) else { continue };
                let found = outline(&bytes);
                let mut sources = spile_source::SourceMap::new();
                let file = sources.add("x.stp", bytes, spile_source::Origin::Tapset);
                let (script, _) = crate::parse(&mut sources, file, &Default::default(), &Default::default());
                for item in script.items {
                    use crate::ast::Item;
                    let name = match item {
                        Item::Function(function) if !function.private => function.name.text,
                        Item::Global(global) if !global.private => global.name.text,
                        Item::Alias(alias) => {
                            for name in alias.names {
                                let components: Vec<String> =
                                    name.into_iter().map(|component| component.name).collect();
                                assert!(
                                    found.opaque || found.aliases.contains(&components),
                                    "{components:?} in {:?}",
                                    entry.path()
                                );
                            }
                            continue;
                        }
                        _ => continue,
                    };
                    assert!(found.opaque || found.names.contains(&name), "{name} in {:?}", entry.path());
                }
            }
        }
    }
}
