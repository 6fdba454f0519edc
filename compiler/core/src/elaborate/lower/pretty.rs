// SPDX-License-Identifier: GPL-2.0-or-later

//! `$x$` and `$x$$`: the description by which an object is printed, derived from its C type.
//!
//! One dollar shows the members, nested structs as `{...}` and arrays as `[...]`; two show everything, including every
//! array element, up to -D STRUCT_DEPTH. Of variants, as Rust's enumerations have, the one that the object has is shown, with its
//! name. The object's bytes are copied when the probe hits and formatted by the loader.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::rust_text;
use crate::elaborate::error::Error;
use crate::elaborate::lookup::value::debug_error;
use spile_abi::budget::{Budget, Exceeded, Limits, USUAL};
use spile_abi::format::{MAX_NESTING, Pretty, PrettyOp, PrettyStyle};
use spile_debuginfo::target::Object;
use spile_debuginfo::{BaseEncoding, DebugInfo, Member, Type as CType, TypeId, VirtualBase};
use spile_source::Span;

/// Largest object that is printed: a larger one fits into no record of the default ring.
const MAX_BYTES: u64 = 64 << 10;

/// Limits of one description: C types of a kernel are far below them.
const LIMITS: Limits = Limits { bytes: 1 << 20, depth: 64, work: 1 << 16, ..USUAL };

/// Objects within an object of more bytes are shown without their virtual bases: each part of a text has all its bytes.
const MOST_REPEATED: u64 = 4096;

/// A part of the text of an object.
pub(super) enum Part {
    Literal(Vec<u8>),
    /// Of the object's bytes.
    Object(Arc<Pretty>),
    /// A virtual base of it or of an object in it, whose place is read when the probe hits, with so many levels of members.
    Base(VirtualBase, usize),
}

/// Object (by address), type, and the number of levels of members shown.
type TypeKey = (*const Object, TypeId, usize);

/// The descriptions of a program, each made and stored once: thousands of sites print the same few types, which have a
/// different id in each compilation unit.
#[derive(Default)]
pub(super) struct Descriptions {
    /// With the object whose address is part of the key, so that the address is not reused.
    by_type: HashMap<TypeKey, (Rc<Object>, Arc<Pretty>)>,
    /// The same of those in parts.
    in_parts: HashMap<TypeKey, (Rc<Object>, Rc<[Part]>)>,
    /// By their bytecode.
    by_content: HashMap<Vec<u8>, Arc<Pretty>>,
}

impl Descriptions {
    /// [`describe`], for a type of the object file.
    pub(super) fn of(
        &mut self,
        object: &Rc<Object>,
        id: TypeId,
        levels: usize,
        span: Span,
    ) -> Result<Arc<Pretty>, Error> {
        let key = (Rc::as_ptr(object), id, levels);
        if let Some((_, known)) = self.by_type.get(&key) {
            return Ok(Arc::clone(known));
        }
        let debug = object.debug().map_err(|error| debug_error(error, span))?;
        let (size, pieces) = describe(debug, id, (levels, Bases::Unknown), span)?;
        let ops = pieces.into_iter().find_map(Piece::ops).unwrap_or_default();
        let description = self.stored(object, debug, size, ops);
        self.by_type.insert(key, (Rc::clone(object), Arc::clone(&description)));
        Ok(description)
    }

    /// The same in parts, between which its virtual bases are, and those of objects in it.
    pub(super) fn parts(
        &mut self,
        object: &Rc<Object>,
        id: TypeId,
        levels: usize,
        span: Span,
    ) -> Result<Rc<[Part]>, Error> {
        let key = (Rc::as_ptr(object), id, levels);
        if let Some((_, known)) = self.in_parts.get(&key) {
            return Ok(Rc::clone(known));
        }
        let debug = object.debug().map_err(|error| debug_error(error, span))?;
        let (size, pieces) = describe(debug, id, (levels, Bases::Shown), span)?;
        let is_one = pieces.len() == 1;
        let parts = pieces.into_iter().map(|piece| match piece {
            Piece::Base(base, levels) => Part::Base(base, levels),
            Piece::Ops(ops) => match ops.as_slice() {
                [PrettyOp::Literal(text)] if !is_one => Part::Literal(text.clone()),
                _ => Part::Object(self.stored(object, debug, size, ops)),
            },
        });
        let parts: Rc<[Part]> = parts.collect();
        self.in_parts.insert(key, (Rc::clone(object), Rc::clone(&parts)));
        Ok(parts)
    }

