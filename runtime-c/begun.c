// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `.begin` of processes, and `.thread.begin` of threads, that ran before the session did. The
 * handler has to run in the thread, so that is when it next leaves a CPU: at the tracepoint
 * sched_switch, in the thread still. One that sleeps all the time is not seen, and none is woken
 * for it.
 *
 * There is a bit for each thread's id, and the process's, which is that of its first thread. It is
 * set when the thread, or the first one of the process, has been seen, after all handlers have run.
 * A thread is older than the session if its start time is.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/threads.h>
#include <linux/timekeeping.h>
#include <linux/tracepoint.h>

#include "script.h"
#include "features.h"
#include "session.h"
#include "site.h"
#include "uprobe.h"

enum { LAST_AT_EVENT = 0 };	/* priority of a callback of a tracepoint; 10 without one */

static unsigned long *seen;	/* by pid and tgid: PID_MAX_LIMIT bits */
static struct tracepoint *switch_event, *exec_event;
static bool watching;		/* the tracepoints are registered; under spile_session.lock */
static const struct inode *loader;	/* the file that the session's loader runs; never read */

/* When handlers began to run: older processes have begun before. On CLOCK_MONOTONIC. */
static u64 session_began = U64_MAX;

bool spile_began_before(void)
{
	return current->group_leader->start_time < READ_ONCE(session_began);
}

static bool is_loader(void)
{
	return spile_current_program() == loader;
}

bool spile_thread_began_before(void)
{
	return current->start_time < READ_ONCE(session_began);
}

/* Runs the program's code, unlike the kernel's own threads and those of io_uring and vhost. */
static bool runs_program(void)
{
	unsigned int others = PF_KTHREAD | PF_EXITING;

#ifdef PF_IO_WORKER
	others |= PF_IO_WORKER;
#endif
#ifdef PF_USER_WORKER
	others |= PF_USER_WORKER;
#endif
	/* In an exec the new program's own `.begin` follows, at sched_process_exec. */
	return current->mm && !(current->flags & others) && !current->in_execve;
}

bool spile_begun_is_new(void)
{
	return seen && runs_program() && spile_began_before() &&
	       !test_bit(task_tgid_nr(current), seen) && !is_loader();
}

bool spile_thread_begun_is_new(void)
{
	return seen && runs_program() && !thread_group_leader(current) &&
	       spile_thread_began_before() && !test_bit(task_pid_nr(current), seen) &&
	       !is_loader();
}

static void note(pid_t pid)
{
	if (!test_bit(pid, seen))
		set_bit(pid, seen);
}

static void note_current(void)
{
	if (READ_ONCE(spile_session_state) != SPILE_STATE_RUNNING || !current->mm ||
	    !spile_began_before())
		return;
	note(task_tgid_nr(current));
	if (!thread_group_leader(current) && spile_thread_began_before())
		note(task_pid_nr(current));
}

/* Kernels pass these events three arguments or four, which are not used. */
static void handle_switch(void *data)
{
	if (runs_program())
		note_current();
}

static void handle_exec(void *data)
{
	note_current();
}

static void find_event(struct tracepoint *tracepoint, void *data)
{
	if (!strcmp(tracepoint->name, "sched_switch"))
		switch_event = tracepoint;
	else if (!strcmp(tracepoint->name, "sched_process_exec"))
		exec_event = tracepoint;
}

void spile_begun_exit(void)
{
	if (watching) {
		tracepoint_probe_unregister(switch_event, handle_switch, NULL);
		tracepoint_probe_unregister(exec_event, handle_exec, NULL);
		tracepoint_synchronize_unregister();
	}
	kvfree(seen);
	seen = NULL;
}

void spile_begun_by_loader(void)
{
	if (spile_script.begins)
		loader = spile_current_program();
}

int spile_begun_prepare(void)
{
	size_t bytes = BITS_TO_LONGS(PID_MAX_LIMIT) * sizeof(long);
	int error;

	if (!spile_script.begins)
		return 0;
	if (watching)
		return 0;
	if (spile_prototypes_are_checked())
		return -EOPNOTSUPP;
	if (!seen) {
		seen = kvzalloc(bytes, GFP_KERNEL);
		if (!seen)
			return -ENOMEM;
		spile_session_charge(bytes);
	}
	for_each_kernel_tracepoint(find_event, NULL);
	if (!switch_event || !exec_event)
		return -ENOENT;
	/* After the script's own probes there. */
	error = tracepoint_probe_register_prio(switch_event, handle_switch, NULL, LAST_AT_EVENT);
	if (error)
		return error;
	error = tracepoint_probe_register_prio(exec_event, handle_exec, NULL, LAST_AT_EVENT);
	if (error) {
		tracepoint_probe_unregister(switch_event, handle_switch, NULL);
		tracepoint_synchronize_unregister();
		return error;
	}
	watching = true;
	return 0;
}

void spile_begun_runs(void)
{
	if (seen)
		bitmap_zero(seen, PID_MAX_LIMIT);
	WRITE_ONCE(session_began, ktime_get_ns());
}
