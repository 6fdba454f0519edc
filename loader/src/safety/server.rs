// SPDX-License-Identifier: GPL-2.0-or-later

//! The root part: what is done with root's rights, and nothing else. Of a set-uid spilerun it is a process of its own, which takes
//! messages from the user part ([`crate::safety::rights`]); for root it is called in the same process.
//!
//! As a process it has root's ids only and nothing of the caller's ([`detached`]), may make few system calls ([`filter`]), and
//! trusts nothing that comes in a message: it finds the caller's rank itself, reads approved modules itself, takes other
//! modules only in sealed memory files, and checks on the bytes that it loads who has signed them. It does not read
//! `.spile.meta`, but of modules from elsewhere once somebody is known to have signed them. When the user part is gone
//! its module is removed, or its session attended to; when the root part is gone a [`Guard`] does that.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{getppid, setsid};
use spile_abi::device::{COUNTERS, GATE, GATE_STATE, INFO, OWNER};
use spile_abi::{escape, seal};

use crate::error::{Error, Exit};
use crate::host::kernel::is_module_name;
use crate::host::process;
use crate::module::device::Device;
use crate::module::file::{self, Description};
use crate::module::load::{self, Lock};
use crate::safety::guard::{self, Guard};
use crate::safety::image::{self, Image};
use crate::safety::loaded::{Stated, refusal};
use crate::safety::message::{MAX_DATA, Message};
use crate::safety::privilege::{Caller, Rank, trusted_keys};
use crate::safety::{approved, check, detached, filter};

/// What the user part can ask for: kinds of its messages. Names and paths are the data.
pub mod ask {
    /// The approved module of this name or path. The answer has a memory file of it.
    pub const FIND: u32 = 1;
    /// The memory file that comes along is the module to load; the path is for errors.
    pub const OFFER: u32 = 2;
    /// Loads what was found or offered: flags, and a number for a new name. The answer has its device, and what its session may
    /// take, in bytes.
    pub const LOAD: u32 = 3;
    /// The session's buffers are made: other loaders may begin.
    pub const UNLOCK: u32 = 4;
    /// The module is to go.
    pub const UNLOAD: u32 = 5;
    /// The session goes on.
    pub const LEAVE: u32 = 6;
    /// The answer has the device of the session of this name.
    pub const ATTACH: u32 = 7;
    /// Opens the module of this name to be looked at.
    pub const LOOK: u32 = 8;
    /// A call of what is looked at, its number first; its argument comes and goes as data.
    pub const CALL: u32 = 9;
    /// More of the description of what is looked at; the answer is empty at its end.
    pub const READ: u32 = 10;
    /// Ends the session of this name.
    pub const REMOVE: u32 = 11;
    /// The descriptor that comes along is of the process that is the user part from now on.
    pub const FOLLOW: u32 = 12;

    /// Flag of LOAD: errors of leftovers are told.
    pub const VERBOSE: u64 = 1;
    /// Flag of LOAD: the module gets a new name.
    pub const RENAME: u64 = 2;
}

/// Kinds of answers.
pub mod answer {
    /// The root part is ready.
    pub const READY: u32 = 1;
    /// It is done. Data are lines for the user.
    pub const DONE: u32 = 2;
    /// The exit status, whether a module is not approved, and behind the lines and a NUL the text.
    pub const ERROR: u32 = 3;
    /// The error number of a call, or 0; data is its argument.
    pub const CALLED: u32 = 4;
}

/// Whether a caller may load a module of this name (the layer of services knows).
pub type MayStart = fn(&Caller, &str) -> Result<(), Error>;

/// What is to be loaded.
#[derive(Debug)]
pub struct Wanted {
    /// Its bytes.
    pub image: Image,
    /// For messages.
    pub path: PathBuf,
    /// It is not an approved one.
    pub is_from_elsewhere: bool,
    /// It gets the name NAME_NUMBER.
    pub rename: Option<u32>,
    /// A service begins it.
    pub service: bool,
    /// Errors of leftovers are told.
    pub verbose: bool,
}

