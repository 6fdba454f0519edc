// SPDX-License-Identifier: GPL-2.0-or-later

//! Text of limited length, for writers that expand their input: a mangled name of some bytes can stand for gigabytes, as each
//! part may repeat twice what was before it. And lines of limited length, of files in /proc that others make as long as they like.

use std::fmt;
use std::io::{BufRead, BufReader, ErrorKind, Read};

/// Takes what is written, up to a limit; then writing fails.
#[derive(Debug)]
pub struct BoundedText {
    text: String,
    most: usize,
}

impl fmt::Write for BoundedText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.text.len() + text.len() > self.most {
            return Err(fmt::Error);
        }
        self.text.push_str(text);
        Ok(())
    }
}

/// What `write` writes; None if that is more than `most` bytes, or it fails.
pub fn text(most: usize, write: impl FnOnce(&mut BoundedText) -> fmt::Result) -> Option<String> {
    let mut bounded = BoundedText { text: String::new(), most };
    write(&mut bounded).ok()?;
    Some(bounded.text)
}

/// Calls with each line, without its end, until `take` says no; those of more than `longest` bytes are passed over. Whether all
/// was read: false if there are more than `most` bytes, or reading fails.
pub fn lines(input: impl Read, most: u64, longest: usize, mut take: impl FnMut(&[u8]) -> bool) -> bool {
    let mut input = BufReader::with_capacity(64 << 10, input);
    let (mut line, mut is_long, mut left) = (Vec::new(), false, most);
    loop {
        let part = match input.fill_buf() {
            Ok(part) => part,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return false,
        };
        if part.is_empty() {
            return line.is_empty() || is_long || take(&line);
        }
        let piece = part.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let is_end = piece.len() < part.len();
        let used = piece.len() + usize::from(is_end);
        let Some(rest) = left.checked_sub(used as u64) else { return false };
        left = rest;
        is_long |= line.len() + piece.len() > longest;
        if !is_long {
            line.extend(piece);
        }
        input.consume(used);
        if is_end {
            if !is_long && !take(&line) {
                return false;
            }
            line.clear();
            is_long = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    #[test]
    fn lines_are_passed_over_or_cut_off() {
        let read = |text: &str, most| {
            let mut found = Vec::new();
            let is_whole = super::lines(text.as_bytes(), most, 3, |line| {
                found.push(String::from_utf8_lossy(line).into_owned());
                line != b"end"
            });
            (is_whole, found.join(","))
        };
        assert_eq!(read("abc\nabcd\n\nb", 20), (true, "abc,,b".into()));
        assert_eq!(read("abc\nabcd\n\nb", 9), (false, "abc".into()));
        assert_eq!(read("a\nend\nb\n", 20), (false, "a,end".into()));
        assert_eq!(read("", 0), (true, String::new()));
        let long = "x".repeat(200_000);
        assert_eq!(read(&format!("{long}\na\n{long}"), 1 << 20), (true, "a".into()));
    }

    #[test]
    fn no_more_is_written_than_is_allowed() {
        assert_eq!(super::text(3, |out| write!(out, "a{}", 12)).as_deref(), Some("a12"));
        assert_eq!(super::text(2, |out| write!(out, "a{}", 12)), None);
    }
}
