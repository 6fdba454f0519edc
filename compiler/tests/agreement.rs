// SPDX-License-Identifier: GPL-2.0-or-later

//! Compares what is read from the debug information of real kernels with other tools: entry addresses, and their file and
//! line, with binutils' `nm` and `addr2line`; parameters with their types, return types, file and line of the declaration,
//! and the location of each variable at statements with gdb. Prints how much agrees.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test that fails may say so in any way")]

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use spile_debuginfo::{DebugInfo, Elf, FunctionId, FunctionPattern, Location, Op, Unavailable};

/// Number of functions sampled from vmlinux, number of modules, and functions sampled from each.
const KERNEL: usize = 2000;
const MODULES: usize = 20;
const MODULE: usize = 100;

/// One function's entry as it is read here.
struct Entry {
    name: String,
    symbol: String,
    /// None in vmlinux.
    section: Option<String>,
    offset: u64,
    /// `FILE:LINE` of the statements that begin there.
    lines: Vec<String>,
}

fn vmlinux() -> Option<PathBuf> {
    let entries = std::fs::read_dir("/usr/lib/debug/boot").ok()?.flatten().map(|entry| entry.path());
    entries.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinux-"))).max()
}

/// Debug files of modules, in a fixed order.
fn modules(below: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![below.to_path_buf()]);
    while let Some(directory) = open.pop() {
        for path in std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()) {
            match path.is_dir() {
                true => open.push(path),
                false if path.extension().is_some_and(|end| end == "ko") => found.push(path),
                false => {}
            }
        }
    }
    found.sort();
    found
}

/// Every function that has a body and a line there, thinned to about `count` evenly spread ones.
fn entries(path: &Path, count: usize) -> Vec<Entry> {
    let elf = Arc::new(Elf::open(path).unwrap());
    let debug = DebugInfo::open(elf.clone(), None, None).unwrap();
    let all = debug.find_functions(&FunctionPattern { name: "*".into(), file: None }).unwrap();
    let step = (all.len() / (count * 3)).max(1);
    let mut entries = Vec::new();
    for id in all.into_iter().step_by(step) {
        let function = debug.function(id).unwrap();
        let Some(body) = function.bodies.first() else { continue };
        let statements = debug.statements(id).unwrap();
        // Several statements begin there where inlined code begins at once; addr2line names one of them.
        let there: Vec<String> = statements
            .iter()
            .filter(|statement| statement.address == body.entry)
            .map(|statement| format!("{}:{}", statement.file, statement.line))
            .collect();
        if there.is_empty() {
            continue;
        }
        let section = body.entry.section.and_then(|id| elf.section(id)).map(|section| section.name.clone());
        let (offset, symbol) = (body.entry.offset, body.symbol.clone().unwrap_or_default());
        entries.push(Entry { name: function.name.clone(), symbol, section, offset, lines: there });
        if entries.len() == count {
            break;
        }
    }
    entries
}

/// Addresses of symbols by name.
fn symbols(path: &Path) -> HashMap<String, Vec<u64>> {
    let text = Command::new("nm").arg(path).output().unwrap().stdout;
    let mut symbols: HashMap<String, Vec<u64>> = HashMap::new();
    for line in String::from_utf8_lossy(&text).lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [address, _, name] = words[..] {
            symbols.entry(name.into()).or_default().push(u64::from_str_radix(address, 16).unwrap());
        }
    }
    symbols
}

/// `FILE:LINE` of each address.
fn lines(path: &Path, section: Option<&str>, offsets: &[u64]) -> Vec<String> {
    let mut command = Command::new("addr2line");
    command.arg("-e").arg(path);
    command.args(section.map(|section| ["-j", section]).into_iter().flatten());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let text: String = offsets.iter().map(|offset| format!("{offset:#x}\n")).collect();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap().stdout;
    writer.join().unwrap();
    String::from_utf8_lossy(&output).lines().map(|line| line.split(" (").next().unwrap_or(line).to_string()).collect()
}

