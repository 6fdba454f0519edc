// SPDX-License-Identifier: GPL-2.0-or-later

//! Privileges when spilerun is installed set-uid root, or with file capabilities: who may do what, and with what rights each part runs.
//!
//! Everything that names a file or runs a program is done with the caller's own rights from the first line on; root's come
//! back for single calls ([`Caller::as_root`]): to read an approved module, to load it, to open its device. Then they go for
//! good ([`Caller::drop`]). What is left to do with them, the removal of the module, a small process does that was split off
//! before and knows one name ([`Remover`]). No environment variable is looked at with root's rights.
//!
//! | group | may |
//! |---|---|
//! | spiledev | everything that root may |
//! | spilesys | run approved modules, and signed ones from elsewhere; look at, switch and end any session |
//! | spileusr | run approved modules; look at any session; end one's own |
//!
//! Each attaches to its own sessions; to another's only root does. Modules of services are root's, unless their
//! configuration says otherwise ([`reserved`]), and all sessions of users have limits ([`crate::safety::limits`]).
//!
//! A module is approved when it lies in /lib/modules/RELEASE/spile or .../systemtap, and that file and all directories above
//! are root's and nobody else may write there.

use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag, openat};
use nix::libc;
use nix::sys::prctl::set_dumpable;
use nix::sys::signal::{SigHandler, Signal};
use nix::sys::stat::Mode;
use nix::unistd::{
    ForkResult, Gid, Uid, fork, getegid, geteuid, getgid, getgroups, getuid, read, setegid, seteuid, setgroups,
    setresgid, setresuid, setsid, write,
};

use spile_abi::device::{RANK_DEV, RANK_SYS, RANK_USR};

use crate::error::Error;
use crate::host::accounts;
use crate::host::capability::{self, Sets};
use crate::host::channel;
use crate::host::kernel::{is_module_name, running_release};
use crate::host::places;
use crate::host::stderr;
use crate::module::load;
use crate::safety::certificate::Key;
use crate::safety::detached;
use crate::safety::limits::{self, Limits};
use crate::safety::loaded::Stated;

/// What a caller may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// In none of the groups.
    None,
    Usr,
    Sys,
    Dev,
}

/// Who has started this program with rights that are not his own; none: there is nothing to keep apart.
#[derive(Debug)]
pub struct Caller {
    uid: Uid,
    gid: Gid,
    pub rank: Rank,
    means: Means,
}

/// How the program was given rights.
#[derive(Clone, Copy, Debug)]
enum Means {
    SetUid,
    /// Of its file (setcap(8)): all that it may have.
    Capabilities(Sets),
}

/// Groups with their ranks, highest first.
const GROUPS: [(&str, Rank); 3] = [("spiledev", Rank::Dev), ("spilesys", Rank::Sys), ("spileusr", Rank::Usr)];
const DIRECTORIES: [&str; 2] = ["spile", "systemtap"];
/// Bits of a mode that let others than the owner write.
const OTHERS_WRITE: u32 = 0o022;

impl Caller {
    /// To be called first of all. The rights of set-uid rest when it returns.
    pub fn find() -> Result<Option<Caller>, Error> {
        let own = Sets::own().map_err(|error| Error::System { doing: "asking for capabilities", error })?;
        let means = match getuid() == geteuid() && getgid() == getegid() {
            false => Means::SetUid,
            // Not those that a service manager, say, has given to this user on purpose.
            true if !getuid().is_root() && capability::is_elevated() && own.permitted != 0 => Means::Capabilities(own),
            true => return Ok(None),
        };
        let mut groups = getgroups().unwrap_or_default();
        groups.push(getgid());
        let rank = GROUPS
            .iter()
            .find(|(name, _)| accounts::group_id(name).is_some_and(|id| groups.contains(&Gid::from_raw(id))));
        let caller = Caller { uid: getuid(), gid: getgid(), rank: rank.map_or(Rank::None, |(_, rank)| *rank), means };
        caller.rest()?;
        set_dumpable(false).map_err(failed)?;
        stderr::say_panics_briefly();
        Ok(Some(caller))
    }

    /// The caller's own rights, root's within reach.
    fn rest(&self) -> Result<(), Error> {
        match self.means {
            // The group first: without root's rights it cannot be changed.
            Means::SetUid => setegid(self.gid).and_then(|()| seteuid(self.uid)).map_err(failed),
            Means::Capabilities(Sets { permitted, .. }) => take_on(Sets { permitted, ..Sets::default() }),
        }
    }

