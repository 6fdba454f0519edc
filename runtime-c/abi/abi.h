/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The interface between a module built by spile and the loader: the control device, the
 * rings and the records in them.
 *
 * Fixed-width fields, no pointers, little endian. The Rust twin is src/lib.rs beside
 * this file; a test compiles both and compares every size and offset. Includes nothing:
 * the includer has defined __u8 to __u64, __s32 and __s64 (<linux/types.h> in the
 * kernel and in user space).
 */
#ifndef SPILE_ABI_H
#define SPILE_ABI_H

#define SPILE_ABI_VERSION 10

/*
 * The control device of module NAME is the misc device "spile-NAME", its node
 * /dev/spile-NAME (mode 0600). One opener at a time (EBUSY), for reading and writing
 * (EACCES otherwise). When the last reference goes away while the session runs (the
 * loader was killed), the module disarms all probes by itself; it stays loaded, idle,
 * until the next spilerun removes it. With SPILE_KEEP the session continues without a
 * loader, and another one may open the device and read on where the first has ended
 * (the rings' tails are in their headers). read(2) returns the section .spile.meta.
 *
 * /proc/spile-NAME (mode 0600) is for queries: any number of openers beside the loader,
 * for SPILE_INFO, SPILE_COUNTERS, SPILE_COUNTERS_LIST, SPILE_GATE, SPILE_GATE_STATE, SPILE_OWNER,
 * SPILE_SWITCH and read(2). An open file does not pin the module.
 */
#define SPILE_DEVICE_PREFIX "spile-"

enum spile_state {
	SPILE_STATE_LOADED = 0,		/* nothing armed, no ring yet */
	SPILE_STATE_READY = 1,		/* arrays and rings made (SPILE_SETUP) */
	SPILE_STATE_STARTING = 2,	/* begin probes run */
	SPILE_STATE_RUNNING = 3,	/* probes armed */
	/*
	 * exit() called or error budget exhausted: no handler is started any more; the loader is
	 * to call SPILE_STOP
	 */
	SPILE_STATE_STOPPING = 4,
	SPILE_STATE_STOPPED = 5,	/* disarmed, end probes have run */
};

/* SPILE_INFO: read at any time. */
struct spile_info {
	__u32 abi;		/* SPILE_ABI_VERSION */
	__u32 state;		/* enum spile_state */
	/* rings: nr_cpu_ids; header of ring I at mmap offset I * header_bytes, then the chunks */
	__u32 cpus;
	__u32 header_bytes;	/* size of a ring's header: a page */
	/* most data bytes of each ring, a power of two, 0 before SPILE_SETUP */
	__u32 ring_bytes;
	__u32 probes;		/* probe sites in the module */
	__u32 errors;		/* run-time errors so far */
	__u32 skipped;		/* handler runs skipped so far, all reasons */
	__u64 memory_bytes;	/* allocated, and reserved for return probes */
	__u32 flags;		/* enum spile_info_flag */
	__u32 armed;		/* probe sites currently armed */
};
enum spile_info_flag {
	SPILE_INFO_KEPT = 1,		/* set by SPILE_KEEP */
	SPILE_INFO_OVERWRITE = 2,
	SPILE_INFO_OPENED = 4,		/* the device is open */
	SPILE_INFO_USER_STACKS = 8,	/* the script takes user stacks, or names their addresses */
	SPILE_INFO_UNARMED = 16,	/* a loader was killed while it armed the probes */
	SPILE_INFO_SUPPRESSED = 32,	/* an error only ends its handler */
};

/*
 * SPILE_ARMING: what is left of arming, at any time. Probes that become kprobes are
 * registered one after the other, and enabled when all are.
 */
struct spile_arming {
	__u32 to_enable;	/* kprobes that are enabled now, in all; 0: not yet, or over */
	__u32 enabled;		/* of them */
	__u64 left;		/* estimated ms until all are armed; 0: not known */
};

/*
 * SPILE_OWNER: the owner of the session, at any time. The owner is the real user of the
 * process that loaded the module. Every operation on the device (except poll) requires
 * the effective user to be the owner, if that is not root, or CAP_SYS_MODULE; otherwise
 * it fails with EPERM. The loader sets the rank, the limit and whether a service started
 * it by the module parameters spile_rank, spile_most and spile_service.
 */
