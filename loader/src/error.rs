// SPDX-License-Identifier: GPL-2.0-or-later

//! What can go wrong, told in one line that says what to do, and the exit status that stands for its kind.

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

/// Exit statuses. They are part of the command line's contract and do not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    Success = 0,
    /// A run-time error in the script, or the command of `-c` failed.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The module's file cannot be used.
    File = 3,
    /// Not permitted: privileges, signatures, lockdown.
    Permission = 4,
    /// Built for another kernel, or for another build of what is probed.
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
    /// Of a process that ended with it.
    pub fn from_status(status: i32) -> Option<Exit> {
        use Exit::{Busy, Failed, File, Kernel, Mismatch, Output, Permission, Remove, Success, Usage};
        let all = [Success, Failed, Usage, File, Permission, Mismatch, Busy, Kernel, Output, Remove];
        all.into_iter().find(|exit| *exit as i32 == status)
    }

    pub fn code(self) -> ExitCode {
        ExitCode::from(self as u8)
    }
}

/// The table in `--help`.
pub const EXIT_HELP: &str = "\
INT, TERM or HUP end the script in order: its end probes run, all that it printed is written, its module is removed. A
second one drops what nobody has read by then. QUIT leaves it running without a loader (as -L does); spilerun -A NAME
attaches to it again. What it prints meanwhile stays in its buffers: when they are full, new records are dropped, or with
--overwrite the oldest, and counted. USR2 goes to the next output file. A loader that dies ends the session, without --keep.

Exit status:
  0  all went well (also when ended by a signal, by -T, or because nobody reads the output any more)
  1  run-time error in the script, or the command of -c failed
  2  wrong command line, no process of the number given with -x, or a GLOBAL=VALUE that does not fit
  3  the module's file cannot be used
  4  not permitted: no CAP_SYS_MODULE, modules disabled, signature required
  5  built for another kernel, or for another build of a probed module
  6  a module of this name is loaded already, or in use
  7  the kernel refused to load or start the module for another reason (see dmesg)
  8  the output could not be written
  9  the module could not be removed, or there is no such session (-A, -d)";

/// Whose a name in /sys/module is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameOf {
    /// A module of ours, which is used.
    Session,
    /// Another module.
    Module,
    /// Something that is no module: the kernel's own parts with parameters stand there, too.
    Kernel,
}

/// Why nobody answers for a module from elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unvouched {
    Unsigned,
    /// Root has put no certificate there that can be used.
    NoKeys,
    /// None of those keys has signed it, or it has been changed since.
    Stranger,
}

impl fmt::Display for Unvouched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unvouched::Unsigned => write!(f, "this one is not signed: sign it (spile --sign-key, sign-file)"),
            Unvouched::NoKeys => write!(f, "there is no certificate in {KEYS}: put the signer's there (X.509, DER)"),
            Unvouched::Stranger => write!(
                f,
                "no key in {KEYS} has signed this one as it is: put the signer's certificate there (X.509, DER)"
            ),
        }
    }
}

