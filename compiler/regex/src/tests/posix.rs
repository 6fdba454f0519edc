// SPDX-License-Identifier: GPL-2.0-or-later

//! Compares groups with a direct implementation of POSIX's rules: each part from left to right as long as possible,
//! tried in turn.

use super::super::parse::{Node, parse};
use super::*;

/// Start and end of each group, the whole match first.
type Groups = Vec<Option<(usize, usize)>>;

/// Interprets a tagged automaton as runtime-c/regex.c does.
fn run(tagged: &Tagged, text: &[u8]) -> Option<Groups> {
    let mut registers = vec![None; usize::from(tagged.registers)];
    let mut found: Option<(Vec<Option<usize>>, usize)> = None;
    let value = |registers: &[Option<usize>], source: u16, at: usize| match source {
        HERE => Some(at),
        UNSET => None,
        register => registers[usize::from(register)],
    };
    let act = |registers: &mut Vec<Option<usize>>, action: u16, at: usize| {
        let action = usize::from(action);
        for pair in tagged.moves[action + 1..][..2 * usize::from(tagged.moves[action])].chunks(2) {
            registers[usize::from(pair[0])] = value(registers, pair[1], at);
        }
    };
    let ends = |registers: &[Option<usize>], place: u16, at: usize| {
        let sources = &tagged.moves[usize::from(place)..][..usize::from(tagged.tags)];
        (sources.iter().map(|&source| value(registers, source, at)).collect::<Vec<_>>(), at)
    };
    let mut state = usize::from(tagged.start);
    act(&mut registers, tagged.start_action, 0);
    for at in 0..=text.len() {
        let place = if at == text.len() { tagged.at_end[state] } else { tagged.accept[state] };
        if place > 0 {
            found = Some(ends(&registers, place, at));
        }
        if at == text.len() || state == 0 {
            break;
        }
        let index = state * tagged.classes.count() + usize::from(tagged.classes.of[usize::from(text[at])]);
        act(&mut registers, tagged.actions[index], at + 1);
        state = usize::from(tagged.next[index]);
    }
    let (tags, end) = found?;
    let mut groups = vec![Some((tags[0].unwrap(), end))];
    groups.extend(tags[1..].chunks(2).map(|pair| pair[0].zip(pair[1])));
    Some(groups)
}

/// The groups of the preferred way to match all of `text[from..to]`.
fn best(node: &Node, text: &[u8], from: usize, to: usize, groups: &Groups) -> Option<Groups> {
    match node {
        Node::Empty => (from == to).then(|| groups.clone()),
        Node::Bytes(set) => (to == from + 1 && set.contains(text[from])).then(|| groups.clone()),
        Node::Start => (from == to && from == 0).then(|| groups.clone()),
        Node::End => (from == to && to == text.len()).then(|| groups.clone()),
        Node::Group(number, inner) => {
            let mut groups = best(inner, text, from, to, groups)?;
            groups[*number as usize] = Some((from, to));
            Some(groups)
        }
        Node::Alternation(nodes) => nodes.iter().find_map(|node| best(node, text, from, to, groups)),
        Node::Concatenation(nodes) => sequence(nodes, text, from, to, groups),
        Node::Repeat { node, least, most } => repeat(node, text, from, to, groups, (*least, *most), true),
    }
}

fn sequence(nodes: &[Node], text: &[u8], from: usize, to: usize, groups: &Groups) -> Option<Groups> {
    match nodes {
        [] => (from == to).then(|| groups.clone()),
        [first, rest @ ..] => (from..=to).rev().find_map(|middle| {
            let groups = best(first, text, from, middle, groups)?;
            sequence(rest, text, middle, to, &groups)
        }),
    }
}

fn repeat(
    node: &Node,
    text: &[u8],
    from: usize,
    to: usize,
    groups: &Groups,
    (least, most): (u32, Option<u32>),
    first: bool,
) -> Option<Groups> {
    let less = (least.saturating_sub(1), most.map(|most| most.saturating_sub(1)));
    if from == to && least == 0 && !first {
        return Some(groups.clone());
    }
    if most != Some(0) {
        let mut cleared = groups.clone();
        clear(node, &mut cleared);
        let found = (from..=to).rev().find_map(|middle| {
            // An empty repetition only if required, or if there would be none.
            if middle == from && least == 0 && from < to {
                return None;
            }
            let groups = best(node, text, from, middle, &cleared)?;
            repeat(node, text, middle, to, &groups, less, false)
        });
        if found.is_some() {
            return found;
        }
    }
    (from == to && least == 0).then(|| groups.clone())
}

fn clear(node: &Node, groups: &mut Groups) {
    match node {
        Node::Group(number, inner) => {
            groups[*number as usize] = None;
            clear(inner, groups);
        }
        Node::Concatenation(nodes) | Node::Alternation(nodes) => nodes.iter().for_each(|node| clear(node, groups)),
        Node::Repeat { node, .. } => clear(node, groups),
        _ => {}
    }
}

