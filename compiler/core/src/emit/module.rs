// SPDX-License-Identifier: GPL-2.0-or-later

//! The script's unit: the context of its template, taken from the plan.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use serde::Serialize;
use spile_abi::escape;

use super::attachment::{self, Field};
use super::sites;
use super::text::{Bytes, Comment, Hex, Literal, Long};
use super::{Form, embedded, regex, routine};
use crate::plan::code::{Item, OwnConstant};
use crate::plan::{self, LockMode, Plan, Storage};
use crate::program::{self, Constant, Contents, Histogram, Place, Registers, Type};
use spile_abi::sites::Tables;

const TEMPLATE: &str = include_str!("templates/script.c.tera");

/// The context of the template. Routines are written by [`routine`], everything else by the template.
#[derive(Serialize)]
struct Unit<'p> {
    title: Comment<'p>,
    release: Comment<'p>,
    string_bytes: u32,
    frame_bytes: u64,
    abi: u32,
    print: u16,
    seal: Literal<'p>,
    seal_bytes: usize,
    /// Prototypes of functions in the embedded unit.
    embedded: Vec<String>,
    globals: Vec<Global<'p>>,
    /// Symbols of the tables that are used.
    maps: Vec<&'p str>,
    settings: Vec<Setting<'p>>,
    tables: Vec<Table<'p>>,
    descriptions: Vec<Description<'p>>,
    items: Vec<Items>,
    regexes: Vec<String>,
    prototypes: Vec<String>,
    routines: Vec<String>,
    /// Of all probes, or one for each shape.
    probes: Vec<Probe<'p>>,
    probe_count: usize,
    /// The tables of probes, of fingerprints and for the loader are written into the object.
    short: bool,
    /// What handlers need of the stack, where it is more than MINSTACKSPACE.
    stacks: Vec<Stack>,
    /// Kinds of the probes.
    kinds: BTreeSet<&'static str>,
    /// Parts of the runtime that not every module has.
    parts: Vec<&'static str>,
    targets: Vec<Target<'p>>,
    programs: Vec<UserProgram<'p>>,
    unwinders: Vec<Unwinder>,
    module_symbols: Vec<ModuleSymbol<'p>>,
    /// Empty if they are written into the object.
    fingerprints: Vec<Fingerprint<'p>>,
    fingerprint_count: usize,
    lines: Vec<Lines<'p>>,
    /// Empty if it is written into the object.
    meta: Bytes<'p>,
    meta_length: usize,
    script: Script<'p>,
    modinfo: Vec<Literal<'p>>,
}

#[derive(Serialize)]
struct Global<'p> {
    symbol: &'p str,
    /// It is visible to the embedded unit too.
    shared: bool,
    storage: GlobalStorage<'p>,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum GlobalStorage<'p> {
    Long { initial: Long },
    String { initial: Literal<'p>, length: usize },
    Map(Map<'p>),
}

#[derive(Serialize)]
struct Map<'p> {
    name: Literal<'p>,
    index: u32,
    keys: usize,
    /// Bit N: key N is a string.
    string_keys: Hex,
    value: &'static str,
    entries: u32,
    sized: u8,
    wrap: u8,
    counted: u8,
    striped: u8,
    lock: u32,
    /// Fed in place, so it has a name of its own.
    fed_in_place: bool,
    stats: Option<Stats>,
}

#[derive(Serialize)]
struct Stats {
    variance: u8,
    shift: u8,
    histogram: Option<&'static str>,
    linear: Option<Linear>,
}

#[derive(Serialize)]
struct Linear {
    low: Long,
    high: Long,
    width: Long,
}

#[derive(Serialize)]
struct Setting<'p> {
    symbol: &'p str,
    is_string: u8,
    in_commands: u8,
}

#[derive(Serialize)]
struct Table<'p> {
    id: u32,
    bytes: Bytes<'p>,
    length: usize,
}

