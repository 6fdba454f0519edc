// SPDX-License-Identifier: GPL-2.0-or-later

//! The script's unit: tables and routines put into the module's skeleton.

use serde::Serialize;

use super::{embedded, regex, routine, text};
use crate::plan::{LockMode, Map, ModuleSymbol, Plan, Probe, Storage};
use crate::program::{Constant, Histogram, Holds, Imprint, Registers, Type, Value};

const TEMPLATE: &str = include_str!("templates/script.c.tera");

#[derive(Serialize)]
struct Table {
    name: String,
    bytes: String,
}

#[derive(Serialize)]
struct LineTable {
    target: String,
    bytes: String,
}

#[derive(Serialize)]
struct Global {
    name: String,
    kind: &'static str,
    initial: String,
    length: usize,
    fields: Vec<String>,
    /// The embedded unit sees it too.
    shared: bool,
}

/// A list that a probe refers to: its locks, its constants.
#[derive(Serialize)]
struct OfProbe {
    name: String,
    list: String,
}

/// The code of a function: bytes, places that may differ, and the entry that names both.
#[derive(Serialize)]
struct Code {
    bytes: String,
    patched: String,
    fields: Vec<String>,
}

#[derive(Serialize)]
struct Entry {
    fields: Vec<String>,
}

pub(super) fn emit(plan: &Plan) -> Result<String, tera::Error> {
    let mut context = tera::Context::new();
    let naming = &plan.naming;
    context.insert("title", &text::comment(&naming.title));
    context.insert("release", &text::comment(&naming.kernel_release));
    context.insert("string_bytes", &naming.limits.string_bytes);
    context.insert("frame_bytes", &plan.frame_bytes);
    context.insert("abi", &spile_abi::device::ABI_VERSION);
    context.insert("seal", &String::from_utf8_lossy(spile_abi::seal::MAGIC));
    context.insert("seal_bytes", &spile_abi::seal::BYTES);
    context.insert("print", &(spile_abi::record::Kind::Print as u16));
    context.insert("embedded", &embedded::prototypes(plan));
    let shared = |id| plan.embedded.globals.contains(&id);
    context.insert("globals", &plan.globals.iter().map(|item| global(item, shared(item.id))).collect::<Vec<_>>());
    let maps = plan.globals.iter().filter(|global| matches!(global.storage, Storage::Map(_)));
    context.insert("maps", &maps.map(|global| global.symbol.clone()).collect::<Vec<_>>());
    context.insert("settings", &plan.settings().map(setting).collect::<Vec<_>>());
    context.insert(
        "tables",
        &plan
            .tables
            .iter()
            .map(|(id, bytes)| Table { name: format!("table_{}", id.0), bytes: text::bytes(bytes) })
            .collect::<Vec<_>>(),
    );
    let regexes = plan.regexes.iter().enumerate();
    context.insert("regexes", &regexes.map(|(index, item)| regex::emit(index, item)).collect::<Vec<_>>());
    context.insert("prototypes", &plan.routines.iter().map(routine::prototype).collect::<Vec<_>>());
    context.insert("routines", &plan.routines.iter().map(|item| routine::emit(plan, item)).collect::<Vec<_>>());
    let of_handlers =
        plan.probes.iter().enumerate().map(|(index, probe)| (format!("locks_{index}"), probe.locks.as_slice()));
    let conditions =
        plan.probes.iter().enumerate().filter_map(|(index, probe)| Some((index, probe.condition.as_ref()?)));
    let of_conditions =
        conditions.map(|(index, condition)| (format!("condition_locks_{index}"), condition.locks.as_slice()));
    let locks = of_handlers.chain(of_conditions).filter(|(_, locks)| !locks.is_empty());
    context.insert("locks", &locks.map(|(name, locks)| OfProbe { name, list: lock_list(locks) }).collect::<Vec<_>>());
    let constants = plan.probes.iter().enumerate().filter(|(_, probe)| !probe.constants.is_empty());
    let constants = constants
        .map(|(index, probe)| OfProbe { name: format!("constants_{index}"), list: constant_list(&probe.constants) });
    context.insert("constants", &constants.collect::<Vec<_>>());
    context.insert(
        "probes",
        &plan.probes.iter().enumerate().map(|(index, probe)| probe_entry(index, probe)).collect::<Vec<_>>(),
    );
    context.insert("targets", &plan.targets.iter().map(target_entry).collect::<Vec<_>>());
    context.insert("module_symbols", &plan.module_symbols.iter().map(module_symbol).collect::<Vec<_>>());
    context.insert("imprints", &plan.imprints.iter().map(imprint).collect::<Vec<_>>());
    context.insert("lines", &plan.lines.iter().map(lines).collect::<Vec<_>>());
    context.insert("script", &script_entry(plan));
    context.insert("meta", &text::bytes(&plan.meta.encode()));
    context.insert("modinfo", &modinfo(plan));
    let mut tera = tera::Tera::default();
    tera.add_raw_template("script.c", TEMPLATE)?;
    tera.render("script.c", &context)
}

