//! A module's seal: a sum over its whole file, by which the loader sees that a bit of it is wrong before the kernel runs it.
//!
//! It is no signature: it finds damage, not intent. The section [`SECTION`] holds [`MAGIC`] and the sum, little endian, which
//! is taken over the file with zeros in its own place and without a signature behind (which is made later, over the whole).

use std::ops::Range;

/// ELF section of the `.ko`.
pub const SECTION: &str = ".spile.seal";
/// First bytes of the section; the sum follows.
pub const MAGIC: &[u8; 8] = b"SPILSEAL";
/// Of the sum.
pub const SUM_BYTES: usize = 8;
/// Of the section.
pub const BYTES: usize = MAGIC.len() + SUM_BYTES;

/// The end of a signed module, behind the signature and 12 bytes that say how long it is, big endian in the last four
/// (kernel/module_signature.c, include/linux/module_signature.h).
pub const SIGNATURE_MARK: &[u8] = b"~Module signature appended~\n";

/// The file without its signature; all of it if it has none, or one that cannot be.
pub fn unsigned(image: &[u8]) -> &[u8] {
    let without = || {
        let rest = image.strip_suffix(SIGNATURE_MARK)?;
        let length = u32::from_be_bytes(*rest.last_chunk::<4>()?) as usize;
        rest.get(..rest.len().checked_sub(length.checked_add(12)?)?)
    };
    without().unwrap_or(image)
}

/// Sum over an image without signature, with zeros in `hole`: FNV-1a over words of 8 bytes, each bit of which changes it.
pub fn sum(image: &[u8], hole: &Range<usize>) -> u64 {
    let mut sum = 0xcbf2_9ce4_8422_2325_u64 ^ image.len() as u64;
    for (index, word) in image.chunks(8).enumerate() {
        let at = index * 8;
        let mut bytes = [0u8; 8];
        for (offset, (to, from)) in bytes.iter_mut().zip(word).enumerate() {
            if !hole.contains(&(at + offset)) {
                *to = *from;
            }
        }
        sum = (sum ^ u64::from_le_bytes(bytes)).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_outside_of_the_hole_counts() {
        let image: Vec<u8> = (0..100u8).collect();
        let hole = 40..48;
        let right = sum(&image, &hole);
        for bit in 0..image.len() * 8 {
            let mut other = image.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(sum(&other, &hole) == right, hole.contains(&(bit / 8)), "{bit}");
        }
        assert_ne!(sum(&image[..99], &hole), right);
    }

    #[test]
    fn a_signature_is_not_part_of_it() {
        let mut signed = b"module".to_vec();
        signed.extend([7; 5]);
        signed.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5]);
        signed.extend(SIGNATURE_MARK);
        assert_eq!(unsigned(&signed), b"module");
        assert_eq!(unsigned(b"module"), b"module");
        let cut = &signed[9..];
        assert_eq!(unsigned(cut), cut, "it would begin before the file");
        assert_eq!(unsigned(SIGNATURE_MARK), SIGNATURE_MARK);
    }
}
