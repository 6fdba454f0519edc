// SPDX-License-Identifier: GPL-2.0-or-later

//! The control device of a module: arguments of its ioctls (abi.h, "The control device").

/// Version of everything in `abi.h`; a loader rejects a module with another one ([`Info::abi`]).
pub const ABI_VERSION: u32 = 10;

/// The device of module NAME is the misc device `spile-NAME`, its node `/dev/spile-NAME`.
pub const DEVICE_PREFIX: &str = "spile-";

/// States of a session ([`Info::state`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// Nothing armed, no ring yet.
    Loaded = 0,
    /// Rings made.
    Ready = 1,
    /// Begin probes run.
    Starting = 2,
    /// Probes armed.
    Running = 3,
    /// `exit()` was called or the error budget is exhausted: the loader is to call [`STOP`].
    Stopping = 4,
    /// Disarmed, end probes have run.
    Stopped = 5,
}

impl State {
    /// `None`: unknown in this version.
    pub fn from_number(number: u32) -> Option<State> {
        use State::{Loaded, Ready, Running, Starting, Stopped, Stopping};
        [Loaded, Ready, Starting, Running, Stopping, Stopped].into_iter().find(|state| *state as u32 == number)
    }
}

/// Answer of [`INFO`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Info {
    /// [`ABI_VERSION`] of the module.
    pub abi: u32,
    /// See [`State::from_number`].
    pub state: u32,
    /// Rings; the header of ring I is mapped at offset I * [`Self::header_bytes`], and the chunks after all headers.
    pub cpus: u32,
    /// Size of a ring's header: a page.
    pub header_bytes: u32,
    /// Most data bytes of each ring, a power of two; 0 before [`SETUP`].
    pub ring_bytes: u32,
    /// Probe sites in the module.
    pub probes: u32,
    /// Run-time errors so far.
    pub errors: u32,
    /// Handler runs skipped so far, for whatever reason.
    pub skipped: u32,
    /// Bytes allocated by the module, and reserved for its return probes.
    pub memory_bytes: u64,
    /// [`KEPT`], [`OVERWRITE`], [`OPENED`], [`USER_STACKS`], [`UNARMED`], [`SUPPRESSED`].
    pub flags: u32,
    /// Probe sites currently armed.
    pub armed: u32,
}

/// [`Info::flags`]: the session continues without a loader.
pub const KEPT: u32 = 1;
/// [`Info::flags`]: meanwhile full rings drop the oldest records.
pub const OVERWRITE: u32 = 2;
/// [`Info::flags`]: the device is open.
pub const OPENED: u32 = 4;
/// [`Info::flags`]: the script takes stacks of user space, or names its addresses.
pub const USER_STACKS: u32 = 8;
/// [`Info::flags`]: a loader was killed while it armed the probes, which ended the session.
pub const UNARMED: u32 = 16;
/// [`Info::flags`]: an error that a script can catch only ends its handler, and the session does not fail.
pub const SUPPRESSED: u32 = 32;

/// Answer of [`ARMING`]: what is left of arming. Probes that become kprobes are registered one after the other, and enabled when
/// all are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Arming {
    /// Kprobes that are enabled now, in all; 0: not yet, or over.
    pub to_enable: u32,
    /// Of them.
    pub enabled: u32,
    /// Estimated milliseconds until all are armed; 0: not known.
    pub left: u64,
}

/// Answer of [`OWNER`]: the owner of the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Owner {
    /// The real user of the process that loaded the module, in the initial user namespace.
    pub uid: u32,
    /// Its real group, in the same.
    pub gid: u32,
    /// One of `RANK_`, as set by the loader.
    pub rank: u32,
    /// [`SERVICE`], [`HAS_SET`].
    pub flags: u32,
    /// Process that has the device open for a session, in our pid namespace; 0: none.
    pub opener: u32,
    /// 0
    pub reserved: u32,
    /// Memory limit of the session; 0: none.
    pub most_bytes: u64,
    /// CLOCK_BOOTTIME in nanoseconds, of the load: distinguishes sessions of the same name.
    pub loaded: u64,
}

