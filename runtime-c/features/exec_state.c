// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/sched.h>
#include <linux/sched/exec_state.h>

enum task_dumpable probe_exec_state(struct task_struct *task);
enum task_dumpable probe_exec_state(struct task_struct *task)
{
	return rcu_dereference(task->exec_state)->dumpable;
}
