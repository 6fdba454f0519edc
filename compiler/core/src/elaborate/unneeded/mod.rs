// SPDX-License-Identifier: GPL-2.0-or-later

//! Code without effect: parts that are left out of the program, and warnings about it.
//!
//! In the order of the phases:
//!
//! 1. [`needed`], while points are expanded: a library alias sets all its variables, and a handler takes only those that it
//!    uses. This comes first, since otherwise every site would resolve unused variables.
//! 2. [`elided`], before types are inferred: statements whose results nothing uses. Before inference, so that what they ask
//!    of the target need not be there.
//! 3. `infer/dead.rs`, during inference: arms of conditions whose value is known. Only then, because `@defined` is among
//!    the conditions and its answer needs the site's context. Names and types in them are still checked.
//! 4. [`warn`], at the end, and only for a script without errors: a warning about an unused variable next to an error
//!    about the same line would mislead.
//!
//! [`hidden`] is about globals of the script that have the name of what the library's alias sets.
//!
//! [`warn_of_names`], at the end too, is about values that are not what their functions say.
//!
//! [`effect`] serves 1, 2 and 4: does running this statement have an effect?

mod access;
mod effect;
mod elide;
mod names;
mod prune;
mod unused;

pub(super) use effect::expression_has_effect;
pub(super) use elide::{Elided, elided, elided_of_function};
pub(super) use names::warn_of_names;
pub(super) use prune::{hidden, needed};
pub(super) use unused::warn;
