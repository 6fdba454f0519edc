// SPDX-License-Identifier: GPL-2.0-or-later

//! Bytes to tokens.
//!
//! Takes the bytes of one file, returns all its tokens. White space and comments are dropped. What is not a token is
//! [`Kind::Junk`] with its reason, because a skipped `%( %)` branch may contain anything. Never fails, never stops
//! early.

use super::error::LexicalError;
use super::token::{Argument, Keyword, Kind, Op, Token};
use spile_source::{FileId, Span};

/// The tokens of `bytes`, which are the text of `file`.
pub fn lex(file: FileId, bytes: &[u8]) -> Vec<Token> {
    let mut lexer = Lexer { file, bytes, at: 0, tokens: Vec::new() };
    while lexer.scan() {}
    lexer.tokens
}

struct Lexer<'a> {
    file: FileId,
    bytes: &'a [u8],
    at: usize,
    tokens: Vec<Token>,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn starts_with(&self, text: &[u8]) -> bool {
        self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(text))
    }

    fn push(&mut self, start: usize, kind: Kind) {
        self.tokens.push(Token { kind, span: Span::new(self.file, start, self.at) });
    }

    /// Skips and returns bytes while `accept` holds.
    fn take_while(&mut self, accept: impl Fn(u8) -> bool) -> &[u8] {
        let start = self.at;
        while self.peek(0).is_some_and(&accept) {
            self.at += 1;
        }
        &self.bytes[start..self.at]
    }

    /// Reads one token, comment or gap; false at the end.
    fn scan(&mut self) -> bool {
        let Some(byte) = self.peek(0) else { return false };
        let start = self.at;
        match byte {
            _ if byte.is_ascii_whitespace() || byte == 0x0b => {
                self.at += 1;
            }
            b'#' => self.skip_line(),
            b'/' if self.starts_with(b"//") => self.skip_line(),
            b'/' if self.starts_with(b"/*") => self.skip_comment(),
            b'%' if self.starts_with(b"%{") => self.scan_embedded(),
            b'"' => self.scan_string(),
            b'$' | b'@' if self.peek(1).is_some_and(|next| next == b'#' || next.is_ascii_digit()) => {
                self.scan_argument(byte == b'@');
            }
            b'@' if self.peek(1).is_some_and(is_word_start) => {
                self.at += 1;
                let word = text(self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
                self.push(start, Kind::AtWord(word));
            }
            b'0'..=b'9' => self.scan_number(),
            _ if is_word_start(byte) || byte == b'$' => self.scan_word(),
            _ => self.scan_operator(),
        }
        true
    }

    fn skip_line(&mut self) {
        self.take_while(|byte| byte != b'\n');
    }

    fn skip_comment(&mut self) {
        let start = self.at;
        match find(&self.bytes[start + 2..], b"*/") {
            Some(length) => self.at = start + 2 + length + 2,
            None => {
                self.at = self.bytes.len();
                let span = Span::new(self.file, start, start + 2);
                self.tokens.push(Token { kind: Kind::Junk(LexicalError::UnclosedComment), span });
            }
        }
    }

    fn scan_embedded(&mut self) {
        let start = self.at;
        match find(&self.bytes[start + 2..], b"%}") {
            Some(length) => {
                self.at = start + 2 + length + 2;
                let code = text(&self.bytes[start + 2..start + 2 + length]);
                self.push(start, Kind::EmbeddedC(code));
            }
            None => {
                self.at = self.bytes.len();
                let span = Span::new(self.file, start, start + 2);
                self.tokens.push(Token { kind: Kind::Junk(LexicalError::UnclosedEmbeddedC), span });
            }
        }
    }

    fn scan_string(&mut self) {
        let start = self.at;
        let mut value = Vec::new();
        self.at += 1;
        loop {
            match self.peek(0) {
                None | Some(b'\n') => return self.push(start, Kind::Junk(LexicalError::UnclosedString)),
                Some(b'"') => {
                    self.at += 1;
                    return self.push(start, Kind::String(value));
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.scan_escape(&mut value);
                }
                Some(byte) => {
                    self.at += 1;
                    value.push(byte);
                }
            }
        }
    }

    /// After a backslash: C's escapes; any other character is itself.
    fn scan_escape(&mut self, value: &mut Vec<u8>) {
        let Some(byte) = self.peek(0) else { return };
        if (b'0'..=b'7').contains(&byte) {
            let mut code = 0u32;
            for _ in 0..3 {
                let Some(digit @ b'0'..=b'7') = self.peek(0) else { break };
                code = code * 8 + u32::from(digit - b'0');
                self.at += 1;
            }
            return value.push(code as u8);
        }
        self.at += 1;
        value.push(match byte {
            b'a' => 0x07,
            b'b' => 0x08,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 0x0b,
            b'f' => 0x0c,
            b'r' => b'\r',
            b'x' if self.peek(0).is_some_and(|digit| digit.is_ascii_hexdigit()) => {
                // At most two digits: in C, `"\x1bfoo"` would be one character too large for a byte.
                let mut code = 0;
                for _ in 0..2 {
                    let Some(digit) = self.peek(0).and_then(|digit| (digit as char).to_digit(16)) else { break };
                    code = code * 16 + digit;
                    self.at += 1;
                }
                code as u8
            }
            other => other,
        });
    }

    fn scan_argument(&mut self, quoted: bool) {
        let start = self.at;
        self.at += 1;
        if self.peek(0) == Some(b'#') {
            self.at += 1;
            return self.push(start, Kind::Argument(Argument { quoted, number: None, tail: String::new() }));
        }
        // A number too large to parse is out of range for any number of arguments.
        let number = text(self.take_while(|byte| byte.is_ascii_digit())).parse().unwrap_or(u32::MAX);
        let tail = if quoted { String::new() } else { text(self.take_while(is_word)) };
        self.push(start, Kind::Argument(Argument { quoted, number: Some(number), tail }));
    }

    fn scan_number(&mut self) {
        let start = self.at;
        let digits = text(self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
        let parsed = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
            Some(hex) => u64::from_str_radix(hex, 16),
            None if digits.len() > 1 && digits.starts_with('0') => u64::from_str_radix(&digits[1..], 8),
            None => digits.parse(),
        };
        let kind = match parsed {
            Ok(number) => Kind::Number(number as i64),
            Err(_) => Kind::Junk(LexicalError::BadNumber(digits)),
        };
        self.push(start, kind);
    }

    /// An identifier, a keyword or `$target`; trailing or separate dollars request pretty-printing.
    fn scan_word(&mut self) {
        let start = self.at;
        let word = text(self.take_while(is_word));
        let name = word.trim_end_matches('$');
        let dollars = word.len() - name.len();
        let end = self.at;
        if !name.is_empty() {
            self.at = end - dollars;
            let kind = match Keyword::from_text(name) {
                Some(keyword) => Kind::Keyword(keyword),
                None if name.starts_with('$') => Kind::Target(name.to_string()),
                None => Kind::Ident(name.to_string()),
            };
            self.push(start, kind);
            self.at = end;
        }
        match dollars {
            0 => {}
            1 | 2 => self.push(end - dollars, Kind::Dollars(dollars as u8)),
            _ => self.push(end - dollars, Kind::Junk(LexicalError::TooManyDollars)),
        }
    }

    fn scan_operator(&mut self) {
        let start = self.at;
        for length in [3, 2, 1] {
            let Some(bytes) = self.bytes.get(start..start + length) else { continue };
            if let Some(op) = std::str::from_utf8(bytes).ok().and_then(Op::from_text) {
                self.at += length;
                return self.push(start, Kind::Op(op));
            }
            if bytes == b"%}" {
                self.at += length;
                return self.push(start, Kind::Junk(LexicalError::StrayEmbeddedEnd));
            }
        }
        // Bytes outside ASCII come in runs: report a word in another script once.
        let first = self.bytes[start];
        self.at += 1;
        if !first.is_ascii() {
            self.take_while(|byte| !byte.is_ascii());
        } else if first == b'\'' {
            // Probably meant as a string or character: include its closing quote.
            let rest = &self.bytes[self.at..];
            let line = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
            if let Some(close) = rest[..line].iter().position(|&byte| byte == b'\'') {
                self.at += close + 1;
            }
        }
        let shown = text(&self.bytes[start..self.at]);
        self.push(start, Kind::Junk(LexicalError::Character(shown)));
    }
}

