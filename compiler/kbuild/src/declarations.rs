// SPDX-License-Identifier: GPL-2.0-or-later

//! Leaves out declarations of the runtime's headers that a script's C does not use: reading them is a fifth of the
//! compiler's time for a small script.
//!
//! A header is divided into its declarations and macros. Those are kept that define a name that the unit mentions, or that
//! another one that is kept does. Where it is not certain what a declaration defines, it defines too much, or is always kept.

use std::collections::{HashMap, HashSet};

/// The headers, each with what `unit` needs of it.
pub(super) fn used(headers: &[&str], unit: &str) -> Vec<String> {
    let mut parts: Vec<Vec<Part>> = headers.iter().map(|header| parts(header)).collect();
    without_types_and_macros(&mut parts);
    let mut by_name: HashMap<&str, Vec<(usize, usize)>> = HashMap::new();
    for (header, parts) in parts.iter().enumerate() {
        for (number, part) in parts.iter().enumerate() {
            part.defines.iter().for_each(|name| by_name.entry(name).or_default().push((header, number)));
        }
    }
    let mut kept: Vec<Vec<bool>> =
        parts.iter().map(|parts| parts.iter().map(|part| part.defines.is_empty()).collect()).collect();
    let always = parts.iter().flatten().filter(|part| part.defines.is_empty());
    let mut open: Vec<&str> = always.flat_map(|part| part.mentions.iter().copied()).collect();
    let mut prefixes: HashSet<&str> = parts.iter().flatten().flat_map(|part| part.joined.iter().copied()).collect();
    prefixes.remove("");
    open.extend(tokens(unit).filter_map(Token::name));
    let mut seen = HashSet::new();
    let mut joined = String::new();
    while let Some(name) = open.pop() {
        if !seen.insert(name) {
            continue;
        }
        let mut keep = |name: &str| {
            for (header, number) in by_name.get(name).into_iter().flatten() {
                let Some(kept @ false) = kept.get_mut(*header).and_then(|kept| kept.get_mut(*number)) else { continue };
                *kept = true;
                let part = parts.get(*header).and_then(|parts| parts.get(*number));
                open.extend(part.into_iter().flat_map(|part| &part.mentions));
            }
        };
        keep(name);
        // Names that macros join from two.
        for prefix in &prefixes {
            joined.clear();
            joined.extend([*prefix, name]);
            keep(&joined);
        }
    }
    let text = |(parts, kept): (&Vec<Part>, &Vec<bool>)| {
        let kept = parts.iter().zip(kept).filter(|(_, kept)| **kept);
        kept.flat_map(|(part, _)| [part.text, "\n"]).collect()
    };
    parts.iter().zip(&kept).map(text).collect()
}

/// A declaration, a function, or a directive of the preprocessor.
#[derive(Default)]
struct Part<'h> {
    text: &'h str,
    /// Empty: it is always kept.
    defines: Vec<&'h str>,
    mentions: Vec<&'h str>,
    /// What a macro puts before an argument to form a name (`prefix_##argument`).
    joined: Vec<&'h str>,
    is_type: bool,
    is_macro: bool,
}

/// Of a declaration's names, types and macros are those that it uses.
fn without_types_and_macros(parts: &mut [Vec<Part>]) {
    let names = |wanted: fn(&&Part) -> bool| {
        let parts = parts.iter().flatten().filter(wanted);
        parts.flat_map(|part| part.defines.iter().copied()).collect::<HashSet<&str>>()
    };
    let (types, macros) = (names(|part| part.is_type), names(|part| part.is_macro));
    for part in parts.iter_mut().flatten().filter(|part| !part.is_macro) {
        let is_type = part.is_type;
        part.defines.retain(|name| (is_type || !types.contains(name)) && !macros.contains(name));
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Token<'t> {
    Name(&'t str),
    /// Anything else that is no comment, number or literal.
    Mark(u8),
    /// A line that begins with `#`, with those that it continues on.
    Directive(&'t str),
    /// A number or literal.
    Other,
}

impl<'t> Token<'t> {
    fn name(self) -> Option<&'t str> {
        match self {
            Token::Name(name) => Some(name),
            _ => None,
        }
    }
}

/// Reads tokens; `at` is behind the last one.
struct Reader<'t> {
    text: &'t str,
    at: usize,
    /// Where the last token began.
    start: usize,
    /// Directives are tokens.
    lines: bool,
    is_line_new: bool,
}

/// The tokens of a text, those of directives too.
fn tokens(text: &str) -> Reader<'_> {
    Reader { text, at: 0, start: 0, lines: false, is_line_new: false }
}

