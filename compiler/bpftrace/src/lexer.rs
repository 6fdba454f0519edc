// SPDX-License-Identifier: GPL-2.0-or-later

//! The text of a filter or a body to tokens.

use std::fmt;
use std::ops::Range;

use spile_source::{FileId, Span};

use super::error::{MAX_DEPTH, Problem, TOO_DEEP};

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    Name(String),
    /// The name of a type of numbers: `uint64`.
    Type(String),
    /// `$x`, without the `$`.
    Variable(String),
    /// `@x`, without the `@`.
    Map(String),
    /// `$1`
    Parameter(u32),
    /// `$#`
    ParameterCount,
    /// As a script writes it.
    Number(String),
    /// With its quotes.
    Text(String),
    /// A keyword or an operator.
    Word(&'static str),
}

impl fmt::Display for Token {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Token::Name(text) | Token::Type(text) | Token::Number(text) => write!(out, "`{text}`"),
            Token::Variable(name) => write!(out, "`${name}`"),
            Token::Map(name) => write!(out, "`@{name}`"),
            Token::Parameter(number) => write!(out, "`${number}`"),
            Token::ParameterCount => out.write_str("`$#`"),
            Token::Text(text) => out.write_str(text),
            Token::Word(word) => write!(out, "`{word}`"),
        }
    }
}

/// A token between two positions in the program.
pub type Located = (usize, Token, usize);

const KEYWORDS: [&str; 14] = [
    "if", "else", "unless", "while", "for", "unroll", "break", "continue", "return", "let", "sizeof", "offsetof",
    "struct", "union",
];

/// The longest first.
const OPERATORS: [&str; 44] = [
    "<<=", ">>=", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=", "-=", "*=", "/=", "%=", "&=",
    "|=", "^=", "..", "+", "-", "*", "/", "%", "&", "|", "^", "~", "!", "<", ">", "=", "(", ")", "[", "]", "{", "}",
    ",", ";", "?",
];

/// Types of numbers, as bpftrace and the kernel's headers name them.
const TYPES: [&str; 24] = [
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "int8_t", "int16_t", "int32_t",
    "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "bool", "char", "short", "int", "long", "size_t",
    "unsigned", "signed",
];

/// The tokens in `range` of the program.
pub fn lex(file: FileId, program: &str, range: Range<usize>) -> Result<Vec<Located>, Problem> {
    let mut lexer = Lexer { file, text: program.get(..range.end).unwrap_or(program), at: range.start };
    let mut tokens = Vec::new();
    let mut depth = Depth::default();
    loop {
        lexer.skip_blanks()?;
        let start = lexer.at;
        match lexer.token()? {
            Some(token) => {
                depth.count(&token).ok_or_else(|| lexer.syntax(TOO_DEEP, start))?;
                tokens.push((start, token, lexer.at));
            }
            None => return Ok(tokens),
        }
    }
}

/// Blocks that the current token is in, and branches after `else` before it.
#[derive(Default)]
struct Depth {
    braces: usize,
    others: usize,
}

impl Depth {
    /// Takes one more token; `None` if it is too deep.
    fn count(&mut self, token: &Token) -> Option<()> {
        match token {
            Token::Word("{") => self.braces += 1,
            Token::Word("}") => self.braces = self.braces.saturating_sub(1),
            // Each branch of a chain is inside the one before.
            Token::Word("else") => self.others += 1,
            _ => {}
        }
        (self.braces.max(self.others) <= MAX_DEPTH).then_some(())
    }
}

/// Reads the tokens of the program from a position on; the splitter uses it too.
pub struct Lexer<'a> {
    /// The program's file.
    pub file: FileId,
    /// The program's text.
    pub text: &'a str,
    /// The position, in bytes.
    pub at: usize,
}

impl<'a> Lexer<'a> {
    /// The text from the position on.
    pub fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// A syntax error from `start` to the position.
    pub fn syntax(&self, message: impl Into<String>, start: usize) -> Problem {
        Problem::Syntax { message: message.into(), span: Span::new(self.file, start, self.at.max(start)) }
    }

