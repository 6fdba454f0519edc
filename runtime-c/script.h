/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The runtime's interface for the generated C of a script. Includes nothing, in particular no
 * kernel header: a script's unit then compiles in milliseconds and does not depend on the
 * kernel. The runtime's own units include it too, so that both sides are checked against each
 * other.
 *
 * Everything here may be called in any context that a handler runs in (NMI included), never
 * sleeps or allocates, and is bounded as described.
 */
#ifndef SPILE_SCRIPT_H
#define SPILE_SCRIPT_H

struct pt_regs;			/* the kernel's; a script's unit does not look into it */

typedef long long spile_long;			/* the language's long */
typedef unsigned long long spile_ulong;

#define SPILE_NONE ((void *)0)	/* no address; NULL is the kernel's name for it */
#define SPILE_LOCAL __attribute__((unused))	/* a variable that may be set and never read */
/* A number that is used without a lock: by one load or store. */
#define spile_single(x) (*(volatile spile_long *)&(x))
/*
 * The store is visible to other CPUs before this one continues, like a store under a lock:
 * of two CPUs that store and then load the other one's value, at least one sees it.
 */
#define spile_set_single(x, value) \
	((void)__atomic_exchange_n(&(x), (spile_long)(value), __ATOMIC_SEQ_CST))
#define spile_unlikely(x) __builtin_expect(!!(x), 0)
#define spile_likely(x) __builtin_expect(!!(x), 1)

/*
 * A string value: bytes in memory that outlives the expression (a literal, a
 * slot of the frame, a global under its lock). text[length] is NUL.
 */
struct spile_string {
	const char *text;
	unsigned int length;	/* < spile_script.string_bytes */
};

#define SPILE_LITERAL(s) ((struct spile_string){ (s), sizeof(s) - 1 })

enum spile_error {
	SPILE_OK = 0,
	SPILE_E_DIVISION,		/* "division by 0" */
	SPILE_E_READ_FAULT,		/* "read fault [man error::fault] at 0x<detail>" */
	SPILE_E_WRITE_FAULT,		/* "write fault [man error::fault] at 0x<detail>" */
	SPILE_E_NESTING,		/* "MAXNESTING exceeded" */
	SPILE_E_MESSAGE,		/* text in the context: error(), STAP_ERROR, builtins */
	/* Those from here on cannot be caught. */
	SPILE_E_ACTIONS,		/* "MAXACTION exceeded" */
	SPILE_E_TIME,			/* the run has taken too long (actions.c) */
	/* Those from here on have no message. */
	SPILE_E_ABORT,			/* abort() */
	/* a page of the process is missing: the run is repeated (fault_in.c) */
	SPILE_E_RESTART,
};

struct spile_item;
struct spile_probe;
struct spile_context;

enum {
	SPILE_MAX_KEYS = 9,
	SPILE_MAX_BUCKETS = 128,
};

union spile_key {
	spile_long number;
	struct spile_string text;
};

/* An element of a striped array that a run uses (spile_map_hold()). */
struct spile_held {
	/* of its stripe: the run's context; 0: not held, or by another one of several elements */
	struct spile_context **holder;
	char *value;			/* of the element; 0: there is none */
	unsigned int number;		/* the element's */
	unsigned int hash;
	union spile_key keys[SPILE_MAX_KEYS];
};

enum { SPILE_ERROR_BUFFER = 256 };	/* bytes */
enum { SPILE_MOST_HELD = 16 };	/* elements of striped arrays in one run */

/*
 * The state of a handler run, one for each CPU. The runtime's part follows these fields (struct
 * spile_cpu).
 */
struct spile_context {
	/* the probed registers: struct pt_regs as words; 0 in begin, end, timers of user origin */
	unsigned long *regs;
	spile_long *counters;		/* this CPU's, spile_script.counter_count of them */
	/* .return: values saved by the entry handler; entry handler: where to save them;
	 * else 0
	 */
	char *entry;
	const struct spile_probe *probe;/* running */
	/* Work that a run can leave for its end; tested together as `left`. */
	union {
		struct {
			/* enum spile_error; set: unwind to the nearest catch or to the end */
			int error;
			/* the probe point's own condition turned the hit away */
			unsigned short filtered;
			unsigned short stale;	/* enum spile_stale: work after this run */
		};
		spile_ulong left;
	};
	/* Initial values of a run; set together as `begun`. */
	union {
		struct {
			int actions;	/* statements left until actions.c grants more */
			/*
			 * place of the operation that may fail next or has failed: an index into
			 * the metadata's table of locations
			 */
			unsigned int location;
		};
		spile_ulong begun;
	};
	/* written by this CPU alone; 1 while a run or the session owns the context */
	int busy;
	unsigned int depth;		/* function calls now open */
	char *values;			/* this CPU's, of aggregates (map_init.c) */
	/*
	 * This CPU's ring (ring.c): address and position of the next record, and the position up
	 * to which there certainly is room.
	 */
	char *record;
	spile_ulong record_at;
	spile_ulong record_limit;
	unsigned int print_mark;	/* spile_record_head.mark of SPILE_RECORD_PRINT */
	unsigned int steps;		/* work below one statement: less than SPILE_STEPS */
	char *frame;			/* free part of this CPU's frame memory */
	char *frame_end;
	int next;			/* the function was left by next */
	/*
	 * set while a run that has had effects takes stripes: it waits longer, and fails if it
	 * does not get them
	 */
	int late;
	/* embedded C sets this to fail: its function clears it first, and tests it at the end */
	const char *last_error;
	struct spile_held held[SPILE_MOST_HELD];
	/* for embedded C that names them: set before it runs (spile_embedded_registers()) */
	struct pt_regs *kregs;		/* where the kernel was hit; 0 where it was not */
	struct pt_regs *uregs;		/* the program's; 0 for a kernel thread */
	int user_mode_p;		/* a program was hit */
	const char *probe_point;	/* as pp() */
	char error_buffer[SPILE_ERROR_BUFFER];	/* for text that last_error points to */
};

enum spile_stale {
	SPILE_STALE_RUN = 1,		/* discard data that the runtime keeps for this run only */
	/* evaluate conditions: the handler may have changed globals that they read */
	SPILE_STALE_CONDITIONS = 2,
	SPILE_STALE_LOCKED = 4,		/* count it as skipped: a lock was held */
	/* count its time: it has waited (spile_cpu.waited), or used up its first statements */
	SPILE_STALE_LONG = 8,
};

/* The context of a handler with counts_only. */
struct spile_counting {
	unsigned long *regs;
	spile_long *counters;
};

static inline spile_long spile_took_next(struct spile_context *c)
{
	int next = c->next;

	c->next = 0;
	return next;
}

