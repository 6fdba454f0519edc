// SPDX-License-Identifier: GPL-2.0-or-later

//! abi.h and its Rust half have the same sizes, offsets, values and ioctl numbers.
//!
//! Each name below is spelled as in C, beside its Rust counterpart; a C program made of them prints C's values.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test that fails may say so in any way")]

use std::fmt::Write;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use spile_abi::device::{
    self, Arming, Counters, CountersList, File, Gate, GateState, Info, Keep, Measure, Owner, Sample, Set, Setup, State,
    Switch, Symbol, Unwind, UnwindRule, Verdict,
};
use spile_abi::format::{self, Chart, Directive, Flags, Histogram, Named, Piece, Pretty, PrettyOp, PrettyStyle, Size};
use spile_abi::record::{self, Kind, Record, RingHeader, RingWritten};

/// A C expression and its value in Rust.
type Pairs = Vec<(String, u64)>;

macro_rules! fields {
    ($pairs:ident, $c:literal, $rust:ty, $($field:ident)*) => {
        $pairs.push((concat!("sizeof(struct ", $c, ")").to_string(), size_of::<$rust>() as u64));
        $($pairs.push((
            format!("offsetof(struct {}, {})", $c, stringify!($field)),
            offset_of!($rust, $field) as u64,
        ));)*
    };
}

fn structures() -> Pairs {
    let mut pairs = Pairs::new();
    fields!(pairs, "spile_info", Info, abi state cpus header_bytes ring_bytes probes errors skipped memory_bytes flags armed);
    fields!(pairs, "spile_arming", Arming, to_enable enabled left);
    fields!(pairs, "spile_owner", Owner, uid gid rank flags opener reserved most_bytes loaded);
    fields!(pairs, "spile_set", Set, setting offset bytes reserved number text);
    fields!(pairs, "spile_keep", Keep, keep overwrite);
    fields!(pairs, "spile_gate", Gate, mode per_second expires tell reserved uid_count gid_count pid_count cgroup_count
        uids gids pids cgroups);
    fields!(pairs, "spile_gate_state", GateState, gate counts);
    fields!(pairs, "spile_setup", Setup, ring_bytes target flags west zone);
    fields!(pairs, "spile_counters", Counters,
        probe armed hits handled filtered nested lock_skipped low_stack errors return_misses
        stopped lost_records timed cycles least_cycles most_cycles sampled mechanism cost faulted_in);
    fields!(pairs, "spile_counters_list", CountersList, first count counters);
    fields!(pairs, "spile_measure", Measure, milliseconds picoseconds nanoseconds cpus reserved);
    fields!(pairs, "spile_sampling", Sample, one_in reserved);
    fields!(pairs, "spile_switch", Switch, probe off);
    fields!(pairs, "spile_file", File, id flags inode device generation process reserved address path);
    fields!(pairs, "spile_unwind", Unwind, mapping table rules places id build_id_bytes build_id reserved);
    fields!(pairs, "spile_unwind_rule", UnwindRule, cfa frame base next);
    fields!(pairs, "spile_symbol", Symbol, address time until flags stays text line);
    fields!(pairs, "spile_ring_header", RingHeader,
        head unused0 tail waiting unused1 printing turn unused3 lost_records lost_bytes changes chunk_bytes chunks unused2 written places);
    fields!(pairs, "spile_ring_written", RingWritten, tail device inode bytes);
    fields!(pairs, "spile_record", Record, bytes kind cpu id probe time);
    pairs
}