fn lines((target, table): &(String, Vec<u8>)) -> LineTable {
    LineTable { target: text::literal(target.as_bytes()), bytes: text::literal(table) }
}

fn global(global: &crate::plan::Global, shared: bool) -> Global {
    let name = global.symbol.clone();
    let (ty, initial) = match &global.storage {
        Storage::Variable { ty, initial, .. } => (*ty, initial),
        Storage::Map(map) => {
            return Global { name, kind: "map", initial: String::new(), length: 0, fields: map_fields(map), shared };
        }
    };
    let (initial, length) = match (initial, ty) {
        (Some(Constant::String(bytes)), Type::String) => (text::literal(bytes), bytes.len()),
        (_, Type::String) => ("\"\"".into(), 0),
        (Some(Constant::Long(i64::MIN)), Type::Long) => ("-9223372036854775807LL - 1".into(), 0),
        (Some(Constant::Long(value)), Type::Long) => (format!("{value}LL"), 0),
        (_, Type::Long) => ("0".into(), 0),
    };
    let kind = if ty == Type::String { "string" } else { "long" };
    Global { name, kind, initial, length, fields: Vec::new(), shared }
}

fn setting(global: &crate::plan::Global) -> String {
    let is_string = matches!(global.storage, Storage::Variable { ty: Type::String, .. });
    format!("{{ &{}, {} }}", global.symbol, u8::from(is_string))
}

fn map_fields(map: &Map) -> Vec<String> {
    let strings =
        map.keys.iter().enumerate().filter(|(_, ty)| **ty == Type::String).fold(0, |bits, (key, _)| bits | 1u32 << key);
    let value = match map.holds {
        Holds::Value(Type::Long) => "LONG",
        Holds::Value(Type::String) => "STRING",
        Holds::Stats(_) => "STATS",
    };
    let mut fields = vec![
        format!(".name = {}", string(&map.name)),
        format!(".index = {}", map.index),
        format!(".keys = {}", map.keys.len()),
        format!(".string_keys = {strings:#x}"),
        format!(".value = SPILE_VALUE_{value}"),
        format!(".entries = {}", map.entries),
        format!(".sized = {}", u8::from(map.sized)),
        format!(".wrap = {}", u8::from(map.wrap)),
    ];
    if let Holds::Stats(stats) = map.holds {
        fields.push(format!(".stats.variance = {}", u8::from(stats.variance)));
        fields.push(format!(".stats.shift = {}", stats.shift));
        match stats.histogram {
            None => {}
            Some(Histogram::Log) => fields.push(".stats.histogram = SPILE_HISTOGRAM_LOG".into()),
            Some(Histogram::Linear { low, high, width }) => {
                fields.push(".stats.histogram = SPILE_HISTOGRAM_LINEAR".into());
                for (name, value) in [("low", low), ("high", high), ("width", width)] {
                    fields.push(format!(".stats.{name} = {}", long(value)));
                }
            }
        }
    }
    fields
}

fn lock_list(locks: &[(u32, LockMode)]) -> String {
    let locks = locks.iter().map(|&(lock, mode)| {
        let mode = match mode {
            LockMode::Read => "READ",
            LockMode::Write => "WRITE",
            LockMode::Local => "LOCAL",
            LockMode::All => "ALL",
        };
        format!("{lock} << 2 | SPILE_LOCK_{mode}")
    });
    let locks: Vec<String> = locks.collect();
    locks.join(", ")
}

fn string(value: &str) -> String {
    text::literal(value.as_bytes())
}

