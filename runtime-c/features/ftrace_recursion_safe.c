/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <linux/ftrace.h>

unsigned long probe(void);
unsigned long probe(void)
{
	return FTRACE_OPS_FL_RECURSION_SAFE;
}