fn numbers() -> Pairs {
    let state = |name, state: State| (name, state as u64);
    let kind = |name, kind: Kind| (name, kind as u64);
    let mechanism = |name| device::MECHANISMS.iter().position(|known| *known == name).unwrap_or(99) as u64;
    let pairs = [
        ("SPILE_ABI_VERSION", u64::from(device::ABI_VERSION)),
        ("SPILE_ZONE_BYTES", device::ZONE_BYTES as u64),
        ("SPILE_RING_PLACES", spile_abi::record::RING_PLACES as u64),
        state("SPILE_STATE_LOADED", State::Loaded),
        state("SPILE_STATE_READY", State::Ready),
        state("SPILE_STATE_STARTING", State::Starting),
        state("SPILE_STATE_RUNNING", State::Running),
        state("SPILE_STATE_STOPPING", State::Stopping),
        state("SPILE_STATE_STOPPED", State::Stopped),
        ("SPILE_INFO", device::INFO),
        ("SPILE_SETUP", device::SETUP),
        ("SPILE_START", device::START),
        ("SPILE_STOP", device::STOP),
        ("SPILE_COUNTERS", device::COUNTERS),
        ("SPILE_COUNTERS_LIST", device::COUNTERS_LIST),
        ("SPILE_COUNTERS_LISTED", device::COUNTERS_LISTED as u64),
        ("SPILE_SET", device::SET),
        ("SPILE_KEEP", device::KEEP),
        ("SPILE_GATE", device::GATE),
        ("SPILE_GATE_STATE", device::GATE_STATE),
        ("SPILE_MEASURE", device::MEASURE),
        ("SPILE_SAMPLE", device::SAMPLE),
        ("SPILE_SWITCH", device::SWITCH),
        ("SPILE_QUIET", device::QUIET),
        ("SPILE_CANCEL", device::CANCEL),
        ("SPILE_SYMBOL", device::SYMBOL),
        ("SPILE_OWNER", device::OWNER),
        ("SPILE_ARMING", device::ARMING),
        ("SPILE_FILE", device::FILE),
        ("SPILE_WANTED", device::WANTED),
        ("SPILE_UNWIND", device::UNWIND),
        ("SPILE_FILE_PATH", device::FILE_PATH as u64),
        ("SPILE_FILE_HAS_TABLE", u64::from(device::FILE_HAS_TABLE)),
        ("SPILE_UNWIND_MOST", device::UNWIND_MOST as u64),
        ("SPILE_UNWIND_UNKNOWN", u64::from(device::UNWIND_UNKNOWN)),
        ("SPILE_UNWIND_NARROW", u64::from(device::UNWIND_NARROW)),
        ("SPILE_UNWIND_DEREFERENCE", u64::from(device::UNWIND_DEREFERENCE)),
        ("SPILE_UNWIND_ADD_WORD", u64::from(device::UNWIND_ADD_WORD)),
        ("SPILE_UNWIND_FRAME_BASED", u64::from(device::UNWIND_FRAME_BASED)),
        ("SPILE_UNWIND_STORED", u64::from(device::UNWIND_STORED)),
        ("SPILE_UNWIND_END", u64::from(device::UNWIND_END)),
        ("SPILE_UNWIND_SIGNAL", u64::from(device::UNWIND_SIGNAL)),
        ("SPILE_UNWIND_STUB", u64::from(device::UNWIND_STUB)),
        ("SPILE_UNWIND_BY_CALLEE", u64::from(device::UNWIND_BY_CALLEE)),
        ("SPILE_UNWIND_IN_REGISTER", u64::from(device::UNWIND_IN_REGISTER)),
        ("SPILE_PLACE_SHIFT", u64::from(record::Place::SHIFT)),
        ("SPILE_PLACE_INTERRUPTED", record::Place::INTERRUPTED),
        ("(1ull << SPILE_PLACE_SHIFT | 5)", record::Place::new(1, 5).0),
        ("SPILE_FILES", u64::from(device::FILES)),
        ("SPILE_UNWIND_REGISTER", u64::from(device::UNWIND_REGISTER)),
        ("SPILE_RANK_ROOT", u64::from(device::RANK_ROOT)),
        ("SPILE_RANK_USR", u64::from(device::RANK_USR)),
        ("SPILE_RANK_SYS", u64::from(device::RANK_SYS)),
        ("SPILE_RANK_DEV", u64::from(device::RANK_DEV)),
        ("SPILE_OWNER_SERVICE", u64::from(device::SERVICE)),
        ("SPILE_OWNER_HAS_SET", u64::from(device::HAS_SET)),
        ("SPILE_SYMBOL_TEXT", device::SYMBOL_TEXT as u64),
        ("SPILE_SYMBOL_LINE_TEXT", device::SYMBOL_LINE_TEXT as u64),
        ("SPILE_SYMBOL_LINE", u64::from(device::SYMBOL_LINE)),
        ("SPILE_SYMBOL_STORED", u64::from(device::SYMBOL_STORED)),
        ("SPILE_SYMBOL_RETURNS", u64::from(device::SYMBOL_RETURNS)),
        ("SPILE_FORMAT_STACK", u64::from(record::FORMAT_STACK)),
        ("SPILE_STACK_FRAMES", u64::from(format::STACK_FRAMES)),
        ("SPILE_STACK_OF_USER", record::STACK_OF_USER as u64),
        ("SPILE_STACK_FULL", record::STACK_FULL as u64),
        ("SPILE_STACK_LINES", record::STACK_LINES as u64),
        ("SPILE_STACK_RETURNING", record::STACK_RETURNING as u64),
        ("SPILE_STACK_AT_PROBE", record::STACK_AT_PROBE as u64),
        ("SPILE_STACK_STORED", record::STACK_STORED as u64),
        ("SPILE_NAMED_SYMBOL", Named::Symbol as u64),
        ("SPILE_NAMED_DATA", Named::Data as u64),
        ("SPILE_NAMED_MODULE", Named::Module as u64),
        ("SPILE_NAMED_ADDRESSES", Named::Addresses as u64),
        ("SPILE_NAMED_STACK", Named::Stack as u64),
        ("SPILE_NAMED_STORED_STACK", Named::StoredStack as u64),
        ("SPILE_NAMED_USER_STACK", Named::UserStack as u64),
        ("SPILE_NAMED_USER_TEXT", Named::UserText as u64),
        ("SPILE_NAMED_USER_FOLDED", Named::UserFolded as u64),
        ("SPILE_NAMED_USER_SYMBOL", Named::UserSymbol as u64),
        ("SPILE_NAMED_USER_DATA", Named::UserData as u64),
        ("SPILE_NAMED_USER_FILE", Named::UserFile as u64),
        ("SPILE_NAMED_USER_LINE", Named::UserLine as u64),
        ("SPILE_NAMED_USER_FILE_LINE", Named::UserFileLine as u64),
        ("SPILE_NAMED_USER_BUILD_ID", Named::UserBuildId as u64),
        ("SPILE_GATE_ENFORCE", u64::from(device::ENFORCE)),
        ("SPILE_GATE_OBSERVE", u64::from(device::OBSERVE)),
        ("SPILE_GATE_SCOPES", device::GATE_SCOPES as u64),
        ("SPILE_GATE_REWRITTEN", Verdict::Rewritten as u64),
        ("SPILE_GATE_OBSERVED", Verdict::Observed as u64),
        ("SPILE_GATE_EXPIRED", Verdict::Expired as u64),
        ("SPILE_GATE_OUT_OF_SCOPE", Verdict::OutOfScope as u64),
        ("SPILE_GATE_LIMITED", Verdict::Limited as u64),
        ("SPILE_GATE_COUNTS", device::VERDICTS as u64),
        kind("SPILE_RECORD_REWRITE", Kind::Rewrite),
        kind("SPILE_RECORD_LIVEPATCH", Kind::Livepatch),
        kind("SPILE_RECORD_TASK", Kind::Task),
        ("SPILE_SET_BYTES", device::SET_BYTES as u64),
        ("SPILE_SETUP_TIMED", u64::from(device::SETUP_TIMED)),
        ("SPILE_SETUP_TASKS", u64::from(device::SETUP_TASKS)),
        ("SPILE_BY_NOTHING", 0),
        ("SPILE_BY_FTRACE", mechanism("ftrace")),
        ("SPILE_BY_FTRACE_WHOLE", mechanism("ftrace, all registers")),
        ("SPILE_BY_KPROBE_FTRACE", mechanism("kprobe on ftrace")),
        ("SPILE_BY_KPROBE", mechanism("kprobe")),
        ("SPILE_BY_KRETPROBE", mechanism("kretprobe")),
        ("SPILE_BY_TRACEPOINT", mechanism("tracepoint")),
        ("SPILE_BY_TIMER", mechanism("timer")),
        ("SPILE_BY_PERF", mechanism("perf event")),
        ("SPILE_BY_FILE", mechanism("file")),
        ("SPILE_BY_FTRACE_RETURN", mechanism("ftrace, return hooked")),
        ("SPILE_BY_UPROBE", mechanism("uprobe")),
        ("SPILE_BY_URETPROBE", mechanism("uprobe, return hooked")),
        ("SPILE_INFO_KEPT", u64::from(device::KEPT)),
        ("SPILE_INFO_OVERWRITE", u64::from(device::OVERWRITE)),
        ("SPILE_INFO_OPENED", u64::from(device::OPENED)),
        ("SPILE_INFO_USER_STACKS", u64::from(device::USER_STACKS)),
        ("SPILE_INFO_UNARMED", u64::from(device::UNARMED)),
        ("SPILE_INFO_SUPPRESSED", u64::from(device::SUPPRESSED)),
        kind("SPILE_RECORD_PAD", Kind::Pad),
        kind("SPILE_RECORD_PRINT", Kind::Print),
        kind("SPILE_RECORD_WARN", Kind::Warn),
        kind("SPILE_RECORD_ERROR", Kind::Error),
        kind("SPILE_RECORD_EXIT", Kind::Exit),
        kind("SPILE_RECORD_SYSTEM", Kind::System),
        kind("SPILE_RECORD_NOTICE", Kind::Notice),
        ("SPILE_FAULT", u64::from(record::FAULT)),
        ("SPILE_FORMAT_TEXT", u64::from(record::FORMAT_TEXT)),
        ("SPILE_NO_PROBE", u64::from(record::NO_PROBE)),
        ("SPILE_NO_LOCATION", u64::from(record::NO_LOCATION)),
    ];
    pairs.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}

