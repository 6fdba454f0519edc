// SPDX-License-Identifier: GPL-2.0-or-later

//! Errors, each with a message of one line that says what to do, and the exit status of its kind.
//!
//! `Display` is written by hand, not with thiserror: a dozen of the messages depend on more than their variant's
//! fields (the running release, lists, the kind of an error), which its attributes cannot express without a function for each.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use nix::errno::Errno;
use spile_abi::format::FormatError;
use spile_abi::meta::MetaError;

use crate::elf::ElfError;
use crate::host::kernel::running_release;
use crate::host::places::{KEYS, LIMITS};

/// Exit statuses. Scripts rely on the numbers: they do not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// All went well.
    Success = 0,
    /// A run-time error in the script, or the command of `-c` failed.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The module's file cannot be used.
    File = 3,
    /// Not permitted: privileges, signatures, lockdown.
    Permission = 4,
    /// Built for another kernel, or for another build of a probed module.
    Mismatch = 5,
    /// The name is taken, or the module is in use.
    Busy = 6,
    /// The kernel refused something else, or the module does not answer as it should.
    Kernel = 7,
    /// Output could not be written.
    Output = 8,
    /// The module could not be removed.
    Remove = 9,
}

impl Exit {
    /// The exit status of that number; `None` for a number that no variant has.
    pub fn from_status(status: i32) -> Option<Exit> {
        use Exit::{Busy, Failed, File, Kernel, Mismatch, Output, Permission, Remove, Success, Usage};
        let all = [Success, Failed, Usage, File, Permission, Mismatch, Busy, Kernel, Output, Remove];
        all.into_iter().find(|exit| *exit as i32 == status)
    }

    /// The status for `main` to return.
    pub fn code(self) -> ExitCode {
        ExitCode::from(self as u8)
    }
}

/// The table in `--help`.
pub const EXIT_HELP: &str = "\
INT, TERM and HUP end the script: its end probes run, its output is written, and its module is removed. A second one
discards output that has not been read by then. QUIT detaches the loader and leaves the script running (as -L does);
spilerun -A NAME attaches again. Output of a detached session stays in its buffers: when they are full, new records, or
with --overwrite the oldest, are dropped and counted. USR2 switches to the next output file. Without --keep a session ends
if its loader dies.

Exit status:
  0  success (also if a signal, -T or a closed output pipe ended the session)
  1  run-time error in the script, or the command of -c failed
  2  wrong command line, no process with the PID of -x, or an invalid GLOBAL=VALUE
  3  the module's file cannot be used
  4  not permitted: no CAP_SYS_MODULE, modules disabled, signature required
  5  built for another kernel, or for another build of a probed module
  6  a module of this name is already loaded, or in use
  7  the kernel refused to load or start the module for another reason (see dmesg)
  8  the output could not be written
  9  the module could not be removed, or there is no such session (-A, -d)";

/// The owner of a name that exists in /sys/module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameOwner {
    /// A module of spile, which is in use.
    Session,
    /// A module of spile whose session has ended, and whose kprobes are still being unregistered.
    Disarming,
    /// Another module.
    Module,
    /// Not a module: the kernel's built-in modules with parameters are listed there, too.
    Kernel,
}

/// Why a module that is not in a directory of root's has no known signer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSigner {
    /// The module has no signature.
    Unsigned,
    /// There is no certificate that can be used in the directory of keys.
    NoKeys,
    /// None of those keys has signed the module, or it was changed since.
    Stranger,
}

impl fmt::Display for NoSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoSigner::Unsigned => write!(f, "this one is not signed: sign it (spile --sign-key, sign-file)"),
            NoSigner::NoKeys => write!(f, "there is no certificate in {KEYS}: put the signer's there (X.509, DER)"),
            NoSigner::Stranger => write!(
                f,
                "this one is not signed with a key in {KEYS}, or was changed since: put the signer's certificate there (X.509, DER)"
            ),
        }
    }
}

