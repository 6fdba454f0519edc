//! Generates the parser from `src/syntax/grammar.lalrpop`.

fn main() {
    println!("cargo::rerun-if-changed=src/syntax/grammar.lalrpop");
    println!("cargo::rerun-if-changed=build.rs");
    // What include_dir! takes in: it sees files change, but none come or go.
    for directory in ["src/diagnostic/pages", "../runtime-c", "../tapset"] {
        println!("cargo::rerun-if-changed={directory}");
    }
    if let Err(error) = lalrpop::Configuration::new()
        .use_cargo_dir_conventions()
        .emit_rerun_directives(false)
        .process_file("src/syntax/grammar.lalrpop")
    {
        panic!("generating the parser: {error}");
    }
}