/// Why there is no session, or why it ended early. Texts come from [`fmt::Display`].
#[derive(Debug)]
pub enum Error {
    /// No module file of that name; where it was looked for.
    NotFound {
        name: PathBuf,
        looked: Vec<PathBuf>,
    },
    Unreadable {
        path: PathBuf,
        error: io::Error,
    },
    /// The file is no ELF file that can be read.
    Elf {
        path: PathBuf,
        error: ElfError,
    },
    /// The file is a module, but none of spile's.
    NotOurs {
        path: PathBuf,
    },
    Meta {
        path: PathBuf,
        error: MetaError,
    },
    Format {
        path: PathBuf,
        index: usize,
        error: FormatError,
    },
    /// The file is not as the compiler has left it.
    Changed {
        path: PathBuf,
    },
    /// The module's name cannot be one.
    BadName {
        path: PathBuf,
        name: String,
    },
    /// No CAP_SYS_MODULE.
    NoCapability,
    /// Set-uid, and the caller is not in this group.
    NotAllowed {
        what: &'static str,
        group: &'static str,
    },
    /// Set-uid, and the module does not lie where only root can have put it.
    NotApproved {
        path: PathBuf,
    },
    /// The program has file capabilities.
    FileCapabilities,
    /// The root part has refused it, with this status and text.
    Refused {
        exit: Exit,
        text: String,
    },
    /// Somebody else has started it.
    OtherOwner {
        name: String,
        uid: u32,
    },
    /// It is the name of a service.
    Reserved {
        name: String,
    },
    /// Users who are not root have no more.
    Limit {
        what: String,
    },
    /// The same for members of spilesys, and nobody whom root trusts is known to have signed it.
    Unvouched {
        path: PathBuf,
        why: Unvouched,
    },
    /// A script in guru mode, signed, from elsewhere.
    GuruElsewhere {
        path: PathBuf,
    },
    /// Told to observe, but these pieces of C may write.
    Ungated {
        name: String,
        code: String,
    },
    /// `/proc/sys/kernel/modules_disabled` is 1.
    ModulesDisabled,
    /// The kernel takes signed modules only, and this one has no signature.
    Unsigned {
        path: PathBuf,
        because: &'static str,
    },
    /// The kernel does not know the key of the signature.
    SignatureRejected {
        path: PathBuf,
    },
    OtherRelease {
        path: PathBuf,
        built_for: String,
        running: String,
    },
    /// `target` is empty for the kernel.
    OtherBuild {
        target: String,
        compiled_against: String,
        expected: Vec<u8>,
        found: Vec<u8>,
    },
    /// Another one has replaced a function that the script wants to change.
    Livepatched {
        function: String,
        target: String,
        patch: String,
    },
    /// The module itself, or the kernel, found that they do not fit.
    RefusedToFit {
        name: String,
        errno: Errno,
    },
    /// A module of that name is loaded.
    NameTaken {
        name: String,
        by: NameOf,
    },
    /// The device is open elsewhere.
    InUse {
        name: String,
    },
    /// Another loader has kept the lock for leftovers too long.
    Locked,
    /// Nothing to remove.
    NotLoaded {
        name: String,
    },
    /// Rewriting ended at a time that was set, and was asked for without another.
    Expired {
        name: String,
    },
    Load {
        name: String,
        errno: Errno,
    },
    /// The node of the module's device can neither be found nor made.
    Node {
        name: String,
        error: io::Error,
    },
    /// An operation on the device.
    Device {
        name: String,
        doing: &'static str,
        errno: Errno,
    },
    /// The device speaks another version, or gives numbers that make no sense.
    Strange {
        name: String,
        what: String,
    },
    Remove {
        name: String,
        errno: Errno,
    },
    NoProcess {
        pid: i32,
    },
    /// The script would cost more than `--budget` allows, in percent; sampling would not help.
    OverBudget {
        cost: f64,
        budget: f64,
        least: Option<f64>,
    },
    /// A `GLOBAL=VALUE` that does not fit.
    Setting {
        given: String,
        why: String,
    },
    /// `-R` changes bytes, a signature is over all of them.
    RenameSigned {
        path: PathBuf,
    },
    /// A service has none for the running kernel.
    NoModule {
        name: String,
        release: String,
        places: Vec<PathBuf>,
    },
    /// No `/etc/spile/NAME.conf`.
    NoService {
        name: String,
    },
    /// `-A`: nothing runs in it.
    NotRunning {
        name: String,
    },
    /// The command of `-c` cannot be started.
    Command {
        command: String,
        error: io::Error,
    },
    OpenOutput {
        path: PathBuf,
        error: io::Error,
    },
    /// Operations of the loader's own that practically do not fail.
    System {
        doing: &'static str,
        error: io::Error,
    },
}

