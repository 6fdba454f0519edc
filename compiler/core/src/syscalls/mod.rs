//! The aliases `syscall.NAME` and `syscall.NAME.return`, made of one table: a library script that is written when a
//! script may need it.
//!
//! A line of `table.txt` names the call, how its result is shown and its arguments. Of each argument there is a variable
//! by its name; what a kind adds to it:
//!
//! | kind | variables |
//! |---|---|
//! | `d` `u` `l` `x` `o` | NAME: int, unsigned or 64 bits, shown in decimal, hexadecimal, octal |
//! | `p` | NAME_uaddr: an address in user space |
//! | `s` | NAME: the text in quotes; NAME_uaddr; NAME_unquoted |
//! | `buffer` | NAME_uaddr; NAME_str: the bytes in quotes, as many as the next argument says |
//! | `argv` `envp` | args, env_str: the texts; NAME_uaddr |
//! | `sig` | NAME; NAME_name |
//! | `sockaddr` | NAME_uaddr; uaddr_af, uaddr_ip, uaddr_ip_port, uaddr_ipv6_flowinfo, uaddr_ipv6_scope_id: the address, whose length follows |
//! | `omode` | as `o`; not shown where the flags before it create nothing, nor is what follows |
//! | `timespec`, `sigaction` and others of kinds.txt that show what a pointer leads to | NAME_uaddr; NAME_str: that |
//! | another | NAME; NAME_str: by the function `__syscall_KIND`, of tapset/syscall_flags.stp or by `runtime-c/syscall_names.h` |
//!
//! And of all: `name`, `argstr`; `retval`, `retstr` at the return. `argstr` is one call with the kinds as a number, so that
//! the handlers of all calls are alike but for it: the planner makes one routine of them.

use std::fmt::Write;

const TABLE: &str = include_str!("table.txt");
/// Documented variables that say in another way what the table has.
const FURTHER: &str = include_str!("further.txt");
/// Names of numbers, by kind: the runtime has them as tables.
const NAMES: &str = include_str!("../../../../runtime-c/syscall_names.h");

/// Kinds that `argstr` shows by expressions of their own.
const KINDS: &str = include_str!("kinds.txt");

/// Kinds and their expressions.
fn shown() -> impl Iterator<Item = (&'static str, &'static str)> {
    KINDS.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' '))
}

/// The expression of a kind that shows what a pointer leads to.
fn pointed(kind: &str) -> Option<&'static str> {
    shown().find(|(known, expression)| *known == kind && expression.starts_with("__syscall_") && expression.contains("pointer_arg(@)")).map(|(_, expression)| expression)
}

/// An expression with the argument's number, and those of its neighbours, for `@`.
fn at_number(expression: &str, number: usize) -> String {
    expression.replace('@', &number.to_string())
}

/// Kinds that `argstr` treats in ways of its own.
const SPECIAL: [&str; 3] = ["omode", "argv", "envp"];


/// Families of aliases that are the same here, because there is one way to probe a system call.
const OTHERS: [&str; 3] = ["nd_syscall", "dw_syscall", "tp_syscall"];

/// Whether scripts may need the aliases.
fn wanted<'t>(mut texts: impl Iterator<Item = &'t [u8]>) -> bool {
    texts.any(|text| ["syscall", "kprocess", "signal.", "_sys_open_flag_str", "rlimit"].iter().any(|word| mentions(text, word)))
}

fn mentions(text: &[u8], word: &str) -> bool {
    text.windows(word.len()).any(|window| window == word.as_bytes())
}

/// The library script that scripts of these texts may need.
pub fn script(texts: &[&[u8]]) -> Option<String> {
    if !wanted(texts.iter().copied()) {
        return None;
    }
    let others: Vec<&str> = OTHERS.into_iter().filter(|word| texts.iter().any(|text| mentions(text, word))).collect();
    let mut text = String::from(ANY);
    show(&mut text);
    for line in TABLE.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let mut words = line.split(' ');
        let (Some(name), Some(result)) = (words.next(), words.next()) else { continue };
        let (alias, calls) = name.split_once('=').unwrap_or((name, name));
        let arguments: Vec<(&str, &str)> = words.filter_map(|word| word.split_once(':')).collect();
        add(&mut text, alias, calls, result, &arguments);
        for other in &others {
            // Writing to a String does not fail.
            let _ = writeln!(text, "probe {other}.{alias} = syscall.{alias} {{ }}\nprobe {other}.{alias}.return = syscall.{alias}.return {{ }}");
        }
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

/** A call that this kernel does not have. */
probe syscall.ni_syscall = kprobe.function("__x64_sys_ni_syscall")
{
  name = "ni_syscall"
  argstr = ""
}
probe syscall.ni_syscall.return = kprobe.function("__x64_sys_ni_syscall").return
{
  name = "ni_syscall"
  retval = returnval()
  retstr = return_str(1, returnval())
}
"#;

/// Kinds of `syscall_names.h`, in its order.
fn named() -> impl Iterator<Item = &'static str> {
    NAMES.lines().filter_map(|line| line.strip_prefix("SPILE_NAMES(")?.strip_suffix(')'))
}

