// SPDX-License-Identifier: GPL-2.0-or-later

//! `--from-bpftrace PROGRAM`: the script that does the same.

use std::path::{Path, PathBuf};

use super::describe;
use crate::cli::options::Script;
use crate::outcome::Outcome;
use crate::passes::parse;
use crate::reporter::Failed;
use crate::session::Session;

/// Prints the script; if there is none, only the reasons.
pub(super) fn translate(session: &mut Session, program: &str) -> Result<Outcome, Failed> {
    let given = match program {
        "-" => Script::Stdin,
        // No program is a path: each has a brace.
        _ if Path::new(program).exists() || !program.contains('{') => Script::File(PathBuf::from(program)),
        _ => Script::Text(program.to_string()),
    };
    let file = parse::read(session, &given)?;
    let text = session.sources.file(file).text.clone();
    match spile_bpftrace::translate(file, &text, &library) {
        Ok(script) => describe::print(script.as_bytes()),
        Err(problems) => {
            session.reporter.diagnose(&session.sources, "Translation", &problems)?;
            describe::print(b"")
        }
    }
}

/// Where shared libraries are, the usual directory of the machine first.
const DIRECTORIES: [&str; 6] =
    ["/lib64", "/usr/lib64", "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib", "/usr/lib"];

/// The file of a library that is named without its directory, and perhaps without its version: `libc`, `libssl.so.3`.
fn library(name: &str) -> Option<String> {
    let begins = if name.contains(".so") { name.to_string() } else { format!("{name}.so.") };
    DIRECTORIES.iter().find_map(|directory| {
        let entries = std::fs::read_dir(directory).ok()?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        // The shortest is the one that programs are linked with: libc.so.6.
        let found = names.filter(|file| file.starts_with(&begins)).min_by_key(String::len)?;
        Some(format!("{directory}/{found}"))
    })
}