/// [`Owner::rank`]: root, or spilerun is not installed set-uid.
pub const RANK_ROOT: u32 = 0;
/// [`Owner::rank`]: a member of the group `spileusr`, or of none of the groups.
pub const RANK_USR: u32 = 1;
/// [`Owner::rank`]: a member of the group `spilesys`.
pub const RANK_SYS: u32 = 2;
/// [`Owner::rank`]: a member of the group `spiledev`.
pub const RANK_DEV: u32 = 3;
/// [`Owner::flags`]: started by a service.
pub const SERVICE: u32 = 1;
/// [`Owner::flags`]: [`SET`] has given another value to a global that commands of `system()` may depend on.
pub const HAS_SET: u32 = 2;

/// Maximum bytes of a string in one [`SET`].
pub const SET_BYTES: usize = 1024;

/// Argument of [`SET`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Set {
    /// Index into [`crate::meta::Meta::settings`].
    pub setting: u32,
    /// Offset of the piece in the string; pieces are passed in order.
    pub offset: u32,
    /// Bytes of the piece; 0 for a number.
    pub bytes: u32,
    /// 0
    pub reserved: u32,
    /// The new value of a number.
    pub number: i64,
    /// The piece of a string; its first [`Self::bytes`] are valid.
    pub text: [u8; SET_BYTES],
}

/// Argument of [`KEEP`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Keep {
    /// 1: the session continues when the device is closed.
    pub keep: u32,
    /// While the device is not open, a full ring drops 0: new records, 1: the oldest.
    pub overwrite: u32,
}

/// Argument of [`SETUP`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Setup {
    /// Requested most data bytes of each ring; rounded up to a power of two; 0: 4 MiB.
    pub ring_bytes: u32,
    /// Value of `target()`; 0: no target.
    pub target: i32,
    /// [`SETUP_TIMED`], [`SETUP_TASKS`]
    pub flags: u32,
    /// Value of `tz_gmtoff()`: seconds west of Greenwich; a day at most.
    pub west: i32,
    /// Value of `tz_name()`, with its NUL.
    pub zone: [u8; ZONE_BYTES],
}

/// Bytes of a time zone's name.
pub const ZONE_BYTES: usize = 16;

/// Argument and answer of [`MEASURE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Measure {
    /// In: 1 to 60000.
    pub milliseconds: u32,
    /// Out: approximate time of an instruction on this machine.
    pub picoseconds: u32,
    /// Out: time for which hits were counted.
    pub nanoseconds: u64,
    /// Out: online CPUs.
    pub cpus: u32,
    /// 0
    pub reserved: u32,
}

/// Argument of [`SAMPLE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Sample {
    /// On each CPU one in N hits of a probe is handled; 1: all.
    pub one_in: u32,
    /// 0
    pub reserved: u32,
}

/// Argument of [`SWITCH`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Switch {
    /// The probe site.
    pub probe: u32,
    /// 1: off, 0: on.
    pub off: u32,
}

/// Argument and answer of [`COUNTERS`]: the counters of one probe site. `hits = handled + filtered + nested +
/// lock_skipped + low_stack + stopped + sampled + return_misses`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counters {
    /// In: the site.
    pub probe: u32,
    /// Sites registered now: 0 or 1.
    pub armed: u32,
    /// All hits: the sum above.
    pub hits: u64,
    /// The handler ran to its end, or to an error.
    pub handled: u64,
    /// Rejected by the probe point's condition.
    pub filtered: u64,
    /// Another handler was running on that CPU.
    pub nested: u64,
    /// A global's lock was not available.
    pub lock_skipped: u64,
    /// Too little of the kernel stack was left.
    pub low_stack: u64,
    /// Of `handled`: ended with a run-time error.
    pub errors: u64,
    /// Calls whose return was not probed: there was no free kretprobe instance.
    pub return_misses: u64,
    /// Before all probes were armed, or while the session was stopping.
    pub stopped: u64,
    /// Records of the handler lost for lack of space.
    pub lost_records: u64,
    /// Number of timed runs, for the following, in CPU cycles.
    pub timed: u64,
    /// Total.
    pub cycles: u64,
    /// Minimum.
    pub least_cycles: u64,
    /// Maximum.
    pub most_cycles: u64,
    /// Skipped by [`SAMPLE`].
    pub sampled: u64,
    /// How it is attached, or was last attached: index into [`MECHANISMS`].
    pub mechanism: u32,
    /// Instructions of a run of the handler, by the compiler's estimate.
    pub cost: u32,
    /// How often memory of a program was not there and was faulted in for the handler.
    pub faulted_in: u64,
}

