// SPDX-License-Identifier: GPL-2.0-or-later

//! Handlers and functions to [`Routine`]s: splits expressions where they have effects or can fail.
//!
//! A variable, element or function used with another type than declared is a mistake of an earlier pass: an
//! [`InternalError`].

mod array;
mod assignment;
mod call;
mod early;
mod expression;
mod print;
mod statement;

use super::analysis::Analysis;
use super::code::*;
use super::error::{InternalError, Planned};
use super::names::c_name;
use super::storage::GlobalRef;
use super::tables::{Line, Tables};
use crate::program::{self, Expr, GlobalId, LocalId, LongExpr, Stmt, StringExpr, Type};
use spile_source::Span;
use std::collections::HashSet;

/// Builds one routine.
pub(super) struct Builder<'p, 's> {
    analysis: &'p Analysis<'p>,
    tables: &'p mut Tables<'s>,
    /// Types of saved values, and their byte offsets in the instance's data.
    saved: &'p [(Type, u32)],
    longs: Vec<Variable>,
    texts: Vec<Variable>,
    buffers: Vec<String>,
    iterators: Vec<IteratorMemory>,
    /// By local: how it is stored.
    locals: Vec<Local>,
    /// Arrays whose one used element it holds, in the order of their [`Instr::Hold`].
    held: Vec<Option<Held>>,
    /// The probe whose handler this is, from the end of its lead-in on.
    pub(super) handler: Option<usize>,
    /// How many arrays it holds as a whole.
    whole: u32,
    early: early::EarlyValues<'p>,
    code: Vec<Instr>,
    labels: u32,
    /// Target of errors.
    failed: LabelId,
    /// Targets of `continue` and `break` of the enclosing loops, innermost last.
    loops: Vec<(LabelId, LabelId)>,
    /// The script's line that the last comment shows.
    line: Option<Line>,
}

/// The one element that it uses of an array.
struct Held {
    array: GlobalId,
    /// Parts of its keys that it has computed early.
    early: Vec<LongExpr>,
}

/// How a local variable is stored.
#[derive(Clone, Copy)]
enum Local {
    Long(LongId),
    /// It gets memory when bytes are first stored.
    Text(TextId, Option<BufferId>),
}

/// The target of an assignment.
enum Scalar {
    LocalLong(LongId),
    LocalText(LocalId, TextId),
    Number(NumberRef),
    Text(TextRef),
}

