// SPDX-License-Identifier: GPL-2.0-or-later

//! The kernel and the library that scripts are checked against, opened once, and their names.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use spile_base::cache::Cache;
use spile_core::library::{Library, LibraryRequest, Places, PublicNames};
use spile_core::probe::{self, Resolver};
use spile_core::syscalls::Style;
use spile_core::{elaborate, inspect, library};
use spile_debuginfo::target::{Kernel, Object, SearchOptions};
use spile_source::{Origin, SourceMap, Span};
use spile_syntax::ast::{self, Item};
use spile_syntax::{self as syntax, Configuration, Environment, LANGUAGE_VERSION, Macros};

use crate::scan::{ItemKind, Scan};
use crate::settings::Settings;

/// Sites of this many probe headers are cached.
const MAX_REMEMBERED: usize = 64;

/// What scripts are checked against.
pub struct Workspace {
    /// The settings that it was opened with.
    pub settings: Settings,
    /// Release of the kernel.
    pub release: String,
    /// None if it is not installed.
    pub kernel: Option<Kernel>,
    /// A sentence for each file that could not be opened.
    pub problems: Vec<String>,
    library: Library,
    /// Facts for conditionals of scripts; without arguments.
    environment: Environment,
    offered: Rc<PublicNames>,
    parsed: OnceCell<ParsedLibrary>,
    /// Names in the kernel and its modules, by kind and object.
    names: RefCell<HashMap<(Names, String), NameList>>,
    /// By the text of a probe's header.
    sites: RefCell<HashMap<String, Rc<Vec<elaborate::ListedSite>>>>,
}

/// Names that were read.
type NameList = Rc<Vec<String>>;

/// Names that an object has many of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Names {
    /// Functions.
    Functions,
    /// Tracepoints.
    Tracepoints,
    /// Source files.
    Files,
}

/// The whole library, parsed.
pub struct ParsedLibrary {
    /// Its source text.
    pub sources: SourceMap,
    /// Its files, parsed.
    pub scripts: Vec<ast::Script>,
    /// Its macros.
    pub macros: Vec<LibraryMacro>,
}

/// A macro of the library.
pub struct LibraryMacro {
    /// Without `@`.
    pub name: String,
    /// Of its parameters; None: it is called without parentheses.
    pub parameters: Option<Vec<String>>,
    /// Where its name is.
    pub span: Span,
    /// The comment above it.
    pub doc: String,
}

/// A function of the library, for editors.
pub struct LibraryFunction<'w> {
    /// Its declaration.
    pub function: &'w ast::Function,
    /// The comment above it.
    pub doc: String,
}

/// The kernel of that release, or that of the settings' index.
fn open_kernel(settings: &Settings, release: &str, problems: &mut Vec<String>) -> Option<Kernel> {
    let search = SearchOptions {
        sysroot: settings.sysroot.clone(),
        modules: settings.modules.clone(),
        ..SearchOptions::default()
    };
    let opened = match &settings.index {
        Some(index) => Kernel::from_index(index, search),
        None => Kernel::open(release, search),
    };
    match opened {
        Ok(kernel) => Some(kernel.with_cache(Cache::open_read_only(&settings.cache))),
        Err(error) => {
            // A host without packages of its kernel can still check scripts that need none.
            if settings.index.is_some() || settings.release.is_some() {
                problems.push(format!("{error}; {}", error.notes().join("; ")));
            }
            None
        }
    }
}

/// The library; of directories that cannot be read only the settings' own are omitted.
fn open_library(settings: &Settings, places: &Places, problems: &mut Vec<String>) -> Library {
    let mut open = |places: &Places| {
        Library::open(places, &Cache::open_read_only(&settings.cache)).map_err(|error| {
            problems.push(format!("reading library scripts in {}: {}", error.path.display(), error.error));
        })
    };
    // Missing directories are omitted.
    let library = open(places).or_else(|()| open(&Places { further: Vec::new(), ..places.clone() }));
    library.unwrap_or_default()
}

