// SPDX-License-Identifier: GPL-2.0-or-later

//! `cargo xtask agree`: compares the numbers and addresses that variables have at random statements of programs with those that gdb finds. Each program
//! runs twice, in gdb and in a guest, and what counts is the first time that it comes to a statement.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::place::Place;
use crate::random::Random;
use crate::{programs, user_programs};

/// The arguments of `cargo xtask agree`.
#[derive(clap::Args)]
pub struct Options {
    /// Programs, by their paths. Else one in C, one in C++ and one in Rust, of this tree
    program: Vec<PathBuf>,
    /// Their arguments
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    arguments: String,
    /// Files that they read, which are copied into the guest
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Chooses the statements
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Statements of each program
    #[arg(long, default_value_t = 300)]
    count: usize,
    /// Statements at which gdb looks whether the program comes to them
    #[arg(long, default_value_t = 10_000)]
    candidates: usize,
}

/// What gdb runs.
const READER: &str = include_str!("agree.py");

/// Differences of one program that are printed, and values that only gdb knows.
const MOST_SHOWN: usize = 20;

/// Addresses of the stack and of libraries, which are not the same in both runs.
const ELSEWHERE: std::ops::Range<u64> = 0x7f00_0000_0000..0x8000_0000_0000;

/// Statements by their addresses, each with the values of its variables by name, innermost first: bytes, and the number if it is
/// known.
type Values = HashMap<u64, HashMap<String, Vec<(u32, Option<u64>)>>>;

