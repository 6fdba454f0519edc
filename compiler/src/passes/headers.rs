// SPDX-License-Identifier: GPL-2.0-or-later

//! Types of headers that are not the kernel's: `@cast(p, "timeval", "<sys/time.h>")`. The C compiler makes debug information
//! of all types that such headers declare.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use spile_base::programs;
use spile_syntax::ast::{Block, Expr, ExprKind, FunctionBody, Item, Script};
use spile_syntax::visit;

/// The headers that casts name, each as written, with its brackets or quotes: `<sys/time.h>`.
pub(super) fn wanted(scripts: &[Script]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut see = |expr: &Expr| {
        if let ExprKind::Cast { module: Some(modules), .. } = &expr.kind {
            let modules = String::from_utf8_lossy(modules).into_owned();
            let headers = modules.split(':').filter(|module| module.starts_with(['<', '"']) && !module.contains('\n'));
            found.extend(headers.map(str::to_string));
        }
    };
    let mut look = |block: &Block| visit::expressions(block, &mut see);
    for item in scripts.iter().flat_map(|script| &script.items) {
        match item {
            Item::Probe(probe) => look(&probe.body),
            Item::Alias(alias) => alias.prologue.iter().chain(&alias.epilogue).for_each(&mut look),
            Item::Function(function) => {
                if let FunctionBody::Script(block) = &function.body {
                    look(block);
                }
            }
            Item::Global(_) | Item::EmbeddedC(_) => {}
        }
    }
    found
}

/// Object files that the C compiler made of headers.
#[derive(Default)]
pub(super) struct Compiled {
    /// A file with the types of each; headers that do not compile are left out.
    pub objects: HashMap<String, PathBuf>,
    /// All files that were read for them.
    pub inputs: Vec<PathBuf>,
}

/// Compiles the headers; the files are written to `directory`.
pub(super) fn compile(headers: &BTreeSet<String>, directory: &Path) -> Compiled {
    let mut inputs = Vec::new();
    let compiled = headers.iter().enumerate().filter_map(|(number, header)| {
        let (source, object) =
            (directory.join(format!("headers{number}.c")), directory.join(format!("headers{number}.o")));
        // `<linux/a.h><linux/b.h>` are two.
        let lines: String = header.replace("><", ">\n<").lines().map(|name| format!("#include {name}\n")).collect();
        std::fs::write(&source, lines).ok()?;
        let mut compiler = Command::new("gcc");
        let rule = directory.join(format!("headers{number}.d"));
        compiler
            .arg("-MD")
            .arg("-MF")
            .arg(&rule)
            .args(["-g", "-gz=none", "-fno-eliminate-unused-debug-types", "-c", "-o"])
            .arg(&object)
            .arg(&source);
        let made = programs::status(compiler.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()));
        let read = std::fs::read_to_string(&rule).unwrap_or_default();
        inputs.extend(prerequisites(&read).filter(|path| *path != source));
        made.is_ok_and(|status| status.success()).then(|| (header.clone(), object))
    });
    let objects = compiled.collect();
    Compiled { objects, inputs }
}

/// The files after the colon of a make rule, as GCC writes it: blanks in names have a backslash, and so do line ends within
/// the rule.
fn prerequisites(rule: &str) -> impl Iterator<Item = PathBuf> {
    let (_, files) = rule.split_once(": ").unwrap_or_default();
    let files = files.replace("\\\n", " ").replace("\\ ", "\0");
    let names: Vec<PathBuf> = files.split_whitespace().map(|name| name.replace('\0', " ").into()).collect();
    names.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_rule() {
        let rule = "/tmp/a/headers0.o: /tmp/a/headers0.c /usr/include/stdc-predef.h \\\n /my\\ place/x.h\n";
        let files: Vec<PathBuf> = prerequisites(rule).collect();
        assert_eq!(files, ["/tmp/a/headers0.c", "/usr/include/stdc-predef.h", "/my place/x.h"].map(PathBuf::from));
        assert_eq!(prerequisites("").count(), 0);
    }
}
