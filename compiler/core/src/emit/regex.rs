// SPDX-License-Identifier: GPL-2.0-or-later

//! Automata of patterns as tables of the module; runtime-c/regex.c interprets them.

use super::text;
use crate::program::{Automaton, Regex};
use spile_regex::{Classes, Plain, Tagged};

/// The tables of pattern number `index`, and the struct that has them.
pub(super) fn emit(index: usize, regex: &Regex) -> String {
    let mut tables = Tables {
        index,
        text: format!("/* =~ {} */\n", text::comment(&text::literal(&regex.pattern))),
        fields: Vec::new(),
    };
    match &regex.automaton {
        Automaton::Plain(plain) => tables.plain(plain),
        Automaton::Tagged(tagged) => tables.tagged(tagged),
    }
    tables.text
}

struct Tables {
    index: usize,
    text: String,
    fields: Vec<String>,
}

impl Tables {
    fn plain(&mut self, Plain { classes, next, at_end, start }: &Plain) {
        self.classes(classes);
        self.array("short", "next", next);
        let ends: Vec<u16> = at_end.iter().map(|&end| u16::from(end)).collect();
        self.array("char", "at_end", &ends);
        self.fields.push(format!(".start = {start}"));
        self.finish("spile_regex");
    }

    fn tagged(&mut self, tagged: &Tagged) {
        self.classes(&tagged.classes);
        self.array("short", "next", &tagged.next);
        self.array("short", "actions", &tagged.actions);
        self.array("short", "accept", &tagged.accept);
        self.array("short", "at_end", &tagged.at_end);
        self.array("short", "moves", &tagged.moves);
        self.fields.push(format!(".start = {}", tagged.start));
        self.fields.push(format!(".start_action = {}", tagged.start_action));
        self.fields.push(format!(".groups = {}", tagged.groups()));
        self.finish("spile_tagged_regex");
    }

    fn classes(&mut self, classes: &Classes) {
        self.array("char", "classes", &classes.of.map(u16::from));
        self.fields.push(format!(".class_count = {}", classes.count()));
    }

    fn array(&mut self, ty: &str, name: &str, values: &[u16]) {
        self.fields.push(format!(".{name} = regex_{}_{name}", self.index));
        self.text.push_str(&format!("static const unsigned {ty} regex_{}_{name}[] = {{", self.index));
        for (index, value) in values.iter().enumerate() {
            self.text.push_str(if index % 32 == 0 { "\n\t" } else { " " });
            self.text.push_str(&format!("{value},"));
        }
        self.text.push_str("\n};\n");
    }

    fn finish(&mut self, ty: &str) {
        self.text.push_str(&format!("static const struct {ty} regex_{} = {{\n", self.index));
        self.fields.iter().for_each(|field| self.text.push_str(&format!("\t{field},\n")));
        self.text.push_str("};\n");
    }
}
