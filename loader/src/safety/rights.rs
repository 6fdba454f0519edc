// SPDX-License-Identifier: GPL-2.0-or-later

//! Access to operations that need root's rights: in this process if root runs it; for other users of a set-uid spilerun
//! in the root part, a process that is forked before anything of the caller's except the arguments is read. The user
//! part, which sends the requests, has permanently dropped root's rights by then.

use std::cell::{Cell, RefCell};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::unistd::{ForkResult, fork};

use crate::error::Error;
use crate::host::kernel::is_module_name;
use crate::host::process;
use crate::host::stderr::{print_panics_in_one_line, say};
use crate::module::device::{Device, Relay};
use crate::module::file::{self, File};
use crate::module::load;
use crate::safety::image::{self, Image};
use crate::safety::message::{self, MAX_DATA, Message};
use crate::safety::privilege::Caller;
use crate::safety::rank::Rank;
use crate::safety::server::{self, LoadPolicy, LoadRequest, Server, answer, ask, split_lines};

/// The process that has root's rights.
#[derive(Debug)]
pub enum Rights {
    /// This process, as far as its user has them.
    Own(RefCell<Server>),
    /// Another process.
    Split(Client),
}

/// Options for loading a module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start {
    /// The module has been renamed to NAME_NUMBER in its file.
    pub rename: Option<u32>,
    /// Started by a service. Only for root.
    pub service: bool,
    /// Report errors about modules left by killed loaders.
    pub verbose: bool,
}

/// How long to wait for a module to be removed if the root part is gone.
const GUARD_PATIENCE: Duration = Duration::from_secs(10);

impl Rights {
    /// Must be called first, with one thread: forks the root part if the process has rights that its caller does not
    /// have.
    pub fn find(may_start: LoadPolicy) -> Result<Rights, Error> {
        match Caller::find()? {
            None => Ok(Rights::Own(RefCell::new(Server::new(None, may_start)))),
            Some(caller) => split(caller, may_start).map(Rights::Split),
        }
    }

    /// Whether root's rights are in another process.
    pub fn is_split(&self) -> bool {
        matches!(self, Rights::Split(_))
    }

    /// Refuses what only root may do.
    pub fn require_root(&self, what: &'static str) -> Result<(), Error> {
        if self.is_split() { Err(Error::NotAllowed { what, group: "root" }) } else { Ok(()) }
    }

