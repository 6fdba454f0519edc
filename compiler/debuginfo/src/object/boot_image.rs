// SPDX-License-Identifier: GPL-2.0-or-later

//! The kernel within a boot image (`/boot/vmlinuz-R`); its position is described in Documentation/arch/x86/boot.rst.

/// The boot protocol's magic number at this offset.
const MAGIC: (usize, &[u8]) = (0x202, b"HdrS");

/// Whether the file is an x86 boot image (bzImage).
pub(crate) fn is_image(bytes: &[u8]) -> bool {
    bytes.get(MAGIC.0..MAGIC.0 + 4) == Some(MAGIC.1)
}

/// The compressed kernel. Protocol 2.08 and later (2.6.26).
pub(crate) fn payload(bytes: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize);
    // 0 sectors of setup mean 4, besides the boot sector.
    let sectors = match *bytes.get(0x1f1)? {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let start = (sectors + 1) * 512 + word(0x248)?;
    bytes.get(start..start.checked_add(word(0x24c)?)?)
}

/// LZ4's legacy frame, which the kernel's build makes: blocks preceded by their lengths, each unpacking to at most 8 MiB.
/// Read here: a crate would replace only the 45 lines of [`unpack_block`].
pub(crate) const LZ4_MAGIC: [u8; 4] = [0x02, 0x21, 0x4c, 0x18];

const LZ4_BLOCK: usize = 8 << 20;

/// Unpacks the legacy LZ4 frame of a boot image; an error above `most` bytes.
pub(crate) fn unpack_lz4(packed: &[u8], most: u64) -> Result<Vec<u8>, String> {
    let mut rest = packed.strip_prefix(&LZ4_MAGIC).unwrap_or(packed);
    let mut unpacked = Vec::new();
    // The build appends the unpacked size after the last block.
    while rest.len() > 4 {
        let Some((length, after)) = rest.split_first_chunk() else { break };
        let length = u32::from_le_bytes(*length) as usize;
        let (block, after) = after.split_at_checked(length).ok_or("an LZ4 block is cut short")?;
        let end = unpacked.len() + LZ4_BLOCK;
        unpack_block(block, &mut unpacked, end).ok_or("an LZ4 block is damaged")?;
        if unpacked.len() as u64 > most {
            return Err(format!("unpacked contents: more than the {most} bytes that are allowed"));
        }
        rest = after;
    }
    Ok(unpacked)
}

/// Sequences of literals and copies (LZ4 block format). None: damaged, or goes beyond `end`.
fn unpack_block(block: &[u8], unpacked: &mut Vec<u8>, end: usize) -> Option<()> {
    let begin = unpacked.len();
    let mut bytes = block.iter();
    loop {
        let token = usize::from(*bytes.next()?);
        let literals = length(token >> 4, &mut bytes)?;
        let (copied, rest) = bytes.as_slice().split_at_checked(literals)?;
        if unpacked.len() + literals > end {
            return None;
        }
        unpacked.extend_from_slice(copied);
        bytes = rest.iter();
        // The last sequence has only literals.
        if bytes.as_slice().is_empty() {
            return Some(());
        }
        let distance = usize::from(*bytes.next()?) | usize::from(*bytes.next()?) << 8;
        let count = length(token & 15, &mut bytes)? + 4;
        let from = unpacked.len().checked_sub(distance).filter(|from| distance > 0 && *from >= begin)?;
        if unpacked.len() + count > end {
            return None;
        }
        if distance >= count {
            unpacked.extend_from_within(from..from + count);
        } else {
            // Source and destination may overlap: copied byte by byte.
            for at in from..from + count {
                let byte = *unpacked.get(at)?;
                unpacked.push(byte);
            }
        }
    }
}

/// A length of 15 continues in further bytes, up to the first that is not 255.
fn length<'b>(first: usize, bytes: &mut impl Iterator<Item = &'b u8>) -> Option<usize> {
    let mut length = first;
    if first == 15 {
        loop {
            let more = *bytes.next()?;
            length = length.checked_add(usize::from(more))?;
            if more != 255 {
                break;
            }
        }
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(block: &[u8]) -> Vec<u8> {
        let mut frame = LZ4_MAGIC.to_vec();
        frame.extend((block.len() as u32).to_le_bytes());
        frame.extend(block);
        frame
    }

    #[test]
    fn literals_and_copies() {
        // "ab", then 8 bytes from 2 before, then "c".
        let block = [0x24, b'a', b'b', 2, 0, 0x10, b'c'];
        assert_eq!(unpack_lz4(&frame(&block), 100), Ok(b"ababababab".iter().chain(b"c").copied().collect()));
        let mut sized = frame(&block);
        sized.extend(11u32.to_le_bytes());
        assert_eq!(unpack_lz4(&sized, 100).map(|bytes| bytes.len()), Ok(11));
        assert!(unpack_lz4(&frame(&block), 5).is_err());
    }

    #[test]
    fn damage() {
        for block in [&[0x24, b'a', b'b', 3, 0][..], &[0x24, b'a', b'b', 0, 0], &[0xf0], &[0xf0, 255], &[0x20, b'a']] {
            assert!(unpack_lz4(&frame(block), 100).is_err(), "{block:?}");
        }
        assert!(unpack_lz4(&frame(&[1, 2, 3])[..9], 100).is_err());
        assert_eq!(payload(b"short"), None);
    }
}
