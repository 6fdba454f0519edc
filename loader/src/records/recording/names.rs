// SPDX-License-Identifier: GPL-2.0-or-later

//! Names of addresses in recordings: while one is written, the answers are kept; when it is read, they are given again.

use std::collections::HashMap;
use std::fmt;
use std::sync::Mutex;

use spile_abi::device::{SYMBOL_LINE_TEXT, SYMBOL_TEXT, Symbol};
use spile_abi::record::Place;

use super::{Cursor, put_bytes, put_u32, put_u64};
use crate::records::symbol::Kernel;
use crate::records::user::{Frame, FrameName, KnownFrames, MAX_TEXT, Names};

const OF_KERNEL: u8 = 1;
const OF_USER: u8 = 2;
/// Answers of the kernel that a reader remembers: a damaged file may have any number.
const MOST_KNOWN: usize = 1 << 18;

/// The answers since the last frame.
#[derive(Debug, Default)]
pub struct Kept {
    entries: Mutex<Vec<u8>>,
}

impl Kept {
    /// Takes them.
    pub fn take(&self) -> Vec<u8> {
        self.entries.lock().map(|mut entries| std::mem::take(&mut *entries)).unwrap_or_default()
    }

    /// How many bytes they have.
    pub fn bytes(&self) -> usize {
        self.entries.lock().map(|entries| entries.len()).unwrap_or_default()
    }

    fn push(&self, write: impl FnOnce(&mut Vec<u8>)) {
        if let Ok(mut entries) = self.entries.lock() {
            write(&mut entries);
        }
    }
}

/// A source of the kernel's symbols whose answers are kept.
pub struct KeptKernel<'k> {
    kernel: &'k dyn Kernel,
    kept: &'k Kept,
}

impl<'k> KeptKernel<'k> {
    /// Passes questions on to `kernel`.
    pub fn new(kernel: &'k dyn Kernel, kept: &'k Kept) -> KeptKernel<'k> {
        KeptKernel { kernel, kept }
    }
}

impl Kernel for KeptKernel<'_> {
    fn name(&self, symbol: &mut Symbol) -> bool {
        let time = symbol.time;
        let answered = self.kernel.name(symbol);
        if answered {
            self.kept.push(|entries| {
                entries.push(OF_KERNEL);
                put_u64(entries, symbol.address);
                put_u64(entries, time);
                put_u64(entries, symbol.until);
                put_u32(entries, symbol.flags);
                put_u32(entries, symbol.stays);
                put_bytes(entries, text(&symbol.text));
                put_bytes(entries, text(&symbol.line));
            });
        }
        answered
    }
}

/// Up to the NUL.
fn text(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// A source of the names of user space whose answers are kept.
pub struct KeptNames<'k> {
    names: Box<dyn Names + 'k>,
    kept: &'k Kept,
    /// What the reader remembers: it is kept again when the reader has forgotten it.
    pushed: KnownFrames,
}

impl<'k> KeptNames<'k> {
    /// Passes questions on to `names`.
    pub fn new(names: Box<dyn Names + 'k>, kept: &'k Kept) -> KeptNames<'k> {
        KeptNames { names, kept, pushed: KnownFrames::default() }
    }
}

impl fmt::Debug for KeptNames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptNames").field("pushed", &self.pushed).finish_non_exhaustive()
    }
}

impl Names for KeptNames<'_> {
    fn find(&mut self, frame: Frame, may_read: bool) -> FrameName {
        let found = self.names.find(frame, may_read);
        let frame = frame.key();
        if self.pushed.get(frame) == Some(&found) {
            return found;
        }
        self.kept.push(|entries| {
            entries.push(OF_USER);
            put_u64(entries, frame.address);
            put_u64(entries, frame.place.0);
            entries.push(u8::from(frame.returns) | u8::from(frame.lines) << 1);
            let flags = [found.name.is_some(), found.file.is_some(), found.line.is_some(), found.is_certain];
            entries.push(flags.iter().enumerate().fold(0, |sum, (bit, set)| sum | u8::from(*set) << bit));
            put_u64(entries, found.offset);
            put_u64(entries, found.bytes);
            put_bytes(entries, &found.build_id);
            for part in [&found.name, &found.file].into_iter().flatten() {
                put_bytes(entries, part);
            }
            if let Some((file, line)) = &found.line {
                put_bytes(entries, file);
                put_u32(entries, *line);
            }
        });
        self.pushed.insert(frame, found.clone());
        found
    }
}

/// An answer of the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct KernelName {
    time: u64,
    until: u64,
    stays: u32,
    text: Vec<u8>,
    line: Vec<u8>,
}

/// The answers read so far from a recording.
#[derive(Debug, Default)]
pub struct Answers {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// By address and flags: the answers, the newest last.
    kernel: HashMap<(u64, u32), Vec<KernelName>>,
    /// Of these answers, about.
    bytes: usize,
    user: KnownFrames,
    /// What was forgotten last. The names of a frame's records come before them, so some of them may be these.
    older: KnownFrames,
}

