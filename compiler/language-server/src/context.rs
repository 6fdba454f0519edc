// SPDX-License-Identifier: GPL-2.0-or-later

//! Finds what is being typed at an offset, from the words before it.

use std::ops::Range;

use spile_syntax::words::WordKind;

use crate::scan::{Item, ItemKind, Scan};

/// A component of a probe point that has been typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Component {
    /// Its name.
    pub name: String,
    /// What is in its parentheses, without quotes.
    pub argument: Option<String>,
}

/// What is being typed. `replace` is the range that a completion replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Context {
    /// A component of a probe point, after these.
    Component {
        /// The components before it.
        before: Vec<Component>,
        /// As far as it is typed.
        replace: Range<usize>,
    },
    /// The text in the parentheses of the last of these components.
    Argument {
        /// The components up to this one.
        components: Vec<Component>,
        /// The string's content up to the cursor.
        replace: Range<usize>,
    },
    /// `$name`.
    Target {
        /// The name with its dollar.
        replace: Range<usize>,
    },
    /// A member.
    Member {
        /// The expression before it, with the arrow.
        chain: Range<usize>,
        /// As far as it is typed.
        replace: Range<usize>,
    },
    /// `@word`.
    At {
        /// The word with its `@`.
        replace: Range<usize>,
    },
    /// A name in a statement or an expression.
    Name {
        /// As far as it is typed.
        replace: Range<usize>,
    },
    /// A top-level keyword.
    Top {
        /// As far as it is typed.
        replace: Range<usize>,
    },
    /// Nothing that can be completed.
    Nothing,
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// What is being typed at the offset.
pub fn at(scan: &Scan, offset: usize) -> Context {
    if scan.in_comment(offset) {
        return Context::Nothing;
    }
    let bytes = scan.text().as_bytes();
    let owner = scan.item_at(offset);
    let item = owner.and_then(|owner| scan.items.get(owner));
    if let Some(string) = string_at(scan, offset) {
        let (Some(item), Some(word)) = (item, scan.words.get(string)) else { return Context::Nothing };
        return argument(scan, item, string, word.range.start + 1..offset);
    }
    if scan
        .words
        .iter()
        .any(|word| word.kind == WordKind::EmbeddedC && word.range.start < offset && offset < word.range.end)
    {
        return Context::Nothing;
    }
    let before = bytes.get(..offset).unwrap_or_default();
    let typed = before.iter().rev().take_while(|byte| is_name_byte(**byte)).count();
    let mut start = offset - typed;
    let sigils = before.get(..start).unwrap_or_default();
    let dollars = sigils.iter().rev().take_while(|byte| **byte == b'$').count();
    let behind = |at: usize| at.checked_sub(1).and_then(|at| bytes.get(at)).copied();
    if dollars > 0 {
        start -= dollars;
        // After a name it asks for pretty-printing.
        let pretty = behind(start).is_some_and(|byte| is_name_byte(byte) || byte == b']' || byte == b')');
        return if pretty { Context::Nothing } else { Context::Target { replace: start..offset } };
    }
    if behind(start) == Some(b'@') {
        return Context::At { replace: start - 1..offset };
    }
    let replace = start..offset;
    let previous = scan.words.partition_point(|word| word.range.start < start);
    if let Some(arrow) = previous.checked_sub(1).filter(|arrow| scan.word(*arrow) == "->") {
        return match chain_start(scan, arrow) {
            Some(first) => {
                let end = scan.words.get(arrow).map_or(start, |word| word.range.end);
                Context::Member { chain: first..end, replace }
            }
            None => Context::Nothing,
        };
    }
    let Some(item) = item else { return Context::Top { replace } };
    place(scan, item, previous, offset, replace)
}

/// A name at a place of an item.
fn place(scan: &Scan, item: &Item, previous: usize, offset: usize, replace: Range<usize>) -> Context {
    let first_of_body = scan.words.get(item.body.start).filter(|_| !item.body.is_empty());
    let in_body = first_of_body.is_some_and(|word| word.range.end <= offset);
    match item.kind {
        ItemKind::Probe | ItemKind::Alias if !in_body => {
            let keyword_ends = scan.words.get(item.words.start).map_or(0, |word| word.range.end);
            if offset <= keyword_ends {
                return Context::Top { replace };
            }
            let begins = |range: &Range<usize>| {
                range.start.checked_sub(1).and_then(|open| scan.words.get(open)).map(|word| word.range.end)
            };
            let ends = |range: &Range<usize>| scan.words.get(range.end).map_or(usize::MAX, |word| word.range.start);
            let in_condition =
                |range: &Range<usize>| begins(range).is_some_and(|begin| begin <= offset) && offset <= ends(range);
            if item.conditions.iter().any(in_condition) {
                return Context::Name { replace };
            }
            match components(scan, item, previous) {
                Some(before) => Context::Component { before, replace },
                None => Context::Nothing,
            }
        }
        ItemKind::Probe | ItemKind::Alias | ItemKind::Function if in_body => Context::Name { replace },
        ItemKind::Macro if in_body => Context::Name { replace },
        _ if previous <= item.words.start => Context::Top { replace },
        _ => Context::Nothing,
    }
}

