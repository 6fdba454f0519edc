// SPDX-License-Identifier: GPL-2.0-or-later

//! Context variables and other target expressions: their values, and their text where that is needed.

use super::pretty::{DECIMAL, Part, is_byte, is_text_byte};
use super::print::{directive, plain};
use super::rust_text::{self, RustText};
use super::{Lowered, Lowering, Referent, SavedKey};
use crate::builtin;
use crate::elaborate::error::{Error, TypeError, VariableError};
use crate::elaborate::lookup::is_text;
use crate::elaborate::lookup::member::{of_virtual_base, part_of, virtual_base_by};
use crate::elaborate::lookup::value::{address_of, binary, debug_error, load};
use crate::elaborate::unit::Unit;
use crate::elaborate::unneeded::expression_has_effect;
use crate::probe::{Location, TypedLocation, beyond, joined, registers};
use crate::program::{BinaryOp, Expr, LongExpr, LongKind, Print, PrintPiece, SavedId, StringExpr, StringKind};
use spile_abi::format::Size;
use spile_debuginfo::target::Object;
use spile_debuginfo::{BaseEncoding, DebugInfo, FoundMember, Member, Type as CType, TypeId};
use spile_source::Span;
use spile_source::diagnostic::{Code, Diagnostic};
use spile_syntax::{ast, visit};
use std::rc::Rc;
use std::sync::Arc;

/// Virtual bases of virtual bases that are shown.
const MOST_BASES: usize = 4;

/// What the text of an object is a part of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Nothing,
    /// `$$vars$` and the like.
    List,
}

/// Whether the kernel memory that a value is read from can be read, as an expression that does not fail; None: it is only
/// in registers, or on the stack. The compiler may name `pointer->member` as the place of a variable where `pointer` has
/// not been tested yet.
fn readable(value: &LongExpr) -> Option<LongExpr> {
    match &value.kind {
        LongKind::Read { address, size, user: false } => {
            let before = readable(address);
            if is_on_stack(address) {
                return before;
            }
            let span = value.span;
            let arguments = vec![(**address).clone().into(), LongExpr::constant(i64::from(*size), span).into()];
            let builtin = builtin::internal("__kernel_readable")?;
            both(before, Some(LongExpr { kind: LongKind::Builtin(builtin, arguments), span }))
        }
        LongKind::Bits { value, .. } | LongKind::SignExtend(value, _) => readable(value),
        LongKind::Negate(value) | LongKind::Not(value) | LongKind::Complement(value) => readable(value),
        LongKind::Binary(_, left, right) => both(readable(left), readable(right)),
        LongKind::Conditional(condition, yes, no) => {
            let (first, yes, no) = (readable(condition), readable(yes), readable(no));
            if yes.is_none() && no.is_none() {
                return first;
            }
            let or_true = |part: Option<LongExpr>| Box::new(part.unwrap_or_else(|| LongExpr::constant(1, value.span)));
            let chosen = LongKind::Conditional(condition.clone(), or_true(yes), or_true(no));
            both(first, Some(LongExpr { kind: chosen, span: value.span }))
        }
        _ => None,
    }
}

/// A number as `%#x`, or `?` where it cannot be read.
fn in_hex(value: LongExpr, span: Span) -> PrintPiece {
    let is_readable = readable(&value);
    let mut directive = directive(b'x');
    directive.flags.sharp = true;
    let piece =
        PrintPiece::Directive { directive, width: None, precision: None, argument: value.into(), name: String::new() };
    match is_readable {
        Some(condition) => {
            plain(or_question(condition, StringExpr::format(Print { pieces: vec![piece] }, span)).into())
        }
        None => piece,
    }
}

fn both(left: Option<LongExpr>, right: Option<LongExpr>) -> Option<LongExpr> {
    match (left, right) {
        (Some(left), Some(right)) => Some(binary(BinaryOp::And, left, right)),
        (left, right) => left.or(right),
    }
}

fn is_on_stack(address: &LongExpr) -> bool {
    match &address.kind {
        LongKind::Register { offset } => registers::name(*offset) == Some("rsp"),
        LongKind::Binary(BinaryOp::Add | BinaryOp::Subtract, left, right) => {
            is_on_stack(left) && matches!(right.kind, LongKind::Const(_))
        }
        _ => false,
    }
}