/* A constant that a probe passes to a handler shared with other probes. */
union spile_constant {
	spile_long number;
	struct spile_string text;
	const struct spile_item *items;
};
#define SPILE_OWN(n) (c->probe->constants[n])

enum spile_probe_kind {
	SPILE_PROBE_BEGIN, SPILE_PROBE_END, SPILE_PROBE_ERROR, SPILE_PROBE_NEVER,
	SPILE_PROBE_KPROBE,		/* at target + address */
	SPILE_PROBE_KRETPROBE,
	SPILE_PROBE_TIMER,
	SPILE_PROBE_JIFFIES,
	SPILE_PROBE_PERF,		/* a perf event on each CPU */
	SPILE_PROBE_PROCFS,
	SPILE_PROBE_WATCH,		/* data at target + address */
	SPILE_PROBE_USER_WATCH,		/* data of a program, at address */
	SPILE_PROBE_PROGRAM_COUNTER,	/* a perf event of each thread that runs a program */
	SPILE_PROBE_UPROBE,		/* at an instruction of a program */
	SPILE_PROBE_URETPROBE,
	/* From here on the context's regs are not a struct pt_regs but words of the kind's own. */
	SPILE_PROBE_TRACEPOINT,		/* the event's arguments; of its place: target alone */
	SPILE_PROBE_SYSCALL,		/* arguments 1 to 6, result, number */
	SPILE_PROBE_NETFILTER,		/* skb, in, out, hook, verdict; the verdict is read back */
};

/*
 * A script references the families of its probes by name. A module has no others: unreferenced
 * code is left out of it (kbuild/src/prune).
 */
#define SPILE_USES(kind) \
	static const void *const spile_uses_##kind __attribute__((used)) = SPILE_FAMILY_##kind
#define SPILE_FAMILY_SPILE_PROBE_BEGIN SPILE_NONE
#define SPILE_FAMILY_SPILE_PROBE_END SPILE_NONE
#define SPILE_FAMILY_SPILE_PROBE_ERROR SPILE_NONE
#define SPILE_FAMILY_SPILE_PROBE_NEVER SPILE_NONE
#define SPILE_FAMILY_SPILE_PROBE_KPROBE &spile_kprobe_family
#define SPILE_FAMILY_SPILE_PROBE_KRETPROBE &spile_kretprobe_family
#define SPILE_FAMILY_SPILE_PROBE_TIMER &spile_timer_family
#define SPILE_FAMILY_SPILE_PROBE_JIFFIES &spile_jiffies_family
#define SPILE_FAMILY_SPILE_PROBE_PERF &spile_perf_family
#define SPILE_FAMILY_SPILE_PROBE_PROCFS &spile_procfs_family
#define SPILE_FAMILY_SPILE_PROBE_WATCH &spile_watch_family
#define SPILE_FAMILY_SPILE_PROBE_USER_WATCH &spile_user_watch_family
#define SPILE_FAMILY_SPILE_PROBE_PROGRAM_COUNTER &spile_program_counter_family
#define SPILE_FAMILY_SPILE_PROBE_UPROBE &spile_uprobe_family
#define SPILE_FAMILY_SPILE_PROBE_URETPROBE &spile_uretprobe_family
#define SPILE_FAMILY_SPILE_PROBE_TRACEPOINT &spile_tracepoint_family
#define SPILE_FAMILY_SPILE_PROBE_SYSCALL &spile_syscall_family
#define SPILE_FAMILY_SPILE_PROBE_NETFILTER &spile_netfilter_family
extern const struct spile_family spile_kprobe_family, spile_kretprobe_family, spile_timer_family,
	spile_jiffies_family, spile_perf_family, spile_procfs_family, spile_watch_family,
	spile_uprobe_family, spile_uretprobe_family, spile_tracepoint_family,
	spile_syscall_family, spile_netfilter_family, spile_user_watch_family,
	spile_program_counter_family;

/* Likewise, parts of the runtime (optional.c). */
#define SPILE_NEEDS(part) \
	static const void *const spile_needs_##part __attribute__((used)) = spile_part_##part
extern const void *const spile_part_sites[], *const spile_part_symbols[],
	*const spile_part_arrays[], *const spile_part_programs[], *const spile_part_user_files[],
	*const spile_part_settings[], *const spile_part_program_counters[],
	*const spile_part_followed[], *const spile_part_exceptions[];

/* Whether a probe's regs are words of its own kind and no struct pt_regs. */
#define SPILE_REGS_ARE_WORDS(kind) ((kind) >= SPILE_PROBE_TRACEPOINT)

/* Fields of only one kind of probe: the members of the union in struct spile_probe. */

struct spile_timer {
	spile_ulong period;		/* TIMER: ns; JIFFIES: ticks of the kernel's timer */
	spile_ulong random;		/* up to this much is added to each period */
};

struct spile_tracepoint {
	const char *name;
	unsigned int arguments;
};

enum { SPILE_SYSCALL_RESULT = 6, SPILE_SYSCALL_NUMBER };	/* words after the arguments */
enum { SPILE_NO_SYSCALL = -1, SPILE_ANY_SYSCALL = -2 };
struct spile_syscall {
	int number;			/* or one of those above */
	int compat_number;		/* of 32-bit programs */
	int returning;
};

struct spile_procfs_file {
	const char *path;		/* below /proc/systemtap/MODULE */
	unsigned int rights;		/* of the file's mode */
	int writes;			/* runs when it is written, else when it is read */
	unsigned int most;		/* bytes that a reader gets; 0: string_bytes */
};

enum {
	SPILE_PACKET_SKB,
	SPILE_PACKET_IN,
	SPILE_PACKET_OUT,
	SPILE_PACKET_HOOK,
	SPILE_PACKET_VERDICT,
	SPILE_PACKET_WORDS
};
struct spile_netfilter {
	/* NFPROTO_, NF_INET_ and priority of include/uapi/linux/netfilter.h */
	unsigned int family;
	unsigned int hook;
	spile_long priority;
};

struct spile_watch {
	unsigned int length;		/* 1, 2, 4 or 8 bytes */
	int reads;			/* reading counts too */
};

struct spile_user_watch {
	unsigned int length;
	int reads;
	unsigned int program;		/* index into programs */
	spile_ulong entry;		/* link-time address at which the program begins */
	spile_ulong entry_offset;	/* in the file, of the same byte */
	int linked;			/* the probe's address is a link-time one */
	spile_long pid;			/* as in spile_uprobe */
};

struct spile_program_counter {
	unsigned int type;		/* as in spile_perf */
	spile_ulong config;
	unsigned int program;		/* index into programs */
	spile_ulong entry_offset;	/* in the file, of the byte at which the program begins */
	spile_long pid;			/* as in spile_uprobe */
};

