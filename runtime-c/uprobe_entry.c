// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Values that return probes in programs need from a function's entry, kept by task,
 * site and stack pointer from the entry to the return.
 *
 * A task takes a free place, and searches only places of its own. A call that never
 * returns (longjmp, exec, the end of the thread) leaves its place taken: it is found
 * again when another call needs one and finds none. A value is nearly always in the first of the
 * places where it may be; how far to search is kept with that.
 */
#include <linux/atomic.h>
#include <linux/hash.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

#include "context.h"
#include "session.h"
#include "site.h"
#include "uprobe.h"

enum {
	ENTRIES_MAX = 16384,		/* calls in flight, all sites together */
	ENTRIES_MIN = 1024,
	ENTRIES_BYTES = 4 << 20,	/* that more than ENTRIES_MIN may take */
	ENTRIES_NEAR = 16,		/* places that one may be in */
	STACK_NEAR = 8 << 20,		/* bytes: farther away is another stack */
};

struct spile_saved_entry {
	int owner;			/* global number of the task; 0: free. Taken by cmpxchg */
	/* of those whose first place is this one: steps to the farthest place that one ever took */
	unsigned int reach;
	const struct spile_site *site;	/* these are valid for the owner */
	unsigned long sp;
	char data[] __aligned(8);
};

static char *entries;
static unsigned int entry_count;	/* a power of 2 */
static size_t entry_bytes;

int spile_uprobe_entry_init(void)
{
	unsigned int most = 0, i;
	bool any = false;

	for (i = 0; i < spile_script.probe_count; i++) {
		const struct spile_probe *probe = &spile_script.probes[i];

		if (probe->kind != SPILE_PROBE_URETPROBE || !probe->entry_handler)
			continue;
		any = true;
		most = max(most, probe->entry_bytes);
	}
	if (!any)
		return 0;
	entry_bytes = sizeof(struct spile_saved_entry) + ALIGN(most, 8);
	for (entry_count = ENTRIES_MAX;
	     entry_count > ENTRIES_MIN && entry_count * entry_bytes > ENTRIES_BYTES;)
		entry_count /= 2;
	if (!spile_session_affords("calls in flight of .return probes in programs",
				   entry_count * entry_bytes, 0, num_possible_cpus()))
		return -ENOMEM;
	entries = kvzalloc(entry_count * entry_bytes, GFP_KERNEL);
	if (!entries)
		return -ENOMEM;
	spile_session_charge(entry_count * entry_bytes);
	return 0;
}

void spile_uprobe_entry_exit(void)
{
	kvfree(entries);
	entries = NULL;
}

/* The first of the places where a call's values may be. */
static unsigned int place_of_call(const struct spile_site *site, unsigned long sp)
{
	unsigned long key = sp ^ ((unsigned long)task_pid_nr(current) << 40) ^
			    ((unsigned long)site->index << 24);

	return hash_long(key, 32);
}

static struct spile_saved_entry *entry_at(unsigned int first, unsigned int step)
{
	unsigned int at = (first + step) & (entry_count - 1);

	return (struct spile_saved_entry *)(entries + at * entry_bytes);
}

static struct spile_saved_entry *find_entry(unsigned int first, const struct spile_site *site,
					    unsigned long sp)
{
	/* This task has extended it before it left an entry farther away. */
	unsigned int reach = READ_ONCE(entry_at(first, 0)->reach), step;
	int own = task_pid_nr(current);

	for (step = 0; step <= reach; step++) {
		struct spile_saved_entry *entry = entry_at(first, step);

		if (READ_ONCE(entry->owner) == own && entry->site == site && entry->sp == sp)
			return entry;
	}
	return NULL;
}

struct spile_saved_entry *spile_uprobe_entry_find(const struct spile_site *site, unsigned long sp)
{
	return find_entry(place_of_call(site, sp), site, sp);
}

/* Other tasks may extend it at the same time: it never shrinks. */
static void extend_reach(unsigned int first, unsigned int step)
{
	struct spile_saved_entry *entry = entry_at(first, 0);
	unsigned int reach = READ_ONCE(entry->reach), seen;

	for (; reach < step; reach = seen) {
		seen = cmpxchg(&entry->reach, reach, step);
		if (seen == reach)
			break;
	}
}

/* Of a call that cannot return any more: its task has gone, or has left its frame. */
static bool is_over(const struct spile_saved_entry *entry, unsigned long sp)
{
	int owner = READ_ONCE(entry->owner);
	bool gone;

	if (owner == task_pid_nr(current))
		return entry->sp < sp && sp - entry->sp < STACK_NEAR;
	rcu_read_lock();
	gone = !pid_task(find_pid_ns(owner, &init_pid_ns), PIDTYPE_PID);
	rcu_read_unlock();
	return gone;
}

struct spile_saved_entry *spile_uprobe_entry_take(const struct spile_site *site, unsigned long sp)
{
	unsigned int first = place_of_call(site, sp), step;
	struct spile_saved_entry *entry = find_entry(first, site, sp);
	int own = task_pid_nr(current);

	/* Left by an earlier call from the same frame, which did not return. */
	if (entry)
		return entry;
	for (step = 0; step < 2 * ENTRIES_NEAR; step++) {
		bool scavenging = step >= ENTRIES_NEAR;
		int owner;

		entry = entry_at(first, step % ENTRIES_NEAR);
		owner = READ_ONCE(entry->owner);
		if (owner && !(scavenging && is_over(entry, sp)))
			continue;
		/* A full barrier: pairs with the release in spile_uprobe_entry_forget(). */
		if (cmpxchg(&entry->owner, owner, own) != owner)
			continue;
		entry->site = site;
		entry->sp = sp;
		extend_reach(first, step % ENTRIES_NEAR);
		return entry;
	}
	return NULL;
}

void spile_uprobe_entry_forget(struct spile_saved_entry *entry)
{
	/* Release: our use of the place. */
	smp_store_release(&entry->owner, 0);
}

char *spile_uprobe_entry_data(struct spile_saved_entry *entry)
{
	return entry->data;
}
