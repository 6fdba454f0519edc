// SPDX-License-Identifier: GPL-2.0-or-later

//! The bytes of a module in a memory file that is sealed (memfd_create(2)): what is checked is what the kernel loads, whoever
//! else holds a descriptor of it, and whatever becomes of the file that the bytes came from.

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

/// A module that is larger is refused, in bytes.
const MAX_BYTES: usize = 256 << 20;
const SEALS: libc::c_int = libc::F_SEAL_SEAL | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE;
/// Linux 6.3; where `vm.memfd_noexec` is 2 it has to be given (include/uapi/linux/memfd.h).
const MFD_NOEXEC_SEAL: libc::c_uint = 8;
const NAME: &CStr = c"module";

/// A sealed memory file, mapped for reading as long as this lives.
#[derive(Debug)]
pub struct Image {
    descriptor: OwnedFd,
    address: NonNull<libc::c_void>,
    length: NonZero<usize>,
}

impl Image {
    /// A new one with these bytes.
    pub fn of(bytes: &[u8]) -> io::Result<Image> {
        let file = std::fs::File::from(create()?);
        without_size_limit(|| io::Write::write_all(&mut &file, bytes))?;
        // SAFETY: takes numbers.
        Errno::result(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEALS) })?;
        Image::sealed(file.into())
    }

    /// One that another process has made. An error: it is not sealed, so that its maker can still change it.
    pub fn sealed(descriptor: OwnedFd) -> io::Result<Image> {
        // SAFETY: takes numbers. Files of other file systems have no seals (EINVAL).
        let seals = Errno::result(unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_GET_SEALS) })?;
        if seals & SEALS != SEALS {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the memory file is not sealed"));
        }
        let size = nix::sys::stat::fstat(&descriptor)?.st_size;
        let length = usize::try_from(size).ok().filter(|size| *size <= MAX_BYTES).and_then(NonZero::new);
        let length = length.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it is empty, or too large"))?;
        // SAFETY: a new mapping at a place that the kernel chooses, of a file that can neither change nor shrink. (A shared mapping
        // of a file that cannot be written is refused before Linux 6.7.)
        let address = unsafe { mmap(None, length, ProtFlags::PROT_READ, MapFlags::MAP_PRIVATE, &descriptor, 0) }?;
        Ok(Image { descriptor, address, length })
    }
}

/// A limit of files' sizes (RLIMIT_FSIZE) is about files that stay: raised as far as this process may, and what is beyond it is an
/// error instead of a signal.
fn without_size_limit<T>(run: impl FnOnce() -> T) -> T {
    let limits = getrlimit(Resource::RLIMIT_FSIZE);
    if let Ok((_, hard)) = limits
        && setrlimit(Resource::RLIMIT_FSIZE, RLIM_INFINITY, RLIM_INFINITY).is_err()
    {
        let _ = setrlimit(Resource::RLIMIT_FSIZE, hard, hard);
    }
    // SAFETY: ignoring a signal runs no code of ours.
    let before = unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) };
    let result = run();
    if let Ok(before) = before {
        // SAFETY: what was there before.
        let _ = unsafe { signal(Signal::SIGXFSZ, before) };
    }
    if let Ok((soft, hard)) = limits {
        let _ = setrlimit(Resource::RLIMIT_FSIZE, soft, hard);
    }
    result
}

impl Deref for Image {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: mapped with this length until self is dropped; sealed, so that nobody writes there.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr().cast(), self.length.get()) }
    }
}

impl AsFd for Image {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // SAFETY: mapped with this length. Failing, it stays mapped.
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
    // SAFETY: new, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_does_not_change() {
        let image = Image::of(b"module").unwrap();
        assert_eq!(&*image, b"module");
        assert!(nix::unistd::write(image.as_fd(), b"x").is_err());
        assert!(nix::unistd::ftruncate(image.as_fd(), 1).is_err());
        assert_eq!(&*Image::sealed(image.as_fd().try_clone_to_owned().unwrap()).unwrap(), b"module");
    }

    #[test]
    fn what_can_be_written_is_refused() {
        let open: OwnedFd = create().unwrap();
        nix::unistd::write(&open, b"x").unwrap();
        assert!(Image::sealed(open).is_err());
        assert!(Image::sealed(std::fs::File::open("/etc/passwd").unwrap().into()).is_err());
        assert!(Image::of(b"").is_err());
    }
}