impl Workspace {
    /// Opens the kernel and the modules of the settings.
    pub fn open(settings: Settings) -> Workspace {
        let mut problems = Vec::new();
        let wanted = settings.release.as_ref().unwrap_or(&settings.usual_release);
        let kernel = open_kernel(&settings, wanted, &mut problems);
        let release = kernel.as_ref().map_or_else(|| wanted.clone(), |kernel| kernel.release().to_string());
        let environment = Environment {
            kernel_release: release.clone(),
            arch: std::env::consts::ARCH.to_string(),
            config: kernel
                .as_ref()
                .map_or_else(Configuration::default, |kernel| Configuration::read_by(kernel.config_reader())),
            guru: settings.guru,
            compatible: settings.compatible.clone().unwrap_or_else(|| LANGUAGE_VERSION.into()),
            arguments: Vec::new(),
            privilege: "stapdev".into(),
            runtime: "kernel".into(),
        };
        let places = Places {
            instead: settings.library.clone(),
            further: settings.tapset.clone(),
            release: release.clone(),
            arch: environment.arch.clone(),
            syscall_style: if settings.strace_style { Style::Strace } else { Style::SystemTap },
        };
        let library = open_library(&settings, &places, &mut problems);
        let offered = library.offered().into();
        Workspace {
            settings,
            release,
            kernel,
            problems,
            library,
            environment,
            offered,
            parsed: OnceCell::new(),
            names: RefCell::default(),
            sites: RefCell::default(),
        }
    }

    /// Facts for conditionals of a script with these arguments.
    pub fn environment(&self, arguments: Vec<String>, guru: bool) -> Environment {
        Environment { arguments, guru, ..self.environment.clone() }
    }

    /// The library's files by name.
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// Names that the library has.
    pub fn offered(&self) -> &Rc<PublicNames> {
        &self.offered
    }

    /// Answers questions about probe points.
    pub fn resolver(&self, guru: bool) -> Resolver<'_> {
        Resolver::new(self.kernel.as_ref(), &self.release).with_guru(guru)
    }

    /// The whole library, parsed when it is first asked for.
    pub fn parsed(&self) -> &ParsedLibrary {
        self.parsed.get_or_init(|| self.parse_whole())
    }

    fn parse_whole(&self) -> ParsedLibrary {
        let mut sources = SourceMap::new();
        let environment = self.environment(Vec::new(), true);
        let mut problems = Vec::new();
        let macros = self.library.macros(&mut sources, &environment, &mut problems).unwrap_or_default();
        let request = LibraryRequest { all: true, ..LibraryRequest::default() };
        let scripts = self.library.select(&mut sources, &environment, &macros, request, &mut problems);
        let macros = library_macros(&sources, &macros);
        ParsedLibrary { scripts: scripts.unwrap_or_default(), sources, macros }
    }

    /// The functions of the library of that name.
    pub fn functions(&self, name: &str) -> Vec<LibraryFunction<'_>> {
        self.all_functions().filter(|function| function.function.name.text == name).collect()
    }

    /// All functions of the library.
    pub fn all_functions(&self) -> impl Iterator<Item = LibraryFunction<'_>> {
        let parsed = self.parsed();
        let items = parsed.scripts.iter().flat_map(|script| &script.items);
        items.filter_map(|item| match item {
            Item::Function(function) if !function.private => {
                let doc = self.comment(function.span);
                Some(LibraryFunction { function, doc })
            }
            _ => None,
        })
    }

    /// The probe aliases of the library.
    pub fn aliases(&self) -> impl Iterator<Item = &ast::Alias> {
        self.parsed().scripts.iter().flat_map(|script| &script.items).filter_map(|item| match item {
            Item::Alias(alias) => Some(alias),
            _ => None,
        })
    }

    /// The global of the library of that name.
    pub fn library_global(&self, name: &str) -> Option<&ast::Global> {
        self.parsed().scripts.iter().flat_map(|script| &script.items).find_map(|item| match item {
            Item::Global(global) if !global.private && global.name.text == name => Some(global),
            _ => None,
        })
    }

    /// The comment above the declaration at a span of the library.
    pub fn comment(&self, span: Span) -> String {
        library::comment(&self.parsed().sources.file(span.file).text, span.start as usize)
    }

    /// The kernel, or the module of that name.
    pub fn object(&self, module: Option<&str>) -> Option<Rc<Object>> {
        let kernel = self.kernel.as_ref()?;
        match module {
            None => kernel.vmlinux().ok(),
            Some(name) => kernel.module(name).ok(),
        }
    }

    /// Names that an object has, read once.
    pub fn names(&self, what: Names, module: Option<&str>) -> Rc<Vec<String>> {
        let key = (what, module.unwrap_or_default().to_string());
        if let Some(known) = self.names.borrow().get(&key) {
            return known.clone();
        }
        let object = self.object(module);
        let debug = object.as_ref().and_then(|object| object.debug().ok());
        let found = match what {
            Names::Functions => debug.map(inspect::names::functions),
            Names::Files => debug.map(|debug| inspect::names::files(debug, "*")),
            Names::Tracepoints => object.as_ref().map(|object| probe::tracepoints(object)),
        };
        let found = Rc::new(found.unwrap_or_default());
        self.names.borrow_mut().insert(key, found.clone());
        found
    }

    /// Names of all modules.
    pub fn modules(&self) -> Vec<String> {
        self.kernel.as_ref().map(Kernel::module_names).unwrap_or_default()
    }

    /// The sites of the points in a probe's header, `NAME =` in front of them or not; aliases of the script are looked for in
    /// `script`.
    pub fn sites(&self, header: &str, script: &str) -> Rc<Vec<elaborate::ListedSite>> {
        let own = own_aliases(script);
        let key = format!("{header}\0{own}");
        if let Some(known) = self.sites.borrow().get(&key) {
            return known.clone();
        }
        let found = Rc::new(self.find_sites(header, &own));
        let mut sites = self.sites.borrow_mut();
        if sites.len() >= MAX_REMEMBERED {
            sites.clear();
        }
        sites.insert(key, found.clone());
        found
    }

    fn find_sites(&self, header: &str, own: &str) -> Vec<elaborate::ListedSite> {
        let mut sources = SourceMap::new();
        let environment = self.environment(Vec::new(), true);
        let mut problems = Vec::new();
        let file = sources.add("points", header.as_bytes().to_vec(), Origin::User);
        let (points, _) = syntax::parse_probe_points(&mut sources, file);
        let Ok(macros) = self.library.macros(&mut sources, &environment, &mut problems) else { return Vec::new() };
        let file = sources.add("aliases", own.as_bytes().to_vec(), Origin::User);
        let mut scripts = vec![syntax::parse(&mut sources, file, &environment, &macros).0];
        let request = LibraryRequest { scripts: &scripts, points: &points, all: false };
        let selected = self.library.select(&mut sources, &environment, &macros, request, &mut problems);
        scripts.extend(selected.unwrap_or_default());
        let mut resolver = self.resolver(true);
        elaborate::sites(&sources, &points, &scripts, self.offered.clone(), &mut resolver).0
    }
}