struct spile_uprobe {
	unsigned int program;		/* index into programs */
	spile_ulong offset;		/* in the file */
	spile_ulong address;		/* link-time, of the same byte */
	spile_ulong counted;		/* in the file: a 16-bit count of the tracers; 0: none */
	/* the process that the probe is for; 0: those of the session (follow.c) */
	spile_long pid;
	int at_entry;			/* a function begins there */
};

/* How memory of the process that a handler reads is faulted in (fault_in.c). */
enum spile_paging {
	SPILE_PAGING_NONE,
	SPILE_PAGING_AHEAD,		/* another routine reads it first */
	/* the handler reads it before it has any effect: it ends, and runs again */
	SPILE_PAGING_RESTART,
};

enum spile_sample {
	SPILE_SAMPLE_PERIOD,
	SPILE_SAMPLE_FREQUENCY,
	SPILE_SAMPLE_TICK,
	SPILE_SAMPLE_COUNTER
};
struct spile_perf {
	unsigned int type;		/* perf_event_attr.type and .config */
	spile_ulong config;
	enum spile_sample sample;
	/* events or, of a clock, ns; times a second; TICK, COUNTER: 0 */
	spile_ulong value;
};

/* One probe site. */
struct spile_probe {
	const char *point;		/* canonical spelling: pp() */
	const char *script_point;	/* as the script wrote it: pn() */
	const char *function;		/* probed function, or "": ppfunc(), probefunc() */
	const char *module;		/* probed module, "kernel", or "": probemod() */
	enum spile_probe_kind kind;
	/* UPROBE, URETPROBE: enum spile_paging, of the handler and the entry handler */
	unsigned char paging;
	unsigned char entry_paging;
	void (*handler)(struct spile_context *c);
	/* KRETPROBE, URETPROBE, SYSCALL: saves values at entry; or 0 */
	void (*entry_handler)(struct spile_context *c);
	/*
	 * PAGING_AHEAD: only reads the memory of the process that the handler and the entry
	 * handler are going to read
	 */
	void (*ahead)(struct spile_context *c);
	void (*entry_ahead)(struct spile_context *c);
	unsigned int entry_bytes;	/* saved for each call in flight */
	int target;			/* index into targets; -1: none */
	/*
	 * target is a module: anchor symbol, unique in it; no target: "symbol" or
	 * "module:symbol"; 0: address is absolute (kernel, link time; no target: at run
	 * time)
	 */
	const char *symbol;
	/* kernel: link-time address; module: bytes after the anchor symbol */
	unsigned long address;
	union {				/* by kind */
		spile_long order;		/* BEGIN, END, ERROR: ascending */
		unsigned int maxactive;		/* KRETPROBE: 0 for the runtime's default */
		/* KPROBE: code jumps to where a jump in its place would reach */
		unsigned int stays_breakpoint;
		struct spile_timer timer;	/* TIMER, JIFFIES */
		struct spile_tracepoint tracepoint;
		struct spile_perf perf;
		struct spile_syscall syscall;
		struct spile_procfs_file procfs;
		struct spile_netfilter netfilter;
		struct spile_watch watch;
		struct spile_user_watch user_watch;
		struct spile_program_counter program_counter;
		struct spile_uprobe uprobe;	/* UPROBE, URETPROBE */
	};
	/* globals locked for the whole handler: (index << 2) | enum spile_lock_mode, ascending */
	const unsigned int *locks;
	unsigned int lock_count;
	const unsigned int *entry_locks;	/* as locks: for the entry handler */
	unsigned int entry_lock_count;
	/*
	 * condition of the probe point, or 0: sets filtered if it does not hold; the handler
	 * tests it too
	 */
	void (*condition)(struct spile_context *c);
	const unsigned int *condition_locks;	/* like locks: of the globals that it reads */
	unsigned int condition_lock_count;
	/*
	 * the handler does nothing but add to counters: it cannot fail, and uses only
	 * spile_counting of its context
	 */
	unsigned int counts_only;
	/*
	 * counts_only: the handler only adds `addend` to counter number adds_to - 1; 0: it does
	 * something else
	 */
	unsigned int adds_to;
	spile_long addend;
	/*
	 * the handler takes no lock, is not charged for statements or steps, and sets the
	 * location of operations that may fail itself, so `begun` need not be set; the same for
	 * the entry handler
	 */
	unsigned int simple;
	unsigned int entry_simple;
	unsigned int index;		/* in spile_script.probes */
	const union spile_constant *constants;	/* of this probe, for a shared handler; 0: none */
	/* estimated instructions of a run, without the mechanism that calls the handler */
	unsigned int cost;
	/*
	 * KPROBE, TRACEPOINT: bit N: the handler may look at word N of regs; KRETPROBE:
	 * the entry handler may
	 */
	spile_ulong registers;
};

/* A symbol that is unique in its module: variables are addressed relative to it. */
struct spile_module_symbol {
	const char *name;
	int target;			/* index into targets */
	/* set by the runtime while the module is loaded, else 0, so that reads fault */
	unsigned long address;
};

struct spile_span {
	unsigned int first;		/* byte */
	unsigned int length;
};

/* Fingerprint of a probed function: its code as the script was compiled for it. */
struct spile_fingerprint {
	const char *function;
	int target;			/* index into targets */
	const char *symbol;		/* as in spile_probe */
	/* of the first byte, as in spile_probe; may count backwards from the symbol */
	unsigned long address;
	const unsigned char *bytes;
	unsigned int length;
	/* spans that the kernel itself patches; in order, not overlapping */
	const struct spile_span *patched;
	unsigned int patched_count;
};

/* How an object is printed (abi.h, enum spile_pretty_op). */
struct spile_description {
	const unsigned char *code;
	unsigned int bytes;
};

/* Source lines of one object's code (lines.c has the layout). */
struct spile_lines {
	const char *module;		/* as spile_target's name */
	const unsigned char *bytes;
};

/* One object that probes are in. */
struct spile_target {
	const char *name;		/* "" for the kernel, else module name with _ for - */
	unsigned char build_id[20];
	unsigned int build_id_bytes;	/* 0: the object has none, do not check */
	/* kernel: link-time address of the build-id's bytes in .notes, 0 if unknown */
	unsigned long build_id_address;
};

/* A file of user space that probes are in. */
struct spile_program {
	const char *path;
	unsigned char build_id[20];
	unsigned int build_id_bytes;	/* 0: the file has none */
	/*
	 * Of a file without one the bytes of its code and their sum; 0: do not check. The sum is
	 * FNV-1a over 64-bit words of the segments (PT_LOAD) that can be executed, without the ELF
	 * header (the file's first 64 bytes); the last word of a segment is filled up with zeros.
	 */
	spile_ulong code_bytes;
	spile_ulong code_sum;
	int unwinds_only;		/* no probe is in it, only unwinders */
};

