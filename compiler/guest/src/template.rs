// SPDX-License-Identifier: GPL-2.0-or-later

//! Guests that go on from the saved state of one that had booted, their template.
//!
//! The template boots with the base system alone, unpacks the files that many guests have in common, and waits. Its memory is a file;
//! qemu saves the state of its CPUs and devices. A guest maps that file privately, so any number of them can run at the same time and
//! leave it as it is; it has the devices' state read, gets its own files, the time and random bytes ([`super::receiver`]), and
//! continues as after a boot.
//!
//! Templates are in the cache (`guest`): the state as an entry, the memory beside it. The key consists of all that decides what a
//! template has in its memory, and of the boot of this machine: a machine that lost its power may have written a part of the file.
//! The first start with a key only leaves a mark, because a template takes longer than a boot and more than 100 MB of disk. What
//! goes wrong only costs time: the guest boots, and nothing is tried again for some time.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fs, io};

use sha2::{Digest, Sha256};
use spile_base::cache::{Cache, Entry, Inputs, Key, Kind, Settings, size_text};
use spile_base::scratch::Scratch;
use spile_base::unfinished::NewFile;

use super::initramfs::{Content, Tree};
use super::monitor::{FreshMonitor, read_until};
use super::qemu::{self, Machine, Memory, Ports, REGION};
use super::receiver::{self, Region};

/// Changes with anything that guests of other versions of this program would not understand.
const VERSION: u32 = 1;
/// Between two questions whether a step is done.
const PAUSE: Duration = Duration::from_millis(3);
/// What failed is tried again after this time.
const AGAIN: Duration = Duration::from_secs(3600);
/// All templates take at most this part of the cache, and each at most half of that: they do not drive out the rest.
const PART_OF_CACHE: u64 = 2;
/// This much is left free on the disk: the memory grows as the template boots, and without room qemu would be killed.
const LEFT_FREE: u64 = 512 << 20;
/// A longer state is not one of such a guest.
const LONGEST_STATE: u64 = 64 << 20;
/// The parts of an entry: the state of CPUs and devices; or when a template could not be made, in seconds since 1970. One without
/// either is the mark of the first use.
const STATE: &str = "state";
const FAILED: &str = "failed";

/// The guest that is wanted.
pub(super) struct Wanted<'a> {
    /// Without its memory and initrd.
    pub(super) machine: Machine<'a>,
    pub(super) release: &'a str,
    /// The files that many guests have.
    pub(super) common: &'a Tree,
    /// All its files.
    pub(super) tree: &'a Tree,
    pub(super) script: &'a str,
    /// In the order of loading.
    pub(super) modules: &'a [PathBuf],
    pub(super) boot_limit: Duration,
}

/// A guest that goes on.
pub(super) struct Resumed {
    pub(super) child: Child,
    pub(super) ports: Ports,
    pub(super) directory: Scratch,
    /// When it was resumed.
    pub(super) start: Instant,
}

/// Resumes a guest, after a template was made if it is its turn. None: it is to be booted. `notice` gets a line about what failed.
pub(super) fn start(wanted: &Wanted, settings: &Settings, notice: &mut dyn FnMut(&str)) -> Option<Resumed> {
    if settings.poisoned {
        return None;
    }
    let cache = Cache::open(settings);
    cache.directory()?;
    // Said before, when modules were looked for in it.
    cache.take_notices();
    let qemu = qemu::find().ok()?;
    let result = Store { cache: &cache, wanted, key: wanted.key(&qemu).ok()?, qemu }.start();
    cache.take_notices().iter().for_each(|line| notice(line));
    result.unwrap_or_else(|why| {
        notice(&format!("booting, as its saved state cannot be used: {why}"));
        None
    })
}

impl Wanted<'_> {
    /// The base system of a template.
    fn system() -> Result<Tree, String> {
        let mut system = Tree::system().map_err(|error| error.to_string())?;
        system.put("/spile/receive", Content::Bytes(receiver::program()), 0o755);
        Ok(system)
    }

    fn key(&self, qemu: &Path) -> Result<Key, String> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").map_err(|error| error.to_string())?;
        let qemu = qemu.canonicalize().map_err(|error| error.to_string())?;
        let Machine { acceleration, kernel, append, memory_mib, cpus, .. } = self.machine;
        let mut hash = Sha256::new();
        for part in [
            format!("{VERSION} {boot} {} {}", acceleration.word(), acceleration.processor()).into_bytes(),
            format!("{memory_mib} {cpus} {append}").into_bytes(),
            Inputs::of([qemu, kernel.to_path_buf()]).to_text().into_bytes(),
            Wanted::system()?.identity(),
            self.common.identity(),
        ] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Ok(Key::new(hash))
    }

    /// What the guest has besides its template.
    fn own_files(&self) -> Result<Vec<u8>, String> {
        let mut own = self.tree.without(self.common);
        own.put_orders(self.script, self.modules);
        own.later().map_err(|error| error.to_string())
    }
}

