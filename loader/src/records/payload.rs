// SPDX-License-Identifier: GPL-2.0-or-later

//! Parses a record's payload (abi.h, "Payloads"): parts, each a multiple of 8 bytes.

use spile_abi::record::{ALIGNMENT, FAULT};

/// The payload is shorter than its format requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortPayload;

/// The bytes of a record, parsed from the start.
#[derive(Debug)]
pub struct Payload<'p> {
    bytes: &'p [u8],
}

impl<'p> Payload<'p> {
    /// Starts at the first byte.
    pub fn new(bytes: &'p [u8]) -> Payload<'p> {
        Payload { bytes }
    }

    fn take(&mut self, count: usize) -> Result<&'p [u8], ShortPayload> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(ShortPayload)?;
        self.bytes = rest;
        Ok(taken)
    }

    /// The next number of the script, eight bytes.
    pub fn long(&mut self) -> Result<i64, ShortPayload> {
        let (bytes, rest) = self.bytes.split_first_chunk().ok_or(ShortPayload)?;
        self.bytes = rest;
        Ok(i64::from_le_bytes(*bytes))
    }

    /// A string, memory, or object; `None`: it could not be read.
    pub fn bytes(&mut self) -> Result<Option<&'p [u8]>, ShortPayload> {
        let length = self.bytes.first_chunk().ok_or(ShortPayload)?;
        let length = u32::from_le_bytes(*length);
        if length == FAULT {
            self.take(ALIGNMENT)?;
            return Ok(None);
        }
        let padded = (u64::from(length) + 4).next_multiple_of(ALIGNMENT as u64);
        let part = self.take(usize::try_from(padded).map_err(|_| ShortPayload)?)?;
        Ok(part.get(4..4 + length as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_in_order() {
        let mut bytes = (-2i64).to_le_bytes().to_vec();
        bytes.extend(*b"\x05\0\0\0hello\0\0\0\0\0\0\0");
        bytes.extend([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
        let mut payload = Payload::new(&bytes);
        assert_eq!(payload.long(), Ok(-2));
        assert_eq!(payload.bytes(), Ok(Some(&b"hello"[..])));
        assert_eq!(payload.bytes(), Ok(None));
        assert_eq!(payload.bytes(), Err(ShortPayload));
        assert_eq!(payload.long(), Err(ShortPayload));
    }

    #[test]
    fn lengths_beyond_the_payload_are_short() {
        for length in [1u32, 5, 1000, u32::MAX - 1] {
            let mut bytes = length.to_le_bytes().to_vec();
            bytes.extend([0; 4]);
            let whole = length <= 4;
            assert_eq!(Payload::new(&bytes).bytes().is_ok(), whole, "{length}");
            assert_eq!(Payload::new(&bytes[..7]).bytes(), Err(ShortPayload));
        }
    }
}