/// The string that the offset is in.
fn string_at(scan: &Scan, offset: usize) -> Option<usize> {
    let index = scan.words.partition_point(|word| word.range.start < offset).checked_sub(1)?;
    let word = scan.words.get(index)?;
    let inside = match word.kind {
        WordKind::String => offset < word.range.end,
        WordKind::OpenString => offset <= word.range.end,
        _ => false,
    };
    inside.then_some(index)
}

fn argument(scan: &Scan, item: &Item, string: usize, replace: Range<usize>) -> Context {
    let name = string.checked_sub(2);
    let is_argument = item.header.contains(&string)
        && string.checked_sub(1).is_some_and(|open| scan.word(open) == "(")
        && !item.conditions.iter().any(|condition| condition.contains(&string));
    let Some(name) = name.filter(|_| is_argument) else { return Context::Nothing };
    let Some(mut components) = components(scan, item, name) else { return Context::Nothing };
    components.push(Component { name: scan.word(name).to_string(), argument: None });
    Context::Argument { components, replace }
}

/// The components before a word of the header; None where there cannot be a component.
pub fn components(scan: &Scan, item: &Item, until: usize) -> Option<Vec<Component>> {
    let mut current: Vec<Component> = Vec::new();
    let mut groups: Vec<Vec<Component>> = Vec::new();
    let mut expects = true;
    let mut at = item.header.start;
    while at < until.min(item.header.end) {
        match (scan.kind(at), scan.word(at)) {
            (_, ".") => expects = true,
            (_, "," | "=" | "+=") => {
                current = groups.last().cloned().unwrap_or_default();
                expects = true;
            }
            (_, "{") => {
                groups.push(current.clone());
                expects = true;
            }
            (_, "}") => {
                groups.pop();
                expects = false;
            }
            (_, "(") => {
                let argument = scan.word(at + 1).trim_matches('"').to_string();
                if let Some(last) = current.last_mut() {
                    last.argument = Some(argument);
                }
                let closing = (at..until).find(|at| scan.word(*at) == ")");
                at = closing.unwrap_or(until);
                expects = false;
            }
            (Some(WordKind::Keyword), "if") if !expects => {
                let condition = item.conditions.iter().find(|condition| condition.start > at);
                at = condition.map_or(until, |condition| condition.end);
                expects = false;
            }
            (Some(WordKind::Name | WordKind::Keyword), name) if expects => {
                current.push(Component { name: name.to_string(), argument: None });
                expects = false;
            }
            // Part of a wildcard.
            (_, part @ ("*" | "?")) | (Some(WordKind::Name), part) => {
                if let Some(last) = current.last_mut() {
                    last.name.push_str(part);
                }
            }
            _ => {}
        }
        at += 1;
    }
    expects.then_some(current)
}

/// The offset at which an expression begins that ends before the arrow.
fn chain_start(scan: &Scan, arrow: usize) -> Option<usize> {
    let mut at = arrow.checked_sub(1)?;
    loop {
        match scan.word(at) {
            "]" => at = opening(scan, at, "[", "]")?.checked_sub(1)?,
            ")" => {
                let open = opening(scan, at, "(", ")")?;
                let head = open.checked_sub(1);
                let is_call = head.is_some_and(|head| matches!(scan.kind(head), Some(WordKind::Name | WordKind::At)));
                at = if is_call { head? } else { open };
            }
            _ => {}
        }
        let before = at.checked_sub(1);
        match scan.kind(at) {
            Some(WordKind::Target | WordKind::At) => return scan.words.get(at).map(|word| word.range.start),
            Some(WordKind::Name | WordKind::Keyword) if before.is_some_and(|before| scan.word(before) == "->") => {
                at = before?.checked_sub(1)?;
            }
            Some(WordKind::Name) => return scan.words.get(at).map(|word| word.range.start),
            Some(WordKind::Operator) if scan.word(at) == "(" => return scan.words.get(at).map(|word| word.range.start),
            _ => return None,
        }
    }
}