/// How many entries there are, and how many of them agree in address, and in file and line.
fn compared(path: &Path, count: usize) -> [usize; 3] {
    let (entries, symbols) = (entries(path, count), symbols(path));
    let mut figures = [entries.len(), 0, 0];
    let mut by_section: HashMap<Option<String>, Vec<&Entry>> = HashMap::new();
    for entry in &entries {
        let same = symbols.get(&entry.symbol).is_some_and(|addresses| addresses.contains(&entry.offset));
        figures[1] += usize::from(same);
        if !same {
            println!(
                "{}: {} at {:#x}, nm has {:x?}",
                path.display(),
                entry.symbol,
                entry.offset,
                symbols.get(&entry.symbol)
            );
        }
        by_section.entry(entry.section.clone()).or_default().push(entry);
    }
    for (section, entries) in by_section {
        let offsets: Vec<u64> = entries.iter().map(|entry| entry.offset).collect();
        for (entry, line) in entries.iter().zip(lines(path, section.as_deref(), &offsets)) {
            let same = entry.lines.iter().any(|own| line == *own || line.ends_with(&format!("/{own}")));
            figures[2] += usize::from(same);
            if !same {
                println!("{}: {} is of {:?}, addr2line has {line}", path.display(), entry.name, entry.lines);
            }
        }
    }
    figures
}

/// The sum of the results for the kernel and for the sampled modules.
fn of_all(kernel: &Path, compare: fn(&Path, usize) -> [usize; 3]) -> [usize; 3] {
    let mut total = compare(kernel, KERNEL);
    let release = kernel.file_name().unwrap().to_string_lossy().replacen("vmlinux-", "", 1);
    let all = modules(&Path::new("/usr/lib/debug/lib/modules").join(release));
    for module in all.iter().step_by((all.len() / MODULES).max(1)).take(MODULES) {
        for (sum, figure) in total.iter_mut().zip(compare(module, MODULE)) {
            *sum += figure;
        }
    }
    total
}

#[test]
fn entries_and_lines() {
    let Some(kernel) = vmlinux() else { return println!("skipped: no debug information of a kernel") };
    if Command::new("addr2line").arg("--version").output().is_err() {
        return println!("skipped: no binutils");
    }
    let [functions, addresses, lines] = of_all(&kernel, compared);
    println!("of {functions} functions {addresses} agree in their entry address, {lines} in file and line");
    assert!(functions >= KERNEL, "{functions}");
    assert_eq!(addresses, functions);
    // addr2line also uses rows that begin no statement; if one of them is the last at the address, it names that.
    assert!((functions - lines) * 30 <= functions, "{lines} of {functions}");
}

/// Description of one function: `FILE:LINE`, then its return type, then each parameter.
type Prototype = Vec<String>;

/// Prints for each name that is asked for a line of `NAME|FILE:LINE|TYPE|TYPE PARAMETER...`.
const PROTOTYPES: &str = r#"
import gdb, sys
def signed(name):
    symbol = gdb.lookup_global_symbol(name) or gdb.lookup_static_symbol(name)
    if symbol is None or symbol.type.code != gdb.TYPE_CODE_FUNC:
        return None
    block = gdb.block_for_pc(int(symbol.value().address))
    own = None
    while block is not None and not block.is_static and not block.is_global:
        own = block if block.function is not None else own
        block = block.superblock
    if own is None or own.function.name != name:
        return None
    parameters = ["%s %s" % (each.type, each.name) for each in own if each.is_argument]
    return "|".join(["%s:%d" % (symbol.symtab.filename, symbol.line), str(symbol.type.target())] + parameters)
for name in open("asked"):
    text = signed(name.strip())
    print("=" + name.strip() + "|" + (text or ""))
"#;

/// Functions with a unique name and code under that name, `count` of them chosen at random (always the same ones).
fn drawn(debug: &DebugInfo, count: usize, random: &mut Random) -> Vec<FunctionId> {
    let mut all = debug.find_functions(&FunctionPattern { name: "*".into(), file: None }).unwrap();
    let mut names: HashMap<String, usize> = HashMap::new();
    let name_of = |id| debug.function(id).unwrap().name;
    all.iter().for_each(|id| *names.entry(name_of(*id)).or_default() += 1);
    let mut drawn = Vec::new();
    while drawn.len() < count && !all.is_empty() {
        let id = all.swap_remove(random.below(all.len()));
        let function = debug.function(id).unwrap();
        // gdb finds a function by its name at its code, but a clone under another name; functions in assembly have no
        // declaration.
        if function.file.is_empty()
            || names[&function.name] != 1
            || function.bodies.first().is_none_or(|body| body.symbol.as_ref() != Some(&function.name))
        {
            continue;
        }
        drawn.push(id);
    }
    drawn
}

