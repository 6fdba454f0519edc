// SPDX-License-Identifier: GPL-2.0-or-later

//! Pass 3, second half: a plan as C text. Nothing is decided here.
//!
//! The module's skeleton is a template ([`module`]); expressions and statements are functions ([`routine`]). The same plan
//! gives the same bytes.

mod attachment;
mod embedded;
mod module;
mod regex;
mod routine;
mod sites;
mod text;

use spile_abi::sites::Tables;

use crate::plan::Plan;

/// The C of one module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Units {
    /// The script's unit: includes only `script.h` and `builtins.h`.
    pub script: String,
    /// The unit with the script's own C, if it has any.
    pub embedded: Option<String>,
    /// What the script's unit lacks, and what is to be written into the compiled object.
    pub tables: Option<Tables>,
}

/// Whether all tables are in the C text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The text can be compiled by itself.
    Whole,
    /// Tables of thousands of probes may be left out ([`Units::tables`]).
    Short,
}

/// Writes the plan as C text.
///
/// # Errors
///
/// A mistake in the template.
pub fn emit(plan: &Plan, form: Form) -> Result<Units, tera::Error> {
    let (script, tables) = module::emit(plan, form)?;
    Ok(Units { script, embedded: (!plan.embedded.is_empty()).then(|| embedded::emit(plan)), tables })
}
