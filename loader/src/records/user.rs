// SPDX-License-Identifier: GPL-2.0-or-later

//! Frames of user space in records, and their printed forms. The names are from the files that the frames are in
//! (the module `userspace`).

use std::collections::HashMap;
use std::fmt;

use spile_abi::format::Named;
use spile_abi::record::Place;

use crate::error::Hex;
use crate::host::clock;
use crate::records::text::Text;

/// Bytes of answers that are remembered.
const MOST_KNOWN: usize = 64 << 20;
/// Longest name and path in an answer: any user may have written them, of any length, and each frame has a copy.
pub const MAX_TEXT: usize = 4096;

/// A frame to be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The address in its process.
    pub address: u64,
    /// The place in its file.
    pub place: Place,
    /// It is a return address: the call is before it.
    pub returns: bool,
    /// The source line is wanted.
    pub lines: bool,
}

impl Frame {
    /// Frames with the same key have the same answer: in a file the offset is sufficient.
    pub fn key(self) -> Frame {
        Frame { address: if self.place.file().is_some() { 0 } else { self.address }, ..self }
    }
}

/// What is known about a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameName {
    /// The name as in the source.
    pub name: Option<Vec<u8>>,
    /// The offset in the function; without a name, in the file.
    pub offset: u64,
    /// Bytes of the function; 0: not known.
    pub bytes: u64,
    /// Path.
    pub file: Option<Vec<u8>>,
    /// Build-id of the file; empty if it has none.
    pub build_id: Vec<u8>,
    /// Source file and line.
    pub line: Option<(Vec<u8>, u32)>,
    /// The file was read: later answers are the same.
    pub is_certain: bool,
}

impl FrameName {
    /// With texts of [`MAX_TEXT`] bytes at most.
    pub fn cut(mut self) -> FrameName {
        let line = self.line.as_mut().map(|(file, _)| file);
        [self.name.as_mut(), self.file.as_mut(), line].into_iter().flatten().for_each(|text| text.truncate(MAX_TEXT));
        self
    }

    /// What it takes of the memory with its frame, about. The same for equal ones, whatever room they have.
    fn bytes(&self) -> usize {
        /// Of each allocation.
        const OVERHEAD: usize = 16;
        let line = self.line.as_ref().map(|(file, _)| file);
        let texts = [Some(&self.build_id), self.name.as_ref(), self.file.as_ref(), line];
        let texts = texts.into_iter().flatten().map(|text| text.len() + OVERHEAD).sum::<usize>();
        size_of::<(Frame, FrameName)>() + texts
    }

    /// `NAME+OFFSET/SIZE [PATH]`, with a line `NAME+OFFSET/SIZE at FILE:LINE [PATH]`; without a name `0xADDRESS [PATH+OFFSET]`.
    fn describe(&self, address: u64) -> Vec<u8> {
        let mut text = match &self.name {
            Some(name) => name.clone(),
            None => format!("{address:#x}").into_bytes(),
        };
        if self.name.is_some() {
            text.extend(format!("+{:#x}", self.offset).into_bytes());
            if self.bytes != 0 {
                text.extend(format!("/{:#x}", self.bytes).into_bytes());
            }
        }
        if let Some((file, line)) = &self.line {
            text.extend(b" at ");
            text.extend(file);
            text.extend(format!(":{line}").into_bytes());
        }
        if let Some(file) = &self.file {
            text.extend(b" [");
            text.extend(file);
            if self.name.is_none() {
                text.extend(format!("+{:#x}", self.offset).into_bytes());
            }
            text.push(b']');
        }
        text
    }
}

/// A source of names.
pub trait Names: fmt::Debug + Send {
    /// What is known about the frame; without `may_read` by what is in memory.
    fn find(&mut self, frame: Frame, may_read: bool) -> FrameName;
}

/// Nanoseconds for finding names, in the thread that reads the records: at most so many at once, and a part of the time that passes.
/// One record may have frames in more than a hundred files that any user has made.
const MOST_CREDIT: u64 = 10_000_000_000;
const CREDIT_PART: u64 = 4;

/// The nanoseconds that are left, at a time.
#[derive(Clone, Copy, Debug)]
struct Credit {
    left: u64,
    at: u64,
}

impl Credit {
    /// Whether there are any.
    fn is_left(&mut self, now: u64) -> bool {
        let gained = now.saturating_sub(self.at) / CREDIT_PART;
        *self = Credit { left: self.left.saturating_add(gained).min(MOST_CREDIT), at: now };
        self.left > 0
    }

    /// Up to now, since [`Credit::is_left`].
    fn spend(&mut self, now: u64) {
        *self = Credit { left: self.left.saturating_sub(now.saturating_sub(self.at)), at: now };
    }
}

