// SPDX-License-Identifier: GPL-2.0-or-later

//! `--metrics unix:PATH`: serves Prometheus text on a socket while the session runs.
//!
//! A separate thread answers clients: one that sends `GET` or `HEAD` gets an HTTP/1.0 answer (`curl --unix-socket`), one that sends
//! nothing the text only (`socat`). A slow client is dropped after [`PATIENCE`], and keeps neither others nor the session waiting.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, socket};

use crate::error::Error;

/// Time limit for a client. The end of the session does not wait for it.
const PATIENCE: Duration = Duration::from_secs(1);
/// A client that has sent nothing until then gets the text only.
const SILENCE: Duration = Duration::from_millis(200);
/// Maximum length of a request.
const MAX_REQUEST: usize = 8 << 10;

/// Interval of checks that the socket still exists.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// Prefix of a socket's path in `--metrics`.
pub const PREFIX: &str = "unix:";

/// A socket that serves the metrics of the session (`--metrics unix:PATH`).
#[derive(Debug)]
pub struct Exporter {
    listener: UnixListener,
    path: PathBuf,
    /// Inode of the socket's file.
    inode: u64,
}

impl Exporter {
    /// The socket of a killed loader is replaced; one in use is not.
    pub fn open(path: &Path) -> Result<Exporter, Error> {
        let failed = |error| Error::OpenOutput { path: path.to_path_buf(), error };
        let is_socket = fs::symlink_metadata(path).is_ok_and(|data| data.file_type().is_socket());
        if is_socket && is_abandoned(path) {
            fs::remove_file(path).map_err(failed)?;
        }
        let (listener, inode) = listen(path).map_err(failed)?;
        Ok(Exporter { listener, path: path.to_path_buf(), inode })
    }

    /// Serves until `stop_wanted` is readable.
    pub fn serve(&mut self, stop_wanted: BorrowedFd<'_>, text: impl Fn() -> String) {
        let mut clients: VecDeque<Client> = VecDeque::new();
        loop {
            let mut descriptors = vec![
                PollFd::new(stop_wanted, PollFlags::POLLIN),
                PollFd::new(self.listener.as_fd(), PollFlags::POLLIN),
            ];
            descriptors.extend(clients.iter().map(|client| PollFd::new(client.stream.as_fd(), client.events())));
            let next = clients.iter().map(Client::left).min().unwrap_or(LOOK_INTERVAL);
            // Rounded up: with a timeout of 0 it would poll again and again.
            let milliseconds = u16::try_from(next.min(LOOK_INTERVAL).as_millis() + 1).unwrap_or(u16::MAX);
            if poll(&mut descriptors, milliseconds).is_err_and(|errno| errno != nix::errno::Errno::EINTR) {
                return;
            }
            let mut ready = descriptors.iter().map(|descriptor| descriptor.any().unwrap_or(false));
            let (stop, is_called) = (ready.next().unwrap_or(false), ready.next().unwrap_or(false));
            let ready: Vec<bool> = ready.collect();
            if stop {
                return;
            }
            let mut ready = ready.into_iter();
            clients.retain_mut(|client| {
                let is_due = ready.next().unwrap_or(false) || client.left().is_zero();
                !is_due || client.go_on(&text)
            });
            if is_called && let Ok((stream, _)) = self.listener.accept() {
                if clients.len() >= MOST_CLIENTS {
                    clients.pop_front();
                }
                clients.extend(Client::new(stream));
            }
            self.come_back();
        }
    }

    /// Recreates a socket whose file was removed; a file that replaced it stays.
    fn come_back(&mut self) {
        let is_gone = fs::symlink_metadata(&self.path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        // If the directory is missing, retry later.
        if is_gone && let Ok((listener, inode)) = listen(&self.path) {
            (self.listener, self.inode) = (listener, inode);
        }
    }
}

/// Whether nobody listens to the socket. Does not wait: a listener that accepts nobody would keep the session from
/// starting.
fn is_abandoned(path: &Path) -> bool {
    let connect = || -> nix::Result<()> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
        nix::sys::socket::connect(socket.as_raw_fd(), &UnixAddr::new(path)?)
    };
    connect() == Err(nix::errno::Errno::ECONNREFUSED)
}

fn listen(path: &Path) -> io::Result<(UnixListener, u64)> {
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    Ok((listener, fs::symlink_metadata(path)?.ino()))
}

