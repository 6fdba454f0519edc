// SPDX-License-Identifier: GPL-2.0-or-later

//! Attachments to code that several families share: kprobes and kretprobes, at a place or by a symbol.

use crate::program::{Attachment, Label, Mechanism, Place, Registers, Value};

static KPROBE: Mechanism =
    Mechanism { registers: Registers::Code, ..Mechanism::new("SPILE_PROBE_KPROBE", Label::Function) };

static KRETPROBE: Mechanism =
    Mechanism { registers: Registers::Return, ..Mechanism::new("SPILE_PROBE_KRETPROBE", Label::Function) };

/// At an instruction.
pub(super) fn kprobe(place: Place) -> Attachment {
    Attachment::new(&KPROBE).at(place)
}

/// At the return of the function that begins there. `maxactive`: concurrent calls, 0 for the runtime's default.
pub(super) fn kretprobe(place: Place, maxactive: u32) -> Attachment {
    Attachment::new(&KRETPROBE).at(place).with("maxactive", Value::Number(maxactive))
}

/// The same by a symbol of the running kernel, `NAME` or `MODULE:NAME`.
pub(super) fn at_symbol(symbol: String, returning: bool, maxactive: u32) -> Attachment {
    by_name(Some(symbol), 0, returning, maxactive)
}

/// At an address of the running kernel.
pub(super) fn at_address(address: u64) -> Attachment {
    by_name(None, address, false, 0)
}

fn by_name(symbol: Option<String>, address: u64, returning: bool, maxactive: u32) -> Attachment {
    let attachment = Attachment::new(if returning { &KRETPROBE } else { &KPROBE });
    let attachment = match symbol {
        Some(symbol) => attachment.with("symbol", Value::Text(symbol)),
        None => attachment,
    };
    attachment.with("address", Value::Address(address)).with("maxactive", Value::Number(maxactive))
}
