// SPDX-License-Identifier: GPL-2.0-or-later

//! Debug information from debuginfod servers: an object's build-id to the file that has its DWARF, over HTTP, once.
//!
//! `GET URL/buildid/HEX/debuginfo`, as described in debuginfod(8). What comes is kept in the cache, as an entry whose only part
//! is the file.
//!
//! curl(1) sends the request, over http as over https: it knows the machine's certificates and proxies. The crate ureq
//! with rustls would be 25 more crates, a minute of processor time in each full build, and 2 MB of the program, with a
//! list of authorities of its own; without TLS it was 10 crates for http only, in addition to curl.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::Elf;
use spile_base::cache::{Cache, Key, Kind, size_text};
use spile_base::programs;

const CONNECT: Duration = Duration::from_secs(10);
/// elfutils' default for DEBUGINFOD_TIMEOUT: a server unpacks a package before it answers.
const ANSWER: Duration = Duration::from_secs(90);
/// The longest that a vmlinux over a slow line takes.
const WHOLE: Duration = Duration::from_secs(3600);
/// Larger files are refused: the largest vmlinux with debug information has some 1 GB.
const MAX_FILE: u64 = 2 << 30;
/// Least bytes per second, averaged over an answer, that a server must send.
const SLOWEST: u64 = 1024;
/// Bytes of all headers of an answer together: of those before its own, too (status 1xx, and redirections over https).
const MAX_HEAD: usize = 1 << 16;
/// Steps of the bar.
const BAR: u64 = 24;

/// The debuginfod servers to ask, in order.
pub struct Servers {
    urls: Vec<String>,
    answer: Duration,
    /// Shows progress to the user: each text replaces the one before.
    say: Box<dyn Fn(&str)>,
}

/// `$DEBUGINFOD_TIMEOUT`: seconds; 0, as in elfutils, for no other limit than that of the whole answer.
fn timeout(text: &str) -> Duration {
    match text.trim().parse() {
        Ok(0) => WHOLE,
        Ok(seconds) => WHOLE.min(Duration::from_secs(seconds)),
        Err(_) => ANSWER,
    }
}

/// Why nothing came: a line for each server.
pub(super) type ServerErrors = Vec<String>;

impl Servers {
    /// Those of `$DEBUGINFOD_URLS`, in their order; None if it names none. `$DEBUGINFOD_TIMEOUT` is in seconds.
    pub fn from_environment(say: Box<dyn Fn(&str)>) -> Option<Servers> {
        let urls = std::env::var("DEBUGINFOD_URLS").ok()?;
        let answer = std::env::var("DEBUGINFOD_TIMEOUT").ok().map_or(ANSWER, |text| timeout(&text));
        Servers::new(&urls, answer, say)
    }

    fn new(urls: &str, answer: Duration, say: Box<dyn Fn(&str)>) -> Option<Servers> {
        let urls: Vec<String> = urls.split_whitespace().map(|url| url.trim_end_matches('/').to_string()).collect();
        (!urls.is_empty()).then_some(Servers { urls, answer, say })
    }

    /// The file with the debug information of the object of that build-id, from the cache or else from a server. `name` is
    /// for messages.
    ///
    /// An answer is checked before it is stored: its build-id, that it is whole, and that its sections of code are those of
    /// `own`, the file that is loaded. Over `http` nothing else proves where it is from.
    pub(super) fn find(
        &self,
        build_id: &[u8],
        name: &str,
        own: Option<&Elf>,
        cache: Option<&Arc<Cache>>,
    ) -> Result<PathBuf, ServerErrors> {
        let Some(cache) = cache.filter(|cache| cache.directory().is_some()) else {
            return Err(vec!["debuginfod is asked only where there is a cache to keep the answer".into()]);
        };
        let hex = hex::encode(build_id);
        let key = Key::new(Sha256::new_with_prefix(format!("debuginfod {hex}")));
        let path = cache.path(Kind::Debug, &key).ok_or_else(Vec::new)?;
        // One fetches, the others wait for it.
        let _lock = cache.lock(Kind::Debug, &key, &format!("the file with build-id {hex}"));
        if cache.use_file(Kind::Debug, &key) && check(&path, build_id, own).is_ok() {
            return Ok(path);
        }
        let mut asked = Vec::new();
        for url in &self.urls {
            let whole = format!("{url}/buildid/{hex}/debuginfo");
            let about = format!("debug information of {name}, from {url}");
            let fetch = |file: &mut dyn Write| self.fetch(&whole, name, file);
            let sound =
                |file: &Path| check(file, build_id, own).map_err(|why| io::Error::other(format!("what it sent {why}")));
            match cache.put_streamed(Kind::Debug, &key, &about, fetch, sound) {
                Ok(()) => return Ok(path),
                Err(error) => asked.push(format!("{url}: {error}")),
            }
        }
        Err(asked)
    }

