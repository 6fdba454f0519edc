// SPDX-License-Identifier: GPL-2.0-or-later

//! A recording as a sequence of events.

use std::collections::HashMap;
use std::fmt;
use std::io::Read;
use std::path::Path;

use spile_abi::record::{FORMAT_STACK, FORMAT_TEXT, Kind, NO_PROBE, Record};
use spilerun::file::Description;
use spilerun::records::payload::Payload;
use spilerun::records::record::{Decoded, Reader};
use spilerun::records::recording::names::{Answers, UserAnswers};
use spilerun::records::recording::read::{Frame, Frames, Header, RecordingError, Records};
use spilerun::records::user::Users;

use crate::event::{Event, Print, Session, Task, What, names};

/// Why reading ended early.
#[derive(Debug)]
pub enum ReadError {
    /// The recording.
    Recording(RecordingError),
    /// Its description of records.
    Description(Box<spilerun::error::Error>),
    /// Its records.
    Records,
    /// The output cannot be written.
    Output(std::io::Error),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Recording(error) => write!(f, "{error}"),
            ReadError::Description(error) => write!(f, "what it says about its records is wrong: {error}"),
            ReadError::Records => write!(f, "some of its records are damaged, and were left out"),
            ReadError::Output(error) => write!(f, "the output cannot be written: {error}"),
        }
    }
}

impl From<RecordingError> for ReadError {
    fn from(error: RecordingError) -> ReadError {
        ReadError::Recording(error)
    }
}

impl From<std::io::Error> for ReadError {
    fn from(error: std::io::Error) -> ReadError {
        ReadError::Output(error)
    }
}

/// Gets what a recording holds, in order.
pub trait Receiver {
    /// A session begins. Before the first event, and again where another recording follows in the same file.
    fn session(&mut self, session: &Session) -> Result<(), ReadError>;
    /// Something happened.
    fn event(&mut self, session: &Session, event: &Event<'_>) -> Result<(), ReadError>;
    /// The counters of all probes so far, as JSON.
    fn counts(&mut self, _: &str) -> Result<(), ReadError> {
        Ok(())
    }
    /// Nothing more is there at the moment: a live recording may go on.
    fn pause(&mut self) -> Result<(), ReadError>;
}

/// How a recording ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// It has its end.
    pub complete: bool,
    /// Records that could not be read.
    pub damaged: u64,
}

/// Reads all of it.
pub fn read(from: impl Read, receiver: &mut impl Receiver) -> Result<Ended, ReadError> {
    let mut frames = Frames::new(from);
    let mut ended = Ended::default();
    let mut next = frames.read()?;
    while let Some(Frame::Header(header)) = next {
        ended.complete = false;
        next = one(&header, &mut frames, receiver, &mut ended)?;
    }
    Ok(ended)
}

/// One recording, up to the header of the next one, which is returned.
fn one(
    header: &Header,
    frames: &mut Frames<impl Read>,
    receiver: &mut impl Receiver,
    ended: &mut Ended,
) -> Result<Option<Frame>, ReadError> {
    let description = Description::decode(Path::new("the recording"), &header.meta)
        .map_err(|error| ReadError::Description(Box::new(error)))?;
    let session = session(header, &description);
    receiver.session(&session)?;
    let answers = Answers::default();
    let users = Users::new(Some(Box::new(UserAnswers(&answers))));
    let mut events = Events {
        description: &description,
        reader: Reader::new(&description.meta, &description.formats, Some(&answers), users),
        tasks: HashMap::new(),
        session: &session,
        time: 0,
    };
    let mut changes = 0;
    loop {
        match frames.read()? {
            None => return Ok(None),
            Some(header @ Frame::Header(_)) => return Ok(Some(header)),
            Some(Frame::Names(contents)) => {
                if !answers.add(&contents) {
                    return Err(ReadError::Records);
                }
                changes += 1;
                events.reader.changed(changes);
            }
            Some(Frame::Records(contents)) => {
                for record in Records::new(&contents) {
                    match record {
                        Ok((record, payload)) => {
                            ended.damaged += u64::from(!events.record(&record, payload, receiver)?);
                        }
                        Err(()) => ended.damaged += 1,
                    }
                }
                receiver.pause()?;
            }
            Some(Frame::Losses(cpus)) => {
                for (cpu, records, bytes) in cpus {
                    events.pass(cpu as u16, What::Lost { records, bytes }, receiver)?;
                }
                receiver.pause()?;
            }
            Some(Frame::Counts(json)) => {
                receiver.counts(&json)?;
                receiver.pause()?;
            }
            Some(Frame::End { status, about }) => {
                ended.complete = true;
                events.pass(0, What::End { status, about: &about }, receiver)?;
                receiver.pause()?;
            }
        }
    }
}

