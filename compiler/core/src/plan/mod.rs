// SPDX-License-Identifier: GPL-2.0-or-later

//! Pass 3, first half: the resolved program to a plan: which routine runs where, with which memory, locks and formats.
//!
//! Everything that needs deciding is decided here; `emit` spells it.

pub mod code;
mod condition;
mod cost;
mod deferred;
pub mod frame;
mod globals;
mod map;
mod merge;
mod routine;
pub mod stack;
pub mod stacks;
mod tables;

use code::{Frame, Routine, TableId};
pub use globals::LockMode;
use merge::{Identical, Run, Similar};
use routine::{Around, Builder, Kept, c_name};
use tables::Tables;
pub use tables::{EmbeddedExpression, ModuleSymbol};

use crate::program::uses::{self, Touches, Uses, Walk};
use crate::program::{
    Attachment, Automaton, Constant, EmbeddedC, FunctionBody, Holds, Label, Program, Registers, Type,
};
use spile_abi::meta::{self, Meta};
use spile_source::{Origin, SourceMap};

/// Limits of section 4.1 of the manual, each set by `-D NAME=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// MAXSTRINGLEN: bytes of a string with its NUL.
    pub string_bytes: u32,
    /// MAXACTION_INTERRUPTIBLE, or MAXACTION where INTERRUPTIBLE is 0: statements of one handler run.
    pub max_actions: u32,
    /// MAXNESTING; None: what the script needs, 10 more if a function calls itself.
    pub max_nesting: Option<u32>,
    /// MAXERRORS: run-time errors borne before the session ends.
    pub max_errors: u32,
    /// MAXMAPENTRIES: elements of an array whose declaration gives no size.
    pub map_entries: u32,
    /// MAXSKIPPED: skipped handler runs borne before the session ends.
    pub max_skipped: u32,
    /// `--suppress-handler-errors`: a run-time error ends its handler and is counted, no more.
    pub suppress_errors: bool,
    /// STP_NO_OVERLOAD: the time that handlers may take of a CPU is not limited.
    pub no_overload: bool,
    /// STP_OVERLOAD_INTERVAL and STP_OVERLOAD_THRESHOLD, CPU cycles; 0: the runtime's.
    pub overload_interval: u64,
    pub overload_threshold: u64,
    /// MAXTRYLOCK times TRYLOCKDELAY: ns that a handler waits for its locks before it is skipped.
    pub lock_wait: u32,
    /// MINSTACKSPACE: bytes of kernel stack that a handler needs, else it is skipped.
    pub least_stack: u32,
    /// KRETACTIVE: calls in flight that a .return probe without .maxactive follows; 0: the runtime's.
    pub active_returns: u32,
    /// STRUCT_DEPTH: structs and arrays within each other that `$x$$` shows; None: all.
    pub struct_depth: Option<u32>,
    /// STP_ALIBI: handlers do nothing, so that their hits alone are counted.
    pub counts_only: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            string_bytes: 512,
            max_actions: 10_000,
            max_nesting: None,
            max_errors: 0,
            map_entries: 2048,
            max_skipped: 100,
            suppress_errors: false,
            no_overload: false,
            overload_interval: 0,
            overload_threshold: 0,
            lock_wait: 1_000_000,
            // Twice SystemTap's: the kernel's own functions that a handler calls want some.
            least_stack: 2048,
            active_returns: 0,
            struct_depth: None,
            counts_only: false,
        }
    }
}

/// What the driver knows of the module beside the program.
#[derive(Clone, Debug)]
pub struct Naming {
    /// Module name.
    pub module: String,
    /// The script's file name, or `<input>`.
    pub title: String,
    pub kernel_release: String,
    pub guru: bool,
    pub limits: Limits,
    /// Further entries of the module's own information: name, value.
    pub modinfo: Vec<(String, String)>,
    /// What the embedded C finds defined: names and values.
    pub defines: Vec<(String, String)>,
}

