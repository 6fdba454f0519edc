// SPDX-License-Identifier: GPL-2.0-or-later

//! The root part: the operations that need root's rights. In a set-uid spilerun it is a separate process, which
//! receives messages from the user part ([`crate::safety::rights`]); for root it is called in the same process.
//!
//! As a process it has only root's ids and nothing that the caller controls ([`detached`]), is limited to few system
//! calls ([`filter`]), and does not trust messages: it determines the caller's rank itself, reads approved modules
//! itself, accepts other modules only in sealed memory files, and checks the signature on the bytes that it loads. Of a
//! module it reads the name and, if its signer is trusted, one line of `.modinfo`, never `.spile.meta`. When the user part is gone it removes the module, or
//! looks after the session; when the root part is gone a [`Guard`] does so.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{getppid, setsid};
use spile_abi::device::{ARMING, COUNTERS, COUNTERS_LIST, GATE, GATE_STATE, INFO, OWNER, SWITCH};
use spile_abi::{escape, seal};

use crate::error::{Error, Exit};
use crate::host::kernel::is_module_name;
use crate::host::process;
use crate::module::device::Device;
use crate::module::file;
use crate::module::load;
use crate::module::lock::{self, Lock, NameLock};
use crate::safety::crowd::Share;
use crate::safety::guard::{self, Guard};
use crate::safety::image::{self, Image};
use crate::safety::message::{MAX_DATA, Message};
use crate::safety::ownership::{Ownership, refusal};
use crate::safety::privilege::{Caller, trusted_keys};
use crate::safety::rank::Rank;
use crate::safety::{approved, check, detached, filter};

/// Requests of the user part: kinds of messages. Names and paths are data.
pub mod ask {
    /// Find the approved module of this name or path. The answer has a memory file with it.
    pub const FIND: u32 = 1;
    /// Use the module in the memory file of this message; the path is for errors.
    pub const OFFER: u32 = 2;
    /// Load the found or offered module: flags, and a number for a new name. The answer has its device and the memory
    /// limit of its session, in bytes.
    pub const LOAD: u32 = 3;
    /// Remove the module.
    pub const UNLOAD: u32 = 5;
    /// The session continues.
    pub const LEAVE: u32 = 6;
    /// Open the device of the session of this name, which the answer has.
    pub const ATTACH: u32 = 7;
    /// Open the module of this name to query it.
    pub const LOOK: u32 = 8;
    /// An ioctl on the queried module, its number first; the argument is sent and returned as data.
    pub const CALL: u32 = 9;
    /// Read more of the description of the queried module; the answer is empty at its end.
    pub const READ: u32 = 10;
    /// End the session of this name.
    pub const REMOVE: u32 = 11;
    /// The user part is now the process whose descriptor comes with the message.
    pub const FOLLOW: u32 = 12;

    /// Flag of LOAD: report errors about modules left by killed loaders.
    pub const VERBOSE: u64 = 1;
    /// Flag of LOAD: the module is renamed.
    pub const RENAME: u64 = 2;
}

/// Kinds of answers.
pub mod answer {
    /// The root part is ready.
    pub const READY: u32 = 1;
    /// The request is done. Data: lines for the user.
    pub const DONE: u32 = 2;
    /// An error: exit status, whether a module is not approved, lines for the user, a NUL, and the message.
    pub const ERROR: u32 = 3;
    /// The error number of an ioctl, or 0; data is its argument.
    pub const CALLED: u32 = 4;
}

/// Whether a caller may load a module of this name (decided by the services layer).
pub type LoadPolicy = fn(&Caller, &str) -> Result<(), Error>;

/// A module to load.
#[derive(Debug)]
pub struct LoadRequest {
    /// Its bytes.
    pub image: Image,
    /// For messages.
    pub path: PathBuf,
    /// It is renamed to NAME_NUMBER.
    pub rename: Option<u32>,
    /// Started by a service.
    pub service: bool,
    /// Report errors about modules left by killed loaders.
    pub verbose: bool,
}

/// What has root's rights: this process, or another one.
#[derive(Debug)]
pub struct Server {
    /// `None`: root.
    caller: Option<Caller>,
    may_start: LoadPolicy,
    guard: Option<Guard>,
    /// The process of the user part.
    user_part: Option<OwnedFd>,
    found: Option<Found>,
    /// The module to remove when the user part ends.
    name: Option<String>,
    /// When that was loaded ([`spile_abi::device::Owner`]): no other module of this name has the same.
    loaded: Option<u64>,
    looked: Option<Device>,
    /// Lines for the user.
    notices: Vec<String>,
}

