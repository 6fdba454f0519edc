// SPDX-License-Identifier: GPL-2.0-or-later

//! `@perf("NAME")`: what the counter of `probe perf.type(T).config(C).counter("NAME")` stands at, on the CPU that the
//! handler runs on.

use super::error::Error;
use super::{Elaborator, Handler};
use crate::builtin;
use crate::program::{Attachment, Expr, ExprKind, Type};
use spile_source::Span;

impl<'a> Elaborator<'a> {
    pub(super) fn find_counters(&mut self, handlers: &[Handler<'a>]) {
        for (index, handler) in handlers.iter().enumerate() {
            let Attachment::Counter { name, .. } = &handler.site.attachment else { continue };
            if let Some(first) = self.counters.insert(name.clone(), index) {
                let first = handlers[first].span;
                self.report(Error::Redeclared { what: "counter", name: name.clone(), span: handler.span, first });
            }
        }
    }

    pub(super) fn check_counter(&mut self, name: &[u8], span: Span) {
        let name = String::from_utf8_lossy(name).into_owned();
        if !self.counters.contains_key(&name) {
            let mut known: Vec<String> = self.counters.keys().cloned().collect();
            known.sort();
            self.report(Error::UnknownCounter { name, known, span });
        }
    }

    pub(super) fn lower_counter(&mut self, name: &[u8], span: Span) -> Result<Expr, Error> {
        let name = String::from_utf8_lossy(name).into_owned();
        let (Some(index), Some(builtin)) = (self.counters.get(&name), builtin::find("__perf_counter", 1)) else {
            return Err(Error::UnknownCounter { name, known: Vec::new(), span });
        };
        let probe = super::context::long(*index as i64, span);
        Ok(Expr { kind: ExprKind::Builtin(builtin, vec![probe]), ty: Type::Long, span })
    }
}