#[derive(Debug)]
pub struct Plan {
    pub naming: Naming,
    pub max_nesting: u32,
    /// Of each CPU; more than [`frame::MOST`] is refused.
    pub frame_bytes: u64,
    pub scratch_bytes: u32,
    pub lock_count: u32,
    pub counter_count: u32,
    pub anchor_address: u64,
    pub globals: Vec<Global>,
    pub targets: Vec<crate::program::Target>,
    pub module_symbols: Vec<ModuleSymbol>,
    pub imprints: Vec<crate::program::Imprint>,
    /// Source lines of objects, by the targets' names.
    pub lines: Vec<(String, Vec<u8>)>,
    /// Records hold addresses that the loader has named.
    pub defers_names: bool,
    /// Functions of the script, then entry handlers and handlers.
    pub routines: Vec<Routine>,
    pub probes: Vec<Probe>,
    /// Bytecode that the module interprets, in order.
    pub tables: Vec<(TableId, Vec<u8>)>,
    pub regexes: Vec<crate::program::Regex>,
    /// Registers that patterns with groups need, and groups they have with the whole; 0: nothing asks for groups.
    pub match_registers: u32,
    pub match_groups: u32,
    pub embedded: Embedded,
    pub meta: Meta,
}

/// A global that the program uses.
#[derive(Debug)]
pub struct Global {
    pub id: crate::program::GlobalId,
    /// As the script calls it.
    pub name: String,
    pub symbol: String,
    pub storage: Storage,
}

/// How a global is held.
#[derive(Debug)]
pub enum Storage {
    /// `counter`: its number, if what is added to it lies on each CPU by itself. `lone`: used without a lock, by single
    /// loads and stores.
    Variable {
        ty: Type,
        initial: Option<Constant>,
        counter: Option<u32>,
        lone: bool,
    },
    Map(Map),
}

/// An array or an aggregate.
#[derive(Debug)]
pub struct Map {
    /// Among the maps of the module.
    pub index: u32,
    pub name: String,
    pub keys: Vec<Type>,
    pub holds: Holds,
    pub entries: u32,
    /// The script gave the size.
    pub sized: bool,
    pub wrap: bool,
}

/// One probe site.
#[derive(Debug)]
pub struct Probe {
    pub point: String,
    pub script_point: String,
    pub function: String,
    pub module: String,
    pub attachment: Attachment,
    pub handler: String,
    /// What it finds with its probe, by their numbers in the code.
    pub constants: Vec<Constant>,
    pub entry_handler: Option<String>,
    /// Data of one kretprobe instance.
    pub entry_bytes: u32,
    /// The handler does nothing but add to counters, without a lock.
    pub counts_only: bool,
    /// Instructions that a run may take, with its entry handler.
    pub cost: u32,
    /// Bytes of kernel stack that its handlers take, known when they are compiled; 0: not more than MINSTACKSPACE.
    pub stack: u32,
    /// Words of the probed registers that the handler may look at, of a return probe its entry handler: bit N for word N.
    pub registers: u64,
    /// What is taken for the handler, ascending.
    pub locks: Vec<(u32, LockMode)>,
    pub condition: Option<Condition>,
}

/// What the probe point's condition says, asked for apart from a hit.
#[derive(Clone, Debug)]
pub struct Condition {
    /// Sets `filtered` where it does not hold.
    pub routine: String,
    /// What is taken for it, ascending.
    pub locks: Vec<(u32, LockMode)>,
}

/// The translation unit with the script's own C.
#[derive(Debug)]
pub struct Embedded {
    pub declarations: Vec<Located>,
    pub functions: Vec<EmbeddedFunction>,
    pub expressions: Vec<EmbeddedExpression>,
    /// Globals that it uses: both units see them.
    pub globals: Vec<crate::program::GlobalId>,
}

impl Embedded {
    pub fn is_empty(&self) -> bool {
        self.declarations.is_empty() && self.functions.is_empty() && self.expressions.is_empty()
    }
}

/// C text with the place it comes from, for `#line`.
#[derive(Debug)]
pub struct Located {
    pub text: String,
    pub file: String,
    pub line: usize,
}

