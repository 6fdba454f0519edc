// SPDX-License-Identifier: GPL-2.0-or-later

//! A qemu process: its command line, its four serial ports and its monitor as streams, its exit.
//!
//! They are sockets in a private directory, so that they carry any byte, in both directions, and close when qemu
//! exits. qemu gets its own process group: ^C on the terminal is for the guest's script, not for qemu.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use super::acceleration::Acceleration;
use super::error::Error;
use super::receiver;

/// Names of the ports ttyS0 to ttyS3, in this order, and of the monitor.
const PORTS: [&str; 5] = ["console", "stdout", "stderr", "control", MONITOR];
/// The connection for qemu's own commands.
const MONITOR: &str = "monitor";
/// Time limit for qemu to connect its ports; it does so before it starts the guest.
const CONNECT: Duration = Duration::from_secs(20);
/// The file of qemu's messages in its private directory, and how many bytes of them are shown.
const MESSAGES: &str = "messages";
const SHOWN: u64 = 2048;

/// qemu's arguments besides the ports.
#[derive(Clone, Copy)]
pub(super) struct Machine<'a> {
    /// None: the one that is installed.
    pub(super) emulator: Option<&'a Path>,
    pub(super) acceleration: Acceleration,
    pub(super) kernel: &'a Path,
    /// None: nothing reads it, as the guest has booted.
    pub(super) initrd: Option<&'a Path>,
    pub(super) append: &'a str,
    pub(super) memory_mib: u32,
    pub(super) cpus: u32,
    pub(super) memory: Memory<'a>,
}

/// Where the guest's memory is.
#[derive(Clone, Copy)]
pub(super) enum Memory<'a> {
    /// In qemu's own.
    Anonymous,
    /// In this file, to be resumed from.
    Saved(&'a File),
    /// As it is in this file; what the guest changes is its own. The monitor is asked for the rest of its state.
    Resumed(&'a File),
}

impl<'a> Memory<'a> {
    /// The file, and the value of qemu's `share`.
    fn file(self) -> Option<(&'a File, &'static str)> {
        match self {
            Memory::Anonymous => None,
            Memory::Saved(file) => Some((file, "on")),
            Memory::Resumed(file) => Some((file, "off")),
        }
    }
}

/// The file of the region ([`super::receiver`]) in the private directory of a qemu whose memory is in a file.
pub(super) const REGION: &str = "region";

/// The guest's side of ttyS0 to ttyS3, and qemu's monitor.
pub(super) struct Ports {
    pub(super) console: UnixStream,
    pub(super) stdout: UnixStream,
    pub(super) stderr: UnixStream,
    pub(super) control: UnixStream,
    pub(super) monitor: UnixStream,
}

/// The path of qemu: from PATH, then from where distributions install it.
pub(super) fn find() -> Result<PathBuf, Error> {
    let names = ["qemu-system-x86_64", "qemu-kvm"];
    let elsewhere: Vec<PathBuf> =
        ["/usr/bin", "/usr/libexec"].iter().flat_map(|place| names.map(|name| Path::new(place).join(name))).collect();
    let found = names.iter().find_map(|name| which::which(name).ok());
    found.or_else(|| elsewhere.iter().find(|file| file.is_file()).cloned()).ok_or_else(|| {
        let looked = names.map(|name| Path::new("$PATH").join(name)).into_iter().chain(elsewhere).collect();
        Error::Missing { what: "qemu", looked, package: "qemu-system-x86".to_string() }
    })
}

/// First line of `qemu --version`; empty on failure.
pub(super) fn version(qemu: &Path) -> String {
    let output = Command::new(qemu).arg("--version").stdin(Stdio::null()).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_string()
}

/// The option of a device at a socket; qemu reads two commas as one of a value.
fn socket(name: &str, path: &Path) -> String {
    format!("socket,id={name},path={}", path.display().to_string().replace(',', ",,"))
}

/// Starts qemu; `directory` is private to it and must outlive it.
pub(super) fn start(machine: &Machine, directory: &Path) -> Result<(Child, Ports), Error> {
    let mut command = Command::new(match machine.emulator {
        Some(program) => program.to_path_buf(),
        None => find()?,
    });
    command.args(["-accel", machine.acceleration.argument(), "-cpu", machine.acceleration.processor()]);
    if let Some(counting) = machine.acceleration.counting() {
        command.args(["-icount", counting]);
    }
    command.args(["-smp", &machine.cpus.to_string(), "-m", &format!("{}M", machine.memory_mib)]);
    command.args(["-display", "none", "-nodefaults", "-no-user-config", "-no-reboot"]);
    let kernel = std::path::absolute(machine.kernel).map_err(Error::file("finding", machine.kernel))?;
    command.arg("-kernel").arg(kernel);
    if let Some(initrd) = machine.initrd {
        command.arg("-initrd").arg(initrd);
    }
    command.args(["-append", machine.append]);
    if let Some((file, share)) = machine.memory.file() {
        // Commands to the monitor name files in it.
        command.current_dir(directory);
        // Not by its name, which may be another file's meanwhile.
        let inherited = inherit(&mut command, file);
        command.arg("-object").arg(format!(
            "memory-backend-file,id=memory,size={}M,mem-path=/proc/self/fd/{inherited},share={share}",
            machine.memory_mib
        ));
        command.args(["-machine", "memory-backend=memory"]);
        command.arg("-object").arg(format!(
            "memory-backend-file,id={REGION},size={}M,mem-path={REGION},share={share}",
            receiver::REGION_MIB
        ));
        // As the only one that has the region, it can be saved and resumed.
        command.arg("-device").arg(format!("ivshmem-plain,memdev={REGION},master=on"));
    }
    if let Memory::Resumed(_) = machine.memory {
        command.args(["-incoming", "defer"]);
    }
    let mut listeners = Vec::new();
    for name in PORTS {
        let path = directory.join(name);
        listeners.push(UnixListener::bind(&path).map_err(Error::file("listening at", &path))?);
        command.arg("-chardev").arg(socket(name, &path));
        match name {
            MONITOR => command.args(["-mon", &format!("chardev={name},mode=readline")]),
            _ => command.args(["-serial", &format!("chardev:{name}")]),
        };
    }
    // A file: nobody reads a pipe while the guest runs.
    let path = directory.join(MESSAGES);
    let written = File::create(&path).map_err(Error::file("creating", &path))?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(written).process_group(0);
    die_with_parent(&mut command);
    let program = command.get_program().to_owned();
    let mut child = command.spawn().map_err(Error::file("starting", PathBuf::from(program)))?;
    match accept_all(&listeners, &mut child) {
        Ok(Some([console, stdout, stderr, control, monitor])) => {
            Ok((child, Ports { console, stdout, stderr, control, monitor }))
        }
        outcome => {
            kill(&mut child);
            let mut messages = messages(directory);
            if let Err(error) = outcome {
                messages.push_str(&error.to_string());
            }
            Err(Error::Start { messages })
        }
    }
}

/// The end of what a qemu with this private directory has written to its standard error; empty if that cannot be read.
pub(super) fn messages(directory: &Path) -> String {
    let end = || {
        let mut file = File::open(directory.join(MESSAGES))?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(SHOWN)))?;
        let mut bytes = Vec::new();
        file.take(SHOWN).read_to_end(&mut bytes)?;
        io::Result::Ok(String::from_utf8_lossy(&bytes).trim().to_string())
    };
    end().unwrap_or_default()
}

