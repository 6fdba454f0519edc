// SPDX-License-Identifier: GPL-2.0-or-later

//! The aliases `syscall.NAME` and `syscall.NAME.return`, generated from one table: a library script that is written when a
//! script may need it.
//!
//! A line of `table.txt` names the call, how its result is shown, and its arguments. Each argument has a variable of its
//! name; its kind adds:
//!
//! | kind | variables |
//! |---|---|
//! | `d` `ud` `ui` `xi` `i16` `u` `l` `x` `o` | NAME: int, unsigned, 16 or 64 bits, shown in decimal, hexadecimal, octal |
//! | `p` `out` | NAME_uaddr: an address in user space |
//! | `s` `sp` | NAME: the text in quotes; NAME_uaddr; NAME_unquoted |
//! | `buffer` `name` | NAME_uaddr; NAME_str: the bytes in quotes, as many as the next argument gives |
//! | `argv` `envp` | args, env_str: the strings; NAME_uaddr |
//! | `sig` | NAME; NAME_name |
//! | `sockaddr` | NAME_uaddr; uaddr_af, uaddr_ip, uaddr_ip_port, uaddr_ipv6_flowinfo, uaddr_ipv6_scope_id: the address, whose length follows |
//! | `omode` | as `o`; not shown where the flags before it create nothing, nor is what follows |
//! | `timespec`, `sigaction` and others of kinds.txt that show what a pointer leads to | NAME_uaddr; NAME_str: that |
//! | another | NAME; NAME_str: by the function `__syscall_KIND`, of tapset/syscall_flags.stp or by `runtime-c/syscall_names.h` |
//!
//! And of all: `name`, `argstr`; `retval`, `retstr` at the return. `argstr` is one call with the kinds as a number, so that
//! the handlers of all calls differ only in it: the planner makes one routine of them. It is as in SystemTap's library
//! (`kinds.txt`, and `whole.txt` for calls that are shown by what one argument asks for) or as in strace (`strace.txt`
//! before `kinds.txt`): [`Style`]. The other variables are the same in both.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::LazyLock;

const TABLE: &str = include_str!("table.txt");
/// Documented variables that show an argument of the table in another form.
const FURTHER: &str = include_str!("further.txt");
/// Names of numbers, by kind: tables in the runtime.
const NAMES: &str = include_str!("../../../../runtime-c/syscall_names.h");

/// Prefix of the functions that are generated with the aliases.
pub const FUNCTIONS: &str = "__syscall_";

/// The function that a handler calls with the kinds of its arguments as a number.
pub const ARGSTR: &str = "__syscall_argstr";
/// `__syscall_shown(FROM, TO)` is decided when a script is elaborated: whether a handler of it shows one of these kinds.
pub const SHOWN: &str = "__syscall_shown";

/// How SystemTap shows kinds, and how strace does where that differs.
const KINDS: &str = include_str!("kinds.txt");
const STRACE: &str = include_str!("strace.txt");
/// Calls that SystemTap does not show argument by argument.
const WHOLE: &str = include_str!("whole.txt");

/// The style of `argstr` and `name`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    #[default]
    /// As in SystemTap's tapset.
    SystemTap,
    /// As in strace(1).
    Strace,
}

/// A line of the table.
struct Row<'t> {
    alias: &'t str,
    /// The variable `name`.
    name: &'t str,
    calls: &'t str,
    result: &'t str,
    /// Names and kinds; after `-`, a kind that SystemTap's `argstr` omits.
    arguments: Vec<(&'t str, &'t str)>,
}

/// Lines of a table without its comments.
fn lines(table: &str) -> impl Iterator<Item = &str> {
    table.lines().filter(|line| !line.starts_with('#') && !line.is_empty())
}

fn rows() -> impl Iterator<Item = Row<'static>> {
    lines(TABLE).filter_map(|line| {
        let mut words = line.split(' ');
        let (call, result) = (words.next()?, words.next()?);
        let (title, calls) = call.split_once('=').unwrap_or((call, call));
        let (alias, name) = title.split_once('/').unwrap_or((title, title));
        let calls = if calls == call { alias } else { calls };
        Some(Row { alias, name, calls, result, arguments: words.filter_map(|word| word.split_once(':')).collect() })
    })
}

