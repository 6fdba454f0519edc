// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Values that the return probes of system calls want from the entry (@entry), saved by
 * task and site from sys_enter to sys_exit.
 *
 * A task only searches and writes its own entries; another task can only take a free one. A
 * task that dies in a call leaves its entry: exit() and exit_group() are not followed,
 * other cases are rare, and the entry is found again when the task_struct is reused.
 */
#include <linux/atomic.h>
#include <linux/hash.h>
#include <linux/mm.h>
#include <linux/sched.h>

#include "script.h"
#include "context.h"
#include "run.h"
#include "session.h"
#include "site.h"
#include "syscall_entry.h"

enum {
	/* calls under way that can be followed, all sites together */
	CALLS_MAX = 8192,
	CALLS_MIN = 512,
	MEMORY_MAX = 4 << 20,		/* bytes that more than CALLS_MIN may take */
	NEAR = 16,			/* places that one may be in */
};

struct saved_call {
	unsigned long task;		/* 0: free. Taken by cmpxchg, given back by its task */
	const struct spile_site *site;	/* valid for the task itself */
	char data[] __aligned(8);
};

static char *calls;
static unsigned int call_count;		/* a power of 2 */
static size_t call_bytes;

int spile_syscall_entry_init(void)
{
	unsigned int most = 0, i;

	for (i = 0; i < spile_script.probe_count; i++) {
		const struct spile_probe *probe = &spile_script.probes[i];

		if (probe->kind == SPILE_PROBE_SYSCALL && probe->entry_handler)
			most = max(most, probe->entry_bytes);
	}
	if (!most)
		return 0;
	call_bytes = sizeof(struct saved_call) + ALIGN(most, 8);
	for (call_count = CALLS_MAX;
	     call_count > CALLS_MIN && call_count * call_bytes > MEMORY_MAX;)
		call_count /= 2;
	calls = kvzalloc(call_count * call_bytes, GFP_KERNEL);
	if (!calls)
		return -ENOMEM;
	spile_session_charge(call_count * call_bytes);
	return 0;
}

void spile_syscall_entry_exit(void)
{
	kvfree(calls);
	calls = NULL;
}

static struct saved_call *call_at(const struct spile_site *site, unsigned int step)
{
	unsigned long key = (unsigned long)current ^ ((unsigned long)site->index << 32);
	unsigned int at = (hash_long(key, 32) + step) & (call_count - 1);

	return (struct saved_call *)(calls + at * call_bytes);
}

struct saved_call *spile_syscall_saved(const struct spile_site *site)
{
	unsigned int step;

	for (step = 0; step < NEAR; step++) {
		struct saved_call *call = call_at(site, step);

		if (READ_ONCE(call->task) == (unsigned long)current && call->site == site)
			return call;
	}
	return NULL;
}

void spile_syscall_forget(struct saved_call *call)
{
	/* Release: our use of the entry; pairs with the cmpxchg() in spile_syscall_save(). */
	smp_store_release(&call->task, 0);
}

char *spile_syscall_data(struct saved_call *call)
{
	return call->data;
}

void spile_syscall_save(struct spile_site *site, unsigned long *words)
{
	struct saved_call *call = spile_syscall_saved(site);
	unsigned int step;

	for (step = 0; !call && step < NEAR; step++) {
		struct saved_call *free = call_at(site, step);

		/* A full barrier: pairs with the release in spile_syscall_forget(). */
		if (!READ_ONCE(free->task) && !cmpxchg(&free->task, 0, (unsigned long)current))
			call = free;
	}
	if (!call) {
		atomic_long_inc(&site->syscall.unsaved);
		return;
	}
	call->site = site;
	if (!spile_run(site, SPILE_STATE_RUNNING, SPILE_RUN_ENTERING, words, call->data))
		spile_syscall_forget(call);
}
