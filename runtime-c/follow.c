// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The processes that a probe in a program is for: one, or those of the session. These are
 * target() and its descendants, with a bit for each process id; without a target() probes are
 * for all processes. With --privilege=stapusr others than the owner's are left out (owner.c).
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/string.h>
#include <linux/threads.h>
#include <linux/tracepoint.h>

#include "script.h"
#include "builtins.h"
#include "features.h"
#include "owner.h"
#include "rcu_here.h"
#include "session.h"
#include "site.h"
#include "uprobe.h"

enum {
	MOST_ANCESTORS = 1000,
	LAST = 0,		/* priority of a callback of a tracepoint; 10 without one */
};

static unsigned long *followed;		/* by tgid: PID_MAX_LIMIT bits; NULL: no target() */
static struct tracepoint *fork_event, *exit_event;
static bool following;		/* the tracepoints are registered; under spile_session.lock */

bool spile_follows_task(spile_long pid, const struct task_struct *task)
{
	if (unlikely(pid))
		return task->tgid == pid;
	return !spile_session.target || (followed && test_bit(task->tgid, followed));
}

bool spile_follows_current(spile_long pid)
{
	return !spile_owner_ignores_current() && spile_follows_task(pid, current);
}

bool spile_follows_some(spile_long pid)
{
	return pid || spile_session.target || spile_owner_is_limited;
}

/* All threads of a process have the same memory or, those that end, none. */
static bool has_mm(struct task_struct *process, struct mm_struct *mm)
{
	const struct mm_struct *memory;
	struct task_struct *thread;

	for_each_thread(process, thread) {
		memory = READ_ONCE(thread->mm);
		if (memory)
			return memory == mm;
	}
	return false;
}

bool spile_follows_mm(spile_long pid, struct mm_struct *mm)
{
	const struct task_struct *user;
	struct task_struct *process;
	bool found = false;

	if (spile_owner_is_limited && !spile_owner_sees_mm(mm))
		return false;
	if (!pid && !spile_session.target)
		return true;
	/* Processes that share memory have the same ancestors. */
	if (current->mm == mm && (!pid || spile_follows_current(pid)))
		return spile_follows_current(pid);
	rcu_read_lock();
	if (pid) {
		process = pid_task(find_pid_ns(pid, &init_pid_ns), PIDTYPE_TGID);
		found = process && has_mm(process, mm);
	} else if (followed) {
		/*
		 * Called for each memory that maps the file while no process can fork, so not
		 * every process is looked at.
		 */
		user = spile_user_of_mm(mm);
		found = user && test_bit(user->tgid, followed);
		/* The process of -x may share its memory with its parent, which owns it. */
		if (!found && test_bit(spile_session.target, followed)) {
			process = pid_task(find_pid_ns(spile_session.target, &init_pid_ns),
					   PIDTYPE_TGID);
			found = process && has_mm(process, mm);
		}
	}
	rcu_read_unlock();
	return found;
}

static void handle_fork(void *data, struct task_struct *parent, struct task_struct *child)
{
	if (child->tgid == child->pid && test_bit(parent->tgid, followed))
		set_bit(child->tgid, followed);
}

/* Older kernels pass one argument, newer ones a second, which is not used. */
static void handle_process_exit(void *data, struct task_struct *task)
{
	if (!atomic_read(&task->signal->live))
		clear_bit(task->tgid, followed);
}

static void find_process_event(struct tracepoint *tracepoint, void *data)
{
	if (!strcmp(tracepoint->name, "sched_process_fork"))
		fork_event = tracepoint;
	else if (!strcmp(tracepoint->name, "sched_process_exit"))
		exit_event = tracepoint;
}

/* Adds the number of ancestors that were looked at. */
static bool descends(struct task_struct *task, int from, unsigned int *looked_at)
{
	unsigned int i;

	for (i = 0; i < MOST_ANCESTORS && task->tgid > 1; i++) {
		*looked_at += 1;
		if (task->tgid == from)
			return true;
		task = rcu_dereference(task->real_parent);
	}
	return false;
}

/*
 * A process that is about to end is no longer in the list while it closes its files, and before
 * the session's handlers are armed there is none: the ancestors are asked as well.
 */
spile_long spile_fn_followed(struct spile_context *c, spile_long pid)
{
	unsigned int ancestors = 0;
	struct task_struct *task;
	bool found;

	if (!spile_session.target || pid <= 0 || pid >= PID_MAX_LIMIT || !spile_rcu_waits_for_us())
		return 0;
	rcu_read_lock();
	task = pid_task(find_pid_ns(pid, &init_pid_ns), PIDTYPE_PID);
	found = (followed && test_bit(task ? task->tgid : pid, followed)) ||
		(task && descends(task, spile_session.target, &ancestors));
	rcu_read_unlock();
	/* A user may have a chain of a thousand. */
	spile_debit(c, ancestors);
	return found;
}

spile_long spile_fn_next_followed(struct spile_context *c, spile_long pid)
{
	unsigned long next;

	if (pid < 0 || pid >= PID_MAX_LIMIT - 1)
		return 0;
	if (!followed)
		return pid < spile_session.target ? spile_session.target : 0;
	next = find_next_bit(followed, PID_MAX_LIMIT, pid + 1);
	/* A statement for each 4 KiB of the bitmap, which has 512 KiB. */
	spile_debit(c, (next - pid) / (8 * 4096));
	return next < PID_MAX_LIMIT ? next : 0;
}

void spile_follow_exit(void)
{
	if (following) {
		tracepoint_probe_unregister(fork_event, handle_fork, NULL);
		tracepoint_probe_unregister(exit_event, handle_process_exit, NULL);
		tracepoint_synchronize_unregister();
	}
	kvfree(followed);
	followed = NULL;
}

int spile_follow_begin(void)
{
	size_t bytes = BITS_TO_LONGS(PID_MAX_LIMIT) * sizeof(long);
	struct task_struct *task;
	unsigned int looked_at = 0;
	int error;

	if (following || !spile_script.follows || spile_session.target <= 0)
		return 0;
	if (spile_prototypes_are_checked())
		return -EOPNOTSUPP;
	if (!followed) {
		followed = kvzalloc(bytes, GFP_KERNEL);
		if (!followed)
			return -ENOMEM;
		spile_session_charge(bytes);
	}
	for_each_kernel_tracepoint(find_process_event, NULL);
	if (!fork_event || !exit_event)
		return -ENOENT;
	error = tracepoint_probe_register(fork_event, handle_fork, NULL);
	if (error)
		return error;
	/* After the script's own probes there, for which the process still counts. */
	error = tracepoint_probe_register_prio(exit_event, handle_process_exit, NULL, LAST);
	if (error) {
		tracepoint_probe_unregister(fork_event, handle_fork, NULL);
		tracepoint_synchronize_unregister();
		return error;
	}
	following = true;
	rcu_read_lock();
	for_each_process(task)
		if (descends(task, spile_session.target, &looked_at))
			set_bit(task->tgid, followed);
	rcu_read_unlock();
	return 0;
}
