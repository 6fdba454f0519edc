// SPDX-License-Identifier: GPL-2.0-or-later

//! The diagnostic of each error: code, message, labels, notes.

use super::Error;
use crate::elaborate::format::FormatErrorKind;
use crate::elaborate::types::Conflict;
use crate::program::Type;
use spile_source::diagnostic::foreign::{self, Use};
use spile_source::diagnostic::{Code, Diagnostic, suggest};
use spile_syntax::habit;

fn and(names: &[String], none: &str) -> String {
    if names.is_empty() { none.to_string() } else { names.join(", ") }
}

/// `1 key`, `2 keys`.
fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// A note for the name of a function written without its parentheses; None if there is no such builtin.
fn called(name: &str) -> Option<String> {
    let function = crate::builtin::all().any(|builtin| builtin.name == name);
    function.then(|| format!("the function of this name is called with parentheses: {name}()"))
}

impl Error {
    /// A context variable or member that does not exist, or has no value at that address.
    pub fn is_bad_variable(&self) -> bool {
        matches!(
            self,
            Error::UnknownVariable { .. }
                | Error::NoValueThere { .. }
                | Error::NoMember { .. }
                | Error::UnknownGlobal { .. }
                | Error::NoContext { point: Some(_), .. }
        )
    }

    /// The diagnostic with the error's code, labels and notes.
    pub fn diagnostic(&self) -> Diagnostic {
        let error = |code, message: String| Diagnostic::error(Code(code), message);
        match self {
            Error::Internal { what, span } => error("E0500", format!("internal error: {what}"))
                .at(*span, "")
                .note("this is a bug in spile, not in the script: please report it with the script"),
            Error::Types(Conflict { first, second }) => {
                error("E0101", format!("type mismatch: expected {} but found {}", first.0.name(), second.0.name()))
                    .at(second.1, format!("this is a {}", second.0.name()))
                    .also(first.1, format!("first used as a {} here", first.0.name()))
                    .note(match second.0 {
                        Type::Long => "sprint(...) and sprintf(\"%d\", ...) convert a number to a string; printf prints it with %d",
                        Type::String => "strtol(text, 10) converts a string to a number, `.` joins strings, and printf prints them with %s",
                    })
            }
            Error::Unresolved { name, span } => {
                let otherwise = || "assign it a number or a string somewhere, or print it with %d or %s".to_string();
                let note = called(name).or_else(|| foreign::instead(name, Use::Value)).unwrap_or_else(otherwise);
                error("E0102", format!("unresolved type of `{name}`")).at(*span, "no use shows whether it is a long or a string").note(note)
            }
            Error::NoProbes { span } => error("E0165", "no probes found".to_string())
                .at(*span, "neither this probe nor any other has an effect")
                .note("print something, or read a variable that it sets"),
            Error::UnknownFunction { name, span, near } => {
                let known: Vec<&str> = near.iter().map(String::as_str).collect();
                let diagnostic = error("E0103", format!("unresolved function `{name}`")).at(*span, "");
                let near = suggest::suggest(name, known);
                let instead = foreign::instead(name, Use::Call).or_else(|| habit::statement(name).map(String::from));
                match instead {
                    Some(instead) => diagnostic.note(instead),
                    None => diagnostic.near(*span, &near),
                }
            }
            Error::Arity { name, takes, given, span, declared } => {
                let takes = match takes.as_slice() {
                    [0] => "no arguments".to_string(),
                    [one] => counted(*one, "argument"),
                    several => {
                        let several: Vec<String> = several.iter().map(usize::to_string).collect();
                        format!("{} arguments", several.join(" or "))
                    }
                };
                let mut diagnostic = error("E0104", format!("`{name}` takes {takes}, not {given}")).at(*span, "");
                if let Some(declared) = declared {
                    diagnostic = diagnostic.also(*declared, "declared here");
                }
                diagnostic
            }
            Error::DotMember { left, right, span } => {
                error("E0101", "type mismatch: expected string but found long".into())
                    .at(*span, "this is a long, and `.` joins strings")
                    .note(format!("members are read with `->`, both of structs and through pointers: {left}->{right}"))
            }
            Error::Redeclared { what, name, span, first } => {
                spile_syntax::error::redeclared(what, name, *span, *first)
            }
            Error::NotAssignable { span } => error("E0106", "this cannot be assigned to".into())
                .at(*span, "neither a variable nor a context variable"),
            Error::WriteOnly { span } => error("E0107", "this can only be written here".into())
                .at(*span, "the reader of the file gets this value")
                .note("assign to it or append to it: $value .= text; use a variable for a string that you need again"),
            Error::OutsideLoop { word, span } => error("E0108", format!("cannot `{word}` outside a loop")).at(*span, ""),
            Error::Guru { what, span } => error("E0401", format!("{what} needs guru mode"))
                .at(*span, "")
                .note("run with -g if this is intended: a mistake here can crash the machine"),
            Error::NoContext { name, point, span } => {
                let diagnostic = error("E0120", format!("no context variable `{name}` here"));
                match point {
                    Some(point) => diagnostic
                        .at(*span, format!("probe {point} has no context variables"))
                        .note("the script's own variables have no `$`"),
                    None => diagnostic
                        .at(*span, "a function has no context variables")
                        .note("pass the value as an argument from the probe"),
                }
            }
            Error::UnknownVariable { name, place, available, span } => {
                let names: Vec<&str> = available.iter().map(String::as_str).collect();
                let diagnostic = error("E0121", format!("no variable `{name}` at {place}")).at(*span, "");
                let near = suggest::suggest(name, names.iter().copied());
                diagnostic.near(*span, &near).note(format!("available there: {}", and(available, "none")))
            }
            Error::NoValueThere { name, place, why, available, span } => {
                let mut diagnostic = error("E0122", format!("`{name}` has no value at {place}")).at(*span, "");
                for line in why {
                    diagnostic = diagnostic.note(line.clone());
                }
                diagnostic.note(format!("available there: {}", and(available, "none")))
            }
            Error::NotReturnProbe { span } => error("E0123", "`$return` is only available in a return probe".into())
                .at(*span, "")
                .note("append .return to the probe point"),
            Error::VoidReturn { function, span } => {
                error("E0124", format!("`{function}` returns nothing: there is no `$return`")).at(*span, "")
            }
            Error::NoMember { type_name, member, available, span } => {
                let names: Vec<&str> = available.iter().map(String::as_str).collect();
                let diagnostic = error("E0125", format!("{type_name} has no member `{member}`")).at(*span, "");
                match suggest::hint(member, &names, 40) {
                    Some(hint) => diagnostic.note(hint),
                    None => diagnostic,
                }
            }
            Error::NotAStruct { type_name, span } => {
                error("E0126", format!("`{type_name}` has no members")).at(*span, "not a struct or union, nor a pointer to one")
            }
            Error::NotIndexable { type_name, span } => {
                error("E0127", format!("`{type_name}` cannot be indexed")).at(*span, "neither an array nor a pointer")
            }
            Error::WholeStruct { type_name, members, span } => {
                error("E0128", format!("a whole `{type_name}` is not a number"))
                    .at(*span, "")
                    .note("name a member with ->, print it all with $ or $$ after it, or take its address with &")
                    .note(format!("members: {}", and(members, "none")))
            }
            Error::NoAddress { span, why } => error("E0129", "this has no address".into()).at(*span, *why),
            Error::CapturedWrite { span } => error("E0130", "cannot write a value captured at the function's entry".into())
                .at(*span, "in a return probe only `$return` can be written"),
            Error::LocalAtEntry { name, span } => {
                error("E0131", format!("`{name}` has no value yet when this is evaluated"))
                    .at(*span, "evaluated when the function is entered, before the handler runs")
            }
            Error::UnknownType { type_name, object, span } => {
                error("E0132", format!("no type `{type_name}` in {object}")).at(*span, "")
            }
            Error::Format { kind, span } => {
                let message = match kind {
                    FormatErrorKind::Unfinished => "the format ends inside a directive".to_string(),
                    FormatErrorKind::UnknownConversion(byte) => {
                        format!("unknown conversion `{}`", char::from(*byte).escape_default())
                    }
                    FormatErrorKind::SecondFlag(byte) => format!("`{}` is a second flag", char::from(*byte).escape_default()),
                    FormatErrorKind::TooWide(value) => format!("{value} is larger than any record"),
                };
                error("E0133", message)
                    .at(*span, "")
                    .note(match kind {
                        FormatErrorKind::SecondFlag(_) => "one of the flags `0`, `+`, `-`, ` ` and `#` can precede the width, as in %-5d",
                        _ => "conversions are %d %i %u %o %x %X %p %s %c %b %m %M and %%",
                    })
            }
            Error::Regex { kind, position, span } => {
                let message = format!("regex compilation error (at position {position}): {kind}");
                let diagnostic = error("E0135", message).at(*span, "");
                match kind.advice() {
                    Some(advice) => diagnostic.note(advice),
                    None => diagnostic,
                }
            }
            Error::FormatArguments { wanted, given, span } => {
                error("E0134", format!("the format takes {wanted} arguments, {given} are given")).at(*span, "")
            }
            Error::KeyCount { name, keys, given, span, first } => {
                error("E0140", format!("array `{name}` has {}, not {given}", counted(*keys, "key")))
                    .at(*span, format!("{} here", counted(*given, "key")))
                    .also(*first, "first used here")
            }
            Error::TooManyKeys { name, given, span } => error("E0141", format!("array `{name}` has {given} keys"))
                .at(*span, "")
                .note(format!("an array has at most {} keys", crate::elaborate::types::MAX_KEYS)),
            Error::AnyKey { span } => error("E0142", "`*` does not name a single element".into())
                .at(*span, "one key is needed here")
                .note("`*` can be used in `delete a[k, *]`, `[k, *] in a` and `foreach (... in a[k, *])`"),
            Error::NotGlobal { what, span } => {
                let diagnostic = error("E0143", format!("only a global can be an {what}"))
                    .at(*span, "no global of this name")
                    .note("declare it at the top of the script: global NAME");
                match *what {
                    "array" => diagnostic.note("a character of a string is read by substr(text, position, 1)"),
                    _ => diagnostic,
                }
            }
            Error::ArrayAsValue { name, span, keys } => {
                let diagnostic = error("E0144", format!("`{name}` is an array")).at(*span, "used as a single value here");
                let diagnostic = match keys {
                    Some(keys) => diagnostic.also(*keys, "used with keys here"),
                    None => diagnostic.note("its declaration gives it a size"),
                };
                diagnostic.note(format!("name an element, `{name}[key]`, or iterate over all with foreach"))
            }
            Error::WrappedScalar { name, span } => error("E0145", "wrapping not supported for scalars".into())
                .at(*span, format!("`{name}` is not an array"))
                .note("the `%` lets a full array drop its oldest element"),
            Error::InitialValue { name, what, span, used } => error("E0146", format!("{what} has no initial value"))
                .at(*span, format!("`{name}` gets one here"))
                .also(*used, format!("{what} because of this")),
            Error::AggregateAsValue { name, span, stats } => {
                let diagnostic = error("E0147", format!("aggregate `{name}` is not a value")).at(*span, "used as one here");
                let diagnostic = match stats {
                    Some(stats) => diagnostic.also(*stats, "an aggregate because of this"),
                    None => diagnostic,
                };
                diagnostic.note("read it with @count, @sum, @min, @max, @avg, @variance, @hist_log or @hist_linear")
            }
            Error::NotAggregate { span } => error("E0148", "the elements of this array are not aggregates".into())
                .at(*span, "sorted by an extractor")
                .note("an aggregate is filled with `<<<`"),
            Error::ForeachAggregate { span } => error("E0149", "an aggregate cannot be a loop variable".into())
                .at(*span, "")
                .note("leave it out, and read the element with @count(array[key]) and the like"),
            Error::ChangedInForeach { name, function, span, foreach } => {
                let message = match function {
                    None => format!("array `{name}` changes while foreach iterates over it"),
                    Some(function) => format!("`{function}` changes array `{name}` while foreach iterates over it"),
                };
                error("E0150", message)
                    .at(*span, if function.is_some() { "called in the loop" } else { "changed here" })
                    .also(*foreach, "in this loop")
                    .note("record the changes in another array, and apply them after the loop")
            }
            Error::LinearHistogram { low, high, width, buckets, span } => {
                let diagnostic = error("E0151", "invalid linear histogram".into()).at(*span, "");
                match buckets {
                    None => diagnostic.note(format!("from {low} to {high} by {width}: the width must be above 0, and the second number not below the first")),
                    Some(buckets) => diagnostic.note(format!("{buckets} buckets; there can be {}", crate::program::MAX_BUCKETS)),
                }
            }
            Error::Shift { given, span } => {
                error("E0152", format!("@variance has 0 to 62 bits of additional precision, not {given}")).at(*span, "")
            }
            Error::TwoShapes { what, name, span, first } => error("E0153", format!("two {what} of aggregate `{name}`"))
                .at(*span, "")
                .also(*first, "the other one")
                .note("an aggregate keeps one; feed a second aggregate with the same values"),
            Error::BucketKeys { given, span } => {
                error("E0154", format!("a histogram has one key, not {given}")).at(*span, "").note("the key is the bucket's number")
            }
            Error::NoPointee { text, span } => {
                let otherwise = || format!("give its type: @cast({text}, \"struct ...\", \"kernel\")");
                error("E0156", format!("it is not known what `{text}` points to"))
                    .at(*span, "")
                    .note(foreign::instead(text, Use::Value).unwrap_or_else(otherwise))
            }
            Error::UnknownGlobal { name, objects, span } => {
                error("E0157", format!("no variable `{name}` in {objects}")).at(*span, "").note("if several files have a variable of this name, name the file: @var(\"name@file.c\")")
            }
            Error::DerefSize { given, span } => {
                let given = given.map_or("this is not a number".into(), |given| format!("{given} is not one of them"));
                error("E0158", "a dereference reads 1, 2, 4 or 8 bytes".into()).at(*span, given)
            }
            Error::NoRegisters { what, point, span } => error("E0159", format!("no registers for {what} here"))
                .at(*span, match point.as_str() {
                    "" => "in a function that is not called by a probe with registers".into(),
                    point => format!("probe {point} sees none"),
                })
                .note("probes at addresses have registers, for example kernel.function(\"f\")"),
            Error::RegisterNumber { span } => error("E0160", "no such register".into())
                .at(*span, "")
                .note("registers have their DWARF numbers: 0 rax, 1 rdx, 2 rcx, 3 rbx, 4 rsi, 5 rdi, 6 rbp, 7 rsp, 8 to 15 r8 to r15, 16 rip"),
            Error::UnknownEnumerator { name, span } => {
                error("E0161", format!("no enumeration has `{name}`")).at(*span, "")
            }
            Error::NotAnEnum { type_name, span } => error("E0162", format!("`{type_name}` is not an enumeration"))
                .at(*span, "")
                .note("name one: @enumname(value, \"enum x\", \"kernel\")"),
            Error::Condition { what, span } => error("E0155", format!("{what} in the condition of a probe point"))
                .at(*span, "")
                .note("a condition can only read global variables; test everything else in the body: if (!...) next"),
            Error::DebugInfo { message, span } => error("E0302", message.clone()).at(*span, ""),
            Error::UnreadAssignment { name, span } => {
                Diagnostic::warning(Code("W0102"), format!("Eliding assignment to '{name}'")).at(*span, "nothing reads it")
            }
            Error::IdleExpression { span, text, function } => {
                let diagnostic = Diagnostic::warning(Code("W0103"), "Eliding side-effect-free expression").at(*span, "nothing uses its value");
                match habit::statement(text) {
                    _ if *function => diagnostic.note(format!("a function is called with parentheses: {text}()")),
                    Some(note) => diagnostic.note(note),
                    None => diagnostic,
                }
            }
            Error::BareReturn { ty, span } => error("E0163", format!("type mismatch: this function returns a {}", ty.name()))
                .at(*span, "no value is returned here")
                .note("write return 0 or return \"\"; a function without a return at its end returns that too"),
            Error::UnknownCounter { name, known, span } => {
                let diagnostic = error("E0166", format!("no counter `{name}`")).at(*span, "");
                match known.is_empty() {
                    true => diagnostic.note(format!("a probe creates one: probe perf.hw.instructions.counter(\"{name}\") {{ }}")),
                    false => diagnostic.note(format!("there is: {}", known.join(", "))),
                }
            }
            Error::ProbeWriteOutsideAlias { span } => error("E0167", "unexpected @probewrite".into())
                .at(*span, "this is not an alias")
                .note("in the statements of an alias it is 1 if the probe that uses the alias assigns to the variable"),
            Error::AliasArgument { name, span } => error("E0164", format!("alias component `{name}` has an argument"))
                .at(*span, "")
                .note("the name of an alias has no arguments: probe a.b = ...; components after the name, where it is used, are applied to its points"),
            Error::NeverReached { name, number, span, before } => {
                Diagnostic::warning(Code("W0105"), format!("instance {number} of overloaded function '{name}' will never be reached"))
                    .at(*span, "")
                    .also(*before, "this one has no `next`")
            }
            Error::IdleProbe { points, span } => Diagnostic::warning(Code("W0104"), format!("side-effect-free probe '{points}'"))
                .at(*span, "its handler does nothing"),
            Error::NeverAssigned { name, near, span } => {
                let near: Vec<&str> = near.iter().map(String::as_str).collect();
                let diagnostic =
                    Diagnostic::warning(Code("W0101"), format!("local variable `{name}` is never assigned")).at(*span, "");
                match called(name).or_else(|| foreign::instead(name, Use::Value)) {
                    Some(instead) => diagnostic.note(instead),
                    None => diagnostic.near(*span, &suggest::suggest(name, near)),
                }
            }
        }
    }
}
