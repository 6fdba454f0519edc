//! What can be wrong with a script after parsing, as facts, and how each is told.

use super::format::FormatErrorKind;
use super::types::Conflict;
use crate::diagnostic::{Code, Diagnostic, suggest};
use crate::program::Type;
use crate::source::Span;

#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// Two uses disagree about a type.
    Types(Conflict),
    /// Nothing says whether this is a long or a string.
    Unresolved { name: String, span: Span },
    UnknownFunction { name: String, span: Span, near: Vec<String> },
    Arity { name: String, takes: Vec<usize>, given: usize, span: Span, declared: Option<Span> },
    Redeclared { what: &'static str, name: String, span: Span, first: Span },
    NotAssignable { span: Span },
    /// A function's value where it returns none.
    NoValue { name: String, span: Span },
    OutsideLoop { word: &'static str, span: Span },
    ReturnInProbe { span: Span },
    Guru { what: &'static str, span: Span },
    /// A context variable where there are none: a function, or a probe without any.
    NoContext { name: String, point: Option<String>, span: Span },
    UnknownVariable { name: String, place: String, available: Vec<String>, span: Span },
    /// The variable exists and has no value at the address; `why` says more, a line each.
    NoValueThere { name: String, place: String, why: Vec<String>, available: Vec<String>, span: Span },
    NotReturnProbe { span: Span },
    VoidReturn { function: String, span: Span },
    NoMember { type_name: String, member: String, available: Vec<String>, span: Span },
    /// `->` or `[` on something that has neither.
    NotAStruct { type_name: String, span: Span },
    NotIndexable { type_name: String, span: Span },
    /// A whole struct where a number is needed.
    WholeStruct { type_name: String, members: Vec<String>, span: Span },
    NoAddress { span: Span, why: &'static str },
    /// A value captured at entry cannot be written at return.
    CapturedWrite { span: Span },
    /// An expression evaluated at the function's entry uses a local of the handler.
    LocalAtEntry { name: String, span: Span },
    UnknownType { type_name: String, object: String, span: Span },
    Format { kind: FormatErrorKind, span: Span },
    FormatArguments { wanted: usize, given: usize, span: Span },
    /// Something of the language that this version does not have.
    Unsupported { what: String, span: Span },
    /// Reading debug information failed.
    DebugInfo { message: String, span: Span },
    NeverAssigned { name: String, near: Vec<String>, span: Span },
}

fn and(names: &[String], none: &str) -> String {
    if names.is_empty() { none.to_string() } else { names.join(", ") }
}

impl Error {
    pub fn diagnostic(&self) -> Diagnostic {
        let error = |code, message: String| Diagnostic::error(Code(code), message);
        match self {
            Error::Types(Conflict { first, second }) => {
                error("E0101", format!("type mismatch: expected {} but found {}", first.0.name(), second.0.name()))
                    .at(second.1, format!("this is a {}", second.0.name()))
                    .also(first.1, format!("first used as a {} here", first.0.name()))
                    .note(match second.0 {
                        Type::Long => "a number becomes text by sprint(...) or sprintf(\"%d\", ...)",
                        Type::String => "text becomes a number by strtol(text, 10)",
                    })
            }
            Error::Unresolved { name, span } => error("E0102", format!("unresolved type of `{name}`"))
                .at(*span, "neither a long nor a string by any of its uses")
                .note("assign it a number or a text somewhere, or print it with %d or %s"),
            Error::UnknownFunction { name, span, near } => {
                let known: Vec<&str> = near.iter().map(String::as_str).collect();
                let diagnostic = error("E0103", format!("unresolved function `{name}`")).at(*span, "");
                let near = suggest::suggest(name, known);
                if near.is_empty() { diagnostic } else { diagnostic.note(format!("did you mean {}?", near.join(", "))) }
            }
            Error::Arity { name, takes, given, span, declared } => {
                let takes: Vec<String> = takes.iter().map(usize::to_string).collect();
                let mut diagnostic =
                    error("E0104", format!("`{name}` takes {} arguments, not {given}", takes.join(" or "))).at(*span, "");
                if let Some(declared) = declared {
                    diagnostic = diagnostic.also(*declared, "declared here");
                }
                diagnostic
            }
            Error::Redeclared { what, name, span, first } => {
                error("E0105", format!("{what} `{name}` is declared twice")).at(*span, "").also(*first, "first here")
            }
            Error::NotAssignable { span } => error("E0106", "this cannot be assigned to".into())
                .at(*span, "neither a variable nor a context variable"),
            Error::NoValue { name, span } => {
                error("E0107", format!("`{name}` returns nothing")).at(*span, "a value is needed here")
            }
            Error::OutsideLoop { word, span } => error("E0108", format!("cannot `{word}` outside a loop")).at(*span, ""),
            Error::ReturnInProbe { span } => error("E0109", "`return` outside a function".into())
                .at(*span, "")
                .note("`next` leaves a probe handler"),
            Error::Guru { what, span } => error("E0401", format!("{what} needs guru mode"))
                .at(*span, "")
                .note("run with -g if you mean it: a mistake here can crash the machine"),
            Error::NoContext { name, point, span } => {
                let diagnostic = error("E0120", format!("no context variable `{name}` here"));
                match point {
                    Some(point) => diagnostic.at(*span, format!("probe {point} has no context variables")),
                    None => diagnostic
                        .at(*span, "a function has no context variables")
                        .note("pass the value as an argument from the probe"),
                }
            }
            Error::UnknownVariable { name, place, available, span } => {
                let names: Vec<&str> = available.iter().map(String::as_str).collect();
                let mut diagnostic = error("E0121", format!("no variable `{name}` at {place}")).at(*span, "");
                if let near @ [_, ..] = suggest::suggest(name, names.iter().copied()).as_slice() {
                    diagnostic = diagnostic.note(format!("did you mean {}?", near.join(", ")));
                }
                diagnostic.note(format!("available there: {}", and(available, "none")))
            }
            Error::NoValueThere { name, place, why, available, span } => {
                let mut diagnostic = error("E0122", format!("`{name}` has no value at {place}")).at(*span, "");
                for line in why {
                    diagnostic = diagnostic.note(line.clone());
                }
                diagnostic.note(format!("available there: {}", and(available, "none")))
            }
            Error::NotReturnProbe { span } => error("E0123", "`$return` is only there in a return probe".into())
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
                    FormatErrorKind::TooWide(value) => format!("{value} is more than any record holds"),
                };
                error("E0133", message)
                    .at(*span, "")
                    .note("conversions are %d %i %u %o %x %X %p %s %c %b %m %M and %%")
            }
            Error::FormatArguments { wanted, given, span } => {
                error("E0134", format!("the format takes {wanted} arguments, {given} are given")).at(*span, "")
            }
            Error::Unsupported { what, span } => error("E0190", format!("not in this version: {what}")).at(*span, ""),
            Error::DebugInfo { message, span } => error("E0302", message.clone()).at(*span, ""),
            Error::NeverAssigned { name, near, span } => {
                let mut diagnostic =
                    Diagnostic::warning(Code("W0101"), format!("local variable `{name}` is never assigned")).at(*span, "");
                let near: Vec<&str> = near.iter().map(String::as_str).collect();
                if let near @ [_, ..] = suggest::suggest(name, near).as_slice() {
                    diagnostic = diagnostic.note(format!("did you mean {}?", near.join(", ")));
                }
                diagnostic
            }
        }
    }
}
