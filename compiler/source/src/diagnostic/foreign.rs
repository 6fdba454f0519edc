// SPDX-License-Identifier: GPL-2.0-or-later

//! Names that people know from C, Python, bpftrace and D, and what a script has instead.

use super::suggest::suggest;

/// How a name is used where it is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// `name(...)`
    Call,
    /// `name` as a value.
    Value,
    /// `@name`
    At,
}

/// Functions and macros with arguments of other languages.
const CALLS: &[(&str, &str)] = &[
    ("atoi", "strtol(text, 10)"),
    ("atol", "strtol(text, 10)"),
    ("buf", "sprintf(\"%*M\", size, address) for bytes as hexadecimal text"),
    ("clear", "`delete a`, which empties an array"),
    ("contains", "isinstr(text, part)"),
    ("copyin", "user_string_n_warn(address, size), user_long(address) and the like"),
    ("copyinstr", "user_string(address)"),
    ("copyinto", "user_string_n_warn(address, size), user_long(address) and the like"),
    ("echo", "println(value, ...)"),
    ("fprintf", "printf(format, ...), or warn(text) for the error output"),
    ("fputs", "print(text)"),
    ("get_current", "task_current()"),
    ("hist", "an aggregate: `s <<< value`, then print(@hist_log(s))"),
    ("int", "strtol(text, 10) for text; all numbers are integers"),
    ("join", "a loop, or `.` between the strings"),
    ("kaddr", "&@var(\"name\")"),
    ("kstack", "backtrace(), or print_backtrace()"),
    ("ksym", "symname(address), or symdata(address) with the offset"),
    ("len", "strlen(text); the elements of an array are counted in a foreach loop"),
    ("length", "strlen(text); the elements of an array are counted in a foreach loop"),
    ("lhist", "an aggregate: `s <<< value`, then print(@hist_linear(s, low, high, width))"),
    ("log", "println(value, ...)"),
    ("lower", "nothing that changes the case of letters"),
    ("lquantize", "an aggregate: `s <<< value`, then print(@hist_linear(s, low, high, width))"),
    ("macaddr", "sprintf(\"%6M\", address), as hexadecimal digits"),
    ("memcmp", "a comparison of kernel_string_n(address, size)"),
    ("nanosleep", "a probe on timer.ms(n): handlers cannot sleep"),
    ("ntop", "ip_ntop(address)"),
    ("printa", "foreach, which goes over an array"),
    ("putchar", "printf(\"%c\", c)"),
    ("puts", "println(text)"),
    ("quantize", "an aggregate: `s <<< value`, then print(@hist_log(s))"),
    ("rand", "randint(n)"),
    ("random", "randint(n)"),
    ("range", "for (i = 0; i < n; i++)"),
    ("reg", "register(\"rax\")"),
    ("signal", "raise(signal), with -g"),
    ("sizeof", "@cast_size(\"struct name\")"),
    ("sleep", "a probe on timer.s(n): handlers cannot sleep"),
    ("snprintf", "sprintf(format, ...)"),
    ("stack", "print_backtrace()"),
    ("str", "kernel_string(address) or user_string(address) for memory, sprint(number) for a number"),
    ("strcat", "`.`, which joins strings"),
    ("strchr", "stringat(text, position), or isinstr(text, part)"),
    ("strcmp", "`==`, which compares strings too"),
    ("strcontains", "isinstr(text, part)"),
    ("strcpy", "`=`, which copies strings"),
    ("strftime", "ctime(seconds)"),
    ("string", "sprint(number)"),
    ("strlcpy", "`=`, which copies strings"),
    ("strncmp", "substr(text, 0, n) == other, or `=~ \"^...\"`"),
    ("strncpy", "substr(text, 0, n)"),
    ("strstr", "isinstr(text, part)"),
    ("strtoul", "strtol(text, base)"),
    ("substring", "substr(text, start, length)"),
    ("time", "gettimeofday_s()"),
    ("tostring", "sprint(number)"),
    ("trace", "println(value, ...)"),
    ("tracemem", "sprintf(\"%*m\", size, address)"),
    ("uaddr", "&@var(\"name\")"),
    ("usleep", "a probe on timer.us(n): handlers cannot sleep"),
    ("ustack", "ubacktrace(), or print_ubacktrace()"),
    ("usym", "usymname(address)"),
    ("write", "print(text)"),
    ("zero", "a loop that sets the elements to 0"),
];