    /// The rights that it was given.
    fn raise(&self) -> Result<(), Error> {
        match self.means {
            Means::SetUid => seteuid(Uid::from_raw(0)).map_err(failed),
            Means::Capabilities(Sets { permitted, .. }) => {
                take_on(Sets { effective: permitted, permitted, inheritable: 0 })
            }
        }
    }

    pub fn uid(&self) -> u32 {
        self.uid.as_raw()
    }

    /// Refuses what the caller's groups do not allow.
    pub fn require(&self, rank: Rank, what: &'static str) -> Result<(), Error> {
        match self.rank >= rank {
            true => Ok(()),
            false => Err(Error::NotAllowed { what, group: group_of(rank) }),
        }
    }

    /// Runs it with root's rights.
    pub fn as_root<T>(&self, run: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        self.raise()?;
        let result = run();
        self.rest()?;
        result
    }

    /// For good: neither this process nor what it starts can get them back.
    pub fn drop(&self) -> Result<(), Error> {
        let kept =
            || Error::System { doing: "giving up privileges", error: std::io::ErrorKind::PermissionDenied.into() };
        if let Means::Capabilities(_) = self.means {
            take_on(Sets::default())?;
            return if self.raise().is_err() { Ok(()) } else { Err(kept()) };
        }
        seteuid(Uid::from_raw(0)).map_err(failed)?;
        setresgid(self.gid, self.gid, self.gid)
            .and_then(|()| setresuid(self.uid, self.uid, self.uid))
            .map_err(failed)?;
        // It still holds the module's device: the caller's debugger and /proc/PID/fd stay out, whatever fs.suid_dumpable says.
        set_dumpable(false).map_err(failed)?;
        match seteuid(Uid::from_raw(0)).is_err() || self.uid.is_root() {
            true => Ok(()),
            false => Err(kept()),
        }
    }

    /// An approved module by its name, or by its path if that is the approved one; its path and its bytes, which are those
    /// that will be loaded whatever becomes of the file.
    pub fn read_approved(&self, module: &Path) -> Result<(PathBuf, Vec<u8>), Error> {
        let refused = || Error::NotApproved { path: module.to_path_buf() };
        let release = running_release();
        let name = module
            .file_name()
            .and_then(OsStr::to_str)
            .map(|name| name.strip_suffix(".ko").unwrap_or(name))
            .ok_or_else(refused)?;
        if !is_module_name(name) || release.is_empty() || release.contains('/') || release.starts_with('.') {
            return Err(refused());
        }
        let places =
            DIRECTORIES.map(|directory| PathBuf::from(format!("/lib/modules/{release}/{directory}/{name}.ko")));
        // A path means that very file, and a name the first that is there.
        let is_bare = module.components().count() == 1 && module.extension().is_none();
        let wanted = places.iter().filter(|place| is_bare || place.as_path() == module);
        self.as_root(|| {
            for place in wanted {
                match open_approved(place) {
                    Ok(Some(bytes)) => return Ok((place.clone(), bytes)),
                    Ok(None) => {}
                    Err(why) => return Err(Error::Unreadable { path: place.clone(), error: why }),
                }
            }
            Err(if is_bare {
                Error::NotFound { name: module.to_path_buf(), looked: places.to_vec() }
            } else {
                refused()
            })
        })
    }
}

impl Caller {
    /// What the module is told of a session that this caller begins: less than is left of what users' sessions may take.
    /// `lock` is held until the session's buffers are made, so that what is summed up here holds.
    pub fn stated(&self, lock: &load::Lock) -> Result<Stated, Error> {
        let rank = match self.rank {
            Rank::None | Rank::Usr => RANK_USR,
            Rank::Sys => RANK_SYS,
            Rank::Dev => return Ok(Stated { rank: RANK_DEV, ..Stated::default() }),
        };
        if !lock.is_held() {
            let what = "another spilerun has held the lock for ten seconds; look for one that is stopped".to_string();
            return Err(Error::System { doing: "waiting for other loaders", error: std::io::Error::other(what) });
        }
        let most_bytes = self.as_root(|| limits()?.room(self.uid(), &limits::taken()))?;
        Ok(Stated { rank, most_bytes, service: false })
    }

    /// Whether this caller's sessions may outlive the presence of their user.
    fn keeps(&self) -> bool {
        self.rank == Rank::Dev || self.as_root(limits).is_ok_and(|limits| limits.keeps(self.rank))
    }

    /// The keys that root trusts, of the certificates in [`places::KEYS`]. What cannot be used there is told.
    pub fn trusted_keys(&self) -> Result<Vec<Key>, Error> {
        let files = self.as_root(|| Ok(certificates(Path::new(places::KEYS))))?;
        let keys = files.into_iter().filter_map(|(path, read)| {
            let key = read
                .map_err(|error| error.to_string())
                .and_then(|der| Key::of_certificate(&der).map_err(str::to_string));
            key.map_err(|why| stderr::say(&format!("WARNING: {}: {why}", path.display()))).ok()
        });
        Ok(keys.collect())
    }
}

