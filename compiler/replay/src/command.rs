// SPDX-License-Identifier: GPL-2.0-or-later

//! `spile replay`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use spile_abi::escape;
use spile_abi::say::say;
use spile_base::progress::Progress;
use spilerun::records::recording::read::RecordingError;

use crate::csv::Csv;
use crate::event::{Event, Session, What};
use crate::filter::{self, Condition};
use crate::folded::Folded;
use crate::json::Json;
use crate::pcapng::Pcapng;
use crate::perfetto::Perfetto;
use crate::read::{self, Ended, ReadError, Receiver};
use crate::text::Text;

/// How a recording is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// What the script printed
    Text,
    /// One JSON document, an object for each event
    Json,
    /// A JSON object on a line for each event
    Ndjson,
    /// A row for each event, a column for each value
    Csv,
    /// Stacks, for programs that draw flame graphs
    Folded,
    /// A trace for ui.perfetto.dev
    Perfetto,
    /// Packets (memory that is printed with %m or %M), for Wireshark
    Pcapng,
}

impl Format {
    /// For people, and terminals.
    fn is_binary(self) -> bool {
        matches!(self, Format::Perfetto | Format::Pcapng)
    }
}

/// Prints a recording, which spile --record FILE or spilerun --record FILE has made
#[derive(Debug, Parser)]
#[command(name = "spile replay", bin_name = "spile replay", version)]
struct Arguments {
    /// The recording; - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// How it is written
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,

    /// Only events for which this holds: fd == 3 && comm =~ "^cat". Names are time, cpu, pid, tid, comm, probe, kind, text, and those
    /// of the script's values; others are written in backquotes
    #[arg(long = "where", value_name = "CONDITION", value_parser = parse_condition)]
    condition: Option<String>,

    /// Only events from this time after the first one: 2.5s, 300ms, 40us
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    from: Option<u64>,

    /// Only events up to this time after the first one
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    to: Option<u64>,

    /// Write to FILE instead of standard output
    #[arg(short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,

    /// Reads a session that is running: interrupts end the session, and its end ends this
    #[arg(long, hide = true)]
    live: bool,
}

fn parse_condition(text: &str) -> Result<String, String> {
    filter::parse(text).map(|_| text.to_string())
}

/// A number with a unit; without one, seconds.
fn parse_time(text: &str) -> Result<u64, String> {
    let wrong = || "a time is a number with a unit: 2.5s, 300ms, 40us, 10ns".to_string();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let unit = match unit {
        "" | "s" => 1e9,
        "m" | "min" => 6e10,
        "ms" => 1e6,
        "us" => 1e3,
        "ns" => 1.0,
        _ => return Err(wrong()),
    };
    Ok((number * unit) as u64)
}

/// What is wrong with a command line; `words` follow `replay`.
pub fn mistake(words: impl Iterator<Item = OsString>) -> Option<String> {
    let words = [OsString::from("spile replay")].into_iter().chain(words);
    Arguments::try_parse_from(words).err().map(|error| error.to_string())
}

/// The whole command; `words` follow `replay`.
pub fn main(words: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from([OsString::from("spile replay")].into_iter().chain(words)) {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::from(error.use_stderr()));
        }
    };
    if arguments.live {
        ignore_interrupts();
    }
    match replay(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            let file = arguments.file.to_string_lossy();
            say(&format!("spile: {}: {}\n", escape::line(&file), escape::line(&message)));
            ExitCode::FAILURE
        }
    }
}

/// The session gets them too, and its end is the end of the input.
fn ignore_interrupts() {
    use nix::sys::signal::{SigHandler, Signal, signal};
    for number in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT] {
        // SAFETY: no handler is installed.
        let _ = unsafe { signal(number, SigHandler::SigIgn) };
    }
}

fn open(path: &Path) -> Result<Box<dyn Read>, String> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin().lock()));
    }
    let file = File::open(path).map_err(|error| error.to_string())?;
    if file.metadata().is_ok_and(|found| found.is_dir()) {
        return Err("it is a directory".to_string());
    }
    Ok(Box::new(BufReader::new(file)))
}

/// Reads on from its beginning, if that is one of a recording: the output is not touched for anything else.
fn checked(mut from: Box<dyn Read>) -> Result<Box<dyn Read>, String> {
    let mut first = Vec::new();
    let most = spilerun::records::recording::MAGIC.len() as u64;
    from.by_ref().take(most).read_to_end(&mut first).map_err(|error| RecordingError::Read(error).to_string())?;
    match crate::is_recording(&first) {
        true => Ok(Box::new(io::Cursor::new(first).chain(from))),
        false => Err(RecordingError::NotOne.to_string()),
    }
}