impl<'t> Reader<'t> {
    fn byte(&self, at: usize) -> u8 {
        self.text.as_bytes().get(at).copied().unwrap_or(0)
    }

    fn slice(&self, from: usize, to: usize) -> &'t str {
        self.text.get(from..to).unwrap_or_default()
    }

    fn skip_comment(&mut self) -> bool {
        match (self.byte(self.at), self.byte(self.at + 1)) {
            (b'/', b'*') => {
                let rest = self.text.get(self.at + 2..).and_then(|rest| rest.find("*/"));
                self.at = rest.map_or(self.text.len(), |length| self.at + 2 + length + 2);
                true
            }
            (b'/', b'/') => {
                let rest = self.text.get(self.at..).and_then(|rest| rest.find('\n'));
                self.at = rest.map_or(self.text.len(), |length| self.at + length);
                true
            }
            _ => false,
        }
    }

    fn skip_while(&mut self, is_part: fn(u8) -> bool) {
        while self.at < self.text.len() && is_part(self.byte(self.at)) {
            self.at += 1;
        }
    }

    fn skip_literal(&mut self, quote: u8) {
        self.at += 1;
        while self.at < self.text.len() && self.byte(self.at) != quote {
            self.at += if self.byte(self.at) == b'\\' { 2 } else { 1 };
        }
        self.at = (self.at + 1).min(self.text.len());
    }

    fn skip_directive(&mut self) {
        while self.at < self.text.len() && self.byte(self.at) != b'\n' {
            if self.byte(self.at) == b'\\' {
                self.at += 2;
            } else if !self.skip_comment() {
                self.at += 1;
            }
        }
        self.at = self.at.min(self.text.len());
    }
}

impl<'t> Iterator for Reader<'t> {
    type Item = Token<'t>;

    fn next(&mut self) -> Option<Token<'t>> {
        loop {
            match self.byte(self.at) {
                _ if self.at >= self.text.len() => return None,
                b'\n' => (self.at, self.is_line_new) = (self.at + 1, true),
                byte if byte.is_ascii_whitespace() => self.at += 1,
                b'/' if self.skip_comment() => (),
                _ => break,
            }
        }
        self.start = self.at;
        let is_line_new = std::mem::take(&mut self.is_line_new);
        Some(match self.byte(self.at) {
            b'#' if is_line_new && self.lines => {
                self.skip_directive();
                Token::Directive(self.slice(self.start, self.at))
            }
            quote @ (b'"' | b'\'') => {
                self.skip_literal(quote);
                Token::Other
            }
            byte if byte.is_ascii_alphabetic() || byte == b'_' => {
                self.skip_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                Token::Name(self.slice(self.start, self.at))
            }
            byte if byte.is_ascii_digit() => {
                self.skip_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.');
                Token::Other
            }
            byte => {
                // Text that is not ASCII is in comments and literals.
                self.at += 1;
                Token::Mark(byte)
            }
        })
    }
}

/// A header's parts, without the comments between them.
fn parts(header: &str) -> Vec<Part<'_>> {
    let mut reader = Reader { lines: true, is_line_new: true, ..tokens(header) };
    let mut parts = Vec::new();
    let mut is_first = true;
    while let Some(token) = reader.next() {
        let start = reader.start;
        let part = match token {
            Token::Directive(line) => {
                let condition = ["if", "ifdef", "ifndef"].map(Some).contains(&tokens(line).find_map(Token::name));
                // The first condition is the one against a second inclusion.
                if condition && !std::mem::take(&mut is_first) {
                    skip_condition(&mut reader);
                }
                directive(reader.slice(start, reader.at))
            }
            token => declaration(&mut reader, token, start),
        };
        parts.push(part);
    }
    parts
}

