// SPDX-License-Identifier: GPL-2.0-or-later

//! A C type that does not have what the script asks for.

use super::text::{and, error};
use spile_source::Span;
use spile_source::diagnostic::foreign::{self, Use};
use spile_source::diagnostic::{Diagnostic, suggest};

/// A C type that does not have what the script asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeError {
    NoMember {
        type_name: String,
        member: String,
        available: Vec<String>,
        span: Span,
    },
    /// `->` or `[` on something that has neither members nor elements.
    NotAStruct {
        type_name: String,
        span: Span,
    },
    NotIndexable {
        type_name: String,
        span: Span,
    },
    /// A whole struct where a number is needed.
    WholeStruct {
        type_name: String,
        members: Vec<String>,
        span: Span,
    },
    /// A number of more than 8 bytes.
    TooWide {
        type_name: String,
        bytes: u64,
        span: Span,
    },
    UnknownType {
        type_name: String,
        object: String,
        span: Span,
    },
    /// `->` or `[` on a value whose C type is not known.
    NoPointee {
        text: String,
        /// Values of several types are stored there.
        several: bool,
        span: Span,
    },
    /// The size of a dereference is not 1, 2, 4 or 8; None: not a number.
    DerefSize {
        given: Option<i64>,
        span: Span,
    },
    UnknownEnumerator {
        name: String,
        span: Span,
    },
    NotAnEnum {
        type_name: String,
        span: Span,
    },
}

impl TypeError {
    /// The diagnostic with the error's code, labels and notes.
    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            Self::NoMember { type_name, member, available, span } => {
                let names: Vec<&str> = available.iter().map(String::as_str).collect();
                let found = format!("unable to find member '{member}' for {type_name}");
                let diagnostic = error("E0125", format!("{type_name} has no member `{member}`"))
                    .as_stap_with(&found, "alternatives", available)
                    .at(*span, "");
                match suggest::hint(member, &names, 40) {
                    Some(hint) => diagnostic.note(hint),
                    None => diagnostic,
                }
            }
            Self::NotAStruct { type_name, span } => error("E0126", format!("`{type_name}` has no members"))
                .at(*span, "not a struct or union, nor a pointer to one"),
            Self::NotIndexable { type_name, span } => {
                error("E0127", format!("`{type_name}` cannot be indexed")).at(*span, "neither an array nor a pointer")
            }
            Self::WholeStruct { type_name, members, span } => {
                error("E0128", format!("a whole `{type_name}` is not a number"))
                    .as_stap(format!("'{type_name}' is being accessed instead of a member"))
                    .at(*span, "")
                    .note("name a member with ->, print it all with $ or $$ after it, or take its address with &")
                    .note(format!("members: {}", and(members, "none")))
            }
            Self::TooWide { type_name, bytes, span } => {
                error("E0128", format!("`{type_name}` has {bytes} bytes, more than a number of a script"))
                    .at(*span, "")
                    .note("show it with $ after it, or read it in parts from its address, which & gives")
            }
            Self::UnknownType { type_name, object, span } => {
                error("E0132", format!("no type `{type_name}` in {object}"))
                    .as_stap(format!("type definition '{type_name}' not found in '{object}'"))
                    .at(*span, "")
            }
            Self::NoPointee { text, several: true, span } => {
                error("E0156", format!("`{text}` has values that point to different types"))
                    .at(*span, "")
                    .note("types of one name differ if their members do, or if one is a program's and one the kernel's")
                    .note(format!("say which one is meant: @cast({text}, \"struct ...\", \"kernel\" or the program)"))
                    .note("of types of several files of a program a cast takes the probed function's: use a variable or function for each")
            }
            Self::NoPointee { text, span, .. } => {
                let otherwise = || format!("give its type: @cast({text}, \"struct ...\", \"kernel\")");
                error("E0156", format!("the type that `{text}` points to is unknown"))
                    .at(*span, "")
                    .note(foreign::instead(text, Use::Value).unwrap_or_else(otherwise))
            }
            Self::DerefSize { given, span } => {
                let given = given.map_or("this is not a number".into(), |given| format!("{given} is not one of them"));
                error("E0158", "a dereference reads 1, 2, 4 or 8 bytes".into()).at(*span, given)
            }
            Self::UnknownEnumerator { name, span } => {
                error("E0161", format!("no enumeration has `{name}`")).at(*span, "")
            }
            Self::NotAnEnum { type_name, span } => error("E0162", format!("`{type_name}` is not an enumeration"))
                .at(*span, "")
                .note("name one: @enumname(value, \"enum x\", \"kernel\")"),
        }
    }
}