fn probe_entry(index: usize, probe: &Probe) -> Entry {
    let mut fields = vec![
        format!(".point = {}", string(&probe.point)),
        format!(".script_point = {}", string(&probe.script_point)),
        format!(".function = {}", string(&probe.function)),
        format!(".module = {}", string(&probe.module)),
        format!(".handler = {}", probe.handler),
    ];
    let attachment = &probe.attachment;
    let members = attachment.members.iter().map(|(member, value)| format!(".{member} = {}", member_value(value)));
    fields.extend(members);
    fields.insert(0, format!(".kind = {}", attachment.mechanism.kind));
    if let Some(entry) = &probe.entry_handler {
        fields.push(format!(".entry_handler = {entry}"));
        fields.push(format!(".entry_bytes = {}", probe.entry_bytes));
    }
    match &attachment.place {
        Some(place) => {
            fields.push(format!(".target = {}", place.target.0));
            if let Some(symbol) = &place.symbol {
                fields.push(format!(".symbol = {}", string(symbol)));
            }
            fields.push(format!(".address = {:#x}UL", place.address));
        }
        None => fields.push(".target = -1".into()),
    }
    fields.push(format!(".cost = {}", probe.cost));
    if probe.stack > 0 {
        fields.push(format!(".stack = {}", probe.stack));
    }
    if probe.counts_only {
        fields.push(".counts_only = 1".into());
    }
    if attachment.mechanism.registers != Registers::None {
        fields.push(format!(".registers = {:#x}ULL", probe.registers));
    }
    if !probe.locks.is_empty() {
        fields.push(format!(".locks = locks_{index}"));
        fields.push(format!(".lock_count = {}", probe.locks.len()));
    }
    if let Some(condition) = &probe.condition {
        fields.push(format!(".condition = {}", condition.routine));
        if !condition.locks.is_empty() {
            fields.push(format!(".condition_locks = condition_locks_{index}"));
            fields.push(format!(".condition_lock_count = {}", condition.locks.len()));
        }
    }
    if !probe.constants.is_empty() {
        fields.push(format!(".constants = constants_{index}"));
    }
    Entry { fields }
}

/// The initial value of a member of `struct spile_probe`.
fn member_value(value: &Value) -> String {
    match value {
        Value::Signed(value) => long(*value),
        Value::Unsigned(value) => format!("{value}ULL"),
        Value::Number(value) => value.to_string(),
        Value::Octal(value) => format!("0{value:o}"),
        Value::Address(value) => format!("{value:#x}UL"),
        Value::Text(text) => string(text),
        Value::Constant(name) => name.to_string(),
        Value::List(values) => {
            format!("{{ {} }}", values.iter().map(member_value).collect::<Vec<_>>().join(", "))
        }
    }
}

/// What a routine that several probes run finds with each.
fn constant_list(constants: &[Constant]) -> String {
    let spelled = constants.iter().map(|constant| match constant {
        Constant::Long(value) => format!("{{ .number = {} }}", routine::number(*value)),
        Constant::String(bytes) => format!("{{ .text = {{ {}, {} }} }}", text::literal(bytes), bytes.len()),
    });
    spelled.collect::<Vec<_>>().join(", ")
}

fn long(value: i64) -> String {
    if value == i64::MIN { "-9223372036854775807LL - 1".into() } else { format!("{value}LL") }
}

fn target_entry(target: &crate::program::Target) -> Entry {
    let mut fields = vec![format!(".name = {}", string(&target.name))];
    // abi.h's array has room for an SHA-1, which is what linkers make; a longer id is compared by its start.
    let id = &target.build_id[..target.build_id.len().min(20)];
    if !id.is_empty() {
        let bytes: Vec<String> = id.iter().map(|byte| format!("{byte:#04x}")).collect();
        fields.push(format!(".build_id = {{ {} }}", bytes.join(", ")));
        fields.push(format!(".build_id_bytes = {}", id.len()));
    }
    if let Some(address) = target.build_id_address {
        fields.push(format!(".build_id_address = {address:#x}UL"));
    }
    Entry { fields }
}

fn imprint(imprint: &Imprint) -> Code {
    let mut fields =
        vec![format!(".function = {}", string(&imprint.function)), format!(".target = {}", imprint.place.target.0)];
    if let Some(symbol) = &imprint.place.symbol {
        fields.push(format!(".symbol = {}", string(symbol)));
    }
    fields.push(format!(".address = {:#x}UL", imprint.place.address));
    fields.push(format!(".length = {}", imprint.bytes.len()));
    fields.push(format!(".patched_count = {}", imprint.patched.len()));
    let patched: Vec<String> =
        imprint.patched.iter().map(|(first, length)| format!("{{ {first}, {length} }}")).collect();
    Code { bytes: text::bytes(&imprint.bytes), patched: patched.join(", "), fields }
}

