// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/ftrace.h>

int probe_ftrace_set_filter_ips(struct ftrace_ops *ops, unsigned long *addresses,
				unsigned int count);
int probe_ftrace_set_filter_ips(struct ftrace_ops *ops, unsigned long *addresses,
				unsigned int count)
{
	return ftrace_set_filter_ips(ops, addresses, count, 0, 0);
}