fn is_array(found: &TypedLocation) -> bool {
    found.object.debug().is_ok_and(|debug| matches!(debug.resolve_outline(found.type_id), Ok(CType::Array { .. })))
}

/// Whether it is an integer of 16 bytes.
fn is_wide(found: &TypedLocation) -> bool {
    found.object.debug().is_ok_and(|debug| debug.resolve_outline(found.type_id).is_ok_and(|ctype| is_wide_type(&ctype)))
}

/// A number of 16 bytes that is no floating-point number.
pub(super) fn is_wide_type(ctype: &CType) -> bool {
    matches!(ctype, CType::Base { encoding, size: 16, .. } if *encoding != BaseEncoding::Float)
}

/// Such a number in hex, as the loader writes one that is in memory.
fn wide_text(found: &TypedLocation, span: Span) -> Lowered<StringExpr> {
    let user = found.object.reads_user();
    let half = |bit| joined(&beyond(&found.location, bit)?, 64, user);
    let gone = VariableError::NoAddress { span, why: "the compiler has optimised out a part of it" };
    let (low, high) = half(0).zip(half(64)).ok_or(gone)?;
    let hex = |value: LongExpr, width: Option<u32>| {
        let mut directive = directive(b'x');
        directive.flags.sharp = width.is_none();
        directive.flags.zero = width.is_some();
        directive.width = width.map_or(Size::None, Size::Fixed);
        let argument = value.into();
        PrintPiece::Directive { directive, width: None, precision: None, argument, name: String::new() }
    };
    let whole = Print { pieces: vec![hex(high.clone(), None), hex(low.clone(), Some(16))] };
    let text = StringKind::Conditional(
        Box::new(high.clone()),
        Box::new(StringExpr::format(whole, span)),
        Box::new(StringExpr::format(Print { pieces: vec![hex(low.clone(), None)] }, span)),
    );
    let text = StringExpr { kind: text, span };
    Ok(match both(readable(&low), readable(&high)) {
        Some(condition) => or_question(condition, text),
        None => text,
    })
}

/// What reads a word of a process; 0 where it cannot.
fn quiet_word(word: u8, span: Span) -> Option<impl Fn(LongExpr) -> LongExpr> {
    let builtin = builtin::find(if word < 8 { "user_uint" } else { "user_int64" }, 1)?;
    Some(move |at: LongExpr| LongExpr { kind: LongKind::Builtin(builtin, vec![at.into()]), span })
}

/// The text if the condition holds, or else a question mark.
fn or_question(condition: LongExpr, text: StringExpr) -> StringExpr {
    let span = text.span;
    let otherwise = StringExpr::literal(b"?".to_vec(), span);
    StringExpr { kind: StringKind::Conditional(Box::new(condition), Box::new(text), Box::new(otherwise)), span }
}

/// The text of an object, for a list: it does not fail if its place cannot be read. `value`: what it shows, if that is a
/// number.
fn where_readable(text: StringExpr, value: Option<LongExpr>) -> StringExpr {
    let span = text.span;
    match text.kind {
        StringKind::Pretty { address, description } => {
            let address = match readable(&address) {
                // At 0 it is shown as unreadable.
                Some(condition) => {
                    let nowhere = Box::new(LongExpr::constant(0, span));
                    Box::new(LongExpr { kind: LongKind::Conditional(Box::new(condition), address, nowhere), span })
                }
                None => address,
            };
            StringExpr { kind: StringKind::Pretty { address, description }, span }
        }
        kind => {
            let text = StringExpr { kind, span };
            match value.as_ref().and_then(readable) {
                Some(condition) => or_question(condition, text),
                None => text,
            }
        }
    }
}

impl Lowering<'_, '_> {
    /// With `--skip-badvars` a missing variable is 0, with a warning.
    pub(super) fn lower_target(&mut self, unit: &Unit, expr: &ast::Expr) -> Lowered {
        let lowered = self.lower_present(unit, expr);
        let number = !matches!(&expr.kind, ast::ExprKind::Pretty(..))
            && !matches!(&expr.kind, ast::ExprKind::Target(name) if is_text(name));
        match lowered {
            Err(error) if self.env.options.skip_bad_variables && number && error.is_bad_variable() => {
                const REPLACED: &str = "bad $context variable being substituted with literal 0";
                let diagnostic = Diagnostic::warning(Code("W0108"), REPLACED).at(expr.span, "");
                // Once for a place: a wildcard has another reason at each function.
                self.env.add_first(diagnostic.note(error.diagnostic().message));
                Ok(LongExpr::constant(0, expr.span).into())
            }
            lowered => lowered,
        }
    }