    fn stored(&mut self, object: &Object, debug: &DebugInfo, size: u32, ops: Vec<PrettyOp>) -> Arc<Pretty> {
        let (user, narrow) = (object.reads_user(), debug.word() == 4);
        self.shared(Pretty { size, ops, user, narrow })
    }

    fn shared(&mut self, description: Pretty) -> Arc<Pretty> {
        Arc::clone(self.by_content.entry(description.encode()).or_insert_with(|| Arc::new(description)))
    }
}

/// Virtual bases of one class that are shown, and bases in bases that are searched for them.
const MOST_BASES: usize = 4;

/// The virtual bases of a class and of its other bases, each once; none if there are too many.
fn virtual_bases(debug: &DebugInfo, id: TypeId) -> Result<Vec<VirtualBase>, spile_debuginfo::Error> {
    let mut found: Vec<VirtualBase> = Vec::new();
    let mut open = vec![(id, 0, 0)];
    while let Some((id, offset, depth)) = open.pop() {
        let (resolved, CType::Struct { members, .. }) = debug.resolve(id)? else { continue };
        for base in debug.virtual_bases(resolved)? {
            if !found.iter().any(|other| other.type_id == base.type_id) {
                found.push(VirtualBase { offset, ..base });
            }
        }
        if found.len() > MOST_BASES || depth >= MOST_BASES {
            return Ok(Vec::new());
        }
        for member in members.iter().filter(|member| member.name.is_none()).rev() {
            if matches!(debug.resolve_outline(member.type_id)?, CType::Struct { name: Some(_), .. }) {
                open.push((member.type_id, offset.saturating_add(member.offset), depth + 1));
            }
        }
    }
    Ok(found)
}

/// Where virtual bases are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bases {
    Unknown,
    /// They are shown between the other parts of the text.
    Shown,
}

/// As [`Part`].
enum Piece {
    Ops(Vec<PrettyOp>),
    Base(VirtualBase, usize),
}

impl Piece {
    fn ops(self) -> Option<Vec<PrettyOp>> {
        match self {
            Piece::Ops(ops) => Some(ops),
            Piece::Base(..) => None,
        }
    }
}

/// The description of an object of the type, with `levels` levels of nested structs and arrays, 1 for one dollar: its size, and
/// its pieces, of which there is one without virtual bases.
fn describe(
    debug: &DebugInfo,
    id: TypeId,
    (levels, bases): (usize, Bases),
    span: Span,
) -> Result<(u32, Vec<Piece>), Error> {
    let size = debug.size_of(id).map_err(|error| debug_error(error, span))?.unwrap_or(0);
    if size > MAX_BYTES {
        let message =
            format!("`{}` has {size} bytes: more than the {MAX_BYTES} that can be printed", debug.type_name(id));
        return Err(Error::DebugInfo { message, span });
    }
    let budget = Budget::new("members of a value that is printed", LIMITS);
    let mut describer = Describer {
        debug,
        levels,
        span,
        size,
        ops: Vec::new(),
        budget,
        variants: 0,
        structs: 0,
        arrays: 0,
        pieces: Vec::new(),
        room: if bases == Bases::Shown { MOST_BASES } else { 0 },
        is_base: false,
        shows_bases: false,
    };
    describer.value(id, 0, None, 0)?;
    let Describer { mut pieces, ops, .. } = describer;
    pieces.push(Piece::Ops(ops));
    Ok((size as u32, pieces))
}

/// The names of decimal floating-point types begin so (`_Decimal64`).
pub(super) const DECIMAL: &str = "_Decimal";

/// Typedefs of `char` that are numbers. A `char` of four bytes is Rust's, and is shown as its number.
const BYTES: [&str; 7] = ["u8", "__u8", "uint8_t", "u_int8_t", "s8", "__s8", "int8_t"];

