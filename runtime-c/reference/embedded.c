// SPDX-License-Identifier: GPL-2.0-or-later
/* A script's own C, for the reference module (see script.c). */
#define SPILE_OWN_HEADERS
#include <linux/bug.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/string.h>
#include "embedded.h"

/* Messages name the script, never this file, whose path differs between builds. */
#line 1 "reference.stp"
void spile_reference_embedded(struct spile_context *CONTEXT, spile_long *spile_result)
{
	struct task_struct *task = current;

	*spile_result = kread(&task->pid);
	WARN_ON_ONCE(in_task() && !task->mm);
	if (mutex_is_locked((struct mutex *)spile_result))
		STAP_ERROR("locked");
	STAP_PRINTF("%s\n", task->comm);
}