impl Default for Credit {
    fn default() -> Credit {
        Credit { left: MOST_CREDIT, at: 0 }
    }
}

/// Answers that are remembered. If there are too many all are forgotten: at the same answer, if they come in the same order.
#[derive(Debug, Default)]
pub struct KnownFrames {
    frames: HashMap<Frame, FrameName>,
    bytes: usize,
}

impl KnownFrames {
    /// The answer for the frame.
    pub fn get(&self, frame: Frame) -> Option<&FrameName> {
        self.frames.get(&frame.key())
    }

    /// Remembers it. What is forgotten for it; usually nothing.
    pub fn insert(&mut self, frame: Frame, found: FrameName) -> KnownFrames {
        self.bytes += found.bytes();
        let forgotten = if self.bytes > MOST_KNOWN { std::mem::take(self) } else { KnownFrames::default() };
        if self.frames.is_empty() {
            self.bytes = found.bytes();
        }
        self.frames.insert(frame.key(), found);
        forgotten
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
}

/// Names with a cache.
#[derive(Debug, Default)]
pub struct Users<'k> {
    names: Option<Box<dyn Names + 'k>>,
    known: KnownFrames,
    /// A name was looked for that was not known: a file may have been read.
    asked: bool,
    credit: Credit,
    /// Whether the session is to end; once it is, there is as much time again, as many scripts print their stacks then.
    is_over: Option<fn() -> bool>,
}

impl<'k> Users<'k> {
    /// `None`: all addresses are printed in hex.
    pub fn new(names: Option<Box<dyn Names + 'k>>) -> Users<'k> {
        Users { names, ..Users::default() }
    }

    /// When `is_over` becomes true, the time for names begins anew.
    pub fn until(self, is_over: fn() -> bool) -> Users<'k> {
        Users { is_over: Some(is_over), ..self }
    }

    /// Whether names were looked for since the last call that were not known: that takes up to some tenths of a second each.
    pub fn takes_asked(&mut self) -> bool {
        std::mem::take(&mut self.asked)
    }

    fn find(&mut self, frame: Frame) -> FrameName {
        if let Some(found) = self.known.get(frame) {
            return found.clone();
        }
        self.asked = true;
        if self.is_over.is_some_and(|is_over| is_over()) {
            self.is_over = None;
            self.credit.left = MOST_CREDIT;
        }
        let may_read = self.credit.is_left(clock::now());
        let found = self.names.as_mut().map(|names| names.find(frame, may_read)).unwrap_or_default();
        self.credit.spend(clock::now());
        if found.is_certain {
            self.known.insert(frame, found.clone());
        }
        found
    }

    /// Appends a line for each frame.
    pub fn lines(&mut self, frames: impl IntoIterator<Item = Frame>, full: bool, text: &mut Text) {
        for frame in frames {
            let found = self.find(frame);
            if full {
                text.push(format!(" {:#x} : ", frame.address).as_bytes());
            }
            text.push(&found.describe(frame.address));
            text.push_byte(b'\n');
        }
    }

    /// Appends the names from the outermost on, with `;` between them; of frames without a name their file's.
    pub fn folded(&mut self, frames: &[Frame], text: &mut Text) {
        for (index, frame) in frames.iter().rev().enumerate() {
            if index > 0 {
                text.push_byte(b';');
            }
            let found = self.find(*frame);
            let name = found.name.unwrap_or_else(|| match &found.file {
                Some(file) => [b"[", file.rsplit(|byte| *byte == b'/').next().unwrap_or_default(), b"]"].concat(),
                None => format!("{:#x}", frame.address).into_bytes(),
            });
            // These characters separate frames, and the stack from its count.
            let safe: Vec<u8> =
                name.into_iter().map(|byte| if matches!(byte, b';' | b'\n') { b':' } else { byte }).collect();
            text.push(&safe);
        }
    }

    /// The text of a conversion of one frame.
    pub fn name(&mut self, conversion: Named, frame: Frame) -> Vec<u8> {
        let lines = matches!(conversion, Named::UserFile | Named::UserLine | Named::UserFileLine);
        let found = self.find(Frame { lines, ..frame });
        let hex = || format!("{:#x}", frame.address).into_bytes();
        match (conversion, &found.line) {
            (Named::UserSymbol, _) => found.name.unwrap_or_else(hex),
            (Named::UserBuildId, _) => Hex(&found.build_id).to_string().into_bytes(),
            (Named::UserFile, Some((file, _))) => file.clone(),
            (Named::UserLine, Some((_, line))) => line.to_string().into_bytes(),
            (Named::UserFileLine, Some((file, line))) => [file.as_slice(), format!(":{line}").as_bytes()].concat(),
            (Named::UserFile | Named::UserLine | Named::UserFileLine, None) => hex(),
            _ => found.describe(frame.address),
        }
    }
}