    fn lower_present(&mut self, unit: &Unit, expr: &ast::Expr) -> Lowered {
        if self.typed.is_captured(&unit.at, expr) {
            return self.save(unit, expr, expr.span);
        }
        let span = expr.span;
        match &expr.kind {
            ast::ExprKind::Target(name) if is_text(name) => self.lower_all_variables(unit, name, 0, span),
            ast::ExprKind::Pretty(base, dollars) => match &base.kind {
                ast::ExprKind::Target(name) if is_text(name) => self.lower_all_variables(unit, name, *dollars, span),
                _ => {
                    let found = self.find_here(unit, base)?;
                    self.pretty(&found, *dollars, Within::Nothing, span).map(Expr::String)
                }
            },
            ast::ExprKind::AddressOf(base) => {
                let found = self.find_addressed_here(unit, base)?;
                address_of(&found, span).map(Expr::Long)
            }
            _ => {
                let found = self.find_here(unit, expr)?;
                load(&found, span).map(Expr::Long)
            }
        }
    }

    /// Evaluates at the probed function's entry; the value is there at its return.
    pub(super) fn save(&mut self, unit: &Unit, expr: &ast::Expr, span: Span) -> Lowered {
        if self.typed.at_entry {
            return self.lower(unit, expr);
        }
        if unit.at.at_entry {
            return self.lower_at_entry(unit, expr);
        }
        if !unit.at.is_return() {
            return Err(VariableError::NotReturnProbe { what: "@entry", span }.into());
        }
        let site = unit.at.site.ok_or(VariableError::NotReturnProbe { what: "@entry", span })?;
        // What has an effect is evaluated for each use.
        let key = (!expression_has_effect(self.names, expr)).then(|| self.saved_key(unit, expr));
        let saved = self.saved.entry(site).or_default();
        if let Some(&id) = key.as_ref().and_then(|key| saved.known.get(key)) {
            return Ok(Expr::saved(id, saved.values[id.index()].ty(), span));
        }
        let value = self.lower_at_entry(unit, expr)?;
        let saved = self.saved.entry(site).or_default();
        let (ty, id) = (value.ty(), SavedId(saved.values.len() as u32));
        saved.values.push(value);
        if let Some(key) = key {
            saved.known.insert(key, id);
        }
        Ok(Expr::saved(id, ty, span))
    }

    fn lower_at_entry(&mut self, unit: &Unit, expr: &ast::Expr) -> Lowered {
        self.typed.at_entry = true;
        let value = self.lower(unit, expr);
        self.typed.at_entry = false;
        value
    }

    /// In two files, or a handler and a function, one spelling may mean different variables and functions.
    fn saved_key(&self, unit: &Unit, expr: &ast::Expr) -> SavedKey {
        let mut names = Vec::new();
        visit::in_expression(expr, &mut |inner| match &inner.kind {
            ast::ExprKind::Ident(name) => {
                names.push(Referent::Variable(unit.find_variable(self.names, name, inner.span)));
            }
            ast::ExprKind::Call(name, arguments) => {
                let overloads = self.names.overloads(name.span, &name.text, arguments.len());
                names.push(Referent::Function(overloads.first().copied()));
            }
            _ => {}
        });
        SavedKey { text: spile_syntax::print::expr(expr), names }
    }