/// Prints a line for each program; the exit code is 0 if no value differs.
pub fn run(options: &Options) -> Result<ExitCode> {
    let root = crate::root();
    programs::build_programs(&root)?;
    let scratch = tempfile::tempdir()?;
    let own = if options.program.is_empty() { own_programs(&root, scratch.path())? } else { Vec::new() };
    let mut differs = false;
    for program in options.program.iter().chain(&own) {
        let program = program.canonicalize().with_context(|| format!("looking for {}", program.display()))?;
        differs |= compare(&root, &program, options)?;
    }
    Ok(if differs { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The tests of the runtime's portable files, a calculator in C++, and what the tests of Rust's enumerations probe.
fn own_programs(root: &Path, scratch: &Path) -> Result<Vec<PathBuf>> {
    let runtime = root.join("runtime-c");
    let units = ["tests/units.c", "format.c", "histogram.c", "pretty.c", "float_text.c", "text.c"];
    let units = units.map(|file| runtime.join(file));
    let calculator = [root.join("tests/fixtures/user/calculator.cc")];
    for (compiler, made, sources) in [("gcc", "units", &units[..]), ("g++", "calculator", &calculator)] {
        let mut command = Command::new(compiler);
        command.args(["-g", "-O2", "-Wl,--build-id=sha1", "-o"]).arg(scratch.join(made)).args(sources);
        let output = command.output().with_context(|| format!("running {compiler}"))?;
        ensure!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(vec![scratch.join("units"), scratch.join("calculator"), user_programs::build(root)?.join("ledger")])
}

/// Whether values of the program differ.
fn compare(root: &Path, program: &Path, options: &Options) -> Result<bool> {
    let scratch = tempfile::tempdir()?;
    let expected =
        stable(by_gdb(scratch.path(), program, options, "")?, &by_gdb(scratch.path(), program, options, "1")?);
    let mut chosen: Vec<u64> = expected.keys().copied().collect();
    chosen.sort_unstable();
    let mut random = Random::new(options.seed);
    while chosen.len() > options.count {
        chosen.swap_remove(random.below(chosen.len()));
    }
    chosen.sort_unstable();
    let found = by_probes(root, scratch.path(), program, &chosen, &expected, options)?;
    let (mut same, mut ours, mut unknown, mut differences) = (0, 0, Vec::new(), Vec::new());
    let seen = chosen.iter().filter(|address| found.contains_key(address)).count();
    for address in &chosen {
        let Some(variables) = found.get(address) else { continue };
        for (variable, value) in variables {
            let innermost = variable.strip_prefix('$');
            let Some(theirs) = expected.get(address).and_then(|known| known.get(innermost.unwrap_or(variable))) else {
                continue;
            };
            let theirs = if innermost.is_some() { theirs.get(..1).unwrap_or_default() } else { theirs };
            let Some(value) = value else {
                if theirs.iter().all(|(_, number)| number.is_some()) {
                    unknown.push(format!("{address:#x} {variable}: unknown, and {theirs:x?} by gdb"));
                }
                continue;
            };
            let fits = |(bytes, number): &(u32, Option<u64>)| {
                let mask = u64::MAX >> (64 - 8 * bytes);
                *number == Some(value & mask)
            };
            let is_elsewhere =
                |(_, number): &(u32, Option<u64>)| number.is_some_and(|number| ELSEWHERE.contains(&number));
            if ELSEWHERE.contains(value) && theirs.iter().any(is_elsewhere) {
                continue;
            }
            match () {
                () if theirs.iter().any(fits) => same += 1,
                () if theirs.iter().all(|(_, number)| number.is_none()) => ours += 1,
                () => differences.push(format!("{address:#x} {variable}: {value:#x}, and {theirs:x?} by gdb")),
            }
        }
    }
    println!(
        "{}: {seen} of {} statements; {same} values agree, {} differ; {} only gdb knows, {ours} only probes",
        program.file_name().unwrap_or_default().to_string_lossy(),
        chosen.len(),
        differences.len(),
        unknown.len()
    );
    for lines in [&mut differences, &mut unknown] {
        lines.sort();
        lines.iter().take(MOST_SHOWN).for_each(|line| println!("  {line}"));
    }
    Ok(!differences.is_empty())
}

/// Without the values that differ in another run: those of memory that nothing has been stored in, times and the like.
fn stable(mut values: Values, other: &Values) -> Values {
    for (address, variables) in &mut values {
        variables.retain(|name, known| other.get(address).and_then(|other| other.get(name)) == Some(known));
    }
    values
}

/// `bind_now`: LD_BIND_NOW for the program, after which the dynamic linker leaves other things on the stack.
fn by_gdb(scratch: &Path, program: &Path, options: &Options, bind_now: &str) -> Result<Values> {
    let (script, out) = (scratch.join("agree.py"), scratch.join("values"));
    std::fs::write(&script, READER)?;
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-q", "-batch", "-x"]).arg(&script).arg("--args").arg(program);
    gdb.env("SEED", options.seed.to_string()).env("CANDIDATES", options.candidates.to_string());
    for file in &options.file {
        std::fs::copy(file, scratch.join(file.file_name().context("a file")?))?;
    }
    gdb.env("LD_BIND_NOW", bind_now);
    gdb.current_dir(scratch).env("ARGUMENTS", &options.arguments).env("OUT", &out).env("LC_ALL", "C");
    let output = gdb.output().context("running gdb")?;
    ensure!(out.exists(), "gdb: {}", String::from_utf8_lossy(&output.stderr));
    let mut values = Values::new();
    let mut at = None;
    for line in std::fs::read_to_string(&out)?.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["at", address] => at = Some(values.entry(hex(address).context("an address")?).or_default()),
            [name, bytes, value] => {
                let at = at.as_mut().context("a statement")?;
                at.entry(name.to_string()).or_default().push((bytes.parse()?, hex(value)));
            }
            // A name with a space.
            _ => {}
        }
    }
    Ok(values)
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// The numbers that `$$vars` shows at these statements, and the parts that gdb knows. A part that is not defined is missing, one that cannot be read
/// has no number.
fn by_probes(
    root: &Path,
    scratch: &Path,
    program: &Path,
    statements: &[u64],
    expected: &Values,
    options: &Options,
) -> Result<HashMap<u64, HashMap<String, Option<u64>>>> {
    let mut script = String::from("global seen\n");
    for address in statements {
        let path = program.display();
        writeln!(
            script,
            "probe process(\"{path}\").statement({address:#x}) ? {{ if (!seen[{address}]++) {{ printf(\"at {address:#x} %s\", $$vars)"
        )?;
        for part in expected.get(address).into_iter().flat_map(|known| known.keys()) {
            writeln!(
                script,
                "  if (@defined(${part})) try {{ printf(\" ${part}=0x%x\", ${part}) }} catch {{ print(\" ${part}=?\") }} else print(\" ${part}=undefined\")"
            )?;
        }
        writeln!(script, "  print(\"\\n\") }} }}")?;
    }
    let text = scratch.join("agree.stp");
    std::fs::write(&text, script)?;
    let release = Place::find(None)?.kernel.release.clone();
    let spile = root.join("target/debug/spile");
    let limits = ["-DMAXMAPENTRIES=1000", "-DMAXACTION=10000", "-DSTP_NO_OVERLOAD"];
    let mut compile = Command::new(spile);
    compile.args(["-w", "-p4", "-m", "agree", "-r", &release]).args(limits).arg(&text).current_dir(scratch);
    let output = compile.output()?;
    ensure!(output.status.success(), "spile: {}", String::from_utf8_lossy(&output.stderr));
    let mut guest = Command::new(crate::tree::own_program());
    guest.args(["guest", "--file"]).arg(scratch.join("agree.ko")).arg("--program").arg(program);
    for file in &options.file {
        guest.arg("--file").arg(file);
    }
    guest.arg(format!(
        "echo 0 >/proc/sys/kernel/randomize_va_space; cd /root && spilerun agree.ko -c '{} {} >/dev/null'",
        program.display(),
        options.arguments
    ));
    let output = guest.output()?;
    let out = String::from_utf8_lossy(&output.stdout);
    let mut found = HashMap::new();
    for line in out.lines() {
        let Some((address, variables)) = line.strip_prefix("at ").and_then(|rest| rest.split_once(' ')) else {
            continue;
        };
        let numbers = variables.split(' ').filter_map(|variable| {
            let (name, value) = variable.split_once('=')?;
            let number = hex(value);
            (number.is_some() || value == "?" || value == "undefined").then(|| (name.to_string(), number))
        });
        let mut named: HashMap<String, Option<u64>> = HashMap::new();
        let mut several = HashSet::new();
        for (name, number) in numbers {
            if named.insert(name.clone(), number).is_some() {
                several.insert(name);
            }
        }
        // Of one name in several blocks it is not known which is which.
        named.retain(|name, _| !several.contains(name));
        found.insert(hex(address).context("an address")?, named);
    }
    ensure!(!found.is_empty(), "nothing was hit:\n{out}{}", String::from_utf8_lossy(&output.stderr));
    Ok(found)
}