/// A module to load.
#[derive(Debug)]
struct Found {
    path: PathBuf,
    image: Image,
    /// Of the user's memory for such modules; one from elsewhere is in the user part's own memory.
    _share: Share,
}

/// How long a loader waits for other sessions, of its own user mostly, to allocate their buffers.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
const WAIT_PAUSE: Duration = Duration::from_millis(20);

impl Server {
    /// For a process with root's rights; `caller`: the user on whose behalf it acts.
    pub fn new(caller: Option<Caller>, may_start: LoadPolicy) -> Server {
        Server {
            caller,
            may_start,
            guard: None,
            user_part: None,
            found: None,
            name: None,
            loaded: None,
            looked: None,
            notices: Vec::new(),
        }
    }

    /// Lines for the user since the last call.
    pub fn notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    fn require(&self, rank: Rank, what: &'static str) -> Result<(), Error> {
        self.caller.map_or(Ok(()), |caller| caller.require(rank, what))
    }

    /// Loads a module. Other loaders wait meanwhile, but not for the user part: that can be stopped by its user.
    pub fn load(&mut self, wanted: LoadRequest) -> Result<(Device, Ownership), Error> {
        let LoadRequest { mut image, path, rename, service, verbose } = wanted;
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
        // Held until the device is open: a module that another spilerun has just loaded is not a leftover.
        let (_locks, ownership) = self.find_room(&name, service, verbose)?;
        self.guard.as_ref().map_or(Ok(()), |guard| guard.loading(&name))?;
        let signed = image.ends_with(seal::SIGNATURE_MARK);
        if let Err(errno) = load::insert(image.file(), &image, &ownership.parameters()) {
            self.forget();
            return Err(ownership.limited(refusal(&path, signed, name, errno)));
        }
        self.name = Some(name.clone());
        match self.open(&name) {
            Ok((device, loaded)) => {
                self.loaded = Some(loaded);
                Ok((device, ownership))
            }
            Err(error) => {
                // The error is returned; the next loader removes the leftovers.
                if load::remove(&name).is_ok() {
                    self.forget();
                }
                Err(error)
            }
        }
    }

    /// A part of the caller's memory for modules that are not loaded yet; waits for other loaders, which have theirs for a
    /// moment.
    fn share(&self, bytes: u64) -> Result<Share, Error> {
        let Some(caller) = self.caller else { return Ok(Share::unlimited()) };
        let until = Instant::now() + LONGEST_WAIT;
        loop {
            match caller.take_share(bytes) {
                Err(Error::ModulesHeld { .. }) if Instant::now() < until => std::thread::sleep(WAIT_PAUSE),
                taken => return taken,
            }
        }
    }

    /// Takes the lock of the name and the one of all, and finds what a new session may take. Sessions whose buffers are not
    /// yet allocated count with their limit; if that would refuse the caller, or they are the caller's own, waits for them
    /// without the locks.
    fn find_room(&mut self, name: &str, service: bool, verbose: bool) -> Result<((NameLock, Lock), Ownership), Error> {
        let until = Instant::now() + LONGEST_WAIT;
        loop {
            let Some(held) = NameLock::take(name) else {
                if Instant::now() > until {
                    return Err(load::name_taken(name));
                }
                std::thread::sleep(WAIT_PAUSE);
                continue;
            };
            // Removing may take long: not with the lock of all.
            self.notices.extend(load::remove_leftovers(Some(&held), verbose));
            load::name_is_free(name)?;
            if self.caller.is_some() && lock::is_claimed(name) {
                return Err(Error::Reserved { name: name.to_string() });
            }
            let lock = Lock::take();
            let Some(caller) = self.caller else {
                return Ok(((held, lock), Ownership { service, ..Ownership::default() }));
            };
            if let Some(ownership) = caller.ownership(&lock, Instant::now() < until)? {
                return Ok(((held, lock), ownership));
            }
            drop((held, lock));
            std::thread::sleep(WAIT_PAUSE);
        }
    }

    fn may_start(&self, name: &str) -> Result<(), Error> {
        self.caller.map_or(Ok(()), |caller| (self.may_start)(&caller, name))
    }