    /// Skips and returns what `accept` holds for.
    pub fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let taken = rest.get(..rest.find(|letter| !accept(letter)).unwrap_or(rest.len())).unwrap_or_default();
        self.at += taken.len();
        taken
    }

    /// Skips white space and comments.
    pub fn skip_blanks(&mut self) -> Result<(), Problem> {
        loop {
            let start = self.at;
            self.take_while(char::is_whitespace);
            if self.rest().starts_with("//") {
                self.take_while(|letter| letter != '\n');
            } else if self.rest().starts_with("/*") {
                let length = self.rest().find("*/");
                self.at += length.map_or(self.rest().len(), |length| length + 2);
                length.ok_or_else(|| self.syntax("this comment is not closed", start))?;
            }
            if self.at == start {
                return Ok(());
            }
        }
    }

    fn token(&mut self) -> Result<Option<Token>, Problem> {
        let start = self.at;
        let Some(first) = self.rest().chars().next() else { return Ok(None) };
        let token = match first {
            '"' => Token::Text(self.string()?.to_string()),
            '$' => self.variable()?,
            '@' => {
                self.at += 1;
                Token::Map(self.take_while(is_of_name).to_string())
            }
            _ if first.is_ascii_digit() => self.number()?,
            _ if is_of_name(first) => word(self.take_while(is_of_name)),
            _ => {
                let operator = OPERATORS.iter().chain(&[":", "."]).find(|operator| self.rest().starts_with(**operator));
                self.at += operator.map_or(first.len_utf8(), |operator| operator.len());
                Token::Word(operator.ok_or_else(|| self.syntax("this is not part of the language", start))?)
            }
        };
        Ok(Some(token))
    }

    /// A string, with its quotes.
    pub fn string(&mut self) -> Result<&'a str, Problem> {
        let start = self.at;
        let mut escaped = true;
        let end = self.rest().find(|letter| {
            let ends = letter == '"' && !escaped;
            // The first one opens it.
            escaped = letter == '\\' && !escaped;
            ends
        });
        self.at += end.map_or(self.rest().len(), |end| end + 1);
        match end {
            Some(_) => Ok(self.text.get(start..self.at).unwrap_or_default()),
            None => Err(self.syntax("this string is not closed", start)),
        }
    }

    fn variable(&mut self) -> Result<Token, Problem> {
        let start = self.at;
        self.at += 1;
        if self.rest().starts_with('#') {
            self.at += 1;
            return Ok(Token::ParameterCount);
        }
        let name = self.take_while(is_of_name);
        match name.parse() {
            Ok(number) => Ok(Token::Parameter(number)),
            Err(_) if name.starts_with(|letter: char| !letter.is_ascii_digit()) => {
                Ok(Token::Variable(name.to_string()))
            }
            Err(_) => Err(self.syntax("a name follows `$`", start)),
        }
    }

    /// `10`, `0x1f`, `1_000`, `1e6`, `10ms`, `5ULL`.
    fn number(&mut self) -> Result<Token, Problem> {
        let start = self.at;
        let text = self.take_while(is_of_name).replace('_', "");
        let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(digits) => {
                let digits = digits.trim_end_matches(['u', 'U', 'l', 'L']);
                u64::from_str_radix(digits, 16).ok().map(|_| format!("0x{digits}"))
            }
            None => decimal(&text),
        };
        parsed.map(Token::Number).ok_or_else(|| self.syntax("this is not a number", start))
    }
}

/// A number that is not hexadecimal: with an exponent of ten, a unit of time (in ns), or a suffix of C.
fn decimal(text: &str) -> Option<String> {
    let (digits, rest) = text.split_at(text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len()));
    // 0644 is octal in both languages.
    let octal = digits.len() > 1 && digits.starts_with('0');
    let value = if octal { i64::from_str_radix(digits, 8) } else { digits.parse::<i64>() }.ok();
    let factor = match rest {
        "" | "u" | "U" | "l" | "L" | "ul" | "UL" | "ll" | "LL" | "ull" | "ULL" => {
            return value
                .map(|_| digits.to_string())
                .or_else(|| digits.parse::<u64>().ok().map(|value| value.to_string()));
        }
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => 10_i64.checked_pow(rest.strip_prefix(['e', 'E'])?.parse().ok()?)?,
    };
    value?.checked_mul(factor).map(|value| value.to_string())
}

/// Whether a name may contain it.
pub fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

fn word(text: &str) -> Token {
    if let Some(keyword) = KEYWORDS.iter().find(|keyword| **keyword == text) {
        Token::Word(keyword)
    } else if TYPES.contains(&text) {
        Token::Type(text.to_string())
    } else {
        Token::Name(text.to_string())
    }
}