    /// An object as a string.
    fn pretty(&mut self, found: &TypedLocation, dollars: u8, within: Within, span: Span) -> Lowered<StringExpr> {
        let object = found.object.clone();
        let debug = object.debug().map_err(|error| debug_error(error, span))?;
        let failed = |error| debug_error(error, span);
        let is_struct = |id| debug.resolve_outline(id).map(|found| matches!(found, CType::Struct { .. }));
        let (address, type_id) = match (debug.resolve(found.type_id).map_err(failed)?.1, &found.location) {
            (CType::Pointer(Some(target)), _) if is_struct(target).map_err(failed)? => (load(found, span)?, target),
            (_, Location::Memory { address, bits: None }) => (address.clone(), found.type_id),
            (CType::Struct { name, members, .. }, _) => {
                if let Some(text) = rust_text::of(debug, name.as_deref(), &members).map_err(failed)? {
                    return text_in_registers(found, &text, debug.word(), span);
                }
                return self.pretty_members(found, &members, dollars, span);
            }
            (CType::Array { element, counts }, _) => {
                return self.pretty_elements(found, element, &counts, dollars, span);
            }
            (ctype, _) => return self.pretty_number(found, &ctype, false, span),
        };
        let levels =
            if dollars > 1 { self.env.options.struct_depth.map_or(usize::MAX, |depth| depth as usize) } else { 1 };
        self.pretty_object(&object, (address, type_id), levels, (within, 0), span)
    }

    /// An object in memory as a string. `depth`: virtual bases that lead to it.
    fn pretty_object(
        &mut self,
        object: &Rc<Object>,
        (address, type_id): (LongExpr, TypeId),
        levels: usize,
        (within, depth): (Within, usize),
        span: Span,
    ) -> Lowered<StringExpr> {
        let of_object = |address: &LongExpr, description| {
            let kind = StringKind::Pretty { address: Box::new(address.clone()), description };
            StringExpr { kind, span }
        };
        if depth >= MOST_BASES || levels == 0 || !object.reads_user() {
            return Ok(of_object(&address, self.descriptions.of(object, type_id, levels, span)?));
        }
        let parts = self.descriptions.parts(object, type_id, levels, span)?;
        if let [Part::Object(description)] = &*parts {
            return Ok(of_object(&address, Arc::clone(description)));
        }
        // To find bases memory is read, which must not make a list fail.
        let quiet = (within == Within::List).then(|| quiet_word(object.word(), span)).flatten();
        let mut found_first = None;
        let mut pieces = Vec::new();
        for part in &*parts {
            pieces.push(match part {
                Part::Literal(text) => PrintPiece::Literal(text.clone()),
                Part::Object(description) => plain(of_object(&address, Arc::clone(description)).into()),
                Part::Base(base, levels) => {
                    let place =
                        quiet.as_ref().map(|read| virtual_base_by(object.word(), address.clone(), base, read, span));
                    let (table, at) = match place {
                        Some((table, at)) => (Some(table), at),
                        None => (None, of_virtual_base(object, address.clone(), base, span)),
                    };
                    let text = self.pretty_object(object, (at, base.type_id), *levels, (within, depth + 1), span)?;
                    found_first = found_first.or_else(|| table.clone());
                    plain(match table {
                        Some(table) => or_question(table, text).into(),
                        None => text.into(),
                    })
                }
            });
        }
        let text = StringExpr::format(Print { pieces }, span);
        let Some(found) = found_first else { return Ok(text) };
        let otherwise = of_object(&address, self.descriptions.of(object, type_id, levels, span)?);
        let kind = StringKind::Conditional(Box::new(found), Box::new(text), Box::new(otherwise));
        Ok(StringExpr { kind, span })
    }

    /// A struct that is in registers, at most two, as a string: as the loader writes one that is in memory.
    fn pretty_members(
        &mut self,
        found: &TypedLocation,
        members: &[Member],
        dollars: u8,
        span: Span,
    ) -> Lowered<StringExpr> {
        // Which one it is would have to be read from the parts, too.
        if members.iter().any(|member| member.when.is_some()) {
            return Ok(StringExpr::literal(b"{...}".to_vec(), span));
        }
        let mut pieces = Vec::with_capacity(2 * members.len() + 1);
        for (index, member) in members.iter().enumerate() {
            let before = if index > 0 { ", " } else { "{" };
            let name = member.name.as_ref().map_or(String::new(), |name| format!(".{name}="));
            pieces.push(PrintPiece::Literal(format!("{before}{name}").into_bytes()));
            pieces.push(match self.pretty_member(found, member, dollars, span) {
                Ok(text) => text,
                Err(_) => PrintPiece::Literal(b"?".to_vec()),
            });
        }
        pieces.push(PrintPiece::Literal(if members.is_empty() { b"{}".to_vec() } else { b"}".to_vec() }));
        Ok(StringExpr::format(Print { pieces }, span))
    }

