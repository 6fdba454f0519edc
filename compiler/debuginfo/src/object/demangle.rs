// SPDX-License-Identifier: GPL-2.0-or-later

//! Names of C++ and Rust functions as the source has them, from those in symbol tables.

use std::borrow::Cow;
use std::fmt::Write as _;

use cpp_demangle::{DemangleOptions, Symbol};
use spile_abi::bounded;
use spile_base::glob;

/// Longer ones, mangled or not, are left as they are: nothing that people write has them.
const MOST: usize = 4096;
/// Parts of a qualified name that are compared with a pattern.
const MOST_PARTS: usize = 64;

/// `ns::Class::method`, without parameters and return type; None for a name that is not mangled.
pub fn demangled(name: &str) -> Option<String> {
    if name.len() > MOST || !(name.starts_with("_Z") || name.starts_with("_R")) {
        return None;
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return bounded::text(MOST, |out| write!(out, "{rust:#}"));
    }
    let symbol = Symbol::new(name).ok()?;
    let options = DemangleOptions::new().no_params().no_return_type();
    bounded::text(MOST, |out| symbol.structured_demangle(out, &options))
}

/// The last part of a qualified name, without template arguments: what debug information has as the function's name.
pub fn last_part(qualified: &str) -> &str {
    let mut depth = 0usize;
    let mut start = 0;
    let mut end = qualified.len();
    for (at, byte) in qualified.bytes().enumerate() {
        match byte {
            b'<' => {
                end = if depth == 0 { at } else { end };
                depth += 1;
            }
            b'>' => depth = depth.saturating_sub(1),
            b':' if depth == 0 => (start, end) = (at + 1, qualified.len()),
            _ => {}
        }
    }
    qualified.get(start..end).unwrap_or(qualified)
}

/// Whether a shell pattern fits a qualified name: the whole of it, or its end behind a `::`. A pattern that begins with `::` is for
/// the whole.
pub(crate) fn fits(pattern: &str, qualified: &str) -> bool {
    if let Some(whole) = pattern.strip_prefix("::") {
        return glob::matches(whole, qualified);
    }
    if !glob::is_pattern(pattern) {
        return qualified.strip_suffix(pattern).is_some_and(|before| before.is_empty() || before.ends_with("::"));
    }
    let tails = parts(qualified).take(MOST_PARTS).filter_map(|at| qualified.get(at..));
    std::iter::once(qualified).chain(tails).any(|tail| glob::matches(pattern, tail))
}

/// Where the parts of a qualified name begin behind the first one; those of template arguments do not count.
fn parts(qualified: &str) -> impl Iterator<Item = usize> {
    let mut depth = 0usize;
    qualified.bytes().enumerate().filter_map(move |(at, byte)| {
        match byte {
            b'<' => depth += 1,
            b'>' => depth = depth.saturating_sub(1),
            b':' if depth == 0 && qualified.as_bytes().get(at + 1) == Some(&b':') => return Some(at + 2),
            _ => {}
        }
        None
    })
}

/// The scope and the last part of a qualified name: `ns::Box<a::b>` and `push`. An empty scope: the name is in none.
/// None: it is not qualified.
pub(crate) fn split_scope(name: &str) -> Option<(&str, &str)> {
    let mut depth = 0usize;
    let mut last = None;
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'{' => depth += 1,
            b'>' | b')' | b'}' => depth = depth.saturating_sub(1),
            b':' if depth == 0 && name.get(at..).is_some_and(|rest| rest.starts_with("::")) => last = Some(at),
            _ => {}
        }
    }
    last.and_then(|at| Some((name.get(..at)?, name.get(at + 2..)?)))
}

