// SPDX-License-Identifier: GPL-2.0-or-later

//! Formats a script for `--fmt`: indentation and blanks.
//!
//! Works on tokens, so comments, macros and `%( %)` are preserved: lines stay lines, only white space changes. A line
//! is indented one level deeper than the line that opened its enclosing bracket; so is the statement after a brace-less
//! `if`, and a continuation line. Blanks between words become one; there is none before `,` and `;`, one after `,`, and
//! at most one empty line. Blanks before a comment at the end of a line are preserved, to keep columns aligned.

use super::lexer;
use super::token::{Keyword, Kind, Op, Token};
use spile_source::FileId;

const INDENT: &str = "  ";

/// The formatted text; it has the same tokens.
pub fn layout(bytes: &[u8]) -> Vec<u8> {
    let tokens = lexer::lex(FileId(0), bytes);
    let mut writer = Writer {
        out: Vec::with_capacity(bytes.len()),
        open: Vec::new(),
        line: 0,
        headers: 0,
        before: None,
        header: false,
    };
    let mut end = 0;
    for token in &tokens {
        let (start, next) = (token.span.start as usize, token.span.end as usize);
        // The token of an unclosed comment is its first two bytes; the rest of the file is the comment.
        writer.gap(bytes.get(end..start).unwrap_or(b""), Some(&token.kind));
        writer.token(token, bytes.get(start..next).unwrap_or(b""));
        end = next;
    }
    writer.gap(bytes.get(end..).unwrap_or(b""), None);
    let mut text = writer.out;
    while text.last().is_some_and(u8::is_ascii_whitespace) {
        text.pop();
    }
    if !text.is_empty() {
        text.push(b'\n');
    }
    let kinds = |tokens: Vec<Token>| tokens.into_iter().map(|token| token.kind).collect::<Vec<_>>();
    // Junk may change its meaning when it is moved: leave the text unchanged.
    if kinds(lexer::lex(FileId(0), &text)) == kinds(tokens) { text } else { bytes.to_vec() }
}

/// An open bracket.
struct Open {
    op: Op,
    /// Indentation of its line.
    line: usize,
    /// The parenthesis after `if`, `while`, `for` or `foreach`.
    header: bool,
    /// For `%(`: the brackets that its first branch left open.
    branch: Option<Vec<Open>>,
}

struct Writer {
    out: Vec<u8>,
    open: Vec<Open>,
    /// Indentation of the line being written.
    line: usize,
    /// Heads of brace-less statements whose body follows.
    headers: usize,
    before: Option<Kind>,
    /// The previous token ends the head of a statement.
    header: bool,
}

impl Writer {
    /// The text between two tokens: blanks, newlines, comments. `next` is the token after it.
    fn gap(&mut self, gap: &[u8], next: Option<&Kind>) {
        let mut at = 0;
        loop {
            let blank = gap[at..].iter().take_while(|byte| byte.is_ascii_whitespace() || **byte == 0x0b).count();
            let white = &gap[at..at + blank];
            at += blank;
            let comment = comment(&gap[at..]);
            self.white(white, if comment.is_empty() { next } else { None }, !comment.is_empty());
            if comment.is_empty() {
                return;
            }
            self.out.extend(trimmed(comment));
            at += comment.len();
        }
    }

    fn white(&mut self, white: &[u8], next: Option<&Kind>, comment: bool) {
        let newlines = white.iter().filter(|byte| **byte == b'\n').count();
        if self.out.is_empty() {
            return;
        }
        if newlines > 0 {
            self.out.extend(std::iter::repeat_n(b'\n', newlines.min(2)));
            self.line = self.indentation(next, comment);
            self.out.extend(INDENT.repeat(self.line).as_bytes());
        } else if comment {
            self.out.extend(white);
        } else {
            let is = |kind: Option<&Kind>, ops: &[Op]| matches!(kind, Some(Kind::Op(op)) if ops.contains(op));
            let separator = is(next, &[Op::Comma, Op::Semicolon]);
            let behind_comma = is(self.before.as_ref(), &[Op::Comma]);
            if !separator && (!white.is_empty() || behind_comma) && next.is_some() {
                self.out.push(b' ');
            }
        }
    }

    /// Indentation of a line that starts with `next`, or with a comment.
    fn indentation(&mut self, next: Option<&Kind>, comment: bool) -> usize {
        let closing = match next {
            Some(Kind::Op(op @ (Op::BraceClose | Op::ParenClose | Op::BracketClose | Op::IfClose | Op::IfElse))) => {
                Some(*op)
            }
            _ => None,
        };
        if closing.is_some() {
            self.headers = 0;
            let conditional = matches!(closing, Some(Op::IfClose | Op::IfElse));
            let opened = match conditional {
                true => self.open.iter().rfind(|open| open.op == Op::IfOpen),
                false => self.open.last().filter(|open| open.op != Op::IfOpen),
            };
            return opened.map_or(0, |open| open.line);
        }
        let inside = self.open.last().map_or(0, |open| open.line + 1);
        let in_list = self.open.last().is_some_and(|open| matches!(open.op, Op::ParenOpen | Op::BracketOpen));
        if self.header {
            if !comment && !matches!(next, Some(Kind::Op(Op::BraceOpen))) {
                self.headers += 1;
                return inside + self.headers;
            }
            return inside + self.headers + usize::from(comment);
        }
        if !in_list && (self.is_continued() || continues(next)) {
            return inside + self.headers + 1;
        }
        self.headers = 0;
        inside
    }