impl Error {
    pub fn exit(&self) -> Exit {
        match self {
            Error::NotFound { .. }
            | Error::Unreadable { .. }
            | Error::Elf { .. }
            | Error::NotOurs { .. }
            | Error::Meta { .. }
            | Error::Format { .. }
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
            | Error::Unvouched { .. }
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
            | Error::Expired { .. } => Exit::Usage,
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
                "{} is not as it was when spile built it (a bit is wrong, or cut, or another version of spile built it): build it again, or copy it again",
                path.display()
            ),
            Error::Unreadable { path, error } => write!(f, "{} cannot be read: {error}", path.display()),
            Error::Elf { path, error } => write!(f, "{} is no module: {error}", path.display()),
            Error::NotOurs { path } => write!(f, "{} was not built by spile: use insmod for it", path.display()),
            Error::Meta { path, error } => {
                write!(f, "{}: {error}; build it again with this version of spile", path.display())
            }
            Error::Format { path, index, error } => {
                write!(f, "{}: format {index}: {error}; build it again with this version of spile", path.display())
            }
            Error::BadName { path, name } => {
                write!(f, "{}: '{name}' is no name for a module or a kernel", path.display())
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
                "{name} is a service, which root starts (systemctl start spile@{name}): START in /etc/spile/{name}.conf says who else may"
            ),
            Error::Limit { what } => write!(
                f,
                "{what}: end one (spilerun -d NAME), ask for less (-s MB), or ask root, who sets this in {}",
                LIMITS
            ),
            Error::Refused { text, .. } => write!(f, "{text}"),
            Error::FileCapabilities => write!(
                f,
                "spilerun has file capabilities, with which its user could stop what removes modules: take them away (setcap -r) and make it set-uid root instead (chmod 4755)"
            ),
            Error::NotApproved { path } => write!(
                f,
                "{}: members of spileusr run modules of /lib/modules/{}/spile alone: root puts them there",
                path.display(),
                running_release()
            ),
            Error::Unvouched { path, why } => write!(
                f,
                "{}: members of spilesys run modules from elsewhere only if somebody has signed them whom root trusts, and {why}, or put the module into /lib/modules/{}/spile",
                path.display(),
                running_release()
            ),
            Error::GuruElsewhere { path } => write!(
                f,
                "{} was compiled in guru mode (-g): members of spilesys run such modules of /lib/modules/{}/spile alone",
                path.display(),
                running_release()
            ),
            Error::Ungated { name, code } => write!(
                f,
                "{name} cannot only observe: C of its own may write what is not held back ({code}); say /* pure */ in C that changes nothing, or --harmless-c here if you know that it does no harm"
            ),
            Error::ModulesDisabled => {
                write!(f, "this kernel loads no modules until it is rebooted (sysctl kernel.modules_disabled is 1)")
            }
            Error::Unsigned { path, because } => write!(
                f,
                "{because}, and {} is not signed: sign it with a key that the kernel knows (spile --sign-key, mokutil --import)",
                path.display()
            ),
            Error::SignatureRejected { path } => write!(
                f,
                "the kernel does not accept the signature of {}: enrol its key (mokutil --import) or sign with one that is known",
                path.display()
            ),
            Error::OtherRelease { path, built_for, running } => write!(
                f,
                "{} is for kernel {built_for}, this is {running}: compile the script for it (spile -p4 -r {running})",
                path.display()
            ),
            Error::OtherBuild { target, compiled_against, expected, found } => {
                match target.as_str() {
                    "" => write!(f, "the running kernel is another build than the one compiled for")?,
                    name => write!(f, "the loaded module {name} is another build than the one compiled for")?,
                }
                write!(f, " (build-id {}, expected {}", Hex(found), Hex(expected))?;
                if !compiled_against.is_empty() {
                    write!(f, " of {compiled_against}")?;
                }
                write!(f, "): compile the script against what runs here")
            }
            Error::RefusedToFit { name, errno } => write!(
                f,
                "{name} does not fit what runs here, by build-id, version or code ({}): the lines before, or dmesg, say why; compile the script for it",
                errno.desc()
            ),
            Error::Livepatched { function, target, patch } => write!(
                f,
                "{function} of {target} is replaced by the live patch {patch}: what the script was compiled for does not run; take out one of the two (echo 0 >/sys/kernel/livepatch/{patch}/enabled)"
            ),
            Error::NameTaken { name, by: NameOf::Kernel } => {
                write!(
                    f,
                    "the running kernel has a part that is called {name} (/sys/module/{name}): -R loads the module under another name, as does building it with another -m"
                )
            }
            Error::NameTaken { name, by: NameOf::Module } => {
                write!(
                    f,
                    "a module {name} is loaded already, which is none of spile's: -R loads this one under another name, as does building it with another -m"
                )
            }
            Error::NameTaken { name, by: NameOf::Session } => write!(
                f,
                "a module {name} is loaded already, and in use: end what runs it, attach to its session (spilerun -A {name}) or remove it (-d {name}); -R loads another"
            ),
            Error::InUse { name } => write!(f, "module {name} is in use by another spilerun: end that first"),
            Error::Locked => write!(
                f,
                "another spilerun has been loading a module for 10 s and more: look whether it is stopped, and try again"
            ),
            Error::Expired { name } => {
                write!(
                    f,
                    "{name} has expired and rewrites nothing: spilerun enforce {name} --expires 1h has it rewrite for another hour"
                )
            }
            Error::NotLoaded { name } => write!(f, "no module {name} of spile is loaded"),
            Error::Load { name, errno } => {
                write!(f, "the kernel does not load {name}: {}; dmesg may say why", errno.desc())
            }
            Error::Node { name, error } if error.kind() == io::ErrorKind::PermissionDenied => {
                write!(
                    f,
                    "module {name} is loaded, but its device is not yours to open: run as root, with sudo, or as a member of spileusr by a set-uid spilerun"
                )
            }
            Error::Node { name, error } => {
                write!(f, "module {name} is loaded, but its device cannot be opened: {error}")
            }
            Error::Device { name, doing, errno } => write!(f, "{doing} {name}: {}; dmesg may say why", errno.desc()),
            Error::Strange { name, what } => {
                write!(f, "module {name} does not answer as expected ({what}): build it with this version of spile")
            }
            Error::Remove { name, errno } => {
                write!(
                    f,
                    "module {name} cannot be removed: {}; nothing of it is armed; later, try spilerun -d {name}",
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
                    "there is no service {name} (/etc/spile/{name}.conf): spilerun service install {name} FILE.ko makes one"
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
                "the script would take about {cost:.2}% of the CPUs' time, and may take {budget}%: it has not been started; --budget {budget},sample handles one in so many hits"
            ),
            Error::OverBudget { cost, budget, least: Some(least) } => write!(
                f,
                "the script would take about {cost:.2}% of the CPUs' time, and its probes {least:.2}% without a handler; it may take {budget}%: it has not been started"
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
    fn a_mismatch_names_both_builds_and_the_word_to_search_for() {
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