#[derive(Serialize)]
struct Description<'p> {
    bytes: Bytes<'p>,
    length: usize,
}

/// Parts of records.
#[derive(Serialize)]
struct Items {
    id: u32,
    /// Initializers.
    items: Vec<String>,
}

#[derive(Serialize)]
struct Probe<'p> {
    index: usize,
    kind: &'static str,
    point: Literal<'p>,
    script_point: Literal<'p>,
    function: Literal<'p>,
    module: Literal<'p>,
    handler: &'p str,
    /// Fields that this kind of attachment needs.
    fields: Vec<Field>,
    entry_handler: Option<&'p str>,
    paging: Option<&'static str>,
    ahead: Option<&'p str>,
    entry_paging: Option<&'static str>,
    entry_ahead: Option<&'p str>,
    entry_bytes: u32,
    place: Option<ProbePlace<'p>>,
    cost: u32,
    counts_only: bool,
    adds: Option<Adds>,
    simple: bool,
    entry_simple: bool,
    registers: Option<Hex>,
    locks: Vec<Lock>,
    entry_locks: Vec<Lock>,
    condition: Option<Condition<'p>>,
    constants: Vec<ProbeConstant<'p>>,
}

#[derive(Serialize)]
struct Stack {
    index: usize,
    bytes: u32,
}

#[derive(Serialize)]
struct Adds {
    /// The counter's number + 1.
    to: u32,
    addend: String,
}

#[derive(Serialize)]
struct ProbePlace<'p> {
    target: u32,
    symbol: Option<Literal<'p>>,
    address: Hex,
}

#[derive(Serialize)]
struct Condition<'p> {
    routine: &'p str,
    locks: Vec<Lock>,
}

#[derive(Serialize)]
struct Lock {
    index: u32,
    mode: &'static str,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum ProbeConstant<'p> {
    Number { value: String },
    Text { bytes: Literal<'p>, length: usize },
    Table { id: u32 },
    Items { id: u32 },
}

#[derive(Serialize)]
struct Target<'p> {
    name: Literal<'p>,
    build_id: Vec<String>,
    build_id_address: Option<Hex>,
}

#[derive(Serialize)]
struct UserProgram<'p> {
    path: Literal<'p>,
    build_id: Vec<String>,
    code_bytes: u64,
    /// With `code_bytes`.
    code_sum: Option<Hex>,
    unwinds_only: bool,
}

#[derive(Serialize)]
struct Unwinder {
    program: u32,
    offset: Hex,
    catches: bool,
}

#[derive(Serialize)]
struct ModuleSymbol<'p> {
    /// -1: it is never found.
    target: i64,
    name: Literal<'p>,
}

#[derive(Serialize)]
struct Fingerprint<'p> {
    bytes: Bytes<'p>,
    length: usize,
    patched: Vec<Patched>,
    function: Literal<'p>,
    place: ProbePlace<'p>,
}

/// Bytes that may differ in memory.
#[derive(Serialize)]
struct Patched {
    first: u32,
    length: u32,
}

#[derive(Serialize)]
struct Lines<'p> {
    target: Literal<'p>,
    bytes: Literal<'p>,
}

#[derive(Serialize)]
struct Script<'p> {
    name: Literal<'p>,
    title: Literal<'p>,
    kernel_release: Literal<'p>,
    defers_names: u8,
    follows: bool,
    begins: bool,
    own_processes: bool,
    user_stacks: u8,
    lock_count: u32,
    counter_count: u32,
    match_registers: u32,
    match_groups: u32,
    scratch_bytes: u32,
    record_bytes: u32,
    begin_prints: u32,
    end_prints: u32,
    armed_prints: u8,
    slot_bytes: Option<u32>,
    kept_bytes: u32,
    stack_frames: u32,
    stack_wait: u32,
    max_actions: u32,
    max_nesting: u32,
    max_errors: u32,
    max_skipped: u32,
    suppress_errors: u8,
    overload_interval: String,
    overload_threshold: String,
    lock_wait: u32,
    least_stack: u32,
    active_returns: u32,
    anchor_address: Hex,
}

