/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SPILE_ORIGINAL_RETURN_H
#define SPILE_ORIGINAL_RETURN_H

#include <linux/sched.h>
#include <linux/uprobes.h>

#include "memory.h"

/*
 * A probed return of a program has the address of a trampoline in place of the return address,
 * which the kernel has saved: the one that was at this place of the stack, or `found`. Owner of
 * the context, in the task that runs the program.
 */
#ifdef CONFIG_UPROBES
static inline bool spile_has_returns(void)
{
	const struct uprobe_task *task = READ_ONCE(current->utask);

	return task && READ_ONCE(task->return_instances);
}

static inline unsigned long spile_original_return(unsigned long at, unsigned long found)
{
	enum { MOST_RETURNS = 64 };
	const struct return_instance *instance;
	unsigned int i;

	if (likely(!spile_has_returns()))
		return found;
	instance = READ_ONCE(current->utask->return_instances);
	for (i = 0; instance && i < MOST_RETURNS; i++) {
		struct return_instance copy;

		if (spile_memory_read(&copy, (unsigned long)instance, sizeof(copy), false))
			break;
		if (copy.stack == at)
			return copy.orig_ret_vaddr;
		instance = copy.next;
	}
	return found;
}
#else
static inline bool spile_has_returns(void)
{
	return false;
}

static inline unsigned long spile_original_return(unsigned long at, unsigned long found)
{
	return found;
}
#endif

#endif
