// SPDX-License-Identifier: GPL-2.0-or-later

//! A script by its words: which top-level items there are, and which symbol each name means. Nothing has to parse: an item
//! that is being typed ends where the next one begins.
//!
//! In this language a name before `(` is a function, any other is a variable: a parameter of its function, a global of the
//! script, or else a local of its handler or function.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use spile_syntax::words::{Word, WordKind, at_operators, words};

/// The kinds of item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ItemKind {
    /// `probe POINTS { }`
    Probe,
    /// `probe NAME = POINTS { }`
    Alias,
    /// `function name () { }`
    Function,
    /// `global a, b`
    Global,
    /// `@define name %( %)`
    Macro,
    /// `%{ %}`
    EmbeddedC,
}

/// A top-level item. Ranges are of words.
#[derive(Clone, Debug)]
pub struct Item {
    /// What it is.
    pub kind: ItemKind,
    /// All its words.
    pub words: Range<usize>,
    /// Words of the name of a function or macro, or of the names of globals.
    pub names: Vec<usize>,
    /// Parameters of a function or macro.
    pub parameters: Vec<usize>,
    /// The text of a probe or alias between `probe` and the body.
    pub header: Range<usize>,
    /// In the header: expressions in the parentheses of `if`.
    pub conditions: Vec<Range<usize>>,
    /// The body with its braces; empty if there is none.
    pub body: Range<usize>,
    /// Its end was found: a cursor after it is not inside.
    pub closed: bool,
}

impl Item {
    /// Whether a word of the header is in one of its conditions.
    fn is_condition(&self, word: usize) -> bool {
        let after = self.conditions.partition_point(|condition| condition.start <= word);
        let before = after.checked_sub(1).and_then(|at| self.conditions.get(at));
        before.is_some_and(|condition| condition.contains(&word))
    }

    /// Whether the word declares a name of the item's, or is one of its parameters.
    pub fn declares(&self, word: usize) -> bool {
        // They are in the order of the text.
        self.names.binary_search(&word).is_ok() || self.parameters.binary_search(&word).is_ok()
    }
}

/// What a name means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// A function of that name.
    Function(String),
    /// A global of that name.
    Global(String),
    /// A parameter or local variable of that name in an item.
    Local(usize, String),
    /// A macro of that name, without the `@`.
    Macro(String),
    /// A parameter of that name of the macro that an item defines.
    MacroParameter(usize, String),
}

impl Symbol {
    /// The name, without `@`.
    pub fn name(&self) -> &str {
        let (Symbol::Function(name)
        | Symbol::Global(name)
        | Symbol::Local(_, name)
        | Symbol::Macro(name)
        | Symbol::MacroParameter(_, name)) = self;
        name
    }
}

/// What a word is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// A name with a meaning in the script or the library.
    Symbol(Symbol),
    /// A name after `->`.
    Member,
    /// Part of a probe point's name.
    Component,
    /// Another word.
    Other,
}

/// Words by what they belong to and their text.
type Named<K> = HashMap<(K, String), usize>;

/// The words and items of a script.
#[derive(Debug, Default)]
pub struct Scan {
    text: String,
    /// Without comments.
    pub words: Vec<Word>,
    /// The comments.
    pub comments: Vec<Range<usize>>,
    /// In order.
    pub items: Vec<Item>,
    /// The first word that declares a name, by the kind of its item.
    declared: Named<ItemKind>,
    /// The first parameter of that name, by the number of its item.
    parameters: Named<usize>,
}

impl Scan {
    /// Scans the text of a script.
    pub fn new(text: &str) -> Scan {
        let (comments, words): (Vec<Word>, Vec<Word>) =
            words(text.as_bytes()).into_iter().partition(|word| word.kind == WordKind::Comment);
        let comments = comments.into_iter().map(|word| word.range).collect();
        let mut scan = Scan { text: text.to_string(), words, comments, ..Scan::default() };
        let mut at = 0;
        while at < scan.words.len() {
            at = match scan.item(at) {
                Some(item) => {
                    let end = item.words.end.max(at + 1);
                    scan.items.push(item);
                    end
                }
                None => at + 1,
            };
        }
        (scan.declared, scan.parameters) = scan.declarations();
        scan
    }