/// The template, parsed once: that takes longer than to write a small script.
fn template() -> Result<&'static tera::Tera, tera::Error> {
    static PARSED: OnceLock<tera::Tera> = OnceLock::new();
    if let Some(parsed) = PARSED.get() {
        return Ok(parsed);
    }
    let mut tera = tera::Tera::default();
    tera.add_raw_template("script.c", TEMPLATE)?;
    Ok(PARSED.get_or_init(|| tera))
}

/// C text of the script's unit: tables, handlers and functions; and the tables that it lacks. An error is a mistake in the
/// template.
pub(super) fn emit(plan: &Plan, form: Form) -> Result<(String, Option<Tables>), tera::Error> {
    let shapes = if form == Form::Short { sites::shapes(plan) } else { None };
    let meta = plan.meta.encode();
    let firsts = shapes.as_ref().map(|(_, firsts)| firsts.as_slice());
    let text = template()?.render("script.c", &tera::Context::from_serialize(&unit(plan, firsts, &meta))?)?;
    Ok((text, shapes.map(|(numbers, _)| sites::tables(plan, &numbers, meta))))
}

fn literal(text: &str) -> Literal<'_> {
    Literal::from(text.as_bytes())
}

/// `firsts`: the probes whose elements are the shapes; None: all probes are in the text.
fn unit<'p>(plan: &'p Plan, firsts: Option<&[usize]>, meta: &'p [u8]) -> Unit<'p> {
    let info = &plan.info;
    let maps = plan.globals.iter().filter(|global| matches!(global.storage, Storage::Map(_)));
    let indexed = |index: usize| plan.probes.get(index).map(|item| probe(index, item));
    let stacks = plan.probes.iter().enumerate().filter(|(_, probe)| probe.stack > 0);
    Unit {
        title: Comment(&info.title),
        release: Comment(&info.kernel_release),
        string_bytes: info.limits.string_bytes,
        frame_bytes: plan.frame_bytes,
        abi: spile_abi::device::ABI_VERSION,
        print: spile_abi::record::Kind::Print as u16,
        seal: Literal::from(&spile_abi::seal::MAGIC[..]),
        seal_bytes: spile_abi::seal::BYTES,
        embedded: embedded::prototypes(plan),
        globals: plan.globals.iter().map(|item| global(item, plan.embedded.globals.contains(&item.id))).collect(),
        maps: maps.map(|global| global.symbol.as_str()).collect(),
        settings: plan.settings().map(setting).collect(),
        tables: plan
            .tables
            .iter()
            .map(|(id, bytes)| Table { id: id.0, bytes: Bytes::from(&bytes[..]), length: bytes.len() })
            .collect(),
        descriptions: plan
            .descriptions
            .iter()
            .map(|bytes| Description { bytes: Bytes::from(&bytes[..]), length: bytes.len() })
            .collect(),
        items: plan
            .items
            .iter()
            .map(|(id, items)| Items { id: id.0, items: items.iter().map(item).collect() })
            .collect(),
        regexes: plan.regexes.iter().enumerate().map(|(index, item)| regex::emit(index, item)).collect(),
        prototypes: plan.routines.iter().map(routine::prototype).collect(),
        routines: plan.routines.iter().map(|item| routine::emit(plan, item)).collect(),
        probes: match firsts {
            Some(firsts) => firsts.iter().copied().filter_map(indexed).map(without_constants).collect(),
            None => (0..plan.probes.len()).filter_map(indexed).collect(),
        },
        probe_count: plan.probes.len(),
        short: firsts.is_some(),
        stacks: stacks.map(|(index, probe)| Stack { index, bytes: probe.stack }).collect(),
        kinds: plan.probes.iter().map(|probe| probe.attachment.mechanism.kind).collect(),
        parts: plan.parts(),
        targets: plan.targets.iter().map(target).collect(),
        programs: plan.programs.iter().map(user_program).collect(),
        unwinders: plan.unwinders.iter().map(unwinder).collect(),
        module_symbols: plan.module_symbols.iter().map(module_symbol).collect(),
        fingerprints: match firsts {
            Some(_) => Vec::new(),
            None => plan.fingerprints.iter().map(fingerprint).collect(),
        },
        fingerprint_count: plan.fingerprints.len(),
        lines: plan
            .lines
            .iter()
            .map(|(target, table)| Lines { target: literal(target), bytes: Literal::from(&table[..]) })
            .collect(),
        meta_length: meta.len(),
        meta: Bytes::from(if firsts.is_some() { &[][..] } else { meta }),
        script: script(plan),
        modinfo: modinfo(plan),
    }
}

