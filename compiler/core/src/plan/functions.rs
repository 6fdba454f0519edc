// SPDX-License-Identifier: GPL-2.0-or-later

//! The script's functions as routines, and embedded C as functions of its unit.

use super::analysis::Analysis;
use super::code::{Frame, Routine};
use super::embedded::{EmbeddedFunction, located};
use super::error::Planned;
use super::items;
use super::routine::Builder;
use super::tables::Tables;
use crate::program::FunctionBody;
use spile_source::SourceMap;

/// Functions of the program as planned.
pub(super) struct Functions {
    /// Those written in the language.
    pub routines: Vec<Routine>,
    /// Those written in C.
    pub embedded: Vec<EmbeddedFunction>,
}

/// Plans all functions of the program, in order.
pub(super) fn plan(analysis: &Analysis, tables: &mut Tables, sources: &SourceMap) -> Planned<Functions> {
    let mut functions = Functions { routines: Vec::new(), embedded: Vec::new() };
    for (function, name) in analysis.program.functions.iter().zip(&analysis.functions) {
        let symbol = name.symbol.clone();
        match &function.body {
            FunctionBody::EmbeddedC(code) => functions.embedded.push(EmbeddedFunction {
                symbol,
                name: function.name.clone(),
                parameters: function.locals[..function.parameters]
                    .iter()
                    .map(|local| (local.name.clone(), local.ty))
                    .collect(),
                returns: function.returns,
                code: located(code, sources),
                unmangled: code.unmangled,
            }),
            FunctionBody::Script(statements) => {
                let comment = format!("function {} ({})", function.name, sources.place(function.span));
                let saved = function.site.and_then(|site| analysis.saved.get(site as usize));
                let places = saved.map_or(&[][..], |saved| &saved.places);
                let mut builder = Builder::new(analysis, tables, places);
                let parameters = builder.declare(&function.locals, function.parameters);
                builder.charge(statements, function.span);
                builder.statements(statements)?;
                let mut routine = builder.finish(symbol, comment, parameters, function.returns, Frame::Checked);
                if !routine.has_frame() && !analysis.counts_nesting() {
                    routine.frame = Frame::None;
                }
                items::gather(&mut routine.code, tables);
                functions.routines.push(routine);
            }
        }
    }
    Ok(functions)
}