    fn declarations(&self) -> (Named<ItemKind>, Named<usize>) {
        let (mut declared, mut parameters) = (HashMap::new(), HashMap::new());
        for (number, item) in self.items.iter().enumerate() {
            for word in &item.names {
                declared.entry((item.kind, self.word(*word).to_string())).or_insert(*word);
            }
            for word in &item.parameters {
                parameters.entry((number, self.word(*word).to_string())).or_insert(*word);
            }
        }
        (declared, parameters)
    }

    /// The text that was read.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The bytes of a word; empty where there is none.
    pub fn word(&self, index: usize) -> &str {
        self.words.get(index).and_then(|word| self.text.get(word.range.clone())).unwrap_or_default()
    }

    /// What a word is.
    pub fn kind(&self, index: usize) -> Option<WordKind> {
        self.words.get(index).map(|word| word.kind)
    }

    /// The word before one.
    fn before(&self, index: usize) -> &str {
        index.checked_sub(1).map(|before| self.word(before)).unwrap_or_default()
    }

    /// Whether the word is the first of its line.
    fn begins_line(&self, index: usize) -> bool {
        let Some(word) = self.words.get(index) else { return false };
        let before = self.text.get(..word.range.start).unwrap_or_default();
        before.trim_end_matches([' ', '\t']).is_empty() || before.trim_end_matches([' ', '\t']).ends_with(['\n', '\r'])
    }

    /// Whether a top-level item begins at the word. Components and members may be named like keywords, but not at the
    /// beginning of a line.
    fn begins_item(&self, index: usize) -> bool {
        let opens = self.kind(index) == Some(WordKind::Keyword)
            && matches!(self.word(index), "probe" | "function" | "global" | "private")
            || self.kind(index) == Some(WordKind::At) && self.word(index) == "@define";
        opens && (!matches!(self.before(index), "." | "->") || self.begins_line(index))
    }

    /// The item that begins at the word.
    fn item(&self, start: usize) -> Option<Item> {
        let item = |kind, end| Item {
            kind,
            words: start..end,
            names: Vec::new(),
            parameters: Vec::new(),
            header: start..start,
            conditions: Vec::new(),
            body: end..end,
            closed: true,
        };
        if self.kind(start) == Some(WordKind::EmbeddedC) {
            return Some(item(ItemKind::EmbeddedC, start + 1));
        }
        if !self.begins_item(start) {
            return None;
        }
        let first = if self.word(start) == "private" { start + 1 } else { start };
        Some(match self.word(first) {
            "probe" => self.probe(item(ItemKind::Probe, start + 1)),
            "function" => self.function(item(ItemKind::Function, first + 1), first + 1),
            "@define" => self.definition(item(ItemKind::Macro, first + 1)),
            "global" => self.globals(item(ItemKind::Global, first + 1), first + 1),
            _ => self.globals(item(ItemKind::Global, first), first),
        })
    }