    /// The device of the module that was just loaded, if it belongs to the caller, and when it was loaded.
    fn open(&self, name: &str) -> Result<(Device, u64), Error> {
        let device = Device::open(name)?;
        let owner = device.owner()?;
        if self.caller.is_some_and(|caller| owner.uid != caller.uid()) {
            let what = "it does not say whose it is".to_string();
            return Err(Error::Strange { name: name.to_string(), what });
        }
        Ok((device, owner.loaded))
    }

    fn forget(&mut self) {
        self.name = None;
        self.loaded = None;
        if let Some(guard) = &self.guard {
            guard.done();
        }
    }

    /// Removes the module of an ended session.
    pub fn unload(&mut self, name: &str) -> Result<(), Error> {
        // Not for one who removes it.
        let _lock = NameLock::wait_while(name, || load::is_loaded(name));
        if self.loaded.is_some_and(|loaded| load::is_another(name, loaded)) {
            self.forget();
            return Ok(());
        }
        let removed = load::remove(name);
        if removed.is_ok() {
            self.forget();
        }
        removed
    }

    /// The device of a session without a reader that the caller may continue.
    pub fn attach(&mut self, name: &str) -> Result<Device, Error> {
        self.require(Rank::Usr, "attaching to sessions")?;
        check::may_load_modules()?;
        // Checked before its device is opened.
        self.require_own(name)?;
        let device = load::attach(name)?;
        let owner = device.owner()?;
        if self.caller.is_some_and(|caller| owner.uid != caller.uid()) {
            return Err(Error::NotLoaded { name: name.to_string() });
        }
        self.guard.as_ref().map_or(Ok(()), |guard| guard.loading(name))?;
        self.name = Some(name.to_string());
        self.loaded = Some(owner.loaded);
        Ok(device)
    }

    /// Refuses what only root and the owner of the session may do.
    fn require_own(&self, name: &str) -> Result<(), Error> {
        let Some(caller) = self.caller else { return Ok(()) };
        let owner = load::look(name)?.owner()?;
        match owner.uid == caller.uid() {
            true => Ok(()),
            false => Err(Error::OtherOwner { name: name.to_string(), uid: owner.uid }),
        }
    }

    /// `-d`: ends a session, or with `*` removes all modules left by killed loaders.
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

    /// Queries any session.
    pub fn look(&mut self, name: &str) -> Result<Device, Error> {
        self.require(Rank::Usr, "looking at sessions")?;
        load::look(name)
    }
}

/// An answer, and the descriptor to send with it.
pub type Answer = (Message, Option<OwnedFd>);

impl Server {
    /// Makes this process the root part, and serves the user part until that is gone. False: something was left behind.
    pub fn run(mut self, line: OwnedFd) -> bool {
        let Some(caller) = self.caller else { return false };
        let _ = nix::sys::prctl::set_name(c"spile-root");
        // The caller's signals and terminal no longer reach this process.
        if Caller::become_root().is_err() {
            return false;
        }
        let _ = setsid();
        detached::from_caller(&line);
        // Held until this process ends.
        let _place = match caller.take_place() {
            Ok(place) => place,
            Err(error) => {
                let mut refusal = refuse(&error);
                // No notices before it (split_lines()).
                refusal.data.insert(0, 0);
                return refusal.send(line.as_fd(), None).is_ok();
            }
        };
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
        self.looked = None;
        match self.name.take() {
            None => true,
            // A session that continues because its user wants it to.
            Some(name) if left => {
                self.forget();
                keeps || guard::wait_for_user(&name, caller.uid())
            }
            // The user part is gone: removes its module if that is idle.
            Some(name) => {
                let done = load::remove_idle(&name);
                self.forget();
                done || keeps || guard::wait_for_user(&name, caller.uid())
            }
        }
    }

    /// The next message; `None`: the user part is gone, or sent something that is not a message. Other processes may
    /// still have its end of the connection open: `-D` leaves one, which its user can stop.
    ///
    /// Other loaders wait for the lock: a user part that is stopped while it allocates its buffers loses the lock after
    /// some time. Its device is open, so others do not take its module for a leftover.
    fn next(&mut self, line: BorrowedFd<'_>) -> Option<(Message, Option<OwnedFd>)> {
        loop {
            let mut descriptors = vec![PollFd::new(line, PollFlags::POLLIN)];
            descriptors.extend(self.user_part.iter().map(|process| PollFd::new(process.as_fd(), PollFlags::POLLIN)));
            match poll(&mut descriptors, PollTimeout::NONE) {
                Ok(0) | Err(Errno::EINTR) => {}
                // Messages sent before its end are read first.
                Ok(_) if descriptors.first().is_some_and(|line| line.any() == Some(true)) => {
                    return Message::receive(line).ok().flatten();
                }
                Ok(_) | Err(_) => return None,
            }
        }
    }

