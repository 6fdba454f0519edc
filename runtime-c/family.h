/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probe families: how the sites of one kind of probe are attached. Each is a record in a file of
 * its own, a line in SPILE_FAMILIES, and a line in script.h, by which a script references the
 * families of its probes (SPILE_USES()). site.c, condition.c, budget.c and main.c use the table
 * and name no family.
 */
#ifndef SPILE_FAMILY_H
#define SPILE_FAMILY_H

#include "script.h"
#include "site.h"

struct perf_event;

/*
 * All families, in the order in which their sites are disarmed. Timers come
 * first: they cost least to stop and may be what keeps the machine busy.
 */
#define SPILE_FAMILIES(family) \
	family(timer) \
	family(jiffies) \
	family(perf) \
	family(procfs) \
	family(netfilter) \
	family(watch) \
	family(user_watch) \
	family(program_counter) \
	family(syscall) \
	family(tracepoint) \
	family(uprobe) \
	family(uretprobe) \
	family(kretprobe) \
	family(kprobe)

/*
 * Except for init(), prepare() and exit(), these are called in process context under
 * spile_session.lock.
 */
struct spile_family {
	enum spile_probe_kind kind;
	const char *type;		/* what probe_type() returns */
	enum spile_mechanism by;	/* of every armed site, if there is no mechanism() */
	enum spile_runs runs;		/* how a hit is handled, unless the handler only counts */
	/* handlers only observe, so hits can be left out (budget.c) */
	bool may_be_sampled;
	/*
	 * Its hits come by themselves, as often as the script says: armed when all else is.
	 * Otherwise they slow that down, and ftrace patches thousands of functions at once.
	 */
	bool arms_last;
	/* the kernel calls the one that was armed last first: armed in the reverse order */
	bool last_runs_first;

	/*
	 * The family whose init(), exit() and commit() serve these probes too, or NULL: a
	 * module with this one has that one (SPILE_USES() in script.h).
	 */
	const struct spile_family *with;

	/* At load, before anything is armed; or NULL. */
	int (*init)(void);
	/* At unload, when all is disarmed and no handler runs; or NULL. */
	void (*exit)(void);

	/*
	 * Before all targets are armed, by the process that starts the session: what a kernel
	 * thread, which arms them, could not do; or NULL.
	 */
	void (*prepare)(void);

	/*
	 * Arms a site if that costs the kernel next to nothing, as one of many; false:
	 * arm() is called for it, after this for all sites. Or NULL: arm() is cheap.
	 */
	bool (*arm_cheaply)(struct spile_site *site);
	int (*arm)(struct spile_site *site);
	/* Reports why arm() failed; false: the usual message says it. Or NULL. */
	bool (*reports)(const struct spile_site *site, int error);
	/*
	 * Arms a site at the place of `before`, an armed one of the same family, without work
	 * for the kernel; false: they cannot share, and arm() is called. `before` is the last
	 * one there of which spile_site_may_share() is true. Or NULL.
	 */
	bool (*arm_beside)(struct spile_site *before, struct spile_site *site);
	/*
	 * Of a family with arm_cheaply(): measures the kernel's time in commit() for a
	 * site that was left to arm(), in ns.
	 */
	u64 (*measure_enabling)(void);
	/* After a group of calls of arm() or turn(): the part done for all at once; or NULL. */
	void (*commit)(void);
	/*
	 * Of each site before disarm(): what the kernel may have to wait for others to do. False:
	 * it would now, for as long as they like; this is called again later. Or NULL.
	 */
	bool (*detach)(struct spile_site *site);
	/*
	 * All of `sites` are armed, and detached. When it returns no handler of theirs runs any
	 * more.
	 */
	void (*disarm)(struct spile_site *const *sites, unsigned int count);
	/*
	 * off: hits no longer reach the armed site, but some may be under way.
	 * on: reverts that, after commit(). What it cannot do now it reverts in site->off.
	 * NULL: cannot be turned off.
	 */
	void (*turn)(struct spile_site *site, bool on);
	/* How an armed site is attached; NULL: by `by`. */
	u32 (*mechanism)(const struct spile_site *site);
	/* Adds the hits of an armed site that the kernel missed to the counters; or NULL.
	 */
	void (*missed)(const struct spile_site *site, struct spile_counters *counters);
	/*
	 * For a family that uses perf events: creates that of a site on one CPU; or returns an
	 * error pointer (cpu_events.c).
	 */
	struct perf_event *(*create_event)(struct spile_site *site, int cpu);
};

#define SPILE_DECLARE_FAMILY(name) extern const struct spile_family spile_##name##_family;
SPILE_FAMILIES(SPILE_DECLARE_FAMILY)
#undef SPILE_DECLARE_FAMILY

enum {
#define SPILE_COUNT_FAMILY(name) SPILE_FAMILY_OF_##name,
	SPILE_FAMILIES(SPILE_COUNT_FAMILY)
#undef SPILE_COUNT_FAMILY
	SPILE_FAMILY_COUNT
};

/* The table, in the order of SPILE_FAMILIES; NULL for one that the script does not use. */
extern const struct spile_family *const spile_families[SPILE_FAMILY_COUNT];

/* The family of a kind; NULL for begin, end, error and never, which are not attached. */
const struct spile_family *spile_family_of(enum spile_probe_kind kind);

/* Calls commit() of every family. */
void spile_families_commit(void);

/* Calls init() in the order of the table; exit() in reverse. */
int __must_check spile_families_init(void);
void spile_families_exit(void);

#endif
