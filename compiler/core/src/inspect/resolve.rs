// SPDX-License-Identifier: GPL-2.0-or-later

//! `--resolve`: each probe point of a script with its symbol, section and build-id, each variable with its location: what a
//! host with debug information can give to those without.

use serde::Serialize;

use super::location;
use crate::elaborate::survey::{Survey, Surveyed, Target};
use crate::probe::Site;
use crate::program::Registers;
use spile_source::SourceMap;

/// One site.
#[derive(Debug, PartialEq, Serialize)]
pub struct Resolved {
    /// As in the script, and where.
    pub written: String,
    /// `FILE:LINE:COLUMN` of the script.
    pub place: String,
    /// Canonical spelling.
    pub point: String,
    /// Where its code is; None if it is not attached to code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<CodePlace>,
    /// The target expressions of the handler.
    pub variables: Vec<ResolvedVariable>,
}

#[derive(Debug, PartialEq, Serialize)]
/// The place of a site in the code of an object.
pub struct CodePlace {
    /// `kernel` or a module's name.
    pub object: String,
    /// GNU build-id of the object in lower-case hex; empty if it has none.
    pub build_id: String,
    /// Name of the symbol before the place.
    pub symbol: String,
    /// Bytes from the symbol.
    pub offset: u64,
    /// Name of the ELF section.
    pub section: String,
    /// Link-time address, or in a module the offset in the section.
    pub address: u64,
    /// In an inlined copy of the function.
    pub inlined: bool,
}

#[derive(Debug, PartialEq, Serialize)]
/// A target expression and its meaning at a site.
pub struct ResolvedVariable {
    /// Its spelling.
    pub text: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    /// C type; empty if it does not exist there.
    pub r#type: String,
    /// The location, or the reason why there is none.
    pub location: String,
    /// It exists there.
    pub found: bool,
}

/// The sites of all points, in the order of the script. One that is attached in several ways, none of them to code of an object, is
/// there once.
pub fn resolved(sources: &SourceMap, survey: &Survey) -> Vec<Resolved> {
    let mut all = Vec::new();
    for point in &survey.points {
        for site in &point.sites {
            let resolved = Resolved {
                written: point.text.clone(),
                place: sources.place(point.span),
                point: site.site.point.clone(),
                code: code(site),
                variables: site
                    .targets
                    .iter()
                    .map(|target| variable(&site.site, target, is_tracepoint(site)))
                    .collect(),
            };
            if resolved.code.is_some() || all.last() != Some(&resolved) {
                all.push(resolved);
            }
        }
    }
    all
}

fn is_tracepoint(site: &Surveyed) -> bool {
    site.site.attachment.mechanism.registers == Registers::Arguments
}

fn code(site: &Surveyed) -> Option<CodePlace> {
    let code = site.site.context.code()?;
    let object = &code.object;
    let near = object.near(code.address);
    let function = object.debug().ok()?.function(code.function).ok()?;
    Some(CodePlace {
        object: object.name().to_string(),
        build_id: hex::encode(object.build_id()),
        symbol: near.as_ref().map_or_else(|| function.name.clone(), |near| near.symbol.clone()),
        offset: near.as_ref().map_or(0, |near| near.offset),
        section: object.section_name(code.address).unwrap_or_default().to_string(),
        address: code.address.offset,
        inlined: function.inlined.iter().any(|instance| instance.address == code.address),
    })
}

fn variable(site: &Site, target: &Target, words: bool) -> ResolvedVariable {
    let text = target.text.clone();
    let name = text.trim_start_matches(['&', '*', '(']).strip_prefix("$return");
    // Not of a variable whose name only begins so.
    let is_result =
        name.is_some_and(|rest| !rest.starts_with(|next: char| next == '_' || next.is_ascii_alphanumeric()));
    let when = if is_result && site.context.result_at_entry().is_some() { " at the entry" } else { "" };
    match &target.found {
        Ok(found) => ResolvedVariable {
            text,
            r#type: found.object.debug().map(|debug| debug.type_name(found.type_id)).unwrap_or_default(),
            location: location::text(&found.location, words) + when,
            found: true,
        },
        Err(problem) => {
            ResolvedVariable { text, r#type: String::new(), location: problem.message.clone(), found: false }
        }
    }
}

/// Lines for people.
pub fn table(all: &[Resolved]) -> Vec<String> {
    let mut lines = Vec::new();
    for site in all {
        lines.push(site.point.clone());
        if let Some(code) = &site.code {
            let inlined = if code.inlined { ", inlined" } else { "" };
            let build_id = if code.build_id.is_empty() { "none" } else { &code.build_id };
            lines.push(format!(
                "    {}+{:#x} in {} of {} ({:#x}{inlined}), build-id {build_id}",
                code.symbol, code.offset, code.section, code.object, code.address
            ));
        }
        for variable in &site.variables {
            lines.push(match variable.found {
                true => format!("    {}: {} in {}", variable.text, variable.r#type, variable.location),
                false => format!("    {}: {}", variable.text, variable.location),
            });
        }
    }
    lines
}

/// One object: `{"release":...,"sites":[...]}`.
pub fn json(release: &str, all: &[Resolved]) -> String {
    serde_json::json!({ "release": release, "sites": all }).to_string()
}
