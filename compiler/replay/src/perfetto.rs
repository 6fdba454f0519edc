// SPDX-License-Identifier: GPL-2.0-or-later

//! A trace for Perfetto (ui.perfetto.dev): an instant on the track of its thread for each print and message, with the values as
//! arguments. Field numbers are those of protos/perfetto/trace/perfetto_trace.proto; its few messages are written without
//! prost, which would need that file, protoc and generated code for 40 lines of it.

use std::collections::HashMap;
use std::io::Write;

use spilerun::records::values::Value;

use crate::event::{Event, Session, Task, What};
use crate::json;
use crate::read::{ReadError, Receiver};

const TRACE_PACKET: u32 = 1;
const PACKET_TIMESTAMP: u32 = 8;
const PACKET_SEQUENCE: u32 = 10;
const PACKET_TRACK_EVENT: u32 = 11;
const PACKET_TRACK_DESCRIPTOR: u32 = 60;
const TRACK_UUID: u32 = 1;
const TRACK_NAME: u32 = 2;
const TRACK_PROCESS: u32 = 3;
const TRACK_THREAD: u32 = 4;
const PROCESS_PID: u32 = 1;
const PROCESS_NAME: u32 = 6;
const THREAD_PID: u32 = 1;
const THREAD_TID: u32 = 2;
const THREAD_NAME: u32 = 5;
const EVENT_ANNOTATION: u32 = 4;
const EVENT_TYPE: u32 = 9;
const EVENT_TRACK: u32 = 11;
const EVENT_CATEGORY: u32 = 22;
const EVENT_NAME: u32 = 23;
const INSTANT: u64 = 3;
const ANNOTATION_NAME: u32 = 10;
const ANNOTATION_UNSIGNED: u32 = 3;
const ANNOTATION_SIGNED: u32 = 4;
const ANNOTATION_STRING: u32 = 6;

/// The track of events without a task.
const SESSION_TRACK: u64 = 1;
/// Tracks that are kept; the threads of a longer recording are described again.
const MOST_TRACKS: usize = 1 << 16;

/// A message of the protocol buffers' wire format.
#[derive(Debug, Default)]
struct Message {
    bytes: Vec<u8>,
}

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn number(mut self, field: u32, value: u64) -> Message {
        self.varint(u64::from(field << 3));
        self.varint(value);
        self
    }

    fn part(mut self, field: u32, bytes: &[u8]) -> Message {
        self.varint(u64::from(field << 3 | 2));
        self.varint(bytes.len() as u64);
        self.bytes.extend(bytes);
        self
    }

    /// Strings are UTF-8.
    fn text(self, field: u32, text: &[u8]) -> Message {
        self.part(field, String::from_utf8_lossy(text).as_bytes())
    }
}

/// Writes packets.
#[derive(Debug)]
pub struct Perfetto<W> {
    to: W,
    /// By process and thread: the track, and the thread's name.
    tracks: HashMap<(u32, u32), Vec<u8>>,
    processes: HashMap<u32, ()>,
}

impl<W: Write> Perfetto<W> {
    /// Writes from the first session on.
    pub fn new(to: W) -> Perfetto<W> {
        Perfetto { to, tracks: HashMap::new(), processes: HashMap::new() }
    }

    /// After the last event.
    pub fn finish(mut self) -> Result<(), ReadError> {
        Ok(self.to.flush()?)
    }

    fn packet(&mut self, packet: Message) -> Result<(), ReadError> {
        let packet = packet.number(PACKET_SEQUENCE, 1);
        Ok(self.to.write_all(&Message::default().part(TRACE_PACKET, &packet.bytes).bytes)?)
    }

    fn track(&mut self, descriptor: Message) -> Result<(), ReadError> {
        self.packet(Message::default().part(PACKET_TRACK_DESCRIPTOR, &descriptor.bytes))
    }