fn find(table: &'static str, kind: &str) -> Option<&'static str> {
    lines(table)
        .filter_map(|line| line.split_once(' '))
        .find(|(known, _)| *known == kind)
        .map(|(_, expression)| expression)
}

/// The expression for a kind that shows what a pointer leads to: SystemTap's, otherwise strace's.
fn pointed(kind: &str) -> Option<&'static str> {
    let leads = |expression: &&str| expression.starts_with("__") && expression.contains("pointer_arg(@)");
    find(KINDS, kind).filter(leads).or_else(|| find(STRACE, kind).filter(leads))
}

/// An expression with the argument's number, and those of its neighbours, for `@`.
fn at_number(expression: &str, number: usize) -> String {
    expression.replace('@', &number.to_string())
}

/// Families of aliases that are the same here, because there is one way to probe a system call.
pub(crate) const OTHERS: [&str; 3] = ["nd_syscall", "dw_syscall", "tp_syscall"];

/// Calls with flags that replaced one without, which SystemTap calls by the old name if that is gone: the number of the
/// argument with the flags.
const FORMER: [(&str, &str, usize); 2] = [("epoll_create1", "epoll_create", 1), ("signalfd4", "signalfd", 4)];

/// Whether scripts may need the aliases.
fn wanted<'t>(mut texts: impl Iterator<Item = &'t [u8]>) -> bool {
    texts.any(|text| ["syscall", "kprocess", "signal."].iter().any(|word| mentions(text, word)))
}

fn mentions(text: &[u8], word: &str) -> bool {
    text.windows(word.len()).any(|window| window == word.as_bytes())
}

/// The names of the system calls that have aliases, `openat` for `syscall.openat`.
pub fn names() -> impl Iterator<Item = &'static str> {
    rows().map(|row| row.alias)
}

/// The library script that scripts with this source text may need.
pub fn script(texts: &[&[u8]], style: Style) -> Option<String> {
    if !wanted(texts.iter().copied()) {
        return None;
    }
    let others: Vec<&str> = OTHERS.into_iter().filter(|word| texts.iter().any(|text| mentions(text, word))).collect();
    let numbers = Numbers::new(style);
    let mut text = String::from(ANY);
    show(&mut text, &numbers, style);
    let mut last = "";
    for row in rows() {
        add(&mut text, &row, &numbers, style);
        let alias = row.alias;
        for other in others.iter().filter(|_| alias != last) {
            // Writing to a String does not fail.
            let _ = writeln!(
                text,
                "probe {other}.{alias} = syscall.{alias} {{ }}\nprobe {other}.{alias}.return = syscall.{alias}.return {{ }}"
            );
        }
        last = alias;
    }
    Some(text)
}

const ANY: &str = r#"// System calls. Made of compiler/core/src/syscalls/table.txt.

/** Any system call, by its number and name; the cheapest way to see all. */
probe syscall_any = __syscall
{
  syscall_nr = __syscall_number()
  name = syscall_name(__syscall_number())
}
probe syscall_any.return = __syscall.return
{
  syscall_nr = __syscall_number()
  name = syscall_name(__syscall_number())
  retval = returnval()
}

/** A call that this kernel does not have, and that has no alias of its own. */
probe syscall.ni_syscall = kprobe.function("__x64_sys_ni_syscall")
{
  if (__syscall_has_alias(pointer_arg(1))) next
  name = "ni_syscall"
  argstr = ""
}
probe syscall.ni_syscall.return = kprobe.function("__x64_sys_ni_syscall").return
{
  if (__syscall_has_alias(@entry(pointer_arg(1)))) next
  name = "ni_syscall"
  retval = returnval()
  retstr = return_str(1, returnval())
}
"#;

/// Kinds of `syscall_names.h`, in its order.
fn named() -> impl Iterator<Item = &'static str> {
    NAMES.lines().filter_map(|line| line.strip_prefix("SPILE_NAMES(")?.strip_suffix(')'))
}

/// How the calls of the table are shown in a style: by kinds, or as a whole.
struct Numbers {
    /// By kind, or by `NAME()` for a call as a whole: the number, never 0, and the expression.
    numbers: BTreeMap<String, (i64, String)>,
}