#[derive(Debug)]
pub struct EmbeddedFunction {
    pub symbol: String,
    pub name: String,
    pub parameters: Vec<(String, Type)>,
    pub returns: Option<Type>,
    pub code: Located,
    pub unmangled: bool,
}

/// Plans the module of a program.
pub fn plan(program: &Program, sources: &SourceMap, naming: Naming) -> Plan {
    let function_walks = Walk::of_functions(program);
    let function_uses = uses::function_uses(&function_walks);
    let handler_walks: Vec<Walk> = program.probes.iter().map(|probe| Walk::of(&probe.body)).collect();
    let handler_uses: Vec<Uses> = handler_walks.iter().map(|walk| walk.with_calls(&function_uses)).collect();
    let counters = globals::counters(program, &handler_uses);
    let watched = condition::watched(program, &function_uses);
    let contended = globals::contended(program, &handler_uses, &counters);
    let lone = globals::lone(program, &runs(program, &function_walks, &handler_walks), &contended, &watched);
    let locks = globals::locks(&contended, &lone);
    let kept = Kept { counters: &counters, lone: &lone };
    let nesting = frame::nesting(program);
    let max_nesting = naming.limits.max_nesting.unwrap_or(nesting.needed);
    let names = function_names(program);
    let saved: Vec<Saved> =
        program.probes.iter().map(|probe| saved_offsets(&probe.saved, naming.limits.string_bytes)).collect();
    let mut tables = Tables::new(sources, naming.limits.string_bytes);
    let mut routines = Vec::new();
    let mut embedded = Vec::new();
    for (index, function) in program.functions.iter().enumerate() {
        let symbol = names[index].0.clone();
        match &function.body {
            FunctionBody::EmbeddedC(code) => embedded.push(EmbeddedFunction {
                symbol,
                name: function.name.clone(),
                parameters: function.locals[..function.parameters]
                    .iter()
                    .map(|local| (local.name.clone(), local.ty))
                    .collect(),
                returns: function.returns,
                code: located(code, sources),
                unmangled: code.unmangled,
            }),
            FunctionBody::Script(statements) => {
                let comment = format!("function {} ({})", function.name, sources.place(function.span));
                let offsets =
                    function.site.and_then(|site| saved.get(site as usize)).map_or(&[][..], |saved| &saved.offsets);
                let mut builder = Builder::new(around(program, &mut tables, &names, &naming, offsets, kept));
                let parameters = builder.declare(&function.locals, function.parameters);
                builder.charge(statements, function.span);
                builder.statements(statements);
                routines.push(builder.finish(symbol, comment, parameters, function.returns, Frame::Checked));
            }
        }
    }
    for routine in &mut routines {
        let needs_check = nesting.limited || naming.limits.max_nesting.is_some();
        if !routine.has_frame() && !needs_check {
            routine.frame = Frame::None;
        }
    }
    let function_count = routines.len();
    let mut probes = Vec::new();
    let mut identical = Identical::default();
    let mut similar = Similar::default();
    for (index, probe) in program.probes.iter().enumerate() {
        let saved = &saved[index];
        let name = routine_name(index, probe);
        let comment = format!("probe {} ({})", probe.point, sources.place(probe.span));
        let entry_handler = (!probe.saved.is_empty()).then(|| {
            let mut builder = Builder::new(around(program, &mut tables, &names, &naming, &saved.offsets, kept));
            for (expr, &offset) in probe.saved.iter().zip(&saved.offsets) {
                builder.save(offset, expr);
            }
            let comment = format!("{comment}: values at the function's entry");
            let routine = builder.finish(format!("{name}_entry"), comment, Vec::new(), None, Frame::Handler);
            identical.add(&mut routines, routine)
        });
        let mut builder = Builder::new(around(program, &mut tables, &names, &naming, &saved.offsets, kept));
        builder.declare(&probe.locals, 0);
        let (filters, body) = probe.body.split_at(condition::filters(&probe.body));
        builder.statements(filters);
        if condition::rearms(&watched, &handler_uses[index]) {
            builder.rearm();
        }
        builder.statements(body);
        let routine = builder.finish(name, comment, Vec::new(), None, Frame::Handler);
        let only_counts = code::only_counts(&routine.code);
        // One that only counts is called without what knows its probe.
        let handler = if only_counts {
            identical.add(&mut routines, routine)
        } else {
            similar.add(index, routine);
            String::new()
        };
        let taken_for = |uses: &Uses| {
            let taken = uses.iter().filter_map(|(id, &access)| {
                Some((locks[id.index()]?, globals::mode(&program.globals[id.index()], counters[id.index()], access)))
            });
            let mut taken: Vec<(u32, LockMode)> = taken.collect();
            taken.sort_unstable();
            taken
        };
        let taken = taken_for(&handler_uses[index]);
        let condition = (!filters.is_empty()).then(|| {
            let mut builder = Builder::new(around(program, &mut tables, &names, &naming, &[], kept));
            builder.statements(filters);
            let comment = format!("probe {}: its condition", probe.point);
            let routine = builder.finish(
                format!("{}_condition", routine_name(index, probe)),
                comment,
                Vec::new(),
                None,
                Frame::Handler,
            );
            let uses = Walk::of(filters).with_calls(&function_uses);
            Condition { routine: identical.add(&mut routines, routine), locks: taken_for(&uses) }
        });
        probes.push(Probe {
            point: probe.point.clone(),
            script_point: probe.script_point.clone(),
            function: probe.function.clone(),
            module: probe.module.clone(),
            attachment: probe.attachment.clone(),
            handler,
            constants: Vec::new(),
            entry_handler,
            entry_bytes: saved.bytes,
            counts_only: only_counts && taken.is_empty(),
            cost: 0,
            stack: 0,
            registers: seen_registers(probe, &handler_walks[index], &function_walks),
            locks: taken,
            condition,
        });
    }
    identical.comment(&mut routines);
    for (index, Run { symbol, constants }) in similar.finish(&mut routines) {
        if let Some(probe) = probes.get_mut(index) {
            probe.handler = symbol;
            probe.constants = constants;
        }
    }
    let costs = cost::Costs::of(&routines);
    for probe in &mut probes {
        let entry = probe.entry_handler.as_deref().map_or(0, |name| costs.of_call(name));
        probe.cost = costs.of_call(&probe.handler).saturating_add(entry);
    }
    let frame_bytes = frame::bytes(program, &routines, &names, function_count, max_nesting, naming.limits.string_bytes);
    let roots = probes.iter().flat_map(|probe| {
        let condition = probe.condition.as_ref().map(|condition| &condition.routine);
        [Some(&probe.handler), probe.entry_handler.as_ref(), condition].into_iter().flatten().cloned()
    });
    code::keep_called(&mut routines, roots.collect());
    let interpreted = code::interpreted(&routines);
    let bytecode =
        (0..).map(TableId).zip(std::mem::take(&mut tables.tables)).filter(|(id, _)| interpreted.contains(id)).collect();
    let mut meta = Meta {
        name: naming.module.clone(),
        title: naming.title.clone(),
        version: env!("CARGO_PKG_VERSION").to_string(),
        kernel_release: naming.kernel_release.clone(),
        guru: naming.guru,
        targets: program
            .targets
            .iter()
            .map(|target| meta::Target {
                name: target.name.clone(),
                build_id: target.build_id.clone(),
                path: target.path.clone(),
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
        locations: std::mem::take(&mut tables.locations),
        settings: Vec::new(),
        ungated: ungated(program, sources, &tables.expressions),
    };
    let globals = used_globals(program, &handler_uses, kept, naming.limits.map_entries);
    meta.settings = settable(&globals).map(|global| setting(global, naming.limits.string_bytes)).collect();
    Plan {
        max_nesting,
        frame_bytes,
        scratch_bytes: tables.scratch_bytes,
        lock_count: locks.iter().flatten().count() as u32,
        counter_count: counters.iter().flatten().count() as u32,
        anchor_address: program.anchor_address.unwrap_or(0),
        globals,
        targets: program.targets.clone(),
        module_symbols: std::mem::take(&mut tables.module_symbols),
        imprints: program.imprints.clone(),
        lines: program.lines.clone(),
        defers_names: tables.defers_names,
        routines,
        probes,
        tables: bytecode,
        regexes: program.regexes.clone(),
        match_registers: tagged(program).map(|regex| u32::from(regex.registers)).max().unwrap_or(0),
        match_groups: tagged(program).map(spile_regex::Tagged::groups).max().unwrap_or(0),
        embedded: Embedded {
            declarations: program.embedded.iter().map(|code| located(code, sources)).collect(),
            functions: embedded,
            globals: shared_globals(program, &tables.expressions),
            expressions: std::mem::take(&mut tables.expressions),
        },
        meta,
        naming,
    }
}

/// C of the script's own, not of the library, that does not say that it writes nothing.
fn ungated(program: &Program, sources: &SourceMap, expressions: &[EmbeddedExpression]) -> Vec<String> {
    let writes = |code: &EmbeddedC| {
        let is_own = sources.file(code.span.file).origin == Origin::User;
        is_own && !code.text.contains("/* pure */")
    };
    let functions = program.functions.iter().filter_map(|function| match &function.body {
        FunctionBody::EmbeddedC(code) if writes(code) => Some(function.name.clone()),
        _ => None,
    });
    let others = expressions.iter().filter(|expression| writes(&expression.code));
    functions.chain(others.map(|expression| format!("C at {}", sources.place(expression.code.span)))).collect()
}

fn shared_globals(program: &Program, expressions: &[EmbeddedExpression]) -> Vec<crate::program::GlobalId> {
    let functions = program.functions.iter().filter_map(|function| match &function.body {
        FunctionBody::EmbeddedC(code) => Some(code),
        FunctionBody::Script(_) => None,
    });
    let codes = functions.chain(expressions.iter().map(|expression| &expression.code));
    let mut globals: Vec<_> = codes.flat_map(|code| code.globals.iter().map(|&(global, _)| global)).collect();
    globals.sort_unstable();
    globals.dedup();
    globals
}

/// Patterns that tell where they match.
fn tagged(program: &Program) -> impl Iterator<Item = &spile_regex::Tagged> {
    program.regexes.iter().filter_map(|regex| match &regex.automaton {
        Automaton::Tagged(tagged) => Some(tagged),
        Automaton::Plain(_) => None,
    })
}

fn around<'p, 's>(
    program: &'p Program,
    tables: &'p mut Tables<'s>,
    functions: &'p [(String, bool)],
    naming: &'p Naming,
    saved: &'p [u32],
    kept: Kept<'p>,
) -> Around<'p, 's> {
    Around { program, tables, functions, limits: &naming.limits, saved, kept }
}

/// What each run touches: of handlers, and of what return probes work out at their functions' entries.
fn runs<'p>(program: &'p Program, functions: &[Walk], handlers: &[Walk]) -> Vec<(&'p Attachment, Touches)> {
    let functions = uses::function_touches(functions);
    let of = |(probe, handler): (&'p crate::program::Probe, &Walk)| {
        let entry = Walk::of_values(&probe.saved).touches_with_calls(&functions);
        [(&probe.attachment, handler.touches_with_calls(&functions)), (&probe.attachment, entry)]
    };
    program.probes.iter().zip(handlers).flat_map(of).collect()
}

fn located(code: &EmbeddedC, sources: &SourceMap) -> Located {
    Located {
        text: code.text.clone(),
        file: sources.file(code.span.file).name.clone(),
        line: sources.line_column(code.span).0,
    }
}

/// C names of functions, and whether they are embedded C. Overloads and private ones of one name get a number.
fn function_names(program: &Program) -> Vec<(String, bool)> {
    let mut seen = std::collections::HashMap::new();
    program
        .functions
        .iter()
        .map(|function| {
            let embedded = matches!(function.body, FunctionBody::EmbeddedC(_));
            let count: &mut u32 = seen.entry(&function.name).or_default();
            *count += 1;
            let suffix = if *count > 1 { format!("_{count}") } else { String::new() };
            let prefix = if embedded { "spile_embedded" } else { "function" };
            (format!("{prefix}_{}{suffix}", c_name(&function.name)), embedded)
        })
        .collect()
}

/// `probe_7_vfs_read_return`.
fn routine_name(index: usize, probe: &crate::program::Probe) -> String {
    let mechanism = probe.attachment.mechanism;
    let what = match mechanism.label {
        Label::Word(word) => word.to_string(),
        Label::Subject => c_name(&probe.attachment.subject),
        Label::Function if mechanism.registers == Registers::Return => format!("{}_return", c_name(&probe.function)),
        Label::Function => c_name(&probe.function),
    };
    format!("probe_{index}_{what}")
}

struct Saved {
    offsets: Vec<u32>,
    bytes: u32,
}

/// What is looked at where the probed registers are the attachment's to fetch: at a return they are all there.
fn seen_registers(probe: &crate::program::Probe, handler: &Walk, functions: &[Walk]) -> u64 {
    match probe.attachment.mechanism.registers {
        Registers::Return => Walk::of_values(&probe.saved).registers_with_calls(functions),
        _ => handler.registers_with_calls(functions),
    }
}

/// Where the values saved at entry lie in an instance's data: longs 8 bytes, strings a length and MAXSTRINGLEN bytes.
fn saved_offsets(saved: &[crate::program::Expr], string_bytes: u32) -> Saved {
    let mut bytes: u32 = 0;
    let offsets = saved
        .iter()
        .map(|expr| {
            let offset = bytes;
            // What is as much as this is refused (frame::MOST_SAVED).
            bytes = bytes.saturating_add(match expr.ty {
                Type::Long => 8,
                Type::String => (4 + string_bytes).next_multiple_of(8),
            });
            offset
        })
        .collect();
    Saved { offsets, bytes }
}

fn used_globals(program: &Program, handlers: &[Uses], kept: Kept, map_entries: u32) -> Vec<Global> {
    let mut used: Vec<_> = handlers.iter().flat_map(|uses| uses.keys().copied()).collect();
    used.sort_unstable();
    used.dedup();
    let mut seen = std::collections::HashMap::new();
    let mut maps = 0;
    used.into_iter()
        .map(|id| {
            let global = &program.globals[id.index()];
            let count: &mut u32 = seen.entry(&global.name).or_default();
            *count += 1;
            let suffix = if *count > 1 { format!("_{count}") } else { String::new() };
            let symbol = format!("global_{}{suffix}", c_name(&global.name));
            let storage = match global.scalar() {
                Some(ty) => {
                    let (counter, lone) = (kept.counters[id.index()], kept.lone[id.index()]);
                    Storage::Variable { ty, initial: global.initial.clone(), counter, lone }
                }
                None => {
                    maps += 1;
                    Storage::Map(Map {
                        index: maps - 1,
                        name: global.name.clone(),
                        keys: global.keys.clone(),
                        holds: global.holds,
                        entries: if global.is_array() { global.size.unwrap_or(map_entries) } else { 1 },
                        sized: global.size.is_some(),
                        wrap: global.wrap,
                    })
                }
            };
            Global { id, name: global.name.clone(), symbol, storage }
        })
        .collect()
}

/// Globals that may be set when the module is loaded: plain variables; not the library's private ones, and of several with
/// one name the first.
fn settable(globals: &[Global]) -> impl Iterator<Item = &Global> {
    let is_first = |at: usize, name: &str| !globals.iter().take(at).any(|before| before.name == name);
    globals.iter().enumerate().filter_map(move |(at, global)| {
        let is_plain = matches!(global.storage, Storage::Variable { .. });
        (is_plain && !global.name.starts_with("__") && is_first(at, &global.name)).then_some(global)
    })
}

fn setting(global: &Global, string_bytes: u32) -> meta::Setting {
    let string_bytes = match global.storage {
        Storage::Variable { ty: Type::String, .. } => string_bytes.saturating_sub(1),
        _ => 0,
    };
    meta::Setting { name: global.name.clone(), string_bytes }
}

impl Plan {
    /// Globals in the order of [`Meta::settings`].
    pub fn settings(&self) -> impl Iterator<Item = &Global> {
        settable(&self.globals)
    }
}
