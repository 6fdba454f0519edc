// SPDX-License-Identifier: GPL-2.0-or-later

//! Pass 2: the trees of scripts and tapset files to one [`Program`].
//!
//! Probe points are resolved to sites ([`points`]), each site gets its own copy of the handler; types are found over
//! all of it ([`infer`]); then every tree is lowered ([`lower`]), context variables with the site's debug information
//! ([`context`]). It goes on after a mistake, so that a user sees all of them.

mod arrays;
mod autocast;
mod context;
mod counter;
mod dead;
mod display;
mod effect;
mod elide;
mod embedded;
mod enums;
pub mod error;
mod fold;
pub mod format;
mod functions;
mod gone;
mod infer;
mod iteration;
mod listing;
mod literal;
mod lower;
mod points;
mod pretty;
mod prune;
mod raw;
mod regex;
pub mod survey;
mod text_variable;
pub mod types;
mod unused;

pub use listing::list;

use std::collections::HashMap;
use std::rc::Rc;

use crate::probe::{Context, Resolver};
use crate::program::{GlobalId, LocalId, Program, SavedId};
use error::Error;
use functions::{Function, Reached};
use spile_source::diagnostic::Diagnostic;
use spile_source::{FileId, SourceMap, Span};
use spile_syntax::ast;
use types::{TypeVar, Types};

/// What the command line says about the language.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub guru: bool,
    /// Show globals that are written and never read when the session ends.
    pub display_globals: bool,
    /// What has no effect is not warned of.
    pub unoptimised: bool,
    /// A context variable that is not there is 0.
    pub skip_bad_variables: bool,
    /// STRUCT_DEPTH: structs and arrays within each other that `$x$$` shows; None: all.
    pub struct_depth: Option<u32>,
    /// STP_ALIBI: handlers do nothing, so that their hits alone are counted.
    pub counts_only: bool,
}

/// Resolves `scripts`: the user's files first, then the library files they need.
///
/// `resolver` answers for probe points and debug information. Returns what could be resolved and all that was wrong;
/// the program is only meant to go on if none of that is an error.
pub fn elaborate<'a>(
    sources: &'a SourceMap,
    scripts: &'a [ast::Script],
    options: &Options,
    resolver: &'a mut Resolver<'a>,
) -> (Program, Vec<Diagnostic>) {
    let mut elaborator = Elaborator::new(sources, options, resolver);
    elaborator.declare(scripts);
    let mut handlers = elaborator.expand_probes(scripts);
    elaborator.find_counters(&handlers);
    elaborator.infer_all(&mut handlers);
    elaborator.find_pointees(&handlers);
    elaborator.check_globals();
    elaborator.check_types(&mut handlers);
    let program = if elaborator.failed { Program::default() } else { elaborator.lower_all(scripts, handlers) };
    if !elaborator.failed && !options.unoptimised {
        elaborator.warn_of_unused(scripts);
    }
    iteration::check(&program).into_iter().for_each(|error| elaborator.report(error));
    (program, elaborator.problems)
}

struct Global<'a> {
    ast: &'a ast::Global,
    /// Of the value or, of an array, of its elements.
    ty: TypeVar,
    shape: arrays::Shape,
    read: bool,
    written: bool,
}

/// Names and types within one function or handler.
#[derive(Clone, Default)]
struct Unit {
    names: HashMap<String, LocalId>,
    locals: Vec<Local>,
    /// None in a function.
    context: Option<Rc<dyn Context>>,
    /// Spelling of the probe point, for messages.
    point: String,
    loops: usize,
    /// Depth of code that never runs.
    dead: usize,
    /// An expression that is evaluated at the probed function's entry is being lowered.
    at_entry: bool,
    /// Number of the probe site, of a handler or of a function's copy for it.
    site: Option<u32>,
    /// The function that this is.
    function: Option<usize>,
    /// Names that the user's own body of the probe assigns to (`@probewrite`).
    user_writes: Vec<String>,
    /// Of a function with `next`: where the arguments of the call are.
    arguments: Vec<LocalId>,
    /// Statements that nothing is made of.
    elided: elide::Elided,
}

/// What a probe site saves at the probed function's entry.
#[derive(Default)]
struct Saved {
    values: Vec<crate::program::Expr>,
    /// By the spelling of what they are.
    names: HashMap<String, SavedId>,
}

#[derive(Clone)]
struct Local {
    name: String,
    ty: TypeVar,
    span: Span,
    assigned: bool,
    /// Its value is used somewhere.
    read: bool,
}

/// One site with the statements that run there.
struct Handler<'a> {
    site: crate::probe::Site,
    script_point: String,
    span: Span,
    condition: Vec<&'a ast::Expr>,
    body: Vec<&'a ast::Stmt>,
    unit: Unit,
}

