// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `.begin` of processes that ran before the session did. The handler has to run in the process,
 * so that is when it next leaves a CPU: at the tracepoint sched_switch, in the process still. A
 * process that sleeps all the time is not seen, and none is woken for it.
 *
 * There is a bit for each process id, set when the process has been seen, after all handlers have
 * run. A process is older than the session if its start time is.
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

static unsigned long *seen;	/* by tgid: PID_MAX_LIMIT bits */
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

bool spile_begun_is_new(void)
{
	/* In an exec the new program's own `.begin` follows, at sched_process_exec. */
	return seen && current->mm && !(current->flags & (PF_KTHREAD | PF_EXITING)) &&
	       !current->in_execve && spile_began_before() &&
	       !test_bit(task_tgid_nr(current), seen) && !is_loader();
}

static void note_current(void)
{
	if (READ_ONCE(spile_session_state) == SPILE_STATE_RUNNING && current->mm &&
	    spile_began_before() && !test_bit(task_tgid_nr(current), seen))
		set_bit(task_tgid_nr(current), seen);
}

/* Kernels pass these events three arguments or four, which are not used. */
static void handle_switch(void *data)
{
	if (!current->in_execve)
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