impl Known {
    /// Counts a new answer of the kernel. If there are too many all others are forgotten.
    fn charge(&mut self, bytes: usize) {
        self.bytes += bytes;
        if self.bytes > MOST_BYTES || self.kernel.len() >= MOST_KNOWN {
            self.kernel = HashMap::new();
            self.bytes = bytes;
        }
    }
}

/// Bytes of the kernel's answers that are kept: [`MOST_KNOWN`] usual ones have half as many.
const MOST_BYTES: usize = 128 << 20;
/// Longest build-id of user space that is kept, as of names ([`MAX_TEXT`]); the kernel's names are as long as the module's fields.
const MAX_BUILD_ID: usize = 64;

/// A copy of the part's first bytes.
fn cut(part: &[u8], most: usize) -> Vec<u8> {
    part.get(..most).unwrap_or(part).to_vec()
}

/// Answers for one address that are kept: of modules that were loaded one after the other.
const MOST_OF_ADDRESS: usize = 64;

impl Answers {
    /// Adds the contents of a frame; false: they are damaged.
    pub fn add(&self, contents: &[u8]) -> bool {
        let mut cursor = Cursor { bytes: contents };
        while !cursor.bytes.is_empty() {
            let added = match cursor.u8() {
                Some(OF_KERNEL) => self.add_kernel(&mut cursor),
                Some(OF_USER) => self.add_user(&mut cursor),
                _ => None,
            };
            if added.is_none() {
                return false;
            }
        }
        true
    }

    fn add_kernel(&self, cursor: &mut Cursor<'_>) -> Option<()> {
        let address = cursor.u64()?;
        let (time, until, flags, stays) = (cursor.u64()?, cursor.u64()?, cursor.u32()?, cursor.u32()?);
        let (text, line) = (cut(cursor.bytes()?, SYMBOL_TEXT), cut(cursor.bytes()?, SYMBOL_LINE_TEXT));
        let name = KernelName { time, until, stays, text, line };
        let mut known = self.known.lock().ok()?;
        known.charge(size_of::<KernelName>() + name.text.len() + name.line.len());
        let names = known.kernel.entry((address, flags)).or_default();
        if names.len() >= MOST_OF_ADDRESS {
            names.remove(0);
        }
        names.push(name);
        Some(())
    }

    fn add_user(&self, cursor: &mut Cursor<'_>) -> Option<()> {
        let (address, place, kind, flags) = (cursor.u64()?, Place(cursor.u64()?), cursor.u8()?, cursor.u8()?);
        let frame = Frame { address, place, returns: kind & 1 != 0, lines: kind & 2 != 0 };
        let (offset, bytes, build_id) = (cursor.u64()?, cursor.u64()?, cut(cursor.bytes()?, MAX_BUILD_ID));
        let mut part = |bit: u8| match flags & bit {
            0 => Some(None),
            _ => cursor.bytes().map(|part| Some(cut(part, MAX_TEXT))),
        };
        let (name, file) = (part(1)?, part(2)?);
        let line = if flags & 4 != 0 { Some((cut(cursor.bytes()?, MAX_TEXT), cursor.u32()?)) } else { None };
        let found = FrameName { name, offset, bytes, file, build_id, line, is_certain: false };
        let mut known = self.known.lock().ok()?;
        let forgotten = known.user.insert(frame, found);
        if !forgotten.is_empty() {
            known.older = forgotten;
        }
        Some(())
    }
}

impl Kernel for Answers {
    fn name(&self, symbol: &mut Symbol) -> bool {
        let Ok(known) = self.known.lock() else { return false };
        let Some(names) = known.kernel.get(&(symbol.address, symbol.flags)) else { return false };
        // The first one that was given for a record of that time or later, or the last one.
        let of_time = names.iter().find(|name| name.time >= symbol.time || name.until >= symbol.time);
        let Some(name) = of_time.or(names.last()) else { return false };
        symbol.until = name.until;
        symbol.stays = name.stays;
        fill(&mut symbol.text, &name.text);
        fill(&mut symbol.line, &name.line);
        true
    }
}

/// Up to one byte before the end, which stays NUL.
fn fill(field: &mut [u8], text: &[u8]) {
    field.fill(0);
    let most = field.len().saturating_sub(1);
    field.iter_mut().zip(text.iter().take(most)).for_each(|(to, from)| *to = *from);
}

/// The same for user space.
#[derive(Debug)]
pub struct UserAnswers<'a>(pub &'a Answers);

