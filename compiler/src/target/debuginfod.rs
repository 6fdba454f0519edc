//! Debug information from debuginfod servers: an object's build-id to the file that has its DWARF, over HTTP, once.
//!
//! `GET URL/buildid/HEX/debuginfo`, as debuginfod(8) has it. What comes is kept in the cache, as an entry whose only part
//! is the file. `https` is spoken by curl(1), which knows the machine's certificates and proxies.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::cache::{Cache, Key, Kind, size_text};
use crate::debuginfo::Elf;

const CONNECT: Duration = Duration::from_secs(10);
/// elfutils' default for DEBUGINFOD_TIMEOUT: a server unpacks a package before it answers.
const ANSWER: Duration = Duration::from_secs(90);
/// A vmlinux over a slow line takes so long at the most.
const WHOLE: Duration = Duration::from_secs(3600);
/// Nothing larger is taken.
const MAX_FILE: u64 = 4 << 30;
/// Steps of the bar.
const BAR: u64 = 24;

/// Servers that may be asked.
pub struct Servers {
    urls: Vec<String>,
    answer: Duration,
    /// Is told what is going on.
    say: Box<dyn Fn(&str)>,
}

/// Why nothing came: a line for each server.
pub(super) type Asked = Vec<String>;

impl Servers {
    /// Those of `$DEBUGINFOD_URLS`, in their order; None if it names none. `$DEBUGINFOD_TIMEOUT` is in seconds.
    pub fn from_environment(say: Box<dyn Fn(&str)>) -> Option<Servers> {
        let urls = std::env::var("DEBUGINFOD_URLS").ok()?;
        let answer = std::env::var("DEBUGINFOD_TIMEOUT").ok().and_then(|text| text.trim().parse().ok());
        Servers::new(&urls, answer.map_or(ANSWER, Duration::from_secs), say)
    }

    fn new(urls: &str, answer: Duration, say: Box<dyn Fn(&str)>) -> Option<Servers> {
        let urls: Vec<String> = urls.split_whitespace().map(|url| url.trim_end_matches('/').to_string()).collect();
        (!urls.is_empty()).then_some(Servers { urls, answer, say })
    }

    /// The file with the debug information of the object of that build-id, from the cache or else from a server. `name` is
    /// for messages.
    pub(super) fn find(&self, build_id: &[u8], name: &str, cache: Option<&Arc<Cache>>) -> Result<PathBuf, Asked> {
        let Some(cache) = cache.filter(|cache| cache.directory().is_some()) else {
            return Err(vec!["debuginfod is asked only where there is a cache to keep the answer".into()]);
        };
        let hex: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        let key = Key::new(Sha256::new_with_prefix(format!("debuginfod {hex}")));
        let path = cache.path(Kind::Debug, &key).ok_or_else(Vec::new)?;
        // One fetches, the others wait for it.
        let _lock = cache.lock(Kind::Debug, &key);
        if cache.use_file(Kind::Debug, &key) && is_of(&path, build_id) {
            return Ok(path);
        }
        let mut asked = Vec::new();
        for url in &self.urls {
            let whole = format!("{url}/buildid/{hex}/debuginfo");
            let kept = cache.put_streamed(Kind::Debug, &key, &format!("debug information of {name}, from {url}"), |file| self.fetch(&whole, name, file));
            match kept {
                Ok(()) if is_of(&path, build_id) => return Ok(path),
                Ok(()) => {
                    let _ = std::fs::remove_file(&path);
                    asked.push(format!("{url}: what it sent is not of build-id {hex}"));
                }
                Err(error) => asked.push(format!("{url}: {error}")),
            }
        }
        Err(asked)
    }

    fn fetch(&self, url: &str, name: &str, file: &mut dyn Write) -> io::Result<()> {
        (self.say)(&format!("asking {url}"));
        if url.starts_with("https:") {
            return self.fetch_by_curl(url, name, file);
        }
        if !url.starts_with("http:") {
            return Err(io::Error::other("only http: and https: are known"));
        }
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .timeout_connect(Some(CONNECT))
            .timeout_recv_response(Some(self.answer))
            .timeout_recv_body(Some(WHOLE))
            .http_status_as_error(false)
            .user_agent(concat!("spile/", env!("CARGO_PKG_VERSION")))
            .build()
            .into();
        let response = agent.get(url).call().map_err(io::Error::other)?;
        match response.status().as_u16() {
            200 => {}
            404 => return Err(io::Error::other("it does not have it")),
            status => return Err(io::Error::other(format!("status {status}"))),
        }
        let length = response.headers().get("content-length").and_then(|value| value.to_str().ok()?.parse().ok());
        self.copy(&mut response.into_body().into_reader(), length, name, file)
    }

