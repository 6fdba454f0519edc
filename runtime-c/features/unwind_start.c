// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/sched.h>
#include <asm/unwind.h>

unsigned long probe_unwind_start(struct pt_regs *regs);
unsigned long probe_unwind_start(struct pt_regs *regs)
{
	struct unwind_state state;

	unwind_start(&state, current, regs, NULL);
	unwind_next_frame(&state);
	return unwind_done(&state) ? 0 : unwind_get_return_address(&state);
}