    /// A descriptor that becomes readable when the root part is gone.
    pub fn line(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Rights::Own(_) => None,
            Rights::Split(client) => Some(client.line.descriptor.as_fd()),
        }
    }

    /// Makes this process take the place of the one that called [`Rights::find`], which may then stop or end. This
    /// process cannot gain new privileges (prctl(2)).
    pub fn follow(&self) -> Result<(), Error> {
        match self {
            Rights::Own(_) => Ok(()),
            Rights::Split(client) => client.follow(),
        }
    }

    /// The module's file: for members of spileusr and spilesys an approved one, or a signed one that their rank allows.
    pub fn find_module(&self, module: &Path) -> Result<File, Error> {
        match self {
            Rights::Own(_) => File::find(module),
            Rights::Split(client) => client.find_module(module),
        }
    }

    /// Loads the module. Returns its device, and the memory limit of its session in bytes (0: none).
    pub fn load(&self, file: &File, start: Start) -> Result<(Device, u64), Error> {
        match self {
            Rights::Own(server) => {
                let image = Image::of_own(&file.image).map_err(image::failed)?;
                let Start { service, verbose, .. } = start;
                let path = file.path.clone();
                let wanted = LoadRequest { image, path, rename: None, service, verbose };
                let (device, stated) = with(server, |server| server.load(wanted))?;
                Ok((device, stated.most_bytes))
            }
            Rights::Split(client) => client.load(file, start),
        }
    }

    /// Removes the module of an ended session, whose device is closed.
    pub fn unload(&self, name: &str) -> Result<(), Error> {
        match self {
            Rights::Own(server) => with(server, |server| server.unload(name)),
            Rights::Split(client) => match client.ask(ask::UNLOAD, "") {
                Err(_) if client.line.is_lost() => wait_for_guard(name),
                other => other.map(drop),
            },
        }
    }

    /// How many probes of an ended session, whose device is closed, are still to be disarmed; `None`: all are.
    pub fn left_to_disarm(&self, name: &str) -> Option<u32> {
        self.look(name).ok()?.left_to_disarm()
    }

    /// The same as [`Rights::unload`], in the background, where it waits until all probes are disarmed. False: it cannot
    /// be done there.
    pub fn unload_later(&self, name: &str) -> bool {
        match self {
            // The root part does it when this process has ended.
            Rights::Split(_) => true,
            // `-d` waits. In a group of its own, so that ^C does not reach it. The program may be spile.
            Rights::Own(_) => Command::new("/proc/self/exe")
                .arg0("spilerun")
                .args(["-d", name])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .current_dir("/")
                .process_group(0)
                .spawn()
                .is_ok(),
        }
    }

    /// The session continues without this loader.
    pub fn leave(&self) {
        if let Rights::Split(client) = self {
            // If the root part is gone, its guard waits until the session's user is gone.
            let _ = Message { kind: ask::LEAVE, ..Message::default() }.send(client.line.descriptor.as_fd(), None);
        }
    }

    /// `-A`: the device of a session without a reader.
    pub fn attach(&self, name: &str) -> Result<Device, Error> {
        match self {
            Rights::Own(server) => with(server, |server| server.attach(name)),
            Rights::Split(_) if !is_module_name(name) => Err(Error::NotLoaded { name: name.to_string() }),
            Rights::Split(client) => {
                client.caller.require(Rank::Usr, "attaching to sessions")?;
                client.ask(ask::ATTACH, name)?.device(name)
            }
        }
    }

    /// `-d`
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        match self {
            Rights::Own(server) => with(server, |server| server.remove(name)),
            Rights::Split(client) => {
                let least = if name == "*" { Rank::Sys } else { Rank::Usr };
                client.caller.require(least, "ending sessions")?;
                client.ask(ask::REMOVE, name).map(drop)
            }
        }
    }

    /// Opens the device of a module that has a loader.
    pub fn look(&self, name: &str) -> Result<Device, Error> {
        match self {
            Rights::Own(server) => with(server, |server| server.look(name)),
            Rights::Split(client) => {
                client.caller.require(Rank::Usr, "looking at sessions")?;
                client.ask(ask::LOOK, name)?;
                Ok(Device::relayed(name, client.line.clone()))
            }
        }
    }

    /// Refuses changes to other users' sessions if the rank does not allow them.
    pub fn may_change(&self) -> Result<(), Error> {
        match self {
            Rights::Own(_) => Ok(()),
            Rights::Split(client) => client.caller.require(Rank::Sys, "changing other sessions"),
        }
    }
}

fn with<T>(server: &RefCell<Server>, run: impl FnOnce(&mut Server) -> Result<T, Error>) -> Result<T, Error> {
    let mut server = server.borrow_mut();
    let result = run(&mut server);
    server.notices().iter().for_each(|line| say(line));
    result
}

