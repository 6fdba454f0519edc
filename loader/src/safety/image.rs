// SPDX-License-Identifier: GPL-2.0-or-later

//! The bytes of a module in a sealed memory file (memfd_create(2)): the kernel loads exactly the checked bytes, whoever
//! else has a descriptor of it, and whatever happens to the original file. On kernels without memory files, a spilerun
//! run by root keeps them in its own memory.

use std::ffi::CStr;
use std::io;
use std::num::NonZero;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

use nix::errno::Errno;
use nix::libc;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigHandler, Signal, signal};

use crate::error::Error;

/// Maximum size of a module in bytes.
const MAX_BYTES: usize = 256 << 20;
const SEALS: libc::c_int = libc::F_SEAL_SEAL | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE;
/// Linux 6.3; required where `vm.memfd_noexec` is 2 (include/uapi/linux/memfd.h).
const MFD_NOEXEC_SEAL: libc::c_uint = 8;
const NAME: &CStr = c"module";

/// The bytes of a module; nobody can change them.
#[derive(Debug)]
pub enum Image {
    /// In a sealed memory file.
    File(Mapped),
    /// In the memory of the process that loads it.
    Memory(Vec<u8>),
}

/// A sealed memory file, mapped for reading.
#[derive(Debug)]
pub struct Mapped {
    descriptor: OwnedFd,
    address: NonNull<libc::c_void>,
    length: NonZero<usize>,
}

impl Image {
    /// For a process that loads the module itself: falls back to its own memory ([`is_missing`]).
    pub fn of_own(bytes: &[u8]) -> io::Result<Image> {
        match Image::of(bytes) {
            Err(error) if is_missing(&error) => Ok(Image::Memory(bytes.to_vec())),
            other => other,
        }
    }

    /// The memory file, to pass to another process.
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Image::File(file) => Some(file.descriptor.as_fd()),
            Image::Memory(_) => None,
        }
    }

    /// Creates a memory file with these bytes.
    pub fn of(bytes: &[u8]) -> io::Result<Image> {
        let file = std::fs::File::from(create()?);
        without_size_limit(|| io::Write::write_all(&mut &file, bytes))?;
        // SAFETY: takes numbers.
        Errno::result(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEALS) })?;
        Image::sealed(file.into())
    }

    /// Takes a memory file from another process. An error: it is not sealed, so its creator can still change it.
    pub fn sealed(descriptor: OwnedFd) -> io::Result<Image> {
        // SAFETY: takes numbers. Files of other file systems have no seals (EINVAL).
        let seals = Errno::result(unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_GET_SEALS) })?;
        if seals & SEALS != SEALS {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the memory file is not sealed"));
        }
        let size = nix::sys::stat::fstat(&descriptor)?.st_size;
        let length = usize::try_from(size).ok().filter(|size| *size <= MAX_BYTES).and_then(NonZero::new);
        let length = length.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it is empty, or too large"))?;
        // SAFETY: a new mapping at an address chosen by the kernel, of a file that can neither change nor shrink.
        // (Before Linux 6.7 a shared mapping of a write-sealed file is refused.)
        let address = unsafe { mmap(None, length, ProtFlags::PROT_READ, MapFlags::MAP_PRIVATE, &descriptor, 0) }?;
        Ok(Image::File(Mapped { descriptor, address, length }))
    }
}

/// RLIMIT_FSIZE is meant for files on disk: raised as far as allowed. Exceeding it is made an error instead of a
/// signal.
fn without_size_limit<T>(run: impl FnOnce() -> T) -> T {
    let limits = getrlimit(Resource::RLIMIT_FSIZE);
    if let Ok((_, hard)) = limits
        && setrlimit(Resource::RLIMIT_FSIZE, RLIM_INFINITY, RLIM_INFINITY).is_err()
    {
        let _ = setrlimit(Resource::RLIMIT_FSIZE, hard, hard);
    }
    // SAFETY: ignoring a signal installs no handler function.
    let before = unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) };
    let result = run();
    if let Ok(before) = before {
        // SAFETY: restores the previous action.
        let _ = unsafe { signal(Signal::SIGXFSZ, before) };
    }
    if let Ok((soft, hard)) = limits {
        let _ = setrlimit(Resource::RLIMIT_FSIZE, soft, hard);
    }
    result
}

/// Whether the error means that there are no memory files: the kernel is built without them (CONFIG_MEMFD_CREATE), or
/// the environment forbids them (a container's seccomp filter, usually with EPERM).
fn is_missing(error: &io::Error) -> bool {
    matches!(error.raw_os_error().map(Errno::from_raw), Some(Errno::ENOSYS | Errno::EPERM))
}