/// To the end of a condition of the preprocessor whose first line was read.
fn skip_condition(reader: &mut Reader) {
    let mut depth = 1;
    for token in reader.by_ref() {
        let Token::Directive(line) = token else { continue };
        match tokens(line).find_map(Token::name) {
            Some("if" | "ifdef" | "ifndef") => depth += 1,
            Some("endif") => depth -= 1,
            _ => (),
        }
        if depth == 0 {
            return;
        }
    }
}

fn directive(text: &str) -> Part<'_> {
    let mut names = tokens(text).filter_map(Token::name);
    let mut part = Part { text, ..Part::default() };
    if names.next() == Some("define") {
        part.is_macro = true;
        part.defines.extend(names.next());
    }
    part.mentions.extend(names);
    part.joined = joined(text);
    part
}

/// Names before `##`.
fn joined(text: &str) -> Vec<&str> {
    let names = text.match_indices("##").filter_map(|(at, _)| {
        let before = text.get(..at)?.trim_end();
        before.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()
    });
    names.collect()
}

const KEYWORDS: [&str; 24] = [
    "static",
    "inline",
    "extern",
    "const",
    "volatile",
    "unsigned",
    "signed",
    "int",
    "long",
    "short",
    "char",
    "void",
    "struct",
    "union",
    "enum",
    "typedef",
    "float",
    "double",
    "_Bool",
    "register",
    "restrict",
    "__inline__",
    "__attribute__",
    "__volatile__",
];

/// What begins with `first` at `start`.
fn declaration<'h>(reader: &mut Reader<'h>, first: Token<'h>, start: usize) -> Part<'h> {
    let mut part = Part { is_type: first == Token::Name("typedef"), ..Part::default() };
    let (mut round, mut curly, mut square) = (0_usize, 0_usize, 0_usize);
    let mut has_value = false;
    let mut is_enum = false;
    // The name before the last outer pair of parentheses.
    let mut called = None;
    let mut before = [Token::Other; 2];
    let mut next = Some(first);
    while let Some(token) = next {
        match token {
            Token::Mark(b'(') => {
                if round == 0 && curly == 0 {
                    called = before[1].name();
                }
                round += 1;
            }
            Token::Mark(b')') => round = round.saturating_sub(1),
            Token::Mark(b'[') => square += 1,
            Token::Mark(b']') => square = square.saturating_sub(1),
            Token::Mark(b'=') if curly == 0 && round == 0 => has_value = true,
            Token::Mark(b'{') => {
                if let (0, [Token::Name("struct" | "union" | "enum"), Token::Name(tag)]) = (curly, before) {
                    part.defines.push(tag);
                }
                let is_body = curly == 0 && !has_value && before[1] == Token::Mark(b')');
                curly += 1;
                if is_body && called != Some("__attribute__") {
                    skip_body(reader, &mut part);
                    break;
                }
            }
            Token::Mark(b'}') => curly = curly.saturating_sub(1),
            Token::Mark(b';') if curly == 0 && round == 0 => break,
            Token::Name(name) => {
                is_enum |= name == "enum";
                let is_tag = matches!(before[1], Token::Name("struct" | "union" | "enum"));
                let is_outer = curly == 0 && round == 0 && square == 0 && !has_value && !is_tag;
                let is_pointer = curly == 0 && round == 1 && before == [Token::Mark(b'('), Token::Mark(b'*')];
                if KEYWORDS.contains(&name) {
                    // Defines nothing, and is defined nowhere.
                } else {
                    if is_outer || is_pointer || is_enum && curly == 1 {
                        part.defines.push(name);
                    }
                    part.mentions.push(name);
                }
            }
            Token::Directive(line) => part.mentions.extend(tokens(line).filter_map(Token::name)),
            _ => (),
        }
        before = [before[1], token];
        next = reader.next();
    }
    part.text = reader.slice(start, reader.at);
    part
}

