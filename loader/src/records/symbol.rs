// SPDX-License-Identifier: GPL-2.0-or-later

//! Names of kernel addresses in records, as reported by the module ([`spile_abi::device::SYMBOL`]), and their printed
//! forms. runtime-c/symbol.c answers, and remembers modules unloaded since the record was written.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::hash::Hash;

use spile_abi::device::{SYMBOL_LINE, SYMBOL_RETURNS, SYMBOL_STORED, Symbol};
use spile_abi::format::Named;
use spile_abi::record::{STACK_AT_PROBE, STACK_FULL, STACK_LINES, STACK_OF_USER, STACK_RETURNING, STACK_STORED};

use crate::records::payload::{Payload, ShortPayload};
use crate::records::text::{MAX_TEXT, Text};
use crate::records::user::{self, Users};

/// Maximum number of cached answers: some megabytes.
const MOST_KNOWN: usize = 1 << 16;

/// A source of the kernel's symbols.
pub trait Kernel: Sync {
    /// Fills in the answer; false if there is none.
    fn name(&self, symbol: &mut Symbol) -> bool;
}

#[derive(Debug)]
struct CachedName {
    /// `0xADDRESS`
    hex: Box<[u8]>,
    /// `NAME+OFFSET/SIZE [MODULE]`, or `0xADDRESS`.
    text: Box<[u8]>,
    /// `FILE:LINE`, or empty.
    line: Box<[u8]>,
    /// The answer is valid for records up to this time.
    until: u64,
    /// The answer does not depend on which modules are loaded.
    stays: bool,
}

impl CachedName {
    /// `NAME`, or `0xADDRESS`.
    fn name(&self) -> &[u8] {
        self.text.split(|byte| *byte == b'+').next().unwrap_or_default()
    }

    /// `NAME+OFFSET/SIZE [MODULE]`, with a line `NAME+OFFSET/SIZE at FILE:LINE [MODULE]`.
    fn write(&self, text: &mut Text) {
        if self.line.is_empty() {
            return text.push(&self.text);
        }
        let open = self.text.iter().position(|byte| *byte == b'[').unwrap_or(self.text.len());
        let (name, module) = self.text.split_at(open);
        text.push(name.trim_ascii_end());
        text.push(b" at ");
        text.push(&self.line);
        if !module.is_empty() {
            text.push_byte(b' ');
            text.push(module);
        }
    }

    /// `MODULE` or `kernel`; `None`: in neither.
    fn module(&self) -> Option<&[u8]> {
        let open = self.text.iter().position(|byte| *byte == b'[')?;
        self.text.get(open + 1..)?.split(|byte| matches!(byte, b']' | b' ')).next()
    }
}

/// Cache of answers.
pub struct Symbols<'k> {
    kernel: Option<&'k dyn Kernel>,
    /// Names of user space.
    users: Users<'k>,
    /// Answers, by address and flags.
    known: HashMap<(u64, u32), CachedName>,
    /// Answers for stored addresses, whose keys have a time. They are separate so that other lookups, one for each
    /// frame of a stack, hash shorter keys.
    stored: HashMap<(u64, u32, u64), CachedName>,
    /// Change counter at the time of the volatile answers.
    changes: u64,
    /// Time of the current record.
    time: u64,
}

impl fmt::Debug for Symbols<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Symbols")
            .field("known", &self.known.len())
            .field("changes", &self.changes)
            .finish_non_exhaustive()
    }
}

