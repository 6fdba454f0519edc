// SPDX-License-Identifier: GPL-2.0-or-later

//! The control device of a loaded module: its node, its ioctls, its rings.

use std::fmt::Debug;
use std::fs;
use std::io;
use std::num::NonZero;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;

use nix::errno::Errno;
use nix::libc;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use spile_abi::device::{
    self, ABI_VERSION, Arming, Counters, CountersList, DEVICE_PREFIX, Gate, GateState, Info, KEPT, Keep, Measure,
    OPENED, Owner, Sample, Set, Setup, State, Symbol, Unwind,
};
use spile_abi::record::{RING_PLACES, RingHeader};

use crate::error::Error;
use crate::host::kernel;
use crate::records::ring::{Chunks, Ring};
use crate::records::symbol::Kernel;

/// No user has this uid: it is (uid_t)-1.
pub const UNKNOWN: u32 = u32::MAX;

/// A description that is longer is refused, in bytes: of tens of thousands of probes it has some MB.
const MAX_META: usize = 64 << 20;

/// Where to create a node if the system has none. /dev first: the others may be mounted `nodev`.
const NODE_PLACES: [&str; 3] = ["/dev", "/run", "/tmp"];

/// An open device. It can be opened only once; closing it stops a running session.
#[derive(Debug)]
pub struct Device {
    name: String,
    handle: Handle,
}

/// How it is accessed.
#[derive(Debug)]
enum Handle {
    Open(OwnedFd),
    /// Another process has it open, and forwards some calls.
    Relayed(Arc<dyn Relay>),
}

/// Access to a device that another process has open.
pub trait Relay: Send + Sync + Debug {
    /// Makes a call with this argument.
    fn call(&self, request: u64, argument: &mut [u8]) -> Result<(), Errno>;
    /// Reads the next bytes of the description; 0 at its end. The buffer must hold one message.
    fn read(&self, buffer: &mut [u8]) -> Result<usize, Errno>;
}

fn no_file(id: u32) -> device::File {
    device::File {
        id,
        flags: 0,
        inode: 0,
        device: 0,
        generation: 0,
        process: 0,
        reserved: 0,
        address: 0,
        path: [0; device::FILE_PATH],
    }
}

impl Kernel for Device {
    fn name(&self, symbol: &mut Symbol) -> bool {
        // Without an answer, for whatever reason, the address is printed in hex.
        self.call(device::SYMBOL, symbol, "asking for a name of").is_ok()
    }
}

impl Device {
    /// `name` is the module's. [`Error::InUse`] if it is open elsewhere.
    pub fn open(name: &str) -> Result<Device, Error> {
        Device::opened(name, open_node(name))
    }

    /// Opens it beside its loader, to read the status and change the gate: by the file in /proc, which does not keep
    /// the module from being removed.
    pub fn look(name: &str) -> Result<Device, Error> {
        Device::opened(name, open(&Path::new("/proc").join(format!("{DEVICE_PREFIX}{name}")), false))
    }

    /// From a descriptor that another process has opened.
    pub fn of(name: &str, descriptor: OwnedFd) -> Device {
        Device { name: name.to_string(), handle: Handle::Open(descriptor) }
    }

    /// From one that another process accesses.
    pub fn relayed(name: &str, relay: Arc<dyn Relay>) -> Device {
        Device { name: name.to_string(), handle: Handle::Relayed(relay) }
    }

