// SPDX-License-Identifier: GPL-2.0-or-later

//! The kinds of words for highlighting: the meaning of a word in the script, which does not follow from its spelling.

use std::ops::Range;

use lsp_types::{SemanticToken, SemanticTokenModifier, SemanticTokenType, SemanticTokensLegend};
use spile_syntax::words::WordKind;

use crate::language;
use crate::scan::{ItemKind, Role, Scan, Symbol};
use crate::text::Text;

/// In the order of [`legend`].
#[derive(Clone, Copy)]
enum Kind {
    Keyword,
    Function,
    Variable,
    Parameter,
    Property,
    Macro,
    String,
    Number,
    Comment,
    Operator,
    Event,
}

const DECLARATION: u32 = 1;
const GLOBAL: u32 = 1 << 1;
const OF_THE_LIBRARY: u32 = 1 << 2;

/// The meaning of the numbers of tokens.
pub fn legend() -> SemanticTokensLegend {
    SemanticTokensLegend {
        token_types: vec![
            SemanticTokenType::KEYWORD,
            SemanticTokenType::FUNCTION,
            SemanticTokenType::VARIABLE,
            SemanticTokenType::PARAMETER,
            SemanticTokenType::PROPERTY,
            SemanticTokenType::MACRO,
            SemanticTokenType::STRING,
            SemanticTokenType::NUMBER,
            SemanticTokenType::COMMENT,
            SemanticTokenType::OPERATOR,
            SemanticTokenType::EVENT,
        ],
        token_modifiers: vec![
            SemanticTokenModifier::DECLARATION,
            SemanticTokenModifier::STATIC,
            SemanticTokenModifier::DEFAULT_LIBRARY,
        ],
    }
}

/// All tokens; a token of several lines is split into one for each line.
pub fn tokens(scan: &Scan, text: &Text) -> Vec<SemanticToken> {
    let mut found: Vec<(Range<usize>, Kind, u32)> =
        scan.comments.iter().map(|comment| (comment.clone(), Kind::Comment, 0)).collect();
    for (index, word) in scan.words.iter().enumerate() {
        if let Some((kind, modifiers)) = kind(scan, index, word.kind) {
            found.push((word.range.clone(), kind, modifiers));
        }
    }
    found.sort_by_key(|(range, ..)| range.start);
    let mut tokens = Vec::new();
    let mut last = (0, 0);
    for (range, kind, modifiers) in found {
        let mut start = range.start;
        for line in text.slice(range).split_inclusive('\n') {
            let end = start + line.trim_end_matches(['\n', '\r']).len();
            let position = text.position(start);
            let length = text.columns(start..end);
            start += line.len();
            if length == 0 {
                continue;
            }
            let delta_line = position.line - last.0;
            let delta_start = if delta_line == 0 { position.character - last.1 } else { position.character };
            last = (position.line, position.character);
            tokens.push(SemanticToken {
                delta_line,
                delta_start,
                length,
                token_type: kind as u32,
                token_modifiers_bitset: modifiers,
            });
        }
    }
    tokens
}

fn kind(scan: &Scan, index: usize, word: WordKind) -> Option<(Kind, u32)> {
    let plain = |kind| Some((kind, 0));
    match word {
        WordKind::String | WordKind::OpenString => return plain(Kind::String),
        WordKind::Number => return plain(Kind::Number),
        WordKind::Target | WordKind::Dollars => return plain(Kind::Variable),
        WordKind::Argument => return plain(Kind::Macro),
        WordKind::Operator if matches!(scan.word(index), "%(" | "%?" | "%:" | "%)") => return plain(Kind::Macro),
        WordKind::Operator | WordKind::EmbeddedC | WordKind::Junk | WordKind::Comment => return None,
        WordKind::Keyword | WordKind::Name | WordKind::At => {}
    }
    let symbol = match scan.role(index) {
        Role::Member => return plain(Kind::Property),
        Role::Component => return plain(Kind::Event),
        Role::Symbol(symbol) => symbol,
        Role::Other if word == WordKind::At && scan.word(index) == "@define" => return plain(Kind::Keyword),
        Role::Other if word == WordKind::At => return plain(Kind::Operator),
        Role::Other if word == WordKind::Keyword => return plain(Kind::Keyword),
        Role::Other => return None,
    };
    let item = scan.item_of(index).and_then(|owner| scan.items.get(owner));
    let is_name = item.is_some_and(|item| item.declares(index));
    let declaration = if is_name { DECLARATION } else { 0 };
    let known = |known: bool| if known { 0 } else { OF_THE_LIBRARY };
    Some(match symbol {
        Symbol::Function(name) if language::find(&name).is_some() => (Kind::Function, OF_THE_LIBRARY),
        Symbol::Function(name) => {
            (Kind::Function, declaration | known(scan.named(ItemKind::Function, &name).is_some()))
        }
        Symbol::Global(_) => (Kind::Variable, declaration | GLOBAL),
        Symbol::Local(owner, name) => {
            let is_parameter = scan.parameter(owner, &name).is_some();
            (if is_parameter { Kind::Parameter } else { Kind::Variable }, declaration)
        }
        Symbol::Macro(name) => (Kind::Macro, declaration | known(scan.named(ItemKind::Macro, &name).is_some())),
        Symbol::MacroParameter(..) => (Kind::Parameter, declaration),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Encoding;

    fn shown(text: &str) -> Vec<(String, &'static str, u32)> {
        let scan = Scan::new(text);
        let lines: Vec<Vec<char>> = text.lines().map(|line| line.chars().collect()).collect();
        let types = legend().token_types;
        let (mut line, mut column) = (0, 0);
        tokens(&scan, &Text::new(text.into(), Encoding::Utf16))
            .into_iter()
            .map(|token| {
                line += token.delta_line as usize;
                column = if token.delta_line == 0 { column } else { 0 } + token.delta_start as usize;
                let word: String = lines[line][column..column + token.length as usize].iter().collect();
                let name: &str = types[token.token_type as usize].as_str();
                (word, Box::leak(name.to_string().into_boxed_str()) as &str, token.token_modifiers_bitset)
            })
            .collect()
    }

    #[test]
    fn words_by_their_meaning() {
        let found = shown("global g\nfunction f(p) { return p->if + g }\nprobe vfs.read { f(@m($a)) /* x\ny */ }");
        let of =
            |word: &str| found.iter().find(|(found, ..)| found == word).map(|(_, kind, modifiers)| (*kind, *modifiers));
        assert_eq!(of("g"), Some(("variable", DECLARATION | GLOBAL)));
        assert_eq!(of("f"), Some(("function", DECLARATION)));
        assert_eq!(of("p"), Some(("parameter", DECLARATION)));
        assert_eq!(of("if"), Some(("property", 0)));
        assert_eq!(of("vfs"), Some(("event", 0)));
        assert_eq!(of("@m"), Some(("macro", OF_THE_LIBRARY)));
        assert_eq!(of("$a"), Some(("variable", 0)));
        assert_eq!((of("/* x"), of("y */")), (Some(("comment", 0)), Some(("comment", 0))));
    }
}