struct spile_owner {
	__u32 uid;		/* in the initial user namespace */
	__u32 gid;
	__u32 rank;		/* enum spile_rank */
	__u32 flags;		/* enum spile_owner_flag */
	/*
	 * process that has the device open for a session, in the caller's pid namespace; 0: none
	 */
	__u32 opener;
	__u32 reserved;
	__u64 most_bytes;	/* memory limit of the session; 0: none */
	/* CLOCK_BOOTTIME, ns, of the load: distinguishes sessions of the same name */
	__u64 loaded;
};
enum spile_rank {
	SPILE_RANK_ROOT = 0,	/* or spilerun is not installed set-uid */
	SPILE_RANK_USR = 1,
	SPILE_RANK_SYS = 2,
	SPILE_RANK_DEV = 3,
};
enum spile_owner_flag {
	SPILE_OWNER_SERVICE = 1,	/* a service has started it */
	/* SPILE_SET has changed a global that commands of system() may depend on */
	SPILE_OWNER_HAS_SET = 2,
};

/* SPILE_SET: sets a global, before SPILE_START (EBUSY later). */
#define SPILE_SET_BYTES 1024
struct spile_set {
	__u32 setting;		/* index into the metadata's table of settings */
	__u32 offset;		/* strings are passed in pieces, in order; 0: the first */
	__u32 bytes;		/* of the piece; 0 for a number */
	__u32 reserved;
	__s64 number;
	__u8 text[SPILE_SET_BYTES];
};

/*
 * SPILE_GATE: controls the writes of a guru script (to probed registers, including
 * $return, and memory; not writes of embedded C through its own pointers). At any time;
 * the default is to do all writes. A write that the gate rejects has no effect and is not
 * an error.
 */
enum spile_gate_mode {
	SPILE_GATE_ENFORCE = 0,
	SPILE_GATE_OBSERVE = 1,		/* counted and reported, not written */
};
#define SPILE_GATE_SCOPES 16
struct spile_gate {
	__u32 mode;			/* enum spile_gate_mode */
	__u32 per_second;		/* maximum writes per second; 0: no limit */
	/* CLOCK_REALTIME, ns; no writes from then on; 0: never */
	__u64 expires;
	__u32 tell;			/* report this many writes, by SPILE_RECORD_REWRITE */
	__u32 reserved;
	__u32 uid_count;		/* each scope: the task is one of these; 0: any task */
	__u32 gid_count;
	__u32 pid_count;
	__u32 cgroup_count;
	__u32 uids[SPILE_GATE_SCOPES];	/* in the initial user namespace */
	__u32 gids[SPILE_GATE_SCOPES];
	/*
	 * processes, in the pid namespace of the caller; one that the current gate has too means the
	 * same process, whatever has that id now
	 */
	__u32 pids[SPILE_GATE_SCOPES];
	/* inode numbers of cgroup2 directories; a process is also in all parents of its own */
	__u64 cgroups[SPILE_GATE_SCOPES];
};
/* Outcomes; each write is counted in one of these. */
enum spile_gate_count {
	SPILE_GATE_REWRITTEN = 0,
	SPILE_GATE_OBSERVED = 1,
	SPILE_GATE_EXPIRED = 2,
	SPILE_GATE_OUT_OF_SCOPE = 3,
	SPILE_GATE_LIMITED = 4,
	SPILE_GATE_COUNTS = 5,
};
struct spile_gate_state {
	struct spile_gate gate;
	__u64 counts[SPILE_GATE_COUNTS];
};

/* SPILE_KEEP: what happens to the session when the device is closed. */
struct spile_keep {
	__u32 keep;		/* 1: it continues */
	/*
	 * while the device is not open, a full ring drops 0: new records, 1: the oldest (counted
	 * as lost)
	 */
	__u32 overwrite;
};

/* SPILE_SETUP: once, before mmap and SPILE_START. */
#define SPILE_ZONE_BYTES 16
struct spile_setup {
	/* most data bytes per CPU; rounded up to a power of two >= 64 KiB; 0: 4 MiB */
	__u32 ring_bytes;
	__s32 target;		/* value of target(): pid of -x or -c, 0 for none */
	__u32 flags;		/* enum spile_setup_flag */
	__s32 west;		/* tz_gmtoff(): seconds west of Greenwich; a day at most */
	char zone[SPILE_ZONE_BYTES];	/* tz_name(), with its NUL */
};
enum spile_setup_flag {
	/* time every run, not only some; costs two reads of the cycle counter */
	SPILE_SETUP_TIMED = 1,
	/* SPILE_RECORD_TASK before the records of another task: for recordings */
	SPILE_SETUP_TASKS = 2,
};