fn module_symbol(symbol: &ModuleSymbol) -> String {
    let target = symbol.target.map_or("-1".to_string(), |target| target.0.to_string());
    format!("{{ .target = {target}, .name = {} }}", string(&symbol.name))
}

fn script_entry(plan: &Plan) -> Entry {
    let naming = &plan.naming;
    let limits = &naming.limits;
    let maps = plan.globals.iter().filter(|global| matches!(global.storage, Storage::Map(_))).count();
    let fields = vec![
        ".abi = SPILE_SCRIPT_ABI".to_string(),
        format!(".name = {}", string(&naming.module)),
        format!(".title = {}", string(&naming.title)),
        format!(".kernel_release = {}", string(&naming.kernel_release)),
        ".probes = probes".to_string(),
        format!(".probe_count = {}", plan.probes.len()),
        ".targets = targets".to_string(),
        format!(".target_count = {}", plan.targets.len()),
        format!(".module_symbols = {}", if plan.module_symbols.is_empty() { "SPILE_NONE" } else { "module_symbols" }),
        format!(".module_symbol_count = {}", plan.module_symbols.len()),
        format!(".imprints = {}", if plan.imprints.is_empty() { "SPILE_NONE" } else { "imprints" }),
        format!(".imprint_count = {}", plan.imprints.len()),
        format!(".lines = {}", if plan.lines.is_empty() { "SPILE_NONE" } else { "lines" }),
        format!(".line_table_count = {}", plan.lines.len()),
        format!(".defers_names = {}", u8::from(plan.defers_names)),
        format!(".lock_count = {}", plan.lock_count),
        format!(".counter_count = {}", plan.counter_count),
        format!(".maps = {}", if maps == 0 { "SPILE_NONE" } else { "maps" }),
        format!(".map_count = {maps}"),
        format!(".settings = {}", if plan.meta.settings.is_empty() { "SPILE_NONE" } else { "settings" }),
        format!(".setting_count = {}", plan.meta.settings.len()),
        ".meta = meta".to_string(),
        ".meta_bytes = sizeof(meta)".to_string(),
        ".frame_bytes = SPILE_FRAME_BYTES".to_string(),
        format!(".match_registers = {}", plan.match_registers),
        format!(".match_groups = {}", plan.match_groups),
        format!(".scratch_bytes = {}", plan.scratch_bytes),
        ".string_bytes = SPILE_STRING_BYTES".to_string(),
        format!(".max_actions = {}", limits.max_actions),
        format!(".max_nesting = {}", plan.max_nesting),
        format!(".max_errors = {}", limits.max_errors),
        format!(".max_skipped = {}", limits.max_skipped),
        format!(".suppress_errors = {}", u8::from(limits.suppress_errors)),
        format!(".overload_interval = {}ULL", limits.overload_interval),
        format!(
            ".overload_threshold = {}",
            if limits.no_overload { "~0ULL".into() } else { format!("{}ULL", limits.overload_threshold) }
        ),
        format!(".lock_wait = {}", limits.lock_wait),
        format!(".least_stack = {}", limits.least_stack),
        format!(".active_returns = {}", limits.active_returns),
        format!(".anchor_address = {:#x}UL", plan.anchor_address),
    ];
    Entry { fields }
}

/// Entries of the module's own information (`modinfo NAME.ko`).
fn modinfo(plan: &Plan) -> Vec<String> {
    let naming = &plan.naming;
    let entries = [
        format!("description=spile script {}", naming.title),
        format!("spile={}", env!("CARGO_PKG_VERSION")),
        format!("spile_script={}", naming.title),
        format!("spile_kernel={}", naming.kernel_release),
        format!("spile_guru={}", if naming.guru { "yes: may write memory or hold embedded C" } else { "no" }),
    ];
    let targets = plan.targets.iter().map(|target| {
        let id: String = target.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = if target.name.is_empty() { "kernel" } else { &target.name };
        format!("spile_target={name} {id}")
    });
    let further = naming.modinfo.iter().map(|(name, value)| format!("{name}={value}"));
    entries.into_iter().chain(targets).chain(further).map(|entry| text::literal(entry.as_bytes())).collect()
}
