// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/sched.h>
/* As in hex_header.c. */
#if __has_include(<linux/sched/exec_state.h>)
#include <linux/sched/exec_state.h>
#else
#error there is no linux/sched/exec_state.h
#endif

enum task_dumpable probe_exec_state(struct task_struct *task);
enum task_dumpable probe_exec_state(struct task_struct *task)
{
	/* Without rcu_dereference(): errors in a macro of a header would not name this file. */
	return task->exec_state->dumpable;
}