/// A scope as people write it, without namespaces that need not be written, of which the whole name is known, and without template
/// arguments.
pub(crate) fn shortened(scope: &str, need_not_be_written: impl Fn(&str) -> bool) -> String {
    let mut short = String::new();
    let mut start = 0;
    for next in parts_of_scope(scope) {
        let part = scope.get(start..next.saturating_sub(2).max(start)).unwrap_or_default();
        let whole = scope.get(..next.saturating_sub(2)).unwrap_or_default();
        start = next;
        if need_not_be_written(whole) {
            continue;
        }
        if !short.is_empty() {
            short.push_str("::");
        }
        let is_template = part.find('<').filter(|at| *at > 0 && !part.starts_with(['{', '(']));
        short.push_str(is_template.and_then(|at| part.get(..at)).unwrap_or(part));
    }
    short
}

/// A scope without template arguments, of functions in it too: `Ring::push` of `Ring<long, 4>::push`.
pub fn without_arguments(scope: &str) -> String {
    shortened(scope, |_| false)
}

/// Where the parts of a scope begin behind the first one, and where one more would.
fn parts_of_scope(scope: &str) -> Vec<usize> {
    let mut depth = 0usize;
    let mut starts = Vec::new();
    for (at, byte) in scope.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'{' => depth += 1,
            b'>' | b')' | b'}' => depth = depth.saturating_sub(1),
            b':' if depth == 0 && scope.get(at..).is_some_and(|rest| rest.starts_with("::")) => starts.push(at + 2),
            _ => {}
        }
    }
    starts.push(scope.len() + 2);
    starts
}

/// A type's name with template arguments, the same for all spellings: `Arr<long int, 3>`, `Arr<long, 3ul>`.
pub(crate) fn template_key(name: &str) -> String {
    const SIZES: [&str; 3] = ["long", "short", "unsigned"];
    let mut key = String::new();
    let mut words: Vec<&str> = Vec::new();
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let end = match is_word(first) {
            true => rest.find(|character| !is_word(character)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (token, behind) = rest.split_at(end);
        rest = behind;
        match first {
            _ if first.is_ascii_digit() => words.push(token.trim_end_matches(['u', 'U', 'l', 'L'])),
            _ if is_word(first) => words.push(token),
            ' ' => {}
            _ => {
                put_words(&mut key, &mut words);
                key.push(first);
            }
        }
    }
    put_words(&mut key, &mut words);
    return key;

    fn put_words(key: &mut String, words: &mut Vec<&str>) {
        if words.iter().any(|word| SIZES.contains(word)) {
            words.retain(|word| *word != "int");
        }
        words.sort_unstable();
        key.push_str(&words.join(" "));
        words.clear();
    }
}

/// The type and the trait of a function that implements a trait: `g::Dog` and `g::Speak` of `<g::Dog as g::Speak>::speak`.
pub(crate) fn implemented(demangled: &str) -> Option<(&str, &str)> {
    let inner = demangled.strip_prefix('<')?;
    let mut depth = 1usize;
    let mut between = None;
    for (at, byte) in inner.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'[' => depth += 1,
            b'>' if inner.get(..at).is_some_and(|before| before.ends_with('-')) => {}
            b'>' | b')' | b']' => depth -= 1,
            b' ' if depth == 1 && between.is_none() && inner.get(at..).is_some_and(|rest| rest.starts_with(" as ")) => {
                between = Some(at);
            }
            _ => {}
        }
        if depth == 0 {
            let plain = |name: &'_ str| name.split_once('<').map_or(name.len(), |(plain, _)| plain.len());
            let (own, implements) = (inner.get(..between?)?, inner.get(between? + 4..at)?);
            return Some((own.get(..plain(own))?, implements.get(..plain(implements))?));
        }
    }
    None
}

/// An operator's name, `ns::Box::operator long`, as its scope, which may be none, and the name behind it; None: it is of no operator.
pub(crate) fn split_operator(name: &str) -> Option<(Option<&str>, &str)> {
    let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let places = name.match_indices("operator").map(|(at, _)| name.split_at(at));
    let fitting = places.filter(|(before, from)| {
        (before.is_empty() || before.ends_with("::")) && !is_part(from.as_bytes().get("operator".len()))
    });
    let (scope, operator) = fitting.last()?;
    Some((scope.strip_suffix("::"), operator))
}

