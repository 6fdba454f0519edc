// SPDX-License-Identifier: GPL-2.0-or-later

//! Pass 2: the trees of scripts and tapset files to one [`Program`].
//!
//! Each phase takes what it needs and returns a value that later ones only read:
//!
//! | phase | gives |
//! | --- | --- |
//! | [`names::declare`] | [`names::Names`]: all declarations |
//! | [`expand::expand`] | a [`unit::Handler`] for each site of each probe point |
//! | [`infer::infer`] | [`infer::Typed`]: types of all that the handlers reach |
//! | [`lower::lower`] | the [`Program`] |
//!
//! All phases use the [`environment::Environment`]: sources, options, the target, and the list of problems. They continue
//! after an error, so that a user sees all of them. [`lookup`] finds the meaning of target expressions, for inference and
//! lowering; [`unneeded`] finds code without effect, for every phase.

mod counter;
mod environment;
mod error;
mod expand;
mod format;
mod guru;
mod infer;
mod iteration;
mod listing;
mod literal;
mod lookup;
mod lower;
mod mark;
mod names;
pub mod survey;
mod unit;
mod unneeded;

pub use guru::needs_guru;
pub use listing::list;

use std::rc::Rc;

use crate::library::Offered;
use crate::probe::Resolver;
use crate::program::Program;
use counter::Counters;
use environment::Environment;
use spile_source::SourceMap;
use spile_source::diagnostic::Diagnostic;
use spile_syntax::ast;

/// Options of the command line that change what a script means.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `-g`: embedded C, and writes to the kernel, are allowed.
    pub guru: bool,
    /// Print globals that are written and never read when the session ends.
    pub display_globals: bool,
    /// Do not warn of code without effect.
    pub unoptimised: bool,
    /// A missing context variable is 0.
    pub skip_bad_variables: bool,
    /// STRUCT_DEPTH: levels of nested structs and arrays that `$x$$` shows; None: all.
    pub struct_depth: Option<u32>,
    /// STP_ALIBI: handlers do nothing, only their hits are counted.
    pub counts_only: bool,
    /// The names in the whole library, for suggestions.
    pub offered: Rc<Offered>,
}

/// Resolves `scripts`: the user's files first, then the library files they need.
///
/// `resolver` answers queries about probe points and debug information. Returns what could be resolved and all problems;
/// the program may only be used if none of them is an error.
pub fn elaborate<'a>(
    sources: &'a SourceMap,
    scripts: &'a [ast::Script],
    options: &Options,
    resolver: &'a mut Resolver<'a>,
) -> (Program, Vec<Diagnostic>) {
    let mut env = Environment::new(sources, options, resolver);
    let names = names::declare(&mut env, scripts);
    let mut handlers = expand::expand(&mut env, &names, scripts);
    let counters = Counters::find(&mut env, &handlers);
    let typed = infer::infer(&mut env, &names, &counters, &mut handlers);
    let program = match env.failed() {
        true => Program::default(),
        false => lower::lower(&mut env, &names, &counters, typed, handlers, scripts),
    };
    if !env.failed() && !options.unoptimised {
        unneeded::warn(&mut env, &names, scripts);
    }
    iteration::check(&program).into_iter().for_each(|error| env.report(error));
    (program, env.into_problems())
}