    /// Answers until there are no more requests; true: a session continues.
    fn serve(&mut self, line: BorrowedFd<'_>) -> bool {
        while let Some((message, descriptor)) = self.next(line) {
            if message.kind == ask::LEAVE {
                return true;
            }
            let (reply, descriptor) = self.answer(message, descriptor);
            if reply.send(line, descriptor.as_ref().map(AsFd::as_fd)).is_err() {
                return false;
            }
        }
        false
    }

    /// The answer to a message of the user part, errors included, with lines for the user.
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
                // Only the last one counts.
                self.found = None;
                let (path, bytes, share) = approved::read_module(Path::new(&text()), |bytes| self.share(bytes))?;
                let image = Image::of(&bytes).map_err(image::failed)?;
                let copy = image.file().and_then(|file| file.try_clone_to_owned().ok());
                let copy = copy.ok_or_else(|| strange(Errno::EMFILE))?;
                let data = path.to_string_lossy().into_owned().into_bytes();
                self.found = Some(Found { path, image, _share: share });
                Ok((Message { kind: answer::DONE, data, ..Message::default() }, Some(copy)))
            }
            ask::OFFER => {
                let path = PathBuf::from(text());
                let descriptor = descriptor.ok_or_else(|| strange(Errno::EBADF))?;
                let (path, image) = self.take(path, descriptor)?;
                self.found = Some(Found { path, image, _share: Share::unlimited() });
                Ok(done(0))
            }
            ask::LOAD => {
                let Found { path, image, _share } = self.found.take().ok_or_else(|| strange(Errno::ENOENT))?;
                if self.name.is_some() {
                    return Err(strange(Errno::EBUSY));
                }
                let rename = (numbers[0] & ask::RENAME != 0).then_some(numbers[1] as u32);
                let verbose = numbers[0] & ask::VERBOSE != 0;
                let wanted = LoadRequest { image, path, rename, service: false, verbose };
                let (device, ownership) = self.load(wanted)?;
                Ok((done(ownership.most_bytes).0, device.into_descriptor()))
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

    /// The user part is now another process: the one that `-D` leaves in the background. As the guard may kill it, it
    /// must be one that the caller could kill.
    fn follow(&mut self, process: OwnedFd) -> Result<(), Error> {
        let is_caller_s = self.caller.is_some_and(|caller| process::is_permanent(&process, caller.uid()));
        if !is_caller_s || self.name.is_some() {
            return Err(strange(Errno::EPERM));
        }
        self.guard.as_ref().map_or(Ok(()), |guard| guard.follow(&process))?;
        self.user_part = Some(process);
        Ok(())
    }

    /// Accepts a module from elsewhere: any from spiledev; from the others only with a signer whom the kernel or root
    /// trusts, and from spileusr only one that sees nothing but processes of the session's owner.
    fn take(&mut self, path: PathBuf, descriptor: OwnedFd) -> Result<(PathBuf, Image), Error> {
        let Some(caller) = self.caller else { return Err(strange(Errno::EPERM)) };
        if caller.rank < Rank::Usr {
            return Err(Error::NotApproved { path });
        }
        let image = Image::sealed(descriptor).map_err(|error| Error::Unreadable { path: path.clone(), error })?;
        if caller.rank < Rank::Sys && !file::sees_own_processes_only(&image) {
            return Err(Error::NotApproved { path });
        }
        if caller.rank < Rank::Dev {
            let notices = &mut self.notices;
            check::is_vouched_for(&path, &image, check::enforcement(), || trusted_keys(notices))?;
            only_reads(&path, &image)?;
        }
        Ok((path, image))
    }

    /// ioctls on any session: queries; from spilesys also changes of its gate.
    fn call(&self, kind: u32, number: u64, mut data: Vec<u8>) -> Message {
        let may = match (kind, number) {
            (ask::READ, _) | (_, INFO | ARMING | OWNER | GATE_STATE | COUNTERS | COUNTERS_LIST) => true,
            (_, GATE | SWITCH) => self.require(Rank::Sys, "changing other sessions").is_ok(),
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

/// Refuses modules of guru mode, and those that do not declare that they are not.
fn only_reads(path: &Path, image: &[u8]) -> Result<(), Error> {
    match file::information(image, "spile_guru") {
        Some(value) if value.starts_with(b"no") => Ok(()),
        _ => Err(Error::GuruElsewhere { path: path.to_path_buf() }),
    }
}

/// The parent; `None`: it is gone.
fn parent() -> Option<OwnedFd> {
    let number = getppid();
    let process = process::open(number.as_raw().cast_unsigned()).ok()?;
    // If it had ended before, another process could have its PID.
    (getppid() == number).then_some(process)
}

/// A request that the user part never sends.
fn strange(errno: Errno) -> Error {
    Error::System { doing: "answering the user part", error: errno.into() }
}

fn refuse(error: &Error) -> Message {
    let not_approved = matches!(error, Error::NotApproved { .. });
    let mut data = error.to_string().into_bytes();
    data.truncate(MAX_DATA / 2);
    Message { kind: answer::ERROR, numbers: [error.exit() as u64, not_approved.into()], data }
}

/// An answer's lines for the user, escaped, and the rest of its data.
pub fn split_lines(data: &[u8]) -> (Vec<String>, &[u8]) {
    let (lines, rest) = match data.iter().position(|byte| *byte == 0) {
        Some(place) => data.split_at(place),
        None => (data, &[][..]),
    };
    let lines = String::from_utf8_lossy(lines);
    let lines = lines.lines().map(|line| escape::line(line).into_owned()).collect();
    (lines, rest.get(1..).unwrap_or_default())
}

/// The error in an answer; `path`: the module's, if it is not approved.
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
    use crate::elf::tests::with_sections;
    use crate::host::capability::Sets;

    fn server(rank: Rank) -> Server {
        Server::new(Some(Caller::new(12345, 12345, rank)), |_, _| Ok(()))
    }

    /// The kind of the answer and its data.
    fn answered(server: &mut Server, kind: u32, number: u64, data: &[u8]) -> (u32, String) {
        let asked = Message { kind, numbers: [number, 0], data: data.to_vec() };
        let (reply, descriptor) = server.answer(asked, None);
        assert!(descriptor.is_none() && reply.data.len() <= MAX_DATA);
        (reply.kind, String::from_utf8_lossy(split_lines(&reply.data).1).into_owned())
    }

    #[test]
    fn requests_beyond_the_rank_are_refused() {
        for rank in [Rank::None, Rank::Usr] {
            let mut server = server(rank);
            let (kind, text) = answered(&mut server, ask::REMOVE, 0, b"*");
            assert!(kind == answer::ERROR && text.contains("ending sessions"), "{text}");
            assert_eq!(answered(&mut server, ask::OFFER, 0, b"x").0, answer::ERROR);
            assert_eq!(answered(&mut server, ask::FOLLOW, 0, b"").0, answer::ERROR);
        }
        let (kind, text) = answered(&mut server(Rank::None), ask::FIND, 0, b"x");
        assert!(kind == answer::ERROR && text.contains("running a module"), "{text}");
        // Nothing has been queried, loaded or found yet.
        for kind in [ask::LOAD, ask::UNLOAD, 0, 13, u32::MAX] {
            assert_eq!(answered(&mut server(Rank::Dev), kind, 0, b"").0, answer::ERROR);
        }
        for number in [INFO, OWNER, GATE, SWITCH, u64::MAX] {
            let asked = Message { kind: ask::CALL, numbers: [number, 0], ..Message::default() };
            assert_ne!(server(Rank::Dev).answer(asked, None).0.numbers[0], 0);
        }
    }

    #[test]
    fn modules_of_guru_mode_and_undeclared_ones_are_refused() {
        let refused = |entries: &[u8]| only_reads(Path::new("x"), &with_sections(&[(".modinfo", entries)])).is_err();
        assert!(!refused(b"license=GPL\0spile_guru=no\0name=x\0"));
        for entries in [
            &b"spile_guru=yes: may write memory\0"[..],
            b"license=GPL\0",
            b"",
            b"xspile_guru=no\0",
            b"spile_guru=no\0spile_guru=yes\0",
            b"spile_guru=yes\0spile_guru=no\0",
        ] {
            assert!(refused(entries), "{}", entries.escape_ascii());
        }
        assert!(only_reads(Path::new("x"), b"").is_err());
    }

    /// `cargo xtask fuzz line` tries more.
    #[test]
    fn random_messages_are_answered() {
        // Loads and removes nothing, even if root runs the tests.
        Sets::default().become_current().unwrap();
        let mut state = 5642u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
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
