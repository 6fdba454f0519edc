/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether a handler has enough of the stack that it would run on. The kernel has
 * several: each task's, each CPU's for interrupts (softirqs too), and each CPU's
 * for exceptions (NMI, #DB, #MC, #DF, #VC), which are half as large or less.
 */
#ifndef SPILE_STACK_LEFT_H
#define SPILE_STACK_LEFT_H

#include <linux/sched.h>
#include <linux/sched/task_stack.h>

#include "context.h"
#include "site.h"

/*
 * The check for a stack other than the task's, or for the task's with too little left. The
 * context is owned.
 */
bool spile_stack_elsewhere_suffices(struct spile_cpu *cpu, const struct spile_site *site);

/*
 * Whether the stack is the task's and has enough left; if not, call
 * spile_stack_elsewhere_suffices(). Six instructions.
 */
static __always_inline bool spile_stack_suffices(const struct spile_site *site)
{
#ifdef CONFIG_X86_64
	unsigned long left = current_stack_pointer - (unsigned long)task_stack_page(current);

	/*
	 * One comparison covers both cases: with too little left, or on another stack, the
	 * number is too large.
	 */
	return left - site->stack_needed <= site->stack_spare;
#else
	return true;
#endif
}

/* Sets the stack that the handler of a site needs. At load. */
void spile_stack_need(struct spile_site *site);

/*
 * Makes each online CPU find its interrupt stack; others do at their first hit on it.
 * After spile_context_init(). Process context.
 */
void spile_stack_init(void);
void spile_stack_exit(void);

#endif