/// What has root's rights: this process, or another one.
#[derive(Debug)]
pub struct Server {
    /// None: root itself.
    caller: Option<Caller>,
    may_start: MayStart,
    guard: Option<Guard>,
    /// The process whose end is the end of the user part.
    user_part: Option<OwnedFd>,
    lock: Option<Lock>,
    /// When a user part that still makes its buffers loses the lock.
    lock_due: Option<Instant>,
    found: Option<(PathBuf, Image, bool)>,
    /// The module that is to go with the user part.
    name: Option<String>,
    looked: Option<Device>,
    /// Lines for the user.
    notices: Vec<String>,
}

/// How long a user part may take to make its buffers while other loaders wait.
const LONGEST_LOCK: Duration = Duration::from_secs(10);

impl Server {
    /// For a process with root's rights; `caller`: on whose behalf.
    pub fn new(caller: Option<Caller>, may_start: MayStart) -> Server {
        Server {
            caller,
            may_start,
            guard: None,
            user_part: None,
            lock: None,
            lock_due: None,
            found: None,
            name: None,
            looked: None,
            notices: Vec::new(),
        }
    }

    /// Lines for the user that have come up since the last call.
    pub fn notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    fn require(&self, rank: Rank, what: &'static str) -> Result<(), Error> {
        self.caller.map_or(Ok(()), |caller| caller.require(rank, what))
    }

    /// Loads a module that may be loaded. Other loaders wait until [`Server::unlock`].
    pub fn load(&mut self, wanted: Wanted) -> Result<(Device, Stated), Error> {
        let Wanted { mut image, path, is_from_elsewhere, rename, service, verbose } = wanted;
        self.require(Rank::Usr, "running a module")?;
        check::may_load_modules()?;
        let bad_name = || Error::BadName { path: path.clone(), name: String::new() };
        let mut name = file::kernel_name(&image).ok_or_else(bad_name)?;
        self.may_start(&name)?;
        if let Some(number) = rename {
            if image.ends_with(seal::SIGNATURE_MARK) {
                return Err(Error::RenameSigned { path });
            }
            let mut bytes = image.to_vec();
            name = file::rename(&mut bytes, number).ok_or_else(bad_name)?;
            image = Image::of_own(&bytes).map_err(image::failed)?;
            self.may_start(&name)?;
        }
        // Held until the session's buffers are made: a module that another spilerun has just loaded is not a leftover.
        let lock = Lock::take();
        self.notices.extend(load::remove_leftovers(&lock, verbose));
        load::name_is_free(&name)?;
        let stated = match self.caller {
            Some(caller) => caller.stated(&lock)?,
            None => Stated { service, ..Stated::default() },
        };
        self.lock = Some(lock);
        self.guard.as_ref().map_or(Ok(()), |guard| guard.loading(&name))?;
        let signed = image.ends_with(seal::SIGNATURE_MARK);
        if let Err(errno) = load::insert(image.file(), &image, &stated.parameters()) {
            self.forget();
            return Err(stated.limited(refusal(&path, signed, name, errno)));
        }
        self.name = Some(name.clone());
        match self.open(&name, &path, is_from_elsewhere) {
            Ok(device) => Ok((device, stated)),
            Err(error) => {
                // The error is why; what is left is removed by the next loader.
                let _ = self.unload(&name);
                Err(error)
            }
        }
    }

    fn may_start(&self, name: &str) -> Result<(), Error> {
        self.caller.map_or(Ok(()), |caller| (self.may_start)(&caller, name))
    }

    /// The device of what was just loaded, if it is the caller's and may run.
    fn open(&self, name: &str, path: &Path, is_from_elsewhere: bool) -> Result<Device, Error> {
        let device = Device::open(name)?;
        let Some(caller) = self.caller else { return Ok(device) };
        if device.owner()?.uid != caller.uid() {
            let what = "it does not say whose it is".to_string();
            return Err(Error::Strange { name: name.to_string(), what });
        }
        // Whoever root trusts, or the kernel, has signed what this reads.
        if is_from_elsewhere && caller.rank < Rank::Dev && Description::decode(path, &device.meta()?)?.meta.guru {
            return Err(Error::GuruElsewhere { path: path.to_path_buf() });
        }
        Ok(device)
    }