    fn fetch_by_curl(&self, url: &str, name: &str, file: &mut dyn Write) -> io::Result<()> {
        let seconds = |time: Duration| time.as_secs().to_string();
        let mut curl = Command::new("curl");
        curl.args(["--fail", "--silent", "--show-error", "--location", "--connect-timeout", &seconds(CONNECT)]);
        curl.args(["--speed-limit", "1024", "--speed-time", &seconds(self.answer), "--max-time", &seconds(WHOLE), "--", url]);
        let mut child = curl.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => io::Error::other("https takes curl, which is not installed"),
            _ => error,
        })?;
        let mut copied = match child.stdout.take() {
            Some(mut out) => self.copy(&mut out, None, name, file),
            None => Ok(()),
        };
        let mut said = String::new();
        if let Some(errors) = child.stderr.take() {
            let _ = errors.take(1000).read_to_string(&mut said);
        }
        let status = child.wait()?;
        if !status.success() {
            copied = Err(io::Error::other(said.trim().trim_start_matches("curl: ").to_string()));
        }
        copied
    }

    fn copy(&self, from: &mut dyn Read, length: Option<u64>, name: &str, to: &mut dyn Write) -> io::Result<()> {
        let mut block = vec![0; 1 << 17];
        let mut done = 0u64;
        loop {
            let read = match from.read(&mut block) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            done += read as u64;
            if done > MAX_FILE {
                return Err(io::Error::other(format!("it sends more than {}", size_text(MAX_FILE))));
            }
            to.write_all(&block[..read])?;
            (self.say)(&bar(name, done, length));
        }
        match length {
            Some(length) if length != done => Err(io::Error::other(format!("it ended after {done} of {length} bytes"))),
            _ => Ok(()),
        }
    }
}

/// `fetching nfs [=====     ] 2.0 of 4.0 MiB`.
fn bar(name: &str, done: u64, length: Option<u64>) -> String {
    match length.filter(|length| *length > 0) {
        Some(length) => {
            let filled = (done.min(length).saturating_mul(BAR) / length) as usize;
            format!("fetching {name} [{}{}] {} of {}", "=".repeat(filled), " ".repeat(BAR as usize - filled), size_text(done), size_text(length))
        }
        None => format!("fetching {name}, {}", size_text(done)),
    }
}

fn is_of(path: &std::path::Path, build_id: &[u8]) -> bool {
    Elf::open(path).is_ok_and(|elf| elf.build_id() == build_id && elf.has_section(".debug_info"))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;

    use super::*;
    use crate::cache::Settings;

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
        let mut bytes = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n").into_bytes();
        bytes.extend(body);
        bytes
    }

    fn find(urls: &str, build_id: &[u8], directory: &std::path::Path) -> Result<PathBuf, Asked> {
        let cache = Arc::new(Cache::open(&Settings { directory: Some(directory.join("cache")), limit: 1 << 30, poisoned: false }));
        let servers = Servers::new(urls, Duration::from_secs(5), Box::new(|_| {})).unwrap();
        servers.find(build_id, "it", Some(&cache))
    }

    /// What is wrong with each answer is told, none is kept; the next server is asked.
    #[test]
    fn answers_that_are_no_debug_information() {
        let directory = tempfile::tempdir().unwrap();
        let url = serve(vec![answer("404 Not Found", 0, b""), answer("200 OK", 3, b"abc"), answer("200 OK", 100, b"abc"), answer("500 Oh", 0, b"")]);
        let urls = format!("{url} {url}/ {url} {url} ftp://x http://127.0.0.1:1");
        let asked = find(&urls, &[1, 2, 3], directory.path()).unwrap_err();
        assert_eq!(asked.len(), 6, "{asked:?}");
        assert!(asked[0].ends_with("it does not have it") && asked[1].ends_with("not of build-id 010203"), "{asked:?}");
        assert!(asked[3].ends_with("status 500") && asked[4].contains("only http:"), "{asked:?}");
        let kept = std::fs::read_dir(directory.path().join("cache/debug")).unwrap().count();
        assert_eq!(kept, 0);
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
        assert_eq!(bar("nfs", 1 << 20, Some(2 << 20)), format!("fetching nfs [{}{}] 1.0 MiB of 2.0 MiB", "=".repeat(12), " ".repeat(12)));
        assert_eq!(bar("nfs", 1 << 20, None), "fetching nfs, 1.0 MiB");
    }
}