/*
 * SPILE_MEASURE: between SPILE_SETUP and SPILE_START (EBUSY later). Arms all probes for
 * this time, and disarms them; SPILE_COUNTERS then reports their hits, all as stopped. No
 * handler runs. SPILE_START resets these counts. Meanwhile SPILE_START, SPILE_SAMPLE and
 * another SPILE_MEASURE fail with EBUSY; SPILE_CANCEL, SPILE_STOP and a signal end it (EINTR), and
 * then nothing is armed any more.
 */
struct spile_measure {
	__u32 milliseconds;	/* in: 1 to 60000 */
	__u32 picoseconds;	/* out: approximate time of an instruction on this machine */
	__u64 nanoseconds;	/* out: time for which hits were counted */
	__u32 cpus;		/* out: online CPUs */
	__u32 reserved;
};

/*
 * SPILE_SAMPLE: between SPILE_SETUP and SPILE_START. On each CPU one in N hits of a probe
 * is handled, the others are counted as sampled. Does not apply to timers, files and
 * packets.
 */
struct spile_sampling {
	__u32 one_in;		/* 1: all are handled */
	__u32 reserved;
};

/*
 * SPILE_SWITCH: switches one probe site off, or on again, while the session runs (EBUSY before and
 * after). EOPNOTSUPP: it is not attached (begin, end, error, never). Where it can be turned off by
 * itself, it is detached and its hits are not counted; otherwise its hits are counted as stopped
 * (several sites that one kprobe serves, system calls, files, packets, perf events). A handler that
 * runs meanwhile ends. A condition of the probe point holds besides. Lasts until the end of the
 * session, also where the probed module is unloaded and loaded again.
 */
struct spile_switch {
	__u32 probe;
	__u32 off;		/* 1: off, 0: on */
};

/*
 * SPILE_COUNTERS: in: probe; out: the rest. Counters of one probe site: hits = handled +
 * filtered + nested + lock_skipped + low_stack + stopped + sampled + return_misses. A
 * call is one hit of its return probe, whether or not its return was probed.
 */
struct spile_counters {
	__u32 probe;
	__u32 armed;		/* registered now, and not off by SPILE_SWITCH (0 or 1) */
	__u64 hits;
	__u64 handled;		/* handler ran to its end, or to an error */
	__u64 filtered;		/* rejected by the probe point's condition */
	/* another handler was running on that CPU (includes the kernel's nmissed) */
	__u64 nested;
	__u64 lock_skipped;	/* a global's lock was not available */
	__u64 low_stack;
	__u64 errors;		/* of handled: ended with a run-time error */
	/* calls without a return probe: instances exhausted (struct kretprobe.nmissed) */
	__u64 return_misses;
	/* before all probes were armed, while the session stopped, or off by SPILE_SWITCH */
	__u64 stopped;
	__u64 lost_records;	/* records of its handler lost for lack of space */
	__u64 timed;		/* timed runs, for the following, in CPU cycles: */
	__u64 cycles;
	__u64 least_cycles;
	__u64 most_cycles;
	__u64 sampled;		/* skipped by SPILE_SAMPLE */
	/* enum spile_mechanism: how it is attached, or was last attached */
	__u32 mechanism;
	__u32 cost;		/* instructions of a run by the compiler's estimate */
	__u64 faulted_in;	/* times that memory was faulted in for the handler */
};

enum { SPILE_COUNTERS_LISTED = 28 };	/* with them, the argument fits into 4 KiB */

/*
 * SPILE_COUNTERS_LIST: in: first; out: the rest. Counters of `first` and the probe sites after
 * it.
 */
struct spile_counters_list {
	__u32 first;
	__u32 count;		/* out: the used entries; 0: there is no site `first` */
	struct spile_counters counters[SPILE_COUNTERS_LISTED];
};

enum spile_mechanism {
	SPILE_BY_NOTHING = 0,	/* begin, end, error, never; or not armed */
	SPILE_BY_FTRACE = 1,	/* called by ftrace, with the argument registers */
	SPILE_BY_FTRACE_WHOLE = 2,	/* and all registers */
	SPILE_BY_KPROBE_FTRACE = 3,	/* a kprobe that the kernel implements by ftrace */
	SPILE_BY_KPROBE = 4,	/* a breakpoint, or the jump that it is optimised to */
	SPILE_BY_KRETPROBE = 5,
	SPILE_BY_TRACEPOINT = 6,
	SPILE_BY_TIMER = 7,
	SPILE_BY_PERF = 8,
	SPILE_BY_FILE = 9,
	/* ftrace at the function's entry, a kretprobe's hook at its return */
	SPILE_BY_FTRACE_RETURN = 10,
	SPILE_BY_UPROBE = 11,
	SPILE_BY_URETPROBE = 12,
};

