// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/sched.h>
#include <asm/fpu/api.h>
#include <asm/processor.h>

struct fpu *probe_fpu_of_task(struct task_struct *task);
struct fpu *probe_fpu_of_task(struct task_struct *task)
{
	return x86_task_fpu(task);
}
