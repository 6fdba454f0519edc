// SPDX-License-Identifier: GPL-2.0-or-later

//! The RSA key in an X.509 certificate. The files are root's own (`/etc/spile/keys`): they are read, not judged; dates, names
//! and uses in them mean nothing here, as they mean nothing to the kernel for its own keys.
//!
//! DER (X.690), as openssl's `-outform DER` and the kernel's build write it; the fields are those of RFC 5280, 4.1.
//!
//! By hand, with the crate num-bigint for the arithmetic: the crates `x509-cert` and `rsa` bring 30 crates more (their own big
//! numbers, random numbers, private keys) and 64 KB in front of a set-uid program, for 40 lines that walk a certificate
//! of root's own and one call of `modpow` on public numbers. Nothing here is secret, so that time tells nothing, and no
//! key is ever made. What is hostile, the module's signature, is compared as bytes ([`crate::safety::trust`]).

use num_bigint::BigUint;

/// Less is not to be trusted.
const LEAST_BITS: u64 = 2048;
/// More would only take time.
const MOST_BITS: u64 = 8192;

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;
/// Tag of the version, which old certificates do not have.
const VERSION: u8 = 0xa0;
/// Object identifier 1.2.840.113549.1.1.1 with its tag: rsaEncryption.
const RSA: &[u8] = &[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];

/// A public key: what a signature is raised to, and modulo what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// What a signature is raised to.
    pub exponent: BigUint,
    /// Modulo what.
    pub modulus: BigUint,
}

impl Key {
    /// Bytes of the modulus, and so of each signature.
    pub fn bytes(&self) -> usize {
        self.modulus.bits().div_ceil(8) as usize
    }

    /// The error says what is to be done.
    pub fn of_certificate(der: &[u8]) -> Result<Key, &'static str> {
        if der.starts_with(b"-----BEGIN") {
            return Err("it is PEM, and DER is wanted: openssl x509 -in FILE -outform DER");
        }
        let (algorithm, key) = public_key(der).ok_or("it is no X.509 certificate (DER)")?;
        if !algorithm.starts_with(RSA) {
            return Err("its key is not RSA, which this program alone knows");
        }
        let key = rsa(key).ok_or("its RSA key is damaged")?;
        if !(LEAST_BITS..=MOST_BITS).contains(&key.modulus.bits()) {
            return Err("its key has less than 2048 or more than 8192 bits");
        }
        // An even number on either side is no RSA key; 1 would let everything through.
        let is_sound = key.modulus.bit(0) && key.exponent.bit(0) && (2..=64).contains(&key.exponent.bits());
        is_sound.then_some(key).ok_or("its RSA key is damaged")
    }
}

/// Contents of the element of this tag that stands first, and what is behind it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        // Of no said length: not in DER.
        0x80 => return None,
        // So many bytes of a length follow.
        0x81..=0x83 => {
            let (number, rest) = rest.split_at_checked(usize::from(first & 0x0f))?;
            (number.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    (*found == tag).then(|| rest.split_at_checked(length))?
}

/// Contents of `AlgorithmIdentifier` and of `subjectPublicKey`.
fn public_key(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (certificate, _) = element(der, SEQUENCE)?;
    let (to_be_signed, _) = element(certificate, SEQUENCE)?;
    let fields = element(to_be_signed, VERSION).map_or(to_be_signed, |(_, rest)| rest);
    let (_serial, fields) = element(fields, INTEGER)?;
    // signature, issuer, validity, subject
    let fields = (0..4).try_fold(fields, |fields, _| Some(element(fields, SEQUENCE)?.1))?;
    let (info, _) = element(fields, SEQUENCE)?;
    let (algorithm, rest) = element(info, SEQUENCE)?;
    let (bits, _) = element(rest, BIT_STRING)?;
    // The first byte counts the bits that the last one lacks.
    Some((algorithm, bits.strip_prefix(&[0])?))
}

/// `RSAPublicKey` (RFC 8017, A.1.1).
fn rsa(der: &[u8]) -> Option<Key> {
    let (numbers, _) = element(der, SEQUENCE)?;
    let (modulus, rest) = element(numbers, INTEGER)?;
    let (exponent, _) = element(rest, INTEGER)?;
    Some(Key { exponent: BigUint::from_bytes_be(exponent), modulus: BigUint::from_bytes_be(modulus) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CERTIFICATE: &[u8] = include_bytes!("../../tests/trust/certificate.der");

    #[test]
    fn the_key_of_a_certificate() {
        let key = Key::of_certificate(CERTIFICATE).unwrap();
        assert_eq!((key.bytes(), key.modulus.bits()), (256, 2048));
        assert_eq!(key.exponent, BigUint::from(65537u32));
    }

    #[test]
    fn others_are_refused_each_with_a_word() {
        let refused = |der: &[u8]| Key::of_certificate(der).unwrap_err();
        assert!(refused(b"-----BEGIN CERTIFICATE-----\n").contains("-outform DER"));
        assert!(refused(b"").contains("no X.509") && refused(b"text").contains("no X.509"));
        assert!(refused(include_bytes!("../../tests/trust/elliptic.der")).contains("not RSA"));
        // Its first byte says that the exponent has no odd bit.
        let mut even = CERTIFICATE.to_vec();
        let place = CERTIFICATE.windows(5).position(|bytes| bytes == [INTEGER, 3, 1, 0, 1]).unwrap();
        even[place + 4] = 0;
        assert!(refused(&even).contains("damaged"));
        even[place + 2..place + 5].copy_from_slice(&[0, 0, 1]);
        assert!(refused(&even).contains("damaged"));
    }

    #[test]
    fn damaged_ones_are_errors_or_other_keys() {
        for end in 0..500 {
            assert!(Key::of_certificate(&CERTIFICATE[..end]).is_err(), "{end}");
        }
        for at in 0..CERTIFICATE.len() {
            for value in [0, 1, 0x7f, 0x80, 0x83, 0x84, 0xff] {
                let mut damaged = CERTIFICATE.to_vec();
                damaged[at] = value;
                let _ = Key::of_certificate(&damaged);
            }
        }
    }
}