/*
 * SPILE_SYMBOL: the symbol of a kernel address at the time of a record that contains it;
 * at any time. Symbols of unloaded code are remembered as long as earlier records may be
 * unread, at most 64 pieces of code.
 */
#define SPILE_SYMBOL_TEXT 1024
#define SPILE_SYMBOL_LINE_TEXT 512
struct spile_symbol {
	__u64 address;
	__u64 time;		/* time of the record */
	/* out: valid for records up to this time; ~0: until spile_ring_header.changes changes */
	__u64 until;
	__u32 flags;		/* enum spile_symbol_flag */
	__u32 stays;		/* out: 1: valid until the kernel reboots */
	/* out: "NAME+OFFSET/SIZE [MODULE]", or "0xADDRESS"; NUL at the end */
	__u8 text[SPILE_SYMBOL_TEXT];
	/* out, if requested: "FILE:LINE", or ""; NUL at the end */
	__u8 line[SPILE_SYMBOL_LINE_TEXT];
};
enum spile_symbol_flag {
	SPILE_SYMBOL_LINE = 1,		/* the source line too */
	SPILE_SYMBOL_RETURNS = 2,	/* a return address: report the line of the call */
	/*
	 * a number of unknown age: no name if the address has been code of different names in
	 * this session
	 */
	SPILE_SYMBOL_STORED = 4,
};

/*
 * Stacks of user space. The module finds the files that are mapped at their addresses, and
 * numbers them from 1. A frame in a record has its place:
 *
 *   file << SPILE_PLACE_SHIFT | offset in the file
 *   process (tgid in the initial pid namespace)	without a file: code made at run time
 *   0							not known
 *
 * With SPILE_PLACE_INTERRUPTED a signal has come before the instruction at the address. Other
 * addresses, but a stack's first, are return addresses.
 *
 * SPILE_FILE: which file has that number; at any time. ENOENT: none.
 */
#define SPILE_PLACE_SHIFT 40
#define SPILE_PLACE_INTERRUPTED (1ull << 39)
#define SPILE_FILES 4096	/* maximum files of a session */
#define SPILE_FILE_PATH 256
struct spile_file {
	__u32 id;
	__u32 flags;		/* enum spile_file_flag */
	__u64 inode;		/* all 0 for the vDSO */
	__u32 device;		/* major and minor number, as stat(2) encodes them */
	__u32 generation;	/* of the inode */
	/* a process (tgid in the caller's pid namespace, 0: gone) that had it mapped there */
	__u32 process;
	__u32 reserved;
	__u64 address;
	/*
	 * within its file system, from its root on; with another first character than '/' the
	 * end of it; "": not known. NUL at the end
	 */
	__u8 path[SPILE_FILE_PATH];
};
enum spile_file_flag {
	SPILE_FILE_HAS_TABLE = 1,	/* SPILE_UNWIND was called for it */
};
/*
 * SPILE_WANTED: the next file without a table that is in a stack, or that a process with such a
 * stack has mapped as code; ENOENT: there is none. A file is reported again, at most once a
 * second, as long as stacks have it. poll reports POLLRDBAND while there is one.
 *
 * SPILE_UNWIND: how to unwind the stack in the code of a file. Once for each file (EEXIST). The
 * file is given by an address where the caller has mapped it, not by its path, so that it is the
 * same file that stacks have later. ENOSPC: the tables would take more than SPILE_UNWIND_MOST
 * bytes; EDQUOT: more than the session's limit; EUSERS: more than is meant for one user's programs.
 * After EUSERS the file may be reported again, when root or the session's owner has it in a stack.
 */
#define SPILE_UNWIND_MOST (64 << 20)
struct spile_unwind {
	__u64 mapping;		/* address of the mapping, or of the caller's vDSO */
	/*
	 * address of `rules` struct spile_unwind_rule, then `places` __u32: offsets in the
	 * file, ascending, from which a rule is valid; then as many __u16: indices of the
	 * rules, SPILE_UNWIND_UNKNOWN for code about which nothing is known
	 */
	__u64 table;
	__u32 rules;		/* 0: the file has no unwind information */
	__u32 places;
	__u32 id;		/* out: the file's number */
	__u32 build_id_bytes;
	__u8 build_id[20];
	__u32 reserved;
};
#define SPILE_UNWIND_UNKNOWN 0xffff
/*
 * The caller's frame, on x86-64. Registers have the numbers of the ABI's DWARF mapping, also
 * those of 32-bit programs. The CFA is BASE + cfa; with DEREFERENCE what is stored there, with
 * ADD_WORD a word more than that. Words have 8 bytes, with NARROW 4.
 */
