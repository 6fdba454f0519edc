// SPDX-License-Identifier: GPL-2.0-or-later

//! Routines as C functions.

mod expression;
mod frame;
mod instruction;
mod map;
mod print;

pub(super) use expression::number;

use super::text;
use crate::plan::Plan;
use crate::plan::code::{self, BufferId, Instr, LabelId, LocationId, LongId, OUT, Parameter, Routine, TextId};
use crate::program::Type;
use expression::KEYS;

/// Writes one routine of a plan.
struct Writer<'p> {
    plan: &'p Plan,
    routine: &'p Routine,
    lines: String,
    indent: usize,
}

/// `static spile_long function_f(struct spile_context *c, ...)`, without semicolon or body.
pub(super) fn prototype(routine: &Routine) -> String {
    let mut parameters = vec!["struct spile_context *c SPILE_LOCAL".to_string()];
    for parameter in &routine.parameters {
        parameters.push(match parameter {
            Parameter::Long(id) => format!("spile_long {} SPILE_LOCAL", routine.longs[id.index()].name),
            Parameter::Text(id) => format!("struct spile_string {} SPILE_LOCAL", routine.texts[id.index()].name),
        });
    }
    let returns = match routine.returns {
        None => "void",
        Some(Type::Long) => "spile_long",
        Some(Type::String) => {
            parameters.push("char *out".into());
            "unsigned int"
        }
    };
    format!("static {returns} {}({})", routine.symbol, parameters.join(", "))
}

/// The routine as a C function, behind a comment.
pub(super) fn emit(plan: &Plan, routine: &Routine) -> String {
    let mut writer = Writer { plan, routine, lines: String::new(), indent: 1 };
    writer.routine();
    writer.lines
}

impl Writer<'_> {
    fn line(&mut self, text: &str) {
        for _ in 0..self.indent {
            self.lines.push('\t');
        }
        // An array of keys lives as long as its block; in a block of its own, it shares its place on the stack with others.
        match text.contains(KEYS) && text.ends_with(';') {
            true => self.lines.push_str(&format!("{{ {text} }}")),
            false => self.lines.push_str(text),
        }
        self.lines.push('\n');
    }

    fn outer(&mut self, text: &str) {
        self.lines.push_str(text);
        self.lines.push('\n');
    }

    fn routine(&mut self) {
        let routine = self.routine;
        for line in routine.comment.lines() {
            self.outer(&format!("/* {} */", text::comment(line)));
        }
        self.outer(&prototype(routine));
        self.outer("{");
        self.declarations();
        self.enter();
        if routine.spilled {
            self.spill();
        }
        self.instructions(&routine.code);
        self.outer("out: __attribute__((unused));");
        for instr in code::holds(&routine.code).into_iter().rev() {
            match instr {
                Instr::Hold { held, map, drops: true, .. } => {
                    self.line(&format!("spile_map_release_wrapping(&{}, &c->held[{held}]);", map.symbol));
                }
                Instr::Hold { held, .. } => self.line(&format!("spile_map_release(&c->held[{held}]);")),
                Instr::HoldWhole { number, map, .. } => {
                    self.line(&format!("if (whole & 1ul << {number}) spile_map_release_whole(&{});", map.symbol));
                }
                _ => {}
            }
        }
        self.leave();
        self.outer("}");
        if routine.spilled {
            self.spilled_names().for_each(|name| self.outer(&format!("#undef {name}")));
        }
    }

    fn long(&self, id: LongId) -> &str {
        &self.routine.longs[id.index()].name
    }

    fn text_name(&self, id: TextId) -> &str {
        &self.routine.texts[id.index()].name
    }
}

fn label_name(label: LabelId) -> String {
    if label == OUT { "out".into() } else { format!("label_{}", label.0) }
}

/// Buffer that a string is written to.
fn memory(buffer: BufferId) -> String {
    if buffer == BufferId::RESULT { "out".into() } else { format!("f->b{}", buffer.0) }
}

/// Number of the location that an error names.
fn place(location: LocationId) -> String {
    match location.as_own() {
        Some(constant) => format!("SPILE_OWN({constant}).number"),
        None => location.0.to_string(),
    }
}
