// SPDX-License-Identifier: GPL-2.0-or-later

//! A value's location in words: `%rdi`, `[%rdi+0x18], 4 bytes`.

use crate::probe::{Location, registers};
use crate::program::{BinaryOp, LongExpr, LongKind};

/// For a value at a site whose registers are those of `struct pt_regs`; `words`: they are a tracepoint's arguments.
pub(super) fn text(location: &Location, words: bool) -> String {
    match location {
        Location::Register { offset } => register(*offset, words),
        Location::Memory { address, bits: None } => format!("[{}]", expr(address, words)),
        Location::Memory { address, bits: Some(bits) } => {
            format!(
                "[{}], bits {}-{}",
                expr(address, words),
                bits.first,
                bits.first + u64::from(bits.bits).saturating_sub(1)
            )
        }
        Location::Value(value) => expr(value, words),
        Location::KnownCallers { location, .. } => text(location, words),
        Location::Parts(parts) => {
            let each = parts.iter().map(|part| {
                let place =
                    part.location.as_ref().map_or_else(|| "nowhere".to_string(), |location| text(location, words));
                format!("{} bits {place}", part.bits)
            });
            format!("in parts: {}", each.collect::<Vec<_>>().join(", "))
        }
        Location::Pointer(to) => format!("a pointer to {}", text(to, words)),
    }
}

fn register(offset: u32, words: bool) -> String {
    if words {
        return format!("argument {}", offset / 8 + 1);
    }
    registers::name(offset).map_or_else(|| format!("word {offset:#x} of the registers"), |name| format!("%{name}"))
}

fn expr(value: &LongExpr, words: bool) -> String {
    let inner = |value: &LongExpr| expr(value, words);
    match &value.kind {
        LongKind::Const(number) => number_text(*number),
        LongKind::Register { offset } => register(*offset, words),
        LongKind::Read { address, size, .. } if *size == 8 => format!("[{}]", inner(address)),
        LongKind::Read { address, size, .. } => format!("[{}]:{size}", inner(address)),
        LongKind::KernelAddress { address, per_cpu: false } => format!("{address:#x}"),
        LongKind::KernelAddress { address, per_cpu: true } => format!("per-CPU {address:#x}"),
        LongKind::ModuleAddress { module, symbol, offset, per_cpu } => {
            format!("{}{module}:{symbol}+{offset:#x}", if *per_cpu { "per-CPU " } else { "" })
        }
        LongKind::Negate(value) => format!("-({})", inner(value)),
        LongKind::Complement(value) => format!("~({})", inner(value)),
        LongKind::SignExtend(value, bits) => format!("signed {bits} bits of {}", inner(value)),
        LongKind::Bits { value, first, bits } => {
            format!("bits {first}-{} of {}", u32::from(*first) + u32::from(*bits).saturating_sub(1), inner(value))
        }
        LongKind::Binary(BinaryOp::Add, left, right) => match right.kind {
            LongKind::Const(number) if number < 0 => format!("{}-{}", inner(left), number_text(number.wrapping_neg())),
            _ => format!("{}+{}", inner(left), inner(right)),
        },
        LongKind::Binary(op, left, right) => format!("({}{}{})", inner(left), op.text(), inner(right)),
        _ => "computed".into(),
    }
}

fn number_text(number: i64) -> String {
    if (-9..=9).contains(&number) { number.to_string() } else { format!("{number:#x}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spile_source::Span;

    #[test]
    fn registers_and_memory() {
        let span = Span::none();
        let base = LongExpr::register(112, span);
        let address = LongExpr::binary(BinaryOp::Add, base, LongExpr::constant(0x18, span), span);
        assert_eq!(text(&Location::Register { offset: 104 }, false), "%rsi");
        assert_eq!(text(&Location::Register { offset: 8 }, true), "argument 2");
        assert_eq!(text(&Location::Memory { address: address.clone(), bits: None }, false), "[%rdi+0x18]");
        assert_eq!(text(&Location::Value(LongExpr::read(address, 4, span)), false), "[%rdi+0x18]:4");
    }
}