impl<'k> Symbols<'k> {
    /// `None`: no module to ask, all addresses are printed in hex.
    pub fn new(kernel: Option<&'k dyn Kernel>, users: Users<'k>) -> Symbols<'k> {
        Symbols { kernel, users, known: HashMap::new(), stored: HashMap::new(), changes: 0, time: 0 }
    }

    /// Of the names of user space: [`Users::takes_asked`].
    pub fn takes_asked(&mut self) -> bool {
        self.users.takes_asked()
    }

    /// To be called before reading records that were written before `changes` was read:
    /// [`crate::records::ring::Ring::changes`].
    pub fn changed(&mut self, changes: u64) {
        if self.changes != changes {
            self.changes = changes;
            self.known.retain(|_, known| known.stays);
            self.stored.retain(|_, known| known.stays);
        }
    }

    /// Sets the time of the record whose addresses follow.
    pub fn at(&mut self, time: u64) {
        self.time = time;
    }

    fn find(&mut self, address: u64, flags: u32) -> &CachedName {
        let (kernel, time) = (self.kernel, self.time);
        answer(&mut self.known, (address, flags), time, || ask(kernel, address, flags, time))
    }

    /// `stored`: a time, before the record's, at which the address had the intended name; 0: the record's time.
    fn find_of(&mut self, address: u64, flags: u32, stored: u64) -> &CachedName {
        if stored == 0 {
            return self.find(address, flags);
        }
        let kernel = self.kernel;
        answer(&mut self.stored, (address, flags, stored), stored, || ask(kernel, address, flags, stored))
    }

    /// The text of a conversion whose payload is next; empty for addresses that could not be read. `stored`: of a number that
    /// the script has stored, maybe long before.
    pub fn named(
        &mut self,
        conversion: Named,
        stored: bool,
        payload: &mut Payload<'_>,
    ) -> Result<Cow<'_, [u8]>, ShortPayload> {
        let mut text = Vec::new();
        let flags = if stored { SYMBOL_STORED } else { 0 };
        match conversion {
            Named::Symbol => return Ok(self.find(payload.long()? as u64, flags).name().into()),
            Named::Data => return Ok(Cow::Borrowed(&self.find(payload.long()? as u64, flags).text)),
            Named::Module => {
                return Ok(self.find(payload.long()? as u64, flags).module().unwrap_or(b"<unknown>").into());
            }
            Named::Addresses => {
                for (index, address) in addresses(payload)?.enumerate() {
                    let blank = if index > 0 { " " } else { "" };
                    text.extend_from_slice(format!("{blank}{address:#x}").as_bytes());
                }
            }
            Named::Stack => {
                for address in addresses(payload)? {
                    text.extend_from_slice(&self.find(address, 0).text);
                    text.push(b'\n');
                }
            }
            Named::StoredStack => {
                for words in payload.bytes()?.unwrap_or_default().as_chunks::<16>().0 {
                    let (address, time) = words.split_at(8);
                    let word = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).unwrap_or_default();
                    text.extend_from_slice(&self.find_of(word(address), 0, word(time)).text);
                    text.push(b'\n');
                }
            }
            Named::UserStack | Named::UserText | Named::UserFolded => {
                let part = payload.bytes()?.unwrap_or_default();
                let mut text = Text::new(MAX_TEXT);
                match conversion {
                    Named::UserText => self.users.lines(user::frames_of_text(part), false, &mut text),
                    Named::UserFolded => self.users.folded(&user::frames_of_text(part), &mut text),
                    _ => self.users.lines(user::frames(part, false), false, &mut text),
                }
                return Ok(text.as_bytes().to_vec().into());
            }
            Named::UserSymbol
            | Named::UserData
            | Named::UserFile
            | Named::UserLine
            | Named::UserFileLine
            | Named::UserBuildId => {
                let frames = user::frames(payload.bytes()?.unwrap_or_default(), false);
                return Ok(frames.first().map(|frame| self.users.name(conversion, *frame)).unwrap_or_default().into());
            }
        }
        Ok(text.into())
    }

    /// Appends the lines of a printed stack ([`spile_abi::record::FORMAT_STACK`]).
    pub fn stack(&mut self, payload: &mut Payload<'_>, text: &mut Text) -> Result<(), ShortPayload> {
        let flags = payload.long()?;
        let has = |flag| flags & flag != 0;
        if has(STACK_RETURNING) {
            text.push(b"Returning from: ");
            text.push(payload.bytes()?.unwrap_or_default());
            text.push(b"\nReturning to  :");
        }
        let part = payload.bytes()?.unwrap_or_default();
        if has(STACK_OF_USER) {
            self.users.lines(user::frames(part, has(STACK_LINES)), has(STACK_FULL), text);
            return Ok(());
        }
        let stride = if has(STACK_STORED) { 2 } else { 1 };
        for (index, words) in part.as_chunks::<8>().0.chunks_exact(stride).enumerate() {
            let [address, stored] =
                [words.first(), words.get(1)].map(|word| word.map_or(0, |word| u64::from_le_bytes(*word)));
            let returns = index > 0 || !has(STACK_AT_PROBE);
            let source = if !has(STACK_LINES) {
                0
            } else if returns {
                SYMBOL_LINE | SYMBOL_RETURNS
            } else {
                SYMBOL_LINE
            };
            let known = self.find_of(address, source, stored);
            if has(STACK_FULL) {
                text.push_byte(b' ');
                text.push(&known.hex);
                text.push(b" : ");
            }
            known.write(text);
            text.push_byte(b'\n');
        }
        Ok(())
    }
}