    /// The word after the bracket that closes the one at `open`, and whether that bracket is before the next item.
    fn matching(&self, open: usize, opens: &str, closes: &str) -> (usize, bool) {
        let mut depth = 0usize;
        let mut at = open;
        while at < self.words.len() && (at == open || !self.begins_item(at)) {
            let word = self.word(at);
            if self.kind(at) == Some(WordKind::Operator) {
                if word == opens {
                    depth += 1;
                } else if word == closes {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return (at + 1, true);
                    }
                }
            }
            at += 1;
        }
        (at, false)
    }

    fn probe(&self, mut item: Item) -> Item {
        let start = item.words.start + 1;
        let mut at = start;
        while at < self.words.len() && !self.begins_item(at) {
            match self.word(at) {
                // Braces that group points are in the place of a component or a point.
                "{" if at == start || matches!(self.before(at), "." | "{" | "=") => at = self.matching(at, "{", "}").0,
                "{" => break,
                "if" if self.word(at + 1) == "(" => {
                    let (end, closed) = self.matching(at + 1, "(", ")");
                    item.conditions.push(at + 2..if closed { end - 1 } else { end });
                    at = end;
                }
                "(" => at = self.matching(at, "(", ")").0,
                "=" | "+=" => {
                    item.kind = ItemKind::Alias;
                    at += 1;
                }
                _ => at += 1,
            }
        }
        item.header = start..at;
        self.with_body(item, at)
    }

    fn with_body(&self, mut item: Item, at: usize) -> Item {
        (item.words.end, item.body, item.closed) = (at, at..at, false);
        if self.word(at) == "{" && self.kind(at) == Some(WordKind::Operator) {
            let (mut end, mut closed) = self.matching(at, "{", "}");
            if item.kind == ItemKind::Alias && closed && self.word(end) == "," && self.word(end + 1) == "{" {
                (end, closed) = self.matching(end + 1, "{", "}");
            }
            (item.words.end, item.body, item.closed) = (end, at..end, closed);
        } else if self.kind(at) == Some(WordKind::EmbeddedC) {
            (item.words.end, item.body, item.closed) = (at + 1, at..at + 1, true);
        }
        item
    }

    fn parameters(&self, open: usize) -> (Vec<usize>, usize) {
        if self.word(open) != "(" {
            return (Vec::new(), open);
        }
        let (end, _) = self.matching(open, "(", ")");
        let first_of_one = |at: &usize| matches!(self.before(*at), "(" | ",") && self.kind(*at) == Some(WordKind::Name);
        ((open + 1..end).filter(first_of_one).collect(), end)
    }

    fn function(&self, mut item: Item, name: usize) -> Item {
        if self.kind(name) != Some(WordKind::Name) {
            item.words.end = name;
            return item;
        }
        item.names = vec![name];
        let mut at = name + 1;
        let typed = |at: usize| self.word(at) == ":" && matches!(self.word(at + 1), "long" | "string");
        if typed(at) {
            at += 2;
        }
        (item.parameters, at) = self.parameters(at);
        // The type may be after the parameters, and a priority.
        while at < self.words.len() && !self.begins_item(at) && matches!(self.word(at), ":" | "long" | "string")
            || self.kind(at) == Some(WordKind::Number)
        {
            at += 1;
        }
        self.with_body(item, at)
    }

    fn definition(&self, mut item: Item) -> Item {
        let name = item.words.end;
        if !matches!(self.kind(name), Some(WordKind::Name | WordKind::Keyword)) {
            return item;
        }
        item.names = vec![name];
        let (parameters, at) = self.parameters(name + 1);
        item.parameters = parameters;
        (item.words.end, item.body) = (at, at..at);
        if self.word(at) == "%(" {
            let mut depth = 0usize;
            let end = (at..self.words.len()).find(|&at| {
                match self.word(at) {
                    "%(" => depth += 1,
                    "%)" => depth = depth.saturating_sub(1),
                    _ => {}
                }
                depth == 0
            });
            let until = end.map_or(self.words.len(), |end| end + 1);
            (item.words.end, item.body, item.closed) = (until, at..until, end.is_some());
        }
        item
    }

    fn globals(&self, mut item: Item, first: usize) -> Item {
        let mut at = first;
        let mut expects = true;
        while at < self.words.len() && !self.begins_item(at) {
            match (self.kind(at), self.word(at)) {
                (Some(WordKind::Name), _) if expects => {
                    item.names.push(at);
                    expects = false;
                }
                (_, ",") => expects = true,
                (_, ";") => {
                    at += 1;
                    break;
                }
                (_, "[" | "]" | "=" | "-" | "%")
                | (Some(WordKind::Number | WordKind::String | WordKind::Argument), _) => {}
                _ => break,
            }
            at += 1;
        }
        (item.words.end, item.body, item.closed) = (at, at..at, !expects);
        item
    }

    /// The word that has the offset, or ends there.
    pub fn word_at(&self, offset: usize) -> Option<usize> {
        let after = self.words.partition_point(|word| word.range.start <= offset);
        let index = after.checked_sub(1)?;
        let touches = |index: usize| self.words.get(index).is_some_and(|word| offset <= word.range.end);
        // Between a name and a bracket, the name is meant.
        let is_name = |index: usize| !matches!(self.kind(index), Some(WordKind::Operator) | None);
        match index.checked_sub(1).filter(|before| touches(*before) && is_name(*before)) {
            Some(before) if !is_name(index) || !touches(index) => Some(before),
            _ => touches(index).then_some(index),
        }
    }

    /// Whether the offset is inside a comment.
    pub fn in_comment(&self, offset: usize) -> bool {
        self.comments.iter().any(|comment| {
            let text = self.text.get(comment.clone()).unwrap_or_default();
            let closed = text.starts_with("/*") && text.ends_with("*/") && text.len() >= 4;
            comment.start < offset && (offset < comment.end || offset == comment.end && !closed)
        })
    }

    /// The item that has the offset.
    pub fn item_at(&self, offset: usize) -> Option<usize> {
        let begins = |item: &Item| self.words.get(item.words.start).is_some_and(|word| word.range.start < offset);
        let index = self.items.partition_point(begins).checked_sub(1)?;
        let item = self.items.get(index)?;
        let end = item.words.end.checked_sub(1).and_then(|last| self.words.get(last)).map_or(0, |word| word.range.end);
        (offset < end || !item.closed || offset == end && item.body.is_empty()).then_some(index)
    }

    /// The item that a word belongs to.
    pub fn item_of(&self, word: usize) -> Option<usize> {
        let index = self.items.partition_point(|item| item.words.start <= word).checked_sub(1)?;
        self.items.get(index)?.words.contains(&word).then_some(index)
    }

    /// Whether the script declares a global of that name.
    pub fn declares_global(&self, name: &str) -> bool {
        self.named(ItemKind::Global, name).is_some()
    }

    /// The word of the name in its declaration.
    pub fn named(&self, kind: ItemKind, name: &str) -> Option<usize> {
        self.declared.get(&(kind, name.to_string())).copied()
    }

    /// The first parameter of that name of an item.
    pub fn parameter(&self, item: usize, name: &str) -> Option<usize> {
        self.parameters.get(&(item, name.to_string())).copied()
    }

    /// What a word is for.
    pub fn role(&self, index: usize) -> Role {
        let (Some(kind), text) = (self.kind(index), self.word(index)) else { return Role::Other };
        let owner = self.item_of(index);
        let item = owner.and_then(|owner| self.items.get(owner));
        let parameter = |name: &str| owner.is_some_and(|owner| self.parameter(owner, name).is_some());
        // They are in the order of the text.
        let is_in = |words: &[usize]| words.binary_search(&index).is_ok();
        if kind == WordKind::At {
            let name = text.trim_start_matches('@');
            return match (owner, item) {
                _ if name == "define" => Role::Other,
                (Some(owner), Some(item)) if item.kind == ItemKind::Macro && parameter(name) => {
                    Role::Symbol(Symbol::MacroParameter(owner, name.into()))
                }
                _ if at_operators().any(|operator| operator == name) && self.named(ItemKind::Macro, name).is_none() => {
                    Role::Other
                }
                _ => Role::Symbol(Symbol::Macro(name.into())),
            };
        }
        if !matches!(kind, WordKind::Name | WordKind::Keyword) {
            return Role::Other;
        }
        if self.before(index) == "->" {
            return Role::Member;
        }
        if let Some(item) = item
            && item.header.contains(&index)
            && !item.is_condition(index)
        {
            return if text == "if" { Role::Other } else { Role::Component };
        }
        let declares = |kind| item.is_some_and(|item| item.kind == kind && is_in(&item.names));
        if declares(ItemKind::Macro) {
            return Role::Symbol(Symbol::Macro(text.into()));
        }
        if kind == WordKind::Keyword {
            return Role::Other;
        }
        if declares(ItemKind::Function)
            || self.word(index + 1) == "(" && !item.is_some_and(|item| is_in(&item.parameters))
        {
            return Role::Symbol(Symbol::Function(text.into()));
        }
        let Some((owner, item)) = owner.zip(item) else { return Role::Other };
        Role::Symbol(match item.kind {
            ItemKind::Macro if is_in(&item.parameters) => Symbol::MacroParameter(owner, text.into()),
            ItemKind::Function if parameter(text) => Symbol::Local(owner, text.into()),
            ItemKind::Global => Symbol::Global(text.into()),
            _ if self.declares_global(text) => Symbol::Global(text.into()),
            _ => Symbol::Local(owner, text.into()),
        })
    }

    /// The symbol that a word means.
    pub fn symbol(&self, index: usize) -> Option<Symbol> {
        match self.role(index) {
            Role::Symbol(symbol) => Some(symbol),
            _ => None,
        }
    }

    /// The places that name a symbol, without `@`, including those in embedded C, by the names of script variables
    /// there.
    pub fn occurrences(&self, symbol: &Symbol) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        for (index, word) in self.words.iter().enumerate() {
            match word.kind {
                WordKind::EmbeddedC => found.extend(self.in_c(index, symbol)),
                _ if self.symbol(index).as_ref() == Some(symbol) => {
                    let skip = usize::from(word.kind == WordKind::At);
                    found.push(word.range.start + skip..word.range.end);
                }
                _ => {}
            }
        }
        found
    }

    /// The places where embedded C names a global or a parameter of its function: `STAP_ARG_x`, `STAP_GLOBAL_GET_x`,
    /// `pragma:read:x`.
    fn in_c(&self, index: usize, symbol: &Symbol) -> Vec<Range<usize>> {
        let Some(word) = self.words.get(index) else { return Vec::new() };
        let heads: &[&str] = match symbol {
            Symbol::Local(owner, _) if self.item_of(index) == Some(*owner) => &["STAP_ARG_"],
            Symbol::Global(_) => &["STAP_GLOBAL_GET_", "STAP_GLOBAL_SET_", "pragma:read:", "pragma:write:"],
            _ => return Vec::new(),
        };
        let (text, name) = (self.word(index), symbol.name());
        let mut found = Vec::new();
        for head in heads {
            for (at, _) in text.match_indices(head) {
                let start = at + head.len();
                let rest = text.get(start..).unwrap_or_default();
                let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
                if rest.get(..length) == Some(name) {
                    found.push(word.range.start + start..word.range.start + start + length);
                }
            }
        }
        found.sort_by_key(|range| range.start);
        found
    }

    /// The declaration of a symbol; for a local variable, the first place that names it.
    pub fn declaration(&self, symbol: &Symbol) -> Option<Range<usize>> {
        let word = |index: usize| self.words.get(index).map(|word| word.range.clone());
        match symbol {
            Symbol::Function(name) => word(self.named(ItemKind::Function, name)?),
            Symbol::Global(name) => word(self.named(ItemKind::Global, name)?),
            Symbol::Macro(name) => word(self.named(ItemKind::Macro, name)?),
            Symbol::Local(owner, name) | Symbol::MacroParameter(owner, name) => match self.parameter(*owner, name) {
                Some(index) => word(index),
                None => self.occurrences(symbol).into_iter().next(),
            },
        }
    }

    /// Names of the variables that an item uses: its parameters and locals, and those of its item alone.
    pub fn locals(&self, owner: usize) -> Vec<String> {
        let Some(item) = self.items.get(owner) else { return Vec::new() };
        let (mut names, mut seen): (Vec<String>, HashSet<String>) = Default::default();
        for index in item.words.clone() {
            if let Some(Symbol::Local(_, name)) = self.symbol(index)
                && seen.insert(name.clone())
            {
                names.push(name);
            }
        }
        names
    }

    /// The bytes of a range of words.
    pub fn bytes(&self, words: &Range<usize>) -> Range<usize> {
        let first = self.words.get(words.start).map(|word| word.range.start);
        let last = words.end.checked_sub(1).and_then(|last| self.words.get(last)).map(|word| word.range.end);
        match (first, last) {
            (Some(first), Some(last)) if !words.is_empty() && first <= last => first..last,
            (Some(first), _) => first..first,
            _ => self.text.len()..self.text.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_names_cost_in_proportion() {
        let each = |one: &dyn Fn(usize) -> String| (0..30_000).map(one).collect::<String>();
        let (globals, uses) = (each(&|at| format!("g{at}, ")), each(&|at| format!("g{at}++ x{at}++ p{at}++ ")));
        let parameters = each(&|at| format!("p{at}, "));
        let text = format!("global {globals} g function f({parameters} p) {{ {uses} }}");
        let began = std::time::Instant::now();
        let scan = Scan::new(&text);
        let roles: Vec<Role> = (0..scan.words.len()).map(|at| scan.role(at)).collect();
        let globals = roles.iter().filter(|role| matches!(role, Role::Symbol(Symbol::Global(_)))).count();
        assert_eq!((globals, scan.locals(1).len()), (60_001, 60_001));
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }

    fn kinds(text: &str) -> Vec<(ItemKind, String)> {
        let scan = Scan::new(text);
        let names = |item: &Item| item.names.iter().map(|name| scan.word(*name)).collect::<Vec<_>>().join(" ");
        scan.items.iter().map(|item| (item.kind, names(item))).collect()
    }

    fn occurrences(text: &str, at: usize) -> Vec<usize> {
        let scan = Scan::new(text);
        let symbol = scan.symbol(scan.word_at(at).unwrap()).unwrap();
        scan.occurrences(&symbol).into_iter().map(|range| range.start).collect()
    }

    #[test]
    fn items_and_their_names() {
        use ItemKind::*;
        let text = "global a, b[10], c% = 1; private global d\nprivate function f:long (x, y:string) { return x }\n\
                    function g (z) %{ STAP_RETVALUE = STAP_ARG_z; %}\n@define m(p) %( @p + %( 1 %? 2 %) %)\n\
                    probe v.{r, w}.return = kernel.function(\"f\") if (a > 1) { a++ }, { b[1] = 2 }\nprobe begin { }\n%{ int i; %}";
        let name = |text: &str| text.to_string();
        assert_eq!(
            kinds(text),
            [
                (Global, name("a b c")),
                (Global, name("d")),
                (Function, name("f")),
                (Function, name("g")),
                (Macro, name("m")),
                (Alias, name("")),
                (Probe, name("")),
                (EmbeddedC, name("")),
            ]
        );
        let scan = Scan::new(text);
        assert_eq!(scan.items[2].parameters.len(), 2);
        assert_eq!(scan.items[5].conditions.len(), 1);
        assert!(scan.items.iter().all(|item| item.closed));
    }

    #[test]
    fn an_unfinished_item_ends_at_the_next() {
        let text = "probe kernel.function(\"vf\nglobal x\nprobe timer.\nfunction f() {\n  if (x {\nprobe end { x = 1 }";
        use ItemKind::*;
        let found: Vec<ItemKind> = kinds(text).into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(found, [Probe, Global, Probe, Function, Probe]);
    }

    #[test]
    fn names_mean_what_their_scope_says() {
        let text =
            "global n\nfunction f(n) { return n }\nprobe begin { n = f(1); x = $y->n; x++ }\nprobe end { x = n }";
        let find = |part: &str| text.find(part).unwrap();
        assert_eq!(occurrences(text, 7), [7, find("n = f"), text.rfind('n').unwrap()], "the global");
        assert_eq!(occurrences(text, find("n) {")), [find("n) {"), find("n }")], "the parameter");
        assert_eq!(occurrences(text, find("f(n")), [find("f(n"), find("f(1")], "the function");
        assert_eq!(occurrences(text, find("x =")), [find("x ="), find("x++")], "a local");
    }

    #[test]
    fn macros_and_embedded_c() {
        let text = "@define m(p) %( @p + @p %)\nglobal g\nfunction f(a) %{ /* pragma:read:g */ STAP_ARG_a + STAP_ARG_ab %}\nprobe begin { @m(g) }";
        assert_eq!(occurrences(text, 8), [8, text.rfind("m(g)").unwrap()]);
        assert_eq!(occurrences(text, 10), [10, 17, 22]);
        let a = text.find("(a)").unwrap() + 1;
        assert_eq!(occurrences(text, a), [a, text.find("ARG_a ").unwrap() + 4]);
        let g = text.find("g\n").unwrap();
        assert_eq!(occurrences(text, g), [g, text.find(":g ").unwrap() + 1, text.rfind('g').unwrap()]);
    }

    #[test]
    fn roles() {
        let text = "probe kernel.function(\"f\").return if (n) { f($a->if, @count(s)) }";
        let scan = Scan::new(text);
        let role = |word: &str| scan.role(scan.word_at(text.find(word).unwrap()).unwrap());
        assert_eq!(role("kernel"), Role::Component);
        assert_eq!(role("function"), Role::Component);
        assert_eq!(role("n)"), Role::Symbol(Symbol::Local(0, "n".into())));
        assert_eq!(role("f($"), Role::Symbol(Symbol::Function("f".into())));
        assert_eq!(role("if,"), Role::Member);
        assert_eq!(role("@count"), Role::Other);
    }

    #[test]
    fn nothing_is_there() {
        let scan = Scan::new("");
        assert!(scan.items.is_empty() && scan.word_at(0).is_none() && scan.item_at(0).is_none());
        for text in ["probe", "function", "global", "@define", "private", "function f(", "probe x {", "@define a %("] {
            let scan = Scan::new(text);
            assert_eq!(scan.items.len(), 1, "{text}");
            (0..scan.words.len()).for_each(|index| drop(scan.role(index)));
        }
    }
}
