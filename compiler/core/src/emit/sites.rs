// SPDX-License-Identifier: GPL-2.0-or-later

//! The sites of scripts with many probes, and the code of their functions, apart from the C text: compilers take 0.1 ms for
//! each element of a table, and most elements differ only in names and places.
//!
//! The unit then has one element of each kind, its *shape*, and the numbers of the members that differ; whoever builds
//! the module writes the table into the compiled unit.

use std::collections::HashMap;

use crate::plan::code::OwnConstant;
use crate::plan::{Plan, Probe};
use crate::program::{self, Attachment, Value};
use spile_abi::sites::{Fingerprint, Site, SiteConstant, Tables, UserCode};

/// Scripts with fewer probes have the whole table in their C.
const FEWEST: usize = 64;
/// A shape is for at least as many probes, on average.
const SHARED: usize = 4;

/// The constants, where none refers to another table.
pub(super) fn constants(probe: &Probe) -> Option<Vec<SiteConstant>> {
    let constant = |constant: &OwnConstant| match constant {
        OwnConstant::Long(number) => Some(SiteConstant::Number(*number)),
        OwnConstant::Text(text) => Some(SiteConstant::Text(text.clone())),
        OwnConstant::Table(_) | OwnConstant::Items(_) => None,
    };
    if probe.constants.is_empty() { None } else { probe.constants.iter().map(constant).collect() }
}

/// For each probe the number of its shape, and of each shape its first probe. None: the table stays in the C text.
pub(super) fn shapes(plan: &Plan) -> Option<(Vec<u32>, Vec<usize>)> {
    let probes = &plan.probes;
    if probes.len() < FEWEST {
        return None;
    }
    let mut firsts: Vec<usize> = Vec::new();
    let mut alike: HashMap<(&str, Vec<&Member>), Vec<u32>> = HashMap::new();
    let mut numbers = Vec::with_capacity(probes.len());
    for (index, probe) in probes.iter().enumerate() {
        let known = alike.entry((&probe.handler, members(&probe.attachment))).or_default();
        let first = |number: u32| probes.get(*firsts.get(number as usize)?);
        let like =
            known.iter().copied().find(|number| first(*number).is_some_and(|first| have_one_shape(first, probe)));
        if let Some(number) = like {
            numbers.push(number);
            continue;
        }
        let number = u32::try_from(firsts.len()).ok()?;
        firsts.push(index);
        known.push(number);
        numbers.push(number);
        if firsts.len() * SHARED > probes.len() {
            return None;
        }
    }
    Some((numbers, firsts))
}

/// The members that [`Site`] does not have are equal. The handlers and those of the attachments are known to be.
fn have_one_shape(one: &Probe, other: &Probe) -> bool {
    let place = |probe: &Probe| probe.attachment.place.as_ref().map(|place| place.target);
    one.script_point == other.script_point
        && one.module == other.module
        && one.attachment.mechanism == other.attachment.mechanism
        && place(one) == place(other)
        && (one.constants == other.constants || constants(one).is_some() && constants(other).is_some())
        && one.entry_handler == other.entry_handler
        && one.paging == other.paging
        && one.entry_paging == other.entry_paging
        && (one.entry_bytes, one.counts_only, one.adds, one.simple)
            == (other.entry_bytes, other.counts_only, other.adds, other.simple)
        && (one.entry_simple, one.cost, one.registers) == (other.entry_simple, other.cost, other.registers)
        && one.locks == other.locks
        && one.entry_locks == other.entry_locks
        && one.condition == other.condition
}

/// A member of an attachment, by name.
type Member = (&'static str, Value);

/// Members that each site has.
const OWN: [&str; 4] = ["symbol", "address", "uprobe.offset", "uprobe.address"];

/// The other members of an attachment.
fn members(attachment: &Attachment) -> Vec<&Member> {
    attachment.members.iter().filter(|(name, _)| !OWN.contains(name)).collect()
}

/// One of its own members.
fn own<'a>(attachment: &'a Attachment, member: &str) -> Option<&'a Value> {
    attachment.members.iter().find(|(name, _)| *name == member).map(|(_, value)| value)
}

/// The symbol of a probe without a place in a target.
fn symbol(attachment: &Attachment) -> Option<String> {
    match own(attachment, "symbol") {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    }
}

/// The address of such a probe.
fn address(attachment: &Attachment) -> u64 {
    match own(attachment, "address") {
        Some(Value::Address(address)) => *address,
        _ => 0,
    }
}

/// Where a probe in a program is.
fn user_code(attachment: &Attachment) -> Option<UserCode> {
    match (own(attachment, "uprobe.offset"), own(attachment, "uprobe.address")) {
        (Some(Value::Unsigned(offset)), Some(Value::Unsigned(address))) => {
            Some(UserCode { offset: *offset, address: *address })
        }
        _ => None,
    }
}

/// What the C text with these shapes leaves out.
pub(super) fn tables(plan: &Plan, shapes: &[u32], meta: Vec<u8>) -> Tables {
    let site = |(probe, shape): (&Probe, &u32)| {
        let place = probe.attachment.place.as_ref();
        Site {
            shape: *shape,
            point: probe.point.clone(),
            function: probe.function.clone(),
            symbol: place.map_or_else(|| symbol(&probe.attachment), |place| place.symbol.clone()),
            address: place.map_or_else(|| address(&probe.attachment), |place| place.address),
            uprobe: user_code(&probe.attachment),
            constants: constants(probe),
        }
    };
    Tables {
        sites: plan.probes.iter().zip(shapes).map(site).collect(),
        fingerprints: plan.fingerprints.iter().map(fingerprint).collect(),
        meta,
    }
}

fn fingerprint(fingerprint: &program::Fingerprint) -> Fingerprint {
    let program::Fingerprint { place, function, bytes, patched } = fingerprint;
    Fingerprint {
        target: place.target.0,
        symbol: place.symbol.clone(),
        address: place.address,
        function: function.clone(),
        bytes: bytes.clone(),
        patched: patched.clone(),
    }
}
