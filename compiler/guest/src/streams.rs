// SPDX-License-Identifier: GPL-2.0-or-later

//! The guest's four serial ports, each read by a thread, and the state these threads share with the waiting one.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::qemu::Ports;

/// Maximum size of a file from the guest; a larger one in a header means a broken header.
const LARGEST_FILE: u64 = 1 << 30;

/// Receives a file by name and contents.
pub type FileReceiver = Box<dyn FnMut(&str, &[u8]) + Send>;

/// Destinations of the guest's output.
pub struct Streams {
    /// The script's standard output, streamed.
    pub stdout: Box<dyn Write + Send>,
    /// The script's standard error, streamed.
    pub stderr: Box<dyn Write + Send>,
    /// The console, streamed; the outcome contains it in any case.
    pub console: Box<dyn Write + Send>,
    /// Called with each file once the guest has sent it; the outcome contains them in any case.
    pub file: FileReceiver,
    /// Called with a line about each step that takes long.
    pub notice: Box<dyn FnMut(&str) + Send>,
    /// Called if the guest goes on from a saved state.
    pub resumed: Box<dyn FnMut() + Send>,
    /// Called when the guest has booted and starts the script.
    pub ready: Box<dyn FnMut() + Send>,
    /// Commands of a session for its loader while that runs, a line each, such as `disable 3`.
    pub commands: Option<Box<dyn Read + Send>>,
}

impl Streams {
    /// Discards all output.
    pub fn discard() -> Streams {
        Streams {
            stdout: Box::new(io::sink()),
            stderr: Box::new(io::sink()),
            console: Box::new(io::sink()),
            file: Box::new(|_, _| {}),
            notice: Box::new(|_| {}),
            resumed: Box::new(|| {}),
            ready: Box::new(|| {}),
            commands: None,
        }
    }

    /// Passes on the script's output to this process's; notices go to standard error.
    pub fn inherit() -> Streams {
        Streams {
            stdout: Box::new(io::stdout()),
            stderr: Box::new(io::stderr()),
            notice: Box::new(|notice| drop(writeln!(io::stderr(), "spile: guest: {notice}"))),
            ..Streams::discard()
        }
    }
}

/// State received from the guest.
#[derive(Default)]
pub(super) struct State {
    /// The script's processes can be signalled.
    pub(super) ready: bool,
    /// Signals requested before that.
    pub(super) pending: Vec<String>,
    pub(super) status: Option<i32>,
    pub(super) files: BTreeMap<String, Vec<u8>>,
    pub(super) console: Vec<u8>,
    /// The guest is to be killed.
    pub(super) kill: bool,
}

/// State that the threads of a guest's console share.
#[derive(Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Bytes that came from the guest: of the script's output, and of the console's.
    output: AtomicU64,
}

impl Shared {
    /// Changes the state and wakes all threads that wait for it.
    pub(super) fn update<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        result
    }

    /// Bytes that came from the guest so far, but for files.
    pub(super) fn output(&self) -> u64 {
        self.output.load(Ordering::Relaxed)
    }

    /// Returns when the state may have changed.
    pub(super) fn wait(&self, at_most: Duration) {
        let _unused = self.changed.wait_timeout(self.lock(), at_most);
    }

    /// Ignores poisoning: each change is complete in itself.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state and the connection to the guest.
#[derive(Clone)]
pub(super) struct Control {
    pub(super) shared: Arc<Shared>,
    pub(super) writer: Arc<UnixStream>,
}

/// Reads all ports until qemu closes them.
pub(super) fn spawn(ports: Ports, streams: Streams, shared: &Arc<Shared>) -> Vec<JoinHandle<()>> {
    let Streams { stdout, stderr, mut console, mut file, mut ready, .. } = streams;
    let [stdout_shared, stderr_shared, console_shared, control_shared] = std::array::from_fn(|_| Arc::clone(shared));
    vec![
        std::thread::spawn(move || pass(ports.stdout, stdout, &stdout_shared)),
        std::thread::spawn(move || pass(ports.stderr, stderr, &stderr_shared)),
        std::thread::spawn(move || {
            each_chunk(ports.console, &console_shared, |bytes| {
                console_shared.update(|state| state.console.extend_from_slice(bytes));
                // Output for the user only; a closed terminal must not end the guest.
                let _ = console.write_all(bytes).and_then(|()| console.flush());
            });
        }),
        std::thread::spawn(move || {
            // An error here means that the port is closed, as when the guest crashes in the middle of a line.
            let _ = read_control(ports.control, &control_shared, &mut *ready, &mut *file);
        }),
    ]
}

