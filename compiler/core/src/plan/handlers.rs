// SPDX-License-Identifier: GPL-2.0-or-later

//! The routines of each probe: its handler, and those for values at a function's entry and for the point's condition.

use std::collections::HashMap;

use super::ahead;
use super::analysis::Analysis;
use super::code::{self, Frame, OwnConstant, Routine};
use super::cost::CostEstimator;
use super::error::Planned;
use super::items;
use super::merge::{IdenticalHandlers, Run, SimilarHandlers};
use super::names;
use super::restart;
use super::routine::Builder;
use super::tables::Tables;
use super::{Condition, Paging, Probe};
use crate::program::condition::filters;
use crate::program::{self, Stmt};
use spile_source::SourceMap;

/// Adds the routines of all probes to `routines`; probes with the same behaviour share one.
pub(super) fn plan(
    analysis: &Analysis,
    tables: &mut Tables,
    sources: &SourceMap,
    routines: &mut Vec<Routine>,
) -> Planned<Vec<Probe>> {
    let mut planner = Planner {
        analysis,
        tables,
        sources,
        routines,
        identical: IdenticalHandlers::default(),
        similar: SimilarHandlers::default(),
        similar_at_entry: SimilarHandlers::default(),
    };
    let mut probes = analysis
        .program
        .probes
        .iter()
        .enumerate()
        .map(|(index, probe)| planner.probe(index, probe))
        .collect::<Planned<Vec<Probe>>>()?;
    planner.merge(&mut probes);
    let by_symbol: HashMap<&str, &Routine> =
        routines.iter().map(|routine| (routine.symbol.as_str(), routine)).collect();
    let is_simple = |symbol: &str| by_symbol.get(symbol).is_some_and(|routine| code::is_simple(routine));
    let costs = CostEstimator::of(routines);
    for probe in &mut probes {
        let handler = by_symbol.get(probe.handler.as_str()).filter(|_| probe.counts_only);
        probe.adds = handler.and_then(|handler| code::only_adds(&handler.code));
        probe.simple = probe.locks.is_empty() && is_simple(&probe.handler);
        probe.entry_simple = probe.entry_locks.is_empty() && probe.entry_handler.as_deref().is_some_and(is_simple);
        let entry = probe.entry_handler.as_deref().map_or(0, |name| costs.of_call(name));
        probe.cost = costs.of_call(&probe.handler).saturating_add(entry);
    }
    Ok(probes)
}

struct Planner<'a, 'p, 's> {
    analysis: &'a Analysis<'p>,
    tables: &'a mut Tables<'s>,
    sources: &'a SourceMap,
    routines: &'a mut Vec<Routine>,
    /// Routines that do not get constants of the probe from the runtime.
    identical: IdenticalHandlers,
    /// Handlers.
    similar: SimilarHandlers,
    /// Entry handlers.
    similar_at_entry: SimilarHandlers,
}

