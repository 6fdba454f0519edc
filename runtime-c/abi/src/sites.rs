// SPDX-License-Identifier: GPL-2.0-or-later

//! The table of probes of a script that has many (`struct spile_probe` in runtime-c/script.h), apart from its C text: what
//! the compiler leaves out there, and writes into the compiled unit. Most elements differ only in names and places, so
//! the unit has one of each kind, its *shape*.

/// What is left out of the C text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tables {
    /// One for each probe, in order.
    pub sites: Vec<Site>,
    /// The table of fingerprints, in order.
    pub fingerprints: Vec<Fingerprint>,
    /// The contents of the section `.spile.meta`.
    pub meta: Vec<u8>,
}

/// The members of `struct spile_probe` that are not those of its shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Index into the compiled array of shapes.
    pub shape: u32,
    /// `point`
    pub point: String,
    /// `function`
    pub function: String,
    /// `symbol`; None: the null pointer.
    pub symbol: Option<String>,
    /// `address`
    pub address: u64,
    /// Of a probe in a program; None: the union is that of the shape.
    pub uprobe: Option<UserCode>,
    /// The elements of `constants`; None: it is that of the shape.
    pub constants: Option<Vec<SiteConstant>>,
}

/// The members of `struct spile_uprobe` that say where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserCode {
    /// `offset`
    pub offset: u64,
    /// `address`
    pub address: u64,
}

/// A constant of one probe (`union spile_constant`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SiteConstant {
    /// `number`
    Number(i64),
    /// `text`
    Text(Vec<u8>),
}

/// The members of `struct spile_fingerprint`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// `target`
    pub target: u32,
    /// `symbol`; None: the null pointer.
    pub symbol: Option<String>,
    /// `address`
    pub address: u64,
    /// `function`
    pub function: String,
    /// `bytes` and `length`
    pub bytes: Vec<u8>,
    /// `patched` and `patched_count`: first byte and length of each.
    pub patched: Vec<(u32, u32)>,
}