/// The frame with that number in a stack: the first is where the program is, the others are return addresses, unless a signal has
/// come there.
fn frame_of(index: usize, address: u64, place: Place, lines: bool) -> Frame {
    let (place, is_interrupted) = place.interrupted();
    Frame { address, place, returns: index > 0 && !is_interrupted, lines }
}

/// The frames of a memory part.
pub fn frames(part: &[u8], lines: bool) -> Vec<Frame> {
    let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    let pairs = part.as_chunks::<16>().0.iter().enumerate();
    let frames = pairs.map(|(index, pair)| {
        let (address, place) = pair.split_at(8);
        frame_of(index, word(address), Place(word(place)), lines)
    });
    frames.collect()
}

/// The frames of a string, `0xADDRESS@FILE+OFFSET ...`, up to the first word that is not a frame. The offset begins with a 0 where a
/// signal has come.
pub fn frames_of_text(text: &[u8]) -> Vec<Frame> {
    let number = |text: &str, base| u64::from_str_radix(text, base).ok();
    let frame = |(index, word): (usize, &str)| {
        let (address, place) = word.split_once('@').unwrap_or((word, "0+0"));
        let (file, offset) = place.split_once('+')?;
        let address = number(address.strip_prefix("0x").unwrap_or(address), 16)?;
        let interrupted = if offset.len() > 1 && offset.starts_with('0') { Place::INTERRUPTED } else { 0 };
        let place = Place::new(number(file, 10)? as u32, number(offset, 16)? | interrupted);
        Some(frame_of(index, address, place, false))
    };
    let text = String::from_utf8_lossy(text);
    text.split(' ').filter(|word| !word.is_empty()).enumerate().map_while(frame).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// File 1 is a program of one function; process 7 has made one.
    #[derive(Debug, Default)]
    pub struct Fake {
        asked: usize,
    }

    impl Names for Fake {
        fn find(&mut self, frame: Frame, may_read: bool) -> FrameName {
            self.asked += 1;
            if !may_read {
                return FrameName { file: Some(b"/bin/unread".to_vec()), ..FrameName::default() };
            }
            let file = frame.place.file();
            match file {
                Some((1, offset @ 0x100..0x200)) => FrameName {
                    name: Some(b"main".to_vec()),
                    offset: offset - 0x100,
                    bytes: 0x100,
                    file: Some(b"/bin/it".to_vec()),
                    build_id: vec![0xab, 0x01],
                    line: frame.lines.then(|| (b"it.c".to_vec(), if frame.returns { 8 } else { 9 })),
                    is_certain: true,
                },
                Some((_, offset)) => FrameName { file: Some(b"/lib/x".to_vec()), offset, ..FrameName::default() },
                None if frame.place.process() == Some(7) => {
                    FrameName { name: Some(b"jit".to_vec()), offset: 1, bytes: 2, ..FrameName::default() }
                }
                None => FrameName::default(),
            }
        }
    }

    /// The part of a record that has these frames: address and place.
    pub fn part(frames: &[(u64, u64)]) -> Vec<u8> {
        let mut part = (frames.len() as u32 * 16).to_le_bytes().to_vec();
        part.extend(frames.iter().flat_map(|(address, place)| [address.to_le_bytes(), place.to_le_bytes()].concat()));
        part.extend([0; 4]);
        part
    }

    #[test]
    fn every_form_of_a_frame() {
        let mut users = Users::new(Some(Box::new(Fake::default())));
        let frame =
            |file, offset| Frame { address: 0x7f10, place: Place::new(file, offset), returns: false, lines: false };
        let mut name = |conversion, frame| String::from_utf8(users.name(conversion, frame)).unwrap();
        assert_eq!(name(Named::UserSymbol, frame(1, 0x110)), "main");
        assert_eq!(name(Named::UserData, frame(1, 0x110)), "main+0x10/0x100 [/bin/it]");
        assert_eq!(name(Named::UserFileLine, frame(1, 0x110)), "it.c:9");
        assert_eq!(name(Named::UserFile, frame(1, 0x110)), "it.c");
        assert_eq!(name(Named::UserLine, frame(1, 0x110)), "9");
        assert_eq!(name(Named::UserBuildId, frame(1, 0x110)), "ab01");
        assert_eq!(name(Named::UserData, frame(2, 0x110)), "0x7f10 [/lib/x+0x110]");
        assert_eq!(name(Named::UserFileLine, frame(2, 0x110)), "0x7f10");
        assert_eq!(name(Named::UserData, frame(0, 7)), "jit+0x1/0x2");
        assert_eq!(name(Named::UserSymbol, frame(0, 0)), "0x7f10");
        assert!(users.takes_asked() && !users.takes_asked());
        users.name(Named::UserSymbol, frame(1, 0x110));
        assert!(!users.takes_asked());
    }

    #[test]
    fn answers_take_bounded_memory() {
        let frame = |at| Frame { address: 0, place: Place::new(1, at), returns: false, lines: false };
        let answer =
            |bytes| FrameName { name: Some(vec![b'a'; bytes]), file: Some(vec![b'b'; bytes]), ..FrameName::default() };
        let held = |known: &KnownFrames| known.frames.values().map(FrameName::bytes).sum::<usize>();
        let (mut known, mut forgotten) = (KnownFrames::default(), 0);
        for at in 0..1 << 16 {
            let before = known.insert(frame(at), answer(MAX_TEXT).cut());
            forgotten += usize::from(!before.is_empty());
            assert!(held(&before) <= MOST_KNOWN && known.get(frame(at)).is_some());
        }
        assert!(held(&known) <= MOST_KNOWN && known.bytes == held(&known));
        assert_eq!(forgotten, 8);
        let long = FrameName { line: Some((vec![b'c'; 60 << 20], 1)), ..answer(60 << 20) }.cut();
        assert!(long.bytes() < 4 * MAX_TEXT, "{}", long.bytes());
    }

    #[test]
    fn names_take_a_part_of_the_time() {
        const SECOND: u64 = 1_000_000_000;
        let (mut credit, mut now, mut read) = (Credit::default(), 7 * SECOND, 0);
        // A record of 128 frames, each in a file that takes a second and a half.
        for _ in 0..128 {
            if credit.is_left(now) {
                (now, read) = (now + 3 * SECOND / 2, read + 1);
                credit.spend(now);
            }
        }
        assert_eq!((read, now), (7, 7 * SECOND + 21 * SECOND / 2));
        now += 4 * SECOND;
        assert!(credit.is_left(now) && credit.left <= SECOND);
        assert!(credit.is_left(u64::MAX) && credit.left == MOST_CREDIT);
    }

    #[test]
    fn without_time_names_are_those_in_memory_until_the_end() {
        let frame = |offset| Frame { address: 0x7f10, place: Place::new(1, offset), returns: false, lines: false };
        let mut users = Users::new(Some(Box::new(Fake::default()))).until(|| false);
        users.credit = Credit { left: 0, at: u64::MAX };
        assert_eq!(users.name(Named::UserData, frame(0x110)), b"0x7f10 [/bin/unread+0x0]");
        users = users.until(|| true);
        assert_eq!(users.name(Named::UserSymbol, frame(0x110)), b"main", "it was not remembered");
        users.credit = Credit { left: 0, at: u64::MAX };
        assert_eq!(users.name(Named::UserSymbol, frame(0x110)), b"main", "it is remembered");
        assert_eq!(users.name(Named::UserData, frame(0x120)), b"0x7f10 [/bin/unread+0x0]", "the end gives time once");
    }

    #[test]
    fn folded_stacks_begin_with_the_outermost() {
        let mut users = Users::new(Some(Box::new(Fake::default())));
        let mut text = Text::new(1000);
        users.folded(&frames_of_text(b"0x10@0+7 0x20@2+5 0x30@1+110 0x40"), &mut text);
        assert_eq!(text.as_bytes(), b"0x40;main;[x];jit");
    }

    #[test]
    fn a_text_has_the_same_frames() {
        let of_text = frames_of_text(b"0x10@1+110 0x20@0+7 0x30");
        let pairs = part(&[(0x10, Place::new(1, 0x110).0), (0x20, 7), (0x30, 0)]);
        assert_eq!(of_text, frames(&pairs[4..], false));
        assert_eq!(frames_of_text(b"0x10 nothing 0x20").len(), 1);
        assert_eq!(frames_of_text(b""), []);
    }

    #[test]
    fn an_instruction_at_which_a_signal_came_is_no_return_address() {
        let of_text = frames_of_text(b"0x10@1+110 0x20@1+0120 0x30@1+130 0x40@0+07");
        let returns: Vec<bool> = of_text.iter().map(|frame| frame.returns).collect();
        assert_eq!(returns, [false, false, true, false]);
        assert_eq!(of_text[1].place, Place::new(1, 0x120));
        assert_eq!(of_text[3].place.process(), Some(7));
        let pairs = part(&[(0x10, 0), (0x20, Place::new(1, 0x120).0 | Place::INTERRUPTED)]);
        assert_eq!(frames(&pairs[4..], false)[1], of_text[1]);
    }
}