/// The template of a guest in the cache.
struct Store<'a> {
    cache: &'a Cache,
    wanted: &'a Wanted<'a>,
    key: Key,
    qemu: PathBuf,
}

/// What is there.
enum Found {
    Nothing,
    /// The mark of the first use, or a template that is damaged.
    Mark,
    /// It could not be made.
    Failure,
    Template(Entry, fs::File),
}

impl Store<'_> {
    fn start(&self) -> Result<Option<Resumed>, String> {
        let found = self.find();
        match found {
            Found::Failure => return Ok(None),
            Found::Nothing => {
                let mark = Entry::new(&format!("a guest of {} was started once", self.wanted.release));
                self.cache.put(Kind::Guest, &self.key, &mark);
                return Ok(None);
            }
            Found::Mark | Found::Template(..) => {}
        }
        let files = self.wanted.own_files()?;
        if !Region::has_room(files.len()) {
            return Ok(None);
        }
        let template = match found {
            Found::Template(entry, memory) => Some((entry, memory)),
            _ => self.made()?,
        };
        let Some((entry, memory)) = template else { return Ok(None) };
        self.resume(entry.part(STATE).unwrap_or_default(), &memory, &files).map(Some).map_err(|why| self.failed(why))
    }

    fn find(&self) -> Found {
        let Some(entry) = self.cache.get(Kind::Guest, &self.key) else { return Found::Nothing };
        if let Some(then) = entry.text(FAILED) {
            let then = Duration::from_secs(then.parse().unwrap_or(0));
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let is_recent = now.checked_sub(then).is_some_and(|age| age < AGAIN);
            return if is_recent { Found::Failure } else { Found::Mark };
        }
        let memory = entry.part(STATE).and_then(|_| self.cache.open_beside(Kind::Guest, &self.key, &entry));
        match memory.filter(|memory| memory.metadata().is_ok_and(|metadata| metadata.len() == self.memory_size())) {
            Some(memory) => Found::Template(entry, memory),
            None => Found::Mark,
        }
    }

    fn memory_size(&self) -> u64 {
        u64::from(self.wanted.machine.memory_mib) << 20
    }

    /// Makes the template, or waits until another process has made it.
    fn made(&self) -> Result<Option<(Entry, fs::File)>, String> {
        let what = format!("the saved state of a guest of {}", self.wanted.release);
        let Some(_lock) = self.cache.lock(Kind::Guest, &self.key, &what) else { return Ok(None) };
        match self.find() {
            Found::Template(entry, memory) => return Ok(Some((entry, memory))),
            Found::Failure => return Ok(None),
            Found::Nothing | Found::Mark => {}
        }
        // Also what killed processes have left.
        self.cache.prune(self.cache.limit());
        let (entry, memory) = self.build().map_err(|why| self.failed(why))?;
        if !self.cache.put_beside(Kind::Guest, &self.key, entry, memory) {
            return Ok(None);
        }
        self.cache.keep_part(Kind::Guest, self.cache.limit() / PART_OF_CACHE);
        match self.find() {
            Found::Template(entry, memory) => Ok(Some((entry, memory))),
            _ => Ok(None),
        }
    }

    /// Leaves a mark that this failed; returns why.
    fn failed(&self, why: String) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let about = format!("a guest of {} boots: {why}", self.wanted.release);
        self.cache.discard(Kind::Guest, &self.key);
        self.cache.put(Kind::Guest, &self.key, &Entry::new(&about).with(FAILED, now.to_string()));
        why
    }

    /// Boots a template and saves its state.
    fn build(&self) -> Result<(Entry, NewFile), String> {
        let system = text(Wanted::system()?.initial())?;
        let common = text(self.wanted.common.later())?;
        if !Region::has_room(common.len()) {
            return Err(format!("it has {} of files", size_text(common.len() as u64)));
        }
        let mut memory = text(self.cache.new_beside(Kind::Guest, &self.key))?;
        text(memory.file().set_len(self.memory_size()))?;
        let space = text(nix::sys::statvfs::statvfs(memory.path()))?;
        let free = space.blocks_available().saturating_mul(space.fragment_size());
        if free < LEFT_FREE + common.len() as u64 {
            return Err(format!("{} is free on the disk of the cache", size_text(free)));
        }
        let directory = text(Scratch::new())?;
        let initrd = directory.path().join("initrd");
        text(fs::write(&initrd, system))?;
        let region = text(Region::new(&directory.path().join(REGION)))?;
        let machine = Machine { initrd: Some(&initrd), memory: Memory::Saved(memory.file()), ..self.wanted.machine };
        let (mut child, ports) = text(qemu::start(&machine, directory.path()))?;
        let saved = self.save(&mut child, &ports, &region, &common);
        qemu::kill(&mut child);
        saved.map_err(|error| explained(directory.path(), &error))?;
        let state = directory.path().join(STATE);
        let state = text(spile_base::read::regular(&state, LONGEST_STATE))?;
        if state.is_empty() {
            return Err("its state is empty".into());
        }
        let size = text(memory.file().metadata())?.blocks() * 512;
        if size > self.cache.limit() / PART_OF_CACHE / 2 {
            let limit = size_text(self.cache.limit());
            return Err(format!("it takes {}, which is too much for a cache of {limit}", size_text(size)));
        }
        // While its files were read.
        if self.wanted.key(&self.qemu)? != self.key {
            return Err("its files have changed".into());
        }
        let about = format!(
            "saved state of a guest of {}, {} MiB, {} CPUs",
            self.wanted.release, self.wanted.machine.memory_mib, self.wanted.machine.cpus
        );
        Ok((Entry::new(&about).with(STATE, state), memory))
    }

    /// Time limit of a step that takes some tenths of a second of CPU time: a boot takes ten times as long.
    fn step(&self) -> Duration {
        self.wanted.boot_limit / 2
    }

    /// The template's side of the protocol in init.sh.
    fn save(&self, child: &mut Child, ports: &Ports, region: &Region, common: &[u8]) -> io::Result<()> {
        let step = self.step();
        let monitor = FreshMonitor::new(&ports.monitor, step)?;
        let control = &ports.control;
        expect(control, "waiting", self.wanted.boot_limit)?;
        region.write(common)?;
        region.write_time()?;
        say(control, "files")?;
        expect(control, "waiting", self.wanted.boot_limit)?;
        // The next guest gets another time.
        monitor.order("stop", step)?;
        monitor.order("migrate_set_capability x-ignore-shared on", step)?;
        monitor.order(&format!("migrate -d \"exec:cat >{STATE}\""), step)?;
        wait_until(step, || {
            let answer = monitor.ask("info migrate", step)?;
            let status = answer.lines().find_map(|line| line.strip_prefix("Migration status: "));
            match status {
                Some("completed") => Ok(true),
                Some("failed" | "cancelled") => Err(io::Error::other("the state was not saved")),
                _ => Ok(false),
            }
        })?;
        monitor.tell("quit")?;
        wait_until(step, || Ok(child.try_wait()?.is_some()))
    }

    /// A guest that goes on from the template and has its files.
    fn resume(&self, state: &[u8], memory: &fs::File, files: &[u8]) -> Result<Resumed, String> {
        let directory = text(Scratch::new())?;
        text(fs::write(directory.path().join(STATE), state))?;
        let region = text(Region::new(&directory.path().join(REGION)))?;
        text(region.write(files))?;
        let start = Instant::now();
        let machine = Machine { memory: Memory::Resumed(memory), ..self.wanted.machine };
        let (mut child, ports) = text(qemu::start(&machine, directory.path()))?;
        match go_on(&ports, &region, self.step()) {
            Ok(()) => Ok(Resumed { child, ports, directory, start }),
            Err(error) => {
                qemu::kill(&mut child);
                Err(explained(directory.path(), &error))
            }
        }
    }
}

