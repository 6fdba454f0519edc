// SPDX-License-Identifier: GPL-2.0-or-later

//! `@perf("NAME")`: the value of the counter of `probe perf.type(T).config(C).counter("NAME")`, on the CPU that the
//! handler runs on.

use std::collections::HashMap;

use super::environment::Environment;
use super::error::{Error, NameError};
use super::unit::Handler;
use crate::builtin;
use crate::program::{Expr, LongExpr};
use spile_source::Span;

/// The script's counters by name, with the index of the probe.
#[derive(Default)]
pub(super) struct Counters(HashMap<String, usize>);

impl Counters {
    /// Collects the counters of the probes; reports duplicate names.
    pub fn find(env: &mut Environment, handlers: &[Handler]) -> Counters {
        let mut counters = HashMap::new();
        for (index, handler) in handlers.iter().enumerate() {
            let attachment = &handler.site.attachment;
            if !attachment.mechanism.counts {
                continue;
            }
            let name = &attachment.subject;
            if let Some(first) = counters.insert(name.clone(), index) {
                let first = handlers[first].span;
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
        let (Some(index), Some(builtin)) = (self.0.get(&name), builtin::internal("__perf_counter")) else {
            return Err(NameError::UnknownCounter { name, known: Vec::new(), span }.into());
        };
        let probe = LongExpr::constant(*index as i64, span);
        Ok(Expr::builtin(builtin, vec![probe.into()], span))
    }
}