/// The files in a directory, each with what is in it, or why it is not root's alone.
fn certificates(directory: &Path) -> Vec<(PathBuf, std::io::Result<Vec<u8>>)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    // One that has gone meanwhile is none.
    paths.into_iter().filter_map(|path| Some((path.clone(), open_approved(&path).transpose()?))).collect()
}

/// What root has set, or what holds without. A file that others may have written, or that is wrong, is no limit that
/// anybody wants.
fn limits() -> Result<Limits, Error> {
    let wrong = |why: String| Error::Setting { given: places::LIMITS.to_string(), why };
    let bytes = open_approved(Path::new(places::LIMITS)).map_err(|error| wrong(error.to_string()))?.unwrap_or_default();
    let text = String::from_utf8(bytes).map_err(|error| wrong(error.to_string()))?;
    let memory = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| limits::memory(&text));
    Limits::parse(
        &text,
        memory.ok_or_else(|| wrong("/proc/meminfo does not tell how much memory there is".to_string()))?,
    )
    .map_err(wrong)
}

/// A file that is root's alone, as [`Caller::read_approved`] wants modules; `None`: it is not there.
pub(crate) fn read_of_root(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    open_approved(path)
}

fn take_on(sets: Sets) -> Result<(), Error> {
    sets.take_on().map_err(|error| Error::System { doing: "changing privileges", error })
}

/// In a process that was split off while root's rights were within reach: only the caller's stay.
pub fn forget() -> nix::Result<()> {
    let (uid, gid) = (getuid(), getgid());
    setresgid(gid, gid, gid).and_then(|()| setresuid(uid, uid, uid))
}

fn failed(errno: Errno) -> Error {
    Error::System { doing: "changing privileges", error: errno.into() }
}

fn group_of(rank: Rank) -> &'static str {
    GROUPS.iter().rev().find(|(_, known)| *known >= rank).map_or("spiledev", |(name, _)| name)
}

/// Opens it directory by directory, from the root on, following no link but root's own `/lib`; every step is looked at in
/// the descriptor that the next one starts from, so that nothing can be exchanged in between. None: it is not there.
fn open_approved(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    let not_approved = || {
        std::io::Error::new(std::io::ErrorKind::PermissionDenied, "it, or a directory above it, is not root's alone")
    };
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let mut at: OwnedFd = std::fs::File::open("/")?.into();
    let names: Vec<&OsStr> = path
        .components()
        .filter_map(|part| if let Component::Normal(name) = part { Some(name) } else { None })
        .collect();
    for (depth, name) in names.iter().enumerate() {
        // Only root can have made what stands in /.
        let follow = if depth == 0 { OFlag::empty() } else { OFlag::O_NOFOLLOW };
        at = match openat(at.as_fd(), *name, flags | follow, Mode::empty()) {
            Ok(next) => next,
            Err(Errno::ENOENT) => return Ok(None),
            Err(Errno::ELOOP) => return Err(not_approved()),
            Err(errno) => return Err(errno.into()),
        };
        let status = std::fs::File::from(at.try_clone()?).metadata()?;
        let is_last = depth + 1 == names.len();
        if status.uid() != 0
            || status.mode() & OTHERS_WRITE != 0
            || status.is_file() != is_last
            || status.is_dir() == is_last
        {
            return Err(not_approved());
        }
    }
    if is_being_written(&at) {
        return Err(std::io::Error::new(
            std::io::ErrorKind::PermissionDenied,
            "somebody has it open for writing, root's alone though it is: try again when it is whole",
        ));
    }
    let mut bytes = Vec::new();
    std::fs::File::from(at).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Whether a descriptor for writing to the file is open anywhere: one from before it became root's writes on. A lease for reading
/// (fcntl(2)) is given only if there is none. File systems without leases cannot tell.
fn is_being_written(file: &OwnedFd) -> bool {
    use std::os::fd::AsRawFd;
    // SAFETY: takes numbers. The lease is given back at once: nobody can wait for it, and only root can open it for writing now.
    match Errno::result(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) }) {
        Ok(_) => {
            // SAFETY: as above.
            let _ = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK) };
            false
        }
        Err(errno) => errno == Errno::EAGAIN,
    }
}

/// A process with root's rights that removes one module when it is told to, or when we are gone.
#[derive(Debug)]
pub struct Remover {
    line: OwnedFd,
}