/// Variables and constants of other languages.
const VALUES: &[(&str, &str)] = &[
    ("False", "0"),
    ("None", "0, or \"\" for a string"),
    ("True", "1"),
    ("arg0", "$name of the argument, or int_arg(1) and pointer_arg(1)"),
    ("arg1", "$name of the argument, or int_arg(2) and pointer_arg(2)"),
    ("arg2", "$name of the argument, or int_arg(3) and pointer_arg(3)"),
    ("arg3", "$name of the argument, or int_arg(4) and pointer_arg(4)"),
    ("arg4", "$name of the argument, or int_arg(5) and pointer_arg(5)"),
    ("arg5", "$name of the argument, or int_arg(6) and pointer_arg(6)"),
    ("args", "$name of each argument, or all of them as text: $$parms"),
    ("comm", "execname()"),
    ("curpsinfo", "execname(), pid() and cmdline_str()"),
    ("current", "task_current()"),
    ("curtask", "task_current()"),
    ("curthread", "task_current()"),
    ("elapsed", "gettimeofday_ns() minus its value in `probe begin`"),
    ("errno", "$return in a return probe, and errno_str(number)"),
    ("false", "0"),
    ("func", "ppfunc()"),
    ("jiffies", "jiffies()"),
    ("kstack", "backtrace(), or print_backtrace()"),
    ("length", "strlen(text); the elements of an array are counted in a foreach loop"),
    ("nil", "0, or \"\" for a string"),
    ("nsecs", "gettimeofday_ns()"),
    ("null", "0, or \"\" for a string"),
    ("nullptr", "0"),
    ("numaid", "the node of cpu()"),
    ("probe", "pp()"),
    ("probefunc", "ppfunc()"),
    ("probemod", "probemod()"),
    ("probename", "pp()"),
    ("probeprov", "pp()"),
    ("rand", "randint(n)"),
    ("retval", "$return, in a probe with .return"),
    ("self", "a global array by thread: global start; start[tid()] = ..."),
    ("stack", "backtrace(), or print_backtrace()"),
    ("stackdepth", "stack_used() and backtrace()"),
    ("this", "a local variable: x = ..."),
    ("timestamp", "gettimeofday_ns()"),
    ("true", "1"),
    ("username", "uid()"),
    ("ustack", "ubacktrace(), or print_ubacktrace()"),
    ("vtimestamp", "gettimeofday_ns()"),
    ("walltimestamp", "gettimeofday_ns()"),
];

/// Extractors and operators by other names; a call without the `@` is looked up here too.
const OPERATORS: &[(&str, &str)] = &[
    ("average", "@avg"),
    ("avg", "@avg"),
    ("cnt", "@count"),
    ("count", "@count"),
    ("hist_linear", "@hist_linear"),
    ("hist_log", "@hist_log"),
    ("histogram", "@hist_log"),
    ("len", "@count"),
    ("max", "@max"),
    ("maximum", "@max"),
    ("mean", "@avg"),
    ("min", "@min"),
    ("minimum", "@min"),
    ("sizeof", "@cast_size"),
    ("stddev", "@variance"),
    ("sum", "@sum"),
    ("total", "@sum"),
    ("variance", "@variance"),
];

/// Words that begin a declaration in other languages.
const DECLARES: &[&str] = &[
    "auto", "bool", "char", "const", "double", "float", "int", "int32_t", "int64_t", "let", "local", "long", "my",
    "short", "signed", "size_t", "static", "string", "u32", "u64", "uint32_t", "uint64_t", "unsigned", "var", "void",
];

/// A note with what to write instead of a name of another language; None if it is not known.
pub fn instead(name: &str, used: Use) -> Option<String> {
    let find = |table: &[(&'static str, &'static str)]| {
        table.iter().find(|(known, _)| *known == name).map(|(_, instead)| *instead)
    };
    match used {
        Use::At => {
            // A misspelt one too: `@averge`.
            let near = || {
                suggest(name, OPERATORS.iter().map(|(known, _)| *known))
                    .first()
                    .and_then(|near| OPERATORS.iter().find(|(known, _)| known == near).map(|(_, instead)| *instead))
            };
            find(OPERATORS).or_else(near).map(|operator| format!("did you mean {operator}?"))
        }
        Use::Value => find(VALUES).map(|instead| format!("scripts have {instead} for `{name}`")),
        Use::Call => match find(CALLS) {
            Some(instead) => Some(format!("scripts have {instead} for `{name}`")),
            None => find(OPERATORS).map(|operator| format!("an aggregate is read with the operator {operator}")),
        },
    }
}

/// All that the tables suggest, for a test that it exists.
pub fn suggestions() -> impl Iterator<Item = &'static str> {
    CALLS.iter().chain(VALUES).chain(OPERATORS).map(|(_, instead)| *instead)
}

/// Whether a word begins a declaration of a variable in another language: `int`, `let`.
pub fn declares(word: &str) -> bool {
    DECLARES.contains(&word)
}

/// Says that variables have no declarations.
pub const NO_DECLARATIONS: &str =
    "variables are not declared: assign a value, x = 3, and the type follows; globals stand at the top, global x";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_and_without_doubles() {
        for table in [CALLS, VALUES, OPERATORS] {
            assert!(table.windows(2).all(|pair| pair[0].0 < pair[1].0), "{table:?}");
        }
        assert!(DECLARES.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn by_use() {
        assert_eq!(instead("comm", Use::Value).as_deref(), Some("scripts have execname() for `comm`"));
        assert_eq!(instead("comm", Use::Call), None);
        assert_eq!(instead("mean", Use::At).as_deref(), Some("did you mean @avg?"));
        assert_eq!(instead("minimun", Use::At).as_deref(), Some("did you mean @min?"));
        assert_eq!(instead("frobnicate", Use::At), None);
        assert_eq!(instead("sum", Use::Call).as_deref(), Some("an aggregate is read with the operator @sum"));
        assert!(declares("int") && !declares("x"));
    }
}