fn global(global: &plan::Global, shared: bool) -> Global<'_> {
    let storage = match &global.storage {
        Storage::Variable { ty: Type::Long, initial } => {
            let initial = if let Some(Constant::Long(value)) = initial { Long::Suffixed(*value) } else { Long::Zero };
            GlobalStorage::Long { initial }
        }
        Storage::Variable { ty: Type::String, initial } => {
            let bytes = if let Some(Constant::String(bytes)) = initial { &bytes[..] } else { &[] };
            GlobalStorage::String { initial: Literal::from(bytes), length: bytes.len() }
        }
        Storage::Map(item) => GlobalStorage::Map(map(item)),
    };
    Global { symbol: &global.symbol, shared, storage }
}

fn setting(global: &plan::Global) -> Setting<'_> {
    let is_string = matches!(global.storage, Storage::Variable { ty: Type::String, .. });
    Setting { symbol: &global.symbol, is_string: is_string.into(), in_commands: global.in_commands.into() }
}

fn map(map: &plan::Map) -> Map<'_> {
    let strings = map.keys.iter().enumerate().filter(|(_, ty)| **ty == Type::String);
    Map {
        name: literal(&map.name),
        index: map.index,
        keys: map.keys.len(),
        string_keys: Hex(strings.fold(0, |bits, (key, _)| bits | 1u64 << key)),
        value: match map.contents {
            Contents::Value(Type::Long) => "LONG",
            Contents::Value(Type::String) => "STRING",
            Contents::Stats(_) => "STATS",
        },
        entries: map.entries,
        sized: map.sized.into(),
        wrap: map.wrap.into(),
        counted: map.counted.into(),
        striped: map.striped.is_some().into(),
        lock: map.striped.unwrap_or_default(),
        fed_in_place: map.is_fed_in_place(),
        stats: match map.contents {
            Contents::Value(_) => None,
            Contents::Stats(stats) => Some(Stats {
                variance: stats.variance.into(),
                shift: stats.shift,
                histogram: stats.histogram.map(|histogram| match histogram {
                    Histogram::Log => "LOG",
                    Histogram::Linear { .. } => "LINEAR",
                }),
                linear: match stats.histogram {
                    Some(Histogram::Linear { low, high, width }) => Some(Linear {
                        low: Long::Suffixed(low),
                        high: Long::Suffixed(high),
                        width: Long::Suffixed(width),
                    }),
                    _ => None,
                },
            }),
        },
    }
}

fn paging(paging: &plan::Paging) -> Option<&'static str> {
    match paging {
        plan::Paging::None => None,
        plan::Paging::Ahead(_) => Some("SPILE_PAGING_AHEAD"),
        plan::Paging::Restart => Some("SPILE_PAGING_RESTART"),
    }
}