/// Xorshift: the same numbers each time.
struct Random(u64);

impl Random {
    fn new() -> Random {
        Random(0x9e37_79b9_7f4a_7c15)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

fn prototypes(path: &Path, count: usize) -> Vec<(String, Prototype)> {
    let debug = DebugInfo::open(Arc::new(Elf::open(path).unwrap()), None, None).unwrap();
    let prototype = |id| {
        let function = debug.function(id).unwrap();
        let returned = function.return_type.map_or_else(|| "void".into(), |id| debug.type_name(id));
        let parameters = debug.parameters(id).unwrap();
        let parameters =
            parameters.iter().map(|parameter| format!("{} {}", debug.type_name(parameter.type_id), parameter.name));
        let place = format!("{}:{}", function.file, function.line);
        (function.name, [place, returned].into_iter().chain(parameters).collect())
    };
    drawn(&debug, count, &mut Random::new()).into_iter().map(prototype).collect()
}

/// The lines `=KEY|SAID` that gdb's Python prints for `script`, which reads what is asked for from the file `asked`.
fn ask_gdb(path: &Path, script: &str, asked: &str) -> Vec<(String, String)> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("asked"), asked).unwrap();
    std::fs::write(directory.path().join("read.py"), script).unwrap();
    let mut command = Command::new("gdb");
    command.current_dir(directory.path()).args(["-nx", "-batch", "-x", "read.py"]).arg(path);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let answers = text.lines().filter_map(|line| line.strip_prefix('=')?.split_once('|'));
    answers.map(|(key, rest)| (key.to_string(), rest.to_string())).collect()
}

/// The same from gdb; functions that it does not find are left out.
fn by_gdb(path: &Path, names: &[&str]) -> HashMap<String, Prototype> {
    let answers = ask_gdb(path, PROTOTYPES, &names.join("\n")).into_iter();
    answers
        .filter(|(_, rest)| !rest.is_empty())
        .map(|(name, rest)| (name, rest.split('|').map(String::from).collect()))
        .collect()
}

/// Without blanks, and with names of integers in gdb's spelling: it writes `unsigned long` where DWARF has `long unsigned
/// int`.
fn plain(text: &str) -> String {
    const NAMES: [(&str, &str); 7] = [
        ("long long unsigned int", "unsigned long long"),
        ("long unsigned int", "unsigned long"),
        ("short unsigned int", "unsigned short"),
        ("long long int", "long long"),
        ("long int", "long"),
        ("short int", "short"),
        ("volatile const", "const volatile"),
    ];
    let text = NAMES.iter().fold(text.to_string(), |text, (from, to)| text.replace(from, to));
    text.chars().filter(|c| !c.is_whitespace()).collect::<String>()
}

/// How many prototypes were compared, and how many agree in the place of the declaration and in all names and types.
fn same_prototypes(path: &Path, count: usize) -> [usize; 3] {
    let own = prototypes(path, count);
    // All at once: each start of gdb reads the index of a whole kernel, and then each unit of the functions asked for.
    let by_gdb = by_gdb(path, &own.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>());
    let mut figures = [0, 0, 0];
    for (name, own) in &own {
        let Some(of_gdb) = by_gdb.get(name) else { continue };
        figures[0] += 1;
        let place = of_gdb[0] == own[0] || of_gdb[0].ends_with(&format!("/{}", own[0]));
        let types = own[1..].iter().map(|text| plain(text)).eq(of_gdb[1..].iter().map(|text| plain(text)));
        figures[1] += usize::from(place);
        figures[2] += usize::from(types);
        if !place || !types {
            println!("{}: {name}\n  here {own:?}\n  gdb  {of_gdb:?}", path.display());
        }
    }
    figures
}

fn gdb_has_python() -> bool {
    let python = Command::new("gdb").args(["-nx", "-batch", "-ex", "python print(6 * 7)"]).output();
    python.is_ok_and(|output| output.stdout.starts_with(b"42"))
}