/// The root part was killed: its guard removes the module as soon as its device is closed.
fn wait_for_guard(name: &str) -> Result<(), Error> {
    let begun = Instant::now();
    while begun.elapsed() < GUARD_PATIENCE {
        if !load::is_loaded(name) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err(Error::Remove { name: name.to_string(), errno: Errno::ECHILD })
}

fn split(caller: Caller, may_start: LoadPolicy) -> Result<Client, Error> {
    let failed = |error| Error::System { doing: "splitting off the part with root's rights", error };
    let (line, other) = message::line().map_err(failed)?;
    let client = |line| {
        let line = Arc::new(Line { descriptor: line, turn: Mutex::new(()) });
        Client { caller, line, is_own_file: Cell::new(false) }
    };
    print_panics_in_one_line();
    // Users in none of the groups may do nothing.
    if caller.rank == Rank::None {
        drop(other);
        caller.become_caller()?;
        return Ok(client(line));
    }
    // SAFETY: there is one thread.
    match unsafe { fork() }.map_err(|errno| failed(errno.into()))? {
        ForkResult::Child => {
            drop(line);
            let done = Server::new(Some(caller), may_start).run(other);
            std::process::exit(i32::from(!done));
        }
        ForkResult::Parent { .. } => {
            drop(other);
            caller.become_caller()?;
            // Until the process is root's, the caller can stop or kill it; nothing is loaded before.
            match Message::receive(line.as_fd()) {
                Ok(Some((message, _))) if message.kind == answer::READY => {}
                Ok(Some((message, _))) if message.kind == answer::ERROR => {
                    return Err(server::error_of(&message, Path::new("")));
                }
                _ => return Err(failed(std::io::ErrorKind::UnexpectedEof.into())),
            }
            Ok(client(line))
        }
    }
}

/// The end of the user part.
#[derive(Debug)]
struct Line {
    descriptor: OwnedFd,
    /// One request at a time.
    turn: Mutex<()>,
}

impl Line {
    /// `None`: the root part is gone.
    fn exchange(&self, message: &Message, descriptor: Option<BorrowedFd<'_>>) -> Option<(Message, Option<OwnedFd>)> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        message.send(self.descriptor.as_fd(), descriptor).ok()?;
        Message::receive(self.descriptor.as_fd()).ok()?
    }

    fn is_lost(&self) -> bool {
        use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
        let mut descriptors = [PollFd::new(self.descriptor.as_fd(), PollFlags::empty())];
        let [found] = match poll(&mut descriptors, PollTimeout::ZERO) {
            Ok(_) => descriptors.map(|descriptor| descriptor.revents()),
            Err(_) => return false,
        };
        found.is_some_and(|events| events.intersects(PollFlags::POLLHUP | PollFlags::POLLERR))
    }
}

impl Relay for Line {
    fn call(&self, request: u64, argument: &mut [u8]) -> Result<(), Errno> {
        let asked = Message { kind: ask::CALL, numbers: [request, 0], data: argument.to_vec() };
        let (came, _) = self.exchange(&asked, None).ok_or(Errno::ECHILD)?;
        argument.iter_mut().zip(&came.data).for_each(|(to, from)| *to = *from);
        called(&came)
    }

    fn read(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        let (came, _) = self.exchange(&Message { kind: ask::READ, ..Message::default() }, None).ok_or(Errno::ECHILD)?;
        called(&came)?;
        // SANITY: buffers are larger than messages.
        buffer.iter_mut().zip(&came.data).for_each(|(to, from)| *to = *from);
        Ok(came.data.len().min(buffer.len()))
    }
}

fn called(message: &Message) -> Result<(), Errno> {
    match (message.kind, message.numbers[0]) {
        (answer::CALLED, 0) => Ok(()),
        (answer::CALLED, errno) => Err(Errno::from_raw(errno as i32)),
        _ => Err(Errno::EPROTO),
    }
}

/// The user part.
#[derive(Debug)]
pub struct Client {
    /// The rank decides what is requested; the root part decides what is done.
    caller: Caller,
    line: Arc<Line>,
    /// The module is not approved.
    is_own_file: Cell<bool>,
}

/// The answer, unless it is an error.
struct Reply {
    number: u64,
    data: Vec<u8>,
    descriptor: Option<OwnedFd>,
}

impl Reply {
    fn descriptor(&mut self) -> Result<OwnedFd, Error> {
        self.descriptor.take().ok_or_else(lost)
    }

    fn device(mut self, name: &str) -> Result<Device, Error> {
        Ok(Device::of(name, self.descriptor()?))
    }
}

fn lost() -> Error {
    let error = std::io::Error::other("the part with root's rights has ended");
    Error::System { doing: "asking for what takes root's rights", error }
}

impl Client {
    fn ask(&self, kind: u32, text: &str) -> Result<Reply, Error> {
        self.send(Message { kind, data: text.as_bytes().to_vec(), ..Message::default() }, None)
    }

    fn send(&self, message: Message, descriptor: Option<BorrowedFd<'_>>) -> Result<Reply, Error> {
        let (came, descriptor) = self.line.exchange(&message, descriptor).ok_or_else(lost)?;
        let (lines, data) = split_lines(&came.data);
        lines.iter().for_each(|line| say(line));
        match came.kind {
            answer::DONE => Ok(Reply { number: came.numbers[0], data: data.to_vec(), descriptor }),
            answer::ERROR => {
                let path = String::from_utf8_lossy(&message.data).into_owned();
                Err(server::error_of(&came, Path::new(&path)))
            }
            _ => Err(lost()),
        }
    }

    fn follow(&self) -> Result<(), Error> {
        let failed = |errno: Errno| Error::System { doing: "going to the background", error: errno.into() };
        let process = process::open(std::process::id()).map_err(failed)?;
        self.send(Message { kind: ask::FOLLOW, ..Message::default() }, Some(process.as_fd())).map(drop)
    }

    fn find_module(&self, module: &Path) -> Result<File, Error> {
        self.caller.require(Rank::Usr, "running a module")?;
        let own = || {
            self.is_own_file.set(true);
            let file = File::find(module)?;
            // The root part reports it too, later.
            if self.caller.rank < Rank::Dev {
                self.offer(&file)?;
                if file.description.meta.guru {
                    return Err(Error::GuruElsewhere { path: file.path });
                }
            }
            Ok(file)
        };
        // Read with the caller's own rights. Members of spiledev may run any module that they can read.
        if self.caller.rank == Rank::Dev
            && let Ok(file) = own()
        {
            return Ok(file);
        }
        self.is_own_file.set(false);
        match self.find_approved(module) {
            Err(Error::NotApproved { .. }) if self.caller.rank >= Rank::Sys => own(),
            Err(refused @ Error::NotApproved { .. }) => match File::find(module) {
                Ok(file) if file::sees_own_processes_only(&file.image) => own(),
                _ => Err(refused),
            },
            other => other,
        }
    }

    fn find_approved(&self, module: &Path) -> Result<File, Error> {
        let not_approved = || Error::NotApproved { path: module.to_path_buf() };
        let text = module.to_str().filter(|text| text.len() <= MAX_DATA).ok_or_else(not_approved)?;
        let mut reply = self.ask(ask::FIND, text)?;
        let path = PathBuf::from(String::from_utf8_lossy(&reply.data).into_owned());
        let image = Image::sealed(reply.descriptor()?);
        let image = image.map_err(|error| Error::Unreadable { path: path.clone(), error })?;
        let file = File::of(path, image.to_vec())?;
        // The kernel reads the name from a different place in the file.
        match file.has_its_name() {
            true => Ok(file),
            false => Err(Error::BadName { path: file.path, name: file.description.meta.name }),
        }
    }

    /// Passes the root part a module that is not approved.
    fn offer(&self, file: &File) -> Result<(), Error> {
        let image = Image::of(&file.image).map_err(image::failed)?;
        let data = file.path.to_string_lossy().into_owned().into_bytes();
        self.send(Message { kind: ask::OFFER, data, ..Message::default() }, image.file()).map(drop)
    }

    fn load(&self, file: &File, start: Start) -> Result<(Device, u64), Error> {
        let mut rename = start.rename;
        if self.is_own_file.get() {
            self.offer(file)?;
            // It is already renamed.
            rename = None;
        }
        let flags = u64::from(start.verbose) * ask::VERBOSE + rename.map_or(0, |_| ask::RENAME);
        let numbers = [flags, rename.unwrap_or_default().into()];
        let reply = self.send(Message { kind: ask::LOAD, numbers, ..Message::default() }, None)?;
        let most_bytes = reply.number;
        Ok((reply.device(&file.description.meta.name)?, most_bytes))
    }
}
