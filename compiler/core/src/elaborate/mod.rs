// SPDX-License-Identifier: GPL-2.0-or-later

//! Pass 2: the trees of scripts and tapset files to one [`Program`].
//!
//! Each phase takes what it needs and returns a value that later ones only read:
//!
//! | phase | gives |
//! | --- | --- |
//! | [`names::declare`] | [`names::Names`]: all declarations |
//! | [`expand::expand`] | a [`unit::Handler`] for each site of each probe point |
//! | [`infer::infer`] | [`typed::Typed`]: types of all that the handlers reach |
//! | [`lower::lower`] | the [`Program`] |
//!
//! All phases use the [`environment::Environment`]: sources, options, the target, and the list of problems. They continue
//! after an error, so that a user sees all of them. [`lookup`] finds the meaning of target expressions, for inference and
//! lowering; [`unneeded`] finds code without effect, for every phase.

mod counter;
mod environment;
mod error;
mod expand;
mod first;
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
mod privilege;
mod shown;
pub mod survey;
mod typed;
mod types;
mod unit;
mod unneeded;

pub use crate::program::Privilege;
pub use first::check_text;
pub use listing::{ListedSite, list, sites};
pub use privilege::{is_unprivileged, is_unprivileged_point};

use std::rc::Rc;

use crate::library::PublicNames;
use crate::probe::Resolver;
use crate::program::{Contents, GlobalId, Program, Type};
use counter::Counters;
use environment::Environment;
use names::Names;
use spile_source::diagnostic::Diagnostic;
use spile_source::{SourceMap, Span};
use spile_syntax::ast;

/// Options of the command line that change what a script means.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `-g`: embedded C, and writes to the kernel, are allowed.
    pub guru: bool,
    /// `--privilege`: what the user who runs it may see.
    pub privilege: Privilege,
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
    pub offered: Rc<PublicNames>,
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
    let (program, _, problems) = pass(sources, scripts, options, resolver);
    (program, problems)
}

/// What is known of a global, whether or not the script is right.
#[derive(Clone, Debug)]
pub struct Inferred {
    /// Where its name is declared.
    pub span: Span,
    /// Types of its keys; none if it is not an array.
    pub keys: Vec<Type>,
    /// What it or an element of it holds.
    pub contents: Contents,
    /// A use or its initial value decides its type.
    pub is_decided: bool,
}

/// As [`elaborate`], for editors: the types of globals instead of the program, and all that was wrong.
pub fn check<'a>(
    sources: &'a SourceMap,
    scripts: &'a [ast::Script],
    options: &Options,
    resolver: &'a mut Resolver<'a>,
) -> (Vec<Inferred>, Vec<Diagnostic>) {
    let (_, globals, problems) = pass(sources, scripts, options, resolver);
    (globals, problems)
}

fn pass<'a>(
    sources: &'a SourceMap,
    scripts: &'a [ast::Script],
    options: &Options,
    resolver: &'a mut Resolver<'a>,
) -> (Program, Vec<Inferred>, Vec<Diagnostic>) {
    let mut env = Environment::new(sources, options, resolver);
    let names = names::declare(&mut env, scripts);
    let mut handlers = expand::expand(&mut env, &names, scripts);
    env.shown = shown::find(&env, &handlers, scripts);
    let counters = Counters::find(&mut env, &handlers);
    let mut typed = infer::infer(&mut env, &names, &counters, &mut handlers);
    let globals = inferred(&names, &mut typed);
    let mut program = match env.failed() {
        true => Program::default(),
        false => lower::lower(&mut env, &names, &counters, typed, handlers, scripts),
    };
    privilege::restrict(&mut env, &mut program);
    if !env.failed() && !options.unoptimised {
        unneeded::warn(&mut env, &names, scripts);
    }
    if !env.failed() {
        unneeded::warn_of_names(&mut env, &program);
    }
    iteration::check(&program).into_iter().for_each(|error| env.report(error));
    (program, globals, env.into_problems())
}

fn inferred(names: &Names, typed: &mut typed::Typed) -> Vec<Inferred> {
    let ids = (0..names.globals.len() as u32).map(GlobalId);
    ids.zip(&names.globals)
        .map(|(id, global)| {
            let (ty, shape) = (typed.globals[id.index()].ty, &typed.globals[id.index()].shape);
            let is_decided = shape.stats.is_some() || typed.types.decided(ty).is_some();
            Inferred { span: global.name.span, keys: typed.key_types(id), contents: typed.contents(id), is_decided }
        })
        .collect()
}
