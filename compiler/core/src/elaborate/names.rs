// SPDX-License-Identifier: GPL-2.0-or-later

//! The first phase: the declarations of the scripts and the library, and which one a name refers to.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::environment::{Environment, is_library};
use super::error::NameError;
use super::guru;
use crate::builtin::{self, Builtin};
use crate::library::PublicNames;
use crate::program::{GlobalId, id};
use spile_base::glob;
use spile_source::{FileId, Origin, SourceMap, Span};
use spile_syntax::ast::{self, Index};
use spile_syntax::visit;

id!(/** A declared function: index into [`Names::functions`]. */ DeclaredId);

/// The priority of functions of the library and of builtins.
pub(super) const LIBRARY_PRIORITY: i64 = 1;

/// All declarations. Nothing is added after [`declare`].
pub(super) struct Names<'a> {
    sources: &'a SourceMap,
    /// By [`GlobalId`].
    pub globals: Vec<&'a ast::Global>,
    /// By name; private ones also by their file.
    global_names: HashMap<(Option<FileId>, &'a str), GlobalId>,
    /// By [`DeclaredId`].
    pub functions: Vec<&'a ast::Function>,
    function_names: HashMap<(Option<FileId>, &'a str), Vec<DeclaredId>>,
    /// In the order of the files.
    aliases: Vec<&'a ast::Alias>,
    /// The same by the first component of a name, with the number of that name.
    alias_places: HashMap<&'a str, Vec<(usize, usize)>>,
    /// Where functions name parameters that hide a global of the name, also in `name[...]`.
    parameters: HashSet<Span>,
    /// Names of library files that no script needs: for suggestions.
    pub offered: Rc<PublicNames>,
}

/// Declares everything in the scripts. Reports duplicate names, and what needs guru mode.
pub(super) fn declare<'a>(env: &mut Environment<'a>, scripts: &'a [ast::Script]) -> Names<'a> {
    let mut names = Names::new(env.sources);
    names.offered = env.options.offered.clone();
    for script in scripts {
        for item in &script.items {
            match item {
                ast::Item::Global(global) => names.declare_global(env, script.file, global),
                ast::Item::Function(function) => names.declare_function(env, script.file, function),
                ast::Item::Alias(alias) => names.declare_alias(env, alias),
                ast::Item::EmbeddedC(code) => guru::check_embedded(env, code),
                ast::Item::Probe(probe) => {
                    guru::check_block(env, &probe.body);
                    refuse_probewrite(env, &probe.body);
                }
            }
        }
    }
    names.find_parameters();
    names
}

/// `@probewrite(name)` asks about the body of the probe that uses an alias, so it belongs in the alias.
fn refuse_probewrite(env: &mut Environment, block: &ast::Block) {
    visit::expressions(block, &mut |expr| {
        if matches!(expr.kind, ast::ExprKind::ProbeWrite(_)) {
            env.report(NameError::ProbeWriteOutsideAlias { span: expr.span });
        }
    });
}

impl<'a> Names<'a> {
    /// No declarations.
    pub fn new(sources: &'a SourceMap) -> Names<'a> {
        Names {
            sources,
            globals: Vec::new(),
            global_names: HashMap::new(),
            functions: Vec::new(),
            function_names: HashMap::new(),
            aliases: Vec::new(),
            alias_places: HashMap::new(),
            parameters: HashSet::new(),
            offered: Rc::default(),
        }
    }

    /// In a function with a parameter `name`, `name[...]` is an element of the global array of that name, as in SystemTap; but
    /// not of a global that a library's function cannot mean, or that is no array.
    fn find_parameters(&mut self) {
        let mut found = HashSet::new();
        for function in &self.functions {
            let ast::FunctionBody::Script(block) = &function.body else { continue };
            let file = self.sources.reader(function.name.span);
            let hides = |name: &ast::Name| {
                let global = self.find_global(function.name.span, &name.text).map(|id| self.globals[id.index()]);
                global.is_some_and(|global| global.initial.is_some() || self.sources.reader(global.name.span) != file)
            };
            let names: Vec<&str> = function
                .parameters
                .iter()
                .filter(|parameter| hides(&parameter.name))
                .map(|parameter| parameter.name.text.as_str())
                .collect();
            if names.is_empty() {
                continue;
            }
            let mut see = |expr: &ast::Expr| {
                if let ast::ExprKind::Ident(name) = &expr.kind
                    && names.contains(&name.as_str())
                {
                    found.insert(expr.span);
                }
            };
            visit::expressions(block, &mut see);
            visit::statements(block, &mut |statement| {
                if let ast::StmtKind::Foreach(foreach) = &statement.kind {
                    see(&foreach.array);
                }
            });
        }
        self.parameters = found;
    }

    fn declare_alias(&mut self, env: &mut Environment<'a>, alias: &'a ast::Alias) {
        for component in alias.names.iter().flatten().filter(|component| component.argument.is_some()) {
            env.report(NameError::AliasArgument { name: component.name.clone(), span: component.span });
        }
        alias.prologue.iter().chain(&alias.epilogue).for_each(|block| guru::check_block(env, block));
        self.add_alias(alias);
    }

    /// Declares an alias that has been checked.
    pub fn add_alias(&mut self, alias: &'a ast::Alias) {
        for (number, name) in alias.names.iter().enumerate() {
            if let Some(first) = name.first() {
                self.alias_places.entry(&first.name).or_default().push((self.aliases.len(), number));
            }
        }
        self.aliases.push(alias);
    }

    /// All probe aliases, in the order of the files.
    pub fn aliases(&self) -> &[&'a ast::Alias] {
        &self.aliases
    }

    /// Aliases and their names that may fit a point whose first component has this name, in the order of the files.
    pub fn aliases_like(&self, first: &str) -> Vec<(&'a ast::Alias, &'a [ast::Component])> {
        if glob::is_pattern(first) {
            let all = self.aliases.iter();
            return all.flat_map(|alias| alias.names.iter().map(|name| (*alias, name.as_slice()))).collect();
        }
        let places = self.alias_places.get(first).into_iter().flatten();
        places
            .filter_map(|(at, number)| {
                let alias = *self.aliases.get(*at)?;
                Some((alias, alias.names.get(*number)?.as_slice()))
            })
            .collect()
    }

    fn declare_function(&mut self, env: &mut Environment<'a>, file: FileId, function: &'a ast::Function) {
        match &function.body {
            ast::FunctionBody::EmbeddedC(code) => guru::check_embedded(env, code),
            ast::FunctionBody::Script(block) => {
                guru::check_block(env, block);
                refuse_probewrite(env, block);
            }
        }
        let key = (function.private.then_some(file), function.name.text.as_str());
        self.function_names.entry(key).or_default().push(DeclaredId(self.functions.len() as u32));
        self.functions.push(function);
    }

    fn declare_global(&mut self, env: &mut Environment<'a>, file: FileId, global: &'a ast::Global) {
        let key = (global.private.then_some(file), global.name.text.as_str());
        let other = (if global.private { None } else { Some(file) }, key.1);
        let in_file = |id: &&GlobalId| self.globals[id.index()].name.span.file == file;
        if let Some(first) = self.global_names.get(&key).or_else(|| self.global_names.get(&other).filter(in_file)) {
            let first = self.globals[first.index()].name.span;
            let name = global.name.text.clone();
            return env.report(NameError::Redeclared { what: "global", name, span: global.name.span, first });
        }
        self.global_names.insert(key, GlobalId(self.globals.len() as u32));
        self.globals.push(global);
    }

    /// Whether the place is in the library. What a macro produces belongs to the file with its call.
    pub fn is_library(&self, span: Span) -> bool {
        is_library(self.sources, self.sources.reader(span))
    }

    /// Whether the place is in the library that comes with the compiler.
    pub fn is_own_library(&self, span: Span) -> bool {
        self.is_own(self.sources.reader(span))
    }

    fn is_own(&self, file: FileId) -> bool {
        self.sources.file(file).origin == Origin::Tapset
    }

    /// The global that a name at this place refers to. The compiler's own library sees no globals of others, so that these
    /// may have any name. What a macro produces belongs to the file with its call.
    pub fn find_global(&self, span: Span, name: &str) -> Option<GlobalId> {
        if self.parameters.contains(&span) {
            return None;
        }
        let file = self.sources.reader(span);
        let seen = |id: &&GlobalId| !self.is_own(file) || self.is_own(self.globals[id.index()].name.span.file);
        self.global_names
            .get(&(Some(file), name))
            .or_else(|| self.global_names.get(&(None, name)).filter(seen))
            .copied()
    }

    /// Whether a script of the user declares the global.
    pub fn is_of_script(&self, id: GlobalId) -> bool {
        !is_library(self.sources, self.globals[id.index()].name.span.file)
    }

    /// The name of a declared global.
    pub fn global_name(&self, id: GlobalId) -> String {
        self.globals[id.index()].name.text.clone()
    }

    /// The global of an array expression, and its indices.
    pub fn array_of<'e>(&self, expr: &'e ast::Expr) -> Option<(GlobalId, &'e [Index])> {
        match &expr.kind {
            ast::ExprKind::Ident(name) => Some((self.find_global(expr.span, name)?, &[])),
            ast::ExprKind::Index(base, indices) => match &base.kind {
                ast::ExprKind::Ident(name) => Some((self.find_global(base.span, name)?, indices)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether the expression is an element of a global array.
    pub fn is_element(&self, expr: &ast::Expr) -> bool {
        matches!(expr.kind, ast::ExprKind::Index(..)) && self.array_of(expr).is_some()
    }

    /// Declared functions that a name at this place refers to, with any number of parameters.
    pub fn functions_named<'n>(&'n self, span: Span, name: &'n str) -> &'n [DeclaredId] {
        let file = self.sources.reader(span);
        let private = self.function_names.get(&(Some(file), name));
        private.or_else(|| self.function_names.get(&(None, name))).map_or(&[], Vec::as_slice)
    }

    /// The names of all declared functions.
    pub fn function_names(&self) -> impl Iterator<Item = &'a str> {
        self.function_names.keys().map(|(_, name)| *name)
    }

    /// Declared functions of that name and number of parameters, in the order in which they are tried: private ones of the
    /// place's file, or else the public ones.
    pub fn overloads(&self, span: Span, name: &str, arity: usize) -> Vec<DeclaredId> {
        let private = self.ordered(Some(self.sources.reader(span)), name, arity);
        if private.is_empty() { self.ordered(None, name, arity) } else { private }
    }

    /// The same with the public ones that private ones continue with.
    pub fn overloads_and_after(&self, span: Span, name: &str, arity: usize) -> Vec<DeclaredId> {
        let mut found = self.overloads(span, name, arity);
        while let Some(next) = found.last().and_then(|&last| self.overload_after(self.functions[last.index()])) {
            found.push(next);
        }
        found
    }

    /// The private ones of a file, or the public ones.
    fn ordered(&self, file: Option<FileId>, name: &str, arity: usize) -> Vec<DeclaredId> {
        let mut found = self.function_names.get(&(file, name)).cloned().unwrap_or_default();
        let priority =
            |function: &ast::Function| function.priority.unwrap_or(i64::from(self.is_library(function.span)));
        // Builtins have the library's priority, and do not go on.
        let most = if builtin::find(name, arity).is_some() { LIBRARY_PRIORITY } else { i64::MAX };
        found.retain(|index| {
            let function = self.functions[index.index()];
            function.parameters.len() == arity && priority(function) <= most
        });
        found.sort_by_key(|index| priority(self.functions[index.index()]));
        found
    }

    /// The declared overload that is tried after this one. The last private one continues with the public ones.
    pub fn overload_after(&self, function: &ast::Function) -> Option<DeclaredId> {
        let (name, arity) = (&function.name.text, function.parameters.len());
        let file = function.private.then(|| self.sources.reader(function.name.span));
        let own = self.ordered(file, name, arity);
        let at = own.iter().position(|&other| std::ptr::eq(self.functions[other.index()], function))?;
        let goes_on = || function.private && visit::executes_next(function);
        own.get(at + 1).copied().or_else(|| goes_on().then(|| self.ordered(None, name, arity).first().copied())?)
    }

    /// The builtin that is tried after the last declared overload, if that executes `next`.
    pub fn builtin_after(&self, function: &ast::Function) -> Option<&'static Builtin> {
        match self.overload_after(function) {
            None if visit::executes_next(function) => builtin::find(&function.name.text, function.parameters.len()),
            _ => None,
        }
    }

    /// First components of the aliases' names.
    pub fn alias_names(&self) -> impl Iterator<Item = Vec<String>> {
        let names = self.aliases.iter().flat_map(|alias| &alias.names);
        names.map(|name| name.iter().map(|component| component.name.clone()).collect())
    }
}
