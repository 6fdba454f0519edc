// SPDX-License-Identifier: GPL-2.0-or-later

//! How long it takes from a script to its module: runs of `spile -p4`, each beside a run of the same script with
//! `--kbuild`, in a cache and a directory of their own.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

use super::compiler::{self, Compiler, Options, Run};
use super::median;

/// The preparation of a run, on the cache that earlier runs left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// The script is one that was never seen.
    Nothing,
    /// The very same script was compiled.
    SameScript,
    EmptyCache,
}

struct Case {
    name: &'static str,
    before: Before,
    /// `NUMBER` becomes a number of the run.
    script: &'static str,
    /// The case is measured in one of this many rounds.
    share: usize,
    /// Time of SystemTap 5.6 for it, in ms; from the project's measurements on the same class of machine.
    systemtap: Option<f64>,
}

const PLAIN: &str = "probe begin { println(NUMBER) exit() }";
const FUNCTION: &str = "global n\nprobe kernel.function(\"vfs_read\") { n++ }\nprobe end { println(n, NUMBER) }";
const EMBEDDED: &str =
    "function plus:long (x:long) %{ STAP_RETURN(STAP_ARG_x + NUMBER); %}\nprobe begin { println(plus(1)) exit() }";
const SAME_EMBEDDED: &str =
    "function plus:long (x:long) %{ STAP_RETURN(STAP_ARG_x + 7); %} probe begin { println(plus(NUMBER)) exit() }";
const MANY: &str = "global n\nprobe kernel.function(\"*@fs/*.c\").call { n++ }\nprobe end { println(n, NUMBER) }";

const CASES: [Case; 8] = [
    Case {
        name: "first script on an empty cache",
        before: Before::EmptyCache,
        script: PLAIN,
        share: 3,
        systemtap: Some(9500.0),
    },
    Case { name: "new script", before: Before::Nothing, script: PLAIN, share: 1, systemtap: Some(1680.0) },
    Case {
        name: "new script with a kernel function",
        before: Before::Nothing,
        script: FUNCTION,
        share: 1,
        systemtap: Some(1680.0),
    },
    Case {
        name: "new script with new embedded C",
        before: Before::Nothing,
        script: EMBEDDED,
        share: 1,
        systemtap: Some(1680.0),
    },
    Case {
        name: "new script with the same embedded C",
        before: Before::Nothing,
        script: SAME_EMBEDDED,
        share: 1,
        systemtap: Some(1680.0),
    },
    Case { name: "script built before", before: Before::SameScript, script: PLAIN, share: 1, systemtap: None },
    Case {
        name: "the same with a kernel function",
        before: Before::SameScript,
        script: FUNCTION,
        share: 1,
        systemtap: None,
    },
    Case {
        name: "new script with 4,081 probes, all functions of fs/*.c",
        before: Before::Nothing,
        script: MANY,
        share: 3,
        systemtap: None,
    },
];

/// Medians of a case.
struct Measured {
    case: &'static Case,
    ours: f64,
    best: f64,
    cpu: f64,
    kbuild: f64,
    kbuild_cpu: f64,
    /// Median of the ratios of pairs, Kbuild's time to ours.
    ratio: f64,
    peak_mib: f64,
}

/// Measures builds, and writes the page in docs/.
pub fn run(options: &Options) -> Result<ExitCode> {
    let compiler = Compiler::new(options)?;
    let mut results = Vec::new();
    for (number, case) in CASES.iter().enumerate() {
        let result = measure(&compiler, case, 1000 * number, options.rounds.div_ceil(case.share).max(1))?;
        println!("{}", row(&result));
        results.push(result);
    }
    compiler::publish("build", options, &page(&compiler, options, &results))?;
    Ok(ExitCode::SUCCESS)
}

/// Scripts of the case are numbered from `first`: no other case has them.
fn measure(compiler: &Compiler, case: &'static Case, first: usize, rounds: usize) -> Result<Measured> {
    let cache = |way: &str| compiler.directory.path().join(format!("cache-{way}"));
    // Every case except the empty cache begins with a known kernel.
    for way in ["fast", "kbuild"] {
        compile(compiler, "probe begin { exit() }", &cache(way), way == "kbuild").with_context(|| case.name)?;
        compile(compiler, &case.script.replace("NUMBER", &(first + 999).to_string()), &cache(way), way == "kbuild")
            .with_context(|| case.name)?;
    }
    let mut pairs = Vec::new();
    for round in 0..rounds {
        let script = case.script.replace("NUMBER", &(first + round).to_string());
        let mut pair = Vec::new();
        for way in ["fast", "kbuild"] {
            let (cache, kbuild) = (cache(way), way == "kbuild");
            match case.before {
                Before::Nothing => {}
                Before::SameScript => drop(compile(compiler, &script, &cache, kbuild)?),
                Before::EmptyCache => std::fs::remove_dir_all(&cache)?,
            }
            pair.push(compile(compiler, &script, &cache, kbuild)?);
        }
        pairs.push(pair);
    }
    let all = |value: &dyn Fn(&[Run]) -> f64| median(pairs.iter().map(|pair| value(pair)).collect());
    Ok(Measured {
        case,
        ours: all(&|pair| pair[0].ms),
        best: pairs.iter().map(|pair| pair[0].ms).fold(f64::INFINITY, f64::min),
        cpu: all(&|pair| pair[0].cpu_ms),
        kbuild: all(&|pair| pair[1].ms),
        kbuild_cpu: all(&|pair| pair[1].cpu_ms),
        ratio: all(&|pair| pair[1].ms / pair[0].ms),
        peak_mib: all(&|pair| pair[0].peak_mib),
    })
}

fn compile(compiler: &Compiler, script: &str, cache: &Path, kbuild: bool) -> Result<Run> {
    compiler.run(cache, ["-g", "-p4", "-m", "bench", "-e", script].into_iter().chain(kbuild.then_some("--kbuild")))
}

fn row(result: &Measured) -> String {
    let systemtap = result.case.systemtap.map_or("-".into(), |ms| format!("{ms} ms"));
    format!(
        "| {} | {:.0} ms | {:.0} ms | {:.0} ms | {:.0} ms | {:.0} ms | {:.1} | {systemtap} | {:.0} MiB |",
        result.case.name,
        result.ours,
        result.best,
        result.cpu,
        result.kbuild,
        result.kbuild_cpu,
        result.ratio,
        result.peak_mib
    )
}

fn page(compiler: &Compiler, options: &Options, results: &[Measured]) -> String {
    let rows: String = results.iter().map(|result| format!("{}\n", row(result))).collect();
    format!(
        "# Build times

{} Times are of the
whole command `spile -p4`, a release build; CPU time includes the programs that spile runs.
\"Kbuild\" is the same script with `--kbuild`, run right after: the kernel's make links it with the runtime. The ratio is the median of
Kbuild's time to spile's in these pairs. Memory is the peak of spile itself.

| case | median | best | CPU time | Kbuild: median | CPU time | ratio | SystemTap 5.6 | memory |
|---|---|---|---|---|---|---|---|---|
{rows}
SystemTap's figures were measured earlier on an idle machine of the same class: 9.5 s for the first module, 1.68 s for each new script.
Debian's SystemTap 4.8 builds no module for Debian's kernel 6.1, so there is no paired run. `spile -p4 --time-report` shows where
the time of a script goes.
",
        compiler::conditions("build", options, &compiler.release)
    )
}
