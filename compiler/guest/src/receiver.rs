// SPDX-License-Identifier: GPL-2.0-or-later

//! What gets files into a guest that has booted: a region of memory that the guest sees as that of a PCI device (ivshmem), and the
//! program that reads it there.
//!
//! Busybox has no program that maps a file, and memory of a device cannot be read(2). So the receiver is a program of its own, some
//! 200 bytes of code without a library. Its standard input is the device's memory (`resource2` in sysfs):
//!
//!     0     length of the archive: u64, little-endian, as all
//!     8     the time: seconds since 1970, nanoseconds; 0: the clock is left as it is
//!     24    random bytes
//!     4096  the archive
//!
//! It sets the clock, mixes the random bytes into the kernel's, and writes the archive to its standard output.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Size of the region; it has holes where nothing was written.
pub(super) const REGION_MIB: u32 = 256;
const REGION: u64 = (REGION_MIB as u64) << 20;
/// Where the archive starts.
const ARCHIVE: u64 = 4096;
const TIME: u64 = 8;
const RANDOM: u64 = 24;
/// As many as the kernel's generator has in its key.
const RANDOM_BYTES: usize = 32;

// Linux system calls: the number in rax, arguments in rdi, rsi, rdx, r10, r8, r9; rcx and r11 are lost.
std::arch::global_asm!(
    ".pushsection .rodata.spile_guest_receiver,\"a\",@progbits",
    ".globl spile_guest_receiver",
    ".globl spile_guest_receiver_end",
    "spile_guest_receiver:",
    // r12 = mmap(NULL, 4096, PROT_READ, MAP_SHARED, 0, 0)
    "mov esi, 4096",
    "call 2f",
    // clock_settime(CLOCK_REALTIME, r12 + 8)
    "cmp qword ptr [r12 + 8], 0",
    "je 3f",
    "mov eax, 227",
    "xor edi, edi",
    "lea rsi, [r12 + 8]",
    "syscall",
    "3:",
    // r13 = open("/dev/urandom", O_WRONLY); write(r13, r12 + 24, 32); ioctl(r13, RNDRESEEDCRNG, 0)
    "mov eax, 2",
    "lea rdi, [rip + 9f]",
    "mov esi, 1",
    "xor edx, edx",
    "syscall",
    "mov r13, rax",
    "mov eax, 1",
    "mov rdi, r13",
    "lea rsi, [r12 + 24]",
    "mov edx, 32",
    "syscall",
    "mov eax, 16",
    "mov rdi, r13",
    "mov esi, 0x5207",
    "xor edx, edx",
    "syscall",
    // r14 = length; r12 = all of it
    "mov r14, [r12]",
    "lea rsi, [r14 + 4096]",
    "call 2f",
    "add r12, 4096",
    // while (r14) { rax = write(1, r12, r14); r12 += rax; r14 -= rax; }
    "4:",
    "xor edi, edi",
    "test r14, r14",
    "jz 8f",
    "mov eax, 1",
    "mov edi, 1",
    "mov rsi, r12",
    "mov rdx, r14",
    "syscall",
    "test rax, rax",
    "jle 7f",
    "add r12, rax",
    "sub r14, rax",
    "jmp 4b",
    // exit(1)
    "7:",
    "mov edi, 1",
    // exit(edi)
    "8:",
    "mov eax, 60",
    "syscall",
    // r12 = mmap(NULL, rsi, PROT_READ, MAP_SHARED, 0, 0)
    "2:",
    "mov eax, 9",
    "xor edi, edi",
    "mov edx, 1",
    "mov r10d, 1",
    "xor r8d, r8d",
    "xor r9d, r9d",
    "syscall",
    "cmp rax, -4096",
    "ja 7b",
    "mov r12, rax",
    "ret",
    "9:",
    ".asciz \"/dev/urandom\"",
    "spile_guest_receiver_end:",
    ".popsection",
);

unsafe extern "C" {
    static spile_guest_receiver: u8;
    static spile_guest_receiver_end: u8;
}

fn code() -> &'static [u8] {
    let start = &raw const spile_guest_receiver;
    let length = (&raw const spile_guest_receiver_end).addr().saturating_sub(start.addr());
    // SAFETY: both symbols are of the section above, one at its start and one at its end; nothing writes there.
    unsafe { std::slice::from_raw_parts(start, length) }
}

/// The receiver: an ELF file with one segment, its headers and the code.
pub(super) fn program() -> Vec<u8> {
    const BASE: u64 = 0x40_0000;
    const HEADERS: u16 = 64;
    const SEGMENT: u16 = 56;
    const EXECUTABLE: u16 = 2;
    const X86_64: u16 = 62;
    const LOAD: u32 = 1;
    const READ_EXECUTE: u32 = 5;
    let code = code();
    let start = u64::from(HEADERS + SEGMENT);
    let size = start + code.len() as u64;
    let halves = |values: &[u16]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let words = |values: &[u32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let longs = |values: &[u64]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    [
        // 64 bits, little-endian, version 1.
        b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec(),
        halves(&[EXECUTABLE, X86_64]),
        words(&[1]),
        longs(&[BASE + start, HEADERS.into(), 0]),
        words(&[0]),
        halves(&[HEADERS, SEGMENT, 1, 0, 0, 0]),
        words(&[LOAD, READ_EXECUTE]),
        longs(&[0, BASE, BASE, size, size, 4096]),
        code.to_vec(),
    ]
    .concat()
}

/// The host's side of the region.
pub(super) struct Region(File);

impl Region {
    /// Makes one at `path`, which must not exist.
    pub(super) fn new(path: &Path) -> io::Result<Region> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        file.set_len(REGION)?;
        Ok(Region(file))
    }

    /// Whether an archive of this size has room in it.
    pub(super) fn has_room(size: usize) -> bool {
        size as u64 <= REGION - ARCHIVE
    }

    /// Writes an archive, and random bytes.
    pub(super) fn write(&self, archive: &[u8]) -> io::Result<()> {
        use std::io::Read;
        let mut random = [0; RANDOM_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut random)?;
        self.0.write_all_at(&random, RANDOM)?;
        self.0.write_all_at(archive, ARCHIVE)?;
        self.0.write_all_at(&(archive.len() as u64).to_le_bytes(), 0)
    }

    /// Writes the time. A guest that maps the file privately sees it if it has not touched the first page.
    pub(super) fn write_time(&self) -> io::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.0.write_all_at(&now.as_secs().to_le_bytes(), TIME)?;
        self.0.write_all_at(&u64::from(now.subsec_nanos()).to_le_bytes(), TIME + 8)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_receiver_writes_the_archive() {
        let directory = tempfile::tempdir().unwrap();
        let [program, region] = ["receiver", "region"].map(|name| directory.path().join(name));
        std::fs::write(&program, super::program()).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let made = Region::new(&region).unwrap();
        // The time is 0: this machine's clock stays as it is.
        for archive in [vec![], b"x".to_vec(), (0..1_000_000u32).flat_map(u32::to_le_bytes).collect()] {
            made.write(&archive).unwrap();
            let input = File::open(&region).unwrap();
            let output = Command::new(&program).stdin(input).stderr(Stdio::null()).output().unwrap();
            assert!(output.status.success() && output.stdout == archive, "{:?}", output.status);
        }
        let output = Command::new(&program).stdin(Stdio::null()).output().unwrap();
        assert_eq!((output.status.code(), output.stdout), (Some(1), vec![]));
        assert!(Region::has_room(200 << 20) && !Region::has_room(256 << 20));
    }
}
