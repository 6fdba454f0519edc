// SPDX-License-Identifier: GPL-2.0-or-later

//! Types of headers that are not the kernel's: `@cast(p, "timeval", "<sys/time.h>")`. The C compiler makes debug information
//! of all types that such headers declare.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use spile_syntax::ast::{Block, Expr, ExprKind, FunctionBody, Item, Script};
use spile_syntax::visit;

/// The headers that casts name, each as it is written between and with its brackets or quotes: `<sys/time.h>`.
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

/// Files in `directory` with the types of the headers; those that do not compile are left out.
pub(super) fn compile(headers: &BTreeSet<String>, directory: &Path) -> HashMap<String, PathBuf> {
    let compiled = headers.iter().enumerate().filter_map(|(number, header)| {
        let (source, object) =
            (directory.join(format!("headers{number}.c")), directory.join(format!("headers{number}.o")));
        // `<linux/a.h><linux/b.h>` are two.
        let lines: String = header.replace("><", ">\n<").lines().map(|name| format!("#include {name}\n")).collect();
        std::fs::write(&source, lines).ok()?;
        let mut compiler = Command::new("gcc");
        compiler.args(["-g", "-gz=none", "-fno-eliminate-unused-debug-types", "-c", "-o"]).arg(&object).arg(&source);
        let made = compiler.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        made.is_ok_and(|status| status.success()).then(|| (header.clone(), object))
    });
    compiled.collect()
}
