// SPDX-License-Identifier: GPL-2.0-or-later

//! The built-in library: every file of it parses, none is missing from the program, and none of its functions hides a
//! builtin, which other functions may mean.

use spile_source::{Origin, SourceMap};
use spile_syntax::ast::Item;
use spile_syntax::{self as syntax, Environment, Macros};

#[test]
fn every_file_parses() {
    let mut sources = SourceMap::new();
    let mut macros = Macros::default();
    let environment = Environment::default();
    let (shared, scripts): (Vec<_>, Vec<_>) =
        spile_core::library::embedded_tapset().into_iter().partition(|(name, _)| name.ends_with(".stpm"));
    assert!(scripts.len() > 20 && !shared.is_empty());
    for (name, bytes) in shared {
        let file = sources.add(name.clone(), bytes.to_vec(), Origin::Tapset);
        let problems = syntax::collect_macros(&mut sources, file, &environment, &mut macros);
        assert!(problems.is_empty(), "{name}: {problems:?}");
    }
    for (name, bytes) in scripts {
        let file = sources.add(name.clone(), bytes.to_vec(), Origin::Tapset);
        let (script, problems) = syntax::parse(&mut sources, file, &environment, &macros);
        assert!(problems.is_empty(), "{name}: {problems:?}");
        assert!(!script.items.is_empty(), "{name}");
        for item in &script.items {
            if let Item::Function(function) = item {
                let hidden = spile_core::builtin::find(&function.name.text, function.parameters.len());
                assert!(hidden.is_none(), "{name}: {} hides a builtin", function.name.text);
            }
        }
    }
}