    /// For another process.
    pub fn into_descriptor(self) -> Option<OwnedFd> {
        match self.handle {
            Handle::Open(descriptor) => Some(descriptor),
            Handle::Relayed(_) => None,
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.handle {
            Handle::Open(descriptor) => Some(descriptor.as_fd()),
            Handle::Relayed(_) => None,
        }
    }

    fn opened(name: &str, opened: io::Result<OwnedFd>) -> Result<Device, Error> {
        match opened {
            Ok(descriptor) => Ok(Device::of(name, descriptor)),
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Err(Error::InUse { name: name.to_string() }),
            Err(error) => Err(Error::Node { name: name.to_string(), error }),
        }
    }

    /// State and sizes of the session. A module of another ABI version is an error.
    pub fn info(&self) -> Result<Info, Error> {
        let mut info = Info::default();
        self.call(device::INFO, &mut info, "asking")?;
        if info.abi != ABI_VERSION {
            return Err(self.strange(format!("version {} instead of {ABI_VERSION}", info.abi)));
        }
        Ok(info)
    }

    /// How many probes of an ended session without a loader are still to be disarmed; `None`: all are, or it has not
    /// ended, or is kept.
    pub fn left_to_disarm(&self) -> Option<u32> {
        let info = self.info().ok()?;
        // The work item of the module begins when it has no loader any more. A kept session may get another one.
        let is_over = State::from_number(info.state) == Some(State::Stopped) && info.flags & (KEPT | OPENED) == 0;
        (is_over && info.armed > 0).then_some(info.armed)
    }

    /// What is left of arming, for messages of progress: all 0, which is unknown, if the module cannot be asked.
    pub fn arming(&self) -> Arming {
        let mut arming = Arming::default();
        let asked = self.call(device::ARMING, &mut arming, "asking");
        asked.map_or_else(|_| Arming::default(), |()| arming)
    }

    /// The owner of the session. Older modules do not report it: [`UNKNOWN`], which is not a user.
    pub fn owner(&self) -> Result<Owner, Error> {
        let mut owner = Owner::default();
        match self.call(device::OWNER, &mut owner, "asking") {
            Err(Error::Device { errno: Errno::ENOTTY, .. }) => Ok(Owner { uid: UNKNOWN, ..Owner::default() }),
            other => other.map(|()| owner),
        }
    }

    /// Creates the buffers, before [`Device::start`].
    pub fn set_up(&self, mut setup: Setup) -> Result<(), Error> {
        self.call(device::SETUP, &mut setup, "setting up the buffers of")
    }

    /// Sets a global. Before [`Device::start`].
    pub fn set(&self, mut piece: Set) -> Result<(), Error> {
        self.call(device::SET, &mut piece, "setting a global of")
    }

    /// Whether the session continues when the device is closed, and whether full rings then drop the oldest records.
    pub fn keep(&self, keep: bool, overwrite: bool) -> Result<(), Error> {
        let mut keep = Keep { keep: keep.into(), overwrite: overwrite.into() };
        self.call(device::KEEP, &mut keep, "asking to keep the session of")
    }

    /// Sets the gate for the script's writes.
    pub fn set_gate(&self, mut gate: Gate) -> Result<(), Error> {
        self.call(device::GATE, &mut gate, "setting the gate of")
    }

    /// The gate for the script's writes, with its counters.
    pub fn gate(&self) -> Result<GateState, Error> {
        let mut state = GateState::default();
        self.call(device::GATE_STATE, &mut state, "asking")?;
        Ok(state)
    }

    /// Counts the hits of all probes for this time, without running handlers; they are counted as stopped. Before
    /// [`Device::start`].
    pub fn measure(&self, milliseconds: u32) -> Result<Measure, Error> {
        let mut measure = Measure { milliseconds, ..Measure::default() };
        match self.call(device::MEASURE, &mut measure, "counting the hits of") {
            Err(Error::Device { name, errno: errno @ Errno::EKEYREJECTED, .. }) => {
                Err(Error::RefusedToFit { name, errno })
            }
            other => other.map(|()| measure),
        }
    }

    /// Sets the sampling rate: one in N hits is handled. Before [`Device::start`].
    pub fn sample(&self, one_in: u32) -> Result<(), Error> {
        self.call(device::SAMPLE, &mut Sample { one_in, ..Sample::default() }, "sampling the hits of")
    }

    /// Switches a probe site off, or on again, while the session runs.
    pub fn switch(&self, probe: u32, off: bool) -> Result<(), Error> {
        let mut switch = device::Switch { probe, off: off.into() };
        self.call(device::SWITCH, &mut switch, "switching a probe of")
    }

    /// The contents of the module's section `.spile.meta`. A module's section could be endless, or reading it could
    /// take forever: at most [`MAX_META`] bytes, and until `is_stopping` (EINTR).
    pub fn meta(&self, is_stopping: impl Fn() -> bool) -> Result<Vec<u8>, Error> {
        self.meta_up_to(usize::MAX, is_stopping)
    }

    /// The first bytes of that section: at least `enough`, unless it ends before. Once for a device.
    pub fn meta_up_to(&self, enough: usize, is_stopping: impl Fn() -> bool) -> Result<Vec<u8>, Error> {
        let failed = |errno| Error::Device { name: self.name.clone(), doing: "reading the description of", errno };
        let mut bytes = Vec::new();
        let mut buffer = [0u8; 1 << 16];
        loop {
            if bytes.len() >= enough {
                return Ok(bytes);
            }
            if is_stopping() {
                return Err(failed(Errno::EINTR));
            }
            match self.read(&mut buffer) {
                Ok(0) => return Ok(bytes),
                Ok(_) if bytes.len() > MAX_META => {
                    return Err(self.strange(format!("its description is larger than {} MB", MAX_META >> 20)));
                }
                Ok(count) => bytes.extend_from_slice(buffer.get(..count).unwrap_or(&buffer)),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
    }

    /// The next bytes of that section.
    pub fn read(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        match &self.handle {
            Handle::Open(descriptor) => nix::unistd::read(descriptor, buffer),
            Handle::Relayed(relay) => relay.read(buffer),
        }
    }

    /// Makes the call of this number for another process. An argument of the wrong size is an error.
    pub fn raw_call(&self, request: u64, argument: &mut [u8]) -> Result<(), Errno> {
        if argument.len() != argument_bytes(request) {
            return Err(Errno::EINVAL);
        }
        let descriptor = self.descriptor().ok_or(Errno::EBADF)?.as_raw_fd();
        // SAFETY: the kernel accesses as many bytes as the call's number encodes, which the buffer has.
        Errno::result(unsafe { libc::ioctl(descriptor, request as _, argument.as_mut_ptr()) }).map(drop)
    }

    /// The file of user space with that number; `None`: there is none.
    pub fn file(&self, id: u32) -> Option<device::File> {
        let mut file = no_file(id);
        self.call(device::FILE, &mut file, "asking for a file of").ok().map(|()| file)
    }

    /// The next file whose table a stack has missed; `None`: there is none.
    pub fn wanted(&self) -> Option<device::File> {
        let mut file = no_file(0);
        self.call(device::WANTED, &mut file, "asking for a file of").ok().map(|()| file)
    }

    /// Passes the table of a file to the module, with as many rules and places as `unwind` says.
    pub fn unwind(&self, unwind: &Unwind, table: &[u8]) -> Result<(), Error> {
        if table.len() != unwind.rules as usize * 8 + unwind.places as usize * 6 {
            return Err(self.strange("a table of another size than it says".to_string()));
        }
        let mut unwind = Unwind { table: table.as_ptr() as u64, ..*unwind };
        self.call(device::UNWIND, &mut unwind, "passing a table to")
    }

    /// Returns once the begin probes have run and all probes are armed.
    pub fn start(&self) -> Result<(), Error> {
        match self.call(device::START, &mut (), "starting") {
            Err(Error::Device { name, errno: errno @ Errno::EKEYREJECTED, .. }) => {
                Err(Error::RefusedToFit { name, errno })
            }
            other => other,
        }
    }

    /// Cancels arming in [`Device::start`], called by another thread. Does not wait for it.
    pub fn cancel(&self) -> Result<(), Error> {
        self.call(device::CANCEL, &mut (), "ending the arming of")
    }

    /// Returns once all probes are disarmed: only end probes can print after that.
    pub fn quiet(&self) -> Result<(), Error> {
        self.call(device::QUIET, &mut (), "disarming")
    }

    /// Returns once all probes are disarmed and the end probes have run.
    pub fn stop(&self) -> Result<(), Error> {
        self.call(device::STOP, &mut (), "stopping")
    }

    /// Counters of the first `count` probe sites.
    pub fn counters(&self, count: u32) -> Result<Vec<Counters>, Error> {
        let mut all: Vec<Counters> = Vec::new();
        while all.len() < count as usize {
            let mut list = CountersList { first: all.len() as u32, ..CountersList::default() };
            match self.call(device::COUNTERS_LIST, &mut list, "asking") {
                // Older modules give them one by one.
                Err(Error::Device { errno: Errno::ENOTTY, .. }) => {
                    return (0..count).map(|probe| self.counters_of(probe)).collect();
                }
                other => other?,
            }
            match list.counters.get(..list.count as usize) {
                Some(counters @ [_, ..]) => all.extend(counters),
                _ => return Err(self.strange(format!("counters of {} probes, not {count}", all.len()))),
            }
        }
        all.truncate(count as usize);
        Ok(all)
    }

    fn counters_of(&self, probe: u32) -> Result<Counters, Error> {
        let mut counters = Counters { probe, ..Counters::default() };
        self.call(device::COUNTERS, &mut counters, "asking")?;
        Ok(counters)
    }

    fn call<T>(&self, request: u64, argument: &mut T, doing: &'static str) -> Result<(), Error> {
        let result = match &self.handle {
            Handle::Open(descriptor) => {
                // SAFETY: each request is called with the structure that its number was made for, which outlives the
                // call.
                let result = unsafe { libc::ioctl(descriptor.as_raw_fd(), request as _, std::ptr::from_mut(argument)) };
                Errno::result(result).map(drop)
            }
            Handle::Relayed(relay) => {
                let bytes = std::ptr::from_mut(argument).cast::<u8>();
                // SAFETY: structures of calls are plain numbers without padding (the crate spile-abi), valid for any
                // bytes; these outlive the call.
                relay.call(request, unsafe { std::slice::from_raw_parts_mut(bytes, size_of::<T>()) })
            }
        };
        match result {
            Ok(()) => Ok(()),
            Err(errno) => Err(Error::Device { name: self.name.clone(), doing, errno }),
        }
    }

    fn strange(&self, what: String) -> Error {
        Error::Strange { name: self.name.clone(), what }
    }

    /// Maps the rings of all possible CPUs. Between [`Device::set_up`] and [`Device::start`].
    pub fn map_rings(&self, info: &Info) -> Result<Vec<MappedRing>, Error> {
        let (header, data) = (info.header_bytes as usize, info.ring_bytes as usize);
        if header < size_of::<RingHeader>() || !data.is_power_of_two() || info.cpus > kernel::possible_cpus() {
            return Err(self.strange(format!("{} rings of {header} and {data} bytes", info.cpus)));
        }
        let mut headers = Vec::new();
        for cpu in 0..info.cpus {
            match self.map(u64::from(cpu) * header as u64, header) {
                Ok(mapping) => headers.push((cpu, mapping)),
                // No CPU can have this number.
                Err(Error::Device { errno: Errno::ENXIO, .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let Some((_, first)) = headers.first() else { return Ok(Vec::new()) };
        // SAFETY: aligned and mapped, as large as a RingHeader at least; every bit pattern is one.
        let RingHeader { chunk_bytes, chunks, .. } = unsafe { first.address.cast::<RingHeader>().read_volatile() };
        let most = RING_PLACES as u64 * u64::from(chunk_bytes) / 2;
        if !chunk_bytes.is_power_of_two() || chunk_bytes as usize > data || data as u64 > most || chunks == 0 {
            return Err(self.strange(format!("rings of {data} bytes in {chunks} chunks of {chunk_bytes} bytes")));
        }
        let memory = u64::from(info.cpus) * header as u64;
        let memory = Arc::new(self.map(memory, chunk_bytes as usize * chunks as usize)?);
        let ring = |(cpu, mapping): (u32, Mapping)| {
            let chunks = Chunks { start: memory.address, bytes: chunk_bytes.into(), count: chunks };
            // SAFETY: header and chunks were just mapped, writable, and stay until the MappedRing is dropped.
            let ring = unsafe { Ring::new(cpu, mapping.address, data, chunks) };
            MappedRing { ring, header: mapping, chunks: Arc::clone(&memory) }
        };
        Ok(headers.into_iter().map(ring).collect())
    }

    /// Maps memory of the module that it shares.
    fn map(&self, offset: u64, length: usize) -> Result<Mapping, Error> {
        let length = NonZero::new(length).ok_or_else(|| self.strange("no rings".into()))?;
        let descriptor = self.descriptor().ok_or_else(|| self.strange("only to be looked at".into()))?;
        let (protection, flags) = (ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_SHARED);
        // SAFETY: a new mapping at an address that the kernel chooses.
        match unsafe { mmap(None, length, protection, flags, descriptor, offset as i64) } {
            Ok(address) => Ok(Mapping { address: address.cast(), length: length.get() }),
            Err(errno) => Err(Error::Device { name: self.name.clone(), doing: "mapping the buffers of", errno }),
        }
    }
}

impl Device {
    /// For polling; `None`: another process has it open.
    pub fn events(&self) -> Option<BorrowedFd<'_>> {
        self.descriptor()
    }
}

/// Bytes of the argument of a call, by its number (`_IOC_SIZE`, include/uapi/asm-generic/ioctl.h).
fn argument_bytes(request: u64) -> usize {
    (request >> 16 & 0x3fff) as usize
}

/// A ring of the module, unmapped on drop.
#[derive(Debug)]
pub struct MappedRing {
    /// The ring's reader.
    pub ring: Ring,
    /// Its header, and the chunks of all rings: mapped as long as the ring is read.
    #[expect(dead_code, reason = "dropped with the ring")]
    header: Mapping,
    #[expect(dead_code, reason = "dropped with the last ring")]
    chunks: Arc<Mapping>,
}

/// Memory shared with the module, unmapped on drop.
#[derive(Debug)]
struct Mapping {
    address: NonNull<u8>,
    length: usize,
}

// SAFETY: a mapping belongs to the process, and only its owner unmaps it.
unsafe impl Send for Mapping {}
// SAFETY: nothing is done with a shared one before it is dropped.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by map() with this length; the Ring over it is dropped too. On failure it stays mapped.
        let _ = unsafe { munmap(self.address.cast(), self.length) };
    }
}

fn open_node(name: &str) -> io::Result<OwnedFd> {
    let device = format!("{DEVICE_PREFIX}{name}");
    match open(&Path::new("/dev").join(&device), true) {
        // No devtmpfs: containers, static /dev.
        Err(error) if error.kind() == io::ErrorKind::NotFound => open_made_node(&device, error),
        other => other,
    }
}

fn open(path: &Path, writing: bool) -> io::Result<OwnedFd> {
    // std opens close-on-exec: a command that outlives us must not keep the session alive.
    Ok(fs::OpenOptions::new().read(true).write(writing).custom_flags(libc::O_NOCTTY).open(path)?.into())
}

/// Creates a node with the numbers from sysfs, opens it and removes it. `missing`: the error if that is impossible.
fn open_made_node(device: &str, missing: io::Error) -> io::Result<OwnedFd> {
    let numbers = fs::read_to_string(format!("/sys/class/misc/{device}/dev"));
    let Some((major, minor)) = numbers.ok().as_deref().and_then(parse_numbers) else { return Err(missing) };
    let mut last = missing;
    for place in NODE_PLACES {
        let path = PathBuf::from(place).join(format!(".{device}-{}", std::process::id()));
        // mknod(2) follows no link and replaces nothing: the node is ours.
        if let Err(errno) = mknod(&path, SFlag::S_IFCHR, Mode::S_IRUSR | Mode::S_IWUSR, makedev(major, minor)) {
            last = errno.into();
            continue;
        }
        let opened = open(&path, true);
        // If it cannot be removed, an unused name stays.
        let _ = fs::remove_file(&path);
        match opened {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => last = error,
            other => return other,
        }
    }
    Err(last)
}

/// `MAJOR:MINOR`
fn parse_numbers(text: &str) -> Option<(u64, u64)> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_are_read() {
        assert_eq!(parse_numbers("10:126\n"), Some((10, 126)));
        assert_eq!(parse_numbers("10"), None);
    }

    #[test]
    fn a_module_that_is_not_there_is_an_error() {
        assert!(matches!(Device::open("no_such_module"), Err(Error::Node { .. })));
    }
}