    fn fetch(&self, url: &str, name: &str, file: &mut dyn Write) -> io::Result<()> {
        (self.say)(&format!("asking {url}"));
        let mut curl = Command::new("curl");
        // Without ~/.curlrc, which has to be said first: root may have the home of a user, whose `output` would be followed.
        curl.args(["--disable", "--silent", "--show-error", "--include", "--suppress-connect-headers"]);
        // Over http anybody on the way could send the request elsewhere.
        match url {
            _ if url.starts_with("https:") => {
                curl.args(["--proto", "=https", "--location", "--max-redirs", "5", "--proto-redir", "=https"])
            }
            _ if url.starts_with("http:") => curl.args(["--proto", "=http"]),
            _ => return Err(io::Error::other("only http: and https: are known")),
        };
        let seconds = |time: Duration| time.as_secs().to_string();
        curl.args(["--connect-timeout", &seconds(CONNECT), "--max-time", &seconds(WHOLE)]);
        curl.args(["--user-agent", concat!("spile/", env!("CARGO_PKG_VERSION")), "--", url]);
        let mut child = programs::spawn(curl.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()))
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => io::Error::other("debuginfod takes curl, which is not installed"),
                _ => error,
            })?;
        let copied = match child.stdout.take() {
            Some(out) => self.copy(read_beside(out), url, name, file),
            None => Ok(()),
        };
        if copied.is_err() {
            let _ = child.kill();
        }
        let mut errors = String::new();
        if let Some(pipe) = child.stderr.take() {
            let _ = pipe.take(1000).read_to_string(&mut errors);
        }
        let status = child.wait()?;
        let errors = errors.trim().trim_start_matches("curl: ");
        // Of an answer that ends too early curl knows why.
        let ended = copied.as_ref().map_or_else(|error| error.kind() == io::ErrorKind::UnexpectedEof, |()| true);
        if ended && !status.success() && !errors.is_empty() {
            return Err(io::Error::other(errors.to_string()));
        }
        copied
    }

    /// The next block; None: the end.
    fn next_block(&self, blocks: &Blocks) -> io::Result<Option<Vec<u8>>> {
        match blocks.recv_timeout(self.answer) {
            Ok(block) => block.map(Some),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => Err(self.too_slow()),
        }
    }

    fn too_slow(&self) -> io::Error {
        let seconds = self.answer.as_secs();
        let least = size_text(SLOWEST * seconds.max(1));
        io::Error::other(format!("it sends less than {least} in {seconds} seconds"))
    }

    /// The length of the file if the answer says it, and the first bytes of it.
    fn read_head(&self, blocks: &Blocks, url: &str) -> io::Result<(Option<u64>, Vec<u8>)> {
        let (mut bytes, mut before, since) = (Vec::new(), 0, Instant::now());
        loop {
            let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
                if before + bytes.len() > MAX_HEAD {
                    return Err(io::Error::other("it sends a header without an end"));
                }
                // As long as it takes to redirect five times.
                if since.elapsed() > 6 * self.answer {
                    return Err(self.too_slow());
                }
                match self.next_block(blocks)? {
                    Some(block) => bytes.extend(block),
                    None => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it sends no answer")),
                }
                continue;
            };
            let head = String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned();
            bytes.drain(..end + 4);
            before += end + 4;
            let status = head.split_whitespace().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
            match status {
                200 => return Ok((header(&head, "content-length").and_then(|text| text.parse().ok()), bytes)),
                // Another head follows: of the answer itself, or of the server that curl has been sent to.
                100..=199 => {}
                300..=399 if url.starts_with("https:") => {}
                300..=399 => {
                    let to = header(&head, "location").unwrap_or("nowhere");
                    let to: String = to.chars().filter(|letter| !letter.is_control()).take(200).collect();
                    let message = format!("it redirects (status {status}) to {to}: name the server that has the file");
                    return Err(io::Error::other(message));
                }
                404 => return Err(io::Error::other("it does not have it")),
                status => return Err(io::Error::other(format!("status {status}"))),
            }
        }
    }

    fn copy(&self, blocks: Blocks, url: &str, name: &str, to: &mut dyn Write) -> io::Result<()> {
        let (length, first) = self.read_head(&blocks, url)?;
        let too_much = || io::Error::other(format!("it sends more than the {} that are taken", size_text(MAX_FILE)));
        if length.is_some_and(|length| length > MAX_FILE) {
            return Err(too_much());
        }
        let (mut done, mut since, mut then) = (0u64, Instant::now(), 0u64);
        let mut next = Some(first);
        while let Some(block) = next {
            done += block.len() as u64;
            if done > MAX_FILE {
                return Err(too_much());
            }
            if since.elapsed() > self.answer {
                if done - then < SLOWEST * self.answer.as_secs().max(1) {
                    return Err(self.too_slow());
                }
                (since, then) = (Instant::now(), done);
            }
            to.write_all(&block)?;
            (self.say)(&bar(name, done, length));
            next = self.next_block(&blocks)?;
        }
        match length {
            Some(length) if length != done => {
                let message = format!("it ended after {done} of {length} bytes");
                Err(io::Error::new(io::ErrorKind::UnexpectedEof, message))
            }
            _ => Ok(()),
        }
    }
}