    /// The session's buffers are made.
    pub fn unlock(&mut self) {
        self.lock = None;
        self.lock_due = None;
    }

    fn forget(&mut self) {
        self.name = None;
        self.unlock();
        if let Some(guard) = &self.guard {
            guard.done();
        }
    }

    /// Removes the module of a session that is over.
    pub fn unload(&mut self, name: &str) -> Result<(), Error> {
        // The module has gone, and another user's session has its name.
        let is_of_another = |caller: Caller| load::owner(name).is_some_and(|owner| owner.uid != caller.uid());
        if self.caller.is_some_and(is_of_another) {
            self.forget();
            return Ok(());
        }
        let removed = load::remove(name);
        if removed.is_ok() {
            self.forget();
        }
        removed
    }

    /// The device of a session that nobody reads and that the caller may go on with.
    pub fn attach(&mut self, name: &str) -> Result<Device, Error> {
        self.require(Rank::Usr, "attaching to sessions")?;
        check::may_load_modules()?;
        // Before anything is opened for it.
        self.require_own(name)?;
        let device = load::attach(name)?;
        if self.caller.is_some_and(|caller| device.owner().is_ok_and(|owner| owner.uid != caller.uid())) {
            return Err(Error::NotLoaded { name: name.to_string() });
        }
        self.guard.as_ref().map_or(Ok(()), |guard| guard.loading(name))?;
        self.name = Some(name.to_string());
        Ok(device)
    }

    /// Refuses what only root and the owner of that session may.
    fn require_own(&self, name: &str) -> Result<(), Error> {
        let Some(caller) = self.caller else { return Ok(()) };
        let owner = load::look(name)?.owner()?;
        match owner.uid == caller.uid() {
            true => Ok(()),
            false => Err(Error::OtherOwner { name: name.to_string(), uid: owner.uid }),
        }
    }

    /// `-d`: ends a session, or with `*` removes all leftovers.
    pub fn remove(&mut self, name: &str) -> Result<(), Error> {
        let least = if name == "*" { Rank::Sys } else { Rank::Usr };
        self.require(least, "ending sessions")?;
        let own = self.caller.filter(|caller| caller.rank < Rank::Sys).map(|caller| caller.uid());
        if own.is_some() {
            self.require_own(name)?;
        }
        check::may_load_modules()?;
        self.notices.extend(load::remove_leftover(name, own)?);
        Ok(())
    }

    /// Looks at any session.
    pub fn look(&mut self, name: &str) -> Result<Device, Error> {
        self.require(Rank::Usr, "looking at sessions")?;
        load::look(name)
    }
}

/// An answer, and the descriptor that goes with it.
pub type Answer = (Message, Option<OwnedFd>);

impl Server {
    /// Makes this process the root part, and serves the user part until it is gone. False: something is left behind.
    pub fn run(mut self, line: OwnedFd) -> bool {
        let Some(caller) = self.caller else { return false };
        let _ = nix::sys::prctl::set_name(c"spile-root");
        // Out of reach of the caller's signals, and of his terminal.
        if Caller::become_root().is_err() {
            return false;
        }
        let _ = setsid();
        detached::from_caller(&line);
        let keeps = caller.keeps();
        let Some(user_part) = parent() else { return true };
        let Ok(guard) = Guard::begin(caller.uid(), keeps, &user_part) else { return false };
        self.guard = Some(guard);
        self.user_part = Some(user_part);
        if filter::apply(None).is_err() {
            return false;
        }
        let ready = Message { kind: answer::READY, ..Message::default() };
        if ready.send(line.as_fd(), None).is_err() {
            return true;
        }
        let left = self.serve(line.as_fd());
        drop(line);
        self.unlock();
        self.looked = None;
        match self.name.take() {
            None => true,
            // A session that goes on, by its user's will.
            Some(name) if left => {
                self.forget();
                keeps || guard::attend(&name, caller.uid())
            }
            // The user part is gone: what it has left idle goes too.
            Some(name) => {
                let done = load::remove_idle(&name);
                self.forget();
                done || keeps || guard::attend(&name, caller.uid())
            }
        }
    }