    /// An array that is in registers: it has at most 16 elements.
    fn pretty_elements(
        &mut self,
        found: &TypedLocation,
        element: TypeId,
        counts: &[Option<u64>],
        dollars: u8,
        span: Span,
    ) -> Lowered<StringExpr> {
        const MOST: u64 = 16;
        let failed = |error| debug_error(error, span);
        let debug = found.object.debug().map_err(failed)?;
        let rest = debug.array_element(found.type_id, element, counts).map_err(failed)?;
        let size = debug.size_of(rest).map_err(failed)?.unwrap_or(0);
        let count = counts.first().copied().flatten().unwrap_or(0);
        let mut pieces = vec![PrintPiece::Literal(b"[".to_vec())];
        for number in 0..count.min(MOST) {
            if number > 0 {
                pieces.push(PrintPiece::Literal(b", ".to_vec()));
            }
            let place =
                FoundMember { type_id: rest, bases: Vec::new(), offset: number.saturating_mul(size), bits: None };
            let text = self.pretty_part(found, &place, dollars, span);
            pieces.push(text.unwrap_or_else(|_| PrintPiece::Literal(b"?".to_vec())));
        }
        pieces.push(PrintPiece::Literal(if count > MOST { b", ...]".to_vec() } else { b"]".to_vec() }));
        Ok(StringExpr::format(Print { pieces }, span))
    }

    /// One of its members.
    fn pretty_member(
        &mut self,
        found: &TypedLocation,
        member: &Member,
        dollars: u8,
        span: Span,
    ) -> Lowered<PrintPiece> {
        let (bases, bits) = (Vec::new(), member.bits);
        let place = FoundMember { type_id: member.type_id, bases, offset: member.offset, bits };
        self.pretty_part(found, &place, dollars, span)
    }

    fn pretty_part(
        &mut self,
        found: &TypedLocation,
        member: &FoundMember,
        dollars: u8,
        span: Span,
    ) -> Lowered<PrintPiece> {
        let gone = VariableError::NoAddress { span, why: "the compiler has optimised it out" };
        let part = part_of(found, member, span)?.ok_or(gone)?;
        let debug = part.object.debug().map_err(|error| debug_error(error, span))?;
        let (_, ctype) = debug.resolve(member.type_id).map_err(|error| debug_error(error, span))?;
        match ctype {
            CType::Struct { members, name, .. } if dollars > 1 => {
                let text = rust_text::of(debug, name.as_deref(), &members).map_err(|error| debug_error(error, span))?;
                match text {
                    Some(text) => text_in_registers(&part, &text, debug.word(), span),
                    None => self.pretty_members(&part, &members, dollars, span),
                }
            }
            CType::Array { element, counts } if dollars > 1 => {
                self.pretty_elements(&part, element, &counts, dollars, span)
            }
            CType::Struct { .. } => return Ok(PrintPiece::Literal(b"{...}".to_vec())),
            CType::Array { .. } => return Ok(PrintPiece::Literal(b"[...]".to_vec())),
            ctype => self.pretty_number(&part, &ctype, true, span),
        }
        .map(|text| plain(text.into()))
    }

