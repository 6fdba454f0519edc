// SPDX-License-Identifier: GPL-2.0-or-later

//! An aggregate that is used as a value, or an extractor with invalid arguments.

use super::text::error;
use spile_source::Span;
use spile_source::diagnostic::Diagnostic;

/// An aggregate that is used as a value, or an extractor with invalid arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum AggregateError {
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
}

impl AggregateError {
    /// The diagnostic with the error's code, labels and notes.
    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            Self::AggregateAsValue { name, span, stats } => {
                let diagnostic =
                    error("E0147", format!("aggregate `{name}` is not a value")).at(*span, "used as one here");
                let diagnostic = match stats {
                    Some(stats) => diagnostic.also(*stats, "an aggregate because of this"),
                    None => diagnostic,
                };
                diagnostic.note("read it with @count, @sum, @min, @max, @avg, @variance, @hist_log or @hist_linear")
            }
            Self::NotAggregate { span } => error("E0148", "the elements of this array are not aggregates".into())
                .at(*span, "sorted by an extractor")
                .note("an aggregate is filled with `<<<`"),
            Self::ForeachAggregate { span } => error("E0149", "an aggregate cannot be a loop variable".into())
                .at(*span, "")
                .note("leave it out, and read the element with @count(array[key]) and the like"),
            Self::LinearHistogram { low, high, width, buckets, span } => {
                let diagnostic = error("E0151", "invalid linear histogram".into()).at(*span, "");
                match buckets {
                    None => diagnostic.note(format!("from {low} to {high} by {width}: the width must be above 0, and the second number not below the first")),
                    Some(buckets) => diagnostic.note(format!("{buckets} buckets; the limit is {}", crate::program::MAX_BUCKETS)),
                }
            }
            Self::Shift { given, span } => {
                error("E0152", format!("@variance has 0 to 62 bits of additional precision, not {given}")).at(*span, "")
            }
            Self::TwoShapes { what, name, span, first } => error("E0153", format!("two {what} of aggregate `{name}`"))
                .at(*span, "")
                .also(*first, "the other one")
                .note("an aggregate keeps one; feed a second aggregate with the same values"),
            Self::BucketKeys { given, span } => error("E0154", format!("a histogram has one key, not {given}"))
                .at(*span, "")
                .note("the key is the bucket's number"),
        }
    }
}