/// Number of a kind in the one that stands for all kinds of a call: one byte for each argument, never 0.
fn number_of(kind: &str) -> i64 {
    let simple = shown().map(|(kind, _)| kind);
    let kinds = simple.chain(SPECIAL).chain(named());
    kinds.zip(1..).find(|(known, _)| *known == kind).map_or(0, |(_, number)| number)
}

/// The functions behind `argstr`, and those that name numbers.
fn show(text: &mut String) {
    let mut add = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    for (number, kind) in named().enumerate() {
        add(format!("function __syscall_{kind}:string (n:long) {{ return __syscall_named({number}, n) }}"));
    }
    add("function __syscall_show:string (kind:long, at:long)\n{".into());
    for (kind, expression) in shown() {
        add(format!("  if (kind == {}) return {}", number_of(kind), expression.replace('@', "at")));
    }
    let first = named().next().map_or(0, number_of);
    add(format!("  return __syscall_named(kind - {first}, uint_arg(at))\n}}"));
    let (omode, argv, envp) = (number_of("omode"), number_of("argv"), number_of("envp"));
    add(format!(
        "function __syscall_argstr:string (kinds:long)
{{
  for (at = 1; kinds; at++) {{
    kind = kinds & 255
    kinds >>= 8
    if (kind == {envp})
      continue
    if (kind == {argv}) {{
      words = __syscall_argv(pointer_arg(at), 1)
      s = s . (words == \"\" ? \"\" : \" \") . words
    }} else if (kind == {omode}) {{
      if (!(uint_arg(at - 1) & 0x40) && (uint_arg(at - 1) & 0x410000) != 0x410000)
        return s
      s = s . sprintf(\", %#03o\", uint_arg(at))
    }} else
      s = s . (at > 1 ? \", \" : \"\") . __syscall_show(kind, at)
  }}
  return s
}}"
    ));
}

fn add(text: &mut String, alias: &str, calls: &str, result: &str, arguments: &[(&str, &str)]) {
    let points = |suffix: &str| {
        let points: Vec<String> = calls.split(',').map(|call| format!("__syscall(\"{call}\"){suffix}")).collect();
        points.join(", ")
    };
    let mut variables = String::new();
    let mut kinds = 0;
    for (index, (name, kind)) in arguments.iter().enumerate() {
        let next = arguments.get(index + 1).map_or("", |(name, _)| name);
        variable(&mut variables, name, kind, index + 1, next);
        kinds |= number_of(kind) << (8 * index);
    }
    for line in FURTHER.lines() {
        let mut words = line.splitn(3, ' ');
        if let (Some(call), Some(name), Some(value)) = (words.next(), words.next(), words.next())
            && call == alias
        {
            // Writing to a String does not fail.
            let _ = writeln!(variables, "  {name} = {value}");
        }
    }
    let argstr = if arguments.is_empty() { "\"\"".to_string() } else { format!("__syscall_argstr({kinds:#x})") };
    // Writing to a String does not fail.
    let _ = write!(text, "/** The system call {alias}(2). */\nprobe syscall.{alias} = {}\n{{\n  name = \"{alias}\"\n{variables}  argstr = {argstr}\n}}\n", points(""));
    let how = if result == "x" { 2 } else { 1 };
    let _ = write!(
        text,
        "probe syscall.{alias}.return = {}\n{{\n  name = \"{alias}\"\n  retval = returnval()\n  retstr = return_str({how}, returnval())\n}}\n",
        points(".return")
    );
}

/// Adds the variables of an argument.
fn variable(text: &mut String, name: &str, kind: &str, number: usize, next: &str) {
    let mut set = |variable: &str, value: String| {
        let _ = writeln!(text, "  {variable} = {value}");
    };
    let address = format!("{name}_uaddr");
    match kind {
        "d" => set(name, format!("int_arg({number})")),
        "u" => set(name, format!("ulong_arg({number})")),
        "o" | "omode" => set(name, format!("uint_arg({number})")),
        "l" | "x" => set(name, format!("long_arg({number})")),
        "p" => set(&address, format!("pointer_arg({number})")),
        "s" => {
            set(&address, format!("pointer_arg({number})"));
            set(name, format!("user_string_quoted(pointer_arg({number}))"));
            set(&format!("{name}_unquoted"), format!("user_string_nofault(pointer_arg({number}))"));
        }
        "buffer" => {
            set(&address, format!("pointer_arg({number})"));
            set(&format!("{name}_str"), format!("user_buffer_quoted(pointer_arg({number}), ulong_arg({}), 64)", number + 1));
            debug_assert!(!next.is_empty(), "a buffer's length follows it");
        }
        "argv" | "envp" => {
            set(&address, format!("pointer_arg({number})"));
            set(if kind == "argv" { "args" } else { "env_str" }, format!("__syscall_argv(pointer_arg({number}), 0)"));
        }
        "sockaddr" => {
            set(&address, format!("pointer_arg({number})"));
            let length = number + 1;
            for part in ["af", "ip", "ip_port", "ipv6_flowinfo", "ipv6_scope_id"] {
                set(&format!("uaddr_{part}"), format!("__syscall_sockaddr_{part}(pointer_arg({number}), ulong_arg({length}))"));
            }
            debug_assert!(!next.is_empty(), "an address's length follows it");
        }
        "sig" => {
            set(name, format!("int_arg({number})"));
            set(&format!("{name}_name"), format!("signal_str(int_arg({number}))"));
        }
        _ if pointed(kind).is_some() => {
            set(&address, format!("pointer_arg({number})"));
            set(&format!("{name}_str"), at_number(pointed(kind).unwrap_or_default(), number));
        }
        _ => {
            let own = shown().find(|(known, _)| *known == kind).map(|(_, expression)| expression);
            let argument = if own.is_some_and(|own| own.contains("(int_arg(@)") || own.contains(" int_arg(@)")) { "int_arg" } else { "uint_arg" };
            set(name, format!("{argument}({number})"));
            let text = own.map_or_else(|| format!("__syscall_{kind}({argument}({number}))"), |own| at_number(own, number));
            set(&format!("{name}_str"), text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_of_each_kind() {
        let text = script(&[b"probe nd_syscall.open {}"]).expect("needed");
        assert!(text.contains("probe syscall.openat = __syscall(\"openat\")\n"), "{text}");
        assert!(text.contains("probe nd_syscall.openat = syscall.openat { }\n") && !text.contains("tp_syscall"));
        assert!(text.contains("  dirfd = int_arg(1)\n  dirfd_str = __syscall_dirfd(int_arg(1))\n  filename_uaddr = pointer_arg(2)\n"));
        let kinds = ["dirfd", "s", "open", "omode"].map(number_of);
        let argstr = kinds[0] | kinds[1] << 8 | kinds[2] << 16 | kinds[3] << 24;
        assert!(text.contains(&format!("argstr = __syscall_argstr({argstr:#x})")), "{argstr:#x}");
        assert!(text.contains("= __syscall(\"getdents\"), __syscall(\"getdents64\")"));
        assert!(text.contains("argstr = \"\""));
    }

    #[test]
    fn the_script_parses() {
        let mut sources = spile_source::SourceMap::new();
        let file = sources.add("syscalls.stp", script(&[b"dw_syscall"]).expect("needed").into_bytes(), spile_source::Origin::Tapset);
        let (script, problems) =
            spile_syntax::parse(&mut sources, file, &spile_syntax::Environment::default(), &spile_syntax::Macros::default());
        assert!(problems.is_empty(), "{problems:?}");
        assert!(script.items.len() > 1200);
    }

    #[test]
    fn names_are_there_once_and_in_order() {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
        let names: Vec<&str> = lines.filter_map(|line| line.split([' ', '=']).next()).collect();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{names:?}");
    }

    #[test]
    fn further_variables_are_of_calls_in_the_table() {
        let calls: Vec<&str> = TABLE.lines().filter_map(|line| line.split([' ', '=']).next()).collect();
        for line in FURTHER.lines().filter(|line| !line.starts_with('#')) {
            assert!(line.split(' ').next().is_some_and(|call| calls.contains(&call)) && line.splitn(3, ' ').count() == 3, "{line}");
        }
    }

    #[test]
    fn every_kind_has_a_number_of_a_byte() {
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            for (name, kind) in line.split(' ').skip(2).filter_map(|word| word.split_once(':')) {
                assert!((1..256).contains(&number_of(kind)), "{line}: {name}:{kind}");
            }
        }
        assert_ne!(number_of("xattr"), number_of("adv"));
    }

    #[test]
    fn scripts_that_may_need_them() {
        assert!(script(&[b"probe begin {}"]).is_none());
        assert!(script(&[b"probe begin {}", b"probe kprocess.exec {}"]).is_some());
    }
}