fn by_rules(pattern: &str, text: &[u8]) -> Option<Groups> {
    let pattern = parse(pattern.as_bytes()).unwrap();
    let none = vec![None; pattern.groups as usize + 1];
    (0..=text.len()).find_map(|from| {
        (from..=text.len()).rev().find_map(|to| {
            let mut groups = best(&pattern.node, text, from, to, &none)?;
            groups[0] = Some((from, to));
            Some(groups)
        })
    })
}

fn groups(pattern: &str, text: &str) -> String {
    let tagged = compile_groups(pattern.as_bytes()).unwrap();
    let found = run(&tagged, text.as_bytes());
    assert_eq!(found, by_rules(pattern, text.as_bytes()), "{pattern:?} on {text:?}");
    let shown =
        |group: &Option<(usize, usize)>| group.map_or("(?,?)".to_string(), |(from, to)| format!("({from},{to})"));
    found.map_or("none".into(), |groups| groups.iter().map(shown).collect())
}

#[test]
fn known_cases() {
    for (pattern, text, wanted) in [
        ("(a|ab)(c|bcd)(d*)", "abcd", "(0,4)(0,2)(2,3)(3,4)"),
        ("(a|ab)(bcd|c)(d*)", "abcd", "(0,4)(0,2)(2,3)(3,4)"),
        ("(a*)(ab)*(b*)", "abc", "(0,2)(0,1)(?,?)(1,2)"),
        ("(a*)(ab)*(b*)", "abb", "(0,3)(0,1)(?,?)(1,3)"),
        ("(a|b)*", "", "(0,0)(?,?)"),
        ("(a*)*", "x", "(0,0)(0,0)"),
        ("(a*)+", "aa", "(0,2)(0,2)"),
        ("(a*){2}", "aa", "(0,2)(2,2)"),
        ("(a|ab|c|bcd)*(d*)", "abcd", "(0,4)(1,4)(4,4)"),
        ("((a)|b)*", "ab", "(0,2)(1,2)(?,?)"),
        ("(?:(a)|(b)|(c))*", "abc", "(0,3)(?,?)(?,?)(2,3)"),
        ("x*(a)?(b)?", "xxb", "(0,3)(?,?)(2,3)"),
        ("(.*)=(.*)", "a=b=c", "(0,5)(0,3)(4,5)"),
        ("([a-z]+)([0-9]*)$", "--ab12", "(2,6)(2,4)(4,6)"),
        ("a+(b+)", "xaabbaabbb", "(1,5)(3,5)"),
        ("(foo|foobar)(bar)?", "foobar", "(0,6)(0,6)(?,?)"),
        ("^(/[^/]*)*$", "/usr/lib", "(0,8)(4,8)"),
        ("(a)$|^(b)", "ba", "(0,1)(?,?)(0,1)"),
        ("b*|(a)", "ab", "(0,1)(0,1)"),
        ("", "a", "(0,0)"),
        ("z", "a", "none"),
    ] {
        assert_eq!(groups(pattern, text), wanted, "{pattern:?} on {text:?}");
    }
}

#[test]
fn random_patterns_follow_the_rules() {
    let mut random = Random(0xb0a7);
    let mut refused = 0;
    for _ in 0..4_000 {
        let pattern = random_pattern(&mut random, 4);
        let tagged = match compile_groups(pattern.as_bytes()) {
            Ok(tagged) => tagged,
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::TooLarge, "{pattern}");
                refused += 1;
                continue;
            }
        };
        for _ in 0..12 {
            let text = random_text(&mut random);
            assert_eq!(run(&tagged, text.as_bytes()), by_rules(&pattern, text.as_bytes()), "{pattern:?} on {text:?}");
        }
    }
    assert!(refused < 20, "{refused} of 4000 were too large");
}

#[test]
fn usual_patterns_stay_small() {
    for (pattern, states, registers) in [
        ("([0-9]{1,3})\\.([0-9]{1,3})\\.([0-9]{1,3})\\.([0-9]{1,3})", 20, 25),
        ("^([^:]*):([^:]*):([0-9]+):([0-9]+):(.*)$", 10, 12),
        ("([A-Za-z_][A-Za-z0-9_]*)\\(([^)]*)\\)", 8, 12),
        ("(a*)(a*)(a*)(a*)(a*)(a*)(a*)(a*)", 5, 20),
        ("(/[^/]+)*/([^/]+)$", 8, 10),
        ("^(.{1,200})$", 210, 5),
    ] {
        let tagged = compile_groups(pattern.as_bytes()).unwrap();
        assert!(tagged.accept.len() <= states, "{pattern}: {} states", tagged.accept.len());
        assert!(usize::from(tagged.registers) <= registers, "{pattern}: {} registers", tagged.registers);
    }
}
