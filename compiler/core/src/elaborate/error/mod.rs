// SPDX-License-Identifier: GPL-2.0-or-later

//! Errors in a script after parsing, as facts. [`text`] makes the diagnostic of each.
//!
//! There is no `Display`, and so no thiserror: an error is shown as a [`Diagnostic`](spile_source::diagnostic::Diagnostic)
//! with labels and notes, whose message alone would not be enough.

mod text;

use super::format::FormatErrorKind;
use super::types::Conflict;
use crate::program::Type;
use spile_regex as regex;
use spile_source::Span;

/// An error or warning of elaboration. `span` is the place it is shown at.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// Two uses disagree about a type.
    Types(Conflict),
    /// An internal error: a mistake of the compiler, whatever the script contains.
    Internal {
        what: &'static str,
        span: Span,
    },
    /// No use determines whether this is a long or a string.
    Unresolved {
        name: String,
        span: Span,
    },
    /// `span` of the first probe.
    NoProbes {
        span: Span,
    },
    UnknownFunction {
        name: String,
        span: Span,
        near: Vec<String>,
    },
    Arity {
        name: String,
        takes: Vec<usize>,
        given: usize,
        span: Span,
        declared: Option<Span>,
    },
    /// `left.right`, as in C.
    DotMember {
        left: String,
        right: String,
        span: Span,
    },
    Redeclared {
        what: &'static str,
        name: String,
        span: Span,
        first: Span,
    },
    NotAssignable {
        span: Span,
    },
    /// `$value` of a procfs file that is being read.
    WriteOnly {
        span: Span,
    },
    /// A `return` without a value in a function whose callers take one.
    BareReturn {
        ty: Type,
        span: Span,
    },
    /// `@probewrite` in a probe or a function.
    ProbeWriteOutsideAlias {
        span: Span,
    },
    /// `@perf` of a counter that no probe defines; `known`: the counters that exist.
    UnknownCounter {
        name: String,
        known: Vec<String>,
        span: Span,
    },
    /// The name of an alias has an argument.
    AliasArgument {
        name: String,
        span: Span,
    },
    OutsideLoop {
        word: &'static str,
        span: Span,
    },
    Guru {
        what: &'static str,
        span: Span,
    },
    /// A context variable where none exist: in a function, or in a probe without any.
    NoContext {
        name: String,
        point: Option<String>,
        span: Span,
    },
    UnknownVariable {
        name: String,
        place: String,
        available: Vec<String>,
        span: Span,
    },
    /// The variable exists and has no value at the address; `why`: the known reasons, one line each.
    NoValueThere {
        name: String,
        place: String,
        why: Vec<String>,
        available: Vec<String>,
        span: Span,
    },
    NotReturnProbe {
        span: Span,
    },
    VoidReturn {
        function: String,
        span: Span,
    },
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
    NoAddress {
        span: Span,
        why: &'static str,
    },
    /// A value captured at entry cannot be written at return.
    CapturedWrite {
        span: Span,
    },
    /// An expression evaluated at the function's entry uses a local of the handler.
    LocalAtEntry {
        name: String,
        span: Span,
    },
    UnknownType {
        type_name: String,
        object: String,
        span: Span,
    },
    Format {
        kind: FormatErrorKind,
        span: Span,
    },
    /// An invalid pattern of `=~`; `position`: byte offset in its value.
    Regex {
        kind: regex::ErrorKind,
        position: usize,
        span: Span,
    },
    FormatArguments {
        wanted: usize,
        given: usize,
        span: Span,
    },
    /// An array is used with another number of keys than before.
    KeyCount {
        name: String,
        keys: usize,
        given: usize,
        span: Span,
        first: Span,
    },
    TooManyKeys {
        name: String,
        given: usize,
        span: Span,
    },
    /// `*` where one key is needed.
    AnyKey {
        span: Span,
    },
    /// Not a global; only a global can be an array or aggregate.
    NotGlobal {
        what: &'static str,
        span: Span,
    },
    /// `keys`: where it is used with keys; None: its declaration has a size.
    ArrayAsValue {
        name: String,
        span: Span,
        keys: Option<Span>,
    },
    WrappedScalar {
        name: String,
        span: Span,
    },
    /// `what`: "an array", "an aggregate".
    InitialValue {
        name: String,
        what: &'static str,
        span: Span,
        used: Span,
    },
    /// `stats`: where it is used as an aggregate.
    AggregateAsValue {
        name: String,
        span: Span,
        stats: Option<Span>,
    },
    NotAggregate {
        span: Span,
    },
    ForeachAggregate {
        span: Span,
    },
    ChangedInForeach {
        name: String,
        function: Option<String>,
        span: Span,
        foreach: Span,
    },
    /// `buckets` with the two outer ones; None where the numbers are invalid.
    LinearHistogram {
        low: i64,
        high: i64,
        width: i64,
        buckets: Option<i64>,
        span: Span,
    },
    Shift {
        given: i64,
        span: Span,
    },
    /// One aggregate with two histograms, or two shifts of its variance.
    TwoShapes {
        what: &'static str,
        name: String,
        span: Span,
        first: Span,
    },
    /// A histogram has one key: the bucket's number.
    BucketKeys {
        given: usize,
        span: Span,
    },
    /// `->` or `[` on a value whose C type is not known.
    NoPointee {
        text: String,
        span: Span,
    },
    UnknownGlobal {
        name: String,
        objects: String,
        span: Span,
    },
    /// The size of a dereference is not 1, 2, 4 or 8; None: not a number.
    DerefSize {
        given: Option<i64>,
        span: Span,
    },
    NoRegisters {
        what: &'static str,
        point: String,
        span: Span,
    },
    RegisterNumber {
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
    /// Something that the condition of a probe point must not contain.
    Condition {
        what: &'static str,
        span: Span,
    },
    /// Reading debug information failed.
    DebugInfo {
        message: String,
        span: Span,
    },
    NeverAssigned {
        name: String,
        near: Vec<String>,
        span: Span,
    },
    /// Warnings about code without effect.
    UnreadAssignment {
        name: String,
        span: Span,
    },
    /// `text`: the expression; `function`: it is the name of one.
    IdleExpression {
        span: Span,
        text: String,
        function: bool,
    },
    IdleProbe {
        points: String,
        span: Span,
    },
    /// The `number`th function of a name, behind one without `next`.
    NeverReached {
        name: String,
        number: usize,
        span: Span,
        before: Span,
    },
}