#[test]
fn parameters_and_declarations() {
    let Some(kernel) = vmlinux() else { return println!("skipped: no debug information of a kernel") };
    if !gdb_has_python() {
        return println!("skipped: no gdb with Python");
    }
    let [functions, places, types] = of_all(&kernel, same_prototypes);
    println!(
        "of {functions} functions {places} agree in the place of their declaration, {types} in what they take and return"
    );
    assert!(functions >= KERNEL, "{functions}");
    assert!(
        (functions - places) * 200 <= functions && (functions - types) * 200 <= functions,
        "{places}, {types} of {functions}"
    );
}

/// Prints for each `FUNCTION OFFSET` a line of `FUNCTION OFFSET VARIABLE|WHERE` for each variable in scope: `none`, the register
/// that it is in, `memory` or `value` with a register and the number that is added to it, `number` and which, `some` for any other
/// place or value, `caller` for one that only callers know, `part` where only parts are there. What is in the scope of something
/// inlined is left out.
const VARIABLES: &str = r#"
import gdb, re
def where(text, at):
    if "multi-location" in text.split("\n")[0]:
        ranges = re.findall(r"Range 0x([0-9a-f]+)-0x([0-9a-f]+): (.*(?:\n     .*)*)", text)
        text = next((what for low, high, what in ranges if int(low, 16) <= at < int(high, 16)), "optimized out")
    if "entry_value" in text or "parameter_ref" in text:
        return "caller"
    if "piece" in text or "implicit_pointer" in text:
        return "part"
    if "optimized out" in text:
        return "none"
    register = re.search(r"a variable in \$(\w+)", text)
    if register:
        return register.group(1)
    number = re.match(r"(?:a|the) constant (?:with value )?(-?\d+)", text.strip())
    if number:
        return "number " + number.group(1)
    steps = re.findall(r"\d+: (DW_OP_\w+)(?: (-?\d+))?(?: \[\$(\w+)\])?", text)
    is_value = len(steps) == 2 and steps[1][0] == "DW_OP_stack_value"
    if steps and (len(steps) == 1 or is_value) and steps[0][0].startswith("DW_OP_breg"):
        return "%s %s %s" % ("value" if is_value else "memory", steps[0][2], steps[0][1])
    return "some"
for asked in open("asked"):
    name, offset = asked.split()
    entry = re.search(r"is a function at address (0x[0-9a-f]+)", gdb.execute("info address " + name, to_string=True))
    if entry is None:
        continue
    at = int(entry.group(1), 16) + int(offset)
    block = gdb.block_for_pc(at)
    while block is not None and block.function is None:
        block = block.superblock
    if block is None or block.function.name != name:
        continue
    seen = set()
    for one in re.split(r"(?m)^(?=Symbol )", gdb.execute("info scope *%d" % at, to_string=True))[1:]:
        variable, text = re.match(r"Symbol (\S+) is ((?:.|\n)*)", one).groups()
        if variable not in seen and not text.startswith(("a function", "a typedef", "a label")):
            print("=%s %s %s|%s" % (name, offset, variable, where(text, at)))
        seen.add(variable)
"#;

/// DWARF's numbers of registers (System V ABI for x86-64, figure 3.36).
const REGISTERS: [&str; 16] =
    ["rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"];

/// The register and the number that is added to it, if that is all.
fn sum(ops: &[Op]) -> Option<(&'static str, i64)> {
    let (register, added) = match *ops {
        [Op::Register(register)] => (register, 0),
        [Op::Register(register), Op::Const(added), Op::Add] => (register, added),
        _ => return None,
    };
    Some((REGISTERS.get(usize::from(register))?, added))
}

/// Whether a variable is where gdb says.
fn is_there(by_gdb: &str, found: Result<&Location, &Unavailable>) -> bool {
    let words: Vec<&str> = by_gdb.split(' ').collect();
    match (&words[..], found) {
        (["part"], _) | (["none"], Err(_)) | (["some"], Ok(_)) => true,
        (["caller"], location) => matches!(location, Err(_) | Ok(Location::ByCaller { .. })),
        (["memory", register, added], Ok(Location::Memory(ops)))
        | (["value", register, added], Ok(Location::Value(ops))) => {
            sum(ops) == Some((register, added.parse().unwrap()))
        }
        // Of a type with fewer bits gdb shows those.
        (["number", number], Ok(Location::Value(ops))) => {
            matches!(ops[..], [Op::Const(own)] if own as u32 == number.parse::<i64>().unwrap() as u32)
        }
        (["number", _], Ok(Location::Bytes(_))) => true,
        ([register], Ok(Location::Register(number))) => REGISTERS.get(usize::from(*number)) == Some(register),
        _ => false,
    }
}