    /// A value in a register, or a bit-field, as a string: as `pretty.rs` describes one in memory. `member`: of a struct.
    fn pretty_number(&mut self, found: &TypedLocation, ctype: &CType, member: bool, span: Span) -> Lowered<StringExpr> {
        if is_wide_type(ctype) {
            return wide_text(found, span);
        }
        let value = load(found, span)?;
        let failed = |error| debug_error(error, span);
        let debug = found.object.debug().map_err(failed)?;
        let signed = match ctype {
            CType::Base { encoding: BaseEncoding::Float, size, name } => {
                if name.starts_with(DECIMAL) {
                    let why = "it is a decimal floating-point number";
                    return Err(VariableError::NoAddress { span, why }.into());
                }
                return float_text(value, *size, span).ok_or_else(|| {
                    let why = "it is a floating-point number of more than 8 bytes";
                    VariableError::NoAddress { span, why }.into()
                });
            }
            CType::Base { encoding, .. } => {
                matches!(encoding, BaseEncoding::Signed | BaseEncoding::SignedChar)
            }
            CType::Enum { values, .. } => {
                let id = self.naming_function(values.clone(), span);
                return Ok(StringExpr { kind: StringKind::Call(id, vec![value.into()]), span });
            }
            CType::Pointer(target) => {
                return pointer_text(debug, *target, found.object.reads_user(), value, span).map_err(failed);
            }
            _ => false,
        };
        let is_field = matches!(found.location, Location::Memory { bits: Some(_), .. });
        let is_char = matches!(ctype, CType::Base { name, size: 1, .. } if name == "char") && !is_field;
        let decimal = if signed { b'd' } else { b'u' };
        let pieces = match (is_char, member) {
            (false, _) => vec![number(decimal, value)],
            (true, false) => vec![plain(character(value).into())],
            // A member may be a character or a number; the typedef decides.
            (true, true) if is_byte(debug, found.type_id).map_err(failed)? => vec![number(decimal, value)],
            (true, true) => {
                vec![number(decimal, value.clone()), PrintPiece::Literal(b" ".to_vec()), plain(character(value).into())]
            }
        };
        Ok(StringExpr::format(Print { pieces }, span))
    }

    /// `$$vars`, `$$parms`, `$$locals`, `$$return`, also with dollars after: `name=value ...`.
    fn lower_all_variables(&mut self, unit: &Unit, name: &str, dollars: u8, span: Span) -> Lowered {
        let Some(context) = unit.at.context.clone() else {
            return Err(VariableError::NoContext { name: name.into(), point: None, span }.into());
        };
        if !context.has_lists() {
            return Err(VariableError::NoContext { name: name.into(), point: Some(unit.at.point.clone()), span }.into());
        }
        if let Some(text) = context.text(name) {
            return Ok(StringExpr::literal(text.into_bytes(), span).into());
        }
        let names = match name {
            "$$vars" => context.parameters().into_iter().chain(context.locals()).collect(),
            "$$parms" => context.parameters(),
            "$$locals" => context.locals(),
            "$$return" if !context.is_return() => {
                return Err(VariableError::NotReturnProbe { what: "$$return", span }.into());
            }
            "$$return" if self.typed.is_at_entry(&unit.at) => {
                return Err(VariableError::NotAtEntry { name: name.into(), span }.into());
            }
            "$$return" => vec!["return".to_string()],
            _ => {
                let available = ["$$vars", "$$parms", "$$locals", "$$return"].map(String::from).to_vec();
                return Err(VariableError::UnknownVariable {
                    name: name.into(),
                    place: context.place(),
                    available,
                    span,
                }
                .into());
            }
        };
        let mut pieces = Vec::with_capacity(2 * names.len());
        for (index, variable) in names.iter().enumerate() {
            let found = context.variable(variable).ok();
            let found = found.map(|found| self.where_wanted(unit, variable, found));
            if found.is_none() && name == "$$return" {
                pieces.clear();
                break;
            }
            let space = if index > 0 { " " } else { "" };
            pieces.push(PrintPiece::Literal(format!("{space}{variable}=").into_bytes()));
            pieces.push(self.listed_value(found.as_ref(), dollars, span));
        }
        Ok(StringExpr::format(Print { pieces }, span).into())
    }

    /// The value of a variable in a list; None: it has none there. One that cannot be read must not make the handler fail.
    fn listed_value(&mut self, found: Option<&TypedLocation>, dollars: u8, span: Span) -> PrintPiece {
        let unknown = || PrintPiece::Literal(b"?".to_vec());
        let value = match found {
            None => return unknown(),
            Some(TypedLocation { object, type_id, location: Location::KnownCallers { known, location } }) => {
                let found = TypedLocation { object: object.clone(), type_id: *type_id, location: (**location).clone() };
                let pieces = vec![self.listed_value(Some(&found), dollars, span)];
                let known = both(readable(known), Some(known.clone())).unwrap_or_else(|| known.clone());
                return plain(or_question(known, StringExpr::format(Print { pieces }, span)).into());
            }
            Some(found) if dollars > 0 => self
                .pretty(found, dollars, Within::List, span)
                .map(|text| plain(where_readable(text, load(found, span).ok()).into())),
            Some(found) if is_array(found) => return PrintPiece::Literal(b"[...]".to_vec()),
            Some(found) if is_wide(found) => wide_text(found, span).map(|text| plain(text.into())),
            Some(found) => load(found, span).map(|value| in_hex(value, span)),
        };
        match value {
            Ok(piece) => piece,
            Err(
                Error::Type(TypeError::WholeStruct { .. } | TypeError::TooWide { .. })
                | Error::Variable(VariableError::NoAddress { .. }),
            ) => PrintPiece::Literal(b"{...}".to_vec()),
            Err(_) => unknown(),
        }
    }
}