/// Whether a `char` has a typedef for numbers: `typedef char int8_t`.
pub(super) fn is_byte(debug: &DebugInfo, mut id: TypeId) -> Result<bool, spile_debuginfo::Error> {
    for _ in 0..LIMITS.depth {
        match debug.get(id)? {
            CType::Typedef { name, .. } if BYTES.contains(&name.as_str()) => return Ok(true),
            CType::Typedef { target: Some(target), .. }
            | CType::Const(Some(target))
            | CType::Volatile(Some(target)) => id = target,
            _ => break,
        }
    }
    Ok(false)
}

/// Whether a pointer to the type, which has neither typedefs nor qualifiers, points to text: in the kernel that may also be
/// `const unsigned char *` (struct qstr).
pub(super) fn is_text_byte(target: &CType) -> bool {
    matches!(target, CType::Base { name, size: 1, .. } if matches!(name.as_str(), "char" | "unsigned char"))
}

struct Describer<'d> {
    debug: &'d DebugInfo,
    levels: usize,
    span: Span,
    /// Bytes of the whole object.
    size: u64,
    ops: Vec<PrettyOp>,
    budget: Budget,
    /// Variants around the value.
    variants: usize,
    /// Structs around the value.
    structs: usize,
    /// Arrays around the value.
    arrays: usize,
    /// What is before `ops`.
    pieces: Vec<Piece>,
    /// Virtual bases that may still be shown.
    room: usize,
    /// What is described is a base of the struct around it.
    is_base: bool,
    /// The virtual bases of the object in progress are shown behind its own members.
    shows_bases: bool,
}

/// Numbers that are compared to find the variant of one value.
const MOST_VALUES: usize = 4096;

/// Variants within variants, as of Rust's futures; arrays nest, too.
const MOST_VARIANTS: usize = MAX_NESTING / 2;

