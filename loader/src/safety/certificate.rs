// SPDX-License-Identifier: GPL-2.0-or-later

//! Reads the RSA key from an X.509 certificate. The files are root's own (`/etc/spile/keys`) and therefore trusted:
//! dates, names and key usage are ignored, as the kernel ignores them for its own keys.
//!
//! DER (X.690), as written by openssl's `-outform DER` and by the kernel's build; field names are those of RFC 5280,
//! 4.1.
//!
//! Written by hand, with the crate num-bigint for the arithmetic: the crates `x509-cert` and `rsa` would add 30 crates
//! (their own big numbers, random numbers, private keys) and 64 KB to a set-uid program, to replace 40 lines that walk
//! root's own certificate and one call of `modpow` on public numbers. Nothing here is secret, so timing reveals
//! nothing, and no key is generated. The untrusted input, the module's signature, is only compared as bytes
//! ([`crate::safety::trust`]).

use num_bigint::BigUint;

/// Minimum key size in bits; smaller keys are not secure.
const LEAST_BITS: u64 = 2048;
/// Maximum key size in bits; larger keys only take time.
const MOST_BITS: u64 = 8192;

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;
/// Tag of the version field, which version 1 certificates do not have.
const VERSION: u8 = 0xa0;
/// Object identifier 1.2.840.113549.1.1.1 with its tag: rsaEncryption.
const RSA: &[u8] = &[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];

/// An RSA public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The exponent.
    pub exponent: BigUint,
    /// The modulus.
    pub modulus: BigUint,
}

impl Key {
    /// Size of the modulus, and so of each signature, in bytes.
    pub fn bytes(&self) -> usize {
        self.modulus.bits().div_ceil(8) as usize
    }

    /// Parses a certificate. The error says what to do.
    pub fn of_certificate(der: &[u8]) -> Result<Key, &'static str> {
        if der.starts_with(b"-----BEGIN") {
            return Err("it is PEM, not DER: openssl x509 -in FILE -outform DER");
        }
        let (algorithm, key) = public_key(der).ok_or("it is no X.509 certificate (DER)")?;
        if !algorithm.starts_with(RSA) {
            return Err("its key is not RSA, the only supported kind");
        }
        let key = rsa(key).ok_or("its RSA key is damaged")?;
        if !(LEAST_BITS..=MOST_BITS).contains(&key.modulus.bits()) {
            return Err("its key has less than 2048 or more than 8192 bits");
        }
        // An RSA modulus and exponent are odd; an exponent of 1 would accept any signature.
        let is_sound = key.modulus.bit(0) && key.exponent.bit(0) && (2..=64).contains(&key.exponent.bits());
        is_sound.then_some(key).ok_or("its RSA key is damaged")
    }
}

/// Contents of the first element, which must have this tag, and the rest after it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        // Indefinite length: not allowed in DER.
        0x80 => return None,
        // The number of bytes of the length.
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
    // The first byte is the number of unused bits in the last one.
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
    fn other_certificates_are_refused_with_a_reason() {
        let refused = |der: &[u8]| Key::of_certificate(der).unwrap_err();
        assert!(refused(b"-----BEGIN CERTIFICATE-----\n").contains("-outform DER"));
        assert!(refused(b"").contains("no X.509") && refused(b"text").contains("no X.509"));
        assert!(refused(include_bytes!("../../tests/trust/elliptic.der")).contains("not RSA"));
        // An even exponent.
        let mut even = CERTIFICATE.to_vec();
        let place = CERTIFICATE.windows(5).position(|bytes| bytes == [INTEGER, 3, 1, 0, 1]).unwrap();
        even[place + 4] = 0;
        assert!(refused(&even).contains("damaged"));
        even[place + 2..place + 5].copy_from_slice(&[0, 0, 1]);
        assert!(refused(&even).contains("damaged"));
    }

    #[test]
    fn damaged_certificates_are_errors_or_other_keys() {
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
