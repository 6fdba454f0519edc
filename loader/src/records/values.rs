// SPDX-License-Identifier: GPL-2.0-or-later

//! The values that a record holds, before they are text.

use spile_abi::format::{Directive, Flags, Histogram, Named, Piece, Size};

use crate::records::format;
use crate::records::payload::{Payload, ShortPayload};
use crate::records::pretty;
use crate::records::symbol::Symbols;
use crate::records::text::{MAX_TEXT, Text};

/// A value of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `%d`, `%i`, `%b`
    Signed(i64),
    /// `%u`, `%x`, `%o`, `%p`
    Unsigned(u64),
    /// `%s`, `%c`, and names of addresses
    Text(Vec<u8>),
    /// `%m`, `%M`
    Memory(Vec<u8>),
    /// An object, as `$x$$` prints it
    Object(Vec<u8>),
    /// A line for each frame, the innermost first
    Stack(Vec<Vec<u8>>),
    /// The counts of its buckets
    Histogram(Histogram, Vec<u64>),
    /// It could not be read.
    Unreadable,
}

/// A value, or the text between values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// As in the format.
    Literal(Vec<u8>),
    /// The number of its directive is its place among the values.
    Value(Value),
}

/// The parts of a print, as far as the payload goes.
pub fn parts(
    pieces: &[Piece],
    payload: &mut Payload<'_>,
    symbols: &mut Symbols<'_>,
) -> (Vec<Part>, Result<(), ShortPayload>) {
    let mut parts = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let part = match piece {
            Piece::Literal(text) => Ok(Part::Literal(text.clone())),
            Piece::Directive(directive) => directive_value(directive, payload, symbols).map(Part::Value),
            Piece::Pretty(description) => {
                let mut text = Text::new(MAX_TEXT);
                pretty::render(description, payload, &mut text)
                    .map(|()| Part::Value(Value::Object(text.as_bytes().to_vec())))
            }
            Piece::Histogram(kind, _) => histogram(*kind, payload).map(Part::Value),
        };
        match part {
            Ok(part) => parts.push(part),
            Err(short) => return (parts, Err(short)),
        }
    }
    (parts, Ok(()))
}

fn directive_value(
    directive: &Directive,
    payload: &mut Payload<'_>,
    symbols: &mut Symbols<'_>,
) -> Result<Value, ShortPayload> {
    // Widths and precisions are before the value.
    for size in [directive.width, directive.precision] {
        if size == Size::Star {
            payload.long()?;
        }
    }
    if let Some(named) = Named::of(directive.conversion) {
        let is_stack = matches!(named, Named::Stack | Named::StoredStack | Named::UserStack | Named::UserText);
        let text = symbols.named(named, directive.flags.sharp, payload)?;
        return Ok(match is_stack {
            true => Value::Stack(lines(&text)),
            false => Value::Text(text.into_owned()),
        });
    }
    Ok(match directive.conversion {
        b's' => payload.bytes()?.map_or(Value::Unreadable, |bytes| Value::Text(bytes.to_vec())),
        b'm' | b'M' => payload.bytes()?.map_or(Value::Unreadable, |bytes| Value::Memory(bytes.to_vec())),
        b'c' => {
            let plain = Directive { flags: Flags::default(), width: Size::None, precision: Size::None, ..*directive };
            let mut text = Text::new(8);
            format::render(&[Piece::Directive(plain)], payload, symbols, &mut text)?;
            Value::Text(text.as_bytes().to_vec())
        }
        b'd' | b'i' | b'b' => Value::Signed(payload.long()?),
        _ => Value::Unsigned(payload.long()? as u64),
    })
}

/// Without the empty one at the end.
pub fn lines(text: &[u8]) -> Vec<Vec<u8>> {
    text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()
}

fn histogram(kind: Histogram, payload: &mut Payload<'_>) -> Result<Value, ShortPayload> {
    let Some(bytes) = payload.bytes()? else { return Ok(Value::Unreadable) };
    let mut counts: Vec<u64> = bytes.as_chunks().0.iter().map(|count| u64::from_le_bytes(*count)).collect();
    counts.resize(kind.buckets() as usize, 0);
    Ok(Value::Histogram(kind, counts))
}

#[cfg(test)]
mod tests {
    use spile_abi::format::Chart;

    use super::*;
    use crate::records::user::Users;

    fn directive(conversion: u8, width: Size) -> Piece {
        Piece::Directive(Directive { conversion, flags: Flags::default(), width, precision: Size::None })
    }

    #[test]
    fn values_have_the_types_of_their_directives() {
        let pieces = [
            directive(b'd', Size::None),
            Piece::Literal(b" ".to_vec()),
            directive(b'x', Size::Star),
            directive(b's', Size::None),
            directive(b's', Size::None),
            directive(b'c', Size::None),
            directive(b'm', Size::None),
            Piece::Histogram(Histogram::Linear { low: 0, high: 1, width: 1 }, Chart::default()),
        ];
        let long = |value: i64| value.to_le_bytes().to_vec();
        let part = |bytes: &[u8]| {
            let mut part = (bytes.len() as u32).to_le_bytes().to_vec();
            part.extend(bytes);
            part.resize(part.len().next_multiple_of(8), 0);
            part
        };
        let fault = vec![0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
        let counts = part(&[long(2), long(3)].concat());
        let payload = [long(-1), long(9), long(-1), part(b"a\"b"), fault, long(65), part(b"\x00\x01"), counts].concat();
        let mut symbols = Symbols::new(None, Users::default());
        let (read, ended) = parts(&pieces, &mut Payload::new(&payload), &mut symbols);
        assert_eq!(ended, Ok(()));
        let values: Vec<Value> = read
            .into_iter()
            .filter_map(|part| match part {
                Part::Value(value) => Some(value),
                Part::Literal(_) => None,
            })
            .collect();
        let expected = [
            Value::Signed(-1),
            Value::Unsigned(u64::MAX),
            Value::Text(b"a\"b".to_vec()),
            Value::Unreadable,
            Value::Text(b"A".to_vec()),
            Value::Memory(vec![0, 1]),
            Value::Histogram(Histogram::Linear { low: 0, high: 1, width: 1 }, vec![2, 3, 0, 0]),
        ];
        assert_eq!(values, expected);
        let (read, ended) = parts(&pieces, &mut Payload::new(&payload[..20]), &mut symbols);
        assert_eq!((read.len(), ended), (2, Err(ShortPayload)));
    }
}