struct spile_unwind_rule {
	__s32 cfa;
	__s16 frame;		/* where rbp is saved: CFA + this; 0: it is unchanged */
	__u8 base;		/* register, enum spile_unwind_base */
	__u8 next;		/* enum spile_unwind_next */
};
enum spile_unwind_base {
	SPILE_UNWIND_REGISTER = 15,	/* mask */
	SPILE_UNWIND_NARROW = 16,	/* of code of 32 bits: words have 4 bytes */
	SPILE_UNWIND_DEREFERENCE = 32,
	SPILE_UNWIND_ADD_WORD = 64,
	SPILE_UNWIND_FRAME_BASED = 128,	/* rbp is saved at rbp + `frame` */
};
enum spile_unwind_next {
	SPILE_UNWIND_STORED = 0,	/* the return address is below the CFA */
	SPILE_UNWIND_END = 1,		/* this is the outermost frame */
	SPILE_UNWIND_SIGNAL = 2,	/* rsp is the address of the signal's struct ucontext */
	/*
	 * a stub that the linker makes: CFA is rsp and a word, and from this offset in its 16
	 * bytes on (`cfa`) two words
	 */
	SPILE_UNWIND_STUB = 3,
	/*
	 * as STORED, and rbp is unchanged; the base, unless this is the innermost frame, was saved
	 * by the function that it has called, at rsp + `frame`
	 */
	SPILE_UNWIND_BY_CALLEE = 4,
	SPILE_UNWIND_IN_REGISTER = 16,	/* plus the register that has the return address */
};

/*
 * ioctl numbers: _IOR/_IOW/_IOWR/_IO ('s', N). SPILE_START returns when the begin probes have
 * run and all probes are armed; SPILE_QUIET when no handler runs any more: what is still armed
 * then is disarmed when the device is closed; SPILE_STOP after that and after the end probes have
 * run. A loader can empty the rings between the two, to make room for the output of
 * end probes. SPILE_CANCEL, called by another thread, cancels arming: SPILE_START returns at
 * once, the session is STOPPING, and nothing is armed after the step that is under way, which no
 * call waits for. A signal that kills the caller, SPILE_QUIET and SPILE_STOP have the same effect
 * while probes are being armed. Another signal ends SPILE_START (EINTR, or it is made again, by
 * SA_RESTART), and arming goes on. Begin and end probes may print more than a ring holds: the
 * loader has to read the rings in another thread during these calls.
 *
 * mmap: one ring's header at a time, header_bytes long, and the chunks of all rings at offset
 * cpus * header_bytes, chunks * chunk_bytes long; shared, writable. Pages of chunks that no ring
 * has held yet may be missing (SIGBUS). poll: POLLIN when
 * a ring holds unread bytes; it also allocates chunks that are needed. A loader that has set `waiting` is woken up to 10 ms after the
 * first record, or when a ring is half full. POLLPRI from SPILE_STATE_STOPPING on, at once (even
 * if the record EXIT was lost), POLLHUP too in SPILE_STATE_STOPPED: another process may have
 * stopped the session.
 */
#define SPILE_IOC_TYPE 's'
#define SPILE_INFO	_IOR(SPILE_IOC_TYPE, 1, struct spile_info)
#define SPILE_SETUP	_IOW(SPILE_IOC_TYPE, 2, struct spile_setup)
#define SPILE_START	_IO(SPILE_IOC_TYPE, 3)
#define SPILE_STOP	_IO(SPILE_IOC_TYPE, 4)
#define SPILE_COUNTERS	_IOWR(SPILE_IOC_TYPE, 5, struct spile_counters)
#define SPILE_SET	_IOW(SPILE_IOC_TYPE, 6, struct spile_set)
#define SPILE_KEEP	_IOW(SPILE_IOC_TYPE, 7, struct spile_keep)
#define SPILE_GATE	_IOW(SPILE_IOC_TYPE, 8, struct spile_gate)
#define SPILE_GATE_STATE	_IOR(SPILE_IOC_TYPE, 9, struct spile_gate_state)
#define SPILE_MEASURE	_IOWR(SPILE_IOC_TYPE, 10, struct spile_measure)
#define SPILE_SAMPLE	_IOW(SPILE_IOC_TYPE, 11, struct spile_sampling)
#define SPILE_QUIET	_IO(SPILE_IOC_TYPE, 12)
#define SPILE_SYMBOL	_IOWR(SPILE_IOC_TYPE, 13, struct spile_symbol)
#define SPILE_OWNER	_IOR(SPILE_IOC_TYPE, 14, struct spile_owner)
#define SPILE_CANCEL	_IO(SPILE_IOC_TYPE, 15)
#define SPILE_FILE	_IOWR(SPILE_IOC_TYPE, 16, struct spile_file)
#define SPILE_WANTED	_IOR(SPILE_IOC_TYPE, 17, struct spile_file)
#define SPILE_UNWIND	_IOWR(SPILE_IOC_TYPE, 18, struct spile_unwind)
#define SPILE_ARMING	_IOR(SPILE_IOC_TYPE, 19, struct spile_arming)
#define SPILE_COUNTERS_LIST	_IOWR(SPILE_IOC_TYPE, 20, struct spile_counters_list)
#define SPILE_SWITCH	_IOW(SPILE_IOC_TYPE, 21, struct spile_switch)