/// Entries of a [`CountersList`]: with them, it fits into 4 KiB.
pub const COUNTERS_LISTED: usize = 28;

/// Argument and answer of [`COUNTERS_LIST`]: the counters of a site and of those after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CountersList {
    /// In: the first site.
    pub first: u32,
    /// Used entries of the next field; 0: there is no such site.
    pub count: u32,
    /// In the order of the sites.
    pub counters: [Counters; COUNTERS_LISTED],
}

/// Bytes of [`Symbol::text`].
pub const SYMBOL_TEXT: usize = 1024;
/// Bytes of [`Symbol::line`].
pub const SYMBOL_LINE_TEXT: usize = 512;
/// [`Symbol::flags`]: the source line too.
pub const SYMBOL_LINE: u32 = 1;
/// [`Symbol::flags`]: a return address; report the line of the call.
pub const SYMBOL_RETURNS: u32 = 2;
/// [`Symbol::flags`]: a number of unknown age: no name if the address has been code of different names in this session.
pub const SYMBOL_STORED: u32 = 4;

/// Argument and answer of [`SYMBOL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Symbol {
    /// In: an address at run time.
    pub address: u64,
    /// In: time of the record.
    pub time: u64,
    /// Valid for records up to this time; [`u64::MAX`]: until [`crate::record::RingHeader::changes`] changes.
    pub until: u64,
    /// [`SYMBOL_LINE`], [`SYMBOL_RETURNS`], [`SYMBOL_STORED`].
    pub flags: u32,
    /// 1: valid until the kernel reboots.
    pub stays: u32,
    /// `NAME+OFFSET/SIZE [MODULE]`, or `0xADDRESS`, up to a NUL.
    pub text: [u8; SYMBOL_TEXT],
    /// `FILE:LINE` if requested and known, up to a NUL.
    pub line: [u8; SYMBOL_LINE_TEXT],
}

/// By `enum spile_mechanism`; the first is none.
pub const MECHANISMS: [&str; 13] = [
    "",
    "ftrace",
    "ftrace, all registers",
    "kprobe on ftrace",
    "kprobe",
    "kretprobe",
    "tracepoint",
    "timer",
    "perf event",
    "file",
    "ftrace, return hooked",
    "uprobe",
    "uprobe, return hooked",
];

/// [`Setup::flags`]: time every run, not only some.
pub const SETUP_TIMED: u32 = 1;
/// [`Setup::flags`]: [`crate::record::Kind::Task`] before the records of another task.
pub const SETUP_TASKS: u32 = 2;

/// [`Gate::mode`]: writes that pass are done.
pub const ENFORCE: u32 = 0;
/// [`Gate::mode`]: nothing is written, all writes are counted and reported.
pub const OBSERVE: u32 = 1;
/// Maximum entries of each scope of a [`Gate`].
pub const GATE_SCOPES: usize = 16;

/// Argument of [`GATE`]: controls the writes of a guru script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Gate {
    /// [`ENFORCE`] or [`OBSERVE`].
    pub mode: u32,
    /// Maximum writes per second; 0: no limit.
    pub per_second: u32,
    /// CLOCK_REALTIME in nanoseconds; 0: never.
    pub expires: u64,
    /// Number of writes to report.
    pub tell: u32,
    /// 0
    pub reserved: u32,
    /// Number of entries of each scope; 0: any task.
    pub uid_count: u32,
    /// As `uid_count`.
    pub gid_count: u32,
    /// As `uid_count`.
    pub pid_count: u32,
    /// As `uid_count`.
    pub cgroup_count: u32,
    /// Real users, in the initial user namespace.
    pub uids: [u32; GATE_SCOPES],
    /// Real groups, in the same.
    pub gids: [u32; GATE_SCOPES],
    /// Processes, in the initial pid namespace.
    pub pids: [u32; GATE_SCOPES],
    /// Inode numbers of directories of cgroup2.
    pub cgroups: [u64; GATE_SCOPES],
}

