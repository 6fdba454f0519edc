/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probe sites: the run-time side of spile_script.probes. family.h says how each
 * kind is attached.
 */
#ifndef SPILE_SITE_H
#define SPILE_SITE_H

#include <linux/atomic.h>
#include <linux/hrtimer.h>
#include <linux/kprobes.h>
#include <linux/uprobes.h>

#include "script.h"
#include "abi/abi.h"

struct spile_family;

/* What a hit of a site does (spile_run_site()). */
enum spile_runs {
	SPILE_RUNS_WHOLE,		/* spile_run() in full */
	SPILE_RUNS_SIMPLE,		/* the same for a simple handler: spile_run_simple() */
	SPILE_RUNS_ADDING,		/* spile_run_adding() */
	SPILE_RUNS_COUNTING,		/* spile_run_counting() */
	SPILE_RUNS_COUNTING_BY,		/* spile_run_counting_by() */
	SPILE_RUNS_AT_RETURN,		/* spile_kretprobe_enter() */
	SPILE_RUNS_AT_POOLED_RETURN,	/* spile_return_pool_enter() */
	SPILE_RUNS_SAMPLED,		/* spile_run_sampled() */
};

struct spile_site {
	const struct spile_probe *probe;
	unsigned int index;		/* in spile_script.probes */
	/* its handler, if that only counts and may be interrupted: spile_run_counting() */
	void (*counting)(struct spile_context *c);
	enum spile_runs runs;		/* how a hit is handled */
	enum spile_runs runs_sampled;	/* of a sampled site: how the sampled hits are handled */
	bool sampled;			/* budget.c; set before it is armed */
	unsigned int counts_at;		/* of its counts in a CPU's memory, bytes */
	unsigned int counter_at;	/* ADDING: of its counter, the same */
	long addend;			/* ADDING: the number that is added */
	unsigned long stack_needed;	/* bytes that must be left of the stack: stack_left.h */
	unsigned long stack_spare;	/* THREAD_SIZE less those */
	/* NULL for begin, end, error and never, which are not armed */
	const struct spile_family *family;
	bool armed;			/* under spile_session.lock */
	bool registered;		/* of a kprobe or kretprobe: the kernel knows it as one */
	bool to_enable;			/* of the same, registered: commit() enables it */
	bool by_entry;			/* of a kprobe or kretprobe: ftrace serves it (entry.c) */
	/* armed, and turned off because its condition does not hold, or by a user (condition.c) */
	bool off;
	bool switched_off;		/* by a user, armed or not (SPILE_SWITCH) */
	bool is_late;			/* could not be turned: tried again each second */
	struct spile_site *same;	/* entry.c: the next at the same function */
	/* kprobe.c, of several sites that one kprobe serves: the site with that kprobe */
	struct spile_site *served_by;
	struct spile_site *beside;	/* and the next of them, in the order of the script */
	/* of a return that shares a kretprobe with others, else 0 */
	struct spile_return_pool *pool;
	atomic_long_t unhooked;		/* calls for which the pool had no instance left */
	/* of a site in a module: its address while that is loaded; 0: only kprobes can find it */
	unsigned long place;
	/* "module:symbol" of a site in a module, a symbol without target, else 0 */
	char *symbol;
	u32 mechanism;			/* enum spile_mechanism */
	atomic_long_t faults;		/* page faults that kprobe.nmissed counts */
	unsigned long missed;		/* kprobe.nmissed of registrations that are over */
	unsigned long return_missed;	/* kretprobe.nmissed of the same */
	unsigned long faulted_in;	/* uprobe.faulted_in of the same */
	union {				/* by probe->kind */
		struct kprobe kprobe;
		struct kretprobe kretprobe;
		struct {
			struct hrtimer timer;
			u64 random_state;
		};
		struct tracepoint *tracepoint;
		struct {
			/* of the same call: of 64-bit programs, of 32-bit ones */
			struct spile_site *next[2];
			/* calls whose entry values could not be saved (syscall_entry.c) */
			atomic_long_t unsaved;
		} syscall;
		struct {
			struct uprobe_consumer consumer;
			struct uprobe *handle;	/* the kernel's handle, if it returns one */
			struct inode *inode;
			/* calls whose entry values could not be saved (uprobe_entry.c) */
			atomic_long_t unsaved;
			/* times that memory was faulted in for a hit (fault_in.c) */
			atomic_long_t faulted_in;
		} uprobe;			/* UPROBE, URETPROBE */
		struct {
			struct uprobe_consumer consumer;	/* where the program begins */
			struct uprobe *handle;
			struct inode *inode;
			struct list_head threads;	/* user_watch.c */
			unsigned int count;		/* of these */
			bool reported;
		} user_watch;			/* USER_WATCH */
		struct {
			struct uprobe_consumer consumer;	/* where the program begins */
			struct uprobe *handle;
			struct inode *inode;
			struct spile_site *next;	/* of all counters */
			struct hlist_head *heads;	/* threads: program_counter.c */
			unsigned int count;		/* of these */
			unsigned int gone;	/* forgotten, whose events are not released yet */
			bool reported;
			kuid_t refused;			/* whose hits do not try again */
			unsigned long refused_until;	/* jiffies */
		} program_counter;			/* PROGRAM_COUNTER */
		struct nf_hook_ops *hook;	/* NETFILTER */
		/* PERF, WATCH: by CPU, 0 where there is none (cpu_events.c) */
		struct perf_event **events;
	};
};