/// The answer for a key that holds at `time`; asks if none is known.
fn answer<K: Eq + Hash>(
    known: &mut HashMap<K, CachedName>,
    key: K,
    time: u64,
    ask: impl FnOnce() -> CachedName,
) -> &CachedName {
    if known.len() >= MOST_KNOWN {
        known.clear();
    }
    match known.entry(key) {
        Entry::Occupied(known) if known.get().until >= time => known.into_mut(),
        entry => entry.insert_entry(ask()).into_mut(),
    }
}

fn ask(kernel: Option<&dyn Kernel>, address: u64, flags: u32, time: u64) -> CachedName {
    if address == 0 {
        // There is no code, and so no name.
        return CachedName { until: u64::MAX, stays: true, ..unnamed(0) };
    }
    let text = [0; spile_abi::device::SYMBOL_TEXT];
    let line = [0; spile_abi::device::SYMBOL_LINE_TEXT];
    let mut symbol = Symbol { address, time, until: 0, flags, stays: 0, text, line };
    if !kernel.is_some_and(|kernel| kernel.name(&mut symbol)) || symbol.text.starts_with(&[0]) {
        return unnamed(address);
    }
    CachedName {
        text: bytes(&symbol.text),
        line: bytes(&symbol.line),
        until: symbol.until,
        stays: symbol.stays != 0,
        ..unnamed(address)
    }
}

/// The text of an address without a name. It is looked up again in the next record.
fn unnamed(address: u64) -> CachedName {
    let hex: Box<[u8]> = format!("{address:#x}").into_bytes().into();
    CachedName { text: hex.clone(), hex, line: Box::default(), until: 0, stays: false }
}

/// Up to the NUL.
fn bytes(field: &[u8]) -> Box<[u8]> {
    field.split(|byte| *byte == 0).next().unwrap_or_default().into()
}

