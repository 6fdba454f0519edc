// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/ftrace.h>

struct pt_regs *probe_arch_ftrace_regs(struct ftrace_regs *given);
struct pt_regs *probe_arch_ftrace_regs(struct ftrace_regs *given)
{
	return &arch_ftrace_regs(given)->regs;
}
