// SPDX-License-Identifier: GPL-2.0-or-later

//! The signer of a module: checked for modules that members of spilesys bring, where the kernel itself does not check
//! signatures.
//!
//! Root trusts the signers whose certificates are in [`crate::host::places::KEYS`]. A signature is what the kernel's
//! `scripts/sign-file` appends (Documentation/admin-guide/module-signing.rst): PKCS#7 without signed attributes, so it
//! covers exactly the module's bytes, and the RSA signature is its last element. The untrusted file is not parsed: as
//! many bytes as the trusted key has are taken from the end of the signature, and checked against that key with each
//! hash. Names and algorithms in the file are ignored.

use num_bigint::BigUint;
use sha2::{Digest, Sha256, Sha384, Sha512};
use spile_abi::seal;

use crate::safety::certificate::Key;

/// Between the signature and the marker at the end of the file: `struct module_signature`
/// (include/linux/module_signature.h).
const TRAILER_BYTES: usize = 12;

/// `DigestInfo` without the hash at its end (RFC 8017, 9.2, note 1), and the hash function.
type Hash = (&'static [u8], fn(&[u8]) -> Vec<u8>);

/// SHA-1 is broken; other hashes that kernels sign with are not used with RSA and this padding.
const HASHES: [Hash; 3] = [
    (
        &[
            0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0x00, 0x04,
            0x20,
        ],
        |bytes| Sha256::digest(bytes).to_vec(),
    ),
    (
        &[
            0x30, 0x41, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x02, 0x05, 0x00, 0x04,
            0x30,
        ],
        |bytes| Sha384::digest(bytes).to_vec(),
    ),
    (
        &[
            0x30, 0x51, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x03, 0x05, 0x00, 0x04,
            0x40,
        ],
        |bytes| Sha512::digest(bytes).to_vec(),
    ),
];

/// Whether the module is signed with one of these keys. `image` is the whole file.
pub fn is_signed_by(image: &[u8], keys: &[Key]) -> bool {
    let content = seal::unsigned(image);
    // Everything after the signed bytes, except the trailer and the marker.
    let Some(signature) =
        image.get(content.len()..image.len().saturating_sub(TRAILER_BYTES + seal::SIGNATURE_MARK.len()))
    else {
        return false;
    };
    keys.iter().any(|key| matches(content, signature, key))
}

/// RSASSA-PKCS1-v1_5 (RFC 8017, 8.2.2): the expected result is computed and compared as a whole.
fn matches(content: &[u8], signature: &[u8], key: &Key) -> bool {
    let Some(last) = signature.len().checked_sub(key.bytes()).and_then(|start| signature.get(start..)) else {
        return false;
    };
    let number = BigUint::from_bytes_be(last);
    if number >= key.modulus {
        return false;
    }
    let opened = number.modpow(&key.exponent, &key.modulus);
    HASHES.iter().any(|(prefix, hash)| {
        // The content is hashed last: that takes as long as it is large, and only a holder of the key gets so far.
        let bytes = usize::from(prefix.last().copied().unwrap_or_default());
        let bits = 8 * bytes;
        padded(key.bytes(), prefix, &vec![0; bytes])
            .is_some_and(|form| &opened >> bits == BigUint::from_bytes_be(&form) >> bits)
            && padded(key.bytes(), prefix, &hash(content))
                .is_some_and(|padded| opened == BigUint::from_bytes_be(&padded))
    })
}

/// EMSA-PKCS1-v1_5 (RFC 8017, 9.2): 0, 1, bytes 0xff, 0, prefix, hash. `None`: it does not fit.
fn padded(bytes: usize, prefix: &[u8], hash: &[u8]) -> Option<Vec<u8>> {
    const LEAST_PADDING: usize = 8;
    let padding = bytes.checked_sub(3 + prefix.len() + hash.len()).filter(|padding| *padding >= LEAST_PADDING)?;
    Some([&[0, 1], vec![0xff; padding].as_slice(), &[0], prefix, hash].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNED: &[u8] = include_bytes!("../../tests/trust/sha256.signed");

    fn keys() -> Vec<Key> {
        vec![Key::of_certificate(include_bytes!("../../tests/trust/certificate.der")).unwrap()]
    }

    // sign-file has made the files, from a line of text.
    #[test]
    fn signatures_of_a_trusted_key() {
        assert!(is_signed_by(SIGNED, &keys()));
        assert!(is_signed_by(include_bytes!("../../tests/trust/sha384.signed"), &keys()));
        assert!(is_signed_by(include_bytes!("../../tests/trust/sha512.signed"), &keys()));
        assert!(!is_signed_by(include_bytes!("../../tests/trust/sha1.signed"), &keys()));
        assert!(!is_signed_by(include_bytes!("../../tests/trust/elliptic.signed"), &keys()));
        assert!(!is_signed_by(SIGNED, &[]));
        let mut stranger = keys();
        stranger[0].modulus += 2u32;
        assert!(!is_signed_by(SIGNED, &stranger));
        stranger.extend(keys());
        assert!(is_signed_by(SIGNED, &stranger), "any of them");
    }

    #[test]
    fn a_flipped_bit_in_data_or_signature_is_refused() {
        let end = SIGNED.len() - TRAILER_BYTES - seal::SIGNATURE_MARK.len();
        let content = seal::unsigned(SIGNED).len();
        for at in (0..content).chain(end - 256..end) {
            for bit in [0, 7] {
                let mut damaged = SIGNED.to_vec();
                damaged[at] ^= 1 << bit;
                assert!(!is_signed_by(&damaged, &keys()), "{at}");
            }
        }
        for end in 0..SIGNED.len() {
            assert!(!is_signed_by(&SIGNED[..end], &keys()), "{end}");
        }
        // A signature over fewer or more bytes than the file has.
        let longer = [b"x", SIGNED].concat();
        assert!(!is_signed_by(&longer, &keys()) && !is_signed_by(&SIGNED[1..], &keys()));
        for length in [0u32, 1, 255, 256, 420, u32::MAX] {
            let mut other = SIGNED.to_vec();
            other[end + TRAILER_BYTES - 4..end + TRAILER_BYTES].copy_from_slice(&length.to_be_bytes());
            assert!(!is_signed_by(&other, &keys()), "{length}");
        }
    }

    #[test]
    fn signatures_that_decrypt_to_other_data_are_refused() {
        let key = &keys()[0];
        let zeros = vec![0; 256];
        let ones = vec![0xff; 256];
        let modulus = key.modulus.to_bytes_be();
        for signature in [&zeros[..], &ones, &modulus, &[], &[1; 255]] {
            assert!(!matches(b"text", signature, key));
        }
    }

    #[test]
    fn padding_fills_the_key() {
        let made = padded(256, HASHES[0].0, &[7; 32]).unwrap();
        assert_eq!((made.len(), &made[..3], made[203], made[204]), (256, &[0, 1, 0xff][..], 0xff, 0));
        assert_eq!(padded(64, HASHES[2].0, &[7; 64]), None);
    }
}