    /// The track of a task, described before its first event.
    fn track_of(&mut self, task: &Task) -> Result<u64, ReadError> {
        let uuid = u64::from(task.pid) << 32 | u64::from(task.tid) | 1 << 63;
        if self.tracks.get(&(task.pid, task.tid)) == Some(&task.comm) {
            return Ok(uuid);
        }
        if self.tracks.len() >= MOST_TRACKS {
            self.tracks.clear();
            self.processes.clear();
        }
        if task.pid == task.tid || self.processes.insert(task.pid, ()).is_none() {
            let mut process = Message::default().number(PROCESS_PID, u64::from(task.pid));
            if task.pid == task.tid {
                process = process.text(PROCESS_NAME, &task.comm);
            }
            let process_uuid = u64::from(task.pid) | 1 << 62;
            self.track(Message::default().number(TRACK_UUID, process_uuid).part(TRACK_PROCESS, &process.bytes))?;
        }
        let thread = Message::default()
            .number(THREAD_PID, u64::from(task.pid))
            .number(THREAD_TID, u64::from(task.tid))
            .text(THREAD_NAME, &task.comm);
        self.track(Message::default().number(TRACK_UUID, uuid).part(TRACK_THREAD, &thread.bytes))?;
        self.tracks.insert((task.pid, task.tid), task.comm.clone());
        Ok(uuid)
    }
}

fn annotation(name: &str, value: &Value) -> Message {
    let named = Message::default().text(ANNOTATION_NAME, name.as_bytes());
    match value {
        Value::Signed(number) => named.number(ANNOTATION_SIGNED, *number as u64),
        Value::Unsigned(number) => named.number(ANNOTATION_UNSIGNED, *number),
        Value::Text(text) => named.text(ANNOTATION_STRING, text),
        Value::Memory(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            named.text(ANNOTATION_STRING, digits.as_bytes())
        }
        other => {
            let mut json = String::new();
            json::write_value(other, &mut json);
            named.text(ANNOTATION_STRING, json.as_bytes())
        }
    }
}

impl<W: Write> Receiver for Perfetto<W> {
    fn session(&mut self, session: &Session) -> Result<(), ReadError> {
        let name = format!("spile: {}", session.fact("script").unwrap_or_default());
        self.track(Message::default().number(TRACK_UUID, SESSION_TRACK).text(TRACK_NAME, name.as_bytes()))
    }

    fn event(&mut self, _: &Session, event: &Event<'_>) -> Result<(), ReadError> {
        let track = match event.task {
            Some(task) => self.track_of(task)?,
            None => SESSION_TRACK,
        };
        let mut written = Message::default()
            .number(EVENT_TYPE, INSTANT)
            .number(EVENT_TRACK, track)
            .text(EVENT_CATEGORY, event.what.kind().as_bytes());
        let name = match &event.what {
            What::Print(_) => event.probe.unwrap_or("print").to_string(),
            What::Message(_, text) => text.clone(),
            What::Lost { records, .. } => format!("{records} records lost so far on CPU {}", event.cpu),
            What::End { status, .. } => format!("end, status {status}"),
        };
        written = written.text(EVENT_NAME, name.as_bytes());
        written = written.part(EVENT_ANNOTATION, &annotation("cpu", &Value::Unsigned(event.cpu.into())).bytes);
        if let What::Print(print) = &event.what {
            for (name, value) in print.values() {
                written = written.part(EVENT_ANNOTATION, &annotation(name, value).bytes);
            }
            if print.names.is_empty() {
                let text = Value::Text(print.text.trim_ascii_end().to_vec());
                written = written.part(EVENT_ANNOTATION, &annotation("text", &text).bytes);
            }
        }
        self.packet(Message::default().number(PACKET_TIMESTAMP, event.time).part(PACKET_TRACK_EVENT, &written.bytes))
    }

    fn pause(&mut self) -> Result<(), ReadError> {
        Ok(self.to.flush()?)
    }
}
