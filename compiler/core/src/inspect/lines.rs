// SPDX-License-Identifier: GPL-2.0-or-later

//! `--list-lines`: the source lines of functions, marking those that can be probed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::probe::{self, PointError, Resolver, Site, TypedLocation};
use spile_source::Span;
use spile_syntax::ast::{Component, Literal};

/// Directories that may contain the source text.
pub struct Sources {
    /// Given by the user: here a file is also searched by the end of its path.
    pub given: Vec<PathBuf>,
    /// Where packages install it.
    pub known: Vec<PathBuf>,
}

#[derive(Default)]
/// The lines of a listing, and the files that were missing for it.
pub struct Listing {
    /// In the order of the sources.
    pub lines: Vec<String>,
    /// Files whose text was not found, as the debug information names them.
    pub without_text: BTreeSet<String>,
}

/// The lines of the functions that a point such as `kernel.function("f")` names.
///
/// Each function has a heading, and a line for each source line from its first to the last one with code: `  452 *
/// $file:struct file*` can be probed, by `.statement("f@fs/x.c:452")`. If that probes several addresses, their number is in
/// front of the variables.
pub fn listing(
    components: &[Component],
    span: Span,
    resolver: &mut Resolver,
    sources: &Sources,
) -> Result<Listing, PointError> {
    let Some(last) = components.last() else { return Ok(Listing::default()) };
    // The kernel, a module, a program, or a library of that.
    let owner = components.iter().take_while(|part| part.name != "function" && part.name != "statement");
    let owner: Vec<Component> = owner.cloned().collect();
    let mut functions: BTreeMap<(String, String, u32), Option<String>> = BTreeMap::new();
    for site in probe::resolve(components, span, resolver)? {
        let Some(code) = site.context.code() else { continue };
        let Ok(debug) = code.object.debug() else { continue };
        let Ok(function) = debug.function(code.function) else { continue };
        functions.insert((function.file, function.name, function.line), debug.compiled_in(code.function));
    }
    let mut listing = Listing::default();
    for ((file, name, line), compiled_in) in functions {
        let text = format!("{name}@{file}:*");
        let statements =
            Component { name: "statement".into(), argument: Some(Literal::String(text.into_bytes())), ..last.clone() };
        // Of several functions one may have no line that is its own.
        let Ok(sites) = probe::resolve(&[owner.as_slice(), &[statements]].concat(), span, resolver) else { continue };
        let text = Text::find(sources, &file, compiled_in.as_deref());
        listing.lines.extend(of_function(&name, &file, line, &sites, &text));
        if text.0.is_empty() {
            listing.without_text.insert(file);
        }
    }
    Ok(listing)
}

fn of_function(name: &str, file: &str, first: u32, sites: &[Site], text: &Text) -> Vec<String> {
    let mut probed: BTreeMap<u32, (usize, Vec<String>)> = BTreeMap::new();
    for site in sites {
        let Some(line) = line_of(&site.point) else { continue };
        let (addresses, readable) = probed.entry(line).or_default();
        *addresses += 1;
        for variable in readable_at(site) {
            if !readable.contains(&variable) {
                readable.push(variable);
            }
        }
    }
    let last = probed.keys().next_back().copied().unwrap_or(first);
    let mut lines = vec![format!("{name}@{file}:{first}")];
    for line in first..=last {
        let source = text.line(line);
        let mark = if probed.contains_key(&line) { '*' } else { ' ' };
        let variables =
            probed.get(&line).map(|(addresses, variables)| noted(*addresses, variables)).unwrap_or_default();
        match source {
            Some(source) => {
                lines.push(format!("{line:6} {mark} {source}").trim_end().to_string());
                if !variables.is_empty() {
                    lines.push(format!("         /* {variables} */"));
                }
            }
            None => lines.push(format!("{line:6} {mark} {variables}").trim_end().to_string()),
        }
    }
    lines
}

/// What is shown beside a line that can be probed.
fn noted(addresses: usize, variables: &[String]) -> String {
    let several = (addresses > 1).then(|| format!("({addresses} addresses)"));
    several.into_iter().chain(variables.iter().cloned()).collect::<Vec<_>>().join(" ")
}