/// The same for all spellings of an operator's name: `operator new []` and `operator new[]`, `operator long int` and `operator long`.
pub(crate) fn operator_key(operator: &str) -> String {
    let what = operator.strip_prefix("operator").unwrap_or(operator);
    let begins = |first: char| first.is_alphabetic() || first == '_' || first == ':';
    let is_type = what.starts_with(' ')
        && what.trim_start().starts_with(begins)
        && !["new", "delete", "co_await"].iter().any(|word| what.trim().starts_with(word));
    if !is_type {
        return what.replace(' ', "");
    }
    let end = what.find(['*', '&', '<']).unwrap_or(what.len());
    let (base, rest) = what.split_at(end);
    let mut words: Vec<&str> = base.split_whitespace().collect();
    if words.iter().any(|word| ["long", "short", "unsigned"].contains(word)) {
        words.retain(|word| *word != "int");
    }
    words.sort_unstable();
    format!(" {}{}", words.join(" "), rest.replace(' ', ""))
}

/// An operator's name without the arguments of its template, if it has any: `operator<< <int>`.
pub(crate) fn plain_operator(operator: &str) -> &str {
    // `operator<<` has none.
    if !operator.ends_with('>') {
        return operator;
    }
    let mut depth = 0usize;
    for (at, byte) in operator.bytes().enumerate().rev() {
        match byte {
            b'>' => depth += 1,
            b'<' => depth -= usize::from(depth > 0),
            _ => {}
        }
        if depth == 0 {
            let plain = operator.get(..at).unwrap_or_default().trim_end();
            return if byte == b'<' && plain.len() > "operator".len() { plain } else { operator };
        }
    }
    operator
}

/// Whether a scope is the wanted one, or ends in it; one that is wanted with `::` before it is the whole.
pub(crate) fn scope_fits(wanted: &str, scope: &str) -> bool {
    if wanted.is_empty() || scope.is_empty() {
        return wanted == scope;
    }
    fits(wanted, scope)
}

/// A pattern without the types of the parameters of functions around the last one, as linkers' names have them:
/// `run(int)::Local::twice(int) const`.
pub(crate) fn without_outer_parameters(pattern: &str) -> Cow<'_, str> {
    if !pattern.contains(")::") && !pattern.contains(") const") {
        return pattern.into();
    }
    let pattern = pattern.strip_suffix(" const").unwrap_or(pattern);
    let (mut plain, mut rest) = (String::new(), pattern);
    let mut depth = 0usize;
    while let Some(next) = rest.chars().next() {
        let inner = rest.strip_prefix('(').filter(|inner| depth == 0 && !inner.starts_with("anonymous namespace"));
        let is_name = plain.trim_end().ends_with("operator");
        let behind = inner.filter(|_| !is_name).and_then(|inner| inner.get(closing(inner)?..));
        let behind = behind.map(|behind| behind.strip_prefix(" const").unwrap_or(behind));
        if let Some(behind) = behind.filter(|behind| behind.starts_with("::")) {
            rest = behind;
            continue;
        }
        match next {
            '(' | '<' | '{' => depth += 1,
            ')' | '>' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        plain.push(next);
        rest = rest.get(next.len_utf8()..).unwrap_or_default();
    }
    plain.into()
}

/// Where the text behind the parenthesis begins that closes the one before it.
fn closing(inner: &str) -> Option<usize> {
    let mut depth = 1usize;
    inner.char_indices().find_map(|(at, character)| {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at + 1)
    })
}

/// A pattern without the types of parameters after it, and these.
pub(crate) fn split_parameters(pattern: &str) -> (&str, Option<&str>) {
    let split = pattern.strip_suffix(')').and_then(|inner| inner.rsplit_once('('));
    match split.filter(|(name, _)| !name.is_empty() && !name.trim_end().ends_with("operator")) {
        Some((name, parameters)) => (name, Some(parameters)),
        None => (pattern, None),
    }
}