/*
 * Used by the loader: records up to `tail` are written out, and then the regular file of the
 * output (in bulk mode: this CPU's) has this length.
 */
struct spile_ring_written {
	__u64 tail;
	__u64 device;
	__u64 inode;
	__u64 bytes;
};

/*
 * Start of a ring's header page. head and tail are byte counts that never wrap. Byte N is in
 * chunk places[N / chunk_bytes % SPILE_RING_PLACES], at N modulo chunk_bytes; the place is valid
 * while the ring holds the chunk, from the first record in it to the release of the last. A record
 * is in one chunk: the writer fills the rest of a chunk with a SPILE_RECORD_PAD.
 */
#define SPILE_RING_PLACES 512
struct spile_ring_header {
	/* written by the module with release order, after the record's bytes */
	__u64 head;
	__u64 unused0[7];
	/*
	 * written by the loader with release order, after it has read and written out everything
	 * up to here
	 */
	__u64 tail;
	__u32 waiting;		/* loader sets 1 before it polls; module clears it and wakes */
	__u32 unused1;
	/*
	 * used by the loader: records up to here may have been printed although tail has not
	 * reached them
	 */
	__u64 printing;
	/* used by the loader, in the first ring: written[turn % 2] of all rings is valid */
	__u64 turn;
	__u64 unused3[4];
	__u64 lost_records;	/* written by the module: records lost for lack of space */
	__u64 lost_bytes;
	/* written by the module: changes when code of a module is unloaded */
	__u64 changes;
	__u32 chunk_bytes;	/* a power of two, at most ring_bytes; constant, like chunks */
	__u32 chunks;		/* that all rings together can have */
	__u64 unused2[4];
	struct spile_ring_written written[2];
	/* written by the module before the head that covers it */
	__u32 places[SPILE_RING_PLACES];
};

enum spile_record_kind {
	SPILE_RECORD_PAD = 0,	/* skip to the chunk's end; only .bytes holds */
	/*
	 * id: format, SPILE_FORMAT_TEXT or SPILE_FORMAT_STACK; payload: its arguments
	 * -> stdout or -o
	 */
	SPILE_RECORD_PRINT = 1,
	SPILE_RECORD_WARN = 2,	/* payload: one string -> stderr "WARNING: ..." */
	/*
	 * id: location; payload: one string, the message -> stderr "ERROR: ..."; a second one
	 * may follow: the call chain, innermost first, each location in 4 bytes
	 */
	SPILE_RECORD_ERROR = 3,
	SPILE_RECORD_EXIT = 4,	/* session is stopping; no payload */
	SPILE_RECORD_SYSTEM = 5,/* payload: one string, a command for sh -c as the invoking user */
	/* payload: one string -> stderr, only with -v (module armed, disarmed, ...) */
	SPILE_RECORD_NOTICE = 6,
	SPILE_RECORD_REWRITE = 7,/* payload: one string, what was written or observed -> stderr */
	/* payload: one string, a newly loaded live patch -> stderr, with what it replaces */
	SPILE_RECORD_LIVEPATCH = 8,
	/*
	 * The task of the records after it in this ring, with SPILE_SETUP_TASKS. Payload: a long,
	 * process id << 32 | thread id; one string, its name
	 */
	SPILE_RECORD_TASK = 9,
};

/* Records begin at multiples of 8 bytes. */
struct spile_record {
	__u32 bytes;		/* whole record with this header, a multiple of 8 */
	__u16 kind;		/* enum spile_record_kind */
	__u16 cpu;
	__u32 id;		/* by kind: format or location, index into the metadata's table */
	__u32 probe;		/* index of the probe site that wrote it */
	__u64 time;		/* CLOCK_MONOTONIC, ns (ktime_get_mono_fast_ns) */
};