/// Bytecode has no named numbers in Rust: they are taken from encoded bytes.
fn bytecode() -> Pairs {
    let directive = |flags, width, precision| {
        let bytes = format::encode(&[Piece::Directive(Directive { conversion: b'd', flags, width, precision })], |_| 0);
        [bytes[0], bytes[2], bytes[3], bytes[4]].map(u64::from)
    };
    let plain = Flags::default();
    let flag = |flags| directive(flags, Size::None, Size::None)[1];
    let flags =
        |pretty: Pretty| pretty.encode().iter().take(4).rev().fold(0, |size, byte| size << 8 | u64::from(*byte));
    let op = |op: PrettyOp| u64::from(Pretty { ops: vec![op], ..Pretty::default() }.encode()[4]);
    let style = |style| {
        let op = PrettyOp::Integer { offset: 0, size: 8, first_bit: 0, bits: 0, style };
        u64::from(Pretty { ops: vec![op], ..Pretty::default() }.encode()[4 + 1 + 4 + 3])
    };
    let fixed = directive(plain, Size::Fixed(1), Size::Star);
    let chart = |chart| u64::from(format::encode(&[Piece::Histogram(Histogram::Log, chart)], |_| 0)[0]);
    let pairs = [
        ("SPILE_FORMAT_END", u64::from(format::encode(&[], |_| 0)[0])),
        ("SPILE_FORMAT_LITERAL", u64::from(format::encode(&[Piece::Literal(vec![b'x'])], |_| 0)[0])),
        ("SPILE_FORMAT_DIRECTIVE", fixed[0]),
        ("SPILE_FORMAT_DESCRIBED", u64::from(format::encode(&[Piece::Pretty(Arc::default())], |_| 0)[0])),
        ("SPILE_FORMAT_HISTOGRAM", chart(Chart::default())),
        ("SPILE_FORMAT_CHART", chart(Chart { columns: 1, kept: None })),
        ("SPILE_FLAG_ZERO", flag(Flags { zero: true, ..plain })),
        ("SPILE_FLAG_PLUS", flag(Flags { plus: true, ..plain })),
        ("SPILE_FLAG_MINUS", flag(Flags { minus: true, ..plain })),
        ("SPILE_FLAG_SPACE", flag(Flags { space: true, ..plain })),
        ("SPILE_FLAG_SHARP", flag(Flags { sharp: true, ..plain })),
        ("SPILE_SIZE_NONE", directive(plain, Size::None, Size::None)[2]),
        ("SPILE_SIZE_FIXED", fixed[2]),
        ("SPILE_SIZE_STAR", fixed[3]),
        ("SPILE_PRETTY_USER", flags(Pretty { user: true, ..Pretty::default() })),
        ("SPILE_PRETTY_NARROW", flags(Pretty { narrow: true, ..Pretty::default() })),
        ("SPILE_PRETTY_END", u64::from(Pretty::default().encode()[4])),
        ("SPILE_PRETTY_LITERAL", op(PrettyOp::Literal(vec![b'x']))),
        (
            "SPILE_PRETTY_INTEGER",
            op(PrettyOp::Integer { offset: 0, size: 1, first_bit: 0, bits: 0, style: PrettyStyle::Hex }),
        ),
        ("SPILE_PRETTY_CHARS", op(PrettyOp::Chars { offset: 0, length: 0 })),
        ("SPILE_PRETTY_STRING_POINTER", op(PrettyOp::StringPointer { offset: 0 })),
        ("SPILE_PRETTY_TEXT", op(PrettyOp::Text { offset: 0, length: 0 })),
        ("SPILE_PRETTY_REPEAT", op(PrettyOp::Repeat { offset: 0, count: 0, stride: 0, body: vec![] })),
        (
            "SPILE_PRETTY_ENUM",
            op(PrettyOp::Enum { offset: 0, size: 1, first_bit: 0, bits: 0, signed: true, names: vec![] }),
        ),
        ("SPILE_PRETTY_UNKNOWN", op(PrettyOp::Unknown)),
        ("SPILE_PRETTY_WHEN", op(PrettyOp::When { offset: 0, size: 1, values: vec![], other: false, body: vec![] })),
        ("SPILE_STYLE_SIGNED", style(PrettyStyle::Signed)),
        ("SPILE_STYLE_UNSIGNED", style(PrettyStyle::Unsigned)),
        ("SPILE_STYLE_HEX", style(PrettyStyle::Hex)),
        ("SPILE_STYLE_CHAR", style(PrettyStyle::Char)),
        ("SPILE_STYLE_FUNCTION", style(PrettyStyle::Function)),
        ("SPILE_STYLE_FLOAT", style(PrettyStyle::Float)),
    ];
    pairs.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}

