//! Privileges when spilerun is installed set-uid root: who may do what, and with what rights each part runs.
//!
//! Everything that names a file or runs a program is done with the caller's own rights from the first line on; root's come
//! back for single calls ([`Caller::as_root`]): to read an approved module, to load it, to open its device. Then they go for
//! good ([`Caller::drop`]). What is left to do with them, the removal of the module, a small process does that was split off
//! before and knows one name ([`Remover`]). No environment variable is looked at with root's rights.
//!
//! | group | may |
//! |---|---|
//! | spiledev | everything that root may |
//! | spilesys | run approved modules, and signed ones from elsewhere; look at, attach to, switch and end any session |
//! | spileusr | run approved modules; look at any session |
//!
//! A module is approved when it lies in /lib/modules/RELEASE/spile or .../systemtap, and that file and all directories above
//! are root's and nobody else may write there.

use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use nix::unistd::{
    ForkResult, Gid, Uid, dup2_stderr, dup2_stdin, dup2_stdout, fork, getegid, geteuid, getgid, getgroups, getuid, pipe2, read, setegid, seteuid, setresgid, setresuid,
    setsid, write,
};

use crate::accounts;
use crate::certificate::Key;
use crate::error::Error;
use crate::file::{is_module_name, running_release};
use crate::load;
use crate::report;
use crate::trust;

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
}

/// Groups with their ranks, highest first.
const GROUPS: [(&str, Rank); 3] = [("spiledev", Rank::Dev), ("spilesys", Rank::Sys), ("spileusr", Rank::Usr)];
const DIRECTORIES: [&str; 2] = ["spile", "systemtap"];
/// Bits of a mode that let others than the owner write.
const OTHERS_WRITE: u32 = 0o022;

impl Caller {
    /// To be called first of all. The rights of set-uid rest when it returns.
    pub fn find() -> Result<Option<Caller>, Error> {
        if getuid() == geteuid() && getgid() == getegid() {
            return Ok(None);
        }
        let mut groups = getgroups().unwrap_or_default();
        groups.push(getgid());
        let rank = GROUPS.iter().find(|(name, _)| accounts::group_id(name).is_some_and(|id| groups.contains(&Gid::from_raw(id))));
        let caller = Caller { uid: getuid(), gid: getgid(), rank: rank.map_or(Rank::None, |(_, rank)| *rank) };
        caller.rest()?;
        Ok(Some(caller))
    }

    /// The caller's own rights, root's within reach.
    fn rest(&self) -> Result<(), Error> {
        // The group first: without root's rights it cannot be changed.
        setegid(self.gid).and_then(|()| seteuid(self.uid)).map_err(failed)
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
        seteuid(Uid::from_raw(0)).map_err(failed)?;
        let result = run();
        self.rest()?;
        result
    }

    /// For good: neither this process nor what it starts can get them back.
    pub fn drop(&self) -> Result<(), Error> {
        seteuid(Uid::from_raw(0)).map_err(failed)?;
        setresgid(self.gid, self.gid, self.gid).and_then(|()| setresuid(self.uid, self.uid, self.uid)).map_err(failed)?;
        match seteuid(Uid::from_raw(0)).is_err() || self.uid.is_root() {
            true => Ok(()),
            false => Err(Error::System { doing: "giving up privileges", error: std::io::ErrorKind::PermissionDenied.into() }),
        }
    }

    /// An approved module by its name, or by its path if that is the approved one; its path and its bytes, which are those
    /// that will be loaded whatever becomes of the file.
    pub fn read_approved(&self, module: &Path) -> Result<(PathBuf, Vec<u8>), Error> {
        let refused = || Error::NotApproved { path: module.to_path_buf() };
        let release = running_release();
        let name = module.file_name().and_then(OsStr::to_str).map(|name| name.strip_suffix(".ko").unwrap_or(name)).ok_or_else(refused)?;
        if !is_module_name(name) || release.is_empty() || release.contains('/') || release.starts_with('.') {
            return Err(refused());
        }
        let places = DIRECTORIES.map(|directory| PathBuf::from(format!("/lib/modules/{release}/{directory}/{name}.ko")));
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
            Err(if is_bare { Error::NotFound { name: module.to_path_buf(), looked: places.to_vec() } } else { refused() })
        })
    }
}