/// The source text of a script's aliases.
fn own_aliases(script: &str) -> String {
    let scan = Scan::new(script);
    let aliases = scan.items.iter().filter(|item| item.kind == ItemKind::Alias && item.closed);
    aliases.filter_map(|item| script.get(scan.bytes(&item.words))).map(|text| format!("{text}\n")).collect()
}

fn library_macros(sources: &SourceMap, macros: &Macros) -> Vec<LibraryMacro> {
    let mut found: Vec<LibraryMacro> = macros
        .names()
        .filter_map(|name| {
            let definition = macros.get(name)?;
            let text = &sources.file(definition.span.file).text;
            // The word before the name is @define; the comment above applies to those that follow it, too.
            let define = text.get(..definition.span.start as usize)?.rfind("@define")?;
            let doc = library::comment(text, define);
            Some(LibraryMacro {
                name: name.into(),
                parameters: definition.parameters.clone(),
                span: definition.span,
                doc,
            })
        })
        .collect();
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::for_tests;

    #[test]
    fn the_library_without_a_kernel() {
        let workspace = Workspace::open(for_tests());
        assert!(workspace.kernel.is_none() && workspace.problems.is_empty(), "{:?}", workspace.problems);
        let pid = workspace.functions("task_pid");
        assert!(pid.iter().any(|function| !function.doc.is_empty()));
        assert!(workspace.aliases().count() > 500);
        assert!(workspace.parsed().macros.iter().any(|found| !found.doc.is_empty()));
        assert!(workspace.names(Names::Functions, None).is_empty() && workspace.modules().is_empty());
    }

    #[test]
    fn sites_of_aliases() {
        let workspace = Workspace::open(for_tests());
        let script = "probe mine = begin, end { who = \"me\"; n = 1 }\nprobe mine { ";
        let sites = workspace.sites("mine", script);
        let names: Vec<&str> = sites.iter().map(|listed| listed.name.as_str()).collect();
        assert_eq!(names, ["mine", "mine"]);
        assert_eq!(sites[0].set, [("who".to_string(), true), ("n".to_string(), false)]);
        assert!(workspace.sites("kernel.function(\"vf", script).is_empty());
    }

    #[test]
    fn files_that_cannot_be_opened_are_named() {
        let workspace = Workspace::open(Settings {
            index: Some("/nonexistent/index".into()),
            tapset: vec!["/nonexistent/tapset".into()],
            ..for_tests()
        });
        assert_eq!(workspace.problems.len(), 2, "{:?}", workspace.problems);
        assert!(!workspace.functions("task_pid").is_empty());
    }
}