/// C's value of each expression.
fn values_in_c(expressions: impl Iterator<Item = String>) -> Vec<u64> {
    let abi = Path::new(env!("CARGO_MANIFEST_DIR"));
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut source = String::from("#include <stdio.h>\n#include <stddef.h>\n");
    source.push_str("#include <linux/types.h>\n#include <linux/ioctl.h>\n#include \"abi.h\"\nint main(void) {\n");
    for expression in expressions {
        writeln!(source, "printf(\"%llu\\n\", (unsigned long long)({expression}));").expect("a string takes all");
    }
    source.push_str("return 0; }\n");
    let (file, program) = (directory.join("twins.c"), directory.join("twins"));
    std::fs::write(&file, source).expect("writing the C program");
    let compiled =
        Command::new("cc").args(["-Wall", "-Werror", "-I"]).arg(abi).arg(&file).arg("-o").arg(&program).output();
    let compiled = compiled.expect("running cc");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let ran = Command::new(&program).output().expect("running the C program");
    String::from_utf8_lossy(&ran.stdout).lines().map(|line| line.parse().expect("a number")).collect()
}

#[test]
fn both_twins_agree() {
    let pairs = [structures(), numbers(), bytecode()].concat();
    let in_c = values_in_c(pairs.iter().map(|(expression, _)| expression.clone()));
    assert_eq!(in_c.len(), pairs.len());
    for ((expression, in_rust), in_c) in pairs.iter().zip(in_c) {
        assert_eq!(*in_rust, in_c, "{expression}");
    }
}

/// Fails if something in abi.h is missing here.
#[test]
fn every_name_of_the_header_is_compared() {
    let header = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("abi.h")).expect("abi.h");
    let compared = [structures(), numbers(), bytecode()].concat();
    let compared: Vec<&str> = compared.iter().map(|(expression, _)| expression.as_str()).collect();
    let known = ["SPILE_ABI_H", "SPILE_DEVICE_PREFIX", "SPILE_IOC_TYPE"];
    let mut words = header.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| word.starts_with("SPILE_"));
    let missing = words.find(|word| !word.ends_with('_') && !known.contains(word) && !compared.contains(word));
    assert_eq!(missing, None);
    assert!(header.contains(&format!("SPILE_DEVICE_PREFIX \"{}\"", device::DEVICE_PREFIX)));
}

#[test]
fn numbers_that_mean_nothing_are_no_state_and_no_kind() {
    assert_eq!(State::from_number(State::Stopped as u32), Some(State::Stopped));
    assert_eq!(State::from_number(6), None);
    assert_eq!(Kind::from_number(Kind::Notice as u16), Some(Kind::Notice));
    assert_eq!(Kind::from_number(10), None);
}