/* A function of a program that looks for who catches an exception (exceptions.c). */
struct spile_unwinder {
	unsigned int program;		/* index into programs */
	spile_ulong offset;		/* in the file */
	int catches;			/* called where one has been caught */
};

/*
 * Globals that are arrays or aggregates. An aggregate that is not an array is a map without
 * keys. Elements are made by SPILE_SETUP; nothing is allocated later.
 */
enum spile_value_kind {
	SPILE_VALUE_LONG, SPILE_VALUE_STRING,
	SPILE_VALUE_STATS,		/* an aggregate: fed by <<<, read by extractors */
};
enum spile_histogram_kind { SPILE_HISTOGRAM_NONE, SPILE_HISTOGRAM_LINEAR, SPILE_HISTOGRAM_LOG };
/* The kind of an aggregate, the same for all elements of a map. */
struct spile_stats_kind {
	int variance;			/* @variance is used somewhere */
	unsigned int shift;		/* its bits of additional precision, 0..62 */
	enum spile_histogram_kind histogram;
	/*
	 * LINEAR: low <= high, width > 0, at most SPILE_MAX_BUCKETS with the two outer
	 * ones (checked by the compiler)
	 */
	spile_long low, high, width;
};

struct spile_map {
	const char *name;		/* the global's, for messages */
	unsigned int index;		/* in spile_script.maps */
	unsigned int keys;		/* 0: one element, always there */
	unsigned int string_keys;	/* bit I: key I is a string */
	enum spile_value_kind value;
	unsigned int entries;		/* most elements: MAXMAPENTRIES or the declared size */
	/* declared by the script: the overflow message differs */
	int sized;
	int wrap;			/* when full, the oldest element is deleted */
	/* VALUE_LONG: armed probes only add to it, counted on each CPU (spile_map_count()) */
	int counted;
	/* armed handlers hold the stripe of one element, or SPILE_LOCK_ALL */
	int striped;
	unsigned int lock;		/* striped: the index of its lock */
	struct spile_stats_kind stats;	/* VALUE_STATS */
	/* of a map without keys: set to its offset in each CPU's `values` (scalar.c); or 0 */
	unsigned long *place;
};

/*
 * Bit I of `any`: key I is `*`, and its value in keys is ignored. For a map without keys, keys
 * may be 0. Returned strings point into the map and are valid until it is changed.
 * Errors: "Array overflow, check MAXMAPENTRIES" or "Array overflow, check size limit (N)";
 * "empty aggregate" for MIN, MAX, AVERAGE and VARIANCE of nothing.
 */
/* 0 if absent */
spile_long spile_map_long(struct spile_context *c, const struct spile_map *map,
			  const union spile_key *keys);
/* "" if absent */
struct spile_string spile_map_text(struct spile_context *c, const struct spile_map *map,
				   const union spile_key *keys);
int spile_map_has(struct spile_context *c, const struct spile_map *map, const union spile_key *keys,
		  unsigned int any);
void spile_map_set_long(struct spile_context *c, const struct spile_map *map,
			const union spile_key *keys, spile_long value);
void spile_map_set_text(struct spile_context *c, const struct spile_map *map,
			const union spile_key *keys, struct spile_string value);
/* returns the new value */
spile_long spile_map_add(struct spile_context *c, const struct spile_map *map,
			 const union spile_key *keys, spile_long delta);
/* the same where the only key is a long, and not counted */
spile_long spile_map_add_one(struct spile_context *c, const struct spile_map *map, spile_long key,
			     spile_long delta);
/*
 * striped: takes the stripe of this element until the end of the run, and finds the element,
 * which may be absent. One per map (or see spile_map_hold_several()); those of several maps are taken in the order of
 * their locks, after all other locks. Returns 0 if the holder does not release it: the handler
 * must end at once and is counted as skipped. The strings of keys must stay valid until the end of
 * the run.
 */
int spile_map_hold(struct spile_context *c, const struct spile_map *map, struct spile_held *held,
		   const union spile_key *keys);
/* The same where the only key is a long. */
int spile_map_hold_long(struct spile_context *c, const struct spile_map *map,
			struct spile_held *held, spile_long key);
/* Releases the stripe, if it is held. */
static inline void spile_map_release(struct spile_held *held)
{
	struct spile_context **holder = held->holder;

	if (spile_unlikely(!holder))
		return;
	held->holder = SPILE_NONE;
	/*
	 * Release: for writes under the lock; pairs with the cmpxchg() in spile_stripe_try() and
	 * the acquire in is_held() of lock.c.
	 */
	__atomic_store_n(holder, (struct spile_context *)SPILE_NONE, __ATOMIC_RELEASE);
}
/*
 * wrap: the same for a run that may create the element. If that would drop the oldest one, which
 * may be in any stripe, the run gets all stripes.
 */
int spile_map_hold_wrapping(struct spile_context *c, const struct spile_map *map,
			    struct spile_held *held, const union spile_key *keys);
void spile_map_release_wrapping(const struct spile_map *map, struct spile_held *held);
/*
 * The same for several elements of one array, which may be the same: spile_map_want() for each,
 * in one array of `held`, then spile_map_hold_several(). The operations on any element are used
 * then, not those on the one that is held. drops: as spile_map_hold_wrapping().
 */
void spile_map_want(const struct spile_map *map, struct spile_held *held,
		    const union spile_key *keys);
int spile_map_hold_several(struct spile_context *c, const struct spile_map *map,
			   struct spile_held *held, unsigned int count, int drops);
/*
 * striped: takes all stripes until the end of the run, which holds none of them, in the place of one
 * of them in the order of locks. Returns 0 as spile_map_hold(); otherwise the run releases them.
 */
int spile_map_hold_whole(struct spile_context *c, const struct spile_map *map);
void spile_map_release_whole(const struct spile_map *map);
/* Operations on the element that is held, like those below on any element. */
char *spile_held_make(struct spile_context *c, const struct spile_map *map,
		      struct spile_held *held);
/* The same where the only key is a long, in an array that does not wrap. */
char *spile_held_make_long(struct spile_context *c, const struct spile_map *map,
			   struct spile_held *held);
void spile_held_drop(const struct spile_map *map, struct spile_held *held);
void spile_held_drop_wrapping(const struct spile_map *map, struct spile_held *held);
/* Constant in a script's C, where map is. */
static inline char *spile_held_made(struct spile_context *c, const struct spile_map *map,
				    struct spile_held *held)
{
	return map->keys == 1 && !map->string_keys && !map->wrap ?
		       spile_held_make_long(c, map, held) :
		       spile_held_make(c, map, held);
}
struct spile_string spile_held_text(const struct spile_held *held);
void spile_held_set_text(struct spile_context *c, const struct spile_map *map,
			 struct spile_held *held, struct spile_string value);