fn probe(index: usize, probe: &plan::Probe) -> Probe<'_> {
    let mechanism = probe.attachment.mechanism;
    let fetches_registers = mechanism.registers != Registers::None;
    Probe {
        index,
        kind: mechanism.kind,
        point: literal(&probe.point),
        script_point: literal(&probe.script_point),
        function: literal(&probe.function),
        module: literal(&probe.module),
        handler: &probe.handler,
        fields: attachment::fields(&probe.attachment),
        entry_handler: probe.entry_handler.as_deref(),
        paging: paging(&probe.paging),
        ahead: probe.paging.ahead(),
        entry_paging: paging(&probe.entry_paging),
        entry_ahead: probe.entry_paging.ahead(),
        entry_bytes: probe.entry_bytes,
        place: probe.attachment.place.as_ref().map(place),
        cost: probe.cost,
        counts_only: probe.counts_only,
        adds: probe.adds.map(|(counter, value)| Adds { to: counter + 1, addend: routine::number(value) }),
        simple: probe.simple,
        entry_simple: probe.entry_simple,
        registers: fetches_registers.then_some(Hex(probe.registers)),
        locks: probe.locks.iter().map(lock).collect(),
        entry_locks: probe.entry_locks.iter().map(lock).collect(),
        condition: probe.condition.as_ref().map(|condition| Condition {
            routine: &condition.routine,
            locks: condition.locks.iter().map(lock).collect(),
        }),
        constants: probe.constants.iter().map(constant).collect(),
    }
}

/// A shape: constants of single probes are in the table that the C text lacks.
fn without_constants(mut probe: Probe) -> Probe {
    let in_table =
        |constant: &ProbeConstant| matches!(constant, ProbeConstant::Number { .. } | ProbeConstant::Text { .. });
    if probe.constants.iter().all(in_table) {
        probe.constants.clear();
    }
    probe
}

/// The initializer of one part (`struct spile_item`).
fn item(item: &Item) -> String {
    let description = match item.description {
        Some(table) => format!("table_{0}, sizeof(table_{0})", table.0),
        None => "SPILE_NONE, 0".into(),
    };
    let register = item.register.map_or(0, |offset| offset / 8 + 1);
    let first = if item.first > 0 { format!(", .first = {}", item.first) } else { String::new() };
    let signed = if item.signed { ", .is_signed = 1" } else { "" };
    let add = if item.add == 0 { String::new() } else { format!(", .add = {}", routine::number(item.add)) };
    format!("{{ {description}, .registers = {register}{first}, .bits = {}{signed}{add} }}", item.bits)
}

fn place(place: &Place) -> ProbePlace<'_> {
    ProbePlace { target: place.target.0, symbol: place.symbol.as_deref().map(literal), address: Hex(place.address) }
}

fn lock(&(index, mode): &(u32, LockMode)) -> Lock {
    let mode = match mode {
        LockMode::Read => "READ",
        LockMode::Write => "WRITE",
        LockMode::Local => "LOCAL",
        LockMode::All => "ALL",
    };
    Lock { index, mode }
}

/// What a shared routine gets from each probe that runs it.
fn constant(constant: &OwnConstant) -> ProbeConstant<'_> {
    match constant {
        OwnConstant::Long(value) => ProbeConstant::Number { value: routine::number(*value) },
        OwnConstant::Table(table) => ProbeConstant::Table { id: table.0 },
        OwnConstant::Items(items) => ProbeConstant::Items { id: items.0 },
        OwnConstant::Text(bytes) => ProbeConstant::Text { bytes: Literal::from(&bytes[..]), length: bytes.len() },
    }
}

fn target(target: &program::Target) -> Target<'_> {
    // The array in abi.h has room for a SHA-1, which is what linkers write; of a longer id only the beginning is compared.
    let id = target.build_id.iter().take(20);
    Target {
        name: literal(&target.name),
        build_id: id.map(|byte| format!("{byte:#04x}")).collect(),
        build_id_address: target.build_id_address.map(Hex),
    }
}