/// The value of a line of an answer's head; `name` in lower case.
fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
}

/// What [`read_beside`] reads.
type Blocks = Receiver<io::Result<Vec<u8>>>;

/// Reads in a thread of its own, so that waiting for a silent server can time out. The thread ends with the next block that
/// nobody takes, or when the pipe is closed.
fn read_beside(mut from: impl Read + Send + 'static) -> Blocks {
    let (sender, receiver) = sync_channel(4);
    std::thread::spawn(move || {
        loop {
            let mut block = vec![0; 1 << 17];
            let read = match from.read(&mut block) {
                Ok(0) => return,
                Ok(read) => Ok(read),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let failed = read.is_err();
            let sent = sender.send(read.map(|read| {
                block.truncate(read);
                block
            }));
            if failed || sent.is_err() {
                return;
            }
        }
    });
    receiver
}

/// `fetching nfs [=====     ] 2.0 of 4.0 MiB`.
fn bar(name: &str, done: u64, length: Option<u64>) -> String {
    match length.filter(|length| *length > 0) {
        Some(length) => {
            let filled = (done.min(length).saturating_mul(BAR) / length) as usize;
            format!(
                "fetching {name} [{}{}] {} of {}",
                "=".repeat(filled),
                " ".repeat(BAR as usize - filled),
                size_text(done),
                size_text(length)
            )
        }
        None => format!("fetching {name}, {}", size_text(done)),
    }
}

/// Whether a file is the debug information for that build-id; otherwise what it is, as the end of a sentence.
fn check(path: &Path, build_id: &[u8], own: Option<&Elf>) -> Result<(), String> {
    let elf = Elf::open_program(path)
        .map_err(|_| format!("is not of build-id {}: it is not an object file", hex::encode(build_id)))?;
    if elf.build_id() != build_id {
        let says = if elf.build_id().is_empty() { "none".to_string() } else { hex::encode(elf.build_id()) };
        return Err(format!("is not of build-id {}: the note in it says {says}", hex::encode(build_id)));
    }
    if !elf.has_section(".debug_info") {
        return Err("has no debug information".into());
    }
    if !elf.is_whole() {
        return Err("is cut short".into());
    }
    if own.is_some_and(|own| own.code_sizes() != elf.code_sizes()) {
        return Err(format!(
            "has the build-id {}, and other code than the file that has it here",
            hex::encode(build_id)
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;

    use super::*;
    use spile_base::cache::Settings;

    /// A server of one answer for each of the connections that are made to it, in their order.
    fn serve(answers: Vec<Vec<u8>>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                let _ = stream.write_all(&answer);
            }
        });
        format!("http://{address}")
    }

    fn answer(status: &str, length: usize, body: &[u8]) -> Vec<u8> {
        let mut bytes =
            format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n").into_bytes();
        bytes.extend(body);
        bytes
    }

    fn find(urls: &str, build_id: &[u8], directory: &std::path::Path) -> Result<PathBuf, ServerErrors> {
        let cache = Arc::new(Cache::open(&Settings {
            directory: Some(directory.join("cache")),
            limit: 1 << 30,
            poisoned: false,
        }));
        let servers = Servers::new(urls, Duration::from_secs(5), Box::new(|_| {})).unwrap();
        servers.find(build_id, "it", None, Some(&cache))
    }

    fn kept(directory: &Path) -> usize {
        std::fs::read_dir(directory.join("cache/debug")).unwrap().count()
    }

    #[test]
    fn times_without_a_bound_have_one() {
        assert_eq!([timeout("5"), timeout(" 0 "), timeout("x")], [Duration::from_secs(5), WHOLE, ANSWER]);
        assert_eq!(timeout(&u64::MAX.to_string()), WHOLE);
    }

    /// A wrong answer is reported and not kept; the next server is asked.
    #[test]
    fn answers_that_are_no_debug_information() {
        let directory = tempfile::tempdir().unwrap();
        let url = serve(vec![
            answer("404 Not Found", 0, b""),
            answer("200 OK", 3, b"abc"),
            answer("200 OK", 100, b"abc"),
            answer("500 Oh", 0, b""),
        ]);
        let urls = format!("{url} {url}/ {url} {url} ftp://x http://127.0.0.1:1");
        let asked = find(&urls, &[1, 2, 3], directory.path()).unwrap_err();
        assert_eq!(asked.len(), 6, "{asked:?}");
        assert!(asked[0].ends_with("it does not have it") && asked[1].contains("not of build-id 010203"), "{asked:?}");
        assert!(asked[3].ends_with("status 500") && asked[4].contains("only http:"), "{asked:?}");
        assert_eq!(kept(directory.path()), 0);
    }

    /// The object that gcc makes of a line, with a build-id and debug information.
    fn object(directory: &Path, text: &str) -> Option<(Vec<u8>, Elf)> {
        let (source, object) = (directory.join("x.c"), directory.join("x"));
        std::fs::write(&source, text).unwrap();
        let mut gcc = Command::new("gcc");
        gcc.args(["-g", "-shared", "-nostdlib", "-Wl,--build-id=0x0102030405060708", "-o"]).arg(&object).arg(&source);
        let made = gcc.status().is_ok_and(|status| status.success());
        made.then(|| (std::fs::read(&object).unwrap(), Elf::open(&object).unwrap()))
    }

    /// A file whose section table is there, and not all that it says is in the file.
    fn with_a_section_beyond_the_end(elf: &[u8]) -> Vec<u8> {
        let mut bytes = elf.to_vec();
        let word = |at: usize| usize::try_from(u64::from_le_bytes(elf[at..at + 8].try_into().unwrap())).unwrap();
        // e_shoff, and e_shnum entries of 64 bytes: sh_type, sh_flags, sh_size. Those that are not loaded are debug information.
        let table = word(0x28);
        let mut headers = (0..usize::from(elf[0x3c])).rev().map(|number| table + number * 64);
        let last = headers.find(|at| elf[at + 4] == 1 && word(at + 8) & 2 == 0).unwrap();
        bytes[last + 32..last + 40].copy_from_slice(&(elf.len() as u64).to_le_bytes());
        bytes
    }

    /// Hostile servers: nothing that they send is stored.
    #[test]
    fn servers_that_lie() {
        let directory = tempfile::tempdir().unwrap();
        let Some((bytes, elf)) = object(directory.path(), "int f(int a) { return a; }\n") else {
            return println!("skipped: no gcc");
        };
        let id = elf.build_id().to_vec();
        assert_eq!(id, [1, 2, 3, 4, 5, 6, 7, 8]);
        let moved =
            "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let without_length = |body: &[u8]| [b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", body].concat();
        let url = serve(vec![
            answer("200 OK", bytes.len(), &bytes),
            moved.into(),
            answer("200 OK", 3 << 30, b"x"),
            without_length(&bytes[..bytes.len() - 100]),
            without_length(&with_a_section_beyond_the_end(&bytes)),
        ]);
        let asked = find(&url, &[9, 9], directory.path()).unwrap_err();
        assert!(
            asked[0].ends_with("what it sent is not of build-id 0909: the note in it says 0102030405060708"),
            "{asked:?}"
        );
        let asked = find(&format!("{url} {url} {url} {url}"), &id, directory.path()).unwrap_err();
        assert!(asked[0].contains("it redirects (status 302) to http://127.0.0.1:1/x"), "{asked:?}");
        assert!(asked[1].ends_with("it sends more than the 2.0 GiB that are taken"), "{asked:?}");
        assert!(asked[2].contains("it is not an object file"), "{asked:?}");
        assert!(asked[3].ends_with("what it sent is cut short"), "{asked:?}");
        assert_eq!(kept(directory.path()), 0);
        // Another file that claims the same build-id.
        let Some((other, _)) =
            object(directory.path(), "int f(int a) { return a * a + 7; }\nint g(int a) { return a; }\n")
        else {
            return;
        };
        let url = serve(vec![answer("200 OK", other.len(), &other)]);
        let cache = Arc::new(Cache::open(&Settings {
            directory: Some(directory.path().join("cache")),
            limit: 1 << 30,
            poisoned: false,
        }));
        let servers = Servers::new(&url, Duration::from_secs(5), Box::new(|_| {})).unwrap();
        let asked = servers.find(&id, "it", Some(&elf), Some(&cache)).unwrap_err();
        assert!(asked[0].contains("and other code than the file that has it here"), "{asked:?}");
        assert_eq!(kept(directory.path()), 0);
    }

    /// One says nothing more after its first bytes, one sends a byte now and then.
    #[test]
    fn servers_that_are_slow() {
        for pause in [None, Some(Duration::from_millis(200))] {
            let directory = tempfile::tempdir().unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("http://{}", listener.local_addr().unwrap());
            std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nx");
                while let Some(pause) = pause {
                    std::thread::sleep(pause);
                    if stream.write_all(b"x").is_err() {
                        return;
                    }
                }
                std::thread::sleep(Duration::from_secs(20));
            });
            let cache = Arc::new(Cache::open(&Settings {
                directory: Some(directory.path().join("cache")),
                limit: 1 << 30,
                poisoned: false,
            }));
            let servers = Servers::new(&url, Duration::from_secs(1), Box::new(|_| {})).unwrap();
            let begun = Instant::now();
            let asked = servers.find(&[1], "it", None, Some(&cache)).unwrap_err();
            assert!(asked[0].ends_with("it sends less than 1.0 KiB in 1 seconds"), "{asked:?}");
            assert!(begun.elapsed() < Duration::from_secs(15));
            assert_eq!(kept(directory.path()), 0);
        }
    }

    /// Headers that do not come to an end.
    #[test]
    fn servers_that_send_headers() {
        // curl passes them on by 4096 bytes.
        let line = [b"A: ", [b'x'; 1000].as_slice(), b"\r\n"].concat();
        let status = b"HTTP/1.1 200 OK\r\n".as_slice();
        let continues = b"HTTP/1.1 100 Continue\r\n\r\n".to_vec();
        for (first, again, pause, says) in [
            (status, line.clone(), Duration::from_millis(60), "it sends less than 1.0 KiB in 0 seconds"),
            (status, line, Duration::ZERO, "it sends a header without an end"),
            (b"", continues, Duration::ZERO, "it sends a header without an end"),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("http://{}", listener.local_addr().unwrap());
            let (ended, has_ended) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.write_all(first);
                while stream.write_all(&again).is_ok() {
                    std::thread::sleep(pause);
                }
                let _ = ended.send(());
            });
            let cache = Arc::new(Cache::open(&Settings {
                directory: Some(directory.path().join("cache")),
                limit: 1 << 30,
                poisoned: false,
            }));
            let servers = Servers::new(&url, Duration::from_millis(400), Box::new(|_| {})).unwrap();
            let asked = servers.find(&[1], "it", None, Some(&cache)).unwrap_err();
            assert!(asked[0].ends_with(says), "{asked:?}");
            assert_eq!(kept(directory.path()), 0);
            // curl is no longer there to read.
            has_ended.recv().unwrap();
        }
    }

    /// The program that is running has debug information, and perhaps a build-id.
    #[test]
    fn fetched_once() {
        let own = std::env::current_exe().unwrap();
        let elf = Elf::open(&own).unwrap();
        if elf.build_id().is_empty() || !elf.has_section(".debug_info") {
            return println!("skipped: no build-id");
        }
        let directory = tempfile::tempdir().unwrap();
        let bytes = std::fs::read(&own).unwrap();
        let url = serve(vec![answer("200 OK", bytes.len(), &bytes)]);
        let path = find(&url, elf.build_id(), directory.path()).unwrap();
        assert_eq!(Elf::open(&path).unwrap().build_id(), elf.build_id());
        // Nobody listens any more.
        assert_eq!(find(&url, elf.build_id(), directory.path()), Ok(path.clone()));
        assert!(find(&url, &[1], directory.path()).is_err());
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(1000).unwrap();
        assert!(find(&url, elf.build_id(), directory.path()).is_err());
    }

    #[test]
    fn how_far_it_is() {
        assert_eq!(
            bar("nfs", 1 << 20, Some(2 << 20)),
            format!("fetching nfs [{}{}] 1.0 MiB of 2.0 MiB", "=".repeat(12), " ".repeat(12))
        );
        assert_eq!(bar("nfs", 1 << 20, None), "fetching nfs, 1.0 MiB");
    }
}