/// Index into [`GateState::counts`]: the outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was written.
    Rewritten = 0,
    /// It would have been written ([`OBSERVE`]).
    Observed = 1,
    /// Not written: [`Gate::expires`] has passed.
    Expired = 2,
    /// Not written: the task is in none of the scopes.
    OutOfScope = 3,
    /// Not written: [`Gate::per_second`] was reached.
    Limited = 4,
}

/// Kinds of [`Verdict`].
pub const VERDICTS: usize = 5;

/// Answer of [`GATE_STATE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct GateState {
    /// The settings in force; all 0 if none were made.
    pub gate: Gate,
    /// Writes by [`Verdict`], since the module was loaded.
    pub counts: [u64; VERDICTS],
}

/// Maximum files of a session.
pub const FILES: u32 = 4096;
/// Bytes of [`File::path`].
pub const FILE_PATH: usize = 256;
/// [`File::flags`]: [`UNWIND`] was called for it.
pub const FILE_HAS_TABLE: u32 = 1;
/// Maximum bytes of all tables of a session.
pub const UNWIND_MOST: usize = 64 << 20;
/// Index in place of a rule's, for code about which nothing is known.
pub const UNWIND_UNKNOWN: u16 = u16::MAX;

/// Argument of [`FILE`], answer of it and of [`WANTED`]: a file that stacks of user space lead through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct File {
    /// Its number, from 1 on.
    pub id: u32,
    /// [`FILE_HAS_TABLE`]
    pub flags: u32,
    /// All 0 for the vDSO.
    pub inode: u64,
    /// Major and minor number, as stat(2) encodes them.
    pub device: u32,
    /// Of the inode.
    pub generation: u32,
    /// A process that had it mapped at [`Self::address`], in our pid namespace; 0: it is gone.
    pub process: u32,
    /// 0
    pub reserved: u32,
    /// See [`Self::process`].
    pub address: u64,
    /// Within its file system, from its root on; with another first character than `/` the end of it. Up to a NUL.
    pub path: [u8; FILE_PATH],
}

/// Argument of [`UNWIND`]: how to unwind the stack in the code of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Unwind {
    /// Address of a mapping of the file, or of the vDSO, in the caller's memory.
    pub mapping: u64,
    /// Address of the rules, the places and the indices of their rules.
    pub table: u64,
    /// Number of rules; 0: there is nothing to be known about this file.
    pub rules: u32,
    /// Number of places.
    pub places: u32,
    /// Out: the file's number.
    pub id: u32,
    /// Used bytes of the next field.
    pub build_id_bytes: u32,
    /// Its build-id.
    pub build_id: [u8; 20],
    /// 0
    pub reserved: u32,
}

/// The caller's frame (abi.h, `struct spile_unwind_rule`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct UnwindRule {
    /// The CFA is the base plus this.
    pub cfa: i32,
    /// Where rbp is saved: CFA plus this; 0: it is unchanged.
    pub frame: i16,
    /// Register and `UNWIND_` flags.
    pub base: u8,
    /// One of `UNWIND_STORED` and so on.
    pub next: u8,
}

/// [`UnwindRule::base`]: mask of the register.
pub const UNWIND_REGISTER: u8 = 15;
/// [`UnwindRule::base`]: of code of 32 bits, where words have 4 bytes.
pub const UNWIND_NARROW: u8 = 16;
/// [`UnwindRule::base`]: the CFA is what is stored there.
pub const UNWIND_DEREFERENCE: u8 = 32;
/// [`UnwindRule::base`]: a word is added to the CFA in the end.
pub const UNWIND_ADD_WORD: u8 = 64;
/// [`UnwindRule::base`]: rbp is saved at rbp plus [`UnwindRule::frame`].
pub const UNWIND_FRAME_BASED: u8 = 128;
/// [`UnwindRule::next`]: the return address is below the CFA.
pub const UNWIND_STORED: u8 = 0;
/// [`UnwindRule::next`]: this is the outermost frame.
pub const UNWIND_END: u8 = 1;
/// [`UnwindRule::next`]: rsp is the address of the signal's `struct ucontext`.
pub const UNWIND_SIGNAL: u8 = 2;
/// [`UnwindRule::next`]: a stub of the linker's, of 16 bytes; from [`UnwindRule::cfa`] on a word more is on the stack.
pub const UNWIND_STUB: u8 = 3;
/// [`UnwindRule::next`]: the base was saved by the function that was called, at rsp plus [`UnwindRule::frame`].
pub const UNWIND_BY_CALLEE: u8 = 4;
/// [`UnwindRule::next`]: plus the register that has the return address.
pub const UNWIND_IN_REGISTER: u8 = 16;