fn user_program(program: &program::UserProgram) -> UserProgram<'_> {
    let id = program.build_id.iter().take(20);
    UserProgram {
        path: literal(&program.path),
        build_id: id.map(|byte| format!("{byte:#04x}")).collect(),
        code_bytes: program.code.map_or(0, |code| code.bytes),
        code_sum: program.code.map(|code| Hex(code.sum)),
        unwinds_only: program.unwinds_only,
    }
}

fn unwinder(place: &program::UnwinderPlace) -> Unwinder {
    Unwinder { program: place.program.0, offset: Hex(place.offset), catches: place.catches }
}

fn module_symbol(symbol: &plan::ModuleSymbol) -> ModuleSymbol<'_> {
    ModuleSymbol { target: symbol.target.map_or(-1, |target| target.0.into()), name: literal(&symbol.name) }
}

fn fingerprint(fingerprint: &program::Fingerprint) -> Fingerprint<'_> {
    Fingerprint {
        bytes: Bytes::from(&fingerprint.bytes[..]),
        length: fingerprint.bytes.len(),
        patched: fingerprint.patched.iter().map(|&(first, length)| Patched { first, length }).collect(),
        function: literal(&fingerprint.function),
        place: place(&fingerprint.place),
    }
}

fn script(plan: &Plan) -> Script<'_> {
    let info = &plan.info;
    let limits = &info.limits;
    Script {
        name: literal(&info.module),
        title: literal(&info.title),
        kernel_release: literal(&info.kernel_release),
        defers_names: plan.defers_names.into(),
        follows: plan.follows,
        begins: plan.begins,
        own_processes: info.privilege.is_limited_to_own_processes(),
        user_stacks: plan.user_stacks.into(),
        lock_count: plan.lock_count,
        counter_count: plan.counter_count,
        match_registers: plan.match_registers,
        match_groups: plan.match_groups,
        scratch_bytes: plan.scratch_bytes,
        record_bytes: plan.record_bytes,
        begin_prints: plan.writes.begin,
        end_prints: plan.writes.end,
        armed_prints: plan.writes.armed.into(),
        slot_bytes: limits.slot_bytes,
        kept_bytes: limits.kept_bytes.unwrap_or(0),
        stack_frames: limits.stack_frames,
        stack_wait: limits.stack_wait,
        max_actions: limits.max_actions,
        max_nesting: plan.max_nesting,
        max_errors: limits.max_errors,
        max_skipped: limits.max_skipped,
        suppress_errors: limits.suppress_errors.into(),
        overload_interval: format!("{}ULL", limits.overload_interval),
        overload_threshold: match limits.no_overload {
            true => "~0ULL".into(),
            false => format!("{}ULL", limits.overload_threshold),
        },
        lock_wait: limits.lock_wait,
        least_stack: limits.least_stack,
        active_returns: limits.active_returns,
        anchor_address: Hex(plan.anchor_address),
    }
}

/// Entries of the module's own information (`modinfo NAME.ko`).
fn modinfo(plan: &Plan) -> Vec<Literal<'static>> {
    let info = &plan.info;
    // A file's name may contain what forges a line of modinfo's output.
    let title = escape::line(&info.title);
    let entries = [
        format!("description=spile script {title}"),
        format!("spile={}", env!("CARGO_PKG_VERSION")),
        format!("spile_script={title}"),
        format!("spile_kernel={}", info.kernel_release),
        format!("spile_guru={}", if info.guru { "yes: may write memory or hold embedded C" } else { "no" }),
        format!("spile_privilege={}", info.privilege.name()),
    ];
    let targets = plan.targets.iter().map(|target| {
        let id = hex::encode(&target.build_id);
        let name = if target.name.is_empty() { "kernel" } else { &target.name };
        format!("spile_target={name} {id}")
    });
    let further = info.modinfo.iter().map(|(name, value)| format!("{name}={}", escape::line(value)));
    entries.into_iter().chain(targets).chain(further).map(|entry| Literal::from(entry.into_bytes())).collect()
}