/// The error that the module's bytes could not be stored.
pub fn failed(error: io::Error) -> Error {
    let error = match is_missing(&error) {
        true => io::Error::other(
            "there is no memfd_create(2) here (the kernel lacks CONFIG_MEMFD_CREATE, or a seccomp filter forbids it), \
             without which only root can load modules",
        ),
        false => error,
    };
    Error::System { doing: "keeping a module's bytes", error }
}

impl Deref for Image {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            // SAFETY: mapped with this length until self is dropped; sealed, so nobody writes to it.
            Image::File(file) => unsafe { std::slice::from_raw_parts(file.address.as_ptr().cast(), file.length.get()) },
            Image::Memory(bytes) => bytes,
        }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mapped with this length. If it fails the mapping stays.
        let _ = unsafe { munmap(self.address, self.length.get()) };
    }
}

fn create() -> io::Result<OwnedFd> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: a string that lives over the call, and flags.
    let create = |flags: libc::c_uint| Errno::result(unsafe { libc::memfd_create(NAME.as_ptr(), flags) });
    let descriptor = match create(flags | MFD_NOEXEC_SEAL) {
        Err(Errno::EINVAL) => create(flags),
        other => other,
    }?;
    // SAFETY: the descriptor is new, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_file_does_not_change() {
        let image = Image::of(b"module").unwrap();
        assert_eq!(&*image, b"module");
        assert!(nix::unistd::write(image.file().unwrap(), b"x").is_err());
        assert!(nix::unistd::ftruncate(image.file().unwrap(), 1).is_err());
        assert_eq!(&*Image::sealed(image.file().unwrap().try_clone_to_owned().unwrap()).unwrap(), b"module");
    }

    #[test]
    fn a_file_that_can_be_written_is_refused() {
        let open: OwnedFd = create().unwrap();
        nix::unistd::write(&open, b"x").unwrap();
        assert!(Image::sealed(open).is_err());
        assert!(Image::sealed(std::fs::File::open("/etc/passwd").unwrap().into()).is_err());
        assert!(Image::of(b"").is_err());
    }

    #[test]
    fn a_file_that_is_too_large_is_refused() {
        for (bytes, fits) in [(MAX_BYTES, true), (MAX_BYTES + 1, false), (1 << 40, false)] {
            // Sparse: it takes no memory.
            let file = create().unwrap();
            nix::unistd::ftruncate(&file, bytes as i64).unwrap();
            // SAFETY: takes numbers.
            Errno::result(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEALS) }).unwrap();
            assert_eq!(Image::sealed(file).is_ok(), fits, "{bytes}");
        }
    }

    /// In a child process in which memfd_create(2) fails with this error.
    fn without_memory_files(errno: Errno, run: impl FnOnce() -> bool) -> bool {
        use nix::sys::wait::{WaitStatus, waitpid};
        use nix::unistd::{ForkResult, fork};
        use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
        let filter = SeccompFilter::new(
            [(libc::SYS_memfd_create, Vec::new())].into_iter().collect(),
            SeccompAction::Allow,
            SeccompAction::Errno(errno as u32),
            std::env::consts::ARCH.try_into().unwrap(),
        );
        let program: BpfProgram = filter.unwrap().try_into().unwrap();
        // SAFETY: the child only makes system calls and allocates memory, which the C library allows after a fork.
        match unsafe { fork() }.unwrap() {
            ForkResult::Parent { child } => matches!(waitpid(child, None), Ok(WaitStatus::Exited(_, 0))),
            ForkResult::Child => {
                let good = seccompiler::apply_filter(&program).is_ok() && run();
                // SAFETY: ends this process without running the parent's exit handlers.
                unsafe { libc::_exit(i32::from(!good)) }
            }
        }
    }

    #[test]
    fn without_memory_files_a_process_loads_from_its_own_memory() {
        for errno in [Errno::ENOSYS, Errno::EPERM] {
            assert!(without_memory_files(errno, || {
                let image = Image::of_own(b"no module");
                let own = image.as_deref().is_ok_and(|bytes| bytes == b"no module");
                // init_module(2) was called, which takes bytes instead of a descriptor.
                let loaded = image.map(|image| crate::module::load::insert(image.file(), &image, ""));
                own && matches!(loaded, Ok(Err(errno)) if errno != Errno::EBADF)
                    && Image::of(b"no module").is_err_and(|error| {
                        is_missing(&error) && failed(error).to_string().contains("CONFIG_MEMFD_CREATE")
                    })
            }));
        }
        assert!(without_memory_files(Errno::ENOMEM, || Image::of_own(b"x").is_err_and(|error| !is_missing(&error))));
    }
}