impl Drop for Exporter {
    fn drop(&mut self) {
        // A file of another process stays; one that cannot be removed is replaced by the next loader.
        if fs::symlink_metadata(&self.path).is_ok_and(|data| data.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Clients that are served at the same time; the one that has been there longest makes room for another.
const MOST_CLIENTS: usize = 64;

/// A client, with its time limit. Nothing here waits for it.
struct Client {
    stream: UnixStream,
    begun: Instant,
    /// When it last sent something.
    heard: Instant,
    request: Vec<u8>,
    /// What is left to write; `None`: the request is not complete.
    answer: Option<VecDeque<u8>>,
}

impl Client {
    fn new(stream: UnixStream) -> io::Result<Client> {
        stream.set_nonblocking(true)?;
        let now = Instant::now();
        Ok(Client { stream, begun: now, heard: now, request: Vec::new(), answer: None })
    }

    /// Time until it is served without a request, or dropped.
    fn left(&self) -> Duration {
        let left = PATIENCE.saturating_sub(self.begun.elapsed());
        match self.answer {
            Some(_) => left,
            None => left.min(SILENCE.saturating_sub(self.heard.elapsed())),
        }
    }

    fn events(&self) -> PollFlags {
        if self.answer.is_some() { PollFlags::POLLOUT } else { PollFlags::POLLIN }
    }

    /// Serves the client without blocking; false: it is done, gone, or out of time.
    fn go_on(&mut self, text: &impl Fn() -> String) -> bool {
        if self.answer.is_none() {
            match self.read_request() {
                Ok(true) => self.answer = Some(answer(&self.request, text)),
                Ok(false) if self.left().is_zero() => self.answer = Some(answer(&self.request, text)),
                Ok(false) => return true,
                Err(_) => return false,
            }
        }
        self.write().is_ok_and(|is_over| !is_over) && !self.left().is_zero()
    }

    /// Whether all of the request is there: an empty line at its end, or no more comes.
    fn read_request(&mut self) -> io::Result<bool> {
        let mut buffer = [0u8; 1024];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(true),
                Ok(count) => {
                    self.request.extend(buffer.iter().take(count));
                    self.heard = Instant::now();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if self.request.len() >= MAX_REQUEST || self.request.windows(4).any(|end| end == b"\r\n\r\n") {
                return Ok(true);
            }
        }
    }

    /// Writes some of the answer, so that a fast reader does not keep the others waiting; true: the answer is complete.
    fn write(&mut self) -> io::Result<bool> {
        let Some(left) = &mut self.answer else { return Ok(false) };
        let (next, _) = left.as_slices();
        match self.stream.write(next) {
            Ok(count) => drop(left.drain(..count)),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
        if left.is_empty() {
            self.stream.shutdown(std::net::Shutdown::Write)?;
        }
        Ok(left.is_empty())
    }
}

fn answer(request: &[u8], text: &impl Fn() -> String) -> VecDeque<u8> {
    let is_head = request.starts_with(b"HEAD ");
    let text = text();
    let mut answer = match is_head || request.starts_with(b"GET ") {
        true => format!(
            "HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            text.len()
        ),
        false => String::new(),
    };
    if !is_head {
        answer.push_str(&text);
    }
    VecDeque::from(answer.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::eventfd::EventFd;

    #[test]
    fn clients_are_answered_as_they_ask_until_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("metrics");
        // As left by a killed loader.
        drop(UnixListener::bind(&path).unwrap());
        let mut exporter = Exporter::open(&path).unwrap();
        assert!(Exporter::open(&path).is_err(), "it is listened to");
        let stop = EventFd::new().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| exporter.serve(stop.as_fd(), || "spile_running 1\n".to_string()));
            let ask = |request: &[u8]| {
                let mut stream = UnixStream::connect(&path).unwrap();
                stream.write_all(request).unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).unwrap();
                answer
            };
            assert_eq!(ask(b""), "spile_running 1\n");
            let answer = ask(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
            assert!(
                answer.starts_with("HTTP/1.0 200 OK\r\n")
                    && answer.ends_with("Content-Length: 16\r\n\r\nspile_running 1\n"),
                "{answer}"
            );
            assert!(ask(b"HEAD / HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n"));
            // A request in pieces with short delays.
            let mut slow = UnixStream::connect(&path).unwrap();
            for piece in [&b"GET "[..], b"/ HTTP/1.1\r\n", b"\r\n"] {
                slow.write_all(piece).unwrap();
                std::thread::sleep(SILENCE * 3 / 5);
            }
            let mut answer = String::new();
            slow.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
            // Any client triggers the check.
            let last = UnixStream::connect(&path).unwrap();
            fs::remove_file(&path).unwrap();
            drop(last);
            let deadline = Instant::now() + Duration::from_secs(60);
            while !path.exists() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
            }
            assert_eq!(ask(b""), "spile_running 1\n", "it has come back");
            stop.write(1).unwrap();
        });
        drop(exporter);
        assert!(!path.exists());
    }

