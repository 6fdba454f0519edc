/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls of a file in /proc that are under way. Before the kernel removes such a file it waits for
 * them, and a user can take nearly all CPU time from a process that is in one (SCHED_IDLE beside
 * busy processes, a cgroup's limit). So who removes the file turns new calls away first, and lets
 * those processes run as real-time ones until they leave.
 */
#ifndef SPILE_CALLERS_H
#define SPILE_CALLERS_H

#include <linux/list.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct spile_callers {
	/* For a moment, and by processes that may be kept from running: not to be preempted with it. */
	raw_spinlock_t lock;
	struct list_head all;
	bool ended;
};

#define SPILE_CALLERS(name) \
	struct spile_callers name = { \
		.lock = __RAW_SPIN_LOCK_UNLOCKED(name.lock), \
		.all = LIST_HEAD_INIT(name.all), \
	}

/* One call, on its stack. */
struct spile_caller {
	struct list_head link;
	struct task_struct *task;
	bool copies;		/* memory of the task, which it may wait for: spile_callers_kill() */
	bool pinned;		/* may not leave: it is being raised or killed */
	bool looked_at;		/* by who raises callers */
	bool raised;
	bool killed;		/* the first process of the machine survives it */
	bool idle;		/* SCHED_IDLE, before it was raised */
};

/* False: no new call may begin. `always`: one that releases something does. */
bool spile_caller_enter(struct spile_callers *callers, struct spile_caller *caller, bool always);
void spile_caller_leave(struct spile_callers *callers, struct spile_caller *caller);

void spile_callers_begin(struct spile_callers *callers);

/*
 * Turns new calls away, and waits for those under way, for `milliseconds` at most. False: some
 * are left. Process context.
 */
bool spile_callers_end(struct spile_callers *callers, unsigned int milliseconds);

/* Kills the processes that copy; tell() is called for each before. */
void spile_callers_kill(struct spile_callers *callers, void (*tell)(struct task_struct *task));

#endif