/// Why there is no session, or why it ended early. The messages come from [`fmt::Display`].
#[derive(Debug)]
pub enum Error {
    /// There is no module file of that name in the searched places.
    NotFound {
        /// The requested name.
        name: PathBuf,
        /// The files that were tried.
        looked: Vec<PathBuf>,
    },
    /// The module's file cannot be read.
    Unreadable {
        /// Path of the module's file.
        path: PathBuf,
        /// The error of the system call.
        error: io::Error,
    },
    /// The file is not an ELF file that can be read.
    Elf {
        /// Path of the module's file.
        path: PathBuf,
        /// What is wrong with it.
        error: ElfError,
    },
    /// The file is a module, but spile did not build it.
    NotOurs {
        /// Path of the module's file.
        path: PathBuf,
    },
    /// The description in the module's file cannot be decoded.
    Meta {
        /// Path of the module's file.
        path: PathBuf,
        /// What is wrong with it.
        error: MetaError,
    },
    /// A print format in the module's file cannot be decoded.
    Format {
        /// Path of the module's file.
        path: PathBuf,
        /// Index of the format.
        index: usize,
        /// What is wrong with it.
        error: FormatError,
    },
    /// A description of an object in the module's file cannot be decoded.
    Description {
        /// Path of the module's file.
        path: PathBuf,
        /// Index of the description.
        index: usize,
        /// What is wrong with it.
        error: FormatError,
    },
    /// The checksum that spile put into the file is wrong or missing: the file was changed, or another version built it.
    Changed {
        /// Path of the module's file.
        path: PathBuf,
    },
    /// The name in the file is not valid as the name of a module or of a kernel.
    BadName {
        /// Path of the module's file.
        path: PathBuf,
        /// The name.
        name: String,
    },
    /// No CAP_SYS_MODULE.
    NoCapability,
    /// Set-uid, and the caller is not in this group.
    NotAllowed {
        /// The operation, as the message names it.
        what: &'static str,
        /// The group whose members may.
        group: &'static str,
    },
    /// Set-uid, and the module is not in a directory that only root can write.
    NotApproved {
        /// Path of the module's file.
        path: PathBuf,
    },
    /// The program has file capabilities.
    FileCapabilities,
    /// The part with root's rights has refused the request, with this status and text.
    Refused {
        /// The exit status.
        exit: Exit,
        /// The message, without "ERROR: ".
        text: String,
    },
    /// Another user has started the session.
    OtherOwner {
        /// Name of the module.
        name: String,
        /// User ID of its owner.
        uid: u32,
    },
    /// The module has the name of a service, which only root and those named by START may start.
    Reserved {
        /// Name of the module.
        name: String,
    },
    /// A limit for users who are not root is reached.
    Limit {
        /// Which limit, and how much of it is used, in words.
        what: String,
    },
    /// Modules of a user who is not root that were found and are not loaded yet take too much memory.
    ModulesHeld {
        /// What they may take.
        megabytes: u64,
    },
    /// Set-uid, the caller is a member of spilesys, and no signer whom root trusts has signed the module.
    NoSigner {
        /// Path of the module's file.
        path: PathBuf,
        /// Why no signer is known.
        why: NoSigner,
    },
    /// A script in guru mode, signed, from elsewhere.
    GuruElsewhere {
        /// Path of the module's file.
        path: PathBuf,
    },
    /// The module is to observe only, but these pieces of C may write.
    Ungated {
        /// Name of the module.
        name: String,
        /// The pieces of C, separated by commas.
        code: String,
    },
    /// `/proc/sys/kernel/modules_disabled` is 1.
    ModulesDisabled,
    /// The kernel loads signed modules only, and this one has no signature.
    Unsigned {
        /// Path of the module's file.
        path: PathBuf,
        /// Why a signature is required.
        because: &'static str,
    },
    /// The kernel does not know the key of the signature.
    SignatureRejected {
        /// Path of the module's file.
        path: PathBuf,
    },
    /// The module was built for another kernel release than the one that runs.
    OtherRelease {
        /// Path of the module's file.
        path: PathBuf,
        /// Release that the module was built for.
        built_for: String,
        /// Release that runs.
        running: String,
    },
    /// The kernel or a module that runs is another build than the one compiled for.
    OtherBuild {
        /// Name of the module; empty for the kernel.
        target: String,
        /// The file that the script was compiled against; may be empty.
        compiled_against: String,
        /// Build-id that the script was compiled for.
        expected: Vec<u8>,
        /// Build-id of the running kernel or loaded module.
        found: Vec<u8>,
    },
    /// A live patch has replaced a function that a guru script probes.
    Livepatched {
        /// The function.
        function: String,
        /// Where it is, in words: the kernel or a module.
        target: String,
        /// Name of the live patch.
        patch: String,
    },
    /// The module itself, or the kernel, found that the module does not fit what runs.
    RefusedToFit {
        /// Name of the module.
        name: String,
        /// The error that the kernel returned.
        errno: Errno,
    },
    /// A module of that name is loaded.
    NameTaken {
        /// Name of the module.
        name: String,
        /// The owner of the name.
        by: NameOwner,
    },
    /// The device is open elsewhere.
    InUse {
        /// Name of the module.
        name: String,
    },
    /// Another loader has held the lock for leftovers too long.
    Locked,
    /// No module of spile of this name is loaded.
    NotLoaded {
        /// Name of the module.
        name: String,
    },
    /// The time of `--expires` is over, and `spilerun enforce` gave no new one.
    Expired {
        /// Name of the module.
        name: String,
    },
    /// The module has no such probe, or it is not attached to anything.
    NoProbe {
        /// Name of the module.
        name: String,
        /// Its point or number.
        probe: String,
    },
    /// The kernel did not load the module.
    Load {
        /// Name of the module.
        name: String,
        /// The error that the kernel returned.
        errno: Errno,
    },
    /// The node of the module's device can neither be found nor made.
    Node {
        /// Name of the module.
        name: String,
        /// The error of the system call.
        error: io::Error,
    },
    /// An operation on the module's device failed.
    Device {
        /// Name of the module.
        name: String,
        /// The operation, as the message names it.
        doing: &'static str,
        /// The error that the kernel returned.
        errno: Errno,
    },
    /// The device speaks another version, or gives numbers that make no sense.
    Strange {
        /// Name of the module.
        name: String,
        /// What is wrong, in words.
        what: String,
    },
    /// The kernel did not remove the module.
    Remove {
        /// Name of the module.
        name: String,
        /// The error that the kernel returned.
        errno: Errno,
    },
    /// `-x`: there is no such process.
    NoProcess {
        /// Number of the process.
        pid: i32,
    },
    /// The script would cost more than `--budget` allows, in percent; sampling would not help.
    OverBudget {
        /// Estimated cost, in percent of the CPUs' time.
        cost: f64,
        /// What `--budget` allows, in percent of the CPUs' time.
        budget: f64,
        /// Cost of the hits alone, without their handlers, in percent of the CPUs' time, if sampling would not help
        /// because of it.
        least: Option<f64>,
    },
    /// A `GLOBAL=VALUE` that does not fit.
    Setting {
        /// The options or words that were given.
        given: String,
        /// What is wrong with them.
        why: String,
    },
    /// `-R` changes bytes of the file, and the module is signed: a signature is over all bytes.
    RenameSigned {
        /// Path of the module's file.
        path: PathBuf,
    },
    /// A service has no module for the running kernel.
    NoModule {
        /// Name of the service.
        name: String,
        /// Release of the running kernel.
        release: String,
        /// The files that were tried.
        places: Vec<PathBuf>,
    },
    /// No `/etc/spile/NAME.conf`.
    NoService {
        /// Name of the service.
        name: String,
    },
    /// `-A`: the module has no session that runs.
    NotRunning {
        /// Name of the module.
        name: String,
    },
    /// The command of `-c` cannot be started.
    Command {
        /// The command line.
        command: String,
        /// The error of the system call.
        error: io::Error,
    },
    /// A file for output, for metrics or of a service cannot be written.
    OpenOutput {
        /// Path of the file.
        path: PathBuf,
        /// The error of the system call.
        error: io::Error,
    },
    /// A system call of the loader that rarely fails.
    System {
        /// The operation, as the message names it.
        doing: &'static str,
        /// The error of the system call.
        error: io::Error,
    },
}