    #[test]
    fn a_slow_client_does_not_delay_others() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("metrics");
        let mut exporter = Exporter::open(&path).unwrap();
        let stop = EventFd::new().unwrap();
        std::thread::scope(|scope| {
            let serving = scope.spawn(|| exporter.serve(stop.as_fd(), || "x".repeat(64 << 20)));
            let slow = UnixStream::connect(&path).unwrap();
            let reader = slow.try_clone().unwrap();
            // Each read makes room, so every single write succeeds.
            scope.spawn(move || {
                while (&reader).read(&mut [0; 4096]).is_ok_and(|count| count > 0) {
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            std::thread::sleep(Duration::from_millis(400));
            stop.write(1).unwrap();
            let deadline = Instant::now() + Duration::from_secs(10);
            while !serving.is_finished() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(10));
            }
            let is_over = serving.is_finished();
            slow.shutdown(std::net::Shutdown::Both).unwrap();
            assert!(is_over);
        });
    }

    #[test]
    fn a_client_is_served_for_a_second() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("metrics");
        let mut exporter = Exporter::open(&path).unwrap();
        let stop = EventFd::new().unwrap();
        std::thread::scope(|scope| {
            let serving = scope.spawn(|| exporter.serve(stop.as_fd(), || "x".repeat(64 << 20)));
            let mut slow = UnixStream::connect(&path).unwrap();
            // At this pace all of it takes 16 seconds.
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_secs(10) && slow.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {
                std::thread::sleep(Duration::from_millis(1));
            }
            let served = begun.elapsed();
            stop.write(1).unwrap();
            serving.join().unwrap();
            assert!(served < Duration::from_secs(8), "{served:?}");
        });
    }

    #[test]
    fn idle_clients_delay_neither_others_nor_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("metrics");
        let mut exporter = Exporter::open(&path).unwrap();
        let stop = EventFd::new().unwrap();
        std::thread::scope(|scope| {
            let serving = scope.spawn(|| exporter.serve(stop.as_fd(), || "x".repeat(4 << 20)));
            // They send nothing, a byte, or a request whose answer they never read; later ones replace the first.
            let mut idle: Vec<UnixStream> = Vec::new();
            for turn in 0..300 {
                let mut client = UnixStream::connect(&path).unwrap();
                client.write_all([&b""[..], b"G", b"GET / HTTP/1.1\r\n\r\n"][turn % 3]).unwrap();
                idle.push(client);
            }
            let begun = Instant::now();
            let mut answers = 0;
            // One of many may lose its place to another.
            while answers < 3 && begun.elapsed() < Duration::from_secs(20) {
                let mut stream = UnixStream::connect(&path).unwrap();
                let mut answer = Vec::new();
                let asked = stream.write_all(b"GET / HTTP/1.1\r\n\r\n").and_then(|()| stream.read_to_end(&mut answer));
                answers += usize::from(asked.is_ok() && answer.len() > 4 << 20);
            }
            assert!(answers == 3 && begun.elapsed() < Duration::from_secs(10), "{answers} after {:?}", begun.elapsed());
            let begun = Instant::now();
            stop.write(1).unwrap();
            serving.join().unwrap();
            assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        });
    }

    #[test]
    fn a_listener_that_accepts_nobody_delays_no_session() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("metrics");
        let _listener = UnixListener::bind(&path).unwrap();
        let mut waiting = Vec::new();
        // Until its queue is full.
        for _ in 0..10_000 {
            let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
            let client = socket(AddressFamily::Unix, SockType::Stream, flags, None).unwrap();
            if nix::sys::socket::connect(client.as_raw_fd(), &UnixAddr::new(&path).unwrap()).is_err() {
                break;
            }
            waiting.push(client);
        }
        let begun = Instant::now();
        assert!(Exporter::open(&path).is_err() && begun.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn a_file_in_its_place_is_not_touched() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(Exporter::open(file.path()).is_err());
        assert!(file.path().exists());
        assert!(Exporter::open(Path::new("/no/such/directory/socket")).is_err());
    }
}