    /// The next message; `None`: the user part is gone, or what came is no message of ours. Other processes may still hold its end
    /// of the line: `-D` leaves one behind, which its user can stop.
    ///
    /// Other loaders wait for the lock: a user part that is stopped while it makes its buffers loses it after some time. Its
    /// device is open, so its module is no leftover to them.
    fn next(&mut self, line: BorrowedFd<'_>) -> Option<(Message, Option<OwnedFd>)> {
        loop {
            if self.lock_due.is_some_and(|due| due <= Instant::now()) {
                self.unlock();
            }
            let left = self.lock_due.map(|due| due.saturating_duration_since(Instant::now()));
            let timeout = left.map_or(PollTimeout::NONE, |left| left.try_into().unwrap_or(PollTimeout::ZERO));
            let mut descriptors = vec![PollFd::new(line, PollFlags::POLLIN)];
            descriptors.extend(self.user_part.iter().map(|process| PollFd::new(process.as_fd(), PollFlags::POLLIN)));
            match poll(&mut descriptors, timeout) {
                Ok(0) | Err(Errno::EINTR) => {}
                // What it has sent before its end is read first.
                Ok(_) if descriptors.first().is_some_and(|line| line.any() == Some(true)) => {
                    return Message::receive(line).ok().flatten();
                }
                Ok(_) | Err(_) => return None,
            }
        }
    }

    /// Answers until nobody asks any more; true: a session goes on.
    fn serve(&mut self, line: BorrowedFd<'_>) -> bool {
        while let Some((message, descriptor)) = self.next(line) {
            if message.kind == ask::LEAVE {
                return true;
            }
            let (reply, descriptor) = self.answer(message, descriptor);
            if reply.send(line, descriptor.as_ref().map(AsFd::as_fd)).is_err() {
                return false;
            }
            if self.lock.is_some() {
                self.lock_due.get_or_insert_with(|| Instant::now() + LONGEST_LOCK);
            }
        }
        false
    }

    /// The answer to a message of the user part, errors included: with lines for the user.
    pub fn answer(&mut self, message: Message, descriptor: Option<OwnedFd>) -> Answer {
        let (mut reply, descriptor) = self.perform(message, descriptor).unwrap_or_else(|error| (refuse(&error), None));
        if reply.kind != answer::CALLED {
            let room = MAX_DATA.saturating_sub(reply.data.len() + 1);
            let mut lines = self.notices().join("\n").into_bytes();
            lines.truncate(room);
            lines.push(0);
            lines.append(&mut reply.data);
            reply.data = lines;
        }
        (reply, descriptor)
    }

    fn perform(&mut self, message: Message, descriptor: Option<OwnedFd>) -> Result<Answer, Error> {
        let done = |number| (Message { kind: answer::DONE, numbers: [number, 0], ..Message::default() }, None);
        let Message { kind, numbers, data } = message;
        if matches!(kind, ask::CALL | ask::READ) {
            return Ok((self.call(kind, numbers[0], data), None));
        }
        let text = || String::from_utf8_lossy(&data).into_owned();
        match kind {
            ask::FIND => {
                self.require(Rank::Usr, "running a module")?;
                let (path, bytes) = approved::read_module(Path::new(&text()))?;
                let image = Image::of(&bytes).map_err(image::failed)?;
                let copy = image.file().and_then(|file| file.try_clone_to_owned().ok());
                let copy = copy.ok_or_else(|| strange(Errno::EMFILE))?;
                let data = path.to_string_lossy().into_owned().into_bytes();
                self.found = Some((path, image, false));
                Ok((Message { kind: answer::DONE, data, ..Message::default() }, Some(copy)))
            }
            ask::OFFER => {
                let path = PathBuf::from(text());
                let descriptor = descriptor.ok_or_else(|| strange(Errno::EBADF))?;
                self.found = Some(self.take(path, descriptor)?);
                Ok(done(0))
            }
            ask::LOAD => {
                let (path, image, is_from_elsewhere) = self.found.take().ok_or_else(|| strange(Errno::ENOENT))?;
                if self.name.is_some() {
                    return Err(strange(Errno::EBUSY));
                }
                let rename = (numbers[0] & ask::RENAME != 0).then_some(numbers[1] as u32);
                let verbose = numbers[0] & ask::VERBOSE != 0;
                let wanted = Wanted { image, path, is_from_elsewhere, rename, service: false, verbose };
                let (device, stated) = self.load(wanted)?;
                Ok((done(stated.most_bytes).0, device.into_descriptor()))
            }
            ask::UNLOCK => {
                self.unlock();
                Ok(done(0))
            }
            ask::UNLOAD => {
                let name = self.name.clone().ok_or_else(|| strange(Errno::ENOENT))?;
                self.unload(&name)?;
                Ok(done(0))
            }
            ask::ATTACH if self.name.is_none() && is_module_name(&text()) => {
                Ok((done(0).0, self.attach(&text())?.into_descriptor()))
            }
            ask::LOOK => {
                self.looked = Some(self.look(&text())?);
                Ok(done(0))
            }
            ask::REMOVE => {
                // Not to wait for itself.
                self.unlock();
                self.remove(&text())?;
                Ok(done(0))
            }
            ask::FOLLOW => {
                self.follow(descriptor.ok_or_else(|| strange(Errno::EBADF))?)?;
                Ok(done(0))
            }
            _ => Err(strange(Errno::EINVAL)),
        }
    }