    /// Whether the previous token requires a continuation.
    fn is_continued(&self) -> bool {
        match &self.before {
            Some(Kind::Op(op)) => !matches!(
                op,
                Op::BraceOpen
                    | Op::BraceClose
                    | Op::ParenOpen
                    | Op::ParenClose
                    | Op::BracketOpen
                    | Op::BracketClose
                    | Op::IfOpen
                    | Op::IfThen
                    | Op::IfElse
                    | Op::IfClose
                    | Op::Semicolon
                    | Op::Increment
                    | Op::Decrement
                    | Op::Question
                    | Op::Not
                    | Op::Star
            ),
            _ => false,
        }
    }

    fn token(&mut self, token: &Token, text: &[u8]) {
        self.out.extend(text);
        let member = matches!(self.before, Some(Kind::Op(Op::Arrow | Op::Dot)));
        self.header = false;
        match &token.kind {
            Kind::Op(op @ (Op::BraceOpen | Op::ParenOpen | Op::BracketOpen | Op::IfOpen)) => {
                let head = matches!(
                    self.before,
                    Some(Kind::Keyword(Keyword::If | Keyword::While | Keyword::For | Keyword::Foreach))
                );
                let header = *op == Op::ParenOpen && head;
                self.open.push(Open { op: *op, line: self.line, header, branch: None });
            }
            Kind::Op(Op::BraceClose | Op::ParenClose | Op::BracketClose)
                if self.open.last().is_some_and(|open| open.op != Op::IfOpen) =>
            {
                self.header = self.open.pop().is_some_and(|open| open.header);
            }
            Kind::Op(Op::IfElse) => {
                if let Some(at) = self.open.iter().rposition(|open| open.op == Op::IfOpen) {
                    let left = self.open.split_off(at + 1);
                    self.open[at].branch.get_or_insert(left);
                }
            }
            Kind::Op(Op::IfClose) => {
                if let Some(at) = self.open.iter().rposition(|open| open.op == Op::IfOpen) {
                    let left = self.open.split_off(at + 1);
                    let first = self.open.pop().and_then(|open| open.branch);
                    self.open.extend(first.unwrap_or(left));
                }
            }
            Kind::Keyword(Keyword::Else) if !member => self.header = true,
            _ => {}
        }
        // A name spelled like a keyword is not the head of a statement.
        self.before = Some(if member { Kind::Ident(String::new()) } else { token.kind.clone() });
    }
}

/// Whether a line that starts with this token continues the previous one.
fn continues(next: Option<&Kind>) -> bool {
    matches!(
        next,
        Some(Kind::Op(
            Op::Comma
                | Op::Dot
                | Op::Question
                | Op::Colon
                | Op::AndAnd
                | Op::OrOr
                | Op::Plus
                | Op::Slash
                | Op::Or
                | Op::Xor
                | Op::Assign
                | Op::Equal
                | Op::NotEqual
                | Op::Less
                | Op::Greater
                | Op::LessEqual
                | Op::GreaterEqual
                | Op::Arrow
                | Op::Aggregate
        ))
    )
}

/// The comment at the start of the bytes; empty if there is none.
fn comment(bytes: &[u8]) -> &[u8] {
    let end = if bytes.starts_with(b"/*") {
        let close = bytes.windows(2).skip(2).position(|window| window == b"*/");
        close.map_or(bytes.len(), |close| close + 4)
    } else if bytes.starts_with(b"#") || bytes.starts_with(b"//") {
        bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len())
    } else {
        // The rest of the file after an unclosed comment or string.
        bytes.len()
    };
    &bytes[..end]
}

fn trimmed(comment: &[u8]) -> &[u8] {
    let end = comment.iter().rposition(|byte| !byte.is_ascii_whitespace()).map_or(0, |at| at + 1);
    &comment[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(text: &str) -> String {
        let once = layout(text.as_bytes());
        assert_eq!(String::from_utf8_lossy(&layout(&once)), String::from_utf8_lossy(&once), "a second time");
        String::from_utf8(once).unwrap()
    }

    #[test]
    fn lines_are_indented_and_blanks_are_one() {
        let text = "#!/usr/bin/stap\n\n\n\nglobal  a ,b\nprobe   begin{   # first\nif (a)\nif (b ) {\nprintf(\"%d  %d\" ,a,\nb)\n}\nelse\nexit()   /* x\n   y */\nfoo->if = 1\nbar()\n}\n";
        let wanted = "#!/usr/bin/stap\n\nglobal a, b\nprobe begin{   # first\n  if (a)\n    if (b ) {\n      printf(\"%d  %d\", a,\n        b)\n    }\n  else\n    exit()   /* x\n   y */\n  foo->if = 1\n  bar()\n}\n";
        assert_eq!(ordered(text), wanted);
    }

    #[test]
    fn conditionals_macros_and_points() {
        let text = "@define m(x) %(\n@x +\n1\n%)\n%( arch == \"x\" %?\nprobe a { \n%:\nprobe b {\n%)\nx = 1\n}\nprobe kernel.{function(\"a\"),\ntrace(\"b\")},\nend\n{\n%{ c\n  d %}\n}\n";
        let wanted = "@define m(x) %(\n  @x +\n    1\n%)\n%( arch == \"x\" %?\n  probe a {\n%:\n  probe b {\n%)\n    x = 1\n  }\nprobe kernel.{function(\"a\"),\n    trace(\"b\")},\n  end\n{\n  %{ c\n  d %}\n}\n";
        assert_eq!(ordered(text), wanted);
    }

    #[test]
    fn nothing_breaks_it() {
        for text in [
            "",
            "\n\n",
            "\"abc",
            "/* abc",
            "x /* ab\n\nc",
            "%{ a",
            "}}}%)%:",
            "{(%([",
            "'a  b' \n c",
            "a\r\nb\x0bc",
            "é  é",
            "$x$  $$$ ,",
        ] {
            layout(text.as_bytes());
            layout(&layout(text.as_bytes()));
        }
    }
}