/// The addresses in a memory part; empty if it could not be read.
fn addresses<'p>(payload: &mut Payload<'p>) -> Result<impl Iterator<Item = u64> + use<'p>, ShortPayload> {
    let part = payload.bytes()?.unwrap_or_default();
    Ok(part.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::records::user::tests::Fake as FakePrograms;
    use spile_abi::record::Place;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// A module of two functions at 0x1000 that is unloaded when the clock is at 100; the kernel's `vfs_read` at
    /// 0x9000.
    #[derive(Default)]
    pub struct Fake {
        gone: AtomicBool,
        asked: Mutex<Vec<(u64, u64, u32)>>,
    }

    impl Kernel for Fake {
        fn name(&self, symbol: &mut Symbol) -> bool {
            self.asked.lock().unwrap().push((symbol.address, symbol.time, symbol.flags));
            let (text, stays, until) = match symbol.address {
                0x1000..0x1100 if self.gone.load(Ordering::Relaxed) && symbol.time > 100 => {
                    (format!("{:#x}", symbol.address), 0, u64::MAX)
                }
                0x1000..0x1100 => {
                    let until = if self.gone.load(Ordering::Relaxed) { 100 } else { u64::MAX };
                    (format!("probed+{:#x}/0x100 [fake]", symbol.address - 0x1000), 0, until)
                }
                0x9000..0x9100 => (format!("vfs_read+{:#x}/0x100 [kernel]", symbol.address - 0x9000), 1, u64::MAX),
                _ => return false,
            };
            symbol.text[..text.len()].copy_from_slice(text.as_bytes());
            if symbol.flags & SYMBOL_LINE != 0 && stays == 1 {
                let line = if symbol.flags & SYMBOL_RETURNS != 0 { "fs/read_write.c:9" } else { "fs/read_write.c:10" };
                symbol.line[..line.len()].copy_from_slice(line.as_bytes());
            }
            (symbol.stays, symbol.until) = (stays, until);
            true
        }
    }

    /// The part of a record that has these addresses.
    pub fn part(addresses: &[u64]) -> Vec<u8> {
        let mut part = (addresses.len() as u32 * 8).to_le_bytes().to_vec();
        part.extend(addresses.iter().flat_map(|address| address.to_le_bytes()));
        part.extend([0; 4]);
        part
    }

    fn shown(symbols: &mut Symbols<'_>, flags: i64, function: &[u8], addresses: &[u64]) -> String {
        let mut payload = flags.to_le_bytes().to_vec();
        payload.extend_from_slice(function);
        payload.extend(part(addresses));
        let mut text = Text::new(1000);
        assert_eq!(symbols.stack(&mut Payload::new(&payload), &mut text), Ok(()));
        String::from_utf8_lossy(text.as_bytes()).into_owned()
    }

    #[test]
    fn stacks_in_each_form() {
        let fake = Fake::default();
        let mut symbols = Symbols::new(Some(&fake), Users::new(Some(Box::new(FakePrograms::default()))));
        let stack = [0x1010, 0x9004, 7];
        assert_eq!(shown(&mut symbols, 0, b"", &stack), "probed+0x10/0x100 [fake]\nvfs_read+0x4/0x100 [kernel]\n0x7\n");
        assert_eq!(
            shown(&mut symbols, STACK_FULL, b"", &stack),
            " 0x1010 : probed+0x10/0x100 [fake]\n 0x9004 : vfs_read+0x4/0x100 [kernel]\n 0x7 : 0x7\n"
        );
        assert_eq!(
            shown(&mut symbols, STACK_FULL | STACK_RETURNING, b"\x02\0\0\0ab\0\0", &stack[1..2]),
            "Returning from: ab\nReturning to  : 0x9004 : vfs_read+0x4/0x100 [kernel]\n"
        );
        assert_eq!(
            shown(&mut symbols, STACK_FULL | STACK_LINES | STACK_AT_PROBE, b"", &[0x9004, 0x9008, 0x1010]),
            " 0x9004 : vfs_read+0x4/0x100 at fs/read_write.c:10 [kernel]\n 0x9008 : vfs_read+0x8/0x100 at fs/read_write.c:9 [kernel]\n \
             0x1010 : probed+0x10/0x100 [fake]\n"
        );
        let in_main = Place::new(1, 0x110).0;
        assert_eq!(
            shown(&mut symbols, STACK_FULL | STACK_OF_USER, b"", &[0x9004, in_main, 0x9008, 0]),
            " 0x9004 : main+0x10/0x100 [/bin/it]\n 0x9008 : 0x9008\n"
        );
        assert_eq!(
            shown(&mut symbols, STACK_LINES | STACK_OF_USER, b"", &[0x9004, in_main, 0x9004, in_main]),
            "main+0x10/0x100 at it.c:9 [/bin/it]\nmain+0x10/0x100 at it.c:8 [/bin/it]\n"
        );
        assert_eq!(shown(&mut Symbols::new(None, Users::default()), 0, b"", &[0x9004, 0]), "0x9004\n0x0\n");
    }

    #[test]
    fn names_are_cached_until_the_kernel_s_symbols_change() {
        let fake = Fake::default();
        let mut symbols = Symbols::new(Some(&fake), Users::new(Some(Box::new(FakePrograms::default()))));
        let mut see = |time, changes| {
            symbols.changed(changes);
            symbols.at(time);
            let text = shown(&mut symbols, 0, b"", &[0x1000, 0x9000]);
            text.lines().next().unwrap_or_default().to_string()
        };
        assert_eq!(see(10, 0), "probed+0x0/0x100 [fake]");
        assert_eq!(see(20, 0), "probed+0x0/0x100 [fake]");
        assert_eq!(fake.asked.lock().unwrap().len(), 2, "each once");
        fake.gone.store(true, Ordering::Relaxed);
        // Records from before and after, in one batch.
        assert_eq!(see(90, 1), "probed+0x0/0x100 [fake]");
        assert_eq!(see(110, 1), "0x1000");
        let expected = [(0x1000, 10, 0), (0x9000, 10, 0), (0x1000, 90, 0), (0x1000, 110, 0)];
        assert_eq!(*fake.asked.lock().unwrap(), expected, "the kernel's own once, the module's anew");
    }

    #[test]
    fn stored_addresses_have_the_names_of_their_time() {
        let fake = Fake::default();
        fake.gone.store(true, Ordering::Relaxed);
        let mut symbols = Symbols::new(Some(&fake), Users::new(Some(Box::new(FakePrograms::default()))));
        symbols.at(110);
        assert_eq!(shown(&mut symbols, 0, b"", &[0x1000]), "0x1000\n");
        let stored = [0x1000, 100, 0x1000, 0, 0x9004, 0, 0x1008, 100];
        let expected = "probed+0x0/0x100 [fake]\n0x1000\nvfs_read+0x4/0x100 [kernel]\nprobed+0x8/0x100 [fake]\n";
        assert_eq!(shown(&mut symbols, STACK_STORED, b"", &stored), expected);
        assert_eq!(shown(&mut symbols, STACK_STORED, b"", &stored), expected);
    }

    #[test]
    fn conversions() {
        let fake = Fake::default();
        let mut symbols = Symbols::new(Some(&fake), Users::new(Some(Box::new(FakePrograms::default()))));
        let mut text = |conversion, payload: &[u8]| {
            let named = symbols.named(conversion, false, &mut Payload::new(payload));
            named.map(|text| String::from_utf8_lossy(&text).into_owned())
        };
        let at = 0x1010u64.to_le_bytes();
        assert_eq!(text(Named::Symbol, &at).as_deref(), Ok("probed"));
        assert_eq!(text(Named::Data, &at).as_deref(), Ok("probed+0x10/0x100 [fake]"));
        assert_eq!(text(Named::Module, &at).as_deref(), Ok("fake"));
        assert_eq!(text(Named::Module, &0x9000u64.to_le_bytes()).as_deref(), Ok("kernel"));
        assert_eq!(text(Named::Module, &7u64.to_le_bytes()).as_deref(), Ok("<unknown>"));
        assert_eq!(text(Named::Symbol, &7u64.to_le_bytes()).as_deref(), Ok("0x7"));
        assert_eq!(text(Named::Addresses, &part(&[0x1010, 7])).as_deref(), Ok("0x1010 0x7"));
        assert_eq!(text(Named::Stack, &part(&[0x1010, 7])).as_deref(), Ok("probed+0x10/0x100 [fake]\n0x7\n"));
        assert_eq!(
            text(Named::StoredStack, &part(&[0x1010, 0, 7, 0])).as_deref(),
            Ok("probed+0x10/0x100 [fake]\n0x7\n")
        );
        assert_eq!(text(Named::UserStack, &part(&[0x1010, 0])).as_deref(), Ok("0x1010\n"));
        assert_eq!(text(Named::UserText, b"\x0a\0\0\x000x10@1+110\0\0").as_deref(), Ok("main+0x10/0x100 [/bin/it]\n"));
        assert_eq!(text(Named::UserBuildId, &part(&[0x1010, Place::new(1, 0x110).0])).as_deref(), Ok("ab01"));
        assert_eq!(text(Named::Addresses, &part(&[])).as_deref(), Ok(""));
        assert_eq!(text(Named::Addresses, &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]).as_deref(), Ok(""));
        assert_eq!(text(Named::Symbol, b"1234"), Err(ShortPayload));
        assert_eq!(text(Named::Addresses, &part(&[1])[..8]), Err(ShortPayload));
    }
}
