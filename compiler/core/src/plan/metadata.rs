// SPDX-License-Identifier: GPL-2.0-or-later

//! What the loader reads of a module: probes, targets, formats, places that errors name.

use super::ModuleInfo;
use super::embedded;
use super::storage::{self, Global};
use super::tables::Tables;
use crate::program::Program;
use spile_abi::meta::{self, Meta};
use spile_source::SourceMap;

/// Takes formats and locations out of the tables.
pub(super) fn plan(
    program: &Program,
    sources: &SourceMap,
    info: &ModuleInfo,
    tables: &mut Tables,
    globals: &[Global],
) -> Meta {
    Meta {
        name: info.module.clone(),
        title: info.title.clone(),
        version: env!("CARGO_PKG_VERSION").to_string(),
        kernel_release: info.kernel_release.clone(),
        guru: info.guru,
        targets: program
            .targets
            .iter()
            .map(|target| meta::Target {
                name: target.name.clone(),
                build_id: target.build_id.clone(),
                path: target.path.clone(),
            })
            .collect(),
        programs: program
            .programs
            .iter()
            .map(|program| meta::Target {
                name: program.path.clone(),
                build_id: program.build_id.clone(),
                path: program.path.clone(),
            })
            .collect(),
        probes: program
            .probes
            .iter()
            .map(|probe| meta::Probe {
                point: probe.point.clone(),
                script_point: probe.script_point.clone(),
                place: sources.place(probe.span),
            })
            .collect(),
        formats: std::mem::take(&mut tables.formats),
        descriptions: tables.take_loader_descriptions(),
        locations: std::mem::take(&mut tables.locations),
        settings: storage::settable(globals).map(|global| storage::setting(global, info.limits.string_bytes)).collect(),
        ungated: embedded::ungated(program, sources, &tables.expressions),
        value_names: std::mem::take(&mut tables.value_names),
    }
}