impl Describer<'_> {
    /// The result, or the file that exceeds a limit.
    fn affordable<T>(&self, result: Result<T, Exceeded>) -> Result<T, Error> {
        result.map_err(|error| Error::DebugInfo {
            message: format!("debug information of {}: {error}", self.debug.path().display()),
            span: self.span,
        })
    }

    fn text(&mut self, text: &str) {
        if let Some(PrettyOp::Literal(bytes)) = self.ops.last_mut() {
            bytes.extend_from_slice(text.as_bytes());
        } else {
            self.ops.push(PrettyOp::Literal(text.as_bytes().to_vec()));
        }
    }

    /// The value of a type at `offset`; `bits` for a bit-field, relative to that.
    fn value(&mut self, id: TypeId, offset: u64, bits: Option<(u64, u8)>, depth: usize) -> Result<(), Error> {
        self.affordable(self.budget.enter().and_then(|()| self.budget.work(1)))?;
        let described = self.value_within(id, offset, bits, depth);
        self.budget.leave();
        described
    }

    fn value_within(&mut self, id: TypeId, offset: u64, bits: Option<(u64, u8)>, depth: usize) -> Result<(), Error> {
        let resolved = self.debug.resolve(id).map_err(|error| debug_error(error, self.span))?;
        match resolved.1 {
            CType::Struct { name, members, .. } => {
                let text = rust_text::of(self.debug, name.as_deref(), &members);
                match text.map_err(|error| debug_error(error, self.span))? {
                    Some(text) => self.ops.push(PrettyOp::Text {
                        offset: offset.wrapping_add(text.pointer) as u32,
                        length: offset.wrapping_add(text.length) as u32,
                    }),
                    None => self.members(Some(resolved.0), &members, offset, depth)?,
                }
                Ok(())
            }
            CType::Array { element, counts } => self.array(id, element, &counts, offset, depth),
            CType::Base { encoding: BaseEncoding::Float, size, name } => {
                match size {
                    4 | 8 if bits.is_none() && !name.starts_with(DECIMAL) => {
                        self.integer(offset, size, None, PrettyStyle::Float);
                    }
                    _ => self.ops.push(PrettyOp::Unknown),
                }
                Ok(())
            }
            CType::Base { name, size: size @ 1, encoding } if name == "char" && bits.is_none() && depth > 0 => {
                // A member `char` may be a character or a number; the typedef decides.
                let signed = matches!(encoding, BaseEncoding::Signed | BaseEncoding::SignedChar);
                self.integer(offset, size, bits, if signed { PrettyStyle::Signed } else { PrettyStyle::Unsigned });
                if !is_byte(self.debug, id).map_err(|error| debug_error(error, self.span))? {
                    self.text(" ");
                    self.integer(offset, size, bits, PrettyStyle::Char);
                }
                Ok(())
            }
            CType::Base { name, size, encoding } => {
                let style = match encoding {
                    _ if name == "char" && size == 1 && bits.is_none() => PrettyStyle::Char,
                    BaseEncoding::Signed | BaseEncoding::SignedChar => PrettyStyle::Signed,
                    _ => PrettyStyle::Unsigned,
                };
                self.integer(offset, size, bits, style);
                Ok(())
            }
            CType::Enum { size, signed, values, .. } => {
                let style = if signed { PrettyStyle::Signed } else { PrettyStyle::Unsigned };
                self.integer(offset, size, bits, style);
                if let Some(PrettyOp::Integer { offset, size, first_bit, bits, .. }) = self.ops.last().cloned() {
                    self.affordable(self.budget.bytes(values.iter().map(|(name, _)| name.len() + 9).sum()))?;
                    let names = values.into_iter().map(|(name, number)| (number, name.into_bytes())).collect();
                    self.ops.pop();
                    self.ops.push(PrettyOp::Enum { offset, size, first_bit, bits, signed, names });
                }
                Ok(())
            }
            CType::Pointer(target) => self.pointer(target, offset),
            _ => {
                self.ops.push(PrettyOp::Unknown);
                Ok(())
            }
        }
    }

    fn integer(&mut self, offset: u64, size: u64, bits: Option<(u64, u8)>, style: PrettyStyle) {
        let op = match bits {
            None if matches!(size, 1 | 2 | 4 | 8) => {
                PrettyOp::Integer { offset: offset as u32, size: size as u8, first_bit: 0, bits: 0, style }
            }
            None if size == 16 => {
                PrettyOp::Integer { offset: offset as u32, size: 16, first_bit: 0, bits: 0, style: PrettyStyle::Hex }
            }
            None => PrettyOp::Unknown,
            Some((first, bits)) => match bit_field_bytes(offset, first, bits, size) {
                Some((start, size, first_bit)) => {
                    PrettyOp::Integer { offset: start as u32, size: size as u8, first_bit, bits, style }
                }
                None => PrettyOp::Unknown,
            },
        };
        self.ops.push(op);
    }

    fn pointer(&mut self, target: Option<TypeId>, offset: u64) -> Result<(), Error> {
        let target = match target {
            Some(target) => Some(self.debug.resolve_outline(target).map_err(|error| debug_error(error, self.span))?),
            None => None,
        };
        let offset = offset as u32;
        let style = match target {
            Some(target) if is_text_byte(&target) => {
                self.ops.push(PrettyOp::StringPointer { offset });
                return Ok(());
            }
            Some(CType::Function { .. }) => PrettyStyle::Function,
            _ => PrettyStyle::Hex,
        };
        self.ops.push(PrettyOp::Integer { offset, size: self.debug.word(), first_bit: 0, bits: 0, style });
        Ok(())
    }

    /// `id`: the struct that has them, if they are not those of a variant.
    fn members(&mut self, id: Option<TypeId>, members: &[Member], offset: u64, depth: usize) -> Result<(), Error> {
        let (variants, members): (Vec<&Member>, Vec<&Member>) =
            members.iter().partition(|member| member.when.is_some());
        if members.is_empty() && !variants.is_empty() {
            return self.variants(&variants, offset, depth);
        }
        if depth >= self.levels {
            self.text("{...}");
            return Ok(());
        }
        let is_base = std::mem::take(&mut self.is_base);
        let (outer, bases) = (self.shows_bases, if is_base { Vec::new() } else { self.shown_bases(id)? });
        self.shows_bases = if is_base { outer } else { !bases.is_empty() };
        self.text("{");
        self.structs += 1;
        for (index, member) in members.iter().enumerate() {
            self.affordable(self.budget.bytes(member.name.as_ref().map_or(8, String::len)))?;
            if index > 0 {
                self.text(", ");
            }
            let mut inner = depth + 1;
            match &member.name {
                Some(name) => self.text(&format!(".{name}=")),
                None => {
                    // The members of an anonymous struct or union belong to the enclosing one.
                    inner = depth;
                    let resolved =
                        self.debug.resolve_outline(member.type_id).map_err(|error| debug_error(error, self.span))?;
                    let union = matches!(resolved, CType::Struct { union: true, .. });
                    self.is_base = matches!(resolved, CType::Struct { union: false, name: Some(_), .. });
                    self.text(if union { "<union>=" } else { "<class>=" });
                }
            }
            let bits = member.bits.map(|bits| (bits.first, bits.bits));
            self.value(
                member.type_id,
                offset.wrapping_add(member.offset),
                bits,
                inner.max(usize::from(member.name.is_some())),
            )?;
            self.is_base = false;
        }
        if !variants.is_empty() {
            self.text(", <variant>=");
            self.variants(&variants, offset, depth)?;
        }
        self.structs -= 1;
        let before = |index: usize| if index > 0 || !members.is_empty() { ", <class>=" } else { "<class>=" };
        if self.shows_bases {
            for (index, base) in bases.into_iter().enumerate() {
                self.text(before(index));
                let ops = std::mem::take(&mut self.ops);
                let levels = if self.levels == usize::MAX { usize::MAX } else { self.levels.saturating_sub(depth) };
                let base = VirtualBase { offset: offset.wrapping_add(base.offset), ..base };
                self.pieces.extend([Piece::Ops(ops), Piece::Base(base, levels)]);
            }
        } else {
            let own = id.map_or(Ok(Vec::new()), |id| self.debug.virtual_bases(id));
            for index in 0..own.map_err(|error| debug_error(error, self.span))?.len() {
                self.text(before(index));
                self.text("?");
            }
        }
        self.shows_bases = outer;
        self.text("}");
        Ok(())
    }

    /// The virtual bases that are shown of an object of that struct: none in arrays and variants, whose texts are no parts of their own.
    fn shown_bases(&mut self, id: Option<TypeId>) -> Result<Vec<VirtualBase>, Error> {
        let is_apart = self.arrays == 0 && self.variants == 0 && (self.structs == 0 || self.size <= MOST_REPEATED);
        let Some(id) = id.filter(|_| is_apart && self.room > 0) else { return Ok(Vec::new()) };
        let bases = virtual_bases(self.debug, id).map_err(|error| debug_error(error, self.span))?;
        Ok(match self.room.checked_sub(bases.len()) {
            Some(room) => {
                self.room = room;
                bases
            }
            None => Vec::new(),
        })
    }

    /// The variant that the object has, or `?`.
    fn variants(&mut self, variants: &[&Member], offset: u64, depth: usize) -> Result<(), Error> {
        let values: usize =
            variants.iter().filter_map(|member| member.when.as_ref()).map(|when| when.values.len()).sum();
        if self.variants >= MOST_VARIANTS || values > MOST_VALUES {
            self.text("{...}");
            return Ok(());
        }
        self.affordable(self.budget.enter().and_then(|()| self.budget.work(variants.len().max(1))))?;
        self.variants += 1;
        let described = self.variants_within(variants, offset, depth);
        self.variants -= 1;
        self.budget.leave();
        described
    }

    fn variants_within(&mut self, variants: &[&Member], offset: u64, depth: usize) -> Result<(), Error> {
        let mut none: Option<PrettyOp> = None;
        for member in variants {
            let Some(when) = member.when.as_deref() else { continue };
            self.affordable(self.budget.bytes(member.name.as_ref().map_or(0, String::len) + 8 * when.values.len()))?;
            if when.size == 0 {
                self.variant(member, offset, depth)?;
                return Ok(());
            }
            let outer = std::mem::take(&mut self.ops);
            self.variant(member, offset, depth)?;
            let body = std::mem::replace(&mut self.ops, outer);
            let (at, values) = (offset.wrapping_add(when.offset) as u32, when.values.clone());
            if let Some(PrettyOp::When { values: known, .. }) = &mut none {
                known.extend(&values);
            } else {
                let (values, body) = (values.clone(), vec![PrettyOp::Unknown]);
                none = Some(PrettyOp::When { offset: at, size: when.size, values, other: true, body });
            }
            self.ops.push(PrettyOp::When { offset: at, size: when.size, values, other: when.other, body });
        }
        let is_other = |member: &&Member| member.when.as_ref().is_some_and(|when| when.other);
        self.ops.extend(none.filter(|_| !variants.iter().any(is_other)));
        Ok(())
    }

    /// As its language writes it: `Name`, `Name(1, 2)` where the members have only numbers, or `Name{.a=1}`.
    fn variant(&mut self, member: &Member, offset: u64, depth: usize) -> Result<(), Error> {
        self.text(member.name.as_deref().unwrap_or("?"));
        let offset = offset.wrapping_add(member.offset);
        let resolved = self.debug.resolve(member.type_id).map_err(|error| debug_error(error, self.span))?;
        let CType::Struct { members, .. } = resolved.1 else {
            self.text("(");
            self.value(member.type_id, offset, None, depth + 1)?;
            self.text(")");
            return Ok(());
        };
        if members.is_empty() {
            return Ok(());
        }
        let is_number = |name: &str| name.strip_prefix("__").is_some_and(|rest| rest.parse::<u32>().is_ok());
        if !members.iter().all(|member| member.name.as_deref().is_some_and(is_number)) {
            return self.members(None, &members, offset, depth);
        }
        if depth >= self.levels {
            self.text("(...)");
            return Ok(());
        }
        self.text("(");
        for (index, member) in members.iter().enumerate() {
            if index > 0 {
                self.text(", ");
            }
            self.value(member.type_id, offset.wrapping_add(member.offset), None, depth + 1)?;
        }
        self.text(")");
        Ok(())
    }

    fn array(
        &mut self,
        id: TypeId,
        element: TypeId,
        counts: &[Option<u64>],
        offset: u64,
        depth: usize,
    ) -> Result<(), Error> {
        let failed = |error| debug_error(error, self.span);
        let count = counts.first().copied().flatten().unwrap_or(0);
        let base = self.debug.resolve_outline(element).map_err(failed)?;
        let is_char = matches!(&base, CType::Base { name, size: 1, .. } if name == "char");
        if counts.len() == 1 && is_char && !is_byte(self.debug, element).map_err(failed)? {
            self.ops.push(PrettyOp::Chars { offset: offset as u32, length: count as u32 });
            return Ok(());
        }
        if depth >= self.levels {
            self.text("[...]");
            return Ok(());
        }
        let rest = self.debug.array_element(id, element, counts).map_err(failed)?;
        let stride = self.debug.size_of(rest).map_err(failed)?.unwrap_or(0);
        self.text("[");
        if count > 0 && stride > 0 {
            let outer = std::mem::take(&mut self.ops);
            self.arrays += 1;
            self.value(rest, 0, None, depth + 1)?;
            self.arrays -= 1;
            let body = std::mem::replace(&mut self.ops, outer);
            self.ops.push(PrettyOp::Repeat { offset: offset as u32, count: count as u32, stride: stride as u32, body });
        }
        self.text("]");
        Ok(())
    }
}