static inline int spile_held_has(const struct spile_held *held)
{
	return held->value != SPILE_NONE;
}
static inline spile_long spile_held_long(const struct spile_held *held)
{
	return held->value ? *(spile_long *)held->value : 0;
}
static inline void spile_held_set_long(struct spile_context *c, const struct spile_map *map,
				       struct spile_held *held, spile_long value)
{
	char *at = held->value;

	if (!at)
		at = spile_held_made(c, map, held);
	if (spile_likely(at != SPILE_NONE))
		*(spile_long *)at = value;
}
static inline spile_long spile_held_add(struct spile_context *c, const struct spile_map *map,
					struct spile_held *held, spile_long delta)
{
	char *at = held->value;

	if (!at)
		at = spile_held_made(c, map, held);
	if (spile_unlikely(!at))
		return 0;
	return *(spile_long *)at = (spile_long)(*(spile_ulong *)at + (spile_ulong)delta);
}
static inline void spile_held_delete(const struct spile_map *map, struct spile_held *held)
{
	if (!held->value)
		return;
	if (map->wrap)
		spile_held_drop_wrapping(map, held);
	else
		spile_held_drop(map, held);
}
/* counted: adds to it; the others are for a single long or string key */
void spile_map_count(struct spile_context *c, const struct spile_map *map,
		     const union spile_key *keys, spile_long delta);
void spile_map_count_long(struct spile_context *c, const struct spile_map *map, spile_long key,
			  spile_long delta);
void spile_map_count_text(struct spile_context *c, const struct spile_map *map,
			  struct spile_string key, spile_long delta);
/* By the name in a task's comm, and by that of the current task. */
void spile_map_count_name(struct spile_context *c, const struct spile_map *map, const char *comm,
			  spile_long delta);
void spile_map_count_execname(struct spile_context *c, const struct spile_map *map,
			      spile_long delta);
/* no effect if absent */
void spile_map_delete(struct spile_context *c, const struct spile_map *map,
		      const union spile_key *keys, unsigned int any);
void spile_map_clear(struct spile_context *c, const struct spile_map *map);

enum spile_extractor {
	SPILE_COUNT, SPILE_SUM, SPILE_MIN, SPILE_MAX, SPILE_AVERAGE, SPILE_VARIANCE,
};
/* Adds to a number of 128 bits. */
static inline void spile_add_wide(spile_ulong *low, spile_ulong *high, spile_long value)
{
#ifdef __x86_64__
	/* A number of 128 bits would have the compiler align the stack at each call. */
	__asm__("addq %2, %0\n\tadcq %3, %1"
		: "+m"(*low), "+m"(*high) : "r"(value), "r"(value >> 63) : "cc");
#else
	*low += value;
	*high += (value >> 63) + (*low < (spile_ulong)value);
#endif
}
/* The head of struct spile_stats (stats.h). */
struct spile_scalar {
	spile_ulong generation, count, sum_low, sum_high;
	spile_long min, max;
};
/* <<< of a map without keys, if only these fields are used; place: the value at spile_map.place */
static inline struct spile_scalar *spile_feed_sum(struct spile_context *c, unsigned long place,
						  spile_long value)
{
	struct spile_scalar *scalar = (struct spile_scalar *)(c->values + place);

	scalar->count++;
	spile_add_wide(&scalar->sum_low, &scalar->sum_high, value);
	return scalar;
}
/* The same if @min or @max is used. */
static inline void spile_feed(struct spile_context *c, unsigned long place, spile_long value)
{
	struct spile_scalar *scalar = spile_feed_sum(c, place, value);

	if (value < scalar->min)
		scalar->min = value;
	if (value > scalar->max)
		scalar->max = value;
}
/* <<<, of a map without keys */
void spile_stats_feed(struct spile_context *c, const struct spile_map *map, spile_long value);
/* <<< */
void spile_stats_add(struct spile_context *c, const struct spile_map *map,
		     const union spile_key *keys, spile_long value);
/* The same where the only key is a long, or a string. */
void spile_stats_add_long(struct spile_context *c, const struct spile_map *map, spile_long key,
			  spile_long value);
void spile_stats_add_text(struct spile_context *c, const struct spile_map *map,
			  struct spile_string key, spile_long value);
void spile_stats_add_name(struct spile_context *c, const struct spile_map *map, const char *comm,
			  spile_long value);
void spile_stats_add_execname(struct spile_context *c, const struct spile_map *map,
			      spile_long value);
spile_long spile_stats_get(struct spile_context *c, const struct spile_map *map,
			   const union spile_key *keys, enum spile_extractor extractor);
/*
 * @hist_log(x)[index]; "histogram index out of range". LOG: index 64 is the value 0
 * (0..127); LINEAR: 0 is below low, the last above high.
 */
spile_long spile_histogram_bucket(struct spile_context *c, const struct spile_map *map,
				  const union spile_key *keys, spile_long index);
/* index in @hist_log(x) */
int spile_histogram_has(struct spile_context *c, const struct spile_map *map,
			const union spile_key *keys, spile_long index);
unsigned int spile_histogram_buckets(const struct spile_stats_kind *kind);
/*
 * The buckets as a payload part, for SPILE_FORMAT_HISTOGRAM. Room needed:
 * SPILE_STRING_PART(8 * buckets).
 */
char *spile_put_histogram(struct spile_context *c, char *at, const struct spile_map *map,
			  const union spile_key *keys);

/*
 * foreach. The map must not change while it is iterated (the compiler sees to it);
 * iterators may be nested, of one map too.
 */
enum { SPILE_ORDER_STRIPES = 64 };
enum {
	SPILE_SORT_NONE = -1,		/* in the order in which the elements were made */
	SPILE_SORT_VALUE = SPILE_MAX_KEYS,	/* 0..8: by that key */
	SPILE_SORT_EXTRACTOR,		/* + enum spile_extractor; of an empty aggregate: 0 */
};
struct spile_iterator {
	const struct spile_map *map;
	struct spile_context *context;
	int merged;			/* the values are already merged */
	unsigned int at;		/* element, or bucket */
	unsigned int left;		/* elements or steps still to come */
	unsigned int next;
	unsigned int *order;		/* sorted: element numbers */
	unsigned int *heads;		/* striped: the next one of each stripe */
	spile_ulong *buckets;		/* of a histogram */
	spile_long limit;
};
/*
 * `order`: memory for map->entries numbers if sort is not SPILE_SORT_NONE or there is a slice;
 * otherwise for SPILE_ORDER_STRIPES if striped, else 0. The iterator uses it until the loop
 * ends. keys and any: the slice, as above, only read by this call; keys 0: all elements. limit:
 * maximum elements of the slice; < 0: no limit. Sorting is stable, strings by bytes.
 */
