// SPDX-License-Identifier: GPL-2.0-or-later

//! Beginning and end of a C function: variables, frame memory, the exit.

use super::Writer;
use crate::emit::text;
use crate::plan::code::{self, Frame, Instr};
use crate::program::Type;

impl Writer<'_> {
    /// Declares the routine's frame, variables, iterators and locks.
    pub(super) fn declarations(&mut self) {
        let routine = self.routine;
        if routine.has_frame() {
            self.line("struct {");
            for (index, iterator) in routine.iterators.iter().enumerate() {
                if iterator.buckets {
                    self.line(&format!("\tspile_ulong n{index}[{}];", crate::program::MAX_BUCKETS));
                }
                if iterator.order > 0 {
                    let count = iterator.order.next_multiple_of(2);
                    self.line(&format!("\tunsigned int o{index}[{count}];"));
                }
            }
            for (index, name) in routine.buffers.iter().enumerate() {
                self.line(&format!("\tchar b{index}[SPILE_STRING_BYTES];\t/* {} */", text::comment(name)));
            }
            if routine.spilled {
                self.spilled_members();
            }
            self.line("} *f;");
        }
        if routine.frame != Frame::None && (routine.has_frame() || routine.frame == Frame::Checked) {
            self.line("char *frame;");
        }
        if code::holds(&routine.code).iter().any(|instr| matches!(instr, Instr::HoldWhole { .. })) {
            self.line("spile_ulong whole = 0;");
        }
        if !routine.spilled {
            for long in routine.longs.iter().filter(|long| !long.parameter) {
                self.line(&format!("spile_long {} SPILE_LOCAL = 0;", long.name));
            }
            for index in 0..routine.iterators.len() {
                self.line(&format!("struct spile_iterator i{index};"));
            }
            for text in routine.texts.iter().filter(|text| !text.parameter) {
                self.line(&format!("struct spile_string {} SPILE_LOCAL = SPILE_LITERAL(\"\");", text.name));
            }
        }
        match routine.returns {
            Some(Type::Long) => self.line("spile_long result = 0;"),
            Some(Type::String) => {
                self.line("unsigned int result = 0;");
                self.lines.push('\n');
                self.line("out[0] = 0;");
            }
            None => {}
        }
        self.lines.push('\n');
    }

    /// Variables in frame memory: members of the struct at address `f`.
    fn spilled_members(&mut self) {
        let routine = self.routine;
        self.line("\tspile_long spilled;");
        for long in &routine.longs {
            self.line(&format!("\tspile_long {};", long.name));
        }
        for text in &routine.texts {
            self.line(&format!("\tstruct spile_string {};", text.name));
        }
        for index in 0..routine.iterators.len() {
            self.line(&format!("\tstruct spile_iterator i{index};"));
        }
    }

    /// Initialises them, and makes their names refer to those members from here on.
    pub(super) fn spill(&mut self) {
        let routine = self.routine;
        self.line("f->spilled = 0;");
        for long in &routine.longs {
            let value = if long.parameter { &long.name } else { "0" };
            self.line(&format!("f->{} = {value};", long.name));
        }
        for text in &routine.texts {
            let value = if text.parameter { &text.name } else { "SPILE_LITERAL(\"\")" };
            self.line(&format!("f->{} = {value};", text.name));
        }
        self.spilled_names().for_each(|name| self.outer(&format!("#define {name} (f->{name})")));
    }

    /// Names of the variables and iterators, which are macros where they are members of the frame.
    pub(super) fn spilled_names(&self) -> impl Iterator<Item = String> + use<> {
        let variables = self.routine.longs.iter().chain(&self.routine.texts).map(|variable| variable.name.clone());
        let names: Vec<String> =
            variables.chain((0..self.routine.iterators.len()).map(|index| format!("i{index}"))).collect();
        names.into_iter()
    }

    /// What a failed entry returns.
    fn failure(&self) -> &'static str {
        match self.routine.returns {
            None => "return;",
            Some(_) => "return 0;",
        }
    }

    /// Reserves the frame, and returns from the routine if there is no room for it.
    pub(super) fn enter(&mut self) {
        let bytes = if !self.routine.has_frame() { "0" } else { "sizeof(*f)" };
        match self.routine.frame {
            Frame::None => {}
            Frame::Handler if !self.routine.has_frame() => {}
            Frame::Handler => {
                self.line(
                    "_Static_assert(sizeof(*f) <= SPILE_FRAME_BYTES, \"the frame has no room for this handler\");",
                );
                self.line("frame = c->frame;");
                self.line("f = (void *)frame;");
                self.line("if (spile_unlikely(frame + sizeof(*f) > c->frame_end)) {");
                self.line("\tspile_fail(c, SPILE_E_NESTING, 0);");
                self.line("\treturn;");
                self.line("}");
                self.line("c->frame = frame + sizeof(*f);");
            }
            Frame::Checked => {
                self.line(&format!("frame = spile_frame_enter(c, {bytes});"));
                self.line("if (spile_unlikely(!frame))");
                self.line(&format!("\t{}", self.failure()));
                if self.routine.has_frame() {
                    self.line("f = (void *)frame;");
                }
            }
        }
    }

    /// Releases the frame and returns from the routine.
    pub(super) fn leave(&mut self) {
        match self.routine.frame {
            Frame::Checked => self.line("spile_frame_leave(c, frame);"),
            Frame::Handler if self.routine.has_frame() => self.line("c->frame = frame;"),
            _ => {}
        }
        if self.routine.returns.is_some() {
            self.line("return result;");
        } else {
            self.line("return;");
        }
    }
}
