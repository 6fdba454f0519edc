// SPDX-License-Identifier: GPL-2.0-or-later

//! Signs a module with the kernel's own sign-file, for kernels that require signatures (module.sig_enforce, Secure
//! Boot).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::BuildError;

/// A private key, and the certificate known to the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// PEM, or a `pkcs11:` URI. Its passphrase is in `$KBUILD_SIGN_PIN` (Documentation/admin-guide/module-signing.rst).
    pub key: PathBuf,
    /// X.509, PEM or DER.
    pub certificate: PathBuf,
}

/// Where distributions store the machine owner's key, which `mokutil --import` enrols.
const PLACES: [(&str, &str); 3] = [
    ("/var/lib/shim-signed/mok/MOK.priv", "/var/lib/shim-signed/mok/MOK.der"),
    ("/var/lib/dkms/mok.key", "/var/lib/dkms/mok.pub"),
    ("/etc/pki/akmods/private/private_key.priv", "/etc/pki/akmods/certs/public_key.der"),
];

/// File names in the directory of `--sign-module=DIR`.
const NAMES: [(&str, &str); 3] =
    [("signing_key.priv", "signing_key.x509"), ("MOK.priv", "MOK.der"), ("mok.key", "mok.pub")];

impl Keys {
    /// The key pair in that directory, or this machine's.
    pub fn find(directory: Option<&Path>) -> Result<Keys, BuildError> {
        let pairs: Vec<Keys> = match directory {
            Some(directory) => NAMES
                .iter()
                .map(|(key, certificate)| Keys { key: directory.join(key), certificate: directory.join(certificate) })
                .collect(),
            None => PLACES
                .iter()
                .map(|(key, certificate)| Keys { key: key.into(), certificate: certificate.into() })
                .collect(),
        };
        let there = pairs.iter().find(|keys| keys.key.is_file() && keys.certificate.is_file()).cloned();
        there.ok_or_else(|| BuildError::NoKeys { looked: pairs.into_iter().map(|keys| keys.key).collect() })
    }
}

/// Appends the signature to the module, with the hash that the kernel in `build_dir` is configured for.
pub fn sign(build_dir: &Path, keys: &Keys, module: &Path) -> Result<(), BuildError> {
    let program = build_dir.join("scripts/sign-file");
    if !program.is_file() {
        return Err(BuildError::NoSigner { looked: program });
    }
    let config = std::fs::read_to_string(build_dir.join(".config")).unwrap_or_default();
    let mut signer = Command::new(&program);
    // It may ask for the key's passphrase.
    spile_base::programs::end_with_this_thread(&mut signer);
    let output = signer
        .arg(hash(&config))
        .arg(&keys.key)
        .arg(&keys.certificate)
        .arg(module)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output();
    let output = output.map_err(|error| BuildError::Sign { log: format!("running {}: {error}", program.display()) })?;
    let log = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).trim().to_string();
    if output.status.success() { Ok(()) } else { Err(BuildError::Sign { log }) }
}

/// CONFIG_MODULE_SIG_HASH; kernels without it do not check it.
fn hash(config: &str) -> String {
    let value = config
        .lines()
        .find_map(|line| line.strip_prefix("CONFIG_MODULE_SIG_HASH="))
        .map(|value| value.trim_matches('"'));
    value.filter(|value| !value.is_empty()).unwrap_or("sha256").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_of_the_configuration() {
        assert_eq!(hash("CONFIG_MODULE_SIG=y\nCONFIG_MODULE_SIG_HASH=\"sha512\"\n"), "sha512");
        assert_eq!(hash(""), "sha256");
    }

    #[test]
    fn a_directory_with_keys() {
        let directory = tempfile::tempdir().unwrap();
        let Err(BuildError::NoKeys { looked }) = Keys::find(Some(directory.path())) else { panic!("found keys") };
        assert_eq!(looked.len(), NAMES.len());
        for name in ["MOK.priv", "MOK.der"] {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        assert_eq!(Keys::find(Some(directory.path())).unwrap().key, directory.path().join("MOK.priv"));
        assert!(matches!(
            sign(directory.path(), &Keys { key: "k".into(), certificate: "c".into() }, Path::new("m")),
            Err(BuildError::NoSigner { .. })
        ));
    }
}