/// Kills and reaps qemu; no effect if it has exited.
pub(super) fn kill(child: &mut Child) {
    // Both fail only for a process that has exited.
    let _ = child.kill();
    let _ = child.wait();
}

/// A guest must not outlive spile when spile is killed.
fn die_with_parent(command: &mut Command) {
    // SAFETY: prctl(2) is one system call; it takes no lock and allocates nothing between fork and exec.
    unsafe {
        command.pre_exec(|| nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL).map_err(io::Error::from));
    }
}

/// The command's program has this file open, by the returned number.
fn inherit(command: &mut Command, file: &File) -> RawFd {
    let number = file.as_raw_fd();
    let open = move || {
        // SAFETY: between fork and exec, what this process has open is open.
        let file = unsafe { BorrowedFd::borrow_raw(number) };
        fcntl(file, FcntlArg::F_SETFD(FdFlag::empty())).map(drop).map_err(io::Error::from)
    };
    // SAFETY: fcntl(2) is one system call; it takes no lock and allocates nothing between fork and exec.
    unsafe {
        command.pre_exec(open);
    }
    number
}

/// The connections in the listeners' order; empty if qemu exits or does not connect.
fn accept_all(listeners: &[UnixListener], child: &mut Child) -> io::Result<Option<[UnixStream; PORTS.len()]>> {
    let start = Instant::now();
    let mut streams = Vec::new();
    for listener in listeners {
        listener.set_nonblocking(true)?;
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false)?;
                    streams.push(stream);
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if child.try_wait()?.is_some() || start.elapsed() > CONNECT {
                        return Ok(None);
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(streams.try_into().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_in_paths_are_doubled() {
        assert_eq!(socket("console", Path::new("/a,b/c")), "socket,id=console,path=/a,,b/c");
    }
}