void spile_iterate(struct spile_context *c, struct spile_iterator *it, const struct spile_map *map,
		   const union spile_key *keys, unsigned int any, int sort, int descending,
		   spile_long limit, unsigned int *order);
/*
 * foreach (bucket in @hist_log(map[keys])): `buckets`, room for SPILE_MAX_BUCKETS, gets
 * a copy; order: room for as many. sort: NONE, 0 or VALUE.
 */
void spile_iterate_histogram(struct spile_context *c, struct spile_iterator *it,
			     const struct spile_map *map, const union spile_key *keys, int sort,
			     int descending, spile_long limit, unsigned int *order,
			     spile_ulong *buckets);
/* A script's limit: a negative one means no elements. */
static inline spile_long spile_limit(spile_long limit) { return limit < 0 ? 0 : limit; }
/* Advances to the next element; 0 if there is none. */
int spile_next(struct spile_iterator *it);
/* a histogram's key 0: the bucket's index */
spile_long spile_iterator_long(const struct spile_iterator *it, unsigned int key);
struct spile_string spile_iterator_text(const struct spile_iterator *it, unsigned int key);
/* VALUE_LONG, or the bucket's count */
spile_long spile_iterator_value(const struct spile_iterator *it);
struct spile_string spile_iterator_value_text(const struct spile_iterator *it);

/*
 * Locks of globals, as a probe's list has them: (index << 2) | mode. READ and WRITE
 * belong to globals that handlers read and write as a whole; LOCAL and ALL to
 * aggregates: LOCAL for handlers that only feed (<<<) one, on their own CPU, ALL for
 * those that read, iterate or delete it, over all CPUs, whether they feed it too or
 * not. To a striped array belong its stripes, and ALL for whatever uses more than one element.
 */
enum spile_lock_mode { SPILE_LOCK_READ, SPILE_LOCK_WRITE, SPILE_LOCK_LOCAL, SPILE_LOCK_ALL };

/*
 * Counters: global longs that armed probes mostly add to. `base` is the variable; what
 * is added is stored per CPU, so that handlers neither wait nor write what other CPUs
 * read. The value is the sum of all.
 */
static inline void spile_count(struct spile_context *c, unsigned int index, spile_long value)
{
#ifdef __x86_64__
	/* One instruction, so an interrupt comes before or after it. */
	__asm__ volatile("addq %1, %0" : "+m"(c->counters[index]) : "er"(value) : "cc");
#else
	c->counters[index] += value;
#endif
}
/* bounded by the CPUs */
spile_long spile_counter(unsigned int index, spile_long base);
void spile_counter_set(unsigned int index, spile_long *base, spile_long value);

/* A global that may be set before the script starts (SPILE_SET). */
struct spile_setting {
	void *place;			/* spile_long, or struct spile_setting_text */
	int is_string;
	int in_commands;		/* commands of system() may depend on it */
};
/* A global string in generated C. */
struct spile_setting_text {
	unsigned int length;
	char text[];			/* spile_script.string_bytes */
};

/* The module's description, one for each module, defined by generated C. */
struct spile_script {
	unsigned int abi;			/* SPILE_ABI_VERSION */
	const char *name;			/* module name */
	const char *title;			/* script file or <input> */
	const char *kernel_release;		/* compiled for: UTS release */
	const struct spile_probe *probes;
	unsigned int probe_count;
	const struct spile_target *targets;
	unsigned int target_count;
	const struct spile_program *programs;	/* 0 where program_count is 0 */
	unsigned int program_count;
	/* of processes whose returns are probed; 0 where unwinder_count is 0 */
	const struct spile_unwinder *unwinders;
	unsigned int unwinder_count;
	int follows;		/* a probe is for the session's process and its descendants */
	int begins;		/* a probe is for processes that begin */
	int own_processes;	/* --privilege=stapusr: probes are for the owner's processes */
	struct spile_module_symbol *module_symbols;	/* 0 where module_symbol_count is 0 */
	unsigned int module_symbol_count;
	/* guru mode; 0 where fingerprint_count is 0 */
	const struct spile_fingerprint *fingerprints;
	unsigned int fingerprint_count;
	const struct spile_lines *lines;	/* 0 where line_table_count is 0 */
	unsigned int line_table_count;
	/* by the numbers that spile_format()'s formats have; 0 where description_count is 0 */
	const struct spile_description *descriptions;
	unsigned int description_count;
	/* records hold addresses that the loader has named (SPILE_SYMBOL) */
	unsigned int defers_names;
	/* stacks of user space are taken, or its addresses named */
	unsigned int user_stacks;
	unsigned int lock_count;		/* globals that have a lock */
	unsigned int counter_count;
	const struct spile_map *const *maps;	/* 0 where map_count is 0 */
	unsigned int map_count;
	const struct spile_setting *settings;	/* 0 where setting_count is 0 */
	unsigned int setting_count;
	const unsigned char *meta;		/* contents of .spile.meta */
	unsigned int meta_bytes;
	unsigned int frame_bytes;		/* frame memory for each CPU */
	unsigned int scratch_bytes;		/* largest payload of an sprintf, in bytes */
	unsigned int record_bytes;		/* largest payload of a record */
	/* bytes of records of all begin probes, and of all end and error probes; ~0: any number */
	unsigned int begin_prints;
	unsigned int end_prints;
	unsigned int armed_prints;		/* the others write records too */
	unsigned int string_bytes;		/* MAXSTRINGLEN, NUL included */
	/* bytes of a string in an element of an array; longer ones are stored separately: */
	unsigned int slot_bytes;
	unsigned int kept_bytes;		/* their memory; 0: slot_bytes is string_bytes */
	unsigned int stack_frames;		/* MAXBACKTRACE: of a stack, at most SPILE_STACK_FRAMES */
	unsigned int stack_wait;		/* MAXSTACKWAIT: ms; 0 without user_stacks */
	/* maximum registers of a pattern with groups */
	unsigned int match_registers;
	/* maximum groups of a pattern, including the whole match; 0: matched() is not used */
	unsigned int match_groups;
	unsigned int max_actions;		/* MAXACTION */
	unsigned int max_nesting;		/* MAXNESTING */
	unsigned int max_errors;		/* MAXERRORS */
	unsigned int max_skipped;		/* MAXSKIPPED */
	/* run-time errors end their handler and are counted, and are not reported */
	unsigned int suppress_errors;
	/* STP_OVERLOAD_INTERVAL, in CPU cycles; 0: the default, 1000000000 */
	spile_ulong overload_interval;
	/*
	 * STP_OVERLOAD_THRESHOLD: cycles of an interval in handlers of one CPU that end the
	 * session; 0: 500000000; ~0: never
	 */
	spile_ulong overload_threshold;
	/* MAXTRYLOCK times TRYLOCKDELAY: ns that a handler waits for a holder that does not run */
	unsigned int lock_wait;
	/* MINSTACKSPACE: bytes of kernel stack that must be left for a handler */
	unsigned int least_stack;
	const unsigned int *stacks;		/* spile_stacks */
	/*
	 * KRETACTIVE: calls in flight that a KRETPROBE without maxactive follows; 0: by
	 * the number of CPUs
	 */
	unsigned int active_returns;
	/*
	 * link-time address of register_kprobe, for the kernel's slide; 0: no kernel address used
	 */
	unsigned long anchor_address;
};
extern const struct spile_script spile_script;
/*
 * By probe: bytes of kernel stack that its handlers use, if more than least_stack. Set in
 * the compiled object (compiler/kbuild/src/stack_table.rs), so no C reads it by name.
 */