/// The bracket that the one at the word closes.
pub fn opening(scan: &Scan, close: usize, opens: &str, closes: &str) -> Option<usize> {
    let mut depth = 0usize;
    for at in (0..=close).rev() {
        let word = scan.word(at);
        if word == closes {
            depth += 1;
        } else if word == opens {
            depth -= 1;
            if depth == 0 {
                return Some(at);
            }
        } else if matches!(word, "{" | "}" | ";") {
            return None;
        }
    }
    None
}

/// The whole chain that a member is the last of: from its beginning to the member's end.
pub fn chain_of(scan: &Scan, member: usize) -> Option<Range<usize>> {
    let start = chain_start(scan, member.checked_sub(1)?)?;
    Some(start..scan.words.get(member)?.range.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The context at the `|` of a script.
    fn context(text: &str) -> Context {
        let offset = text.find('|').unwrap();
        at(&Scan::new(&text.replacen('|', "", 1)), offset)
    }

    fn names(components: &[Component]) -> String {
        let one = |component: &Component| match &component.argument {
            Some(argument) => format!("{}({argument})", component.name),
            None => component.name.clone(),
        };
        components.iter().map(one).collect::<Vec<_>>().join(".")
    }

    fn before(text: &str) -> String {
        match context(text) {
            Context::Component { before, .. } => names(&before),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn components_of_a_point() {
        assert_eq!(before("probe |"), "");
        assert_eq!(before("probe ker|"), "");
        assert_eq!(before("probe kernel.|"), "kernel");
        assert_eq!(before("probe kernel.function(\"f\").re|\nprobe end { }"), "kernel.function(f)");
        assert_eq!(before("probe timer.s(1), syscall.o| { }"), "syscall");
        assert_eq!(before("probe vfs.{read, wr|"), "vfs");
        assert_eq!(before("probe a = module(\"m\").|"), "module(m)");
        assert_eq!(before("probe a if (x > 1), b.|"), "b");
        assert_eq!(context("probe begin |"), Context::Nothing);
    }

    #[test]
    fn arguments_of_a_component() {
        for text in [
            "probe kernel.function(\"vf|",
            "probe kernel.function(\"vf|\") { }",
            "probe kernel.function(\"vf|\nprobe end { }",
        ] {
            let Context::Argument { components, replace } = context(text) else { panic!("{text}") };
            assert_eq!((names(&components), replace), ("kernel.function".into(), 23..25));
        }
        assert_eq!(context("probe begin { print(\"a|\") }"), Context::Nothing);
        let Context::Argument { components, .. } = context("probe module(\"nf|s\").function(\"x\")") else { panic!() };
        assert_eq!(names(&components), "module");
    }

    #[test]
    fn variables_members_and_words() {
        assert_eq!(context("probe x { $fi|"), Context::Target { replace: 10..13 });
        assert_eq!(context("probe x { $|"), Context::Target { replace: 10..11 });
        assert_eq!(context("probe x { print($a$|"), Context::Nothing);
        assert_eq!(context("probe x { @co|"), Context::At { replace: 10..13 });
        assert_eq!(context("probe x { task->|"), Context::Member { chain: 10..16, replace: 16..16 });
        assert_eq!(context("probe x { $a->b[1]->c|d }"), Context::Member { chain: 10..20, replace: 20..21 });
        assert_eq!(context("probe x { @cast(p, \"t\")->|"), Context::Member { chain: 10..25, replace: 25..25 });
        assert_eq!(context("probe x { f(g(1), pr|"), Context::Name { replace: 18..20 });
        assert_eq!(context("probe x if (n|) { }"), Context::Name { replace: 12..13 });
        assert_eq!(context("probe x if (|) { }"), Context::Name { replace: 12..12 });
        assert_eq!(context("pro|"), Context::Top { replace: 0..3 });
        assert_eq!(context("probe x { }\n|"), Context::Top { replace: 12..12 });
        assert_eq!(context("# pro|"), Context::Nothing);
        assert_eq!(context("probe x { /* a| */ }"), Context::Nothing);
        assert_eq!(context("%{ int a| %}"), Context::Nothing);
        assert_eq!(context("global a|"), Context::Nothing);
    }

    #[test]
    fn every_offset_has_one() {
        let text = "@define m(a) %( @a->b %)\nprobe k.f(\"x\").{a,b} ?, z! if (q[1]) { $a->b[c(1)]->d$ <<< @cast(e, \"ä\")->f }\nfunction g:long (h) %{ %}";
        for cut in 0..=text.len() {
            let Some(part) = text.get(..cut) else { continue };
            let scan = Scan::new(part);
            (0..=cut).for_each(|offset| drop(at(&scan, offset)));
        }
    }
}
