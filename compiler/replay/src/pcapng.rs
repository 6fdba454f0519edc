// SPDX-License-Identifier: GPL-2.0-or-later

//! Packets for Wireshark: memory that the script printed (`%m`, `%M`), each with the text of its print as a comment.
//! Three kinds of blocks are written; crates for the format mostly read it, and take files, not a session that goes on.

use std::io::Write;

use spilerun::records::values::{Part, Value};

use crate::event::{Event, Print, Session, What};
use crate::read::{ReadError, Receiver};

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const ETHERNET: u16 = 1;
const RAW_IP: u16 = 101;
const COMMENT: u16 = 1;
const NAME: u16 = 2;
const RESOLUTION: u16 = 9;
/// A comment's length has 16 bits.
const MOST_COMMENT: usize = 60_000;

/// Writes packets.
#[derive(Debug)]
pub struct Pcapng<W> {
    to: W,
    packets: u64,
}

impl<W: Write> Pcapng<W> {
    /// Writes from the first session on.
    pub fn new(to: W) -> Pcapng<W> {
        Pcapng { to, packets: 0 }
    }

    /// After the last event; the number of packets.
    pub fn finish(mut self) -> Result<u64, ReadError> {
        self.to.flush()?;
        Ok(self.packets)
    }

    fn block(&mut self, kind: u32, body: &[u8]) -> Result<(), ReadError> {
        let length = (body.len() + 12) as u32;
        let block = [&kind.to_le_bytes()[..], &length.to_le_bytes(), body, &length.to_le_bytes()].concat();
        Ok(self.to.write_all(&block)?)
    }
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    pad(body);
}

fn interface(link: u16, name: &str) -> Vec<u8> {
    let mut body = link.to_le_bytes().to_vec();
    body.extend([0; 6]);
    option(&mut body, NAME, name.as_bytes());
    // Nanoseconds.
    option(&mut body, RESOLUTION, &[9]);
    option(&mut body, 0, &[]);
    body
}

/// Whether the bytes begin with the header of a link, and not with that of IP.
fn is_frame(bytes: &[u8]) -> bool {
    const TYPES: [[u8; 2]; 5] = [[0x08, 0x00], [0x86, 0xdd], [0x08, 0x06], [0x81, 0x00], [0x88, 0xa8]];
    let has_type = bytes.get(12..14).is_some_and(|kind| TYPES.iter().any(|known| kind == known));
    let is_ip = match bytes.first().map(|first| first >> 4) {
        Some(4) => bytes.first().is_some_and(|first| first & 15 >= 5) && bytes.len() >= 20,
        Some(6) => bytes.len() >= 40,
        _ => false,
    };
    has_type || !is_ip
}

/// The print without its packets.
fn comment(print: &Print<'_>) -> String {
    let mut texts = Vec::new();
    for (name, value) in print.values() {
        if matches!(value, Value::Memory(_)) {
            continue;
        }
        let mut json = String::new();
        crate::json::write_value(value, &mut json);
        texts.push(format!("{name}={json}"));
    }
    let mut text = texts.join(" ");
    let end = (0..=MOST_COMMENT.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.truncate(end.unwrap_or(0));
    text
}

impl<W: Write> Receiver for Pcapng<W> {
    fn session(&mut self, _: &Session) -> Result<(), ReadError> {
        let mut body = BYTE_ORDER.to_le_bytes().to_vec();
        body.extend(1u16.to_le_bytes());
        body.extend(0u16.to_le_bytes());
        // The length of the section is not known yet.
        body.extend((-1i64).to_le_bytes());
        self.block(SECTION, &body)?;
        self.block(INTERFACE, &interface(ETHERNET, "frames"))?;
        self.block(INTERFACE, &interface(RAW_IP, "ip"))
    }

    fn event(&mut self, session: &Session, event: &Event<'_>) -> Result<(), ReadError> {
        let What::Print(print) = &event.what else { return Ok(()) };
        for part in print.parts {
            let Part::Value(Value::Memory(bytes)) = part else { continue };
            let time = session.real(event.time);
            let mut body = u32::from(!is_frame(bytes)).to_le_bytes().to_vec();
            for word in [(time >> 32) as u32, time as u32, bytes.len() as u32, bytes.len() as u32] {
                body.extend(word.to_le_bytes());
            }
            body.extend(bytes);
            pad(&mut body);
            let task = event.task.map(|task| format!("{} {}", String::from_utf8_lossy(&task.comm), task.pid));
            let words = [task, event.probe.map(str::to_string), Some(comment(print)).filter(|text| !text.is_empty())];
            let words: Vec<String> = words.into_iter().flatten().collect();
            option(&mut body, COMMENT, words.join(" ").as_bytes());
            option(&mut body, 0, &[]);
            self.block(PACKET, &body)?;
            self.packets += 1;
        }
        Ok(())
    }

    fn pause(&mut self) -> Result<(), ReadError> {
        Ok(self.to.flush()?)
    }
}
