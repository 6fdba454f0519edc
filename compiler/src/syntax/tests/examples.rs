//! Whole scripts parse: those that Debian's systemtap-doc brings, where it is installed, and this project's own.

use std::path::{Path, PathBuf};

use super::*;

const DIRECTORIES: [&str; 2] = ["/usr/share/systemtap/examples", "/usr/share/doc/systemtap/examples"];

fn scripts(directory: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            scripts(&path, found);
        } else if [".stp", ".stp.gz"].iter().any(|end| path.to_string_lossy().ends_with(end)) {
            found.push(path);
        }
    }
}

/// Macros of the library that the scripts call, with stand-in bodies of the right shape.
const LIBRARY: &str = "
    @define choose_defined(a, b) %( (@defined(@a) ? @a : @b) %)
    @define container_of(p, t, m) %( @cast(@p, @t) %)
    @define module_container_of(p, k, t, m) %( @cast(@p, @t, @k) %)
    @define cast_module_sizeof(k, t) %( 8 %)
    @define task %( @cast(p, \"struct task_struct\") %)
    @define this1 %( t[1] %) @define this2 %( t[2] %) @define this3 %( t[3] %) @define this4 %( t[4] %) @define this5 %( t[5] %)
    @define json_output_data_start %( print(1) %) @define json_output_data_end %( print(2) %)
    @define json_output_array_numeric_value(a, b, c, d) %( print(1) %)
    @define prometheus_dump_array1(a, b, c) %( print(1) %)
    @define prometheus_dump_array1_map_unquoted(a, b, c, d, e) %( print(1) %)
    @define prometheus_dump_array2_map(a, b, c, d, e, f, g) %( print(1) %)
    @define prometheus_dump_array3(a, b, c, d, e) %( print(1) %)
    @define prometheus_dump_array3_map(a, b, c, d, e, f, g, h, i) %( print(1) %)
    @define prometheus_dump_array7(a, b, c, d, e, f, g, h, i) %( print(1) %)
";

/// What scripts may want as their arguments: the first set without an error is right.
const ARGUMENTS: [&[&str]; 4] = [&[], &["1"; 9], &["vfs.read"; 9], &["vfs.read", "vfs.read", "1"]];

/// Not a script: its handlers are written as `{...}`.
const TEMPLATE: &str = "security-bandaid-template.stp";

#[test]
fn example_scripts_parse() {
    let mut found = Vec::new();
    DIRECTORIES.iter().for_each(|directory| scripts(Path::new(directory), &mut found));
    let mut failures = Vec::new();
    for path in found.iter().filter(|path| !path.ends_with(TEMPLATE)) {
        let Ok(mut bytes) = std::fs::read(path) else { continue };
        if bytes.starts_with(&[0x1f, 0x8b]) {
            let mut text = Vec::new();
            if std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut text).is_err() {
                continue;
            }
            bytes = text;
        }
        let attempts = ARGUMENTS.map(|arguments| errors(path, &bytes, arguments));
        if attempts.iter().all(|errors| !errors.is_empty()) {
            failures.extend(attempts.into_iter().last());
        }
    }
    println!("{} scripts, {} do not parse", found.len(), failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// All messages for one script.
fn errors(path: &Path, bytes: &[u8], arguments: &[&str]) -> String {
    let mut sources = SourceMap::new();
    let arguments = arguments.iter().map(|text| text.to_string()).collect();
    let environment = Environment { arguments, ..environment() };
    let library = sources.add("library.stpm", LIBRARY.into(), Origin::Tapset);
    let mut macros = Macros::default();
    assert_eq!(collect_macros(&mut sources, library, &environment, &mut macros), []);
    let file = sources.add(path.to_string_lossy(), bytes.to_vec(), Origin::User);
    let (_, diagnostics) = parse(&mut sources, file, &environment, &macros);
    diagnostics.iter().map(|diagnostic| render(&sources, diagnostic, false)).collect()
}

/// The project's library, examples and tests; those of messages are wrong on purpose.
#[test]
fn own_scripts_parse() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    ["tapset", "examples", "tests"].iter().for_each(|directory| scripts(&root.join(directory), &mut found));
    let environment = Environment { arguments: vec!["1".to_string(); 9], ..environment() };
    let mut failures = String::new();
    for path in found.iter().filter(|path| !path.components().any(|part| part.as_os_str() == "diagnostic")) {
        let Ok(bytes) = std::fs::read(path) else { continue };
        let mut sources = SourceMap::new();
        let mut macros = Macros::default();
        for library in std::fs::read_dir(root.join("tapset")).into_iter().flatten().flatten() {
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
