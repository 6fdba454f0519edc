// SPDX-License-Identifier: GPL-2.0-or-later

//! How far the passes go, and how the module is built.

use std::path::PathBuf;

use clap::Args;
use spile_base::cache::Settings;
use spile_kbuild::{BuildError, Keys};

use super::value::{assignment, make_word};
use crate::cli::cache;

/// How far the passes go, and how the module is built.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Module")]
pub struct BuildOptions {
    /// Stop after pass 1 (parse), 2 (elaborate), 3 (translate), 4 (compile) or 5 (run)
    #[arg(short = 'p', value_name = "PASS", value_parser = clap::value_parser!(u8).range(1..=5))]
    pub last_pass: Option<u8>,

    /// Name of the module; with -p4 the file NAME.ko is left in the current directory
    #[arg(short = 'm', value_name = "NAME")]
    pub module: Option<String>,

    /// Leave the module in the current directory, as NAME.ko, when it is run too
    #[arg(long)]
    pub save_module: bool,

    /// Where -p4 leaves the module.
    #[arg(long, value_name = "DIR", hide = true)]
    pub module_directory: Option<PathBuf>,

    /// An entry of the module's own information, as modinfo(8) shows it
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub modinfo: Vec<(String, String)>,

    /// Sign the module with the keys in a directory; without one, with the machine owner's key (MOK)
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, conflicts_with = "sign_key")]
    pub sign_module: Option<Option<PathBuf>>,

    /// Sign the module with this private key (PEM); its passphrase is in $KBUILD_SIGN_PIN
    #[arg(long, value_name = "FILE", requires = "sign_cert")]
    pub sign_key: Option<PathBuf>,

    /// The certificate of the key (X.509)
    #[arg(long, value_name = "FILE", requires = "sign_key")]
    pub sign_cert: Option<PathBuf>,

    /// A directive for the kernel's build, or an option of make's: CONFIG_DEBUG_INFO=y, CROSS_COMPILE=prefix-
    #[arg(short = 'B', value_name = "NAME=VALUE", value_parser = make_word, allow_hyphen_values = true)]
    pub make: Vec<String>,

    /// Make the module by the kernel's own build alone, without the faster way learnt from it
    #[arg(long)]
    pub kbuild: bool,

    /// Use the kernel half of spile from this directory
    #[arg(short = 'R', value_name = "DIR")]
    pub runtime: Option<PathBuf>,

    /// Architecture to compile for: this machine's
    #[arg(short = 'a', value_name = "ARCH")]
    pub architecture: Option<String>,

    /// Where the script runs: in the kernel
    #[arg(long = "runtime", value_name = "MODE", value_parser = ["kernel", "dyninst", "bpf"])]
    pub mode: Option<String>,

    /// The rights that the script needs on the host: stapdev
    #[arg(long, value_name = "LEVEL", value_parser = ["stapdev", "stapsys", "stapusr"], num_args = 0..=1, require_equals = true, default_missing_value = "stapdev")]
    pub privilege: Option<String>,

    /// Keep the temporary directory, and say where it is
    #[arg(short = 'k')]
    pub keep: bool,

    /// The directory to work in, kept
    #[arg(long, value_name = "DIR")]
    pub tmpdir: Option<PathBuf>,

    /// Bytes of memory that compiling may take
    #[arg(long, value_name = "BYTES")]
    pub rlimit_as: Option<u64>,

    /// Seconds of processor time that compiling may take
    #[arg(long, value_name = "SECONDS")]
    pub rlimit_cpu: Option<u64>,

    /// Processes of this user while compiling
    #[arg(long, value_name = "NUMBER")]
    pub rlimit_nproc: Option<u64>,

    /// Bytes of stack while compiling
    #[arg(long, value_name = "BYTES")]
    pub rlimit_stack: Option<u64>,

    /// Bytes of the largest file that compiling may write
    #[arg(long, value_name = "BYTES")]
    pub rlimit_fsize: Option<u64>,

    /// Look at what is kept from earlier runs, or remove it
    #[arg(long, value_name = "ACTION", value_enum)]
    pub cache: Option<cache::Action>,

    /// The same as --cache prune
    #[arg(long)]
    pub clean_cache: bool,

    /// Neither read nor write the cache
    #[arg(long)]
    pub disable_cache: bool,

    /// Write the cache, but do not read what is there
    #[arg(long)]
    pub poison_cache: bool,
}

impl BuildOptions {
    /// The limits of `--rlimit-*`, with the option's name.
    pub fn resources(&self) -> Vec<(&'static str, nix::sys::resource::Resource, u64)> {
        use nix::sys::resource::Resource;
        [
            ("--rlimit-as", Resource::RLIMIT_AS, self.rlimit_as),
            ("--rlimit-cpu", Resource::RLIMIT_CPU, self.rlimit_cpu),
            ("--rlimit-nproc", Resource::RLIMIT_NPROC, self.rlimit_nproc),
            ("--rlimit-stack", Resource::RLIMIT_STACK, self.rlimit_stack),
            ("--rlimit-fsize", Resource::RLIMIT_FSIZE, self.rlimit_fsize),
        ]
        .into_iter()
        .filter_map(|(name, resource, value)| Some((name, resource, value?)))
        .collect()
    }

    /// How the cache is to be used.
    pub fn cache_settings(&self) -> Settings {
        let settings = Settings::from_environment();
        let directory = settings.directory.filter(|_| !self.disable_cache);
        Settings { directory, poisoned: self.poison_cache, ..settings }
    }

    /// What to sign the module with; None: it is not signed.
    pub fn signing_keys(&self) -> Result<Option<Keys>, BuildError> {
        match (&self.sign_module, &self.sign_key, &self.sign_cert) {
            (Some(directory), _, _) => Keys::find(directory.as_deref()).map(Some),
            (None, Some(key), Some(certificate)) => {
                Ok(Some(Keys { key: key.clone(), certificate: certificate.clone() }))
            }
            _ => Ok(None),
        }
    }
}