extern const unsigned int spile_stacks[];

/* Sets the error of the running handler if none is set; detail goes into the message. */
void spile_fail(struct spile_context *c, enum spile_error error, spile_ulong detail);
/*
 * Removes a caught error from the context and writes its message to out; 0 if the error cannot
 * be caught (it stays set).
 */
unsigned int spile_catch(struct spile_context *c, char *out, unsigned int *length);
/* Adds this location to the call chain of the error that is set. */
void spile_called_from(struct spile_context *c, unsigned int location);

/*
 * Statement budget: charged at loop heads and calls. Work that grows with the data is
 * charged in steps, each about the cost of visiting one element of an array;
 * SPILE_STEPS of them are a statement.
 */
enum { SPILE_STEPS = 1024 };
/* The run has used up its statements: grants more, or sets an error (actions.c). */
void spile_actions_spent(struct spile_context *c);
#define SPILE_CHARGE(c, n, loc) \
	(((c)->actions -= (n)) < 0 ? ((c)->location = (loc), spile_actions_spent(c)) : (void)0)
/* Charges the statements that c->steps make up. */
void spile_steps_spent(struct spile_context *c, spile_ulong steps);
/* For steps that cannot fail: the next charge checks the limit. */
static inline void spile_debit(struct spile_context *c, spile_ulong steps)
{
	steps += c->steps;
	if (spile_unlikely(steps >= SPILE_STEPS))
		spile_steps_spent(c, steps);
	else
		c->steps = steps;
}
/* Steps about to be taken; 0 and an error if the run must end instead. c->location is set. */
static inline int spile_charge_steps(struct spile_context *c, spile_ulong steps)
{
	spile_debit(c, steps);
	if (spile_likely(c->actions >= 0))
		return 1;
	spile_actions_spent(c);
	return !c->error;
}

/* Arithmetic of the language: two's complement, truncating, MIN/-1 = MIN, MIN%-1 = 0. */
spile_long spile_divide(struct spile_context *c, spile_long a, spile_long b);
spile_long spile_modulo(struct spile_context *c, spile_long a, spile_long b);
static inline spile_long spile_add(spile_long a, spile_long b)
{
	return (spile_long)((spile_ulong)a + (spile_ulong)b);
}
static inline spile_long spile_subtract(spile_long a, spile_long b)
{
	return (spile_long)((spile_ulong)a - (spile_ulong)b);
}
static inline spile_long spile_multiply(spile_long a, spile_long b)
{
	return (spile_long)((spile_ulong)a * (spile_ulong)b);
}
static inline spile_long spile_negate(spile_long a) { return (spile_long)(0 - (spile_ulong)a); }
static inline spile_long spile_shift_left(spile_long a, spile_long b)
{
	return (spile_long)((spile_ulong)a << (b & 63));
}
static inline spile_long spile_shift_right(spile_long a, spile_long b) { return a >> (b & 63); }
static inline spile_long spile_shift_right_logical(spile_long a, spile_long b)
{
	return (spile_long)((spile_ulong)a >> (b & 63));
}

/*
 * Run-time minus link-time addresses of the kernel; what to add to a per-CPU symbol's
 * address for this CPU's copy.
 */
extern unsigned long spile_slide;
unsigned long spile_per_cpu_offset(void);

/*
 * Fault-safe memory. size is 1, 2, 4 or 8; value zero-extended. On a fault:
 * error set, 0 returned. user: user-space address, not paged in.
 */
spile_ulong spile_read(struct spile_context *c, spile_ulong address, unsigned int size);
spile_ulong spile_read_user(struct spile_context *c, spile_ulong address, unsigned int size);
void spile_write(struct spile_context *c, spile_ulong address, unsigned int size,
		 spile_ulong value);
void spile_write_user(struct spile_context *c, spile_ulong address, unsigned int size,
		      spile_ulong value);
/* Writes a probed register, if the gate allows it. */
void spile_set_register(struct spile_context *c, unsigned int offset, spile_long value);
/* Sign extension of the low bits (1..64) of value. */
static inline spile_long spile_sign_extend(spile_ulong value, unsigned int bits)
{
	return (spile_long)(value << (64 - bits)) >> (64 - bits);
}
/* Bit-field: `bits` bits from bit `first` (counted from the least significant). */
static inline spile_ulong spile_bits(spile_ulong value, unsigned int first, unsigned int bits)
{
	return (value >> first) & (~0ull >> (64 - bits));
}

/*
 * Strings. out has spile_script.string_bytes; longer text is truncated, and a NUL is always
 * written. Returns the length.
 */
unsigned int spile_string_copy(char *out, struct spile_string s);
unsigned int spile_string_concatenate(char *out, struct spile_string a, struct spile_string b);
int spile_string_compare(struct spile_string a, struct spile_string b);	/* bytewise: <0, 0, >0 */
/* of text written by embedded C: at most string_bytes - 1, then forces a NUL there */
unsigned int spile_string_length(const char *text);

/*
 * A pattern of =~ as a deterministic automaton. No match can follow state 0; state 1 means that
 * there was one.
 */
enum { SPILE_REGEX_DEAD, SPILE_REGEX_MATCHED };
struct spile_regex {
	/* byte -> class: bytes that the pattern does not distinguish */
	const unsigned char *classes;
	const unsigned short *next;	/* [state * class_count + class]: state after a byte */
	const unsigned char *at_end;	/* [state]: a string that ends there matches */
	unsigned int class_count;
	unsigned int start;
};
/*
 * The same with registers, for scripts that use matched(). In state 0 no match is possible any
 * more.
 */