extern struct spile_site *spile_sites;	/* spile_script.probe_count of them */
/* as many pointers, for a call of disarm(); under spile_session.lock */
extern void **spile_sites_room;

/*
 * Whether one kprobe can serve both. One with a condition is turned on and off by itself: it may
 * not even share with itself.
 */
static inline bool spile_site_may_share(const struct spile_site *one, const struct spile_site *two)
{
	return !one->probe->condition && !two->probe->condition &&
	       one->probe->stays_breakpoint == two->probe->stays_breakpoint;
}

/*
 * Called by entry.c when the function of a return probe's site is entered. Preemption
 * off.
 */
void spile_kretprobe_enter(struct spile_site *site, struct pt_regs *regs);

/*
 * Bytes of the instances of a return that has a kretprobe of its own; of one in a pool,
 * of its share.
 */
size_t spile_return_bytes(const struct spile_probe *probe);

/* Calls in flight that a return probe without maxactive follows. */
unsigned int spile_returns_active(void);

/* Of a site that is to have a kretprobe of its own, which is armed. */
int __must_check spile_return_register_own(struct spile_site *site);

/* A hit of a sampled site (budget.c). Preemption off. */
void spile_run_sampled(struct spile_site *site, unsigned long *regs);

/*
 * Of a kprobe or kretprobe that is registered and disabled: ftrace serves it, or
 * commit() enables it.
 */
void spile_kprobe_serve(struct spile_site *site);

/*
 * Before a site's kprobe, or after its kretprobe is registered: its page faults are counted where
 * the kernel takes them for missed hits. spile_kprobe_missed(): the missed hits without them.
 */
void spile_kprobe_count_faults(struct spile_site *site);
unsigned long spile_kprobe_missed(const struct spile_site *site);

/* spile_family.enabling and .turn of kprobes and kretprobes. */
u64 spile_kprobe_enabling_time(void);
void spile_kprobe_turn(struct spile_site *site, bool on);

/* A site could not stay armed: counts and reports it like a failure to arm. */
void spile_site_unarmed(struct spile_site *site, int error);

enum { SPILE_ALL_TARGETS = -2 };	/* all targets, and -1 */
/*
 * What arming all targets needs of the process that starts the session: the files of
 * programs and /proc, as that process sees them. Before spile_sites_arm(), under
 * spile_session.calls and without the other lock.
 */
void spile_sites_prepare(void);
/*
 * Arms every site of a target (-1: sites without one), until arming is to end (arming.h). A site
 * that cannot be armed is reported with a WARN record and left out. Under spile_session.lock.
 */
void spile_sites_arm(int target);
/*
 * Disarms every armed site of a target, except for those that cannot be detached now (family.h).
 * Whether there are such.
 */
bool spile_sites_disarm(int target);
/*
 * The same of all targets, except for a family with more than `most` kprobes or kretprobes,
 * and for those with entries if ftrace serves more than `most_entries`. Whether any site is
 * left.
 */
bool __must_check spile_sites_disarm_most(unsigned int most, unsigned int most_entries);
enum spile_disarming {
	SPILE_DISARMED_ALL,
	SPILE_DISARMED_SOME,
	SPILE_DISARMING_HELD,	/* the next step is worth trying after some time */
};
/*
 * One step of disarming what spile_sites_disarm_most() has left: some entries, kprobes or
 * kretprobes, or the rest of a family that has none of them left.
 */
enum spile_disarming __must_check spile_sites_disarm_some(void);
/* A family's disarm() is done with so many sites. */
void spile_sites_disarmed(unsigned int count);
/*
 * How many are armed. Without the lock: while they are being armed or disarmed, about. Not 0
 * while one is still being armed after the end of the session.
 */
u32 spile_sites_armed(void);

/*
 * The probes of a kind BEGIN, END or ERROR in the order of their values, then
 * of the script: calls run() for each.
 */
void spile_sites_in_order(enum spile_probe_kind kind, void (*run)(struct spile_site *site));

/* settled: the caller holds spile_session.lock; otherwise the kernel's own counts are left out. */
void spile_site_counters(const struct spile_site *site, struct spile_counters *counters,
			 bool settled);
unsigned int spile_sites_skipped(void);	/* nested, lock_skipped and low_stack of all */

int __must_check spile_sites_init(void);
void spile_sites_exit(void);

#endif