fn replay(arguments: &Arguments) -> Result<(), String> {
    let from = checked(open(&arguments.file)?)?;
    let (to, is_terminal): (Box<dyn Write>, bool) = match &arguments.output {
        Some(path) => (Box::new(create(path, &arguments.file)?), false),
        None => (Box::new(io::stdout().lock()), io::stdout().is_terminal()),
    };
    if is_terminal && arguments.format.is_binary() {
        return Err("this format is not for a terminal: write it to a file (-o FILE)".to_string());
    }
    let chosen = Chosen {
        condition: arguments.condition.as_deref().map(filter::parse).transpose()?,
        from: arguments.from,
        to: arguments.to,
    };
    // Between lines on a terminal there is no place for it.
    let progress = progress(&arguments.file).filter(|_| !is_terminal);
    let from: Box<dyn Read> = match &progress {
        Some(progress) => Box::new(progress.read(from)),
        None => from,
    };
    let result = write(arguments.format, from, BufWriter::new(to), is_terminal, chosen);
    drop(progress);
    match result {
        Ok(Ended { damaged: 1.., .. }) => Err(ReadError::Records.to_string()),
        Ok(Ended { complete: false, .. }) if !arguments.live => {
            Err("it has no end: the session was killed, is still running, or was left running".to_string())
        }
        Ok(_) => Ok(()),
        // As in any pipeline: the reader has closed the pipe.
        Err(ReadError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// For reading a file; `None`: it is a pipe or cannot be read.
pub fn progress(path: &Path) -> Option<Progress> {
    let bytes = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?.len();
    Some(Progress::of_bytes(&format!("reading {}", escape::line(&path.to_string_lossy())), bytes))
}

/// Refuses to overwrite the recording itself.
fn create(path: &Path, recording: &Path) -> Result<File, String> {
    use std::os::unix::fs::MetadataExt;
    let place = |path: &Path| std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    if place(path).is_some() && place(path) == place(recording) {
        return Err("the output would replace the recording".to_string());
    }
    spile_base::read::create(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Writes a recording in a format, up to where it is damaged.
pub fn write(
    format: Format,
    from: impl Read,
    to: impl Write,
    is_terminal: bool,
    chosen: Chosen,
) -> Result<Ended, ReadError> {
    /// Reads everything, and finishes what was written also where the recording is damaged.
    fn all<R: Receiver>(
        from: impl Read,
        to: R,
        chosen: Chosen,
        finish: impl FnOnce(R) -> Result<(), ReadError>,
    ) -> Result<Ended, ReadError> {
        let mut filtered = Filtered { to, chosen, first: None };
        let read = read::read(from, &mut filtered);
        let finished = finish(filtered.to);
        let ended = read?;
        finished.map(|()| ended)
    }
    match format {
        Format::Text => all(from, Text::new(to, is_terminal), chosen, Text::finish),
        Format::Json => all(from, Json::new(to, true), chosen, Json::finish),
        Format::Ndjson => all(from, Json::new(to, false), chosen, Json::finish),
        Format::Csv => all(from, Csv::new(to), chosen, Csv::finish),
        Format::Folded => all(from, Folded::new(to), chosen, |folded| {
            if folded.finish()? == 0 {
                say("NOTICE: no record holds a stack: print one with print_backtrace() or fold_ustack()\n");
            }
            Ok(())
        }),
        Format::Perfetto => all(from, Perfetto::new(to), chosen, Perfetto::finish),
        Format::Pcapng => all(from, Pcapng::new(to), chosen, |pcapng| {
            if pcapng.finish()? == 0 {
                say("NOTICE: no record holds a packet: print it with printf(\"%.*m\", length, address)\n");
            }
            Ok(())
        }),
    }
}

/// The events that are wanted.
#[derive(Default)]
pub struct Chosen {
    condition: Option<Condition>,
    from: Option<u64>,
    to: Option<u64>,
}

/// Passes on what is wanted.
struct Filtered<R> {
    to: R,
    chosen: Chosen,
    /// Time of the first event.
    first: Option<u64>,
}

impl<R: Receiver> Receiver for Filtered<R> {
    fn session(&mut self, session: &Session) -> Result<(), ReadError> {
        self.first = None;
        if let Some(name) = self.chosen.condition.as_ref().and_then(|condition| condition.unknown(session)) {
            let known = session.names.iter().take(20).cloned().collect::<Vec<_>>().join(", ");
            let known = if known.is_empty() { "none".to_string() } else { known };
            say(&format!(
                "NOTICE: --where: the script names no value {}; it names: {}\n",
                escape::line(name),
                escape::line(&known)
            ));
        }
        self.to.session(session)
    }

    fn event(&mut self, session: &Session, event: &Event<'_>) -> Result<(), ReadError> {
        // What the session says about itself is not filtered.
        let is_own = matches!(event.what, What::Lost { .. } | What::End { .. });
        if !is_own {
            let since = event.time.saturating_sub(*self.first.get_or_insert(event.time));
            let is_in_time =
                self.chosen.from.is_none_or(|from| since >= from) && self.chosen.to.is_none_or(|to| since <= to);
            if !is_in_time || self.chosen.condition.as_ref().is_some_and(|condition| !condition.holds(event)) {
                return Ok(());
            }
        }
        self.to.event(session, event)
    }

    fn pause(&mut self) -> Result<(), ReadError> {
        self.to.pause()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_stays_if_there_is_no_recording() {
        let directory = spile_base::scratch::Scratch::new().unwrap();
        let (file, output) = (directory.path().join("in"), directory.path().join("out"));
        std::fs::write(&output, "before").unwrap();
        for contents in ["", "spi", "no recording at all"] {
            std::fs::write(&file, contents).unwrap();
            let words = ["replay".into(), file.clone().into_os_string(), "-o".into(), output.clone().into()];
            let arguments = Arguments::try_parse_from::<_, OsString>(words).unwrap();
            assert!(replay(&arguments).unwrap_err().contains("no recording"));
            assert_eq!(std::fs::read_to_string(&output).unwrap(), "before");
        }
    }

    #[test]
    fn times_have_units() {
        let cases = [("2", 2_000_000_000), ("1.5s", 1_500_000_000), ("3ms", 3_000_000), ("7us", 7_000), ("9ns", 9)];
        for (text, expected) in cases {
            assert_eq!(parse_time(text), Ok(expected));
        }
        assert!(parse_time("1h").is_err() && parse_time("x").is_err() && parse_time("").is_err());
    }
}