struct spile_tagged_regex {
	const unsigned char *classes;
	const unsigned short *next;
	const unsigned short *actions;	/* like next: index in `moves` of a transition's moves */
	/* [state]: place in moves of the tags of a match that ends there; 0: none does */
	const unsigned short *accept;
	const unsigned short *at_end;	/* the same at the string's end */
	const unsigned short *moves;
	unsigned int class_count;
	unsigned int start;
	unsigned int start_action;
	unsigned int groups;		/* with group 0, the whole */
};
/* 1 if the pattern matches anywhere in s; one step for each byte. */
int spile_regex_test(const struct spile_regex *regex, struct spile_string s);
/* The same; matched(), matched_str() and ngroups() then return the groups. */
int spile_regex_match(struct spile_context *c, const struct spile_tagged_regex *regex,
		      struct spile_string s);

/*
 * Payloads. A payload cursor is where the next part goes; 0 when there was no
 * room (all calls then do nothing). Sizes are padded to 8.
 */
#define SPILE_PADDED(n) (((n) + 7u) & ~7u)
#define SPILE_STRING_PART(n) SPILE_PADDED((n) + 4u)
/*
 * Room for a record of up to `bytes` payload in this CPU's ring; counts it as lost and
 * returns 0 if there is none.
 */
char *spile_record_begin(struct spile_context *c, unsigned int kind, unsigned int id,
			 unsigned int bytes);
/* Makes the record that ends at `end` visible; end 0 does nothing. */
void spile_record_commit(struct spile_context *c, char *end);
/* struct spile_record (abi.h) */
struct spile_record_head {
	unsigned int bytes;
	unsigned int mark;		/* kind and CPU */
	unsigned int id;
	unsigned int probe;
	spile_ulong time;
};
spile_ulong spile_record_time(void);
/* Makes all records before `record_at` visible. */
void spile_record_publish(struct spile_context *c);
/*
 * As spile_record_begin() for a SPILE_RECORD_PRINT whose payload has exactly this many bytes, a
 * multiple of 8; without a call if there certainly is room.
 */
static inline spile_long *spile_print_begin(struct spile_context *c, unsigned int kind,
					    unsigned int id, unsigned int bytes)
{
	struct spile_record_head *head = (struct spile_record_head *)c->record;
	spile_long *to;

	if (spile_unlikely(c->record_at + sizeof(*head) + bytes > c->record_limit))
		return (spile_long *)spile_record_begin(c, kind, id, bytes);
	head->mark = c->print_mark;
	head->id = id;
	head->probe = c->probe->index;
	head->time = spile_record_time();
	to = (spile_long *)(head + 1);
	/* There was room, so it is somewhere: saves the caller's test for 0. */
	if (!to)
		__builtin_unreachable();
	return to;
}
/* Ends such a record. */
static inline void spile_print_commit(struct spile_context *c, unsigned int bytes)
{
	struct spile_record_head *head = (struct spile_record_head *)c->record;

	head->bytes = sizeof(*head) + bytes;
	c->record += sizeof(*head) + bytes;
	c->record_at += sizeof(*head) + bytes;
	spile_record_publish(c);
}
/* This CPU's scratch for an sprintf's payload (spile_script.scratch_bytes). */
char *spile_scratch(struct spile_context *c);
/*
 * Formats the payload written into the scratch up to `end`; returns the length in out.
 * Sets an error only for memory dumps that fault.
 */
unsigned int spile_format(struct spile_context *c, const unsigned char *format,
			  unsigned int format_bytes, char *end, char *out);

static inline char *spile_put_long(char *at, spile_long value)
{
	if (!at)
		return at;
	*(spile_long *)at = value;
	return at + 8;
}
char *spile_put_string(char *at, struct spile_string s);
/*
 * Addresses of the stack from `first` on, at most `most` (below 0: all), for enum
 * spile_named. Room needed: SPILE_STRING_PART(8 * SPILE_STACK_FRAMES).
 */
char *spile_put_stack(struct spile_context *c, char *at, int user, spile_long first,
		      spile_long most);
/*
 * The addresses in a string of backtrace(), each with the time for SPILE_SYMBOL. Room needed:
 * spile_stored_part().
 */
char *spile_put_stored_stack(char *at, struct spile_string addresses);
unsigned int spile_stored_part(struct spile_context *c, struct spile_string addresses);
/* Frames of the user stack. Room needed: SPILE_STRING_PART(16 * SPILE_STACK_FRAMES). */
char *spile_put_user_stack(struct spile_context *c, char *at);
/* An address of user space as a frame. Room needed: SPILE_STRING_PART(16). */
char *spile_put_user_frame(struct spile_context *c, char *at, spile_long address);
/* `bytes` bytes of memory at address (%m, %M). Room needed: SPILE_STRING_PART(bytes). */
char *spile_put_memory(struct spile_context *c, char *at, spile_ulong address, spile_long bytes,
		       int user);
/*
 * The object at address, by its `description`. The compiler computes the room needed
 * (SPILE_STRING_PART of size and of each string pointer with string_bytes - 1).
 */
char *spile_put_pretty(struct spile_context *c, char *at, const unsigned char *description,
		       unsigned int description_bytes, spile_ulong address);

/*
 * Several parts by a table instead of code: a script may print all variables of thousands of
 * functions, and the compiler would take long for the handlers. A value is a register plus
 * `add`, and of that the `bits` bits from bit `first`.
 */
struct spile_item {
	const unsigned char *description;	/* of the object at the value, or SPILE_NONE */
	unsigned int description_bytes;
	unsigned short registers;		/* 0, or the number of the word in regs + 1 */
	unsigned char first;
	unsigned char bits;			/* 64: all */
	spile_long add;
	unsigned char is_signed;
};
char *spile_put_items(struct spile_context *c, char *at, const struct spile_item *items,
		      unsigned int count);

/*
 * Function frames: `bytes` of uncleared memory for a function's strings; 0 and an error if calls
 * are nested too deeply.
 */
static inline char *spile_frame_enter(struct spile_context *c, unsigned int bytes)
{
	char *frame = c->frame;

	if (spile_unlikely(c->depth >= spile_script.max_nesting ||
			   (unsigned long)(c->frame_end - frame) < bytes)) {
		spile_fail(c, SPILE_E_NESTING, 0);	/* where the call is */
		return SPILE_NONE;
	}
	c->depth++;
	c->frame = frame + bytes;
	return frame;
}
static inline void spile_frame_leave(struct spile_context *c, char *frame)
{
	c->depth--;
	c->frame = frame;
}

/* Ends the session: the handler continues, no other starts. */
void spile_exit(struct spile_context *c);

#endif