fn is_word_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(script: &str) -> Vec<Kind> {
        lex(FileId(0), script.as_bytes()).into_iter().map(|token| token.kind).collect()
    }

    fn ident(name: &str) -> Kind {
        Kind::Ident(name.to_string())
    }

    #[test]
    fn words_targets_and_dollars() {
        assert_eq!(
            kinds("foo $bar $$vars $x$ $p->m$$ a$b"),
            [
                ident("foo"),
                Kind::Target("$bar".into()),
                Kind::Target("$$vars".into()),
                Kind::Target("$x".into()),
                Kind::Dollars(1),
                Kind::Target("$p".into()),
                Kind::Op(Op::Arrow),
                ident("m"),
                Kind::Dollars(2),
                ident("a$b"),
            ]
        );
        assert_eq!(kinds("$x$$$")[1], Kind::Junk(LexicalError::TooManyDollars));
    }

    #[test]
    fn longest_operator_wins() {
        use Op::*;
        let ops: Vec<Kind> =
            [Aggregate, ShiftRightLogical, ShiftLeftAssign, ShiftLeft, Less, IfOpen, Percent].map(Kind::Op).to_vec();
        assert_eq!(kinds("<<<>>><<=<< < %( %"), ops);
    }

    #[test]
    fn numbers_follow_c() {
        assert_eq!(
            kinds("0 017 0xff 18446744073709551615 9223372036854775808"),
            [Kind::Number(0), Kind::Number(15), Kind::Number(255), Kind::Number(-1), Kind::Number(i64::MIN)]
        );
        for bad in ["08", "0x", "1ms", "18446744073709551616", "0x+1"] {
            assert!(matches!(kinds(bad)[0], Kind::Junk(LexicalError::BadNumber(_))), "{bad}");
        }
    }

    #[test]
    fn strings_have_c_escapes() {
        assert_eq!(kinds(r#""a\tb\n\101\x41b\q\"\\""#), [Kind::String(b"a\tb\nAAbq\"\\".to_vec())]);
        assert_eq!(kinds("\"abc\nx"), [Kind::Junk(LexicalError::UnclosedString), ident("x")]);
        // At most two hexadecimal digits, so the `f` is text.
        assert_eq!(kinds(r#""\x1bfoo""#), [Kind::String(vec![0x1b, b'f', b'o', b'o'])]);
    }

    #[test]
    fn comments_of_three_kinds() {
        assert_eq!(kinds("#!/usr/bin/stap\na // b\n/* c\n * d */ e # f"), [ident("a"), ident("e")]);
        assert_eq!(kinds("a /* b"), [ident("a"), Kind::Junk(LexicalError::UnclosedComment)]);
    }

    #[test]
    fn embedded_c_is_raw() {
        assert_eq!(kinds("%{ \"\n%)\" %}x"), [Kind::EmbeddedC(" \"\n%)\" ".into()), ident("x")]);
        assert_eq!(kinds("%{ x"), [Kind::Junk(LexicalError::UnclosedEmbeddedC)]);
        assert_eq!(kinds("%}"), [Kind::Junk(LexicalError::StrayEmbeddedEnd)]);
    }

    #[test]
    fn script_arguments() {
        let argument = |quoted, number, tail: &str| Kind::Argument(Argument { quoted, number, tail: tail.into() });
        assert_eq!(
            kinds("$1 @2 $# @# $1_end"),
            [
                argument(false, Some(1), ""),
                argument(true, Some(2), ""),
                argument(false, None, ""),
                argument(true, None, ""),
                argument(false, Some(1), "_end"),
            ]
        );
    }

    #[test]
    fn foreign_bytes_are_one_piece_of_junk() {
        let tokens = lex(FileId(0), b"\xe4\xf6 @ x");
        assert_eq!(tokens.len(), 3);
        assert!(matches!(tokens[0].kind, Kind::Junk(LexicalError::Character(_))));
        assert_eq!(tokens[1].kind, Kind::Junk(LexicalError::Character("@".into())));
    }
}