const READY: u8 = b'y';
const LOADING: u8 = b'm';
const REMOVE: u8 = b'r';
const LEAVE: u8 = b'l';

impl Remover {
    /// Splits the process; no other thread may exist. `name` is what it will remove, and nothing else. It is out of the caller's
    /// reach when this returns.
    pub fn begin(caller: &Caller, name: &str) -> Result<Remover, Error> {
        let keeps = caller.keeps();
        let failed = |error| Error::System { doing: "splitting off the process that removes the module", error };
        let (line, other) = channel::pair().map_err(failed)?;
        // SAFETY: there is one thread.
        match unsafe { fork() }.map_err(|errno| failed(errno.into()))? {
            ForkResult::Parent { .. } => {
                std::mem::drop(other);
                // Until it is root's alone the caller can stop or kill it: then nothing is loaded.
                let mut word = [0u8];
                match read(&line, &mut word) {
                    Ok(1) if word == [READY] => Ok(Remover { line }),
                    _ => Err(failed(std::io::ErrorKind::UnexpectedEof.into())),
                }
            }
            ForkResult::Child => {
                std::mem::drop(line);
                // Out of reach of the caller's terminal.
                let _ = setsid();
                let done = caller.serve(&other, name, keeps);
                std::process::exit(i32::from(!done));
            }
        }
    }

    /// From now on there may be a module to remove. Until then an end of ours leaves nothing to do.
    pub fn loading(&self) -> Result<(), Error> {
        let lost =
            |errno: Errno| Error::System { doing: "telling the process that removes the module", error: errno.into() };
        write(&self.line, &[LOADING]).map(drop).map_err(lost)
    }

    /// The module is to go.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        let errno = Errno::ECHILD;
        let lost = || Error::Remove { name: name.to_string(), errno };
        write(&self.line, &[REMOVE]).map_err(|_| lost())?;
        let mut status = [0u8];
        match read(&self.line, &mut status) {
            Ok(1) if status == [0] => Ok(()),
            _ => Err(lost()),
        }
    }

    /// A session goes on in it.
    pub fn leave(&self) {
        // If it is gone, it does nothing either.
        let _ = write(&self.line, &[LEAVE]);
    }
}

impl Caller {
    fn serve(&self, line: &OwnedFd, name: &str, keeps: bool) -> bool {
        let (user, group) = (Uid::from_raw(0), Gid::from_raw(0));
        let raised = self.raise().is_ok()
            && match self.means {
                // From here on nobody but root can send it a signal.
                Means::SetUid => setresuid(user, user, user)
                    .and_then(|()| setgroups(&[]))
                    .and_then(|()| setresgid(group, group, group))
                    .is_ok(),
                // It stays the caller's process, who may end it: then the module is left for the next spilerun to remove.
                Means::Capabilities(_) => true,
            };
        if !raised || set_dumpable(false).is_err() {
            return false;
        }
        detached::from_caller(line);
        if write(line, &[READY]) != Ok(1) {
            return false;
        }
        let mut word = [0u8];
        // A start that was refused: the name may be another session's, which is none of ours.
        if read(line, &mut word) != Ok(1) || word != [LOADING] {
            return true;
        }
        let removed = match read(line, &mut word) {
            Ok(1) if word == [REMOVE] => load::remove(name).is_ok(),
            Ok(1) => return keeps || attend(name, self.uid()),
            // The loader is gone: what it has left idle goes too.
            _ => return load::remove_idle(name) || keeps || attend(name, self.uid()),
        };
        let _ = write(line, &[u8::from(!removed)]);
        removed
    }
}

/// Between two looks for processes of a user.
const LOOK: std::time::Duration = std::time::Duration::from_secs(5);
/// The user has gone when so many looks in a row have found no process.
const ABSENT: u32 = 2;
/// What a process calls itself that waits for its user to go.
const ATTENDANT: &std::ffi::CStr = c"spile-attend";

/// Ends the session that this user's loader has left, as soon as no process of the user's is there any more.
fn attend(name: &str, uid: u32) -> bool {
    let owner = || load::owner(name).filter(|owner| owner.uid == uid);
    let Some(loaded) = owner().map(|owner| owner.loaded) else { return true };
    // One for each session, however often its user attaches to it and leaves it.
    let path = Path::new(ATTENDED).join(format!("{name}-{loaded}"));
    let lock = lock_alone(&path);
    if matches!(lock, Err(Errno::EAGAIN)) {
        return true;
    }
    let ended = wait_for_absence(name, uid, loaded);
    // A file that nobody holds is in nobody's way.
    let _ = std::fs::remove_file(&path);
    ended
}