impl Error {
    /// The exit status of a loader that ends with this error.
    pub fn exit(&self) -> Exit {
        match self {
            Error::NotFound { .. }
            | Error::Unreadable { .. }
            | Error::Elf { .. }
            | Error::NotOurs { .. }
            | Error::Meta { .. }
            | Error::Format { .. }
            | Error::Description { .. }
            | Error::Changed { .. }
            | Error::NoService { .. }
            | Error::BadName { .. } => Exit::File,
            Error::Node { error, .. } if error.kind() == io::ErrorKind::PermissionDenied => Exit::Permission,
            Error::Refused { exit, .. } => *exit,
            Error::NoCapability
            | Error::FileCapabilities
            | Error::NotAllowed { .. }
            | Error::NotApproved { .. }
            | Error::OtherOwner { .. }
            | Error::Reserved { .. }
            | Error::Limit { .. }
            | Error::ModulesHeld { .. }
            | Error::NoSigner { .. }
            | Error::GuruElsewhere { .. }
            | Error::ModulesDisabled
            | Error::Unsigned { .. }
            | Error::SignatureRejected { .. } => Exit::Permission,
            Error::NoModule { .. }
            | Error::OtherRelease { .. }
            | Error::OtherBuild { .. }
            | Error::Livepatched { .. }
            | Error::RefusedToFit { .. } => Exit::Mismatch,
            Error::NameTaken { .. } | Error::InUse { .. } | Error::Locked => Exit::Busy,
            Error::NotLoaded { .. } | Error::NotRunning { .. } | Error::Remove { .. } => Exit::Remove,
            Error::Load { .. }
            | Error::Node { .. }
            | Error::Device { .. }
            | Error::Strange { .. }
            | Error::System { .. } => Exit::Kernel,
            Error::NoProcess { .. }
            | Error::Setting { .. }
            | Error::RenameSigned { .. }
            | Error::Ungated { .. }
            | Error::Expired { .. }
            | Error::NoProbe { .. } => Exit::Usage,
            Error::Command { .. } | Error::OverBudget { .. } => Exit::Failed,
            Error::OpenOutput { .. } => Exit::Output,
        }
    }
}

