//! xz as the kernel's build packs a boot image: with a filter for x86 code before LZMA2, and something behind the end. Plain
//! xz files are unpacked by `lzma_rs`, which knows no filters.
//!
//! "The .xz File Format" 1.1.0: stream header (2.1.1), block header (3.1), filters (5.3.1 LZMA2, 5.3.2 branch, call, jump).

use std::io::Write;

/// Magic, and the stream's flags with their checksum.
const STREAM_HEADER: usize = 12;
const LZMA2: u64 = 0x21;
const X86: u64 = 0x04;

/// What a block's header says.
struct Block {
    /// Bytes of the header.
    length: usize,
    filters: Vec<u64>,
}

/// Whether the first block has the filter for x86 code.
pub(super) fn is_filtered(packed: &[u8]) -> bool {
    packed.get(STREAM_HEADER..).and_then(block).is_some_and(|block| block.filters.contains(&X86))
}

/// The contents of the stream's blocks, written to `out` as far as it takes them.
pub(super) fn unpack<W: Write>(packed: &[u8], mut fresh: impl FnMut() -> W, mut take: impl FnMut(W) -> Vec<u8>) -> Result<Vec<u8>, String> {
    let check = match packed.get(7) {
        Some(0) => 0,
        Some(1) => 4,
        Some(4) => 8,
        Some(10) => 32,
        _ => return Err("an xz stream with a check that is not known".into()),
    };
    let mut rest = packed.get(STREAM_HEADER..).unwrap_or_default();
    let mut unpacked = Vec::new();
    // The index behind the last block begins with a zero.
    while rest.first().is_some_and(|size| *size != 0) {
        let block = block(rest).ok_or("an xz block's header is damaged")?;
        let filtered = match block.filters.as_slice() {
            [LZMA2] => false,
            [X86, LZMA2] => true,
            _ => return Err("an xz block with filters that are not known".into()),
        };
        let data = rest.get(block.length..).unwrap_or_default();
        let mut left = data;
        let mut out = fresh();
        lzma_rs::lzma2_decompress(&mut left, &mut out).map_err(|error| format!("{error:?}"))?;
        let mut contents = take(out);
        if filtered {
            to_relative(&mut contents);
        }
        unpacked.extend(contents);
        let padded = (data.len() - left.len()).next_multiple_of(4);
        rest = data.get(padded + check..).unwrap_or_default();
    }
    Ok(unpacked)
}

/// None: damaged.
fn block(bytes: &[u8]) -> Option<Block> {
    let length = (usize::from(*bytes.first()?) + 1) * 4;
    let header = bytes.get(..length)?;
    let flags = *header.get(1)?;
    let mut fields = header.get(2..)?.iter();
    // Sizes, packed and unpacked, where they are told.
    for flag in [0x40, 0x80] {
        if flags & flag != 0 {
            number(&mut fields)?;
        }
    }
    let mut filters = Vec::new();
    for _ in 0..(flags & 3) + 1 {
        filters.push(number(&mut fields)?);
        let properties = number(&mut fields)?;
        for _ in 0..properties {
            fields.next()?;
        }
    }
    Some(Block { length, filters })
}

/// Seven bits to a byte, the lowest first (1.2).
fn number(bytes: &mut std::slice::Iter<u8>) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..63).step_by(7) {
        let byte = *bytes.next()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Takes back what the filter has done: the targets of `call` and `jmp` (E8, E9) were made absolute where they looked like
/// targets, their highest byte being all zeros or all ones. `doubts` has a bit for each of the last three bytes that could
/// have begun such an instruction and was passed over; what overlaps one of them was treated otherwise.
fn to_relative(code: &mut [u8]) {
    let plausible = |byte: u8| byte == 0 || byte == 0xff;
    /// Bytes back from the last to the one that an earlier doubt makes decisive.
    const BACK: [u32; 8] = [0, 1, 2, 2, 3, 3, 3, 3];
    const CLEAR: [bool; 8] = [true, true, true, false, true, false, false, false];
    let (mut doubts, mut last): (usize, Option<usize>) = (0, None);
    let mut at = 0;
    while let Some(&[opcode, a, b, c, d]) = code.get(at..at + 5).and_then(|bytes| <&[u8; 5]>::try_from(bytes).ok()) {
        if opcode & 0xfe != 0xe8 {
            at += 1;
            continue;
        }
        let distance = last.map_or(usize::MAX, |last| at - last);
        doubts = if distance > 3 { 0 } else { (doubts << (distance - 1)) & 7 };
        last = Some(at);
        let decisive = code.get(at + 4 - BACK[doubts] as usize).copied().unwrap_or_default();
        if doubts != 0 && (!CLEAR[doubts] || plausible(decisive)) || !plausible(d) {
            doubts = (doubts << 1 | 1) & 7;
            at += 1;
            continue;
        }
        let mut absolute = u32::from_le_bytes([a, b, c, d]);
        let relative = loop {
            let relative = absolute.wrapping_sub(at as u32).wrapping_sub(5);
            if doubts == 0 {
                break relative;
            }
            let bits = BACK[doubts] * 8;
            if !plausible((relative >> (24 - bits)) as u8) {
                break relative;
            }
            absolute = relative ^ (1u32 << (32 - bits)).wrapping_sub(1);
        };
        // 25 bits, with their sign.
        let signed = ((relative << 7) as i32 >> 7) as u32;
        if let Some(place) = code.get_mut(at + 1..at + 5) {
            place.copy_from_slice(&signed.to_le_bytes());
        }
        at += 5;
        (doubts, last) = (0, None);
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn plain(packed: &[u8]) -> Result<Vec<u8>, String> {
        unpack(packed, Vec::new, |out| out)
    }

    /// Bytes thick with what may be calls.
    fn code() -> Vec<u8> {
        let mut state = 1u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 24
        };
        let choice = [0xe8, 0xe9, 0, 0xff, 1, 0x48];
        (0..300_000).map(|_| if next() < 160 { choice[next() as usize % choice.len()] } else { next() as u8 }).collect()
    }

    #[test]
    fn as_xz_packs_it() {
        let Ok(mut xz) = Command::new("xz").args(["--check=crc32", "--x86", "--lzma2=dict=1MiB", "-c"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() else {
            return println!("skipped: no xz");
        };
        let (mut input, bytes) = (xz.stdin.take().unwrap(), code());
        let copy = bytes.clone();
        let writer = std::thread::spawn(move || input.write_all(&copy));
        let mut packed = xz.wait_with_output().unwrap().stdout;
        writer.join().unwrap().unwrap();
        // As the build of a boot image puts the size behind it.
        packed.extend((bytes.len() as u32).to_le_bytes());
        assert!(is_filtered(&packed));
        assert!(plain(&packed).unwrap() == bytes);
        for at in 0..packed.len().min(400) {
            let mut damaged = packed.clone();
            damaged[at] ^= 0x41;
            let _ = plain(&damaged);
        }
        for length in 0..100 {
            let _ = plain(&packed[..length]);
        }
    }
}
