//! Automata of patterns as tables of the module; runtime-c/regex.c interprets them.

use super::text;
use crate::program::Regex;
use crate::regex::Plain;

/// The tables of pattern number `index`, and the `struct spile_regex` that has them.
pub(super) fn emit(index: usize, regex: &Regex) -> String {
    let Plain { classes, next, at_end, start } = &regex.automaton;
    let mut unit = format!("/* =~ {} */\n", text::comment(&text::literal(&regex.pattern)));
    let ends: Vec<u16> = at_end.iter().map(|&end| u16::from(end)).collect();
    unit.push_str(&array("char", &format!("regex_{index}_classes"), &classes.of.map(u16::from)));
    unit.push_str(&array("short", &format!("regex_{index}_next"), next));
    unit.push_str(&array("char", &format!("regex_{index}_at_end"), &ends));
    unit.push_str(&format!("static const struct spile_regex regex_{index} = {{\n"));
    let fields = [
        format!(".classes = regex_{index}_classes"),
        format!(".next = regex_{index}_next"),
        format!(".at_end = regex_{index}_at_end"),
        format!(".class_count = {}", classes.count()),
        format!(".start = {start}"),
    ];
    fields.iter().for_each(|field| unit.push_str(&format!("\t{field},\n")));
    unit.push_str("};\n");
    unit
}

fn array(ty: &str, name: &str, values: &[u16]) -> String {
    let mut text = format!("static const unsigned {ty} {name}[] = {{");
    for (index, value) in values.iter().enumerate() {
        text.push_str(if index % 32 == 0 { "\n\t" } else { " " });
        text.push_str(&format!("{value},"));
    }
    text.push_str("\n};\n");
    text
}