/// Bytes in hexadecimal, as build-ids are written.
pub struct Hex<'b>(pub &'b [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotFound { name, looked } => {
                write!(f, "no module {}", name.display())?;
                looked.iter().enumerate().try_for_each(|(index, path)| {
                    write!(f, "{}{}", if index == 0 { "; looked for " } else { ", " }, path.display())
                })
            }
            Error::Changed { path } => write!(
                f,
                "{} has changed since spile built it (damaged, truncated, or built by another version of spile): build or copy it again",
                path.display()
            ),
            Error::Unreadable { path, error } => write!(f, "{} cannot be read: {error}", path.display()),
            Error::Elf { path, error } => write!(f, "{} is not a module: {error}", path.display()),
            Error::NotOurs { path } => write!(f, "{} was not built by spile: use insmod for it", path.display()),
            Error::Meta { path, error } => {
                write!(f, "{}: {error}; build it again with this version of spile", path.display())
            }
            Error::Format { path, index, error } => {
                write!(f, "{}: format {index}: {error}; build it again with this version of spile", path.display())
            }
            Error::Description { path, index, error } => {
                write!(f, "{}: description {index}: {error}; build it again with this version of spile", path.display())
            }
            Error::BadName { path, name } => {
                write!(f, "{}: '{name}' is not a valid name of a module or a kernel release", path.display())
            }
            Error::NoCapability => {
                write!(f, "loading a module needs CAP_SYS_MODULE: run as root, with sudo, or from a service")
            }
            Error::NotAllowed { what, group } => write!(f, "{what}: only for root and members of the group {group}"),
            Error::OtherOwner { name, uid } => {
                write!(
                    f,
                    "the session of {name} belongs to {}: only that user and root may do this",
                    crate::host::accounts::user_name(*uid)
                )
            }
            Error::Reserved { name } => write!(
                f,
                "{name} is a service, which root starts (systemctl start spile@{name}); START in /etc/spile/{name}.conf allows other users"
            ),
            Error::Limit { what } => write!(
                f,
                "{what}: end a session (spilerun -d NAME), use smaller buffers (-s MB), or have root raise the limit in {LIMITS}"
            ),
            Error::ModulesHeld { megabytes } => write!(
                f,
                "modules that your spilerun processes hold before they load them would take more than {megabytes} MB (USER_MEMORY in {LIMITS}): end those that are stopped"
            ),
            Error::Refused { text, .. } => write!(f, "{text}"),
            Error::FileCapabilities => write!(
                f,
                "spilerun has file capabilities, so its user could stop the process that removes modules: remove them (setcap -r) and make it set-uid root instead (chmod 4755)"
            ),
            Error::NotApproved { path } => write!(
                f,
                "{}: members of spileusr may only run modules in /lib/modules/{}/spile, which root puts there, and modules compiled with --privilege=stapusr that a signer trusted by root has signed",
                path.display(),
                running_release()
            ),
            Error::NoSigner { path, why } => write!(
                f,
                "{}: members of spilesys and spileusr may run modules from elsewhere only if a signer trusted by root has signed them, and {why}, or put the module into /lib/modules/{}/spile",
                path.display(),
                running_release()
            ),
            Error::GuruElsewhere { path } => write!(
                f,
                "{} was compiled in guru mode (-g): members of spilesys may only run such modules from /lib/modules/{}/spile",
                path.display(),
                running_release()
            ),
            Error::Ungated { name, code } => write!(
                f,
                "{name} cannot be run in observe mode: its embedded C ({code}) may write, and such writes are not intercepted; mark C that changes nothing /* pure */, or use --harmless-c if you know that it does no harm"
            ),
            Error::ModulesDisabled => {
                write!(f, "this kernel loads no modules until it is rebooted (sysctl kernel.modules_disabled is 1)")
            }
            Error::Unsigned { path, because } => write!(
                f,
                "{because}, and {} is not signed: sign it with a key that the kernel trusts (spile --sign-key, mokutil --import)",
                path.display()
            ),
            Error::SignatureRejected { path } => write!(
                f,
                "the kernel does not accept the signature of {}: enrol its key (mokutil --import) or sign with a key that is enrolled",
                path.display()
            ),
            Error::OtherRelease { path, built_for, running } => write!(
                f,
                "{} is for kernel {built_for}, this is {running}: compile the script for it (spile -p4 -r {running})",
                path.display()
            ),
            Error::OtherBuild { target, compiled_against, expected, found } => {
                match target.as_str() {
                    "" => write!(f, "the running kernel is not the build that the script was compiled for")?,
                    name => write!(f, "the loaded module {name} is not the build that the script was compiled for")?,
                }
                write!(f, " (build-id {}, expected {}", Hex(found), Hex(expected))?;
                if !compiled_against.is_empty() {
                    write!(f, " of {compiled_against}")?;
                }
                write!(f, "): compile the script against the running build")
            }
            Error::RefusedToFit { name, errno } => write!(
                f,
                "{name} does not match the running kernel or a loaded module in build-id, version or code ({}): see the messages above, or dmesg; compile the script for the running kernel",
                errno.desc()
            ),
            Error::Livepatched { function, target, patch } => write!(
                f,
                "{function} of {target} is replaced by the live patch {patch}, so the code that the script was compiled for does not run; remove the live patch (echo 0 >/sys/kernel/livepatch/{patch}/enabled) or the script"
            ),
            Error::NameTaken { name, by: NameOwner::Kernel } => {
                write!(
                    f,
                    "the running kernel has a built-in module {name} (/sys/module/{name}): load this one under another name (-R), or build it with another name (spile -m)"
                )
            }
            Error::NameTaken { name, by: NameOwner::Module } => {
                write!(
                    f,
                    "another module {name} is loaded, which spile did not build: load this one under another name (-R), or build it with another name (spile -m)"
                )
            }
            Error::NameTaken { name, by: NameOwner::Disarming } => write!(
                f,
                "the previous session of module {name} has ended, and its probes are still being disarmed: try again when it is gone (spilerun -d {name} waits for that), or load this one under another name (-R)"
            ),
            Error::NameTaken { name, by: NameOwner::Session } => write!(
                f,
                "module {name} is already loaded and in use: end its spilerun, attach to its session (spilerun -A {name}), remove it (-d {name}), or load a second one (-R)"
            ),
            Error::InUse { name } => write!(
                f,
                "module {name} is in use by another spilerun: end that one first, by ^C where it runs or by kill PID (pgrep -a spilerun lists them)"
            ),
            Error::Locked => write!(
                f,
                "another spilerun has been loading a module for more than 10 s: check whether it is stopped, and try again"
            ),
            Error::Expired { name } => {
                write!(
                    f,
                    "{name} has expired and no longer rewrites: spilerun enforce {name} --expires 1h enables it for another hour"
                )
            }
            Error::NoProbe { name, probe } => {
                write!(f, "{name} has no probe {probe} that can be switched: spilerun status {name} lists its probes")
            }
            Error::NotLoaded { name } => write!(f, "no module {name} built by spile is loaded"),
            Error::Load { name, errno } => {
                write!(f, "the kernel refused to load {name}: {}; dmesg may say why", errno.desc())
            }
            Error::Node { name, error } if error.kind() == io::ErrorKind::PermissionDenied => {
                write!(
                    f,
                    "module {name} is loaded, but you may not open its device: run as root, with sudo, or as a member of spileusr by a set-uid spilerun"
                )
            }
            Error::Node { name, error } => {
                write!(f, "module {name} is loaded, but its device cannot be opened: {error}")
            }
            Error::Device { name, doing, errno } => write!(f, "{doing} {name}: {}; dmesg may say why", errno.desc()),
            Error::Strange { name, what } => {
                write!(f, "module {name} gave an unexpected answer ({what}): build it with this version of spile")
            }
            Error::Remove { name, errno } => {
                write!(
                    f,
                    "module {name} cannot be removed: {}; none of its probes is armed; try spilerun -d {name} later",
                    errno.desc()
                )
            }
            Error::Setting { given, why } => write!(f, "{given}: {why}"),
            Error::RenameSigned { path } => write!(
                f,
                "{} is signed, and -R would change it: load it under its own name, or build it with another (spile -m NAME)",
                path.display()
            ),
            Error::NoService { name } => {
                write!(
                    f,
                    "there is no service {name} (/etc/spile/{name}.conf): spilerun service install {name} FILE.ko creates it"
                )
            }
            Error::NoModule { name, release, places } => write!(
                f,
                "service {name} has no module for kernel {release} ({}): build it (spile -p4 -m {name} -r {release}) and install it (spilerun service install {name} FILE)",
                places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(", ")
            ),
            Error::NotRunning { name } => write!(f, "no session runs in module {name}: spilerun -d {name} removes it"),
            Error::OverBudget { cost, budget, least: None } => write!(
                f,
                "the script would take about {cost:.2}% of the CPUs' time, more than the {budget}% of --budget: it was not started; with --budget {budget},sample it handles one in N hits"
            ),
            Error::OverBudget { cost, budget, least: Some(least) } => write!(
                f,
                "the script would take about {cost:.2}% of the CPUs' time, and its probes alone {least:.2}%, more than the {budget}% of --budget: it was not started"
            ),
            Error::NoProcess { pid } => write!(f, "there is no process {pid} (-x)"),
            Error::Command { command, error } => write!(f, "'{command}' cannot be started: {error}"),
            Error::OpenOutput { path, error } => write!(f, "{} cannot be written: {error}", path.display()),
            Error::System { doing, error } => write!(f, "{doing}: {error}"),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_every_status() {
        let last = Exit::Remove as u8;
        for status in 0..=last {
            assert_eq!(Exit::from_status(status.into()).map(|exit| exit as u8), Some(status));
            assert!(EXIT_HELP.contains(&format!("\n  {status}  ")), "{status}");
        }
        assert!(!EXIT_HELP.contains(&format!("\n  {}  ", last + 1)));
    }

    #[test]
    fn a_mismatch_names_both_builds_and_a_search_term() {
        let error = Error::OtherBuild {
            target: "lustre".into(),
            compiled_against: "/lib/modules/6.1/lustre.ko".into(),
            expected: vec![0xab, 1],
            found: vec![0x0c],
        };
        let text = error.to_string();
        assert!(
            text.contains("module lustre") && text.contains("build-id 0c, expected ab01 of /lib/modules"),
            "{text}"
        );
        assert_eq!(error.exit(), Exit::Mismatch);
    }
}