    /// Another process is the user part: the one that `-D` leaves in the background. The guard may kill it, so it has to be one that
    /// the caller could kill.
    fn follow(&mut self, process: OwnedFd) -> Result<(), Error> {
        let is_caller_s = self.caller.is_some_and(|caller| process::is_for_good(&process, caller.uid()));
        if !is_caller_s || self.name.is_some() {
            return Err(strange(Errno::EPERM));
        }
        self.guard.as_ref().map_or(Ok(()), |guard| guard.follow(&process))?;
        self.user_part = Some(process);
        Ok(())
    }

    /// A module from elsewhere: anything of spiledev's; of spilesys' what somebody has signed whom the kernel trusts, or root.
    fn take(&mut self, path: PathBuf, descriptor: OwnedFd) -> Result<(PathBuf, Image, bool), Error> {
        let Some(caller) = self.caller else { return Err(strange(Errno::EPERM)) };
        if caller.rank < Rank::Sys {
            return Err(Error::NotApproved { path });
        }
        let image = Image::sealed(descriptor).map_err(|error| Error::Unreadable { path: path.clone(), error })?;
        if caller.rank < Rank::Dev {
            let notices = &mut self.notices;
            check::is_vouched_for(&path, &image, check::enforcement(), || trusted_keys(notices))?;
        }
        Ok((path, image, true))
    }

    /// Calls of a session of anybody's: questions, and of spilesys what becomes of its writes.
    fn call(&self, kind: u32, number: u64, mut data: Vec<u8>) -> Message {
        let may = match (kind, number) {
            (ask::READ, _) | (_, INFO | OWNER | GATE_STATE | COUNTERS) => true,
            (_, GATE) => self.require(Rank::Sys, "changing other sessions").is_ok(),
            _ => false,
        };
        let result = match &self.looked {
            Some(device) if may && kind == ask::READ => {
                data = vec![0; MAX_DATA];
                device.read(&mut data).map(|count| data.truncate(count))
            }
            Some(device) if may => device.raw_call(number, &mut data),
            Some(_) => Err(Errno::EPERM),
            None => Err(Errno::EBADF),
        };
        let errno = result.map_or_else(|errno| errno as i32, |()| 0);
        Message { kind: answer::CALLED, numbers: [errno.cast_unsigned().into(), 0], data }
    }
}

/// The process that has split this one off; `None`: it is gone.
fn parent() -> Option<OwnedFd> {
    let number = getppid();
    let process = process::open(number.as_raw().cast_unsigned()).ok()?;
    // Had it gone before, another process could have its number.
    (getppid() == number).then_some(process)
}

/// Something that no user part of ours asks for.
fn strange(errno: Errno) -> Error {
    Error::System { doing: "answering the user part", error: errno.into() }
}

