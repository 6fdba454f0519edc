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
mod text;

use crate::plan::Plan;

/// The C of one module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Units {
    /// The script's unit: includes only `script.h` and `builtins.h`.
    pub script: String,
    /// The unit with the script's own C, if it has any.
    pub embedded: Option<String>,
}

/// Writes the plan as C text.
pub fn emit(plan: &Plan) -> Result<Units, tera::Error> {
    Ok(Units { script: module::emit(plan)?, embedded: (!plan.embedded.is_empty()).then(|| embedded::emit(plan)) })
}