/// What gdb says of a variable, without which register or number.
fn kind(by_gdb: &str) -> &str {
    let first = by_gdb.split(' ').next().unwrap();
    if REGISTERS.contains(&first) { "register" } else { first }
}

/// Statements that were sampled, one in each of `count` functions, and by kind how many variables gdb has in scope there,
/// and for how many both agree.
fn locations(path: &Path, count: usize) -> (usize, BTreeMap<String, [usize; 2]>) {
    let debug = DebugInfo::open(Arc::new(Elf::open(path).unwrap()), None, None).unwrap();
    let mut random = Random::new();
    let mut asked = HashMap::new();
    for id in drawn(&debug, count, &mut random) {
        let function = debug.function(id).unwrap();
        let body = &function.bodies[0];
        let statements = debug.statements(id).unwrap();
        let inside = |at: u64| at >= body.entry.offset && at - body.entry.offset < body.size;
        let own: Vec<_> = statements
            .iter()
            .filter(|at| at.address.section == body.entry.section && inside(at.address.offset))
            .collect();
        if !own.is_empty() {
            let at = own[random.below(own.len())].address;
            asked.insert(format!("{} {}", function.name, at.offset - body.entry.offset), (id, at));
        }
    }
    let values = ask_gdb(path, VARIABLES, &asked.keys().cloned().collect::<Vec<_>>().join("\n"));
    let mut kinds: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    for (key, value) in values {
        let (statement, name) = key.rsplit_once(' ').unwrap();
        let (id, at) = asked[statement];
        let found = debug.variable(id, at, name).unwrap();
        let same = is_there(&value, found.as_ref().map(|found| &found.location));
        let figures = kinds.entry(kind(&value).to_string()).or_default();
        figures[0] += 1;
        figures[1] += usize::from(same);
        if !same {
            println!("{}: {key}: gdb has {value}, here {found:?}", path.display());
        }
    }
    (asked.len(), kinds)
}

/// How many statements were sampled, how many variables are in scope there according to gdb, and for how many both agree.
fn same_locations(path: &Path, count: usize) -> [usize; 3] {
    let (statements, kinds) = locations(path, count / 5);
    let sum = |figure: usize| kinds.values().map(|figures| figures[figure]).sum();
    [statements, sum(0), sum(1)]
}

#[test]
fn variables_at_statements() {
    let Some(kernel) = vmlinux() else { return println!("skipped: no debug information of a kernel") };
    if !gdb_has_python() {
        return println!("skipped: no gdb with Python");
    }
    let [statements, variables, same] = of_all(&kernel, same_locations);
    println!("at {statements} statements gdb sees {variables} variables; {same} are where it says");
    assert!(statements >= KERNEL / 10 && variables >= statements, "{statements}, {variables}");
    assert!((variables - same) * 200 <= variables, "{same} of {variables}");
}

/// Of a large module, in detail: some hundred variables, each kind of place among them.
#[test]
fn variables_of_xfs() {
    let Some(kernel) = vmlinux() else { return println!("skipped: no debug information of a kernel") };
    if !gdb_has_python() {
        return println!("skipped: no gdb with Python");
    }
    let release = kernel.file_name().unwrap().to_string_lossy().replacen("vmlinux-", "", 1);
    let below = Path::new("/usr/lib/debug/lib/modules").join(release).join("kernel/fs/xfs");
    let (statements, kinds) = locations(&modules(&below)[0], 400);
    println!(
        "xfs: at {statements} statements, by kind, variables that gdb sees, and that are where it says: {kinds:?}"
    );
    for (kind, least) in [("none", 50), ("register", 200), ("memory", 5), ("value", 1), ("number", 5), ("caller", 50)] {
        let [all, same] = kinds.get(kind).copied().unwrap_or_default();
        assert!(all >= least && same == all, "{kind}: {same} of {all}");
    }
}
