// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/delay.h>
#include <linux/list.h>
#include <linux/sched.h>
#include <linux/sched/prio.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "callers.h"

enum { CALLERS_LOOK_MS = 20 };

bool spile_caller_enter(struct spile_callers *callers, struct spile_caller *caller, bool always)
{
	bool enters;

	*caller = (struct spile_caller){ .task = current };
	raw_spin_lock(&callers->lock);
	enters = always || !callers->ended;
	if (enters)
		list_add(&caller->link, &callers->all);
	raw_spin_unlock(&callers->lock);
	return enters;
}

/*
 * Unless somebody else has given it another policy meanwhile. Its nice value it still has. What
 * sets SCHED_IDLE again is not exported by 5.10; the highest nice value is nearly that.
 */
static void lower_caller(const struct spile_caller *caller)
{
	if (current->policy == SCHED_FIFO)
		sched_set_normal(current, caller->idle ? MAX_NICE : task_nice(current));
}

void spile_caller_leave(struct spile_callers *callers, struct spile_caller *caller)
{
	bool leaves;

	for (;;) {
		raw_spin_lock(&callers->lock);
		leaves = !caller->pinned;
		if (leaves)
			list_del(&caller->link);
		raw_spin_unlock(&callers->lock);
		if (leaves)
			break;
		schedule_timeout_uninterruptible(1);
	}
	if (caller->raised)
		lower_caller(caller);
}

void spile_callers_begin(struct spile_callers *callers)
{
	raw_spin_lock(&callers->lock);
	callers->ended = false;
	raw_spin_unlock(&callers->lock);
}

static bool wants_raising(const struct spile_caller *caller)
{
	return !caller->looked_at;
}

static bool wants_killing(const struct spile_caller *caller)
{
	return READ_ONCE(caller->copies) && !caller->killed;
}

/* A call of which `wants` is true; its task does not end before it is unpinned. */
static struct spile_caller *pin_caller(struct spile_callers *callers,
				       bool (*wants)(const struct spile_caller *caller))
{
	struct spile_caller *caller, *found = NULL;

	raw_spin_lock(&callers->lock);
	list_for_each_entry(caller, &callers->all, link) {
		if (!wants(caller))
			continue;
		caller->pinned = true;
		found = caller;
		break;
	}
	raw_spin_unlock(&callers->lock);
	return found;
}

static void unpin_caller(struct spile_callers *callers, struct spile_caller *caller)
{
	raw_spin_lock(&callers->lock);
	caller->pinned = false;
	raw_spin_unlock(&callers->lock);
}

/* It is given back what sched_set_normal() can give. */
static bool may_be_raised(const struct task_struct *task)
{
	int policy = task->policy;

	/* A cgroup may have no time for real-time tasks at all. */
	return (policy == SCHED_NORMAL || policy == SCHED_BATCH || policy == SCHED_IDLE) &&
	       !task->sched_reset_on_fork && !IS_ENABLED(CONFIG_RT_GROUP_SCHED);
}

static void raise_caller(struct spile_caller *caller)
{
	caller->looked_at = true;
	caller->idle = caller->task->policy == SCHED_IDLE;
	caller->raised = may_be_raised(caller->task);
	if (caller->raised)
		sched_set_fifo_low(caller->task);
}

static void raise_callers(struct spile_callers *callers)
{
	struct spile_caller *caller;

	while ((caller = pin_caller(callers, wants_raising))) {
		raise_caller(caller);
		unpin_caller(callers, caller);
	}
}

static bool is_anybody_in(struct spile_callers *callers)
{
	bool there;

	raw_spin_lock(&callers->lock);
	there = !list_empty(&callers->all);
	raw_spin_unlock(&callers->lock);
	return there;
}

bool spile_callers_end(struct spile_callers *callers, unsigned int milliseconds)
{
	unsigned int waited;

	raw_spin_lock(&callers->lock);
	callers->ended = true;
	raw_spin_unlock(&callers->lock);
	for (waited = 0; is_anybody_in(callers); waited += CALLERS_LOOK_MS) {
		/* Who has all the CPU time that he wants leaves by himself. */
		if (waited || !milliseconds)
			raise_callers(callers);
		if (waited >= milliseconds)
			return false;
		msleep(CALLERS_LOOK_MS);
	}
	return true;
}

void spile_callers_kill(struct spile_callers *callers, void (*tell)(struct task_struct *task))
{
	struct spile_caller *caller;

	while ((caller = pin_caller(callers, wants_killing))) {
		caller->killed = true;
		tell(caller->task);
		send_sig(SIGKILL, caller->task, 1);
		unpin_caller(callers, caller);
	}
}