impl Planner<'_, '_, '_> {
    /// The probe; [`Planner::merge`] fills in its handlers.
    fn probe(&mut self, index: usize, probe: &program::Probe) -> Planned<Probe> {
        let name = names::handler(index, probe);
        let comment = format!("probe {} ({})", probe.point, self.sources.place(probe.span));
        let (condition, body) = probe.body.split_at(filters(&probe.body));
        let (entry_handler, entry_paging) = self.entry_handler(index, probe, &name, &comment)?;
        let mut routine = self.handler(index, probe, condition, body, name.clone(), comment)?;
        let paging = self.paging(probe, &mut routine);
        let only_counts = code::only_counts(&routine.code);
        // A handler that only counts is called without its probe.
        let handler = if only_counts {
            self.identical.add(self.routines, routine)
        } else {
            items::gather(&mut routine.code, self.tables);
            self.similar.add(index, routine);
            String::new()
        };
        let locks = self.analysis.handler_locks(index);
        let condition = self.condition(probe, condition, &name)?;
        Ok(Probe {
            point: probe.point.clone(),
            script_point: probe.script_point.clone(),
            function: probe.function.clone(),
            module: probe.module.clone(),
            attachment: probe.attachment.clone(),
            handler,
            constants: Vec::new(),
            entry_handler,
            paging,
            entry_paging,
            entry_bytes: self.analysis.saved[index].bytes,
            counts_only: only_counts && locks.is_empty(),
            adds: None,
            simple: false,
            entry_simple: false,
            cost: 0,
            stack: 0,
            registers: self.analysis.registers(index),
            locks,
            entry_locks: self.analysis.entry_locks(index),
            condition,
        })
    }

    /// Saves values at the probed function's entry. The name of the first routine is filled in later.
    fn entry_handler(
        &mut self,
        index: usize,
        probe: &program::Probe,
        name: &str,
        comment: &str,
    ) -> Planned<(Option<String>, Paging)> {
        if probe.saved.is_empty() {
            return Ok((None, Paging::None));
        }
        let places = &self.analysis.saved[index].places;
        let mut builder = Builder::new(self.analysis, self.tables, places);
        if self.analysis.rearms_at_entry(index) {
            builder.rearm();
        }
        for (expr, &(_, offset)) in probe.saved.iter().zip(places) {
            builder.save(offset, expr)?;
        }
        let comment = format!("{comment}: values at the function's entry");
        let mut routine = builder.finish(format!("{name}_entry"), comment, Vec::new(), None, Frame::Handler);
        let paging = self.paging(probe, &mut routine);
        items::gather(&mut routine.code, self.tables);
        self.similar_at_entry.add(index, routine);
        Ok((Some(String::new()), paging))
    }

    /// Of a probe whose task may wait for memory.
    fn paging(&mut self, probe: &program::Probe, routine: &mut Routine) -> Paging {
        if !probe.attachment.mechanism.pages_in || !restart::reads(&routine.code) {
            return Paging::None;
        }
        if restart::prepare(routine, self.routines) {
            return Paging::Restart;
        }
        let ahead = ahead::of(routine, format!("{}_ahead", routine.symbol));
        ahead.map_or(Paging::None, |ahead| Paging::Ahead(self.identical.add(self.routines, ahead)))
    }

    fn handler(
        &mut self,
        index: usize,
        probe: &program::Probe,
        condition: &[Stmt],
        body: &[Stmt],
        name: String,
        comment: String,
    ) -> Planned<Routine> {
        let mut builder = Builder::new(self.analysis, self.tables, &self.analysis.saved[index].places);
        builder.declare(&probe.locals, 0);
        builder.statements(condition)?;
        let (lead_in, body) = body.split_at(self.analysis.lead_in(index));
        builder.statements(lead_in)?;
        let known = self.analysis.known(index);
        for (value, expr) in self.analysis.early(index) {
            builder.compute_early(value, expr, known)?;
        }
        builder.handler = Some(index);
        builder.hold(None, probe.span)?;
        builder.early_values_are_checked();
        if self.analysis.rearms(index) {
            builder.rearm();
        }
        builder.statements(body)?;
        Ok(builder.finish(name, comment, Vec::new(), None, Frame::Handler))
    }

    /// The condition of the probe point, evaluated apart from a hit.
    fn condition(&mut self, probe: &program::Probe, condition: &[Stmt], name: &str) -> Planned<Option<Condition>> {
        if condition.is_empty() {
            return Ok(None);
        }
        let mut builder = Builder::new(self.analysis, self.tables, &[]);
        builder.statements(condition)?;
        let comment = format!("probe {}: its condition", probe.point);
        let routine = builder.finish(format!("{name}_condition"), comment, Vec::new(), None, Frame::Handler);
        let routine = self.identical.add(self.routines, routine);
        Ok(Some(Condition { routine, locks: self.analysis.condition_locks(condition) }))
    }

    /// Adds the handlers that remain, and records what each probe runs.
    fn merge(self, probes: &mut [Probe]) {
        self.identical.comment(self.routines);
        for (index, Run { symbol, constants, .. }) in self.similar.finish(self.routines, |_| 0) {
            probes[index].handler = symbol;
            probes[index].constants = constants;
        }
        let entries = self.similar_at_entry.finish(self.routines, |index| probes[index].constants.len());
        for (index, Run { symbol, first, constants }) in entries {
            probes[index].entry_handler = Some(symbol);
            if !constants.is_empty() {
                // Those of the handler are fewer than those of another probe's.
                probes[index].constants.resize(first, OwnConstant::Long(0));
                probes[index].constants.extend(constants);
            }
        }
    }
}
