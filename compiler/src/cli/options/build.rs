// SPDX-License-Identifier: GPL-2.0-or-later

//! How far the passes go, and how the module is built.

use std::path::PathBuf;

use clap::Args;
use spile_base::cache::Settings;
use spile_core::elaborate::Privilege;
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

    /// Name of the module; with -p4, NAME.ko is written to the current directory
    #[arg(short = 'm', value_name = "NAME")]
    pub module: Option<String>,

    /// Write NAME.ko to the current directory also when the script is run
    #[arg(long)]
    pub save_module: bool,

    /// Where -p4 leaves the module.
    #[arg(long, value_name = "DIR", hide = true)]
    pub module_directory: Option<PathBuf>,

    /// Add an entry to the module's information that modinfo(8) shows
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub modinfo: Vec<(String, String)>,

    /// Sign the module with the keys in DIR, or with the machine owner's key (MOK)
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, conflicts_with = "sign_key")]
    pub sign_module: Option<Option<PathBuf>>,

    /// Sign the module with this private key (PEM); its passphrase is in $KBUILD_SIGN_PIN
    #[arg(long, value_name = "FILE", requires = "sign_cert")]
    pub sign_key: Option<PathBuf>,

    /// The certificate of the key (X.509)
    #[arg(long, value_name = "FILE", requires = "sign_key")]
    pub sign_cert: Option<PathBuf>,

    /// Pass a variable or an option to the kernel's make: CONFIG_DEBUG_INFO=y, CROSS_COMPILE=prefix-
    #[arg(short = 'B', value_name = "NAME=VALUE", value_parser = make_word, allow_hyphen_values = true)]
    pub make: Vec<String>,

    /// Always use the kernel's build system (Kbuild), not the commands recorded from it
    #[arg(long)]
    pub kbuild: bool,

    /// Compile with debug information, for crash(8) and gdb: four times as large, with the same code
    #[arg(long)]
    pub debug: bool,

    /// Also write the module's debug information below DIR, where crash(8) and gdb find it by the module's build-id
    #[arg(long, value_name = "DIR", conflicts_with = "debug")]
    pub debug_info: Option<PathBuf>,

    /// Use the runtime (kernel half) of spile in DIR
    #[arg(short = 'R', value_name = "DIR")]
    pub runtime: Option<PathBuf>,

    /// Architecture to compile for; only that of this machine
    #[arg(short = 'a', value_name = "ARCH")]
    pub architecture: Option<String>,

    /// Where the script runs; only kernel
    #[arg(long = "runtime", value_name = "MODE", value_parser = ["kernel", "dyninst", "bpf"])]
    pub mode: Option<String>,

    /// Refuse what users of LEVEL must not do: stapusr sees only processes of the user who runs the module, stapsys has no guru mode
    #[arg(long, value_name = "LEVEL", value_parser = ["stapdev", "stapsys", "stapusr"], num_args = 0..=1, require_equals = true, default_missing_value = "stapdev")]
    pub privilege: Option<String>,

    /// As --privilege=stapusr
    #[arg(long, conflicts_with = "privilege")]
    pub unprivileged: bool,

    /// Keep the temporary directory, and print its name
    #[arg(short = 'k')]
    pub keep: bool,

    /// Use DIR for temporary files, and keep them
    #[arg(long, value_name = "DIR")]
    pub tmpdir: Option<PathBuf>,

    /// Limit the memory of the compilation
    #[arg(long, value_name = "BYTES")]
    pub rlimit_as: Option<u64>,

    /// Limit the CPU time of the compilation
    #[arg(long, value_name = "SECONDS")]
    pub rlimit_cpu: Option<u64>,

    /// Limit the number of processes during the compilation
    #[arg(long, value_name = "NUMBER")]
    pub rlimit_nproc: Option<u64>,

    /// Limit the stack during the compilation
    #[arg(long, value_name = "BYTES")]
    pub rlimit_stack: Option<u64>,

    /// Limit the size of files that the compilation writes
    #[arg(long, value_name = "BYTES")]
    pub rlimit_fsize: Option<u64>,

    /// Show or clear the cache of modules, debug information and builds
    #[arg(long, value_name = "ACTION", value_enum)]
    pub cache: Option<cache::Action>,

    /// The same as --cache prune
    #[arg(long)]
    pub clean_cache: bool,

    /// Neither read nor write the cache
    #[arg(long)]
    pub disable_cache: bool,

    /// Write the cache, but do not read it
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

    /// What the script may see.
    pub fn privilege(&self) -> Privilege {
        match self.privilege.as_deref() {
            Some("stapusr") => Privilege::Usr,
            Some("stapsys") => Privilege::Sys,
            None if self.unprivileged => Privilege::Usr,
            _ => Privilege::Dev,
        }
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