/// What to read for a bit-field that begins `first` bits behind byte `offset` of the object, and whose type has `size` bytes: the first
/// byte, how many, 1, 2, 4 or 8, and the field's first bit in them. Those that end first: the last field of an object must not be read
/// with bytes behind the object.
fn bit_field_bytes(offset: u64, first: u64, bits: u8, size: u64) -> Option<(u64, u64, u8)> {
    let first = offset.checked_mul(8)?.checked_add(first)?;
    let (start, end) = (first / 8, first.checked_add(bits.into())?);
    let few = (start, (end - start * 8).div_ceil(8).next_power_of_two());
    let aligned = start.checked_div(size).map(|units| (units * size, size));
    let (start, size) = [Some(few), aligned]
        .into_iter()
        .flatten()
        .filter(|&(start, size)| bits > 0 && matches!(size, 1 | 2 | 4 | 8) && end.div_ceil(8) - start <= size)
        .min_by_key(|(start, size)| start + size)?;
    Some((start, size, (first - start * 8) as u8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_descriptions_are_one() {
        let mut descriptions = Descriptions::default();
        let of = |size| Pretty { size, ops: vec![PrettyOp::Literal(b"{}".to_vec())], ..Pretty::default() };
        let (first, other) = (descriptions.shared(of(8)), descriptions.shared(of(16)));
        assert!(Arc::ptr_eq(&first, &descriptions.shared(of(8))));
        assert!(!Arc::ptr_eq(&first, &other));
        assert_eq!(*other, of(16));
    }

    /// The description of a variable in an object made by a compiler.
    fn described(compiler: &str, options: &[&str], text: &str, name: &str) -> Vec<PrettyOp> {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("text"), text).expect("written");
        let command = std::process::Command::new(compiler).current_dir(directory.path()).args(options).output();
        let output = command.expect("the compiler runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let elf = spile_debuginfo::Elf::open(&directory.path().join("text.o")).expect("an object");
        let debug = DebugInfo::open(Arc::new(elf), None, None).expect("has DWARF");
        let found = debug.global(name, None).expect("an index").expect("is there");
        let (_, pieces) =
            describe(&debug, found.type_id, (usize::MAX, Bases::Unknown), Span::none()).expect("is described");
        pieces.into_iter().find_map(Piece::ops).expect("has ops")
    }

    /// The 40 bits at the end of an object of 8 bytes were read from its third byte on: 8 bytes, two too many.
    #[test]
    fn bit_fields_are_read_within_their_object() {
        assert_eq!(bit_field_bytes(2, 7, 40, 8), Some((0, 8, 23)));
        // Packed: 3 bytes in all.
        assert_eq!(bit_field_bytes(0, 8, 10, 4), Some((1, 2, 0)));
        assert_eq!(bit_field_bytes(3, 4, 10, 4), Some((3, 2, 4)));
        assert_eq!(bit_field_bytes(0, 3, 0, 4), None);
        assert_eq!(bit_field_bytes(u64::MAX, 3, 1, 4), None);
        let text = "struct held { unsigned a:1; int b:5; unsigned c:17; unsigned long long d:40; } held;";
        let held = described("gcc", &["-x", "c", "-g", "-c", "-o", "text.o", "text"], text, "held");
        let last = PrettyOp::Integer { offset: 0, size: 8, first_bit: 23, bits: 40, style: PrettyStyle::Unsigned };
        assert!(held.contains(&last), "{held:?}");
    }

    /// Rust's `char` has four bytes, and is not text.
    #[test]
    fn characters_of_rust() {
        let text = "pub struct Held { pub one: char, pub at: *const char }\n\
            #[no_mangle] pub static LETTERS: [char; 3] = ['a', 'b', 'c'];\n\
            #[no_mangle] pub static mut HELD: Held = Held { one: 'x', at: std::ptr::null() };\n";
        let options = ["-g", "--crate-type=lib", "--emit=obj", "-Ccodegen-units=1", "-o", "text.o", "text"];
        let number =
            |offset| PrettyOp::Integer { offset, size: 4, first_bit: 0, bits: 0, style: PrettyStyle::Unsigned };
        let letters = described("rustc", &options, text, "LETTERS");
        assert!(letters.contains(&PrettyOp::Repeat { offset: 0, count: 3, stride: 4, body: vec![number(0)] }));
        let held = described("rustc", &options, text, "HELD");
        assert!(held.contains(&number(8)), "{held:?}");
        assert!(!held.iter().any(|op| matches!(op, PrettyOp::StringPointer { .. })), "{held:?}");
    }

    #[test]
    fn complex_and_decimal_numbers() {
        let text = "struct held { _Complex float pair; _Decimal64 price; double real; char text[4]; } held;";
        let options = ["-x", "c", "-g", "-c", "-o", "text.o", "text"];
        let real = |offset, size| PrettyOp::Integer { offset, size, first_bit: 0, bits: 0, style: PrettyStyle::Float };
        let held = described("gcc", &options, text, "held");
        let values: Vec<&PrettyOp> = held.iter().filter(|op| !matches!(op, PrettyOp::Literal(_))).collect();
        let text = PrettyOp::Chars { offset: 24, length: 4 };
        assert_eq!(values, [&real(0, 4), &real(4, 4), &PrettyOp::Unknown, &real(16, 8), &text]);
    }
}