fn readable_at(site: &Site) -> Vec<String> {
    let of = |(name, found): (String, TypedLocation)| {
        let debug = found.object.debug().ok()?;
        Some(format!("${name}:{}", debug.type_name(found.type_id)))
    };
    site.context.readable().into_iter().filter_map(of).collect()
}

/// `kernel.statement("f@fs/x.c:12")`
fn line_of(point: &str) -> Option<u32> {
    point.strip_suffix("\")")?.rsplit_once(':')?.1.parse().ok()
}

/// A source file, if it is installed.
struct Text(Vec<String>);

/// Source files are not larger.
const MAX_SOURCE: u64 = 16 << 20;

impl Text {
    /// `compiled_in`: programs are often compiled on the machine that has them.
    fn find(sources: &Sources, file: &str, compiled_in: Option<&str>) -> Text {
        let absolute = Path::new(file);
        let plain = file.trim_start_matches('/');
        // Longest part of the path first: a directory may hold several files of one name.
        let ends = std::iter::once(plain).chain(plain.match_indices('/').map(|(at, _)| plain.split_at(at + 1).1));
        let given = ends.flat_map(|end| sources.given.iter().map(move |directory| directory.join(end)));
        let known = sources.known.iter().map(|directory| directory.join(plain));
        let there = compiled_in.map(Path::new).filter(|directory| directory.is_absolute());
        let there = there.map(|directory| directory.join(file));
        let places = given.chain(absolute.is_absolute().then(|| absolute.to_path_buf())).chain(known).chain(there);
        let small =
            |path: &PathBuf| std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= MAX_SOURCE);
        let bytes = places.filter(small).find_map(|path| std::fs::read(path).ok()).unwrap_or_default();
        Text(String::from_utf8_lossy(&bytes).lines().map(|line| line.replace('\t', "    ")).collect())
    }

    fn line(&self, line: u32) -> Option<&str> {
        self.0.get((line as usize).checked_sub(1)?).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_text_by_line() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("fs")).unwrap();
        std::fs::write(directory.path().join("fs/x.c"), "int f(void)\n{\n\treturn 1;\n").unwrap();
        let sources = |given: &[&Path], known: &[&Path]| Sources {
            given: given.iter().map(PathBuf::from).collect(),
            known: known.iter().map(PathBuf::from).collect(),
        };
        let here = directory.path();
        let text = Text::find(&sources(&[], &[here]), "fs/x.c", None);
        assert_eq!((text.line(3), text.line(4), text.line(0)), (Some("    return 1;"), None, None));
        // A directory given by the user may begin anywhere in the path of the debug information.
        std::fs::create_dir(here.join("other")).unwrap();
        std::fs::write(here.join("other/x.c"), "other\n").unwrap();
        let first = |sources: &Sources, file: &str| Text::find(sources, file, None).line(1).map(str::to_string);
        assert_eq!(first(&sources(&[here], &[]), "/build/linux-6.1/fs/x.c").as_deref(), Some("int f(void)"));
        assert_eq!(
            first(&sources(&[&here.join("fs")], &[]), "/build/linux-6.1/fs/x.c").as_deref(),
            Some("int f(void)")
        );
        assert_eq!(first(&sources(&[&here.join("other")], &[here]), "fs/x.c").as_deref(), Some("other"));
        assert_eq!(first(&sources(&[], &[here]), "/build/linux-6.1/fs/x.c"), None);
        let compiled = |directory: &Path| Text::find(&sources(&[], &[]), "x.c", directory.to_str());
        assert_eq!(compiled(&here.join("other")).line(1), Some("other"));
        assert_eq!(compiled(Path::new("other")).line(1), None);
        assert_eq!(line_of("kernel.statement(\"f@fs/x.c:12\")"), Some(12));
        assert_eq!(noted(1, &["$a:int".into(), "$b:int".into()]), "$a:int $b:int");
        assert_eq!(noted(3, &["$a:int".into()]), "(3 addresses) $a:int");
        let lines = of_function("f", "fs/x.c", 1, &[], &text);
        assert_eq!(lines, ["f@fs/x.c:1", "     1   int f(void)"]);
    }
}