/// Whether a mangled name is of a function whose parameters have these types.
pub(crate) fn takes(parameters: &str, mangled: &str) -> bool {
    let spelled = |options| {
        let symbol = Symbol::new(mangled.get(..MOST).unwrap_or(mangled)).ok()?;
        bounded::text(MOST, |out| symbol.structured_demangle(out, &options))
    };
    let options = || DemangleOptions::new().no_return_type();
    let Some((whole, name)) = spelled(options()).zip(spelled(options().no_params())) else { return false };
    // Of a function that objects can be constant for, or that only is for temporary ones.
    let mut name = name.as_str();
    while let Some(rest) = [" const", " volatile", " &", " &&"].iter().find_map(|end| name.strip_suffix(end)) {
        name = rest;
    }
    let list = whole.strip_prefix(name).and_then(|rest| rest.strip_prefix('('));
    let list = list.and_then(|list| list.rsplit_once(')')).map(|(list, _)| list);
    list.is_some_and(|list| canonical(list) == canonical(parameters))
}

/// Types without blanks; `const char*` and `char const*` are the same.
fn canonical(parameters: &str) -> Vec<String> {
    let each = parameters.split(',').map(|parameter| {
        let parameter = parameter.trim();
        match parameter.strip_prefix("const ").map(|rest| rest.split_at(rest.find(['*', '&']).unwrap_or(rest.len()))) {
            Some((named, rest)) => format!("{named} const{rest}").replace(' ', ""),
            None => parameter.replace(' ', ""),
        }
    });
    each.filter(|parameter| !parameter.is_empty() && parameter != "void").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_both_languages() {
        assert_eq!(demangled("_ZN2ns5Class6methodEi").as_deref(), Some("ns::Class::method"));
        assert_eq!(demangled("_ZN4core3fmt5write17h0123456789abcdefE").as_deref(), Some("core::fmt::write"));
        assert_eq!(demangled("_RNvC7mycrate3foo").as_deref(), Some("mycrate::foo"));
        assert!(demangled("malloc").is_none());
        assert_eq!(last_part("ns::Box<a::b>::push<int>"), "push");
        assert_eq!(last_part("ns::Class::method"), "method");
    }

    #[test]
    fn a_pattern_fits_the_end_of_a_name() {
        assert!(fits("Class::method", "ns::Class::method") && fits("meth*", "ns::Class::method"));
        assert!(fits("::ns::*", "ns::Class::method") && !fits("::Class::method", "ns::Class::method"));
        assert!(!fits("ass::method", "ns::Class::method"));
        assert!(
            fits("push", "ns::Box<a::b>::push")
                && fits("pu*", "ns::Box<a::b>::push")
                && !fits("b*", "ns::Box<a::b>::push")
        );
    }

    #[test]
    fn names_with_parts_that_need_not_be_written() {
        let is_inline = |scope: &str| scope == "std::__1" || scope.ends_with("(anonymous namespace)");
        for (scope, short) in [
            ("std::__1::vector<int, std::__1::allocator<int> >", "std::vector"),
            ("ns::(anonymous namespace)", "ns"),
            ("(anonymous namespace)", ""),
            ("other::__1::Box<a::b>::Inner", "other::__1::Box::Inner"),
            ("main::{lambda(std::a<int>)#1}", "main::{lambda(std::a<int>)#1}"),
        ] {
            assert_eq!(shortened(scope, is_inline), short);
        }
        for (one, other) in [
            ("Arr<long int, 3>", "Arr<long, 3>"),
            ("Arr<long unsigned int, 3>", "Arr<unsigned long, 3UL>"),
            ("Map<char const*, std::a<int> >", "Map<const char *, std::a<int>>"),
            ("Arr<unsigned int>", "Arr<unsigned>"),
        ] {
            assert_eq!(template_key(one), template_key(other));
        }
        assert_ne!(template_key("Arr<long, 3>"), template_key("Arr<int, 3>"));
        assert_eq!(implemented("<g::Dog as g::Speak>::speak"), Some(("g::Dog", "g::Speak")));
        assert_eq!(implemented("<g::Box<T> as core::ops::Fn<(A,)>>::call"), Some(("g::Box", "core::ops::Fn")));
        assert_eq!(
            (implemented("g::Dog::bark"), implemented("<g::Dog>::bark"), implemented("<g as ")),
            (None, None, None)
        );
    }

    #[test]
    fn scopes_and_parameters() {
        assert_eq!(split_scope("ns::Box<a::b>::push"), Some(("ns::Box<a::b>", "push")));
        assert_eq!((split_scope("::f"), split_scope("f")), (Some(("", "f")), None));
        assert!(scope_fits("Class", "ns::Class") && !scope_fits("", "ns") && !scope_fits("lass", "ns::Class"));
        assert_eq!(split_parameters("ns::f(int, char*)"), ("ns::f", Some("int, char*")));
        assert_eq!(split_parameters("operator()"), ("operator()", None));
        assert_eq!(split_parameters("operator ()"), ("operator ()", None));
        assert_eq!(split_parameters("operator () (int)").1, Some("int"));
        for (written, plain) in [
            ("ns::run(int)::Local::twice(int)", "ns::run::Local::twice(int)"),
            ("main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()(int)"),
            (
                "f(g(int))::{lambda()#1}::operator()() const::{lambda()#2}::operator()",
                "f::{lambda()#1}::operator()::{lambda()#2}::operator()",
            ),
            ("(anonymous namespace)::f", "(anonymous namespace)::f"),
            ("operator()", "operator()"),
        ] {
            assert_eq!(without_outer_parameters(written), plain);
        }
        for (linked, plain) in [
            ("_ZZN2ns5Outer3runEiENKUliE0_clEi", "ns::Outer::run::{lambda(int)#2}::operator()"),
            ("_ZZZ4mainENKUliE_clEiENKUliE_clEi", "main::{lambda(int)#1}::operator()::{lambda(int)#1}::operator()"),
        ] {
            assert_eq!(without_outer_parameters(&demangled(linked).expect("is mangled")), plain);
        }
        assert!(takes("int", "_ZN3geo4overEi") && takes("const char *", "_ZN3geo4overEPKc"));
        assert!(!takes("long", "_ZN3geo4overEi") && takes("", "_ZN3geo4noneEv"));
        assert_eq!(split_operator("ns::Box::operator long"), Some((Some("ns::Box"), "operator long")));
        assert_eq!((split_operator("operator,"), split_operator("operators")), (Some((None, "operator,")), None));
        for (one, other) in [
            ("operator long int", "operator long"),
            ("operator long unsigned int", "operator unsigned long"),
            ("operator char const*", "operator const char *"),
            ("operator new []", "operator new[]"),
            ("operator ()", "operator()"),
            ("operator ==", "operator=="),
            ("operator [ ]", "operator[]"),
            ("operator <=>", "operator<=>"),
            ("operator\"\" _x", "operator\"\"_x"),
        ] {
            assert_eq!(operator_key(one), operator_key(other));
        }
        assert!(operator_key("operator long") != operator_key("operator int"));
        for (whole, plain) in [
            ("operator*<int>", "operator*"),
            ("operator<< <A<int> >", "operator<<"),
            ("operator->", "operator->"),
            ("operator<=>", "operator<=>"),
            ("operator<", "operator<"),
            ("operator<<", "operator<<"),
            ("operator<<=", "operator<<="),
            ("operator< <int>", "operator<"),
            ("operator<<int>", "operator<"),
            ("operator()<A<int> >", "operator()"),
        ] {
            assert_eq!(plain_operator(whole), plain);
        }
        assert!(takes("int", "_ZNK4Cart4mostEi") && takes("int", "_ZZN2ns5Outer3runEiENKUliE0_clEi"));
    }
}
