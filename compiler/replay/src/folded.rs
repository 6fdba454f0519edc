// SPDX-License-Identifier: GPL-2.0-or-later

//! Stacks as programs that draw flame graphs read them: `comm;outermost;...;innermost COUNT`.

use std::collections::BTreeMap;
use std::io::Write;

use spilerun::records::values::{Part, Value};

use crate::event::{Event, Print, Session, What};
use crate::read::{ReadError, Receiver};

/// Different stacks that are kept; further ones are counted as `[others]`.
const MOST_STACKS: usize = 1 << 18;

/// Counts stacks.
#[derive(Debug, Default)]
pub struct Stacks {
    counts: BTreeMap<Vec<u8>, u64>,
    /// A stack of the script's next print or prints: `print_backtrace()` after a text.
    others: u64,
}

impl Stacks {
    /// Adds the stack of an event, if it has one.
    pub fn add(&mut self, event: &Event<'_>) {
        let What::Print(print) = &event.what else { return };
        for (stack, count) in stacks_of(event, print) {
            if self.counts.len() >= MOST_STACKS && !self.counts.contains_key(&stack) {
                self.others = self.others.saturating_add(count);
                continue;
            }
            let sum = self.counts.entry(stack).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    /// The stacks and their counts.
    pub fn counts(&self) -> impl Iterator<Item = (&[u8], u64)> {
        let others = (self.others > 0).then_some((&b"[others]"[..], self.others));
        self.counts.iter().map(|(stack, count)| (stack.as_slice(), *count)).chain(others)
    }
}

/// The stacks of a print, each with its count.
fn stacks_of(event: &Event<'_>, print: &Print<'_>) -> Vec<(Vec<u8>, u64)> {
    let values: Vec<&Value> =
        print.parts.iter().filter_map(|part| if let Part::Value(value) = part { Some(value) } else { None }).collect();
    let mut numbers = values.iter().filter_map(|value| match value {
        Value::Signed(number) => u64::try_from(*number).ok(),
        Value::Unsigned(number) => Some(*number),
        _ => None,
    });
    // The only number of the print counts the stack.
    let count = numbers.next().filter(|_| numbers.next().is_none()).unwrap_or(1);
    let stacks: Vec<(Vec<u8>, u64)> = values
        .iter()
        .filter_map(|value| match value {
            Value::Stack(frames) if !frames.is_empty() => Some((folded(event, frames), count)),
            _ => None,
        })
        .collect();
    if !stacks.is_empty() {
        return stacks;
    }
    // Lines that are folded already.
    print.text.split(|byte| *byte == b'\n').filter_map(line).collect()
}

/// `STACK COUNT`, with more than one frame.
fn line(line: &[u8]) -> Option<(Vec<u8>, u64)> {
    let at = line.iter().rposition(|byte| *byte == b' ')?;
    let (stack, count) = (line.get(..at)?, line.get(at + 1..)?);
    let count = std::str::from_utf8(count).ok()?.parse().ok()?;
    stack.contains(&b';').then(|| (stack.to_vec(), count))
}

fn folded(event: &Event<'_>, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut folded = event.task.map(|task| safe(&task.comm)).unwrap_or_default();
    for frame in frames.iter().rev() {
        if !folded.is_empty() {
            folded.push(b';');
        }
        folded.extend(safe(function(frame)));
    }
    folded
}

/// `vfs_read` of `vfs_read+0x10/0x100 [kernel]`.
fn function(frame: &[u8]) -> &[u8] {
    let text = frame.trim_ascii();
    // ` 0xADDRESS : NAME...`
    let text = text.windows(3).position(|part| part == b" : ").and_then(|at| text.get(at + 3..)).unwrap_or(text);
    let file = text.windows(2).rposition(|part| part == b" [").filter(|_| text.ends_with(b"]"));
    let text = file.and_then(|end| text.get(..end)).unwrap_or(text);
    let end = text.windows(3).rposition(|part| part == b"+0x");
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

/// These characters separate frames, and a stack from its count.
fn safe(name: &[u8]) -> Vec<u8> {
    name.iter().map(|byte| if matches!(byte, b';' | b'\n' | b'\r') { b':' } else { *byte }).collect()
}

/// Writes the stacks at the end.
#[derive(Debug)]
pub struct Folded<W> {
    to: W,
    stacks: Stacks,
}

impl<W: Write> Folded<W> {
    /// Nothing is written before the end.
    pub fn new(to: W) -> Folded<W> {
        Folded { to, stacks: Stacks::default() }
    }

    /// Writes them; the number of different ones.
    pub fn finish(mut self) -> Result<usize, ReadError> {
        for (stack, count) in self.stacks.counts() {
            self.to.write_all(stack)?;
            writeln!(self.to, " {count}")?;
        }
        self.to.flush()?;
        Ok(self.stacks.counts.len())
    }
}

impl<W: Write> Receiver for Folded<W> {
    fn session(&mut self, _: &Session) -> Result<(), ReadError> {
        Ok(())
    }

    fn event(&mut self, _: &Session, event: &Event<'_>) -> Result<(), ReadError> {
        self.stacks.add(event);
        Ok(())
    }

    fn pause(&mut self) -> Result<(), ReadError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_named_by_their_functions() {
        for (frame, expected) in [
            ("vfs_read+0x10/0x100 [kernel]", "vfs_read"),
            (" 0xffffffff81000000 : ksys_read+0x5f/0xe0", "ksys_read"),
            ("0x7f10 [/lib/x+0x110]", "0x7f10"),
            ("a b", "a b"),
            ("operator+(int)+0x5", "operator+(int)"),
        ] {
            assert_eq!(function(frame.as_bytes()), expected.as_bytes(), "{frame}");
        }
        assert_eq!(line(b"a;b c;d 12"), Some((b"a;b c;d".to_vec(), 12)));
        assert_eq!(line(b"reads 12"), None);
    }
}
