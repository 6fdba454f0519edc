// SPDX-License-Identifier: GPL-2.0-or-later

//! `--metrics unix:PATH`: serves Prometheus text on a socket while the session runs.
//!
//! A separate thread answers one client after the other: a client that sends `GET` or `HEAD` gets an HTTP/1.0 answer
//! (`curl --unix-socket`), one that sends nothing the text only (`socat`). A slow client is dropped after [`PATIENCE`];
//! the session does not depend on any of them.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, poll};

use crate::error::Error;

/// Time limit for a client. The end of the session does not wait for it.
const PATIENCE: Duration = Duration::from_secs(1);
/// A client that has sent nothing by then gets the text only.
const SILENCE: Duration = Duration::from_millis(200);
/// Maximum length of a request.
const MAX_REQUEST: usize = 8 << 10;

/// Interval of checks that the socket still exists, in milliseconds.
const LOOK_INTERVAL: u16 = 5000;

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
        if is_socket && UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            fs::remove_file(path).map_err(failed)?;
        }
        let (listener, inode) = listen(path).map_err(failed)?;
        Ok(Exporter { listener, path: path.to_path_buf(), inode })
    }

    /// Serves until `stop_wanted` is readable.
    pub fn serve(&mut self, stop_wanted: BorrowedFd<'_>, text: impl Fn() -> String) {
        loop {
            let mut descriptors =
                [PollFd::new(self.listener.as_fd(), PollFlags::POLLIN), PollFd::new(stop_wanted, PollFlags::POLLIN)];
            if poll(&mut descriptors, LOOK_INTERVAL).is_err_and(|errno| errno != nix::errno::Errno::EINTR) {
                return;
            }
            let [client, stop] = descriptors.map(|descriptor| descriptor.any().unwrap_or(false));
            if stop {
                return;
            }
            if client && let Ok((stream, _)) = self.listener.accept() {
                // Ignore clients that are gone or slow.
                let _ = answer(stream, stop_wanted, &text);
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

/// A client, with its time limit.
struct Client<'s> {
    stream: UnixStream,
    until: Instant,
    /// Readable when the session has ended.
    stop: BorrowedFd<'s>,
}

impl Client<'_> {
    /// Waits for one of these for at most this time. Err: the client's time is over, or the session.
    fn wait(&self, events: PollFlags, most: Duration) -> io::Result<bool> {
        let left = self.until.saturating_duration_since(Instant::now());
        let mut descriptors = [PollFd::new(self.stream.as_fd(), events), PollFd::new(self.stop, PollFlags::POLLIN)];
        // Round up: a timeout of 0 would busy-wait.
        let milliseconds = left.min(most).as_millis().saturating_add(1);
        let count = match poll(&mut descriptors, u16::try_from(milliseconds).unwrap_or(u16::MAX)) {
            Err(nix::errno::Errno::EINTR) => 0,
            other => other?,
        };
        let [client, stop] = descriptors.map(|descriptor| descriptor.any().unwrap_or(false));
        match stop || left.is_zero() {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => Ok(client && count > 0),
        }
    }

    fn write(&mut self, mut text: &[u8]) -> io::Result<()> {
        while !text.is_empty() {
            match self.stream.write(text) {
                Ok(count) => text = text.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait(PollFlags::POLLOUT, PATIENCE)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The request, up to the empty line at its end.
    fn read_request(&mut self) -> io::Result<Vec<u8>> {
        let mut request = Vec::new();
        let mut buffer = [0u8; 1024];
        while request.len() < MAX_REQUEST && !request.windows(4).any(|end| end == b"\r\n\r\n") {
            match self.stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => request.extend(buffer.iter().take(count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !self.wait(PollFlags::POLLIN, SILENCE)? {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(request)
    }
}

fn answer(stream: UnixStream, stop: BorrowedFd<'_>, text: &impl Fn() -> String) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let mut client = Client { stream, until: Instant::now() + PATIENCE, stop };
    let request = client.read_request()?;
    let (is_http, wants_body) =
        (request.starts_with(b"GET ") || request.starts_with(b"HEAD "), !request.starts_with(b"HEAD "));
    let text = text();
    if is_http {
        let head = "HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nConnection: close\r\nContent-Length: ";
        client.write(format!("{head}{}\r\n\r\n", text.len()).as_bytes())?;
    }
    if wants_body {
        client.write(text.as_bytes())?;
    }
    client.stream.shutdown(std::net::Shutdown::Write)
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
    fn a_file_in_its_place_is_not_touched() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(Exporter::open(file.path()).is_err());
        assert!(file.path().exists());
        assert!(Exporter::open(Path::new("/no/such/directory/socket")).is_err());
    }
}