impl Numbers {
    fn new(style: Style) -> Self {
        let mut numbers = BTreeMap::new();
        let mut add = |key: String, expression: String| {
            let number = numbers.len() as i64 + 1;
            numbers.entry(key).or_insert((number, expression));
        };
        for row in rows() {
            for (_, kind) in &row.arguments {
                let kind = kind.trim_start_matches('-');
                let strace = if style == Style::Strace { find(STRACE, kind) } else { None };
                add(
                    kind.into(),
                    strace
                        .or(find(KINDS, kind))
                        .map_or_else(|| format!("__syscall_{kind}(uint_arg(@))"), str::to_string),
                );
            }
        }
        if style == Style::SystemTap {
            for (name, expression) in lines(WHOLE).filter_map(|line| line.split_once(' ')) {
                add(format!("{name}()"), expression.into());
            }
        }
        Numbers { numbers }
    }

    /// 0 if there is none.
    fn of(&self, key: &str) -> i64 {
        self.numbers.get(key).map_or(0, |(number, _)| *number)
    }

    /// The number that encodes how a call is shown: one byte for each argument, or one for all.
    fn of_call(&self, row: &Row, style: Style) -> i64 {
        match self.of(&format!("{}()", row.name)) {
            0 => {
                let shown = |kind: &str| match kind.strip_prefix('-') {
                    Some(_) if style == Style::SystemTap => 0,
                    Some(kind) => self.of(kind),
                    None => self.of(kind),
                };
                row.arguments.iter().enumerate().map(|(index, (_, kind))| shown(kind) << (8 * index)).sum()
            }
            whole => whole,
        }
    }
}

