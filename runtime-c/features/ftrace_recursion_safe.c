// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/ftrace.h>

unsigned long probe_ftrace_recursion_safe(void);
unsigned long probe_ftrace_recursion_safe(void)
{
	return FTRACE_OPS_FL_RECURSION_SAFE;
}
