// SPDX-License-Identifier: GPL-2.0-or-later

//! Whole scripts parse: those of Debian's systemtap-doc and systemtap-common, where installed, and this project's own.

use std::path::{Path, PathBuf};

use super::*;

const EXAMPLES: [&str; 2] = ["/usr/share/systemtap/examples", "/usr/share/doc/systemtap/examples"];
const TAPSET: &str = "/usr/share/systemtap/tapset";

/// Files below a directory with one of these endings, sorted.
fn files(directory: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_path_buf()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if endings.iter().any(|end| path.to_string_lossy().ends_with(end)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Replacements for systemtap-common, where it is not installed.
const LIBRARY: &str = "
    @define choose_defined(a, b) %( (@defined(@a) ? @a : @b) %)
    @define container_of(p, t, m) %( @cast(@p, @t) %)
    @define task %( @cast(p, \"struct task_struct\") %)
    @define this1 %( t[1] %)
";

/// The macros of a library: those of all its `.stpm` files, of any architecture; all parse.
fn library(sources: &mut SourceMap, environment: &Environment) -> Macros {
    let mut macros = Macros::default();
    let mut texts: Vec<(String, Vec<u8>)> = Vec::new();
    for path in files(Path::new(TAPSET), &[".stpm"]) {
        // Macros of the same names for another architecture or runtime.
        let foreign = path.components().skip_while(|part| part.as_os_str() != "tapset").nth(2).is_some();
        let native = path.starts_with(Path::new(TAPSET).join("linux"));
        if !foreign || native {
            texts.push((path.to_string_lossy().into_owned(), std::fs::read(&path).unwrap_or_default()));
        }
    }
    if texts.is_empty() {
        texts.push(("library.stpm".into(), LIBRARY.into()));
    }
    for (name, text) in texts {
        let file = sources.add(name, text, Origin::Tapset);
        let problems = collect_macros(sources, file, environment, &mut macros);
        let shown: String = problems.iter().map(|problem| render(sources, problem, false)).collect();
        assert_eq!(shown, "");
    }
    macros
}

/// Candidate arguments for scripts: the first set without an error is used.
const ARGUMENTS: [&[&str]; 4] = [&[], &["1"; 9], &["vfs.read"; 9], &["vfs.read", "vfs.read", "1"]];

/// Scripts in which SystemTap 4.8 reports an error too: the handlers of the first are written as `{...}`.
const BROKEN: [&str; 1] = ["security-bandaid-template.stp"];

#[test]
fn example_scripts_parse() {
    let found: Vec<PathBuf> =
        EXAMPLES.iter().flat_map(|directory| files(Path::new(directory), &[".stp", ".stp.gz"])).collect();
    let sound = found.iter().filter(|path| !BROKEN.iter().any(|broken| path.ends_with(broken)));
    let mut failures = Vec::new();
    for path in sound {
        let Ok(mut bytes) = std::fs::read(path) else { continue };
        if bytes.starts_with(&[0x1f, 0x8b]) {
            let mut text = Vec::new();
            if std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut text).is_err() {
                continue;
            }
            bytes = text;
        }
        let attempts = ARGUMENTS.map(|arguments| errors(path, &bytes, Origin::User, arguments));
        if attempts.iter().all(|errors| !errors.is_empty()) {
            failures.extend(attempts.into_iter().last());
        }
    }
    println!("{} example scripts, {} do not parse", found.len(), failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Every file of SystemTap's library, including those of other architectures and runtimes.
#[test]
fn library_scripts_parse() {
    let found = files(Path::new(TAPSET), &[".stp"]);
    let failures: Vec<String> = found
        .iter()
        .map(|path| errors(path, &std::fs::read(path).unwrap_or_default(), Origin::Tapset, &[]))
        .filter(|errors| !errors.is_empty())
        .collect();
    println!("{} library scripts, {} do not parse", found.len(), failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// All messages for one script.
fn errors(path: &Path, bytes: &[u8], origin: Origin, arguments: &[&str]) -> String {
    let mut sources = SourceMap::new();
    let arguments = arguments.iter().map(ToString::to_string).collect();
    let environment = Environment { arguments, ..environment() };
    let macros = library(&mut sources, &environment);
    let file = sources.add(path.to_string_lossy(), bytes.to_vec(), origin);
    let (_, diagnostics) = parse(&mut sources, file, &environment, &macros);
    diagnostics.iter().map(|diagnostic| render(&sources, diagnostic, false)).collect()
}

/// The project's library, examples and tests; those of messages have errors on purpose.
#[test]
fn own_scripts_parse() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let found = ["tapset", "examples", "tests"].iter().flat_map(|directory| files(&root.join(directory), &[".stp"]));
    let environment = Environment { arguments: vec!["1".to_string(); 9], ..environment() };
    let mut failures = String::new();
    for path in found.filter(|path| !path.components().any(|part| part.as_os_str() == "diagnostic")) {
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let mut sources = SourceMap::new();
        let mut macros = Macros::default();
        let libraries = ["tapset", "tests/fixtures/library"].map(|directory| std::fs::read_dir(root.join(directory)));
        for library in libraries.into_iter().flatten().flatten().flatten() {
            if library.path().extension().is_some_and(|extension| extension == "stpm")
                && let Ok(text) = std::fs::read(library.path())
            {
                let file = sources.add(library.path().to_string_lossy(), text, Origin::Tapset);
                let problems = collect_macros(&mut sources, file, &environment, &mut macros);
                failures.extend(problems.iter().map(|problem| render(&sources, problem, false)));
            }
        }
        let file = sources.add(path.to_string_lossy(), bytes, Origin::User);
        let (_, diagnostics) = parse(&mut sources, file, &environment, &macros);
        failures.extend(diagnostics.iter().map(|diagnostic| render(&sources, diagnostic, false)));
    }
    assert!(failures.is_empty(), "{failures}");
}
