// SPDX-License-Identifier: GPL-2.0-or-later

//! Text of limited length, for writers that expand their input: a mangled name of some bytes can stand for gigabytes, as each
//! part may repeat twice what was before it.

use std::fmt;

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

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    #[test]
    fn no_more_is_written_than_is_allowed() {
        assert_eq!(super::text(3, |out| write!(out, "a{}", 12)).as_deref(), Some("a12"));
        assert_eq!(super::text(2, |out| write!(out, "a{}", 12)), None);
    }
}