/// Numbers as `asm-generic/ioctl.h` makes them: direction, size, type, number. (The layout is the same on x86-64 and arm64.)
const fn ioctl(direction: u64, number: u64, bytes: usize) -> u64 {
    direction << 30 | (bytes as u64) << 16 | (b's' as u64) << 8 | number
}

const NONE: u64 = 0;
const WRITE: u64 = 1;
const READ: u64 = 2;

/// Reads an [`Info`], at any time.
pub const INFO: u64 = ioctl(READ, 1, size_of::<Info>());
/// Takes a [`Setup`], once, before mmap and [`START`].
pub const SETUP: u64 = ioctl(WRITE, 2, size_of::<Setup>());
/// Returns when begin probes have run and all is armed.
pub const START: u64 = ioctl(NONE, 3, 0);
/// Returns when all probes are disarmed, no handler runs any more and end probes have run.
pub const STOP: u64 = ioctl(NONE, 4, 0);
/// Takes and gives a [`Counters`].
pub const COUNTERS: u64 = ioctl(READ | WRITE, 5, size_of::<Counters>());
/// Takes and gives a [`CountersList`].
pub const COUNTERS_LIST: u64 = ioctl(READ | WRITE, 20, size_of::<CountersList>());
/// Takes a [`Set`], before [`START`].
pub const SET: u64 = ioctl(WRITE, 6, size_of::<Set>());
/// Takes a [`Keep`], at any time after [`SETUP`].
pub const KEEP: u64 = ioctl(WRITE, 7, size_of::<Keep>());
/// Takes a [`Gate`], at any time.
pub const GATE: u64 = ioctl(WRITE, 8, size_of::<Gate>());
/// Gives a [`GateState`].
pub const GATE_STATE: u64 = ioctl(READ, 9, size_of::<GateState>());
/// Takes and returns a [`Measure`], between [`SETUP`] and [`START`]: counts the hits of all probes without running
/// handlers.
pub const MEASURE: u64 = ioctl(READ | WRITE, 10, size_of::<Measure>());
/// Takes a [`Sample`], between [`SETUP`] and [`START`].
pub const SAMPLE: u64 = ioctl(WRITE, 11, size_of::<Sample>());
/// Takes a [`Switch`], while the session runs.
pub const SWITCH: u64 = ioctl(WRITE, 21, size_of::<Switch>());
/// Returns when all probes are disarmed and no handler runs any more: the first half of [`STOP`].
pub const QUIET: u64 = ioctl(NONE, 12, 0);
/// Cancels arming in [`START`]. Without argument, called by another thread.
pub const CANCEL: u64 = ioctl(NONE, 15, 0);
/// Takes and returns a [`Symbol`], at any time.
pub const SYMBOL: u64 = ioctl(READ | WRITE, 13, size_of::<Symbol>());
/// Takes and returns a [`File`], at any time: which file has that number.
pub const FILE: u64 = ioctl(READ | WRITE, 16, size_of::<File>());
/// Returns the next [`File`] that a stack led through while it had no table.
pub const WANTED: u64 = ioctl(READ, 17, size_of::<File>());
/// Takes and returns an [`Unwind`], once for each file.
pub const UNWIND: u64 = ioctl(READ | WRITE, 18, size_of::<Unwind>());
/// Returns an [`Arming`], at any time.
pub const ARMING: u64 = ioctl(READ, 19, size_of::<Arming>());
/// Returns an [`Owner`], at any time.
pub const OWNER: u64 = ioctl(READ, 14, size_of::<Owner>());
