// SPDX-License-Identifier: GPL-2.0-or-later

//! The words of a script as an editor sees them: kinds and places, comments included, whatever branch of a conditional they are
//! in. Nothing is expanded or parsed, so a script that is being typed has words, too.

use std::ops::Range;

use super::error::LexicalError;
use super::lexer;
use super::token::{AtOperator, Keyword, Kind};
use spile_source::FileId;

/// What a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordKind {
    /// A reserved word.
    Keyword,
    /// A name.
    Name,
    /// `$name`, `$$name`.
    Target,
    /// `$` or `$$` after a value.
    Dollars,
    /// A number.
    Number,
    /// A string with both of its quotes.
    String,
    /// A string without a closing quote on its line.
    OpenString,
    /// `%{ ... %}`.
    EmbeddedC,
    /// `@word`.
    At,
    /// `$1`, `@1`, `$#`.
    Argument,
    /// An operator or a bracket.
    Operator,
    /// A comment.
    Comment,
    /// Not a word of the language.
    Junk,
}

/// One word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// What it is.
    pub kind: WordKind,
    /// Its bytes in the text.
    pub range: Range<usize>,
}

/// All words of a script, in order.
pub fn words(bytes: &[u8]) -> Vec<Word> {
    let mut words = Vec::new();
    let mut end = 0;
    for token in lexer::lex(FileId(0), bytes) {
        let range = token.span.start as usize..token.span.end as usize;
        comments(bytes, end..range.start, &mut words);
        let kind = match token.kind {
            Kind::Keyword(_) => WordKind::Keyword,
            Kind::Ident(_) => WordKind::Name,
            Kind::Target(_) => WordKind::Target,
            Kind::Dollars(_) => WordKind::Dollars,
            Kind::Number(_) => WordKind::Number,
            Kind::String(_) => WordKind::String,
            Kind::EmbeddedC(_) => WordKind::EmbeddedC,
            Kind::AtWord(_) | Kind::At(_) => WordKind::At,
            Kind::Argument(_) => WordKind::Argument,
            Kind::Op(_) => WordKind::Operator,
            Kind::Junk(LexicalError::UnclosedString) => WordKind::OpenString,
            // The token is the opening text; the rest of the file belongs to it.
            Kind::Junk(LexicalError::UnclosedComment) => WordKind::Comment,
            Kind::Junk(LexicalError::UnclosedEmbeddedC) => WordKind::EmbeddedC,
            Kind::Junk(_) | Kind::Poison => WordKind::Junk,
        };
        let open = matches!(kind, WordKind::Comment)
            || kind == WordKind::EmbeddedC && !bytes.get(range.clone()).is_some_and(|text| text.ends_with(b"%}"));
        let range = if open { range.start..bytes.len() } else { range };
        end = range.end;
        words.push(Word { kind, range });
    }
    comments(bytes, end..bytes.len(), &mut words);
    words
}

/// Adds the comments of a gap between tokens, which has nothing else but white space.
fn comments(bytes: &[u8], gap: Range<usize>, words: &mut Vec<Word>) {
    let mut at = gap.start;
    while at < gap.end {
        let rest = bytes.get(at..gap.end).unwrap_or_default();
        let length = if rest.starts_with(b"/*") {
            rest.windows(2).skip(2).position(|pair| pair == b"*/").map_or(rest.len(), |length| length + 4)
        } else if rest.starts_with(b"//") || rest.starts_with(b"#") {
            rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len())
        } else {
            at += 1;
            continue;
        };
        words.push(Word { kind: WordKind::Comment, range: at..at + length });
        at += length;
    }
}

/// The reserved words.
pub fn keywords() -> impl Iterator<Item = &'static str> {
    Keyword::ALL.iter().map(|keyword| keyword.text())
}

/// The words of the `@` operators, without the `@`.
pub fn at_operators() -> impl Iterator<Item = &'static str> {
    AtOperator::ALL.iter().map(|(word, _)| *word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<(WordKind, &str)> {
        words(text.as_bytes()).into_iter().map(|word| (word.kind, &text[word.range])).collect()
    }

    #[test]
    fn kinds_and_comments() {
        use WordKind::*;
        assert_eq!(
            shown("# a\nprobe x /* b */ { $y->z$ = @m + $1 // c"),
            [
                (Comment, "# a"),
                (Keyword, "probe"),
                (Name, "x"),
                (Comment, "/* b */"),
                (Operator, "{"),
                (Target, "$y"),
                (Operator, "->"),
                (Name, "z"),
                (Dollars, "$"),
                (Operator, "="),
                (At, "@m"),
                (Operator, "+"),
                (Argument, "$1"),
                (Comment, "// c"),
            ]
        );
    }

    #[test]
    fn unclosed_strings_and_comments() {
        use WordKind::*;
        assert_eq!(
            shown("probe f(\"vf\nend"),
            [(Keyword, "probe"), (Name, "f"), (Operator, "("), (OpenString, "\"vf"), (Name, "end")]
        );
        assert_eq!(shown("a /* b\nc"), [(Name, "a"), (Comment, "/* b\nc")]);
        assert_eq!(shown("%{ int x;\n"), [(EmbeddedC, "%{ int x;\n")]);
        assert_eq!(shown(""), []);
    }
}
