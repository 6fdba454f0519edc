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
//! | another | NAME; NAME_str: by the function `__syscall_KIND` of tapset/syscall_flags.stp |
//!
//! And of all: `name`, `argstr`; `retval`, `retstr` at the return.

use std::fmt::Write;

const TABLE: &str = include_str!("table.txt");

/// Families of aliases that are the same here, because there is one way to probe a system call.
const OTHERS: [&str; 3] = ["nd_syscall", "dw_syscall", "tp_syscall"];

/// Whether scripts may need the aliases.
fn wanted<'t>(mut texts: impl Iterator<Item = &'t [u8]>) -> bool {
    texts.any(|text| ["syscall", "kprocess", "signal."].iter().any(|word| mentions(text, word)))
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

const ANY: &str = r#"// System calls. Made of compiler/src/syscalls/table.txt.

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
"#;

fn add(text: &mut String, alias: &str, calls: &str, result: &str, arguments: &[(&str, &str)]) {
    let points = |suffix: &str| {
        let points: Vec<String> = calls.split(',').map(|call| format!("__syscall(\"{call}\"){suffix}")).collect();
        points.join(", ")
    };
    let mut variables = String::new();
    let (mut formats, mut values) = (Vec::new(), Vec::new());
    for (index, (name, kind)) in arguments.iter().enumerate() {
        let next = arguments.get(index + 1).map_or("", |(name, _)| name);
        let (format, value) = variable(&mut variables, name, kind, index + 1, next);
        // The environment is not among what strace-like lines show.
        if *kind != "envp" {
            formats.push(format);
            values.push(value);
        }
    }
    let argstr = match formats.as_slice() {
        [] => "\"\"".to_string(),
        _ => format!("sprintf(\"{}\", {})", formats.join(", ").replace(", %A", " %s"), values.join(", ")),
    };
    // Writing to a String does not fail.
    let _ = write!(text, "probe syscall.{alias} = {}\n{{\n  name = \"{alias}\"\n{variables}  argstr = {argstr}\n}}\n", points(""));
    let retstr = match result {
        "x" => "return_str(2, returnval())",
        _ => "return_str(1, returnval())",
    };
    let _ = write!(
        text,
        "probe syscall.{alias}.return = {}\n{{\n  name = \"{alias}\"\n  retval = returnval()\n  retstr = {retstr}\n}}\n",
        points(".return")
    );
}

/// Adds the variables of an argument; its directive and value in `argstr`.
fn variable(text: &mut String, name: &str, kind: &str, number: usize, next: &str) -> (&'static str, String) {
    let mut set = |variable: &str, value: String| {
        let _ = writeln!(text, "  {variable} = {value}");
    };
    let address = format!("{name}_uaddr");
    match kind {
        "d" => set(name, format!("int_arg({number})")),
        "u" | "o" => set(name, format!("{}({number})", if kind == "o" { "uint_arg" } else { "ulong_arg" })),
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
        "argv" => {
            set(&address, format!("pointer_arg({number})"));
            set("args", format!("__syscall_argv(pointer_arg({number}), 0)"));
            set("__args_after", format!("__syscall_argv(pointer_arg({number}), 1)"));
        }
        "envp" => {
            set(&address, format!("pointer_arg({number})"));
            set("env_str", format!("__syscall_argv(pointer_arg({number}), 0)"));
        }
        "sig" => {
            set(name, format!("int_arg({number})"));
            set(&format!("{name}_name"), format!("signal_str(int_arg({number}))"));
        }
        _ => {
            let argument = if kind == "dirfd" { "int_arg" } else { "uint_arg" };
            set(name, format!("{argument}({number})"));
            set(&format!("{name}_str"), format!("__syscall_{kind}({argument}({number}))"));
        }
    }
    match kind {
        "d" | "l" => ("%d", name.to_string()),
        "u" => ("%u", name.to_string()),
        "x" => ("%#x", name.to_string()),
        "o" => ("%#o", name.to_string()),
        "p" => ("%#x", address),
        "s" => ("%s", name.to_string()),
        // After a blank: as the words of a command.
        "argv" => ("%A", "__args_after".to_string()),
        "envp" => ("%s", "env_str".to_string()),
        "sig" => ("%s", format!("{name}_name")),
        _ => ("%s", format!("{name}_str")),
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
        assert!(text.contains("argstr = sprintf(\"%s, %s, %s, %#o\", dirfd_str, filename, flags_str, mode)"));
        assert!(text.contains("= __syscall(\"getdents\"), __syscall(\"getdents64\")"));
        assert!(text.contains("argstr = \"\""));
    }

    #[test]
    fn the_script_parses() {
        let mut sources = crate::source::SourceMap::new();
        let file = sources.add("syscalls.stp", script(&[b"dw_syscall"]).expect("needed").into_bytes(), crate::source::Origin::Tapset);
        let (script, problems) =
            crate::syntax::parse(&mut sources, file, &crate::syntax::Environment::default(), &crate::syntax::Macros::default());
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
    fn scripts_that_may_need_them() {
        assert!(script(&[b"probe begin {}"]).is_none());
        assert!(script(&[b"probe begin {}", b"probe kprocess.exec {}"]).is_some());
    }
}