struct Elaborator<'a> {
    sources: &'a SourceMap,
    resolver: &'a mut Resolver<'a>,
    options: Options,
    problems: Vec<Diagnostic>,
    failed: bool,
    types: Types,
    globals: Vec<Global<'a>>,
    /// By name; private ones also by their file.
    global_names: HashMap<(Option<FileId>, &'a str), GlobalId>,
    functions: Vec<Function<'a>>,
    function_names: HashMap<(Option<FileId>, &'a str), Vec<usize>>,
    aliases: Vec<&'a ast::Alias>,
    /// Functions reached, in order; those not yet inferred come last.
    reached: Vec<Reached>,
    /// Copies of functions for probe sites.
    copies: HashMap<(usize, u32), usize>,
    /// By probe site.
    saved: HashMap<u32, Saved>,
    /// Whether a variable is there is asked, and not why not.
    only_asked: bool,
    /// Functions that elaboration adds to the script's own: their numbers come after those.
    made: Vec<crate::program::Function>,
    flows: Vec<autocast::Flow<'a>>,
    /// Calls whose results are printed as they are: they need a type.
    printed_calls: Vec<(types::TypeVar, &'a ast::Name)>,
    pointees: autocast::Pointees,
    regexes: regex::Regexes,
    /// Source lines are asked for somewhere.
    lines_asked: bool,
    /// By the name of a `perf` probe's `.counter`: the probe's index.
    counters: HashMap<String, usize>,
}

impl<'a> Elaborator<'a> {
    fn new(sources: &'a SourceMap, options: &Options, resolver: &'a mut Resolver<'a>) -> Elaborator<'a> {
        Elaborator {
            sources,
            resolver,
            options: options.clone(),
            problems: Vec::new(),
            failed: false,
            types: Types::default(),
            globals: Vec::new(),
            global_names: HashMap::new(),
            functions: Vec::new(),
            function_names: HashMap::new(),
            aliases: Vec::new(),
            reached: Vec::new(),
            copies: HashMap::new(),
            saved: HashMap::new(),
            only_asked: false,
            made: Vec::new(),
            flows: Vec::new(),
            printed_calls: Vec::new(),
            pointees: HashMap::new(),
            regexes: Default::default(),
            lines_asked: false,
            counters: HashMap::new(),
        }
    }

    fn report(&mut self, error: Error) {
        self.tell(error.diagnostic());
    }

    /// Notes a diagnostic; the same one (a handler cloned for many sites) only once.
    fn tell(&mut self, diagnostic: Diagnostic) {
        // What is not there may be where there is more than BTF.
        let unknown = ["E0121", "E0122", "E0204", "E0205", "E0207"].contains(&diagnostic.code.0);
        let diagnostic = match self.resolver.without_dwarf().filter(|_| unknown) {
            Some(note) => diagnostic.note(note),
            None => diagnostic,
        };
        self.failed |= diagnostic.severity == spile_source::diagnostic::Severity::Error;
        if !self.problems.contains(&diagnostic) {
            self.problems.push(diagnostic);
        }
    }

    fn declare(&mut self, scripts: &'a [ast::Script]) {
        for script in scripts {
            for item in &script.items {
                match item {
                    ast::Item::Global(global) => self.declare_global(script.file, global),
                    ast::Item::Function(function) => self.declare_function(script.file, function),
                    ast::Item::Alias(alias) => self.declare_alias(alias),
                    ast::Item::EmbeddedC(code) => self.check_embedded(code),
                    ast::Item::Probe(probe) => self.check_guru(&probe.body),
                }
            }
        }
    }

    fn declare_alias(&mut self, alias: &'a ast::Alias) {
        for component in alias.names.iter().flatten().filter(|component| component.argument.is_some()) {
            self.report(Error::AliasArgument { name: component.name.clone(), span: component.span });
        }
        alias.prologue.iter().chain(&alias.epilogue).for_each(|block| self.check_guru(block));
        self.aliases.push(alias);
    }

    fn declare_global(&mut self, file: FileId, global: &'a ast::Global) {
        let key = (global.private.then_some(file), global.name.text.as_str());
        let other = (if global.private { None } else { Some(file) }, key.1);
        let in_file = |id: &&GlobalId| self.globals[id.index()].ast.name.span.file == file;
        if let Some(first) = self.global_names.get(&key).or_else(|| self.global_names.get(&other).filter(in_file)) {
            let first = self.globals[first.index()].ast.name.span;
            let name = global.name.text.clone();
            return self.report(Error::Redeclared { what: "global", name, span: global.name.span, first });
        }
        let ty = match &global.initial {
            None => self.types.fresh(),
            Some((ast::Literal::Number(_), span)) => self.types.known(crate::program::Type::Long, *span),
            Some((ast::Literal::String(_), span)) => self.types.known(crate::program::Type::String, *span),
        };
        self.global_names.insert(key, GlobalId(self.globals.len() as u32));
        self.globals.push(Global { ast: global, ty, shape: Default::default(), read: false, written: false });
    }

    /// The global that a name in `file` means. A library file sees no globals of the user's scripts, so that these may
    /// have any name.
    fn find_global(&self, file: FileId, name: &str) -> Option<GlobalId> {
        let library = |file: FileId| self.sources.file(file).origin == spile_source::Origin::Tapset;
        let seen = |id: &&GlobalId| !library(file) || library(self.globals[id.index()].ast.name.span.file);
        self.global_names
            .get(&(Some(file), name))
            .or_else(|| self.global_names.get(&(None, name)).filter(seen))
            .copied()
    }

    /// The local that a name in `file` means. In a handler a global that is seen there comes first: a local of its name
    /// is a library alias's own.
    fn find_local(&self, unit: &Unit, file: FileId, name: &str) -> Option<LocalId> {
        let id = unit.names.get(name).copied();
        id.filter(|_| unit.site.is_none() || self.find_global(file, name).is_none())
    }
}
