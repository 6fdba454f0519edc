// SPDX-License-Identifier: GPL-2.0-or-later

//! The parameters of the call that is being typed.

use lsp_types::{
    Documentation, MarkupContent, MarkupKind, ParameterInformation, ParameterLabel, SignatureHelp, SignatureInformation,
};
use spile_core::{builtin, library};
use spile_syntax::words::WordKind;

use crate::language::{self, Signature};
use crate::scan::{ItemKind, Scan};
use crate::text::number;
use crate::workspace::Workspace;

/// The innermost call that is open at the offset: the word before its parenthesis, and the number of commas after it.
fn call(scan: &Scan, offset: usize) -> Option<(usize, usize)> {
    let mut at = scan.words.partition_point(|word| word.range.end <= offset);
    let (mut depth, mut commas) = (0usize, 0usize);
    while let Some(index) = at.checked_sub(1) {
        at = index;
        if scan.kind(at) != Some(WordKind::Operator) {
            continue;
        }
        match scan.word(at) {
            ")" | "]" => depth += 1,
            "[" if depth == 0 => commas = 0,
            "(" if depth == 0 => {
                let name = at.checked_sub(1)?;
                if matches!(scan.kind(name), Some(WordKind::Name | WordKind::At)) {
                    return Some((name, commas));
                }
                // Parentheses around an operand.
                commas = 0;
            }
            "(" | "[" => depth -= 1,
            "," if depth == 0 => commas += 1,
            "{" | "}" | ";" => return None,
            _ => {}
        }
    }
    None
}

fn signatures(workspace: &Workspace, scan: &Scan, name: &str) -> Vec<Signature> {
    let mut found = Vec::new();
    if let Some(bare) = name.strip_prefix('@') {
        for item in scan.items.iter().filter(|item| item.kind == ItemKind::Macro) {
            if item.names.first().is_some_and(|at| scan.word(*at) == bare) {
                let parameters: Vec<&str> = item.parameters.iter().map(|at| scan.word(*at)).collect();
                found.push(Signature::new(&format!("@{bare}({})", parameters.join(", ")), ""));
            }
        }
        for known in workspace.parsed().macros.iter().filter(|known| known.name == bare) {
            let parameters = known.parameters.as_ref().map(|all| all.join(", ")).unwrap_or_default();
            found.push(Signature::new(&format!("@{bare}({parameters})"), &known.doc));
        }
    }
    for item in scan.items.iter().filter(|item| item.kind == ItemKind::Function) {
        if item.names.first().is_some_and(|at| scan.word(*at) == name) {
            let range = scan.bytes(&(item.names.first().copied().unwrap_or_default()..item.body.start));
            let text = scan.text().get(range.clone()).unwrap_or_default();
            let start = scan.bytes(&item.words).start;
            found.push(Signature::new(text.trim(), &library::comment(scan.text(), start)));
        }
    }
    if found.is_empty() {
        let functions = workspace.functions(name);
        found.extend(functions.iter().map(|found| Signature::new(&library::signature(found.function), &found.doc)));
        let builtins = builtin::offered().filter(|builtin| builtin.name == name);
        found.extend(builtins.map(|builtin| Signature::new(&builtin.signature(), builtin.doc)));
        found.extend(language::find(name).map(|entry| Signature::new(entry.usage, entry.doc)));
    }
    found
}

/// The signatures of the call at the offset.
pub fn help(workspace: &Workspace, scan: &Scan, offset: usize) -> Option<SignatureHelp> {
    if scan.in_comment(offset) {
        return None;
    }
    let (name, commas) = call(scan, offset)?;
    let mut found = signatures(workspace, scan, scan.word(name));
    if found.is_empty() {
        return None;
    }
    found.sort_by_key(|signature| signature.parameters.len());
    found.dedup();
    // The shortest one that has the argument.
    let active = found.iter().position(|signature| signature.parameters.len() > commas).unwrap_or(found.len() - 1);
    let last = found.get(active).map_or(0, |signature| signature.parameters.len().saturating_sub(1));
    // printf takes any number of arguments.
    let parameter = commas.min(last);
    Some(SignatureHelp {
        signatures: found.into_iter().map(information).collect(),
        active_signature: Some(number(active)),
        active_parameter: Some(number(parameter)),
    })
}

fn information(signature: Signature) -> SignatureInformation {
    // A function may have tens of thousands: each is counted from the one before.
    let (mut counted, mut column) = (0, 0);
    let mut units = |offset: usize| {
        column += signature.label.get(counted..offset).unwrap_or_default().encode_utf16().count();
        counted = offset.max(counted);
        number(column)
    };
    let parameters = signature.parameters.iter().map(|range| ParameterInformation {
        label: ParameterLabel::LabelOffsets([units(range.start), units(range.end)]),
        documentation: None,
    });
    let parameters = Some(parameters.collect());
    let documentation =
        Documentation::MarkupContent(MarkupContent { kind: MarkupKind::Markdown, value: signature.doc.clone() });
    SignatureInformation {
        parameters,
        documentation: (!signature.doc.is_empty()).then_some(documentation),
        label: signature.label.clone(),
        active_parameter: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::for_tests;

    fn shown(text: &str) -> Option<(String, u32)> {
        let offset = text.find('|').unwrap();
        let script = text.replacen('|', "", 1);
        let found = help(&Workspace::open(for_tests()), &Scan::new(&script), offset)?;
        let active = found.active_signature.unwrap() as usize;
        Some((found.signatures[active].label.clone(), found.active_parameter.unwrap()))
    }

    #[test]
    fn many_parameters_cost_in_proportion() {
        let names: Vec<String> = (0..30_000).map(|at| format!("parameter_{at}")).collect();
        let began = std::time::Instant::now();
        let (label, _) = shown(&format!("function f({}) {{ return 1 }} probe begin {{ f(|", names.join(", "))).unwrap();
        assert!(label.len() > 400_000 && began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }

    #[test]
    fn the_innermost_call() {
        let (label, parameter) = shown("probe begin { x = substr(f(1, 2), |").unwrap();
        assert!(label.starts_with("substr:string ("), "{label}");
        assert_eq!(parameter, 1);
        assert_eq!(shown("probe begin { printf(\"%d %d\", 1, 2, |) }").unwrap().1, 2);
        assert_eq!(shown("function f(a, b) { }\nprobe begin { f(1, (2|").unwrap(), ("f(a, b)".into(), 1));
        assert_eq!(shown("probe begin { @hist_linear(a[1, 2], |").unwrap().1, 1);
        assert_eq!(shown("@define m(p, q) %( @p %)\nprobe begin { @m(|").unwrap(), ("@m(p, q)".into(), 0));
        assert_eq!(shown("probe begin { x = 1; |"), None);
        assert_eq!(shown("probe begin { no_such(|"), None);
    }
}