/// Passes on data at once; continues to read if the sink is closed, so that the guest does not stall.
fn pass(port: UnixStream, mut to: Box<dyn Write + Send>, shared: &Shared) {
    let mut open = true;
    each_chunk(port, shared, |bytes| {
        open = open && to.write_all(bytes).and_then(|()| to.flush()).is_ok();
    });
}

fn each_chunk(mut port: UnixStream, shared: &Shared, mut take: impl FnMut(&[u8])) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match port.read(&mut buffer) {
            Ok(0) => return,
            Ok(size) => {
                shared.output.fetch_add(size as u64, Ordering::Relaxed);
                take(buffer.get(..size).unwrap_or(&buffer));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// The host's side of the protocol described at the top of init.sh.
fn read_control(
    port: UnixStream,
    shared: &Shared,
    ready: &mut dyn FnMut(),
    file: &mut dyn FnMut(&str, &[u8]),
) -> io::Result<()> {
    let writer = port.try_clone()?;
    let mut port = BufReader::new(port);
    let mut line = Vec::new();
    loop {
        line.clear();
        if port.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        match parse(&String::from_utf8_lossy(&line)) {
            Some(Message::Ready) => {
                ready();
                let pending = shared.update(|state| {
                    state.ready = true;
                    std::mem::take(&mut state.pending)
                });
                pending.iter().for_each(|name| send_signal(&writer, name));
            }
            Some(Message::Exit(status)) => {
                shared.update(|state| state.status = Some(status));
                // A guest that accepts no more has ended.
                let _ = (&writer).write_all(b"done\n");
            }
            Some(Message::File(name, size)) => {
                let mut bytes = Vec::new();
                (&mut port).take(size).read_to_end(&mut bytes)?;
                if bytes.len() as u64 == size {
                    file(&name, &bytes);
                    shared.update(|state| state.files.insert(name, bytes));
                }
            }
            None => {}
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Message {
    Ready,
    Exit(i32),
    File(String, u64),
}

fn parse(line: &str) -> Option<Message> {
    let line = line.trim_end();
    match line.split_once(' ') {
        None if line == "ready" => Some(Message::Ready),
        Some(("exit", status)) => Some(Message::Exit(status.parse().ok()?)),
        Some(("file", rest)) => {
            let (name, size) = rest.rsplit_once(' ')?;
            let size = size.parse().ok().filter(|size| *size <= LARGEST_FILE)?;
            Some(Message::File(name.to_string(), size))
        }
        _ => None,
    }
}

impl Control {
    /// Sends the signal to the guest, as soon as it is ready for signals.
    pub(super) fn signal(&self, name: &str) {
        let ready = self.shared.update(|state| {
            if !state.ready {
                state.pending.push(name.to_string());
            }
            state.ready
        });
        if ready {
            send_signal(&self.writer, name);
        }
    }
}

/// Runs a command in a guest that is ready, beside its script. Its output is discarded.
pub(super) fn send_command(mut writer: &UnixStream, command: &str) {
    let _ = writeln!(writer, "run {command}");
}

/// A guest that has ended need not be signalled.
fn send_signal(mut writer: &UnixStream, name: &str) {
    let _ = writeln!(writer, "signal {name}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_the_guest() {
        assert_eq!(parse("ready\n"), Some(Message::Ready));
        assert_eq!(parse("exit 130\n"), Some(Message::Exit(130)));
        assert_eq!(parse("file a b.txt 12\n"), Some(Message::File("a b.txt".to_string(), 12)));
        assert_eq!(parse("file x 99999999999\n"), None);
        assert_eq!(parse("exit x\n"), None);
    }

    #[test]
    fn files_may_hold_any_byte() {
        let (host, mut guest) = UnixStream::pair().expect("a pair of sockets");
        guest.write_all(b"ready\nfile a 6\nexit\n\nfile b 1\n\xffexit 3\n").expect("room for it");
        guest.shutdown(std::net::Shutdown::Write).expect("no more to say");
        let shared = Shared::default();
        let (mut seen, mut ready) = (Vec::new(), 0);
        read_control(host, &shared, &mut || ready += 1, &mut |name, bytes| {
            seen.push((name.to_string(), bytes.to_vec()));
        })
        .expect("read to the end");
        assert_eq!(seen, [("a".to_string(), b"exit\n\n".to_vec()), ("b".to_string(), b"\xff".to_vec())]);
        assert!(shared.update(|state| state.ready && state.status == Some(3)) && ready == 1);
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut guest, &mut answer).expect("the answer of the host");
        assert_eq!(answer, "done\n");
    }
}