/// A directory of root's, with a file for each session that is attended to.
const ATTENDED: &str = "/run/spile";

fn lock_alone(path: &Path) -> Result<Flock<std::fs::File>, Errno> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    // What is wrong with it shows at the next step.
    let _ = std::fs::DirBuilder::new().mode(0o700).create(directory);
    let file = std::fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
    let file = file.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or_default()))?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| errno)
}

fn wait_for_absence(name: &str, uid: u32, loaded: u64) -> bool {
    // What ends a login ends its processes; this one is there for the time after it.
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT] {
        // SAFETY: sets what is no handler of ours.
        let _ = unsafe { nix::sys::signal::signal(signal, SigHandler::SigIgn) };
    }
    let _ = nix::sys::prctl::set_name(ATTENDANT);
    // It may be a login's, and keep its directory from being unmounted.
    let _ = std::env::set_current_dir("/");
    let mut absent = 0;
    loop {
        std::thread::sleep(LOOK);
        if !Path::new("/sys/module").join(name).exists() {
            return true;
        }
        absent = if is_present(uid) { 0 } else { absent + 1 };
        if absent >= ABSENT && load::end_unattended(name, loaded) {
            return true;
        }
    }
}

/// Whether a process runs as this user. Those that have ended and wait for their parent do not, nor do attendants.
fn is_present(uid: u32) -> bool {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbered = processes
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit())));
    // One that has ended meanwhile is none.
    numbered
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("status")).ok())
        .any(|status| is_of(&status, uid))
}

/// By `/proc/PID/status`: whether its real or effective user is that one.
fn is_of(status: &str, uid: u32) -> bool {
    let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default().trim();
    let runs = !value("State:").starts_with(['Z', 'X']) && value("Name:").as_bytes() != ATTENDANT.to_bytes();
    runs && value("Uid:").split_whitespace().take(2).any(|number| number.parse() == Ok(uid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_have_their_groups() {
        assert_eq!([Rank::Usr, Rank::Sys, Rank::Dev].map(group_of), ["spileusr", "spilesys", "spiledev"]);
        let caller = Caller { uid: getuid(), gid: getgid(), rank: Rank::Usr, means: Means::SetUid };
        assert!(caller.require(Rank::Usr, "x").is_ok() && caller.require(Rank::Sys, "x").is_err());
    }

    #[test]
    fn one_attendant_for_each_session() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("attended/ticks-1");
        let held = lock_alone(&path).unwrap();
        assert_eq!(lock_alone(&path).err(), Some(Errno::EAGAIN));
        assert!(lock_alone(&path.with_file_name("ticks-2")).is_ok());
        drop(held);
        assert!(lock_alone(&path).is_ok());
    }

    #[test]
    fn users_are_present_by_what_runs() {
        let status = |name: &str, state: &str| format!("Name:\t{name}\nState:\t{state}\nUid:\t5\t6\t7\t7\n");
        let running = status("sh", "S (sleeping)");
        assert!(is_of(&running, 5) && is_of(&running, 6) && !is_of(&running, 7));
        assert!(!is_of(&status("sh", "Z (zombie)"), 5) && !is_of(&status("spile-attend", "S (sleeping)"), 5));
        assert!(is_present(getuid().as_raw()) && !is_present(4_000_000_000));
    }

    #[test]
    fn only_what_is_root_s_alone_is_opened() {
        assert!(open_approved(Path::new("/etc/passwd")).unwrap().is_some());
        assert!(open_approved(Path::new("/etc/no-such-file")).unwrap().is_none());
        // Others may write in /tmp.
        let file = tempfile::NamedTempFile::new_in("/tmp").unwrap();
        assert!(open_approved(file.path()).is_err());
        assert!(open_approved(Path::new("/etc")).is_err());
        assert!(open_approved(Path::new("/proc/self/exe")).is_err());
    }

    #[test]
    fn a_descriptor_from_before_is_found() {
        let mut writer = tempfile::NamedTempFile::new().unwrap();
        let reader: OwnedFd = std::fs::File::open(writer.path()).unwrap().into();
        assert!(is_being_written(&reader));
        std::io::Write::write_all(&mut writer, b"x").unwrap();
        let path = writer.into_temp_path();
        assert!(!is_being_written(&reader));
        std::mem::drop(path);
    }

    #[test]
    fn certificates_that_anybody_may_have_put_there_are_none() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a.der"), "x").unwrap();
        let found = certificates(directory.path());
        assert!(found.len() == 1 && found[0].1.is_err());
        assert!(certificates(Path::new("/etc/no-such-directory")).is_empty());
    }
}
