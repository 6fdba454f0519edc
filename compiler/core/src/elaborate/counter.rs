// SPDX-License-Identifier: GPL-2.0-or-later

//! `@perf("NAME")`: the value of the counter of `probe perf.type(T).config(C).counter("NAME")`, on the CPU that the
//! handler runs on; or of `....process("PATH").counter("NAME")`, of the thread that it runs in.

use std::collections::HashMap;

use super::environment::Environment;
use super::error::{Error, NameError};
use super::unit::Handler;
use crate::builtin;
use crate::program::{BinaryOp, Expr, LongExpr, LongKind};
use spile_source::Span;

/// A counter: the indices of its probes, of which a point with several programs has one for each, and the builtin that reads them.
struct Counter {
    probes: Vec<usize>,
    read_by: &'static str,
}

/// The script's counters by name.
#[derive(Default)]
pub(super) struct Counters(HashMap<String, Counter>);

impl Counters {
    /// Collects the counters of the probes; reports duplicate names.
    pub fn find(env: &mut Environment, handlers: &[Handler]) -> Counters {
        let mut counters: HashMap<String, Counter> = HashMap::new();
        for (index, handler) in handlers.iter().enumerate() {
            let attachment = &handler.site.attachment;
            if !attachment.mechanism.counts {
                continue;
            }
            let name = &attachment.subject;
            let read_by = match attachment.mechanism.kind {
                "SPILE_PROBE_PROGRAM_COUNTER" => "__program_counter",
                _ => "__perf_counter",
            };
            let counter = counters.entry(name.clone()).or_insert(Counter { probes: Vec::new(), read_by });
            let first = counter.probes.first().map_or(handler.span, |first| handlers[*first].span);
            counter.probes.push(index);
            if first != handler.span {
                env.report(NameError::Redeclared { what: "counter", name: name.clone(), span: handler.span, first });
            }
        }
        Counters(counters)
    }

    /// Reports a name that no counter has.
    pub fn check(&self, env: &mut Environment, name: &[u8], span: Span) {
        let name = String::from_utf8_lossy(name).into_owned();
        if !self.0.contains_key(&name) {
            let mut known: Vec<String> = self.0.keys().cloned().collect();
            known.sort();
            env.report(NameError::UnknownCounter { name, known, span });
        }
    }

    /// The value of a counter.
    pub fn lower(&self, name: &[u8], span: Span) -> Result<Expr, Error> {
        let name = String::from_utf8_lossy(name).into_owned();
        let unknown = || NameError::UnknownCounter { name: name.clone(), known: Vec::new(), span };
        let counter = self.0.get(&name).ok_or_else(unknown)?;
        let builtin = builtin::internal(counter.read_by).ok_or_else(unknown)?;
        let values = counter.probes.iter().map(|index| {
            let probe = LongExpr::constant(*index as i64, span);
            LongExpr { kind: LongKind::Builtin(builtin, vec![probe.into()]), span }
        });
        // A thread runs one program: the others are 0.
        let sum = |one, other| LongExpr { kind: LongKind::Binary(BinaryOp::Add, Box::new(one), Box::new(other)), span };
        values.reduce(sum).map(Expr::from).ok_or_else(|| unknown().into())
    }
}
