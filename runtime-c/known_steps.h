/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacks of the current task without the kernel's unwinder, which takes some 500 instructions
 * for a frame: where a function's frame has one size at an address, or is where the frame
 * pointer says, the caller's address is that far up the stack. Steps that the unwinder has shown
 * for addresses of the kernel's own code are remembered, because that code does not change. Code
 * of modules may change; it is left to the unwinder, like all cases in doubt.
 *
 * x86-64 with ORC; elsewhere spile_steps_walk() never knows a stack.
 */
#ifndef SPILE_KNOWN_STEPS_H
#define SPILE_KNOWN_STEPS_H

#include "features.h"

struct pt_regs;

#if defined(SPILE_HAVE_UNWIND_START) && defined(CONFIG_UNWINDER_ORC) && defined(CONFIG_X86_64)
/*
 * Return addresses from these registers on, of the kernel, to its entry; 0: a step is not
 * known, or there are more than `most`. Any context; bounded by `most`.
 */
unsigned int spile_steps_walk(const struct pt_regs *regs, unsigned long *frames, unsigned int most);

/*
 * In the unwinder's walk of the current task from these registers: unwind_start() has taken the
 * first step. If it is not known, learns it by taking it again.
 */
void spile_steps_learn_first(const struct pt_regs *regs, struct unwind_state *after);
/* Whether the next step from that state is still to be learnt. */
bool spile_steps_unknown(const struct unwind_state *before);
/* Learns this step by taking it again. */
void spile_steps_learn(const struct unwind_state *before, struct unwind_state *after);
#else
static inline unsigned int spile_steps_walk(const struct pt_regs *regs, unsigned long *frames,
					    unsigned int most)
{
	return 0;
}
#ifdef SPILE_HAVE_UNWIND_START
static inline void spile_steps_learn_first(const struct pt_regs *regs, struct unwind_state *after)
{
}
static inline bool spile_steps_unknown(const struct unwind_state *before)
{
	return false;
}
static inline void spile_steps_learn(const struct unwind_state *before, struct unwind_state *after)
{
}
#endif
#endif

#endif