/*
 * Payload, each part padded with zeros to a multiple of 8:
 *   long      8 bytes, signed
 *   string    __u32 length, then that many bytes (no NUL at the end)
 *   memory    as string; length SPILE_FAULT where the memory could not be read
 *   pretty    __u32 length of the raw object (or SPILE_FAULT), the raw bytes,
 *             then one string part for each STRING_POINTER and TEXT in the order in
 *             which the description visits them (SPILE_FAULT if unreadable)
 * Parts are in the order of the format's directives; a `*` width or precision is a long
 * before its value.
 */
#define SPILE_FAULT 0xffffffffu

/*
 * The id of a SPILE_RECORD_PRINT whose payload is one string, printed unchanged: log(),
 * and text made by embedded C.
 */
#define SPILE_FORMAT_TEXT 0xffffffffu

/*
 * The id of a SPILE_RECORD_PRINT whose payload is a stack, printed with a line for each address:
 * a long with enum spile_stack_flag; with RETURNING one string, the function; then the
 * addresses, 8 bytes each, as one memory part; with STORED each is followed by a time
 * (CLOCK_MONOTONIC, ns) at which the address belonged to the intended code, 0 for the record's
 * time; with OF_USER by its place (SPILE_PLACE_SHIFT).
 */
#define SPILE_FORMAT_STACK 0xfffffffeu
#define SPILE_STACK_FRAMES 128		/* maximum addresses of one stack */
enum spile_stack_flag {
	SPILE_STACK_OF_USER = 1,	/* of user space */
	SPILE_STACK_FULL = 2,		/* " 0xADDRESS : " before each name */
	SPILE_STACK_LINES = 4,		/* source lines after them */
	SPILE_STACK_RETURNING = 8,	/* on a return: the first address is the return address */
	/* the first address is that of an instruction, all others are return addresses */
	SPILE_STACK_AT_PROBE = 16,
	SPILE_STACK_STORED = 32,	/* by the script, at times other than the record's */
};

/* spile_record.probe of a record of the session itself. */
#define SPILE_NO_PROBE 0xffffffffu

/*
 * The id of a SPILE_RECORD_ERROR without a location in the script: print neither "near"
 * nor "in probe".
 */
#define SPILE_NO_LOCATION 0xffffffffu

/*
 * A format: bytecode that the loader (and for sprintf the module's runtime)
 * interprets over a payload. Numbers little endian, unaligned.
 */
enum spile_format_op {
	SPILE_FORMAT_END = 0,
	SPILE_FORMAT_LITERAL = 1,	/* u16 length, bytes */
	/*
	 * u8 conversion ('d' 'i' 'u' 'o' 'x' 'X' 'p' 's' 'c' 'b' 'm' 'M', enum
	 * spile_named), u8 flags, u8 width kind, u8 precision kind, u32 width, u32
	 * precision
	 */
	SPILE_FORMAT_DIRECTIVE = 2,
	/*
	 * u8 enum spile_histogram_kind (script.h), i64 low, i64 high, i64 width;
	 * payload: a memory part with the u64 counts of the buckets
	 */
	SPILE_FORMAT_HISTOGRAM = 4,
	/*
	 * An object: u32 number of its description (below), in the metadata for the loader, in
	 * the script (script.h) for the runtime; uses a payload part of its own
	 */
	SPILE_FORMAT_DESCRIBED = 5,
	/*
	 * u8 columns of the longest bar, at least 1; u8 empty rows that are kept next to one that
	 * is not empty, 255: all; then as SPILE_FORMAT_HISTOGRAM
	 */
	SPILE_FORMAT_CHART = 6,
};
/*
 * Conversions of addresses to text: only in the loader, which looks up symbols
 * (SPILE_SYMBOL). Padded and truncated as 's'. With the flag '#' the long is a number
 * that the script has stored (SPILE_SYMBOL_STORED).
 */