/// To the end of a function whose first brace was read.
fn skip_body<'h>(reader: &mut Reader<'h>, part: &mut Part<'h>) {
    let mut curly = 1;
    for token in reader.by_ref() {
        match token {
            Token::Mark(b'{') => curly += 1,
            Token::Mark(b'}') => curly -= 1,
            Token::Name(name) => part.mentions.push(name),
            Token::Directive(line) => part.mentions.extend(tokens(line).filter_map(Token::name)),
            _ => (),
        }
        if curly == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "\
/* Of a kernel. */
#ifndef X_H
#define X_H
struct pt_regs;
typedef long long number;
typedef number (*reader)(struct pt_regs *regs);
#define LIMIT 7 /* of
 two lines */
#define twice(x) \\
\tadd(x, x)
struct pair { number a, b[LIMIT]; } __attribute__((packed));
enum color { RED, GREEN = 2 };
extern number counter;
static const number primes[] = { 2, 3 };
#ifdef __x86_64__
#define HERE 1
#else
#define HERE 0
#endif
number add(number a, number b);
static inline number square(struct pair *pair, enum color color)
{
#ifdef __x86_64__
\treturn pair->a * LIMIT; /* } */
#else
\treturn color == GREEN ? '}' : counter;
#endif
}
number call(reader reader);
#define USES(kind) const void *uses_##kind = FAMILY_##kind
#define FAMILY_BEGIN &family_begin
#define FAMILY_END &family_end
extern number family_begin;
extern number family_end;
#endif
";

    fn left(unit: &str) -> String {
        let [text] = <[String; 1]>::try_from(used(&[HEADER], unit)).unwrap();
        let rest = text.strip_prefix("#ifndef X_H\n#define X_H\nstruct pt_regs;\n");
        // The macro against a second inclusion is used by its condition, and conditions are kept.
        rest.and_then(|rest| rest.strip_suffix("#endif\n")).unwrap_or(&text).to_string()
    }

    const CONDITION: &str = "#ifdef __x86_64__\n#define HERE 1\n#else\n#define HERE 0\n#endif\n";

    #[test]
    fn only_what_is_mentioned_is_left() {
        assert_eq!(left("/* add */ \"add\""), CONDITION);
        // The second one might define the name with which it begins.
        let typedef = "typedef long long number;\ntypedef number (*reader)(struct pt_regs *regs);\n";
        assert_eq!(left("add(1)"), format!("{typedef}{CONDITION}number add(number a, number b);\n"));
        assert_eq!(left("counter"), format!("{typedef}extern number counter;\n{CONDITION}"));
        assert_eq!(left("x = primes[1];"), format!("{typedef}static const number primes[] = {{ 2, 3 }};\n{CONDITION}"));
        assert_eq!(left("RED"), format!("enum color {{ RED, GREEN = 2 }};\n{CONDITION}"));
    }

    #[test]
    fn what_is_left_has_what_it_needs() {
        let text = left("call(x)");
        assert!(text.contains("typedef number (*reader)") && text.contains("long long number;"), "{text}");
        let text = left("twice(3)");
        assert!(text.contains("#define twice(x) \\\n\tadd(x, x)\n") && text.contains("number add("), "{text}");
        let text = left("square(0)");
        for needed in [
            "struct pair {",
            "enum color {",
            "#define LIMIT 7",
            "extern number counter;",
            "'}' : counter;\n#endif\n}\n",
        ] {
            assert!(text.contains(needed), "{text}");
        }
        assert!(!text.contains("primes") && !text.contains("add("), "{text}");
    }

    #[test]
    fn names_that_macros_join() {
        let text = left("USES(BEGIN);");
        assert!(text.contains("number family_begin;") && !text.contains("family_end"), "{text}");
    }
}