impl Names for UserAnswers<'_> {
    fn find(&mut self, frame: Frame, _: bool) -> FrameName {
        let Ok(known) = self.0.known.lock() else { return FrameName::default() };
        known.user.get(frame).or_else(|| known.older.get(frame)).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::symbol::tests::Fake as FakeKernel;
    use crate::records::user::tests::Fake as FakePrograms;
    use spile_abi::device::SYMBOL_LINE;

    fn symbol(address: u64, flags: u32) -> Symbol {
        Symbol { address, time: 7, until: 0, flags, stays: 0, text: [0; SYMBOL_TEXT], line: [0; SYMBOL_LINE_TEXT] }
    }

    fn frame(file: u32, offset: u64, lines: bool) -> Frame {
        Frame { address: 0x7f10, place: Place::new(file, offset), returns: true, lines }
    }

    #[test]
    fn what_was_answered_is_answered_again() {
        let (kept, fake) = (Kept::default(), FakeKernel::default());
        let kernel = KeptKernel::new(&fake, &kept);
        let mut user = KeptNames::new(Box::new(FakePrograms::default()), &kept);
        let mut asked = [symbol(0x9004, SYMBOL_LINE), symbol(0x1010, 0), symbol(0x5000, 0)];
        assert_eq!(asked.each_mut().map(|symbol| kernel.name(symbol)), [true, true, false]);
        let frames = [frame(1, 0x110, true), frame(2, 5, false), frame(0, 7, false), frame(0, 0, false)];
        let found = frames.map(|frame| user.find(frame, true));
        assert_eq!(user.find(frames[0], true), found[0]);

        let contents = kept.take();
        assert_eq!(kept.take(), []);
        let answers = Answers::default();
        assert!(answers.add(&contents));
        for wanted in asked {
            let mut again = symbol(wanted.address, wanted.flags);
            assert_eq!(answers.name(&mut again), wanted.address != 0x5000);
            assert_eq!(again, wanted);
        }
        let mut user = UserAnswers(&answers);
        let certain = |name: FrameName| FrameName { is_certain: false, ..name };
        assert_eq!(frames.map(|frame| user.find(frame, true)), found.map(certain));
        for end in 1..contents.len() {
            // Up to the end of an entry it is right, else damaged; never a panic.
            Answers::default().add(&contents[..end]);
        }
        assert!(!Answers::default().add(&contents[..contents.len() - 1]));
    }

    #[test]
    fn what_a_recording_claims_takes_bounded_memory() {
        let user = |address: u64, length: usize| {
            let mut entry = vec![OF_USER];
            put_u64(&mut entry, address);
            put_u64(&mut entry, Place::new(0, 0).0);
            entry.extend([0, 1]);
            [0, 0].iter().for_each(|word| put_u64(&mut entry, *word));
            put_bytes(&mut entry, &[7; 20]);
            put_bytes(&mut entry, &vec![b'a'; length]);
            entry
        };
        let kernel = |address: u64| {
            let mut entry = vec![OF_KERNEL];
            [address, 0, 0].iter().for_each(|word| put_u64(&mut entry, *word));
            [0, 0].iter().for_each(|word| put_u32(&mut entry, *word));
            put_bytes(&mut entry, &vec![b'b'; 1 << 20]);
            put_bytes(&mut entry, b"");
            entry
        };
        let answers = Answers::default();
        let kept = |answers: &Answers| answers.known.lock().unwrap().bytes;
        assert!(answers.add(&user(1, 64 << 20)) && answers.add(&kernel(1)));
        assert!(kept(&answers) < 10_000, "long names are cut");
        let found = UserAnswers(&answers).find(Frame { address: 1, ..frame(0, 0, false) }, true);
        assert_eq!(found.name.map(|name| name.len()), None, "another frame");
        let named = |address: u64| {
            UserAnswers(&answers).find(Frame { address, returns: false, ..frame(0, 0, false) }, true).name
        };
        for address in 0..40_000 {
            assert!(answers.add(&user(address, 5000)));
        }
        assert_eq!((named(0), named(39_999).map(|name| name.len())), (None, Some(MAX_TEXT)));
    }

    /// A name of 4,000 bytes for each frame.
    #[derive(Debug)]
    struct Long;

    impl Names for Long {
        fn find(&mut self, frame: Frame, _: bool) -> FrameName {
            let name = format!("{:x}{}", frame.place.0, "a".repeat(4000));
            FrameName { name: Some(name.into_bytes()), ..FrameName::default() }
        }
    }

    #[test]
    fn many_long_names_are_all_in_the_recording() {
        let (kept, answers) = (Kept::default(), Answers::default());
        let mut user = KeptNames::new(Box::new(Long), &kept);
        let of = |at: u64| frame(1, at % 30_000, false);
        // Records whose names are written together.
        for first in (0..90_000).step_by(500) {
            (first..first + 500).for_each(|at| drop(user.find(of(at), true)));
            assert!(answers.add(&kept.take()));
            for at in first..first + 500 {
                assert_eq!(UserAnswers(&answers).find(of(at), true), Long.find(of(at), true), "{at}");
            }
        }
    }
}
