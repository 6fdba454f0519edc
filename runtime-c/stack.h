/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SPILE_STACK_H
#define SPILE_STACK_H

#include <linux/kernel.h>

struct spile_context;

enum { SPILE_STACK_TEXT = 8192 };	/* bytes of a stack as a string value, before it is cut */

/*
 * The stack of the code that the handler interrupts: the address of the probed instruction, or
 * of the tracepoint's caller, then return addresses. Unwound once in a handler's run. Owner of
 * the context; bounded by spile_script.stack_frames unwinding steps.
 */
unsigned int spile_stack_kernel(struct spile_context *c, const unsigned long **frames);
/*
 * The kernel stack of the task at that address, if it is neither running on another CPU nor
 * exiting; 0 frames if it is not a task. Unwound again each time.
 */
unsigned int spile_stack_task(struct spile_context *c, unsigned long address,
			      const unsigned long **frames);

/*
 * The part of a stack of *count frames that begins at frame `first` and has at most `most`
 * of them (below 0: all): returns the index of its first frame, *count becomes its length.
 */
static inline unsigned int spile_stack_part(long long first, long long most, unsigned int *count)
{
	unsigned int from = clamp_t(long long, first, 0, *count);

	*count -= from;
	if (most >= 0)
		*count = min_t(long long, most, *count);
	return from;
}

#endif