enum spile_named {
	SPILE_NAMED_SYMBOL = 'N',	/* long: "NAME" */
	SPILE_NAMED_DATA = 'D',		/* long: "NAME+OFFSET/SIZE [MODULE]" */
	SPILE_NAMED_MODULE = 'O',	/* long: "MODULE", "kernel" or "<unknown>" */
	/* memory, 8 bytes for each address: printed in hex, separated by blanks */
	SPILE_NAMED_ADDRESSES = 'A',
	SPILE_NAMED_STACK = 'K',	/* the same: a line for each, as for DATA */
	/*
	 * memory, 16 bytes for each, the address and a time as in a stack with STACK_STORED:
	 * a line for each, as for DATA
	 */
	SPILE_NAMED_STORED_STACK = 'S',
	/*
	 * Of user space. Memory, 16 bytes for each frame, the address and where it is
	 * (SPILE_PLACE_SHIFT): a line for each
	 */
	SPILE_NAMED_USER_STACK = 'U',
	SPILE_NAMED_USER_TEXT = 'T',	/* string, "0xADDRESS@FILE+OFFSET ...": the same */
	/* the same string: "OUTERMOST;...;INNERMOST", as programs that draw flame graphs read it */
	SPILE_NAMED_USER_FOLDED = 'V',
	/* The same memory part with one frame: */
	SPILE_NAMED_USER_SYMBOL = 'Y',	/* "NAME" */
	SPILE_NAMED_USER_DATA = 'Z',	/* "NAME+OFFSET/SIZE [PATH]" */
	SPILE_NAMED_USER_FILE = 'F',	/* source file */
	SPILE_NAMED_USER_LINE = 'L',	/* its line */
	SPILE_NAMED_USER_FILE_LINE = 'G',	/* "FILE:LINE" */
	SPILE_NAMED_USER_BUILD_ID = 'B',	/* in hex */
};
enum spile_format_flag {
	SPILE_FLAG_ZERO = 1, SPILE_FLAG_PLUS = 2, SPILE_FLAG_MINUS = 4, SPILE_FLAG_SPACE = 8,
	SPILE_FLAG_SHARP = 16,
};
enum spile_size_kind {
	SPILE_SIZE_NONE = 0, SPILE_SIZE_FIXED = 1, SPILE_SIZE_STAR = 2,
};

/*
 * A description of an object for $x$ and $x$$: u32 size of the raw object in bytes, then
 * ops. Offsets are relative to the enclosing base (0, or the current element of a
 * REPEAT).
 */
/* In the size. */
enum {
	SPILE_PRETTY_USER = 1 << 30,	/* object and strings are in user space */
	SPILE_PRETTY_NARROW = 1 << 29,	/* its pointers have 4 bytes: of a 32-bit program */
};
enum spile_pretty_op {
	SPILE_PRETTY_END = 0,
	SPILE_PRETTY_LITERAL = 1,	/* u16 length, bytes */
	/*
	 * u32 offset, u8 size 1 2 4 8, u8 first bit, u8 bits (0: all), u8 style; size 16 with all
	 * bits and STYLE_HEX
	 */
	SPILE_PRETTY_INTEGER = 2,
	/* u32 offset, u32 length: char array, quoted up to its first NUL */
	SPILE_PRETTY_CHARS = 3,
	/* u32 offset of a char *: quoted text; NULL: 0x0; unreadable: ERROR */
	SPILE_PRETTY_STRING_POINTER = 4,
	/*
	 * u32 offset, u32 count, u32 stride, u32 body length, body ending in END:
	 * elements with ", " between
	 */
	SPILE_PRETTY_REPEAT = 5,
	SPILE_PRETTY_UNKNOWN = 6,	/* a value that has no text: ? */
	/*
	 * As INTEGER, style SIGNED or UNSIGNED; u16 bytes of a table of names: s64 number, u8
	 * length, name. The first name with the number is printed; without one, as INTEGER
	 */
	SPILE_PRETTY_ENUM = 7,
	/*
	 * u32 offset, u8 size 1 2 4 8 of an unsigned number, u8 other, u16 values, u32 body
	 * length, u64 values, body without END: printed only if the number has one of the values,
	 * or with `other` none. Its strings are in the record in any case
	 */
	SPILE_PRETTY_WHEN = 8,
	/*
	 * u32 offset of a pointer to text, u32 offset of its length in bytes, of the size of a
	 * pointer: all of it quoted, up to the size of a string; unreadable: the pointer
	 */
	SPILE_PRETTY_TEXT = 9,
};
enum spile_pretty_style {
	SPILE_STYLE_SIGNED = 0, SPILE_STYLE_UNSIGNED = 1, SPILE_STYLE_HEX = 2 /* 0x..., pointers */,
	SPILE_STYLE_CHAR = 3 /* 'c', escapes as in C, octal for the rest */,
	SPILE_STYLE_FUNCTION = 4 /* <function>:0x... */,
	SPILE_STYLE_FLOAT = 5 /* IEEE 754, of 4 or 8 bytes and all bits: 2.500000, inf, nan */,
};

#endif