impl Caller {
    /// The keys that root trusts, of the certificates in [`trust::PLACE`]. What cannot be used there is told.
    pub fn trusted_keys(&self) -> Result<Vec<Key>, Error> {
        let files = self.as_root(|| Ok(certificates(Path::new(trust::PLACE))))?;
        let keys = files.into_iter().filter_map(|(path, read)| {
            let key = read.map_err(|error| error.to_string()).and_then(|der| Key::of_certificate(&der).map_err(str::to_string));
            key.map_err(|why| report::say(&format!("WARNING: {}: {why}", path.display()))).ok()
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

fn failed(errno: nix::errno::Errno) -> Error {
    Error::System { doing: "changing privileges", error: errno.into() }
}

fn group_of(rank: Rank) -> &'static str {
    GROUPS.iter().rev().find(|(_, known)| *known >= rank).map_or("spiledev", |(name, _)| name)
}

/// Opens it directory by directory, from the root on, following no link but root's own `/lib`; every step is looked at in
/// the descriptor that the next one starts from, so that nothing can be exchanged in between. None: it is not there.
fn open_approved(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    let not_approved = || std::io::Error::new(std::io::ErrorKind::PermissionDenied, "it, or a directory above it, is not root's alone");
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let mut at: OwnedFd = std::fs::File::open("/")?.into();
    let names: Vec<&OsStr> = path.components().filter_map(|part| if let Component::Normal(name) = part { Some(name) } else { None }).collect();
    for (depth, name) in names.iter().enumerate() {
        // Only root can have made what stands in /.
        let follow = if depth == 0 { OFlag::empty() } else { OFlag::O_NOFOLLOW };
        at = match openat(at.as_fd(), *name, flags | follow, Mode::empty()) {
            Ok(next) => next,
            Err(nix::errno::Errno::ENOENT) => return Ok(None),
            Err(nix::errno::Errno::ELOOP) => return Err(not_approved()),
            Err(errno) => return Err(errno.into()),
        };
        let status = std::fs::File::from(at.try_clone()?).metadata()?;
        let is_last = depth + 1 == names.len();
        if status.uid() != 0 || status.mode() & OTHERS_WRITE != 0 || status.is_file() != is_last || status.is_dir() == is_last {
            return Err(not_approved());
        }
    }
    let mut bytes = Vec::new();
    std::fs::File::from(at).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// A process with root's rights that removes one module when it is told to, or when we are gone.
#[derive(Debug)]
pub struct Remover {
    ask: OwnedFd,
    answer: OwnedFd,
}

const REMOVE: u8 = b'r';
const LEAVE: u8 = b'l';

impl Remover {
    /// Splits the process; no other thread may exist. `name` is what it will remove, and nothing else.
    pub fn begin(caller: &Caller, name: &str) -> Result<Remover, Error> {
        let (asked, ask) = pipe2(OFlag::O_CLOEXEC).map_err(failed)?;
        let (answer, answering) = pipe2(OFlag::O_CLOEXEC).map_err(failed)?;
        // SAFETY: there is one thread.
        match unsafe { fork() }.map_err(failed)? {
            ForkResult::Parent { .. } => Ok(Remover { ask, answer }),
            ForkResult::Child => {
                std::mem::drop((ask, answer));
                // Out of reach of the caller's terminal; without a user of its own nobody else can signal it.
                let _ = setsid();
                leave_streams();
                let done = caller.serve(&asked, &answering, name);
                std::process::exit(i32::from(!done));
            }
        }
    }

    /// The module is to go.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        let errno = nix::errno::Errno::ECHILD;
        let lost = || Error::Remove { name: name.to_string(), errno };
        write(&self.ask, &[REMOVE]).map_err(|_| lost())?;
        let mut status = [0u8];
        match read(&self.answer, &mut status) {
            Ok(1) if status == [0] => Ok(()),
            _ => Err(lost()),
        }
    }

    /// A session goes on in it.
    pub fn leave(&self) {
        // If it is gone, it does nothing either.
        let _ = write(&self.ask, &[LEAVE]);
    }
}

/// Whoever reads the caller's output does not wait for this process.
fn leave_streams() {
    if let Ok(null) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null") {
        // What fails leaves a stream open, and nothing is written to it.
        let _ = (dup2_stdin(&null), dup2_stdout(&null), dup2_stderr(&null));
    }
}

impl Caller {
    fn serve(&self, asked: &OwnedFd, answering: &OwnedFd, name: &str) -> bool {
        if setresuid(Uid::from_raw(0), Uid::from_raw(0), Uid::from_raw(0)).is_err() {
            return false;
        }
        let mut word = [0u8];
        let removed = match read(asked, &mut word) {
            Ok(1) if word == [REMOVE] => load::remove(name).is_ok(),
            Ok(1) => return true,
            // The loader is gone: what it has left idle goes too.
            _ => return load::remove_idle(name),
        };
        let _ = write(answering, &[u8::from(!removed)]);
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_have_their_groups() {
        assert_eq!([Rank::Usr, Rank::Sys, Rank::Dev].map(group_of), ["spileusr", "spilesys", "spiledev"]);
        let caller = Caller { uid: getuid(), gid: getgid(), rank: Rank::Usr };
        assert!(caller.require(Rank::Usr, "x").is_ok() && caller.require(Rank::Sys, "x").is_err());
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
    fn certificates_that_anybody_may_have_put_there_are_none() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a.der"), "x").unwrap();
        let found = certificates(directory.path());
        assert!(found.len() == 1 && found[0].1.is_err());
        assert!(certificates(Path::new("/etc/no-such-directory")).is_empty());
    }
}