/// The functions behind `argstr`, and those that name numbers.
fn show(text: &mut String, numbers: &Numbers, style: Style) {
    for (number, kind) in named().enumerate() {
        // Writing to a String does not fail.
        let _ = writeln!(text, "function __syscall_{kind}:string (n:long) {{ return __syscall_named({number}, n) }}");
    }
    text.push_str("function __syscall_show:string (kind:long, at:long)\n{\n");
    let mut expressions: Vec<(i64, &str)> =
        numbers.numbers.values().map(|(number, expression)| (*number, expression.as_str())).collect();
    expressions.sort_unstable();
    choose(text, &expressions);
    text.push_str("}\n");
    let omode = numbers.of("omode");
    let creates = match style {
        Style::SystemTap => "!(uint_arg(at - 1) & 0x40)",
        Style::Strace => "!(uint_arg(at - 1) & 0x40) && (uint_arg(at - 1) & 0x410000) != 0x410000",
    };
    let _ = writeln!(
        text,
        "function __syscall_argstr:string (kinds:long)
{{
  for (at = 1; kinds; at++) {{
    kind = kinds & 255
    kinds >>= 8
    if (kind == {omode} && {creates})
      return s
    if (kind)
      s = s . (at > 1 ? \", \" : \"\") . __syscall_show(kind, at)
  }}
  return s
}}"
    );
}

/// Returns the expression of number `kind`, by binary search: a script function must not test each. Of the kinds that the
/// script does not show there is nothing.
fn choose(text: &mut String, expressions: &[(i64, &str)]) {
    match expressions {
        [] => {}
        // Writing to a String does not fail.
        [(number, expression)] => {
            let _ = writeln!(text, "if ({SHOWN}({number}, {number})) return {}", expression.replace('@', "at"));
        }
        [(first, _), ..] => {
            let (low, high) = expressions.split_at(expressions.len() / 2);
            let middle = high.first().map_or(0, |(number, _)| *number);
            let _ = writeln!(text, "if ({SHOWN}({first}, {})) {{ if (kind < {middle}) {{", middle - 1);
            choose(text, low);
            text.push_str("} }\n");
            choose(text, high);
        }
    }
}

/// The kinds in a number that [`ARGSTR`] is called with.
pub fn kinds(number: i64) -> impl Iterator<Item = u8> {
    number.to_le_bytes().into_iter().filter(|kind| *kind != 0)
}

fn add(text: &mut String, row: &Row, numbers: &Numbers, style: Style) {
    let alias = row.alias;
    let points = |suffix: &str| {
        let points: Vec<String> = row.calls.split(',').map(|call| format!("__syscall(\"{call}\"){suffix}")).collect();
        points.join(", ")
    };
    let mut variables = String::new();
    for (index, (name, kind)) in row.arguments.iter().enumerate() {
        variable(&mut variables, name, kind.trim_start_matches('-'), index + 1);
    }
    further(&mut variables, alias);
    further(&mut variables, &format!("{alias}/{}", row.name));
    let mut at_return = String::new();
    further(&mut at_return, &format!("{alias}.return"));
    let name = match FORMER.iter().find(|(call, ..)| *call == row.name) {
        Some((call, former, flags)) if style == Style::SystemTap => {
            format!("uint_arg({flags}) ? \"{call}\" : \"{former}\"")
        }
        _ => format!("\"{}\"", row.name),
    };
    let argstr = if row.arguments.is_empty() {
        "\"\"".to_string()
    } else {
        format!("__syscall_argstr({:#x})", numbers.of_call(row, style))
    };
    // Writing to a String does not fail.
    let _ = write!(
        text,
        "/** The system call {}(2). */\nprobe syscall.{alias} = {}\n{{\n  name = {name}\n{variables}  argstr = {argstr}\n}}\n",
        row.name,
        points("")
    );
    let retstr = match row.result {
        "x" => "return_str(2, returnval())",
        "o" => "return_str(3, returnval())",
        "adjtimex" => "__syscall_clock_state(returnval())",
        _ => "return_str(1, returnval())",
    };
    let _ = write!(
        text,
        "probe syscall.{alias}.return = {}\n{{\n  name = {name}\n  retval = returnval()\n  retstr = {retstr}\n{at_return}}}\n",
        points(".return")
    );
}

/// Names and expressions of the further variables, by alias.
static FURTHER_BY_ALIAS: LazyLock<HashMap<&str, Vec<(&str, &str)>>> = LazyLock::new(|| {
    let mut by_alias: HashMap<&str, Vec<(&str, &str)>> = HashMap::new();
    for line in lines(FURTHER) {
        let mut words = line.splitn(3, ' ');
        if let (Some(alias), Some(name), Some(value)) = (words.next(), words.next(), words.next()) {
            by_alias.entry(alias).or_default().push((name, value));
        }
    }
    by_alias
});

/// Adds the further variables of an alias, as the table calls it.
fn further(text: &mut String, alias: &str) {
    for (name, value) in FURTHER_BY_ALIAS.get(alias).into_iter().flatten() {
        // Writing to a String does not fail.
        let _ = writeln!(text, "  {name} = {value}");
    }
}

/// Adds the variables of an argument.
fn variable(text: &mut String, name: &str, kind: &str, number: usize) {
    let mut set = |variable: &str, value: String| {
        let _ = writeln!(text, "  {variable} = {value}");
    };
    let address = format!("{name}_uaddr");
    match kind {
        "d" | "ioctl" => set(name, format!("int_arg({number})")),
        "u" => set(name, format!("ulong_arg({number})")),
        "o" | "omode" | "ui" | "ud" | "xi" => set(name, format!("uint_arg({number})")),
        "l" | "x" => set(name, format!("long_arg({number})")),
        "i16" => set(name, format!("__syscall_short(uint_arg({number}))")),
        "p" | "out" | "mountdata" => set(&address, format!("pointer_arg({number})")),
        "s" | "sp" => {
            set(&address, format!("pointer_arg({number})"));
            set(name, format!("user_string_quoted(pointer_arg({number}))"));
            set(&format!("{name}_unquoted"), format!("user_string_nofault(pointer_arg({number}))"));
        }
        "buffer" | "name" => {
            set(&address, format!("pointer_arg({number})"));
            set(&format!("{name}_str"), at_number(find(KINDS, kind).unwrap_or_default(), number));
        }
        "argv" | "envp" => {
            set(&address, format!("pointer_arg({number})"));
            set(if kind == "argv" { "args" } else { "env_str" }, format!("__syscall_argv(pointer_arg({number}))"));
        }
        "sockaddr" => {
            set(&address, format!("pointer_arg({number})"));
            let length = number + 1;
            for part in ["af", "ip", "ip_port", "ipv6_flowinfo", "ipv6_scope_id"] {
                set(
                    &format!("uaddr_{part}"),
                    format!("__syscall_sockaddr_{part}(pointer_arg({number}), ulong_arg({length}))"),
                );
            }
        }
        "sig" => {
            set(name, format!("int_arg({number})"));
            set(&format!("{name}_name"), format!("__syscall_signal(int_arg({number}) & 0xffffffff)"));
        }
        _ if pointed(kind).is_some() => {
            set(&address, format!("pointer_arg({number})"));
            set(&format!("{name}_str"), at_number(pointed(kind).unwrap_or_default(), number));
        }
        _ => {
            let shown = find(KINDS, kind).map_or_else(|| format!("__syscall_{kind}(uint_arg(@))"), str::to_string);
            let argument = ["pointer_arg", "ulong_arg", "int_arg"].into_iter().find(|argument| {
                shown.contains(&format!("({argument}(@)")) || shown.contains(&format!(" {argument}(@)"))
            });
            let argument = argument.unwrap_or("uint_arg");
            let suffix = if argument == "pointer_arg" { "_uaddr" } else { "" };
            set(&format!("{name}{suffix}"), format!("{argument}({number})"));
            set(&format!("{name}_str"), at_number(&shown, number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(words: &[u8], style: Style) -> String {
        script(&[words], style).expect("needed")
    }

    /// The kinds with which argstr is called.
    fn kinds(style: Style, kinds: &[&str]) -> String {
        let numbers = Numbers::new(style);
        let number: i64 = kinds.iter().enumerate().map(|(index, kind)| numbers.of(kind) << (8 * index)).sum();
        format!("argstr = __syscall_argstr({number:#x})\n")
    }

    /// The kind of an argument is one byte of the call's number.
    #[test]
    fn numbers_fit_a_byte() {
        for style in [Style::SystemTap, Style::Strace] {
            let numbers = Numbers::new(style);
            assert!(
                numbers.numbers.len() > 50 && numbers.numbers.values().all(|(number, _)| (1..=255).contains(number))
            );
        }
    }

    #[test]
    fn an_alias_of_each_kind() {
        let text = made(b"probe nd_syscall.open {}", Style::SystemTap);
        assert!(text.contains("probe syscall.openat = __syscall(\"openat\")\n"), "{text}");
        assert!(text.contains("probe nd_syscall.openat = syscall.openat { }\n") && !text.contains("tp_syscall"));
        assert!(text.contains(
            "  dirfd = int_arg(1)\n  dirfd_str = __syscall_dirfd(int_arg(1))\n  filename_uaddr = pointer_arg(2)\n"
        ));
        assert!(text.contains(&kinds(Style::SystemTap, &["dirfd", "s", "open", "omode"])), "{text}");
        assert!(text.contains("= __syscall(\"getdents\"), __syscall(\"getdents64\")"));
        assert!(text.contains("argstr = \"\""));
    }

    #[test]
    fn calls_of_one_alias_with_their_own_names_and_arguments() {
        let text = made(b"dw_syscall", Style::SystemTap);
        let alias = |line: &str| {
            let begin = text.find(&format!("probe syscall.{line}\n")).unwrap_or_else(|| panic!("no {line}"));
            text.get(begin..).and_then(|rest| rest.split("\n}\n").next()).unwrap_or_default().to_string()
        };
        let old = alias("eventfd = __syscall(\"eventfd\")");
        assert!(old.contains("name = \"eventfd\"") && old.contains("flags = 0\n  flags_str = \"0x0\""), "{old}");
        assert!(old.ends_with(kinds(Style::SystemTap, &["ui"]).trim_end()), "{old}");
        let new = alias("eventfd = __syscall(\"eventfd2\")");
        assert!(new.contains("name = \"eventfd2\"") && !new.contains("flags = 0"), "{new}");
        assert!(alias("send = __syscall(\"compat:send\")").contains("\n  buf = buf_str\n"));
        assert!(new.ends_with(kinds(Style::SystemTap, &["ui", "efd"]).trim_end()), "{new}");
        assert_eq!(text.matches("probe dw_syscall.eventfd = ").count(), 1);
        let flags = alias("signalfd = __syscall(\"native:signalfd4\")");
        assert!(flags.contains("name = uint_arg(4) ? \"signalfd4\" : \"signalfd\""), "{flags}");
        let compat = alias("compat_execve.return = __syscall(\"compat:execve\").return");
        assert!(compat.contains("name = \"execve\""), "{compat}");
        assert!(alias("umask.return = __syscall(\"umask\").return").contains("return_str(3, "));
    }

    #[test]
    fn the_form_of_strace() {
        let text = made(b"syscall.prctl", Style::Strace);
        assert!(text.contains(&kinds(Style::Strace, &["prctl", "x", "x", "x", "x"])));
        assert!(text.contains("__strace_sigaction(pointer_arg(at))") && !text.contains("__syscall_prctl_arguments()"));
        assert!(text.contains("name = \"signalfd4\"\n"));
        let text = made(b"syscall.prctl", Style::SystemTap);
        assert!(text.contains(&kinds(Style::SystemTap, &["prctl()"])));
        assert!(text.contains("return __syscall_prctl_arguments()\n") && !text.contains("__strace_sigaction("));
    }

    #[test]
    fn what_systemtap_does_not_show() {
        let text = made(b"syscall.clone", Style::SystemTap);
        assert!(text.contains(&kinds(Style::SystemTap, &["clone", "x", "p", "p"])));
        assert!(made(b"syscall.clone", Style::Strace).contains(&kinds(Style::Strace, &["clone", "x", "p", "p", "x"])));
    }

    #[test]
    fn the_scripts_parse() {
        for style in [Style::SystemTap, Style::Strace] {
            let mut sources = spile_source::SourceMap::new();
            let file =
                sources.add("syscalls.stp", made(b"dw_syscall", style).into_bytes(), spile_source::Origin::Tapset);
            let (script, problems) = spile_syntax::parse(
                &mut sources,
                file,
                &spile_syntax::Environment::default(),
                &spile_syntax::Macros::default(),
            );
            assert!(problems.is_empty(), "{problems:?}");
            assert!(script.items.len() > 1200);
        }
    }

    #[test]
    fn calls_are_there_once_and_aliases_in_order() {
        let aliases: Vec<&str> = rows().map(|row| row.alias).collect();
        assert!(aliases.windows(2).all(|pair| pair[0] <= pair[1]), "{aliases:?}");
        let mut calls: Vec<&str> = rows().flat_map(|row| row.calls.split(',')).collect();
        let all = calls.len();
        calls.sort_unstable();
        calls.dedup();
        assert_eq!(calls.len(), all);
    }

    #[test]
    fn further_variables_are_of_calls_in_the_table() {
        let calls: Vec<String> = rows()
            .flat_map(|row| [row.alias.into(), format!("{}/{}", row.alias, row.name), format!("{}.return", row.alias)])
            .collect();
        for line in lines(FURTHER) {
            assert!(
                line.split(' ').next().is_some_and(|call| calls.iter().any(|known| known == call))
                    && line.splitn(3, ' ').count() == 3,
                "{line}"
            );
        }
    }

    #[test]
    fn calls_shown_as_a_whole_are_in_the_table() {
        for (name, _) in lines(WHOLE).filter_map(|line| line.split_once(' ')) {
            assert!(rows().any(|row| row.name == name), "{name}");
        }
    }

    #[test]
    fn every_kind_has_a_number_of_a_byte_and_an_expression() {
        for style in [Style::SystemTap, Style::Strace] {
            let numbers = Numbers::new(style);
            for (key, (number, expression)) in &numbers.numbers {
                assert!((1..256).contains(number), "{key} {number}");
                let generated =
                    expression.strip_prefix("__syscall_").and_then(|rest| rest.strip_suffix("(uint_arg(@))"));
                let known = |kind| named().any(|other| other == kind) || find(KINDS, key).is_some();
                assert!(generated.is_none_or(known), "{key}: {expression}");
            }
        }
        for (kind, _) in lines(STRACE).filter_map(|line| line.split_once(' ')) {
            assert!(
                rows().any(|row| row.arguments.iter().any(|(_, other)| other.trim_start_matches('-') == kind)),
                "{kind} is of no call"
            );
        }
    }

    #[test]
    fn scripts_that_may_need_them() {
        assert!(script(&[b"probe begin {}"], Style::SystemTap).is_none());
        assert!(script(&[b"probe begin {}", b"probe kprocess.exec {}"], Style::SystemTap).is_some());
    }
}
