/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SPILE_HIT_ADDRESS_H
#define SPILE_HIT_ADDRESS_H

#include <linux/ptrace.h>

#include "context.h"

/*
 * The instruction pointer of a kprobe is that after the breakpoint, at entries served by
 * ftrace too.
 */
enum { SPILE_BREAKPOINT_BYTES = IS_ENABLED(CONFIG_X86) ? 1 : 0 };

/*
 * The address at which the probe was hit; of a return the address returned to. Registers
 * that the script has set are as they are.
 */
static inline unsigned long spile_hit_address(struct spile_context *c, struct pt_regs *regs)
{
	bool hit = c->probe->kind == SPILE_PROBE_KPROBE && regs != &spile_cpu_of(c)->other.regs;

	return instruction_pointer(regs) - (hit ? SPILE_BREAKPOINT_BYTES : 0);
}

#endif