/// Text with a length that is not in memory as a whole: its pointer and length are in registers.
fn text_in_registers(found: &TypedLocation, text: &RustText, word: u8, span: Span) -> Lowered<StringExpr> {
    let gone = || VariableError::NoAddress { span, why: "the compiler has optimised it out" };
    let number = |offset: u64| -> Lowered<Expr> {
        let part = beyond(&found.location, offset.saturating_mul(8));
        let number = part.and_then(|part| joined(&part, u64::from(word) * 8, found.object.reads_user()));
        number.map(Expr::Long).ok_or_else(|| gone().into())
    };
    let most = LongExpr::constant(i64::from(u16::MAX), span).into();
    let arguments = vec![number(text.pointer)?, number(text.length)?, most];
    let name = if found.object.reads_user() { "user_buffer_quoted" } else { "kernel_buffer_quoted" };
    let builtin = builtin::find(name, 3).ok_or_else(gone)?;
    Ok(StringExpr { kind: StringKind::Builtin(builtin, arguments), span })
}

/// A number printed with a conversion.
fn number(conversion: u8, value: LongExpr) -> PrintPiece {
    let directive = directive(conversion);
    PrintPiece::Directive { directive, width: None, precision: None, argument: value.into(), name: String::new() }
}

/// A character in quotes, with escapes.
fn character(value: LongExpr) -> StringExpr {
    let span = value.span;
    let mut directive = directive(b'c');
    directive.flags.sharp = true;
    let quote = || PrintPiece::Literal(b"'".to_vec());
    let one =
        PrintPiece::Directive { directive, width: None, precision: None, argument: value.into(), name: String::new() };
    StringExpr::format(Print { pieces: vec![quote(), one, quote()] }, span)
}

/// A pointer: the text that it points to, if that is one.
fn pointer_text(
    debug: &DebugInfo,
    target: Option<TypeId>,
    user: bool,
    value: LongExpr,
    span: Span,
) -> Result<StringExpr, spile_debuginfo::Error> {
    let mut pieces = Vec::new();
    match target.map(|target| debug.resolve_outline(target)).transpose()? {
        Some(target) if is_text_byte(&target) => {
            let quoted = if user { "user_string_quoted" } else { "kernel_or_user_string_quoted" };
            if let Some(builtin) = builtin::find(quoted, 1) {
                return Ok(StringExpr { kind: StringKind::Builtin(builtin, vec![value.into()]), span });
            }
        }
        Some(CType::Function { .. }) => pieces.push(PrintPiece::Literal(b"<function>:".to_vec())),
        _ => {}
    }
    pieces.push(number(b'p', value));
    Ok(StringExpr::format(Print { pieces }, span))
}

/// Digits after the point, as in objects that the loader shows (`SPILE_FLOAT_PRETTY` of runtime-c/float_text.h).
const FLOAT_DIGITS: i64 = 6;

/// The text of a `float` or `double` by its bits; None: it has another size.
fn float_text(bits: LongExpr, size: u64, span: Span) -> Option<StringExpr> {
    let number: Expr = match size {
        8 => bits.into(),
        4 => Expr::builtin(builtin::find("fp32_to_fp64", 1)?, vec![bits.into()], span),
        _ => return None,
    };
    let digits = LongExpr::constant(FLOAT_DIGITS, span).into();
    match Expr::builtin(builtin::find("fp_to_string", 2)?, vec![number, digits], span) {
        Expr::String(text) => Some(text),
        Expr::Long(_) => None,
    }
}