fn session(header: &Header, description: &Description) -> Session {
    let meta = &description.meta;
    let mut about = vec![
        ("script".to_string(), meta.title.clone()),
        ("release".to_string(), meta.kernel_release.clone()),
        ("compiler".to_string(), meta.version.clone()),
    ];
    about.extend(header.about.iter().cloned());
    let build_id = meta.targets.iter().find(|target| target.name.is_empty());
    if let Some(kernel) = build_id {
        about.push(("build-id".to_string(), kernel.build_id.iter().map(|byte| format!("{byte:02x}")).collect()));
    }
    let realtime = header.about.iter().find(|(name, _)| name == "realtime").and_then(|(_, value)| value.parse().ok());
    let mut names: Vec<String> = Vec::new();
    for name in meta.value_names.iter().flatten().filter(|name| !name.is_empty()) {
        if !names.contains(name) && names.len() < MOST_NAMES {
            names.push(name.clone());
        }
    }
    Session { about, realtime: realtime.unwrap_or(0), names }
}

/// Names of values that a session has in advance.
const MOST_NAMES: usize = 1000;

struct Events<'r> {
    description: &'r Description,
    reader: Reader<'r>,
    /// By CPU: of its last [`Kind::Task`].
    tasks: HashMap<u16, Task>,
    session: &'r Session,
    /// Of the last record.
    time: u64,
}

impl Events<'_> {
    /// Passes an event of the session itself.
    fn pass(&mut self, cpu: u16, what: What<'_>, receiver: &mut impl Receiver) -> Result<(), ReadError> {
        receiver.event(self.session, &Event { time: self.time, cpu, task: None, probe: None, what })
    }

    /// Passes the event of a record; false: it cannot be read.
    fn record(&mut self, record: &Record, payload: &[u8], receiver: &mut impl Receiver) -> Result<bool, ReadError> {
        self.time = record.time;
        match Kind::from_number(record.kind) {
            Some(Kind::Task) => {
                if let Some(task) = task(payload) {
                    self.tasks.insert(record.cpu, task);
                    return Ok(true);
                }
                return Ok(false);
            }
            Some(Kind::Pad | Kind::Exit) => return Ok(true),
            None => return Ok(false),
            Some(_) => {}
        }
        let is_print = record.kind == Kind::Print as u16;
        let parts = if is_print { self.reader.parts(record, payload) } else { Vec::new() };
        let message = |kind, text| (What::Message(kind, text), true);
        let (what, is_whole) = match self.reader.read(record, payload) {
            Decoded::Print { text, .. } => (print(self.description, record, &parts, text), true),
            Decoded::Damaged { text, .. } if is_print => (print(self.description, record, &parts, text), false),
            Decoded::Damaged { .. } => return Ok(false),
            Decoded::Warning(text) => message("warning", text),
            Decoded::Error(text) => message("error", text),
            Decoded::Notice(text) => message("notice", text),
            Decoded::Rewrite(text) => message("rewrite", text),
            Decoded::System(command) => message("system", String::from_utf8_lossy(&command).into_owned()),
            Decoded::Exit | Decoded::Task => return Ok(true),
        };
        let probe = (record.probe != NO_PROBE).then(|| self.description.meta.probes.get(record.probe as usize));
        // Aliases of the library that scripts do not write have the point of the script.
        let probe = probe.flatten().map(|probe| match probe.point.starts_with("__") {
            true => probe.script_point.as_str(),
            false => probe.point.as_str(),
        });
        let event = Event { time: record.time, cpu: record.cpu, task: self.tasks.get(&record.cpu), probe, what };
        receiver.event(self.session, &event)?;
        Ok(is_whole)
    }
}

fn print<'e>(
    description: &Description,
    record: &Record,
    parts: &'e [spilerun::records::values::Part],
    text: &'e [u8],
) -> What<'e> {
    let given = description.meta.value_names.get(record.id as usize).map(Vec::as_slice).unwrap_or_default();
    let format = if matches!(record.id, FORMAT_TEXT | FORMAT_STACK) { u32::MAX } else { record.id };
    What::Print(Print { format, parts, names: names(parts, given), text })
}

fn task(payload: &[u8]) -> Option<Task> {
    let mut payload = Payload::new(payload);
    let ids = payload.long().ok()? as u64;
    let comm = payload.bytes().ok()??.to_vec();
    Some(Task { pid: (ids >> 32) as u32, tid: ids as u32, comm })
}