/// A reference to an expression.
#[derive(Clone, Copy)]
enum ExprRef<'e> {
    Long(&'e LongExpr),
    String(&'e StringExpr),
}

impl<'e> From<&'e Expr> for ExprRef<'e> {
    fn from(expr: &'e Expr) -> ExprRef<'e> {
        match expr {
            Expr::Long(expr) => ExprRef::Long(expr),
            Expr::String(expr) => ExprRef::String(expr),
        }
    }
}

/// An expression that has been evaluated.
#[derive(Clone, Debug)]
enum Evaluated {
    Long(Value),
    Text(Text),
}

impl Evaluated {
    /// The number that it must be.
    fn long(self, span: Span) -> Planned<Value> {
        match self {
            Evaluated::Long(value) => Ok(value),
            Evaluated::Text(_) => Err(InternalError::new("a string where a number belongs", span)),
        }
    }

    /// The string that it must be.
    fn text(self, span: Span) -> Planned<Text> {
        match self {
            Evaluated::Text(text) => Ok(text),
            Evaluated::Long(_) => Err(InternalError::new("a number where a string belongs", span)),
        }
    }

    /// The number that a call returns; 0 if it returns nothing.
    fn long_result(result: Option<Evaluated>, span: Span) -> Planned<Value> {
        result.map_or(Ok(Value::Const(0)), |result| result.long(span))
    }

    /// The string that a call returns; "" if it returns nothing.
    fn text_result(result: Option<Evaluated>, span: Span) -> Planned<Text> {
        result.map_or(Ok(Text::Literal(Vec::new())), |result| result.text(span))
    }
}

impl<'p, 's> Builder<'p, 's> {
    /// `saved`: types of saved values, and their byte offsets in the instance's data.
    pub(super) fn new(
        analysis: &'p Analysis<'p>,
        tables: &'p mut Tables<'s>,
        saved: &'p [(Type, u32)],
    ) -> Builder<'p, 's> {
        Builder {
            analysis,
            tables,
            saved,
            longs: Vec::new(),
            texts: Vec::new(),
            buffers: Vec::new(),
            iterators: Vec::new(),
            locals: Vec::new(),
            held: Vec::new(),
            handler: None,
            whole: 0,
            early: early::EarlyValues::default(),
            code: Vec::new(),
            labels: 1,
            failed: OUT,
            loops: Vec::new(),
            line: None,
        }
    }

    /// Declares the locals; the first `parameters` of them are parameters, which are returned.
    pub(super) fn declare(&mut self, locals: &[program::Local], parameters: usize) -> Vec<Parameter> {
        let mut declared = Vec::new();
        let mut taken = HashSet::new();
        for (index, local) in locals.iter().enumerate() {
            let parameter = index < parameters;
            // Those that the compiler adds may have the name of one of the script's, which come first.
            let mut name = c_name(&local.name);
            while !taken.insert(name.clone()) {
                name.push('_');
            }
            match local.ty {
                Type::Long => {
                    let id = self.new_long(format!("l_{name}"), parameter);
                    self.locals.push(Local::Long(id));
                    declared.push(Parameter::Long(id));
                }
                Type::String => {
                    let id = self.new_text(format!("s_{name}"), parameter);
                    self.locals.push(Local::Text(id, None));
                    declared.push(Parameter::Text(id));
                }
            }
        }
        declared.truncate(parameters);
        declared
    }

    /// Returns the finished routine.
    pub(super) fn finish(
        self,
        symbol: String,
        comment: String,
        parameters: Vec<Parameter>,
        returns: Option<Type>,
        frame: Frame,
    ) -> Routine {
        Routine {
            symbol,
            comment,
            parameters,
            returns,
            longs: self.longs,
            texts: self.texts,
            buffers: self.buffers,
            iterators: self.iterators,
            frame,
            spilled: false,
            code: self.code,
        }
    }

    /// Stores a value computed at the probed function's entry.
    pub(super) fn save(&mut self, offset: u32, expr: &Expr) -> Planned<()> {
        let instr = match expr {
            Expr::Long(expr) => Instr::SaveLong(offset, self.value(expr)?),
            Expr::String(expr) => Instr::SaveText(offset, self.text(expr)?),
        };
        self.push(instr);
        Ok(())
    }

    /// Charges a function's statements at its start.
    pub(super) fn charge(&mut self, statements: &[Stmt], span: Span) {
        let location = self.location(span);
        self.push(Instr::Charge { statements: statement::count(statements).max(1), location });
        self.check();
    }

    /// From here on the handler may change what conditions of probe points read.
    pub(super) fn rearm(&mut self) {
        self.push(Instr::Rearm);
    }

    fn new_long(&mut self, name: String, parameter: bool) -> LongId {
        self.longs.push(Variable { name, parameter });
        LongId(self.longs.len() as u32 - 1)
    }

    fn new_text(&mut self, name: String, parameter: bool) -> TextId {
        self.texts.push(Variable { name, parameter });
        TextId(self.texts.len() as u32 - 1)
    }

    fn new_buffer(&mut self, name: String) -> BufferId {
        self.buffers.push(name);
        BufferId(self.buffers.len() as u32 - 1)
    }

    fn new_iterator(&mut self, iterator: IteratorMemory) -> IteratorId {
        self.iterators.push(iterator);
        IteratorId(self.iterators.len() as u32 - 1)
    }

    fn temporary(&mut self) -> LongId {
        self.new_long(format!("t{}", self.longs.len()), false)
    }

    fn temporary_text(&mut self) -> (BufferId, TextId) {
        let name = format!("u{}", self.texts.len());
        (self.new_buffer(name.clone()), self.new_text(name, false))
    }

    fn label(&mut self) -> LabelId {
        self.labels += 1;
        LabelId(self.labels - 1)
    }

    fn push(&mut self, instr: Instr) {
        self.code.push(instr);
    }

    fn check(&mut self) {
        self.push(Instr::Check(self.failed));
    }

    fn location(&mut self, span: Span) -> LocationId {
        self.tables.location(span)
    }

    /// Runs `build` and returns the instructions that it added.
    fn apart<T>(&mut self, build: impl FnOnce(&mut Self) -> Planned<T>) -> Planned<(T, Vec<Instr>)> {
        let before = std::mem::take(&mut self.code);
        let value = build(self);
        let code = std::mem::replace(&mut self.code, before);
        Ok((value?, code))
    }

    fn global(&self, id: GlobalId) -> &'p program::Global {
        &self.analysis.program.globals[id.index()]
    }

    /// The array or aggregate with that id.
    fn map_ref(&self, id: GlobalId, span: Span) -> Planned<MapRef> {
        match self.analysis.globals.get(id) {
            GlobalRef::Map(map) => Ok(map.clone()),
            _ => Err(InternalError::new("a scalar where an array or an aggregate belongs", span)),
        }
    }

    fn local(&self, id: LocalId, span: Span) -> Planned<Local> {
        let missing = InternalError::new("a local variable that the routine does not have", span);
        self.locals.get(id.index()).copied().ok_or(missing)
    }

    /// The scalar of that variable.
    fn scalar(&self, variable: program::Variable, span: Span) -> Planned<Scalar> {
        Ok(match variable {
            program::Variable::Local(id) => match self.local(id, span)? {
                Local::Long(long) => Scalar::LocalLong(long),
                Local::Text(text, _) => Scalar::LocalText(id, text),
            },
            program::Variable::Global(id) => match self.analysis.globals.get(id) {
                GlobalRef::Number(number) => Scalar::Number(number.clone()),
                GlobalRef::Text(text) => Scalar::Text(text.clone()),
                GlobalRef::Map(_) => return Err(InternalError::new("an array where a variable belongs", span)),
            },
        })
    }

    /// Copies the value to a new variable, unless it is a constant.
    fn keep(&mut self, value: Value) -> Value {
        if matches!(value, Value::Const(_)) {
            return value;
        }
        let to = self.temporary();
        self.push(Instr::SetLong(to, value));
        Value::Long(to)
    }
}