fn refuse(error: &Error) -> Message {
    let not_approved = matches!(error, Error::NotApproved { .. });
    let mut data = error.to_string().into_bytes();
    data.truncate(MAX_DATA / 2);
    Message { kind: answer::ERROR, numbers: [error.exit() as u64, not_approved.into()], data }
}

/// What an answer is about: its lines for the user, escaped, and the rest.
pub fn split_lines(data: &[u8]) -> (Vec<String>, &[u8]) {
    let (lines, rest) = match data.iter().position(|byte| *byte == 0) {
        Some(place) => data.split_at(place),
        None => (data, &[][..]),
    };
    let lines = String::from_utf8_lossy(lines);
    let lines = lines.lines().map(|line| escape::line(line).into_owned()).collect();
    (lines, rest.get(1..).unwrap_or_default())
}

/// The error that an answer stands for; `path`: of a module that is not approved.
pub fn error_of(message: &Message, path: &Path) -> Error {
    let (_, text) = split_lines(&message.data);
    let exit = i32::try_from(message.numbers[0]).ok().and_then(Exit::from_status).unwrap_or(Exit::Kernel);
    match message.numbers[1] {
        1 => Error::NotApproved { path: path.to_path_buf() },
        _ => Error::Refused { exit, text: String::from_utf8_lossy(text).into_owned() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::capability::Sets;

    fn server(rank: Rank) -> Server {
        Server::new(Some(Caller::new(12345, 12345, rank)), |_, _| Ok(()))
    }

    /// The kind of the answer and its text.
    fn answered(server: &mut Server, kind: u32, number: u64, data: &[u8]) -> (u32, String) {
        let asked = Message { kind, numbers: [number, 0], data: data.to_vec() };
        let (reply, descriptor) = server.answer(asked, None);
        assert!(descriptor.is_none() && reply.data.len() <= MAX_DATA);
        (reply.kind, String::from_utf8_lossy(split_lines(&reply.data).1).into_owned())
    }

    #[test]
    fn what_is_beyond_the_rank_is_refused() {
        for rank in [Rank::None, Rank::Usr] {
            let mut server = server(rank);
            let (kind, text) = answered(&mut server, ask::REMOVE, 0, b"*");
            assert!(kind == answer::ERROR && text.contains("ending sessions"), "{text}");
            assert_eq!(answered(&mut server, ask::OFFER, 0, b"x").0, answer::ERROR);
            assert_eq!(answered(&mut server, ask::FOLLOW, 0, b"").0, answer::ERROR);
        }
        let (kind, text) = answered(&mut server(Rank::None), ask::FIND, 0, b"x");
        assert!(kind == answer::ERROR && text.contains("running a module"), "{text}");
        // Nothing is looked at, loaded or found yet.
        for kind in [ask::LOAD, ask::UNLOAD, 0, 13, u32::MAX] {
            assert_eq!(answered(&mut server(Rank::Dev), kind, 0, b"").0, answer::ERROR);
        }
        for number in [INFO, OWNER, GATE, u64::MAX] {
            let asked = Message { kind: ask::CALL, numbers: [number, 0], ..Message::default() };
            assert_ne!(server(Rank::Dev).answer(asked, None).0.numbers[0], 0);
        }
    }

    /// `cargo xtask fuzz line` has more of them.
    #[test]
    fn whatever_comes_is_answered() {
        // Nothing is loaded or removed whoever runs the tests.
        Sets::default().take_on().unwrap();
        let mut state = 5642u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        for rank in [Rank::None, Rank::Usr, Rank::Sys, Rank::Dev] {
            let mut server = server(rank);
            for _ in 0..2000 {
                let data: Vec<u8> = (0..next(40)).map(|_| next(256) as u8).collect();
                let kind = if next(8) == 0 { next(1 << 31) as u32 } else { next(14) as u32 };
                let numbers = [next(1 << 31), next(4)];
                let (reply, _) = server.answer(Message { kind, numbers, data }, None);
                assert!(matches!(reply.kind, answer::DONE | answer::ERROR | answer::CALLED));
                assert!(!error_of(&reply, Path::new("x")).to_string().is_empty() || reply.kind != answer::ERROR);
            }
        }
    }
}
