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
	MOST_ENDED = 1000,	/* that nobody has waited for, one after the other */
};

static unsigned long *followed;		/* by tgid: PID_MAX_LIMIT bits; NULL: no target() */
static struct tracepoint *fork_event, *free_event;
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
	if (child->tgid == child->pid)
		assign_bit(child->tgid, followed, test_bit(parent->tgid, followed));
}

/*
 * A task that has ended and that nobody looks at any more; the first one of a process is the
 * last. No earlier moment will do: of threads that end at the same time each may be the one
 * that finds no other alive, while the probes of the others are still to be hit. Another process
 * may have the id by now, of which handle_fork() has decided.
 */
static void handle_free(void *data, struct task_struct *task)
{
	if (task->pid != task->tgid)
		return;
	rcu_read_lock();
	if (!pid_task(find_pid_ns(task->tgid, &init_pid_ns), PIDTYPE_TGID))
		clear_bit(task->tgid, followed);
	rcu_read_unlock();
}

static void find_process_event(struct tracepoint *tracepoint, void *data)
{
	if (!strcmp(tracepoint->name, "sched_process_fork"))
		fork_event = tracepoint;
	else if (!strcmp(tracepoint->name, "sched_process_free"))
		free_event = tracepoint;
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

/* Before the session's handlers are armed there is no list: the ancestors are asked as well. */
spile_long spile_fn_followed(struct spile_context *c, spile_long pid)
{
	unsigned int ancestors = 0;
	struct task_struct *task;
	bool found;

	if (!spile_session.target || pid <= 0 || pid >= PID_MAX_LIMIT || !spile_rcu_waits_for_us())
		return 0;
	rcu_read_lock();
	task = pid_task(find_pid_ns(pid, &init_pid_ns), PIDTYPE_PID);
	found = task && ((followed && test_bit(task->tgid, followed)) ||
			 descends(task, spile_session.target, &ancestors));
	rcu_read_unlock();
	/* A user may have a chain of a thousand. */
	spile_debit(c, ancestors);
	return found;
}

/* Whether the process has not ended, nor begun to. */
static bool lives(unsigned long tgid)
{
	const struct task_struct *task = pid_task(find_pid_ns(tgid, &init_pid_ns), PIDTYPE_TGID);

	return task && atomic_read(&task->signal->live);
}

spile_long spile_fn_next_followed(struct spile_context *c, spile_long pid)
{
	unsigned int ended = 0;
	unsigned long next;

	if (pid < 0 || pid >= PID_MAX_LIMIT - 1)
		return 0;
	if (!followed)
		return pid < spile_session.target ? spile_session.target : 0;
	if (!spile_rcu_waits_for_us())
		return 0;
	rcu_read_lock();
	next = find_next_bit(followed, PID_MAX_LIMIT, pid + 1);
	for (; next < PID_MAX_LIMIT && !lives(next) && ended < MOST_ENDED; ended++)
		next = find_next_bit(followed, PID_MAX_LIMIT, next + 1);
	rcu_read_unlock();
	if (ended == MOST_ENDED) {
		spile_fail_text(c, "more than %u processes have ended that nobody has waited for",
				MOST_ENDED);
		return 0;
	}
	/* A statement for each 4 KiB of the bitmap, which has 512 KiB. */
	spile_debit(c, ended + (next - pid) / (8 * 4096));
	return next < PID_MAX_LIMIT ? next : 0;
}

void spile_follow_exit(void)
{
	if (following) {
		tracepoint_probe_unregister(fork_event, handle_fork, NULL);
		tracepoint_probe_unregister(free_event, handle_free, NULL);
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
	if (!fork_event || !free_event)
		return -ENOENT;
	error = tracepoint_probe_register(fork_event, handle_fork, NULL);
	if (error)
		return error;
	error = tracepoint_probe_register(free_event, handle_free, NULL);
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