/// Has the state read and the guest unpack its files.
fn go_on(ports: &Ports, region: &Region, step: Duration) -> io::Result<()> {
    let monitor = FreshMonitor::new(&ports.monitor, step)?;
    monitor.order("migrate_set_capability x-ignore-shared on", step)?;
    monitor.order(&format!("migrate_incoming \"exec:cat {STATE}\""), step)?;
    wait_until(step, || Ok(!monitor.ask("info status", step)?.contains("inmigrate")))?;
    region.write_time()?;
    monitor.order("cont", step)?;
    say(&ports.control, "go")?;
    expect(&ports.control, "resumed", step)
}

/// Asks again and again, for `limit` at most.
fn wait_until(limit: Duration, mut is_done: impl FnMut() -> io::Result<bool>) -> io::Result<()> {
    let start = Instant::now();
    while !is_done()? {
        if start.elapsed() > limit {
            return Err(io::ErrorKind::TimedOut.into());
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Sends a line to the guest.
fn say(mut control: &UnixStream, line: &str) -> io::Result<()> {
    control.write_all(format!("{line}\n").as_bytes())
}

/// Waits for this line of the guest.
fn expect(control: &UnixStream, line: &str, limit: Duration) -> io::Result<()> {
    let came = read_until(control, 1, limit, |came| came.ends_with(b"\n"))?;
    match came.trim_ascii() == line.as_bytes() {
        true => Ok(()),
        false => Err(io::Error::other(format!("it said {:?}, not {line}", String::from_utf8_lossy(&came)))),
    }
}

/// An error, and what qemu says of it.
fn explained(directory: &Path, error: &io::Error) -> String {
    let messages = qemu::messages(directory);
    if messages.is_empty() { error.to_string() } else { format!("{error}; qemu: {messages}") }
}

fn text<T, E: std::fmt::Display>(result: Result<T, E>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acceleration::Acceleration;

    /// Calls `test` with a guest whose kernel and qemu are files in a directory.
    fn with_wanted(test: impl FnOnce(&Path, &Wanted)) {
        let directory = tempfile::tempdir().unwrap();
        let kernel = directory.path().join("vmlinuz");
        fs::write(&kernel, "a kernel").unwrap();
        fs::write(directory.path().join("qemu"), "an emulator").unwrap();
        let machine = Machine {
            emulator: None,
            acceleration: Acceleration::Tcg,
            kernel: &kernel,
            initrd: None,
            append: "quiet",
            memory_mib: 64,
            cpus: 2,
            memory: Memory::Anonymous,
        };
        let (common, tree) = (Tree::default(), Tree::default());
        let wanted = Wanted {
            machine,
            release: "6.1.0",
            common: &common,
            tree: &tree,
            script: "true",
            modules: &[],
            boot_limit: Duration::from_secs(1),
        };
        test(directory.path(), &wanted);
    }

    #[test]
    fn the_key_changes_with_what_is_in_memory() {
        with_wanted(|directory, wanted| {
            let qemu = directory.join("qemu");
            let key = |wanted: &Wanted| wanted.key(&qemu).unwrap();
            let first = key(wanted);
            assert_eq!(key(&Wanted { script: "false", ..*wanted }), first);
            let mut file = Tree::default();
            file.put("/etc/new", Content::Bytes(b"new".to_vec()), 0o644);
            assert_eq!(key(&Wanted { tree: &file, ..*wanted }), first);
            let machine = wanted.machine;
            for other in [
                Wanted { machine: Machine { memory_mib: 65, ..machine }, ..*wanted },
                Wanted { machine: Machine { cpus: 1, ..machine }, ..*wanted },
                Wanted { machine: Machine { append: "quiet nokaslr", ..machine }, ..*wanted },
                Wanted { machine: Machine { acceleration: Acceleration::Parallel, ..machine }, ..*wanted },
                Wanted { common: &file, ..*wanted },
            ] {
                assert_ne!(key(&other), first);
            }
            fs::write(machine.kernel, "another kernel").unwrap();
            let second = key(wanted);
            assert_ne!(second, first);
            fs::write(&qemu, "another emulator").unwrap();
            assert_ne!(key(wanted), second);
        });
    }

    #[test]
    fn what_failed_is_tried_again_after_a_while() {
        with_wanted(|directory, wanted| {
            let settings = Settings { directory: Some(directory.join("cache")), limit: 1 << 30, poisoned: false };
            let cache = Cache::open(&settings);
            let qemu = directory.join("qemu");
            let store = Store { cache: &cache, wanted, key: wanted.key(&qemu).unwrap(), qemu };
            assert!(matches!(store.find(), Found::Nothing));
            // The first start leaves a mark, and nothing is run.
            assert!(matches!(store.start(), Ok(None)));
            assert!(matches!(store.find(), Found::Mark));

            let why = store.failed("it is a test".into());
            assert!(why == "it is a test" && matches!(store.find(), Found::Failure));
            assert!(matches!(store.start(), Ok(None)));
            assert_eq!(cache.list()[0].about, "a guest of 6.1.0 boots: it is a test");
            for then in [0, u64::MAX] {
                let entry = Entry::new("failed long ago, or said so").with(FAILED, then.to_string());
                cache.put(Kind::Guest, &store.key, &entry);
                assert!(matches!(store.find(), Found::Mark));
            }

            let memory_of = |size| {
                let mut memory = cache.new_beside(Kind::Guest, &store.key).unwrap();
                memory.file().set_len(size).unwrap();
                cache.put_beside(Kind::Guest, &store.key, Entry::new("saved").with(STATE, "state"), memory);
            };
            memory_of(1 << 20);
            assert!(matches!(store.find(), Found::Mark));
            memory_of(64 << 20);
            assert!(matches!(store.find(), Found::Template(..)));
            let path = cache.path(Kind::Guest, &store.key).unwrap();
            fs::write(&path, "damaged").unwrap();
            assert!(matches!(store.find(), Found::Nothing));
        });
    }
}
