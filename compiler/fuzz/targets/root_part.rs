// SPDX-License-Identifier: GPL-2.0-or-later

//! What the part of a set-uid spilerun reads that has root's rights: the messages of the user part, modules and their signatures,
//! certificates and limits.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::OnceLock;

use spilerun::error::Error;
use spilerun::file;
use spilerun::host::capability::Sets;
use spilerun::safety::certificate::Key;
use spilerun::safety::image::Image;
use spilerun::safety::limits::Limits;
use spilerun::safety::message::{BYTES, MAX_DATA, Message};
use spilerun::safety::privilege::Caller;
use spilerun::safety::rank::Rank;
use spilerun::safety::server::{Server, ask, error_of, split_lines};
use spilerun::safety::trust;

use super::Choices;

/// All that it refuses a caller; a module that a caller could start is loaded by none here, for lack of capabilities.
fn may_start(_: &Caller, name: &str) -> Result<(), Error> {
    match name.len() % 2 {
        0 => Ok(()),
        _ => Err(Error::NotLoaded { name: name.to_string() }),
    }
}

const NAMES: [&[u8]; 10] =
    [b"", b"*", b"a", b"no_such_module", b"../../etc/passwd", b"/etc/passwd", b"a/b", b"kernel", b"\xff\0\n", b"x.ko"];

fn message(choices: &mut Choices) -> Message {
    const NUMBERS: [u64; 6] = [0, 1, ask::VERBOSE | ask::RENAME, u32::MAX as u64, u64::MAX, 1 << 63];
    let kind = match choices.byte() {
        kind @ 0..200 => u32::from(kind % 15),
        other => u32::from(other) << 24 | u32::from(choices.byte()),
    };
    let mut number = || match choices.byte() {
        which @ 0..60 => NUMBERS[usize::from(which) % NUMBERS.len()],
        // The numbers of calls: direction, size, type and number.
        _ => u64::from_le_bytes([choices.byte(), choices.byte(), choices.byte(), choices.byte(), 0, 0, 0, 0]),
    };
    let numbers = [number(), number()];
    let data = match choices.byte() {
        which @ 0..100 => NAMES[usize::from(which) % NAMES.len()].to_vec(),
        100..120 => vec![choices.byte(); MAX_DATA],
        length => choices.take(usize::from(length)).to_vec(),
    };
    Message { kind, numbers, data }
}

/// Of the wrong kind, sealed with no module in it, or none. Made once: that takes many system calls.
fn descriptor(which: u8) -> Option<OwnedFd> {
    static MADE: OnceLock<[Option<OwnedFd>; 2]> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let sealed = || Image::of(b"\x7fELF, and no more").ok()?.file()?.try_clone_to_owned().ok();
        [std::fs::File::open("/dev/null").ok().map(OwnedFd::from), sealed()]
    });
    made.get(usize::from(which % 4))?.as_ref()?.try_clone().ok()
}

/// A rank, and messages one after the other, each with a descriptor or none; what answers are read as at the other end. Then the
/// bytes as one message. Nothing is done: the thread has no capabilities from then on.
pub fn line(bytes: &[u8]) {
    Sets::default().become_current().expect("capabilities can be given up");
    let mut choices = Choices::new(bytes);
    let rank = [Rank::None, Rank::Usr, Rank::Sys, Rank::Dev][choices.of(4)];
    let mut server = Server::new(Some(Caller::new(12345, 12345, rank)), may_start);
    for _ in 0..8 {
        let descriptor = descriptor(choices.byte());
        let (reply, _) = server.answer(message(&mut choices), descriptor);
        assert!(reply.data.len() <= MAX_DATA);
        let _ = (split_lines(&reply.data), error_of(&reply, Path::new("x")).to_string());
    }
    let mut raw = [0; BYTES];
    raw.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    if let Some(message) = Message::decode(&raw) {
        let _ = (split_lines(&message.data), error_of(&message, Path::new("x")).to_string());
    }
}

pub fn line_seeds() -> Vec<Vec<u8>> {
    // Of each rank: find, offer with a descriptor, load, look, call, read, remove.
    let one = |kind: u8, descriptor: u8, name: u8| [descriptor, kind, 1, 0, name];
    let all = [
        one(1, 3, 3),
        one(2, 1, 2),
        one(3, 3, 0),
        one(8, 3, 7),
        one(9, 3, 0),
        one(10, 3, 0),
        one(11, 3, 1),
        one(12, 0, 0),
    ];
    (0..4).map(|rank| [&[rank][..], all.concat().as_slice()].concat()).collect()
}

const CERTIFICATE: &[u8] = include_bytes!("../../../loader/tests/trust/certificate.der");

/// As a module with a signature behind it, a certificate, and the limits of sessions.
pub fn signature(bytes: &[u8]) {
    let _ = Key::of_certificate(bytes);
    let _ = (file::kernel_name(bytes), file::rename(&mut bytes.to_vec(), 7));
    let _ = Limits::parse(&String::from_utf8_lossy(bytes), 1 << 30);
    let key = Key::of_certificate(CERTIFICATE).expect("the certificate is sound");
    assert!(!trust::is_signed_by(bytes, std::slice::from_ref(&key)));
    let signed = [bytes, spile_abi::seal::SIGNATURE_MARK].concat();
    assert!(!trust::is_signed_by(&signed, &[key]));
}

pub fn signature_seeds() -> Vec<Vec<u8>> {
    let module = super::elf::executable(vec![super::elf::Section::plain(".gnu.linkonce.this_module", vec![b'a'; 100])]);
    let limits = b"USER_MEMORY=1/16\nALL_MEMORY=512M\nUSER_SESSIONS=4\nKEEP=spilesys\n".to_vec();
    vec![CERTIFICATE.to_vec(), module, limits]
}
